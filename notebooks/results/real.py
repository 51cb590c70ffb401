"""What part 8 measures on trained models, and the table that it writes: real.csv.

Usage: python notebooks/results/real.py            measures what the table lacks, for half an hour
       python notebooks/results/real.py NAME ...   measures these experiments anew
       python notebooks/results/real.py --sample   measures a part anew, in minutes, and compares

An experiment is a function of `real_minilm.py`, `real_gemma.py` or `real_cache.py` that yields
(setting, text, value). The table keeps with its rows a hash of the function, of what it calls
there, of `Gemma` in pe_numpy/book/trained.py, and of the frozen texts: an experiment whose hash stands is
not measured again. It is written after each.
"""

from __future__ import annotations

import csv
import hashlib
import inspect
import io
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import real_cache
import real_gemma
import real_minilm

from pe_numpy.book import trained
from pe_numpy.book.fetch import found
from pe_numpy.files import write_whole
from pe_numpy.models.load import load_model

TABLE = trained.RESULTS / "real.csv"
MODULES = {"minilm": real_minilm, "gemma": real_gemma, "cache": real_cache}
COLUMNS = ("experiment", "setting", "text", "value")
Row = tuple[str, str, str]  # setting, text, value
TOLERANCE = 0.02  # of a value in nats, or of a share: what other processors may change
HEAD = """\
# Trained models, examined: what chapters 80 to 82 read, written by `make real-tables`.
# value: nats, where a loss or its change is measured; what else it is says the experiment's
# docstring in real_minilm.py, real_gemma.py or real_cache.py. "source" is a hash of its code.
# The texts are frozen: {texts}.
# Measured by NumPy {numpy}, Python {python}, on {machine}.
"""


def experiments() -> dict[str, Callable[..., Iterator[tuple[str, str, float]]]]:
    """All experiments by name, in their order."""
    return {
        name: f
        for module in MODULES.values()
        for name, f in vars(module).items()
        if inspect.isgeneratorfunction(f)
        and f.__module__ == module.__name__
        and not name.startswith("_")
    }


def source(f: Callable[..., Any]) -> str:
    """Hash an experiment: its code, what it calls of its module, the model and the texts."""
    module = sys.modules[f.__module__]
    parts = [inspect.getsource(x) for x in _used(f, module)]
    parts += [inspect.getsource(trained.Gemma), *(sha256 for *_, sha256 in trained.TEXTS.values())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _used(f: Callable[..., Any], module: ModuleType) -> list[Any]:
    """List a function and, again and again, the functions and classes of its module that it names."""
    found, waiting = dict[str, Any](), [f.__name__]
    while waiting:
        name = waiting.pop()
        x = getattr(module, name, None)
        if name in found or getattr(x, "__module__", "") != module.__name__:
            continue
        found[name] = x
        waiting += _names(compile(inspect.getsource(x), "", "exec"))
    return [found[name] for name in sorted(found)]


def _names(code: CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def read() -> dict[str, list[Row]]:
    """Read the table: rows of each experiment."""
    rows: dict[str, list[Row]] = {}
    if TABLE.exists():
        lines = TABLE.read_text(encoding="utf-8").splitlines()
        for row in csv.DictReader(x for x in lines if not x.startswith("#")):
            rows.setdefault(row["experiment"], []).append(
                (row["setting"], row["text"], row["value"])
            )
    return rows


def write(rows: dict[str, list[Row]]) -> None:
    """Write the table, in the order of the experiments."""
    out = io.StringIO()
    texts = ", ".join(f"{name} {sha256[:12]}" for name, (*_, sha256) in trained.TEXTS.items())
    out.write(
        HEAD.format(
            texts=texts,
            numpy=np.__version__,
            python=platform.python_version(),
            machine=platform.machine(),
        )
    )
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows((name, *row) for name in experiments() for row in rows.get(name, ()))
    write_whole(TABLE, out.getvalue().encode())


def measure(name: str) -> Iterator[Row]:
    """Measure one experiment; values with four decimals, whole numbers as they are."""
    f = experiments()[name]
    given = {"gemma": trained.gemma, "minilm": lambda: load_model(found("minilm"))}
    arguments = {key: given[key]() for key in inspect.signature(f).parameters}
    for setting, text, value in f(**arguments):
        yield setting, text, f"{value:.4f}" if isinstance(value, float) else str(value)


def missing(name: str) -> str:
    """Say which model an experiment needs and does not find, or nothing."""
    for key in inspect.signature(experiments()[name]).parameters:
        try:
            found(key)
        except ValueError as error:
            return str(error)
    return ""


def differences(name: str, rows: Iterable[Row]) -> Iterator[str]:
    """Measure an experiment anew; say where it differs from the table's rows."""
    table = {(setting, text): value for setting, text, value in rows if setting != "source"}
    for setting, text, value in measure(name):
        old = table.pop((setting, text), None)
        if old is None or abs(float(old) - float(value)) > TOLERANCE * max(1, abs(float(old))):
            yield f"{name}, {setting}, {text}: {value}, table {old}"
    yield from (f"{name}, {', '.join(key)}: not measured" for key in table)


def main(arguments: list[str]) -> None:
    """Measure, and write after each experiment."""
    rows = read()
    if arguments == ["--sample"]:
        wrong = [x for name in SAMPLE if not missing(name) for x in differences(name, rows[name])]
        raise SystemExit("\n".join(wrong) if wrong else 0)
    unknown = set(arguments) - set(experiments())
    if unknown:
        raise SystemExit(f"no such experiment: {', '.join(sorted(unknown))}")
    for name, f in experiments().items():
        stand = ("source", "", source(f))
        if name not in arguments if arguments else stand in rows.get(name, ()):
            continue
        if missing(name):
            print(f"{name}: left as it is; {missing(name)}")
            continue
        start = time.perf_counter()
        rows[name] = [*measure(name), stand]
        write(rows)
        print(
            f"{name}: {len(rows[name]) - 1} rows in {time.perf_counter() - start:.0f} s", flush=True
        )


# What `make test-real` measures anew: of each module some, in a few minutes.
SAMPLE = ("clocks", "word_order", "largest_pair", "line", "sink_value")

if __name__ == "__main__":
    main(sys.argv[1:])
