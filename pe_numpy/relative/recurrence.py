r"""Linear attention with a state that decays: retention, gated linear attention, the delta rule.

Equation: the state S_t, a matrix (K, V), is all that a layer keeps of the tokens up to t::

    S_t = diag(a_t) S_{t-1} + k_t v_t^T      o_t = q_t^T S_t        gated linear attention
    S_t = diag(a_t) S_{t-1} + k_t u_t^T      o_t = q_t^T S_t        the delta rule, with
          u_t = beta_t (v_t - k_t^T diag(a_t) S_{t-1})

Unrolled, both are attention without a softmax, under a causal mask of products of decays::

    o_i = sum over j <= i of (sum over c of q_ic k_jc a_{j+1,c} ... a_{i,c}) v_j     (or u_j)

Source: Sun et al. 2023, "Retentive Network" (arXiv:2307.08621), section 2.1, where a_t = gamma;
Dao and Gu 2024, Mamba-2 (arXiv:2405.21060), a number per token; Yang et al. 2023, "Gated Linear
Attention" (arXiv:2312.06635), a vector. The delta rule: Yang et al. 2024, DeltaNet
(arXiv:2406.06484), without decay; Gated DeltaNet (arXiv:2412.06464), a number; Kimi Team 2025,
"Kimi Linear" (arXiv:2510.26692), a vector.
Axes: L tokens, C tokens of one chunk, K width of queries and keys, V width of values.
Symbols: a_t is the decay of a token, between 0 and 1, beta_t the share of the old value that a
token replaces.
Convention: the decay acts on the old state before the token is added, and before the delta rule
reads it. Nothing is scaled, normalized or rotated: the caller does that to q and k. Decays come as
logarithms, so that a product of many is a sum. `chunk` 1 is the recurrence, `chunk` L the parallel
form, anything between them the chunked form: the results are equal.
Differs from fla-org/flash-linear-attention, commit bc3b101, `naive.py` in the folders of `fla/ops`:
it multiplies q by K^-0.5, and computes in float32. Its axes are (B, L, H, K), here (..., L, K).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def retention(q: ArrayLike, k: ArrayLike, v: ArrayLike, decay: ArrayLike) -> np.ndarray:
    """Causal linear attention with one fixed decay per head: sum of decay^(i - j) (q_i k_j) v_j.

    Parameters
    ----------
    q, k : (..., L, K) arrays
    v : (..., L, V) array
    decay : number, or array that broadcasts to the batch axes
        Above 0 and up to 1: what is left of a token after each step. For heads (H,).

    Returns
    -------
    (..., L, V) array.

    Raises
    ------
    ValueError
        If a decay is 0, below it, or above 1.

    Notes
    -----
    Source: Sun et al. 2023 (arXiv:2307.08621), section 2.1, the parallel form. The paper's decays
    are 1 - 2^(-5 - h) for the heads h = 0, 1, ...; it rotates q and k first, as `rope` does. The
    authors' code, microsoft/torchscale, commit 4d1e0e8, also multiplies k by K^-0.5, and divides
    each row of products by the sum of their magnitudes if that is above 1; the norm behind it takes
    such factors out again. `gated_linear_attention` gives the other two forms and the state.

    Examples
    --------
    >>> one = np.ones((4, 1))
    >>> retention(one, one, np.eye(4), 0.5).tolist()[3]
    [0.125, 0.25, 0.5, 1.0]
    """
    name = "retention"
    q, k, v = _tokens(name, q, k, v)
    decay = checks.real_array(name, "decay", decay)
    allowed = (decay > 0) & (decay <= 1)
    if not allowed.all():
        raise ValueError(
            f"{name}: decay must be above 0 and at most 1; got {_first(decay, ~allowed)}. It is "
            "what a step keeps, not its logarithm"
        )
    checks.common_batch(name, q=q.shape[:-2], k=k.shape[:-2], v=v.shape[:-2], decay=decay.shape)
    work, dtype = checks.working(q, k, v)
    q, k, v = (x.astype(work, copy=False) for x in (q, k, v))
    distance = np.arange(q.shape[-2])[:, None] - np.arange(q.shape[-2])
    powers = decay[..., None, None] ** np.maximum(distance, 0)
    mask = np.where(distance >= 0, powers, 0.0).astype(work, copy=False)  # (..., L, L)
    return ((q @ np.swapaxes(k, -1, -2) * mask) @ v).astype(dtype, copy=False)


def gated_linear_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    log_decay: ArrayLike,
    state: ArrayLike | None = None,
    chunk: int = 64,
) -> tuple[np.ndarray, np.ndarray]:
    """Linear attention with a decay for each token: S_t = diag(a_t) S_(t-1) + k_t v_t^T.

    Parameters
    ----------
    q, k : (..., L, K) arrays
    v : (..., L, V) array
    log_decay : (..., L, K) or (..., L, 1) array
        ln a_t, at most 0: for each component of the keys, or one number per token.
    state : (..., K, V) array, optional
        What an earlier call returned, zeros by default.
    chunk : int
        Tokens computed at once. It changes time and memory, not the results. With a decay for each
        component, a chunk makes chunk^2 K numbers per head.

    Returns
    -------
    outputs : (..., L, V) array
    state : (..., K, V) array
        After the last token; for float16 it stays in float32, in which it is computed.

    Raises
    ------
    ValueError
        If a logarithm is above 0 or not finite (a decay of 0 has none).

    Notes
    -----
    Source: Yang et al. 2023 (arXiv:2312.06635), section 4, a decay for each component; Mamba-2
    (arXiv:2405.21060) has one per token and head, a_t = exp(dt_t A), with B for k, C for q and
    dt_t x_t for v, as in `ssd_minimal_discrete` of state-spaces/mamba, commit e9594ce. The
    `naive_recurrent_gla` of flash-linear-attention, commit bc3b101, multiplies q by K^-0.5; its
    layer makes ln a_t = ln sigmoid(z_t) / 16.

    Examples
    --------
    >>> one, gates = np.ones((3, 1)), np.log([[0.5], [0.25], [0.5]])
    >>> outputs, state = gated_linear_attention(one, one, np.eye(3), gates)
    >>> outputs.round(3).tolist()
    [[1.0, 0.0, 0.0], [0.25, 1.0, 0.0], [0.125, 0.5, 1.0]]
    >>> state.round(3).tolist()
    [[0.125, 0.5, 1.0]]
    """
    return _recurrence("gated_linear_attention", q, k, v, log_decay, None, state, chunk)


def delta_rule(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    beta: ArrayLike,
    log_decay: ArrayLike | None = None,
    state: ArrayLike | None = None,
    chunk: int = 64,
) -> tuple[np.ndarray, np.ndarray]:
    """Linear attention that replaces what a key holds: adds beta_t k_t (v_t - k_t S) to the state.

    Parameters
    ----------
    q, k : (..., L, K) arrays
        Models make keys of length 1. Where beta_t (k_t . k_t) is above 2, the state can grow.
    v : (..., L, V) array
    beta : (..., L) array
        The share of the old value that is replaced by the new one: 0 leaves the state, 1 replaces.
    log_decay : (..., L, K) or (..., L, 1) array, optional
        ln a_t, at most 0, as in `gated_linear_attention`; without it nothing decays.
    state : (..., K, V) array, optional
        What an earlier call returned, zeros by default.
    chunk : int
        Tokens computed at once. It changes time and memory, not the results.

    Returns
    -------
    outputs : (..., L, V) array
    state : (..., K, V) array
        After the last token; for float16 it stays in float32, in which it is computed.

    Raises
    ------
    ValueError
        If a logarithm is above 0 or not finite (a decay of 0 has none).

    Notes
    -----
    Source: Yang et al. 2024 (arXiv:2406.06484), without decay; Gated DeltaNet (arXiv:2412.06464)
    has one per token, Kimi Linear (arXiv:2510.26692) one for each component:
    S_t = (I - beta_t k_t k_t^T) diag(a_t) S_{t-1} + beta_t k_t v_t^T. The first two papers write
    the transpose, a state (V, K). The values u of a chunk depend on each other: one triangular
    system gives all. The naive forms of flash-linear-attention, commit bc3b101, multiply q by
    K^-0.5; its layers divide q and k by their lengths, and take beta_t = sigmoid(z_t), or twice
    that with `allow_neg_eigval`.

    Examples
    --------
    >>> k, v = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), np.array([[1.0], [2.0], [3.0]])
    >>> outputs, state = delta_rule(k, k, v, np.ones(3))
    >>> outputs.tolist(), state.tolist()
    ([[1.0], [2.0], [3.0]], [[3.0], [2.0]])
    """
    name = "delta_rule"
    beta = checks.real_array(name, "beta", beta, "L")
    if log_decay is None:
        log_decay = np.zeros((beta.shape[-1], 1), beta.dtype)
    return _recurrence(name, q, k, v, log_decay, beta, state, chunk)


# ---- checks -------------------------------------------------------------------------------------


def _tokens(
    function: str, q: ArrayLike, k: ArrayLike, v: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, keys and values of the same L tokens."""
    q, k, _ = checks.queries_and_keys(function, q, k)
    v = checks.real_array(function, "v", v, "LV")
    lengths = q.shape[-2], k.shape[-2], v.shape[-2]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"{function}: q, k and v must have one row per token; got {lengths[0]}, {lengths[1]} "
            f"and {lengths[2]} rows. With a state, give all three of the new tokens only"
        )
    return q, k, v


