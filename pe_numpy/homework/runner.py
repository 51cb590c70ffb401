"""Check the functions of a file, which runs in a process of its own.

The process gets the names of the exercises, makes their cases, calls the file's functions and
writes what came out, function by function; it never sees what is expected. Whoever asked compares.
A wrong function that is to be measured is so in one more process like this.
A file may crash, loop for ever, eat all memory or print what it likes: it harms its own result
alone. This keeps out accidents; against malice, run it in a container.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import faulthandler
import importlib.machinery
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from pe_numpy.detector import Properties
from pe_numpy.homework.check import NUMBERS, Exercise, Outcome, Verdict, call, judge, told
from pe_numpy.homework.measured import TOLERANCES, Measured, explain, measure
from pe_numpy.homework.registry import EXERCISES, exercise_of

MEASURE = "measure"  # stands before the name of a function that is to be measured
# For one file; after a function that takes them all, the next gets as many, and so does each
# that is measured.
SECONDS = 20.0
MEGABYTES = 2000  # of address space, numpy's own included


@dataclass
class Report:
    """What is said of one file."""

    path: str
    verdicts: list[Verdict] = field(default_factory=list)
    problem: str = ""  # of the file as a whole

    @property
    def passed(self) -> bool:
        """Whether the file ran and all of its functions are right."""
        return not self.problem and all(verdict.passed for verdict in self.verdicts)

    def __str__(self) -> str:
        """Lines for a person."""
        lines = [self.path, *(f"  {self.problem}" for _ in [0] if self.problem)]
        return "\n".join([*lines, *("  " + str(v).replace("\n", "\n  ") for v in self.verdicts)])


def check_file(
    path: str | Path,
    names: Sequence[str] = (),
    seconds: float = SECONDS,
    megabytes: int = MEGABYTES,
) -> Report:
    """Check the functions of one file, or those with the given names.

    Parameters
    ----------
    path : path
        A Python file.
    names : sequence of words
        Exercises to look at; all that the file defines, if none is given.
    seconds, megabytes : numbers
        What the file may take.

    Returns
    -------
    A report, with a verdict for each function.

    Raises
    ------
    ValueError
        If a name is no exercise; the message suggests the nearest.
    """
    path = Path(path)
    report = Report(str(path))
    wanted = [exercise_of(name).name for name in names]
    if path.suffix == ".ipynb":
        report.problem = "a notebook is not read: copy its functions to a .py file"
        return report
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        report.problem = f"the file can't be read: {error.strerror}"
        return report
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        report.problem = f"syntax error{f' in line {line}' if line else ''}: {error.args[0]}"
        return report
    defined = set(_defined(tree))
    found = [name for name in wanted or EXERCISES if name in defined]
    if not found and not wanted:
        report.problem = _none_of_them(defined)
        return report
    for name in wanted:
        if name not in defined:
            report.verdicts.append(Verdict(name, False, 0, "the file does not define it"))
    with tempfile.TemporaryDirectory() as folder:
        report.verdicts += _verdicts(path, found, Path(folder), seconds, megabytes)
    return report


def _defined(node: ast.AST) -> Iterator[str]:
    """Names that a file gives to functions, classes and values of its own, at its top level."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child.name
        elif not isinstance(child, ast.Lambda):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                yield child.id
            yield from _defined(child)


def _none_of_them(defined: set[str]) -> str:
    """Say that a file has no exercise, and which one it may mean."""
    for name in sorted(defined):
        if near := difflib.get_close_matches(name.lower(), EXERCISES, n=1, cutoff=0.8):
            return f"it defines none of the exercises; did you mean {near[0]} for {name}?"
    return f"it defines none of the exercises: {', '.join(EXERCISES)}"


def _verdicts(
    path: Path, names: list[str], folder: Path, seconds: float, megabytes: int
) -> Iterator[Verdict]:
    """Run the functions; after one that ends the process, go on with the next in a new process."""
    while names:
        trouble = _run(path, names, folder, seconds, megabytes)
        while names and (outcomes := _read(folder, EXERCISES[names[0]])) is not None:
            exercise = EXERCISES[names.pop(0)]
            told_of = partial(_explain, path, exercise, seconds, megabytes)
            yield judge(exercise, outcomes, explain=told_of)
        whole = not (folder / "imported").exists()
        for name in names if whole else names[:1]:
            yield Verdict(name, False, 0, trouble or "the process ended before the function did")
        names = [] if whole else names[1:]


def _explain(path: Path, exercise: Exercise, seconds: float, megabytes: int) -> str:
    """Let a function be measured in a process of its own, with a folder of its own."""
    if exercise.scores is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        _run(path, [MEASURE, exercise.name], Path(folder), seconds, megabytes)
        return explain(exercise, _read_measured(Path(folder)))


