"""Figures of chapter 39: what a state keeps of each token, and a probe of places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import MAGNITUDE, SERIES, WIDTH, in_style


@in_style
def recurrence_shares(
    tokens: Sequence[str], shares: Mapping[str, np.ndarray], answers: Sequence[str]
) -> Figure:
    """Draw the share (L,) of each token in one answer, a row per rule, and the answers."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.3))
    table = np.stack(list(shares.values()))
    axes.imshow(table, cmap=MAGNITUDE, vmin=0, vmax=1, aspect="auto")
    for row, column in np.ndindex(table.shape):
        share = table[row, column]
        shade = "black" if share > 0.6 else "white"
        axes.text(column, row, f"{share:.4g}", ha="center", va="center", color=shade)
    for row, answer in enumerate(answers):
        axes.text(len(tokens) - 0.4, row, answer, va="center")
    axes.spines[:].set_visible(False)
    axes.set_xticks(range(len(tokens)), tokens)
    axes.set_yticks(range(len(shares)), list(shares))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    return figure


@in_style
def recurrence_probe(true: np.ndarray, said: Mapping[str, np.ndarray]) -> Figure:
    """Draw where a probe (N,) finds a word, over where it is (N,), one panel per layer."""
    figure, axes = plt.subplots(1, len(said), figsize=(WIDTH, 2.5), sharey=True)
    for panel, (name, found) in zip(axes, said.items(), strict=True):
        panel.plot([true.min(), true.max()], [true.min(), true.max()], color="#777777", lw=1)
        panel.plot(true, found, ".", color=SERIES[0], ms=3, alpha=0.5)
        panel.set(title=name, xlabel="position of the marked word")
    axes[0].set_ylabel("what the probe reads")
    return figure
