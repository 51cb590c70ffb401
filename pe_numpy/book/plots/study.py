"""Figures of chapter 71: train short, test long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, RELATIVE, SERIES, WIDTH, in_style, look

NAMES = {
    "none": "none",
    "sinusoidal": "sinusoidal",
    "learned": "learned",
    **RELATIVE,
    "rope": "RoPE",
}
READINGS = {
    "direct": "direct",
    "linear": "linear",
    "dynamic_ntk": "dynamic NTK",
    "yarn": "YaRN",
    "rerope": "ReRoPE",
    "self_extend": "Self-Extend",
    "streaming": "streaming",
}
TASKS = {
    "markov": "Markov, nats",
    "text": "text, nats",
    "offset": "offset, %",
    "needle": "needle, %",
}
# The models of the plane: their names, and the encoding and the reading of each.
MODELS = {NAMES[name]: (name, "direct") for name in NAMES}
MODELS |= {f"RoPE, {READINGS[name]}": ("rope", name) for name in ("linear", "yarn", "rerope")}
# Where their names stand beside their dots, in points.
PLACES_OF_NAMES = {
    "DeBERTa": (-9, 20),
    "T5": (-9, 9),
    "Shaw": (-9, -2),
    "RoPE, ReRoPE": (-9, -13),
    "Transformer-XL": (-9, -24),
    "none": (6, -11),
    "RoPE, YaRN": (-4, 7),
}
GREYS = {1: "#BBBBBB", 4: "#777777", 10: "black"}  # of the budgets


@in_style
def windows_of_the_test(lengths: Sequence[int], asked: int) -> Figure:
    """Draw the windows of a test: their right ends, where `asked` tokens are predicted, agree."""
    fig, ax = plt.subplots(figsize=(WIDTH, 1.7))
    for row, length in enumerate(lengths):
        ax.barh(row, length - asked, left=-length, color=SERIES[4], height=0.6)
        ax.barh(row, asked, left=-asked, color=SERIES[0], height=0.6)
    ax.set_yticks(range(len(lengths)), [f"$L$ = {length}" for length in lengths])
    ax.invert_yaxis()
    ax.text(-asked / 2, -0.75, "predicted", color=SERIES[0], ha="center")
    ax.text(-0.55 * lengths[-1], len(lengths) - 1, "context only", ha="center", va="center")
    ax.set(xlabel="token, counted from the end of the window", xlim=(-1.01 * lengths[-1], 8))
    ax.set_xticks([-length for length in lengths] + [0])
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return fig


@in_style
def attention_by_distance(weights: Mapping[str, np.ndarray], places: int) -> Figure:
    """Draw the mean weight at each distance for every head (H, N): one panel for each length.

    `places` is the distance at which the answer stands.
    """
    fig, axes = plt.subplots(1, len(weights), figsize=(WIDTH, 2.2), sharey=True)
    for ax, (title, rows) in zip(axes, weights.items(), strict=True):
        ax.axvline(places, color="#DDDDDD", lw=6, zorder=0)
        for head, row in enumerate(rows):
            ax.plot(row.round(2), color=SERIES[head], label=f"head {head}")
        ax.set(title=title, xlabel="distance $i-j$")
    axes[0].set(ylabel="mean weight", ylim=(0, 1))
    axes[0].text(places + 1.5, 0.97, "the answer\nstands here", va="top", fontsize=8)
    axes[-1].legend(loc="upper right", fontsize=8)
    return fig


def _spread(values: np.ndarray, gap: float) -> np.ndarray:
    """Move labels up and down until neighbours are `gap` apart."""
    order, places = np.argsort(values), np.array(values, dtype=float)
    for _ in range(200):
        for low, high in pairwise(order):
            lack = gap - (places[high] - places[low])
            if lack > 0:
                places[low] -= lack / 2
                places[high] += lack / 2
    return places


def _label_ends(ax: Axes, ends: Mapping[str, tuple[float, str]], last: float, gap: float) -> None:
    """Write each curve's name (and colour) beside its end."""
    places = _spread(np.array([y for y, _ in ends.values()]), gap)
    for (name, (y, colour)), place in zip(ends.items(), places, strict=True):
        ax.annotate(
            name,
            (last, y),
            (last * 1.25, place),
            color=colour,
            va="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkA": 0, "shrinkB": 1},
        )


@in_style
def loss_at_budgets(
    losses: Mapping[tuple[str, int], Mapping[str, np.ndarray]],
    lengths: Sequence[int],
    floors: Mapping[str, float],
) -> Figure:
    """Draw the loss (lengths,) of encodings of `NAMES`: a row a task, a column a budget.

    `floors` holds the least loss that any model could have, where it is known.
    """
    tasks, budgets = (list(dict.fromkeys(key[n] for key in losses)) for n in range(2))
    fig, axes = plt.subplots(
        len(tasks), len(budgets), figsize=(WIDTH, 5.6), sharex=True, sharey="row"
    )
    for (task, budget), curves in losses.items():
        ax = axes[tasks.index(task), budgets.index(budget)]
        for name, values in curves.items():
            ax.plot(lengths, values, **look(name))
        if task in floors:
            ax.axhline(floors[task], color="black", lw=1, ls=":")
        if budget == budgets[-1]:
            ends = {NAMES[n]: (float(v[-1]), COLOURS[n]) for n, v in curves.items()}
            _label_ends(ax, ends, lengths[-1], 0.065 * float(np.ptp(ax.get_ylim())))
        ax.set_xscale("log", base=2)
        ax.set_xticks(lengths, lengths)
        ax.minorticks_off()
        if ax in axes[0]:
            ax.set_title(f"budget {budget}")
        if ax in axes[:, 0]:
            ax.set_ylabel(f"{task}\nloss, nats per symbol")
        if ax in axes[-1]:
            ax.set_xlabel("length $L$ of the test")
    return fig


