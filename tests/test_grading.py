"""A class on the command line: an assignment, files of students, and what is written of them."""

import csv
import json
import sys
from xml.etree import ElementTree

import pytest

from pe_numpy.__main__ import main
from pe_numpy.homework.course import seed_of

WEEK = 'title = "Week 3"\nfeedback = "name"\nsalt = "autumn"\n[points]\nrope_frequencies = 2\n'
OWN = """
def rope_frequencies(d, base=10000.0):
    return [base ** (-{}i / d) for i in range(d // 2)]
"""


@pytest.fixture
def week(tmp_path):
    (tmp_path / "anna.py").write_text(OWN.format("2 * "))
    (tmp_path / "ben.py").write_text(OWN.format(""))
    (tmp_path / "cleo.py").write_text("def rope_frequencies(d:\n")
    path = tmp_path / "week3.toml"
    path.write_text(WEEK)
    return tmp_path


def check(week, *words, status=1, files=("anna", "ben", "cleo")):
    """Run the command on files of a class, in front of further options."""
    paths = [str(week / f"{name}.py") for name in files]
    assert main(["check", "--assignment", str(week / "week3.toml"), *paths, *words]) == status


def test_a_class_gets_a_table_and_files(week, capsys):
    names = {name: str(week / name) for name in ("class.csv", "class.xml", "letters")}
    check(
        week,
        *("--csv", names["class.csv"], "--junit", names["class.xml"]),
        *("--letters", names["letters"], "--summary"),
    )
    text = capsys.readouterr().out
    assert "anna                    2      2\nben                     0      0" in text
    assert "rope_frequencies: 1 of 3 right\n     1  exponent i/d for 2i/d\n     1  not run" in text
    with open(names["class.csv"], newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["points"] for row in rows] == ["2", "0", "0"]
    assert [int(r["seed"]) for r in rows] == [seed_of("autumn", r["student"]) for r in rows]
    assert [s.get("name") for s in ElementTree.parse(names["class.xml"]).getroot()] == [
        *("anna", "ben", "cleo")
    ]
    letter = (week / "letters" / "ben.txt").read_text()
    assert "exponent i/d for 2i/d (0 of 2)" in letter and "expected" not in letter


def test_a_class_can_be_drawn(week):
    pytest.importorskip("matplotlib")
    check(week, "--figure", str(week / "class.png"))
    assert (week / "class.png").read_bytes().startswith(b"\x89PNG")


def test_one_student_gets_points_and_gradescope_its_file(week, capsys):
    check(week, "--gradescope", str(week / "results.json"), files=["ben"])
    assert capsys.readouterr().out.startswith("Week 3: ben, 0 of 2 points\n")
    result = json.loads((week / "results.json").read_text())
    assert result["score"] == 0 and result["extra_data"]["seed"] == seed_of("autumn", "ben")


def test_a_student_can_be_named_and_feedback_changed(week, capsys):
    letters = ["--letters", str(week)]
    check(week, "--json", "--student", "../s:1", *letters, files=["ben"])
    assert (week / ".._s_1.txt").exists()
    capsys.readouterr()
    check(week, "--json", "--student", "s1234", "--feedback", "full", files=["ben"])
    (one,) = json.loads(capsys.readouterr().out)["grades"]
    assert one["student"] == "s1234" and one["seed"] == seed_of("autumn", "s1234")
    assert one["verdicts"][0]["expected"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["anna.py", "ben.py", "--student", "a"], "--student is for one file; got 2"),
        (["anna.py", "ben.py", "--gradescope", "x"], "--gradescope is for one file; got 2"),
        (["anna.py", "rope"], "the assignment names the exercises; got rope"),
        (["anna.py", "./anna.py"], "one file a student; got two of"),
    ],
)
def test_a_wrong_call_is_told(week, monkeypatch, capsys, words, message):
    monkeypatch.chdir(week)
    assert main(["check", "--assignment", "week3.toml", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", ["student", "csv", "letters", "gradescope", "figure"])
def test_what_a_course_needs_needs_an_assignment(week, option, capsys):
    assert main(["check", str(week / "anna.py"), f"--{option}", "x"]) == 2
    assert f"--{option} needs an assignment" in capsys.readouterr().err


def test_a_figure_without_matplotlib_says_what_to_install(week, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "pe_numpy.book.plots.exercises", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = [str(week / "anna.py"), "--figure", str(week / "class.png")]
    assert main(["check", "--assignment", str(week / "week3.toml"), *path]) == 2
    assert "--figure needs matplotlib, `pip install matplotlib`" in capsys.readouterr().err
