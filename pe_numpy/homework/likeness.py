"""Tell which students handed in one function twice, whatever its names and comments are.

A function is read as the tokens of its tree: names that it gives itself are numbered in their
order, docstrings, annotations and comments are gone. Two functions with equal tokens are the same
code; runs of `RUN` tokens that two share, of all that either has, say how alike they are. What is
short is alike by nature, and is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from pe_numpy.copy.copy import SOLUTIONS
from pe_numpy.homework.submission import StrangeFileError, code_of, tree_of

RUN = 4  # tokens; of 1,235 pairs of answers in tests/answers two are alike, made by one change
LEAST = 55  # runs of a function, below which honest answers are equal
ALIKE = 0.9
BOOK = "the book"


def alike(
    paths: Mapping[str, str],
    names: Sequence[str],
    called: Mapping[str, Mapping[str, str]] | None = None,
) -> list[str]:
    """Which students, and the book, have functions in common.

    Parameters
    ----------
    paths : mapping
        The file of each student.
    names : sequence of words
        Exercises to look at.
    called : mapping, optional
        Of each student, what the exercises are called there: see `variants`.

    Returns
    -------
    A line for each group that is alike; none, if all wrote their own.
    """
    found = {student: functions_of(Path(path)) for student, path in paths.items() if path}
    book = [functions_of(path) for path in sorted(SOLUTIONS.glob("*.py"))]
    found[BOOK] = {name: tokens for one in book for name, tokens in one.items()}
    lines: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        theirs = {who: (called or {}).get(who, {}).get(name, name) for who in found}
        runs = {who: runs_of(own.get(theirs[who], ())) for who, own in found.items()}
        for group in groups_of({who: own for who, own in runs.items() if len(own) >= LEAST}):
            lines.setdefault(group, []).append(name)
    return [f"alike in {', '.join(words)}: {', '.join(who)}" for who, words in lines.items()]


def groups_of(runs: Mapping[str, set[int]]) -> list[tuple[str, ...]]:
    """Groups of two or more in which each is like another."""
    group = {who: {who} for who in runs}
    for one, other in combinations(runs, 2):
        if group[one] is not group[other] and likeness(runs[one], runs[other]) >= ALIKE:
            group[one] |= group[other]
            for who in group[other]:
                group[who] = group[one]
    found = dict.fromkeys(tuple(who for who in runs if who in group[one]) for one in runs)
    return [members for members in found if len(members) > 1]


def likeness(one: set[int], other: set[int]) -> float:
    """Runs that two functions share, of all that either has."""
    small, large = sorted((len(one), len(other)))
    if small < ALIKE * large:
        return 0.0  # they can't share enough
    shared = len(one & other)
    return shared / (small + large - shared)


def runs_of(tokens: Sequence[str]) -> set[int]:
    """All runs of tokens, each as a number."""
    return {hash(tuple(tokens[n : n + RUN])) for n in range(len(tokens) - RUN + 1)}


def functions_of(path: Path) -> dict[str, list[str]]:
    """The tokens of each function at the top of a file; none of a file that can't be read."""
    try:
        tree = tree_of(code_of(path)[0])
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError, StrangeFileError):
        return {}
    return {n.name: tokens_of(n) for n in tree.body if isinstance(n, ast.FunctionDef)}


def tokens_of(function: ast.FunctionDef) -> list[str]:
    """The tree of a function as words, the same whatever its own names are."""
    own = {function.name: "#"}
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            own.setdefault(node.arg, f"#{len(own)}")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.setdefault(node.id, f"#{len(own)}")
        elif isinstance(node, ast.FunctionDef) and node is not function:
            own.setdefault(node.name, f"#{len(own)}")
    words: list[str] = []

    def look(node: ast.AST) -> None:
        words.append(type(node).__name__)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_comment", "ctx", "kind"):
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                    continue  # a docstring
                if isinstance(part, ast.AST):
                    look(part)
                elif part is not None:
                    words.append(own.get(part, part) if isinstance(part, str) else repr(part))

    look(function)
    return words
