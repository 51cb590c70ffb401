r"""GPT-2, in one page.

Unusual beside the Transformer of 2017: only a decoder, layer norm *before* each sublayer and once
more at the end (chapter 60), learned positions (21) added to an embedding that is not scaled, GELU
in its tanh form (60), biases everywhere, the head tied to the embedding::

    x = E[token] + P[position]
    x = x + W_o attention(q, k, v),   q | k | v = W_qkv norm(x)
    x = x + W_2 gelu(W_1 norm(x))

Source: transformers 5.23.0, models/gpt2; openai/gpt-2 at 9b63575, `src/model.py`. Its matrices are
stored (in, out), as ours and unlike those of most models. Files may lack the prefix
"transformer.", and may hold the causal mask, which is no parameter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pe_numpy.absolute.learned import learned
from pe_numpy.models.page import Params, Table, by_head, expect, sizes
from pe_numpy.transformer.attention import attention, merge_heads, split_fused, split_heads
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.layers import embed_tokens, feed_forward, layer_norm, linear
from pe_numpy.transformer.masks import Causal

KIND = "decoder"
PREFIX = "transformer."
HEAD = "lm_head."
IGNORED = r"transformer\.h\.\d+\.attn\.(bias|masked_bias)"
MAY_LACK = ("lm_head.weight",)  # tied to the embedding


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    expect("gpt2", config, activation_function="gelu_new", scale_attn_weights=True)
    expect("gpt2", config, scale_attn_by_inverse_layer_idx=False)
    s = sizes(
        "gpt2",
        config,
        V="vocab_size",
        D="n_embd",
        N="n_positions",
        layers="n_layer",
        H="n_head",
        F=("n_inner", None),
        eps=("layer_norm_epsilon", 1e-5),
        tied=("tie_word_embeddings", True),
    )
    s.F = s.F or 4 * s.D
    return s


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        "transformer.wte.weight": ("embedding", (s.V, s.D)),
        "transformer.wpe.weight": ("positions", (s.N, s.D)),
        "transformer.ln_f.weight": ("norm.gain", (s.D,)),
        "transformer.ln_f.bias": ("norm.bias", (s.D,)),
        "lm_head.weight": ("head.T", (s.D, s.V)),
    }
    for n in range(s.layers):
        for name, place, shape in (
            ("ln_1.weight", "norm_1.gain", (s.D,)),
            ("ln_1.bias", "norm_1.bias", (s.D,)),
            ("attn.c_attn.weight", "W_qkv", (s.D, 3 * s.D)),
            ("attn.c_attn.bias", "b_qkv", (3 * s.D,)),
            ("attn.c_proj.weight", "W_o", (s.D, s.D)),
            ("attn.c_proj.bias", "b_o", (s.D,)),
            ("ln_2.weight", "norm_2.gain", (s.D,)),
            ("ln_2.bias", "norm_2.bias", (s.D,)),
            ("mlp.c_fc.weight", "network.W_1", (s.D, s.F)),
            ("mlp.c_fc.bias", "network.b_1", (s.F,)),
            ("mlp.c_proj.weight", "network.W_2", (s.F, s.D)),
            ("mlp.c_proj.bias", "network.b_2", (s.D,)),
        ):
            table[f"transformer.h.{n}.{name}"] = (f"layers.{n}.{place}", shape)
    return table


def hidden(params: Params, s: Any, tokens: np.ndarray, context: Context) -> np.ndarray:
    """What the layers and the last norm make of each token, (B, L, D)."""
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    x = x + learned(params["positions"], context.q_positions)
    mask = context.mask_of(Causal())  # (B, 1, L, S)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        h = layer_norm(x, **layer["norm_1"], eps=s.eps)
        fused = split_fused(linear(h, layer["W_qkv"], layer["b_qkv"]), "q|k|v", s.H)
        q, k, v = (split_heads(each, s.H) for each in fused)  # (B, H, L, K)
        k, v = context.keep(n, k, v)  # (B, H, S, K)
        mixed, seen = attention(q, k, v, mask)
        context.look(n, seen)
        x = x + linear(merge_heads(mixed), layer["W_o"], layer["b_o"])
        h = layer_norm(x, **layer["norm_2"], eps=s.eps)
        x = x + feed_forward(layer["network"], h, "gelu_tanh")
    return layer_norm(x, **params["norm"], eps=s.eps)


def without_positions(params: Params, s: Any) -> tuple[Params, Any]:
    """Add nothing."""
    return {**params, "positions": 0 * params["positions"]}, s


logits = by_head
