"""The index of the book tells the truth, and the whole of it."""

import re

import nbformat
import pytest
import toc
from reading import NOTEBOOKS, ROOT, prose_of, tables

from pe_numpy.contents import functions_of
from pe_numpy.judging.schemes import SCHEMES

INDEX = (ROOT / "notebooks" / "INDEX.md").read_text(encoding="utf-8")
DOCUMENTS, _, BEYOND = INDEX.partition("## Beyond the documents")
ROWS = {row[0]: row for _, rows in tables(DOCUMENTS) for row in rows}

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


DOCUMENT = {p.stem[-3:]: p for p in NOTEBOOKS if p.stem[0] == toc.DOCUMENTS}  # by its number


def prose(path):
    """The prose of a chapter."""
    return "\n\n".join(prose_of(nbformat.read(path, as_version=4).cells))


def chapters_of(row):
    """The stems of the chapters that a row links."""
    return re.findall(r"\[\d\d\]\((\w+)\.ipynb[^)]*\)", row[2])


def named_in(text):
    """All identifiers in some prose."""
    return set(IDENTIFIER.findall(text))


ASKED = {stem for name in SECTIONS for stem in chapters_of(ROWS[name])}  # for by a document


def test_each_section_example_and_erratum_has_one_row():
    assert set(ROWS) == EVERYTHING
    assert len(ROWS) == sum(len(rows) for _, rows in tables(DOCUMENTS))


def test_each_row_names_its_subject_and_at_least_one_chapter():
    existing = {p.stem for p in NOTEBOOKS}
    for name, row in ROWS.items():
        assert row[1] and chapters_of(row) and set(chapters_of(row)) <= existing, name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_names_exactly_what_the_index_says_and_a_chapter_nothing(path):
    claimed = {name for name, row in ROWS.items() if path.stem in chapters_of(row)}
    if path in DOCUMENT.values():
        assert named_in(prose(path)) == claimed
    else:
        assert not named_in(prose(path)) and claimed <= set(SECTIONS)


def test_each_section_of_a_document_has_its_heading_in_order_and_a_chapter_that_teaches_it():
    for number, path in DOCUMENT.items():
        headings = re.findall(r"^## (00\d-\S+) \S", prose(path), re.M)
        assert headings == [name for name in SECTIONS if name.startswith(number)], path
        for name in headings:
            own, *taught = chapters_of(ROWS[name])
            assert own == path.stem and taught, name


def test_what_lies_beyond_the_documents_is_shown_where_the_index_says():
    ((_, rows),) = tables(BEYOND)
    for scheme, functions, chapter in rows:
        stem = re.fullmatch(r"\[\d\d\]\((\w+)\.ipynb\)", chapter)[1]
        text = (ROOT / "notebooks" / f"{stem}.py").read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", functions):
            assert re.search(rf"\b{name}\(", text), (scheme, name)
    listed = set(re.findall(r"`(\w+)`", BEYOND))
    for stem in toc.chapters():
        if stem not in ASKED and stem[0] in "23":
            assert set(functions_of(int(stem[:2]))) <= listed, stem


def test_each_scheme_stands_in_a_chapter_that_the_documents_ask_for_or_beyond_them():
    ((_, rows),) = tables(BEYOND)
    for name, scheme in SCHEMES.items():
        if scheme.chapter not in ASKED:
            own = [row for row in rows if f"({scheme.chapter}.ipynb)" in row[2]]
            assert any(scheme.label.lower() in row[0].lower() for row in own), name
