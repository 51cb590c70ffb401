r"""Gradients of plain NumPy: a tape that records what a function does, and is walked backwards.

Source: reverse-mode differentiation (Linnainmaa 1970; Speelpenning 1980). NumPy lets other array
classes answer its calls, by `__array_ufunc__` (NEP 13) and `__array_function__` (NEP 18); `Tensor`
answers by noting down what was called::

    z = f(x, y):   grad x += pull_x(grad z),   grad y += pull_y(grad z),   the last z first

Axes: any.
Symbols: g is grad z, the gradient of the loss with respect to z; a pull turns it into the gradient
with respect to one argument of f. `rules` has the pulls of NumPy's functions, `primitives` those of
this package's own.
Convention: a value is always computed by the function itself, on plain arrays: there is no second
version of anything. What has no rule is refused by name: a gradient is never lost in silence.
An array that has met a Tensor must stay as it is until the walk back has used it.
Differs from larger systems: no gradients of gradients, no complex numbers, no changes in place.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pe_numpy.training import primitives, rules
from pe_numpy.training.rules import Pull

RULES = {**rules.RULES, **primitives.RULES}


# ---- the tape -----------------------------------------------------------------------------------


def _method(function: Callable) -> Callable:
    return lambda x, *args, **kwargs: _answer(function, (x, *args), kwargs)


def _reflected(ufunc: Callable) -> Callable:
    return lambda x, y: _answer(ufunc, (y, x), {})


class Tensor:
    """An array on the tape: its value, and how it was made.

    `steps` has, for each Tensor among the arguments that made it, that Tensor and its pull.
    """

    __slots__ = ("grad", "steps", "value")

    def __init__(self, value: np.ndarray, steps: tuple[tuple[Tensor, Pull], ...] = ()) -> None:
        self.value = value
        self.steps = steps
        self.grad: Any = None

    shape = property(lambda self: self.value.shape)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)
    dtype = property(lambda self: self.value.dtype)
    T = property(lambda self: np.transpose(self))

    __neg__, __abs__ = _method(np.negative), _method(np.absolute)
    __add__, __radd__ = _method(np.add), _reflected(np.add)
    __sub__, __rsub__ = _method(np.subtract), _reflected(np.subtract)
    __mul__, __rmul__ = _method(np.multiply), _reflected(np.multiply)
    __truediv__, __rtruediv__ = _method(np.divide), _reflected(np.divide)
    __pow__, __rpow__ = _method(np.power), _reflected(np.power)
    __matmul__, __rmatmul__ = _method(np.matmul), _reflected(np.matmul)
    __lt__, __le__, __eq__ = _method(np.less), _method(np.less_equal), _method(np.equal)
    __gt__, __ge__, __ne__ = _method(np.greater), _method(np.greater_equal), _method(np.not_equal)
    __getitem__ = _method(rules.item)
    sum, mean, var, std = _method(np.sum), _method(np.mean), _method(np.var), _method(np.std)
    max, min, clip = _method(np.max), _method(np.min), _method(np.clip)
    argmax, argmin, argsort = _method(np.argmax), _method(np.argmin), _method(np.argsort)
    swapaxes, squeeze, ravel = _method(np.swapaxes), _method(np.squeeze), _method(np.ravel)
    take, repeat, copy = _method(np.take), _method(np.repeat), _method(np.copy)

    def reshape(self, *shape: Any) -> Tensor:
        """As for arrays."""
        return _record(np.reshape, self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Tensor:
        """As for arrays."""
        return _record(np.transpose, self, (axes[0] if len(axes) == 1 else axes) or None)

    def astype(self, dtype: Any, copy: bool = True) -> Tensor:
        """As for arrays, between floating dtypes."""
        return self if self.value.dtype == dtype else _record(rules.cast, self, dtype)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[n] for n in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"Tensor({self.value!r})"

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "outer" and not kwargs:
            x, y = inputs
            return ufunc(np.reshape(x, np.shape(x) + (1,) * np.ndim(y)), y)
        if method != "__call__" or kwargs:
            how = f".{method}" if method != "__call__" else f" with {', '.join(kwargs)}"
            raise TypeError(
                f"np.{ufunc.__name__}{how}: a Tensor does not support this; nothing changes in "
                "place on the tape, so write a = a + b for a += b, and use no out="
            )
        return _answer(ufunc, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _answer(function, args, kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError(
            "a Tensor can't become a plain array: its gradient would be lost; write np.stack for "
            "np.array([a, b]), a @ b for a.dot(b), and .value where no gradient is wanted"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'Tensor' object has no attribute {name!r}")
        raise _no_rule(f"ndarray.{name}")


def _answer(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Answer a call of any function with a Tensor among its arguments."""
    if function in RULES:
        return _record(function, *args, **kwargs)
    if function is np.concatenate:
        return _concatenate(*args, **kwargs)
    if function in rules.MADE_OF_OTHERS:
        return rules.MADE_OF_OTHERS[function](*args, **kwargs)
    if function in rules.WITHOUT_GRADIENT:
        return function(*map(_value, args), **{key: _value(x) for key, x in kwargs.items()})
    module = getattr(function, "__module__", None) or "numpy"
    if hasattr(function, "__wrapped__") and not module.startswith("numpy"):
        return function.__wrapped__(*args, **kwargs)  # differentiable: note what its body does
    raise _no_rule(f"{module}.{function.__name__}")


