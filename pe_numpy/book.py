"""What the chapters use to show the package's own code, and what lets them run alike anywhere."""

from __future__ import annotations

import ast
import atexit
import inspect
import os
import shutil
import tempfile
import textwrap
from collections.abc import Callable


def show_source(*functions: Callable) -> None:
    """Print the code of some functions, without docstrings (the chapter is one) and decorators.

    Parameters
    ----------
    *functions : functions or classes of this package; a class keeps its decorators and the
        docstrings of its methods

    Examples
    --------
    >>> from pe_numpy import merge_heads
    >>> show_source(merge_heads)
    def merge_heads(x: ArrayLike) -> np.ndarray:
        x = checks.real_array("merge_heads", "x", x, "HLK")
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
    print("\n\n".join(_without_docstring(function) for function in functions))


def _without_docstring(function: Callable) -> str:
    source = textwrap.dedent(inspect.getsource(function))
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef | ast.ClassDef)
    lines = source.rstrip().splitlines()
    first = definition.lineno - 1
    if isinstance(definition, ast.ClassDef):
        first = min([first, *(decorator.lineno - 1 for decorator in definition.decorator_list)])
    if ast.get_docstring(definition) is not None:
        docstring = definition.body[0]
        assert docstring.end_lineno is not None
        after = docstring.end_lineno
        if isinstance(definition, ast.ClassDef) and after < len(lines) and not lines[after]:
            after += 1  # the blank line between the docstring and the body
        del lines[docstring.lineno - 1 : after]
    return "\n".join(lines[first:])


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
