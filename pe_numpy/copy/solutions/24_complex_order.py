"""Solutions of the exercises of chapter 24."""

import math

import numpy as np


def complex_order(amplitude, frequency, phase, positions):
    angles = frequency * np.asarray(positions)[..., None] + phase
    return (amplitude * np.exp(1j * angles)).astype(np.result_type(amplitude, np.complex64))


def complex_attention(z_q, z_k, z_v):
    scores = (z_q @ np.swapaxes(z_k, -1, -2).conj()).real / math.sqrt(z_q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ z_v, weights
