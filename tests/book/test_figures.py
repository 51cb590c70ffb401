"""The figures in the folder; that they are those which the chapters draw is for nbval to say."""

import nbformat
from reading import NOTEBOOKS, ROOT, SAME_BYTES
from scripts import script

build = script("notebooks/build.py")


def test_moving_pictures_are_those_in_the_folder_and_small():
    stored = {path.stem: path.read_bytes() for path in (ROOT / "figures").glob("*.gif")}
    drawn = {}
    for number in {chapter for chapter, *_ in build.MOVING}:
        drawn |= build.moving(number)
    assert stored.keys() == drawn.keys()
    assert all(len(gif) < 300_000 for gif in stored.values())
    assert not SAME_BYTES or stored == drawn


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
    names = ["99_first", "99_second", "99_first_2"]
    assert {p.name for p in figures.iterdir()} == {
        f"{n}.{k}" for n in names for k in ("png", "svg")
    }
    shown = build.pictures(nbformat.read(source.with_suffix(".ipynb"), as_version=4))
    assert shown == [(figures / f"{name}.png").read_bytes() for name in names]
    lines = [(figures / f"{name}.svg").read_bytes().count(b"<path") for name in names]
    assert lines[0] < lines[1] == lines[2]  # the first is an empty plot
    source.write_text(SMALL[: SMALL.rindex("# %%")])
    build.write(source)
    assert sorted(p.stem for p in figures.glob("*.svg")) == ["99_first", "99_second"]


def test_folder_holds_nothing_else():
    numbers = {p.stem[:2] for p in NOTEBOOKS}
    assert all(p.name[:2] in numbers for p in (ROOT / "figures").iterdir())
