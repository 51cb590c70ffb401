"""Read a file of answers: its code, the cells of a notebook, what it defines and what it borrows.

Nothing is run here, and nothing but a regular file is read. A file that is no Python is told in a
sentence; a function that is the package's own, or a neighbour's, gets a flag, and the teacher
decides.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import importlib.machinery
import json
import os
import re
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pe_numpy.homework.registry import EXERCISES

LARGEST_FILE = 2**24  # bytes that are read of an answer
OWN = "uses the package's own function"
NOT_HERE = "uses a function of another file"
LICENCE = b"The pe_numpy authors"  # in the notice of `pe_numpy copy`
_PARSER = threading.Lock()


class StrangeFileError(Exception):
    """A file that holds no Python code."""


NO_CODE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError, StrangeFileError)


@dataclass
class Submission:
    """A file as it was read, with what it needs to run elsewhere."""

    path: Path
    problem: str = ""  # why it can't be run
    text: bytes = b""
    tree: ast.Module = field(default_factory=lambda: ast.Module([], []))
    cells: list[int] = field(default_factory=list)  # the line before each cell of a notebook
    beside: dict[str, bytes] = field(default_factory=dict)  # modules that it imports by name
    flags: list[str] = field(default_factory=list)
    others: Sequence[Path] = ()  # files that are checked in the same call

    @property
    def name(self) -> str:
        """What the copy is called that runs."""
        return "cells.py" if self.cells else self.path.name

    @property
    def files(self) -> dict[str, bytes]:
        """All that is copied to run it."""
        return {**self.beside, self.name: self.text}


def read(path: Path, others: Sequence[str | Path] = ()) -> Submission:
    """Read a file, and the modules beside it that it imports by name, except for `others`."""
    found = Submission(path, others=[Path(os.path.realpath(other)) for other in others])
    try:
        found.text, found.cells = code_of(path)
        found.tree = tree_of(found.text, str(path))
    except StrangeFileError as error:
        found.problem = str(error)
    except OSError as error:
        found.problem = f"the file can't be read: {error.strerror}"
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        problem = f"syntax error{f' in line {line}' if line else ''}: {error.args[0]}"
        found.problem = printable(of_cells(problem, found.cells))
    except (RecursionError, MemoryError):
        found.problem = "the file can't be read: its code is nested too deeply"
    else:
        if not found.tree.body:
            found.problem = "the file is empty: there is no code in it"
        found.flags = flags_of(found.text, found.tree, path)
        found.beside = _beside(found.tree, path, {*found.others})
    return found


def code_of(path: Path) -> tuple[bytes, list[int]]:
    """The code of a file; for a notebook, also the line before each of its cells."""
    if path.is_dir():
        raise StrangeFileError("it is a folder: name a file, or a folder of .py or .ipynb files")
    text = _read(path)
    if len(text) > LARGEST_FILE:
        raise StrangeFileError(f"it is larger than {LARGEST_FILE >> 20} MB: that is no homework")
    if path.suffix != ".ipynb":
        return text, []
    cells = _cells(text)
    ahead = "from __future__ import annotations"
    lines = [ahead if any(ahead in cell for cell in cells) else ""]
    starts = []
    for cell in cells:
        starts.append(len(lines))
        lines += cell.replace(ahead, "").split("\n")
    return "\n".join(lines).encode(errors="replace"), starts


def _read(path: Path) -> bytes:
    """Read a regular file, and wait for nothing else: a pipe or a device is not opened to read."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    with open(path, "rb", opener=opener) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise StrangeFileError("it is no file that can be read to its end")
        return file.read(LARGEST_FILE + 1)


def _beside(tree: ast.Module, path: Path, others: set[Path]) -> dict[str, bytes]:
    """The modules beside a file that it imports by name, and those that they import."""
    found: dict[str, bytes] = {}
    todo = [tree]
    while todo:
        for name, _ in _imported(todo.pop()):
            folder = path.parent / name
            inside = sorted(folder.rglob("*.py"))[:100] if folder.is_dir() else []
            for place in (folder.with_name(f"{name}.py"), *inside):
                key = place.relative_to(path.parent).as_posix()
                if key in found or place == path or Path(os.path.realpath(place)) in others:
                    continue
                with contextlib.suppress(*NO_CODE):
                    text = _read(place)
                    if sum(map(len, found.values())) + len(text) <= LARGEST_FILE:
                        found[key] = text
                        todo.append(tree_of(text))
    return found


