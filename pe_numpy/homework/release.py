"""Write what students get of an assignment: stubs, a README, a workflow; and nbgrader's notebook.

The stubs are the book's, in notebooks/exercises; their solutions come with the package. What
students get has no solution, and neither the seed nor the salt of the assignment. nbgrader's source
notebook has both: it is the teacher's, and nbgrader itself makes the students' version of it.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pe_numpy
from pe_numpy.copy.copy import SOLUTIONS
from pe_numpy.files import write_whole
from pe_numpy.homework.course import ALL, GROUPS, Assignment, read_assignment, seed_of
from pe_numpy.homework.registry import EXERCISES

BOOK = Path(__file__).parents[2] / "notebooks" / "exercises"
PYTHON = "3.12"  # of the workflow and the container
OLDEST = "3.11"
TOLD = {
    "full": "The report names a mistake that is known, and shows the first case that fails.",
    "name": "The report names a mistake that is known.",
    "none": "The report tells the points alone.",
}


@dataclass(frozen=True)
class Sheet:
    """An exercise as students get it, and the teacher's answer."""

    name: str
    head: str  # from def to the end of the docstring
    hints: str  # comments
    imports: list[str]
    body: str  # of the solution, with what it needs from its neighbours inside

    @property
    def stub(self) -> str:
        """The function, to be written."""
        return f"{self.head}\n    raise NotImplementedError\n"


def run(options: argparse.Namespace) -> None:
    """Write what `release` asks for, and tell where."""
    assignment = read_assignment(options.assignment)
    sheets = read_sheets(assignment, options.exercises)
    files = {
        Path(options.folder) / name: text for name, text in release(assignment, sheets).items()
    }
    if options.nbgrader:
        place = Path(options.nbgrader) / "source" / assignment.name / f"{assignment.name}.ipynb"
        files[place] = notebook(assignment, sheets)
    write(files)
    print("\n".join(map(str, files)))
    if not assignment.install:
        print(f"Students install by `{_install(assignment)}`;")
        print(f'if that is elsewhere, say so in {assignment.name}.toml: install = "..."')


# ---- stubs and solutions -------------------------------------------------------------------------


def read_sheets(assignment: Assignment, exercises: str | Path | None = None) -> list[Sheet]:
    """The exercises of an assignment, in its order.

    Parameters
    ----------
    assignment : Assignment
        What is set.
    exercises : path, optional
        A folder of stubs like the book's, with the solutions in a folder of its own beside them.

    Returns
    -------
    A sheet for each exercise.

    Raises
    ------
    ValueError
        If the folder is not there, or has no stub or solution of an exercise; or if the name of
        the assignment can't stand in a command.
    """
    if not re.fullmatch(r"\w[\w-]*", assignment.name, re.ASCII):
        raise ValueError(
            "release: an assignment's file must be called with letters, digits, _ and - alone, as "
            f"in week3.toml; got {assignment.name}.toml"
        )
    folder = BOOK if exercises is None else Path(exercises)
    files = sorted(folder.glob("*.py"))
    if not files:
        raise ValueError(
            f"release: stubs of the exercises must be in {folder}; got none there. "
            "They come with the book, not with the package: name their folder by --exercises"
        )
    return [_sheet(name, files) for name in assignment.points]


def _sheet(name: str, files: Sequence[Path]) -> Sheet:
    # Some stubs stand in two chapters: the exercise's own comes first.
    chapter = f"{EXERCISES[name].chapter:02}_"
    for path in sorted(files, key=lambda path: not path.name.startswith(chapter)):
        text = path.read_text(encoding="utf-8")
        if name in (stubs := _functions(text)):
            break
    else:
        raise ValueError(f"release: no file in {files[0].parent} has a stub of {name}")
    solutions = (SOLUTIONS if path.parent == BOOK else path.parent / "solutions") / path.name
    answers = solutions.read_text(encoding="utf-8") if solutions.exists() else ""
    written = _functions(answers)
    if name not in written:
        raise ValueError(f"release: {solutions} has no solution of {name}")
    stub = stubs[name]
    doc = stub.body[0]
    head = "\n".join(text.splitlines()[stub.lineno - 1 : doc.end_lineno])
    hints = re.findall(rf"^# {name}, \d+:.*\n(?:#  .*\n)*", text + "\n", re.M)
    needed = [_source(answers, written[other]) for other in _needs(written[name], written)]
    body = [textwrap.indent(source, "    ") + "\n" for source in needed]
    body.append(_body(answers, written[name]))
    imports = [ast.unparse(n) for n in ast.parse(text + "\n" + answers).body if _imports(n)]
    return Sheet(name, head, "".join(hints), [*dict.fromkeys(imports)], "\n".join(body))


