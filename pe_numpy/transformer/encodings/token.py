"""Place 1, the token vector: schemes that change x (B, L, D)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pe_numpy.absolute.learned import hierarchical, learned
from pe_numpy.absolute.recurrent import floater, recurrent
from pe_numpy.absolute.sinusoidal import sinusoidal, sinusoidal_shift
from pe_numpy.rotary.rope import rope_frequencies
from pe_numpy.transformer.encodings.base import Encoding


@dataclass(frozen=True)
class Sinusoidal(Encoding):
    """Chapter 20: x + PE(pos)."""

    base: float = 10000.0

    def embed(self, params, x, positions):
        return x + sinusoidal(positions, x.shape[-1], self.base).astype(x.dtype)


@dataclass(frozen=True)
class Multiplicative(Sinusoidal):
    """Chapter 22: x times 1 + PE(pos), so that a sine of 0 leaves its component as it is."""

    def embed(self, params, x, positions):
        return x * (1 + sinusoidal(positions, x.shape[-1], self.base)).astype(x.dtype)


@dataclass(frozen=True)
class Learned(Encoding):
    """Chapter 21: x + E[pos], a table of `length` rows."""

    length: int

    def shared(self, rng, shape):
        return {"table": 0.5 * rng.standard_normal((self.length, shape.d_model))}

    def embed(self, params, x, positions):
        return x + learned(params["table"], positions)


@dataclass(frozen=True)
class Hierarchical(Learned):
    """Chapter 21: a table of `length` rows stretched to `length` squared positions."""

    alpha: float = 0.4

    def __post_init__(self):
        super().__post_init__()
        hierarchical([[0.0]], [0], self.alpha)  # refuses an alpha of 1

    def embed(self, params, x, positions):
        return x + hierarchical(params["table"], positions, self.alpha)


@dataclass(frozen=True)
class Recurrent(Encoding):
    """Chapter 22: p_(k+1) = tanh(p_k W + b), learned."""

    def shared(self, rng, shape):
        D = shape.d_model
        turn = sinusoidal_shift(1, D).T  # a step that moves, from the first day
        return {"start": sinusoidal(0, D), "W": 1.1 * turn, "b": np.zeros(D)}

    def embed(self, params, x, positions):
        length = int(positions.max()) + 1 if positions.size else 0
        codes = recurrent(params["start"], lambda p: np.tanh(p @ params["W"] + params["b"]), length)
        return x + codes[positions]


@dataclass(frozen=True)
class Floater(Encoding):
    """Chapter 22: dp/dt = A p from a learned start; A is the flow of the sinusoidal encoding."""

    def shared(self, rng, shape):
        return {"start": sinusoidal(0, shape.d_model)}

    def embed(self, params, x, positions):
        theta = rope_frequencies(x.shape[-1])
        sin, cos = 2 * np.arange(len(theta)), 2 * np.arange(len(theta)) + 1
        A = np.zeros((x.shape[-1], x.shape[-1]), x.dtype)
        A[sin, cos], A[cos, sin] = theta, -theta  # sin' = theta cos, cos' = -theta sin
        times = np.arange(int(positions.max()) + 1) if positions.size else np.arange(0)
        return x + floater(params["start"], lambda p, t: A @ p, times)[positions]
