r"""The gradients of this package's own functions: one rule each, where NumPy's would be slow.

Source: the chain rule; for the softmax inside attention the form of Dao et al. 2022,
"FlashAttention" (arXiv:2205.14135), appendix B.2::

    softmax      dx = w (g - sum(g w))                  log-softmax   dx = g - w sum(g)
    standardize  dx = s (g - mean(g) - n mean(g n))     linear        dx = g W^T, dW = x^T g
    cross-entropy  d logits = (softmax - target) / n    rope, rope_nd dx = g turned back
    GELU  dx = g (Phi + x phi)                          attend        ds = w (g v^T - sum(g output))
    SiLU  dx = g (p + z (1 - p)), p = z/x               its sink      da = -w_sink sum(g output)

Axes: those of the functions.
Symbols: z is the value of a function, g the gradient with respect to it, w softmax weights, n a
standardized x and s the factor that made it.
Convention: as in `rules`: a rule takes z and the arguments and returns a pull for each argument;
of a function with two results, such pulls for each. ReLU passes nothing at its kink. A pull changes
only arrays that it has made itself. `spread_products`, `spread_sums` and `spread_outer` are the
derivatives of one sum, of w_ij q_i . t_(i-j), so the gradients of the first two need no fourth.
Differs from the paper: it computes w again, block by block; here w is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy.relative.distance import (
    ROWS,
    RowOf,
    is_window,
    line_of,
    skewed,
    spread_products,
    spread_sums,
    sum_by_row,
    window_of,
)
from pe_numpy.rotary.nd import rope_nd
from pe_numpy.rotary.rope import rope, rope_frequencies
from pe_numpy.training.loss import counted_targets, cross_entropy
from pe_numpy.training.rules import Array, Rule, sum_of_rows
from pe_numpy.transformer.attention import (
    attend,
    log_softmax,
    softmax,
    softmax_beside,
)
from pe_numpy.transformer.layers import gelu, linear, relu, silu, standardize

# ---- attention ----------------------------------------------------------------------------------


def _softmax(w: Array, x: Array, axis: int = -1) -> tuple:
    def pull(g: Array) -> Array:
        dx = g - (g * w).sum(axis=axis, keepdims=True)
        dx *= w
        return dx

    return (pull,)


def _log_softmax(z: Array, x: Array, axis: int = -1) -> tuple:
    def pull(g: Array) -> Array:
        dx = np.exp(z)
        dx *= -g.sum(axis=axis, keepdims=True)
        dx += g
        return dx

    return (pull,)


def _attend(
    z: tuple[Array, Array], scores: Array, v: Array, mask: Any = None, sink: Any = None
) -> tuple:
    (output, w), v = z, np.asarray(v)

    def pull_scores(g: Array) -> Array:
        ds = g @ np.swapaxes(v, -1, -2)  # (..., L, S)
        ds -= np.vecdot(g, output)[..., None]  # = sum over keys of w ds, in K products, not S
        ds *= w
        return ds

    def to_sink(mean: Array) -> Array:
        """From sum(w g) of each row, (..., L): what the sink takes brings 0."""
        shown = np.where(True if mask is None else mask, scores, -np.inf)
        da = softmax_beside(sink, shown)[..., -1] * -mean  # 1 - sum(w) would be rounded
        return da.sum(axis=-1) if np.ndim(sink) == 1 else da

    of_output = (
        pull_scores,
        lambda g: np.swapaxes(w, -1, -2) @ g,
        None,
        lambda g: to_sink(np.vecdot(g, output)),
    )
    of_weights = (
        *_softmax(w, scores),
        lambda g: np.zeros(v.shape, g.dtype),
        None,
        lambda g: to_sink(np.vecdot(g, w)),
    )
    return of_output, of_weights


def _rope(
    z: Array,
    x: Array,
    positions: ArrayLike,
    frequencies: ArrayLike | None = None,
    layout: str = "interleaved",
) -> tuple:
    theta = rope_frequencies(x.shape[-1]) if frequencies is None else np.asarray(frequencies)
    places = np.asarray(positions)

    def pull_positions(g: Array) -> Array:
        return (_by_angle(z, g, len(theta), layout) @ theta).astype(places.dtype)

    def pull_frequencies(g: Array) -> Array:
        return (places[..., None] * _by_angle(z, g, len(theta), layout)).astype(theta.dtype)

    return (lambda g: rope(g, places, -theta, layout)), pull_positions, pull_frequencies


def _by_angle(z: Array, g: Array, n: int, layout: str) -> Array:
    """Gradient with respect to each angle: a turn moves a pair (a, b) along (-b, a)."""
    first, second = (slice(0, n), slice(n, 2 * n))
    if layout == "interleaved":
        first, second = slice(0, 2 * n, 2), slice(1, 2 * n, 2)
    return z[..., first] * g[..., second] - z[..., second] * g[..., first]  # (..., L, n)


def _rope_nd(
    z: Array,
    x: Array,
    coordinates: ArrayLike,
    frequencies: ArrayLike,
    layout: str = "interleaved",
) -> tuple:
    p, omega = np.asarray(coordinates), np.asarray(frequencies)
    n, rows = omega.shape[-1], (*p.shape[:-2], x.shape[-2], p.shape[-1])

    def pull_coordinates(g: Array) -> Array:
        return (_by_angle(z, g, n, layout) @ np.swapaxes(omega, -1, -2)).astype(p.dtype)

    def pull_frequencies(g: Array) -> Array:
        each = np.swapaxes(np.broadcast_to(p, rows), -1, -2)  # (..., A, L)
        return (each @ _by_angle(z, g, n, layout)).astype(omega.dtype)

    return (lambda g: rope_nd(g, p, -omega, layout)), pull_coordinates, pull_frequencies


# ---- layers -------------------------------------------------------------------------------------


def _linear(z: Array, x: Array, W: Array, b: Array | None = None) -> tuple:
    x, (D, F) = np.asarray(x), np.shape(W)

    def tokens(a: Array, width: int) -> Array:
        return a.reshape(math.prod(x.shape[:-1]), width)

    return (
        lambda g: (tokens(g, F) @ np.transpose(W)).reshape(x.shape),
        lambda g: tokens(x, D).T @ tokens(g, F),
        lambda g: np.ones(len(tokens(g, F)), g.dtype) @ tokens(g, F),  # the sum over tokens
    )


def _standardize(z: tuple[Array, Array], x: Array, eps: float, centre: bool = True) -> tuple:
    normed, scale = z
    D = x.shape[-1]

    def pull(g: Array) -> Array:
        dx = normed * (np.vecdot(g, normed)[..., None] / -D)
        dx += g
        if centre:
            dx -= (g @ np.ones(D, g.dtype))[..., None] / D
        dx *= scale
        return dx

    return (pull, None, None), (lambda g: normed * (g * scale**2 / -D), None, None)


def _relu(z: Array, x: Array) -> tuple:
    return (lambda g: g * (z > 0),)


def _share(z: Array, x: Array) -> Array:
    """What x was weighed with: z / x, and 1/2 at 0."""
    return np.divide(z, x, out=np.full_like(x, 0.5), where=x != 0)


def _gelu(z: Array, x: Array, approximate: str = "none") -> tuple:
    def pull(g: Array) -> Array:
        share = _share(z, x)
        if approximate == "none":
            return g * (share + x * np.exp(x * x / -2) * (1 / math.sqrt(2 * math.pi)))
        slope = math.sqrt(8 / math.pi) * (1 + 3 * 0.044715 * x * x)
        return g * (share + z * (1 - share) * slope)

    return (pull,)


def _silu(z: Array, x: Array) -> tuple:
    def pull(g: Array) -> Array:
        share = _share(z, x)
        return g * (share + z * (1 - share))

    return (pull,)


def _cross_entropy(
    z: np.floating,
    logits: Array,
    targets: ArrayLike,
    ignore: int | None = None,
    label_smoothing: float = 0.0,
) -> tuple:
    def pull(g: Array) -> Array:
        rows, right, counts, eps = counted_targets(logits, targets, ignore, label_smoothing)
        d = softmax(rows[counts])  # (n, V)
        d[np.arange(len(right)), right] -= 1 - eps
        if eps:
            d -= eps / d.shape[-1]
        d *= g / len(right)
        if isinstance(counts, slice):
            return d.reshape(logits.shape)
        whole = np.zeros_like(rows)
        whole[counts] = d
        return whole.reshape(logits.shape)

    return pull, None


# ---- distances ----------------------------------------------------------------------------------


def _spread_products(z: Array, q: Array, table: Array, distance: Array, row_of: RowOf) -> tuple:
    return (
        lambda g: spread_sums(g, table, distance, row_of),
        lambda g: spread_outer(g, q, table.shape, distance, row_of),
        None,
        None,
    )


def _spread_sums(z: Array, weights: Array, table: Array, distance: Array, row_of: RowOf) -> tuple:
    return (
        lambda g: spread_products(g, table, distance, row_of),
        lambda g: spread_outer(weights, g, table.shape, distance, row_of),
        None,
        None,
    )


def spread_outer(
    weights: Array, vectors: Array, shape: tuple[int, ...], distance: Array, row_of: RowOf
) -> Array:
    """Give each row of a table the vectors of its pairs: sum over i, j of w_ij q_i, row by row.

    weights are (..., L, S), vectors (..., L, K); the result is (N, K), or (..., H, N, K) for a
    `shape` of (H, N, K).
    """
    (N, K), (L, S) = shape[-2:], weights.shape[-2:]

    def outer(sums: Array, rows: Array) -> Array:
        if len(shape) > 2:
            return np.swapaxes(sums, -1, -2) @ rows
        rows = np.broadcast_to(rows, (*sums.shape[:-1], K))  # one product for the whole batch
        return sums.reshape(-1, sums.shape[-1]).T @ rows.reshape(-1, K)

    if not is_window(distance):
        return outer(sum_by_row(weights, row_of(distance), N), vectors)
    batch = np.broadcast_shapes(weights.shape[:-2], vectors.shape[:-2]) if len(shape) > 2 else ()
    line = np.zeros((*batch, L + S - 1, K), weights.dtype)  # of all distances, the past first
    for start in range(0, L, ROWS):
        n = min(ROWS, L - start)
        first = L - start - n
        sums = np.zeros((*weights.shape[:-2], n, n + S - 1), weights.dtype)
        skewed(sums, S)[...] = weights[..., start : start + n, :]
        line[..., first : first + n + S - 1, :] += outer(sums, vectors[..., start : start + n, :])
    rows = row_of(line_of(distance)[::-1])  # (L + S - 1,)
    return np.moveaxis(sum_of_rows(np.moveaxis(line, -2, 0), rows, (N, *batch, K)), 0, -2)


def _window_rule(z: Array, line: Array, L: int, S: int) -> tuple:
    """A number of the line fills a diagonal of the window; its gradient is that diagonal's sum."""

    def pull(g: Array) -> Array:
        sums = np.zeros((*g.shape[:-2], L, L + S - 1), g.dtype)
        skewed(sums, S)[...] = g
        return sums.sum(axis=-2)[..., ::-1]

    return pull, None, None


RULES: dict[Callable, Rule] = {
    softmax: _softmax,
    log_softmax: _log_softmax,
    attend: _attend,
    rope: _rope,
    rope_nd: _rope_nd,
    linear: _linear,
    standardize: _standardize,
    relu: _relu,
    gelu: _gelu,
    silu: _silu,
    cross_entropy: _cross_entropy,
    spread_products: _spread_products,
    spread_sums: _spread_sums,
    window_of: _window_rule,
}
