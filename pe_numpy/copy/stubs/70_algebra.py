"""Exercises of chapter 70: exponentials of two small generators.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 70_algebra.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def rank2_rotation(a, b, n):
    """Turn by n steps in the plane of a and b.

    a, b     (K,)
    n        one number, or an array of them
    returns  (..., K, K), one matrix for each n, of the dtype of a and b

    A = a b^T - b a^T, a (K, K) matrix
    s = sqrt((a . a)(b . b) - (a . b)^2)
    for each n:
        I + sin(n s)/s A + (1 - cos(n s))/s^2 A A
    if s is 0, the matrix is I
    """
    raise NotImplementedError


def additive_lift(q, k, slope):
    """Two more components and a generator, for ALiBi as a product.

    q        (..., L, K)
    k        (..., S, K)
    slope    one number, or an array such as (H,)
    returns  queries (..., L, K + 2), keys (..., S, K + 2), A (..., K + 2, K + 2) with the axes of
             the slope in front; all of the dtype of q

    each query gets the components 1, 0 at its end; each key 0, 1
    A is zero, but in its last row and its last column but one: -slope sqrt(K)
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# rank2_rotation, 1: np.outer(a, b) is a b^T.
# rank2_rotation, 2: give n two more axes, n[..., None, None]; the rest broadcasts.
# rank2_rotation, 3: s = 0 divides by zero; np.sinc(x) is sin(pi x)/(pi x), and 1 at 0.

# additive_lift, 1: np.concatenate along the last axis; np.broadcast_to makes the ends.
# additive_lift, 2: A[..., K + 1, K] is the entry.
