"""Cells that run in the page: what they print is what the book has printed."""

import csv
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parent.parent.parent
SITE = ROOT / "docs" / "_build" / "html"
CHAPTERS = [
    next(p.stem for p in (ROOT / "notebooks").glob(f"{number}_*.ipynb"))
    for number in (10, 20, 31, 33, 35, 40, 41, 63)
]
# Cells that may differ, since the page says why: by their ids.
with (ROOT / "docs" / "live_cells.csv").open(encoding="utf-8") as file:
    DIFFERENT = {row["cell"] for row in csv.DictReader(file) if row["note"]}
MINUTES = 5 * 60 * 1000

pytestmark = pytest.mark.skipif(
    not (SITE / "_static" / "live" / "python.js").exists(), reason="built without Python"
)


def cells(stem):
    """The code cells of a chapter, as they are committed."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{stem}.ipynb", as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell):
    return "".join(o.text for o in cell.outputs if o.output_type == "stream")


def drawn(cell):
    return sum("image/png" in o.get("data", {}) for o in cell.outputs)


def run(page, n):
    """Run a cell with those above it, and wait until it has ended; return what it says then."""
    page.evaluate("document.querySelectorAll('main details').forEach(d => { d.open = true; })")
    page.locator(".live button:first-child").nth(n).click()
    ended = "n => peLive.cells[n].play.textContent === '▶ Run'"
    page.wait_for_function(ended, arg=n, timeout=MINUTES)
    return page.locator(".live-status").nth(n).inner_text()


@pytest.mark.parametrize("stem", CHAPTERS)
def test_cells_print_and_draw_live_what_the_book_has_printed(stem, reader):
    page = reader.open(f"chapters/{stem}.html")
    committed = cells(stem)
    assert page.locator(".live").count() == len(committed)
    assert page.evaluate("peLive.cells.map(c => c.code)") == [c.source for c in committed]
    run(page, len(committed) - 1)
    results = page.evaluate("peLive.cells.map(c => c.result)")
    for cell, result in zip(committed, results, strict=True):
        same = result == {"text": printed(cell), "figures": drawn(cell), "error": None}
        assert same == (cell.id not in DIFFERENT), (cell.id, cell.source, printed(cell), result)
    assert not reader.wrong
