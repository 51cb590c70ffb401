"""The cards: measure what they say of each scheme, and write pe_numpy/book/cards.csv and CARDS.md.

Usage: python docs/cards.py         measure all (a minute), write both, and passports.csv
       python docs/cards.py study   read study, docstrings and census anew, write both

The encodings are measured as they are plugged into the model, for heads of K = 64 numbers. A number
of operations is a polynomial in L, so three lengths tell all of it: what it is for each pair of
tokens, and for each token.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import toc

from pe_numpy import axial_frequencies, mixed_frequencies, mrope_frequencies, rope_nd
from pe_numpy.book import cards, passport
from pe_numpy.files import write_whole
from pe_numpy.judging import experiment
from pe_numpy.judging.cache import cache_properties
from pe_numpy.judging.properties import Properties, properties
from pe_numpy.judging.schemes import SCHEMES, every_scheme
from pe_numpy.judging.verdicts import Study
from pe_numpy.relative.alibi import alibi_slopes
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.encodings import Encoding, Shape

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "pe_numpy" / "book" / "cards.csv"
STUDY = ROOT / "notebooks" / "results" / "study.csv"
PAGE = ROOT / "notebooks" / "CARDS.md"

H, K, LAYERS, LENGTH = 8, 64, 6, 512
D = H * K
LANGUAGES = ("markov", "text")
BUDGET = 4  # of the study's three, the longest that all its encodings have
STUDIED = {  # what the study knows, some by another name, some as a reading of RoPE's models
    **{name: {"encoding": name} for name in experiment.ENCODINGS},
    "forgetting": {"encoding": "fox"},
    "partial_rope": {"encoding": "rope_half"},
    "ntk": {"encoding": "rope", "scaling": "ntk", "factor": 8},
    **{name: {"encoding": "rope", "scaling": name} for name in ("linear", "dynamic_ntk", "yarn")},
    **{name: {"encoding": "rope", "scaling": name} for name in experiment.PLACES},
}
LENGTHS = np.array([256, 384, 512])
MAKERS = ("arange", "empty", "full", "ones", "zeros")
RANGES = {"finite": "ends with its table", "saturated": "a far key's score no longer changes"}
KINDS = {"path": "path (tokens decide)"}


# ---- schemes that have no class in the package ---------------------------------------------------


@dataclass(frozen=True)
class Grid(Encoding):
    """RoPE of an image 32 patches wide, or with three axes of a text."""

    axes: int = 2
    trained: bool = False

    def layer(self, rng, shape):  # noqa: D102
        omega = [mixed_frequencies(rng, shape.d_head) for _ in range(shape.n_heads)]
        return {"omega": np.array(omega)} if self.trained else {}

    def turn(self, params, q, k, context):  # noqa: D102
        n = q.shape[-1]
        plain = (
            axial_frequencies(n) if self.axes == 2 else mrope_frequencies([n // 4, n // 8, n // 8])
        )
        omega = params.get("omega", plain)
        i, j = context.q_positions, context.positions_of(k)
        return rope_nd(q, self.points(i), omega), rope_nd(k, self.points(j), omega)

    def points(self, at):
        """Coordinates of a position."""
        at = np.asarray(at)
        rows = np.divmod(at, 32) if self.axes == 2 else (at, at, at)
        points = np.stack(rows, axis=-1)
        return points if at.ndim == 1 else points[:, None]


class Signed(Encoding):
    """ALiBi with its sign."""

    def scores(self, params, q, k, context):  # noqa: D102
        bias = alibi_slopes(q.shape[-3])[:, None, None] * context.head_distance
        return super().scores(params, q, k, context) - bias


OTHERS = {
    "alibi_signed": Signed(),
    "axial": Grid(),
    "mixed": Grid(trained=True),
    "mrope": Grid(axes=3),
}


def encoding_of(name: str, length: int = LENGTH) -> Encoding:
    """A scheme as the model knows it, for texts of a length."""
    return every_scheme(length)[name].encoding or OTHERS[name]


# ---- what is measured ----------------------------------------------------------------------------


def place(encoding: Encoding) -> str:
    """Which of the four methods a class has of its own."""
    methods = ("embed", "turn", "scores", "mix")
    own = [getattr(type(encoding), m) is not getattr(Encoding, m) for m in methods]
    return "+".join(str(n + 1) for n, has in enumerate(own) if has) or "0"


def kind(found: Properties) -> str:
    """What the detector says, in words."""
    step = {0: "absolute", 1: "relative"}.get(
        found.shift, f"relative in steps of {found.shift} (a group or chunk)"
    )
    words = [KINDS.get(found.move, found.move), step]
    if found.range in RANGES:
        words.append(RANGES[found.range])
    if found.bounded is False and found.range != "finite":
        words.append("without bound")
    if not found.prefix:
        words.append("old rows change as the text grows")
    return ", ".join(words)


def trained(name: str) -> str:
    """Count what a model of 6 layers learns of position, and again for twice the length."""
    once, twice = (count(encoding_of(name, n)) for n in (LENGTH, 2 * LENGTH))
    if not once:
        return "nothing"
    growth = "for any length" if once == twice else f"{twice:,} for twice the length"
    return f"{once:,} numbers (D {D}, H {H}, {LAYERS} layers, L {LENGTH}), {growth}"


def count(encoding: Encoding) -> int:
    """Numbers that an encoding learns in all layers."""
    rng, shape = np.random.default_rng(0), Shape(D, H)
    parts = [encoding.shared(rng, shape), *(encoding.layer(rng, shape) for _ in range(LAYERS))]
    return sum(np.size(p) for part in parts for p in part.values())


class Counted(np.ndarray):
    """An array that counts the operations on it.

    One for each number that NumPy's functions compute; two for each step of a product of matrices;
    six for a product of complex numbers. Lookups and copies are free.
    """

    total = 0

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        plain = [x.view(np.ndarray) if isinstance(x, Counted) else x for x in inputs]
        if out is not None:
            options["out"] = tuple(x.view(np.ndarray) for x in out)
        result = getattr(ufunc, method)(*plain, **options)
        largest = max(map(np.size, [result, *plain] if method == "reduce" else [result]))
        each = 2 * plain[0].shape[-1] if ufunc is np.matmul else 1
        if any(map(np.iscomplexobj, plain)):
            each = 6 if ufunc is np.multiply else 2
        Counted.total += each * largest
        return result.view(Counted) if isinstance(result, np.ndarray) else result


def layer(encoding: Encoding, L: int, wrap: Callable) -> Callable[[], Any]:
    """All that an encoding does in a layer, and the products of queries, keys and values."""
    rng, shape = np.random.default_rng(0), Shape(D, H)
    params = {**encoding.shared(rng, shape), **encoding.layer(rng, shape)}
    params = {name: wrap(value) for name, value in params.items()}
    x = wrap(rng.standard_normal((1, L, D)))
    q, k, v = (wrap(a) for a in rng.standard_normal((3, 1, H, L, K)))
    at, mask = wrap(np.arange(L)), np.tri(L, dtype=bool)
    weights = wrap(np.full((1, H, L, L), 1 / L))

    def run() -> None:
        gates = encoding.gates(params, wrap(encoding.embed(params, x, at)))
        context = Context(at, mask=mask, gates=gates)
        encoding.scores(params, *map(wrap, encoding.turn(params, q, k, context)), context)
        encoding.mix(params, weights, v, context)

    return run


@contextlib.contextmanager
def all_counted() -> Iterator[None]:
    """Let NumPy make such arrays alone, and keep them."""

    def counted(make: Callable) -> Callable:
        return lambda *args, **options: make(*args, **options).view(Counted)

    makers = {name: counted(getattr(np, name)) for name in MAKERS}
    with mock.patch.multiple(np, asarray=np.asanyarray, **makers):
        yield


def operations(encoding: Encoding, L: int) -> int:
    """Count what is computed."""
    run = layer(encoding, L, lambda x: np.asanyarray(x).view(Counted))
    Counted.total = 0
    with all_counted():
        run()
    return Counted.total


def peak(encoding: Encoding, L: int) -> float:
    """The most numbers of 8 bytes that are held at once."""
    run = layer(encoding, L, np.asarray)
    run()
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 8


def growth(measure: Callable, encoding: Encoding) -> tuple[float, float, int]:
    """What an encoding adds to one without: for a pair and head, for a token's number, once."""
    more = [measure(encoding, L) - measure(Encoding(), L) for L in LENGTHS]
    pairs, tokens, once = np.linalg.solve(np.vander(LENGTHS, 3), more)
    return round(pairs / H, 2), round(tokens / D, 3), round(once)


