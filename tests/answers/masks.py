"""Masks."""
# ruff: noqa: F811

import numpy as np

from answers import wrong


@wrong("a token does not see itself")
def causal_mask(q_positions, k_positions):
    return q_positions[..., :, None] > k_positions[..., None, :]


@wrong("the future is seen")
def causal_mask(q_positions, k_positions):
    return q_positions[..., :, None] <= k_positions[..., None, :]


@wrong("np.tril: positions are ignored, both begin at 0")
def causal_mask(q_positions, k_positions):
    return np.tril(np.ones((q_positions.shape[-1], k_positions.shape[-1]), dtype=bool))


@wrong("np.triu: the future is True")
def causal_mask(q_positions, k_positions):
    return np.triu(np.ones((q_positions.shape[-1], k_positions.shape[-1])), k=1).astype(bool)


@wrong("a triangle at the bottom right, as Flash attention has it: positions are ignored")
def causal_mask(q_positions, k_positions):
    L, S = q_positions.shape[-1], k_positions.shape[-1]
    return np.tril(np.ones((L, S), dtype=bool), k=S - L)


@wrong("keys and queries exchange their axes")
def causal_mask(q_positions, k_positions):
    return q_positions[..., None, :] >= k_positions[..., :, None]


@wrong("0 and -inf, to be added")
def causal_mask(q_positions, k_positions):
    return np.where(q_positions[..., :, None] >= k_positions[..., None, :], 0.0, -np.inf)


@wrong("True where it is hidden")
def causal_mask(q_positions, k_positions):
    return q_positions[..., :, None] < k_positions[..., None, :]


@wrong("the batch axes of the positions are lost")
def causal_mask(q_positions, k_positions):
    q, k = np.atleast_2d(q_positions)[0], np.atleast_2d(k_positions)[0]
    return q[:, None] >= k[None, :]


@wrong("the side is ignored")
def padding_mask(lengths, size, side="right"):
    return (np.arange(size) < np.asarray(lengths)[:, None])[:, None, None, :]


@wrong("one real token too many")
def padding_mask(lengths, size, side="right"):
    lengths = np.asarray(lengths)[:, None]
    at = np.arange(size)
    mask = at <= lengths if side == "right" else at >= size - lengths - 1
    return mask[:, None, None, :]


@wrong("padding is True")
def padding_mask(lengths, size, side="right"):
    lengths = np.asarray(lengths)[:, None]
    at = np.arange(size)
    mask = at >= lengths if side == "right" else at < size - lengths
    return mask[:, None, None, :]


@wrong("no axes for heads and queries")
def padding_mask(lengths, size, side="right"):
    lengths = np.asarray(lengths)[:, None]
    at = np.arange(size)
    return at < lengths if side == "right" else at >= size - lengths


@wrong("padding on the left: as many as are real are hidden")
def padding_mask(lengths, size, side="right"):
    lengths = np.asarray(lengths)[:, None]
    at = np.arange(size)
    mask = at < lengths if side == "right" else at >= lengths
    return mask[:, None, None, :]


@wrong("the window has w keys before the query's own")
def window_mask(q_positions, k_positions, window, sinks=0):
    d, j = q_positions[..., :, None] - k_positions[..., None, :], k_positions[..., None, :]
    return (d >= 0) & ((d <= window) | (0 <= j) & (j < sinks))


@wrong("sinks are ignored")
def window_mask(q_positions, k_positions, window, sinks=0):
    d = q_positions[..., :, None] - k_positions[..., None, :]
    return (d >= 0) & (d < window)


@wrong("sinks are seen from before them, too")
def window_mask(q_positions, k_positions, window, sinks=0):
    d, j = q_positions[..., :, None] - k_positions[..., None, :], k_positions[..., None, :]
    return ((d >= 0) & (d < window)) | (0 <= j) & (j < sinks)


@wrong("a window on both sides")
def window_mask(q_positions, k_positions, window, sinks=0):
    d, j = q_positions[..., :, None] - k_positions[..., None, :], k_positions[..., None, :]
    return (np.abs(d) < window) | ((d >= 0) & (0 <= j) & (j < sinks))


@wrong("sinks are the first keys given, not the first positions")
def window_mask(q_positions, k_positions, window, sinks=0):
    d = q_positions[..., :, None] - k_positions[..., None, :]
    return (d >= 0) & ((d < window) | (np.arange(k_positions.shape[-1]) < sinks))


@wrong("the whole chunk is seen, its future too")
def chunk_mask(q_positions, k_positions, chunk):
    return q_positions[..., :, None] // chunk == k_positions[..., None, :] // chunk


@wrong("a sliding window for a chunk")
def chunk_mask(q_positions, k_positions, chunk):
    d = q_positions[..., :, None] - k_positions[..., None, :]
    return (d >= 0) & (d < chunk)


@wrong("chunks are counted from the first position given")
def chunk_mask(q_positions, k_positions, chunk):
    i = np.arange(q_positions.shape[-1])[:, None]
    j = np.arange(k_positions.shape[-1])
    return (i // chunk == j // chunk) & (j <= i)
