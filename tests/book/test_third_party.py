"""Third parties: each file that others made has a row in THIRD_PARTY.md, and each row its licence.

What is looked for, in the repository: files of a kind, or at a place, that our own do not have, and
notices of others (copyright, licence, permission) in texts of ours. In the pages: every file below
`_static` that `docs/_static` and `figures` do not have (`test_web.py` looks at a built site); and
every file that Python in the pages needs.
"""

import re
import zipfile
from fnmatch import fnmatchcase
from importlib.metadata import distribution

import live
import pytest
from reading import ROOT, tables

PAGE = (ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8")
HEAD, _, TEXTS = PAGE.partition("\n## Texts\n")
IN_REPOSITORY, IN_PAGES, IN_PYTHON = (rows for _, rows in tables(HEAD))
SECTIONS = {
    name: "\n".join(re.findall(r"```text\n(.*?)\n```", text, re.S))
    for name, text in re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", TEXTS, re.M | re.S)
}
# What we wrote, or what programs of ours write.
OWN = (
    "*.py", "*.ipynb", "*.md", "*.toml", "*.csv", "*.ini", "*.in", "*.lock",
    ".ci/*", ".github/*", ".gitattributes", ".gitignore", "CITATION.cff", "LICENSE", "Makefile",
    "docs/_static/book.css", "docs/_static/book.js", "docs/_static/break.js",
    "docs/_static/explore.js", "docs/_static/favicon.svg", "docs/_static/homework.js",
    "docs/_static/letters.js", "docs/_static/live*.js", "docs/_static/maths.css",
    "docs/_static/chooser.js", "docs/_static/sandbox.js", "docs/_static/search.js",
    "docs/_templates/*.html", "docs/live-compile.mjs", "docs/print.css", "figures/[0-9][0-9]_*",
    "notebooks/results/*.npz", "notebooks/results/break.json", "notebooks/results/real_book.txt",
    "pe_numpy/homework/handout/*", "pe_numpy/py.typed", "requirements/bench.txt",
    "tests/book/reasons/*.txt", "tests/book/words.txt",
    "tests/answers/*/*.txt", "tests/survivors/*.txt",
)  # fmt: skip
NOTICE = re.compile(
    r"copyright (?:\(c\)|©|\d{4})|©|spdx-license|@licen[sc]e|licensed under the|"
    r"permission is hereby granted|all rights reserved",
    re.I,
)
# Texts of ours that have such words without handing on anything of others.
SPEAK_OF_IT = {
    "LICENSE",  # our own
    "THIRD_PARTY.md",
    "pe_numpy/copy/copy.py",  # our own, in what it copies
    "tests/book/test_third_party.py",
    "tests/book/test_web.py",  # looks for MiniSearch's
}


def patterns(rows):
    """The patterns of files in the second column."""
    return [p for _, files, *_ in rows for p in re.findall(r"`([^`]+)`", files)]


def matches(name, wanted):
    """Whether a path has one of these forms, of which "*" stands for anything."""
    return any(fnmatchcase(name, pattern) for pattern in wanted)


def files():
    """All files that the repository would hold: those that .gitignore does not name."""
    ignored = [
        line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    ]
    found = []
    for path in ROOT.rglob("*"):
        name = path.relative_to(ROOT).as_posix()
        parts = name.split("/")
        if path.is_file() and parts[0] not in (".git", ".venv"):
            if not any(fnmatchcase(part, pattern) for part in parts for pattern in ignored):
                found.append(name)
    return found


FILES = files()


def test_every_file_is_ours_or_has_a_row():
    assert len(FILES) > 500
    strange = [n for n in FILES if not matches(n, OWN) and not matches(n, patterns(IN_REPOSITORY))]
    assert strange == [], "name them in THIRD_PARTY.md, or in OWN if they are ours"


def test_every_row_has_files():
    for pattern in patterns(IN_REPOSITORY):
        assert any(fnmatchcase(name, pattern) for name in FILES), pattern
    for pattern in OWN:
        if pattern != ".github/*":
            assert any(fnmatchcase(name, pattern) for name in FILES), pattern


def test_no_file_of_ours_has_a_notice_of_others():
    found = set()
    for name in FILES:
        kind = name.rpartition(".")[2]
        if matches(name, patterns(IN_REPOSITORY)) or kind in ("npz", "png", "gif", "lock"):
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        if NOTICE.search(text):
            found.add(name)
    assert found - SPEAK_OF_IT == set(), "others' code, or words that SPEAK_OF_IT should name"
    assert SPEAK_OF_IT - found == set()


def test_every_file_of_python_in_the_pages_has_a_row():
    wanted = [*live.pins()["sha256"], "pretty.py"]
    assert [n for n in wanted if not matches(n, patterns(IN_PYTHON))] == []
    assert [p for p in patterns(IN_PYTHON) if p != "live/book.js" and not any(
        fnmatchcase(name, p) for name in wanted)] == []  # fmt: skip


def test_every_row_leads_to_a_text():
    targets = set(re.findall(r"\]\(#([^)]+)\)", HEAD))
    slugs = {re.sub(r"[^\w -]", "", name).lower().replace(" ", "-"): name for name in SECTIONS}
    assert targets == set(slugs)
    for row in [*IN_PAGES, *IN_PYTHON]:
        assert "](#" in row[-1] or row[-1] in ("see below",), row
    for name, text in SECTIONS.items():
        assert len(text) > 300 and re.search(r"copyright|©|apache license", text, re.I), name


def plain(text):
    """Words alone: blanks and line ends may differ, and the last year with the release."""
    return re.sub(r"\b(\d{4})-\d{4}\b", r"\1", " ".join(text.split()))


INSTALLED = {
    "Sphinx": "sphinx",
    "Snowball": "snowballstemmer",
    "sphinx-book-theme": "sphinx-book-theme",
    "pydata-sphinx-theme": "pydata-sphinx-theme",
    "MyST-NB": "myst-nb",
    "Pygments": "pygments",
    "accessible-pygments": "accessible-pygments",
    "IPython": "ipython",
}


@pytest.mark.parametrize("name", INSTALLED)
def test_texts_are_those_of_the_installed_packages(name):
    own = [
        file
        for file in distribution(INSTALLED[name]).files or []
        if re.search(r"dist-info/(?:licenses/)?(?:LICEN[CS]E|COPYING)[^/]*$", str(file))
    ]
    texts = [plain(file.locate().read_text(encoding="utf-8")) for file in own]
    assert plain(SECTIONS[name]) in texts


def test_texts_are_those_in_the_repository():
    for name in ("CPython", "Pyodide"):
        text = (ROOT / "docs" / "licences" / f"{name}.txt").read_text(encoding="utf-8")
        assert plain(SECTIONS[name]) == plain(text)
    head = (ROOT / "docs/_static/minisearch.js").read_text(encoding="utf-8").partition("*/")[0]
    assert plain(head).endswith(plain(SECTIONS["MiniSearch"]))


@pytest.mark.skipif(bool(live.missing()), reason="Python for the browser was not fetched")
def test_texts_are_those_of_the_wheels():
    whole = plain("\n".join(SECTIONS.values()))
    seen = 0
    for path in live.KEPT.glob("*.whl"):
        with zipfile.ZipFile(path) as wheel:
            for name in wheel.namelist():
                if re.search(r"(?:dist-info|fonts)/.*(?:LICEN[CS]E|COPYING|NOTICE)[^/]*$", name):
                    if not name.endswith("LICENSE.APACHE"):  # it is there, with its appendix
                        assert plain(wheel.read(name).decode()) in whole, name
                        seen += 1
    assert seen > 25


def test_the_page_is_linked_handed_out_and_shown():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'license-files = ["LICENSE", "THIRD_PARTY.md"]' in project
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "[THIRD_PARTY.md](THIRD_PARTY.md)" in readme.partition("\n## Licence\n")[2]
