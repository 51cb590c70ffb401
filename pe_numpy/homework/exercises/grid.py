"""Exercises of chapter 25: positions on a grid."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.absolute.fourier import fourier_features
from pe_numpy.absolute.grid import detr_sine, sinusoidal_2d
from pe_numpy.absolute.learned import resize_matrix
from pe_numpy.absolute.sinusoidal import timing_signal
from pe_numpy.homework.cases import Case, Exercise, case


def _timing_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 1]), 4)
    yield case(np.array([3]), 5)
    yield case(np.array([7, 8]), 2)
    yield case(np.array([7, 8]), 3, 2.0)
    yield case(np.array([[0, 10], [0.5, -3]]), 8)
    yield case(np.arange(4), 6, min_timescale=2.0, max_timescale=50.0)
    yield case(np.array(3), 4)  # a position by itself, of shape ()
    for n in range(8):
        low, high = round(float(rng.uniform(0.2, 4)), 2), float(rng.integers(10, 10**4))
        yield case(rng.integers(0, 500, (2, n + 1)[n % 2 :]), int(rng.integers(4, 14)), low, high)


def _grid_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(2, 1, 4)
    yield case(3, 5, 8)
    yield case(1, 4, 12, base=100.0)
    for n in range(9):
        height, width = n % 4 + 1, int(rng.integers(2, 7))
        yield case(height, width, 4 * int(rng.integers(1, 5)), float(rng.integers(20, 10**5)))


def _mask_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.ones((2, 3), bool), 4)
    yield case(np.ones((1, 2), bool), 8, normalize=False)
    padded = np.zeros((4, 5), bool)
    padded[:3, :2] = True
    yield case(padded, 12)
    yield case(padded, 12, temperature=20.0, normalize=False)
    for n in range(8):
        mask = rng.random((n % 3 + 2, 5)) < 0.7
        mask[0, 0] = True
        T = float(rng.integers(20, 10**5))
        yield case(mask, 4 * int(rng.integers(1, 5)), temperature=T, normalize=n % 2 == 0)


def _resize_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(2, 4)
    n, m = (int(size) for size in rng.integers(3, 10, 2))
    for old, new in ((n, n + m), (n + m, m), (n, n), (m, 1), (1, n)):
        for mode in ("linear", "cubic"):
            yield case(old, new, mode)
            yield case(old, new, mode, True)
            yield case(old, new, mode, antialias=True)
    for n in range(6):
        old, new = (int(size) for size in rng.integers(2, 12, 2))
        yield case(old, new, ("linear", "cubic")[n % 2], n % 3 == 1, n % 3 == 2)


def _wave_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0.125]), np.array([[1.0]]))
    yield case(np.array([0.125, 0.25]), np.diag([1.0, 2.0]))
    for dtype in (np.float64, np.float32):
        x = rng.standard_normal((2, 5, 2)).astype(dtype)
        yield case(x, rng.standard_normal((3, 2)).astype(dtype))


EXERCISES = (
    Exercise("timing_signal", timing_signal, _timing_cases, chapter=25),
    Exercise("sinusoidal_2d", sinusoidal_2d, _grid_cases, chapter=25),
    Exercise("detr_sine", detr_sine, _mask_cases, chapter=25),
    Exercise("resize_matrix", resize_matrix, _resize_cases, chapter=25),
    Exercise("fourier_features", fourier_features, _wave_cases, chapter=25),
)
