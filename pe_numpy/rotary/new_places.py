r"""New places for old tokens: RoPE with a distance that stays within the trained range.

Source: Su 2023, ReRoPE and leaky ReRoPE (bojone/rerope, commit acfe788); Jin et al. 2024,
"Self-Extend" (arXiv:2401.01325; datamllab/LongLM, commit cdbbb06); An et al. 2024, dual chunk
attention (arXiv:2402.17463; HKUNLP/ChunkLlama, commit 2add4d7); Xiao et al. 2023, StreamingLLM
(arXiv:2309.17453; mit-han-lab/streaming-llm, commit 2e50426). RoPE's score sees delta = i - j;
each of them puts another number in its place::

    ReRoPE       min(delta, w)
    leaky        delta if delta < w, else w + (delta - w) / s
    Self-Extend  delta if delta < w, else floor(i/g) - floor(j/g) + w - w/g
    dual chunks  a - j mod c, with c = size - local and, by the chunk of the key,
                 a = i mod c (the query's own), min(i mod c + c, size) (the one before),
                 min(2c - 1, size) (any earlier)
    streaming    delta, but min(i, z + w - 1) - j for the first z keys

Axes: L queries, S keys, K width of one head.
Symbols: i and j are positions of query and key; w is the window of exact distances, s the stretch
of what lies beyond it, g the size of a group of positions, c the length of a chunk, z the number
of sinks.
Convention: the past is positive, as everywhere. For a key after its query the distance is the
mirrored one, f(i, j) = -f(j, i), except for streaming, which keeps delta; the sources have causal
masks and do not discuss it.
Differs from the sources: nothing else known. The paper on Self-Extend rounds w/g down; its code
does not, except in one path for decoding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.relative.distance import ROWS, each_distance, relative_distance
from pe_numpy.rotary.rope import rope_frequencies


def rotary_distance_scores(
    q: ArrayLike,
    k: ArrayLike,
    distance: ArrayLike,
    frequencies: ArrayLike | None = None,
    layout: str = "interleaved",
) -> np.ndarray:
    """Scores of RoPE at any distance: Re sum_c q_c conj(k_c) e^(i distance theta_c) / sqrt(K).

    Parameters
    ----------
    q : (..., L, K) array
        Queries, not rotated.
    k : (..., S, K) array
        Keys, not rotated.
    distance : array with the last axes (L, S) that broadcasts to the scores
        What stands for i - j: any real number for each pair.
    frequencies : (n,) array, optional
        theta_c in radians per position; `rope_frequencies(K)` by default. With fewer than K/2 of
        them the components from 2n on do not turn.
    layout : "interleaved" or "half"
        Which components form a pair: 2c and 2c+1, or c and c + n.

    Returns
    -------
    (..., L, S) array in the dtype of q and k (float16 is computed in float32).

    Raises
    ------
    ValueError
        If q and k have different widths, K is odd (without frequencies), there are more than K/2
        frequencies, the distance does not fit or is not finite, or the layout is unknown.

    Notes
    -----
    Source: Su et al. 2021 (arXiv:2104.09864), equation (16), whose distance is a free argument
    here. It takes 3K products a pair of tokens, and no array larger than the scores. Where the
    distance is a difference of two places, two calls of `rope` and a product do the same for K.

    Examples
    --------
    >>> q, k = [[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]
    >>> rotary_distance_scores(q, k, [[0, 0.5 * np.pi]]).round(4).tolist()
    [[0.7071, 0.7071]]
    """
    name = "rotary_distance_scores"
    q, k, batch = checks.queries_and_keys(name, q, k)
    K, target = q.shape[-1], (*batch, q.shape[-2], k.shape[-2])
    distance = checks.position_array(name, "distance", distance)
    if distance.ndim < 2 or distance.shape[-2:] != target[-2:]:
        raise ValueError(
            f"{name}: distance must end with the axes (L, S) = {target[-2:]}; "
            f"got shape {distance.shape}"
        )
    checks.fits(name, "distance", distance.shape, target, "the scores")
    if frequencies is None:
        checks.even(name, "K, the last axis of q,", K, "components pair up")
        frequencies = rope_frequencies(K)
    frequencies = checks.pair_frequencies(name, frequencies, K)
    layout = checks.choice(name, "layout", layout, ("interleaved", "half"))
    work, dtype = checks.working(q, k)
    n, scale = len(frequencies), 1 / math.sqrt(K)
    q, k = q.astype(work, copy=False), k.astype(work, copy=False)
    k = np.swapaxes(k, -1, -2)  # (..., K, S)
    scores = q[..., 2 * n :] @ k[..., 2 * n :, :]  # what does not turn: (..., L, S)
    for c, theta in enumerate(frequencies.tolist()):
        a, b = (2 * c, 2 * c + 1) if layout == "interleaved" else (c, c + n)
        q_a, q_b = q[..., a : a + 1], q[..., b : b + 1]  # (..., L, 1)
        k_a, k_b = k[..., a : a + 1, :], k[..., b : b + 1, :]  # (..., 1, S)
        cos, sin = (each_distance(_wave(f, theta, work), distance) for f in (np.cos, np.sin))
        scores = scores + (q_a * k_a + q_b * k_b) * cos + (q_a * k_b - q_b * k_a) * sin
    return (scores * scale).astype(dtype, copy=False)


def _wave(f: Callable, theta: float, dtype: Any) -> Callable:
    """The cosine or sine of a distance: computed in float64, cast at the end."""
    return lambda distance: f(distance.astype(np.float64) * theta).astype(dtype)


def rerope_distance(distance: ArrayLike, window: int, stretch: float | None = None) -> np.ndarray:
    """Cap the distance, min(delta, w), or slow it down beyond w, w + (delta - w)/s.

    Parameters
    ----------
    distance : array of any shape
        delta = i - j, from `relative_distance`.
    window : int
        w: distances up to it stay as they are.
    stretch : float, optional
        s, at least 1, of leaky ReRoPE; without it the distance stops at w.

    Returns
    -------
    float64 array of the distance's shape; a window of `relative_distance` stays a window. A
    negative distance gives the negative of its mirror image.

    Raises
    ------
    ValueError
        If a distance is not a finite number, the window is below 1 or the stretch is below 1.

    Notes
    -----
    Source: bojone/rerope, commit acfe788, `rerope_patch.py` and `leaky_rerope_patch.py`; there
    w = 512 and s = 16.

    Examples
    --------
    >>> rerope_distance([0, 3, 4, 5, 9], window=4).tolist()
    [0.0, 3.0, 4.0, 4.0, 4.0]
    >>> rerope_distance([0, 3, 4, 5, 10], window=4, stretch=2).tolist()
    [0.0, 3.0, 4.0, 4.5, 7.0]
    """
    name = "rerope_distance"
    distance = checks.position_array(name, "distance", distance)
    window = checks.integer(name, "window", window)
    if stretch is not None and checks.number(name, "stretch", stretch) < 1:
        raise ValueError(
            f"{name}: stretch must be at least 1, since far distances are divided by it; "
            f"got {stretch:g}"
        )
    pace = 0.0 if stretch is None else 1 / float(stretch)

    def capped(d: np.ndarray) -> np.ndarray:
        size = np.abs(d.astype(np.float64))
        return np.sign(d) * (np.minimum(size, window) + pace * np.maximum(size - window, 0))

    return each_distance(capped, distance)


def self_extend_distance(
    q_positions: ArrayLike, k_positions: ArrayLike, window: int, group: int
) -> np.ndarray:
    """Exact distances in a window, and beyond it those of groups: i//g - j//g + w - w/g.

    Parameters
    ----------
    q_positions : (..., L) array of integers
        Positions i of the queries.
    k_positions : (..., S) array of integers
        Positions j of the keys.
    window : int
        w: distances below it stay as they are.
    group : int
        g: as many neighbouring positions become one.

    Returns
    -------
    (..., L, S) float64 array. Before the query itself, the negative of the mirror image.

    Raises
    ------
    ValueError
        As `relative_distance`; also if the window or the group is below 1.

    Notes
    -----
    Source: datamllab/LongLM, commit cdbbb06, `self_extend_patch/Llama.py`, which divides w by g
    where the paper rounds down; there w = 1024 and g = 8.

    Examples
    --------
    >>> self_extend_distance([9], range(10), window=4, group=2).astype(int).tolist()
    [[6, 6, 5, 5, 4, 4, 3, 2, 1, 0]]
    """
    name = "self_extend_distance"
    i, j, distance = _pairs(name, q_positions, k_positions)
    window = checks.integer(name, "window", window)
    group = checks.integer(name, "group", group)
    shift = window - window / group  # where the groups begin, exact distances have come to w
    far = i // group - j // group + np.sign(distance) * shift
    return np.where(np.abs(distance) < window, distance, far)


def chunk_distance(
    q_positions: ArrayLike, k_positions: ArrayLike, size: int, local: int
) -> np.ndarray:
    """Distances that start again in each chunk of c = size - local keys: a - j mod c.

    Parameters
    ----------
    q_positions : (..., L) array of integers
        Positions i of the queries.
    k_positions : (..., S) array of integers
        Positions j of the keys.
    size : int
        No distance exceeds it.
    local : int
        Distances up to it stay exact, if it is at most c; from 0 to below size.

    Returns
    -------
    (..., L, S) float64 array. The query's place a is i mod c for keys of its own chunk,
    min(i mod c + c, size) for those of the chunk before and min(2c - 1, size) for any earlier.
    Before the query itself, the negative of the mirror image.

    Raises
    ------
    ValueError
        As `relative_distance`; also if the size is below 1, or local not from 0 to below it.

    Notes
    -----
    Source: HKUNLP/ChunkLlama, commit 2add4d7, `chunkllama_attn_replace.py`; there the size is
    three quarters of the trained length.

    Examples
    --------
    >>> chunk_distance([11], range(12), size=6, local=2).astype(int).tolist()
    [[6, 5, 4, 3, 6, 5, 4, 3, 3, 2, 1, 0]]
    """
    name = "chunk_distance"
    i, j, distance = _pairs(name, q_positions, k_positions)
    size = checks.integer(name, "size", size)
    local = checks.integer(name, "local", local, least=0)
    if local >= size:
        raise ValueError(f"{name}: local must be below size; got {local} and {size}")
    c = size - local

    def back(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        before = np.minimum(i % c + c, size)
        chunks = i // c - j // c
        a = np.where(chunks == 0, i % c, np.where(chunks == 1, before, min(2 * c - 1, size)))
        return a - j % c

    return np.where(distance >= 0, back(i, j), -back(j, i)).astype(np.float64)


def streaming_distance(
    q_positions: ArrayLike, k_positions: ArrayLike, window: int, sinks: int
) -> np.ndarray:
    """Distances in slots of a cache of the first keys and the newest: the first come nearer.

    Parameters
    ----------
    q_positions : (..., L) array of integers
        Positions i of the queries.
    k_positions : (..., S) array of integers
        Positions j of the keys.
    window : int
        w: as many of the newest keys are kept, the query's own among them.
    sinks : int
        z: as many of the first keys are kept, too.

    Returns
    -------
    (..., L, S) float64 array: min(i, z + w - 1) - j for the keys j < z, i - j for all others. It
    is for keys that `window_mask` with the same window and sinks lets the query see.

    Raises
    ------
    ValueError
        As `relative_distance`; also if the window is below 1 or sinks below 0.

    Notes
    -----
    Source: Xiao et al. 2023 (arXiv:2309.17453); mit-han-lab/streaming-llm, commit 2e50426, which
    turns each kept key at each step by its slot.

    Examples
    --------
    >>> kept = [0, 1, 5, 6, 7, 8]  # two sinks and four recent keys, then the query: slots 0 to 6
    >>> streaming_distance([9], kept, window=5, sinks=2).astype(int).tolist()
    [[6, 5, 4, 3, 2, 1]]
    """
    name = "streaming_distance"
    i, j, distance = _pairs(name, q_positions, k_positions)
    window = checks.integer(name, "window", window)
    sinks = checks.integer(name, "sinks", sinks, least=0)
    slot = np.minimum(i, sinks + window - 1)  # of the query, once the cache is full the last one
    return np.where(j < sinks, slot - j, distance).astype(np.float64)


def _pairs(
    name: str, q_positions: ArrayLike, k_positions: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions (..., L, 1) of queries and (..., 1, S) of keys, and their distances."""
    q = checks.whole_numbers(name, "q_positions", q_positions, axis=True)
    k = checks.whole_numbers(name, "k_positions", k_positions, axis=True)
    checks.common_batch(name, q_positions=q.shape[:-1], k_positions=k.shape[:-1])
    return q[..., :, None], k[..., None, :], relative_distance(q, k)


def put_products(scores: np.ndarray, where: np.ndarray, q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return where(where, q @ k^T, scores), in the memory of `scores`, which the caller made.

    A block of queries meets no keys but those between its first and its last in `where`.
    """
    k = np.swapaxes(k, -1, -2)  # (..., K, S)
    if not (isinstance(q, np.ndarray) and isinstance(k, np.ndarray)):  # nothing changes on a tape
        return np.where(where, q @ k, scores)
    for start in range(0, q.shape[-2], ROWS):
        rows = slice(start, start + ROWS)
        wanted = where[..., rows, :].reshape(-1, where.shape[-1]).any(axis=0)  # (S,)
        if wanted.any():
            first, last = np.flatnonzero(wanted)[[0, -1]]
            block = (..., rows, slice(first, last + 1))
            products = q[..., rows, :] @ k[..., first : last + 1]
            np.copyto(scores[block], products, where=where[block])
    return scores
