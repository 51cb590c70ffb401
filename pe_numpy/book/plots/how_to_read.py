"""Figures of chapter 0: how to read this book."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, HUES, READS, WIDTH, in_style

# At each place the schemes that act there: name, key of COLOURS.
SCHEMES = (
    (("sinusoidal", "sinusoidal"), ("learned", "learned"), ("recurrent, complex", "learned")),
    (("RoPE", "rope"),),
    (
        ("Shaw", "shaw"),
        ("Transformer-XL", "transformer_xl"),
        ("T5", "t5"),
        ("TUPE", "tupe"),
        ("DeBERTa", "deberta"),
        ("ALiBi", "alibi"),
    ),
    (("Shaw", "shaw"),),
)


def _box(
    axes: Axes, at: tuple[float, float], text: str, colour: str = "#F2F2F2", ha: str = "center"
) -> None:
    """Write text in a rounded box; black on light colours, white on dark ones."""
    light = np.dot(mpl.colors.to_rgb(colour), (0.3, 0.6, 0.1)) > 0.5
    style = {"boxstyle": "round,pad=0.45", "facecolor": colour, "edgecolor": "#555555", "lw": 0.6}
    ink = "black" if light else "white"
    axes.text(*at, text, ha=ha, va="center", color=ink, linespacing=1.5, bbox=style)


def _number(axes: Axes, centre: tuple[float, float], number: int) -> None:
    """Write the number of a place, white in a black disc."""
    disc = {"boxstyle": "circle,pad=0.25", "facecolor": "black", "edgecolor": "black"}
    style: dict[str, Any] = {"ha": "center", "va": "center", "color": "white", "weight": "bold"}
    axes.text(*centre, str(number), bbox=disc, **style)


@in_style
def four_places(schemes: Sequence[Sequence[tuple[str, str]]]) -> Figure:
    """Draw the data path of one attention layer, and the four places where position enters it.

    `schemes` holds for each place the schemes that act there, as (name, key of `COLOURS`).
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 4.0), layout="none")
    fig.subplots_adjust(0, 0, 1, 1)
    ax.set(xlim=(0, 14), ylim=(0, 8))
    ax.set_axis_off()
    for text, centre in (
        ("token vectors\n$x_i$", (1.35, 5.6)),
        ("queries\n$q_i = x_i W_q$", (4.35, 7.1)),
        ("keys\n$k_j = x_j W_k$", (4.35, 5.6)),
        ("values\n$v_j = x_j W_v$", (4.35, 4.1)),
        ("scores\n$s_{ij} = q_i \\cdot k_j\\,/\\sqrt{K}$", (7.45, 6.35)),
        ("weights\n$w_{ij} = $softmax$_j\\,s_{ij}$", (10.35, 6.35)),
        ("weighted sum\n$o_i = \\Sigma_j\\, w_{ij}\\,v_j$", (12.6, 4.4)),
    ):
        _box(ax, centre, text)
    for start, end in (
        ((2.5, 5.85), (3.65, 6.9)),
        ((2.5, 5.6), (3.65, 5.6)),
        ((2.5, 5.35), (3.65, 4.3)),
        ((5.15, 6.9), (6.5, 6.55)),
        ((5.15, 5.8), (6.5, 6.15)),
        ((8.4, 6.35), (9.2, 6.35)),
        ((11.1, 5.75), (11.9, 4.95)),
        ((5.15, 4.1), (11.45, 4.3)),
    ):
        arrow = {"arrowstyle": "-|>", "color": "#555555", "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", xy=end, xytext=start, arrowprops=arrow)
    corners = (((0.4, 6.1),), ((3.75, 7.6), (3.75, 6.1)), ((6.6, 6.85),), ((13.65, 4.95),))
    titles = ("the token vector", "queries and keys", "the score of a pair", "the weighted sum")
    for place, (left, title, names) in enumerate(
        zip((0.4, 3.75, 6.85, 11.0), titles, schemes, strict=True)
    ):
        for corner in (*corners[place], (left, 2.7)):
            _number(ax, corner, place + 1)
        ax.text(left + 0.35, 2.7, title, va="center")
        for n, (name, key) in enumerate(names):
            column, row = divmod(n, 3)
            _box(ax, (left + 2.25 * column, 2.0 - 0.68 * row), name, COLOURS[key], ha="left")
    return fig


