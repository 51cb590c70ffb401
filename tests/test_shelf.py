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

from pe_numpy import beam_search, greedy, load_model, load_weights, t5_bucket, timing_signal
from pe_numpy.absolute.convolution import convolve
from pe_numpy.models import deberta, deepseek, gemma2, gemma3, llama, phi3
from pe_numpy.models.load import PAGES
from pe_numpy.models.page import changed, rounded, windows
from pe_numpy.transformer import context
from pe_numpy.transformer.context import Cache

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
    cache = Cache(2, 9)
    parts = [m.logits(g["tokens"][:, a:b], cache=cache) for a, b in ((0, 4), (4, 5), (5, 9))]
    assert_allclose(np.concatenate(parts, axis=1), whole, rtol=0, atol=1e-10)


@decoders
def test_a_cache_with_padding_changes_nothing(name):
    g, m = golden(name), model(name)
    tokens = np.concatenate([g["prompt"], g["written"]], axis=1)[:, :12]
    real = np.concatenate([g["real"], np.ones_like(g["written"], bool)], axis=1)[:, :12]
    whole = m.logits(tokens, real)
    cache = Cache(len(tokens), 12)
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


# ---- encoders -----------------------------------------------------------------------------------


encoders = pytest.mark.parametrize("name", names("encoder"))


@encoders
def test_an_encoder_s_logits_are_those_of_transformers(name):
    g = golden(name)
    assert_near(model(name).logits(g["tokens"], types=g.get("types")), g["logits"])


@encoders
def test_an_encoder_s_logits_beside_padding_are_those_of_transformers(name):
    g = golden(name)
    logits = model(name).logits(g["padded"], g["real"])
    assert_near(logits[g["real"]], g["padded_logits"][g["real"]], PADDED)


@encoders
def test_an_encoder_does_not_see_padding_and_its_side_means_nothing(name):
    g, m = golden(name), model(name)
    tokens, real = g["padded"], g["real"]
    logits = m.logits(tokens, real)[real]
    others = np.where(real, tokens, (tokens + 5) % m.vocabulary)
    assert_allclose(m.logits(others, real)[real], logits, rtol=0, atol=1e-12)
    order = np.argsort(real, axis=1, kind="stable")  # padding first
    left = (np.take_along_axis(x, order, axis=1) for x in (others, real))
    logits_left = m.logits(*left)[np.take_along_axis(real, order, axis=1)]
    assert_allclose(logits_left, logits, rtol=0, atol=1e-12)


@encoders
def test_an_encoder_reads_types_only_if_its_golden_file_has_some(name):
    g, m = golden(name), model(name)
    tokens = g["tokens"]
    plain = m.logits(tokens)
    assert_allclose(m.logits(tokens, types=np.zeros_like(tokens)), plain, rtol=0, atol=0)
    moved = np.abs(m.logits(tokens, types=g.get("types")) - plain).max()
    assert moved > 0.01 if "types" in g else moved == 0


@encoders
def test_an_encoder_s_float32_stays_float32(name):
    m = load_model(Path(__file__).parent / "golden/models" / name)
    logits = m.logits(golden(name)["tokens"], types=golden(name).get("types"))
    assert m.dtype == logits.dtype == np.float32
    assert_near(logits, golden(name)["logits"], 1e-4)


def test_an_encoder_refuses_types_that_are_not_the_tokens():
    m = model("bert")
    with pytest.raises(ValueError, match=r"types must have the tokens' shape \(1, 2\); got \(2,\)"):
        m.logits([[1, 2]], types=[0, 1])
    with pytest.raises(ValueError, match="types must be whole numbers"):
        m.logits([[1, 2]], types=[[0.0, 1.0]])
    with pytest.raises(ValueError, match="a table of 2 rows serves positions 0 to 1; got 2"):
        m.logits([[1, 2]], types=[[0, 2]])


# ---- pictures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names("pictures"))
def test_logits_of_pictures_are_those_of_transformers_for_every_size(name):
    g, narrow = golden(name), load_model(Path(__file__).parent / "golden/models" / name)
    sizes = [key.removeprefix("pixels") for key in g if key.startswith("pixels")]
    assert len(sizes) > 1
    for size in sizes:
        assert_near(model(name).logits(g["pixels" + size]), g["logits" + size])
        logits = narrow.logits(g["pixels" + size])
        assert narrow.dtype == logits.dtype == np.float32
        assert_near(logits, g["logits" + size], 1e-4)


@pytest.mark.parametrize("shape", [(3, 8, 8), (1, 4, 8, 8), (1, 3, 1, 8), (1, 3, 8, 1)])
def test_what_is_no_picture_is_refused(shape):
    with pytest.raises(ValueError, match=r"\(B, 3, height, width\), at least one patch \[2, 2\]"):
        model("vit").logits(np.zeros(shape))


