"""What students get of an assignment, and what they don't; nbgrader's notebook."""

import ast
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pe_numpy
from pe_numpy.__main__ import main
from pe_numpy.homework import course, release
from pe_numpy.homework.course import Assignment, groups_of, read_assignment
from pe_numpy.homework.registry import EXERCISES
from pe_numpy.homework.release import read_sheets

BOOK = Path(__file__).parents[1] / "notebooks" / "exercises"

WEEK = r"""
title = 'Week 3: "turns" \ and é'
deadline = "Friday, 18:00"
feedback = "name"
salt = "autumn"
[points]
rope = { numbers = 2, options = 0.5 }
layer_norm = 1
"""


@pytest.fixture(autouse=True)
def book(monkeypatch):
    """The book's stubs, also for a copy of the package that stands alone."""
    monkeypatch.setattr(release, "BOOK", BOOK)


@pytest.fixture
def week(tmp_path):
    path = tmp_path / "week3.toml"
    path.write_text(WEEK, encoding="utf-8")
    return read_assignment(path)


@pytest.fixture
def files(week):
    return release.release(week, read_sheets(week))


def cells(week):
    return json.loads(release.notebook(week, read_sheets(week)))["cells"]


def source(cell):
    return "".join(cell["source"])


# ---- stubs ---------------------------------------------------------------------------------------


def test_every_exercise_can_be_set():
    every = Assignment("all", "All", {name: {"all": 1.0} for name in EXERCISES})
    sheets = {sheet.name: sheet for sheet in read_sheets(every)}
    assert [*sheets] == [*EXERCISES]
    for name, sheet in sheets.items():
        module = {}
        imports = "\n".join(sheet.imports)
        exec(f"{imports}\n{sheet.head}\n{sheet.body}", module)
        small = EXERCISES[name].all_cases()[:1]
        (outcome,) = pe_numpy.homework.cases.run(module[name], small)
        (right,) = pe_numpy.homework.cases.run(EXERCISES[name].reference, small)
        assert outcome.agrees(right, EXERCISES[name].precise), (name, outcome.error)
        assert sheet.hints, name


def test_students_get_stubs_that_fail_and_no_solution(week, files):
    tree = ast.parse(files["week3.py"])
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [f.name for f in functions] == ["rope", "layer_norm"]
    assert all(len(f.body) == 2 and isinstance(f.body[1], ast.Raise) for f in functions)
    assert "\\ and é" in ast.get_docstring(tree) and "Friday, 18:00" in ast.get_docstring(tree)
    assert "# rope, 1: " in files["week3.py"] and "# layer_norm, 2: " in files["week3.py"]
    assert "# rope_matrix" not in files["week3.py"]
    bodies = [line.strip() for sheet in read_sheets(week) for line in sheet.body.splitlines()]
    assert len(bodies) > 12
    for text in files.values():
        assert not {line.strip() for line in text.splitlines()} & set(filter(None, bodies))


def test_neither_seed_nor_salt_leave_the_teacher(week, files):
    assert not any("autumn" in text or "salt" in text for text in files.values())
    given = tomllib.loads(files["week3.toml"])
    assert given.pop("points") == {"rope": {"numbers": 2, "options": 0.5}, "layer_norm": 1}
    assert given == {"title": week.title, "deadline": week.deadline, "feedback": "name"}


def test_a_solution_brings_what_it_calls(week):
    rope, layer_norm = read_sheets(week)
    assert "def rope_frequencies" in rope.body and "def " not in layer_norm.body
    assert "def rope_frequencies" not in rope.stub


def test_a_stub_comes_from_the_chapter_of_its_exercise():
    (sheet,) = read_sheets(Assignment("quiz", "Quiz", {"softmax": {"all": 1.0}}))
    text = (BOOK / f"{EXERCISES['softmax'].chapter}_attention.py").read_text(encoding="utf-8")
    assert sheet.hints in text


def words(text):
    return " ".join(text.split())


def test_the_readme_says_what_to_do(week, files):
    text = words(files["README.md"])
    assert "| `rope` | 2.5 | 2: the defaults, in float64; 0.5: an argument" in text
    assert "# Week 3: " in text and "Deadline: Friday, 18:00" in text
    assert "pe-numpy check week3.py rope " in text and "Python 3.11 or newer" in text
    assert "names a mistake that is known. Your" in text
    assert "other numbers than those that you can try" in text
    plain = dataclasses.replace(week, salt="", feedback="none")
    assert "other numbers" not in release.readme(plain)
    assert "The report tells the points alone." in release.readme(plain)


def steps(files):
    yaml = pytest.importorskip("yaml")
    (job,) = yaml.safe_load(files[".github/workflows/homework.yml"])["jobs"].values()
    return job["steps"]


