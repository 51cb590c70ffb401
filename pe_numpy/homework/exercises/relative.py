"""Exercises of places 3 and 4: the score of a pair and the weighted sum (chapters 30 to 35)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.relative.alibi import alibi_bias, alibi_slopes
from pe_numpy.relative.deberta import deberta_bucket, deberta_scores
from pe_numpy.relative.distance import relative_distance
from pe_numpy.relative.expansion import four_terms
from pe_numpy.relative.shaw import (
    nezha_table,
    relative_key_query_scores,
    shaw_scores,
    shaw_values,
)
from pe_numpy.relative.t5 import t5_bias, t5_bucket
from pe_numpy.relative.transformer_xl import relative_shift, transformer_xl_scores
from pe_numpy.relative.tupe import tupe_scores

DTYPES = (np.float64, np.float32)
# A sentence; new queries with a cache; far queries, on edges of T5's buckets; keys ahead.
DISTANCES = [
    np.array(q)[:, None] - np.array(k)
    for q, k in (
        (range(4), range(4)),
        (range(3, 6), range(6)),
        ([300, 91], [0, 1, 27, 75]),
        ([0, 1], [350, 9]),
    )
]
PRIMES = (41, 97, 127, 199, 293)  # as the furthest distance: no edge of a bucket is a whole number
TWO = np.array([[0, -1], [1, 0]])


def _distances() -> Iterator[tuple[np.ndarray, type]]:
    """Distances, and of which dtype the numbers are: the sentence once more in float16."""
    for dtype in DTYPES:
        for distance in DISTANCES:
            yield distance, dtype
    yield DISTANCES[0], np.float16


def _drawn(rng: np.random.Generator, dtype: type, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


# ---- chapter 30 ----------------------------------------------------------------------------------


def _distance_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 1, 2]), np.array([0, 1, 2]))
    yield case(np.array([5, 6]), np.arange(7))  # a cache
    yield case(np.array([[0, 1], [3, 9]]), np.array([[0, 1, 2], [2, 4, 8]]))  # two sentences
    yield case(np.array([4]), np.array([100]))
    yield case(np.array([-3]), np.array([-300, 2, 0, -5]))
    for n in range(8):
        q = rng.integers(-50, 50, (3, 1, n + 1)[n % 3 :])
        yield case(q, rng.integers(-50, 50, (2, n % 4 + 2)[n % 2 :]))


def _terms_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0], [0.0, 2.0]]), np.eye(2), np.eye(2), np.diag([1.0, 3.0]))
    for dtype in (*DTYPES, np.float16):
        yield case(*_drawn(rng, dtype, (2, 5, 4), (5, 4), (4, 9), (4, 9)))


# ---- chapter 31 ----------------------------------------------------------------------------------


def _shaw_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.ones((2, 1)), np.ones((2, 1)), np.array([[10.0], [0.0], [20.0]]), TWO)
    for distance, dtype in _distances():
        (L, S), m = distance.shape, int(rng.integers(1, 4))
        q, k, table = _drawn(rng, dtype, (2, 3, L, 8), (2, 3, S, 8), (2 * m + 1, 8))
        yield case(q, k, table, distance)


def _value_cases(rng: np.random.Generator) -> Iterator[Case]:
    half = np.array([[1.0, 0.0], [0.5, 0.5]])
    yield case(half, np.ones((2, 1)), np.array([[10.0], [0.0], [20.0]]), TWO)
    for distance, dtype in _distances():
        (_, S), m = distance.shape, int(rng.integers(1, 4))
        weights: np.ndarray = rng.random((2, 3, *distance.shape)).astype(dtype)
        yield case(weights, *_drawn(rng, dtype, (2, 3, S, 6), (2 * m + 1, 6)), distance)


def _both_cases(rng: np.random.Generator) -> Iterator[Case]:
    table = np.array([[10.0], [0.0], [20.0]])
    yield case(np.ones((2, 1)), np.array([[1.0], [2.0]]), table, TWO)
    for distance, dtype in _distances():
        (L, S), N = distance.shape, int(np.abs(distance).max()) + 2  # a row to spare on each side
        q, k, table = _drawn(rng, dtype, (2, 3, L, 8), (2, 3, S, 8), (2 * N - 1, 8))
        yield case(q, k, table, distance)


def _nezha_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(1, 2)
    yield case(2, 6)
    yield case(3, 4, 100.0)
    for _ in range(9):
        m, K = int(rng.integers(1, 9)), 2 * int(rng.integers(2, 8))
        yield case(m, K, float(rng.integers(20, 10**5)))


# ---- chapter 32 ----------------------------------------------------------------------------------


def _xl_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.ones((1, 2, 1))
    r = np.array([[[10.0], [0.0], [20.0]]])
    yield case(one, one, r, np.array([[1.0]]), np.array([[2.0]]), TWO)
    for distance, dtype in _distances():
        (L, S), N = distance.shape, int(np.ptp(distance)) + 1
        shapes = (2, 3, L, 4), (2, 3, S, 4), (3, N, 4), (3, 4), (3, 4)
        yield case(*_drawn(rng, dtype, *shapes), distance)


def _shift_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]))
    for dtype in (*DTYPES, np.float16):
        yield case(*_drawn(rng, dtype, (2, 3, 4, 6)))
    yield case(rng.standard_normal((3, 1, 5)))


# ---- chapter 33 ----------------------------------------------------------------------------------


def _bucket_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-1, 0, 1]))
    for both in (True, False):
        d = np.arange(*(int(end) for end in rng.integers(200, 240, 2) * [-1, 1]))
        yield case(d, bidirectional=both)
        yield case(d, num_buckets=10, max_distance=20, bidirectional=both)
        yield case(np.array([[0, 5000], [-5000, 17]]), 32, 128, both)
    # Edges that are whole numbers, where logarithms are rounded just below: 78, whatever the base;
    # 98 in float32. Then both sides of edges far away.
    yield case(np.array([77, 78, -78, 79]), 19, 676, False)
    yield case(np.array([13, 14, 15, 97, 98]), 5, 686, False)
    below = (16 * (10**6 / 16) ** (np.arange(1, 16) / 16)).astype(int)
    yield case(below[:, None] + [0, 1], 32, 10**6, False)
    for n in range(6):
        N = 2 * int(rng.integers(2, 20))
        d = rng.integers(-300, 300, (2, 3, n + 5)[n % 2 :])
        yield case(d, N + n % 2, int(rng.choice(PRIMES)), n % 2 == 0)  # odd where it may be


def _t5_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[0, -1], [1, 0]]), 4)
    for distance, dtype in _distances():
        yield case(*_drawn(rng, dtype, (32, 3)), distance)
    d = np.arange(40)[:, None] - np.arange(40)
    yield case(rng.standard_normal((8, 2)), d, max_distance=20, bidirectional=False)
    yield case(rng.standard_normal((12, 2)), 9 * d, 200)
    yield case(rng.standard_normal((12, 2)), 9 * d[30:], 200, False)


def _tupe_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.ones((1, 1, 2))
    yield case(one, 2 * one, 3 * one, 4 * one)
    for dtype in (*DTYPES, np.float16):
        products = _drawn(rng, dtype, (2, 3, 4, 8), (2, 3, 6, 8), (3, 4, 8), (3, 6, 8))
        yield case(*products)
        yield case(*products, *_drawn(rng, dtype, (3, 4, 6)))


# ---- chapter 34 ----------------------------------------------------------------------------------


def _deberta_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.ones((1, 2, 1))
    yield case(one, one, np.array([[[1.0], [2.0]]]), np.array([[[10.0], [20.0]]]), TWO)
    for n, (distance, dtype) in enumerate(_distances()):
        (L, S), m = distance.shape, int(rng.integers(2, 5))
        tables = (3, 2 * m, 4), (3, 2 * m, 4)
        drawn = _drawn(rng, dtype, (2, 3, L, 4), (2, 3, S, 4), *tables)
        yield case(*drawn, distance)
        yield case(*drawn, distance, rng.integers(-5, 6, (L, S)) if n % 2 else distance)


def _log_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-2, -1, 0, 1, 2]), 8, 20)
    yield case(np.arange(-60, 61), 8, 20)
    yield case(np.arange(-600, 600, 7), 256, 512)
    yield case(np.array([[0, 9], [-9, 4000]]), 16, 32)
    # An edge that is a whole number, where logarithms are rounded just above, whatever the base and
    # the dtype. Then both sides of edges far away.
    yield case(np.array([54, 55, -55, 56]), 50, 122)
    below = (16 * (10**6 / 16) ** (np.arange(1, 15) / 15)).astype(int)
    yield case(below[:, None] + [0, 1], 32, 10**6 + 1)
    for n in range(8):
        N = 2 * int(rng.integers(2, 20))
        yield case(rng.integers(-300, 300, (3, n + 5)), N, int(rng.choice(PRIMES)) + 1)


# ---- chapter 35 ---------------------------------------------------------------------------------


def _slope_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n in (8, 1, 6, *rng.permutation([2, 4, 16, 32, 64])[:3].tolist()):
        yield case(n)
    others = [n for n in range(3, 130) if n & (n - 1)]  # no powers of two
    for n in rng.permutation(others)[:8].tolist():
        yield case(n)


def _alibi_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0.5]), np.array([[0, -1], [1, 0]]))
    for distance, dtype in _distances():
        yield case(rng.uniform(0.01, 1, 8).astype(dtype), distance)
    yield case(alibi_slopes(2), np.stack([np.arange(6).reshape(2, 3), -np.ones((2, 3), int)]))
    for distance in DISTANCES:  # an encoder's
        yield case(alibi_slopes(4), distance, future_slopes=rng.uniform(0.1, 0.9, 4))
    for n in range(4):
        distance = rng.integers(-20, 20, (2, 3, 4)[n % 2 :])
        slopes, later = rng.uniform(0.1, 2, (2, 3)).astype(DTYPES[n % 2])
        yield case(slopes, distance, later if n > 1 else None)


EXERCISES = (
    Exercise("relative_distance", relative_distance, _distance_cases, chapter=30),
    Exercise("four_terms", four_terms, _terms_cases, chapter=30),
    Exercise("shaw_scores", shaw_scores, _shaw_cases, chapter=31),
    Exercise("shaw_values", shaw_values, _value_cases, chapter=31),
    Exercise("relative_key_query_scores", relative_key_query_scores, _both_cases, chapter=31),
    Exercise("nezha_table", nezha_table, _nezha_cases, chapter=31),
    Exercise("transformer_xl_scores", transformer_xl_scores, _xl_cases, chapter=32),
    Exercise("relative_shift", relative_shift, _shift_cases, chapter=32),
    Exercise("t5_bucket", t5_bucket, _bucket_cases, chapter=33),
    Exercise("t5_bias", t5_bias, _t5_cases, chapter=33),
    Exercise("tupe_scores", tupe_scores, _tupe_cases, chapter=33),
    Exercise("deberta_scores", deberta_scores, _deberta_cases, chapter=34),
    Exercise(
        "deberta_bucket",
        deberta_bucket,
        _log_cases,
        (
            Mistake(
                "T5's bucket",
                "DeBERTa keeps the sign, and rounds up where T5 cuts off.",
                34,
                t5_bucket,
            ),
        ),
        chapter=34,
    ),
    Exercise("alibi_slopes", alibi_slopes, _slope_cases, chapter=35),
    Exercise("alibi_bias", alibi_bias, _alibi_cases, chapter=35),
)
