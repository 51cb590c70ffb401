"""Figures of chapter 12: attention in blocks, windows and sinks."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, in_style


@in_style
def running_softmax(
    scores: np.ndarray, tops: np.ndarray, totals: np.ndarray, outputs: np.ndarray, target: float
) -> Figure:
    """Of one query, key by key (S,): scores and running maximum, rescaled sum, running output."""
    figure, panels = plt.subplots(1, 3, figsize=(WIDTH, 2.3))
    keys = np.arange(len(scores))
    panels[0].plot(keys, scores, "o", ms=4, color=SERIES[0], label="score $s_j$")
    panels[0].step(keys, tops, where="post", color=SERIES[1], label="maximum so far $m$")
    panels[0].set(ylabel="score", ylim=(scores.min() - 0.5, scores.max() + 3.6))
    panels[0].legend(fontsize=8, loc="upper left")
    panels[1].plot(keys, totals, ".-", color=SERIES[2])
    panels[1].set(ylabel=r"sum so far $\ell$", ylim=(0, None))
    panels[2].plot(keys, outputs, ".-", color=SERIES[5], label=r"$o / \ell$")
    panels[2].axhline(target, color=COLOURS["none"], ls="--", lw=1, label="attention")
    panels[2].set(ylabel="output so far")
    panels[2].legend(fontsize=8, loc="lower right")
    for axes in panels:
        axes.set_xlabel("keys read")
        for key in keys[1:][np.diff(tops) > 0]:
            axes.axvline(key, color=COLOURS["none"], lw=0.7, ls=":")
    return figure


@in_style
def block_sweep(
    states: np.ndarray, order: np.ndarray, lengths: np.ndarray, full: np.ndarray, held: np.ndarray
) -> Figure:
    """Blocks of the score matrix (n, n): 0 skipped, 1 done, 2 current, 3 to come; and memory."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.1), width_ratios=(1, 1.1))
    shades = ("#EEEEEE", SERIES[4], SERIES[1], "#FFFFFF")
    names = ("skipped: all future", "done", "in memory", "to come")
    for i, j in np.ndindex(states.shape):
        hatch = "////" if states[i, j] == 0 else None
        box = plt.Rectangle(
            (j, i), 1, 1, fc=shades[states[i, j]], ec="#777777", lw=0.8, hatch=hatch
        )
        left.add_patch(box)
        if states[i, j]:
            left.text(j + 0.3, i + 0.7, f"{order[i, j]}", ha="center", va="center")
    size = len(states)
    left.plot([0, size], [0, size], color="black", lw=1, ls="--")
    left.set(xlim=(0, size), ylim=(size, 0), aspect="equal")
    left.set(xlabel="blocks of keys $j$", ylabel="blocks of queries $i$")
    left.set_xticks(np.arange(size) + 0.5, range(size))
    left.set_yticks(np.arange(size) + 0.5, range(size))
    left.tick_params(length=0)
    left.spines[:].set_visible(False)
    keys = [
        plt.Rectangle((0, 0), 1, 1, fc=c, ec="#777777", hatch="////" if n == 0 else None, label=t)
        for n, (c, t) in enumerate(zip(shades, names, strict=True))
    ]
    left.legend(handles=keys, ncols=2, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    right.plot(lengths, full, color=SERIES[0], label=r"all scores at once: $L \cdot S$")
    right.plot(lengths, held, color=SERIES[1], label="one block at a time")
    right.set_xscale("log", base=2)
    right.set_yscale("log", base=2)
    right.set(xlabel="length $L = S$", ylabel="scores in memory at once, one head")
    right.legend(fontsize=8, loc="upper left")
    return figure


@in_style
def masks(panels: dict[str, np.ndarray]) -> Figure:
    """Draw masks (L, L): hidden, seen, and the query itself; beside each row how many it sees."""
    figure, row = plt.subplots(1, len(panels), figsize=(WIDTH, 2.3))
    colours = ListedColormap(["#EEEEEE", SERIES[4], SERIES[0]])
    for axes, (title, mask) in zip(row, panels.items(), strict=True):
        size = len(mask)
        axes.imshow(mask + np.eye(size), cmap=colours, vmin=0, vmax=2)
        axes.hlines(np.arange(size - 1) + 0.5, -0.5, size - 0.5, color="white", lw=1)
        axes.vlines(np.arange(size - 1) + 0.5, -0.5, size - 0.5, color="white", lw=1)
        for i in range(size):
            axes.text(size, i, f"{mask[i].sum()}", va="center", ha="center", fontsize=8)
        axes.set(title=title, xlabel="key $j$", xticks=range(size), yticks=range(size))
        axes.set_xlim(-0.5, size + 0.5)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    row[0].set_ylabel("query $i$")
    return figure


@in_style
def cache_slots(steps: list[list[int]], sinks: int) -> Figure:
    """Draw a cache at each step, slot by slot: sinks, recent tokens, and the query."""
    widest = max(map(len, steps))
    figure, axes = plt.subplots(figsize=(WIDTH * 0.62, 0.27 * len(steps) + 0.8))
    for y, tokens in enumerate(steps):
        for slot, token in enumerate(tokens):
            query = slot == len(tokens) - 1
            face = "white" if query else SERIES[1] if token < sinks else SERIES[4]
            axes.add_patch(plt.Rectangle((slot, y), 1, 1, fc=face, ec="#777777", lw=0.8))
            axes.text(slot + 0.5, y + 0.5, f"{token}", ha="center", va="center", fontsize=8)
    kinds = {"sink": SERIES[1], "recent": SERIES[4], "query": "white"}
    keys = [plt.Rectangle((0, 0), 1, 1, fc=c, ec="#777777", label=t) for t, c in kinds.items()]
    axes.legend(handles=keys, fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    axes.set(xlim=(0, widest), ylim=(len(steps), 0), xlabel="slot", ylabel="token that is read")
    axes.set_xticks(np.arange(widest) + 0.5, [f"{slot}" for slot in range(widest)])
    axes.set_yticks(np.arange(len(steps)) + 0.5, [f"{tokens[-1]}" for tokens in steps])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return figure
