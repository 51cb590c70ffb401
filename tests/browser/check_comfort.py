"""Reading comfort: contents that follow, code that is copied, chapters that are ticked off."""

import re
from pathlib import Path

import pytest
from conftest import axe, resize

SITE = Path(__file__).parent.parent.parent / "docs" / "_build" / "html"
CHAPTER = "chapters/33_t5.html"


def test_the_contents_mark_the_section_in_view(reader):
    page = reader.open(CHAPTER)
    current = page.locator(".page-toc [aria-current=location]")
    for name in (
        "t5-buckets-the-rule-derived",
        "t5-does-not-divide-by-the-square-root-of-the-head-dimension",
        "further-reading",
    ):
        page.evaluate("id => document.getElementById(id).scrollIntoView()", name)
        page.locator(f".page-toc a[href='#{name}'][aria-current=location]").wait_for()
        assert current.count() == 1
        box, bar = current.bounding_box(), page.locator(".bd-sidebar-secondary").bounding_box()
        assert bar["y"] <= box["y"] and box["y"] + box["height"] <= bar["y"] + bar["height"]


@pytest.mark.parametrize("where", ["served", "from a folder"])
def test_code_is_copied_as_it_is_written(where, chromium, address):
    context = chromium.new_context()
    if where == "served":
        context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(address + CHAPTER if where == "served" else SITE.joinpath(CHAPTER).as_uri())
    code = page.locator("div.cell_input").nth(1)
    button = code.locator(".copy-code")
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("b => b.textContent == 'Copied'", arg=button.element_handle())
    if where == "served":
        text = page.evaluate("navigator.clipboard.readText()")
        assert text == code.locator("pre").text_content()
        assert "assert" in text
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_lies_on_the_code_and_the_end_of_a_chapter_is_legible(
    scheme, chromium, address
):
    context = chromium.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, color_scheme=scheme
    )
    page = context.new_page()
    page.goto(address + CHAPTER)
    buttons = page.locator(".copy-code:visible")
    assert buttons.count() > 10
    # A button that is always seen lies on no line of code, and on no other button.
    covers = """all => all.filter(b => {
      const own = b.getBoundingClientRect();
      return [...(b.closest(".cell_input") ?? b.closest(".highlight"))
        .querySelectorAll("pre, .live button, .live-status")].some(e => {
          const r = e.getBoundingClientRect();
          return e !== b && e.textContent && r.left < own.right && own.left < r.right
            && r.top < own.bottom && own.top < r.bottom;
        });
    }).length"""
    assert buttons.evaluate_all(covers) == 0
    page.locator(".live-status").evaluate_all(
        "all => all.forEach(s => { s.textContent = 'w '.repeat(99) })"
    )
    assert buttons.evaluate_all(covers) == 0
    seen = "all => all.filter(b => !b.checkVisibility({opacityProperty: true})).length"
    assert buttons.evaluate_all(seen) == 0
    end = page.locator(".prev-next-area a > *, .read-mark > *, .prev-next-area p")
    boxes = [box for box in (one.bounding_box() for one in end.all()) if box]
    assert len(boxes) > 5
    assert all(8 <= box["x"] and box["x"] + box["width"] <= 382 for box in boxes)
    titles = page.locator(".prev-next-title").evaluate_all(
        "all => all.map(p => parseFloat(getComputedStyle(p).fontSize))"
    )
    assert len(titles) == 2 and min(titles) >= 14
    assert axe(page, runOnly=["color-contrast"]) == []
    context.close()


def test_what_a_cell_has_printed_has_no_button_and_a_source_has_one(reader):
    page = reader.open(CHAPTER)
    assert (
        page.locator(".cell_output .copy-code").count()
        == page.locator("details.source").count()
        > 0
    )


def test_chapters_are_ticked_off_in_this_browser_alone(reader):
    page = reader.open(CHAPTER)
    box = page.get_by_label("I have read this chapter")
    box.focus()
    page.keyboard.press("Space")
    assert box.is_checked()
    assert page.locator(".bd-links a.has-read").count() == 1
    page = reader.open("index.html")
    assert page.locator(".part a.has-read").get_attribute("href") == CHAPTER
    listed = page.locator(".part li").count()
    assert f"1 of {listed} chapters" in page.locator(".parts-read").inner_text()
    page = reader.open(CHAPTER)
    page.get_by_label("I have read this chapter").uncheck()
    assert reader.open("index.html").locator(".has-read").count() == 0
    assert page.evaluate("localStorage.getItem('chapters-read')") == "[]"
    assert page.context.cookies() == [] and reader.wrong == []


def test_a_source_unfolds_by_the_keyboard(reader):
    page = reader.open(CHAPTER)
    summary = page.locator("details.source summary", has_text="t5_bias").first
    code = summary.locator("xpath=..").locator("pre")
    assert not code.is_visible()
    summary.focus()
    page.keyboard.press("Enter")
    assert code.is_visible()
    colours = code.locator("span").evaluate_all("all => all.map(s => getComputedStyle(s).color)")
    assert len(set(colours)) > 2


@pytest.mark.parametrize("width", [390, 1100, 1440])
def test_the_front_page_fits_and_its_doors_open(width, reader):
    page = reader.open("index.html")
    resize(page, width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for door, place in (
        ("I am new", "00_how_to_read.html"),
        ("I teach", "00_how_to_read.html#plans-for-lessons"),
        ("I have a bug", "SYMPTOMS.html"),
    ):
        page = reader.open("index.html")
        page.locator(".door").get_by_role("link", name=door, exact=True).click()
        page.wait_for_url(re.compile(re.escape(place) + "$"))
    assert reader.wrong == []
