r"""Vision Transformer (ViT), in one page.

Unusual beside the Transformer of 2017: an encoder of pictures. A picture is cut into patches, each
of which becomes a token through one matrix (chapter 38); one learned token more stands first and is
the only one that the head reads. Learned positions, one for each place of the trained grid; for
pictures of another size the grid is resized, bicubic, its rows cells (21), the first token's own
row apart. Layer norm before each sublayer and once more at the end (60), with an epsilon of
1e-12; GELU in its exact form; biases everywhere::

    x = [cls; W_e patch] + P
    x = x + W_o attention(W_q norm(x), W_k norm(x), W_v norm(x))
    x = x + W_2 gelu(W_1 norm(x))
    logits = W_c norm(x)_0 + b

Source: transformers 5.23.0, models/vit; google-research/vision_transformer at c6de1e5,
`vit_jax/models_vit.py`, with GELU in its tanh form and an epsilon of 1e-6, and `checkpoint.py`,
which resizes linearly, corners on corners.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pe_numpy.absolute.learned import resize_matrix
from pe_numpy.models.entries import entry
from pe_numpy.models.page import Look, Params, Table, expect, sizes
from pe_numpy.transformer.attention import attention, merge_heads, split_heads
from pe_numpy.transformer.layers import feed_forward, layer_norm, linear

KIND = "pictures"
PREFIX = "vit."
HEAD = "classifier."


def settings(config: dict[str, Any]) -> Any:
    """Read the sizes; V is the number of labels."""
    expect("vit", config, hidden_act="gelu", qkv_bias=True)
    s = sizes(
        "vit",
        config,
        C=("num_channels", 3),
        D="hidden_size",
        F="intermediate_size",
        size="image_size",
        patch="patch_size",
        layers="num_hidden_layers",
        H="num_attention_heads",
        eps=("layer_norm_eps", 1e-12),
    )
    s.V = len(entry("vit", config, "id2label", "01"))  # two labels are not written down
    s.patch = np.broadcast_to(s.patch, 2).tolist()  # height, width
    s.grid = np.floor_divide(s.size, s.patch).tolist()  # rows, columns
    return s


def weights(s: Any) -> Table:
    """Names of the file, our places and shapes."""
    table = {
        "vit.embeddings.patch_embeddings.projection.weight": ("embedding", (s.D, s.C, *s.patch)),
        "vit.embeddings.patch_embeddings.projection.bias": ("b_embedding", (s.D,)),
        "vit.embeddings.cls_token": ("cls", (1, 1, s.D)),
        "vit.embeddings.position_embeddings": ("positions", (1, 1 + s.grid[0] * s.grid[1], s.D)),
        "vit.layernorm.weight": ("norm.gain", (s.D,)),
        "vit.layernorm.bias": ("norm.bias", (s.D,)),
        "classifier.weight": ("head.W.T", (s.D, s.V)),
        "classifier.bias": ("head.b", (s.V,)),
    }
    for n in range(s.layers):
        for name, gain, bias, shape in (
            ("layernorm_before", "norm_1.gain", "norm_1.bias", (s.D,)),
            ("attention.attention.query", "W_q.T", "b_q", (s.D, s.D)),
            ("attention.attention.key", "W_k.T", "b_k", (s.D, s.D)),
            ("attention.attention.value", "W_v.T", "b_v", (s.D, s.D)),
            ("attention.output.dense", "W_o.T", "b_o", (s.D, s.D)),
            ("layernorm_after", "norm_2.gain", "norm_2.bias", (s.D,)),
            ("intermediate.dense", "network.W_1.T", "network.b_1", (s.D, s.F)),
            ("output.dense", "network.W_2.T", "network.b_2", (s.F, s.D)),
        ):
            table[f"vit.encoder.layer.{n}.{name}.weight"] = (f"layers.{n}.{gain}", shape)
            table[f"vit.encoder.layer.{n}.{name}.bias"] = (f"layers.{n}.{bias}", shape[-1:])
    return table


def cut(pixels: np.ndarray, P: int, Q: int) -> np.ndarray:
    """Cut pictures (B, C, height, width) into whole patches (B, rows, columns, C P Q)."""
    B, C, height, width = pixels.shape
    rows, columns = height // P, width // Q
    x = pixels[..., : rows * P, : columns * Q].reshape(B, C, rows, P, columns, Q)
    return x.transpose(0, 2, 4, 1, 3, 5).reshape(B, rows, columns, C * P * Q)


def resized(table: np.ndarray, old: list[int], rows: int, columns: int) -> np.ndarray:
    """Resize the table (1 + N, D) of an old grid to another; its first row stays."""
    D = table.shape[-1]
    grid = np.tensordot(resize_matrix(old[0], rows, "cubic"), table[1:].reshape(*old, D), axes=1)
    grid = resize_matrix(old[1], columns, "cubic") @ grid  # (rows, columns, D)
    return np.concatenate([table[:1], grid.reshape(-1, D).astype(table.dtype)])


def hidden(params: Params, s: Any, pixels: np.ndarray, look: Look) -> np.ndarray:
    """What the layers and the last norm make of the first token and each patch, (B, L, D)."""
    x = cut(pixels, *s.patch)  # (B, rows, columns, C P Q)
    B, rows, columns, _ = x.shape
    x = linear(x, params["embedding"].reshape(s.D, -1).T, params["b_embedding"])
    first = np.broadcast_to(params["cls"], (B, 1, s.D))
    x = np.concatenate([first, x.reshape(B, -1, s.D)], axis=1)  # (B, 1 + rows columns, D)
    x = x + resized(params["positions"][0], s.grid, rows, columns)
    for n in range(s.layers):
        layer = params["layers"][str(n)]
        h = layer_norm(x, **layer["norm_1"], eps=s.eps)
        q = split_heads(linear(h, layer["W_q"], layer["b_q"]), s.H)  # (B, H, L, K)
        k = split_heads(linear(h, layer["W_k"], layer["b_k"]), s.H)
        v = split_heads(linear(h, layer["W_v"], layer["b_v"]), s.H)
        mixed, seen = attention(q, k, v)
        look(n, seen)
        x = x + linear(merge_heads(mixed), layer["W_o"], layer["b_o"])
        h = layer_norm(x, **layer["norm_2"], eps=s.eps)
        x = x + feed_forward(layer["network"], h, "gelu")
    return layer_norm(x, **params["norm"], eps=s.eps)


def logits(params: Params, s: Any, h: np.ndarray) -> np.ndarray:
    """Logits (B, V) of the labels."""
    return linear(h[:, 0], **params["head"])
