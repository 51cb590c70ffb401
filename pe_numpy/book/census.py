"""A census: which released model used which encoding, since when, and the file that says so.

Source: ``census.csv`` beside this module. Each row names the code or configuration that was read
(`source`) and what its month rests on (`dated`): the number of a paper, or a dated page.
``census_candidates.csv`` holds what the rule below says of each candidate.
Axes: none.
Rule of selection, written before anything was counted. Candidates are the keys of
``MODEL_FOR_CAUSAL_LM_MAPPING_NAMES`` in transformers 5.23.0, models/auto/modeling_auto.py. A
candidate counts, as one family, unless one of these holds; the first that holds is the reason:

1. *alias*: the class it names stands in the folder of another family (``internlm3``: Llama's), or
   its folder has had its key (``gemma3_text`` after ``gemma3``);
2. *encoder*: it is also in the mapping for masked language models or for multiple choice;
3. *encoder-decoder*: it is also in a mapping for sequences to sequences, speech or waveforms;
4. *wrapper*: its code takes the language model from another family (``AutoModel``);
5. *recurrent*: no layer of its code attends to earlier tokens;
6. *small*: neither its default configuration nor a size given by the names of its checkpoints or
   by its page in the documentation reaches a billion parameters.

Its encoding is what the attention layers of its code do by its default configuration. Its month is
the earlier of the two on its page in the documentation (released, contributed), but the second
where the first is missing or is that of another model's paper; without a page, that of the first
release with its folder. (Pages of another's paper: Ettin, GLM-4-0414, HRM-Text, JetMoE, VaultGemma.
jesperschlegel/transformers 65c1bfa317 is a copy of the library of April 2026, with its pages.)

Outside the count stand encoders, encoder-decoders, models of images, and relatives that share a
family's code (`model`), and papers that introduced an encoding (`scheme`): chosen by hand.
Convention: one name a row, that of what sets the model apart; the rest stands in `setting`. The
place is that of the encoding (1 token vectors, 2 queries and keys, 3 scores, 4 sums; 0 none). A
`family` counts; a rotation in some layers is a rotation.
"""

from __future__ import annotations

import csv
import os
import re
from collections import ChainMap
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from pe_numpy import checks
from pe_numpy.judging.schemes import SCHEMES

KINDS = ("family", "model", "scheme")
VERDICTS = (
    "counted",
    *("alias", "encoder", "encoder-decoder", "wrapper", "recurrent", "small"),
)


class Kind(NamedTuple):
    """An encoding of the census: the name that texts use, its place, its chapter."""

    label: str
    place: int
    chapter: str


APART = {  # what models have, and no row of the register says
    "sinusoidal_2d": Kind("sinusoids on a grid", 1, "25_grid"),
    "projected": Kind("Shaw's idea", 3, "37_content"),
    "offset_table": Kind("Swin", 3, "38_windows"),
    "offset_mlp": Kind("Swin-2", 3, "38_windows"),
    "offset_vectors": Kind("MViT", 3, "38_windows"),
    "local_global": Kind("local layers", 2, "42_rope_in_models"),
    "nope_layers": Kind("layers without RoPE", 2, "42_rope_in_models"),
    "mla": Kind("latent", 2, "44_fewer_keys"),
}
ENCODINGS: ChainMap[str, Any] = ChainMap(APART, SCHEMES)  # all have label, place and chapter


class Row(NamedTuple):
    """A line of the census; all texts, as they stand in the file."""

    date: str
    model: str
    kind: str
    encoding: str
    setting: str
    source: str
    dated: str

    @property
    def year(self) -> int:
        """That of the date."""
        return int(self.date[:4])

    @property
    def month(self) -> float:
        """The middle of the month, in years."""
        return self.year + (int(self.date[5:]) - 0.5) / 12

    @property
    def place(self) -> int:
        """Where the encoding enters: 1 to 4, or 0 if there is none."""
        return ENCODINGS[self.encoding].place


class Candidate(NamedTuple):
    """What the rule says of a key of the mapping; all texts, as they stand in the file."""

    key: str
    folder: str
    verdict: str
    size: str


