"""Homework in the page: an editor, the checker, ticks, the line for the teacher, a phone."""

import json
import re

import pytest
from conftest import SITE, axe_in_both_modes
from playwright.sync_api import expect

from pe_numpy.copy.copy import SOLUTIONS
from pe_numpy.homework.in_page import report_of
from pe_numpy.homework.registry import EXERCISES
from pe_numpy.homework.release import STUBS

STUB = (STUBS / "31_shaw.py").read_text(encoding="utf-8")
CODE = STUB.partition("# ---- hints")[0].rstrip() + "\n"
HINTS = (STUBS / "33_t5.py").read_text(encoding="utf-8").partition("# ---- hints ")[2].lstrip("- ")
RIGHT = (SOLUTIONS / "31_shaw.py").read_text(encoding="utf-8")
(OLD, NEW) = EXERCISES["shaw_scores"].mistakes[0].change
WRONG = RIGHT.replace(OLD, NEW)
DESK = ".homework-desk"


def test_python_of_the_page_says_what_the_command_says(chromium, reader):
    """From a folder: a mistake is named, a loop is stopped, a whole chapter gets its ticks."""
    one = type(reader)(chromium, SITE.as_uri() + "/", has_touch=True)
    page = one.open("chapters/31_shaw.html")
    page.get_by_role("link", name="Or write them in the page.").click()
    area = page.get_by_label("Code of 31_shaw.py")
    expect(area).to_have_value(CODE)
    page.wait_for_load_state()
    expect(page.locator(f"{DESK} h2")).to_be_in_viewport()
    area.fill(WRONG)
    area.press("Control+Enter")
    status = page.locator(f"{DESK} [role=status]")
    report = report_of(WRONG, "31_shaw.py")
    passed = sum(verdict.passed for verdict in report.verdicts)
    expect(status).to_have_text(f"{passed} of 4 right", timeout=120_000)
    said = page.locator(".homework-said > *")
    for n, verdict in enumerate(report.verdicts):
        text = (
            said.nth(n)
            .evaluate(
                """o => [...o.querySelectorAll("summary, pre")].map(p => p.textContent).join("\\n")
            || o.textContent"""
            )
            .replace("\n", "\n    ")
        )
        unwritten = "it is not written yet" in str(verdict)
        assert text[:2] == ("✓ " if verdict.passed else "– " if unwritten else "✗ ")
        assert text[2:] == str(verdict)
    assert f"shaw_scores: {EXERCISES['shaw_scores'].mistakes[0].name}" in said.nth(0).inner_text()
    page.get_by_role("button", name="Go to line").first.click()
    line = WRONG.split("\n").index("def shaw_scores(q, k, key_table, distance):") + 1
    assert page.evaluate("document.activeElement.selectionStart") == len(
        "\n".join(WRONG.split("\n")[: line - 1]) + "\n"
    )
    assert page.get_by_role("link", name="Open chapter 31").get_attribute("href") == (
        "chapters/31_shaw.html"
    )
    area.fill("def softmax(x, axis=-1):\n    while True:\n        pass\n")
    go = page.locator(f"{DESK} .live button").first
    go.click()
    expect(status).to_have_text("Checking …")
    page.wait_for_timeout(500)
    expect(go).to_have_text("■ Stop")
    go.click()
    expect(status).to_contain_text("Stopped")
    area.fill(RIGHT)
    go.click()
    expect(status).to_have_text("4 of 4 right", timeout=120_000)
    line = page.get_by_label("For your teacher")
    expect(line).to_have_value(
        re.compile(
            r"^pe_numpy [\d.]+, \d{4}-\d\d-\d\d, checked in a page, not verified "
            r"\(the teacher's run grades\): 31_shaw 4 of 4 \(shaw_scores, .*nezha_table\)$"
        )
    )
    page.reload()  # all is kept
    expect(page.get_by_label("Code of 31_shaw.py")).to_have_value(RIGHT)
    assert page.locator(".homework-tick").count() == 4
    assert one.wrong == []
    one.context.close()


