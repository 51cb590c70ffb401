"""Exercises of chapter 45: rotations that fade, values that turn, polar coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.homework.measured import dot
from pe_numpy.rotary.pope import pope, pope_frequencies
from pe_numpy.rotary.rope import rope, rope_frequencies
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


SCALE = Exercise(
    "xpos_scale",
    xpos_scale,
    _scale_cases,
    (
        Mistake(
            "c/d for 2c/d",
            "2c/d runs from 0 to nearly 1 over the d/2 pairs.",
            45,
            lambda d, gamma=0.4: (np.arange(d // 2) / d + gamma) / (1 + gamma),
        ),
        Mistake(
            "not divided by 1 + gamma",
            "No pair may grow with the distance: dividing by 1 + gamma keeps zeta below 1.",
            45,
            lambda d, gamma=0.4: np.arange(0, d, 2) / d + gamma,
        ),
        Mistake(
            "fast and slow exchanged",
            "Pair 0 turns fastest and fades first: it has the least zeta.",
            45,
            lambda d, gamma=0.4: xpos_scale(d, gamma)[::-1],
        ),
        Mistake(
            "gamma forgotten",
            "Without gamma the first pair would be 0 at any distance.",
            45,
            lambda d, gamma=0.4: np.arange(0, d, 2) / d,
        ),
        Mistake(
            "one for each component",
            "Two components make a pair and share a scale: d/2 of them.",
            45,
            lambda d, gamma=0.4: np.repeat(xpos_scale(d, gamma), 2),
        ),
    ),
    chapter=45,
)


def _xpos_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0]]), np.array([512]), np.array([0.0]))  # one pair, not turned
    yield case(np.ones((1, 8)), np.array([3]))
    yield case(np.ones((1, 8)), np.array([1]), key=True)
    for layout in ("interleaved", "half"):
        for dtype in DTYPES:
            x = rng.standard_normal((2, 3, 5, 8)).astype(dtype)  # (B, H, L, K)
            for key in (False, True):
                yield case(x, np.arange(300, 305), key=key, layout=layout)
                yield case(x, rng.integers(0, 900, (2, 1, 5)), key=key, centre=250.0, layout=layout)
            yield case(x, np.arange(5) * 40, rope_frequencies(4), 64.0, layout=layout)  # partial


def _xpos(sign=lambda key: -1 if key else 1, centre=lambda centre, at: centre, sigma=lambda s: s):
    """Make xPos with one part of the exponent replaced."""

    def made(
        x,
        positions,
        frequencies=None,
        scale_base=512.0,
        key=False,
        centre_=0.0,
        layout="interleaved",
    ):
        at, theta = np.asarray(positions, float), frequencies
        theta = rope_frequencies(x.shape[-1]) if theta is None else theta
        zeta = np.tile if layout == "half" else np.repeat
        n = len(theta)
        logs = zeta(np.log(xpos_scale(2 * n)), 2)
        exponent = sign(key) * (at - centre(centre_, at)) / sigma(scale_base)
        factors = np.ones((*at.shape, x.shape[-1]))
        factors[..., : 2 * n] = np.exp(exponent[..., None] * logs)
        return rope(x, at, theta, layout) * factors.astype(x.dtype)

    def with_names(x, positions, *rest, **options):
        if "centre" in options:
            options["centre_"] = options.pop("centre")
        return made(x, positions, *rest, **options)

    return with_names


def _other_pairs(x, positions, frequencies=None, *rest, layout="interleaved", **options):
    """Turn one layout, scale the other."""
    other = "half" if layout == "interleaved" else "interleaved"
    still = np.zeros(x.shape[-1] // 2 if frequencies is None else len(frequencies))
    scaled = xpos(x, positions, still, *rest, layout=other, **options)
    return rope(scaled, positions, frequencies, layout)


XPOS = Exercise(
    "xpos",
    xpos,
    _xpos_cases,
    (
        Mistake(
            "keys scaled as queries are",
            "Keys get the opposite exponent: then the positions leave their difference. Else the "
            "score has zeta^(i + j).",
            45,
            _xpos(sign=lambda key: 1),
        ),
        Mistake(
            "queries and keys exchanged",
            "The query has the exponent +i, the key -j: with i - j the past fades. Yours lets "
            "it grow.",
            45,
            _xpos(sign=lambda key: 1 if key else -1),
        ),
        Mistake(
            "the centre taken from the positions at hand",
            "Use the centre that is given. With one that moves, keys in a cache keep an old one.",
            45,
            _xpos(centre=lambda given, at: (at.max() + 1) // 2),
        ),
        Mistake(
            "the centre forgotten",
            "The exponent is (position - centre)/scale_base.",
            45,
            _xpos(centre=lambda given, at: 0.0),
        ),
        Mistake(
            "not divided by the scale's base",
            "zeta itself is reached at a distance of scale_base, 512 by default.",
            45,
            _xpos(sigma=lambda s: 1.0),
        ),
        Mistake(
            "turned, not scaled",
            "That is RoPE: multiply each pair by zeta^((position - centre)/scale_base), too.",
            45,
            lambda x, positions, frequencies=None, *rest, layout="interleaved", **options: rope(
                x, positions, frequencies, layout
            ),
        ),
        Mistake(
            "scaled in the other layout",
            "Both components of a pair have one scale, and a pair is what turns together.",
            45,
            _other_pairs,
        ),
    ),
    chapter=45,
    scores=lambda f: lambda q, k, i, j: dot(f(q, i), f(k, j, key=True)),
    width=4,
)


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


VALUES = Exercise(
    "rotary_values",
    rotary_values,
    _value_cases,
    (
        Mistake(
            "not turned back",
            "The sum of turned values depends on where the text begins. Turn it back by the "
            "query's position; RoFormer's option rotary_value leaves that out.",
            45,
            lambda w, v, i, j, frequencies=None, layout="interleaved": (
                w @ rope(v, j, frequencies, layout)
            ),
        ),
        Mistake(
            "turned on, not back",
            "The query's turn is by -i: the distance is a difference.",
            45,
            lambda w, v, i, j, frequencies=None, layout="interleaved": rope(
                w @ rope(v, j, frequencies, layout), i, frequencies, layout
            ),
        ),
        Mistake(
            "turned by i - j for j - i",
            "A value turns by its own position, +j; the query takes back +i.",
            45,
            lambda w, v, i, j, frequencies=None, layout="interleaved": rotary_values(
                w, v, -i, -j, frequencies, layout
            ),
        ),
        Mistake(
            "values not turned",
            "Without positions all that is left is a weighted sum.",
            45,
            lambda w, v, i, j, frequencies=None, layout="interleaved": w @ v,
        ),
        Mistake(
            "queries counted from 0",
            "With a cache the queries are the newest: turn back by q_positions.",
            45,
            lambda w, v, i, j, frequencies=None, layout="interleaved": rotary_values(
                w, v, np.arange(w.shape[-2]), j, frequencies, layout
            ),
        ),
    ),
    chapter=45,
)


# ---- PoPE ---------------------------------------------------------------------------------------


def _frequency_cases(rng: np.random.Generator) -> Iterator[Case]:
    for d in (4, 3, 1, 64):
        yield case(d)
    yield case(8, 500.0)
    for _ in range(8):
        yield case(int(rng.integers(2, 40)), float(rng.integers(50, 10**6)))


FREQUENCIES = Exercise(
    "pope_frequencies",
    pope_frequencies,
    _frequency_cases,
    (
        Mistake(
            "2c/d for c/d",
            "Here each component has a frequency of its own: d of them, base^(-c/d).",
            45,
            lambda d, base=10000.0: base ** (-2 * np.arange(d) / d),
        ),
        Mistake(
            "those of RoPE, twice",
            "No two components share a frequency.",
            45,
            lambda d, base=10000.0: np.repeat(base ** (-np.arange(0, d, 2) / d), 2)[:d],
        ),
        Mistake(
            "only d/2 of them",
            "A component becomes a pair: there are d frequencies, and the result is 2d wide.",
            45,
            lambda d, base=10000.0: base ** (-np.arange(0, d, 2) / d),
        ),
        Mistake(
            "exponent without its minus",
            "The first is the fastest: 1 radian per position.",
            45,
            lambda d, base=10000.0: 1 / pope_frequencies(d, base),
        ),
    ),
    chapter=45,
)


def _pope_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[0.0, 1.0, -1.0]]), np.array([2]))
    yield case(np.array([[0.0, 1.0]]), np.array([0]), bias=np.array([-0.5, -7.0]))
    for dtype in DTYPES:
        x = rng.standard_normal((2, 3, 5, 4)).astype(dtype)  # (B, H, L, K)
        yield case(x, np.arange(100, 105))
        phase = rng.uniform(-9, 2, (3, 1, 4)).astype(dtype)
        yield case(x, rng.integers(0, 50, (2, 1, 5)), bias=phase)
        yield case(x, np.arange(5), pope_frequencies(4, 500.0), phase[0, 0])


def _pope(radius=lambda x: np.logaddexp(0, x), phase=lambda b: np.clip(b, -2 * math.pi, 0)):
    """PoPE with another radius or another phase."""

    def made(x, positions, frequencies=None, bias=0.0):
        theta = pope_frequencies(x.shape[-1]) if frequencies is None else frequencies
        angle = np.asarray(positions)[..., None] * theta + phase(bias)
        pairs = np.stack([radius(x) * np.cos(angle), radius(x) * np.sin(angle)], axis=-1)
        return pairs.reshape(*x.shape[:-1], -1).astype(x.dtype)

    return made


def _parts_apart(x, positions, frequencies=None, bias=0.0):
    pairs = pope(x, positions, frequencies, bias)
    return np.concatenate([pairs[..., ::2], pairs[..., 1::2]], axis=-1)


PHASE = np.array([-0.3, -1.0, -2.0, -4.0])

POPE = Exercise(
    "pope",
    pope,
    _pope_cases,
    (
        Mistake(
            "the component itself as radius",
            "A radius is not negative, or else the content turns by half a circle: softplus(x).",
            45,
            _pope(radius=lambda x: x),
        ),
        Mistake(
            "ReLU for softplus",
            "softplus(x) = ln(1 + e^x), 0.6931 at 0.",
            45,
            _pope(radius=lambda x: np.maximum(x, 0)),
        ),
        Mistake(
            "the phase not clamped",
            "delta is clamped to -2 pi .. 0 before it is added.",
            45,
            _pope(phase=lambda b: b),
        ),
        Mistake(
            "the phase forgotten",
            "Keys have a phase: the angle is position times frequency, plus delta.",
            45,
            _pope(phase=lambda b: 0 * b),
        ),
        Mistake(
            "the phase subtracted",
            "The angle is position times frequency, plus delta; in the score it stands with a "
            "minus.",
            45,
            _pope(phase=lambda b: -np.clip(b, -2 * math.pi, 0)),
        ),
        Mistake(
            "all cosines, then all sines",
            "The two parts of a component stand side by side. Scores would be the same, but "
            "other people's keys don't fit.",
            45,
            _parts_apart,
        ),
    ),
    chapter=45,
    scores=lambda f: lambda q, k, i, j: dot(f(q, i), f(k, j, bias=PHASE)),
    width=4,
)

EXERCISES = (SCALE, XPOS, VALUES, FREQUENCIES, POPE)
