"""From configurations to RoPE: each type by its formula, both spellings, layers, what is refused.

`tests/test_golden.py` compares with what transformers makes of the same configurations.
"""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.rotary.nd import mrope_frequencies
from pe_numpy.rotary.rope import rope, rope_frequencies
from pe_numpy.rotary.scaling import (
    dynamic_ntk_scaling,
    linear_scaling,
    llama3_scaling,
    longrope_scaling,
    proportional_frequencies,
    yarn_attention_factor,
    yarn_scaling,
)

CASES = json.loads((Path(__file__).parent / "golden" / "rope_configs.json").read_text())
SMALL = {"head_dim": 8, "max_position_embeddings": 64, "rope_theta": 500.0}
LISTS = {"short_factor": [1, 1.5, 2, 2.5], "long_factor": [1, 2, 4, 8]}
THETA = rope_frequencies(8, 500)


def old(**scaling):
    return {**SMALL, "rope_scaling": scaling}


def new(**parameters):
    bare = {key: value for key, value in SMALL.items() if key != "rope_theta"}
    return {**bare, "rope_parameters": {"rope_theta": 500.0, **parameters}}


# ---- each type ----------------------------------------------------------------------------------

TYPES = [
    ({"type": "default"}, None, THETA, 1),
    ({"type": "linear", "factor": 4}, None, linear_scaling(THETA, 4), 1),
    ({"type": "dynamic", "factor": 2}, 64, THETA, 1),
    ({"type": "dynamic", "factor": 2}, 160, dynamic_ntk_scaling(8, 160, 64, 2, 500), 1),
    (
        {"type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "beta_fast": 2},
        None,
        *yarn_scaling(8, 4, 16, 500, beta_fast=2),
    ),
    (
        {"type": "yarn", "original_max_position_embeddings": 16, "truncate": False},
        None,
        *yarn_scaling(8, 4, 16, 500, truncate=False),
    ),
    (
        {"type": "longrope", **LISTS, "original_max_position_embeddings": 16},
        16,
        *longrope_scaling(8, 16, *LISTS.values(), 16, 4, 500),
    ),
    (
        {"type": "su", **LISTS, "original_max_position_embeddings": 16, "factor": 3},
        17,
        *longrope_scaling(8, 17, *LISTS.values(), 16, 3, 500),
    ),
    (
        {
            "type": "llama3",
            "factor": 8,
            "low_freq_factor": 1,
            "high_freq_factor": 4,
            "original_max_position_embeddings": 32,
        },
        None,
        llama3_scaling(THETA, 8, 32),
        1,
    ),
    (
        {"type": "proportional", "partial_rotary_factor": 0.5, "factor": 2},
        None,
        proportional_frequencies(8, 0.5, 500, 2),
        1,
    ),
]


@pytest.mark.parametrize(("parameters", "length", "frequencies", "factor"), TYPES)
def test_each_type_in_both_spellings_is_its_function(parameters, length, frequencies, factor):
    renamed = {"rope_type" if key == "type" else key: v for key, v in parameters.items()}
    for config in (old(**parameters), old(**renamed), new(**parameters), new(**renamed)):
        kept = copy.deepcopy(config)
        found = rope_from_config(config, length=length)
        assert config == kept
        assert_allclose(found.frequencies, frequencies, rtol=1e-14)
        assert_allclose(found.attention_factor, factor, rtol=1e-14)
        assert (found.layout, found.score_factor) == ("half", 1.0)
        assert found.frequencies.dtype == np.float64
        assert type(found.attention_factor) is float


def test_the_trained_length_and_the_factor_are_looked_for_where_they_stand():
    lists = {"type": "longrope", **LISTS}
    outside = {**old(**lists), "original_max_position_embeddings": 16}
    both = {**outside, "rope_scaling": {**lists, "original_max_position_embeddings": 2}}
    for config in (outside, both):  # the one outside goes before the one inside
        frequencies, factor = longrope_scaling(8, 10, *LISTS.values(), 16, 4, 500)
        assert_array_equal(rope_from_config(config, length=10).frequencies, frequencies)
        assert rope_from_config(config, length=10).attention_factor == factor
    alone = rope_from_config(old(type="yarn", factor=2))  # L0 is the longest length
    assert_array_equal(alone.frequencies, yarn_scaling(8, 2, 64, 500)[0])
    dynamic = old(type="dynamic", factor=2, original_max_position_embeddings=16)
    assert_array_equal(rope_from_config(dynamic, length=64).frequencies, THETA)


def test_a_static_type_does_not_look_at_the_length():
    for parameters in ({"type": "linear", "factor": 2}, {"type": "yarn", "factor": 2}):
        without = rope_from_config(old(**parameters)).frequencies
        assert_array_equal(without, rope_from_config(old(**parameters), length=10**6).frequencies)


def test_scales_of_deepseek():
    yarn = {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}
    for mscale, all_dim, printed in ((0.707, 0.707, "1.589626"), (1, 1, "1.873854")):
        scaling = {**yarn, "mscale": mscale, "mscale_all_dim": all_dim}
        config = {"qk_rope_head_dim": 64, "rope_theta": 1e4, "rope_scaling": scaling}
        found = rope_from_config(config)
        assert found.attention_factor == 1
        assert f"{found.score_factor:.6f}" == printed
        assert_array_equal(found.frequencies, yarn_scaling(64, 40, 4096)[0])
    unequal = {**yarn, "mscale": 1, "mscale_all_dim": 0.5}
    for config in (old(**unequal), {**old(**unequal), "qk_rope_head_dim": 8}):
        ratio = yarn_attention_factor(40) / yarn_attention_factor(40, 0.5)
        found = rope_from_config(config)
        assert_allclose(found.attention_factor, ratio, rtol=1e-14)
        second = yarn_attention_factor(40, 0.5) ** 2 if "qk_rope_head_dim" in config else 1
        assert found.score_factor == second
    assert rope_from_config(old(**yarn, mscale=2)).attention_factor == yarn_attention_factor(40)
    assert rope_from_config(old(**yarn, attention_factor=1.5)).attention_factor == 1.5
    given = {"attention_factor": 1.5, "mscale": 2, "mscale_all_dim": 1}
    assert rope_from_config(old(**yarn, **given)).attention_factor == 1.5


def test_gpt_oss_keeps_real_bounds():
    yarn = {"factor": 32, "original_max_position_embeddings": 4096}
    for truncate, printed in (
        (False, ["0.0317057", "0.00679496", "0.000129319"]),
        (True, ["0.0316208", "0.00701571", "0.000227948"]),
    ):
        scaling = {"rope_type": "yarn", **yarn, "truncate": truncate, "rope_theta": 150000.0}
        flat = {"model_type": "gpt_oss", "head_dim": 64, "rope_parameters": scaling}
        nested = {"full_attention": scaling, "sliding_attention": {"rope_theta": 9.0}}
        nested = {"head_dim": 64, "layer_types": ["full_attention"], "rope_parameters": nested}
        for config in (flat, nested):
            theta = rope_from_config(config).frequencies
            assert [f"{theta[n]:.6g}" for n in (9, 12, 17)] == printed


# ---- widths -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "d", "base"),
    [
        ({"hidden_size": 24, "num_attention_heads": 3}, 8, 500),
        ({"hidden_size": 24, "num_attention_heads": 3, "head_dim": 10}, 10, 500),
        ({"hidden_size": 24, "num_attention_heads": 3, "head_dim": None}, 8, 500),
        ({"head_dim": 16, "partial_rotary_factor": 0.25}, 4, 500),
        ({"head_dim": 80, "partial_rotary_factor": 0.4}, 32, 500),
        ({"head_dim": 16, "rotary_pct": 0.5, "model_type": "gpt_neox"}, 8, 500),
        ({"head_dim": 16, "model_type": "gpt_neox"}, 4, 500),
        ({"n_embd": 32, "n_head": 2, "rotary_dim": 4, "model_type": "gptj"}, 4, 500),
        ({"n_embd": 512, "n_head": 2, "rope_theta": None, "model_type": "gptj"}, 64, 10000),
        ({"head_dim": 8, "rope_theta": None, "rotary_emb_base": 77.0}, 8, 77),
        ({"head_dim": 8, "rope_theta": None, "model_type": "llama"}, 8, 10000),
        ({"text_config": {"head_dim": 6, "rope_theta": 99.0}}, 6, 99),
    ],
)
def test_width_and_base_are_found_by_their_names(keys, d, base):
    config = {"rope_theta": 500.0, **keys}
    assert_array_equal(rope_from_config(config).frequencies, rope_frequencies(d, base))


