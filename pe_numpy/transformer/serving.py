r"""Positions and masks of packed texts and of drafted trees; attention over parts of the keys.

Equation: packed documents count from 0 each, and attend within themselves. A drafted token's
position is its depth in the tree, and it attends to its ancestors. Attention over some of the keys
gives outputs o_r and the logarithm l_r of the sum of the exponentials of its scores; all parts
together give::

    l = ln(sum over r of exp(l_r))          o = sum over r of exp(l_r - l) o_r

Source: for packing Krell et al. 2021 (arXiv:2107.02027); for trees Cai et al. 2024, "Medusa"
(arXiv:2401.10774), and Li et al. 2024, "EAGLE-2" (arXiv:2406.16858); for merged parts Liu et al.
2023, "Ring Attention" (arXiv:2310.01889), and Ye et al. 2025, "FlashInfer" (arXiv:2501.01005),
section 2.2. Each function names the code that was read.
Axes: L queries, S keys or packed tokens, N nodes of a tree, R parts or ranks, K width of queries
and keys, V width of values.
Symbols: l_r is the log-sum-exp of a row of scores, called `softmax_lse` in FlashAttention.
Convention: masks are boolean, True = may attend. A query that sees nothing has the output 0 and
the log-sum -inf, so that it merges like any other.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.transformer.attention import at_least_float32, causal_mask, checked_qkv
from pe_numpy.transformer.blockwise import exp_of

# ---- packed documents ---------------------------------------------------------------------------


def pack(lengths: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, documents and mask of texts in one row: each counts from 0 and sees itself only.

    Parameters
    ----------
    lengths : (N,) array of integers
        Tokens of each document, in the order of the row. A length may be 0.

    Returns
    -------
    positions : (S,) int64 array
        From 0 in each document, where S is the sum of the lengths.
    documents : (S,) int64 array
        The number of each token's document, from 0.
    mask : (S, S) boolean array, True = may attend
        Causal, within the document.

    Raises
    ------
    ValueError
        If a length is negative or not a whole number.

    Notes
    -----
    Source: Krell et al. 2021 (arXiv:2107.02027), for BERT; causal as in Megatron-LM at d086a2e,
    `get_ltor_masks_and_position_ids` of `megatron/training/utils.py`, where `reset_position_ids`
    and `reset_attention_mask` are two switches. The positions need not restart for RoPE and ALiBi,
    which see differences only; the mask is needed for every encoding. FlashAttention takes
    the borders, `cu_seqlens`, which are 0 and the sums of the lengths up to each. Without them
    and without a mask, transformers 5.23.0 finds borders in `position_ids`: where they do not rise
    by 1 (`find_packed_sequence_indices`), for FlashAttention where they are at their smallest
    (`prepare_fa_kwargs_from_position_ids`).

    Examples
    --------
    >>> positions, documents, mask = pack([3, 2])
    >>> positions.tolist(), documents.tolist()
    ([0, 1, 2, 0, 1], [0, 0, 0, 1, 1])
    >>> mask.astype(int).tolist()[3:]
    [[0, 0, 0, 1, 0], [0, 0, 0, 1, 1]]
    """
    lengths = _one_axis("pack", "lengths", lengths)
    if (lengths < 0).any():
        raise ValueError(
            f"pack: lengths must be at least 0; got {lengths.min()}. For documents that are "
            "cut elsewhere, make them with np.diff(cu_seqlens)"
        )
    documents = np.repeat(np.arange(len(lengths)), lengths)
    starts = np.cumsum(lengths) - lengths
    positions = np.arange(len(documents)) - starts[documents]
    mask = document_mask(documents, documents) & causal_mask(positions, positions)
    return positions, documents, mask


