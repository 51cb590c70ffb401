"""Solutions of the exercises of chapter 42."""

import numpy as np


def proportional_frequencies(d, fraction, base=10000.0, factor=1.0):
    theta = base ** (-2 * np.arange(d // 2) / d) / factor
    theta[int(fraction * d // 2) :] = 0  # the slowest pairs stand still
    return theta


def layer_bases(n_layers, pattern, base, local_base):
    layers = np.arange(n_layers)
    return np.where((layers + 1) % pattern == 0, base, local_base)