def test_proportional_turns_other_pairs_than_partial():
    partial = rope_from_config({**SMALL, "partial_rotary_factor": 0.5})
    whole = rope_from_config(old(type="proportional", partial_rotary_factor=0.5))
    x = np.arange(1.0, 9)[None]
    turned = [rope(x, [2], s.frequencies, s.layout)[0] for s in (partial, whole)]
    assert [int((t == x[0]).sum()) for t in turned] == [4, 4]
    assert_array_equal(np.flatnonzero(turned[0] == x[0]), [4, 5, 6, 7])
    assert_array_equal(np.flatnonzero(turned[1] == x[0]), [2, 3, 6, 7])


# ---- layers -------------------------------------------------------------------------------------


def bases(config, layers):
    """The second frequency to the power -K/2: the base; 0 without RoPE."""
    found = [rope_from_config(config, layer).frequencies for layer in range(layers)]
    return [0 if f is None else round(f[1] ** -len(f)) for f in found]


def test_gemma_3_stretches_its_global_layers_alone():
    scaling = {"rope_type": "linear", "factor": 8.0}
    config = {"model_type": "gemma3_text", "num_hidden_layers": 12, "rope_scaling": scaling}
    firsts = [rope_from_config(config, n).frequencies[0] for n in range(12)]
    assert firsts == [1, 1, 1, 1, 1, 1 / 8] * 2
    seconds = [rope_from_config(config, n).frequencies[1] for n in (4, 5)]
    assert [f"{x:.6f}" for x in seconds] == ["0.930572", "0.112211"]
    nested = {
        "model_type": "gemma3_text",
        "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
        "rope_parameters": {"full_attention": scaling, "sliding_attention": {}},
    }
    for n in (0, 5):
        found, expected = (rope_from_config(c, n).frequencies for c in (nested, config))
        assert_array_equal(found, expected)
    none = {**config, "rope_scaling": None}
    assert [rope_from_config(none, n).frequencies[0] for n in (4, 5)] == [1, 1]


