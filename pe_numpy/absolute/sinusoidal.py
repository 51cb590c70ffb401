r"""Sinusoidal positional encoding: a fixed code of sines and cosines for every position.

Source: Vaswani et al. 2017, "Attention is all you need" (arXiv:1706.03762), section 3.5::

    PE(pos, 2i)   = sin(pos / 10000^(2i/d_model))
    PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model))

Axes: D model width (d_model).
Symbols: pos is a position, counted from 0; i = 0 .. D/2 - 1 numbers the pairs, not the components;
theta_i = base^(-2i/D) is the angular frequency of pair i, in radians per position.
Convention: "interleaved" is the paper's layout (sine and cosine of a pair are neighbours);
"concatenated" puts all sines before all cosines, a permutation of the same components.
`sinusoidal_shift` is stated for the interleaved layout and for column vectors.
Differs from the paper: positions may be any real numbers, and the base may be chosen;
`timing_signal` is the variant of the authors' library, with other frequencies than the paper's.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def wavelengths(d_model: int, base: float = 10000.0) -> np.ndarray:
    """Positions after which each pair of components repeats: 2 pi base^(2i/D).

    Parameters
    ----------
    d_model : int
        Width D of the code, even.
    base : float
        10000 in the paper.

    Returns
    -------
    (D/2,) float64 array, in positions, ascending for a base above 1.

    Notes
    -----
    Source: Vaswani et al. 2017, section 3.5. The last wavelength is 2 pi base^((D-2)/D): it
    approaches 2 pi base with growing width and never reaches it.

    Examples
    --------
    >>> wavelengths(4).round(4).tolist()
    [6.2832, 628.3185]
    """
    d_model = checks.even("wavelengths", "d_model", d_model)
    base = checks.positive("wavelengths", "base", base)
    return 2 * math.pi * base ** (np.arange(0, d_model, 2) / d_model)  # (D/2,)


def sinusoidal(
    positions: ArrayLike, d_model: int, base: float = 10000.0, layout: str = "interleaved"
) -> np.ndarray:
    """Sines and cosines of each position at D/2 frequencies: PE(pos).

    Parameters
    ----------
    positions : array of any shape
        Positions pos: integers, or real numbers between them.
    d_model : int
        Width D of the code, even.
    base : float
        10000 in the paper.
    layout : "interleaved" or "concatenated"
        sin, cos, sin, cos, ... as in the paper, or all sines first.

    Returns
    -------
    (*positions.shape, D) float64 array. Cast it before you add it to float32 embeddings.

    Notes
    -----
    Source: Vaswani et al. 2017, section 3.5, both formulas. A run of 64 or more consecutive
    positions takes a short cut, which rounds differently: near position p its codes differ from
    those of single positions by up to about 1e-16 p.

    Examples
    --------
    >>> sinusoidal([0, 1, 2], 4).round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 1.0], [0.9093, -0.4161, 0.02, 0.9998]]
    """
    positions = checks.position_array("sinusoidal", "positions", positions)
    d_model = checks.even("sinusoidal", "d_model", d_model)
    base = checks.positive("sinusoidal", "base", base)
    layout = checks.choice("sinusoidal", "layout", layout, ("interleaved", "concatenated"))
    theta = base ** (-np.arange(0, d_model, 2) / d_model)  # (D/2,)
    if is_run(positions):  # the same up to rounding, in less time
        return _codes_of_a_run(positions, theta, layout)
    angles = positions[..., None] * theta  # (..., D/2)
    if layout == "concatenated":
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)  # (..., D)
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)  # (..., D/2, 2)
    return pairs.reshape(*positions.shape, d_model)  # (..., D)


def is_run(positions: np.ndarray) -> bool:
    """Whether these are 64 or more consecutive positions (and no array of a tape)."""
    length = positions.size
    if not isinstance(positions, np.ndarray) or positions.ndim != 1 or length < 64:
        return False
    return bool((positions == positions[0] + np.arange(length)).all())


def turns_of_a_run(positions: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """e^(i pos theta) of consecutive positions pos_0 + r s + t: (L, n), from some 2 sqrt(L) rows.

    cos a + i sin a is one complex number, and a product of two says both addition theorems.
    """
    s = math.isqrt(len(positions) - 1) + 1
    coarse, fine = (np.exp(1j * part[:, None] * theta) for part in (positions[::s], np.arange(s)))
    turns = coarse[:, None] * fine  # (r, s, n)
    return turns.reshape(-1, len(theta))[: len(positions)]


def _codes_of_a_run(positions: np.ndarray, theta: np.ndarray, layout: str) -> np.ndarray:
    """What `sinusoidal` gives for consecutive positions."""
    pairs = turns_of_a_run(positions, -theta)  # cos - i sin
    pairs *= 1j  # sin + i cos, in memory a sine beside its cosine
    if layout == "concatenated":
        return np.concatenate([pairs.real, pairs.imag], axis=-1)
    return pairs.view(np.float64)


def timing_signal(
    positions: ArrayLike,
    d_model: int,
    min_timescale: float = 1.0,
    max_timescale: float = 10000.0,
) -> np.ndarray:
    """All sines, then all cosines, at frequencies lo (lo/hi)^(i/(n - 1)), i = 0 .. n - 1.

    Parameters
    ----------
    positions : array of any shape
        Positions: integers, or real numbers between them.
    d_model : int
        Width D of the code, at least 2, with n = floor(D/2) pairs; an odd D gets one column of
        zeros.
    min_timescale, max_timescale : float
        lo and hi. The first frequency is lo and the last lo^2/hi: with lo = 1, exactly 1/hi.

    Returns
    -------
    (*positions.shape, D) float64 array. Cast it before you add it to float32 embeddings.

    Notes
    -----
    Source: tensorflow/tensor2tensor, `get_timing_signal_1d` (commit bafdc1b); no paper states it.
    lo multiplies there, too, though its name would let it divide. A single pair has the frequency
    lo: n - 1 is taken as 1, since 0 would divide.

    Examples
    --------
    >>> timing_signal(1, 8).round(6).tolist()
    [0.841471, 0.046399, 0.002154, 0.0001, 0.540302, 0.998923, 0.999998, 1.0]
    >>> timing_signal(3, 5).round(6).tolist()
    [0.14112, 0.0003, -0.989992, 1.0, 0.0]
    """
    name = "timing_signal"
    positions = checks.position_array(name, "positions", positions)
    d_model = checks.integer(name, "d_model", d_model, least=2)
    min_timescale = checks.positive(name, "min_timescale", min_timescale)
    max_timescale = checks.positive(name, "max_timescale", max_timescale)
    n, lo, hi = d_model // 2, min_timescale, max_timescale
    theta = lo * (lo / hi) ** (np.arange(n) / max(n - 1, 1))  # (n,)
    angles = positions[..., None] * theta  # (..., n)
    zero = np.zeros((*positions.shape, d_model % 2))  # a column if D is odd, else none
    return np.concatenate([np.sin(angles), np.cos(angles), zero], axis=-1)  # (..., D)


def sinusoidal_shift(offset: float, d_model: int, base: float = 10000.0) -> np.ndarray:
    """Shift every code by `offset` positions: the matrix M with PE(pos + offset) = M @ PE(pos).

    Parameters
    ----------
    offset : float
        Number of positions; may be negative.
    d_model : int
        Width D of the code, even.
    base : float
        The base of the code that is shifted.

    Returns
    -------
    (D, D) float64 array: along its diagonal, for each pair, the clockwise rotation
    [[cos a, sin a], [-sin a, cos a]] by the angle a = offset theta_i; zero elsewhere.

    Notes
    -----
    Source: Vaswani et al. 2017, section 3.5 ("PE_{pos+k} can be represented as a linear function
    of PE_pos"). M does not depend on pos. It stands to the left of an interleaved column vector.

    Examples
    --------
    >>> sinusoidal_shift(3, 4).round(2).tolist()  # doctest: +NORMALIZE_WHITESPACE
    [[-0.99, 0.14, 0.0, 0.0], [-0.14, -0.99, 0.0, 0.0],
     [0.0, 0.0, 1.0, 0.03], [0.0, 0.0, -0.03, 1.0]]
    """
    offset = checks.number("sinusoidal_shift", "offset", offset)
    d_model = checks.even("sinusoidal_shift", "d_model", d_model)
    base = checks.positive("sinusoidal_shift", "base", base)
    sin = np.arange(0, d_model, 2)  # where the sines stand
    cos = sin + 1
    angles = offset * base ** (-sin / d_model)  # (D/2,)
    shift = np.zeros((d_model, d_model))
    shift[sin, sin] = shift[cos, cos] = np.cos(angles)
    shift[sin, cos] = np.sin(angles)  # sin(p + a) = sin(p) cos(a) + cos(p) sin(a)
    shift[cos, sin] = -np.sin(angles)  # cos(p + a) = cos(p) cos(a) - sin(p) sin(a)
    return shift
