"""The README, and the table of FUNCTIONS.md, agree with the notebooks and with the package."""

import ast
import doctest
import inspect
import re
import subprocess
import sys

import nbformat
import pytest
import toc
from mutants import MUTANTS
from reading import ROOT, tables

import pe_numpy
from pe_numpy.book.census import census
from pe_numpy.contents import chapter_of
from pe_numpy.homework.registry import EXERCISES
from pe_numpy.judging.schemes import SCHEMES

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = ROOT / "notebooks" / "FUNCTIONS.md"
BY_HEADER = {tuple(header): rows for header, rows in tables(PAGE.read_text(encoding="utf-8"))}
FUNCTIONS = BY_HEADER["function", "what it computes", "source", "chapter", "test"]


def link(cell):
    """The file that a cell of FUNCTIONS.md links."""
    return PAGE.parent / re.search(r"\]\(([^)]+)\)", cell)[1]


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 130


def test_the_first_screen_leads_to_the_transformer_on_one_page():
    before, commands, _ = README.partition("\n## Two commands\n")
    assert commands and "](pe_numpy/transformer/original.py)" in before.partition("![")[0]
    assert before.count("![") == 1


def test_the_wrong_answer_of_the_readme_gets_the_report_that_it_shows(tmp_path):
    code, shown = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", README, re.S).groups()
    command, _, report = shown.partition("\n")
    (tmp_path / "answers.py").write_text(code)
    program, *words = command.removeprefix("$ ").split()
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert program == "python" and done.stdout == report and done.returncode == 1
    name = re.search(r"^  rope_frequencies: (.*)$", report, re.M)[1]
    assert name in [mistake.name for mistake in EXERCISES["rope_frequencies"].mistakes]


def test_most_families_of_the_census_rotate_as_the_readme_says():
    rows = [row.encoding for row in census() if row.kind == "family"]
    assert "RoPE, an encoding of most language models today" in README
    assert sum("rope" in encoding for encoding in rows) > len(rows) / 2


def test_the_readme_cites_the_book_as_its_citation_says():
    told = re.search(r"^To cite: ((?:.+\n)+?.*?)\(\[CITATION", README, re.M)[1]
    file = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    said = dict(re.findall(r'^[ -]*([\w-]+): "?(.+?)"?$', file, re.M))
    year = said["date-released"][:4]
    wanted = f"{said['name']}, *{said['title']}*, version {said['version']}, {year}"
    assert " ".join(told.split()) == wanted


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
    assert re.search(called, link(row[4]).read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row[0].strip("`"))
def test_row_leads_to_a_test_that_feeds_it_bad_input(row):
    name, tree = row[0].strip("`"), ast.parse(link(row[4]).read_text(encoding="utf-8"))
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
    cells = nbformat.read(link(row[3]), as_version=4).cells
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
    assert doctest.testfile(str(PAGE), module_relative=False) == (0, 7)


def test_the_schemes_are_those_of_the_register():
    """If not: `make contents` writes them."""
    assert PAGE.read_text(encoding="utf-8") == toc.functions()
    rows = BY_HEADER["scheme", "in texts", "place", "chapter", "function"]
    assert [re.match(r"\[`(\w+)`\]", row[0])[1] for row in rows] == list(SCHEMES)
    assert {row[4].strip("`") for row in rows} <= {*pe_numpy.__all__}


def test_the_page_says_of_speed_what_the_last_bench_says():
    results = PAGE.parent / "results"
    text = " ".join(PAGE.read_text(encoding="utf-8").partition("\n## Speed\n")[2].split())
    linked = {target.partition("#")[0] for target in re.findall(r"\]\(results/(.*?)\)", text)}
    assert linked == {path.name for path in results.glob("bench*.md")}
    report = (results / "bench.md").read_text(encoding="utf-8")
    header, rows = tables(report.partition("## Time, beside the goal")[2])[0]
    ratios = [float(row[header.index("ratio")]) for row in rows]
    faster = sum(ratio < 1 for ratio in ratios)
    assert f"In {faster} of the {len(ratios)} rows of the first table ours takes less time." in text
