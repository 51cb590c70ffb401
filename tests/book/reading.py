"""What the tests of the book share: the chapters, and how to read tables."""

import functools
import multiprocessing
import os
import platform
import re
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import matplotlib
import nbformat
from scripts import script

from pe_numpy.book import picture

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


# ---- chapters as they run -----------------------------------------------------------------------


@functools.cache
def process_with(**settings):
    """A process with environment variables of its own, which runs one chapter after another."""
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        pool.submit(os.getpid).result()  # it is there now, with its environment
    finally:
        os.environ.clear()
        os.environ.update(before)
    return pool


@functools.cache
def run_apart(path, **settings):
    """What a chapter draws, name -> (PNG, SVG), and the errors of its solutions, code -> text."""
    return process_with(**settings).submit(run_here, path).result()


def run_here(path):
    """The same, in this process."""
    build, figures, answers = script("notebooks/build.py"), {}, {}

    def keep(name, figure):
        figures[name] = picture(figure, "png"), picture(figure, "svg")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        variables = build.run(path.with_suffix(".py"), keep)
        for solution in solutions(path):
            try:
                exec(solution, dict(variables))
                answers[solution] = ""
            except Exception as error:
                answers[solution] = repr(error)
    return figures, answers


def solutions(path):
    """The code of a chapter's solutions."""
    return re.findall(r"```python\n(.*?)```", exercises(path), re.S)


def exercises(path):
    """The text of a chapter's exercises."""
    text = "\n".join(prose_of(nbformat.read(path, as_version=4).cells))
    return text.partition("## Exercises")[2].partition("\n## ")[0]
