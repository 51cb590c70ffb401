r"""BERT, in one page.

Unusual beside the Transformer of 2017: only an encoder, which fills in masked tokens. Learned
positions (chapter 21) and a vector for each token's type, sentence 0 or 1, are added to an
embedding that is not scaled; one more layer norm follows. Each sublayer has its norm behind it, as
in 2017, with an epsilon of 1e-12; GELU in its exact form (60); biases everywhere. The head passes
each token through a matrix, GELU and a norm before it meets the embedding again, and a bias::

    x = norm(E[token] + P[position] + T[type])
    x = norm(x + W_o attention(W_q x, W_k x, W_v x))
    x = norm(x + W_2 gelu(W_1 x))
    logits = E norm(gelu(W_h x)) + b

Source: transformers 5.23.0, models/bert; google-research/bert at eedf571, `modeling.py`, whose GELU
has the tanh form. Files of that time call a norm's gain gamma and its bias beta. What serves other
tasks, the pooler and the guess whether sentence 1 follows sentence 0, is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pe_numpy.absolute.learned import learned
from pe_numpy.models.page import Look, Params, Table, expect, sizes
from pe_numpy.transformer.attention import attention, merge_heads, split_heads
from pe_numpy.transformer.layers import embed_tokens, feed_forward, gelu, layer_norm, linear

KIND = "encoder"
PREFIX = "bert."
HEAD = "cls.predictions."
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
IGNORED = r"bert\.embeddings\.position_ids|cls\.seq_relationship\..*"
COPIES = {"cls.predictions.decoder.bias": "cls.predictions.bias"}  # tied
MAY_LACK = ("cls.predictions.decoder.weight",)  # tied to the embedding


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    expect("bert", config, hidden_act="gelu", position_embedding_type="absolute", is_decoder=False)
    return sizes(
        "bert",
        config,
        V="vocab_size",
        D="hidden_size",
        F="intermediate_size",
        N="max_position_embeddings",
        types=("type_vocab_size", 2),
        layers="num_hidden_layers",
        H="num_attention_heads",
        eps=("layer_norm_eps", 1e-12),
        tied=("tie_word_embeddings", True),
    )


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        "bert.embeddings.word_embeddings.weight": ("embedding", (s.V, s.D)),
        "bert.embeddings.position_embeddings.weight": ("positions", (s.N, s.D)),
        "bert.embeddings.token_type_embeddings.weight": ("types", (s.types, s.D)),
        "bert.embeddings.LayerNorm.weight": ("norm.gain", (s.D,)),
        "bert.embeddings.LayerNorm.bias": ("norm.bias", (s.D,)),
        "cls.predictions.transform.dense.weight": ("head.W.T", (s.D, s.D)),
        "cls.predictions.transform.dense.bias": ("head.b", (s.D,)),
        "cls.predictions.transform.LayerNorm.weight": ("head.norm.gain", (s.D,)),
        "cls.predictions.transform.LayerNorm.bias": ("head.norm.bias", (s.D,)),
        "cls.predictions.decoder.weight": ("out.W.T", (s.D, s.V)),
        "cls.predictions.bias": ("out.b", (s.V,)),
    }
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
            table[f"bert.encoder.layer.{n}.{name}.weight"] = (f"layers.{n}.{gain}", shape)
            table[f"bert.encoder.layer.{n}.{name}.bias"] = (f"layers.{n}.{bias}", shape[-1:])
    return table


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
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    x = x + learned(params["positions"], positions[:, 0]) + learned(params["types"], types)
    x = layer_norm(x, **params["norm"], eps=s.eps)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        q = split_heads(linear(x, layer["W_q"], layer["b_q"]), s.H)  # (B, H, L, K)
        k = split_heads(linear(x, layer["W_k"], layer["b_k"]), s.H)
        v = split_heads(linear(x, layer["W_v"], layer["b_v"]), s.H)
        mixed, seen = attention(q, k, v, real[:, None, None])
        look(n, seen)
        mixed = linear(merge_heads(mixed), layer["W_o"], layer["b_o"])
        x = layer_norm(x + mixed, **layer["norm_1"], eps=s.eps)
        x = layer_norm(x + feed_forward(layer["network"], x, "gelu"), **layer["norm_2"], eps=s.eps)
    return x


def logits(params: Params, s: Any, h: np.ndarray) -> np.ndarray:
    """Logits (B, L, V) of each token."""
    head, out = params["head"], params["out"]
    x = layer_norm(gelu(linear(h, head["W"], head["b"])), **head["norm"], eps=s.eps)
    return linear(x, out.get("W", params["embedding"].T), out["b"])
