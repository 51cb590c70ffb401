"""Figures of chapter 70: one algebra, and what a detector sees of each scheme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from pe_numpy.book.plots.style import COLOURS, SERIES, SIGNED, WIDTH, in_style
from pe_numpy.judging.properties import Properties

# The hue is that of the place; an index changes what a rotation reads.
MOVES = {
    "none": COLOURS["none"],
    "add": COLOURS["sinusoidal"],
    "multiply": COLOURS["learned"],
    "expand": COLOURS["deberta"],
    "bias": COLOURS["alibi"],
    "turn": COLOURS["rope"],
    "turn after a nonlinearity": "#5A8F29",
    "index": "#8A7A1E",
    "path": COLOURS["tupe"],
    "other": "#444444",
}
COLUMNS = {
    "pairwise": "pairwise",
    "shift": "relative",
    "bias": "one number",
    "bilinear": "bilinear",
    "expansion": "cross term bilinear",
    "zero": "nothing at q = k = 0",
    "gain": "turns (gain)",
    "group": "group",
    "mirror": "mirror",
    "fall": "falls",
    "range": "far away",
    "bounded": "bounded",
    "prefix": "old rows stay",
    "rank": "rank",
}
WORDS = {
    "Toeplitz": "of D",
    "not Toeplitz": "of i, j",
    "free": "free",
    "saturated": "sat.",
    "constant": "const.",
    "finite": "end",
}
YES, NO, OTHER, NOTHING = "#BFE0C6", "#F0D5D8", "#E9E3C5", "#F2F2F2"


def _cell(name: str, found: Properties) -> tuple[str, str]:
    """Text and colour of one property."""
    value = getattr(found, name)
    if name == "gain" and value is None and found.bilinear:
        return "–", NO
    if value is None:
        return "", NOTHING
    if isinstance(value, bool | np.bool_):
        return ("✓", YES) if value else ("–", NO)
    if name == "shift":
        return {0: ("–", NO), 1: ("✓", YES)}.get(value, (f"by {value}", OTHER))
    if name == "gain":
        return ("✓", YES) if value == 1 else (f"{value:.2f}", OTHER)
    if name == "zero" and value == "0":
        return "✓", YES
    if name == "fall":
        return {"falls": ("✓", YES), "flat": ("flat", OTHER)}.get(value, ("–", NO))
    return WORDS.get(str(value), str(value)), OTHER


def in_order(found: Mapping[str, Properties]) -> list[str]:
    """Names by move, equal rows together, in the order in which they first appear."""
    rows = {name: tuple(_cell(c, p) for c in COLUMNS) for name, p in found.items()}
    first = list(rows.values())
    moves = list(MOVES)
    return sorted(found, key=lambda name: (moves.index(found[name].move), first.index(rows[name])))


@in_style
def algebra_grid(found: Mapping[str, Properties]) -> Figure:
    """Draw what the detector found of each scheme: a row per scheme, a colour per move."""
    names = in_order(found)
    fig, ax = plt.subplots(figsize=(WIDTH, 0.185 * len(names) + 1.25))
    for row, name in enumerate(names):
        for column, test in enumerate(COLUMNS):
            text, colour = _cell(test, found[name])
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, color=colour, lw=0))
            ax.text(column, row + 0.03, text, ha="center", va="center", fontsize=8)
        colour = MOVES[found[name].move]
        ax.add_patch(Rectangle((-0.78, row - 0.5), 0.2, 1, color=colour, lw=0))
    _bands(ax, [found[name].move for name in names])
    ax.set(xlim=(-0.8, len(COLUMNS) + 1.35), ylim=(len(names) - 0.5, -0.5))
    ax.set_yticks(range(len(names)), [name.replace("_", " ") for name in names], fontsize=8)
    for label, name in zip(ax.get_yticklabels(), names, strict=True):
        label.set_color(MOVES[found[name].move])
    words = list(COLUMNS.values())
    ax.set_xticks(range(len(words)), words, rotation=40, ha="left", rotation_mode="anchor")
    ax.xaxis.tick_top()
    ax.tick_params(length=0, pad=2, labelsize=8)
    ax.spines[:].set_visible(False)
    return fig


def _bands(ax: Axes, moves: Sequence[str]) -> None:
    """Write each move beside its rows, and draw a line between two moves; thin lines elsewhere."""
    n = len(COLUMNS)
    for row in range(len(moves)):
        new = row and moves[row] != moves[row - 1]
        ax.plot([-0.8, n - 0.5], [row - 0.5] * 2, color="white", lw=3 if new else 0.6)
    for column in range(1, n):
        ax.axvline(column - 0.5, color="white", lw=0.6)
    for move in dict.fromkeys(moves):
        rows = [row for row, m in enumerate(moves) if m == move]
        words = move.replace("turn after a nonlinearity", "turn,\nnot linear")
        ax.text(
            n - 0.35, float(np.mean(rows)), words, color=MOVES[move], va="center", fontsize=8.5,
            fontweight="bold", linespacing=0.9,
        )  # fmt: skip


@in_style
def algebra_generators(
    generators: Mapping[str, np.ndarray], D: np.ndarray, scores: Mapping[str, np.ndarray]
) -> Figure:
    """Draw each generator as a matrix, above the score over the distance that it makes."""
    fig, axes = plt.subplots(
        2, len(generators), figsize=(WIDTH, 3.6), height_ratios=(1.1, 1), sharey="row"
    )
    for (above, below), (title, A) in zip(axes.T, generators.items(), strict=True):
        limit = np.abs(A).max()
        above.imshow(A, cmap=SIGNED, vmin=-limit, vmax=limit)
        above.set_xticks(np.arange(len(A) - 1) + 0.5, minor=True)
        above.set_yticks(np.arange(len(A) - 1) + 0.5, minor=True)
        above.grid(which="minor", color="#CCCCCC", lw=0.6)
        above.set(xticks=[], yticks=[])
        above.tick_params(which="both", length=0)
        above.spines[:].set_visible(True)
        above.set_title(title, fontsize=9)
        below.axhline(0, color="#999999", lw=0.7)
        below.plot(D, scores[title], color=SERIES[0])
        below.set_xlabel("distance $D$")
    axes[0, 0].set_ylabel("generator $A$")
    axes[1, 0].set_ylabel("score")
    return fig


@in_style
def algebra_ranks(sizes: Sequence[int], ranks: Mapping[str, Sequence[int]]) -> Figure:
    """Draw the rank of the matrix h(i - j) over its size, a line per function."""
    fig, ax = plt.subplots(figsize=(WIDTH, 2.4))
    ends: dict[int, list[str]] = {}
    for n, (name, values) in enumerate(ranks.items()):
        grows = values[-1] == sizes[-1]
        ax.plot(
            sizes, values, "--" if grows else "-", color=SERIES[n % len(SERIES)], marker="o", ms=3
        )
        ends.setdefault(values[-1], []).append(name)
    for value, names in ends.items():
        ax.annotate(
            ",\n".join(names) if value == sizes[-1] else ", ".join(names),
            (sizes[-1], value), (6, 0), textcoords="offset points", va="center", fontsize=8,
            annotation_clip=False,
        )  # fmt: skip
    ax.set(xlabel="positions", ylabel="rank of $h(i-j)$", yscale="log", xscale="log")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.set_yticks([1, 2, 4, 16, 64], ["1", "2", "4", "16", "64"])
    ax.minorticks_off()
    ax.set_xlim(sizes[0] * 0.9, sizes[-1] * 2)
    return fig


@in_style
def algebra_tree() -> Figure:
    """Draw the questions that lead to a move."""
    fig, ax = plt.subplots(figsize=(WIDTH, 4.9))
    ax.set(xlim=(-0.05, 10), ylim=(-1.7, 6.5))
    ax.axis("off")

    def box(x: float, y: float, text: str, width: float, colour: str = "#EEEEEE") -> None:
        shape = FancyBboxPatch(
            (x, y - 0.3), width, 0.6, boxstyle="round,pad=0.08", color=colour, lw=0
        )
        ax.add_patch(shape)
        ink = "black" if colour == "#EEEEEE" else "white"
        ax.text(x + width / 2, y, text, ha="center", va="center", fontsize=8, color=ink)

    def arrow(x: float, y: float, to_x: float, to_y: float, word: str, above: bool = True) -> None:
        style = {"arrowstyle": "->", "color": "#555555"}
        ax.annotate("", (to_x, to_y), (x, y), arrowprops=style)
        if x == to_x:
            ax.text(x + 0.08, (y + to_y) / 2, word, fontsize=8, va="center")
        else:
            shift, align = (0.1, "bottom") if above else (-0.1, "top")
            ax.text((x + to_x) / 2, (y + to_y) / 2 + shift, word, fontsize=8, ha="center", va=align)

    def leaf(y: float, move: str, members: str) -> None:
        box(6.9, y, f"{move}\n{members}", 3.0, MOVES[move])

    box(0.1, 6, "Forget a third token:\ndo the scores stay?", 2.4)
    box(0.1, 4.6, "Is position one number,\nwhatever the content?", 2.4)
    box(0.1, 3.2, "Linear in $q$ and in $k$?", 2.4)
    box(0.1, 0.8, "Is the cross term\nlinear in both?", 2.4)
    for y, to_y, word in ((6, 4.6, "yes"), (4.6, 3.2, "no"), (3.2, 0.8, "no")):
        arrow(1.3, y - 0.4, 1.3, to_y + 0.4, word)
    arrow(2.6, 6, 6.8, 6, "no")
    leaf(6, "path", "FoX, CoPE, PaTH")
    arrow(2.6, 4.6, 6.8, 5.1, "yes")
    leaf(5.1, "bias", "ALiBi, T5, TUPE (or none)")
    box(3.2, 3.2, "Is step after step\none longer step?", 1.9)
    arrow(2.6, 3.2, 3.1, 3.2, "yes")
    arrow(5.2, 3.35, 6.8, 4.2, "yes")
    leaf(4.2, "turn", "RoPE, xPos")
    arrow(5.2, 3.2, 6.8, 3.3, "no, it turns")
    leaf(3.3, "index", "ReRoPE, DCA, dynamic NTK")
    arrow(5.2, 3.05, 6.8, 2.4, "no, more", above=False)
    leaf(2.4, "multiply", "sines times tokens")
    box(3.2, 0.8, "Relative?", 1.9)
    arrow(2.6, 0.8, 3.1, 0.8, "yes")
    arrow(5.2, 0.9, 6.8, 1.5, "yes")
    leaf(1.5, "expand", "Shaw, DeBERTa, Transformer-XL")
    arrow(5.2, 0.7, 6.8, 0.6, "no", above=False)
    leaf(0.6, "add", "sinusoidal, learned")
    arrow(1.3, 0.4, 1.3, -0.4, "no")
    box(0.1, -0.8, "Relative?", 2.4)
    arrow(2.6, -0.75, 6.8, -0.3, "yes")
    leaf(-0.3, "turn after a nonlinearity", "PoPE")
    arrow(2.6, -0.85, 6.8, -1.2, "no", above=False)
    leaf(-1.2, "other", "none of the 42")
    return fig
