"""Figures of chapter 60: the Transformer block."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, heat, in_style

# One colour for each way to wire a sublayer into the stack.
WIRINGS = {
    "plain": COLOURS["none"],
    "residual": SERIES[2],
    "post-norm": SERIES[1],
    "pre-norm": SERIES[0],
}


@in_style
def activation_curves(x: np.ndarray, curves: dict[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Draw activations and their slopes, each name with (values, slopes) at the points x."""
    fig, panels = plt.subplots(1, 2, figsize=(WIDTH, 2.7))
    for colour, (name, values) in zip(SERIES, curves.items(), strict=False):
        for ax, y in zip(panels, values, strict=True):
            ax.plot(x, y, color=colour, label=name)
    panels[0].set(xlabel="$x$", ylabel="activation", ylim=(-0.6, 3.2))
    panels[1].set(xlabel="$x$", ylabel="slope", ylim=(-0.2, 1.2))
    for ax in panels:
        ax.axhline(0, color=COLOURS["none"], lw=0.6)
        ax.legend()
    return fig


@in_style
def wiring_gradients(norms: dict[str, np.ndarray]) -> Figure:
    """Draw the gradient norms (N,) of all layers, one curve for each wiring, on a log axis."""
    fig, ax = plt.subplots(figsize=(WIDTH, 2.9))
    for name, values in norms.items():
        layers = np.arange(1, len(values) + 1)
        ax.plot(layers, values, ".-", color=WIRINGS[name])
        side = {"post-norm": "bottom", "pre-norm": "top"}.get(name, "center")  # they are close
        ax.text(len(values) + 0.4, values[-1], name, color=WIRINGS[name], va=side)
    ax.set(yscale="log", xlabel="layer $n$", ylabel="norm of the gradient of $W_2$")
    ax.set(xlim=(0.5, len(values) + 4), ylim=(1e-7, 1e4))
    ax.set_xticks([1, *range(4, len(values) + 1, 4)])
    return fig


@in_style
def norm_tables(tables: dict[str, np.ndarray], tokens: Sequence[str]) -> Figure:
    """Draw tables (tokens, components), with the mean of each row and of each column beside it."""
    fig, panels = plt.subplots(1, len(tables), figsize=(WIDTH, 3.0))
    for ax, (title, data) in zip(panels, tables.items(), strict=True):
        rows, columns = data.shape
        whole = np.full((rows + 1, columns + 1), np.nan)
        whole[:rows, :columns] = data
        whole[:rows, columns], whole[rows, :columns] = data.mean(axis=1), data.mean(axis=0)
        heat(ax, np.nan_to_num(whole), limit=3.0)
        for i, j in np.ndindex(whole.shape):
            if np.isnan(whole[i, j]):
                continue
            text = "0" if abs(whole[i, j]) < 5e-3 else f"{whole[i, j].round(1) + 0.0:.1f}"
            ink = "white" if abs(whole[i, j]) > 1.8 else "black"
            ax.text(j, i, text, ha="center", va="center", fontsize=7, color=ink)
        ax.axhline(rows - 0.5, color="black", lw=1)
        ax.axvline(columns - 0.5, color="black", lw=1)
        ax.set_title(title)
        ax.set_xticks(range(columns + 1), [*map(str, range(columns)), "mean"], fontsize=7)
        ax.set_yticks(range(rows + 1), [*tokens, "mean"] if ax is panels[0] else [], fontsize=7)
        ax.tick_params(length=0)
    panels[1].set_xlabel("component")
    return fig


@in_style
def gradient_laws(
    measured: dict[str, dict[int, np.ndarray]], laws: dict[str, np.ndarray], bound: float = 0.9
) -> Figure:
    """Draw gradient norms of stacks of several depths as dots, and the predicted law as a line."""
    fig, panels = plt.subplots(1, len(measured), figsize=(WIDTH, 2.8), sharey=True)
    for ax, (name, by_depth) in zip(panels, measured.items(), strict=True):
        layers = np.arange(1, len(laws[name]) + 1)
        ax.plot(layers, laws[name], color="black", lw=1, label="predicted")
        for (depth, values), mark in zip(by_depth.items(), "os^", strict=True):
            n = np.arange(1, depth + 1)
            ax.plot(n, values, mark, ms=4, color=WIRINGS[name], mfc="none", label=f"{depth} layers")
        ax.set(title=name, xlabel="layer $n$", ylim=(0, bound))
        ax.set_xticks([1, 6, 12, 18, 24])
        ax.legend(loc="lower left", ncols=2, columnspacing=1.0)
    panels[0].set_ylabel("norm of the gradient of $W_2$")
    return fig


