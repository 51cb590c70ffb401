"""Figure of the census: who used what, when."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath

from pe_numpy.book.census import Row
from pe_numpy.book.plots.style import HUES, WIDTH, in_style

PLACES = {1: "token vector", 3: "score", 2: "rotation", 0: ""}
# The lines of the timeline: encodings by family, from top to bottom.
LINES = {
    "sinusoids": ("sinusoidal", "sinusoidal_2d"),
    "tables": ("learned",),
    "vectors of\ndistances": (
        *("shaw", "nezha", "relative_key_query", "projected", "transformer_xl", "deberta"),
    ),
    "T5, TUPE": ("t5", "tupe"),
    "offsets in\nimages": ("offset_table", "offset_mlp", "offset_vectors"),
    "functions of\ndistance": ("alibi", "kerple", "sandwich", "fire"),
    "by the text": ("forgetting", "cope"),
    "other distances\nfor RoPE": ("self_extend", "dual_chunk", "streaming"),
    "RoPE": ("rope",),
    "partial RoPE": ("partial_rope", "proportional_rope", "mla"),
    "stretched": ("linear", "yarn", "longrope", "llama3"),
    "two bases,\nNoPE layers": ("local_global", "nope_layers"),
    "row, column,\ntime": ("axial", "mixed", "mrope"),
    "xPos, PoPE": ("xpos", "pope"),
    "no position": ("none",),
}
COMMON = ("rope", "partial_rope", "mla")  # families with these go without a name
SMALL, LANE = 8, 0.14  # points, inches
# What a row is, and how its dot looks: marker, and whether it is full.
DOTS = {
    "family": ("o", True, "family that counts"),
    "model": ("s", False, "other model"),
    "scheme": ("o", False, "paper that brought a scheme"),
}
FIRST, LAST, EDGE = 2017, 2027, 2027.4  # years; labels may pass the last by a little


def _name(row: Row) -> str:
    """What stands beside a dot: nothing at the commonest rotations, of which there are dozens."""
    return "" if row.kind == "family" and row.encoding in COMMON else row.model


def _lanes(rows: Sequence[Row], inch: float) -> list[tuple[Row, int, bool]]:
    """Give each row a lane so that no label meets another, and whether it stands on the left."""
    free: list[list[tuple[float, float]]] = []
    placed = []
    for row in rows:
        name = _name(row)
        text = TextPath((0, 0), name, size=SMALL).get_extents().width / 72 + 0.09 if name else 0.01
        left = row.month + (text + 0.05) / inch > EDGE
        begin, end = row.month - 0.06 / inch, row.month + (text + 0.05) / inch
        if left:
            begin, end = row.month - (text + 0.05) / inch, row.month + 0.06 / inch
        lane = 0
        while lane < len(free) and any(begin < b and a < end for a, b in free[lane]):
            lane += 1
        if lane == len(free):
            free.append([])
        free[lane].append((begin, end))
        placed.append((row, lane, left))
    return placed


def _shares(ax: Axes, rows: Sequence[Row]) -> None:
    """Stack the shares of the places among the families, one bar per year."""
    years = np.arange(FIRST, LAST)
    own = [row for row in rows if row.kind == "family"]
    counts = {p: np.array([sum(r.year == y and r.place == p for r in own) for y in years])
              for p in PLACES}  # fmt: skip
    n = np.sum(list(counts.values()), axis=0)
    bottom = np.zeros(len(years))
    for place, count in counts.items():
        share = 100 * count / np.maximum(n, 1)
        ax.bar(years + 0.5, share, 0.8, bottom, color=HUES[place])
        for year, low, part, number in zip(years, bottom, share, count, strict=True):
            if number:
                ax.text(year + 0.5, low + part / 2, str(number), color="white", fontsize=SMALL,
                        ha="center", va="center")  # fmt: skip
        bottom += share
    for year, number in zip(years, n, strict=True):
        if number:
            ax.text(year + 0.5, 106, f"n = {number}", fontsize=SMALL, ha="center", va="bottom")
    ax.set(ylim=(0, 122), yticks=(0, 50, 100), ylabel="% of families")


@in_style
def census_timeline(rows: Sequence[Row]) -> Figure:
    """Draw each row over time on the line of its encoding; below, what families do, by year.

    Full dots are the families that count; squares are other models, and open dots papers that
    introduced a scheme, both chosen by hand.
    """
    across = WIDTH - 1.35  # inches
    inch = across / (EDGE - FIRST)
    lines = {
        title: _lanes([r for r in rows if r.encoding in names], inch)
        for title, names in LINES.items()
    }
    heights = {t: max(lane for _, lane, _ in p) + 1.5 for t, p in lines.items()}
    total = sum(heights.values())
    fig, (ax, below) = plt.subplots(
        2, figsize=(WIDTH, LANE * total + 2.4), height_ratios=(LANE * total, 1.9), sharex=True
    )
    y, ticks = 0.0, []
    band: dict[int, list[float]] = {}  # the edges of each place's lines
    for title, placed in lines.items():
        place = placed[0][0].place
        band.setdefault(place, []).extend([y, y + heights[title]])
        ticks.append(y + heights[title] / 2)
        for row, lane, left in placed:
            at = y + 0.75 + lane
            marker, full, _ = DOTS[row.kind]
            face = HUES[place] if full else "white"
            ax.plot(row.month, at, marker, ms=4.5 if full else 4, color=HUES[place], mfc=face,
                    zorder=3)  # fmt: skip
            ax.text(row.month + (-0.07 if left else 0.07) / inch, at, _name(row), fontsize=SMALL,
                    ha="right" if left else "left", va="center_baseline")  # fmt: skip
        y += heights[title]
        ax.axhline(y, color="white", lw=1.5, zorder=1)
    for place, edges in band.items():
        ax.axhspan(min(edges), max(edges), color=HUES[place], alpha=0.1, lw=0, zorder=0)
        ax.text(FIRST + 0.1, max(edges) - 0.75, PLACES[place], color=HUES[place], weight="bold",
                va="center_baseline")  # fmt: skip
    for year in range(FIRST, LAST):
        ax.axvline(year, color="white", lw=1, zorder=1)
        ax.text(year + 0.5, -0.4, str(year), ha="center")
    for marker, full, label in DOTS.values():
        face = "black" if full else "white"
        ax.plot([], [], marker, ms=4.5 if full else 4, color="black", mfc=face, label=label,
                linestyle="none")  # fmt: skip
    ax.legend(fontsize=SMALL, loc="upper right", handletextpad=0.1, borderaxespad=0.2)
    ax.set_yticks(ticks, list(lines), fontsize=SMALL)
    ax.set(ylim=(y, 0), xlim=(FIRST, EDGE))
    ax.spines[:].set_visible(False)
    _shares(below, rows)
    below.set_xticks(np.arange(FIRST, LAST) + 0.5, [str(n) for n in range(FIRST, LAST)])
    for panel in (ax, below):
        panel.tick_params(length=0)
    return fig
