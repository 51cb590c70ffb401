"""Every chapter keeps the promises of the book."""

import itertools
import re

import nbformat
import pytest
import toc
from reading import (
    NOTEBOOKS,
    exercises,
    outputs_of,
    prose_of,
    solutions,
    without_code,
    words_of,
)
from scripts import script

import pe_numpy

chain = script("notebooks/build.py")
notebooks = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
CHAPTERS = [path for path in NOTEBOOKS if path.stem[0] != toc.DOCUMENTS]
chapters = pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)


def cells_of(path):
    return nbformat.read(path, as_version=4).cells


def test_each_source_has_its_notebook_and_each_notebook_its_source():
    assert [p.stem for p in chain.sources()] == [p.stem for p in NOTEBOOKS]


@notebooks
def test_notebook_and_reviewed_source_do_not_drift(path):
    """Same cells, same texts, same metadata; what the outputs must be is for nbval to say."""
    expected = chain.read_source(path.with_suffix(".py"))
    stored = nbformat.read(path, as_version=4)
    assert stored.metadata == expected.metadata
    for got, want in zip(stored.cells, expected.cells, strict=True):
        kept = ("id", "cell_type", "source", "metadata")
        assert {k: got[k] for k in kept} == {k: want[k] for k in kept}
    assert path.read_text(encoding="utf-8") == chain.as_text(stored)
    assert path.stat().st_size < 1_000_000


@notebooks
def test_the_first_cell_is_that_of_the_table_of_contents(path):
    head = cells_of(path)[0].source
    assert head == toc.head(path.stem)
    assert re.match(rf"# {int(path.stem[:2])}\. [A-Z0-9]", head)


@chapters
def test_the_first_screen_says_what_is_in_the_chapter_and_has_a_picture(path):
    _, opening, picture, *_ = cells_of(path)
    assert opening.source.startswith("**In this chapter.** ") and "$" not in opening.source
    assert 60 <= len(opening.source.split()) - 3 <= 95
    assert any("image/png" in o.get("data", {}) for o in picture.outputs)
    assert picture.metadata["tags"] == ["hide-input"]


@chapters
def test_short_answers_lead_to_their_sections(path):
    (short,) = (c for c in cells_of(path) if re.match("## In short\n", c.source))
    _, *answers = re.split(r"^- (?=\*\*)", short.source, flags=re.M)
    assert 3 <= len(answers) <= 6
    for answer in answers:
        _, said = re.match(r"(\*\*[^*]+\?\*\*) (\S.*)", answer, re.S).groups()
        links = re.findall(r"\[[^\]]*\]\(#[^)]+\)", said)
        assert links and ";" not in re.sub(r"\$[^$]*\$|`[^`]*`", "", said), answer
        assert len(re.sub(r"\[[^\]]*\]\(#[^)]+\)", "", said).split()) <= 38, answer


def before_exercises(path):
    return list(itertools.takewhile(lambda c: "## Exercises" not in c.source, cells_of(path)))


@chapters
def test_the_way_is_short(path):
    cells = before_exercises(path)
    assert len(cells) <= 60
    assert sum(len(prose.split()) for prose in prose_of(cells)) <= 3500


@notebooks
def test_the_minutes_are_those_of_150_words_each(path):
    minutes = toc.chapters()[path.stem]["minutes"]
    assert minutes % 5 == 0 and abs(minutes - words_of(cells_of(path)) / 150) <= 4


def test_the_book_is_short():
    """A chapter has 6,100 words on average, with code; one of the first edition had some 8,500."""
    words = sum(words_of(cells_of(path)) for path in CHAPTERS)
    assert words <= 6_100 * len(CHAPTERS)


@chapters
def test_sections_come_in_their_order(path):
    order = ["In short", "Exercises", "Deeper", "In practice", "Further reading"]
    headings = re.findall(r"^## (.*)", "\n".join(prose_of(cells_of(path))), re.M)
    places = [order.index(h) for h in headings if h in order]
    assert places == sorted(places) and {0, 1} <= set(places)


@chapters
def test_what_the_reader_shall_predict_is_folded(path):
    cells = before_exercises(path)
    for n, cell in enumerate(cells):
        if cell.cell_type == "markdown" and re.search(r"\bPredict\b", cell.source):
            after = next(c for c in cells[n:] if c.cell_type == "code")
            assert after.metadata.get("tags") == ["hide-output"], cell.source


