"""The figures of the book, one function a figure: data in, a matplotlib figure out.

This is the only room that imports matplotlib. The notebooks and `make figures` call the same
functions. A function computes nothing but what it draws; its caller brings the data.

Style: one width, 9 point type, a colour for each encoding that it keeps throughout the book, a
diverging map centred on zero for signed values and a sequential one for magnitudes. All colours are
told apart by colour-blind readers (Paul Tol's muted palette).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH = 7.0  # inches, of every figure
SIGNED = "RdBu_r"  # blue negative, white zero, red positive
MAGNITUDE = "viridis"

# One colour for each encoding, the same in every chapter.
COLOURS = {
    "none": "#777777",
    "sinusoidal": "#332288",
    "learned": "#DDCC77",
    "shaw": "#88CCEE",
    "transformer_xl": "#44AA99",
    "t5": "#CC6677",
    "tupe": "#999933",
    "deberta": "#AA4499",
    "alibi": "#882255",
    "rope": "#117733",
}
# For curves that are not encodings: components, positions, pairs.
SERIES = ("#332288", "#CC6677", "#117733", "#DDCC77", "#88CCEE", "#AA4499", "#999933", "#44AA99")

STYLE: dict[Any, Any] = {
    "figure.dpi": 120,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": plt.cycler(color=SERIES),
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "image.interpolation": "nearest",
    "svg.hashsalt": "pe_numpy",
}


def _in_style(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw a figure in the book's style, whatever the reader's own settings are; label it."""

    @functools.wraps(draw)
    def styled(*args: Any, **kwargs: Any) -> Figure:
        with mpl.rc_context(STYLE):
            figure = draw(*args, **kwargs)
        figure.set_label(draw.__name__)  # the name of its file
        return figure

    return styled


def _heat(axes: Axes, data: np.ndarray, limit: float | None = None, signed: bool = True) -> Any:
    """Draw a matrix as a heat map, one cell an entry; signed values are centred on zero."""
    limit = float(np.abs(data).max()) if limit is None else limit
    image = axes.imshow(
        data,
        cmap=SIGNED if signed else MAGNITUDE,
        vmin=-limit if signed else 0,
        vmax=limit,
        aspect="auto",
    )
    axes.spines[:].set_visible(False)
    return image


def _label_cells(axes: Axes, data: np.ndarray, form: str = "{:.2f}", limit: float = 0.6) -> None:
    """Write each entry of a small matrix into its cell, white on dark cells."""
    top = float(np.abs(data).max()) or 1.0
    for i, j in np.ndindex(data.shape):
        dark = abs(data[i, j]) > limit * top
        text = form.format(data[i, j] + 0.0)
        axes.text(j, i, text, ha="center", va="center", color="white" if dark else "black")


# ---- chapter 00: how to read this book ----------------------------------------------------------


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


@_in_style
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
        ("weighted sum\n$o_i = \\sum_j w_{ij}\\,v_j$", (12.6, 4.4)),
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


