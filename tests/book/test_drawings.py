"""Figures of the web book: in the theme's colours, legible, cut for a phone."""

import io
import re
import xml.etree.ElementTree as ET

import matplotlib.pyplot as plt
import numpy as np
import pytest
from colours import (
    ENOUGH,
    NAMES,
    contrast,
    grounds_of_maps,
    leaves,
    legible,
    mixed,
    repaint,
    seen,
    theme,
    themed,
)
from drawings import LETTERS, PHONE, drawn, panels, without_letters
from reading import ROOT
from svg import LINK, SVG, Drawing, number, small

from pe_numpy.book.plots.style import COLOURS, READS

FIGURES = sorted(ROOT.glob("figures/*.svg"))
STYLE = {"font.size": 9, "axes.titlesize": 9, "figure.constrained_layout.use": True}
PAGE = seen("var(--fig-ground)")


@pytest.fixture(scope="module")
def all_drawn():
    """Each figure as the site has it."""
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


def least(text):
    """The width of each part of a figure at which its letters have 9 pixels."""
    found = [int(width) for width in re.findall(r"--least:(\d+)px", text)]
    return found[1:] or found


def test_most_figures_are_legible_on_a_phone_without_scrolling(all_drawn):
    fit = [name for name, text in all_drawn.items() if max(least(text)) <= PHONE]
    assert len(fit) >= 0.55 * len(all_drawn)
    before = [path for path in FIGURES if Drawing(path.read_text()).width <= PHONE]
    assert len(before) < 0.02 * len(all_drawn)


def test_a_figure_has_no_ground_and_nothing_that_is_not_seen(all_drawn):
    letters = {}
    for name, text in all_drawn.items():
        root = ET.fromstring(text)
        whole = next(e for e in root if e.get("class") == "whole")
        left, top, width, height = (float(x) for x in whole.get("viewBox").split())
        assert (left, top) == (0, 0) and "metadata" not in text, name
        assert len(without_letters(text, letters)) < 150_000, name
        for path in root.iter(f"{SVG}path"):
            ground = path.get("d", "").startswith(f"M0 {number(height, 1)}L{number(width, 1)}")
            assert not ground, name
        links = {e.get("href")[1:] for e in root.iter() if e.get("href", "").startswith("#")}
        links |= set(re.findall(r"url\(#(\w+)\)", text))
        ids = [e.get("id") for e in root.iter() if e.get("id")]
        assert len(ids) == len(set(ids)) and links <= set(ids), name
        assert all(label for e in root for label in [e.get("aria-label") or e.get("aria-hidden")])
    short = [without_letters(text, {}) for text in all_drawn.values()]
    assert sum(map(len, short)) < 25_000 * len(FIGURES) and not any('id="g' in t for t in short)
    used = {link for text in short for link in re.findall(r'href="#(g\w+)"', text)}
    assert used == letters.keys() and len(letters) < 300  # once for all figures of a page


def test_all_words_have_contrast_in_light_and_dark():
    pale = plates = 0
    for path in FIGURES:
        drawing = Drawing(path.read_text(encoding="utf-8"))
        plates += next(grounds_of_maps(drawing), None) is not None
        before = [e.get("style", "") for kind, e in leaves(drawing.root) if kind == "words"]
        said = repaint(drawing)
        after = [e.get("style", "") for kind, e in leaves(drawing.root) if kind == "words"]
        for colour, grounds in said:
            for shown, ground in zip(seen(colour), grounds, strict=True):
                assert contrast(shown, ground) >= ENOUGH, (path.stem, colour, ground)
        assert len(said) > 2 and {*after} == {f"fill: {colour}" for colour, _ in said}
        for style, (_, grounds) in zip(before, said, strict=True):
            drew = re.search(r"fill: ?(#\w{6})", style)
            pale += contrast(seen(drew[1] if drew else "#000000")[0], grounds[0]) < ENOUGH
    assert pale > 50  # there was something to do
    assert plates < 12  # other figures have the book's colours


