"""Exercises of positions in servers: packed rows, trees of drafts, parts of the keys, ranks
(chapter 66).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.transformer.serving import (
    document_mask,
    merge_attention,
    pack,
    partial_attention,
    tree_mask,
    tree_positions,
    zigzag,
)

DTYPES = (np.float64, np.float32)


def _pack_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([3, 2]))
    yield case(np.array([4]))
    yield case(np.array([2, 0, 3, 0]))  # two documents without a token
    yield case(np.array([1, 1, 1]))
    for n in range(2, 12):
        yield case(rng.integers(0, 5, n))


def _document_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 0, 1]), np.array([0, 0, 1]))
    yield case(np.array([2]), np.array([0, 0, 1, 2, 2]))  # a cache
    yield case(np.array([[1, -1], [0, -1]]), np.array([[0, 1, -1], [0, -1, -1]]))  # padding
    for n in range(10):
        q = rng.integers(-1, 3, (2, 3, n + 2)[n % 3 :])
        yield case(q, rng.integers(-1, 3, (3, n % 4 + 2)[n % 2 :]))


def _tree(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.array([rng.integers(-1, node) for node in range(n)])


def _tree_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-1, 0, 0, 1]))
    yield case(np.array([-1, 0, 1, 2]))  # one branch
    yield case(np.array([-1, -1, 0, 1, 1, 3]))  # two roots
    yield case(np.array([-1]))
    for n in range(4, 14):
        yield case(_tree(rng, n))


def _parts(rng: np.random.Generator, dtype: type, L: int = 5, S: int = 7) -> list[np.ndarray]:
    shapes = (2, 3, L, 4), (2, 3, S, 4), (2, 3, S, 3)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def _partial_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.ones((1, 1)), np.log([[1.0], [3.0]]), np.array([[4.0], [8.0]]))
    for dtype in DTYPES:
        mask = rng.random((2, 1, 5, 7)) < 0.5
        mask[0, 0, 2] = False  # a query that sees nothing
        bias = rng.standard_normal((3, 5, 7)).astype(dtype)
        yield case(*_parts(rng, dtype))
        yield case(*_parts(rng, dtype), mask)
        yield case(*_parts(rng, dtype), bias=bias)
        yield case(*_parts(rng, dtype), mask, bias)
        yield case(*_parts(rng, dtype), bias=1000 * bias[0, :, :1])  # exp is infinite, or 0
    yield case(*_parts(rng, np.float64, L=1), mask[:, :, :1])  # a step of decoding
    yield case(*_parts(rng, np.float64, S=0))


def _merge_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[[7.0]], [[1.0]]]), np.log([[4.0], [2.0]]))
    for dtype in DTYPES:
        for R, size in ((2, 1), (3, 2), (5, 300), (1, 1)):
            outputs = rng.standard_normal((R, 2, 3, 5, 4)).astype(dtype)
            log_sums = (size * rng.standard_normal((R, 2, 3, 5))).astype(dtype)
            yield case(outputs, log_sums)
            nothing = rng.random(log_sums.shape) < 0.3
            nothing[:, 0, 0, 1] = True
            yield case(
                np.where(nothing[..., None], 0, outputs), np.where(nothing, -np.inf, log_sums)
            )
        yield case(
            np.where(nothing[..., None], np.nan, outputs), np.where(nothing, -np.inf, log_sums)
        )
    yield case(rng.standard_normal((3, 4, 2)), rng.standard_normal((3, 4)))


def _zigzag_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(8, 2)
    yield case(6, 3)
    for n in range(14):
        ranks = int(rng.integers(1 + n % 3, 9))
        yield case(2 * ranks * int(rng.integers(1, 12)), ranks)


EXERCISES = (
    Exercise("pack", pack, _pack_cases, chapter=66),
    Exercise("document_mask", document_mask, _document_cases, chapter=66),
    Exercise("tree_positions", tree_positions, _tree_cases, chapter=66),
    Exercise("tree_mask", tree_mask, _tree_cases, chapter=66),
    Exercise("partial_attention", partial_attention, _partial_cases, chapter=66),
    Exercise("merge_attention", merge_attention, _merge_cases, chapter=66),
    Exercise("zigzag", zigzag, _zigzag_cases, chapter=66),
)
