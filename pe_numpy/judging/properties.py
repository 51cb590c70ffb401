r"""What kind of encoding a score is, measured only from its numbers.

A scheme is a bare function score(q, k, i, j): queries (L, K) at positions i (L,) and keys (S, K) at
positions j (S,) in, scores (L, S) out. Nothing else is asked of it, so what comes out holds for any
code that computes such scores, and names cannot lie.

Source: the tests are those of algebra: invariance, linearity and the homomorphism of a group
(chapter 70 proves what each of them says).
Axes: L queries, S keys, K width of one head, A coordinates of a position.
Symbols: D = i - j; Phi(i, j), the (K, K) matrix of a bilinear score times sqrt(K).
Convention: only pairs of the past are compared, i at least j, except where a test says otherwise;
numbers are equal if they differ by less than 1e-9 of the largest.
Differs from the papers: they prove; this tries, at a few dozen positions up to 1,967, and can be
deceived by a function that is made for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks

Array = np.ndarray
Scores = Callable[[Array, Array, Array, Array], Array]

TOLERANCE = 1e-9  # of the largest score
WIDE = np.array([0, 1, 2, 3, 5, 8, 13, 21, 30, 34, 41, 47])
FAR = (200, 405, 811)  # their differences share no factor: a period would look like an end
NAME = "properties"


class Properties(NamedTuple):
    """What `properties` found; None where a test has no meaning or the positions have no score."""

    pairwise: bool  # a pair's score depends only on its two tokens and positions
    shift: int  # the least step of all positions that keeps the scores; 1: relative, 0: none does
    leak: float  # largest change, a share of the largest score, if positions move by 1 or by 40
    bias: bool | None  # position is a number added to the score: it does not depend on content
    bilinear: bool | None  # linear in q, and in k
    expansion: bool | None  # s(q, k) - s(q, 0) - s(0, k) + s(0, 0) is bilinear
    zero: str  # what is left without content: "0", "Toeplitz" or "not Toeplitz"
    gain: float | None  # Phi turns, and multiplies norms by this; None: it does more than turn
    group: bool | None  # Phi(a, 0) Phi(0, 0)^-1 Phi(b, 0) = Phi(a + b, 0)
    exchange: bool | None  # s(q, k, i, j) = s(k, q, j, i)
    mirror: bool | None  # s(q, k, i, j) = s(q, k, j, i)
    fall: str | None  # of a token with itself, on average: "falls", "flat" or "rises" at times
    range: str | None  # far away it is "free", "saturated", "constant" or has no score: "finite"
    bounded: bool | None  # far in the past at most 1.5 times the largest near by
    prefix: bool  # old rows stay as the sequence grows
    rank: int | None  # of the scores of one content, 32 queries after 32 keys

    @property
    def move(self) -> str:
        """One of the six moves, a variant of one, or "other", by at most five of the tests."""
        if not self.pairwise:
            return "path"
        if self.bias:
            return "none" if self.bilinear else "bias"
        if self.bilinear:
            if self.group:
                return "turn"
            return "index" if self.gain else "multiply"
        if not self.expansion:
            return "turn after a nonlinearity" if self.shift == 1 else "other"
        return "expand" if self.shift == 1 else "add"


def properties(
    scores: Scores, width: int = 8, axes: int = 1, seed: int = 0, tolerance: float = TOLERANCE
) -> Properties:
    """Measure what kind of encoding a function of queries, keys and positions is.

    Parameters
    ----------
    scores : function
        `scores(q, k, i, j)` with q (L, K), k (S, K), i (L,) and j (S,) gives (L, S). Scores in
        which other tokens have a say are asked only with L = S and i = j.
    width : int
        K, the width of the queries and keys that it is tried with.
    axes : int
        A, the number of coordinates of a position; above 1, positions are (L, A) and (S, A).
    seed : int
        Of the contents, random normal.
    tolerance : float
        Numbers are equal if they differ by less than this share of the largest.

    Returns
    -------
    Properties, a NamedTuple; its `move` names the move in one of ten words.

    Raises
    ------
    ValueError
        If the result of `scores` is not (L, S) in float64. What it raises itself at positions up to
        47 is passed on; at others, it has no score there.

    Notes
    -----
    Source: chapter 70, where each test is stated and proved to say what it says.

    Examples
    --------
    >>> def score(q, k, i, j):
    ...     content = np.outer(q @ [1, 1j], k @ [1, -1j])  # RoPE of one pair
    ...     return (content * np.exp(1j * (i[:, None] - j))).real / 2**0.5
    >>> found = properties(score, width=2)
    >>> found.shift, found.gain, found.group, found.move
    (1, 1.0, True, 'turn')
    """
    if not callable(scores) or isinstance(scores, type):
        raise ValueError(f"{NAME}: scores must be a function of q, k, i, j; got {scores!r}")
    width = checks.integer(NAME, "width", width)
    axes = checks.integer(NAME, "axes", axes)
    box = _Box(scores, width, axes, np.random.default_rng(seed), tolerance)
    pairwise = is_pairwise(box)
    shift, leak = _shift(box)
    found: dict[str, Any] = dict.fromkeys(Properties._fields)
    found |= {"pairwise": pairwise, "shift": shift, "leak": leak, "zero": _zero(box)}
    found["prefix"] = bool(box.try_to(_prefix))
    if pairwise:
        found |= {"bias": _bias(box), "bilinear": _bilinear(box, box)}
        found |= {"expansion": _bilinear(box, box.rest), "range": box.try_to(_range) or "finite"}
        found |= {"exchange": box.try_to(_exchange), "mirror": box.try_to(_mirror)}
        found |= {"fall": box.try_to(_fall), "bounded": box.try_to(_bounded)}
        found["rank"] = box.try_to(_rank)
    if found["bilinear"]:
        found |= {"gain": box.try_to(gain), "group": bool(box.try_to(group))}
    return Properties(**found)


class _Box:
    """A function of scores, with contents to try it."""

    def __init__(
        self, scores: Scores, width: int, axes: int, rng: np.random.Generator, tolerance: float
    ):
        self.scores, self.K, self.axes, self.tolerance = scores, width, axes, tolerance
        self.q, self.k, self.other = rng.standard_normal((3, 100, width))

    def __call__(self, q: Array, k: Array, i: Array, j: Array) -> Array:
        """Scores (L, S) of contents at places."""
        i, j = (self.at(x) if np.ndim(x) == 1 else x for x in (i, j))
        result = np.asarray(self.scores(q.copy(), k.copy(), i.copy(), j.copy()))
        if result.shape != (len(q), len(k)) or result.dtype != np.float64:
            raise ValueError(
                f"{NAME}: scores must be float64 of shape (L, S) = {(len(q), len(k))} for q "
                f"{q.shape} and k {k.shape}; got {result.dtype} of shape {result.shape}"
            )
        return result

    def at(self, numbers: ArrayLike, direction: int = 0) -> Array:
        """Positions: the numbers themselves, or with A axes points (n, A) on a line."""
        numbers = np.asarray(numbers)
        if self.axes == 1:
            return numbers
        return numbers[:, None] * (1 + (direction + np.arange(self.axes)) % self.axes)

    def rest(self, q: Array, k: Array, i: Array, j: Array) -> Array:
        """What is left of the scores without the terms of q alone, of k alone, and of neither."""
        none_q, none_k = np.zeros_like(q), np.zeros_like(k)
        with np.errstate(invalid="ignore"):  # where the future is masked
            alone = self(q, none_k, i, j) + self(none_q, k, i, j) - self(none_q, none_k, i, j)
            return self(q, k, i, j) - alone

    def one(self, i: int, j: int, q: Array | None = None, k: Array | None = None) -> float:
        """Score one pair."""
        q, k = (x[:1] if y is None else y for x, y in ((self.q, q), (self.k, k)))
        return float(self(q, k, np.array([i]), np.array([j]))[0, 0])

    def phi(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Phi (K, K) of a bilinear score at one pair of places (1,) or (1, A)."""
        unit = np.eye(self.K)
        return self(unit, unit, np.repeat(i, self.K, 0), np.repeat(j, self.K, 0)) * self.K**0.5

    def equal(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Whether numbers differ by less than the tolerance."""
        return _apart(a, b) < self.tolerance

    def try_to(self, measure: Callable) -> Any:
        """Measure, or give None if the function has no scores there."""
        try:
            return measure(self)
        except (ValueError, IndexError):
            return None


def _past(n: int) -> np.ndarray:
    return np.tri(n, dtype=bool)


def _apart(a: np.ndarray, b: np.ndarray, scale: np.ndarray | None = None) -> float:
    """Largest difference, as a share of the largest number; what is infinite must be so in both."""
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite]):
        return float("inf")
    a, b = a[finite], b[finite]
    scale = a if scale is None else scale
    largest = max(np.abs(scale).max(initial=0), np.abs(b).max(initial=0))
    return float(np.abs(a - b).max(initial=0) / (largest or 1))


def is_pairwise(s: _Box) -> bool:
    """Forget one token, or all queries but one: what the others say must not change."""
    places = np.array([0, 1, 2, 3, 5, 6, 7, 11])
    q, k, n = s.q[:8], s.k[:8], 8
    kept = np.arange(n) != 3
    whole = s(q, k, places, places)[kept][:, kept]
    part = s(q[kept], k[kept], places[kept], places[kept])
    last = whole[-1:]
    return s.equal(whole[_past(n - 1)], part[_past(n - 1)]) and s.equal(
        last, s(q[-1:], k[kept], places[-1:], places[kept])
    )


def _shift(s: _Box) -> tuple[int, float]:
    """Move all positions by a step, and by 40 steps."""
    n = len(WIDE)
    q, k, places = s.q[:n], s.k[:n], s.at(WIDE)

    def moved(step: int) -> Array:
        there = places + s.at(np.array([step]), 1)[0]
        return s(q, k, there, there)[_past(n)]

    def change(step: int) -> float:
        found = s.try_to(lambda _: _apart(here, moved(step)))
        return float("inf") if found is None else found

    here = moved(0)
    leak = max(change(1), change(40))
    for step in range(1, 49):
        if change(step) < s.tolerance and change(40 * step) < s.tolerance:
            return step, leak
    return 0, leak


def _bias(s: _Box) -> bool:
    """With one content at all places, another content must move all scores by one number."""
    places, past = np.arange(12), _past(12)
    one, other = (
        s(np.tile(q, (12, 1)), np.tile(k, (12, 1)), places, places)[past]
        for q, k in ((s.q[0], s.k[0]), (s.q[1], s.k[1]))
    )
    change = other - one
    return s.equal(change, np.full_like(change, change[0]))


def _bilinear(s: _Box, f: Callable) -> bool:
    """A sum of queries, and a sum of keys, has the sum of the scores."""
    n = 12
    q, k, other, places = s.q[:n], s.k[:n], s.other[:n], np.arange(n)
    past = _past(n)

    def at(q: Array, k: Array) -> Array:
        return f(q, k, places, places)[past]

    whole = at(q, k)
    return s.equal(at(q + other, k), whole + at(other, k)) and s.equal(
        at(q, k + other), whole + at(q, other)
    )


def _zero(s: _Box) -> str:
    """Scores without content."""
    n = 48
    nothing, places = np.zeros((n, s.K)), np.arange(n)
    scores = s(nothing, nothing, places, places)
    if np.abs(scores[_past(n)]).max() < s.tolerance:
        return "0"
    by_distance = all(
        _apart(d, np.full_like(d, d[0]), scores) < s.tolerance
        for d in (np.diagonal(scores, -D) for D in range(n))
    )
    return "Toeplitz" if by_distance else "not Toeplitz"


def gain(s: _Box) -> float | None:
    """All singular values of Phi are one number, at three pairs of places."""
    sizes = [
        np.linalg.svd(s.phi(s.at([i]), s.at([j])), compute_uv=False)
        for i, j in ((3, 3), (9, 2), (30, 1))
    ]
    first = float(sizes[0][0])
    same = s.equal(np.array(sizes), np.full((3, s.K), first))
    return round(first, 9) if same and first else None


def group(s: _Box) -> bool:
    """Going a and then b is going a + b."""
    start = s.at([0])
    origin = s.phi(start, start)
    for m, n in ((1, 1), (2, 3), (5, 40), (11, 19), (40, 60)):
        a, b = s.at([m], 0), s.at([n], 1)
        both = s.phi(a, start) @ np.linalg.solve(origin, s.phi(b, start))
        if not s.equal(both, s.phi(a + b, start)):
            return False
    return True


def _exchange(s: _Box) -> bool | None:
    """Queries and keys change their roles, with their places."""
    q, k, i, j = s.q[:9], s.k[:9], np.arange(9) + 3, np.arange(9)[::-1] * 2
    return _same_if_finite(s, s(q, k, i, j), s(k, q, j, i).T)


def _mirror(s: _Box) -> bool | None:
    """One pair at places (9, 2) and (2, 9)."""
    return _same_if_finite(s, np.array(s.one(9, 2)), np.array(s.one(2, 9)))


def _same_if_finite(s: _Box, a: np.ndarray, b: np.ndarray) -> bool | None:
    """None where the future is masked."""
    return s.equal(a, b) if np.isfinite(a).all() and np.isfinite(b).all() else None


def _fall(s: _Box) -> str:
    """Scores of 30 contents with themselves, on average, at D up to 91."""
    distances = np.array((*range(16), *range(16, 96, 5)))
    each = [
        s(np.tile(x, (len(distances), 1)), x[None], distances, np.array([0]))[:, 0]
        for x in s.q[:30]
    ]
    means = np.mean(each, axis=0)
    steps = np.diff(means) / np.abs(means).max()
    if np.abs(steps).max() < s.tolerance:
        return "flat"
    return "falls" if steps.max() < s.tolerance else "rises"


def _range(s: _Box) -> str:
    """One pair at D from 1 to 804."""
    near, *far = (s.one(i, 7) for i in (8, *FAR))
    if not s.equal(np.array(far), np.full(len(far), far[0])):
        return "free"
    return "constant" if s.equal(np.array(near), np.array(far[0])) else "saturated"


def _bounded(s: _Box) -> bool:
    """A small content with itself: far away at most 1.5 times the largest score near by."""
    x = s.q[:1] / 100
    near = np.abs(s(np.tile(x, (64, 1)), x, np.arange(64) + 7, np.array([7]))).max()
    return all(abs(s.one(i, 7, x, x)) <= 1.5 * near for i in FAR)


def _prefix(s: _Box) -> bool:
    """The first 24 of 96 tokens alone have the scores that they have among all."""
    few, all_of_them = np.arange(24), np.arange(96)
    short = s(s.q[:24], s.k[:24], few, few)
    long = s(s.q[:96], s.k[:96], all_of_them, all_of_them)[:24, :24]
    return s.equal(short[_past(24)], long[_past(24)])


def _rank(s: _Box) -> int:
    """Rank of the scores of one content, queries at 32 to 63, keys at 0 to 31."""
    q, k = (np.tile(x[0], (32, 1)) for x in (s.q, s.k))
    sizes = np.linalg.svd(s(q, k, np.arange(32) + 32, np.arange(32)), compute_uv=False)
    return int((sizes > s.tolerance * sizes[0]).sum())
