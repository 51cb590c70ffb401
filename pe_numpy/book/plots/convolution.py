"""Figures of chapter 23: position from zero padding."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import MAGNITUDE, SERIES, WIDTH, in_style


@in_style
def leak_by_layer(zero: np.ndarray, circular: np.ndarray, radius: int) -> Figure:
    """Draw a constant input after each layer, for two paddings, each (layers + 1, L).

    The number in a cell is the output; the colour is how far it has changed. The line runs where
    the border's reach ends: `radius` positions further in each layer.
    """
    fig, axes = plt.subplots(2, 1, figsize=(WIDTH, 4.2), sharex=True)
    limit = float(np.abs(1 - zero).max())
    rows, L = zero.shape
    for ax, data, name in zip(axes, (zero, circular), ("zero", "circular"), strict=True):
        ax.imshow(np.abs(1 - data), cmap=MAGNITUDE, vmin=0, vmax=limit, aspect="auto")
        for c, i in np.ndindex(data.shape):
            ink = "black" if abs(1 - data[c, i]) > 0.6 * limit else "white"
            ax.text(i, c, f"{data[c, i]:.2f}", ha="center", va="center", color=ink, fontsize=7)
        ax.set(title=f"{name} padding", ylabel="layers", yticks=range(rows))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    for edge, sign in ((-0.5, 1), (L - 0.5, -1)):
        corners = [(edge + sign * radius * c, c + d) for c in range(rows) for d in (-0.5, 0.5)]
        axes[0].plot(*zip(*corners, strict=True), color=SERIES[1], lw=2.2, clip_on=False)
    axes[1].set(xlabel="position $i$", xticks=range(L))
    return fig


@in_style
def leak_in_depth(
    profiles: dict[int, np.ndarray], visible: dict[int, int], radius: int, threshold: float
) -> Figure:
    """Draw a constant input after different numbers of layers over the distance to the border.

    `visible` counts, for each number of layers, the positions changed by more than `threshold`.
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 3.0))
    for row, (c, profile) in enumerate(profiles.items()):
        ink, height = (*SERIES[:3], SERIES[5])[row], 1.08 + 0.08 * row
        ax.plot(range(1, len(profile) + 1), profile, color=ink)
        name = f"{c} layer{'s' if c > 1 else ''}"
        ax.text(radius * c * 1.08, height, name, color=ink, va="center")
        ax.plot(visible[c], profile[visible[c] - 1], "o", color=ink, ms=6)
        ax.hlines(height, 1, radius * c, color=ink, lw=1.2)
        ax.plot(radius * c, height, "v", color=ink, ms=6)
    ax.text(14, 0.86, "triangles: how far the border reaches", va="top")
    ax.text(14, 0.76, f"dots: how far it changes more than {100 * threshold:.0f} %", va="top")
    ax.set_xscale("log", base=2)
    ax.set(xlabel="positions, counted from the border", ylabel="a constant 1 after the layers")
    ax.set(xlim=(0.95, 110), ylim=(0, 1.4), xticks=[2**n for n in range(7)])
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    return fig


@in_style
def picture_leak(pictures: dict[str, Sequence[np.ndarray]], layers: Sequence[int]) -> Figure:
    """Draw a constant image after several numbers of layers, one row of maps for each kernel."""
    fig, axes = plt.subplots(len(pictures), len(layers), figsize=(WIDTH, 3.9))
    for row, (name, maps) in zip(axes, pictures.items(), strict=True):
        for ax, data, c in zip(row, maps, layers, strict=True):
            image = ax.imshow(data, cmap=MAGNITUDE, vmin=0, vmax=1)
            ax.set(xticks=(), yticks=())
            ax.spines[:].set_visible(False)
            if ax in axes[0]:
                ax.set_title(f"{c} layer{'s' if c > 1 else ''}")
        row[0].set_ylabel(name)
    fig.colorbar(image, ax=axes, fraction=0.03, label="a constant 1 after the layers")
    return fig


@in_style
def probe_of_position(
    answers: dict[str, np.ndarray],
    target: np.ndarray,
    depths: Sequence[int],
    shares: dict[str, tuple[Sequence[float], str]],
) -> Figure:
    """Draw what a probe answers at each position, and how well it does over the depth.

    `answers` (sequences, L) for each network; `shares` the explained part of the variance, one
    number for each of `depths`, and a line style: first of the position for each network, then of
    the distance to the border for the last network.
    """
    fig, axes = plt.subplots(1, 4, figsize=(WIDTH, 2.7), width_ratios=(1, 1, 1, 1.25))
    for n, (ax, (name, a)) in enumerate(zip(axes, answers.items(), strict=False)):
        mean, spread = a.mean(axis=0), a.std(axis=0)
        ax.plot(target, color="black", lw=1, ls=":")
        ax.fill_between(range(len(mean)), mean - spread, mean + spread, color=SERIES[n], alpha=0.25)
        ax.plot(mean, color=SERIES[n])
        ax.set(title=name, xlabel="position $i$", ylim=(-13, 13))
        ax.set_xticks((0, len(mean) - 1))
        if n:
            ax.set_yticklabels(())
    axes[0].set_ylabel("answer of the probe", labelpad=0)
    for n, (row, style) in enumerate(shares.values()):
        percent = [100 * share for share in row]
        ink, size = SERIES[min(n, len(answers) - 1)], (4, 7, 4, 4)[n]
        axes[3].plot(depths, percent, style, color=ink, marker="o", ms=size)
    axes[3].set(title="explained variance,\nper cent", xlabel="layers", xticks=depths)
    return fig
