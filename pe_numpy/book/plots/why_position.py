"""Figures of chapter 11: why position matters."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, heat, in_style, label_words


@in_style
def outputs_of_two_orders(
    first: np.ndarray, second: np.ndarray, words: Sequence[str], reordered: Sequence[str]
) -> Figure:
    """Draw the outputs (L, D) of a sentence and of another order, and below them their means.

    A line leads from each word to where it stands in the other order.
    """
    fig, axes = plt.subplots(
        2, 3, figsize=(WIDTH, 2.9), height_ratios=(len(words), 1), width_ratios=(5, 1, 5)
    )
    limit = float(max(np.abs(first).max(), np.abs(second).max()))
    for column, (data, names) in ((0, (first, words)), (2, (second, reordered))):
        top, bottom = axes[:, column]
        for ax, rows, labels in ((top, data, names), (bottom, data.mean(axis=0)[None], ["mean"])):
            image = heat(ax, rows, limit)
            label_words(ax, labels)
            for i, j in np.ndindex(rows.shape):
                ink = "white" if abs(rows[i, j]) > 0.6 * limit else "black"
                number = f"{rows[i, j].round(1) + 0.0:.1f}"
                ax.text(j, i, number, ha="center", va="center", fontsize=6.5, color=ink)
            if column:
                ax.yaxis.tick_right()
                ax.tick_params(length=0)
        for label in top.get_yticklabels():
            label.set_color(SERIES[words.index(label.get_text())])
        top.set_title(" ".join(names), weight="bold")
        bottom.set_xlabel("component")
    for ax in axes[:, 1]:
        ax.axis("off")
    between = axes[0, 1]
    between.set(xlim=(0, 1), ylim=(len(words) - 0.5, -0.5))
    for row, word in enumerate(words):
        between.plot([0, 1], [row, reordered.index(word)], color=SERIES[row])
    fig.colorbar(image, ax=axes, fraction=0.04)
    return fig


@in_style
def code_distances(codes: dict[str, np.ndarray]) -> Figure:
    """Draw for each code, of shape (N, width), the distances between the vectors of all positions.

    Each panel has its own scale, from 0 (dark) to the largest distance (bright), in its title.
    """
    fig, axes = plt.subplots(2, len(codes) // 2, figsize=(WIDTH, 4.6))
    for ax, (name, code) in zip(axes.flat, codes.items(), strict=True):
        distance = np.linalg.norm(code[:, None] - code[None], axis=-1)
        image = heat(ax, distance / distance.max(), 1.0, signed=False)
        title = f"{name}\nlargest {distance.max():.3g}"
        ax.set(title=title, xticks=(0, len(code) - 1), yticks=(0, len(code) - 1), aspect="equal")
        ax.tick_params(length=0)
    for ax in axes[:, 0]:
        ax.set_ylabel("position", labelpad=-6)
    for ax in axes[-1]:
        ax.set_xlabel("position", labelpad=-4)
    bar = fig.colorbar(
        image, ax=axes, location="bottom", ticks=(0, 1), shrink=0.4, aspect=30, pad=0.03
    )
    bar.ax.set_xticklabels(["distance 0", "largest"])
    bar.ax.tick_params(length=0)
    return fig


@in_style
def properties(table: dict[str, Sequence[bool]], names: Sequence[str]) -> Figure:
    """Draw which code (a row of `table`) has which property (an entry of `names`)."""
    fig, ax = plt.subplots(figsize=(WIDTH, 0.36 * len(table) + 0.9))
    has = np.array(list(table.values()), dtype=float)
    pale_and_green = mpl.colors.ListedColormap(["#F0D5D8", "#117733"])
    ax.imshow(has, cmap=pale_and_green, vmin=0, vmax=1, aspect="auto")
    for i, j in np.ndindex(has.shape):
        word, ink = ("yes", "white") if has[i, j] else ("no", "black")
        ax.text(j, i, word, ha="center", va="center", color=ink)
    ax.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(table) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", lw=2)
    ax.tick_params(which="minor", length=0)
    ax.spines[:].set_visible(False)
    label_words(ax, list(table), [name.replace(" ", "\n") for name in names])
    return fig


@in_style
def probe_accuracy(percent: dict[str, int], colours: Sequence[str]) -> Figure:
    """Draw the accuracy of the word-order probe, in per cent, as one bar for each encoding.

    `colours` are keys of `COLOURS`.
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 2.7))
    names = list(percent)[::-1]
    values = [percent[name] for name in names]
    ax.barh(names, values, color=[COLOURS[key] for key in reversed(colours)], height=0.7)
    for row, value in enumerate(values):
        ax.text(value + 1, row, f"{value} %", va="center")
    ax.axvline(50, color="black", lw=1, ls="--")
    ax.text(50.5, len(names) - 0.45, "ceiling of every blind layer", va="bottom")
    ax.set(xlim=(0, 112), xlabel="held-out sentences whose subject is found, %")
    ax.set_xticks(range(0, 101, 25))
    ax.tick_params(axis="y", length=0)
    return fig
