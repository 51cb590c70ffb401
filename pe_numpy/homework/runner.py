"""Check the functions of a file, which runs in a process of its own.

The process gets the names of the exercises, makes their cases, calls the file's functions and
writes what came out, function by function; it never sees what is expected. Whoever asked compares.
A wrong function that is to be measured is so in one more process like this.
A file may crash, loop for ever, eat all memory or print what it likes: it harms its own result
alone. This keeps out accidents; against malice, run it in a container.

The process is isolated (`python -I`), works in an empty folder, and finds the standard library and
NumPy before the files beside the one that it runs, whatever these are called. Memory is limited
where the system has a limit (not on Windows, hardly on macOS); so is what is left behind: a child
that leaves its group is found again on Linux alone, and on Windows only while its parent lives.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib.abc
import importlib.machinery
import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import pe_numpy
from pe_numpy.homework.cases import NUMBERS, Exercise, Outcome, call, told
from pe_numpy.homework.check import Verdict, judge
from pe_numpy.homework.measured import TOLERANCES, Measured, explain, measure
from pe_numpy.homework.registry import EXERCISES, exercise_of
from pe_numpy.homework.submission import (
    StrangeFileError,
    code_of,
    defined_in,
    flags_of,
    methods_in,
    none_of_them,
    of_cells,
    printable,
    tree_of,
)
from pe_numpy.judging.properties import Properties

MEASURE = "measure"  # stands before the name of a function that is to be measured
SECONDS = 20.0  # for a function
BUDGET = 60.0  # seconds for a file, if it is not three times those of a function
MEGABYTES = 2000  # of address space, numpy's own included
LARGEST_WRITTEN = 2**26  # bytes of the results of one function, in all cases together
HAS_LIMITS = importlib.util.find_spec("resource") is not None  # of memory

# What the process runs: the path of this one, since an isolated process gets none.
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    f"from {__name__} import _main; _main(*sys.argv[1:])"
)


@dataclass
class Report:
    """What is said of one file."""

    path: str
    verdicts: list[Verdict] = field(default_factory=list)
    problem: str = ""  # of the file as a whole
    flags: list[str] = field(default_factory=list)  # for the teacher; they decide nothing
    seed: int = 0
    version: str = pe_numpy.__version__

    @property
    def passed(self) -> bool:
        """Whether the file ran and all of its functions are right."""
        return not self.problem and all(verdict.passed for verdict in self.verdicts)

    def __str__(self) -> str:
        """Lines for a person."""
        seed = f" (seed {self.seed})" if self.seed else ""
        lines = [printable(self.path) + seed, *(f"flag: {flag}" for flag in self.flags)]
        lines += [self.problem for _ in [0] if self.problem] + [str(v) for v in self.verdicts]
        return "\n".join(lines).replace("\n", "\n  ")


def check_file(
    path: str | Path,
    names: Sequence[str] = (),
    seconds: float = SECONDS,
    megabytes: int = MEGABYTES,
    seed: int = 0,
    budget: float | None = None,
    allow_package: bool = False,
) -> Report:
    """Check the functions of one file, or those with the given names.

    Parameters
    ----------
    path : path
        A Python file, or a notebook, of which the code cells are read.
    names : sequence of words
        Exercises to look at; all that the file defines, if none is given.
    seconds, megabytes : numbers
        What each function may take.
    seed : int
        Of the cases.
    budget : number, optional
        Seconds for the file; a minute, or three times `seconds` if that is more.
    allow_package : bool
        Whether a file that uses the package's own functions goes without a flag.

    Returns
    -------
    A report, with a verdict for each function.

    Raises
    ------
    ValueError
        If a name is no exercise; the message suggests the nearest.
    """
    return check_files([path], names, seconds, megabytes, seed, budget, allow_package, jobs=1)[0]


def check_files(
    paths: Sequence[str | Path],
    names: Sequence[str] = (),
    seconds: float = SECONDS,
    megabytes: int = MEGABYTES,
    seed: int | Callable[[str], int] = 0,
    budget: float | None = None,
    allow_package: bool = False,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    found: Callable[[Report], None] | None = None,
) -> list[Report]:
    """Check several files, some at the same time; the reports come in the files' order.

    Parameters
    ----------
    paths, names, seconds, megabytes, budget, allow_package
        As in `check_file`.
    seed : int or function
        Of the cases of all files; a function is asked for that of each path.
    jobs : int, optional
        Files at a time; as many as there are cores for this process, if none is given.
    progress : function, optional
        Gets the number of files that are done, and of all, whenever one is done.
    found : function, optional
        Gets each report as soon as it is there.

    Returns
    -------
    A list of reports.

    Raises
    ------
    ValueError
        If a name is no exercise.
    """
    wanted = [exercise_of(name).name for name in names]
    most = max(BUDGET, 3 * seconds) if budget is None else budget
    reports: dict[int, Report] = {}
    # One filter for all threads: parsing strange code warns.
    with warnings.catch_warnings(), ThreadPoolExecutor(jobs or _cores()) as pool:
        warnings.simplefilter("ignore")
        tasks = {}
        for n, path in enumerate(paths):
            own = seed(str(path)) if callable(seed) else seed
            limits = Limits(min(seconds, most), megabytes, own, most)
            tasks[pool.submit(_check, Path(path), wanted, limits, allow_package)] = n
        try:
            for done, task in enumerate(as_completed(tasks), start=1):
                reports[tasks[task]] = task.result()
                if found is not None:
                    found(task.result())
                if progress is not None:
                    progress(done, len(tasks))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [reports[n] for n in range(len(paths))]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what files may take to the options of a command."""
    add = parser.add_argument
    add("--seconds", type=float, default=SECONDS, help=f"for a function; {SECONDS:g}")
    add("--budget", type=float, help=f"seconds for a file; {BUDGET:g}, or 3 x --seconds")
    where = "" if HAS_LIMITS else "; this system has no such limit"
    add("--megabytes", type=int, default=MEGABYTES, help=f"of memory; {MEGABYTES}{where}")
    add("--jobs", type=int, help="files at a time; as many as there are cores")
    add(
        "--allow-package",
        action="store_true",
        help="no flag for a file that uses this package's own functions",
    )


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `check_files` that those options stand for, with a line that tells progress."""
    names = ("seconds", "budget", "megabytes", "jobs", "allow_package")
    for name in names[:4]:
        if (value := getattr(options, name)) is not None and not value > 0:
            raise ValueError(f"check: --{name} must be positive; got {value}")
    if not HAS_LIMITS:
        print("check: this system has no limit of memory for a process", file=sys.stderr)
    shown = tell_progress if sys.stderr.isatty() else None
    return {**{name: getattr(options, name) for name in names}, "progress": shown}


def tell_progress(done: int, total: int) -> None:
    """Write how many files are done, on one line of the terminal."""
    if total > 1:
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} files", end=end, file=sys.stderr, flush=True)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass
class Limits:
    """What a file may take, and the seed of its cases."""

    seconds: float
    megabytes: int
    seed: int
    budget: float
    end: float = math.inf  # when the budget is used up, by this process's clock

    def left(self) -> float:
        """Seconds that are left of the budget."""
        return self.end - time.monotonic()


def _check(path: Path, wanted: list[str], limits: Limits, allow_package: bool) -> Report:
    report = Report(str(path), seed=limits.seed)
    try:
        _fill(report, path, wanted, limits, allow_package)
    except Exception as error:  # the other files of a class are checked all the same
        report.problem = printable(f"the checker itself failed: {type(error).__name__}: {error}")
    return report


def _fill(
    report: Report, path: Path, wanted: list[str], limits: Limits, allow_package: bool
) -> None:
    """Read a file, run it, and say in a report what came of it."""
    cells: list[int] = []
    try:
        text, cells = code_of(path)
        tree = tree_of(text, str(path))
    except StrangeFileError as error:
        report.problem = str(error)
        return
    except OSError as error:
        report.problem = f"the file can't be read: {error.strerror}"
        return
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        report.problem = f"syntax error{f' in line {line}' if line else ''}: {error.args[0]}"
        report.problem = printable(of_cells(report.problem, cells))
        return
    except (RecursionError, MemoryError):
        report.problem = "the file can't be read: its code is nested too deeply"
        return
    limits.end = time.monotonic() + limits.budget
    defined, methods = defined_in(tree), methods_in(tree)
    found = [name for name in wanted or EXERCISES if name in defined]
    used: dict[str, Any] = {}
    if not tree.body:
        report.problem = "the file is empty: there is no code in it"
    elif not found and not wanted:
        report.problem = none_of_them(defined, methods)
    else:
        for name in wanted:
            if name not in defined:
                why = f", but a method of {methods[name]}" if name in methods else ""
                problem = f"the file does not define it{why}"
                report.verdicts.append(Verdict(name, False, 0, problem))
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            run = _Run(path.resolve(), path.resolve().parent, Path(folder).resolve(), limits)
            if cells:
                run.path = run.folder / "cells.py"
                run.path.write_bytes(text)
            report.verdicts += _verdicts(run, found)
            used = _read_used(run.folder)
        for verdict in report.verdicts:
            verdict.problem = of_cells(verdict.problem, cells)
    if not allow_package:
        report.flags = flags_of(text, tree, path, used)


# ---- running it ---------------------------------------------------------------------------------


@dataclass
class _Run:
    """Code to run, the folder from which it may import, one for what comes out, and limits."""

    path: Path
    beside: Path
    folder: Path
    limits: Limits


def _verdicts(run: _Run, names: list[str]) -> Iterator[Verdict]:
    """Run the functions; after one that ends the process, go on with the next in a new process."""
    over = f"the file has used up its {run.limits.budget:g} seconds"
    while names:
        if run.limits.left() < 0.5:
            yield from (Verdict(name, False, 0, f"not run: {over}") for name in names)
            return
        trouble = _start(run, names)
        if trouble.startswith("it did not end") and run.limits.left() < 0.5:
            trouble = over + trouble.partition(" seconds")[2]
        while names:
            exercise = EXERCISES[names[0]]
            cases = exercise.all_cases(run.limits.seed)
            answer = _read(run.folder / f"{exercise.name}.out", len(cases))
            if answer is None:
                break
            names.pop(0)
            if isinstance(answer, str):
                yield Verdict(exercise.name, False, 0, answer)
            else:
                yield judge(exercise, answer, cases, partial(_explain, run, exercise))
        whole = not (run.folder / "imported").exists()
        for name in names if whole else names[:1]:
            yield Verdict(name, False, 0, trouble or "the process ended before the function did")
        names = [] if whole else names[1:]


def _explain(run: _Run, exercise: Exercise) -> str:
    """Let a function be measured in a process of its own, with a folder of its own."""
    if exercise.scores is None or run.limits.left() < 0.5:
        return ""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        own = _Run(run.path, run.beside, Path(folder).resolve(), run.limits)
        _start(own, [MEASURE, exercise.name])
        return explain(exercise, _read_measured(own.folder))


def _start(run: _Run, names: list[str]) -> str:
    """Run a file in a process of its own; say what went wrong, if the process did not end well."""
    limits, folder = run.limits, run.folder
    numbers = (limits.seed, limits.seconds, limits.left(), limits.megabytes)
    places = (run.path, run.beside, folder)
    command = [sys.executable, "-I", "-B", "-c", START, json.dumps(_path(run.beside))]
    kept = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # Python may need them
    scratch = folder / "scratch"  # what the file writes, it writes there
    scratch.mkdir(parents=True, exist_ok=True)
    late = False
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*command, *map(str, (*places, *numbers)), *names],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=scratch,
            env={
                **{key: os.environ[key] for key in kept if key in os.environ},
                **dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP"), str(scratch)),
                "OPENBLAS_NUM_THREADS": "1",
                **_drawing(),
            },
            **_apart(),
        )
        try:
            process.wait(max(limits.left(), 0) + 5)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            _end(process, scratch)
        code = process.wait()
        errors.seek(max(0, os.fstat(errors.fileno()).st_size - 10**5))
        text = errors.read(10**5).decode(errors="replace")
    line = _line_in(text, run.path)
    message = folder / "import error"
    if message.exists():
        with message.open("rb") as file:
            return printable(file.read(1000).decode(errors="replace"))
    if late or "Timeout (" in text or code == -getattr(signal, "SIGXCPU", 0) != 0:
        return f"it did not end within {limits.seconds:g} seconds{line}"
    if code < 0 or code >= 0xC0000000:  # the second is how Windows tells it
        return f"it crashed ({_signal(code)}){line}"
    return f"it stopped with exit status {code}{line}" if code else ""


def _path(beside: Path) -> list[str]:
    """The path of this process, without the folder of the answers."""
    path = [os.path.abspath(place) for place in sys.path if place]
    path = [place for place in path if os.path.realpath(place) != str(beside)]
    root = str(Path(pe_numpy.__file__).parents[1])
    return path if root in path else [root, *path]


def _drawing() -> dict[str, str]:
    """Let matplotlib, where an answer draws, open no window and not look for all fonts anew."""
    usual = map(os.path.expanduser, ("~/.cache/matplotlib", "~/.matplotlib"))
    for place in (os.environ.get("MPLCONFIGDIR", ""), *usual):
        if os.path.isdir(place):
            return {"MPLBACKEND": "Agg", "MPLCONFIGDIR": place}
    return {"MPLBACKEND": "Agg"}


def _apart() -> dict[str, Any]:
    """Options that start a process in a group of its own, by the means of the system."""
    if hasattr(os, "killpg"):
        return {"start_new_session": True}
    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}


def _end(process: subprocess.Popen, scratch: Path) -> None:
    """End a process and whatever it has started, as far as the system can tell."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        with contextlib.suppress(OSError):  # Windows: the process with its children
            ended = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
            subprocess.run(ended, capture_output=True, check=False)
    process.kill()
    for _ in range(10):  # each may start another before it ends
        left = list(_left_behind(scratch))
        for number in left:
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        if not left:
            return


