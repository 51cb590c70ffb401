r"""Rotary positions in the values: rotated by the key's position, rotated back by the query's.

Source: the option `rotary_value` of RoFormer turns values and leaves them so (huggingface
transformers 5.23.0, models/roformer); DeepSeek-V4 turns the sum back (models/deepseek_v4)::

    o_i = R_(-i) sum_j w_ij R_j v_j = sum_j w_ij R_(j-i) v_j

Axes: L queries, S keys, K width of the values.
Symbols: w are attention weights; R_j turns as in `rope`.
Convention: without the rotation back the output would depend on the absolute position.
Differs from the code: DeepSeek-V4's keys are its values; here values turn on their own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.rotary.rope import rope, rope_frequencies


def rotary_values(
    weights: ArrayLike,
    v: ArrayLike,
    q_positions: ArrayLike,
    k_positions: ArrayLike,
    frequencies: ArrayLike | None = None,
    layout: str = "interleaved",
) -> np.ndarray:
    """Weighted sum of values that are rotated by their distance: sum_j w_ij R_(j-i) v_j.

    Parameters
    ----------
    weights : (..., L, S) array
        Attention weights.
    v : (..., S, K) array
        Values.
    q_positions : array that broadcasts to (..., L)
        Positions i of the queries.
    k_positions : array that broadcasts to (..., S)
        Positions j of the values.
    frequencies : (n,) array, optional
        Radians per position; `rope_frequencies(K)` by default.
    layout : "interleaved" or "half"
        Which components form a pair: 2i and 2i+1, or i and i + n.

    Returns
    -------
    (..., L, K) array (float16 is computed in float32).

    Notes
    -----
    Source: huggingface transformers 5.23.0, models/roformer and models/deepseek_v4. Two turns, of S
    values and of L sums, stand for one of each of the L S pairs: rotations add up.

    Examples
    --------
    >>> weights, v = [[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]]
    >>> rotary_values(weights, v, [0, 1], [0, 1]).round(4).tolist()
    [[1.0, 0.0], [0.2702, 0.0793]]
    """
    name = "rotary_values"
    weights = checks.real_array(name, "weights", weights, "LS")
    v = checks.real_array(name, "v", v, "SK")
    if weights.shape[-1] != v.shape[-2]:
        raise ValueError(
            f"{name}: weights and v must have the same number of keys S; "
            f"got {weights.shape[-1]} and {v.shape[-2]}"
        )
    q_positions = checks.position_array(name, "q_positions", q_positions)
    k_positions = checks.position_array(name, "k_positions", k_positions)
    checks.fits(
        name,
        "q_positions",
        q_positions.shape,
        (
            *checks.common_batch(name, weights=weights.shape[:-2], v=v.shape[:-2]),
            weights.shape[-2],
        ),
        "the output without K",
    )
    checks.fits(name, "k_positions", k_positions.shape, v.shape[:-1], "v without its last axis")
    if frequencies is None:
        checks.even(name, "K, the last axis of v,", v.shape[-1], "components pair up")
        frequencies = rope_frequencies(v.shape[-1])
    frequencies = checks.pair_frequencies(name, frequencies, v.shape[-1])
    layout = checks.choice(name, "layout", layout, ("interleaved", "half"))
    work, dtype = checks.working(weights, v)
    turned = rope(v.astype(work, copy=False), k_positions, frequencies, layout)  # R_j v_j
    mixed = weights.astype(work, copy=False) @ turned  # (..., L, K)
    return rope(mixed, q_positions, -frequencies, layout).astype(dtype, copy=False)
