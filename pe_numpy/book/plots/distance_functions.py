"""Figures of chapter 36: functions of the distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, SCORE, SERIES, WIDTH, heat, in_style


@in_style
def distance_shapes(d: np.ndarray, biases: dict[str, np.ndarray], meeting: int) -> Figure:
    """Draw biases (N,) over the distances (N,), and the factors that they are on a weight."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.9))
    others = iter(((SCORE[3], "--"), (SCORE[2], "-."), (SCORE[1], ":"), (SCORE[0], "-")))
    for name, exact in biases.items():
        bias = exact.round(6)  # the last bits differ between processors
        colour, line = (COLOURS["alibi"], "-") if name == "ALiBi" else next(others)
        near = d <= 2 * meeting
        pen: dict[str, Any] = {"color": colour, "ls": line, "zorder": 2}
        if name == "Sandwich":  # its waves are narrow
            pen |= {"lw": 0.8, "zorder": 1}
        left.plot(d[near], bias[near], **pen)
        right.plot(d[1:], np.exp(bias[1:]), label=name, **pen)
    left.axvline(meeting, color="#BBBBBB", lw=1, zorder=0)
    left.set(xlabel="distance $|i-j|$", ylabel="bias $b$", ylim=(-9, 0.3))
    right.set(xscale="log", yscale="log", ylim=(1e-7, 1.5), xlabel="distance, log axis")
    right.set_ylabel("factor on the weight, $e^b$")
    right.legend(loc="lower left", fontsize=8)
    return figure


@in_style
def distance_exponents(p: np.ndarray, least: np.ndarray) -> Figure:
    """Draw the least eigenvalue (N,) of the centred bias over the exponents (N,)."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.3))
    least = least.round(6)  # the last bits differ between processors
    axes.plot(p, least, color=SERIES[2])
    axes.axvline(2, color=COLOURS["none"], lw=1, ls="--")
    axes.fill_between(p, least.min(), 3, where=p <= 2, color=SERIES[2], alpha=0.08, lw=0)
    axes.text(1.0, least.min() * 0.5, "a kernel", ha="center", color=SERIES[2])
    axes.text(2.05, least.min() * 0.85, "none", color=COLOURS["none"])
    axes.set(xlabel="exponent $p$", ylabel="least eigenvalue", ylim=(least.min(), 4))
    axes.set_xlim(p[0], p[-1])
    return figure


@in_style
def distance_sandwich(d: np.ndarray, bias: np.ndarray, line: np.ndarray, rise: int) -> Figure:
    """Draw Sandwich's bias (N,) over the distances (N,) beside a line in their logarithm."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.4))
    bias, line = bias.round(6), line.round(6)  # the last bits differ between processors
    axes.plot(d, bias, color=SCORE[1], label="Sandwich, $h = H$")
    axes.plot(d, line, color=COLOURS["none"], lw=1, ls="--", label="a line in the logarithm")
    axes.plot(d[d == rise], bias[d == rise], "o", color="black", ms=5)
    axes.annotate(
        f"first rise, after {rise}",
        (rise, bias[d == rise][0]),
        (-60, -26),
        textcoords="offset points",
    )
    axes.set(xscale="log", xlabel="distance $|i-j|$, log axis", ylabel="bias $b$")
    axes.legend(loc="lower left", fontsize=8)
    return figure


@in_style
def distance_sides(d: np.ndarray, biases: dict[str, np.ndarray]) -> Figure:
    """Draw biases (N,) of an encoder over the key's place beside the query."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.1))
    pens: tuple[dict[str, Any], ...] = (
        {"color": COLOURS["alibi"], "lw": 6, "alpha": 0.3},
        {"color": SCORE[4], "marker": "s", "ms": 4},
        {"color": SCORE[1], "marker": "^", "ms": 4, "ls": "--"},
    )
    for (name, bias), pen in zip(biases.items(), pens, strict=True):
        axes.plot(-d, bias, label=name, **pen)
    axes.axvline(0, color="#BBBBBB", lw=1, zorder=0)
    axes.set(xlabel="key's place beside the query, $j - i$", ylabel="bias $b$")
    axes.legend(fontsize=8, loc="lower center")
    return figure


@in_style
def distance_shares(shares: np.ndarray, L: int, rows: Sequence[int]) -> Figure:
    """Draw what FIRE's network reads (Q, Q), nan in the future, and some of its rows."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.0), width_ratios=(1, 1.15))
    shares = shares.round(6)  # the last bits differ between processors
    image = heat(left, shares, limit=1.0, signed=False)
    left.set_aspect("equal")
    left.axhline(L + 0.5, color=SERIES[1], lw=1.2)
    left.text(len(shares) - 1, L - 0.5, "$i = L$", ha="right", color=SERIES[1], fontsize=8)
    left.set(xlabel="key $j$", ylabel="query $i$")
    figure.colorbar(image, ax=left, shrink=0.7, label="argument of $f$")
    for i, colour in zip(rows, SERIES, strict=False):
        pen = {"lw": 6, "alpha": 0.35} if i < L else {}  # another lies on it
        right.plot(np.arange(i + 1), shares[i, i::-1], color=colour, label=f"$i = {i}$", **pen)
    right.set(xlabel="distance $i-j$", ylabel="argument of $f$", ylim=(0, 1.05))
    right.legend(fontsize=8, loc="lower right")
    return figure
