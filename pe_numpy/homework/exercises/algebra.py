"""Exercises of chapter 70: a turn in one plane, and a lift in which a line is a product."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.rotary.grape import additive_lift, rank2_rotation

DTYPES = (np.float64, np.float32)


# ---- a turn in one plane ------------------------------------------------------------------------


def _turn_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 1)  # e_1 towards e_2
    yield case(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0]), 1)
    yield case(np.array([1.0, 2.0]), np.array([2.0, 4.0]), 3)  # no plane
    for dtype in DTYPES:
        a, b = rng.standard_normal((2, 5)).astype(dtype)
        yield case(a, b, -7)
        yield case(a, b, rng.integers(0, 90, (2, 3)))
        yield case(a, b, np.array([0.5]))


TURN = Exercise("rank2_rotation", rank2_rotation, _turn_cases, chapter=70)


# ---- the lift -----------------------------------------------------------------------------------


def _lift_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]]), 0.5)
    for dtype in DTYPES:
        q = rng.standard_normal((2, 3, 4, 5)).astype(dtype)  # (B, H, L, K)
        k = rng.standard_normal((2, 3, 6, 5)).astype(dtype)
        yield case(q, k, 0.25)
        yield case(q, k, np.array([0.5, 0.25, 0.125]))
        yield case(q[0, 0], k[0, 0], 1)
    yield case(q, k, rng.uniform(0, 1, (2, 1)))


LIFT = Exercise("additive_lift", additive_lift, _lift_cases, chapter=70)

EXERCISES = (TURN, LIFT)