@_in_style
def attention_shapes(H: int, L: int, S: int, K: int) -> Figure:
    """Draw the arrays of one attention call to scale, one cell an entry, with their axis letters.

    H heads, L queries, S keys and values, width K; the heads lie behind one another.
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 4.7), layout="none")
    fig.subplots_adjust(0, 0, 1, 1)
    ax.set(xlim=(-2.2, 32.3), ylim=(22.0, -1.2), aspect="equal")
    ax.set_axis_off()
    arrays = (
        ("queries $q$", "L", L, "K", K, 0, 3.5, COLOURS["rope"]),
        ("keys, transposed $k^T$", "K", K, "S", S, 12, 2, COLOURS["rope"]),
        ("scores", "L", L, "S", S, 23, 3.5, COLOURS["t5"]),
        ("weights", "L", L, "S", S, 0, 15, COLOURS["t5"]),
        ("values $v$", "S", S, "K", K, 11, 14, COLOURS["shaw"]),
        ("output", "L", L, "K", K, 23, 15, COLOURS["shaw"]),
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


# ---- chapter 01: why position matters -----------------------------------------------------------


def _label_magnitudes(axes: Axes, data: np.ndarray, form: str = "{:.2f}") -> None:
    """Write each entry of a small sequential heat map into its cell: black where it is bright."""
    for i, j in np.ndindex(data.shape):
        ink = "black" if data[i, j] > 0.6 * data.max() else "white"
        axes.text(j, i, form.format(data[i, j]), ha="center", va="center", color=ink)


def _words(axes: Axes, down: Sequence[str], across: Sequence[str] = ()) -> None:
    """Put words beside the rows, and above the columns, of a heat map."""
    axes.set_yticks(range(len(down)), down)
    axes.set_xticks(range(len(across)), across)
    axes.tick_params(length=0, labeltop=bool(across), labelbottom=False)


@_in_style
def weights_of_two_orders(
    first: np.ndarray, second: np.ndarray, words: Sequence[str], reordered: Sequence[str]
) -> Figure:
    """Draw the attention weights (L, L) of a sentence and of the same words in another order."""
    fig, axes = plt.subplots(1, 2, figsize=(WIDTH, 3.0))
    for ax, data, names in zip(axes, (first, second), (words, reordered), strict=True):
        _heat(ax, data, limit=max(first.max(), second.max()), signed=False)
        _label_magnitudes(ax, data)
        _words(ax, names, names)
        ax.set_title(" ".join(names), weight="bold", pad=8)
        ax.set_xlabel("key $j$")
    axes[0].set_ylabel("query $i$")
    return fig


@_in_style
def outputs_of_two_orders(
    first: np.ndarray, second: np.ndarray, words: Sequence[str], reordered: Sequence[str]
) -> Figure:
    """Draw the outputs (L, D) of a sentence and of another order, and below them their means."""
    fig, axes = plt.subplots(
        2, 2, figsize=(WIDTH, 2.9), height_ratios=(len(words), 1), sharex="col"
    )
    limit = float(max(np.abs(first).max(), np.abs(second).max()))
    for column, (data, names) in enumerate(((first, words), (second, reordered))):
        top, bottom = axes[:, column]
        _heat(top, data, limit)
        image = _heat(bottom, data.mean(axis=0, keepdims=True), limit)
        _words(top, names)
        _words(bottom, ["mean"])
        top.set_title(" ".join(names), weight="bold")
        bottom.set_xlabel("component")
    fig.colorbar(image, ax=axes, fraction=0.04)
    return fig


@_in_style
def code_distances(codes: dict[str, np.ndarray]) -> Figure:
    """Draw for each code, of shape (N, width), the distances between the vectors of all positions.

    Each panel has its own scale, from 0 (dark) to the largest distance (bright).
    """
    fig, axes = plt.subplots(2, len(codes) // 2, figsize=(WIDTH, 4.0))
    for ax, (name, code) in zip(axes.flat, codes.items(), strict=True):
        _heat(ax, np.linalg.norm(code[:, None] - code[None], axis=-1), signed=False)
        ax.set(title=name, xticks=(0, len(code) - 1), yticks=(0, len(code) - 1), aspect="equal")
        ax.tick_params(length=0)
    for ax in axes[:, 0]:
        ax.set_ylabel("position", labelpad=-6)
    for ax in axes[-1]:
        ax.set_xlabel("position", labelpad=-4)
    return fig


@_in_style
def properties(table: dict[str, Sequence[bool]], names: Sequence[str]) -> Figure:
    """Draw which code (a row of `table`) has which property (an entry of `names`)."""
    fig, ax = plt.subplots(figsize=(WIDTH, 0.36 * len(table) + 0.9))
    has = np.array(list(table.values()), dtype=float)
    pale_and_green = mpl.colors.ListedColormap(["#F0D5D8", "#117733"])
    ax.imshow(has, cmap=pale_and_green, vmin=0, vmax=1, aspect="auto")
    for i, j in np.ndindex(has.shape):
        word, ink = ("yes", "white") if has[i, j] else ("no", "black")
        ax.text(j, i, word, ha="center", va="center", color=ink)
    ax.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(table) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", lw=2)
    ax.tick_params(which="minor", length=0)
    ax.spines[:].set_visible(False)
    _words(ax, list(table), [name.replace(" ", "\n") for name in names])
    return fig


@_in_style
def probe_accuracy(percent: dict[str, int], colours: Sequence[str]) -> Figure:
    """Draw the accuracy of the word-order probe, in per cent, as one bar for each encoding.

    `colours` are keys of `COLOURS`.
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 2.7))
    names = list(percent)[::-1]
    values = [percent[name] for name in names]
    ax.barh(names, values, color=[COLOURS[key] for key in reversed(colours)], height=0.7)
    for row, value in enumerate(values):
        ax.text(value + 1, row, f"{value} %", va="center")
    ax.axvline(50, color="black", lw=1, ls="--")
    ax.text(50.5, len(names) - 0.45, "ceiling of every blind layer", va="bottom")
    ax.set(xlim=(0, 112), xlabel="held-out sentences whose subject is found, per cent")
    ax.set_xticks(range(0, 101, 25))
    ax.tick_params(axis="y", length=0)
    return fig


# ---- chapter 02: sinusoidal ---------------------------------------------------------------------


_DARK = (SERIES[0], SERIES[1], SERIES[2], SERIES[5])  # of the series, those that show on white


@_in_style
def digits_and_waves(digits: np.ndarray, waves: np.ndarray) -> Figure:
    """Draw binary digits above waves of the same periods; both (digits, positions), in -1 .. 1."""
    figure, axes = plt.subplots(2, 1, figsize=(WIDTH, 3.4), sharex=True)
    titles = ("binary digits: every change is a jump", "cosines of the same periods: no jumps")
    for ax, data, title in zip(axes, (digits, waves), titles, strict=True):
        _heat(ax, data, limit=1)
        ax.set_title(title, loc="left")
        ax.set_yticks(range(len(data)), [str(2 ** (k + 1)) for k in range(len(data))])
        ax.set_ylabel("period")
        ax.set_xticks(range(0, data.shape[1], 4))
    axes[1].set_xlabel("position $pos$")
    return figure


@_in_style
def clock_faces(codes: np.ndarray, speeds: np.ndarray) -> Figure:
    """Draw pairs of components as clock hands: codes (positions, pairs, 2), speeds (pairs,)."""
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


@_in_style
def wavelength_rows(rows: dict[int, np.ndarray], base: float) -> Figure:
    """Draw the wavelengths of each width D as a row of dots on a log axis: {D: (D/2,)}."""
    figure, ax = plt.subplots(figsize=(WIDTH, 2.6))
    for y, lengths in enumerate(rows.values()):
        size = 5 if len(lengths) < 100 else 2
        ax.plot(lengths, [y] * len(lengths), "o", color=COLOURS["sinusoidal"], markersize=size)
    limit = 2 * np.pi * base
    for x, text in ((2 * np.pi, r"$2\pi$"), (limit, rf"$2\pi\cdot{base:g}$")):
        ax.axvline(x, color=COLOURS["t5"], linewidth=1, linestyle="--")
        ax.text(x, len(rows) - 0.4, text, color=COLOURS["t5"], ha="center", va="bottom")
    ax.set(xscale="log", xlabel="wavelength in positions", ylim=(-0.6, len(rows) - 0.4))
    ax.set_yticks(range(len(rows)), [f"$D = {width}$" for width in rows])
    return figure


