"""Exercises of chapter 64: what real models store, and how they write."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
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


FUSED = Exercise("split_fused", split_fused, _fused_cases, chapter=64)

EXERCISES = (FUSED,)
