r"""A passport of a score that a reader writes: what the detector of chapter 70 finds, in words.

A reader writes `score(q, k, i, j)` of one query q (K,) at position i and one key k (K,) at j. It is
called pair by pair, so that `properties` can ask for whole tables, as of any other scheme.
What a cache must hold is found from the scores, too. A key can be written once, with its position
inside, if scores are dot products P(q, i) . R(k, j). Then late queries and early keys decide all:

Equation: s(x, y) = s(x, B) s(A, B)^+ s(A, y), early keys B, late queries A, all others between.
Source: our own; the detector is `pe_numpy.judging.properties` (chapter 70).
Axes: L queries, S keys, K = 8 width of a query and of a key.
Convention: a query sees itself and what is before it; scores are real and finite there.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import inspect
import io
import math
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pe_numpy.judging.properties import Array, Properties, Scores, properties
from pe_numpy.judging.schemes import SCHEMES, every_scheme

FILE = "<score>"
TABLE = Path(__file__).with_name("passports.csv")
WIDTH = 8
FORM = "def score(q, k, i, j):"
STATE = "draw random numbers and tables once, above the function, and let it change nothing"

WAVES = """\
import numpy as np

# a frequency for each of four pairs
omega = 10000.0 ** -np.arange(0, 1, 0.25)

"""
TURN = """\
def turn(x, angle):
    pairs = x[0::2] + 1j * x[1::2]
    return pairs * np.exp(1j * angle * omega)

def score(q, k, i, j):
    pairs = turn(q, {q}) * turn(k, {k}).conj()
    return pairs.real.sum() / 8**0.5
"""
EXAMPLES = {
    "no position": "def score(q, k, i, j):\n    return q @ k / 8**0.5\n",
    "RoPE": WAVES + TURN.format(q="i", k="j"),
    "RoPE with a wrong sign": WAVES + TURN.format(q="i", k="-j"),
    "ReRoPE: a distance that ends at 16": WAVES + TURN.format(q="min(i - j, 16)", k="0"),
    "ALiBi": "def score(q, k, i, j):\n    return q @ k / 8**0.5 - 0.25 * abs(i - j)\n",
    "sinusoids, added to q and k": WAVES
    + """\
def wave(position):
    angles = position * omega
    return np.concatenate([np.sin(angles), np.cos(angles)])

def score(q, k, i, j):
    return (q + wave(i)) @ (k + wave(j)) / 8**0.5
""",
}


class Refused(ValueError):
    """A function that cannot be measured, and why, in a sentence for its author."""


class Held(NamedTuple):
    """What scores read of a key: itself, its position, and in how many components both fit."""

    key: bool
    position: bool
    components: int | None  # of a key with its position inside; None: it must stay apart


# ---- a function as it was typed ------------------------------------------------------------------


class Written:
    """The function `score` of a text, called pair by pair."""

    def __init__(self, text: str) -> None:
        self.lines, self.calls = text.splitlines(), 0
        names: dict[str, Any] = {"np": np, "__name__": "score"}
        try:
            exec(compile(text, FILE, "exec"), names)
        except SyntaxError as error:
            raise Refused(
                f"this is not Python: {error.msg}{self.line(error.lineno or 0)}"
            ) from error
        except (Exception, SystemExit) as error:
            raise Refused(self.failed(error)) from error
        self.score = names.get("score")
        if not callable(self.score):
            raise Refused(f"there is no function named score: begin with `{FORM}`")
        try:
            inspect.signature(self.score).bind(0, 0, 0, 0)
        except TypeError as error:
            got = f"score{inspect.signature(self.score)}"
            raise Refused(
                f"score must take a query, a key and two positions, `{FORM}`; this is `{got}`"
            ) from error
        except ValueError:
            pass  # a function of NumPy does not say what it takes

    def line(self, number: int) -> str:
        """A line of the text, as an error shows it."""
        known = 1 <= number <= len(self.lines)
        return f", in line {number}: `{self.lines[number - 1].strip()}`" if known else ""

    def failed(self, error: BaseException) -> str:
        """What an error says, and where it arose."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame.lineno or 0 for frame in frames if frame.filename == FILE]
        words = f"{type(error).__name__}: {error}".removesuffix(": ")
        return f"Python says {words}{self.line(own[-1] if own else 0)}"

    def __call__(self, q: Array, k: Array, i: int, j: int) -> float:
        """Give one score; say what is wrong with it, and where."""
        self.calls += 1
        where = f"at i = {i}, j = {j}"
        try:
            number = one_number(self.score(q.copy(), k.copy(), i, j), where)  # type: ignore[misc]
        except Refused:
            raise
        except (Exception, SystemExit) as error:
            raise Refused(f"{self.failed(error)} ({where})") from error
        if math.isfinite(number):
            return number
        if not (q.any() and k.any()):
            hint = "Vectors of zeros are tried as well: add a small number to a norm that divides."
        elif i == j:
            hint = "A query sees its own key, so i - j can be 0."
        else:
            hint = "A mask is not part of a score: only keys after the query may be hidden."
        raise Refused(
            f"score gives {number} {where}. It must be finite wherever j is at most i. {hint}"
        )


