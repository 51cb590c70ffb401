"""Exercises of chapter 30: expand the score.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 30_expansion.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def four_terms(x, p, w_q, w_k):
    """The four terms of the scores of x + p, each divided by sqrt(K).

    x         (..., L, D)   content
    p         (L, D)        positions
    w_q, w_k  (D, K)        projections
    returns   four arrays (..., L, L) of the data's dtype: content-content, content-position,
              position-content, position-position

    for i in 0 .. L-1 and j in 0 .. L-1:
        content-content[i, j]   = (x[i] w_q) . (x[j] w_k) / sqrt(K)
        content-position[i, j]  = (x[i] w_q) . (p[j] w_k) / sqrt(K)
        position-content[i, j]  = (p[i] w_q) . (x[j] w_k) / sqrt(K)
        position-position[i, j] = (p[i] w_q) . (p[j] w_k) / sqrt(K)
    """
    raise NotImplementedError


def relative_distance(q_positions, k_positions):
    """Distance of every query from every key.

    q_positions  (..., L)      whole numbers
    k_positions  (..., S)      whole numbers
    returns      (..., L, S)   whole numbers

    for each query i and each key j:
        distance[i, j] = q_positions[i] - k_positions[j]
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# four_terms, 1: their sum is the score of x + p: try it.
# four_terms, 2: position-position has no batch axes: (L, L).
# four_terms, 3: math.sqrt keeps float32 what it is.

# relative_distance, 1: the past is positive: a query at 2 is 2 away from a key at 0.
# relative_distance, 2: one array needs a new last axis, the other a new axis before its last.