# ---- all ----------------------------------------------------------------------------------------


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


def test_deepseek_s_greedy_router_does_not_look_at_groups():
    m = load_model(FOLDERS[0].parent / "deepseek_lite", np.float64, {"n_group": 3, "topk_group": 1})
    tokens = golden("deepseek_lite")["tokens"]
    assert_array_equal(m.logits(tokens), model("deepseek_lite").logits(tokens))


def test_deepseek_s_cache_holds_one_latent_vector_and_one_turned_key_a_token():
    m, held = model("deepseek_v3"), []

    class Watched(Cache):
        def keep(self, layer, *newest):
            held.append([x.shape for x in newest])
            return super().keep(layer, *newest)

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
        assert rounded("gemma", {key: "bfloat16"}, math.sqrt(width)) == factor


def test_gemma_s_embedding_factor_has_the_bits_of_the_file_s_dtype():
    exact = math.sqrt(640)
    for dtype in (np.float16, np.float32):
        ours = rounded("gemma", {"dtype": np.dtype(dtype).name}, exact)
        assert ours == float(dtype(exact)) != exact
    for config in ({}, {"dtype": "int8"}):
        with pytest.raises(ValueError, match="gemma: dtype must be bfloat16, float16 or float32"):
            rounded("gemma", config, exact)


def test_gemma_2_s_caps():
    assert_allclose(gemma2.soft_cap(np.array([60.0]), 50), 41.68273, rtol=0, atol=1e-5)
    assert_allclose(gemma2.soft_cap(np.array([-45.0, 0]), 30), [-27.15445, 0], rtol=0, atol=1e-5)


def test_gemma_2_has_a_window_on_each_second_layer_and_gemma_3_on_five_of_six():
    second, third = ({"num_hidden_layers": n, "sliding_window": 4} for n in (4, 13))
    assert windows("gemma2", second, 2) == [4, None, 4, None]
    assert windows("gemma3", third, 6) == [4, 4, 4, 4, 4, None] * 2 + [4]
    said = {**second, "layer_types": ["full_attention"] * 3 + ["sliding_attention"]}
    assert windows("gemma2", said, 2) == [None, None, None, 4]
    for types in (["full_attention"] * 3, ["full_attention"] * 3 + ["chunked_attention"]):
        with pytest.raises(ValueError, match="gemma2: layer_types must be 4 of full_attention and"):
            windows("gemma2", {**said, "layer_types": types}, 2)


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
        cache = Cache(2, 9)
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
def test_a_cache_of_phi3_that_crosses_the_trained_length_reads_all_again_once(cuts, monkeypatch):
    g, m = golden("phi3"), model("phi3")
    cache = Cache(2, 14)
    times, again = [], Cache.again
    monkeypatch.setattr(Cache, "again", lambda self: times.append(again(self)))
    text, real = (np.concatenate([g[key], g[key][:, -1:]], axis=1) for key in ("text", "text_real"))
    for a, b in zip((0, *cuts, 13), (*cuts, 13, 14), strict=True):
        cache.watch = {}
        part = m.logits(text[:, a:b], real[:, a:b], cache)
        whole = m.logits(text[:, :b], real[:, :b])
        seen = real[:, a:b]
        assert_allclose(part[seen], whole[:, a:b][seen], rtol=0, atol=1e-10)
        assert cache.length == b and cache.watch[1].shape == (2, 3, b - a, b)
    assert len(times) == 1


def test_a_cache_of_phi3_that_is_cut_crosses_back():
    g, m = golden("phi3"), model("phi3")
    cache = Cache(2, 13)
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
        ("phi3", {"vocab_size": 36}, r"phi3: .* must have the shape \(36, 24\)"),
    ],
)
def test_a_configuration_that_asks_for_more_is_refused(name, changes, message):
    with pytest.raises(ValueError, match=message):
        load_model(FOLDERS[0].parent / name, changes=changes)


# ---- encoder-decoders ---------------------------------------------------------------------------


encoder_decoders = pytest.mark.parametrize("name", names("encoder-decoder"))


def source_of(name):
    g = golden(name)
    return {key: g[key] for key in ("source", "source_real") if key in g}


@encoder_decoders
def test_logits_after_a_source_are_those_of_transformers(name):
    g = golden(name)
    assert_near(model(name).logits(g["tokens"], **source_of(name)), g["logits"])


@encoder_decoders
def test_logits_after_a_source_and_padding_on_the_left_are_those_of_transformers(name):
    g, real = golden(name), golden(name)["real"]
    logits = model(name).logits(g["prompt"], **source_of(name), real=real)
    assert_near(logits[real], g["padded_logits"][real], PADDED)


