"""Points for a class: an assignment is a file of TOML, a grade is made from a report.

    title = "Week 3: rotary encodings"
    deadline = 2030-06-07T18:00:00+02:00
    feedback = "name"
    salt = "autumn"

    [points]
    rope_frequencies = 2
    rope = { numbers = 2, options = 1, types = 1 }

A number is given for all cases of an exercise or for none; a table gives points for groups of
cases, each for the whole of its group. A deadline is a time, after which a file is late by its own
clock, or a text. All here are functions of reports: none runs a file.
"""

from __future__ import annotations

import contextlib
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
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np

import pe_numpy
from pe_numpy.homework.cases import Case, Exercise
from pe_numpy.homework.check import Verdict
from pe_numpy.homework.common import at_default
from pe_numpy.homework.registry import EXERCISES, check, exercise_of
from pe_numpy.homework.runner import Report
from pe_numpy.homework.submission import OWN, flags_of, tree_of
from pe_numpy.homework.variants import VARIANTS

FEEDBACK = ("full", "name", "none")
ALL = "all"  # the group that every case is in
GROUPS = {
    "options": "an argument away from its default",
    "types": "data in float32 or float16",
    "numbers": "the defaults, in float64",
}
KEYS = ("title", "deadline", "feedback", "seed", "salt", "install", "book", "variants", "points")
# What the cells of tests in a notebook import.
IMPORTS = (
    "from pe_numpy.homework.course import require",
    "import pe_numpy.homework.course as course",
)


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
    install: str = ""  # the command that installs NumPy
    book: str = ""  # where the chapters are, for links
    due: datetime | None = None  # the deadline, if it is a time
    variants: bool = False  # whether students get variants of the exercises that have some

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

    def names_of(self, student: str) -> dict[str, str]:
        """The exercises by the names that they have for a student, see `VARIANTS`."""
        found = {name: name for name in self.points}
        for name in VARIANTS.keys() & found if self.variants else ():
            words = [*VARIANTS[name]]
            word = words[seed_of(f"{self.salt} {name}", student) % len(words)]
            found[name] = f"{name}_{word}"
        return found


def seed_of(salt: str, student: str) -> int:
    """A seed for each student, the same on every machine.

    Examples
    --------
    >>> seed_of("autumn", "anna"), seed_of("autumn", "ben"), seed_of("spring", "anna")
    (3703259346, 3445595091, 1040538687)
    """
    return int.from_bytes(hashlib.sha256(f"{salt}\n{student}".encode()).digest()[:4], "big")


