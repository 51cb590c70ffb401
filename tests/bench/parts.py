"""Where the time of a row goes: its parts, timed alone, beside the whole of both sides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np
from measure import Side

from pe_numpy.relative.distance import ROWS
from pe_numpy.transformer.attention import weigh


class Part(NamedTuple):
    """One line of the table."""

    row: str
    words: str
    call: Side


def times(parts: Sequence[Part], rounds: int = 15) -> list[float]:
    """Best time of each part."""
    best = []
    for part in parts:
        seconds = []
        for _ in range(rounds):
            start = perf_counter()
            part.call()  # its result is freed before the clock stops
            seconds.append(perf_counter() - start)
        best.append(min(seconds))
    return best


def repeat(count: int, call: Side) -> Side:
    """Do the same `count` times; each result is freed before the next."""

    def all_of_them() -> None:
        for _ in range(count):
            call()

    return all_of_them


def parts(
    normal: Callable[..., np.ndarray], B: int, H: int, L: int, K: int, block: int = 256
) -> list[Part]:
    """Parts of the rows that lie above their goals or near them, at the L of the goal."""
    q, k, v = normal(3, B, H, L, K)
    k_t = np.swapaxes(k, -1, -2)
    scores = q @ k_t / math.sqrt(K)
    weights = weigh(scores.copy(), None)
    few = np.ascontiguousarray(scores[..., :block, :block])
    room, top, times_all = np.empty_like(few), few.max(axis=-1, keepdims=True), (L // block) ** 2
    line = np.swapaxes(normal(2 * L - 1, K), -1, -2)  # a vector for each distance
    starts = range(0, L, ROWS)
    n, spare = K // 2, np.empty_like(q)
    cos, sin = normal(2, L, K)

    def largest() -> np.ndarray:
        return few.max(axis=-1, keepdims=True)

    def products_by_distance() -> None:
        for s in starts:
            q[..., s : s + ROWS, :] @ line[:, L - ROWS - s : 2 * L - 1 - s]

    def swap_halves() -> np.ndarray:
        return np.concatenate([q[..., n:], q[..., :n]], axis=-1)

    lists: dict[str, list[tuple[str, Side]]] = {
        "RoPE half-split, tables given": [
            ("x cos", lambda: q * cos),
            ("the halves exchanged", swap_halves),
            ("times sin, in place", lambda: np.multiply(q, sin, out=spare)),
            ("added, in place", lambda: np.add(q, k, out=spare)),
        ],
        "Shaw, scores": [
            ("q k^T", lambda: q @ k_t),
            ("q r^T, 64 queries with the distances that they see", products_by_distance),
        ],
        "attention": [
            ("q k^T", lambda: q @ k_t),
            ("softmax, 64 queries at a time, in place", lambda: weigh(weights, None)),
            ("weights v", lambda: weights @ v),
        ],
        "attention_blockwise": [
            ("q k^T", repeat(times_all, lambda: q[..., :block, :] @ k_t[..., :block])),
            ("largest scores", repeat(times_all, largest)),
            ("s - m', in place", repeat(times_all, lambda: np.subtract(few, top, out=room))),
            ("e^(s - m'), in place", repeat(times_all, lambda: np.exp(room, out=few))),
            ("their sums", repeat(times_all, lambda: few.sum(axis=-1, keepdims=True))),
            ("weights v", repeat(times_all, lambda: few @ v[..., :block, :])),
        ],
    }
    return [Part(row, words, call) for row, own in lists.items() for words, call in own]
