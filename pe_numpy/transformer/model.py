r"""The Transformer: encoder-decoder and decoder-only, as functions of (parameters, inputs).

Source: Vaswani et al. 2017, "Attention is all you need" (arXiv:1706.03762), section 3; pre-norm:
Xiong et al. 2020 (arXiv:2002.04745)::

    post-norm   x = norm(x + sublayer(x))
    pre-norm    x = x + sublayer(norm(x)), and one more norm at the end

Axes: B batch, L tokens (of the decoder), S keys, D model width, H heads, G heads of keys, K width
of a head, V vocabulary.
Symbols: parameters are nested dictionaries, named as in the paper; layers have the keys "0", "1".
Convention: what the parameters say is said nowhere else. A norm without "bias" is an RMS norm, a
network with "W_gate" is gated, a W_k narrower than W_q shares its heads, an attention with "sink"
has one, and without "output" the embedding serves. `init_params` makes all of these.
Differs from the paper: every part that later models changed is a choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.transformer.attention import attend, attention, merge_heads, split_heads
from pe_numpy.transformer.context import Cache, Context
from pe_numpy.transformer.encodings.base import Encoding, Params
from pe_numpy.transformer.fits import check_choices, check_memory, fits
from pe_numpy.transformer.layers import embed_tokens, feed_forward, layer_norm, linear, rms_norm
from pe_numpy.transformer.masks import Causal, Full


@dataclass(frozen=True)
class Model:
    """What the parameters of a Transformer can't say.

    Source: Vaswani et al. 2017, section 3; the paper's choices are post-norm, ReLU, dropout 0.1.

    Parameters
    ----------
    n_heads : int
        Heads H of each self-attention.
    encoding : Encoding, or a tuple of them
        How position enters; see `pe_numpy.transformer.encodings`. A tuple is a pattern of layers:
        layer n has the encoding n mod its length.
    mask : Causal, Window or Chunk, or a tuple of them
        What a token of the decoder attends to; a tuple is a pattern of layers.
    norm : "pre" or "post"
        Where the norm stands. A stack with "pre" ends with one more norm, since nothing else bounds
        the sum of its sublayers; each sublayer of "post" ends with its own.
    activation : "relu", "gelu", "gelu_tanh" or "silu"
        Of the feed-forward network.
    cross_heads : int, optional
        Heads of the cross-attention, H by default.
    scale : float, optional
        Of the embedding; sqrt(D) by default, as in section 3.4.
    dropout : float
        Rate on the embedding and on each sublayer's output, when a generator is passed.
    eps : float, optional
        What the norms add under the root: 1e-5, and 1e-6 for RMS norms, by default.

    Examples
    --------
    >>> Model(8, norm="post", dropout=0.1).activation
    'relu'
    """

    n_heads: int
    encoding: Encoding | tuple[Encoding, ...] = field(default_factory=Encoding)
    mask: Causal | tuple[Causal, ...] = field(default_factory=Causal)
    norm: str = "pre"
    activation: str = "relu"
    cross_heads: int | None = None
    scale: float | None = None
    dropout: float = 0.0
    eps: float | None = None

    def __post_init__(self) -> None:
        check_choices(self)

    def of_layer(self, name: str, n: int, encoder: bool = False) -> Any:
        """Return "encoding" or "mask" of a layer."""
        pattern = getattr(self, name)
        choice = pattern[n % len(pattern)] if isinstance(pattern, tuple) else pattern
        if not encoder:
            return choice
        return choice.for_encoder() if name == "encoding" else Full()

    # What `generate` asks of a model.

    def sources(self, params: Params, source: Any = None, source_real: Any = None) -> tuple:
        """What the decoder needs of a source (B, S): the memory, and which of it is real."""
        memory = None if source is None else encode(params, self, source, source_real)
        return memory, None if source_real is None else np.asarray(source_real)

    def forward(
        self, params: Params, sources: tuple, tokens: Any, real: Any, cache: Cache | None, last: int
    ) -> np.ndarray:
        """Logits (B, last, V) of the token after each of the last ones."""
        memory, memory_real = sources
        return decode(params, self, tokens, memory, memory_real, real, cache)[:, -last:]


# ---- the whole ----------------------------------------------------------------------------------


def encode(
    params: Params,
    model: Model,
    tokens: ArrayLike,
    real: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> np.ndarray:
    """Read a batch of source sequences: one vector for each token.

    Source: Vaswani et al. 2017, section 3.1.

    Parameters
    ----------
    params, model : dict, Model
        From `init_params`, and the model it was given.
    tokens : (B, S) integer array
        Source tokens.
    real : (B, S) boolean array, optional
        False where a token is padding.
    rng : numpy.random.Generator, optional
        For dropout; none at inference.

    Returns
    -------
    (B, S, D) array, the memory that `decode` looks at.

    Examples
    --------
    >>> from pe_numpy import Sizes, init_params
    >>> model = Model(n_heads=2)
    >>> sizes = Sizes(11, 8, 16, n_layers=1, n_encoder_layers=1)
    >>> params = init_params(sizes, model, np.random.default_rng(0))
    >>> encode(params, model, [[3, 1, 4, 1, 5]]).shape
    (1, 5, 8)
    """
    fits(params, model, "encode")
    if "encoder" not in params:
        raise ValueError("encode: the model has no encoder; give it n_encoder_layers above 0")
    tokens, real = checks.token_rows("encode", tokens, real, rng)
    context = Context().begin(tokens.shape, real, model.dropout, rng)
    return stack(params, model, tokens, context, encoder=True)


def decode(
    params: Params,
    model: Model,
    tokens: ArrayLike,
    memory: np.ndarray | None = None,
    memory_real: ArrayLike | None = None,
    real: ArrayLike | None = None,
    cache: Cache | None = None,
    rng: np.random.Generator | None = None,
    watch: dict[str, np.ndarray] | None = None,
) -> np.ndarray:
    """Read target tokens, each attending to itself and those before it: logits of the next token.

    Source: Vaswani et al. 2017, section 3.1; tied output layer: section 3.4.

    Parameters
    ----------
    params, model, rng : as in `encode`
    tokens : (B, L) integer array
        Target tokens, shifted right for training; with a cache, the newest only.
    memory : (B, S, D) array, optional
        From `encode`; needed if the model has an encoder.
    memory_real, real : (B, S) and (B, L) boolean arrays, optional
        False where a token of the source, or of the target, is padding. Positions count real
        tokens, so padding may stand on the left.
    cache : Cache, optional
        What was read before; this call adds its tokens.
    watch : dict, optional
        Gets the attention weights: "attention 0", "cross 0", ... (B, H, L, S).

    Returns
    -------
    (B, L, V) array.

    Examples
    --------
    >>> from pe_numpy import Sizes, init_params
    >>> model = Model(n_heads=2)
    >>> params = init_params(Sizes(11, 8, 16, n_layers=1), model, np.random.default_rng(0))
    >>> decode(params, model, [[3, 1, 4]]).shape
    (1, 3, 11)
    """
    if cache is not None and not isinstance(cache, Cache):
        raise ValueError(f"decode: cache must be a Cache; got {type(cache).__name__}")
    if cache is None or not cache.owner:
        fits(params, model, "decode")
    tokens, real = checks.token_rows("decode", tokens, real, rng)
    memory, memory_real = check_memory(params, tokens, memory, memory_real)
    context = (cache or Context()).begin(tokens.shape, real, model.dropout, rng)
    context.serve("decode", params["decoder"], model, memory, memory_real)
    context.memory = memory
    context.memory_mask = None if memory_real is None else memory_real[:, None, None, :]
    context.watch = None if watch is None else {}
    x = stack(params, model, tokens, context)
    embedding = params["embedding"]
    logits = x @ (params["output"] if "output" in params else np.swapaxes(embedding, 0, 1))
    context.end()
    if watch is not None:
        watch.update(context.watch or {})
    return logits


def stack(params, model, tokens, context, encoder=False):
    """Embedding, layers and, for pre-norm, one more norm."""
    own = params["encoder" if encoder else "decoder"]
    layers, shared = own["layers"], own["shared"]
    encodings = [model.of_layer("encoding", n, encoder) for n in range(len(layers))]
    members = list(dict.fromkeys(encodings))
    if len(members) == 1:  # what its layers share has no number
        shared = {"0": shared}
    x = embed_tokens(params["embedding"], tokens, model.scale)  # (B, L, D)
    for n, encoding in enumerate(members):
        x = encoding.embed(shared[str(n)], x, context.q_positions)
    x = context.drop(x)
    for n, (name, layer) in enumerate(layers.items()):
        encoding = encodings[n]
        places = {**shared[str(members.index(encoding))], **layer["encoding"]}
        context.mask = context.mask_of(model.of_layer("mask", n, encoder))
        x = block(layer, model, name, x, context, encoding, places)
    return norm(own["norm"], x, model.eps) if "norm" in own else x


def block(layer, model, name, x, context, encoding, places):
    """One layer: attend to the text, attend to the memory if there is one, think."""

    def around(part, x, sublayer, *rest):
        """Residual connection, dropout and norm."""
        own, gains = layer[part], layer[f"{part}_norm"]
        if model.norm == "pre":
            return x + context.drop(sublayer(own, norm(gains, x, model.eps), *rest))
        return norm(gains, x + context.drop(sublayer(own, x, *rest)), model.eps)

    x = around("attention", x, self_attention, model.n_heads, context, encoding, places, name)
    if context.memory is not None:
        x = around("cross", x, cross_attention, model.cross_heads or model.n_heads, context, name)
    return around("feed_forward", x, feed_forward, model.activation)


def norm(gains, x, eps=None):
    """Layer norm, or RMS norm where there is no bias."""
    if "bias" in gains:
        return layer_norm(x, gains["gain"], gains["bias"], eps or 1e-5)
    return rms_norm(x, gains["gain"], eps or 1e-6)


# ---- attention ----------------------------------------------------------------------------------


def multi_head_attention(
    params: Params, x: np.ndarray, source: np.ndarray, n_heads: int, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Multi-head attention: Concat(head_1 ... head_h) W^O.

    Source: Vaswani et al. 2017, section 3.2.2.

    Parameters
    ----------
    params : dict
        W_q, W_k, W_v (D, H K), W_o (H K, D), optional b_q, b_k, b_v (H K,), b_o (D,) and sink (H,).
        W_k and W_v may be narrower, (D, G K): then query head h reads key head h G // H.
    x : (B, L, D) array
        What asks: queries are made from it.
    source : (B, S, D) array
        What answers: x itself, or the encoder's memory.
    n_heads : int
        Number of heads H.
    mask : boolean array that broadcasts to (B, H, L, S), optional
        True = may attend.

    Returns
    -------
    output : (B, L, D) array
    weights : (B, H, L, S) array

    Examples
    --------
    >>> params, x = {f"W_{n}": np.eye(2) for n in "qkvo"}, np.array([[[1.0, 0.0], [0.0, 1.0]]])
    >>> output, weights = multi_head_attention(params, x, 0 * x, n_heads=1)
    >>> weights.tolist(), output.tolist()
    ([[[[0.5, 0.5], [0.5, 0.5]]]], [[[0.0, 0.0], [0.0, 0.0]]])
    """
    H, G = n_heads, kv_heads(params, n_heads)
    q = heads(params, "q", x, H)  # (B, H, L, K)
    k, v = heads(params, "k", source, G), heads(params, "v", source, G)  # (B, G, S, K)
    k, v = share(k, H), share(v, H)  # (B, H, S, K)
    scores = (q * (1 / math.sqrt(q.shape[-1]))) @ np.swapaxes(k, -1, -2)  # (B, H, L, S)
    mixed, weights = attend(scores, v, mask, params.get("sink"))
    return join(params, mixed), weights


