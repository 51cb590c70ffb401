"""What an entry of config.json may hold: checked before anything is made of it.

Convention: a configuration is a dictionary, as `json.load` gives it; null counts as missing. A key
means the same on every page. The upper bounds, above all that the pages' models have, keep a wrong
number from costing time or memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

LARGEST, PARTS = 2**24, 1000  # of a size; of layers, and of experts in one


def _whole(least: int, most: int = LARGEST) -> Callable[[Any], bool]:
    wholes = int, np.integer
    return lambda x: type(x) is not bool and isinstance(x, wholes) and bool(least <= x <= most)


def _real(x: Any) -> bool:
    reals: Any = int, float, np.integer, np.floating
    return type(x) is not bool and isinstance(x, reals) and bool(abs(x) <= sys.float_info.max)


def _all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda x: isinstance(x, list | tuple) and all(fits(each) for each in x)


def _word(x: Any) -> bool:
    return isinstance(x, str)


# Rule, test, the keys that it holds for; all others are sizes.
SIZE = f"a whole number from 1 to {LARGEST}", _whole(1)
RULES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    (f"a whole number from 0 to {PARTS}", _whole(0, PARTS), "num_hidden_layers n_layer n_layers "
     "num_layers num_decoder_layers encoder_layers decoder_layers first_k_dense_replace "
     "conv_kernel_size"),
    (f"a whole number from 1 to {PARTS}", _whole(1, PARTS), "n_routed_experts n_shared_experts "
     "num_experts_per_tok n_group topk_group expansion_ratio num_channels"),
    (f"a whole number from -1 to {LARGEST}", _whole(-1), "max_relative_positions"),
    (f"a whole number from 0 to {LARGEST}", _whole(0), "decoder_start_token_id "
     "no_rope_layer_interval"),
    ("true or false", lambda x: isinstance(x, bool), "tie_word_embeddings scale_decoder_outputs "
     "use_parallel_residual rotary_value truncate rope_interleave mrope_interleaved"),
    ("a number above 0, at most 1", lambda x: _real(x) and 0 < x <= 1, "rms_norm_eps "
     "layer_norm_eps layer_norm_epsilon partial_rotary_factor rotary_pct"),
    ("a number above 0", lambda x: _real(x) and x > 0, "rope_theta rotary_emb_base "
     "rope_local_base_freq local_rope_theta global_rope_theta factor attention_factor beta_fast "
     "beta_slow low_freq_factor high_freq_factor query_pre_attn_scalar attn_logit_softcapping "
     "final_logit_softcapping routed_scaling_factor"),
    ("a number from 0 on", lambda x: _real(x) and x >= 0, "mscale mscale_all_dim"),
    ("a list of numbers above 0", _all(lambda x: _real(x) and x > 0), "short_factor long_factor"),
    ("a list of whole numbers", _all(_whole(0)), "mrope_section no_rope_layers"),
    ("a list of words", _all(_word), "layer_types"),
    ("a word", _word, "model_type rope_type type"),
    ("a word or a list of them", lambda x: _word(x) or _all(_word)(x), "pos_att_type"),
    (f"{SIZE[0]}, or a list of two", lambda x: _whole(1)(x) or (_all(_whole(1))(x) and len(x) == 2),
     "image_size patch_size"),
    ("a token, or a list of tokens", lambda x: _whole(0)(x) or _all(_whole(0))(x), "eos_token_id"),
    ("an object", lambda x: isinstance(x, Mapping), "text_config attn_config id2label "
     "rope_scaling rope_parameters"),
)  # fmt: skip
HOLDS = {key: (rule, fits) for rule, fits, keys in RULES for key in keys.split()}


def entry(function: str, config: Mapping[str, Any], key: str, default: Any = None) -> Any:
    """Read one entry, or `default` where it is missing or null."""
    value = config.get(key)
    if value is None:
        return default
    rule, fits = HOLDS.get(key, SIZE)
    if not fits(value):
        raise ValueError(f"{function}: {key} must be {rule}; got {value!r:.80} in config.json")
    return value
