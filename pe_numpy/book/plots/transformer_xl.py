"""Figures of chapter 32: Transformer-XL and XLNet."""

from __future__ import annotations

import re
from collections.abc import Mapping

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, heat, in_style

QUERIES = ("#88CCEE", "#DDCC77", "#AA4499")  # one for each of three queries


@in_style
def xl_terms(terms: Mapping[str, np.ndarray]) -> Figure:
    """Draw score terms, each of shape (L, S), and their sum, the last, on one common scale."""
    fig, axes = plt.subplots(1, len(terms), figsize=(WIDTH, 1.9), sharey=True)
    limit = max(float(np.abs(term).max()) for term in terms.values())
    for ax, (name, term) in zip(axes, terms.items(), strict=True):
        image = heat(ax, term, limit)
        ax.set(title=name, xlabel="key $j$", aspect="equal", xticks=(0, len(term) - 1))
        ax.set_yticks((0, len(term) - 1))
        ax.tick_params(length=0)
    axes[0].set_ylabel("query $i$", labelpad=-2)
    fig.colorbar(image, ax=axes, fraction=0.02, aspect=12)
    return fig


@in_style
def xl_curves(
    distance: np.ndarray,
    curves: Mapping[str, np.ndarray],
    far: np.ndarray,
    wanted: np.ndarray,
    learned: np.ndarray,
    seen: int,
) -> Figure:
    """Draw curves of one head over the distance, and a fitted one far beyond what was seen."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.7))
    for (name, curve), colour in zip(curves.items(), SERIES, strict=False):
        left.plot(distance, curve, label=name, color=colour)
    left.axvline(0, ymax=0.7, color="0.7", lw=0.8)  # ends below the legend
    left.axhline(0, color="0.7", lw=0.8)
    left.set(title="how scores can vary with distance", xlabel="distance $i-j$   (right: the past)")
    left.set(ylabel="score", ylim=(-7, 27))
    left.legend(loc="upper left", fontsize=8)
    right.axvspan(-seen, seen, color="0.92")
    right.text(0, -27, "seen", ha="center", color="0.4")
    right.plot(far, wanted, color="black", ls=":", label="wanted")
    right.plot(far, learned, color=COLOURS["transformer_xl"], label="learned")
    right.set(title="beyond what was seen", xlabel="distance $i-j$", ylim=(-28, 4))
    right.legend(loc="upper right", fontsize=8)
    return fig


@in_style
def xl_shift_steps(steps: Mapping[str, np.ndarray], allowed: np.ndarray) -> Figure:
    """Draw labelled matrices, cells named q0d4 or padding, side by side; frame the wrong cells.

    `allowed` says of the cells of the last matrix which are not in the future.
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 2.9))
    left = 0.0
    for name, cells in steps.items():
        rows, columns = cells.shape
        for (i, j), label in np.ndenumerate(cells):
            _draw_cell(ax, left + j, i, label)
        middle = left + (columns - 1) / 2
        ax.text(middle, -0.75, f"{name}\n{rows} × {columns}", ha="center", va="bottom")
        if rows > columns:  # the reshaped matrix, whose first row will be dropped
            ax.plot([left - 0.5, left + columns - 0.5], [0, 0], color="black", lw=1.5)
            ax.text(left + columns - 0.4, 0, "drop", va="center", fontsize=8)
        last, left = left, left + columns + 1.3
    for i, j in np.argwhere(~allowed):
        ax.add_patch(Rectangle((last + j - 0.44, i - 0.44), 0.88, 0.88, fill=False, lw=1.8))
    handles = [mpl.patches.Patch(color=c, label=f"query {i}") for i, c in enumerate(QUERIES)]
    handles.append(mpl.patches.Patch(fc="white", ec="black", lw=1.8, label="not its own"))
    ax.legend(handles=handles, loc="lower left", ncols=2, fontsize=8)
    ax.set(xlim=(-0.6, left - 1.7), ylim=(5.6, -2.2), aspect="equal")
    ax.axis("off")
    return fig


def _draw_cell(ax: Axes, x: float, y: float, label: str) -> None:
    """Draw a cell in the colour of its query, with its distance as the number."""
    parts = re.fullmatch(r"q(\d)d(\d)", label)
    colour = QUERIES[int(parts[1])] if parts else "0.9"
    ax.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, color=colour, lw=0))
    ink = "white" if parts and parts[1] == "2" else "black" if parts else "0.5"
    ax.text(x, y, parts[2] if parts else "0", ha="center", va="center", color=ink)


@in_style
def xl_reach(reach: Mapping[str, np.ndarray], segment: int) -> Figure:
    """Draw which output (rows) depends on which input word (columns), with segment borders."""
    fig, axes = plt.subplots(1, len(reach), figsize=(WIDTH, 2.2), sharey=True)
    shades = mpl.colors.ListedColormap(["#F2F2F2", COLOURS["transformer_xl"]])
    for ax, (name, depends) in zip(axes, reach.items(), strict=True):
        ax.imshow(depends, cmap=shades, vmin=0, vmax=1)
        for border in range(segment, len(depends), segment):
            ax.axhline(border - 0.5, color="white", lw=1.2)
            ax.axvline(border - 0.5, color="white", lw=1.2)
        ax.set_title(name, fontsize=8.5)
        ax.set(xlabel="input word", xticks=(0, len(depends) - 1), yticks=(0, len(depends) - 1))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel("output at")
    return fig
