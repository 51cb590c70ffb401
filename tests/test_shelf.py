"""Every page of the shelf against its golden folder, with and without a cache; what it refuses."""

import functools
import importlib
import json
import math
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import save_file

from pe_numpy import greedy, load_model, load_weights
from pe_numpy.models import deepseek, gemma2, gemma3, llama, page, phi3
from pe_numpy.models.cache import Cache
from pe_numpy.models.load import PAGES
from pe_numpy.models.page import changed

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("golden/models/*/config.json"))
NEAR, PADDED = 1e-5, 5e-5  # of the largest logit; the golden forward is in float64 where it can be


@functools.cache
def golden(name):
    with np.load(Path(__file__).parent / "golden/models" / name / "golden.npz") as file:
        return {key: file[key] for key in file.files if key != "provenance"}


@functools.cache
def model(name):
    return load_model(Path(__file__).parent / "golden/models" / name, np.float64)


def names(kind):
    found = []
    for folder in FOLDERS:
        page = PAGES[json.loads((folder / "config.json").read_text())["model_type"]]
        if importlib.import_module(f"pe_numpy.models.{page}").KIND == kind:
            found.append(folder.name)
    return found


def assert_near(ours, theirs, share=NEAR):
    assert_allclose(ours, theirs, rtol=0, atol=share * np.abs(theirs).max())


# ---- decoders -----------------------------------------------------------------------------------


decoders = pytest.mark.parametrize("name", names("decoder"))


@decoders
def test_logits_are_those_of_transformers(name):
    g = golden(name)
    assert_near(model(name).logits(g["tokens"]), g["logits"])


@decoders
def test_logits_beside_padding_on_the_left_are_those_of_transformers(name):
    g = golden(name)
    if "padded_logits" in g:
        logits = model(name).logits(g["prompt"], g["real"])
        assert_near(logits[g["real"]], g["padded_logits"][g["real"]], PADDED)


@decoders
def test_a_cache_changes_nothing(name):
    g, m = golden(name), model(name)
    whole = m.logits(g["tokens"])
    cache = m.cache(2, 9)
    parts = [m.logits(g["tokens"][:, a:b], cache=cache) for a, b in ((0, 4), (4, 5), (5, 9))]
    assert_allclose(np.concatenate(parts, axis=1), whole, rtol=0, atol=1e-10)


@decoders
def test_a_cache_with_padding_changes_nothing(name):
    g, m = golden(name), model(name)
    tokens = np.concatenate([g["prompt"], g["written"]], axis=1)[:, :12]
    real = np.concatenate([g["real"], np.ones_like(g["written"], bool)], axis=1)[:, :12]
    whole = m.logits(tokens, real)
    cache = m.cache(len(tokens), 12)
    parts = [m.logits(tokens[:, a:b], real[:, a:b], cache) for a, b in ((0, 5), (5, 6), (6, 12))]
    assert_allclose(np.concatenate(parts, axis=1)[real], whole[real], rtol=0, atol=1e-10)


@decoders
def test_twenty_greedy_tokens_are_those_of_transformers(name):
    g, m = golden(name), model(name)
    assert len(np.unique(g["written"])) > 4
    for cached in (True, False):
        written = greedy(m.parameters, m, g["prompt"], 20, real=g["real"], cached=cached)
        assert_array_equal(written, g["written"])


@decoders
def test_float32_stays_float32_and_the_file_s_dtype_is_the_default(name):
    m = load_model(Path(__file__).parent / "golden/models" / name)
    logits = m.logits(golden(name)["tokens"])
    assert m.dtype == logits.dtype == np.float32
    assert_near(logits, golden(name)["logits"], 1e-4)


