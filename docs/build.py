"""Build the web book: lay out its pages from chapters, docstrings and contents, and run Sphinx.

Usage: python docs/build.py

The site is in docs/_build/html: open index.html there, with or without a server. If nothing that it
is made from is newer, it stays as it is.
"""

from __future__ import annotations

import html
import inspect
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import breaks
import chooser
import desk
import drawings
import explore
import live
import nbformat
import toc

import pe_numpy
from pe_numpy import contents
from pe_numpy.book.cards import card
from pe_numpy.contents import chapter_of
from pe_numpy.copy.copy import SOLUTIONS
from pe_numpy.files import write_whole
from pe_numpy.homework.release import STUBS

HERE = Path(__file__).parent
ROOT = HERE.parent
BUILD = HERE / "_build"
NOTEBOOKS = ROOT / "notebooks"
INPUTS = (
    "docs/*.*",
    "docs/_static/*",
    "docs/_build/live/pyodide*",
    "docs/_build/live/*.whl",
    "docs/licences/*",
    "requirements/live.toml",
    "docs/_templates/*",
    "figures/*.png",
    "figures/*.svg",
    "notebooks/*.ipynb",
    "notebooks/*.md",
    "notebooks/contents.toml",
    "notebooks/results/*.*",
    "pe_numpy/**/*.py",
    "pe_numpy/book/*.csv",
    "CHANGELOG.md",
    "CITATION.cff",
    "THIRD_PARTY.md",
    "tests/golden/models/**/*.*",
    "tests/golden/gguf/llama.gguf",
)


def chapters() -> list[Path]:
    """All executed chapters, in order."""
    return sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def chapter_link(number: int, words: str, up: str = "") -> str:
    """A link to a chapter, or the words alone if it is still to come."""
    stem = next((p.stem for p in chapters() if int(p.stem[:2]) == number), None)
    return f"[{words}]({up}chapters/{stem}.ipynb)" if stem else words


