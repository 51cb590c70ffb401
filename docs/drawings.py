"""The chapters' figures on the web: drawings in the page, in the theme's colours, cut for a phone.

A chapter shows PNGs; the web book shows the SVG of `figures/` that was drawn with each, made small
(`svg`), on no ground, so that it lies on the page, and in its colours (`colours`).

A figure is 512 points wide, and its letters have 9. On a phone its panels are shown one after the
other, each as large as it must be for its letters. A panel whose axis is labelled on its
neighbour's gets a copy of these labels. One that is wider than the phone scrolls.
"""

from __future__ import annotations

import functools
import hashlib
import html
import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

from colours import repaint
from docutils import nodes
from sphinx.application import Sphinx
from svg import LINK, SVG, Box, Drawing, around, common, is_axes, number, shrink

FIGURES = Path(__file__).parent.parent / "figures"
PHONE = 358  # pixels for text, on a screen of 390
LETTERS = 9  # pixels, at least
SCALE = 1.17  # pixels a point, where there is room


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

    def view(self, name: str) -> ET.Element:
        """The panel as a drawing of its own, which shows the parts of the figure."""
        left, top, right, bottom = self.box
        width, height = right - left + 2, bottom - top + 2
        box = " ".join(number(x, 1) for x in (left - 1, top - 1, width, height))
        least = round(width * LETTERS / self.size + 0.5)
        size = f"--least:{least}px;--most:{width * SCALE:.0f}px"
        view = ET.Element(
            f"{SVG}svg",
            {"viewBox": box, "role": "img", "aria-label": name, "class": "panel", "style": size},
        )
        for part, x, y in [*((p, 0.0, 0.0) for p in self.parts), *self.copies]:
            place = {"x": number(x, 1), "y": number(y, 1)} if x or y else {}
            ET.SubElement(view, f"{SVG}use", {LINK: f"#{part.get('id')}", **place})
        return view

    def beside(self, other: Panel, n: int) -> bool:
        """Whether two panels are in one column (0) or row (1)."""
        return all(abs(self.edge[k] - other.edge[k]) < 0.5 for k in (n, n + 2))

    def take(self, drawing: Drawing, part: ET.Element, n: int, far: float) -> None:
        """Show a part of another panel here, too: so far below it (0), or beside it (1)."""
        by = (0.0, far) if n == 0 else (far, 0.0)
        self.copies.append((part, *by))
        left, top, right, bottom = around(drawing.boxes(part))
        self.box = around([self.box, (left + by[0], top + by[1], right + by[0], bottom + by[1])])


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
        boxes = drawing.boxes(element)
        if not boxes or re.match(r"patch_\d", element.get("id", "")):
            continue
        size = min(drawing.letters(element), default=99.0)
        panel = Panel([element], None, around(boxes), size)
        if not is_axes(element):
            loose.append(panel)
            continue
        ground = next((e for e in element if e.get("id", "").startswith("patch_")), None)
        panel.frame = around(drawing.boxes(ground)) if ground is not None else panel.box
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
    boxes = [(e, drawing.boxes(e)) for e in own]
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


# ---- the page -----------------------------------------------------------------------------------


def cut(drawing: Drawing) -> list[ET.Element]:
    """The panels of a figure as drawings of their own, which show its parts, and how wide."""
    found = panels(drawing)
    if not worth(found, drawing):
        return []
    others = [f"Panel {n} of {len(found)}" for n in range(2, len(found) + 1)]
    return [panel.view(name) for panel, name in zip(found, ["ALT", *others], strict=True)]


def drawn(svg: str, name: str = "f") -> str:
    """A figure for the page; ALT stands open. `name` begins the names of its parts."""
    drawing = Drawing(svg)
    repaint(drawing)
    views = cut(drawing)
    size = min(drawing.letters(drawing.root), default=LETTERS)
    root = drawing.root
    root[:] = [*root, *views]
    shrink(drawing, name)
    root[:] = [e for e in root if e not in views]
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "width": f"{drawing.width * 5 / 3:.0f}",
        "role": "img",
        "aria-label": "ALT",
        "class": "whole",
        "style": f"--least:{drawing.width * LETTERS / size:.0f}px",
    }
    clips = ET.Element(f"{SVG}svg", {"class": "clips", "aria-hidden": "true"})
    for parent in list(root.iter()) if views else []:
        for clip in [e for e in parent if e.tag == f"{SVG}clipPath"]:
            parent.remove(clip)
            clips.append(clip)
    every = [clips, root, *views] if views else [root]
    ET.register_namespace("", SVG[1:-1])
    text = "".join(ET.tostring(e, encoding="unicode") for e in every).replace(" />", "/>")
    return f'<div class="{"drawn cut" if views else "drawn"}">{text}</div>'


@functools.cache
def by_hash() -> dict[str, Path]:
    """The SVG that was drawn with each PNG, by the PNG's hash."""
    return {
        hashlib.sha256(png.read_bytes()).hexdigest(): png.with_suffix(".svg")
        for png in sorted(FIGURES.glob("*.png"))
    }


def in_text(page: str) -> str:
    """A page as it is written, with its figures as drawings; their letters stand at the end."""
    letters: dict[str, str] = {}

    def show(found: re.Match[str]) -> str:
        text = drawn((FIGURES / f"{found[1]}.svg").read_text(encoding="utf-8"), f"p{found[1][3]}")
        return without_letters(text, letters).replace("ALT", found[2])

    page = re.sub(r'<img src="_static/(\w+)\.png" alt="([^"]*)">', show, page)
    return f"{page}\n```{{raw}} html\n{shapes(letters)}\n```\n"


def shapes(letters: dict[str, str]) -> str:
    """The letters of a page."""
    return f'<svg class="clips" aria-hidden="true">{"".join(letters.values())}</svg>'


def show_drawings(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Show each figure of a chapter as a drawing; the letters of all stand once, at the end."""
    names = {svg: f"f{n}" for n, svg in enumerate(by_hash().values())}
    letters: dict[str, str] = {}
    for image in list(doctree.findall(nodes.image)):
        svg = by_hash().get(Path(image["uri"]).stem)
        if svg is not None:
            text = without_letters(drawn(svg.read_text(encoding="utf-8"), names[svg]), letters)
            text = text.replace("ALT", html.escape(image.get("alt", "")))
            node = nodes.raw("", text, format="html", png=svg.with_suffix(".png"))
            image.parent.replace(image, node)
    if letters:
        page = next(iter(doctree.findall(nodes.section)))
        page.append(nodes.raw("", shapes(letters), format="html"))


def without_letters(figure: str, letters: dict[str, str]) -> str:
    """A figure without the shapes of its letters, which go to those of the page."""
    shape = re.compile(r'<path [^>]*id="(g\w+)"/>')
    letters |= {found[1]: found[0] for found in shape.finditer(figure)}
    return shape.sub("", figure).replace("<defs></defs>", "")


def setup(app: Sphinx) -> dict[str, bool]:
    """Join Sphinx's build."""
    app.connect("doctree-resolved", show_drawings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
