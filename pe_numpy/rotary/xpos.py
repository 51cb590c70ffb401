r"""xPos: rotary positions with a decay of its own for each pair of components.

Source: Sun et al. 2022, "A Length-Extrapolatable Transformer" (arXiv:2212.10554), and their code,
microsoft/torchscale 4d1e0e8, torchscale/component/xpos_relative_position.py::

    query pair c at i    turned by i theta_c, times zeta_c^((i - mu)/sigma)
    key pair c at j      turned by j theta_c, times zeta_c^(-(j - mu)/sigma)
    zeta_c = (2c/d + gamma) / (1 + gamma),   c = 0 .. d/2 - 1
    gamma = 0.4; by default sigma = 512, mu = 0

Axes: L positions, K width of one head (d in the formula, if all components turn).
Symbols: theta_c are the frequencies of RoPE; sigma is `scale_base`, mu the `centre`. The score of a
pair at the distance n = i - j has zeta_c^(n/sigma): mu cancels.
Convention: rotations and layouts are as in `rope`. The past has n > 0, where the factor falls. In
the future it grows without bound, so the scores need a causal mask.
Differs from the code: mu is an argument, not half the length at hand, so that keys can be cached.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.rotary.rope import rope, rope_frequencies


def xpos_scale(d: int, gamma: float = 0.4) -> np.ndarray:
    """What a distance of sigma leaves of each pair: zeta_c = (2c/d + gamma) / (1 + gamma).

    Parameters
    ----------
    d : int
        Number of components that turn, even.
    gamma : float
        Above 0; 0.4 in the paper's code.

    Returns
    -------
    (d/2,) float64 array zeta, rising, between 0 and 1.

    Notes
    -----
    Source: Sun et al. 2022; torchscale 4d1e0e8.

    Examples
    --------
    >>> xpos_scale(8).round(6).tolist()
    [0.285714, 0.464286, 0.642857, 0.821429]
    """
    d = checks.even("xpos_scale", "d", d, "components pair up")
    gamma = checks.positive("xpos_scale", "gamma", gamma)
    return (np.arange(0, d, 2) / d + gamma) / (1 + gamma)  # (d/2,)


def xpos(
    x: ArrayLike,
    positions: ArrayLike,
    frequencies: ArrayLike | None = None,
    scale_base: float = 512.0,
    key: bool = False,
    centre: float = 0.0,
    layout: str = "interleaved",
) -> np.ndarray:
    """Turn each pair as `rope` does, and scale it by zeta^((position - centre)/scale_base).

    Parameters
    ----------
    x : (..., L, K) array
        Queries or keys.
    positions : array that broadcasts to x.shape[:-1]
        Position of each vector: (L,), or (B, 1, L) for a batch with padding.
    frequencies : (n,) array, optional
        Radians per position; `rope_frequencies(K)` by default. With fewer than K/2 of them only the
        first 2n components are rotated and scaled, by `xpos_scale(2n)`.
    scale_base : float
        sigma, the distance at which a pair is scaled by zeta itself.
    key : bool
        Keys get the opposite exponent.
    centre : float
        mu, the position at which nothing is scaled; the same for queries and keys.
    layout : "interleaved" or "half"
        Which components form a pair: 2i and 2i+1, or i and i + n.

    Returns
    -------
    Array of the shape and dtype of x (float64 for integers; float16 is computed in float32).

    Raises
    ------
    ValueError
        If a factor would not fit the dtype: they grow without bound away from the centre.

    Notes
    -----
    Source: Sun et al. 2022; torchscale 4d1e0e8. Exponents are computed in float64.

    Examples
    --------
    >>> q = xpos([[1.0, 0.0]], [512], [0.0])
    >>> k = xpos([[1.0, 0.0]], [0], [0.0], key=True)
    >>> (q @ k.T).round(6).tolist(), xpos_scale(2).round(6).tolist()
    ([[0.285714]], [0.285714])
    """
    name = "xpos"
    x = checks.real_array(name, "x", x, "LK")
    positions = checks.position_array(name, "positions", positions)
    checks.fits(name, "positions", positions.shape, x.shape[:-1], "x without its last axis")
    if frequencies is None:
        checks.even(name, "K, the last axis of x,", x.shape[-1], "components pair up")
        frequencies = rope_frequencies(x.shape[-1])
    frequencies = checks.pair_frequencies(name, frequencies, x.shape[-1])
    scale_base = checks.positive(name, "scale_base", scale_base)
    centre = checks.number(name, "centre", centre)
    key = checks.flag(name, "key", key)
    layout = checks.choice(name, "layout", layout, ("interleaved", "half"))
    work, dtype = checks.working(x)
    n = len(frequencies)
    exponents = (positions.astype(np.float64) - centre) * ((-1 if key else 1) / scale_base)
    logs = exponents[..., None] * np.log(xpos_scale(2 * n)) if n else np.zeros((1, 0))
    _check_range(name, logs, positions, dtype)
    both = np.repeat(logs, 2, axis=-1) if layout == "interleaved" else np.tile(logs, 2)
    rest = np.zeros((*logs.shape[:-1], x.shape[-1] - 2 * n))  # what doesn't turn isn't scaled
    factors = np.exp(np.concatenate([both, rest], axis=-1)).astype(work)  # (..., L, K)
    turned = rope(x.astype(work, copy=False), positions, frequencies, layout)
    return (turned * factors).astype(dtype, copy=False)


def _check_range(function: str, logs: np.ndarray, positions: np.ndarray, dtype: np.dtype) -> None:
    """Refuse factors that are infinite in this dtype."""
    if logs.size and logs.max() > math.log(np.finfo(dtype).max):
        raise ValueError(
            f"{function}: zeta^((position - centre)/scale_base) must fit {dtype}; got e^"
            f"{logs.max():.0f} among positions from {positions.min()} to {positions.max()}, "
            "move the centre among them"
        )
