r"""Sandwich: the inner product of two sinusoidal codes as a bias, a bridge from them to ALiBi.

Source: Chi et al. 2023, "Dissecting Transformer length extrapolation via the lens of receptive
field analysis" (arXiv:2212.10356); for the constants NeMo's code (NVIDIA/NeMo, commit 8cfedd7,
`sandwich_relative_position_embedding.py`)::

    ( sum_c cos((i - j) base^(-2c/d)) - d/2 ) / (8h/H),    c = 1 .. d/2

Axes: B batch, H heads, L queries, S keys.
Symbols: d is the width of the codes (in NeMo that of a head); h = 1..H numbers the heads.
Convention: distance = i - j; the bias is added after the division by sqrt(K).
Differs from the code: its causal branch sets distances of the future to 0, and only where L = S
meets them; here a mask does that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.relative.distance import each_distance


def sandwich_bias(
    n_heads: int, distance: ArrayLike, d: int = 128, base: float = 10000.0
) -> np.ndarray:
    """Penalty from sinusoids: (sum_c cos((i - j) base^(-2c/d)) - d/2) / (8h/H).

    Parameters
    ----------
    n_heads : int
        Number of heads H; the first has the largest penalty, the last 1/H of it.
    distance : (L, S) integer array, or (B, L, S)
        Query minus key position, from `relative_distance`.
    d : int
        Width of the sinusoidal codes, even: d/2 cosines, c from 1 to d/2.
    base : float
        The slowest cosine turns by 1/base from one token to the next.

    Returns
    -------
    (H, L, S) float64 array, or (B, H, L, S), not above 0; add it to scaled scores. For consecutive
    positions a read-only window on L + S - 1 numbers per head.

    Notes
    -----
    Source: Chi et al. 2023, and NeMo's code named above. Nothing is trained.

    Examples
    --------
    >>> bias = sandwich_bias(8, [[0, 1, 2, 3, 4, 5]])
    >>> bias.shape, bias[0].round(6).tolist()
    ((8, 1, 6), [[0.0, -1.446619, -5.201993, -9.823779, -13.760326, -16.09865]])
    """
    name = "sandwich_bias"
    n_heads = checks.integer(name, "n_heads", n_heads)
    distance = checks.bias_distance(name, distance)
    d = checks.even(name, "d", d)
    base = checks.positive(name, "base", base)
    frequencies = base ** (-2 * np.arange(1, d // 2 + 1) / d)
    share = n_heads / (8 * np.arange(1, n_heads + 1))  # (H,)

    def penalty(distance: np.ndarray) -> np.ndarray:
        away, place = np.unique(np.abs(distance), return_inverse=True)
        below = np.cos(np.multiply.outer(away, frequencies)).sum(axis=-1) - d / 2  # (N,)
        return np.take(np.multiply.outer(share, below), place.reshape(distance.shape), axis=1)

    return np.moveaxis(each_distance(penalty, distance), 0, -3)
