"""Exercises of chapter 26: positions that are drawn, digits, graphs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.absolute.laplacian import laplacian_encoding
from pe_numpy.absolute.positions import digit_positions, random_positions
from pe_numpy.homework.cases import Case, Exercise, case


def _draw_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.random.default_rng(1), 4, 4)  # no choice is left
    for seed, length, max_length in ((2, 1, 9), (3, 5, 12), (4, 20, 1000), (5, 7, 8)):
        yield case(np.random.default_rng(seed), length, max_length)
    for length in range(3, 11):
        most = int(rng.integers(length, 90))
        yield case(np.random.default_rng(int(rng.integers(2**32))), length, most)


def _digit_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([3, 2, 1, 10, 5, 4]), np.arange(10))
    yield case(np.array([11, 1, 2, 3, 10, 4, 5, 11, 9, 9, 9, 0]), np.arange(10))
    yield case(np.array([10, 1, 2, 12, 12, 7]), np.arange(10), offset=7)
    yield case(np.array([[1, 2, 10, 3], [4, 10, 10, 5]]), np.arange(10))
    yield case(rng.integers(0, 6, (2, 3, 12)), np.array([5, 0, 2, 3]), offset=40)


def _path(N):
    return np.eye(N, k=1) + np.eye(N, k=-1)


def _graph_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(_path(3), 1)
    yield case(_path(4), 2, normalized=False)
    yield case(_path(3)[[1, 0, 2]][:, [1, 0, 2]], 2)  # the middle first: one vector begins with 0
    for N in (4, 6, 7):
        A = rng.random((N, N)) * (rng.random((N, N)) < 0.6)
        for normalized in (True, False):
            yield case(A + A.T + _path(N), N - 2, normalized=normalized)


EXERCISES = (
    Exercise("random_positions", random_positions, _draw_cases, chapter=26),
    Exercise("digit_positions", digit_positions, _digit_cases, chapter=26),
    Exercise("laplacian_encoding", laplacian_encoding, _graph_cases, chapter=26),
)
