r"""Latent attention (MLA): all heads' keys from one short vector per token, and a rotated key.

Source: DeepSeek-AI 2024, "DeepSeek-V2" (arXiv:2405.04434); released code, deepseek-ai/DeepSeek-V3,
commit 9b4e978, `inference/model.py`, whose "naive" and "absorb" are the two ways below::

    k_j = [W_uk c_j ; R_j k^R_j],  q_i = [q^C_i ; R_i q^R_i],  s_ij = q_i . k_j / sqrt(d_n + d_r)
    q^C_i . W_uk c_j = (W_uk^T q^C_i) . c_j

Axes: H heads, L queries, S keys; d_n components of a head for the content, d_r that turn, r the
width of the latent vector.
Symbols: c is the latent vector (after its norm), W_uk makes a head's key of it ("up"); R_m is the
rotation of `rope`; ^C is content, ^R rotary. c and k^R have no heads: all share them.
Convention: interleaved pairs, as in DeepSeek's code.
Differs from the paper: nothing known. With YaRN, DeepSeek multiplies the scores by one more
constant, which is left to the caller.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.rotary.rope import rope, rope_frequencies


def mla_scores(
    q_content: ArrayLike,
    q_rotary: ArrayLike,
    latent: ArrayLike,
    k_rotary: ArrayLike,
    w_uk: ArrayLike,
    q_positions: ArrayLike,
    k_positions: ArrayLike,
    frequencies: ArrayLike | None = None,
    absorbed: bool = True,
) -> np.ndarray:
    """Scores of latent attention: (q^C . W_uk c + R_i q^R . R_j k^R) / sqrt(d_n + d_r).

    Parameters
    ----------
    q_content : (..., H, L, d_n) array
        The part of each query that does not turn.
    q_rotary : (..., H, L, d_r) array
        The part that turns, not rotated yet.
    latent : (..., S, r) array
        One vector c a token, for all heads.
    k_rotary : (..., S, d_r) array
        One key per token that turns, for all heads; not rotated yet.
    w_uk : (H, d_n, r) array
        W_uk of each head, as in k = W_uk c.
    q_positions, k_positions : arrays that broadcast to (..., H, L) and (..., 1, S)
        Positions of queries and keys: (L,) and (S,), or (B, 1, L) and (B, 1, S). Keys that were
        rotated before they were stored stand at 0.
    frequencies : (n,) array, optional
        Radians per position, at most d_r/2 of them; `rope_frequencies(d_r)` by default.
    absorbed : bool
        Multiply W_uk with the queries (True: the latent vectors serve as keys), or with the latent
        vectors (False: each head's keys are made). The scores are the same.

    Returns
    -------
    (..., H, L, S) array of the inputs' dtype (float16 is computed in float32).

    Notes
    -----
    Source: DeepSeek-V2 (arXiv:2405.04434) and deepseek-ai/DeepSeek-V3, commit 9b4e978. Products:
    H d_n r for each *query* if absorbed, for each *key* if not; then H (r + d_r) for each pair, or
    H (d_n + d_r).

    Examples
    --------
    >>> w_uk = [[[1, 2], [0, 1], [1, 0], [2, 1]]]  # one head, d_n = 4, r = 2
    >>> q, c = [[[1, 0, 2, 1]]], [[1, -1]]
    >>> turned = mla_scores(q, [[[1, 0]]], c, [[1, 0]], w_uk, [3], [1])
    >>> (turned * 6**0.5).round(4).tolist()  # 5 - 3 + cos(2)
    [[[1.5839]]]
    """
    name = "mla_scores"
    q_content = checks.real_array(name, "q_content", q_content, "HLK")
    q_rotary = checks.real_array(name, "q_rotary", q_rotary, "HLK")
    latent = checks.real_array(name, "latent", latent, "SK")
    k_rotary = checks.real_array(name, "k_rotary", k_rotary, "SK")
    for one, other, a, b in (
        ("q_content", "q_rotary", q_content, q_rotary),
        ("latent", "k_rotary", latent, k_rotary),
    ):
        if a.shape[:-1] != b.shape[:-1]:
            raise ValueError(
                f"{name}: {one} and {other} must differ in their last axis alone; "
                f"got {a.shape} and {b.shape}"
            )
    if q_rotary.shape[-1] != k_rotary.shape[-1]:
        raise ValueError(
            f"{name}: q_rotary and k_rotary must have the same width d_r; "
            f"got {q_rotary.shape[-1]} and {k_rotary.shape[-1]}"
        )
    *batch, H, L, d_n = q_content.shape
    *others, S, r = latent.shape
    checks.common_batch(name, queries=tuple(batch), keys=tuple(others))
    w_uk = checks.exact_shape(name, "w_uk", w_uk, (H, d_n, r), "(H, d_n, r)")
    q_positions = checks.position_array(name, "q_positions", q_positions)
    k_positions = checks.position_array(name, "k_positions", k_positions)
    checks.fits(name, "q_positions", q_positions.shape, (*batch, H, L), "the queries")
    checks.fits(name, "k_positions", k_positions.shape, (*others, 1, S), "the keys")
    d_r = q_rotary.shape[-1]
    if frequencies is None:
        checks.even(name, "d_r", d_r, "components pair up")
        frequencies = rope_frequencies(d_r)
    frequencies = checks.position_array(name, "frequencies", frequencies)
    if frequencies.ndim != 1 or 2 * len(frequencies) > d_r:
        raise ValueError(
            f"{name}: frequencies must be one axis of at most d_r/2 numbers; "
            f"got shape {frequencies.shape} for d_r = {d_r}"
        )
    absorbed = checks.flag(name, "absorbed", absorbed)
    work, dtype = checks.working(q_content, q_rotary, latent, k_rotary, w_uk)
    c, k_R = latent.astype(work)[..., None, :, :], k_rotary.astype(work)[..., None, :, :]
    q_C, q_R, w_uk = (x.astype(work) for x in (q_content, q_rotary, w_uk))
    if absorbed:
        content = (q_C @ w_uk) @ np.swapaxes(c, -1, -2)  # (..., H, L, r) by (..., 1, r, S)
    else:
        k_C = c @ np.swapaxes(w_uk, -1, -2)  # (..., H, S, d_n)
        content = q_C @ np.swapaxes(k_C, -1, -2)
    q_R, k_R = rope(q_R, q_positions, frequencies), rope(k_R, k_positions, frequencies)
    scores = (content + q_R @ np.swapaxes(k_R, -1, -2)) / math.sqrt(d_n + d_r)
    return scores.astype(dtype)  # (..., H, L, S)
