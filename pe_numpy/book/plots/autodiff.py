"""Figures of chapter 61: how NumPy differentiates itself, and what training does with it."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, heat, in_style


@in_style
def difference_errors(
    steps: np.ndarray, errors: dict[str, np.ndarray], law: np.ndarray, best: float
) -> Figure:
    """Draw the errors of difference quotients over the step, with a predicted law and best step."""
    fig, ax = plt.subplots(figsize=(WIDTH, 3.2))
    for colour, (name, values) in zip(
        (SERIES[1], SERIES[0], SERIES[3]), errors.items(), strict=True
    ):
        ax.plot(steps, np.where(values > 0, values, np.nan), ".", ms=5, color=colour, label=name)
    ax.plot(steps, law, color="black", lw=1, label="central, predicted")
    ax.axvline(best, color=COLOURS["none"], lw=1, ls="--")
    ax.text(best / 1.4, 3e-15, "predicted best step")
    ax.set(xscale="log", yscale="log", xlabel="step $h$", ylabel="error of the slope")
    ax.set(xlim=(steps.max() * 2, steps.min() / 2), ylim=(1e-15, 3))
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 0.06))
    return fig


@in_style
def computation_graph(
    nodes: dict[str, tuple[float, float, float, float]],
    edges: Sequence[tuple[str, str, str, float]],
) -> Figure:
    """Draw a graph: nodes by name as (x, y, value, gradient), edges as (from, to, label, bend)."""
    fig, ax = plt.subplots(figsize=(WIDTH, 2.7))
    ax.set(xlim=(-0.8, 10.2), ylim=(-0.75, 3.4), aspect="equal")
    ax.axis("off")
    for start, end, label, bend in edges:
        (x0, y0), (x1, y1) = nodes[start][:2], nodes[end][:2]
        way = {"arrowstyle": "-|>", "shrinkA": 32, "shrinkB": 34, "color": "black", "lw": 1}
        way["connectionstyle"] = f"arc3,rad={bend}"
        ax.annotate("", (x1, y1), (x0, y0), arrowprops=way)
        # The middle of the arc: half of the bend to the right of the straight line.
        x, y = (x0 + x1) / 2 + bend * (y1 - y0) / 2, (y0 + y1) / 2 - bend * (x1 - x0) / 2
        white = {"fc": "white", "ec": "none", "pad": 1.0}
        ax.text(x, y, label, ha="center", va="center", fontsize=8, bbox=white)
    for name, (x, y, value, gradient) in nodes.items():
        style = "round,pad=0,rounding_size=0.12"
        box = FancyBboxPatch((x - 0.72, y - 0.52), 1.44, 1.04, style, ec="black", lw=0.8, zorder=3)
        box.set_facecolor(SERIES[4])
        ax.add_patch(box)
        ax.text(x, y + 0.2, f"{name} = {value:g}", ha="center", va="center", zorder=4)
        text = f"gradient {gradient:g}"
        ax.text(x, y - 0.24, text, ha="center", va="center", fontsize=7.5, zorder=4)
    return fig


@in_style
def bowl_paths(curvatures: np.ndarray, paths: dict[str, np.ndarray]) -> Figure:
    """Draw the way (steps + 1, 2) of each optimiser on a bowl, with its level lines."""
    fig, panels = plt.subplots(len(paths), 1, figsize=(WIDTH, 1.55 * len(paths)), sharex=True)
    a, b = np.meshgrid(np.linspace(-2.5, 11, 200), np.linspace(-2.3, 2.3, 100))
    height = (curvatures[0] * a**2 + curvatures[1] * b**2) / 2
    for ax, (colour, (name, path)) in zip(
        panels, zip(SERIES, paths.items(), strict=False), strict=True
    ):
        ax.contour(a, b, height, levels=[1, 4, 10, 20, 35, 50], colors="#BBBBBB", linewidths=0.7)
        ax.plot(*path.T, ".-", ms=4, lw=1, color=colour)
        ax.plot(*path[0], "o", color=colour)
        ax.plot(0, 0, "+", color="black", ms=9)
        ax.set(ylabel="$b$", ylim=(-2.3, 2.3))
        ax.text(0.995, 0.93, name, transform=ax.transAxes, ha="right", va="top", color=colour)
    panels[-1].set(xlabel="$a$", xlim=(-2.5, 11))
    return fig


@in_style
def learned_bias(losses: dict[str, np.ndarray], table: np.ndarray, weights: np.ndarray) -> Figure:
    """Draw losses over steps, the bias (N,) of each distance, and attention weights (L, S)."""
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(WIDTH, 2.5), width_ratios=(1.1, 1, 1))
    for colour, (name, values) in zip(SERIES, losses.items(), strict=False):
        left.plot(np.arange(1, len(values) + 1), values, color=colour)
        left.text(len(values), 2 * values[-1], name, color=colour, ha="right", va="bottom")
    left.set(yscale="log", xlabel="step", ylabel="loss")
    middle.bar(range(len(table)), table, color=COLOURS["t5"])
    middle.axhline(0, color="black", lw=0.8)
    middle.set(xlabel="distance $i - j$", ylabel="learned bias", xticks=range(0, len(table), 2))
    heat(right, weights, limit=1.0, signed=False)
    right.set(xlabel="key $j$", ylabel="query $i$", title="weights", aspect="equal")
    right.set(xticks=range(0, len(weights), 4), yticks=range(0, len(weights), 4))
    return fig
