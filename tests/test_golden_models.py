"""Golden files of whole models: torch's Transformer, LLaMA and GPT-2, computed again.

Logits, the loss, every gradient, steps of training and written text. The files and the script that
made them are in tests/golden; a library's weights become ours by name, and by nothing else.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    Model,
    adamw,
    adamw_state,
    cross_entropy,
    decode,
    encode,
    greedy,
    layer_norm,
    rope_convert_weights,
    sgd,
    value_and_grad,
)
from pe_numpy.training.optimiser import tree_paths
from pe_numpy.transformer import model as model_module
from pe_numpy.transformer.encodings import Learned, Rope, Sinusoidal
from pe_numpy.transformer.fits import fits

SAME = 1e-12  # the library computed in float64 throughout
NEAR = 1e-5  # somewhere inside, the library rounds to float32
STORED = 1e-7  # computed in float64, kept in float32


def golden(name):
    """The arrays of one file, floating point as float64, and apart from them the weights."""
    with np.load(Path(__file__).parent / "golden" / f"{name}.npz", allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files if key != "provenance"}
    arrays = {key: a.astype(np.float64) if a.dtype.kind == "f" else a for key, a in arrays.items()}
    weights = {key: arrays.pop(key) for key in list(arrays) if key.endswith(("weight", "bias"))}
    return arrays, weights


def agree(tree, expected, rtol, atol):
    """Whether two trees have the same names and, name by name, the same numbers."""
    ours, theirs = tree_paths(tree), tree_paths(expected)
    assert ours.keys() == theirs.keys()
    for path, x in ours.items():
        assert_allclose(x, theirs[path], rtol=rtol, atol=atol, err_msg=path)


# ---- the Transformer of torch -------------------------------------------------------------------

MODELS = {
    "torch_transformer_post": Model(3, Sinusoidal(), norm="post"),
    "torch_transformer_pre": Model(2, Sinusoidal(), activation="gelu"),
}
both = pytest.mark.parametrize("name", MODELS)


def from_torch(weights):
    """Parameters of ours from those of torch, whose projections are W^T, three in one array."""

    def norm(prefix):
        return {"gain": weights[f"{prefix}.weight"], "bias": weights[f"{prefix}.bias"]}

    def attention(prefix):
        three = np.split(weights[f"{prefix}.in_proj_weight"], 3)
        biases = np.split(weights[f"{prefix}.in_proj_bias"], 3)
        matrices = [*three, weights[f"{prefix}.out_proj.weight"]]
        biases = [*biases, weights[f"{prefix}.out_proj.bias"]]
        named = {f"W_{n}": W.T for n, W in zip("qkvo", matrices, strict=True)}
        return named | {f"b_{n}": b for n, b in zip("qkvo", biases, strict=True)}

    def stack(prefix, parts):
        layers = {}
        for n in "01":
            own = f"{prefix}.layers.{n}"
            layer = layers[n] = {"encoding": {}}
            for place, (part, theirs) in enumerate(parts.items(), start=1):
                layer[part] = attention(f"{own}.{theirs}")
                layer[f"{part}_norm"] = norm(f"{own}.norm{place}")
            layer["feed_forward_norm"] = norm(f"{own}.norm{len(parts) + 1}")
            layer["feed_forward"] = {
                "W_1": weights[f"{own}.linear1.weight"].T,
                "b_1": weights[f"{own}.linear1.bias"],
                "W_2": weights[f"{own}.linear2.weight"].T,
                "b_2": weights[f"{own}.linear2.bias"],
            }
        return {"layers": layers, "shared": {}, "norm": norm(f"{prefix}.norm")}

    return {
        "embedding": weights["embedding.weight"],
        "encoder": stack("transformer.encoder", {"attention": "self_attn"}),
        "decoder": stack(
            "transformer.decoder", {"attention": "self_attn", "cross": "multihead_attn"}
        ),
        "output": weights["output.weight"].T,
    }


def from_vector(vector, weights):
    """A tree of ours from one vector of torch, which has all parameters in their order."""
    ends = np.cumsum([w.size for w in weights.values()])
    assert vector.shape == (ends[-1],)
    pieces = np.split(vector, ends[:-1])
    return from_torch(
        {key: x.reshape(w.shape) for (key, w), x in zip(weights.items(), pieces, strict=True)}
    )


def translate(params, model, g):
    """Memory and logits; in torch's masks True means: may not attend.

    Stacks of torch end with a norm in both orders, those of `Model` in pre-norm alone: here the
    others get theirs afterwards.
    """
    real = ~g["padding"]
    if model.norm == "pre":
        memory = encode(params, model, g["source"], real)
        return memory, decode(params, model, g["target"], memory, real)
    own = without_last_norms(params)
    memory = layer_norm(encode(own, model, g["source"], real), **params["encoder"]["norm"])
    x = decode({**own, "output": np.eye(12)}, model, g["target"], memory, real)
    return memory, layer_norm(x, **params["decoder"]["norm"]) @ params["output"]


def without_last_norms(params):
    """A tree as `init_params` makes it for post-norm."""
    stacks = {name: {**params[name]} for name in ("encoder", "decoder")}
    for stack in stacks.values():
        del stack["norm"]
    return {**params, **stacks}


def loss_of(params, model, g):
    """The loss that torch had, with token 0 ignored among the targets."""
    logits = translate(params, model, g)[1]
    return cross_entropy(logits, g["expected"], ignore=0, label_smoothing=0.1)


@both
def test_memory_and_logits_are_those_of_torch_whose_stacks_end_with_a_norm_in_both_orders(name):
    g, weights = golden(name)
    model, params = MODELS[name], from_torch(weights)
    memory, logits = translate(params, model, g)
    # Padding has a position there, and none here: what stands in its place is never looked at.
    assert g["padding"].any() and (g["expected"] == 0).any()
    assert_allclose(memory[~g["padding"]], g["memory"][~g["padding"]], rtol=0, atol=SAME)
    assert_allclose(logits, g["logits"], rtol=0, atol=SAME)


@both
def test_a_last_norm_is_computed_where_there_is_one_and_checked_against_the_order(
    name, monkeypatch
):
    g, weights = golden(name)
    model, params = MODELS[name], from_torch(weights)
    other = replace(model, norm="post" if model.norm == "pre" else "pre")
    pre, post = (model, other) if model.norm == "pre" else (other, model)
    with pytest.raises(ValueError, match="norm must be pre, since the encoder has a last norm"):
        fits(params, post)
    with pytest.raises(ValueError, match="norm must be post, since the encoder has no last norm"):
        fits(without_last_norms(params), pre)
    monkeypatch.setattr(model_module, "fits", lambda *rest: None)
    memory = encode(params, model, g["source"], ~g["padding"])
    given = g["target"], memory, ~g["padding"]
    assert_allclose(decode(params, model, *given), g["logits"], rtol=0, atol=SAME)
    del params["decoder"]["norm"]
    assert np.abs(decode(params, model, *given) - g["logits"]).max() > 0.1


@both
def test_the_loss_with_ignored_targets_and_smoothing_is_that_of_torch(name):
    g, weights = golden(name)
    value = loss_of(from_torch(weights), MODELS[name], g)
    assert_allclose(value, g["losses.adamw"][0], rtol=0, atol=SAME)
    assert_allclose(value, g["losses.sgd"][0], rtol=0, atol=SAME)


@both
def test_every_gradient_is_that_of_torch(name):
    g, weights = golden(name)
    model, params = MODELS[name], from_torch(weights)
    value, grads = value_and_grad(loss_of)(params, model, g)
    assert_allclose(value, g["losses.sgd"][0], rtol=0, atol=SAME)
    agree(grads, from_vector(g["gradients"], weights), rtol=STORED, atol=SAME)


def train(params, model, g, step, state):
    """Three steps: the losses before each of them and after the last, and the last parameters."""
    losses = []
    for _ in range(3):
        value, grads = value_and_grad(loss_of)(params, model, g)
        losses.append(value)
        params, state = step(params, grads, state=state)
    return [*losses, loss_of(params, model, g)], params


@both
@pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
def test_three_steps_of_an_optimiser_lead_where_those_of_torch_lead(name, optimiser):
    # AdamW there decays the parameters of two axes or more, as here by default; eps is told to it.
    g, weights = golden(name)
    params = from_torch(weights)
    if optimiser == "adamw":
        step, state = partial(adamw, learning_rate=0.01), adamw_state(params)
    else:
        step, state = partial(sgd, learning_rate=0.1, momentum=0.9), None
    losses, params = train(params, MODELS[name], g, step, state)
    assert_allclose(losses, g[f"losses.{optimiser}"], rtol=0, atol=SAME)
    assert losses[3] < losses[0] - 0.1
    if optimiser in g:  # each file has the parameters of one
        agree(params, from_vector(g[optimiser], weights), rtol=STORED, atol=STORED)
    assert ("adamw" in g) != ("sgd" in g)


# ---- LLaMA and GPT-2 ----------------------------------------------------------------------------

LLAMA = Model(4, Rope(layout="half"), activation="silu", scale=1.0)
GPT2 = Model(2, Learned(32), activation="gelu_tanh", scale=1.0)


def from_llama(weights):
    """Parameters of ours from those of LLaMA: projections are W^T, gate_proj gates up_proj."""
    layers = {}
    for n in "01":
        own = f"model.layers.{n}"
        feed_forward = {"W_gate": "gate", "W_1": "up", "W_2": "down"}
        layers[n] = {
            "attention": {f"W_{x}": weights[f"{own}.self_attn.{x}_proj.weight"].T for x in "qkvo"},
            "attention_norm": {"gain": weights[f"{own}.input_layernorm.weight"]},
            "feed_forward": {
                ours: weights[f"{own}.mlp.{theirs}_proj.weight"].T
                for ours, theirs in feed_forward.items()
            },
            "feed_forward_norm": {"gain": weights[f"{own}.post_attention_layernorm.weight"]},
            "encoding": {},
        }
    norm = {"gain": weights["model.norm.weight"]}
    return {
        "embedding": weights["model.embed_tokens.weight"],
        "decoder": {"layers": layers, "shared": {}, "norm": norm},
        "output": weights["lm_head.weight"].T,
    }


def from_gpt2(weights):
    """Parameters of ours from those of GPT-2: W as it is here, queries, keys and values in one."""

    def norm(prefix):
        return {"gain": weights[f"{prefix}.weight"], "bias": weights[f"{prefix}.bias"]}

    layers = {}
    for n in "01":
        own = f"transformer.h.{n}"
        attention, feed_forward = {}, {}
        for kind, axis in (("weight", 1), ("bias", 0)):
            letter = "W" if kind == "weight" else "b"
            three = np.split(weights[f"{own}.attn.c_attn.{kind}"], 3, axis=axis)
            attention |= {f"{letter}_{x}": W for x, W in zip("qkv", three, strict=True)}
            attention[f"{letter}_o"] = weights[f"{own}.attn.c_proj.{kind}"]
            feed_forward[f"{letter}_1"] = weights[f"{own}.mlp.c_fc.{kind}"]
            feed_forward[f"{letter}_2"] = weights[f"{own}.mlp.c_proj.{kind}"]
        layers[n] = {
            "attention": attention,
            "attention_norm": norm(f"{own}.ln_1"),
            "feed_forward": feed_forward,
            "feed_forward_norm": norm(f"{own}.ln_2"),
            "encoding": {},
        }
    shared = {"table": weights["transformer.wpe.weight"]}
    return {
        "embedding": weights["transformer.wte.weight"],
        "decoder": {"layers": layers, "shared": shared, "norm": norm("transformer.ln_f")},
    }


writers = pytest.mark.parametrize(
    ("name", "model", "convert", "atol"),
    [("llama", LLAMA, from_llama, NEAR), ("gpt2", GPT2, from_gpt2, SAME)],
    ids=["llama", "gpt2"],
)


@writers
def test_logits_are_those_of_llama_and_gpt2(name, model, convert, atol):
    g, weights = golden(name)
    logits = decode(convert(weights), model, g["tokens"])
    assert_allclose(logits, g["logits"], rtol=0, atol=atol)


def test_llama_turns_half_split_and_after_reordering_its_weights_interleaved_as_the_paper():
    g, weights = golden("llama")
    interleaved = replace(LLAMA, encoding=Rope(layout="interleaved"))
    wrong = decode(from_llama(weights), interleaved, g["tokens"])
    assert np.abs(wrong - g["logits"]).max() > 0.1
    for key, W in weights.items():
        if key.endswith(("q_proj.weight", "k_proj.weight")):
            weights[key] = rope_convert_weights(W, 4, to="interleaved")
    logits = decode(from_llama(weights), interleaved, g["tokens"])
    assert_allclose(logits, g["logits"], rtol=0, atol=NEAR)


@writers
def test_twenty_greedy_tokens_are_those_of_llama_and_gpt2_beside_padding_on_the_left(
    name, model, convert, atol
):
    g, weights = golden(name)
    params, prompt, real = convert(weights), g["prompt"], g["real"]
    assert real.sum(axis=1).tolist() == [5, 3] and len(np.unique(g["written"])) > 8
    for cached in (True, False):
        written = greedy(params, model, prompt, 20, real=real, cached=cached)
        assert_array_equal(written, g["written"])
    alone = greedy(params, model, prompt[1:, 2:], 20)
    assert_array_equal(alone, g["written"][1:])


@writers
def test_logits_behind_the_cache_of_the_library_are_those_of_the_whole_text_read_at_once(
    name, model, convert, atol
):
    g, weights = golden(name)
    text = np.concatenate([g["prompt"], g["written"]], axis=1)
    real = np.concatenate([g["real"], np.ones_like(g["written"], bool)], axis=1)
    logits = decode(convert(weights), model, text, real=real)[:, 4:-1]
    assert_allclose(logits, g["written_logits"], rtol=0, atol=NEAR)  # generate keeps float32
