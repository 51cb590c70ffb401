"""What the chapters use to show the package's own code."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable


def show_source(*functions: Callable) -> None:
    """Print the code of some functions, without docstrings (the chapter is one) and decorators.

    Parameters
    ----------
    *functions : functions of this package

    Examples
    --------
    >>> from pe_numpy import merge_heads
    >>> show_source(merge_heads)
    def merge_heads(x: ArrayLike) -> np.ndarray:
        x = checks.real_array("merge_heads", "x", x, "HLK")
        *batch, H, L, K = x.shape
        return np.swapaxes(x, -2, -3).reshape(*batch, L, H * K)  # (..., L, D)
    """
    print("\n\n".join(_without_docstring(function) for function in functions))


def _without_docstring(function: Callable) -> str:
    source = textwrap.dedent(inspect.getsource(function))
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    lines = source.rstrip().splitlines()
    if ast.get_docstring(definition) is not None:
        docstring = definition.body[0]
        del lines[docstring.lineno - 1 : docstring.end_lineno]
    return "\n".join(lines[definition.lineno - 1 :])  # without decorators
