"""The figure of chapter 72 as a table, schemes by questions, which chooser.js filters."""

from __future__ import annotations

import html
import re
from typing import Any

from nbformat import NotebookNode

from pe_numpy.book.plots.which_one import NAMES
from pe_numpy.judging.schemes import SCHEMES

CHAPTER, HEADING = 72, "## Why one grade"
OTHER_NAMES = {"rope_dynamic": "dynamic_ntk"}
ASKED = re.compile(r"^\| `(.+?)` \| (.+?\?) \|$", re.M)


def add_table(number: int, notebook: NotebookNode) -> None:
    """Put the table into its chapter, below the questions that explain the columns."""
    if number != CHAPTER:
        return
    figure = next(cell.source for cell in notebook.cells if "plots.answers_of_all(" in cell.source)
    cell = next(cell for cell in notebook.cells if HEADING in cell.source)
    said: dict[str, Any] = {}
    exec(figure.partition("plots.answers_of_all(")[0], said)  # `known` and `questions`
    asked = dict(ASKED.findall(cell.source))
    table = markup(said["known"], [(name, asked[name]) for name in said["questions"].split(", ")])
    before, _, after = cell.source.partition(HEADING)
    cell.source = f"{before}\n\n`````{{raw}} html\n{table}\n`````\n\n{HEADING}{after}"


def markup(known: dict[str, list[bool]], columns: list[tuple[str, str]]) -> str:
    """The table: a row for each scheme, which leads to its chapter."""
    heads = "".join(f'<th scope="col" data-asks="{html.escape(q)}">{n}</th>' for n, q in columns)
    rows = []
    for name, answers in known.items():
        chapter = SCHEMES[OTHER_NAMES.get(name, name)].chapter
        cells = "".join(f'<td class="{a}">{a}</td>' for a in ("no yes".split()[b] for b in answers))
        link = f'<a href="{chapter}.html">{html.escape(NAMES[name])}</a>'
        rows.append(f'<tr><th scope="row">{link}</th>{cells}</tr>')
    return "\n".join([
        '<div class="matrix"><table>',
        "<caption>The answers of the figure, for each scheme and question</caption>",
        f'<thead><tr><th scope="col">scheme</th>{heads}</tr></thead>',
        "<tbody>", *rows, "</tbody></table></div>",
        '<script defer src="../_static/chooser.js"></script>',
    ])  # fmt: skip
