"""What a live page does with a cell: run it as a notebook does, and hand on what it shows.

It runs inside the browser, and needs nothing beside Python; figures need matplotlib. What a cell
shows goes to `emit(kind, data)` as soon as it is there: "text", "html", "figure" (a PNG as base64),
"held" (which assertions held), "wrong" (the line that failed, in a few words) or "error".
"""

from __future__ import annotations

import ast
import base64
import builtins
import copy
import io
import json
import linecache
import os
import reprlib
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
_held: set[tuple[str, int]] = set()  # cell and line of each assertion that held in this run
_asserts: set[int] = set()  # lines of the assertions in the cell that runs
builtins.__held__ = lambda file, line: _held.add((file, line))  # type: ignore[attr-defined]


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
    _held.clear()
    _asserts.clear()
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
            line, words = verdict(error)
            _emit("wrong", json.dumps({"line": line, "words": words}))
            _emit("error", explain(error))
        show()
        _printed.flush()
        held = sorted(f"{of}, line {line}" for of, line in _held)
        if held or _asserts:
            _emit("held", json.dumps({"held": held, "all": len(_asserts)}))
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
    tree = Noted(file).visit(ast.parse(code, file))
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    exec(compile(tree, file, "exec"), names)
    return eval(compile(last, file, "eval"), names) if last is not None else None


class Noted(ast.NodeTransformer):
    """Let each assertion be noted when it has held."""

    def __init__(self, file: str) -> None:
        self.file = file

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        """`assert x` becomes `assert x; __held__(cell, line)`."""
        _asserts.add(node.lineno)
        note = ast.parse(f"__held__({self.file!r}, {node.lineno})").body[0]
        for part in ast.walk(note):
            ast.copy_location(part, node)
        return [node, note]


def verdict(error: BaseException) -> tuple[int, str]:
    """Say in which line of the cell an error arose, and what was false there."""
    if isinstance(error, SyntaxError):
        return error.lineno or 0, f"SyntaxError: {error.msg}"
    steps = traceback.walk_tb(error.__traceback__)
    frames = [(frame.f_code.co_filename, line, frame) for frame, line in steps]
    own = [frame for frame in frames if frame[0].startswith("<cell")]
    if not own:
        return 0, _first(error)
    file, line, frame = own[-1]
    if not isinstance(error, AssertionError):
        return line, f"{type(error).__name__}: {_first(error)}"
    code = "".join(linecache.getlines(file))
    wrong = [
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Assert) and node.lineno <= line <= (node.end_lineno or line)
    ]
    if not wrong or frames[-1] != own[-1]:  # a function of a library asserts
        return line, _first(error)
    return wrong[-1].lineno, _sides(wrong[-1].test, frame) or _first(error) or "it is false"


def _first(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")


def _sides(test: ast.expr, frame: types.FrameType) -> str:
    """What stands left and right of a comparison, computed again where it failed."""
    pair: list[ast.expr] = []
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        pair = [test.left, test.comparators[0]]
    elif isinstance(test, ast.Call) and len(test.args) > 1:
        name = ast.unparse(test.func).rpartition(".")[2]
        pair = test.args[:2] if name in ("allclose", "array_equal", "isclose") else []
    try:
        left, right = [
            eval(ast.unparse(side), frame.f_globals, dict(frame.f_locals)) for side in pair
        ]
        return f"left {short(left)}, right {short(right)}"
    except Exception:
        return ""


def short(value: Any) -> str:
    """Return a value in one short line."""
    shape = getattr(value, "shape", ())
    if shape and value.size > 6:
        return f"an array of shape {shape}"
    if hasattr(value, "tolist"):
        value = value.tolist()
    return f"{value:.6g}" if isinstance(value, float) else reprlib.repr(value)


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
