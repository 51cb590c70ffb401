"""The table of contents: `notebooks/contents.toml`, read, and what is written from it.

Usage: python docs/toc.py        write the README's chapters and routes, FUNCTIONS.md's schemes
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pe_numpy.book.cards import facts
from pe_numpy.files import write_whole
from pe_numpy.judging.schemes import SCHEMES

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ROOT / "notebooks"
DOCUMENTS = "9"  # the part whose notebooks follow the five documents
DOCUMENTS_SAY = "What do five introductions say, section by section, and what in them is wrong?"
SECOND = " (second reading)"  # ends the heading of what a first reader may skip


def read() -> dict[str, Any]:
    """Parts with their chapters, and routes through them."""
    return tomllib.loads((NOTEBOOKS / "contents.toml").read_text(encoding="utf-8"))


def chapters() -> dict[str, dict[str, Any]]:
    """Every chapter by its stem, in the order of the book."""
    return {chapter["stem"]: chapter for part in read()["part"] for chapter in part["chapter"]}


def needs_weights(stem: str) -> list[str]:
    """The trained models that a chapter loads, by their names in `make real`; of most, none.

    Only `make real-book` executes such a chapter; all else takes it as it is committed.
    """
    return chapters().get(stem, {}).get("weights", [])


def trained() -> list[str]:
    """The chapters that need trained weights."""
    return [stem for stem in chapters() if needs_weights(stem)]


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
    if chapter.get("weights"):
        last += " To run it, fetch trained weights: `make real`."
    if stem[0] != DOCUMENTS:
        last += " Looking for an answer? [In short](#in-short)."
    return f"# {int(stem[:2])}. {title(stem)}\n\n*{chapter['question']}*\n\n{last}"


def second(text: str) -> int:
    """How many words of a source stand in second readings, outputs not counted."""
    words, level, prose = 0, 0, False
    for line in text.splitlines():
        if line.startswith("# %%"):
            prose = "[markdown]" in line
            continue
        if prose:
            line = line.removeprefix("#").strip()
        heading = re.match(r"##+(?= )", line) if prose else None
        if heading and (not level or len(heading[0]) <= level):
            level = len(heading[0]) if line.endswith(SECOND) else 0
        words += len(line.split()) if level else 0
    return words


def first_minutes(stem: str) -> float:
    """How long a chapter takes without its second readings, at 150 words a minute."""
    source = (NOTEBOOKS / f"{stem}.py").read_text(encoding="utf-8")
    return float(chapters()[stem]["minutes"] - second(source) / 150)


def time_of(stems: list[str]) -> str:
    """How long some chapters take together on a first reading, to an hour."""
    hours = max(1, round(sum(map(first_minutes, stems)) / 60))
    return f"{hours} hour{'s' * (hours > 1)}"


def table() -> str:
    """The chapters part by part, as the README has them: those of the documents in one row."""
    rows = ["| part | chapter | what it answers |", "|---|---|---|"]
    for part in read()["part"]:
        own = part["chapter"]
        heads = [f"**{part['title']}**", *[""] * (len(own) - 1)]
        if own[0]["stem"][0] == DOCUMENTS:
            links = " · ".join(f"[{c['stem'][:2]}](notebooks/{c['stem']}.ipynb)" for c in own)
            rows.append(f"| {heads[0]} | {links} | {DOCUMENTS_SAY} |")
            continue
        for head, c in zip(heads, own, strict=True):
            rows.append(f"| {head} | {link(c['stem'], 'notebooks/')} | {c['question']} |")
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


def schemes() -> str:
    """Every scheme with its card, place, chapter and function, as FUNCTIONS.md has them."""
    rows = ["| scheme | in texts | place | chapter | function |", "|---|---|---|---|---|"]
    for name, row in SCHEMES.items():
        chapter = f"[{row.chapter[:2]}]({row.chapter}.ipynb)"
        place = facts(name)["place"]
        card = f"[`{name}`](CARDS.md#{name})"
        rows.append(f"| {card} | {row.label} | {place} | {chapter} | `{row.function}` |")
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
    return between_marks(page, "chapters", table())


def functions() -> str:
    """FUNCTIONS.md with its schemes as they are."""
    page = (NOTEBOOKS / "FUNCTIONS.md").read_text(encoding="utf-8")
    return between_marks(page, "schemes", f"\n{schemes()}\n")


if __name__ == "__main__":
    write_whole(NOTEBOOKS / "FUNCTIONS.md", functions())
    write_whole(ROOT / "README.md", readme())
