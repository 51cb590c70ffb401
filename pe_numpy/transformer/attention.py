r"""Scaled dot-product attention, its masks and its heads.

Source: Vaswani et al. 2017, "Attention is all you need" (arXiv:1706.03762), section 3.2.1,
equation (1), and section 3.2.2::

    Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V

Axes: B batch, H heads, L queries, S keys, K width of one head (d_k), D = H K model width.
Symbols: score = q . k / sqrt(K), before the softmax; weight = after it; every row of weights sums
to 1.
Convention: a mask is boolean, True = may attend, and sets the other scores to -inf. A bias is added
to the scores after the division by sqrt(K). A query that may attend to nothing gets weights of
zero, not NaN.
Differs from the paper: nothing in the equation. Windows, chunks and sinks came after it: each
function names its own source.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.dispatch import differentiable
from pe_numpy.relative.distance import ROWS


@differentiable
def softmax(x: ArrayLike, axis: int = -1) -> np.ndarray:
    """Turn scores into weights: exp(x_j) / sum_j exp(x_j).

    Source: Vaswani et al. 2017, equation (1). The largest score is subtracted first, which changes
    nothing and keeps exp from overflowing.

    Parameters
    ----------
    x : array
        Scores below +inf; -inf marks what gets no weight.
    axis : int
        The axis that sums to 1.

    Returns
    -------
    Array of the shape and dtype of x (float64 for integers; float16 is computed in float32). Where
    every score is -inf the weights are 0; where a score is NaN they are NaN.

    Examples
    --------
    >>> softmax([[0.0, 0.0], [-np.inf, 1.0], [-np.inf, -np.inf]]).tolist()
    [[0.5, 0.5], [0.0, 1.0], [0.0, 0.0]]
    """
    x, work, shift = _shifted("softmax", x, axis)
    weights = work - shift
    np.exp(weights, out=weights)  # in place: one array of this size is enough
    total = weights.sum(axis=axis, keepdims=True)
    weights /= np.maximum(total, 1)  # at least exp(0) = 1; a row of only -inf stays zero
    return weights.astype(x.dtype, copy=False)


@differentiable
def log_softmax(x: ArrayLike, axis: int = -1) -> np.ndarray:
    """Logarithms of the softmax: x_j - log sum_j exp(x_j).

    Source: the logarithm of `softmax`. Computed as a difference, so that a weight too small for its
    dtype still has its logarithm.

    Parameters
    ----------
    x, axis : array, int
        As in `softmax`.

    Returns
    -------
    Array as of `softmax`; where every score is -inf, so is the result.

    Examples
    --------
    >>> log_softmax([0.0, -1000.0]).tolist(), np.log(softmax([0.0, -700.0])).tolist()
    ([0.0, -1000.0], [0.0, -700.0])
    """
    x, work, shift = _shifted("log_softmax", x, axis)
    result = work - shift
    total = np.exp(result).sum(axis=axis, keepdims=True)
    result -= np.log(np.maximum(total, 1))  # last: beside a large shift it would be rounded away
    return result.astype(x.dtype, copy=False)


def _shifted(function: str, x: ArrayLike, axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, x in its working dtype, and the largest score along the axis (0 for -inf)."""
    x = checks.real_array(function, "x", x)
    axis = checks.axis(function, "x", x, axis)
    work = at_least_float32(x)
    if x.shape[axis] == 0:
        return x, work, np.zeros((), work.dtype)
    top = work.max(axis=axis, keepdims=True)
    if np.isfinite(top).all():
        return x, work, top
    if (top == np.inf).any():
        raise ValueError(f"{function}: x must stay below +inf (-inf is allowed); got +inf")
    return x, work, np.where(top == -np.inf, 0, top)


