"""Cells that run in the page: what they print is what the book has printed."""

import ast
import csv
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from conftest import axe, in_mode, resize, unfold
from playwright.sync_api import expect

ROOT = Path(__file__).parent.parent.parent
SITE = ROOT / "docs" / "_build" / "html"
CHAPTERS = [
    next(p.stem for p in (ROOT / "notebooks").glob(f"{number}_*.ipynb"))
    for number in (10, 20, 33, 40)  # quick ones; live_times.py runs all
]
with (ROOT / "docs" / "live_cells.csv").open(encoding="utf-8") as file:
    SAID = list(csv.DictReader(file))
# Cells that may differ, since the page says why: by their ids.
DIFFERENT = {row["cell"] for row in SAID if row["note"]}
MINUTES = 10 * 60 * 1000

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
    unfold(page)
    page.locator(".live > button:first-child").nth(n).click()
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
        told = {key: result[key] for key in ("text", "figures", "error")}
        same = told == {"text": printed(cell), "figures": drawn(cell), "error": None}
        assert same == (cell.id not in DIFFERENT), (cell.id, cell.source, printed(cell), result)
    asserts = [
        sum(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(cell.source)))
        for cell in committed
    ]
    for n, cell in enumerate(committed):
        said = page.locator(".live-status").nth(n).text_content()
        holds = re.match(r"✓ (\d+) assertions? holds?", said)
        if cell.id not in DIFFERENT:
            assert bool(holds) == bool(asserts[n]), (cell.source, said)
    assert sum(asserts) > 20
    able = sum(n for n, cell in zip(asserts, committed, strict=True) if cell.id not in DIFFERENT)
    end = f"{able} of the {able} assertions that can run here held."
    assert page.locator(".live-end").inner_text() == end
    assert not reader.wrong


def test_python_is_fetched_at_the_first_click_and_works_without_a_server(chromium, reader):
    asked = []
    visitor = type(reader)(chromium, SITE.as_uri() + "/")
    visitor.page.on("request", lambda request: asked.append(request.url))
    page = visitor.open("chapters/33_t5.html")
    assert page.locator(".live").count() == len(cells("33_t5"))
    assert not [url for url in asked if "/live/" in url]
    assert page.evaluate("peLive.call('pe_numpy.t5_bucket(np.arange(-2, 3))')") == [18, 17, 0, 1, 2]
    fetched = {Path(url).name for url in asked if "/live/" in url}
    assert fetched == {"python.js", "numpy.js", "book.js"}
    run(page, 1)
    assert page.evaluate("peLive.cells[1].result.text") == printed(cells("33_t5")[1])
    assert page.evaluate("peLive.cells[0].result.figures") == 1
    assert visitor.wrong == []
    visitor.context.close()


def test_python_is_started_ahead_near_a_cell_on_a_line_that_costs_nothing(
    chromium, address, reader
):
    for line, ahead in (("{ effectiveType: '4g' }", True), ("{ saveData: true }", False)):
        visitor = type(reader)(chromium, address)
        visitor.page.add_init_script(
            f"Object.defineProperty(navigator, 'connection', {{ value: {line} }})"
        )
        page = visitor.open("chapters/33_t5.html")
        page.locator(".cell_input").nth(1).hover()
        if ahead:
            page.wait_for_function("peLive.started()", timeout=MINUTES)
        page.wait_for_timeout(300)
        assert page.evaluate("peLive.started()") == ahead
        assert visitor.wrong == []
        visitor.context.close()


def test_a_spare_python_takes_over_when_a_long_run_is_stopped(reader):
    page = reader.open("chapters/33_t5.html")
    page.evaluate("peLive.run('1').then(() => { peLive.run('while True: pass').catch(() => {}); })")
    for _ in range(600):
        if len(page.workers) < 2:
            page.wait_for_timeout(100)
    assert len(page.workers) == 2
    page.evaluate("peLive.stop()")
    said = page.evaluate(
        """async () => {
            const said = [];
            addEventListener("pelive", ({ detail }) => said.push(detail));
            return [(await peLive.run("6 * 7")).text, said];
        }"""
    )
    assert said == ["42\n", [""]], "it was not started anew"
    assert reader.wrong == []