def _log_decays(function: str, log_decay: ArrayLike, L: int, K: int) -> np.ndarray:
    """Logarithms of decays, (..., L, K) or (..., L, 1), none above 0."""
    logs = checks.real_array(function, "log_decay", log_decay, "LK")
    if logs.shape[-2] != L or logs.shape[-1] not in (1, K):
        raise ValueError(
            f"{function}: log_decay must have the axes (..., L, K) or (..., L, 1), here with "
            f"L = {L} and K = {K}; got shape {logs.shape}. For a number per token write "
            "log_decay[..., None]"
        )
    if not np.isfinite(logs).all():
        raise ValueError(
            f"{function}: log_decay must be finite, since a decay of 0 has no logarithm; got nan "
            "or inf among them. With -100 hardly anything is kept"
        )
    if (logs > 0).any():
        raise ValueError(
            f"{function}: log_decay must be at most 0, since no decay is above 1; got "
            f"{_first(logs, logs > 0)}. Give logarithms of decays, not the decays"
        )
    return logs


def _betas(function: str, beta: np.ndarray, L: int) -> np.ndarray:
    """The shares of the delta rule as a column, (..., L, 1)."""
    if beta.shape[-1] != L:
        raise ValueError(
            f"{function}: beta must have the axes (..., L), here with L = {L}; got shape "
            f"{beta.shape}"
        )
    return _finite(function, "beta", beta)[..., None]