def at_least_float32(x: np.ndarray) -> np.ndarray:
    """Scores of float16 numbers are computed in float32."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def causal_mask(q_positions: ArrayLike, k_positions: ArrayLike) -> np.ndarray:
    """True where a key is not in the query's future: q_position >= k_position.

    Source: Vaswani et al. 2017, section 3.2.3. With a key-value cache the queries are the newest
    positions: give them as such, and no offset is needed.

    Parameters
    ----------
    q_positions, k_positions : (..., L) and (..., S) arrays
        Positions of queries and keys.

    Returns
    -------
    (..., L, S) boolean array, True = may attend.

    Examples
    --------
    >>> causal_mask([0, 1, 2], [0, 1, 2]).astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> causal_mask([2], [0, 1, 2]).astype(int).tolist()
    [[1, 1, 1]]
    """
    q, k = position_axes("causal_mask", q_positions, k_positions)
    return q[..., :, None] >= k[..., None, :]  # (..., L, S)


def window_mask(
    q_positions: ArrayLike, k_positions: ArrayLike, window: int, sinks: int = 0
) -> np.ndarray:
    """True for the newest keys, the query's own among them, and for the first of all, the sinks.

    Source: the sliding window of Beltagy et al. 2020 (arXiv:2004.05150), one-sided, with the sinks
    of Xiao et al. 2023 (arXiv:2309.17453). Some kernels take the distance to the last key seen,
    which is w - 1.

    Parameters
    ----------
    q_positions, k_positions : as in `causal_mask`
    window : int
        Number w of positions that a query sees: its own and the w - 1 before it.
    sinks : int
        Number z of positions, 0 .. z - 1, that every query after them sees besides. Padding before
        position 0 is none of them.

    Returns
    -------
    (..., L, S) boolean array, True = may attend: 0 <= i - j, and i - j < w or 0 <= j < z.

    Examples
    --------
    >>> window_mask([2, 3], [0, 1, 2, 3], window=2).astype(int).tolist()
    [[0, 1, 1, 0], [0, 0, 1, 1]]
    >>> window_mask([2, 3], [0, 1, 2, 3], window=2, sinks=1).astype(int).tolist()
    [[1, 1, 1, 0], [1, 0, 1, 1]]
    """
    q, k = position_axes("window_mask", q_positions, k_positions)
    window = checks.integer("window_mask", "window", window)
    sinks = checks.integer("window_mask", "sinks", sinks, least=0)
    q, k = q[..., :, None], k[..., None, :]
    seen = k > q - window  # (..., L, S)
    if sinks:
        seen |= (k >= 0) & (k < sinks)
    seen &= k <= q
    return seen


def chunk_mask(q_positions: ArrayLike, k_positions: ArrayLike, chunk: int) -> np.ndarray:
    """True for keys of the query's own chunk, up to the query: floor(i / c) = floor(j / c), j <= i.

    Source: code only: Llama 4, `llama4/model.py` of meta-llama/llama-models at a9c89c4. With
    padding on the left give positions that count from the first real token: else chunks begin
    elsewhere.

    Parameters
    ----------
    q_positions, k_positions : as in `causal_mask`
    chunk : int
        Number c of positions in a chunk; the first begins at 0.

    Returns
    -------
    (..., L, S) boolean array, True = may attend.

    Examples
    --------
    >>> chunk_mask([2, 3, 5], range(6), chunk=3).astype(int).tolist()
    [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 1, 1, 1]]
    """
    q, k = position_axes("chunk_mask", q_positions, k_positions)
    chunk = checks.integer("chunk_mask", "chunk", chunk)
    q, k = q[..., :, None], k[..., None, :]
    seen = q // chunk == k // chunk  # (..., L, S)
    seen &= k <= q
    return seen


def position_axes(function: str, q: ArrayLike, k: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Positions of queries and keys, checked, so wide that their differences do not overflow."""
    q = _wide(checks.position_array(function, "q_positions", q, axis=True))
    k = _wide(checks.position_array(function, "k_positions", k, axis=True))
    checks.common_batch(function, q_positions=q.shape[:-1], k_positions=k.shape[:-1])
    return q, k


def _wide(positions: np.ndarray) -> np.ndarray:
    """As int64, or at least float64: differences of narrower numbers could overflow."""
    return positions.astype(np.result_type(positions, np.int64), copy=False)


