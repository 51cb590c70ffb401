"""Break a real model: the dial, the bet, the address, the keyboard, a phone, and no scripts.

And the sandbox at its end: a score that the reader writes, its passport, and its address.
"""

import base64
import json
from pathlib import Path

import pytest
from conftest import axe_in_both_modes, resize
from playwright.sync_api import expect

from pe_numpy.book.own_words import continued
from pe_numpy.book.passport import EXAMPLES, passport

ROOT = Path(__file__).parent.parent.parent
SITE = ROOT / "docs" / "_build" / "html"
TABLE = json.loads((ROOT / "notebooks/results/break.json").read_text(encoding="utf-8"))

PAGE_PYTHON = """Object.defineProperty(window, "peLive", { value: { available: true, size: 25,
started: () => false, warm() {}, ready: async () => {}, stop() {},
call: (code) => window.askPython(code),
edit(area, run) {
  area.addEventListener("keydown", (e) => e.key === "Enter" && e.ctrlKey && run());
  return () => { area.rows = area.value.split("\\n").length; };
} } });"""


def entry(sentence, mistake):
    entries = TABLE["sentences"][sentence]["entries"]
    return next(one for one in entries if one["mistake"] == mistake)


def texts(page, side):
    """The words that a column shows."""
    words = page.locator(f".break-{side} .break-words button:not(.break-later)")
    return words.evaluate_all("all => all.map(one => one.textContent)")


def seen(written):
    """Words as the page shows them."""
    return [w if w.strip() else w.replace("\n", "⏎").replace(" ", "␣") for w in written]


@pytest.fixture
def calm(reader):
    reader.page.emulate_media(reduced_motion="reduce")
    yield reader
    reader.page.emulate_media(reduced_motion="no-preference")
    assert reader.wrong == []


def test_a_shift_is_seen_to_change_nothing_and_zero_to_change_all(calm):
    """By the keyboard alone: the first mistake of the dial, then another by arrow keys."""
    page = calm.open("break.html")
    assert not page.locator(".break-shown").is_visible()
    page.locator("#break-sentence").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # in the dial: as the button
    assert texts(page, "right") == texts(page, "broken") == seen(entry(0, "right")["written"])
    expect(page.locator(".break-seen")).to_contain_text("Nothing happened: all 20 words")
    angles = page.locator(".break-clocks text.middle").all_text_contents()
    assert len(angles) == 8 and angles[:4] == angles[4:]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.url.endswith("#sentence=1&mistake=zero")
    wrong = entry(0, "zero")
    assert texts(page, "broken") == seen(wrong["written"]) != texts(page, "right")
    expect(page.locator(".break-first")).to_have_text(seen(wrong["written"])[wrong["wrong"]])
    assert page.locator(".break-numbers td").nth(2).inner_text() == f"{wrong['loss']:.2f}"
    assert page.locator(".break-clocks text.middle").nth(4).text_content() == "0°"
    about = page.locator(".break-about:visible")
    assert about.count() == 1 and "--positions zero" in about.locator("pre").inner_text()


def test_a_word_says_its_surprise_and_arrow_keys_move(calm):
    page = calm.open("break.html#sentence=2&mistake=reverse")
    words = page.locator(".break-broken .break-words button")
    assert words.evaluate_all("all => all.filter(one => one.tabIndex === 0).length") == 1
    words.first.focus()
    page.keyboard.press("ArrowRight")
    surprise = entry(1, "reverse")["surprise"][1]
    expect(page.locator(".break-broken .break-word")).to_contain_text(f"{surprise:.2f} nats")
    assert f"{surprise:.2f} nats" in words.nth(1).get_attribute("aria-label")
    widths = words.evaluate_all("all => all.map(o => parseFloat(getComputedStyle(o).borderBottom))")
    order = sorted(range(len(widths)), key=entry(1, "reverse")["surprise"].__getitem__)
    assert widths[order[0]] < widths[order[-1]]  # not colour alone


def test_a_bet_is_judged_by_the_losses(calm):
    page = calm.open("break.html#sentence=3&mistake=shift")
    losses = {one["mistake"]: one["loss"] for one in TABLE["sentences"][2]["entries"]}
    worst = max(losses, key=losses.__getitem__)
    verdict = page.locator(".break-verdict")
    assert verdict.inner_text() == ""
    page.locator("#break-bet").select_option("shift")
    expect(verdict).to_contain_text("The most expensive mistake")
    expect(verdict).to_contain_text(f"{losses[worst] - losses['right']:.2f} nats.")
    page.locator("#break-bet").select_option(worst)
    expect(verdict).to_contain_text("Your bet is right")


