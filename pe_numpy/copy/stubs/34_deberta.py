"""Exercises of chapter 34: let content and position speak to each other.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 34_deberta.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def deberta_scores(q, k, q_table, k_table, distance, p2c_distance=None):
    """Three terms: content to content, content to position, position to content.

    q, k              (..., H, L, K), (..., H, S, K)
    q_table, k_table  (H, 2m, K)     projected positions; row clip(delta + m, 0, 2m-1)
    distance          (L, S)         i - j
    p2c_distance      (L, S)         delta for q_table; j - i if none is given (the paper)
    returns           (..., H, L, S)   of the data's dtype

    for each head and pair (i, j):
        c2c = q[i] . k[j]
        c2p = q[i] . k_table[clip(distance[i, j] + m, 0, 2m-1)]
        p2c = k[j] . q_table[clip(p2c_distance[i, j] + m, 0, 2m-1)]
        score = (c2c + c2p + p2c) / sqrt(3 K)
    """
    raise NotImplementedError


def deberta_bucket(distance, num_buckets, max_distance):
    """Signed buckets of DeBERTa-v2: exact, then logarithmic.

    distance  any shape   i - j
    returns   whole numbers of that shape

    mid = num_buckets / 2
    n = |i - j|, at most max_distance - 1
    if n <= mid: bucket = i - j
    else: bucket = sign(i - j) (mid + ceil(log(n / mid) / log((max_distance - 1) / mid) (mid - 1))),
          exactly that, even where a logarithm is rounded
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# deberta_scores, 1: table[:, rows] is (H, L, S, K).
# deberta_scores, 2: in p2c the key meets the table: k[..., None, :, :] broadcasts over the queries.

# deberta_bucket, 1: np.sign keeps the direction.
# deberta_bucket, 2: the ceil is the number of t = 0, 1, ... with
#                    n^(mid - 1) mid^t > (max_distance - 1)^t mid^(mid - 1).
# deberta_bucket, 3: such powers overflow in int64; in n.astype(object) they are Python's numbers.
