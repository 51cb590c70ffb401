"""Figures of chapter 80: the position table of a trained model."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, heat, in_style, look

WORD, PASSAGE = SERIES[0], SERIES[1]


def cosines(rows: np.ndarray) -> np.ndarray:
    """Cosines (N, N) of all pairs of rows."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T


@in_style
def cosines_in_waves(square: dict[str, np.ndarray], first: int, count: int, last: int) -> Figure:
    """Draw cosines of `count` rows of the first table, and of all tables the mean by distance.

    `square` holds the cosines of all rows from row 1 on.
    """
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(WIDTH, 2.8), gridspec_kw={"width_ratios": (1, 1.5)}
    )
    name, data = next(iter(square.items()))
    image = heat(left, data[first - 1 : first - 1 + count, first - 1 : first - 1 + count], limit=1)
    ticks = np.arange(0, count, 12)
    left.set_xticks(ticks, ticks + first)
    left.set_yticks(ticks, ticks + first)
    left.set(xlabel="row", ylabel="row", title=f"{name}, cosine of two rows", aspect="equal")
    left.tick_params(length=0)
    figure.colorbar(image, ax=left, shrink=0.75, pad=0.02)
    pens = look("learned", ls="-", ms=3), look("sinusoidal", markevery=6)
    for (name, data), pen in zip(square.items(), pens, strict=True):
        mean = [np.diagonal(data, d).mean() for d in range(last + 1)]
        right.plot(mean, label=name, **pen)
    right.axhline(0, color="#BBBBBB", lw=0.8, zorder=0)
    right.set(xlabel="distance between the rows", ylabel="mean cosine", ylim=(-0.1, 1.05))
    right.set_xticks(range(0, last + 1, 6))
    right.legend(loc="upper right")
    return figure


@in_style
def rotations(hands: np.ndarray, wavelengths: Sequence[float], first: int) -> Figure:
    """Draw the hand (rotations, rows) of each plane, a dot per row; the first eight are joined."""
    figure, panels = plt.subplots(1, len(hands), figsize=(WIDTH, 1.75), sharex=True, sharey=True)
    for axes, z, wavelength in zip(panels, hands, wavelengths, strict=True):
        z = z * np.abs(z[0]) / z[0]  # where an eigenvector begins is arbitrary: on the right
        z = np.round(z / np.abs(z).mean(), 2)
        axes.plot(z.real, z.imag, ".", ms=1.5, color=COLOURS["learned"])
        axes.plot(z[:8].real, z[:8].imag, ".-", ms=5, lw=0.8, color="black")
        axes.plot(0, 0, "+", color="#999999")
        axes.set(title=f"wavelength {wavelength:.0f}", aspect="equal")
        axes.set(xlim=(-1.45, 1.45), ylim=(-1.45, 1.45), xticks=(), yticks=())
        axes.spines[:].set_visible(False)
    panels[0].set_ylabel(f"rows {first} to {first + hands.shape[1] - 1}")
    return figure


@in_style
def geared_phases(rows: np.ndarray, lead: dict[str, np.ndarray]) -> Figure:
    """Draw how far some phases, in turns, run ahead of a constant speed."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.4))
    widths = (4.0, 2.4, 1.0)
    for (name, values), width, colour in zip(lead.items(), widths, SERIES, strict=False):
        axes.plot(rows, values, lw=width, color=colour, label=name)
    axes.axhline(0, color="#BBBBBB", lw=0.8, zorder=0)
    axes.set(xlabel="row", ylabel="turns ahead", xlim=(rows[0], rows[-1]), ylim=(-0.9, 1.6))
    axes.legend(loc="upper center", ncols=3)
    return figure


@in_style
def row_norms(norms: np.ndarray, named: Sequence[int], start: float) -> Figure:
    """Draw the norm of each row, name some; a line marks the norm that a row begins with."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.1))
    axes.vlines(np.arange(len(norms)), 0, norms, color=COLOURS["learned"], lw=1)
    axes.plot(named, norms[list(named)], "o", ms=4, color="black")
    for n, label in {n: f"row {n}" for n in named[:-2]}.items():
        axes.text(n + 7, norms[n], label, fontsize=8, va="center")
    ends = f"rows {named[-2]} and {named[-1]}"
    axes.text(named[-2] - 7, norms[named[-1]], ends, fontsize=8, va="center", ha="right")
    axes.axhline(start, color="black", lw=0.8, ls=":", label="as drawn before training")
    axes.set(xlabel="row", ylabel="norm", xlim=(-8, len(norms) + 8), ylim=(0, norms.max() * 1.12))
    axes.legend(loc="upper center")
    return figure


@in_style
def changed_tables(near: dict[str, tuple[float, float]], labels: Sequence[str]) -> Figure:
    """Draw the mean cosine with the true vector, for two sets of texts, by change of the table."""
    figure, axes = plt.subplots(figsize=(WIDTH, 0.21 * len(near) + 1))
    for y, values in enumerate(reversed(near.values())):
        axes.axhline(y, color="#E8E8E8", lw=0.8, zorder=0)
        for n, value in enumerate(values):
            axes.plot(
                value,
                y,
                "os"[n],
                ms=6 - n,
                color=(WORD, PASSAGE)[n],
                mfc="none" if n else WORD,
                label=labels[n] if y == 0 else None,
            )
    axes.set_yticks(range(len(near)), list(reversed(near)))
    axes.set(xlim=(0.6, 1.01), xlabel="mean cosine with the vector that the trained table gives")
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return figure