def document_mask(q_documents: ArrayLike, k_documents: ArrayLike) -> np.ndarray:
    """True where query and key are of the same document: q_document = k_document.

    Parameters
    ----------
    q_documents, k_documents : (..., L) and (..., S) arrays of integers
        The number of each token's document. Give padding a number that no document has.

    Returns
    -------
    (..., L, S) boolean array, True = may attend; it joins `causal_mask` with ``&``.

    Raises
    ------
    ValueError
        If the numbers are not whole, or the batch axes do not broadcast.

    Notes
    -----
    Source: code only: `packed_sequence_mask_function` of transformers 5.23.0,
    `masking_utils.py`. With a cache, the keys' documents are those of all that is cached.

    Examples
    --------
    >>> document_mask([0, 1], [0, 0, 1]).astype(int).tolist()
    [[1, 1, 0], [0, 0, 1]]
    """
    name = "document_mask"
    q = _whole(name, "q_documents", q_documents)
    k = _whole(name, "k_documents", k_documents)
    checks.common_batch(name, q_documents=q.shape[:-1], k_documents=k.shape[:-1])
    return q[..., :, None] == k[..., None, :]  # (..., L, S)


# ---- trees of drafts ----------------------------------------------------------------------------


def tree_positions(parents: ArrayLike) -> np.ndarray:
    """Position of each drafted token after the text: its depth in the tree, from 0.

    Parameters
    ----------
    parents : (N,) array of integers
        The node that each node follows, a smaller number than its own; -1 where it follows the
        text itself.

    Returns
    -------
    (N,) int64 array. Add the number of tokens in the cache.

    Raises
    ------
    ValueError
        If a parent is below -1, or does not come before its child.

    Notes
    -----
    Source: code only: `medusa_position_ids` in `medusa/model/utils.py` of FasterDecoding/Medusa at
    e2a5d20, `tree_position_ids` in `eagle/model/cnets.py` of SafeAILab/EAGLE at cb7e084. Both add
    the length of the text. Their trees have one root, node 0: the token that the large
    model has already chosen.

    Examples
    --------
    >>> tree_positions([-1, 0, 0, 1, 1, 2]).tolist()
    [0, 1, 1, 2, 2, 2]
    """
    parents = _parents("tree_positions", parents)
    depths = np.zeros(len(parents), np.int64)
    for node, parent in enumerate(parents):
        if parent >= 0:
            depths[node] = depths[parent] + 1
    return depths


def tree_mask(parents: ArrayLike) -> np.ndarray:
    """True where the key is the query itself or one of its ancestors in the tree of drafts.

    Parameters
    ----------
    parents : as in `tree_positions`

    Returns
    -------
    (N, N) boolean array, True = may attend. Each node also attends to all of the text, whose
    columns go before these.

    Raises
    ------
    ValueError
        As in `tree_positions`.

    Notes
    -----
    Source: code only: `tree_mask` in `eagle/model/cnets.py` of SafeAILab/EAGLE at cb7e084, where,
    as here, a node's row is its parent's and itself; `medusa_attn_mask` in `medusa/model/utils.py`
    of FasterDecoding/Medusa at e2a5d20 is the same.

    Examples
    --------
    >>> tree_mask([-1, 0, 0, 1]).astype(int).tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 0, 1]]
    """
    parents = _parents("tree_mask", parents)
    mask = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):
        if parent >= 0:
            mask[node] |= mask[parent]
    return mask


# ---- parts of one attention ---------------------------------------------------------------------


