"""The options of `check` that a course needs: an assignment, and the files to write."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from pe_numpy.files import write_whole
from pe_numpy.homework import course, runner
from pe_numpy.homework.course import Assignment, Grade
from pe_numpy.homework.runner import Report

Draw = Callable[[str, dict[str, Counter[str]]], None]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what a course needs to the options of `check`."""
    group = parser.add_argument_group("for a course")
    group.add_argument("--assignment", metavar="TOML", help="exercises with their points")
    group.add_argument(
        "--feedback", choices=course.FEEDBACK, help="what is told, whatever the assignment says"
    )
    group.add_argument("--student", metavar="ID", help="whose file it is; else its name tells")
    group.add_argument("--csv", metavar="FILE", help="write a line a student and exercise")
    group.add_argument("--letters", metavar="FOLDER", help="write a text for each student")
    group.add_argument("--gradescope", metavar="FILE", help="write results.json, for one student")
    group.add_argument("--summary", action="store_true", help="print how often each mistake is")
    group.add_argument("--figure", metavar="FILE", help="draw the summary (needs matplotlib)")


def assignment_of(options: argparse.Namespace) -> Assignment | None:
    """The assignment that the options name, if they name one."""
    if options.assignment is None:
        for name in ("student", "csv", "letters", "gradescope", "figure", "summary", "feedback"):
            if getattr(options, name):
                raise ValueError(f"check: --{name} needs an assignment: --assignment week3.toml")
        return None
    found = course.read_assignment(options.assignment)
    return dataclasses.replace(found, feedback=options.feedback or found.feedback)


def run(
    options: argparse.Namespace, assignment: Assignment, files: Sequence[str], draw: Draw
) -> int:
    """Check files by an assignment; `draw` the summary; return 0 if all is right, else 1."""
    whose = students(options, assignment, files)
    reports = runner.check_files(
        files,
        [*assignment.points],
        seed=lambda path: assignment.seed_of(whose[path]),
        **runner.settings(options),
    )
    return write(options, assignment, whose, reports, draw)


def students(
    options: argparse.Namespace, assignment: Assignment, files: Sequence[str]
) -> dict[str, str]:
    """Whose each file is."""
    given = [name for name in ("student", "gradescope") if getattr(options, name)]
    if given and len(files) != 1:
        raise ValueError(f"check: --{given[0]} is for one file; got {len(files)}")
    if options.student:
        return {files[0]: options.student}
    return dict(zip(files, course.students_of(files, assignment.name), strict=True))


def write(
    options: argparse.Namespace,
    assignment: Assignment,
    whose: dict[str, str],
    reports: Sequence[Report],
    draw: Draw,
) -> int:
    """Print the points, write what is asked for; return 0 if all is right, else 1."""
    grades = [course.grade(assignment, report, whose[report.path]) for report in reports]
    if options.json:
        print(course.as_json(assignment, grades))
    elif len(grades) == 1:
        print(course.told(assignment, grades[0]))
    else:
        print(course.table(assignment, grades))
    found = course.summary(assignment, grades)
    if options.summary:
        print("\n" + course.summary_text(found), file=sys.stderr if options.json else sys.stdout)
    if options.junit:
        write_whole(options.junit, course.as_junit(assignment, grades))
    if options.csv:
        write_whole(options.csv, course.as_csv(assignment, grades))
    if options.letters:
        _write_letters(Path(options.letters), assignment, grades)
    if options.gradescope:
        write_whole(options.gradescope, course.as_gradescope(assignment, grades[0]))
    if options.figure:
        draw(options.figure, found)
    return 0 if all(one.report.passed for one in grades) else 1


def _write_letters(folder: Path, assignment: Assignment, grades: Sequence[Grade]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for one in grades:
        name = re.sub(r"[^\w.@+-]", "_", one.student)  # letters that every system has in names
        write_whole(folder / f"{name}.txt", course.told(assignment, one) + "\n")
