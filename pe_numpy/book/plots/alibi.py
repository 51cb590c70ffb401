"""Figures of chapter 35: ALiBi."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, MAGNITUDE, SERIES, SIGNED, WIDTH, in_style

_ENCODING = {"ALiBi": "alibi", "RoPE": "rope", "sinusoidal": "sinusoidal"}


@in_style
def alibi_first_rows(distance: np.ndarray, rows: dict[str, np.ndarray]) -> Figure:
    """Draw rows of weights (S,) of equal keys at the distances (S,), one panel each."""
    figure, panels = plt.subplots(1, len(rows), figsize=(WIDTH, 2.1), sharey=True)
    for axes, (name, weights) in zip(panels, rows.items(), strict=True):
        colour = COLOURS["none"] if "wall" in name else COLOURS["alibi"]
        axes.bar(np.arange(len(weights)), weights, color=colour, width=0.75)
        for x, w in enumerate(weights):
            if w > 0:
                axes.text(x, w + 0.01, f"{w:.2f}", ha="center", va="bottom", fontsize=6)
        axes.set_xticks(np.arange(len(weights)), [str(d) for d in distance])
        axes.set(title=name, xlabel="distance $i - j$", ylim=(0, 0.72))
    panels[0].set_ylabel("weight")
    return figure


@in_style
def alibi_slope_rules(slopes: dict[int, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Draw for each number of heads the slopes (H,) of the formula and those of the rule."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.5))
    names, y = [], 0.0
    for heads, (formula, rule) in slopes.items():
        for name, values, colour in (
            ("formula", formula, COLOURS["none"]),
            ("authors' rule", rule, COLOURS["alibi"]),
        ):
            axes.plot([2.0**-8.5, 1], [y, y], color="#DDDDDD", lw=0.8, zorder=0)
            axes.plot(values, [y] * heads, "o", color=colour, ms=5)
            for h, m in enumerate(values, start=1):
                axes.annotate(
                    str(h), (m, y), (0, 5), textcoords="offset points", ha="center", fontsize=7
                )
            names.append((y, f"{heads} heads, {name}"))
            y -= 1
        y -= 0.4
    axes.set_xscale("log", base=2)
    axes.set_xticks([2.0**-n for n in range(9)])
    axes.set_xticklabels(["1", *(f"1/{2**n}" for n in range(1, 9))])
    axes.set_yticks([at for at, _ in names], [text for _, text in names])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set(xlabel="slope $m_h$; small numbers: the head $h$", ylim=(y + 0.9, 0.7))
    return figure


def _cells(axes: Axes, data: np.ndarray, limit: float, form: str, signed: bool = True) -> None:
    """A matrix with its numbers; entries that are nan stay white."""
    cmap = mpl.colormaps[SIGNED if signed else MAGNITUDE].with_extremes(bad="#F2F2F2")
    axes.imshow(data, cmap=cmap, vmin=-limit if signed else 0, vmax=limit, aspect="equal")
    for i, j in np.ndindex(data.shape):
        if np.isfinite(data[i, j]):
            dark = abs(data[i, j]) > 0.6 * limit if signed else data[i, j] < 0.55 * limit
            ink, text = "white" if dark else "black", form.format(data[i, j] + 0.0)
            axes.text(j, i, text, ha="center", va="center", fontsize=6.5, color=ink)
    axes.set_xticks(range(data.shape[1]))
    axes.set_yticks(range(data.shape[0]))
    axes.tick_params(length=0, labelsize=7, pad=2)
    axes.spines[:].set_visible(False)


@in_style
def alibi_bias_panels(bias: np.ndarray, mask: np.ndarray, names: Sequence[str]) -> Figure:
    """Draw biases (H, L, L) of some heads, symmetric above, under a causal mask (L, L) below."""
    figure, panels = plt.subplots(2, len(names), figsize=(WIDTH, 4.5), sharex=True, sharey=True)
    cmap = mpl.colormaps[SIGNED].with_extremes(bad="#D8D8D8")
    limit = float(np.abs(bias).max())
    for column, (data, name) in enumerate(zip(bias, names, strict=True)):
        for axes, shown in zip(
            panels[:, column], (data, np.where(mask, data, np.nan)), strict=True
        ):
            image = axes.imshow(shown, cmap=cmap, vmin=-limit, vmax=limit, aspect="equal")
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0)
        panels[0, column].set_title(f"slope {name}")
        panels[1, column].set_xlabel("key $j$")
    panels[0, 0].set_ylabel("symmetric: query $i$")
    panels[1, 0].set_ylabel("causal: query $i$")
    bar = figure.colorbar(image, ax=panels, label="bias", shrink=0.7, pad=0.02)
    bar.ax.set_ylim(-limit, 0)
    return figure


@in_style
def alibi_row_constants(distance: np.ndarray, key: np.ndarray, weights: np.ndarray) -> Figure:
    """Draw two causal biases (L, L), nan above the diagonal, and the weights that both give."""
    figure, panels = plt.subplots(1, 3, figsize=(WIDTH, 2.6))
    limit = float(np.nanmax(np.abs(key)))
    _cells(panels[0], distance, limit, "{:.1f}")
    _cells(panels[1], key, limit, "{:.1f}")
    shown = np.where(np.isnan(key), np.nan, weights)
    _cells(panels[2], shown, 1.0, "{:.2f}", signed=False)
    titles = ("penalty $-m\\,(i-j)$", "only the key, $m\\,j$", "softmax of either")
    for axes, title in zip(panels, titles, strict=True):
        axes.set(title=title, xlabel="key $j$")
    panels[0].set_ylabel("query $i$")
    return figure


@in_style
def alibi_rounded_rows(exact: np.ndarray, rounded: dict[str, np.ndarray]) -> Figure:
    """Draw the weights (S,) of the last keys, exact as a line and rounded as bars."""
    figure, panels = plt.subplots(1, len(rounded), figsize=(WIDTH, 2.3), sharey=True)
    back = np.arange(len(exact))[::-1]
    for axes, (name, weights) in zip(panels, rounded.items(), strict=True):
        axes.bar(-back, weights, color=COLOURS["alibi"], width=0.8, alpha=0.55, label="bfloat16")
        axes.plot(-back, exact, "o-", color="black", ms=3, lw=1, label="exact")
        axes.set_xticks(-back[1::2], [str(b) for b in back[1::2]])
        axes.set(title=f"bias stored as ${name}$", xlabel="distance $i - j$")
    panels[0].set_ylabel("weight")
    panels[0].legend(loc="upper left")
    return figure


@in_style
def alibi_reach_of_slopes(
    distance: np.ndarray, slopes: np.ndarray, lengths: Sequence[int]
) -> Figure:
    """Draw the share of weight within each distance (N,), equal scores, for each slope (H,)."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.8))
    shades = mpl.colormaps["magma"](np.linspace(0.15, 0.8, len(slopes)))
    for h, (m, colour) in enumerate(zip(slopes, shades, strict=True), start=1):
        axes.plot(distance + 1, 1 - np.exp(-m * (distance + 1)), color=colour)
        half = np.log(2) / m
        text = f"1/{2**h}"
        axes.text(half, 0.5, text, rotation=62, ha="right", va="bottom", fontsize=8, color=colour)
    for n in lengths:
        axes.axvline(n, color=COLOURS["none"], lw=1, ls="--")
        axes.text(n, 0.02, f" {n}", color=COLOURS["none"], ha="left", va="bottom", fontsize=8)
    axes.axhline(0.99, color=COLOURS["none"], lw=0.8, ls=":")
    axes.text(1.02, 0.985, "99 %", color=COLOURS["none"], va="top", fontsize=8)
    axes.set_xscale("log", base=2)
    axes.set_xticks([2**n for n in range(0, 13, 2)], [str(2**n) for n in range(0, 13, 2)])
    axes.set(xlabel="nearest keys, $n$", ylabel="share of the weight", ylim=(0, 1.03))
    axes.set_xlim(1, 4096)
    return figure


