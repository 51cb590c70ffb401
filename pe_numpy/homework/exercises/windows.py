"""Exercises of chapter 38: offsets in windows of an image."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
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


def _index(row=lambda dy, h, w: (dy + h - 1) * (2 * w - 1), column=lambda dx, h, w: dx + w - 1):
    """The index with one of its two parts replaced."""

    def index(height, width):
        y, x = np.divmod(np.arange(height * width), width)
        dy, dx = y[:, None] - y, x[:, None] - x
        return row(dy, height, width) + column(dx, height, width)

    return index


INDEX = Exercise(
    "offset_index",
    offset_index,
    _index_cases,
    (
        Mistake(
            "2h - 1 for 2w - 1",
            "One step down skips a row of the table, which is 2w - 1 long. A square hides it.",
            38,
            _index(row=lambda dy, h, w: (dy + h - 1) * (2 * h - 1)),
        ),
        Mistake(
            "the factor forgotten",
            "Offsets of rows and columns need an index for each pair: multiply one by 2w - 1.",
            38,
            _index(row=lambda dy, h, w: dy + h - 1),
        ),
        Mistake(
            "2w for 2w - 1",
            "There are 2w - 1 offsets of columns, from -(w - 1) to w - 1.",
            38,
            _index(row=lambda dy, h, w: (dy + h - 1) * 2 * w),
        ),
        Mistake(
            "key minus query",
            "An offset is query minus key: the first query reads the highest index at itself.",
            38,
            lambda height, width: offset_index(height, width).T,
        ),
        Mistake(
            "columns before rows",
            "Pixels are counted row by row, and dy takes the large steps.",
            38,
            _index(
                row=lambda dy, h, w: dy + h - 1, column=lambda dx, h, w: (dx + w - 1) * (2 * h - 1)
            ),
        ),
        Mistake(
            "offsets not shifted to 0",
            "The least offset, -(h - 1), reads the first row: add h - 1, and w - 1.",
            38,
            _index(row=lambda dy, h, w: dy * (2 * w - 1), column=lambda dx, h, w: dx),
        ),
    ),
    chapter=38,
)


# ---- the bias -----------------------------------------------------------------------------------


def _bias_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[10.0], [20.0], [30.0]]), 1, 2)
    yield case(10 * np.arange(15.0)[:, None], 2, 3)
    for dtype in DTYPES:
        for height, width in ((2, 3), (3, 3), (4, 2), (1, 5)):
            rows = (2 * height - 1) * (2 * width - 1)
            yield case(rng.standard_normal((rows, 2)).astype(dtype), height, width)


def _picture(table, height, width):
    return np.swapaxes(table, 0, 1).reshape(-1, 2 * height - 1, 2 * width - 1)


def _view_without_a_turn(table, height, width):
    """Strides that are not negated: query plus key."""
    picture = _picture(table, height, width)
    y, x = np.divmod(np.arange(height * width), width)
    return picture[:, y[:, None] + y, x[:, None] + x]


BIAS = Exercise(
    "offset_bias",
    offset_bias,
    _bias_cases,
    (
        Mistake(
            "key minus query",
            "An offset is query minus key: the table is read from the other end.",
            38,
            lambda table, height, width: offset_bias(table[::-1], height, width),
        ),
        Mistake(
            "query plus key",
            "Going from one key to the next, the view steps back in the table: two strides are "
            "negated.",
            38,
            _view_without_a_turn,
        ),
        Mistake(
            "heads last",
            "The heads come first, as in scores: (H, hw, hw).",
            38,
            lambda table, height, width: np.moveaxis(offset_bias(table, height, width), 0, -1),
        ),
        Mistake(
            "the table laid out with rows and columns exchanged",
            "The table has 2h - 1 rows of 2w - 1 offsets: reshape it to (H, 2h - 1, 2w - 1).",
            38,
            lambda table, height, width: offset_bias(
                np.swapaxes(
                    table.reshape(2 * width - 1, 2 * height - 1, -1).astype(table.dtype), 0, 1
                ).reshape(table.shape),
                height,
                width,
            ),
        ),
    ),
    chapter=38,
)


# ---- two tables ---------------------------------------------------------------------------------


def _score_cases(rng: np.random.Generator) -> Iterator[Case]:
    two = np.array([0, 1])[:, None] - np.array([0, 1])
    q, zero = np.array([[1.0], [2.0], [3.0], [4.0]]), np.zeros((4, 1))
    tenths, ones = np.array([[0.1], [0.2], [0.3]]), np.array([[1.0], [2.0], [3.0]])
    yield case(q, zero, tenths, ones, two, two)
    for dtype in DTYPES:
        for height, width in ((2, 3), (3, 1), (3, 3)):
            y, x = (np.arange(n)[:, None] - np.arange(n) for n in (height, width))
            q, k = rng.standard_normal((2, 2, 3, height * width, 4)).astype(dtype)
            row = rng.standard_normal((2 * height - 1, 4)).astype(dtype)
            column = rng.standard_normal((2 * width - 1, 4)).astype(dtype)
            yield case(q, k, row, column, y, x)
            rows, columns = np.divmod(np.arange(height * width), width)
            pairs = rows[:, None] - rows, columns[:, None] - columns
            yield case(q[:, :, 1:], k, row, column, *(d[1:] for d in pairs))
            if height * width == 6:  # one query: two grids have 1 and 36 pairs
                yield case(q[:, :, :1], k, row, column, *(d[:1] for d in pairs))


def _position(q, k, row, column, y, x):
    return decomposed_scores(q, 0 * k, row, column, y, x)


def _root(q):
    return q.dtype.type(math.sqrt(q.shape[-1]))


DECOMPOSED = Exercise(
    "decomposed_scores",
    decomposed_scores,
    _score_cases,
    (
        Mistake(
            "the position terms scaled",
            "Only q . k is divided by the root of K; in q . R the query stays as it is.",
            38,
            lambda q, k, *rest: (
                decomposed_scores(q, k, *rest) - (1 - 1 / _root(q)) * _position(q, k, *rest)
            ),
        ),
        Mistake(
            "not scaled",
            "Divide q . k by the root of K.",
            10,
            lambda q, k, *rest: decomposed_scores(q, k * _root(q), *rest),
        ),
        Mistake(
            "key minus query",
            "The last row of a table belongs to the largest distance, query minus key.",
            38,
            lambda q, k, row, column, y, x: decomposed_scores(q, k, row[::-1], column[::-1], y, x),
        ),
        Mistake(
            "the distance as index, without its shift",
            "The distance d reads row d + n - 1 of 2n - 1; a negative index reads from the end.",
            38,
            lambda q, k, row, column, y, x: decomposed_scores(
                q,
                k,
                np.roll(row, len(row) // 2, axis=0),
                np.roll(column, len(column) // 2, axis=0),
                y,
                x,
            ),
        ),
        Mistake(
            "the columns forgotten",
            "Two tables: one of rows and one of columns; both terms are added.",
            38,
            lambda q, k, row, column, y, x: decomposed_scores(q, k, row, 0 * column, y, x),
        ),
        Mistake(
            "the keys' products with the tables",
            "The query meets both vectors: q . R + q . C.",
            38,
            lambda q, k, row, column, y, x: (
                decomposed_scores(q, k, 0 * row, 0 * column, y, x)
                + np.swapaxes(_position(k, q, row[::-1], column[::-1], y.T, x.T), -1, -2)
            ),
        ),
    ),
    chapter=38,
)


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


def _coordinates(size=lambda d, P: np.log2(1 + 8 * d / (P - 1)) / 3, keep=True, order="ij"):
    """The formula with one part of it replaced."""

    def coordinates(height, width, pretrained=None):
        sides = np.array([height, width])
        P = sides if pretrained is None or not keep else np.broadcast_to(pretrained, 2)
        d = [np.arange(1 - n, n) for n in sides]
        u = [np.sign(a) * size(np.abs(a), p) for a, p in zip(d, P, strict=True)]
        return np.stack(np.meshgrid(*u, indexing=order), axis=-1).reshape(-1, 2)

    return coordinates


COORDINATES = Exercise(
    "log_cpb_coordinates",
    log_cpb_coordinates,
    _coordinate_cases,
    (
        Mistake(
            "divided by the window at hand",
            "P is the window of the pretraining: an offset keeps its coordinates when the window "
            "grows.",
            38,
            _coordinates(keep=False),
        ),
        Mistake(
            "divided by P for P - 1",
            "The largest offset in a window of P is P - 1.",
            38,
            _coordinates(lambda d, P: np.log2(1 + 8 * d / P) / 3),
        ),
        Mistake(
            "scaled to reach 1",
            "The authors' code divides by log2(8), though the logarithm reaches log2(9): the "
            "coordinates reach 1.056642.",
            38,
            _coordinates(lambda d, P: np.log2(1 + 8 * d / (P - 1)) / math.log2(9)),
        ),
        Mistake(
            "the natural logarithm over 3",
            "The logarithm has base 2; 3 is log2(8).",
            38,
            _coordinates(lambda d, P: np.log(1 + 8 * d / (P - 1)) / 3),
        ),
        Mistake(
            "evenly spaced",
            "The spacing is logarithmic: log2(1 + 8 abs(d)/(P - 1)).",
            38,
            _coordinates(lambda d, P: 8 * d / (P - 1) / 3),
        ),
        Mistake(
            "rows in the order of columns",
            "The rows follow offset_index: dy takes the large steps.",
            38,
            _coordinates(order="xy"),
        ),
    ),
    chapter=38,
)

EXERCISES = (INDEX, BIAS, DECOMPOSED, COORDINATES)
