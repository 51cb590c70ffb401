"""Points for a class: an assignment is a file of TOML, a grade is made from a report.

    title = "Week 3: rotary encodings"
    deadline = "Friday, 18:00"
    feedback = "name"
    salt = "autumn"

    [points]
    rope_frequencies = 2
    rope = { numbers = 2, options = 1, types = 1 }

A number is given for all cases of an exercise or for none; a table gives points for groups of
cases, each for the whole of its group. All here are functions of reports: none runs a file.
"""

from __future__ import annotations

import csv
import dataclasses
import difflib
import hashlib
import inspect
import io
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

import pe_numpy
from pe_numpy.homework.cases import Case, Exercise
from pe_numpy.homework.check import Verdict
from pe_numpy.homework.common import at_default
from pe_numpy.homework.registry import EXERCISES, check, exercise_of
from pe_numpy.homework.runner import Report

FEEDBACK = ("full", "name", "none")
ALL = "all"  # the group that every case is in
GROUPS = {
    "options": "an argument away from its default",
    "types": "data in float32 or float16",
    "numbers": "the defaults, in float64",
}
KEYS = ("title", "deadline", "feedback", "seed", "salt", "install", "points")


# ---- the assignment ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Assignment:
    """What a course sets: exercises with their points, and what students are told of them."""

    name: str  # of its file, without .toml
    title: str
    points: dict[str, dict[str, float]]  # by exercise and group of cases
    deadline: str = ""
    feedback: str = "full"
    seed: int = 0  # of the cases
    salt: str = ""  # gives each student other cases, and takes the place of the seed
    install: str = ""  # the command that installs this package

    def possible(self, name: str) -> float:
        """Points of an exercise."""
        return sum(self.points[name].values())

    @property
    def total(self) -> float:
        """Points of all exercises."""
        return sum(map(self.possible, self.points))

    def seed_of(self, student: str) -> int:
        """The seed of a student's cases."""
        return seed_of(self.salt, student) if self.salt else self.seed


def seed_of(salt: str, student: str) -> int:
    """A seed for each student, the same on every machine.

    Examples
    --------
    >>> seed_of("autumn", "anna"), seed_of("autumn", "ben"), seed_of("spring", "anna")
    (3703259346, 3445595091, 1040538687)
    """
    return int.from_bytes(hashlib.sha256(f"{salt}\n{student}".encode()).digest()[:4], "big")


def read_assignment(path: str | Path) -> Assignment:
    """Read an assignment.

    Parameters
    ----------
    path : path
        A file of TOML: a table `points`, and, as you like, a title, a deadline (a text, which
        nothing enforces), feedback ("full", "name" or "none"), a seed or a salt, and the command
        that installs this package.

    Returns
    -------
    The assignment, with the file's name for its own.

    Raises
    ------
    ValueError
        If the file is no TOML, has a key, an exercise or a group that does not exist, or points
        that are no numbers from 0; the message says which, and suggests the nearest.
    """
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # UnicodeDecodeError, TOMLDecodeError
        raise ValueError(f"{path.name}: it must be a file of TOML; {error}") from None
    for key in table:
        if key not in KEYS:
            raise ValueError(f"{path.name}: {_unknown('key', key, KEYS)}")
    given = table.get("points")
    if not isinstance(given, dict) or not given:
        raise ValueError(
            f"{path.name}: a table [points] must give each exercise its points, as in rope = 4; "
            f"got {given!r}"
        )
    seed, feedback = table.get("seed", 0), table.get("feedback", "full")
    if type(seed) is not int or seed < 0:
        raise ValueError(f"{path.name}: seed must be a whole number from 0; got {seed!r}")
    if feedback not in FEEDBACK:
        raise ValueError(
            f"{path.name}: feedback must be one of {', '.join(FEEDBACK)}; got {feedback!r}"
        )
    if "seed" in table and "salt" in table:
        raise ValueError(
            f"{path.name}: give a seed (the same cases for all) or a salt (other cases for each "
            f"student); got both, {seed!r} and {table['salt']!r}"
        )
    words = {key: str(table.get(key, "")) for key in ("deadline", "salt", "install")}
    points = {name: _points(path.name, name, value) for name, value in given.items()}
    title = str(table.get("title", path.stem))
    return Assignment(path.stem, title, points, feedback=feedback, seed=seed, **words)


