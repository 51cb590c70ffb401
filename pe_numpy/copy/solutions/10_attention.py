"""Solutions of the exercises of chapter 10."""

import math

import numpy as np


def softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(top == -np.inf, 0, top))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def log_softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    top = np.where(top == -np.inf, 0, top)
    total = np.exp(x - top).sum(axis=axis, keepdims=True)
    return x - top - np.log(np.where(total == 0, 1, total))


def causal_mask(q_positions, k_positions):
    return q_positions[..., :, None] >= k_positions[..., None, :]  # a token sees itself


def padding_mask(lengths, size, side="right"):
    place = np.arange(size) if side == "right" else np.arange(size)[::-1]
    return (place < lengths[:, None])[:, None, None, :]


def split_heads(x, n_heads):
    parts = x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads)  # (..., L, H, K)
    return np.swapaxes(parts, -2, -3)


def merge_heads(x):
    *batch, H, L, K = x.shape
    return np.swapaxes(x, -2, -3).reshape(*batch, L, H * K)


def attention(q, k, v, mask=None, bias=None, scale=None):
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if bias is not None:
        scores = scores + bias  # after the scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)
    return weights @ v, weights
