r"""Disentangled attention of DeBERTa: content to content, content to position, position to content.

Source: He et al. 2021, "DeBERTa" (arXiv:2006.03654), section 3.1, equations (3) and (4)::

    A_ij = Q^c_i K^c_j^T + Q^c_i K^r_delta(i,j)^T + K^c_j Q^r_delta(j,i)^T
    H = softmax(A / sqrt(3d)) V
    delta(i, j) = 0 if i - j <= -k;  2k - 1 if i - j >= k;  i - j + k otherwise

Axes: B batch, H heads, L queries, S keys, K width of one head (d).
Symbols: c2p and p2c are the second and the third term; m is the paper's k, a table has 2m rows.
Convention: distance = i - j. All three terms are inside the scale 1/sqrt(3K).
Differs from the paper: nothing by default. The code in microsoft/DeBERTa, before and since commit
c794b71, reads the p2c table at delta(i, j) too, where the paper prints delta(j, i): give it
``p2c_distance=distance``.
"""

from __future__ import annotations

import math
import operator

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.relative.distance import (
    add_key_products,
    add_query_products,
    check_distance,
    each_distance,
    edges_reached,
)


def deberta_scores(
    q: ArrayLike,
    k: ArrayLike,
    q_table: ArrayLike,
    k_table: ArrayLike,
    distance: ArrayLike,
    p2c_distance: ArrayLike | None = None,
) -> np.ndarray:
    """Disentangled scores: (c2c + c2p + p2c) / sqrt(3K).

    Parameters
    ----------
    q : (..., H, L, K) array
        Content queries.
    k : (..., H, S, K) array
        Content keys.
    q_table, k_table : (H, 2m, K) arrays
        Projected relative vectors Q^r and K^r; row clip(delta + m, 0, 2m - 1) serves delta.
    distance : (L, S) integer array, or one that broadcasts to the scores, such as (B, 1, L, S)
        Query minus key position, or its `deberta_bucket`: c2p reads `k_table` with it.
    p2c_distance : like `distance`, optional
        What p2c reads `q_table` with: the opposite of `distance` by default, as in the paper;
        `distance` itself for the authors' code.

    Returns
    -------
    (..., H, L, S) array, scaled; give it to `attend`.

    Notes
    -----
    Source: He et al. 2021, equations (3) and (4).

    Examples
    --------
    >>> from pe_numpy import relative_distance
    >>> q, k, distance = [[[3.0], [6.0]]], [[[1.0], [2.0]]], relative_distance([0, 1], [0, 1])
    >>> q_table, k_table = [[[0.0], [1.0]]], [[[10.0], [20.0]]]  # m = 1: the future, else
    >>> (deberta_scores(q, k, q_table, k_table, distance) * 3**0.5).round(9).tolist()
    [[[64.0, 38.0], [126.0, 134.0]]]
    """
    name = "deberta_scores"
    q, k, batch = checks.queries_and_keys(name, q, k, heads=True)
    shape = (*batch, q.shape[-2], k.shape[-2])
    distance = check_distance(name, distance, shape)
    if p2c_distance is None:
        p2c_distance, sign = distance, -1  # j - i
    else:
        p2c_distance, sign = check_distance(name, p2c_distance, shape, "p2c_distance"), 1
    work, dtype = checks.working(q, k)
    scale = 1 / math.sqrt(3 * q.shape[-1])
    q, k = q.astype(work, copy=False) * scale, k.astype(work, copy=False)
    tables = []
    for which, table in (("q_table", q_table), ("k_table", k_table)):
        table = checks.head_table(name, which, table, batch, q.shape[-1])
        checks.even(name, f"the number of rows of {which}", table.shape[-2], "m are on each side")
        tables.append(table.astype(work, copy=False))
    m_q, m_k = (table.shape[-2] // 2 for table in tables)
    scores = q @ np.swapaxes(k, -1, -2)  # c2c, (..., H, L, S)
    scores = add_query_products(  # c2p
        scores, q, tables[1], distance, lambda d: np.clip(d + m_k, 0, 2 * m_k - 1)
    )
    k = k * scale
    scores = add_key_products(  # p2c
        scores, k, tables[0], p2c_distance, lambda d: np.clip(sign * d + m_q, 0, 2 * m_q - 1)
    )
    return scores.astype(dtype, copy=False)


def deberta_bucket(distance: ArrayLike, num_buckets: int, max_distance: int) -> np.ndarray:
    """Signed logarithmic bucket of each distance, as in DeBERTa-v2 and -v3.

    Parameters
    ----------
    distance : integer array of any shape
        Query minus key position.
    num_buckets : int
        b, even; distances up to b/2 keep their number.
    max_distance : int
        Maps to b - 1; further distances are clamped to that.

    Returns
    -------
    Integer array of the shape of `distance`, between -(b - 1) and b - 1 and odd in the distance;
    read-only if that is a window. It may take the place of `distance` in `deberta_scores`, with
    tables of 2b rows.

    Raises
    ------
    ValueError
        If max_distance is not above b/2 + 1.

    Notes
    -----
    Source: `make_log_bucket_position` in microsoft/DeBERTa since commit c794b71; the paper has no
    buckets. Before that commit, and in huggingface/transformers (0038a3c), buckets grow past
    max_distance and the row of the table is clipped instead, so the far future reads row 0, which
    no bucket here does.
    With mid = b/2: sign(d) (mid + ceil(log(abs(d)/mid) / log((max_distance - 1)/mid) (mid - 1))).
    In other words, bucket mid + t ends with mid ((max_distance - 1)/mid)^(t/(mid - 1)): exactly
    there, where rounded logarithms may end it one distance too early.

    Examples
    --------
    >>> deberta_bucket([0, 128, 129, -200, 511, 9999], 256, 512).tolist()
    [0, 128, 129, -169, 255, 255]
    """
    name = "deberta_bucket"
    distance = checks.whole_numbers(name, "distance", distance)
    num_buckets = checks.even(name, "num_buckets", num_buckets, "half of them hold one distance")
    max_distance = checks.integer(name, "max_distance", max_distance)
    mid = num_buckets // 2
    if max_distance <= mid + 1:
        raise ValueError(
            f"{name}: max_distance must be above num_buckets / 2 + 1 = {mid + 1}; "
            f"got {max_distance}"
        )

    def bucket(d: np.ndarray) -> np.ndarray:
        n = np.abs(d)
        far = mid + edges_reached(n, mid, max_distance - 1, mid - 1, operator.gt)
        return np.where(n <= mid, d, np.sign(d) * far)

    return each_distance(bucket, distance)