def _cells(text: bytes) -> list[str]:
    """The code cells of a notebook, without what is IPython's."""
    try:
        cells = [c["source"] for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
        return [_plain("".join(source)) for source in cells]
    except (ValueError, TypeError, LookupError, RecursionError):
        raise StrangeFileError("it is no notebook of Jupyter's format 4") from None


def _plain(cell: str) -> str:
    """A cell as Python: lines of IPython (%magic, !command, name?) do nothing."""
    first, _, rest = cell.lstrip().partition("\n")
    if first.startswith("%%"):
        return "\n" + rest if first[2:].split()[:1] in (["time"], ["capture"]) else ""
    try:
        tree_of(cell)
    except (SyntaxError, ValueError):
        magic = r"^([ \t]*)(\w+ *= *)?(?:[%!]{1,2}\w.*|\?.*|[\w.]+\?+[ \t]*)$"
        return re.sub(magic, lambda m: m[1] + (m[2] + "[]" if m[2] else "pass"), cell, flags=re.M)
    return cell


def tree_of(code: str | bytes, name: str = "<unknown>") -> ast.Module:
    """Parse code, one thread at a time: Python 3.11 counts how deep a tree is for all at once.

    Threads that parse at the same time get a SystemError now and then (python/cpython, issue
    106905).
    """
    with _PARSER:
        return ast.parse(code, name)


def of_cells(problem: str, starts: list[int]) -> str:
    """Count the lines of a message from the cell that each is in."""

    def place(found: re.Match) -> str:
        n = sum(start < int(found[1]) for start in starts)
        return f"line {int(found[1]) - starts[n - 1]} of code cell {n}" if n else found[0]

    return re.sub(r"\bline (\d+)\b", place, problem) if starts else problem


def defined_in(tree: ast.AST) -> set[str]:
    """Names that a file gives to functions, classes and values of its own, at its top level."""
    names, todo = set(), [tree]
    while todo:
        for child in ast.iter_child_nodes(todo.pop()):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(child.name)
            elif not isinstance(child, ast.Lambda):
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                    names.add(child.id)
                todo.append(child)
    return names


def methods_in(tree: ast.AST) -> dict[str, str]:
    """Functions that stand in a class, with its name."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {m.name: f"class {c.name}" for c in classes for m in c.body if isinstance(m, kinds)}


PARTS = "parts of it are softmax, rope, attention and multi_head_attention"


def none_of_them(defined: set[str], methods: dict[str, str]) -> str:
    """Say that a file has no exercise, and which one it may mean."""
    for name in methods:
        if name in EXERCISES:
            return f"it defines {name} as a method of {methods[name]}: write a function of its own"
    for name in sorted(defined):
        if "attention" in name.lower() and name not in EXERCISES:
            whole = "the whole of a causal one with RoPE is causal_rope_attention"
            return f"it defines none of the exercises; for {name}, {whole}, and {PARTS}"
    for name in sorted(defined):
        if near := difflib.get_close_matches(name.lower(), EXERCISES, n=1, cutoff=0.8):
            return f"it defines none of the exercises; did you mean {near[0]} for {name}?"
    for name in sorted(defined):  # my_rope
        if words := [e for e in EXERCISES if f"_{e}_" in f"_{name.lower()}_"]:
            return f"it defines none of the exercises; did you mean {words[0]} for {name}?"
    return "it defines none of the exercises, which `python -m pe_numpy list` tells"


def printable(text: str) -> str:
    """A text in letters that can be printed, and stand in XML."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


# ---- whose function it is -----------------------------------------------------------------------


def flags_of(text: bytes, tree: ast.AST, path: Path) -> list[str]:
    """Say how a file uses what is not its own: this package, or a neighbour's answers."""
    flags = []
    imported = {name: line for name, line in _imported(tree)}
    if "pe_numpy" in imported:
        flags.append(f"{OWN}: it imports pe_numpy in line {imported['pe_numpy']}")
    if LICENCE in b" ".join(text.split()):
        flags.append(f"{OWN}: it carries the licence notice of `pe_numpy copy`")
    for name in sorted(name for name in imported if not _is_elsewhere(name, path.parent)):
        beside = path.parent / f"{name}.py"
        if name != path.stem and (answers := _answers(beside)):
            flags.append(f"{NOT_HERE}: it imports {beside.name} beside it, which has {answers[0]}")
    return flags


def _imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Modules that a file imports, without what stands behind a dot, and the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0], node.lineno


def _is_elsewhere(name: str, folder: Path) -> bool:
    """Whether a module is found before a file in this folder, which comes last."""
    path = [place for place in sys.path if place and Path(place).resolve() != folder.resolve()]
    known = name in sys.stdlib_module_names
    return known or importlib.machinery.PathFinder.find_spec(name, path) is not None


def _answers(path: Path) -> list[str]:
    """Exercises that a file beside the answers has itself."""
    try:
        defined = defined_in(tree_of(code_of(path)[0]))
    except NO_CODE:
        return []
    return [name for name in EXERCISES if name in defined]
