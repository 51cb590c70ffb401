"""Solutions of the exercises of chapter 40."""

import numpy as np


def rope_frequencies(d, base=10000.0):
    return base ** (-2 * np.arange(d // 2) / d)


def rope_matrix(position, frequencies):
    d = 2 * len(frequencies)
    R = np.zeros((d, d))
    for i, theta in enumerate(frequencies):
        cos, sin = np.cos(position * theta), np.sin(position * theta)
        R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[cos, -sin], [sin, cos]]
    return R


def rope(x, positions, frequencies=None, layout="interleaved"):
    if frequencies is None:
        frequencies = rope_frequencies(x.shape[-1])
    n = len(frequencies)
    angles = np.asarray(positions)[..., None] * frequencies  # (..., L, n), in float64
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    first, second = slice(0, n), slice(n, 2 * n)
    if layout == "interleaved":
        first, second = slice(0, 2 * n, 2), slice(1, 2 * n, 2)
    y = x.copy()  # components beyond 2n stay
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., first] * sin + x[..., second] * cos
    return y


def rope_permutation(d):
    return np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)])


def rope_convert_weights(weight, n_heads, to="half", d=None):
    K = len(weight) // n_heads
    order, d = np.arange(K), K if d is None else d
    order[:d] = rope_permutation(d) if to == "half" else np.argsort(rope_permutation(d))
    return weight[(K * np.arange(n_heads)[:, None] + order).ravel()]
