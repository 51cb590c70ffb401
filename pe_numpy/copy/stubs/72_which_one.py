"""Exercises of chapter 72: choose an encoding.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 72_which_one.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def depends_on_distance(scores):
    """Whether a matrix of scores depends only on the distance.

    scores   (L, L)   for equal contents at every position
    returns  bool

    True if for every distance n all scores[i, i - n] differ by at most 1e-9
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# depends_on_distance, 1: np.diagonal(scores, n) for n from 1 - L to L - 1.
# depends_on_distance, 2: to compare scores[1:, 1:] with scores[:-1, :-1] lets small steps add up.
