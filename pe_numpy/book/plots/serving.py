"""Figures of chapter 66: slots and positions, a tree of drafts, ranks, rounded keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import SERIES, WIDTH, in_style

HIDDEN, SEEN, QUERY = "#F0F0F0", "#88CCEE", "#332288"


@in_style
def serving_slots(
    rows: Mapping[str, tuple[Sequence[int], Sequence[bool], int]], shifted: Sequence[int]
) -> Figure:
    """Draw a strip of slots per situation: positions (S,), what the query sees (S,), its slot.

    99 is a slot of another text. The positions of the last situation become those of `shifted`.
    """
    slots = len(shifted)
    figure, axes = plt.subplots(figsize=(WIDTH, 0.42 * len(rows) + 0.7))
    for row, (positions, seen, query) in enumerate(rows.values()):
        for slot, position in enumerate(positions):
            label = "–" if position == 99 else f"{position}"
            if row == len(rows) - 1 and position != shifted[slot]:
                label += f"→{shifted[slot]}"
            colour = QUERY if slot == query else SEEN if seen[slot] else HIDDEN
            axes.add_patch(plt.Rectangle((slot - 0.46, row - 0.38), 0.92, 0.76, fc=colour, lw=0))
            ink = "white" if slot == query else "black" if seen[slot] else "#777777"
            axes.text(slot, row, label, ha="center", va="center", color=ink)
    axes.set(xlim=(-0.6, slots - 0.4), ylim=(len(rows) - 0.5, -0.6))
    axes.spines[:].set_visible(False)
    axes.xaxis.tick_top()
    axes.set_xticks(range(slots))
    axes.set_yticks(range(len(rows)), list(rows))
    axes.tick_params(length=0)
    axes.set_title("slot", fontsize=9)
    keys = [
        plt.Rectangle((0, 0), 1, 1, fc=colour, label=label)
        for colour, label in ((QUERY, "the query"), (SEEN, "it may see"), (HIDDEN, "hidden"))
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=3, fontsize=8)
    return figure


@in_style
def serving_tree(
    parents: np.ndarray, words: Sequence[str], positions: np.ndarray, mask: np.ndarray
) -> Figure:
    """Draw a tree of drafts with the number and position of each node, and who sees whom."""
    figure, (tree, grid) = plt.subplots(1, 2, figsize=(WIDTH, 2.6), width_ratios=(1.5, 1))
    across = np.zeros(len(parents))
    for depth in range(positions.max() + 1):
        nodes = np.flatnonzero(positions == depth)
        across[nodes] = (np.arange(len(nodes)) + 0.5) / len(nodes)
    for node, parent in enumerate(parents):
        if parent >= 0:
            ends = [across[parent], across[node]], [positions[parent], positions[node]]
            tree.plot(*ends, color="#AAAAAA", lw=1, zorder=0)
        at = across[node], positions[node]
        tree.plot(*at, "o", ms=19, mfc="white", mec=SERIES[0], mew=1.2)
        tree.text(*at, words[node], ha="center", va="center")
        tree.text(at[0] + 0.055, at[1], str(node), fontsize=7, color="#555555", va="center")
    tree.set(xlim=(0, 1), ylim=(positions.max() + 0.5, -0.5), xticks=[])
    tree.set_yticks(range(positions.max() + 1), [f"depth {d}" for d in range(positions.max() + 1)])
    tree.spines[:].set_visible(False)
    tree.tick_params(length=0)
    _mask(grid, mask)
    grid.set(xlabel="key: node", ylabel="query: node")
    return figure


def _mask(axes: Axes, mask: np.ndarray) -> None:
    axes.imshow(mask, cmap=ListedColormap([HIDDEN, SEEN]), vmin=0, vmax=1)
    axes.set_xticks(range(mask.shape[1]))
    axes.set_yticks(range(mask.shape[0]))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


@in_style
def serving_ranks(held: Mapping[str, np.ndarray]) -> Figure:
    """Draw which rank computes which pair of query and key, for shards (R, L/R) of each kind."""
    figure, axes = plt.subplots(1, len(held), figsize=(WIDTH, 2.9))
    for panel, (name, positions) in zip(axes, held.items(), strict=True):
        length = positions.size
        rank_of = np.zeros(length, int)
        for rank, own in enumerate(positions):
            rank_of[own] = rank
        table = np.where(np.tri(length, dtype=bool), rank_of[:, None], np.nan)
        panel.imshow(table, cmap=ListedColormap(SERIES[: len(positions)]), interpolation="nearest")
        panel.set(title=name, xlabel="position of the key", xticks=[0, length - 1])
        panel.set_yticks([0, length - 1])
        panel.tick_params(length=0)
    axes[0].set_ylabel("position of the query")
    keys = [
        plt.Rectangle((0, 0), 1, 1, fc=SERIES[rank], label=f"rank {rank}")
        for rank in range(len(positions))
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys), fontsize=8)
    return figure


@in_style
def serving_bits(bits: Sequence[int], errors: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the relative error of the output for each way to round the cache, over the bits."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.8))
    for (name, values), colour in zip(errors.items(), SERIES, strict=False):
        style = "--" if name.startswith("values") else "-"
        axes.plot(range(len(bits)), values, f"o{style}", color=colour, label=name, ms=4)
    axes.set(yscale="log", ylabel="relative error of the output")
    axes.set_xticks(range(len(bits)), [f"{b} bits" for b in bits])
    axes.minorticks_off()
    figure.legend(loc="outside right center", fontsize=8)
    return figure
