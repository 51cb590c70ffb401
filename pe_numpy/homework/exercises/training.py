"""Exercises of the optimisers (chapter 61): gradients that are clipped, steps in a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, in_a_row
from pe_numpy.training.optimiser import adamw, clip_gradients, sgd, tree_map

DTYPES = (np.float64, np.float32)


def _tree(rng: np.random.Generator, dtype: Any = np.float64, size: float = 1.0) -> dict[str, Any]:
    """Parameters of a small layer, or their gradients."""
    draw = rng.standard_normal
    W, gain, bias = ((size * draw(shape)).astype(dtype) for shape in ((3, 2), 2, 2))
    return {"W": W, "norm": {"gain": gain, "bias": bias}}


def _leaves(tree: Any, like: Any) -> list[Any]:
    """The arrays of a nested dictionary, in the order of another one."""
    if not isinstance(like, dict):
        return [tree]
    if not isinstance(tree, dict) or tree.keys() != like.keys():
        got = f"the keys {list(tree)}" if isinstance(tree, dict) else type(tree).__name__
        raise TypeError(f"the result must be a dictionary with the keys {list(like)}; got {got}")
    return [leaf for key in like for leaf in _leaves(tree[key], like[key])]


def _two(result: Any, what: str) -> tuple:
    """Both results of a step."""
    if result is None:
        raise TypeError(f"it must return two things, {what}; got nothing: is there a return?")
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(f"it must return two things, {what}; got {type(result).__name__}")
    return tuple(result)


# ---- clip_gradients -----------------------------------------------------------------------------


def _clipped(function: Callable, grads: dict[str, Any], max_norm: float) -> tuple:
    """The arrays and the norm, which need not have more digits than the gradients."""
    new, norm = _two(function(grads, max_norm), "the gradients and their norm")
    least = min((g.dtype for g in _leaves(grads, grads)), key=lambda dtype: dtype.itemsize)
    return (*_leaves(new, grads), np.asarray(norm, least))


def _clip_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield in_a_row(_clipped, {"W": np.array([3.0]), "b": np.array([4.0])}, 1.25)
    yield in_a_row(_clipped, {"W": np.array([3.0]), "b": np.array([4.0])}, 8.0)  # short enough
    for dtype in DTYPES:
        for size in (0.01, 1.0, 30.0):
            yield in_a_row(_clipped, _tree(rng, dtype, size), float(rng.uniform(0.5, 2)))
    for max_norm in (0.1, 1.0, 2.5, 100.0):
        for small in (np.float32, np.float16):  # one number each: its norm is exact
            narrow = {"W": np.array([[0, 3]], small), "b": np.array([-4], small)}
            yield in_a_row(_clipped, {"0": _tree(rng), "1": narrow}, max_norm)


CLIP = Exercise("clip_gradients", clip_gradients, _clip_cases, chapter=61)

# ---- adamw --------------------------------------------------------------------------------------


def _adamw_steps(
    function: Callable, params: Any, grads: tuple, state: Any, *args: Any, **options: Any
) -> tuple:
    """One step for each of the gradients; the parameters after each, both moments at the end."""
    first, after, what = params, [], "the parameters and the state"
    for g in grads:
        params, state = _two(function(params, g, state, *args, **options), what)
        after += _leaves(params, first)
    if not isinstance(state, dict) or state.keys() != {"m", "v", "step"}:
        raise TypeError("the state must be a dictionary with the keys m, v and step")
    return (*after, *_leaves(state["m"], first), *_leaves(state["v"], first), state["step"])


def _begin(params: dict[str, Any]) -> dict[str, Any]:
    return {"m": tree_map(np.zeros_like, params), "v": tree_map(np.zeros_like, params), "step": 0}


def _large_decay(path: str, parameter: np.ndarray) -> bool:
    return bool(parameter.max() > 0.5)


def _gains_decay(path: str, parameter: np.ndarray) -> bool:
    return path in ("W", "norm/gain")


def _adamw_cases(rng: np.random.Generator) -> Iterator[Case]:
    def steps(count, *args, dtype=np.float64, size=1.0, **options):
        params = _tree(rng, dtype)
        grads = tuple(_tree(rng, dtype, size) for _ in range(count))
        return in_a_row(_adamw_steps, params, grads, _begin(params), *args, **options)

    one = {"b": np.array([1.0])}
    yield in_a_row(_adamw_steps, one, ({"b": np.array([5.0])},), _begin(one), 0.1)
    for dtype in DTYPES:
        yield steps(1, float(rng.uniform(0.01, 0.1)), dtype=dtype)
        yield steps(4, 0.05, dtype=dtype)
    yield steps(3, 0.1, betas=(0.8, 0.9))
    yield steps(3, 0.1, eps=0.3)
    yield steps(3, 0.1, size=1e-9, eps=1e-8)
    yield steps(3, 0.1, weight_decay=0.5)
    yield steps(3, 0.1, weight_decay=0.0)
    for decay in (_large_decay, _gains_decay):
        yield steps(3, 0.1, weight_decay=0.4, decay=decay)
        yield steps(2, 0.1, weight_decay=0.4, decay=decay)
    yield steps(2, 0.1, (0.5, 0.7), 0.01, 0.3, _gains_decay, dtype=np.float32)
    params = _tree(rng)  # in the middle of a training
    middle = {"m": _tree(rng), "v": tree_map(np.square, _tree(rng)), "step": 6}
    yield in_a_row(_adamw_steps, params, (_tree(rng), _tree(rng)), middle, 0.02)
    number = {"scale": np.array(2.0)}  # no axis: it does not decay
    yield in_a_row(_adamw_steps, number, (number,), _begin(number), 0.1, weight_decay=0.5)


ADAMW = Exercise("adamw", adamw, _adamw_cases, chapter=61)

# ---- sgd ----------------------------------------------------------------------------------------


def _sgd_steps(function: Callable, params: Any, grads: tuple, *args: Any, **options: Any) -> tuple:
    """One step for each of the gradients; the parameters after each, the velocities at the end."""
    first, after = params, []
    for g in grads:
        given = function(params, g, *args, **options)
        params, options["state"] = _two(given, "the parameters and the velocities")
        after += _leaves(params, first)
    return (*after, *_leaves(options["state"], first))


def _sgd_cases(rng: np.random.Generator) -> Iterator[Case]:
    def steps(count, *args, dtype=np.float64, **options):
        params = _tree(rng, dtype)
        grads = tuple(_tree(rng, dtype) for _ in range(count))
        return in_a_row(_sgd_steps, params, grads, *args, **options)

    two = ({"b": np.array([2.0])}, {"b": np.array([2.0])})
    yield in_a_row(_sgd_steps, {"b": np.array([1.0])}, two[:1], 0.25)
    yield in_a_row(_sgd_steps, {"b": np.array([1.0])}, two, 0.25, momentum=0.5)
    for dtype in DTYPES:
        yield steps(1, 0.1, dtype=dtype)
        yield steps(3, 0.1, dtype=dtype)
        for momentum in (0.5, 0.9):
            yield steps(4, float(rng.uniform(0.01, 0.2)), momentum, dtype=dtype)
    yield in_a_row(_sgd_steps, _tree(rng), (_tree(rng),), 0.1, 0.9, state=_tree(rng))
    yield in_a_row(_sgd_steps, _tree(rng), (_tree(rng),), 0.1, state=_tree(rng))  # forgotten


SGD = Exercise("sgd", sgd, _sgd_cases, chapter=61)

EXERCISES = (CLIP, ADAMW, SGD)
