"""Solutions of the exercises of chapter 52."""

import numpy as np


def rotary_distance_scores(q, k, distance, frequencies=None, layout="interleaved"):
    K = q.shape[-1]
    if frequencies is None:
        frequencies = 10000.0 ** (-np.arange(0, K, 2) / K)
    n, k = len(frequencies), np.swapaxes(k, -1, -2)
    scores = q[..., 2 * n :] @ k[..., 2 * n :, :]
    for pair, frequency in enumerate(frequencies):
        x, y = (2 * pair, 2 * pair + 1) if layout == "interleaved" else (pair, pair + n)
        a, b, c, d = q[..., [x]], q[..., [y]], k[..., [x], :], k[..., [y], :]
        cos, sin = (wave(distance * frequency).astype(q.dtype) for wave in (np.cos, np.sin))
        scores = scores + (a * c + b * d) * cos - (b * c - a * d) * sin
    return scores * q.dtype.type(K**-0.5)


def rerope_distance(distance, window, stretch=None):
    size = np.abs(distance).astype(np.float64)
    far = window if stretch is None else window + (size - window) / stretch
    return np.sign(distance) * np.where(size < window, size, far)


def self_extend_distance(q_positions, k_positions, window, group):
    i, j = q_positions[..., :, None], k_positions[..., None, :]
    groups = i // group - j // group + np.sign(i - j) * (window - window / group)
    return np.where(np.abs(i - j) < window, i - j, groups)


def chunk_distance(q_positions, k_positions, size, local):
    c = size - local

    def back(i, j):
        n = i // c - j // c
        a = np.where(n == 1, np.minimum(i % c + c, size), min(2 * c - 1, size))
        return np.where(n == 0, i % c, a) - j % c

    i, j = q_positions[..., :, None], k_positions[..., None, :]
    return np.where(i >= j, back(i, j), -back(j, i)).astype(np.float64)


def streaming_distance(q_positions, k_positions, window, sinks):
    i, j = q_positions[..., :, None], k_positions[..., None, :]
    i = np.where(j < sinks, np.minimum(i, sinks + window - 1), i)
    return (i - j).astype(np.float64)
