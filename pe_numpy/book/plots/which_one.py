"""Figures of chapter 72: which encoding to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, RELATIVE, WIDTH, in_style

NAMES = {
    "none": "no position",
    "sinusoidal": "sinusoidal",
    "multiplicative": "multiplied sines",
    "learned": "learned table",
    "hierarchical": "hierarchical table",
    "recurrent": "recurrent",
    "floater": "FLOATER",
    "rope": "RoPE",
    "rope_dynamic": "RoPE, dynamic NTK",
    **RELATIVE,
}
NO, YES = "#F0D5D8", "#117733"


def _cells(ax: Axes, rows: Mapping[str, Sequence[bool]], columns: Sequence[str], word: str) -> None:
    """Draw a matrix of no and yes as coloured cells; `word` stands in those that are yes."""
    values = np.array([[int(a) for a in row] for row in rows.values()])
    ax.imshow(values, cmap=mpl.colors.ListedColormap([NO, YES]), vmin=0, vmax=1, aspect="auto")
    for i, j in np.argwhere(values):
        ax.text(j, i, word, ha="center", va="center", color="white", fontsize=7)
    ax.set_xticks(
        range(len(columns)), columns, fontsize=7.5, rotation=50, ha="left", rotation_mode="anchor"
    )
    ax.xaxis.tick_top()
    ax.set_xticks(np.arange(values.shape[1] + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(values.shape[0] + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", lw=1.5)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)


@in_style
def answers_of_all(answers: Mapping[str, Sequence[bool]], questions: Sequence[str]) -> Figure:
    """Draw yes or no for each encoding (keys of `NAMES`) and question."""
    fig, ax = plt.subplots(figsize=(WIDTH, 0.22 * len(answers) + 1.4))
    _cells(ax, answers, questions, "yes")
    ax.set_yticks(range(len(answers)), [NAMES[name] for name in answers])
    return fig


@in_style
def a_line_beyond_training(
    panels: Mapping[str, Mapping[str, np.ndarray]],
    colours: Sequence[str],
    wish: np.ndarray,
    seen: int,
) -> Figure:
    """Draw what each encoding makes of a straight penalty (dashed), within the grey and beyond.

    `panels` holds curves over the distance, by title and label; `colours` are keys of `COLOURS`.
    """
    fig, axes = plt.subplots(2, 3, figsize=(WIDTH, 4.0), sharex=True, sharey=True)
    for ax, (title, curves), key in zip(axes.flat, panels.items(), colours, strict=True):
        ax.axvspan(0, seen - 1, color="#E8E8E8", lw=0)
        ax.plot(wish, color="black", ls="--", lw=1)
        for (label, values), style in zip(curves.items(), ("-", ":", "-."), strict=False):
            ax.plot(values, style, color=COLOURS[key], label=label)
        ax.set_title(title)
        if len(curves) > 1:
            ax.legend(fontsize=7.5, loc="upper right", handlelength=2.2, borderaxespad=0)
    axes[0, 1].text(1, -8, "trained", va="bottom", fontsize=8)
    axes[0, 1].annotate("the target", (50, wish[50]), (38, -3.6), fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel("distance $i-j$")
    for ax in axes[:, 0]:
        ax.set_ylabel("part of the score")
    axes[0, 0].set(xlim=(0, len(wish) - 1), ylim=(-8.2, 1.6))
    return fig


@in_style
def what_catches_what(
    caught: Mapping[str, Sequence[bool]], columns: Sequence[str], best: Sequence[str]
) -> Figure:
    """Draw which mistake (a row) is caught by which test (a column); name the columns in `best`."""
    fig, ax = plt.subplots(figsize=(WIDTH, 0.165 * len(caught) + 1.3), dpi=100)
    _cells(ax, caught, columns, "")
    ax.set_yticks(range(len(caught)), list(caught), fontsize=7)
    for tick, name in zip(ax.get_xticklabels(), columns, strict=True):
        tick.set_fontweight("bold" if name in best else "normal")
    handles = [mpl.patches.Patch(color=c) for c in (YES, NO)]
    fig.legend(handles, ["caught", "passes"], loc="outside lower right", ncols=2, fontsize=8)
    return fig
