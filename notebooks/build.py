"""Build the book: from each reviewed source NN_stem.py its notebook NN_stem.ipynb and its figures.

Usage: python notebooks/build.py [STEM ...]            execute chapters, write their notebooks
       python notebooks/build.py --figures [STEM ...]  run chapters, write their figures

All chapters without a stem, two at a time. A source is a text file in percent format; it is the one
place where the data of a chapter's figures are made. What is written depends on sources and results
alone: no time stamps, no random cell ids; so a second run leaves the files as they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import jupytext
import matplotlib
import matplotlib.pyplot as plt
import nbformat
from matplotlib.figure import Figure
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from PIL import Image

from pe_numpy.book import ignore_settings
from pe_numpy.files import write_whole
from pe_numpy.plots import decoding, rope_derived

HERE = Path(__file__).parent
FIGURES = HERE.parent / "figures"
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
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def sources() -> list[Path]:
    """Every reviewed source, in the order of the book."""
    return sorted(HERE.glob("[0-9][0-9]_*.py"))


def read_source(path: Path) -> nbformat.NotebookNode:
    """Return the notebook that a source describes, without outputs.

    A cell's id is made from its text, so it stays when cells are put before it. The alternative
    text of a figure, `# %% alt="..."`, goes where web-book builders look for it; so does what is
    folded until the reader opens it, `# %% fold="input"`, "output" or "cell".
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
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return nbformat.v4.new_notebook(cells=parsed.cells, metadata=metadata, nbformat_minor=5)


# ---- notebooks ----------------------------------------------------------------------------------


def execute(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Run all cells in a fresh kernel, with the notebooks' folder as the current one."""
    metadata = dict(notebook.metadata)
    NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=120,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(HERE)}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
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


def write_notebook(path: Path) -> str:
    """Execute one source; write its notebook if it differs; return a line that says so."""
    try:
        text = as_text(execute(read_source(path)))
    except CellExecutionError as error:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
        raise SystemExit(f"{path.name}: a cell failed\n{plain}") from None
    target = path.with_suffix(".ipynb")
    changed = replace(target, text.encode())
    return f"{target.name}: {'written' if changed else 'unchanged'}"


def replace(path: Path, new: bytes) -> bool:
    """Write a file if its bytes differ; say whether they did."""
    if path.exists() and path.read_bytes() == new:
        return False
    write_whole(path, new)
    return True


# ---- figures ------------------------------------------------------------------------------------


def run(path: Path, show: Callable[[str, Figure], None]) -> dict[str, Any]:
    """Run a chapter in this process; hand each figure that it shows, with its name, to `show`.

    A figure is named after its chapter's number and the function that drew it.
    Returns the chapter's variables.
    """
    matplotlib.use("Agg")
    names: list[str] = []

    def show_all() -> None:
        for number in plt.get_fignums():
            figure = plt.figure(number)
            name = f"{path.stem[:2]}_{figure.get_label()}"
            names.append(name)
            show(name if names.count(name) == 1 else f"{name}_{names.count(name)}", figure)
        plt.close("all")

    variables: dict[str, Any] = {"__name__": "__main__"}
    shown, plt.show = plt.show, show_all
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.chdir(HERE),
            matplotlib.rc_context(),
        ):
            matplotlib.rcdefaults()  # whatever the reader's matplotlibrc says
            for cell in read_source(path).cells:
                if cell.cell_type == "code":
                    exec(compile(cell.source, f"{path.name}, cell {cell.id}", "exec"), variables)
    finally:
        plt.show = shown
        plt.close("all")
    return variables


def as_bytes(figure: Figure, kind: str) -> bytes:
    """Return a figure as PNG, with the very bytes that a notebook stores, or as SVG."""
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "pe_numpy"}):  # else the SVG's ids are random
        figure.savefig(
            buffer,
            format=kind,
            dpi=figure.dpi,
            bbox_inches="tight",
            metadata={"Date": None} if kind == "svg" else {},
        )
    return buffer.getvalue()


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


def write_figures(path: Path) -> str:
    """Write all figures of a chapter as PNG and SVG; remove those that it no longer draws."""
    written = set()

    def save(name: str, figure: Figure) -> None:
        for kind in ("png", "svg"):
            replace(FIGURES / f"{name}.{kind}", as_bytes(figure, kind))
            written.add(f"{name}.{kind}")

    FIGURES.mkdir(exist_ok=True)
    run(path, save)
    for name, gif in moving(path.stem[:2]).items():
        replace(FIGURES / f"{name}.gif", gif)
        written.add(f"{name}.gif")
    for old in FIGURES.glob(f"{path.stem[:2]}_*.*"):
        if old.name not in written:
            old.unlink()
    also = ", and one that moves" if len(written) % 2 else ""
    return f"{path.stem}: {len(written) // 2} figures, each as PNG and SVG{also}"


def main(arguments: list[str]) -> None:
    """Build the chapters with the given stems, or all of them."""
    stems = [a for a in arguments if a != "--figures"]
    unknown = set(stems) - {path.stem for path in sources()}
    if unknown:
        raise SystemExit(f"no such chapter: {', '.join(sorted(unknown))}")
    chosen = [path for path in sources() if not stems or path.stem in stems]
    build = write_figures if "--figures" in arguments else write_notebook
    start = time.perf_counter()
    ignore_settings()
    with ProcessPoolExecutor(2) as pool:
        for line in pool.map(build, chosen):
            print(line, flush=True)
    print(f"{len(chosen)} chapters in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
