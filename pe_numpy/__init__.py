"""pe_numpy: a textbook that runs, on positional encodings and the Transformer in pure NumPy.

Every public function, by the place at which position enters attention:

1. the token vector
       sinusoidal, sinusoidal_shift, wavelengths, timing_signal, sinusoidal_2d, detr_sine,
       fourier_features, learned, hierarchical, resize_matrix, recurrent, floater,
       complex_order, complex_attention, convolve, laplacian_encoding
2. queries and keys
       rope, rope_frequencies, rope_matrix, rope_permutation, rope_convert_weights,
       linear_scaling, ntk_scaling, dynamic_ntk_scaling, yarn_scaling, yarn_attention_factor,
       longrope_scaling, llama3_scaling, proportional_frequencies, rope_from_config,
       mla_scores,
       rope_nd, axial_frequencies, mixed_frequencies, mrope_frequencies,
       xpos, xpos_scale, pope, pope_frequencies, rank2_rotation, additive_lift
3. the score of a pair
       relative_distance, four_terms, shaw_scores, relative_key_query_scores, nezha_table,
       transformer_xl_scores, relative_shift,
       t5_bucket, t5_bias, tupe_scores, deberta_scores, deberta_bucket, alibi_slopes, alibi_bias,
       kerple_log_bias, kerple_power_bias, sandwich_bias, fire_bias,
       forgetting_bias, cope_bias,
       offset_index, offset_bias, decomposed_scores, log_cpb_coordinates,
       rotary_distance_scores, rerope_distance, self_extend_distance, chunk_distance,
       streaming_distance
4. the weighted sum
       shaw_values, rotary_values
the positions themselves
       random_positions, digit_positions, patch_coordinates, mrope_positions
and around them: attention
       attention, attend, attention_blockwise, softmax, log_softmax,
       causal_mask, window_mask, chunk_mask, padding_mask, split_heads, merge_heads, split_fused
and beyond the trained length
       to_digits, from_digits, log_n_scale, attention_temperature, attention_entropy
the Transformer
       Model, Sizes, init_params, encode, decode, Context, Cache, greedy, sample, beam_search,
       speculative, cache_properties,
       multi_head_attention, linear, feed_forward, embed_tokens, dropout, layer_norm, rms_norm,
       relu, gelu, silu
released models
       load_model, load_weights
its training
       value_and_grad, cross_entropy, train, adamw, adamw_state, sgd, clip_gradients,
       warmup_schedule, cosine_schedule, save, load
what kind of encoding a function is
       properties, score_function
from one code to another
       convert_layout, relative_gather, flip_table, alibi_key_bias, convert_mask, join_fused
homework
       check

The axis letters of all shapes: B batch, H heads, L queries, S keys, D model width (d_model),
K width of one head (d_k), F feed-forward width, V vocabulary, N rows of a table. Distances are
query minus key position, so the past is positive. Masks are boolean, True = may attend. Positions
are arrays, never lengths. A function of data keeps the dtype of its data; a function of positions
alone gives float64.
"""

from typing import TYPE_CHECKING, Any

