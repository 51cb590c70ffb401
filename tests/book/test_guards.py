"""The guards of the notebooks are guarded: what a reader could change by mistake must fail."""

import base64
import io
import re
import shutil
import subprocess
import sys

import matplotlib.pyplot as plt
import nbformat
import pytest
from reading import NOTEBOOKS, ROOT, SAME_BYTES


def with_one_digit_changed(notebook):
    """Change the last digit of the last number that some cell prints."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            text = output.get("text", "")
            if re.search(r"\d\.\d+\D*$", text):
                output.text = re.sub(r"(\d)(\D*)$", lambda m: f"{(int(m[1]) + 1) % 10}{m[2]}", text)
                return notebook
    raise AssertionError("no cell prints a decimal number")


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


def failures(tmp_path, change):
    """Count the cells that nbval turns red in a changed copy of a chapter."""
    path = min(NOTEBOOKS, key=lambda p: p.stat().st_size)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    (tmp_path / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "conftest.py", tmp_path / "notebooks")
    copy = tmp_path / "notebooks" / path.name
    nbformat.write(change(nbformat.read(path, as_version=4)), copy)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env", str(copy)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    summary = run.stdout.splitlines()[-1]
    assert re.search(r"\d+ passed", summary), run.stdout
    return int((re.search(r"(\d+) failed", summary) or [0, 0])[1])


def test_untouched_copy_passes(tmp_path):
    assert failures(tmp_path, lambda notebook: notebook) == 0


def test_one_changed_digit_fails(tmp_path):
    assert failures(tmp_path, with_one_digit_changed) == 1


@pytest.mark.skipif(not SAME_BYTES, reason="pictures are compared at the locked matplotlib only")
def test_one_figure_painted_over_fails(tmp_path):
    assert failures(tmp_path, with_a_figure_painted_over) == 1