def test_the_address_holds_the_state_and_what_it_does_not_know_is_passed_over(calm):
    page = calm.open("break.html#sentence=4&mistake=layout")
    assert texts(page, "broken") == seen(entry(3, "layout")["written"])
    page.locator("#break-sentence").select_option("5")
    assert page.url.endswith("#sentence=6&mistake=layout")
    page.evaluate("location.hash = 'sentence=2&mistake=nobos'")
    page.wait_for_function("document.querySelector('#break-sentence').value === '1'")
    assert page.locator("[name=mistake]:checked").get_attribute("value") == "nobos"
    page = calm.open("index.html")
    page = calm.open("break.html#sentence=99&mistake=toString")
    assert not page.locator(".break-shown").is_visible()


def test_words_come_one_by_one_where_motion_is_welcome(reader):
    page = reader.open("break.html#sentence=1&mistake=zero")
    later = page.locator(".break-later")
    assert later.count() > 10 and page.locator(".break-seen").inner_text() == ""
    expect(later).to_have_count(0, timeout=20_000)
    expect(page.locator(".break-seen")).to_contain_text("first wrong one")


@pytest.mark.parametrize("width", [320, 390])
def test_it_fits_a_phone_and_is_open_to_all(width, calm):
    page = calm.open("break.html#sentence=1&mistake=written")
    resize(page, width, 800)
    page.evaluate("document.querySelector('.break-all').open = true")
    assert axe_in_both_modes(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    sides = "all => Math.max(...all.map(one => one.getBoundingClientRect().right))"
    assert page.locator(".break select, .break label, .break svg").evaluate_all(sides) <= width
    heights = "all => Math.min(...all.map(one => one.getBoundingClientRect().height))"
    assert page.locator(".break-words button").evaluate_all(heights) >= 24


def test_without_scripts_a_table_shows_the_first_sentence(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + "break.html")
    assert not page.locator(".break form").is_visible()
    rows = page.locator(".break-all tbody tr")
    assert rows.count() == 13
    zero = page.locator(".break-all tr[data-mistake=zero]")
    assert zero.is_visible() and f"{entry(0, 'zero')['loss']:.2f}" in zero.inner_text()
    assert zero.locator("mark").inner_text().strip() == entry(0, "zero")["written"][0].strip()
    assert page.locator(".break-about:visible").count() == 12
    assert not page.locator(".sandbox").is_visible()
    context.close()


def test_it_works_from_a_folder_and_the_front_page_leads_to_it(chromium):
    context = chromium.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(SITE.joinpath("index.html").as_uri())
    teaser = page.locator(".break-teaser")
    assert teaser.locator("dd").nth(0).inner_text() == teaser.locator("dd").nth(1).inner_text()
    teaser.get_by_role("link").click()
    page.get_by_role("button", name="Let it write").click()
    assert texts(page, "right") == seen(entry(0, "right")["written"])
    context.close()


def test_the_readers_own_words_are_computed(reader, chromium, address):
    """Python of the page is played by the Python of this test, which evaluates what it asks."""
    one = type(reader)(chromium, address)
    one.context.expose_function("askPython", lambda code: eval(code))
    one.context.add_init_script(PAGE_PYTHON)
    page = one.open("break.html")
    said, words = page.locator(".break-own-said"), page.locator("#break-own-text")
    expect(said).to_contain_text("25 MB")
    for text, mistake in (("light is ", "zero"), ("a 'quoted\\ ray", "shift")):
        words.fill(text)
        page.locator("#break-own-mistake").select_option(mistake)
        words.press("Enter")
        right = continued(text, mistake)
        if "error" in right:
            expect(said).to_contain_text("must have only characters")
            continue
        expect(said).to_contain_text(f"{right['loss']['broken']:.2f} with the mistake")
        shown = page.locator(".break-own dd")
        assert shown.nth(0).text_content() == right["right"]["written"]
        assert shown.nth(1).text_content() == right["broken"]["written"]
        pairs = zip(right["right"]["written"], right["broken"]["written"], strict=True)
        differ = [n for n, (a, b) in enumerate(pairs) if a != b]
        letters = shown.nth(1).locator("> *").evaluate_all("all => all.map(o => o.localName)")
        assert [n for n, kind in enumerate(letters) if kind == "mark"] == differ[:1]
    assert one.wrong == []
    one.context.close()


# ---- the sandbox ---------------------------------------------------------------------------------

GO, STATUS, ROWS = ".sandbox [type=submit]", ".sandbox-status", ".sandbox dt"
MINE = "def score(q, k, i, j):\n    return q @ k - abs(i - j) ** 0.5  # ½√~~~???>>>"


def link(text):
    """The address of a code, as a page writes it."""
    return "break.html#score=" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


assert {"-", "_"} < {*link(MINE)}  # both letters that are not of base64


def shown(page):
    """Rows of a passport: question and answer."""
    texts = "all => all.map(o => [o.textContent, o.nextElementSibling.textContent])"
    return dict(page.locator(ROWS).evaluate_all(texts))


def same(page, text):
    """Whether a page shows what Python here finds."""
    found, rows = passport(text), shown(page)
    for question, (word, sentence) in found["rows"].items():
        assert rows[question] == f"{word[0].upper()}{word[1:]}. {sentence}"
    assert rows["It resembles"].startswith(f"{found['like'][0]['label']} (card). ")
    assert f"by {found['calls']:,} calls" in page.locator(STATUS).inner_text()
    assert ("Note" in rows) == bool(found["notes"])
    return rows


def test_python_of_the_page_gives_a_passport(chromium, reader):
    """From a folder, by a link: it runs when it is asked to; bad code and a loop are told."""
    one = type(reader)(chromium, SITE.as_uri() + "/")
    page = one.open(link(MINE))
    area, status = page.locator(".sandbox textarea"), page.locator(STATUS)
    expect(area).to_have_value(MINE)
    expect(area).to_be_in_viewport()
    expect(status).to_contain_text("Read it before you press Check")
    page.wait_for_timeout(300)
    assert not page.evaluate("peLive.started()") and page.locator(ROWS).count() == 0
    area.press("Control+Enter")
    expect(status).to_contain_text("Measured in", timeout=120_000)
    same(page, MINE)
    page.locator("#sandbox-example").select_option("RoPE with a wrong sign")
    page.locator(GO).click()
    expect(status).to_contain_text("Measured in", timeout=60_000)
    assert "i + j" in same(page, EXAMPLES["RoPE with a wrong sign"])["Note"]
    wrong = "def score(q, k, i, j):\n    return q * k"
    area.fill(wrong)
    expect(status).to_contain_text("The code has changed")
    area.press("Control+Enter")
    expect(status).to_have_text(
        f"No passport: {passport(wrong)['error'].replace('`', '')}", timeout=60_000
    )
    assert page.locator(ROWS).count() == 0
    area.fill("while True:\n    pass")
    page.locator(GO).click()
    expect(page.locator(GO)).to_have_text("■ Stop")
    expect(status).to_contain_text("a loop without end? Stop ends it", timeout=20_000)
    page.locator(GO).click()
    expect(status).to_contain_text("Stopped.")
    expect(page.locator(GO)).to_have_text("▶ Check")
    assert one.wrong == []
    one.context.close()


def test_the_sandbox_by_the_keyboard_on_a_phone(reader, chromium, address):
    """Python of the page is played by the Python of this test, which evaluates what it asks."""
    one = type(reader)(chromium, address, viewport={"width": 320, "height": 700}, has_touch=True)
    one.context.grant_permissions(["clipboard-read", "clipboard-write"])
    one.context.expose_function("askPython", lambda code: eval(code))
    one.context.add_init_script(PAGE_PYTHON)
    page = one.open("break.html")
    area, status = page.locator(".sandbox textarea"), page.locator(STATUS)
    choice = page.locator("#sandbox-example")
    expect(area).to_have_value(EXAMPLES["RoPE"])
    expect(status).to_contain_text("25 MB")
    choice.focus()
    page.keyboard.press("ArrowUp")
    expect(area).to_have_value(EXAMPLES["no position"])
    page.keyboard.press("Tab")
    page.keyboard.press("Control+Enter")
    expect(status).to_contain_text("Measured in")
    same(page, EXAMPLES["no position"])
    assert page.url == address + link(EXAMPLES["no position"])
    area.fill(MINE)
    assert choice.input_value() == ""
    choice.select_option("ALiBi")
    choice.select_option("")  # what was written is not lost
    expect(area).to_have_value(MINE)
    area.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(status).to_have_text("Copied. The link holds your code.")
    assert page.evaluate("navigator.clipboard.readText()") == address + link(MINE)
    page.evaluate("location.hash = 'score=%E4'")
    expect(status).to_contain_text("cannot be read")
    expect(area).to_have_value(MINE)
    choice.select_option("sinusoids, added to q and k")
    page.locator(GO).click()
    expect(status).to_contain_text("Measured in")
    rows = same(page, EXAMPLES["sinusoids, added to q and k"])
    assert " content and whether " in rows["It resembles"]
    for path in page.locator(".sandbox dd a").evaluate_all("all => all.map(o => o.pathname)"):
        assert (SITE / path.lstrip("/")).exists()
    for width in (320, 390):
        resize(page, width, 800)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        sides = "all => Math.max(...all.map(one => one.getBoundingClientRect().right))"
        assert page.locator(".sandbox *:visible").evaluate_all(sides) <= width
    heights = "all => Math.min(...all.map(one => one.getBoundingClientRect().height))"
    assert page.locator(".sandbox :is(button, select)").evaluate_all(heights) >= 24
    assert axe_in_both_modes(page) == []
    assert one.wrong == []
    one.context.close()
