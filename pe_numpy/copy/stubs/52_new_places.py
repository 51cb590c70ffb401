"""Exercises of chapter 52: give old tokens new places.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 52_new_places.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def rotary_distance_scores(q, k, distance, frequencies=None, layout="interleaved"):
    """RoPE's scores, with a distance of your own for each pair.

    q            (..., L, K)
    k            (..., S, K)
    distance     (..., L, S)   real numbers; leading axes broadcast to those of the scores
    frequencies  (n,)          10000^(-2c/K), c = 0 .. K/2 - 1, if left out
    layout       "interleaved" or "half"
    returns      (..., L, S), of q's dtype

    for each query i and key j:
        score = 0
        for each pair c of components, (2c, 2c + 1) or (c, c + n):
            q_c, k_c = the pair of q_i and that of k_j, as complex numbers
            score += the real part of q_c conj(k_c) e^(i distance[i, j] frequencies[c])
        for each component from 2n on:
            score += q_i[component] k_j[component]
        score / sqrt(K)
    """
    raise NotImplementedError


def rerope_distance(distance, window, stretch=None):
    """ReRoPE's distance, or leaky ReRoPE's.

    distance  any shape
    window    int, w
    stretch   float, s; or None
    returns   float64, of the distance's shape

    for each distance delta >= 0:
        delta                  if delta < w
        w                      if delta >= w and there is no stretch
        w + (delta - w) / s    if delta >= w
    for delta < 0: minus what -delta gives
    """
    raise NotImplementedError


def self_extend_distance(q_positions, k_positions, window, group):
    """Self-Extend's distance.

    q_positions  (..., L)      whole numbers i
    k_positions  (..., S)      whole numbers j
    window       int, w
    group        int, g
    returns      (..., L, S)   float64

    for each i >= j:
        i - j                                      if i - j < w
        floor(i / g) - floor(j / g) + w - w / g    else
    for i < j: minus what (j, i) gives
    """
    raise NotImplementedError


def chunk_distance(q_positions, k_positions, size, local):
    """The distance of dual chunk attention.

    q_positions  (..., L)      whole numbers i
    k_positions  (..., S)      whole numbers j
    size, local  int
    returns      (..., L, S)   float64

    c = size - local
    for each i >= j:
        n = floor(i / c) - floor(j / c)
        a = i mod c                      if n = 0
            min(i mod c + c, size)       if n = 1
            min(2 c - 1, size)           else
        a - j mod c
    for i < j: minus what (j, i) gives
    """
    raise NotImplementedError


def streaming_distance(q_positions, k_positions, window, sinks):
    """The distance in slots of a cache that keeps the first keys and the newest.

    q_positions  (..., L)      whole numbers i
    k_positions  (..., S)      whole numbers j
    window       int, w: the newest keys, the query's own among them
    sinks        int, z: the first keys
    returns      (..., L, S)   float64

    for each i, j:
        min(i, z + w - 1) - j    if j < z
        i - j                    else
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# rotary_distance_scores, 1: one pair c at a time: q[..., [x]] is (..., L, 1); the same of k, its
#     last two axes exchanged, is (..., 1, S).
# rotary_distance_scores, 2: q_c conj(k_c) = (ac + bd) + i (bc - ad) for q_c = a + ib, k_c = c + id.
# rotary_distance_scores, 3: angles in float64, their cosines cast to q's dtype.

# rerope_distance, 1: without a stretch: np.sign(delta) * np.minimum(np.abs(delta), w).
# rerope_distance, 2: np.maximum(np.abs(delta) - w, 0) is what lies beyond the window.

# self_extend_distance, 1: i[..., :, None] and j[..., None, :] broadcast to (..., L, S).
# self_extend_distance, 2: for i < j the shift w - w / g has a minus: multiply by np.sign(i - j).

# chunk_distance, 1: write it for i >= j as a function of (i, j), and call it with (j, i), too.
# chunk_distance, 2: np.where within np.where chooses among the three places.

# streaming_distance, 1: the last slot of a full cache is z + w - 1; before that, slots are times.
# streaming_distance, 2: np.where(j < z, ...) chooses only by the key.
