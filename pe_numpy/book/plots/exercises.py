"""Figures of chapter 73: exercises."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, WIDTH, heat, in_style


@in_style
def wrong_codes(codes: dict[str, np.ndarray], right: np.ndarray) -> Figure:
    """Draw the right table of codes (positions, D), and each wrong one with what it gets wrong."""
    fig, axes = plt.subplots(3, 3, figsize=(WIDTH, 6.0), sharex=True, sharey=True)
    for ax, (name, code) in zip(axes.flat, {"right": right, **codes}.items(), strict=True):
        heat(ax, code, limit=1.0)
        ax.set_title(name, fontsize=8, weight="bold" if name == "right" else "normal")
    for ax in axes[:, 0]:
        ax.set_ylabel("position")
    for ax in axes[-1]:
        ax.set_xlabel("component")
    return fig


@in_style
def wrong_scores(scores: dict[str, np.ndarray], right: np.ndarray) -> Figure:
    """Draw scores (L, L) of one query and key at all positions: the right ones and wrong ones."""
    fig, axes = plt.subplots(3, 3, figsize=(WIDTH, 6.4), sharex=True, sharey=True)
    limit = float(np.abs(right).max())
    for ax, (name, data) in zip(axes.flat, {"right": right, **scores}.items(), strict=True):
        heat(ax, data, limit=limit)
        ax.set_title(name.partition(",")[0], fontsize=8, weight="bold" if name == "right" else None)
        ax.set_aspect("equal")
    for ax in axes[:, 0]:
        ax.set_ylabel("query $i$")
    for ax in axes[-1]:
        ax.set_xlabel("key $j$")
    return fig


@in_style
def class_summary(found: Mapping[str, Mapping[str, int]]) -> Figure:
    """Draw, for each exercise of a class, how many were right and how often each mistake was made.

    What could not be run is grey, an answer that is right green.
    """
    colours = {"right": COLOURS["rope"], "not run": COLOURS["none"]}
    counts = [len(words) for words in found.values()]
    height = 0.24 * sum(counts) + 0.45 * len(counts) + 0.3  # inches
    fig, axes = plt.subplots(
        len(counts),
        1,
        figsize=(WIDTH, height),
        sharex=True,
        squeeze=False,
        height_ratios=[n + 1 for n in counts],
    )
    for ax, (name, words) in zip(axes[:, 0], found.items(), strict=True):
        bars = ax.barh(
            [*words], [*words.values()], color=[colours.get(w, COLOURS["t5"]) for w in words]
        )
        ax.bar_label(bars, padding=2)
        ax.invert_yaxis()  # the first on top
        ax.set_title(name, loc="left", weight="bold")
    fig.set_layout_engine("constrained", h_pad=0.08)  # inches: the first title stands at the edge
    ax.set_xlabel("students")
    ax.xaxis.get_major_locator().set_params(integer=True)
    return fig
