"""Exercises, their cases, and what came out of a call.

An exercise has cases, a small one first, and a list of known mistakes: wrong functions, made from
the right one. `run` calls a function with each case and keeps what came out. It is apart from what
judges the results, so that a strange file can run in a process of its own, which never sees what is
expected.
"""

from __future__ import annotations

import copy
import inspect
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pe_numpy.homework.known import Mistake, in_the_table

NUMBERS = "biufc"  # the kinds of dtype that a result may have
WIDE = (np.dtype(np.float64), np.dtype(np.float32))  # expected, given
LEAST, ROUNDS = 12, 12  # cases of an exercise, and how often they are drawn at most to get them
LARGEST = 2**23  # bytes of a result; the right ones are far smaller


class Case(NamedTuple):
    """One call: what stands in the brackets; or several calls in a row, which `drive` makes."""

    args: tuple
    options: dict[str, Any]
    drive: Callable | None = None  # drive(function, *args, **options) gives the arrays


def case(*args: Any, **options: Any) -> Case:
    """Write a case as the call that it is."""
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
    args, options, drive = copy.deepcopy(one)
    if to is not None:
        args, options = _convert(args, to), _convert(options, to)
    try:
        with np.errstate(all="ignore"):
            if drive is None:
                result = function(*args, **options)
            else:
                result = drive(function, *args, **options)
        outcome = Outcome(nothing=result is None)
        if result is not None:
            parts = result if isinstance(result, tuple) or _uneven(result) else (result,)
            outcome.results = [_numbers(part) for part in parts]
    except (Exception, SystemExit) as error:
        return Outcome(error=told(error))
    after = (*args, *options.values())
    before = (*one.args, *one.options.values())
    changed = [n for n, pair in enumerate(zip(after, before, strict=True)) if not _same(*pair)]
    if changed:  # to ask for a signature takes longer than most calls
        names = _argument_names(function, one)
        outcome.changed = [names[n] for n in changed]
    return outcome


def _convert(value: Any, to: Callable) -> Any:
    if isinstance(value, np.ndarray):
        return to(value)
    if isinstance(value, tuple):
        return tuple(_convert(part, to) for part in value)
    if isinstance(value, dict):
        return {key: _convert(part, to) for key, part in value.items()}
    return value


def _uneven(result: Any) -> bool:
    """Whether a list holds arrays of several shapes: several results, not the rows of one."""
    if not isinstance(result, list) or any(isinstance(part, list) for part in result):
        return False
    return len({np.shape(part) for part in result}) > 1


def _numbers(part: Any) -> np.ndarray:
    try:
        array = np.asarray(part)
    except ValueError as error:  # rows of unequal length, or two results in one list
        raise TypeError(f"the result must be an array, or a tuple of arrays: {error}") from None
    if array.nbytes > LARGEST:
        raise ValueError(f"the result is far too large: its shape is {array.shape}")
    if array.dtype.kind not in NUMBERS:
        raise TypeError(f"the result must be an array of numbers; got {type(part).__name__}")
    return array


def told(error: BaseException) -> str:
    """An error in one line, with the line of the function's own file that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = (os.path.dirname(__file__) + os.sep, "<frozen")
    own = [f for f in frames if not f.filename.startswith(ours)]
    own = [f for f in own if f.filename == own[0].filename]  # not the library that it calls
    place = f" (line {own[-1].lineno}: {own[-1].line})".replace(": )", ")") if own else ""
    if isinstance(error, NotImplementedError):  # its own, or that of another stub that it calls
        return "NotImplementedError" + (f" in {own[-1].name}" if len(own) > 1 else "")
    text = " ".join(str(error).split()) or "no message"
    line = f"{type(error).__name__}: {text[:300]}{place}"
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def _argument_names(function: Callable, one: Case) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
        names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    except (TypeError, ValueError):
        names = []
    names += [f"argument {n + 1}" for n in range(len(names), len(one.args))]
    return [*names[: len(one.args)], *one.options]


def _same(after: Any, before: Any) -> bool:
    if isinstance(before, dict):
        same_keys = after.keys() == before.keys()
        return same_keys and all(_same(after[key], before[key]) for key in before)
    if isinstance(before, tuple):
        return all(map(_same, after, before))
    if isinstance(before, np.ndarray):
        try:
            after = np.asarray(after)
        except Exception:
            return True  # another library's array, which it does not show
        return after.shape == before.shape and np.array_equal(
            after, before, equal_nan=before.dtype.kind in "fc"
        )
    return True  # numbers, words and functions can't be changed in place


def _repeats(one: Case, other: Case) -> bool:
    """Whether two cases are the same call."""
    return (
        one.drive is other.drive
        and _equal(one.args, other.args)
        and _equal(one.options, other.options)
    )


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if isinstance(a, np.random.Generator) and isinstance(b, np.random.Generator):
        return bool(a.bit_generator.state == b.bit_generator.state)
    if callable(a) and callable(b):
        return getattr(a, "__code__", a) is getattr(b, "__code__", b)
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
