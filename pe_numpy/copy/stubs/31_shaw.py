"""Exercises of chapter 31: give each distance a vector.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 31_shaw.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def shaw_scores(q, k, key_table, distance):
    """Scores with a vector for each clipped distance in the key.

    q          (..., L, K)   queries
    k          (..., S, K)   keys
    key_table  (2m+1, K)     row clip(i-j, -m, m) + m for the distance i - j
    distance   (L, S)        i - j, query minus key
    returns    (..., L, S)   of q's dtype

    for each pair (i, j):
        row = clip(distance[i, j], -m, m) + m
        score[i, j] = (q[i] . k[j] + q[i] . key_table[row]) / sqrt(K)
    """
    raise NotImplementedError


def shaw_values(weights, v, value_table, distance):
    """The weighted sum with a vector for each clipped distance in the value.

    weights      (..., L, S)   attention weights
    v            (..., S, K)   values
    value_table  (2m+1, K)
    distance     (L, S)        i - j
    returns      (..., L, K)   of the data's dtype

    for each query i:
        output[i] = sum over j of weights[i, j] (v[j] + value_table[clip(distance[i, j], -m, m) + m])
    """
    raise NotImplementedError


def relative_key_query_scores(q, k, table, distance):
    """BERT's scores: query and key meet the same vector of their distance.

    q         (..., L, K)   queries
    k         (..., S, K)   keys
    table     (2N-1, K)     row i-j + N-1 for the distance i - j; nothing is clipped
    distance  (L, S)        i - j, query minus key
    returns   (..., L, S)   of q's dtype

    for each pair (i, j):
        r = table[distance[i, j] + N - 1]
        score[i, j] = (q[i] . k[j] + q[i] . r + k[j] . r) / sqrt(K)
    """
    raise NotImplementedError


def nezha_table(max_relative_position, d_head, base=10000.0):
    """A table for shaw_scores that is not learned: sinusoids of the clipped key minus query.

    max_relative_position   m
    d_head                  K, even
    returns                 (2m+1, K)

    for each distance i - j from -m to m, and each component pair c:
        p = (j - i) + m
        table[i - j + m, 2c]     = sin(p / base^(2c/K))
        table[i - j + m, 2c + 1] = cos(p / base^(2c/K))
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# shaw_scores, 1: key_table[rows] is (L, S, K): slow and large, but right.
# shaw_scores, 2: q[..., :, None, :] * that, summed over K, is the second term.
# shaw_scores, 3: the division is for both terms.

# shaw_values, 1: split the sum: the first part is weights @ v.
# shaw_values, 2: the relative vector comes with its value's weight.

# relative_key_query_scores, 1: table[rows] is (L, S, K), as for shaw_scores.
# relative_key_query_scores, 2: k[..., None, :, :] * that, summed over K, is the third term.
# relative_key_query_scores, 3: how many rows has the table, and what is N - 1 then?

# nezha_table, 1: which p has row 0, which the last row? No p is negative.
# nezha_table, 2: you have written sinusoidal before: chapter 20.
