r"""Offsets in a window of an image: Swin's table, MViT's two tables, Swin-2's coordinates.

Source: Liu et al. 2021, "Swin Transformer" (arXiv:2103.14030); Li et al. 2021, "MViTv2"
(arXiv:2112.01526); Liu et al. 2021, "Swin Transformer V2" (arXiv:2111.09883)::

    Swin      q . k / sqrt(K) + b_h[(dy + h - 1)(2w - 1) + dx + w - 1]
    MViT      q . k / sqrt(K) + q . R^row[dy] + q . R^column[dx]
    Swin-2    tau_h cos(q, k) + 16 sigmoid(MLP(u))[offset]

Axes: H heads, L queries, S keys, K width of one head, N rows of a table.
Symbols: h and w are the rows and columns of a window, its pixels counted row by row, so
L = S = hw; (dy, dx) is an offset; P is the window of the pretraining.
Convention: offsets are query minus key on either axis, and the row of a pixel comes before its
column. Biases are added after the division by sqrt(K).
Differs from the papers: nothing known. That MViT's two terms are not divided by sqrt(K), and the
constants of Swin-2 (8, 3, 16 and the sigmoid), are those of the authors' code
(facebookresearch/mvit, commit dfbdfdf; microsoft/Swin-Transformer, commit f82860b).

A window has hw hw pairs, but (2h - 1)(2w - 1) offsets. With the table laid out as a picture
(2h - 1, 2w - 1), each query sees its own part of it, h by w, upside down and mirrored: a view of
four axes, two of whose strides are the other two negated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.relative.distance import (
    RowOf,
    add_query_products,
    add_to,
    check_distance,
    window_of,
)


def offset_index(height: int, width: int) -> np.ndarray:
    """Row of the table that each pair of pixels reads: (dy + h - 1)(2w - 1) + dx + w - 1.

    Parameters
    ----------
    height, width : int
        Rows h and columns w of the window.

    Returns
    -------
    (hw, hw) integer array, query by key, from 0 to (2h - 1)(2w - 1) - 1. Pixels are counted row
    by row.

    Notes
    -----
    Source: Liu et al. 2021, released code: `models/swin_transformer.py`.

    Examples
    --------
    >>> offset_index(2, 3)[[0, 5]].tolist()
    [[7, 6, 5, 2, 1, 0], [14, 13, 12, 9, 8, 7]]
    """
    height = checks.integer("offset_index", "height", height)
    width = checks.integer("offset_index", "width", width)
    row, column = np.divmod(np.arange(height * width), width)  # of each pixel
    dy, dx = (at[:, None] - at for at in (row, column))  # (hw, hw), query minus key
    return (dy + height - 1) * (2 * width - 1) + dx + width - 1


def offset_bias(table: ArrayLike, height: int, width: int) -> np.ndarray:
    """Bias of each head and pair of pixels: b[offset, head].

    Parameters
    ----------
    table : ((2h - 1)(2w - 1), H) array
        A learned number for each offset and head, the rows as `offset_index` counts them.
    height, width : int
        Rows h and columns w of the window.

    Returns
    -------
    (H, hw, hw) array of the table's dtype; add it to scaled scores.

    Notes
    -----
    Source: Liu et al. 2021; `models/swin_transformer.py` of their code. The same numbers as
    `table[offset_index(height, width)]`, without an index: the reshape copies a view.

    Examples
    --------
    >>> offset_bias([[0.1], [0.2], [0.3]], height=1, width=2).tolist()
    [[[0.2, 0.1], [0.3, 0.2]]]
    """
    name = "offset_bias"
    height = checks.integer(name, "height", height)
    width = checks.integer(name, "width", width)
    table = checks.real_array(name, "table", table, "NH")
    H, sides = table.shape[-1], (2 * height - 1, 2 * width - 1)
    if table.ndim != 2 or len(table) != math.prod(sides):
        raise ValueError(
            f"{name}: table must have the axes (N, H) with N = (2h - 1)(2w - 1) = "
            f"{math.prod(sides)} for a window of {height} by {width}; got shape {table.shape}"
        )
    picture = np.swapaxes(np.copy(table), 0, 1).reshape(H, *sides)
    return grid_of(picture, height, width).reshape(H, height * width, height * width)


def grid_of(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """View (H, 2h - 1, 2w - 1) as (H, h, w, h, w): a window of the columns, then of the rows.

    Entry [y, x, y', x'] is [y - y' + h - 1, x - x' + w - 1] of the picture; nothing is copied.
    """
    columns = window_of(picture, width, width)  # (H, 2h - 1, w, w)
    rows = window_of(np.moveaxis(columns, 1, -1), height, height)  # (H, w, w, h, h)
    return np.transpose(rows, (0, 3, 1, 4, 2))


def decomposed_scores(
    q: ArrayLike,
    k: ArrayLike,
    row_table: ArrayLike,
    column_table: ArrayLike,
    row_distance: ArrayLike,
    column_distance: ArrayLike,
) -> np.ndarray:
    """Scores with a vector for each offset of rows and of columns: q.k/sqrt(K) + q.R[dy] + q.C[dx].

    Parameters
    ----------
    q : (..., L, K) array
        Queries. Pixels are counted row by row.
    k : (..., S, K) array
        Keys.
    row_table : (2n - 1, K) array, or (H, 2n - 1, K)
        Vectors of the offsets -(n - 1) .. n - 1 of rows, where n is the larger number of rows of
        the two grids.
    column_table : (2m - 1, K) array, or (H, 2m - 1, K)
        The same for columns.
    row_distance, column_distance : integer arrays
        Query minus key, from `relative_distance`: of the rows (h_q, h_k) and the columns (w_q, w_k)
        of two whole grids, where h_q w_q = L and h_k w_k = S. For pixels that fill no grid, of all
        pairs: both (L, S), or what broadcasts to the scores, such as (B, 1, L, S).

    Returns
    -------
    (..., L, S) array; give it to `attend`.

    Raises
    ------
    ValueError
        If a table has no row for a distance: one for another size is to be resized first.

    Notes
    -----
    Source: Li et al. 2021, released code: `models/attention.py`; and `modeling/image_encoder.py` of
    facebookresearch/segment-anything, commit dca509f. Only q . k is scaled. For whole grids
    L (h_k + w_k) products with the tables are made, and no array larger than the scores.

    Examples
    --------
    >>> from pe_numpy import relative_distance
    >>> q, zero, d = [[1.0], [2.0], [3.0], [4.0]], [[0.0]] * 4, relative_distance([0, 1], [0, 1])
    >>> rows, columns = [[10.0], [20.0], [30.0]], [[1.0], [2.0], [3.0]]
    >>> decomposed_scores(q, zero, rows, columns, d, d).tolist()[0]
    [22.0, 21.0, 12.0, 11.0]
    """
    name = "decomposed_scores"
    q, k, batch = checks.queries_and_keys(name, q, k)
    row_table = checks.head_table(name, "row_table", row_table, batch, q.shape[-1])
    column_table = checks.head_table(name, "column_table", column_table, batch, q.shape[-1])
    row_distance = checks.whole_numbers(name, "row_distance", row_distance)
    column_distance = checks.whole_numbers(name, "column_distance", column_distance)
    shape = (*batch, q.shape[-2], k.shape[-2])
    whole = _are_grids(name, row_distance, column_distance, shape)
    row_of = _centred(name, "row", row_table.shape[-2], row_distance, whole)
    column_of = _centred(name, "column", column_table.shape[-2], column_distance, whole)
    work, dtype = checks.working(q, k)
    q, k, R, C = (x.astype(work, copy=False) for x in (q, k, row_table, column_table))
    scores = (q * (1 / math.sqrt(q.shape[-1]))) @ np.swapaxes(k, -1, -2)  # (..., L, S)
    if not whole:
        scores = add_query_products(scores, q, R, row_distance, row_of)
        scores = add_query_products(scores, q, C, column_distance, column_of)
        return scores.astype(dtype, copy=False)
    (h_q, h_k), (w_q, w_k) = row_distance.shape, column_distance.shape
    rows = np.swapaxes(R[..., row_of(row_distance), :], -1, -2)  # (h_q, K, h_k)
    columns = np.swapaxes(C[..., column_of(column_distance), :], -1, -2)  # (w_q, K, w_k)
    q = q.reshape(*q.shape[:-2], h_q, w_q, q.shape[-1])
    by_row = q @ rows  # (..., h_q, w_q, h_k)
    by_column = np.swapaxes(np.swapaxes(q, -2, -3) @ columns, -2, -3)  # (..., h_q, w_q, w_k)
    scores = scores.reshape(*batch, h_q, w_q, h_k, w_k)
    scores = add_to(add_to(scores, by_row[..., :, None]), by_column[..., None, :])
    return scores.reshape(shape).astype(dtype, copy=False)


def _are_grids(function: str, dy: np.ndarray, dx: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether distances are those of rows and of columns; if not, they must be those of pairs."""
    L, S = shape[-2:]
    if dy.ndim == dx.ndim == 2 and (len(dy) * len(dx), dy.shape[1] * dx.shape[1]) == (L, S):
        return True
    if dy.shape[-2:] != (L, S) or dx.shape[-2:] != (L, S):
        raise ValueError(
            f"{function}: row_distance and column_distance must have the axes (h_q, h_k) and "
            f"(w_q, w_k) with h_q w_q = {L} and h_k w_k = {S}, or both (L, S) = {(L, S)}; "
            f"got {dy.shape} and {dx.shape}"
        )
    check_distance(function, dy, shape, "row_distance")
    check_distance(function, dx, shape, "column_distance")
    return False