def candidates() -> list[Candidate]:
    """Read what the rule says of each candidate, in the mapping's order.

    Returns
    -------
    Rows of texts: the key, the folder in models/ of the class that it names, "counted" or the
    reason why it does not count, and what its size rests on (of those that got so far).

    Examples
    --------
    >>> [(one.key, one.verdict) for one in candidates()[:9]][-3:]
    [('bailing_hybrid', 'counted'), ('bamba', 'counted'), ('bart', 'encoder')]
    """
    file = resources.files("pe_numpy.book") / "census_candidates.csv"
    lines = csv.reader(file.read_text(encoding="utf-8").splitlines())
    next(lines)
    return [Candidate(*fields) for fields in lines]


def census(path: str | os.PathLike[str] | None = None) -> list[Row]:
    """Read the census, one row a model, in the order of time.

    Parameters
    ----------
    path : path, optional
        Another file of the same form; by default the book's own.

    Returns
    -------
    Rows of texts: date (year-month), model, kind, encoding (a key of `ENCODINGS`), setting, source
    and dated; with `row.year`, `row.month` and `row.place`.

    Raises
    ------
    ValueError
        If a line has an empty or missing field, an impossible month, one that its arXiv number
        contradicts, an unknown kind or encoding, a model that stood before, or an earlier date than
        the line before it. The message names file and line.

    Examples
    --------
    >>> first = census()[0]
    >>> first.date, first.model, first.encoding, first.place
    ('2017-06', 'Transformer', 'sinusoidal', 1)
    """
    file = resources.files("pe_numpy.book") / "census.csv" if path is None else Path(path)
    lines = csv.reader(file.read_text(encoding="utf-8").splitlines())
    rows: list[Row] = []
    if tuple(next(lines, [])) != Row._fields:
        raise ValueError(
            f"census: {file.name}, line 1: the columns must be {','.join(Row._fields)}"
        )
    for fields in lines:
        where = f"census: {file.name}, line {lines.line_num}"
        if len(fields) != len(Row._fields):
            raise ValueError(f"{where}: must have {len(Row._fields)} fields; got {len(fields)}")
        row = Row(*fields)
        if wrong := _mistake(row, rows):
            raise ValueError(f"{where}: {wrong}")
        rows.append(row)
    return rows


def _mistake(row: Row, before: list[Row]) -> str:
    """What is wrong with a row, after those before it; nothing if it is right."""
    if blank := [name for name, text in row._asdict().items() if not text.strip()]:
        return f"{blank[0]} must not be empty"
    if not re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", row.date):
        return f"date must be a year and a month, like 2017-06; got {row.date}"
    paper = re.fullmatch(r"arXiv (\d\d)(\d\d)\.\d{5}", row.dated)
    if row.dated.startswith("arXiv") and not paper:
        return f"an arXiv number is like 1706.03762; got {row.dated}"
    if paper and row.date != f"20{paper[1]}-{paper[2]}":
        return f"date must be the month of {row.dated}; got {row.date}"
    if row.kind not in KINDS:
        return f"kind must be one of {', '.join(KINDS)}; got {row.kind}"
    if row.encoding not in ENCODINGS:
        return f"encoding must be one of {', '.join(ENCODINGS)}; got {row.encoding}"
    if row.model in {other.model for other in before}:
        return f"a model has one row; got {row.model} again"
    if before and row.date < before[-1].date:
        return f"rows must be in the order of time; got {row.date} after {before[-1].date}"
    return ""


def users_of(encoding: str) -> list[str]:
    """Give the released models of the census, counted or not, that use an encoding, by time.

    Parameters
    ----------
    encoding : str
        A key of `ENCODINGS`.

    Returns
    -------
    Names of models; none if the census knows no released model.

    Raises
    ------
    ValueError
        If the encoding is unknown.

    Examples
    --------
    >>> users_of("alibi")
    ['BLOOM', 'MPT']
    """
    checks.choice("users_of", "encoding", encoding, tuple(ENCODINGS))
    return [row.model for row in census() if row.encoding == encoding and row.kind != "scheme"]