@encoder_decoders
def test_a_cache_with_a_source_changes_nothing(name):
    g, m = golden(name), model(name)
    tokens = np.concatenate([g["prompt"], g["written"]], axis=1)[:, :12]
    real = np.concatenate([g["real"], np.ones_like(g["written"], bool)], axis=1)[:, :12]
    whole = m.logits(tokens, **source_of(name), real=real)
    cache = Cache(2, 12)
    parts = [
        m.logits(tokens[:, a:b], **source_of(name), real=real[:, a:b], cache=cache)
        for a, b in ((0, 5), (5, 6), (6, 12))
    ]
    assert_allclose(np.concatenate(parts, axis=1)[real], whole[real], rtol=0, atol=1e-10)


@encoder_decoders
def test_a_first_call_that_fails_leaves_the_cache_free_for_another_source(name):
    g, m, of = golden(name), model(name), source_of(name)
    cache = Cache(2, 9)
    with pytest.raises(ValueError, match="tokens must be from 0 to V - 1"):
        m.logits(np.full((2, 1), 99), **of, cache=cache)
    other = {**of, "source": of["source"][::-1].copy()}
    own = m.logits(g["tokens"], **other, cache=cache)
    assert_array_equal(own, m.logits(g["tokens"], **other))


def test_a_cache_keeps_no_more_than_it_holds():
    m, g = model("llama"), golden("llama")
    cache = Cache(2, 9)
    m.logits(g["tokens"][:, :3], cache=cache)
    for length in (4, -1):
        with pytest.raises(ValueError, match=r"Cache\.cut: length must be"):
            cache.cut(length)
    cache.cut(3)
    assert cache.length == 3


@encoder_decoders
def test_a_cache_reads_its_source_once_and_refuses_another(name, monkeypatch):
    g, m = golden(name), model(name)
    calls, encode, of = [], m.page.encode, source_of(name)
    monkeypatch.setattr(m.page, "encode", lambda *args: calls.append(1) or encode(*args))
    cache = Cache(2, 9)
    for n in range(3):
        m.logits(g["tokens"][:, n : n + 1], **of, cache=cache)
    assert len(calls) == 1
    other = of["source"].copy()
    other[0, 0] = other[0, 0] + 1
    with pytest.raises(ValueError, match="the cache serves one source; got another"):
        m.logits(g["tokens"][:, 3:4], **{**of, "source": other}, cache=cache)


@encoder_decoders
def test_twenty_greedy_tokens_after_a_source_are_those_of_transformers(name):
    g, m = golden(name), model(name)
    assert len(np.unique(g["written"])) > 4
    for cached in (True, False):
        written = greedy(
            m.parameters, m, g["prompt"], 20, **source_of(name), real=g["real"], cached=cached
        )
        assert_array_equal(written, g["written"])


@encoder_decoders
def test_with_a_source_float32_stays_float32(name):
    g = golden(name)
    m = load_model(Path(__file__).parent / "golden/models" / name)
    logits = m.logits(g["tokens"], **source_of(name))
    assert m.dtype == logits.dtype == np.float32
    assert_near(logits, g["logits"], 1e-4)