@_in_style
def component_curves(code: np.ndarray, components: Sequence[int], periods: np.ndarray) -> Figure:
    """Draw components of (positions, D) over position, one panel each, with their periods."""
    size = (WIDTH, 0.95 * len(components) + 0.4)
    figure, axes = plt.subplots(len(components), 1, figsize=size, sharex=True, sharey=True)
    for n, (ax, c, period) in enumerate(zip(axes, components, periods, strict=True)):
        marker = "." if period < 10 else None  # so that one sees the whole positions
        ax.plot(code[:, c], color=SERIES[n], linewidth=1, marker=marker, markersize=4)
        ax.annotate(
            "", (period, 1.25), (0, 1.25), arrowprops={"arrowstyle": "<->", "color": "#444444"}
        )
        ax.text(period + 1.5, 1.25, f"period {period:.2f}", va="center")
        ax.set(ylim=(-1.15, 1.55), yticks=[-1, 0, 1], ylabel=f"component {c}")
    axes[-1].set_xlabel("position $pos$")
    return figure


@_in_style
def table_and_curves(code: np.ndarray, components: Sequence[int]) -> Figure:
    """Draw codes (positions, D) as a heat map, a row a component, above pairs of them as curves."""
    rows = len(components) // 2
    ratios = (3.6, *[1] * rows)
    figure, (top, *strips) = plt.subplots(
        rows + 1, 1, figsize=(WIDTH, 5.6), sharex=True, height_ratios=ratios
    )
    image = _heat(top, code.T, limit=1)
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


@_in_style
def two_positions(codes: np.ndarray, names: Sequence[int], distances: np.ndarray) -> Figure:
    """Draw two codes (2, D), sines and cosines apart, above their distance in each pair (D/2,)."""
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.5))
    pairs = np.arange(codes.shape[1] // 2)
    for ax, first, part in ((axes[0], 0, "sines"), (axes[1], 1, "cosines")):
        one, two = codes[:, first::2]
        ax.vlines(pairs, one, two, color="#BBBBBB", linewidth=2)
        ax.plot(pairs, one, "o", color=SERIES[0], label=f"$pos = {names[0]}$")
        ax.plot(pairs, two, "s", color=SERIES[1], label=f"$pos = {names[1]}$")
        ax.set(title=part, xlabel="pair $i$", ylim=(-1.15, 1.15), xticks=pairs, yticks=[-1, 0, 1])
    axes[0].set_ylabel("value")
    axes[0].legend(loc="lower right")
    axes[2].bar(pairs, distances, color=SERIES[2])
    axes[2].set(title="distance within the pair", xlabel="pair $i$", xticks=pairs, ylim=(0, 2))
    return figure


@_in_style
def distance_envelopes(curves: Sequence[tuple[str, np.ndarray, float, int, float]]) -> Figure:
    """Draw the range of distances over offsets, a panel a width.

    Each curve is (title, edges and ranges (3, blocks), neighbour's distance, nearest far offset,
    its distance); the three rows are the offset, the smallest and the largest distance of a block.
    """
    figure, axes = plt.subplots(len(curves), 1, figsize=(WIDTH, 1.7 * len(curves)), sharex=True)
    for ax, (title, (k, low, high), neighbour, far, nearest) in zip(axes, curves, strict=True):
        ax.fill_between(k, low, high, color=COLOURS["sinusoidal"], alpha=0.35, linewidth=0)
        ax.plot(k, low, color=COLOURS["sinusoidal"], linewidth=0.8)
        ax.axhline(neighbour, color=COLOURS["t5"], linestyle="--", linewidth=1.2)
        ax.text(205000, neighbour, f"neighbour\n{neighbour:.4f}", color=COLOURS["t5"], va="center")
        ax.plot(far, nearest, "v", color="black", markersize=6, clip_on=False, zorder=3)
        ax.set_title(f"{title}: nearest from offset 1000 on is {far}, at {nearest:.4f}", loc="left")
        ax.set(ylabel="distance", ylim=(0, None), xlim=(0, 202000))
    axes[-1].set_xlabel("offset $k$")
    return figure


@_in_style
def dot_products(curves: dict[int, np.ndarray], first_increases: dict[int, int]) -> Figure:
    """Draw f(k)/f(0) over the distance k for each width, {D: (n,)}, and the first k that rises."""
    figure, ax = plt.subplots(figsize=(WIDTH, 3))
    for n, (width, f) in enumerate(curves.items()):
        k = first_increases[width]
        ax.plot(f / f[0], color=_DARK[n], linewidth=1.3, label=f"$D = {width}$")
        ax.plot(k, f[k] / f[0], "^", color=_DARK[n], markersize=8, markeredgecolor="white")
        ax.text(k, f[k] / f[0] - 0.09, str(k), ha="center", color=_DARK[n], weight="bold")
    ax.axhline(0, color="#BBBBBB", linewidth=0.8, zorder=0)
    ax.set(xlabel="distance $k = i - j$", ylabel="$f(k)\\,/\\,f(0)$", xlim=(-1, None))
    ax.legend(ncols=len(curves), loc="upper right")
    return figure


@_in_style
def score_maps(maps: Sequence[np.ndarray], titles: Sequence[str]) -> Figure:
    """Draw scores of position against position, each (L, L), side by side; each has its scale."""
    figure, axes = plt.subplots(1, len(maps), figsize=(WIDTH, 2.7))
    for ax, scores, title in zip(axes, maps, titles, strict=True):
        _heat(ax, scores)
        ax.plot(scores.argmax(1), range(len(scores)), ".", color="black", markersize=3)
        ax.set(title=title, xlabel="key $j$", aspect="equal")
    axes[0].set_ylabel("query $i$")
    return figure


@_in_style
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
    axes[0].plot([], [], color=SERIES[2], lw=2, label=r"the turn by $k\theta_i$")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


@_in_style
def grid_similarity(similarity: np.ndarray, cell: tuple[int, int]) -> Figure:
    """Draw the similarity of one cell's code to those of all cells of a grid, (height, width)."""
    figure, ax = plt.subplots(figsize=(WIDTH, 3.4))
    image = _heat(ax, similarity, signed=False)
    image.set_clim(similarity.min(), similarity.max())
    ax.set_aspect("equal")
    row, column = cell
    box = plt.Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=SERIES[1], lw=2)
    ax.add_patch(box)
    ax.set(xlabel="column $c$", ylabel="row $r$")
    figure.colorbar(image, ax=ax, label="dot product")
    return figure


