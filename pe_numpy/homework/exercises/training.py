"""Exercises of the optimisers (chapter 61): gradients that are clipped, steps in a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, in_a_row
from pe_numpy.homework.worker import FUNCTIONS as of
from pe_numpy.homework.worker import adamw_steps, clipped, sgd_steps
from pe_numpy.training.optimiser import adamw, clip_gradients, sgd, tree_map

DTYPES = (np.float64, np.float32)


def _tree(rng: np.random.Generator, dtype: Any = np.float64, size: float = 1.0) -> dict[str, Any]:
    """Parameters of a small layer, or their gradients."""
    draw = rng.standard_normal
    W, gain, bias = ((size * draw(shape)).astype(dtype) for shape in ((3, 2), 2, 2))
    return {"W": W, "norm": {"gain": gain, "bias": bias}}


# ---- clip_gradients -----------------------------------------------------------------------------


def _clip_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield in_a_row(clipped, {"W": np.array([3.0]), "b": np.array([4.0])}, 1.25)
    yield in_a_row(clipped, {"W": np.array([3.0]), "b": np.array([4.0])}, 8.0)  # short enough
    for dtype in DTYPES:
        for size in (0.01, 1.0, 30.0):
            yield in_a_row(clipped, _tree(rng, dtype, size), float(rng.uniform(0.5, 2)))
    for max_norm in (0.1, 1.0, 2.5, 100.0):
        for small in (np.float32, np.float16):  # one number each: its norm is exact
            narrow = {"W": np.array([[0, 3]], small), "b": np.array([-4], small)}
            yield in_a_row(clipped, {"0": _tree(rng), "1": narrow}, max_norm)


CLIP = Exercise("clip_gradients", clip_gradients, _clip_cases, chapter=61)

# ---- adamw --------------------------------------------------------------------------------------


def _begin(params: dict[str, Any]) -> dict[str, Any]:
    return {"m": tree_map(np.zeros_like, params), "v": tree_map(np.zeros_like, params), "step": 0}


def _adamw_cases(rng: np.random.Generator) -> Iterator[Case]:
    def steps(count, *args, dtype=np.float64, size=1.0, **options):
        params = _tree(rng, dtype)
        grads = tuple(_tree(rng, dtype, size) for _ in range(count))
        return in_a_row(adamw_steps, params, grads, _begin(params), *args, **options)

    one = {"b": np.array([1.0])}
    yield in_a_row(adamw_steps, one, ({"b": np.array([5.0])},), _begin(one), 0.1)
    for dtype in DTYPES:
        yield steps(1, float(rng.uniform(0.01, 0.1)), dtype=dtype)
        yield steps(4, 0.05, dtype=dtype)
    yield steps(3, 0.1, betas=(0.8, 0.9))
    yield steps(3, 0.1, eps=0.3)
    yield steps(3, 0.1, size=1e-9, eps=1e-8)
    yield steps(3, 0.1, weight_decay=0.5)
    yield steps(3, 0.1, weight_decay=0.0)
    for decay in (of["large_decay"], of["gains_decay"]):
        yield steps(3, 0.1, weight_decay=0.4, decay=decay)
        yield steps(2, 0.1, weight_decay=0.4, decay=decay)
    yield steps(2, 0.1, (0.5, 0.7), 0.01, 0.3, of["gains_decay"], dtype=np.float32)
    params = _tree(rng)  # in the middle of a training
    middle = {"m": _tree(rng), "v": tree_map(np.square, _tree(rng)), "step": 6}
    yield in_a_row(adamw_steps, params, (_tree(rng), _tree(rng)), middle, 0.02)
    number = {"scale": np.array(2.0)}  # no axis: it does not decay
    yield in_a_row(adamw_steps, number, (number,), _begin(number), 0.1, weight_decay=0.5)


ADAMW = Exercise("adamw", adamw, _adamw_cases, chapter=61)

# ---- sgd ----------------------------------------------------------------------------------------


def _sgd_cases(rng: np.random.Generator) -> Iterator[Case]:
    def steps(count, *args, dtype=np.float64, **options):
        params = _tree(rng, dtype)
        grads = tuple(_tree(rng, dtype) for _ in range(count))
        return in_a_row(sgd_steps, params, grads, *args, **options)

    two = ({"b": np.array([2.0])}, {"b": np.array([2.0])})
    yield in_a_row(sgd_steps, {"b": np.array([1.0])}, two[:1], 0.25)
    yield in_a_row(sgd_steps, {"b": np.array([1.0])}, two, 0.25, momentum=0.5)
    for dtype in DTYPES:
        yield steps(1, 0.1, dtype=dtype)
        yield steps(3, 0.1, dtype=dtype)
        for momentum in (0.5, 0.9):
            yield steps(4, float(rng.uniform(0.01, 0.2)), momentum, dtype=dtype)
    yield in_a_row(sgd_steps, _tree(rng), (_tree(rng),), 0.1, 0.9, state=_tree(rng))
    yield in_a_row(sgd_steps, _tree(rng), (_tree(rng),), 0.1, state=_tree(rng))  # forgotten


SGD = Exercise("sgd", sgd, _sgd_cases, chapter=61)

EXERCISES = (CLIP, ADAMW, SGD)
