"""Solutions of the exercises of chapter 31."""

import math

import numpy as np


def shaw_scores(q, k, key_table, distance):
    m = len(key_table) // 2
    R = key_table[np.clip(distance, -m, m) + m]  # (L, S, K)
    position = (q[..., :, None, :] * R).sum(axis=-1)
    return (q @ np.swapaxes(k, -1, -2) + position) / math.sqrt(q.shape[-1])


def shaw_values(weights, v, value_table, distance):
    m = len(value_table) // 2
    R = value_table[np.clip(distance, -m, m) + m]  # (L, S, K)
    return weights @ v + (weights[..., None] * R).sum(axis=-2)


def relative_key_query_scores(q, k, table, distance):
    r = table[distance + len(table) // 2]  # (L, S, K)
    of_query = (q[..., :, None, :] * r).sum(axis=-1)
    of_key = (k[..., None, :, :] * r).sum(axis=-1)
    return (q @ np.swapaxes(k, -1, -2) + of_query + of_key) / math.sqrt(q.shape[-1])


def nezha_table(max_relative_position, d_head, base=10000.0):
    p = np.arange(2 * max_relative_position, -1, -1)[:, None]
    angles = p * base ** (-np.arange(0, d_head, 2) / d_head)  # (2m + 1, K/2)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(p), d_head)