def _points(file: str, name: str, value: Any) -> dict[str, float]:
    """Points of an exercise by group."""
    try:
        exercise = exercise_of(name)
    except ValueError as error:
        raise ValueError(f"{file}: {str(error).removeprefix('check: ')}") from None
    groups = value if isinstance(value, dict) else {ALL: value}
    there = (ALL, *dict.fromkeys(groups_of(exercise)))
    for group, number in groups.items():
        if group not in there:
            raise ValueError(f"{file}: {name}: {_unknown('group of cases', group, there)}")
        if type(number) not in (int, float) or not 0 <= number < float("inf"):
            raise ValueError(f"{file}: {name}: points must be a number from 0; got {number!r}")
    if not sum(groups.values()) > 0:
        raise ValueError(f"{file}: {name}: there must be points for something; got {value!r}")
    return {group: float(number) for group, number in groups.items()}


def _unknown(what: str, word: str, allowed: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, allowed, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(allowed)}"
    return f"there is no {what} {word!r}; {hint}"


def groups_of(exercise: Exercise, seed: int = 0) -> list[str]:
    """The group of each case: see `GROUPS`.

    Examples
    --------
    >>> from pe_numpy.homework.registry import EXERCISES
    >>> sorted(set(groups_of(EXERCISES["rope"])))
    ['numbers', 'options', 'types']
    """
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(exercise.reference).parameters.items()
    }
    return [_group(one, defaults) for one in exercise.all_cases(seed)]


def _group(one: Case, defaults: dict[str, Any]) -> str:
    given = {**dict(zip(defaults, one.args, strict=False)), **one.options}
    for name, value in () if one.drive else given.items():  # its arguments are not the function's
        default = defaults.get(name, inspect.Parameter.empty)
        if default is not inspect.Parameter.empty and not at_default(value, default):
            return "options"
    narrow = (np.dtype(np.float32), np.dtype(np.float16))
    return "types" if any(array.dtype in narrow for array in _arrays(one)) else "numbers"


def _arrays(value: Any) -> list[np.ndarray]:
    """The arrays of a case, however deep."""
    if isinstance(value, np.ndarray):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(value, tuple | list | dict):
        return [array for part in parts for array in _arrays(part)]
    return []


# ---- the grade -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grade:
    """What one student gets: points by exercise, made from a report."""

    student: str
    report: Report
    points: dict[str, float]

    @property
    def total(self) -> float:
        """Points of all exercises."""
        return sum(self.points.values())

    def verdict(self, name: str) -> Verdict:
        """What is said of one exercise; of the file as a whole, if it was not run."""
        for verdict in self.report.verdicts:
            if verdict.name == name:
                return verdict
        return Verdict(name, False, 0, self.report.problem or "the file does not define it")


def student_of(path: str | Path, assignment: str = "") -> str:
    """Whose file it is: its name, or its folder's if the file is called as the assignment is.

    Examples
    --------
    >>> student_of("submissions/anna.py", "week3"), student_of("anna/week3.py", "week3")
    ('anna', 'anna')
    """
    path = Path(path)
    return path.resolve().parent.name if path.stem == assignment else path.stem


def students_of(paths: Sequence[str | Path], assignment: str = "") -> list[str]:
    """Whose file each is; the way to it is told where two would have one name."""
    names = [student_of(path, assignment) for path in paths]
    folders = [f"{Path(path).resolve().parent.name}/{Path(path).stem}" for path in paths]
    if len(set(names)) < len(names):
        names = [f if names.count(n) > 1 else n for n, f in zip(names, folders, strict=True)]
    if len(set(names)) < len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"check: one file a student; got two of {double}")
    return names


