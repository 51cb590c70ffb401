r"""XLNet, in one page: the form that reads in both directions, without permutations and memory.

Unusual beside BERT: nothing is added to the embedding, which has no norm either. Transformer-XL's
scores (chapter 32): the sinusoidal code of each distance i - j, past and future, all sines before
all cosines (20), passes through a matrix W_r of each layer; two vectors a head, u and w, stand
beside the query. A third, s, asks whether a key is of the query's segment or not: segments are
relative, too, so any numbers that differ will do. Projections have no biases. No network before
the tied head, which has a bias::

    A_ij = ((q_i + u) . k_j + (q_i + w) . r_(i-j) + (q_i + s) . e_(segments differ)) / sqrt(K)
    x = norm(x + W_o softmax(A) v);   x = norm(x + W_2 gelu(W_1 x + b_1) + b_2)

Source: transformers 5.23.0, models/xlnet; zihangdai/xlnet at bbaa3a6, `modeling.py`, whose GELU is
the tanh form where transformers has the exact one. The projections are stored (D, H, K), that of
the output as well; `mask_emb` starts the second stream of pre-training and is left out here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pe_numpy.absolute.sinusoidal import sinusoidal
from pe_numpy.models.page import Look, Params, Table, expect, sizes
from pe_numpy.relative.distance import relative_distance
from pe_numpy.relative.transformer_xl import transformer_xl_scores
from pe_numpy.transformer.attention import attend, merge_heads, split_heads
from pe_numpy.transformer.layers import embed_tokens, feed_forward, layer_norm, linear

KIND = "encoder"
PREFIX = "transformer."
HEAD = "lm_loss."
IGNORED = r"transformer\.mask_emb"
MAY_LACK = ("lm_loss.weight",)  # tied to the embedding


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    expect("xlnet", config, ff_activation="gelu", attn_type="bi", bi_data=False, clamp_len=-1)
    return sizes(
        "xlnet",
        config,
        V="vocab_size",
        D="d_model",
        F="d_inner",
        layers="n_layer",
        H="n_head",
        K=("d_head", None),
        eps=("layer_norm_eps", 1e-12),
        tied=("tie_word_embeddings", True),
    )


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        "transformer.word_embedding.weight": ("embedding", (s.V, s.D)),
        "lm_loss.weight": ("head.T", (s.D, s.V)),
        "lm_loss.bias": ("b_head", (s.V,)),
    }
    for n in range(s.layers):
        for name, place, shape in (
            ("rel_attn.q", "W_q", (s.D, s.H, s.K)),
            ("rel_attn.k", "W_k", (s.D, s.H, s.K)),
            ("rel_attn.v", "W_v", (s.D, s.H, s.K)),
            ("rel_attn.r", "W_r", (s.D, s.H, s.K)),
            ("rel_attn.o", "W_o", (s.D, s.H, s.K)),
            ("rel_attn.r_w_bias", "u", (s.H, s.K)),
            ("rel_attn.r_r_bias", "w", (s.H, s.K)),
            ("rel_attn.r_s_bias", "s", (s.H, s.K)),
            ("rel_attn.seg_embed", "segments", (2, s.H, s.K)),  # the same, another
            ("rel_attn.layer_norm.weight", "norm_1.gain", (s.D,)),
            ("rel_attn.layer_norm.bias", "norm_1.bias", (s.D,)),
            ("ff.layer_1.weight", "network.W_1.T", (s.D, s.F)),
            ("ff.layer_1.bias", "network.b_1", (s.F,)),
            ("ff.layer_2.weight", "network.W_2.T", (s.F, s.D)),
            ("ff.layer_2.bias", "network.b_2", (s.D,)),
            ("ff.layer_norm.weight", "norm_2.gain", (s.D,)),
            ("ff.layer_norm.bias", "norm_2.bias", (s.D,)),
        ):
            table[f"transformer.layer.{n}.{name}"] = (f"layers.{n}.{place}", shape)
    return table


def hidden(
    params: Params,
    s: Any,
    tokens: np.ndarray,
    positions: np.ndarray,
    real: np.ndarray,
    types: np.ndarray,
    look: Look,
) -> np.ndarray:
    """What the layers make of each token, (B, L, D)."""
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    distance = relative_distance(positions, positions)  # (B, 1, L, L)
    each = np.arange(distance.min(), distance.max() + 1)
    codes = sinusoidal(each, s.D, layout="concatenated").astype(x.dtype)  # (N, D)
    differ = (types[:, :, None] != types[:, None, :])[:, None]  # (B, 1, L, L)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        q, k, v, r = (
            split_heads(linear(each, layer[to].reshape(s.D, s.H * s.K)), s.H)
            for each, to in ((x, "W_q"), (x, "W_k"), (x, "W_v"), (codes, "W_r"))
        )  # (B, H, L, K), r (H, N, K)
        scores = transformer_xl_scores(q, k, r, layer["u"], layer["w"], distance)
        ask = (q + layer["s"][:, None]) / math.sqrt(s.K)
        same, other = np.einsum("bhlk,nhk->nbhl", ask, layer["segments"])[..., None]  # (B, H, L, 1)
        mixed, seen = attend(scores + np.where(differ, other, same), v, real[:, None, None])
        look(n, seen)
        W_o = layer["W_o"].reshape(s.D, s.H * s.K).T
        x = layer_norm(x + linear(merge_heads(mixed), W_o), **layer["norm_1"], eps=s.eps)
        x = layer_norm(x + feed_forward(layer["network"], x, "gelu"), **layer["norm_2"], eps=s.eps)
    return x


def logits(params: Params, s: Any, h: np.ndarray) -> np.ndarray:
    """Logits (B, L, V) of each token itself."""
    return linear(h, params.get("head", params["embedding"].T), params["b_head"])
