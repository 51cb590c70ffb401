"""Exercises of chapter 36: functions of the distance between T5 and ALiBi.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 36_distance_functions.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def kerple_log_bias(p, a, distance):
    """A penalty that grows with the logarithm of the distance.

    p, a      (H,)        above 0
    distance  (L, S), or (B, L, S)   i - j
    returns   (H, L, S), or (B, H, L, S), of the dtype of p and a

    for each head h and pair (i, j):
        bias[h, i, j] = -p[h] ln(1 + a[h] |distance[i, j]|)
    """
    raise NotImplementedError


def kerple_power_bias(a, p, distance):
    """A penalty that grows with a power of the distance.

    a, p      (H,)        above 0, p at most 2
    distance  (L, S), or (B, L, S)   i - j
    returns   (H, L, S), or (B, H, L, S), of the dtype of a and p

    for each head h and pair (i, j):
        bias[h, i, j] = -a[h] |distance[i, j]|^p[h]
    """
    raise NotImplementedError


def sandwich_bias(n_heads, distance, d=128, base=10000.0):
    """What two sinusoidal codes have in common, as a penalty.

    n_heads   int         H
    distance  (L, S), or (B, L, S)   i - j
    returns   (H, L, S), or (B, H, L, S), float64

    for each head h = 1 .. H and pair (i, j):
        sum = of cos(distance[i, j] base^(-2c/d)) for c = 1 .. d/2
        bias[h - 1, i, j] = (sum - d/2) / (8 h / H)
    """
    raise NotImplementedError


def fire_bias(params, q_positions, k_positions, eps=1e-6):
    """A small network of the distance as a share of the way back.

    params       W1 (1, M), b1 (M,), W2 (M, H), b2 (H,), and the numbers c and L
    q_positions  (Q,), or (B, Q)    i: of the queries
    k_positions  (S,), or (B, S)    j: of the keys
    returns      (H, Q, S), or (B, H, Q, S), of the dtype of W1

    psi(x) = ln(1 + |c| x)
    for each head h and pair (i, j):
        x = psi(|i - j|) / (psi(max(i, L)) + eps)
        bias[h, i, j] = b2[h] + sum over m of max(0, x W1[0, m] + b1[m]) W2[m, h]
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# kerple_log_bias, 1: p[:, None, None] stands beside (L, S).
# kerple_log_bias, 2: np.log1p(x) is ln(1 + x).
# kerple_log_bias, 3: for a batch, give the distance an axis for the heads.

# kerple_power_bias, 1: with p = 1 it is ALiBi.
# kerple_power_bias, 2: take the absolute value before the power.

# sandwich_bias, 1: np.arange(1, d // 2 + 1) holds c.
# sandwich_bias, 2: an axis for c at the end of the distance, and a sum over it.

# fire_bias, 1: i is (Q, 1), j is (1, S): the maximum stays a column.
# fire_bias, 2: x[..., None] @ W1 + b1 has the hidden units last.
# fire_bias, 3: the heads come last; np.moveaxis puts them before (Q, S).
