r"""PoPE: polar coordinates, in which content is the radius and position the angle.

Source: Gopalakrishnan et al. 2025, "Decoupling the 'What' and 'Where' With Polar Coordinate
Positional Embeddings" (arXiv:2509.10534), and code of another author, lucidrains/PoPE-pytorch
ee11cab, PoPE_pytorch/pope.py::

    query    softplus(q_c) e^(i pos theta_c)
    key      softplus(k_c) e^(i (pos theta_c + delta_c))
    score    sum_c softplus(q_c) softplus(k_c) cos(n theta_c - delta_c)
    theta_c = base^(-c/d),   c = 0 .. d - 1

Axes: L positions, K width of one head (d in the formula); the result is 2K wide.
Symbols: delta is a learned phase of the keys, clamped to -2 pi .. 0; n = i - j.
Convention: each component becomes an interleaved pair (cos part, sin part), rotated as by `rope`.
Differs from the code: nothing. Scores are divided by the root of the input's K, not of the result's
2K, as in its PoPE_pytorch/attention.py.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.rotary.rope import rope


def pope_frequencies(d: int, base: float = 10000.0) -> np.ndarray:
    """Radians per position of each component: theta_c = base^(-c/d), twice as many as in RoPE.

    Parameters
    ----------
    d : int
        Width of a head; it may be odd.
    base : float
        10000 in the code.

    Returns
    -------
    (d,) float64 array, from 1 downwards for a base above 1.

    Notes
    -----
    Source: Gopalakrishnan et al. 2025; PoPE-pytorch ee11cab.

    Examples
    --------
    >>> pope_frequencies(4).round(4).tolist()
    [1.0, 0.1, 0.01, 0.001]
    """
    d = checks.integer("pope_frequencies", "d", d)
    base = checks.positive("pope_frequencies", "base", base)
    return base ** (-np.arange(d) / d)  # (d,)


def pope(
    x: ArrayLike,
    positions: ArrayLike,
    frequencies: ArrayLike | None = None,
    bias: ArrayLike = 0.0,
) -> np.ndarray:
    """Turn each component's radius by its position: softplus(x_c) e^(i (pos theta_c + delta_c)).

    Parameters
    ----------
    x : (..., L, K) array
        Queries or keys.
    positions : array that broadcasts to x.shape[:-1]
        Position of each vector: (L,), or (B, 1, L) for a batch with padding.
    frequencies : (K,) array, optional
        theta in radians per position; `pope_frequencies(K)` by default.
    bias : number or array that broadcasts to x.shape
        delta, only for keys: (K,), or (H, 1, K) for several heads; clamped to -2 pi .. 0.

    Returns
    -------
    (..., L, 2K) array of the dtype of x (float64 for integers; float16 is computed in float32):
    cosine part and sine part of each component, side by side.

    Notes
    -----
    Source: Gopalakrishnan et al. 2025; PoPE-pytorch ee11cab. Divide scores by sqrt(K), not by
    sqrt(2K).

    Examples
    --------
    >>> pope([[0.0, 1.0]], [0]).round(4).tolist()
    [[0.6931, 0.0, 1.3133, 0.0]]
    """
    name = "pope"
    x = checks.real_array(name, "x", x, "LK")
    positions = checks.position_array(name, "positions", positions)
    checks.fits(name, "positions", positions.shape, x.shape[:-1], "x without its last axis")
    K = x.shape[-1]
    if frequencies is None:
        frequencies = pope_frequencies(K)
    frequencies = checks.position_array(name, "frequencies", frequencies)
    if frequencies.shape != (K,):
        raise ValueError(
            f"{name}: frequencies must be one a component, (K,) = ({K},); "
            f"got shape {frequencies.shape}"
        )
    bias = checks.real_array(name, "bias", bias)
    checks.fits(name, "bias", bias.shape, x.shape, "x")
    if np.isnan(bias).any():
        raise ValueError(f"{name}: bias must hold numbers; got nan among them")
    work, dtype = checks.working(x)
    x = x.astype(work, copy=False)
    radius = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))  # softplus, without overflow
    delta = np.clip(bias, -2 * math.pi, 0).astype(work, copy=False)
    pairs = np.stack([radius * np.cos(delta), radius * np.sin(delta)], axis=-1)  # (..., L, K, 2)
    pairs = pairs.reshape(*x.shape[:-1], 2 * K)
    return rope(pairs, positions, frequencies).astype(dtype, copy=False)