@_in_style
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


# ---- chapter 13: RoPE derived -------------------------------------------------------------------


_PAIRS = (SERIES[0], SERIES[1], SERIES[2], SERIES[5])  # one colour for each of four pairs


def _plane(axes: Axes, limit: float) -> None:
    """Prepare a square piece of the plane around 0, with its two axes through the origin."""
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    axes.axhline(0, color="#CCCCCC", lw=0.8, zorder=0)
    axes.axvline(0, color="#CCCCCC", lw=0.8, zorder=0)


def _arrow(axes: Axes, start: complex, end: complex, colour: str, width: float = 1.8) -> None:
    """Draw an arrow between two points of the plane, given as complex numbers."""
    axes.annotate(
        "",
        xy=(end.real, end.imag),
        xytext=(start.real, start.imag),
        arrowprops={"arrowstyle": "-|>", "color": colour, "lw": width, "shrinkA": 0, "shrinkB": 0},
    )


@_in_style
def complex_turning(q: complex, theta: float, sums: np.ndarray) -> Figure:
    """Draw q, q e^(i theta), q e^(2i theta), and beside them the partial sums (N,) of a series."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.5))
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 241))
    turner = np.exp(1j * theta)
    _plane(left, 1.75)
    left.plot(circle.real, circle.imag, color="#999999", lw=1, ls="--")
    left.plot(abs(q) * circle.real, abs(q) * circle.imag, color="#DDDDDD", lw=1)
    _arrow(left, 0j, turner, COLOURS["none"], 1.2)
    at = 1.12 * turner
    left.text(at.real, at.imag, r"$e^{i\theta}$", color="#555555", ha="center")
    names = ("$q$", r"$q\,e^{i\theta}$", r"$q\,e^{2i\theta}$")
    for name, point, colour in zip(names, q * turner ** np.arange(3), SERIES, strict=False):
        _arrow(left, 0j, point, colour)
        outside = 1.17 * point
        left.text(outside.real, outside.imag, name, color=colour, ha="center", va="center")
    left.set(xlabel="real part", ylabel="imaginary part", title=r"times $e^{i\theta}$: a turn")
    _plane(right, 2.0)
    right.plot(circle.real, circle.imag, color="#999999", lw=1, ls="--")
    for start, step in zip(sums, np.diff(sums), strict=False):
        if abs(step) > 0.05:
            _arrow(right, complex(start), complex(start + step), SERIES[0], 1.3)
    _arrow(right, 0j, complex(sums[0]), SERIES[0], 1.3)
    right.plot(sums[-1].real, sums[-1].imag, "o", color=SERIES[1], ms=6, zorder=3)
    right.text(sums[-1].real + 0.12, sums[-1].imag + 0.22, "$e^{2i}$", color=SERIES[1])
    right.set(ylim=(-1.5, 2.5), xlabel="real part")
    right.set_title("the series of $e^{2i}$: each step a quarter turn")
    return figure


@_in_style
def turned_together(q: np.ndarray, k: np.ndarray, positions: Sequence[tuple[int, int]]) -> Figure:
    """Draw turned queries q (P,) and keys k (P,), complex, one panel for each (m, n)."""
    figure, panels = plt.subplots(1, len(q), figsize=(WIDTH, 2.6))
    limit = 1.25 * max(np.abs(q).max(), np.abs(k).max())
    for axes, a, b, (m, n) in zip(panels, q, k, positions, strict=True):
        _plane(axes, limit)
        between = np.angle(b) + np.linspace(0, 1, 40) * np.angle(a / b)
        arc = 0.45 * np.exp(1j * between)
        axes.fill(np.append(arc.real, 0), np.append(arc.imag, 0), color="#DDDDDD")
        for vector, name, colour in ((a, f"$q_{m}$", SERIES[0]), (b, f"$k_{n}$", SERIES[1])):
            _arrow(axes, 0j, complex(vector), colour)
            at = vector * (1 + 0.16 / abs(vector))
            axes.text(at.real, at.imag, name, color=colour, ha="center", va="center")
        axes.set(xticks=[], yticks=[], title=f"$m = {m},\\ n = {n}$")
        axes.spines[:].set_visible(False)
    return figure


@_in_style
def clocks(hands: np.ndarray, frequencies: np.ndarray) -> Figure:
    """Draw each pair as the hand of a clock: hands (P, n), complex of modulus 1; frequencies (n,).

    A column is a position, a row is a pair.
    """
    figure, faces = plt.subplots(*hands.T.shape, figsize=(WIDTH, 4.7))
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 121))
    for (pair, position), axes in np.ndenumerate(faces):
        axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.plot(circle.real, circle.imag, color="#BBBBBB", lw=1)
        start, now = complex(hands[0, pair]), complex(hands[position, pair])
        axes.plot([0, start.real], [0, start.imag], color="#BBBBBB", lw=1, ls=":")
        _arrow(axes, 0j, now, _PAIRS[pair])
        if pair == 0:
            axes.set_title(f"$m = {position}$")
        if position == 0:
            axes.set_ylabel(f"pair $i = {pair}$\n$\\theta_{pair} = {frequencies[pair]:g}$")
    return figure


@_in_style
def rope_matrices(interleaved: np.ndarray, half: np.ndarray) -> Figure:
    """Draw the same rotation as a matrix (d, d), for interleaved and for half-split components."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 3.7))
    titles = ("interleaved: pairs $(2i,\\ 2i+1)$", "half: pairs $(i,\\ i + d/2)$")
    for axes, matrix, title in zip(panels, (interleaved, half), titles, strict=True):
        image = _heat(axes, matrix, limit=1.0)
        for i, j in np.argwhere(matrix != 0):
            colour = "white" if abs(matrix[i, j]) > 0.6 else "black"
            text = f"{matrix[i, j]:.2g}"
            axes.text(j, i, text, ha="center", va="center", color=colour, fontsize=6.5)
        ticks = np.arange(len(matrix))
        axes.set(xticks=ticks, yticks=ticks, xlabel="component in", title=title, aspect="equal")
        axes.set_xticks(ticks[:-1] + 0.5, minor=True)
        axes.set_yticks(ticks[:-1] + 0.5, minor=True)
        axes.grid(which="minor", color="#EEEEEE", lw=0.6)
        axes.tick_params(which="both", length=0)
    panels[0].set_ylabel("component out")
    figure.colorbar(image, ax=panels, shrink=0.8)
    return figure


