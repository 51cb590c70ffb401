"""Exercises, their cases, and what came out of a call.

An exercise has cases, a small one first, and a list of known mistakes: wrong functions, made from
the right one. `run` calls a function with each case and keeps what came out. What a strange file
needs to run in a process of its own stands in `worker.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pe_numpy.homework.known import Mistake, in_the_table
from pe_numpy.homework.worker import called

WIDE = (np.dtype(np.float64), np.dtype(np.float32))  # expected, given
LEAST, ROUNDS = 12, 12  # cases of an exercise, and how often they are drawn at most to get them


class Case(NamedTuple):
    """One call: what stands in the brackets; or several calls in a row, which `drive` makes."""

    args: tuple
    options: dict[str, Any]
    drive: Callable | None = None  # drive(function, *args, **options) gives the arrays


def case(*args: Any, **options: Any) -> Case:
    """Write a case as the call that it is; a function comes from the table in `worker.py`."""
    return Case(args, options)


def in_a_row(drive: Callable, *args: Any, **options: Any) -> Case:
    """Write a case of several calls, each of which gets what the one before gave back.

    `drive` gets the function first, then copies of the arguments, and gives an array or a tuple.
    """
    return Case(args, options, drive)


@dataclass(frozen=True)
class Exercise:
    """A function to write: the right one, cases to try, and mistakes that are known."""

    name: str
    reference: Callable
    cases: Callable[[np.random.Generator], Iterator[Case]]
    others: tuple[Mistake, ...] = ()  # mistakes that are no exchange of its table
    chapter: int = 0
    precise: float = 1.0  # factor of the tolerance, for sums of many terms

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """All mistakes that have a name."""
        return (*in_the_table(self.name, self.chapter), *self.others)

    def all_cases(self, seed: int = 0) -> list[Case]:
        """At least `LEAST` cases, the same at every call with the same seed.

        They are drawn in rounds; a case that was there before, number by number, is left out.
        """
        rng = np.random.default_rng(seed)
        found: list[Case] = []
        for _ in range(ROUNDS):
            had = len(found)
            for one in self.cases(rng):
                if not any(_repeats(one, other) for other in found):
                    found.append(one)
            if len(found) >= LEAST or len(found) == had:
                break
        return found


@dataclass
class Outcome:
    """What a call gave: arrays, or an error."""

    results: list[np.ndarray] = field(default_factory=list)
    error: str = ""  # "ValueError: ... (line 12)"
    changed: list[str] = field(default_factory=list)  # arguments that are not as they were
    nothing: bool = False  # it returned None

    def agrees(self, other: Outcome, precise: float = 1.0) -> bool:
        """Whether both gave the same numbers, or both failed."""
        if self.error or other.error or self.nothing or other.nothing:
            return bool(self.error) == bool(other.error) and self.nothing == other.nothing
        return not difference(self, other, precise)


# ---- calling ------------------------------------------------------------------------------------


def run(function: Callable, cases: Sequence[Case], to: Callable | None = None) -> list[Outcome]:
    """Call a function with each case; nothing that it does stops the others."""
    return [call(function, one, to) for one in cases]


def call(function: Callable, one: Case, to: Callable | None = None) -> Outcome:
    """Call a function once, with copies of the arguments (made by `to`, if there is one)."""
    return Outcome(*called(function, *one, to))


def _repeats(a: Any, b: Any) -> bool:
    """Whether two arguments, or two cases, are the same."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_repeats(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_repeats, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if isinstance(a, np.random.Generator) and isinstance(b, np.random.Generator):
        return bool(a.bit_generator.state == b.bit_generator.state)
    return type(a) is type(b) and bool(a == b)


# ---- comparing ----------------------------------------------------------------------------------


def difference(expected: Outcome, given: Outcome, precise: float = 1.0) -> str:
    """How the results differ, in one line; nothing if they agree."""
    if len(expected.results) != len(given.results):
        return f"{len(expected.results)} results were expected; got {len(given.results)}"
    for want, got in zip(expected.results, given.results, strict=True):
        if want.shape != got.shape:
            return f"the result should have the shape {want.shape}; got {got.shape}"
        eps = np.finfo(want.dtype).eps if want.dtype.kind in "fc" else 0
        error = 2e-2 if eps > 1e-4 else 2e-5 if eps > 1e-8 else 1e-9  # float16, float32, float64
        a, b = want.astype(np.complex128), got.astype(np.complex128)
        infinite = ~np.isfinite(a) | ~np.isfinite(b)
        apart = np.where(infinite, 0, np.abs(np.where(infinite, 0, a) - np.where(infinite, 0, b)))
        size = max(1.0, float(np.abs(np.where(infinite, 0, a)).max(initial=0)))
        wrong = apart > error * precise * size
        wrong |= infinite & ~((a == b) | (np.isnan(a) & np.isnan(b)))
        if wrong.any():
            share = f"{int(wrong.sum())} of {wrong.size}"
            most = f", by up to {apart.max():.3g}" if apart.max() else ""  # else: inf or NaN
            return f"{share} numbers differ{most}"
    return ""
