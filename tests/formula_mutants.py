"""Test the assertions of the chapters: change the code below a formula, one thing at a time.

Usage: python tests/formula_mutants.py [STEM ...]     (without a stem: all that need no weights)

For each code cell that follows a displayed formula: run the chapter up to it, then the cell with
one thing changed: + and -, * and /, sin and cos, max and min, sum and mean ... swapped, a minus
dropped, the bound of an inequality made a fifth stronger. An assertion of the cell must fail, or
what it prints must change. A survivor is a claim that nothing tests, or stands with a reason in
`tests/survivors/STEM.txt`:

    # the reason, for all changes below it
    - the line as it is
    + the line as the mutant has it

What only makes inputs or pictures is left alone: random generators, plots, sizes, tolerances.
Cells above run once for all mutants: where a model is large, it runs in a cell above the formula.
"""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import matplotlib
import matplotlib.pyplot as plt
from scripts import script

ROOT = Path(__file__).parent.parent
SURVIVORS = ROOT / "tests" / "survivors"

PAIRS = [("sin", "cos"), ("max", "min"), ("maximum", "minimum"), ("argmax", "argmin"),
         ("sum", "mean"), ("tril", "triu"), ("floor", "ceil")]  # fmt: skip
OTHER = dict(PAIRS) | {b: a for a, b in PAIRS}
OPERATORS = {ast.Add: "+-", ast.Sub: "-+", ast.Mult: "*/", ast.Div: "/*"}
PICTURES = re.compile(r"(plots|plt|slider|show_source|show_short)\b")
RANDOM = re.compile(
    r"\.(default_rng|standard_normal|random|normal|uniform|integers|choice|permutation)\("
)
SETTINGS = {"atol", "rtol", "abs_tol", "rel_tol", "axis", "seed", "size", "shape"}
SMALL = 1e-3  # a bound of this size is a tolerance, not a claim


class Mutant(NamedTuple):
    """A changed cell, and its first line that differs: as it was and as it is now."""

    cell: str
    was: str
    now: str


# ---- changing a cell ----------------------------------------------------------------------------


def places(node: ast.AST) -> Iterator[ast.AST]:
    """Walk over a cell's code, leaving out what makes inputs or pictures, and text to print."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.keyword) and node.arg in SETTINGS):
        return
    if isinstance(node, ast.Call) and PICTURES.match(ast.unparse(node.func)):
        return
    if isinstance(node, ast.Call) and RANDOM.search(f"{ast.unparse(node.func)}("):
        return
    if not (isinstance(node, ast.BinOp) and RANDOM.search(ast.unparse(node))):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from places(child)


def edits(source: str) -> Iterator[tuple[int, int, str]]:
    """Each change as (start, end, new text), in bytes of the cell."""
    text = source.encode()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (starts[node.lineno - 1] + node.col_offset,
                starts[node.end_lineno - 1] + node.end_col_offset)  # fmt: skip

    for node in places(ast.parse(source)):
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            old, new = OPERATORS[type(node.op)]
            at = text.index(old.encode(), span(node.left)[1], span(node.right)[0])
            yield at, at + 1, new
        elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
            old, new = OPERATORS[type(node.op)]
            at = text.index(old.encode(), span(node.target)[1], span(node.value)[0])
            yield at, at + 1, new
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            start, _ = span(node)
            yield start, start + 1, " "
        elif isinstance(node, ast.Attribute) and node.attr in OTHER:
            _, end = span(node)
            yield end - len(node.attr), end, OTHER[node.attr]
        elif isinstance(node, ast.Name) and node.id in ("max", "min"):
            yield (*span(node), OTHER[node.id])
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
                if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                    less = isinstance(op, ast.Lt | ast.LtE)
                    side, up = (left, less) if number(left) is not None else (right, not less)
                    if number(side) is None or abs(number(side) or 0) > SMALL:
                        start, end = span(side)
                        yield start, end, stronger(side, text[start:end].decode(), up)


def number(node: ast.expr) -> float | None:
    """The value of a literal number."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int | float) else None


def stronger(side: ast.expr, bound: str, up: bool) -> str:
    """A bound moved by a fifth of its size."""
    value = number(side)
    if value is None:
        return f"({bound} {'+' if up else '-'} 0.2 * abs({bound}))"
    return f"{value + (0.2 if up else -0.2) * abs(value):g}"


def mutants(source: str) -> Iterator[Mutant]:
    """Every changed version of a cell."""
    text = source.encode()
    for start, end, new in sorted(edits(source)):
        changed = (text[:start] + new.encode() + text[end:]).decode()
        number = text[:start].count(b"\n")
        lines = source.splitlines(), changed.splitlines()
        yield Mutant(changed, lines[0][number].strip(), lines[1][number].strip())


