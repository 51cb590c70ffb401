"""The page that is printed: whole, linked within itself, with its answers at the end."""

import re
import subprocess
import sys

import pdf
import pytest
from bs4 import BeautifulSoup
from reading import ROOT
from scripts import script

web = script("docs/build.py")
STEMS = ["10_attention", "33_t5"]


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Two chapters as they are printed, from the site in its usual place or from one of its own."""
    site = web.BUILD / "html" if web.fresh(web.BUILD) else web.build(tmp_path_factory.mktemp("pdf"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "SITE", site)
        return BeautifulSoup(pdf.book(STEMS, {"33_t5": 205}), "html.parser"), site.parent


def test_all_is_there_and_what_moves_is_not(printed):
    page, folder = printed
    assert [h.get_text().split(". ")[0] for h in page.find_all("h1")[2:4]] == ["10", "33"]
    assert len(page.select("div.math")) > 20 and len(page.select("img")) > 8
    assert not page.select("button, input, .cell_output script, details.hide")
    for picture in page.select("img"):
        assert (folder / picture["src"]).exists()


def test_no_heading_is_left_behind(printed):
    """A heading stands beside what follows it, so that a page can't end with it."""
    page, _ = printed
    after = [h.find_next_sibling() for h in page.select(".chapter :is(h2, h3)")]
    assert len(after) > 30 and all(a is not None and a.name != "section" for a in after)


def test_links_lead_to_places_of_the_same_page(printed):
    page, _ = printed
    ids = {tag["id"] for tag in page.find_all(id=True)}
    inside = [a["href"][1:] for a in page.select("a[href^='#']")]
    assert len(inside) > 60
    own = [name for name in inside if name.startswith((*STEMS, "solution"))]
    assert set(own) <= ids and len(own) > 30
    others = [a["href"] for a in page.select("a[href]") if not a["href"].startswith(("#", "http"))]
    assert others == []


def test_hints_and_solutions_stand_at_the_end(printed):
    page, _ = printed
    whole = page.get_text()
    before, _, behind = whole.rpartition("Hints and solutions")
    assert "Solution." not in before and "Hint 1." not in before
    exercises = re.findall(r"^Exercise \d", behind, re.M)
    assert len(exercises) == behind.count("Solution.") > 5
    assert before.count("Hints and solution") >= len(exercises)


def test_contents_have_the_pages_of_the_first_print(printed):
    page, _ = printed
    rows = {li.a["href"][1:]: li.span.get_text() for li in page.select(".contents li")}
    assert rows["33_t5"] == "205" and rows["10_attention"] == ""
    assert {"SYMPTOMS", "GLOSSARY", "solutions"} <= set(rows)
    objects = (
        b"\n7 0 obj\n<</Type /Page\n>>\n9 0 obj\n<</Type /Pages\n>>\n4 0 obj\n<</Type /Page\n>>"
    )
    places = b"\n12 0 obj\n<</33_t5 [4 0 R /XYZ 6 635 0]\n/33_t5--exercises [7 0 R /XYZ 6 9 0]>>"
    assert pdf.pages_of(objects + places) == {"33_t5": 2, "33_t5--exercises": 1}


def test_without_chromium_no_pdf_is_printed_and_nothing_fails():
    command = [sys.executable, str(ROOT / "docs" / "pdf.py"), "10_attention"]
    done = subprocess.run(command, env={"PATH": ""}, capture_output=True, text=True)
    assert done.returncode == 0 and "no Chromium" in done.stdout
