"""What is refused: choices and inputs that can't be, and a model that its parameters contradict.

Axes: B batch, L tokens, S keys, D model width, H heads, G heads of keys, K width of a head.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.transformer.encodings.base import Encoding, Params, Shape
from pe_numpy.transformer.layers import ACTIVATIONS
from pe_numpy.transformer.masks import Causal


def fits(params: Params, model: Any, function: str = "fits") -> None:
    """Refuse a model that contradicts its parameters, where they can show it.

    They show how many heads can be, which arrays an encoding has, and a last norm: with "pre" there
    is one, with "post" none, as in the paper. Stacks of torch's nn.Transformer end with a norm in
    both orders; of a post-norm one take it out, and apply it to what the stack gives.

    What the parameters can't show is up to you: a number of heads that divides the projections, the
    activation, the scale, eps, dropout, the mask, and an encoding that has no arrays of its own
    (ALiBi or RoPE), or arrays of the same names and shapes (T5 with another `max_distance`). A
    `Cache` keeps the model of its first call, and refuses another; so do the files that `save` and
    `train` make, if these are given the model.

    Examples
    --------
    >>> from pe_numpy import Model, Sizes, init_params
    >>> model = Model(n_heads=2)
    >>> params = init_params(Sizes(11, 8, 16, 1), model, np.random.default_rng(0))
    >>> fits(params, model)
    >>> fits(params, Model(n_heads=3))
    Traceback (most recent call last):
    ValueError: fits: n_heads must divide the width of W_q in decoder layer 0; got 3 and 8
    """
    if not isinstance(params, dict) or "embedding" not in params:
        raise ValueError(
            f"{function}: params must be the dictionaries that init_params makes; got "
            f"{type(params).__name__}"
        )
    if not hasattr(model, "of_layer"):
        raise ValueError(f"{function}: model must be a Model; got {type(model).__name__}")
    for name in ("encoder", "decoder"):
        if name in params:
            _fits_stack(function, params[name], model, name, params["embedding"].shape[1])


def _fits_stack(function: str, stack: Params, model: Any, name: str, D: int) -> None:
    last = "norm" in stack
    if last != (model.norm == "pre"):
        way_out = (
            ". After post-norm leave it out, and apply it to what the stack gives" if last else ""
        )
        raise ValueError(
            f"{function}: norm must be {'pre' if last else 'post'}, since the {name} has "
            f"{'a' if last else 'no'} last norm; got {model.norm!r}{way_out}"
        )
    encodings = []
    for n, layer in enumerate(stack["layers"].values()):
        where = f"{name} layer {n}"
        shape = _fits_heads(function, layer["attention"], "n_heads", model.n_heads, D, where)
        if "cross" in layer:
            heads = model.cross_heads or model.n_heads
            _fits_heads(function, layer["cross"], "cross_heads", heads, D, where)
        encoding = model.of_layer("encoding", n, name == "encoder")
        _same(function, encoding, layer["encoding"], _own(encoding, shape)[0], where)
        encodings.append((encoding, shape))
    members, shared = dict.fromkeys(encodings), stack["shared"]
    names = [str(n) for n in range(len(members))]
    if len(members) > 1 and set(shared) != set(names):
        raise ValueError(
            f"{function}: the {name} must share arrays under the names {names}, since the model "
            f"has {len(members)} encodings; got {list(shared)}"
        )
    each = [shared] if len(members) == 1 else [shared[n] for n in names]
    for (encoding, shape), held in zip(members, each, strict=True):
        _same(function, encoding, held, _own(encoding, shape)[1], f"the {name} shared")


def _fits_heads(function: str, own: Params, name: str, H: int, D: int, where: str) -> Shape:
    width, narrow = own["W_q"].shape[-1], own["W_k"].shape[-1]
    if width % H:
        raise ValueError(
            f"{function}: {name} must divide the width of W_q in {where}; got {H} and {width}"
        )
    K = width // H
    G = narrow // K
    if narrow % K or not G or H % G:
        raise ValueError(
            f"{function}: the width of W_k in {where} must be K times a divisor of {name}; got "
            f"{narrow}, K = {K} and {H} heads"
        )
    if "sink" in own and own["sink"].shape != (H,):
        raise ValueError(
            f"{function}: {name} must be that of the sinks in {where}; got {H} and "
            f"{own['sink'].shape}"
        )
    return Shape(D, H, G, K)


@functools.lru_cache(maxsize=256)
def _own(encoding: Encoding, shape: Shape) -> tuple[dict, dict]:
    """Shapes of the arrays that an encoding has in a layer, and of those that layers share."""
    rng = np.random.default_rng(0)
    made = encoding.layer(rng, shape), encoding.shared(rng, shape)
    return tuple({name: np.shape(x) for name, x in each.items()} for each in made)  # type: ignore


def _same(function: str, encoding: Encoding, held: Params, own: dict, where: str) -> None:
    found = {name: np.shape(x) for name, x in held.items()}
    if found != own:
        raise ValueError(
            f"{function}: {encoding} must have its own arrays in {where}, {own or 'none'}; the "
            f"parameters hold {found or 'none'}"
        )


# ---- choices and inputs -------------------------------------------------------------------------


def check_choices(model: Any) -> None:
    """Refuse choices of a `Model` that are unknown, or exclude each other."""
    checks.integer("Model", "n_heads", model.n_heads)
    patterns = {}
    for name, kind, example in (("encoding", Encoding, "Rope()"), ("mask", Causal, "Window(4)")):
        pattern = getattr(model, name)
        members = patterns[name] = pattern if isinstance(pattern, tuple) else (pattern,)
        if not members or not all(isinstance(each, kind) for each in members):
            raise ValueError(
                f"Model: {name} must be an instance of {kind.__name__}, such as {example}, or "
                f"a tuple of them; got {pattern!r}"
            )
    checks.choice("Model", "norm", model.norm, ("pre", "post"))
    checks.choice("Model", "activation", model.activation, tuple(ACTIVATIONS))
    checks.share("Model", "dropout", model.dropout)
    if model.cross_heads is not None:
        checks.integer("Model", "cross_heads", model.cross_heads)
    for name in ("scale", "eps"):
        if getattr(model, name) is not None:
            checks.positive("Model", name, getattr(model, name))
    for n in range(math.lcm(*map(len, patterns.values()))):
        encoding, mask = model.of_layer("encoding", n), model.of_layer("mask", n)
        if encoding.needs not in (None, mask):
            raise ValueError(
                f"Model: {encoding} needs the mask {encoding.needs}, which hides what it drops; "
                f"got {mask}"
            )


def check_memory(
    params: Params, tokens: np.ndarray, memory: ArrayLike | None, memory_real: ArrayLike | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The memory (B, S, D), and which of it is real: None if all is."""
    if ("encoder" in params) != (memory is not None):
        raise ValueError(
            "decode: memory must be given if and only if the model has an encoder; got "
            f"{'none' if memory is None else 'one'}"
        )
    if memory is None:
        if memory_real is not None:
            raise ValueError("decode: memory_real must come with a memory; got it alone")
        return None, None
    memory = checks.real_array("decode", "memory", memory, "BSD")
    shape = (tokens.shape[0], memory.shape[1], params["embedding"].shape[1])
    if memory.shape != shape:
        raise ValueError(
            f"decode: memory must have the shape (B, S, D) = {shape}; got {memory.shape}"
        )
    return memory, checks.which_real("decode", "memory_real", memory_real, shape[:2])
