r"""FoX: each token says how much of all that came before it is forgotten.

Source: Lin et al. 2025, "Forgetting Transformer" (arXiv:2503.02130), and zhixuan-lin/
forgetting-transformer, commit 883f260::

    f_i = sigmoid(w x_i + b)      c_i = ln f_0 + ... + ln f_i      bias_ij = c_i - c_j

Axes: L queries, S keys.
Symbols: f is the gate of a token and head, c the sums of the logarithms, exp(bias_ij) the product
of all gates after j, up to i.
Convention: added after the division by sqrt(K). It needs a causal mask: above the diagonal the bias
is positive and grows. The caller makes the gates and, with `np.cumsum`, the sums.
Differs from the code: nothing. CABLE (arXiv:2503.08067) is the same: its -softplus(z) is ln f with
the sign of z turned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def forgetting_bias(q_sums: ArrayLike, k_sums: ArrayLike) -> np.ndarray:
    """What the gates between key and query leave, as a bias: c_i - c_j.

    Parameters
    ----------
    q_sums : (..., L) array
        Sums of ln f up to and with each query, one axis of heads in front of it if there are any.
        With a cache: the last L of `k_sums`.
    k_sums : (..., S) array
        The same sums for the keys, in the order of the text.

    Returns
    -------
    (..., L, S) array; add it to scaled scores, under a causal mask.

    Raises
    ------
    ValueError
        If the sums are not finite (a gate of 0 has no logarithm), or rise from a token to the next
        (that gate is above 1).

    Notes
    -----
    Source: Lin et al. 2025, and the code named above. A difference of sums folds into the scores,
    [q/sqrt(K), 1, c_i] . [k, -c_j, 1], so that nothing of the shape (L, S) need be kept.

    Examples
    --------
    >>> sums = np.cumsum(np.log([0.5, 0.25, 0.5]))
    >>> np.exp(np.tril(forgetting_bias(sums, sums))).round(3).tolist()
    [[1.0, 1.0, 1.0], [0.25, 1.0, 1.0], [0.125, 0.5, 1.0]]
    """
    name = "forgetting_bias"
    q_sums = checks.real_array(name, "q_sums", q_sums, "L")
    k_sums = checks.real_array(name, "k_sums", k_sums, "S")
    _check_sums(name, "q_sums", q_sums)
    _check_sums(name, "k_sums", k_sums)
    checks.common_batch(name, q_sums=q_sums.shape[:-1], k_sums=k_sums.shape[:-1])
    return q_sums[..., :, None] - k_sums[..., None, :]  # (..., L, S)


def _check_sums(function: str, name: str, sums: np.ndarray) -> None:
    if not np.isfinite(sums).all():
        raise ValueError(
            f"{function}: {name} must be finite, since a gate of 0 has no logarithm; got nan or "
            "inf among them"
        )
    rises = sums[..., 1:] > sums[..., :-1]
    if rises.any():
        raise ValueError(
            f"{function}: {name} must not rise, since no gate is above 1; got a rise at entry "
            f"{1 + int(np.argwhere(rises)[0, -1])}"
        )
