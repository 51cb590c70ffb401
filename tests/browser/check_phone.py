"""A phone: figures panel by panel, edges of what scrolls, code that wraps, controls for a thumb."""

import pytest
from conftest import in_mode, resize, settle, unfold

CHAPTER = "chapters/33_t5.html"
PAGES = [CHAPTER, "chapters/42_rope_in_models.html", "api/pe_numpy.rotary.xpos.html", "index.html"]
# What is wider than its box and scrolls, without a mark at its edge or out of the keyboard's reach.
NO_EDGE = """() => [...document.querySelectorAll(
    "main :is(pre, table, .drawn, .formula), main .cell_output:has(> img)")]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
  .filter(e => getComputedStyle(e).display !== "inline")
  .filter(e => !getComputedStyle(e).backgroundImage.includes("gradient") || e.tabIndex !== 0)
  .map(e => e.outerHTML.slice(0, 120))"""
TOO_SMALL = """() => [...document.querySelectorAll(
    "button, input:not([type=hidden]), select, summary, label.read-mark")]
  .filter(e => e.checkVisibility({opacityProperty: true, visibilityProperty: true}))
  .filter(e => !e.closest(".visually-hidden, dialog:not([open])"))
  .filter(e => { const r = e.getBoundingClientRect(); return r.width && (r.width < 24 || r.height < 24); })
  .map(e => e.outerHTML.slice(0, 120))"""  # noqa: E501
# Buttons of the text on which something else lies, or which stick out of their cell.
COVERED = """() => [...document.querySelectorAll(".bd-article :is(.live, .code-tools) button")]
  .filter(b => b.checkVisibility({opacityProperty: true}))
  .filter(b => {
    b.scrollIntoView({block: "center", behavior: "instant"});
    const r = b.getBoundingClientRect();
    const cell = (b.closest(".cell_input") ?? b.closest(".highlight")).getBoundingClientRect();
    const out = r.left < cell.left || r.right > cell.right || r.top < cell.top || r.bottom > cell.bottom;
    const points = [[r.left + 2, r.top + 2], [r.right - 2, r.bottom - 2]];
    return out || points.some(([x, y]) => !b.contains(document.elementFromPoint(x, y)));
  }).map(b => b.outerHTML)"""  # noqa: E501