def one_number(found: Any, where: str) -> float:
    """What a function gave, as a number."""
    if isinstance(found, float | int):
        return float(found)
    kinds = list | tuple | complex | np.generic | np.ndarray
    array = np.asarray(found) if isinstance(found, kinds) else None
    if array is None or array.dtype.kind not in "biufc":
        kind = f"a {type(found).__name__}"
        got, out = ("None", "is a `return` missing?") if found is None else (kind, "return a float")
    elif array.size != 1:
        got = f"an array of shape {array.shape}"
        out = "`q @ k` is one number, and `q * k` has one for each component"
    elif array.dtype.kind == "c":
        got, out = "a complex number", "take its real part, `.real`"
    else:
        return float(array.item())
    raise Refused(f"score must return one number; {where} it returns {got}: {out}")


def of_pairs(score: Callable[[Array, Array, int, int], float]) -> Scores:
    """Make the function of whole tables that `properties` asks for from one of a single pair.

    Parameters
    ----------
    score : function
        `score(q, k, i, j)` with q (K,) and k (K,) at positions i and j gives a number.

    Returns
    -------
    Function of q (L, K), k (S, K), i (L,) and j (S,) that gives scores (L, S). Of a text with
    itself, i = j, only the past is computed; the rest is 0, at which the detector does not look.

    Notes
    -----
    Source: our own.

    Examples
    --------
    >>> rotated = of_pairs(lambda q, k, i, j: (q[0] * k[0] + q[1] * k[1]) * np.cos(i - j)
    ...                    + (q[0] * k[1] - q[1] * k[0]) * np.sin(i - j))
    >>> properties(rotated, width=2).move
    'turn'
    """

    def scores(q: Array, k: Array, i: Array, j: Array) -> Array:
        text = np.array_equal(i, j)
        found = np.zeros((len(q), len(k)))
        for a, m in enumerate(i.tolist()):
            for b, n in enumerate(j.tolist()):
                if n <= m or not text:
                    found[a, b] = score(q[a], k[b], m, n)
        return found

    return scores


# ---- what a cache must hold ----------------------------------------------------------------------


