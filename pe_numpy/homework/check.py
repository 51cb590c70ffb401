"""Check a function against the reference, and name the mistake if it is a known one.

A function that fails is compared with each known mistake: the mistake whose results equal its own,
in every case, is the one that was made. One that equals them in most of the cases that fail, or in
the plainest of them, which is printed, is a guess, and told so: there may be another beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any

import numpy as np

from pe_numpy.homework import common
from pe_numpy.homework.cases import WIDE, Case, Exercise, Outcome, call, difference, run
from pe_numpy.homework.known import Mistake, sections

Triples = Sequence[tuple[Case, Outcome, Outcome]]  # a case, what is expected, what was given
TYPES = "In practice"  # the section of chapter 10 that has np.sqrt
PROMOTED = (
    "The numbers are right. np.sqrt of a Python number gives a float64, which promotes float32, as "
    "arrays of float64 or of whole numbers do: use math.sqrt, and cast to the dtype of the data "
    f'(chapter 10, "{TYPES}").'
)


@dataclass
class Verdict:
    """What is said of one function."""

    name: str
    passed: bool
    cases: int
    problem: str = ""  # one line
    mistake: str = ""  # the name of a known one
    guess: str = ""  # the name of one that explains several of the cases that fail, not all
    here: bool = False  # the guess explains the printed case, not most
    advice: str = ""
    stage: str = ""  # how many cases are right, and what these have in common
    chapter: int = 0
    call: str = ""  # the plainest case that fails
    expected: str = ""
    given: str = ""
    again: str = ""  # Python that makes this case again, where it is too long to be printed
    right: list[bool] = field(default_factory=list)  # case by case, if it was run: the numbers
    types: bool = True  # whether dtypes are as wide as they should be

    def __str__(self) -> str:
        """Lines for a person: the mistake first, then a case that shows it."""
        if self.passed:
            return f"{self.name}: right in all {self.cases} cases"
        section = sections().get(str(self.chapter), {}).get(self.name)
        chapter = f'{self.chapter}, "{section}"' if section else self.chapter
        where = "On this case it looks like" if self.here else "Perhaps"
        lines = [f"{self.name}: {self.mistake or self.problem}"]
        for text in (
            self.problem if self.mistake else "",
            f'{where} "{self.guess}", and something else.' if self.guess else "",
            self.advice,
            self.stage,
            f"See chapter {chapter}." if chapter else "",
        ):
            lines += [f"    {text}"] if text else []
        for title in ("call", "expected", "given", "again"):
            if text := getattr(self, title):
                lines.append(f"    {title:9}" + text.replace("\n", "\n" + " " * 13))
        return "\n".join(lines)


def judge(
    exercise: Exercise,
    outcomes: Sequence[Outcome],
    cases: Sequence[Case] | None = None,
    seed: int = 0,
) -> Verdict:
    """Compare what a function gave, with the cases of a seed; name the mistake if it is known."""
    cases = exercise.all_cases(seed) if cases is None else cases
    expected = run(exercise.reference, cases)
    outcomes = [*map(_unpacked, expected, outcomes)]
    problems = [_problem(exercise, *each) for each in zip(cases, expected, outcomes, strict=True)]
    failing = [n for n, problem in enumerate(problems) if problem[0]]
    if not failing:
        return Verdict(exercise.name, True, len(cases))
    verdict = Verdict(exercise.name, False, len(cases), chapter=exercise.chapter)
    verdict.right = [not problem or slip for problem, _, slip in problems]
    verdict.types = not any(slip for _, _, slip in problems)
    failing = [n for n in failing if not verdict.right[n]] or failing
    traits = common.traits(exercise, cases)
    size = {n: sum(a.size for a in common.leaves(cases[n][:2])) for n in failing}
    few = {n: sum(a.size for a in expected[n].results) < 2 for n in failing}  # they show little
    failing.sort(key=lambda n: (few[n], len(traits[n]), size[n]))
    first, verdict.stage = failing[0], common.stage(traits, failing)
    lacking = [re.search(r"unexpected keyword argument '(\w+)'", o.error) for o in outcomes]
    if names := [*dict.fromkeys(found[1] for found in lacking if found)]:
        some = f"{sum(map(bool, lacking))} of the {len(cases)} cases"
        told = common.stage([[] for _ in cases], failing)  # no trait explains these
        verdict.stage = f"{some} pass {' or '.join(f'{n}=...' for n in names)}: add it. {told}"
    if not verdict.types and not verdict.right[first]:
        problem, advice = next((problem, advice) for problem, advice, slip in problems if slip)
        why = f': see chapter 10, "{TYPES}"' if advice == PROMOTED else ""
        verdict.stage += f" And {problem}{why}."
    verdict.problem, verdict.advice, _ = problems[first]
    of_errors = (problems[n][1] for n in failing if outcomes[n].error)
    verdict.advice = verdict.advice or next(filter(None, of_errors), "")
    verdict.call = describe(exercise, cases[first])
    verdict.expected, verdict.given = _side_by_side(expected[first], outcomes[first])
    if ", ...]" in verdict.call:
        room = "from pe_numpy.homework.registry import EXERCISES"
        verdict.again = f'{room}; EXERCISES["{exercise.name}"].all_cases({seed})[{first}]'
    order = [*failing, *(n for n in range(len(cases)) if n not in failing)]
    triples = [(cases[n], expected[n], outcomes[n]) for n in order]
    _name_mistake(verdict, exercise, triples, len(failing))
    return verdict


def _unpacked(want: Outcome, got: Outcome) -> Outcome:
    """Results that came in a list, as arrays of one shape do, one by one."""
    if len(want.results) > 1 and len(got.results) == 1 and got.results[0].ndim:
        parts = [*map(np.asarray, got.results[0])]
        if [a.shape for a in parts] == [a.shape for a in want.results]:
            return replace(got, results=parts)
    return got


def _problem(e: Exercise, one: Case, want: Outcome, got: Outcome) -> tuple[str, str, bool]:
    """What is wrong with one call, what to do about it, and whether it is the dtype's width."""
    if got.error.startswith("NotImplementedError"):
        name = got.error.rpartition(" in ")[2]
        what = "it" if name in (got.error, e.name) else f"{name}, which it calls,"
        advice = "Read its specification, then replace the last line."
        return f"{what} is not written yet", advice, False
    if got.error:
        return f"it failed with {got.error}", _array_for_number(e, one, got.error), False
    if got.nothing:
        return "it returned nothing", "Is there a return?", False
    apart = difference(_narrowed(want, got), got, e.precise)
    if apart:
        return difference(want, got, e.precise), "", False
    if got.changed:
        return f"it changed its argument {got.changed[0]} in place", "Work on a copy.", False
    for a, b in zip(want.results, got.results, strict=True):
        kinds = {a.dtype.kind, b.dtype.kind}
        told = f"the dtype should be {a.dtype}; got {b.dtype}"
        if len(kinds) > 1 and kinds & set("fb"):
            return told, "", False
        if a.dtype.kind in "fc" and a.dtype != b.dtype:
            wider = b.dtype.itemsize > a.dtype.itemsize
            return told, PROMOTED if wider else "The numbers are right, to fewer digits.", True
    return "", "", False


