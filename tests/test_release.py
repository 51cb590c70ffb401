"""What students get of an assignment, and what they don't; nbgrader's notebook."""

import ast
import dataclasses
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pe_numpy
from pe_numpy.__main__ import main
from pe_numpy.homework import course, release
from pe_numpy.homework.course import Assignment, groups_of, read_assignment
from pe_numpy.homework.registry import EXERCISES, check
from pe_numpy.homework.release import read_sheets
from pe_numpy.homework.variants import VARIANTS

WEEK = r"""
title = 'Week 3: "turns" \ and é'
deadline = "Friday, 18:00"
feedback = "name"
salt = "autumn"
[points]
rope = { numbers = 2, options = 0.5 }
layer_norm = 1
"""


@pytest.fixture
def week(tmp_path):
    path = tmp_path / "week3.toml"
    path.write_text(WEEK, encoding="utf-8")
    return read_assignment(path)


@pytest.fixture
def files(week):
    return release.release(week, read_sheets(week))


def texts(files):
    return [text for text in files.values() if isinstance(text, str)]


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
    for text in texts(files):
        assert not {line.strip() for line in text.splitlines()} & set(filter(None, bodies))


def test_neither_seed_nor_salt_leave_the_teacher(week, files):
    assert not any("autumn" in text or "salt" in text for text in texts(files))
    given = tomllib.loads(files["week3.toml"])
    assert given.pop("points") == {"rope": {"numbers": 2, "options": 0.5}, "layer_norm": 1}
    assert given == {"title": week.title, "deadline": week.deadline, "feedback": "name"}


def test_a_solution_brings_what_it_calls(week):
    rope, layer_norm = read_sheets(week)
    assert "def rope_frequencies" in rope.body and "def " not in layer_norm.body
    assert "def rope_frequencies" not in rope.stub


def test_a_stub_comes_from_the_chapter_of_its_exercise():
    (sheet,) = read_sheets(Assignment("quiz", "Quiz", {"softmax": {"all": 1.0}}))
    text = (release.STUBS / f"{EXERCISES['softmax'].chapter}_attention.py").read_text(
        encoding="utf-8"
    )
    assert sheet.hints in text


def words(text):
    return " ".join(text.split())


def test_the_readme_says_what_to_do(week, files):
    text = words(files["README.md"])
    assert "| `rope` | 2.5 | 2: the defaults, in float64; 0.5: an argument" in text
    assert "# Week 3: " in text and "Deadline: Friday, 18:00" in text
    assert "python checker.pyz check week3.py rope " in text and "Python 3.11 or newer" in text
    assert "names a mistake that is known. Your" in text
    assert "other numbers than those that you can try" in text
    plain = dataclasses.replace(week, salt="", feedback="none")
    assert "other numbers" not in release.readme(plain)
    assert "The report tells only the points." in release.readme(plain)


def steps(files):
    yaml = pytest.importorskip("yaml")
    (job,) = yaml.safe_load(files[".github/workflows/homework.yml"])["jobs"].values()
    return job["steps"]


def test_the_workflow_says_what_to_do(files):
    install, checking = (step for step in steps(files) if "run" in step)
    assert install["run"] == 'python -c "import numpy" || python -m pip install numpy\n'
    assert checking["run"].startswith(
        "python checker.pyz check --assignment week3.toml week3.py --"
    )
    container = json.loads(files[".devcontainer/devcontainer.json"])
    assert container["postCreateCommand"] == "python -m pip install numpy"


@pytest.fixture
def folder(tmp_path, files):
    """What students get, in a folder where this package is not to be found."""
    place = tmp_path / "handout"
    release.write(release.in_folder(place, files))
    return place


def numpy_alone(folder):
    """How to start a Python that sees NumPy and the standard library, and nothing else."""
    libraries = folder.parent / "libraries"
    libraries.mkdir()
    for path in Path(np.__file__).parent.parent.glob("numpy*"):
        (libraries / path.name).symlink_to(path)
    python = folder.parent / "python"
    run = f"import runpy, sys; sys.path.append({str(libraries)!r}); sys.argv = sys.argv[1:]; "
    run += "runpy.run_path(sys.argv[0], run_name='__main__')"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S -W error -c "{run}" "$@"\n')
    python.chmod(0o755)
    return python


