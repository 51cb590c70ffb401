"""Draw every figure of the book, as PNG and SVG, with the functions that the chapters call.

Usage: python figures/build.py [FOLDER]     (this folder by default)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from pe_numpy import plots

HERE = Path(__file__).parent

# The name of each figure, which starts with the number of its chapter, and how it is drawn.
FIGURES: dict[str, Callable[[], Figure]] = {
    # chapter 00
    # chapter 01
    # chapter 02
    # chapter 13
    # chapter 14
    # chapter 17
}


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as the notebooks show it, without a date; files that do not change stay."""
    for kind, metadata in (("png", {}), ("svg", {"Date": None})):
        path = folder / f"{name}.{kind}"
        new = folder / f".{name}.{kind}"
        with matplotlib.rc_context({"svg.hashsalt": "pe_numpy"}):
            figure.savefig(new, format=kind, dpi=figure.dpi, bbox_inches="tight", metadata=metadata)
        if path.exists() and path.read_bytes() == new.read_bytes():
            new.unlink()
        else:
            new.replace(path)


def main(folder: Path = HERE) -> None:
    """Draw all figures into a folder; remove pictures that no longer have a function."""
    matplotlib.use("Agg")
    for name, draw in FIGURES.items():
        figure = draw()
        save(figure, folder, name)
        matplotlib.pyplot.close(figure)
    for path in folder.glob("[0-9][0-9]_*.*"):
        if path.stem not in FIGURES:
            path.unlink()
    print(f"{len(FIGURES)} figures in {folder.name}/, each as PNG and SVG")


if __name__ == "__main__":
    main(*(Path(a) for a in sys.argv[1:]))