def test_a_cell_is_edited_stopped_and_reset_by_the_keyboard(reader):
    page = reader.open("chapters/33_t5.html")
    cell = page.locator("div.cell:has(.live)").nth(1)

    def looks():
        """All that is seen of the cell but its status."""
        seen = cell.inner_text().replace(cell.locator(".live-status").inner_text() or "\0", "")
        return seen.strip(), cell.locator("pre").all_inner_texts()

    before = looks()
    assert re.search(r"fetches \d+ MB", cell.locator(".live-status").inner_text())
    status, code = cell.locator(".live-status"), cell.locator("textarea")

    def press(name):
        cell.get_by_role("button", name=name).focus()
        page.keyboard.press("Enter")

    def edit_and_run(text):
        code.fill(text)
        code.press("Control+Enter")

    def ended(words):
        expect(cell.get_by_role("button", name="Run cell 2")).to_be_visible(timeout=MINUTES)
        assert words in status.inner_text()

    press("Edit cell 2")
    assert page.evaluate("document.activeElement.value") == cells("33_t5")[1].source
    edit_and_run("x = [7.5]\nassert x == 1, 'not so'")
    ended("✗ line 2: left [7.5], right 1")
    assert cell.locator(".live-error").inner_text().startswith("An assertion failed.")
    assert "line 2" in cell.locator(".live-error").inner_text()
    marked = code.evaluate(
        "e => [e.matches('.live-wrong'), getComputedStyle(e).backgroundPositionY]"
    )
    assert marked[0] and marked[1] != "0px", "the second line is marked"
    resize(page, 390, 800)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for scheme in ("light", "dark"):
        in_mode(page, scheme)
        assert axe(page, ".bd-article") == []
    edit_and_run("for n in range(3):\n    print(n, span.shape)\nn / 4")
    ended(" s")
    shown = cell.locator(".cell_output")
    assert shown.inner_text().strip().split("\n") == ["0 (281,)", "1 (281,)", "2 (281,)", "0.5"]
    edit_and_run("while True: pass")
    expect(status).to_have_text("running …")
    press("Stop")
    ended("stopped: all names are gone")
    for _ in range(100):  # a busy worker ends within seconds
        if len(page.workers) > 1:
            page.wait_for_timeout(100)
    assert len(page.workers) < 2, "one may wait for the next run"
    press("Reset cell 2")
    resize(page, 1280)
    page.locator("div.cell details").evaluate_all("all => all.forEach(d => { d.open = false; })")
    assert looks() == before
    assert page.evaluate("peLive.run('6 * 7')") == {"text": "42\n", "figures": [], "error": None}
    assert reader.wrong == []


def test_a_cell_below_runs_again_when_one_above_was_edited(reader):
    page = reader.open("chapters/33_t5.html")
    codes = ["n = 1\nprint('first')", "n += 1\nprint(n)", "print('last', n)"]
    page.evaluate("peLive.cells.slice(0, 3).forEach(cell => cell.open())")
    for n, code in enumerate(codes):
        page.evaluate("([n, code]) => { peLive.cells[n].area.value = code; }", [n, code])

    def texts():
        return page.evaluate("peLive.cells.slice(0, 3).map(c => c.result.text.trim())")

    run(page, 2)
    assert texts() == ["first", "2", "last 2"]
    run(page, 1)
    assert texts()[1] == "2", "it sees the names before it"
    assert page.locator(".live-old").count() == 0, "nothing above the third cell was changed"
    page.evaluate("peLive.cells[0].area.value = 'n = 10'")
    run(page, 1)
    assert page.locator("div.cell:has(.live)").nth(2).evaluate("e => e.matches('.live-old')")
    assert "ran before a cell above" in page.locator(".live-status").nth(2).inner_text()
    run(page, 2)
    assert page.locator(".live-old").count() == 0
    assert texts() == ["", "11", "last 11"]
    page.evaluate("peLive.cells[0].area.value = 'assert n < 10'")
    assert run(page, 2) == "cell 1, above, stopped with an error"
    assert "assert n < 10" in page.locator("div.cell:has(.live) .live-error").inner_text()
    assert texts()[2] == "last 11", "it did not run"
    page.evaluate("peLive.cells[0].area.value = 'n = 20'")
    run(page, 2)
    assert texts() == ["", "21", "last 21"]
    assert page.locator(".live-error").count() == 0
    assert reader.wrong == []