@_in_style
def pair_layouts(interleaved: np.ndarray, half: np.ndarray) -> Figure:
    """Draw arcs between the components that form a pair, for two layouts of shape (n, 2)."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 2.0))
    titles = ("interleaved", "half-split")
    bow = np.linspace(0, np.pi, 60)
    for axes, pairs, title in zip(panels, (interleaved, half), titles, strict=True):
        for i, (a, b) in enumerate(pairs):
            x, rise = (a + b) / 2 - (b - a) / 2 * np.cos(bow), 0.35 + 0.22 * (b - a)
            axes.plot(x, 0.42 + rise * np.sin(bow), color=_PAIRS[i], lw=2)
            axes.text((a + b) / 2, 0.52 + rise, f"$\\theta_{i}$", color=_PAIRS[i], ha="center")
            for c in (a, b):
                box = plt.Rectangle((c - 0.42, -0.42), 0.84, 0.84, facecolor=_PAIRS[i], alpha=0.25)
                axes.add_patch(box)
                axes.text(c, 0, str(c), ha="center", va="center")
        axes.set(xlim=(-0.6, 2 * len(pairs) - 0.4), ylim=(-0.5, 2.1), aspect="equal", title=title)
        axes.axis("off")
    return figure


@_in_style
def score_matrices(rotary: np.ndarray, added: np.ndarray) -> Figure:
    """Draw scores (L, S) of equal contents at all positions: with RoPE, and with a code added."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 3.3))
    titles = ("RoPE: constant along diagonals", "sinusoidal code added: not constant")
    for axes, scores, title in zip(panels, (rotary, added), titles, strict=True):
        image = _heat(axes, scores)
        axes.set(xlabel="key position $n$", title=title, aspect="equal")
        figure.colorbar(image, ax=axes, shrink=0.85)
    panels[0].set_ylabel("query position $m$")
    return figure


# ---- chapter 14: RoPE computed ------------------------------------------------------------------


@_in_style
def rope_step(before: np.ndarray, after: np.ndarray, angles: np.ndarray) -> Figure:
    """Each pair of a vector in its plane, before and after its turn: (n, 2), (n, 2), (n,)."""
    figure, panels = plt.subplots(1, len(before), figsize=(WIDTH, 2.5))
    for i, axes in enumerate(panels):
        radius, start = np.hypot(*before[i]), np.arctan2(*before[i][::-1])
        circle = start + np.linspace(0, 2 * np.pi, 200)
        axes.plot(radius * np.cos(circle), radius * np.sin(circle), color="#DDDDDD", linewidth=0.8)
        arc = start + np.linspace(0, angles[i], 100)
        axes.plot(radius * np.cos(arc), radius * np.sin(arc), color=SERIES[1], linewidth=1.6)
        for (u, v), colour, name in (
            (before[i], COLOURS["none"], "before"),
            (after[i], COLOURS["rope"], "after"),
        ):
            axes.plot([0, u], [0, v], color=colour)
            axes.plot(u, v, "o", color=colour, markersize=5, label=name)
        reach = 1.2 * radius
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axes.locator_params(nbins=3)
        axes.tick_params(labelsize=7)
        axes.set(title=f"pair {i}: {angles[i]:g} rad")
        axes.set(xlabel=f"component {2 * i}", ylabel=f"component {2 * i + 1}")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2)
    return figure


