"""What the chapters use to show the package's own code, and what lets them run alike anywhere."""

from __future__ import annotations

import ast
import atexit
import inspect
import io
import os
import re
import shutil
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pe_numpy.copy.copy import copy
from pe_numpy.copy.plain import is_short_cut, only_checks


def show_source(*functions: Callable) -> None:
    """Print the code of some functions, without docstrings, decorators and checks of input.

    The chapter is the docstring; and what is left, given arrays as the docstring wants them, gives
    the same result (up to rounding where `sinusoidal` and `rope` take a short cut).

    Parameters
    ----------
    *functions : functions or classes of this package; a class keeps its decorators and the
        docstrings of its methods, and loses its `__post_init__`, which can only check

    Examples
    --------
    >>> from pe_numpy import merge_heads
    >>> show_source(merge_heads)
    def merge_heads(x: ArrayLike) -> np.ndarray:
        *batch, H, L, K = x.shape
        return np.swapaxes(x, -2, -3).reshape(*batch, L, H * K)  # (..., L, D)
    >>> from pe_numpy.transformer.encodings import Sinusoidal
    >>> show_source(Sinusoidal)
    @dataclass(frozen=True)
    class Sinusoidal(Encoding):
        base: float = 10000.0
    <BLANKLINE>
        def embed(self, params, x, positions):
            return x + sinusoidal(positions, x.shape[-1], self.base).astype(x.dtype)
    """
    print("\n\n".join(_shown(function) for function in functions))


def show_short(*functions: Callable) -> dict[str, Any]:
    """Print the book's solutions of the exercises that some functions are, where they read better.

    Parameters
    ----------
    *functions : functions of this package

    Returns
    -------
    What the file holds that `copy NAME --plain` prints, by name: the short forms, to be compared.

    Examples
    --------
    >>> from pe_numpy import relu
    >>> short = show_short(relu)
    def relu(x):
        return np.maximum(x, 0)
    >>> short["relu"]([-1, 2]).tolist()
    [0, 2]
    """
    names = [function.__name__ for function in functions]
    text = copy(names, plain=True)
    own = (node for node in ast.parse(text).body if getattr(node, "name", "") in names)
    print("\n\n".join(ast.get_source_segment(text, node) or "" for node in own))
    exec(text, space := {"__name__": "short"})
    return space


def _shown(function: Callable) -> str:
    source = textwrap.dedent(inspect.getsource(function))
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef | ast.ClassDef)
    lines = source.rstrip().splitlines()
    first = definition.lineno - 1
    if isinstance(definition, ast.ClassDef):
        first = min([first, *(decorator.lineno - 1 for decorator in definition.decorator_list)])
    hidden = {
        line
        for node in ast.walk(definition)
        if isinstance(node, ast.stmt) and (only_checks(node) or is_short_cut(node))
        for line in range(node.lineno - 1, (node.end_lineno or node.lineno))
    }
    for node in definition.body:
        if getattr(node, "name", "") == "__post_init__":  # of a frozen class: it can only check
            hidden |= set(range(node.lineno - 2, node.end_lineno or node.lineno))
    if ast.get_docstring(definition) is not None:
        docstring = definition.body[0]
        after = docstring.end_lineno or docstring.lineno
        if isinstance(definition, ast.ClassDef) and after < len(lines) and not lines[after]:
            after += 1  # the blank line between the docstring and the body
        hidden |= set(range(docstring.lineno - 1, after))
    for n in sorted(hidden, reverse=True):  # a comment goes with the check below it
        if n and lines[n - 1].lstrip().startswith("#"):
            hidden.add(n - 1)
    shown = [line for n, line in enumerate(lines) if n >= first and n not in hidden]
    named = [line for line in shown if re.search(r"\bname\b", line)]
    if len(named) == 1 and re.fullmatch(r' +name = ".*"', named[0]):  # for messages alone
        shown.remove(named[0])
    return re.sub(r"^((?:class|def) [^#]*?:)\n\n", r"\1\n", "\n".join(shown))


