"""Exercises of place 1: the token vector (chapters 11 and 20 to 24)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from pe_numpy.absolute.complex_order import complex_attention, complex_order
from pe_numpy.absolute.convolution import convolve
from pe_numpy.absolute.learned import hierarchical, learned
from pe_numpy.absolute.recurrent import floater, recurrent
from pe_numpy.absolute.sinusoidal import (
    sinusoidal,
    sinusoidal_shift,
    wavelengths,
)
from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.homework.measured import in_token, random
from pe_numpy.transformer.attention import softmax

DTYPES = (np.float64, np.float32)

# ---- chapter 11 ----------------------------------------------------------------------------------


def _bag_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    for dtype in DTYPES:
        yield case(rng.standard_normal((5, 4)).astype(dtype))
        yield case(rng.standard_normal((2, 3, 6)).astype(dtype))


def _bag(axis=-1, factor=lambda D: D**-0.5, pooled=-2):
    def mean(x):
        scores = x @ np.swapaxes(x, -1, -2) * x.dtype.type(factor(x.shape[-1]))
        weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
        weights /= weights.sum(axis=axis, keepdims=True)
        return (weights @ x).mean(axis=pooled)

    return mean


def pooled_attention(x: np.ndarray) -> np.ndarray:
    """Mean of the outputs of attention in which every token is its own query, key and value."""
    return _bag()(x)


POOLED = Exercise(
    "pooled_attention",
    pooled_attention,
    _bag_cases,
    (
        Mistake(
            "softmax over the queries",
            "The weights of one query sum to 1: the last axis, that of the keys. Over the queries, "
            "the pooled output is the mean of the words.",
            11,
            _bag(axis=-2),
        ),
        Mistake(
            "not scaled",
            "Scores are divided by the root of the width.",
            11,
            _bag(factor=lambda D: 1.0),
        ),
        Mistake(
            "scaled by the width for its root",
            "Scores are divided by the root of the width.",
            11,
            _bag(factor=lambda D: 1 / D),
        ),
    ),
    chapter=11,
)

# ---- chapter 20 ----------------------------------------------------------------------------------


def _code_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 1]), 2)
    yield case(np.array([2]), 4)
    yield case(np.arange(5), 6)
    yield case(np.arange(100, 104), 8, base=float(rng.integers(50, 900)))
    yield case(np.array([[0, 7], [0.5, -3]]), 4)
    yield case(np.arange(3) + int(rng.integers(90)), 8, layout="concatenated")
    yield case(np.array([10**6]), 64)
    for n in range(6):
        layout = ("interleaved", "concatenated")[n % 2]
        at, D = rng.integers(0, 5000, (2, n + 1)[n % 2 :]), 2 * int(rng.integers(2, 9))
        yield case(at, D, float(rng.integers(50, 10**5)), layout)


def _code(exponent=lambda i, D: -2 * i / D, always=None, start=0, trade=False, cosine=None):
    def code(positions, d_model, base=10000.0, layout="interleaved"):
        i, at = np.arange(d_model // 2), (np.asarray(positions) + start)[..., None]
        angles = at * base ** exponent(i, d_model)
        others = at * base ** (cosine or exponent)(i, d_model)
        parts = [np.sin(angles), np.cos(others)][:: -1 if trade else 1]
        if (always or layout) == "concatenated":
            return np.concatenate(parts, axis=-1)
        return np.stack(parts, axis=-1).reshape(*angles.shape[:-1], d_model)

    return code


def _component_code(sine, cosine, dtype=np.float64):
    """Sines and cosines with exponents of their own."""

    def code(positions, d_model, base=10000.0, layout="interleaved"):
        i, at = np.arange(d_model // 2), np.asarray(positions).astype(dtype)[..., None]
        s = np.sin(at * (base ** sine(i, d_model)).astype(dtype))
        c = np.cos(at * (base ** cosine(i, d_model)).astype(dtype))
        if layout == "concatenated":
            return np.concatenate([s, c], axis=-1).astype(np.float64)
        return np.stack([s, c], axis=-1).reshape(*s.shape[:-1], d_model).astype(np.float64)

    return code


SINUSOIDAL = Exercise(
    "sinusoidal",
    sinusoidal,
    _code_cases,
    (
        Mistake(
            "exponent 4i/D for 2i/D",
            "In 10000^(2i/d) i numbers pairs: 0, 1, 2, ... The even components are 2i already.",
            20,
            _code(lambda i, D: -4 * i / D),
        ),
        Mistake(
            "exponent i/D for 2i/D",
            "Pair i has the exponent 2i/d: the last is close to 1.",
            20,
            _code(lambda i, D: -i / D),
        ),
        Mistake(
            "multiplied for divided",
            "The position is divided by 10000^(2i/d): later pairs are slower.",
            20,
            _code(lambda i, D: 2 * i / D),
        ),
        Mistake(
            "pairs counted from 1",
            "i runs from 0 to d/2 - 1: the first sine is that of the position itself.",
            20,
            _code(lambda i, D: -2 * (i + 1) / D),
        ),
        Mistake(
            "positions counted from 1",
            "Position 0 has the sines 0 and the cosines 1.",
            20,
            _code(start=1),
        ),
        Mistake(
            "sines and cosines exchanged",
            "The even components are sines, the odd ones cosines.",
            20,
            _code(trade=True),
        ),
        Mistake(
            "all sines first",
            "Interleaved: sine, cosine, sine, cosine.",
            20,
            _code(always="concatenated"),
        ),
        Mistake(
            "a frequency for each component",
            "A sine and its cosine share a frequency; else a shift is no rotation.",
            20,
            _code(lambda i, D: -2 * i / D, cosine=lambda i, D: -(2 * i + 1) / D),
        ),
    ),
    chapter=20,
    scores=lambda f: in_token(lambda i: f(i, 8)),
    further=(
        Mistake(
            "a loop over even i that doubles them, with 2(i + 1) for the cosine",
            "If i counts components (0, 2, 4, ...), it is 2i already; and a sine and "
            "its cosine share a frequency.",
            20,
            _component_code(lambda i, D: -4 * i / D, lambda i, D: -2 * (2 * i + 1) / D),
        ),
        Mistake(
            "D/2 - 1 in the exponent",
            "That is the spacing of tensor2tensor; in the paper the last wave is below 2 pi base.",
            25,
            _code(lambda i, D: -i / max(D // 2 - 1, 1)),
        ),
        Mistake(
            "angles in float32",
            "Far positions times a frequency lose their digits: compute in float64.",
            20,
            _component_code(lambda i, D: -2 * i / D, lambda i, D: -2 * i / D, np.float32),
        ),
        Mistake(
            "sines alone",
            "The odd components are cosines.",
            20,
            lambda positions, d_model, base=10000.0, layout="interleaved": np.sin(
                np.asarray(positions)[..., None]
                * (np.tile if layout == "concatenated" else np.repeat)(
                    base ** (-np.arange(0, d_model, 2) / d_model), 2
                )
            ),
        ),
    ),
)


def _shift_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(1, 2)
    yield case(3, 4)
    yield case(-2, 6, base=100.0)
    yield case(0.5, 16)
    for _ in range(9):
        offset, D = round(float(rng.normal(0, 9)), 2), 2 * int(rng.integers(2, 9))
        yield case(offset, D, float(rng.integers(50, 10**5)))


SHIFT = Exercise(
    "sinusoidal_shift",
    sinusoidal_shift,
    _shift_cases,
    (
        Mistake(
            "the shift back",
            "PE(pos + offset) = M PE(pos): the plus stands in the row of the sine.",
            20,
            lambda offset, d_model, base=10000.0: sinusoidal_shift(-offset, d_model, base),
        ),
        Mistake(
            "blocks for all sines first",
            "A sine and its cosine are neighbours: 2 x 2 blocks along the diagonal.",
            20,
            lambda offset, d_model, base=10000.0: sinusoidal_shift(offset, d_model, base)[
                np.ix_(*[np.r_[0:d_model:2, 1:d_model:2]] * 2)
            ],
        ),
        Mistake(
            "the same angle in every block",
            "Each pair turns by the offset times its own frequency.",
            20,
            lambda offset, d_model, base=10000.0: sinusoidal_shift(offset, d_model, 1.0),
        ),
    ),
    chapter=20,
)


def _wave_cases(rng: np.random.Generator) -> Iterator[Case]:
    for d in (2, 4, 64):
        yield case(d)
    yield case(8, base=500000.0)
    for _ in range(9):
        yield case(2 * int(rng.integers(2, 40)), float(rng.integers(50, 10**6)))


WAVES = Exercise(
    "wavelengths",
    wavelengths,
    _wave_cases,
    (
        Mistake(
            "without 2 pi",
            "A wave is complete when the angle is 2 pi.",
            20,
            lambda d_model, base=10000.0: wavelengths(d_model, base) / (2 * math.pi),
        ),
        Mistake(
            "frequencies for wavelengths",
            "A wavelength grows with the pair: 2 pi base^(2i/d).",
            20,
            lambda d_model, base=10000.0: 4 * math.pi**2 / wavelengths(d_model, base),
        ),
        Mistake(
            "pairs counted from 1",
            "i runs from 0 to d/2 - 1: the first wave is 2 pi, the longest below 2 pi base.",
            20,
            lambda d_model, base=10000.0: (
                2 * math.pi * base ** (np.arange(1, d_model // 2 + 1) * 2 / d_model)
            ),
        ),
    ),
    chapter=20,
    further=(
        Mistake(
            "spread up to 2 pi times the base",
            "Pair i has 2 pi base^(2i/d): the last is below 2 pi base.",
            20,
            lambda d_model, base=10000.0: 2 * math.pi * np.geomspace(1, base, d_model // 2),
        ),
    ),
)

# ---- chapter 21 ----------------------------------------------------------------------------------


def _learned_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0, 1]))
    for dtype in DTYPES:
        table = rng.standard_normal((7, 4)).astype(dtype)
        yield case(table, np.array([2, 3, 4]))
        yield case(table, np.array([[0, 6], [5, 5]]))


LEARNED = Exercise(
    "learned",
    learned,
    _learned_cases,
    (
        Mistake(
            "the first rows whatever the positions",
            "Look up the positions that are given: with a cache the first is not 0.",
            21,
            lambda table, positions: np.resize(
                table[np.arange(np.shape(positions)[-1])], (*np.shape(positions), table.shape[1])
            ),
        ),
        Mistake(
            "positions counted from 1",
            "Row 0 is for position 0.",
            21,
            lambda table, positions: np.roll(table, 1, axis=0)[positions],
        ),
        Mistake(
            "components for positions",
            "A row of the table is a position, a column a component.",
            21,
            lambda table, positions: np.moveaxis(table, 0, -1)[
                np.asarray(positions) % table.shape[1]
            ],
        ),
    ),
    chapter=21,
    scores=lambda f: in_token(lambda i: f(random(128, 8), i)),
)


def _tree_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0], [3.0]]), np.arange(4), 0.25)
    for dtype in DTYPES:
        table = rng.standard_normal((5, 4)).astype(dtype)
        yield case(table, np.arange(25))
        yield case(table, np.array([[0, 24], [7, 11]]), alpha=0.1)


def _tree(u_of=lambda E, a: (E - a * E[:1]) / (1 - a), trade=False):
    def codes(table, positions, alpha=0.4):
        u, N = u_of(table, alpha), len(table)
        high, low = np.divmod(positions, N)
        if trade:
            high, low = low, high
        return (alpha * u[high] + (1 - alpha) * u[low]).astype(table.dtype)

    return codes


TREE = Exercise(
    "hierarchical",
    hierarchical,
    _tree_cases,
    (
        Mistake(
            "the table's rows for u",
            "u is made so that the first N positions keep their trained vectors.",
            21,
            _tree(lambda E, a: E),
        ),
        Mistake(
            "the two indices exchanged",
            "Position iN + j: alpha goes with i, the slow index.",
            21,
            _tree(trade=True),
        ),
        Mistake(
            "not divided by 1 - alpha",
            "u = (E - alpha E_0) / (1 - alpha).",
            21,
            _tree(lambda E, a: E - a * E[:1]),
        ),
        Mistake(
            "alpha fixed",
            "Use the alpha that is given.",
            21,
            lambda table, positions, alpha=0.4: hierarchical(table, positions),
        ),
    ),
    chapter=21,
    scores=lambda f: in_token(lambda i: f(random(32, 8), i)),
)

# ---- chapter 22 ----------------------------------------------------------------------------------


def _halved(p):
    return 0.5 * p + 1


def _step_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([4.0]), _halved, 3)
    yield case(np.array([1.0, 0.0]), _halved, 1)
    yield case(np.array([1.0, 0.0]), lambda p: np.array([p[1], -p[0]]), 6)
    yield case(np.array([3, 1]), _halved, 4)  # whole numbers: codes are float64
    yield case(np.array([3, 1], np.float32), lambda p: p * np.array([0.5, 2.0]), 4)
    for n in range(8):
        yield case(rng.standard_normal(n % 3 + 2).astype(DTYPES[n % 2]), np.tanh, n + 3)


RECURRENT = Exercise(
    "recurrent",
    recurrent,
    _step_cases,
    (
        Mistake(
            "the start left out",
            "The first code is the start itself.",
            22,
            lambda start, step, length: recurrent(step(start), step, length),
        ),
        Mistake(
            "one step from the start each time",
            "Each code comes from the one before it, not from the start.",
            22,
            lambda start, step, length: np.stack([start] + [step(start)] * (length - 1)),
        ),
        Mistake(
            "one code too many",
            "`length` codes: the start and length - 1 steps.",
            22,
            lambda start, step, length: recurrent(start, step, length + 1),
        ),
    ),
    chapter=22,
)


def _decay(p, t):
    return -p


def _flow_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([1.0]), _decay, np.array([0.0, 1.0]), 1)
    yield case(np.array([1.0, 0.0]), lambda p, t: np.array([p[1], -p[0]]), np.arange(5.0))
    yield case(np.array([1.0]), lambda p, t: t * p, np.array([0.0, 0.5, 2.0]))
    yield case(np.array([2.0]), lambda p, t: -p + t, np.array([1.0, 1.5]), 2)
    yield case(np.array([2, 3]), _decay, np.array([0.0, 1.0]), 2)  # whole numbers
    yield case(np.array([2.0, 3.0], np.float32), lambda p, t: -p + t, np.array([1.0, 1.5, 3]), 4)
    for n in range(8):
        times = np.sort(rng.uniform(0, 3, n % 4 + 2)).round(2)
        yield case(rng.standard_normal(n % 3 + 1), lambda p, t: np.cos(t) - p * p, times, n + 1)


def _euler(start, derivative, times, substeps=8, order=1):
    codes = [start]
    for t, end in pairwise(times):
        p, h = codes[-1], (end - t) / substeps
        for n in range(substeps):
            now = t + n * h
            slope = derivative(p, now)
            p = p + h * (slope if order == 1 else derivative(p + h / 2 * slope, now + h / 2))
        codes.append(p)
    return np.stack(codes)


FLOATER = Exercise(
    "floater",
    floater,
    _flow_cases,
    (
        Mistake(
            "Euler's step",
            "Runge-Kutta takes four slopes a step; Euler's rule one.",
            22,
            _euler,
        ),
        Mistake(
            "the midpoint rule",
            "Runge-Kutta of order 4: slopes k1, k2, k3, k4 with the weights 1, 2, 2, 1.",
            22,
            lambda start, derivative, times, substeps=8: _euler(
                start, derivative, times, substeps, order=2
            ),
        ),
        Mistake(
            "time stands still within an interval",
            "The derivative depends on t: give it the time of each slope.",
            22,
            lambda start, derivative, times, substeps=8: floater(
                start,
                lambda p, t: derivative(p, times[np.searchsorted(times, t, side="right") - 1]),
                times,
                substeps,
            ),
        ),
        Mistake(
            "one step for each interval",
            "Each interval is cut into `substeps` steps.",
            22,
            lambda start, derivative, times, substeps=8: floater(start, derivative, times, 1),
        ),
    ),
    chapter=22,
)

# ---- chapters 23 and 24 -------------------------------------------------------------------------


def _signal_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.ones(4), np.array([0.2, 0.5, 0.3]))
    for dtype in DTYPES:
        x = rng.standard_normal((2, 3, 7)).astype(dtype)
        w = rng.standard_normal(5).astype(dtype)
        yield case(x, w)
        yield case(x, w, padding="circular")
    yield case(rng.standard_normal(3), np.array([2.0]))


def _border_repeated(x, kernel, padding="zero"):
    if padding == "circular":
        return convolve(x, kernel, padding)
    m, L = len(kernel) // 2, x.shape[-1]
    wide = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(m, m)], mode="edge")
    return convolve(wide, kernel)[..., m : m + L]


CONVOLVE = Exercise(
    "convolve",
    convolve,
    _signal_cases,
    (
        Mistake(
            "the kernel turned round",
            "Here w_(j+m) meets x_(i+j), as in neural networks: no flip. (np.convolve flips.)",
            23,
            lambda x, kernel, padding="zero": convolve(x, kernel[::-1], padding),
        ),
        Mistake(
            "always zeros beyond the border",
            "With circular padding the other end stands beyond the border.",
            23,
            lambda x, kernel, padding="zero": convolve(x, kernel),
        ),
        Mistake(
            "always circular",
            "np.roll brings in the other end; with zero padding zeros come in.",
            23,
            lambda x, kernel, padding="zero": convolve(x, kernel, "circular"),
        ),
        Mistake(
            "the past alone",
            "The kernel's middle lies on the position itself, with m weights on either side.",
            23,
            lambda x, kernel, padding="zero": convolve(
                x, np.concatenate([kernel, np.zeros(len(kernel) - 1, kernel.dtype)]), padding
            ),
        ),
    ),
    chapter=23,
    further=(
        Mistake(
            "the border repeated",
            "Zeros lie beyond the border, not the first and the last number again.",
            23,
            _border_repeated,
        ),
    ),
)


def _order_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.ones((2, 1))
    yield case(one, np.array([np.pi / 2]), np.zeros(1), np.array([0, 1]))
    for dtype in DTYPES:
        r, w, phase = rng.standard_normal((3, 2, 5, 4)).astype(dtype)
        yield case(r, w, phase, np.arange(5))
        yield case(r, w[0, 0], phase[0], np.array([[3, 4, 5, 6, 7], [0, 0, 0, 1, 2]]))


ORDER = Exercise(
    "complex_order",
    complex_order,
    _order_cases,
    (
        Mistake(
            "turned the other way",
            "The angle grows with the position: exp(+i ...).",
            24,
            lambda r, w, phase, positions: np.conj(complex_order(r, w, phase, positions)),
        ),
        Mistake(
            "the phase turned, too",
            "omega pos + theta: the phase is where the turn begins, whatever the position.",
            24,
            lambda r, w, phase, positions: complex_order(r, w + phase, 0 * phase, positions),
        ),
        Mistake(
            "the phase forgotten",
            "omega pos + theta: each component begins at a phase of its own.",
            24,
            lambda r, w, phase, positions: complex_order(r, w, 0 * phase, positions),
        ),
        Mistake(
            "the real part alone",
            "The result is complex.",
            24,
            lambda r, w, phase, positions: complex_order(r, w, phase, positions).real,
        ),
    ),
    chapter=24,
)


def _complex_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1j]]), np.array([[1j], [-1j]]), np.array([[1.0 + 0j], [3.0 + 0j]]))
    for dtype in (np.complex128, np.complex64):
        parts = rng.standard_normal((2, 3, 6, 4)) + 1j * rng.standard_normal((2, 3, 6, 4))
        q, k = parts.astype(dtype)
        yield case(q[:, :5], k, 2 * k)


def _of_the_modulus(q, k, v):
    product = q @ np.swapaxes(k, -1, -2).conj()
    weights = softmax(np.abs(product) / math.sqrt(q.shape[-1]))
    return weights @ v, weights


COMPLEX = Exercise(
    "complex_attention",
    complex_attention,
    _complex_cases,
    (
        Mistake(
            "without the conjugate",
            "The Hermitian product conjugates the keys; else no score depends on the distance.",
            24,
            lambda q, k, v: complex_attention(q, k.conj(), v),
        ),
        Mistake(
            "the imaginary part",
            "Scores are the real part of the product.",
            24,
            lambda q, k, v: complex_attention(-1j * q, k, v),
        ),
        Mistake(
            "not scaled",
            "Divide by the root of D.",
            24,
            lambda q, k, v: complex_attention(q * q.real.dtype.type(q.shape[-1] ** 0.5), k, v),
        ),
        Mistake(
            "the values conjugated",
            "Only the keys are conjugated, and only in the score.",
            24,
            lambda q, k, v: complex_attention(q, k, v.conj()),
        ),
    ),
    chapter=24,
    further=(
        Mistake(
            "the modulus",
            "Scores are the real part of the product, in place of the modulus that the paper "
            "prints: that hides the angle between query and key.",
            24,
            _of_the_modulus,
        ),
        Mistake(
            "scaled by the root of 2 D",
            "D counts complex components: divide by the root of D.",
            24,
            lambda q, k, v: complex_attention(q * q.real.dtype.type(0.5**0.5), k, v),
        ),
    ),
)

EXERCISES = (
    POOLED,
    SINUSOIDAL,
    SHIFT,
    WAVES,
    LEARNED,
    TREE,
    RECURRENT,
    FLOATER,
    CONVOLVE,
    ORDER,
    COMPLEX,
)
