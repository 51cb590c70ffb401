"""The page *Homework*: each stub is in it, as it is, and each chapter leads to its own."""

import desk
import nbformat
import pytest
from bs4 import BeautifulSoup
from reading import NOTEBOOKS

from pe_numpy.homework.release import STUBS
from pe_numpy.homework.runner import SECONDS

PAGE = BeautifulSoup(desk.page(lambda number, words: words), "html.parser")


def test_the_page_holds_each_stub_as_it_is():
    held = {one["data-stub"]: one.string for one in PAGE.select("script[data-stub]")}
    files = {path.stem: path.read_text(encoding="utf-8") for path in STUBS.glob("[0-9]*.py")}
    assert held == {stem: f"\n{text}" for stem, text in files.items()}
    places = PAGE.select(".homework-open")
    assert [one["data-stub"] for one in places] == sorted(files)
    assert [one["id"] for one in places] == [f"write-{stem}" for stem in sorted(files)]
    assert float(PAGE.select_one("section.homework")["data-seconds"]) == SECONDS


def test_each_chapter_with_stubs_leads_to_its_own():
    leads = set()
    for path in NOTEBOOKS:
        path = path.with_suffix(".ipynb")
        for cell in nbformat.read(path, as_version=4).cells:
            new = desk.with_link(cell.source, path.stem)
            if new != cell.source:
                assert f"check {path.stem}.py` checks yours. <a class=" in new
                assert f'href="../homework.html#write-{path.stem}"' in new
                leads.add(path.stem)
    assert leads == {path.stem for path in STUBS.glob("[0-9]*.py")}


def test_what_would_be_lost_is_refused():
    with pytest.raises(ValueError, match=r"kept: 99_x.py must not hold"):
        desk.kept("99_x", "x = '</script>'\n")
    with pytest.raises(ValueError, match="the exercises of 31_shaw must name"):
        desk.with_link("## Exercises\n\nNone.", "31_shaw")
