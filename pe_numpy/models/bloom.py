r"""BLOOM, in one page.

Unusual beside GPT-2: ALiBi (chapter 35), so that the token vectors know no position; a layer norm
right after the embedding; queries, keys and values in one projection, head by head::

    x = norm(E[token])
    x = x + W_o softmax(q k^T / sqrt(K) - slope (i - j)) v,   q, k, v = W_qkv norm(x)
    x = x + W_2 gelu(W_1 norm(x))

Source: transformers 5.23.0, models/bloom; bigscience-workshop/Megatron-DeepSpeed at 4989bcd,
`megatron/model/transformer.py`. Both add only slope j: all keys of a query share slope i, which
the softmax does not see. So distances keep their sign here, which `alibi_bias` drops: it matters
where a key is told a place after the query's. Files may lack the prefix "transformer.".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pe_numpy.models.page import Params, Table, by_head, changed, expect, sizes
from pe_numpy.relative.alibi import alibi_slopes
from pe_numpy.transformer.attention import attention, merge_heads, split_fused, split_heads
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.layers import embed_tokens, feed_forward, layer_norm, linear
from pe_numpy.transformer.masks import Causal

KIND = "decoder"
PREFIX = "transformer."
HEAD = "lm_head."
MAY_LACK = ("lm_head.weight",)  # tied to the embedding


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    expect("bloom", config, apply_residual_connection_post_layernorm=False)
    s = sizes(
        "bloom",
        config,
        V="vocab_size",
        D="n_embed" if "n_embed" in config else "hidden_size",
        layers="num_hidden_layers" if "num_hidden_layers" in config else "n_layer",
        H="num_attention_heads" if "num_attention_heads" in config else "n_head",
        eps=("layer_norm_epsilon", 1e-5),
        tied=("tie_word_embeddings", True),
    )
    s.slopes = alibi_slopes(s.H)
    return s


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        "transformer.word_embeddings.weight": ("embedding", (s.V, s.D)),
        "transformer.word_embeddings_layernorm.weight": ("embedding_norm.gain", (s.D,)),
        "transformer.word_embeddings_layernorm.bias": ("embedding_norm.bias", (s.D,)),
        "transformer.ln_f.weight": ("norm.gain", (s.D,)),
        "transformer.ln_f.bias": ("norm.bias", (s.D,)),
        "lm_head.weight": ("head.T", (s.D, s.V)),
    }
    for n in range(s.layers):
        for name, place, shape in (
            ("input_layernorm.weight", "norm_1.gain", (s.D,)),
            ("input_layernorm.bias", "norm_1.bias", (s.D,)),
            ("self_attention.query_key_value.weight", "W_qkv.T", (s.D, 3 * s.D)),
            ("self_attention.query_key_value.bias", "b_qkv", (3 * s.D,)),
            ("self_attention.dense.weight", "W_o.T", (s.D, s.D)),
            ("self_attention.dense.bias", "b_o", (s.D,)),
            ("post_attention_layernorm.weight", "norm_2.gain", (s.D,)),
            ("post_attention_layernorm.bias", "norm_2.bias", (s.D,)),
            ("mlp.dense_h_to_4h.weight", "network.W_1.T", (s.D, 4 * s.D)),
            ("mlp.dense_h_to_4h.bias", "network.b_1", (4 * s.D,)),
            ("mlp.dense_4h_to_h.weight", "network.W_2.T", (4 * s.D, s.D)),
            ("mlp.dense_4h_to_h.bias", "network.b_2", (s.D,)),
        ):
            table[f"transformer.h.{n}.{name}"] = (f"layers.{n}.{place}", shape)
    return table


def hidden(params: Params, s: Any, tokens: np.ndarray, context: Context) -> np.ndarray:
    """What the layers and the last norm make of each token, (B, L, D)."""
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    x = layer_norm(x, **params["embedding_norm"], eps=s.eps)
    bias = -s.slopes[:, None, None] * context.head_distance  # (B, H, L, S)
    mask = context.mask_of(Causal())  # (B, 1, L, S)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        h = layer_norm(x, **layer["norm_1"], eps=s.eps)
        fused = split_fused(linear(h, layer["W_qkv"], layer["b_qkv"]), "H3K", s.H)
        q, k, v = (split_heads(each, s.H) for each in fused)  # (B, H, L, K)
        k, v = context.keep(n, k, v)  # (B, H, S, K)
        mixed, seen = attention(q, k, v, mask, bias)
        context.look(n, seen)
        x = x + linear(merge_heads(mixed), layer["W_o"], layer["b_o"])
        h = layer_norm(x, **layer["norm_2"], eps=s.eps)
        x = x + feed_forward(layer["network"], h, "gelu_tanh")
    return layer_norm(x, **params["norm"], eps=s.eps)


def without_positions(params: Params, s: Any) -> tuple[Params, Any]:
    """Punish no distance."""
    return params, changed(s, slopes=0 * s.slopes)


logits = by_head
