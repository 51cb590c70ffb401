"""Check a function against the reference, and name the mistake if it is a known one.

An exercise has cases, a small one first, and a list of known mistakes: wrong functions, made from
the right one. A function that fails is compared with each of them: the mistake whose results equal
its own, in every case, is the one that was made. If one alone equals them in most of the cases that
fail, and in two at least, there may be another mistake beside it: then it is a guess, and told so.

`run` calls a function and keeps what came out; `judge` compares. They are apart so that a strange
file can run in a process of its own, which never sees what is expected.
"""

from __future__ import annotations

import copy
import inspect
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from pe_numpy.detector import Scores

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
class Mistake:
    """A wrong function that people write, and what to tell them."""

    name: str  # "half-split for interleaved"
    advice: str  # what to look at, in a sentence or two; never the code
    chapter: int
    function: Callable


@dataclass(frozen=True)
class Exercise:
    """A function to write: the right one, cases to try, and mistakes that are known."""

    name: str
    reference: Callable
    cases: Callable[[np.random.Generator], Iterator[Case]]
    mistakes: tuple[Mistake, ...] = ()
    chapter: int = 0
    further: tuple[Mistake, ...] = ()  # those of public code, which the book does not show
    precise: float = 1.0  # factor of the tolerance, for sums of many terms
    scores: Callable[[Callable], Scores] | None = None  # what makes a bare score of the function
    width: int = 8  # K, and the coordinates of a position, with which that score is measured
    axes: int = 1

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


@dataclass
class Verdict:
    """What is said of one function."""

    name: str
    passed: bool
    cases: int
    problem: str = ""  # one line
    mistake: str = ""  # the name of a known one
    guess: str = ""  # the name of one that explains several of the cases that fail, not all
    advice: str = ""
    measured: str = ""  # what the detector finds, where no known mistake explains it
    chapter: int = 0
    call: str = ""  # the first case that fails
    expected: str = ""
    given: str = ""
    right: list[bool] = field(default_factory=list)  # case by case, if it was run

    def __str__(self) -> str:
        """Lines for a person: the mistake first, then the first case that shows it."""
        if self.passed:
            return f"{self.name}: right in all {self.cases} cases"
        lines = [f"{self.name}: {self.mistake or self.problem}"]
        if self.mistake:
            lines.append(f"    {self.problem}")
        if self.guess:
            lines.append(f'    Perhaps "{self.guess}", and something else.')
        if self.advice:
            lines.append(f"    {self.advice}")
        if self.measured:
            lines.append(f"    {self.measured}")
        if self.chapter:
            lines.append(f"    See chapter {self.chapter}.")
        for title, text in (
            ("call", self.call),
            ("expected", self.expected),
            ("given", self.given),
        ):
            if text:
                lines.append(f"    {title:9}" + text.replace("\n", "\n" + " " * 13))
        return "\n".join(lines)


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
            parts = result if isinstance(result, tuple) else (result,)
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


def judge(
    exercise: Exercise,
    outcomes: Sequence[Outcome],
    cases: Sequence[Case] | None = None,
    explain: Callable[[], str] = str,
) -> Verdict:
    """Compare what a function gave with the reference; name the mistake if it is known.

    If it is not, and only numbers are wrong, `explain` is asked for a sentence.
    """
    cases = exercise.all_cases() if cases is None else cases
    expected = run(exercise.reference, cases)
    for n, (want, got) in enumerate(zip(expected, outcomes, strict=True)):
        problem, advice = _problem(exercise, want, got)
        if problem:
            verdict = Verdict(exercise.name, False, len(cases), problem, advice=advice)
            verdict.right = [
                not _problem(exercise, *pair)[0] for pair in zip(expected, outcomes, strict=True)
            ]
            verdict.chapter = exercise.chapter
            verdict.call = describe(exercise, cases[n])
            verdict.expected, verdict.given = _side_by_side(want, got)
            _name_mistake(verdict, exercise, cases, expected, outcomes)
            if not verdict.mistake and all(map(_alike, expected, outcomes)):
                verdict.measured = explain()
            return verdict
    return Verdict(exercise.name, True, len(cases))


def _alike(want: Outcome, got: Outcome) -> bool:
    """Whether both gave results of the same shapes."""
    shapes = [[part.shape for part in outcome.results] for outcome in (want, got)]
    return bool(shapes[0]) and shapes[0] == shapes[1]


