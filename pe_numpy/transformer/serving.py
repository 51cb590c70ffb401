r"""Which position has each token when texts are packed, drafted as a tree, or split over machines.

Equation: packed texts count from 0 each, and attend within themselves; a draft's position is its
depth in the tree, and it attends to its ancestors; attention over parts of the keys is merged by
the logarithm of the sum of the exponentials of each part, l_r (L,)::

    l = ln(sum over r of exp(l_r))          output = sum over r of exp(l_r - l) output_r

Axes: L queries, S keys, R parts, V width of values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy.transformer.attention import attend


class Packed(NamedTuple):
    positions: np.ndarray  # (S,), from 0 in each document
    documents: np.ndarray  # (S,), number of the document
    mask: np.ndarray  # (S, S), True = may attend: causal, within the document


def pack(lengths: ArrayLike) -> Packed:
    lengths = np.asarray(lengths)
    documents = np.repeat(np.arange(len(lengths)), lengths)
    starts = np.cumsum(lengths) - lengths
    positions = np.arange(len(documents)) - starts[documents]
    order = np.arange(len(documents))
    return Packed(positions, documents, document_mask(documents, documents) & (order[:, None] >= order))


def document_mask(q_documents: ArrayLike, k_documents: ArrayLike) -> np.ndarray:
    return np.asarray(q_documents)[..., :, None] == np.asarray(k_documents)[..., None, :]


def tree_mask(parents: ArrayLike) -> np.ndarray:
    """(N, N): each node attends to itself and its ancestors; a parent of -1 is the text's end."""
    parents = np.asarray(parents)
    mask = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):  # parents come before their children
        if parent >= 0:
            mask[node] |= mask[parent]
    return mask


def tree_positions(parents: ArrayLike) -> np.ndarray:
    """Depth of each node, 0 for those that follow the text."""
    return tree_mask(parents).sum(-1) - 1


def partial_attention(q, k, v, mask=None):
    """Attention over some of the keys: outputs (..., L, V), and the log-sum-exp of the scores (..., L)."""


def merge_attention(outputs: ArrayLike, log_sums: ArrayLike) -> np.ndarray:
    outputs, log_sums = np.asarray(outputs), np.asarray(log_sums)  # (R, ..., L, V), (R, ..., L)
    top = log_sums.max(0)
    shares = np.exp(log_sums - np.where(top == -np.inf, 0, top))  # 0 where a part shows nothing
    total = shares.sum(0)
    shares = shares / np.where(total == 0, 1, total)
    return (shares[..., None] * outputs).sum(0)
