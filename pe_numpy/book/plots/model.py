"""Figures of chapter 62: an encoder and a decoder, trained."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import READS, SERIES, WIDTH, heat, in_style

PALE = {"encoder": "#DCEBF7", "decoder": "#F6E3E6", "memory": "#FBF3D0", "plain": "#F2F2F2"}
SEEN, HIDDEN, ANSWER = "#9DC3E6", "#F2F2F2", "#CC6677"


@in_style
def encoder_decoder_path(source: str, inputs: str, targets: str) -> Figure:
    """Draw what becomes of a source string and of the shifted target, with shapes."""
    fig, ax = plt.subplots(figsize=(WIDTH, 4.3), layout="none")
    fig.subplots_adjust(0, 0, 1, 1)
    ax.set(xlim=(0, 14), ylim=(0, 8.6))
    ax.set_axis_off()

    def box(x: float, y: float, text: str, kind: str, width: float = 3.7) -> None:
        corner = (x - width / 2, y - 0.36)
        ax.add_patch(plt.Rectangle(corner, width, 0.72, fc=PALE[kind], ec="#555555", lw=0.7))
        ax.text(x, y, text, ha="center", va="center")

    def arrow(
        start: tuple[float, float], end: tuple[float, float], colour: str = "#555555"
    ) -> None:
        style = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0, "lw": 1.1}
        ax.annotate("", xy=end, xytext=start, arrowprops=style)

    left, right = 2.6, 9.4
    ax.text(left, 8.3, "encoder, reads all at once", ha="center", weight="bold")
    ax.text(
        right, 8.3, "decoder, row $t$ says the token after input $t$", ha="center", weight="bold"
    )
    for y, text, kind in (
        (1.7, "embedding + position", "plain"),
        (2.95, "self-attention, both ways", "encoder"),
        (4.2, "feed-forward", "encoder"),
        (6.0, "memory: one vector per token", "memory"),
    ):
        box(left, y, text, kind)
    for y, text, kind in (
        (1.7, "embedding + position", "plain"),
        (2.95, "self-attention, causal mask", "decoder"),
        (4.6, "cross-attention", "decoder"),
        (5.85, "feed-forward", "decoder"),
        (7.1, "logits of the next token", "plain"),
    ):
        box(right, y, text, kind, 4.2)
    for x, ys in ((left, (0.75, 1.7, 2.95, 4.2, 6.0)), (right, (0.75, 1.7, 2.95, 4.6, 5.85, 7.1))):
        for low, high in itertools.pairwise(ys):
            arrow((x, low + (0.2 if low == 0.75 else 0.4)), (x, high - 0.4))
    for y, target, name, colour in (
        (6.0, 4.75, "keys", READS["k"]),
        (5.75, 4.45, "values", READS["v"]),
    ):
        start, end = (left + 1.9, y), (right - 2.15, target)
        arrow(start, end, colour)
        place = (start[0] + 0.9, y - 0.2 if name == "keys" else y - 0.62)
        ax.text(*place, name, color=colour, rotation=-13, ha="center", va="center", fontsize=8)
    ax.text(right + 0.15, 3.78, "queries", color=READS["q"], fontsize=8, va="center")
    for x, word, label in ((left, source, "source"), (right, inputs, "inputs, shifted right")):
        ax.text(x, 0.62, "  ".join(word), ha="center", va="center", family="monospace", fontsize=11)
        ax.text(x, 0.18, label, ha="center", va="center", color="#555555")
    ax.text(
        right, 7.86, "  ".join(targets), ha="center", va="center", family="monospace", fontsize=11
    )
    for x, y, shape in (
        (left + 2.0, 1.7, "$(B, S, D)$"),
        (left + 2.0, 6.55, "$(B, S, D)$"),
        (right + 2.3, 1.7, "$(B, L, D)$"),
        (right + 2.3, 7.1, "$(B, L, V)$"),
    ):
        ax.text(x, y, shape, va="center", color="#555555")
    return fig


@in_style
def teacher_forcing_grids(
    panels: Sequence[tuple[str, np.ndarray, Sequence[str], Sequence[int]]], targets: Sequence[str]
) -> Figure:
    """Draw which inputs each row sees (L, L), what it must say, and where it could read that.

    A panel is (title, mask, inputs, for each row the column that holds its own target, or -1).
    """
    fig, axes = plt.subplots(1, len(panels), figsize=(WIDTH, 2.6))
    marks = {"seen": SEEN, "hidden": HIDDEN, "seen: the row's own target": ANSWER}
    patches = [plt.Rectangle((0, 0), 1, 1, fc=colour, lw=0) for colour in marks.values()]
    fig.legend(patches, marks, loc="outside lower center", ncols=len(marks))
    for ax, (title, mask, inputs, answers) in zip(axes, panels, strict=True):
        L = len(targets)
        for t, j in np.ndindex(mask.shape):
            leak = bool(mask[t, j]) and answers[t] == j
            colour = ANSWER if leak else SEEN if mask[t, j] else HIDDEN
            ax.add_patch(plt.Rectangle((j - 0.46, t - 0.46), 0.92, 0.92, fc=colour, lw=0))
            if mask[t, j]:
                ink = "white" if leak else "black"
                ax.text(j, t, inputs[j], ha="center", va="center", color=ink, family="monospace")
        for t, target in enumerate(targets):
            ax.text(
                L + 0.25, t, target, ha="center", va="center", family="monospace", weight="bold"
            )
        ax.text(L + 0.25, -0.85, "says", ha="center", va="center", fontsize=8)
        ax.set(xlim=(-0.6, L + 0.8), ylim=(L - 0.4, -1.2), aspect="equal", title=title)
        ax.set_xticks([])
        ax.set_yticks(range(L), [f"{t}" for t in range(L)])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel("row $t$")
    return fig


@in_style
def reversal_maps(maps: dict[str, np.ndarray]) -> Figure:
    """Draw the cross-attention (L, S) of each word: rows written, columns read, in per cent."""
    fig, axes = plt.subplots(
        1, len(maps), figsize=(WIDTH, 3.4), width_ratios=[len(word) for word in maps]
    )
    for ax, (word, weights) in zip(axes, maps.items(), strict=True):
        heat(ax, weights, limit=1.0, signed=False)
        for t, j in np.ndindex(weights.shape):
            percent = round(100 * float(weights[t, j]))
            if percent >= 5:
                ink = "black" if percent > 60 else "white"
                ax.text(j, t, f"{percent}", ha="center", va="center", color=ink, fontsize=7.5)
        ax.set_xticks(range(len(word)), list(word), family="monospace")
        ax.set_yticks(range(len(word) + 1), [*word[::-1], "$"], family="monospace")
        for label in ax.get_yticklabels():
            label.set_parse_math(False)
        ax.tick_params(length=0, labeltop=True, labelbottom=False)
        ax.set_title("source, read", pad=16)
    axes[0].set_ylabel("target, written")
    return fig


@in_style
def losses_and_matches(
    steps: np.ndarray, curves: dict[str, np.ndarray], percent: dict[str, float]
) -> Figure:
    """Draw training losses over the steps, and beside them the exact matches in per cent."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.9), width_ratios=(1.35, 1))
    for n, (name, losses) in enumerate(curves.items()):
        left.plot(steps, losses, color=SERIES[n], label=name)
        right.barh(n, percent[name], color=SERIES[n], height=0.65)
        right.plot(-7, n, "s", color=SERIES[n], ms=6, clip_on=False)  # for bars of length 0
        right.text(percent[name] + 2, n, f"{percent[name]:.0f} %", va="center")
    left.set_yscale("log")
    left.set(xlabel="step", ylabel="training loss, nats per token")
    right.set(xlim=(0, 122), xlabel="strings written without a mistake", ylim=(4.6, -0.6))
    right.set_yticks(range(len(curves)), list(curves))
    right.set_xticks((0, 50, 100))
    right.tick_params(axis="y", length=0, pad=15)
    return fig


@in_style
def match_by_length(lengths: np.ndarray, percent: dict[str, np.ndarray]) -> Figure:
    """Draw exact matches over the length of the string, for memories of two kinds."""
    fig, ax = plt.subplots(figsize=(WIDTH, 2.3))
    for (name, values), colour, mark in zip(
        percent.items(), (SERIES[0], SERIES[3]), ("o", "s"), strict=True
    ):
        ax.plot(lengths, values, mark + "-", color=colour, ms=5)
        place = len(lengths) - 3
        below = values[place] > 50  # the name stands where the curve does not
        ax.text(lengths[place], values[place] - 10 if below else values[place] + 12, name)
    ax.set(xlabel="letters in the string", ylabel="exact match, per cent", ylim=(-4, 106))
    ax.set_xticks(lengths)
    return fig
