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
import sys
from typing import Any

import numpy as np

NO_NUMBERS = (str, bytes, bool)  # though Python would make a float of them


def as_array(x: Any) -> np.ndarray:
    """Turn lists and numbers into arrays; leave anything with ``__array_ufunc__`` alone."""
    return x if hasattr(x, "__array_ufunc__") else np.asarray(x)


def whole_array(function: str, name: str, x: Any) -> np.ndarray:
    """As `as_array`; lists whose rows differ in length are refused by name."""
    try:
        return as_array(x)
    except ValueError:  # NumPy's own, which names neither function nor argument
        raise ValueError(
            f"{function}: {name} must have rows of one length; got {x!s:.80}"
        ) from None


def real_array(function: str, name: str, x: Any, axes: str = "") -> np.ndarray:
    """Real numbers as floating point, with at least one axis for each letter of `axes`.

    Integers and booleans become float64; a floating dtype stays what it is.
    """
    x = x if hasattr(x, "__array_ufunc__") else whole_array(function, name, x)
    kind = x.dtype.kind
    if kind not in "fbui":
        raise ValueError(f"{function}: {name} must hold real numbers; got dtype {x.dtype}")
    if axes and x.ndim < len(axes):
        raise ValueError(
            f"{function}: {name} must have the axes (..., {', '.join(axes)}); got shape {x.shape}"
        )
    return x if kind == "f" else x.astype(np.float64)


def position_array(function: str, name: str, positions: Any, axis: bool = False) -> np.ndarray:
    """Positions: finite real numbers of any shape; at least one axis if `axis` is true.

    Integers become int64: differences of unsigned ones would wrap, those of narrow ones overflow.
    """
    p = whole_array(function, name, positions)
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
    if p.dtype == np.uint64 and p.size and p.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{function}: {name} must be below 2^63; got {p.max()}")
    return p if p.dtype.kind == "f" else p.astype(np.int64, copy=False)


def pair_frequencies(function: str, frequencies: Any, width: int) -> np.ndarray:
    """Radians per position of the pairs of a vector of this width: at most one per pair."""
    f = position_array(function, "frequencies", frequencies)
    if f.ndim != 1 or 2 * len(f) > width:
        raise ValueError(
            f"{function}: frequencies must be one axis of at most K/2 numbers; "
            f"got shape {f.shape} for K = {width}"
        )
    return f


def whole_numbers(function: str, name: str, positions: Any, axis: bool = False) -> np.ndarray:
    """Positions or distances that are integers, because a table or a bucket is read with them."""
    p = position_array(function, name, positions, axis)
    if p.dtype.kind == "f" and p.size:
        raise ValueError(
            f"{function}: {name} must be whole numbers, since a table is read with them; "
            f"got dtype {p.dtype}"
        )
    return p.astype(np.int64, copy=False)


def token_rows(
    function: str, tokens: Any, real: Any, rng: Any = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Tokens (B, L), and which are real, None if all are; a generator, if there is one."""
    if rng is not None:
        generator(function, "rng", rng)
    tokens = whole_numbers(function, "tokens", tokens)
    if tokens.ndim != 2:
        raise ValueError(f"{function}: tokens must have the axes (B, L); got shape {tokens.shape}")
    return tokens, which_real(function, "real", real, tokens.shape)


def which_real(function: str, name: str, real: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    """Which tokens of this shape are real, False = padding; None if all are."""
    if real is None:
        return None
    real = as_array(real)
    if real.dtype != np.bool_ or real.shape != shape:
        raise ValueError(
            f"{function}: {name} must be boolean and of the shape {shape} of its tokens; "
            f"got {real.dtype} {real.shape}"
        )
    return None if real.all() else real


def common_batch(function: str, **shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which all batch axes broadcast."""
    first, *rest = shapes.values()
    if all(shape == first for shape in rest):  # the usual case; NumPy's own answer takes longer
        return first
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        got = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"{function}: the batch axes must broadcast; got {got}") from None


def integer(function: str, name: str, n: Any, least: int = 1) -> int:
    """A whole number that is no less than `least`."""
    try:
        whole = operator.index(n)
    except TypeError:
        whole = None
    if whole is None or isinstance(n, bool):
        raise ValueError(f"{function}: {name} must be a whole number; got {n!r}")
    if whole < least:
        raise ValueError(f"{function}: {name} must be at least {least}; got {whole}")
    return whole


def axis(function: str, name: str, x: np.ndarray, n: Any) -> int:
    """One of the axes of the array x, which has this name, counted from either end."""
    n = integer(function, "axis", n, least=-sys.maxsize)
    if not -x.ndim <= n < x.ndim:
        raise ValueError(
            f"{function}: axis must be one of the axes of {name}; got {n} for shape {x.shape}"
        )
    return n


def even(function: str, name: str, n: Any, why: str = "each sine has its cosine") -> int:
    """A positive even number."""
    n = integer(function, name, n)
    if n % 2:
        raise ValueError(f"{function}: {name} must be even, so that {why}; got {n}")
    return n


def multiple_of_4(function: str, name: str, n: Any) -> int:
    """A positive width that two axes share, each with as many sines as cosines."""
    n = integer(function, name, n)
    if n % 4:
        raise ValueError(
            f"{function}: {name} must be divisible by 4, a sine and a cosine for each of two axes; "
            f"got {n}"
        )
    return n