def self_attention(params, x, n_heads, context, encoding, places, layer="0"):
    """Attend to the text (B, L, D), with position at places 2, 3 and 4."""
    H, G = n_heads, kv_heads(params, n_heads)
    q = heads(params, "q", x, H)  # (B, H, L, K)
    k, v = heads(params, "k", x, G), heads(params, "v", x, G)  # (B, G, L, K)
    gates = encoding.gates(places, x)  # (B, H, L), or None
    if gates is not None and context.new_real is not None:
        gates = np.where(context.new_real[:, None], gates, 0.0)
    if encoding.turns_alone:  # a key is rotated once, and kept so
        q, k = encoding.turn(places, q, k, context)
    new = (k, v) if gates is None else (k, v, gates[..., None])
    k, v, *kept = context.keep(layer, *new)  # (B, G, S, K)
    context.gates = kept[0][..., 0] if kept else None  # (B, H, S)
    if not encoding.turns_alone:
        q, k = encoding.turn(places, q, k, context)
    k, v = share(k, H), share(v, H)  # (B, H, S, K)
    scores = encoding.scores(places, q, k, context)  # (B, H, L, S)
    mixed, weights = attend(scores, v, context.mask, params.get("sink"))
    if type(encoding).mix is not Encoding.mix:
        mixed = encoding.mix(places, weights, v, context)
    context.look(f"attention {layer}", weights)
    return join(params, mixed)


