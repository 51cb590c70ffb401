"""Figures of chapter 71: train short, test long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pe_numpy.plots.style import COLOURS, RELATIVE, SERIES, WIDTH, in_style

NAMES = {
    "none": "none",
    "sinusoidal": "sinusoidal",
    "learned": "learned",
    **RELATIVE,
    "rope": "RoPE",
}
SCALINGS = {
    "direct": "direct",
    "linear": "linear",
    "ntk": "NTK",
    "dynamic_ntk": "dynamic NTK",
    "yarn": "YaRN",
}
# The models of the probes: their names, and the encoding and the scaling of each.
MODELS = {NAMES[name]: (name, "direct") for name in NAMES if name != "rope"}
MODELS |= {"ALiBi, steep": ("alibi_steep", "direct")}
MODELS |= {f"RoPE, {SCALINGS[name]}": ("rope", name) for name in SCALINGS if name != "ntk"}
SCALING_COLOURS = dict(
    zip(SCALINGS, (COLOURS["rope"], *(SERIES[n] for n in (1, 0, 4, 5))), strict=True)
)


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
    ax.text(-0.55 * lengths[-1], len(lengths) - 1, "context alone", ha="center", va="center")
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


def _over_length(ax: Axes, values: np.ndarray, lengths: Sequence[int], **style: object) -> None:
    """Draw the mean over seeds (rows) as a line, from the least to the largest as a band."""
    ax.plot(lengths, values.mean(axis=0), **style)  # type: ignore[arg-type]
    colour = style["color"]
    ax.fill_between(lengths, values.min(0), values.max(0), color=colour, alpha=0.25, lw=0)


def _lengths(ax: Axes, lengths: Sequence[int], tick: str = "{}") -> None:
    ax.set_xscale("log", base=2)
    ax.set_xticks(lengths, [tick.format(length) for length in lengths])
    ax.minorticks_off()


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
def loss_over_length(
    losses: Mapping[str, Mapping[str, np.ndarray]],
    lengths: Sequence[int],
    floors: Mapping[str, float],
) -> Figure:
    """Draw the loss (seeds, lengths) of each encoding over the length: one panel for each task.

    `floors` holds the least loss that any model could have, where it is known.
    """
    fig, axes = plt.subplots(1, len(losses), figsize=(WIDTH, 3.9))
    for ax, (task, curves) in zip(axes, losses.items(), strict=True):
        for name, values in curves.items():
            _over_length(ax, values, lengths, color=COLOURS[name])
        ends = {NAMES[n]: (float(v[:, -1].mean()), COLOURS[n]) for n, v in curves.items()}
        span = np.ptp([v.mean(axis=0) for v in curves.values()])
        _label_ends(ax, ends, lengths[-1], 0.052 * float(span))
        if task in floors:
            ax.axhline(floors[task], color="black", lw=1, ls=":")
            ax.text(lengths[1], floors[task] - 0.02, "no model can be below", va="top", fontsize=8)
            ax.set_ylim(bottom=floors[task] - 0.12)
        ax.axvline(lengths[0], color="#DDDDDD", lw=4, zorder=0)
        _lengths(ax, lengths)
        ax.set(title=task, xlabel="length $L$ of the test (trained on 32)")
        ax.set_xlim(0.93 * lengths[0], lengths[-1] * 1.1)
    axes[0].set_ylabel("loss, nats a symbol")
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
def loss_of_stretched_rope(
    losses: Mapping[tuple[str, str], Mapping[str, np.ndarray]], lengths: Sequence[int]
) -> Figure:
    """Draw the loss (seeds, lengths) of each scaling of RoPE: panels by (row, column) titles.

    The curves have the keys of `SCALINGS`.
    """
    rows, columns = (list(dict.fromkeys(key[n] for key in losses)) for n in range(2))
    fig, axes = plt.subplots(
        len(rows), len(columns), figsize=(WIDTH, 4.6), sharex=True, sharey="row", squeeze=False
    )
    for (row, column), curves in losses.items():
        ax = axes[rows.index(row), columns.index(column)]
        for name, values in curves.items():
            colour = SCALING_COLOURS[name]
            _over_length(ax, values, lengths, color=colour, label=SCALINGS[name])
        _lengths(ax, lengths)
        if ax in axes[0]:
            ax.set_title(column)
        if ax in axes[:, 0]:
            ax.set_ylabel(f"{row}\nloss, nats")
        if ax in axes[-1]:
            ax.set_xlabel("length $L$ of the test")
    handles = {h.get_label(): h for ax in axes.flat for h in ax.get_lines()}
    fig.legend(handles=list(handles.values()), loc="outside right center")
    return fig


def _colour(name: str) -> str:
    return COLOURS[MODELS[name][0].removesuffix("_steep")]


@in_style
def probes_over_length(
    probes: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]],
    lengths: Sequence[int],
    chances: tuple[float, float],
) -> Figure:
    """Draw three probes (seeds, lengths), in per cent, one panel for each of `MODELS`.

    They are the offset, the needle, and the needle with log n; `chances` holds the per cent of a
    guess at the offset and at the needle.
    """
    fig, axes = plt.subplots(3, 5, figsize=(WIDTH, 4.6), sharex=True, sharey=True)
    for ax, (name, values) in zip(axes.flat, probes.items(), strict=False):
        offset, needle, sharper = values
        for chance, grey in zip(chances, ("#BBBBBB", "black"), strict=True):
            ax.axhline(chance, color=grey, lw=0.6, ls="--", zorder=0)
        _over_length(ax, offset, lengths, color="#BBBBBB", lw=2.5)
        _over_length(ax, needle, lengths, color=_colour(name))
        ax.plot(lengths, sharper.mean(axis=0), color=_colour(name), ls=":")
        ax.set_title(name, fontsize=8.5)
        _lengths(ax, lengths)
        ax.set(ylim=(0, 104), yticks=(0, 50, 100))
        ax.tick_params(labelsize=7.5)
    for ax in axes.flat[len(probes) :]:
        ax.set_axis_off()
    legend = axes.flat[len(probes)]
    styles = (("offset", "#BBBBBB", "-", 2.5), ("needle", "black", "-", 1.6))
    thin = (("needle, log n", "black", ":", 1.6), ("chance of each", "black", "--", 0.6))
    for name, colour, dashes, width in (*styles, *thin):
        legend.plot([], [], color=colour, ls=dashes, lw=width, label=name)
    legend.legend(loc="center", fontsize=8)
    fig.supylabel("right answers, per cent", fontsize=9)
    fig.supxlabel("length $L$ of the test (trained on 32)", fontsize=9)
    return fig


@in_style
def loss_against_needles(points: Mapping[str, np.ndarray]) -> Figure:
    """Draw the loss on a long text and the needles found, in per cent, of `MODELS`: (seeds, 2).

    Small dots are seeds, the large one is their mean.
    """
    fig, ax = plt.subplots(figsize=(WIDTH, 4.2))
    places = {"Transformer-XL": (8, -13), "Shaw": (8, -1), "TUPE": (-28, 11), "DeBERTa": (8, 2)}
    places |= {"RoPE, dynamic NTK": (-30, -17), "learned": (10, -3), "T5": (-18, -4)}
    places |= {"none": (8, -9), "RoPE, linear": (5, 6), "ALiBi": (10, 3)}
    for name, seeds in points.items():
        x, y = seeds.mean(axis=0)
        ax.plot(seeds[:, 0], seeds[:, 1], "o", color=_colour(name), ms=3, alpha=0.6)
        ax.plot(x, y, "o", color=_colour(name), ms=8)
        place = places.get(name, (7, 4))
        ax.annotate(name, (x, y), place, textcoords="offset points", color=_colour(name))
    ax.set(xlabel="loss on a text of 8 times the trained length, nats a character")
    ax.set(ylabel="needles found at 8 times, per cent", ylim=(0, 108), xlim=(1.65, 3.6))
    for x, y, words in ((1.7, 41, "reads on, and forgets"), (3.0, 86, "finds, and cannot read on")):
        ax.text(x, y, words, color="#777777", style="italic")
    return fig
