"""Solutions of the exercises of chapter 72."""

import numpy as np


def depends_on_distance(scores):
    L = len(scores)
    return all(np.ptp(np.diagonal(scores, n)) <= 1e-9 for n in range(1 - L, L))
