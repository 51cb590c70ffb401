"""Figures of chapter 21: learned tables."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, WIDTH, heat, in_style


@in_style
def resized_grids(grid: np.ndarray, new: int) -> Figure:
    """Draw a square grid (N, N), and the same resized to (new, new) as points and as cells.

    Dots mark where the centres of the old cells lie.
    """
    old = np.arange(len(grid))
    k = np.arange(new)
    ways = {
        f"{new} by {new}, rows as points": k * (len(grid) - 1) / (new - 1),
        f"{new} by {new}, rows as cells": (k + 0.5) * len(grid) / new - 0.5,
    }
    figure, panels = plt.subplots(1, 3, figsize=(WIDTH, 2.5))
    shown = [(f"{len(grid)} by {len(grid)}, as trained", grid, old.astype(float))]
    for name, places in ways.items():
        along = np.array([np.interp(places, old, row) for row in grid])
        both = np.array([np.interp(places, old, column) for column in along.T]).T
        shown.append((name, both, np.interp(old, places, k)))
    for axes, (name, data, centres) in zip(panels, shown, strict=True):
        image = heat(axes, data, limit=float(np.abs(grid).max()))
        axes.plot(*(c.ravel() for c in np.meshgrid(centres, centres)), ".", color="black", ms=4)
        axes.set(title=name, xlabel="column of patches", aspect="equal")
        axes.tick_params(length=0)
    panels[0].set_ylabel("row of patches")
    figure.colorbar(image, ax=panels, label="one component", shrink=0.8, pad=0.01)
    return figure


@in_style
def row_similarities(similar: dict[str, np.ndarray]) -> Figure:
    """Draw the cosines (N, N) of all pairs of rows of some tables."""
    figure, panels = plt.subplots(1, len(similar), figsize=(WIDTH, 2.3), sharey=True)
    for axes, (name, cosines) in zip(panels, similar.items(), strict=True):
        image = heat(axes, cosines, limit=1)
        axes.set(title=name.replace(", ", "\n"), xlabel="row $j$", aspect="equal")
        axes.set_xticks((0, 10, 20, 30))
        axes.tick_params(length=0)
    panels[0].set(ylabel="row $i$", yticks=(0, 10, 20, 30))
    figure.colorbar(image, ax=panels, label="cosine", shrink=0.75, pad=0.01)
    return figure


@in_style
def three_back_weights(weights: dict[str, np.ndarray]) -> Figure:
    """Draw the attention weights (L, S) of one head of some models, side by side."""
    figure, panels = plt.subplots(1, len(weights), figsize=(WIDTH, 3.0), sharey=True)
    for axes, (name, data) in zip(panels, weights.items(), strict=True):
        image = heat(axes, data, limit=1, signed=False)
        axes.set(title=name, xlabel="key $j$", aspect="equal")
        axes.tick_params(length=0)
    panels[0].set_ylabel("query $i$")
    figure.colorbar(image, ax=panels, label="weight", shrink=0.85, pad=0.02)
    return figure


@in_style
def longer_tables(
    at_once: dict[str, list[int]], later: dict[str, list[int]], chance: float
) -> Figure:
    """Draw per cent right of some models, by table, before and after more training."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.5))
    for y, name in enumerate(reversed(at_once)):
        for shift, values, colour, label in (
            (0.17, at_once[name], COLOURS["none"], "at once"),
            (-0.17, later[name], COLOURS["learned"], "after 20 steps"),
        ):
            axes.axhline(y + shift, color="#E8E8E8", lw=0.8, zorder=0)
            axes.plot(
                values,
                [y + shift] * len(values),
                "o",
                color=colour,
                ms=7,
                mfc=colour if shift < 0 else "white",
                label=label if y == 0 else None,
            )
    axes.axvline(chance, color="black", lw=0.8, ls=":")
    axes.text(chance + 0.7, len(at_once) - 0.62, "chance", fontsize=8, va="center")
    axes.set_yticks(range(len(at_once)), list(reversed(at_once)))
    axes.set(xlim=(0, 100), xlabel="right answers at 64 positions, per cent")
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="upper right")
    return figure
