"""Exercises of chapter 44: keep fewer keys.

They need `rope` of chapter 40: copy your own into this file. Write the functions, then ask what is
still wrong:

    python -m pe_numpy check 44_fewer_keys.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def grouped_scores(q, k, q_positions, k_positions):
    """Scores of H query heads that share G key heads.

    q            (..., H, L, K)
    k            (..., G, S, K)    G divides H
    q_positions  (L,)
    k_positions  (S,)
    returns      (..., H, L, S)   of the data's dtype

    turn q and k by their positions, with your `rope`
    for each query head h, query i and key j:
        g = h // (H / G)
        score = q_hi . k_gj / sqrt(K)
    """
    raise NotImplementedError


def mla_scores(
    q_content,
    q_rotary,
    latent,
    k_rotary,
    w_uk,
    q_positions,
    k_positions,
    frequencies=None,
    absorbed=True,
):
    """Scores of latent attention.

    q_content    (..., H, L, d_n)
    q_rotary     (..., H, L, d_r)
    latent       (..., S, r)        one vector c a token, for all heads
    k_rotary     (..., S, d_r)      one key a token, for all heads
    w_uk         (H, d_n, r)        makes a head's key of c
    q_positions  (L,)
    k_positions  (S,)
    frequencies  (n,)               of the turn; those of d_r components if left out
    absorbed     bool               which product is made first; the scores are the same
    returns      (..., H, L, S)   of the data's dtype

    turn q_rotary and k_rotary by their positions
    for each head h, query i and key j:
        key = w_uk[h] c_j
        score = (q_content_hi . key + q_rotary_hi . k_rotary_j) / sqrt(d_n + d_r)
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# grouped_scores, 1: turn the G key heads first; then repeat them.
# grouped_scores, 2: np.repeat(k, H // G, axis=-3) gives 0 0 1 1. What does np.tile give?
# grouped_scores, 3: without a copy: q as (..., G, H/G, L, K) meets k as (..., G, 1, S, K).

# mla_scores, 1: rope(x, positions, frequencies) turns the first components of any (..., L, K).
# mla_scores, 2: latent and k_rotary have no heads: latent[..., None, :, :] has room for them.
# mla_scores, 3: (q W) . c = q . (W c): q_content @ w_uk is (..., H, L, r).
