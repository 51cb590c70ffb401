"""Print the whole web book: one page of all chapters, which a headless Chromium turns into a PDF.

Usage: python docs/pdf.py              the book
       python docs/pdf.py STEM...      some chapters, to look at

The PDF is docs/_build/pe_numpy.pdf, with contents and their pages, bookmarks, links between
chapters, and hints and solutions at the end. Chinese names need a font (on Debian: fonts-noto-cjk).
Where there is no Chromium, this says so and leaves it at that.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import toc
from bs4 import BeautifulSoup, Tag

SITE = Path(__file__).resolve().parent / "_build" / "html"
TARGET = SITE.parent / "pe_numpy.pdf"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
EXTRA = {"SYMPTOMS": "Symptoms", "GLOSSARY": "Glossary"}  # pages behind the chapters
# What moves, asks or copies has no place on paper.
DROPPED = "script, button, input, select, .headerlink, .notebook, .tag_hide-input .cell_input, "
DROPPED += "details.hide > summary, .explore-controls, .drawn .panel"
STYLE = Path(__file__).parent / "print.css"


def chapter(stem: str, solutions: list[str]) -> str:
    """A chapter as it is printed; its hints and solutions go to a list of their own."""
    page = (SITE / "chapters" / f"{stem}.html").read_text(encoding="utf-8")
    article = BeautifulSoup(page, "html.parser").select_one("article.bd-article")
    assert article is not None
    for tag in article.select(DROPPED):
        tag.decompose()
    for tag in article.find_all(True):
        if tag.get("id"):
            tag["id"] = f"{stem}--{tag['id']}"
        for key in ("src", "href"):
            if tag.get(key):
                tag[key] = moved(str(tag[key]), stem)
        if tag.name == "a" and not str(tag.get("href", "")).startswith(("#", "http")):
            tag.attrs.pop("href", None)  # the reference is not printed
    put_behind(article, stem, solutions)
    for tag in article.select("details.second > summary, details.second"):  # on paper all is open
        tag.unwrap()
    for heading in article.find_all(["h2", "h3"]):  # so that no page ends with two headings
        below = heading.find_next_sibling()
        if below is not None and below.name == "section":
            below.insert(0, heading.extract())
    for tag in article.find_all("details"):
        tag["open"] = ""
        if "hide" in (tag.get("class") or []):  # an output to predict: nothing unfolds on paper
            tag.name = "div"
            tag.attrs.clear()
    return str(article).replace("url(#", f"url(#{stem}--")  # what cuts a part of a figure


def moved(link: str, stem: str) -> str:
    """A link of a chapter, as it is on the page of all chapters."""
    if link.startswith("#"):
        return f"#{stem}--{link[1:]}"
    found = re.fullmatch(r"(\w+)\.html(?:#(.*))?", link)
    if found and (found[1] in EXTRA or found[1][:2].isdigit()):
        return f"#{found[1]}--{found[2]}" if found[2] else f"#{found[1]}"
    return link if re.match(r"\w+:", link) else f"html/{link.removeprefix('../')}"


def put_behind(article: Tag, stem: str, solutions: list[str]) -> None:
    """Move what a reader shall not see yet from the exercises to the end of the book."""
    kept: list[str] = []
    for section in article.select("section"):
        folded = [d for d in section.find_all("details", recursive=False) if is_answer(d)]
        heading = section.find(["h2", "h3", "h4"])
        if not folded or heading is None:
            continue
        name = f"solution--{section['id']}"
        link = BeautifulSoup(f'<p><a href="#{name}">Hints and solution</a></p>', "html.parser")
        folded[0].insert_before(link)
        kept.append(f'<h3 id="{name}"><a href="#{section["id"]}">{heading.get_text()}</a></h3>')
        for details in folded:
            summary = details.find("summary")
            assert isinstance(summary, Tag)
            kept.append(f"<p><b>{summary.get_text()}.</b></p>")
            summary.decompose()
            kept.append(f"<div>{details.decode_contents()}</div>")
            details.decompose()
    if kept:
        solutions += [f"<h2>Chapter {int(stem[:2])}</h2>", *kept]


def is_answer(details: Tag) -> bool:
    """Whether a folded part is a hint or a solution."""
    summary = details.find("summary", recursive=False)
    return summary is not None and summary.get_text().startswith(("Hint", "Solution"))


def contents(pages: dict[str, int]) -> str:
    """The table of contents: parts, chapters, what stands behind them, and on which page."""
    parts = {
        part["title"]: {c["stem"]: f"{int(c['stem'][:2])}. {toc.title(c['stem'])}" for c in own}
        for part in toc.read()["part"]
        if (own := part["chapter"])
    }
    parts["At the end"] = {**EXTRA, "solutions": "Hints and solutions"}
    rows = ['<h1 id="contents">Contents</h1><div class="contents">']
    for part, own in parts.items():
        rows.append(f"<p><b>{part}</b></p><ul>")
        for stem, title in own.items():
            line = f'<a href="#{stem}">{title}</a><i></i><span>{pages.get(stem, "")}</span>'
            rows.append(f"<li>{line}</li>")
        rows.append("</ul>")
    return "".join([*rows, "</div>"])


def pages_of(pdf: bytes) -> dict[str, int]:
    """On which page stands what the links of a PDF lead to, as Chromium writes it."""
    order = re.findall(rb"\n(\d+) 0 obj\n<</Type /Page\n", pdf)
    number = {page: n for n, page in enumerate(order, 1)}
    places = re.findall(rb"/([\w-]+) \[(\d+) 0 R /XYZ", pdf)
    return {name.decode(): number[page] for name, page in places if page in number}


def book(stems: list[str], pages: dict[str, int]) -> str:
    """The page of some chapters, or of all."""
    page = (SITE / "chapters" / "00_how_to_read.html").read_text(encoding="utf-8")
    style = re.search(r'href="\.\./(_static/pygments\.css[^"]*)"', page)
    assert style is not None
    solutions = ['<h1 id="solutions">Hints and solutions</h1>']
    stems = stems or [*toc.chapters(), *EXTRA]
    body = [f'<div class="chapter" id="{stem}">{chapter(stem, solutions)}</div>' for stem in stems]
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">',
            "<title>pe_numpy: a textbook that runs</title>",
            f'<link rel="stylesheet" href="html/{style[1]}">',
            '<link rel="stylesheet" href="html/_static/book.css">',
            '<link rel="stylesheet" href="html/_static/maths.css">',
            f"<style>{STYLE.read_text(encoding='utf-8')}</style></head><body>",
            '<h1 class="book">pe_numpy: a textbook that runs</h1>',
            "<p>Positional encodings and the Transformer, in pure NumPy. MIT licence.</p>",
            contents(pages),
            *body,
            *solutions,
            "</body></html>",
        ]
    )


def main() -> None:
    """Print the book, if there is a Chromium."""
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        print("no PDF was printed: there is no Chromium (on Debian: apt install chromium)")
        return
    start = time.time()
    page = SITE.parent / "print.html"
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    command += ["--disable-background-networking", "--generate-pdf-document-outline"]
    command += ["--virtual-time-budget=100000", f"--print-to-pdf={TARGET}", page.as_uri()]
    numbers: dict[str, int] = {}
    try:
        for _ in range(2):  # the first print tells the pages, the second has them in its contents
            page.write_text(book(sys.argv[1:], numbers), encoding="utf-8")
            subprocess.run(command, check=True, capture_output=True, timeout=1800)
            numbers = pages_of(TARGET.read_bytes())
    except subprocess.SubprocessError as error:
        print(f"no PDF was printed: {error}", file=sys.stderr)
        return
    finally:
        page.unlink(missing_ok=True)
    pages = len(re.findall(rb"/Type\s*/Page\b", TARGET.read_bytes()))
    size = TARGET.stat().st_size / 1e6
    print(f"{TARGET.name}: {pages} pages, {size:.1f} MB, in {time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
