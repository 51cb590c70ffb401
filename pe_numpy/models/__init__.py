"""Released models, a page each, and how other libraries lay out what they store."""

from pe_numpy.models.load import load_model
from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.models.rosetta import (
    alibi_key_bias,
    convert_layout,
    convert_mask,
    flip_table,
    join_fused,
    relative_gather,
)
from pe_numpy.models.weights import load_weights

__all__ = [
    "alibi_key_bias",
    "convert_layout",
    "convert_mask",
    "flip_table",
    "join_fused",
    "load_model",
    "load_weights",
    "relative_gather",
    "rope_from_config",
]
