r"""Learned positional encoding: one trained vector a position, and a way past the table's end.

Source: Gehring et al. 2017, "Convolutional Sequence to Sequence Learning" (arXiv:1705.03122),
section 3.1, later BERT and GPT-2::

    p_k = E_k

and Su Jianlin 2020, "Hierarchical decomposition of positions, so that BERT can process very long
texts" (in Chinese, kexue.fm/archives/7947)::

    p_(i N + j) = alpha u_i + (1 - alpha) u_j,   u_k = (E_k - alpha E_0) / (1 - alpha)

and, for tables of another size, the interpolation of torch::

    E' = W E,   W_rj = k(place of the new row r - j)

Axes: N rows of the table, D model width.
Symbols: E is the trained table; i, j = 0 .. N-1 are the two digits of a position in base N. W is
constant; k is the kernel, by which the new row weighs an old one.
Convention: positions count from 0. A negative position is refused, because NumPy would silently
read the table from its end.
Differs from the sources: Su counts positions from 1, so his first vector is E_0 here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def learned(table: ArrayLike, positions: ArrayLike) -> np.ndarray:
    """Look every position up in a trained table: p_k = E_k.

    Parameters
    ----------
    table : (N, D) array
        Trained codes E, one row for each of the positions 0 .. N-1.
    positions : array of whole numbers, of any shape
        Positions k.

    Returns
    -------
    (*positions.shape, D) array of the table's dtype (float64 for integers).

    Raises
    ------
    ValueError
        If a position is fractional, below 0 or above N-1: the table holds nothing between its rows
        and nothing after the last.

    Notes
    -----
    Source: Gehring et al. 2017, section 3.1. A table has N D parameters: 512 * 768 in BERT-base.

    Examples
    --------
    >>> learned([[0.5, 1.0], [2.0, 3.0], [4.0, 6.0]], [2, 0]).tolist()
    [[4.0, 6.0], [0.5, 1.0]]
    """
    table = _table("learned", table)
    return table[_rows("learned", positions, len(table), 1)]  # (..., D)


def hierarchical(table: ArrayLike, positions: ArrayLike, alpha: float = 0.4) -> np.ndarray:
    """Stretch a trained table of N rows to N N positions: p_(iN+j) = alpha u_i + (1 - alpha) u_j.

    Parameters
    ----------
    table : (N, D) array
        Trained codes E.
    positions : array of whole numbers, of any shape
        Positions iN + j, from 0 to N N - 1.
    alpha : float
        Weight of the leading digit i; not 1. At 0.5 the positions iN + j and jN + i share a code;
        Su takes a number between 0 and 1 other than 0.5.

    Returns
    -------
    (*positions.shape, D) array of the table's dtype (float64 for integers; float16 is computed in
    float32). The first N codes are the table's own, up to rounding.

    Raises
    ------
    ValueError
        If alpha is 1, or a position is fractional, below 0 or above N N - 1.

    Notes
    -----
    Source: Su 2020; the default is that of his bojone/bert4keras (commit 09d83e3). u follows from
    the demand that p_j = E_j for j < N: there i = 0, so u_j = (E_j - alpha u_0) / (1 - alpha), and
    u_0 = E_0.

    Examples
    --------
    >>> hierarchical([[0.0], [3.0]], [0, 1, 2, 3], alpha=0.25).tolist()
    [[0.0], [3.0], [1.0], [4.0]]
    """
    table = _table("hierarchical", table)
    alpha = checks.number("hierarchical", "alpha", alpha)
    if alpha == 1:
        raise ValueError(
            "hierarchical: alpha must not be 1, since u divides by 1 - alpha; got 1, try 0.4"
        )
    N = len(table)
    rows = _rows("hierarchical", positions, N, 2)
    E = table.astype(np.float32) if table.dtype == np.float16 else table
    u = (E - alpha * E[:1]) / (1 - alpha)  # (N, D)
    codes = alpha * u[rows // N] + (1 - alpha) * u[rows % N]  # (..., D)
    return codes.astype(table.dtype, copy=False)


def resize_matrix(
    old: int, new: int, mode: str = "linear", align_corners: bool = False, antialias: bool = False
) -> np.ndarray:
    """Resize a table of `old` rows to `new`: the matrix W with E' = W @ E.

    Parameters
    ----------
    old, new : int
        Numbers of rows. A grid takes one matrix for its rows and one for its columns.
    mode : "linear" or "cubic"
        Two neighbours, or four with the cubic kernel (torch: "bilinear", "bicubic").
    align_corners : bool
        Rows are points, and the new ends are the old ones: row r stands at r (old-1)/(new-1). Else
        rows are cells of a line of one length: (r + 1/2) old/new - 1/2.
    antialias : bool
        When a table shrinks, widen the kernel by old/new, so that each old row counts; cut it off
        at the ends and divide by the sum of what is left.

    Returns
    -------
    (new, old) float64 array; each row sums to 1. The identity if both sizes are the same.

    Raises
    ------
    ValueError
        If antialias is asked for together with align_corners.

    Notes
    -----
    Source: `torch.nn.functional.interpolate` of torch 2.13; no paper states it. Its cubic kernel
    has the parameter a = -3/4, and with antialias a = -1/2. Beyond the ends of a table its first or
    last row goes on; with antialias there is nothing. One new row alone stands, with
    align_corners, on the first old one.

    Examples
    --------
    >>> (resize_matrix(4, 6) @ [0, 1, 2, 3]).round(6).tolist()
    [0.0, 0.5, 1.166667, 1.833333, 2.5, 3.0]
    >>> (resize_matrix(4, 6, align_corners=True) @ [0, 1, 2, 3]).round(6).tolist()
    [0.0, 0.6, 1.2, 1.8, 2.4, 3.0]
    """
    name = "resize_matrix"
    old = checks.integer(name, "old", old)
    new = checks.integer(name, "new", new)
    mode = checks.choice(name, "mode", mode, ("linear", "cubic"))
    align_corners = checks.flag(name, "align_corners", align_corners)
    antialias = checks.flag(name, "antialias", antialias)
    if antialias and align_corners:
        raise ValueError(
            f"{name}: antialias spreads a row over the cells that it covers, and corners are "
            "points; got both, choose one"
        )
    r = np.arange(new)
    at = r * ((old - 1) / max(new - 1, 1)) if align_corners else (r + 0.5) * (old / new) - 0.5
    rows = np.arange(-2, old + 2)  # two beyond each end
    wide = max(old / new, 1.0) if antialias else 1.0
    t = np.abs(at[:, None] - rows) / wide  # (new, old + 4)
    W = np.maximum(1 - t, 0) if mode == "linear" else _cubic(t, -0.5 if antialias else -0.75)
    inner = W[:, 2:-2]  # (new, old)
    if antialias:
        return inner / inner.sum(axis=1, keepdims=True)
    inner[:, 0] += W[:, 0] + W[:, 1]  # the first row goes on beyond its end
    inner[:, -1] += W[:, -2] + W[:, -1]
    return inner


def _cubic(t: np.ndarray, a: float) -> np.ndarray:
    """Weight at the distance t >= 0: 1 at 0, and 0 at 1 and from 2 on."""
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = a * (((t - 5) * t + 8) * t - 4)
    return np.where(t < 1, near, np.where(t < 2, far, 0.0))


def _table(function: str, table: ArrayLike) -> np.ndarray:
    table = checks.real_array(function, "table", table)
    if table.ndim != 2:
        raise ValueError(f"{function}: table must have the axes (N, D); got shape {table.shape}")
    return table


def _rows(function: str, positions: ArrayLike, N: int, digits: int) -> np.ndarray:
    """Positions that can be written with so many digits in base N."""
    p = checks.whole_numbers(function, "positions", positions)
    outside = p[(p < 0) | (p >= N**digits)]
    if outside.size:
        raise ValueError(
            f"{function}: a table of {N} rows serves positions 0 to {N**digits - 1}; "
            f"got {outside[0]}"
        )
    return p
