"""Figure of the census: who used what, when."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath

from pe_numpy.census import Row
from pe_numpy.plots.style import COLOURS, WIDTH, in_style

PLACES = {1: "token vector", 3: "score", 2: "rotation", 0: ""}
INK = {place: COLOURS[name] for place, name in enumerate(("none", "sinusoidal", "rope", "t5"))}
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
    "a part turns": ("partial_rope", "proportional_rope", "mla"),
    "stretched": ("linear", "yarn", "longrope", "llama3"),
    "two bases,\nNoPE layers": ("local_global", "nope_layers"),
    "row, column,\ntime": ("axial", "mixed", "mrope"),
    "xPos, PoPE": ("xpos", "pope"),
    "no position": ("none",),
}
SMALL, LANE = 8, 0.14  # points, inches
FIRST, LAST, EDGE = 2017, 2027, 2027.4  # years; labels may pass the last by a little


def _lanes(rows: Sequence[Row], inch: float) -> list[tuple[Row, int, bool]]:
    """Give each row a lane so that no label meets another, and whether it stands on the left."""
    free: list[list[tuple[float, float]]] = []
    placed = []
    for row in rows:
        text = TextPath((0, 0), row.model, size=SMALL).get_extents().width / 72 + 0.09
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
    """Stack the shares of the places, a bar a year."""
    years = np.arange(FIRST, LAST)
    models = [row for row in rows if row.kind == "model"]
    counts = {p: np.array([sum(r.year == y and r.place == p for r in models) for y in years])
              for p in PLACES}  # fmt: skip
    n = sum(counts.values())
    bottom = np.zeros(len(years))
    for place, count in counts.items():
        share = 100 * count / np.maximum(n, 1)
        ax.bar(years + 0.5, share, 0.8, bottom, color=INK[place])
        for year, low, part, number in zip(years, bottom, share, count, strict=True):
            if number:
                ax.text(year + 0.5, low + part / 2, str(number), color="white", fontsize=SMALL,
                        ha="center", va="center")  # fmt: skip
        bottom += share
    ax.set(ylim=(0, 101), yticks=(0, 50, 100), ylabel="% of models")


@in_style
def census_timeline(rows: Sequence[Row]) -> Figure:
    """Draw each model over time on the line of its family; below, the share of each place a year.

    Full dots are released models, open ones papers that introduced a scheme.
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
        2, figsize=(WIDTH, LANE * total + 1.9), height_ratios=(LANE * total, 1.4), sharex=True
    )
    y, ticks = 0.0, []
    band: dict[int, list[float]] = {}  # the edges of each place's lines
    for title, placed in lines.items():
        place = placed[0][0].place
        band.setdefault(place, []).extend([y, y + heights[title]])
        ticks.append(y + heights[title] / 2)
        for row, lane, left in placed:
            at = y + 0.75 + lane
            face = INK[place] if row.kind == "model" else "white"
            ax.plot(row.month, at, "o", ms=4.5, color=INK[place], mfc=face, zorder=3)
            ax.text(row.month + (-0.07 if left else 0.07) / inch, at, row.model, fontsize=SMALL,
                    ha="right" if left else "left", va="center_baseline")  # fmt: skip
        y += heights[title]
        ax.axhline(y, color="white", lw=1.5, zorder=1)
    for place, edges in band.items():
        ax.axhspan(min(edges), max(edges), color=INK[place], alpha=0.1, lw=0, zorder=0)
        ax.text(FIRST + 0.1, max(edges) - 0.75, PLACES[place], color=INK[place], weight="bold",
                va="center_baseline")  # fmt: skip
    for year in range(FIRST, LAST):
        ax.axvline(year, color="white", lw=1, zorder=1)
        ax.text(year + 0.5, -0.4, str(year), ha="center")
    for label, face in {"released model": "black", "paper that brought a scheme": "white"}.items():
        ax.plot([], [], "o", ms=4.5, color="black", mfc=face, label=label)
    ax.legend(fontsize=SMALL, loc="upper right", handletextpad=0.1, borderaxespad=0.2)
    ax.set_yticks(ticks, list(lines), fontsize=SMALL)
    ax.set(ylim=(y, 0), xlim=(FIRST, EDGE))
    ax.spines[:].set_visible(False)
    _shares(below, rows)
    below.set_xticks(np.arange(FIRST, LAST) + 0.5, [str(n) for n in range(FIRST, LAST)])
    for panel in (ax, below):
        panel.tick_params(length=0)
    return fig