def test_modernbert_has_a_global_layer_first_and_every_third():
    config = {"model_type": "modernbert", "head_dim": 8}
    assert bases(config, 7) == [160000, 10000, 10000, 160000, 10000, 10000, 160000]
    given = {**config, "layer_types": ["sliding_attention", "full_attention"]}
    assert bases(given, 2) == [10000, 160000]


def test_lists_of_layers_without_rope_hold_1_where_it_is_used():
    for model in ("llama4_text", "smollm3", "cohere2"):
        none = [b == 0 for b in bases({"model_type": model, "head_dim": 8}, 8)]
        assert none == [False, False, False, True] * 2, model
    listed = {**SMALL, "no_rope_layers": [1, 0, 1]}
    assert bases(listed, 3) == [500, 0, 500]
    exaone = {"model_type": "exaone4", "head_dim": 8}  # its windows, unless told, are of 4096
    assert bases(exaone, 4) == bases({**exaone, "sliding_window": 4}, 4) == [10000] * 3 + [0]
    assert bases({**exaone, "sliding_window": None}, 4) == [10000] * 4  # RoPE where nothing is hid
    empty = {"model_type": "smollm3", "head_dim": 8, "no_rope_layers": []}  # as if it were missing
    assert bases(empty, 4) == [2000000, 2000000, 2000000, 0]
    everywhere = {"model_type": "smollm3", "head_dim": 8, "no_rope_layers": [1, 1, 1, 1]}
    assert bases(everywhere, 4) == [2000000] * 4
    assert rope_from_config(listed, 1) == (None, 1.0, "half", 1.0)


