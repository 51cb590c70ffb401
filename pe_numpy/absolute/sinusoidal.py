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
Differs from the paper: positions may be any real numbers, and the base may be chosen.
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

    Raises
    ------
    ValueError
        If D is odd or the base is not above 0.

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

    Raises
    ------
    ValueError
        If D is odd, the base is not above 0, the layout is unknown or a position is not a finite
        real number.

    Notes
    -----
    Source: Vaswani et al. 2017, section 3.5, both formulas.

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
    angles = positions[..., None] * theta  # (..., D/2)
    if layout == "concatenated":
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)  # (..., D)
    pairs = np.stack([np.sin(angles), np.cos(angles)], axis=-1)  # (..., D/2, 2)
    return pairs.reshape(*positions.shape, d_model)  # (..., D)


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

    Raises
    ------
    ValueError
        If D is odd, the base is not above 0 or the offset is not one finite number.

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


def sinusoidal_2d(height: int, width: int, d_model: int, base: float = 10000.0) -> np.ndarray:
    """Codes for a grid: the first half of each vector codes the row, the second the column.

    Parameters
    ----------
    height, width : int
        Rows and columns of the grid.
    d_model : int
        Width D of the code, divisible by 4: each half holds its sines, then its cosines.
    base : float
        As in `sinusoidal`; each half runs through all its frequencies, at width D/2.

    Returns
    -------
    (height, width, D) float64 array.

    Raises
    ------
    ValueError
        If D is not divisible by 4, a size is below 1 or the base is not above 0.

    Notes
    -----
    Source: the section-3.5 code of Vaswani et al. 2017, once for each axis; Parmar et al. 2018,
    "Image Transformer" (arXiv:1802.05751), gives half of the components to each coordinate.
    Libraries disagree on which axis comes first: test with a grid that is not square.

    Examples
    --------
    >>> code = sinusoidal_2d(2, 3, 4)
    >>> code[1, 0].round(4).tolist(), code[0, 2].round(4).tolist()
    ([0.8415, 0.5403, 0.0, 1.0], [0.0, 1.0, 0.9093, -0.4161])
    """
    height = checks.integer("sinusoidal_2d", "height", height)
    width = checks.integer("sinusoidal_2d", "width", width)
    d_model = checks.integer("sinusoidal_2d", "d_model", d_model)
    if d_model % 4:
        raise ValueError(
            "sinusoidal_2d: d_model must be divisible by 4, a sine and a cosine for each of two "
            f"axes; got {d_model}"
        )
    base = checks.positive("sinusoidal_2d", "base", base)
    half = (height, width, d_model // 2)
    rows = sinusoidal(np.arange(height), d_model // 2, base, "concatenated")  # (height, D/2)
    columns = sinusoidal(np.arange(width), d_model // 2, base, "concatenated")  # (width, D/2)
    return np.concatenate(
        [np.broadcast_to(rows[:, None], half), np.broadcast_to(columns, half)], axis=-1
    )  # (height, width, D)
