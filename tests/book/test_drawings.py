"""Figures of the web book (`docs/drawings.py`): drawings on the page, cut for a phone, legible."""

import io
import re
import xml.etree.ElementTree as ET

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawings import (
    DARK,
    ENOUGH,
    LETTERS,
    LIGHT,
    LINK,
    PHONE,
    SVG,
    Drawing,
    contrast,
    darken,
    drawn,
    in_the_dark,
    legible,
    number,
    panels,
    small,
    texts,
)
from reading import ROOT

FIGURES = sorted(ROOT.glob("figures/*.svg"))
STYLE = {"font.size": 9, "axes.titlesize": 9, "figure.constrained_layout.use": True}


@pytest.fixture(scope="module")
def all_drawn():
    """Each figure's file and tags, as the site has them."""
    return {path.stem: drawn(path.read_text(encoding="utf-8")) for path in FIGURES}


def svg(draw, rows=1, columns=1, **options):
    """A figure as Matplotlib writes it."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(rows, columns, figsize=(7, 3), **options)
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg")
        plt.close(figure)
    return out.getvalue()


def least(tags):
    """The width of each part of a figure at which its letters have 9 pixels."""
    found = [int(width) for width in re.findall(r"--least:(\d+)px", tags)]
    return found[1:] or found


def test_most_figures_are_legible_on_a_phone_without_scrolling(all_drawn):
    fit = [name for name, (_, tags) in all_drawn.items() if max(least(tags)) <= PHONE]
    assert len(fit) >= 0.7 * len(all_drawn)
    before = [path for path in FIGURES if Drawing(path.read_text()).width <= PHONE]
    assert len(before) < 0.02 * len(all_drawn)


def test_a_file_has_no_ground_and_nothing_that_is_not_seen(all_drawn):
    for name, (file, _) in all_drawn.items():
        root = ET.fromstring(file)
        left, top, width, height = (float(x) for x in root.get("viewBox").split())
        assert (left, top) == (0, 0) and "metadata" not in file and len(file) < 200_000
        for path in root.iter(f"{SVG}path"):
            ground = path.get("d", "").startswith(f"M0 {number(height, 1)}l{number(width, 1)} 0")
            assert not ground, name
        links = {e.get("href")[1:] for e in root.iter() if e.get("href", "").startswith("#")}
        links |= set(re.findall(r"url\(#(\w+)\)", file))
        ids = [e.get("id") for e in root.iter() if e.get("id")]
        assert len(ids) == len(set(ids)) and links <= set(ids), name
    assert sum(len(file) for file, _ in all_drawn.values()) < 35_000 * len(FIGURES)


def test_letters_on_the_page_have_contrast_in_light_and_dark():
    pale = 0
    for path in FIGURES:
        drawing = Drawing(path.read_text(encoding="utf-8"))
        pale += any(contrast(colour, LIGHT) < ENOUGH for _, colour in texts(drawing))
        darken(drawing)
        for _, colour in texts(drawing):
            assert contrast(colour, LIGHT) >= ENOUGH, (path.stem, colour)
            assert contrast(in_the_dark(colour), DARK) >= ENOUGH, (path.stem, colour)
    assert pale > 10  # there was something to do


def test_colours_change_places_as_the_style_says():
    """The browser's filter keeps hues; these are its numbers (CSS Filter Effects, section 9)."""
    rule = (ROOT / "docs/_static/book.css").read_text()
    assert "filter: invert(1) hue-rotate(180deg)" in rule
    assert in_the_dark((0, 0, 0)) == LIGHT and in_the_dark(LIGHT) == (0, 0, 0)
    for colour in ((0, 114, 178), (204, 102, 119), (17, 119, 51)):
        dark = in_the_dark(colour)
        assert dark.index(max(dark)) == colour.index(max(colour))
        assert contrast(dark, DARK) > contrast(colour, DARK)
    assert contrast(LIGHT, (0, 0, 0)) == pytest.approx(21)
    assert legible((0, 0, 0)) == (0, 0, 0) != legible((221, 204, 119))


def test_a_shared_axis_is_labelled_in_each_panel():
    def draw(axes):
        for k, one in enumerate(axes):
            one.plot(np.arange(5) * (k + 1))
        axes[0].set_ylabel("size")

    text = svg(draw, columns=3, sharey=True)
    found = panels(Drawing(text))
    assert [len(panel.copies) for panel in found] == [0, 1, 1]
    first, last = found[0], found[2]
    moved = last.copies[0][1]
    assert moved == pytest.approx(last.frame[0] - first.frame[0])
    assert last.box[0] == pytest.approx(first.box[0] + moved, abs=1)  # its labels are in view
    _, tags = drawn(text)
    assert tags.count('class="panel"') == 3 and max(least(tags)) < PHONE
    other = [len(panel.copies) for panel in panels(Drawing(svg(draw, columns=3)))]
    assert other == [0, 0, 0]


def test_a_title_stands_over_each_panel_of_its_column():
    def draw(axes):
        for k, one in enumerate(axes[0]):
            one.set_title(f"column {k}")

    found = panels(Drawing(svg(draw, 2, 2)))
    assert [len(panel.copies) for panel in found] == [0, 0, 1, 1]

    def only_left(axes):
        axes[0, 0].set_title("this one")

    assert not any(panel.copies for panel in panels(Drawing(svg(only_left, 2, 2))))


def test_a_wide_panel_is_drawn_narrow_and_its_letters_are_not():
    def draw(axes):
        axes.plot([0, 1, 2], [0, 2, 1], label="a curve")
        axes.fill_between([0, 1], [0, 1])
        axes.set(xlabel="distance", ylabel="share")
        axes.legend(loc="lower right")

    text = svg(draw)
    file, tags = drawn(text)
    assert len(least(tags)) == 1 and tags.count("<img") == 2
    assert least(tags)[0] <= PHONE < Drawing(text).width
    view = [float(x) for x in re.search(r"viewBox\(([^)]*)\)", tags)[1].split(",")]
    assert view[2] * LETTERS / 9 <= least(tags)[0] + 1
    letters = re.findall(r"scale\((\.\d+) -\.\d+\)", file)
    assert set(letters) == {".09"}  # as drawn: no letter is narrower than it is
    curves = re.findall(r"M[\d.]+ [\d.]+l([\d.]+)-[\d.]+ ([\d.]+) [\d.]+\"", file)
    assert len(curves) == 2 and float(curves[1][0]) < 0.7 * float(curves[0][0])

    def crowded(axes):
        draw(axes)
        for x in range(8):
            axes.text(x / 4, 1.5, "a word or two")

    assert drawn(svg(crowded))[1].count("<img") == 1  # words would touch: it scrolls as it is


def test_paths_are_shorter_and_the_same():
    path = "M 10.04 -3.26 \nL 1.0 0.0004 \nL 2 1 \nQ 1 2 3 4.449 \nz\nM 1 1 \nL 0 3 \n"
    assert small(path, 1) == "M10-3.3l-9 3.3 1 1q-1 1 1 3.4zm-9 4.3l-1 2"
    marks = Drawing(svg(lambda axes: axes.plot(np.arange(9.0), "o")))
    before = len([e for e in marks.root.iter(f"{SVG}use") if e.get(LINK) and e.get("style")])
    file, _ = drawn(svg(lambda axes: axes.plot(np.arange(9.0), "o")))
    dots = re.search(r'd="((?:M[\d.]+ [\d.]+h0){9})"', file)
    assert before > 9 and dots and "stroke-linecap:round" in file
