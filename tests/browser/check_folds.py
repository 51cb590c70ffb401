"""What a first reader may skip is folded, opens when it is asked for, and old links still lead."""

import re

import pytest

FOLDED = "chapters/40_rope_derived.html"
THEOREM = "the-theorem-only-a-rotation-works-second-reading"
INSIDE = "step-2-one-angle-per-position"


def is_open(page):
    fold = page.locator(f"#{THEOREM} > details.second")
    return fold.evaluate("fold => fold.open && fold.querySelector('section').checkVisibility()")


def top_of(page, name):
    return page.locator(f"#{name}").evaluate("e => e.getBoundingClientRect().top")


def test_a_second_reading_is_folded_and_opens_by_the_keyboard(reader):
    page = reader.open(FOLDED)
    assert not is_open(page)
    summary = page.locator(f"#{THEOREM} > details > summary")
    assert summary.locator("h2").is_visible()
    summary.focus()
    page.keyboard.press("Enter")
    assert is_open(page)
    page.keyboard.press("Enter")
    assert not is_open(page)


@pytest.mark.parametrize("anchor", [THEOREM, INSIDE])
def test_it_is_open_where_an_address_leads_into_it(anchor, reader):
    page = reader.open(f"{FOLDED}#{anchor}")
    assert is_open(page) and -5 < top_of(page, anchor) < 400
    reader.page.goto("about:blank")
    page = reader.open(FOLDED)
    page.evaluate(f"location.hash = '{anchor}'")
    page.wait_for_function("document.querySelector('details.second[open]')")
    assert is_open(page) and -5 < top_of(page, anchor) < 400
    page.evaluate("document.querySelector('details.second[open]').open = false")
    page.locator(f".bd-sidebar-secondary a[href='#{THEOREM}']").first.click()
    page.wait_for_function("document.querySelector('details.second[open]')")


def test_it_is_open_where_the_search_leads_into_it(reader):
    page = reader.open(f"{FOLDED}?q=one+angle#{INSIDE}")
    assert is_open(page)
    page.wait_for_function("CSS.highlights.get('asked')?.size > 1")
    assert -5 < top_of(page, INSIDE) < 400


def test_on_paper_all_is_open_and_afterwards_as_before(reader):
    page = reader.open(FOLDED)
    page.evaluate("""() => { window.seen = [];
      addEventListener('beforeprint', () => seen.push(
        document.querySelectorAll('details.second:not([open])').length)); }""")
    page.pdf()
    assert page.evaluate("seen") == [0]
    assert not is_open(page)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("10_attention.html#short-answers", "10_attention.html#in-short"),
        ("10_attention.html#two-heads", "10_attention.html#multi-head-attention-two-heads"),
        ("10_attention.html#what-the-documents-say", "94_document_004.html"),
        (
            "50_scaling.html#yarn-s-second-part-sharper-attention",
            "50_scaling.html#yarn-s-attention",
        ),
        ("50_scaling.html#yarns-second-part-sharper-attention", "50_scaling.html#yarn-s-attention"),
        ("72_which_one.html#many-names-few-schemes", "70_algebra.html#equivalences-of-encodings"),
    ],
)
def test_an_old_link_lands(old, new, reader):
    page = reader.page
    page.goto(f"{reader.address}chapters/{old}", wait_until="commit")
    page.wait_for_url(re.compile(re.escape(new)), timeout=60_000)
    assert reader.wrong == []


def test_an_old_link_into_a_second_reading_opens_it(reader):
    page = reader.open("chapters/20_sinusoidal.html?q=base#why-10000")
    page.wait_for_url(re.compile(r"\?q=base#why-10000-second-reading$"), timeout=60_000)
    fold = page.locator("#why-10000-second-reading > details")
    page.wait_for_function("document.querySelector('#why-10000-second-reading > details').open")
    assert fold.locator("p").first.is_visible()


def test_an_address_that_never_was_stays(reader):
    page = reader.open("chapters/10_attention.html#no-such-heading")
    page.wait_for_function("window.moved")
    assert page.url.endswith("10_attention.html#no-such-heading") and reader.wrong == []
