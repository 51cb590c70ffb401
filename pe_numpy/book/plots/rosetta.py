"""Figures of chapter 65: the same things in the orders of several codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import SERIES, SIGNED, WIDTH, in_style

Blocks = dict[str, dict[str, tuple[np.ndarray, Any]]]  # what cells are, and what they are called


@in_style
def rosetta_stone(
    half: np.ndarray, fused: dict[str, np.ndarray], flipped: np.ndarray, halves: np.ndarray
) -> Figure:
    """Draw a strip of cells a convention: the same colour is the same thing.

    What functions moved: components 0 .. 7, columns 0 .. 5 of a projection, the rows of distances
    -3 .. 3, and those of T5's buckets, of which the fifth serves no distance.
    """
    strips = _moved(half, fused, flipped, halves) | _renamed()
    fig, panels = plt.subplots(4, 2, figsize=(WIDTH, 4.2))
    for ax, (title, rows) in zip(panels.flat, strips.items(), strict=True):
        things = np.array([ids for ids, _ in rows.values()])
        if things.min() < 0:
            colours = mpl.colormaps[SIGNED](0.5 + 0.38 * things / np.abs(things).max())
        else:
            colours = np.array([[mpl.colors.to_rgba(SERIES[n]) for n in row] for row in things])
        ax.imshow(colours, aspect="auto")
        for row, (_, names) in enumerate(rows.values()):
            for column, name in enumerate(names):
                ink = "white" if colours[row, column, :3] @ (0.3, 0.6, 0.1) < 0.55 else "black"
                ax.text(column, row, name, ha="center", va="center", fontsize=7, color=ink)
        ax.set_yticks(range(len(rows)), list(rows), fontsize=7.5)
        ax.set_xticks([])
        ax.set_xticks(np.arange(things.shape[1] + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="white", lw=1.5)
        ax.grid(which="minor", axis="y", color="white", lw=5)
        ax.tick_params(which="both", length=0)
        ax.spines[:].set_visible(False)
        ax.set_title(title, loc="left")
    return fig


def _moved(
    half: np.ndarray, fused: dict[str, np.ndarray], flipped: np.ndarray, halves: np.ndarray
) -> Blocks:
    """Give the strips that functions moved: what each cell is, and its name."""
    parts = np.array(["q0", "q1", "k0", "k1", "v0", "v1"])
    texts, tokens = np.repeat([0, 1], 4), np.tile(np.arange(4), 2)
    late = np.arange(8).reshape(4, 2, order="F").ravel()  # (T, B), (out, in)
    cells = np.array([f"{row},{column}" for row in range(2) for column in range(4)])

    def t5(rows: np.ndarray) -> tuple[np.ndarray, list[object]]:
        return rows, ["none" if n == 4 else d for n, d in enumerate(rows)]

    return {
        "components of a head, coloured by pair": {
            "interleaved": (np.arange(8) // 2, np.arange(8)),
            "half": (half // 2, half),
        },
        "columns of one projection, two heads": {n: (x, parts[x]) for n, x in fused.items()},
        "rows of a table, by distance $i-j$": {
            "$i-j$": (flipped[::-1], flipped[::-1]),
            "$j-i$": (flipped, flipped),
        },
        "T5's buckets: past 1, 2, 3; future -1, -2, -3": {
            "T5's code": t5(np.array([0, 1, 2, 3, 0, -1, -2, -3])),
            "sign changed": t5(halves),
        },
        "tokens of two texts in memory": {
            "$(B, T)$": (texts, tokens),
            "$(T, B)$": (texts[late], tokens[late]),
        },
        "a matrix from two inputs to four outputs": {
            "(in, out)": (np.arange(8), cells),
            "(out, in)": (late, cells[late]),
        },
    }


def _renamed() -> Blocks:
    """Give the strips whose cells stand in place and have other names."""
    seen, keys = np.array([1, 1, 1, 0, 0]), np.arange(5)
    return {
        "masks of five keys": {
            "may attend": (seen, np.where(seen, "T", "F")),
            "blocked": (seen, np.where(seen, "F", "T")),
            "additive": (seen, np.where(seen, "0", r"$-\infty$")),
        },
        "ALiBi's numbers for query 4, slope 1": {
            "$j-i$": (keys, keys - 4),
            "only $j$": (keys, keys),
        },
    }


@in_style
def forgotten_conventions(maps: dict[str, Sequence[np.ndarray]], shares: Sequence[float]) -> Figure:
    """Draw two maps of weights (L, S) a row: as it should be, and with the convention forgotten."""
    gaps, size = (1, 1, 0.1, 1, 1, 0.1, 1, 1), (WIDTH, 1.34 * len(maps) / 3)
    fig, panels = plt.subplots(-(-len(maps) // 3), 8, figsize=size, width_ratios=gaps)
    for gap in panels[:, [2, 5]].flat:
        gap.set_axis_off()
    pairs = panels[:, [0, 1, 3, 4, 6, 7]].reshape(-1, 2)
    for pair, (name, weights), share in zip(pairs, maps.items(), shares, strict=True):
        for ax, one, colours in zip(pair, weights, ("Blues", "Reds"), strict=True):
            ax.imshow(one, cmap=colours, vmin=0, vmax=0.8)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set(visible=True, color="#BBBBBB")
        pair[0].set_title(name, loc="left", fontsize=8)
        pair[1].set_title(f"{share:.0%}", loc="right", fontsize=8)
    return fig
