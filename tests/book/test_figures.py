"""The pictures in figures/ are those of the chapters, and the functions still draw them."""

import base64
import io
import platform
import re
import sys

import matplotlib
import nbformat
import numpy as np
import pytest
from matplotlib.image import imread
from reading import NOTEBOOKS, ROOT, load

gallery = load("figures")
LOCK = (ROOT / "requirements" / "dev.lock").read_text()
LOCKED = re.search(r"^matplotlib==(\S+)", LOCK, re.M)[1] == matplotlib.__version__
# Equal bytes are promised for the locked matplotlib on this platform; elsewhere equal pictures.
SAME_BYTES = LOCKED and sys.platform == "linux" and platform.machine() == "x86_64"


def pictures():
    """The PNG outputs of all chapters, with the number of the chapter."""
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                if "image/png" in output.get("data", {}):
                    yield path.stem[:2], base64.b64decode(output.data["image/png"])


def same_picture(png, other):
    """Whether two PNGs show the same: equal bytes, or nearly equal greys after thinning out."""
    if SAME_BYTES:
        return png == other
    a, b = (imread(io.BytesIO(p))[::4, ::4, :3].mean(-1) for p in (png, other))
    rows, columns = np.minimum(a.shape, b.shape)
    return np.abs(np.subtract(a.shape, b.shape)).max() < 8 and bool(
        np.abs(a[:rows, :columns] - b[:rows, :columns]).mean() < 0.05
    )


def test_chapters_and_folder_hold_the_same_pictures():
    stored = {(n[:2], (ROOT / "figures" / f"{n}.png").read_bytes()) for n in gallery.FIGURES}
    assert len(stored) == len(gallery.FIGURES), "two figures are the same"
    assert set(pictures()) == stored


def test_folder_holds_each_figure_as_png_and_svg_and_nothing_else():
    files = {p.name for p in (ROOT / "figures").iterdir() if p.suffix in (".png", ".svg")}
    assert files == {f"{name}.{kind}" for name in gallery.FIGURES for kind in ("png", "svg")}


@pytest.mark.parametrize("name", gallery.FIGURES)
def test_function_draws_the_stored_picture(name, tmp_path):
    figure = gallery.FIGURES[name]()
    gallery.save(figure, tmp_path, name)
    matplotlib.pyplot.close(figure)
    for kind in ("png", "svg"):
        new = (tmp_path / f"{name}.{kind}").read_bytes()
        stored = (ROOT / "figures" / f"{name}.{kind}").read_bytes()
        if kind == "png":
            assert same_picture(new, stored)
        elif SAME_BYTES:
            assert new == stored
