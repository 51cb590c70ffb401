"""Exercises of chapter 43: turn in two and three dimensions.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 43_rope_grid.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def rope_nd(x, coordinates, frequencies, layout="interleaved"):
    """Queries or keys, turned by their coordinates.

    x            (..., L, K)
    coordinates  (..., L, A)
    frequencies  (A, n)         n <= K/2
    layout       "interleaved" or "half"
    returns      (..., L, K), of x's dtype

    for each vector and each pair c = 0 .. n - 1:
        angle = sum over the axes a of coordinates[a] * frequencies[a, c]
        first, second = 2c, 2c + 1          (half: c, c + n)
        (x_first, x_second) turns by the angle, counter-clockwise
    the last K - 2n components stay
    """
    raise NotImplementedError


def axial_frequencies(d, axes=2, base=100.0, spacing="split"):
    """One axis for each pair.

    d        int, divisible by 2 A
    axes     int        A
    spacing  "split" or "alternate"
    returns  (A, d/2)

    for each axis a = 0 .. A - 1 and c = 0 .. d/(2A) - 1:
        in row a, column a d/(2A) + c:
            split      base^(-2 A c / d)
            alternate  base^(-2 (A c + a) / d)
    0 elsewhere
    """
    raise NotImplementedError


def mixed_frequencies(rng, d, base=10.0):
    """Two directions at right angles, drawn for one head.

    rng      numpy.random.Generator
    d        int, divisible by 4
    returns  (2, d/2)

    phi = rng.uniform(0, 2 pi), one number
    for c = 0 .. d/4 - 1:
        column c        base^(-4c/d) (cos phi, sin phi)
        column c + d/4  base^(-4c/d) (cos(phi + pi/2), sin(phi + pi/2))
    """
    raise NotImplementedError


def patch_coordinates(height, width, kind="index", trained=None):
    """Where each patch stands.

    height, width  int
    kind           "index" or "centred"
    trained        int or (rows, columns), only with "index"
    returns        (height * width, 2)     row by row

    for each row y and column x:
        index           y, x
        index, trained  y * rows / height, x * columns / width
        centred         2 (y + 1/2) / height - 1, 2 (x + 1/2) / width - 1
    """
    raise NotImplementedError


def mrope_frequencies(sections, base=10000.0, interleaved=False):
    """One ladder, shared by time, row and column.

    sections  three int     pairs of time, row, column
    returns   (3, n)        n = their sum

    for each pair c = 0 .. n - 1:
        its axis a: the first sections[0] pairs are 0, then sections[1] times 1, then 2
            interleaved: 1 if c mod 3 = 1 and c < 3 sections[1]
                         2 if c mod 3 = 2 and c < 3 sections[2]
                         else 0
        in row a, column c: base^(-c/n)
    0 elsewhere
    """
    raise NotImplementedError


def mrope_positions(grids):
    """Time, row and column of each token.

    grids    list of int (tokens of text) and (t, h, w) (frames, rows, columns)
    returns  (L, 3) integers, and an int

    start = 0
    for each part:
        text of n tokens:  start + (i, i, i) for i = 0 .. n - 1;  start grows by n
        grid:              start + (frame, row, column), columns changing fastest;
                           start grows by the largest of t, h, w
    the int is start - L
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# rope_nd, 1: coordinates @ frequencies gives the angles of all pairs, (..., L, n).
# rope_nd, 2: copy x, then write the two components of the pairs: x[..., 0 : 2 * n : 2], ...
# rope_nd, 3: to keep float32, cast cosines and sines to x.dtype before the product.

# axial_frequencies, 1: np.zeros, then one slice a row.
# axial_frequencies, 2: for "alternate", ladder[a::axes] of one ladder with d/2 rungs.

# mixed_frequencies, 1: draw exactly one number, or the check's generator runs out of step.
# mixed_frequencies, 2: np.repeat([phi, phi + np.pi / 2], d // 4) and np.tile of the lengths.

# patch_coordinates, 1: np.meshgrid(..., indexing="ij"), then stack and reshape.

# mrope_frequencies, 1: make the list of axes first; then omega[axis, np.arange(n)] = ladder.
# mrope_frequencies, 2: axis[1 : 3 * sections[1] : 3] = 1.

# mrope_positions, 1: np.indices((t, h, w)).reshape(3, -1).T counts a grid.
# mrope_positions, 2: np.ndim(part) tells a number from a grid.