@encoder_decoders
def test_without_positions_neither_places_nor_the_order_of_a_source_mean_anything(name):
    g, bare, of = golden(name), model(name).without_positions(), source_of(name)
    logits = bare.logits(g["tokens"], **of)
    assert np.abs(logits - g["logits"]).max() > 0.01
    moved = bare.replace(places=lambda positions: positions // 2)
    assert_allclose(moved.logits(g["tokens"], **of), logits, rtol=0, atol=1e-12)
    if name != "whisper":  # whose convolutions see neighbours
        turned = {key: x[:, ::-1] for key, x in of.items()}
        assert_allclose(bare.logits(g["tokens"], **turned), logits, rtol=0, atol=1e-12)


@encoder_decoders
def test_a_model_that_reads_writes_with_beams(name):
    g, m = golden(name), model(name)
    found = [
        beam_search(m.parameters, m, g["prompt"], 4, 3, **source_of(name), real=g["real"], cached=c)
        for c in (True, False)
    ]
    assert_array_equal(found[0][0], found[1][0])
    assert_allclose(found[0][1], found[1][1], rtol=0, atol=1e-10)


@encoder_decoders
def test_a_source_of_another_number_of_rows_is_refused(name):
    g, m = golden(name), model(name)
    with pytest.raises(ValueError, match="source must have"):
        m.logits(g["tokens"], source=g["source"][:1])


@pytest.mark.parametrize("name", [*names("decoder"), *names("encoder-decoder")])
def test_a_cache_refuses_other_settings_and_other_places_of_the_same_parameters(name):
    m, tokens = model(name), golden(name)["tokens"][:, :4]
    of = source_of(name) if m.page.KIND == "encoder-decoder" else {}
    cache = Cache(len(tokens), 4)
    m.logits(tokens[:, :2], **of, cache=cache)
    for other in (
        m.replace(settings=changed(m.settings)),
        m.replace(places=lambda positions: 2 * positions),
        m.without_positions(),
    ):
        with pytest.raises(ValueError, match=r"logits: the cache serves one (model|set of p)"):
            other.logits(tokens[:, 2:], **of, cache=cache)
        assert cache.length == 2
    rest = m.replace().logits(tokens[:, 2:], **of, cache=cache)
    assert_allclose(rest, m.logits(tokens, **of)[:, 2:], rtol=0, atol=1e-9)


# ---- T5 -----------------------------------------------------------------------------------------


def test_a_source_of_tokens_is_checked():
    g, m = golden("t5"), model("t5")
    for source, real, rule in (
        (g["source"] + 0.5, None, "source must be whole numbers"),
        (g["source"][0], None, r"source must have the axes \(B, L\)"),
        (g["source"] + 37, None, "tokens must be from 0 to V - 1 = 36"),
        (g["source"], g["source_real"][:, :5], "which of the source are real must be boolean"),
        (g["source"], g["source_real"].astype(int), "which of the source are real must be boolean"),
        (g["source"], [[True], [True, False]], "logits: which of the .* must have rows of one"),
    ):
        with pytest.raises(ValueError, match=rule):
            m.logits(g["tokens"], source=source, source_real=real)


def test_what_stands_in_the_padding_of_a_source_means_nothing_and_its_place_does():
    g, m = golden("t5"), model("t5")
    other = np.where(g["source_real"], g["source"], 7)
    cache = Cache(2, 9)
    logits = m.logits(g["tokens"][:, :4], g["source"], g["source_real"], cache=cache)
    again = m.logits(g["tokens"][:, :4], other, g["source_real"])
    assert_allclose(again, logits, rtol=0, atol=1e-12)
    m.logits(g["tokens"][:, 4:5], other, g["source_real"], cache=cache)
    with pytest.raises(ValueError, match="the cache serves one source; got another"):
        m.logits(g["tokens"][:, 5:6], g["source"], cache=cache)


def test_the_buckets_of_the_golden_file_are_all_read_by_the_encoder():
    m = model("t5").settings
    past, future = t5_bucket(np.arange(24), m.N, m.far), t5_bucket(-np.arange(1, 24), m.N, m.far)
    assert sorted({*past.tolist(), *future.tolist()} - {4}) == [0, 1, 2, 3, 5, 6, 7]


def test_in_t5_only_the_difference_of_positions_counts():
    g, of, m = golden("t5"), source_of("t5"), model("t5")
    moved = m.replace(places=lambda positions: positions + 100)
    assert_allclose(moved.logits(g["tokens"], **of), g["logits"], rtol=0, atol=1e-5)
    wrong = m.replace(places=lambda positions: 3 * positions)
    assert np.abs(wrong.logits(g["tokens"], **of) - g["logits"]).max() > 0.01


def test_a_head_of_its_own_is_not_divided_by_sqrt_d_nor_does_it_follow_the_embedding():
    g, m = golden("t5_v11"), model("t5_v11")
    assert "head" in m.parameters and "head" not in model("t5").parameters
    assert (m.settings.factor, model("t5").settings.factor) == (1.0, 1 / math.sqrt(12))
    config = {key: x for key, x in m.config.items() if key != "scale_decoder_outputs"}
    assert m.page.settings(config).factor == 1.0  # a released file of 1.1 has no such key
    del config["tie_word_embeddings"]
    assert m.page.settings(config).factor == 1 / math.sqrt(12)  # nor one of 1.0 the other
    saved_again = {**config, "tie_word_embeddings": True, "scale_decoder_outputs": False}
    assert m.page.settings(saved_again).factor == 1.0
    tied = {key: x for key, x in m.parameters.items() if key != "head"}
    other = m.replace(parameters=tied).logits(g["tokens"], **source_of("t5_v11"))
    assert np.abs(other - g["logits"]).max() > 1


def test_a_t5_of_old_may_lack_choices_and_hold_copies(tmp_path):
    folder = Path(__file__).parent / "golden/models/t5"
    config = json.loads((folder / "config.json").read_text())
    del config["relative_attention_max_distance"], config["layer_norm_epsilon"]
    assert load_model(folder).page.settings(config).far == 128
    tensors = dict(load_weights(folder))
    tensors["encoder.embed_tokens.weight"] = tensors["shared.weight"].copy()
    tensors["decoder.embed_tokens.weight"] = tensors["shared.weight"].copy()
    unused = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    tensors[unused] = np.ones((8, 3), np.float32)
    save_file(tensors, tmp_path / "model.safetensors")
    shutil.copy(folder / "config.json", tmp_path)
    g = golden("t5")
    m = load_model(tmp_path, np.float64)
    assert_near(m.logits(g["tokens"], **source_of("t5")), g["logits"])


def test_a_t5_with_another_network_is_refused():
    with pytest.raises(ValueError, match="t5: feed_forward_proj must be 'relu' here; got 'gated-s"):
        model("t5").page.settings({**model("t5").config, "feed_forward_proj": "gated-silu"})


# ---- Whisper ------------------------------------------------------------------------------------


def test_features_of_another_shape_or_with_padding_are_refused():
    g, m = golden("whisper"), model("whisper")
    shape = r"source must have the shape \(B, mel, frames\) = \(2, 5, 20\)"
    for source in (g["source"][..., :18], g["source"][:, :4], g["source"][:, 0]):
        with pytest.raises(ValueError, match=shape):
            m.logits(g["tokens"], source)
    with pytest.raises(ValueError, match="features have no padding, source_real must be None"):
        m.logits(g["tokens"], g["source"], np.ones((2, 20), bool))


def test_the_sinusoids_that_whisper_holds_are_the_timing_signal():
    stored = model("whisper").parameters["encoder"]["positions"]
    assert_allclose(stored, timing_signal(np.arange(10), 12), rtol=0, atol=1e-6)
    by_hand = [0.8415, 0.0464, 0.0022, 0.0001, 0.5403, 0.9989, 1, 1]  # of width 8
    assert_allclose(timing_signal([1], 8)[0], by_hand, rtol=0, atol=5e-5)


def test_without_positions_both_tables_of_whisper_are_zero():
    parameters = model("whisper").without_positions().parameters
    for stack in ("encoder", "decoder"):
        assert not parameters[stack]["positions"].any()
        assert model("whisper").parameters[stack]["positions"].any()


def test_a_convolution_sees_three_neighbours_and_zeros_beyond_the_ends():
    x = np.array([[[1.0], [10.0], [100.0], [1000.0], [10000.0]]])  # (1, 5, 1)
    W, b = np.array([[[1.0, 2.0, 3.0]]]), np.array([0.5])
    convolve = model("whisper").page.convolve
    assert convolve(x, W, b, 1)[0, :, 0].tolist() == [32.5, 321.5, 3210.5, 32100.5, 21000.5]
    assert convolve(x, W, b, 2)[0, :, 0].tolist() == [32.5, 3210.5, 21000.5]
    assert convolve(x[:, :4], W, b, 2)[0, :, 0].tolist() == [32.5, 3210.5]


def test_whisper_writes_no_more_than_its_table_holds():
    g, m = golden("whisper"), model("whisper")
    tokens = np.resize(g["tokens"], (2, 33))
    assert m.logits(tokens[:, :32], g["source"]).shape == (2, 32, 37)
    with pytest.raises(ValueError, match="a table of 32 rows serves positions 0 to 31; got 32"):
        m.logits(tokens, g["source"])


def test_a_whisper_with_other_choices_is_refused():
    config, settings = model("whisper").config, model("whisper").page.settings
    for choice in ({"activation_function": "relu"}, {"scale_embedding": True}):
        with pytest.raises(ValueError, match=f"whisper: {next(iter(choice))} must be"):
            settings({**config, **choice})


# ---- bert, roformer, vit ------------------------------------------------------------------------


def renamed(name, folder, change):
    """A copy of a golden folder whose tensors went through `change`."""
    path = Path(__file__).parent / "golden/models" / name
    shutil.copy(path / "config.json", folder)
    save_file(change(dict(load_weights(path))), folder / "model.safetensors")
    return load_model(folder, np.float64)


def test_bert_knows_the_old_names_of_its_norms_and_leaves_out_other_tasks(tmp_path):
    def old(tensors):
        for new, name in ("weight", "gamma"), ("bias", "beta"):
            tensors = {k.replace(f"Norm.{new}", f"Norm.{name}"): x for k, x in tensors.items()}
        others = ("bert.pooler.dense.weight", "bert.embeddings.position_ids")
        return {**tensors, **dict.fromkeys((*others, "cls.seq_relationship.bias"), np.zeros(2))}

    g = golden("bert")
    assert_near(renamed("bert", tmp_path, old).logits(g["tokens"], types=g["types"]), g["logits"])
    both = {"bert.embeddings.LayerNorm.gamma": np.ones(12)}
    with pytest.raises(ValueError, match=r"1 tensors: bert\.embeddings\.LayerNorm\.gamma"):
        renamed("bert", tmp_path, lambda tensors: {**tensors, **both})


@pytest.mark.parametrize("name", ["bert", "roformer"])
def test_an_encoder_s_own_head_is_used_if_the_file_has_it(name, tmp_path):
    def with_head(tensors):
        table = tensors[f"{name}.embeddings.word_embeddings.weight"]
        bias = tensors["cls.predictions.bias"]
        head = {"decoder.weight": 2 * table, "decoder.bias": bias}
        return {**tensors, **{f"cls.predictions.{key}": x for key, x in head.items()}}

    m, bias = renamed(name, tmp_path, with_head), model(name).parameters["out"]["b"]
    wanted = 2 * (model(name).logits([[3, 1, 4]]) - bias) + bias
    assert_allclose(m.logits([[3, 1, 4]]), wanted, rtol=0, atol=1e-12)


def test_the_epsilon_of_bert_and_vit_is_not_another_models():
    """1e-6 for 1e-12 moves logits by 1e-6 only; nothing in these two is rounded to float32."""
    g = golden("bert")
    assert_near(model("bert").logits(g["tokens"], types=g["types"]), g["logits"], 1e-9)
    assert_near(model("vit").logits(golden("vit")["pixels"]), golden("vit")["logits"], 1e-9)


def test_bert_has_as_many_positions_as_its_table_has_rows():
    with pytest.raises(ValueError, match="a table of 16 rows serves positions 0 to 15; got 16"):
        model("bert").logits(np.zeros((1, 17), int))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("bert", {"hidden_act": "gelu_new"}, "hidden_act must be 'gelu'"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type must be"),
        ("roformer", {"norm_type": "rms_norm"}, "norm_type must be 'layer_norm'"),
        ("roformer", {"is_decoder": True}, "is_decoder must be False"),
        ("vit", {"qkv_bias": False}, "qkv_bias must be True"),
        ("vit", {"hidden_size": None}, "config.json must have hidden_size"),
        ("vit", {"image_size": [8, 6]}, r"must have the shape \(1, 13, 12\)"),
    ],
)
def test_encoders_refuse_what_they_do_not_do(name, changes, message):
    with pytest.raises(ValueError, match=message):
        load_model(Path(__file__).parent / "golden/models" / name, changes=changes)


