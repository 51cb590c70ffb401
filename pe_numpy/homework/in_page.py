"""Check answers where they are written: in a page's Python, which has no processes and no limits.

What is said is what the command says: only the place where a file runs is another, `InPage` instead
of `runner.Run`. Nothing ends an endless loop here but the page, which ends Python. So a line of
progress that a page writes is no proof of anything: the command on the teacher's machine grades.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from pe_numpy.homework import runner, submission, worker
from pe_numpy.homework.cases import Case, Outcome
from pe_numpy.homework.runner import Limits, Report

NAME = "pe_numpy"  # what an answer may not import


class InPage(runner.Run):
    """A file that runs in this process."""

    def start(self, cases: dict[str, list[Case]]) -> tuple[str, list[list[Outcome] | str] | None]:
        """Run the file once: what each function gave."""
        quiet = contextlib.redirect_stdout
        with (
            open(os.devnull, "w", encoding="utf-8") as nowhere,
            quiet(nowhere),
            contextlib.redirect_stderr(nowhere),
            tempfile.TemporaryDirectory() as folder,
            without_package() as asked,
        ):
            path = Path(folder, self.given.name)
            path.write_bytes(self.given.text)
            module, failed = worker.define(str(path))
            sent = [worker.pack(failed[:5])]
            for name, some in cases.items():
                found = worker.answered(vars(module).get(name), failed, some)
                sent.append(worker.pack([*found, bool(asked)]))
        return "", self.read(b"".join(sent), cases)


@contextlib.contextmanager
def without_package() -> Iterator[list[str]]:
    """Let nothing import this package for a while, as in the command's process; note who tries."""
    asked: list[str] = []

    class Refuse:
        def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
            if name.partition(".")[0] == NAME:
                asked.append(name)
                raise ModuleNotFoundError(f"{NAME} is not here: an answer is checked without it")
            return None

    kept = {name: one for name, one in sys.modules.items() if name.partition(".")[0] == NAME}
    refuse: Any = Refuse()
    for name in kept:
        del sys.modules[name]
    sys.meta_path.insert(0, refuse)
    try:
        yield asked
    finally:
        sys.meta_path.remove(refuse)
        sys.modules.update(kept)
        sys.modules.pop("__homework__", None)


def report_of(text: str, name: str) -> Report:
    """Check all functions of a file that is given as text, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(text, encoding="utf-8")
        given = submission.read(path)
    report = Report(name, problem=given.problem)
    if not given.problem:
        limits = Limits(runner.SECONDS, runner.MEGABYTES, 0, float("inf"))
        runner.fill(report, given, [], limits, InPage)
    return report


def checked(text: str, name: str) -> dict[str, Any]:
    """What a page shows of a file: lines on it as a whole, and those on each function."""
    report = report_of(text, name)
    head = [*(f"flag: {flag}" for flag in report.flags), *report.notes, report.problem]
    return {
        "head": [*filter(None, head)],
        "functions": [
            {"name": one.name, "passed": one.passed, "text": str(one)} for one in report.verdicts
        ],
    }
