"""Figures that answer the hand: pictures of the web book that the book's own functions compute.

`state("one-distance", {"distance": "12", "heads": "8"})` is what a page asks Python for.
"""

from __future__ import annotations

from collections.abc import Mapping

from pe_numpy.book.explore import cache, clocks, distance, layouts, scaling, weights
from pe_numpy.book.explore.figure import State, from_npy

__all__ = ["FIGURES", "from_npy", "state"]

FIGURES = {
    "one-distance": distance.FIGURE,
    "rope-clocks": clocks.FIGURE,
    "scaling-lab": scaling.FIGURE,
    "softmax-and-masks": weights.FIGURE,
    "the-cache": cache.FIGURE,
    "which-layout": layouts.FIGURE,
    "turning-clocks": clocks.MOTION,
    "filling-cache": cache.MOTION,
}


def state(name: str, given: Mapping[str, str]) -> State:
    """What a figure shows for these settings; what is wrong with them, under "error"."""
    return FIGURES[name].state(given)
