"""Every page of the shelf against its golden folder, with and without a cache; what it refuses."""

import functools
import importlib
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import save_file

from pe_numpy import greedy, load_model, load_weights
from pe_numpy.models import deepseek
from pe_numpy.models.cache import Cache
from pe_numpy.models.load import PAGES

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
    needed = next(key for key in reversed(tensors) if key not in getattr(page, "MAY_LACK", ()))
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