def padding_mask(lengths: ArrayLike, size: int, side: str = "right") -> np.ndarray:
    """True where a key is a real token and not padding.

    Source: common practice; the paper does not speak of padding. With padding on the left the
    positions must start after it, too: give them to the encoding as a (B, 1, L) array.

    Parameters
    ----------
    lengths : (B,) array of integers
        Number of real tokens in each sequence.
    size : int
        Padded length S.
    side : "right" or "left"
        Where the padding stands.

    Returns
    -------
    (B, 1, 1, S) boolean array, True = may attend; it joins `causal_mask` with ``&``.

    Examples
    --------
    >>> padding_mask([1, 3], 3).astype(int).tolist()
    [[[[1, 0, 0]]], [[[1, 1, 1]]]]
    >>> padding_mask([1, 3], 3, side="left").astype(int).tolist()
    [[[[0, 0, 1]]], [[[1, 1, 1]]]]
    """
    lengths = checks.whole_array("padding_mask", "lengths", lengths)
    size = checks.integer("padding_mask", "size", size, least=0)
    side = checks.choice("padding_mask", "side", side, ("right", "left"))
    if lengths.ndim != 1 or (lengths.size and lengths.dtype.kind not in "ui"):
        raise ValueError(
            "padding_mask: lengths must be one axis of whole numbers; "
            f"got shape {lengths.shape}, dtype {lengths.dtype}"
        )
    if ((lengths < 0) | (lengths > size)).any():
        raise ValueError(
            f"padding_mask: each length must be from 0 to size = {size}; got {lengths.tolist()}"
        )
    place = np.arange(size) if side == "right" else np.arange(size)[::-1]
    return (place < lengths[:, None])[:, None, None, :]  # (B, 1, 1, S)


def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    mask: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    scale: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Scaled dot-product attention: softmax(q k^T / sqrt(K) + bias) v.

    Source: Vaswani et al. 2017, equation (1). A weight of zero hides a value, but not a NaN.

    Parameters
    ----------
    q, k, v : (..., L, K), (..., S, K), (..., S, Kv) arrays
        Queries, keys and values; often Kv = K.
    mask : boolean array that broadcasts to (..., L, S), optional
        True = may attend.
    bias : array that broadcasts to (..., L, S), optional
        Added after the scale (ALiBi; T5 takes a scale of 1); cast to the dtype of the scores.
    scale : float, optional
        Factor of q k^T, 1/sqrt(K) by default.

    Returns
    -------
    output : (..., L, Kv) array
    weights : (..., L, S) array, rows that sum to 1 (or 0, where the mask allows nothing)

    Examples
    --------
    >>> output, weights = attention([[1.0]], [[0.0], [0.0]], [[2.0], [4.0]])
    >>> output.tolist(), weights.tolist()
    ([[3.0]], [[0.5, 0.5]])
    """
    q, k, v, batch = checked_qkv("attention", q, k, v)
    shape = (*batch, q.shape[-2], k.shape[-2])
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    q_scaled = at_least_float32(q) * checks.number("attention", "scale", scale)
    scores = q_scaled @ np.swapaxes(at_least_float32(k), -1, -2)  # (..., L, S)
    if bias is not None:
        bias = checks.real_array("attention", "bias", bias)
        checks.fits("attention", "bias", bias.shape, shape, "the scores")
        scores = scores + bias.astype(scores.dtype, copy=False)
    if mask is not None:
        mask = checks.mask_array("attention", mask, shape)
    v, dtype = at_least_float32(v), np.result_type(q, k, v)
    if isinstance(scores, np.ndarray):  # the same, in less memory
        weights = weigh(scores, mask)
        return (weights @ v).astype(dtype, copy=False), weights.astype(dtype, copy=False)
    output, weights = attend(scores, v, mask)
    return output.astype(dtype, copy=False), weights.astype(dtype, copy=False)


def weigh(scores: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Softmax of what the mask leaves, in the memory of the scores, some queries at a time."""
    mask = None if mask is None else np.broadcast_to(mask, scores.shape)
    for start in range(0, scores.shape[-2], ROWS):
        rows = (..., slice(start, start + ROWS), slice(None))
        block = scores[rows] if mask is None else np.where(mask[rows], scores[rows], -np.inf)
        scores[rows] = softmax(block)
    return scores