@_in_style
def rope_score_map(scores: np.ndarray, pairs: Sequence[tuple[int, int]]) -> Figure:
    """Scores (M, N) of one query at m and one key at n, with some pairs (m, n) circled."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.2))
    image = left.imshow(scores, cmap=MAGNITUDE, aspect="equal")
    left.spines[:].set_visible(False)
    m, n = np.array(pairs).T
    left.plot(n, m, "o", markerfacecolor="none", markeredgecolor="white", markersize=6)
    left.set(xlabel="position $n$ of the key", ylabel="position $m$ of the query")
    figure.colorbar(image, ax=left, label="score", shrink=0.85)
    query, key = np.indices(scores.shape)
    right.plot((query - key).ravel(), scores.ravel(), ".", color=COLOURS["rope"], markersize=4)
    right.plot(
        m - n, scores[m, n], "o", markerfacecolor="none", markeredgecolor=SERIES[1], markersize=9
    )
    right.set(xlabel="distance $m - n$", ylabel="score")
    return figure


@_in_style
def rope_scores_over_distance(distance: np.ndarray, scores: dict[str, np.ndarray]) -> Figure:
    """Scores (N,) of some pairs of vectors over the distance (N,), one panel a pair."""
    figure, panels = plt.subplots(1, len(scores), figsize=(WIDTH, 2.4))
    for axes, (name, score) in zip(panels, scores.items(), strict=True):
        axes.plot(distance, score, color=COLOURS["rope"], linewidth=1)
        top = int(np.argmax(score))
        axes.plot(distance[top], score[top], "o", color=SERIES[1], markersize=5)
        axes.set(title=name, xlabel="distance $m - n$")
    panels[0].set_ylabel("score")
    return figure


@_in_style
def rope_bound(
    distance: np.ndarray, panels: dict[str, tuple[np.ndarray, np.ndarray, float]]
) -> Figure:
    """Size of a score (N,), its bound (N,) and the product of the norms, over distance (N,)."""
    figure, row = plt.subplots(1, len(panels), figsize=(WIDTH, 2.8))
    for axes, (name, (score, bound, norms)) in zip(row, panels.items(), strict=True):
        axes.semilogy(distance, bound, color=SERIES[1], linewidth=1, label="bound (37)")
        axes.axhline(
            norms, color=SERIES[0], linestyle="--", linewidth=1, label="product of the norms"
        )
        axes.semilogy(
            distance, score, color=COLOURS["rope"], linewidth=1, label="size of the score"
        )
        axes.set(title=name, xlabel="distance $m - n$")
    row[0].set_ylabel("size, logarithmic")
    handles, names = row[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3)
    return figure


@_in_style
def rope_random_scores(
    distance: np.ndarray,
    curves: dict[str, tuple[np.ndarray, np.ndarray]],
    samples: dict[str, np.ndarray],
) -> Figure:
    """Mean and deviation (N,) of scores over distance (N,), and histograms of samples (P,)."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(WIDTH, 2.8), gridspec_kw={"width_ratios": [3, 2]}
    )
    for (name, (mean, deviation)), colour in zip(
        curves.items(), (SERIES[1], COLOURS["rope"]), strict=True
    ):
        left.plot(distance, mean, color=colour, label=name)
        left.fill_between(
            distance, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0
        )
    left.set_xscale("symlog", linthresh=1)
    left.set(xlabel="distance $m - n$", ylabel="score: mean and one deviation")
    left.legend()
    edges = np.linspace(-45, 45, 46)
    for (name, sample), colour in zip(samples.items(), (COLOURS["rope"], SERIES[0]), strict=True):
        right.hist(sample, edges, histtype="step", color=colour, label=name, linewidth=1.2)
    right.set(xlabel="score, unrelated contents", ylabel="pairs", ylim=(0, 400))
    right.legend(loc="upper right", handlelength=0.8)
    return figure


@_in_style
def rope_turns(turns: np.ndarray) -> Figure:
    """Turns (n,) that each pair of components makes over the trained positions."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.7))
    pair = np.arange(len(turns))
    for chosen, colour, name in (
        (turns >= 1, COLOURS["rope"], "finishes a turn"),
        (turns < 1, SERIES[1], "never finishes one"),
    ):
        axes.bar(pair[chosen], turns[chosen] - 1, bottom=1, color=colour, width=0.8, label=name)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(yscale="log", ylim=(0.02, 600), xlim=(-1, len(turns)))
    axes.set(xlabel="pair $i$", ylabel="turns over the trained length")
    axes.legend()
    return figure


@_in_style
def rope_nearest_phase(
    offset: np.ndarray, distance: np.ndarray, unrelated: float, trained: int
) -> Figure:
    """Distance (N,) from the phases of each offset (N,) to the nearest trained phases."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.7))
    axes.plot(offset, distance, color=COLOURS["rope"])
    axes.axhline(unrelated, color=SERIES[1], linestyle="--", linewidth=1)
    axes.text(offset[-1], unrelated, "unrelated phases", va="bottom", ha="right", color=SERIES[1])
    axes.axvspan(0, trained - 1, color="#DDDDDD", linewidth=0)
    axes.text(trained / 2, unrelated / 2, "trained", ha="center")
    axes.set(xlabel="offset $m - n$", ylabel="distance to the nearest\ntrained phase vector")
    axes.set(xlim=(0, offset[-1]), ylim=(-0.2, 1.15 * unrelated))
    return figure


