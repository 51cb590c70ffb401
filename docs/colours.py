"""The colours of figures in the page: those of the theme, in light and in dark.

The book's colours become those of `_static/book.css` (`--fig-...`), which has them for light and
dark. What shows numbers by a colour map keeps its colours: an image, and axes in which lines or
marks are of a map. These are plates, and what lies on them stays as it was drawn. Words that can't
be read are mixed with ink.
"""

from __future__ import annotations

import base64
import functools
import io
import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from svg import LINK, NUMBER, SVG, Box, Drawing, around, is_axes, number, path_box

from pe_numpy.book.plots.style import COLOURS, READS

STYLES = Path(__file__).parent / "_static" / "book.css"
ENOUGH = 4.5  # to 1, as WCAG has it: letters to their ground
Colour = tuple[int, ...]
# The book's colours by their names in the style sheet; below, the rest of `SERIES`, and others.
NAMES = {c.lower(): name.replace("_", "-") for name, c in {**COLOURS, **READS}.items()}
NAMES |= {"#ddcc77": "yellow", "#88ccee": "cyan", "#aa4499": "purple", "#999933": "olive"}
NAMES |= {"#44aa99": "teal", "#8a7a1e": "yellow", "#cc3311": "t5", "#5a8f29": "light-green"}
# Pale ones: how much of which colour they are.
TINTS = {
    "#bfe0c6": ("rope", 26),
    "#f0d5d8": ("t5", 28),
    "#9dc3e6": ("cyan", 93),
    "#e9e3c5": ("olive", 26),
    "#ebc3c9": ("t5", 39),
    "#9fc9ae": ("rope", 40),
    "#f3cdd2": ("t5", 31),
    "#cfc9ee": ("sinusoidal", 21),
    "#c5e3cc": ("rope", 23),
    "#cfe5d6": ("rope", 20),
    "#eef3ee": ("rope", 8),
    "#fbf3d0": ("yellow", 30),
    "#f6e3e6": ("t5", 18),
    "#dcebf7": ("cyan", 32),
    "#ebc7cc": ("t5", 37),
    "#b9b3dc": ("sinusoidal", 33),
}


@functools.cache
def theme() -> list[dict[str, str]]:
    """The colours of figures by their names, in light and in dark."""
    blocks = re.findall(r"--fig-ground[^}]*", STYLES.read_text(encoding="utf-8"))
    return [dict(re.findall(r"--fig-([\w-]+): (#\w{6})", block)) for block in blocks]


def rgb(colour: str) -> Colour:
    """A colour as three numbers."""
    return tuple(bytes.fromhex(colour[1:]))


def mixed(one: str, share: float, other: str) -> str:
    """Two colours of the theme, mixed, as a style sheet has it."""
    if share in (0, 100):
        return f"var(--fig-{one if share else other})"
    return f"color-mix(in srgb,var(--fig-{one}) {number(share, 0)}%,var(--fig-{other}))"


@functools.cache
def themed(colour: str) -> str:
    """A colour as the theme has it; one of a colour map stays."""
    if colour in NAMES:
        return mixed(NAMES[colour], 100, "ground")
    if colour in TINTS:
        return mixed(*TINTS[colour], "ground")
    red, *others = rgb(colour)
    return mixed("ink", 100 - red / 2.55, "ground") if others == [red, red] else colour


@functools.cache
def seen(said: str) -> list[Colour]:
    """What a browser shows in light and in dark for what `themed` says."""
    if said[0] == "#":
        return [rgb(said)] * 2
    names, share = re.findall(r"--fig-([\w-]+)", said), re.search(r" ([\d.]+)%", said)
    part = float(share[1]) / 100 if share else 1.0
    return [blend(rgb(own[names[0]]), part, rgb(own[names[-1]])) for own in theme()]


def blend(one: Colour, share: float, other: Colour) -> Colour:
    """A colour through which another is seen."""
    return tuple(round(a * share + b * (1 - share)) for a, b in zip(one, other, strict=True))


