r"""RoFormer, in one page: the model for which RoPE was made.

Unusual beside BERT: no position is added. Queries and keys turn in each layer (chapter 40), pairs
of neighbours. With `rotary_value` (small English models, trained as ELECTRA was) values turn, too,
and nothing turns the sum back, so that the output depends on the absolute position (45). The
embedding may have a width of its own::

    x = W_e norm(E[token] + T[type])                  W_e only if the widths differ
    x = norm(x + W_o attention(rope(W_q x), rope(W_k x), W_v x))
    x = norm(x + W_2 gelu(W_1 x))
    logits = E norm(gelu(W_h x)) + b

Source: transformers 5.23.0, models/roformer; JunnYu/RoFormer_pytorch at 447aa8f,
`src/roformer/modeling_roformer.py`. The file holds the sines and cosines of all angles, first all
sines, then all cosines: `check` compares them with the formula, which this page uses. RoFormer-V2
is another model: RMS norm without a gain, no biases.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pe_numpy.absolute.learned import learned
from pe_numpy.models.page import Look, Params, Table, expect, sizes
from pe_numpy.rotary.rope import rope, rope_frequencies
from pe_numpy.transformer.attention import attention, merge_heads, split_heads
from pe_numpy.transformer.layers import embed_tokens, feed_forward, gelu, layer_norm, linear

KIND = "encoder"
PREFIX = "roformer."
HEAD = "cls.predictions."
COPIES = {"cls.predictions.decoder.bias": "cls.predictions.bias"}  # tied
MAY_LACK = ("cls.predictions.decoder.weight",)  # tied to the embedding


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    expect("roformer", config, hidden_act="gelu", is_decoder=False)
    expect("roformer", config, norm_type="layer_norm", use_bias=True)
    return sizes(
        "roformer",
        config,
        V="vocab_size",
        D="hidden_size",
        E=("embedding_size", config.get("hidden_size")),
        F="intermediate_size",
        N="max_position_embeddings",
        types=("type_vocab_size", 2),
        layers="num_hidden_layers",
        H="num_attention_heads",
        eps=("layer_norm_eps", 1e-12),
        tied=("tie_word_embeddings", True),
        rotary_value=("rotary_value", False),
    )


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        "roformer.embeddings.word_embeddings.weight": ("embedding", (s.V, s.E)),
        "roformer.embeddings.token_type_embeddings.weight": ("types", (s.types, s.E)),
        "roformer.embeddings.LayerNorm.weight": ("norm.gain", (s.E,)),
        "roformer.embeddings.LayerNorm.bias": ("norm.bias", (s.E,)),
        "roformer.encoder.embed_positions.weight": ("turns", (s.N, s.D // s.H)),
        "cls.predictions.transform.dense.weight": ("head.W.T", (s.D, s.E)),
        "cls.predictions.transform.dense.bias": ("head.b", (s.E,)),
        "cls.predictions.transform.LayerNorm.weight": ("head.norm.gain", (s.E,)),
        "cls.predictions.transform.LayerNorm.bias": ("head.norm.bias", (s.E,)),
        "cls.predictions.decoder.weight": ("out.W.T", (s.E, s.V)),
        "cls.predictions.bias": ("out.b", (s.V,)),
    }
    if s.E != s.D:
        table["roformer.embeddings_project.weight"] = ("widen.W.T", (s.E, s.D))
        table["roformer.embeddings_project.bias"] = ("widen.b", (s.D,))
    for n in range(s.layers):
        for name, gain, bias, shape in (
            ("attention.self.query", "W_q.T", "b_q", (s.D, s.D)),
            ("attention.self.key", "W_k.T", "b_k", (s.D, s.D)),
            ("attention.self.value", "W_v.T", "b_v", (s.D, s.D)),
            ("attention.output.dense", "W_o.T", "b_o", (s.D, s.D)),
            ("attention.output.LayerNorm", "norm_1.gain", "norm_1.bias", (s.D,)),
            ("intermediate.dense", "network.W_1.T", "network.b_1", (s.D, s.F)),
            ("output.dense", "network.W_2.T", "network.b_2", (s.F, s.D)),
            ("output.LayerNorm", "norm_2.gain", "norm_2.bias", (s.D,)),
        ):
            table[f"roformer.encoder.layer.{n}.{name}.weight"] = (f"layers.{n}.{gain}", shape)
            table[f"roformer.encoder.layer.{n}.{name}.bias"] = (f"layers.{n}.{bias}", shape[-1:])
    return table


def check(params: Params, s: Any) -> None:
    """Refuse a file whose sines and cosines are not RoPE's."""
    angles = np.arange(s.N)[:, None] * rope_frequencies(s.D // s.H)  # (N, K/2)
    formula = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    error = np.abs(params["turns"] - formula).max()
    if not error < 1e-3:  # a file of 16 bits is off by 5e-4
        raise ValueError(f"roformer: embed_positions must be RoPE's; it is off by {error:.3f}")


def hidden(
    params: Params,
    s: Any,
    tokens: np.ndarray,
    positions: np.ndarray,
    real: np.ndarray,
    types: np.ndarray,
    look: Look,
) -> np.ndarray:
    """What the layers make of each token, (B, L, D)."""
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, E)
    x = layer_norm(x + learned(params["types"], types), **params["norm"], eps=s.eps)
    if "widen" in params:
        x = linear(x, **params["widen"])  # (B, L, D)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        q = split_heads(linear(x, layer["W_q"], layer["b_q"]), s.H)  # (B, H, L, K)
        k = split_heads(linear(x, layer["W_k"], layer["b_k"]), s.H)
        v = split_heads(linear(x, layer["W_v"], layer["b_v"]), s.H)
        q, k = rope(q, positions), rope(k, positions)
        v = rope(v, positions) if s.rotary_value else v
        mixed, seen = attention(q, k, v, real[:, None, None])
        look(n, seen)
        mixed = linear(merge_heads(mixed), layer["W_o"], layer["b_o"])
        x = layer_norm(x + mixed, **layer["norm_1"], eps=s.eps)
        x = layer_norm(x + feed_forward(layer["network"], x, "gelu"), **layer["norm_2"], eps=s.eps)
    return x


def logits(params: Params, s: Any, h: np.ndarray) -> np.ndarray:
    """Logits (B, L, V) of each token."""
    head, out = params["head"], params["out"]
    x = layer_norm(gelu(linear(h, head["W"], head["b"])), **head["norm"], eps=s.eps)  # (B, L, E)
    return linear(x, out.get("W", params["embedding"].T), out["b"])