def held(scores: Scores, width: int = WIDTH) -> Held:
    """Find what of a key the scores read, and whether a key can be written once and for all.

    Positions up to 47 are tried, which the detector needs as well.

    Examples
    --------
    >>> held(lambda q, k, i, j: q @ k.T)
    Held(key=True, position=False, components=8)
    >>> held(lambda q, k, i, j: q @ k.T - np.minimum(np.abs(i[:, None] - j), 4.0))
    Held(key=True, position=True, components=None)
    """
    n = 2 * width + 4  # of each, two at a position
    early, between, late = np.arange(n) // 2, np.arange(n // 2, 48 - n // 2), np.arange(n) // 2
    late = late + 48 - n // 2
    A, B, x, y = np.random.default_rng(0).standard_normal((4, 48, width))
    core = scores(A[:n], B[:n], late, early)
    same = np.repeat(B[:1], 48, axis=0)
    places = scores(A[:1], same, np.array([47]), np.arange(48))
    contents = scores(A[:1], B, np.array([47]), np.full(48, 40))
    key, position = (np.ptp(one) > 1e-9 * np.abs(one).max() for one in (contents, places))
    m = len(between)
    left, right = scores(x[:m], B[:n], between, early), scores(A[:n], y[:m], late, between)
    whole, past = scores(x[:m], y[:m], between, between), np.tri(m, dtype=bool)
    sizes = np.linalg.svd(core, compute_uv=False)
    rank = int((sizes > 1e-9 * sizes[0]).sum())
    error = np.abs(left @ np.linalg.pinv(core, rcond=1e-9) @ right - whole)[past].max()
    fits = error <= 1e-6 * np.abs(whole[past]).max()
    return Held(bool(key), bool(position), rank if fits else None)


# ---- whom it resembles ---------------------------------------------------------------------------

TESTS = {  # fields of `Properties` in which a function of pairs can differ, and their weights
    "shift": (4, "whether it is relative"),
    "bias": (2, "whether position is only an added number"),
    "bilinear": (2, "whether it is linear in q and in k"),
    "expansion": (2, "whether it is so without the terms of one side"),
    "zero": (2, "what remains without content"),
    "gain": (2, "whether it only rotates"),
    "group": (2, "whether two steps are one longer step"),
    "range": (2, "what happens far away"),
    "bounded": (2, "whether it stays bounded"),
    "exchange": (1, "whether q and k may change places"),
    "mirror": (1, "whether past and future are alike"),
    "fall": (1, "whether it falls with the distance"),
    "rank": (0, "the rank"),  # it parts only ties of rotations: else a table's numbers decide
}


def measured() -> dict[str, Properties]:
    """Give what the detector finds of each scheme of the book that is a function of pairs.

    Left out are those whose positions have axes, whose scores other tokens or the length of the
    text decide, and rotated values, which leave no trace in scores.
    """
    schemes = every_scheme().items()
    names = [name for name, one in schemes if one.axes == 1 and SCHEMES[name].place < 4]
    found = {name: properties(one.scores) for name, one in schemes if name in names}
    return {name: one for name, one in found.items() if one.pairwise and one.prefix}


def as_table(found: Mapping[str, Properties]) -> str:
    """Write what was measured, as `passports.csv` has it."""
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["name", *TESTS])
    for name, one in found.items():
        own = {test: getattr(one, test) for test in TESTS}
        own["gain"] = own["gain"] and round(own["gain"], 6)
        own["rank"] = own["rank"] if one.move == "turn" else ""
        rows.writerow([name, *own.values()])
    return file.getvalue()


@functools.cache
def kept() -> dict[str, dict[str, Any]]:
    """Read what was measured of each scheme: the fields of `TESTS`."""
    known = {"True": True, "False": False, "": None}
    kinds: dict[str, Callable[[str], Any]] = {"shift": int, "rank": int, "gain": float}
    with TABLE.open(encoding="utf-8") as file:
        return {
            row.pop("name"): {
                test: known[word] if word in known else kinds.get(test, str)(word)
                for test, word in row.items()
            }
            for row in csv.DictReader(file)
        }


def unlike(found: Properties, row: Mapping[str, Any]) -> list[str]:
    """Tests in which a function differs from a scheme; a gain counts as one or as none."""

    def seen(test: str, value: Any) -> Any:
        return value is not None if test == "gain" else value

    return [t for t, (w, _) in TESTS.items() if w and seen(t, getattr(found, t)) != seen(t, row[t])]


