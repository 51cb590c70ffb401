"""Every link and picture in the README, the index and the chapters leads somewhere, and stays."""

import pkgutil
import re

import nbformat
import pytest
from reading import NOTEBOOKS, ROOT, prose_of, without_code

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "notebooks").glob("**/*.md")), *NOTEBOOKS]
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def text_of(page):
    if page.suffix == ".md":
        return page.read_text(encoding="utf-8")
    return "\n\n".join(prose_of(nbformat.read(page, as_version=4).cells))


def anchors_of(page):
    """Names of the headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_relative_links_resolve(page):
    targets = [a or b for a, b in LINK.findall(without_code(text_of(page)))]
    for target in targets:
        if re.match(r"https?:|mailto:", target):
            continue
        file, _, anchor = target.partition("#")
        place = page.parent / file if file else page
        assert place.exists(), target
        assert not anchor or anchor in anchors_of(place), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_to_files_on_code_hosts_go_to_a_commit(page):
    """A branch moves on, and the file with it."""
    for repository, version in re.findall(
        r"https?://(?:\w+\.)?(?:github|gitlab|huggingface)\.\w+/([^)\s]*?)/"
        r"(?:-/)?(?:blob|tree|raw)/([^/)\s]+)",
        re.sub(r"```text\n.*?```", "", text_of(page), flags=re.S),  # of licences, as they are
    ):
        assert re.fullmatch(r"[0-9a-f]{7,40}|v?\d+(\.\d+)+", version), f"{repository}: {version}"


SAYS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")),
    *(file for end in ("*.py", "*.md") for file in sorted((ROOT / "notebooks").rglob(end))),
    *(file for end in ("*.py", "*.md") for file in sorted((ROOT / "docs").glob(end))),
    *(file for end in ("*.js", "*.css") for file in sorted((ROOT / "docs/_static").glob(end))),
    *sorted((ROOT / "pe_numpy").rglob("*.py")),
]


@pytest.mark.parametrize("page", SAYS, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_are_called_by_names_that_they_have(page):
    text = page.read_text(encoding="utf-8").replace("pe_numpy.pdf", "").replace("stem.py", "")
    for name in {*re.findall(r"(?<![\w./])pe_numpy(?:\.[a-z]\w*)+", text)}:
        pkgutil.resolve_name(name)  # an ImportError or AttributeError if there is none
    for path in {*re.findall(r"(?<![\w./-])pe_numpy/(?:\w+/)*(?:\w+(?:\.[a-z]+)?)?", text)}:
        assert (ROOT / path).exists(), path
