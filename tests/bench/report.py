"""The tables of the benchmark, and what their numbers depend on."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from measure import Measured, Scheme
from parts import Part

RESULTS = Path(__file__).parents[2] / "notebooks" / "results" / "bench.md"
INTRODUCTION = """\
# pe_numpy beside PyTorch

Written by `make bench`. *The documents' form* is the PyTorch code of the documents that the book
answers, written anew in `tests/bench/documents.py`. For Transformer-XL and DeBERTa these have
formulas alone: there a vector is gathered for each pair and head, as their Shaw does for each pair.
*An expert's gather* multiplies with each row of the table and gathers the products. *The released
form* is that of a scheme's own code, for every pair or with its own short cut, written anew, too.
*Keys made*: latent attention with a key for each head and token; ours is absorbed.

- Sizes: B, H, K = 2, 8, 64 in float32; "one head" is B, H = 1, 1.
- Time: the best round. The sides take turns, two or more each (three up to the goal's L); freeing a
  result is part of its side's turn. Scores start from q, k and positions, biases from positions.
- Memory: the most that was held at once beyond the inputs, result included; MB are 10^6 bytes. By
  `tracemalloc` for NumPy, by the allocations that `torch.profiler` lists for PyTorch; the buffers
  of the BLAS libraries are in neither. The result of a bias is a window: "result" is what it shows.
- Before any clock ran, the results of both sides agreed to 1e-4 (or to 1e-4 + 2e-7 L, where the
  documents compute angles in float32; to 1e-3 + 1e-6 L for Sandwich's sum of cosines, and to 5e-3
  for CoPE's sums of gates, which a vector of the table multiplies).
- "needs" stands where a PyTorch form would need more than 6 GB; it was not run.
- Both libraries ask Linux for huge pages: NumPy by itself, PyTorch because `make bench` sets
  `THP_MEM_ALLOC_ENABLE=1`, which makes its large arrays cheaper."""

SHARES = """\
Rows above their goal or close to it. Each part was timed alone, at the goal's L, and in place where
our code works in place. *The rest* is what the whole takes beyond them: memory that is touched for
the first time, smaller steps, calls."""


def report(
    schemes: Sequence[Scheme],
    measured: dict[tuple[Scheme, int], Measured],
    parts: Sequence[tuple[Part, float]] = (),
) -> str:
    """All that is printed and kept. Lines that were not measured are left out."""
    judged = [(s, measured[s, s.at]) for s in schemes if (s, s.at) in measured]
    grown = [s for s in schemes if len(s.sizes) > 1 and any((s, L) in measured for L in s.sizes)]
    time = [
        [s.name, s.beside, str(s.at), milliseconds(m.ours), milliseconds(m.theirs),
         number(m.ours / m.theirs), *verdict(m.ours / m.theirs, s.goal, f"≤ {s.goal}")]
        for s, m in judged
    ]  # fmt: skip
    memory = [
        [s.name, s.beside, str(s.at), megabytes(m.our_peak), megabytes(m.their_peak),
         megabytes(m.result), *verdict(m.our_peak, s.memory_goal(m.result), f"≤ {s.memory_words}")]
        for s, m in judged
    ]  # fmt: skip
    return "\n\n".join([
        f"{INTRODUCTION}\n{provenance()}",
        "## Time, beside the goal",
        table(["", "beside", "L", "ours, ms", "theirs, ms", "ratio", "goal", ""], time),
        "## Where the time goes",
        SHARES,
        table(["", "part", "ms", "of ours", "of theirs"], shares(judged, parts)),
        "## Peak memory, beside the goal",
        table(["", "beside", "L", "ours, MB", "theirs, MB", "result, MB", "goal", ""], memory),
        "## How time grows with L: ours / theirs, in ms",
        growth(grown, measured, lambda m: (milliseconds(m.ours), milliseconds(m.theirs))),
        "## How peak memory grows with L: ours / theirs, in MB",
        growth(grown, measured, lambda m: (megabytes(m.our_peak), megabytes(m.their_peak))),
    ])  # fmt: skip


def shares(
    judged: Sequence[tuple[Scheme, Measured]], parts: Sequence[tuple[Part, float]]
) -> list[list[str]]:
    """Lines of each row's parts, the rest and the whole, as shares of both sides' time."""
    rows = []
    for name in dict.fromkeys(part.row for part, _ in parts):
        m = next((m for s, m in judged if s.name == name), None)
        if m is None:
            continue
        lines = [(part.words, seconds) for part, seconds in parts if part.row == name]
        rest = m.ours - sum(seconds for _, seconds in lines)
        for words, seconds in [*lines, ("the rest", rest), ("all", m.ours)]:
            share = f"{seconds / m.ours:.0%}", f"{seconds / m.theirs:.0%}"
            rows.append([name, words, milliseconds(seconds), *share])
    return rows


def growth(
    schemes: Sequence[Scheme],
    measured: dict[tuple[Scheme, int], Measured],
    pair: Callable[[Measured], tuple[str, str]],
) -> str:
    """One line a scheme, one column a length."""
    sizes = sorted({L for s in schemes for L in s.sizes})
    rows = []
    for s in schemes:
        row = [s.name, s.beside]
        for L in sizes:
            ours, theirs = pair(measured[s, L]) if (s, L) in measured else ("–", "–")
            row.append(f"{ours} / {theirs or f'needs {1e-9 * s.need(L):.1f} GB'}")
        rows.append(row)
    return table(["", "beside", *(f"L = {L}" for L in sizes)], rows)


def provenance() -> str:
    """Machine, threads, versions."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return (
        f"- Processor: {names[0] if names else platform.processor() or platform.machine()}, "
        f"{os.cpu_count()} cores. Threads: {torch.get_num_threads()} for PyTorch, "
        f"{os.environ['OPENBLAS_NUM_THREADS']} for NumPy.\n"
        f"- {platform.system()}, Python {platform.python_version()}, numpy {np.__version__} with "
        f"{blas['name']} {blas['version']}, torch {torch.__version__}."
    )


def verdict(value: float, goal: float | None, words: str) -> list[str]:
    """A goal and whether it is met; nothing where there is none."""
    return ["", ""] if goal is None else [words, "met" if value <= goal else "**missed**"]


def milliseconds(seconds: float) -> str:
    return number(1e3 * seconds)


def megabytes(count: float) -> str:
    return number(1e-6 * count)


def number(x: float) -> str:
    """Three digits or more, without an exponent; nothing for NaN."""
    if math.isnan(x):
        return ""
    return f"{x:.{0 if x >= 100 else 1 if x >= 10 else 2 if x >= 1 else 3}f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Format a markdown table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        f"| {' | '.join(cell.ljust(w) for cell, w in zip(line, widths, strict=True))} |"
        for line in lines
    )
