"""Figures of chapter 26: positions at random, digits, graphs."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, SERIES, SIGNED, WIDTH, in_style

_INDEX, _DRAWN = COLOURS["none"], SERIES[0]


def _draws(axes: Axes, draws: np.ndarray, N: int) -> None:
    """Rows of drawn positions (M, L) on lines from 0 to N - 1; neighbours of equal rank joined."""
    for row, p in enumerate(draws):
        axes.plot([0, N - 1], [row, row], color="#DDDDDD", lw=0.8, zorder=0)
        axes.plot(p, [row] * len(p), "o", color=_INDEX if row == 0 else _DRAWN, ms=4)
    for n in range(draws.shape[1]):
        axes.plot(draws[:, n], range(len(draws)), color="#BBBBBB", lw=0.6, zorder=0)
    axes.set_yticks(range(len(draws)), ["index", *("drawn",) * (len(draws) - 1)])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set(xlabel="position $p$")


def _cells(axes: Axes, words: Sequence[Sequence[str]], places: Sequence[Sequence[int]]) -> None:
    """Rows of tokens in boxes, coloured by their place; 0 is white."""
    for row, (text, at) in enumerate(zip(words, places, strict=True)):
        for column, (token, place) in enumerate(zip(text, at, strict=True)):
            colour = SERIES[(place - 1) % len(SERIES)] if place else "white"
            box = mpl.patches.Rectangle(
                (column - 0.45, row - 0.4), 0.9, 0.8, facecolor=colour, alpha=0.35, edgecolor="none"
            )
            axes.add_patch(box)
            axes.text(column, row, token, ha="center", va="center", fontsize=9)
            if place:
                axes.text(
                    column + 0.38, row + 0.34, str(place), ha="right", va="bottom", fontsize=5.5
                )
    axes.set(xlim=(-0.6, max(map(len, words)) - 0.4), ylim=(len(words) - 0.4, -0.6))
    axes.set_xticks(())
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def _graph(axes: Axes, nodes: np.ndarray, adjacency: np.ndarray, values: np.ndarray) -> None:
    """A graph, its nodes (N,) in the complex plane, coloured by signed values."""
    for i, j in np.argwhere(np.triu(adjacency)):
        axes.plot(nodes[[i, j]].real, nodes[[i, j]].imag, color="#999999", lw=1, zorder=0)
    limit = float(np.abs(values).max())
    axes.scatter(
        nodes.real,
        nodes.imag,
        c=np.round(values, 9),  # zeros of either sign get one colour
        cmap=SIGNED,
        vmin=-limit,
        vmax=limit,
        s=70,
        edgecolors="#555555",
        lw=0.6,
    )
    axes.set_aspect("equal")
    axes.margins(0.12)
    axes.set_xticks(())
    axes.set_yticks(())
    axes.spines[:].set_visible(False)


@in_style
def counting_three_ways(
    draws: Sequence[np.ndarray],
    N: int,
    numbers: Sequence[str],
    nodes: np.ndarray,
    adjacency: np.ndarray,
    values: np.ndarray,
) -> Figure:
    """Draw positions at random, places of digits, and a code of a graph's nodes, side by side."""
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(WIDTH, 2.2), width_ratios=(1.25, 1, 1)
    )
    _draws(left, np.array(draws), N)
    left.set_title("at random")
    _cells(middle, numbers, [range(1, len(number) + 1) for number in numbers])
    middle.set_yticks(())
    middle.set_title("in a number")
    _graph(right, nodes, adjacency, values)
    right.set_title("in a graph")
    return figure


@in_style
def counting_learned_order(
    tables: dict[str, np.ndarray], lengths: Sequence[int], shares: dict[str, Sequence[float]]
) -> Figure:
    """Draw trained tables (N,), and over the length how often each tells which token is first."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.5))
    for name, colour in zip(tables, (_INDEX, _DRAWN), strict=True):
        left.plot(tables[name], "o", color=colour, ms=2.5, label=name)
        right.plot(lengths, shares[name], "o-", color=colour, label=name)
    left.set(xlabel="position $p$", ylabel="trained $f_p$")
    left.legend(fontsize=8)
    right.axhline(0.5, color="#BBBBBB", lw=0.8, ls=":")
    right.text(lengths[-1], 0.49, "a guess", ha="right", va="top", fontsize=8, color="#777777")
    right.set_xscale("log", base=2)
    right.set_xticks(lengths, [str(n) for n in lengths])
    right.minorticks_off()
    right.set(xlabel="tokens in the text (trained: 8)", ylabel="right answers", ylim=(0.42, 1.03))
    return figure


@in_style
def counting_gaps(gaps: np.ndarray, chances: dict[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Draw how likely each gap (G,) is between neighbours and between every other token."""
    figure, panels = plt.subplots(1, len(chances), figsize=(WIDTH, 2.3))
    for axes, (name, (one, two)) in zip(panels, chances.items(), strict=True):
        axes.bar(gaps, one, width=1.0, color=SERIES[0], alpha=0.6, label="neighbours")
        axes.bar(gaps, two, width=1.0, color=SERIES[1], alpha=0.6, label="one between")
        axes.set(title=name, xlabel="gap $g$")
    panels[0].set_ylabel("probability")
    panels[0].legend(fontsize=8)
    return figure


@in_style
def counting_columns(words: dict[str, Sequence[str]], places: dict[str, Sequence[int]]) -> Figure:
    """Draw sums written in several ways, each token coloured by its place."""
    figure, axes = plt.subplots(figsize=(WIDTH, 0.62 * len(words) + 0.2))
    _cells(axes, list(words.values()), [places[name] for name in words])
    axes.set_yticks(range(len(words)), list(words))
    return figure


@in_style
def counting_cosines(
    vectors: dict[str, np.ndarray], curves: dict[str, tuple[np.ndarray, np.ndarray]]
) -> Figure:
    """Draw columns of eigenvectors (N, k) as dots and the cosines through them as curves."""
    figure, panels = plt.subplots(1, len(vectors), figsize=(WIDTH, 2.5), sharey=True)
    for axes, (name, V) in zip(panels, vectors.items(), strict=True):
        x, through = curves[name]
        for c, colour in zip(range(V.shape[1]), SERIES, strict=False):
            axes.plot(x, through[:, c], color=colour, lw=1)
            axes.plot(V[:, c], "o", color=colour, ms=4, label=f"$v_{c + 1}$")
        axes.axhline(0, color="#DDDDDD", lw=0.8, zorder=0)
        axes.set(title=name, xlabel="node $i$", ylim=(-0.62, 0.48))
        axes.set_xticks(range(0, len(V), 2))
    panels[0].legend(fontsize=8, ncols=3, loc="lower left")
    return figure


@in_style
def counting_molecule(nodes: np.ndarray, adjacency: np.ndarray, vectors: np.ndarray) -> Figure:
    """Draw a graph once for each column of codes (N, k), its nodes coloured by that column."""
    figure, panels = plt.subplots(1, len(vectors.T), figsize=(WIDTH, 1.7))
    for n, axes in enumerate(panels):
        _graph(axes, nodes, adjacency, vectors[:, n])
        for node, z in enumerate(nodes):
            dark = abs(vectors[node, n]) > 0.6 * np.abs(vectors[:, n]).max()
            ink = "white" if dark else "black"
            axes.text(z.real, z.imag, str(node), ha="center", va="center", fontsize=6, color=ink)
        axes.set_title(f"$v_{n + 1}$")
    return figure
