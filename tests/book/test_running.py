"""What each chapter does when it runs: its figures are the stored ones, its solutions hold."""

import base64
import io
import re

import nbformat
import numpy as np
import pytest
from matplotlib.image import imread
from reading import (
    NOTEBOOKS,
    ROOT,
    SAME_BYTES,
    exercises,
    run_apart,
    run_here,
    solutions,
)
from scripts import script

from pe_numpy.book import same_drawing

build = script("notebooks/build.py")
chapters = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


def same_picture(png, other):
    """Whether two PNGs show the same: equal bytes, or nearly equal greys after thinning out."""
    if SAME_BYTES:
        return png == other
    a, b = (imread(io.BytesIO(p))[::4, ::4, :3].mean(-1) for p in (png, other))
    rows, columns = np.minimum(a.shape, b.shape)
    near = np.abs(a[:rows, :columns] - b[:rows, :columns]).mean() < 0.05
    return near and np.abs(np.subtract(a.shape, b.shape)).max() < 8


@chapters
def test_figures_in_the_folder_are_those_that_the_chapter_draws(path):
    figures, _ = run_apart(path)
    assert len(set(figures.values())) == len(figures), "two figures are the same"
    for name, (png, svg) in figures.items():
        assert same_picture(png, (ROOT / "figures" / f"{name}.png").read_bytes()), name
        assert not SAME_BYTES or same_drawing(
            svg, (ROOT / "figures" / f"{name}.svg").read_bytes()
        ), name
    stored = {p.name for p in (ROOT / "figures").glob(f"{path.stem[:2]}_*")}
    drawn = {f"{name}.{kind}" for name in figures for kind in ("png", "svg")}
    assert stored == drawn | {f"{name}.gif" for name in build.moving(path.stem[:2])}


@pytest.mark.parametrize("number", sorted({chapter for chapter, *_ in build.MOVING}))
def test_moving_pictures_are_those_in_the_folder_and_small(number):
    for name, gif in build.moving(number).items():
        stored = (ROOT / "figures" / f"{name}.gif").read_bytes()
        assert len(stored) < 300_000
        assert not SAME_BYTES or gif == stored, name


@chapters
def test_figures_in_the_notebook_are_those_in_the_folder(path):
    shown = [
        base64.b64decode(output.data["image/png"])
        for cell in nbformat.read(path, as_version=4).cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    names, _ = run_apart(path)
    assert len(shown) == len(names)
    for picture, name in zip(shown, names, strict=True):
        assert same_picture(picture, (ROOT / "figures" / f"{name}.png").read_bytes()), name


SMALL = """
# %%
import matplotlib.pyplot as plt

plt.figure(label="first").add_subplot()
plt.figure(label="second").add_subplot().plot([0, 1])
plt.show()
# %%
plt.figure(label="first").add_subplot().plot([1, 0])
plt.show()
"""


def test_the_builder_keeps_each_figure_that_a_kernel_shows_and_removes_what_is_no_longer_drawn(
    tmp_path, monkeypatch
):
    figures, source = tmp_path / "figures", tmp_path / "99_small.py"
    monkeypatch.setattr(build, "FIGURES", figures)
    source.write_text(SMALL)
    said = "99_small.ipynb: written, 6 of its figures drawn anew"
    assert build.write(source) == said
    assert build.write(source) == "99_small.ipynb: unchanged"
    drawn = run_here(source.with_suffix(".ipynb"))[0]
    assert list(drawn) == ["99_first", "99_second", "99_first_2"]
    for name, (png, svg) in drawn.items():
        assert same_picture(png, (figures / f"{name}.png").read_bytes()), name
        assert not SAME_BYTES or same_drawing(svg, (figures / f"{name}.svg").read_bytes()), name
    source.write_text(SMALL[: SMALL.rindex("# %%")])
    build.write(source)
    assert sorted(p.stem for p in figures.glob("*.svg")) == ["99_first", "99_second"]


def test_folder_holds_nothing_else():
    numbers = {p.stem[:2] for p in NOTEBOOKS}
    assert all(p.name[:2] in numbers for p in (ROOT / "figures").iterdir())


@chapters
def test_solutions_of_the_exercises_run_and_assert_something(path):
    _, answers = run_apart(path)
    assert len(answers) >= exercises(path).count("<summary>Solution</summary>")
    for solution in solutions(path):
        assert re.search(r"^\s*assert\b", solution, re.M), solution
        assert answers[solution] == "", solution
