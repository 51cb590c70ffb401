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
import toc
from reading import NOTEBOOKS, ROOT, SAME_BYTES


def change_one_digit(notebook):
    """Change the last digit that some cell prints; return the number of that cell."""
    for n, cell in enumerate(c for c in notebook.cells if c.cell_type == "code"):
        for output in cell.outputs:
            text = output.get("text", "")
            if re.search(r"\d", text):
                output.text = re.sub(r"(\d)(\D*)$", lambda m: f"{(int(m[1]) + 1) % 10}{m[2]}", text)
                return f"Cell {n}"
    raise AssertionError("no cell prints a number")


def paint_over(notebook):
    """Put a grey rectangle in place of the first figure; return the number of its cell."""
    figure = plt.figure(figsize=(2, 1), facecolor="grey")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    plt.close(figure)
    for n, cell in enumerate(c for c in notebook.cells if c.cell_type == "code"):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = base64.b64encode(buffer.getvalue()).decode()
                return f"Cell {n}"
    raise AssertionError("no cell draws a figure")


def turn_round(notebook):
    """Let the first solution assert the opposite."""
    for cell in notebook.cells:
        if "<summary>Solution</summary>" in cell.source:
            before, solution = cell.source.split("<summary>Solution</summary>", 1)
            solution = re.sub(
                r"^(\s*)assert (.*)", r"\1assert not (\2)", solution, count=1, flags=re.M
            )
            cell.source = before + "<summary>Solution</summary>" + solution
            return "Solution 0"
    raise AssertionError("no exercise has a solution")


def warn(notebook):
    """Let the last cell warn; return its number."""
    *others, last = (c for c in notebook.cells if c.cell_type == "code")
    last.source += "\nimport warnings\nwarnings.warn('later', PendingDeprecationWarning)"
    return f"Cell {len(others)}"


def smallest():
    """The chapter with the shortest file, of those with exercises that read no other file."""
    paths = [path for path in NOTEBOOKS if not toc.needs_weights(path.stem)]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    reads = re.compile(r"with open\(|\bresults/")
    alone = [p for p, t in texts.items() if not reads.search(t) and "<summary>Solution" in t]
    return min(alone, key=lambda p: p.stat().st_size)


NEEDED = ("pyproject.toml", "requirements/dev.lock", "notebooks/conftest.py", "notebooks/build.py")
NEEDED += ("notebooks/contents.toml", "docs/toc.py", "tests/scripts.py", "tests/book/reading.py")


@pytest.fixture
def copy(tmp_path):
    """A copy of a chapter, of its figures and of what tests it."""
    path = smallest()
    files = [*map(ROOT.joinpath, NEEDED), path, *(ROOT / "figures").glob(f"{path.stem[:2]}_*")]
    for file in files:
        (tmp_path / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, tmp_path / file.relative_to(ROOT))
    return tmp_path / path.relative_to(ROOT)


def failures(copy, settings=()):
    """The items of a chapter that nbval turns red."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env", str(copy)],
        cwd=copy.parent.parent,
        env=os.environ | dict(settings),
        capture_output=True,
        text=True,
    )
    assert re.search(r"\d+ passed", run.stdout.splitlines()[-1]), run.stdout
    return re.findall(r"^FAILED \S+::([A-Z]\w+(?: \d+)?)", run.stdout, re.M)


def test_own_settings_of_a_reader_change_nothing(copy, tmp_path):
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
    assert failures(copy, settings) == []


def collected(path, root):
    """The cells that pytest finds in a chapter, or in a folder."""
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "--collect-only", str(path)]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True)
    return re.findall(r"::Cell \d+", run.stdout)


def test_a_chapter_that_needs_weights_runs_only_if_it_is_named(copy):
    folder, root = copy.parent, copy.parent.parent
    assert collected(folder, root) != []
    contents, row = copy.with_name("contents.toml"), f'stem = "{copy.stem}"\n'
    contents.write_text(contents.read_text().replace(row, f'{row}weights = ["minilm"]\n'))
    assert collected(copy, root) != [] == collected(folder, root)


def test_what_is_changed_fails(copy):
    """A digit, a solution, a warning that Python would not show, and a figure in the notebook."""
    notebook = nbformat.read(copy, as_version=4)
    wrong = [change_one_digit(notebook), turn_round(notebook), warn(notebook), "Figures"]
    painted = paint_over(notebook)
    if SAME_BYTES:
        wrong.append(painted)
    nbformat.write(notebook, copy)
    assert sorted(failures(copy)) == sorted(wrong)


def test_another_drawing_in_the_folder_fails(copy):
    kind = "svg" if SAME_BYTES else "png"
    one, other, *_ = sorted((copy.parent.parent / "figures").glob(f"*.{kind}"))
    shutil.copy(one, other)
    assert failures(copy) == ["Figures"]
