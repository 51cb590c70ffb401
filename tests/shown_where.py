"""Where the chapters show each exercise's function: python tests/shown_where.py writes it down."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from pe_numpy.homework.known import SECTIONS
from pe_numpy.homework.registry import EXERCISES

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def text() -> str:
    """The table: a line a chapter, with the heading above the cell that shows each function.

    A function that no cell shows has the heading above the words "the name `function`".
    """
    found: dict[int, list[str]] = defaultdict(list)
    for exercise in sorted(EXERCISES.values(), key=lambda e: e.chapter):
        (chapter,) = NOTEBOOKS.glob(f"{exercise.chapter:02}_*.py")
        named = rf"the name `{exercise.name}`"
        shows = re.compile(rf"show_(source|short)\([^)]*\b{exercise.name}\b|{named}")
        before, shown, _ = _parted(chapter.read_text(encoding="utf-8"), shows)
        headings = re.findall(r"^# ###? (.+)$", before, re.M)
        if shown and headings:
            found[exercise.chapter].append(f"{exercise.name} = {_quoted(headings[-1])}")
    return "".join(f"{chapter} = {{ {', '.join(rows)} }}\n" for chapter, rows in found.items())


def _parted(source: str, shows: re.Pattern[str]) -> tuple[str, str, str]:
    match = shows.search(source)
    return source.partition(match[0]) if match else (source, "", "")


def _quoted(heading: str) -> str:
    return '"' + heading.replace("\\", "\\\\").replace('"', '\\"') + '"'


if __name__ == "__main__":
    SECTIONS.write_text(text(), encoding="utf-8")