@decoders
def test_without_positions_places_mean_nothing(name):
    g, bare = golden(name), model(name).without_positions()
    logits = bare.logits(g["tokens"])
    assert np.abs(logits - g["logits"]).max() > 0.01
    moved = bare.replace(places=lambda positions: positions // 2)
    assert_allclose(moved.logits(g["tokens"]), logits, rtol=0, atol=1e-12)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_tensor_is_used_and_each_parameter_filled(folder, tmp_path):
    from safetensors.numpy import save_file

    shutil.copy(folder / "config.json", tmp_path)
    tensors = dict(load_weights(folder))
    save_file({**tensors, "stray.weight": np.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"1 tensors: .*stray\.weight"):
        load_model(tmp_path)
    page = importlib.import_module(
        f"pe_numpy.models.{PAGES[model(folder.name).config['model_type']]}"
    )
    spare = "|".join([*map(re.escape, getattr(page, "MAY_LACK", ())), getattr(page, "IGNORED", "")])
    needed = next(key for key in reversed(tensors) if not re.fullmatch(spare, key))
    x = tensors.pop(needed)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="they lack 1 tensors"):
        load_model(tmp_path)
    save_file({**tensors, needed: np.zeros((*x.shape, 3), x.dtype)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="must have the shape"):
        load_model(tmp_path)


# ---- deepseek -----------------------------------------------------------------------------------


def router(**sizes):
    return SimpleNamespace(**{"groups": 1, "groups_used": 1, "used": 2, "factor": 2.5, **sizes})


def test_deepseek_s_bias_chooses_experts_and_does_not_weigh_them():
    w = deepseek.route(np.array([2, 1, 0.5, -1]), np.array([0, 0, 0.3, 1.2]), router(v3=True))
    assert_allclose(w, [0, 0, 1.7457, 0.7543], rtol=0, atol=1e-4)  # of .6225 and .2689


def test_a_group_of_deepseek_s_experts_is_as_good_as_its_best_or_as_its_best_two():
    p = np.array([0.30, 0.02, 0.08, 0.22, 0.18, 0.20])
    v2 = deepseek.route(np.log(p), None, router(groups=2, v3=False))
    assert_allclose(v2, [0.75, 0, 0.2, 0, 0, 0], rtol=0, atol=1e-12)
    v3 = deepseek.route(np.log(p / (1 - p)), np.zeros(6), router(groups=2, v3=True))
    assert_allclose(v3, 2.5 / 0.42 * np.array([0, 0, 0, 0.22, 0, 0.20]), rtol=0, atol=1e-12)


def test_deepseek_s_router_stays_finite_where_no_expert_is_any_good():
    w = deepseek.route(np.array([-5000.0, 5000, -6000, -7000]), np.zeros(4), router(v3=True))
    assert_allclose(w, [0, 2.5, 0, 0], rtol=0, atol=0)
    worst = deepseek.route(np.full(4, -5000.0), np.zeros(4), router(v3=True))
    assert_allclose(worst, np.zeros(4), rtol=0, atol=0)


def test_deepseek_s_router_asks_as_many_experts_as_it_should_where_scores_are_equal():
    assert np.count_nonzero(deepseek.route(np.ones(6), None, router(v3=False))) == 2


def test_deepseek_s_cache_holds_one_latent_vector_and_one_turned_key_a_token():
    m, held = model("deepseek_v3"), []

    class Watched(Cache):
        def extend(self, layer, *newest):
            held.append([x.shape for x in newest])
            return super().extend(layer, *newest)

    m.logits(golden("deepseek_v3")["tokens"], cache=Watched(2, 9))
    assert held == [[(2, 9, 8), (2, 9, 6)]] * 2  # r and d_r, not two heads of 4 + 6 and 5


def test_deepseek_v3_s_layer_61_is_left_out(tmp_path):
    folder = FOLDERS[0].parent / "deepseek_v3"
    shutil.copy(folder / "config.json", tmp_path)
    more = {"model.layers.61.eh_proj.weight": np.ones((14, 28), np.float32)}
    save_file({**load_weights(folder), **more}, tmp_path / "model.safetensors")
    tokens = golden("deepseek_v3")["tokens"]
    assert_array_equal(load_model(tmp_path).logits(tokens), load_model(folder).logits(tokens))


def test_deepseek_in_the_spelling_of_its_released_files():
    folder = FOLDERS[0].parent / "deepseek_lite"
    yarn = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 200, "mscale": 0.7,
            "mscale_all_dim": 0.7, "beta_fast": 32, "beta_slow": 1}  # fmt: skip
    released = {"rope_parameters": None, "rope_scaling": yarn, "rope_theta": 100, "ep_size": 1,
                "scoring_func": "softmax", "moe_layer_freq": 1}  # fmt: skip
    m = load_model(folder, np.float64, released)
    tokens = golden("deepseek_lite")["tokens"]
    assert_array_equal(m.logits(tokens), model("deepseek_lite").logits(tokens))


@pytest.mark.parametrize(
    "name, option",
    [
        ("deepseek_v3", {"quantization_config": {"quant_method": "fp8"}}),
        ("deepseek_v3", {"scoring_func": "softmax"}),
        ("deepseek_v3", {"norm_topk_prob": False}),
        ("deepseek_v3", {"topk_method": "greedy"}),
        ("deepseek_v2", {"scoring_func": "sigmoid"}),
        ("deepseek_v2", {"norm_topk_prob": True}),
        ("deepseek_v2", {"topk_method": "noaux_tc"}),
        ("deepseek_v2", {"moe_layer_freq": 2}),
        ("deepseek_v2", {"attention_bias": True}),
        ("deepseek_v2", {"mlp_bias": True}),
        ("deepseek_v2", {"hidden_act": "gelu"}),
    ],
)
def test_deepseek_refuses_what_the_page_does_not_do(name, option):
    with pytest.raises(ValueError, match=f"deepseek: {next(iter(option))} must be"):
        load_model(FOLDERS[0].parent / name, changes=option)


# ---- gemma --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "width, factor",
    [(640, 25.25), (1152, 34), (2304, 48), (2560, 50.5), (3072, 55.5), (3584, 59.75), (5376, 73.5)],
)
def test_gemma_s_embedding_factor_has_the_bits_of_bfloat16(width, factor):
    for key in ("dtype", "torch_dtype"):
        assert page.rounded("gemma", {key: "bfloat16"}, math.sqrt(width)) == factor


