"""Attention and the Transformer: layers, model, cache, generation; first read `original.py`."""

from pe_numpy.transformer.attention import (
    attend,
    attention,
    causal_mask,
    chunk_mask,
    log_softmax,
    merge_heads,
    padding_mask,
    softmax,
    split_fused,
    split_heads,
    window_mask,
)
from pe_numpy.transformer.blockwise import attention_blockwise
from pe_numpy.transformer.context import Cache, Context
from pe_numpy.transformer.generate import beam_search, greedy, sample, speculative
from pe_numpy.transformer.init import Sizes, init_params
from pe_numpy.transformer.layers import (
    dropout,
    embed_tokens,
    feed_forward,
    gelu,
    layer_norm,
    linear,
    relu,
    rms_norm,
    silu,
)
from pe_numpy.transformer.length import (
    attention_entropy,
    attention_temperature,
    from_digits,
    log_n_scale,
    to_digits,
)
from pe_numpy.transformer.model import Model, decode, encode, multi_head_attention

__all__ = [
    "Cache",
    "Context",
    "Model",
    "Sizes",
    "attend",
    "attention",
    "attention_blockwise",
    "attention_entropy",
    "attention_temperature",
    "beam_search",
    "causal_mask",
    "chunk_mask",
    "decode",
    "dropout",
    "embed_tokens",
    "encode",
    "feed_forward",
    "from_digits",
    "gelu",
    "greedy",
    "init_params",
    "layer_norm",
    "linear",
    "log_n_scale",
    "log_softmax",
    "merge_heads",
    "multi_head_attention",
    "padding_mask",
    "relu",
    "rms_norm",
    "sample",
    "silu",
    "softmax",
    "speculative",
    "split_fused",
    "split_heads",
    "to_digits",
    "window_mask",
]