def _value(x: Any) -> Any:
    return x.value if type(x) is Tensor else x


def _no_rule(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}: there is no rule for its gradient; write it with functions that have one (see "
        "pe_numpy.training.rules), or take .value of what needs no gradient"
    )


def _concatenate(arrays: Any, axis: int = 0) -> Tensor:
    return _record(rules.join, *arrays, axis=axis)  # no list, so that each can have its pull


def _record(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Compute the value, and note a pull for each argument that is a Tensor."""
    if kwargs and any(type(x) is Tensor for x in kwargs.values()):  # given by name: find its place
        bound = inspect.signature(function).bind(*args, **kwargs)
        if any(type(x) is Tensor for x in bound.kwargs.values()):
            bound.apply_defaults()  # an argument before it was left out
        args, kwargs = bound.args, bound.kwargs
    inputs = [x.value if type(x) is Tensor else x for x in args]
    value = function(*inputs, **kwargs)
    try:
        pulls = RULES[function](value, *inputs, **kwargs)
    except TypeError as error:  # an option that the rule does not have
        raise _no_rule(f"{function.__name__}, called like this ({error})") from error
    if type(value) is tuple:  # several results, each with its own pulls
        pairs = zip(value, pulls, strict=True)
        return tuple(Tensor(z, _steps(function, args, own)) for z, own in pairs)
    return Tensor(value, _steps(function, args, pulls))


def _steps(function: Callable, args: tuple, pulls: tuple) -> tuple[tuple[Tensor, Pull], ...]:
    steps = [(x, pulls[n]) for n, x in enumerate(args) if type(x) is Tensor]
    for x, pull in steps:
        if pull is None:
            raise _no_rule(f"{function.__name__}, with respect to {x!r},")
    return tuple(steps)


# ---- the walk back ------------------------------------------------------------------------------


def value_and_grad(f: Callable) -> Callable[..., tuple[Any, Any]]:
    """Turn f(params, ...), which gives one number, into a function that gives its gradients, too.

    Parameters
    ----------
    f : function
        Its first argument is an array, or dictionaries of arrays, nested as you like; anything else
        follows. It computes one number from them, with NumPy and this package.

    Returns
    -------
    A function of the same arguments, which returns the number, and the gradient with respect to
    each parameter: dictionaries nested like the first argument, of arrays with the parameters'
    shapes and dtypes, zero where the number does not depend on a parameter.

    Raises
    ------
    ValueError
        When called: if a parameter is no array of floats, f gives anything but one number, or f
        uses a Tensor that belongs to another call.
    NotImplementedError, TypeError
        When called: if f does with a parameter what has no rule, changes it in place, or mixes
        float32 with float64.

    Notes
    -----
    Source: Linnainmaa 1970. One walk back gives all gradients, at about twice the cost of f.

    Examples
    --------
    >>> loss = value_and_grad(lambda params, x: np.sum((params["w"] * x) ** 2))
    >>> value, gradients = loss({"w": np.array([1.0, 2.0])}, np.array([3.0, 1.0]))
    >>> float(value), gradients["w"].tolist()
    (13.0, [18.0, 4.0])
    """
    _keep_freed_memory()

    def run(params: Any, *rest: Any, **options: Any) -> tuple[Any, Any]:
        leaves: dict[str, Tensor] = {}
        result = f(_wrap(params, "", leaves), *rest, **options)
        value = _value(result)
        if not isinstance(value, (int, float, np.number, np.ndarray)):
            got = type(value).__name__
            raise ValueError(f"value_and_grad: f must return one real number; got a {got}")
        if np.shape(value) != () or np.iscomplexobj(value):
            got = f"{np.result_type(value)}, shape {np.shape(value)}"
            raise ValueError(f"value_and_grad: f must return one real number; got {got}")
        if type(result) is Tensor:
            _walk_back(result, leaves)
        return value, _gradients(params, "", leaves)

    return run


def _keep_freed_memory() -> None:
    """Make glibc's malloc keep what the tape frees, for the next step.

    Large blocks come from the kernel, which clears them page by page, and go back to it at once:
    half of the time of a training step. But when a large block is freed, glibc takes only blocks
    above its size for large from then on, up to 32 MB (mallopt(3), M_MMAP_THRESHOLD). This one is
    never touched, so it costs a microsecond and no memory.
    """
    np.empty(2**25 - 2**16, np.uint8)


def _wrap(params: Any, name: str, leaves: dict[str, Tensor]) -> Any:
    """Put every array on a new tape; `leaves` gets them by name."""
    if isinstance(params, dict):
        return {key: _wrap(x, f"{name}.{key}", leaves) for key, x in params.items()}
    if not isinstance(params, np.ndarray) or params.dtype.kind != "f":
        got = getattr(params, "dtype", type(params).__name__)
        raise ValueError(
            f"value_and_grad: a parameter must be an array of floats; got {got} for params{name}"
        )
    leaves[name] = Tensor(params)
    return leaves[name]


def _gradients(params: Any, name: str, leaves: dict[str, Tensor]) -> Any:
    if isinstance(params, dict):
        return {key: _gradients(x, f"{name}.{key}", leaves) for key, x in params.items()}
    grad = leaves[name].grad
    return np.zeros_like(params) if grad is None else np.array(grad)  # some share memory: copy


def _walk_back(root: Tensor, leaves: dict[str, Tensor]) -> None:
    """Pull the gradient from the root to the leaves, freeing the tape on the way."""
    order = parents_first(root)
    own = {id(leaf) for leaf in leaves.values()}
    if any(not node.steps and id(node) not in own for node in order):
        raise ValueError(
            "value_and_grad: f must not use a Tensor of another call; there are no gradients of "
            "gradients, and a Tensor ends with its call"
        )
    root.grad = np.ones_like(root.value)
    while order:
        node = order.pop()
        if not node.steps:
            continue  # a leaf keeps its gradient
        g, steps = node.grad, node.steps
        node.grad, node.steps = None, ()
        for parent, pull in steps:
            h = pull(g)
            if h.shape != parent.value.shape:
                h = _sum_over_copies(h, parent.value.shape)
            if h.dtype != parent.value.dtype:
                raise TypeError(
                    f"value_and_grad: an array of {parent.value.dtype} and shape {parent.shape} "
                    f"met one of another dtype, so its gradient is {h.dtype}; cast with astype, "
                    "once, and write math.sqrt and Python's floats for NumPy's"
                )
            parent.grad = h if parent.grad is None else parent.grad + h  # not +=: h may be shared


def parents_first(root: Tensor) -> list[Tensor]:
    """Everything that the root was made from, each after its parents; without recursion."""
    order: list[Tensor] = []
    seen: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, parents_are_in = stack.pop()
        if parents_are_in:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend([(parent, False) for parent, _ in node.steps])
    return order


def _sum_over_copies(g: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum over the axes along which an array of `shape` was broadcast."""
    extra = g.ndim - len(shape)
    if extra and g.size and g.shape[extra:] == shape:  # as a product: faster than a sum
        n = math.prod(g.shape[:extra])
        return (np.ones(n, g.dtype) @ g.reshape(n, -1)).reshape(shape)
    g = g.sum(axis=tuple(range(extra))) if extra else g
    return g.sum(axis=tuple(n for n, m in enumerate(shape) if m == 1 != g.shape[n]), keepdims=True)
