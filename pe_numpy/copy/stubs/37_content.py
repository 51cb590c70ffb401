"""Exercises of chapter 37: let the text decide.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 37_content.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def forgetting_bias(q_sums, k_sums):
    """What the gates between key and query leave, as a bias.

    q_sums   (..., L)     sums of ln f up to and with each query
    k_sums   (..., S)     the same for each key
    returns  (..., L, S)   of the data's dtype

    for each query i and key j:
        bias[i, j] = ln f[j + 1] + ... + ln f[i]      (all gates after j, up to i)
    """
    raise NotImplementedError


def cope_bias(q, gate_scores, table, mask=None):
    """The query's product with the row of its count.

    q            (..., L, K)
    gate_scores  (..., L, S)   scaled
    table        (N, K)
    mask         boolean, broadcasts to (..., L, S), or None; True = may attend
    returns      (..., L, S)   of the data's dtype

    for each query i and key j:
        p = sum over keys t = j .. S - 1 that i may attend to: sigmoid(gate_scores[i, t])
        p = min(p, N - 1)
        low, high = floor(p), ceil(p)
        z[i, j] = (1 - (p - low)) q[i] . table[low] + (p - low) q[i] . table[high]
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# forgetting_bias, 1: how do q_sums[i] and k_sums[j] differ?
# forgetting_bias, 2: q_sums[..., :, None] stands beside k_sums[..., None, :].

# cope_bias, 1: a masked key has the gate 0; np.where before any sum.
# cope_bias, 2: np.cumsum of the reversed row, reversed again, sums from j to the end.
# cope_bias, 3: q @ table.T is (..., L, N); np.take_along_axis picks from it.