def read_assignment(path: str | Path) -> Assignment:
    """Read an assignment; what is wrong with its file is told in a ValueError."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # UnicodeDecodeError, TOMLDecodeError
        raise ValueError(f"{path.name}: it must be a file of TOML; {error}") from None
    for key in table:
        if key not in KEYS:
            raise ValueError(f"{path.name}: {_unknown('key', key, KEYS)}")
    given, seed, feedback = table.get("points"), table.get("seed", 0), table.get("feedback", "full")
    variants, both = table.get("variants", False), "seed" in table and "salt" in table
    for wrong, rule in (
        (
            not isinstance(given, dict) or not given,
            f"a table [points] must give each exercise its points, as in rope = 4; got {given!r}",
        ),
        (
            type(seed) is not int or seed < 0,
            f"seed must be a whole number from 0; got {seed!r}",
        ),
        (
            feedback not in FEEDBACK,
            f"feedback must be one of {', '.join(FEEDBACK)}; got {feedback!r}",
        ),
        (
            both,
            "give a seed (the same cases for all) or a salt (other cases for each student); got "
            f"both, {seed!r} and {table.get('salt')!r}",
        ),
        (
            type(variants) is not bool or (variants and "salt" not in table),
            f"variants must be true or false, and need a salt; got {variants!r}",
        ),
    ):
        if wrong:
            raise ValueError(f"{path.name}: {rule}")
    words: dict[str, Any] = {
        key: str(table.get(key, "")) for key in ("deadline", "salt", "install", "book")
    }
    points = {name: _points(path.name, name, value) for name, value in table["points"].items()}
    title = str(table.get("title", path.stem))
    due = table.get("deadline")
    if type(due) is date:  # the end of that day
        due = datetime.combine(due, time(23, 59, 59))
    due = due if isinstance(due, datetime) else None
    words |= {"feedback": feedback, "seed": seed, "due": due, "variants": variants}
    return Assignment(path.stem, title, points, **words)


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
    names: dict[str, str]  # of the exercises, as this student has them
    late: str = ""  # how much, by the file's clock

    @property
    def total(self) -> float:
        """Points of all exercises."""
        return sum(self.points.values())

    @property
    def notes(self) -> str:
        """What stands beside the points: a problem, flags, how late it is."""
        said = [self.report.problem, *self.report.notes, *self.report.flags, self.late]
        return "; ".join(filter(None, said))

    def verdict(self, name: str) -> Verdict:
        """What is said of one exercise; of the file as a whole, if it was not run."""
        for verdict in self.report.verdicts:
            if verdict.name == self.names[name]:
                return verdict
        return Verdict(
            self.names[name], False, 0, self.report.problem or "the file does not define it"
        )


def student_of(path: str | Path, assignment: str = "") -> str:
    """Whose file or folder it is: its name, or its folder's if it is called as the assignment is.

    Examples
    --------
    >>> student_of("submissions/anna.py", "week3"), student_of("anna/week3.py", "week3")
    ('anna', 'anna')
    """
    path = Path(path)
    if path.suffix not in (".py", ".ipynb"):  # a student's folder
        return path.name
    return path.resolve().parent.name if path.stem == assignment else path.stem


def students_of(paths: Sequence[str | Path], assignment: str = "") -> list[str]:
    """Whose file each is; where two would have one name, as much of the way as tells them apart."""
    files = [Path(path).resolve() for path in paths]
    if double := [path for path, n in Counter(files).items() if n > 1]:
        raise ValueError(f"check: one file per student; got {double[0].name} twice")
    names = [student_of(path, assignment) for path in paths]
    for longer in (
        lambda path: f"{path.parent.name}/{path.stem}",
        lambda path: f"{path.parent.name}/{path.name}",
        str,
    ):
        count = Counter(names)
        names = [longer(f) if count[n] > 1 else n for n, f in zip(names, files, strict=True)]
    return names


def file_names(students: Sequence[str]) -> dict[str, str]:
    """A name for a file of each student, in letters that every system has, no two alike."""
    names: dict[str, str] = {}
    for student in students:
        plain = name = re.sub(r"[^\w.@+-]", "_", student)
        taken, n = {*map(str.casefold, names.values())}, 1
        while name.casefold() in taken:
            name, n = f"{plain}-{n + 1}", n + 1
        names[student] = name
    return names


def late_by(due: datetime | None, seconds: float) -> str:
    """How late a file is that was changed at a time, in seconds since 1970.

    Examples
    --------
    >>> late_by(datetime.fromisoformat("1970-01-02T00:00:00+00:00"), 90001)
    'late by 1:00:01'
    """
    over = 0 if due is None else int(seconds - due.timestamp())
    return f"late by {timedelta(seconds=over)}" if over > 0 else ""


def read_roster(path: str | Path) -> list[str]:
    """The students of a course: the first column of a CSV file, under a head."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = [row[0].strip() for row in csv.reader(file) if row and row[0].strip()][1:]
    if double := [name for name, n in Counter(rows).items() if n > 1]:
        raise ValueError(f"{Path(path).name}: each student must have one row; got two {double[0]}")
    if not rows:
        raise ValueError(f"{Path(path).name}: a head and a row for each student must be there")
    return rows


def grade(assignment: Assignment, report: Report, student: str, late: str = "") -> Grade:
    """Give a student's report its points; it knows the seed of its cases."""
    found = Grade(student, report, {}, assignment.names_of(student), late)
    points = {
        name: _earned(found.verdict(name), groups, report.seed)
        for name, groups in assignment.points.items()
    }
    return dataclasses.replace(found, points=points)


