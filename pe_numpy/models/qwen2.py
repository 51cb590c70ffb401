r"""Qwen 2 and 2.5, in one page.

Unusual beside LLaMA: biases of queries, keys and values, and of nothing else (chapter 60), mostly a
base of 1,000,000 for RoPE (42), the head tied to the embedding in the small ones::

    q, k, v = W_q h + b_q, W_k h + b_k, W_v h + b_v,   h = norm(x)
    x = x + W_o attention(rope(q), rope(k), v)
    x = x + W_2 (silu(W_gate norm(x)) * W_1 norm(x))

Source: transformers 5.23.0, models/qwen2. Released files name a window and do not use it
("use_sliding_window" is false); this page does not know it. Past the trained length their makers
advise YaRN (50).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pe_numpy.models.entries import entry
from pe_numpy.models.page import (
    Params,
    Table,
    all_heads,
    by_group,
    by_head,
    expect,
    sizes,
    turn,
    without_turns,
)
from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.transformer.attention import attention, merge_heads, split_heads
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.layers import embed_tokens, feed_forward, linear, rms_norm
from pe_numpy.transformer.masks import Causal

KIND = "decoder"
PREFIX = "model."
HEAD = "lm_head."
MAY_LACK = ("lm_head.weight",)  # tied to the embedding


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    expect("qwen2", config, hidden_act="silu", use_sliding_window=False)
    s = sizes(
        "qwen2",
        config,
        V="vocab_size",
        D="hidden_size",
        F="intermediate_size",
        layers="num_hidden_layers",
        H="num_attention_heads",
        G="num_key_value_heads",
        K=("head_dim", None),
        eps=("rms_norm_eps", 1e-6),
        tied=("tie_word_embeddings", False),
    )
    full = ["full_attention"] * s.layers
    types = entry("qwen2", config, "layer_types", full)
    expect("qwen2", {"layer_types": types}, layer_types=full)
    s.rope = rope_from_config(config)
    return s


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        "model.embed_tokens.weight": ("embedding", (s.V, s.D)),
        "model.norm.weight": ("norm", (s.D,)),
        "lm_head.weight": ("head.T", (s.D, s.V)),
    }
    for n in range(s.layers):
        for name, place, shape in (
            ("input_layernorm.weight", "norm_1", (s.D,)),
            ("self_attn.q_proj.weight", "W_q.T", (s.D, s.H * s.K)),
            ("self_attn.q_proj.bias", "b_q", (s.H * s.K,)),
            ("self_attn.k_proj.weight", "W_k.T", (s.D, s.G * s.K)),
            ("self_attn.k_proj.bias", "b_k", (s.G * s.K,)),
            ("self_attn.v_proj.weight", "W_v.T", (s.D, s.G * s.K)),
            ("self_attn.v_proj.bias", "b_v", (s.G * s.K,)),
            ("self_attn.o_proj.weight", "W_o.T", (s.H * s.K, s.D)),
            ("post_attention_layernorm.weight", "norm_2", (s.D,)),
            ("mlp.gate_proj.weight", "network.W_gate.T", (s.D, s.F)),
            ("mlp.up_proj.weight", "network.W_1.T", (s.D, s.F)),
            ("mlp.down_proj.weight", "network.W_2.T", (s.F, s.D)),
        ):
            table[f"model.layers.{n}.{name}"] = (f"layers.{n}.{place}", shape)
    return table


def hidden(params: Params, s: Any, tokens: np.ndarray, context: Context) -> np.ndarray:
    """What the layers and the last norm make of each token, (B, L, D)."""
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    mask = context.mask_of(Causal())  # (B, 1, L, S)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        h = rms_norm(x, layer["norm_1"], s.eps)
        q = split_heads(linear(h, layer["W_q"], layer["b_q"]), s.H)  # (B, H, L, K)
        k = split_heads(linear(h, layer["W_k"], layer["b_k"]), s.G)  # (B, G, L, K)
        v = split_heads(linear(h, layer["W_v"], layer["b_v"]), s.G)
        q, k = turn(q, context.q_positions, s.rope), turn(k, context.q_positions, s.rope)
        k, v = context.keep(n, k, v)  # (B, G, S, K)
        q, k, v, allowed = by_group(s.G, q, k, v, mask)  # (B, G, H/G, L, K), (B, G, 1, S, K)
        mixed, seen = map(all_heads, attention(q, k, v, allowed))
        context.look(n, seen)
        x = x + linear(merge_heads(mixed), layer["W_o"])
        x = x + feed_forward(layer["network"], rms_norm(x, layer["norm_2"], s.eps), "silu")
    return rms_norm(x, params["norm"], s.eps)


logits, without_positions = by_head, without_turns
