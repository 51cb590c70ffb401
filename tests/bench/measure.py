"""What is compared, and how its time, memory and results are measured."""

from __future__ import annotations

import json
import math
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from torch.profiler import ProfilerActivity, profile

Side = Callable[[], Any]  # one of the two that are compared


class Scheme(NamedTuple):
    """One line of the tables."""

    name: str
    beside: str  # what stands beside pe_numpy
    make: Callable[[int], tuple[Side, Side]]  # from L to both sides
    goal: float | None  # our time by theirs
    memory_goal: Callable[[int], float | None]  # from the result's bytes to our peak
    memory_words: str
    at: int  # the length at which goals are judged
    sizes: tuple[int, ...]
    need: Callable[[int], float]  # bytes that the other side needs at L, roughly
    tolerance: Callable[[int], float]  # of the difference of the results at L


class Measured(NamedTuple):
    """Seconds and bytes of both sides; NaN where the other side was left out."""

    ours: float
    theirs: float
    our_peak: float
    their_peak: float
    result: int  # bytes of our result


def numpy_peak(side: Side) -> tuple[Any, int, float]:
    """Give the result, the most bytes that NumPy held at once beyond the inputs, and the seconds.

    NumPy reports its arrays to tracemalloc; BLAS does not report its buffers.
    """
    tracemalloc.start()
    try:
        start = perf_counter()
        result = side()
        return result, tracemalloc.get_traced_memory()[1], perf_counter() - start
    finally:
        tracemalloc.stop()


def torch_peak(side: Side) -> tuple[Any, int, float]:
    """Give the same of PyTorch: its profiler lists what is allocated and freed, in order."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as run:
        start = perf_counter()
        result = side()
        seconds = perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        run.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    changes = sorted((e["ts"], e["args"]["Bytes"]) for e in events if e["name"] == "[memory]")
    return result, int(np.cumsum([0, *(size for _, size in changes)]).max()), seconds


def alternate(benchmark: Any, ours: Side, theirs: Side | None, rounds: int) -> tuple[float, float]:
    """Best time of each side, in turns: theirs, ours, theirs, ours, ...

    pytest-benchmark times ours; what it takes for the set-up of a round is the other side's turn.
    """
    times = []

    def our_turn() -> None:
        ours()  # its result is freed here, before the clock stops

    def their_turn() -> None:
        if theirs is not None:
            start = perf_counter()
            theirs()
            times.append(perf_counter() - start)

    benchmark.pedantic(our_turn, setup=their_turn, rounds=rounds)
    return benchmark.stats.stats.min, min(times, default=math.nan)


def first(result: Any) -> Any:
    """Give the output of attention, without its weights; any other result as it is."""
    return result[0] if isinstance(result, tuple) else result


def largest_difference(ours: Any, theirs: Any) -> float:
    """Largest absolute difference of an array and a tensor."""
    a, b = np.asarray(first(ours)), np.asarray(first(theirs))
    difference = a - b.reshape(a.shape)
    return float(np.abs(difference, out=difference).max())
