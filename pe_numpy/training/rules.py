r"""The gradients of NumPy's functions: one rule each, to be checked against a book of calculus.

Source: any book of calculus; for matrices Magnus and Neudecker 1988, chapter 8::

    z = x y        dx = g y,    dy = g x          z = x @ y   dx = g @ y^T,   dy = x^T @ g
    z = x / y      dx = g / y,  dy = -g z / y     z = sum(x)  dx = g, everywhere
    z = x^-1 y     dy = x^-T g, dx = -dy z^T
    z = x[index]   dx = g where x was read, 0 elsewhere; what was read twice gets both

Axes: any.
Symbols: z is the value, g the gradient of the loss with respect to it: an array of z's shape.
Convention: a rule takes z and the arguments that made it and returns, for each argument, the
function that turns g into the gradient of that argument (here called a pull), or None where there
is none. Where an argument was broadcast, its pull may leave the sum over copies to the tape.
Where a function has a kink, equals share: the larger of two equal numbers passes half to each.
Differs from the books: nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray
Pull = Callable[[Array], Array]
Rule = Callable[..., tuple]


# ---- ufuncs -------------------------------------------------------------------------------------


def _matmul(z: Array, x: Array, y: Array) -> tuple:
    """For x @ y; all rows of x meet a matrix y in one product, however many axes x has."""

    def matrix(g: Array) -> Array:
        """Put back the axes that a single row x or column y has lost."""
        g = g[..., None] if y.ndim == 1 else g
        return g[..., None, :] if x.ndim == 1 else g

    def pull_x(g: Array) -> Array:
        if x.ndim > 2 and y.ndim == 2:
            return (g.reshape(-1, y.shape[1]) @ y.T).reshape(x.shape)
        dx = matrix(g) @ np.swapaxes(y[:, None] if y.ndim == 1 else y, -1, -2)
        return dx[..., 0, :] if x.ndim == 1 else dx

    def pull_y(g: Array) -> Array:
        if x.ndim > 2 and y.ndim == 2:
            return x.reshape(-1, x.shape[-1]).T @ g.reshape(-1, y.shape[1])
        dy = np.swapaxes(x[None] if x.ndim == 1 else x, -1, -2) @ matrix(g)
        return dy[..., 0] if y.ndim == 1 else dy

    return pull_x, pull_y


def _larger_or_smaller(z: Array, x: Array, y: Array) -> tuple:
    return (
        lambda g: np.where(x == y, g / 2, g * (z == x)),
        lambda g: np.where(x == y, g / 2, g * (z == y)),
    )


UFUNCS: dict[Callable, Rule] = {
    np.add: lambda z, x, y: (lambda g: g, lambda g: g),
    np.subtract: lambda z, x, y: (lambda g: g, lambda g: -g),
    np.multiply: lambda z, x, y: (lambda g: g * y, lambda g: g * x),
    np.divide: lambda z, x, y: (lambda g: g / y, lambda g: -g * z / y),
    np.power: lambda z, x, y: (
        lambda g: g * (y * x ** (y - 1)),
        lambda g: g * (z * np.log(np.where(z == 0, 1, x))),  # 0^y stays 0 near by
    ),
    np.matmul: _matmul,
    np.maximum: _larger_or_smaller,
    np.minimum: _larger_or_smaller,
    np.negative: lambda z, x: (lambda g: -g,),
    np.absolute: lambda z, x: (lambda g: g * np.sign(x),),
    np.square: lambda z, x: (lambda g: g * (2 * x),),
    np.sqrt: lambda z, x: (lambda g: g / (2 * z),),
    np.exp: lambda z, x: (lambda g: g * z,),
    np.log: lambda z, x: (lambda g: g / x,),
    np.log1p: lambda z, x: (lambda g: g / (1 + x),),
    np.sin: lambda z, x: (lambda g: g * np.cos(x),),
    np.cos: lambda z, x: (lambda g: -g * np.sin(x),),
    np.tanh: lambda z, x: (lambda g: g * (1 - z * z),),
}


# ---- sums, largest and smallest -----------------------------------------------------------------


def _over(g: Array, x: Array, axis: Any, keepdims: bool) -> Array:
    """Repeat what belongs to a sum over an axis along that axis."""
    if axis is not None and not keepdims:
        g = np.expand_dims(g, axis)
    return np.broadcast_to(g, x.shape)


def _sum(z: Array, x: Array, axis: Any = None, keepdims: bool = False) -> tuple:
    return (lambda g: _over(g, x, axis, keepdims),)


def _cumsum(z: Array, x: Array, axis: int | None = None) -> tuple:
    """An entry is in all sums from its own on: g is summed from the end."""
    return (lambda g: np.flip(np.cumsum(np.flip(g, axis), axis), axis).reshape(x.shape),)


def _extreme(z: Array, x: Array, axis: Any = None, keepdims: bool = False) -> tuple:
    def pull(g: Array) -> Array:
        hit = (x == _over(z, x, axis, keepdims)).astype(g.dtype)
        return hit / hit.sum(axis=axis, keepdims=True) * _over(g, x, axis, keepdims)

    return (pull,)


# ---- entries that are picked, moved or joined ---------------------------------------------------


def picked(x: Array, pick: Callable[[Array], Array]) -> Pull:
    """Return the pull of a function that only moves or copies entries: each adds up its copies."""

    def pull(g: Array) -> Array:
        place = pick(np.arange(x.size).reshape(x.shape))
        return np.bincount(place.ravel(), g.ravel(), x.size).reshape(x.shape).astype(g.dtype)

    return pull


def item(x: Array, index: Any) -> Array:
    """Read x[index]: indexing as a function, so that it can have a rule."""
    return x[index]


def _item(z: Array, x: Array, index: Any) -> tuple:
    parts = index if isinstance(index, tuple) else (index,)
    lists = [np.asarray(part) for part in parts if isinstance(part, (list, np.ndarray))]
    if isinstance(index, np.ndarray) and index.dtype.kind in "iu" and x.ndim > 1:
        return (lambda g: sum_of_rows(g, index, x.shape)), None
    if any(part.dtype.kind in "iu" for part in lists):  # may read an entry twice
        return picked(x, lambda places: places[index]), None

    def pull(g: Array) -> Array:
        dx = np.zeros(x.shape, g.dtype)
        dx[index] = g
        return dx

    return pull, None


def sum_of_rows(g: Array, rows: Array, shape: tuple[int, ...]) -> Array:
    """Give each row of a table the sum of what it was read for: the pull of table[rows].

    A short table is summed in one product with ones and zeros, a long one by sorting the rows.
    (`numpy.add.at` does the same, several times slower.)
    """
    rows, flat = rows.ravel() % shape[0], g.reshape(rows.size, math.prod(shape[1:]))
    if shape[0] <= 128:
        reads = rows == np.arange(shape[0])[:, None]  # (N, reads)
        return (reads.astype(g.dtype) @ flat).reshape(shape)
    total = np.zeros((shape[0], flat.shape[1]), g.dtype)
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))  # where the next row begins
    if rows.size:
        total[rows[starts]] = np.add.reduceat(flat[order], starts, axis=0)
    return total.reshape(shape)


def _padded(z: Array, x: Array, widths: Any, mode: Any = "constant") -> tuple:
    if mode in ("edge", "reflect", "symmetric", "wrap"):  # read within, to stand beyond
        return picked(x, lambda places: np.pad(places, widths, mode)), None
    if mode != "constant":
        raise TypeError(f"pad with mode={mode!r} computes what stands beyond the border")
    first = np.broadcast_to(widths, (x.ndim, 2))[:, 0].tolist()
    inside = tuple(slice(a, a + n) for a, n in zip(first, x.shape, strict=True))
    return (lambda g: g[inside]), None


def join(*arrays: Array, axis: int) -> Array:
    """Concatenate arrays that are arguments, not members of a list."""
    return np.concatenate(arrays, axis)


def _join(z: Array, *arrays: Array, axis: int) -> tuple:
    ends = np.cumsum([0, *(np.shape(x)[axis] for x in arrays)]).tolist()
    before = (slice(None),) * (axis % z.ndim)
    return tuple(lambda g, own=slice(*two): g[(*before, own)] for two in pairwise(ends))


def _transpose(z: Array, x: Array, axes: Any = None) -> tuple:
    back = None if axes is None else np.argsort(np.asarray(axes) % x.ndim)
    return (lambda g: np.transpose(g, back),)


def _solve(z: Array, a: Array, b: Array) -> tuple:
    """For columns b: a z = b, so that a dz = db - da z."""
    if b.ndim == 1:
        raise TypeError("solve needs columns: write b[:, None]")

    def pull_b(g: Array) -> Array:
        return np.linalg.solve(np.swapaxes(a, -1, -2), g)

    return lambda g: -pull_b(g) @ np.swapaxes(z, -1, -2), pull_b


def cast(x: Array, dtype: Any) -> Array:
    """Change the floating dtype."""
    if np.dtype(dtype).kind != "f":
        raise TypeError(f"a Tensor of {x.dtype} can't become {np.dtype(dtype)}: its gradient ends")
    return x.astype(dtype)


# ---- einsum -------------------------------------------------------------------------------------


def _einsum(z: Array, subscripts: str, *operands: Array, **options: Any) -> tuple:
    """The gradient of an operand is the einsum of g, whose axes are z's, with all the others."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow or "." in inputs or any(len(set(term)) < len(term) for term in terms):
        raise TypeError("einsum needs a result after ->, no ellipsis, no letter twice in a term")

    def pull_of(n: int) -> Pull:
        others = [term for m, term in enumerate(terms) if m != n]
        alone = [c for c in terms[n] if c not in output + "".join(others)]  # summed, nowhere else
        sizes = dict(zip(terms[n], operands[n].shape, strict=True))
        arrays = [x for m, x in enumerate(operands) if m != n]
        arrays += [np.ones(sizes[c], z.dtype) for c in alone]
        rule = ",".join([output, *others, *alone]) + "->" + terms[n]
        return lambda g: np.einsum(rule, g, *arrays, optimize=True)

    return None, *map(pull_of, range(len(terms)))


