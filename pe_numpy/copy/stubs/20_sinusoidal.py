"""Exercises of chapter 20: count with clocks.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 20_sinusoidal.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    """Sines and cosines of each position at d/2 frequencies.

    positions  any shape      numbers
    d_model    int            d, even
    layout     "interleaved": sine, cosine, sine, cosine, ...
               "concatenated": all sines, then all cosines
    returns    (*positions.shape, d)   float64

    for each position pos and i in 0 .. d/2 - 1:
        angle = pos / base^(2 i / d)
        code[2i] = sin angle,   code[2i+1] = cos angle      (interleaved)
        code[i]  = sin angle,   code[d/2+i] = cos angle     (concatenated)
    """
    raise NotImplementedError


def sinusoidal_shift(offset, d_model, base=10000.0):
    """The matrix M with PE(pos + offset) = M @ PE(pos), for interleaved codes.

    offset   number
    d_model  int      d, even
    returns  (d, d)   float64

    start with zeros; for i in 0 .. d/2 - 1:
        a = offset / base^(2 i / d)
        M[2i,   2i] =  cos a      M[2i,   2i+1] = sin a
        M[2i+1, 2i] = -sin a      M[2i+1, 2i+1] = cos a
    """
    raise NotImplementedError


def wavelengths(d_model, base=10000.0):
    """Positions after which each pair of components repeats.

    d_model  int      d, even
    returns  (d/2,)   float64

    for i in 0 .. d/2 - 1:
        wavelength[i] = 2 pi base^(2 i / d)
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# sinusoidal, 1: position 0 has the code 0 1 0 1 ...
# sinusoidal, 2: np.asarray(positions)[..., None] * frequencies has all angles: (..., d/2).
# sinusoidal, 3: np.stack on a new last axis, then reshape, interleaves.

# sinusoidal_shift, 1: the addition theorems: sin(p + a) = sin p cos a + cos p sin a.
# sinusoidal_shift, 2: at offset 0 it is the identity.

# wavelengths, 1: the first one is 2 pi, whatever d is.
