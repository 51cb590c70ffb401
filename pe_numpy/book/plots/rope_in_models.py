"""Figures of chapter 42: which components of a head turn, and in which layers."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Rectangle

from pe_numpy.book.plots.style import WIDTH, in_style

STILL = "#E8E8E8"  # what does not turn


@in_style
def pairs_of_a_head(heads: dict[str, tuple[np.ndarray, str]], width: int) -> Figure:
    """Draw the components of a head, each pair joined by an arc and coloured by its speed."""
    fig, axes = plt.subplots(len(heads), 1, figsize=(WIDTH, 1.15 * len(heads)))
    slowest = min(theta[theta > 0].min() for theta, _ in heads.values())
    norm, colours = LogNorm(slowest, 1), mpl.colormaps["viridis_r"]
    for ax, (name, (theta, layout)) in zip(axes, heads.items(), strict=True):
        n = len(theta)
        inks = ["black"] * width
        for i in range(width):
            ax.add_patch(Rectangle((i, 0), 1, 1, facecolor=STILL, edgecolor="white"))
        for c in np.flatnonzero(theta).tolist():
            first, second = (2 * c, 2 * c + 1) if layout == "interleaved" else (c, c + n)
            colour = colours(norm(theta[c]))
            for i in (first, second):
                ax.add_patch(Rectangle((i, 0), 1, 1, facecolor=colour, edgecolor="white"))
                inks[i] = "white" if norm(theta[c]) > 0.45 else "black"
            middle, span = (first + second + 1) / 2, second - first
            size = (span, 0.5 + 0.2 * span)
            ax.add_patch(Arc((middle, 1), *size, theta1=0, theta2=180, color=colour, lw=1.8))
        for i, ink in enumerate(inks):
            ax.text(i + 0.5, 0.5, str(i), ha="center", va="center", fontsize=8, color=ink)
        ax.set(xlim=(-0.1, width + 0.1), ylim=(-0.1, 2.4), xticks=(), yticks=())
        ax.set_title(name, loc="right", y=0.5)
        ax.spines[:].set_visible(False)
    scale = mpl.cm.ScalarMappable(norm, colours)
    fig.colorbar(scale, ax=list(axes), label="radians per position", shrink=0.7, aspect=30)
    return fig


@in_style
def layers_of_models(models: dict[str, Sequence[float]]) -> Figure:
    """Draw the base of RoPE in each layer of some models; 0 stands for a layer without RoPE."""
    fig, ax = plt.subplots(figsize=(WIDTH, 0.42 * len(models) + 0.7))
    norm, colours = LogNorm(1e4, 4e6), mpl.colormaps["viridis_r"]
    for y, (_, bases) in enumerate(models.items()):
        for x, base in enumerate(bases):
            face = colours(norm(base)) if base else "white"
            ax.add_patch(Rectangle((x + 0.04, y + 0.06), 0.92, 0.88, facecolor=face, ec="#777777"))
            words = f"{base / 1e6:g}M" if base >= 1e6 else f"{base / 1e3:g}k" if base else "none"
            ink = "white" if base and norm(base) > 0.45 else "black"
            ax.text(x + 0.5, y + 0.5, words, ha="center", va="center", fontsize=8, color=ink)
    longest = max(map(len, models.values()))
    ax.set(xlim=(0, longest), ylim=(len(models), 0), xlabel="layer")
    ax.set_xticks(np.arange(longest) + 0.5, [str(n) for n in range(longest)])
    ax.set_yticks(np.arange(len(models)) + 0.5, list(models))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return fig
