"""Figures of chapter 82: sinks, entropy by length, ranges of keys, reused keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, in_style

MARKERS = ("o", "s", "^")


@in_style
def sinks(
    changes: Mapping[str, Mapping[str, float]],
    weights: Mapping[str, Sequence[float]],
    all_see: Sequence[int],
) -> Figure:
    """Rise of the loss for each setting and text; weight on <bos> by layer, a curve a text."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.8), width_ratios=(1, 1.15))
    rows = np.arange(len(changes))
    for n, (text, marker) in enumerate(zip(weights, MARKERS, strict=True)):
        values = [change[text] for change in changes.values()]
        left.plot(values, rows, marker, ms=6, color=SERIES[n], alpha=0.85, label=text)
        right.plot(weights[text], marker + "-", ms=4, lw=1, color=SERIES[n], label=text)
    left.axvline(0, color=COLOURS["none"], lw=0.7)
    left.set_yticks(rows, list(changes))
    left.set(ylim=(len(rows) - 0.5, -0.5), xlabel="rise of the loss, nats per token")
    left.grid(axis="y", color="#DDDDDD", lw=0.6)
    for n in all_see:
        right.axvline(n, color=COLOURS["none"], lw=0.7, ls=":")
    right.set(xlabel="layer (dotted: global)", ylabel="mean weight on <bos>", ylim=(0, 0.66))
    right.set_xticks(range(0, len(next(iter(weights.values()))), 3))
    right.legend(fontsize=8, ncols=3, loc="upper center", columnspacing=1)
    return figure


@in_style
def entropies(
    lengths: Sequence[int], curves: Mapping[str, Mapping[str, np.ndarray]], rest: str
) -> Figure:
    """Entropy by length, a panel a layer, a curve a text; dashed: ln 2 per doubling."""
    figure, panels = plt.subplots(1, len(curves), figsize=(WIDTH, 2.6), sharey=True)
    for axes, (layer, by_text) in zip(panels, curves.items(), strict=True):
        for n, (text, marker) in enumerate(zip(by_text, MARKERS, strict=True)):
            axes.plot(lengths, by_text[text], marker + "-", ms=4, color=SERIES[n], label=text)
        start = np.mean([curve[0] for curve in by_text.values()])
        steep = start + np.log(np.array(lengths) / lengths[0])
        axes.plot(lengths, steep, "--", lw=1, color=COLOURS["none"], label="ln 2 per doubling")
        axes.set_xscale("log", base=2)
        axes.set_xticks(lengths, [f"{length:,}" for length in lengths], fontsize=7)
        axes.minorticks_off()
        axes.set(title=layer, xlabel="tokens")
    panels[0].set_ylabel(f"entropy{rest}, nats")
    panels[0].legend(fontsize=7)
    return figure


@in_style
def ranges(curves: Mapping[str, np.ndarray]) -> Figure:
    """Largest less least key of each pair's channels, fast pairs first; a curve each."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.6))
    for n, (name, values) in enumerate(curves.items()):
        axes.plot(values, MARKERS[n] + "-", ms=3, lw=1, color=SERIES[n], label=name)
    axes.set(xlabel="pair of channels, fast to slow", ylabel="range of the keys", ylim=(0, None))
    axes.legend(fontsize=8)
    return figure


@in_style
def by_layer(curves: Mapping[str, np.ndarray], ylabel: str) -> Figure:
    """One number per layer, some curves."""
    figure, axes = plt.subplots(figsize=(WIDTH * 0.75, 2.5))
    for n, (name, values) in enumerate(curves.items()):
        axes.plot(values, MARKERS[n] + "-", ms=4, color=SERIES[n], label=name)
    axes.set(xlabel="layer", ylabel=ylabel, ylim=(0, None))
    axes.set_xticks(range(0, len(values), 3))
    axes.legend(fontsize=8)
    return figure
