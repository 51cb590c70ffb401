"""Exercises of chapter 64: what real models store, and how they write."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.transformer.attention import split_fused

DTYPES = (np.float64, np.float32)


# ---- fused projections --------------------------------------------------------------------------


def _fused_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(6.0), "q|k|v", 2)
    yield case(np.arange(6.0), "H3K", 2)
    yield case(np.arange(4.0), "q|k|v", 2, 1)
    for dtype in DTYPES:
        for order, H, G in (("3HK", 3, 3), ("H3K", 3, 3), ("q|k|v", 4, 2), ("q|k|v", 3, 1)):
            x = rng.standard_normal((2, 5, (H + 2 * G) * 4)).astype(dtype)
            yield case(x, order, H, G)
    yield case(rng.standard_normal((3, 12)), "H3K", 1)


def _exchanged(x, order, n_heads, n_kv_heads=None):
    order = "H3K" if order != "H3K" and n_kv_heads in (None, n_heads) else "q|k|v"
    return split_fused(x, order, n_heads, n_kv_heads)


def _thirds(x, order, n_heads, n_kv_heads=None):
    if order == "H3K":
        return split_fused(x, order, n_heads)
    n = -(-x.shape[-1] // 3)
    return x[..., :n], x[..., n : 2 * n], x[..., 2 * n :]


def _values_first(x, order, n_heads, n_kv_heads=None):
    q, k, v = split_fused(x, order, n_heads, n_kv_heads)
    return q, v, k


def _scattered(x, order, n_heads, n_kv_heads=None):
    """The last order read as (H, K, 3): query, key and value change with each component."""
    if order == "H3K":
        return x[..., 0::3], x[..., 1::3], x[..., 2::3]
    return split_fused(x, order, n_heads, n_kv_heads)


FUSED = Exercise(
    "split_fused",
    split_fused,
    _fused_cases,
    (
        Mistake(
            "the orders exchanged",
            "H3K: the first 3 K numbers all belong to head 0, its query, its key, its value.",
            64,
            _exchanged,
        ),
        Mistake(
            "all queries first, always",
            "That is the order of GPT-2; in H3K each head has its three parts side by side.",
            64,
            lambda x, order, *heads: split_fused(x, "q|k|v", *heads),
        ),
        Mistake(
            "in three equal parts",
            "With G heads of keys the parts are H K, G K and G K wide.",
            44,
            _thirds,
        ),
        Mistake(
            "values before keys",
            "Queries, keys, values, in this order.",
            64,
            _values_first,
        ),
        Mistake(
            "every third component",
            "In H3K the parts of a head are blocks of K: reshape to (H, 3, K), not to (H, K, 3).",
            64,
            _scattered,
        ),
    ),
    chapter=64,
    further=(
        Mistake(
            "cut in thirds, always",
            "With fewer key heads the parts are not equal; and in H3K each head has its own three.",
            64,
            lambda x, *rest, **options: tuple(np.split(x, 3, axis=-1)),
        ),
    ),
)

EXERCISES = (FUSED,)
