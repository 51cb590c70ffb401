"""Exercises of chapter 39: a state that decays.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 39_recurrence.py

Arrays are NumPy arrays, not lists. "Of the data's dtype" means that float32 stays float32. The
batch axes ... of all arrays are the same. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def retention(q, k, v, decay):
    """Linear attention with one decay for each head, all tokens at once.

    q, k     (..., L, K)
    v        (..., L, V)
    decay    number, or (H,) for heads on the last batch axis; above 0, at most 1
    returns  (..., L, V)   of the data's dtype

    for each token i:
        o[i] = sum over j <= i of decay^(i - j) (q[i] . k[j]) v[j]
    """
    raise NotImplementedError


def gated_linear_attention(q, k, v, log_decay, state=None):
    """Linear attention with a decay for each token, token by token.

    q, k       (..., L, K)
    v          (..., L, V)
    log_decay  (..., L, K) or (..., L, 1)   logarithms of the decays a
    state      (..., K, V), or None: zeros
    returns    outputs (..., L, V) and the last state (..., K, V), of the data's dtype

    for each token t:
        state = diag(a[t]) state + k[t] v[t]^T
        outputs[t] = q[t]^T state
    """
    raise NotImplementedError


def delta_rule(q, k, v, beta, log_decay=None, state=None):
    """Linear attention that replaces what a key holds, token by token.

    q, k       (..., L, K)
    v          (..., L, V)
    beta       (..., L)   the share that is replaced
    log_decay  (..., L, K) or (..., L, 1)   logarithms of the decays a, or None: all a are 1
    state      (..., K, V), or None: zeros
    returns    outputs (..., L, V) and the last state (..., K, V), of the data's dtype

    for each token t:
        state = diag(a[t]) state
        old = k[t]^T state
        state = state + k[t] (beta[t] (v[t] - old))^T
        outputs[t] = q[t]^T state
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# retention, 1: make a matrix of the distances i - j, and from it a mask of powers, 0 where j > i.
# retention, 2: decay[..., None, None] ** distance has a matrix for each head.

# gated_linear_attention, 1: k[..., t, :, None] * v[..., t, None, :] is k v^T for all batch axes.
# gated_linear_attention, 2: decay[..., t, :, None] multiplies the rows of the state.

# delta_rule, 1: q[..., t, None, :] @ state has a row, (..., 1, V).
# delta_rule, 2: with beta = 0 the state only decays; with orthonormal keys and beta = 1, o = v.