def _run(path: Path, names: list[str], folder: Path, seconds: float, megabytes: int) -> str:
    """Run a file in a process of its own; say what went wrong, if the process did not end well."""
    command = [sys.executable, "-m", __name__, str(path.resolve()), str(folder), str(seconds)]
    keep = {
        key: os.environ[key] for key in ("PATH", "PYTHONPATH", "SYSTEMROOT") if key in os.environ
    }
    roots = [str(Path(__file__).parents[2]), *keep.get("PYTHONPATH", "").split(os.pathsep)]
    keep["PYTHONPATH"] = os.pathsep.join(os.path.abspath(root) for root in roots if root)
    quiet = {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(folder)}
    scratch = folder / "scratch"  # what the file writes, it writes there
    scratch.mkdir(exist_ok=True)
    log = folder / "errors"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*command, str(megabytes), *names],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=scratch,
            env={**keep, **quiet},
            start_new_session=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds + 5)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # it, and whatever it has started
        code = process.wait()
    text = log.read_text(encoding="utf-8", errors="replace")
    line = _line_in(text, path)
    message = folder / "import error"
    if message.exists():
        return message.read_text(encoding="utf-8", errors="replace")
    if "Timeout (" in text or code in (-signal.SIGKILL, -signal.SIGXCPU):
        return f"it did not end within {seconds:g} seconds{line}"
    if code < 0:
        return f"it crashed ({signal.Signals(-code).name}){line}"
    return f"it stopped with exit status {code}{line}" if code else ""


def _line_in(trace: str, path: Path) -> str:
    """Where faulthandler found a file: the innermost of its lines."""
    for row in trace.splitlines():
        if f'File "{path.resolve()}", line ' in row:
            return f" (line {row.partition(', line ')[2].split()[0]})"
    return ""


# ---- what the process writes --------------------------------------------------------------------


def _write(path: Path, outcomes: list[Outcome]) -> None:
    arrays: dict[str, Any] = {}
    facts = []
    for n, outcome in enumerate(outcomes):
        for m, array in enumerate(outcome.results):
            arrays[f"{n} {m}"] = array
        facts.append([len(outcome.results), outcome.error, outcome.changed, outcome.nothing])
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, facts=np.array(json.dumps(facts)), **arrays)
    part.replace(path)


def _read(folder: Path, exercise: Exercise) -> list[Outcome] | None:
    """Read what a process wrote of an exercise: that may be anything."""
    try:
        with np.load(folder / f"{exercise.name}.npz", allow_pickle=False) as file:
            facts = json.loads(str(file["facts"]))
            outcomes = [
                Outcome(
                    [file[f"{n} {m}"] for m in range(count)], str(error), list(changed), nothing
                )
                for n, (count, error, changed, nothing) in enumerate(facts)
            ]
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None
    kinds = {array.dtype.kind for outcome in outcomes for array in outcome.results}
    return (
        outcomes if len(outcomes) == len(exercise.all_cases()) and kinds <= set(NUMBERS) else None
    )


def _read_measured(folder: Path) -> Measured | None:
    """Read what a process has measured: that may be anything, too."""
    try:
        with (folder / MEASURE).open(encoding="utf-8") as file:
            rows = json.loads(file.read(2000))
        found = tuple(Properties(*row) for row in rows)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    kinds: dict[str, Any] = {"shift": int, "leak": float, "gain": float | None, "rank": int | None}
    right = all(
        isinstance(value, kinds.get(name, bool | str | None))
        for one in found
        for name, value in one._asdict().items()
    )
    return found if right and len(found) == len(TOLERANCES) else None


def _limit(seconds: float, megabytes: int) -> None:
    """Bound what this process may take, where the system can."""
    try:
        import resource
    except ImportError:
        return
    bytes_ = megabytes * 2**20
    for what, most in (
        (resource.RLIMIT_AS, bytes_),
        (resource.RLIMIT_FSIZE, 2**28),
        (resource.RLIMIT_CPU, int(seconds) + 5),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


def _import(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.parent))
    loader = importlib.machinery.SourceFileLoader("homework", str(path))
    spec = importlib.util.spec_from_loader("homework", loader)
    assert spec is not None
    module = sys.modules["homework"] = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _main(path: str, folder: str, seconds: str, megabytes: str, *names: str) -> None:
    """Run in the process: call every function, and write what came out."""
    measuring, names = names[0] == MEASURE, tuple(name for name in names if name != MEASURE)
    cases = {name: EXERCISES[name].all_cases() for name in names}
    faulthandler.enable()
    faulthandler.dump_traceback_later(float(seconds), exit=True)
    _limit(float(seconds), int(megabytes))
    try:
        module = _import(Path(path))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        told_so = f"it can't be imported: {told(error)}"
        (Path(folder) / "import error").write_text(told_so, encoding="utf-8")
        return
    if measuring:
        wanted: Any = getattr(module, names[0], None)
        found = measure(EXERCISES[names[0]], wanted)
        (Path(folder) / MEASURE).write_text(json.dumps(found), encoding="utf-8")
        os._exit(0)
    (Path(folder) / "imported").touch()
    for name in names:
        function: Any = getattr(module, name, None)
        _write(Path(folder) / f"{name}.npz", [call(function, one) for one in cases[name]])
    os._exit(0)  # without waiting for threads that the file has started


if __name__ == "__main__":
    _main(*sys.argv[1:])
