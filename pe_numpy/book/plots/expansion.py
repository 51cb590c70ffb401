"""Figures of chapter 30: the four terms of a score, and what each scheme makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pe_numpy.book.plots.style import COLOURS, SERIES, SIGNED, WIDTH, heat, in_style

TERMS = ("content-content", "content-position", "position-content", "position-position")


@in_style
def four_maps(terms: Sequence[np.ndarray], words: Sequence[str]) -> Figure:
    """Draw the four terms (L, L) of a score by what query and key bring, and their sum.

    One scale of colours serves all five maps.
    """
    figure = plt.figure(figsize=(WIDTH, 4.3))
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1.45, 1))[0]
    axes = left.subplots(2, 2, sharex="col", sharey="row")
    total = np.sum(terms, axis=0)
    limit = float(max(np.abs(term).max() for term in (*terms, total)))
    places = list(range(len(words)))
    for n, (ax, term) in enumerate(zip(axes.flat, terms, strict=True)):
        heat(ax, term, limit)
        ax.set_title(TERMS[n], fontsize=8.5)
        ax.tick_params(length=0, labelsize=7.5)
    for n, (what, names) in enumerate((("word $x", words), ("place $p", places))):
        axes[n, 0].set_yticks(places, names)
        axes[n, 0].set_ylabel(f"query brings its {what}_i$")
        axes[1, n].set_xticks(places, names, rotation=0 if n else 90)
        axes[1, n].set_xlabel(f"key brings its {what}_j$")
    ax = right.subplots()
    image = heat(ax, total, limit)
    ax.set_aspect("equal")
    ax.set_title("their sum: the score", fontsize=8.5)
    ax.set_xticks(places, words, rotation=90)
    ax.set_yticks(places, words)
    ax.tick_params(length=0, labelsize=7.5)
    right.colorbar(image, ax=ax, orientation="horizontal", shrink=0.8, aspect=25)
    return figure


@in_style
def one_word_maps(maps: dict[str, np.ndarray]) -> Figure:
    """Draw maps (L, L) of a sentence of equal words, by title; one scale of colours each."""
    figure, axes = plt.subplots(1, len(maps), figsize=(WIDTH, 1.95), sharey=True)
    for ax, (title, data) in zip(axes, maps.items(), strict=True):
        spread = data - data.mean()  # what changes over the map is what the eye should see
        largest = float(np.abs(spread).max())
        heat(ax, spread, largest if largest > 1e-9 else 1.0)  # no picture of rounding errors
        ax.set_aspect("equal")
        ax.set_title(title, fontsize=8)
        ax.set_xlabel("key place $j$", fontsize=8)
        ax.set(xticks=(0, len(data) - 1), yticks=(0, len(data) - 1))
        ax.tick_params(length=0, labelsize=7.5)
    axes[0].set_ylabel("query place $i$", fontsize=8)
    return figure


@in_style
def line_and_window(line: np.ndarray, L: int, S: int) -> Figure:
    """Draw a line of L + S - 1 distances, and the window (L, S) that shows them."""
    figure, ax = plt.subplots(figsize=(WIDTH, 3.9))
    limit = 1.6 * float(np.abs(line).max())
    rows = np.array([[line[i - j + S - 1] for j in range(S)] for i in range(L)])
    for data, top in ((line[None], -2.0), (rows, 0.0)):
        height, width = data.shape
        extent = (-0.5, width - 0.5, top + height - 0.5, top - 0.5)
        ax.imshow(data, cmap=SIGNED, vmin=-limit, vmax=limit, extent=extent)
        for i, j in np.ndindex(data.shape):
            ax.text(j, top + i, str(data[i, j]), ha="center", va="center")
    for i, colour, height in ((0, SERIES[0], -2.75), (L - 1, SERIES[1], -3.25)):
        arrow = {"arrowstyle": "->", "color": colour, "lw": 2}
        ax.annotate("", xy=(i - 0.4, height), xytext=(i + S - 0.6, height), arrowprops=arrow)
        ax.text(i + S - 0.45, height, f"row {i}", va="center", color=colour, weight="bold")
        box = Rectangle((-0.46, i - 0.46), S - 0.08, 0.92, fill=False, ec=colour, lw=2.5)
        ax.add_patch(box)
    ax.text(-0.8, -2, "line", ha="right", va="center")
    ax.text(-0.8, (L - 1) / 2, "window", ha="right", va="center")
    note = f"{L} rows and {S} columns,\n{L * S} entries to read,\n{len(line)} numbers in memory"
    ax.text(S + 0.2, (L - 1) / 2, note, va="center")
    ax.spines[:].set_visible(False)
    ax.set(xticks=(), yticks=(), xlim=(-2.2, len(line) + 0.8), ylim=(L - 0.4, -3.6))
    return figure


@in_style
def edits_of_four_terms(
    maps: dict[str, Sequence[np.ndarray | None]],
    formulas: dict[str, Sequence[str]],
    colours: dict[str, str],
    scales: dict[str, str],
    marked: dict[int, str],
) -> Figure:
    """Draw what each scheme makes of the four terms: one row per scheme, one column per term.

    A map is (L, L), or None where the term is dropped. The formula "kept" gets a grey frame, any
    other a frame of the scheme's colour (a key of `COLOURS`). `marked` names some rows of the maps.
    """
    figure, axes = plt.subplots(len(maps), 4, figsize=(WIDTH, 1.16 * len(maps) + 0.3))
    for row, (name, terms) in zip(axes, maps.items(), strict=True):
        ink = COLOURS[colours[name]]
        for ax, term, formula in zip(row, terms, formulas[name], strict=True):
            ax.set(xticks=(), yticks=())
            if term is None:
                ax.spines[:].set_visible(False)
                ax.text(0.5, 0.5, formula, ha="center", va="center", color="#999999")
                continue
            heat(ax, term, limit=2.2)
            kept = formula == "kept"
            ax.spines[:].set_visible(True)
            ax.spines[:].set(color="#999999" if kept else ink, linewidth=1 if kept else 2.8)
            ax.set_yticks(list(marked), marked.values(), fontsize=6)
            ax.tick_params(length=0, pad=2)
            ax.set_xlabel(formula, fontsize=8.5, labelpad=2, color="#777777" if kept else "black")
        left = {"xycoords": "axes fraction", "ha": "right", "annotation_clip": False}
        row[0].annotate(name, (-0.17, 0.54), color=ink, weight="bold", **left)
        row[0].annotate(scales[name], (-0.17, 0.32), fontsize=8, **left)
    for ax, title in zip(axes[0], TERMS, strict=True):
        ax.set_title(title, fontsize=8.5)
    return figure
