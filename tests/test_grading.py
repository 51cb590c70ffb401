"""A class on the command line: an assignment, files of students, and what is written of them."""

import csv
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pe_numpy.__main__ import main
from pe_numpy.homework import runner
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


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_class_gets_a_table_and_files(week, capsys):
    places = ["--csv", str(week / "class.csv"), "--letters", str(week / "letters")]
    check(week, *places, "--summary")
    text = capsys.readouterr().out
    assert "anna                    2      2\nben                     0      0" in text
    assert "rope_frequencies: 1 of 3 right\n     1  exponent i/d for 2i/d\n     1  not run" in text
    free = [f"no limit here: {name}" for name in runner.limits_not_in_force()]
    assert [line for line in text.splitlines() if line.startswith("no limit")] == free
    rows = rows_of(week / "class.csv")
    assert [row["total"] for row in rows] == ["2", "0", "0"]
    assert [int(r["seed"]) for r in rows] == [seed_of("autumn", r["student"]) for r in rows]
    letter = (week / "letters" / "ben.txt").read_text()
    assert "exponent i/d for 2i/d (0 of 2)" in letter and "expected" not in letter
    assert not (week / "class.csv.part").exists()


def test_folders_are_made_before_anything_is_graded(week, monkeypatch, capsys):
    places = [str(week / "new" / name) for name in ("class.csv", "letters")]
    check(week, "--csv", places[0], "--letters", places[1])
    assert len(rows_of(places[0])) == len([*Path(places[1]).iterdir()]) == 3
    check(week, "--gradescope", str(week / "other" / "results.json"), files=["ben"])
    assert (week / "other" / "results.json").exists()
    monkeypatch.setattr(runner, "check_files", None)  # nothing is checked
    (week / "file").touch()
    for option, place in (("csv", "file/class.csv"), ("letters", "file"), ("csv", "new")):
        check(week, f"--{option}", str(week / place), status=2)
    assert "a file is to be written; " in capsys.readouterr().err


def test_names_that_collide_have_a_letter_each(week):
    for name in ("anna b", "anna_b"):
        (week / f"{name}.py").write_text(OWN.format("2 * "))
    places = ["--csv", str(week / "class.csv"), "--letters", str(week / "letters")]
    check(week, *places, status=0, files=["anna b", "anna_b"])
    letters = sorted((week / "letters").iterdir())
    assert [path.name for path in letters] == ["anna_b-2.txt", "anna_b.txt"]
    assert {path.read_text().splitlines()[0].split(",")[0] for path in letters} == {
        *("Week 3: anna b", "Week 3: anna_b")
    }


def test_a_folder_of_students_folders_has_a_row_for_each(week, tmp_path):
    (folder := tmp_path / "class").mkdir()
    for place in ("anna/week3.py", "anna/notes.py", "ben/mine.py", "cleo/x.py", "cleo/y.py"):
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).write_text(OWN.format("2 * "))
    for empty in ("dan", ".git"):
        (folder / empty).mkdir()
    (folder / "eve.py").write_text(OWN.format(""))
    words = [str(folder), "--csv", str(week / "class.csv")]
    assert main(["check", "--assignment", str(week / "week3.toml"), *words]) == 1
    rows = {row["student"]: row for row in rows_of(week / "class.csv")}
    assert [(name, row["total"]) for name, row in rows.items()] == [
        *(("eve", "0"), ("anna", "2"), ("ben", "2"), ("cleo", "0"), ("dan", "0"))
    ]
    assert "it is a folder" in rows["cleo"]["notes"] and "it is a folder" in rows["dan"]["notes"]
    one = [str(folder / "anna"), "--csv", str(week / "one.csv")]  # a student's own folder
    assert main(["check", "--assignment", str(week / "week3.toml"), *one]) == 0
    assert [row["student"] for row in rows_of(week / "one.csv")] == ["anna"]


