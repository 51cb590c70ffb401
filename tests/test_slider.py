"""Sliders: the numbers of each frame, the first picture, labels; equal input gives equal text."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from pe_numpy.book.slider import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, slider

X = np.linspace(0, 10, 6)


def lines(m, c):
    return {"line": (X, m * X + c), "flat": (X[[0, -1]], [c, c])}, f"slope {m} < 9"


def made(**options):
    controls = {"slope": [0, 1, 2], "shift": [0.0, 5.0]}
    return slider("two lines", controls, lines, ("x", "y"), (0, 10, 0, 20), **options)


def frames(markup):
    return json.loads(re.search(r'application/json">(.*?)</script>', markup, re.S)[1])


def coordinates(points):
    return np.array([p.split(",") for p in points.split()], float)


def test_each_frame_holds_the_curves_of_its_setting():
    all_frames = frames(made()._repr_html_())
    assert len(all_frames) == 6
    for n, (m, c) in enumerate([(0, 0), (0, 5), (1, 0), (1, 5), (2, 0), (2, 5)]):
        (line, flat), note = all_frames[n]
        x, y = coordinates(line).T
        back = (HEIGHT - BOTTOM - y) / (HEIGHT - TOP - BOTTOM) * 20
        np.testing.assert_allclose((x - LEFT) / (WIDTH - LEFT - RIGHT) * 10, X, atol=0.01)
        inside = m * X + c <= 25
        np.testing.assert_allclose(back[inside], (m * X + c)[inside], atol=0.05)
        assert len(coordinates(flat)) == 2 and note == f"slope {m} < 9"


def test_the_picture_without_scripts_is_the_frame_to_start_with():
    markup = made(start=(2, 1))._repr_html_()
    svg = ElementTree.fromstring(re.search(r"<svg.*?</svg>", markup, re.S)[0])
    drawn = [line.get("points") for line in svg.iter("polyline")]
    assert drawn == frames(markup)[5][0]
    assert svg.get("role") == "img" and svg.get("aria-label") == "two lines"
    assert re.findall(r'value="(\d)"', markup) == ["2", "1"]


def test_each_control_has_a_label_and_its_values():
    markup = made()._repr_html_()
    for key, name in re.findall(r'<label for="(\S+?)".*?>(\w+)</label>', markup):
        assert f'<input id="{key}" type="range"' in markup and name in ("slope", "shift")
    assert markup.count("<label") == markup.count("<input") == 2
    assert "[&quot;0&quot;, &quot;1&quot;, &quot;2&quot;]" in markup


def test_equal_input_gives_equal_text_and_other_input_another_name():
    assert made()._repr_html_() == made()._repr_html_()
    other = slider("three", {"m": [1]}, lambda m: lines(m, 0), ("x", "y"))
    assert re.search('id="(.*?)"', made()._repr_html_())[1] not in other._repr_html_()
    assert repr(made()) == "two lines: slope from 0 to 2, shift from 0.0 to 5.0 (6 frames)"


def test_no_frame_can_break_out_of_its_text():
    broken = slider("</script>", {"a": [1]}, lambda a: ({"</b>": (X, X)}, "</script>"), ("<", ">"))
    markup = broken._repr_html_()
    assert markup.count("</script>") == 2 and "</b>" not in markup


def test_nothing_is_asked_from_elsewhere():
    assert "http" not in made()._repr_html_()


@pytest.mark.parametrize("controls", [{}, {"a": []}])
def test_a_slider_without_values_is_refused(controls):
    with pytest.raises(ValueError, match="at least one value"):
        slider("none", controls, lambda *a: ({}, ""), ("x", "y"))


def test_frames_with_other_curves_are_refused():
    with pytest.raises(ValueError, match=r"all frames must have the curves \['1'\]"):
        slider("f", {"a": [1, 2]}, lambda a: ({str(a): (X, X)}, ""), ("x", "y"))


def test_a_tick_at_zero_has_no_sign():
    def curves(k):
        return {"y": ([0, 1], [-0.2, k])}, ""

    markup = slider("", {"k": [5]}, curves, ("x", "y"), (0, 1, -0.2, 5.4))._repr_html_()
    assert ">0<" in markup and ">-0<" not in markup
