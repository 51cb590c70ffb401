r"""Sinusoids on a grid: the positions of an image's patches have a row and a column.

Source: the formula of Vaswani et al. 2017 (arXiv:1706.03762), section 3.5, once for each axis;
which axis comes first, and how each half is laid out, is said only by code::

    sinusoidal_2d   [sin y | cos y | sin x | cos x]     y, x from 0
    detr_sine       [y half | x half], in each sin, cos, sin, cos, ...     y, x counted, from 1

Axes: h rows, w columns, D model width.
Symbols: y is the row of a cell, x its column; each half has the frequencies T^(-2i/(D/2)),
i = 0 .. D/4 - 1, for the temperature (base) T.
Convention: the row comes first, in the grid's axes and in the code. A mask is True where a cell is
real and False where it is padding.
Differs from the sources: `detr_sine` takes the mask of real cells, where facebookresearch/detr
(commit 29901c5) takes that of padding.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.absolute.sinusoidal import sinusoidal

EPSILON = 1e-6  # of DETR: keeps a column without a real cell from dividing 0 by 0


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
    d_model = checks.multiple_of_4("sinusoidal_2d", "d_model", d_model)
    base = checks.positive("sinusoidal_2d", "base", base)
    half = (height, width, d_model // 2)
    rows = sinusoidal(np.arange(height), d_model // 2, base, "concatenated")  # (height, D/2)
    columns = sinusoidal(np.arange(width), d_model // 2, base, "concatenated")  # (width, D/2)
    return np.concatenate(
        [np.broadcast_to(rows[:, None], half), np.broadcast_to(columns, half)], axis=-1
    )  # (height, width, D)


def detr_sine(
    mask: ArrayLike, d_model: int, temperature: float = 10000.0, normalize: bool = True
) -> np.ndarray:
    """Count the real cells down and across, and code both counts: DETR's sine embedding.

    Parameters
    ----------
    mask : (..., h, w) boolean array
        True where a cell is real, False where it is padding.
    d_model : int
        Width D of the code, divisible by 4: the first half codes the row, the second the column,
        each with its sines and cosines in turn.
    temperature : float
        T; the base in `sinusoidal`.
    normalize : bool
        Whether the counts are divided by the last of their column or row, and multiplied by 2 pi.

    Returns
    -------
    (..., h, w, D) float64 array. DETR adds it to queries and keys in every layer, not to values.

    Raises
    ------
    ValueError
        If an image of the mask has no real cell.

    Notes
    -----
    Source: facebookresearch/detr, `PositionEmbeddingSine` (commit 29901c5), for the model of Carion
    et al. 2020 (arXiv:2005.12872). The first real cell counts 1, not 0. Where a whole column is
    padding, its count is 0, and the divisor is DETR's epsilon of 1e-6.

    Examples
    --------
    >>> detr_sine([[True, True, False]], 4, normalize=False).round(2)[0, :, 2:].tolist()
    [[0.84, 0.54], [0.91, -0.42], [0.91, -0.42]]
    """
    name = "detr_sine"
    mask = checks.whole_array(name, "mask", mask)
    if mask.dtype != np.bool_:
        raise ValueError(
            f"{name}: mask must be boolean, True = a real cell; got dtype {mask.dtype}"
        )
    if mask.ndim < 2 or not mask.any(axis=(-2, -1)).all():
        raise ValueError(
            f"{name}: mask must have the axes (..., h, w) and in each grid a real cell; "
            f"got shape {mask.shape} with {np.count_nonzero(mask)} real cells"
        )
    d_model = checks.multiple_of_4(name, "d_model", d_model)
    temperature = checks.positive(name, "temperature", temperature)
    normalize = checks.flag(name, "normalize", normalize)
    y, x = mask.cumsum(axis=-2, dtype=float), mask.cumsum(axis=-1, dtype=float)  # (..., h, w)
    if normalize:
        y = y / (y[..., -1:, :] + EPSILON) * (2 * math.pi)
        x = x / (x[..., -1:] + EPSILON) * (2 * math.pi)
    halves = [sinusoidal(at, d_model // 2, temperature) for at in (y, x)]  # (..., h, w, D/2) each
    return np.concatenate(halves, axis=-1)  # (..., h, w, D)
