r"""Relative positions of Transformer-XL, which XLNet inherits: two global vectors and a shift.

Source: Dai et al. 2019, "Transformer-XL" (arXiv:1901.02860), section 3.3, and appendix B for the
shift; Yang et al. 2019, "XLNet" (arXiv:1906.08237), uses it in both directions::

    A_ij = E_i^T W_q^T W_kE E_j + E_i^T W_q^T W_kR R_(i-j) + u^T W_kE E_j + v^T W_kR R_(i-j)

Axes: B batch, H heads, L queries, S keys, K width of one head, N distances.
Symbols: q = W_q E_i, k = W_kE E_j; r = W_kR R_(i-j), the projected sinusoidal code of a distance; u
and v are learned, one vector a head each, and stand for the query's position.
Convention: distance = i - j, as in the paper. All four terms are divided by sqrt(K) (the paper's
formula leaves the scale out, its code has it).
Differs from the paper: the rows of r ascend from the least distance to the largest; the code's
descend from the largest.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.relative.distance import add_query_products, check_distance


def transformer_xl_scores(
    q: ArrayLike, k: ArrayLike, r: ArrayLike, u: ArrayLike, v: ArrayLike, distance: ArrayLike
) -> np.ndarray:
    """Scores with content and position biases: ((q + u) . k + (q + v) . r_(i-j)) / sqrt(K).

    Parameters
    ----------
    q : (..., H, L, K) array
        Queries.
    k : (..., H, S, K) array
        Keys.
    r : (H, N, K) array
        Projected codes, one row for each distance from ``distance.min()`` to ``distance.max()``,
        ascending: N = max - min + 1 exactly.
    u, v : (H, K) arrays
        Biases of the content and of the position term.
    distance : (L, S) integer array, or one that broadcasts to the scores, such as (B, 1, L, S)
        Query minus key position, from `relative_distance`.

    Returns
    -------
    (..., H, L, S) array, scaled; give it to `attend`.

    Notes
    -----
    Source: Dai et al. 2019, section 3.3, terms (a) to (d).

    Examples
    --------
    >>> from pe_numpy import relative_distance
    >>> q, k, r = [[[1.0], [2.0]]], [[[3.0], [5.0]]], [[[0.5], [0.25], [1.0]]]
    >>> u, v, distance = [[1.0]], [[2.0]], relative_distance([0, 1], [0, 1])
    >>> transformer_xl_scores(q, k, r, u, v, distance).tolist()
    [[[6.75, 11.5], [13.0, 16.0]]]
    """
    name = "transformer_xl_scores"
    q, k, batch = checks.queries_and_keys(name, q, k, heads=True)
    shape = (*batch, q.shape[-2], k.shape[-2])
    distance = check_distance(name, distance, shape)
    H, K = batch[-1], q.shape[-1]
    u, v = (checks.exact_shape(name, n, a, (H, K), "(H, K)") for n, a in (("u", u), ("v", v)))
    least = int(distance.min()) if distance.size else 0
    N = int(distance.max()) - least + 1 if distance.size else 0
    r = checks.exact_shape(name, "r", r, (H, N, K), "(H, N, K), a row for each distance")
    work, dtype = checks.working(q, k)
    q, k, r, u, v = (a.astype(work, copy=False) for a in (q, k, r, u, v))
    scale = 1 / math.sqrt(K)
    scores = ((q + u[:, None, :]) * scale) @ np.swapaxes(k, -1, -2)  # (..., H, L, S)
    q_v = (q + v[:, None, :]) * scale
    scores = add_query_products(scores, q_v, r, distance, lambda d: d - least)
    return scores.astype(dtype, copy=False)


def relative_shift(products: ArrayLike) -> np.ndarray:
    """Shift row i of L rows to the left by L - 1 - i, only by padding and reshaping.

    Parameters
    ----------
    products : (..., L, N) array, N at least L
        Products of each query with the codes of all distances, the largest first: column c belongs
        to the distance N - 1 - c.

    Returns
    -------
    (..., L, N) array. With S = N keys, of which the last L are the queries' own positions, entry
    [i, j] belongs to the distance i - j + N - L wherever the key is not in the future, that is
    j <= i + N - L. **Beyond that stands data of the next row**, after one zero: mask it.

    Raises
    ------
    ValueError
        If there are fewer distances than queries: row 0 would have nothing of its own.

    Notes
    -----
    Source: Dai et al. 2019, appendix B, and `_rel_shift` in kimiyoung/transformer-xl (44781ed). The
    package itself spreads with a window, which is right on both sides of the diagonal.

    Examples
    --------
    >>> relative_shift([[12, 11, 10], [22, 21, 20], [32, 31, 30]]).astype(int).tolist()
    [[10, 0, 22], [21, 20, 0], [32, 31, 30]]
    """
    x = checks.real_array("relative_shift", "products", products, "LN")
    *batch, L, N = x.shape
    if N < L:
        raise ValueError(
            f"relative_shift: there must be at least as many distances as queries; got {N} for {L}"
        )
    padded = np.concatenate([np.zeros((*batch, L, 1), x.dtype), x], axis=-1)  # (..., L, N + 1)
    return padded.reshape(*batch, L * (N + 1))[..., L:].reshape(*batch, L, N)
