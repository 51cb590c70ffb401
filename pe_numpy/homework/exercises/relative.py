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


def _distances() -> Iterator[np.ndarray]:
    """All pairs of a sentence; new queries with a cache; one far query; keys ahead."""
    for q, k in (
        (range(4), range(4)),
        (range(3, 6), range(6)),
        ([90], range(7)),
        ([0, 1], [50, 9]),
    ):
        yield np.array(q)[:, None] - np.array(k)


# ---- chapter 30 ----------------------------------------------------------------------------------


def _distance_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 1, 2]), np.array([0, 1, 2]))
    yield case(np.array([5, 6]), np.arange(7))  # a cache
    yield case(np.array([[0, 1], [3, 9]]), np.array([[0, 1, 2], [2, 4, 8]]))  # two sentences
    yield case(np.array([4]), np.array([100]))
    for n in range(8):
        q, k = (
            rng.integers(0, 50, (3, 1, n + 1)[n % 3 :]),
            rng.integers(0, 50, (2, n % 4 + 2)[n % 2 :]),
        )
        yield case(q, k)


DISTANCE = Exercise("relative_distance", relative_distance, _distance_cases, chapter=30)


def _terms_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0], [0.0, 2.0]]), np.eye(2), np.eye(2), np.diag([1.0, 3.0]))
    for dtype in DTYPES:
        x, p = rng.standard_normal((2, 3, 5, 4)).astype(dtype)
        w_q, w_k = rng.standard_normal((2, 4, 9)).astype(dtype)
        yield case(x, p[0], w_q, w_k)


TERMS = Exercise("four_terms", four_terms, _terms_cases, chapter=30)

# ---- chapter 31 ----------------------------------------------------------------------------------


def _shaw_cases(rng: np.random.Generator) -> Iterator[Case]:
    two = np.array([0, 1])[:, None] - np.array([0, 1])
    yield case(np.ones((2, 1)), np.ones((2, 1)), np.array([[10.0], [0.0], [20.0]]), two)
    for dtype in DTYPES:
        for distance in _distances():
            q = rng.standard_normal((2, 3, distance.shape[0], 8)).astype(dtype)
            k = rng.standard_normal((2, 3, distance.shape[1], 8)).astype(dtype)
            yield case(q, k, rng.standard_normal((5, 8)).astype(dtype), distance)


SHAW_SCORES = Exercise("shaw_scores", shaw_scores, _shaw_cases, chapter=31)


def _value_cases(rng: np.random.Generator) -> Iterator[Case]:
    two = np.array([0, 1])[:, None] - np.array([0, 1])
    half = np.array([[1.0, 0.0], [0.5, 0.5]])
    yield case(half, np.ones((2, 1)), np.array([[10.0], [0.0], [20.0]]), two)
    for dtype in DTYPES:
        for distance in _distances():
            weights = rng.random((2, 3, *distance.shape)).astype(dtype)
            v = rng.standard_normal((2, 3, distance.shape[1], 6)).astype(dtype)
            yield case(weights, v, rng.standard_normal((5, 6)).astype(dtype), distance)


SHAW_VALUES = Exercise("shaw_values", shaw_values, _value_cases, chapter=31)


def _both_cases(rng: np.random.Generator) -> Iterator[Case]:
    two = np.array([0, 1])[:, None] - np.array([0, 1])
    table = np.array([[10.0], [0.0], [20.0]])
    yield case(np.ones((2, 1)), np.array([[1.0], [2.0]]), table, two)
    for dtype in DTYPES:
        for distance in _distances():
            q = rng.standard_normal((2, 3, distance.shape[0], 8)).astype(dtype)
            k = rng.standard_normal((2, 3, distance.shape[1], 8)).astype(dtype)
            rows = 2 * int(np.abs(distance).max()) + 3  # one to spare on each side
            yield case(q, k, rng.standard_normal((rows, 8)).astype(dtype), distance)


KEY_QUERY = Exercise(
    "relative_key_query_scores", relative_key_query_scores, _both_cases, chapter=31
)


def _nezha_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(1, 2)
    yield case(2, 6)
    yield case(3, 4, 100.0)
    for _ in range(9):
        yield case(
            int(rng.integers(1, 9)), 2 * int(rng.integers(2, 8)), float(rng.integers(20, 10**5))
        )


NEZHA = Exercise("nezha_table", nezha_table, _nezha_cases, chapter=31)

# ---- chapter 32 ----------------------------------------------------------------------------------


def _xl_cases(rng: np.random.Generator) -> Iterator[Case]:
    two = np.array([0, 1])[:, None] - np.array([0, 1])
    one = np.ones((1, 2, 1))
    r = np.array([[[10.0], [0.0], [20.0]]])
    yield case(one, one, r, np.array([[1.0]]), np.array([[2.0]]), two)
    for dtype in DTYPES:
        for distance in _distances():
            q = rng.standard_normal((2, 3, distance.shape[0], 4)).astype(dtype)
            k = rng.standard_normal((2, 3, distance.shape[1], 4)).astype(dtype)
            rows = int(distance.max() - distance.min()) + 1
            r = rng.standard_normal((3, rows, 4)).astype(dtype)
            u, v = rng.standard_normal((2, 3, 4)).astype(dtype)
            yield case(q, k, r, u, v, distance)


XL = Exercise("transformer_xl_scores", transformer_xl_scores, _xl_cases, chapter=32)


def _shift_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]))
    for dtype in DTYPES:
        yield case(rng.standard_normal((2, 3, 4, 6)).astype(dtype))
    yield case(rng.standard_normal((3, 1, 5)))


SHIFT = Exercise("relative_shift", relative_shift, _shift_cases, chapter=32)

