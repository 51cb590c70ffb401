"""Formulas as MathML: what the converter does not know, and the font that draws them."""

import re

import maths
import pytest
from fontTools.ttLib import TTFont
from math_core import LatexError


def drawn(tex, display=True):
    """What a formula looks like, without its TeX."""
    return maths.ANNOTATION.sub("", maths.typeset(tex, display))


def test_a_formula_has_the_tex_that_it_was_written_as():
    tex = r"\begin{gathered}a<b\\[4pt]x\end{gathered}"
    escaped = tex.replace("<", "&lt;")
    assert f'<annotation encoding="application/x-tex">{escaped}</annotation>' in maths.typeset(tex)
    assert maths.typeset("x", True).startswith('<math display="block">')
    assert maths.typeset("x").startswith("<math>")


def test_signs_are_those_that_are_drawn():
    assert maths.signs(maths.typeset(r"\frac{a}{b}<\theta")) == "ab<θ"


@pytest.mark.parametrize("gap", ["4pt", "1ex", ".5em"])
def test_a_gap_between_rows_is_no_formula(gap):
    with_gap = drawn(rf"\begin{{gathered}}a\\[{gap}]b\end{{gathered}}")
    assert with_gap == drawn(r"\begin{gathered}a\\b\end{gathered}")
    assert with_gap.count("<mtr>") == 2


def test_a_bracket_after_a_row_stays():
    assert "[" in drawn(r"\begin{gathered}a\\[b]\end{gathered}")


def test_what_stands_below_a_sum_may_have_two_lines():
    found = drawn(r"\sum_{\substack{\text{walks of } c\\ j<k}}x")
    below = re.search(r"<munder>.*?</munder>", found)[0]
    assert below.count("<mtr>") == 2 and maths.signs(below) == "∑walks\xa0of\xa0cj<k"


def test_a_long_arrow_has_its_words_above():
    found = drawn(r"a\xrightarrow{\,L\to\infty\,}1")
    assert re.search(r"<mover><mo[^>]*>⟶</mo>", found)
    assert maths.signs(found) == "a⟶L→∞1"


@pytest.mark.parametrize("script", ["^2", "_p", "_p^2"])
def test_a_large_bracket_with_an_index_is_not_alone(script):
    """Alone, Chromium draws it in the size of a small one, and lower."""
    found = drawn(rf"\big(x\big){script}")
    assert re.search(r"<m(sup|sub|subsup)><mrow><mspace/><mo [^>]*minsize", found)
    assert "<mspace/><mo" not in drawn(rf"(x){script}")


def test_a_sign_between_words_has_room():
    """Between words alone, it would be taken for their part."""
    assert drawn(r"\text{left} = \text{right}").count("<mi></mi>") == 1
    assert "<mi></mi>" not in drawn(r"x = \text{right}")


def test_query_key_and_value_have_the_colours_of_figures():
    def coloured(tex):
        found = re.findall(r'<mi class="fig-(.)">(.)</mi>', drawn(tex))
        assert all(colour == letter for colour, letter in found)
        return "".join(letter for _, letter in found)

    assert coloured(r"q_i\cdot k_j\,v_j") == "qkv"
    assert coloured(r"q\cdot k+u\cdot k+v\cdot r") == "qkk"
    assert coloured("k+v") == coloured("q+v") == ""  # of something else


def test_a_script_letter_is_one_sign():
    assert maths.signs(drawn(r"\mathcal L")) == "ℒ"


def test_what_can_not_be_read_is_an_error():
    with pytest.raises(LatexError):
        maths.typeset(r"\nosuchcommand")


# ---- the font -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def font(tmp_path_factory):
    target = tmp_path_factory.mktemp("font") / maths.FONT
    maths.write_font(target, set("∑(′θ𝟏"))
    assert target.stat().st_size < 60_000
    return TTFont(target)


def test_the_font_has_the_signs_and_the_italic_letters(font):
    signs = font.getBestCmap()
    assert {ord(c) for c in "∑(√θ𝟏x𝑥𝜃ℎ"} <= set(signs)
    assert ord("∮") not in signs


def test_a_prime_is_as_low_as_an_exponent(font):
    """Browsers lift what is an exponent: the sign of the text, lifted again, would be too high."""
    glyph = font["glyf"][font.getBestCmap()[ord("′")]]
    assert glyph.yMin < 200


def test_indices_stand_on_one_line(font):
    """Whether the letter goes below the line, as q, or high above it, as k."""
    rules, glyphs, signs = font["MATH"].table.MathConstants, font["glyf"], font.getBestCmap()
    lowest, highest = glyphs[signs[ord("𝑞")]].yMin, glyphs[signs[ord("𝑘")]].yMax
    assert rules.SubscriptBaselineDropMin.Value - lowest < 70 + rules.SubscriptShiftDown.Value
    assert highest - rules.SuperscriptBaselineDropMax.Value <= rules.SuperscriptShiftUp.Value


def test_tall_brackets_and_roots_are_hardly_wider_than_short_ones(font):
    """Chromium leaves room for the widest of them beside each."""
    variants = font["MATH"].table.MathVariants
    seen = 0
    forms = zip(variants.VertGlyphCoverage.glyphs, variants.VertGlyphConstruction, strict=True)
    for name, form in forms:
        widths = [font["hmtx"][r.VariantGlyph][0] for r in form.MathGlyphVariantRecord]
        assert max(widths) <= 1.16 * font["hmtx"][name][0]
        seen += len(widths) > 3
    assert seen >= 2


def test_the_same_signs_make_the_same_font(tmp_path):
    for name in ("a", "b"):
        maths.write_font(tmp_path / name, {"x"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
