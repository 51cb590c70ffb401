"""The chapters' figures on the web: drawings in place of pixels, cut into panels for a phone.

A chapter shows PNGs; the web book shows the SVG of `figures/` that was drawn with each, made small:
no metadata, two decimals, no white ground, so that it lies on the page. Letters that are too pale
for it are drawn darker. In the dark, `book.css` exchanges light and dark and keeps the hues.

A figure is 512 points wide, and its letters have 9. On a phone its panels are shown one after the
other, each as large as it must be for its letters: the file has, beside the figure (outside what it
shows by itself), each panel alone, and the page shows that part of it. A panel whose axis is
labelled on its neighbour's gets a copy of these labels.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import html
import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

FIGURES = Path(__file__).parent.parent / "figures"
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
PHONE = 358  # pixels for text, on a screen of 390
LETTERS = 9  # pixels, at least
GLYPH = "scale(0.015625)"
SCALE = 1.17  # pixels a point, where there is room
NUMBER = re.compile(r"-?\d*\.?\d+(?:e-?\d+)?")
Box = tuple[float, float, float, float]
Matrix = tuple[float, float, float, float, float, float]
SAME: Matrix = (1, 0, 0, 1, 0, 0)


# ---- where things are ---------------------------------------------------------------------------


def times(a: Matrix, b: Matrix) -> Matrix:
    """First b, then a."""
    return (
        a[0] * b[0] + a[2] * b[1],
        a[1] * b[0] + a[3] * b[1],
        a[0] * b[2] + a[2] * b[3],
        a[1] * b[2] + a[3] * b[3],
        a[0] * b[4] + a[2] * b[5] + a[4],
        a[1] * b[4] + a[3] * b[5] + a[5],
    )


@functools.cache
def matrix(text: str) -> Matrix:
    """Read the transformations of an element."""
    found = SAME
    for kind, inside in re.findall(r"(\w+)\(([^)]*)\)", text):
        n = [float(x) for x in NUMBER.findall(inside)]
        if kind == "translate":
            found = times(found, (1, 0, 0, 1, n[0], n[1] if len(n) > 1 else 0))
        elif kind == "scale":
            found = times(found, (n[0], 0, 0, n[-1], 0, 0))
        elif kind == "rotate":
            turn = complex(0, n[0] * 3.141592653589793 / 180)
            z = 2.718281828459045**turn
            found = times(found, (z.real, z.imag, -z.imag, z.real, 0, 0))
        else:
            raise ValueError(f"drawings.matrix: {kind} is not known; add it")
    return found


def corners(box: Box, by: Matrix) -> Box:
    """The box around a box that was transformed."""
    x = [by[0] * x + by[2] * y + by[4] for x in box[::2] for y in box[1::2]]
    y = [by[1] * x + by[3] * y + by[5] for x in box[::2] for y in box[1::2]]
    return min(x), min(y), max(x), max(y)


def around(boxes: list[Box]) -> Box:
    """The box around boxes."""
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)


def common(a: Box, b: Box) -> Box | None:
    """What two boxes share."""
    box = max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])
    return box if box[0] < box[2] and box[1] < box[3] else None


@functools.cache
def path_box(path: str) -> Box | None:
    """The box around the points of a path."""
    n = [float(x) for x in NUMBER.findall(path)]
    return (min(n[::2]), min(n[1::2]), max(n[::2]), max(n[1::2])) if n else None


class Drawing:
    """An SVG that Matplotlib wrote."""

    def __init__(self, text: str) -> None:
        self.root = ET.fromstring(text)
        self.width, self.height = (float(x) for x in self.root.get("viewBox", "").split()[2:])
        self.named = {e.get("id", ""): e for e in self.root.iter() if e.get("id")}

    def boxes(self, element: ET.Element, by: Matrix = SAME) -> Iterator[Box]:
        """Where the parts of an element are drawn; what is clipped does not count."""
        tag = element.tag.removeprefix(SVG)
        if tag in ("defs", "style", "clipPath"):
            return
        by = times(by, matrix(element.get("transform", "")))
        parts: list[Box] = []
        x, y, width, height = (float(element.get(k, 0)) for k in ("x", "y", "width", "height"))
        if tag == "path" and (box := path_box(element.get("d", ""))):
            parts = [corners(box, by)]
        elif tag == "image":
            parts = [corners((x, y, x + width, y + height), by)]
        elif tag == "use":
            at = times(by, (1, 0, 0, 1, x, y))
            parts = list(self.boxes(self.named[element.get(LINK, "")[1:]], at))
        else:
            for child in element:
                parts += self.boxes(child, by)
        if clip := element.get("clip-path"):
            frame = next(iter(self.named[clip[5:-1]]))
            if frame.tag == f"{SVG}path":
                edge = path_box(frame.get("d", ""))
            else:
                x, y, width, height = (
                    float(frame.get(k, 0)) for k in ("x", "y", "width", "height")
                )
                edge = (x, y, x + width, y + height)
            assert edge is not None
            parts = [inside for box in parts if (inside := common(box, edge))]
        yield from parts

    def letters(self, element: ET.Element) -> list[float]:
        """The sizes of the letters in an element, in points; marks above and below do not count."""
        texts = [e for e in element.iter(f"{SVG}g") if re.match(r"text_\d", e.get("id", ""))]
        scales = [re.search(r"scale\(([\d.]+) ", e.get("transform", "")) for t in texts for e in t]
        return [float(scale[1]) * 100 for scale in scales if scale]


# ---- panels -------------------------------------------------------------------------------------


@dataclass
class Panel:
    """A part of a figure that can stand alone: axes, with what belongs to them."""

    parts: list[ET.Element]
    frame: Box | None  # of the axes
    box: Box
    size: float  # of its smallest letters
    copies: list[tuple[ET.Element, float, float]] = field(default_factory=list)  # and how far

    @property
    def least(self) -> int:
        """How wide it must be, in pixels, for its letters."""
        return round((self.box[2] - self.box[0]) * LETTERS / self.size + 0.5)

    @property
    def edge(self) -> Box:
        """The frame of the axes, where there is one."""
        return self.frame or self.box

    def beside(self, other: Panel, n: int) -> bool:
        """Whether two panels are in one column (0) or row (1)."""
        return all(abs(self.edge[k] - other.edge[k]) < 0.5 for k in (n, n + 2))

    def take(self, drawing: Drawing, part: ET.Element, n: int, far: float) -> None:
        """Show a part of another panel here, too: so far below it (0), or beside it (1)."""
        by = (0.0, far) if n == 0 else (far, 0.0)
        self.copies.append((part, *by))
        left, top, right, bottom = around(list(drawing.boxes(part)))
        self.box = around([self.box, (left + by[0], top + by[1], right + by[0], bottom + by[1])])


def is_axes(element: ET.Element) -> bool:
    """Whether an element of a figure is one of its axes."""
    return element.get("id", "").startswith("axes_")


def joined(one: Panel, other: Panel) -> Panel:
    """Two parts as one panel."""
    frames = [p.frame for p in (one, other) if p.frame]
    return Panel(
        one.parts + other.parts,
        around(frames) if frames else None,
        around([one.box, other.box]),
        min(one.size, other.size),
    )


def apart(a: Box | None, b: Box | None) -> float:
    """How far two boxes are from each other."""
    if a is None or b is None:
        return float("inf")
    gaps = max(a[0] - b[2], b[0] - a[2], 0), max(a[1] - b[3], b[1] - a[3], 0)
    return max(gaps) + min(gaps)


def panels(drawing: Drawing) -> list[Panel]:
    """The panels of a figure, in the order of reading."""
    figure = drawing.named["figure_1"]
    elements = [e for top in figure for e in (top if "subfigure" in top.get("id", "") else [top])]
    found: list[Panel] = []
    bars: list[Panel] = []
    loose: list[Panel] = []
    for element in elements:
        boxes = list(drawing.boxes(element))
        if not boxes or re.match(r"patch_\d", element.get("id", "")):
            continue
        size = min(drawing.letters(element), default=99.0)
        panel = Panel([element], None, around(boxes), size)
        if not is_axes(element):
            loose.append(panel)
            continue
        ground = next((e for e in element if e.get("id", "").startswith("patch_")), None)
        panel.frame = around(list(drawing.boxes(ground))) if ground is not None else panel.box
        narrow = min(panel.frame[2] - panel.frame[0], panel.frame[3] - panel.frame[1]) < 14
        (bars if narrow else found).append(panel)
    for n in range(len(found) - 1, 0, -1):  # axes within axes, and two scales of one frame
        for m in range(n):
            here, there = found[n].frame, found[m].frame
            assert here and there
            if common(here, there):
                found[m] = joined(found[m], found.pop(n))
                break
    if not found:
        return []
    for bar in bars:  # a bar of colours belongs to its neighbour
        near = min(range(len(found)), key=lambda n: apart(found[n].frame, bar.frame))
        found[near] = joined(found[near], bar)
    first: list[Panel] = []
    last: list[Panel] = []
    for one in loose:
        meets = [n for n, panel in enumerate(found) if common(panel.box, one.box)]
        if len(meets) > 1:
            return []  # an arrow from panel to panel
        if meets:
            found[meets[0]] = joined(found[meets[0]], one)
        else:
            above = one.box[1] < min(panel.box[1] for panel in found)
            (first if above else last).append(one)
    label_alone(drawing, found)
    return [*first, *found, *last]


def label_alone(drawing: Drawing, found: list[Panel]) -> None:
    """Give panels what is written once for several: an axis they share, a title of their column."""
    for panel, n in itertools.product(found, (0, 1)):  # horizontal, vertical
        own = axis_of(panel, n)
        if own is None or drawing.letters(own):
            continue
        near: list[tuple[float, Panel, ET.Element]] = []
        for other in found:
            labels = axis_of(other, n)
            if labels is None or not drawing.letters(labels) or not other.beside(panel, n):
                continue
            if ticks(labels, n) == ticks(own, n):
                near.append((apart(other.edge, panel.edge), other, labels))
        if near:
            _, other, labels = min(near, key=lambda one: one[0])
            side = 3 if n == 0 else 0  # below, or at the left
            panel.take(drawing, labels, n, panel.edge[side] - other.edge[side])
            panel.size = min([panel.size, *drawing.letters(labels)])
    for panel in found:
        top = min((p for p in found if p.beside(panel, 0)), key=lambda p: p.edge[1])
        first, own_row = ([p for p in found if p.beside(q, 1)] for q in (top, panel))
        named = all(titles(drawing, p) for p in first)
        if len(first) > 1 and named and not any(titles(drawing, p) for p in own_row):
            for title in titles(drawing, top):
                panel.take(drawing, title, 0, panel.edge[1] - top.edge[1])


def titles(drawing: Drawing, panel: Panel) -> list[ET.Element]:
    """The texts above the frame of a panel."""
    own = [e for e in panel.parts[0] if re.match(r"text_\d", e.get("id", ""))]
    boxes = [(e, list(drawing.boxes(e))) for e in own]
    return [e for e, b in boxes if b and around(b)[3] <= panel.edge[1] + 0.5]


def axis_of(panel: Panel, n: int) -> ET.Element | None:
    """The horizontal (0) or vertical (1) axis of a panel's first axes."""
    every = [e for e in panel.parts[0] if e.get("id", "").startswith("matplotlib.axis_")]
    return every[n] if is_axes(panel.parts[0]) and len(every) == 2 else None


