"""Solutions of the exercises of chapter 41."""

import math

import numpy as np


def rotary_scores(q, k, q_positions, k_positions):
    def turn(x, positions):
        angles = np.asarray(positions)[..., None] * rope_frequencies(x.shape[-1])
        pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
        turned = np.empty_like(x)
        turned[..., 0::2], turned[..., 1::2] = pairs.real, pairs.imag
        return turned

    keys = turn(k, k_positions)  # by the keys' own positions: with a cache they are not the same
    return turn(q, q_positions) @ np.swapaxes(keys, -1, -2) / math.sqrt(q.shape[-1])


def rope_frequencies(d, base=10000.0):
    return base ** (-2 * np.arange(d // 2) / d)
