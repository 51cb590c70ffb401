"""Exercises of chapter 43: turning in two and three dimensions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.rotary.nd import (
    axial_frequencies,
    mixed_frequencies,
    mrope_frequencies,
    mrope_positions,
    patch_coordinates,
    rope_nd,
)

# ---- the turn -----------------------------------------------------------------------------------


def _turn_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.array([[1.0, 0.0, 1.0, 0.0]])
    yield case(one, np.array([[1, 2]]), np.array([[1.0, 0.0], [0.0, 0.5]]))
    for dtype in (np.float64, np.float32, np.float16):
        x = rng.standard_normal((2, 6, 8)).astype(dtype)
        yield case(x, patch_coordinates(2, 3), axial_frequencies(8))
        yield case(x, patch_coordinates(2, 3, "centred"), axial_frequencies(8), layout="half")
        yield case(x, patch_coordinates(3, 2), mixed_frequencies(rng, 8))
        yield case(x, rng.integers(0, 9, (2, 6, 3)), mrope_frequencies((1, 1, 1)), layout="half")
        yield case(x, rng.integers(-300, 300, (1, 2)), rng.normal(0, 1, (2, 3)))  # one for all


TURN = Exercise("rope_nd", rope_nd, _turn_cases, chapter=43)

# ---- frequencies --------------------------------------------------------------------------------


def _axial_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(4)
    yield case(8)
    yield case(8, 2, float(rng.integers(200, 10**5)))
    yield case(8, base=float(rng.integers(200, 10**5)), spacing="alternate")
    yield case(24, 3, 100.0, "alternate")
    yield case(12, 3)
    yield case(64)
    for n in range(6):
        A = n % 3 + 1
        spacing = ("split", "alternate")[n % 2]
        yield case(2 * A * int(rng.integers(2, 9)), A, float(rng.integers(20, 10**5)), spacing)


AXIAL = Exercise("axial_frequencies", axial_frequencies, _axial_cases, chapter=43)


def _mixed_cases(rng: np.random.Generator) -> Iterator[Case]:
    for d, *given in ((4,), (8,), (8, 100.0), (64, 10.0)):
        yield case(np.random.default_rng(d), d, *given)
    for n in range(2, 10):
        base = float(rng.integers(5, 200))
        yield case(np.random.default_rng(int(rng.integers(2**32))), 4 * n, base)


MIXED = Exercise("mixed_frequencies", mixed_frequencies, _mixed_cases, chapter=43)

# ---- coordinates --------------------------------------------------------------------------------


def _patch_cases(rng: np.random.Generator) -> Iterator[Case]:
    for height, width in ((1, 2), *rng.integers(2, 9, (2, 2)).tolist(), (4, 4)):
        yield case(height, width)
        yield case(height, width, "centred")
    yield case(1, 3, trained=2)
    yield case(2, 3, "index", (4, 6))
    yield case(6, 4, trained=(3, 8))
    for n in range(6):
        height, width, *trained = rng.integers(2, 12, 4).tolist()
        yield case(height, width, *(("centred",), ("index", tuple(trained)))[n % 2])


PATCHES = Exercise("patch_coordinates", patch_coordinates, _patch_cases, chapter=43)

# ---- text, images and films ---------------------------------------------------------------------


def _mrope_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case((2, 1, 1))
    yield case((2, 1, 1), interleaved=True)
    yield case((2, 3, 3))
    yield case((4, 2, 2), float(rng.integers(50, 10**5)), True)
    yield case((16, 24, 24), 1e6)
    yield case((24, 20, 20), float(rng.integers(10**5, 10**7)), True)
    yield case((11, 11, 10), interleaved=True)
    for n in range(6):
        few = int(rng.integers(2, 9))
        yield case((few + 2, few, few + n % 2), float(rng.integers(50, 10**6)), n % 2 == 1)


MROPE = Exercise("mrope_frequencies", mrope_frequencies, _mrope_cases, chapter=43)


def _position_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case([3])
    yield case([2, (1, 2, 3), 1])
    yield case([(1, 1, 4), 2])
    yield case([1, (1, 3, 2), 0, (1, 2, 2), 3])
    yield case([2, (5, 2, 3), 2])  # a film longer than it is wide
    for _ in range(8):
        t, h, w, before, after = rng.integers(1, 6, 5).tolist()
        yield case([before, (t, h, w), after, (1, w, h)])


POSITIONS = Exercise("mrope_positions", mrope_positions, _position_cases, chapter=43)

EXERCISES = (TURN, AXIAL, MIXED, PATCHES, MROPE, POSITIONS)