def ticks(axis: ET.Element, n: int) -> list[float]:
    """Where the marks of an axis are."""
    marks = [u for u in axis.iter(f"{SVG}use") if u.get("x")]
    return sorted({round(float(u.get("xy"[n], 0)), 1) for u in marks})


def worth(found: list[Panel], drawing: Drawing) -> bool:
    """Whether a phone shows more if a figure is cut."""
    size = min((p.size for p in found), default=99.0)
    if len(found) < 2 or drawing.width * LETTERS / size <= PHONE:
        return False
    widths = sorted(p.least for p in found)
    return widths[-1] < 0.8 * drawing.width * LETTERS / size


# ---- one wide panel, made narrow ----------------------------------------------------------------


class Narrow:
    """Axes drawn again with a shorter horizontal axis; letters and marks keep their size."""

    def __init__(self, drawing: Drawing, panel: Panel, points: float, room: float) -> None:
        self.drawing, self.panel, self.limit = drawing, panel, points
        assert panel.frame is not None
        self.left, _, self.right, _ = panel.frame
        margins = panel.box[2] - panel.box[0] - (self.right - self.left) + room
        self.share = (points - margins) / (self.right - self.left)
        self.lost = (self.right - self.left) * (1 - self.share)
        self.texts: list[tuple[Box, Box, ET.Element]] = []  # before, after, and the copy
        fills = [e for e in panel.parts[0] if re.match(r"patch_", e.get("id", ""))][1:]
        fills = [
            e
            for e in fills
            if e[0].tag == f"{SVG}path" and "fill: none" not in e[0].get("style", "")
        ]
        self.blocks = [box for e in fills for box in drawing.boxes(e)]
        self.points = [
            place
            for e in panel.parts[0]
            if e.get("id", "").startswith("line2d")
            for path in e.iter(f"{SVG}path")
            for place in places(path.get("d", ""))
        ]
        self.marks = [
            (float(e.get("x", 0)), float(e.get("y", 0)))
            for part in panel.parts[0]
            if not part.get("id", "").startswith(("matplotlib.axis_", "legend"))
            for e in part.iter(f"{SVG}use")
            if float(e.get("x", 0))
        ]
        self.clashes = 0

    def x(self, x: float) -> float:
        """Where a place of the figure is now."""
        if x <= self.left:
            return x
        return x - self.lost if x >= self.right else self.left + (x - self.left) * self.share

    def path(self, path: str) -> str:
        """A path with its points moved."""
        parts = NUMBER.split(path), NUMBER.findall(path)
        moved = [p if n % 2 else f"{self.x(float(p)):.2f}" for n, p in enumerate(parts[1])]
        return "".join(a + b for a, b in zip(parts[0], [*moved, ""], strict=True))

    def drawn(self) -> ET.Element | None:
        """The axes, if all fits."""
        if not 0.35 < self.share < 1 or len(self.panel.parts) != 1 or self.panel.copies:
            return None
        axes = self.panel.parts[0]
        marked = [e for e in axes if e.get("id", "").startswith("matplotlib.axis_")]
        if len(marked) != 2 or not all(self.drawing.letters(e) for e in marked):
            return None
        if any(e.tag == f"{SVG}image" for e in axes.iter()):
            return None
        group = ET.Element(f"{SVG}g", {"id": axes.get("id", "") + "narrow"})
        group[:] = [self.copy(e) for e in axes]
        self.thin(group)
        return group if self.fits(group) else None

    @property
    def box(self) -> Box:
        """The box around the narrow axes."""
        left, top, right, bottom = self.panel.box
        return around([(left, top, right - self.lost, bottom), *(now for _, now, _ in self.texts)])

    def copy(self, element: ET.Element) -> ET.Element:
        """An element with its parts moved; words and legends move as they are."""
        name = element.get("id", "")
        boxes = list(self.drawing.boxes(element))
        if re.match(r"(text|legend)_\d", name) and boxes:
            box = around(boxes)
            centre = (box[0] + box[2]) / 2
            ways = [self.x(place) - place for place in (centre, box[0], box[2])]
            if name.startswith("legend"):  # stays at its side
                ways = [0.0 if centre < (self.left + self.right) / 2 else -self.lost]
            by = min(ways, key=lambda way: self.clash(box, way))  # the first of the best
            self.clashes += self.clash(box, by)
            group = ET.Element(f"{SVG}g", {"transform": f"translate({by:.2f} 0)"})
            group.append(self.bare(element))
            now = box[0] + by, box[1], box[2] + by, box[3]
            self.texts.append((box, now, group))
            return group
        new = ET.Element(element.tag, dict(element.attrib))
        new.text = element.text
        if name:
            new.set("id", f"{name}narrow")
        if clip := element.get("clip-path"):
            new.set("clip-path", f"url(#{self.clipped(clip[5:-1])})")
        if "d" in element.attrib and "transform" not in element.attrib:
            new.set("d", self.path(element.get("d", "")))
        if element.tag == f"{SVG}use" and float(element.get("x", 0)) == 0:
            new.set(LINK, f"{element.get(LINK)}narrow")  # an area: its path has the places
        elif element.tag == f"{SVG}use":
            new.set("x", f"{self.x(float(element.get('x', 0))):.2f}")
        inside = list(element)
        if element.tag == f"{SVG}defs":  # of areas; marks stay as they are
            inside = [e for e in inside if self.is_area(e)]
        new[:] = [self.copy(e) for e in inside]
        return new

    def clash(self, old: Box, by: float) -> int:
        """How often moved words lie on a line or a block, or leave one, as they did not."""
        now = old[0] + by, old[1], old[2] + by, old[3]
        count = 0
        for box in self.blocks:
            moved = self.x(box[0]), box[1], self.x(box[2]), box[3]
            if encloses(box, old):
                count += not encloses(moved, now)
            elif not common(box, old) and common(moved, now):
                count += 1
        if not any(within(old, x, y) for x, y in self.points):
            count += any(within(now, self.x(x), y) for x, y in self.points)
        around_old, around_now = wider(old), wider(now)
        if not any(within(around_old, x, y) for x, y in self.marks):
            count += any(within(around_now, self.x(x), y) for x, y in self.marks)
        return count

    def bare(self, element: ET.Element) -> ET.Element:
        """Words or a legend, as they are, without their names."""
        new = ET.Element(element.tag, dict(element.attrib))
        new.attrib.pop("id", None)
        new[:] = [self.bare(e) for e in element if e.tag != f"{SVG}defs"]
        return new

    def is_area(self, path: ET.Element) -> bool:
        """Whether a path that is used has places of the figure in it."""
        link = f"#{path.get('id')}"
        return any(
            e.get(LINK) == link and float(e.get("x", 0)) == 0 and "x" in e.attrib
            for e in self.panel.parts[0].iter(f"{SVG}use")
        )

    def clipped(self, name: str) -> str:
        """The name of a frame that is as narrow as the axes."""
        new = f"{name}narrow"
        if new not in self.drawing.named:
            clip = ET.SubElement(self.drawing.root, f"{SVG}clipPath", {"id": new})
            frame = next(iter(self.drawing.named[name]))
            left, width = float(frame.get("x", 0)), float(frame.get("width", 0))
            clip.append(ET.Element(frame.tag, dict(frame.attrib)))
            clip[0].set("x", f"{self.x(left):.2f}")
            clip[0].set("width", f"{self.x(left + width) - self.x(left):.2f}")
            self.drawing.named[new] = clip
        return new

    def thin(self, group: ET.Element) -> None:
        """Where the numbers of the horizontal axis would touch, leave out every second one."""
        axis = next(e for e in group if e.get("id", "").startswith("matplotlib.axis_"))
        ticks_ = [e for e in axis if e.get("id", "").startswith("xtick_")]
        for _ in range(2):
            words_ = [e for t in ticks_ for e in t if e.get("transform")]
            own = [(now, e) for _, now, e in self.texts if e in words_]
            if not any(close(a[0], b[0]) for a, b in itertools.pairwise(own)):
                return
            gone = [e for _, e in own[1::2]]
            self.texts = [t for t in self.texts if t[2] not in gone]
            for tick in ticks_:
                tick[:] = [e for e in tick if e not in gone]

    def fits(self, group: ET.Element) -> bool:
        """Whether no words touch what they did not, and none leaves the picture."""
        if self.clashes:
            return False
        left, _, right, _ = self.box
        if right - left > self.limit:
            return False
        for (old, now, _), (old2, now2, _) in itertools.combinations(self.texts, 2):
            if common(now, now2) and not common(old, old2):
                return False
        return True