def _left_behind(scratch: Path) -> Iterator[int]:
    """Processes that have left the group: on Linux, their environment still names the folder."""
    mark = b"HOME=" + os.fsencode(scratch)
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in place.read_bytes().split(b"\0"):
                yield int(place.parent.name)


def _signal(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}" if code < 0 else hex(code)


def _line_in(trace: str, path: Path) -> str:
    """Where faulthandler found a file: the innermost of its lines."""
    for row in trace.splitlines():
        if f'File "{path}", line ' in row:
            return f" (line {row.partition(', line ')[2].split()[0].strip(',')})"
    return ""


# ---- what the process writes --------------------------------------------------------------------


def _write(path: Path, outcomes: list[Outcome], note: str = "") -> None:
    """Write results: a line of JSON, then the arrays' bytes; nothing that could be unpacked."""
    arrays = [array for outcome in outcomes for array in outcome.results]
    if sum(array.nbytes for array in arrays) > LARGEST_WRITTEN:
        note, outcomes, arrays = "its results are far too large", [], []
    facts = [
        [[[a.dtype.str, a.shape] for a in o.results], o.error, o.changed, o.nothing]
        for o in outcomes
    ]
    part = path.with_suffix(".part")
    numbers = b"".join(array.tobytes() for array in arrays)
    part.write_bytes(json.dumps([note, facts]).encode() + b"\n" + numbers)
    part.replace(path)


