"""The table of contents: `notebooks/contents.toml`, read, and what is written from it.

Usage: python docs/toc.py        write the README's chapters and routes
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pe_numpy.files import write_whole

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ROOT / "notebooks"
DOCUMENTS = "9"  # the part whose notebooks follow the five documents


def read() -> dict[str, Any]:
    """Parts with their chapters, and routes through them."""
    return tomllib.loads((NOTEBOOKS / "contents.toml").read_text(encoding="utf-8"))


def chapters() -> dict[str, dict[str, Any]]:
    """Every chapter by its stem, in the order of the book."""
    return {chapter["stem"]: chapter for part in read()["part"] for chapter in part["chapter"]}


def title(stem: str) -> str:
    """The title of a chapter, from its first line."""
    first = (NOTEBOOKS / f"{stem}.py").read_text(encoding="utf-8").split("\n", 2)[1]
    return first.partition(". ")[2]


def link(stem: str, folder: str = "") -> str:
    """A link to a chapter; its words are the number and the title."""
    return f"[{stem[:2]} {title(stem)}]({folder}{stem}.ipynb)"


def head(stem: str) -> str:
    """The first cell of a chapter: title, question, minutes, what it needs, where answers are."""
    chapter = chapters()[stem]
    needs = ", ".join(link(other) for other in chapter["needs"])
    last = f"{chapter['minutes']} minutes." + (f" Needs {needs}." if needs else "")
    if stem[0] != DOCUMENTS:
        last += " Looking for an answer? [In short](#in-short)."
    return f"# {int(stem[:2])}. {title(stem)}\n\n*{chapter['question']}*\n\n{last}"


def time_of(stems: list[str]) -> str:
    """How long some chapters take together, to half an hour."""
    known = chapters()
    hours = round(sum(known[stem]["minutes"] for stem in stems) / 30) / 2
    return f"{hours:g} hours"


def table() -> str:
    """The chapters part by part, as the README has them."""
    rows = ["| chapter | what it answers |", "|---|---|"]
    for part in read()["part"]:
        rows.append(f"| **{part['title']}** | |")
        for c in part["chapter"]:
            rows.append(f"| {link(c['stem'], 'notebooks/')} | {c['question']} |")
    return "\n".join(rows)


def routes(folder: str) -> str:
    """The ways through the book, for a page from which the chapters are in a folder."""
    rows = []
    for route in read()["route"]:
        way = " → ".join(f"[{stem[:2]}]({folder}{stem}.ipynb)" for stem in route["chapters"])
        text = re.sub(r"\]\((?=\w)", f"]({folder}", route["text"])
        hours = f" ({time_of(route['chapters'])})" if way else ""
        rows.append(f"- **{route['title']}**{hours}: {way + '. ' if way else ''}{text}")
    return "\n".join(rows)


def between_marks(page: str, name: str, new: str) -> str:
    """A page with the text between two marks replaced."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = page.partition(start)
    return f"{before}{start}\n{new}\n{end}{rest.partition(end)[2]}"


def readme() -> str:
    """The README with its chapters and routes as they are."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    page = between_marks(page, "routes", routes("notebooks/"))
    return between_marks(page, "chapters", f"\n{table()}\n")


if __name__ == "__main__":
    write_whole(ROOT / "README.md", readme())
