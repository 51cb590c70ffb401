"""nbgrader reads our notebook, makes the students' version of it, and grades what they hand in.

Runs in an environment of its own (`make test-course`), which has neither matplotlib nor the book.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.nbgraderformat import MetadataValidator

from pe_numpy.__main__ import main

ROOT = Path(__file__).parents[2]
# This environment's programs first: nbgrader calls one of them, alembic, by its name.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
WEEK = """
title = "Week 3"
feedback = "name"
salt = "autumn"
[points]
rope = { numbers = 2, options = 1 }
layer_norm = 1.5
"""
# In the solutions: Ben makes options wrong alone, Cleo is far off, Eve cheats, Fay borrows.
MISTAKES = {
    "anna": {},
    "ben": {'if layout == "interleaved":': "if True:"},
    "cleo": {"x.mean(axis=-1, keepdims=True)": "0.0"},
    "eve": {
        'if layout == "interleaved":': "if True:",
        "    return y\n": "    return y\nrequire = lambda *a, **k: None\n",
    },
    "fay": {"    return y\n": "    return y\nfrom pe_numpy import rope\n"},
}
SCORES = {"anna": 4.5, "ben": 3.5, "cleo": 3.0, "dan": 0.0, "eve": 3.5, "fay": 4.5}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course of nbgrader in which four students have handed in, and were graded."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "week3.toml").write_text(WEEK)
    students = folder / "students"
    words = [str(folder / "week3.toml"), str(students), "--nbgrader", str(folder)]
    assert main(["release", *words]) == 0
    (folder / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.course_id = 'pe'\n"
    )
    nbgrader(folder, "generate_assignment", "week3", "--create")
    source = (folder / "source" / "week3" / "week3.ipynb").read_text(encoding="utf-8")
    answered = json.loads(source)
    for student, changes in MISTAKES.items():
        hand_in(folder, student, answered, changes)
    released = (folder / "release" / "week3" / "week3.ipynb").read_text(encoding="utf-8")
    hand_in(folder, "dan", json.loads(released), None)
    nbgrader(folder, "autograde", "week3", "--create")
    return folder


def nbgrader(folder, *words):
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def hand_in(folder, student, notebook, changes):
    """A student's copy of what nbgrader released, with the solution cells filled in."""
    released = json.loads((folder / "release/week3/week3.ipynb").read_text(encoding="utf-8"))
    filled = {c["metadata"]["nbgrader"]["grade_id"]: c["source"] for c in notebook["cells"]}
    for cell in released["cells"]:
        about = cell["metadata"]["nbgrader"]
        if about["solution"] and changes is not None:
            text = "".join(filled[about["grade_id"]])
            for old, new in changes.items():
                text = text.replace(old, new)
            cell["source"] = text
    place = folder / "submitted" / student / "week3"
    place.mkdir(parents=True)
    (place / "week3.ipynb").write_text(json.dumps(released), encoding="utf-8")


def test_metadata_is_what_nbgrader_wants(course):
    source = nbformat.read(course / "source/week3/week3.ipynb", as_version=4)
    MetadataValidator().validate_nb(source)


def test_nbgrader_takes_out_solutions_and_hidden_tests(course):
    text = (course / "release/week3/week3.ipynb").read_text(encoding="utf-8")
    assert text.count("YOUR CODE HERE") == 2 and text.count('require(\\"') == 3
    for word in ("SOLUTION", "HIDDEN", "seed=", "rope_frequencies(x.shape", "np.cos"):
        assert word not in text, word


def test_nbgrader_gives_the_points_of_the_assignment(course):
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        assert book.find_assignment("week3").max_score == 4.5
        got = {s: book.find_submission("week3", s).score for s in SCORES}
    assert got == SCORES


def test_what_is_borrowed_gets_a_flag(course):
    for student in SCORES:
        text = (course / f"autograded/{student}/week3/week3.ipynb").read_text(encoding="utf-8")
        assert ("flag: uses the package's own function" in text) == (student == "fay")


def test_hints_stand_in_the_notebook(course):
    text = (course / "release/week3/week3.ipynb").read_text(encoding="utf-8")
    assert text.count("<summary>Hints</summary>") == 2 and "chapter 40" in text


def test_a_failure_tells_what_the_level_of_feedback_allows(course):
    text = (course / "autograded/cleo/week3/week3.ipynb").read_text(encoding="utf-8")
    assert "AssertionError" in text and "layer_norm: " in text
    assert "expected " not in text.partition("AssertionError")[2].partition("See chapter")[0]