def solved(week, text):
    """The file for students, with the book's solutions."""
    for sheet in read_sheets(week):
        text = text.replace(sheet.stub, f"{sheet.head}\n{sheet.body}\n")
    return text


@pytest.mark.skipif(os.name == "nt", reason="needs sh")
def test_the_checker_runs_with_numpy_alone(week, files, folder):
    python = numpy_alone(folder)
    words = [str(python), "checker.pyz", "check", "--assignment", "week3.toml", "week3.py"]
    clean = {"PATH": os.environ["PATH"], "TMPDIR": str(folder.parent)}
    right = solved(week, files["week3.py"])
    for text, status, told in (
        (files["week3.py"], 1, "rope: it is not written yet (0 of 2.5)"),
        (right.replace("* sin +", "* sin -"), 1, "layer_norm: right in all"),
        (right, 0, "week3, 3.5 of 3.5 points"),
    ):
        (folder / "week3.py").write_text(text)
        done = subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (status, "")
        assert told.replace("week3,", "handout,") in done.stdout
    assert not [*folder.parent.glob("checker-*")]  # what was unpacked is gone


def test_the_checker_has_the_same_bytes_each_time():
    assert release.checker() == release.checker() and len(release.checker()) < 2**20


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash, as GitHub's workflows do")
@pytest.mark.parametrize("right", [True, False])
def test_the_workflow_writes_a_summary_and_is_red_until_all_is_right(week, files, folder, right):
    step = steps(files)[-1]
    if right:
        (folder / "week3.py").write_text(solved(week, files["week3.py"]))
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(numpy_alone(folder))
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={
            "PATH": f"{folder}/bin{os.pathsep}{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "WHO": "octo",
        },
    )
    assert step["shell"] == "bash" and done.returncode == (0 if right else 1)
    summary = (folder / "summary").read_text()
    assert f"octo, {'3.5' if right else '0'} of 3.5 points" in summary
    assert all(line.startswith("    ") for line in summary.splitlines())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash, as Gradescope does")
