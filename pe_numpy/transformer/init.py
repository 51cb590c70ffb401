"""The parameters of a Transformer: how many there are, what they begin with, and which model fits.

Source: projections are normal with variance 1/fan-in; those that end a sublayer are smaller by
sqrt(2 layers), as in GPT-2 (Radford et al. 2019, section 2.3); the output layer starts at half.
Gated network: Shazeer 2020 (arXiv:2002.05202); shared heads of keys: Ainslie et al. 2023
(arXiv:2305.13245).

Axes: D model width, H heads, G heads of keys, K width of a head, F feed-forward width, V
vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pe_numpy import checks
from pe_numpy.transformer.encodings.base import Params, Shape
from pe_numpy.transformer.model import Model


@dataclass(frozen=True)
class Sizes:
    """Sizes and parts of a Transformer's parameters; afterwards the parameters show them.

    Source: Vaswani et al. 2017, section 3 and table 3.

    Parameters
    ----------
    vocabulary, d_model, d_ff, n_layers : int
        Number of tokens V, width D, feed-forward width F, layers of the decoder.
    n_encoder_layers : int
        Layers of the encoder; 0 for a decoder-only model.
    n_kv_heads : int, optional
        Heads of keys and values in each self-attention, a divisor of H, which is the default;
        neighbouring query heads share one.
    d_head : int, optional
        Width K of each head, D/H by default. With another one the heads side by side have the width
        H K, and the projections lead from D to H K and back.
    gated, biases, tied, rms, sink : bool
        A gate in the feed-forward network; biases in all projections; output layer tied to the
        embedding; RMS norms; a learned sink a head in each self-attention (`attend(..., sink)`).

    Examples
    --------
    >>> Sizes(37000, 512, 2048, 6, n_encoder_layers=6, tied=True).n_layers
    6
    """

    vocabulary: int
    d_model: int
    d_ff: int
    n_layers: int
    n_encoder_layers: int = 0
    n_kv_heads: int | None = None
    d_head: int | None = None
    gated: bool = False
    biases: bool = True
    tied: bool = False
    rms: bool = False
    sink: bool = False

    def __post_init__(self) -> None:
        for name in ("vocabulary", "d_model", "d_ff", "n_layers"):
            checks.integer("Sizes", name, getattr(self, name))
        checks.integer("Sizes", "n_encoder_layers", self.n_encoder_layers, least=0)
        for name in ("n_kv_heads", "d_head"):
            if getattr(self, name) is not None:
                checks.integer("Sizes", name, getattr(self, name))
        for name in ("gated", "biases", "tied", "rms", "sink"):
            checks.flag("Sizes", name, getattr(self, name))


def init_params(
    sizes: Sizes, model: Model, rng: np.random.Generator, dtype: Any = np.float32
) -> Params:
    """Draw the parameters of a model.

    Source: see the module.

    Parameters
    ----------
    sizes : Sizes
        Their sizes.
    model : Model
        Its choices.
    rng : numpy.random.Generator
        Where the numbers come from.
    dtype : floating dtype
        Of all parameters.

    Returns
    -------
    Nested dictionaries of arrays: "embedding" (V, D), "decoder" and, if there is one, "encoder",
    each with "layers", "shared" (of the encoding) and, for pre-norm, "norm"; "output" (D, V) if the
    output layer is not tied.

    Examples
    --------
    >>> params = init_params(Sizes(11, 8, 16, 1), Model(n_heads=2), np.random.default_rng(0))
    >>> sorted(params), params["decoder"]["layers"]["0"]["attention"]["W_q"].shape
    (['decoder', 'embedding', 'output'], (8, 8))
    """
    _check(sizes, model)
    rng = checks.generator("init_params", "rng", rng)
    if not np.issubdtype(dtype, np.floating):
        raise ValueError(f"init_params: dtype must be a floating one, such as float32; got {dtype}")
    D, V = sizes.d_model, sizes.vocabulary
    scale = math.sqrt(D) if model.scale is None else model.scale
    params: Params = {"embedding": rng.standard_normal((V, D)) * (0.5 / scale)}
    if sizes.n_encoder_layers:
        params["encoder"] = _stack(sizes, model, rng, encoder=True)
    params["decoder"] = _stack(sizes, model, rng, encoder=False)
    if not sizes.tied:
        params["output"] = rng.standard_normal((D, V)) * (0.5 / math.sqrt(D))
    return _cast(params, dtype)


def _check(sizes: Sizes, model: Model) -> None:
    """Refuse sizes and choices that exclude each other."""
    for name, value, kind in (("sizes", sizes, Sizes), ("model", model, Model)):
        if not isinstance(value, kind):
            raise ValueError(
                f"init_params: {name} must be {kind.__name__}(...); got {type(value).__name__}"
            )
    for name in ("n_heads", "cross_heads"):
        heads = getattr(model, name)
        if heads is not None and sizes.d_head is None and sizes.d_model % heads:
            raise ValueError(
                f"init_params: {name} must divide d_model; got {heads} and {sizes.d_model}"
            )
    if sizes.n_kv_heads is not None and model.n_heads % sizes.n_kv_heads:
        raise ValueError(
            f"init_params: n_kv_heads must divide n_heads; got {sizes.n_kv_heads} and "
            f"{model.n_heads}"
        )


def _cast(tree: Any, dtype: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _cast(value, dtype) for key, value in tree.items()}
    return tree.astype(dtype)


def _stack(sizes: Sizes, model: Model, rng: np.random.Generator, encoder: bool) -> Params:
    n_layers = sizes.n_encoder_layers if encoder else sizes.n_layers
    D, F, last = sizes.d_model, sizes.d_ff, 1 / math.sqrt(2 * n_layers)
    shape = Shape(D, model.n_heads, sizes.n_kv_heads, sizes.d_head)
    H, G, K = model.n_heads, shape.n_kv_heads, shape.d_head

    def projection(fan_in: int, fan_out: int, size: float = 1.0) -> np.ndarray:
        return rng.standard_normal((fan_in, fan_out)) * (size / math.sqrt(fan_in))

    def norm() -> Params:
        return {"gain": np.ones(D)} if sizes.rms else {"gain": np.ones(D), "bias": np.zeros(D)}

    def attention(all_heads: int, shared: int) -> Params:
        ends = {"q": (D, all_heads), "k": (D, shared), "v": (D, shared), "o": (all_heads, D)}
        params = {f"W_{n}": projection(*e, last if n == "o" else 1.0) for n, e in ends.items()}
        return params | {f"b_{n}": np.zeros(e[1]) for n, e in ends.items() if sizes.biases}

    def network() -> Params:
        params = {"W_1": projection(D, F), "W_2": projection(F, D, last)}
        if sizes.gated:
            params["W_gate"] = projection(D, F)
        return {**params, **({"b_1": np.zeros(F), "b_2": np.zeros(D)} if sizes.biases else {})}

    layers, encodings = {}, [model.of_layer("encoding", n, encoder) for n in range(n_layers)]
    for n, encoding in enumerate(encodings):
        layer = {"attention": attention(H * K, G * K), "attention_norm": norm()}
        if sizes.sink:
            layer["attention"]["sink"] = np.zeros(H)
        if sizes.n_encoder_layers and not encoder:
            width = D if sizes.d_head is None else K * (model.cross_heads or H)
            layer |= {"cross": attention(width, width), "cross_norm": norm()}
        layer |= {"feed_forward": network(), "feed_forward_norm": norm()}
        layers[str(n)] = {**layer, "encoding": encoding.layer(rng, shape)}
    shared = [member.shared(rng, shape) for member in dict.fromkeys(encodings)]
    every = shared[0] if len(shared) == 1 else {str(n): own for n, own in enumerate(shared)}
    stack = {"layers": layers, "shared": every}
    return {**stack, "norm": norm()} if model.norm == "pre" else stack
