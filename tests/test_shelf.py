"""Every page of the shelf against its golden folder, with and without a cache; what it refuses."""

import functools
import importlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import greedy, load_model, load_weights
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
