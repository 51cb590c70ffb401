"""Figures of chapter 31: a vector for each distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pe_numpy.book.plots.style import (
    COLOURS,
    SERIES,
    SIGNED,
    WIDTH,
    heat,
    in_style,
    label_cells,
    label_magnitudes,
    label_words,
)


@in_style
def likes_and_weights(likes: np.ndarray, weights: np.ndarray, words: Sequence[str]) -> Figure:
    """Draw the scores (L, 2m + 1) that words give to distances, and the weights (L, L)."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.7))
    m = likes.shape[1] // 2
    heat(left, likes, limit=1.3 * float(np.abs(likes).max()))
    label_cells(left, likes, "{:.1f}", limit=0.9)
    label_words(left, words, [f"{d:+d}" if d else "0" for d in range(-m, m + 1)])
    left.set_title("distance $i-j$: ahead is negative, back is positive", pad=8)
    left.set_ylabel("query")
    heat(right, weights, signed=False, limit=1.0)
    label_magnitudes(right, weights)
    label_words(right, words, words)
    right.set_title("weights, key above", pad=8)
    return figure


@in_style
def rows_read(cases: Sequence[tuple[str, np.ndarray, int]]) -> Figure:
    """Draw tables and the rows that pairs read in them: (title, (L, S) rows, rows in all) each."""
    ratios = [n for _, rows, _ in cases for n in (0.18 * rows.shape[1], rows.shape[1])]
    figure, axes = plt.subplots(
        1,
        2 * len(cases),
        figsize=(WIDTH, 2.6),
        layout="none",  # the solver would place so many panels differently in the last digit
        gridspec_kw={"width_ratios": ratios, "wspace": 0.25, "left": 0.01, "right": 0.99},
    )
    for (title, rows, N), table, window in zip(cases, axes[::2], axes[1::2], strict=True):
        limit = 1.7 * (N // 2) or 1
        colours = mpl.colormaps[SIGNED]((np.arange(N) - N // 2) / (2 * limit) + 0.5)
        for row in range(N):
            used = bool((rows == row).any())
            face = colours[row] if used else "white"
            cell = Rectangle((-0.5, row - 0.5), 1, 1, fc=face, ec="#BBBBBB", lw=0.6)
            table.add_patch(cell)
            ink = "black" if used else "#AAAAAA"
            if N <= 10 or row % 3 == 0:  # as many as have room
                table.text(0, row, str(row), ha="center", va="center", color=ink, fontsize=8)
        table.set(xlim=(-0.55, 0.55), ylim=(N - 0.45, -0.55))
        table.set_title(f"{N} rows", fontsize=8)
        window.imshow(rows - N // 2, cmap=SIGNED, vmin=-limit, vmax=limit, aspect="auto")
        if len(rows) <= 8:
            for i, j in np.ndindex(rows.shape):
                window.text(j, i, str(rows[i, j]), ha="center", va="center", fontsize=8)
        window.set_title(title, fontsize=8.5)
        window.set_xlabel("key $j$", fontsize=8)
        window.set_ylabel("query $i$", fontsize=8, labelpad=1)
        for ax in (table, window):
            ax.set(xticks=(), yticks=())
            ax.spines[:].set_visible(False)
    return figure


@in_style
def published_ablations(by_clip: dict[int, float], by_term: dict[str, float]) -> Figure:
    """Draw two tables of Shaw et al.: BLEU by clipping distance, and by the terms that are kept."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.4), width_ratios=(1.3, 1))
    at = np.arange(len(by_clip))
    left.plot(at, list(by_clip.values()), "o-", color=COLOURS["shaw"], mec="black", ms=7)
    for x, bleu in zip(at, by_clip.values(), strict=True):
        left.text(x, bleu + (0.9 if x else -2), f"{bleu:.1f}", ha="center")
    left.set_xticks(at, [str(clip) for clip in by_clip])
    left.set(
        xlabel="clipping distance $m$", ylabel="BLEU", ylim=(9, 28.5), xlim=(-0.5, at[-1] + 0.5)
    )
    names = list(by_term)[::-1]
    right.barh(names, [by_term[name] for name in names], color=COLOURS["shaw"], height=0.65)
    for row, name in enumerate(names):
        right.text(by_term[name] + 0.4, row, f"{by_term[name]:.1f}", va="center")
    right.set(xlabel="BLEU", xlim=(0, 31))
    right.tick_params(axis="y", length=0)
    return figure


@in_style
def folded_weights(weights: np.ndarray, folded: np.ndarray, words: Sequence[str]) -> Figure:
    """Draw weights (L, L), and their sums (L, 2m + 1) over the pairs that share a row."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.9))
    m = folded.shape[1] // 2
    heat(left, weights, signed=False, limit=1.0)
    label_magnitudes(left, weights)
    label_words(left, words, words)
    left.set_title("weight on each key", pad=8)
    left.set_ylabel("query")
    heat(right, folded, signed=False, limit=1.0)
    label_magnitudes(right, folded)
    names = [f"{d:+d}" if d else "0" for d in range(-m, m + 1)]
    names[0], names[-1] = f"≤ {-m}", f"≥ {m}"
    label_words(right, words, names)
    right.set_title("weight at each distance", pad=8)
    return figure


def _strip(ax: Axes, cells: Sequence[Sequence[tuple[str, str]]], top: float) -> None:
    """Draw rows of cells (text, colour) from the height `top` downwards."""
    for row, line in enumerate(cells):
        for column, (text, colour) in enumerate(line):
            y = top + row
            box = Rectangle((column - 0.5, y - 0.5), 1, 1, fc=colour, ec="white", lw=1)
            ax.add_patch(box)
            ax.text(column, y, text, ha="center", va="center", fontsize=8)


@in_style
def skew_in_steps(L: int, S: int) -> Figure:
    """Draw how a product (L, L + S - 1) by distance becomes scores (L, S) by key: a reshape."""
    tints = ("#CFC9EE", "#F3CDD2", "#C5E3CC", "#F2EBC8")
    width = L + S - 1

    def cell(n: int) -> tuple[str, str]:
        i, c = divmod(n, width)
        wanted = L - 1 - i <= c < L - 1 - i + S
        return str(L - 1 - c), tints[i] if wanted else "#EEEEEE"

    figure, ax = plt.subplots(figsize=(WIDTH, 4.1))
    flat = [cell(n) for n in range(L * width)]
    _strip(ax, [flat[i * width : (i + 1) * width] for i in range(L)], 0)
    _strip(ax, [flat], L + 1.6)
    for i in range(L):
        start = L - 1 + i * (width - 1)
        ax.annotate(
            f"{start}",
            (start, L + 2.1),
            (start, L + 2.9),
            ha="center",
            va="center",
            arrowprops={"arrowstyle": "->", "color": SERIES[1]},
            color=SERIES[1],
        )
    kept = flat[L - 1 : L - 1 + L * (width - 1)]
    _strip(ax, [kept[i * (width - 1) :][: width - 1] for i in range(L)], L + 4.7)
    frame = Rectangle((-0.5, L + 4.2), S, L, fill=False, ec="black", lw=2)
    ax.add_patch(frame)
    right: dict[str, Any] = {"va": "center", "ha": "left"}
    ax.text(
        width + 0.2,
        (L - 1) / 2,
        f"product: {L} queries, {width} distances,\nthe past first",
        **right,
    )
    ax.text(L * width - 0.5, L + 0.75, "the same numbers in one line", ha="right", va="center")
    ax.text(
        width + 0.2,
        L + 4.7 + (L - 1) / 2,
        f"rows of {width - 1}, from entry {L - 1} on;\nthe first {S} columns are the scores",
        **right,
    )
    ax.set(xlim=(-0.8, L * width - 0.2), ylim=(2 * L + 4.4, -0.8), xticks=(), yticks=())
    ax.spines[:].set_visible(False)
    return figure