def test_roformer_s_table_is_rope_s_and_another_is_refused(tmp_path):
    table = model("roformer").parameters["turns"]  # K = 6: three sines, three cosines
    wanted = [0.8415, 0.0464, 0.0022, 0.5403, 0.9989, 1.0]
    assert_allclose(table[1], wanted, rtol=0, atol=5e-5)

    def exchanged(tensors):
        key = "roformer.encoder.embed_positions.weight"
        return {**tensors, key: np.roll(tensors[key], 3, axis=1)}

    with pytest.raises(ValueError, match="embed_positions must be RoPE's; it is off by 1"):
        renamed("roformer", tmp_path, exchanged)


def test_roformer_sees_distances_alone_unless_values_turn_too():
    tokens = golden("roformer")["tokens"]
    for name, least, most in (("roformer", 0, 1e-12), ("roformer_electra", 0.1, np.inf)):
        moved = model(name).replace(places=lambda positions: positions + 5)
        change = np.abs(moved.logits(tokens) - model(name).logits(tokens)).max()
        assert least <= change <= most


def test_vit_cuts_patches_as_channel_row_and_column():
    from pe_numpy.models.vit import cut

    pixels = np.arange(2 * 2 * 4 * 7).reshape(2, 2, 4, 7)
    patches = cut(pixels, 2, 3)
    assert patches.shape == (2, 2, 2, 12)  # the seventh column is left over
    assert_array_equal(patches[0, 1, 1], [17, 18, 19, 24, 25, 26, 45, 46, 47, 52, 53, 54])


