"""Exercises of chapter 38: offsets in windows of an image."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.relative.windows import (
    decomposed_scores,
    log_cpb_coordinates,
    offset_bias,
    offset_index,
)

DTYPES = (np.float64, np.float32)


# ---- the index ----------------------------------------------------------------------------------


def _index_cases(rng: np.random.Generator) -> Iterator[Case]:
    for height, width in ((1, 2), (2, 3), (3, 2), (4, 4), (1, 1), (5, 1)):
        yield case(height, width)
    for _ in range(9):
        yield case(*(int(side) for side in rng.integers(1, 13, 2)))


# ---- the bias -----------------------------------------------------------------------------------


def _bias_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[10.0], [20.0], [30.0]]), 1, 2)
    yield case(10 * np.arange(15.0)[:, None], 2, 3)
    for dtype in DTYPES:
        for height, width in ((2, 3), (3, 3), (4, 2), (1, 5)):
            rows = (2 * height - 1) * (2 * width - 1)
            yield case(rng.standard_normal((rows, 2)).astype(dtype), height, width)


# ---- two tables ---------------------------------------------------------------------------------


def _score_cases(rng: np.random.Generator) -> Iterator[Case]:
    two = np.array([0, 1])[:, None] - np.array([0, 1])
    q, zero = np.array([[1.0], [2.0], [3.0], [4.0]]), np.zeros((4, 1))
    tenths, ones = np.array([[0.1], [0.2], [0.3]]), np.array([[1.0], [2.0], [3.0]])
    yield case(q, zero, tenths, ones, two, two)
    # The same grid for queries and keys, or fewer keys than queries.
    grids = [(size, size) for size in ((2, 3), (3, 1), (3, 3))] + [((2, 3), (4, 1))]
    for dtype, some in ((np.float64, grids), (np.float32, grids), (np.float16, grids[:1])):
        for (h, w), (height, width) in some:
            y, x = (np.arange(a)[:, None] - np.arange(b) for a, b in ((h, height), (w, width)))
            q, *others = (
                rng.standard_normal(shape).astype(dtype)
                for shape in (
                    *((2, 3, h * w, 4), (2, 3, height * width, 4)),
                    *((2 * max(h, height) - 1, 4), (2 * max(w, width) - 1, 4)),
                )
            )
            yield case(q, *others, y, x)
            pairs = np.repeat(np.repeat(y, w, 0), width, 1), np.tile(x, (h, height))
            yield case(q[:, :, 1:], *others, *(d[1:] for d in pairs))
            if (height, width) == (2, 3):  # one query: two grids have 1 and 36 pairs
                yield case(q[:, :, :1], *others, *(d[:1] for d in pairs))


# ---- coordinates --------------------------------------------------------------------------------


def _coordinate_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(2, 2)
    side, *sides = (int(side) for side in rng.integers(3, 10, 3))
    for height, width in ((side, side), (2, sides[0]), sides):
        yield case(height, width)
        P = int(rng.integers(2, 10))
        for pretrained in (2, 8, (P, P + 3)):
            yield case(height, width, pretrained=pretrained)
    yield case(1, 4, 3)
    for n in range(4):
        height, width, *trained = (int(side) for side in rng.integers(2, 9, 4))
        yield case(height, width, pretrained=tuple(trained) if n % 2 else trained[0])


EXERCISES = (
    Exercise("offset_index", offset_index, _index_cases, chapter=38),
    Exercise("offset_bias", offset_bias, _bias_cases, chapter=38),
    Exercise("decomposed_scores", decomposed_scores, _score_cases, chapter=38),
    Exercise("log_cpb_coordinates", log_cpb_coordinates, _coordinate_cases, chapter=38),
)
