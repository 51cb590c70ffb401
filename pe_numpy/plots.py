"""The figures of the book, one function a figure: data in, a matplotlib figure out.

This is the only room that imports matplotlib. The notebooks and `make figures` call the same
functions. A function computes nothing but what it draws; its caller brings the data.

Style: one width, 9 point type, a colour for each encoding that it keeps throughout the book, a
diverging map centred on zero for signed values and a sequential one for magnitudes. All colours are
told apart by colour-blind readers (Paul Tol's muted palette).
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

WIDTH = 7.0  # inches, of every figure
SIGNED = "RdBu_r"  # blue negative, white zero, red positive
MAGNITUDE = "viridis"

# One colour for each encoding, the same in every chapter.
COLOURS = {
    "none": "#777777",
    "sinusoidal": "#332288",
    "learned": "#DDCC77",
    "shaw": "#88CCEE",
    "transformer_xl": "#44AA99",
    "t5": "#CC6677",
    "tupe": "#999933",
    "deberta": "#AA4499",
    "alibi": "#882255",
    "rope": "#117733",
}
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


def _in_style(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw a figure in the book's style, whatever the reader's own settings are."""

    @functools.wraps(draw)
    def styled(*args: Any, **kwargs: Any) -> Figure:
        with mpl.rc_context(STYLE):
            return draw(*args, **kwargs)

    return styled


def _heat(axes: Axes, data: np.ndarray, limit: float | None = None, signed: bool = True) -> Any:
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


def _label_cells(axes: Axes, data: np.ndarray, form: str = "{:.2f}", limit: float = 0.6) -> None:
    """Write each entry of a small matrix into its cell, white on dark cells."""
    top = float(np.abs(data).max()) or 1.0
    for i, j in np.ndindex(data.shape):
        dark = abs(data[i, j]) > limit * top
        text = form.format(data[i, j] + 0.0)
        axes.text(j, i, text, ha="center", va="center", color="white" if dark else "black")


# ---- chapter 00: how to read this book ----------------------------------------------------------


# ---- chapter 01: why position matters -----------------------------------------------------------


# ---- chapter 02: sinusoidal ---------------------------------------------------------------------


# ---- chapter 13: RoPE derived -------------------------------------------------------------------


# ---- chapter 14: RoPE computed ------------------------------------------------------------------


# ---- chapter 17: attention by hand --------------------------------------------------------------
