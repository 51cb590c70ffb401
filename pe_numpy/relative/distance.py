r"""Distances, and the one mechanism of all relative schemes.

Score each distinct distance once, then spread the scores over the pairs (i, j). A scheme that looks
at the distance i - j alone has at most L + S - 1 different things to say, and L S pairs to say them
about. The slow form gathers a vector for each pair, an array of shape (L, S, K); here no such array
exists.

Source: the relative shift of Dai et al. 2019, "Transformer-XL" (arXiv:1901.02860), appendix B,
freed of its padding and of its causal mask.

Axes: L queries, S keys, K width of one head, N rows of a table.
Symbols: distance = i - j, query minus key position; positive is the past.
Convention: for consecutive positions every diagonal of the distances is constant. Such an array is
a window: a read-only view, with negated strides on its last two axes, on a line of L + S - 1
numbers (entry [i, j] is line[i - j + S - 1]). Only the strides prove it, without reading a number.
Other positions (packed, padded, cached) take a gather by index.
Differs from the paper: works for any L and S, both directions and any positions.
"""

from __future__ import annotations

import functools
import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.dispatch import differentiable

ROWS = 64  # queries taken at a time: they meet S + ROWS - 1 distances, not S + L - 1
RowOf = Callable[[np.ndarray], np.ndarray]  # from distances to the rows of a table


def relative_distance(q_positions: ArrayLike, k_positions: ArrayLike) -> np.ndarray:
    """Distance of every query from every key: i - j.

    Parameters
    ----------
    q_positions : (..., L) array of integers
        Positions i of the queries.
    k_positions : (..., S) array of integers
        Positions j of the keys.

    Returns
    -------
    (..., L, S) integer array. Positive is the past, zero the query itself. For consecutive
    positions it is a read-only window on L + S - 1 numbers.

    Notes
    -----
    Source: the sign is Transformer-XL's (Dai et al. 2019, section 3.3). Shaw et al. 2018 and the
    code of T5 count j - i.

    Examples
    --------
    >>> relative_distance([0, 1, 2], [0, 1, 2]).tolist()
    [[0, -1, -2], [1, 0, -1], [2, 1, 0]]
    >>> relative_distance([2], [0, 1, 2]).tolist()
    [[2, 1, 0]]
    """
    name = "relative_distance"
    q = checks.whole_numbers(name, "q_positions", q_positions, axis=True)
    k = checks.whole_numbers(name, "k_positions", k_positions, axis=True)
    checks.common_batch(name, q_positions=q.shape[:-1], k_positions=k.shape[:-1])
    if q.ndim == k.ndim == 1 and q.size and k.size and _consecutive(q) and _consecutive(k):
        least = int(q[0]) - int(k[-1])
        return window_of(
            np.arange(least, least + len(q) + len(k) - 1, dtype=q.dtype), len(q), len(k)
        )
    return q[..., :, None] - k[..., None, :]  # (..., L, S)


def _consecutive(positions: np.ndarray) -> bool:
    return bool((positions[1:] - positions[:-1] == 1).all())


@differentiable
def window_of(line: np.ndarray, L: int, S: int) -> np.ndarray:
    """View a line (..., L + S - 1) as (..., L, S): entry [i, j] is line[i - j + S - 1]."""
    *batch, step = line.strides
    shape, strides = (*line.shape[:-1], L, S), (*batch, step, -step)
    return as_strided(line[..., S - 1 :], shape, strides, writeable=False)


def is_window(distance: np.ndarray) -> bool:
    """Whether the strides prove that every diagonal is constant."""
    return distance.ndim == 2 and distance.size > 0 and distance.strides[0] == -distance.strides[1]


def line_of(window: np.ndarray) -> np.ndarray:
    """The L + S - 1 numbers that a window shows."""
    return np.concatenate([window[0, ::-1], window[1:, 0]])


def each_distance(function: RowOf, distance: np.ndarray) -> np.ndarray:
    """Apply an elementwise function once to each distance: a window stays a window.

    The function may put axes of its own in front: a bias of (H, N) becomes one of (H, L, S).
    """
    if is_window(distance):
        return window_of(function(line_of(distance)), *distance.shape)
    return function(distance)


