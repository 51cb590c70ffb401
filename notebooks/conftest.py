"""How nbval checks the chapters: strictly, with their figures and the solutions of their exercises.

A chapter runs once. Before its first cell the kernel is told to keep the figures that it shows, and
to take warnings for errors. After the last one each solution runs there, and the figures are
compared with those in the folder.
"""

import io
import os
from collections import defaultdict
from pathlib import Path

import nbformat
import nbval.kernel
import numpy as np
import pytest
from matplotlib.image import imread
from nbval.plugin import IPyNbCell, IPyNbFile
from reading import ROOT, SAME_BYTES, solutions
from scripts import script

from pe_numpy.book.show import ignore_settings, same_drawing

build = script("notebooks/build.py")
ignore_settings()
collect_ignore_glob = ["*.py"]  # the reviewed sources are not test modules
# Those that need trained weights run if they are named: `make matrix ROWS=--weights` does so.
collect_ignore = [f"{stem}.ipynb" for stem in build.toc.trained()]
KIND = "svg" if SAME_BYTES else "png"  # in which figures are compared
BEFORE = """\
__import__("warnings").simplefilter("error")
__import__("pe_numpy.book.show").book.show.keep_figures({!r}, {!r})"""
SOLUTION = """\
with __import__("contextlib").redirect_stdout(None):
    exec({!r}, dict(globals()))"""


@pytest.hookimpl(tryfirst=True)
def pytest_collectstart(collector):
    """Put more items around the cells; compare PNGs, which nbval skips, where bytes are equal."""
    if isinstance(collector, IPyNbFile):
        if SAME_BYTES:
            collector.skip_compare = tuple(k for k in collector.skip_compare if k != "image/png")
        cells = collector.collect
        collector.collect = lambda: [*around(collector, list(cells()))]


def started(start=nbval.kernel.start_new_kernel, **how):
    """Start a kernel, once more if it ends before its first cell: another may take its ports."""
    try:
        return start(**how)
    except RuntimeError:
        return start(**how)


nbval.kernel.start_new_kernel = started


def around(chapter, cells):
    """The cells of a chapter, with what is run in its kernel before and after them."""

    def item(name, source):
        cell, strict = nbformat.v4.new_code_cell(source), defaultdict(bool, check=True)
        return IPyNbCell.from_parent(
            chapter, name=name, cell_num=len(cells), cell=cell, options=strict
        )

    drawings = Path(os.environ["IPYTHONDIR"], "drawings", chapter.path.stem)
    yield item("Before", BEFORE.format(str(drawings), KIND))
    yield from cells
    for n, solution in enumerate(solutions(chapter.path)):
        yield item(f"Solution {n}", SOLUTION.format(solution))
    yield Figures.from_parent(chapter, name="Figures", drawings=drawings)


class Figures(pytest.Item):
    """That the figures in the folder are those which a chapter has drawn and its notebook holds."""

    def __init__(self, drawings, **others):
        super().__init__(**others)
        self.drawings = drawings

    def runtest(self):
        drawn = sorted(self.drawings.iterdir())  # 000 turning_clocks.svg, as they were shown
        number, folder = self.path.stem[:2], ROOT / "figures"
        names = build.names_of(number, [picture.stem[4:] for picture in drawn])
        files = {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
        assert {p.name for p in folder.glob(f"{number}_*") if p.suffix != ".gif"} == files
        shown = build.pictures(self.parent.nb)
        assert len(set(shown)) == len(names), "two figures are the same"
        for picture, png, name in zip(drawn, shown, names, strict=True):
            assert png == (folder / f"{name}.png").read_bytes(), f"{name}.png"
            stored = folder / f"{name}.{KIND}"
            assert same_picture(picture.read_bytes(), stored.read_bytes()), stored.name

    def reportinfo(self):
        return self.path, 0, f"{self.path.name}::Figures"


def same_picture(drawn, stored):
    """Whether two SVGs, or two PNGs of other programs, show the same."""
    if SAME_BYTES:
        return same_drawing(drawn, stored)
    a, b = (imread(io.BytesIO(p))[::4, ::4, :3].mean(-1) for p in (drawn, stored))
    rows, columns = np.minimum(a.shape, b.shape)
    near = np.abs(a[:rows, :columns] - b[:rows, :columns]).mean() < 0.05
    return near and np.abs(np.subtract(a.shape, b.shape)).max() < 8
