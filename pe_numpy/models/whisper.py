r"""Whisper, encoder and decoder, in one page; what it reads are features of sound, not sound.

Unusual beside the Transformer of 2017: the source is 30 s of sound, (mel, frames): two convolutions
over three places each, the second of which takes every other place, make tokens of it. To them
the sinusoids of tensor2tensor are added, which the file holds (chapter 25: sines, then cosines; the
slowest turns exactly 10000 times slower than the first), to the decoder's tokens a learned table
(21). Layer norm before each sublayer and after each stack (60), exact GELU (60), biases everywhere
but in the projection to keys, the head tied to the embedding, which is not scaled::

    x = gelu(convolve_2(gelu(convolve_1(features)))) + P[place]     or    E[token] + P[position]
    x = x + W_o attention(q, k, v),   of q = W_q norm(x), (k, v) = (W_k, W_v) norm(x)
    x = x + W_o attention(q, k, v),   of q = W_q norm(x), (k, v) = (W_k, W_v) source: decoder only
    x = x + W_2 gelu(W_1 norm(x))

Source: transformers 5.23.0, models/whisper; openai/whisper at fdf63e5, `whisper/model.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pe_numpy.absolute.learned import learned
from pe_numpy.models.page import Params, Table, expect, sizes
from pe_numpy.transformer.attention import attention, merge_heads, split_heads
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.layers import embed_tokens, feed_forward, gelu, layer_norm, linear
from pe_numpy.transformer.masks import Causal

KIND = "encoder-decoder"
EPS = 1e-5
PREFIX = "model."
MAY_LACK = ("proj_out.weight",)  # tied to the embedding


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes."""
    expect("whisper", config, activation_function="gelu", scale_embedding=False)
    s = sizes(
        "whisper",
        config,
        V="vocab_size",
        D="d_model",
        mel="num_mel_bins",
        S="max_source_positions",
        N="max_target_positions",
        encoder="encoder_layers",
        decoder="decoder_layers",
        H_encoder="encoder_attention_heads",
        H_decoder="decoder_attention_heads",
        F_encoder="encoder_ffn_dim",
        F_decoder="decoder_ffn_dim",
        tied=("tie_word_embeddings", True),
    )
    s.frames = 2 * s.S
    return s


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table: Table = {
        "model.decoder.embed_tokens.weight": ("embedding", (s.V, s.D)),
        "model.encoder.embed_positions.weight": ("encoder.positions", (s.S, s.D)),
        "model.decoder.embed_positions.weight": ("decoder.positions", (s.N, s.D)),
        "model.encoder.conv1.weight": ("encoder.convolution_1.W", (s.D, s.mel, 3)),
        "model.encoder.conv1.bias": ("encoder.convolution_1.b", (s.D,)),
        "model.encoder.conv2.weight": ("encoder.convolution_2.W", (s.D, s.D, 3)),
        "model.encoder.conv2.bias": ("encoder.convolution_2.b", (s.D,)),
        "proj_out.weight": ("head.T", (s.D, s.V)),
    }
    own, source = ("self_attn", "own"), ("encoder_attn", "source")
    for stack, layers, attentions, F in (
        ("encoder", s.encoder, [own], s.F_encoder),
        ("decoder", s.decoder, [own, source], s.F_decoder),
    ):
        lines: list[Any] = [("layer_norm", "norm.gain", (s.D,))]
        for n in range(layers):
            for theirs, ours in attentions:
                file, place = f"layers.{n}.{theirs}", f"layers.{n}.{ours}"
                lines += [(f"{file}_layer_norm", f"{place}.norm.gain", (s.D,))]
                for x in ("q", "k", "v", "out"):
                    lines += [(f"{file}.{x}_proj", f"{place}.W_{x[0]}.T", (s.D, s.D))]
            file, place = f"layers.{n}", f"layers.{n}.network"
            lines += [(f"{file}.final_layer_norm", f"{place}.norm.gain", (s.D,))]
            lines += [(f"{file}.fc1", f"{place}.W_1.T", (s.D, F))]
            lines += [(f"{file}.fc2", f"{place}.W_2.T", (F, s.D))]
        for file, place, shape in lines:
            table[f"model.{stack}.{file}.weight"] = (f"{stack}.{place}", shape)
            if not file.endswith("k_proj"):
                bias = place.replace("gain", "bias").replace("W_", "b_").removesuffix(".T")
                table[f"model.{stack}.{file}.bias"] = (f"{stack}.{bias}", shape[-1:])
    return table


