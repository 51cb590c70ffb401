r"""Linear attention with a state that forgets: retention, gated linear attention, the delta rule.

Equation: the state S_t (K, V) is all that a layer keeps of the tokens up to t::

    S_t = diag(a_t) S_{t-1} + k_t v_t^T                        gated linear attention
    S_t = diag(a_t) S_{t-1} + k_t u_t^T                        delta rule, with
          u_t = b_t (v_t - k_t^T diag(a_t) S_{t-1})
    o_t = q_t^T S_t

Unrolled, both are attention without a softmax, under a causal mask of products of decays::

    o_i = sum over j <= i of (sum_c q_ic k_jc a_{j+1,c} ... a_{i,c}) v_j     (u_j for the delta rule)

Source: Sun et al. 2023, "Retentive Network" (arXiv:2307.08621), a_t = gamma; Yang et al. 2023,
"Gated Linear Attention" (arXiv:2312.06635), a_t a vector; Dao and Gu 2024, Mamba-2
(arXiv:2405.21060), a_t a number; Yang et al. 2024, DeltaNet (arXiv:2406.06484) and Gated DeltaNet
(arXiv:2412.06464); Kimi Linear 2025 (arXiv:2510.26692), the delta rule with a_t a vector.
Axes: L tokens, K width of queries and keys, V width of values.
Convention: nothing is scaled; those who scale divide q by sqrt(K). Decays are given by their
logarithms, so that long products do not become 0. One function has three forms: with `chunk` 1 it
is the recurrence, with `chunk` L the parallel form, between them the chunked one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def gated_linear_attention(q, k, v, log_decay, state=None, chunk=64):
    L = q.shape[-2]
    outputs = []
    S = np.zeros((*q.shape[:-2], k.shape[-1], v.shape[-1]), v.dtype) if state is None else state
    for at in range(0, L, chunk):
        part = slice(at, at + chunk)
        x, S = _chunk(*(y[..., part, :] for y in (q, k, v, log_decay)), S)
        outputs.append(x)
    return np.concatenate(outputs, axis=-2), S


def delta_rule(q, k, v, beta, log_decay, state=None, chunk=64):
    L = q.shape[-2]
    outputs = []
    S = np.zeros((*q.shape[:-2], k.shape[-1], v.shape[-1]), v.dtype) if state is None else state
    for at in range(0, L, chunk):
        part = slice(at, at + chunk)
        qc, kc, vc, gc, b = (y[..., part, :] for y in (q, k, v, log_decay, beta[..., None]))
        sums = np.cumsum(gc, axis=-2)
        known = b * np.tril(_scores(kc, kc, sums), -1)
        u = np.linalg.solve(np.eye(known.shape[-1]) + known, b * (vc - (kc * np.exp(sums)) @ S))
        x, S = _chunk(qc, kc, u, gc, S)
        outputs.append(x)
    return np.concatenate(outputs, axis=-2), S


def _chunk(q, k, v, log_decay, state):
    sums = np.cumsum(log_decay, axis=-2)  # (..., C, K) or (..., C, 1)
    last = sums[..., -1:, :]
    out = _scores(q, k, sums) @ v + (q * np.exp(sums)) @ state
    return out, np.exp(last).mT * state + (k * np.exp(last - sums)).mT @ v


def _scores(q, k, sums):
    """Products of queries and keys, each component times its decays between them: (..., C, C)."""
    i = np.arange(q.shape[-2])
    between = sums[..., :, None, :] - sums[..., None, :, :]  # (..., C, C, K or 1)
    decay = np.exp(np.where((i[:, None] >= i)[..., None], between, -np.inf))
    return (q[..., :, None, :] * k[..., None, :, :] * decay).sum(-1)


def retention(q, k, v, decay):
    p = np.arange(q.shape[-2])
    d = p[:, None] - p
    return (q @ k.mT * np.where(d >= 0, decay ** np.maximum(d, 0), 0)) @ v
