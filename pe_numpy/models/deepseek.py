r"""DeepSeek-V2 and V3, in one page.

Unusual beside LLaMA: latent attention (chapter 44), whose cache holds, for all heads, one short
vector c and one turned key k_R of each token; RoPE in neighbours (40) on a part of each head, with
YaRN's two factors (50); after the first layers many networks, the experts: each token asks the few
that a router chooses, and shared ones::

    q_C | q_R = W_qb norm(W_qa x)  (Lite: W_q x),   c | k_R = W_kva x,   c = norm(c)
    a = softmax(m^2 (q_C W_uk . c + rope(q_R) . rope(k_R)) / sqrt(d_n + d_r)),   y = W_uv (a c)
    x = x + W_o y
    x = x + shared(norm(x)) + sum over the chosen of w_e expert_e(norm(x))
    V2: w = s f,  s = softmax(W_r h);     V3: w = s f / sum of the chosen s,  s = sigmoid(W_r h)

V3 adds a bias to s where it chooses, not where it weighs; a group of experts is as good as its best
one (V2), as its best two together (V3). The two norms within attention have an eps of their own.

Source: transformers 5.23.0, models/deepseek_v2 and deepseek_v3; deepseek-ai/DeepSeek-V3 at 9b4e978,
`inference/model.py`. V3's released files hold eight-bit numbers, which NumPy does not know: convert
them with `inference/fp8_cast_bf16.py` and take quantization_config out of config.json.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pe_numpy.models.page import Params, Table, by_head, expect, sizes, turn, without_turns
from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.rotary.latent import mla_scores
from pe_numpy.transformer.attention import attend, merge_heads, softmax, split_heads
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.layers import embed_tokens, feed_forward, linear, rms_norm
from pe_numpy.transformer.masks import Causal

KIND = "decoder"
PREFIX = "model."
HEAD = "lm_head."
IGNORED = r"model\.layers\.61\..*"  # V3's guess at the token after the next
MAY_LACK = ("lm_head.weight",)  # tied to the embedding
EPS = 1e-6  # of the norms within attention


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    expect("deepseek", config, hidden_act="silu", attention_bias=False, mlp_bias=False)
    expect("deepseek", config, quantization_config=None, moe_layer_freq=1)
    v3 = config.get("model_type") == "deepseek_v3"
    expect("deepseek", config, norm_topk_prob=v3, scoring_func="sigmoid" if v3 else "softmax")
    groups: dict[str, Any] = {}
    if v3:
        expect("deepseek", config, topk_method="noaux_tc")
        groups = {"groups": ("n_group", 8), "groups_used": ("topk_group", 4)}
    elif config.get("topk_method") == "group_limited_greedy":
        groups = {"groups": "n_group", "groups_used": "topk_group"}
    else:
        expect("deepseek", config, topk_method="greedy")
    s = sizes(
        "deepseek",
        config,
        V="vocab_size",
        D="hidden_size",
        F="intermediate_size",
        layers="num_hidden_layers",
        dense="first_k_dense_replace",
        H="num_attention_heads",
        r="kv_lora_rank",
        r_q=("q_lora_rank", None if "q_lora_rank" in config else 1536),
        d_n="qk_nope_head_dim",
        d_r="qk_rope_head_dim",
        d_v="v_head_dim",
        E="n_routed_experts",
        used="num_experts_per_tok",
        shared="n_shared_experts",
        F_e="moe_intermediate_size",
        factor="routed_scaling_factor",
        **groups,
        eps=("rms_norm_eps", 1e-6),
        tied=("tie_word_embeddings", False),
    )
    s.v3 = v3
    s.groups, s.groups_used = (s.groups, s.groups_used) if groups else (1, 1)
    if s.used > (most := s.groups_used * s.E // s.groups):
        raise ValueError(
            f"deepseek: num_experts_per_tok must be at most {most}, the experts in the "
            f"{s.groups_used} groups that a token uses; got {s.used} in config.json"
        )
    s.rope = rope_from_config(config)
    return s


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        "model.embed_tokens.weight": ("embedding", (s.V, s.D)),
        "model.norm.weight": ("norm", (s.D,)),
        "lm_head.weight": ("head.T", (s.D, s.V)),
    }
    turned = s.H * (s.d_n + s.d_r)
    queries: tuple[Any, ...] = (("self_attn.q_proj", "W_q.T", (s.D, turned)),)
    if s.r_q:
        queries = (
            ("self_attn.q_a_proj", "W_qa.T", (s.D, s.r_q)),
            ("self_attn.q_a_layernorm", "norm_q", (s.r_q,)),
            ("self_attn.q_b_proj", "W_qb.T", (s.r_q, turned)),
        )
    for n in range(s.layers):
        tensors = [
            ("input_layernorm", "norm_1", (s.D,)),
            *queries,
            ("self_attn.kv_a_proj_with_mqa", "W_kva.T", (s.D, s.r + s.d_r)),
            ("self_attn.kv_a_layernorm", "norm_c", (s.r,)),
            ("self_attn.kv_b_proj", "W_kvb", (s.H * (s.d_n + s.d_v), s.r)),
            ("self_attn.o_proj", "W_o.T", (s.H * s.d_v, s.D)),
            ("post_attention_layernorm", "norm_2", (s.D,)),
        ]
        networks = [("mlp", "network", s.F)]
        if n >= s.dense:
            tensors.append(("mlp.gate", "W_r.T", (s.D, s.E)))
            networks = [("mlp.shared_experts", "shared", s.shared * s.F_e)]
            networks += [(f"mlp.experts.{e}", f"experts.{e}", s.F_e) for e in range(s.E)]
        for name, place, F in networks:
            tensors.append((f"{name}.gate_proj", f"{place}.W_gate.T", (s.D, F)))
            tensors.append((f"{name}.up_proj", f"{place}.W_1.T", (s.D, F)))
            tensors.append((f"{name}.down_proj", f"{place}.W_2.T", (F, s.D)))
        for name, place, shape in tensors:
            table[f"model.layers.{n}.{name}.weight"] = (f"layers.{n}.{place}", shape)
        if n >= s.dense and s.v3:
            bias = f"model.layers.{n}.mlp.gate.e_score_correction_bias"
            table[bias] = (f"layers.{n}.b_r", (s.E,))
    return table


def hidden(params: Params, s: Any, tokens: np.ndarray, context: Context) -> np.ndarray:
    """What the layers and the last norm make of each token, (B, L, D)."""
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        h = rms_norm(x, layer["norm_1"], s.eps)
        x = x + latent_attention(layer, s, n, h, context)
        h = rms_norm(x, layer["norm_2"], s.eps)
        if "W_r" in layer:
            x = x + experts(layer, s, h)
        else:
            x = x + feed_forward(layer["network"], h, "silu")
    return rms_norm(x, params["norm"], s.eps)


def latent_attention(layer: Params, s: Any, n: int, h: np.ndarray, context: Context) -> np.ndarray:
    """What the tokens tell each other, (B, L, D); latent vectors serve as keys and as values."""
    if s.r_q:
        q = linear(rms_norm(linear(h, layer["W_qa"]), layer["norm_q"], EPS), layer["W_qb"])
    else:
        q = linear(h, layer["W_q"])
    q_C, q_R = np.split(split_heads(q, s.H), [s.d_n], axis=-1)  # (B, H, L, d_n), (B, H, L, d_r)
    c, k_R = np.split(linear(h, layer["W_kva"]), [s.r], axis=-1)  # (B, L, r), (B, L, d_r)
    q_R, k_R = (turn(x, context.q_positions, s.rope) for x in (q_R, k_R))
    c, k_R = context.keep(n, rms_norm(c, layer["norm_c"], EPS), k_R)  # (B, S, r), (B, S, d_r)
    W_uk, W_uv = np.split(layer["W_kvb"].reshape(s.H, -1, s.r), [s.d_n], axis=1)  # (H, d_v, r)
    scores = mla_scores(q_C, q_R, c, k_R, W_uk, [0], [0])  # all is turned: (B, H, L, S)
    mixed, seen = attend(
        scores * s.rope.score_factor, c[:, None], context.mask_of(Causal())
    )  # (B, H, L, r)
    context.look(n, seen)
    return linear(merge_heads(mixed @ W_uv.swapaxes(1, 2)), layer["W_o"])


def experts(layer: Params, s: Any, h: np.ndarray) -> np.ndarray:
    """What the shared experts say, and those that the router chooses, (B, L, D)."""
    y = feed_forward(layer["shared"], h, "silu")
    w = route(linear(h, layer["W_r"]), layer.get("b_r"), s)  # (B, L, E)
    for e in range(s.E):
        asks = w[..., e] > 0  # (B, L)
        said = feed_forward(layer["experts"][str(e)], h[asks], "silu")
        y[asks] += w[asks, e][:, None] * said
    return y


def route(x: np.ndarray, bias: np.ndarray | None, s: Any) -> np.ndarray:
    """Weights (..., E) of the experts, 0 for those that are not chosen."""
    scores = np.exp(-np.logaddexp(0, -x)) if s.v3 else softmax(x)  # the first is the sigmoid
    choice = scores if bias is None else scores + bias
    groups = choice.reshape(*x.shape[:-1], s.groups, -1)  # (..., groups, E / groups)
    best = np.sort(groups)[..., -2 if s.v3 else -1 :].sum(axis=-1)
    groups = np.where(largest(best, s.groups_used)[..., None], groups, -np.inf)
    w = np.where(largest(groups.reshape(x.shape), s.used), scores, 0)
    return s.factor * (w / (w.sum(axis=-1, keepdims=True) + 1e-20) if s.v3 else w)


def largest(x: np.ndarray, n: int) -> np.ndarray:
    """True at the n largest along the last axis."""
    return np.argsort(np.argsort(-x)) < n


logits, without_positions = by_head, without_turns