def cross_attention(params, x, n_heads, context, layer="0"):
    """Attend from the text (B, L, D) to the memory, which has no positions here."""
    q = heads(params, "q", x, n_heads)
    k, v = context.once(
        layer, lambda: tuple(heads(params, name, context.memory, n_heads) for name in "kv")
    )
    mixed, weights = attention(q, k, v, context.memory_mask)
    context.look(f"cross {layer}", weights)
    return join(params, mixed)


def heads(params, name, x, n_heads):
    """Queries, keys or values: (B, L, D) to (B, H, L, K)."""
    return split_heads(linear(x, params[f"W_{name}"], params.get(f"b_{name}")), n_heads)


def kv_heads(params, n_heads):
    """G: as many heads of keys as their projection has room for."""
    return max(1, n_heads * params["W_k"].shape[-1] // params["W_q"].shape[-1])


def share(x, n_heads):
    """Keys or values of G heads (B, G, S, K) for H: neighbouring query heads share one."""
    G = x.shape[-3]
    return x if G == n_heads else np.repeat(x, n_heads // G, axis=-3)


def join(params, mixed):
    """Concat(head_1 ... head_h) W_o: (B, H, L, K) to (B, L, D)."""
    return linear(merge_heads(mixed), params["W_o"], params.get("b_o"))