def _state(function: str, state: ArrayLike, K: int, V: int) -> np.ndarray:
    """A state (..., K, V) of an earlier call."""
    state = checks.real_array(function, "state", state, "KV")
    if state.shape[-2:] != (K, V):
        raise ValueError(
            f"{function}: state must have the axes (..., K, V), here with K = {K} and V = {V}; "
            f"got shape {state.shape}"
        )
    return _finite(function, "state", state)


def _finite(function: str, name: str, x: np.ndarray) -> np.ndarray:
    if not np.isfinite(x).all():
        raise ValueError(f"{function}: {name} must be finite; got nan or inf among them")
    return x


def _first(x: np.ndarray, wrong: np.ndarray) -> str:
    """The first number that is wrong."""
    return f"{x[wrong][0]:g}"


# ---- chunk by chunk -----------------------------------------------------------------------------


def _recurrence(
    function: str,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    log_decay: ArrayLike,
    beta: np.ndarray | None,
    state: ArrayLike | None,
    chunk: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Check everything, then hand the state from chunk to chunk."""
    q, k, v = _tokens(function, q, k, v)
    chunk = checks.integer(function, "chunk", chunk)
    (L, K), V = k.shape[-2:], v.shape[-1]
    shares = None if beta is None else _betas(function, beta, L)  # (..., L, 1)
    logs = _log_decays(function, log_decay, L, K)
    old = np.zeros((K, V), q.dtype) if state is None else _state(function, state, K, V)
    batch = checks.common_batch(
        function,
        q=q.shape[:-2],
        k=k.shape[:-2],
        v=v.shape[:-2],
        log_decay=logs.shape[:-2],
        state=old.shape[:-2],
    )
    rows = [q, k, v, logs]
    if shares is not None:
        rows.append(shares)
        batch = checks.common_batch(function, others=batch, beta=shares.shape[:-2])
    work, dtype = checks.working(*rows, old)[0], np.result_type(*rows)
    rows = [x.astype(work, copy=False) for x in rows]
    new = np.broadcast_to(old, (*batch, K, V)).astype(work)  # a copy, not the caller's
    outputs = [np.zeros((*batch, 0, V), work)]
    for start in range(0, L, chunk):
        output, new = _chunk(new, *(x[..., start : start + chunk, :] for x in rows))
        outputs.append(output)
    return np.concatenate(outputs, axis=-2).astype(dtype, copy=False), new


def _chunk(
    state: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    log_decay: np.ndarray,
    beta: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Give the outputs of C tokens, and the state behind them."""
    sums = np.cumsum(log_decay, axis=-2)  # (..., C, K) or (..., C, 1)
    last = sums[..., -1:, :]
    if beta is not None:  # all u at once: (1 + known) u = beta (v - what the old state says)
        known = beta * _scores(k, k, sums, -1)  # (..., C, C)
        v = beta * (v - (k * np.exp(sums)) @ state)
        v = np.linalg.solve(np.eye(known.shape[-1], dtype=known.dtype) + known, v)
    outputs = (q * np.exp(sums)) @ state + _scores(q, k, sums, 0) @ v
    kept = k * np.exp(last - sums)  # as much of each key as is left at the end
    return outputs, np.swapaxes(np.exp(last), -1, -2) * state + np.swapaxes(kept, -1, -2) @ v


def _scores(x: np.ndarray, k: np.ndarray, sums: np.ndarray, newest: int) -> np.ndarray:
    """Products x_i k_j, each component times its decays after j up to i, for j <= i + newest."""
    mask = np.tri(sums.shape[-2], k=newest, dtype=bool)
    between = sums[..., :, None, :] - sums[..., None, :, :]  # (..., C, C, K or 1)
    decay = np.exp(np.where(mask[..., None], between, -np.inf))
    if sums.shape[-1] == 1:
        return (x @ np.swapaxes(k, -1, -2)) * decay[..., 0]
    return (x[..., :, None, :] * k[..., None, :, :] * decay).sum(axis=-1)
