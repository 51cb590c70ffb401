"""What a live page does with a cell: run it as a notebook does, and hand on what it shows.

It runs inside the browser, and needs nothing beside Python; figures need matplotlib. What a cell
shows goes to `emit(kind, data)` as soon as it is there: "text", "html", "figure" (a PNG as base64)
or "error".
"""

from __future__ import annotations

import ast
import base64
import copy
import io
import json
import linecache
import os
import sys
import time
import traceback
import types
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

Emit = Callable[[str, str], None]
HOME = os.getcwd()  # the folder of the chapters
_calls: dict[str, Any] = {}
_before: dict[int, dict[str, Any]] = {}  # the names before each cell that ran
_emit: Emit = lambda kind, data: None  # noqa: E731


class Printed(io.TextIOBase):
    """What is printed, handed on a few times a second."""

    def __init__(self) -> None:
        self.held, self.last = "", 0.0

    def write(self, text: str) -> int:
        """Hold a text; hand on all that is held if the last time is long ago."""
        self.held += text
        if time.monotonic() - self.last > 0.2:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Hand on what is held."""
        text, self.held, self.last = self.held, "", time.monotonic()
        if text:
            _emit("text", text)


_printed = Printed()


def with_figures() -> None:
    """Draw with matplotlib, now that it is there."""
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("agg")
    plt.show = show


def fresh() -> None:
    """Begin a chapter: no names, no figures, settings as they come."""
    if sys.platform == "emscripten":  # there its 32 bits end after 36 minutes, with an error
        time.process_time = time.monotonic
    sys.modules["__main__"] = types.ModuleType("__main__")
    _before.clear()
    os.chdir(HOME)
    if "matplotlib.pyplot" in sys.modules:
        import matplotlib
        import matplotlib.pyplot as plt

        plt.close("all")
        matplotlib.rcdefaults()


def run(code: str, number: int, emit: Emit) -> bool:
    """Run a cell with the names that those above it left; say whether it came to its end.

    A cell that runs again, after cells below it, sees none of what they did to the names. Number 0
    is no cell: it sees all names that are there.
    """
    global _emit
    _emit = emit
    names = sys.modules["__main__"].__dict__
    if number:
        come_back(names, number)
    file = f"<cell {number}>"
    # Kept, so that an error shows its line and `inspect` finds the source of a function.
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    done = True
    with redirect_stdout(_printed), redirect_stderr(_printed):
        try:
            value = execute(code, file, names)
            if value is not None and not code.rstrip().endswith(";"):
                names["_"] = value
                display(value)
        except BaseException as error:
            done = False
            show()
            _printed.flush()
            _emit("error", explain(error))
        show()
        _printed.flush()
    return done


def come_back(names: dict[str, Any], number: int) -> None:
    """Restore the names that were there before a cell, if it ran; note them if it did not."""
    if number in _before:
        names.clear()
        names.update(_before[number])
    for later in [n for n in _before if n > number]:
        del _before[later]
    _before[number] = {name: kept(value) for name, value in names.items()}


def kept(value: Any) -> Any:
    """Return a value to come back to: a generator of random numbers goes on, so it is copied."""
    return copy.deepcopy(value) if hasattr(value, "bit_generator") else value


def execute(code: str, file: str, names: dict[str, Any]) -> Any:
    """Execute statements; return the value of the last one if it is an expression."""
    tree = ast.parse(code, file)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    exec(compile(tree, file, "exec"), names)
    return eval(compile(last, file, "eval"), names) if last is not None else None


def display(value: Any) -> None:
    """Show a value as IPython does."""
    if hasattr(value, "savefig"):
        draw(value)
    elif hasattr(value, "_repr_html_"):
        _printed.flush()
        _emit("html", value._repr_html_())
    else:
        import pretty  # IPython's own

        print(pretty.pretty(value))


def explain(error: BaseException) -> str:
    """Describe an error with the lines of cells and package that lead to it, not those above."""
    trace = error.__traceback__
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<cell"):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()


def show(*_: object, **__: object) -> None:
    """Show all figures and close them, as `plt.show` does in a notebook."""
    if "matplotlib.pyplot" in sys.modules:
        import matplotlib.pyplot as plt

        for number in plt.get_fignums():
            draw(plt.figure(number))
        plt.close("all")


def draw(figure: Any) -> None:
    """Show a figure as the notebooks store it."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=figure.dpi, bbox_inches="tight")
    _printed.flush()
    _emit("figure", base64.b64encode(buffer.getvalue()).decode())


def call(code: str) -> str:
    """Evaluate an expression that knows `np` and `pe_numpy`; return its value as JSON.

    What has no number in JSON is a word that JavaScript's `Number` knows: "Infinity", "NaN".
    """
    if not _calls:
        exec("import numpy as np, pe_numpy", _calls)
    return json.dumps(plain(execute(code, "<call>", _calls)))


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(x) for key, x in value.items()}
    if isinstance(value, list | tuple | set | range):
        return [plain(x) for x in value]
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value
