"""Solutions of the exercises of chapter 44."""

import numpy as np


def turn(x, positions, frequencies=None):
    """Turn pairs of neighbours by position times frequency; the rest stays."""
    if frequencies is None:
        frequencies = 10000.0 ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])
    n = 2 * len(frequencies)
    angles = np.asarray(positions)[..., None] * frequencies  # (..., L, n/2)
    cos, sin = (f(angles).astype(x.dtype) for f in (np.cos, np.sin))
    even, odd = x[..., 0:n:2], x[..., 1:n:2]
    turned = x.copy()
    turned[..., 0:n:2] = even * cos - odd * sin
    turned[..., 1:n:2] = even * sin + odd * cos
    return turned


def grouped_scores(q, k, q_positions, k_positions):
    q, k = turn(q, q_positions), turn(k, k_positions)
    k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)  # (..., H, S, K)
    return q @ np.swapaxes(k, -1, -2) * q.dtype.type(q.shape[-1] ** -0.5)


def mla_scores(
    q_content,
    q_rotary,
    latent,
    k_rotary,
    w_uk,
    q_positions,
    k_positions,
    frequencies=None,
    absorbed=True,
):
    c = latent[..., None, :, :]  # (..., 1, S, r)
    if absorbed:
        content = (q_content @ w_uk) @ np.swapaxes(c, -1, -2)
    else:
        content = q_content @ np.swapaxes(c @ np.swapaxes(w_uk, -1, -2), -1, -2)
    turned_q = turn(q_rotary, q_positions, frequencies)
    turned_k = turn(k_rotary, k_positions, frequencies)[..., None, :, :]
    width = q_content.shape[-1] + q_rotary.shape[-1]
    scores = content + turned_q @ np.swapaxes(turned_k, -1, -2)
    return scores * q_content.dtype.type(width**-0.5)
