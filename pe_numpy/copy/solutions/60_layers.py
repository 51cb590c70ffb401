"""Solutions of the exercises of chapter 60."""

import math
from functools import partial

import numpy as np


def linear(x, W, b=None):
    return x @ W if b is None else x @ W + b


def relu(x):
    return np.maximum(x, 0)


def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)  # divides by D
    return gain * (x - mean) / np.sqrt(variance + x.dtype.type(eps)) + bias


def rms_norm(x, gain, eps=1e-6):
    square = (x * x).mean(axis=-1, keepdims=True)
    return gain * x / np.sqrt(square + x.dtype.type(eps))


def feed_forward(params, x, activation="relu"):
    tanh = partial(gelu, approximate="tanh")
    functions = {"relu": relu, "gelu": gelu, "gelu_tanh": tanh, "silu": silu}
    hidden = functions[activation](x @ params["W_1"] + params.get("b_1", 0))
    return hidden @ params["W_2"] + params.get("b_2", 0)


def gelu(x, approximate="none"):
    if approximate == "tanh":
        share = (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    else:
        share = (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2
    return (x * share).astype(x.dtype)


def embed_tokens(table, tokens, scale=None):
    return table[tokens] * (math.sqrt(table.shape[1]) if scale is None else scale)


def pre_norm_block(x, gain, bias, W):
    return x + np.maximum(layer_norm(x, gain, bias) @ W, 0)


def silu(x):
    return x / (1 + np.exp(-np.maximum(x, -80)))  # exp(80) is still finite in float32


def multi_head_attention(params, x, source, n_heads, mask=None):
    K = params["W_q"].shape[1] // n_heads

    def heads(name, of):
        y = of @ params[f"W_{name}"] + params.get(f"b_{name}", np.zeros(1, of.dtype))
        return y.reshape(*y.shape[:-1], -1, K).swapaxes(-2, -3)  # (B, H or G, L, K)

    q, k, v = heads("q", x), heads("k", source), heads("v", source)
    k, v = (np.repeat(part, n_heads // part.shape[-3], axis=-3) for part in (k, v))
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(K)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = weights.sum(axis=-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    mixed = (weights @ v).swapaxes(-2, -3)  # (B, L, H, K)
    output = mixed.reshape(*mixed.shape[:-2], -1) @ params["W_o"]
    return output + params.get("b_o", np.zeros(1, output.dtype)), weights


def causal_rope_attention(params, x, n_heads):
    B, L, D = x.shape
    K = D // n_heads
    angles = np.arange(L)[:, None] * 10000.0 ** (-np.arange(0, K, 2) / K)  # (L, K/2)
    cos, sin = np.cos(angles), np.sin(angles)

    def heads(name):
        y = x @ params[f"W_{name}"]
        return y.reshape(B, L, n_heads, K).swapaxes(1, 2)  # (B, H, L, K)

    def rotated(y):
        a, b = y[..., 0::2], y[..., 1::2]
        return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(y.shape)

    q, k, v = rotated(heads("q")), rotated(heads("k")), heads("v")
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(K)
    visible = np.tri(L, dtype=bool)
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    mixed = weights @ v  # (B, H, L, K)
    return mixed.swapaxes(1, 2).reshape(B, L, D) @ params["W_o"]
