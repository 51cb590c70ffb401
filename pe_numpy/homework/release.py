"""Write what students get of an assignment: stubs, a README, a workflow, and the checker itself.

What students get has no solution, and neither the seed nor the salt of the assignment. The checker
is this package in one file, `checker.pyz`, which Python runs as it is, with NumPy and nothing else.
nbgrader's source notebook and Gradescope's archive are the teacher's: they have seed or salt.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import textwrap
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pe_numpy.copy.copy import SOLUTIONS
from pe_numpy.files import write_whole
from pe_numpy.homework.course import (
    ALL,
    GROUPS,
    IMPORTS,
    Assignment,
    file_names,
    read_assignment,
    read_roster,
    seed_of,
)
from pe_numpy.homework.registry import EXERCISES
from pe_numpy.homework.variants import told_of

HERE = Path(__file__).parent
STUBS, HANDOUT, PLANS = SOLUTIONS.parent / "stubs", HERE / "handout", HERE / "plans.toml"
PACKAGE = HERE.parent
DRAWN = ("book/plots/", "book/explore/")  # parts of the package that the checker can do without
PYTHON = "3.12"  # of the workflow and the container
CHECKER = "checker.pyz"
SETTINGS = """
feedback = "full"  # or "name", or "none" until the deadline
# deadline = 2030-06-07T18:00:00+02:00  # a later file is told to be late
# salt = "a word of your own"  # other numbers for each student; students must not know it
# variants = true  # with a salt: another sign, order or base for each student of a roster
# book = "https://PLACE/CHAPTER.html"  # where students read the chapters
"""
TOLD = {
    "full": "The report names a mistake that is known, and shows the first case that fails.",
    "name": "The report names a mistake that is known.",
    "none": "The report tells only the points.",
}


@dataclass(frozen=True)
class Sheet:
    """An exercise as students get it, and the teacher's answer."""

    name: str
    chapter: str  # as "40_rope_derived"
    head: str  # from def to the end of the docstring
    hints: str  # comments
    imports: list[str]
    body: str  # of the solution, with what it needs from its neighbours inside

    @property
    def stub(self) -> str:
        """The function, to be written."""
        return f"{self.head}\n    raise NotImplementedError\n"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `release`."""
    parser.add_argument("assignment", metavar="TOML")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("--nbgrader", metavar="COURSE", help="write its notebook there, too")
    parser.add_argument("--gradescope", metavar="ZIP", help="write its autograder, too")
    parser.add_argument("--roster", metavar="FILE", help="a folder for each student: variants")


def run(options: argparse.Namespace) -> None:
    """Write what `release` asks for, and tell where."""
    assignment = read_assignment(options.assignment)
    if assignment.variants and (options.nbgrader or not options.roster):
        raise ValueError("release: variants need --roster, and are not for nbgrader's one notebook")
    files: dict[Path, str | bytes] = {}
    names = file_names(read_roster(options.roster)) if options.roster else {"": ""}
    for student, name in names.items():
        own = {new: assignment.points[old] for old, new in assignment.names_of(student).items()}
        theirs = replace(assignment, points=own)
        files |= in_folder(Path(options.folder) / name, release(theirs, read_sheets(theirs)))
    if options.nbgrader:
        sheets = read_sheets(assignment)
        place = Path(options.nbgrader) / "source" / assignment.name
        files |= in_folder(place, {f"{assignment.name}.ipynb": notebook(assignment, sheets)})
        files |= in_folder(place, {CHECKER: checker()})
    if options.gradescope:
        whole = Path(options.assignment).read_text(encoding="utf-8")
        files[Path(options.gradescope)] = autograder(assignment, whole)
    write(files)
    print("\n".join(map(str, files)))


def in_folder(folder: str | Path, files: Mapping[str, str | bytes]) -> dict[Path, str | bytes]:
    """The same files, by their paths."""
    return {Path(folder) / name: text for name, text in files.items()}


# ---- plans ---------------------------------------------------------------------------------------


def plan(lessons: int) -> dict[str, str]:
    """The assignments of a plan for 4, 8 or 12 lessons, as texts by their names."""
    table = tomllib.loads(PLANS.read_text(encoding="utf-8"))
    if str(lessons) not in table["plans"]:
        there = ", ".join(table["plans"])
        raise ValueError(f"plan: there are plans for {there} lessons; got {lessons}")
    files = {}
    for week, chapters in enumerate(table["plans"][str(lessons)], start=1):
        own = [table[str(chapter)] for chapter in chapters]
        title = f"Week {week}: {' and '.join(one['title'] for one in own)}"
        points = {name: value for one in own for name, value in one["points"].items()}
        groups = {name: g if isinstance(g, dict) else {ALL: g} for name, g in points.items()}
        told = " and ".join(f"chapter {chapter}" for chapter in chapters)
        head, _, rest = toml(Assignment("", title, groups, feedback="")).partition("\n\n")
        files[f"week{week}.toml"] = (
            f"# Homework after lesson {week} of {lessons}: {told}.\n{head}{SETTINGS}\n{rest}"
        )
    return files


# ---- the checker ---------------------------------------------------------------------------------


def checker() -> bytes:
    """Pack this package into one file that Python runs: it unpacks itself for a while."""
    paths = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.*")]
    wanted = (p for p in sorted(paths) if p.endswith((".py", ".toml", ".csv")))
    files: dict[str, str | bytes] = {
        f"{PACKAGE.name}/{path}": (PACKAGE / path).read_bytes()
        for path in wanted
        if not path.startswith(DRAWN)
    }
    return archive({"__main__.py": (HANDOUT / "unpack.py").read_bytes(), **files})


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """A zip archive, the same bytes for the same files."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            about = zipfile.ZipInfo(name)
            about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, 0o100755 << 16
            archive.writestr(about, data)
    return whole.getvalue()


