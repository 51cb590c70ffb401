"""Execute the chapters: from each reviewed source NN_stem.py to the notebook NN_stem.ipynb.

Usage: python notebooks/build.py [STEM ...]     (all chapters without a stem)

A source is a text file in percent format. It is executed from top to bottom in a fresh kernel, two
chapters at a time, and written with its outputs. What is written depends on source and outputs
alone: no time stamps, no random cell ids; so a second run leaves the files as they are.
"""

from __future__ import annotations

import hashlib
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).parent
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def sources() -> list[Path]:
    """Every reviewed source, in the order of the book."""
    return sorted(HERE.glob("[0-9][0-9]_*.py"))


def read_source(path: Path) -> nbformat.NotebookNode:
    """Return the notebook that a source describes, without outputs.

    A cell's id is made from its text, so it stays when cells are put before it. The alternative
    text of a figure, `# %% alt="..."`, goes where web-book builders look for it.
    """
    parsed = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    cells, seen = [], set()
    for cell in parsed.cells:
        digest = hashlib.sha256(cell.source.encode()).hexdigest()
        cell.id = next(i for i in (digest[n : n + 8] for n in range(56)) if i not in seen)
        seen.add(cell.id)
        alt = cell.metadata.pop("alt", None)
        if alt:
            cell.metadata["mystnb"] = {"image": {"alt": alt}}
        cells.append(cell)
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata, nbformat_minor=5)


def execute(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Run all cells in a fresh kernel, with the notebooks' folder as the current one."""
    NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=120,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(HERE)}},
    ).execute()
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    warned = [
        o.text for c in notebook.cells for o in c.get("outputs", []) if o.get("name") == "stderr"
    ]
    if warned:
        raise RuntimeError(f"a cell wrote to stderr: {warned[0]}")
    return notebook


def as_text(notebook: nbformat.NotebookNode) -> str:
    """Return the JSON of a notebook: small differences in, small differences out."""
    return nbformat.v4.writes(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def build(path: Path) -> str:
    """Execute one source; write its notebook if it differs; return a line that says so."""
    start = time.perf_counter()
    try:
        text = as_text(execute(read_source(path)))
    except CellExecutionError as error:
        message = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
        raise SystemExit(f"{path.name}: a cell failed\n{message}") from None
    except RuntimeError as error:
        raise SystemExit(f"{path.name}: {error}") from None
    target = path.with_suffix(".ipynb")
    same = target.exists() and target.read_text(encoding="utf-8") == text
    if not same:
        target.write_text(text, encoding="utf-8")
    seconds = time.perf_counter() - start
    return f"{target.name:28} {seconds:5.1f} s   {'unchanged' if same else 'written'}"


def main(stems: list[str]) -> None:
    """Build the chapters with these stems, or all of them."""
    chosen = [p for p in sources() if not stems or p.stem in stems]
    unknown = set(stems) - {p.stem for p in chosen}
    if unknown:
        raise SystemExit(f"no such chapter: {', '.join(sorted(unknown))}")
    with ThreadPoolExecutor(2) as pool:
        for line in pool.map(build, chosen):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
