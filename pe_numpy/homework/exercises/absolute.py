"""Exercises of place 1: the token vector (chapters 11 and 20 to 24)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.absolute.complex_order import complex_attention, complex_order
from pe_numpy.absolute.convolution import convolve
from pe_numpy.absolute.learned import hierarchical, learned
from pe_numpy.absolute.recurrent import floater, recurrent
from pe_numpy.absolute.sinusoidal import sinusoidal, sinusoidal_shift, wavelengths
from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.worker import FUNCTIONS as of
from pe_numpy.transformer.attention import attention

DTYPES = (np.float64, np.float32, np.float16)

# ---- chapter 11 ----------------------------------------------------------------------------------


def _bag_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    for dtype in DTYPES:
        yield case(rng.standard_normal((5, 4)).astype(dtype))
        yield case(rng.standard_normal((2, 3, 6)).astype(dtype))
    yield case(rng.standard_normal((2, 1, 3, 4)))
    yield case(40 * np.sign(rng.standard_normal((3, 4))))  # exp overflows
    yield case(np.array([[600.0], [1.0], [-2.0]]) * rng.standard_normal((3, 4)))


def pooled_attention(x: np.ndarray) -> np.ndarray:
    """Mean of the outputs of attention in which every token is its own query, key and value."""
    return attention(x, x, x)[0].mean(axis=-2)


# ---- chapter 20 ----------------------------------------------------------------------------------


def _code_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 1]), 2)
    yield case(np.array([2]), 4)
    yield case(np.arange(5), 6)
    yield case(np.arange(100, 104), 8, base=float(rng.integers(50, 900)))
    yield case(np.array([[0, 7], [0.5, -3]]), 4)
    yield case(np.arange(3) + int(rng.integers(90)), 8, layout="concatenated")
    yield case(np.array([10**6]), 64)
    yield case(np.array(3), 4)  # a position by itself, of shape ()
    for n in range(6):
        layout = ("interleaved", "concatenated")[n % 2]
        at, D = rng.integers(0, 5000, (2, n + 1)[n // 3 :]), 2 * int(rng.integers(2, 9))
        yield case(at, D, float(rng.integers(50, 10**5)), layout)


def _shift_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(1, 2)
    yield case(3, 4)
    yield case(-2, 6, base=100.0)
    yield case(0.5, 16)
    for _ in range(9):
        offset, D = round(float(rng.normal(0, 9)), 2), 2 * int(rng.integers(2, 9))
        yield case(offset, D, float(rng.integers(50, 10**5)))


def _wave_cases(rng: np.random.Generator) -> Iterator[Case]:
    for d in (2, 4, 64):
        yield case(d)
    yield case(8, base=500000.0)
    for _ in range(9):
        yield case(2 * int(rng.integers(2, 40)), float(rng.integers(50, 10**6)))


# ---- chapter 21 ----------------------------------------------------------------------------------


def _learned_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0, 1]))
    yield case(rng.standard_normal((5, 3)), np.array(2))  # a position by itself, of shape ()
    for dtype in DTYPES:
        table = rng.standard_normal((7, 4)).astype(dtype)
        yield case(table, np.array([2, 3, 4]))
        yield case(table, np.array([[0, 6], [5, 5]]))


def _tree_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0], [3.0]]), np.arange(4), 0.25)
    for dtype in DTYPES:
        table = rng.standard_normal((5, 4)).astype(dtype)
        yield case(table, np.arange(25))
        yield case(table, np.array([[0, 24], [7, 11]]), alpha=0.1)


# ---- chapter 22 ----------------------------------------------------------------------------------


def _step_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([4.0]), of["halved"], 3)
    yield case(np.array([1.0, 0.0]), of["halved"], 1)
    yield case(np.array([1.0, 0.0]), of["turned"], 6)
    yield case(np.array([3, 1]), of["halved"], 4)  # whole numbers: codes are float64
    yield case(np.array([3, 1], np.float32), of["stretched"], 4)
    for n in range(8):
        yield case(rng.standard_normal(n % 3 + 2).astype(DTYPES[n % 3]), of["tanh"], n + 3)


def _flow_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([1.0]), of["decay"], np.array([0.0, 1.0]), 1)
    yield case(np.array([1.0, 0.0]), of["turned"], np.arange(5.0))
    yield case(np.array([1.0]), of["growing"], np.array([0.0, 0.5, 2.0]))
    yield case(np.array([2.0]), of["driven"], np.array([1.0, 1.5]), 2)
    yield case(np.array([2, 3]), of["decay"], np.array([0.0, 1.0]), 2)  # whole numbers
    yield case(np.array([2.0, 3.0], np.float32), of["driven"], np.array([1.0, 1.5, 3]), 4)
    yield case(np.array([2.0]), of["driven"], np.array([1.5, 1.0, -1.0]), 3)  # back in time
    yield case(np.array([2.0, 1.0]), of["driven"], np.array([0.5]))  # the start alone
    for n in range(8):
        times = np.sort(rng.uniform(0, 3, n % 4 + 2)).round(2)
        yield case(rng.standard_normal(n % 3 + 1), of["waving"], times, n + 1)


# ---- chapters 23 and 24 -------------------------------------------------------------------------


def _signal_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.ones(4), np.array([0.2, 0.5, 0.3]))
    for dtype in DTYPES:
        x = rng.standard_normal((2, 3, 7)).astype(dtype)
        w = rng.standard_normal(5).astype(dtype)
        yield case(x, w)
        yield case(x, w, padding="circular")
    yield case(rng.standard_normal(3), np.array([2.0]))


def _order_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.ones((2, 1))
    yield case(one, np.array([np.pi / 2]), np.zeros(1), np.array([0, 1]))
    for dtype in DTYPES[:2]:
        r, w, phase = rng.standard_normal((3, 2, 5, 4)).astype(dtype)
        yield case(r, w, phase, np.arange(5))
        yield case(r, w[0, 0], phase[0], np.array([[3, 4, 5, 6, 7], [0, 0, 0, 1, 2]]))
    yield case(r, w.astype(float), phase.astype(float), np.array([-3, 0.5, 7, -1, 90]))


def _complex_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1j]]), np.array([[1j], [-1j]]), np.array([[1.0 + 0j], [3.0 + 0j]]))
    for dtype in (np.complex128, np.complex64):
        parts = rng.standard_normal((2, 3, 6, 4)) + 1j * rng.standard_normal((2, 3, 6, 4))
        q, k = parts.astype(dtype)
        yield case(q[:, :5], k, 2 * k)
    yield case(q[0], k[0], q[1])  # as many queries as keys
    far = np.array([[3000.0], [1.0], [-3000.0]], np.float32)  # exp overflows, not in each row
    yield case(far * q[0, :3], k[0], k[1])


EXERCISES = (
    Exercise("pooled_attention", pooled_attention, _bag_cases, chapter=11),
    Exercise("sinusoidal", sinusoidal, _code_cases, chapter=20),
    Exercise("sinusoidal_shift", sinusoidal_shift, _shift_cases, chapter=20),
    Exercise("wavelengths", wavelengths, _wave_cases, chapter=20),
    Exercise("learned", learned, _learned_cases, chapter=21),
    Exercise("hierarchical", hierarchical, _tree_cases, chapter=21),
    Exercise("recurrent", recurrent, _step_cases, chapter=22),
    Exercise("floater", floater, _flow_cases, chapter=22),
    Exercise("convolve", convolve, _signal_cases, chapter=23),
    Exercise("complex_order", complex_order, _order_cases, chapter=24),
    Exercise("complex_attention", complex_attention, _complex_cases, chapter=24),
)