# ---- chapter 33 ----------------------------------------------------------------------------------


def _bucket_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-1, 0, 1]))
    for both in (True, False):
        d = np.arange(*(int(end) for end in rng.integers(200, 240, 2) * [-1, 1]))
        yield case(d, bidirectional=both)
        yield case(d, num_buckets=8, max_distance=20, bidirectional=both)
        yield case(np.array([[0, 5000], [-5000, 17]]), 32, 128, both)
    edges = np.array([9, 10, -10, 12, 20, 80])  # a logarithm is rounded just below 10, 20 and 80
    yield case(edges, 10, 160, False)
    for n in range(6):
        N = 2 * int(rng.integers(2, 20))
        d = rng.integers(-300, 300, (3, n + 5))
        yield case(d, N, int(rng.integers(N, 300)), n % 2 == 0)


T5_BUCKET = Exercise("t5_bucket", t5_bucket, _bucket_cases, chapter=33)


def _t5_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[0, -1], [1, 0]]), 4)
    for dtype in DTYPES:
        for distance in _distances():
            yield case(rng.standard_normal((32, 3)).astype(dtype), distance)
    d = np.arange(40)[:, None] - np.arange(40)
    yield case(rng.standard_normal((8, 2)), d, max_distance=20, bidirectional=False)


T5_BIAS = Exercise("t5_bias", t5_bias, _t5_cases, chapter=33)


def _tupe_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.ones((1, 1, 2))
    yield case(one, 2 * one, 3 * one, 4 * one)
    for dtype in DTYPES:
        q, pq = rng.standard_normal((2, 3, 4, 8)).astype(dtype), rng.standard_normal((3, 4, 8))
        k, pk = rng.standard_normal((2, 3, 6, 8)).astype(dtype), rng.standard_normal((3, 6, 8))
        pq, pk = pq.astype(dtype), pk.astype(dtype)
        yield case(q, k, pq, pk)
        yield case(q, k, pq, pk, rng.standard_normal((3, 4, 6)).astype(dtype))


TUPE = Exercise("tupe_scores", tupe_scores, _tupe_cases, chapter=33)

# ---- chapter 34 ----------------------------------------------------------------------------------


def _deberta_cases(rng: np.random.Generator) -> Iterator[Case]:
    two = np.array([0, 1])[:, None] - np.array([0, 1])
    one = np.ones((1, 2, 1))
    yield case(one, one, np.array([[[1.0], [2.0]]]), np.array([[[10.0], [20.0]]]), two)
    for dtype in DTYPES:
        for distance in _distances():
            q = rng.standard_normal((2, 3, distance.shape[0], 4)).astype(dtype)
            k = rng.standard_normal((2, 3, distance.shape[1], 4)).astype(dtype)
            tables = rng.standard_normal((2, 3, 6, 4)).astype(dtype)
            yield case(q, k, *tables, distance)
            yield case(q, k, *tables, distance, distance)


DEBERTA = Exercise("deberta_scores", deberta_scores, _deberta_cases, chapter=34)


def _log_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-2, -1, 0, 1, 2]), 8, 20)
    yield case(np.arange(-60, 61), 8, 20)
    yield case(np.arange(-600, 600, 7), 256, 512)
    yield case(np.array([[0, 9], [-9, 4000]]), 16, 32)
    edges = np.array([19, 20, -20, 21, 40, 80])  # a logarithm is rounded just above 20 and 40
    yield case(edges, 20, 81)
    for n in range(8):
        N = 2 * int(rng.integers(2, 20))
        yield case(rng.integers(-300, 300, (3, n + 5)), N, int(rng.integers(N + 2, 300)))


DEBERTA_BUCKET = Exercise(
    "deberta_bucket",
    deberta_bucket,
    _log_cases,
    (
        Mistake(
            "T5's bucket", "DeBERTa keeps the sign, and rounds up where T5 cuts off.", 34, t5_bucket
        ),
    ),
    chapter=34,
)

# ---- chapter 35 ---------------------------------------------------------------------------------


def _slope_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n in (8, 1, 6, *rng.permutation([2, 4, 16, 32, 64])[:3].tolist()):
        yield case(n)
    others = [n for n in range(3, 64) if n & (n - 1)]  # no powers of two
    for n in rng.permutation(others)[:8].tolist():
        yield case(n)


SLOPES = Exercise("alibi_slopes", alibi_slopes, _slope_cases, chapter=35)


def _alibi_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0.5]), np.array([[0, -1], [1, 0]]))
    for dtype in DTYPES:
        for distance in _distances():
            yield case(rng.uniform(0.01, 1, 8).astype(dtype), distance)
    yield case(alibi_slopes(2), np.stack([np.arange(6).reshape(2, 3), -np.ones((2, 3), int)]))
    for distance in _distances():  # an encoder's
        yield case(alibi_slopes(4), distance, future_slopes=rng.uniform(0.1, 0.9, 4))
    for n in range(4):
        distance = rng.integers(-20, 20, (2, 3, 4)[n % 2 :])
        slopes, later = rng.uniform(0.1, 2, (2, 3)).astype(DTYPES[n % 2])
        yield case(slopes, distance, later if n > 1 else None)


ALIBI = Exercise("alibi_bias", alibi_bias, _alibi_cases, chapter=35)

EXERCISES = (
    DISTANCE,
    TERMS,
    SHAW_SCORES,
    SHAW_VALUES,
    KEY_QUERY,
    NEZHA,
    XL,
    SHIFT,
    T5_BUCKET,
    T5_BIAS,
    TUPE,
    DEBERTA,
    DEBERTA_BUCKET,
    SLOPES,
    ALIBI,
)
