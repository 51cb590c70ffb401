r"""KERPLE: a trained function of the distance for each head, logarithm or power.

Source: Chi et al. 2022, "KERPLE: kernelized relative positional embedding for length extrapolation"
(arXiv:2205.09921), and the authors' code (chijames/KERPLE, commit 25be3d7, classes
`ParallelKerpleLog` and `ParallelKerplePower` of `megatron/mpu/layers.py`)::

    logarithm   - p ln(1 + a |i - j|)        power   - a |i - j|^p,   p at most 2

Axes: B batch, H heads, L queries, S keys.
Symbols: p and a are a head's two trained numbers; they change roles from one form to the other.
Convention: distance = i - j; the bias is added after the division by sqrt(K).
Differs from the code: that code keeps p and a at 0.01 or more by overwriting them before each use;
here numbers that are not above 0 are refused. Its kernels that multiply the scores are left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.relative.distance import each_distance


def kerple_log_bias(p: ArrayLike, a: ArrayLike, distance: ArrayLike) -> np.ndarray:
    """Logarithmic penalty of each head and pair: -p ln(1 + a abs(i - j)).

    Parameters
    ----------
    p : (H,) array
        What a factor of e in the distance costs, far away; above 0.
    a : (H,) array
        How soon the logarithm begins: 1/a is the distance at which the penalty is p ln 2.
    distance : (L, S) integer array, or (B, L, S)
        Query minus key position, from `relative_distance`.

    Returns
    -------
    (H, L, S) array, or (B, H, L, S), of the dtype of p and a; add it to scaled scores. For
    consecutive positions a read-only window on L + S - 1 numbers per head.

    Notes
    -----
    Source: Chi et al. 2022, and `ParallelKerpleLog` in the code named above.

    Examples
    --------
    >>> bias = kerple_log_bias([1.0], [1.0], [[0, 1, 2, 3, 4]])
    >>> (bias + 0.0).round(6).tolist()
    [[[0.0, -0.693147, -1.098612, -1.386294, -1.609438]]]
    """
    name = "kerple_log_bias"
    p = checks.real_array(name, "p", p, "H")
    a = checks.real_array(name, "a", a, "H")
    distance = checks.bias_distance(name, distance)
    _check_heads(name, p, a)
    return kerple_bias(lambda away, p, a: -p * np.log1p(a * away), p, a, distance)


def kerple_power_bias(a: ArrayLike, p: ArrayLike, distance: ArrayLike) -> np.ndarray:
    """Power penalty of each head and pair: -a abs(i - j)^p.

    Parameters
    ----------
    a : (H,) array
        The penalty of distance 1; above 0.
    p : (H,) array
        The exponent; above 0, at most 2: beyond, the bias is no kernel of the authors' kind.
    distance : (L, S) integer array, or (B, L, S)
        Query minus key position, from `relative_distance`.

    Returns
    -------
    (H, L, S) array, or (B, H, L, S), of the dtype of a and p; add it to scaled scores. For
    consecutive positions a read-only window on L + S - 1 numbers per head. With p = 1 it is
    `alibi_bias(a, distance)`.

    Notes
    -----
    Source: Chi et al. 2022, and `ParallelKerplePower` in the code named above.

    Examples
    --------
    >>> bias = kerple_power_bias([0.5], [0.5], [[0, 1, 2, 3, 4]])
    >>> (bias + 0.0).round(6).tolist()
    [[[0.0, -0.5, -0.707107, -0.866025, -1.0]]]
    """
    name = "kerple_power_bias"
    a = checks.real_array(name, "a", a, "H")
    p = checks.real_array(name, "p", p, "H")
    distance = checks.bias_distance(name, distance)
    _check_heads(name, p, a)
    if not (p <= 2).all():
        raise ValueError(f"{name}: p must be at most 2, or the bias is no kernel; got {p.max()}")
    return kerple_bias(lambda away, p, a: -a * away**p, p, a, distance)


def _check_heads(function: str, p: np.ndarray, a: np.ndarray) -> None:
    """Two numbers above 0 for each head."""
    if p.ndim != 1 or p.shape != a.shape:
        raise ValueError(
            f"{function}: p and a must have the axis (H), one number a head; "
            f"got shapes {p.shape} and {a.shape}"
        )
    for name, x in (("p", p), ("a", a)):
        if not ((x > 0) & np.isfinite(x)).all():
            raise ValueError(f"{function}: {name} must be above 0, and finite; got {x.min()}")


def kerple_bias(
    penalty: Callable[..., np.ndarray], p: np.ndarray, a: np.ndarray, distance: np.ndarray
) -> np.ndarray:
    """Score each distance once, for all heads, in float32 at the least."""
    work, dtype = checks.working(p, a)

    def of(d: np.ndarray) -> np.ndarray:
        heads = (-1,) + (1,) * d.ndim  # (H, 1, ...)
        own = (np.reshape(x.astype(work, copy=False), heads) for x in (p, a))
        return penalty(np.abs(d).astype(work), *own).astype(dtype, copy=False)

    return np.moveaxis(each_distance(of, distance), 0, -3)
