"""Curves that a reader can move: every frame is computed beforehand, a slider picks one.

A frame is drawn in plain SVG; a few lines of JavaScript move its curves. Where scripts don't run,
the first frame stands still. The same input gives the same text, so tests can compare it.
"""

from __future__ import annotations

import hashlib
import html
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks

COLOURS = ("#332288", "#CC6677", "#117733", "#AA4499", "#88CCEE", "#999933")
WIDTH, HEIGHT = 620, 260  # of the figure, in SVG's units
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 12, 44  # margins around the curves
Curves = Mapping[str, tuple[ArrayLike, ArrayLike]]

SCRIPT = """
(() => {
  const box = document.getElementById("%(id)s");
  const frames = JSON.parse(box.querySelector("script").textContent);
  const inputs = [...box.querySelectorAll("input")];
  const show = () => {
    let n = 0;
    for (const input of inputs) {
      n = n * (Number(input.max) + 1) + Number(input.value);
      const words = JSON.parse(input.dataset.values)[input.value];
      input.nextElementSibling.textContent = words;
      input.setAttribute("aria-valuetext", words);
    }
    const [lines, note] = frames[n];
    box.querySelectorAll("polyline").forEach((line, i) => line.setAttribute("points", lines[i]));
    box.querySelector("[data-note]").textContent = note;
  };
  inputs.forEach((input) => input.addEventListener("input", show));
  show();
})();
"""


class Slider:
    """A figure with sliders, as a notebook shows it."""

    def __init__(self, markup: str, words: str) -> None:
        self._markup, self._words = markup, words

    def _repr_html_(self) -> str:
        return self._markup

    def __repr__(self) -> str:
        return self._words


