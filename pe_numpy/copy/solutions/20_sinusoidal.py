"""Solutions of the exercises of chapter 20."""

import numpy as np


def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    theta = base ** (-2 * np.arange(d_model // 2) / d_model)  # i numbers pairs
    angles = np.asarray(positions)[..., None] * theta
    parts = [np.sin(angles), np.cos(angles)]
    if layout == "concatenated":
        return np.concatenate(parts, axis=-1)
    return np.stack(parts, axis=-1).reshape(*angles.shape[:-1], d_model)


def sinusoidal_shift(offset, d_model, base=10000.0):
    M = np.zeros((d_model, d_model))
    for i in range(d_model // 2):
        a = offset * base ** (-2 * i / d_model)
        M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
    return M


def wavelengths(d_model, base=10000.0):
    return 2 * np.pi * base ** (2 * np.arange(d_model // 2) / d_model)
