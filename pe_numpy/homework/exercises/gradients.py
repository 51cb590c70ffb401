"""Exercises of gradients by hand (chapter 61): a projection, layer norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake

DTYPES = (np.float64, np.float32)

# ---- a projection -------------------------------------------------------------------------------


def linear_gradient(
    x: np.ndarray, W: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients with respect to x, W and b of y = x W + b, from that with respect to y."""
    return _projected()(x, W, g)


def _projected(
    *,
    of_x=lambda W, g: g @ W.T,
    of_W=lambda x, g: _rows(x).T @ _rows(g),
    of_b=lambda g: _rows(g).sum(axis=0),
) -> Callable:
    """The gradients of a projection, with one of them replaced."""
    return lambda x, W, g: (of_x(W, g), of_W(x, g), of_b(g))


def _rows(x: np.ndarray) -> np.ndarray:
    """All tokens of all sequences below each other."""
    return x.reshape(-1, x.shape[-1])


def _mean_over_tokens(x, W, g):
    of_x, of_W, of_b = linear_gradient(x, W, g)
    count = len(_rows(x))
    return of_x, of_W / count, of_b / count


def _projection_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0]]), np.array([[3.0], [5.0]]), np.array([[10.0]]))
    yield case(np.array([[1.0, 2.0], [0.0, 1.0]]), np.eye(2), np.array([[1.0, 0.0], [0.0, 3.0]]))
    for dtype in DTYPES:
        for batch in ((5,), (2, 5), (2, 3, 1)):
            for D, F in ((4, 6), (3, 3)):
                sizes = (*batch, D), (D, F), (*batch, F)
                yield case(*(rng.standard_normal(size).astype(dtype) for size in sizes))


PROJECTION = Exercise(
    "linear_gradient",
    linear_gradient,
    _projection_cases,
    (
        Mistake(
            "W not transposed",
            "The gradient goes back from F components to D: by the transpose of W.",
            61,
            _projected(of_x=lambda W, g: g @ W),
        ),
        Mistake(
            "a mean over the tokens",
            "Each token adds to the gradients of W and b; if the loss is a mean, g knows it.",
            61,
            _mean_over_tokens,
        ),
        Mistake(
            "b's gradient not summed",
            "All tokens share b: its gradient has the shape (F,), a sum over the tokens.",
            61,
            _projected(of_b=lambda g: g),
        ),
        Mistake(
            "b's gradient summed over the components",
            "Sum over the tokens, not over the last axis.",
            61,
            _projected(of_b=lambda g: g.sum(axis=-1)),
        ),
        Mistake(
            "W's gradient for each sequence",
            "All sequences share W: sum over the axes of the batch, too.",
            61,
            _projected(of_W=lambda x, g: np.swapaxes(x, -1, -2) @ g),
        ),
        Mistake(
            "W's gradient transposed",
            "It has the shape of W, (D, F).",
            61,
            _projected(of_W=lambda x, g: _rows(g).T @ _rows(x)),
        ),
        Mistake(
            "b's gradient of the shape (1, F)",
            "A gradient has the shape of what it belongs to: (F,), a sum without keepdims.",
            61,
            _projected(of_b=lambda g: _rows(g).sum(axis=0, keepdims=True)),
        ),
        Mistake(
            "b's gradient summed over one axis",
            "Sum over all tokens of all sequences: over each axis but the last.",
            61,
            _projected(of_b=lambda g: g.sum(axis=0)),
        ),
    ),
    chapter=61,
    precise=10,
)

# ---- layer norm ---------------------------------------------------------------------------------


def layer_norm_gradient(
    x: np.ndarray, gain: np.ndarray, g: np.ndarray, eps: float = 1e-5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of layer norm with respect to x, gain and bias, from that of its result."""
    return _normed()(x, gain, g, eps)


def _normed(
    *,
    scaled=lambda g, gain: g * gain,
    back=lambda h, normed: (
        h - h.mean(axis=-1, keepdims=True) - normed * (h * normed).mean(axis=-1, keepdims=True)
    ),
    over=lambda std: std,
    of_gain=lambda g, normed, x: _rows(g * normed).sum(axis=0),
    of_bias=lambda g: _rows(g).sum(axis=0),
) -> Callable:
    """The gradients of layer norm, with one part replaced."""

    def wrong(x, gain, g, eps=1e-5):
        std = np.sqrt(x.var(axis=-1, keepdims=True) + x.dtype.type(eps))
        normed = (x - x.mean(axis=-1, keepdims=True)) / std
        of_x = back(scaled(g, gain), normed) / over(std)
        return of_x, of_gain(g, normed, x), of_bias(g)

    return wrong


def _norm_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 3.0]]), np.array([1.0, 2.0]), np.array([[1.0, 0.0]]), eps=3.0)
    for dtype in DTYPES:
        for batch in ((4,), (2, 3)):
            for D, options in ((5, {}), (6, {"eps": 0.1}), (4, {"eps": 2.0})):
                x, g = rng.standard_normal((2, *batch, D)).astype(dtype)
                yield case(2 * x + 1, rng.standard_normal(D).astype(dtype), g, **options)


NORM = Exercise(
    "layer_norm_gradient",
    layer_norm_gradient,
    _norm_cases,
    (
        Mistake(
            "mean and variance taken for constants",
            "Each component moves the mean and the variance of its token: both send a share back.",
            61,
            _normed(back=lambda h, normed: h),
        ),
        Mistake(
            "the variance taken for a constant",
            "A component moves the variance, too: subtract normed times the mean of h normed.",
            61,
            _normed(back=lambda h, normed: h - h.mean(axis=-1, keepdims=True)),
        ),
        Mistake(
            "the mean taken for a constant",
            "A component moves the mean, too: subtract the mean of h.",
            61,
            _normed(back=lambda h, normed: h - normed * (h * normed).mean(axis=-1, keepdims=True)),
        ),
        Mistake(
            "sums for means",
            "Mean and variance divide by D: so do both shares.",
            61,
            _normed(
                back=lambda h, normed: (
                    h
                    - h.sum(axis=-1, keepdims=True)
                    - normed * (h * normed).sum(axis=-1, keepdims=True)
                )
            ),
        ),
        Mistake(
            "the gain forgotten on the way back",
            "What reaches the normed vector is h = g times the gain.",
            61,
            _normed(scaled=lambda g, gain: g),
        ),
        Mistake(
            "not divided by the deviation",
            "The norm divides by sqrt(variance + eps): so does its gradient.",
            61,
            _normed(over=lambda std: 1),
        ),
        Mistake(
            "divided by the variance",
            "By its root, sqrt(variance + eps).",
            61,
            _normed(over=lambda std: std * std),
        ),
        Mistake(
            "the gain's gradient with x",
            "The gain multiplies the normed vector: its gradient is the sum of g normed.",
            61,
            _normed(of_gain=lambda g, normed, x: _rows(g * x).sum(axis=0)),
        ),
        Mistake(
            "gain and bias not summed",
            "All tokens share gain and bias: sum over the tokens.",
            61,
            _normed(of_gain=lambda g, normed, x: g * normed, of_bias=lambda g: g),
        ),
        Mistake(
            "gain and bias summed over the components",
            "Each component has a gain and a bias of its own: sum over the tokens.",
            61,
            _normed(
                of_gain=lambda g, normed, x: (g * normed).sum(axis=-1),
                of_bias=lambda g: g.sum(axis=-1),
            ),
        ),
    ),
    chapter=61,
    precise=10,
)

EXERCISES = (PROJECTION, NORM)
