"""Bare scores of functions: what the field `scores` of an exercise was made of.

Nothing reads that field: it goes with this file when no exercise names it any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pe_numpy.judging.properties import Scores


def dot(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Scores (L, S) of queries and keys without positions."""
    return q @ k.T / math.sqrt(q.shape[-1])


def apart(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Distances (L, S) between positions."""
    return i[:, None] - j


def turning(turn: Callable) -> Scores:
    """Scores of queries and keys that one function turns."""
    return lambda q, k, i, j: dot(turn(q, i), turn(k, j))


def adding(bias: Callable) -> Scores:
    """Scores with a bias (1, L, S), a function of positions."""
    return lambda q, k, i, j: dot(q, k) + bias(i, j)[0]


def in_token(code: Callable) -> Scores:
    """Scores of tokens with a code (L, K) added before they are projected."""

    def scores(q: np.ndarray, k: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        W_q, W_k = random(2, q.shape[-1], q.shape[-1])
        return dot((q + code(i)) @ W_q, (k + code(j)) @ W_k)

    return scores


def random(*shape: int) -> np.ndarray:
    """Parameters, the same at every call."""
    return np.random.default_rng(0).standard_normal(shape)
