"""Answers of students and programs: wrong ones, and right ones in odd style.

They were written before anybody looked at the names that the homework gives, as people and public
code get these functions wrong. Each has its exercise's name and a line that says what is wrong.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple


class Answer(NamedTuple):
    """A function as somebody wrote it, and what is wrong with it (nothing, if it is right)."""

    exercise: str
    function: Callable
    flaw: str
    place: str  # "attention 3": the third answer of this kind in the file attention.py


ANSWERS: list[Answer] = []


def wrong(flaw: str) -> Callable:
    """Keep a wrong answer, under its own name."""

    def keep(function: Callable) -> Callable:
        file = function.__module__.rpartition(".")[2]
        count = sum(a.place.startswith(f"{file} ") for a in ANSWERS) + 1
        ANSWERS.append(Answer(function.__name__, function, flaw, f"{file} {count}"))
        return function

    return keep


right = wrong("")  # a right answer has no flaw


def collected() -> list[Answer]:
    """All answers, file by file."""
    for file in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        importlib.import_module(f"answers.{file.stem}")
    return ANSWERS


def summary(rows: Sequence[dict[str, str]]) -> str:
    """The table of what was measured."""
    wrong, right = [r for r in rows if r["flaw"]], [r for r in rows if not r["flaw"]]
    names = [r for r in wrong if r["name"]]
    guesses = [r for r in wrong if r["guess"]]
    counts = {
        "wrong answers caught": (sum(r["passed"] == "no" for r in wrong), len(wrong)),
        "wrong answers named": (len(names), len(wrong)),
        "names that do not fit": (sum(r["fits"] != "yes" for r in names), len(names)),
        "guesses that do not fit": (sum(r["fits"] != "yes" for r in guesses), len(guesses)),
        "right answers accepted": (sum(r["passed"] == "yes" for r in right), len(right)),
    }
    return "\n".join(f"{what:24}{n:4} of {of:4}" for what, (n, of) in counts.items())
