"""Build the book: from each reviewed source NN_stem.py its notebook NN_stem.ipynb and its figures.

Usage: python notebooks/build.py [STEM ...]   execute chapters, write their notebooks and figures
       python notebooks/build.py --real       those that need trained weights, where these are

Without a stem all chapters, two at a time, except those that need trained weights. A source is a
text file in percent format; it is the one place where the data of a chapter's figures are made.
Each chapter runs once: its kernel draws every figure that it shows a second time, as SVG. What is
written depends on sources and results alone: no time stamps, no random cell ids; so a second run
leaves the files as they are.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import jupytext
import matplotlib
import matplotlib.pyplot as plt
import nbformat
from matplotlib.figure import Figure
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from PIL import Image

from pe_numpy.book.fetch import FOLDER, found, weights_folder
from pe_numpy.book.show import ignore_settings, same_drawing
from pe_numpy.files import write_whole
from pe_numpy.book.plots import decoding, rope_derived

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "docs"))
import toc

FIGURES = HERE.parent / "figures"
TABLES = HERE / "results" / "real.csv"  # what `make real-tables` measured
RECORD = HERE / "results" / "real_chapters.csv"  # what chapters with weights were made of
# Moving pictures: chapter, function that draws the n-th frame, frames, milliseconds each.
MOVING = (
    ("40", rope_derived.turning_clocks, 40, 120),
    ("63", decoding.filling_cache, 10, 900),
)
# What a reader opens: for JupyterLab, and the tag that the web book knows.
FOLDS = {
    "input": ({"source_hidden": True}, "hide-input"),
    "output": ({"outputs_hidden": True}, "hide-output"),
    "cell": ({"source_hidden": True, "outputs_hidden": True}, "hide-cell"),
}
SECOND = " (second reading)"  # ends the heading of what a first reader may skip
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def sources() -> list[Path]:
    """Every reviewed source, in the order of the book."""
    return sorted(HERE.glob("[0-9][0-9]_*.py"))


def read_source(path: Path) -> nbformat.NotebookNode:
    """Return the notebook that a source describes, without outputs.

    A cell's id is made from its text, so it stays when cells are put before it. The alternative
    text of a figure, `# %% alt="..."`, goes where web-book builders look for it; so does what is
    folded until the reader opens it, `# %% fold="input"`, "output" or "cell". JupyterLab collapses
    what follows the heading of a second reading.
    """
    parsed = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    seen: set[str] = set()
    for cell in parsed.cells:
        digest = hashlib.sha256(cell.source.encode()).hexdigest()
        cell.id = next(i for i in (digest[n : n + 8] for n in range(56)) if i not in seen)
        seen.add(cell.id)
        alt = cell.metadata.pop("alt", None)
        if alt:
            cell.metadata["mystnb"] = {"image": {"alt": alt}}
        fold = cell.metadata.pop("fold", None)
        if fold:
            cell.metadata["jupyter"], tag = FOLDS[fold]
            cell.metadata["tags"] = [tag]
        if cell.cell_type == "markdown" and begins_second(cell.source):
            cell.metadata["jp-MarkdownHeadingCollapsed"] = True
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return nbformat.v4.new_notebook(cells=parsed.cells, metadata=metadata, nbformat_minor=5)


def begins_second(text: str) -> bool:
    """Whether a cell ends in a second reading that JupyterLab can collapse.

    It hides the cells below, to the next heading of the rank of the cell's highest.
    """
    headings = re.findall(r"^(#+) (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    if not headings or not headings[-1][1].endswith(SECOND):
        return False
    return len(headings[-1][0]) == min(len(rank) for rank, _ in headings)


# ---- notebooks ----------------------------------------------------------------------------------


def execute(notebook: nbformat.NotebookNode, drawings: str) -> nbformat.NotebookNode:
    """Run all cells in a fresh kernel, with the notebooks' folder as the current one.

    The kernel writes each figure that it shows into the folder `drawings`: `keep_figures`.
    """
    metadata = dict(notebook.metadata)
    NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=120,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(HERE)}},
        extra_arguments=[
            "--IPKernelApp.log_level=ERROR",
            f"--IPKernelApp.exec_lines=__import__('pe_numpy.book.show').book.show.keep_figures({drawings!r})",
        ],
    ).execute()
    notebook.metadata = metadata  # without the kernel's version
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                raise RuntimeError(f"a cell wrote to stderr: {output.text}")
    return notebook


def as_text(notebook: nbformat.NotebookNode) -> str:
    """Return the JSON of a notebook: small differences in, small differences out."""
    return nbformat.v4.writes(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write(path: Path) -> str:
    """Execute one source; write its notebook and figures where they differ; say so in a line."""
    with tempfile.TemporaryDirectory() as drawings:
        try:
            notebook = execute(read_source(path), drawings)
        except CellExecutionError as error:
            plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
            raise SystemExit(f"{path.name}: a cell failed\n{plain}") from None
        figures = figures_of(path, notebook, Path(drawings))
    target = path.with_suffix(".ipynb")
    changed = replace(target, as_text(notebook).encode())
    FIGURES.mkdir(exist_ok=True)
    drawn = sum(replace(FIGURES / name, picture) for name, picture in figures.items())
    for old in FIGURES.glob(f"{path.stem[:2]}_*.*"):
        if old.name not in figures:
            old.unlink()
    return f"{target.name}: {'written' if changed else 'unchanged'}" + (
        f", {drawn} of its figures drawn anew" if drawn else ""
    )


def replace(path: Path, new: bytes) -> bool:
    """Write a file if its bytes, or the drawing, differ; say whether they did."""
    same = same_drawing if path.suffix == ".svg" else bytes.__eq__
    if path.exists() and same(path.read_bytes(), new):
        return False
    write_whole(path, new)
    return True


# ---- figures ------------------------------------------------------------------------------------


def figures_of(path: Path, notebook: nbformat.NotebookNode, drawings: Path) -> dict[str, bytes]:
    """All pictures of an executed chapter by file name: PNG as its cells show them, SVG, GIF.

    A figure is named after its chapter's number and the function that drew it.
    """
    shown = pictures(notebook)
    drawn = sorted(drawings.glob("*.svg"))  # 000 turning_clocks.svg, in the order of the cells
    if len(shown) != len(drawn):
        raise RuntimeError(f"{path.name} shows {len(shown)} figures and has drawn {len(drawn)}")
    found = {}
    names = names_of(path.stem[:2], [svg.stem[4:] for svg in drawn])
    for png, svg, name in zip(shown, drawn, names, strict=True):
        found |= {f"{name}.png": png, f"{name}.svg": svg.read_bytes()}
    return found | {f"{name}.gif": gif for name, gif in moving(path.stem[:2]).items()}


def pictures(notebook: nbformat.NotebookNode) -> list[bytes]:
    """Return the PNGs that a notebook holds, in its order."""
    return [
        base64.b64decode(output.data["image/png"])
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]


def names_of(number: str, labels: Sequence[str]) -> list[str]:
    """Return the names of a chapter's figures from their labels; a second one ends in _2."""
    again = [labels[:n].count(label) for n, label in enumerate(labels)]
    ends = [f"_{n + 1}" if n else "" for n in again]
    return [f"{number}_{label}{end}" for label, end in zip(labels, ends, strict=True)]