def test_gemma_s_embedding_factor_has_the_bits_of_the_file_s_dtype():
    exact = math.sqrt(640)
    for dtype in (np.float16, np.float32):
        ours = page.rounded("gemma", {"dtype": np.dtype(dtype).name}, exact)
        assert ours == dtype(exact) != exact
    for config in ({}, {"dtype": "int8"}):
        with pytest.raises(ValueError, match="gemma: dtype must be bfloat16, float16 or float32"):
            page.rounded("gemma", config, exact)


def test_gemma_2_s_caps():
    assert_allclose(gemma2.soft_cap(np.array([60.0]), 50), 41.68273, rtol=0, atol=1e-5)
    assert_allclose(gemma2.soft_cap(np.array([-45.0, 0]), 30), [-27.15445, 0], rtol=0, atol=1e-5)


def test_gemma_2_has_a_window_on_each_second_layer_and_gemma_3_on_five_of_six():
    second, third = ({"num_hidden_layers": n, "sliding_window": 4} for n in (4, 13))
    assert page.windows("gemma2", second, 2) == [4, None, 4, None]
    assert page.windows("gemma3", third, 6) == [4, 4, 4, 4, 4, None] * 2 + [4]
    said = {**second, "layer_types": ["full_attention"] * 3 + ["sliding_attention"]}
    assert page.windows("gemma2", said, 2) == [None, None, None, 4]
    for types in (["full_attention"] * 3, ["full_attention"] * 3 + ["chunked_attention"]):
        with pytest.raises(ValueError, match="gemma2: layer_types must be 4 of full_attention and"):
            page.windows("gemma2", {**said, "layer_types": types}, 2)


@pytest.mark.parametrize("name", ["gemma3", "gemma3_text"])
def test_gemma_3_in_the_spelling_of_its_released_files(name):
    old = {"rope_parameters": None, "rope_theta": 1000, "rope_local_base_freq": 100,
           "rope_scaling": {"rope_type": "linear", "factor": 8}, "layer_types": None,
           "sliding_window_pattern": 2, "dtype": None,
           "torch_dtype": model(name).config["dtype"]}  # fmt: skip
    folder, tokens = FOLDERS[0].parent / name, golden(name)["tokens"]
    m = load_model(folder, np.float64, old)
    assert_array_equal(m.logits(tokens), model(name).logits(tokens))


