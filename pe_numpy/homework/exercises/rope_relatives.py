"""Exercises of chapter 45: rotations that fade, values that turn, polar coordinates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.rotary.pope import pope, pope_frequencies
from pe_numpy.rotary.rope import rope_frequencies
from pe_numpy.rotary.values import rotary_values
from pe_numpy.rotary.xpos import xpos, xpos_scale

DTYPES = (np.float64, np.float32)


# ---- xPos ---------------------------------------------------------------------------------------


def _scale_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(8)
    yield case(2)
    yield case(64)
    yield case(6, 1.5)
    yield case(12, gamma=0.1)
    for _ in range(8):
        yield case(2 * int(rng.integers(2, 40)), round(float(rng.uniform(0.05, 3)), 2))


SCALE = Exercise("xpos_scale", xpos_scale, _scale_cases, chapter=45)


def _xpos_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0]]), np.array([512]), np.array([0.0]))  # one pair, not turned
    yield case(np.ones((1, 8)), np.array([3]))
    yield case(np.ones((1, 8)), np.array([1]), key=True)
    for layout in ("interleaved", "half"):
        for dtype in DTYPES:
            x = rng.standard_normal((2, 3, 5, 8)).astype(dtype)  # (B, H, L, K)
            for key in (False, True):
                yield case(x, np.arange(300, 305), key=key, layout=layout)
            yield case(x, np.arange(5) * 40, rope_frequencies(4), 64.0, layout=layout)  # partial
        for key in (False, True):
            at = rng.integers(0, 900, (2, 1, 5))
            yield case(x, at, key=key, centre=250.0, layout=layout)
        theta, one = rng.uniform(0.01, 2, 3), rng.integers(-600, 0, 1) / 2  # one place for all
        yield case(x.astype(np.float16), one, theta, centre=-100.0, layout=layout)


XPOS = Exercise("xpos", xpos, _xpos_cases, chapter=45)

# ---- values -------------------------------------------------------------------------------------


def _value_cases(rng: np.random.Generator) -> Iterator[Case]:
    rows = np.array([(1.0, 0, 0), (0.5, 0.5, 0), (0.2, 0.3, 0.5)])
    v = np.array([(1.0, 0), (0, 1), (1, 1)])
    yield case(rows, v, np.arange(3), np.arange(3))
    yield case(rows, v, np.arange(100, 103), np.arange(100, 103))
    for layout in ("interleaved", "half"):
        for dtype in DTYPES:
            weights = rng.uniform(0, 1, (2, 3, 4, 6)).astype(dtype)
            v = rng.standard_normal((2, 3, 6, 8)).astype(dtype)
            yield case(weights, v, np.arange(2, 6), np.arange(6), layout=layout)  # a cache
            at = rng.integers(0, 30, (2, 1, 6))
            yield case(weights, v, at[..., 2:], at, rope_frequencies(4), layout)
        theta, far = rng.uniform(0.01, 2, 4), rng.integers(-600, 0, 6) / 2
        yield case(weights, v, np.array([-150.5]), far, theta, layout)  # one place for all queries


VALUES = Exercise("rotary_values", rotary_values, _value_cases, chapter=45)

# ---- PoPE ---------------------------------------------------------------------------------------


def _frequency_cases(rng: np.random.Generator) -> Iterator[Case]:
    for d in (4, 3, 1, 64):
        yield case(d)
    yield case(8, 500.0)
    for _ in range(8):
        yield case(int(rng.integers(2, 40)), float(rng.integers(50, 10**6)))


FREQUENCIES = Exercise("pope_frequencies", pope_frequencies, _frequency_cases, chapter=45)


def _pope_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[0.0, 1.0, -1.0]]), np.array([2]))
    yield case(np.array([[0.0, 1.0]]), np.array([0]), bias=np.array([-0.5, -7.0]))
    for dtype in (*DTYPES, np.float16):
        x = rng.standard_normal((2, 3, 5, 4)).astype(dtype)  # (B, H, L, K)
        yield case(x, np.arange(100, 105))
        phase = rng.uniform(-9, 2, (3, 1, 4)).astype(dtype)
        yield case(x, rng.integers(0, 50, (2, 1, 5)), bias=phase)
        yield case(x, np.arange(5), pope_frequencies(4, 500.0), phase[0, 0])
    for dtype in DTYPES:
        x = rng.choice([-1000, 1000], (5, 4)).astype(dtype)  # e^x overflows
        yield case(x, rng.integers(-600, 0, 5) / 2)
        yield case(x, np.array([137]), rng.uniform(0.01, 2, 4))  # one position for all


POPE = Exercise("pope", pope, _pope_cases, chapter=45)

EXERCISES = (SCALE, XPOS, VALUES, FREQUENCIES, POPE)
