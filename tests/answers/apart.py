"""Answers that were written apart: a hundred wrong and twenty right in the folder held_out.

Who wrote them had read the stubs of the students and nothing else: no list of known mistakes, no
earlier answer. They come as a tutorial, a port from PyTorch, a student's loop or a program writes
them; of those in mixed.py each has two mistakes or three. (held_out.py is an older list; names
were mended with it since.)

A wrong answer has

- the exercise it answers, and what is wrong with it in a sentence: the truth,
- `says`: words of which a name, a piece of advice or a located stage that fits must hold one,
- `on`: a call within the stub's contract on which it is wrong; a test tries it.

A right answer has `on`, too: 50 calls drawn from it give what the reference gives, to 1e-9.

`python tests/answers held_out` prints the score:

- caught: wrong answers that do not pass; accepted: right answers that pass,
- named: the name that the homework gives holds a word of `says`; misnamed: it holds none,
- located: there is no name, and what stands beside it (problem, guess, advice, stage) does.

The first score stands in held_out/first_score.txt, as it was printed. The list is spent when a
name or a case is mended with it.

The folder second holds 42 wrong and 8 right ones, written after the mending by somebody who had
not read the first list, the known mistakes or the checker: `python tests/answers second`.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pe_numpy.homework.cases import Case, case, in_a_row
from pe_numpy.homework.registry import check, exercise_of

__all__ = ["Draw", "case", "in_a_row", "right", "wrong"]  # what the files of the folder need

FOLDER = Path(__file__).with_name("held_out")


class Draw:
    """Numbers for a call: draw(2, 3) is a normal array of that shape; draw.rng has all else."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, *shape: int, dtype: Any = np.float64) -> np.ndarray:
        return self.rng.standard_normal(shape).astype(dtype)


class Held(NamedTuple):
    """A function as somebody wrote it, what is wrong with it, and where that shows."""

    place: str  # "tutorials 3"
    exercise: str
    function: Callable
    flaw: str  # nothing, if it is right
    says: tuple[str, ...]
    on: Callable[[Draw], Case]


HELD: list[Held] = []


def wrong(
    exercise: str, flaw: str, says: Sequence[str], on: Callable[[Draw], Case]
) -> Callable[[Callable], Callable]:
    """Keep a wrong answer, whatever its author called it."""

    def keep(function: Callable) -> Callable:
        file = function.__module__.rpartition(".")[2]
        count = sum(a.place.startswith(f"{file} ") for a in HELD) + 1
        HELD.append(Held(f"{file} {count}", exercise, function, flaw, tuple(says), on))
        return function

    return keep


def right(exercise: str, on: Callable[[Draw], Case]) -> Callable[[Callable], Callable]:
    """Keep a right answer in odd style."""
    return wrong(exercise, "", (), on)


@functools.cache
def held(folder: Path = FOLDER) -> list[Held]:
    """All answers of a folder, file by file, whoever else has imported the files."""
    HELD.clear()
    for file in sorted(folder.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"answers_{folder.name}.{file.stem}", file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module
        spec.loader.exec_module(module)
    return [*HELD]


# ---- is what they say of themselves true? --------------------------------------------------------


def untrue(answer: Held, calls: int = 50) -> str:
    """Why an answer is not what it claims to be; nothing if it is."""
    reference = exercise_of(answer.exercise).reference
    if answer.flaw:
        one = answer.on(Draw())
        apart = _apart(_called(reference, one), _called(answer.function, one), loose=True)
        return "" if apart else "it is right on its own call"
    for seed in range(calls):
        one = answer.on(Draw(seed))
        apart = _apart(_called(reference, one), _called(answer.function, one))
        if apart:
            return f"call {seed}: {apart}"
    return ""


def _called(function: Callable, one: Case) -> list[np.ndarray] | str:
    """The arrays of a call, in order, or a word on what went wrong."""
    args, options, drive = copy.deepcopy(one)
    try:
        with np.errstate(all="ignore"):
            given = drive(function, *args, **options) if drive else function(*args, **options)
        parts = [*_leaves(given)]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    before, after = (_leaves((*c[0], *c[1].values())) for c in (one, (args, options)))
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, after, strict=True))
    return parts if same else "an argument is not as it was"


