"""Solutions of the exercises of chapter 33."""

import math

import numpy as np


def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    half = num_buckets // 2 if bidirectional else num_buckets
    exact = half // 2
    n = np.abs(distance) if bidirectional else np.maximum(distance, 0)
    far, steps = np.full(n.shape, exact), half - exact
    powers = n.astype(object) ** steps  # whole numbers of any size
    for t in range(1, steps):
        far += np.asarray(powers * exact**t >= max_distance**t * exact**steps, bool)
    return np.where(n < exact, n, far) + half * ((distance < 0) & bidirectional)


def t5_bias(table, distance, max_distance=128, bidirectional=True):
    buckets = t5_bucket(distance, len(table), max_distance, bidirectional)
    return np.moveaxis(table[buckets], -1, 0)


def tupe_scores(q, k, q_position, k_position, bias=None):
    products = q @ np.swapaxes(k, -1, -2) + q_position @ np.swapaxes(k_position, -1, -2)
    scores = products / math.sqrt(2 * q.shape[-1])
    return scores if bias is None else scores + bias
