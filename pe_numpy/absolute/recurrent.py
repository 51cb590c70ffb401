r"""Codes that come out of one another: by a step from position to position, or by a flow in time.

Source: Su Jianlin 2021, "Positional encodings of the Transformer" (in Chinese,
kexue.fm/archives/8130), recursive encodings; and Liu et al. 2020, "Learning to Encode Position for
Transformer with Continuous Dynamical Model" (FLOATER, arXiv:2003.09229), section 3::

    p_(k+1) = f(p_k)
    p(t) = p(s) + integral from s to t of h(p(tau), tau) dtau,   that is  dp/dt = h(p, t)

Axes: D model width.
Symbols: f is `step`, h is `derivative`; p has the shape (D,).
Convention: the first encoding is the start itself. `derivative` takes p first, then t (FLOATER's
h: t first).
Differs from the sources: f and h are any functions you give, in place of trained networks. FLOATER
has a start and a flow in every block; here is one flow, solved by the classical Runge-Kutta method
with a number of steps that you choose, so that its error can be predicted.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def recurrent(start: ArrayLike, step: Callable[[np.ndarray], ArrayLike], length: int) -> np.ndarray:
    """Make each encoding from the one before it: p_(k+1) = step(p_k).

    Parameters
    ----------
    start : (D,) array
        The code p_0 of position 0.
    step : function from (D,) to (D,)
        Takes p_k and gives p_(k+1). It gets a copy, which it may change.
    length : int
        Number of codes; 0 is allowed. It is a length, and not positions, because no code can be
        had without all codes before it.

    Returns
    -------
    (length, D) array of the dtype of start (float64 for integers; float16 is computed in float32).

    Notes
    -----
    Source: Su 2021. With step = `sinusoidal_shift(1, D)` @ p and start = `sinusoidal(0, D)` the
    codes are the sinusoidal ones.

    Examples
    --------
    >>> recurrent([1, 0], lambda p: [p[0] + p[1], p[0]], 6)[:, 0].astype(int).tolist()
    [1, 1, 2, 3, 5, 8]
    """
    start, first = _start("recurrent", start)
    length = checks.integer("recurrent", "length", length, least=0)
    codes = [first]
    for _ in range(length - 1):
        codes.append(_like(first, "recurrent", "step", step(codes[-1].copy())))
    return np.stack(codes)[:length].astype(start.dtype, copy=False)  # (length, D)


def floater(
    start: ArrayLike,
    derivative: Callable[[np.ndarray, float], ArrayLike],
    times: ArrayLike,
    substeps: int = 8,
) -> np.ndarray:
    """Follow the differential equation dp/dt = derivative(p, t) from one time to the next.

    Parameters
    ----------
    start : (D,) array
        The code at times[0].
    derivative : function of ((D,), float) that gives (D,)
        Slope of the code p at time t. It gets a copy of p, which it may change.
    times : (L,) array
        Positions, in the order in which the flow visits them: real numbers, evenly spaced or not,
        ascending or not (the flow then runs back).
    substeps : int
        Runge-Kutta steps between two neighbouring times; twice as many divide the error by about
        16.

    Returns
    -------
    (L, D) array of the dtype of start (float64 for integers; float16 is computed in float32). The
    first row is the start.

    Notes
    -----
    Source: Liu et al. 2020, section 3. The method is of order 4: exact where the slope is a
    polynomial in t of degree 3 or less (there it is Simpson's rule). The sinusoidal code solves
    dp/dt = A p, where A has the blocks [[0, theta], [-theta, 0]] for each pair (sin, cos).

    Examples
    --------
    One step of dp/dt = p over 1 unit of time gives 1 + 1 + 1/2 + 1/6 + 1/24, not quite e = 2.7183:

    >>> floater([1.0], lambda p, t: p, [0, 1], substeps=1).round(4).tolist()
    [[1.0], [2.7083]]
    >>> floater([1.0], lambda p, t: p, [0, 1]).round(4).tolist()
    [[1.0], [2.7183]]
    """
    start, p = _start("floater", start)
    times = checks.position_array("floater", "times", times, axis=True)
    if times.ndim != 1:
        raise ValueError(f"floater: times must be one axis of numbers; got shape {times.shape}")
    substeps = checks.integer("floater", "substeps", substeps)

    def slope(p: np.ndarray, t: float) -> np.ndarray:
        return _like(p, "floater", "derivative", derivative(p.copy(), t))

    codes = [p]
    for t, end in pairwise(times.astype(np.float64).tolist()):
        h = (end - t) / substeps
        for n in range(substeps):
            p = _runge_kutta(slope, p, t + n * h, h)
        codes.append(p)
    return np.stack(codes)[: len(times)].astype(start.dtype, copy=False)  # (L, D)


def _runge_kutta(
    slope: Callable[[np.ndarray, float], np.ndarray], p: np.ndarray, t: float, h: float
) -> np.ndarray:
    """One step of size h by the classical method of order 4, from p at time t."""
    a = slope(p, t)
    b = slope(p + h / 2 * a, t + h / 2)
    c = slope(p + h / 2 * b, t + h / 2)
    d = slope(p + h * c, t + h)
    return p + h / 6 * (a + 2 * b + 2 * c + d)


def _start(function: str, start: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the start, and the same in its working dtype."""
    start = checks.real_array(function, "start", start)
    if start.ndim != 1:
        raise ValueError(f"{function}: start must have one axis, (D,); got shape {start.shape}")
    return start, start.astype(np.float32) if start.dtype == np.float16 else start


def _like(p: np.ndarray, function: str, name: str, result: ArrayLike) -> np.ndarray:
    """Copy what a given function made of p, if it has the shape of p, in the dtype of p."""
    result = checks.real_array(function, f"the result of {name}", result)
    if result.shape != p.shape:
        raise ValueError(
            f"{function}: {name} must keep the shape {p.shape} of start; got {result.shape}"
        )
    return result.astype(p.dtype)