def ignore_settings() -> None:
    """Let kernels that this process starts print and draw as the book does, on any machine.

    They read no profile of IPython (`%precision`, start-up files, print options), no PYTHONSTARTUP
    and an empty matplotlibrc, and draw into the notebook.

    Examples
    --------
    >>> before = dict(os.environ)
    >>> ignore_settings()
    >>> os.listdir(os.environ["IPYTHONDIR"]), "PYTHONSTARTUP" in os.environ
    (['matplotlibrc'], False)
    >>> os.environ.clear(); os.environ.update(before)
    """
    folder = tempfile.mkdtemp(prefix="pe_numpy-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["IPYTHONDIR"] = folder
    os.environ["MATPLOTLIBRC"] = os.path.join(folder, "matplotlibrc")
    open(os.environ["MATPLOTLIBRC"], "w").close()
    for name in ("MPLBACKEND", "PYTHONSTARTUP"):
        os.environ.pop(name, None)


def picture(figure: Any, kind: str) -> bytes:
    """Return a figure as "png", with the very bytes that a notebook stores, or as "svg".

    Examples
    --------
    >>> import matplotlib.figure
    >>> picture(matplotlib.figure.Figure(), "png")[1:4]
    b'PNG'
    """
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "pe_numpy"}):  # else the SVG's ids are random
        figure.savefig(
            buffer,
            format=kind,
            dpi=figure.dpi,
            bbox_inches="tight",
            metadata={"Date": None} if kind == "svg" else {},
        )
    return buffer.getvalue()


def same_drawing(svg: bytes, other: bytes) -> bool:
    """Whether two SVGs differ at most in the ids of their clips and markers, and in -0 for 0.

    An id is a hash of coordinates to their last bit, which another processor or another version of
    Python may change (3.12 sums floats more exactly).

    Examples
    --------
    >>> same_drawing(b'<path id="p0123456789" d="M1 2"/>', b'<path id="pabcdef0123" d="M1 2"/>')
    True
    >>> same_drawing(b'<path id="p0123456789" d="M1 2"/>', b'<path id="p0123456789" d="M1 3"/>')
    False
    >>> same_drawing(b'<path d="M 1 -0"/>', b'<path d="M 1 0"/>')
    True
    >>> same_drawing(b'<path d="M 1 -0.5"/>', b'<path d="M 1 0.5"/>')
    False
    """

    def bare(x: bytes) -> bytes:
        without_ids = re.sub(rb"\b([pm])[0-9a-f]{10}\b", rb"\1", x)
        return re.sub(rb"(?<= )-0(?=[ \n\"])", b"0", without_ids)

    return bare(svg) == bare(other)


def keep_figures(folder: str, kind: str = "svg") -> None:
    """From here on, let each figure that this process shows be written into a folder.

    Each is an "svg" or a "png", and is named after its place among all that are shown, and its
    label: "000 heat.svg".

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> plt.switch_backend("agg")
    >>> plt.close("all")
    >>> show, folder = plt.show, tempfile.mkdtemp()
    >>> keep_figures(folder)
    >>> plt.figure(label="heat"), plt.show(), plt.close()
    (<Figure size 640x480 with 0 Axes>, None, None)
    >>> os.listdir(folder)
    ['000 heat.svg']
    >>> plt.show = show
    >>> shutil.rmtree(folder)
    """
    import matplotlib.pyplot as plt

    os.makedirs(folder, exist_ok=True)
    show = plt.show

    def keep_and_show() -> None:
        figures = [plt.figure(number) for number in plt.get_fignums()]
        if kind == "svg":
            show()  # first: its bytes are those of a reader's own run; a second PNG may shrink
        for figure in figures:
            name = f"{len(os.listdir(folder)):03} {figure.get_label()}.{kind}"
            Path(folder, name).write_bytes(picture(figure, kind))
        if kind != "svg":
            show()

    plt.show = keep_and_show  # type: ignore[assignment]
