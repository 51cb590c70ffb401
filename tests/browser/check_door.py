"""The door: lines that can be read, one start, routes with ticks, a table to filter."""

import pytest
from conftest import in_mode, resize, unfold

CHAPTER = "chapters/33_t5.html"
MATRIX = "chapters/72_which_one.html"
# The letters of each line of the paragraphs, but of the last ones.
LINES = """() => [...document.querySelectorAll(".bd-article section > p")]
  .filter(p => p.checkVisibility() && p.textContent.length > 250 && !p.querySelector("math"))
  .flatMap(p => {
    const range = document.createRange(), lines = [];
    const walk = document.createTreeWalker(p, NodeFilter.SHOW_TEXT);
    for (let last = -99; walk.nextNode();) {
      for (let n = 0; n < walk.currentNode.length; n++) {
        range.setStart(walk.currentNode, n);
        range.setEnd(walk.currentNode, n + 1);
        const box = range.getClientRects()[0];
        if (!box) continue;
        if (box.top > last + 8) lines.push(0);
        last = box.top;
        lines[lines.length - 1]++;
      }
    }
    return lines.slice(0, -1);
  })"""
SIZE = "e => parseFloat(getComputedStyle(e).fontSize)"
# Code of at most 100 columns that does not fit into its box.
CUT = """() => [...document.querySelectorAll(".bd-article :is(.cell_input, .source) pre")]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
  .filter(e => Math.max(...e.textContent.split("\\n").map(line => line.length)) <= 100).length"""
TICK = """e => [getComputedStyle(e, "::after").color,
    getComputedStyle(document.body).backgroundColor]
  .map(c => c.match(/[0-9.]+/g).slice(0, 3).map(Number))"""


@pytest.mark.parametrize(("width", "least"), [(1280, 12.5), (1440, 14)])
def test_a_line_of_text_has_some_68_letters_and_one_of_code_has_100(width, least, reader):
    page = reader.open(CHAPTER)
    resize(page, width)
    unfold(page)
    lines = page.evaluate(LINES)
    assert len(lines) > 50 and 60 < sum(lines) / len(lines) < 74 and max(lines) < 84
    text = page.locator(".bd-article section > p").first
    code = page.locator(".cell_input pre").first
    assert text.evaluate(SIZE) == 18 and code.evaluate(SIZE) >= least
    assert page.evaluate(CUT) == 0
    figure = page.locator(".drawn .whole").first.bounding_box()
    assert figure["width"] > text.bounding_box()["width"] + 100


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_need_not_enlarge_the_page(width, chromium, address):
    context = chromium.new_context(
        viewport={"width": width, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    for name in (CHAPTER, MATRIX, "index.html", "break.html", "homework.html"):
        page.goto(address + name)
        page.evaluate("window.peLive?.cells?.[0]?.open()")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert page.locator(".bd-article section > p").first.evaluate(SIZE) >= 16
        fields = page.locator(
            "main :is(textarea, select, input:not([type=radio], [type=checkbox], [type=range]))"
        )
        sizes = fields.evaluate_all(f"all => all.map({SIZE})")
        assert all(size >= 16 for size in sizes), name
        assert sizes or name not in (CHAPTER, MATRIX, "break.html")
    assert page.locator("input[type=search]").first.evaluate(SIZE) >= 16
    context.close()


def test_one_button_leads_to_the_best_three_minutes(reader):
    page = reader.open("index.html")
    start = page.get_by_role("link", name="Start: 3 minutes")
    assert start.count() == 1 and start.bounding_box()["y"] < 500
    start.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/break.html")
    assert reader.wrong == []


def test_a_route_shows_how_far_one_is_and_where_to_go_on(reader):
    page = reader.open("index.html")
    ways, said = page.locator(".way"), page.locator(".way-read")
    assert ways.count() == 2 and said.all_inner_texts() == ["", ""]
    assert not page.locator(".way-next").count()
    page.evaluate(
        """localStorage.setItem("chapters-read", '["00_how_to_read", "40_rope_derived"]')"""
    )
    page = reader.open("index.html")
    assert said.all_inner_texts() == ["2 of 8 read", "1 of 12 read"]
    assert ways.first.locator(".has-read").count() == 2
    starts = page.locator(".way-next").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert starts == ["chapters/10_attention.html", "chapters/11_why_position.html"]
    for scheme in ("light", "dark"):
        in_mode(page, scheme)
        tick, ground = page.locator(".bd-links .has-read").first.evaluate(TICK)
        assert max(abs(a - b) for a, b in zip(tick, ground, strict=True)) > 80
    page.evaluate("localStorage.removeItem('chapters-read')")


def test_the_schemes_of_chapter_72_are_filtered_by_their_answers(reader):
    page = reader.open(MATRIX)
    box = page.locator(".matrix")
    rows, said = box.locator("tbody tr:visible"), box.get_by_role("status")
    assert rows.count() == 15 and said.inner_text() == "15 of 15 schemes"
    assert (
        page.get_by_text("Does the content of the key decide it?").locator("visible=true").count()
        == 1
    )
    assert box.locator("label b").all_inner_texts() == box.locator("thead th").all_inner_texts()[1:]
    asked = box.get_by_label("Do weights depend only on distance?")
    asked.focus()
    page.keyboard.press("y")  # as at any list
    assert asked.input_value() == "yes"
    box.get_by_label("serves it unchanged?").select_option("yes")
    box.get_by_label("Can an encoder tell a text from its mirror image?").select_option("yes")
    assert said.inner_text() == "1 of 15 schemes: RoPE" and rows.count() == 1
    assert rows.get_by_role("link", name="RoPE").get_attribute("href") == "40_rope_derived.html"
    state = page.url.partition("#")[2]
    assert "plain+attention=yes" in state
    page = reader.open("index.html")
    page = reader.open(f"{MATRIX}#{state}")
    assert said.inner_text() == "1 of 15 schemes: RoPE"
    box.get_by_label("Does the score fall with each step").select_option("yes")
    assert said.inner_text().startswith("No scheme gives all") and rows.count() == 0
    box.get_by_role("button", name="Show all").press("Enter")
    assert rows.count() == 15 and "=" not in page.url
    assert reader.wrong == []


def test_without_scripts_the_table_is_whole(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + MATRIX)
    assert page.locator(".matrix tbody tr:visible").count() == 15
    assert not page.locator(".matrix select").count()
    assert page.get_by_text("Does the content of the key decide it?").is_visible()
    context.close()


def test_a_tap_on_a_formula_shows_the_letters_of_its_chapter(reader):
    page = reader.open("chapters/40_rope_derived.html")
    resize(page, 320, 800)
    box = page.locator("div.letters")
    assert "Touch a formula to see its letters." in page.locator("article").inner_text()
    for formula in (page.locator("p > math:visible").nth(3), page.locator("div.formula").first):
        formula.click()
        assert box.count() == 1
        assert "m, n are positions" in box.inner_text() and "width of one head" in box.inner_text()
        below = formula.bounding_box()["y"], box.bounding_box()["y"]
        assert below[0] < below[1] < below[0] + 400
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("Escape")
    assert box.count() == 0
    folded = page.locator("details.letters")  # and for the keyboard, at the end of the chapter
    folded.locator("summary").focus()
    page.keyboard.press("Enter")
    assert "m, n are positions" in folded.inner_text()
    folded.get_by_role("link", name="rope", exact=True).click()
    page.wait_for_url("**/api/pe_numpy.rotary.rope.html")
    assert reader.wrong == []
