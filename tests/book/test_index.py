"""The index of the book tells the truth, and the whole of it."""

import re

import nbformat
import pytest
from reading import NOTEBOOKS, ROOT, tables

INDEX = (ROOT / "notebooks" / "INDEX.md").read_text(encoding="utf-8")
ROWS = {row[0]: row for _, rows in tables(INDEX) for row in rows}

# How many of each the documents hold.
SERIES = {
    "N-000-": 13, "N-001-": 4, "N-002-": 14, "N-003-": 10, "N-004-": 9,
    "E-000-": 22, "E-001-": 15, "E-002-": 10, "E-003-": 26, "E-004-": 25,
    "X-": 8, "C-": 20,
}  # fmt: skip
SECTIONS = """
000-1.1 000-1.2 000-2.1 000-2.2 001-1 001-2.1 001-2.2 001-3 001-3.1 001-3.2 001-3.3 001-3.4 001-3.5
001-4 001-5 002-1.1 002-1.2 002-2.1 002-2.2 002-3.1 002-3.2 002-3.3 002-3.4 002-4.1 002-4.2 002-4.3
002-5.1 002-5.2 002-5.3 002-6 003-1 003-1.1(1) 003-1.1(2) 003-1.1(3) 003-1.1(4) 003-1.2 003-1.2(1)
003-1.2(2) 003-1.2(3) 003-1.2(4) 003-1.3(1) 003-1.3(2) 003-1.3(3) 003-1.3(4) 003-1.4(1) 003-1.4(2)
003-1.4(3) 003-2 003-3 003-4.1 003-4.2 003-4.3 003-4.4 004-1.1 004-1.2 004-1.3 004-1.4 004-1.5
004-1.6 004-1.7 004-1.8 004-1.9 004-2 004-2.1 004-2.2 004-2.3 004-2.4 004-2.5 004-2.6 004-2.7
004-2.8 004-2.9 004-2.10 004-2.11 004-2.12
""".split()
EVERYTHING = {f"{prefix}{i}" for prefix, n in SERIES.items() for i in range(1, n + 1)} | {*SECTIONS}

IDENTIFIER = re.compile(
    r"\b(?:[NE]-00[0-4]-\d+|[XC]-\d+)\b|(?<![-\w])00[0-4]-\d+(?:\.\d+)?(?:\(\d\))?"
)


def chapters_of(row):
    """The stems of the chapters that a row links, or the numbers of those to come."""
    return re.findall(r"\[\d\d\]\((\w+)\.ipynb\)", row[2]), re.findall(
        r"(\d\d) \(to come\)", row[2]
    )


def named_in(path):
    """All identifiers in a chapter's prose."""
    cells = nbformat.read(path, as_version=4).cells
    return {i for c in cells if c.cell_type == "markdown" for i in IDENTIFIER.findall(c.source)}


def test_each_section_example_and_erratum_has_one_row():
    assert set(ROWS) == EVERYTHING
    assert len(ROWS) == sum(len(rows) for _, rows in tables(INDEX))


def test_each_row_names_its_subject_and_at_least_one_chapter():
    existing = {p.stem for p in NOTEBOOKS}
    for name, row in ROWS.items():
        linked, to_come = chapters_of(row)
        assert row[1] and (linked or to_come), name
        assert set(linked) <= existing, name
        assert not {p.stem[:2] for p in NOTEBOOKS} & set(to_come), f"{name}: its chapter is there"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_chapter_names_exactly_what_the_index_says(path):
    claimed = {name for name, row in ROWS.items() if path.stem in chapters_of(row)[0]}
    assert named_in(path) == claimed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_chapter_lists_its_source_sections_at_its_head(path):
    opening = nbformat.read(path, as_version=4).cells[0].source
    line = re.search(r"\*\*Source sections\.\*\*(.*)", opening)
    claimed = {n for n in SECTIONS if path.stem in chapters_of(ROWS[n])[0]}
    assert line and set(IDENTIFIER.findall(line[1])) == claimed