@in_style
def learning_curves(
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]],
    lengths: Sequence[int],
    floor: float | None = None,
) -> Figure:
    """Draw the loss at each length over the steps: one panel for each encoding of `NAMES`.

    A curve is its steps (P,) and losses (seeds, P, L); drawn is the mean over seeds.
    """
    fig, axes = plt.subplots(
        2, -(-len(curves) // 2), figsize=(WIDTH, 3.6), sharex=True, sharey=True
    )
    colours = plt.get_cmap("viridis_r")(np.linspace(0.25, 1, len(lengths)))
    for ax, (name, (steps, losses)) in zip(axes.flat, curves.items(), strict=False):
        for n, length in enumerate(lengths):
            ax.plot(steps, losses[..., n].mean(axis=0), color=colours[n], label=f"{length}")
        if floor is not None:
            ax.axhline(floor, color="black", lw=1, ls=":")
        ax.set_xscale("log")
        ax.set_title(NAMES[name])
        ax.minorticks_off()
        ax.set_xticks((steps[0], steps[-1]), (f"{steps[0]}", f"{steps[-1]:,}"))
    for ax in axes.flat[len(curves) :]:
        ax.set_axis_off()
    fig.supxlabel("steps of training", fontsize=9)
    for ax in axes[:, 0]:
        ax.set_ylabel("loss, nats")
    fig.legend(
        *axes.flat[0].get_legend_handles_labels(),
        title="tokens read",
        loc="outside upper center",
        ncols=4,
    )
    return fig


@in_style
def small_multiples(
    values: Mapping[tuple[str, str], Mapping[int, np.ndarray]],
    lengths: Sequence[int],
    columns: Mapping[str, str],
) -> Figure:
    """Draw what each model (a column) does at each task (a row): a line for each budget.

    Keys are (key of `TASKS`, model), values the means (lengths,) by budget: losses, or shares.
    """
    fig, axes = plt.subplots(
        len(TASKS), len(columns), figsize=(WIDTH, 1.15 * len(TASKS)), sharex=True, sharey="row"
    )
    for (task, model), by_budget in values.items():
        ax = axes[list(TASKS).index(task), list(columns).index(model)]
        for budget, means in by_budget.items():
            shown = 100 * means if "%" in TASKS[task] else means
            ax.plot(range(len(lengths)), shown, color=GREYS[budget], lw=1.4, label=f"{budget}")
        ax.set_xticks(range(len(lengths)), [""] * len(lengths))
        ax.tick_params(labelsize=7, length=2)
        if "%" in TASKS[task]:
            ax.set(ylim=(0, 106), yticks=(0, 50, 100))
        if ax in axes[0]:
            ax.set_title(columns[model].replace("Transformer-XL", "Tr.-XL"), fontsize=7.5)
        if ax in axes[:, 0]:
            ax.set_ylabel(TASKS[task], fontsize=8)
        if ax in axes[-1]:
            ax.set_xticks((0, len(lengths) - 1), (lengths[0], lengths[-1]))
    lines = {h.get_label(): h for ax in axes.flat for h in ax.get_lines()}
    handles = [lines[f"{budget}"] for budget in GREYS if f"{budget}" in lines]
    fig.legend(handles=handles, title="budget", loc="outside right center", fontsize=8)
    return fig


@in_style
def loss_against_needles(points: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Draw the loss on a long text and the needles found, in per cent, of `MODELS`.

    A model has two points, loss and needles after the shortest training and after the longest.
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 4.4))
    for name, (start, end) in points.items():
        pen = look(MODELS[name][0], mew=1)
        colour = pen["color"]
        ax.plot(*start, **{**pen, "mfc": "white"})
        ax.plot(*end, **{**pen, "ms": 7})
        arrow = {"arrowstyle": "->", "color": colour, "lw": 1, "shrinkB": 4}
        ax.annotate("", end, start, arrowprops=arrow)
        place = PLACES_OF_NAMES.get(name, (7, 3))
        label = ax.annotate(name, end, place, textcoords="offset points", color=colour)
        label.set(fontsize=8, ha="right" if place[0] < 0 else "left")
    ax.set(xlabel="loss on a text of 8 times the trained length, nats per character")
    ax.set(ylabel="needles found at 8 times, per cent", ylim=(10, 112))
    ax.set_xlim(left=1.05)
    ax.text(1.72, 45, "reads on, and forgets", color="#777777", style="italic")
    ax.text(3.1, 77, "finds, and cannot read on", color="#777777", style="italic")
    return fig
