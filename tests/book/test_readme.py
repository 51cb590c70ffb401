"""The README's tables agree with the notebooks and with the package."""

import ast
import doctest
import inspect
import re

import nbformat
import pytest
from mutants import MUTANTS
from reading import ROOT, tables

import pe_numpy
from pe_numpy.contents import chapter_of

README = (ROOT / "README.md").read_text(encoding="utf-8")
BY_HEADER = {tuple(header): rows for header, rows in tables(README)}


def rows_of(*header):
    return BY_HEADER[header]


FUNCTIONS = rows_of("function", "what it computes", "source", "chapter", "test")


def link(cell):
    return re.search(r"\]\(([^)]+)\)", cell)[1]


def test_function_table_lists_each_public_function_once():
    names = [re.match(r"`(\w+)`", row[0])[1] for row in FUNCTIONS]
    assert sorted(names) == sorted(pe_numpy.__all__)


def test_each_function_has_the_chapter_of_the_register():
    chapters = {row[0].strip("`"): row[3][1:3] for row in FUNCTIONS}
    assert chapters == {name: str(chapter_of(name)) for name in chapters}


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row[0].strip("`"))
def test_row_leads_to_a_test_that_calls_the_function(row):
    assert row[1] and row[2]
    called = rf"\b{row[0].strip('`')}\("
    assert re.search(called, (ROOT / link(row[4])).read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row[0].strip("`"))
def test_row_leads_to_a_test_that_feeds_it_bad_input(row):
    name, tree = row[0].strip("`"), ast.parse((ROOT / link(row[4])).read_text(encoding="utf-8"))
    tests = [ast.unparse(node) for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert any("pytest.raises" in t and re.search(rf"\b{name}\b", t) for t in tests)


@pytest.mark.parametrize("name", pe_numpy.__all__)
def test_mistakes_are_seeded_into_the_module_of_each_function(name):
    module = getattr(pe_numpy, name).__module__.removeprefix("pe_numpy.").replace(".", "/")
    assert any(mutant.module == module for mutant in MUTANTS)


def test_each_mistake_changes_a_text_that_its_module_has_once():
    assert [m for m in MUTANTS if m.source.read_text().count(m.right) != 1] == []


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row[0].strip("`"))
def test_row_leads_to_a_chapter_that_shows_and_calls_the_function(row):
    name = row[0].strip("`")
    cells = nbformat.read(ROOT / link(row[3]), as_version=4).cells
    code = "\n".join(c.source for c in cells if c.cell_type == "code")
    assert re.search(rf"\b{name}\(", code), f"{name} is not called in {link(row[3])}"
    assert re.search(rf"show_(source|short)\([^)]*\b{name}\b", code), (
        f"{link(row[3])} does not show {name}"
    )


@pytest.mark.parametrize("name", pe_numpy.__all__)
def test_docstring_gives_shapes_source_and_an_example(name):
    function = getattr(pe_numpy, name)
    text = inspect.getdoc(function)
    parts = ["Parameters", "Returns", "Source:", ">>> "]
    for part in parts if inspect.isfunction(function) else [p for p in parts if p != "Returns"]:
        assert part in text, f"{name}: {part}"
    for parameter in inspect.signature(function).parameters:
        assert re.search(rf"^(\w+, )*{parameter}(, \w+)* : ", text, re.M), f"{name}: {parameter}"


def test_docstrings_tell_only_the_errors_that_surprise():
    """A wrong shape, type or choice is refused everywhere, and the message says it."""
    told = []
    for name in pe_numpy.__all__:
        raises = inspect.getdoc(getattr(pe_numpy, name)).partition("\nRaises\n------\n")[2]
        lines = raises.partition("\n\n")[0].splitlines()
        assert not lines or re.match(r"[A-Z]\w+(Error|, )", lines[0]), name
        told += [line for line in lines if line.startswith("    ")]
    assert len(told) < len(pe_numpy.__all__)  # less than a line each


def test_the_example_runs_as_printed():
    assert doctest.testfile(str(ROOT / "README.md"), module_relative=False).failed == 0


@pytest.mark.parametrize("header", [h for h in BY_HEADER if any("theirs" in cell for cell in h)])
def test_tables_of_speed_are_those_of_the_last_bench(header):
    measured = []
    for report in sorted((ROOT / "notebooks" / "results").glob("bench*.md")):
        text = report.read_text(encoding="utf-8")
        assert re.search(r"Processor: (.*)\. Threads", text)[1] in README
        measured += [row[: len(header)] for _, rows in tables(text) for row in rows]
    assert rows_of(*header) and all(row in measured for row in rows_of(*header))


def test_the_table_of_speed_leaves_no_row_out():
    report = (ROOT / "notebooks" / "results" / "bench.md").read_text(encoding="utf-8")
    first = tables(report.partition("## Time, beside the goal")[2])[0]
    columns = ("function", "beside", "L", "ours, ms", "theirs, ms", "ratio")
    assert rows_of(*columns) == [row[: len(columns)] for row in first[1]]
