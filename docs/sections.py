"""What the search of the web book reads: every section, with the words that lead there.

A record is a section: where it is, its title and those around it, its prose, its code, and what the
short answers, *In short*, of its chapter say of it. `_static/search.js` ranks them.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import toc
from docutils import nodes
from sphinx import addnodes, search
from sphinx.application import Sphinx

# How much a match counts, by the kind of page and of section: explanations first.
PAGES = {"api/": 0.4, "GLOSSARY": 0.4, "CARDS": 0.4, "INDEX": 0.2, "changes": 0.2, "symbols": 0.4}
PAGES |= {"index": 0.3, "homework": 0.4, "SYMPTOMS": 0.9, "chapters/9": 0.2}
ENDS = {"Exercise": 0.5, "Further reading": 0.4, "In practice": 0.8}
SECOND_READING = 0.8
SKIP = {"genindex", "search", "py-modindex", "third_party"}  # nobody looks for words of licences
# TeX in an excerpt: a letter or a sign for a command, and nothing for the rest.
SIGNS = {
    "alpha": "α", "beta": "β", "delta": "δ", "Delta": "Δ", "theta": "θ", "lambda": "λ", "Phi": "Φ",
    "mu": "μ", "nu": "ν", "pi": "π", "phi": "φ", "psi": "ψ", "Psi": "Ψ", "rho": "ρ",
    "sigma": "σ", "omega": "ω", "infty": "∞", "sqrt": "√", "cdot": "·", "times": "×", "le": "≤",
    "ge": "≥", "ne": "≠", "approx": "≈", "in": "∈", "to": "→", "sum": "Σ", "dots": "…", "top": "ᵀ",
    "lfloor": "⌊", "rfloor": "⌋", "langle": "⟨", "rangle": "⟩",
    "exp": "exp", "sin": "sin", "cos": "cos", "tanh": "tanh", "max": "max", "min": "min",
    "softmax": "softmax", "bmod": "mod", "ldots": "…", "pm": "±", "mid": "|",
    "lVert": "‖", "rVert": "‖", "prime": "′",
}  # fmt: skip


def plain(tex: str) -> str:
    """A short formula as text: the root of d_k becomes √d_k."""
    tex = re.sub(r"\\frac\s*\{?(.+?)\}?\s*\{(.+?)\}", r"\1/\2", tex)
    tex = re.sub(r"\\[,;:! ]", " ", tex)
    tex = re.sub(r"\\(ln|log)\s*", r"\1 ", tex)
    tex = re.sub(r"\\([a-zA-Z]+)\s*", lambda m: SIGNS.get(m[1], ""), tex)
    return re.sub(r"[{}\\$~]|\^(?=ᵀ)", "", tex).strip()


def words(node: nodes.Node) -> Iterator[str]:
    """The prose of a node, without what lies in sections of its own, in code or in outputs."""
    for child in node.children:
        if isinstance(child, nodes.math):
            yield plain(child.astext())
        elif isinstance(child, nodes.Text):
            yield str(child)
        elif isinstance(child, (nodes.section, nodes.title, nodes.raw, addnodes.desc)):
            continue
        elif isinstance(child, (nodes.literal_block, nodes.math_block, addnodes.toctree)):
            continue
        elif "glossary" in child.get("classes", []) or child.get("nb_element"):
            continue
        else:
            yield from words(child)
            if isinstance(child, (nodes.paragraph, nodes.entry, nodes.term, nodes.list_item)):
                yield " "


def code(node: nodes.Node) -> Iterator[str]:
    """The code of a node, what it prints, and the texts of its pictures."""
    for child in node.children:
        if isinstance(child, (nodes.literal_block, nodes.math_block)):
            yield child.astext()
        elif isinstance(child, nodes.image):
            yield child.get("alt", "")
        elif not isinstance(child, (nodes.section, nodes.title, nodes.Text, addnodes.desc)):
            yield from code(child)


def names(node: nodes.Node) -> str:
    """Each name and word of the code of a node, once."""
    return " ".join(dict.fromkeys(re.findall(r"[A-Za-z_]\w{2,}", " ".join(code(node)))))


def one_line(parts: Iterator[str]) -> str:
    """All parts with single blanks."""
    return re.sub(r" (?=[.,;:])", "", " ".join("".join(parts).split()))


def title_of(section: nodes.Node) -> str:
    """The title of a section, without the number of a chapter and the mark of a second reading."""
    line = one_line(words(section[0]))
    return re.sub(r"^\d+\. ", "", line).removesuffix(toc.SECOND)


def marked(node: nodes.Node) -> str:
    """What stands in bold: a term where it is first explained."""
    found = []
    for strong in node.findall(nodes.strong):
        above = strong.parent
        while not isinstance(above, nodes.section):
            above = above.parent
        if above is node and strong.astext() != "Predict":
            found.append(one_line(words(strong)))
    return ", ".join(found)


def answers(page: nodes.document) -> dict[str, str]:
    """What the short answers of a chapter say, by the section to which each leads."""
    found: dict[str, str] = {}
    slugs = {s.get("slug"): s["ids"][0] for s in page.findall(nodes.section)}
    for section in page.findall(nodes.section):
        if title_of(section) != "In short":
            continue
        for item in section.findall(nodes.list_item):
            alone = item.deepcopy()
            for link in list(alone.findall(nodes.reference)):
                if link.get("refid"):  # "Shown", "padded": it leads to the section
                    link.parent.remove(link)
            text = re.sub(r"\s*\(\s*\)|(?<=[.?])(\s*[.,;])+(?=\s|$)", "", one_line(words(alone)))
            for link in item.findall(nodes.reference):
                target = slugs.get(link.get("refid"), link.get("refid"))
                if target and text not in found.get(target, ""):
                    found[target] = f"{found.get(target, '')}\n{text}".strip()
    return found


def records(name: str, page: nodes.document) -> Iterator[dict[str, Any]]:
    """All sections of a page; on some pages also each term, or each function."""
    file = f"{name}.html"
    top = next(iter(page.findall(nodes.section)), None)
    if top is None:
        return
    number = re.match(r"chapters/(\d\d)_", name)
    whole = (f"{int(number[1])}. " if number else "") + title_of(top)
    weight = next((w for part, w in PAGES.items() if part in name), 1.0)
    asked = answers(page)
    for section in page.findall(nodes.section):
        around: list[str] = []
        above = section.parent
        while isinstance(above, nodes.section) and above is not top:
            around.insert(0, title_of(above))
            above = above.parent
        title = title_of(section)
        end = next(
            (w for k, w in ENDS.items() if any(t.startswith(k) for t in [title, *around])), 1
        )
        if title == "In short" and number:
            end = 0.8
        elif section[0].astext().endswith(toc.SECOND):
            end = SECOND_READING
        record = {
            "url": file + ("" if section is top else f"#{section['ids'][0]}"),
            "title": title,
            "page": whole,
            "around": " · ".join(around),
            "text": one_line(words(section)),
            "asked": asked.get(section["ids"][0], ""),
            "bold": "" if title == "In short" else marked(section),
            "code": names(section),
            "weight": weight * end,
        }
        if record["text"] or record["code"] or section is top:
            yield record
    for item in page.findall(nodes.definition_list_item):
        term = item[0]
        if isinstance(item.parent.parent, addnodes.glossary):
            yield {
                "url": f"{file}#{term['ids'][0]}",
                "title": term.astext(),
                "page": whole,
                "around": "",
                "text": one_line(words(item[1])),
                "asked": "",
                "bold": "",
                "code": "",
                "weight": weight,
                "place": place_of(item[1]),
            }
    for item in page.findall(addnodes.desc):
        sign = item[0]
        if sign.get("ids") and item.get("objtype") in {"function", "class"}:
            yield {
                "url": f"{file}#{sign['ids'][0]}",
                "title": sign["fullname"],
                "page": whole,
                "around": "",
                "text": one_line(words(item[1])),
                "asked": "",
                "bold": "",
                "code": names(item[1]),
                "weight": weight,
            }


def place_of(entry: nodes.Node) -> str:
    """Where the book explains a term: page and heading, as its link has them."""
    for link in entry.findall(addnodes.pending_xref):
        return f"{link['reftarget']}.html#{link.get('reftargetid') or ''}".rstrip("#")
    return ""


def letters(url: str) -> str:
    """An address without signs: headings' ids are written in two ways."""
    return re.sub(r"[^a-z0-9#]", "", url.lower())