@in_style
def block_paths() -> Figure:
    """Draw the data path of an encoder: post-norm above; pre-norm below, with its last norm."""
    fig, panels = plt.subplots(2, 1, figsize=(WIDTH, 3.1))
    parts = ("attention", "feed-\nforward")
    for ax, name in zip(panels, ("post-norm", "pre-norm"), strict=True):
        ax.set(xlim=(0, 17.5), ylim=(-0.75, 2.3))
        ax.axis("off")
        ax.text(0, 2.05, name, weight="bold")
        ax.text(0.1, 0, "$x$", ha="center", va="center")
        path = {"color": WIRINGS[name], "lw": 3, "zorder": 1, "solid_capstyle": "butt"}
        ax.plot([0.4, 13.3], [0, 0], **path)
        ax.text(13.75, 0, "...", ha="center", va="center")  # more blocks
        ax.plot([14.2, 16.8], [0, 0], **path)
        ax.annotate("", (17.3, 0), (16.7, 0), arrowprops={"arrowstyle": "-|>", "color": "black"})
        for n, part in enumerate(parts):
            start = 0.8 + 6.2 * n
            add = start + (3.6 if name == "post-norm" else 5.0)
            low = {"color": "black", "lw": 1, "zorder": 1}
            ax.plot([start, start, add, add], [0, 1.35, 1.35, 0.25], **low)
            ax.plot(start, 0, "o", color="black", ms=4, zorder=3)
            if name == "post-norm":
                _box(ax, (start + add) / 2, 1.35, part, SERIES[4])
                _box(ax, add + 1.4, 0, "norm", SERIES[3])
            else:
                _box(ax, start + 1.2, 1.35, "norm", SERIES[3])
                _box(ax, start + 3.4, 1.35, part, SERIES[4])
            ax.add_patch(Circle((add, 0), 0.25, fc="white", ec="black", zorder=3))
            ax.text(add, -0.02, "+", ha="center", va="center", zorder=4)
        if name == "pre-norm":
            _box(ax, 15.4, 0, "norm", SERIES[3])
            ax.text(15.4, 0.8, "after the\nlast block", ha="center", va="bottom", fontsize=7.5)
        ax.set_aspect("equal")
    return fig


def _box(ax: Axes, x: float, y: float, text: str, colour: str) -> None:
    style = "round,pad=0,rounding_size=0.12"
    ax.add_patch(
        FancyBboxPatch(
            (x - 0.8, y - 0.45), 1.6, 0.9, style, fc=colour, ec="black", lw=0.8, zorder=3
        )
    )
    ax.text(x, y, text, ha="center", va="center", fontsize=7.5, zorder=4)


@in_style
def gradient_by_layer(norms: dict[str, np.ndarray]) -> Figure:
    """Draw gradient norms (2, N) of encoder and decoder layers, one colour for each norm."""
    fig, ax = plt.subplots(figsize=(WIDTH, 2.8))
    for name, stacks in norms.items():
        N = stacks.shape[1]
        for n, values in enumerate(stacks):
            at = np.arange(N) + n * (N + 0.6)
            ax.plot(at, values, ".-", color=WIRINGS[name], label=None if n else name)
    ax.axvline(N - 0.2, color=COLOURS["none"], lw=0.8, ls=":")
    ticks = [n + s * (N + 0.6) for s in (0, 1) for n in range(N)]
    ax.set_xticks(ticks, [f"{n + 1}" for n in range(N)] * 2)
    ax.set(yscale="log", ylim=(0.01, 2), xlabel="block")
    ax.set_title("encoder", loc="left")
    ax.set_title("decoder", loc="right")
    ax.set_ylabel("norm of the gradient of $W_2$")
    ax.legend(loc="lower left")
    return fig
