"""The ledger of chapter 64 is what the golden tests say today."""

import csv
import io

import ledger

import pe_numpy


def test_the_committed_ledger_is_what_the_tests_make():
    """Same files, functions, code and counts; an error of another processor may be larger."""
    new = list(csv.DictReader(io.StringIO(ledger.made())))
    old = list(csv.DictReader(io.StringIO(ledger.TABLE.read_text(encoding="utf-8"))))
    for ours, theirs in zip(new, old, strict=True):
        error, before = float(ours.pop("error")), float(theirs.pop("error"))
        assert ours == theirs
        assert error <= max(10 * before, 1e-12), ours["file"]


def test_each_line_names_functions_or_a_page():
    for row in csv.DictReader(io.StringIO(ledger.TABLE.read_text(encoding="utf-8"))):
        names = row["functions"].split()
        page = row["file"].startswith("models/")
        assert names and (page or set(names) <= set(pe_numpy.__all__)), row["file"]
        assert int(row["numbers"]) > 0 < int(row["tests"])
