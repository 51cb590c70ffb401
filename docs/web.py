"""What the web book adds to Sphinx: links between code and chapters, folds, a lighter site."""

from __future__ import annotations

import ast
import base64
import io
import json
import re
import shutil
from html import escape
from pathlib import Path
from typing import Any

import sections
import styles
import toc
from docutils import nodes
from PIL import Image
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

import pe_numpy
from pe_numpy.contents import chapter_of, functions_of

# Icons come from the theme's font; the script that draws them once more has 1.5 MB.
ICON_SCRIPT = re.compile(
    r'\s*<!--[^>]*custom icons -->\s*<script defer src="[^"]*fontawesome.js[^>]*>'
    r"</script>"
)
ARROW = '<summary><span class="toctree-toggle"'  # in the side bar; has no name for those who listen
UNUSED = (
    "locales",
    "language_data.js",
    "scripts/fontawesome.js*",
    "searchtools.js",
    "vendor/fontawesome/webfonts/fa-brands*",
    "**/*.map",
    "*.html",
)
# What folds a cell has a text of its own.
NAMELESS = '<summary aria-label="Toggle hidden content">'
# The side bars are landmarks.
BARS = {
    '<div id="pst-primary-sidebar"': ' role="navigation" aria-label="The book"',
    '<div id="pst-secondary-sidebar"': ' role="navigation" aria-label="This page"',
}
NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
FOR_ALL = "Positional encodings and Transformers from scratch in NumPy: a textbook that runs."
FULL_NAMES = {n: f"{getattr(pe_numpy, n).__module__}.{n}" for n in pe_numpy.__all__}
# Names, operators and blanks look like plain code in both styles: no need to mark each of them.
PLAIN = re.compile(r'<span class="(?:n|p|w|o|nn|kn)">([^<]*)</span>')


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write what the search reads and the notebooks to fetch; take out what no reader needs."""
    if error is None:
        sections.write(app)
        sections.write_moved(app)
        slim(Path(app.outdir))
        styles.lighten(Path(app.outdir))
        hand_out_notebooks(Path(app.outdir))


def no_own_search(app: Sphinx) -> None:
    """Write no index of Sphinx's own search: `sections` writes another."""
    app.builder.search = False


