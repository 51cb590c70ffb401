"""Exercises of place 2: queries and keys turn (chapters 40, 41 and 50)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.rotary.rope import rope, rope_frequencies, rope_matrix, rope_permutation
from pe_numpy.rotary.scaling import (
    dynamic_ntk_scaling,
    linear_scaling,
    llama3_scaling,
    longrope_scaling,
    ntk_scaling,
    yarn_attention_factor,
)

# ---- rope ---------------------------------------------------------------------------------------


def _rope_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0]]), np.array([1]))  # one pair
    yield case(np.eye(4), np.array([0, 1, 2, 3]))  # two pairs, each component alone
    for layout in ("interleaved", "half"):
        some, one = rope_frequencies(4, 500.0), np.array([137])
        for dtype in (np.float64, np.float32):
            x = rng.standard_normal((2, 3, 5, 8)).astype(dtype)  # (B, H, L, K)
            yield case(x, np.arange(100, 105), layout=layout)  # a cache: not from 0
            yield case(x, rng.integers(0, 50, (2, 1, 5)), layout=layout)  # left padding
            yield case(x, np.arange(5) / 4, some, layout=layout)  # partial
        yield case(x, np.arange(5), layout=layout)
        yield case(x.astype(float), one, rng.uniform(0.01, 2, 3), layout=layout)  # one for all
        base = float(rng.integers(50, 10**6))
        for width in ("f8", "f2"):
            x = rng.standard_normal((3, 5, 8)).astype(width)
            yield case(x, rng.integers(-300, 0, 5), rope_frequencies(8, base), layout=layout)
    yield case(rng.standard_normal((3, 6)).astype(np.float32), np.array([0, 10**5, 10**6]))


ROPE = Exercise("rope", rope, _rope_cases, chapter=40)

# ---- around it ----------------------------------------------------------------------------------


def _frequency_cases(rng: np.random.Generator) -> Iterator[Case]:
    for d in (2, 4, 6, 64):
        yield case(d)
    yield case(8, 500000.0)
    yield case(10, base=100.0)
    for _ in range(7):
        yield case(2 * int(rng.integers(2, 40)), float(rng.integers(50, 10**6)))


FREQUENCIES = Exercise("rope_frequencies", rope_frequencies, _frequency_cases, chapter=40)


def _matrix_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(1, np.array([1.0]))
    yield case(3, np.array([1.0, 0.1]))
    yield case(-2.5, rope_frequencies(6))
    yield case(1000, rope_frequencies(16, 500.0))
    for n in range(9):
        yield case(round(float(rng.normal(0, 20)), 1), rng.uniform(0.001, 1, n % 4 + 1))


MATRIX = Exercise("rope_matrix", rope_matrix, _matrix_cases, chapter=40)


def _permutation_cases(rng: np.random.Generator) -> Iterator[Case]:
    for d in (4, 2, 8, 14):
        yield case(d)
    for d in 2 * rng.permutation(np.arange(3, 90))[:10]:
        yield case(int(d))


PERMUTATION = Exercise("rope_permutation", rope_permutation, _permutation_cases, chapter=40)


def _score_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.array([[1.0, 0.0]])
    yield case(one, one, np.array([0]), np.array([1]))
    for dtype in (np.float64, np.float32, np.float16):
        q = rng.standard_normal((2, 3, 4, 8)).astype(dtype)
        k = rng.standard_normal((2, 3, 6, 8)).astype(dtype)
        yield case(q, k, np.arange(2, 6), np.arange(6))  # the newest four of six
        yield case(q, k[..., :1, :], np.arange(100, 104), np.array([7]))
        yield case(q, q, rng.integers(0, 30, (2, 1, 4)), rng.integers(0, 30, (2, 1, 4)))
    yield case(q, k, np.array([-9.5]), rng.integers(-500, 500, 6) / 2)  # one place for all queries
    yield case(q[0, :, :1], k[0], np.array([137]), np.arange(132, 138))  # the newest token


def rotary_scores(
    q: np.ndarray, k: np.ndarray, q_positions: np.ndarray, k_positions: np.ndarray
) -> np.ndarray:
    """Scores of turned queries and keys: (R_m q) . (R_n k) / sqrt(K)."""
    turned = rope(q, q_positions) * q.dtype.type(q.shape[-1] ** -0.5)
    return turned @ np.swapaxes(rope(k, k_positions), -1, -2)


SCORES = Exercise("rotary_scores", rotary_scores, _score_cases, chapter=41)

# ---- scaling ------------------------------------------------------------------------------------


def _linear_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([1.0, 0.5]), 2)
    yield case(rope_frequencies(8), 4.0)
    yield case(rope_frequencies(64, 500000.0), 1.5)
    for n in range(9):
        yield case(rng.uniform(0.001, 1, n + 2), round(float(rng.uniform(1.1, 9)), 2))


LINEAR = Exercise("linear_scaling", linear_scaling, _linear_cases, chapter=50)


def _ntk_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(4, 4)
    yield case(6, 2.0, 100.0)
    yield case(64, 8)
    yield case(128, 1)
    for _ in range(9):
        s, base = round(float(rng.uniform(1.1, 9)), 2), float(rng.integers(50, 10**6))
        yield case(2 * int(rng.integers(2, 40)), s, base)


NTK = Exercise("ntk_scaling", ntk_scaling, _ntk_cases, chapter=50)


def _dynamic_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(4, 16, 8)
    yield case(8, 100, 2048)  # shorter than trained: nothing changes
    yield case(64, 4096, 2048)
    yield case(64, 6000, 2048, factor=2.0, base=500.0)
    for n in range(8):
        length, s = int(rng.integers(64, 9000)), round(float(rng.uniform(1.1, 4)), 2)
        base = float(rng.integers(50, 10**6))
        yield case(2 * int(rng.integers(2, 40)), length, 512, s if n % 2 else 1.0, base)


DYNAMIC = Exercise("dynamic_ntk_scaling", dynamic_ntk_scaling, _dynamic_cases, chapter=50)


def _llama_cases(rng: np.random.Generator) -> Iterator[Case]:
    turns = np.array([8.0, 2.5, 0.5])
    yield case(2 * np.pi * turns / 8192, 8, 8192)
    yield case(rope_frequencies(128, 500000.0), 8.0, 8192)
    yield case(rope_frequencies(64), 4.0, 2048, low_freq_factor=2.0, high_freq_factor=8.0)
    for n in range(9):
        f, trained = rope_frequencies(2 * int(rng.integers(4, 20))), int(rng.integers(64, 9000))
        low = round(float(rng.uniform(0.5, 2)), 2)
        ramp = (low, low + round(float(rng.uniform(1, 30)), 1)) if n % 2 else ()
        yield case(f, round(float(rng.uniform(2, 9)), 1), trained, *ramp)


LLAMA = Exercise("llama3_scaling", llama3_scaling, _llama_cases, chapter=50)


def _factor_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(40)
    yield case(40.0, 0.707)
    yield case(0.5, 2.0)  # shorter than trained
    yield case(1)
    yield case(1.5, 0.5)
    for n in range(9):
        s = round(float(rng.uniform(0.2, 40)), 2)
        yield case(s, round(float(rng.uniform(0.1, 3)), 2)) if n % 2 else case(s)


YARN_FACTOR = Exercise("yarn_attention_factor", yarn_attention_factor, _factor_cases, chapter=50)


def _longrope_cases(rng: np.random.Generator) -> Iterator[Case]:
    lists = np.array([1.0, 1.5]), np.array([2.0, 4.0])
    for length in (15, 16, 17):
        yield case(4, length, *lists, 16, 8)
    for length in (100, 5000):
        yield case(8, length, *rng.uniform(1, 30, (2, 4)), 4096, 32.0, base=500.0)
    yield case(4, 20, *lists, 16, round(float(rng.uniform(1.1, 1.9)), 2))
    yield case(2, 9, np.array([2.0]), np.array([3.0]), 4, 0.5)


LONGROPE = Exercise("longrope_scaling", longrope_scaling, _longrope_cases, chapter=50)

EXERCISES = (
    ROPE,
    FREQUENCIES,
    MATRIX,
    PERMUTATION,
    SCORES,
    LINEAR,
    NTK,
    DYNAMIC,
    LLAMA,
    YARN_FACTOR,
    LONGROPE,
)
