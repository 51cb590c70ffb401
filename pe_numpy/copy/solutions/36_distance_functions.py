"""Solutions of the exercises of chapter 36."""

import numpy as np


def kerple_log_bias(p, a, distance):
    away = np.abs(distance)[..., None, :, :].astype(p.dtype)
    return -p[:, None, None] * np.log1p(a[:, None, None] * away)


def kerple_power_bias(a, p, distance):
    away = np.abs(distance)[..., None, :, :].astype(p.dtype)
    return -a[:, None, None] * away ** p[:, None, None]


def sandwich_bias(n_heads, distance, d=128, base=10000.0):
    frequencies = base ** (-2 * np.arange(1, d // 2 + 1) / d)
    total = np.cos(distance[..., None] * frequencies).sum(axis=-1)[..., None, :, :]
    h = np.arange(1, n_heads + 1)[:, None, None]
    return (total - d / 2) / (8 * h / n_heads)


def fire_bias(params, q_positions, k_positions, eps=1e-6):
    dtype = params["W1"].dtype
    i = q_positions[..., :, None]
    j = k_positions[..., None, :]

    def psi(x):
        return np.log1p(np.abs(params["c"]) * x.astype(dtype))

    x = psi(np.abs(i - j)) / (psi(np.maximum(i, params["L"])) + dtype.type(eps))
    hidden = np.maximum(x[..., None] @ params["W1"] + params["b1"], 0)
    return np.moveaxis(hidden @ params["W2"] + params["b2"], -1, -3)
