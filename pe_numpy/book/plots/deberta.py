"""Figures of chapter 34: DeBERTa."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, heat, in_style


@in_style
def deberta_terms(terms: Mapping[str, np.ndarray], words: Sequence[str]) -> Figure:
    """Draw score terms (L, L) and their sum, the last, over the words of a sentence.

    The second panel frames the rows, the third the columns of each word that comes again.
    """
    fig, axes = plt.subplots(1, len(terms), figsize=(WIDTH, 2.6), sharey=True)
    limit = max(float(np.abs(term).max()) for term in terms.values())
    for ax, (name, term) in zip(axes, terms.items(), strict=True):
        image = heat(ax, term, limit)
        ax.set(title=name, xlabel="key $j$", aspect="equal")
        ax.set_xticks(range(len(words)), words, rotation=90, fontsize=8)
        ax.set_yticks(range(len(words)), words, fontsize=8)
        ax.tick_params(length=0)
    repeated = [place for place, word in enumerate(words) if words.count(word) > 1]
    for place in repeated:
        row = (-0.5, place - 0.5), len(words), 1
        column = (place - 0.5, -0.5), 1, len(words)
        for ax, frame in ((axes[1], row), (axes[2], column)):
            ax.add_patch(Rectangle(*frame, fill=False, lw=1.2, clip_on=False))
    axes[0].set_ylabel("query $i$")
    fig.colorbar(image, ax=axes, fraction=0.02, aspect=15)
    return fig


@in_style
def deberta_rows(grids: Mapping[str, np.ndarray]) -> Figure:
    """Draw which row of its table each pair reads, one (L, L) grid of row numbers a panel."""
    fig, axes = plt.subplots(1, len(grids), figsize=(WIDTH, 2.6), sharey=True)
    for ax, (name, grid) in zip(axes, grids.items(), strict=True):
        ax.imshow(grid, cmap="PuOr", vmin=grid.min() - 1, vmax=grid.max() + 1)
        for (i, j), row in np.ndenumerate(grid):
            dark = row in (grid.min(), grid.max())
            ax.text(j, i, str(row), ha="center", va="center", color="white" if dark else "black")
        ax.set(title=name, xlabel="key $j$")
        ax.set_xticks(range(len(grid)))
        ax.set_yticks(range(len(grid)))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel("query $i$")
    return fig


@in_style
def deberta_staircase(
    small: np.ndarray,
    small_buckets: np.ndarray,
    large: np.ndarray,
    large_buckets: np.ndarray,
    grown: np.ndarray,
) -> Figure:
    """Draw buckets against distance: a small example, and the released size with its growth."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.8))
    left.step(small, small_buckets, where="mid", color=COLOURS["deberta"])
    ends = [small_buckets.min(), small_buckets.max()]
    left.plot(ends, ends, color="0.6", lw=0.8, ls=":")  # each distance its own bucket
    left.set(title="$b=16$, $D_{max}=64$", xlabel="distance $i-j$", ylabel="bucket")
    right.plot(large, grown, color="black", ls="--", label="go on growing")
    right.plot(large, large_buckets, color=COLOURS["deberta"], label="stop (package)")
    right.axvline(512, color="0.6", lw=0.8)
    right.text(520, 20, "longest\ntraining text", color="0.4", fontsize=8)
    right.set(title="$b=256$, $D_{max}=512$", xlabel="distance (without its sign)")
    right.set(ylabel="bucket (without its sign)", ylim=(0, 345))
    right.legend(loc="lower right", bbox_to_anchor=(1.0, 0.25), fontsize=8)
    return fig


@in_style
def deberta_decoder(applied: Mapping[str, Sequence[int]]) -> Figure:
    """Draw the layers that are applied one after the other, equal numbers in one colour."""
    fig, ax = plt.subplots(figsize=(WIDTH, 2.5))
    for row, (name, layers) in enumerate(applied.items()):
        y = -2.1 * row
        ax.text(-0.2, y, name, ha="right", va="center", weight="bold")
        for x, layer in enumerate(layers):
            last = layer == max(layers)
            colour = COLOURS["deberta"] if last else "0.85"
            ax.add_patch(Rectangle((x + 0.1, y - 0.35), 0.8, 0.7, color=colour, lw=0))
            ink = "white" if last else "black"
            ax.text(x + 0.5, y, str(layer), ha="center", va="center", color=ink)
        if layers.count(max(layers)) > 1:
            _keys_and_positions(ax, y, layers)
    ax.set(xlim=(-3.2, 13.4), ylim=(-2.7, 1.9))
    ax.axis("off")
    return fig


def _keys_and_positions(ax: Axes, y: float, layers: Sequence[int]) -> None:
    """Draw what enters the layer that is applied again: keys, queries and absolute positions."""
    repeated = [x for x, layer in enumerate(layers) if layer == max(layers)]
    start = repeated[0] - 0.5
    for x in repeated:
        _arrow(ax, (start, y - 0.38), (x + 0.5, y - 0.38), 0.45, SERIES[0])
    ax.text(start - 0.4, y - 0.85, "$H$: keys and values", ha="right", color=SERIES[0])
    _arrow(ax, (start, y + 1.25), (repeated[0] + 0.4, y + 0.38), 0.0, "black")
    ax.text(start, y + 1.3, "absolute positions join the queries", ha="right", va="bottom")
    first, second = repeated[0] + 0.5, repeated[1] + 0.5
    _arrow(ax, (first, y + 0.38), (second, y + 0.38), -0.7, "black")
    ax.text(second, y + 0.7, "queries", ha="center", va="bottom")


def _arrow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], bend: float, colour: str
) -> None:
    style = f"arc3,rad={bend}"
    arrow = FancyArrowPatch(
        start, end, connectionstyle=style, arrowstyle="-|>", mutation_scale=9, color=colour
    )
    ax.add_patch(arrow)
