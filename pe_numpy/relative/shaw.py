r"""A vector for each distance: Shaw's scheme, and what BERT and NEZHA made of it.

Source: Shaw et al. 2018, "Self-attention with relative position representations"
(arXiv:1803.02155), sections 3.1 and 3.2::

    e_ij = x_i W^Q (x_j W^K + a^K_ij)^T / sqrt(d_z)
    z_i  = sum_j alpha_ij (x_j W^V + a^V_ij)
    a_ij = w_clip(j - i, k),  clip(x, k) = max(-k, min(k, x))

Axes: B batch, H heads, L queries, S keys, K width of one head (d_z).
Symbols: m is the paper's clipping distance k; a table has 2m + 1 rows.
Convention: distance = i - j, so a pair reads row clip(i - j, -m, m) + m. Row 0 is the far future
and row 2m the far past. The paper counts j - i, so its table is this one upside down. The key term
is inside the scale.
Differs from the paper: the order of the rows. A table may be shared by all heads or have a part for
each head; the paper has models of both kinds (section 4.1). The two schemes at the end have papers
of their own.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.absolute.sinusoidal import sinusoidal
from pe_numpy.relative.distance import (
    RowOf,
    add_key_products,
    add_query_products,
    add_to,
    check_distance,
    spread_sums,
)


def shaw_scores(
    q: ArrayLike, k: ArrayLike, key_table: ArrayLike, distance: ArrayLike
) -> np.ndarray:
    """Scores with a vector for each distance: (q . k + q . R_(i-j)) / sqrt(K).

    Parameters
    ----------
    q : (..., L, K) array
        Queries.
    k : (..., S, K) array
        Keys.
    key_table : (2m + 1, K) array, or (H, 2m + 1, K)
        Vectors R of the distances -m .. m; further ones are clipped to these.
    distance : (L, S) integer array, or one that broadcasts to the scores, such as (B, 1, L, S)
        Query minus key position, from `relative_distance`.

    Returns
    -------
    (..., L, S) array, scaled; give it to `attend`.

    Notes
    -----
    Source: Shaw et al. 2018, equation (4), split into two products as in their section 3.3. No
    array of shape (L, S, K) is made.

    Examples
    --------
    >>> from pe_numpy import relative_distance
    >>> distance = relative_distance([0, 1], [0, 1])
    >>> shaw_scores([[1.0], [2.0]], [[3.0], [5.0]], [[0.5], [0.25], [1.0]], distance).tolist()
    [[3.25, 5.5], [8.0, 10.5]]
    """
    name = "shaw_scores"
    q, k, batch = checks.queries_and_keys(name, q, k)
    distance = check_distance(name, distance, (*batch, q.shape[-2], k.shape[-2]))
    table, row_of = _clipped_table(name, "key_table", key_table, batch, q.shape[-1])
    work, dtype = checks.working(q, k)
    q, k, table = (x.astype(work, copy=False) for x in (q, k, table))
    q = q * (1 / math.sqrt(q.shape[-1]))
    content = q @ np.swapaxes(k, -1, -2)  # (..., L, S)
    return add_query_products(content, q, table, distance, row_of).astype(dtype, copy=False)


def shaw_values(
    weights: ArrayLike, v: ArrayLike, value_table: ArrayLike, distance: ArrayLike
) -> np.ndarray:
    """Weighted sum with a vector for each distance: sum_j w_ij (v_j + R_(i-j)).

    Parameters
    ----------
    weights : (..., L, S) array
        Attention weights.
    v : (..., S, K) array
        Values.
    value_table : (2m + 1, K) array, or (H, 2m + 1, K)
        Vectors R of the distances -m .. m; further ones are clipped to these.
    distance : (L, S) integer array, or one that broadcasts to the weights
        Query minus key position.

    Returns
    -------
    (..., L, K) array.

    Notes
    -----
    Source: Shaw et al. 2018, equation (3).

    Examples
    --------
    >>> from pe_numpy import relative_distance
    >>> distance = relative_distance([0, 1], [0, 1])
    >>> weights = [[1.0, 0.0], [0.5, 0.5]]
    >>> shaw_values(weights, [[3.0], [5.0]], [[0.5], [0.25], [1.0]], distance).tolist()
    [[3.25], [4.625]]
    """
    name = "shaw_values"
    weights = checks.real_array(name, "weights", weights, "LS")
    v = checks.real_array(name, "v", v, "SK")
    if weights.shape[-1] != v.shape[-2]:
        raise ValueError(
            f"{name}: weights and v must have the same number of keys S; "
            f"got {weights.shape[-1]} and {v.shape[-2]}"
        )
    batch = checks.common_batch(name, weights=weights.shape[:-2], v=v.shape[:-2])
    distance = check_distance(name, distance, (*batch, *weights.shape[-2:]))
    table, row_of = _clipped_table(name, "value_table", value_table, batch, v.shape[-1])
    work, dtype = checks.working(weights, v)
    weights = np.broadcast_to(weights.astype(work, copy=False), (*batch, *weights.shape[-2:]))
    mixed = weights @ v.astype(work, copy=False)  # (..., L, K)
    position = spread_sums(weights, table.astype(work, copy=False), distance, row_of)
    return add_to(mixed, position).astype(dtype, copy=False)


def relative_key_query_scores(
    q: ArrayLike, k: ArrayLike, table: ArrayLike, distance: ArrayLike
) -> np.ndarray:
    """Scores with one vector for both query and key: (q . k + q . r + k . r) / sqrt(K).

    Parameters
    ----------
    q : (..., L, K) array
        Queries.
    k : (..., S, K) array
        Keys.
    table : (2N - 1, K) array, or (H, 2N - 1, K)
        Vectors r of the distances 1 - N .. N - 1, row i - j + N - 1; N is the longest text.
    distance : (L, S) integer array, or one that broadcasts to the scores, such as (B, 1, L, S)
        Query minus key position, from `relative_distance`; nothing is clipped.

    Returns
    -------
    (..., L, S) array, scaled; give it to `attend`.

    Raises
    ------
    ValueError
        If a distance lies outside the table.

    Notes
    -----
    Source: Huang et al. 2020, "Improve Transformer models with better relative position embeddings"
    (arXiv:2009.13658), method 4; "relative_key_query", a `position_embedding_type` of BERT in
    transformers 4, gone in 5. Its "relative_key" leaves k . r out, which is `shaw_scores`.

    Examples
    --------
    >>> from pe_numpy import relative_distance
    >>> distance = relative_distance([0, 1], [0, 1])
    >>> table = [[0.5], [0.25], [1.0]]
    >>> relative_key_query_scores([[1.0], [2.0]], [[3.0], [5.0]], table, distance).tolist()
    [[4.0, 8.0], [11.0, 11.75]]
    """
    name = "relative_key_query_scores"
    q, k, batch = checks.queries_and_keys(name, q, k)
    distance = check_distance(name, distance, (*batch, q.shape[-2], k.shape[-2]))
    table, _ = _clipped_table(name, "table", table, batch, q.shape[-1])
    m = table.shape[-2] // 2  # N - 1
    if distance.size and not -m <= distance.min() <= distance.max() <= m:
        raise ValueError(
            f"{name}: distance must be from {-m} to {m}, since table has {table.shape[-2]} rows; "
            f"got {distance.min()} to {distance.max()}"
        )
    work, dtype = checks.working(q, k)
    q, k, table = (x.astype(work, copy=False) for x in (q, k, table))
    scale = 1 / math.sqrt(q.shape[-1])
    q = q * scale
    scores = q @ np.swapaxes(k, -1, -2)  # (..., L, S)
    scores = add_query_products(scores, q, table, distance, lambda d: d + m)
    scores = add_key_products(scores, k * scale, table, distance, lambda d: d + m)
    return scores.astype(dtype, copy=False)


def nezha_table(max_relative_position: int, d_head: int, base: float = 10000.0) -> np.ndarray:
    """Sinusoids instead of learned vectors: row r is PE(2m - r), for the distance r - m.

    Parameters
    ----------
    max_relative_position : int
        m, from which on distances share a vector; 64 in NEZHA's released models.
    d_head : int
        K, the width of one head; even.
    base : float
        As in `sinusoidal`.

    Returns
    -------
    (2m + 1, K) float64 array, for `shaw_scores` and `shaw_values` alike. The furthest future has
    the encoding of position 2m, the furthest past that of 0: no position is negative.

    Notes
    -----
    Source: Wei et al. 2019, "NEZHA" (arXiv:1909.00204). The positions are those of its code,
    NEZHA-PyTorch in huawei-noah/Pretrained-Language-Model (0598f02): it reads row
    clip(j - i, -m, m) + m of PE(0), ..., PE(2m), which is this table upside down.

    Examples
    --------
    >>> nezha_table(1, 2).round(3).tolist()
    [[0.909, -0.416], [0.841, 0.54], [0.0, 1.0]]
    """
    m = checks.integer("nezha_table", "max_relative_position", max_relative_position)
    d_head = checks.even("nezha_table", "d_head", d_head)
    base = checks.positive("nezha_table", "base", base)
    return sinusoidal(np.arange(2 * m, -1, -1), d_head, base)


def _clipped_table(
    function: str, name: str, table: ArrayLike, batch: tuple[int, ...], width: int
) -> tuple[np.ndarray, RowOf]:
    """A checked table, and the rows that distances read in it."""
    table = checks.head_table(function, name, table, batch, width)
    m = table.shape[-2] // 2
    if table.shape[-2] % 2 == 0:
        raise ValueError(
            f"{function}: {name} must have 2m + 1 rows, for the distances -m .. m; "
            f"got {table.shape[-2]}"
        )
    return table, lambda distance: np.clip(distance, -m, m) + m
