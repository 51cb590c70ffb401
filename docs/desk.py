"""The homework page: the exercises of each chapter, to fetch as files, or to write in the page.

The page holds all stubs as text, and `_static/homework.js` opens an editor for one of them. Without
scripts, or without Python for the browser, the page is a table of files.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import pe_numpy
from pe_numpy.homework.release import STUBS
from pe_numpy.homework.runner import SECONDS

HEAD = """\
# Homework

Write the functions yourself. Each file below holds empty ones, each with its formula and its
shapes; hints stand at its end, the gentle ones first. Install `pe_numpy`, keep the file where you
like (`copy --stub` writes it, too), and ask what is still wrong:

```text
python -m pe_numpy copy --stub 33
python -m pe_numpy check 33_t5.py
```

The checker tries each function on inputs of many shapes, and names a mistake it knows.

"""
DESK = """\
<section class="homework" hidden data-version="{version}" data-seconds="{seconds:g}">
<p>Or write them here, also on a phone: <b>Write</b> in a row of the table opens an editor, and
<b>Check</b> runs the same checker in this page. Your text and your ticks stay in this browser.</p>
<details><summary>What cannot run in a page</summary>
<p>The command runs a file in a process of its own, which ends after {seconds:g} seconds for a
function, or at a limit of memory. A page has no such process and no limits: <b>Stop</b> ends a loop
without end. Answers have NumPy and Python’s own library, and no other. Points, deadlines and a
student’s own numbers belong to an assignment, which only the command knows.</p></details>
<div class="homework-desk" hidden></div>
<div class="homework-progress" hidden>
<label for="homework-line">For your teacher</label>
<textarea id="homework-line" readonly rows="3"></textarea>
<p><button type="button">Copy</button> <span role="status"></span></p>
</div>
</section>
"""


def page(chapter_link: Callable[[int, str], str]) -> str:
    """The exercises of each chapter: files to fetch, the command that checks them, an editor."""
    text = [raw(DESK.format(version=pe_numpy.__version__, seconds=SECONDS))]
    text += ["| chapter | file | functions to write |", "|---|---|---|"]
    solutions, stubs = [], []
    for path in sorted(STUBS.glob("[0-9][0-9]_*.py")):
        stub = path.read_text(encoding="utf-8")
        names = [node.name for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)]
        number = int(path.stem[:2])
        listed = ", ".join(f"`{name}`" for name in names)
        file = f"{{download}}`{path.name} <exercises/{path.name}>`"
        place = f'id="write-{path.stem}" class="homework-open" data-stub="{path.stem}"'
        text.append(
            f"| {chapter_link(number, str(number))} | {file} <span {place}></span> | {listed} |"
        )
        solved = f"{{download}}`{path.name} <exercises/solutions/{path.name}>`"
        solutions.append(f"- {chapter_link(number, f'chapter {number}')}: {solved}")
        stubs.append(kept(path.stem, stub))
    text += ["", "## Solutions", "", "Open them when yours passes, or when no hint is left.", ""]
    text += ["<details><summary>Show the files</summary>", "", *solutions, "", "</details>", ""]
    script = '<script defer src="_static/homework.js"></script>'
    return HEAD + "\n".join([*text, raw("\n".join([*stubs, script]))])


def raw(text: str) -> str:
    """HTML that is laid into a page as it is."""
    return "```{raw} html\n" + text.rstrip("\n") + "\n```\n"


def kept(stem: str, stub: str) -> str:
    """A stub as text in the page."""
    if "</" in stub or "<!--" in stub or "```" in stub:
        raise ValueError(f"kept: {stem}.py must not hold </, <!-- or ```, which end its text")
    return f'<script type="text/plain" data-stub="{stem}">\n{stub}</script>'


def with_link(source: str, stem: str) -> str:
    """A cell of a chapter; where its exercises begin, a link to the editor of their stub."""
    if not source.startswith("## Exercises") or not (STUBS / f"{stem}.py").exists():
        return source
    head, told, rest = source.partition(f"check {stem}.py` checks yours.")
    if not told:
        raise ValueError(f"with_link: the exercises of {stem} must name `check {stem}.py`")
    place = f"../homework.html#write-{stem}"
    link = f'<a class="homework-link" href="{place}">Or write them in the page.</a>'
    return f"{head}{told} {link}{rest}"