def test_the_workflow_says_what_to_do(files):
    install, checking = (step for step in steps(files) if "run" in step)
    assert install["run"] == f"python -m pip install pe_numpy=={pe_numpy.__version__}"
    assert checking["run"].startswith("pe-numpy check --assignment week3.toml week3.py --student")
    container = json.loads(files[".devcontainer/devcontainer.json"])
    assert container["postCreateCommand"] == install["run"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash, as GitHub's workflows do")
@pytest.mark.parametrize("right", [True, False])
def test_the_workflow_writes_a_summary_and_is_red_until_all_is_right(week, files, tmp_path, right):
    step = steps(files)[-1]
    text = files["week3.py"]
    for sheet in read_sheets(week) if right else ():
        text = text.replace(sheet.stub, f"{sheet.head}\n{sheet.body}\n")
    (tmp_path / "week3.py").write_text(text)
    (tmp_path / "week3.toml").write_text(files["week3.toml"])
    (tmp_path / "pe-numpy").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pe_numpy "$@"\n')
    (tmp_path / "pe-numpy").chmod(0o755)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(Path(pe_numpy.__file__).parents[1]),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "WHO": "octo",
        },
    )
    assert step["shell"] == "bash" and done.returncode == (0 if right else 1)
    summary = (tmp_path / "summary").read_text()
    assert f"octo, {'3.5' if right else '0'} of 3.5 points" in summary
    assert all(line.startswith("    ") for line in summary.splitlines())


def test_a_course_can_install_the_package_from_where_it_likes(tmp_path):
    path = tmp_path / "week3.toml"
    path.write_text('install = "pip install ./wheel"\n[points]\nrope = 1\n')
    week = read_assignment(path)
    files = release.release(week, read_sheets(week))
    assert "    pip install ./wheel\n" in files["README.md"]
    assert tomllib.loads(files["week3.toml"])["install"] == "pip install ./wheel"


# ---- nbgrader's notebook -------------------------------------------------------------------------


def test_the_notebook_is_one(week):
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.reads(release.notebook(week, read_sheets(week)), as_version=4))


def test_points_of_the_notebook_are_those_of_the_assignment(week):
    graded = [c["metadata"]["nbgrader"] for c in cells(week) if c["metadata"]["nbgrader"]["grade"]]
    assert {g["grade_id"]: g["points"] for g in graded} == {
        "test_rope_numbers": 2,
        "test_rope_options": 0.5,
        "test_layer_norm_all": 1,
    }
    assert all(g["locked"] and not g["solution"] for g in graded)


def test_solutions_stand_where_nbgrader_takes_them_out(week):
    solved = [c for c in cells(week) if c["metadata"]["nbgrader"]["solution"]]
    assert [c["metadata"]["nbgrader"]["grade_id"] for c in solved] == ["rope", "layer_norm"]
    for cell, sheet in zip(solved, read_sheets(week), strict=True):
        before, rest = source(cell).split("### BEGIN SOLUTION\n")
        inside, after = rest.split("### END SOLUTION")
        assert before.strip() == sheet.head.strip() and not after.strip()
        assert inside.strip() == sheet.body.strip()


def test_solutions_pass_the_tests_of_the_notebook_and_mistakes_do_not(week):
    every = [source(cell) for cell in cells(week) if cell["cell_type"] == "code"]
    exec("\n".join(every), {})
    wrong = every[1].replace("x[..., first] * sin +", "x[..., first] * sin -")
    assert wrong != every[1]
    with pytest.raises(AssertionError, match="rope: "):
        exec("\n".join([every[0], wrong, every[2]]), {})


def test_hidden_tests_have_the_seed_of_the_assignment(week):
    hidden = [source(cell) for cell in cells(week) if "HIDDEN" in source(cell)]
    assert len(hidden) == 3
    assert all(f"seed={course.seed_of('autumn', 'nbgrader')})" in text for text in hidden)


def test_a_group_fails_by_its_own_cases_alone():
    def rope(x, positions, frequencies=None, layout="interleaved"):
        return pe_numpy.rope(x, positions, frequencies)  # the layout has no say

    course.require("rope", rope, "numbers")
    with pytest.raises(AssertionError, match="expected"):
        course.require("rope", rope, "options")
    with pytest.raises(AssertionError) as error:
        course.require("rope", rope, feedback="none")
    assert str(error.value) == "rope: not right in all cases"
    assert {"options", "numbers"} <= set(groups_of(EXERCISES["rope"]))


# ---- the command ---------------------------------------------------------------------------------


def test_release_writes_both_folders(week, tmp_path, capsys):
    toml = str(tmp_path / "week3.toml")
    places = [str(tmp_path / "students"), "--nbgrader", str(tmp_path / "course")]
    assert main(["release", toml, *places]) == 0
    *told, _, hint = capsys.readouterr().out.splitlines()
    assert len(told) == 6 and told[-1].endswith("week3.ipynb")
    assert hint.endswith('say so in week3.toml: install = "..."')
    assert (tmp_path / "course" / "source" / "week3" / "week3.ipynb").exists()
    assert read_assignment(tmp_path / "students" / "week3.toml").points == week.points
    assert main(["release", toml, *places]) == 2
    assert "release: its files must be new; got " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("week 3", [], "must be called with letters, digits, _ and - alone, as in week3.toml"),
        ("week3", ["--exercises", "nowhere"], "stubs of the exercises must be in nowhere"),
        ("week3", ["--exercises", "stubs"], "no file in stubs has a stub of layer_norm"),
        ("week3", ["--exercises", "alone"], "has no solution of rope"),
    ],
)
def test_a_wrong_call_is_told(tmp_path, monkeypatch, capsys, name, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{name}.toml").write_text(WEEK, encoding="utf-8")
    for folder in ("stubs", "stubs/solutions", "alone"):
        (tmp_path / folder).mkdir()
        text = 'def rope(x):\n    """Turn."""\n    return x\n'
        (tmp_path / folder / "answers.py").write_text(text)
    assert main(["release", f"{name}.toml", "folder", *options]) == 2
    assert message in capsys.readouterr().err
