"""Figures of chapter 22: recurrence, FLOATER, multiplication."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, heat, in_style

_CIRCLE = "#BBBBBB"


def _plane(ax: Axes, limit: float) -> None:
    """Prepare a square plane with the unit circle in it."""
    turn = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.sin(turn), np.cos(turn), color=_CIRCLE, lw=3, zorder=0)
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")


@in_style
def step_paths(paths: dict[str, np.ndarray]) -> Figure:
    """Draw the codes (length, 2) of each step as a path in the plane, first code marked."""
    figure, axes = plt.subplots(1, len(paths), figsize=(WIDTH, 2.2))
    for ax, (name, path) in zip(axes, paths.items(), strict=True):
        _plane(ax, 1.15 * max(1.0, float(np.abs(path).max())))
        ax.plot(path[:, 0], path[:, 1], "-", color=SERIES[1], lw=0.8)
        ax.plot(path[:, 0], path[:, 1], "o", color=SERIES[1], ms=3)
        ax.plot(*path[0], "o", color="black", ms=5)
        ax.set_title(name, fontsize=8)
        ax.tick_params(labelsize=7)
    return figure


@in_style
def error_against_steps(counts: Sequence[int], errors: dict[str, Sequence[float]]) -> Figure:
    """Draw the error of each method against the steps for one position, log-log."""
    figure, ax = plt.subplots(figsize=(WIDTH, 2.8))
    for (name, values), colour in zip(errors.items(), (SERIES[1], SERIES[0]), strict=True):
        ax.plot(counts, values, "o-", color=colour, ms=4)
        ax.text(counts[-1] * 1.15, values[-1], name, color=colour, va="center")
    ax.set(xscale="log", yscale="log", xlabel="steps for one position", xlim=(0.8, 900))
    ax.set_ylabel("largest error, positions 0 to 10")
    ax.set_xticks(counts, [str(n) for n in counts])
    ax.minorticks_off()
    return figure


@in_style
def two_equations(families: dict[str, list[np.ndarray]], every: int) -> Figure:
    """Draw solutions (times, 2) of several equations, each from two starts.

    Every `every`-th point is a position and gets a dot.
    """
    figure, axes = plt.subplots(1, len(families), figsize=(WIDTH, 3.3), sharey=True)
    for ax, (name, paths) in zip(axes, families.items(), strict=True):
        for path, colour in zip(paths, (COLOURS["sinusoidal"], SERIES[1]), strict=True):
            ax.plot(path[:, 0], path[:, 1], color=colour)
            ax.plot(path[::every, 0], path[::every, 1], "o", color=colour, ms=4)
            label = f"start ({path[0, 0]:g}, {path[0, 1]:g})"
            ax.plot(*path[0], "o", color=colour, ms=8, label=label)
        ax.set(title=name, xlim=(-2.3, 2.3), ylim=(-2.3, 2.9), aspect="equal")
        ax.set_xlabel("$\\sin$ component")
        ax.legend(loc="upper left", ncols=2, fontsize=8, columnspacing=1.0)
    axes[0].set_ylabel("$\\cos$ component")
    return figure


@in_style
def flows_compared(gaps: dict[str, np.ndarray], lengths: dict[str, np.ndarray]) -> Figure:
    """Draw how far neighbouring codes are apart, and how long codes are, over the position."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.0))
    colours = (COLOURS["sinusoidal"], SERIES[1], SERIES[2])
    for name, colour in zip(gaps, colours, strict=True):
        left.plot(gaps[name], color=colour, label=name)
        right.plot(lengths[name], color=colour)
    left.set(yscale="log", xlabel="position $k$", ylim=(1e-6, 5))
    left.set_title("distance of $p_k$ from $p_{k+1}$")
    right.set(xlabel="position $k$", ylim=(0, 2.7), title="length of $p_k$")
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, columnspacing=1.2)
    return figure


@in_style
def product_maps(maps: dict[str, np.ndarray]) -> Figure:
    """Draw scores (L, L) over pairs of positions, each with its own scale centred on zero."""
    figure, axes = plt.subplots(1, len(maps), figsize=(WIDTH, 2.1), sharey=True)
    for ax, (name, data) in zip(axes, maps.items(), strict=True):
        heat(ax, data)
        ax.set(aspect="equal", xticks=(0, len(data) - 1), yticks=(0, len(data) - 1))
        ax.set_xlabel("key position $n$", labelpad=-4)
        ax.set_title(name, fontsize=8)
        ax.tick_params(length=0)
    axes[0].set_ylabel("query position $m$", labelpad=-6)
    return figure
