"""What a model keeps of the tokens that it has read, whatever its layers make of them.

Axes: B batch, L new tokens, S all tokens.
Convention: tokens are padded on the left, and places count real tokens from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pe_numpy import checks
from pe_numpy.transformer.attention import causal_mask, window_mask
from pe_numpy.transformer.model import real_positions


class Cache:
    """Room for the tokens of a batch; it grows with each call of `logits`.

    Parameters
    ----------
    batch, capacity : int
        Number of sequences, and of tokens that each may have.

    Attributes
    ----------
    length : int
        Tokens held.
    positions : (B, 1, S) integer array
        What the encoding is told of them; those of the newest tokens are the last.
    real : (B, 1, 1, S) boolean array
        False where a token is padding.
    """

    def __init__(self, batch: int, capacity: int) -> None:
        self.batch = checks.integer("Cache", "batch", batch)
        self.capacity = checks.integer("Cache", "capacity", capacity)
        self.length = self._coming = 0
        self.positions = np.zeros((batch, 1, 0), np.int64)
        self.real = np.zeros((batch, 1, 1, 0), bool)
        self.memory: tuple[Any, ...] = ()  # source, what was made of it, which of it may be seen
        self.watch: dict[int, np.ndarray] | None = None  # weights by layer, if somebody looks
        self._held: dict[tuple, np.ndarray] = {}

    @contextmanager
    def reading(
        self, real: np.ndarray, places: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> Iterator[np.ndarray]:
        """Read new tokens, (B, L) True where real, at the positions (B, 1, L) that this gives.

        They are held once all layers have written; a call that fails leaves the cache as it was.
        """
        before = {**vars(self), "_held": dict(self._held)}
        try:
            yield self._begin(real, places)
            self.length += self._coming
        except BaseException:
            vars(self).update(before)
            raise

    def _begin(
        self, real: np.ndarray, places: Callable[[np.ndarray], np.ndarray] | None
    ) -> np.ndarray:
        coming = real.shape[1]
        if self.length + coming > self.capacity:
            raise ValueError(
                f"Cache: there is room for {self.capacity} tokens; got {self.length + coming}, "
                "make it larger"
            )
        self._coming = coming
        self.real = np.concatenate([self.real[..., : self.length], real[:, None, None]], axis=-1)
        self._order = real_positions(self.real[:, 0])  # (B, 1, S)
        new = self._order[..., self.length :]
        new = new if places is None else places(new)
        self.positions = np.concatenate([self.positions[..., : self.length], new], axis=-1)
        return new

    def mask(self, window: int | None = None) -> np.ndarray:
        """(B, 1, L, S), True = may attend: real tokens, the own and earlier, at most `window`."""
        order = self._order
        new = order[..., self.length :]
        seen = causal_mask(new, order) if window is None else window_mask(new, order, window)
        return seen & self.real

    def extend(self, layer: int | str, *newest: np.ndarray) -> tuple[np.ndarray, ...]:
        """Write what a layer made of the new tokens, (..., L, width) each; return that of all."""
        start, end = self.length, self.length + self._coming
        for n, new in enumerate(newest):
            if (layer, n) not in self._held:
                shape = (*new.shape[:-2], self.capacity, new.shape[-1])
                self._held[layer, n] = np.zeros(shape, new.dtype)
            self._held[layer, n][..., start:end, :] = new
        return tuple(self._held[layer, n][..., :end, :] for n in range(len(newest)))

    def once(self, layer: int | str, make: Callable[[], tuple[np.ndarray, ...]]) -> tuple:
        """Make what a layer needs of the source, at the first call alone."""
        if ("source", layer) not in self._held:
            self._held["source", layer] = make()  # type: ignore[assignment]
        return self._held["source", layer]  # type: ignore[return-value]

    def again(self) -> None:
        """Count all tokens as new: the layers make anew, elsewhere, what is held of them."""
        self.length, self._coming, self._held = 0, self.length + self._coming, {}

    def look(self, layer: int, weights: np.ndarray) -> None:
        """Keep the attention weights (B, H, L, S) of the call at hand, if `watch` is a dict."""
        if self.watch is not None:
            self.watch[layer] = weights

    def take(self, rows: np.ndarray) -> None:
        """Keep these sequences, in this order: the beams that go on."""
        self.positions, self.real = self.positions[rows], self.real[rows]
        self.memory = tuple(None if x is None else x[rows] for x in self.memory)
        for key, held in self._held.items():
            self._held[key] = (
                tuple(x[rows] for x in held) if isinstance(held, tuple) else held[rows]
            )
        self.batch = len(rows)

    def cut(self, length: int) -> None:
        """Forget all tokens but the first `length`."""
        if checks.integer("Cache.cut", "length", length, least=0) > self.length:
            raise ValueError(
                f"Cache.cut: length must be at most the tokens held, {self.length}; got {length}"
            )
        self.length = length
