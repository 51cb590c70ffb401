r"""GRAPE: positions act as powers of one matrix, exp(nA), which turns in a plane or shears.

Source: Zhang et al. 2026, "Group representational position encoding" (ICLR, arXiv:2512.07805),
sections 2 and 4, and their code (model-architectures/GRAPE, commit f5b539f)::

    A = a b^T - b a^T:   exp(nA) = I + (sin(ns)/s) A + ((1 - cos ns)/s^2) A^2,
                         s = sqrt(|a|^2 |b|^2 - (a . b)^2)
    A^2 = 0:             exp(nA) = I + nA

Axes: L queries, S keys, K width of one head.
Symbols: A is the generator; s radians per position in the plane of a and b.
Convention: matrices stand to the left of column vectors; A turns b towards a, so a = e_2, b = e_1
is counter-clockwise. Scores carry 1/sqrt(K), also those of vectors lifted to K + 2.
Differs from the paper: there the score is not divided; here A holds sqrt(K) times the slope.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def rank2_rotation(a: ArrayLike, b: ArrayLike, n: ArrayLike) -> np.ndarray:
    """Turn by n steps in the plane of a and b: exp(nA) with A = a b^T - b a^T.

    Parameters
    ----------
    a, b : (K,) arrays
        Two vectors that span the plane. A step turns from b towards a by s radians, the area of the
        parallelogram with the sides a and b.
    n : array of real numbers
        How many steps; a position, or a distance.

    Returns
    -------
    (..., K, K) array, one orthogonal matrix for each n, of the dtype of a and b (float64 for
    integers). It stands to the left of a column vector; vectors orthogonal to a and b stay. If a
    and b are parallel, nothing turns.

    Notes
    -----
    Source: Zhang et al. 2026, equations (2.1) to (3.1). Computed in float64; sin(ns)/s and
    (1 - cos ns)/s^2 are written so that nothing is divided by s.

    Examples
    --------
    >>> rank2_rotation([0.0, 1.0], [1.0, 0.0], 1).round(4).tolist()  # from e_1 towards e_2
    [[0.5403, -0.8415], [0.8415, 0.5403]]
    """
    name = "rank2_rotation"
    a = checks.real_array(name, "a", a)
    b = checks.real_array(name, "b", b)
    n = checks.position_array(name, "n", n)
    _check_vectors(name, a, b)
    first, second = a.astype(np.float64), b.astype(np.float64)
    A = np.outer(first, second) - np.outer(second, first)  # (K, K)
    s = math.sqrt((A * A).sum() / 2)
    steps = n.astype(np.float64)[..., None, None]  # (..., 1, 1)
    sine = steps * np.sinc(steps * s / math.pi)  # sin(ns)/s
    versed = steps**2 / 2 * np.sinc(steps * s / (2 * math.pi)) ** 2  # (1 - cos ns)/s^2
    turn = np.eye(len(a)) + sine * A + versed * (A @ A)
    return turn.astype(np.result_type(a, b))


def _check_vectors(function: str, a: np.ndarray, b: np.ndarray) -> None:
    """Refuse what spans no plane of one space."""
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(
            f"{function}: a and b must be two vectors (K,) of one width; got shapes {a.shape} and "
            f"{b.shape}"
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError(f"{function}: a and b must be finite; got nan or inf among them")


def additive_lift(
    q: ArrayLike, k: ArrayLike, slope: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two more components, in which exp(nA) = I + nA adds -slope (i - j): ALiBi, but with a sign.

    Parameters
    ----------
    q : (..., L, K) array
        Queries.
    k : (..., S, K) array
        Keys.
    slope : number, or array that broadcasts to the batch axes of q and k
        What a step of distance takes off the score; (H,) for heads.

    Returns
    -------
    Queries [q, 1, 0] (..., L, K + 2), keys [k, 0, 1] (..., S, K + 2) and the generator A
    (..., K + 2, K + 2), whose one entry, in the last row, is -slope sqrt(K). With a query q' turned
    to (I + iA) q' and a key k' to (I - jA)^T k', their product over sqrt(K), the width before the
    lift, is q . k / sqrt(K) - slope (i - j).

    Notes
    -----
    Source: Zhang et al. 2026, equations (4.1) to (4.7).

    Examples
    --------
    >>> q, k, A = additive_lift([[1.0, 2.0, 0.0, 0.0]], [[3.0, -1.0, 0.0, 0.0]], 0.5)
    >>> A[-1].tolist()
    [0.0, 0.0, 0.0, 0.0, -1.0, 0.0]
    >>> G = np.eye(6) + 3 * A  # three steps from the key to the query
    >>> ((G @ q[0]) @ k[0] / 4**0.5).item()  # 1/2 - 0.5 * 3
    -1.0
    """
    name = "additive_lift"
    q, k, batch = checks.queries_and_keys(name, q, k)
    slope = checks.position_array(name, "slope", slope)
    checks.fits(name, "slope", slope.shape, batch, "the batch axes")
    K = q.shape[-1]
    A = np.zeros((*slope.shape, K + 2, K + 2), np.result_type(q, k))
    A[..., K + 1, K] = -math.sqrt(K) * slope
    return _join(q, (1, 0)), _join(k, (0, 1)), A


def _join(x: np.ndarray, end: tuple[int, int]) -> np.ndarray:
    """Add two components that are the same for all vectors."""
    return np.concatenate([x, np.broadcast_to(np.array(end, x.dtype), (*x.shape[:-1], 2))], axis=-1)
