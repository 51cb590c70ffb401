"""Figures of chapter 38: offsets in windows of an image."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pe_numpy.book.plots.style import COLOURS, MAGNITUDE, SERIES, WIDTH, heat, in_style

# What the four corners of a table of offsets are coloured with; between them colours are mixed.
CORNERS = (("#332288", "#88CCEE"), ("#882255", "#EECC66"))


def _colours(height: int, width: int) -> np.ndarray:
    """A colour for each offset: (2h - 1, 2w - 1, 3)."""
    corners = np.array([[mpl.colors.to_rgb(c) for c in row] for row in CORNERS])
    down, across = (np.linspace(0, 1, 2 * n - 1)[:, None] for n in (height, width))
    rows = (1 - down[..., None]) * corners[0] + down[..., None] * corners[1]  # (2h - 1, 2, 3)
    return rows[:, :1] * (1 - across) + rows[:, 1:] * across


def _tiles(axes: Axes, colours: np.ndarray, numbers: np.ndarray, size: float = 7) -> None:
    """Coloured cells with a number in each."""
    axes.imshow(colours)
    for (y, x), number in np.ndenumerate(numbers):
        light = float(colours[y, x] @ (0.3, 0.6, 0.1))
        ink = "white" if round(light, 6) < 0.5 else "black"
        axes.text(x, y, str(number), ha="center", va="center", fontsize=size, color=ink)
    axes.set_xticks(np.arange(colours.shape[1] + 1) - 0.5, [])
    axes.set_yticks(np.arange(colours.shape[0] + 1) - 0.5, [])
    axes.grid(color="white", lw=1)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


@in_style
def windows_view(height: int, width: int, queries: Sequence[tuple[int, int]]) -> Figure:
    """Draw which row of the table each key of a window reads, above, and where it lies, below."""
    table = np.arange((2 * height - 1) * (2 * width - 1)).reshape(2 * height - 1, -1)
    colours = _colours(height, width)
    figure, panels = plt.subplots(2, len(queries), figsize=(WIDTH, 4.1))
    for (above, below), (y, x) in zip(panels.T, queries, strict=True):
        rows, columns = y - np.arange(height) + height - 1, x - np.arange(width) + width - 1
        seen = np.ix_(rows, columns)
        _tiles(above, colours[seen], table[seen], size=8)
        above.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, ec="black", lw=2.5))
        above.set_title(f"query in row {y}, column {x}")
        faded = 0.18 * colours + 0.82
        faded[seen] = colours[seen]
        _tiles(below, faded, table, size=5.5)
        corner = (columns.min() - 0.5, rows.min() - 0.5)
        below.add_patch(Rectangle(corner, width, height, fill=False, ec="black", lw=1.5))
        middle = (width - 1.5, height - 1.5)
        below.add_patch(Rectangle(middle, 1, 1, fill=False, ec="black", lw=1.5))
    panels[0, 0].set_ylabel("keys of the window")
    panels[1, 0].set_ylabel("rows of the table")
    return figure


@in_style
def windows_index(height: int, width: int, index: np.ndarray) -> Figure:
    """Draw the index (hw, hw) in the colours of its offsets, with the pixels named."""
    figure, axes = plt.subplots(figsize=(WIDTH * 0.62, 3.4))
    colours = _colours(height, width).reshape(-1, 3)
    _tiles(axes, colours[index], index, size=9)
    names = [f"{y},{x}" for y in range(height) for x in range(width)]
    axes.set_xticks(range(len(names)), names, minor=True)
    axes.set_yticks(range(len(names)), names, minor=True)
    axes.tick_params(which="minor", length=0, labelsize=8)
    for at in range(width, height * width, width):
        axes.axhline(at - 0.5, color="black", lw=1.5)
        axes.axvline(at - 0.5, color="black", lw=1.5)
    axes.set(xlabel="key: row, column", ylabel="query: row, column")
    return figure


@in_style
def windows_met(counts: np.ndarray) -> Figure:
    """Draw how many pairs meet each offset (2h - 1, 2w - 1)."""
    figure, axes = plt.subplots(figsize=(WIDTH * 0.68, 3.9))
    axes.imshow(counts, cmap=MAGNITUDE)
    for (y, x), n in np.ndenumerate(counts):
        ink = "black" if n > 0.6 * counts.max() else "white"
        axes.text(x, y, str(n), ha="center", va="center", fontsize=7, color=ink)
    middle = np.array(counts.shape) // 2
    axes.set_yticks(range(len(counts)), np.arange(len(counts)) - middle[0])
    axes.set_xticks(range(counts.shape[1]), np.arange(counts.shape[1]) - middle[1])
    axes.tick_params(length=0, labelsize=7)
    axes.spines[:].set_visible(False)
    axes.set(xlabel=r"$\Delta x$", ylabel=r"$\Delta y$")
    return figure


@in_style
def windows_factor(right: np.ndarray, wrong: np.ndarray) -> Figure:
    """Draw how many pairs read each row (N,) of the table, with the right and the wrong factor."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 2.1), sharey=True)
    for axes, counts, title in zip(
        panels, (right, wrong), ("factor $2w-1$", "factor $2h-1$"), strict=True
    ):
        axes.bar(range(len(counts)), counts, color=SERIES[0], width=0.75)
        empty = np.flatnonzero(counts == 0)
        axes.plot(empty, np.full(len(empty), 0.25), "x", color=SERIES[1], ms=6, mew=2)
        axes.set_xticks(range(0, len(counts), 2))
        axes.set(title=title, xlabel="row of the table")
    panels[0].set_ylabel("pairs of pixels")
    return figure


