r"""ALiBi: attention with linear biases, a fixed penalty that grows with distance.

Source: Press et al. 2022, "Train short, test long" (arXiv:2108.12409), section 3::

    softmax(q_i K^T + m [-(i - 1), ..., -2, -1, 0])

Axes: B batch, H heads, L queries, S keys.
Symbols: m is the slope of a head.
Convention: the bias is added after the division by sqrt(K) and is not scaled (the paper's footnote
on it). distance = i - j; its absolute value serves the causal case, where it is the paper's, and
encoders, symmetric or with different slopes for the future, which the paper does not have.
Differs from the paper: the slopes for a number of heads that is not a power of two are those of the
authors' code (ofirpress/attention_with_linear_biases, commit 4b92f28); the formula of the text
would give others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.relative.distance import each_distance


def alibi_slopes(n_heads: int) -> np.ndarray:
    """Slope of each head, by the authors' rule: 2^(-8h/H) for a power of two.

    Parameters
    ----------
    n_heads : int
        Number of heads H.

    Returns
    -------
    (H,) float64 array, all between 0 and 1. If H is not a power of two, the slopes for the next
    lower power p come first, then every other one of those for 2p: not in descending order.

    Notes
    -----
    Source: Press et al. 2022, section 3, and `get_slopes` in the code named above.

    Examples
    --------
    >>> alibi_slopes(8).tolist()
    [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]
    >>> alibi_slopes(3).tolist()
    [0.0625, 0.00390625, 0.25]
    """
    n_heads = checks.integer("alibi_slopes", "n_heads", n_heads)
    power = 1 << (n_heads.bit_length() - 1)  # the largest power of two that is not above H

    def geometric(n: int) -> np.ndarray:
        return 2.0 ** (-8 * np.arange(1, n + 1) / n)

    return np.concatenate([geometric(power), geometric(2 * power)[::2][: n_heads - power]])


def alibi_bias(
    slopes: ArrayLike, distance: ArrayLike, future_slopes: ArrayLike | None = None
) -> np.ndarray:
    """Penalty of each head and pair: -slope abs(i - j).

    Parameters
    ----------
    slopes : (H,) array
        From `alibi_slopes`, or any others.
    distance : (L, S) integer array, or (B, L, S)
        Query minus key position, from `relative_distance`.
    future_slopes : (H,) array, optional
        Slopes for keys of the future, i < j, so that an encoder knows left from right.

    Returns
    -------
    (H, L, S) array, or (B, H, L, S), of the dtype of the slopes; add it to scaled scores, with a
    causal mask for the paper's model. For consecutive positions a read-only window on L + S - 1
    numbers per head.

    Notes
    -----
    Source: Press et al. 2022, section 3. Slopes for the future are no part of the paper; issue 5 of
    the authors' repository speaks of such.

    Examples
    --------
    >>> from pe_numpy import relative_distance
    >>> (alibi_bias([0.5], relative_distance([0, 1, 2], [0, 1, 2])) + 0.0).tolist()
    [[[0.0, -0.5, -1.0], [-0.5, 0.0, -0.5], [-1.0, -0.5, 0.0]]]
    """
    name = "alibi_bias"
    slopes = checks.real_array(name, "slopes", slopes, "H")
    if slopes.ndim != 1:
        raise ValueError(f"{name}: slopes must have the axis (H); got shape {slopes.shape}")
    distance = checks.bias_distance(name, distance)
    if future_slopes is not None:
        future_slopes = checks.exact_shape(
            name, "future_slopes", future_slopes, slopes.shape, "(H,)"
        )

    def penalty(d: np.ndarray) -> np.ndarray:
        away = np.abs(d).astype(slopes.dtype)
        past = np.multiply.outer(-slopes, away)
        if future_slopes is None:
            return past
        return np.where(d < 0, np.multiply.outer(-future_slopes, away), past)

    return np.moveaxis(each_distance(penalty, distance), 0, -3)
