"""A class of sixty files, checked at once: points, mistakes' names and flags of each."""

import json
from collections import Counter, defaultdict
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from trial import ASSIGNMENT, CLASS, EXERCISES, SECONDS, read, rows_of, summary_of, write

from pe_numpy.__main__ import main
from pe_numpy.homework import course

RECORD = {row["student"]: row for row in read()}


class Checked(NamedTuple):
    folder: Path
    rows: dict[str, dict[str, str]]
    summary: str


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """The class, as `check` finds it on a command line."""
    folder = tmp_path_factory.mktemp("class")
    paths = write(folder)
    words = ["--seconds", str(SECONDS), "--json", "--summary"]
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert main(["check", "--assignment", str(ASSIGNMENT), *paths, *words]) == 1
    rows = {row["student"]: row for row in rows_of(json.loads(out.getvalue())["grades"])}
    return Checked(folder, rows, err.getvalue())


def test_the_class_is_one():
    kinds = Counter(kind for kind, _, _ in CLASS.values())
    assert kinds == {"right": 11, "wrong": 15, "broken": 11, "hostile": 18, "copied": 5}


@pytest.mark.parametrize("name", CLASS)
def test_each_file_gets_what_was_looked_through(checked, name):
    assert checked.rows[name] == RECORD[name], "python tests/trial writes them anew"


def test_right_files_have_all_points_and_no_flag_and_wrong_ones_have_not():
    full = f"{course.read_assignment(ASSIGNMENT).total:g}"
    by_kind = defaultdict(list)
    for row in RECORD.values():
        by_kind[row["kind"]].append(row)
    assert {(r["points"], r["flags"], r["problem"]) for r in by_kind["right"]} == {(full, "", "")}
    assert full not in {r["points"] for r in [*by_kind["wrong"], *by_kind["broken"]]}
    assert all(r["flags"] for r in by_kind["copied"])
    assert not any(r["flags"] for r in RECORD.values() if r["kind"] != "copied")
    wrong = [r[name] for r in by_kind["wrong"] for name in EXERCISES if r[name] != "right"]
    assert "not run" not in wrong and sum(w == "another mistake" for w in wrong) <= 3


def test_a_hostile_file_harms_no_other(checked):
    """All files are still there, nothing was written beside them, and no process runs on."""
    left = {path.stem for path in checked.folder.iterdir()}
    assert left == {*CLASS, "helper", "json", "random"}
    for name, (_, _, text) in CLASS.items():
        if not callable(text):
            (path,) = checked.folder.glob(f"{name}.*")
            assert path.read_bytes() == (text if isinstance(text, bytes) else text.encode())
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = place.read_bytes()
            assert b"time.sleep(99)" not in words and b"scratch" not in words


def test_the_summary_is_that_of_the_record(checked):
    found = summary_of(read())
    assert f"\n{course.summary_text(found)}\n" in checked.summary
    assert found["rope"]["right"] == 30 and found["rope"]["turned the other way"] == 7


def test_the_summary_tells_who_is_alike(checked):
    told = [row for row in checked.summary.splitlines() if row.startswith("alike in ")]
    assert {"alike in sinusoidal, rope: ada, the book", "alike in rope: hal, hana"} <= {*told}
    assert not any("gil, " in row for row in told if " rope" in row)  # who wrote alone