def encode(
    params: Params, s: Any, source: np.ndarray, source_real: None
) -> tuple[np.ndarray, None]:
    """Read features (B, mel, frames): what the decoder attends to (B, S, D), all of it."""
    stack = params["encoder"]
    x = np.swapaxes(source, 1, 2)  # (B, frames, mel)
    x = gelu(convolve(x, **stack["convolution_1"], stride=1))  # (B, frames, D)
    x = gelu(convolve(x, **stack["convolution_2"], stride=2))  # (B, S, D)
    x = x + stack["positions"]
    for n in range(s.encoder):
        layer = stack["layers"][str(n)]
        h = layer_norm(x, **layer["own"]["norm"], eps=EPS)
        k, v = keys_and_values(layer["own"], h, s.H_encoder)
        x = x + mix(layer["own"], h, k, v, s.H_encoder)[0]
        h = layer_norm(x, **layer["network"]["norm"], eps=EPS)
        x = x + feed_forward(layer["network"], h, "gelu")
    return layer_norm(x, **stack["norm"], eps=EPS), None


def decode(params: Params, s: Any, tokens: np.ndarray, context: Context) -> np.ndarray:
    """Logits (B, L, V) of the token after each."""
    stack = params["decoder"]
    x = embed_tokens(params["embedding"], tokens, scale=1)  # (B, L, D)
    x = x + learned(stack["positions"], context.q_positions)
    mask = context.mask_of(Causal())  # (B, 1, L, S)
    for n in range(s.decoder):
        layer = stack["layers"][str(n)]
        h = layer_norm(x, **layer["own"]["norm"], eps=EPS)
        k, v = context.keep(n, *keys_and_values(layer["own"], h, s.H_decoder))
        mixed, seen = mix(layer["own"], h, k, v, s.H_decoder, mask)
        context.look(n, seen)
        x = x + mixed
        h, other = layer_norm(x, **layer["source"]["norm"], eps=EPS), layer["source"]
        k, v = context.once(n, partial(keys_and_values, other, context.memory, s.H_decoder))
        x = x + mix(other, h, k, v, s.H_decoder)[0]
        h = layer_norm(x, **layer["network"]["norm"], eps=EPS)
        x = x + feed_forward(layer["network"], h, "gelu")
    x = layer_norm(x, **stack["norm"], eps=EPS)
    return linear(x, params.get("head", params["embedding"].T))


def convolve(x: np.ndarray, W: np.ndarray, b: np.ndarray, stride: int) -> np.ndarray:
    """Project each place of x (B, S, C) with its two neighbours by W (D, C, 3); zeros beside x."""
    x = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    last = x.shape[1] - 2
    return b + sum(linear(x[:, m : m + last : stride], W[..., m].T) for m in range(3))


def keys_and_values(params: Params, x: np.ndarray, H: int) -> tuple[np.ndarray, np.ndarray]:
    """Give keys and values (B, H, S, K) of x (B, S, D)."""
    k, v = linear(x, params["W_k"]), linear(x, params["W_v"], params["b_v"])
    return split_heads(k, H), split_heads(v, H)


def mix(
    params: Params, x: np.ndarray, k: Any, v: Any, H: int, mask: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Attend from x (B, L, D); give the weights, too."""
    q = split_heads(linear(x, params["W_q"], params["b_q"]), H)  # (B, H, L, K)
    mixed, seen = attention(q, k, v, mask)
    return linear(merge_heads(mixed), params["W_o"], params["b_o"]), seen


def without_positions(params: Params, s: Any) -> tuple[Params, Any]:
    """Add nothing."""
    for stack in ("encoder", "decoder"):
        params = {**params, stack: {**params[stack], "positions": 0 * params[stack]["positions"]}}
    return params, s
