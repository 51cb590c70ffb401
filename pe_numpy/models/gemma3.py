r"""Gemma 3, in one page: its text.

Unusual beside Gemma 2: five layers in six have a window (chapter 12) and turn with a base of their
own, which is smaller; the sixth sees all, and in the larger models its positions are pressed
together (50). Queries and keys of each head are normed before they are turned (42), which holds
scores down instead of a cap; logits have none either::

    q = rope(norm(W_q norm(x))),  k = rope(norm(W_k norm(x)))
    x = x + norm(W_o softmax(q k / sqrt(scalar)) v)
    x = x + norm(W_2 (gelu(W_gate norm(x)) * W_1 norm(x)))
    norm(x) = (1 + w) x / sqrt(mean(x^2) + eps)

Source: transformers 5.23.0, models/gemma3; google/gemma_pytorch at de621eb,
`gemma/gemma3_model.py`. Files of models that see pictures hold the text's weights behind
"language_model.", and a configuration of the text that leaves out what it has by default; their
eyes are left aside here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pe_numpy.models.entries import entry
from pe_numpy.models.page import (
    Params,
    Table,
    all_heads,
    by_group,
    by_head,
    changed,
    expect,
    rounded,
    rule,
    sizes,
    turn,
    windows,
)
from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.transformer.attention import attention, merge_heads, split_heads
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.layers import embed_tokens, feed_forward, linear, rms_norm

KIND = "decoder"
PREFIX = "language_model."
OLD_NAMES = {  # of files that transformers 4.52 and later, or others, saved from memory
    "model.language_model.": "language_model.model.",
    "model.vision_tower.": "vision_tower.",
    "model.multi_modal_projector.": "multi_modal_projector.",
}
COPIES = dict.fromkeys(  # tied
    ("lm_head.weight", "language_model.lm_head.weight"), "language_model.model.embed_tokens.weight"
)
IGNORED = r"(vision_tower|multi_modal_projector)\..*"


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    config = {**entry("gemma3", config, "text_config", {}), **config}
    config |= {"text_config": None, "model_type": "gemma3_text"}
    config["use_bidirectional_attention"] = bool(config.get("use_bidirectional_attention"))
    expect("gemma3", config, hidden_activation="gelu_pytorch_tanh", attention_bias=False)
    expect("gemma3", config, attn_logit_softcapping=None, final_logit_softcapping=None)
    expect("gemma3", config, tie_word_embeddings=True, use_bidirectional_attention=False)
    s = sizes(
        "gemma3",
        config,
        V=("vocab_size", 262_208),
        D="hidden_size",
        F="intermediate_size",
        layers="num_hidden_layers",
        H=("num_attention_heads", 8),
        G=("num_key_value_heads", 4),
        K=("head_dim", 256),
        eps=("rms_norm_eps", 1e-6),
        window="sliding_window",
        scalar=("query_pre_attn_scalar", 256),
    )
    s.windows = windows("gemma3", config, entry("gemma3", config, "sliding_window_pattern", 6))
    s.embedding_scale = rounded("gemma3", config, math.sqrt(s.D))
    s.ropes = [rope_from_config(config, n) for n in range(s.layers)]
    return s


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        f"{PREFIX}model.embed_tokens.weight": ("embedding", (s.V, s.D)),
        f"{PREFIX}model.norm.weight": ("norm", (s.D,)),
    }
    for n in range(s.layers):
        for name, place, shape in (
            ("input_layernorm", "before_attention", (s.D,)),
            ("self_attn.q_proj", "W_q.T", (s.D, s.H * s.K)),
            ("self_attn.k_proj", "W_k.T", (s.D, s.G * s.K)),
            ("self_attn.v_proj", "W_v.T", (s.D, s.G * s.K)),
            ("self_attn.o_proj", "W_o.T", (s.H * s.K, s.D)),
            ("self_attn.q_norm", "norm_q", (s.K,)),
            ("self_attn.k_norm", "norm_k", (s.K,)),
            ("post_attention_layernorm", "after_attention", (s.D,)),
            ("pre_feedforward_layernorm", "before_network", (s.D,)),
            ("mlp.gate_proj", "network.W_gate.T", (s.D, s.F)),
            ("mlp.up_proj", "network.W_1.T", (s.D, s.F)),
            ("mlp.down_proj", "network.W_2.T", (s.F, s.D)),
            ("post_feedforward_layernorm", "after_network", (s.D,)),
        ):
            table[f"{PREFIX}model.layers.{n}.{name}.weight"] = (f"layers.{n}.{place}", shape)
    return table


def hidden(params: Params, s: Any, tokens: np.ndarray, context: Context) -> np.ndarray:
    """What the layers and the last norm make of each token, (B, L, D)."""
    x = embed_tokens(params["embedding"], tokens, s.embedding_scale)  # (B, L, D)
    for n in range(s.layers):
        layer, rope = params["layers"][str(n)], s.ropes[n]
        h = rms_norm(x, 1 + layer["before_attention"], s.eps)
        q = split_heads(linear(h, layer["W_q"]), s.H)  # (B, H, L, K)
        k = split_heads(linear(h, layer["W_k"]), s.G)  # (B, G, L, K)
        v = split_heads(linear(h, layer["W_v"]), s.G)
        q = turn(rms_norm(q, 1 + layer["norm_q"], s.eps), context.q_positions, rope)
        k = turn(rms_norm(k, 1 + layer["norm_k"], s.eps), context.q_positions, rope)
        k, v = context.keep(n, k, v, window=s.windows[n])  # (B, G, S, K)
        mask = context.mask_of(rule(s.windows[n]), k.shape[-2])  # (B, 1, L, S)
        q, k, v, mask = by_group(s.G, q, k, v, mask)  # (B, G, H/G, L, K), (B, G, 1, S, K)
        mixed, seen = map(all_heads, attention(q, k, v, mask, scale=1 / math.sqrt(s.scalar)))
        context.look(n, seen)
        h = linear(merge_heads(mixed), layer["W_o"])
        x = x + rms_norm(h, 1 + layer["after_attention"], s.eps)
        h = rms_norm(x, 1 + layer["before_network"], s.eps)
        h = feed_forward(layer["network"], h, "gelu_tanh")
        x = x + rms_norm(h, 1 + layer["after_network"], s.eps)
    return rms_norm(x, 1 + params["norm"], s.eps)


def without_positions(params: Params, s: Any) -> tuple[Params, Any]:
    """Turn nothing."""
    still = [rope._replace(frequencies=0 * rope.frequencies) for rope in s.ropes]
    return params, changed(s, ropes=still)


logits = by_head