def partial_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    mask: ArrayLike | None = None,
    bias: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Attention over some of the keys, and ln sum_j exp(score_j), with which parts are merged.

    Parameters
    ----------
    q, k, v : (..., L, K), (..., S, K), (..., S, V) arrays
        As in `attention`: the queries, and those keys and values that are here. S may be 0.
    mask : boolean array that broadcasts to (..., L, S), optional
        True = may attend.
    bias : array that broadcasts to (..., L, S), optional
        Added to the scores, q k / sqrt(K).

    Returns
    -------
    outputs : (..., L, V) array
        0 for a query that sees none of these keys.
    log_sums : (..., L) array
        -inf for such a query; float32 for float16, in which it could be too large.

    Raises
    ------
    ValueError
        If shapes do not fit, the mask is not boolean, or a score is +inf.

    Notes
    -----
    Source: the two results of FlashAttention at 0251105, `out` and `softmax_lse` in
    `flash_attn/flash_attn_interface.py`. For a query that sees nothing its second version writes
    +inf (`csrc/flash_attn/src/softmax.h`), its third -inf (`hopper/softmax.h`), as here. PyTorch
    2.13.0 writes 0 on the CPU, in `_scaled_dot_product_flash_attention_for_cpu`: merged as it is,
    such a part would count.

    Examples
    --------
    >>> one, none = np.ones((1, 1)), np.zeros((3, 1))
    >>> outputs, log_sums = partial_attention(one, none, np.array([[1.0], [2.0], [6.0]]))
    >>> outputs.tolist(), np.exp(log_sums).round(9).tolist()
    ([[3.0]], [3.0])
    >>> partial_attention(one, none, none, [[False, False, False]])[1].tolist()
    [-inf]
    """
    name = "partial_attention"
    q, k, v, batch = checked_qkv(name, q, k, v)
    shape, dtype = (*batch, q.shape[-2], k.shape[-2]), np.result_type(q, k, v)
    scaled = at_least_float32(q) * (1 / math.sqrt(q.shape[-1]))
    scores = scaled @ np.swapaxes(k, -1, -2)  # (..., L, S)
    if bias is not None:
        bias = checks.real_array(name, "bias", bias)
        checks.fits(name, "bias", bias.shape, shape, "the scores")
        scores = scores + bias.astype(scores.dtype, copy=False)
    if mask is not None:
        scores = np.where(checks.mask_array(name, mask, shape), scores, -np.inf)
    top = np.full((*scores.shape[:-1], 1), -np.inf, scores.dtype)
    if shape[-1]:
        top = scores.max(axis=-1, keepdims=True)
    shift, weights, total = _exponentials(name, "scores", scores, top, -1)
    outputs = weights @ v / total
    log_sums = _logarithm(total, top, shift)[..., 0]
    log_sums = log_sums + np.zeros(outputs.shape[:-1], log_sums.dtype)  # v may have more batch axes
    return outputs.astype(dtype, copy=False), log_sums


def merge_attention(outputs: ArrayLike, log_sums: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Join attention over parts of the keys: sum_r exp(l_r - l) o_r, l = ln sum_r exp(l_r).

    Parameters
    ----------
    outputs : (R, ..., L, V) array, or a list of R arrays
        Of each part, as `partial_attention` gives them.
    log_sums : (R, ..., L) array, or a list of R arrays
        A part whose log-sum is -inf counts for nothing: its output is not read, and may be NaN.

    Returns
    -------
    outputs : (..., L, V) array, of the dtype of the outputs
        Attention over the keys of all parts.
    log_sums : (..., L) array
        Theirs, so that merged parts may be merged again.

    Raises
    ------
    ValueError
        If there is no part, the shapes do not fit, or a log-sum is +inf.

    Notes
    -----
    Source: FlashInfer (arXiv:2501.01005), section 2.2, which vLLM at cfc4079 names in
    `vllm/v1/attention/ops/triton_merge_attn_states.py`: `merge_attn_states`, for two parts. Ring
    attention merges one part after the other, `_update_out_and_lse` in `ring_flash_attn/utils.py`
    of zhuzilin/ring-flash-attention at 8996282. In exact arithmetic no order of merging changes
    the result. Where no part sees anything, that kernel computes -inf - (-inf), which is NaN.
    In float32 an error of a log-sum, some 1e-7 of its size, is an error of the shares.

    Examples
    --------
    >>> outputs, log_sums = merge_attention([[[1.0]], [[4.0]]], np.log([[1.0], [2.0]]))
    >>> outputs.round(9).tolist(), np.exp(log_sums).round(9).tolist()
    ([[3.0]], [3.0])
    """
    name = "merge_attention"
    outputs = checks.real_array(name, "outputs", outputs, "RLV")
    log_sums = checks.real_array(name, "log_sums", log_sums, "RL")
    if log_sums.shape != outputs.shape[:-1]:
        raise ValueError(
            f"{name}: log_sums must have the axes (R, ..., L) of the outputs, "
            f"{outputs.shape[:-1]}; got {log_sums.shape}"
        )
    if len(outputs) == 0:
        raise ValueError(f"{name}: there must be at least one part; got R = 0")
    dtype, kept = outputs.dtype, checks.working(log_sums)[0]
    sums = log_sums.astype(checks.working(outputs, log_sums)[0], copy=False)
    top = sums.max(axis=0, keepdims=True)
    shift, shares, total = _exponentials(name, "log_sums", sums + 0, top, 0)
    seen = np.where((sums == -np.inf)[..., None], 0, outputs)
    merged = ((shares / total)[..., None] * seen).sum(axis=0)
    together = _logarithm(total, top, shift)[0]
    return merged.astype(dtype, copy=False), together.astype(kept, copy=False)


