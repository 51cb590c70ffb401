"""The ledger: which code of other people each function and model agrees with, and how closely.

Usage: python tests/ledger.py     (runs the golden tests; writes notebooks/results/ledger.csv)

A line is a golden file. Its tests run with eyes on them: which public functions, or which page,
they call, how many numbers they compare, and the largest difference, relative to the largest number
that the test compares.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pe_numpy

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "notebooks" / "results" / "ledger.csv"
TESTS = ("test_golden.py", "test_golden_models.py", "test_shelf.py")
COLUMNS = ("file", "functions", "code", "release", "tests", "numbers", "error")


class Ledger:
    """A plugin of pytest that watches the golden tests."""

    def __init__(self) -> None:
        self.lines: dict[str, dict] = {}
        self.files: set[str] = set()
        self.called: set[str] = set()
        self.compared: list[tuple[int, float, float]] = []

    def pytest_collection_finish(self, session):
        """Put a watcher in front of what the tests call."""
        for module in {item.module for item in session.items}:
            for name, thing in list(vars(module).items()):
                if name == "golden":
                    setattr(module, name, self.watched(thing, lambda args: self.files.add(args[0])))
                elif name in ("assert_allclose", "assert_array_equal"):
                    setattr(module, name, self.watched(thing, self.compare))
                elif name in pe_numpy.__all__ and callable(thing) and not isinstance(thing, type):
                    note = functools.partial(lambda _, name: self.called.add(name), name=name)
                    setattr(module, name, self.watched(thing, note))

    def watched(self, thing, note):
        """Call the same, after a note of it."""

        @functools.wraps(thing)
        def call(*args, **kwargs):
            note(args)
            return thing(*args, **kwargs)

        return call

    def compare(self, args) -> None:
        """Note how many numbers are compared, the largest difference and the largest number."""
        ours, theirs = (np.asarray(x, np.float64) for x in args[:2])
        largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=0)
        apart = np.abs(
            np.subtract(
                ours,
                theirs,
                where=np.isfinite(ours) & np.isfinite(theirs),
                out=np.zeros(np.broadcast_shapes(ours.shape, theirs.shape)),
            )
        )
        self.compared.append((apart.size, float(apart.max(initial=0)), float(largest)))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        """Write down what a test has done."""
        self.files, self.called, self.compared = set(), set(), []
        outcome = yield
        shelf = item.path.name == "test_shelf.py"
        if outcome.excinfo or not self.compared or (shelf and "transformers" not in item.name):
            return
        sizes, differences, numbers = zip(*self.compared, strict=True)
        error = max(differences) / (max(numbers) or 1.0)
        for file in self.files:
            file = f"models/{file}" if shelf else file
            line = self.lines.setdefault(
                file, {"functions": set(), "tests": 0, "numbers": 0, "error": 0.0}
            )
            line["functions"] |= {page_of(file)} if shelf else self.called
            line["tests"] += 1
            line["numbers"] += sum(sizes)
            line["error"] = max(line["error"], error)


def page_of(file: str) -> str:
    """Name the page that reads a folder."""
    from pe_numpy.models.load import PAGES

    config = json.loads((ROOT / "tests" / "golden" / file / "config.json").read_text())
    return "models." + PAGES[config["model_type"]]


def provenance(file: str) -> tuple[str, str]:
    """Code and release that made a golden file."""
    golden = ROOT / "tests" / "golden"
    with np.load(golden / (f"{file}/golden.npz" if "/" in file else f"{file}.npz")) as arrays:
        said = json.loads(str(arrays["provenance"]))
    library = said.get("library", "transformers")
    installed = re.findall(r"([\w-]+)==([\d.]+)", (golden / "README.md").read_text())
    releases = {name.replace("-", "_"): release for name, release in reversed(installed)}
    code = said["code"] if isinstance(said["code"], str) else " ".join(said["code"])
    return code, f"{library} {said.get(library, releases.get(library))}".removesuffix("+cpu")


def table(ledger: Ledger) -> str:
    """Write the ledger as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for file, line in sorted(ledger.lines.items()):
        code, release = provenance(file)
        functions = " ".join(sorted(line.pop("functions")))
        error = f"{line.pop('error'):.0e}"
        writer.writerow(
            {"file": file, "functions": functions, "code": code, "release": release}
            | {"error": error, **line}
        )
    return out.getvalue()


def made() -> str:
    """Make the ledger in a process of its own."""
    run = [sys.executable, __file__, "--print"]
    result = subprocess.run(run, capture_output=True, text=True, cwd=ROOT, check=False)
    if result.returncode:
        raise RuntimeError(result.stdout + result.stderr)
    return result.stdout


def main() -> int:
    """Run the golden tests under the ledger's eyes."""
    ledger, out = Ledger(), sys.stdout
    sys.stdout = sys.stderr
    paths = [str(ROOT / "tests" / name) for name in TESTS]
    status = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *paths], [ledger])
    sys.stdout = out
    if status:
        return int(status)
    if "--print" in sys.argv:
        print(table(ledger), end="")
    else:
        TABLE.write_text(table(ledger), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