@_in_style
def rope_precision(positions: np.ndarray, errors: dict[str, np.ndarray]) -> Figure:
    """Largest error (N,) of the table up to each position (N,), for several number formats."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.0))
    for (name, error), colour in zip(
        errors.items(), (SERIES[1], SERIES[0], SERIES[5], COLOURS["rope"]), strict=True
    ):
        known = np.isfinite(error)
        axes.loglog(positions[known], error[known], color=colour, label=name)
    axes.axhline(2, color="black", linewidth=0.8, linestyle=":")
    axes.set(xlabel="position $m$", ylabel="largest error of $e^{im\\theta_i}$", ylim=(1e-8, 5))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


# ---- chapter 17: attention by hand --------------------------------------------------------------


def _matrix_17(
    axes: Axes,
    title: str,
    data: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[Any],
    form: str = "{:g}",
    signed: bool = True,
) -> None:
    """Draw a small matrix with its numbers in the cells; dark cells get white digits."""
    limit = float(np.abs(data).max()) if signed else 1.0
    _heat(axes, data, limit=limit or 1.0, signed=signed)
    for i, j in np.ndindex(data.shape):
        dark = abs(data[i, j]) > 0.6 * limit if signed else data[i, j] < 0.55
        text = form.format(data[i, j] + 0.0)
        colour = "white" if dark else "black"
        axes.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)
    axes.set_title(title, fontsize=8)
    axes.set_xticks(range(len(columns)), columns, fontsize=6.5)
    axes.set_yticks(range(len(rows)), rows, fontsize=6.5)
    axes.tick_params(length=0, pad=2)


@_in_style
def attention_panels(
    rows: Sequence[Sequence[tuple[str, np.ndarray, str]]], words: Sequence[str]
) -> Figure:
    """Rows of matrices with their numbers: (title, (L, n) array, "vectors", "scores" or "weights").

    Vectors have components as columns, scores and weights have words.
    """
    figure = plt.figure(figsize=(WIDTH, 1.72 * len(rows)))
    parts = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
    for part, row in zip(parts, rows, strict=True):
        ratios = [data.shape[1] for _, data, _ in row]
        panels = part.subplots(1, len(row), width_ratios=ratios)
        for n, (axes, (title, data, kind)) in enumerate(zip(panels, row, strict=True)):
            whole = bool((data == data.round()).all())
            columns = words if kind in ("scores", "weights") else range(data.shape[1])
            _matrix_17(
                axes,
                title,
                data,
                words if n == 0 else [""] * len(words),
                columns,
                "{:.0f}" if whole else "{:.2f}",
                signed=kind != "weights",
            )
    return figure


@_in_style
def dot_product_spread(
    samples: dict[int, np.ndarray], widths: np.ndarray, spreads: np.ndarray, scaled: np.ndarray
) -> Figure:
    """Histograms of dot products for a few K, and their measured spread for the `widths` K."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.6))
    bins = np.arange(-30.5, 31)
    for n, (width, dots) in enumerate(samples.items()):
        label = f"$K$ = {width}"
        left.hist(dots, bins, density=True, histtype="step", color=SERIES[n], label=label)
    left.set(xlabel=r"dot product $q \cdot k$", ylabel="share of pairs")
    left.legend()
    right.plot(widths, np.sqrt(widths), color=COLOURS["none"], label=r"$\sqrt{K}$")
    right.plot(widths, spreads, "o", color=SERIES[0], label=r"std of $q \cdot k$, measured")
    right.plot(widths, scaled, "s", color=SERIES[1], label=r"std of $q \cdot k / \sqrt{K}$")
    right.set_xscale("log", base=2)
    right.set_yscale("log", base=2)
    right.set(xlabel="width of one head $K$", ylabel="standard deviation")
    right.legend()
    return figure


