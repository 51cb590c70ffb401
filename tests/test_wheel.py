"""What is handed out: wheel and source archive hold all, and work with NumPy alone."""

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pe_numpy

buildapi = pytest.importorskip("flit_core.buildapi")

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]
MATPLOTLIB = {"plots", "book"}  # the parts whose examples draw


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory):
    """Wheel and source archive, and the wheel that is made of the unpacked archive."""
    folder = tmp_path_factory.mktemp("handed out")
    here = os.getcwd()
    try:
        os.chdir(ROOT)
        wheel = folder / buildapi.build_wheel(str(folder))
        source = folder / buildapi.build_sdist(str(folder))
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        os.chdir(folder / f"pe_numpy-{VERSION}")
        (folder / "again").mkdir()
        again = folder / "again" / buildapi.build_wheel(str(folder / "again"))
    finally:
        os.chdir(here)
    return wheel, source, again


@pytest.fixture(scope="module")
def installed(handed_out, tmp_path_factory):
    """A folder with the wheel's content, and one that has NumPy and nothing else."""
    place, libraries = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("numpy")
    with zipfile.ZipFile(handed_out[0]) as wheel:
        wheel.extractall(place)
    for path in Path(np.__file__).parent.parent.glob("numpy*"):
        (libraries / path.name).symlink_to(path)
    return place, libraries


def alone(installed, program, *arguments):
    """Run a program that sees the wheel's content, NumPy and the standard library."""
    paths = f"import sys; sys.path += {list(map(str, installed))}\n"
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-W", "error", "-c", paths + program, *arguments],
        cwd=installed[0].parent,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def names_in(handed_out):
    """Paths in the three, from the project's folder on."""
    wheel, source, again = handed_out
    with tarfile.open(source) as archive:
        yield [m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()]
    for path in (wheel, again):
        with zipfile.ZipFile(path) as archive:
            yield archive.namelist()


def test_all_that_belongs_to_the_package_is_inside(handed_out):
    own = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "pe_numpy").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"pe_numpy/py.typed", "pe_numpy/book/cards.csv", "pe_numpy/book/census.csv"} <= own
    assert "pe_numpy/book/census_candidates.csv" in own
    assert {"pe_numpy/training/data/opticks.txt", "pe_numpy/training/data/README.md"} <= own
    for names in names_in(handed_out):
        assert own == {name for name in names if name.startswith("pe_numpy/")}
    source, wheel, again = names_in(handed_out)
    assert sorted(wheel) == sorted(again)
    assert {"README.md", "pyproject.toml", "PKG-INFO", *PROJECT["license-files"]} <= {*source}
    info = f"pe_numpy-{VERSION}.dist-info"
    assert {f"{info}/licenses/{name}" for name in PROJECT["license-files"]} <= {*wheel}
    assert {name for name in wheel if not name.startswith(("pe_numpy/", f"{info}/"))} == set()


def test_bytes_inside_are_those_of_the_repository(handed_out):
    with zipfile.ZipFile(handed_out[0]) as wheel:
        for name in wheel.namelist():
            file = ROOT / name.removeprefix(f"pe_numpy-{VERSION}.dist-info/licenses/")
            if file.is_file():
                assert wheel.read(name) == file.read_bytes(), name