def places(path: str) -> list[tuple[float, float]]:
    """The points of a path, and those between them that a short step leaves."""
    n = [float(x) for x in NUMBER.findall(path)]
    ends = list(zip(n[::2], n[1::2], strict=True))
    between = [
        (a[0] + (b[0] - a[0]) * t / 8, a[1] + (b[1] - a[1]) * t / 8)
        for a, b in itertools.pairwise(ends)
        for t in range(1, 8)
    ]
    return ends + between


def encloses(box: Box, words: Box) -> bool:
    """Whether words are in a box, or all but."""
    return (
        box[0] - 0.5 < words[0]
        and words[2] < box[2] + 0.5
        and box[1] < words[3]
        and words[1] < box[3]
    )


def wider(box: Box) -> Box:
    """A box with room for half a mark around it."""
    return box[0] - 3, box[1] - 1, box[2] + 3, box[3] + 1


def within(box: Box, x: float, y: float) -> bool:
    """Whether a point is in a box."""
    return box[0] < x < box[2] and box[1] < y < box[3]


def close(a: Box, b: Box) -> bool:
    """Whether two words in a line touch."""
    return a[2] + 2 > b[0] and b[2] + 2 > a[0] and a[1] < b[3] and b[1] < a[3]


def narrowed(drawing: Drawing, found: list[Panel]) -> list[Panel]:
    """Panels that are too wide for a phone, drawn narrow where that leaves them legible."""
    new = []
    for panel in found:
        points = (PHONE - 8) * panel.size / LETTERS - 4
        if panel.least > PHONE and panel.frame:
            for room in (0, 25, 50, 75):  # for words that stick out
                narrow = Narrow(drawing, panel, points, room)
                if (copy := narrow.drawn()) is not None:
                    ET.SubElement(drawing.root, f"{SVG}defs").append(copy)
                    panel = Panel([copy], None, narrow.box, panel.size)
                    break
        new.append(panel)
    return new


