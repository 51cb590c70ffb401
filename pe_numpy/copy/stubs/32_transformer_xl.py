"""Exercises of chapter 32: shift once, score all distances.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 32_transformer_xl.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def relative_shift(products):
    """The shift by padding and reshaping.

    products  (..., L, N)   one column for each distance, the furthest first; N is at least L
    returns   (..., L, N)   of the data's dtype

    put a column of zeros to the left: (L, N+1)
    read it as one line of L (N+1) numbers; drop the first L of them
    read what is left as (L, N)
    """
    raise NotImplementedError


def transformer_xl_scores(q, k, r, u, v, distance):
    """Scores of Transformer-XL.

    q         (..., H, L, K)   queries
    k         (..., H, S, K)   keys
    r         (H, N, K)        one row for each distance, ascending from distance.min()
    u, v      (H, K)           biases of content and position
    distance  (L, S)           i - j
    returns   (..., H, L, S)   of q's dtype

    for each head h and pair (i, j):
        row = distance[i, j] - distance.min()
        score = ((q[h, i] + u[h]) . k[h, j] + (q[h, i] + v[h]) . r[h, row]) / sqrt(K)
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# relative_shift, 1: np.concatenate with an array of zeros (..., L, 1).
# relative_shift, 2: reshape does the rest: nothing is computed.

# transformer_xl_scores, 1: u[:, None, :] stands beside (H, L, K).
# transformer_xl_scores, 2: r[:, rows] is (H, L, S, K).
# transformer_xl_scores, 3: u joins the query before the key, v before r.
