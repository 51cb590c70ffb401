"""Scaling lab: what each scheme does to RoPE's pairs, and the angles that training never showed."""

from __future__ import annotations

import numpy as np

from pe_numpy.book.explore.figure import Bet, Control, Explorable, State, number, path, text
from pe_numpy.rotary.rope import rope_frequencies
from pe_numpy.rotary.scaling import (
    linear_scaling,
    llama3_scaling,
    ntk_scaling,
    yarn_attention_factor,
    yarn_scaling,
)

SCHEMES = ("direct", "linear", "NTK-aware", "YaRN", "Llama 3")
LEFT, WIDE, TOP, HIGH, ROW = 92, 256, 50, 40, 54  # of the bars; from row to row


def scaling_lab(trained: float, factor: float, d: int, base: float) -> State:
    """What each scheme does to each pair, and which part of its circle a longer text shows anew."""
    plain = rope_frequencies(d, base)  # (d/2,)
    scaled = (
        plain,
        linear_scaling(plain, factor),
        ntk_scaling(d, factor, base),
        yarn_scaling(d, factor, trained, base)[0],
        llama3_scaling(plain, factor, trained),
    )
    long = factor * trained
    seen = np.minimum(trained * plain / (2 * np.pi), 1)  # part of the circle, in training
    state, shares = {"attention": f"{yarn_attention_factor(factor):.4f}"}, []
    for n, theta in enumerate(scaled):
        used = np.minimum(long * theta / (2 * np.pi), 1)  # part of the circle, in the long text
        new = np.maximum(used - seen, 0).round(9)
        shares.append(new.sum() / used.sum())
        slowed = np.log(plain / theta) / np.log(factor) if factor != 1 else np.zeros(d // 2)
        bottom = TOP + ROW * n + HIGH
        state |= {
            f"count{n}": f"in {(new > 0).sum()} of {d // 2} pairs",
            f"share{n}": f"{shares[-1]:.1%} new" if shares[-1] else "0% new",
            f"waves{n}": f"{2 * np.pi / theta[0]:,.1f} to {2 * np.pi / theta[-1]:,.0f}",
            f"old{n}@d": _steps(bottom - HIGH * (used - new)) + f"V{bottom}H{LEFT}z",
            f"new{n}@d": _between(bottom - HIGH * (used - new), bottom - HIGH * used, new > 0),
            f"speed{n}@d": _steps(bottom - HIGH * (1 - slowed)),
        }
    names = [f"{name} {part:.1%}" for name, part in zip(SCHEMES, shares, strict=True) if part]
    meets = ", ".join(names) or "no scheme has any"
    state["note"] = f"New among the angles of a text of {long:,.0f} tokens: {meets}."
    return state


def _steps(heights: np.ndarray) -> str:
    """A line over all pairs, each as wide as the others."""
    edges = (LEFT + WIDE * (np.arange(len(heights)) + 1) / len(heights)).round(1)
    y = heights.round(1)
    ends = np.append(np.diff(y) != 0, True)  # where a height ends
    parts = (f"V{b:g}H{a:g}" for a, b in zip(edges[ends], y[ends], strict=True))
    return f"M{LEFT} {y[0]:g}" + "".join(parts)


def _between(low: np.ndarray, high: np.ndarray, where: np.ndarray) -> str:
    """What lies between two heights, a bar for each pair."""
    wide = WIDE / len(low)
    bars = (
        f"M{LEFT + wide * i:.4g} {low[i]:.1f}h{wide:.4g}V{high[i]:.1f}h{-wide:.4g}z"
        for i in np.flatnonzero(where)
    )
    return "".join(bars) or "M0 0"


def _picture() -> str:
    parts = [text(0, 14, "part of each circle: seen in training grey, new orange")]
    parts.append(text(0, 34, "speed blue: kept at the top, divided by s at the bottom"))
    for n, name in enumerate(SCHEMES):
        bottom = TOP + ROW * n + HIGH
        parts += [path("", f"old{n}", "old"), path("", f"new{n}", "new")]
        parts += [path("", f"speed{n}", "one curve"), path(f"M{LEFT} {bottom}h{WIDE}")]
        parts.append(text(0, bottom - HIGH / 2 + 5, name))
        parts.append(text(LEFT + WIDE + 8, bottom - 24, key=f"share{n}"))
        parts.append(text(LEFT + WIDE + 8, bottom - 5, key=f"count{n}", look="small"))
    parts.append(text(LEFT + WIDE / 2, TOP + 5 * ROW + 4, "fast pairs to slow pairs", "", "middle"))
    return "".join(parts)


FIGURE = Explorable(
    title="Scaling lab: what each scheme slows down, and which angles are new",
    alt="A row for each scheme: how much of its circle each pair of components uses in the longer "
    "text, seen in training or new, and how far the scheme slows the pair down.",
    controls=(
        Control("factor", "factor s", "4", number, ["2", "4", "8", "16", "32"]),
        Control("trained", "trained length", "2048", number, ["2048", "8192"]),
        Control("base", "base b", "10000", number, kind="field"),
        Control("d", "width of the head", "128", kind="field"),
    ),
    compute=scaling_lab,
    picture=_picture(),
    height=TOP + 5 * ROW + 10,
    values=(
        *((f"{name}: wavelengths", f"waves{n}") for n, name in enumerate(SCHEMES)),
        ("YaRN: queries and keys times", "attention"),
    ),
    bet=Bet(
        question="At factor 32 NTK-aware scaling takes a far larger base. What happens to its "
        "share of new angles?",
        answers={"It grows": "more", "It falls": "less", "It stays": "same"},
        move="Set the factor to 32",
        change={"factor": "32"},
        subject="The share of NTK-aware scaling",
        measured=("share2",),
    ),
)
