"""Attention in blocks of queries and keys, without the (L, S) scores.

Source: Milakov and Gimelshein 2018 (arXiv:1805.02867), algorithm 3, the online softmax; Rabe and
Staats 2021 (arXiv:2112.05682), who carry it on to the weighted sum::

    m' = max(m, max_j s_j);    l' = e^{m - m'} l + sum_j e^{s_j - m'};
    o' = e^{m - m'} o + sum_j e^{s_j - m'} v_j;    output = o / l

Axes: L queries, S keys, l and s those of one block, K width of one head.
Symbols: s_j a score, m the largest so far, l and o the sums of e^{s - m} and e^{s - m} v.
Convention: as in `pe_numpy.transformer.attention`; the output is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.transformer.attention import at_least_float32, checked_qkv, position_axes


def attention_blockwise(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    mask: ArrayLike | None = None,
    bias: ArrayLike | Callable[[np.ndarray], np.ndarray] | None = None,
    block: int = 256,
    causal: bool = False,
    q_positions: ArrayLike | None = None,
    k_positions: ArrayLike | None = None,
    window: int | None = None,
) -> np.ndarray:
    """Attention in blocks of queries and keys: the same output, without the (L, S) scores.

    Source: Milakov and Gimelshein 2018 (arXiv:1805.02867), algorithm 3, carried from the softmax to
    the weighted sum as in Rabe and Staats 2021 (arXiv:2112.05682). Scores exist for one block at a
    time, O(B H block^2). Beside those and some vectors of the block there are the positions, and
    the output a second time while its pieces are joined.

    Parameters
    ----------
    q, k, v : (..., L, K), (..., S, K), (..., S, Kv) arrays
        As in `attention`.
    mask : boolean array that broadcasts to (..., L, S), optional
        True = may attend. For a causal mask use `causal`, which needs no (L, S) array.
    bias : array that broadcasts to (..., L, S), or a function, optional
        A function gets the distances (l, s) of one block, query minus key position, and gives the
        bias (l, s) or (H, l, s) of that block.
    block : int
        Queries and keys taken at a time.
    causal : bool
        Whether a query may attend only to positions up to its own.
    q_positions, k_positions : (..., L) and (..., S) arrays, optional
        For `causal`, `window` and a bias function. By default the keys stand at 0 .. S-1 and the
        queries at the last L of these.
    window : int, optional
        A query sees no key that stands `window` positions or more before it; with `causal` that is
        `window_mask`. Blocks that lie outside are skipped.

    Returns
    -------
    (..., L, Kv) array.

    Examples
    --------
    >>> from pe_numpy import attention
    >>> x = np.eye(3)
    >>> bool(np.allclose(attention_blockwise(x, x, x, block=2), attention(x, x, x)[0], atol=1e-15))
    True
    """
    name = "attention_blockwise"
    q, k, v, batch = checked_qkv(name, q, k, v)
    block = checks.integer(name, "block", block)
    causal = checks.flag(name, "causal", causal)
    if window is not None:
        window = checks.integer(name, "window", window)
    dtype = np.result_type(q, k, v)
    L, S = q.shape[-2], k.shape[-2]
    scale = 1 / math.sqrt(q.shape[-1])
    if mask is not None:
        mask = np.broadcast_to(checks.mask_array(name, mask, (*batch, L, S)), (*batch, L, S))
    if bias is not None and not callable(bias):
        bias = checks.real_array(name, "bias", bias)
        checks.fits(name, "bias", bias.shape, (*batch, L, S), "the scores")
        bias = np.broadcast_to(bias, (*batch, L, S))
    q_at = k_at = np.zeros(0)  # used only where positions matter
    placed = causal or callable(bias) or window is not None
    if placed:
        q_at, k_at = _block_positions(name, L, S, q_positions, k_positions)

    def scores_of(rows: slice, columns: slice) -> np.ndarray:
        q_rows = at_least_float32(q[..., rows, :]) * scale
        scores = q_rows @ np.swapaxes(at_least_float32(k[..., columns, :]), -1, -2)  # (..., l, s)
        if placed:
            distance = q_at[..., rows, None] - k_at[..., None, columns]  # (..., l, s)
        if callable(bias):
            term = checks.real_array(name, "what bias gives", bias(distance))
            checks.fits(name, "what bias gives", term.shape, scores.shape, "the block")
            scores = scores + term.astype(scores.dtype, copy=False)
        elif bias is not None:
            scores = scores + bias[..., rows, columns].astype(scores.dtype, copy=False)
        if mask is not None:
            scores = np.where(mask[..., rows, columns], scores, -np.inf)
        if window is not None:
            scores = np.where(distance < window, scores, -np.inf)
        return np.where(distance >= 0, scores, -np.inf) if causal else scores

    output, work = [np.zeros((*batch, 0, v.shape[-1]), dtype)], checks.working(q)[0]
    for start in range(0, L, block):
        rows = slice(start, start + block)
        top = np.full((*batch, len(range(L)[rows]), 1), -np.inf, work)  # largest score so far
        total = np.zeros_like(top)  # sum of exp(score - top)
        mixed = np.zeros((*top.shape[:-1], v.shape[-1]), work)  # sum of exp(score - top) v
        for first in range(0, S, block):
            columns = slice(first, first + block)
            if causal and k_at[..., columns].min() > q_at[..., rows].max():
                continue  # the whole block lies in the future
            if window and q_at[..., rows].min() - k_at[..., columns].max() >= window:
                continue  # the whole block lies before the window
            scores = scores_of(rows, columns)
            higher = np.maximum(top, scores.max(axis=-1, keepdims=True))
            if (higher == np.inf).any():
                raise ValueError(f"{name}: scores must stay below +inf (-inf is allowed); got +inf")
            shift = np.where(higher == -np.inf, 0, higher)
            weights = exp_of(scores, shift)
            shrink = np.exp(top - shift)  # what was summed so far had the smaller shift
            total = total * shrink + weights.sum(axis=-1, keepdims=True)
            mixed = mixed * shrink + weights @ at_least_float32(v[..., columns, :])
            top = higher
        output.append((mixed / np.where(total == 0, 1, total)).astype(dtype, copy=False))
    return np.concatenate(output, axis=-2)  # (..., L, Kv)


def exp_of(scores: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """e^(scores - shift), in the memory of the scores if they are no array of a tape."""
    if not isinstance(scores, np.ndarray):
        return np.exp(scores - shift)
    scores -= shift
    return np.exp(scores, out=scores)


def _block_positions(
    function: str, L: int, S: int, q_positions: ArrayLike | None, k_positions: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    if q_positions is None:
        if L > S:
            raise ValueError(
                f"{function}: more queries than keys, L = {L} and S = {S}, have no default "
                "positions; give q_positions"
            )
        q_positions = np.arange(S - L, S)
    q_positions, k_positions = position_axes(
        function, q_positions, np.arange(S) if k_positions is None else k_positions
    )
    if q_positions.shape[-1] != L or k_positions.shape[-1] != S:
        raise ValueError(
            f"{function}: there must be one position for each of the L = {L} queries and S = {S} "
            f"keys; got {q_positions.shape[-1]} and {k_positions.shape[-1]}"
        )
    return q_positions, k_positions
