r"""Rotary positional encoding (RoPE): queries and keys turn by an angle that grows with position.

Source: Su et al. 2021, "RoFormer" (arXiv:2104.09864), section 3.2.2, equations (14) to (16)::

    <R_m q, R_n k> = q^T R_(n-m) k,   theta_i = 10000^(-2i/d), i = 0 .. d/2 - 1

Axes: L positions, K width of one head (d in the paper).
Symbols: m, n are positions; 10000 is the base; R_m is block-diagonal with the blocks
[[cos m theta_i, -sin m theta_i], [sin m theta_i, cos m theta_i]].
Convention: positive positions turn counter-clockwise; angles are radians. "interleaved" pairs the
components 2i and 2i+1 (RoFormer, GPT-J, Meta's LLaMA), "half" pairs i and i + d/2 (GPT-NeoX and
Hugging Face's LLaMA). Weights made for one layout need `rope_permutation` to serve the other.
Differs from the paper: it counts pairs from 1, theta_i = 10000^(-2(i-1)/d), i = 1 .. d/2. Each pair
is one complex number here and its rotation one complex product (section 3.2.1 has both forms);
angles are computed in float64, whatever the dtype.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.absolute.sinusoidal import is_run, turns_of_a_run
from pe_numpy.dispatch import differentiable


def rope_frequencies(d: int, base: float = 10000.0) -> np.ndarray:
    """Radians that each pair of components turns per position: theta_i = base^(-2i/d).

    Parameters
    ----------
    d : int
        Number of components to turn, even.
    base : float
        10000 in the paper.

    Returns
    -------
    (d/2,) float64 array, from 1 downwards for a base above 1.

    Notes
    -----
    Source: Su et al. 2021, equation (15), with i counted from 0.

    Examples
    --------
    >>> rope_frequencies(8).round(4).tolist()
    [1.0, 0.1, 0.01, 0.001]
    """
    d = checks.even("rope_frequencies", "d", d, "components pair up")
    base = checks.positive("rope_frequencies", "base", base)
    return base ** (-np.arange(0, d, 2) / d)  # (d/2,)


@differentiable
def rope(
    x: ArrayLike,
    positions: ArrayLike,
    frequencies: ArrayLike | None = None,
    layout: str = "interleaved",
) -> np.ndarray:
    """Turn each pair of components of x by the angle position * frequency: R_m x.

    Parameters
    ----------
    x : (..., L, K) array
        Queries or keys.
    positions : array that broadcasts to x.shape[:-1]
        Position m of each vector: (L,), or (B, 1, L) for a batch with padding.
    frequencies : (n,) array, optional
        theta_i in radians per position; `rope_frequencies(K)` by default. With fewer than K/2 of
        them only the first 2n components turn (partial RoPE).
    layout : "interleaved" or "half"
        Which components form a pair: 2i and 2i+1, or i and i + n.

    Returns
    -------
    Array of the shape and dtype of x (float64 for integers; float16 is computed in float32).

    Notes
    -----
    Source: Su et al. 2021, equations (14) and (15), in the complex form of section 3.2.1. Angles
    are computed in float64: position 1,000,000 in float32 is as exact as position 1.

    Examples
    --------
    >>> rope([[1.0, 0.0], [1.0, 0.0]], [0, 1]).round(4).tolist()
    [[1.0, 0.0], [0.5403, 0.8415]]
    """
    x = checks.real_array("rope", "x", x, "LK")
    positions = checks.position_array("rope", "positions", positions)
    checks.fits("rope", "positions", positions.shape, x.shape[:-1], "x without its last axis")
    if frequencies is None:
        checks.even("rope", "K, the last axis of x,", x.shape[-1], "components pair up")
        frequencies = rope_frequencies(x.shape[-1])
    frequencies = checks.pair_frequencies("rope", frequencies, x.shape[-1])
    layout = checks.choice("rope", "layout", layout, ("interleaved", "half"))
    if x.dtype == np.float16:
        return rope(x.astype(np.float32), positions, frequencies, layout).astype(np.float16)
    turn = turn_interleaved if layout == "interleaved" else turn_half
    dtype = np.result_type(x.dtype, np.complex64)
    if is_run(positions):  # the same up to rounding, in less time
        return turn(x, turns_of_a_run(positions, frequencies).astype(dtype, copy=False))
    table = np.exp(1j * positions[..., None] * frequencies)  # (..., L, n), in complex128
    return turn(x, table.astype(dtype, copy=False))


def turn_interleaved(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Multiply x, read as complex numbers x_2i + i x_(2i+1), with the table."""
    n = 2 * table.shape[-1]
    pairs = x[..., :n] if x.strides[-1] == x.itemsize else np.ascontiguousarray(x[..., :n])
    turned = (pairs.view(table.dtype) * table).view(x.dtype)
    return turned if n == x.shape[-1] else np.concatenate([turned, x[..., n:]], axis=-1)


