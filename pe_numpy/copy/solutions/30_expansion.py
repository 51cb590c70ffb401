"""Solutions of the exercises of chapter 30."""

import math

import numpy as np


def four_terms(x, p, w_q, w_k):
    def products(a, b):
        return (a @ w_q) @ np.swapaxes(b @ w_k, -1, -2) / math.sqrt(w_q.shape[1])

    return products(x, x), products(x, p), products(p, x), products(p, p)


def relative_distance(q_positions, k_positions):
    return q_positions[..., :, None] - k_positions[..., None, :]  # query minus key
