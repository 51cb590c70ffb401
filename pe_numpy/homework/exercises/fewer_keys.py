"""Exercises of chapter 44: grouped queries and latent attention."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.rotary.latent import mla_scores
from pe_numpy.rotary.rope import rope, rope_frequencies, rope_permutation

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


def _tiled(q, k, q_positions, k_positions):
    k = np.concatenate([k] * (q.shape[-3] // k.shape[-3]), axis=-3)
    return grouped_scores(q, k, q_positions, k_positions)


def _first_alone(q, k, q_positions, k_positions):
    return grouped_scores(q, k[..., :1, :, :], q_positions, k_positions)


GROUPED = Exercise(
    "grouped_scores",
    grouped_scores,
    _grouped_cases,
    (
        Mistake(
            "the heads tiled",
            "Repeat each key head in place, 0 0 1 1, not the whole row of them, 0 1 0 1.",
            44,
            _tiled,
        ),
        Mistake(
            "all query heads read the first key head",
            "That is multi-query attention; here query head h reads key head h // (H/G).",
            44,
            _first_alone,
        ),
        Mistake(
            "the key heads averaged",
            "Averaging makes a checkpoint with fewer heads; each query head reads one of them.",
            44,
            lambda q, k, *positions: grouped_scores(
                q, k.mean(axis=-3, keepdims=True).astype(k.dtype), *positions
            ),
        ),
        Mistake(
            "keys not turned",
            "All heads turn, those of the keys, too: once, before they are repeated.",
            40,
            lambda q, k, m, n: grouped_scores(q, k, m, 0 * n),
        ),
        Mistake(
            "not scaled",
            "Divide by the root of K.",
            10,
            lambda q, k, *positions: grouped_scores(
                q * q.dtype.type(math.sqrt(q.shape[-1])), k, *positions
            ),
        ),
    ),
    chapter=44,
    scores=lambda f: lambda q, k, i, j: f(q[None], k[None], i, j)[0],
    width=4,
)


# ---- latent attention ---------------------------------------------------------------------------


def _latent_cases(rng: np.random.Generator) -> Iterator[Case]:
    w_uk = np.array([[[1.0, 2.0], [0.0, 1.0], [1.0, 0.0], [2.0, 1.0]]])
    q, zero = np.array([[[1.0, 0.0, 2.0, 1.0]]]), np.zeros((1, 1, 2))
    yield case(q, zero, np.array([[1.0, -1.0]]), zero[0], w_uk, np.array([3]), np.array([1]))
    for dtype in DTYPES:
        for H, d_n, d_r, r in ((2, 3, 4, 5), (3, 6, 2, 2), (4, 4, 4, 4)):
            shapes = (2, H, 3, d_n), (2, H, 3, d_r), (2, 5, r), (2, 5, d_r), (H, d_n, r)
            x = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
            yield case(*x, np.arange(2, 5), np.arange(5))
            yield case(*x, np.arange(2, 5), np.arange(5), rope_frequencies(2, 100.0))
            yield case(*x, np.arange(2, 5), np.arange(5), absorbed=False)


def _scaled(width):
    """The scores divided by the root of another width."""

    def scores(q_content, q_rotary, latent, *rest, **options):
        d_n, d_r, r = (x.shape[-1] for x in (q_content, q_rotary, latent))
        right = mla_scores(q_content, q_rotary, latent, *rest, **options)
        return right * right.dtype.type(math.sqrt((d_n + d_r) / width(d_n, d_r, r)))

    return scores


def _content_turned(q_content, q_rotary, latent, k_rotary, w_uk, m, n, *rest, **options):
    pairs = rope_frequencies(2 * (q_content.shape[-1] // 2))
    turned = rope(q_content, m, pairs)
    return mla_scores(turned, q_rotary, latent, k_rotary, w_uk, m, n, *rest, **options)


def _latent_turned(q_content, q_rotary, latent, k_rotary, w_uk, m, n, *rest, **options):
    turned = rope(latent, n, rope_frequencies(2 * (latent.shape[-1] // 2)))
    return mla_scores(q_content, q_rotary, turned, k_rotary, w_uk, m, n, *rest, **options)


def _halves(q_content, q_rotary, latent, k_rotary, *rest, **options):
    """The same scores, of components that were paired as i and i + d_r/2."""
    order = np.argsort(rope_permutation(q_rotary.shape[-1]))
    q_rotary, k_rotary = q_rotary[..., order], k_rotary[..., order]
    return mla_scores(q_content, q_rotary, latent, k_rotary, *rest, **options)


LATENT = Exercise(
    "mla_scores",
    mla_scores,
    _latent_cases,
    (
        Mistake(
            "scaled by the width of the absorbed key",
            "The scale belongs to the head, d_n + d_r, whichever way it is computed: absorbing "
            "W_uk must not change a score.",
            44,
            _scaled(lambda d_n, d_r, r: r + d_r),
        ),
        Mistake(
            "scaled by the content's width",
            "A head is d_n + d_r wide; both parts count.",
            44,
            _scaled(lambda d_n, d_r, r: d_n),
        ),
        Mistake(
            "not scaled",
            "Divide by the root of d_n + d_r.",
            10,
            _scaled(lambda d_n, d_r, r: 1),
        ),
        Mistake(
            "the content turned, too",
            "Only q^R and k^R turn: a turn of the content cannot be absorbed into one matrix.",
            44,
            _content_turned,
        ),
        Mistake(
            "the latent vector turned",
            "c stays as it is; its position is told by k^R alone.",
            44,
            _latent_turned,
        ),
        Mistake(
            "the shared key not turned",
            "R_j k^R: the key that all heads share turns by its own position.",
            44,
            lambda q_C, q_R, c, k_R, w_uk, m, n, *rest, **options: mla_scores(
                q_C, q_R, c, k_R, w_uk, m, 0 * n, *rest, **options
            ),
        ),
        Mistake(
            "the rotary part forgotten",
            "Two parts are added: content, and what turns.",
            44,
            lambda q_C, q_R, *rest, **options: mla_scores(q_C, 0 * q_R, *rest, **options),
        ),
        Mistake(
            "components paired as halves",
            "Pairs are interleaved here, as in DeepSeek's code: components 2i and 2i + 1.",
            40,
            _halves,
        ),
    ),
    chapter=44,
)

EXERCISES = (GROUPED, LATENT)