FUNCTIONS: dict[Callable, Rule] = {
    np.sum: _sum,
    np.cumsum: _cumsum,
    np.max: _extreme,
    np.min: _extreme,
    np.reshape: lambda z, x, shape: (lambda g: g.reshape(x.shape), None),
    np.ravel: lambda z, x: (lambda g: g.reshape(x.shape),),
    np.squeeze: lambda z, x, axis=None: (lambda g: g.reshape(x.shape),),
    np.expand_dims: lambda z, x, axis: (lambda g: g.reshape(x.shape),),
    np.broadcast_to: lambda z, x, shape: (lambda g: g, None),  # the tape sums over the copies
    np.transpose: _transpose,
    np.swapaxes: lambda z, x, a, b: (lambda g: np.swapaxes(g, a, b),),
    np.moveaxis: lambda z, x, a, b: (lambda g: np.moveaxis(g, b, a),),
    np.where: lambda z, c, x, y: (
        None,
        lambda g: np.where(c, g, np.zeros((), g.dtype)),
        lambda g: np.where(c, np.zeros((), g.dtype), g),
    ),
    np.take_along_axis: lambda z, x, indices, axis: (
        picked(x, lambda places: np.take_along_axis(places, indices, axis)),
        None,
    ),
    np.pad: _padded,
    np.linalg.solve: _solve,
    np.einsum: _einsum,
    item: _item,
    join: _join,
    cast: lambda z, x, dtype: (lambda g: g.astype(x.dtype), None),
}
RULES = {**UFUNCS, **FUNCTIONS}


