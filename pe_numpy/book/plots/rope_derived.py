"""Figures of chapter 40: RoPE derived."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pe_numpy import rope_frequencies
from pe_numpy.book.plots.style import COLOURS, READS, SERIES, WIDTH, heat, in_style

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


@in_style
def complex_turning(q: complex, theta: float, sums: np.ndarray) -> Figure:
    """Draw q, q e^(i theta), q e^(2i theta), and beside them the partial sums (N,) of a series."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.5))
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 241))
    turner = np.exp(1j * theta)
    _plane(left, 1.75)
    left.plot(circle.real, circle.imag, color="#999999", lw=1, ls="--")
    left.plot(abs(q) * circle.real, abs(q) * circle.imag, color="#DDDDDD", lw=1)
    _arrow(left, 0j, turner, COLOURS["none"], 1.2)
    at = 1.12 * turner * np.exp(-0.12j)  # beside the tip, below q e^(i theta)
    left.text(at.real, at.imag, r"$e^{\mathrm{i}\theta}$", color="#555555", ha="center")
    names = ("$q$", r"$q\,e^{\mathrm{i}\theta}$", r"$q\,e^{2\mathrm{i}\theta}$")
    for name, point, colour in zip(names, q * turner ** np.arange(3), SERIES, strict=False):
        _arrow(left, 0j, point, colour)
        outside = 1.17 * point
        left.text(outside.real, outside.imag, name, color=colour, ha="center", va="center")
    left.set(xlabel="real part", ylabel="imaginary part")
    left.set_title(r"times $e^{\mathrm{i}\theta}$: a rotation")
    _plane(right, 2.0)
    right.plot(circle.real, circle.imag, color="#999999", lw=1, ls="--")
    for start, step in zip(sums, np.diff(sums), strict=False):
        if abs(step) > 0.05:
            _arrow(right, complex(start), complex(start + step), SERIES[0], 1.3)
    _arrow(right, 0j, complex(sums[0]), SERIES[0], 1.3)
    right.plot(sums[-1].real, sums[-1].imag, "o", color=SERIES[1], ms=6, zorder=3)
    right.text(sums[-1].real + 0.12, sums[-1].imag + 0.22, r"$e^{2\mathrm{i}}$", color=SERIES[1])
    right.set(ylim=(-1.5, 2.5), xlabel="real part")
    right.set_title(r"the series of $e^{2\mathrm{i}}$: each step a quarter rotation")
    return figure


@in_style
def turned_together(q: np.ndarray, k: np.ndarray, positions: Sequence[tuple[int, int]]) -> Figure:
    """Draw rotated queries q (P,) and keys k (P,), complex, one panel for each (m, n).

    A dotted arc leads to each arrow from where it was in the panel before.
    """
    figure, panels = plt.subplots(1, len(q), figsize=(WIDTH, 2.8))
    limit = 1.25 * max(np.abs(q).max(), np.abs(k).max())
    for i, (axes, a, b, (m, n)) in enumerate(zip(panels, q, k, positions, strict=True)):
        _plane(axes, limit)
        for vectors, colour in ((q, READS["q"]), (k, READS["k"])) if i else ():
            before, turn = vectors[i - 1], np.angle(vectors[i] / vectors[i - 1])
            path = before * np.exp(1j * turn * np.linspace(0, 1, 40))
            axes.plot([0, before.real], [0, before.imag], color=colour, lw=1, ls=":", alpha=0.6)
            axes.plot(path.real, path.imag, color=colour, lw=1, ls=":", alpha=0.6)
        between = np.angle(b) + np.linspace(0, 1, 40) * np.angle(a / b)
        arc = 0.45 * np.exp(1j * between)
        axes.fill(np.append(arc.real, 0), np.append(arc.imag, 0), color="#DDDDDD")
        for vector, name, colour in ((a, f"$q_{m}$", READS["q"]), (b, f"$k_{n}$", READS["k"])):
            _arrow(axes, 0j, complex(vector), colour)
            at = vector * (1 + 0.16 / abs(vector))
            axes.text(at.real, at.imag, name, color=colour, ha="center", va="center")
        axes.set(xticks=[], yticks=[], title=f"$m = {m},\\ n = {n}$")
        axes.spines[:].set_visible(False)
    figure.suptitle("both rotate; the angle between the two never changes", fontsize=9)
    return figure


@in_style
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
            axes.set_ylabel(f"pair $c = {pair}$\n$\\theta_{pair} = {frequencies[pair]:g}$")
    return figure


@in_style
def rope_matrices(interleaved: np.ndarray, half: np.ndarray) -> Figure:
    """Draw the same rotation as a matrix (d, d), for interleaved and for half-split components."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 3.7))
    titles = ("interleaved: pairs $(2c,\\ 2c+1)$", "half: pairs $(c,\\ c + d/2)$")
    for axes, matrix, title in zip(panels, (interleaved, half), titles, strict=True):
        image = heat(axes, matrix, limit=1.0)
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


@in_style
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


@in_style
def score_matrices(rotary: np.ndarray, added: np.ndarray) -> Figure:
    """Draw scores (L, S) of equal contents at all positions: with RoPE, and with a code added."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, 3.3))
    titles = ("RoPE: constant along diagonals", "sinusoidal encoding added: not constant")
    for axes, scores, title in zip(panels, (rotary, added), titles, strict=True):
        image = heat(axes, scores)
        axes.set(xlabel="key position $n$", title=title, aspect="equal")
        figure.colorbar(image, ax=axes, shrink=0.85)
    panels[0].set_ylabel("query position $m$")
    return figure


@in_style
def turning_clocks(frame: int) -> Figure:
    """Draw one frame of a video: query and key turn on, the angle between them stays."""
    figure, faces = plt.subplots(1, 4, figsize=(WIDTH, 2.25))
    frequencies = rope_frequencies(8, base=100.0)
    distance, m = 2, 2 + frame / 4
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 121))
    for pair, (axes, theta) in enumerate(zip(faces, frequencies, strict=True)):
        query, key = np.exp(1j * theta * np.array([m, m - distance]))
        wedge = np.exp(1j * theta * np.linspace(m - distance, m, 40))
        axes.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        axes.plot(circle.real, circle.imag, color="#BBBBBB", lw=1)
        axes.fill(np.append(wedge.real, 0), np.append(wedge.imag, 0), color="#DDDDDD")
        _arrow(axes, 0j, complex(key), READS["k"])
        _arrow(axes, 0j, complex(query), READS["q"])
        axes.set_title(f"pair {pair} rotates by {theta:.2g}", fontsize=8)
        axes.set_xlabel(f"angle between: {distance * theta:.2g}", fontsize=8)
    places = f"query (blue) at {int(m)}, key (orange) at {int(m) - distance}"
    figure.suptitle(f"{places}: both hands rotate, the angle between them is the same", fontsize=9)
    return figure
