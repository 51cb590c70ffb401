r"""CoPE: the distance of a key is the number of tokens that the query chooses to count.

Source: Golovneva et al. 2024, "Contextual Position Encoding" (arXiv:2405.18719), and
facebookresearch/RAM, projects/cope, commit e6f051f::

    g_ij = sigmoid(q_i . k_j / sqrt(K))      p_ij = g_ij + ... + g_ii, at most N - 1
    z_ij = q_i . e[p_ij], linear between the rows floor(p) and ceil(p)

Axes: L queries, S keys, K width of one head, N rows of the table.
Symbols: g is a gate, p a position: the query's count from the key to itself; e is the table.
Convention: masked keys count nothing, so the mask is needed before the sum. Without one the count
continues to the end of the row.
Differs from the code: nothing; which scale z meets is the caller's choice. The released code puts
it inside, (q . k + z) / sqrt(K), unless told otherwise by a flag; the listing in the paper's
appendix B outside, q . k / sqrt(K) + z.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.relative.distance import ROWS


def cope_bias(
    q: ArrayLike, gate_scores: ArrayLike, table: ArrayLike, mask: ArrayLike | None = None
) -> np.ndarray:
    """Score of each query with the row of its count, between two rows in proportion: q . e[p].

    Parameters
    ----------
    q : (..., L, K) array
        Queries.
    gate_scores : (..., L, S) array
        Scores from which the gates are made, scaled: mostly q . k / sqrt(K). -inf closes a gate.
    table : (N, K) array
        A vector for each count from 0 to N - 1, shared by the heads.
    mask : boolean array that broadcasts to (..., L, S), optional
        True = may attend; the other keys count nothing.

    Returns
    -------
    (..., L, S) array, not scaled.

    Raises
    ------
    ValueError
        If the table has fewer than two rows or not the width of q, gate_scores not the queries of
        q, gate_scores hold nan, the mask is not boolean or too large, or batch axes don't
        broadcast.

    Notes
    -----
    Source: Golovneva et al. 2024, and the code named above. Each query meets each row of the table
    once; then L S numbers are looked up. Between two whole counts the slope in p is constant.

    Examples
    --------
    >>> open_, shut = np.inf, -np.inf
    >>> cope_bias([[1.0]], [[open_, shut, open_, 0.0]], [[0.0], [1.0], [4.0], [9.0]]).tolist()
    [[6.5, 2.5, 2.5, 0.5]]
    """
    name = "cope_bias"
    q = checks.real_array(name, "q", q, "LK")
    gate_scores = checks.real_array(name, "gate_scores", gate_scores, "LS")
    table = checks.real_array(name, "table", table, "NK")
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] != q.shape[-1]:
        raise ValueError(
            f"{name}: table must have the axes (N, K) with N at least 2 and K = {q.shape[-1]}; "
            f"got shape {table.shape}"
        )
    if gate_scores.shape[-2] != q.shape[-2]:
        raise ValueError(
            f"{name}: q and gate_scores must have the same number of queries L; "
            f"got {q.shape[-2]} and {gate_scores.shape[-2]}"
        )
    checks.common_batch(name, q=q.shape[:-2], gate_scores=gate_scores.shape[:-2])
    if np.isnan(gate_scores).any():
        raise ValueError(f"{name}: gate_scores must be numbers; got nan among them")
    work, dtype = checks.working(q, gate_scores, table)
    mask = True if mask is None else checks.mask_array(name, mask, gate_scores.shape)
    mask = np.broadcast_to(mask, gate_scores.shape)
    products = q.astype(work) @ np.swapaxes(table.astype(work), -1, -2)  # (..., L, N)
    gate_scores, blocks = gate_scores.astype(work), []
    for start in range(0, max(q.shape[-2], 1), ROWS):  # as many queries as a cache holds
        rows = (..., slice(start, start + ROWS), slice(None))
        blocks.append(at_counts(products[rows], gate_scores[rows], mask[rows]))
    return np.concatenate(blocks, axis=-2).astype(dtype, copy=False)


def at_counts(products: np.ndarray, gate_scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """z_ij, between the products q_i . e_n (..., L, N) on both sides of the count p_ij."""
    N = products.shape[-1]
    gates = 0.5 + 0.5 * np.tanh(0.5 * gate_scores)  # the sigmoid, no overflow
    gates = np.where(mask, gates, 0.0)
    counts = np.cumsum(gates[..., ::-1], axis=-1)[..., ::-1]  # (..., L, S), from j up to i
    counts = np.minimum(counts, N - 1.0)
    low, high = np.floor(counts), np.ceil(counts)
    share = counts - low
    first = N * np.arange(products.size // N).reshape(*products.shape[:-1], 1)  # of each query
    z_low, z_high = (products.ravel()[first + n.astype(int)] for n in (low, high))
    return z_low * (1 - share) + z_high * share
