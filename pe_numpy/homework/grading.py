"""The options of `check` that a course needs: an assignment, and the files to write."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pe_numpy.files import write_whole
from pe_numpy.homework import course, likeness, runner
from pe_numpy.homework.course import Assignment, Grade
from pe_numpy.homework.journal import Journal

NEEDS = ("student", "csv", "letters", "gradescope", "roster", "summary", "feedback")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what a course needs to the options of `check`."""
    group = parser.add_argument_group("for a course")
    group.add_argument("--assignment", metavar="TOML", help="exercises with their points")
    group.add_argument(
        "--feedback", choices=course.FEEDBACK, help="what is told, whatever the assignment says"
    )
    group.add_argument("--student", metavar="ID", help="whose file it is; else its name tells")
    group.add_argument("--roster", metavar="FILE", help="all students, in a CSV's first column")
    group.add_argument("--csv", metavar="FILE", help="write a line a student; go on if it was cut")
    group.add_argument("--letters", metavar="FOLDER", help="write a text for each student")
    group.add_argument("--gradescope", metavar="FILE", help="write results.json, for one student")
    group.add_argument("--summary", action="store_true", help="print mistakes, and who is alike")


def assignment_of(options: argparse.Namespace) -> Assignment | None:
    """The assignment that the options name, if they name one."""
    if options.assignment is None:
        for name in NEEDS:
            if getattr(options, name):
                raise ValueError(f"check: --{name} needs an assignment: --assignment week3.toml")
        return None
    found = course.read_assignment(options.assignment)
    return dataclasses.replace(found, feedback=options.feedback or found.feedback)


def run(options: argparse.Namespace, assignment: Assignment, words: Sequence[str]) -> int:
    """Check files, and folders of students, by an assignment; return 0 if all is right, else 1."""
    whose = students(options, assignment, words)
    roster = course.read_roster(options.roster) if options.roster else []
    for place in filter(None, (options.csv, options.gradescope)):
        Path(place).resolve().parent.mkdir(parents=True, exist_ok=True)
        if Path(place).is_dir():
            raise ValueError(f"check: a file is to be written; {place} is a folder")
    if options.letters:
        Path(options.letters).mkdir(parents=True, exist_ok=True)
    journal = Journal(Path(f"{options.csv}.part") if options.csv else None)
    reports = journal.reports([*whose], assignment, whose, runner.settings(options))
    grades = [
        course.grade(assignment, report, whose[path], course.late_by(assignment.due, _time(path)))
        for path, report in reports.items()
    ]
    if options.roster:
        grades = course.of_roster(assignment, grades, roster)
    _write(options, assignment, grades)
    journal.end()
    return 0 if all(one.report.passed for one in grades) else 1


def students(
    options: argparse.Namespace, assignment: Assignment, words: Sequence[str]
) -> dict[str, str]:
    """Whose each file is; of a student's folder, the file that counts."""
    files = {_of_folder(Path(word), assignment.name): word for word in words}
    given = [name for name in ("student", "gradescope") if getattr(options, name)]
    if given and len(files) != 1:
        raise ValueError(f"check: --{given[0]} is for one file; got {len(files)}")
    if options.student:
        return dict.fromkeys(files, options.student)
    return dict(zip(files, course.students_of([*files.values()], assignment.name), strict=True))


def _of_folder(path: Path, name: str) -> str:
    """The file of a student's folder that is called as the assignment is, or the only one."""
    inside = answers_in(path) if path.is_dir() else []
    called = [file for file in inside if file.stem == name] or inside
    return str(called[0] if len(called) == 1 else path)


def class_in(folder: Path, name: str) -> list[str]:
    """Students' files and folders in a folder; or the folder, if it is one student's own."""
    files = answers_in(folder)
    if name in [file.stem for file in files]:
        return [str(folder)]
    folders = [f for f in sorted(folder.iterdir()) if f.is_dir() and f.name[0] not in "._"]
    return [*map(str, dict.fromkeys([*files, *folders]))] or [str(folder)]


def answers_in(folder: Path) -> list[Path]:
    """Python files and notebooks of a folder."""
    return sorted(file for file in folder.iterdir() if file.suffix in (".py", ".ipynb"))


def _time(path: str) -> float:
    return os.stat(path).st_mtime if os.path.exists(path) else 0


def _write(options: argparse.Namespace, assignment: Assignment, grades: Sequence[Grade]) -> None:
    if options.json:
        print(course.as_json(assignment, grades))
    elif len(grades) == 1:
        print(course.told(assignment, grades[0]))
    else:
        print(course.table(assignment, grades))
    if options.summary:
        found = course.summary_text(course.summary(assignment, grades))
        paths = {one.student: one.report.path for one in grades}
        called = {one.student: one.names for one in grades}
        alike = likeness.alike(paths, [*assignment.points], called)
        out = sys.stderr if options.json else sys.stdout
        free = [f"no limit here: {name}" for name in runner.limits_not_in_force(options.megabytes)]
        print("\n" + "\n".join([found, *alike, *free]), file=out)
    if options.csv:
        write_whole(options.csv, course.as_csv(assignment, grades))
    if options.letters:
        names = course.file_names([one.student for one in grades])
        for one in grades:
            place = Path(options.letters) / f"{names[one.student]}.txt"
            write_whole(place, course.told(assignment, one) + "\n")
    if options.gradescope:
        write_whole(options.gradescope, course.as_gradescope(assignment, grades[0]))