def test_the_style_sheet_has_each_colour_for_light_and_dark():
    light, dark = theme()
    assert light.keys() == dark.keys() >= {*NAMES.values(), "ink", "ground", "q", "k", "v"}
    for name, drew in {**COLOURS, **READS}.items():
        assert light[name.replace("_", "-")] == drew.lower()  # in the light, as it was drawn
    for name in {*NAMES.values()}:
        assert contrast(seen(f"var(--fig-{name})")[1], PAGE[1]) >= ENOUGH
    formulas = (ROOT / "docs/_static/maths.css").read_text(encoding="utf-8")
    for name in "qkv":
        colours = seen(mixed(name, 80, "ink"))
        assert all(contrast(*both) >= ENOUGH for both in zip(colours, PAGE, strict=True))
        ink = f"color-mix(in srgb, var(--fig-{name}) 80%, var(--fig-ink))"
        assert f".fig-{name} {{ color: {ink}; }}" in formulas
    for pale in ("#ffffff", "#f2f2f2", "#eeeeee", "#dddddd", "#f0d5d8", "#bfe0c6"):
        in_light, in_dark = seen(themed(pale))
        assert contrast(in_light, PAGE[0]) < 1.7 and contrast(in_dark, PAGE[1]) < 2  # no slab
        assert all(abs(a - b) < 10 for a, b in zip(in_light, seen(pale)[0], strict=True))
    assert legible("#000000", PAGE) == "var(--fig-ink)" == themed("#000000")
    assert "yellow" in legible("#ddcc77", PAGE) and legible("#ddcc77", PAGE) != themed("#ddcc77")
    assert contrast((255, 255, 255), (0, 0, 0)) == pytest.approx(21)


def test_a_colour_map_keeps_its_colours_and_its_scale():
    data = np.arange(20.0).reshape(4, 5)

    def draw(axes):
        image = axes[0].imshow(data)
        axes[0].text(0, 0, "dark", color="white")
        axes[0].text(4, 3, "bright", color="white", ha="center")  # can't be read
        plt.colorbar(image, ax=axes[0])
        axes[1].scatter(data[0], data[1], c=data[2])
        axes[1].text(1, 7, "on a plate")
        axes[2].plot(data[0], color="#117733")

    text = svg(draw, columns=3)
    page = drawn(text)
    before = {"".join(link.split()) for link in re.findall(r'"(data:[^"]+)"', text)}
    assert len(before) == 2 and {*re.findall(r'"(data:[^"]+)"', page)} == before
    assert "#440154" in page.lower() and page.count("fill:#fff") >= 2  # a mark; "dark" and a plate
    drawing = Drawing(text)
    colours = [colour for colour, _ in repaint(drawing) if colour[0] == "#"]
    assert sorted(colours) == ["#000000", "#000000", "#ffffff"]
    assert "stroke:var(--fig-rope)" in page


def test_cells_in_the_books_colours_are_no_image():
    colours = np.array([[(17, 119, 51), (240, 213, 216)], [(240, 213, 216), (17, 119, 51)]])
    page = drawn(svg(lambda axes: axes.imshow(colours.astype(np.uint8))))
    assert "data:" not in page and page.count("crispEdges") in (1, 2, 4)
    assert "var(--fig-rope)" in page and "var(--fig-t5) 28%" in page


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
    page = drawn(text)
    assert page.count('class="panel"') == 3 and max(least(page)) < PHONE
    view = [float(x) for x in re.findall(r'viewBox="([^"]*)" role="img"', page)[-1].split()]
    assert view[2] * LETTERS / 9 <= least(page)[-1] + 1
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


def test_paths_are_shorter_and_the_same():
    path = "M 10.04 -3.26 \nL 1.0 0.0004 \nL 2 1 \nQ 1 2 3 4.449 \nz\nM 1 1 \nL 0 3 \n"
    assert small(path, 1) == "M10-3.3L1 0L2 1Q1 2 3 4.4zM1 1L0 3"
    text = svg(lambda axes: axes.plot(np.arange(9.0), "o"))
    before = len(
        [e for e in Drawing(text).root.iter(f"{SVG}use") if e.get(LINK) and e.get("style")]
    )
    dots = re.search(r'd="((?:M[\d.]+ [\d.]+h0){9})"', drawn(text))
    assert before > 9 and dots and "stroke-linecap:round" in drawn(text)
