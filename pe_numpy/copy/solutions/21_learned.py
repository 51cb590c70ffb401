"""Solutions of the exercises of chapter 21."""

import numpy as np


def learned(table, positions):
    return table[positions]  # the given positions: with a cache they do not begin at 0


def hierarchical(table, positions, alpha=0.4):
    u = (table - alpha * table[:1]) / (1 - alpha)
    i, j = np.divmod(positions, len(table))
    return alpha * u[i] + (1 - alpha) * u[j]  # alpha goes with the slow index
