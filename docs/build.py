"""Build the web book: lay out its pages from chapters, docstrings and README, and run Sphinx.

Usage: python docs/build.py

The site is in docs/_build/html: open index.html there, with or without a server.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import nbformat

import pe_numpy
from pe_numpy.homework import contents

HERE = Path(__file__).parent
ROOT = HERE.parent
SOURCE = HERE / "_build" / "source"
PARTS = {
    0: "Begin",
    2: "Place 1: the token vector",
    5: "Places 3 and 4: scores and sums",
    11: "Two other ways",
    13: "Place 2: rotary, and longer texts",
    17: "The Transformer",
    22: "What holds",
}


def write(name: str, text: str) -> None:
    """Write a page if it has changed, so that Sphinx reads only what is new."""
    path = SOURCE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def chapters() -> list[Path]:
    """All executed chapters, in order."""
    return sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def chapter_link(number: int, words: str, up: str = "") -> str:
    """A link to a chapter, or the words alone if it is still to come."""
    stem = next((p.stem for p in chapters() if int(p.stem[:2]) == number), None)
    return f"[{words}]({up}chapters/{stem}.ipynb)" if stem else words


def lay_out() -> None:
    """Write the sources of all pages."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    for path in chapters():
        write(f"chapters/{path.name}", path.read_text(encoding="utf-8"))
    write("chapters/INDEX.md", (ROOT / "notebooks" / "INDEX.md").read_text(encoding="utf-8"))
    for module in modules():
        write(f"api/{module}.md", api_page(module))
    write("api/index.md", api_index())
    write("glossary.md", glossary())
    write("index.md", front())


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
    return f"# {short}\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :members: {names}\n```\n"


def api_index() -> str:
    """List all functions by place, with their chapters."""
    rows = ["# Reference", "", "Every public function, by the place at which position enters.", ""]
    for place, names in contents.places():
        rows += [f"## {place[:1].upper()}{place[1:]}", ""]
        rows += ["| function | what it computes | chapter |", "|---|---|---|"]
        for name in names:
            chapter = contents.chapter_of(name)
            link = chapter_link(chapter, f"{chapter}", "../")
            summary = contents.summary_of(name).replace("|", r"\|")
            rows.append(f"| `{name}` | {escape(summary)} | {link} |")
        rows.append("")
    toc = "\n".join(modules())
    return "\n".join(rows) + f"\n```{{toctree}}\n:hidden:\n{toc}\n```\n"


def escape(text: str) -> str:
    """Plain text in Markdown: no emphasis, no formulas."""
    return re.sub(r"([*_$\\^`\[\]])", r"\\\1", text)


# ---- glossary -----------------------------------------------------------------------------------


def glossary() -> str:
    """The glossary of chapter 0 as entries that the search and the index know."""
    notebook = nbformat.read(chapters()[0], as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    table = text.partition("## Glossary")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!term|---)(.+?) \| (.+?) \| (.+?) \| (\d+) \|$", table, re.M)
    entries = []
    for term, chinese, meaning, chapter in rows:
        where = chapter_link(int(chapter), f"chapter {chapter}")
        entries.append(f"{term} ({chinese})\n  {meaning} ({where})")
    return "# Glossary\n\n```{glossary}\n" + "\n\n".join(entries) + "\n```\n"


# ---- front page ---------------------------------------------------------------------------------


def questions() -> dict[str, tuple[str, str]]:
    """Title and question of each chapter, from the README."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = r"^\| \[(\d\d) (.+?)\]\(notebooks/.+?\) \| (.+?) \|"
    return {number: (title, asks) for number, title, asks in re.findall(row, readme, re.M)}


def front() -> str:
    """Give the front page: the four places, and the chapters as a path."""
    text = [(HERE / "front.md").read_text(encoding="utf-8")]
    asked = questions()
    starts = [*PARTS, 100]
    for start, end in pairwise(starts):
        own = [p for p in chapters() if start <= int(p.stem[:2]) < end]
        if own:
            text.append(f"### {PARTS[start]}\n")
            for path in own:
                title, question = asked.get(path.stem[:2], (path.stem, ""))
                link = f"[{title}](chapters/{path.stem}.ipynb)"
                text.append(f"- **{int(path.stem[:2])}** {link}: {question}")
            toc = "\n".join(f"chapters/{p.stem}" for p in own)
            text.append(f"\n```{{toctree}}\n:hidden:\n:caption: {PARTS[start]}\n{toc}\n```\n")
    rest = "api/index\nglossary\nchapters/INDEX"
    text.append(f"```{{toctree}}\n:hidden:\n:caption: Look things up\n{rest}\n```\n")
    return "\n".join(text)


def main() -> None:
    """Lay out the pages and build them; a warning is an error."""
    lay_out()
    target = HERE / "_build" / "html"
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-c", str(HERE), "-d"]
    command += [str(HERE / "_build" / "doctrees"), "-W", "--keep-going", "-q", "-j", "2"]
    if subprocess.run([*command, str(SOURCE), str(target)]).returncode:
        raise SystemExit("the web book was not built")
    size = sum(f.stat().st_size for f in target.rglob("*") if f.is_file())
    print(f"the web book is in docs/_build/html ({size / 1e6:.1f} MB): open its index.html")


if __name__ == "__main__":
    main()
