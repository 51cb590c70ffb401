"""The ready-made assignments: those of the plans for lessons, each of which can be released."""

import re

import pytest
from reading import ROOT

from pe_numpy.__main__ import main
from pe_numpy.homework.course import grade, groups_of, read_assignment
from pe_numpy.homework.registry import EXERCISES, check
from pe_numpy.homework.release import read_sheets
from pe_numpy.homework.runner import Report

FOLDER = ROOT / "notebooks" / "assignments"
ROUTES = (4, 8, 12)
FILES = [FOLDER / f"{n}_lessons" / f"week{w}.toml" for n in ROUTES for w in range(1, n + 1)]
files = pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")


def plan():
    """Chapter 0's plan: of each chapter its exercises, and its lesson in each route."""
    text = (ROOT / "notebooks" / "00_how_to_read.py").read_text(encoding="utf-8")
    rows = {}
    for line in text.partition("### Plans for lessons")[2].splitlines():
        if found := re.match(r"# \| \[(\d\d)\]\(\S+\) \|(.*)\|$", line):
            homework, *lessons = found[2].split("|")
            rows[int(found[1])] = (
                re.findall(r"`(\w+)`", homework),
                dict(zip(ROUTES, [cell.strip() for cell in lessons], strict=True)),
            )
    return rows


def test_there_is_one_for_each_lesson_and_no_other():
    assert sorted(FOLDER.rglob("*.*")) == sorted(FILES)


@files
def test_it_sets_the_exercises_that_the_plan_has_for_its_lesson(path):
    route, lesson = int(path.parent.name.split("_")[0]), path.stem.removeprefix("week")
    week = read_assignment(path)
    own = {n: names for n, (names, lessons) in plan().items() if lessons[route] == lesson}
    assert own and [*week.points] == [name for names in own.values() for name in names]
    assert [EXERCISES[name].chapter for name in week.points] == [
        n for n, names in own.items() for _ in names
    ]
    assert week.title.startswith(f"Week {lesson}: ")
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert [int(n) for n in re.findall(r"\d+", first)] == [int(lesson), route, *own]


@files
def test_its_points_are_for_groups_that_every_seed_has(path):
    week = read_assignment(path)
    for name, groups in week.points.items():
        for seed in (0, 7, 2026):
            assert {*groups} - {"all"} <= {*groups_of(EXERCISES[name], seed)}, (name, seed)
    assert all(points == int(points) for g in week.points.values() for points in g.values())


@files
def test_the_books_solutions_get_all_its_points(path):
    week = read_assignment(path)
    report = Report("answers.py", seed=7)
    for sheet in read_sheets(week):
        module = {}
        exec("\n".join([*sheet.imports, sheet.head, sheet.body]), module)
        report.verdicts.append(check(sheet.name, module[sheet.name], seed=7))
    assert grade(week, report, "anna").total == week.total >= 3


@files
def test_it_can_be_released(path, tmp_path, capsys):
    assert main(["release", str(path), str(tmp_path)]) == 0
    assert f"{path.stem}.py" in capsys.readouterr().out
    assert read_assignment(tmp_path / path.name).points == read_assignment(path).points


def test_the_readme_has_the_routes():
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Teach with this book")[2]
    rows = dict(
        re.findall(r"^\| \[(\d+)\]\(notebooks/assignments/\d+_lessons\) \| (.*) \|$", text, re.M)
    )
    assert [*map(int, rows)] == [*ROUTES]
    for n in ROUTES:
        own = {c: names for c, (names, lessons) in plan().items() if lessons[n]}
        assert [int(c) for c in re.findall(r"\[(\d\d)\]", rows[str(n)])] == [*own]
        assert re.findall(r"`(\w+)`", rows[str(n)]) == [x for names in own.values() for x in names]