def moving(number: str) -> dict[str, bytes]:
    """Return the moving pictures of a chapter as GIFs, by name."""
    matplotlib.use("Agg")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        return {
            f"{number}_{draw.__name__}": as_gif(map(draw, range(count)), duration)
            for chapter, draw, count, duration in MOVING
            if chapter == number
        }


def as_gif(figures: Iterable[Figure], duration: int) -> bytes:
    """Return figures of one size as the frames of a GIF: one palette, the same bytes each time."""
    frames = []
    for figure in figures:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=100)
        plt.close(figure)
        frames.append(Image.open(buffer).convert("RGB"))
    palette = frames[-1].quantize(64, dither=Image.Dither.NONE)
    flat = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    out = io.BytesIO()
    flat[0].save(
        out, "GIF", save_all=True, append_images=flat[1:], duration=duration, loop=0, optimize=False
    )
    return out.getvalue()


# ---- chapters that need trained weights ---------------------------------------------------------


def missing(stem: str) -> str:
    """Why the trained models of a chapter can't be loaded, or nothing."""
    try:
        for name in toc.needs_weights(stem):
            found(name)
    except ValueError as error:
        return str(error)
    return ""


def made_of(path: Path) -> dict[str, str]:
    """Hashes of a chapter's source, of the rows of `TABLES` that it names, and of what it gave."""
    text = path.read_text(encoding="utf-8")
    lines = TABLES.read_text(encoding="utf-8").splitlines() if TABLES.exists() else []
    rows = [x for x in lines if x[:1] != "#" and f'"{x.split(",")[0]}"' in text]
    given = [*HERE.glob(f"{path.stem}.ipynb"), *sorted(FIGURES.glob(f"{path.stem[:2]}_*"))]
    parts = {"source": text.encode(), "tables": "\n".join(rows).encode()}
    parts["outputs"] = b"".join(file.read_bytes() for file in given)
    hashes = {name: hashlib.sha256(part).hexdigest()[:16] for name, part in parts.items()}
    return {"chapter": path.stem, **hashes}


