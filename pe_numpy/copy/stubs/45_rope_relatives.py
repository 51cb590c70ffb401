"""Exercises of chapter 45: fade, turn values, take polar coordinates.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 45_rope_relatives.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def xpos_scale(d, gamma=0.4):
    """What a distance of one scale_base leaves of each pair.

    d        int, even
    gamma    float
    returns  (d/2,) float64

    for c in 0 .. d/2 - 1:
        zeta[c] = (2c/d + gamma) / (1 + gamma)
    """
    raise NotImplementedError


def xpos(
    x, positions, frequencies=None, scale_base=512.0, key=False, centre=0.0, layout="interleaved"
):
    """Turn each pair, and scale it by its zeta.

    x            (..., L, K)
    positions    broadcasts to (..., L)
    frequencies  (n,); by default 10000^(-2c/K) for c in 0 .. K/2 - 1
    returns      (..., L, K), of x's dtype

    for each vector at position p and each pair c, with zeta = xpos_scale(2n):
        the pair is (2c, 2c + 1) if the layout is "interleaved", (c, c + n) if it is "half"
        turn it counter-clockwise by p * frequencies[c]
        multiply it by zeta[c]^((p - centre) / scale_base); with a minus in the exponent for a key
    components beyond 2n stay as they are
    """
    raise NotImplementedError


def rotary_values(weights, v, q_positions, k_positions, frequencies=None, layout="interleaved"):
    """Weighted sum of values that are turned by their distance.

    weights       (..., L, S)
    v             (..., S, K)
    q_positions   broadcasts to (..., L)
    k_positions   broadcasts to (..., S)
    returns       (..., L, K)   of the data's dtype

    for each query at position i:
        output = the sum over all keys, at positions j, of
            weights[i, j] * (v_j, turned by j - i as in xpos, not scaled)
    """
    raise NotImplementedError


def pope_frequencies(d, base=10000.0):
    """Radians per position of each component.

    returns  (d,) float64

    for c in 0 .. d - 1:
        base^(-c/d)
    """
    raise NotImplementedError


def pope(x, positions, frequencies=None, bias=0.0):
    """Each component as a radius, position as the angle.

    x            (..., L, K)
    positions    broadcasts to (..., L)
    frequencies  (K,); pope_frequencies(K) by default
    bias         broadcasts to x
    returns      (..., L, 2K), of x's dtype

    for each vector at position p and each component c:
        radius = ln(1 + e^x[c])
        angle = p * frequencies[c] + the bias, clamped to -2 pi .. 0
        returned[2c], returned[2c + 1] = radius cos(angle), radius sin(angle)
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# xpos_scale, 1: np.arange(0, d, 2) are the 2c.

# xpos, 1: rope of pe_numpy turns; what is left is one factor a component.
# xpos, 2: np.repeat(zeta, 2) are the factors of interleaved pairs, np.tile(zeta, 2) of halves.
# xpos, 3: zeta[None] ** exponent[:, None] has a row for each position. Don't forget the ones
#     behind 2n components, nor x's dtype.

# rotary_values, 1: a turn by j - i is a turn by j and then one by -i.
# rotary_values, 2: the second turn is the same for all keys, so it may wait until after the sum.

# pope_frequencies, 1: np.arange(d), not np.arange(0, d, 2).

# pope, 1: np.logaddexp(0, x) is softplus; it takes large x.
# pope, 2: np.stack([..., ...], axis=-1) puts both parts side by side; then reshape.