def edges_reached(
    n: np.ndarray,
    start: int,
    end: int,
    steps: int,
    reaches: Callable[[int, int], bool] = operator.ge,
) -> np.ndarray:
    """Count the edges start (end/start)^(t/steps), t = 0 .. steps - 1, that each n reaches.

    `reaches` is `operator.ge`, or `operator.gt` if n must lie beyond an edge.
    """
    farthest = 2 ** int(n.max(initial=0)).bit_length() - 1  # few different ones in one text
    edges = first_beyond(start, end, steps, reaches, farthest)
    return np.searchsorted(edges, n, side="right").astype(np.int64)


@functools.lru_cache(maxsize=64)
def first_beyond(
    start: int, end: int, steps: int, reaches: Callable[[int, int], bool], farthest: int
) -> tuple[int, ...]:
    """The first whole number, up to `farthest`, that reaches each edge of `edges_reached`.

    The edges are floats; where one may be a whole number, rounding would decide, so powers of whole
    numbers do: n^steps start^t >= end^t start^steps.
    """

    def reached(m: int, t: int) -> bool:
        return reaches(m**steps * start**t, end**t * start**steps)

    least: list[int] = []
    for t in range(steps):
        power = t / steps * (math.log(end) - math.log(start))
        edge = start * math.exp(min(power, 50))  # e^50 is beyond all distances
        low, high = math.ceil(edge * (1 - 1e-12)), math.floor(edge * (1 + 1e-12))
        near = range(low, min(high, farthest) + 1)  # mostly empty: no whole number is that near
        first = low + bisect_left(near, True, key=partial(reached, t=t))
        if first > farthest:
            break
        least.append(first)
    return tuple(least)


def add_to(total: np.ndarray, term: np.ndarray) -> np.ndarray:
    """Return total + term, in the memory of `total`, which the caller made, where that can be."""
    if _are_arrays(total, term):
        total += term
        return total
    return total + term


def opposite(distance: np.ndarray) -> np.ndarray:
    """Swap the roles of queries and keys: (..., L, S) of i - j to (..., S, L) of j - i."""
    if is_window(distance):
        return window_of(-line_of(distance)[::-1], *distance.shape[::-1])
    return -np.swapaxes(distance, -1, -2)


@differentiable
def spread_products(
    q: np.ndarray, table: np.ndarray, distance: np.ndarray, row_of: RowOf
) -> np.ndarray:
    """Dot every query with the vector of its distance from every key: q_i . r_(i-j).

    q is (..., L, K), the table (N, K) or (H, N, K); the result is (..., L, S).
    """
    if not is_window(distance):
        products = q @ np.swapaxes(table, -1, -2)  # (..., L, N)
        return products[_rows_and(row_of(distance), products.shape[:-1])]
    batch = np.broadcast_shapes(q.shape[:-2], table.shape[:-2])
    out = np.empty((*batch, *distance.shape), q.dtype)
    for rows, scores in _blocks_of_products(q, table, distance, row_of):
        out[..., rows, :] = scores
    return out


