"""Formulas on a phone and in the hand: none sticks out or is cut, and a copied one is TeX."""

from pathlib import Path

import pytest
from conftest import resize, unfold

SITE = Path(__file__).parent.parent.parent / "docs" / "_build" / "html"
CHAPTERS = [
    f"chapters/{path.name}"
    for path in sorted(SITE.glob("chapters/*.html"))
    if "<math" in path.read_text(encoding="utf-8")
]
# Formulas that stick out of the screen, and boxes that hide a part of one: a box that scrolls may,
# if the keyboard can scroll it and its edge is marked.
CUT = """() => {
  const tex = (e) => e.querySelector("annotation").textContent;
  const scrolls = (e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
  const found = [];
  for (const formula of document.querySelectorAll("main math")) {
    if (!formula.checkVisibility()) continue;
    let box = formula.parentElement;
    while (box !== document.body && getComputedStyle(box).overflowX === "visible") box = box.parentElement;
    const { left, right } = formula.getBoundingClientRect();
    if (box !== document.body && !scrolls(box) && box.scrollWidth > box.clientWidth) found.push(`cut: ${tex(formula)}`);
    if ((box === document.body || !scrolls(box)) && (left < 0 || right > innerWidth)) found.push(`out: ${tex(formula)}`);
  }
  for (const box of document.querySelectorAll("main .formula")) {
    const style = getComputedStyle(box);
    if (style.display === "inline" || !box.checkVisibility()) continue;
    if (box.scrollHeight > box.clientHeight) found.push(`too tall: ${tex(box)}`);
    const wide = box.scrollWidth > box.clientWidth + 1;
    if (wide && box.tabIndex !== 0) found.push(`no keyboard: ${tex(box)}`);
    if (wide && !style.backgroundImage.includes("gradient")) found.push(`no edge: ${tex(box)}`);
  }
  return found;
}"""  # noqa: E501


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_formula_is_cut_or_sticks_out(name, reader):
    page = reader.open(name)
    unfold(page)
    for width in (1280, 390, 320):
        resize(page, width)
        assert [width, page.evaluate(CUT)] == [width, []]
    assert page.locator("main math").count() > 0
    assert page.evaluate("document.fonts.check('16px \"Book Maths\"', '𝑥')")


def test_a_wide_formula_scrolls_to_its_end(reader):
    """Seen from its left edge; the keyboard brings the right one."""
    page = reader.open("chapters/60_layers.html")
    resize(page, 320)
    wide = "all => all.findIndex(e => e.scrollWidth > e.clientWidth + 1)"
    formulas = page.locator("div.formula[tabindex='0']")
    box = formulas.nth(formulas.evaluate_all(wide))
    inside = "(b) => [b.scrollLeft, b.querySelector('math').getBoundingClientRect().left"
    inside += " - b.getBoundingClientRect().left, b.scrollWidth - b.clientWidth]"
    scrolled, left, most = box.evaluate(inside)
    assert scrolled == 0 and left >= 0 and most > 10
    box.focus()
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "b => b.scrollLeft >= b.scrollWidth - b.clientWidth - 1", arg=box.element_handle()
    )


def test_a_formula_is_copied_as_tex(chromium, address):
    context = chromium.new_context()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(address + "chapters/40_rope_derived.html")
    page.evaluate("""() => {
      const own = [...document.querySelectorAll("main p")].find(p => p.textContent.includes("the wish"));
      const range = document.createRange();
      range.setStartBefore(own);
      range.setEndAfter(own.nextElementSibling);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }""")  # noqa: E501
    before = page.locator("main").inner_html()
    page.keyboard.press("Control+c")
    text = page.evaluate("navigator.clipboard.readText()")
    assert "Let $x$ be the content" in text and "on $m-n$, and position 0" in text.replace(
        "m - n", "m-n"
    )
    assert r"$$\langle f(q, m), f(k, n)\rangle = g(q, k, m - n), \qquad f(q, 0) = q$$" in text
    assert page.locator("main").inner_html() == before
    context.close()
