"""The built web book: complete, linked, searchable, and silent towards other servers."""

import ast
import json
import re
import urllib.parse
from html.parser import HTMLParser

import nbformat
import pytest
from reading import NOTEBOOKS, ROOT, load, prose_of, tables

import pe_numpy
from pe_numpy.homework.contents import chapter_of

web = load("docs")
STUBS = sorted((ROOT / "notebooks" / "exercises").rglob("[0-9][0-9]_*.py"))


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


def test_search_knows_each_term_of_the_glossary(site):
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    page = (ROOT / "notebooks" / "GLOSSARY.md").read_text(encoding="utf-8")
    terms = [(row[0], row[1]) for _, rows in tables(page) for row in rows]
    assert len(terms) > 200
    for term, chinese in terms:
        assert f"{term} ({chinese})".lower() in index["indexentries"]


def test_symbols_have_a_page(pages):
    text = pages["symbols.html"].text
    for letter in "BDFHKLNSV":
        assert rf"\({letter}\)" in text
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
    if path.parent.name == "exercises":
        for node in ast.parse(path.read_text()).body:
            assert not isinstance(node, ast.FunctionDef) or node.name in page.text


def test_every_figure_has_a_text(pages):
    for name, page in pages.items():
        for tag, attrs in page.tags:
            assert tag != "img" or attrs.get("alt"), (name, attrs)


def test_the_site_is_small(site):
    """Below 0.4 MB a chapter, reference and mathematics included."""
    live = site / "_static" / "live"  # Python, which a page fetches at the first click
    files = [path for path in site.rglob("*") if path.is_file() and live not in path.parents]
    assert sum(path.stat().st_size for path in files) < 4e5 * len(
        [*site.glob("chapters/[0-9]*.html")]
    )
    assert sum(path.stat().st_size for path in live.glob("*.js")) < 27e6