def _functions(text: str) -> dict[str, ast.FunctionDef]:
    return {n.name: n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}


def _imports(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _source(text: str, node: ast.stmt) -> str:
    return "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno])


def _body(text: str, function: ast.FunctionDef) -> str:
    """The lines of a function after its first, and after its docstring, if there is one."""
    first = 1 if ast.get_docstring(function) else 0
    start = function.body[first].lineno
    above = function.body[0].end_lineno if first else start - 1
    return "\n".join(text.splitlines()[(above or start) : function.end_lineno]).strip("\n")


def _needs(function: ast.FunctionDef, written: dict[str, ast.FunctionDef]) -> list[str]:
    """Functions of the same file that a solution calls, directly or not; those called first."""
    found: list[str] = []

    def look(node: ast.FunctionDef) -> None:
        for inner in ast.walk(node):
            name = inner.id if isinstance(inner, ast.Name) else ""
            if name in written and name not in found and name != function.name:
                found.append(name)
                look(written[name])

    look(function)
    return found[::-1]


# ---- what students get ---------------------------------------------------------------------------


def release(assignment: Assignment, sheets: Sequence[Sheet]) -> dict[str, str]:
    """What students get, as texts by their place in the folder.

    Parameters
    ----------
    assignment : Assignment
        What is set.
    sheets : sequence of sheets
        Its exercises.

    Returns
    -------
    The file to fill in, the assignment without seed and salt, a README, a workflow for GitHub,
    and a container for editors that read devcontainer.json.
    """
    container = {
        "name": assignment.title,
        "image": f"python:{PYTHON}",  # not its slim form, which has no git
        "postCreateCommand": _install(assignment),
    }
    return {
        f"{assignment.name}.py": answers(assignment, sheets),
        f"{assignment.name}.toml": toml(assignment),
        "README.md": readme(assignment),
        ".github/workflows/homework.yml": workflow(assignment),
        ".devcontainer/devcontainer.json": json.dumps(container, indent=2) + "\n",
    }


def write(files: dict[Path, str]) -> None:
    """Write texts to their paths; refuse if one of them is there: it might be somebody's answers.

    Raises
    ------
    ValueError
        With the paths that are there.
    """
    if there := [str(path) for path in files if path.exists()]:
        raise ValueError(f"release: its files must be new; got {', '.join(there)}, already there")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)


def _install(assignment: Assignment) -> str:
    return assignment.install or f"python -m pip install pe_numpy=={pe_numpy.__version__}"


def _check(assignment: Assignment) -> str:
    return f"pe-numpy check --assignment {assignment.name}.toml {assignment.name}.py"


def answers(assignment: Assignment, sheets: Sequence[Sheet]) -> str:
    """The file that students fill in."""
    imports = dict.fromkeys(line for sheet in sheets for line in sheet.imports)
    title = assignment.title.replace("\\", "\\\\").replace('"', "'")
    deadline = assignment.deadline.replace("\\", "\\\\").replace('"', "'")
    head = [
        f'"""{title}.',
        *(["", f"Deadline: {deadline}"] if deadline else []),
        "",
        "Write the functions, then ask what is still wrong:",
        "",
        f"    {_check(assignment)}",
        "",
        "Hints stand at the end of the file, the gentle ones first.",
        '"""',
        "",
        *imports,
    ]
    stubs = [sheet.stub for sheet in sheets]
    rule = "# ---- hints " + "-" * 87
    hints = [sheet.hints for sheet in sheets if sheet.hints]
    return "\n\n\n".join(["\n".join(head), *(stub.rstrip() for stub in stubs)]) + (
        f"\n\n\n{rule}\n\n" + "\n".join(hints) if hints else "\n"
    )


