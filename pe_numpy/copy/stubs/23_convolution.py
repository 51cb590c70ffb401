"""Exercises of chapter 23: read the border.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 23_convolution.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def convolve(x, kernel, padding="zero"):
    """Weigh each position and its neighbours.

    x        (..., L)     a signal
    kernel   (2m+1,)      weights
    padding  "zero": zeros lie beyond the border;  "circular": the other end
    returns  (..., L)     of x's dtype

    for i in 0 .. L-1:
        y[i] = sum over j in -m .. m of kernel[j + m] * x[i + j]
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# convolve, 1: np.pad with mode="constant" or "wrap" only on the last axis.
# convolve, 2: 2m + 1 shifted slices, each times its weight, added up.
# convolve, 3: no flip: np.convolve would turn the kernel round.