def autograder(assignment: Assignment, toml: str) -> bytes:
    """Gradescope's archive: how to set up, how to grade, the checker, and the whole assignment."""
    scripts = {name: _filled(name, assignment) for name in ("setup.sh", "run_autograder")}
    return archive({**scripts, CHECKER: checker(), f"{assignment.name}.toml": toml})


# ---- stubs and solutions -------------------------------------------------------------------------


def read_sheets(assignment: Assignment) -> list[Sheet]:
    """The exercises of an assignment, in its order; its name must be fit for a command."""
    if not re.fullmatch(r"\w[\w-]*", assignment.name, re.ASCII):
        raise ValueError(
            "release: an assignment's file must be called with letters, digits, _ and - alone, as "
            f"in week3.toml; got {assignment.name}.toml"
        )
    return [*map(_sheet, assignment.points)]


def _sheet(name: str) -> Sheet:
    told = told_of(name)
    plain = name.rpartition("_")[0] if told else name
    # Some stubs are in two chapters: the exercise's own comes first.
    own = f"{EXERCISES[plain].chapter:02}_"
    for path in sorted(STUBS.glob("*.py"), key=lambda path: not path.name.startswith(own)):
        text = path.read_text(encoding="utf-8")
        if plain in (stubs := _functions(text)):
            break
    answers = (SOLUTIONS / path.name).read_text(encoding="utf-8")
    written, doc = _functions(answers), stubs[plain].body[0]
    head = "\n".join(text.splitlines()[stubs[plain].lineno - 1 : doc.end_lineno])
    if told:
        head = head.replace(f"def {plain}(", f"def {name}(").removesuffix('"""').rstrip()
        head += f'\n\n    Your variant: {told}.\n    """'
    hints = re.findall(rf"^# {plain}, (\d+:.*\n(?:#  .*\n)*)", text + "\n", re.M)
    needed = [_source(answers, written[other]) for other in _needs(written[plain], written)]
    body = [textwrap.indent(source, "    ") + "\n" for source in needed]
    body.append(_body(answers, written[plain]))
    imports = [ast.unparse(n) for n in ast.parse(text + "\n" + answers).body if _imports(n)]
    hint = "".join(f"# {name}, {one}" for one in hints)
    return Sheet(name, path.stem, head, hint, [*dict.fromkeys(imports)], "\n".join(body))


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


def release(assignment: Assignment, sheets: Sequence[Sheet]) -> dict[str, str | bytes]:
    """What students get, by its place in the folder."""
    container = {
        "name": assignment.title,
        "image": f"python:{PYTHON}",  # not its slim form, which has no git
        "postCreateCommand": _install(assignment),
    }
    return {
        f"{assignment.name}.py": answers(assignment, sheets),
        f"{assignment.name}.toml": toml(assignment),
        CHECKER: checker(),
        "README.md": readme(assignment),
        ".github/workflows/homework.yml": _filled("homework.yml", assignment),
        ".devcontainer/devcontainer.json": json.dumps(container, indent=2) + "\n",
    }


def write(files: Mapping[Path, str | bytes]) -> None:
    """Write files; refuse, in a ValueError, if one is there: it might be somebody's answers."""
    if there := [str(path) for path in files if path.exists()]:
        raise ValueError(f"release: its files must be new; got {', '.join(there)}, already there")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)


def _install(assignment: Assignment) -> str:
    return assignment.install or "python -m pip install numpy"


