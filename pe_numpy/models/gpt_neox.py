r"""GPT-NeoX and Pythia, in one page.

Unusual beside GPT-2: RoPE in halves (chapter 40) on a part of each head, mostly its first quarter
(42); attention and feed-forward read the same x and are added together, so that neither waits for
the other; queries, keys and values in one projection, head by head; a head of its own::

    q, k, v = W_qkv norm_1(x)
    x = x + W_o attention(rope(q), rope(k), v) + W_2 gelu(W_1 norm_2(x))

That there are two norms, and not one, the authors' code calls a bug that is kept. With
"use_parallel_residual" false the second norm reads what attention has added, as elsewhere.
GPT-NeoX-20B says "gelu_fast", which is the tanh form.

Source: transformers 5.23.0, models/gpt_neox; EleutherAI/gpt-neox at ce9bee3,
`megatron/model/transformer.py`. Files may hold the causal mask and the frequencies, which are no
parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pe_numpy.models.page import Params, Table, by_head, expect, sizes, turn, without_turns
from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.transformer.attention import attention, merge_heads, split_fused, split_heads
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.layers import embed_tokens, feed_forward, layer_norm, linear
from pe_numpy.transformer.masks import Causal

KIND = "decoder"
PREFIX = "gpt_neox."
HEAD = "embed_out."
IGNORED = r"gpt_neox\.layers\.\d+\.attention\.(bias|masked_bias)"


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    fast = config.get("hidden_act") == "gelu_fast"
    expect("gpt_neox", config, hidden_act="gelu_fast" if fast else "gelu")
    expect("gpt_neox", config, attention_bias=True, tie_word_embeddings=False)
    s = sizes(
        "gpt_neox",
        config,
        V="vocab_size",
        D="hidden_size",
        F="intermediate_size",
        layers="num_hidden_layers",
        H="num_attention_heads",
        eps=("layer_norm_eps", 1e-5),
        parallel=("use_parallel_residual", True),
    )
    s.activation = "gelu_tanh" if fast else "gelu"
    s.rope = rope_from_config(config)
    return s


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        "gpt_neox.embed_in.weight": ("embedding", (s.V, s.D)),
        "gpt_neox.final_layer_norm.weight": ("norm.gain", (s.D,)),
        "gpt_neox.final_layer_norm.bias": ("norm.bias", (s.D,)),
        "embed_out.weight": ("head.T", (s.D, s.V)),
    }
    for n in range(s.layers):
        for name, place, shape in (
            ("input_layernorm.weight", "norm_1.gain", (s.D,)),
            ("input_layernorm.bias", "norm_1.bias", (s.D,)),
            ("attention.query_key_value.weight", "W_qkv.T", (s.D, 3 * s.D)),
            ("attention.query_key_value.bias", "b_qkv", (3 * s.D,)),
            ("attention.dense.weight", "W_o.T", (s.D, s.D)),
            ("attention.dense.bias", "b_o", (s.D,)),
            ("post_attention_layernorm.weight", "norm_2.gain", (s.D,)),
            ("post_attention_layernorm.bias", "norm_2.bias", (s.D,)),
            ("mlp.dense_h_to_4h.weight", "network.W_1.T", (s.D, s.F)),
            ("mlp.dense_h_to_4h.bias", "network.b_1", (s.F,)),
            ("mlp.dense_4h_to_h.weight", "network.W_2.T", (s.F, s.D)),
            ("mlp.dense_4h_to_h.bias", "network.b_2", (s.D,)),
        ):
            table[f"gpt_neox.layers.{n}.{name}"] = (f"layers.{n}.{place}", shape)
    return table


def hidden(params: Params, s: Any, tokens: np.ndarray, context: Context) -> np.ndarray:
    """What the layers and the last norm make of each token, (B, L, D)."""
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    mask = context.mask_of(Causal())  # (B, 1, L, S)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        h = layer_norm(x, **layer["norm_1"], eps=s.eps)
        fused = split_fused(linear(h, layer["W_qkv"], layer["b_qkv"]), "H3K", s.H)
        q, k, v = (split_heads(each, s.H) for each in fused)  # (B, H, L, K)
        q, k = turn(q, context.q_positions, s.rope), turn(k, context.q_positions, s.rope)
        k, v = context.keep(n, k, v)  # (B, H, S, K)
        mixed, seen = attention(q, k, v, mask)
        context.look(n, seen)
        attended = x + linear(merge_heads(mixed), layer["W_o"], layer["b_o"])
        h = layer_norm(x if s.parallel else attended, **layer["norm_2"], eps=s.eps)
        x = attended + feed_forward(layer["network"], h, s.activation)
    return layer_norm(x, **params["norm"], eps=s.eps)


logits, without_positions = by_head, without_turns