def turn_half(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Turn the pairs (x_i, x_(i+n)): x cos + (-second, first) sin, in rows of whole heads."""
    n = table.shape[-1]
    cos = np.concatenate([table.real, table.real], axis=-1)
    sin = np.concatenate([-table.imag, table.imag], axis=-1)
    turned = x[..., : 2 * n] * cos
    others = np.concatenate([x[..., n : 2 * n], x[..., :n]], axis=-1)
    others *= sin
    turned += others
    return turned if 2 * n == x.shape[-1] else np.concatenate([turned, x[..., 2 * n :]], axis=-1)


def rope_matrix(position: float, frequencies: ArrayLike) -> np.ndarray:
    """R_m as a matrix: the block-diagonal rotation that `rope` applies to interleaved pairs.

    Parameters
    ----------
    position : float
        Position m.
    frequencies : (d/2,) array
        theta_i in radians per position.

    Returns
    -------
    (d, d) float64 array with the blocks [[cos a, -sin a], [sin a, cos a]], a = m theta_i. It stands
    to the left of a column vector.

    Notes
    -----
    Source: Su et al. 2021, equation (15). For proofs and small examples; `rope` does the same
    in about 2d instead of d^2 products (their section 3.4.2, equation (34)).

    Examples
    --------
    >>> rope_matrix(1, [1.0]).round(4).tolist()
    [[0.5403, -0.8415], [0.8415, 0.5403]]
    """
    position = checks.number("rope_matrix", "position", position)
    frequencies = checks.position_array("rope_matrix", "frequencies", frequencies)
    if frequencies.ndim != 1:
        raise ValueError(
            f"rope_matrix: frequencies must be one axis of numbers; got shape {frequencies.shape}"
        )
    angles = position * frequencies  # (d/2,)
    first = 2 * np.arange(len(angles))  # the component 2i of each pair
    second = first + 1
    matrix = np.zeros((2 * len(angles), 2 * len(angles)))
    matrix[first, first] = matrix[second, second] = np.cos(angles)
    matrix[first, second] = -np.sin(angles)
    matrix[second, first] = np.sin(angles)
    return matrix


def rope_permutation(d: int) -> np.ndarray:
    """Indices that carry interleaved components to the half-split layout: 0 2 4 ... 1 3 5 ...

    Parameters
    ----------
    d : int
        Number of components, even.

    Returns
    -------
    (d,) integer array p with rope(x, m, layout="interleaved")[..., p] equal to
    rope(x[..., p], m, layout="half"). Applied to the rows of the projections W_q and W_k (as in
    k = W_k x), head by head, it converts the weights of an interleaved model for half-split code;
    `np.argsort(p)` goes back.

    Notes
    -----
    Source: the two layouts of Su et al. 2021 (interleaved) and GPT-NeoX (half-split).

    Examples
    --------
    >>> rope_permutation(8).tolist()
    [0, 2, 4, 6, 1, 3, 5, 7]
    """
    d = checks.even("rope_permutation", "d", d, "components pair up")
    return np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)])  # (d,)


def rope_convert_weights(
    weight: ArrayLike, n_heads: int, to: str = "half", d: int | None = None
) -> np.ndarray:
    """Reorder the rows of a projection, head by head, so that it serves the other RoPE layout.

    Parameters
    ----------
    weight : (H K, D) or (H K,) array
        W_q or W_k, whose rows make the components of the heads, as in k = W_k x; or its bias.
    n_heads : int
        Number of heads that the rows make: H for W_q; for W_k the key heads, of which grouped
        queries have G < H.
    to : "half" or "interleaved"
        The layout wanted; the weight is made for the other one.
    d : int, optional
        Components of each head that turn, even; K by default (less in partial RoPE).

    Returns
    -------
    Array of the shape and dtype of the weight. W_q and W_k converted together give every score as
    before; W_v and the output projection stay as they are.

    Notes
    -----
    Source: common practice when weights go from one library to another; see `rope_permutation`.

    Examples
    --------
    >>> rope_convert_weights([0, 1, 2, 3, 10, 11, 12, 13], n_heads=2).tolist()
    [0, 2, 1, 3, 10, 12, 11, 13]
    >>> rope_convert_weights([0, 2, 1, 3, 10, 12, 11, 13], n_heads=2, to="interleaved").tolist()
    [0, 1, 2, 3, 10, 11, 12, 13]
    """
    name = "rope_convert_weights"
    weight = checks.whole_array(name, "weight", weight)
    n_heads = checks.integer(name, "n_heads", n_heads)
    to = checks.choice(name, "to", to, ("half", "interleaved"))
    if weight.ndim not in (1, 2) or weight.shape[0] % n_heads:
        raise ValueError(
            f"{name}: weight must have the shape (H K, D) or (H K,), with rows that n_heads "
            f"divides; got shape {weight.shape} and {n_heads}"
        )
    K = weight.shape[0] // n_heads
    d = checks.even(name, "d (K by default)", K if d is None else d, "components pair up")
    if d > K:
        raise ValueError(f"{name}: d must be at most K, the rows of one head; got {d} and {K}")
    turned = rope_permutation(d)
    order = np.arange(K)
    order[:d] = turned if to == "half" else np.argsort(turned)
    rows = (K * np.arange(n_heads)[:, None] + order).reshape(-1)  # (H K,)
    return weight[rows]
