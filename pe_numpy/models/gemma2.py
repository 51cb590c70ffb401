r"""Gemma 2, in one page.

Unusual beside LLaMA: windows on every second layer, from the first on (chapter 12); the sums are
scaled by a number of the configuration in place of sqrt(K) (42), and scores and logits are bent by
c tanh(x / c), so that none exceeds c; norms behind the sublayers, too, with gains stored as their
distance from 1, and a gate with GELU (60); the embedding is scaled (62), by sqrt(D) in the few bits
of the weights' dtype: in bfloat16 sqrt(3584) = 59.87 is 59.75. The head is tied to it, unscaled::

    x = sqrt(D) E[token]
    x = x + norm(W_o softmax(cap(q k / sqrt(scalar))) v),   q = rope(W_q norm(x)), k likewise
    x = x + norm(W_2 (gelu(W_gate norm(x)) * W_1 norm(x)))
    norm(x) = (1 + w) x / sqrt(mean(x^2) + eps)

Source: transformers 5.23.0, models/gemma2; google/gemma_pytorch at c20d7ea, `gemma/model.py`. What
the files call post_attention_layernorm stands where its name says; in LLaMA's it does not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pe_numpy.models.page import (
    Params,
    Table,
    all_heads,
    by_group,
    expect,
    rounded,
    rule,
    sizes,
    turn,
    windows,
    without_turns,
)
from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.transformer.attention import attend, merge_heads, split_heads
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.layers import embed_tokens, feed_forward, linear, rms_norm

KIND = "decoder"
PREFIX = "model."
COPIES = {"lm_head.weight": "model.embed_tokens.weight"}  # tied


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    both_sides = bool(config.get("use_bidirectional_attention"))  # null is no
    config = {**config, "use_bidirectional_attention": both_sides}
    expect("gemma2", config, hidden_activation="gelu_pytorch_tanh", attention_bias=False)
    expect("gemma2", config, tie_word_embeddings=True, use_bidirectional_attention=False)
    s = sizes(
        "gemma2",
        config,
        V="vocab_size",
        D="hidden_size",
        F="intermediate_size",
        layers="num_hidden_layers",
        H="num_attention_heads",
        G="num_key_value_heads",
        K="head_dim",
        eps=("rms_norm_eps", 1e-6),
        window="sliding_window",
        scalar="query_pre_attn_scalar",
        score_cap="attn_logit_softcapping",
        logit_cap="final_logit_softcapping",
    )
    s.windows = windows("gemma2", config, every=2)
    s.embedding_scale = rounded("gemma2", config, math.sqrt(s.D))
    s.rope = rope_from_config(config)
    return s


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        "model.embed_tokens.weight": ("embedding", (s.V, s.D)),
        "model.norm.weight": ("norm", (s.D,)),
    }
    for n in range(s.layers):
        for name, place, shape in (
            ("input_layernorm", "before_attention", (s.D,)),
            ("self_attn.q_proj", "W_q.T", (s.D, s.H * s.K)),
            ("self_attn.k_proj", "W_k.T", (s.D, s.G * s.K)),
            ("self_attn.v_proj", "W_v.T", (s.D, s.G * s.K)),
            ("self_attn.o_proj", "W_o.T", (s.H * s.K, s.D)),
            ("post_attention_layernorm", "after_attention", (s.D,)),
            ("pre_feedforward_layernorm", "before_network", (s.D,)),
            ("mlp.gate_proj", "network.W_gate.T", (s.D, s.F)),
            ("mlp.up_proj", "network.W_1.T", (s.D, s.F)),
            ("mlp.down_proj", "network.W_2.T", (s.F, s.D)),
            ("post_feedforward_layernorm", "after_network", (s.D,)),
        ):
            table[f"model.layers.{n}.{name}.weight"] = (f"layers.{n}.{place}", shape)
    return table


def soft_cap(x: np.ndarray, cap: float) -> np.ndarray:
    """Bend numbers so that none exceeds the cap: c tanh(x / c)."""
    return cap * np.tanh(x / cap)


def hidden(params: Params, s: Any, tokens: np.ndarray, context: Context) -> np.ndarray:
    """What the layers and the last norm make of each token, (B, L, D)."""
    x = embed_tokens(params["embedding"], tokens, s.embedding_scale)  # (B, L, D)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        h = rms_norm(x, 1 + layer["before_attention"], s.eps)
        q = split_heads(linear(h, layer["W_q"]), s.H)  # (B, H, L, K)
        k = split_heads(linear(h, layer["W_k"]), s.G)  # (B, G, L, K)
        v = split_heads(linear(h, layer["W_v"]), s.G)
        q, k = turn(q, context.q_positions, s.rope), turn(k, context.q_positions, s.rope)
        k, v = context.keep(n, k, v, window=s.windows[n])  # (B, G, S, K)
        mask = context.mask_of(rule(s.windows[n]), k.shape[-2])  # (B, 1, L, S)
        q, k, v, mask = by_group(s.G, q, k, v, mask)  # (B, G, H/G, L, K), (B, G, 1, S, K)
        scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(s.scalar)  # (B, G, H/G, L, S)
        mixed, seen = map(all_heads, attend(soft_cap(scores, s.score_cap), v, mask))
        context.look(n, seen)
        h = linear(merge_heads(mixed), layer["W_o"])
        x = x + rms_norm(h, 1 + layer["after_attention"], s.eps)
        h = rms_norm(x, 1 + layer["before_network"], s.eps)
        h = feed_forward(layer["network"], h, "gelu_tanh")
        x = x + rms_norm(h, 1 + layer["after_network"], s.eps)
    return rms_norm(x, 1 + params["norm"], s.eps)


def logits(params: Params, s: Any, h: np.ndarray) -> np.ndarray:
    """Logits (B, L, V) of the token after each."""
    return soft_cap(linear(h, params["embedding"].T), s.logit_cap)


without_positions = without_turns