# ---- what the site shows ------------------------------------------------------------------------


def rounded(found: re.Match[str], digits: int) -> str:
    """A number that was found, in few signs."""
    return number(float(found[0]), digits)


def small(path: str, digits: int) -> str:
    """A path in fewer signs: each point told by its distance from the one before."""
    unit = 10**digits
    said, last, here, start = "", "", (0, 0), (0, 0)
    for sign, numbers in re.findall(r"([MLQCz])([^MLQCz]*)", path):
        n = [round(float(x) * unit) for x in NUMBER.findall(numbers)]
        if sign == "z":
            said, here = f"{said}z", start
            continue
        steps = [x - here[k % 2] for k, x in enumerate(n)]
        if sign == "M":
            start = (n[0], n[1])
        same = sign == "L" and said[-1:].isdigit() and last == "L"
        said += " " if same else sign.lower() if said else "M"
        said += " ".join(number(x / unit, digits) for x in steps)
        here, last = (n[-2], n[-1]), sign
    return said.replace(" -", "-")


def number(x: float, digits: int = 2) -> str:
    """A number in few signs."""
    text = f"{x:.{digits}f}"
    text = re.sub(r"\.?0+$", "", text) if "." in text else text
    return re.sub(r"^(-?)0\.", r"\1.", text) if text not in ("-0", "") else "0"


