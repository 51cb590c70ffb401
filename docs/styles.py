"""Style sheets of others without the rules for classes that no page and no script names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

SHEETS = ("styles/pydata-sphinx-theme.css", "styles/sphinx-book-theme.css", "mystnb*.css")
CLASS = re.compile(r"\.((?:[\w-]|\\.)+)")
INSIDE = re.compile(r"\[[^]]*]|\([^()]*\)")  # of a selector: [href], :not(...)
NESTED = ("@media", "@supports", "@layer", "@container")


def lighten(site: Path) -> None:
    """Write the style sheets anew, for the classes of this site alone."""
    words = words_of(site)
    for pattern in SHEETS:
        for path in (site / "_static").glob(pattern):
            css = path.read_text(encoding="utf-8")
            notices = re.findall(r"/\*!.*?\*/", css, re.S)
            path.write_text("\n".join([*notices, lean(css, words)]), encoding="utf-8")


def words_of(site: Path) -> set[str]:
    """All words of pages and scripts: the class of an element is one, unless it is put together."""
    files = [path for kind in ("html", "js") for path in site.rglob(f"*.{kind}")]
    files = [path for path in files if path.parent.name != "live"]
    return {w for path in files for w in re.findall(r"[\w-]+", path.read_text(encoding="utf-8"))}


def lean(css: str, words: set[str]) -> str:
    """A sheet without the rules for classes that are none of the words."""
    out = []
    for head, body in rules(css):
        if head.startswith(NESTED):
            inner = lean(body, words)
            out += [f"{head}{{{inner}}}"] if inner.strip() else []
        elif head.startswith("@"):
            out.append(f"{head}{{{body}}}" if body else head)
        else:
            one_by_one = re.split(r",(?![^(]*\))", head)
            left = [selector for selector in one_by_one if named(selector, words)]
            out += [f"{','.join(left)}{{{body}}}"] if left else []
    return "".join(out)


def named(selector: str, words: set[str]) -> bool:
    """Whether all classes that a selector asks for are words; those in brackets may be missing."""
    while (outside := INSIDE.sub("", selector)) != selector:
        selector = outside
    return all(name in words for name in classes(selector))


def classes(css: str) -> set[str]:
    """Names of classes in a selector or a sheet, as an element has them."""
    return {name.replace("\\", "") for name in CLASS.findall(css)}


def rules(css: str) -> Iterator[tuple[str, str]]:
    """Head and body of each rule; a statement, as `@import`, is a head alone."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.S)
    start = depth = 0
    head = ""
    for mark in re.finditer(r"[{};]", css):
        at = mark.start()
        if mark[0] == "{":
            depth += 1
            if depth == 1:
                head, start = css[start:at].strip(), at + 1
        elif mark[0] == "}":
            depth -= 1
            if depth == 0:
                yield head, css[start:at].strip()
                start = at + 1
        elif depth == 0:
            yield css[start : at + 1].strip(), ""
            start = at + 1
