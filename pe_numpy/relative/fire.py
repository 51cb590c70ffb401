r"""FIRE: a small network reads the distance as a share of the way back to the first token.

Source: Li et al. 2024, "Functional interpolation for relative positions improves long context
transformers" (arXiv:2310.04418); for its constants the code of DAPE (chuanyang-Zheng/DAPE, commit
bde344a, `DAPE.py`, class `FIRE`)::

    f( psi(|i - j|) / (psi(max(i, L)) + eps) ),    psi(x) = ln(1 + |c| x)

Axes: B batch, H heads, L queries, S keys, M hidden units (32).
Symbols: i is the query's position, j the key's; f is a network with one hidden layer of ReLUs; c
and the threshold L, a number (the axis L is only in shapes), are trained, too.
Convention: distance = i - j; the bias is added after the division by sqrt(K).
Differs from the code: that code takes its positions from the lengths and sets the distance of the
future to 0; here positions are arguments, and the absolute value serves both sides. Its threshold
is a number times a trained multiplier; here L is that product.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.relative.distance import each_distance, relative_distance

NAMES = ("W1", "b1", "W2", "b2", "c", "L")
BLOCK = 2**20  # numbers of the hidden layer that exist at a time


def fire_bias(
    params: Mapping[str, ArrayLike],
    q_positions: ArrayLike,
    k_positions: ArrayLike,
    eps: float = 1e-6,
) -> np.ndarray:
    """Bias of each head and pair: f(psi(abs(i - j)) / (psi(max(i, L)) + eps)).

    Parameters
    ----------
    params : dict
        The network f, `W1` (1, M), `b1` (M,), `W2` (M, H), `b2` (H,); and two numbers, `c` and `L`
        above 0.
    q_positions : (L,) array of integers, or (B, L)
        Positions i of the queries, counted from the first token of the text.
    k_positions : (S,) array of integers, or (B, S)
        Positions j of the keys.
    eps : float
        Keeps the quotient from 0/0.

    Returns
    -------
    (H, L, S) array, or (B, H, L, S), of the dtype of the network; add it to scaled scores. If no
    query stands beyond L, each distance is scored once, and for consecutive positions the result is
    a read-only window. Else each pair is scored, in blocks of queries.

    Notes
    -----
    Source: Li et al. 2024, and the code named above.

    Examples
    --------
    >>> unit = {"W1": [[1.0]], "b1": [0.0], "W2": [[1.0]], "b2": [0.0], "c": 1.0, "L": 2.0}
    >>> fire_bias(unit, [2, 4], [0, 1, 2, 3, 4], eps=0.0)[0].round(6).tolist()
    [[1.0, 0.63093, 0.0, 0.63093, 1.0], [1.0, 0.861353, 0.682606, 0.430677, 0.0]]
    """
    name = "fire_bias"
    params = _checked(name, params)
    q_positions = checks.whole_numbers(name, "q_positions", q_positions, axis=True)
    k_positions = checks.whole_numbers(name, "k_positions", k_positions, axis=True)
    _check_positions(name, q_positions, k_positions)
    eps = checks.number(name, "eps", eps)
    work, dtype = checks.working(*(params[key] for key in NAMES[:4]))
    W1, b1, W2, b2, c, L = (params[key].astype(work, copy=False) for key in NAMES)
    distance = relative_distance(q_positions, k_positions)

    def psi(x: np.ndarray) -> np.ndarray:
        return np.log1p(np.abs(c * x))

    def f(x: np.ndarray) -> np.ndarray:
        hidden = np.maximum(x[..., None] @ W1 + b1, 0)  # (..., M)
        return np.moveaxis(hidden @ W2 + b2, -1, 0).astype(dtype, copy=False)  # (H, ...)

    def within(d: np.ndarray) -> np.ndarray:
        away, place = np.unique(np.abs(d), return_inverse=True)
        each = f(psi(away.astype(work)) / (psi(L) + eps))  # (H, N)
        return np.take(each, place.reshape(d.shape), axis=1)

    if distance.size == 0 or (q_positions <= L).all():
        return np.moveaxis(each_distance(within, distance), 0, -3)
    S = distance.shape[-1]
    away = np.abs(distance).reshape(-1, S).astype(work)  # a row a query
    i = np.broadcast_to(q_positions, distance.shape[:-1]).reshape(-1, 1).astype(work)
    share = psi(away) / (psi(np.maximum(i, L)) + eps)
    n = max(1, BLOCK // (S * len(b1)))
    blocks = [f(share[start : start + n]) for start in range(0, len(share), n)]
    bias = np.reshape(np.concatenate(blocks, axis=1), (len(b2), *distance.shape))
    return np.moveaxis(bias, 0, -3)


def _checked(function: str, params: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """All parameters as arrays that fit together."""
    if not isinstance(params, Mapping) or not all(key in params for key in NAMES):
        got = ", ".join(params) if isinstance(params, Mapping) else type(params).__name__
        raise ValueError(f"{function}: params must hold {', '.join(NAMES)}; got {got}")
    W2 = checks.real_array(function, "W2", params["W2"], "MH")
    if W2.ndim != 2:
        raise ValueError(f"{function}: W2 must have the axes (M, H); got shape {W2.shape}")
    M, H = W2.shape
    shapes = ((1, M), (M,), (M, H), (H,), (), ())
    axes = ("(1, M)", "(M,)", "(M, H)", "(H,)", "()", "()")
    arrays = {
        key: checks.exact_shape(function, key, params[key], shape, letters)
        for key, shape, letters in zip(NAMES, shapes, axes, strict=True)
    }
    if not (arrays["L"] > 0) or not np.isfinite(arrays["L"]):
        raise ValueError(f"{function}: L must be above 0, and finite; got {arrays['L']}")
    return arrays


def _check_positions(function: str, i: np.ndarray, j: np.ndarray) -> None:
    """Positions of one sequence or of a batch of them."""
    for key, x in (("q_positions (L) or (B, L)", i), ("k_positions (S) or (B, S)", j)):
        if x.ndim > 2:
            raise ValueError(f"{function}: one batch axis at most, {key}; got shape {x.shape}")
    checks.common_batch(function, q_positions=i.shape[:-1], k_positions=j.shape[:-1])
