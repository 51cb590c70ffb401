"""Exercises of chapter 12: attend in blocks.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 12_attention_blocks.py

Here the softmax and its logarithm are made in one pass over the scores, as a long row demands.
Then come the masks of windows and chunks, and a softmax with a sink.
Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def softmax(x, axis=-1):
    """Turn scores into weights, with a largest score and a sum that are kept up to date.

    x        any shape   floating point scores; -inf gets no weight
    axis     int         the axis that sums to 1
    returns  of x's shape and dtype

    for each row along the axis:
        top = -inf, total = 0
        for each score s of the row:
            higher = max(top, s)
            total  = total exp(top - higher) + exp(s - higher)
            top    = higher
        weight[j] = exp(x[j] - top) / total
        if every score of the row is -inf, all its weights are 0
    """
    raise NotImplementedError


def log_softmax(x, axis=-1):
    """Logarithms of the weights, from the same largest score and sum.

    x        any shape   floating point
    axis     int
    returns  of x's shape and dtype

    for each row along the axis:
        top, total as above
        result[j] = (x[j] - top) - log(total)
        if every score of the row is -inf, so is every result
    """
    raise NotImplementedError


def window_mask(q_positions, k_positions, window, sinks=0):
    """True for the newest keys, the query's own among them, and for the first ones, the sinks.

    q_positions  (..., L)       positions i of the queries, int64
    k_positions  (..., S)       positions j of the keys; below 0 there is padding
    window       int            w, at least 1
    sinks        int            number of sinks, which stand at 0, 1, ...
    returns      (..., L, S)    booleans

    for each query i and key j:
        True if j <= i and (i - j < w or 0 <= j < sinks)
    """
    raise NotImplementedError


def chunk_mask(q_positions, k_positions, chunk):
    """True for keys of the query's own chunk, up to the query.

    q_positions  (..., L)
    k_positions  (..., S)
    chunk        int            c; chunks begin at 0, c, 2 c, ...
    returns      (..., L, S)    booleans

    for each query i and key j:
        True if j <= i and floor(i / c) = floor(j / c)
    """
    raise NotImplementedError


def attend(scores, v, mask=None, sink=None):
    """Mask, softmax and weighted sum, with a learned sink for each head.

    scores   (..., H, L, S)    scaled scores
    v        (..., H, S, K)    values
    mask     booleans that broadcast to the scores, or None: True = may attend
    sink     (H,), or None
    returns  (..., H, L, K) output, (..., H, L, S) weights; both of the data's dtype

    for each head h and query i:
        total = sum over the keys j that may be attended to of exp(scores[h, i, j])
        if there is a sink: total = total + exp(sink[h])
        weights[h, i, j] = exp(scores[h, i, j]) / total for these j, 0 for the others
        output[h, i]     = sum over j of weights[h, i, j] v[h, j]
        if nothing may be attended to, all weights are 0
    """
    raise NotImplementedError


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
    """Attention in blocks of keys: the same output, without an array of all scores.

    q, k, v       (..., L, K), (..., S, K), (..., S, Kv)
    mask          booleans that broadcast to (..., L, S), or None: True = may attend
    bias          array that broadcasts to (..., L, S), or a function of the distances (..., l, s)
                  of a block, query minus key position; or None
    block         int     keys taken at a time; the last block may be shorter
    causal        bool    whether a query may attend only to positions up to its own
    q_positions   (..., L)  int64; by default the last L of 0 .. S-1
    k_positions   (..., S)  by default 0 .. S-1
    window        int     a query sees no key that stands `window` positions or more before it
    returns       (..., L, Kv)   of the data's dtype

    for each query: top = -inf, total = 0, mixed = 0
    for each block of keys, for each query i:
        score[j] = q[i] k[j] / sqrt(K) + bias[i, j], or -inf where i must not see j
        higher = max(top, the largest score of the block)
        total  = total exp(top - higher) + sum over j of exp(score[j] - higher)
        mixed  = mixed exp(top - higher) + sum over j of exp(score[j] - higher) v[j]
        top    = higher
    output = mixed / total, or 0 where nothing may be seen
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# softmax, 1: np.moveaxis(x, axis, 0) lets you loop over the scores of all rows at once.
# softmax, 2: while a row has seen only -inf, -inf - (-inf) is NaN: subtract 0 there.
# softmax, 3: and its total is 0: divide by 1 instead. Keep x's dtype from the start.

# log_softmax, 1: the loop is the same; write it once, as a function that returns top and total.
# log_softmax, 2: take top from x first, then the logarithm: beside a large score it loses digits.
# log_softmax, 3: in a row of only -inf take 0 for top and 1 for total.

# window_mask, 1: put the queries down, q[..., :, None], and the keys across, k[..., None, :].
# window_mask, 2: four comparisons, joined by & and |.

# chunk_mask, 1: // rounds down, also below 0.

# attend, 1: the sink is one more key whose value is 0.
# attend, 2: set it beside the scores, as a last column, take your softmax, drop the column.
# attend, 3: the mask comes before it, so that no row is without a score.

# attention_blockwise, 1: all queries at once: top and total have the axes (..., L, 1).
# attention_blockwise, 2: a slice of the keys, of the values, and of the last axis of mask and bias;
#   np.broadcast_to gives mask and bias that axis.
# attention_blockwise, 3: while a row has seen only -inf, subtract 0; at the end divide by 1 there.
# attention_blockwise, 4: q_at[..., :, None] - k_at[..., None, columns] are the distances.