def pages() -> dict[str, str]:
    """Every page of the book: its file, and what it says."""
    found = {f"chapters/{p.name}": with_cards(p) for p in chapters()}
    for name in ("CARDS.md", "INDEX.md", "SYMPTOMS.md"):
        found[f"chapters/{name}"] = (NOTEBOOKS / name).read_text(encoding="utf-8")
    found |= {f"api/{module}.md": api_page(module) for module in modules()}
    found["api/index.md"] = api_index()
    found["homework.md"] = desk.page(chapter_link)
    found["break.md"] = breaks.page()
    found["symbols.md"] = symbols()
    found["chapters/GLOSSARY.md"] = glossary()
    found["changes.md"] = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found["third_party.md"] = (ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8")
    found["index.md"] = front()
    return found


def with_cards(path: Path) -> str:
    """A chapter, with its figures to explore, its table, and the cards that its end leads to."""
    number = int(path.stem[:2])
    notebook = nbformat.read(path, as_version=4)
    explore.add_figures(number, notebook)
    chooser.add_table(number, notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = breaks.with_sandbox(desk.with_link(cell.source, path.stem))
            for name in re.findall(r"\]\(CARDS\.md#(\w+)\)", cell.source):
                head, _, text = card(name).partition("\n")
                cell.source += f"\n\n<details><summary>{head}</summary>\n\n"
                cell.source += f"```text\n{text}\n```\n\n</details>"
    if known := letters(number):
        notebook.cells.append(nbformat.v4.new_markdown_cell(known, id="letters"))
    return nbformat.writes(notebook)


def lay_out(source: Path) -> None:
    """Write the sources of all pages, and the exercises beside them."""
    shutil.rmtree(source, ignore_errors=True)
    for name, text in pages().items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    exercises = source / "exercises"
    for folder, target in (
        (STUBS, exercises),
        (SOLUTIONS, exercises / "solutions"),
    ):
        shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__*"))


# ---- reference ----------------------------------------------------------------------------------


def modules() -> dict[str, list[str]]:
    """Public names by the module that defines them, in the order of the table of contents."""
    found: dict[str, list[str]] = {}
    for _, names in contents.places():
        for name in names:
            found.setdefault(getattr(pe_numpy, name).__module__, []).append(name)
    return found


def api_page(module: str) -> str:
    """Give the reference of one module."""
    names = ", ".join(modules()[module])
    short = module.removeprefix("pe_numpy.")
    line = f"from pe_numpy import {names}"
    if len(line) > 88:
        rows = textwrap.indent(textwrap.fill(f"{names},", 80), "    ")
        line = f"from pe_numpy import (\n{rows}\n)"
    use = f"```python\n{line}\n```"
    whole = f"```{{eval-rst}}\n.. automodule:: {module}\n   :members: {names}\n```\n"
    return f"# {short}\n\n{use}\n\n{whole}"


def api_index() -> str:
    """List all functions by place, with their chapters."""
    rows = ["# Reference", "", "Every public function, by the place at which position enters.", ""]
    for place, names in contents.places():
        place = f"Place {place.replace('. ', ': ')}" if place[0].isdigit() else place
        rows += [f"## {place[:1].upper()}{place[1:]}", ""]
        rows += ["| function | what it computes | chapter |", "|---|---|---|"]
        for name in names:
            chapter = chapter_of(name)
            link = chapter_link(chapter, f"{chapter}", "../")
            summary = contents.summary_of(name).replace("|", r"\|")
            rows.append(f"| `{name}` | {escape(summary)} | {link} |")
        rows.append("")
    toc = "\n".join(modules())
    return "\n".join(rows) + f"\n```{{toctree}}\n:hidden:\n{toc}\n```\n"


def escape(text: str) -> str:
    """Plain text in Markdown: no emphasis, no formulas; `code` stays."""
    return re.sub(r"(`[^`]+`)|([*_$\\^`\[\]])", lambda m: m[1] or "\\" + m[2], text)


# ---- symbols ------------------------------------------------------------------------------------


def chapter_0(heading: str) -> str:
    """What chapter 0 says under a heading of the second level: its text, without the code."""
    notebook = nbformat.read(chapters()[0], as_version=4)
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def of_docstring(module: str, label: str) -> str:
    """What the docstring of a module says under a label, such as Axes or Symbols."""
    doc = inspect.getdoc(sys.modules[module]) or ""
    found = re.search(rf"^{label}: (.+?)(?=^[A-Z]\w+(?: from [\w ]+)?:|^$|\Z)", doc, re.M | re.S)
    return "" if found is None or found[1].startswith("none") else " ".join(found[1].split())


def letters(number: int) -> str:
    """What the letters of a chapter stand for, as its modules have it: folded, see letters.js."""
    rows = []
    for module, names in modules().items():
        said = " ".join(filter(None, (of_docstring(module, one) for one in ("Axes", "Symbols"))))
        if said and number in map(chapter_of, names):
            words = re.sub(r"`+([^`]+)`+", r"<code>\1</code>", html.escape(said, quote=False))
            name = module.rpartition(".")[2]
            rows.append(f'<dt><a href="../api/{module}.html">{name}</a></dt><dd>{words}</dd>')
    if not rows:
        return ""
    body = f'<dl>{"".join(rows)}</dl><p><a href="../symbols.html">All symbols</a></p>'
    opened = '<details class="letters"><summary>Letters of this chapter</summary>'
    return f"`````{{raw}} html\n{opened}<div>{body}</div></details>\n`````\n"


def symbols() -> str:
    """The letters of chapter 0, and those of each module's docstring, with their chapters."""
    letters = chapter_0("Letters for axes")
    small = re.search(r"Small letters .*?\. ", letters, re.S)
    axes = dict(re.findall(r"\$(\w)\$ \| (.+?) \|", letters))
    assert axes and small is not None
    rows = [
        "# Symbols",
        "",
        f"Letters, and what they stand for. {chapter_link(0, 'Chapter 0')} shows them at work.",
        "",
        "## Axes",
        "",
        "One letter means one axis, in the text, in comments and in the docstrings.",
        "",
        "| letter | axis |",
        "|---|---|",
        *(f"| ${letter}$ | {axis} |" for letter, axis in sorted(axes.items())),
        "",
        small[0].strip(),
        "",
        "## Letters by module",
        "",
        "What else a formula needs, as the docstring of each module has it.",
        "",
        "| module | letters | chapter |",
        "|---|---|---|",
    ]
    for module, names in modules().items():
        if said := of_docstring(module, "Symbols"):
            chapter = chapter_of(names[0])
            text = escape(said).replace("|", r"\|")
            link = f"[{module.removeprefix('pe_numpy.')}](api/{module}.md)"
            rows.append(f"| {link} | {text} | {chapter_link(chapter, str(chapter))} |")
    return "\n".join(rows) + "\n"


# ---- glossary -----------------------------------------------------------------------------------


def glossary() -> str:
    """The glossary as entries that the search and the index know."""
    page = (NOTEBOOKS / "GLOSSARY.md").read_text(encoding="utf-8")
    row = r"^\| (?!term|---)(.+?) \| (.+?) \| (.+?) \| \[(\d+)\]\((.+?)\) \|$"
    entries = [
        f"{term} ({chinese})\n  {meaning} ([chapter {int(chapter)}](../chapters/{place}))"
        for term, chinese, meaning, chapter, place in re.findall(row, page, re.M)
    ]
    return "# Glossary\n\n```{glossary}\n" + "\n\n".join(entries) + "\n```\n"


# ---- front page ---------------------------------------------------------------------------------


def front() -> str:
    """Give the front page: doors, the four places, the chapters part by part, what needs what."""
    page = explore.with_motion((HERE / "front.md").read_text(encoding="utf-8"))
    page = breaks.with_teaser(page)
    before, here, after = page.partition("<!-- doors -->\n")
    assert here, "front.md has no place for the doors"
    text = [before + doors() + after, "## The chapters\n", parts()]
    for part in toc.read()["part"]:
        files = "\n".join(f"chapters/{c['stem']}" for c in part["chapter"])
        text.append(f"\n```{{toctree}}\n:hidden:\n:caption: {part['title']}\n{files}\n```\n")
    rest = "break\nchapters/CARDS\nchapters/SYMPTOMS\nhomework\napi/index\nsymbols\n"
    rest += "chapters/GLOSSARY\nchapters/INDEX\nchanges\nthird_party"
    text.append(f"```{{toctree}}\n:hidden:\n:caption: Look things up\n{rest}\n```\n")
    text.append((HERE / "front_end.md").read_text(encoding="utf-8").replace("CITATION", citation()))
    return drawings.in_text("\n".join(text))


def doors() -> str:
    """The ways into the book: a door for each route, with its chapters and their short names."""
    text = ['<div class="doors">\n']
    for route in toc.read()["route"]:
        way = route["chapters"]
        first = route.get("door") or f"{way[0]}.ipynb"
        door = [f"[**{route['title']}**](chapters/{first})"]
        door.append(re.sub(r"\]\((?=\w)", "](chapters/", route["text"]))
        if way:
            door[0] += f" {len(way)} chapters, {toc.time_of(way)}"
            door.append('<ol class="way">')
            for stem in way:
                short = html.escape(re.split("[:(]", toc.title(stem))[0].strip())
                link = f'<a href="chapters/{stem}.html"><b>{stem[:2]}</b> {short}</a>'
                door[-1] += f"<li>{link}</li>"
            door[-1] += '</ol><p class="way-read" role="status"></p>'
        kind = "door wide" if way else "door"
        text.append("\n\n".join([f'<div class="{kind}">', *door, "</div>\n"]))
    return "\n".join([*text, "</div>"]) + "\n"


def parts() -> str:
    """A card for each part: its chapters with their questions, minutes and needs."""
    text = ['<p class="parts-read" role="status"></p><div class="parts">']
    for part in toc.read()["part"]:
        own = part["chapter"]
        text.append(f'<section class="part"><h3>{part["title"]}</h3>')
        count = f"{len(own)} chapters" if len(own) > 1 else "1 chapter"
        text.append(f"<p>{count}, {toc.time_of([c['stem'] for c in own])}</p><ul>")
        for c in own:
            needs = ", ".join(other[:2] for other in c["needs"])
            said = f"{c['minutes']} minutes" + (f", needs {needs}" if needs else "")
            link = f'<a href="chapters/{c["stem"]}.html">{html.escape(toc.title(c["stem"]))}</a>'
            text.append(f"<li><b>{c['stem'][:2]}</b> {link} <small>{said}</small><br>")
            text.append(f"{html.escape(c['question'])}</li>")
        text.append("</ul></section>")
    return "```{raw} html\n" + "\n".join([*text, "</div>"]) + "\n```\n"


def citation() -> str:
    """How to cite the book, from CITATION.cff."""
    said = dict(
        re.findall(r'^(\S+): "?(.+?)"?$', (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    )
    return "\n".join(
        [
            "```bibtex",
            "@software{pe_numpy,",
            f"  title   = {{{said['title']}}},",
            "  author  = {{The pe_numpy authors}},",
            f"  version = {{{said['version']}}},",
            f"  year    = {{{said['date-released'][:4]}}},",
            "}",
            "```",
        ]
    )


# ---- the site -----------------------------------------------------------------------------------


def fresh(base: Path) -> bool:
    """Whether a site is there that is newer than all that it is made from."""
    try:
        built = float((base / "html" / ".built").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none, or none that was written whole
        return False
    inputs = (path for pattern in INPUTS for path in ROOT.glob(pattern))
    return max(path.stat().st_mtime for path in inputs) < built


def build(base: Path) -> Path:
    """Build the site below a folder, unless it is fresh; return where it is.

    A warning is an error.
    """
    site = base / "html"
    if fresh(base):
        return site
    mark = site / ".built"
    mark.unlink(missing_ok=True)  # first: what is half deleted, or half built, is not fresh
    shutil.rmtree(site, ignore_errors=True)
    start = time.time()
    lay_out(base / "source")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-c", str(HERE), "-j", "2", "-W"]
    command += ["--keep-going", "-q", "-d", str(base / "doctrees"), str(base / "source"), str(site)]
    if subprocess.run(command).returncode:
        raise SystemExit("the web book was not built")
    live.lay(site)
    write_whole(mark, str(start))
    return site


def main() -> None:
    """Build the site in its usual place, with live cells if Python for the browser can be had."""
    why = live.fetch()
    site = build(BUILD)
    size = sum(f.stat().st_size for f in site.rglob("*") if f.is_file())
    print(f"the web book is in docs/_build/html ({size / 1e6:.1f} MB): open its index.html")
    if why:
        print(f"its cells can't be run in the page: {why}")


if __name__ == "__main__":
    main()
