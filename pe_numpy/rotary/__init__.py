"""Position in queries and keys: RoPE, its scalings, its relatives."""

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

__all__ = [
    "additive_lift",
    "axial_frequencies",
    "chunk_distance",
    "dynamic_ntk_scaling",
    "linear_scaling",
    "llama3_scaling",
    "longrope_scaling",
    "mixed_frequencies",
    "mla_scores",
    "mrope_frequencies",
    "mrope_positions",
    "ntk_scaling",
    "patch_coordinates",
    "pope",
    "pope_frequencies",
    "proportional_frequencies",
    "rank2_rotation",
    "rerope_distance",
    "rope",
    "rope_convert_weights",
    "rope_frequencies",
    "rope_matrix",
    "rope_nd",
    "rope_permutation",
    "rotary_distance_scores",
    "rotary_values",
    "self_extend_distance",
    "streaming_distance",
    "xpos",
    "xpos_scale",
    "yarn_attention_factor",
    "yarn_scaling",
]
