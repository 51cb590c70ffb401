"""Solutions of the exercises of chapter 34."""

import math

import numpy as np


def deberta_scores(q, k, q_table, k_table, distance, p2c_distance=None):
    if p2c_distance is None:
        p2c_distance = -distance  # the paper's j - i
    m = k_table.shape[-2] // 2
    rows = np.clip(distance + m, 0, 2 * m - 1)
    of_keys = np.clip(p2c_distance + m, 0, 2 * m - 1)
    c2c = q @ np.swapaxes(k, -1, -2)
    c2p = (q[..., :, None, :] * k_table[:, rows]).sum(axis=-1)
    p2c = (k[..., None, :, :] * q_table[:, of_keys]).sum(axis=-1)
    return (c2c + c2p + p2c) / math.sqrt(3 * q.shape[-1])


def deberta_bucket(distance, num_buckets, max_distance):
    mid = num_buckets // 2
    n = np.abs(distance)
    far, steps, end = np.full(n.shape, mid), mid - 1, max_distance - 1
    powers = n.astype(object) ** steps  # whole numbers of any size
    for t in range(steps):
        far += np.asarray(powers * mid**t > end**t * mid**steps, bool)
    return np.where(n <= mid, distance, np.sign(distance) * far)
