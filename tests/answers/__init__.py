"""Answers of students and programs: wrong ones, and right ones in odd style.

They were written before anybody looked at the names that the homework gives, as people and public
code get these functions wrong. Each has its exercise's name and a line that says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
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
