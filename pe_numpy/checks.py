"""The checks of input that the whole package shares, and their one style of message.

Each is called once, at the public boundary, with the name of the public function first. A message
names that function, the rule, the numbers at hand and, where it is not plain, the way out::

    sinusoidal: d_model must be even, so that each sine has its cosine; got 7

Nothing here changes its argument. Arrays of other libraries that speak NumPy's dispatch protocol
are left as they are.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np


def as_array(x: Any) -> np.ndarray:
    """Turn lists and numbers into arrays; leave anything with ``__array_ufunc__`` alone."""
    return x if hasattr(x, "__array_ufunc__") else np.asarray(x)


def real_array(function: str, name: str, x: Any, axes: str = "") -> np.ndarray:
    """Real numbers as floating point, with at least one axis for each letter of `axes`.

    Integers and booleans become float64; a floating dtype stays what it is.
    """
    x = as_array(x)
    if x.dtype.kind not in "buif":
        raise ValueError(f"{function}: {name} must hold real numbers; got dtype {x.dtype}")
    if x.ndim < len(axes):
        raise ValueError(
            f"{function}: {name} must have the axes (..., {', '.join(axes)}); got shape {x.shape}"
        )
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def position_array(function: str, name: str, positions: Any, axis: bool = False) -> np.ndarray:
    """Positions: finite real numbers of any shape; at least one axis if `axis` is true."""
    p = as_array(positions)
    if p.dtype.kind not in "uif":
        raise ValueError(
            f"{function}: {name} must be integers or real numbers; got dtype {p.dtype}"
        )
    if axis and p.ndim == 0:
        raise ValueError(
            f"{function}: {name} must be an axis of positions, not one number; got {p}, write [{p}]"
        )
    if p.dtype.kind == "f" and not np.isfinite(p).all():
        raise ValueError(f"{function}: {name} must be finite; got nan or inf among them")
    return p


def integer(function: str, name: str, n: Any, least: int = 1) -> int:
    """A whole number that is no less than `least`."""
    try:
        n = operator.index(n)
    except TypeError:
        raise ValueError(f"{function}: {name} must be a whole number; got {n!r}") from None
    if n < least:
        raise ValueError(f"{function}: {name} must be at least {least}; got {n}")
    return n


def even(function: str, name: str, n: Any, why: str = "each sine has its cosine") -> int:
    """A positive even number."""
    n = integer(function, name, n)
    if n % 2:
        raise ValueError(f"{function}: {name} must be even, so that {why}; got {n}")
    return n


def number(function: str, name: str, x: Any) -> float:
    """One finite real number, as a Python float (which leaves float32 arrays float32)."""
    try:
        value = float(x)
    except (TypeError, ValueError):
        raise ValueError(f"{function}: {name} must be one real number; got {x!r}") from None
    if not math.isfinite(value):
        raise ValueError(f"{function}: {name} must be finite; got {value}")
    return value


def positive(function: str, name: str, x: Any) -> float:
    """One finite number above zero."""
    value = number(function, name, x)
    if value <= 0:
        raise ValueError(f"{function}: {name} must be above 0; got {value:g}")
    return value


def choice(function: str, name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in allowed:
        words = " or ".join(repr(word) for word in allowed)
        raise ValueError(f"{function}: {name} must be {words}; got {value!r}")
    return value


def fits(
    function: str, name: str, shape: tuple[int, ...], target: tuple[int, ...], of: str
) -> None:
    """Refuse a `shape` that would not broadcast to `target`, or would enlarge it."""
    short = (1,) * (len(target) - len(shape)) + tuple(shape)
    if len(shape) > len(target) or any(n not in (1, m) for n, m in zip(short, target, strict=True)):
        raise ValueError(
            f"{function}: {name} must broadcast to the shape of {of}, {tuple(target)}; "
            f"got {tuple(shape)}"
        )


def mask_array(function: str, mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A boolean mask, True = may attend, that broadcasts to the scores' `shape`."""
    mask = as_array(mask)
    if mask.dtype != np.bool_:
        raise ValueError(
            f"{function}: mask must be boolean, True = may attend; got dtype {mask.dtype}. "
            "From 1 and 0 make it with mask == 1, from an additive mask with mask == 0"
        )
    fits(function, "mask", mask.shape, shape, "the scores")
    return mask
