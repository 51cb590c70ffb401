r"""One causal attention, computed by R ranks in tiles: what each process runs in chapter 66.

Equation: rank r has the queries, keys and values of its own positions. The keys and values of the
other ranks arrive one rank after the other. Each pair of tiles gives outputs and log-sums
(`partial_attention`), and `merge_attention` joins them with those so far.
Source: Liu et al. 2023, "Ring Attention" (arXiv:2310.01889); the order of work as in
`ring_flash_attn/zigzag_ring_flash_attn.py` of zhuzilin/ring-flash-attention at 8996282, which
halves the blocks instead of cutting them into tiles.
Axes: L tokens, R ranks, K width of queries, keys and values.
Convention: positions are those of the whole text. A message between processes is replaced by a
seed: `tokens` gives the same numbers in every process.
"""

from __future__ import annotations

import tracemalloc

import numpy as np

from pe_numpy import checks
from pe_numpy.rotary.rope import rope
from pe_numpy.transformer.attention import causal_mask
from pe_numpy.transformer.serving import merge_attention, partial_attention, zigzag

WIDTH = 16


def shards(name: str, length: int, ranks: int) -> np.ndarray:
    """Positions (R, L/R) of each rank: "contiguous" or "zigzag"."""
    checks.choice("shards", "name", name, ("contiguous", "zigzag"))
    held = zigzag(length, ranks)
    return held if name == "zigzag" else np.sort(held, axis=None).reshape(ranks, -1)


def tokens(positions: np.ndarray, tile: int) -> np.ndarray:
    """Rotated queries, rotated keys, and values (3, N, K), a seed per tile of the text."""
    made = np.empty((3, len(positions), WIDTH))
    for start in range(0, len(positions), tile):
        at = positions[start : start + tile]
        q, k, v = np.random.default_rng(at[0] // tile).standard_normal((3, tile, WIDTH))
        made[:, start : start + tile] = rope(q, at), rope(k, at), v
    return made


def rank_attention(
    rank: int, name: str, length: int, ranks: int, tile: int
) -> tuple[np.ndarray, int, int]:
    """What one rank computes: outputs (L/R, K), tiles, and the peak of its memory in bytes.

    The peak is that of `tracemalloc`, to which NumPy reports its arrays.
    """
    if (length // (2 * ranks)) % tile:
        raise ValueError(
            f"rank_attention: tile must divide the blocks of {length // (2 * ranks)} tokens; got "
            f"{tile}"
        )
    tracemalloc.start()
    try:
        held = shards(name, length, ranks)
        own = held[rank]
        q = tokens(own, tile)[0].copy()  # of all that it made, only this is kept
        outputs, log_sums = np.zeros((len(own), WIDTH)), np.full(len(own), -np.inf)
        done = 0
        for step in range(ranks):  # first its own keys, then those of the rank before it ...
            there = held[(rank - step) % ranks]
            _, k, v = tokens(there, tile)
            for a in range(0, len(own), tile):
                rows = slice(a, a + tile)
                for b in range(0, len(there), tile):
                    if there[b] > own[a]:  # all of these keys come later
                        continue
                    columns = slice(b, b + tile)
                    mask = causal_mask(own[rows], there[columns]) if there[b] == own[a] else None
                    new = partial_attention(q[rows], k[columns], v[columns], mask)
                    so_far = outputs[rows], log_sums[rows]
                    outputs[rows], log_sums[rows] = merge_attention(*zip(so_far, new, strict=True))
                    done += 1
        return outputs, done, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