@in_style
def alibi_loud_key(
    slopes: np.ndarray,
    gaps: dict[int, Callable[[float, np.ndarray], np.ndarray]],
    marks: np.ndarray,
) -> Figure:
    """Draw how far a key that is `gap` above all others keeps half the weight, over slopes (N,)."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.9))
    for n, (gap, reach) in enumerate(sorted(gaps.items(), reverse=True)):
        colour = SERIES[n]
        whole, at_marks = reach(gap, slopes), reach(gap, marks)
        axes.plot(slopes[whole > 0.8], whole[whole > 0.8], color=colour, label=f"$g = {gap}$")
        shown = at_marks > 0.8
        axes.plot(marks[shown], at_marks[shown], "o", color=colour, ms=4)
        top = int(whole.argmax())
        axes.annotate(
            f"{whole[top]:.0f}",
            (slopes[top], whole[top]),
            (0, 4),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=colour,
        )
    axes.set(xscale="log", yscale="log", xlabel="slope $m$ (dots: the eight slopes of 8 heads)")
    axes.set(ylabel="largest distance with\nhalf of the weight", ylim=(0.8, 3000))
    axes.legend()
    return figure


@in_style
def alibi_behind_wall(
    lengths: Sequence[int],
    whole: dict[str, Sequence[float]],
    walled: dict[str, Sequence[float]],
    trained: int,
) -> Figure:
    """Draw losses over the length of the text, open and behind a wall, one panel an encoding."""
    figure, panels = plt.subplots(1, len(whole), figsize=(WIDTH, 2.5), sharey=True)
    for axes, name in zip(panels, whole, strict=True):
        colour = COLOURS[_ENCODING[name]]
        axes.plot(lengths, whole[name], "o-", color=colour, label="all keys")
        axes.plot(lengths, walled[name], "s--", color=colour, mfc="white", label="nearest 16 keys")
        axes.axvline(trained, color="#BBBBBB", lw=1, zorder=0)
        axes.set_xscale("log", base=2)
        axes.set_xticks(lengths, [str(n) for n in lengths])
        axes.minorticks_off()
        axes.set(title=name, xlabel="letters given")
    panels[0].legend(fontsize=8, loc="upper left")  # the marks are the same in all panels
    panels[0].set_ylabel("loss in nats")
    return figure