def of_roster(
    assignment: Assignment, grades: Sequence[Grade], roster: Sequence[str]
) -> list[Grade]:
    """Grades in the order of a roster; who handed in nothing has a row, a stranger a flag."""
    had = {one.student: one for one in grades}
    nothing = Report("", problem="handed in nothing")
    found = [had.get(name) or grade(assignment, nothing, name) for name in roster]
    more = [one for one in grades if one.student not in roster]
    for one in more:
        one.report.flags.append("not on the roster")
    return [*found, *more]


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

    The AssertionError says what the level of feedback allows; flags are printed.
    """
    for flag in _flags(function):
        print(f"flag: {flag}")
    verdict = check(name, function, seed=seed)
    if not _earned(verdict, {group: 1.0}, seed):
        raise AssertionError(str(limited(verdict, feedback)))


def _flags(function: Callable) -> list[str]:
    """What a notebook has that is not its own, as `check` finds it in a file."""
    if str(getattr(function, "__module__", "")).startswith("pe_numpy"):
        return [f"{OWN}: it is that of {function.__module__}"]
    found: dict[str, None] = {}
    for n, cell in enumerate(getattr(function, "__globals__", {}).get("In", [])):
        own = "\n".join(line for line in cell.split("\n") if line not in IMPORTS)
        with contextlib.suppress(SyntaxError, ValueError):  # magics of IPython
            flags = flags_of(own.encode(), tree_of(own), Path("notebook.ipynb"))
            found |= dict.fromkeys(f"{flag} (cell {n})" for flag in flags)
    return [*found]


# ---- what students are told ----------------------------------------------------------------------


def limited(verdict: Verdict, feedback: str) -> Verdict:
    """What a verdict says at a level of feedback.

    "full": the mistake's name, advice and the first case that shows it. "name": the name, or the
    problem in a line. "none": nothing, but what kept a function from being run.
    """
    if feedback == "full" or verdict.passed:
        return verdict
    short = Verdict(verdict.name, False, verdict.cases, chapter=verdict.chapter)
    if not _ran(verdict) or feedback == "name":
        return dataclasses.replace(short, problem=verdict.problem, mistake=verdict.mistake)
    return dataclasses.replace(short, problem="not right in all cases", chapter=0)


def told(assignment: Assignment, one: Grade, feedback: str = "") -> str:
    """What a student is told: points, then of each exercise what the level of feedback allows."""
    level = feedback or assignment.feedback
    lines = [f"{assignment.title}: {one.student}, {_of(one.total, assignment.total)} points"]
    lines += [f"  flag: {flag}" for flag in one.report.flags]
    lines += [f"  {note}" for note in one.report.notes]
    lines += [f"  {one.late}, by the file's clock" for _ in [0] if one.late]
    if one.report.problem:
        lines.append(f"  {one.report.problem}")
    for name in assignment.points:
        points = _of(one.points[name], assignment.possible(name))
        text = "" if one.report.problem else str(limited(one.verdict(name), level))
        first, _, rest = text.replace("\n", "\n  ").partition("\n")
        lines += [f"  {first or name} ({points})", *filter(None, [rest])]
    return "\n".join([*lines, f"  {_stamp(assignment, one)}"])


def _of(points: float, possible: float) -> str:
    return f"{points:g} of {possible:g}"


def _stamp(assignment: Assignment, one: Grade) -> str:
    """What makes a late check comparable."""
    return f"pe_numpy {one.report.version}, {assignment.name}, seed {one.report.seed}"


# ---- tables --------------------------------------------------------------------------------------


def table(assignment: Assignment, grades: Sequence[Grade]) -> str:
    """Points of a class, for a person: a line per student, a column per exercise."""
    head = ["student", *assignment.points, "total", ""]
    full = map(assignment.possible, assignment.points)
    rows = [["", *(f"of {p:g}" for p in full), f"of {assignment.total:g}", ""]]
    for one in grades:
        numbers = [f"{one.points[name]:g}" for name in assignment.points]
        rows.append([one.student, *numbers, f"{one.total:g}", one.notes])
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head) - 1)]
    lines = []
    for student, *numbers, notes in (head, *rows):
        columns = [f"{x:>{w}}" for x, w in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([f"{student:{widths[0]}}", *columns, notes]).rstrip())
    title = f"{assignment.title} ({assignment.name}, pe_numpy {pe_numpy.__version__})"
    return "\n".join([title, *lines])


def as_csv(assignment: Assignment, grades: Sequence[Grade]) -> str:
    """A line for each student, with a total; no cell is a formula for a spreadsheet."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    about = ("total", "possible", "mistakes", "notes", "assignment", "seed", "version")
    write(["student", *assignment.points, *about])
    for one in grades:
        words = {name: _in_a_word(one.verdict(name)) for name in assignment.points}
        wrong = "; ".join(f"{name}: {word}" for name, word in words.items() if word != "right")
        numbers = (*(one.points[name] for name in words), one.total, assignment.total)
        said = map(_cell, ("" if one.report.problem else wrong, one.notes))
        stamp = (assignment.name, one.report.seed, one.report.version)
        write([_cell(one.student), *(f"{number:g}" for number in numbers), *said, *stamp])
    return text.getvalue()