def test_a_roster_tells_who_is_missing_and_a_deadline_who_is_late(week, capsys):
    (week / "week3.toml").write_text("deadline = 2026-11-27T18:00:00Z\n" + WEEK)
    (week / "roster.csv").write_text("id,name\nben,Ben B\nzoe,Zoe Z\nanna,Anna A\n")
    due = datetime(2026, 11, 27, 18, tzinfo=UTC).timestamp()
    for name, seconds in (("anna", -1), ("ben", 3600), ("cleo", 0)):
        os.utime(week / f"{name}.py", (due + seconds, due + seconds))
    check(week, "--csv", str(week / "c.csv"), "--roster", str(week / "roster.csv"))
    rows = [(row["student"], row["notes"].split("; ")[-1]) for row in rows_of(week / "c.csv")]
    assert rows == [
        *(("ben", "late by 1:00:00"), ("zoe", "handed in nothing"), ("anna", "")),
        ("cleo", "not on the roster"),
    ]
    check(week, files=["ben"])
    assert "late by 1:00:00, by the file's clock" in capsys.readouterr().out


KILLED = """
import os, signal, sys
from pe_numpy.__main__ import main
from pe_numpy.homework import runner

def check_files(paths, *arguments, **options):
    for path in paths:
        if path.endswith("ben.py"):
            os.kill(os.getpid(), signal.SIGKILL)
        inner([path], *arguments, **options)

inner, runner.check_files = runner.check_files, check_files
sys.exit(main())
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals of POSIX")
def test_a_run_that_was_cut_goes_on(week):
    """A file that ends the checker each time, by whatever means, costs no other its result."""
    words = ["check", "--assignment", str(week / "week3.toml"), "--csv", str(week / "class.csv")]
    words += [str(week / f"{name}.py") for name in ("anna", "ben", "cleo")]
    ends = []
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", KILLED, *words], capture_output=True)
        ends.append(done.returncode)
        if (week / "class.csv").exists():
            break
        assert '"rope_frequencies"' in (week / "class.csv.part").read_text()  # anna's, at once
    assert ends == [-9, -9, 1]
    rows = {row["student"]: row for row in rows_of(week / "class.csv")}
    assert [row["total"] for row in rows.values()] == ["2", "0", "0"]
    assert "checking it ended the checker itself" in rows["ben"]["notes"]
    assert "syntax error" in rows["cleo"]["notes"]


def test_what_is_there_is_not_checked_again_unless_it_was_changed(week, monkeypatch):
    def stop(paths, *arguments, found, **options):
        if len(paths) > 1:
            check_files(paths[:2], *arguments, found=found, **options)
        raise KeyboardInterrupt

    def count(paths, *arguments, **options):
        asked.extend(Path(path).stem for path in paths)
        return check_files(paths, *arguments, **options)

    check_files, asked = runner.check_files, []
    place = ["--csv", str(week / "class.csv")]
    monkeypatch.setattr(runner, "check_files", stop)
    with pytest.raises(KeyboardInterrupt):
        check(week, *place)
    part = week / "class.csv.part"
    part.write_text(part.read_text() + '\n["half a li')
    (week / "ben.py").write_text(OWN.format("2 * "))
    with pytest.raises(KeyboardInterrupt):  # again: an interrupt is nobody's fault
        check(week, *place)
    monkeypatch.setattr(runner, "check_files", count)
    check(week, *place)
    assert asked == ["ben", "cleo"]
    assert [row["total"] for row in rows_of(week / "class.csv")] == ["2", "2", "0"]


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
    ],
)
def test_a_wrong_call_is_told(week, monkeypatch, capsys, words, message):
    monkeypatch.chdir(week)
    assert main(["check", "--assignment", "week3.toml", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", ["student", "csv", "letters", "gradescope", "roster"])
def test_what_a_course_needs_needs_an_assignment(week, option, capsys):
    assert main(["check", str(week / "anna.py"), f"--{option}", "x"]) == 2
    assert f"--{option} needs an assignment" in capsys.readouterr().err
