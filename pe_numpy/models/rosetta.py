r"""Rosetta: from the conventions of one code to those of another.

Source: code only; each function names its own. Chapter 65 has one page of all conversions: those
here, those of other modules (`rope_convert_weights`, `split_fused`, `relative_shift`,
`timing_signal`, and ``p2c_distance`` of `deberta_scores`), and those that are NumPy's own: ``W.T``,
``np.swapaxes(x, 0, 1)``, ``1 + w``.

Axes: B batch, H heads, G heads of keys, L queries, S keys, K width of one head, N rows of a table.
Symbols: i, j are the positions of query and key; distance = i - j, positive is the past.
Convention: a conversion goes both ways, by its argument ``to`` or because it undoes itself
(`flip_table`) or another function (`join_fused`). What is only moved keeps its dtype, integers too.
Differs from the codes: nothing; wrong inputs raise where the codes give other numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.rotary.rope import rope_permutation

MASKS = ("attend", "blocked", "additive")
BLOCKS = -1e4  # what an additive mask adds, at most, to a score that it blocks


def convert_layout(x: ArrayLike, to: str = "half", d: int | None = None) -> np.ndarray:
    """Reorder the last axis from neighbouring pairs (2c, 2c + 1) to pairs (c, c + d/2), or back.

    Parameters
    ----------
    x : (..., K) array
        Queries, keys, a gain of theirs, or sinusoids: all that has one number a component.
    to : "half" or "interleaved"
        The layout wanted; x has the other one. In sinusoids "half" is all sines, then all cosines.
    d : int, optional
        Components that pair up, even, from the first on; K by default (less in partial RoPE).

    Returns
    -------
    Array of the shape and dtype of x.

    Notes
    -----
    Source: the layouts of RoFormer and GPT-NeoX; see `rope_permutation`. For weights, whose heads
    stand side by side, there is `rope_convert_weights`.

    Examples
    --------
    >>> convert_layout([0, 1, 2, 3, 4, 5]).tolist()
    [0, 2, 4, 1, 3, 5]
    >>> convert_layout([0, 2, 4, 1, 3, 5], to="interleaved").tolist()
    [0, 1, 2, 3, 4, 5]
    """
    name = "convert_layout"
    x = checks.whole_array(name, "x", x)
    to = checks.choice(name, "to", to, ("half", "interleaved"))
    if x.ndim == 0:
        raise ValueError(f"{name}: x must have the axes (..., K); got one number")
    K = x.shape[-1]
    d = checks.even(name, "d (K by default)", K if d is None else d, "components pair up")
    if d > K:
        raise ValueError(f"{name}: d must be at most K, the last axis of x; got {d} and {K}")
    order = np.arange(K)
    order[:d] = rope_permutation(d) if to == "half" else np.argsort(rope_permutation(d))
    return x[..., order]


def relative_gather(
    products: ArrayLike, distance: ArrayLike, largest: int | None = None
) -> np.ndarray:
    """Look up the product of each pair by its distance: entry [i, j] is column largest - distance.

    Parameters
    ----------
    products : (..., L, N) array
        Products of each query with the codes of N distances, the largest first, as `relative_shift`
        takes them: column c belongs to the distance largest - c.
    distance : (..., L, S) integer array
        Query minus key position, of any positions: packed, padded, cached.
    largest : int, optional
        Distance of column 0; N - 1 by default, so that column N - 1 is the query itself.

    Returns
    -------
    (..., L, S) array of the dtype of the products (float64 for integers).

    Raises
    ------
    ValueError
        If a distance has no column.

    Notes
    -----
    Source: `torch.gather` in microsoft/DeBERTa (c794b71), with any order of distances. For
    consecutive positions `relative_shift` needs no index: given the distances from S - 1 down to
    1 - L, the first S columns of its result are the same, the future included.

    Examples
    --------
    >>> products = [[12, 11, 10], [22, 21, 20], [32, 31, 30]]
    >>> relative_gather(products, [[0, 0], [1, 0], [2, 1]]).astype(int).tolist()
    [[10, 10], [21, 20], [32, 31]]
    """
    name = "relative_gather"
    products = checks.real_array(name, "products", products, "LN")
    distance = checks.whole_numbers(name, "distance", distance)
    *_, L, N = products.shape
    if distance.ndim < 2 or distance.shape[-2] != L:
        raise ValueError(
            f"{name}: distance must have the axes (..., L, S) with L = {L}; "
            f"got shape {distance.shape}"
        )
    batch = checks.common_batch(name, products=products.shape[:-2], distance=distance.shape[:-2])
    largest = checks.integer(name, "largest", N - 1 if largest is None else largest, least=0)
    column = largest - distance
    if column.size and not 0 <= column.min() <= column.max() < N:
        raise ValueError(
            f"{name}: distance must be from {largest - N + 1} to {largest}, since products have "
            f"{N} columns; got {distance.min()} to {distance.max()}. Clip what a mask will hide"
        )
    products = np.broadcast_to(products, (*batch, L, N))
    column = np.broadcast_to(column, (*batch, *column.shape[-2:]))
    return np.take_along_axis(products, column, axis=-1)  # (..., L, S)


def flip_table(table: ArrayLike, kind: str = "shaw") -> np.ndarray:
    """Reorder the rows of a table read by i - j so that code that counts j - i reads the same.

    Parameters
    ----------
    table : (..., N, K) array
        One row a distance or bucket, such as T5's (N, H).
    kind : "shaw", "deberta" or "t5"
        What reads it: row clip(D, -m, m) + m of 2m + 1; row clip(D + m, 0, 2m - 1) of 2m; or
        `t5_bucket` in both directions, a half of the N rows for each.

    Returns
    -------
    Array of the shape and dtype of the table. Flipped twice, a table is as it was.

    Notes
    -----
    Source: Shaw et al. 2018, NEZHA and Wav2Vec2-BERT count j - i, BERT and DeBERTa i - j (golden
    files). The row 0 of "deberta" is read at D <= -m alone and has no mirror image: the flipped
    table gives the same for abs(D) < m. In T5 row 0 serves the distance 0 and row N/2 none: both
    stay.

    Examples
    --------
    >>> flip_table([[-2], [-1], [0], [1], [2]])[:, 0].tolist()
    [2, 1, 0, -1, -2]
    >>> flip_table([[-2], [-1], [0], [1]], "deberta")[:, 0].tolist()
    [-2, 1, 0, -1]
    >>> flip_table([[0], [1], [2], [9], [-1], [-2]], "t5")[:, 0].tolist()
    [0, -1, -2, 9, 1, 2]
    """
    name = "flip_table"
    table = checks.whole_array(name, "table", table)
    kind = checks.choice(name, "kind", kind, ("shaw", "deberta", "t5"))
    if table.ndim < 2:
        raise ValueError(f"{name}: table must have the axes (..., N, K); got shape {table.shape}")
    N = table.shape[-2]
    if N % 2 != (kind == "shaw"):
        raise ValueError(
            f"{name}: table must have an {'odd' if kind == 'shaw' else 'even'} number of rows for "
            f"the kind {kind!r}; got {N}"
        )
    rows = np.arange(N)
    if kind == "shaw":
        rows = rows[::-1]
    elif kind == "deberta":
        rows = -rows % N  # 0, N - 1, ..., 1
    else:
        half = N // 2
        rows = np.where(rows % half == 0, rows, (rows + half) % N)
    return table[..., rows, :]


def alibi_key_bias(slopes: ArrayLike, k_positions: ArrayLike) -> np.ndarray:
    """ALiBi without queries: slope j, which a causal softmax can't tell from -slope (i - j).

    Parameters
    ----------
    slopes : (H,) array
        From `alibi_slopes`.
    k_positions : (S,) integer array, or (B, S)
        Positions j of the keys; they may be counted from any start.

    Returns
    -------
    (H, 1, S) array, or (B, H, 1, S), of the dtype of the slopes; add it to scaled scores, under a
    causal mask. The scores of query i are higher by slope i than with `alibi_bias`; the weights
    are the same.

    Notes
    -----
    Source: BLOOM in transformers 5.23.0, j from 0; MPT counts so that the last key has 0. Without a
    causal mask it is no ALiBi: it prefers the end of the text.

    Examples
    --------
    >>> alibi_key_bias([0.5, 0.25], [0, 1, 2]).tolist()
    [[[0.0, 0.5, 1.0]], [[0.0, 0.25, 0.5]]]
    """
    name = "alibi_key_bias"
    slopes = checks.real_array(name, "slopes", slopes, "H")
    if slopes.ndim != 1:
        raise ValueError(f"{name}: slopes must have the axis (H); got shape {slopes.shape}")
    positions = checks.whole_numbers(name, "k_positions", k_positions, axis=True)
    if positions.ndim > 2:
        raise ValueError(
            f"{name}: k_positions must have the axes (S) or (B, S); got shape {positions.shape}"
        )
    return slopes[:, None, None] * positions[..., None, None, :].astype(slopes.dtype)


def convert_mask(mask: ArrayLike, source: str, to: str = "attend") -> np.ndarray:
    """Say the same as a mask in other words: may attend, blocked, or a number to add.

    Parameters
    ----------
    mask : array of any shape
        Boolean, or for "additive" floating point: 0 where a key may be seen, and -inf, or -10,000
        and less, where not.
    source, to : "attend", "blocked" or "additive"
        What the mask means, and what it must mean: True = may attend, True = may not, or a number
        that is added to the score.

    Returns
    -------
    Array of the shape of the mask: boolean, or with to="additive" 0 and -inf, of the mask's dtype
    if that is floating point, else float64.

    Raises
    ------
    ValueError
        If an additive mask holds other numbers: then it is a bias.

    Notes
    -----
    Source: "attend" is `scaled_dot_product_attention` of torch 2.13, "blocked" its
    `nn.MultiheadAttention`, "additive" either, given floats. A finite number blocks no row as a
    whole: its weights are those of no mask, or all equal where rounding drowns the scores.

    Examples
    --------
    >>> convert_mask([True, False], "blocked").tolist()
    [False, True]
    >>> convert_mask([True, False], "attend", to="additive").tolist()
    [0.0, -inf]
    >>> convert_mask([0.0, -1e9], "additive", to="blocked").tolist()
    [False, True]
    """
    name = "convert_mask"
    source = checks.choice(name, "source", source, MASKS)
    to = checks.choice(name, "to", to, MASKS)
    mask = checks.whole_array(name, "mask", mask)
    if mask.dtype.kind != ("f" if source == "additive" else "b"):
        raise ValueError(
            f"{name}: a mask must be boolean, or floating point for 'additive'; "
            f"got {source!r} of dtype {mask.dtype}. From 1 and 0 make one with mask == 1"
        )
    free = mask if source == "attend" else mask == 0  # False = not blocked, or nothing to add
    if source == "additive" and not (free | (mask <= BLOCKS)).all():
        raise ValueError(
            f"{name}: an additive mask must hold 0, and -inf or numbers up to {BLOCKS:g}; "
            f"got {mask[~(free | (mask <= BLOCKS))][0]}: that is a bias, which no mask can say"
        )
    if to == "additive":
        dtype = mask.dtype if source == "additive" else np.float64
        return np.where(free, 0.0, -np.inf).astype(dtype)
    return free.copy() if to == "attend" else ~free


def join_fused(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    order: str,
    n_heads: int,
    n_kv_heads: int | None = None,
) -> np.ndarray:
    """Put queries, keys and values side by side as one projection makes them; undo `split_fused`.

    Parameters
    ----------
    q : (..., H K) array
        Queries, their bias, or their matrix (D, H K), head by head.
    k, v : (..., G K) arrays
        Keys and values, likewise.
    order : "q|k|v", "3HK" or "H3K"
        How they must be ordered, as in `split_fused`.
    n_heads : int
        Number of heads H of the queries.
    n_kv_heads : int, optional
        Number of heads G of keys, and of values; H by default, and for the two last orders.

    Returns
    -------
    (..., (H + 2 G) K) array.

    Raises
    ------
    ValueError
        If the order knows no G other than H.

    Notes
    -----
    Source: code only; `split_fused` says which model has which order.

    Examples
    --------
    >>> join_fused([0, 1], [2, 3], [4, 5], "H3K", n_heads=2).astype(int).tolist()
    [0, 2, 4, 1, 3, 5]
    """
    name = "join_fused"
    parts = [checks.real_array(name, n, x, "D") for n, x in (("q", q), ("k", k), ("v", v))]
    order = checks.choice(name, "order", order, ("q|k|v", "3HK", "H3K"))
    H = checks.integer(name, "n_heads", n_heads)
    G = H if n_kv_heads is None else checks.integer(name, "n_kv_heads", n_kv_heads)
    checks.fused_heads(name, order, H, G)
    K = parts[0].shape[-1] // H
    if [x.shape for x in parts] != [(*parts[0].shape[:-1], n * K) for n in (H, G, G)]:
        raise ValueError(
            f"{name}: q must have H = {H} heads, k and v G = {G}, all of one width, and the same "
            f"other axes; got the shapes {', '.join(str(x.shape) for x in parts)}"
        )
    if order == "H3K":
        by_head = [x.reshape(*x.shape[:-1], H, 1, K) for x in parts]
        return np.concatenate(by_head, axis=-2).reshape(*parts[0].shape[:-1], 3 * H * K)
    return np.concatenate(parts, axis=-1)