@_in_style
def softmax_sharpness(
    scales: np.ndarray,
    weights: np.ndarray,
    entropies: np.ndarray,
    slopes: np.ndarray,
    labels: Sequence[str],
    mark: float,
) -> Figure:
    """Weights (n, S) of one row of scores, entropy (n,) and mean w(1 - w) (n,), over n scales."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.7))
    for n, label in enumerate(labels):
        left.plot(scales, weights[:, n], color=SERIES[n], label=label)
    left.set(xlabel="scale of the scores", ylabel="weight", ylim=(-0.02, 1.02))
    left.legend(fontsize=8)
    right.plot(scales, entropies, color=SERIES[0], label="entropy in nats")
    right.plot(scales, slopes, color=SERIES[1], label=r"mean of $w_j(1 - w_j)$")
    right.axhline(np.log(len(labels)), color=COLOURS["none"], ls=":", lw=1)
    right.text(scales[-1], np.log(len(labels)), r"$\log S$", ha="right", va="bottom")
    right.set(xlabel="scale of the scores", ylabel="entropy and slope", ylim=(-0.02, 1.6))
    right.legend(fontsize=8, loc="upper right", bbox_to_anchor=(1.0, 0.85))
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.axvline(mark, color=COLOURS["none"], lw=1, ls="--")
    return figure


@_in_style
def value_hulls(
    heads: Sequence[tuple[str, np.ndarray, np.ndarray, Sequence[int]]], words: Sequence[str]
) -> Figure:
    """Values (S, 2), the corners of their hull, and outputs (L, 2), as points; one panel a head."""
    figure, panels = plt.subplots(1, len(heads), figsize=(WIDTH, 3.0))
    for axes, (title, values, outputs, corners) in zip(panels, heads, strict=True):
        axes.fill(*values[list(corners)].T, color=SERIES[4], alpha=0.3, lw=0)
        axes.plot(*values.T, "o", color=SERIES[0], ms=7, label="values $v_j$")
        axes.plot(*outputs.T, "X", color=SERIES[1], ms=7, mec="white", label="outputs $b_i$")
        for (x, y), word in zip(values, words, strict=True):
            shift = {"xytext": (6, 5), "textcoords": "offset points"}
            axes.annotate(f"v: {word}", (x, y), color=SERIES[0], fontsize=8, **shift)
        for n, ((x, y), word) in enumerate(zip(outputs, words, strict=True)):
            side, at = ("right", -7) if n % 2 else ("left", 7)
            shift = {"xytext": (at, -3), "textcoords": "offset points", "ha": side}
            axes.annotate(f"b: {word}", (x, y), color=SERIES[1], fontsize=8, **shift)
        axes.set(title=title, xlabel="component 0", ylabel="component 1")
        axes.margins(0.22)
    panels[0].legend(loc="lower right", fontsize=8)
    return figure


@_in_style
def mask_grids(
    masks: Sequence[tuple[str, np.ndarray, Sequence[str], Sequence[str]]], across: int = 3
) -> Figure:
    """Boolean masks (L, S) as grids, with a title and the names of queries and keys each."""
    down = -(-len(masks) // across)
    figure, panels = plt.subplots(down, across, figsize=(WIDTH, 2.15 * down))
    for axes, (title, mask, queries, keys) in zip(panels.flat, masks, strict=True):
        axes.imshow(mask, cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
        for i, j in np.ndindex(mask.shape):
            mark, colour = ("1", "white") if mask[i, j] else ("·", COLOURS["none"])
            axes.text(j, i, mark, ha="center", va="center", color=colour)
        for i in np.flatnonzero(~mask.any(axis=1)):
            axes.axhspan(i - 0.5, i + 0.5, color=COLOURS["t5"], alpha=0.45, lw=0)
        axes.set_title(title)
        axes.set_xticks(range(len(keys)), keys, fontsize=7)
        axes.set_yticks(range(len(queries)), queries, fontsize=7)
        axes.set_xticks(np.arange(-0.5, len(keys)), minor=True)
        axes.set_yticks(np.arange(-0.5, len(queries)), minor=True)
        axes.grid(which="minor", color="white", lw=1.5)
        axes.tick_params(which="both", length=0)
        axes.spines[:].set_visible(False)
    return figure


@_in_style
def running_softmax(
    scores: np.ndarray, tops: np.ndarray, totals: np.ndarray, outputs: np.ndarray, target: float
) -> Figure:
    """Of one query, key by key (S,): scores and running maximum, rescaled sum, running output."""
    figure, panels = plt.subplots(1, 3, figsize=(WIDTH, 2.3))
    keys = np.arange(len(scores))
    panels[0].plot(keys, scores, "o", ms=4, color=SERIES[0], label="score $s_j$")
    panels[0].step(keys, tops, where="post", color=SERIES[1], label="maximum so far $m$")
    panels[0].set(ylabel="score", ylim=(scores.min() - 0.5, scores.max() + 3.6))
    panels[0].legend(fontsize=8, loc="upper left")
    panels[1].plot(keys, totals, ".-", color=SERIES[2])
    panels[1].set(ylabel=r"sum so far $\ell$", ylim=(0, None))
    panels[2].plot(keys, outputs, ".-", color=SERIES[5], label=r"$o / \ell$")
    panels[2].axhline(target, color=COLOURS["none"], ls="--", lw=1, label="attention")
    panels[2].set(ylabel="output so far")
    panels[2].legend(fontsize=8, loc="lower right")
    for axes in panels:
        axes.set_xlabel("keys read")
        for key in keys[1:][np.diff(tops) > 0]:
            axes.axvline(key, color=COLOURS["none"], lw=0.7, ls=":")
    return figure


@_in_style
def block_sweep(
    states: np.ndarray, order: np.ndarray, lengths: np.ndarray, full: np.ndarray, held: np.ndarray
) -> Figure:
    """Blocks of the score matrix (n, n): 0 skipped, 1 done, 2 current, 3 to come; and memory."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.1), width_ratios=(1, 1.1))
    shades = ("#EEEEEE", SERIES[4], SERIES[1], "#FFFFFF")
    names = ("skipped: all future", "done", "held now", "to come")
    for i, j in np.ndindex(states.shape):
        hatch = "////" if states[i, j] == 0 else None
        box = plt.Rectangle(
            (j, i), 1, 1, fc=shades[states[i, j]], ec="#777777", lw=0.8, hatch=hatch
        )
        left.add_patch(box)
        if states[i, j]:
            left.text(j + 0.3, i + 0.7, f"{order[i, j]}", ha="center", va="center")
    size = len(states)
    left.plot([0, size], [0, size], color="black", lw=1, ls="--")
    left.set(xlim=(0, size), ylim=(size, 0), aspect="equal")
    left.set(xlabel="blocks of keys $j$", ylabel="blocks of queries $i$")
    left.set_xticks(np.arange(size) + 0.5, range(size))
    left.set_yticks(np.arange(size) + 0.5, range(size))
    left.tick_params(length=0)
    left.spines[:].set_visible(False)
    keys = [
        plt.Rectangle((0, 0), 1, 1, fc=c, ec="#777777", hatch="////" if n == 0 else None, label=t)
        for n, (c, t) in enumerate(zip(shades, names, strict=True))
    ]
    left.legend(handles=keys, ncols=2, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    right.plot(lengths, full, color=SERIES[0], label=r"all scores at once: $L \cdot S$")
    right.plot(lengths, held, color=SERIES[1], label="one block at a time")
    right.set_xscale("log", base=2)
    right.set_yscale("log", base=2)
    right.set(xlabel="length $L = S$", ylabel="scores held at once, one head")
    right.legend(fontsize=8, loc="upper left")
    return figure