def toml(assignment: Assignment) -> str:
    """The assignment, without seed and salt: students' cases are not those that count."""
    lines = []
    for key in ("title", "deadline", "feedback", "install"):
        if value := getattr(assignment, key):
            lines.append(f"{key} = {_quoted(value)}")
    lines += ["", "[points]"]
    for name, groups in assignment.points.items():
        table = ", ".join(f"{group} = {points:g}" for group, points in groups.items())
        whole = f"{groups.get(ALL, 0):g}" if set(groups) == {ALL} else f"{{ {table} }}"
        lines.append(f"{name} = {whole}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML: as JSON has it, but for one letter."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def readme(assignment: Assignment) -> str:
    """What students read first."""
    rows = [
        f"| `{name}` | {assignment.possible(name):g} | {_parts(groups)} |"
        for name, groups in assignment.points.items()
    ]
    deadline = [f"Deadline: {assignment.deadline}", ""] if assignment.deadline else []
    drawn = assignment.seed or assignment.salt
    told = textwrap.fill(
        f"{TOLD[assignment.feedback]} Your functions are called with many sizes, types and options."
        f"{' Those that count have other numbers than those that you can try.' if drawn else ''} "
        "Don't change the names of the functions or their arguments. Use NumPy and nothing else; a "
        "function that calls the package's own is noted in the report.",
        98,
    )
    text = f"""\
Write the functions in `{assignment.name}.py`: each has its specification, and hints stand at the
end of the file. You need Python {OLDEST} or newer and NumPy, which comes with the checker:

    {_install(assignment)}

Then ask, as often as you like, what is still wrong in all of them, or in one:

    {_check(assignment)}
    pe-numpy check {assignment.name}.py {next(iter(assignment.points))}

(Where the command is not found, `python -m pe_numpy` is the same.)

| function | points | for |
|---|---:|---|
{chr(10).join(rows)}

{told}

On GitHub, each push is checked, and its summary tells the points. In an editor that reads
`.devcontainer/devcontainer.json` all is installed for you.
"""
    return "\n".join([f"# {assignment.title}", "", *deadline, text])


def _parts(groups: dict[str, float]) -> str:
    if set(groups) == {ALL}:
        return "all cases"
    words = {ALL: "all cases", **GROUPS}
    return "; ".join(f"{points:g}: {words[group]}" for group, points in groups.items())


def workflow(assignment: Assignment) -> str:
    """A workflow of GitHub that writes the points into the summary of each push.

    It is red until all is right, and needs nothing but GitHub and the package.
    """
    return f"""\
name: Homework
on: [push, workflow_dispatch]
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-latest
    timeout-minutes: 10
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "{PYTHON}"
      - run: {json.dumps(_install(assignment))}
      - run: {_check(assignment)} --student "$WHO" | sed "s/^/    /" | tee -a "$GITHUB_STEP_SUMMARY"
        shell: bash  # in which a pipe fails with the first of its commands
        env:
          WHO: ${{{{ github.actor }}}}
"""


# ---- nbgrader ------------------------------------------------------------------------------------


def notebook(assignment: Assignment, sheets: Sequence[Sheet]) -> str:
    """The source notebook of nbgrader, with the solutions.

    Each exercise has a cell with its solution, which nbgrader takes out, and a cell of tests for
    each group of cases that has points. The tests that count are hidden: they have another seed.

    Parameters
    ----------
    assignment : Assignment
        What is set.
    sheets : sequence of sheets
        Its exercises.

    Returns
    -------
    The notebook, as text.
    """
    imports = [*dict.fromkeys(line for sheet in sheets for line in sheet.imports)]
    deadline = f"\n\nDeadline: {assignment.deadline}" if assignment.deadline else ""
    cells = [
        _cell("markdown", f"# {assignment.title}{deadline}", "title", locked=True),
        _cell(
            "code",
            "\n".join([*imports, "", "from pe_numpy.homework.course import require"]),
            "imports",
            locked=True,
        ),
    ]
    for sheet in sheets:
        solution = f"### BEGIN SOLUTION\n{sheet.body.rstrip()}\n    ### END SOLUTION"
        cells.append(_cell("code", f"{sheet.head}\n    {solution}", sheet.name, solution=True))
        for group, points in assignment.points[sheet.name].items():
            cells.append(_test(assignment, sheet.name, group, points))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _test(assignment: Assignment, name: str, group: str, points: float) -> dict[str, Any]:
    told = f'"{name}", {name}, "{group}", feedback="{assignment.feedback}"'
    seed = seed_of(assignment.salt, "nbgrader") if assignment.salt else assignment.seed
    lines = [f"require({told})"]
    if seed:
        lines.append(f"### BEGIN HIDDEN TESTS\nrequire({told}, seed={seed})\n### END HIDDEN TESTS")
    options = {"grade": True, "locked": True, "points": points}
    return _cell("code", "\n".join(lines), f"test_{name}_{group}", **options)


def _cell(kind: str, source: str, name: str, **options: Any) -> dict[str, Any]:
    """A cell with what nbgrader wants to know of it (version 3 of its metadata)."""
    told = {"grade": False, "locked": False, "solution": False, "task": False, **options}
    about = {"nbgrader": {"grade_id": name, "schema_version": 3, **told}}
    cell = {"cell_type": kind, "id": name[:64], "metadata": about}
    rest: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {**cell, **rest, "source": source.splitlines(keepends=True)}
