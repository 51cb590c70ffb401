"""Figures of chapter 63: decoding with a key-value cache."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import SERIES, WIDTH, in_style, look
from pe_numpy.judging.cache import CacheProperties

FRESH, KEPT = "#CC6677", "#9DC3E6"


@in_style
def cached_rows(panels: Sequence[tuple[str, np.ndarray]], words: Sequence[str]) -> Figure:
    """Draw which rows of K and V each step computes: 2 computed, 1 taken from the cache, 0 none."""
    fig, axes = plt.subplots(1, len(panels), figsize=(WIDTH, 2.3))
    for ax, (title, states) in zip(axes, panels, strict=True):
        for step, token in np.ndindex(states.shape):
            colour = ("#F2F2F2", KEPT, FRESH)[states[step, token]]
            ax.add_patch(plt.Rectangle((token - 0.46, step - 0.44), 0.92, 0.88, fc=colour, lw=0))
            if states[step, token]:
                ink = "white" if states[step, token] == 2 else "black"
                word = words[token]
                ax.text(token, step, word, ha="center", va="center", color=ink, fontsize=8)
        ax.set(xlim=(-0.6, len(words) - 0.4), ylim=(len(states) - 0.5, -0.6), title=title)
        ax.set_xticks([])
        ax.set_yticks(range(len(states)), [f"{n}" for n in range(1, len(states) + 1)])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel("step")
    keys = [
        plt.Rectangle((0, 0), 1, 1, fc=colour, label=label)
        for colour, label in ((FRESH, "computed in this step"), (KEPT, "taken from the cache"))
    ]
    fig.legend(handles=keys, loc="outside lower center", ncols=2, fontsize=8)
    return fig


@in_style
def token_costs(
    lengths: np.ndarray, counts: dict[str, np.ndarray], times: dict[str, np.ndarray]
) -> Figure:
    """Draw multiplications, and measured milliseconds, of the n-th token in two ways."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.9))
    for n, (name, values) in enumerate(counts.items()):
        left.plot(lengths, values, color=SERIES[n])
        half = len(lengths) // 2  # the name stands left of a steep curve, above a flat one
        place, height = (lengths[half] * 0.6, 1.3) if n else (lengths[half], 1.7)
        left.text(place, values[half] * height, name, color=SERIES[n], ha="right", va="center")
    left.set(
        xscale="log", yscale="log", xlabel="token number $n$", title="multiplications, counted"
    )
    for n, (name, values) in enumerate(times.items()):
        right.plot(np.arange(1, len(values) + 1), values, color=SERIES[n], lw=1, label=name)
    right.set(xlabel="token number $n$", title="milliseconds, measured", ylim=(0, None))
    right.legend(fontsize=8, loc="upper left")
    return fig


@in_style
def cache_table(rows: Mapping[CacheProperties, Sequence[str]]) -> Figure:
    """Draw what a cache holds for each group of encodings, and what may be done to it."""
    heads = ("keys", "positions", "gates", "in pieces", "padding\ncounted", "some gone", "moved up")
    places = (0, 1, 2, 3.12, 4.12, 5.12, 6.12)  # a gap between the two parts
    fig, ax = plt.subplots(figsize=(WIDTH, 4.4))
    labels = []
    for y, (found, names) in enumerate(rows.items()):
        labels.append(textwrap.fill(", ".join(names), 46))
        held = (found.keys, "yes" if found.positions else "", found.gates.replace("none", ""))
        moved = {"any": "yes", "raw": "only raw"}.get(found.renumbering, "no")
        right = (found.chunks, found.padding == "slots", found.eviction)
        words = (*held, *("yes" if each else "no" for each in right), moved)
        for x, word in zip(places, words, strict=True):
            colour = "#F2F2F2" if x < 3 else {"yes": KEPT, "no": FRESH}.get(word, "#DDCC77")
            ax.add_patch(plt.Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, fc=colour, lw=0))
            ink = "white" if colour == FRESH else "black"
            ax.text(x, y, word, ha="center", va="center", color=ink, fontsize=8)
    ax.set(xlim=(-0.55, places[-1] + 0.5), ylim=(len(labels) - 0.5, -0.5))
    ax.set_yticks(range(len(labels)), labels, fontsize=7.5)
    ax.set_xticks(places, heads, fontsize=8)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for x, title in ((1, "what is stored"), (4.62, "what may be done")):
        ax.text(x, -1.6, title, ha="center", va="bottom")
    return fig