def nearest(found: Properties) -> list[str]:
    """Names of the schemes from which a function differs least, the first of them in the lead.

    The operation decides first, then the weights of the tests that differ. Of rotations that agree
    in all of them, the rank tells which rotate only a part, and the gain which are YaRN.
    """

    def apart(name: str) -> tuple[bool, int, int]:
        row = kept()[name]
        weight = sum(TESTS[test][0] for test in unlike(found, row))
        other = found.move == "turn" and found.rank != row["rank"]
        other += abs((found.gain or 0) - (row["gain"] or 0)) > 1e-5
        return found._replace(**row).move != found.move, weight, int(other)

    least = min(map(apart, kept()))
    return [name for name in kept() if apart(name) == least]


# ---- in words -----------------------------------------------------------------------------------

MOVES = {
    "none": ("neither", "Position does not enter the score."),
    "bias": ("adds", "Position is a number that is added to the score, whatever the content."),
    "add": (
        "adds",
        "Position joins the query or the key as a vector, so the score has terms of content with "
        "position.",
    ),
    "expand": ("adds", "Terms of the query or of the key with the distance are added."),
    "turn": ("rotates", "Each step multiplies by one and the same matrix, which is a rotation."),
    "index": (
        "rotates",
        "But two steps are not one longer step: distances or positions are changed before the "
        "rotation.",
    ),
    "multiply": ("multiplies", "Position multiplies the content, and does more than rotate it."),
    "turn after a nonlinearity": (
        "rotates",
        "It is relative and not linear, as if it rotates after a nonlinearity.",
    ),
    "other": ("neither", "It is none of the book's operations: neither linear nor relative."),
}
MORE_THAN_ROTATES = (
    "multiplies",
    "Each step multiplies by one and the same matrix, which does more than rotate: lengths change.",
)
FAR = {
    "free": ("still changes", "Far away, the score of a key still depends on the distance."),
    "saturated": ("no longer changes", "From some distance on, the score of a key is constant."),
    "constant": ("always the same", "A key has the same score for every later query."),
    "finite": (
        "no score",
        "At positions up to 811, which are tried, there is no score, as if a table ends.",
    ),
}


def passport(text: str) -> dict[str, Any]:
    """Measure the function `score` of a text, and say what it is; what is wrong, under "error".

    Parameters
    ----------
    text : str
        Python, which defines `score(q, k, i, j)`: the score of a query q and a key k of 8
        components at the positions i and j, whole numbers from 0. It may use `np` and import.

    Returns
    -------
    Dictionary with "rows", by question the answer in a word or two and in a sentence; "notes", a
    list of sentences; "like", the nearest schemes with their names, labels and chapters; "unlike",
    in words, the tests in which the first of them differs; and "calls", how often the function was
    called.

    Notes
    -----
    Source: chapter 70. The text is executed: it can do all that Python can.

    Examples
    --------
    >>> found = passport("def score(q, k, i, j): return q @ k / 8**0.5 - abs(i - j) / 4")
    >>> {question: word for question, (word, _) in found["rows"].items()}["Rotates or adds"]
    'adds'
    >>> found["like"][0]["label"], found["unlike"]
    ('ALiBi', [])
    >>> passport("def score(q, k, i, j): return q * k")["error"].partition(": ")[2]
    '`q @ k` is one number, and `q * k` has one for each component'
    """
    if not isinstance(text, str):
        raise ValueError(
            f"passport: text must be a string of Python; got {type(text).__name__}. "
            "Of a function, `inspect.getsource` gives it"
        )
    quiet = contextlib.redirect_stdout(io.StringIO())
    try:
        with quiet, warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            score = Written(text)
            scores = of_pairs(score)
            steady(score)
            found = properties(scores, WIDTH)
            cache, opposed = held(scores), opposite(scores)
    except ValueError as error:
        return {"error": str(error)}
    apart = found.shift == 1 and not cache.position  # position does not enter at all
    names = ["none"] if apart else nearest(found)
    return {
        "rows": in_words(found, cache),
        "notes": notes(found, opposed),
        "like": [
            {"name": n, "label": SCHEMES[n].label, "chapter": SCHEMES[n].chapter} for n in names
        ],
        "unlike": [TESTS[test][1] for test in unlike(found, kept()[names[0]])],
        "calls": score.calls,
    }


