"""Measure what each token costs with and without the cache, for chapter 63: decoding.npz and .md.

Usage: OPENBLAS_NUM_THREADS=1 MALLOC_TRIM_THRESHOLD_=1000000000 MALLOC_MMAP_THRESHOLD_=33554432 \
       python notebooks/results/make_decoding.py     (about half a minute)

The two MALLOC settings (of glibc) make the process keep memory that it has freed. Without them large
score arrays go back to the system after each token and are fetched anew, which from some length on
doubles the times without a cache.

The model is that of `bench_models.md`: two pre-norm layers, D = 64, four heads, 51 tokens, RoPE,
float32. Processor time, so that other programs disturb less; each token is timed in every round and
its best round counts, since noise only ever adds.
"""

from __future__ import annotations

import platform
import re
from pathlib import Path
from time import process_time

import numpy as np

from pe_numpy import Cache, Model, Sizes, decode, init_params, save
from pe_numpy.files import write_whole
from pe_numpy.transformer.encodings import Rope

HERE = Path(__file__).parent
TOKENS, ROUNDS = 256, 20
MARKS = (1, 16, 32, 64, 128, 256)


def times(cached: bool) -> np.ndarray:
    """Milliseconds of processor time of each of 256 tokens, in the order of writing."""
    model = Model(4, Rope())
    params = init_params(Sizes(51, 64, 256, n_layers=2), model, np.random.default_rng(0))
    tokens = np.random.default_rng(1).integers(0, 51, (1, TOKENS))
    cache, marks = Cache(1, TOKENS), [process_time()]
    for n in range(TOKENS):
        if cached:
            decode(params, model, tokens[:, n : n + 1], cache=cache)
        else:
            decode(params, model, tokens[:, : n + 1])
        marks.append(process_time())
    return 1000 * np.diff(marks)


def main() -> None:
    """Measure both sides in turns, write both files."""
    best = {name: np.full(TOKENS, np.inf) for name in ("with a cache", "without")}
    for _ in range(ROUNDS):
        for name in best:
            best[name] = np.minimum(best[name], times(name == "with a cache"))
    save(HERE / "decoding.npz", {name: ms.astype(np.float32) for name, ms in best.items()})
    processor = re.search(r"Processor: (.*?)\. ", (HERE / "bench_models.md").read_text())
    text = [
        "# What one token costs, with the cache and without",
        "",
        "Written by `notebooks/results/make_decoding.py`, with `decoding.npz`, which holds every token.",
        "Two layers, D = 64, one sequence, float32; milliseconds of processor time, the best of",
        "20 rounds. Freed memory was kept (see the program).",
        f"Processor: {processor[1] if processor else 'unknown'}, one thread."
        f" Python {platform.python_version()}, numpy {np.__version__}.",
        "",
        "| token number | with a cache | without |",
        "|---|---|---|",
        *(
            f"| {n} | {best['with a cache'][n - 1]:.2f} | {best['without'][n - 1]:.2f} |"
            for n in MARKS
        ),
        f"| all {TOKENS} | {best['with a cache'].sum():.0f} | {best['without'].sum():.0f} |",
    ]
    write_whole(HERE / "decoding.md", "\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
