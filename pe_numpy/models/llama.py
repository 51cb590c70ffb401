r"""LLaMA 2 and 3, and Mistral, in one page.

Unusual beside the Transformer of 2017: RMS norm before each sublayer (chapter 60), RoPE in halves
(40), from LLaMA 3.1 on with three bands of frequencies (50), often fewer heads of keys than of
queries (44), a gated network with SiLU (60), no bias in any projection, mostly a head of its own.
Mistral's first release sees only a window of keys (12)::

    x = x + W_o attention(rope(W_q norm(x)), rope(W_k norm(x)), W_v norm(x))
    x = x + W_2 (silu(W_gate norm(x)) * W_1 norm(x))

Source: transformers 5.23.0, models/llama; meta-llama/llama-models at a9c89c4. Meta's own files pair
neighbours; those of Hugging Face, which this page reads, were reordered to halves. A window w holds
w keys, the own among them; in `one_file_ref.py` of mistralai/mistral-inference at c18d5b9 a prompt
sees one more.
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
    rule,
    sizes,
    turn,
    without_turns,
)
from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.transformer.attention import attention, merge_heads, split_heads
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.layers import embed_tokens, feed_forward, linear, rms_norm

KIND = "decoder"
PREFIX = "model."
HEAD = "lm_head."
MAY_LACK = ("lm_head.weight",)  # tied to the embedding


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    expect("llama", config, hidden_act="silu", attention_bias=False, mlp_bias=False)
    mistral = config.get("model_type") == "mistral"
    heads = "num_key_value_heads"  # of keys; Mistral's default is another number
    s = sizes(
        "llama",
        config,
        V="vocab_size",
        D="hidden_size",
        F="intermediate_size",
        layers="num_hidden_layers",
        H="num_attention_heads",
        G=heads if mistral else (heads, config.get("num_attention_heads")),
        K=("head_dim", None),
        eps=("rms_norm_eps", 1e-6),
        tied=("tie_word_embeddings", False),
    )
    s.rope = rope_from_config(config)
    s.window = None
    if mistral:  # later ones say null
        s.window = entry("llama", {"sliding_window": 4096, **config}, "sliding_window")
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
            ("input_layernorm", "norm_1", (s.D,)),
            ("self_attn.q_proj", "W_q.T", (s.D, s.H * s.K)),
            ("self_attn.k_proj", "W_k.T", (s.D, s.G * s.K)),
            ("self_attn.v_proj", "W_v.T", (s.D, s.G * s.K)),
            ("self_attn.o_proj", "W_o.T", (s.H * s.K, s.D)),
            ("post_attention_layernorm", "norm_2", (s.D,)),
            ("mlp.gate_proj", "network.W_gate.T", (s.D, s.F)),
            ("mlp.up_proj", "network.W_1.T", (s.D, s.F)),
            ("mlp.down_proj", "network.W_2.T", (s.F, s.D)),
        ):
            table[f"model.layers.{n}.{name}.weight"] = (f"layers.{n}.{place}", shape)
    return table


def hidden(params: Params, s: Any, tokens: np.ndarray, context: Context) -> np.ndarray:
    """What the layers and the last norm make of each token, (B, L, D)."""
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        h = rms_norm(x, layer["norm_1"], s.eps)
        q = split_heads(linear(h, layer["W_q"]), s.H)  # (B, H, L, K)
        k = split_heads(linear(h, layer["W_k"]), s.G)  # (B, G, L, K)
        v = split_heads(linear(h, layer["W_v"]), s.G)
        q, k = turn(q, context.q_positions, s.rope), turn(k, context.q_positions, s.rope)
        k, v = context.keep(n, k, v, window=s.window)  # (B, G, S, K)
        mask = context.mask_of(rule(s.window), k.shape[-2])  # (B, 1, L, S)
        q, k, v, mask = by_group(s.G, q, k, v, mask)  # (B, G, H/G, L, K), (B, G, 1, S, K)
        mixed, seen = map(all_heads, attention(q, k, v, mask))
        context.look(n, seen)
        x = x + linear(merge_heads(mixed), layer["W_o"])
        x = x + feed_forward(layer["network"], rms_norm(x, layer["norm_2"], s.eps), "silu")
    return rms_norm(x, params["norm"], s.eps)


logits, without_positions = by_head, without_turns
