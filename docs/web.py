"""What the web book adds to Sphinx: MathJax from a wheel, and links between code and chapters."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from PIL import Image
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

import pe_numpy
from pe_numpy.homework.contents import chapter_of

MATHJAX = ("tex-chtml.js", "output/chtml")  # a twelfth of the whole
FULL_NAMES = {n: f"{getattr(pe_numpy, n).__module__}.{n}" for n in pe_numpy.__all__}
# Names, operators and blanks look like plain code in both styles: no need to mark each of them.
PLAIN = re.compile(r'<span class="(?:n|p|w|o|nn|kn)">([^<]*)</span>')


def finish(app: Sphinx, error: Exception | None) -> None:
    """Copy MathJax, so that no page asks another server for it; take out what no reader needs."""
    if error is not None:
        return
    out = Path(app.outdir)
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    assert spec is not None and spec.origin is not None
    for part in MATHJAX:
        source = Path(spec.origin).parent / "static" / "mathjax" / part
        target = out / "_static" / "mathjax" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)
    for path in out.rglob("*.map"):
        path.unlink()
    for path in out.rglob("*.html"):
        path.write_text(PLAIN.sub(r"\1", path.read_text(encoding="utf-8")), encoding="utf-8")
    for path in (out / "_images").glob("*.png"):
        with Image.open(path) as picture:
            picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def link_functions(app: Sphinx, doctree: nodes.document) -> None:
    """Make a link to the reference of each public function that is named in `code`."""
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext().removesuffix("()")
        parent = literal.parent
        if name not in FULL_NAMES or isinstance(parent, nodes.reference | pending_xref):
            continue
        if any(isinstance(p, nodes.title) for p in (parent, parent.parent)):
            continue
        link = pending_xref(
            "", refdomain="py", reftype="obj", reftarget=FULL_NAMES[name], refexplicit=True
        )
        parent.replace(literal, link)
        link += literal


def add_chapter(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Lead from a function to the chapter that derives it; shapes such as (*batch, D) are plain."""
    lines[:] = [re.sub(r"\((\*+)(?=\w)", lambda m: "(" + r"\*" * len(m[1]), x) for x in lines]
    if what == "module":  # its five parts as paragraphs
        part = r"^(Axes|Symbols|Convention|Differs)\b"
        lines[:] = [y for x in lines for y in (["", x] if re.match(part, x) else [x])]
    short = name.rpartition(".")[2]
    if FULL_NAMES.get(short) == name:
        chapter = chapter_of(short)
        page = next((Path(app.srcdir) / "chapters").glob(f"{chapter:02}_*.ipynb"), None)
        if page is None:
            return
        lines += ["", f"Derived and shown in :doc:`chapter {chapter} </chapters/{page.stem}>`.", ""]


def setup(app: Sphinx) -> dict[str, bool]:
    """Join Sphinx's build."""
    app.set_html_assets_policy("always")  # titles with formulas stand in every side bar
    app.connect("doctree-read", link_functions)
    app.connect("autodoc-process-docstring", add_chapter, priority=900)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