def recorded() -> dict[str, dict[str, str]]:
    """What each chapter with weights was made of when it was executed, by its stem."""
    text = RECORD.read_text(encoding="utf-8") if RECORD.exists() else ""
    return {row["chapter"]: row for row in csv.DictReader(text.splitlines())}


def record(path: Path) -> None:
    """Write down what a chapter was made of; forget those that are no longer there."""
    rows = recorded() | {path.stem: made_of(path)}
    kept = [list(rows[stem].values()) for stem in toc.trained() if stem in rows]
    lines = [",".join(row) for row in (made_of(path), *kept)]  # first the names of the columns
    write_whole(RECORD, "".join(f"{line}\n" for line in lines).encode())


# ---- which chapters -----------------------------------------------------------------------------


def choose(arguments: list[str]) -> tuple[list[Path], list[str]]:
    """The chapters to execute, and a line for each that stays as it is committed."""
    everything = {path.stem: path for path in sources()}
    real = arguments == ["--real"]
    asked = [] if real else arguments
    if unknown := set(asked) - everything.keys():
        raise SystemExit(f"no such chapter: {', '.join(sorted(unknown))}")
    if refused := [f"{stem} needs weights; {why}" for stem in asked if (why := missing(stem))]:
        raise SystemExit("\n".join(refused))
    chosen, lines = [], []
    for stem, path in everything.items():
        needs = bool(toc.needs_weights(stem))
        if stem in asked or (not asked and needs == real and not missing(stem)):
            chosen.append(path)
        elif needs and not asked:
            way = "needs weights: make real" if missing(stem) else "make real-book executes it"
            lines.append(f"{stem}.ipynb: as committed ({way})")
    return chosen, lines


def main(arguments: list[str]) -> None:
    """Build the chapters with the given stems, or all of them that need no trained weights."""
    chosen, lines = choose(arguments)
    os.environ[FOLDER] = str(weights_folder().resolve())  # a kernel runs in another folder
    start = time.perf_counter()
    ignore_settings()
    with ProcessPoolExecutor(2) as pool:
        try:
            for path, line in zip(chosen, pool.map(write, chosen), strict=True):
                print(line, flush=True)
                if toc.needs_weights(path.stem):
                    record(path)
        except KeyboardInterrupt:  # nbclient would wait for an answer of the kernel, 120 seconds
            for worker in multiprocessing.active_children():
                worker.kill()
            raise SystemExit("interrupted: chapters that were written are whole") from None
    print(*lines, sep="\n", end="\n" if lines else "")
    print(f"{len(chosen)} chapters in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
