"""Figures of chapter 45: relatives of RoPE."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, in_style

RELATIVE = SERIES[1]  # what the chapter puts beside RoPE


def _two_scores(axes: Axes, n: np.ndarray, rope: np.ndarray, xpos: np.ndarray) -> None:
    """Draw the calmer of the two in front: xPos in the past, RoPE in the future."""
    for name, s, colour in (("RoPE", rope, COLOURS["rope"]), ("xPos", xpos, RELATIVE)):
        width = 1.1 if name == "xPos" else 0.7
        axes.plot(n[n >= 0], s[n >= 0].round(6), color=colour, lw=width, label=name)
        axes.plot(n[n <= 0], s[n <= 0].round(6), color=colour, lw=0.8, zorder=2 - (name == "xPos"))
    axes.axhline(0, color="#999999", lw=0.7, zorder=0)
    axes.set(xlabel="distance $n$", ylabel="score")


def _peaks(axes: Axes, n: np.ndarray, scores: np.ndarray, title: str, colour: str) -> None:
    """Curves (N, distances), each with a dot at its highest point."""
    for row in scores.round(6):
        axes.plot(n, row, color=colour, lw=0.9, alpha=0.75)
        axes.plot(n[row.argmax()], row.max(), "o", color=colour, ms=4)
    axes.axvline(0, color="#999999", lw=0.7, zorder=0)
    axes.set(title=title, xlabel="distance $n$", yticks=[])


@in_style
def rope_relatives_three(
    n: np.ndarray,
    rope: np.ndarray,
    xpos: np.ndarray,
    turned: np.ndarray,
    back: np.ndarray,
) -> Figure:
    """Draw RoPE and xPos over n, and outputs (N, 2) of shifted texts, turned and turned back."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(WIDTH, 2.6), gridspec_kw={"width_ratios": [2.4, 1]}
    )
    _two_scores(left, n, rope, xpos)
    left.legend(loc="upper right", ncols=2)
    left.set_title("queries and keys: score over distance")
    for points, colour in ((turned, COLOURS["rope"]), (back, RELATIVE)):
        for x, y in points.round(6):
            right.plot([0, x], [0, y], color=colour, lw=0.8, alpha=0.5)
        right.plot(*points.T.round(6), "o", color=colour, ms=4)
    right.text(0, -0.95, "rotated", color=COLOURS["rope"], ha="center", va="top")
    right.text(0, 1.0, "rotated back", color=RELATIVE, ha="center", va="bottom")
    right.set(aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.25, 1.3))
    right.set_title("values: the text moves")
    right.axis("off")
    return figure


@in_style
def rope_relatives_sides(n: np.ndarray, rope: np.ndarray, xpos: np.ndarray) -> Figure:
    """Draw RoPE and xPos over distances of both signs."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.5))
    _two_scores(axes, n, rope, xpos)
    axes.axvspan(n.min(), 0, color="#EEEEEE", zorder=0)
    axes.set_title("future: masked", loc="left")
    axes.set_title("past", loc="right")
    axes.margins(x=0)
    axes.legend(loc="lower right", ncols=2)
    return figure


@in_style
def rope_relatives_low_pass(lengths: np.ndarray, left: np.ndarray) -> Figure:
    """Draw what is left (pairs, lengths) of equal values under equal weights."""
    figure, axes = plt.subplots(figsize=(WIDTH * 0.7, 2.4))
    for c, row in enumerate(left.round(6)):
        axes.plot(lengths, row, color=SERIES[c], label=f"pair {c}")
    axes.set(xscale="log", xlabel="equal keys", ylabel="length of the sum", ylim=(0, 1.05))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


@in_style
def rope_relatives_peaks(n: np.ndarray, rope: np.ndarray, pope: np.ndarray) -> Figure:
    """Draw scores (N, distances) of contents with RoPE and PoPE, and where each is highest."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.4))
    _peaks(left, n, rope, "RoPE: content moves the peak", COLOURS["rope"])
    _peaks(right, n, pope, "PoPE without phase: all peaks at 0", RELATIVE)
    left.set_ylabel("score")
    return figure


@in_style
def rope_relatives_paths(counts: np.ndarray, path: np.ndarray, selective: np.ndarray) -> Figure:
    """Draw the score of a pair over the number of equal tokens between."""
    figure, axes = plt.subplots(figsize=(WIDTH * 0.75, 2.3))
    axes.plot(counts, path.round(6), "o-", color=SERIES[0], ms=3.5, label="PaTH")
    axes.plot(counts, selective.round(6), "o-", color=RELATIVE, ms=3.5, label="Selective RoPE")
    axes.axhline(0, color="#999999", lw=0.7, zorder=0)
    axes.set(xlabel="equal tokens between the two", ylabel="score")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
