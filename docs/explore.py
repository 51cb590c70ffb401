"""Where figures that answer the hand stand in the web book; `pe_numpy.book.explore` makes them."""

from __future__ import annotations

import functools
import re

from nbformat import NotebookNode

from pe_numpy.book.explore import FIGURES

# Figure, number of the chapter, heading of the section that it closes.
PLACES = (
    ("softmax-and-masks", 10, "From scores to weights: the softmax"),
    ("one-distance", 30, "Relative positional encodings side by side"),
    ("one-distance", 33, "Bidirectional and causal buckets"),
    ("turning-clocks", 40, "40. Rotary position embedding (RoPE): the derivation"),
    ("rope-clocks", 40, "The RoPE formula: one frequency per pair"),
    ("scaling-lab", 50, "All RoPE scalings compared"),
    ("filling-cache", 63, "63. KV cache, sampling, beam search, speculative decoding"),
    ("the-cache", 63, "The KV cache: a list of keys and a list of values"),
    ("which-layout", 65, "RoPE pairs: interleaved or half-split"),
)
HEADING = re.compile(r"^#+ (.+)$", re.M)


@functools.cache
def as_markdown(name: str, plays: bool = False) -> str:
    """A figure as a block that Sphinx takes as it is."""
    return f"\n\n`````{{raw}} html\n{FIGURES[name].markup(name, plays)}\n`````\n\n"


def with_motion(page: str) -> str:
    """The front page with its moving picture, which plays once where motion is welcome."""
    before, here, after = page.partition("<!-- moving picture -->\n")
    assert here, "front.md has no place for it"
    return before + as_markdown("turning-clocks", plays=True).lstrip() + after


def add_figures(number: int, notebook: NotebookNode) -> None:
    """Put the figures of a chapter at the end of their sections, before the next heading."""
    for name, chapter, heading in PLACES:
        if chapter == number:
            _close(notebook, heading, as_markdown(name))


def _close(notebook: NotebookNode, heading: str, figure: str) -> None:
    inside = False
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        for found in HEADING.finditer(cell.source):
            if inside:
                cell.source = cell.source[: found.start()] + figure + cell.source[found.start() :]
                return
            inside = found[1] == heading
    raise ValueError(f"no heading after {heading!r}")
