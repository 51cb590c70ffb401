"""Exercises of chapter 10: work attention by hand.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 10_attention.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def softmax(x, axis=-1):
    """Turn scores into weights.

    x        any shape   floating point scores; -inf gets no weight
    axis     int         the axis that sums to 1
    returns  of x's shape and dtype

    for each row along the axis:
        weight[j] = exp(x[j]) / sum over j of exp(x[j])
        if every score of the row is -inf, all its weights are 0
    """
    raise NotImplementedError


def log_softmax(x, axis=-1):
    """Logarithms of the weights.

    x        any shape   floating point
    axis     int
    returns  of x's shape and dtype

    for each row along the axis:
        result[j] = x[j] - log(sum over j of exp(x[j]))
        if every score of the row is -inf, so is every result
    """
    raise NotImplementedError


def causal_mask(q_positions, k_positions):
    """True where a key is not in the query's future.

    q_positions  (..., L)      positions of the queries: with a cache they don't begin at 0
    k_positions  (..., S)
    returns      (..., L, S)   boolean, True = may attend

    for each query i and each key j:
        mask[i, j] = q_positions[i] >= k_positions[j]
    """
    raise NotImplementedError


def padding_mask(lengths, size, side="right"):
    """True where a key is a real token.

    lengths  (B,)           real tokens of each sequence
    size     int            padded length S
    side     "right" or "left": where the padding stands
    returns  (B, 1, 1, S)   boolean, True = may attend

    for each sequence b and place s:
        right: mask[b, 0, 0, s] = s < lengths[b]
        left:  mask[b, 0, 0, s] = s >= size - lengths[b]
    """
    raise NotImplementedError


def split_heads(x, n_heads):
    """Give each head its block of columns.

    x        (..., L, D)      D = H K
    n_heads  int              H
    returns  (..., H, L, K)   of the data's dtype

    for each head h, token l and component c:
        result[h, l, c] = x[l, h K + c]
    """
    raise NotImplementedError


def merge_heads(x):
    """Put the heads of each token side by side.

    x        (..., H, L, K)
    returns  (..., L, H K)   of the data's dtype

    for each token l, head h and component c:
        result[l, h K + c] = x[h, l, c]
    """
    raise NotImplementedError


def attention(q, k, v, mask=None, bias=None, scale=None):
    """Scaled dot-product attention.

    q        (..., L, K)    queries
    k        (..., S, K)    keys
    v        (..., S, Kv)   values
    mask     boolean, broadcasts to (..., L, S): True = may attend
    bias     broadcasts to (..., L, S), added after the scale
    scale    number, 1/sqrt(K) if none is given
    returns  output (..., L, Kv), and weights (..., L, S); both of the data's dtype

    for each pair (i, j):
        score[i, j] = scale q[i] . k[j] + bias[i, j],   -inf where the mask is False
    weights = softmax of the scores over j; 0 for all where every score is -inf
    output[i] = sum over j of weights[i, j] v[j]
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# softmax, 1: exp(1000) overflows: what changes if the largest score is subtracted from all?
# softmax, 2: in a row of only -inf that difference is NaN: subtract 0 there.
# softmax, 3: and its sum is 0: divide by 1 instead.

# log_softmax, 1: not np.log(softmax(x)): a tiny weight would become 0.
# log_softmax, 2: take top from x first: (x - top) - log sum exp(x - top), in this order.
# log_softmax, 3: in a row of only -inf take 0 for top, and 1 for the sum.

# causal_mask, 1: a token sees itself.
# causal_mask, 2: compare positions, not indices; np.tril would align both at 0.

# padding_mask, 1: compare np.arange(size) with lengths[:, None].
# padding_mask, 2: two axes of length 1 in the middle broadcast over heads and queries.

# split_heads, 1: reshape the last axis to (H, K), then exchange two axes.
# split_heads, 2: reshaping to (H, L, K) at once would cut the tokens to pieces.

# merge_heads, 1: first exchange H and L, then reshape.

# attention, 1: np.swapaxes(k, -1, -2) is the transpose of the last two axes.
# attention, 2: np.where(mask, scores, -np.inf) hides.
# attention, 3: your softmax knows what to do with a row of only -inf.
