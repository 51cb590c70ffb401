"""Figures of chapter 10: attention by hand."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, SERIES, WIDTH, in_style, matrix_panel

Panel = tuple[str, np.ndarray, str]


@in_style
def attention_steps(
    words: Sequence[str],
    X: np.ndarray,
    W_q: np.ndarray,
    Q: np.ndarray,
    K: np.ndarray,
    V: np.ndarray,
    weights: np.ndarray,
    output: np.ndarray,
) -> Figure:
    """Every step of one head, with its numbers: from the words (L, D) to the output."""
    scores = Q @ K.T
    above = [
        ("$X$", X, "vectors"),
        ("$W^q$", W_q, "matrix"),
        ("$Q$", Q, "vectors"),
        ("$K = XW^k$", K, "vectors"),
        ("$V = XW^v$", V, "vectors"),
    ]
    below = [
        ("scores $QK^T$", scores, "scores"),
        ("scaled scores", scores / np.sqrt(K.shape[1]), "scores"),
        ("weights", weights, "weights"),
        ("output $O$", output, "vectors"),
    ]
    divide = r"$\div\sqrt{d_k}$" + "\n" + r"$\to$"
    signs = [[r"$\times$", "$=$"], [divide, "softmax\n" + r"$\to$", r"$\times\,V$" + "\n$=$"]]
    return _panels([above, below], words, signs)


@in_style
def attention_panels(rows: Sequence[Sequence[Panel]], words: Sequence[str]) -> Figure:
    """Rows of matrices with their numbers: (title, (L, n) array, kind).

    "vectors" have components as columns, "scores" and "weights" have words; a "matrix" has
    components as rows, too.
    """
    return _panels(rows, words, [[]] * len(rows))


def _panels(
    rows: Sequence[Sequence[Panel]], words: Sequence[str], signs: Sequence[Sequence[str]]
) -> Figure:
    """Draw rows of panels, all in one scale, with a sign after some of them, and two bars."""
    figure = plt.figure(figsize=(WIDTH, 1.72 * len(rows)))
    parts = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
    limit = max(float(np.abs(data).max()) for row in rows for _, data, _ in row)
    bars = {0: ("all but weights", True), 1: ("weights", False)}  # beside the first two rows
    for place, (part, row) in enumerate(zip(parts, rows, strict=True)):
        ratios = [data.shape[1] for _, data, _ in row]
        panels, images = part.subplots(1, len(row), width_ratios=ratios), {}
        for n, (axes, (title, data, kind)) in enumerate(zip(panels, row, strict=True)):
            whole = bool((data == data.round()).all())
            numbers = [str(c) for c in range(len(data))] if kind == "matrix" else [""] * len(data)
            columns = words if kind in ("scores", "weights") else range(data.shape[1])
            signed = kind != "weights"
            images[signed] = matrix_panel(
                axes,
                title,
                data,
                words if n == 0 else numbers,
                columns,
                "{:.0f}" if whole else "{:.2f}",
                signed,
                limit,
            )
        for axes, sign in zip(panels, signs[place], strict=False):
            at = {"transform": axes.transAxes, "va": "center", "multialignment": "center"}
            axes.text(1.04, 0.5, sign, fontsize=8, linespacing=1.1, **at)
        if place in bars:
            label, signed = bars[place]
            bar = part.colorbar(images[signed], ax=panels, fraction=0.03, pad=0.01)
            bar.set_label(label, fontsize=7)
            bar.ax.tick_params(labelsize=6.5, length=2)
    return figure


@in_style
def dot_product_spread(
    samples: dict[int, np.ndarray], widths: np.ndarray, spreads: np.ndarray, scaled: np.ndarray
) -> Figure:
    """Histograms of dot products for a few widths d_k, and their measured spread for all."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.6))
    bins = np.arange(-30.5, 31)
    for n, (width, dots) in enumerate(samples.items()):
        label = f"$d_k$ = {width}"
        left.hist(dots, bins, density=True, histtype="step", color=SERIES[n], label=label)
    left.set(xlabel=r"dot product $q \cdot k$", ylabel="share of pairs")
    left.legend()
    right.plot(widths, np.sqrt(widths), color=COLOURS["none"], label=r"$\sqrt{d_k}$")
    right.plot(widths, spreads, "o", color=SERIES[0], label=r"std of $q \cdot k$, measured")
    right.plot(widths, scaled, "s", color=SERIES[1], label=r"std of $q \cdot k / \sqrt{d_k}$")
    right.set_xscale("log", base=2)
    right.set_yscale("log", base=2)
    right.set(xlabel="width of one head $d_k$", ylabel="standard deviation")
    right.legend()
    return figure


@in_style
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
