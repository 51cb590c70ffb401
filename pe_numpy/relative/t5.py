r"""Relative position bias of T5: one learned number for each head and bucket of distances.

Source: Raffel et al. 2020, "Exploring the limits of transfer learning with a unified text-to-text
Transformer" (arXiv:1910.10683), section 2.1; the rule of the buckets is that of its code
(`_relative_position_bucket` in tensorflow/mesh, commit da90793)::

    score(i, j) = q_i . k_j + b_bucket(j - i)

Axes: B batch, H heads, L queries, S keys, N buckets.
Symbols: h is the number of buckets for one direction (N/2, or N if causal); the first h/2 hold one
distance each, the others grow geometrically up to max_distance.
Convention: distance = i - j; T5's code is fed j - i. In both, the past (and the query itself) reads
the lower half of the buckets, the future the upper half; if causal, the past has all buckets, and
the future reads the query's own.
Differs from the paper: T5 does not divide q . k by sqrt(K), its initialisation does; here the bias
is added to scaled scores, as `attention` does. Its code takes logarithms in float32, which may
move the edge of a bucket; here the edges are those of exact arithmetic. For the sizes of T5 and of
the models of chapter 33 both are the same, if logarithms are rounded to nearest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.relative.distance import each_distance, edges_reached


def t5_bucket(
    distance: ArrayLike,
    num_buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
) -> np.ndarray:
    """Bucket of each distance: exact near by, logarithmic further off, shared beyond.

    Parameters
    ----------
    distance : integer array of any shape
        Query minus key position.
    num_buckets : int
        N; even and at least 4 if bidirectional, else at least 2.
    max_distance : int
        Where one bucket more would open; the last one opens a factor earlier, at 91 for 128.
    bidirectional : bool
        True: the past and the query itself take the buckets 0 .. N/2 - 1, the future N/2 .. N - 1.
        False: the past takes all, the future shares bucket 0 with the query itself.

    Returns
    -------
    Integer array of the shape of `distance`; read-only if that is a window.

    Raises
    ------
    ValueError
        If max_distance lies within the exact half of the buckets.

    Notes
    -----
    Source: Raffel et al. 2020, section 2.1, and the code named above.
    For n = abs(distance) >= e = h // 2: e + floor(log(n/e) / log(max_distance/e) (h - e)), at most
    h - 1; in other words, bucket e + t opens at e (max_distance/e)^(t/(h - e)).

    Examples
    --------
    >>> t5_bucket([0, 1, 7, 8, 11, 12, 90, 91, 5000]).tolist()
    [0, 1, 7, 8, 8, 9, 14, 15, 15]
    >>> t5_bucket([-1, -7, -8]).tolist()
    [17, 23, 24]
    >>> t5_bucket([3, 18, 19, -1], bidirectional=False).tolist()
    [3, 16, 17, 0]
    >>> t5_bucket([7, 8, 15, 16], 9, 128, bidirectional=False).tolist()  # opens at 4, 8, 16, 32, 64
    [4, 5, 5, 6]
    """
    name = "t5_bucket"
    distance = checks.whole_numbers(name, "distance", distance)
    bidirectional = checks.flag(name, "bidirectional", bidirectional)
    half = _half(name, "num_buckets", num_buckets, max_distance, bidirectional)
    exact = half // 2

    def bucket(d: np.ndarray) -> np.ndarray:
        n = np.abs(d) if bidirectional else np.maximum(d, 0)
        far = exact - 1 + edges_reached(n, exact, int(max_distance), half - exact)
        return np.where(n < exact, n, far) + (half * (d < 0) if bidirectional else 0)

    return each_distance(bucket, distance)


def _half(
    function: str, name: str, num_buckets: int, max_distance: int, bidirectional: bool
) -> int:
    """Check, and return the number of buckets for one direction."""
    num_buckets = checks.integer(function, name, num_buckets, least=4 if bidirectional else 2)
    max_distance = checks.integer(function, "max_distance", max_distance)
    if bidirectional:
        checks.even(function, name, num_buckets, "each direction has half of them")
    half = num_buckets // 2 if bidirectional else num_buckets
    if max_distance <= half // 2:
        raise ValueError(
            f"{function}: max_distance must be above the {half // 2} distances with a bucket of "
            f"their own; got {max_distance}"
        )
    return half


def t5_bias(
    table: ArrayLike, distance: ArrayLike, max_distance: int = 128, bidirectional: bool = True
) -> np.ndarray:
    """Bias of each head and pair: b[bucket(i - j), head].

    Parameters
    ----------
    table : (N, H) array
        A learned number for each bucket and head; shared by all layers in T5.
    distance : (L, S) integer array, or (B, L, S)
        Query minus key position, from `relative_distance`.
    max_distance, bidirectional : int, bool
        As in `t5_bucket`; the encoder of T5 is bidirectional, its decoder is not.

    Returns
    -------
    (H, L, S) array, or (B, H, L, S), of the table's dtype; add it to scaled scores. For consecutive
    positions a read-only window on L + S - 1 numbers per head.

    Notes
    -----
    Source: Raffel et al. 2020, section 2.1. T5 has no bias in its cross-attention.

    Examples
    --------
    >>> from pe_numpy import relative_distance
    >>> table = [[0.1], [0.2], [0.3], [0.4]]  # itself, the past, unused, the future
    >>> t5_bias(table, relative_distance([0, 1], [0, 1]), max_distance=2).tolist()
    [[[0.1, 0.4], [0.2, 0.1]]]
    """
    name = "t5_bias"
    table = checks.real_array(name, "table", table, "NH")
    if table.ndim != 2:
        raise ValueError(f"{name}: table must have the axes (N, H); got shape {table.shape}")
    distance = checks.bias_distance(name, distance)
    bidirectional = checks.flag(name, "bidirectional", bidirectional)
    _half(name, "the number of rows of table", len(table), max_distance, bidirectional)
    by_head = np.swapaxes(table, 0, 1)  # (H, N)

    def bias(d: np.ndarray) -> np.ndarray:
        return np.take(by_head, t5_bucket(d, len(table), max_distance, bidirectional), axis=1)

    return np.moveaxis(each_distance(bias, distance), 0, -3)