def checked_qkv(
    function: str, q: ArrayLike, k: ArrayLike, v: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, ...]]:
    """The three arrays, checked, and the batch axes that they share."""
    q, k, batch = checks.queries_and_keys(function, q, k)
    v = checks.real_array(function, "v", v, "SK")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"{function}: k and v must have the same length S; got {k.shape[-2]} and {v.shape[-2]}"
        )
    return q, k, v, checks.common_batch(function, scores=batch, v=v.shape[:-2])


@differentiable
def attend(
    scores: ArrayLike,
    v: ArrayLike,
    mask: ArrayLike | None = None,
    sink: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Mask, softmax and weighted sum, for scores that any scheme made: softmax(scores) v.

    Source: Vaswani et al. 2017, equation (1); masked scores are -inf (section 3.2.3). The sink is
    code only: gpt-oss, `torch/model.py` of openai/gpt-oss at 7b58334.

    Parameters
    ----------
    scores : (..., L, S) array
        Scaled scores, biases included.
    v : (..., S, Kv) array
        Values.
    mask : as in `attention`
    sink : (H,) array, or one of two axes or more that broadcasts to (..., H, L), optional
        Score of one more key, whose value is 0: a learned number of each head, or one that each
        query makes of its token. No mask hides it. Cast to the dtype of the scores.

    Returns
    -------
    output : (..., L, Kv) array
    weights : (..., L, S) array, rows that sum to 1 (or 0, where the mask allows nothing); with a
        sink, to 1 less the sink's own weight

    Examples
    --------
    >>> output, weights = attend([[0.0, 0.0, 9.0]], [[1.0], [3.0], [5.0]], [[True, True, False]])
    >>> output.tolist(), weights.tolist()
    ([[2.0]], [[0.5, 0.5, 0.0]])
    >>> output, weights = attend([[[0.0, 0.0]]], [[1.0], [3.0]], sink=[np.log(2)])
    >>> output.tolist(), weights.tolist()
    ([[[1.0]]], [[[0.25, 0.25]]])
    """
    scores = checks.real_array("attend", "scores", scores, "LS")
    v = checks.real_array("attend", "v", v, "SK")
    if scores.shape[-1] != v.shape[-2]:
        raise ValueError(
            "attend: scores and v must have the same number of keys S; "
            f"got {scores.shape[-1]} and {v.shape[-2]}"
        )
    checks.common_batch("attend", scores=scores.shape[:-2], v=v.shape[:-2])
    if mask is not None:
        mask = checks.mask_array("attend", mask, scores.shape)
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores) if sink is None else softmax_beside(sink, scores)[..., :-1]
    return weights @ v, weights  # (..., L, Kv), (..., L, S)


def softmax_beside(sink: ArrayLike, scores: np.ndarray) -> np.ndarray:
    """Weights of the keys and, in a last column, of the sink: (..., H, L, S + 1)."""
    sink = checks.real_array("attend", "sink", sink)
    rows = scores.shape[:-1]  # (..., H, L)
    if sink.ndim == 1 and sink.shape == rows[-2:-1]:
        sink = sink[:, None]  # a number of each head is the same for all queries
    elif sink.ndim < 2:
        raise ValueError(
            "attend: sink must have a number for each head, (H,), or for each query, (..., H, L) "
            f"= {rows}; got shape {sink.shape}"
        )
    checks.fits("attend", "sink", sink.shape, rows, "the scores without their keys")
    column = np.broadcast_to(sink, rows)[..., None].astype(scores.dtype)
    return softmax(np.concatenate([scores, column], axis=-1))


def split_heads(x: ArrayLike, n_heads: int) -> np.ndarray:
    """Cut the model width into heads: (..., L, D) to (..., H, L, K), K = D/H.

    Source: Vaswani et al. 2017, section 3.2.2: one projection, sliced, is the h projections of the
    paper side by side.

    Parameters
    ----------
    x : (..., L, D) array
        Projected queries, keys or values.
    n_heads : int
        Number of heads H, a divisor of D.

    Returns
    -------
    (..., H, L, K) array; head h holds the components h K .. h K + K - 1. A view where possible.

    Examples
    --------
    >>> split_heads([[1, 2, 3, 4], [5, 6, 7, 8]], 2).astype(int).tolist()
    [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]
    """
    x = checks.real_array("split_heads", "x", x, "LD")
    n_heads = checks.integer("split_heads", "n_heads", n_heads)
    *batch, L, D = x.shape
    if D % n_heads:
        raise ValueError(f"split_heads: n_heads must divide the width D; got {n_heads} and {D}")
    return np.swapaxes(x.reshape(*batch, L, n_heads, D // n_heads), -2, -3)  # (..., H, L, K)


def merge_heads(x: ArrayLike) -> np.ndarray:
    """Put the heads side by side again: (..., H, L, K) to (..., L, H K).

    Source: Vaswani et al. 2017, section 3.2.2, Concat(head_1, ..., head_h).

    Parameters
    ----------
    x : (..., H, L, K) array
        Outputs of the heads.

    Returns
    -------
    (..., L, D) array, D = H K; undoes `split_heads`.

    Examples
    --------
    >>> merge_heads([[[1, 2], [5, 6]], [[3, 4], [7, 8]]]).astype(int).tolist()
    [[1, 2, 3, 4], [5, 6, 7, 8]]
    """
    x = checks.real_array("merge_heads", "x", x, "HLK")
    *batch, H, L, K = x.shape
    return np.swapaxes(x, -2, -3).reshape(*batch, L, H * K)  # (..., L, D)


def split_fused(
    x: ArrayLike, order: str, n_heads: int, n_kv_heads: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Take apart what one projection made of queries, keys and values.

    Source: code only. "q|k|v" is GPT-2 and Phi-3, "3HK" MPT, "H3K" GPT-NeoX and BLOOM (transformers
    5.23.0, models/gpt2, phi3, mpt, gpt_neox, bloom). The wrong order has the right shapes.

    Parameters
    ----------
    x : (..., (H + 2 G) K) array
        A fused projection of tokens, its bias, or the matrix itself (D, (H + 2 G) K).
    order : "q|k|v", "3HK" or "H3K"
        How it stands in memory: all queries, then all keys, then all values; or head by head, each
        head with its query, its key and its value. "3HK" is another name of the first, of as many
        heads of keys as of queries.
    n_heads : int
        Number of heads H of the queries.
    n_kv_heads : int, optional
        Number of heads G of keys, and of values; H by default, and for the two last orders.

    Returns
    -------
    q (..., H K), k (..., G K), v (..., G K), each head by head: what `split_heads` takes.

    Examples
    --------
    >>> q, k, v = split_fused([0, 1, 2, 3, 4, 5], "q|k|v", n_heads=2)
    >>> q.tolist(), k.tolist(), v.tolist()
    ([0.0, 1.0], [2.0, 3.0], [4.0, 5.0])
    >>> q, k, v = split_fused([0, 1, 2, 3, 4, 5], "H3K", n_heads=2)
    >>> q.tolist(), k.tolist(), v.tolist()
    ([0.0, 3.0], [1.0, 4.0], [2.0, 5.0])
    """
    name = "split_fused"
    x = checks.real_array(name, "x", x, "D")
    order = checks.choice(name, "order", order, ("q|k|v", "3HK", "H3K"))
    H = checks.integer(name, "n_heads", n_heads)
    G = H if n_kv_heads is None else checks.integer(name, "n_kv_heads", n_kv_heads)
    checks.fused_heads(name, order, H, G)
    *batch, width = x.shape
    if width % (H + 2 * G):
        raise ValueError(
            f"{name}: the width of x must be a multiple of H + 2 G = {H + 2 * G}; got {width}"
        )
    K = width // (H + 2 * G)
    if order == "H3K":
        parts = x.reshape(*batch, H, 3, K)
        return tuple(parts[..., n, :].reshape(*batch, H * K) for n in range(3))  # type: ignore
    return x[..., : H * K], x[..., H * K : (H + G) * K], x[..., (H + G) * K :]