def test_other_kinds_of_layers_have_no_rope():
    kinds = ["linear_attention", "full_attention", "conv"]
    config = {"model_type": "qwen3_next", "head_dim": 32, "layer_types": kinds}
    assert bases(config, 3) == [0, 10000, 0]
    nested = {"sliding_attention": {"rope_theta": 500.0}, "full_attention": None}
    config = {"head_dim": 8, "layer_types": list(nested), "rope_parameters": nested}
    assert bases(config, 2) == [500, 0]


def test_gemma_4_is_wider_in_its_global_layers():
    parameters = CASES["proportional"]["config"]["rope_parameters"]
    config = {
        "model_type": "gemma4_text",
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": parameters,
    }
    narrow, wide = (rope_from_config(config, n).frequencies for n in (0, 1))
    assert (len(narrow), len(wide)) == (128, 256)
    assert [f"{wide[n]:.6f}" for n in (1, 63, 64)] == ["0.947464", "0.033376", "0.000000"]


# ---- layout and axes ----------------------------------------------------------------------------


def test_layouts_of_known_types_and_of_others():
    for model in (
        "gptj",
        "cohere2",
        "llama4_text",
        "deepseek_v3",
        "glm",
        "glm4_moe_lite",
        "roformer",
    ):
        keys = {"rotary_dim": 8} if model == "gptj" else {}
        assert rope_from_config({**SMALL, **keys, "model_type": model}).layout == "interleaved"
    for model in ("llama", "gpt_neox", "gemma3_text", "one nobody knows", ""):
        assert rope_from_config({**SMALL, "model_type": model}).layout == "half"
    assert rope_from_config({**SMALL, "rope_interleave": True}).layout == "interleaved"
    v3 = {**SMALL, "model_type": "deepseek_v3", "rope_interleave": False}
    assert rope_from_config(v3).layout == "half"


