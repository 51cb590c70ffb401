"""How the package's own functions join NumPy's dispatch protocol.

NumPy hands a call such as ``np.sum(x)`` to ``x.__array_function__`` if x is no ndarray but has that
method (NEP 18). `differentiable` does the same for a function of this package. So a softmax stays a
function of plain arrays, and arrays of another kind (the tape of `pe_numpy.training.autodiff`, or
another library's) may say what it means for them. On plain arrays the decorator changes nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def differentiable(function: Callable[P, R]) -> Callable[P, R]:
    """Pass a call on to the first argument that is no ndarray but has ``__array_function__``.

    Parameters
    ----------
    function : function
        Any function of arrays; its plain form stays at hand as ``__wrapped__``.

    Returns
    -------
    The function, with the same name, signature and docstring.

    Raises
    ------
    TypeError
        When called: if the argument's ``__array_function__`` knows no answer (NotImplemented).

    Notes
    -----
    Source: NumPy Enhancement Proposal 18. Arguments inside a list or tuple are not looked at.

    Examples
    --------
    >>> class Loud:
    ...     def __array_function__(self, function, types, args, kwargs):
    ...         return f"{function.__name__} of something of my own"
    >>> double = differentiable(lambda x: 2 * x)
    >>> double(3), double(Loud())
    (6, '<lambda> of something of my own')
    """

    @functools.wraps(function)
    def dispatched(*args: P.args, **kwargs: P.kwargs) -> R:
        for x in (*args, *kwargs.values()) if kwargs else args:
            if type(x) is np.ndarray or isinstance(x, np.ndarray):
                continue
            if hasattr(type(x), "__array_function__"):
                result = x.__array_function__(dispatched, (type(x),), args, kwargs)  # type: ignore
                if result is NotImplemented:
                    raise TypeError(
                        f"{function.__name__}: {type(x).__name__} has no answer for this function"
                    )
                return result
        return function(*args, **kwargs)

    return dispatched