def test_gemma_3_s_text_takes_the_defaults_that_its_configuration_leaves_out():
    text = {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
            "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024}  # fmt: skip
    s = gemma3.settings({"model_type": "gemma3", "text_config": text, "torch_dtype": "bfloat16"})
    assert (s.V, s.H, s.G, s.K, s.eps, s.scalar) == (262_208, 8, 4, 256, 1e-6, 256)
    assert s.embedding_scale == 50.5
    assert s.windows == ([1024] * 5 + [None]) * 5 + [1024] * 4
    assert_allclose(s.ropes[4].frequencies[[0, 64]], [1, 1e-2], rtol=1e-12)
    assert_allclose(s.ropes[5].frequencies[[0, 64]], [1 / 8, 1e-3 / 8], rtol=1e-12)


@pytest.mark.parametrize(
    "name, option",
    [
        ("gemma2", {"hidden_activation": "gelu"}),
        ("gemma2", {"attention_bias": True}),
        ("gemma2", {"tie_word_embeddings": False}),
        ("gemma2", {"use_bidirectional_attention": True}),
        ("gemma3", {"hidden_activation": "gelu"}),
        ("gemma3", {"attention_bias": True}),
        ("gemma3", {"tie_word_embeddings": False}),
        ("gemma3_text", {"use_bidirectional_attention": True}),
        ("gemma3_text", {"attn_logit_softcapping": 50.0}),
        ("gemma3_text", {"final_logit_softcapping": 30.0}),
    ],
)
def test_gemma_refuses_what_the_page_does_not_do(name, option):
    with pytest.raises(ValueError, match=f"gemma[23]: {next(iter(option))} must be"):
        load_model(FOLDERS[0].parent / name, changes=option)


def test_gemma_2_without_caps_is_refused():
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        with pytest.raises(ValueError, match=f"gemma2: config.json must have {key}"):
            load_model(FOLDERS[0].parent / "gemma2", changes={key: None})


# ---- mistral ------------------------------------------------------------------------------------


def test_mistral_has_a_window_unless_it_says_null_and_llama_has_none():
    tokens = golden("mistral")["tokens"]
    windowed = model("mistral").logits(tokens)
    unbound = load_model(FOLDERS[0].parent / "mistral", np.float64, {"sliding_window": None})
    assert_allclose(unbound.logits(tokens)[:, :4], windowed[:, :4], rtol=0, atol=1e-12)
    assert (np.abs(unbound.logits(tokens) - windowed)[:, 4:].max(axis=-1) > 1e-3).all()
    config = dict(model("mistral").config)
    del config["sliding_window"]
    assert llama.settings(config).window == 4096
    assert llama.settings({**config, "model_type": "llama", "sliding_window": 4}).window is None


# ---- GPT-NeoX, BLOOM, MPT -----------------------------------------------------------------------


def test_gpt_neox_may_take_one_step_at_a_time():
    g, options = golden("gpt_neox"), {"use_parallel_residual": False, "hidden_act": "gelu_fast"}
    m = load_model(FOLDERS[0].parent / "gpt_neox", np.float64, options)
    assert_near(m.logits(g["text"]), g["one_by_one"])


def test_gpt_neox_as_its_released_files_are(tmp_path):
    folder = FOLDERS[0].parent / "gpt_neox"
    shutil.copy(folder / "config.json", tmp_path)
    buffers = {
        "bias": np.ones((1, 1, 32, 32), bool),
        "masked_bias": np.array(-1e9, np.float32),
        "rotary_emb.inv_freq": np.ones(2, np.float32),
    }
    more = {f"gpt_neox.layers.1.attention.{name}": x for name, x in buffers.items()}
    save_file({**load_weights(folder), **more}, tmp_path / "model.safetensors")
    old = {"rope_parameters": None, "rotary_pct": 0.5, "rotary_emb_base": 100}
    tokens = golden("gpt_neox")["tokens"]
    m = load_model(tmp_path, np.float64, old)
    assert_array_equal(m.logits(tokens), model("gpt_neox").logits(tokens))


def test_bloom_as_its_released_files_are(tmp_path):
    folder = FOLDERS[0].parent / "bloom"
    config = json.loads((folder / "config.json").read_text())
    for name, old in (("hidden_size", "n_embed"), ("n_head", "num_attention_heads")):
        config[old] = config.pop(name)
    (tmp_path / "config.json").write_text(json.dumps(config))
    bare = {name.removeprefix("transformer."): x for name, x in load_weights(folder).items()}
    assert len(bare) == 4 + 1 + 2 * 12 and not any("transformer" in name for name in bare)
    save_file(bare, tmp_path / "model.safetensors")
    tokens = golden("bloom")["tokens"]
    assert_array_equal(
        load_model(tmp_path, np.float64).logits(tokens), model("bloom").logits(tokens)
    )


@pytest.mark.parametrize("name", ["bloom", "mpt"])
def test_alibi_adds_a_slope_for_each_place_that_a_key_is_told(name):
    m, tokens, seen = model(name), golden(name)["tokens"], []
    twice, reverse = m.replace(places=lambda at: 2 * at), m.replace(places=lambda at: 8 - at)
    for told in (m.without_positions(), twice, reverse):
        cache = told.cache(2, 9)
        cache.watch = {}
        told.logits(tokens, cache=cache)
        seen.append(np.log(cache.watch[0][:, :, -1]))  # (B, H, S): what the last token looks at
    slopes = np.array([[1 / 16], [1 / 256], [1 / 4]])
    for weights, step in zip(seen[1:], (2, -1), strict=True):
        steps = np.diff(weights - seen[0])
        assert_allclose(steps, np.tile(step * slopes, (2, 1, 8)), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "name, option",
    [
        ("gpt_neox", {"hidden_act": "silu"}),
        ("gpt_neox", {"attention_bias": False}),
        ("gpt_neox", {"tie_word_embeddings": True}),
        ("bloom", {"apply_residual_connection_post_layernorm": True}),
        ("mpt", {"no_bias": False}),
        ("mpt", {"norm_type": "rmsnorm"}),
        ("mpt", {"logit_scale": "inv_sqrt_d_model"}),
        ("mpt", {"attn_config": {"attn_type": "multiquery_attention"}}),
        ("mpt", {"attn_config": {"alibi": False}}),
        ("mpt", {"attn_config": {"alibi_bias_max": 16}}),
        ("mpt", {"attn_config": {"rope": True}}),
        ("mpt", {"attn_config": {"clip_qkv": 6}}),
        ("mpt", {"attn_config": {"qk_ln": True}}),
        ("mpt", {"attn_config": {"softmax_scale": 0.1}}),
        ("mpt", {"attn_config": {"prefix_lm": True}}),
    ],
)
def test_options_of_gpt_neox_bloom_and_mpt_that_change_the_model_are_refused(name, option):
    key = next(iter(option.get("attn_config", option)))
    with pytest.raises(ValueError, match=f"^{name}: {key} must be .* here; got"):
        load_model(FOLDERS[0].parent / name, changes=option)


# ---- LLaMA, Qwen, Phi-3 -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["llama", "llama2", "qwen3", "phi3"])
def test_a_file_without_a_head_is_read_with_the_embedding(name):
    m, tokens = model(name), golden(name)["tokens"]
    bare = {key: x for key, x in m.parameters.items() if key != "head"}
    tied = m.replace(parameters={**bare, "head": m.parameters["embedding"].T}).logits(tokens)
    assert_array_equal(m.replace(parameters=bare).logits(tokens), tied)
    assert np.abs(tied - m.logits(tokens)).max() > 0.1


def test_query_heads_0_1_2_3_read_key_heads_0_0_1_1():
    m, tokens = model("qwen2"), golden("qwen2")["tokens"]
    layers = {}
    for n, layer in m.parameters["layers"].items():
        K = m.settings.K
        wide = {}
        for which in "kv":
            W, b = layer[f"W_{which}"], layer[f"b_{which}"]
            heads = [slice(g * K, g * K + K) for g in (0, 0, 1, 1)]
            wide[f"W_{which}"] = np.concatenate([W[:, h] for h in heads], axis=1)
            wide[f"b_{which}"] = np.concatenate([b[h] for h in heads])
        layers[n] = {**layer, **wide}
    each = m.replace(
        parameters={**m.parameters, "layers": layers}, settings=changed(m.settings, G=4)
    )
    assert_allclose(each.logits(tokens), m.logits(tokens), rtol=0, atol=1e-12)


def test_phi3_uses_one_list_up_to_the_trained_length_and_another_beyond():
    g, m = golden("phi3"), model("phi3")
    short, long = m.logits(g["text"][:1, :12]), m.logits(g["text"][:1])
    assert_near(short, g["short"])
    assert_near(long, g["long"])
    assert np.abs(long[:, :12] - short).max() > 0.1  # tokens that were there before move, too


def test_phi3_chooses_its_list_by_the_longest_text_of_a_batch():
    g = golden("phi3")
    logits = model("phi3").logits(g["text"], g["text_real"])
    assert_near(logits[g["text_real"]], g["text_padded"][g["text_real"]], PADDED)


@pytest.mark.parametrize("cuts", [(12,), (5, 12), (5, 11), (4, 9, 10, 11, 12), (1,)])
def test_a_cache_of_phi3_that_crosses_the_trained_length_gives_what_the_whole_text_gives(cuts):
    g, m = golden("phi3"), model("phi3")
    cache = m.cache(2, 14)
    text, real = (np.concatenate([g[key], g[key][:, -1:]], axis=1) for key in ("text", "text_real"))
    for a, b in zip((0, *cuts, 13), (*cuts, 13, 14), strict=True):
        cache.watch = {}
        part = m.logits(text[:, a:b], real[:, a:b], cache)
        whole = m.logits(text[:, :b], real[:, :b])
        seen = real[:, a:b]
        assert_allclose(part[seen], whole[:, a:b][seen], rtol=0, atol=1e-10)
        assert cache.length == b and cache.watch[1].shape == (2, 3, b - a, b)


def test_a_cache_of_phi3_that_is_cut_crosses_back():
    g, m = golden("phi3"), model("phi3")
    cache = m.cache(2, 13)
    m.logits(g["text"], cache=cache)
    cache.cut(10)
    part = m.logits(g["text"][:, 10:12], cache=cache)
    assert_allclose(part, m.logits(g["text"][:, :12])[:, 10:], rtol=0, atol=1e-10)
    last = m.logits(g["text"][:, 12:], cache=cache)
    assert_allclose(last, m.logits(g["text"])[:, 12:], rtol=0, atol=1e-10)


def test_phi3_reads_the_names_of_its_first_files():
    config = json.loads((FOLDERS[0].parent / "phi3/config.json").read_text())
    new = config.pop("rope_parameters")
    config |= {key: new[key] for key in ("rope_theta", "partial_rotary_factor")}
    config["rope_scaling"] = {key: new[key] for key in ("short_factor", "long_factor")}
    config["rope_scaling"]["type"] = "su"
    for a, b in zip(phi3.settings(config).ropes, model("phi3").settings.ropes, strict=True):
        assert_array_equal(a.frequencies, b.frequencies)
        assert a.attention_factor == b.attention_factor > 1.2


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("llama", {"attention_bias": True}, "llama: attention_bias must be False here; got True"),
        ("llama", {"hidden_act": "gelu"}, "llama: hidden_act must be 'silu' here; got 'gelu'"),
        ("qwen2", {"use_sliding_window": True}, "qwen2: use_sliding_window must be False"),
        ("qwen3", {"use_sliding_window": True}, "qwen3: use_sliding_window must be False"),
        ("qwen3", {"attention_bias": True}, "qwen3: attention_bias must be False"),
        ("qwen3", {"head_dim": None}, "qwen3: config.json must have head_dim"),
        ("phi3", {"hidden_act": "gelu"}, "phi3: hidden_act must be 'silu'"),
        ("phi3", {"hidden_size": 25}, r"phi3: .* must have the shape \(37, 25\)"),
    ],
)
def test_a_configuration_that_asks_for_more_is_refused(name, changes, message):
    with pytest.raises(ValueError, match=message):
        load_model(FOLDERS[0].parent / name, changes=changes)
