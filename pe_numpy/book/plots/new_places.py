"""Figures of chapter 52: distances that stay in the trained range."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, MAGNITUDE, SERIES, WIDTH, in_style


@in_style
def new_places_curves(true: np.ndarray, seen: dict[str, np.ndarray], trained: int) -> Figure:
    """Draw the distance (N,) that each scheme shows the model, over the true one (N,)."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.2))
    axes.axhspan(0, trained - 1, color="#EEF3EE", zorder=0)
    axes.text(true.max(), trained - 2, "trained distances", ha="right", va="top", fontsize=8)
    axes.plot(true, true, color=COLOURS["rope"], lw=1.2, ls=":", label="RoPE")
    for n, (name, distance) in enumerate(seen.items()):
        axes.plot(true, distance, color=SERIES[(0, 1, 5, 4)[n]], label=name)
    axes.set(xlabel="true distance $i-j$", ylabel="distance in the score", ylim=(0, 1.6 * trained))
    axes.legend(loc="upper right", ncols=2, fontsize=8)
    return figure


@in_style
def new_places_maps(maps: dict[str, np.ndarray]) -> Figure:
    """Draw distances (L, L) of queries from keys, one panel a scheme; the future is left white."""
    figure, panels = plt.subplots(1, len(maps), figsize=(WIDTH, 2.2), sharey=True)
    top = max(float(distance.max()) for distance in maps.values())
    for axes, (name, distance) in zip(panels, maps.items(), strict=True):
        past = np.where(np.tri(len(distance), dtype=bool), distance, np.nan)
        image = axes.imshow(past, cmap=MAGNITUDE, vmin=0, vmax=top)
        axes.set(title=name, xlabel="key $j$")
    panels[0].set_ylabel("query $i$")
    figure.colorbar(image, ax=panels, shrink=0.85, pad=0.02)
    return figure


@in_style
def new_places_edge(true: np.ndarray, rows: dict[str, np.ndarray], window: int) -> Figure:
    """Draw Self-Extend's distances (N,) around the end of its window, one curve a query."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.6))
    axes.axvline(window - 0.5, color=COLOURS["none"], lw=1, ls="--")
    axes.plot(true, true, color=COLOURS["rope"], lw=1, ls=":", label="RoPE")
    for n, (name, distance) in enumerate(rows.items()):
        axes.plot(true, distance, "o-", color=SERIES[(0, 1, 5, 3)[n]], ms=3.5, lw=1, label=name)
    axes.set(xlabel="true distance $i-j$", ylabel="distance in the score", xticks=true[::2])
    axes.legend(loc="upper left")
    return figure
