"""Exercises of chapter 36: functions of the distance between T5 and ALiBi."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.relative.fire import fire_bias
from pe_numpy.relative.kerple import kerple_log_bias, kerple_power_bias
from pe_numpy.relative.sandwich import sandwich_bias

DTYPES = (np.float64, np.float32)


# All pairs of a sentence; a cache; far apart, and keys ahead; a batch of two.
DISTANCES = [
    *(
        np.array(q)[:, None] - np.array(k)
        for q, k in ((range(4), range(4)), (range(3, 6), range(6)), ([300, 1], [0, 50, 9]))
    ),
    np.stack([np.arange(6).reshape(2, 3), -np.ones((2, 3), int)]),
]


# ---- KERPLE -------------------------------------------------------------------------------------


def _kerple_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0.5]), np.array([0.25]), np.array([[0, -1], [1, 0]]))
    for dtype in DTYPES:
        for distance in DISTANCES:
            yield case(*rng.uniform(0.1, 1.9, (2, 3)).astype(dtype), distance)
    yield case(*rng.uniform(0.1, 1.9, (2, 3)).astype(np.float16), DISTANCES[0])


# ---- Sandwich -----------------------------------------------------------------------------------


def _sandwich_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(2, np.array([[0, -1], [1, 0]]), d=4)
    for distance in DISTANCES:
        yield case(int(rng.integers(2, 17)), distance)
        yield case(3, distance, 6, float(rng.integers(20, 900)))
    for n in range(4):
        distance = rng.integers(-20, 20, (2, 3, 4)[n % 2 :])
        H, d = (int(size) for size in rng.integers(1, 9, 2))
        yield case(H, distance, 2 * d, float(rng.integers(20, 10**5)))


# ---- FIRE ---------------------------------------------------------------------------------------


def _network(
    rng: np.random.Generator, M: int, H: int, c: float, L: float, dtype: type = np.float64
) -> dict[str, np.ndarray]:
    shapes = {"W1": (1, M), "b1": (M,), "W2": (M, H), "b2": (H,)}
    params: dict[str, np.ndarray] = {
        key: rng.standard_normal(shape).astype(dtype) for key, shape in shapes.items()
    }
    return params | {"c": np.array(c, dtype), "L": np.array(L, dtype)}


def _fire_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = {"W1": [[1.0]], "b1": [0.0], "W2": [[1.0]], "b2": [0.0], "c": 1.0, "L": 2.0}
    unit = {key: np.array(x) for key, x in one.items()}
    yield case(unit, np.array([2, 4]), np.array([0, 1]))
    for dtype in DTYPES:
        for q, k in ((range(4), range(4)), (range(12), range(9)), ([3, 300], [0, 2, 95])):
            for c in (0.1, -0.4):
                yield case(_network(rng, 5, 3, c, 6.0, dtype), np.array(q), np.array(k))
    yield case(_network(rng, 5, 3, 0.1, 6.0, np.float16), np.arange(9), np.arange(9))
    two = np.array([[0, 8], [7, 9]]), np.array([[0, 1], [5, 6]])
    yield case(_network(rng, 5, 3, 0.1, 6.0), *two)
    for eps in (1e-3, 0.1, 0.5):
        params = _network(rng, int(rng.integers(1, 7)), 2, *rng.uniform(0.1, 9, 2))
        yield case(params, rng.integers(0, 20, 5), rng.integers(0, 20, 6), eps)


EXERCISES = (
    Exercise("kerple_log_bias", kerple_log_bias, _kerple_cases, chapter=36),
    Exercise("kerple_power_bias", kerple_power_bias, _kerple_cases, chapter=36),
    Exercise("sandwich_bias", sandwich_bias, _sandwich_cases, chapter=36),
    Exercise("fire_bias", fire_bias, _fire_cases, chapter=36),
)