def test_vit_resizes_its_table_as_by_hand():
    from pe_numpy.models.vit import resized

    table = np.array([7.0, 1, 2, 3, 5, 8, 13])[:, None]  # cls, then 2 rows of 3 columns
    wide = np.array([[1.08681, -0.08681], [0.5, 0.5], [-0.08681, 1.08681]])
    narrow = np.array([[0.77344, 0.26172, -0.03516], [-0.03516, 0.26172, 0.77344]])
    by_hand = wide @ np.array([[1, 2, 3], [5, 8, 13]]) @ narrow.T
    grid = resized(table, [2, 3], 3, 2)
    assert_array_equal(grid[0], [7])
    assert_allclose(grid[1:, 0], by_hand.ravel(), rtol=0, atol=2e-4)
    assert_array_equal(resized(table, [2, 3], 2, 3), table)


# ---- DeBERTa, XLNet -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["deberta_v2", "deberta_v3", "xlnet"])
def test_where_an_encoder_of_distances_begins_to_count_means_nothing(name):
    g, m = golden(name), model(name)
    plain = m.logits(g["padded"], g["real"])
    moved = m.replace(places=lambda at: at + 9).logits(g["padded"], g["real"])
    assert_allclose(moved, plain, rtol=0, atol=1e-10)
    backwards = m.replace(places=lambda at: -at).logits(g["padded"], g["real"])
    assert np.abs(backwards - plain).max() > 0.01