@pytest.fixture(scope="module", params=[320, 390])
def phone(request, chromium, address):
    context = chromium.new_context(
        viewport={"width": request.param, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.address = address
    yield page
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_what_scrolls_has_an_edge_and_what_is_tapped_has_a_size(name, phone):
    phone.goto(phone.address + name)
    unfold(phone)
    settle(phone)
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert phone.evaluate(NO_EDGE) == []
    assert phone.evaluate(TOO_SMALL) == []
    sizes = [
        phone.locator(f".bd-article {h}").first.evaluate(
            "e => parseFloat(getComputedStyle(e).fontSize)"
        )
        for h in ("h1", "h2", "h3", "p")
        if phone.locator(f".bd-article {h}").count()
    ]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == len(sizes)


def test_what_scrolls_once_the_sidebars_have_slid_in_is_marked_too(reader):
    """They take their place after the window: the text is wider for a moment."""
    page = reader.open("chapters/63_decoding.html")
    resize(page, 390)
    unfold(page)
    page.add_style_tag(content="[class^=bd-sidebar] { transition-duration: 9s !important; }")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.wait_for_function("innerWidth == 1280")
    text = page.locator(".bd-article")
    before = text.bounding_box()["width"]
    page.wait_for_timeout(500)  # the theme looks once, 300 ms after the window
    settle(page)
    assert text.bounding_box()["width"] < before - 40
    assert page.evaluate(NO_EDGE) == []


def test_buttons_of_the_code_are_in_their_cell_and_free(phone):
    phone.goto(phone.address + CHAPTER)
    unfold(phone)
    assert phone.locator(".code-tools button:visible").count() > 20
    assert phone.evaluate(COVERED) == []


def test_the_way_to_the_top_lies_on_nothing(phone):
    phone.goto(phone.address + CHAPTER)
    phone.evaluate("scrollTo({top: 6000, behavior: 'instant'})")
    settle(phone)
    phone.evaluate("scrollTo({top: 5000, behavior: 'instant'})")
    button = phone.get_by_role("button", name="Back to top")
    button.wait_for()
    own, bar = button.bounding_box(), phone.locator(".bd-header-article").bounding_box()
    assert bar["y"] <= own["y"] and own["y"] + own["height"] <= bar["y"] + bar["height"]
    button.click()
    phone.wait_for_function("scrollY < 100")


def test_a_figure_of_panels_is_shown_panel_by_panel(phone):
    phone.goto(phone.address + CHAPTER)
    figure = phone.locator(".drawn.cut").first
    panels = figure.locator(".panel")
    figure.scroll_into_view_if_needed()
    assert panels.count() == 4 and not figure.locator(".whole").is_visible()
    if phone.viewport_size["width"] == 390:  # below, it may scroll, with an edge
        assert figure.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    for panel in panels.all():
        box = panel.bounding_box()
        least = panel.evaluate("e => parseFloat(getComputedStyle(e).getPropertyValue('--least'))")
        parts = panel.locator("use").evaluate_all("all => all.map(e => e.getBoundingClientRect())")
        assert box["width"] >= least and any(part["width"] > 0.5 * box["width"] for part in parts)
        width, height = panel.evaluate("e => [e.viewBox.baseVal.width, e.viewBox.baseVal.height]")
        assert abs(box["width"] / box["height"] - width / height) < 0.02 * width / height
    assert figure.locator(".whole").get_attribute("aria-label") == panels.first.get_attribute(
        "aria-label"
    )


def test_at_a_desk_a_figure_is_whole_and_has_the_colours_of_the_theme(reader):
    page = reader.open(CHAPTER)
    figure = page.locator(".drawn.cut").first
    assert figure.locator(".whole").is_visible()
    assert not figure.locator(".panel").first.is_visible()
    line = "e => [...e.querySelectorAll('path')].map(p => getComputedStyle(p).stroke)"
    looks = "e => [getComputedStyle(e).fill, getComputedStyle(e).filter, getComputedStyle(document.body).backgroundColor]"  # noqa: E501
    light = figure.locator(".whole").evaluate(line)
    assert figure.locator(".whole").evaluate(looks) == [
        "rgb(0, 0, 0)",
        "none",
        "rgb(255, 255, 255)",
    ]
    assert "rgb(204, 102, 119)" in light  # as it was drawn
    in_mode(page, "dark")
    dark = figure.locator(".whole").evaluate(line)
    assert figure.locator(".whole").evaluate(looks) == [
        "rgb(230, 230, 230)",
        "none",
        "rgb(18, 18, 18)",
    ]
    assert "rgb(255, 154, 168)" in dark and "rgb(204, 102, 119)" not in dark
    images = page.locator(".drawn image")
    assert images.count() and all(
        image.evaluate("e => getComputedStyle(e).filter") == "none" for image in images.all()
    )


def test_long_lines_wrap_on_request_and_are_copied_as_they_are(phone):
    context = phone.context
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    phone.goto(phone.address + CHAPTER)
    code = phone.locator("div.cell_input:visible").nth(2)
    wrap = code.get_by_role("button", name="Wrap the long lines")
    pre = code.locator("pre")
    wide = "e => e.scrollWidth > e.clientWidth + 1"
    assert pre.evaluate(wide) and wrap.get_attribute("aria-pressed") == "false"
    wrap.scroll_into_view_if_needed()
    before = wrap.bounding_box()["y"]
    wrap.focus()
    phone.keyboard.press("Enter")
    assert wrap.get_attribute("aria-pressed") == "true"
    assert abs(wrap.bounding_box()["y"] - before) < 2
    every = phone.locator(".cell_input:visible pre")
    assert every.count() > 9 and not every.evaluate_all(f"all => all.some({wide})")
    code.get_by_role("button", name="Copy").click()
    phone.wait_for_function("document.querySelector('.copy-code:focus')?.textContent === 'Copied'")
    assert phone.evaluate("navigator.clipboard.readText()") == pre.text_content()
    phone.reload()
    assert not pre.evaluate(wide)  # remembered
    wrap.click()
    assert pre.evaluate(wide) and phone.evaluate("localStorage.getItem('wrap-code')") == "no"


def test_paper_has_no_dead_words(reader):
    page = reader.open(CHAPTER)
    unfold(page)
    page.evaluate("document.querySelector('.tag_hide-input details').open = false")
    page.emulate_media(media="print", color_scheme="light")
    dead = page.locator("button, input, select, .live, .notebook, .headerlink, .hide > summary")
    shown = dead.evaluate_all(
        "all => all.filter(e => e.checkVisibility() && e.getBoundingClientRect().height)"
        ".map(e => e.outerHTML.slice(0, 120))"
    )
    assert shown == []
    words = page.locator("main").inner_text()
    assert "Fetch the notebook" not in words and "Show the source" not in words
    assert "Back to top" not in page.locator("body").inner_text()
    page.emulate_media(media="screen")