def _array_for_number(exercise: Exercise, one: Case, error: str) -> str:
    """What an error says that comes of `range(positions)`, or of `math.sin(positions)`."""
    if not any(text in error for text in ("integer scalar", "Python scalar", "truth value")):
        return ""
    length = "integer scalar" in error or "arange(" in error
    arrays = [n for n, a in common.named(exercise, one).items() if isinstance(a, np.ndarray)]
    used = "a length" if length else "one number, which math.sin, int and if ask for"
    return f"{arrays[0] if arrays else 'An argument'} is an array; you used it as {used}."


def _arrays(want: Outcome, got: Outcome) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """The results of a case side by side, if it has as many as expected."""
    alike = len(want.results) == len(got.results) and not got.error
    yield from zip(want.results, got.results if alike else [None] * len(want.results), strict=True)


def _name_mistake(verdict: Verdict, exercise: Exercise, triples: Triples, failing: int) -> None:
    """Find the mistake whose results equal those given in every case; else what else helps.

    The cases come with what was expected and given, the printed one first, all that fail next.
    """
    if all(got.error or got.nothing for _, _, got in triples):
        return
    most, here = [], []
    cases = [one for one, _, _ in triples]
    for mistake in chain(exercise.mistakes, common.mistakes(exercise, cases)):
        explained, first, exact = _compared(exercise, mistake, triples, failing)
        if exact:
            verdict.mistake, verdict.advice = mistake.name, mistake.advice
            verdict.chapter = mistake.chapter
            return
        if explained > max(1, failing / 2):
            most.append(mistake)
        elif first and explained > min(1, failing - 1):
            here.append((explained, mistake))
    wrong = triples[:failing]
    name, advice = common.of_results([(want, got) for _, want, got in wrong], exercise.precise)
    both = (m for m in common.pairs(exercise) if _compared(exercise, m, triples, failing)[2])
    if not name and wrong[0][2].results and (found := next(both, None)):
        name, advice = found.name, found.advice
    if name:
        verdict.mistake, verdict.advice = name, advice
        return
    if [any(np.isnan(a).any() for a in o.results) for o in wrong[0][1:]] == [False, True]:
        verdict.advice = common.why_nan(exercise, cases[0])
    verdict.advice = verdict.advice or _likeness(exercise, wrong)
    verdict.here = not most
    best = max((count for count, _ in here), default=0)
    most = most or [mistake for count, mistake in here if count == best]
    if most and all(mistake.name.startswith(most[0].name) for mistake in most):
        verdict.guess = most[0].name
        verdict.advice = f"{most[0].advice} {verdict.advice}".strip()


