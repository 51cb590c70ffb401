"""Known mistakes: a table of what is exchanged in the book's solution, and what to tell.

A line of `exercises/*.toml` is a mistake: its name, the advice, and a text of the solution with
another in its place. The text occurs once in the function, or once in the solutions of its chapter.
A mistake that no exchange can say is a function, and stands with its exercise.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pe_numpy.copy.copy import solved_in

TABLES = Path(__file__).parent / "exercises"
SECTIONS = Path(__file__).with_name("sections.toml")


@dataclass(frozen=True)
class Mistake:
    """A wrong function that people write, and what to tell them."""

    name: str  # "half-split for interleaved"
    advice: str  # what to look at, in a sentence or two; never the code
    chapter: int
    function: Callable
    change: tuple[str, ...] = ()  # of the solution, if it is an exchange


@cache
def sections() -> dict[str, dict[str, str]]:
    """By chapter and exercise, the heading under which the book shows the function."""
    return tomllib.loads(SECTIONS.read_text(encoding="utf-8"))


@cache
def in_the_table(name: str, chapter: int) -> tuple[Mistake, ...]:
    """The mistakes of an exercise that are exchanges in its solution."""
    return tuple(
        Mistake(
            mistake,
            row["advice"],
            row.get("chapter", chapter),
            late(name, chapter, tuple(row["change"])),
            tuple(row["change"]),
        )
        for mistake, row in _tables().get(name, {}).items()
    )


@cache
def _tables() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(TABLES.glob("*.toml")):
        found |= tomllib.loads(file.read_text(encoding="utf-8"))
    return found


def late(name: str, chapter: int, change: Sequence[str]) -> Callable:
    """A function that is made when it is called first: most never are."""
    made = cache(lambda: exchanged(name, chapter, change))
    return lambda *args, **options: made()(*args, **options)


def exchanged(name: str, chapter: int, change: Sequence[str]) -> Callable:
    """The book's solution of an exercise with some texts exchanged: old, new, old, new.

    ValueError if an old text is not there, or not once.
    """
    source = solution_source(name, chapter)
    parts = [*source.partition(_function(source, name))]
    for old, new in zip(change[::2], change[1::2], strict=True):
        counts = [text.count(old) for text in parts]
        place = counts.index(1) if counts in ([1, 0, 0], [0, 0, 1]) else 1
        if counts[place] != 1:
            raise ValueError(f"exchanged: the solution of {name} must have {old!r} once")
        parts[place] = parts[place].replace(old, new)
    names: dict[str, Any] = {"__name__": name}
    exec(compile("".join(parts), f"<{name}>", "exec"), names)
    function: Callable = names[name]
    return function


@cache
def solution_source(name: str, chapter: int) -> str:
    """The solutions of a chapter, or of another that solves an exercise of this name."""
    path = solved_in(name, chapter)
    if path is None:
        raise ValueError(f"solution_source: no chapter solves {name}")
    return path.read_text(encoding="utf-8")


@cache
def _function(source: str, name: str) -> str:
    """A function's own text."""
    tree = ast.parse(source)
    (own,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    text = ast.get_source_segment(source, own)
    assert text is not None
    return text
