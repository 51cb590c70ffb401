r"""The Transformer: encoder-decoder and decoder-only, as functions of (parameters, inputs).

Source: Vaswani et al. 2017, "Attention is all you need" (arXiv:1706.03762), section 3; pre-norm:
Xiong et al. 2020 (arXiv:2002.04745); gated feed-forward: Shazeer 2020 (arXiv:2002.05202)::

    post-norm   x = norm(x + sublayer(x))
    pre-norm    x = x + sublayer(norm(x)), and one more norm at the end

Axes: B batch, L tokens (of the decoder), S keys, D model width, H heads, F feed-forward width,
V vocabulary.
Symbols: parameters are nested dictionaries, named as in the paper; layers have the keys "0", "1".
Convention: token vectors are rows. Positions count real tokens: with padding on the left the first
real token stands at 0. The embedding is multiplied by sqrt(D), as in section 3.4.
Differs from the paper: every part that later models changed is a choice of `Model`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.transformer.attention import (
    attend,
    causal_mask,
    chunk_mask,
    merge_heads,
    split_heads,
    window_mask,
)
from pe_numpy.transformer.encodings.base import Encoding, Params, Sizes
from pe_numpy.transformer.layers import (
    ACTIVATIONS,
    dropout,
    embed_tokens,
    feed_forward,
    layer_norm,
    linear,
    rms_norm,
)

KeysAndValues = tuple[np.ndarray, np.ndarray]  # (B, H, S, K) each
NOWHERE = np.zeros(0, np.int64)  # positions of cross-attention, which has no encoding


@dataclass(frozen=True)
class Model:
    """Sizes and choices of a Transformer; it holds no parameters.

    Parameters
    ----------
    vocabulary : int
        Number of tokens V.
    d_model, n_heads, d_ff : int
        Width D, heads H (a divisor of D, unless d_head is given), feed-forward width F.
    n_layers : int
        Layers of the decoder.
    n_encoder_layers : int
        Layers of the encoder; 0 for a decoder-only model.
    encoding : Encoding, or a tuple of them
        How position enters; see `pe_numpy.transformer.encodings`. A tuple is a pattern of layers:
        layer n has the encoding n mod its length.
    norm : "pre" or "post"
        Where the norm stands. A stack with "pre" ends with one more norm, since nothing else bounds
        the sum of its sublayers; each sublayer of "post" ends with its own.
    norm_kind : "layer" or "rms"
        Which norm.
    activation : "relu", "gelu", "gelu_tanh" or "silu"
        Of the feed-forward network.
    gated, biases, tied, scaled_embedding : bool
        A gate in the feed-forward network; biases in all projections; output layer tied to the
        embedding; embedding times sqrt(D).
    cross_heads : int, optional
        Heads of the cross-attention, H by default; a divisor of D, as H.
    n_kv_heads : int, optional
        Heads of keys and values in each self-attention, a divisor of H, which is the default;
        neighbouring query heads share one.
    window, chunk : int, or a tuple of them, optional
        A token of the decoder attends to the last `window` tokens, itself among them; or to those
        of its own chunk, of `chunk` tokens each. A tuple is a pattern of layers; None sees all.
    sinks : int
        First tokens that a window leaves in sight.
    sink_logits : bool
        A learned sink a head in each self-attention: `attend(..., sink)`.
    dropout : float
        Rate on the embedding and on each sublayer's output, when a generator is passed.
    d_head : int, optional
        Width K of each head, D/H by default. With another one the heads side by side have the width
        H K, and the projections lead from D to H K and back.
    norm_eps : float, optional
        What the norms add under the root: 1e-5 for "layer", 1e-6 for "rms" by default.

    Raises
    ------
    ValueError
        If the number of heads should divide D and does not, a size is below 1, a choice is unknown,
        or a layer shall have a window and chunks; the message names the field.

    Notes
    -----
    Source: Vaswani et al. 2017, section 3 and table 3; the paper's choices are post-norm, ReLU,
    biases, a tied output layer and dropout 0.1.

    Examples
    --------
    >>> Model(37000, 512, 8, 2048, 6, n_encoder_layers=6, norm="post", tied=True).n_layers
    6
    """

    vocabulary: int
    d_model: int
    n_heads: int
    d_ff: int
    n_layers: int
    n_encoder_layers: int = 0
    encoding: Encoding | tuple[Encoding, ...] = field(default_factory=Encoding)
    norm: str = "pre"
    norm_kind: str = "layer"
    activation: str = "relu"
    gated: bool = False
    biases: bool = True
    tied: bool = False
    scaled_embedding: bool = True
    cross_heads: int | None = None
    dropout: float = 0.0
    n_kv_heads: int | None = None
    window: int | tuple[int | None, ...] | None = None
    chunk: int | tuple[int | None, ...] | None = None
    sinks: int = 0
    sink_logits: bool = False
    d_head: int | None = None
    norm_eps: float | None = None

    def __post_init__(self) -> None:
        _check_choices(self)

    def of_layer(self, name: str, n: int) -> Any:
        """Return a choice that may differ between layers: "encoding", "window" or "chunk"."""
        pattern = getattr(self, name)
        return pattern[n % len(pattern)] if isinstance(pattern, tuple) else pattern


def _check_choices(model: Model) -> None:
    """Refuse a wrong choice by the name of its field."""
    for name in ("vocabulary", "d_model", "n_heads", "d_ff", "n_layers"):
        checks.integer("Model", name, getattr(model, name))
    checks.integer("Model", "n_encoder_layers", model.n_encoder_layers, least=0)
    for name in ("encoding", "window", "chunk"):
        if getattr(model, name) == ():
            raise ValueError(f"Model: {name} must have an entry for a layer; got ()")
    layers = model.encoding if isinstance(model.encoding, tuple) else (model.encoding,)
    for encoding in layers:
        if not isinstance(encoding, Encoding):
            raise ValueError(
                "Model: encoding must be an Encoding, such as Rope(), or a tuple of them; "
                f"got {encoding!r}"
            )
    checks.choice("Model", "norm", model.norm, ("pre", "post"))
    checks.choice("Model", "norm_kind", model.norm_kind, ("layer", "rms"))
    checks.choice("Model", "activation", model.activation, tuple(ACTIVATIONS))
    for name in ("gated", "biases", "tied", "scaled_embedding", "sink_logits"):
        checks.flag("Model", name, getattr(model, name))
    checks.share("Model", "dropout", model.dropout)
    for name in ("n_heads", "cross_heads"):
        heads = getattr(model, name)
        rest = 0 if heads is None else model.d_model % checks.integer("Model", name, heads)
        if rest and model.d_head is None:
            raise ValueError(f"Model: {name} must divide d_model; got {heads} and {model.d_model}")
    if model.d_head is not None:
        checks.integer("Model", "d_head", model.d_head)
    if model.norm_eps is not None:
        checks.positive("Model", "norm_eps", model.norm_eps)
    groups = model.n_kv_heads
    if groups is not None and model.n_heads % checks.integer("Model", "n_kv_heads", groups):
        raise ValueError(f"Model: n_kv_heads must divide n_heads; got {groups} and {model.n_heads}")
    for name in ("window", "chunk"):
        sizes = getattr(model, name)
        for size in sizes if isinstance(sizes, tuple) else (sizes,):
            if size is not None:
                checks.integer("Model", name, size)
    for n in range(model.n_layers):
        window, chunk = model.of_layer("window", n), model.of_layer("chunk", n)
        if window is not None and chunk is not None:
            raise ValueError(
                "Model: window and chunk exclude each other in a layer; "
                f"got {window} and {chunk} in layer {n}"
            )
    if checks.integer("Model", "sinks", model.sinks, least=0) and model.window is None:
        raise ValueError(f"Model: sinks need a window that could hide them; got {model.sinks}")


# ---- parameters ---------------------------------------------------------------------------------


def init_params(model: Model, rng: np.random.Generator, dtype: type = np.float32) -> dict[str, Any]:
    """Draw the parameters of a model.

    Parameters
    ----------
    model : Model
        Sizes and choices.
    rng : numpy.random.Generator
        Where the numbers come from.
    dtype : floating dtype
        Of all parameters.

    Returns
    -------
    Nested dictionaries of arrays: "embedding" (V, D), "decoder" and, if there is one, "encoder",
    each with "layers", "shared" (of the encoding) and, for pre-norm, "norm"; "output" (D, V) if the
    output layer is not tied.

    Raises
    ------
    ValueError
        If the model is no Model, rng no generator, or the dtype not a floating one.

    Notes
    -----
    Source: projections are normal with variance 1/fan-in; those that end a sublayer are smaller by
    sqrt(2 layers), as in GPT-2 (Radford et al. 2019, section 2.3); the output layer starts at half.

    Examples
    --------
    >>> params = init_params(Model(11, 8, 2, 16, 1), np.random.default_rng(0))
    >>> sorted(params), params["decoder"]["layers"]["0"]["attention"]["W_q"].shape
    (['decoder', 'embedding', 'output'], (8, 8))
    """
    if not isinstance(model, Model):
        raise ValueError(f"init_params: model must be a Model; got {type(model).__name__}")
    if not isinstance(rng, np.random.Generator):
        raise ValueError(
            "init_params: rng must be a generator, such as np.random.default_rng(0); "
            f"got {type(rng).__name__}"
        )
    if not np.issubdtype(dtype, np.floating):
        raise ValueError(f"init_params: dtype must be a floating one, such as float32; got {dtype}")
    D, V = model.d_model, model.vocabulary
    spread = 1 / math.sqrt(D) if model.scaled_embedding else 1.0
    params: dict[str, Any] = {"embedding": rng.standard_normal((V, D)) * spread * 0.5}
    if model.n_encoder_layers:
        params["encoder"] = _init_stack(model, rng, model.n_encoder_layers, encoder=True)
    params["decoder"] = _init_stack(model, rng, model.n_layers, encoder=False)
    if not model.tied:
        params["output"] = rng.standard_normal((D, V)) * (0.5 / math.sqrt(D))
    return _cast(params, dtype)


def _cast(tree: Any, dtype: type) -> Any:
    if isinstance(tree, dict):
        return {key: _cast(value, dtype) for key, value in tree.items()}
    return tree.astype(dtype)


def _init_stack(
    model: Model, rng: np.random.Generator, n_layers: int, encoder: bool
) -> dict[str, Any]:
    D, F, last = model.d_model, model.d_ff, 1 / math.sqrt(2 * n_layers)
    sizes = Sizes(D, model.n_heads, n_layers, model.n_kv_heads, model.d_head)
    H, G, K = model.n_heads, model.n_kv_heads or model.n_heads, sizes.d_head

    def projection(fan_in: int, fan_out: int, size: float = 1.0) -> np.ndarray:
        return rng.standard_normal((fan_in, fan_out)) * (size / math.sqrt(fan_in))

    def norm() -> Params:
        gain = {"gain": np.ones(D)}
        return gain if model.norm_kind == "rms" else {**gain, "bias": np.zeros(D)}

    def attention(all_heads: int, shared: int, sink: bool = False) -> Params:
        ends = {"q": (D, all_heads), "k": (D, shared), "v": (D, shared), "o": (all_heads, D)}
        params = {f"W_{n}": projection(*e, last if n == "o" else 1.0) for n, e in ends.items()}
        params |= {f"b_{n}": np.zeros(e[1]) for n, e in ends.items() if model.biases}
        return {**params, "sink": np.zeros(H)} if sink else params

    def network() -> Params:
        params = {"W_1": projection(D, F), "W_2": projection(F, D, last)}
        if model.gated:
            params["W_gate"] = projection(D, F)
        return {**params, **({"b_1": np.zeros(F), "b_2": np.zeros(D)} if model.biases else {})}

    crossed = bool(model.n_encoder_layers) and not encoder
    layers = {}
    for n in range(n_layers):
        own = attention(H * K, G * K, model.sink_logits)
        layer = {"attention": own, "attention_norm": norm()}
        if crossed:
            width = D if model.d_head is None else K * (model.cross_heads or H)
            layer |= {"cross": attention(width, width), "cross_norm": norm()}
        layer |= {"feed_forward": network(), "feed_forward_norm": norm()}
        layers[str(n)] = {**layer, "encoding": _encoding(model, n, encoder).layer(rng, sizes)}
    shared = [member.shared(rng, sizes) for member in _members(model, encoder)]
    every = shared[0] if len(shared) == 1 else {str(n): own for n, own in enumerate(shared)}
    stack = {"layers": layers, "shared": every}
    return {**stack, "norm": norm()} if model.norm == "pre" else stack


# ---- one encoding, or one for each layer --------------------------------------------------------


def _encoding(model: Model, n: int, encoder: bool = False) -> Encoding:
    encoding = model.of_layer("encoding", n)
    return encoding.for_encoder() if encoder else encoding


def _members(model: Model, encoder: bool = False) -> list[Encoding]:
    """The different encodings of a stack, in the order of their first layers."""
    members: list[Encoding] = []
    layers = model.n_encoder_layers if encoder else model.n_layers
    for n in range(layers if isinstance(model.encoding, tuple) else 1):
        if _encoding(model, n, encoder) not in members:
            members.append(_encoding(model, n, encoder))
    return members


def _shared(model: Model, shared: Params, encoding: Encoding, encoder: bool = False) -> Params:
    """What all layers of an encoding share."""
    members = _members(model, encoder)
    return shared if len(members) == 1 else shared[str(members.index(encoding))]


# ---- one layer ----------------------------------------------------------------------------------


def _norm(model: Model, params: Params, x: np.ndarray) -> np.ndarray:
    if model.norm_kind == "rms":
        return rms_norm(x, params["gain"], model.norm_eps or 1e-6)
    return layer_norm(x, params["gain"], params["bias"], model.norm_eps or 1e-5)


def _sublayer(
    model: Model,
    norm: Params,
    x: np.ndarray,
    compute: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator | None,
) -> np.ndarray:
    """Residual connection, dropout and norm around a sublayer."""
    if model.norm == "pre":
        return x + _drop(model, compute(_norm(model, norm, x)), rng)
    return _norm(model, norm, x + _drop(model, compute(x), rng))


def _drop(model: Model, x: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
    return x if rng is None else dropout(x, model.dropout, rng)


def _project(params: Params, name: str, x: np.ndarray, n_heads: int) -> np.ndarray:
    """Queries, keys or values: (B, L, D) to (B, H, L, K)."""
    return split_heads(linear(x, params[f"W_{name}"], params.get(f"b_{name}")), n_heads)


def multi_head_attention(
    params: Params,
    x: np.ndarray,
    source: np.ndarray | KeysAndValues,
    n_heads: int,
    mask: np.ndarray | None = None,
    encoding: Encoding | None = None,
    places: Params | None = None,
    q_positions: np.ndarray = NOWHERE,
    k_positions: np.ndarray = NOWHERE,
    remember: Callable[..., tuple[np.ndarray, ...]] | None = None,
    real: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Multi-head attention with position at places 2, 3 and 4: Concat(head_1 ... head_h) W^O.

    Parameters
    ----------
    params : dict
        W_q, W_k, W_v (D, H K), W_o (H K, D), optional b_q, b_k, b_v (H K,), b_o (D,) and sink (H,).
        W_k and W_v may be narrower, (D, G K): then query head h reads key head h G // H.
    x : (B, L, D) array
        What asks: queries are made from it.
    source : (B, S, D) array, or two (B, H, S, K) arrays
        What answers: x itself, the encoder's memory, or keys and values made from it before.
    n_heads : int
        Number of heads H.
    mask : boolean array that broadcasts to (B, H, L, S), optional
        True = may attend.
    encoding, places : Encoding and its parameters, optional
        None for cross-attention.
    q_positions, k_positions : (L,) or (B, L), and (S,) or (B, S) arrays
        Needed with an encoding.
    remember : function, optional
        Takes the newest keys and values (and gates, if the encoding makes them) and gives all of
        them: a cache.
    real : (B, L) boolean array, optional
        False where a token of x is padding, whose gates count nothing.

    Returns
    -------
    output : (B, L, D) array
    weights : (B, H, L, S) array

    Raises
    ------
    ValueError
        If shapes don't fit.

    Notes
    -----
    Source: Vaswani et al. 2017, section 3.2.2.

    Examples
    --------
    >>> params, x = {f"W_{n}": np.eye(2) for n in "qkvo"}, np.array([[[1.0, 0.0], [0.0, 1.0]]])
    >>> output, weights = multi_head_attention(params, x, 0 * x, n_heads=1)
    >>> weights.tolist(), output.tolist()
    ([[[[0.5, 0.5], [0.5, 0.5]]]], [[[0.0, 0.0], [0.0, 0.0]]])
    """
    encoding, places = encoding or Encoding(), places or {}
    q = _project(params, "q", x, n_heads)  # (B, H, L, K)
    k, v = source if isinstance(source, tuple) else _keys_and_values(params, source, n_heads)
    if encoding.turns_alone:  # the newest keys turn once, and are remembered so
        newest = k_positions if remember is None else q_positions
        q, k = encoding.turn(places, q, k, q_positions, newest)
    gates = encoding.gates(places, x)
    if gates is not None and real is not None:
        gates = np.where(real[:, None], gates, 0.0)  # (B, H, L)
    if remember is not None:
        k, v, *kept = remember(k, v) if gates is None else remember(k, v, gates)  # (B, H, S, K)
        gates = kept[0] if kept else None  # (B, H, S)
    if not encoding.turns_alone:
        q, k = encoding.turn(places, q, k, q_positions, k_positions)
    if k.shape[-3] != n_heads:
        k, v = (np.repeat(x, n_heads // x.shape[-3], axis=-3) for x in (k, v))  # (B, H, S, K)
    scores = encoding.scores(places, q, k, q_positions, k_positions, gates, mask)  # (B, H, L, S)
    mixed, weights = attend(scores, v, mask, params.get("sink"))
    if type(encoding).mix is not Encoding.mix:
        mixed = encoding.mix(places, weights, v, q_positions, k_positions)
    return linear(merge_heads(mixed), params["W_o"], params.get("b_o")), weights


def _keys_and_values(params: Params, source: np.ndarray, n_heads: int) -> KeysAndValues:
    """Keys and values (B, G, S, K), of as many heads as their projections have room for."""
    G = max(1, n_heads * params["W_k"].shape[-1] // params["W_q"].shape[-1])
    return _project(params, "k", source, G), _project(params, "v", source, G)


# ---- the cache ----------------------------------------------------------------------------------


class Cache:
    """Keys and values of what a decoder has read, so that each new token costs one row.

    Keys are held turned, if a key's turn depends on its own position alone; an encoding whose
    frequencies change with the length gets them as they were before, with their positions. Room is
    taken once, for `capacity` tokens.

    One cache serves one set of parameters and one memory, those of the first call: `decode` refuses
    other parameters (another "decoder" dictionary; that its arrays stay as they are is up to you)
    and a memory with other numbers. A call that fails leaves the cache as it was.

    Parameters
    ----------
    model : Model
        The model that will fill it.
    batch : int
        Number of sequences B.
    capacity : int
        The most tokens it can hold.
    dtype : floating dtype
        Of keys and values, the parameters' own.

    Raises
    ------
    ValueError
        If the batch or the capacity is below 1; later, if there is no room for another token.

    Notes
    -----
    Source: common practice; the causal mask is what allows it, since old rows never change. If the
    frequencies of RoPE change with the length (dynamic NTK), that holds for the first layer alone:
    deeper keys hold what the first layer said under the frequencies of its day.

    Examples
    --------
    >>> model = Model(11, 8, 2, 16, n_layers=1)
    >>> params, cache = init_params(model, np.random.default_rng(0)), Cache(model, 1, 3)
    >>> first = [decode(params, model, [[token]], cache=cache) for token in (3, 1, 4)]
    >>> bool(np.allclose(first[-1], decode(params, model, [[3, 1, 4]])[:, -1:], atol=1e-6))
    True
    """

    def __init__(self, model: Model, batch: int, capacity: int, dtype: type = np.float32) -> None:
        checks.integer("Cache", "batch", batch)
        checks.integer("Cache", "capacity", capacity)
        heads = model.n_kv_heads or model.n_heads
        shape = (batch, heads, capacity, model.d_head or model.d_model // model.n_heads)
        self.model, self.batch, self.capacity, self.length = model, batch, capacity, 0
        layers = [str(n) for n in range(model.n_layers)]
        self.keys: dict[str, np.ndarray] = {n: np.zeros(shape, dtype) for n in layers}
        self.values: dict[str, np.ndarray] = {n: np.zeros(shape, dtype) for n in layers}
        self.gates: dict[str, np.ndarray] = {}  # (B, H, capacity), if the encoding makes them
        self.real: np.ndarray | None = None  # (B, length), if there is padding
        self.decoder: Params | None = None  # whose keys and values these are
        self.memory: Any = None  # a copy of what `cross` was made from
        self.cross: dict[str, KeysAndValues] = {}

    def real_with(self, count: int, real: np.ndarray | None) -> np.ndarray | None:
        """Which tokens are real when the next ones have come; None if all are."""
        end = self.length + count
        if end > self.capacity:
            raise ValueError(
                f"Cache: there is room for {self.capacity} tokens; got {end}, make it larger"
            )
        if real is None and self.real is None:
            return None
        parts = (self.length, self.real), (count, real)
        return np.concatenate(
            [np.ones((self.batch, n), bool) if r is None else r for n, r in parts], axis=1
        )

    def extend(self, layer: str, k: np.ndarray, v: np.ndarray, *gates: np.ndarray) -> tuple:
        """Write the newest keys, values (and gates) of a layer after the others; return all."""
        start, end = self.length, self.length + k.shape[-2]
        rooms = (self.keys, self.values, self.gates)
        newest = (k, v, *gates)
        for held, new in zip(rooms, newest, strict=False):
            shape = (*new.shape[:2], self.capacity, *new.shape[3:])
            if not start and (layer not in held or held[layer].shape != shape):
                held[layer] = np.zeros(shape, k.dtype)  # gates, or heads not of the width D/H
            held[layer][:, :, start:end] = new
        return tuple(held[layer][:, :, :end] for held in rooms[: len(newest)])

    def append(self, count: int, real: np.ndarray | None = None) -> None:
        """Take note of the tokens whose keys and values all layers have written."""
        self.length, self.real = self.length + count, real

    def take(self, rows: ArrayLike) -> None:
        """Keep these sequences, in this order; one may come several times."""
        rows = checks.whole_numbers("Cache.take", "rows", rows)
        for held in (self.keys, self.values, self.gates):
            for layer, all_rows in held.items():
                held[layer] = all_rows[rows]
        for name, (k, v) in self.cross.items():
            self.cross[name] = k[rows], v[rows]
        self.real = None if self.real is None else self.real[rows]
        self.memory = None if self.memory is None else self.memory[rows]
        self.batch = len(rows)

    def cut(self, length: int) -> None:
        """Forget all tokens but the first `length`."""
        if checks.integer("Cache.cut", "length", length, least=0) > self.length:
            raise ValueError(
                f"Cache.cut: length must be at most the tokens held, {self.length}; got {length}"
            )
        self.length, self.real = length, None if self.real is None else self.real[:, :length]


# ---- the model ----------------------------------------------------------------------------------


def encode(
    params: dict[str, Any],
    model: Model,
    tokens: ArrayLike,
    real: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> np.ndarray:
    """Read a batch of source sequences: one vector for each token.

    Parameters
    ----------
    params : dict
        From `init_params`.
    model : Model
        Its sizes and choices.
    tokens : (B, S) integer array
        Source tokens.
    real : (B, S) boolean array, optional
        False where a token is padding.
    rng : numpy.random.Generator, optional
        For dropout; none at inference.

    Returns
    -------
    (B, S, D) array, the memory that `decode` looks at.

    Raises
    ------
    ValueError
        If the model has no encoder, a token is outside the vocabulary or shapes don't fit.

    Notes
    -----
    Source: Vaswani et al. 2017, section 3.1.

    Examples
    --------
    >>> model = Model(11, 8, 2, 16, n_layers=1, n_encoder_layers=1)
    >>> params = init_params(model, np.random.default_rng(0))
    >>> encode(params, model, [[3, 1, 4, 1, 5]]).shape
    (1, 5, 8)
    """
    if "encoder" not in params:
        raise ValueError("encode: the model has no encoder; give it n_encoder_layers above 0")
    rng = None if rng is None else checks.generator("encode", "rng", rng)
    tokens, real = _tokens("encode", tokens, real)
    positions = _positions(tokens.shape[1], real)
    mask = None if real is None else real[:, None, None, :]
    stack = params["encoder"]
    x = _embed(params, model, stack["shared"], tokens, positions, rng, encoder=True)
    for n, layer in enumerate(stack["layers"].values()):
        encoding = _encoding(model, n, encoder=True)
        places = {**_shared(model, stack["shared"], encoding, encoder=True), **layer["encoding"]}

        def look(
            x: np.ndarray,
            layer: Params = layer,
            encoding: Encoding = encoding,
            places: Params = places,
        ) -> np.ndarray:
            return multi_head_attention(
                layer["attention"],
                x,
                x,
                model.n_heads,
                mask,
                encoding,
                places,
                positions,
                positions,
                real=real,
            )[0]

        x = _sublayer(model, layer["attention_norm"], x, look, rng)
        x = _think(model, layer, x, rng)
    return _norm(model, stack["norm"], x) if "norm" in stack else x


def decode(
    params: dict[str, Any],
    model: Model,
    tokens: ArrayLike,
    memory: np.ndarray | None = None,
    memory_real: ArrayLike | None = None,
    real: ArrayLike | None = None,
    cache: Cache | None = None,
    rng: np.random.Generator | None = None,
    watch: dict[str, np.ndarray] | None = None,
) -> np.ndarray:
    """Read target tokens, each seeing itself and those before it: logits of the next token.

    Parameters
    ----------
    params : dict
        From `init_params`.
    model : Model
        Its sizes and choices.
    tokens : (B, L) integer array
        Target tokens, shifted right for training; with a cache, the newest only.
    memory : (B, S, D) array, optional
        From `encode`; needed if the model has an encoder.
    memory_real : (B, S) boolean array, optional
        False where a source token is padding.
    real : (B, L) boolean array, optional
        False where a token is padding. Positions count real tokens, so padding may stand on the
        left.
    cache : Cache, optional
        What was read before; this call adds its tokens.
    rng : numpy.random.Generator, optional
        For dropout; none at inference.
    watch : dict, optional
        Gets the attention weights: "attention 0", "cross 0", ... (B, H, L, S).

    Returns
    -------
    (B, L, V) array.

    Raises
    ------
    ValueError
        If a token is outside the vocabulary, a learned table is too short, shapes don't fit, the
        memory is missing, or the cache is full or made for another model.

    Notes
    -----
    Source: Vaswani et al. 2017, section 3.1; tied output layer: section 3.4.

    Examples
    --------
    >>> model = Model(11, 8, 2, 16, n_layers=1)
    >>> params = init_params(model, np.random.default_rng(0))
    >>> decode(params, model, [[3, 1, 4]]).shape
    (1, 3, 11)
    """
    rng = None if rng is None else checks.generator("decode", "rng", rng)
    tokens, real = _tokens("decode", tokens, real)
    memory, cross_mask = _memory(params, model, tokens, memory, memory_real)
    L, start, cross = tokens.shape[1], 0, {}
    if cache is not None:
        _check_cache(cache, params, model, tokens, memory)
        start, real, cross = cache.length, cache.real_with(L, real), {**cache.cross}
    k_positions = _positions(start + L, real)
    q_positions = k_positions[..., start:]
    newest_real = None if real is None else real[:, start:]
    stack, seen = params["decoder"], {}
    masks: dict[tuple[int | None, int | None], np.ndarray | None] = {}  # by window and chunk
    x = _embed(params, model, stack["shared"], tokens, q_positions, rng)
    heads = model.cross_heads or model.n_heads
    for n, (name, layer) in enumerate(stack["layers"].items()):
        encoding = _encoding(model, n)
        places = {**_shared(model, stack["shared"], encoding), **layer["encoding"]}
        sight = model.of_layer("window", n), model.of_layer("chunk", n)
        if sight not in masks:
            masks[sight] = _sight(*sight, model.sinks, q_positions, k_positions, real)

        def look(
            x: np.ndarray,
            name: str = name,
            layer: Params = layer,
            encoding: Encoding = encoding,
            places: Params = places,
            mask: np.ndarray | None = masks[sight],
        ) -> np.ndarray:
            output, weights = multi_head_attention(
                layer["attention"],
                x,
                x,
                model.n_heads,
                mask,
                encoding,
                places,
                q_positions,
                k_positions,
                None if cache is None else partial(cache.extend, name),
                newest_real,
            )
            if watch is not None:
                seen[f"attention {name}"] = weights
            return output

        def consult(x: np.ndarray, name: str = name, layer: Params = layer) -> np.ndarray:
            own = layer["cross"]
            assert memory is not None  # checked at the door
            source: np.ndarray | KeysAndValues = memory
            if cache is not None:
                if name not in cross:
                    cross[name] = _keys_and_values(own, memory, heads)
                source = cross[name]
            output, weights = multi_head_attention(own, x, source, heads, cross_mask)
            if watch is not None:
                seen[f"cross {name}"] = weights
            return output

        x = _sublayer(model, layer["attention_norm"], x, look, rng)
        if memory is not None:
            x = _sublayer(model, layer["cross_norm"], x, consult, rng)
        x = _think(model, layer, x, rng)
    if "norm" in stack:
        x = _norm(model, stack["norm"], x)
    logits = x @ (np.swapaxes(params["embedding"], 0, 1) if model.tied else params["output"])
    if cache is not None:  # only now: a call that fails leaves it as it was
        if cache.decoder is None:
            cache.decoder, cache.cross = stack, cross
            cache.memory = None if memory is None else memory.copy()
        cache.append(L, real)
    if watch is not None:
        watch.update(seen)
    return logits


def _think(
    model: Model, layer: Params, x: np.ndarray, rng: np.random.Generator | None
) -> np.ndarray:
    def compute(x: np.ndarray) -> np.ndarray:
        return feed_forward(layer["feed_forward"], x, model.activation)

    return _sublayer(model, layer["feed_forward_norm"], x, compute, rng)


def _embed(
    params: Params,
    model: Model,
    shared: Params,
    tokens: np.ndarray,
    positions: np.ndarray,
    rng: np.random.Generator | None,
    encoder: bool = False,
) -> np.ndarray:
    scale = math.sqrt(model.d_model) if model.scaled_embedding else 1.0
    x = embed_tokens(params["embedding"], tokens, scale)  # (B, L, D)
    for member in _members(model, encoder):
        x = member.embed(_shared(model, shared, member, encoder), x, positions)
    return _drop(model, x, rng)


def _tokens(
    function: str, tokens: ArrayLike, real: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Check both; the second is None if all tokens are real."""
    tokens = checks.whole_numbers(function, "tokens", tokens)
    if tokens.ndim != 2:
        raise ValueError(f"{function}: tokens must have the axes (B, L); got shape {tokens.shape}")
    return tokens, _real(function, "real", real, tokens.shape)


def _real(
    function: str, name: str, real: ArrayLike | None, shape: tuple[int, ...]
) -> np.ndarray | None:
    if real is None:
        return None
    real = checks.as_array(real)
    if real.dtype != np.bool_ or real.shape != shape:
        raise ValueError(
            f"{function}: {name} must be boolean and of the shape {shape} of its tokens; "
            f"got {real.dtype} {real.shape}"
        )
    return None if real.all() else real


def _memory(
    params: dict[str, Any],
    model: Model,
    tokens: np.ndarray,
    memory: ArrayLike | None,
    memory_real: ArrayLike | None,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Check both; the second becomes the mask (B, 1, 1, S) of the cross-attention."""
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
    shape = (tokens.shape[0], memory.shape[1], model.d_model)
    if memory.shape != shape:
        raise ValueError(
            f"decode: memory must have the shape (B, S, D) = {shape}; got {memory.shape}"
        )
    real = _real("decode", "memory_real", memory_real, shape[:2])
    return memory, None if real is None else real[:, None, None, :]


def _positions(length: int, real: np.ndarray | None) -> np.ndarray:
    """Positions of real tokens, from 0: (L,) if all are real, else (B, L)."""
    if real is None:
        return np.arange(length)
    return real_positions(real)


def real_positions(real: np.ndarray) -> np.ndarray:
    """Positions of tokens (..., L), True where real: real ones count from 0."""
    return np.maximum(np.cumsum(real, axis=-1) - 1, 0)


def _sight(
    window: int | None,
    chunk: int | None,
    sinks: int,
    q_positions: np.ndarray,
    k_positions: np.ndarray,
    real: np.ndarray | None,
) -> np.ndarray | None:
    """(L, S), or (B, 1, L, S) if there is padding; none if all may attend to all.

    Padding is unseen; what it sees itself does not matter.
    """
    if window is not None:
        mask = window_mask(q_positions, k_positions, window, sinks)
    elif chunk is not None:
        mask = chunk_mask(q_positions, k_positions, chunk)
    elif real is None and q_positions.shape[-1] == 1:
        return None  # the newest token alone
    else:
        mask = causal_mask(q_positions, k_positions)
    if real is not None:
        mask = mask[:, None] & real[:, None, None, :]
    return None if mask.all() else mask


def _check_cache(
    cache: Cache,
    params: dict[str, Any],
    model: Model,
    tokens: np.ndarray,
    memory: np.ndarray | None,
) -> None:
    if cache.model is not model and cache.model != model:
        raise ValueError("decode: the cache must be made for this model; make a new one")
    kept, dtype = (cache.batch, cache.keys["0"].dtype), params["embedding"].dtype
    if kept != (tokens.shape[0], dtype):
        raise ValueError(
            "decode: the cache must have the batch and dtype of the tokens and parameters, "
            f"{tokens.shape[0]} and {dtype}; got {kept[0]} and {kept[1]}"
        )
    if cache.decoder is None:
        return  # not used yet
    if cache.decoder is not params["decoder"]:
        raise ValueError(
            "decode: the cache serves one set of parameters; got another, make a new cache"
        )
    if memory is not None and not np.array_equal(cache.memory, memory):
        raise ValueError("decode: the cache serves one memory; got another, make a new cache")
