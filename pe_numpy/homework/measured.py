"""What a wrong function does, where no known mistake explains it: the detector's word.

An exercise may say how its function becomes a bare score(q, k, i, j). Then `properties` measures
the score of the wrong function and that of the right one; where they differ, one sentence says so,
that which helps most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Exercise, call, case
from pe_numpy.judging.properties import FAR, Properties, Scores, properties

# A difference must show with both: what rounding makes is below the first, or above the second.
TOLERANCES = (1e-3, 1e-9)
AWAY = "{}, {} and {}".format(*(i - 7 for i in FAR))  # the detector's distances to position 7
Measured = tuple[Properties, ...]  # with each of the tolerances


# ---- from a function to a score ------------------------------------------------------------------


def dot(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Scores (L, S) of queries and keys without positions."""
    return q @ k.T / math.sqrt(q.shape[-1])


def apart(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Distances (L, S) between positions."""
    return i[:, None] - j


def turning(turn: Callable) -> Scores:
    """Scores of queries and keys that one function turns."""
    return lambda q, k, i, j: dot(turn(q, i), turn(k, j))


def adding(bias: Callable) -> Scores:
    """Scores with a bias (1, L, S), a function of positions."""
    return lambda q, k, i, j: dot(q, k) + bias(i, j)[0]


def in_token(code: Callable) -> Scores:
    """Scores of tokens with a code (L, K) added before they are projected."""

    def scores(q: np.ndarray, k: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        W_q, W_k = random(2, q.shape[-1], q.shape[-1])
        return dot((q + code(i)) @ W_q, (k + code(j)) @ W_k)

    return scores


def random(*shape: int) -> np.ndarray:
    """Parameters, the same at every call."""
    return np.random.default_rng(0).standard_normal(shape)


def measure(exercise: Exercise, function: Callable, to: Callable | None = None) -> Measured | None:
    """Measure a function's score; None if it gives none, be it at the first positions alone."""
    if exercise.scores is None:
        return None

    def plain(*args: Any, **options: Any) -> np.ndarray:
        outcome = call(function, case(*args, **options), to)
        if len(outcome.results) != 1 or not np.isfinite(outcome.results[0]).all():
            raise ValueError(outcome.error or "no array of finite numbers")
        return outcome.results[0]

    scores, width, axes = exercise.scores(plain), exercise.width, exercise.axes
    try:
        with np.errstate(all="ignore"):
            return tuple(properties(scores, width, axes, tolerance=t) for t in TOLERANCES)
    except Exception:
        return None


# ---- the sentence --------------------------------------------------------------------------------


def explain(exercise: Exercise, yours: Measured | None) -> str:
    """What tells a wrong function's score from the right one, in a sentence; or nothing."""
    right = None if yours is None else measure(exercise, exercise.reference)
    if yours is None or right is None:
        return ""
    found = difference(right, yours)
    return f"{found} (chapter 70)." if found else ""


def difference(right: Measured, yours: Measured) -> str:
    """Choose the first of the differences that both tolerances show."""
    sure = {
        name
        for name in (*Properties._fields, "move")
        if all(len({getattr(found, name) for found in both}) == 1 for both in (right, yours))
    }
    a, b = right[0], yours[0]

    def turned(name: str, from_: Any, into: Any) -> bool:
        return name in sure and (getattr(a, name), getattr(b, name)) == (from_, into)

    if turned("pairwise", True, False):
        return (
            "A pair's score depends on other tokens or positions: it changes when the fourth of 8 "
            "tokens is left out, or all queries but one"
        )
    if turned("pairwise", False, True):
        return "The tokens between have no say: scores stay when the fourth of 8 tokens is left out"
    if all(map(_still, yours)) and not any(map(_still, right)):
        return "Position changes nothing: one content has one score at all places"
    if turned("prefix", True, False):
        return (
            "Old scores change as the sequence grows: the first 24 tokens have others among 96 "
            "than alone"
        )
    if "shift" in sure and a.shift != b.shift:
        return _shift(a, b)
    if "zero" in sure and a.zero != b.zero and "0" in (a.zero, b.zero):
        what = "is missing" if b.zero == "0" else "should not be there"
        return f"A term of the positions alone {what}: look at the scores of zeros"
    if turned("bias", True, False):
        return "What position adds depends on the contents, where it should be one number a pair"
    if turned("bias", False, True):
        return "What position adds does not depend on the contents, as it should"
    if turned("bilinear", True, False):
        return "The scores are no longer linear in the query and in the key"
    if "gain" in sure and "bilinear" in sure and b.bilinear:
        if a.gain is not None and b.gain is None:
            return "It does more than turn: lengths are not kept"
        if a.gain is None and a.bilinear and b.gain is not None:
            return "It turns alone: lengths are kept, which should change"
        if a.gain and b.gain and abs(a.gain - b.gain) > 1e-3:
            return f"It turns, and multiplies by {b.gain:.4g}, where {a.gain:.4g} is right"
    if turned("group", True, False):
        return "Turns do not add up: a turn by a, then one by b, is not that by a + b"
    return _far(a, b, turned) or _rank(a, b, sure)


def _still(found: Properties) -> bool:
    """Near, far and mirrored alike."""
    return found.rank == 1 and bool(found.mirror) and found.range == "constant"


def _shift(a: Properties, b: Properties) -> str:
    """One of them is relative, or both are in other steps."""
    if a.shift and b.shift:
        return (
            f"Scores stay when all positions move by {b.shift}, those of the right function when "
            f"they move by {a.shift}"
        )
    if b.shift:
        return (
            "This is a relative encoding, which it should not be: scores stay when all positions "
            f"move by {b.shift}"
        )
    if a.shift > 1:
        return f"Scores do not stay when all positions move by {a.shift}, as they should"
    if not math.isfinite(b.leak):
        return ""
    return (
        f"This is no relative encoding: scores change by up to {b.leak:.2g} of the largest when "
        "all positions move by 1 or 40"
    )


def _far(a: Properties, b: Properties, turned: Callable) -> str:
    """Past and future, and what becomes of scores with the distance."""
    if turned("mirror", False, True):
        return "Past and future are alike: places (9, 2) and (2, 9) have one score, not two"
    if turned("mirror", True, False):
        return "Past and future differ: places (9, 2) and (2, 9) should have one score"
    if turned("range", "saturated", "free"):
        return f"Scores go on changing at distances of {AWAY}, where they should be equal"
    if turned("range", "free", "saturated") or turned("range", "free", "constant"):
        return f"Distances of {AWAY} have one score, where there should be several"
    if turned("range", "saturated", "constant"):
        return f"A distance of 1 has the score of {AWAY}, where near and far should differ"
    if turned("range", "free", "finite") or turned("range", "saturated", "finite"):
        return f"There are no scores at distances of {AWAY}"
    if a.bias and turned("bounded", True, False):
        return f"Scores grow with the distance: one at {AWAY} is more than 1.5 times any near by"
    if turned("fall", "falls", "rises"):
        return "Scores of a token with itself rise at times, where they should fall with distance"
    return ""


def _rank(a: Properties, b: Properties, sure: set[str]) -> str:
    """How many patterns the positions make."""
    if "rank" not in sure or a.rank is None or b.rank is None or a.rank == b.rank:
        return ""
    if a.move == b.move == "turn" and {"move"} <= sure and b.rank < a.rank:
        return f"It turns {b.rank // 2} of {a.rank // 2} pairs"
    more = "more" if b.rank > a.rank else "fewer"
    return (
        f"Positions make {more} patterns than they should: the scores of one content, 32 queries "
        f"after 32 keys, have rank {b.rank}, not {a.rank}"
    )
