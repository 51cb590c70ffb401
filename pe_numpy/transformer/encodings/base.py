"""What every encoding is: methods that do nothing, unless a scheme says otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pe_numpy import checks
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.masks import Causal

Params = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """What an encoding must know of its model to make its parameters."""

    d_model: int
    n_heads: int
    kv_heads: int | None = None  # G heads of keys, where it is not H
    width: int | None = None  # of one head, where it is not D/H

    @property
    def d_head(self) -> int:
        """K, the width of one head."""
        return self.width or self.d_model // self.n_heads

    @property
    def n_kv_heads(self) -> int:
        """G, the heads of keys and values."""
        return self.kv_heads or self.n_heads


def _layout(owner: str, name: str, value: Any) -> None:
    checks.choice(owner, name, value, ("interleaved", "half"))


def _scaling(owner: str, name: str, value: Any) -> None:
    if value is not None and not callable(value):
        raise ValueError(f"{owner}: {name} must be a function of K and the length; got {value!r}")


def _slopes(owner: str, name: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, tuple) or not value:
        raise ValueError(f"{owner}: {name} must be a tuple, one for each head; got {value!r}")
    for slope in value:
        checks.number(owner, name, slope)


Rule = Callable[[str, str, Any], Any]
RULES: dict[str, Rule] = {  # of the fields of all encodings, by name
    **dict.fromkeys(("length", "clip", "num_buckets", "max_distance", "hidden"), checks.integer),
    **dict.fromkeys(("window", "group", "size"), checks.integer),
    **dict.fromkeys(("base", "scale_base", "threshold", "floor_scale", "scale"), checks.positive),
    **dict.fromkeys(("alpha", "centre", "start"), checks.number),
    "d": checks.even,
    "bidirectional": checks.flag,
    "layout": _layout,
    "scaling": _scaling,
    "slopes": _slopes,
}


@dataclass(frozen=True)
class Encoding:
    """No position at all (NoPE): all four places do nothing. Every scheme starts from here."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name in RULES:
                RULES[field.name](type(self).__name__, field.name, getattr(self, field.name))

    @property
    def needs(self) -> Causal | None:
        """The mask without which it computes something else, if there is one."""
        return None

    @property
    def turns_alone(self) -> bool:
        """Whether a key's turn depends only on its own position, so that a cache may keep it."""
        return True

    def shared(self, rng: np.random.Generator, shape: Shape) -> Params:
        """Parameters that all layers share."""
        return {}

    def layer(self, rng: np.random.Generator, shape: Shape) -> Params:
        """Parameters of one layer."""
        return {}

    def for_encoder(self) -> Encoding:
        """Return the encoding for a stack that looks both ways."""
        return self

    def embed(self, params: Params, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Place 1: the token vectors (B, L, D)."""
        return x

    def turn(
        self, params: Params, q: np.ndarray, k: np.ndarray, context: Context
    ) -> tuple[np.ndarray, np.ndarray]:
        """Place 2: queries (B, H, L, K) and keys (B, H, S, K).

        The keys are all of the context's or, if a key's turn depends only on its own position,
        the newest.
        """
        return q, k

    def gates(self, params: Params, x: np.ndarray) -> np.ndarray | None:
        """What each token says of position, a number per head (B, H, L): for schemes of content.

        A cache keeps it beside the keys; of padding it is set to 0.
        """
        return None

    def scores(self, params: Params, q: np.ndarray, k: np.ndarray, context: Context) -> np.ndarray:
        """Place 3: the scaled scores (B, H, L, S)."""
        return (q * (1 / math.sqrt(q.shape[-1]))) @ np.swapaxes(k, -1, -2)

    def mix(
        self, params: Params, weights: np.ndarray, v: np.ndarray, context: Context
    ) -> np.ndarray:
        """Place 4: the weighted sum (B, H, L, K)."""
        return weights @ v


class Bias(Encoding):
    """A number that is added to each score, whatever is asked: a scheme says which."""

    def bias(self, params: Params, context: Context) -> np.ndarray:
        """(H, L, S), or (B, H, L, S)."""
        raise NotImplementedError

    def scores(self, params, q, k, context):
        context.heads, context.dtype = q.shape[-3], q.dtype
        bias = self.bias(params, context)  # first: what it needs meanwhile is free again
        return super().scores(params, q, k, context) + bias


def as_if_trained(encoding: Encoding, rng: np.random.Generator, shape: Shape) -> Params:
    """Parameters of one layer and those shared; what begins as only zeros is also drawn."""
    params = {**encoding.shared(rng, shape), **encoding.layer(rng, shape)}
    return {
        name: value if np.any(value) else 0.3 * rng.standard_normal(np.shape(value))
        for name, value in params.items()
    }


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw numbers for a table or a projection of (..., fan in, fan out)."""
    return rng.standard_normal(shape) / math.sqrt(shape[-2])
