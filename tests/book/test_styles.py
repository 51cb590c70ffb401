"""Style sheets of others lose rules for classes that are nowhere, and nothing else."""

import re
from pathlib import Path

import pytest
import styles

SHEET = """/*! by somebody */@charset "utf-8";@import url("a.css");
:root{--a: 1}.used,.gone>p{color:red}.gone{a:b}p:not(.gone),.used:is(.gone,.used){c:d}
@media (min-width:1px){.gone{e:f}.used .icon-2{g:h}}@media print{.gone{i:j}}
@font-face{src:url("x;y")}@keyframes k{from{l:m}to{n:o}}a[href$=".gone"]{p:q}.sm\\:used{r:s}"""


def test_rules_for_classes_that_are_nowhere_go():
    assert styles.lean(SHEET, {"used", "icon-2"}) == (
        '@charset "utf-8";@import url("a.css");:root{--a: 1}.used{color:red}'
        "p:not(.gone),.used:is(.gone,.used){c:d}"
        "@media (min-width:1px){.used .icon-2{g:h}}"
        '@font-face{src:url("x;y")}@keyframes k{from{l:m}to{n:o}}a[href$=".gone"]{p:q}'
    )


@pytest.mark.parametrize("pattern", styles.SHEETS)
def test_of_sheets_as_they_come_nothing_is_lost_if_all_classes_are_used(pattern):
    import myst_nb
    import pydata_sphinx_theme
    import sphinx_book_theme

    class All:
        def __contains__(self, name):
            return True

    def bare(css):
        return re.sub(r"/\*.*?\*/|\s", "", css, flags=re.S)

    found = 0
    for package in (pydata_sphinx_theme, sphinx_book_theme, myst_nb):
        for path in Path(package.__file__).parent.rglob(pattern):
            css = path.read_text(encoding="utf-8")
            assert bare(styles.lean(css, All())) == bare(css) != ""
            found += 1
    assert found


def test_a_site_keeps_what_its_pages_and_scripts_name(tmp_path):
    sheet = tmp_path / "_static" / "styles" / "pydata-sphinx-theme.css"
    sheet.parent.mkdir(parents=True)
    (tmp_path / "page.html").write_text('<p class="in-page">', encoding="utf-8")
    (tmp_path / "_static" / "a.js").write_text("e.classList.add('in-script')", encoding="utf-8")
    sheet.write_text("/*! mine */.in-page{a:b}.in-script{c:d}.nowhere{e:f}", encoding="utf-8")
    styles.lighten(tmp_path)
    assert sheet.read_text(encoding="utf-8") == "/*! mine */\n.in-page{a:b}.in-script{c:d}"
