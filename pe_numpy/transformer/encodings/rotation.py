"""Place 2, queries and keys: schemes that turn q (B, H, L, K) and k (B, H, S, K)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pe_numpy.rotary.pope import pope, pope_frequencies
from pe_numpy.rotary.rope import rope, rope_frequencies
from pe_numpy.rotary.values import rotary_values
from pe_numpy.rotary.xpos import xpos
from pe_numpy.transformer.context import beside_heads
from pe_numpy.transformer.encodings.base import Encoding
from pe_numpy.transformer.length import attention_temperature


class _NoLength:
    """Stands where a length is expected; whoever looks at it fails."""

    def __bool__(self):
        raise TypeError("there is no length")

    def __eq__(self, other):
        raise TypeError("there is no length")


@dataclass(frozen=True)
class Rope(Encoding):
    """Chapters 40, 41 and 50: q and k are rotated.

    `scaling` takes K and the length of the sequence, and gives frequencies, or frequencies and
    YaRN's attention factor, which multiplies the components that turn. If it never looks at the
    length, a key's turn depends only on its own position.
    """

    base: float = 10000.0
    layout: str = "interleaved"
    scaling: Callable[[int, Any], Any] | None = None

    @cached_property
    def turns_alone(self):
        try:
            return self.scaling is None or self.scaling(64, _NoLength()) is not None
        except Exception:  # it looked (or does not serve this K: turning again is always right)
            return False

    def turn(self, params, q, k, context):
        K, factors = q.shape[-1], None
        if self.scaling is None:
            frequencies = rope_frequencies(K, self.base)
        else:
            length = int(context.k_positions.max()) + 1 if context.k_positions.size else 1
            frequencies = self.scaling(K, length)
            if isinstance(frequencies, tuple):
                frequencies, factor = frequencies
                factors = np.where(np.arange(K) < 2 * len(frequencies), factor, 1)  # (K,)
                factors = factors.astype(q.dtype)
        i, j = context.q_positions, context.positions_of(k)
        if i.shape == j.shape == (1,) and i[0] == j[0]:  # one token of a decoding: one call
            H, both = q.shape[-3], rope(np.concatenate([q, k], -3), i, frequencies, self.layout)
            q, k = both[..., :H, :, :], both[..., H:, :, :]
        else:
            q = rope(q, beside_heads(i), frequencies, self.layout)
            k = rope(k, beside_heads(j), frequencies, self.layout)
        return (q, k) if factors is None else (q * factors, k * factors)


@dataclass(frozen=True)
class Tempered(Encoding):
    """Chapter 51: no position, except that queries grow with it: Llama 4's layers without RoPE."""

    floor_scale: int = 8192
    scale: float = 0.1

    def turn(self, params, q, k, context):
        factor = attention_temperature(context.q_positions, self.floor_scale, self.scale)
        return q * beside_heads(factor)[..., None].astype(q.dtype), k


@dataclass(frozen=True)
class XPos(Encoding):
    """Chapter 45: q and k are rotated and decay with distance; for decoders, which mask the future.

    The centre is fixed, so that a cache may keep rotated keys.
    """

    base: float = 10000.0
    scale_base: float = 512.0
    centre: float = 0.0
    layout: str = "interleaved"

    def turn(self, params, q, k, context):
        frequencies = rope_frequencies(q.shape[-1], self.base)
        rest = self.centre, self.layout
        i, j = beside_heads(context.q_positions), beside_heads(context.positions_of(k))
        q = xpos(q, i, frequencies, self.scale_base, False, *rest)
        return q, xpos(k, j, frequencies, self.scale_base, True, *rest)


@dataclass(frozen=True)
class Pope(Encoding):
    """Chapter 45: content is the radius, position the angle; keys have a learned phase.

    Turned queries and keys are 2K wide; scores are divided by the root of K all the same.
    """

    base: float = 10000.0

    def layer(self, rng, shape):
        return {"phase": np.zeros((shape.n_kv_heads, shape.d_head))}  # as in PoPE-pytorch

    def turn(self, params, q, k, context):
        frequencies = pope_frequencies(q.shape[-1], self.base)
        phase = params["phase"][:, None]  # (G, 1, K)
        i, j = beside_heads(context.q_positions), beside_heads(context.positions_of(k))
        return pope(q, i, frequencies) * math.sqrt(2), pope(k, j, frequencies, phase)


@dataclass(frozen=True)
class RotaryValues(Rope):
    """Chapter 45: RoPE, and values that are rotated by their distance (place 4)."""

    def mix(self, params, weights, v, context):
        frequencies = rope_frequencies(v.shape[-1], self.base)
        places = beside_heads(context.q_positions), beside_heads(context.k_positions)
        return rotary_values(weights, v, *places, frequencies, self.layout)