@in_style
def windows_sum_of_two(by_row: np.ndarray, by_column: np.ndarray, query: tuple[int, int]) -> Figure:
    """Draw what a query adds for each row (h,) and each column (w,) of keys, and their sum."""
    h, w = len(by_row), len(by_column)
    parts = (
        np.broadcast_to(by_row[:, None], (h, w)),
        np.broadcast_to(by_column, (h, w)),
        by_row[:, None] + by_column,
    )
    limit = max(float(np.abs(part).max()) for part in parts)
    figure, panels = plt.subplots(1, 3, figsize=(WIDTH, 2.2))
    titles = (r"$q\cdot R_{\Delta y}$", r"$q\cdot C_{\Delta x}$", "their sum")
    for axes, part, title in zip(panels, parts, titles, strict=True):
        image = heat(axes, part, limit)
        axes.set_aspect("equal")
        axes.add_patch(
            Rectangle((query[1] - 0.5, query[0] - 0.5), 1, 1, fill=False, ec="black", lw=2)
        )
        axes.set(title=title, xticks=[], yticks=[])
    for axes, sign in zip(panels[1:], "+=", strict=True):
        axes.text(-0.11, 0.5, sign, transform=axes.transAxes, ha="center", va="center", fontsize=14)
    figure.colorbar(image, ax=panels, shrink=0.8, pad=0.02)
    return figure


@in_style
def windows_grown(small: np.ndarray, stretched: np.ndarray, kept: np.ndarray) -> Figure:
    """Draw a bias over the offsets of one axis, resized to a larger window, and kept in place."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 2.5), sharey=True)
    few, many = (np.arange(len(b)) - len(b) // 2 for b in (small, kept))
    for axes, grown, title in zip(
        panels, (stretched, kept), ("the table, resized", "coordinates, with $P$ kept"), strict=True
    ):
        axes.plot(many, grown, "o-", color=SERIES[1], ms=4, label=f"window {len(kept) // 2 + 1}")
        axes.plot(few, small, "s", color=SERIES[0], ms=5, label=f"window {len(small) // 2 + 1}")
        axes.set(title=title, xlabel=r"offset $\Delta x$", xticks=many[1::3])
    panels[0].set_ylabel("bias")
    panels[0].legend()
    return figure


@in_style
def windows_coordinates(offsets: np.ndarray, curves: dict[str, np.ndarray]) -> Figure:
    """Draw coordinates (N,) over offsets (N,), one curve a rule; beyond 1 shaded."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.7))
    for n, (name, u) in enumerate(curves.items()):
        own = offsets[np.abs(offsets) <= len(u) // 2]
        axes.plot(own, u, "o-", color=(*SERIES[:2], COLOURS["none"])[n], ms=4, label=name)
    top = max(float(u.max()) for u in curves.values())
    for sign in (-1, 1):
        axes.axhspan(sign, sign * 1.05 * top, color="#EEEEEE", zorder=0)
    axes.set(xlabel=r"offset $\Delta$", ylabel="coordinate $u$", ylim=(-1.05 * top, 1.05 * top))
    axes.legend(loc="upper left")
    return figure
