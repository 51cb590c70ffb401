"""Reports of a class, kept as they come: a run that was cut goes on where it was."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from pe_numpy.homework import runner
from pe_numpy.homework.check import Verdict
from pe_numpy.homework.course import Assignment
from pe_numpy.homework.runner import Report

AT_A_TIME = ("jobs", "progress")  # settings that change no report
CUT = "checking it ended the checker itself: look at it by hand, in a container"


class Journal:
    """Reports, a line each as soon as it is there; a run that was cut goes on behind them.

    What was not reported when the run was cut is checked file by file, each noted before; a file
    that was noted only has ended the checker, and is not run again.
    """

    def __init__(self, place: Path | None) -> None:
        self.place = place
        self.found: dict[str, Any] = {}
        if place is not None and place.exists():
            for line in place.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    key, row = json.loads(line)
                    self.found[key] = _report(row) if row else row
                except (ValueError, TypeError, LookupError):  # the line that was being written
                    continue

    def reports(
        self, paths: list[str], assignment: Assignment, whose: dict[str, str], options: dict
    ) -> dict[str, Report]:
        """The reports of files, from this run or one before it, in the files' order."""
        seeds = {path: assignment.seed_of(whose[path]) for path in paths}
        own = {path: [*assignment.names_of(whose[path]).values()] for path in paths}
        limits = {name: value for name, value in options.items() if name not in AT_A_TIME}
        keys = {path: _key(path, [seeds[path], own[path], limits]) for path in paths}
        cut = bool(self.found)
        left = [path for path in paths if not isinstance(self.found.get(keys[path]), Report)]
        for some in [[path] for path in left] if cut else [left]:
            key = keys[some[0]] if some else ""
            if cut and self.found.get(key) == "begun":
                self._note(key, Report(some[0], problem=CUT, seed=seeds[some[0]]))
                continue
            if cut:
                self._note(key, "begun")
            try:
                runner.check_files(
                    some,
                    [*dict.fromkeys(name for path in some for name in own[path])],
                    seed=lambda path: seeds[path],
                    found=lambda report: self._note(keys[report.path], report),
                    **options,
                )
            except BaseException:  # an interrupt is not the file's fault
                if cut and self.found[key] == "begun":
                    self._note(key, "")
                raise
        return {path: dataclasses.replace(self.found[keys[path]], path=path) for path in paths}

    def _note(self, key: str, what: Report | str) -> None:
        self.found[key] = what
        if self.place is not None:
            row = what if isinstance(what, str) else dataclasses.asdict(what)
            with self.place.open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps([key, row]))  # a line that was cut ends before it

    def end(self) -> None:
        """Forget all: what was asked for is written."""
        if self.place is not None:
            self.place.unlink(missing_ok=True)


def _report(row: Any) -> Report | str:
    if isinstance(row, str):
        return row
    return Report(**{**row, "verdicts": [Verdict(**verdict) for verdict in row["verdicts"]]})


def _key(path: str, asked: list[Any]) -> str:
    """What a report is of: a file as it is now, and what is asked of it."""
    data = Path(path).read_bytes() if os.path.isfile(path) else b""
    about = json.dumps([path, asked, Report("").version]).encode()
    return hashlib.sha256(about + data).hexdigest()