def collect(app: Sphinx) -> list[dict[str, Any]]:
    """All records of the book; terms know the section that explains them by its address."""
    assert app.env is not None
    found: list[dict[str, Any]] = []
    for name in sorted(app.env.found_docs):
        if name not in SKIP:
            found += records(name, app.env.get_doctree(name))
    known = {letters(record["url"]): record for record in found}
    for record in found:
        if "place" in record:
            explained = known[letters(record["place"])]
            record["place"] = explained["url"]
            if "#" in record["place"]:  # what the glossary says of a term leads there, too
                term = re.sub(r" \([^()]*\)$", "", record["title"])
                said = re.sub(r" \(chapter \d+\)$", "", record["text"])
                explained["said"] = f"{explained.get('said', '')} {term}: {said}".strip()
    return found


def named(found: list[dict[str, Any]]) -> None:
    """Give sections the names of names.csv: who types one of them, and no more, wants its place."""
    known = {letters(record["url"]): record for record in found}
    with (Path(__file__).parent / "names.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            stem, _, anchor = row["place"].partition("#")
            url = letters(f"chapters/{stem}.html" + (f"#{anchor}" if anchor else ""))
            if url not in known:
                raise ValueError(f"names.csv: no section {row['place']}: its heading was renamed?")
            known[url]["names"] = row["names"]


def write(app: Sphinx) -> None:
    """Write all records as a script, so that pages without a server can load them, too."""
    found = collect(app)
    named(found)
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    target = Path(app.outdir) / "_static" / "sections.js"
    stemmers = Path(search.__file__).parent / "minified-js"
    for file in ("base-stemmer.js", "english-stemmer.js"):
        shutil.copy(stemmers / file, target.parent / file)
    target.write_text(f"window.sections={text};\n", encoding="utf-8")


# ---- headings that were renamed ------------------------------------------------------------------


def key(anchor: str) -> str:
    """What an anchor's two forms share: a code host's has digits in front, and other signs."""
    return re.sub(r"^[^a-z]+|[^a-z0-9]", "", anchor.lower())


def renamed() -> Iterator[tuple[str, str, str, str]]:
    """The rows of anchors.csv: a page, an anchor that it had, the page and anchor of today."""
    with (Path(__file__).parent / "anchors.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            other = re.fullmatch(r"(\w+)\.(?:ipynb|md)(?:#(.+))?", row["new"])
            page, anchor = (other[1], other[2] or "") if other else (row["page"], row["new"])
            yield row["page"], row["old"], page, anchor


def write_moved(app: Sphinx) -> None:
    """Write where old anchors lead, as a script: `_static/book.js` asks for it when it needs it."""
    assert app.env is not None
    ids = {}
    for name in app.env.found_docs:
        for section in app.env.get_doctree(name).findall(nodes.section):
            ids[name, section.get("slug")] = section["ids"][0]
    found: dict[str, dict[str, str]] = {}
    for page, old, other, new in renamed():
        anchor = f"#{ids[f'chapters/{other}', new]}" if new else ""
        found.setdefault(page, {})[key(old)] = ("" if other == page else f"{other}.html") + anchor
    text = json.dumps(found, separators=(",", ":"))
    (Path(app.outdir) / "_static" / "moved.js").write_text(f"window.moved={text};\n", "utf-8")
