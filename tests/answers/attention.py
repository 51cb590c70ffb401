"""Softmax, attention and its heads."""
# ruff: noqa: F811

import math

import numpy as np

from answers import wrong


def weights_of(scores, axis=-1):
    """Softmax as a student has it who passed the first exercise."""
    top = scores.max(axis=axis, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def naive(scores):
    """Softmax as most code has it: a row of -inf alone gives NaN."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# ---- softmax ------------------------------------------------------------------------------------


@wrong("no maximum is taken off, so that exp overflows")
def softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


@wrong("the sum goes over everything")
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


@wrong("the axis is ignored: always the last")
def softmax(x, axis=-1):
    return weights_of(x)


@wrong("the axis is ignored: always the first")
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=0))
    return e / e.sum(axis=0)


@wrong("a row of -inf alone gives NaN")
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@wrong("a sum without keepdims")
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis)


@wrong("neither maximum nor sum keep their axis")
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis))
    return e / e.sum(axis=axis)


@wrong("an epsilon in the denominator")
def softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0))
    return e / (e.sum(axis=axis, keepdims=True) + 1e-6)


@wrong("powers of two for powers of e")
def softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    e = np.exp2(x - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


@wrong("a row of -inf alone gets equal weights")
def softmax(x, axis=-1):
    x = np.maximum(x, np.finfo(x.dtype).min / 2)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@wrong("logarithm of the softmax, which underflows")
def log_softmax(x, axis=-1):
    return np.log(weights_of(x, axis))


@wrong("logarithm with an epsilon")
def log_softmax(x, axis=-1):
    return np.log(weights_of(x, axis) + 1e-12)


@wrong("no maximum is taken off")
def log_softmax(x, axis=-1):
    return x - np.log(np.exp(x).sum(axis=axis, keepdims=True))


@wrong("the axis is ignored")
def log_softmax(x, axis=-1):
    top = x.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    total = np.exp(x - top).sum(axis=-1, keepdims=True)
    return x - top - np.log(np.where(total == 0, 1, total))


@wrong("the maximum is taken off the sum alone")
def log_softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    return x - np.log(np.exp(x - top).sum(axis=axis, keepdims=True))


# ---- attention ----------------------------------------------------------------------------------


@wrong("no scale")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (1 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("divided by K and not by its root")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (1 / q.shape[-1] if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("scaled by the number of keys, k.shape[-2]")
def attention(q, k, v, mask=None, bias=None, scale=None):
    if scale is None:
        scale = 1 / math.sqrt(k.shape[-2])
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("scaled by the width of the values")
def attention(q, k, v, mask=None, bias=None, scale=None):
    if scale is None:
        scale = v.shape[-1] ** -0.5
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("a given scale multiplies 1/sqrt(K), too")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if scale is not None:
        scores = scores * scale
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("the given scale divides")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) / (math.sqrt(q.shape[-1]) if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("the given scale is ignored")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("the bias is ignored")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("the bias is scaled, too")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2)
    if bias is not None:
        scores = scores + bias
    scores = scores * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("the mask is turned round: True hides")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, -np.inf, scores)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("the mask is ignored")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("masked scores are replaced by -1e9")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    weights = naive(scores)
    return weights @ v, weights


@wrong("-1e9 is added to masked scores")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores += (1 - mask.astype(scores.dtype)) * scores.dtype.type(-1e9)
    weights = naive(scores)
    return weights @ v, weights


@wrong("-10000 is added to masked scores, as in BERT")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores + (1.0 - mask) * -10000.0
    weights = naive(scores)
    return weights @ v, weights


@wrong("masked scores are replaced by the least number of the dtype")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, np.finfo(scores.dtype).min)
    weights = naive(scores)
    return weights @ v, weights


@wrong("masked scores are 0")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores * mask
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("the mask comes after the softmax, and the rest is not made to sum to 1")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    weights = weights_of(scores)
    if mask is not None:
        weights = weights * mask
    return weights @ v, weights


@wrong("a row without a key gives NaN")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = naive(scores)
    return weights @ v, weights


@wrong("NaNs of empty rows become equal weights")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = naive(scores)
    weights = np.where(np.isnan(weights), 1 / weights.shape[-1], weights)
    return weights @ v, weights


@wrong("softmax over the queries")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores, axis=-2)
    return weights @ v, weights


@wrong("softmax over all scores at once")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    e = np.exp(scores - scores.max())
    weights = e / e.sum()
    return weights @ v, weights


@wrong("the order of the results is exchanged")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights, weights @ v


@wrong("the output alone is returned")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return weights_of(scores) @ v


@wrong("scores are returned for weights")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return weights_of(scores) @ v, scores


@wrong("k.T swaps all axes, and not the last two alone")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ k.T * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("the mask's batch axes are lost: the first sequence's mask serves all")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        while mask.ndim > 2:
            mask = mask[0]
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("no scale, and the mask ignored")
def attention(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.swapaxes(k, -1, -2)
    if bias is not None:
        scores = scores + bias
    weights = weights_of(scores)
    return weights @ v, weights


# ---- attend -------------------------------------------------------------------------------------


@wrong("the sink is ignored")
def attend(scores, v, mask=None, sink=None):
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = weights_of(scores)
    return weights @ v, weights


@wrong("the sink is added to the denominator without its exponential")
def attend(scores, v, mask=None, sink=None):
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    e = np.exp(scores - top)
    total = e.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + sink[:, None, None] * np.exp(-top)
    weights = e / np.where(total == 0, 1, total)
    return weights @ v, weights


@wrong("exp(sink) meets shifted sums: the maximum is not taken off the sink")
def attend(scores, v, mask=None, sink=None):
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink)[:, None, None]
    weights = e / np.where(total == 0, 1, total)
    return weights @ v, weights


@wrong("the sink stays a column of the weights' sum: rows are made to sum to 1 again")
def attend(scores, v, mask=None, sink=None):
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    if sink is not None:
        column = np.broadcast_to(sink[:, None, None], (*scores.shape[:-1], 1))
        weights = weights_of(np.concatenate([scores, column], axis=-1))[..., :-1]
        total = weights.sum(axis=-1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
    else:
        weights = weights_of(scores)
    return weights @ v, weights


# ---- heads --------------------------------------------------------------------------------------


@wrong("reshaped to (H, L, K) at once")
def split_heads(x, n_heads):
    *batch, L, D = x.shape
    return x.reshape(*batch, n_heads, L, D // n_heads)


@wrong("heads are not moved before the tokens")
def split_heads(x, n_heads):
    *batch, L, D = x.shape
    return x.reshape(*batch, L, n_heads, D // n_heads)


@wrong("head h takes every H-th component")
def split_heads(x, n_heads):
    *batch, L, D = x.shape
    return np.moveaxis(x.reshape(*batch, L, D // n_heads, n_heads), -1, -3)


@wrong("heads become the first axis of all")
def split_heads(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-1))


@wrong("reshaped without bringing tokens to the front")
def merge_heads(x):
    *batch, H, L, K = x.shape
    return x.reshape(*batch, L, H * K)


@wrong("the components of the heads alternate")
def merge_heads(x):
    *batch, H, L, K = x.shape
    return np.moveaxis(x, -3, -1).reshape(*batch, L, K * H)


@wrong("the fused projection is always cut in thirds")
def split_fused(x, order, n_heads, n_kv_heads=None):
    return tuple(np.split(x, 3, axis=-1))


@wrong("H3K is read as 3HK")
def split_fused(x, order, n_heads, n_kv_heads=None):
    G = n_kv_heads or n_heads
    K = x.shape[-1] // (n_heads + 2 * G)
    return tuple(np.split(x, [n_heads * K, (n_heads + G) * K], axis=-1))
