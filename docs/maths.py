"""Formulas as MathML: typeset when the book is built, so that the reader's browser need not.

`math-core` turns TeX into MathML, which every browser now draws without a script. The TeX stays
beside it, as an annotation: `_static/book.js` hands it out when a formula is copied. The letters
are those of the font STIX Two Math, of which the site has what its formulas use;
`_static/maths.css` names it.
"""

from __future__ import annotations

import html
import importlib.util
import re
from pathlib import Path

from docutils import nodes
from fontTools import subset
from fontTools.ttLib import TTFont
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
FONT = "maths.woff"
CONVERTER = LatexToMathML(annotation=True, fancy_error=False)
# What `math-core` does not know, in words that it knows.
REWRITTEN = (
    (r"\\\\\[[\d.]+(?:pt|ex|em)\]", r"\\\\"),  # a gap between rows: browsers leave one anyway
    (r"\\substack\{((?:[^{}]|\{[^{}]*\})*)\}", r"\\begin{subarray}{c}\1\\end{subarray}"),
    (r"\\xrightarrow\{([^{}]*)\}", r"\\;\\overset{\1}{\\longrightarrow}\\;"),
)
# What browsers take otherwise than TeX: a large bracket with an exponent has its size only if
# something stands beside it, and a sign has room around it only if something but words does.
MENDED = (
    (r"<(msup|msub|msubsup)>(<mo [^>]*minsize[^>]*>[^<]*</mo>)", r"<\1><mrow><mspace/>\2</mrow>"),
    (r"<mrow>((?:<mtext>[^<]*</mtext><mo>[^<]*</mo>)+<mtext>[^<]*</mtext>)</mrow>",
     r"<mrow>\1<mi></mi></mrow>"),
    ("[\ufe00\ufe01]", ""),  # which of two forms a script letter has: the font has one
)  # fmt: skip
ANNOTATION = re.compile(r"(<annotation[^>]*>).*?(</annotation>)", re.S)
WIDE = 20  # signs: with as many, a formula in a line may be wider than a phone, and scrolls
# Browsers take italic letters from these places; an h and a root have places of their own.
ITALIC = {*range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C), 0x210E}
ALWAYS = {*range(32, 127), 0x221A}
PRIMES = {0x2032: "minute.ssty", 0x2033: "second.ssty", 0x2034: "uni2034.ssty"}
GROWTH = 1.15  # by which a tall bracket or root may be wider than a short one


def typeset(tex: str, display: bool = False) -> str:
    """TeX as MathML, with the TeX as it was written."""
    known = tex
    for pattern, instead in REWRITTEN:
        known = re.sub(pattern, instead, known)
    found = CONVERTER.convert_with_local_state(known, displaystyle=display)
    for pattern, instead in MENDED:
        found = re.sub(pattern, instead, found)
    if "<mi>q</mi>" in found and "<mi>k</mi>" in found:  # in figures they have these colours, too
        letters = "qk" if "<mi>u</mi>" in found else "qkv"  # beside u, v is no value
        found = re.sub(f"<mi>([{letters}])</mi>", r'<mi class="fig-\1">\1</mi>', found)
    source = html.escape(tex, quote=False)
    return ANNOTATION.sub(lambda m: m[1] + source + m[2], found)


def signs(mathml: str) -> str:
    """The signs that a formula draws."""
    return html.unescape(re.sub(r"<[^>]+>", "", ANNOTATION.sub("", mathml)))


def visit_inline(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    formula = read(writer, node, display=False)
    if len(signs(formula)) >= WIDE:
        formula = f'<span class="formula">{formula}</span>'
    writer.body.append(formula)
    raise nodes.SkipNode


def visit_display(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula that stands by itself."""
    writer.body.append(f'<div class="formula">{read(writer, node, display=True)}</div>\n')
    raise nodes.SkipNode


def read(writer: HTML5Translator, node: nodes.Element, display: bool) -> str:
    """The formula of a node; a warning, which is an error, if it can't be read."""
    try:
        return typeset(node.astext(), display)
    except LatexError as error:
        LOGGER.warning("formula %r: %s", node.astext(), error, location=node)
        return ""


def hold(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Keep what follows a formula on its line: a comma, a full stop, a bracket."""
    for formula in list(doctree.findall(nodes.math)):
        after = formula.next_node(descend=False, siblings=True)
        stop = isinstance(after, nodes.Text) and re.match(r"[,.;:?!)]+", after)
        if stop:
            pair = nodes.inline("", "", classes=["nowrap"])
            formula.parent.replace(after, nodes.Text(after[stop.end() :]))
            formula.parent.replace(formula, pair)
            pair += [formula, nodes.Text(stop[0])]


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write the font, with the signs that are on some page."""
    if error is None:
        pages = (path.read_text(encoding="utf-8") for path in Path(app.outdir).rglob("*.html"))
        found = (re.findall(r"<math.*?</math>", page, re.S) for page in pages)
        drawn = {sign for page in found for formula in page for sign in signs(formula)}
        write_font(Path(app.outdir) / "_static" / FONT, drawn)


def write_font(target: Path, characters: set[str]) -> None:
    """Write the part of the font that draws some characters, as browsers need it.

    TeX places an index by the box of what it belongs to, unless this is a letter; browsers do so
    for letters, too. With TeX's own two numbers for boxes, the index of q is as low as that of k.
    """
    place = importlib.util.find_spec("ziamath")
    assert place is not None and place.origin is not None
    options = subset.Options(flavor="woff", hinting=False, glyph_names=False, layout_features=[])
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes={*map(ord, characters), *ITALIC, *ALWAYS})
    with TTFont(Path(place.origin).parent / "fonts" / "STIXTwoMath-Regular.ttf") as font:
        for table in font["cmap"].tables:  # a prime is an exponent, and drawn as one
            table.cmap = table.cmap | {c: g for c, g in PRIMES.items() if c in table.cmap}
        rules = font["MATH"].table.MathConstants
        rules.SubscriptBaselineDropMin.Value = 50
        rules.SuperscriptBaselineDropMax.Value = 386
        subsetter.subset(font)
        narrow(font)
        subset.save_font(font, target, options)


def narrow(font: TTFont) -> None:
    """Make the tall forms of brackets and roots as narrow as the short ones, or nearly so.

    Chromium leaves room beside each for the widest of its forms.
    """
    variants = font["MATH"].table.MathVariants
    names, forms = variants.VertGlyphCoverage.glyphs, variants.VertGlyphConstruction
    for name, form in zip(names, forms, strict=True):
        parts = form.GlyphAssembly.PartRecords if form.GlyphAssembly else []
        tall = {r.VariantGlyph for r in form.MathGlyphVariantRecord} | {p.glyph for p in parts}
        for other in sorted(tall - {name}):
            width, left = font["hmtx"][other]
            factor = min(1, GROWTH * font["hmtx"][name][0] / width)
            glyph = font["glyf"][other]
            glyph.coordinates.scale((factor, 1))
            glyph.recalcBounds(font["glyf"])
            font["hmtx"][other] = (round(width * factor), round(left * factor))


def setup(app: Sphinx) -> dict[str, bool]:
    """Join Sphinx's build."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    app.connect("doctree-resolved", hold)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
