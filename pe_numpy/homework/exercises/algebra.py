"""Exercises of chapter 70: a turn in one plane, and a lift in which a line is a product."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
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


def _turn(A=lambda a, b: np.outer(a, b) - np.outer(b, a), area=None, odd=np.sin, even=None):
    """Make the turn with one part replaced."""

    def made(a, b, n):
        dtype = np.result_type(a, b)
        a, b = a.astype(float), b.astype(float)
        generator = A(a, b)
        square = (a @ a) * (b @ b) - (a @ b) ** 2 if area is None else area(a, b)
        s = math.sqrt(max(square, 0)) or 1.0  # parallel: A is 0
        steps = np.asarray(n, float)[..., None, None]
        versed = (1 - np.cos(steps * s)) / s**2 if even is None else even(steps, s)
        turn = np.eye(len(a)) + odd(steps * s) / s * generator + versed * generator @ generator
        return turn.astype(dtype)

    return made


TURN = Exercise(
    "rank2_rotation",
    rank2_rotation,
    _turn_cases,
    (
        Mistake(
            "a and b exchanged",
            "A = a b^T - b a^T turns from b towards a. Yours turns the other way.",
            70,
            _turn(A=lambda a, b: np.outer(b, a) - np.outer(a, b)),
        ),
        Mistake(
            "1/s for 1/s^2",
            "A^2 holds s^2: the last term is (1 - cos ns)/s^2.",
            70,
            _turn(even=lambda n, s: (1 - np.cos(n * s)) / s),
        ),
        Mistake(
            "no 1/s^2 at all",
            "A^2 holds s^2: the last term is (1 - cos ns)/s^2.",
            70,
            _turn(even=lambda n, s: 1 - np.cos(n * s)),
        ),
        Mistake(
            "sin(ns) not divided by s",
            "A holds s: its term is sin(ns)/s.",
            70,
            lambda a, b, n: _turn(odd=lambda x: np.sin(x) * _area(a, b))(a, b, n),
        ),
        Mistake(
            "the product of the lengths for the area",
            "s is the area between a and b: subtract (a . b)^2.",
            70,
            _turn(area=lambda a, b: (a @ a) * (b @ b)),
        ),
        Mistake(
            "cos without its 1",
            "At n = 0 nothing turns: 1 - cos ns.",
            70,
            _turn(even=lambda n, s: -np.cos(n * s) / s**2),
        ),
        Mistake(
            "A symmetric",
            "A generator of rotations is skew: a b^T minus b a^T.",
            70,
            _turn(A=lambda a, b: np.outer(a, b) + np.outer(b, a)),
        ),
        Mistake(
            "first order alone",
            "I + nA is exp(nA) only where A^2 = 0.",
            70,
            _turn(odd=lambda x: x, even=lambda n, s: 0 * n),
        ),
    ),
    chapter=70,
)


def _area(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.astype(float), b.astype(float)
    return math.sqrt(max((a @ a) * (b @ b) - (a @ b) ** 2, 0))


# ---- the lift -----------------------------------------------------------------------------------


def _lift_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]]), 0.5)
    for dtype in DTYPES:
        q = rng.standard_normal((2, 3, 4, 5)).astype(dtype)  # (B, H, L, K)
        k = rng.standard_normal((2, 3, 6, 5)).astype(dtype)
        yield case(q, k, 0.25)
        yield case(q, k, np.array([0.5, 0.25, 0.125]))
        yield case(q[0, 0], k[0, 0], 1)


def _lift(ends=((1, 0), (0, 1)), entry=lambda K: -math.sqrt(K), place=(1, 0)):
    """Make the lift with one part replaced."""

    def made(q, k, slope):
        K, slope = q.shape[-1], np.asarray(slope)
        A = np.zeros((*slope.shape, K + 2, K + 2), q.dtype)
        A[..., K + place[0], K + place[1]] = entry(K) * slope
        lifted = [
            np.concatenate([x, np.tile(np.array(end, x.dtype), (*x.shape[:-1], 1))], axis=-1)
            for x, end in zip((q, k), ends, strict=True)
        ]
        return (*lifted, A)

    return made


LIFT = Exercise(
    "additive_lift",
    additive_lift,
    _lift_cases,
    (
        Mistake(
            "the past is raised",
            "The score is q . k / sqrt(K) minus slope (i - j): the entry of A is negative.",
            70,
            _lift(entry=math.sqrt),
        ),
        Mistake(
            "the slope is divided by sqrt(K) with the score",
            "ALiBi adds its line after the division: lift sqrt(K) times the slope.",
            70,
            _lift(entry=lambda K: -1.0),
        ),
        Mistake(
            "the root of the lifted width",
            "Scores are divided by the root of the width before the lift, K.",
            70,
            _lift(entry=lambda K: -math.sqrt(K + 2)),
        ),
        Mistake(
            "the entry across the diagonal",
            "A carries the 1 of the query, its component K + 1, to the last, where the key has "
            "its own.",
            70,
            _lift(place=(0, 1)),
        ),
        Mistake(
            "keys lifted as queries are",
            "The query ends in 1, 0 and the key in 0, 1: without a turn they do not meet.",
            70,
            _lift(ends=((1, 0), (1, 0))),
        ),
        Mistake(
            "queries and keys exchanged",
            "The query ends in 1, 0, since A acts on it.",
            70,
            _lift(ends=((0, 1), (1, 0))),
        ),
    ),
    chapter=70,
)

EXERCISES = (TURN, LIFT)
