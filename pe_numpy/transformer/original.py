"""The Transformer of 2017 on one page: NumPy alone, no option, no check of input.

Source: Vaswani et al. 2017, "Attention is all you need" (arXiv:1706.03762), section 3. It takes the
parameters of `init_params`; `model.py` has the choices that came later, and with those of the paper
it gives the same logits.
Axes: B batch, L target tokens, S source tokens, D width, H heads, K = D/H, V vocabulary.
"""

import math

import numpy as np


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x, gain, bias):
    centred = x - x.mean(axis=-1, keepdims=True)
    return gain * centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) + bias


def sinusoidal(L, D):  # (L, D)
    angles = np.arange(L)[:, None] / 10000 ** (np.arange(0, D, 2) / D)  # (L, D/2)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(L, D)


def split(x, H):  # (B, L, D) -> (B, H, L, K)
    B, L, D = x.shape
    return x.reshape(B, L, H, D // H).swapaxes(1, 2)


def attention(p, x, source, H, hidden):  # (B, L, D), (B, S, D) -> (B, L, D)
    q = split(x @ p["W_q"] + p["b_q"], H)  # (B, H, L, K)
    k = split(source @ p["W_k"] + p["b_k"], H)  # (B, H, S, K)
    v = split(source @ p["W_v"] + p["b_v"], H)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (B, H, L, S)
    weights = softmax(np.where(hidden, -np.inf, scores))
    return (weights @ v).swapaxes(1, 2).reshape(x.shape) @ p["W_o"] + p["b_o"]


def feed_forward(p, x):
    return np.maximum(x @ p["W_1"] + p["b_1"], 0) @ p["W_2"] + p["b_2"]


def embed(E, tokens):  # (B, L) -> (B, L, D)
    L, D = tokens.shape[1], E.shape[1]
    return math.sqrt(D) * E[tokens] + sinusoidal(L, D).astype(E.dtype)


def encode(params, source, H):  # (B, S) -> (B, S, D)
    x = embed(params["embedding"], source)
    for p in params["encoder"]["layers"].values():
        x = layer_norm(x + attention(p["attention"], x, x, H, False), **p["attention_norm"])
        x = layer_norm(x + feed_forward(p["feed_forward"], x), **p["feed_forward_norm"])
    return x


def decode(params, target, memory, H):  # (B, L), (B, S, D) -> logits (B, L, V)
    x = embed(params["embedding"], target)
    future = ~np.tri(target.shape[1], dtype=bool)  # True where a key comes after the query
    for p in params["decoder"]["layers"].values():
        x = layer_norm(x + attention(p["attention"], x, x, H, future), **p["attention_norm"])
        x = layer_norm(x + attention(p["cross"], x, memory, H, False), **p["cross_norm"])
        x = layer_norm(x + feed_forward(p["feed_forward"], x), **p["feed_forward_norm"])
    return x @ params["embedding"].T