def test_every_place_tells_the_same_version(handed_out):
    with zipfile.ZipFile(handed_out[0]) as wheel:
        told = email.message_from_bytes(wheel.read(f"pe_numpy-{VERSION}.dist-info/METADATA"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, date = re.search(r"^## (\S+) \((\S+)\)$", changes, re.M).groups()
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    cited = dict(re.findall(r"^(version|date-released): (\S+)$", citation, re.M))
    assert {VERSION, pe_numpy.__version__, told["Version"], newest, cited["version"]} == {VERSION}
    assert date == cited["date-released"]
    assert re.search(rf"^pe_numpy-{re.escape(VERSION)}\b", handed_out[0].name)


def test_the_wheel_says_what_it_needs(handed_out):
    with zipfile.ZipFile(handed_out[0]) as wheel:
        told = email.message_from_bytes(wheel.read(f"pe_numpy-{VERSION}.dist-info/METADATA"))
        started = wheel.read(f"pe_numpy-{VERSION}.dist-info/entry_points.txt").decode()
    needed = [line for line in told.get_all("Requires-Dist") if "extra ==" not in line]
    assert needed == PROJECT["dependencies"] == ["numpy>=2.0"]
    assert told["Requires-Python"] == PROJECT["requires-python"]
    assert told.get_all("License-File") == PROJECT["license-files"]
    assert "pe-numpy=pe_numpy.__main__:main" in started


def test_the_wheel_is_imported_and_not_the_checkout(installed):
    program = "import pe_numpy, numpy; print(pe_numpy.__file__); print(pe_numpy.__version__)"
    file, version = alone(installed, program).split("\n")[:2]
    assert Path(file) == installed[0] / "pe_numpy" / "__init__.py"
    assert version == VERSION


def test_its_command_runs_with_numpy_alone(installed):
    program = "from pe_numpy.__main__ import main; sys.exit(main(sys.argv[1:]))"
    assert "RoPE" in alone(installed, program, "card", "rope")
    assert "def rope(" in alone(installed, program, "copy", "rope")
    assert "def rope(x, positions, freq" in alone(installed, program, "copy", "rope", "--plain")


FUNCTIONS = """import numpy as np


def rope_frequencies(d, base=10000.0):
    return base ** (-{}np.arange(d // 2) / d)
"""


def commands():
    """The commands of the homework in the README, and of TEACHING.md, in their order."""
    pages = {"README.md": "Ten minutes: your homework", "notebooks/TEACHING.md": "Commands"}
    for page, head in pages.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        section = text.partition(f"\n## {head}\n")[2].partition("\n## ")[0]
        section = re.sub(r"```python\n.*?```", "", section, flags=re.S)
        for line in re.findall(r"^(?:    |\$ )(\S.*)$", section, re.M):
            command = re.fullmatch(r"(?:python -m pe_numpy|pe-numpy) (.*?)(?:  +# .*)?", line)
            assert command, line
            yield command[1].split()


def test_the_homework_of_the_pages_is_run_as_printed(installed, tmp_path_factory):
    """From the wheel, with NumPy alone, in an empty folder that gets no more than answers."""
    folder = tmp_path_factory.mktemp("course")
    program = "from pe_numpy.__main__ import main; sys.exit(main(sys.argv[1:]))"
    paths = f"import sys; sys.path += {list(map(str, installed))}\n"
    ran = []
    for words in commands():
        if "answers.py" in words:
            (folder / "answers.py").write_text(FUNCTIONS.format("2 * "))
        if "FILES" in words:
            week = (folder / "week3.toml").read_text()
            (folder / "week3.toml").write_text(f"{week}rope_frequencies = 2\n")
            (folder / "class").mkdir(exist_ok=True)
            for student, factor in {"anna": "2 * ", "ben": ""}.items():
                (folder / "class" / f"{student}.py").write_text(FUNCTIONS.format(factor))
            words[words.index("FILES")] = "class"
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-W", "error", "-c", paths + program, *words],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == ("class" in words), (words, done.stdout, done.stderr)
        ran.append(words[0])
    assert {"list", "card", "copy", "check", "plan", "release"} == {*ran}
    assert (folder / "FOLDER" / "checker.pyz").exists()


DOCTESTS = """
import doctest, importlib, pkgutil
import pe_numpy
tried = failed = 0
names = [found.name for found in pkgutil.walk_packages(pe_numpy.__path__, "pe_numpy.")]
for name in ["pe_numpy", *names]:
    if name.split(".")[1:2] and name.split(".")[1] in sys.argv[1:] or name == "pe_numpy.__main__":
        continue
    found = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    tried, failed = tried + found.attempted, failed + found.failed
print(tried, failed)
assert not {"matplotlib", "IPython", "pytest"} & set(sys.modules)
"""


def test_every_example_of_a_docstring_holds_in_the_wheel(installed):
    out = alone(installed, DOCTESTS, *MATPLOTLIB)
    tried, failed = map(int, out.rpartition("\n")[0].rpartition("\n")[2].split())
    assert failed == 0, out
    assert tried > 300
