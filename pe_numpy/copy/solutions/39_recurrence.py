"""Solutions of the exercises of chapter 39."""

import numpy as np


def retention(q, k, v, decay):
    positions = np.arange(q.shape[-2])
    distance = positions[:, None] - positions
    powers = np.asarray(decay)[..., None, None] ** np.maximum(distance, 0)
    mask = np.where(distance >= 0, powers, 0).astype(q.dtype)
    return ((q @ np.swapaxes(k, -1, -2)) * mask) @ v


def gated_linear_attention(q, k, v, log_decay, state=None):
    if state is None:
        state = np.zeros((*q.shape[:-2], k.shape[-1], v.shape[-1]), v.dtype)
    decay = np.exp(log_decay)
    outputs = np.zeros_like(v)
    for t in range(q.shape[-2]):
        state = decay[..., t, :, None] * state
        state = state + k[..., t, :, None] * v[..., t, None, :]
        outputs[..., t, :] = (q[..., t, None, :] @ state)[..., 0, :]
    return outputs, state


def delta_rule(q, k, v, beta, log_decay=None, state=None):
    if state is None:
        state = np.zeros((*q.shape[:-2], k.shape[-1], v.shape[-1]), v.dtype)
    decay = np.ones_like(q) if log_decay is None else np.exp(log_decay)
    outputs = np.zeros_like(v)
    for t in range(q.shape[-2]):
        state = decay[..., t, :, None] * state
        old = (k[..., t, None, :] @ state)[..., 0, :]
        new = beta[..., t, None] * (v[..., t, :] - old)
        state = state + k[..., t, :, None] * new[..., None, :]
        outputs[..., t, :] = (q[..., t, None, :] @ state)[..., 0, :]
    return outputs, state
