r"""DeBERTa-v2 and -v3, in one page.

Unusual beside BERT: neither positions nor types are added to the embedding, and padding is zero
after its norm. Scores are disentangled (chapter 34): one table of 2m rows serves all layers, with a
norm of its own; each layer's W_q and W_k project it as they project tokens, and the logarithmic
bucket of the distance says which row. Position to content reads the row of i - j, as content to
position does, and unlike the paper. v2's largest models add a convolution of the *embedding* after
layer 0::

    A_ij = (q_i . k_j + q_i . k'_bucket(i-j) + k_j . q'_bucket(i-j)) / sqrt(3K)
    q = W_q x,  k = W_k x,  q' = W_q norm(table),  k' = W_k norm(table)
    x = norm(x + W_o softmax(A) W_v x)
    x = norm(x + W_2 gelu(W_1 x))
    x = norm(x + gelu(convolution(embedding)))    after layer 0, where there is one

Source: transformers 5.23.0, models/deberta_v2; microsoft/DeBERTa at 4d7fe0b, `DeBERTa/deberta`.
They differ in keys that stand 512 tokens or more (max_distance) after the query: this page gives
them the last bucket, as Microsoft's code does; transformers reads row 0, which no shorter text has
trained. What served pre-training, a table of positions and v3's head that tells replaced tokens, is
left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pe_numpy.models.entries import entry
from pe_numpy.models.page import Look, Params, Table, expect, sizes
from pe_numpy.relative.deberta import deberta_bucket, deberta_scores
from pe_numpy.relative.distance import relative_distance
from pe_numpy.transformer.attention import attend, merge_heads, split_heads
from pe_numpy.transformer.layers import embed_tokens, feed_forward, gelu, layer_norm, linear

KIND = "encoder"
PREFIX = "deberta."
HEAD = "cls.predictions."
OLD_NAMES = {  # Microsoft's
    "lm_predictions.lm_head.bias": "cls.predictions.bias",
    "lm_predictions.lm_head.": "cls.predictions.transform.",
}
IGNORED = r"deberta\.embeddings\.position_(embeddings\.weight|ids)|mask_predictions\..*"
COPIES = {  # tied
    "cls.predictions.decoder.weight": "deberta.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
MISSING = {  # what transformers takes for what a configuration leaves out; the page does none of it
    **{"relative_attention": False, "position_biased_input": True, "pos_att_type": None},
    **{"share_att_key": False, "norm_rel_ebd": "none", "conv_act": "tanh"},
}


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    config = {**MISSING, **config}
    terms = entry("deberta", config, "pos_att_type", [])
    config["pos_att_type"] = sorted(terms.split("|") if isinstance(terms, str) else terms)
    expect("deberta", config, pos_att_type=["c2p", "p2c"], position_biased_input=False)
    expect("deberta", config, share_att_key=True, norm_rel_ebd="layer_norm", type_vocab_size=0)
    expect("deberta", config, relative_attention=True)
    expect("deberta", config, hidden_act="gelu", conv_groups=1, tie_word_embeddings=True)
    s = sizes(
        "deberta",
        config,
        V="vocab_size",
        D="hidden_size",
        F="intermediate_size",
        layers="num_hidden_layers",
        H="num_attention_heads",
        m="position_buckets",
        max_distance=("max_relative_positions", -1),
        kernel=("conv_kernel_size", 0),
        eps=("layer_norm_eps", 1e-7),
    )
    if s.max_distance < 1:
        s.max_distance = entry("deberta", config, "max_position_embeddings", 512)
    if s.kernel:
        expect("deberta", config, conv_act="gelu")
    return s


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        "deberta.embeddings.word_embeddings.weight": ("embedding", (s.V, s.D)),
        "deberta.encoder.rel_embeddings.weight": ("table", (2 * s.m, s.D)),
        "cls.predictions.bias": ("head.b_out", (s.V,)),
    }
    parts = [
        ("deberta.embeddings.LayerNorm", "norm.gain", "norm.bias", (s.D,)),
        ("deberta.encoder.LayerNorm", "table_norm.gain", "table_norm.bias", (s.D,)),
        ("cls.predictions.transform.dense", "head.W.T", "head.b", (s.D, s.D)),
        ("cls.predictions.transform.LayerNorm", "head.norm.gain", "head.norm.bias", (s.D,)),
    ]
    if s.kernel:
        table["deberta.encoder.conv.conv.weight"] = "convolution.W", (s.D, s.D, s.kernel)
        table["deberta.encoder.conv.conv.bias"] = "convolution.b", (s.D,)
        parts += [("deberta.encoder.conv.LayerNorm", "conv_norm.gain", "conv_norm.bias", (s.D,))]
    for n in range(s.layers):
        for name, weight, bias, shape in (
            ("attention.self.query_proj", "W_q.T", "b_q", (s.D, s.D)),
            ("attention.self.key_proj", "W_k.T", "b_k", (s.D, s.D)),
            ("attention.self.value_proj", "W_v.T", "b_v", (s.D, s.D)),
            ("attention.output.dense", "W_o.T", "b_o", (s.D, s.D)),
            ("attention.output.LayerNorm", "norm_1.gain", "norm_1.bias", (s.D,)),
            ("intermediate.dense", "network.W_1.T", "network.b_1", (s.D, s.F)),
            ("output.dense", "network.W_2.T", "network.b_2", (s.F, s.D)),
            ("output.LayerNorm", "norm_2.gain", "norm_2.bias", (s.D,)),
        ):
            ours = f"layers.{n}."
            parts += [(f"deberta.encoder.layer.{n}.{name}", ours + weight, ours + bias, shape)]
    for name, weight, bias, shape in parts:
        table[f"{name}.weight"], table[f"{name}.bias"] = (weight, shape), (bias, shape[-1:])
    return table


def convolution(x: np.ndarray, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Mix each token of x (B, L, D) with its neighbours, zero beyond the ends: W (D, D, n)."""
    L, n = x.shape[1], W.shape[-1]
    x = np.pad(x, ((0, 0), (n // 2, n // 2), (0, 0)))  # (B, L + n - 1, D)
    return sum((linear(x[:, j : j + L], W[..., j].T) for j in range(n)), b)


def hidden(
    params: Params,
    s: Any,
    tokens: np.ndarray,
    positions: np.ndarray,
    real: np.ndarray,
    types: np.ndarray,
    look: Look,
) -> np.ndarray:
    """What the layers make of each token, (B, L, D); there are no types."""
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    x = embedding = layer_norm(x, **params["norm"], eps=s.eps) * real[..., None]
    table = layer_norm(params["table"], **params["table_norm"], eps=s.eps)  # (2m, D)
    distance = relative_distance(positions, positions)  # (B, 1, L, L)
    bucket = deberta_bucket(distance, s.m, s.max_distance)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        q, k, v, q_table, k_table = (
            split_heads(linear(each, layer[f"W_{to}"], layer[f"b_{to}"]), s.H)
            for each, to in ((x, "q"), (x, "k"), (x, "v"), (table, "q"), (table, "k"))
        )  # (B, H, L, K); tables (H, 2m, K)
        scores = deberta_scores(q, k, q_table, k_table, bucket, p2c_distance=bucket)
        mixed, seen = attend(scores, v, real[:, None, None])
        look(n, seen)
        mixed = linear(merge_heads(mixed), layer["W_o"], layer["b_o"])
        x = layer_norm(x + mixed, **layer["norm_1"], eps=s.eps)
        x = layer_norm(x + feed_forward(layer["network"], x, "gelu"), **layer["norm_2"], eps=s.eps)
        if n == 0 and s.kernel:
            x = x + gelu(convolution(embedding, **params["convolution"]))
            x = layer_norm(x, **params["conv_norm"], eps=s.eps)
    return x


def logits(params: Params, s: Any, h: np.ndarray) -> np.ndarray:
    """Logits (B, L, V) of each token."""
    head = params["head"]
    x = layer_norm(gelu(linear(h, head["W"], head["b"])), **head["norm"], eps=s.eps)
    return linear(x, params["embedding"].T, head["b_out"])