@pytest.fixture
def fresh(chromium, address, reader):
    """A reader with a small phone, whose browser has kept nothing so far."""
    one = type(reader)(chromium, address, viewport={"width": 320, "height": 700}, has_touch=True)
    one.context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield one
    assert one.wrong == []
    one.context.close()


def test_the_keyboard_alone_opens_writes_resets_and_closes(fresh):
    page = fresh.open("homework.html")
    link = page.locator(".homework-open[data-stub='31_shaw'] a")
    link.focus()
    page.keyboard.press("Enter")
    expect(page.locator(f"{DESK} h2")).to_be_focused()
    page.keyboard.press("Tab")
    area = page.get_by_label("Code of 31_shaw.py")
    expect(area).to_be_focused()
    page.keyboard.press("Control+End")
    page.keyboard.type("def f(x):\n    y = x\nreturn y")  # Enter keeps the four blanks
    written = CODE + "def f(x):\n    y = x\n    return y"
    expect(area).to_have_value(written)
    page.keyboard.press("Tab")  # out of the field
    expect(page.get_by_role("button", name="Check")).to_be_focused()
    page.reload()
    expect(area).to_have_value(written)
    page.get_by_role("button", name="Reset to the stub").press("Enter")
    expect(area).to_have_value(CODE)
    page.get_by_role("button", name="Undo the reset").press("Enter")
    expect(area).to_have_value(written)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the file").press("Enter")
    assert saved.value.suggested_filename == "31_shaw.py"
    assert saved.value.path().read_text() == written
    page.get_by_role("button", name="Close").press("Enter")
    expect(link).to_be_focused()
    expect(link).to_have_text("Write on")
    expect(page.locator(DESK)).to_be_hidden()


def test_it_fits_a_phone_and_is_open_to_all(fresh):
    names = ["shaw_scores", "shaw_values"]
    kept = json.dumps({"31_shaw": {"right": names}, "33_t5": 3, "gone": {"right": ["f"]}})
    fresh.context.add_init_script(f"localStorage.homework ??= {json.dumps(kept)}")
    page = fresh.open("homework.html#write-31_shaw")
    assert page.locator(".homework-tick").count() == 2
    page.evaluate("document.querySelectorAll('main details').forEach(one => { one.open = true })")
    hints = page.locator(".homework-hints")
    assert "1: key_table[rows] is (L, S, K)" in hints.inner_text()
    assert hints.locator("details").count() == 4
    size = "o => parseFloat(getComputedStyle(o).fontSize)"
    assert page.get_by_label("Code of 31_shaw.py").evaluate(size) >= 16
    assert axe_in_both_modes(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    parts = page.locator(".homework :is(button, textarea, summary, h2)")
    assert (
        parts.evaluate_all("all => Math.max(...all.map(o => o.getBoundingClientRect().right))")
        <= 320
    )
    page.locator(".homework-progress button").click()
    line = page.evaluate("navigator.clipboard.readText()")
    assert "not verified" in line and line.endswith("31_shaw 2 of 4 (shaw_scores, shaw_values)")


def test_a_browser_that_keeps_nothing_says_so_and_works(fresh):
    fresh.context.add_init_script(
        """const put = Storage.prototype.setItem;
        Storage.prototype.setItem = function (key, text) {
            if (key === "homework") throw new Error("full");
            put.call(this, key, text);
        };"""
    )
    page = fresh.open("homework.html#write-33_t5")
    expect(page.get_by_label("Code of 33_t5.py")).to_be_visible()
    hints = page.locator(".homework-hints pre").all_text_contents()
    told = re.sub(r"^# \w+, (?=\d)|^# ?", "", HINTS, flags=re.M)
    assert " ".join(hints).split() == told.split()  # also a hint of several lines
    expect(page.locator(f"{DESK} [role=status]")).to_contain_text("keeps nothing")