def _leaves(value: Any) -> Iterator[np.ndarray]:
    """Arrays of numbers in dictionaries, lists and tuples, in order."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _leaves(value[key])
    elif isinstance(value, tuple):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, list):
        several = any(isinstance(p, dict) or (isinstance(p, np.ndarray) and p.ndim) for p in value)
        for part in value if several else [np.asarray(value)]:
            yield from _leaves(part)
    elif not callable(value) and not isinstance(value, str | np.random.Generator | None):
        yield np.asarray(value)


def _apart(want: list[np.ndarray] | str, got: list[np.ndarray] | str, loose: bool = False) -> str:
    """How two results differ; `loose`: by more than rounding explains."""
    if isinstance(want, str):
        raise AssertionError(f"the reference refuses the call: {want}")
    if isinstance(got, str):
        return got
    if [a.shape for a in want] != [b.shape for b in got]:
        return f"shapes {[a.shape for a in want]} and {[b.shape for b in got]}"
    for a, b in zip(want, got, strict=True):
        kinds = {a.dtype.kind, b.dtype.kind}
        if (len(kinds) > 1 and kinds & set("fb")) or (a.dtype.kind in "fc" and a.dtype != b.dtype):
            return f"dtypes {a.dtype} and {b.dtype}"
        fine = a.dtype.kind not in "fc" or np.finfo(a.dtype).eps < 1e-12
        near = (1e-6 if loose else 1e-9) if fine else 1e-4 if loose else 1e-5
        if not np.allclose(a, b, rtol=near, atol=near, equal_nan=True):
            return f"{a.ravel()[:3]} and {b.ravel()[:3]}"
    return ""


# ---- the score -----------------------------------------------------------------------------------


class Row(NamedTuple):
    """What the homework says of one answer."""

    answer: Held
    passed: bool
    name: str
    beside: str  # problem, guess, advice, stage

    @property
    def named(self) -> bool:
        """Whether its name fits."""
        return _fits(self.name, self.answer.says)

    @property
    def misnamed(self) -> bool:
        """Whether it has a name that does not fit."""
        return bool(self.name) and not self.named

    @property
    def located(self) -> bool:
        """Whether what stands beside a missing name fits."""
        return not self.name and _fits(self.beside, self.answer.says)


def _fits(text: str, says: Sequence[str]) -> bool:
    return any(word.lower() in text.lower() for word in says)


def graded(answer: Held) -> Row:
    """Check one answer."""
    v = check(answer.exercise, answer.function)
    guess = f'perhaps "{v.guess}"' if v.guess else ""
    beside = " | ".join(filter(None, (v.problem, guess, v.advice, v.stage)))
    return Row(answer, v.passed, v.mistake, beside)


def report(folder: Path = FOLDER) -> str:
    """The score, and each answer that stands in its way."""
    start = time.perf_counter()
    rows = [graded(answer) for answer in held(folder)]
    seconds = time.perf_counter() - start
    bad, good = [r for r in rows if r.answer.flaw], [r for r in rows if not r.answer.flaw]
    caught = [r for r in bad if not r.passed]
    known = [r for r in caught if r.named or r.located]
    lines = [
        f"wrong answers caught    {len(caught):4} of {len(bad)}",
        f"right answers accepted  {sum(r.passed for r in good):4} of {len(good)}",
        f"named                   {sum(r.named for r in caught):4} of {len(bad)}",
        f"located, without a name {sum(r.located for r in caught):4} of {len(bad)}",
        f"misnamed                {sum(r.misnamed for r in caught):4} of {len(bad)}",
        f"seconds                 {seconds:4.0f}",
    ]
    for title, some in (
        ("wrong answers that passed", [r for r in bad if r.passed]),
        ("right answers that failed", [r for r in good if not r.passed]),
        ("misnamed", [r for r in caught if r.misnamed]),
        ("neither named nor located", [r for r in caught if r not in known and not r.misnamed]),
        ("located", [r for r in caught if r.located]),
        ("named", [r for r in caught if r.named]),
    ):
        lines += ["", f"{title}: {len(some)}"]
        for r in some:
            lines.append(f"  {r.answer.place}, {r.answer.exercise}: {r.answer.flaw or 'right'}")
            if r.name or r.beside:
                lines.append(f"      {r.name or '-'} | {r.beside}"[:300])
    return "\n".join(lines)
