"""An SVG that Matplotlib wrote: where its parts are, and how it is written in fewer signs."""

from __future__ import annotations

import collections
import functools
import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np

SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
DOT = {"x", "y", "href", "style"}
GLYPH = "scale(0.015625)"
NUMBER = re.compile(r"-?\d*\.?\d+(?:e-?\d+)?")
Box = tuple[float, float, float, float]
SAME = np.eye(3)


# ---- where things are ---------------------------------------------------------------------------


@functools.cache
def matrix(text: str) -> np.ndarray:
    """Read the transformations of an element."""
    found = np.eye(3)
    for kind, inside in re.findall(r"(\w+)\(([^)]*)\)", text):
        n = [float(x) for x in NUMBER.findall(inside)]
        step = np.eye(3)
        if kind == "translate":
            step[: len(n), 2] = n
        elif kind == "scale":
            step[0, 0], step[1, 1] = n[0], n[-1]
        elif kind == "rotate":
            c, s = np.cos(np.radians(n[0])), np.sin(np.radians(n[0]))
            step[:2, :2] = (c, -s), (s, c)
        else:
            raise ValueError(f"svg.matrix: {kind} is not known; add it")
        found = found @ step
    return found


def corners(box: Box, by: np.ndarray) -> Box:
    """The box around a box that was transformed."""
    left, top, right, bottom = box
    x, y = (by @ ((left, right, left, right), (top, top, bottom, bottom), (1, 1, 1, 1)))[:2]
    return float(min(x)), float(min(y)), float(max(x)), float(max(y))


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