@notebooks
def test_listings_are_short_or_folded_and_check_no_input(path):
    for cell in cells_of(path):
        if re.search(r"show_(source|short)\(", cell.source):
            listing = "".join(outputs_of(cell))
            folded = cell.metadata.get("tags") in (["hide-output"], ["hide-cell"])
            assert folded or len(listing.splitlines()) <= 32, cell.source


@notebooks
def test_each_displayed_formula_is_asserted_by_the_next_cell(path):
    cells = cells_of(path)
    for cell, after in zip(cells, [*cells[1:], None], strict=True):
        if cell.cell_type == "markdown" and "$$" in cell.source:
            assert after is not None and after.cell_type == "code", cell.source
            assert re.search(r"^\s*assert\b", after.source, re.M), cell.source


@notebooks
def test_a_code_cell_holds_one_idea(path):
    for cell in cells_of(path):
        if cell.cell_type == "code":
            assert len(cell.source.splitlines()) <= 15, cell.source


NUMBER = re.compile(r"(?<![\w.^{-])(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\d{4,})(?![\w}]|\.\d)")
NOT_MEASURED = re.compile(
    r"\[[^\]]*\]\([^)]*\)"  # links
    r"|\d{4}\.\d{4,5}"  # arXiv numbers
    r"|\b(?:19|20)\d\d\b"  # years
    r"|(?:(?i:sections?|equations?|tables?|figures?|python|numpy|version)|§)"
    r" ?\(?\d+(?:\.\d+)*\)?(?:(?:,| and| to) \(?\d+(?:\.\d+)*\)?)*"
    r"|\b00[0-4]-[\d.()]+"  # sections of the documents
    r"|#\d+|\d+ (?:issue|PR)"
)


@notebooks
def test_each_number_in_prose_is_printed_or_computed_by_a_cell(path):
    cells = cells_of(path)
    shown = " ".join(
        t for c in cells for t in (c.source if c.cell_type == "code" else "", *outputs_of(c))
    )
    shown = shown.replace(",", "").replace("_", "")
    missing = []
    for prose in prose_of(cells):
        text = NOT_MEASURED.sub(" ", without_code(prose))
        missing += [n for n in NUMBER.findall(text) if n.replace(",", "") not in shown]
    assert not missing


@notebooks
def test_each_figure_has_alternative_text(path):
    for cell in cells_of(path):
        pictures = [o for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        assert bool(pictures) == bool(alt), cell.source
        assert not alt or 40 <= len(alt) <= 300, alt


@notebooks
def test_chapter_uses_the_package_and_never_redefines_it(path):
    code = "\n".join(c.source for c in cells_of(path) if c.cell_type == "code")
    assert "from pe_numpy import" in code
    assert not set(re.findall(r"^\s*def (\w+)", code, re.M)) & set(pe_numpy.__all__)


@chapters
def test_exercises_have_graded_hints_and_a_solution(path):
    exercises = "\n".join(prose_of(cells_of(path))).partition("## Exercises")[2]
    exercises = exercises.partition("\n## ")[0]
    assert 3 <= exercises.count("<summary>Solution</summary>") <= 6
    for hint in ("<summary>Hint 1</summary>", "<summary>Hint 2</summary>"):
        assert exercises.count(hint) == exercises.count("<summary>Solution</summary>")
    assert exercises.count("<details>") == exercises.count("</details>")


@notebooks
def test_nothing_of_the_machine_is_stored(path):
    for file in (path, path.with_suffix(".py")):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"/(?:home|root|tmp|work|Users)/|<\w+ object at 0x", text)


def test_headings_are_in_order():
    for path in NOTEBOOKS:
        text = "\n".join(re.sub(r"```.*?```", "", p, flags=re.S) for p in prose_of(cells_of(path)))
        levels = [len(m) for m in re.findall(r"^(#+) ", text, re.M)]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(b - a <= 1 for a, b in itertools.pairwise(levels)), path


@chapters
def test_each_exercise_has_a_solution_that_asserts_something(path):
    """That it runs is for nbval to say."""
    assert len(solutions(path)) >= exercises(path).count("<summary>Solution</summary>")
    assert all(re.search(r"^\s*assert\b", solution, re.M) for solution in solutions(path))
