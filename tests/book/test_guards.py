"""The guards of the notebooks are guarded: what a reader could change by mistake must fail."""

import base64
import io
import os
import re
import shutil
import subprocess
import sys

import matplotlib.pyplot as plt
import nbformat
import pytest
from reading import NOTEBOOKS, ROOT, SAME_BYTES, run_apart


def with_one_digit_changed(notebook):
    """Change the last digit that some cell prints."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            text = output.get("text", "")
            if re.search(r"\d", text):
                output.text = re.sub(r"(\d)(\D*)$", lambda m: f"{(int(m[1]) + 1) % 10}{m[2]}", text)
                return notebook
    raise AssertionError("no cell prints a number")


def with_a_figure_painted_over(notebook):
    """Put a grey rectangle in place of the first figure."""
    figure = plt.figure(figsize=(2, 1), facecolor="grey")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    plt.close(figure)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = base64.b64encode(buffer.getvalue()).decode()
                return notebook
    raise AssertionError("no cell draws a figure")


def smallest():
    """The chapter with the shortest file, of those that read no other file."""
    alone = [p for p in NOTEBOOKS if "with open(" not in p.read_text(encoding="utf-8")]
    return min(alone, key=lambda p: p.stat().st_size)


def failures(tmp_path, change=lambda notebook: notebook, settings=()):
    """Count the cells that nbval turns red in a copy of a chapter."""
    path = smallest()
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    (tmp_path / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "conftest.py", tmp_path / "notebooks")
    copy = tmp_path / "notebooks" / path.name
    nbformat.write(change(nbformat.read(path, as_version=4)), copy)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env", str(copy)],
        cwd=tmp_path,
        env=os.environ | dict(settings),
        capture_output=True,
        text=True,
    )
    summary = run.stdout.splitlines()[-1]
    assert re.search(r"\d+ passed", summary), run.stdout
    return int((re.search(r"(\d+) failed", summary) or [0, 0])[1])


def test_untouched_copy_passes(tmp_path):
    assert failures(tmp_path) == 0


def test_own_settings_of_a_reader_change_nothing(tmp_path):
    """A matplotlibrc, an IPython profile with a start-up file, PYTHONSTARTUP, another backend."""
    profile = tmp_path / "ipython" / "profile_default"
    (profile / "startup").mkdir(parents=True)
    precise = "import numpy\nnumpy.set_printoptions(precision=2, sign='+', floatmode='fixed')\n"
    (profile / "startup" / "00_mine.py").write_text(precise + "print('good morning')\n")
    (profile / "ipython_config.py").write_text("c.InlineBackend.rc = {'figure.dpi': 50}\n")
    (tmp_path / "mine.py").write_text("print('good evening')\n")
    drawn = "figure.dpi: 200\nsavefig.pad_inches: 1\nfont.family: serif\npath.simplify: False\n"
    (tmp_path / "matplotlibrc").write_text(drawn)
    settings = {
        "IPYTHONDIR": str(profile.parent),
        "MATPLOTLIBRC": str(tmp_path / "matplotlibrc"),
        "MPLBACKEND": "svg",
        "PYTHONSTARTUP": str(tmp_path / "mine.py"),
    }
    assert failures(tmp_path, settings=settings) == 0
    path = smallest()
    assert run_apart(path, **settings)[0] == run_apart(path)[0]


def test_one_changed_digit_fails(tmp_path):
    assert failures(tmp_path, with_one_digit_changed) == 1


@pytest.mark.skipif(not SAME_BYTES, reason="pictures are compared at the locked matplotlib only")
def test_one_figure_painted_over_fails(tmp_path):
    assert failures(tmp_path, with_a_figure_painted_over) == 1
