"""Exercises of positions that the text decides (chapter 37)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.relative.cope import cope_bias
from pe_numpy.relative.forgetting import forgetting_bias

DTYPES = (np.float64, np.float32, np.float16)


def _forgetting_cases(rng: np.random.Generator) -> Iterator[Case]:
    by_hand = np.cumsum(np.log([0.9, 0.5, 0.8, 0.25]))
    yield case(by_hand, by_hand)
    yield case(by_hand[-1:], by_hand)  # a cache
    yield case(400 * by_hand, 400 * by_hand)  # the products are 0 as floats
    for dtype in DTYPES:
        sums = np.cumsum(np.log(rng.uniform(0.1, 1, (2, 3, 7))), axis=-1).astype(dtype)
        yield case(sums[..., 2:], sums)


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
        yield case(q, scores, table)
        padded = np.tri(5, 7, 2, dtype=bool) & (np.arange(7) < np.array([[[[7]]], [[[5]]]]))
        yield case(q, scores, table, padded)


EXERCISES = (
    Exercise("forgetting_bias", forgetting_bias, _forgetting_cases, chapter=37),
    Exercise("cope_bias", cope_bias, _cope_cases, chapter=37),
)