def _cell(text: str) -> str:
    """A text of a student, which a spreadsheet must not compute."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def as_json(assignment: Assignment, grades: Sequence[Grade]) -> str:
    """Everything but what the level of feedback holds back, and the salt: it is every seed."""
    rows = []
    for one in grades:
        said = [limited(one.verdict(name), assignment.feedback) for name in assignment.points]
        facts = {
            key: getattr(one.report, key) for key in ("path", "seed", "problem", "notes", "flags")
        }
        numbers = {"points": one.points, "total": one.total, "late": one.late}
        verdicts = [*map(dataclasses.asdict, said)]
        rows.append({"student": one.student, **facts, **numbers, "verdicts": verdicts})
    about = {**dataclasses.asdict(assignment), "total": assignment.total}
    del about["salt"], about["due"]
    whole = {"version": pe_numpy.__version__, "assignment": about, "grades": rows}
    return json.dumps(whole, indent=1)


def as_gradescope(assignment: Assignment, one: Grade) -> str:
    """Gradescope's results.json of one submission.

    What the level of feedback holds back stands in tests without points that Gradescope shows
    after the deadline. Until then it shows no total of its own: the text above the tests does.
    """
    keys = ("name", "number", "score", "max_score", "visibility", "output")
    tests: list[dict[str, Any]] = []
    for n, name in enumerate(assignment.points, 1):
        whole, most = one.verdict(name), assignment.possible(name)
        said = str(limited(whole, assignment.feedback))
        values = (name, str(n), one.points[name], most, "visible", said)
        status = "passed" if whole.passed else "failed"
        tests.append({**dict(zip(keys, values, strict=True)), "status": status})
        if said != str(whole):
            later = (f"{name}: what is wrong", f"{n}.1", 0.0, 0.0, "after_due_date", str(whole))
            tests.append(dict(zip(keys, later, strict=True)))
    points = f"{_of(one.total, assignment.total)} points"
    lines = [points, one.report.problem, _stamp(assignment, one)]
    about = {key: getattr(one.report, key) for key in ("version", "seed", "flags")}
    whole_file = {
        "score": one.total,
        "output": "\n".join(filter(None, lines)),
        "output_format": "text",  # no HTML in what a student's file may say
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {**about, "assignment": assignment.name},
        "tests": tests,
    }
    return json.dumps(whole_file, indent=1)


# ---- the class -----------------------------------------------------------------------------------


def summary(assignment: Assignment, grades: Sequence[Grade]) -> dict[str, Counter[str]]:
    """Of each exercise, how often each mistake was made, the commonest first.

    Beside names of mistakes there are "right", "not run" and "another mistake".
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