def test_deberta_beyond_its_largest_distance_stays_in_the_last_bucket():
    g = golden("deberta_v3")
    assert g["text"].shape[1] > model("deberta_v3").settings.max_distance == 32
    assert_near(model("deberta_v3").logits(g["text"]), g["text_logits"])


@pytest.mark.parametrize("name", ["deberta_v2", "deberta_v3"])
def test_deberta_as_its_released_files_are(tmp_path, name):
    def released(tensors):
        heads = [key for key in tensors if key.startswith("lm_predictions.lm_head.")]
        assert len(heads) == (5 if name == "deberta_v3" else 0)
        spare = ("deberta.embeddings.position_embeddings.weight", "mask_predictions.dense.weight")
        return {**tensors, **dict.fromkeys(spare, np.ones(2, np.float32))}

    renamed(name, tmp_path, released)
    config = {**model(name).config, "pos_att_type": "p2c|c2p"}
    for key in ("legacy", "tie_word_embeddings"):
        del config[key]
    (tmp_path / "config.json").write_text(json.dumps(config))
    logits = load_model(tmp_path, np.float64).logits(golden(name)["tokens"])
    assert_near(logits, golden(name)["logits"])


def test_deberta_s_convolution_adds_up_what_each_neighbour_gives():
    rng = np.random.default_rng(0)
    x, W, b = (rng.standard_normal(shape) for shape in ((2, 5, 3), (3, 3, 3), (3,)))
    mixed = deberta.convolution(x, W, b)
    for i, o in np.ndindex(2, 3):
        parts = [convolve(x[i, :, c], W[o, c]) for c in range(3)]
        assert_allclose(mixed[i, :, o], sum(parts) + b[o], rtol=0, atol=1e-12)
    assert_allclose(deberta.convolution(x, W[..., 1:2], b), x @ W[..., 1].T + b, rtol=0, atol=1e-12)


def test_xlnet_s_segments_may_have_any_numbers():
    g, m = golden("xlnet"), model("xlnet")
    logits = m.logits(g["tokens"], types=9 - 4 * g["types"])
    assert_allclose(logits, m.logits(g["tokens"], types=g["types"]), rtol=0, atol=0)


def test_xlnet_s_own_head_is_used_if_the_file_has_one(tmp_path):
    g, m = golden("xlnet"), model("xlnet")
    head = (2 * m.parameters["embedding"]).astype(np.float32)
    other = renamed("xlnet", tmp_path, lambda tensors: {**tensors, "lm_loss.weight": head})
    plain, bias = m.logits(g["tokens"]), m.parameters["b_head"]
    assert_allclose(other.logits(g["tokens"]), 2 * plain - bias, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("deberta_v3", {"pos_att_type": "c2p"}),
        ("deberta_v3", {"pos_att_type": ["p2c", "c2p", "p2p"]}),
        ("deberta_v3", {"pos_att_type": None}),
        ("deberta_v3", {"position_biased_input": True}),
        ("deberta_v3", {"share_att_key": False}),
        ("deberta_v3", {"norm_rel_ebd": "none"}),
        ("deberta_v3", {"type_vocab_size": 2}),
        ("deberta_v3", {"hidden_act": "gelu_new"}),
        ("deberta_v3", {"tie_word_embeddings": False}),
        ("deberta_v2", {"conv_act": "tanh"}),
        ("deberta_v2", {"conv_groups": 2}),
        ("xlnet", {"ff_activation": "relu"}),
        ("xlnet", {"attn_type": "uni"}),
        ("xlnet", {"bi_data": True}),
        ("xlnet", {"clamp_len": 4}),
    ],
)
def test_options_of_deberta_and_xlnet_that_change_the_model_are_refused(name, option):
    with pytest.raises(ValueError, match=f"{name[:7]}.*{next(iter(option))} must be"):
        load_model(FOLDERS[0].parent / name, changes=option)