def _read(path: Path, cases: int) -> list[Outcome] | str | None:
    """Read what a process wrote of an exercise, or why it has no results: that may be anything."""
    try:
        with path.open("rb") as file:
            data = file.read(2 * LARGEST_WRITTEN)
        head, _, numbers = data.partition(b"\n")
        note, facts = json.loads(head)
        if isinstance(note, str) and note:
            return printable(note)[:300]
        outcomes, at = [], 0
        for arrays, error, changed, nothing in facts:
            outcome = Outcome([], printable(str(error)), [printable(str(n)) for n in changed])
            outcome.nothing = bool(nothing)
            for kind, shape in arrays:
                array, at = _array(numbers, at, kind, shape)
                outcome.results.append(array)
            outcomes.append(outcome)
    except (OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None
    return outcomes if len(outcomes) == cases else None


def _array(numbers: bytes, at: int, kind: str, shape: list[int]) -> tuple[np.ndarray, int]:
    """An array whose bytes stand at a place, and the place behind it."""
    dtype = np.dtype(str(kind))
    if dtype.kind not in NUMBERS or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("no array of numbers")
    end = at + dtype.itemsize * math.prod(shape)
    return np.frombuffer(bytearray(numbers[at:end]), dtype).reshape(shape), end


def _read_used(folder: Path) -> dict[str, Any]:
    """Read what a process has imported: that may be anything."""
    try:
        with (folder / "used").open(encoding="utf-8") as file:
            package, beside = json.loads(file.read(10**5))
        return {"package": bool(package), "beside": [n for n in beside if n.isidentifier()]}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


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


# ---- in the process -----------------------------------------------------------------------------


def _limit(seconds: float, megabytes: int) -> None:
    """Bound what this process may take, where the system can."""
    if not HAS_LIMITS:
        return
    import resource

    bytes_ = megabytes * 2**20
    for what, soft, hard in (
        (resource.RLIMIT_AS, bytes_, bytes_),
        (resource.RLIMIT_FSIZE, 2**28, 2**28),
        (resource.RLIMIT_CPU, int(seconds) + 5, int(seconds) + 6),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (soft, hard))


class _Watch(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Notes whether a file imports this package, which is there already."""

    def __init__(self) -> None:
        self.asked = False
        self.kept = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "pe_numpy"}
        for name in self.kept:
            del sys.modules[name]
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module of this package, and note it."""
        if name not in self.kept:
            return None
        self.asked = True
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Give back the module that is there."""
        return self.kept[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """It has run already."""


def _import(path: Path, beside: str) -> ModuleType:
    sys.path.append(beside)  # last: a file of a library's name does not take its place
    loader = importlib.machinery.SourceFileLoader("homework", str(path))
    spec = importlib.util.spec_from_loader("homework", loader)
    assert spec is not None
    module = sys.modules["homework"] = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _note_imports(folder: Path, beside: str, watch: _Watch) -> None:
    """Write which modules of the answers' folder were imported, and whether this package was."""
    modules = [m for m in list(sys.modules.values()) if isinstance(m, ModuleType)]
    files = [vars(module).get("__file__") for module in modules]
    near = {Path(f).stem for f in files if isinstance(f, str) and os.path.dirname(f) == beside}
    (folder / "used").write_text(json.dumps([watch.asked, sorted(near)]), encoding="utf-8")


def _no_function(answer: Any) -> str:
    """Why an answer can't be called at all."""
    if answer is None:
        return (
            "the file names it, but has no such function after its import: is it under "
            "`if __name__ == '__main__'`, or without a value?"
        )
    if isinstance(answer, type):
        return "it is a class; a function is asked for"
    return "" if callable(answer) else f"it is no function, but {type(answer).__name__}"


def _main(
    path: str,
    beside: str,
    place: str,
    seed: str,
    seconds: str,
    left: str,
    megabytes: str,
    *names: str,
) -> None:
    """Run in the process: call every function, and write what came out."""
    end = time.monotonic() + float(left)
    measuring, names = names[0] == MEASURE, tuple(name for name in names if name != MEASURE)
    folder = Path(place)
    cases = {name: EXERCISES[name].all_cases(int(seed)) for name in names}

    def wind_up() -> None:
        most = max(0.1, min(float(seconds), end - time.monotonic()))
        faulthandler.dump_traceback_later(most, exit=True)

    faulthandler.enable()
    wind_up()
    _limit(float(left), int(megabytes))
    watch = _Watch()
    sys.argv = [path]  # what an answer finds there, if it reads its command line
    try:
        module = _import(Path(path), beside)
    except BaseException as error:
        told_so = f"it can't be imported: {told(error)}"
        (folder / "import error").write_text(told_so, encoding="utf-8")
        os._exit(0)
    if measuring:
        found = measure(EXERCISES[names[0]], vars(module)[names[0]])
        (folder / MEASURE).write_text(json.dumps(found), encoding="utf-8")
        os._exit(0)
    (folder / "imported").touch()
    _note_imports(folder, beside, watch)
    for name in names:
        wind_up()
        answer: Any = vars(module).get(name)
        note = _no_function(answer)
        outcomes = [] if note else [call(answer, one) for one in cases[name]]
        _write(folder / f"{name}.out", outcomes, note)
        _note_imports(folder, beside, watch)
    os._exit(0)  # without waiting for threads that the file has started
