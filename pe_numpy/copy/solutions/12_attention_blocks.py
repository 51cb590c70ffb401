"""Solutions of the exercises of chapter 12."""

import math

import numpy as np


def largest_and_total(x, axis):
    rows = np.moveaxis(x, axis, 0)  # scores first
    top = np.full(rows.shape[1:], -np.inf, x.dtype)
    total = np.zeros_like(top)
    for s in rows:  # one pass
        higher = np.maximum(top, s)
        shift = np.where(higher == -np.inf, 0, higher)  # nothing seen yet
        total = total * np.exp(top - shift) + np.exp(s - shift)
        top = higher
    top, total = np.where(top == -np.inf, 0, top), np.where(total == 0, 1, total)
    return np.expand_dims(top, axis), np.expand_dims(total, axis)


def softmax(x, axis=-1):
    top, total = largest_and_total(x, axis)
    return np.exp(x - top) / total


def log_softmax(x, axis=-1):
    top, total = largest_and_total(x, axis)
    return (x - top) - np.log(total)


def window_mask(q_positions, k_positions, window, sinks=0):
    i, j = q_positions[..., :, None], k_positions[..., None, :]
    return (j <= i) & ((i - j < window) | ((0 <= j) & (j < sinks)))


def chunk_mask(q_positions, k_positions, chunk):
    i, j = q_positions[..., :, None], k_positions[..., None, :]
    return (j <= i) & (i // chunk == j // chunk)


def attend(scores, v, mask=None, sink=None):
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    if sink is not None:
        column = np.broadcast_to(sink[:, None, None], (*scores.shape[:-1], 1))
        scores = np.concatenate([scores, column], axis=-1)
    weights = softmax(scores)[..., : v.shape[-2]]
    return weights @ v, weights


def attention_blockwise(
    q,
    k,
    v,
    mask=None,
    bias=None,
    block=256,
    causal=False,
    q_positions=None,
    k_positions=None,
    window=None,
):
    L, S = q.shape[-2], k.shape[-2]
    q_at = np.arange(S - L, S) if q_positions is None else q_positions
    k_at = np.arange(S) if k_positions is None else k_positions
    mask = None if mask is None else np.broadcast_to(mask, (*q.shape[:-1], S))
    if bias is not None and not callable(bias):
        bias = np.broadcast_to(bias, (*q.shape[:-1], S))
    top = np.full((*q.shape[:-1], 1), -np.inf, q.dtype)
    total, mixed = np.zeros_like(top), np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
    for first in range(0, S, block):
        columns = slice(first, first + block)
        distance = q_at[..., :, None] - k_at[..., None, columns]
        scores = q @ k[..., columns, :].swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        if bias is not None:
            term = bias(distance) if callable(bias) else bias[..., columns]
            scores = scores + term.astype(scores.dtype)
        if mask is not None:
            scores = np.where(mask[..., columns], scores, -np.inf)
        if causal:
            scores = np.where(distance >= 0, scores, -np.inf)
        if window is not None:
            scores = np.where(distance < window, scores, -np.inf)
        higher = np.maximum(top, scores.max(axis=-1, keepdims=True))
        shift = np.where(higher == -np.inf, 0, higher)  # nothing seen yet
        shrink, weights = np.exp(top - shift), np.exp(scores - shift)
        total = total * shrink + weights.sum(axis=-1, keepdims=True)
        mixed = mixed * shrink + weights @ v[..., columns, :]
        top = higher
    return mixed / np.where(total == 0, 1, total)
