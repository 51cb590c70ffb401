r"""MPT, in one page.

Unusual beside GPT-2: ALiBi (chapter 35), so that the token vectors know no position; no bias
anywhere, not even in the layer norms (60), which have only a gain; GELU in its exact form. Its one
projection makes all queries, then all keys, then all values, unlike BLOOM's::

    x = E[token]
    x = x + W_o softmax(q k^T / sqrt(K) - slope (i - j)) v,   q | k | v = W_qkv norm(x)
    x = x + W_2 gelu(W_1 norm(x))

Source: transformers 5.23.0, models/mpt; mosaicml/llm-foundry at 0085285, `llmfoundry/models/mpt`.
Both add slope j and a constant, whence the signed distance, as in BLOOM. Of "attn_config"
transformers reads, besides dropout, the clip and the scale of the softmax, and passes over the rest
(slopes of another range, norms of q and k, a prefix); here all of it is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pe_numpy.models.entries import entry
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
    expect("mpt", config, no_bias=True, norm_type="low_precision_layernorm", logit_scale=None)
    own = entry("mpt", config, "attn_config", {})
    expect("mpt", own, attn_type="multihead_attention", alibi=True, alibi_bias_max=8, rope=False)
    expect("mpt", own, clip_qkv=None, qk_ln=False, softmax_scale=None, prefix_lm=False)
    s = sizes(
        "mpt",
        config,
        V="vocab_size",
        D="d_model",
        layers="n_layers",
        H="n_heads",
        ratio=("expansion_ratio", 4),
        eps=("layer_norm_epsilon", 1e-5),
        tied=("tie_word_embeddings", True),
    )
    s.F = s.ratio * s.D
    s.slopes = alibi_slopes(s.H)
    return s


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        "transformer.wte.weight": ("embedding", (s.V, s.D)),
        "transformer.norm_f.weight": ("norm", (s.D,)),
        "lm_head.weight": ("head.T", (s.D, s.V)),
    }
    for n in range(s.layers):
        for name, place, shape in (
            ("norm_1", "norm_1", (s.D,)),
            ("attn.Wqkv", "W_qkv.T", (s.D, 3 * s.D)),
            ("attn.out_proj", "W_o.T", (s.D, s.D)),
            ("norm_2", "norm_2", (s.D,)),
            ("ffn.up_proj", "network.W_1.T", (s.D, s.F)),
            ("ffn.down_proj", "network.W_2.T", (s.F, s.D)),
        ):
            table[f"transformer.blocks.{n}.{name}.weight"] = (f"layers.{n}.{place}", shape)
    return table


def hidden(params: Params, s: Any, tokens: np.ndarray, context: Context) -> np.ndarray:
    """What the layers and the last norm make of each token, (B, L, D)."""

    def norm(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
        return layer_norm(x, gain, 0 * gain, s.eps)  # no bias

    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    bias = -s.slopes[:, None, None] * context.head_distance  # (B, H, L, S)
    mask = context.mask_of(Causal())  # (B, 1, L, S)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        fused = split_fused(linear(norm(x, layer["norm_1"]), layer["W_qkv"]), "3HK", s.H)
        q, k, v = (split_heads(each, s.H) for each in fused)  # (B, H, L, K)
        k, v = context.keep(n, k, v)  # (B, H, S, K)
        mixed, seen = attention(q, k, v, mask, bias)
        context.look(n, seen)
        x = x + linear(merge_heads(mixed), layer["W_o"])
        x = x + feed_forward(layer["network"], norm(x, layer["norm_2"]), "gelu")
    return norm(x, params["norm"])


def without_positions(params: Params, s: Any) -> tuple[Params, Any]:
    """Punish no distance."""
    return params, changed(s, slopes=0 * s.slopes)


logits = by_head