def _exponentials(
    function: str, name: str, x: np.ndarray, top: np.ndarray, axis: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What was taken off, exp of the rest (in the memory of x), and its sum, 1 for one of 0."""
    if (top == np.inf).any():
        raise ValueError(
            f"{function}: {name} must stay below +inf (-inf is allowed); got +inf. Kernels that "
            "write +inf for a query that sees nothing mean -inf"
        )
    shift = np.where(top == -np.inf, 0, top)
    x = exp_of(x, shift)
    total = x.sum(axis=axis, keepdims=True)
    return shift, x, np.where(top == -np.inf, 1, total)


def _logarithm(total: np.ndarray, top: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Logarithm of the sum, -inf where there was nothing."""
    return np.where(top == -np.inf, -np.inf, np.log(total) + shift)


# ---- ranks of context parallelism ---------------------------------------------------------------


def zigzag(length: int, ranks: int) -> np.ndarray:
    """Positions that each rank holds: of 2 R blocks, rank r has block r and block 2 R - 1 - r.

    Parameters
    ----------
    length : int
        Tokens of the text, a multiple of 2 R.
    ranks : int
        Number R of machines or processes.

    Returns
    -------
    (R, length / R) int64 array: row r has the positions of rank r, which are also those that its
    encoding must get.

    Raises
    ------
    ValueError
        If 2 R does not divide the length.

    Notes
    -----
    Source: code only: `extract_local` in `test/test_zigzag_ring_flash_attn_func.py` of
    zhuzilin/ring-flash-attention at 8996282, and `_HeadTailLoadBalancer` of PyTorch at 90af6c6,
    `torch/distributed/tensor/experimental/_context_parallel/_load_balancer.py`. With a causal mask
    each rank has as many pairs of query and key as every other. Contiguous shards,
    ``np.arange(length).reshape(ranks, -1)``, leave the last rank almost 2 R - 1 times as many as
    the first.

    Examples
    --------
    >>> zigzag(8, 2).tolist()
    [[0, 1, 6, 7], [2, 3, 4, 5]]
    """
    length = checks.integer("zigzag", "length", length)
    ranks = checks.integer("zigzag", "ranks", ranks)
    if length % (2 * ranks):
        more = -length % (2 * ranks)
        raise ValueError(
            f"zigzag: length must be a multiple of 2 ranks = {2 * ranks}; got {length}. Pad the "
            f"text by {more}"
        )
    blocks = np.arange(length).reshape(2 * ranks, -1)
    return np.concatenate([blocks[:ranks], blocks[::-1][:ranks]], axis=-1)


# ---- checks -------------------------------------------------------------------------------------


def _whole(function: str, name: str, x: ArrayLike) -> np.ndarray:
    """Whole numbers on at least one axis; an empty list has some, too."""
    x = checks.whole_array(function, name, x)
    if x.ndim == 0 or (x.size and x.dtype.kind not in "ui"):
        raise ValueError(
            f"{function}: {name} must be an axis of whole numbers; got shape {x.shape}, "
            f"dtype {x.dtype}"
        )
    return x


def _one_axis(function: str, name: str, x: ArrayLike) -> np.ndarray:
    x = _whole(function, name, x)
    if x.ndim > 1:
        raise ValueError(
            f"{function}: {name} must have one axis; got shape {x.shape}. Call it for each row"
        )
    return x.astype(np.int64)


def _parents(function: str, parents: ArrayLike) -> np.ndarray:
    """A tree whose parents come before their children."""
    parents = _one_axis(function, "parents", parents)
    wrong = np.flatnonzero((parents < -1) | (parents >= np.arange(len(parents))))
    if wrong.size:
        raise ValueError(
            f"{function}: each parent must be -1, for the text, or a node before its child; got "
            f"{parents[wrong[0]]} for node {wrong[0]}. Number the nodes by depth"
        )
    return parents
