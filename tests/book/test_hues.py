"""An encoding's hue says where position enters; a line and a mark tell those of one place apart."""

import colorsys
import itertools

import matplotlib.pyplot as plt
import pytest
from colours import contrast, rgb, seen

from pe_numpy.book.plots.style import COLOURS, HUES, LOOKS, READS, SCORE, look
from pe_numpy.transformer.encodings import SCHEMES

DRAWN = {name: SCHEMES[name].place for name in LOOKS}
IN_DARK = {name: seen(f"var(--fig-{name.replace('_', '-')})")[1] for name in LOOKS}


def hue(colour):
    """Degrees on the circle of hues."""
    return 360 * colorsys.rgb_to_hsv(*(c / 255 for c in colour))[0]


def apart(one, other):
    """Degrees between two hues."""
    return abs((hue(one) - hue(other) + 180) % 360 - 180)


def test_an_encoding_has_the_hue_of_its_place_and_no_other():
    for name, place in DRAWN.items():
        for colour in (rgb(COLOURS[name]), IN_DARK[name]):
            grey = max(colour) == min(colour)
            assert grey == (place == 0), name
            for other in {*HUES} - {0} if place else ():
                near = apart(colour, rgb(HUES[other])) < 25
                assert near == (other == place), (name, other)


def test_encodings_of_one_place_differ_in_light_in_line_and_in_mark():
    assert {COLOURS[name] for name in DRAWN if DRAWN[name] == 3} == {*SCORE}
    assert len({*LOOKS.values()}) == len(LOOKS)
    for one, other in itertools.combinations(LOOKS, 2):
        if DRAWN[one] == DRAWN[other]:
            assert LOOKS[one][1:] != LOOKS[other][1:]
            assert LOOKS[one][2] != LOOKS[other][2]  # where there is no line
            assert contrast(rgb(COLOURS[one]), rgb(COLOURS[other])) > 1.2
            assert contrast(IN_DARK[one], IN_DARK[other]) > 1.15
    drawn = plt.figure().add_subplot().plot([0, 1], **look("deberta", ms=9))[0]
    assert (drawn.get_color(), drawn.get_linestyle(), drawn.get_marker()) == LOOKS["deberta"]
    assert drawn.get_markersize() == 9
    plt.close()


@pytest.mark.parametrize("read", READS)
def test_what_attention_reads_has_a_colour_of_its_own(read):
    for name in COLOURS:
        both = rgb(READS[read]), rgb(COLOURS[name])
        assert apart(*both) > 20 or contrast(*both) > 2, name