@in_style
def next_character(panels: dict[str, np.ndarray], characters: Sequence[str]) -> Figure:
    """Draw distributions of the next character, (n,) each, in per cent."""
    fig, axes = plt.subplots(1, len(panels), figsize=(WIDTH, 2.4), sharey=True)
    for ax, (title, p), colour in zip(axes, panels.items(), SERIES, strict=False):
        ax.bar(range(len(p)), 100 * p, color=colour, width=0.75)
        ax.set_xticks(range(len(p)), characters, family="monospace")
        ax.set(title=title, ylim=(0, 70))
        ax.tick_params(axis="x", length=0)
    axes[0].set_ylabel("probability, per cent")
    return fig


@in_style
def position_mistakes(
    places: np.ndarray, errors: dict[str, np.ndarray], colours: Sequence[str]
) -> Figure:
    """Draw how far the logits of each token are off, for encodings whose offset was forgotten."""
    fig, ax = plt.subplots(figsize=(WIDTH, 2.6))
    for (name, values), key in zip(errors.items(), colours, strict=True):
        ax.plot(places, values, label=name, **look(key, ms=5))
    ax.set(xlabel="position of the token", ylabel="largest error of a logit", ylim=(-0.03, None))
    ax.set_xticks(places)
    ax.legend(fontsize=8, ncols=2)
    return fig


@in_style
def filling_cache(frame: int) -> Figure:
    """Draw one frame of a video: each step computes one row of K and V, and keeps it."""
    words = ("wǒ", "shì", "zhōng", "guó", "rén")
    step, says = min(frame // 2, 3), frame % 2 == 1 or frame > 7
    fig, ax = plt.subplots(figsize=(WIDTH, 2.6))
    for token, word in enumerate(words):
        held = token <= step
        fresh = token == step
        seen = held or (says and token == step + 1)
        colour = "#FFFFFF" if not seen else "#DDCC77" if not held else "#E8E8E8"
        for row, text in enumerate((word, f"k{token}", f"v{token}")):
            if row:
                colour = FRESH if fresh else KEPT if held else "#F5F5F5"
            box = plt.Rectangle((token - 0.4, -row - 0.36), 0.8, 0.72, fc=colour, ec="#BBBBBB")
            ax.add_patch(box)
            if seen if row == 0 else held:
                ink = "white" if row and fresh else "black"
                ax.text(token, -row, text, ha="center", va="center", color=ink)
        if held:  # the newest token's query looks at each key
            ax.plot([step, token], [-3.2, -2.42], color="#555555", lw=1)
    ax.add_patch(plt.Rectangle((step - 0.4, -3.9), 0.8, 0.72, fc=FRESH, ec="#BBBBBB"))
    ax.text(step, -3.54, f"q{step}", ha="center", va="center", color="white")
    for row, name in enumerate(("text", "keys", "values")):
        ax.text(-0.6, -row, name, ha="right", va="center")
    ax.text(-0.6, -3.54, "query", ha="right", va="center")
    rows = f"{step} row{'s' * (step != 1)} from the cache"
    says_word = f", next word: {words[step + 1]}" if says else ""
    ax.set_title(f"step {step + 1}: 1 row computed, {rows}{says_word}", loc="left")
    ax.set(xlim=(-1.4, 4.6), ylim=(-4.1, 0.5))
    ax.axis("off")
    return fig
