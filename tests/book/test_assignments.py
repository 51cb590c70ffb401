"""The plans for lessons: their assignments can be released, their pages say what is in the book."""

import re

import pytest
from reading import NOTEBOOKS, ROOT, tables

from pe_numpy.__main__ import main
from pe_numpy.homework.course import grade, groups_of, read_assignment
from pe_numpy.homework.registry import EXERCISES, check
from pe_numpy.homework.release import plan, read_sheets
from pe_numpy.homework.runner import Report

ROUTES = (4, 8, 12)
PLANS = {(n, name): text for n in ROUTES for name, text in plan(n).items()}
files = pytest.mark.parametrize(("route", "name"), PLANS, ids=lambda x: str(x))


@pytest.fixture
def path(tmp_path, route, name):
    """An assignment, as `plan` writes it."""
    (path := tmp_path / name).write_text(PLANS[route, name], encoding="utf-8")
    return path


def lessons():
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
    assert [*PLANS] == [(n, f"week{week}.toml") for n in ROUTES for week in range(1, n + 1)]


@files
def test_it_sets_the_exercises_that_the_plan_has_for_its_lesson(path, route):
    lesson = path.stem.removeprefix("week")
    week = read_assignment(path)
    own = {n: names for n, (names, lessons) in lessons().items() if lessons[route] == lesson}
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
def test_its_stubs_say_what_is_no_exercise_of_it(path):
    """Not even by the name of a function that students do not have."""
    week = read_assignment(path)
    for sheet in read_sheets(week):
        called = {*re.findall(r"\b(\w+)\(", sheet.head.partition('"""')[2])}
        assert called & {*EXERCISES} <= {*week.points}, sheet.name


@files
def test_it_can_be_released(path, tmp_path, capsys):
    assert main(["release", str(path), str(tmp_path / "handout")]) == 0
    assert f"{path.stem}.py" in capsys.readouterr().out
    assert read_assignment(tmp_path / "handout" / path.name).points == read_assignment(path).points


PAGES = sorted((ROOT / "notebooks" / "assignments").iterdir())


def test_each_lesson_has_a_page():
    assert [page.stem for page in PAGES] == [
        path.stem for path in NOTEBOOKS if int(path.stem[:2]) in lessons()
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_has_goals_minutes_questions_and_what_to_show(page):
    text, chapter = page.read_text(encoding="utf-8"), int(page.stem[:2])
    homework = re.search(r"^\[Chapter (\d\d)\]\(.*?\)\. Homework: (.*)\.$", text, re.M)
    assert int(homework[1]) == chapter
    assert re.findall(r"`(\w+)`", homework[2]) == lessons()[chapter][0]
    assert "\nAfterwards a student can " in text
    (head, rows), *_ = tables(text)
    together = {10: "11", 11: "10", 30: "35", 35: "30"}.get(chapter)
    assert head == [
        *("90 minutes", *([f"with chapter {together}"] if together else []), "what", "show")
    ]
    for column, minutes in enumerate([90, 45] if together else [90]):
        assert sum(int(row[column]) for row in rows) == minutes
    assert sum(".png)" in row[-1] for row in rows) >= 3
    questions = re.findall(r"^\d\. \*\*(.*?)\*\* (.*?)\[(?:Shown|Proved)\]", text, re.M | re.S)
    assert len(questions) == 5
    assert all(question.endswith("?") and answer for question, answer in questions)


def test_the_page_for_teachers_has_the_plans():
    text = (ROOT / "notebooks" / "TEACHING.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\d+) \| (.*) \|$", text, re.M))
    assert [*map(int, rows)] == [*ROUTES]
    for n in ROUTES:
        own = {c: names for c, (names, lessons) in lessons().items() if lessons[n]}
        assert [int(c) for c in re.findall(r"\[(\d\d)\]", rows[str(n)])] == [*own]
        assert re.findall(r"`(\w+)`", rows[str(n)]) == [x for names in own.values() for x in names]
