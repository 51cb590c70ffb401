"""Measure what it costs to check a class, for chapter 73: homework.csv.

Usage: OPENBLAS_NUM_THREADS=1 python notebooks/results/make_homework.py     (some minutes)

Two classes: the book's solutions, a file a chapter, each asked for all that it defines; and the
sixty files of tests/trial with their assignment. Seconds of processor time, so that other programs
disturb less: of the grader, which compares and names, and of the processes that run the files.
"""

from __future__ import annotations

import csv
import io
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import pe_numpy
from pe_numpy.copy.copy import SOLUTIONS
from pe_numpy.files import write_whole
from pe_numpy.homework.course import read_assignment
from pe_numpy.homework.runner import check_files

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

import trial  # noqa: E402


def measured(what: str, paths: list[str], names: list[str], seconds: float) -> dict[str, str]:
    """Check some files; tell how many functions were looked at, and what that took."""
    before = os.times()
    reports = check_files(paths, names, seconds)
    after = os.times()
    grader = after.user + after.system - before.user - before.system
    files = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return {
        "class": what,
        "files": str(len(paths)),
        "functions": str(sum(len(report.verdicts) for report in reports)),
        "grader": f"{grader:.1f}",
        "processes": f"{files:.1f}",
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "version": pe_numpy.__version__,
    }


if __name__ == "__main__":
    solutions = sorted(SOLUTIONS.glob("*.py"))
    rows = [measured("a chapter each", [*map(str, solutions)], [], 60)]
    points = read_assignment(trial.ASSIGNMENT).points
    with tempfile.TemporaryDirectory() as folder:
        paths = trial.write(Path(folder))
        rows.append(measured("sixty", paths, [*points], trial.SECONDS))
    table = io.StringIO()
    writer = csv.DictWriter(table, [*rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(HERE / "homework.csv", table.getvalue())
