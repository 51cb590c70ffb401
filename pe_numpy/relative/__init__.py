"""Position in the score of a pair, and in the weighted sum: distances, tables and biases."""

from pe_numpy.relative.alibi import alibi_bias, alibi_slopes
from pe_numpy.relative.cope import cope_bias
from pe_numpy.relative.deberta import deberta_bucket, deberta_scores
from pe_numpy.relative.distance import relative_distance
from pe_numpy.relative.expansion import four_terms
from pe_numpy.relative.fire import fire_bias
from pe_numpy.relative.forgetting import forgetting_bias
from pe_numpy.relative.kerple import kerple_log_bias, kerple_power_bias
from pe_numpy.relative.recurrence import delta_rule, gated_linear_attention, retention
from pe_numpy.relative.sandwich import sandwich_bias
from pe_numpy.relative.shaw import nezha_table, relative_key_query_scores, shaw_scores, shaw_values
from pe_numpy.relative.t5 import t5_bias, t5_bucket
from pe_numpy.relative.transformer_xl import relative_shift, transformer_xl_scores
from pe_numpy.relative.tupe import tupe_scores
from pe_numpy.relative.windows import (
    decomposed_scores,
    log_cpb_coordinates,
    offset_bias,
    offset_index,
)

__all__ = [
    "alibi_bias",
    "alibi_slopes",
    "cope_bias",
    "deberta_bucket",
    "deberta_scores",
    "decomposed_scores",
    "delta_rule",
    "fire_bias",
    "forgetting_bias",
    "four_terms",
    "gated_linear_attention",
    "kerple_log_bias",
    "kerple_power_bias",
    "log_cpb_coordinates",
    "nezha_table",
    "offset_bias",
    "offset_index",
    "relative_distance",
    "relative_key_query_scores",
    "relative_shift",
    "retention",
    "sandwich_bias",
    "shaw_scores",
    "shaw_values",
    "t5_bias",
    "t5_bucket",
    "transformer_xl_scores",
    "tupe_scores",
]
