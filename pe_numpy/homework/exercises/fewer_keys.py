"""Exercises of chapter 44: grouped queries and latent attention."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.rotary.latent import mla_scores
from pe_numpy.rotary.rope import rope, rope_frequencies

DTYPES = (np.float64, np.float32)


# ---- grouped queries ----------------------------------------------------------------------------


def grouped_scores(
    q: np.ndarray, k: np.ndarray, q_positions: np.ndarray, k_positions: np.ndarray
) -> np.ndarray:
    """Scores of H query heads with G turned key heads: query head h reads key head h // (H/G)."""
    q, k = rope(q, q_positions), rope(k, k_positions)
    k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)  # in place: 0 0 1 1
    return q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])


def _grouped_cases(rng: np.random.Generator) -> Iterator[Case]:
    q = np.array([[[1.0, 0.0]], [[2.0, 0.0]], [[3.0, 0.0]], [[4.0, 0.0]]])
    yield case(q, np.array([[[1.0, 0.0]], [[10.0, 0.0]]]), np.array([0]), np.array([0]))
    for dtype in DTYPES:
        for H, G in ((6, 2), (4, 4), (3, 1), (8, 2)):
            q = rng.standard_normal((2, H, 3, 4)).astype(dtype)
            k = rng.standard_normal((2, G, 5, 4)).astype(dtype)
            yield case(q, k, np.arange(2, 5), np.arange(5))
        yield case(q[0], k[0, :, :3], rng.integers(-300, 0, 3), rng.integers(0, 300, 3))  # L = S
        yield case(q[..., :1, :], k, np.array([137]), np.arange(133, 138))  # the newest token


GROUPED = Exercise("grouped_scores", grouped_scores, _grouped_cases, chapter=44)

# ---- latent attention ---------------------------------------------------------------------------


def _latent_cases(rng: np.random.Generator) -> Iterator[Case]:
    w_uk = np.array([[[1.0, 2.0], [0.0, 1.0], [1.0, 0.0], [2.0, 1.0]]])
    q, zero = np.array([[[1.0, 0.0, 2.0, 1.0]]]), np.zeros((1, 1, 2))
    yield case(q, zero, np.array([[1.0, -1.0]]), zero[0], w_uk, np.array([3]), np.array([1]))
    for dtype in DTYPES:
        for H, d_n, d_r, r in ((2, 6, 4, 8), (3, 8, 2, 2), (4, 4, 4, 4)):
            shapes = (2, H, 3, d_n), (2, H, 3, d_r), (2, 5, r), (2, 5, d_r), (H, d_n, r)
            x = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
            yield case(*x, np.arange(2, 5), np.arange(5))
            yield case(*x, np.arange(2, 5), np.arange(5), rope_frequencies(2, 100.0))
            yield case(*x, np.arange(2, 5), np.arange(5), absorbed=False)
        at = rng.integers(-300, 300, 5)
        yield case(*(part[0] for part in x[:4]), x[4], at[2:], at, rng.uniform(0.01, 2, 2))
        one = (part[..., :1, :] for part in x[:2])
        yield case(*one, *x[2:], np.array([137]), np.arange(133, 138))  # the newest token


LATENT = Exercise("mla_scores", mla_scores, _latent_cases, chapter=44)

EXERCISES = (GROUPED, LATENT)
