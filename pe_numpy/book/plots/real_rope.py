"""Figures of chapter 81: RoPE in a trained model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, MAGNITUDE, SERIES, WIDTH, in_style

LOCAL, GLOBAL = COLOURS["rope"], SERIES[1]


@in_style
def pair_sizes(sizes: np.ndarray, wide: Sequence[int]) -> Figure:
    """Draw sizes (layers, pairs) of the pairs over their layer's median; `wide`: global layers."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.0))
    image = axes.imshow(
        np.maximum(sizes, 0.5),
        cmap=MAGNITUDE,
        norm=LogNorm(0.5, 100),
        aspect="auto",
        interpolation="nearest",
    )
    axes.spines[:].set_visible(False)
    axes.set(xlabel="pair (0 is the fastest)", ylabel="layer")
    axes.set_xticks([*range(0, 128, 16), 127])
    axes.set_yticks(
        range(len(sizes)), [f"global {n}" if n in wide else f"{n}" for n in range(len(sizes))]
    )
    axes.tick_params(length=0, labelsize=7.5)
    figure.colorbar(image, ax=axes, label="mean $|q|\\,|k|$ over the median", pad=0.01)
    return figure


@in_style
def pair_planes(panels: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Draw keys (N,) and queries (H, N) of some pairs in their planes, over their mean lengths."""
    figure, row = plt.subplots(1, len(panels), figsize=(WIDTH, 3.2))
    for axes, (title, (keys, queries)) in zip(row, panels.items(), strict=True):
        for x, colour, name in ((queries, GLOBAL, "queries"), (keys, LOCAL, "keys")):
            x = (x / np.abs(x).mean(axis=-1, keepdims=True)).ravel().round(2)
            axes.plot(x.real, x.imag, ".", ms=3, color=colour, alpha=0.6, label=name)
        axes.plot(0, 0, "k+", ms=6)
        axes.set(title=title, xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), aspect="equal")
        axes.set(xlabel="first component", ylabel="second component" if axes is row[0] else "")
    handles, names = row[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, markerscale=3)
    return figure


@in_style
def pair_biases(distance: np.ndarray, biases: np.ndarray, window: int) -> Figure:
    """Draw the bias (layers, N) that the largest pair adds to a score, over the distance (N,)."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.8))
    axes.axvspan(0, window, color="#EEEEEE", linewidth=0)
    axes.text(window / 2, biases.max(), "the window of training", ha="center", va="top")
    for n, bias in enumerate(biases):
        name = "" if n else "one local layer"
        axes.plot(distance, bias, color=LOCAL, linewidth=0.7, alpha=0.6, label=name or "_")
    axes.plot(distance, biases.mean(axis=0), color=GLOBAL, label="mean of all local layers")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="distance $d$", ylabel="added to the score, in nats", xlim=(0, distance[-1]))
    axes.legend(loc="lower right")
    return figure


@in_style
def bands_of_pairs(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Draw changes of the loss, one bar per band of pairs and text, one panel per kind."""
    figure, row = plt.subplots(1, len(panels), figsize=(WIDTH, 2.6))
    for axes, (title, texts) in zip(row, panels.items(), strict=True):
        for i, ((text, changes), colour) in enumerate(zip(texts.items(), SERIES, strict=False)):
            at = np.arange(len(changes)) + 0.27 * (i - 1)
            axes.bar(at, changes, 0.25, color=colour, label=text)
        step = 128 // len(changes)
        names = [f"{a}-{a + step - 1}" for a in range(0, 128, step)]
        axes.set_xticks(range(len(names)), names, fontsize=6.5, rotation=45 if step < 32 else 0)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set(title=title, xlabel="pairs")
    row[0].set_ylabel("change of the loss, in nats")
    handles, names = row[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3)
    return figure


@in_style
def heads_and_fast_pairs(kinds: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Draw weights on the previous token over the share of fast pairs, a dot per head."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.6))
    for (name, (share, weight)), colour, mark in zip(
        kinds.items(), (LOCAL, GLOBAL), "os", strict=True
    ):
        share, weight = (np.round(200 * x) / 200 for x in (share, weight))
        axes.plot(share, weight, mark, color=colour, markersize=4, label=name)
    axes.set(xlabel="share of the pairs 0 to 31 in $|q|\\,|k|$")
    axes.set_ylabel("mean weight on the\nprevious token")
    axes.legend()
    return figure
