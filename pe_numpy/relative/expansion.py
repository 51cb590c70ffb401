r"""The four terms of a score with absolute positions, which every relative scheme edits.

Source: Dai et al. 2019, "Transformer-XL" (arXiv:1901.02860), section 3.3, terms (a) to (d) of
A^abs; Ke et al. 2021, "TUPE" (arXiv:2006.15595), equation (6)::

    (x_i + p_i) W_Q ((x_j + p_j) W_K)^T = x_i W_Q W_K^T x_j^T + x_i W_Q W_K^T p_j^T
                                        + p_i W_Q W_K^T x_j^T + p_i W_Q W_K^T p_j^T

Axes: L positions, D model width, K width of the projections.
Symbols: x token vectors, p position vectors, rows of W_Q and W_K belong to components of x.
Convention: rows are tokens. Every term is divided by sqrt(K), so their sum is the score.
Differs from the paper: the scale, which the papers leave out of the expansion.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def four_terms(
    x: ArrayLike, p: ArrayLike, w_q: ArrayLike, w_k: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Split the scores of x + p into content-content, content-position, position-content, p-p.

    Parameters
    ----------
    x : (..., L, D) array
        Token vectors.
    p : (L, D) array, or one of the shape of x
        Position vectors, which are added to them.
    w_q, w_k : (D, K) arrays
        Projections.

    Returns
    -------
    Four (..., L, L) arrays; the last is (L, L) for p of (L, D). Row i, column j belongs to query i
    and key j. Their sum is (x + p) W_Q ((x + p) W_K)^T / sqrt(K).

    Notes
    -----
    Source: Dai et al. 2019, section 3.3, A^abs.

    Examples
    --------
    >>> terms = four_terms([[1.0], [2.0]], [[10.0], [20.0]], [[1.0]], [[3.0]])
    >>> [term.tolist() for term in terms[:2]]
    [[[3.0, 6.0], [6.0, 12.0]], [[30.0, 60.0], [60.0, 120.0]]]
    >>> [term.tolist() for term in terms[2:]]
    [[[30.0, 60.0], [60.0, 120.0]], [[300.0, 600.0], [600.0, 1200.0]]]
    """
    name = "four_terms"
    x = checks.real_array(name, "x", x, "LD")
    p = checks.real_array(name, "p", p, "LD")
    checks.fits(name, "p", p.shape, x.shape, "x")
    w_q, w_k = (checks.real_array(name, n, w, "DK") for n, w in (("w_q", w_q), ("w_k", w_k)))
    if w_q.ndim != 2 or w_q.shape != w_k.shape or w_q.shape[0] != x.shape[-1] or not w_q.size:
        raise ValueError(
            f"{name}: w_q and w_k must both have the shape (D, K) with D = {x.shape[-1]}; "
            f"got {w_q.shape} and {w_k.shape}"
        )
    scale = 1 / math.sqrt(w_q.shape[-1])
    xq, xk, pq, pk = (x @ w_q) * scale, x @ w_k, (p @ w_q) * scale, p @ w_k  # (..., L, K)
    xk, pk = np.swapaxes(xk, -1, -2), np.swapaxes(pk, -1, -2)
    return xq @ xk, xq @ pk, pq @ xk, pq @ pk
