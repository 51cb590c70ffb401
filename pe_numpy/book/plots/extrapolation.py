"""Figures of chapter 51: number systems, entropy and windows."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, in_style

SEEN, HALF, NEW = COLOURS["rope"], "#E69F00", SERIES[1]


@in_style
def number_in_bases(digits: dict[int, list[int]]) -> Figure:
    """Draw one number in several bases: a box for each digit, filled as high as the digit."""
    fig, axes = plt.subplots(figsize=(WIDTH, 0.62 * len(digits) + 0.5))
    widest = max(len(row) for row in digits.values())
    for row, (base, places) in enumerate(digits.items()):
        for place, digit in enumerate(reversed(places)):
            x, y = widest - 1 - place, -row
            box = (x - 0.42, y - 0.3)
            axes.add_patch(Rectangle(box, 0.84, 0.6 * digit / (base - 1), color="#9FC9AE", lw=0))
            axes.add_patch(Rectangle(box, 0.84, 0.6, fill=False, lw=0.8))
            axes.text(x, y, str(digit), ha="center", va="center", weight="bold")
            axes.text(x, y - 0.32, f"{base**place}s", ha="center", va="top", fontsize=6.5)
        axes.text(-1.0, -row, f"base {base}", ha="right", va="center")
        axes.text(widest - 0.3, -row, f"digits 0 to {base - 1}", ha="left", va="center")
    axes.set(xlim=(-2.1, widest + 1.5), ylim=(-len(digits) + 0.35, 0.45))
    axes.axis("off")
    return fig


@in_style
def digits_and_angles(
    digits: dict[str, np.ndarray], frequencies: dict[str, np.ndarray], trained: int
) -> Figure:
    """Draw positions as digits (N, places) and as angles of frequencies (pairs,), a panel a way.

    Trained positions have the digits 0 to 2 in three places; another digit, or one but 0 in a
    fourth place, is new. An angle is new beyond the arc that the first frequencies turned.
    """
    fig, axes = plt.subplots(2, len(digits), figsize=(WIDTH, 4.9), sharex=True)
    seen_arc = np.minimum(trained * next(iter(frequencies.values())), 2 * np.pi)
    for ax, (name, codes) in zip(axes[0], digits.items(), strict=True):
        base = 4 if name == "base conversion" else 3
        for place, column in enumerate(codes.T[::-1]):  # units first
            new = column > (2 if place < 3 else 0)
            status = np.where(column % 1 > 0, 1, np.where(new, 2, 0))
            _trace(ax, place, f"{base**place}s", np.arange(len(column)), column / 4, status)
        ax.set_title(name)
    at = np.arange(0, len(codes), 0.1)  # all positions between, too, so that one sees the teeth
    for ax, (name, theta) in zip(axes[1], frequencies.items(), strict=True):
        for pair, f in enumerate(theta):
            angle = at * f % (2 * np.pi)
            status = np.where(angle > seen_arc[pair], 2, 0)
            _trace(ax, pair, f"pair {pair}", at, angle / (2 * np.pi), status)
        ax.set(title=name, xlabel="position $p$")
    for ax in axes.flat:
        ax.axvspan(0, trained - 0.5, color="#EEEEEE", lw=0)
        ax.set(ylim=(-0.15, 4.8), yticks=(), xticks=(0, trained, len(codes)))
        ax.spines["left"].set_visible(False)
    for ax, system in zip(axes[:, 0], ("digits", "angles"), strict=True):
        ax.set_ylabel(system, labelpad=28, weight="bold")
    names = ("value seen in training", "half step", "new value")
    handles = [plt.Line2D([], [], marker="o", ls="", ms=5, color=c) for c in (SEEN, HALF, NEW)]
    fig.legend(handles, names, loc="outside lower center", ncols=3)
    return fig


def _trace(
    ax: Axes, level: int, name: str, at: np.ndarray, height: np.ndarray, status: np.ndarray
) -> None:
    """Draw one place or pair; status is 0 for a value seen, 1 for a half step, 2 for a new one."""
    for kind, colour in enumerate((SEEN, HALF, NEW)):
        of, size = status == kind, 4.0 if len(at) < 100 else 1.4
        ax.plot(at[of], 1.25 * level + height[of], ".", color=colour, ms=size)
    ax.text(-1.5, 1.25 * level + 0.4, name, ha="right", va="center", fontsize=7)


ENTROPY_LOOKS = (("#CCCCCC", 5.0), (SERIES[1], 1.6), (SERIES[0], 1.6), (COLOURS["rope"], 1.6))


@in_style
def entropy_over_length(
    n: np.ndarray, panels: dict[str, dict[str, np.ndarray]], trained: int
) -> Figure:
    """Draw entropies (N,) over the number of keys n (N,), one panel for each kind of scores."""
    fig, row = plt.subplots(1, len(panels), figsize=(WIDTH, 3.1), sharey=True)
    for axes, (title, curves) in zip(row, panels.items(), strict=True):
        for (name, curve), (colour, width) in zip(curves.items(), ENTROPY_LOOKS, strict=True):
            axes.plot(n, curve, color=colour, lw=width, label=name)
        axes.axvline(trained, color="black", lw=0.6, ls=":")
        axes.set_xscale("log", base=2)
        axes.set(title=title, xlabel="number of keys $n$", ylim=(0, None))
        axes.text(trained * 0.93, 0.25, "$L_0$", ha="right")
    row[0].set_ylabel("entropy, nats")
    handles, names = row[0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=4)
    return fig


@in_style
def needle_weights(
    n: np.ndarray, plain: dict[float, np.ndarray], scaled: dict[float, np.ndarray]
) -> Figure:
    """Draw the weight (N,) of one key among n (N,), for several leads, without and with log n."""
    fig, row = plt.subplots(1, 2, figsize=(WIDTH, 2.9), sharey=True)
    titles = ("plain scores", "times ln n / ln $L_0$")
    for axes, title, curves in zip(row, titles, (plain, scaled), strict=True):
        for (a, weight), colour in zip(curves.items(), SERIES, strict=False):
            axes.plot(n, weight, color=colour, label=f"$a = {a:g}$")
        axes.set_xscale("log", base=2)
        axes.set(title=title, xlabel="number of keys $n$", ylim=(-0.03, 1.05))
    handles, names = row[0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=len(plain))
    row[0].set_ylabel("weight of the needle")
    return fig


@in_style
def window_reach(reaches: dict[str, np.ndarray]) -> Figure:
    """Draw which keys (columns) can reach which tokens (rows), booleans (L, L), one panel each."""
    fig, row = plt.subplots(1, len(reaches), figsize=(WIDTH, 2.6))
    for axes, (title, reach) in zip(row, reaches.items(), strict=True):
        pale_and_green = mpl.colors.ListedColormap(["#EEEEEE", COLOURS["rope"]])
        axes.imshow(reach, cmap=pale_and_green, vmin=0, vmax=1, aspect="equal")
        axes.spines[:].set_visible(False)
        axes.set(title=title, xlabel="source $j$", xticks=(0, 10, 20), yticks=(0, 10, 20))
        axes.tick_params(length=0)
    row[0].set_ylabel("token $i$")
    return fig
