"""Figures of chapter 41: RoPE computed."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, MAGNITUDE, SERIES, WIDTH, in_style


@in_style
def rope_step(before: np.ndarray, after: np.ndarray, angles: np.ndarray) -> Figure:
    """Each pair of a vector in its plane, before and after its turn: (n, 2), (n, 2), (n,)."""
    figure, panels = plt.subplots(1, len(before), figsize=(WIDTH, 2.5))
    for i, axes in enumerate(panels):
        radius, start = np.hypot(*before[i]), np.arctan2(*before[i][::-1])
        circle = start + np.linspace(0, 2 * np.pi, 200)
        axes.plot(radius * np.cos(circle), radius * np.sin(circle), color="#DDDDDD", linewidth=0.8)
        arc = start + np.linspace(0, angles[i], 100)
        axes.plot(radius * np.cos(arc), radius * np.sin(arc), color=SERIES[1], linewidth=1.6)
        for (u, v), colour, name in (
            (before[i], COLOURS["none"], "before"),
            (after[i], COLOURS["rope"], "after"),
        ):
            axes.plot([0, u], [0, v], color=colour)
            axes.plot(u, v, "o", color=colour, markersize=5, label=name)
        reach = 1.2 * radius
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axes.locator_params(nbins=3)
        axes.tick_params(labelsize=7)
        axes.set(title=f"pair {i}: {angles[i]:g} rad")
        axes.set(xlabel=f"component {2 * i}", ylabel=f"component {2 * i + 1}")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2)
    return figure


@in_style
def rope_score_map(scores: np.ndarray, pairs: Sequence[tuple[int, int]]) -> Figure:
    """Scores (M, N) of one query at m and one key at n, with some pairs (m, n) circled."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.2))
    image = left.imshow(scores, cmap=MAGNITUDE, aspect="equal")
    left.spines[:].set_visible(False)
    m, n = np.array(pairs).T
    left.plot(n, m, "o", markerfacecolor="none", markeredgecolor="white", markersize=6)
    left.set(xlabel="position $n$ of the key", ylabel="position $m$ of the query")
    figure.colorbar(image, ax=left, label="score", shrink=0.85)
    query, key = np.indices(scores.shape)
    right.plot((query - key).ravel(), scores.ravel(), ".", color=COLOURS["rope"], markersize=4)
    right.plot(
        m - n, scores[m, n], "o", markerfacecolor="none", markeredgecolor=SERIES[1], markersize=9
    )
    right.set(xlabel="distance $m - n$", ylabel="score")
    return figure


@in_style
def rope_scores_over_distance(distance: np.ndarray, scores: dict[str, np.ndarray]) -> Figure:
    """Scores (N,) of some pairs of vectors over the distance (N,), one panel a pair."""
    figure, panels = plt.subplots(1, len(scores), figsize=(WIDTH, 2.4))
    for axes, (name, score) in zip(panels, scores.items(), strict=True):
        axes.plot(distance, score, color=COLOURS["rope"], linewidth=1)
        top = int(np.argmax(score))
        axes.plot(distance[top], score[top], "o", color=SERIES[1], markersize=5)
        axes.set(title=name, xlabel="distance $m - n$")
    panels[0].set_ylabel("score")
    return figure


@in_style
def rope_bound(
    distance: np.ndarray, panels: dict[str, tuple[np.ndarray, np.ndarray, float]]
) -> Figure:
    """Size of a score (N,), its bound (N,) and the product of the norms, over distance (N,)."""
    figure, row = plt.subplots(1, len(panels), figsize=(WIDTH, 2.8))
    for axes, (name, (score, bound, norms)) in zip(row, panels.items(), strict=True):
        axes.semilogy(distance, bound, color=SERIES[1], linewidth=1, label="bound (37)")
        axes.axhline(
            norms, color=SERIES[0], linestyle="--", linewidth=1, label="product of the norms"
        )
        axes.semilogy(
            distance, score, color=COLOURS["rope"], linewidth=1, label="size of the score"
        )
        axes.set(title=name, xlabel="distance $m - n$")
    row[0].set_ylabel("size, logarithmic")
    handles, names = row[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3)
    return figure


@in_style
def rope_random_scores(
    distance: np.ndarray,
    curves: dict[str, tuple[np.ndarray, np.ndarray]],
    samples: dict[str, np.ndarray],
) -> Figure:
    """Mean and deviation (N,) of scores over distance (N,), and histograms of samples (P,)."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(WIDTH, 2.8), gridspec_kw={"width_ratios": [3, 2]}
    )
    for (name, (mean, deviation)), colour in zip(
        curves.items(), (SERIES[1], COLOURS["rope"]), strict=True
    ):
        left.plot(distance, mean, color=colour, label=name)
        left.fill_between(
            distance, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0
        )
    left.set_xscale("symlog", linthresh=1)
    left.set(xlabel="distance $m - n$", ylabel="score: mean and one deviation")
    left.legend()
    edges = np.linspace(-45, 45, 46)
    for (name, sample), colour in zip(samples.items(), (COLOURS["rope"], SERIES[0]), strict=True):
        right.hist(sample, edges, histtype="step", color=colour, label=name, linewidth=1.2)
    right.set(xlabel="score, unrelated contents", ylabel="pairs", ylim=(0, 400))
    right.legend(loc="upper right", handlelength=0.8)
    return figure


@in_style
def rope_turns(turns: np.ndarray) -> Figure:
    """Turns (n,) that each pair of components makes over the trained positions."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.7))
    pair = np.arange(len(turns))
    for chosen, colour, name in (
        (turns >= 1, COLOURS["rope"], "completes a rotation"),
        (turns < 1, SERIES[1], "never finishes one"),
    ):
        axes.bar(pair[chosen], turns[chosen] - 1, bottom=1, color=colour, width=0.8, label=name)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(yscale="log", ylim=(0.02, 600), xlim=(-1, len(turns)))
    axes.set(xlabel="pair $c$", ylabel="rotations within the trained length")
    axes.legend()
    return figure


@in_style
def rope_nearest_phase(
    offset: np.ndarray, distance: np.ndarray, unrelated: float, trained: int
) -> Figure:
    """Distance (N,) from the phases of each offset (N,) to the nearest trained phases."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.7))
    axes.plot(offset, distance, color=COLOURS["rope"])
    axes.axhline(unrelated, color=SERIES[1], linestyle="--", linewidth=1)
    axes.text(offset[-1], unrelated, "unrelated phases", va="bottom", ha="right", color=SERIES[1])
    axes.axvspan(0, trained - 1, color="#DDDDDD", linewidth=0)
    axes.text(trained / 2, unrelated / 2, "trained", ha="center")
    axes.set(xlabel="offset $m - n$", ylabel="distance to the nearest\ntrained phase vector")
    axes.set(xlim=(0, offset[-1]), ylim=(-0.2, 1.15 * unrelated))
    return figure


@in_style
def rope_precision(positions: np.ndarray, errors: dict[str, np.ndarray]) -> Figure:
    """Largest error (N,) of the table up to each position (N,), for several number formats."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.0))
    for (name, error), colour in zip(
        errors.items(), (SERIES[1], SERIES[0], SERIES[5], COLOURS["rope"]), strict=True
    ):
        known = np.isfinite(error)
        axes.loglog(positions[known], error[known], color=colour, label=name)
    axes.axhline(2, color="black", linewidth=0.8, linestyle=":")
    axes.set(xlabel="position $m$", ylim=(1e-8, 5))
    axes.set_ylabel("largest error of $e^{\\mathrm{i}m\\theta_c}$")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
