"""What the tests of the book share: the chapters, the two build scripts, and how to read tables."""

import importlib.util
import platform
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
ROOT = Path(__file__).parent.parent.parent
LOCK = (ROOT / "requirements" / "dev.lock").read_text()
LOCKED = re.search(r"^matplotlib==(\S+)", LOCK, re.M)[1] == matplotlib.__version__
# Equal bytes are promised for the locked matplotlib on this platform; elsewhere equal pictures.
SAME_BYTES = LOCKED and sys.platform == "linux" and platform.machine() == "x86_64"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def load(folder):
    """Import the build script of a folder, which is not part of the package."""
    name = f"build_{folder}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / folder / "build.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def tables(markdown):
    """Every table of a markdown text: its header cells, and its rows as lists of cells."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n?)+", markdown, re.M):
        rows = [[c.strip() for c in line.strip()[1:-1].split("|")] for line in block.splitlines()]
        found.append((rows[0], rows[2:]))
    return found


def without_code(markdown):
    """Prose alone: without fenced blocks and code spans."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", markdown, flags=re.S)
