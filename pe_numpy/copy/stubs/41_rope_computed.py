"""Exercises of chapter 41: compute with RoPE.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 41_rope_computed.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def rotary_scores(q, k, q_positions, k_positions):
    """Scores of turned queries and keys, as with a key-value cache: L need not be S.

    q            (..., L, K)   queries
    k            (..., S, K)   keys
    q_positions  (L,), or any shape that broadcasts to q.shape[:-1]
    k_positions  (S,), or any shape that broadcasts to k.shape[:-1]
    returns      (..., L, S)   of q's dtype

    for each query at position m and each key at position n:
        score = 0
        for i in 0 .. K/2 - 1, with theta = 10000^(-2 i / K):
            turn (q[2i], q[2i+1]) by m theta and (k[2i], k[2i+1]) by n theta
            score += turned q[2i] * turned k[2i] + turned q[2i+1] * turned k[2i+1]
        score = score / sqrt(K)
    """
    raise NotImplementedError


def rope_frequencies(d, base=10000.0):
    """Radians that each pair of components turns per position.

    d        int      number of components, even
    base     float
    returns  (d/2,)   float64

    for i in 0 .. d/2 - 1:
        theta[i] = base^(-2 i / d)
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# rotary_scores, 1: write a function that turns one array by its positions; use it twice.
# rotary_scores, 2: x[..., 0::2] are the first components of all pairs.
# rotary_scores, 3: a pair as a complex number: turning is multiplying with exp(i angle).
# rotary_scores, 4: turned q @ np.swapaxes(turned k, -1, -2); math.sqrt keeps float32.

# rope_frequencies, 1: the first frequency is 1 for every d.
