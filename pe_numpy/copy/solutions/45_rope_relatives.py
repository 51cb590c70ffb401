"""Solutions of the exercises of chapter 45."""

import numpy as np


def turn(x, positions, frequencies, layout):
    K = x.shape[-1]
    frequencies = 10000 ** (-np.arange(0, K, 2) / K) if frequencies is None else frequencies
    n = len(frequencies)
    first, second = (slice(0, 2 * n, 2), slice(1, 2 * n, 2))
    if layout == "half":
        first, second = slice(n), slice(n, 2 * n)
    angles = np.asarray(positions)[..., None] * frequencies
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    turned = x.copy()
    turned[..., first] = x[..., first] * cos - x[..., second] * sin
    turned[..., second] = x[..., first] * sin + x[..., second] * cos
    return turned


def xpos_scale(d, gamma=0.4):
    return (np.arange(0, d, 2) / d + gamma) / (1 + gamma)


def xpos(
    x, positions, frequencies=None, scale_base=512.0, key=False, centre=0.0, layout="interleaved"
):
    K = x.shape[-1]
    n = K // 2 if frequencies is None else len(frequencies)
    zeta = (np.repeat if layout == "interleaved" else np.tile)(xpos_scale(2 * n), 2)
    zeta = np.concatenate([zeta, np.ones(K - 2 * n)])
    exponent = (np.asarray(positions) - centre) / scale_base * (-1 if key else 1)
    factors = zeta ** exponent[..., None]
    return turn(x, positions, frequencies, layout) * factors.astype(x.dtype)


def rotary_values(weights, v, q_positions, k_positions, frequencies=None, layout="interleaved"):
    mixed = weights @ turn(v, k_positions, frequencies, layout)
    return turn(mixed, -np.asarray(q_positions), frequencies, layout)


def pope_frequencies(d, base=10000.0):
    return base ** (-np.arange(d) / d)


def pope(x, positions, frequencies=None, bias=0.0):
    frequencies = pope_frequencies(x.shape[-1]) if frequencies is None else frequencies
    radius = np.logaddexp(0, x)
    angle = np.asarray(positions)[..., None] * frequencies + np.clip(bias, -2 * np.pi, 0)
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return pairs.reshape(*x.shape[:-1], -1).astype(x.dtype)