def slider(
    title: str,
    controls: Mapping[str, Sequence[Any]],
    draw: Callable[..., tuple[Curves, str]],
    axes: tuple[str, str],
    limits: tuple[float, float, float, float] | None = None,
    start: Sequence[int] = (),
) -> Slider:
    """Draw curves for every setting of some controls; a slider for each of them picks one.

    Parameters
    ----------
    title : str
        What the figure shows, for those who hear it.
    controls : dictionary
        For each control its values, in order; a value is shown as `str` gives it.
    draw : function
        Takes one value of each control, by position. Returns curves, as a dictionary from a name
        to (x, y), and a line of text. The names are the same in every frame.
    axes : two words
        What runs along x and along y.
    limits : (x least, x most, y least, y most), optional
        Of the figure; those of all frames by default.
    start : sequence of int, optional
        Which value of each control is shown first; the first of each by default.

    Returns
    -------
    An object that notebooks show.

    Raises
    ------
    ValueError
        If there is no control or no value, or frames have different curves.

    Examples
    --------
    >>> x = np.arange(3)
    >>> slider("a line", {"slope": [1, 2]}, lambda m: ({"y": (x, m * x)}, f"y = {m}x"), ("x", "y"))
    a line: slope from 1 to 2 (2 frames)
    """
    if not controls or not all(len(values) for values in controls.values()):
        raise ValueError("slider: controls must hold at least one value each; got none")
    frames = [draw(*values) for values in itertools.product(*controls.values())]
    names = list(frames[0][0])
    if any(list(curves) != names for curves, _ in frames):
        raise ValueError(f"slider: all frames must have the curves {names}, in this order")
    box = _limits(frames) if limits is None else limits
    drawn: list[Any] = [
        [[_points(*curves[name], box) for name in names], note] for curves, note in frames
    ]
    first = [*start, *[0] * (len(controls) - len(start))]
    place = int(np.ravel_multi_index(first, [len(values) for values in controls.values()]))
    data = json.dumps(drawn, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    key = "slider-" + hashlib.sha256((title + data).encode()).hexdigest()[:8]
    inputs = [
        _input(f"{key}-{n}", name, values, first[n])
        for n, (name, values) in enumerate(controls.items())
    ]
    markup = "\n".join([
        f'<figure id="{key}" class="slider" style="margin:0;max-width:660px;background:#fff;'
        'color:#222;padding:8px;border-radius:6px;font:13px sans-serif">',
        f'<script type="application/json">{data}</script>',
        _picture(title, names, drawn[place][0], axes, box),
        '<p data-note aria-live="polite" style="margin:2px 0 6px">',
        f"{html.escape(drawn[place][1])}</p>",
        *inputs,
        "</figure>",
        f"<script>{SCRIPT % {'id': key}}</script>",
    ])  # fmt: skip
    ranges = ", ".join(f"{name} from {v[0]} to {v[-1]}" for name, v in controls.items())
    return Slider(markup, f"{title}: {ranges} ({len(frames)} frames)")


def _limits(frames: Sequence[tuple[Curves, str]]) -> tuple[float, float, float, float]:
    x = np.concatenate([np.ravel(c[0]) for curves, _ in frames for c in curves.values()])
    y = np.concatenate([np.ravel(c[1]) for curves, _ in frames for c in curves.values()])
    room = 0.04 * float(y.max() - y.min()) or 1.0
    return float(x.min()), float(x.max()), float(y.min()) - room, float(y.max()) + room


def _points(x: ArrayLike, y: ArrayLike, box: tuple[float, float, float, float]) -> str:
    """Coordinates of a curve in the figure, to a tenth of a unit."""
    across, up = checks.as_array(x).astype(float), checks.as_array(y).astype(float)
    across = LEFT + (across - box[0]) / (box[1] - box[0]) * (WIDTH - LEFT - RIGHT)
    down = HEIGHT - BOTTOM - (up - box[2]) / (box[3] - box[2]) * (HEIGHT - TOP - BOTTOM)
    down = np.clip(down, -HEIGHT, 2 * HEIGHT)
    return " ".join(f"{a:.4g},{b:.4g}" for a, b in zip(across, down + 0.0, strict=True))


def _input(key: str, name: str, values: Sequence[Any], first: int) -> str:
    words = html.escape(json.dumps([str(v) for v in values], ensure_ascii=False))
    return (
        f'<label for="{key}" style="display:inline-block;min-width:10em">'
        f"{html.escape(name)}</label>"
        f'<input id="{key}" type="range" min="0" max="{len(values) - 1}" value="{first}" '
        f'data-values="{words}" style="width:46%;vertical-align:middle">'
        f' <output for="{key}">{html.escape(str(values[first]))}</output><br>'
    )


def _picture(
    title: str,
    names: Sequence[str],
    lines: Sequence[str],
    axes: tuple[str, str],
    box: tuple[float, float, float, float],
) -> str:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(title)}" '
        'style="width:100%;height:auto" font-size="12" fill="#222">',
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#555"/>',
    ]
    for value in _ticks(box[0], box[1]):
        x = LEFT + (value - box[0]) / (box[1] - box[0]) * (right - LEFT)
        parts.append(f'<text x="{x:.4g}" y="{bottom + 15}" text-anchor="middle">{value:g}</text>')
    for value in _ticks(box[2], box[3]):
        y = bottom - (value - box[2]) / (box[3] - box[2]) * (bottom - TOP)
        parts.append(f'<text x="{LEFT - 5}" y="{y + 4:.4g}" text-anchor="end">{value:g}</text>')
        parts.append(f'<path d="M{LEFT} {y:.4g}H{right}" stroke="#e4e4e4"/>')
    middle = (TOP + bottom) // 2
    parts += [
        f'<text x="{(LEFT + right) // 2}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{html.escape(axes[0])}</text>",
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">'
        f"{html.escape(axes[1])}</text>",
    ]
    for n, (name, points) in enumerate(zip(names, lines, strict=True)):
        style = f'fill="none" stroke="{COLOURS[n % len(COLOURS)]}" stroke-width="2"'
        parts.append(f'<polyline points="{points}" {style}/>')
        if len(names) > 1:
            y = TOP + 12 + 18 * n
            parts.append(f'<path d="M{right - 16} {y - 4}h16" {style}/>')
            parts.append(
                f'<text x="{right - 22}" y="{y}" text-anchor="end">{html.escape(name)}</text>'
            )
    return "\n".join([*parts, "</svg>"])


def _ticks(least: float, most: float) -> list[float]:
    """Round numbers within two limits: three to seven of them."""
    step = 10.0 ** np.floor(np.log10(most - least))
    step *= next(f for f in (0.2, 0.5, 1.0, 2.0) if (most - least) / (f * step) <= 6)
    values = step * np.arange(np.ceil(least / step), np.floor(most / step) + 1)
    return [float(f"{v:.6g}") + 0.0 for v in values.tolist()]
