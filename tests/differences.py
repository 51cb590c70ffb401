"""Finite differences, which the tests of all gradients compare with."""

import numpy as np


def slopes(f, arrays, n, h=1e-5):
    """Central differences of a number f(*arrays) by each entry of one of the arrays."""
    result = np.zeros(arrays[n].shape)
    for place in np.ndindex(*result.shape):
        ends = []
        for step in (h, -h):
            moved = [np.array(x) for x in arrays]
            moved[n][place] += step
            ends.append(f(*moved))
        result[place] = (ends[0] - ends[1]) / (2 * h)
    return result
