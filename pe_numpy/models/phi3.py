r"""Phi-3, 3.5 and 4-mini, in one page.

Unusual beside LLaMA: LongRoPE (chapter 50) in those for 128k tokens, with one list of divisors up
to the trained length L0 and another for *every* token of a longer text, and its factor of turned
queries and keys; in Phi-4-mini three quarters of a head turn (42); a window in some (12); queries,
keys and values in one matrix, and the gate beside its partner in another::

    q | k | v = W_qkv norm(x)
    x = x + W_o attention(rope(q), rope(k), v)
    gate | up = W norm(x)
    x = x + W_2 (silu(gate) * up)

Source: transformers 5.23.0, models/phi3. The text that grows past L0 changes its list: all that the
cache holds was made with the other, the keys of the second layer even before they turned, so that
all tokens are read again, once. The list follows the longest text of a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pe_numpy.models.page import (
    Params,
    Table,
    all_heads,
    by_group,
    by_head,
    changed,
    expect,
    rule,
    sizes,
    turn,
)
from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.transformer.attention import attention, merge_heads, split_fused, split_heads
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.layers import embed_tokens, linear, rms_norm, silu

KIND = "decoder"
PREFIX = "model."
HEAD = "lm_head."
MAY_LACK = ("lm_head.weight",)  # tied to the embedding


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    expect("phi3", config, hidden_act="silu")
    s = sizes(
        "phi3",
        config,
        V="vocab_size",
        D="hidden_size",
        F="intermediate_size",
        layers="num_hidden_layers",
        H="num_attention_heads",
        G=("num_key_value_heads", config.get("num_attention_heads")),
        K=("head_dim", None),
        L0=("original_max_position_embeddings", 4096),
        window=("sliding_window", None),
        eps=("rms_norm_eps", 1e-5),
        tied=("tie_word_embeddings", False),
    )
    s.ropes = [rope_from_config(config, length=length) for length in (s.L0, s.L0 + 1)]
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
            ("self_attn.qkv_proj", "W_qkv.T", (s.D, (s.H + 2 * s.G) * s.K)),
            ("self_attn.o_proj", "W_o.T", (s.H * s.K, s.D)),
            ("post_attention_layernorm", "norm_2", (s.D,)),
            ("mlp.gate_up_proj", "W_gate_up.T", (s.D, 2 * s.F)),
            ("mlp.down_proj", "W_2.T", (s.F, s.D)),
        ):
            table[f"model.layers.{n}.{name}.weight"] = (f"layers.{n}.{place}", shape)
    return table


def hidden(params: Params, s: Any, tokens: np.ndarray, context: Context) -> np.ndarray:
    """What the layers and the last norm make of each token, (B, L, D)."""
    L, long = tokens.shape[1], int(context.k_positions.max() >= s.L0)
    held, lists = context.keep("read", tokens[..., None], np.full((*tokens.shape, 1), long))
    if (lists != long).any():  # what is held was made with the other list
        context.again()
        tokens = held[..., 0].copy()
        context.keep("read", tokens[..., None], np.full_like(lists, long))
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        fused = linear(rms_norm(x, layer["norm_1"], s.eps), layer["W_qkv"])
        q, k, v = split_fused(fused, "q|k|v", s.H, s.G)
        q, k, v = split_heads(q, s.H), split_heads(k, s.G), split_heads(v, s.G)  # (B, H, L, K)
        q, k = (
            turn(q, context.q_positions, s.ropes[long]),
            turn(k, context.q_positions, s.ropes[long]),
        )
        k, v = context.keep(n, k, v, window=s.window)  # (B, G, S, K)
        mask = context.mask_of(rule(s.window), k.shape[-2])  # (B, 1, L, S)
        q, k, v, mask = by_group(s.G, q, k, v, mask)  # (B, G, H/G, L, K), (B, G, 1, S, K)
        mixed, seen = map(all_heads, attention(q, k, v, mask))
        context.look(n, seen[..., -L:, :])
        x = x + linear(merge_heads(mixed), layer["W_o"])
        h = linear(rms_norm(x, layer["norm_2"], s.eps), layer["W_gate_up"])
        gate, up = h[..., : s.F], h[..., s.F :]
        x = x + linear(silu(gate) * up, layer["W_2"])
    return rms_norm(x[:, -L:], params["norm"], s.eps)


def without_positions(params: Params, s: Any) -> tuple[Params, Any]:
    """Turn nothing."""
    return params, changed(
        s, ropes=[rope._replace(frequencies=0 * rope.frequencies) for rope in s.ropes]
    )


logits = by_head
