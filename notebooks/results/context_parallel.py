"""Let four processes compute one causal attention over 65,536 tokens: context_parallel.csv.

Usage: make ranks     (half a minute of the processor)

Each process is a rank of chapter 66 (`pe_numpy/book/ranks.py`) and is started anew ("spawn"), so it
knows only what it is told. The outputs are compared, for each 509th token, with attention over all
keys. Seconds are of the processor, so that other programs disturb less.
"""

from __future__ import annotations

import csv
import io
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from pe_numpy import attention, causal_mask
from pe_numpy.book.ranks import WIDTH, rank_attention, shards, tokens
from pe_numpy.files import write_whole

TABLE = Path(__file__).with_suffix(".csv")
LENGTH, RANKS, TILE, EVERY = 65_536, 4, 512, 509
MOST = 20e6  # bytes that a process may take for its arrays


def timed(rank: int, name: str, length: int, ranks: int, tile: int) -> tuple:
    """What `rank_attention` gives, and seconds of the processor."""
    start = time.process_time()
    return *rank_attention(rank, name, length, ranks, tile), time.process_time() - start


def measured(length: int = LENGTH, ranks: int = RANKS, tile: int = TILE) -> list[dict]:
    """A row for each kind of shards and each rank."""
    some, everything = np.arange(0, length, EVERY), np.arange(length)
    q, k, v = tokens(everything, tile)
    expected = attention(q[some], k, v, causal_mask(some, everything))[0]
    rows = []
    for name in ("contiguous", "zigzag"):
        outputs = np.zeros((length, WIDTH))
        with ProcessPoolExecutor(ranks, get_context("spawn")) as pool:
            given = [pool.submit(timed, r, name, length, ranks, tile) for r in range(ranks)]
            done = [future.result() for future in given]
        for held, (output, *_) in zip(shards(name, length, ranks), done, strict=True):
            outputs[held] = output
        off = np.abs(outputs[some] - expected).max()
        for rank, (_, tiles, peak, seconds) in enumerate(done):
            if peak > MOST or off > 1e-12:
                raise ValueError(f"{name}, rank {rank}: a peak of {peak} bytes, off by {off}")
            row = {"shards": name, "rank": rank, "tiles": tiles}
            row |= {
                "peak_mb": f"{peak / 1e6:.1f}",
                "seconds": f"{seconds:.1f}",
                "off": f"{off:.0e}",
            }
            rows.append(row)
    return rows


def main() -> None:
    """Measure, write."""
    rows, text = measured(), io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(TABLE, text.getvalue())
    print(text.getvalue(), end="")


if __name__ == "__main__":
    main()
