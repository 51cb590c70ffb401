"""No script gives an element a class whose rules were taken out of the style sheets."""

import sys
from pathlib import Path

import myst_nb
import pydata_sphinx_theme
import pytest
import sphinx_book_theme
from conftest import ROOT, SITE, resize, unfold

sys.path.insert(0, str(ROOT / "docs"))
import styles

PACKAGES = (myst_nb, pydata_sphinx_theme, sphinx_book_theme)
CLASSES = "() => [...document.querySelectorAll('[class]')].flatMap(e => [...e.classList])"


@pytest.fixture(scope="module")
def gone():
    """Classes that the sheets know and this site does not."""
    known = set()
    for package in PACKAGES:
        for pattern in styles.SHEETS:
            for path in Path(package.__file__).parent.rglob(pattern):
                known |= styles.classes(path.read_text(encoding="utf-8"))
    left = known - styles.words_of(SITE)
    assert len(known) > len(left) > 1000
    return left


def test_what_scripts_make_has_its_rules(gone, reader):
    def look():
        return gone & {*page.evaluate(CLASSES)}

    page = reader.open("index.html")
    assert not look()
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input").fill("alibi slopes")
    page.locator("#pst-search-dialog li").first.wait_for()
    assert not look()
    for name in ("chapters/33_t5.html", "homework.html", "break.html", "search.html?q=rope"):
        reader.open(name)
        unfold(page)
        assert not look()
    resize(page, 390)
    reader.open("chapters/33_t5.html")
    for toggle in (".primary-toggle", ".secondary-toggle"):
        page.locator(f"{toggle}:visible").click()
        assert not look()
        page.keyboard.press("Escape")
        page.locator("dialog[open]").wait_for(state="detached")
