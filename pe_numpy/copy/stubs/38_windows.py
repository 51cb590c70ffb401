"""Exercises of chapter 38: look up offsets in windows.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 38_windows.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def offset_index(height, width):
    """The row of Swin's table that each pair of pixels reads.

    height, width  int          h, w
    returns        (hw, hw)     integers

    pixels are counted row by row: number i is (y, x) with i = y w + x
    for each query (y, x) and key (y', x'):
        dy, dx = y - y', x - x'
        index = (dy + h - 1)(2w - 1) + dx + w - 1
    """
    raise NotImplementedError


def offset_bias(table, height, width):
    """The bias of each head and pair of pixels.

    table          ((2h - 1)(2w - 1), H)
    height, width  int
    returns        (H, hw, hw), of the table's dtype

    for each head n, query i and key j:
        bias[n, i, j] = table[index[i, j], n]
    """
    raise NotImplementedError


def decomposed_scores(q, k, row_table, column_table, row_distance, column_distance):
    """Scores with one vector for the offset of rows and one for that of columns.

    q                (..., L, K)
    k                (..., S, K)
    row_table        (2n - 1, K)    row d + n - 1 belongs to the distance d
    column_table     (2m - 1, K)
    row_distance     (h_q, h_k) with column_distance (w_q, w_k), where h_q w_q = L, h_k w_k = S;
                     or both (L, S)
    returns          (..., L, S), of q's dtype

    for each query i = (y, x) and key j = (y', x'):
        R = the row of row_table for row_distance[y, y']       (or row_distance[i, j])
        C = the row of column_table for column_distance[x, x'] (or column_distance[i, j])
        score = q_i . k_j / sqrt(K) + q_i . R + q_i . C
    """
    raise NotImplementedError


def log_cpb_coordinates(height, width, pretrained=None):
    """Swin-2's coordinates of all offsets of a window.

    height, width  int
    pretrained     int, or a pair (rows, columns); the window itself if left out
    returns        ((2h - 1)(2w - 1), 2) float64

    for dy in -(h - 1) .. h - 1:
        for dx in -(w - 1) .. w - 1:
            a row of two numbers, u(dy) with P = rows and u(dx) with P = columns of `pretrained`
            u(d) = sign(d) log2(1 + 8 |d| / (P - 1)) / 3
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# offset_index, 1: np.divmod(np.arange(h * w), w) gives the row and the column of each pixel.
# offset_index, 2: y[:, None] - y is the table of all dy.
# offset_index, 3: 2 by 3 begins 7 6 5 2 1 0. Does yours with 2w - 1 = 5?

# offset_bias, 1: table[index] has the heads last.
# offset_bias, 2: np.moveaxis(..., -1, 0) brings them to the front.

# decomposed_scores, 1: for pairs: q @ row_table.T has a column for each distance;
#     np.take_along_axis picks those that are wanted.
# decomposed_scores, 2: for grids: np.repeat and np.tile make the distances of all pairs.
# decomposed_scores, 3: without that detour: q as (..., h_q, w_q, K) meets (h_q, K, h_k).

# log_cpb_coordinates, 1: first one axis: d = np.arange(1 - n, n).
# log_cpb_coordinates, 2: np.meshgrid(..., indexing="ij"), then stack and reshape.