def _blocks_of_products(
    q: np.ndarray, table: np.ndarray, distance: np.ndarray, row_of: RowOf
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield some rows after the others, and what `spread_products` has in these, (..., n, S).

    In a window, a block of n query rows meets n + S - 1 distances. Row i of their product holds its
    S scores one place further left than row i - 1; in the flattened product the scores of all rows
    start at equal steps: flatten, slice, reshape, cut.
    """
    L, S = distance.shape
    vectors = table[..., row_of(line_of(distance)[::-1]), :]  # (..., L + S - 1, K), the past first
    vectors = np.swapaxes(vectors, -1, -2)
    for start in range(0, L, ROWS):
        n = min(ROWS, L - start)
        first = L - start - n
        products = q[..., start : start + n, :] @ vectors[..., first : first + n + S - 1]
        yield slice(start, start + n), skewed(products, S)


def add_query_products(
    total: np.ndarray, q: np.ndarray, table: np.ndarray, distance: np.ndarray, row_of: RowOf
) -> np.ndarray:
    """Return total + q_i . r_(i-j), like `add_to`; in a window, without a second large array."""
    if not (is_window(distance) and _are_arrays(total, q, table)):
        return add_to(total, spread_products(q, table, distance, row_of))
    for rows, scores in _blocks_of_products(q, table, distance, row_of):
        total[..., rows, :] += scores
    return total


def add_key_products(
    total: np.ndarray, k: np.ndarray, table: np.ndarray, distance: np.ndarray, row_of: RowOf
) -> np.ndarray:
    """Return total + k_j . r_(i-j): the same for keys, which are the columns of `total`."""
    of_keys, row = opposite(distance), lambda d: row_of(-d)
    if not (is_window(distance) and _are_arrays(total, k, table)):
        return add_to(total, np.swapaxes(spread_products(k, table, of_keys, row), -1, -2))
    for columns, scores in _blocks_of_products(k, table, of_keys, row):
        total[..., columns] += np.swapaxes(scores, -1, -2).copy()  # NumPy is slow to add across
    return total


def _are_arrays(*arrays: np.ndarray) -> bool:
    """Whether none is an array that records what is done to it."""
    return all(isinstance(x, np.ndarray) for x in arrays)


@differentiable
def spread_sums(
    weights: np.ndarray, table: np.ndarray, distance: np.ndarray, row_of: RowOf
) -> np.ndarray:
    """Mix the vectors of all distances: sum_j w_ij r_(i-j), the transpose of `spread_products`.

    weights are (..., L, S), the table (N, K) or (H, N, K); the result is (..., L, K). The weights
    that share a distance are summed before they meet its vector.
    """
    *batch, L, S = weights.shape
    if not is_window(distance):
        return sum_by_row(weights, row_of(distance), table.shape[-2]) @ table
    vectors = table[..., row_of(line_of(distance)[::-1]), :]  # (..., L + S - 1, K)
    shape = (*np.broadcast_shapes(tuple(batch), table.shape[:-2]), L, table.shape[-1])
    out = np.empty(shape, np.result_type(weights, table))
    for start in range(0, L, ROWS):
        n = min(ROWS, L - start)
        first = L - start - n
        sums = np.zeros((*batch, n, n + S - 1), weights.dtype)
        skewed(sums, S)[...] = weights[..., start : start + n, :]
        out[..., start : start + n, :] = sums @ vectors[..., first : first + n + S - 1, :]
    return out


def skewed(products: np.ndarray, S: int) -> np.ndarray:
    """View row i of n rows from its entry n - 1 - i on, S entries long."""
    *batch, n, width = products.shape
    if n == 1:
        return products
    flat = products.reshape(*batch, n * width)[..., n - 1 : n - 1 + n * (width - 1)]
    return flat.reshape(*batch, n, width - 1)[..., :S]


def sum_by_row(weights: np.ndarray, rows: np.ndarray, N: int) -> np.ndarray:
    """Sum the weights (..., L, S) of each query by the row that they read: (..., L, N)."""
    *batch, L, _ = weights.shape
    cells = math.prod(batch) * L
    place = np.broadcast_to(rows, weights.shape) + N * np.arange(cells).reshape(*batch, L, 1)
    sums = np.bincount(place.ravel(), weights.ravel(), minlength=N * cells)
    return sums.reshape(*batch, L, N).astype(weights.dtype)


def _rows_and(columns: np.ndarray, rows: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """An index that picks, in each of the `rows`, the given columns (..., L, S)."""
    return (*(axis[..., None] for axis in np.ogrid[tuple(slice(n) for n in rows)]), columns)


def check_distance(
    function: str, distance: ArrayLike, scores: tuple[int, ...], name: str = "distance"
) -> np.ndarray:
    """Whole distances whose last axes are (L, S) of the `scores` and whose others broadcast."""
    d = checks.whole_numbers(function, name, distance)
    if d.ndim < 2 or d.shape[-2:] != scores[-2:]:
        raise ValueError(
            f"{function}: {name} must end with the axes (L, S) = {scores[-2:]}; got shape {d.shape}"
        )
    checks.fits(function, name, d.shape, scores, "the scores")
    return d
