"""Figures of chapter 64: released models."""

from __future__ import annotations

import re
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import SERIES, WIDTH, in_style
from pe_numpy.models.load import Loaded
from pe_numpy.training.optimiser import tree_paths

PARTS = {  # and how it shows in the names of parameters and settings
    "a table of positions": r"\bpositions\b",
    "RoPE": r"\bropes?\b|\bturns\b",
    "a number per distance": r"\bslopes\b|\bbuckets\b",
    "vectors per distance": r"\btable\b|/u\b",
    "biases of queries": r"b_q",
    "norms with a shift": r"norm\w*/bias",
    "a gate": r"W_gate",
    "a norm of queries": r"norm_q",
    "norms behind, too": r"after_",
    "windows": r"\bwindow",
}


@in_style
def attention_of_heads(weights: Sequence[np.ndarray], words: Sequence[str]) -> Figure:
    """Draw the weights (H, L, S) of each layer: a row per layer, a column per head."""
    n_heads, shown = len(weights[0]), len(words) <= 16
    side = max(0.6, min(1.6, WIDTH / n_heads))
    size = (side * n_heads + 1, side * len(weights) + 0.6)
    fig, axes = plt.subplots(len(weights), n_heads, figsize=size, squeeze=False)
    for (layer, head), ax in np.ndenumerate(axes):
        ax.imshow(weights[layer][head], cmap="Blues", vmin=0, vmax=1, aspect="auto")
        ax.set_xticks([])
        ax.set_yticks([])
        if not layer:
            ax.set_title(f"head {head}", fontsize=7)
        if not head:
            ax.set_ylabel(f"layer {layer}", fontsize=7)
            if shown and side >= 1:
                ax.set_yticks(range(len(words)), words, fontsize=5, parse_math=False)
    return fig


@in_style
def errors_of_steps(steps: Sequence[tuple[str, float]]) -> Figure:
    """Draw how far the logits are off after each change, on a logarithmic axis."""
    fig, ax = plt.subplots(figsize=(WIDTH, 0.36 * len(steps) + 0.8))
    places = np.arange(len(steps))
    errors = [error for _, error in steps]
    ax.hlines(places, 1e-8, errors, color="#BBBBBB", lw=1)
    ax.scatter(
        errors, places, color=[SERIES[0] if e > 1e-5 else SERIES[1] for e in errors], zorder=3
    )
    ax.set_yticks(places, [name for name, _ in steps])
    ax.set(xscale="log", xlim=(1e-8, 1e3), ylim=(len(steps) - 0.5, -0.5))
    ax.set_xlabel("largest difference of a logit, relative to the largest logit")
    return fig


def parts_of(model: Loaded) -> dict[str, bool]:
    """Say which of the parts a model has, by the names of its parameters and settings."""
    settings = [name for name, value in vars(model.settings).items() if value is not None]
    names = " ".join([*tree_paths(model.parameters), *settings])
    return {part: bool(re.search(word, names)) for part, word in PARTS.items()}


@in_style
def parts_of_models(found: dict[str, dict[str, bool]]) -> Figure:
    """Draw which model has which part: a column a model, a row a part."""
    parts = list(next(iter(found.values())))
    grid = np.array([[has[part] for has in found.values()] for part in parts])
    fig, ax = plt.subplots(figsize=(WIDTH, 0.24 * len(parts) + 1.3))
    for row, column in np.ndindex(grid.shape):
        colour = SERIES[row % 3] if grid[row, column] else "#F2F2F2"
        ax.add_patch(plt.Rectangle((column - 0.45, row - 0.42), 0.9, 0.84, fc=colour, lw=0))
    ax.set(xlim=(-0.6, len(found) - 0.4), ylim=(len(parts) - 0.5, -0.6))
    ax.set_xticks(range(len(found)), list(found), rotation=60, ha="left", fontsize=7)
    ax.set_yticks(range(len(parts)), parts, fontsize=8)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return fig
