"""Exercises of chapter 33: share few numbers among all distances.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 33_t5.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    """The bucket of each distance: exact, then logarithmic.

    distance  any shape   i - j, query minus key: the past is positive
    returns   whole numbers of that shape

    if bidirectional: half = num_buckets / 2, n = |i - j|
    else:             half = num_buckets,     n = i - j, but 0 for the future
    exact = half / 2, rounded down
    if n < exact: bucket = n
    else:         bucket = exact + floor(log(n / exact) / log(max_distance / exact) (half - exact)),
                  at most half - 1; exactly that, even where a logarithm is rounded
    if bidirectional and i - j < 0: bucket = bucket + half
    """
    raise NotImplementedError


def t5_bias(table, distance, max_distance=128, bidirectional=True):
    """One learned number for each head and bucket.

    table     (N, H)      a row for each of N buckets
    distance  (L, S)      i - j
    returns   (H, L, S)   of the table's dtype

    for each head h and pair (i, j):
        bias[h, i, j] = table[t5_bucket(distance[i, j]), h]
    """
    raise NotImplementedError


def tupe_scores(q, k, q_position, k_position, bias=None):
    """Content and position apart, each with projections of its own.

    q, k         (..., H, L, K), (..., H, S, K)   content
    q_position   (H, L, K)   projected positions
    k_position   (H, S, K)
    bias         (H, L, S)   added after the scale, if given
    returns      (..., H, L, S)   of the data's dtype

    for each head and pair (i, j):
        score = (q[i] . k[j] + q_position[i] . k_position[j]) / sqrt(2 K) + bias[i, j]
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# t5_bucket, 1: np.where chooses between the two rules; both are computed for all entries.
# t5_bucket, 2: the floor is the number of t = 1, 2, ... with
#               n^(half - exact) exact^t >= max_distance^t exact^(half - exact).
# t5_bucket, 3: such powers overflow in int64; in n.astype(object) they are Python's whole numbers.

# t5_bias, 1: table[buckets] has the heads last: np.moveaxis.
# t5_bias, 2: N is len(table).

# tupe_scores, 1: no mixed terms: two products.
# tupe_scores, 2: 2 K, because two sums of K products are added.
