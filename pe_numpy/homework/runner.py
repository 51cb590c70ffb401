"""Check the functions of a file, which runs in a process of its own.

All files are read before the first one runs. This process makes the cases; another one, which holds
`worker.py`, NumPy and the file, gets them on a pipe, calls the file's functions, and gives back
what came out on another. It never sees what is expected, and can't import this package. Here the
results are read with a deadline and a largest size; no file that an answer makes is ever opened.
A file may crash, loop for ever, eat all memory or print what it likes: it harms its own result
alone. What that process may do, and what remains, stands in `worker.py`; `limits_not_in_force`
tries each limit.

A file runs as a copy, in an empty folder: modules beside it that it imports by name are copied,
too, other answers that are checked in the same call are not.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import inspect
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import pe_numpy
from pe_numpy.homework import submission, worker
from pe_numpy.homework.cases import Case, Outcome, case
from pe_numpy.homework.check import Verdict, judge
from pe_numpy.homework.registry import EXERCISES, exercise_of
from pe_numpy.homework.submission import Submission, of_cells, printable

SECONDS = 20.0  # for a function
BUDGET = 60.0  # seconds for a file, if it is not three times those of a function
MEGABYTES = 2000  # of address space, numpy's own included
LARGEST_READ = 2**28  # bytes of all that a process gives back
PACKAGE = next(p for p in (Path(pe_numpy.__file__).parent, *Path(__file__).parents) if p.exists())

FONTS = [*filter(os.path.isdir, map(os.path.expanduser, ("~/.cache/matplotlib", "~/.matplotlib")))]
ENDED = "the process ended before the function did"
FAILED = "a line failed, and the rest is judged"

# What the process runs: the path of this one, and the text of worker.py.
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); _ = '<worker>/worker.py'; "
    "exec(compile(sys.argv.pop(), _, 'exec'), {'__name__': '__worker__', '__file__': _})"
)
# Before it, on Linux: process numbers, a network and mounts of its own, an empty package, and a
# folder in memory. All that has started in there ends with its first process.
APART = "unshare --mount --pid --fork --kill-child --mount-proc --net --ipc".split()
MOUNT = (
    f'mount -t tmpfs -o size={worker.LARGEST_FILES},nr_inodes=10000 none . && cd "$PWD" && '
    'if [ -d "$0" ]; then mount -t tmpfs none "$0"; '
    'elif [ -f "$0" ]; then mount --bind /dev/null "$0"; fi && exec "$@"'
)


@dataclass
class Report:
    """What is said of one file."""

    path: str
    verdicts: list[Verdict] = field(default_factory=list)
    problem: str = ""  # of the file as a whole
    notes: list[str] = field(default_factory=list)  # lines that failed; the rest is judged
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
        lines += [*self.notes, *filter(None, [self.problem]), *map(str, self.verdicts)]
        return "\n".join(lines).replace("\n", "\n  ")


def check_file(path: str | Path, names: Sequence[str] = (), **options: Any) -> Report:
    """Check the functions of one file, or those with the given names: see `check_files`."""
    return check_files([path], names, **{"jobs": 1, **options})[0]


def check_files(
    paths: Sequence[str | Path],
    names: Sequence[str] = (),
    seconds: float = SECONDS,
    *,
    progress: Callable[[int, int], None] | None = None,
    found: Callable[[Report], None] | None = None,
    **options: Any,
) -> list[Report]:
    """Check files as `reports` does; the reports come in the files' order.

    Whenever a file is done, `progress` gets the number of those that are, and of all, and `found`
    gets the report.
    """
    all_: dict[str, Report] = {}
    for done, report in enumerate(reports(paths, names, seconds, **options), 1):
        all_[report.path] = report
        if found is not None:
            found(report)
        if progress is not None:
            progress(done, len(paths))
    return [all_[str(path)] for path in paths]


def reports(
    paths: Sequence[str | Path],
    names: Sequence[str] = (),
    seconds: float = SECONDS,
    megabytes: int = MEGABYTES,
    seed: int | Callable[[str], int] = 0,
    budget: float | None = None,
    allow_package: bool = False,
    jobs: int | None = None,
    to: str = "",
) -> Iterator[Report]:
    """Check files, and give each report, with a verdict per function, as soon as it is there.

    Parameters
    ----------
    paths, names : sequences
        Python files, or notebooks, of which the code cells are read; exercises to look at, or none
        for all that a file defines.
    seconds, megabytes, budget : numbers
        What each function may take; seconds for a file (a minute, or three times `seconds`).
    seed : int or function
        Of the cases; a function is asked for that of each path.
    allow_package : bool
        Whether files may import this package, and get no flag for it.
    jobs : int, optional
        Files at a time; as many as there are cores for this process, if none is given.
    to : word, optional
        A library whose `asarray` makes the arrays that functions get: torch, jax.numpy.
    """
    wanted = [exercise_of(name).name for name in names]
    most = max(BUDGET, 3 * seconds) if budget is None else budget
    tasks = []
    with warnings.catch_warnings():  # parsing strange code warns
        warnings.simplefilter("ignore")
        for path in paths:
            own = seed(str(path)) if callable(seed) else seed
            limits = Limits(min(seconds, most), megabytes, own, most, allow_package, to)
            tasks.append((submission.read(Path(path), paths), limits))
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with ThreadPoolExecutor(jobs or ours) as pool:
        futures = [pool.submit(_check, given, wanted, limits) for given, limits in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what files may take to the options of a command."""
    add = parser.add_argument
    add("--seconds", type=float, default=SECONDS, help=f"for a function; {SECONDS:g}")
    add("--budget", type=float, help=f"seconds for a file; {BUDGET:g}, or 3 x --seconds")
    add("--megabytes", type=int, default=MEGABYTES, help=f"of memory; {MEGABYTES}")
    add("--jobs", type=int, help="files at a time; as many as there are cores")
    add("--to", metavar="LIBRARY", default="", help="give its arrays: torch, jax.numpy")
    add("--allow-package", action="store_true", help="files may import this package, unflagged")


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `check_files` that those options stand for, with a line that tells progress."""
    names = ("seconds", "budget", "megabytes", "jobs", "allow_package", "to")
    try:
        there = not options.to or importlib.util.find_spec(options.to)
    except ImportError:  # of what stands before a point
        there = None
    if not there:
        raise ValueError(f"check: --to must name a library that is installed; got {options.to}")
    for name in names[:4]:
        if (value := getattr(options, name)) is not None and not value > 0:
            raise ValueError(f"check: --{name} must be positive; got {value}")
    shown = tell_progress if sys.stderr.isatty() else None
    return {**{name: getattr(options, name) for name in names}, "progress": shown}


def tell_progress(done: int, total: int) -> None:
    """Write how many files are done, on one line of the terminal."""
    if total > 1:
        print(f"\r{done} of {total} files", end="\n" * (done == total), file=sys.stderr, flush=True)


@dataclass
class Limits:
    """What a file may take, and the seed of its cases."""

    seconds: float
    megabytes: int
    seed: int
    budget: float
    package: bool = False  # whether this package may be imported
    to: str = ""  # the library whose arrays functions get, if it is not NumPy
    end: float = math.inf  # when the budget is used up, by this process's clock

    def left(self) -> float:
        """Seconds that are left of the budget."""
        return self.end - time.monotonic()


def _check(given: Submission, wanted: list[str], limits: Limits) -> Report:
    """Run a file that was read, and say in a report what came of it."""
    report = Report(str(given.path), seed=limits.seed, problem=given.problem)
    try:
        if not given.problem:
            fill(report, given, wanted, limits)
    except Exception as error:  # the other files of a class are checked all the same
        report.problem = printable(f"the checker itself failed: {type(error).__name__}: {error}")
    return report


def fill(
    report: Report,
    given: Submission,
    wanted: list[str],
    limits: Limits,
    kind: type[Run] | None = None,
) -> None:
    """Run a file as `kind` does, in a process if none is given; add what came of it to a report."""
    limits.end = time.monotonic() + limits.budget
    defined, methods = submission.defined_in(given.tree), submission.methods_in(given.tree)
    found = [name for name in wanted or EXERCISES if name in defined]
    if not found and not wanted:
        report.problem = submission.none_of_them(defined, methods)
        return
    for name in wanted:
        if name not in defined:
            why = f", but a method of {methods[name]}" if name in methods else ""
            report.verdicts.append(Verdict(name, False, 0, f"the file does not define it{why}"))
    run = (kind or Run)(given, limits)
    report.verdicts += run.verdicts(found)
    for verdict in report.verdicts:
        verdict.problem = of_cells(verdict.problem, given.cells)
    report.notes = [of_cells(f"{FAILED}: {line}", given.cells) for line in run.failed]
    asked = run.asked and not any("pe_numpy in line" in flag for flag in given.flags)
    given.flags += [f"{submission.OWN}: it looks for pe_numpy while it runs"] * asked
    report.flags = [] if limits.package else given.flags


# ---- running it ---------------------------------------------------------------------------------


class Run:
    """A file in its process, or in several, one after the other."""

    def __init__(self, given: Submission, limits: Limits) -> None:
        self.given, self.limits = given, limits
        self.failed: list[str] = []  # lines of the file
        self.asked = False  # whether it asked for this package

    def verdicts(self, names: list[str]) -> Iterator[Verdict]:
        """Run the functions; after one that ends the process, go on with the next in a new one."""
        over = f"the file has used up its {self.limits.budget:g} seconds"
        while names:
            if self.limits.left() < 0.5:
                yield from (Verdict(name, False, 0, f"not run: {over}") for name in names)
                return
            cases = {name: EXERCISES[name].all_cases(self.limits.seed) for name in names}
            trouble, answers = self.start(cases)
            if trouble.startswith("it did not end") and self.limits.left() < 0.5:
                trouble = over + trouble.partition(" seconds")[2]
            for name, answer in zip(names, answers or [], strict=False):
                if isinstance(answer, str):
                    yield Verdict(name, False, 0, answer)
                else:
                    yield judge(EXERCISES[name], answer, cases[name], self.limits.seed)
            names = names[len(answers or []) :]
            lost = names if answers is None else names[:1]
            for name in lost:
                yield Verdict(name, False, 0, trouble or ENDED)
            names = names[len(lost) :]

    def start(self, cases: dict[str, list[Case]]) -> tuple[str, list[list[Outcome] | str] | None]:
        """Run the file once: what went wrong, and what each function gave; None without import."""
        limits = self.limits
        job = {
            "seconds": limits.seconds,
            "left": limits.left(),
            "megabytes": limits.megabytes,
            "to": limits.to,
            "package": "" if limits.package else "pe_numpy",
            "hidden": () if limits.package else _hidden(self.given.others),
            "path": self.given.name,
            "files": {name: text.decode("latin-1") for name, text in self.given.files.items()},
            "tasks": [*cases.items()],
        }
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            folder = Path(place).resolve() / "scratch"  # what the file writes, it writes there
            folder.mkdir()
            own = folder / self.given.name
            trouble, given = _process(worker.pack(job), own, self.given.path.parent, limits)
            infos = [path.lstat() for path in folder.rglob("*")]  # nothing, if it was in memory
        answers = self.read(given, cases)
        written = sum(int(getattr(info, "st_blocks", info.st_size / 512)) for info in infos) * 512
        if written > worker.LARGEST_FILES:
            trouble, answers = f"it wrote {written >> 20} MB of files", None
        return trouble, answers

    def read(self, given: bytes, cases: dict[str, list[Case]]) -> list[list[Outcome] | str] | None:
        """What each function gave, of the bytes that came back; None without import."""
        stream = io.BytesIO(given)
        answers: list[list[Outcome] | str] | None = None
        with contextlib.suppress(*STRANGE):
            failed = worker.unpack(stream, 2**20)
            self.failed, answers = [printable(str(line)) for line in failed], []
            for some in cases.values():
                answer, asked = _answer(stream, len(some))
                answers.append(answer)
                self.asked |= asked
        return answers


STRANGE = (ValueError, TypeError, LookupError, OverflowError, AttributeError, RecursionError)


def _answer(stream: io.BytesIO, cases: int) -> tuple[list[Outcome] | str, bool]:
    """Read what a process gave of an exercise, or why it has no results: that may be anything."""
    note, rows, asked = worker.unpack(stream, 2**20)
    if note:
        return printable(str(note))[:300], bool(asked)
    outcomes = []
    for arrays, error, changed, nothing in rows:
        if not all(isinstance(array, np.ndarray) for array in arrays):
            raise TypeError("no arrays")
        names = [printable(str(name)) for name in changed]
        outcomes.append(Outcome([*arrays], printable(str(error)), names, bool(nothing)))
    if len(outcomes) != cases:
        raise ValueError("not one result a case")
    return outcomes, bool(asked)


def _process(job: bytes, path: Path, beside: Path, limits: Limits) -> tuple[str, bytes]:
    """Run a file in a process of its own: what went wrong, if it did not end well; what it gave."""
    kept = "PATH SYSTEMROOT LD_LIBRARY_PATH DYLD_LIBRARY_PATH MPLCONFIGDIR".split()
    room = [*apart(), "sh", "-c", MOUNT, "" if limits.package else str(PACKAGE)] if apart() else []
    words = [inspect.getsource(worker), json.dumps(_path(beside, limits.package))]
    process: subprocess.Popen[bytes] = subprocess.Popen(
        [*room, sys.executable, "-I", "-B", "-c", START, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=path.parent,
        env={
            **{"OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"},  # where an answer draws
            **({"MPLCONFIGDIR": FONTS[0]} if FONTS else {}),  # with fonts that were found before
            **{key: os.environ[key] for key in kept if key in os.environ},
            **dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP"), str(path.parent)),
        },
        start_new_session=hasattr(os, "killpg"),
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    assert process.stdin is not None
    given, said, late = bytearray(), bytearray(), False

    def drain(stream: io.BufferedReader, kept: bytearray, last: int) -> None:
        with contextlib.suppress(OSError, ValueError), stream:
            while chunk := stream.read1(2**16):
                kept += chunk
                del kept[: -last if last else 0]
                if len(kept) > LARGEST_READ:
                    return process.kill()

    pipes = [(process.stdout, given, 0), (process.stderr, said, 10**5)]
    readers = [threading.Thread(target=drain, args=pipe, daemon=True) for pipe in pipes]
    for reader in readers:
        reader.start()
    try:
        with contextlib.suppress(OSError), process.stdin:  # it may have ended
            process.stdin.write(job)
        process.wait(max(limits.left(), 0) + 5)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        _end(process)
    for reader in readers:
        reader.join(2)  # longer only if something that has left the group holds the pipe
    code, text = process.wait(), bytes(said).decode(errors="replace")
    found, trouble = re.search(rf'File "{re.escape(str(path))}", line (\d+)', text), ""
    line = f" (line {found[1]})" if found else ""  # the innermost, as faulthandler tells it
    if len(given) > LARGEST_READ:
        trouble = "its results are far too large"
    elif late or "Timeout (" in text or code == -getattr(signal, "SIGXCPU", 0) != 0:
        trouble = f"it did not end within {limits.seconds:g} seconds{line}"
    elif code < 0 or code >= 0xC0000000:  # the second is how Windows tells it
        trouble = f"it crashed ({_signal(code)}){line}"
    elif code:
        trouble = f"it stopped with exit status {code}{line}"
    return trouble, bytes(given)


@functools.cache
def apart() -> tuple[str, ...]:
    """What goes before a command to give it a room of its own on this system, if anything does."""
    for who in ((), ("--user", "--map-root-user")):
        command = (APART[0], *who, *APART[1:])
        with contextlib.suppress(OSError), tempfile.TemporaryDirectory() as folder:
            tried = [*command, "sh", "-c", MOUNT, folder, sys.executable, "-I", "-S", "-c", ""]
            if not subprocess.run(tried, cwd=folder, capture_output=True, check=False).returncode:
                return command
    return ()


def limits_not_in_force(megabytes: int = MEGABYTES) -> list[str]:
    """What is not limited on this system: a file that tries to break each limit is run."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    tries = {
        "the memory of a process": f"bytearray({megabytes} * 2**20)",
        "the size of a file": "open('large', 'wb').truncate(2**30)",
        "the number of processes": f"assert {root} or getrlimit(RLIMIT_NPROC)[0] < 0",
        "compiled code, which `unshare` would give a room of its own": "assert os.getpid() > 1",
    }
    text = (
        "import os\nimport numpy as np\nfrom resource import *\ndef breaks(line):\n    try:\n"
        "        exec(line)\n    except Exception: return False\n    return True\n"
        f"def probe(): return np.array([breaks(line) for line in {[*tries.values()]}])\n"
    )
    limits = Limits(SECONDS, megabytes, 0, BUDGET, end=time.monotonic() + BUDGET)
    run = Run(Submission(Path("probe.py"), text=text.encode()), limits)
    answers = (run.start({"probe": [case()]})[1] or [""])[0]
    broken = [True] * len(tries) if isinstance(answers, str) else answers[0].results[0]
    return [name for name, one in zip(tries, broken, strict=True) if one]


def _hidden(others: Sequence[Path]) -> list[tuple[int, int]]:
    """Files of this package, and other answers, by their numbers in the file system."""
    found = [p.stat() for p in (PACKAGE, *PACKAGE.rglob("*"), *others) if os.path.exists(p)]
    return [(info.st_dev, info.st_ino) for info in found]


def _path(beside: Path, package: bool) -> list[str]:
    """The path of this process, without the folder of the answers, and without this package."""
    home = os.path.realpath(PACKAGE if PACKAGE.is_file() else PACKAGE.parent)
    path = [os.path.abspath(place) for place in sys.path if place]
    path = [place for place in path if os.path.realpath(place) != os.path.realpath(beside)]
    if package:
        return [home, *path]
    return [p for p in path if os.path.realpath(p) != home or os.path.isdir(f"{p}/numpy")]


def _end(process: subprocess.Popen) -> None:
    """End a process and whatever it has started, as far as the system can tell."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        with contextlib.suppress(OSError):  # Windows: the process with its children
            ended = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
            subprocess.run(ended, capture_output=True, check=False)
    process.kill()


def _signal(code: int) -> str:
    names = {-one: one.name for one in signal.Signals}
    return names.get(code, f"signal {-code}" if code < 0 else hex(code))