def slim(out: Path) -> None:
    """Take out what no reader needs: other languages, marks of plain code, unused colours."""
    for pattern in UNUSED:
        for path in list((out / "_static").glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in out.rglob("*.html"):
        text = PLAIN.sub(r"\1", path.read_text(encoding="utf-8"))
        text = ICON_SCRIPT.sub("", text).replace(NAMELESS, "<summary>")
        text = text.replace(ARROW, f'<summary aria-label="Unfold">{ARROW[9:]}')
        for bar, landmark in BARS.items():
            text = text.replace(bar, bar + landmark)
        path.write_text(text, encoding="utf-8")


def fewer_colours(png: bytes, colours: int = 128) -> bytes:
    """A figure in few colours: a fraction of its size."""
    out = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        small = picture.convert("RGB").quantize(colours, dither=Image.Dither.NONE)
    small.save(out, "PNG", optimize=True)
    return out.getvalue()


def hand_out_notebooks(out: Path) -> None:
    """Write the chapters as notebooks to fetch, with their figures in fewer colours."""
    (out / "_downloads").mkdir(exist_ok=True)
    for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        outputs = [o for cell in notebook["cells"] for o in cell.get("outputs", [])]
        for data in (output.get("data", {}) for output in outputs):
            if "image/png" in data:
                picture = fewer_colours(base64.b64decode(data["image/png"]))
                data["image/png"] = base64.b64encode(picture).decode()
        text = json.dumps(notebook, ensure_ascii=False, indent=1)
        (out / "_downloads" / path.name).write_text(text + "\n", encoding="utf-8")


def link_functions(app: Sphinx, doctree: nodes.document) -> None:
    """Make a link to the reference of each public function that is named in `code`.

    A chapter ends with those that it derives.
    """
    number = re.match(r"chapters/(\d\d)_", app.env.current_document.docname)
    names = functions_of(int(number[1])) if number else []
    if names:
        line = nodes.paragraph("", "Reference: ", classes=["reference-line"])
        for n, name in enumerate(names):
            line += [nodes.Text(", " if n else ""), nodes.literal(name, name)]
        next(iter(doctree.findall(nodes.section))).append(line)
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


def link_papers(app: Sphinx, doctree: nodes.document) -> None:
    """Make a link of each arXiv id."""
    for text in list(doctree.findall(nodes.Text)):
        parent = text.parent
        if isinstance(
            parent, nodes.reference | nodes.literal | nodes.literal_block | nodes.raw | nodes.title
        ):
            continue
        parts = re.split(r"(arXiv:\d{4}\.\d{4,5})", str(text))
        if len(parts) > 1:
            new: list[nodes.Node] = []
            for part in parts:
                if part.startswith("arXiv:"):
                    uri = f"https://arxiv.org/abs/{part.removeprefix('arXiv:')}"
                    new.append(nodes.reference("", part, refuri=uri))
                elif part:
                    new.append(nodes.Text(part))
            parent.replace(text, new)


def fold_sources(app: Sphinx, doctree: nodes.document) -> None:
    """Colour what `show_source` and `show_short` print, and fold it under its functions' names."""
    for cell in doctree.findall(nodes.container):
        of_code = cell.get("nb_element") == "cell_code"
        if not of_code or not re.search(r"show_(source|short)\(", cell[0].astext()):
            continue
        for output in list(cell.findall(nodes.literal_block)):
            if "stream" not in output.get("classes", []):
                continue
            before, source, after = split_source(output.astext())
            if not source:
                continue
            parts: list[nodes.Node] = []
            for text, language in ((before, ""), (source, "python"), (after, "")):
                if text.strip():
                    part = output.deepcopy()
                    part.rawsource = text.strip("\n")
                    part[:] = [nodes.Text(part.rawsource)]
                    part["language"] = language or output["language"]
                    parts += folded(part) if language else [part]
            output.parent.replace(output, parts)


def fold_second(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Fold what a first reader may skip: the heading stays, and unfolds the rest of its section."""
    for section in doctree.findall(nodes.section):
        if section[0].astext().endswith(toc.SECOND):
            heads = ('<details class="second"><summary>', "</summary>", "</details>")
            before, after, end = (nodes.raw("", text, format="html") for text in heads)
            section[:] = [before, section[0], after, *section[1:], end]


def split_source(text: str) -> tuple[str, str, str]:
    """What a cell printed before some functions, these, and what it printed after them."""
    lines = text.split("\n")
    own = [bool(re.match(r"(?:def|class) \w|@\w|[)\]}]", line)) for line in lines]
    inside = [own[n] or not line or line[0] == " " for n, line in enumerate(lines)]
    first = own.index(True) if any(own) else len(lines)
    last = next((n for n in range(first, len(lines)) if not inside[n]), len(lines))
    source = "\n".join(lines[first:last])
    try:
        ast.parse(source)
    except SyntaxError:
        return text, "", ""
    return "\n".join(lines[:first]), source, "\n".join(lines[last:])


def folded(block: nodes.literal_block) -> list[nodes.Node]:
    """Code in a part that unfolds."""
    names = ", ".join(re.findall(r"^(?:def|class) (\w+)", block.astext(), re.M))
    head = f'<details class="source"><summary>Source of {names}</summary>'
    ends = [nodes.raw("", text, format="html") for text in (head, "</details>")]
    return [ends[0], block, ends[1]]


def offer_notebook(app: Sphinx, doctree: nodes.document) -> None:
    """Below the title of a chapter, a link that fetches its notebook."""
    stem = app.env.current_document.docname.removeprefix("chapters/")
    if re.match(r"\d\d_", stem):
        needs = next(p for p in doctree.findall(nodes.paragraph) if " minutes." in p.astext())
        link = f'<a class="notebook" download href="../_downloads/{stem}.ipynb">'
        needs += nodes.raw("", f" {link}Fetch the notebook.</a>", format="html")


def join_returns(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """One line for each thing that is returned: numpydoc would take every line for another."""
    text = "\n".join(lines)
    found = re.search(r"^(?:Returns|Yields)\n-+\n((?:\S.*\n?)+)", text, re.M)
    if found is not None:
        entries = re.split(r"\n(?=\w+ : )", found[1])
        joined = "\n".join(" ".join(entry.split()) for entry in entries)
        lines[:] = (text[: found.start(1)] + joined + "\n" + text[found.end(1) :]).split("\n")


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


def describe(
    app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Say to those who show a link what it leads to: its benefit, its question, a picture.

    Most of them want the picture's whole address, which a site has if it is built with
    ``-D html_baseurl=...``; without it the address is relative.
    """
    if doctree is None:
        return
    chapter = toc.chapters().get(name.removeprefix("chapters/"))
    said = {"og:type": "article" if chapter else "website", "og:site_name": app.config.project}
    said["og:title"] = sections.title_of(next(doctree.findall(nodes.section)))
    if chapter:
        said["og:title"] = context["title"] = chapter["benefit"]
    said["og:description"] = chapter["question"] if chapter else FOR_ALL
    first = next((node["png"] for node in doctree.findall(nodes.raw) if "png" in node), None)
    picture = f"_images/{first.name}" if first else "_static/00_four_places.png"
    if first:  # the page has it as a drawing
        (Path(app.outdir) / "_images").mkdir(exist_ok=True)
        (Path(app.outdir) / picture).write_bytes(fewer_colours(first.read_bytes(), 16))
    site = app.config.html_baseurl
    said["og:image"] = (
        f"{site.rstrip('/')}/{picture}" if site else "../" * name.count("/") + picture
    )
    tags = [f'<meta property="{key}" content="{escape(text)}" />' for key, text in said.items()]
    tags.append(f'<meta name="description" content="{escape(said["og:description"])}" />')
    context["metatags"] = "\n".join([context.get("metatags", ""), *tags])


def setup(app: Sphinx) -> dict[str, bool]:
    """Join Sphinx's build."""
    app.connect("html-page-context", describe)
    app.connect("doctree-read", link_functions)
    app.connect("doctree-read", link_papers)
    app.connect("doctree-read", fold_sources)
    app.connect("doctree-read", offer_notebook)
    app.connect("doctree-resolved", fold_second)
    app.connect("builder-inited", no_own_search)
    app.connect("autodoc-process-docstring", join_returns, priority=100)  # before numpydoc
    app.connect("autodoc-process-docstring", add_chapter, priority=900)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