def cost(encoding: Encoding) -> str:
    """Operations that are added."""
    return with_share(*growth(operations, encoding), "1" in place(encoding))


def with_share(pair: float, token: float, once: int, first: bool) -> str:
    """Operations, and how many they are beside those of attention without position."""
    total = (pair * LENGTH * H + token * D) * LENGTH + once
    share = 100 * total / operations(Encoding(), LENGTH)
    shown = f"{share:,.0f}" if share >= 10 else f"{share:.2g}"
    words = added(pair, token, "operation") + f", {once / 1e6:.1f} million once" * (once > 1e6)
    whose = "one layer's attention" if first else "attention"
    return f"{words}: {shown}% of {whose} at L {LENGTH}" if share else words


def memory(encoding: Encoding) -> str:
    """Numbers that are added at the peak."""
    pair, token, _ = growth(peak, encoding)
    return added(pair, 0 if pair >= 0.05 else token, "number")


def added(pair: float, token: float, what: str) -> str:
    """So many per pair and head, and per component of a token."""
    words = []
    for number, unit in ((pair, "per pair and head"), (token, "per component of each token")):
        if number >= 0.05:
            amount = f"{number:,.1f}".removesuffix(".0")
            many = "" if words else f" {what}{'' if amount == '1' else 's'}"
            words.append(f"{amount}{many} {unit}")
    return ", ".join(words) or "nothing"


# ---- the study -----------------------------------------------------------------------------------