def number(function: str, name: str, x: Any) -> float:
    """One finite real number, as a Python float (which leaves float32 arrays float32)."""
    try:
        value = None if isinstance(x, NO_NUMBERS) else float(x)
    except (TypeError, ValueError):
        value = None
    if value is None:
        raise ValueError(f"{function}: {name} must be one real number; got {x!r}")
    if not math.isfinite(value):
        raise ValueError(f"{function}: {name} must be finite; got {value}")
    return value


def positive(function: str, name: str, x: Any) -> float:
    """One finite number above zero."""
    return above(function, name, x, 0)


def above(function: str, name: str, x: Any, bound: float, why: str = "") -> float:
    """One finite number above `bound`."""
    value = number(function, name, x)
    if value <= bound:
        reason = f", so that {why}" if why else ""
        raise ValueError(f"{function}: {name} must be above {bound:g}{reason}; got {value:g}")
    return value


def share(function: str, name: str, x: Any) -> float:
    """One number from 0 to below 1."""
    value = number(function, name, x)
    if not 0 <= value < 1:
        raise ValueError(f"{function}: {name} must be from 0 to below 1; got {value:g}")
    return value


def flag(function: str, name: str, value: Any) -> bool:
    """True or False, and nothing that Python would take for one of them."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{function}: {name} must be True or False; got {value!r}")
    return bool(value)


def choice(function: str, name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in allowed:
        words = " or ".join(repr(word) for word in allowed)
        raise ValueError(f"{function}: {name} must be {words}; got {value!r}")
    return value


def generator(function: str, name: str, rng: Any) -> np.random.Generator:
    """A generator of NumPy, not a seed, with which each call would draw the same numbers."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(
            f"{function}: {name} must be a generator, such as np.random.default_rng(0); "
            f"got {type(rng).__name__}"
        )
    return rng


def exact_shape(function: str, name: str, x: Any, shape: tuple[int, ...], axes: str) -> np.ndarray:
    """Real numbers of exactly this shape."""
    x = real_array(function, name, x)
    if x.shape != shape:
        raise ValueError(f"{function}: {name} must have the shape {axes} = {shape}; got {x.shape}")
    return x


def queries_and_keys(
    function: str, q: Any, k: Any, heads: bool = False
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Queries (..., L, K) and keys (..., S, K) of one width, and the batch axes that they share."""
    q = real_array(function, "q", q, "HLK" if heads else "LK")
    k = real_array(function, "k", k, "HSK" if heads else "SK")
    if q.shape[-1] != k.shape[-1] or q.shape[-1] == 0:
        raise ValueError(
            f"{function}: q and k must have the same width K, at least 1; "
            f"got {q.shape[-1]} and {k.shape[-1]}"
        )
    return q, k, common_batch(function, q=q.shape[:-2], k=k.shape[:-2])


def head_table(
    function: str, name: str, table: Any, batch: tuple[int, ...], width: int
) -> np.ndarray:
    """A table of vectors for all heads, (N, K), or for each of them, (H, N, K)."""
    table = real_array(function, name, table, "NK")
    if table.ndim > 3 or table.shape[-1] != width or (table.ndim == 3 and not batch):
        raise ValueError(
            f"{function}: {name} must have the axes (N, K) or (H, N, K) with K = {width}; "
            f"got shape {table.shape}"
        )
    if table.ndim == 3 and table.shape[0] not in (1, batch[-1]):
        raise ValueError(
            f"{function}: {name} must have one part for each of the {batch[-1]} heads; "
            f"got {table.shape[0]}"
        )
    return table


def bias_distance(function: str, distance: Any) -> np.ndarray:
    """Distances of one sequence, (L, S), or of a batch of them, (B, L, S)."""
    d = whole_numbers(function, "distance", distance)
    if d.ndim not in (2, 3):
        raise ValueError(
            f"{function}: distance must have the axes (L, S) or (B, L, S); got shape {d.shape}"
        )
    return d


def working(*arrays: np.ndarray) -> tuple[np.dtype, np.dtype]:
    """Give the dtype to compute in (float32 for float16) and the one to return."""
    dtype = np.result_type(*arrays)
    return np.dtype(np.float32) if dtype == np.float16 else dtype, dtype


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


def fused_heads(function: str, order: str, H: int, G: int) -> None:
    """Refuse heads of keys that do not go with those of the queries in a fused projection."""
    if H % G or (G != H and order != "q|k|v"):
        raise ValueError(
            f"{function}: n_kv_heads must divide n_heads, and equal it unless the order is "
            f"'q|k|v'; got {G} and {H} with {order!r}"
        )


def mask_array(function: str, mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A boolean mask, True = may attend, that broadcasts to the scores' `shape`."""
    mask = whole_array(function, "mask", mask)
    if mask.dtype != np.bool_:
        raise ValueError(
            f"{function}: mask must be boolean, True = may attend; got dtype {mask.dtype}. "
            "From 1 and 0 make it with mask == 1, from an additive mask with mask == 0"
        )
    fits(function, "mask", mask.shape, shape, "the scores")
    return mask
