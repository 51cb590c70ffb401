"""Exercises of gradients by hand (chapter 61): a projection, layer norm."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case

DTYPES = (np.float64, np.float32)

# ---- a projection -------------------------------------------------------------------------------


def linear_gradient(
    x: np.ndarray, W: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients with respect to x, W and b of y = x W + b, from that with respect to y."""
    tokens = tuple(range(x.ndim - 1))
    return g @ W.T, np.tensordot(x, g, (tokens, tokens)), g.sum(axis=tokens)


def _projection_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0]]), np.array([[3.0], [5.0]]), np.array([[10.0]]))
    yield case(np.array([[1.0, 2.0], [0.0, 1.0]]), np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0]]))
    for dtype in DTYPES:
        for batch in ((5,), (2, 5), (2, 3, 1)):
            for D, F in ((4, 6), (3, 3)):
                sizes = (*batch, D), (D, F), (*batch, F)
                yield case(*(rng.standard_normal(size).astype(dtype) for size in sizes))


PROJECTION = Exercise("linear_gradient", linear_gradient, _projection_cases, chapter=61, precise=10)

# ---- layer norm ---------------------------------------------------------------------------------


def layer_norm_gradient(
    x: np.ndarray, gain: np.ndarray, g: np.ndarray, eps: float = 1e-5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of layer norm with respect to x, gain and bias, from that of its result."""
    normed = x - x.mean(axis=-1, keepdims=True)
    std = np.sqrt((normed**2).mean(axis=-1, keepdims=True) + x.dtype.type(eps))
    normed, h = normed / std, g * gain
    of_x = h - h.mean(axis=-1, keepdims=True) - normed * (h * normed).mean(axis=-1, keepdims=True)
    tokens = tuple(range(x.ndim - 1))
    return of_x / std, (g * normed).sum(axis=tokens), g.sum(axis=tokens)


def _norm_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 3.0]]), np.array([1.0, 2.0]), np.array([[1.0, 0.0]]), eps=3.0)
    for dtype in DTYPES:
        for batch in ((4,), (2, 3)):
            for D, options in ((5, {}), (6, {"eps": 0.1}), (4, {"eps": 2.0})):
                x, g = rng.standard_normal((2, *batch, D)).astype(dtype)
                yield case(2 * x + 1, rng.standard_normal(D).astype(dtype), g, **options)
    yield case(1e-3 * x.astype(float), np.ones(4), g.astype(float))  # eps is no small part


NORM = Exercise("layer_norm_gradient", layer_norm_gradient, _norm_cases, chapter=61, precise=10)

EXERCISES = (PROJECTION, NORM)
