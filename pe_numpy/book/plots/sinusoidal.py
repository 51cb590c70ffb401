"""Figures of chapter 20: sinusoidal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, heat, in_style

_DARK = (SERIES[0], SERIES[1], SERIES[2], SERIES[5])  # of the series, those that show on white


@in_style
def digits_and_waves(digits: np.ndarray, waves: np.ndarray) -> Figure:
    """Draw binary digits above waves of the same periods; both (digits, positions), in -1 .. 1."""
    figure, axes = plt.subplots(2, 1, figsize=(WIDTH, 3.4), sharex=True)
    titles = ("binary digits: every change is a jump", "cosines of the same periods: no jumps")
    for ax, data, title in zip(axes, (digits, waves), titles, strict=True):
        heat(ax, data, limit=1)
        ax.set_title(title, loc="left")
        ax.set_yticks(range(len(data)), [str(2 ** (k + 1)) for k in range(len(data))])
        ax.set_ylabel("period")
        ax.set_xticks(range(0, data.shape[1], 4))
    axes[1].set_xlabel("position $pos$")
    return figure


@in_style
def clock_faces(codes: np.ndarray, speeds: np.ndarray) -> Figure:
    """Draw pairs of components as clock hands: codes (positions, pairs, 2), speeds (pairs,).

    Beside each hand its sine, to the right, and its cosine, upwards; one hand has their names.
    """
    n_positions, n_pairs, _ = codes.shape
    size = (WIDTH, 0.8 * WIDTH * n_pairs / n_positions)
    figure = plt.figure(figsize=size)
    axes: Any = figure.subplots(n_pairs, n_positions)
    turn = np.linspace(0, 2 * np.pi, 200)
    for pos, i in np.ndindex(n_positions, n_pairs):
        ax, colour = axes[i, pos], _DARK[i]
        ax.plot(np.sin(turn), np.cos(turn), color="#BBBBBB", linewidth=1)
        for before in range(pos):
            ax.plot(*codes[before, i], "o", color=colour, alpha=0.3, markersize=4)
        sine, cosine = codes[pos, i]
        ax.plot([0, sine, sine], [0, 0, cosine], ":", color="#777777", linewidth=1.2)
        if (pos, i) == (1, 0):
            ax.text(sine / 2, -0.08, "sine", ha="center", va="top", size=8)
            ax.text(sine + 0.05, 0.5 * cosine, "cosine", va="center", size=8, clip_on=False)
        ax.annotate(
            "", codes[pos, i], (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2}
        )
        ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        if i == 0:
            ax.set_title(f"$pos = {pos}$")
        if pos == 0:
            ax.set_ylabel(f"pair {i}\n{speeds[i]:.3f} rad")
    return figure


@in_style
def base_horizons(distances: np.ndarray, means: dict[float, np.ndarray]) -> Figure:
    """Draw the mean similarity of two codes over their distance (n,), for each base: {b: (n,)}."""
    figure, ax = plt.subplots(figsize=(WIDTH, 2.7))
    for n, (base, mean) in enumerate(means.items()):
        ax.plot(distances, mean, "o-", color=_DARK[n], markersize=4, label=f"$b = {base}$")
        ax.plot([base, base], [-0.19, -0.08], color=_DARK[n], linewidth=2)
        ax.text(base / 1.1, -0.14, "$k = b$", color=_DARK[n], ha="right", va="center", size=8)
    ax.axhline(0, color="#BBBBBB", linewidth=0.8, zorder=0)
    ax.set(
        xscale="log", xlabel="distance $k$ of two positions; a point is the mean over one octave"
    )
    ax.set(ylabel="mean similarity", ylim=(-0.2, 1.03))
    ax.legend(loc="upper right")
    return figure


@in_style
def table_and_curves(code: np.ndarray, components: Sequence[int]) -> Figure:
    """Draw codes (positions, D) as a heat map, a row a component, above pairs of them as curves."""
    rows = len(components) // 2
    ratios = (3.6, *[1] * rows)
    figure, (top, *strips) = plt.subplots(
        rows + 1, 1, figsize=(WIDTH, 5.6), sharex=True, height_ratios=ratios
    )
    image = heat(top, code.T, limit=1)
    figure.colorbar(image, ax=top, label="value", ticks=[-1, 0, 1], pad=0.01, fraction=0.05)
    top.set_ylabel("component")
    top.set_yticks(range(0, code.shape[1], 8))
    for n, ax in enumerate(strips):
        first, second = components[2 * n : 2 * n + 2]
        for c, style in ((first, "-"), (second, "--")):
            ax.plot(code[:, c], style, color=SERIES[n], linewidth=1)
        ax.set(ylim=(-1.15, 1.15), yticks=[-1, 0, 1])
        ax.set_title(f"components {first} and {second} (dashed)", loc="left")
    strips[-1].set_xlabel("position $pos$")
    return figure


@in_style
def distance_envelopes(curves: Sequence[tuple[str, np.ndarray, float, int, float]]) -> Figure:
    """Draw the range of distances over offsets, a panel a width.

    Each curve is (title, edges and ranges (3, blocks), neighbour's distance, nearest far offset,
    its distance); the three rows are the offset, the smallest and the largest distance of a block.
    """
    figure, axes = plt.subplots(len(curves), 1, figsize=(WIDTH, 1.7 * len(curves)), sharex=True)
    for ax, (title, (k, low, high), neighbour, far, nearest) in zip(axes, curves, strict=True):
        ax.fill_between(k, low, high, color=COLOURS["sinusoidal"], alpha=0.35, linewidth=0)
        block = int(k[1] - k[0])
        ax.text(
            2500,
            (low.max() + high.min()) / 2,
            f"from the nearest to the farthest of {block} offsets",
            va="center",
        )
        ax.plot(k, low, color=COLOURS["sinusoidal"], linewidth=0.8)
        ax.axhline(neighbour, color=COLOURS["t5"], linestyle="--", linewidth=1.2)
        ax.text(205000, neighbour, f"neighbour\n{neighbour:.4f}", color=COLOURS["t5"], va="center")
        ax.plot(far, nearest, "v", color="black", markersize=6, clip_on=False, zorder=3)
        ax.set_title(f"{title}: nearest from offset 1000 on is {far}, at {nearest:.4f}", loc="left")
        ax.set(ylabel="distance of encodings", ylim=(0, None), xlim=(0, 202000))
    axes[-1].set_xlabel("offset $k$ between the two positions")
    return figure


@in_style
def dot_products(curves: dict[int, np.ndarray], first_increases: dict[int, int]) -> Figure:
    """Draw f(k)/f(0) over the distance k for each width, {D: (n,)}, and the first k that rises."""
    figure, ax = plt.subplots(figsize=(WIDTH, 3))
    for n, (width, f) in enumerate(curves.items()):
        k = first_increases[width]
        ax.plot(f / f[0], color=_DARK[n], linewidth=1.3, label=f"$D = {width}$")
        ax.plot(k, f[k] / f[0], "^", color=_DARK[n], markersize=8, markeredgecolor="white")
        ax.text(k, f[k] / f[0] - 0.09, str(k), ha="center", color=_DARK[n], weight="bold")
    ax.axhline(0, color="#BBBBBB", linewidth=0.8, zorder=0)
    ax.set(xlabel="distance $k = m - n$", ylabel="$f(k)\\,/\\,f(0)$", xlim=(-1, None))
    ax.legend(ncols=len(curves), loc="upper right")
    return figure


@in_style
def score_maps(maps: Sequence[np.ndarray], titles: Sequence[str]) -> Figure:
    """Draw scores of position against position, each (L, L), side by side; each has its scale."""
    figure, axes = plt.subplots(1, len(maps), figsize=(WIDTH, 2.7))
    for ax, scores, title in zip(axes, maps, titles, strict=True):
        heat(ax, scores)
        ax.plot(scores.argmax(1), range(len(scores)), ".", color="black", markersize=3)
        ax.set(title=title, xlabel="key $n$", aspect="equal")
    axes[0].set_ylabel("query $m$")
    return figure


@in_style
def shift_in_planes(before: np.ndarray, after: np.ndarray, angles: np.ndarray) -> Figure:
    """Draw a shift as a clockwise turn: before and after (pairs, 2), angles (pairs,)."""
    figure, axes = plt.subplots(1, len(angles), figsize=(WIDTH, 2.3))
    turn = np.linspace(0, 2 * np.pi, 200)
    for i, (ax, start, end, angle) in enumerate(zip(axes, before, after, angles, strict=True)):
        ax.plot(np.sin(turn), np.cos(turn), color="#BBBBBB", linewidth=1)
        for point, colour in ((start, SERIES[0]), (end, SERIES[1])):
            arrow = {"arrowstyle": "-|>", "color": colour, "lw": 2}
            ax.annotate("", point, (0, 0), arrowprops=arrow)
        arc = np.arctan2(*start) + np.linspace(0, angle, 100)
        ax.plot(0.6 * np.sin(arc), 0.6 * np.cos(arc), color=SERIES[2], linewidth=2)
        ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.set_title(f"pair {i}: {angle:.3f} rad")
        ax.set_xlabel("sine")
    axes[0].set_ylabel("cosine")
    axes[0].plot([], [], color=SERIES[0], lw=2, label="$PE(pos)$")
    axes[0].plot([], [], color=SERIES[1], lw=2, label="$PE(pos + k)$")
    axes[0].plot([], [], color=SERIES[2], lw=2, label=r"the rotation by $k\theta_i$")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


@in_style
def precision_curves(positions: np.ndarray, errors: dict[str, np.ndarray]) -> Figure:
    """Draw errors of a code over position, log-log: positions (n,), {name: (n,)}."""
    figure, ax = plt.subplots(figsize=(WIDTH, 3))
    for n, (name, error) in enumerate(errors.items()):
        ax.plot(positions, error, "o-", color=_DARK[n], markersize=4, label=name)
    ax.axhline(2, color="#BBBBBB", linewidth=1, linestyle="--")
    ax.text(positions[0], 2.6, "2: the largest error there can be", color="#777777", va="bottom")
    ax.set(yscale="log", ylim=(2e-9, 9), xlabel="position $pos$", ylabel="largest error")
    ax.set_xscale("log", base=2)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