def frame(element: ET.Element) -> Box:
    """The box of an image, or of what cuts others."""
    if box := path_box(element.get("d", "")):
        return box
    x, y, width, height = (float(element.get(k, 0)) for k in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


class Drawing:
    """An SVG that Matplotlib wrote."""

    def __init__(self, text: str) -> None:
        self.root = ET.fromstring(text)
        self.width, self.height = (float(x) for x in self.root.get("viewBox", "").split()[2:])
        self.known: dict[ET.Element, list[Box]] = {}
        self.named = {e.get("id", ""): e for e in self.root.iter() if e.get("id")}

    def boxes(self, element: ET.Element) -> list[Box]:
        """Where the parts of an element of the figure are drawn; what is clipped does not count."""
        if element not in self.known:
            self.known[element] = self.found(element, SAME)
        return self.known[element]

    def found(self, element: ET.Element, by: np.ndarray) -> list[Box]:
        """Where the parts of an element are, by the transformations around it."""
        tag = element.tag.removeprefix(SVG)
        if tag in ("defs", "style", "clipPath"):
            return []
        if "transform" in element.attrib:
            by = by @ matrix(element.get("transform", ""))
        parts: list[Box] = []
        if tag == "path" and (box := path_box(element.get("d", ""))):
            parts = [corners(box, by)]
        elif tag == "image":
            parts = [corners(frame(element), by)]
        elif tag == "use":
            at = by @ matrix(f"translate({element.get('x', 0)} {element.get('y', 0)})")
            parts = self.found(self.named[element.get(LINK, "")[1:]], at)
        else:
            for child in element:
                parts += self.found(child, by)
        if clip := element.get("clip-path"):
            edge = frame(next(iter(self.named[clip[5:-1]])))
            parts = [inside for box in parts if (inside := common(box, edge))]
        return parts

    def letters(self, element: ET.Element) -> list[float]:
        """The sizes of the letters in an element, in points; marks above and below do not count."""
        texts = [e for e in element.iter(f"{SVG}g") if re.match(r"text_\d", e.get("id", ""))]
        scales = [re.search(r"scale\(([\d.]+) ", e.get("transform", "")) for t in texts for e in t]
        return [float(scale[1]) * 100 for scale in scales if scale]


def is_axes(element: ET.Element) -> bool:
    """Whether an element of a figure is one of its axes."""
    return element.get("id", "").startswith("axes_")


# ---- fewer signs ------------------------------------------------------------------------------


def small(text: str, digits: int) -> str:
    """A path, or another text with numbers, in fewer signs."""
    text = NUMBER.sub(lambda m: number(float(m[0]), digits), " ".join(text.split()))
    return re.sub(r" ?([MLQCz]) ?", r"\1", text).replace(" -", "-")


def number(x: float, digits: int = 2) -> str:
    """A number in few signs."""
    text = f"{x:.{digits}f}"
    text = re.sub(r"\.?0+$", "", text) if "." in text else text
    return re.sub(r"^(-?)0\.", r"\1.", text) if text not in ("-0", "") else "0"


def shrink(drawing: Drawing, first: str) -> None:
    """Take out of a drawing what is not seen, and the white ground below it."""
    root = drawing.root
    root.remove(next(e for e in root if e.tag.endswith("metadata")))
    for parent in list(root.iter()):
        for child in list(parent):
            style = child.get("style", "")
            of_axes = re.match(r"patch_\d", parent.get("id", "")) and len(parent) == 1
            if of_axes and style == "fill: var(--fig-ground)":
                parent.remove(child)
    used = {e.get(LINK, "")[1:] for e in root.iter() if e.get(LINK, "").startswith("#")}
    used |= {n for e in root.iter() for v in e.attrib.values() for n in re.findall(r"#(\w+)\)", v)}
    short = {
        name: "g" + re.sub(r"DejaVuSans|\W", "", name) if "-" in name else first + named(n)
        for n, name in enumerate(sorted(used))  # letters have the same names in all figures
    }
    marks = {
        f"#{short[name]}": (e.get("d", ""), e.get("style", "").replace(": ", ":"))
        for name, e in drawing.named.items()
        if name in short and e.tag == f"{SVG}path"
    }
    for element in root.iter():
        shorten(element, short)
    unwrap(root)
    for element in list(root.iter()):
        gather(element, marks)
    classes(root, first)


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
            value = small(value, 0 if element.get("transform") == GLYPH else 1)
        elif key in ("x", "y", "width", "height") and element.tag != f"{SVG}svg":
            value = number(float(value), 1 if element.tag == f"{SVG}use" else 3)
        elif key == "transform" and value != GLYPH:
            value = small(value, 4 if "scale" in value else 1)
            value = value.replace("translate(0 0)", "").strip()
            if element.tag == f"{SVG}use" and re.fullmatch(r"translate\([^)]*\)", value):
                element.attrib.pop("transform")  # of a letter
                for k, v in zip("xy", NUMBER.findall(value), strict=True):
                    if v != "0":
                        element.set(k, v)
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
    before = None
    for child in list(element):  # groups that are cut by the same frame
        if (
            before is not None
            and before.attrib == child.attrib
            and list(child.attrib) == ["clip-path"]
        ):
            before.extend(child)
            element.remove(child)
        else:
            before = child if child.tag == f"{SVG}g" else None


def gather(parent: ET.Element, marks: dict[str, tuple[str, str]]) -> None:
    """Draw many dots of a colour as one line of dots."""
    new: list[ET.Element] = []
    for link, run in itertools.groupby(parent, key=lambda e: e.get("href")):
        same = list(run)
        if len(same) < 4 or link not in marks or any(set(e.keys()) - DOT for e in same):
            new += same
            continue
        places: dict[str, dict[str, None]] = {}  # each once, by their look
        for e in same:
            place = f"M{e.get('x', '0')} {e.get('y', '0')}h0".replace(" -", "-")
            places.setdefault(e.get("style", ""), {})[place] = None
        looks = {style: dot(*marks[link], style) for style in places}
        if not all(looks.values()):
            new += same
            continue
        for style, path in places.items():
            line = f"fill:none;{looks[style]};stroke-linecap:round"
            new.append(ET.Element(f"{SVG}path", {"d": "".join(path), "style": line}))
    parent[:] = new


def classes(root: ET.Element, first: str) -> None:
    """Write a style that several elements have once."""
    often = collections.Counter(e.get("style", "") for e in root.iter())
    kept = [style for style, count in often.items() if style and count > 2]
    names = {style: first + named(n) for n, style in enumerate(kept)}
    sheet = next(root.iter(f"{SVG}style"))
    sheet.text = "".join(f".{name}{{{s}}}" for s, name in names.items())
    for element in root.iter():
        if element.get("style", "") in names and element.tag != f"{SVG}svg":
            element.set("class", names[element.attrib.pop("style")])


def dot(path: str, own: str, style: str) -> str:
    """The style of a line that draws a mark, if that is a disc of one colour without a wall."""
    box, look = path_box(path), dict(re.findall(r"([\w-]+):([^;]+)", f"{own};{style}"))
    width = look.get("stroke-width", "1") if "stroke" in look else "0"
    if box is None or path.count("C") != 8 or abs(sum(box)) > 0.1 or "opacity" in look:
        return ""
    if look.get("fill", "") != look.get("stroke", look.get("fill")):
        return ""
    return f"stroke:{look['fill']};stroke-width:{number(box[2] - box[0] + float(width))}"
