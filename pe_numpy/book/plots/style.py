"""What all figures share: one width, 9 point type, the colours, and the maps with their labels.

An encoding's hue says where position enters: blue is added to the token vector, green rotates
queries and keys, red acts in the score, and grey is no position. Encodings of one place differ in
shade, their curves in line or mark, so one can tell them apart without the colours, too. Other
curves, and variants of one encoding beside each other, have the colours of `SERIES` (Paul Tol's
muted palette).

A diverging map centred on zero shows signed values, a sequential one magnitudes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pe_numpy.transformer.encodings import SCHEMES

WIDTH = 7.0  # inches, of every figure
SIGNED = "RdBu_r"  # blue negative, white zero, red positive
MAGNITUDE = "viridis"

# Colour, line and mark of each encoding, the same in every chapter: a hue for each place.
LOOKS = {
    "none": ("#777777", "-", "p"),
    # place 1, the token vector
    "sinusoidal": ("#332288", "-", "o"),
    "learned": ("#6660C3", "--", "s"),
    # place 3, the score
    "shaw": ("#EF9099", "-", "o"),
    "transformer_xl": ("#E07988", "--", "s"),
    "t5": ("#CC6677", "-", "^"),
    "tupe": ("#B94867", "-.", "v"),
    "deberta": ("#A1335E", "--", "d"),
    "alibi": ("#882255", "-", "X"),
    # place 2, queries and keys
    "rope": ("#117733", "-", "D"),
}
COLOURS = {name: colour for name, (colour, _, _) in LOOKS.items()}
# The hue of each place, where no single encoding is meant; 0 is no position.
HUES = {0: COLOURS["none"], 1: COLOURS["sinusoidal"], 2: COLOURS["rope"], 3: COLOURS["t5"]}
# One colour each for what attention reads and makes: Okabe and Ito's, which are not above.
READS = {"q": "#0072B2", "k": "#D55E00", "v": "#009E73", "weights": "#E69F00"}
# The relative schemes, as figures write their names.
RELATIVE = {
    name: SCHEMES[name].label
    for name in ("shaw", "transformer_xl", "t5", "tupe", "deberta", "alibi")
}
SCORE = tuple(COLOURS[name] for name in RELATIVE)  # from light to dark, for others in the score
# For curves that are not encodings: components, positions, pairs.
SERIES = ("#332288", "#CC6677", "#117733", "#DDCC77", "#88CCEE", "#AA4499", "#999933", "#44AA99")

STYLE: dict[Any, Any] = {
    "figure.dpi": 120,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": plt.cycler(color=SERIES),
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "image.interpolation": "nearest",
    "svg.hashsalt": "pe_numpy",
}


def in_style(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw a figure in the book's style, whatever the reader's own settings are; label it."""

    @functools.wraps(draw)
    def styled(*args: Any, **kwargs: Any) -> Figure:
        with mpl.rc_context(STYLE):
            figure = draw(*args, **kwargs)
        figure.set_label(draw.__name__)  # the name of its file
        return figure

    return styled


def look(name: str, **more: Any) -> dict[str, Any]:
    """How Matplotlib draws an encoding's line: its colour, line and mark, and `more` settings."""
    colour, line, mark = LOOKS[name]
    return {"color": colour, "ls": line, "marker": mark, "ms": 4, "mew": 0, **more}


def heat(axes: Axes, data: np.ndarray, limit: float | None = None, signed: bool = True) -> Any:
    """Draw a matrix as a heat map, one cell an entry; signed values are centred on zero."""
    limit = float(np.abs(data).max()) if limit is None else limit
    image = axes.imshow(
        data,
        cmap=SIGNED if signed else MAGNITUDE,
        vmin=-limit if signed else 0,
        vmax=limit,
        aspect="auto",
    )
    axes.spines[:].set_visible(False)
    return image


def label_cells(axes: Axes, data: np.ndarray, form: str = "{:.2f}", limit: float = 0.6) -> None:
    """Write each entry of a small matrix into its cell, white on dark cells."""
    top = float(np.abs(data).max()) or 1.0
    for i, j in np.ndindex(data.shape):
        dark = abs(data[i, j]) > limit * top
        text = form.format(data[i, j] + 0.0)
        axes.text(j, i, text, ha="center", va="center", color="white" if dark else "black")


def label_magnitudes(axes: Axes, data: np.ndarray, form: str = "{:.2f}") -> None:
    """Write each entry of a small sequential heat map into its cell: black where it is bright."""
    for i, j in np.ndindex(data.shape):
        ink = "black" if data[i, j] > 0.6 * data.max() else "white"
        axes.text(j, i, form.format(data[i, j]), ha="center", va="center", color=ink)


def label_words(axes: Axes, down: Sequence[str], across: Sequence[str] = ()) -> None:
    """Put words beside the rows, and above the columns, of a heat map."""
    axes.set_yticks(range(len(down)), down)
    axes.set_xticks(range(len(across)), across)
    axes.tick_params(length=0, labeltop=bool(across), labelbottom=False)


def matrix_panel(
    axes: Axes,
    title: str,
    data: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[Any],
    form: str = "{:g}",
    signed: bool = True,
    limit: float | None = None,
) -> Any:
    """Draw a small matrix with its numbers in the cells; dark cells get white digits.

    Signed colours reach to `limit`, by default the largest number of this matrix.
    """
    limit = (limit or float(np.abs(data).max())) if signed else 1.0
    image = heat(axes, data, limit=limit or 1.0, signed=signed)
    for i, j in np.ndindex(data.shape):
        dark = abs(data[i, j]) > 0.6 * limit if signed else data[i, j] < 0.55
        text = form.format(data[i, j] + 0.0)
        colour = "white" if dark else "black"
        axes.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)
    axes.set_title(title, fontsize=8)
    axes.set_xticks(range(len(columns)), columns, fontsize=6.5)
    axes.set_yticks(range(len(rows)), rows, fontsize=6.5)
    axes.tick_params(length=0, pad=2)
    return image
