"""Exercises of the optimisers (chapter 61): gradients that are clipped, steps in a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, in_a_row
from pe_numpy.homework.known import Mistake
from pe_numpy.training.optimiser import adamw, clip_gradients, sgd, tree_map

DTYPES = (np.float64, np.float32)


def _tree(rng: np.random.Generator, dtype: Any = np.float64, size: float = 1.0) -> dict[str, Any]:
    """Parameters of a small layer, or their gradients."""
    draw = rng.standard_normal
    return {
        "W": (size * draw((3, 2))).astype(dtype),
        "norm": {
            "gain": (size * draw(2)).astype(dtype),
            "bias": (size * draw(2)).astype(dtype),
        },
    }


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
    new, norm = _two(function(grads, max_norm), "the gradients and their norm")
    return (*_leaves(new, grads), norm)


def _clip_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield in_a_row(_clipped, {"W": np.array([3.0]), "b": np.array([4.0])}, 1.25)
    yield in_a_row(_clipped, {"W": np.array([3.0]), "b": np.array([4.0])}, 8.0)  # short enough
    for dtype in DTYPES:
        for size in (0.01, 1.0, 30.0):
            yield in_a_row(_clipped, _tree(rng, dtype, size), float(rng.uniform(0.5, 2)))
    for max_norm in (0.1, 1.0, 2.5, 100.0):
        yield in_a_row(_clipped, {"0": _tree(rng), "1": _tree(rng, np.float32)}, max_norm)


def _clip(
    factor: Callable[[float, float], float] = lambda norm, most: min(1.0, most / norm),
    power: Callable[[float], float] = math.sqrt,
    told: Callable[[float, float], float] = lambda norm, factor: norm,
) -> Callable:
    """Clipping with one part of it replaced."""

    def wrong(grads, max_norm):
        squares = [float((leaf.astype(float) ** 2).sum()) for leaf in _leaves(grads, grads)]
        norm = power(sum(squares))
        by = factor(norm, max_norm)
        return tree_map(lambda g: g * by, grads), told(norm, by)

    return wrong


def _one_by_one(grads, max_norm):
    norms = [float(np.linalg.norm(g.astype(float))) for g in _leaves(grads, grads)]

    def clip(g):
        return g * min(1.0, max_norm / float(np.linalg.norm(g.astype(float))))

    return tree_map(clip, grads), math.hypot(*norms)


CLIP = Exercise(
    "clip_gradients",
    clip_gradients,
    _clip_cases,
    (
        Mistake(
            "each array by its own norm",
            "One norm, of all arrays together, and one factor: or the direction of the step turns.",
            61,
            _one_by_one,
        ),
        Mistake(
            "each number cut off",
            "Cutting off numbers turns the gradient: multiply all of them by one factor.",
            61,
            lambda grads, max_norm: (
                tree_map(lambda g: np.clip(g, -max_norm, max_norm), grads),
                clip_gradients(grads, max_norm)[1],
            ),
        ),
        Mistake(
            "short gradients made longer",
            "A norm below the largest one stays as it is: the factor is at most 1.",
            61,
            _clip(lambda norm, most: most / norm),
        ),
        Mistake(
            "the root forgotten",
            "The norm is the root of the sum of all squares.",
            61,
            _clip(power=float),
        ),
        Mistake(
            "the norm after clipping",
            "Return the norm before clipping: it tells how large the gradients were.",
            61,
            _clip(told=lambda norm, by: norm * by),
        ),
        Mistake(
            "a small number added to the norm",
            "PyTorch divides by norm + 1e-6. Where the norm is above the largest one it is not 0.",
            61,
            _clip(lambda norm, most: min(1.0, most / (norm + 1e-6))),
        ),
        Mistake(
            "all divided by the norm",
            "The norm is to be max_norm, not 1: multiply by max_norm / norm.",
            61,
            _clip(lambda norm, most: 1 / norm if norm > most else 1.0),
        ),
    ),
    chapter=61,
)

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


def _all_decay(path: str, parameter: np.ndarray) -> bool:
    return True


def _gains_decay(path: str, parameter: np.ndarray) -> bool:
    return path == "norm/gain"


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
    yield steps(3, 0.1, weight_decay=0.4, decay=_all_decay)
    yield steps(3, 0.1, weight_decay=0.4, decay=_gains_decay)
    yield steps(2, 0.1, (0.5, 0.7), 0.01, 0.3, _gains_decay, dtype=np.float32)
    params = _tree(rng)  # in the middle of a training
    middle = {"m": _tree(rng), "v": tree_map(np.square, _tree(rng)), "step": 6}
    yield in_a_row(_adamw_steps, params, (_tree(rng), _tree(rng)), middle, 0.02)


def _adamw(
    *,
    default=(0.9, 0.98),
    default_eps=1e-9,
    corrected=True,
    coupled=False,
    everything=False,
    share=lambda eta, lam: eta * lam,
    root=lambda v, eps: np.sqrt(v) + eps,
    step=lambda state: state["step"] + 1,
    kept=lambda state, step: step,
) -> Callable:
    """AdamW with one part of it replaced."""

    def wrong(
        params, grads, state, learning_rate,
        betas=default, eps=default_eps, weight_decay=0.01, decay=None,
    ):  # fmt: skip
        t = step(state)
        new = {"params": {}, "m": {}, "v": {}}

        def walk(p, g, m, v, into, path=""):
            for key in p:
                name = f"{path}/{key}" if path else key
                if isinstance(p[key], dict):
                    below = [part.setdefault(key, {}) for part in into]
                    walk(p[key], g[key], m[key], v[key], below, name)
                    continue
                old, slope = p[key], g[key]
                lam = weight_decay
                if not everything and not (old.ndim > 1 if decay is None else decay(name, old)):
                    lam = 0.0
                if coupled:
                    slope = slope + lam * old
                mean = betas[0] * m[key] + (1 - betas[0]) * slope
                power = betas[1] * v[key] + (1 - betas[1]) * slope * slope
                by = (1 - betas[0] ** t, 1 - betas[1] ** t) if corrected else (1, 1)
                moved = old - learning_rate * (mean / by[0]) / root(power / by[1], eps)
                if not coupled:
                    moved = moved - share(learning_rate, lam) * old
                for part, value in zip(into, (moved, mean, power), strict=True):
                    part[key] = value

        walk(params, grads, state["m"], state["v"], [new["params"], new["m"], new["v"]])
        return new["params"], {"m": new["m"], "v": new["v"], "step": kept(state, t)}

    return wrong


ADAMW = Exercise(
    "adamw",
    adamw,
    _adamw_cases,
    (
        Mistake(
            "the decay added to the gradient",
            "That is Adam with L2: the moments divide it away. AdamW takes it from the parameter, "
            "beside the step.",
            61,
            _adamw(coupled=True),
        ),
        Mistake(
            "biases and gains decay, too",
            "Arrays of one axis do not decay, unless decay says so.",
            61,
            _adamw(everything=True),
        ),
        Mistake(
            "decay without the learning rate",
            "Here the learning rate multiplies the decay, as in PyTorch's AdamW.",
            61,
            _adamw(share=lambda eta, lam: lam),
        ),
        Mistake(
            "moments not corrected",
            "Both moments begin at zero: divide them by 1 - beta^step.",
            61,
            _adamw(corrected=False),
        ),
        Mistake(
            "the step not counted on",
            "Return the number of the step in the state: the next one corrects with it.",
            61,
            _adamw(kept=lambda state, step: state["step"]),
        ),
        Mistake(
            "the first step is 2",
            "Add 1 to the step of the state once: the first step is 1.",
            61,
            _adamw(step=lambda state: state["step"] + 2, kept=lambda state, step: step - 1),
        ),
        Mistake(
            "eps under the root",
            "eps is added to the root.",
            61,
            _adamw(root=lambda v, eps: np.sqrt(v + eps)),
        ),
        Mistake(
            "the defaults of PyTorch",
            'Here beta_2 is 0.98 and eps 1e-9, as in "Attention is all you need".',
            61,
            _adamw(default=(0.9, 0.999), default_eps=1e-8),
        ),
    ),
    chapter=61,
)

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


def _sgd(
    velocity: Callable = lambda mu, u, eta, g: mu * u - eta * g,
    move: Callable = lambda p, u, before, mu, eta, g: p + u,
) -> Callable:
    """Gradient descent with one part of it replaced."""

    def wrong(params, grads, learning_rate, momentum=0.0, state=None):
        before = tree_map(np.zeros_like, params) if state is None else state
        after = tree_map(lambda u, g: velocity(momentum, u, learning_rate, g), before, grads)

        def moved(p, u, old, g):
            return move(p, u, old, momentum, learning_rate, g)

        return tree_map(moved, params, after, before, grads), after

    return wrong


SGD = Exercise(
    "sgd",
    sgd,
    _sgd_cases,
    (
        Mistake(
            "momentum without its past",
            "The velocity of the step before, times mu, stays in the new one.",
            61,
            _sgd(lambda mu, u, eta, g: -eta * g),
        ),
        Mistake(
            "velocities without the learning rate",
            "PyTorch keeps u = mu u + g and multiplies it with eta later; here eta is inside.",
            61,
            _sgd(lambda mu, u, eta, g: mu * u + g, lambda p, u, old, mu, eta, g: p - eta * u),
        ),
        Mistake(
            "uphill",
            "The step goes against the gradient.",
            61,
            _sgd(lambda mu, u, eta, g: mu * u + eta * g),
        ),
        Mistake(
            "a mean for a sum",
            "The gradient enters whole: mu u - eta g, without a factor of 1 - mu.",
            61,
            _sgd(lambda mu, u, eta, g: mu * u - (1 - mu) * eta * g),
        ),
        Mistake(
            "the velocity of the step before",
            "First the new velocity, then the parameter moves by it.",
            61,
            _sgd(move=lambda p, u, old, mu, eta, g: p + old),
        ),
        Mistake(
            "Nesterov's momentum",
            "That looks ahead: theta + mu u - eta g with the new u. Here theta + u.",
            61,
            _sgd(move=lambda p, u, old, mu, eta, g: p + mu * u - eta * g),
        ),
    ),
    chapter=61,
)

EXERCISES = (CLIP, ADAMW, SGD)
