"""Place 2, queries and keys: schemes that turn q (B, H, L, K) and k (B, H, S, K)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pe_numpy.rotary.rope import rope, rope_frequencies
from pe_numpy.transformer.encodings.base import Encoding, beside_heads


class _NoLength:
    """Stands where a length is expected; whoever looks at it fails."""

    def __bool__(self):
        raise TypeError("there is no length")

    def __eq__(self, other):
        raise TypeError("there is no length")


@dataclass(frozen=True)
class Rope(Encoding):
    """Chapters 40, 41 and 50: q and k turn.

    `scaling` takes K and the length of the sequence, and gives frequencies, or frequencies and
    YaRN's attention factor, which multiplies the components that turn. If it never looks at the
    length, a key's turn depends on its own position alone.
    """

    base: float = 10000.0
    layout: str = "interleaved"
    scaling: Callable[[int, Any], Any] | None = None

    @cached_property
    def turns_alone(self):
        try:
            return self.scaling is None or self.scaling(64, _NoLength()) is not None
        except Exception:  # it looked (or does not serve this K: turning anew is always right)
            return False

    def turn(self, params, q, k, q_positions, k_positions):
        K, factors = q.shape[-1], None
        if self.scaling is None:
            frequencies = rope_frequencies(K, self.base)
        else:
            length = int(k_positions.max()) + 1 if k_positions.size else 1
            frequencies = self.scaling(K, length)
            if isinstance(frequencies, tuple):
                frequencies, factor = frequencies
                factors = np.where(np.arange(K) < 2 * len(frequencies), factor, 1)  # (K,)
                factors = factors.astype(q.dtype)
        if q.shape[-2] == 1 and q_positions is k_positions:  # one token of a decoding: one call
            heads, both = q.shape[-3], np.concatenate([q, k], axis=-3)
            both = rope(both, beside_heads(q_positions), frequencies, self.layout)
            q, k = both[..., :heads, :, :], both[..., heads:, :, :]
        else:
            q = rope(q, beside_heads(q_positions), frequencies, self.layout)
            k = rope(k, beside_heads(k_positions), frequencies, self.layout)
        return (q, k) if factors is None else (q * factors, k * factors)
