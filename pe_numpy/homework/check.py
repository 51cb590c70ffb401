"""Check a function against the reference, and name the mistake if it is a known one.

A function that fails is compared with each known mistake: the mistake whose results equal its own,
in every case, is the one that was made. If one alone equals them in most of the cases that fail,
and in two at least, there may be another mistake beside it: then it is a guess, and told so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np

from pe_numpy.homework import common
from pe_numpy.homework.cases import (
    WIDE,
    Case,
    Exercise,
    Outcome,
    call,
    difference,
    run,
)
from pe_numpy.homework.known import Mistake


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
    if all(o.error or o.nothing for o in outcomes):
        return
    near = []
    wrong_at = [n for n, right in enumerate(verdict.right) if not right]
    failing = [(expected[n], outcomes[n]) for n in wrong_at]
    known = (m for some in (exercise.mistakes, common.mistakes(exercise, cases)) for m in some)
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
