"""Exercises of chapter 40: derive RoPE.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 40_rope_derived.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def rope_frequencies(d, base=10000.0):
    """Radians that each pair of components turns per position.

    d        int      number of components, even
    base     float
    returns  (d/2,)   float64

    for i in 0 .. d/2 - 1:
        theta[i] = base^(-2 i / d)
    """
    raise NotImplementedError


def rope_matrix(position, frequencies):
    """The rotation R_m as a matrix that stands to the left of a column vector.

    position     number    m
    frequencies  (d/2,)    theta
    returns      (d, d)    float64

    start with zeros; for i in 0 .. d/2 - 1:
        angle = m * theta[i]
        R[2i,   2i] = cos angle      R[2i,   2i+1] = -sin angle
        R[2i+1, 2i] = sin angle      R[2i+1, 2i+1] =  cos angle
    """
    raise NotImplementedError


def rope(x, positions, frequencies=None, layout="interleaved"):
    """Turn each pair of components of x by the angle position * frequency.

    x            (..., L, K)   queries or keys
    positions    (L,), or any shape that broadcasts to x.shape[:-1]
    frequencies  (n,)          theta; the first 2n components turn. If none are given,
                               theta[i] = 10000^(-2 i / K) for i in 0 .. K/2 - 1
    layout       "interleaved": pair i is the components 2i and 2i+1
                 "half":        pair i is the components i and i+n
    returns      (..., L, K)   of x's dtype; x itself stays as it is

    for each vector of x, at position m, and i in 0 .. n-1, with (a, b) the components of pair i:
        angle = m * theta[i]
        y[a] = x[a] cos(angle) - x[b] sin(angle)
        y[b] = x[a] sin(angle) + x[b] cos(angle)
    the other components of y are those of x
    """
    raise NotImplementedError


def rope_permutation(d):
    """Indices that carry interleaved components to the half-split layout.

    d        int    even
    returns  (d,)   integers p, so that x[..., p] has all first components, then all second ones

    for i in 0 .. d/2 - 1:
        p[i] = 2i,   p[d/2 + i] = 2i + 1
    """
    raise NotImplementedError


def rope_convert_weights(weight, n_heads, to="half", d=None):
    """Reorder the rows of W_q or W_k, head by head, so that they serve the other layout.

    weight   (H K, D)   k = W_k x, head after head; or a bias (H K,)
    n_heads  int        H
    to       "half" or "interleaved": the layout wanted; the weight is made for the other one
    d        int        components of each head that turn, the first ones; K by default
    returns  of the weight's shape and dtype

    for each head h, and i in 0 .. d/2 - 1:
        to half:        row h K + i        is the old row h K + 2i
                        row h K + d/2 + i  is the old row h K + 2i + 1
        to interleaved: the way back
    rows h K + d .. h K + K - 1 stay
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# rope_frequencies, 1: the first frequency is 1 for every d.
# rope_frequencies, 2: np.arange(d // 2) numbers the pairs; a power of an array is an array.

# rope_matrix, 1: np.zeros makes the matrix; a loop over the pairs is fine.
# rope_matrix, 2: at position 0 it is the identity, and R @ R.T always is.

# rope, 1: angles are an array (..., L, n): positions[..., None] * frequencies.
# rope, 2: two slices pick the first and the second components of all pairs at once.
# rope, 3: fill a copy of x; compute both new components from x, not from the half-filled copy.
# rope, 4: cosines of float64 angles are float64: cast them to x.dtype before you multiply.

# rope_permutation, 1: for d = 4 it is 0 2 1 3.
# rope_permutation, 2: np.arange has a step.

# rope_convert_weights, 1: rope_permutation(d) orders one head; add h K for head h.
# rope_convert_weights, 2: np.argsort of a permutation undoes it.