def contrast(one: Colour, other: Colour) -> float:
    """The ratio of two colours' luminances."""
    lights = []
    for colour in (one, other):
        parts = [c / 255 for c in colour]
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        lights.append(0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05)
    return max(lights) / min(lights)


def legible(colour: str, grounds: list[Colour]) -> str:
    """A colour for words on a ground, in light and in dark: with ink, as far as it must be."""
    hue = NAMES.get(colour, "ink")
    every = [
        themed(colour),
        colour,
        *(mixed(hue, n, "ink") for n in range(90, 0, -10) if hue != "ink"),
    ]
    every += ["var(--fig-ink)", "var(--fig-ground)", "#000000", "#ffffff"]
    for said in every:
        pairs = zip(seen(said), grounds, strict=True)
        if all(contrast(one, ground) >= ENOUGH for one, ground in pairs):
            return said
    raise ValueError(f"drawings.legible: no colour can be read on {grounds}")


def leaves(parent: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    """What is drawn, from the back to the front: paths, marks, images, and words as a whole."""
    for child in parent:
        kind = child.tag.removeprefix(SVG)
        if kind in ("path", "use", "image"):
            yield kind, child
        elif is_words(parent.get("id", "")) and child.get("transform"):
            yield "words", child
        elif kind == "g":
            yield from leaves(child)


def is_words(name: str) -> bool:
    """Whether a part of a figure is a text; it may have a box around it."""
    return re.match(r"text_\d", name) is not None


def is_full(path: str) -> bool:
    """Whether a path fills most of the box around it, as a cell does, and a curve does not."""
    n = [float(x) for x in NUMBER.findall(path)]
    points, box = list(zip(n[::2], n[1::2], strict=True)), path_box(path)
    ring = itertools.pairwise([*points, points[0]])
    area = abs(sum(a[0] * b[1] - a[1] * b[0] for a, b in ring)) / 2
    return box is not None and area > 0.7 * (box[2] - box[0]) * (box[3] - box[1])


def inside(box: Box, other: Box) -> bool:
    """Whether a box is in another, or all but."""
    return all(a > b - 1.5 for a, b in zip(box[:2], other[:2], strict=True)) and all(
        a < b + 1.5 for a, b in zip(box[2:], other[2:], strict=True)
    )


@functools.cache
def bitmap(link: str) -> Image.Image:
    """An image that is in a drawing."""
    return Image.open(io.BytesIO(base64.b64decode(link.partition(",")[2]))).convert("RGBA")


def as_cells(image: ET.Element, box: Box) -> list[ET.Element]:
    """An image in some of the book's colours as cells that the theme can colour; else nothing."""
    picture = bitmap(image.get(LINK, ""))
    colours = {rgba: "#" + bytes(rgba[:3]).hex() for _, rgba in picture.getcolors(8) or []}
    if not colours or any(c[3] < 255 or themed(name)[0] == "#" for c, name in colours.items()):
        return []
    x, y = (box[2] - box[0]) / picture.width, (box[3] - box[1]) / picture.height
    cells, top = [], box[1]
    for row, high in runs(np.asarray(picture)[::-1].tolist()):
        left = box[0]
        for colour, wide in runs(row):
            right, low = left + wide * x, top + high * y
            path = f"M {left} {top} L {right} {top} L {right} {low} L {left} {low} z"
            style = f"fill: {colours[tuple(colour)]}; shape-rendering: crispEdges"
            cells.append(ET.Element(f"{SVG}path", {"d": path, "style": style}))
            left = right
        top = low
    return cells if len(cells) < 400 else []


def runs(things: list[Any]) -> list[tuple[Any, int]]:
    """What stands in a line, and how often one after the other."""
    return [(thing, len(list(same))) for thing, same in itertools.groupby(things)]


def repaint(drawing: Drawing) -> list[tuple[str, list[Colour]]]:
    """Give a drawing the theme's colours; return those of its words, and of what is below them."""
    for parent in list(drawing.root.iter(f"{SVG}g")):
        for image in parent.findall(f"{SVG}image"):
            if cells := as_cells(image, around(drawing.boxes(image))):
                at = list(parent).index(image)
                parent[at : at + 1] = cells
    for path in drawing.root.iter(f"{SVG}path"):
        if path.get("id") and path.get("style"):  # a mark: each of its places has its colours
            path.set("style", re.sub(r"(fill|stroke): ?#\w+;? ?", "", path.get("style", "")))
    for pattern in drawing.root.iter(f"{SVG}pattern"):
        for path in pattern:
            path.set("style", exchanged(path.get("style", "")))
    maps = {id(ground) for ground in grounds_of_maps(drawing)}
    plates: list[Box] = []
    grounds: list[tuple[Box, ET.Element | None, list[Colour]]] = []
    found = []

    def below(box: Box) -> list[Colour]:
        """The colours under the middle of a box, in light and in dark."""
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        for at, image, colours in reversed(grounds):
            if at[0] < x < at[2] and at[1] < y < at[3]:
                shown = colours if image is None else pixel(image, (x, y), at)
                if shown:
                    return shown
        return seen("var(--fig-ground)")

    for kind, element in leaves(drawing.root):
        style = element.get("style", "")
        boxes = drawing.boxes(element)
        if not boxes:  # a line, or nothing
            element.set("style", exchanged(style))
            continue
        box = around(boxes)
        fill = re.search(r"(?<!-)fill: ?(#\w+)", style if "fill:" in style else "fill: #000000")
        if kind == "words":
            under = below(box)
            colour = legible(fill[1] if fill else "#000000", under)
            element.set("style", f"fill: {colour}")
            found.append((colour, under))
            continue
        if kind == "image" or id(element) in maps:
            plates.append(box)
        elif not any(inside(box, plate) for plate in plates):
            element.set("style", exchanged(style))
        path = element
        if kind == "use":
            path = drawing.named[element.get(LINK, "")[1:]]
        if kind == "image":
            grounds.append((box, element, []))
        elif fill and is_full(path.get("d", "")):
            new = re.search(
                r"(?<!-)fill: ?([^;]+)", element.get("style", "") + "; fill: var(--fig-ink)"
            )
            share = re.search(r"(?<!stroke-)opacity: ?([\d.]+)", style)
            assert new is not None
            part = float(share[1]) if share else 1.0
            both = zip(seen(new[1]), below(box), strict=True)
            grounds.append((box, None, [blend(one, part, other) for one, other in both]))
    return found


def exchanged(style: str) -> str:
    """A style in the theme's colours."""
    return re.sub(r"#[\da-f]{6}\b", lambda m: themed(m[0]), style)


def pixel(image: ET.Element, at: tuple[float, float], box: Box) -> list[Colour]:
    """The colour of an image at a place of the figure; it stands on its head, as all of them do."""
    picture = bitmap(image.get(LINK, ""))
    x = int((at[0] - box[0]) / (box[2] - box[0]) * picture.width)
    y = int((box[3] - at[1]) / (box[3] - box[1]) * picture.height)
    red, green, blue, opaque = picture.getpixel((x, min(y, picture.height - 1)))
    return [(red, green, blue)] * 2 if opaque else []


def grounds_of_maps(drawing: Drawing) -> Iterator[ET.Element]:
    """The white grounds of axes in which lines or marks have colours of a map."""
    for axes in filter(is_axes, drawing.root.iter(f"{SVG}g")):
        own = [e for _, e in leaves(axes)]
        colours = {c for e in own for c in re.findall(r": ?(#[\da-f]{6})", e.get("style", ""))}
        if any(themed(colour)[0] == "#" for colour in colours):
            yield next(e for e in own if "fill: #ffffff" in e.get("style", ""))
