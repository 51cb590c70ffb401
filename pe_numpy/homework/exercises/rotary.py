"""Exercises of place 2: queries and keys turn (chapters 13 to 15)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.check import Case, Exercise, Mistake, case
from pe_numpy.rotary.rope import rope, rope_frequencies

# ---- rope ---------------------------------------------------------------------------------------


def _rope_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0]]), np.array([1]))  # one pair
    yield case(np.eye(4), np.array([0, 1, 2, 3]))  # two pairs, each component alone
    for layout in ("interleaved", "half"):
        for dtype in (np.float64, np.float32):
            x = rng.standard_normal((2, 3, 5, 8)).astype(dtype)  # (B, H, L, K)
            yield case(x, np.arange(5), layout=layout)
            yield case(x, np.arange(100, 105), layout=layout)  # a cache: not from 0
            yield case(x, rng.integers(0, 50, (2, 1, 5)), layout=layout)  # left padding
            yield case(x, np.arange(5) / 4, rope_frequencies(4, 500.0), layout=layout)  # partial
    yield case(rng.standard_normal((3, 6)).astype(np.float32), np.array([0, 10**5, 10**6]))


def _other_frequencies(exponent):
    def turned(x, positions, frequencies=None, layout="interleaved"):
        K = x.shape[-1]
        if frequencies is None:
            frequencies = 10000.0 ** exponent(np.arange(K // 2), K)
        return rope(x, positions, frequencies, layout)

    return turned


def _other_layout(x, positions, frequencies=None, layout="interleaved"):
    return rope(x, positions, frequencies, "half" if layout == "interleaved" else "interleaved")


def _turned_back(x, positions, frequencies=None, layout="interleaved"):
    return rope(x, -np.asarray(positions), frequencies, layout)


def _from_zero(x, positions, frequencies=None, layout="interleaved"):
    return rope(x, np.arange(x.shape[-2]), frequencies, layout)


def _from_one(x, positions, frequencies=None, layout="interleaved"):
    return rope(x, np.asarray(positions) + 1, frequencies, layout)


def _degrees(x, positions, frequencies=None, layout="interleaved"):
    return rope(x, np.deg2rad(positions), frequencies, layout)


def _one_sign(x, positions, frequencies=None, layout="interleaved"):
    """Both sines positive: no rotation."""
    cos_part = (
        rope(x, positions, frequencies, layout) + _turned_back(x, positions, frequencies, layout)
    ) / 2
    flipped = x.copy()
    n = 2 * len(frequencies) if frequencies is not None else x.shape[-1]
    seconds = slice(1, n, 2) if layout == "interleaved" else slice(n // 2, n)
    firsts = slice(0, n, 2) if layout == "interleaved" else slice(0, n // 2)
    sine_part = rope(flipped, positions, frequencies, layout) - cos_part
    result = cos_part.copy()
    result[..., firsts] -= sine_part[..., firsts]
    result[..., seconds] += sine_part[..., seconds]
    return result


ROPE = Exercise(
    "rope",
    rope,
    _rope_cases,
    (
        Mistake(
            "turned the other way",
            "A pair (a, b) becomes (a cos - b sin, a sin + b cos): the minus stands in the first "
            "row. Scores of q and k come out the same, but not together with anybody else's keys.",
            13,
            _turned_back,
        ),
        Mistake(
            "half-split for interleaved, or the other way round",
            "Interleaved pairs are components 2i and 2i + 1; half-split pairs i and i + K/2.",
            13,
            _other_layout,
        ),
        Mistake(
            "positions counted from 0 whatever was given",
            "Turn by the positions that are given: with a cache the new token is not at 0.",
            14,
            _from_zero,
        ),
        Mistake("positions counted from 1", "Position 0 is not turned at all.", 14, _from_one),
        Mistake(
            "exponent i/K for 2i/K",
            "theta_i = base^(-2i/K), with i the number of the pair.",
            13,
            _other_frequencies(lambda i, K: -i / K),
        ),
        Mistake(
            "exponent 4i/K for 2i/K",
            "If i counts components (0, 2, 4, ...), it is already twice the number of the pair.",
            13,
            _other_frequencies(lambda i, K: -4 * i / K),
        ),
        Mistake(
            "exponent without its minus",
            "The first pair turns fastest: theta_0 = 1, and the rest are smaller.",
            13,
            _other_frequencies(lambda i, K: 2 * i / K),
        ),
        Mistake(
            "pairs counted from 1",
            "With i = 0, 1, ..., K/2 - 1 the first frequency is exactly 1.",
            14,
            _other_frequencies(lambda i, K: -2 * (i + 1) / K),
        ),
        Mistake("degrees for radians", "Angles are radians.", 14, _degrees),
        Mistake(
            "both sines with a plus",
            "One of the two sines has a minus; else lengths are not kept.",
            13,
            _one_sign,
        ),
    ),
    chapter=13,
)

# ---- around it ----------------------------------------------------------------------------------


def _frequency_cases(rng: np.random.Generator) -> Iterator[Case]:
    for d in (2, 4, 6, 64):
        yield case(d)
    yield case(8, 500000.0)
    yield case(10, base=100.0)


FREQUENCIES = Exercise(
    "rope_frequencies",
    rope_frequencies,
    _frequency_cases,
    (
        Mistake(
            "exponent i/d for 2i/d",
            "Pair i has the exponent -2i/d.",
            13,
            lambda d, base=10000.0: base ** (-np.arange(d // 2) / d),
        ),
        Mistake(
            "exponent without its minus",
            "The first pair is the fastest: 1 radian per position.",
            13,
            lambda d, base=10000.0: 1 / rope_frequencies(d, base),
        ),
        Mistake(
            "pairs counted from 1",
            "i runs from 0 to d/2 - 1, so the first frequency is 1.",
            14,
            lambda d, base=10000.0: rope_frequencies(d, base) * base ** (-2 / d),
        ),
        Mistake(
            "one frequency for each component",
            "Two components make a pair and share a frequency: d/2 of them.",
            13,
            lambda d, base=10000.0: base ** (-2 * np.arange(d) / d),
        ),
        Mistake(
            "the base forgotten",
            "Use the base that is given: longer contexts use larger ones.",
            15,
            lambda d, base=10000.0: rope_frequencies(d),
        ),
        Mistake(
            "wavelengths for frequencies",
            "A frequency is radians per position; 2 pi divided by it is the wavelength.",
            15,
            lambda d, base=10000.0: 2 * np.pi / rope_frequencies(d, base),
        ),
    ),
    chapter=13,
)

EXERCISES = (ROPE, FREQUENCIES)
