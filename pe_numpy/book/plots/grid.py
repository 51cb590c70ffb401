"""Figures of chapter 25: positions on a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import SERIES, WIDTH, heat, in_style


@in_style
def alike_on_a_grid(maps: Sequence[np.ndarray], cell: tuple[int, int]) -> Figure:
    """Draw how alike the codes of all cells of a grid are to that of one cell, for three codes."""
    figure, panels = plt.subplots(1, len(maps), figsize=(WIDTH, 1.9), sharey=True)
    row, column = cell
    names = ("counted through", "row and column", "Fourier features")
    for axes, name, alike in zip(panels, names, maps, strict=True):
        image = heat(axes, alike, signed=False, limit=1)
        image.set_clim(0, 1)
        box = plt.Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="#CC3311", lw=2)
        axes.add_patch(box)
        axes.set(title=name, xlabel="column $x$", aspect="equal")
        axes.tick_params(length=0)
    panels[0].set_ylabel("row $y$")
    figure.colorbar(image, ax=panels, label="likeness", shrink=0.75, pad=0.01, extend="min")
    return figure


@in_style
def orders(layouts: dict[str, Sequence[str]]) -> Figure:
    """Draw the components of a code as boxes, a line a library: "sin y0", "cos x1", and so on."""
    figure, axes = plt.subplots(figsize=(WIDTH, 0.36 * len(layouts) + 0.15))
    colours = {"y": (SERIES[0], "#B9B3DC"), "x": (SERIES[1], "#EBC7CC")}
    for line, parts in enumerate(layouts.values()):
        for place, part in enumerate(parts):
            sine, axis = part.startswith("sin"), part[4]
            colour = colours[axis][0 if sine else 1]
            box = plt.Rectangle((place, -line - 0.42), 0.96, 0.84, color=colour, lw=0)
            axes.add_patch(box)
            text = f"{part[:3]} ${axis}\\theta_{part[5]}$"
            ink = "white" if sine else "black"
            axes.text(place + 0.48, -line, text, ha="center", va="center", fontsize=8, color=ink)
    axes.set_yticks(-np.arange(len(layouts)), list(layouts))
    axes.set(xlim=(0, len(parts)), ylim=(0.55 - len(layouts), 0.5), xticks=[])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


@in_style
def kernels_and_a_step(
    kernels: dict[str, Callable[[np.ndarray], np.ndarray]],
    step: np.ndarray,
    larger: dict[str, np.ndarray],
) -> Figure:
    """Draw kernels over the distance, and a step (N,) made larger with each of them."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.5), width_ratios=(1, 1.25))
    t = np.linspace(-2.4, 2.4, 481)
    left.axhline(0, color="#BBBBBB", lw=0.8, zorder=0)
    right.axhline(0, color="#BBBBBB", lw=0.8, zorder=0)
    right.axhline(1, color="#BBBBBB", lw=0.8, zorder=0)
    for n, (name, kernel) in enumerate(kernels.items()):
        left.plot(t, kernel(np.abs(t)), color=SERIES[n], label=name)
        made = larger[name]
        at = (np.arange(len(made)) + 0.5) * len(step) / len(made) - 0.5
        right.plot(at, made, color=SERIES[n], label=name)
    right.plot(np.arange(len(step)), step, "o", color="black", ms=4)
    left.set(xlabel="distance $t$ from the old row", ylabel="weight $k(t)$", xticks=range(-2, 3))
    right.set(xlabel="old row (dots), made ten times as many", ylabel="value")
    right.legend(loc="upper left")
    return figure


@in_style
def gaussian_of_waves(
    distance: np.ndarray, exact: dict[str, np.ndarray], drawn: dict[str, np.ndarray]
) -> Figure:
    """Draw the likeness of two points over their distance: expected as lines, drawn as dots."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.5))
    axes.axhline(0, color="#BBBBBB", lw=0.8, zorder=0)
    for n, (name, line) in enumerate(exact.items()):
        axes.plot(distance, line, color=SERIES[n], label=name)
        axes.plot(distance, drawn[name], ".", color=SERIES[n], ms=4)
    axes.set(xlabel="distance of two points", ylabel="likeness")
    axes.legend()
    return figure
