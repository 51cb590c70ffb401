"""Exercises of conversions: weights, layouts, keys and biases of other codes (chapters 40, 65)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.models.rosetta import alibi_key_bias, convert_layout, join_fused, relative_gather
from pe_numpy.rotary.rope import rope_convert_weights

DTYPES = (np.float64, np.float32)


# ---- rope_convert_weights -----------------------------------------------------------------------


def _weight_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 1, 2, 3, 10, 11, 12, 13]), 2)
    for dtype in DTYPES:
        for H, K, D in ((1, 6, 4), (3, 8, 5), (4, 8, 8)):
            weight = rng.standard_normal((H * K, D)).astype(dtype)
            yield case(weight, H)
            yield case(weight, H, to="interleaved")
    yield case(rng.standard_normal((24, 5)), 2, d=8)  # partial
    yield case(rng.standard_normal((24, 5)), 2, "interleaved", 6)
    yield case(rng.standard_normal(16), 2, d=6)  # a bias
    yield case(rng.standard_normal(16), 2, to="interleaved")


WEIGHTS = Exercise("rope_convert_weights", rope_convert_weights, _weight_cases, chapter=40)

# ---- convert_layout -----------------------------------------------------------------------------


def _layout_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 1, 2, 3, 4, 5]))
    yield case(np.array([0, 2, 4, 1, 3, 5]), to="interleaved")
    for dtype in DTYPES:
        for K in (6, 8):
            x = rng.standard_normal((2, 8, K)).astype(dtype)
            yield case(x)
            yield case(x, "interleaved")
        yield case(rng.standard_normal((3, 8)).astype(dtype), d=6)
        yield case(rng.standard_normal((3, 9)).astype(dtype), "interleaved", 8)
    yield case(rng.integers(0, 99, (2, 4)), "half", 4)


LAYOUT = Exercise("convert_layout", convert_layout, _layout_cases, chapter=65)

# ---- relative_gather ----------------------------------------------------------------------------


def _gather_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(
        np.array([[12.0, 11.0, 10.0], [22.0, 21.0, 20.0], [32.0, 31.0, 30.0]]),
        np.array([[0, 0], [1, 0], [2, 1]]),
    )
    past = np.tril(np.arange(5)[:, None] - np.arange(5))  # the future reads the query's own
    for dtype in DTYPES:
        yield case(rng.standard_normal((2, 3, 5, 5)).astype(dtype), past)
        yield case(rng.standard_normal((3, 5, 9)).astype(dtype), past - past.T, 4)  # both ways
        places = np.sort(rng.integers(0, 6, (2, 1, 7)), axis=-1)  # packed: of its own in each row
        apart_ = places[..., 2:, None] - places[..., None, :]
        yield case(rng.standard_normal((2, 4, 5, 13)).astype(dtype), apart_, 6)
        yield case(rng.standard_normal((2, 4, 5, 20)).astype(dtype), apart_, largest=9)
    yield case(rng.standard_normal((1, 8)), np.array([[7, 6, 5, 0, 1]]))  # a cache
    yield case(rng.standard_normal((4, 6)), rng.integers(-3, 3, (4, 2)), 2)
    yield case(rng.standard_normal((2, 3, 4)), rng.integers(0, 4, (3, 6)))
    yield case(rng.standard_normal((3, 4)), rng.integers(0, 4, (2, 3, 6)))  # a batch of distances
    yield case(rng.standard_normal((2, 301)), rng.integers(-150, 150, (2, 5)), 150)


GATHER = Exercise("relative_gather", relative_gather, _gather_cases, chapter=65)

# ---- alibi_key_bias -----------------------------------------------------------------------------


def _key_bias_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0.5, 0.25]), np.array([0, 1, 2]))
    for dtype in DTYPES:
        for H, S in ((1, 5), (3, 7), (8, 4)):
            yield case(rng.random(H).astype(dtype), np.arange(S))
        start = int(rng.integers(3, 99))
        yield case(rng.random(3).astype(dtype), np.arange(start, start + 5))
        yield case(rng.random(4).astype(dtype), rng.integers(0, 50, (2, 6)))  # each row its own
    yield case(rng.random(2).astype(np.float16), np.array([[7]]))
    yield case(rng.random(2), np.array([-3, -2, -1, 0]))  # so that the last key has 0
    yield case(rng.random(3), rng.integers(0, 9, (3, 3)))


ALIBI = Exercise("alibi_key_bias", alibi_key_bias, _key_bias_cases, chapter=65)

# ---- join_fused ---------------------------------------------------------------------------------


def _fused_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(*np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]), "H3K", 2)

    def three(*batch, H=3, G=3, K=4, dtype=np.float64):
        return (rng.standard_normal((*batch, n * K)).astype(dtype) for n in (H, G, G))

    for dtype in DTYPES:
        for order in ("q|k|v", "3HK", "H3K"):
            yield case(*three(2, 5, dtype=dtype), order, 3)
            yield case(*three(6, H=2, G=2, K=3, dtype=dtype), order, n_heads=2)
        yield case(*three(5, H=4, G=2, dtype=dtype), "q|k|v", 4, 2)
        yield case(*three(2, 3, H=4, G=1, dtype=dtype), "q|k|v", n_heads=4, n_kv_heads=1)
    yield case(*three(H=4, G=4), "H3K", 4, n_kv_heads=4)  # a bias


FUSED = Exercise("join_fused", join_fused, _fused_cases, chapter=65)

EXERCISES = (WEIGHTS, LAYOUT, GATHER, ALIBI, FUSED)
