"""The built web book: complete, linked, searchable, and silent towards other servers."""

import ast
import base64
import hashlib
import html
import json
import os
import re
import subprocess
import sys
import time
import types
import urllib.parse
from fnmatch import fnmatchcase
from html.parser import HTMLParser

import maths
import nbformat
import pdf
import pytest
import sections
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont
from reading import NOTEBOOKS, ROOT, prose_of, tables, without_code
from scripts import script
from web import split_source

import pe_numpy
from pe_numpy.contents import chapter_of
from pe_numpy.copy.copy import SOLUTIONS
from pe_numpy.homework.release import STUBS as UNSOLVED

web = script("docs/build.py")
BARS = {"pst-primary-sidebar", "pst-secondary-sidebar"}
PRINTED = ["10_attention", "33_t5"]
STUBS = [
    path for folder in (UNSOLVED, SOLUTIONS) for path in sorted(folder.glob("[0-9][0-9]_*.py"))
]


class Page(HTMLParser):
    """The parts of a page that the tests look at."""

    def __init__(self, path):
        super().__init__()
        self.path, self.text = path, path.read_text(encoding="utf-8")
        self.tags, self.ids = [], set()
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        self.ids |= {attrs.get("id"), attrs.get("name")}

    def all(self, tag, key):
        return [a[key] for t, a in self.tags if t == tag and a.get(key)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site in its usual place if it is fresh; otherwise one that is built for this test."""
    if web.fresh(web.BUILD):
        return web.BUILD / "html"
    return web.build(tmp_path_factory.mktemp("book"))


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A book that is made from one file, and its folder; Sphinx has no complaint."""
    (tmp_path / "input.txt").write_text("first")
    monkeypatch.setattr(web, "ROOT", tmp_path)
    monkeypatch.setattr(web, "INPUTS", ("*.txt",))
    monkeypatch.setattr(web, "lay_out", lambda source: None)
    monkeypatch.setattr(web.live, "lay", lambda site: None)

    def sphinx(command):
        (tmp_path / "html").mkdir()
        return types.SimpleNamespace(returncode=0)

    monkeypatch.setattr(web.subprocess, "run", sphinx)
    (tmp_path / "html").mkdir()
    return tmp_path


@pytest.mark.parametrize("mark", [None, b"", b"17", b"12:30", b"\xff", b"nan"], ids=repr)
def test_without_a_whole_mark_the_site_is_built_anew(mark, small):
    if mark is not None:
        (small / "html" / ".built").write_bytes(mark)
    os.utime(small / "input.txt", (99, 99))
    assert not web.fresh(small)
    (small / "html" / "old.html").write_text("of an earlier build")
    os.utime(small / "input.txt")
    time.sleep(0.02)
    assert not (web.build(small) / "old.html").exists()
    assert web.fresh(small)


def test_a_fresh_site_stays_and_one_that_is_older_does_not(small):
    (small / "html" / ".built").write_text("100")
    os.utime(small / "input.txt", (99, 99))
    (small / "html" / "page.html").write_text("as it was")
    assert (web.build(small) / "page.html").exists()
    os.utime(small / "input.txt", (101, 101))
    assert not (web.build(small) / "page.html").exists()


@pytest.mark.parametrize("place", ["rmtree", "run", "lay"])
def test_a_build_that_is_broken_off_leaves_no_mark(place, small, monkeypatch):
    def broken(*_, **__):
        raise KeyboardInterrupt

    (small / "html" / ".built").write_text("100")
    owner = {"rmtree": web.shutil, "run": web.subprocess, "lay": web.live}[place]
    monkeypatch.setattr(owner, place, broken)
    with pytest.raises(KeyboardInterrupt):
        web.build(small)
    assert not (small / "html" / ".built").exists() and not web.fresh(small)


@pytest.fixture(scope="module")
def pages(site):
    return {str(path.relative_to(site)): Page(path) for path in site.rglob("*.html")}


def test_every_chapter_has_a_page_with_the_one_before_and_the_one_after(pages):
    for path in NOTEBOOKS:
        page = pages[f"chapters/{path.stem}.html"]
        around = {a.get("title"): a.get("href") for t, a in page.tags if t == "a"}
        assert {"previous page", "next page"} <= set(around), path.stem


def test_no_page_asks_another_server(pages, site):
    other = re.compile(r"(https?:)?//")
    for name, page in pages.items():
        for tag, attrs in page.tags:
            if tag == "a" or (tag == "link" and attrs.get("rel") == "canonical"):
                continue  # followed only by a click
            for key in ("src", "href", "srcset", "data", "poster"):
                assert not other.match(attrs.get(key) or ""), (name, tag, attrs)
    for path in site.rglob("*.css"):
        outside = re.findall(
            r"(?:@import|url\()\s*[\"']?((?:https?:)?//[^\"')]+)", path.read_text()
        )
        assert not outside, path


def test_every_local_link_and_picture_is_there(pages, site):
    for name, page in pages.items():
        targets = [*page.all("a", "href"), *page.all("img", "src"), *page.all("script", "src")]
        for target in targets + page.all("link", "href"):
            file, _, anchor = target.partition("#")
            if re.match(r"\w+:", target):
                continue
            file = urllib.parse.unquote(file.partition("?")[0])
            place = (page.path.parent / file).resolve() if file else page.path
            assert place.exists(), (name, target)
            if anchor and place.suffix == ".html":
                other = pages[str(place.relative_to(site.resolve()) if file else name)]
                assert urllib.parse.unquote(anchor) in other.ids, (name, target)


def test_each_function_leads_to_its_chapter_and_back(pages):
    stems = {int(path.stem[:2]): path.stem for path in NOTEBOOKS}
    for function in pe_numpy.__all__:
        module = getattr(pe_numpy, function).__module__
        page = pages[f"api/{module}.html"]
        assert f"{module}.{function}" in page.ids
        if chapter_of(function) in stems:
            stem = stems[chapter_of(function)]
            assert f"../chapters/{stem}.html" in page.all("a", "href"), function
            back = pages[f"chapters/{stem}.html"].all("a", "href")
            assert f"../api/{module}.html#{module}.{function}" in back, function
        assert any(a.startswith("../_modules/") for a in page.all("a", "href")), "no source"


@pytest.fixture(scope="module")
def found(site):
    """All that the search knows: the sections of the book."""
    text = (site / "_static" / "sections.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("window.sections=").rstrip(";\n"))


def test_search_knows_each_term_of_the_glossary(found):
    page = (ROOT / "notebooks" / "GLOSSARY.md").read_text(encoding="utf-8")
    terms = {f"{row[0]} ({row[1]})" for _, rows in tables(page) for row in rows}
    assert len(terms) > 200
    assert terms == {s["title"] for s in found if "GLOSSARY.html#" in s["url"]}


def test_each_term_leads_to_its_place_in_the_book(found, pages):
    page = (ROOT / "notebooks" / "GLOSSARY.md").read_text(encoding="utf-8")
    precise = len(re.findall(r"\(\d\d_\w+\.ipynb#[^)]+\) \|$", page, re.M))
    places = [s["place"] for s in found if "GLOSSARY.html#" in s["url"]]
    assert precise > 100 and sum("#" in place for place in places) == precise
    for place in places:
        file, _, anchor = place.partition("#")
        assert not anchor or anchor in pages[file].ids, place
    assert sum("said" in section for section in found) > 80


def test_search_knows_each_section_and_each_function(found, pages):
    for section in found:
        file, _, anchor = section["url"].partition("#")
        assert not anchor or anchor in pages[file].ids, section["url"]
    urls = {s["url"] for s in found}
    for path in NOTEBOOKS:
        text = "\n".join(prose_of(nbformat.read(path, as_version=4).cells))
        own = [url for url in urls if url.startswith(f"chapters/{path.stem}.html")]
        headings = len(re.findall(r"^#{1,4} ", re.sub(r"```.*?```", "", text, flags=re.S), re.M))
        assert headings - 4 <= len(own) <= headings, path.stem  # some have no words of their own
    for function in pe_numpy.__all__:
        module = getattr(pe_numpy, function).__module__
        assert f"api/{module}.html#{module}.{function}" in urls


def test_the_search_is_that_of_its_package(site):
    """The engine is the published file, below its licence."""
    text = (site / "_static" / "minisearch.js").read_text(encoding="utf-8")
    licence, _, code = text.partition("*/\n")
    assert "MiniSearch 7.2.0" in licence and "Permission is hereby granted" in licence
    sha = "03c27931eb603af1d3358579e9885eafdb6a2f5fa9929557b3e77d7e99d06d03"
    assert hashlib.sha256(code.encode()).hexdigest() == sha


def test_every_file_of_others_has_a_row_among_the_third_parties(site, pages):
    own = {p.name for folder in ("docs/_static", "figures") for p in (ROOT / folder).iterdir()}
    own = own - {"minisearch.js"} | {"sections.js", "moved.js"}
    names = {
        path.relative_to(site / "_static").as_posix()
        for path in (site / "_static").rglob("*")
        if path.is_file() and path.name not in own
    }
    rows = tables((ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8"))[1][1]
    patterns = [p for _, files, *_ in rows for p in re.findall(r"`([^`]+)`", files)]
    assert [n for n in sorted(names) if not any(fnmatchcase(n, p) for p in patterns)] == []
    live = bool(web.live.missing())
    for pattern in patterns:
        if not (live and pattern.startswith("live/")):
            assert any(fnmatchcase(name, pattern) for name in names), pattern
    text = pages["third_party.html"].text
    for words in ("Copyright 2022 Luca Ongaro", "Mozilla Public License", "SIL OPEN FONT LICENSE"):
        assert words in text
    assert "third_party.html" in pages["index.html"].text


def formulas_of(path):
    """The formulas of a chapter as they are written, and whether each stands by itself."""
    cells = nbformat.read(path, as_version=4).cells
    text = without_code("\n\n".join(prose_of(cells)))
    found = re.findall(r"(?<!\\)\$\$(.+?)\$\$|(?<!\\)\$(.+?)(?<!\\)\$", text, re.S)
    return [(" ".join((own or line).split()), bool(own)) for own, line in found]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_formula_of_a_chapter_is_on_its_page(path, pages):
    article = BeautifulSoup(pages[f"chapters/{path.stem}.html"].text, "html.parser").article
    found = []
    for formula in article.select("math"):
        tex = formula.select_one("annotation").extract().get_text()
        found.append((" ".join(tex.split()), formula.get("display") == "block"))
        assert formula.get_text(strip=True), tex
    assert found == formulas_of(path)
    for code in article.select("pre, code, script, .output"):
        code.extract()
    assert re.findall(r"\$|\\[a-zA-Z{(\[]+", article.get_text()) == []


def test_the_font_has_what_the_formulas_draw(pages, site):
    with TTFont(site / "_static" / "maths.woff") as font:
        known = set(font.getBestCmap())
    formulas = re.findall(r"<math.*?</math>", "".join(p.text for p in pages.values()), re.S)
    signs = {sign for formula in formulas for sign in maths.signs(formula) if sign.isprintable()}
    assert len(signs) > 100
    assert {sign for sign in signs if ord(sign) not in known} == set()


def test_a_chapter_hands_out_its_notebook(pages):
    for path in NOTEBOOKS:
        page = pages[f"chapters/{path.stem}.html"]
        links = [a["href"] for t, a in page.tags if t == "a" and a.get("class") == "notebook"]
        assert len(links) == 1
        fetched, own = (json.loads(p.read_text()) for p in (page.path.parent / links[0], path))
        for notebook in (fetched, own):  # the figures may be smaller, but are there
            pictures = [
                output["data"].pop("image/png")
                for cell in notebook["cells"]
                for output in cell.get("outputs", [])
                if "image/png" in output.get("data", {})
            ]
            notebook["pictures"] = len(pictures)
            assert all(base64.b64decode(picture)[1:4] == b"PNG" for picture in pictures)
        assert fetched == own


def test_arxiv_ids_are_links(pages):
    for path in NOTEBOOKS:
        text = "\n".join(prose_of(nbformat.read(path, as_version=4).cells))
        links = pages[f"chapters/{path.stem}.html"].all("a", "href")
        for number in re.findall(r"(?<!`)arXiv:(\d{4}\.\d{4,5})", text):
            assert f"https://arxiv.org/abs/{number}" in links, (path.stem, number)


def test_sources_fold_and_are_coloured(pages):
    page = pages["chapters/33_t5.html"].text
    source = page.partition("<summary>Source of t5_bias</summary>")[2].partition("</details>")[0]
    assert 'class="k">def</span>' in source and 'class="k">return</span>' in source
    assert "shapes:" not in source  # what else the cell prints stays open


def test_second_readings_fold_below_their_headings(pages):
    for path in NOTEBOOKS:
        text = "\n".join(prose_of(nbformat.read(path, as_version=4).cells))
        wanted = re.findall(r"^#{2,3} .* \(second reading\)$", text, re.M)
        page = BeautifulSoup(pages[f"chapters/{path.stem}.html"].text, "html.parser")
        folds = page.select("section > details.second:not([open])")
        heads = [fold.select("summary > :is(h2, h3)") for fold in folds]
        assert len(folds) == len(wanted) == sum(len(h) == 1 for h in heads), path.stem
        assert all("(second reading)" in h[0].get_text() for h in heads)
        for fold in folds:  # all that belongs to the section
            assert fold.parent.find_all(True, recursive=False)[-1] is fold
    theorem = page_of(pages, "40_rope_derived").select_one("details.second > summary + *")
    assert len(theorem.parent.select("section h3")) >= 3


def page_of(pages, stem):
    return BeautifulSoup(pages[f"chapters/{stem}.html"].text, "html.parser")


def test_an_anchor_that_is_gone_leads_to_one_that_is_there(pages, site):
    """Of each row of anchors.csv: no page has the old one, and its place of today exists."""
    text = (site / "_static" / "moved.js").read_text(encoding="utf-8")
    moved = json.loads(text.removeprefix("window.moved=").rstrip(";\n"))
    rows = list(sections.renamed())
    assert len(rows) > 500
    assert len({(page, sections.key(old)) for page, old, *_ in rows}) == len(rows)
    for page, old, other, new in rows:
        assert sections.key(old) not in {
            sections.key(name) for name in pages[f"chapters/{page}.html"].ids if name
        }, (page, old)
        file, _, anchor = moved[page][sections.key(old)].partition("#")
        assert file == ("" if other == page else f"{other}.html"), (page, old)
        assert not new or sections.key(anchor) == sections.key(new), (page, old)
        ids = pages[f"chapters/{file or f'{page}.html'}"].ids
        assert anchor in ids if new else not anchor, (page, old)
    assert moved["10_attention"]["shortanswers"] == "#in-short"


def test_what_is_printed_around_a_source_stays():
    source = "@cached\ndef f(x):\n    return (\n        x\n    )\n\n\nclass A:\n    x: int"
    for before, after in (("", ""), ("1\n", ""), ("", "\nshapes: (1, 2)"), ("a\nb\n", "\nc")):
        parts = split_source(before + source + after)
        assert parts[1] == source
        assert (parts[0], parts[2]) == (before.strip("\n"), after.strip("\n"))
    assert split_source("plain: 3") == ("plain: 3", "", "")
    assert split_source("def no code at all") == ("def no code at all", "", "")


def test_who_shows_a_link_is_told_what_it_leads_to(pages, site):
    """A title that says the benefit, the question of the chapter, and a picture of its own."""
    told = {
        name: {a["property"]: a["content"] for t, a in page.tags if "og:" in a.get("property", "")}
        for name, page in pages.items()
    }
    pictures = set()
    for stem, chapter in web.toc.chapters().items():
        said = told[f"chapters/{stem}.html"]
        title = html.unescape(pages[f"chapters/{stem}.html"].text.partition("<title>")[2])
        assert said["og:title"] == chapter["benefit"] == title.partition(" \u2014 ")[0]
        assert said["og:description"] == chapter["question"]
        assert said["og:image"].endswith(".png")  # nobody shows an SVG
        assert (site / "chapters" / said["og:image"]).resolve().is_file()
        pictures |= {said["og:image"]}
    assert (site / told["index.html"]["og:image"]).is_file()
    assert len(pictures) > 40


def test_the_front_page_has_doors_cards_and_a_way_to_cite(pages):
    page = pages["index.html"]
    routes = web.toc.read()["route"]
    assert len(re.findall('<div class="door[ "]', page.text)) == len(routes)
    ways = re.findall(r'<ol class="way">(.*?)</ol>', page.text)
    for route, way in zip((r for r in routes if r["chapters"]), ways, strict=True):
        assert re.findall(r'href="chapters/(\w+).html"', way) == route["chapters"]
    listed = page.text.partition('<div class="parts">')[2].partition("</div>")[0]
    chapters = web.toc.chapters()
    assert re.findall(r'href="chapters/(\w+).html"', listed) == list(chapters)
    assert re.findall(r"<small>(\d+) minutes", listed) == [
        str(c["minutes"]) for c in chapters.values()
    ]
    assert "@software" in page.text and "MIT licence" in page.text
    drawings = [a["aria-label"] for t, a in page.tags if a.get("class") == "whole"]
    assert [name[:12] for name in drawings] == ["The data pat", "The chapters"]


def test_side_bars_are_landmarks_and_each_page_has_its_icon(pages):
    for name, page in pages.items():
        bars = [a for t, a in page.tags if a.get("id", "") in BARS]
        assert bars and all(a.get("role") == "navigation" and a["aria-label"] for a in bars), name
        icons = [a["href"] for t, a in page.tags if t == "link" and a.get("rel") == "icon"]
        assert len(icons) == 1 and (page.path.parent / icons[0].partition("?")[0]).exists(), name


def test_symbols_have_a_page(pages):
    text = pages["symbols.html"].text
    for letter in "BDFHKLNSV":
        assert f">{letter}</annotation>" in text
    for module in web.modules():
        assert f"api/{module}.html" in pages["symbols.html"].all("a", "href")


def test_solutions_and_hints_fold(pages):
    for path in NOTEBOOKS:
        text = "\n".join(prose_of(nbformat.read(path, as_version=4).cells))
        page = pages[f"chapters/{path.stem}.html"]
        assert page.text.count("<summary>Solution</summary>") == text.count("<summary>Solution</s")
        assert all("open" not in a for t, a in page.tags if t == "details")


@pytest.mark.parametrize("path", STUBS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_homework_can_be_fetched(path, pages):
    page = pages["homework.html"]
    links = [a["href"] for t, a in page.tags if t == "a" and "download" in a]
    same = [h for h in links if (page.path.parent / h).read_bytes() == path.read_bytes()]
    assert len(same) == 1
    if path.parent == UNSOLVED:
        for node in ast.parse(path.read_text()).body:
            assert not isinstance(node, ast.FunctionDef) or node.name in page.text


def test_every_figure_has_a_text(pages):
    for name, page in pages.items():
        for tag, attrs in page.tags:
            assert tag != "img" or attrs.get("alt"), (name, attrs)


def test_the_site_is_small(site):
    """Below 0.65 MB a chapter, with reference, mathematics, search and notebooks."""
    live = site / "_static" / "live"  # Python, which a page fetches at the first click
    files = [path for path in site.rglob("*") if path.is_file() and live not in path.parents]
    assert sum(path.stat().st_size for path in files) < 6.5e5 * len(
        [*site.glob("chapters/[0-9]*.html")]
    )
    assert sum(path.stat().st_size for path in live.glob("*.js")) < 27e6


# ---- the page that is printed: whole, linked within itself, answers at the end ------------------


@pytest.fixture(scope="module")
def printed(site):
    """Two chapters as they are printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "SITE", site)
        return BeautifulSoup(pdf.book(PRINTED, {"33_t5": 205}), "html.parser"), site.parent


def test_all_is_there_and_what_moves_is_not(printed):
    page, folder = printed
    assert [h.get_text().split(". ")[0] for h in page.find_all("h1")[2:4]] == ["10", "33"]
    assert len(page.select("div.formula")) > 20 and len(page.select(".drawn")) > 8
    assert not page.select("button, input, .cell_output script, details.hide, details.second")
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
    own = [name for name in inside if name.startswith((*PRINTED, "solution"))]
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
    nowhere = {**os.environ, "PATH": ""}
    done = subprocess.run(command, env=nowhere, capture_output=True, text=True)
    assert done.returncode == 0 and "no Chromium" in done.stdout
