"""What the tests of the book share: the chapters, and how to read tables."""

import platform
import re
import sys
from pathlib import Path

import matplotlib
import nbformat

matplotlib.use("Agg")
ROOT = Path(__file__).parent.parent.parent
LOCK = (ROOT / "requirements" / "dev.lock").read_text()
LOCKED = re.search(r"^matplotlib==(\S+)", LOCK, re.M)[1] == matplotlib.__version__
# Equal bytes are promised for the locked matplotlib on this platform; elsewhere equal pictures.
SAME_BYTES = LOCKED and sys.platform == "linux" and platform.machine() == "x86_64"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def prose_of(cells):
    """The texts of the Markdown cells."""
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


def outputs_of(cell):
    """All text that a code cell printed or displayed."""
    for output in cell.get("outputs", []):
        yield output.get("text", "")
        yield output.get("data", {}).get("text/plain", "")


def words_of(cells):
    """How many words a reader has before them: prose, code and what it prints."""
    return sum(len(t.split()) for c in cells for t in (c.source, *outputs_of(c)))


def tables(markdown):
    """Every table of a markdown text: its header cells, and its rows as lists of cells."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n?)+", markdown, re.M):
        rows = [[c.strip() for c in line.strip()[1:-1].split("|")] for line in block.splitlines()]
        found.append((rows[0], rows[2:]))
    return found


def without_code(markdown):
    """Prose alone: without fenced blocks and code spans."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", markdown, flags=re.S)


def solutions(path):
    """The code of a chapter's solutions."""
    return re.findall(r"```python\n(.*?)```", exercises(path), re.S)


def exercises(path):
    """The text of a chapter's exercises."""
    text = "\n".join(prose_of(nbformat.read(path, as_version=4).cells))
    return text.partition("## Exercises")[2].partition("\n## ")[0]
