"""Figures of chapter 37: positions that the text decides."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, MAGNITUDE, SCORE, WIDTH, in_style

_FOX, _COPE = SCORE[0], SCORE[2]


def _words_below(axes: Axes, words: Sequence[str]) -> None:
    axes.set_xticks(range(len(words)), words, rotation=45, ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", length=0)


@in_style
def content_text(
    words: Sequence[str], alibi: np.ndarray, fox: np.ndarray, count: np.ndarray
) -> Figure:
    """Draw what the last of the words (S,) sees: two rows of weights, and two kinds of position."""
    figure, (top, below) = plt.subplots(2, 1, figsize=(WIDTH, 3.7), sharex=True)
    at = np.arange(len(words))
    top.bar(at - 0.2, alibi, 0.4, color=COLOURS["alibi"], label="ALiBi: one slope")
    top.bar(at + 0.2, fox, 0.4, color=_FOX, label="FoX: a gate for each word")
    top.set(ylabel="weight", title="weights of the last word, equal scores")
    top.legend(loc="upper left")
    below.plot(at, at[::-1], "o-", color=COLOURS["none"], ms=3, label="distance $i - j$")
    below.step(at, count, where="mid", color=_COPE, label="full stops counted by CoPE")
    below.set(ylabel="position", title="where each word stands, seen from the last one")
    below.legend(loc="upper right")
    _words_below(below, words)
    return figure


@in_style
def content_kept(words: Sequence[str], panels: dict[str, np.ndarray]) -> Figure:
    """Draw what is kept of each key (L, S), nan above the diagonal, one panel a scheme."""
    figure, axes = plt.subplots(1, len(panels), figsize=(WIDTH, 3.6), sharey=True)
    for panel, (name, kept) in zip(axes, panels.items(), strict=True):
        image = panel.imshow(kept, cmap=MAGNITUDE, vmin=0, vmax=1)
        panel.spines[:].set_visible(False)
        panel.set_title(name)
        _words_below(panel, words)
        panel.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(words)), words)
    figure.colorbar(image, ax=axes, label="factor on the weight", shrink=0.8, pad=0.02)
    return figure


@in_style
def content_float16(
    exact: np.ndarray, rounded: np.ndarray, weights: dict[str, np.ndarray]
) -> Figure:
    """Draw sums (S,) of logarithms, exact and rounded, and weights of the last keys."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.6))
    left.plot(exact, color="black", label="float64")
    left.plot(rounded, color=_FOX, label="float16")
    left.set(xlabel="token", ylabel="sum of $\\ln f$", title="sums")
    left.legend(loc="lower left")
    shades = {"exact": ("black", 1.8, "-"), "float16 sums": (_FOX, 1.2, "-")}
    for name, row in weights.items():
        colour, width, line = shades.get(name, (COLOURS["none"], 1.2, "--"))
        right.step(np.arange(len(row))[::-1], row, where="mid", color=colour, lw=width, ls=line)
        right.plot([], [], color=colour, lw=width, ls=line, label=name)
    right.invert_xaxis()
    right.set(xlabel="distance from the last token", ylabel="weight", title="equal scores")
    right.legend(loc="upper left", fontsize=8)
    return figure


@in_style
def content_counts(words: Sequence[str], counts: np.ndarray, weights: np.ndarray) -> Figure:
    """Draw counts (L, S) with their numbers and weights (L, S), nan above the diagonal."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.6), sharey=True)
    for panel, data, top in ((left, counts, np.nanmax(counts)), (right, weights, 1.0)):
        panel.imshow(data, cmap=MAGNITUDE, vmin=0, vmax=top)
        panel.spines[:].set_visible(False)
        _words_below(panel, words)
        panel.tick_params(axis="y", length=0)
    for i, j in zip(*np.tril_indices(len(words)), strict=True):
        ink = "black" if counts[i, j] > 0.6 * np.nanmax(counts) else "white"
        left.text(j, i, f"{counts[i, j]:.0f}", ha="center", va="center", fontsize=6, color=ink)
    left.set_title("count of full stops, from key to query")
    right.set_title("weights: the sentence before")
    left.set_yticks(range(len(words)), words)
    return figure


@in_style
def content_lookup(
    table: np.ndarray, line: tuple[np.ndarray, np.ndarray], seen: tuple[np.ndarray, np.ndarray]
) -> Figure:
    """Draw the rows of a table (N,), the line through them, and counts of three queries on it."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.4))
    axes.plot(*line, color=_COPE)
    axes.plot(np.arange(len(table)), table, "s", color=_COPE, label="rows of the table")
    axes.plot(*seen, "o", color="black", ms=4, label="counts of the example")
    axes.set(xlabel="count $p$", ylabel="$e[p]$")
    axes.legend(loc="upper left")
    return figure
