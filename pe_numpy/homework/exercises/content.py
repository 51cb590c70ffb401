"""Exercises of positions that the text decides (chapter 37)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.homework.measured import dot, random
from pe_numpy.relative.cope import cope_bias
from pe_numpy.relative.forgetting import forgetting_bias

DTYPES = (np.float64, np.float32)


def _forgetting_cases(rng: np.random.Generator) -> Iterator[Case]:
    by_hand = np.cumsum(np.log([0.9, 0.5, 0.8, 0.25]))
    yield case(by_hand, by_hand)
    yield case(by_hand[-1:], by_hand)  # a cache
    for dtype in DTYPES:
        sums = np.cumsum(np.log(rng.uniform(0.1, 1, (2, 3, 7))), axis=-1).astype(dtype)
        yield case(sums[..., 2:], sums)


def _before(sums):
    """The sums without the token's own gate."""
    return np.concatenate([np.zeros_like(sums[..., :1]), sums[..., :-1]], axis=-1)


def _forgetting_score(f):
    def scores(q, k, i, j):  # the queries are those of the last keys
        sums = np.cumsum(-np.logaddexp(0, -k @ random(8)))
        return dot(q, k) + f(sums[-len(q) :], sums)

    return scores


FORGETTING = Exercise(
    "forgetting_bias",
    forgetting_bias,
    _forgetting_cases,
    (
        Mistake(
            "key minus query",
            "The sums fall: the query's minus the key's is what a key of the past has lost.",
            37,
            lambda q, k: -forgetting_bias(q, k),
        ),
        Mistake(
            "the same past and future",
            "There is no absolute value here: a causal mask hides the keys of the future.",
            37,
            lambda q, k: -np.abs(forgetting_bias(q, k)),
        ),
        Mistake(
            "the key's own gate counted",
            "A key keeps the product of the gates after it: its own has forgotten what came "
            "before it.",
            37,
            lambda q, k: q[..., :, None] - _before(k)[..., None, :],
        ),
        Mistake(
            "the product itself",
            "A bias is added to the scores: it is the logarithm of the product.",
            37,
            lambda q, k: np.exp(forgetting_bias(q, k)),
        ),
        Mistake(
            "summed once more",
            "The arguments are sums already.",
            37,
            lambda q, k: forgetting_bias(np.cumsum(q, axis=-1), np.cumsum(k, axis=-1)),
        ),
        Mistake(
            "keys down, queries across",
            "The rows are queries: (L, S).",
            37,
            lambda q, k: np.swapaxes(forgetting_bias(q, k), -1, -2),
        ),
    ),
    chapter=37,
    scores=_forgetting_score,
)


def _cope_cases(rng: np.random.Generator) -> Iterator[Case]:
    scores = np.log(np.array([[1.0, 1, 1], [3, 1, 1], [3, 1, 9]]))
    squares = np.arange(4.0)[:, None] ** 2
    yield case(np.array([[1.0], [1.0], [2.0]]), scores, squares, np.tri(3, dtype=bool))
    yield case(np.ones((1, 1)), np.full((1, 6), 2.0), squares)  # a cache; more than the table
    for dtype in DTYPES:
        q = rng.standard_normal((2, 3, 5, 4)).astype(dtype)
        scores = 2 * rng.standard_normal((2, 3, 5, 7)).astype(dtype)
        table = rng.standard_normal((6, 4)).astype(dtype)
        yield case(q, scores, table, np.tri(5, 7, 2, dtype=bool))
        padded = np.tri(5, 7, 2, dtype=bool) & (np.arange(7) < np.array([[[[7]]], [[[5]]]]))
        yield case(q, scores, table, padded)


def _cope(gate=None, order=-1, first=0.0, rounded=False, masked="before", scale=1.0):
    """CoPE with other gates, another direction of counting, or another look at the table."""

    def cope(q, gate_scores, table, mask=None):
        gates = 1 / (1 + np.exp(-gate_scores)) if gate is None else gate(gate_scores)
        if mask is not None and masked == "before":
            gates = gates * mask
        counts = np.cumsum(gates[..., ::order], axis=-1)[..., ::order] + first * gates
        if mask is not None and masked == "after":
            counts = counts * mask
        counts = np.clip(np.rint(counts) if rounded else counts, 0, len(table) - 1)
        products = q @ np.swapaxes(table, -1, -2)
        low, high = np.floor(counts).astype(int), np.ceil(counts).astype(int)
        share = counts - low
        z = np.take_along_axis(products, low, -1) * (1 - share)
        z = z + np.take_along_axis(products, high, -1) * share
        return (z * (scale if scale else 1 / math.sqrt(q.shape[-1]))).astype(q.dtype)

    return cope


def _cope_score(f):
    def scores(q, k, i, j):
        content = dot(q, k)
        return content + f(
            q, content, random(16, 8), np.tri(len(q), len(k), len(k) - len(q), dtype=bool)
        )

    return scores


COPE = Exercise(
    "cope_bias",
    cope_bias,
    _cope_cases,
    (
        Mistake(
            "masked after the sum",
            "Close the gates of masked keys before you add them up: else padding and the future "
            "are counted.",
            37,
            _cope(masked="after"),
        ),
        Mistake(
            "the mask not used",
            "Masked keys count nothing: their gates are 0.",
            37,
            _cope(masked="never"),
        ),
        Mistake(
            "counted from the first key",
            "The count begins at the query and goes back to the key: sum from j up to i.",
            37,
            _cope(order=1),
        ),
        Mistake(
            "the key itself not counted",
            "The sum has the key's own gate, too: with open gates the count is the distance plus "
            "one.",
            37,
            _cope(first=-1.0),
        ),
        Mistake(
            "rounded to the nearest row",
            "Between two rows of the table take both, in proportion: rounding has no slope.",
            37,
            _cope(rounded=True),
        ),
        Mistake(
            "gates by a softmax",
            "Each gate is a sigmoid by itself: gates of a softmax share one.",
            37,
            _cope(
                gate=lambda s: (
                    np.exp(s - s.max(-1, keepdims=True))
                    / np.exp(s - s.max(-1, keepdims=True)).sum(-1, keepdims=True)
                )
            ),
        ),
        Mistake(
            "scaled inside",
            "The result is q . e[p] as it is: the caller scales.",
            37,
            _cope(scale=0),
        ),
    ),
    chapter=37,
    scores=_cope_score,
)

EXERCISES = (FORGETTING, COPE)