def test_gradescope_grades_what_its_archive_is_given(week, files, folder, tmp_path):
    """As its page on autograders says: source, submission, results, and metadata beside them."""
    (root := tmp_path / "autograder").mkdir()
    whole = (tmp_path / "week3.toml").read_text()
    with zipfile.ZipFile(io.BytesIO(release.autograder(week, whole))) as archive:
        assert {"setup.sh", "run_autograder"} < {*archive.namelist()}
        assert archive.getinfo("run_autograder").external_attr >> 16 & 0o100
        archive.extractall(root / "source")
    (root / "results").mkdir()
    (root / "submission").mkdir()
    users = [{"email": "ben@x.org"}, {"email": "anna@x.org"}]
    (root / "submission_metadata.json").write_text(json.dumps({"users": users}))
    (root / "submission" / "mine.py").write_text(
        solved(week, files["week3.py"]).replace('if layout == "interleaved":', "if True:")
    )
    # Its "python -": the metadata are read by a program on standard input.
    (folder.parent / "both").write_text(
        f'#!/bin/sh\n[ "$1" = - ] && exec "{sys.executable}" "$@"\n'
        f'exec "{numpy_alone(folder)}" "$@"\n'
    )
    (folder.parent / "both").chmod(0o755)
    done = subprocess.run(
        ["bash", str(root / "source" / "run_autograder")],
        env={"PATH": os.environ["PATH"], "AUTOGRADER": str(root), "PYTHON": str(tmp_path / "both")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((root / "results" / "results.json").read_text())
    assert result["score"] == 3.0 and [t["score"] for t in result["tests"]][:1] == [2.0]
    assert result["extra_data"]["seed"] == course.seed_of("autumn", "anna@x.org+ben@x.org")
    subprocess.run(["bash", "-n", str(root / "source" / "setup.sh")], check=True)


def test_a_course_can_install_numpy_from_where_it_likes(tmp_path):
    path = tmp_path / "week3.toml"
    path.write_text('install = "pip install ./numpy.whl"\n[points]\nrope = 1\n')
    week = read_assignment(path)
    files = release.release(week, read_sheets(week))
    assert "    pip install ./numpy.whl\n" in files["README.md"]
    assert tomllib.loads(files["week3.toml"])["install"] == "pip install ./numpy.whl"


# ---- plans ---------------------------------------------------------------------------------------


def test_a_plan_is_a_folder_of_assignments(tmp_path, capsys):
    assert main(["plan", "4", str(tmp_path)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told == [str(tmp_path / f"week{n}.toml") for n in (1, 2, 3, 4)]
    text = (tmp_path / "week3.toml").read_text()
    assert text.startswith("# Homework after lesson 3 of 4: chapter 30 and chapter 35.\ntitle = ")
    offered = re.sub(r"^# (?=\w+ = )", "", text, flags=re.M)  # all that is offered is taken
    (tmp_path / "one.toml").write_text(offered)
    one, plain = read_assignment(tmp_path / "one.toml"), read_assignment(told[2])
    assert one.variants and one.due and one.salt and one.points == plain.points
    assert main(["plan", "5", str(tmp_path)]) == 2
    assert "there are plans for 4, 8, 12 lessons; got 5" in capsys.readouterr().err


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


NOTEBOOK = """
import sys
In = []  # as IPython has it
for cell in sys.stdin.read().split("\\0"):
    In.append(cell)
    exec(cell, globals())
"""


def run_notebook(folder, cells):
    """What a kernel prints that has NumPy and the folder's files; and its error."""
    (folder / "kernel.py").write_text(NOTEBOOK)
    done = subprocess.run(
        [str(numpy_alone(folder)), "kernel.py"],
        input="\0".join(cells),
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return done.stdout, done.stderr


CHEATS = """
import pe_numpy.homework.course
require = pe_numpy.homework.course.require = lambda *arguments, **options: None
"""


@pytest.mark.skipif(os.name == "nt", reason="needs sh")
@pytest.mark.parametrize("kind", ["right", "wrong", "cheated", "borrowed", "hidden"])
def test_the_notebook_grades(week, folder, kind):
    start, rope, *rest = (source(cell) for cell in cells(week) if cell["cell_type"] == "code")
    wrong = rope.replace("x[..., first] * sin +", "x[..., first] * sin -")
    assert wrong != rope
    answer = {
        "right": rope,
        "wrong": wrong,
        "cheated": wrong + CHEATS,
        "borrowed": "from pe_numpy import rope",
        "hidden": "def rope(*a, **k):\n    import pe_numpy\n    return pe_numpy.rope(*a, **k)",
    }[kind]
    out, error = run_notebook(folder, [start, answer, *rest])
    assert ("AssertionError: rope: " in error) == (kind in ("wrong", "cheated")), error
    assert (error == "") == (kind not in ("wrong", "cheated"))
    assert ("flag: uses the package's own function" in out) == (kind not in ("right", "wrong"))


def test_hints_and_the_chapter_stand_before_an_exercise(week):
    before = [source(c) for c in cells(week) if c["cell_type"] == "markdown"][1]
    assert before.startswith("## rope\n\nIt is derived in chapter 40.\n")
    assert "\n- two slices pick the first" in before and before.count("\n- ") == 4
    assert not any(line.startswith("#  ") for line in before.splitlines())
    linked = dataclasses.replace(week, book="https://x.org/CHAPTER.html")
    assert "[chapter 40](https://x.org/40_rope_derived.html)" in source(cells(linked)[2])


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
    places += ["--gradescope", str(tmp_path / "gradescope.zip")]
    assert main(["release", toml, *places]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 9 and all(Path(path).is_file() for path in told)
    assert told[6:8] == [
        str(tmp_path / "course" / "source" / "week3" / name)
        for name in ("week3.ipynb", "checker.pyz")
    ]
    assert zipfile.is_zipfile(tmp_path / "gradescope.zip")
    assert read_assignment(tmp_path / "students" / "week3.toml").points == week.points
    assert main(["release", toml, *places]) == 2
    assert "release: its files must be new; got " in capsys.readouterr().err


def test_a_wrong_call_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("week 3.toml").write_text(WEEK, encoding="utf-8")
    assert main(["release", "week 3.toml", "folder"]) == 2
    told = capsys.readouterr().err
    assert "must be called with letters, digits, _ and - alone, as in week3.toml" in told
    Path("week3.toml").write_text(f"variants = true\n{WEEK}", encoding="utf-8")
    for more in ([], ["--nbgrader", "course", "--roster", "week3.toml"]):
        assert main(["release", "week3.toml", "folder", *more]) == 2
        assert "variants need --roster, and are not for nbgrader" in capsys.readouterr().err


def test_each_student_of_a_roster_gets_a_variant_that_the_grader_knows(tmp_path, capsys):
    """A neighbour's answer, and the book's, are no answer."""
    (toml := tmp_path / "week3.toml").write_text(f"variants = true\n{WEEK}", encoding="utf-8")
    (tmp_path / "class.csv").write_text("id\nanna\nben\nzoe\n")
    words = [str(tmp_path / "out"), "--roster", str(tmp_path / "class.csv")]
    assert main(["release", str(toml), *words]) == 0
    week = read_assignment(toml)
    names = {student: week.names_of(student)["rope"] for student in ("anna", "ben", "zoe")}
    assert names == {"anna": "rope_doubled", "ben": "rope_doubled", "zoe": "rope_turned"}
    other = dataclasses.replace(week, salt="spring")
    assert any(week.names_of(f"s{n}") != other.names_of(f"s{n}") for n in range(20))
    text = (tmp_path / "out" / "zoe" / "week3.py").read_text()
    assert "def rope_turned(x" in text and "Your variant: the angle is -position" in text
    assert "# rope_turned, 2: " in text and "rope_doubled" not in text
    assert read_assignment(tmp_path / "out" / "zoe" / "week3.toml").points.keys() == {
        *("rope_turned", "layer_norm")
    }
    book, norm = (sheet.head + "\n" + sheet.body for sheet in read_sheets(week_of(week)))
    own = {
        "anna": book.replace("None] * frequencies", "None] * 2 * frequencies"),
        "ben": book,
        "zoe": book.replace("None] * frequencies", "None] * -frequencies"),
    }
    for student, text in own.items():
        answer = text.replace("def rope(", f"def {names[student]}(")
        (tmp_path / f"{student}.py").write_text(f"import numpy as np\n{answer}\n\n{norm}\n")
    files = [str(tmp_path / f"{student}.py") for student in own]
    capsys.readouterr()
    assert main(["check", "--assignment", str(toml), "--json", *files]) == 1
    grades = {one["student"]: one for one in json.loads(capsys.readouterr().out)["grades"]}
    assert {name: one["total"] for name, one in grades.items()} == {
        "anna": 3.5,
        "ben": 1,
        "zoe": 3.5,
    }
    assert grades["ben"]["verdicts"][0]["mistake"] == "rope, as it is in the book"


def week_of(week):
    """The assignment as it is for all."""
    return dataclasses.replace(week, variants=False)


@pytest.mark.parametrize("name", [f"{e}_{word}" for e, own in VARIANTS.items() for word in own])
def test_a_variant_is_another_function_with_the_same_mistakes(name):
    plain = EXERCISES[name.rpartition("_")[0]]
    assert check(name, EXERCISES[name].reference).passed
    copied = check(name, plain.reference)
    assert copied.mistake == f"{plain.name}, as it is in the book"
    of = groups_of(plain)
    assert "numbers" in {group for group, right in zip(of, copied.right, strict=True) if not right}
    assert not check(plain.name, EXERCISES[name].reference).passed
    assert len(EXERCISES[name].mistakes) == len(plain.mistakes) + 1
    assert name not in EXERCISES.keys()  # no list shows it
    (sheet,) = read_sheets(Assignment("quiz", "Quiz", {name: {"all": 1.0}}))
    assert f"def {name}(" in sheet.stub and VARIANTS[plain.name][name.rpartition("_")[2]].told in (
        sheet.stub
    )