def _problem(exercise: Exercise, want: Outcome, got: Outcome) -> tuple[str, str]:
    """What is wrong with one call, and what to do about it."""
    if got.error.startswith("NotImplementedError"):
        name = got.error.rpartition(" in ")[2]
        what = "it" if name in (got.error, exercise.name) else f"{name}, which it calls,"
        return f"{what} is not written yet", "Read its specification, then replace the last line."
    if got.error:
        return f"it failed with {got.error}", ""
    if got.nothing:
        return "it returned nothing", "Is there a return?"
    apart = difference(want, got, exercise.precise)
    if apart:
        return apart, ""
    if got.changed:
        return f"it changed its argument {got.changed[0]} in place", "Work on a copy."
    for a, b in zip(want.results, got.results, strict=True):
        kinds = {a.dtype.kind, b.dtype.kind}
        if len(kinds) > 1 and kinds & set("fb"):
            return f"the dtype should be {a.dtype}; got {b.dtype}", ""
        if a.dtype.kind in "fc" and a.dtype != b.dtype:
            return (
                f"the dtype should be {a.dtype}; got {b.dtype}",
                "An array of whole numbers or of float64, and np.sqrt of a Python number, promote "
                "float32: cast such arrays to the dtype of the data, and use math.sqrt.",
            )
    return "", ""


def _likeness(pairs: Sequence[tuple[Outcome, Outcome]]) -> str:
    """A hint at a mistake that no list knows, where all the cases that fail give the same."""
    hints = [_hint(a, b) for want, got in pairs for a, b in _arrays(want, got)]
    some = [hint for hint in hints if hint]  # a case with one number tells nothing
    return some[0] if len(some) > 1 and len(set(some)) == 1 else ""


def _arrays(want: Outcome, got: Outcome) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """The results of a case side by side, if it has as many as expected."""
    alike = len(want.results) == len(got.results) and not got.error
    yield from zip(want.results, got.results if alike else [None] * len(want.results), strict=True)


def _hint(a: np.ndarray, b: np.ndarray | None) -> str:
    """A swapped axis, or a factor; nothing, if there are too few numbers to see one."""
    if b is None:
        return "none"
    if a.size < 2:
        return ""
    if a.ndim > 1 and a.swapaxes(-1, -2).shape == b.shape:
        if np.allclose(a.swapaxes(-1, -2), b, rtol=1e-5, atol=1e-8):
            return "The last two axes are swapped."
    if a.shape == b.shape and np.isfinite(a).all() and np.isfinite(b).all():
        large = np.abs(a) > 1e-6 * np.abs(a).max()
        ratios = b[large] / a[large]
        if large.sum() < 2:
            return "none" if b[~large].any() else ""
        if np.allclose(ratios, ratios[0], rtol=1e-4) and abs(ratios[0]):
            if abs(ratios[0] - 1) > 1e-2:
                return f"Every number is {ratios[0]:.4g} times the expected one."
    return "none"


def _name_mistake(
    verdict: Verdict,
    exercise: Exercise,
    cases: Sequence[Case],
    expected: Sequence[Outcome],
    outcomes: Sequence[Outcome],
) -> None:
    """Find the mistake whose results equal those given in every case; else what else helps."""
    from pe_numpy.homework import common  # which builds on this module

    if all(o.error or o.nothing for o in outcomes):
        return
    near = []
    wrong_at = [n for n, right in enumerate(verdict.right) if not right]
    failing = [(expected[n], outcomes[n]) for n in wrong_at]
    known = (
        m
        for some in (exercise.mistakes, exercise.further, common.mistakes(exercise, cases))
        for m in some
    )
    for mistake in known:
        exact, explained = _compared(exercise, mistake, cases, expected, outcomes, wrong_at)
        if exact:
            verdict.mistake, verdict.advice = mistake.name, mistake.advice
            verdict.chapter = mistake.chapter
            return
        if explained > max(1, len(failing) / 2):
            near.append(mistake)
    name, advice = common.of_results(expected, outcomes, exercise.precise)
    if name:
        verdict.mistake, verdict.advice = name, advice
        return
    if any(_new_nan(a, b) for want, got in failing for a, b in _arrays(want, got)):
        verdict.advice = "There are NaNs: 0/0, or infinity minus infinity?"
    elif not verdict.advice:
        verdict.advice = _likeness(failing).replace("none", "")
    if near and all(mistake.name.startswith(near[0].name) for mistake in near):
        verdict.guess = near[0].name
        verdict.advice = f"{near[0].advice} {verdict.advice}".strip()