def longer() -> dict[str, str]:
    """What the study of chapter 71 says of each scheme, at L0 and at 8 L0."""
    book = Study(STUDY)
    return {name: told(book, name) if name in STUDIED else "not in the study" for name in SCHEMES}


def told(book: Study, name: str) -> str:
    """In words, with the name that the study has for it and what it was given."""
    model, parts = STUDIED[name], []
    for task in LANGUAGES:
        near, *_, far = book.means(task, **model)[BUDGET]
        parts.append(f"{near:.2f} and {far:.2f} ({task})")
    s, n = model.get("factor"), experiment.recipe(LANGUAGES[0]).length
    key = model.get("scaling", model["encoding"])
    other = f", with s {s}" if s else f", named {key} in the study" if key != name else ""
    return f"nats at the trained {n} tokens and at {8 * n} are {', '.join(parts)}{other}"


# ---- the table and the page ----------------------------------------------------------------------


def row(name: str) -> dict[str, str]:
    """Measure all of one scheme but the study."""
    scheme, encoding = every_scheme()[name], encoding_of(name)
    return {
        "name": name,
        "place": place(encoding),
        "kind": kind(properties(scheme.scores, axes=scheme.axes)),
        "trained": trained(name),
        "cost": cost(encoding),
        "memory": memory(encoding),
        "cache": cache_properties(encoding_of(name, 128)).holds,
    }


def write_table(anew: bool) -> None:
    """Write the table: all measured anew, or what is there with the study as it is now."""
    study, known = longer(), {} if anew else cards.measured()
    rows = [
        (row(name) if anew else {"name": name, **known[name]}) | {"beyond L0": study[name]}
        for name in SCHEMES
    ]
    table = io.StringIO()
    writer = csv.DictWriter(table, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(TABLE, table.getvalue())


def page() -> str:
    """All cards in Markdown: an index by place, then one heading per scheme."""
    own = cards.measured()
    places: dict[str, list[str]] = {}
    for name in SCHEMES:
        places.setdefault(own[name]["place"], []).append(name)
    text = ["# Cards", "", "One card per scheme. `python -m pe_numpy card rope` prints one.", ""]
    for numbers, names in sorted(places.items()):
        words = " and ".join(cards.PLACES[n] for n in numbers.split("+"))
        links = " · ".join(f"[{n}](#{n})" for n in names)
        place_of = f"Place {words}" if numbers != "0" else "No place"
        text += [f"**{place_of}:** {links}", ""]
    text += [HEAD.format(LAYERS=LAYERS, D=D, H=H, K=K, clip=encoding_of("shaw").clip), ""]
    for name in SCHEMES:
        text += section(name)
    return "\n".join(text).rstrip() + "\n"


HEAD = """\
`make cards` writes this page from the docstrings, the detector (chapter 70), the cache laboratory
(chapter 63), the study (chapter 71) and the census (chapter 72). A test runs each line of code
beside the scheme itself.

- *code*: the code is for one head. `scores` are q @ k.T / sqrt(K), x are token vectors, and i and j
  are positions of queries and keys.
- *convention*: the convention of the function, or of all functions in its module.
- *kind*: the move (chapter 70), and what else the detector finds.
- *trained*: numbers in {LAYERS} layers.
- *cost*, *memory*: what a scheme adds to a layer without position, at place 1 only to the first
  layer. It is counted on this package's own code at D {D}, H {H}, K {K}, with clips and windows of
  {clip}, groups of 2 and chunks of {clip}. Lookups and copies are free, and memory is the most in
  use at one time. Attention is its two products, queries with keys and weights with values.
- *cache*: what the KV cache must contain beside the values.
- *beyond L0*: losses of small models, after the middle budget of training, at the trained length
  and at 8 times that. They are given for two languages, a Markov chain and a text. Scalings have
  s = L / L0, unless another number is given.
- *used by*: models of the census, which has one scheme per model, and some models that it lists
  under another scheme.
- *trap*: the first mistake that `check` knows by name."""


def section(name: str) -> list[str]:
    """A card as Markdown; its heading is the name, so that links find it."""
    facts = cards.facts(name)
    known_as = cards.title(name).partition(",")[0]
    text = [f"## {name}", "", f"**{escape(known_as)}**: {escape(facts.pop('what'))}.", ""]
    for part in ("equation", "code"):
        if part in facts:
            text += [f"```{'python' if part == 'code' else 'text'}", facts.pop(part), "```", ""]
    text += [f"- *{part}*: {escape(fact)}" for part, fact in facts.items()]
    return [*text, f"- *chapter*: {toc.link(SCHEMES[name].chapter)}", ""]


def escape(text: str) -> str:
    """Plain text in Markdown."""
    return re.sub(r"(`[^`]+`)|([*_$\\^`<\[\]|])", lambda m: m[1] or "\\" + m[2], text)


def main() -> None:
    """Write the table and the page."""
    anew = sys.argv[1:] != ["study"]
    write_table(anew)
    if anew:
        write_whole(passport.TABLE, passport.as_table(passport.measured()))
    write_whole(PAGE, page())


if __name__ == "__main__":
    main()