COMPILED = """
import importlib.util, sys, numpy, pe_numpy
sources = []
for module in sys.modules.values():
    origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
    if not origin.endswith(".py"):
        continue  # built in, or compiled without its source
    try:
        with open(importlib.util.cache_from_source(origin), "rb") as file:
            if file.read(8)[4] == 1:  # whoever compiled it said: never compare it with its source
                continue
    except OSError:
        pass
    sources.append(origin)
print(len(sys.modules) > 300, sources)
"""


@pytest.mark.skipif(not shutil.which("node"), reason="Node.js compiles it")
def test_no_module_is_compiled_in_the_page(reader):
    page = reader.open("chapters/10_attention.html")
    assert page.evaluate("code => peLive.run(code)", COMPILED)["text"] == "True []\n"


def test_what_replaced_the_book_goes_at_reset_and_the_next_run_is_the_book(reader):
    page = reader.open("chapters/33_t5.html")
    committed = cells("33_t5")
    outputs = page.locator("div.cell:has(.live) .cell_output")
    image = outputs.nth(0).locator("img").first

    def shown(n):
        figure = "(e.querySelector('img')?.src ?? e.querySelector('.whole')?.ariaLabel)"
        return outputs.nth(n).evaluate(f"e => [e.innerText, {figure}]")

    unfold(page)
    before = [shown(n) for n in range(3)]
    alt = outputs.nth(0).locator(".whole").first.get_attribute("aria-label")
    assert drawn(committed[0]) == 1 and alt
    run(page, 1)
    assert shown(0) == before[0], "above, and as in the book: nothing moves"
    run(page, 0)
    assert image.get_attribute("src").startswith("data:image/png")
    assert image.get_attribute("alt") == alt and image.evaluate("i => i.naturalWidth") > 200
    page.evaluate("peLive.cells[1].open()")
    page.evaluate("peLive.cells[1].area.value = 'span = 1\\nprint(span)'")
    run(page, 1)
    assert outputs.nth(1).inner_text().strip() == "1"
    for n in (1, 0):
        page.get_by_role("button", name=f"Reset cell {n + 1}", exact=True).click()
        assert shown(n) == before[n]
    assert page.locator("textarea.live-code").count() == 0
    run(page, 2)
    results = page.evaluate("peLive.cells.slice(0, 3).map(c => c.result.text)")
    assert results == [printed(cell) for cell in committed[:3]]
    assert [shown(n) for n in (0, 1)] == before[:2]
    assert page.evaluate("peLive.cells.map(c => c.code)") == [c.source for c in committed]
    assert reader.wrong == []


@pytest.mark.parametrize("stem", ["10_attention", "21_learned", "35_alibi"])
def test_what_takes_long_or_differs_is_said_beforehand(stem, reader):
    page = reader.open(f"chapters/{stem}.html")
    ids = [cell.id for cell in cells(stem)]
    said = page.locator(".live-status").all_text_contents()
    rows = [row for row in SAID if row["chapter"] == stem]
    assert rows
    above = 0.0
    for n, cell in enumerate(ids):
        row = next((row for row in rows if row["cell"] == cell), {"seconds": "", "note": ""})
        seconds = float(row["seconds"] or 0)
        assert row["note"] in said[n]
        assert bool(re.search(r"takes about \d+ (s|min)(?! for)", said[n])) == (seconds >= 3)
        assert ("for the cells above" in said[n]) == (above >= 3)
        above += seconds
    assert reader.wrong == []
