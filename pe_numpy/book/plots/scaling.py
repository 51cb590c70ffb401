"""Figures of chapter 50: scaled rotary frequencies."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Wedge
from matplotlib.ticker import NullLocator

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, in_style

# One look for each way of stretching, the same in all figures: colour, line, width.
LOOKS: dict[str, tuple[str, str, float]] = {
    "direct": (COLOURS["rope"], "-", 3.2),
    "linear": (SERIES[1], "-", 1.6),
    "NTK-aware": (SERIES[0], "-", 1.6),
    "YaRN": (SERIES[5], "-", 1.6),
    "by parts": (SERIES[5], ":", 1.6),
    "Llama 3": ("black", "--", 1.2),
    "LongRoPE": (COLOURS["rope"], "-", 2.4),
}
SEEN, NEW, EMPTY = COLOURS["rope"], SERIES[1], "#EEEEEE"


def _lines(axes: Axes, x: np.ndarray, curves: dict[str, np.ndarray]) -> None:
    for name, curve in curves.items():
        colour, line, width = LOOKS[name]
        y = np.round(curve, 6)  # the last bits differ between processors, and may decide a pixel
        axes.plot(np.round(x, 6), y, color=colour, ls=line, lw=width, label=name)


def _clock(axes: Axes, seen: float, reached: float) -> None:
    """Fill the part of the circle that training showed, and the part that is new."""
    turn, start = 2 * np.pi, np.degrees(min(seen, 2 * np.pi))
    axes.add_patch(Wedge((0, 0), 1, 0, 360, color=EMPTY, lw=0))
    axes.add_patch(Wedge((0, 0), 1, 0, start, color=SEEN, lw=0))
    if seen < turn and reached > seen * (1 + 1e-9):
        axes.add_patch(Wedge((0, 0), 1, start, np.degrees(min(reached, turn)), color=NEW, lw=0))
    axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=(), yticks=())
    axes.spines[:].set_visible(False)


@in_style
def seen_and_new_angles(
    seen: np.ndarray, reached: dict[str, np.ndarray], pairs: Sequence[int]
) -> Figure:
    """Draw the angles (n,) that pairs showed in training, and those each scheme reaches later."""
    rows = len(reached)
    fig, axes = plt.subplots(
        rows, len(pairs), figsize=(WIDTH, 1.0 * rows + 0.8), squeeze=False, layout="constrained"
    )
    for row, (name, angles) in zip(axes, reached.items(), strict=True):
        for ax, i in zip(row, pairs, strict=True):
            _clock(ax, seen[i], angles[i])
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for ax, i in zip(axes[0], pairs, strict=True):
        ax.set_title(f"pair {i}")
    handles = [Wedge((0, 0), 1, 0, 90, color=c) for c in (SEEN, NEW, EMPTY)]
    names = ["seen in training", "new in the long text", "never reached"]
    fig.legend(handles, names, loc="outside lower center", ncols=3)
    return fig


@in_style
def two_heads(
    near: np.ndarray, near_scores: dict[str, np.ndarray],
    far: np.ndarray, far_scores: dict[str, np.ndarray], trained: int,
) -> Figure:  # fmt: skip
    """Draw the scores of a head that looks three back, and of one that tells old from new."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.9))
    _lines(left, near, near_scores)
    left.axvline(3, color="black", lw=0.6, ls=":")
    left.set(title="near head: three back", xlabel="distance $\\delta$", ylabel="score")
    left.set_xticks((0, 3, 6, 9, 12, 15))
    right.axvspan(0, trained, color="#EEEEEE", lw=0)
    right.text(trained / 2, 1.08, "trained", ha="center")
    _lines(right, far, far_scores)
    right.set(title="far head: old or new", xlabel="distance $\\delta$", ylim=(-1.1, 1.25))
    handles, names = left.get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=len(names))
    return fig


@in_style
def scaled_wavelengths(wavelengths: dict[str, np.ndarray], trained: float, target: float) -> Figure:
    """Draw the wavelength (n,) of each pair under each scheme, and its ratio to the first one."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.4))
    first = next(iter(wavelengths.values()))
    pair = np.arange(len(first))
    _lines(left, pair, wavelengths)
    for length, name in ((trained, "trained length"), (target, "target length")):
        left.axhline(length, color="black", lw=0.6, ls=":")
        left.text(0, length * 1.12, name, fontsize=8)
    left.set(yscale="log", xlabel="pair $i$", ylabel="wavelength, positions")
    _lines(right, pair, {name: w / first for name, w in wavelengths.items()})
    right.set(xlabel="pair $i$", ylabel="times as long as before", ylim=(0.9, 4.15))
    handles, names = left.get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=len(names))
    return fig


@in_style
def two_ramps(turns: np.ndarray, kept: dict[str, np.ndarray]) -> Figure:
    """Draw how much of each pair's frequency is kept (n,), over its number and over its turns."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.8), sharey=True)
    _lines(left, np.arange(len(turns)), kept)
    left.set(xlabel="pair $i$", ylabel="share $g_i$ kept", ylim=(-0.04, 1.06))
    _lines(right, turns, kept)
    right.set(xlabel="rotations within the trained length", xlim=(0, 40))
    handles, names = left.get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=len(names))
    return fig


@in_style
def divisors(divided: dict[str, np.ndarray]) -> Figure:
    """Draw by what each scheme divides the frequency of each pair (n,)."""
    fig, axes = plt.subplots(figsize=(WIDTH, 2.9))
    _lines(axes, np.arange(len(next(iter(divided.values())))), divided)
    ticks = (1, 2, 4, 8, 16, 32, 64)
    axes.set(xlabel="pair $i$", ylabel="divided by", yscale="log")
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return fig


@in_style
def stale_keys(lengths: np.ndarray, errors: dict[str, np.ndarray], trained: int) -> Figure:
    """Draw how far decoding (N,) is from the whole pass, for two caches and two layers."""
    fig, axes = plt.subplots(figsize=(WIDTH, 2.7))
    looks = ((SERIES[1], "-"), (SERIES[1], "--"), (COLOURS["rope"], "-"), (COLOURS["rope"], "--"))
    for (name, error), (colour, line) in zip(errors.items(), looks, strict=True):
        axes.plot(lengths, error, color=colour, ls=line, label=name)
    axes.axvspan(lengths[0], trained, color="#EEEEEE", lw=0)
    axes.text((lengths[0] + trained) / 2, 0.13, "trained length", ha="center")
    axes.set(xlabel="tokens so far", ylabel="difference of the output")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return fig
