"""The command line."""

import json
import subprocess
import sys

import pytest

import pe_numpy
from pe_numpy.__main__ import main
from pe_numpy.homework import runner
from pe_numpy.homework.registry import EXERCISES

OWN = """
def rope_frequencies(d, base=10000.0):
    return [base ** (-{}i / d) for i in range(d // 2)]
"""


@pytest.fixture
def files(tmp_path):
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(OWN.format("2 * "))
    wrong.write_text(OWN.format(""))
    return str(right), str(wrong)


def test_list_names_every_function_with_its_chapter(capsys):
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for name in (*pe_numpy.__all__, *EXERCISES):
        assert f" {name} " in text
    assert "* rope " in text and "ch. 40" in text


def test_copy_prints_a_file(capsys):
    assert main(["copy", "relu", "gelu"]) == 0
    text = capsys.readouterr().out
    assert "def relu(" in text and "def gelu(" in text


def test_check_tells_right_from_wrong_by_its_exit_status(files, capsys):
    right, wrong = files
    assert main(["check", right]) == 0
    assert main(["check", right, wrong]) == 1
    assert "exponent i/d for 2i/d" in capsys.readouterr().out
    assert main(["check", right, "rope_frequencies"]) == 0
    assert main(["check", right, "rope"]) == 1  # asked for, and not there


def test_json_has_the_whole_report(files, capsys):
    assert main(["check", "--json", *files]) == 1
    first, second = json.loads(capsys.readouterr().out)
    assert first["passed"] and not second["passed"]
    assert second["verdicts"][0]["mistake"] == "exponent i/d for 2i/d"


def test_what_can_not_be_printed_is_shown_as_a_mark(tmp_path, capsys):
    path = tmp_path / "a\x07\udcff.py"
    path.write_text(OWN.format("'\\x1b' * "))
    assert main(["check", str(path)]) == 1
    assert f"{tmp_path}/a??.py\n" in capsys.readouterr().out


def test_a_folder_and_a_pattern_name_their_files(files, tmp_path, capsys):
    (tmp_path / "notes.txt").touch()
    for word in (tmp_path, tmp_path / "*.py"):
        assert main(["check", str(word)]) == 1
        found = [line for line in capsys.readouterr().out.splitlines() if line[0] != " "]
        assert found == [*files]
    (tmp_path / "empty").mkdir()
    assert main(["check", str(tmp_path / "empty"), files[0]]) == 1  # the others are checked
    out = capsys.readouterr().out
    assert "it is a folder: name a file" in out and "right in all" in out
    assert main(["check", str(tmp_path / "none.ipynb"), files[0]]) == 1
    assert "can't be read: No such file" in capsys.readouterr().out


def test_a_wrong_folder_is_named_and_what_it_has(files, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == 2
    here = f"this folder, {tmp_path}, has "
    assert capsys.readouterr().err.endswith(f"{here}right.py, wrong.py\n")
    for name in "abcd":
        (tmp_path / f"{name}.py").touch()
    assert main(["check", "rope"]) == 2
    said = capsys.readouterr().err
    assert said.endswith(f"got rope; {here}a.py, b.py, c.py, d.py, right.py and 1 more\n")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert main(["check"]) == 2
    assert "empty, has none that ends in .py or .ipynb\n" in capsys.readouterr().err
    assert main(["check", "right.py", "b.ipynb"]) == 2
    said = capsys.readouterr().err
    assert said.endswith(f"check: there is no right.py and no b.ipynb here, in {tmp_path}/empty\n")


def test_an_exercise_is_no_folder_of_its_name(files, tmp_path, monkeypatch, capsys):
    (tmp_path / "rope_frequencies").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["check", "right.py", "rope_frequencies"]) == 0


def test_options_reach_the_checker(files, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(runner, "check_files", lambda *a, **o: asked.append(o) or [])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    words = "--seed 7 --seconds 3 --budget 9 --megabytes 800 --jobs 2 --allow-package"
    assert main(["check", files[0], *words.split()]) == 0
    assert asked.pop() == {
        "seed": 7, "seconds": 3.0, "budget": 9.0, "megabytes": 800, "jobs": 2,
        "allow_package": True, "to": "", "progress": runner.tell_progress,
    }  # fmt: skip
    assert main(["check", files[0], "--salt", "autumn"]) == 0
    seed = asked.pop()["seed"]
    assert seed("x/anna.py") == seed("anna.py") != seed("ben.py")


def test_progress_is_one_line_of_a_terminal(capsys):
    for done in (1, 2):
        runner.tell_progress(done, 2)
    runner.tell_progress(1, 1)
    assert capsys.readouterr().err == "\r1 of 2 files\r2 of 2 files\n"


def test_a_reader_may_stop_early():
    command = [sys.executable, "-m", "pe_numpy", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait() == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["copy", "ropee"], "did you mean rope"),
        (["copy", "--stub", "73"], "--stub takes the number of a chapter with exercises; got 73"),
        (["check", "rope"], "name a file to look at"),
        (["check", __file__, "ropee"], "did you mean rope"),
        (["check", __file__, "--jobs", "0"], "check: --jobs must be positive; got 0"),
        (["check", __file__, "--seed", "1", "--salt", "a"], "give --seed or --salt, not both"),
    ],
)
def test_a_wrong_call_gets_a_line_and_status_2(words, message, capsys):
    assert main(words) == 2
    assert message in capsys.readouterr().err