def grade(assignment: Assignment, report: Report, student: str) -> Grade:
    """Give a report its points.

    Parameters
    ----------
    assignment : Assignment
        What was set.
    report : Report
        What was found; it knows the seed of its cases.
    student : str
        Whose it is.

    Returns
    -------
    The grade.
    """
    found = Grade(student, report, {})
    points = {
        name: _earned(found.verdict(name), groups, report.seed)
        for name, groups in assignment.points.items()
    }
    return dataclasses.replace(found, points=points)


def _earned(verdict: Verdict, groups: dict[str, float], seed: int) -> float:
    if verdict.passed:
        return sum(groups.values())
    if not any(verdict.right) or set(groups) == {ALL}:
        return 0.0
    of = groups_of(EXERCISES[verdict.name], seed)
    lost = {group for group, right in zip(of, verdict.right, strict=True) if not right}
    lost |= set() if verdict.types else {"types"}
    # A drawn set of cases may lack a group: nobody gets its points by failing the rest.
    whole = (set(of) - lost) | ({ALL} if not lost else set())
    return sum(points for group, points in groups.items() if group in whole)


def require(
    name: str, function: Callable, group: str = ALL, feedback: str = "full", seed: int = 0
) -> None:
    """Fail, in a test cell of a notebook, unless a function is right in a group of cases.

    Parameters
    ----------
    name : str
        The exercise.
    function : function
        The student's.
    group : str
        One of `GROUPS`, or "all".
    feedback : str
        What a failure tells.
    seed : int
        Of the cases.

    Raises
    ------
    AssertionError
        With what the level of feedback allows.
    """
    verdict = check(name, function, seed=seed)
    if not _earned(verdict, {group: 1.0}, seed):
        raise AssertionError(str(limited(verdict, feedback)))


# ---- what students are told ----------------------------------------------------------------------


def limited(verdict: Verdict, feedback: str) -> Verdict:
    """What a verdict says at a level of feedback.

    Parameters
    ----------
    verdict : Verdict
        The whole of it.
    feedback : str
        "full": the mistake's name, advice and the first case that shows it. "name": the name, or
        the problem in a line. "none": nothing, but what kept a function from being run.

    Returns
    -------
    The verdict, or a shorter one.
    """
    if feedback == "full" or verdict.passed:
        return verdict
    short = Verdict(verdict.name, False, verdict.cases, chapter=verdict.chapter)
    if not _ran(verdict) or feedback == "name":
        return dataclasses.replace(short, problem=verdict.problem, mistake=verdict.mistake)
    return dataclasses.replace(short, problem="not right in all cases", chapter=0)


def told(assignment: Assignment, one: Grade, feedback: str = "") -> str:
    """What a student is told: points, then of each exercise what the level of feedback allows.

    Parameters
    ----------
    assignment : Assignment
        What was set.
    one : Grade
        The student's.
    feedback : str
        Another level than the assignment's.

    Returns
    -------
    Lines that end with the version and the seed.
    """
    level = feedback or assignment.feedback
    lines = [f"{assignment.title}: {one.student}, {_of(one.total, assignment.total)} points"]
    lines += [f"  flag: {flag}" for flag in one.report.flags]
    if one.report.problem:
        lines.append(f"  {one.report.problem}")
    for name in assignment.points:
        points = _of(one.points[name], assignment.possible(name))
        text = "" if one.report.problem else str(limited(one.verdict(name), level))
        text = text.replace("\n", "\n  ")
        lines.append(f"  {text or name} ({points})" if "\n" not in text else _first(text, points))
    return "\n".join([*lines, f"  {_stamp(assignment, one)}"])


def _first(text: str, points: str) -> str:
    first, _, rest = text.partition("\n")
    return f"  {first} ({points})\n{rest}"


def _of(points: float, possible: float) -> str:
    return f"{points:g} of {possible:g}"


