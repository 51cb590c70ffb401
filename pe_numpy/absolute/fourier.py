r"""Fourier features: sines and cosines of coordinates that are no whole numbers, in any direction.

Source: Tancik et al. 2020, "Fourier features let networks learn high frequency functions in low
dimensional domains" (arXiv:2006.10739)::

    gamma(x) = [cos 2 pi B x, sin 2 pi B x]

Axes: d coordinates, m waves.
Symbols: B holds the waves, each row the direction and the frequency, in turns, of one.
Convention: cosines first, as in the text; the authors' own notebook (commit 9c110c3) and SAM have
the sines first.
Differs from the paper: its amplitudes are all 1 here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def fourier_features(x: ArrayLike, B: ArrayLike) -> np.ndarray:
    """Cosines, then sines, of the m waves at each point: [cos 2 pi B x, sin 2 pi B x].

    Parameters
    ----------
    x : (..., d) array
        Coordinates of the points; mostly scaled to 0 .. 1 or -1 .. 1.
    B : (m, d) array
        Waves: drawn once from a normal distribution of deviation sigma and then kept, or chosen.

    Returns
    -------
    (..., 2m) float64 array, each vector of squared length m.

    Notes
    -----
    Source: Tancik et al. 2020; gamma(x) . gamma(y) is the sum of cos 2 pi B(x - y).

    Examples
    --------
    >>> (fourier_features([0.125, 0.25], [[1, 0], [0, 2]]).round(6) + 0.0).tolist()
    [0.707107, -1.0, 0.707107, 0.0]
    """
    name = "fourier_features"
    x = checks.position_array(name, "x", x, axis=True)
    B = checks.position_array(name, "B", B)
    if B.ndim != 2 or B.shape[1] != x.shape[-1]:
        raise ValueError(
            f"{name}: B must have the axes (m, d) with d = {x.shape[-1]}, that of x; "
            f"got shape {B.shape}"
        )
    angles = 2 * math.pi * (x.astype(np.float64) @ B.astype(np.float64).T)  # (..., m)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=-1)  # (..., 2m)