@in_style
def attention_shapes(H: int, L: int, S: int, K: int) -> Figure:
    """Draw the arrays of one attention call to scale, one cell an entry, with their axis letters.

    H heads, L queries, S keys and values, width K; the heads lie behind one another.
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 4.7), layout="none")
    fig.subplots_adjust(0, 0, 1, 1)
    ax.set(xlim=(-2.2, 32.3), ylim=(22.0, -1.2), aspect="equal")
    ax.set_axis_off()
    arrays = (
        ("queries $q$", "L", L, "K", K, 0, 3.5, READS["q"]),
        ("keys, transposed $k^T$", "K", K, "S", S, 12, 2, READS["k"]),
        ("scores", "L", L, "S", S, 23, 3.5, HUES[3]),
        ("weights", "L", L, "S", S, 0, 15, READS["weights"]),
        ("values $v$", "S", S, "K", K, 11, 14, READS["v"]),
        ("output", "L", L, "K", K, 23, 15, READS["v"]),
    )
    for name, down, rows, across, columns, left, top, colour in arrays:
        for h in reversed(range(H)):
            back = mpl.patches.Rectangle(
                (left + 0.35 * h, top - 0.35 * h), columns, rows, fc="white", ec=colour, lw=0.8
            )
            ax.add_patch(back)
        ax.add_patch(mpl.patches.Rectangle((left, top), columns, rows, fc=colour, alpha=0.35))
        ax.vlines(left + np.arange(columns + 1), top, top + rows, colour, lw=0.6)
        ax.hlines(top + np.arange(rows + 1), left, left + columns, colour, lw=0.6)
        ax.text(left + columns / 2, top - 0.35 * H - 0.4, name, ha="center")
        height = f"${down}$ = {rows}"
        ax.text(left - 0.4, top + rows / 2, height, ha="right", va="center", rotation=90)
        width = f"${across}$ = {columns}"
        ax.text(left + columns / 2, top + rows + 0.2, width, ha="center", va="top")
    for text, x, y in (("@", 10, 6), ("=", 21, 6), ("@", 8.9, 17.5), ("=", 21, 17.5)):
        ax.text(x, y, text, ha="center", va="center", size=13)
    ax.text(31.6, 6, "softmax\nover $S$", ha="left", va="center", size=8)
    ax.text(-1.9, -0.6, f"one sequence, $H$ = {H} heads, one behind another", va="center")
    return fig


def _half(label: str) -> np.ndarray:
    """Half the width and height of a chapter's box: what its letters take, whatever the machine."""
    lines = label.split("\n")
    letters = dict.fromkeys("fijlt.- ", 0.06) | dict.fromkeys("mw", 0.14)
    width = max(sum(letters.get(c, 0.1) for c in line) for line in lines)
    return np.array([width / 2 + 0.09, 0.17 * len(lines) + 0.07])


def _edge(centre: np.ndarray, half: np.ndarray, towards: np.ndarray) -> tuple[float, float]:
    """Where the line from the centre of a box to a point outside it leaves the box."""
    way = towards - centre
    x, y = centre + way / np.abs(way / half).max()
    return x, y


@in_style
def needs(parts: Sequence[dict[str, Any]], route: Sequence[str]) -> Figure:
    """Draw the chapters, one lane a part, with arrows from each to those that need it.

    `parts` is what `contents.toml` holds. A chapter stands to the right of all that it needs; what
    follows from other arrows is left out. The chapters of `route` are green, and the arrows between
    them thick.
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 6.2), layout="none")
    fig.subplots_adjust(0, 0, 1, 1)
    ax.set_axis_off()
    depth: dict[str, int] = {}
    before: dict[str, set[str]] = {}
    at: dict[str, np.ndarray] = {}
    half: dict[str, np.ndarray] = {}
    arrows: list[tuple[str, str]] = []
    top = 0.0
    for n, part in enumerate(parts):
        columns: dict[int, int] = {}  # how many stand in a column of this lane
        for chapter in part["chapter"]:
            stem, own = chapter["stem"], chapter["needs"]
            depth[stem] = 1 + max((depth[other] for other in own), default=-1)
            before[stem] = {*own}.union(*(before[other] for other in own))
            arrows += [(o, stem) for o in own if not any(o in before[third] for third in own)]
            row = columns.get(depth[stem], 0)
            columns[depth[stem]] = row + 1
            at[stem] = np.array([1.35 + 1.3 * depth[stem], top - row])
            name = stem[3:].replace("transformer_xl", "transf.-XL").replace("_", " ")
            name = name.replace("extrapolation", "extra-polation")
            label = textwrap.fill(f"{stem[:2]} {name}", 11, break_long_words=False)
            half[stem] = _half(label)
            fill, line = ("#CFE5D6", 1.3) if stem in route else ("white", 0.7)
            box = mpl.patches.Rectangle(
                at[stem] - half[stem], *(2 * half[stem]), fc=fill, ec="#333333", lw=line, zorder=3
            )
            ax.add_patch(box)
            x, y = at[stem]
            ax.text(x, y, label, ha="center", va="center", size=6.5, zorder=4)
        height = max(columns.values())
        ax.axhspan(top + 0.5, top - height + 0.5, color="#F2F2F2" if n % 2 else "white", zorder=0)
        middle = top - (height - 1) / 2
        title = part["title"].replace(" tok", "\ntok").replace(" tr", "\ntr").replace(" Tr", "\nTr")
        ax.text(-0.3, middle, title, va="center", size=7.5, weight="bold")
        top -= height
    for one, other in arrows:
        both = one in route and other in route
        arrow = {"arrowstyle": "-|>", "color": COLOURS["rope"], "lw": 1.8 if both else 0.6}
        arrow |= {"shrinkA": 0, "shrinkB": 0, "alpha": 1 if both else 0.6}
        start = _edge(at[one], half[one], at[other])
        end = _edge(at[other], half[other], at[one])
        ax.annotate("", end, start, arrowprops=arrow, zorder=2)
    ax.set(xlim=(-0.4, 13.9), ylim=(top + 0.5, 0.5))
    return fig