def _check(assignment: Assignment) -> str:
    return f"python {CHECKER} check --assignment {assignment.name}.toml {assignment.name}.py"


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
    for key in ("title", "deadline", "feedback", "install", "book"):
        if value := getattr(assignment, key):
            lines.append(f"{key} = {_quoted(value)}")
    lines += ["", "[points]"]
    for name, groups in assignment.points.items():
        table = ", ".join(f"{group} = {points:g}" for group, points in groups.items())
        whole = f"{groups.get(ALL, 0):g}" if set(groups) == {ALL} else f"{{ {table} }}"
        lines.append(f"{name} = {whole}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML: as JSON has it, except for one letter."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def readme(assignment: Assignment) -> str:
    """What students read first."""
    rows = [
        f"| `{name}` | {assignment.possible(name):g} | {_parts(groups)} |"
        for name, groups in assignment.points.items()
    ]
    drawn = assignment.seed or assignment.salt
    told = textwrap.fill(
        f"{TOLD[assignment.feedback]} Your functions are called with many sizes, types and options."
        f"{' Those that count have other numbers than those that you can try.' if drawn else ''} "
        "Don't change the names of the functions or their arguments. Use NumPy and nothing else; a "
        "function that calls the package's own is noted in the report.",
        98,
    )
    return _filled("README.md", assignment, rows="\n".join(rows), told=told)


def _filled(name: str, assignment: Assignment, **words: str) -> str:
    """A file of the folder `handout`, with what an assignment has for each @word@."""
    deadline = f"Deadline: {assignment.deadline}\n\n" if assignment.deadline else ""
    words |= {
        "name": assignment.name,
        "title": assignment.title,
        "deadline": deadline,
        "first": next(iter(assignment.points)),
        "install": _install(assignment),
        "check": _check(assignment),
        "python": PYTHON,
    }
    text = (HANDOUT / name).read_text(encoding="utf-8")
    return re.sub("@([a-z]+)@", lambda found: words[found[1]], text)


def _parts(groups: dict[str, float]) -> str:
    if set(groups) == {ALL}:
        return "all cases"
    words = {ALL: "all cases", **GROUPS}
    return "; ".join(f"{points:g}: {words[group]}" for group, points in groups.items())


# ---- nbgrader ------------------------------------------------------------------------------------


def notebook(assignment: Assignment, sheets: Sequence[Sheet]) -> str:
    """The source notebook of nbgrader, with the solutions.

    Each exercise has its hints, a cell with its solution, which nbgrader takes out, and a cell of
    tests for each group of cases that has points. The tests that count are hidden: they have
    another seed, and import what they need, whatever the cells of answers have made of its name.
    """
    imports = [*dict.fromkeys(line for sheet in sheets for line in sheet.imports)]
    deadline = f"\n\nDeadline: {assignment.deadline}" if assignment.deadline else ""
    cells = [
        _cell("markdown", f"# {assignment.title}{deadline}", "title", locked=True),
        _cell(
            "code",
            "\n".join([*imports, "import runpy", "", f'runpy.run_path("{CHECKER}")  # unpacks it']),
            "imports",
            locked=True,
        ),
    ]
    for sheet in sheets:
        cells.append(_cell("markdown", _help(assignment, sheet), f"help_{sheet.name}", locked=True))
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


def _help(assignment: Assignment, sheet: Sheet) -> str:
    """The chapter of an exercise, and its hints, folded."""
    chapter = f"chapter {sheet.chapter[:2]}"
    if assignment.book:
        chapter = f"[{chapter}]({assignment.book.replace('CHAPTER', sheet.chapter)})"
    hints = "\n".join(f"- {hint}" for hint in _hints(sheet))
    return (
        f"## {sheet.name}\n\nIt is derived in {chapter}.\n\n"
        f"<details><summary>Hints</summary>\n\n{hints}\n\n</details>"
    )


def _hints(sheet: Sheet) -> Iterable[str]:
    """The hints of a sheet without what makes them comments."""
    whole = re.sub(r"\n#  +", " ", sheet.hints.strip())
    return (line.partition(": ")[2] for line in whole.splitlines())


def _test(assignment: Assignment, name: str, group: str, points: float) -> dict[str, Any]:
    told = f'"{name}", {name}, "{group}", feedback="{assignment.feedback}"'
    seed = seed_of(assignment.salt, "nbgrader") if assignment.salt else assignment.seed
    lines = [IMPORTS[0], "", f"require({told})"]
    hidden = ["import importlib", IMPORTS[1]]
    hidden.append(f"importlib.reload(course).require({told}, seed={seed})")
    lines += ["### BEGIN HIDDEN TESTS", *hidden, "### END HIDDEN TESTS"]
    options = {"grade": True, "locked": True, "points": points}
    return _cell("code", "\n".join(lines), f"test_{name}_{group}", **options)


def _cell(kind: str, source: str, name: str, **options: Any) -> dict[str, Any]:
    """A cell with what nbgrader wants to know of it (version 3 of its metadata)."""
    told = {"grade": False, "locked": False, "solution": False, "task": False, **options}
    about = {"nbgrader": {"grade_id": name, "schema_version": 3, **told}}
    cell = {"cell_type": kind, "id": name[:64], "metadata": about}
    rest: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {**cell, **rest, "source": source.splitlines(keepends=True)}