def _stamp(assignment: Assignment, one: Grade) -> str:
    """What makes a late check comparable."""
    return f"pe_numpy {one.report.version}, {assignment.name}, seed {one.report.seed}"


# ---- tables --------------------------------------------------------------------------------------


def table(assignment: Assignment, grades: Sequence[Grade]) -> str:
    """Points of a class, for a person: a line a student, a column an exercise."""
    head = ["student", *assignment.points, "total", ""]
    full = map(assignment.possible, assignment.points)
    rows = [["", *(f"of {p:g}" for p in full), f"of {assignment.total:g}", ""]]
    for one in grades:
        numbers = [f"{one.points[name]:g}" for name in assignment.points]
        notes = "; ".join([*filter(None, [one.report.problem]), *one.report.flags])
        rows.append([one.student, *numbers, f"{one.total:g}", notes])
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head) - 1)]
    lines = []
    for student, *numbers, notes in (head, *rows):
        columns = [f"{x:>{w}}" for x, w in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([f"{student:{widths[0]}}", *columns, notes]).rstrip())
    title = f"{assignment.title} ({assignment.name}, pe_numpy {pe_numpy.__version__})"
    return "\n".join([title, *lines])


def as_csv(assignment: Assignment, grades: Sequence[Grade]) -> str:
    """A line for each student and exercise; no cell is a formula for a spreadsheet."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    names = "student exercise points possible mistake flags assignment seed version"
    write(names.split())
    for one in grades:
        for name in assignment.points:
            said = one.verdict(name)
            write(
                [
                    *(_cell(one.student), name, f"{one.points[name]:g}"),
                    *(f"{assignment.possible(name):g}", _cell(said.mistake or said.problem)),
                    *("; ".join(one.report.flags), assignment.name),
                    *(one.report.seed, one.report.version),
                ]
            )
    return text.getvalue()


def _cell(text: str) -> str:
    """A text of a student, which a spreadsheet must not compute."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def as_json(assignment: Assignment, grades: Sequence[Grade]) -> str:
    """Everything but what the level of feedback holds back, and the salt: it is every seed."""
    rows = [
        {
            "student": one.student,
            "path": one.report.path,
            "seed": one.report.seed,
            "points": one.points,
            "total": one.total,
            "problem": one.report.problem,
            "flags": one.report.flags,
            "verdicts": [
                dataclasses.asdict(limited(one.verdict(name), assignment.feedback))
                for name in assignment.points
            ],
        }
        for one in grades
    ]
    about = {**dataclasses.asdict(assignment), "total": assignment.total}
    del about["salt"]
    whole = {"version": pe_numpy.__version__, "assignment": about, "grades": rows}
    return json.dumps(whole, indent=1)


class Suite(NamedTuple):
    """What JUnit's XML holds of one file."""

    name: str
    owner: str  # of each test case: its "class"
    facts: dict[str, Any]
    verdicts: Sequence[Verdict]


def junit(title: str, suites: Sequence[Suite]) -> bytes:
    """JUnit's XML, as Jenkins' schema has it: a suite a file, a test case a function."""
    root = ElementTree.Element("testsuites", name=_characters(title))
    for name, owner, facts, verdicts in suites:
        failures = sum(not verdict.passed for verdict in verdicts)
        suite = ElementTree.SubElement(root, "testsuite", name=_characters(name))
        suite.set("tests", str(len(verdicts)))
        suite.set("failures", str(failures))
        properties = ElementTree.SubElement(suite, "properties")
        for key, value in facts.items():
            ElementTree.SubElement(properties, "property", name=key, value=_characters(str(value)))
        for verdict in verdicts:
            test = ElementTree.SubElement(suite, "testcase", name=verdict.name)
            test.set("classname", _characters(owner))
            if not verdict.passed:
                message = _characters(verdict.mistake or verdict.problem)
                failure = ElementTree.SubElement(test, "failure", message=message)
                failure.text = _characters(str(verdict))
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def as_junit(assignment: Assignment, grades: Sequence[Grade]) -> bytes:
    """JUnit's XML of a class, with what the level of feedback allows: a suite a student."""
    suites = []
    for one in grades:
        facts = {
            "assignment": assignment.name,
            **_facts(one.report),
            "points": f"{one.total:g}",
            "possible": f"{assignment.total:g}",
        }
        verdicts = [limited(one.verdict(name), assignment.feedback) for name in assignment.points]
        suites.append(Suite(one.student, one.student, facts, verdicts))
    return junit(assignment.title, suites)