def test_sections_deal_one_ladder_out_to_three_axes():
    config = {"head_dim": 16, "rope_theta": 1e4}
    contiguous = {**config, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}
    assert_allclose(
        rope_from_config(contiguous).frequencies, mrope_frequencies((2, 3, 3)), rtol=1e-15
    )
    scaling = {"type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    found = rope_from_config({**config, "rope_scaling": scaling}).frequencies
    assert_allclose(found, mrope_frequencies((4, 2, 2), interleaved=True), rtol=1e-15)
    angles = [5, 6, 8] @ found
    assert angles.round(4).tolist() == [5, 1.8974, 0.8, 0.1581, 0.06, 0.0253, 0.005, 0.0016]
    yarn = {"type": "yarn", "mrope_section": [2, 3, 3], "factor": 4}
    found = rope_from_config({**config, "max_position_embeddings": 64, "rope_scaling": yarn})
    assert_array_equal(found.frequencies.sum(axis=0), yarn_scaling(16, 4, 64)[0])
    assert ((found.frequencies > 0).sum(axis=0) == 1).all()
    for model, head, counts in (
        ("qwen2_vl", 128, [16, 24, 24]),
        ("qwen2_5_vl_text", 128, [16, 24, 24]),
        ("qwen3_vl_text", 128, [24, 20, 20]),
    ):
        found = rope_from_config({"model_type": model, "head_dim": head}).frequencies
        assert (found > 0).sum(axis=1).tolist() == counts


def test_axes_are_dealt_out_among_the_part_that_turns():
    """Qwen3.5 turns a quarter, axes interleaved, pairs half; GLM-4V a half, the other way round."""
    qwen = rope_from_config({"model_type": "qwen3_5_text"}, 3)
    assert qwen.layout == "half"
    expected = mrope_frequencies((11, 11, 10), interleaved=True)
    assert_allclose(qwen.frequencies, expected, rtol=1e-15)
    glm = {"model_type": "glm4v_text", "hidden_size": 4096, "num_attention_heads": 32}
    for config in ({**glm, "partial_rotary_factor": 0.5}, {**glm, "model_type": "glm4v_moe_text"}):
        found = rope_from_config(config)
        assert found.layout == ("interleaved" if config["model_type"] == "glm4v_text" else "half")
        assert_allclose(found.frequencies, mrope_frequencies((8, 12, 12)), rtol=1e-15)
    with pytest.raises(ValueError, match="must add up to the number of pairs, 64"):
        rope_from_config(glm)  # which would turn all 128


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        ("config.json", {}, "config must be a dictionary, as json.load gives it; got str"),
        (old(type="xl"), {}, "rope_type 'xl' is not known; there are default, linear, dynamic"),
        (old(type="axial"), {}, "rope_type 'axial' is not known"),
        (old(type="dynamic", factor=2, alpha=1000), {}, "rope_type 'dynamic' has no key 'alpha'"),
        (old(type="default", factor=2), {}, "rope_type 'default' has no key 'factor' here"),
        ({**SMALL, "model_type": "deepseek_v4"}, {}, "'deepseek_v4' is not known: it turns the la"),
        ({**SMALL, "model_type": "ernie4_5_vl_moe_text"}, {}, "is not known: its rows and columns"),
        (old(type="dynamic", factor=2), {}, "rope_type 'dynamic' depends on the length; got None"),
        (old(type="su", **LISTS), {}, "rope_type 'longrope' depends on the length; got None"),
        (old(type="dynamic", factor=2), {"length": 0}, "length must be above 0; got 0"),
        (old(type="linear"), {}, "rope_type 'linear' needs factor"),
        (old(type="llama3", factor=8), {}, "rope_type 'llama3' needs low_freq_factor"),
        (
            {"head_dim": 8, "rope_theta": 9.0, "rope_scaling": {"type": "yarn", "factor": 2}},
            {},
            "needs original_max_position_embeddings or max_position_embeddings",
        ),
        ({"rope_theta": 500.0}, {}, "head_dim is missing, or hidden_size and num_attention_heads"),
        ({"head_dim": 8}, {}, "rope_theta is missing, and what the model_type None takes for it"),
        ({"head_dim": 7, "rope_theta": 9.0}, {}, "head_dim must be even"),
        ({**SMALL, "partial_rotary_factor": 0.4}, {}, "components that turn must be even.*got 3"),
        (SMALL, {"layer": -1}, "layer must be at least 0; got -1"),
        ({**SMALL, "num_hidden_layers": 2}, {"layer": 2}, "below num_hidden_layers; got 2 and 2"),
        (
            {**SMALL, "layer_types": ["full_attention"]},
            {"layer": 1},
            "layer must be one of the 1 of layer_types; got 1",
        ),
        ({**SMALL, "no_rope_layers": [1, 0]}, {"layer": 2}, "one of the 2 of no_rope_layers; got"),
        (
            {
                "head_dim": 8,
                "layer_types": ["chunked_attention"],
                "rope_parameters": {"full_attention": {"rope_theta": 9.0}},
            },
            {},
            "there are no RoPE parameters for layer type 'chunked_attention'",
        ),
        (
            {**SMALL, "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 1]}},
            {},
            r"mrope_section must add up to the number of pairs, 4; got \[1, 1, 1\]",
        ),
    ],
)
def test_bad_input_is_named_with_the_rule(config, options, message):
    with pytest.raises(ValueError, match="rope_from_config: .*" + message):
        rope_from_config(config, **options)
