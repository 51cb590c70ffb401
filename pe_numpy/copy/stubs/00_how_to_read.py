"""Exercises of chapter 0: read this book.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 00_how_to_read.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def relative_distance(q_positions, k_positions):
    """Distance of every query from every key.

    q_positions  (..., L)      whole numbers
    k_positions  (..., S)      whole numbers
    returns      (..., L, S)   whole numbers

    for each query i and each key j:
        distance[i, j] = q_positions[i] - k_positions[j]
    """
    raise NotImplementedError


def causal_mask(q_positions, k_positions):
    """True where a key is not in the query's future.

    q_positions  (..., L)      positions of the queries: with a cache they don't begin at 0
    k_positions  (..., S)
    returns      (..., L, S)   boolean, True = may attend

    for each query i and each key j:
        mask[i, j] = q_positions[i] >= k_positions[j]
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# relative_distance, 1: the past is positive: a query at 2 is 2 away from a key at 0.
# relative_distance, 2: one array needs a new last axis, the other a new axis before its last.

# causal_mask, 1: a token sees itself.
# causal_mask, 2: compare positions, not indices; np.tril would align both at 0.
