"""The homework: stubs fail the checker, solutions pass it, and each chapter has some."""

import ast
import re

import numpy as np
import pytest
from reading import NOTEBOOKS

from pe_numpy.__main__ import main
from pe_numpy.copy.copy import SOLUTIONS as SOLVED
from pe_numpy.homework.cases import run
from pe_numpy.homework.registry import EXERCISES
from pe_numpy.homework.release import STUBS as FOLDER
from pe_numpy.homework.runner import check_file

STUBS = sorted(FOLDER.glob("[0-9][0-9]_*.py"))
SOLUTIONS = sorted(SOLVED.glob("[0-9][0-9]_*.py"))
SECONDS = 300.0  # wall time for a function, so that a busy machine changes no verdict
stubs = pytest.mark.parametrize("path", STUBS, ids=lambda p: p.stem)


def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_chapter_has_its_stubs_and_each_stub_file_its_solutions():
    names = [path.name for path in STUBS]
    assert names == [path.name for path in SOLUTIONS]
    with_stubs = [
        path.stem for path in NOTEBOOKS if path.stem[:2] != "73" and path.stem[0] not in "89"
    ]
    assert names == [f"{stem}.py" for stem in with_stubs]


@stubs
def test_a_stub_says_where_float32_must_stay(path):
    for name, node in functions(path).items():
        exercise = EXERCISES[name]
        outcomes = run(exercise.reference, exercise.all_cases())
        if any(result.dtype == np.float32 for one in outcomes for result in one.results):
            assert "dtype" in ast.get_docstring(node), name
    assert "float32" in path.read_text(encoding="utf-8").partition("\nimport ")[0]


def test_every_exercise_is_set_somewhere():
    assert {name for path in STUBS for name in functions(path)} == set(EXERCISES)


@stubs
def test_stubs_are_told_apart_from_mistakes(path):
    report = check_file(path, seconds=SECONDS)
    assert {v.name for v in report.verdicts} == set(functions(path))
    assert {v.problem for v in report.verdicts} == {"it is not written yet"}


@stubs
def test_the_chapter_says_how_to_get_and_check_its_stubs(path, tmp_path, monkeypatch, capsys):
    text = (NOTEBOOKS[0].parent / path.name).read_text(encoding="utf-8")
    section = text.partition("\n# ## Exercises\n")[2].replace("\n# ", " ")
    get, ask = re.findall(r"`python -m pe_numpy ([^`]+)`", section)[:2]
    monkeypatch.chdir(tmp_path)
    assert main(get.split()) == 0
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert ask.split() == ["check", path.name] and "into the current folder" in section
    assert main(get.split()) == 2  # these may be somebody's answers
    assert f"move {path.name} in this folder" in capsys.readouterr().err


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda p: p.stem)
def test_solutions_pass_without_the_package(path):
    assert "import pe_numpy" not in (text := path.read_text()) and "from pe_numpy" not in text
    report = check_file(path, seconds=SECONDS)
    assert report.passed, str(report)


@stubs
def test_a_stub_specifies_what_is_to_be_written(path):
    text = path.read_text(encoding="utf-8")
    assert f"python -m pe_numpy check {path.name}\n" in text
    solved = functions(SOLVED / path.name)
    assert set(functions(path)) <= set(solved)
    for name, node in functions(path).items():
        doc = ast.get_docstring(node) or ""
        assert "returns" in doc and len(doc.splitlines()) >= 5, name
        assert ast.unparse(node.args) == ast.unparse(solved[name].args), name
        hints = re.findall(rf"^# {name}, (\d): \S", text, re.M)
        assert hints and hints == [str(n + 1) for n in range(len(hints))], name
