r"""T5, versions 1.0 and 1.1 (and FLAN-T5), in one page.

Unusual beside the Transformer of 2017: RMS norm before each sublayer and after each stack (chapter
60); no code is added to the tokens, but a learned number for each head and bucket of distances to
the scores (33), from one table for the encoder and one for the decoder, which all their layers
share; attention to the source has none. Scores are not divided by sqrt(K). No biases. Heads times
their width need not be D: 6 times 64 of 512 in v1.1-small. ReLU; in 1.1 gated, with GELU in its
tanh form (60). The head is the embedding, with x divided by sqrt(D) before it; in 1.1 a matrix of
its own, without this factor::

    x = x + W_o softmax(q k^T + b_bucket(i - j)) v,      of q, k, v = (W_q, W_k, W_v) norm(x)
    x = x + W_o softmax(q k^T) v,                        of k, v = (W_k, W_v) source: decoder only
    x = x + W_2 relu(W_1 norm(x)),   or   W_2 (gelu(W_gate norm(x)) * W_1 norm(x))

Source: transformers 5.23.0, models/t5; google-research/text-to-text-transfer-transformer at
bb23980, `t5/models/gin/models`, and tensorflow/mesh at da90793. Some files hold the embedding once
more for each stack, or a table of buckets for the attention to the source, which nothing reads.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pe_numpy.models.entries import entry
from pe_numpy.models.page import Params, Table, expect, sizes
from pe_numpy.relative.distance import relative_distance
from pe_numpy.relative.t5 import t5_bias
from pe_numpy.transformer.attention import attention, merge_heads, split_heads
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.layers import embed_tokens, feed_forward, linear, rms_norm
from pe_numpy.transformer.masks import Causal

KIND = "encoder-decoder"
COPIES = dict.fromkeys(
    ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"), "shared.weight"
)
IGNORED = r".*\.EncDecAttention\.relative_attention_bias\.weight"
MAY_LACK = ("lm_head.weight",)  # tied to the embedding


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    gated = config.get("feed_forward_proj") == "gated-gelu"
    expect("t5", config, feed_forward_proj="gated-gelu" if gated else "relu")
    s = sizes(
        "t5",
        config,
        V="vocab_size",
        D="d_model",
        F="d_ff",
        encoder="num_layers",
        decoder=("num_decoder_layers", config.get("num_layers")),
        H="num_heads",
        K="d_kv",
        N=("relative_attention_num_buckets", 32),
        far=("relative_attention_max_distance", 128),
        eps=("layer_norm_epsilon", 1e-6),
        tied=("tie_word_embeddings", True),
    )
    s.gated, s.activation = gated, "gelu_tanh" if gated else "relu"
    scaled = entry("t5", config, "scale_decoder_outputs", s.tied)
    s.factor = 1 / math.sqrt(s.D) if scaled else 1.0
    return s


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table: Table = {
        "shared.weight": ("embedding", (s.V, s.D)),
        "lm_head.weight": ("head.T", (s.D, s.V)),
    }
    heads = [(x, f"W_{x}.T", (s.D, s.H * s.K)) for x in "qkv"]
    heads += [("o", "W_o.T", (s.H * s.K, s.D))]
    inner = {"wi_0": "W_gate.T", "wi_1": "W_1.T"} if s.gated else {"wi": "W_1.T"}
    network = [(name, place, (s.D, s.F)) for name, place in inner.items()]
    network += [("wo", "W_2.T", (s.F, s.D))]
    own, source = ("SelfAttention", "own", heads), ("EncDecAttention", "source", heads)
    last = ("DenseReluDense", "network", network)
    for stack, sublayers in (("encoder", (own, last)), ("decoder", (own, source, last))):
        buckets = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        table[buckets] = (f"{stack}.buckets", (s.N, s.H))
        table[f"{stack}.final_layer_norm.weight"] = (f"{stack}.norm", (s.D,))
        for n in range(getattr(s, stack)):
            for m, (theirs, ours, parts) in enumerate(sublayers):
                file, place = f"{stack}.block.{n}.layer.{m}", f"{stack}.layers.{n}.{ours}"
                table[f"{file}.layer_norm.weight"] = (f"{place}.norm", (s.D,))
                for name, matrix, shape in parts:
                    table[f"{file}.{theirs}.{name}.weight"] = (f"{place}.{matrix}", shape)
    return table


def encode(
    params: Params, s: Any, source: np.ndarray, source_real: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Read the source (B, S): what the decoder attends to (B, S, D), and where it may."""
    stack = params["encoder"]
    x = embed_tokens(params["embedding"], source, scale=1)  # (B, S, D)
    places = np.arange(source.shape[1])
    bias = t5_bias(stack["buckets"], relative_distance(places, places), s.far)  # (H, S, S)
    mask = source_real[:, None, None]  # (B, 1, 1, S)
    for n in range(s.encoder):
        layer = stack["layers"][str(n)]
        h = rms_norm(x, layer["own"]["norm"], s.eps)
        k, v = keys_and_values(layer["own"], s, h)
        x = x + mix(layer["own"], s, h, k, v, mask, bias)[0]
        h = rms_norm(x, layer["network"]["norm"], s.eps)
        x = x + feed_forward(layer["network"], h, s.activation)
    return rms_norm(x, stack["norm"], s.eps), mask


def decode(params: Params, s: Any, tokens: np.ndarray, context: Context) -> np.ndarray:
    """Logits (B, L, V) of the token after each."""
    stack = params["decoder"]
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    bias = t5_bias(stack["buckets"], context.distance, s.far, bidirectional=False)  # (B, H, L, S)
    mask = context.mask_of(Causal())  # (B, 1, L, S)
    for n in range(s.decoder):
        layer = stack["layers"][str(n)]
        h = rms_norm(x, layer["own"]["norm"], s.eps)
        k, v = context.keep(n, *keys_and_values(layer["own"], s, h))
        mixed, seen = mix(layer["own"], s, h, k, v, mask, bias)
        context.look(n, seen)
        x = x + mixed
        h = rms_norm(x, layer["source"]["norm"], s.eps)
        k, v = context.once(n, partial(keys_and_values, layer["source"], s, context.memory))
        x = x + mix(layer["source"], s, h, k, v, context.memory_mask)[0]
        h = rms_norm(x, layer["network"]["norm"], s.eps)
        x = x + feed_forward(layer["network"], h, s.activation)
    x = rms_norm(x, stack["norm"], s.eps) * s.factor
    return linear(x, params.get("head", params["embedding"].T))


def keys_and_values(params: Params, s: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give keys and values (B, H, S, K) of x (B, S, D)."""
    return split_heads(linear(x, params["W_k"]), s.H), split_heads(linear(x, params["W_v"]), s.H)


def mix(
    params: Params, s: Any, x: np.ndarray, k: Any, v: Any, mask: Any, bias: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Attend from x (B, L, D), by scores that nothing divides; give the weights, too."""
    q = split_heads(linear(x, params["W_q"]), s.H)  # (B, H, L, K)
    mixed, seen = attention(q, k, v, mask, bias, scale=1)
    return linear(merge_heads(mixed), params["W_o"]), seen


def without_positions(params: Params, s: Any) -> tuple[Params, Any]:
    """Let every bucket hold 0."""
    for stack in ("encoder", "decoder"):
        params = {**params, stack: {**params[stack], "buckets": 0 * params[stack]["buckets"]}}
    return params, s
