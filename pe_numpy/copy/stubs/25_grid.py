"""Exercises of chapter 25: place pixels.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 25_grid.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def timing_signal(positions, d_model, min_timescale=1.0, max_timescale=10000.0):
    """All sines, then all cosines, at frequencies from lo to lo^2/hi.

    positions      any shape   numbers
    d_model        int         D, at least 2
    min_timescale  float       lo
    max_timescale  float       hi
    returns        (*positions.shape, D)   float64

    n = D/2, rounded down
    for each position p and i in 0 .. n - 1:
        theta = lo (lo/hi)^(i / (n - 1))        (if n is 1: theta = lo)
        code[i] = sin(p theta),   code[n + i] = cos(p theta)
    if D is odd, the last component is 0
    """
    raise NotImplementedError


def sinusoidal_2d(height, width, d_model, base=10000.0):
    """Codes of a grid: the first half of each vector codes the row, the second the column.

    height, width  int      cells
    d_model        int      d, divisible by 4
    returns        (height, width, d)   float64

    for each row r, column c, and i in 0 .. d/4 - 1:
        w = base^(-2 i / (d/2))
        code[i]       = sin(r w),   code[d/4 + i]   = cos(r w)
        code[d/2 + i] = sin(c w),   code[3d/4 + i]  = cos(c w)
    """
    raise NotImplementedError


def detr_sine(mask, d_model, temperature=10000.0, normalize=True):
    """Count the real cells down and across, and code both counts.

    mask         (h, w)   bool, True = a real cell
    d_model      int      D, divisible by 4
    returns      (h, w, D)   float64

    for each row r and column c:
        y = number of real cells in column c, from row 0 to row r
        x = number of real cells in row r, from column 0 to column c
        if normalize:
            y = 2 pi y / (number of real cells in column c + 1e-6)
            x = 2 pi x / (number of real cells in row r + 1e-6)
        for i in 0 .. D/4 - 1:
            w = temperature^(-2 i / (D/2))
            code[2i]       = sin(y w),   code[2i + 1]       = cos(y w)
            code[D/2 + 2i] = sin(x w),   code[D/2 + 2i + 1] = cos(x w)
    """
    raise NotImplementedError


def resize_matrix(old, new, mode="linear", align_corners=False, antialias=False):
    """The matrix that resizes a table of `old` rows to `new` rows.

    old, new  int     rows
    mode      "linear": k(x) = 1 - x for x < 1, else 0
              "cubic":  k(x) = (a+2) x^3 - (a+3) x^2 + 1       for x < 1,
                               a x^3 - 5a x^2 + 8a x - 4a      for 1 <= x < 2, else 0
    returns   (new, old)   float64

    for each new row r:
        place = (r + 1/2) old/new - 1/2
        with align_corners: place = r (old - 1)/(new - 1)       (if new is 1: place = 0)
        without antialias, a = -3/4:
            for every whole number j from -2 to old + 1:
                W[r, the row of 0 .. old-1 nearest to j] += k(|place - j|)
        with antialias, a = -1/2:
            wide = the larger of old/new and 1
            for j in 0 .. old - 1:
                W[r, j] = k(|place - j| / wide)
            divide row r of W by its sum
    align_corners and antialias are never both True
    """
    raise NotImplementedError


def fourier_features(x, B):
    """Cosines, then sines, of m waves at each point.

    x        (..., d)   coordinates
    B        (m, d)     waves
    returns  (..., 2m)  float64

    for each point and wave c in 0 .. m - 1:
        angle = 2 pi (B[c, 0] x[0] + ... + B[c, d-1] x[d-1])
        code[c] = cos angle,   code[m + c] = sin angle
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# timing_signal, 1: position 0 has n zeros, then n ones.
# timing_signal, 2: max(n - 1, 1) spares you the case n = 1.
# timing_signal, 3: np.zeros((*shape, D % 2)) is a column of zeros, or none.

# sinusoidal_2d, 1: each half is a code of its own, of width d/2, with all sines first.
# sinusoidal_2d, 2: np.broadcast_to repeats the rows' codes along the columns.

# detr_sine, 1: np.cumsum of a mask counts its True cells.
# detr_sine, 2: the last count of a column is its number of real cells.

# resize_matrix, 1: place[:, None] - np.arange(-2, old + 2) has all distances.
# resize_matrix, 2: compute weights for four rows too many, then add the outer two of each end.
# resize_matrix, 3: np.where(x < 1, ..., np.where(x < 2, ..., 0)).

# fourier_features, 1: x @ B.T has all products: (..., m).
# fourier_features, 2: turn both to float64 before the product.