def _likeness(exercise: Exercise, triples: Triples) -> str:
    """A hint at a mistake that no list knows, where all the cases that fail give the same."""
    rows, apart, several, constant = [], [], 0, True
    for one, want, got in triples:
        pairs = ((a, b) for a, b in _arrays(want, got) if a.dtype != np.float16)  # too few digits
        for x, y in pairs:
            if y is None or x.shape != y.shape or not (np.isfinite(x) & np.isfinite(y)).all():
                return ""
            a, b = x.astype(complex).ravel(), y.astype(complex).ravel()
            top = np.abs(a).max(initial=0)
            apart.append(np.abs(a - b).max(initial=0) / max(1, top) if x.dtype == float else 1)
            large = np.abs(a) > 1e-6 * top
            ratio, most = b[large] / a[large], np.abs(b).max(initial=0)
            small = np.abs(b[~large]).max(initial=0) <= 1e-4 * most
            constant &= small and np.allclose(ratio, ratio[:1], rtol=1e-4)
            rows += [(common.named(exercise, one), r) for r in ratio[:1]]
            several += ratio.size > 1
    if apart and apart[0] < 1e-6 and np.median(apart) < 1e-4:
        return "All but the last digits are right: is something in float32, or eps another one?"
    given, ratios = [some for some, _ in rows], np.array([r for _, r in rows])
    if not constant or not ratios.any():
        return ""
    if several > 1 and np.allclose(ratios, ratios[0], rtol=1e-4) and abs(ratios[0] - 1) > 1e-2:
        ratio = ratios[0] if abs(ratios[0].imag) > 1e-9 else ratios[0].real
        return f"Every number is {ratio:.4g} times the expected one."
    for n, a in given[0].items() if len(rows) > 2 else ():
        shapes = [getattr(some.get(n), "shape", ()) for some in given]
        for axis in range(-np.ndim(a), 0) if isinstance(a, np.ndarray) else ():
            sizes = [shape[axis] if len(shape) >= -axis else 0 for shape in shapes]
            if len(set(sizes)) > 1 and np.allclose(ratios, sizes, rtol=1e-4):
                times = f"times the length of axis {axis} of {n}"
                return f"Each number is the right one {times}: is it a sum for a mean?"
    return ""


def _compared(e: Exercise, m: Mistake, triples: Triples, failing: int) -> tuple[int, bool, bool]:
    """How many cases that fail a mistake explains, whether the first, and whether all cases."""
    explained, missed, first, shown = 0, 0, False, False
    for n, (one, want, got) in enumerate(triples):
        wrong = _narrowed(call(m.function, one), got)
        alike = wrong.agrees(got, e.precise)
        shows = alike and not wrong.agrees(want, e.precise)
        shown |= shows
        explained += shows and bool(wrong.results)
        first |= n == 0 and shows and _tells(want, got)
        missed += not alike
        if (missed and n >= failing) or (not first and 2 * missed >= failing):
            break  # neither a name nor a guess can come of what is left
    return explained, first, shown and not missed


def _tells(want: Outcome, got: Outcome) -> bool:
    """Whether several numbers are wrong: one may be right by chance in a wrong theory."""
    pairs = [(a, b) for a, b in _arrays(want, got) if b is not None and a.shape == b.shape]
    wrong = [b[np.isfinite(b) & ~np.isclose(a, b, rtol=1e-4)] for a, b in pairs]
    return sum(np.unique(some).size for some in wrong) > 1


def _narrowed(wrong: Outcome, got: Outcome) -> Outcome:
    """Results in the float32 of those given: these are wrong for another reason, too."""
    if [a.shape for a in wrong.results] != [b.shape for b in got.results]:
        return wrong
    pairs = zip(wrong.results, got.results, strict=True)
    narrow = [a.astype(b.dtype) if (a.dtype, b.dtype) == WIDE else a for a, b in pairs]
    return replace(wrong, results=narrow)


# ---- telling ------------------------------------------------------------------------------------


def describe(exercise: Exercise, one: Case) -> str:
    """A case as a call that can be typed in, shortened where it is long."""
    parts = [f"{name}={_short(value)}" for name, value in common.named(exercise, one).items()]
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
        for digits in (4, 6, 9, 12)
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
        if value.dtype.kind == "f":
            numbers = numbers.astype(np.result_type(value, np.float64))
            few = np.reshape([float(f"{x:.{digits}g}") for x in numbers.ravel()], numbers.shape)
            numbers = np.where(np.abs(numbers) < 0.1, few, numbers.round(digits)) + 0
        elif value.dtype.kind == "c":
            numbers = numbers.astype(np.complex128).round(digits) + 0
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
