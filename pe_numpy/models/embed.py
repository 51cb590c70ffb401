r"""One vector for a text: what a folder of sentence-transformers says of pooling, done.

Equation: the mean of the vectors h_i that the last layer makes of a text's L real tokens, special
ones among them, and its direction::

    m = (h_1 + ... + h_L) / L,    v = m / |m|

Source: Reimers and Gurevych 2019, arXiv:1908.10084, section 3, "MEAN"; sentence-transformers 6.2.0,
`sentence_transformer/modules/pooling.py`, and the names of its files, old and new.
Axes: N texts, B of one length, L tokens, D width.
Convention: a text of more tokens than its model may read loses those before the last, [SEP].
Differs from the library: texts of one length are read together, so that there is no padding.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.models.entries import LARGEST, entry

NAME = "embed"
KEYS = ("type", "path")  # of an entry of modules.json
EACH = str | Sequence | np.ndarray
TOGETHER = 32  # texts in one call
TINY = 1e-12  # the least length that a vector is divided by, as in the library


class Pooling(NamedTuple):
    """What a folder says: the most tokens of a text, and whether vectors have length 1."""

    longest: int
    unit: bool


def mean_of_tokens(h: ArrayLike, real: ArrayLike) -> np.ndarray:
    """Mean over the real tokens of each text: m = sum_i r_i h_i / sum_i r_i.

    Parameters
    ----------
    h : (B, L, D) array
        A vector for each token.
    real : (B, L) boolean array
        True = token, False = padding, which does not count.

    Returns
    -------
    (B, D) array in the dtype of `h`.

    Notes
    -----
    Source: Reimers and Gurevych 2019, arXiv:1908.10084, section 3.

    Examples
    --------
    >>> mean_of_tokens([[[1, 2], [3, 6], [9, 9]]], [[True, True, False]]).tolist()
    [[2.0, 4.0]]
    """
    h = checks.real_array("mean_of_tokens", "h", h)
    real = checks.as_array(real)
    if h.ndim != 3 or real.dtype != np.bool_ or real.shape != h.shape[:2]:
        raise ValueError(
            "mean_of_tokens: h must have the axes (B, L, D), and real be boolean (B, L); "
            f"got {h.shape}, and {real.dtype} {real.shape}"
        )
    n = real.sum(axis=1, keepdims=True)  # (B, 1)
    if not n.all():
        raise ValueError("mean_of_tokens: each text must have a real token; one has none")
    return np.where(real[..., None], h, 0).sum(axis=1) / n.astype(h.dtype)


def embed(model: Any, texts: Sequence[str | Sequence[int]]) -> np.ndarray:
    """Vectors (N, D) of texts, or of lists of token ids; see `Encoder.embed`."""
    folder = model.folder
    if isinstance(texts, str) or not all(isinstance(text, EACH) for text in texts):
        raise ValueError(
            f"{NAME}: texts must be a list of texts, or of lists of token ids; got {texts!r:.80}"
        )
    pooling = read_pooling(folder, getattr(model.settings, "N", None))
    ids = tokens_of(folder, texts)
    for n, own in enumerate(ids):
        if not own:
            raise ValueError(f"{NAME}: each text must have a token; text {n} has none")
        if len(own) > pooling.longest:
            ids[n] = [*own[: pooling.longest - 1], own[-1]]
    vectors = np.zeros((len(ids), model.settings.D), model.dtype)
    for L in sorted({len(own) for own in ids}):
        rows = [n for n, own in enumerate(ids) if len(own) == L]
        for some in (rows[n : n + TOGETHER] for n in range(0, len(rows), TOGETHER)):
            h = model.hidden([ids[n] for n in some])  # (B, L, D)
            vectors[some] = mean_of_tokens(h, np.ones(h.shape[:2], bool))
    if pooling.unit:
        vectors /= np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), TINY)
    return vectors


def read_pooling(folder: Path | None, rows: int | None = None) -> Pooling:
    """Read what the folder says; what is not done here is refused by its name."""
    if folder is None or (modules := read(folder, "modules.json", list)) is None:
        raise ValueError(
            f"{NAME}: the folder must say how to pool, as sentence-transformers writes it; there "
            f"is no modules.json in {folder}: take `hidden`, and `mean_of_tokens` if it suits"
        )
    if not all(isinstance(m, dict) and {str} == {type(m.get(k)) for k in KEYS} for m in modules):
        raise ValueError(f"{NAME}: modules.json must be a list of objects with a type and a path")
    kinds = [m["type"].rpartition(".")[2] for m in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise ValueError(
            f"{NAME}: modules.json must be Transformer, Pooling and perhaps Normalize; "
            f"got {', '.join(kinds) or 'none'}"
        )
    own, pooling = (m["path"] for m in modules[:2])
    if own or pooling != Path(pooling).name or "\\" in pooling:
        raise ValueError(
            f"{NAME}: modules.json must have the Transformer in the folder itself, path '', and "
            f"the Pooling in a folder of it; got {own!r:.80} and {pooling!r:.80}"
        )
    where = f"{pooling}/config.json"
    how = read(folder, where, dict)
    if how is None:
        raise ValueError(f"{NAME}: the folder must hold {where}, which modules.json names")
    modes = [key for key, on in how.items() if key.startswith("pooling_mode_") and on]
    new = how.get("pooling_mode", [])
    modes += new if isinstance(new, list) else [new]
    if modes not in (["mean"], ["pooling_mode_mean_tokens"]):
        raise ValueError(
            f"{NAME}: the pooling must be the mean of tokens alone; got "
            f"{', '.join(map(str, modes)) or 'none':.200} in {where}"
        )
    words, asks, cutter = (
        read(folder, f"{name}.json", dict) or {}
        for name in ("sentence_bert_config", "config_sentence_transformers", "tokenizer_config")
    )
    for key, value in (
        ("do_lower_case", words.get("do_lower_case")),
        ("default_prompt_name", asks.get("default_prompt_name")),
    ):
        if value:
            raise ValueError(
                f"{NAME}: {key} must not be set, it is not done here; got {value!r:.80}"
            )
    most = entry(NAME, words, "max_seq_length")
    if most is None:  # newer folders say it there; a huge number means that nobody does
        most = cutter.get("model_max_length")
    limits = [n for n in (most, rows) if type(n) is int and n > 0]
    return Pooling(min(limits, default=LARGEST), "Normalize" in kinds)


def tokens_of(folder: Path, texts: Sequence[str | Sequence[int]]) -> list[list[int]]:
    """Cut texts into token ids, special ones included; lists of ids stay what they are."""
    cut: Any = None
    if any(isinstance(text, str) for text in texts):
        cut = tokenizer_of(NAME, folder, "give lists of token ids")
    try:
        return [cut.encode(text).ids if isinstance(text, str) else list(text) for text in texts]
    except Exception as error:  # the package raises bare ones
        raise ValueError(f"{NAME}: texts can't be cut into tokens: {error}") from None


def tokenizer_of(function: str, folder: Path, instead: str) -> Any:
    """Load tokenizer.json by the tokenizers package, which neither pads nor cuts off."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ValueError(
            f"{function}: text needs the tokenizers package, `pip install tokenizers`; or {instead}"
        ) from None
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ValueError(
            f"{function}: FOLDER must hold tokenizer.json; there is none in {folder}: {instead}"
        )
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise ValueError(f"{function}: tokenizer.json can't be read: {error}") from None
    tokenizer.no_padding()  # a file may ask for both
    tokenizer.no_truncation()
    return tokenizer


def read(folder: Path, name: str, kind: type) -> Any:
    """Read a file of JSON that holds an object or a list; None if there is none."""
    path = folder / name
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{NAME}: {name} must hold JSON; {error}") from None
    if not isinstance(found, kind):
        raise ValueError(f"{NAME}: {name} must hold {kind.__name__}; got {type(found).__name__}")
    return found
