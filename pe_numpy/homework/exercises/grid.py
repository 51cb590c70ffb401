"""Exercises of chapter 25: positions on a grid."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.absolute.fourier import fourier_features
from pe_numpy.absolute.grid import detr_sine, sinusoidal_2d
from pe_numpy.absolute.learned import resize_matrix
from pe_numpy.absolute.sinusoidal import sinusoidal, timing_signal
from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake


def _timing_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 1]), 4)
    yield case(np.array([3]), 5)
    yield case(np.array([7, 8]), 2)
    yield case(np.array([[0, 10], [0.5, -3]]), 8)
    yield case(np.arange(4), 6, min_timescale=2.0, max_timescale=50.0)
    for n in range(8):
        low, high = round(float(rng.uniform(0.2, 4)), 2), float(rng.integers(10, 10**4))
        yield case(rng.integers(0, 500, (2, n + 1)[n % 2 :]), int(rng.integers(4, 14)), low, high)


def _timing(exponent=lambda h: np.arange(h) / max(h - 1, 1), lo=lambda x: x, order=(0, 1, 2)):
    def code(positions, d_model, min_timescale=1.0, max_timescale=10000.0):
        h = d_model // 2
        w = lo(min_timescale) * (min_timescale / max_timescale) ** exponent(h)
        angles = np.asarray(positions)[..., None] * w
        parts = [np.sin(angles), np.cos(angles), np.zeros((*angles.shape[:-1], d_model % 2))]
        return np.concatenate([parts[n] for n in order], axis=-1)

    return code


TIMING = Exercise(
    "timing_signal",
    timing_signal,
    _timing_cases,
    (
        Mistake(
            "the paper's frequencies",
            "Here the last frequency is lo^2/hi exactly: the exponents run from 0 to 1, in n - 1 "
            "steps.",
            25,
            _timing(lambda h: np.arange(h) / h),
        ),
        Mistake(
            "interleaved",
            "All sines come first, then all cosines, then the column of an odd width.",
            25,
            lambda positions, d_model, min_timescale=1.0, max_timescale=10000.0: timing_signal(
                positions, d_model, min_timescale, max_timescale
            )[
                ...,
                np.r_[np.arange(d_model // 2 * 2).reshape(2, -1).T.ravel(), d_model - 1][:d_model],
            ],
        ),
        Mistake(
            "the zero in front",
            "An odd width gets its zeros in the last column.",
            25,
            _timing(order=(2, 0, 1)),
        ),
        Mistake(
            "divided by n - 1 = 0",
            "For D = 2 and 3 there is one pair: take 1 for n - 1, or 0/0 makes everything nan.",
            25,
            _timing(lambda h: np.arange(h) / (h - 1 or np.nan)),
        ),
        Mistake(
            "lo divides",
            "In the library's code lo multiplies: the first frequency is lo itself.",
            25,
            _timing(lo=lambda x: 1 / x),
        ),
    ),
    chapter=25,
)


def _grid_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(2, 1, 4)
    yield case(3, 5, 8)
    yield case(1, 4, 12, base=100.0)
    for n in range(9):
        height, width = n % 4 + 1, int(rng.integers(2, 7))
        yield case(height, width, 4 * int(rng.integers(1, 5)), float(rng.integers(20, 10**5)))


GRID = Exercise(
    "sinusoidal_2d",
    sinusoidal_2d,
    _grid_cases,
    (
        Mistake(
            "row and column exchanged",
            "The first half codes the row, the second the column.",
            25,
            lambda height, width, d_model, base=10000.0: np.swapaxes(
                sinusoidal_2d(width, height, d_model, base), 0, 1
            ),
        ),
        Mistake(
            "interleaved halves",
            "Each half has its sines first, then its cosines.",
            25,
            lambda height, width, d_model, base=10000.0: sinusoidal_2d(
                height, width, d_model, base
            )[..., np.arange(d_model).reshape(2, 2, -1).swapaxes(1, 2).ravel()],
        ),
        Mistake(
            "sines of both axes first",
            "Row first: its sines and cosines, then those of the column. (timm's default has the "
            "sines of both axes first.)",
            25,
            lambda height, width, d_model, base=10000.0: sinusoidal_2d(
                height, width, d_model, base
            )[..., np.arange(d_model).reshape(2, 2, -1).swapaxes(0, 1).ravel()],
        ),
        Mistake(
            "one long line of cells",
            "A cell has two coordinates; counting through the rows loses who is above whom.",
            25,
            lambda height, width, d_model, base=10000.0: sinusoidal(
                np.arange(height * width).reshape(height, width), d_model, base
            ),
        ),
    ),
    chapter=25,
    further=(
        Mistake(
            "the frequencies of the whole width",
            "Each half runs through all its frequencies: the exponent is 2i over D/2.",
            25,
            lambda height, width, d_model, base=10000.0: sinusoidal_2d(
                height, width, d_model, base**0.5
            ),
        ),
        Mistake(
            "row and column added up",
            "Each has half of the components.",
            25,
            lambda height, width, d_model, base=10000.0: (
                sinusoidal(np.arange(height), d_model, base, "concatenated")[:, None]
                + sinusoidal(np.arange(width), d_model, base, "concatenated")
            ),
        ),
    ),
)


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


def _counted(
    start=0, axes=(0, 1), end=2 * math.pi, mask_of=lambda m: m, layout="interleaved", first=1
):
    def code(mask, d_model, temperature=10000.0, normalize=True):
        real, halves = mask_of(np.asarray(mask)), []
        for axis in axes:
            at = real.cumsum(axis=axis, dtype=float) - 1 + first
            if normalize:
                at = at / (np.take(at, [-1], axis) + 1e-6) * end
            halves.append(sinusoidal(at + start, d_model // 2, temperature, layout))
        return np.concatenate(halves, axis=-1)

    return code


DETR = Exercise(
    "detr_sine",
    detr_sine,
    _mask_cases,
    (
        Mistake(
            "counted from 0",
            "The first real cell counts 1: a cumulative sum of the mask.",
            25,
            _counted(start=-1),
        ),
        Mistake(
            "column before row",
            "The first half codes the row: count downwards, along axis 0.",
            25,
            _counted(axes=(1, 0)),
        ),
        Mistake(
            "padding counted",
            "Count real cells alone, and divide by the last count, not by the size of the grid.",
            25,
            _counted(mask_of=np.ones_like),
        ),
        Mistake(
            "the mask upside down",
            "True is a real cell here. (DETR's own mask is True at padding, and its code turns it "
            "round first.)",
            25,
            _counted(mask_of=np.logical_not),
        ),
        Mistake(
            "all sines first",
            "In each half sines and cosines alternate.",
            25,
            _counted(layout="concatenated"),
        ),
        Mistake(
            "2 pi forgotten",
            "Normalised counts are multiplied by 2 pi.",
            25,
            _counted(end=1.0),
        ),
    ),
    chapter=25,
    further=(
        Mistake(
            "counted from 0, then divided",
            "The first real cell counts 1, also before the counts are divided by the last.",
            25,
            _counted(first=0),
        ),
    ),
)


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


def _resized(at=None, a=None, wide=None, whole=True, beyond=True):
    def matrix(old, new, mode="linear", align_corners=False, antialias=False):
        r = np.arange(new)
        corners, cells = r * (old - 1) / max(new - 1, 1), (r + 0.5) * old / new - 0.5
        place = (corners if align_corners else cells) if at is None else at(r, old, new, corners)
        stretch = max(old / new, 1) if antialias and wide is None else 1
        x = np.abs(place[:, None] - np.arange(-9, old + 9)) / stretch
        b = (-0.5 if antialias else -0.75) if a is None else a
        tail = np.where(x < 2, b * (((x - 5) * x + 8) * x - 4), 0)
        cubic = np.where(x < 1, ((b + 2) * x - (b + 3)) * x * x + 1, tail)
        W = np.maximum(1 - x, 0) if mode == "linear" else cubic
        inner = W[:, 9:-9].copy()
        if antialias:
            return inner / inner.sum(axis=1, keepdims=True) if whole else inner
        if beyond:
            inner[:, 0] += W[:, :9].sum(axis=1)
            inner[:, -1] += W[:, -9:].sum(axis=1)
        return inner

    return matrix


RESIZE = Exercise(
    "resize_matrix",
    resize_matrix,
    _resize_cases,
    (
        Mistake(
            "no half pixel",
            "Rows are cells with a middle: (r + 1/2) old/new - 1/2.",
            25,
            _resized(at=lambda r, old, new, corners: r * old / new),
        ),
        Mistake(
            "corners always",
            "Without align_corners the ends of the line keep their place, not the middles of the "
            "first and last cell.",
            25,
            _resized(at=lambda r, old, new, corners: corners),
        ),
        Mistake(
            "cells always",
            "With align_corners row r stands at r (old-1)/(new-1).",
            25,
            _resized(at=lambda r, old, new, corners: (r + 0.5) * old / new - 0.5),
        ),
        Mistake(
            "a = -1/2 always",
            "Plain cubic has a = -3/4; -1/2 belongs to antialias.",
            25,
            _resized(a=-0.5),
        ),
        Mistake(
            "a = -3/4 always",
            "With antialias the cubic kernel has a = -1/2.",
            25,
            _resized(a=-0.75),
        ),
        Mistake(
            "antialias without a wider kernel",
            "When the table shrinks, divide distances by old/new, so that no old row is left out.",
            25,
            _resized(wide=1),
        ),
        Mistake(
            "antialias not divided by its sum",
            "What is cut off at the ends is missing: divide each row by the sum of its weights.",
            25,
            _resized(whole=False),
        ),
        Mistake(
            "nothing beyond the ends",
            "Without antialias the first and last row go on: add the weights beyond to theirs.",
            25,
            _resized(beyond=False),
        ),
    ),
    chapter=25,
)


def _wave_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0.125]), np.array([[1.0]]))
    yield case(np.array([0.125, 0.25]), np.diag([1.0, 2.0]))
    for dtype in (np.float64, np.float32):
        x = rng.standard_normal((2, 5, 2)).astype(dtype)
        yield case(x, rng.standard_normal((3, 2)).astype(dtype))


def _features(turn=2 * math.pi, order=(0, 1), pairs=False):
    def code(x, B):
        angles = turn * (np.asarray(x, np.float64) @ np.asarray(B, np.float64).T)
        parts = [(np.cos(angles), np.sin(angles))[n] for n in order]
        if pairs:
            return np.stack(parts, axis=-1).reshape(*angles.shape[:-1], -1)
        return np.concatenate(parts, axis=-1)

    return code


FOURIER = Exercise(
    "fourier_features",
    fourier_features,
    _wave_cases,
    (
        Mistake(
            "sines first",
            "Cosines first, as in the paper's text. (Its code and SAM have the sines first.)",
            25,
            _features(order=(1, 0)),
        ),
        Mistake(
            "without 2 pi",
            "B counts turns: the angle is 2 pi B x.",
            25,
            _features(turn=1.0),
        ),
        Mistake(
            "pi for 2 pi",
            "A whole turn is 2 pi. (NeRF's formula has pi: its B begins at 1/2.)",
            25,
            _features(turn=math.pi),
        ),
        Mistake(
            "interleaved",
            "All cosines, then all sines.",
            25,
            _features(pairs=True),
        ),
    ),
    chapter=25,
)

EXERCISES = (TIMING, GRID, DETR, RESIZE, FOURIER)
