"""Exercises of chapter 11: see why position matters.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 11_why_position.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def pooled_attention(x):
    """Mean of the outputs of attention in which every token is its own query, key and value.

    x        (..., L, D)   token vectors
    returns  (..., D)      of x's dtype

    for i in 0 .. L-1:
        for j in 0 .. L-1:
            score[j] = x[i] . x[j] / sqrt(D)
        weight[j] = exp(score[j]) / sum over j of exp(score[j])
        output[i] = sum over j of weight[j] * x[j]
    result = (output[0] + ... + output[L-1]) / L
    """
    raise NotImplementedError


def causal_mask(q_positions, k_positions):
    """True where a key is not in the query's future.

    q_positions  (..., L)      positions of the queries: with a cache they don't begin at 0
    k_positions  (..., S)
    returns      (..., L, S)   boolean, True = may attend

    for each query i and each key j:
        mask[i, j] = q_positions[i] >= k_positions[j]
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# pooled_attention, 1: reorder the tokens of your input: the result must stay the same.
# pooled_attention, 2: x @ np.swapaxes(x, -1, -2) has all products.
# pooled_attention, 3: the weights of one query sum to 1: keepdims=True keeps the axis for the division.

# causal_mask, 1: a token sees itself.
# causal_mask, 2: compare positions, not indices; np.tril would align both at 0.
