"""What the package holds: each public function with its place, its chapter and its source."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterator

import pe_numpy

# Each public function: the place at which position enters attention there, or what it does beside
# that; and the chapter that derives it and shows its code.
PLACES = {
    "1. the token vector": {
        20: "sinusoidal sinusoidal_shift wavelengths",
        25: "timing_signal sinusoidal_2d detr_sine fourier_features resize_matrix",
        21: "learned hierarchical",
        22: "recurrent floater",
        24: "complex_order complex_attention",
        23: "convolve",
        26: "laplacian_encoding",
    },
    "2. queries and keys": {
        40: "rope rope_frequencies rope_matrix rope_permutation rope_convert_weights",
        50: "linear_scaling ntk_scaling dynamic_ntk_scaling yarn_scaling yarn_attention_factor "
        "longrope_scaling llama3_scaling",
        42: "proportional_frequencies rope_from_config",
        44: "mla_scores",
        43: "rope_nd axial_frequencies mixed_frequencies mrope_frequencies",
        45: "xpos xpos_scale pope pope_frequencies",
        70: "rank2_rotation additive_lift",
    },
    "3. the score of a pair": {
        30: "relative_distance four_terms",
        31: "shaw_scores relative_key_query_scores nezha_table",
        32: "transformer_xl_scores relative_shift",
        33: "t5_bucket t5_bias tupe_scores",
        34: "deberta_scores deberta_bucket",
        35: "alibi_slopes alibi_bias",
        36: "kerple_log_bias kerple_power_bias sandwich_bias fire_bias",
        37: "forgetting_bias cope_bias",
        38: "offset_index offset_bias decomposed_scores log_cpb_coordinates",
        39: "retention gated_linear_attention delta_rule",
        52: "rotary_distance_scores rerope_distance self_extend_distance chunk_distance "
        "streaming_distance",
    },
    "4. the weighted sum": {
        31: "shaw_values",
        45: "rotary_values",
    },
    "the positions themselves": {
        26: "random_positions digit_positions",
        43: "patch_coordinates mrope_positions",
        66: "pack tree_positions zigzag",
    },
    "and around them: attention": {
        10: "attention attend softmax log_softmax causal_mask padding_mask split_heads merge_heads",
        12: "attention_blockwise window_mask chunk_mask",
        64: "split_fused",
        66: "document_mask tree_mask partial_attention merge_attention",
    },
    "and beyond the trained length": {
        51: "to_digits from_digits log_n_scale attention_temperature attention_entropy",
    },
    "the Transformer": {
        62: "Model Sizes encode decode embed_tokens dropout",
        60: "init_params multi_head_attention linear feed_forward layer_norm rms_norm relu gelu "
        "silu",
        72: "Context",
        63: "Cache greedy sample beam_search speculative cache_properties",
    },
    "released models": {
        64: "load_model load_weights",
    },
    "its training": {
        61: "value_and_grad adamw adamw_state sgd clip_gradients",
        62: "cross_entropy train warmup_schedule cosine_schedule save load",
    },
    "what kind of encoding a function is": {
        70: "properties score_function",
    },
    "from one code to another": {
        65: "convert_layout relative_gather flip_table alibi_key_bias convert_mask join_fused",
    },
    "homework": {
        73: "check",
    },
}


def chapter_of(name: str) -> int:
    """The chapter of a public function."""
    chapters = (chapter for place in PLACES.values() for chapter in place.items())
    return next(chapter for chapter, names in chapters if name in names.split())


def functions_of(chapter: int) -> list[str]:
    """The public functions that a chapter derives."""
    return " ".join(place.get(chapter, "") for place in PLACES.values()).split()


def places() -> Iterator[tuple[str, list[str]]]:
    """Each place at which position enters, and what stands around them, with its functions."""
    for place, chapters in PLACES.items():
        yield place, " ".join(chapters.values()).split()


def summary_of(name: str) -> str:
    """The first sentence of a function's docstring, which names its equation."""
    doc = inspect.getdoc(getattr(pe_numpy, name)) or ""
    return " ".join(doc.partition("\n\n")[0].split()).rstrip(".")


def source_of(name: str) -> str:
    """The paper, section and equation that a function's docstring gives."""
    doc = " ".join((inspect.getdoc(getattr(pe_numpy, name)) or "").split())
    found = re.search(r"Source: (.*?)(?:\.(?= [A-Z]| -|$)|; |: )", doc)
    assert found is not None, name
    return found[1]


def known_name(name: str) -> str:
    """Return a public name as it is; refuse any other, and suggest the nearest."""
    if name in pe_numpy.__all__:
        return name
    near = difflib.get_close_matches(name.lower(), pe_numpy.__all__, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "see `python -m pe_numpy list`"
    raise ValueError(f"there is no {name!r} in pe_numpy; {hint}")
