"""Which keys a query may attend to: all, all up to itself, a window of them, or its own chunk.

Axes: L queries, S keys.
Convention: True = may attend. A model has one mask, or a tuple of them: a pattern of layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pe_numpy import checks
from pe_numpy.transformer.attention import causal_mask, chunk_mask, window_mask


@dataclass(frozen=True)
class Full:
    """A query attends to all keys: the encoder, and no decoder.

    Examples
    --------
    >>> Full().mask([0, 1], [0, 1]) is None
    True
    """

    def mask(self, q_positions: np.ndarray, k_positions: np.ndarray) -> np.ndarray | None:
        """(..., L, S), True = may attend; None where every query may attend to every key."""
        return None


@dataclass(frozen=True)
class Causal(Full):
    """A query attends to itself and to all before it (Vaswani et al. 2017, section 3.2.3).

    Examples
    --------
    >>> Causal().mask([0, 1], [0, 1]).tolist()
    [[True, False], [True, True]]
    """

    def mask(self, q_positions: np.ndarray, k_positions: np.ndarray) -> np.ndarray:
        """(..., L, S), True = may attend."""
        return causal_mask(q_positions, k_positions)


@dataclass(frozen=True)
class Window(Causal):
    """A query attends to the last `size` keys, its own among them, and to the first `sinks`.

    Sliding windows: Beltagy et al. 2020 (arXiv:2004.05150); attention sinks: Xiao et al. 2023
    (arXiv:2309.17453).

    Examples
    --------
    >>> Window(2, sinks=1).mask([3], [0, 1, 2, 3]).tolist()
    [[True, False, True, True]]
    """

    size: int
    sinks: int = 0

    def __post_init__(self) -> None:
        checks.integer("Window", "size", self.size)
        checks.integer("Window", "sinks", self.sinks, least=0)

    def mask(self, q_positions: np.ndarray, k_positions: np.ndarray) -> np.ndarray:
        """(..., L, S), True = may attend."""
        return window_mask(q_positions, k_positions, self.size, self.sinks)


@dataclass(frozen=True)
class Chunk(Causal):
    """A query attends to the keys of its own chunk of `size` positions, up to itself (Llama 4).

    Examples
    --------
    >>> Chunk(2).mask([2], [0, 1, 2, 3]).tolist()
    [[False, False, True, False]]
    """

    size: int

    def __post_init__(self) -> None:
        checks.integer("Chunk", "size", self.size)

    def mask(self, q_positions: np.ndarray, k_positions: np.ndarray) -> np.ndarray:
        """(..., L, S), True = may attend."""
        return chunk_mask(q_positions, k_positions, self.size)