def steady(score: Written) -> None:
    """Refuse a function that gives two numbers for one input."""
    q, k = np.random.default_rng(0).standard_normal((2, WIDTH))
    for i, j in ((0, 0), (1, 0), (47, 3)):
        one, other = (score(q, k, i, j) for _ in range(2))
        if one != other:
            raise Refused(f"score gives {one:.6g} and then {other:.6g} for the same input: {STATE}")


def opposite(scores: Scores) -> bool:
    """Whether scores stay if a query moves on and its key back, as if they turn by i + j."""
    q, k = np.random.default_rng(0).standard_normal((2, 9, WIDTH))
    i, j = np.arange(30, 39), np.arange(9) + 8
    here, there = scores(q, k, i, j), scores(q, k, i + 5, j - 5)
    return bool(np.allclose(here, there, rtol=0, atol=1e-9 * np.abs(here).max()))


def in_words(found: Properties, cache: Held) -> dict[str, tuple[str, str]]:
    """Answer each question in a word or two, and in a sentence."""
    move = MOVES[found.move]
    if found.shift == 1 and not cache.position:
        move = MOVES["none"]
    elif found.move == "turn" and found.gain is None:
        move = MORE_THAN_ROTATES
    return {
        "Relative": relative(found),
        "Rotates or adds": move,
        "A cache must hold": holds(found, cache),
        "Far away": far(found),
    }


def relative(found: Properties) -> tuple[str, str]:
    """Whether only the distance counts."""
    if found.shift == 1:
        return "yes", "Scores depend on i - j: they stay if both positions move."
    if found.shift:
        return (
            f"in steps of {found.shift}",
            f"Scores stay if both positions move by {found.shift}, but not if they move by 1.",
        )
    if found.leak == float("inf"):
        return (
            "unknown",
            "There is no score if both positions move by 40. Give a table at least 96 rows.",
        )
    share = f"{100 * found.leak:.2g}" if found.leak < 1 else f"{100 * found.leak:.0f}"
    return (
        "almost" if found.leak < 1e-3 else "no",
        f"If both positions move by 1 or by 40, scores change by up to {share}% of the largest.",
    )


def holds(found: Properties, cache: Held) -> tuple[str, str]:
    """What a cache must hold beside the values."""
    if not cache.key:
        place = "nothing but a bias decides" if cache.position else "all keys are alike"
        return "no keys", f"The score does not read the key: {place}."
    if not cache.position:
        return "keys as they are written", "The score does not read the position of the key."
    n = cache.components
    if n is not None and n <= WIDTH:
        rotated = found.move == "turn" and found.gain
        kind = "rotated keys" if rotated else "keys, their positions inside"
        return kind, "A key is prepared once, for its own position, and serves every later query."
    longer = ""
    if n is not None:
        size = f"Keys of {n} components instead of {WIDTH}" if found.shift == 1 else "Longer keys"
        longer = f" {size}, with their positions inside, would serve as well."
    return (
        "keys as they are written, and positions",
        f"Each score needs the position of its key.{longer}",
    )


def far(found: Properties) -> tuple[str, str]:
    """What happens far away."""
    word, sentence = FAR[found.range or "finite"]
    if found.range == "free" and found.bounded is False:
        sentence += " In size it exceeds all scores near by."
    if found.fall == "falls":
        sentence += " On average it falls at every step."
    return word, sentence


def notes(found: Properties, opposed: bool) -> list[str]:
    """What the author may not have meant."""
    said = []
    if opposed and not found.shift:
        said.append("The score depends on i + j: one of the two signs is wrong.")
    elif not found.shift and found.leak < 1e-3:
        said.append("All but a small term is relative: is a position used by itself?")
    if found.gain and abs(found.gain - WIDTH**0.5) < 1e-9:
        said.append(f"Scores are √{WIDTH} times as large as in the book: 1/√K is missing.")
    return said
