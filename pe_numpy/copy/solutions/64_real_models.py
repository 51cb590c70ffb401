"""Solutions of the exercises of chapter 64."""

import numpy as np


def split_fused(x, order, n_heads, n_kv_heads=None):
    H, G = n_heads, n_kv_heads or n_heads
    K = x.shape[-1] // (H + 2 * G)
    if order == "H3K":
        parts = x.reshape(*x.shape[:-1], H, 3, K)
        return tuple(parts[..., n, :].reshape(*x.shape[:-1], H * K) for n in range(3))
    return tuple(np.split(x, [H * K, (H + G) * K], axis=-1))
