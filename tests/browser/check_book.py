"""Every page of the web book in a browser: formulas, pictures, sliders, search, both modes."""

import os
import re
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import axe, in_mode, resize, unfold

ROOT = Path(__file__).parent.parent.parent
SITE = ROOT / "docs" / "_build" / "html"
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html"))
# Pages of source code are all made alike: axe reads one in ten.
ALIKE = [n for n in PAGES if n.startswith("_modules/")]
ALIKE = {*ALIKE} - {*ALIKE[::10]}
# PE_NUMPY_SHOTS=folder: screenshots for a person to look at.
SHOTS = os.environ.get("PE_NUMPY_SHOTS", "")

HEADINGS = "[...document.querySelectorAll('main :is(h1,h2,h3,h4)')]"
HEADINGS += ".filter(h => h.checkVisibility()).map(h => h.tagName)"
# Pictures that the browser could not draw; those far below are asked for first.
BROKEN = """async () => {
  const all = [...document.images];
  for (const i of all) i.loading = "eager";
  await Promise.all(all.map(i => i.complete || new Promise(r => { i.onload = i.onerror = r; })));
  return all.filter(i => !i.naturalWidth).map(i => i.src);
}"""
# Elements that stick out of the screen, though nothing around them scrolls.
WIDE = """() => {
  const kinds = ["auto", "scroll", "hidden"];
  const scrolls = (e) => e && e !== document.body && (
    kinds.includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  return [...document.querySelectorAll("main *")]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e)
            && e.checkVisibility({opacityProperty: true, visibilityProperty: true})
            && !e.closest(".visually-hidden"))
    .slice(0, 5).map(e => e.outerHTML.slice(0, 120));
}"""

# Of a figure axe reads the name.
NAMES = "for (const one of document.querySelectorAll('.drawn svg, .clips')) one.replaceChildren()"
# For colours axe needs one of each look: what looks as something before it, and all in it, goes.
ONE_OF_EACH = """() => {
  const seen = new Set();
  const again = [];
  const known = (one, above) => {
    const { color, backgroundColor } = getComputedStyle(one);
    const look = [above, one.localName, one.getAttribute("class"), color, backgroundColor].join();
    const before = seen.has(look);
    seen.add(look);
    const inside = [...one.children];
    const same = inside.filter((child) => known(child, one.closest("math") ? "math" : look));
    if (before && same.length === inside.length) return true;
    again.push(...same);
    return false;
  };
  known(document.querySelector("main"), "");
  for (const one of again) one.remove();
}"""

COLOURS = ["color-contrast", "link-in-text-block"]
ALL = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
    "rules": {rule: {"enabled": False} for rule in COLOURS},
}


def headings(page):
    levels = [int(tag[1]) for tag in page.evaluate(HEADINGS)]
    in_order = all(b <= a + 1 for a, b in pairwise(levels))
    return [] if in_order and levels.count(1) == 1 else [f"headings {levels}"]


def shoot(page, name, kind):
    if SHOTS:
        stem = name.removesuffix(".html").replace("/", "-")
        page.screenshot(path=f"{SHOTS}/{stem}-{kind}.png", full_page=True, animations="disabled")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_readable_and_open_to_all(name, reader):
    """In the light, in the dark, and on a phone."""
    page = reader.open(name)
    wrong = [*page.evaluate(BROKEN), *headings(page)]
    shoot(page, name, "light")
    unfold(page)
    in_mode(page, "dark")
    shoot(page, name, "dark")
    resize(page, 390, 844)
    shoot(page, name, "phone")
    wrong += [f"too wide: {html}" for html in page.evaluate(WIDE)]
    if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
        wrong.append("a phone must scroll sideways")
    if name in ALIKE:
        assert wrong + reader.wrong == []
        return
    page.evaluate(NAMES)
    wrong += [f"on a phone: {line}" for line in axe(page, runOnly=["scrollable-region-focusable"])]
    resize(page, 1280)
    wrong += axe(page, **ALL)
    assert wrong + reader.wrong == []
    page.evaluate(ONE_OF_EACH)
    resize(page, 390, 844)
    wrong += [f"dark, on a phone: {line}" for line in axe(page, runOnly=COLOURS)]
    resize(page, 1280)
    in_mode(page, "light")
    wrong += axe(page, runOnly=COLOURS)
    page.goto("about:blank")  # the page's scripts would miss what is gone
    assert wrong == []


def test_search_finds_bucket(reader):
    page = reader.open("search.html?q=bucket")
    page.locator("#search-results li a").first.wait_for()
    found = page.locator("#search-results li a").evaluate_all("all => all.map(a => a.href)")
    assert any("chapters/33_t5.html" in link for link in found)
    assert any("GLOSSARY.html" in link for link in found)


def test_a_solution_opens(reader):
    page = reader.open("chapters/33_t5.html")
    summary = page.locator("summary", has_text="Solution").first
    inside = summary.locator("xpath=..").locator("pre").first
    assert not inside.is_visible()
    summary.focus()
    page.keyboard.press("Enter")
    assert inside.is_visible()


def test_the_front_page_leads_to_each_chapter(reader):
    page = reader.open("index.html")
    page.locator(".four-places a[title=ALiBi]").click()
    assert page.url.endswith("chapters/35_alibi.html")


def test_dark_mode_can_be_chosen(reader):
    page = reader.open("chapters/20_sinusoidal.html")
    page.locator("button.theme-switch-button").first.click()
    page.locator(".theme-switch-container li", has_text="Dark").first.click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.evaluate("localStorage.clear()")


SLIDERS = [n for n in PAGES if 'class="slider"' in (SITE / n).read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", SLIDERS)
def test_keys_move_the_curves_of_every_slider(name, reader):
    page = reader.open(name)
    unfold(page)
    figures = page.locator("figure.slider")
    for n in range(figures.count()):
        figure = figures.nth(n)
        for control in figure.locator("input").all():
            before = figure.inner_html(), figure.locator("output").all_inner_texts()
            control.focus()
            assert page.evaluate("document.activeElement.type") == "range"
            at_end = control.input_value() == control.get_attribute("max")
            for _ in range(3):
                page.keyboard.press("ArrowLeft" if at_end else "ArrowRight")
            after = figure.inner_html(), figure.locator("output").all_inner_texts()
            assert before[1] != after[1]
            lines = [re.findall(r'points="[^"]*"', html) for html in (before[0], after[0])]
            assert lines[0] != lines[1]
            assert control.get_attribute("aria-valuetext") in after[1]
