"""Two pages that a newcomer reads first: the Transformer of 2017, and a decoder of today."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from test_shelf import FOLDERS, golden

from pe_numpy import (
    Model,
    Sizes,
    cosine_schedule,
    cross_entropy,
    decode,
    encode,
    greedy,
    init_params,
    load_model,
    train,
    value_and_grad,
)
from pe_numpy.judging.tasks import LETTERS, reversal_batch
from pe_numpy.transformer import decoder, original
from pe_numpy.transformer.encodings import Rope, Sinusoidal

B, L, S, H, G, D, V = 2, 5, 7, 4, 2, 16, 11
STEPS = 400
PAPER = Model(H, Sinusoidal(), norm="post")
PAPER_SIZES = Sizes(V, D, 24, n_layers=3, n_encoder_layers=2, tied=True)
TODAY = Model(H, Rope(layout="half"), activation="silu", scale=1.0)
TODAY_SIZES = Sizes(V, D, 24, n_layers=3, n_kv_heads=G, gated=True, biases=False, rms=True)


def drawn(sizes, model, dtype=np.float64):
    """Parameters without a bias of zero or a gain of one, and source and target tokens."""
    rng = np.random.default_rng(0)

    def jittered(tree):
        if isinstance(tree, dict):
            return {key: jittered(each) for key, each in tree.items()}
        return tree + (0.1 * rng.standard_normal(tree.shape)).astype(dtype)

    params = jittered(init_params(sizes, model, rng, dtype))
    return params, rng.integers(0, V, (B, S)), rng.integers(0, V, (B, L))


def flat(tree):
    if isinstance(tree, dict):
        for each in tree.values():
            yield from flat(each)
    else:
        yield tree


def test_the_original_gives_the_logits_of_the_model_with_the_choices_of_the_paper():
    params, source, target = drawn(PAPER_SIZES, PAPER)
    memory = original.encode(params, source, H)
    assert_allclose(memory, encode(params, PAPER, source), rtol=0, atol=1e-12)
    logits = original.decode(params, target, memory, H)
    assert_allclose(logits, decode(params, PAPER, target, memory), rtol=0, atol=1e-12)


def test_the_decoder_of_today_gives_the_logits_of_the_model_with_its_choices():
    params, _, tokens = drawn(TODAY_SIZES, TODAY)
    logits = decoder.decode(params, tokens, H)
    assert_allclose(logits, decode(params, TODAY, tokens), rtol=0, atol=1e-12)
    cache = decoder.Cache()
    parts = [decoder.decode(params, tokens[:, a:b], H, cache) for a, b in ((0, 2), (2, 3), (3, L))]
    assert_allclose(np.concatenate(parts, axis=1), logits, rtol=0, atol=1e-12)
    assert_array_equal(decoder.greedy(params, tokens, H, 6), greedy(params, TODAY, tokens, 6))


def test_the_decoder_of_today_reads_a_released_llama():
    plain = {"rope_scaling": None, "rope_parameters": None, "rope_theta": 500.0}
    m = load_model(FOLDERS[0].parent / "llama", np.float64, plain)
    p, s, tokens = m.parameters, m.settings, golden("llama")["tokens"]
    layers = {
        n: {
            "attention": {name: layer[name] for name in ("W_q", "W_k", "W_v", "W_o")},
            "attention_norm": {"gain": layer["norm_1"]},
            "feed_forward": layer["network"],
            "feed_forward_norm": {"gain": layer["norm_2"]},
        }
        for n, layer in p["layers"].items()
    }
    mine = {"embedding": p["embedding"], "output": p["head"]}
    mine["decoder"] = {"layers": layers, "norm": {"gain": p["norm"]}}
    logits = decoder.decode(mine, tokens, s.H, base=500.0, eps=s.eps)
    assert_allclose(logits, m.logits(tokens), rtol=0, atol=1e-12)


@pytest.mark.parametrize("page", [original, decoder])
def test_float32_stays_float32(page):
    if page is original:
        params, source, target = drawn(PAPER_SIZES, PAPER, np.float32)
        logits = original.decode(params, target, original.encode(params, source, H), H)
    else:
        params, _, target = drawn(TODAY_SIZES, TODAY, np.float32)
        logits = decoder.decode(params, target, H)
    assert logits.dtype == np.float32


def test_gradients_by_the_tape_equal_those_of_the_model():
    params, source, target = drawn(PAPER_SIZES, PAPER)

    def of_page(params):
        logits = original.decode(params, target, original.encode(params, source, H), H)
        return cross_entropy(logits, target)

    def of_model(params):
        return cross_entropy(decode(params, PAPER, target, encode(params, PAPER, source)), target)

    (loss, gradients), (expected, theirs) = (value_and_grad(f)(params) for f in (of_page, of_model))
    assert_allclose(loss, expected, rtol=0, atol=1e-12)
    for one, other in zip(flat(gradients), flat(theirs), strict=True):
        assert_allclose(one, other, rtol=0, atol=1e-12)
    params, _, tokens = drawn(TODAY_SIZES, TODAY)
    (_, gradients), (_, theirs) = (
        value_and_grad(lambda p, f=f: cross_entropy(f(p), tokens))(params)
        for f in (lambda p: decoder.decode(p, tokens, H), lambda p: decode(p, TODAY, tokens))
    )
    for one, other in zip(flat(gradients), flat(theirs), strict=True):
        assert_allclose(one, other, rtol=0, atol=1e-12)


def test_the_original_learns_to_reverse():
    sizes = Sizes(len(LETTERS), 32, 64, n_layers=1, n_encoder_layers=1, tied=True)
    start = init_params(sizes, Model(2, Sinusoidal(), norm="post"), np.random.default_rng(0))

    def logits(params, batch):
        memory = original.encode(params, batch["source"], 2)
        return original.decode(params, batch["inputs"], memory, 2)

    def loss(params, batch, rng):
        return cross_entropy(logits(params, batch), batch["targets"])

    params, _ = train(
        start,
        value_and_grad(loss),
        lambda rng: reversal_batch(rng, 32, shortest=5, longest=5),
        STEPS,
        lambda t: cosine_schedule(t, STEPS, 5e-3),
        progress=False,
    )
    test = reversal_batch(np.random.default_rng(1), 500, 5, 5, held_out=True)
    right = logits(params, test).argmax(axis=-1) == test["targets"]
    assert right.mean() > 0.99


@pytest.mark.parametrize("page, most", [(original, 70), (decoder, 90)])
def test_a_page_is_a_page_and_needs_numpy_alone(page, most):
    source = inspect.getsource(page)
    assert source.count("\n") <= most
    assert "pe_numpy" not in source and "raise" not in source
    assert {line for line in source.splitlines() if line.startswith(("import", "from"))} == {
        "import math",
        "import numpy as np",
    }