def test_deberta_s_left_out_options_are_those_of_transformers():
    config = model("deberta_v2").config
    assert deberta.settings({**config, "layer_norm_eps": None}).eps == 1e-7
    for key in ("position_biased_input", "pos_att_type", "conv_act"):
        with pytest.raises(ValueError, match=f"{key} must be"):
            deberta.settings({name: x for name, x in config.items() if name != key})


def test_logits_of_the_last_tokens_are_made_of_these_alone(monkeypatch):
    m, tokens = load_model(FOLDERS[0].parent / "llama"), [[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]]
    whole, seen = m.logits(tokens), []
    head = m.page.logits

    def counted(params, s, h):
        seen.append(h.shape[1])
        return head(params, s, h)

    monkeypatch.setattr(m.page, "logits", counted)
    for last in (1, 2, 5):
        assert_allclose(m.logits(tokens, last=last), whole[:, -last:], rtol=0, atol=1e-6)
    greedy(m.parameters, m, [[3, 1, 4]], 4)
    assert seen == [1, 2, 5, 1, 1, 1, 1]
    with pytest.raises(ValueError, match=r"logits: last must be at least 1; got 0"):
        m.logits(tokens, last=0)


WINDOWED = ("mistral", "gemma2", "gemma3_text", "phi3")  # of their layers some have a window of 4


def window_of(m):
    s = m.settings
    return min(w for w in (*getattr(s, "windows", ()), getattr(s, "window", None)) if w)


@pytest.mark.parametrize("draft", [0, 1, 3])
@pytest.mark.parametrize("pieces", [(1,) * 24, (9, 1, 1, 6, 1, 1, 1, 4), (2, 11, 11)])
@pytest.mark.parametrize("name", WINDOWED)
def test_a_cache_that_obeys_windows_gives_what_the_whole_text_gives(
    name, pieces, draft, monkeypatch
):
    monkeypatch.setattr(context, "DRAFT", draft)
    late = {"original_max_position_embeddings": 20} if name == "phi3" else None
    m = load_model(FOLDERS[0].parent / name, np.float64, late)
    tokens = np.random.default_rng(0).integers(0, m.vocabulary, (2, 24))
    real = np.ones((2, 24), bool)
    real[1, :3] = False  # padding on the left
    whole, cache, start, found = m.logits(tokens, real), Cache(2, 24), 0, []
    for n in pieces:
        part = slice(start, start + n)
        found.append(m.logits(tokens[:, part], real[:, part], cache=cache))
        start += n
    found, seen = np.concatenate(found, axis=1), real.copy()
    if name == "phi3":  # other frequencies from its 20th token on: earlier calls had not seen it
        seen[:, : 24 - pieces[-1]] = False
    assert_allclose(found[seen], whole[seen], rtol=0, atol=1e-9)
    sizes = [rooms[0].shape[-2] for layer, rooms in cache.held.items() if layer != "read"]
    assert min(sizes) == 2 * (window_of(m) + draft) < 24


@pytest.mark.parametrize("name", WINDOWED)
def test_what_a_window_has_left_can_not_be_cut_to(name, monkeypatch):
    monkeypatch.setattr(context, "DRAFT", 2)
    m = load_model(FOLDERS[0].parent / name, np.float64)
    tokens = np.random.default_rng(1).integers(0, m.vocabulary, (1, 30))
    whole, cache = m.logits(tokens), Cache(1, 30)
    for n in range(25):
        m.logits(tokens[:, n : n + 1], cache=cache)
    least = max(least for _, least in cache.first.values())
    assert 25 - 2 >= least > 0
    with pytest.raises(ValueError, match=rf"Cache.cut: length must be at least {least}, layers"):
        cache.cut(least - 1)
    assert cache.length == 25
    cache.cut(least)
    again = m.logits(tokens[:, least:], cache=cache)
    assert_allclose(again, whole[:, least:], rtol=0, atol=1e-9)


def test_a_refused_call_leaves_the_keys_of_a_window(monkeypatch):
    monkeypatch.setattr(context, "DRAFT", 0)
    m = load_model(FOLDERS[0].parent / "mistral", np.float64)
    tokens = np.random.default_rng(2).integers(0, m.vocabulary, (1, 20))
    whole, cache = m.logits(tokens), Cache(1, 20)
    for n in range(20):
        head, m.page.logits = m.page.logits, lambda *args: 1 / 0
        with pytest.raises(ZeroDivisionError):
            m.logits(tokens[:, n : n + 1], cache=cache)
        m.page.logits = head
        found = m.logits(tokens[:, n : n + 1], cache=cache)
        assert_allclose(found, whole[:, n : n + 1], rtol=0, atol=1e-9)
