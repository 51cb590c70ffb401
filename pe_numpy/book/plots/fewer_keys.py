"""Figures of chapter 44: shared keys, their weight, and what a turn does to a latent vector."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pe_numpy.book.plots.style import COLOURS, READS, SERIES, WIDTH, in_style

QUERY, KEY, VALUE = READS["q"], READS["k"], READS["v"]
LATENT, TURNED = SERIES[6], COLOURS["rope"]


def _block(axes: Axes, x: float, y: float, width: float, height: float, colour: str) -> None:
    axes.add_patch(Rectangle((x, y), width, height, fc=colour, ec="white", lw=1))


def _panel(axes: Axes, title: str, stored: str, heads: int) -> None:
    axes.plot(np.arange(heads), np.full(heads, 5.0), "o", color=QUERY, ms=6)
    axes.set(xlim=(-0.8, heads - 0.2), ylim=(-0.35, 5.5), title=f"{title}\n{stored}")
    axes.axis("off")


@in_style
def fewer_keys_heads(heads: int, groups: int, latent: float, turned: float) -> Figure:
    """Draw which keys the query heads read, and to scale what a token leaves in the cache.

    `latent` and `turned` are the widths of the latent vector and of the shared rotated key, in
    widths of a head.
    """
    figure, panels = plt.subplots(1, 4, figsize=(WIDTH, 2.7))
    names = ("a key for each head", "grouped", "one for all", "latent")
    for axes, name, G in zip(panels, names, (heads, groups, 1, 0), strict=True):
        total = 2 * G if G else latent + turned
        _panel(axes, name, f"caches ${total:g}\\,K$ numbers", heads)
        at = (np.arange(G) + 0.5) * heads / G - 0.5 if G else np.array([])
        for x in at:
            _block(axes, x - 0.45, 2, 0.9, 1.4, KEY)
            _block(axes, x - 0.45, 0.3, 0.9, 1.4, VALUE)
        for h in range(heads):
            ends = [(at[h * G // heads], 3.4)] if G else [(1.7, 2.7), (6.2, 2.7)]
            for n, (x, y) in enumerate(ends):
                colour = KEY if G else (LATENT, TURNED)[n]
                axes.plot([h, x], [4.85, y], color=colour, lw=1)
    last, left = panels[3], 0.0
    for width, colour in ((latent, LATENT), (turned, TURNED)):
        _block(last, left, 1.3, 0.9 * width, 1.4, colour)
        left = 6.0
    last.text(1.8, 2.0, "$c$", ha="center", va="center", color="white", fontsize=11)
    last.text(6.2, 0.9, "$k^R$", ha="center", va="center", color=TURNED, fontsize=10)
    panels[0].text(-1.1, 5, "queries", ha="right", va="center", color=QUERY)
    panels[0].text(-1.1, 2.7, "keys", ha="right", va="center", color=KEY)
    panels[0].text(-1.1, 1, "values", ha="right", va="center", color=VALUE)
    return figure


def _log(counts: np.ndarray, base: float) -> np.ndarray:
    """Logarithms that are the same on every processor."""
    return (np.log(counts) / np.log(base)).round(6)


@in_style
def fewer_keys_models(names: list[str], kept: np.ndarray, without: np.ndarray) -> Figure:
    """Draw numbers a layer and token (N,) that are cached, beside those of a key for each head."""
    figure, axes = plt.subplots(figsize=(WIDTH, 0.28 * len(names) + 0.9))
    rows = np.arange(len(names))[::-1]
    few, many = _log(kept, 2), _log(without, 2)
    axes.hlines(rows, few, many, color="#CCCCCC", lw=3, zorder=0)
    axes.plot(many, rows, "o", mfc="white", mec=COLOURS["none"], ms=6, label="without sharing")
    axes.plot(few, rows, "o", color=SERIES[1], ms=6, label="cached")
    for row, x, ratio in zip(rows, many, without / kept, strict=True):
        if ratio > 1:
            axes.text(x + 0.25, row, f"{ratio:.3g} times", va="center", color="#555555")
    ticks = np.arange(8, 17)
    axes.set(
        xlim=(7.6, 16.8),
        xticks=ticks,
        xticklabels=[f"{2**n:,}" for n in ticks],
        yticks=rows,
        yticklabels=names,
        xlabel="numbers per token and layer",
    )
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    return figure


@in_style
def fewer_keys_rank(curves: dict[str, np.ndarray], r: int) -> Figure:
    """Draw singular values (N,) of the keys of all heads, a curve each; r is marked."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.6))
    colours = (SERIES[0], TURNED)
    for (name, values), colour in zip(curves.items(), colours, strict=True):
        axes.plot(np.arange(1, len(values) + 1), values, "o-", color=colour, ms=3.5, label=name)
    axes.axvline(r + 0.5, color="#999999", lw=1, ls="--")
    axes.text(r + 1, 0.93, f"$r = {r}$", color="#555555")
    axes.set(
        xlabel="number of the singular value", ylabel="share of the largest", ylim=(-0.03, 1.04)
    )
    axes.legend()
    return figure


@in_style
def fewer_keys_products(tokens: np.ndarray, panels: dict[str, dict[str, np.ndarray]]) -> Figure:
    """Draw counts (N,) over the number of cached tokens (N,), a panel each quantity."""
    figure, both = plt.subplots(1, 2, figsize=(WIDTH, 2.9))
    colours = (COLOURS["none"], SERIES[1], SERIES[0])
    for axes, (title, curves) in zip(both, panels.items(), strict=True):
        for (name, counts), colour in zip(curves.items(), colours, strict=True):
            broad = {"lw": 4, "alpha": 0.5} if colour == colours[0] else {}
            axes.plot(_log(tokens, 2), _log(counts, 10), color=colour, label=name, **broad)
        powers = np.arange(8, 18, 3)
        axes.set(title=title, xlabel="cached tokens $S$")
        axes.set_xticks(powers, [f"{2**n:,}" for n in powers])
        low, high = axes.get_ylim()
        tens = np.arange(math.ceil(low), math.floor(high) + 1)
        axes.set_yticks(tens, [f"$10^{{{n}}}$" for n in tens])
    both[0].legend(fontsize=8)
    return figure
