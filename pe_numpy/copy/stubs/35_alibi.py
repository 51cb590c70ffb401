"""Exercises of chapter 35: punish distance.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 35_alibi.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def alibi_slopes(n_heads):
    """The slope of each head, by the authors' rule for every number of heads.

    n_heads  int    H
    returns  (H,)   float64, positive

    P = the largest power of two that is not above H
    for h in 1 .. P:
        slope = 2^(-8 h / P)
    if H is above P, go on with h = 1, 3, 5, ... (H - P of them):
        slope = 2^(-8 h / (2 P))
    """
    raise NotImplementedError


def alibi_bias(slopes, distance, future_slopes=None):
    """A penalty that grows with the distance.

    slopes         (H,)        positive
    distance       (L, S), or (B, L, S)   i - j
    future_slopes  (H,), or None: those of the past hold for both sides
    returns        (H, L, S), or (B, H, L, S), of the slopes' dtype

    for each head h and pair (i, j):
        m = slopes[h], or future_slopes[h] if distance[i, j] is below 0
        bias[h, i, j] = -m |distance[i, j]|
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# alibi_slopes, 1: 8 heads: a half, a quarter, ... 1/256.
# alibi_slopes, 2: 6 heads: those of 4, then two of those of 8.
# alibi_slopes, 3: H.bit_length() tells how many bits H has.

# alibi_bias, 1: slopes[:, None, None] stands beside (L, S).
# alibi_bias, 2: for a batch, give the distance an axis for the heads.
# alibi_bias, 3: np.where chooses the slope before it is multiplied.
