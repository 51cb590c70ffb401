"""What every encoding is: methods that do nothing, unless a scheme says otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pe_numpy.relative.distance import relative_distance

Params = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """What an encoding must know of its model to make its parameters."""

    d_model: int
    n_heads: int
    n_layers: int
    n_kv_heads: int | None = None  # G heads of keys, where it is not H
    width: int | None = None  # of one head, where it is not D/H

    @property
    def d_head(self) -> int:
        """K, the width of one head."""
        return self.width or self.d_model // self.n_heads


@dataclass(frozen=True)
class Encoding:
    """No position at all (NoPE): all four places do nothing. Every scheme starts from here."""

    @property
    def turns_alone(self) -> bool:
        """Whether a key's turn depends on its own position alone, so that a cache may keep it."""
        return True

    def shared(self, rng: np.random.Generator, sizes: Sizes) -> Params:
        """Parameters that all layers share."""
        return {}

    def layer(self, rng: np.random.Generator, sizes: Sizes) -> Params:
        """Parameters of one layer."""
        return {}

    def for_encoder(self) -> Encoding:
        """Return the encoding for a stack that looks both ways."""
        return self

    def embed(self, params: Params, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Place 1: the token vectors (B, L, D)."""
        return x

    def turn(
        self,
        params: Params,
        q: np.ndarray,
        k: np.ndarray,
        q_positions: np.ndarray,
        k_positions: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Place 2: queries (B, H, L, K) and keys (B, H, S, K)."""
        return q, k

    def gates(self, params: Params, x: np.ndarray) -> np.ndarray | None:
        """What each token says of position, a number a head (B, H, L): for schemes of content.

        A cache keeps it beside the keys; of padding it is set to 0.
        """
        return None

    def scores(
        self,
        params: Params,
        q: np.ndarray,
        k: np.ndarray,
        q_positions: np.ndarray,
        k_positions: np.ndarray,
        gates: np.ndarray | None = None,
        mask: np.ndarray | None = None,
    ) -> np.ndarray:
        """Place 3: the scaled scores (B, H, L, S).

        The gates (B, H, S) are those of all keys; the queries are the last L of them. The mask is
        for schemes that count what a query may attend to; it is None if that is every key.
        """
        return (q * (1 / math.sqrt(q.shape[-1]))) @ np.swapaxes(k, -1, -2)

    def mix(
        self,
        params: Params,
        weights: np.ndarray,
        v: np.ndarray,
        q_positions: np.ndarray,
        k_positions: np.ndarray,
    ) -> np.ndarray:
        """Place 4: the weighted sum (B, H, L, K)."""
        return weights @ v


def as_if_trained(encoding: Encoding, rng: np.random.Generator, sizes: Sizes) -> Params:
    """Parameters of one layer and those shared; what begins as zeros alone is drawn, too."""
    params = {**encoding.shared(rng, sizes), **encoding.layer(rng, sizes)}
    return {
        name: value if np.any(value) else 0.3 * rng.standard_normal(np.shape(value))
        for name, value in params.items()
    }


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw numbers for a table or a projection of (..., fan in, fan out)."""
    return rng.standard_normal(shape) / math.sqrt(shape[-2])


def beside_heads(positions: np.ndarray) -> np.ndarray:
    """(L,) as it is, (B, L) as (B, 1, L)."""
    return positions if positions.ndim == 1 else positions[:, None]


def distances(q_positions: np.ndarray, k_positions: np.ndarray) -> np.ndarray:
    """Distances beside scores of several heads: (L, S), or (B, 1, L, S)."""
    return relative_distance(beside_heads(q_positions), beside_heads(k_positions))
