"""Figures of chapter 43: turning in two and three dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy import patch_coordinates
from pe_numpy.book.plots.style import SERIES, SIGNED, WIDTH, in_style

ROW, COLUMN, TIME = SERIES[0], SERIES[1], SERIES[3]  # one colour for each axis


@in_style
def rope_grid_maps(
    omegas: dict[str, np.ndarray], height: int, width: int, query: tuple[int, int]
) -> Figure:
    """Draw one query's scores with equal keys on a grid, one map for each Omega (2, n)."""
    figure, panels = plt.subplots(1, len(omegas), figsize=(WIDTH, 1.6))
    offsets = patch_coordinates(height, width) - query
    for axes, (name, omega) in zip(panels, omegas.items(), strict=True):
        scores = np.cos(offsets @ omega).mean(axis=1).reshape(height, width)
        image = axes.imshow(scores.round(6), cmap=SIGNED, vmin=-1, vmax=1)
        axes.plot(query[1], query[0], "s", mfc="none", mec="black", ms=5)
        axes.set(title=name, xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=panels, shrink=0.75, pad=0.02, ticks=[-1, 0, 1])
    return figure


@in_style
def rope_grid_hands(angles: np.ndarray) -> Figure:
    """Draw each patch as two clocks, one for its row, one for its column: angles (h, w, 2)."""
    h, w, _ = angles.shape
    figure, axes = plt.subplots(figsize=(WIDTH * 0.8, 1.35 * h + 0.3))
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 121))
    for (y, x, pair), angle in np.ndenumerate(angles):
        centre = complex(2.6 * x + 1.15 * pair, -1.6 * y)
        hand = 0.5 * np.exp(1j * angle)
        colour = (ROW, COLUMN)[pair]
        face, start = centre + 0.5 * circle, centre + 0.5
        axes.plot(face.real, face.imag, color="#BBBBBB", lw=1)
        axes.plot([centre.real, start.real], [centre.imag, start.imag], color="#BBBBBB", lw=1)
        axes.annotate(
            "",
            xy=((centre + hand).real, (centre + hand).imag),
            xytext=(centre.real, centre.imag),
            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2, "shrinkA": 0, "shrinkB": 0},
        )
        if pair == 0:
            axes.text(centre.real + 0.575, centre.imag - 0.72, f"row {y}, column {x}", ha="center")
    axes.text(-0.6, 0.62, "first pair: row", color=ROW)
    axes.text(2.0, 0.62, "second pair: column", color=COLUMN)
    axes.set(xlim=(-0.7, 2.6 * w - 0.8), ylim=(-1.6 * h + 0.7, 0.9), aspect="equal")
    axes.axis("off")
    return figure


@in_style
def rope_grid_columns(omegas: dict[str, np.ndarray]) -> Figure:
    """Draw the columns of each Omega (2, n): the direction along which each pair turns."""
    figure, panels = plt.subplots(1, len(omegas), figsize=(WIDTH, 2.1), sharex=True, sharey=True)
    for axes, (name, omega) in zip(panels, omegas.items(), strict=True):
        axes.axhline(0, color="#CCCCCC", lw=0.8, zorder=0)
        axes.axvline(0, color="#CCCCCC", lw=0.8, zorder=0)
        for c, (down, across) in enumerate(omega.T):
            colour = (ROW, COLUMN)[c >= omega.shape[1] // 2]
            axes.plot([0, across], [0, down], "-", color=colour, lw=1)
            axes.plot(across, down, "o", color=colour, ms=4)
        axes.set(title=name, xlim=(-1.15, 1.15), ylim=(1.15, -1.15), aspect="equal")
        axes.set_xlabel("radians a column")
    panels[0].set_ylabel("radians a row")
    return figure


@in_style
def rope_grid_sizes(ways: dict[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Draw where patches of one axis stand, trained and larger, a panel a way: two arrays."""
    figure, panels = plt.subplots(1, len(ways), figsize=(WIDTH, 1.5), sharey=True)
    for axes, (name, (trained, larger)) in zip(panels, ways.items(), strict=True):
        for at, row, colour in ((trained, 1, SERIES[2]), (larger, 0, SERIES[5])):
            axes.plot(at, np.full(len(at), row), "|", color=colour, ms=14, mew=2)
        axes.axvspan(trained.min(), trained.max(), color="#EEEEEE", zorder=0)
        axes.set(title=name, ylim=(-0.6, 1.6))
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
    small, large = (len(at) for at in next(iter(ways.values())))
    panels[0].set_yticks([1, 0], [f"{small} patches", f"{large} patches"])
    return figure


@in_style
def rope_grid_places(positions: np.ndarray, words: Sequence[int]) -> Figure:
    """Draw where M-RoPE puts tokens, by row and column and by slot; `words` are slots of text."""
    figure, (grid, slots) = plt.subplots(1, 2, figsize=(WIDTH, 2.6))
    for slot, (_, row, column) in enumerate(positions):
        colour = "#777777" if slot in words else SERIES[2]
        grid.plot(column, row, "s", ms=17, color=colour)
        grid.text(column, row, str(slot), color="white", ha="center", va="center")
    for name, colour in (("word", "#777777"), ("patch", SERIES[2])):
        grid.plot([], [], "s", color=colour, label=f"{name}, with its slot")
    last = len(positions) - 1
    limits = (-0.6, positions.max() + 0.6)
    grid.set(xlabel="column", ylabel="row", xlim=limits, ylim=limits[::-1], aspect="equal")
    grid.legend(loc="lower left")
    slots.plot([0, last], [0, last], ":", color="#777777", label="slot")
    for name, colour, size, values in zip(
        ("time", "row", "column"), (TIME, ROW, COLUMN), (11, 7, 3.5), positions.T, strict=True
    ):
        slots.plot(values, "o", color=colour, ms=size, label=name)
    slots.set(xlabel="slot $m$", ylabel="position")
    slots.legend(loc="upper left")
    return figure


@in_style
def rope_grid_ladders(shares: dict[str, np.ndarray]) -> Figure:
    """Draw which axis (0 time, 1 row, 2 column) owns each pair (n,), one strip a model."""
    figure, axes = plt.subplots(figsize=(WIDTH, 0.42 * len(shares) + 0.9))
    for place, owners in enumerate(shares.values()):
        for c, owner in enumerate(owners):
            axes.barh(-place, 0.84, 0.72, left=c - 0.42, color=(TIME, ROW, COLUMN)[owner])
    for axis, colour in (("time", TIME), ("row", ROW), ("column", COLUMN)):
        axes.barh(0, 0, color=colour, label=axis)
    n = len(next(iter(shares.values())))
    axes.set_yticks(range(0, -len(shares), -1), list(shares))
    axes.set(xlabel="pair $c$, from the fastest to the slowest", xlim=(-0.8, n - 0.2))
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
    return figure
