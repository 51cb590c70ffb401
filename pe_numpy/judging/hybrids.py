r"""Recurrent layers in the place of attention, for the small hybrids of the study.

Equation: gated linear attention and the gated delta rule, with one decay per token and head, in
their parallel forms; each output is divided by its root mean square::

    P_ij = (q_i . k_j) a_{j+1} ... a_i     o_i = sum over j <= i of P_ij v_j, the delta rule u_j
    u_i = beta_i (v_i - sum over j < i of (k_i . k_j) a_{j+1} ... a_i u_j)

Source: as of `pe_numpy.relative.recurrence`, whose functions give the same numbers (a test).
Axes: B batch, H heads, L queries, S all tokens, K width of a head.
Convention: a layer is an encoding, since a model takes one for each layer: its methods put P where
attention has its weights. Nothing is rotated, and no token may be padding.
Differs from the models of chapter 39: theirs have a short convolution in front, and a gate behind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pe_numpy.transformer.encodings import Forgetting
from pe_numpy.transformer.encodings.base import normal
from pe_numpy.transformer.layers import standardize

EPS = 1e-6


@dataclass(frozen=True)
class GatedLinear(Forgetting):
    """Linear attention whose tokens choose their decay, sigmoid(`start`) where they say nothing."""

    start: float = 2.0

    def scores(self, params, q, k, context):
        sums = np.cumsum(context.gates[:, : q.shape[1]], axis=-1)  # (B, H, S)
        between = sums[..., :, None] - sums[..., None, :]
        past = np.tri(k.shape[-2], dtype=bool)
        context.decays = np.exp(np.where(past, between, -np.inf))  # (B, H, S, S)
        rows = context.decays[..., k.shape[-2] - q.shape[-2] :, :]
        context.products, context.keys = self.products(q, k) * rows, k
        return context.products  # the softmax of it is not used

    def products(self, q, k):
        """q_i . k_j / sqrt(K)."""
        return (q * (1 / math.sqrt(q.shape[-1]))) @ np.swapaxes(k, -1, -2)

    def mix(self, params, weights, v, context):
        return standardize(context.products @ self.written(v, context), EPS, centre=False)[0]

    def written(self, v, context):
        """What each token adds to the state."""
        return v


@dataclass(frozen=True)
class GatedDelta(GatedLinear):
    """The delta rule: a token replaces a share beta of what the state holds for its key."""

    def layer(self, rng, shape):
        H = shape.n_heads
        betas = {"W_beta": normal(rng, shape.d_model, H), "b_beta": np.zeros(H)}
        return {**super().layer(rng, shape), **betas}

    def gates(self, params, x):
        beta = np.swapaxes(x @ params["W_beta"] + params["b_beta"], -1, -2)  # (B, H, L)
        return np.concatenate([super().gates(params, x), 1 / (1 + np.exp(-beta))], axis=1)

    def products(self, q, k):
        return unit(q) @ np.swapaxes(unit(k), -1, -2)

    def written(self, v, context):
        beta = context.gates[:, v.shape[1] :, :, None]  # (B, H, S, 1)
        S = v.shape[-2]
        known = beta * self.products(context.keys, context.keys) * context.decays
        known = np.where(np.tri(S, k=-1, dtype=bool), known, 0.0)  # earlier tokens alone
        return np.linalg.solve(np.eye(S, dtype=v.dtype) + known, beta * v)


def unit(x):
    """Vectors of length 1."""
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + EPS)