# ---- running a chapter --------------------------------------------------------------------------


def asserting_cells(cells: list) -> set[int]:
    """The numbers of the code cells that follow a displayed formula."""
    return {
        n + 1
        for n, (cell, after) in enumerate(itertools.pairwise(cells))
        if cell.cell_type == "markdown" and "$$" in cell.source and after.cell_type == "code"
    }


def printed(source: str, variables: dict) -> str:
    """Run a cell; return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "cell", "exec"), variables)
    return out.getvalue()


def lives(mutant: Mutant, expected: str, seconds: int, variables: dict) -> bool:
    """Whether a mutant passes its cell in a process of its own, and prints what it should."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    try:
        signal.alarm(seconds)  # a change may make a loop endless; then the process ends, not ours
        warnings.simplefilter("ignore")
        with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
            same = printed(mutant.cell, variables) == expected
    except BaseException:
        same = False
    finally:
        os._exit(0 if same else 1)


def survivors(cells: list) -> tuple[int, list[Mutant]]:
    """Run a chapter's cells, and each mutant of its asserting cells: how many, and which live."""
    matplotlib.use("Agg")
    plt.show = lambda: plt.close("all")
    chosen = asserting_cells(cells)
    variables: dict = {"__name__": "__main__"}
    tried, alive = 0, []
    for number, cell in enumerate(cells):
        if cell.cell_type != "code":
            continue
        found = list(mutants(cell.source)) if number in chosen else []
        if found:
            start = time.monotonic()
            expected = prints(cell.source, variables)
            seconds = 5 + int(10 * (time.monotonic() - start))
            alive += [m for m in found if lives(m, expected, seconds, variables)]
            tried += len(found)
        printed(cell.source, variables)
    return tried, alive


def prints(source: str, variables: dict) -> str:
    """What an unchanged cell prints, found out by a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            with os.fdopen(writer, "w") as pipe:
                pipe.write(printed(source, variables))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


# ---- chapters -----------------------------------------------------------------------------------


def explained(stem: str) -> dict[tuple[str, str], str]:
    """The survivors of a chapter that may live: (was, now) -> reason."""
    path = SURVIVORS / f"{stem}.txt"
    found, reason, was = {}, "", ""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        if line.startswith("# "):
            reason = f"{reason} {line[2:]}".strip() if was == "#" else line[2:]
            was = "#"
        elif line.startswith("- "):
            was = line[2:]
        elif line.startswith("+ "):
            assert reason and was not in ("", "#"), f"{path.name}: {line}"
            found[was, line[2:]] = reason
    return found


def report(stem: str) -> tuple[str, int, list[str]]:
    """Try one chapter: its stem, the number of mutants, and a line for each thing to mend."""
    build = script("notebooks/build.py")
    with contextlib.chdir(ROOT / "notebooks"):
        tried, alive = survivors(build.read_source(Path(f"{stem}.py")).cells)
    reasons = explained(stem)
    lines = [f"SURVIVED  {stem}\n- {m.was}\n+ {m.now}" for m in alive if m[1:] not in reasons]
    gone = reasons.keys() - {m[1:] for m in alive}
    lines += [f"CAUGHT NOW, or not there  {stem}\n- {was}\n+ {now}" for was, now in sorted(gone)]
    return stem, tried, lines


def main(stems: list[str]) -> None:
    """Try chapters, two at a time, and report what nothing tests."""
    build = script("notebooks/build.py")
    known = [path.stem for path in build.sources()]
    if unknown := set(stems) - set(known):
        raise SystemExit(f"no such chapter: {', '.join(sorted(unknown))}")
    if why := "\n".join(filter(None, map(build.missing, stems))):
        raise SystemExit(why)
    chosen = stems or [stem for stem in known if not build.toc.needs_weights(stem)]
    total = mend = 0
    with ProcessPoolExecutor(2, max_tasks_per_child=1) as pool:
        for stem, tried, lines in pool.map(report, chosen):
            print(*lines, sep="\n", end="\n" if lines else "")
            left = f"{len(lines)} to mend" if lines else "no unexplained survivor"
            print(f"{stem}: {tried} mutants of formulas, {left}", flush=True)
            total, mend = total + tried, mend + len(lines)
    print(f"{total} mutants of formulas, {mend} to mend")
    sys.exit(bool(mend))


if __name__ == "__main__":
    main(sys.argv[1:])