def shrink(drawing: Drawing) -> None:
    """Take out of a drawing what is not seen, and the white ground below it."""
    root = drawing.root
    root.remove(next(e for e in root if e.tag.endswith("metadata")))
    for parent in list(root.iter()):
        for child in list(parent):
            style = child.get("style", "")
            of_axes = re.match(r"patch_\d", parent.get("id", "")) and len(parent) == 1
            if of_axes and "fill: #ffffff" in style and "stroke" not in style:
                parent.remove(child)
    used = {e.get(LINK, "")[1:] for e in root.iter() if e.get(LINK, "").startswith("#")}
    used |= {n for e in root.iter() for v in e.attrib.values() for n in re.findall(r"#(\w+)\)", v)}
    short = {name: named(n) for n, name in enumerate(sorted(used))}
    marks = {
        f"#{short[name]}": (e.get("d", ""), e.get("style", "").replace(": ", ":"))
        for name, e in drawing.named.items()
        if name in short and e.tag == f"{SVG}path"
    }
    for element in root.iter():
        shorten(element, short)
    root.attrib.pop("version")
    unwrap(root)
    for element in list(root.iter()):
        gather(element, marks)
    classes(root)


def named(n: int) -> str:
    """A short name for the n-th of many things."""
    return (named(n // 26 - 1) if n >= 26 else "") + chr(ord("a") + n % 26)


def shorten(element: ET.Element, names: dict[str, str]) -> None:
    """Write the attributes of an element in fewer signs."""
    name = element.attrib.pop("id", "")
    if name in names:
        element.set("id", names[name])
    link = element.attrib.pop(LINK, "")
    if link:
        element.set("href", f"#{names[link[1:]]}" if link[0] == "#" else "".join(link.split()))
    for key, value in list(element.items()):
        if key == "d":
            if element.get("transform") == GLYPH:  # 64 times as large as it is drawn; 2 will do
                value = small(NUMBER.sub(lambda m: f"{float(m[0]) / 32:.3f}", value), 0)
            else:
                value = small(value, 1)
        elif key in ("x", "y", "width", "height") and element.tag != f"{SVG}svg":
            value = number(float(value), 1 if element.tag == f"{SVG}use" else 3)
        elif key == "transform" and value == GLYPH:
            value = "scale(.5)"
        elif key == "transform":
            digits = 4 if "scale" in value else 1
            value = NUMBER.sub(functools.partial(rounded, digits=digits), value)
            value = value.replace("translate(0 0)", "").strip()
            if move := re.fullmatch(r"translate\((\S+) (\S+)\)", value):
                if element.tag == f"{SVG}use":
                    element.attrib.pop("transform")
                    for k, v in zip("xy", move.groups(), strict=True):
                        if v != "0":
                            element.set(k, number(float(v) + float(element.get(k, 0)), 1))
                    continue
        elif key == "style":
            value = re.sub(r"([:;]) ", r"\1", value)
            value = re.sub(r"#(\w)\1(\w)\2(\w)\3\b", r"#\1\2\3", value)
        value = re.sub(r"url\(#(\w+)\)", lambda m: f"url(#{names[m[1]]})", value)
        element.set(key, value)
    element.text = (element.text or "").strip() or None
    element.tail = None


def unwrap(element: ET.Element) -> None:
    """Take out groups that say nothing."""
    for child in list(element):
        unwrap(child)
        if child.tag == f"{SVG}g" and not child.attrib:
            at = list(element).index(child)
            element[at : at + 1] = list(child)
        elif child.tag == f"{SVG}g" and len(child) == 0 and "id" not in child.attrib:
            element.remove(child)


def gather(parent: ET.Element, marks: dict[str, tuple[str, str]]) -> None:
    """Draw marks that look alike together: dots as one line of dots, others with one style."""
    runs = itertools.groupby(list(parent), key=lambda e: (e.tag, e.get("href"), e.get("style")))
    new: list[ET.Element] = []
    for (tag, link, style), run in runs:
        same = list(run)
        if tag != f"{SVG}use" or not style or len(same) < 4:
            new += same
            continue
        bare = all(set(e.keys()) <= {"x", "y", "href", "style"} for e in same)
        width = dot(*marks[str(link)], style) if bare and str(link) in marks else 0.0
        if width:
            places = dict.fromkeys((e.get("x", "0"), e.get("y", "0")) for e in same)
            colour = re.search("stroke:(#\\w+)", style)
            assert colour is not None
            line = f"fill:none;stroke:{colour[1]};stroke-width:{number(width)};stroke-linecap:round"
            path = "".join(f"M{x} {y}h0".replace(" -", "-") for x, y in places)
            new.append(ET.Element(f"{SVG}path", {"d": path, "style": line}))
        else:
            for element in same:
                element.attrib.pop("style")
            group = ET.Element(f"{SVG}g", {"style": style})
            group[:] = same
            new.append(group)
    parent[:] = new


def classes(root: ET.Element) -> None:
    """Write a style that several elements have once."""
    often = collections.Counter(e.get("style", "") for e in root.iter())
    kept = [style for style, count in often.items() if style and count > 2]
    names = {style: named(n) for n, style in enumerate(kept)}
    sheet = next(root.iter(f"{SVG}style"))
    sheet.text = f"{sheet.text}{''.join(f'.{name}{{{s}}}' for s, name in names.items())}"
    for element in root.iter():
        if element.get("style", "") in names:
            element.set("class", names[element.attrib.pop("style")])


def dot(path: str, own: str, style: str) -> float:
    """The width of a line that draws a mark, if that is a filled disc of one colour; 0 if not."""
    box = path_box(path)
    colours = dict(re.findall(r"(fill|stroke):(#\w+)", style))
    width = re.search(r"stroke-width:([\d.]+)", f"{style};{own}")
    if box is None or path.count("C") != 8 or abs(sum(box)) > 0.1 or "opacity" in style + own:
        return 0.0
    if "stroke" not in colours or len(set(colours.values())) != 1:
        return 0.0
    return box[2] - box[0] + (float(width[1]) if width else 1)


# ---- letters that can be read -------------------------------------------------------------------

ENOUGH = 4.5  # to 1, as WCAG has it
LIGHT, DARK = (255, 255, 255), (18, 18, 18)  # the page
Colour = tuple[int, ...]
# What `invert(1) hue-rotate(180deg)` of book.css does to red, green and blue.
TURNED = ((-0.574, 1.43, 0.144), (0.426, 0.43, 0.144), (0.426, 1.43, -0.856))


def in_the_dark(colour: Colour) -> Colour:
    """A colour as the dark page shows it."""
    other = [255 - c for c in colour]
    sums = (sum(a * b for a, b in zip(row, other, strict=True)) for row in TURNED)
    return tuple(round(min(max(s, 0), 255)) for s in sums)


def contrast(one: Colour, other: Colour) -> float:
    """The ratio of two colours' luminances."""
    lights = []
    for colour in (one, other):
        parts = [c / 255 for c in colour]
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        lights.append(0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05)
    return max(lights) / min(lights)


def legible(colour: Colour) -> Colour:
    """A colour of the same hue, dark enough for letters on the page in light and in dark."""
    for step in range(100):
        dark = tuple(round(c * (100 - step) / 100) for c in colour)
        if contrast(dark, LIGHT) >= ENOUGH and contrast(in_the_dark(dark), DARK) >= ENOUGH:
            return dark
    return (0, 0, 0)


def texts(drawing: Drawing) -> Iterator[tuple[ET.Element, Colour]]:
    """The texts of a drawing that lie on the page itself, and their colours."""
    grounds: list[Box] = []
    for element in drawing.root.iter():
        style = element.get("style", "")
        if element.tag == f"{SVG}path" and style:
            fill = re.search(r"fill: ?(#\w+|none|url)", style)
            if fill is None or fill[1] not in ("none", "#ffffff"):
                grounds += drawing.boxes(element)
        elif element.get("clip-path") and len(element) < 4:  # an image, or an area; not dots
            grounds += drawing.boxes(element)
        elif re.match(r"text_\d", element.get("id", "")):
            for text in element:
                boxes = list(drawing.boxes(text))
                if not boxes:
                    continue
                left, top, right, bottom = around(boxes)
                x, y = (left + right) / 2, (top + bottom) / 2
                if any(g[0] < x < g[2] and g[1] < y < g[3] for g in grounds):
                    continue
                fill = re.search(r"fill: ?#(\w{6})", text.get("style", ""))
                colour = tuple(bytes.fromhex(fill[1])) if fill else (0, 0, 0)
                if seen := re.search(r"(?<!-)opacity: ?([\d.]+)", text.get("style", "")):
                    colour = tuple(round(255 - (255 - c) * float(seen[1])) for c in colour)
                yield text, colour


def darken(drawing: Drawing) -> None:
    """Draw pale letters darker, in their hue."""
    for text, colour in list(texts(drawing)):
        dark = legible(colour)
        if dark != colour:
            text.set("style", f"fill: #{bytes(dark).hex()}")


# ---- the page -----------------------------------------------------------------------------------


def cut(drawing: Drawing) -> list[tuple[Box, int]]:
    """Lay each panel beside the figure; return what to show of it, and its least width."""
    found = panels(drawing)
    size = min((p.size for p in found), default=99.0)
    if not found or drawing.width * LETTERS / size <= PHONE:
        return []  # the whole has room
    if not worth(found, drawing):
        found = narrowed(drawing, found)
        if not any("narrow" in p.parts[0].get("id", "") for p in found):
            return []
    else:
        found = narrowed(drawing, found)
    shown = []
    for n, panel in enumerate(found):
        away = 2 * (n + 1) * drawing.height
        group = ET.SubElement(drawing.root, f"{SVG}g", transform=f"translate(0 {away})")
        for part in panel.parts:
            ET.SubElement(group, f"{SVG}use", {LINK: f"#{part.get('id')}"})
        for part, x, y in panel.copies:
            ET.SubElement(
                group, f"{SVG}use", {LINK: f"#{part.get('id')}", "x": f"{x}", "y": f"{y}"}
            )
        left, top, right, bottom = panel.box
        box = left - 1, top - 1 + away, right + 1, bottom + 1 + away
        shown.append((box, round(panel.least * (1 + 2 / (right - left)) + 0.5)))
    return shown


def drawn(svg: str) -> tuple[str, str]:
    """The file of a figure for the site, and the `<img>`s that show it; FILE and ALT stand open."""
    drawing = Drawing(svg)
    darken(drawing)
    views = cut(drawing)
    size = min(drawing.letters(drawing.root), default=LETTERS)
    least = round(drawing.width * LETTERS / size)
    shrink(drawing)
    whole = f'width="{drawing.width * 5 / 3:.0f}" height="{drawing.height * 5 / 3:.0f}"'
    said = [f'<img class="whole" src="FILE" alt="ALT" {whole} style="--least:{least}px">']
    for n, (box, least) in enumerate(views):
        left, top, right, bottom = box
        view = ",".join(number(x, 1) for x in (left, top, right - left, bottom - top))
        alt = "ALT" if n == 0 else f"Panel {n + 1} of {len(views)}"
        style = f"--least:{least}px;--most:{(right - left) * SCALE:.0f}px"
        style += f";aspect-ratio:{right - left:.0f}/{bottom - top:.0f}"
        part = f'src="FILE#svgView(viewBox({view}))" alt="{alt}" style="{style}"'
        said.append(f'<img class="panel" {part} loading="lazy">')
    ET.register_namespace("", SVG[1:-1])
    text = ET.tostring(drawing.root, encoding="unicode").replace(" />", "/>")
    kind = "drawn cut" if views else "drawn"
    return text, f'<div class="{kind}">{"".join(said)}</div>'


@functools.cache
def by_hash() -> dict[str, Path]:
    """The SVG that was drawn with each PNG, by the PNG's hash."""
    return {
        hashlib.sha256(png.read_bytes()).hexdigest(): png.with_suffix(".svg")
        for png in sorted(FIGURES.glob("*.png"))
    }


def show_drawings(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Show each figure of a chapter as a drawing."""
    folder = Path(app.outdir) / "_images"
    for image in list(doctree.findall(nodes.image)):
        svg = by_hash().get(Path(image["uri"]).stem)
        if svg is None:
            continue
        folder.mkdir(exist_ok=True)
        text, tags = drawn(svg.read_text(encoding="utf-8"))
        (folder / svg.name).write_text(text, encoding="utf-8")
        tags = tags.replace("FILE", f"{'../' * docname.count('/')}_images/{svg.name}")
        tags = tags.replace("ALT", html.escape(image.get("alt", "")))
        image.parent.replace(image, nodes.raw("", tags, format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Join Sphinx's build."""
    app.connect("doctree-resolved", show_drawings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
