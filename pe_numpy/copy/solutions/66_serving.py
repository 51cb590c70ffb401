"""Solutions of the exercises of chapter 66."""

import math

import numpy as np


def pack(lengths):
    documents = np.repeat(np.arange(len(lengths)), lengths)
    starts = np.cumsum(lengths) - lengths
    row = np.arange(len(documents))
    positions = row - starts[documents]
    causal = row[:, None] >= row
    return positions, documents, document_mask(documents, documents) & causal


def document_mask(q_documents, k_documents):
    return q_documents[..., :, None] == k_documents[..., None, :]


def tree_positions(parents):
    depths = np.zeros(len(parents), int)
    for node, parent in enumerate(parents):
        if parent >= 0:
            depths[node] = depths[parent] + 1
    return depths


def tree_mask(parents):
    mask = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            mask[node] |= mask[parent]
    return mask


def partial_attention(q, k, v, mask=None, bias=None):
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, initial=-np.inf)
    shift = np.where(top == -np.inf, 0, top)
    weights = np.exp(scores - shift[..., None])
    total = weights.sum(axis=-1)
    some = np.where(total == 0, 1, total)
    log_sums = np.where(total == 0, -np.inf, shift + np.log(some))
    return weights @ v / some[..., None], log_sums


def merge_attention(outputs, log_sums):
    top = log_sums.max(axis=0)
    shift = np.where(top == -np.inf, 0, top)
    shares = np.exp(log_sums - shift)
    total = shares.sum(axis=0)
    some = np.where(total == 0, 1, total)
    outputs = np.where(log_sums[..., None] == -np.inf, 0, outputs)  # may be NaN
    merged = (shares[..., None] * outputs).sum(axis=0) / some[..., None]
    return merged, np.where(total == 0, -np.inf, shift + np.log(some))


def zigzag(length, ranks):
    blocks = np.arange(length).reshape(2 * ranks, -1)
    return np.concatenate([blocks[:ranks], blocks[::-1][:ranks]], axis=-1)
