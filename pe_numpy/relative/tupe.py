r"""TUPE: content and position are correlated apart, each with projections of its own.

Source: Ke et al. 2021, "Rethinking positional encoding in language pre-training"
(arXiv:2006.15595), section 3.1, equation (7), and (8) for the bias::

    alpha_ij = (x_i W^Q) (x_j W^K)^T / sqrt(2d) + (p_i U^Q) (p_j U^K)^T / sqrt(2d) + b_(j-i)

Axes: B batch, H heads, L queries, S keys, K width of one head (d).
Symbols: pq = p U^Q and pk = p U^K are projected positions, shared by all layers; b is T5's bias.
Convention: both products are inside the scale 1/sqrt(2K), so that their sum has the variance of one
product over sqrt(K). The bias is outside.
Differs from the paper: nothing here. The paper also resets the row and the column of its first
token [CLS] to two learned numbers (section 3.2, "untie the [CLS] symbol"): in the position part,
product and bias, before the product of the content is added.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def tupe_scores(
    q: ArrayLike,
    k: ArrayLike,
    q_position: ArrayLike,
    k_position: ArrayLike,
    bias: ArrayLike | None = None,
) -> np.ndarray:
    """Scores of untied content and position: (q . k + pq . pk) / sqrt(2K) + bias.

    Parameters
    ----------
    q : (..., H, L, K) array
        Queries, from token vectors without a position.
    k : (..., H, S, K) array
        Keys.
    q_position : (H, L, K) array, or (B, H, L, K)
        Projected positions of the queries; with a batch axis where padding makes them differ.
    k_position : (H, S, K) array, or (B, H, S, K)
        Projected positions of the keys.
    bias : array that broadcasts to the scores, optional
        Added after the scale: T5's bias gives the paper's TUPE-R, none its TUPE-A.

    Returns
    -------
    (..., H, L, S) array, scaled; give it to `attend`.

    Raises
    ------
    ValueError
        If the bias would enlarge the scores.

    Notes
    -----
    Source: Ke et al. 2021, section 3.1, equation (7); with the bias, (8).

    Examples
    --------
    >>> tupe_scores([[[2.0, 0.0]]], [[[3.0, 0.0]]], [[[1.0, 0.0]]], [[[4.0, 0.0]]]).tolist()
    [[[5.0]]]
    """
    name = "tupe_scores"
    q, k, batch = checks.queries_and_keys(name, q, k, heads=True)
    (L, K), S, H = q.shape[-2:], k.shape[-2], batch[-1]
    pq = _projected(name, "q_position", q_position, batch, (H, L, K), "(H, L, K)")
    pk = _projected(name, "k_position", k_position, batch, (H, S, K), "(H, S, K)")
    work, dtype = checks.working(q, k)
    q, k, pq, pk = (a.astype(work, copy=False) for a in (q, k, pq, pk))
    scale = 1 / math.sqrt(2 * K)
    scores = (q * scale) @ np.swapaxes(k, -1, -2)  # (..., H, L, S)
    scores = scores + (pq * scale) @ np.swapaxes(pk, -1, -2)  # (H, L, S), once for the batch
    if bias is not None:
        bias = checks.real_array(name, "bias", bias)
        checks.fits(name, "bias", bias.shape, (*batch, L, S), "the scores")
        scores = scores + bias.astype(work, copy=False)
    return scores.astype(dtype, copy=False)


def _projected(
    function: str,
    name: str,
    p: ArrayLike,
    batch: tuple[int, ...],
    shape: tuple[int, ...],
    axes: str,
) -> np.ndarray:
    p = checks.real_array(function, name, p)
    if p.shape[-3:] != shape or p.ndim > len(batch) + 2:
        raise ValueError(f"{function}: {name} must have the shape {axes} = {shape}; got {p.shape}")
    checks.fits(function, name, p.shape[:-3], batch[:-1], "the batch")
    return p
