"""A decoder of today on one page: RoPE, causal mask, RMS norm, gated network, grouped keys, cache.

Source: the LLaMA family (Touvron et al. 2023, arXiv:2302.13971, section 2.2; grouped keys: Ainslie
et al. 2023, arXiv:2305.13245). Only NumPy, no check of input. It takes the parameters of
`init_params`; `models/llama.py` reads released files and gives the same logits.
Axes: B batch, L new tokens, S all tokens, D width, H heads, G heads of keys, K = D/H, V vocabulary.
"""

import math

import numpy as np


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rms_norm(x, gain, eps):
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * gain


def rope(x, positions, base):  # (B, H, L, K): component c pairs with c + K/2
    n = x.shape[-1] // 2
    angles = positions[:, None] / base ** (np.arange(n) / n)  # (L, K/2)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    a, b = x[..., :n], x[..., n:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def split(x, H):  # (B, L, H K) -> (B, H, L, K)
    B, L, width = x.shape
    return x.reshape(B, L, H, width // H).swapaxes(1, 2)


class Cache:
    """The rotated keys, and the values, of all earlier tokens."""

    def __init__(self):
        self.length, self.kept = 0, {}

    def extend(self, layer, k, v):  # those of the new tokens -> those of all
        if layer in self.kept:
            old_k, old_v = self.kept[layer]
            k, v = np.concatenate([old_k, k], axis=2), np.concatenate([old_v, v], axis=2)
        self.kept[layer] = k, v
        return k, v


def attention(p, x, H, base, cache, layer):  # (B, L, D) -> (B, L, D)
    B, L, _ = x.shape
    G = H * p["W_k"].shape[1] // p["W_q"].shape[1]
    at = np.arange(cache.length, cache.length + L)
    q = rope(split(x @ p["W_q"], H), at, base)  # (B, H, L, K)
    k = rope(split(x @ p["W_k"], G), at, base)  # (B, G, L, K)
    k, v = cache.extend(layer, k, split(x @ p["W_v"], G))  # (B, G, S, K)
    k, v = np.repeat(k, H // G, axis=1), np.repeat(v, H // G, axis=1)  # (B, H, S, K)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (B, H, L, S)
    future = np.arange(k.shape[2]) > at[:, None]  # True where a key comes after the query
    weights = softmax(np.where(future, -np.inf, scores))
    return (weights @ v).swapaxes(1, 2).reshape(B, L, -1) @ p["W_o"]


def feed_forward(p, x):
    gate = x @ p["W_gate"]
    return (gate / (1 + np.exp(-gate)) * (x @ p["W_1"])) @ p["W_2"]


def decode(params, tokens, H, cache=None, base=10000.0, eps=1e-6):  # (B, L) -> logits (B, L, V)
    cache = cache or Cache()
    x = params["embedding"][tokens]  # (B, L, D)
    for n, p in params["decoder"]["layers"].items():
        h = rms_norm(x, p["attention_norm"]["gain"], eps)
        x = x + attention(p["attention"], h, H, base, cache, n)
        x = x + feed_forward(p["feed_forward"], rms_norm(x, p["feed_forward_norm"]["gain"], eps))
    cache.length += tokens.shape[1]
    return rms_norm(x, params["decoder"]["norm"]["gain"], eps) @ params["output"]


def greedy(params, tokens, H, steps):  # (B, L) -> (B, steps)
    cache, new = Cache(), []
    for _ in range(steps):
        tokens = decode(params, tokens, H, cache)[:, -1:].argmax(axis=-1)  # (B, 1)
        new.append(tokens)
    return np.concatenate(new, axis=1)