# ---- functions that are made of others, so that they need no rule -------------------------------


def _mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    total = np.sum(x, axis=axis, keepdims=keepdims)
    return total / (x.size // total.size)


def _variance(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _mean(np.square(x - _mean(x, axis, True)), axis, keepdims)


def _take(x: Any, index: Any, axis: int | None = None) -> Any:
    if axis is None:
        return np.ravel(x)[index]
    return x[(slice(None),) * (axis % x.ndim) + (index,)] if axis % x.ndim else x[index]


def _repeat(x: Any, times: Any, axis: int | None = None) -> Any:
    n = x.size if axis is None else x.shape[axis]
    return _take(x, np.repeat(np.arange(n), times), axis)


def _split(x: Any, sections: Any, axis: int = 0) -> list:
    parts = np.split(np.arange(x.shape[axis]), sections)
    return [_take(x, slice(p[0], p[-1] + 1) if p.size else slice(0), axis) for p in parts]


MADE_OF_OTHERS: dict[Callable, Callable] = {
    np.mean: _mean,
    np.var: _variance,
    np.std: lambda x, axis=None, keepdims=False: np.sqrt(_variance(x, axis, keepdims)),
    np.clip: lambda x, least, most: np.minimum(np.maximum(x, least), most),
    np.take: _take,
    np.repeat: _repeat,
    np.split: _split,
    np.stack: lambda arrays, axis=0: np.concatenate(
        [np.expand_dims(x, axis) for x in arrays], axis
    ),
    np.copy: lambda x: x,  # what is on the tape never changes
}

# Functions that answer with shapes, truth values, places or constants: nothing to differentiate.
WITHOUT_GRADIENT: set[Callable] = {
    *(np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal),
    *(np.floor, np.ceil),  # flat between their steps
    *(np.isfinite, np.isnan, np.isinf, np.isneginf, np.isposinf, np.argmax, np.argmin, np.argsort),
    *(np.shape, np.ndim, np.size, np.result_type, np.zeros_like, np.ones_like, np.full_like),
}
