"""Exercises of chapter 52: distances that stay in the trained range."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.relative.distance import relative_distance
from pe_numpy.rotary.new_places import (
    chunk_distance,
    rerope_distance,
    rotary_distance_scores,
    self_extend_distance,
    streaming_distance,
)

# ---- scores at any distance ---------------------------------------------------------------------


def _score_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0]]))
    for dtype in (np.float64, np.float32):
        for layout in ("interleaved", "half"):
            q = rng.standard_normal((2, 3, 4, 8)).astype(dtype)
            k = rng.standard_normal((2, 3, 5, 8)).astype(dtype)
            distance = relative_distance(np.arange(1, 5), np.arange(5))
            yield case(q, k, distance, layout=layout)
            yield case(q, k, np.minimum(distance, 2) + 0.5, layout=layout)
            yield case(q, k, 9 * rng.standard_normal((2, 1, 4, 5)), [1.0, 0.3], layout)
            yield case(q, k, 1000 * distance, rng.uniform(0, 1, int(rng.integers(1, 5))), layout)
    yield case(q[..., :1, :], k, rng.integers(-(10**6), 10**6, (1, 5)))  # angles in float64
    yield case(q.astype(np.float16), k.astype(np.float16), distance)


SCORES = Exercise("rotary_distance_scores", rotary_distance_scores, _score_cases, chapter=52)


# ---- ReRoPE -------------------------------------------------------------------------------------


def _rerope_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(8), 4)
    yield case(np.arange(8), 4, 2.0)
    distance = np.arange(12)[:, None] - np.arange(14)
    for window in (1, 3, 5):
        yield case(distance + int(rng.integers(-4, 9)), window)
        yield case(distance, window, stretch=round(float(rng.uniform(1.5, 6)), 1))
    yield case(distance, 20)
    yield case(rng.integers(-3000, 3000, 9), 500, 16)
    yield case(9 * rng.standard_normal((3, 4)), 5, 1.0)  # fractions; nothing is stretched
    yield case(np.array(-9), 4)
    for n in range(6):
        stretch = round(float(rng.uniform(1.5, 6)), 1) if n % 2 else None
        yield case(rng.integers(-40, 40, (2, n + 3)), int(rng.integers(2, 20)), stretch)


REROPE = Exercise("rerope_distance", rerope_distance, _rerope_cases, chapter=52)


# ---- Self-Extend --------------------------------------------------------------------------------


def _extend_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([9]), np.arange(10), 4, 2)
    for window, group in ((4, 2), (5, 3), (6, 1), (3, 4), (1, 2)):
        at = np.arange(14) + int(rng.integers(50))
        yield case(at, at, window, group)
        yield case(at[7:12], at[:12], window, group)
    yield case(np.arange(6) + np.array([[0], [3]]), np.arange(8), 4, 3)  # a batch
    yield case(np.arange(6), np.arange(8) - np.array([[0], [3]]), 4, 3)  # below 0, of the keys
    yield case(np.array([3000]), rng.integers(0, 3000, 9), 512, 8)
    for _ in range(4):
        window, group = int(rng.integers(3, 9)), int(rng.integers(2, 5))
        yield case(rng.integers(0, 60, 6), rng.integers(0, 60, 9), window, group)


SELF_EXTEND = Exercise("self_extend_distance", self_extend_distance, _extend_cases, chapter=52)


# ---- dual chunks --------------------------------------------------------------------------------


def _chunk_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([11]), np.arange(12), 6, 2)
    for size, local in ((6, 2), (7, 3), (8, 6), (5, 0), (9, 1)):
        at = np.arange(16) + int(rng.integers(50))
        yield case(at, at, size, local)
        yield case(at[9:15], at[:15], size, local)
    yield case(np.arange(6) + np.array([[0], [5]]), np.arange(12), 5, 2)  # a batch
    yield case(np.arange(6), np.arange(12) - np.array([[0], [9]]), 5, 2)  # below 0, of the keys
    yield case(np.array([3000]), rng.integers(0, 3000, 9), 768, 128)
    for _ in range(4):
        size, local = 4 + int(rng.integers(8)), int(rng.integers(3))
        yield case(rng.integers(0, 60, 6), rng.integers(0, 60, 9), size, local)


CHUNKS = Exercise("chunk_distance", chunk_distance, _chunk_cases, chapter=52)


# ---- streaming ----------------------------------------------------------------------------------


def _streaming_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([9]), np.array([0, 1, 5, 6, 7, 8]), 5, 2)
    for window, sinks in ((5, 2), (3, 4), (4, 0), (1, 1)):
        L = int(rng.integers(12, 24))
        yield case(np.arange(L), np.arange(L), window, sinks)
        yield case(np.arange(L - 4, L - 1), np.arange(L - 1), window, sinks)
    yield case(np.arange(6) + np.array([[0], [5]]), np.arange(11), 3, 2)  # a batch
    yield case(np.arange(6), np.arange(8) + np.array([[0], [3]]), 3, 4)  # of the keys
    for _ in range(4):
        window, sinks = int(rng.integers(2, 9)), int(rng.integers(0, 5))
        yield case(np.sort(rng.integers(9, 60, 6)), np.arange(60), window, sinks)


STREAMING = Exercise("streaming_distance", streaming_distance, _streaming_cases, chapter=52)

EXERCISES = (SCORES, REROPE, SELF_EXTEND, CHUNKS, STREAMING)