from pe_numpy import startup  # noqa: F401  (first: it looks after the import path)
from pe_numpy.absolute.complex_order import complex_attention, complex_order
from pe_numpy.absolute.convolution import convolve
from pe_numpy.absolute.fourier import fourier_features
from pe_numpy.absolute.grid import detr_sine, sinusoidal_2d
from pe_numpy.absolute.laplacian import laplacian_encoding
from pe_numpy.absolute.learned import hierarchical, learned, resize_matrix
from pe_numpy.absolute.positions import digit_positions, random_positions
from pe_numpy.absolute.recurrent import floater, recurrent
from pe_numpy.absolute.sinusoidal import (
    sinusoidal,
    sinusoidal_shift,
    timing_signal,
    wavelengths,
)
from pe_numpy.detector import properties
from pe_numpy.extrapolation import (
    attention_entropy,
    attention_temperature,
    from_digits,
    log_n_scale,
    to_digits,
)
from pe_numpy.models.load import load_model
from pe_numpy.models.weights import load_weights
from pe_numpy.relative.alibi import alibi_bias, alibi_slopes
from pe_numpy.relative.cope import cope_bias
from pe_numpy.relative.deberta import deberta_bucket, deberta_scores
from pe_numpy.relative.distance import relative_distance
from pe_numpy.relative.expansion import four_terms
from pe_numpy.relative.fire import fire_bias
from pe_numpy.relative.forgetting import forgetting_bias
from pe_numpy.relative.kerple import kerple_log_bias, kerple_power_bias
from pe_numpy.relative.sandwich import sandwich_bias
from pe_numpy.relative.shaw import (
    nezha_table,
    relative_key_query_scores,
    shaw_scores,
    shaw_values,
)
from pe_numpy.relative.t5 import t5_bias, t5_bucket
from pe_numpy.relative.transformer_xl import relative_shift, transformer_xl_scores
from pe_numpy.relative.tupe import tupe_scores
from pe_numpy.relative.windows import (
    decomposed_scores,
    log_cpb_coordinates,
    offset_bias,
    offset_index,
)
from pe_numpy.rosetta import (
    alibi_key_bias,
    convert_layout,
    convert_mask,
    flip_table,
    join_fused,
    relative_gather,
)
from pe_numpy.rotary.config import rope_from_config
from pe_numpy.rotary.grape import additive_lift, rank2_rotation
from pe_numpy.rotary.latent import mla_scores
from pe_numpy.rotary.nd import (
    axial_frequencies,
    mixed_frequencies,
    mrope_frequencies,
    mrope_positions,
    patch_coordinates,
    rope_nd,
)
from pe_numpy.rotary.new_places import (
    chunk_distance,
    rerope_distance,
    rotary_distance_scores,
    self_extend_distance,
    streaming_distance,
)
from pe_numpy.rotary.pope import pope, pope_frequencies
from pe_numpy.rotary.rope import (
    rope,
    rope_convert_weights,
    rope_frequencies,
    rope_matrix,
    rope_permutation,
)
from pe_numpy.rotary.scaling import (
    dynamic_ntk_scaling,
    linear_scaling,
    llama3_scaling,
    longrope_scaling,
    ntk_scaling,
    proportional_frequencies,
    yarn_attention_factor,
    yarn_scaling,
)
from pe_numpy.rotary.values import rotary_values
from pe_numpy.rotary.xpos import xpos, xpos_scale
from pe_numpy.schemes import score_function
from pe_numpy.training.autodiff import value_and_grad
from pe_numpy.training.checkpoint import load, save
from pe_numpy.training.loop import train
from pe_numpy.training.loss import cross_entropy
from pe_numpy.training.optimiser import (
    adamw,
    adamw_state,
    clip_gradients,
    cosine_schedule,
    sgd,
    warmup_schedule,
)
from pe_numpy.transformer.attention import (
    attend,
    attention,
    attention_blockwise,
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
from pe_numpy.transformer.caching import cache_properties
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
from pe_numpy.transformer.model import Model, decode, encode, multi_head_attention

__version__ = "0.2.0"

if TYPE_CHECKING:
    from pe_numpy.homework.registry import check


def __getattr__(name: str) -> Any:
    """Load the homework when somebody asks for `check`, and not before."""
    if name == "check":
        from pe_numpy.homework.registry import check

        return check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Cache",
    "Context",
    "Model",
    "Sizes",
    "adamw",
    "adamw_state",
    "additive_lift",
    "alibi_bias",
    "alibi_key_bias",
    "alibi_slopes",
    "attend",
    "attention",
    "attention_blockwise",
    "attention_entropy",
    "attention_temperature",
    "axial_frequencies",
    "beam_search",
    "cache_properties",
    "causal_mask",
    "check",
    "chunk_distance",
    "chunk_mask",
    "clip_gradients",
    "complex_attention",
    "complex_order",
    "convert_layout",
    "convert_mask",
    "convolve",
    "cope_bias",
    "cosine_schedule",
    "cross_entropy",
    "deberta_bucket",
    "deberta_scores",
    "decode",
    "decomposed_scores",
    "detr_sine",
    "digit_positions",
    "dropout",
    "dynamic_ntk_scaling",
    "embed_tokens",
    "encode",
    "feed_forward",
    "fire_bias",
    "flip_table",
    "floater",
    "forgetting_bias",
    "four_terms",
    "fourier_features",
    "from_digits",
    "gelu",
    "greedy",
    "hierarchical",
    "init_params",
    "join_fused",
    "kerple_log_bias",
    "kerple_power_bias",
    "laplacian_encoding",
    "layer_norm",
    "learned",
    "linear",
    "linear_scaling",
    "llama3_scaling",
    "load",
    "load_model",
    "load_weights",
    "log_cpb_coordinates",
    "log_n_scale",
    "log_softmax",
    "longrope_scaling",
    "merge_heads",
    "mixed_frequencies",
    "mla_scores",
    "mrope_frequencies",
    "mrope_positions",
    "multi_head_attention",
    "nezha_table",
    "ntk_scaling",
    "offset_bias",
    "offset_index",
    "padding_mask",
    "patch_coordinates",
    "pope",
    "pope_frequencies",
    "properties",
    "proportional_frequencies",
    "random_positions",
    "rank2_rotation",
    "recurrent",
    "relative_distance",
    "relative_gather",
    "relative_key_query_scores",
    "relative_shift",
    "relu",
    "rerope_distance",
    "resize_matrix",
    "rms_norm",
    "rope",
    "rope_convert_weights",
    "rope_frequencies",
    "rope_from_config",
    "rope_matrix",
    "rope_nd",
    "rope_permutation",
    "rotary_distance_scores",
    "rotary_values",
    "sample",
    "sandwich_bias",
    "save",
    "score_function",
    "self_extend_distance",
    "sgd",
    "shaw_scores",
    "shaw_values",
    "silu",
    "sinusoidal",
    "sinusoidal_2d",
    "sinusoidal_shift",
    "softmax",
    "speculative",
    "split_fused",
    "split_heads",
    "streaming_distance",
    "t5_bias",
    "t5_bucket",
    "timing_signal",
    "to_digits",
    "train",
    "transformer_xl_scores",
    "tupe_scores",
    "value_and_grad",
    "warmup_schedule",
    "wavelengths",
    "window_mask",
    "xpos",
    "xpos_scale",
    "yarn_attention_factor",
    "yarn_scaling",
]
