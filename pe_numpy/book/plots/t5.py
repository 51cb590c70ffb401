"""Figures of chapter 33: T5 and TUPE."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pe_numpy.book.plots.style import COLOURS, SIGNED, WIDTH, in_style, look

_GREY = "#777777"


@in_style
def bucket_staircases(
    span: np.ndarray,
    curves: dict[str, tuple[np.ndarray, np.ndarray, int]],
    line: np.ndarray,
    max_distance: int,
) -> Figure:
    """Draw the buckets of each setting over distance, linear and logarithmic.

    `curves` maps a name to the buckets of `span`, those of 1, 2, 3, ... and the number h of buckets
    for one direction. `line` holds distances for the straight line of the logarithmic half.
    """
    figure, axes = plt.subplots(2, 2, figsize=(WIDTH, 4.8), sharey="row", width_ratios=(1.3, 1))
    figure.set_layout_engine("constrained", hspace=0.08)
    for (name, (signed, past, h)), (left, right) in zip(curves.items(), axes, strict=True):
        for side, label in ((span >= 0, "past, itself"), (span < 0, "future")):
            colour = COLOURS["t5"] if side[-1] else _GREY
            left.step(span[side], signed[side], where="mid", color=colour, label=label)
        left.set(title=f"{name}, both sides", ylabel="bucket", ylim=(-1, 33))
        n, e = np.arange(1, len(past) + 1), h // 2
        right.step(n, past, where="post", color=COLOURS["t5"])
        far = line[line >= e]
        growth = np.log(far / e) / np.log(max_distance / e)
        right.plot(far, e + growth * (h - e), "--", color="black", lw=1, label="before rounding")
        right.axvline(max_distance, color=_GREY, lw=1, ls=":")
        right.text(max_distance * 1.04, 1, f"{max_distance}", color=_GREY)
        right.plot(max_distance, h, "o", color="black", ms=4)
        right.set(title=f"{name}, past only, logarithmic axis", xscale="log")
        right.set_xticks([1, 2, 4, 8, 16, 32, 64, 128], ["1", "2", "4", "8", "16", "32", "64", ""])
        right.minorticks_off()
    axes[0, 0].legend(loc="lower right")
    axes[1, 1].legend(loc="upper left")
    for ax in axes[1]:
        ax.set_xlabel("distance $i-j$")
    return figure


@in_style
def bucket_matrices(matrices: dict[str, np.ndarray], hidden: np.ndarray) -> Figure:
    """Draw matrices of bucket numbers (L, S), numbers in the cells.

    In a matrix whose name begins with "decoder" the `hidden` cells are greyed out.
    """
    figure, axes = plt.subplots(1, len(matrices), figsize=(WIDTH, 2.2))
    top = max(int(m.max()) for m in matrices.values())
    for ax, (name, data) in zip(axes, matrices.items(), strict=True):
        masked = hidden & name.startswith("decoder")
        shown = np.ma.masked_array(data, masked)
        ax.imshow(shown, cmap=mpl.colormaps["viridis"], vmin=0, vmax=top)
        for i, j in np.ndindex(data.shape):
            ink = "#BBBBBB" if masked[i, j] else "black" if data[i, j] > 0.6 * top else "white"
            ax.text(j, i, f"{data[i, j]}", ha="center", va="center", color=ink, fontsize=7)
        ax.set_title(name.replace(", ", ",\n"), fontsize=8)
        ax.set_xlabel("key $j$")
        ax.set(xticks=range(data.shape[1]), yticks=range(data.shape[0]))
        ax.tick_params(length=0, labelsize=7)
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel("query $i$")
    return figure


@in_style
def wishes_and_fits(
    n: np.ndarray, wishes: dict[str, np.ndarray], fits: dict[str, np.ndarray]
) -> Figure:
    """Draw each wished bias over the distance n, and what the buckets make of it."""
    figure, axes = plt.subplots(2, 2, figsize=(WIDTH, 4.2))
    figure.set_layout_engine("constrained", hspace=0.08)
    for ax, (name, wish) in zip(axes.flat, wishes.items(), strict=True):
        ax.step(n, wish, where="mid", color=_GREY, lw=3.5, alpha=0.45, label="wished")
        ax.step(n, fits[name], where="mid", color=COLOURS["t5"], label="T5's buckets")
        ax.set_title(name)
    for ax, limits in zip(axes[1], ((0, 12), (30, 56)), strict=True):
        ax.set(xlim=limits, ylim=(-4.4, 0.4), xlabel="distance $i-j$")
    for ax in axes[:, 0]:
        ax.set_ylabel("bias")
    axes[0, 0].legend()
    return figure


@in_style
def pairs_per_number(counts: dict[int, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Draw how many pairs teach each number, for texts of several lengths.

    `counts` maps a length to the pairs of each distance and the pairs of each bucket.
    """
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.6), sharey=True, width_ratios=(1.2, 1))
    inks = ("#EBC3C9", COLOURS["t5"])
    for (length, (by_distance, by_bucket)), ink in zip(counts.items(), inks, strict=True):
        label = f"{length} tokens"
        axes[0].fill_between(
            np.arange(len(by_distance)), 0.5, by_distance, color=ink, step="mid", label=label
        )
        axes[1].bar(np.arange(len(by_bucket)), by_bucket, color=ink, width=0.8, label=label)
    short = min(counts)
    unseen = np.flatnonzero(counts[short][1] == 0)
    label = f"no pair in {short} tokens"
    axes[1].plot(unseen, [0.8] * len(unseen), "x", color="black", ms=5, label=label)
    axes[1].legend(loc="upper left")
    axes[0].set(title="one number for each distance", xlabel="distance $i-j$", yscale="log")
    axes[0].set(ylabel="pairs in one text", ylim=(0.5, 3e5))
    axes[1].set(title="32 buckets", xlabel="bucket")
    return figure


@in_style
def far_share(lengths: np.ndarray, share: dict[str, np.ndarray]) -> Figure:
    """Draw the share of the weight that far keys get against the length of the text."""
    figure, ax = plt.subplots(figsize=(WIDTH, 2.4))
    names = {"t5": "T5, the table nearest to the line", "alibi": "ALiBi, the line $-n/32$"}
    for key, values in share.items():
        ax.plot(lengths, values, label=names[key], **look(key, markevery=0.1, ms=5))
    ax.set(xscale="log", ylim=(-0.03, 1.03), xlabel="tokens in the text $L$")
    ax.set_ylabel("weight on keys at\n113 and beyond")
    ax.set_xticks([128, 512, 2048, 8192, 32768, 131072])
    ax.set_xticklabels(["128", "512", "2,048", "8,192", "32,768", "131,072"])
    ax.minorticks_off()
    ax.legend()
    return figure


@in_style
def tupe_parts(parts: dict[str, np.ndarray]) -> Figure:
    """Draw the parts of TUPE's scores (L, S) side by side with one colour scale."""
    figure, axes = plt.subplots(1, len(parts), figsize=(WIDTH, 2.8), sharey=True)
    limit = max(float(np.abs(part).max()) for part in parts.values())
    for ax, (name, part) in zip(axes, parts.items(), strict=True):
        image = ax.imshow(part, cmap=SIGNED, vmin=-limit, vmax=limit)
        ax.set(xlabel="key $j$", xticks=(0, len(part) - 1), yticks=(0, len(part) - 1))
        ax.set_title(name, fontsize=8)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
    axes[0].set_ylabel("query $i$", labelpad=-6)
    figure.colorbar(image, ax=axes, location="bottom", shrink=0.4, aspect=40, label="score")
    return figure
