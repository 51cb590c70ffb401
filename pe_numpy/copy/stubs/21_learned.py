"""Exercises of chapter 21: learn a vector for each position.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 21_learned.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def learned(table, positions):
    """Look every position up in a trained table.

    table      (N, D)     floating-point numbers, one row per position
    positions  any shape  whole numbers from 0 to N-1
    returns    (*positions.shape, D)   of the table's dtype

    for each position pos:
        code = table[pos]
    """
    raise NotImplementedError


def hierarchical(table, positions, alpha=0.4):
    """Stretch a trained table of N rows to N times N positions.

    table      (N, D)     floating-point numbers, the trained rows E
    positions  any shape  whole numbers from 0 to N*N - 1
    returns    (*positions.shape, D)   of the table's dtype

    for n in 0 .. N-1:
        u[n] = (E[n] - alpha E[0]) / (1 - alpha)
    for each position = i N + j, with i and j from 0 to N-1:
        code = alpha u[i] + (1 - alpha) u[j]
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# learned, 1: an array of whole numbers may be an index.

# hierarchical, 1: the first N positions must get their trained rows back.
# hierarchical, 2: np.divmod gives i and j at once.
