"""Exercises of chapter 24: let words turn.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 24_complex_order.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def complex_order(amplitude, frequency, phase, positions):
    """Complex word vectors that turn with their position.

    amplitude         (..., L, D)   r
    frequency, phase  broadcast against the amplitude: omega, theta
    positions         (L,), or any shape that broadcasts to amplitude.shape[:-1]
    returns           (..., L, D)   complex; complex64 for a float32 amplitude

    for each word at position pos, and each component:
        z = r exp(i (omega pos + theta))
    """
    raise NotImplementedError


def complex_attention(z_q, z_k, z_v):
    """Attention between complex vectors.

    z_q      (..., L, D)   complex queries
    z_k      (..., S, D)   complex keys
    z_v      (..., S, D)   complex values
    returns  output (..., L, D), and weights (..., L, S), which are real; both of the data's dtype

    for each pair (i, j):
        score[i, j] = real part of sum over d of z_q[i, d] * conjugate(z_k[j, d]), over sqrt(D)
    weights = softmax of the scores over j
    output[i] = sum over j of weights[i, j] z_v[j]
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# complex_order, 1: 1j is Python's i.
# complex_order, 2: positions need a last axis for the components.
# complex_order, 3: astype at the end: np.result_type(amplitude, np.complex64).

# complex_attention, 1: only the keys are conjugated.
# complex_attention, 2: the real part first, then the softmax.