def junit_of(reports: Sequence[Report]) -> bytes:
    """JUnit's XML of files without points: a suite a file, also if it could not be run."""
    suites = []
    for one in reports:
        verdicts = one.verdicts or [Verdict("file", not one.problem, 0, one.problem)]
        suites.append(Suite(one.path, Path(one.path).stem, _facts(one), verdicts))
    return junit("check", suites)


def _facts(report: Report) -> dict[str, Any]:
    return {"version": report.version, "seed": report.seed, "flags": "; ".join(report.flags)}


def _characters(text: str) -> str:
    """Without what XML 1.0 can't hold."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)


def as_gradescope(assignment: Assignment, one: Grade) -> str:
    """Gradescope's results.json of one submission.

    What the level of feedback holds back stands in tests without points that Gradescope shows
    after the deadline. Until then it shows no total of its own: the text above the tests does.
    """
    tests: list[dict[str, Any]] = []
    for number, name in enumerate(assignment.points, 1):
        whole = one.verdict(name)
        said = limited(whole, assignment.feedback)
        row = {
            "name": name,
            "number": str(number),
            "score": one.points[name],
            "max_score": assignment.possible(name),
            "status": "passed" if whole.passed else "failed",
            "visibility": "visible",
            "output": str(said),
        }
        tests.append(row)
        if str(said) != str(whole):
            row = {
                "name": f"{name}: what is wrong",
                "number": f"{number}.1",
                "score": 0.0,
                "max_score": 0.0,
                "visibility": "after_due_date",
                "output": str(whole),
            }
            tests.append(row)
    points = f"{_of(one.total, assignment.total)} points"
    lines = [points, one.report.problem, _stamp(assignment, one)]
    whole_file = {
        "score": one.total,
        "output": "\n".join(filter(None, lines)),
        "output_format": "text",  # no HTML in what a student's file may say
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {
            "version": one.report.version,
            "assignment": assignment.name,
            "seed": one.report.seed,
            "flags": one.report.flags,
        },
        "tests": tests,
    }
    return json.dumps(whole_file, indent=1)


# ---- the class -----------------------------------------------------------------------------------


def summary(assignment: Assignment, grades: Sequence[Grade]) -> dict[str, Counter[str]]:
    """Of each exercise, how often each mistake was made, the commonest first.

    Parameters
    ----------
    assignment : Assignment
        What was set.
    grades : sequence of grades
        Those of the class.

    Returns
    -------
    By exercise a counter: "right", the names of mistakes, "not run", "another mistake".
    """
    found = {}
    for name in assignment.points:
        words = Counter(_in_a_word(one.verdict(name)) for one in grades)
        found[name] = Counter(dict(words.most_common()))
    return found


def _in_a_word(verdict: Verdict) -> str:
    if verdict.passed:
        return "right"
    return verdict.mistake or ("another mistake" if _ran(verdict) else "not run")


def _ran(verdict: Verdict) -> bool:
    """Whether there was a function to run."""
    return verdict.cases > 0 and not verdict.problem.endswith(" not written yet")


def summary_text(found: dict[str, Counter[str]]) -> str:
    """A summary for a person."""
    lines = []
    for name, words in found.items():
        lines.append(f"{name}: {words['right']} of {words.total()} right")
        lines += [f"  {count:4}  {word}" for word, count in words.items() if word != "right"]
    return "\n".join(lines)