def _centred(function: str, axis: str, N: int, distance: np.ndarray, whole: bool) -> RowOf:
    """Give the rows of distances in a table of N rows, whose middle one belongs to 0."""
    n = max(distance.shape) if whole else (N + 1) // 2
    if N != 2 * n - 1:
        wanted = f"2n - 1 = {2 * n - 1} rows; resize it first" if whole else "an odd number of rows"
        raise ValueError(f"{function}: {axis}_table must have {wanted}; got {N} rows")
    if distance.size and np.abs(distance).max() >= n:
        raise ValueError(
            f"{function}: {axis}_distance must be from {1 - n} to {n - 1}, since {axis}_table has "
            f"{N} rows; got {distance.min()} to {distance.max()}"
        )
    return lambda d: d + n - 1


def log_cpb_coordinates(
    height: int, width: int, pretrained: int | Sequence[int] | None = None
) -> np.ndarray:
    """Log-spaced coordinates of all offsets: sign(d) log2(1 + 8 abs(d)/(P - 1)) / 3 on either axis.

    Parameters
    ----------
    height, width : int
        Rows h and columns w of the window.
    pretrained : int, or two of them, optional
        Side P of the window at pretraining, or its rows and columns; that of this window if left
        out. An offset keeps its coordinates in a larger window as long as P is kept.

    Returns
    -------
    ((2h - 1)(2w - 1), 2) float64 array, the coordinate of dy before that of dx, the rows as
    `offset_index` counts them: what a small network makes of it is a table for `offset_bias`.

    Raises
    ------
    ValueError
        If P is below 2 (P - 1 divides).

    Notes
    -----
    Source: Liu et al. 2021 (Swin-2), released code: `models/swin_transformer_v2.py`. The largest
    offset of a window of P reaches log2(9)/3 = 1.056642, a larger window more.

    Examples
    --------
    >>> (log_cpb_coordinates(1, 3, pretrained=3).round(6) + 0.0)[:, 1].tolist()
    [-1.056642, -0.773976, 0.0, 0.773976, 1.056642]
    >>> round(float(log_cpb_coordinates(1, 16, 8).max()), 6)  # a window of 16, pretrained with 8
    1.393777
    """
    name = "log_cpb_coordinates"
    sides = (checks.integer(name, "height", height), checks.integer(name, "width", width))
    given = np.asarray(sides if pretrained is None else pretrained)
    if given.shape not in ((), (2,)):
        raise ValueError(f"{name}: pretrained must be one side or two; got shape {given.shape}")
    P = [checks.integer(name, "pretrained", side) for side in np.broadcast_to(given, 2).tolist()]
    if min(P) < 2:
        raise ValueError(
            f"{name}: the window of the pretraining must be at least 2 by 2, since P - 1 divides; "
            f"got {P[0]} by {P[1]}"
        )
    d = [np.arange(1 - side, side) for side in sides]
    u = [np.sign(d) * np.log2(1 + 8 * np.abs(d) / (p - 1)) / 3 for d, p in zip(d, P, strict=True)]
    return np.stack(np.meshgrid(*u, indexing="ij"), axis=-1).reshape(-1, 2)