def _compared(
    exercise: Exercise,
    mistake: Mistake,
    cases: Sequence[Case],
    expected: Sequence[Outcome],
    outcomes: Sequence[Outcome],
    failing: Sequence[int],
) -> tuple[bool, int]:
    """Whether a mistake gives what was given in every case, and how many that fail it explains."""
    exact, shown, explained, missed = True, False, 0, 0
    for n, (one, want, got) in enumerate(zip(cases, expected, outcomes, strict=True)):
        wrong = _narrowed(call(mistake.function, one), got)
        alike = wrong.agrees(got, exercise.precise)
        shows = not wrong.agrees(want, exercise.precise)
        exact, shown = exact and alike, shown or shows
        explained += alike and shows and bool(wrong.results) and n in failing
        missed += not alike and n in failing
        if 2 * missed >= len(failing):
            return False, 0  # neither a name nor a guess can come of it
    return exact and shown, explained


def _narrowed(wrong: Outcome, got: Outcome) -> Outcome:
    """A mistake's results in the float32 of those given: they are wrong for another reason, too."""
    if [a.shape for a in wrong.results] != [b.shape for b in got.results]:
        return wrong
    pairs = zip(wrong.results, got.results, strict=True)
    narrow = [a.astype(b.dtype) if (a.dtype, b.dtype) == WIDE else a for a, b in pairs]
    return Outcome(narrow, wrong.error, wrong.changed, wrong.nothing)


def _new_nan(a: np.ndarray, b: np.ndarray | None) -> bool:
    return b is not None and bool(np.isnan(b).any()) and not np.isnan(a).any()


# ---- telling ------------------------------------------------------------------------------------


def describe(exercise: Exercise, one: Case) -> str:
    """A case as a call that can be typed in, shortened where it is long."""
    names = [*inspect.signature(exercise.reference).parameters][: len(one.args)]
    named = [*zip(names, one.args, strict=True), *one.options.items()]
    parts = [f"{name}={_short(value)}" for name, value in named]
    return f"{exercise.name}({', '.join(parts)})" + (" in a row" if one.drive else "")


def _side_by_side(want: Outcome, got: Outcome) -> tuple[str, str]:
    """Both results, with as many digits as it takes to see that they differ, and where they do."""
    first = [_first_apart(a, b) for a, b in _arrays(want, got)]
    pairs = [
        tuple(
            "\n".join(_short(r, digits, start) for r, start in zip(o.results, starts, strict=False))
            for o in (want, got)
        )
        for starts in (repeat(0), first)
        for digits in (4, 12)
    ]
    expected, given = next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])
    return expected, given


def _first_apart(a: np.ndarray, b: np.ndarray | None) -> int:
    """The place of the first number that is another, in reading order; 0 if there is none."""
    if b is None or a.shape != b.shape:
        return 0
    places = np.flatnonzero(~np.isclose(a, b, rtol=1e-5, atol=1e-9, equal_nan=True))
    return int(places[0]) if places.size else 0


def _short(value: Any, digits: int = 4, start: int = 0) -> str:
    """A value in one line: a small array with its numbers, a large one with four of them."""
    if isinstance(value, np.ndarray):
        numbers = value.ravel()[start : start + 4] if value.size > 24 else value
        if value.dtype.kind in "fc":
            numbers = numbers.astype(np.result_type(value, np.float64)).round(digits) + 0
        if value.size > 24:
            shown = ("[..., " if start else "[") + str(numbers.tolist())[1:-1]
            return f"{shown}, ...] of shape {value.shape}, {value.dtype}"
        return str(numbers.tolist())
    if isinstance(value, dict):
        inner = ", ".join(f"{key!r}: {_short(part)}" for key, part in value.items())
        return f"{{{inner}}}"
    if isinstance(value, tuple) and any(isinstance(part, np.ndarray | dict) for part in value):
        return f"({', '.join(map(_short, value))})"
    if callable(value):
        return getattr(value, "__name__", "a function")
    if isinstance(value, np.random.Generator):
        return "a generator"
    return repr(value)
