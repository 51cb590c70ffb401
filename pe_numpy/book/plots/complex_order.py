"""Figures of chapter 24: complex order."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, heat, in_style

_COMPONENTS = (SERIES[0], SERIES[1], SERIES[2])


def _square(axes: Axes, limit: float) -> None:
    """Prepare a square piece of the plane around 0, without a frame."""
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xticks=(), yticks=())
    axes.axhline(0, color="#DDDDDD", lw=0.8, zorder=0)
    axes.axvline(0, color="#DDDDDD", lw=0.8, zorder=0)
    axes.spines[:].set_visible(False)


@in_style
def powers_in_plane(paths: dict[str, np.ndarray], numbered: int) -> Figure:
    """Draw complex sequences z_2 z_1^pos, each (N,), as paths; the first positions numbered."""
    fig, axes = plt.subplots(1, len(paths), figsize=(WIDTH, 2.3))
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 181))
    for ax, (name, z) in zip(axes, paths.items(), strict=True):
        _square(ax, 1.75)
        ax.plot(circle.real, circle.imag, color="#AAAAAA", lw=1, ls="--")
        inside = np.abs(z) < 1.7
        ax.plot(z[inside].real, z[inside].imag, "-", color=SERIES[0], lw=0.7)
        ax.plot(z[inside].real, z[inside].imag, "o", color=SERIES[0], ms=3.5)
        for pos in range(numbered):
            at = z[pos] * (1 + 0.24 / abs(z[pos]))
            ax.text(at.real, at.imag, str(pos), ha="center", va="center", fontsize=7)
        ax.set_title(name)
    return fig


@in_style
def word_paths(words: dict[str, np.ndarray], smooth: dict[str, np.ndarray]) -> Figure:
    """Draw three components of some words in the plane, and their real parts over the position.

    `words` (L, 3) at whole positions, `smooth` (N, 3) at evenly spaced ones between the same ends.
    """
    fig, axes = plt.subplots(
        len(words), 4, figsize=(WIDTH, 1.95 * len(words)), width_ratios=(1, 1, 1, 1.5)
    )
    for row, (name, z) in zip(axes, words.items(), strict=True):
        L = len(z)
        dense = np.linspace(0, L - 1, len(smooth[name]))
        for c, ink in enumerate(_COMPONENTS):
            _square(row[c], 1.45)
            row[c].plot(smooth[name][:, c].real, smooth[name][:, c].imag, color=ink, lw=0.8)
            row[c].plot(z[:, c].real, z[:, c].imag, "o", color=ink, ms=4)
            seen: dict[tuple[float, float], list[str]] = {}
            for pos, point in enumerate(z[:, c].round(6) + 0.0):
                seen.setdefault((point.real, point.imag), []).append(str(pos))
            for (x, y), labels in seen.items():
                text = labels[0] if len(labels) == 1 else f"{labels[0]}, {labels[1]}"
                text += " …" if len(labels) > 2 else ""
                far = (np.hypot(x, y) + 0.27 + 0.18 * (len(labels) > 1)) / np.hypot(x, y)
                row[c].text(far * x, far * y, text, ha="center", va="center", fontsize=6.5)
            row[3].plot(dense, smooth[name][:, c].real, color=ink, lw=0.8)
            row[3].plot(range(L), z[:, c].real, "o", color=ink, ms=3.5)
        row[0].text(-1.6, 0, name, rotation=90, ha="right", va="center", weight="bold")
        row[3].axhline(0, color="#DDDDDD", lw=0.8, zorder=0)
        row[3].set(ylim=(-1.1, 1.1), xticks=range(0, L, 2), yticks=(-1, 0, 1))
    for c in range(3):
        axes[0, c].set_title(f"component {c + 1}", color=_COMPONENTS[c])
    axes[0, 3].set_title("real parts")
    axes[-1, 3].set_xlabel("position")
    return fig


@in_style
def scores_and_conjugate(fields: dict[str, np.ndarray]) -> Figure:
    """Draw scores (L, L) of all pairs of positions as maps, and below them over the distance."""
    fig, axes = plt.subplots(2, len(fields), figsize=(WIDTH, 4.6), sharey="row")
    limit = max(float(np.abs(field).max()) for field in fields.values())
    for (top, bottom), (name, field) in zip(axes.T, fields.items(), strict=True):
        image = heat(top, field, limit)
        top.set(title=name, xlabel="key $n$", xticks=(0, len(field) - 1), aspect="equal")
        top.set_yticks((0, len(field) - 1))
        m, n = np.indices(field.shape)
        dots = bottom.scatter(
            (m - n).ravel(), field.ravel(), c=(m + n).ravel(), s=5, cmap="viridis", lw=0
        )
        bottom.set(xlabel="distance $m-n$")
    axes[0, 0].set_ylabel("query $m$", labelpad=-4)
    axes[1, 0].set_ylabel("score")
    fig.colorbar(image, ax=axes[0], fraction=0.03, label="score")
    fig.colorbar(dots, ax=axes[1], fraction=0.03, label="sum $m+n$")
    return fig


@in_style
def real_and_modulus(curves: dict[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Draw for each case the real part and the modulus of a product over the distance 0, 1, ..."""
    fig, axes = plt.subplots(1, len(curves), figsize=(WIDTH, 2.5), sharey=True)
    for ax, (name, (real, modulus)) in zip(axes, curves.items(), strict=True):
        ax.axhline(0, color="#DDDDDD", lw=0.8)
        ax.plot(modulus, "s-", color=SERIES[1], ms=3, label="modulus (the paper)")
        ax.plot(real, "o-", color=COLOURS["rope"], ms=3, label="real part (RoPE)")
        ax.set(title=name, xlabel="distance $m-n$")
    axes[0].set(ylabel="score")
    axes[0].legend(loc="upper right", bbox_to_anchor=(1, 0.93))
    return fig


@in_style
def learned_turns(
    losses: dict[str, Sequence[float]],
    ceiling: float,
    names: Sequence[str],
    speed: np.ndarray,
    nouns: int,
) -> Figure:
    """Draw two losses over the steps, and the speeds |omega| (runs, words) that words have learned.

    A bar is the mean of the runs, a dot one run. The first `nouns` of the words are nouns.
    """
    fig, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.8), width_ratios=(1.1, 1))
    for ink, (name, loss) in zip((COLOURS["none"], SERIES[0]), losses.items(), strict=True):
        left.plot(loss, color=ink, label=name)
    left.axhline(ceiling, color="black", lw=1, ls="--")
    left.text(len(loss), ceiling + 0.05, "floor of every sum: log 2", ha="right", va="bottom")
    left.set(xlabel="step", ylabel="loss", ylim=(0, 2.4))
    left.legend(loc="upper right")
    rows = np.arange(len(names))[::-1]
    inks = [SERIES[2] if n < nouns else SERIES[3] for n in range(len(names))]
    right.barh(rows, speed.mean(axis=0), color=inks, height=0.7)
    for run in speed:
        right.plot(run, rows, "o", color="black", ms=2)
    right.set_yticks(rows, names)
    right.set(xlabel=r"mean $|\omega|$ of a word, radians per position")
    right.tick_params(axis="y", length=0)
    return fig
