"""The whole: every encoding differentiated inside the Transformer, and a model that learns."""

import numpy as np
import pytest
from builders import parts
from numpy.testing import assert_allclose

from pe_numpy import (
    Model,
    Sizes,
    cosine_schedule,
    cross_entropy,
    decode,
    encode,
    greedy,
    init_params,
    train,
    value_and_grad,
    yarn_scaling,
)
from pe_numpy.judging.tasks import LETTERS, reversal_batch
from pe_numpy.transformer.encodings import Rope, Sinusoidal, every_encoding

B, L, S, V = 3, 5, 4, 11
ENCODINGS = {
    **every_encoding(length=9, clip=2),
    "rope, half, YaRN": Rope(layout="half", scaling=lambda d, n: yarn_scaling(d, 4, 16)),
}


def loss_of(params, model, source, tokens, targets):
    """Loss of a batch with padding on both sides."""
    real = np.ones(source.shape, bool)
    real[0, -1] = False
    memory = encode(params, model, source, real) if "encoder" in params else None
    ours = np.ones(tokens.shape, bool)
    ours[1, 0] = False
    logits = decode(params, model, tokens, memory, None if memory is None else real, ours)
    return cross_entropy(logits, targets, ignore=0, label_smoothing=0.1)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("n_encoder_layers", [0, 1], ids=["decoder", "encoder-decoder"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_gradient_equals_the_slope_along_any_direction(name, n_encoder_layers, norm):
    choices = {"norm": norm, "activation": "gelu", "n_encoder_layers": n_encoder_layers}
    sizes, model = parts(vocabulary=V, d_ff=10, encoding=ENCODINGS[name], **choices)
    rng = np.random.default_rng(0)
    params = init_params(sizes, model, rng, np.float64)
    data = rng.integers(0, V, (B, S)), rng.integers(0, V, (B, L)), rng.integers(0, V, (B, L))
    value, grads = value_and_grad(loss_of)(params, model, *data)
    assert_allclose(value, loss_of(params, model, *data), rtol=0, atol=1e-13)
    for part in ("encoder", "decoder", "embedding", "output"):
        if part not in params:
            continue
        direction = random_like(params[part], rng)
        h = 1e-5
        up, down = (
            loss_of({**params, part: moved(params[part], direction, s * h)}, model, *data)
            for s in (1, -1)
        )
        assert_allclose(inner(grads[part], direction), (up - down) / (2 * h), rtol=1e-5, atol=1e-8)


def random_like(tree, rng):
    if isinstance(tree, dict):
        return {key: random_like(value, rng) for key, value in tree.items()}
    return rng.standard_normal(tree.shape)


def moved(tree, direction, step):
    if isinstance(tree, dict):
        return {key: moved(value, direction[key], step) for key, value in tree.items()}
    return tree + step * direction


def inner(tree, other):
    if isinstance(tree, dict):
        return sum(inner(value, other[key]) for key, value in tree.items())
    return float((tree * other).sum())


@pytest.mark.parametrize("name", every_encoding(8))
def test_every_parameter_of_every_encoding_gets_a_gradient_in_its_own_dtype(name):
    encoding = every_encoding(9, clip=2)[name]
    sizes, model = parts(vocabulary=V, d_ff=10, n_layers=1, encoding=encoding)
    rng = np.random.default_rng(0)
    params = init_params(sizes, model, rng)
    tokens = rng.integers(0, V, (B, L))
    _, grads = value_and_grad(loss_of)(params, model, tokens, tokens, tokens)
    silent = [path for path, g in leaves(grads) if not g.any()]
    assert all(g.dtype == np.float32 for _, g in leaves(grads))
    assert silent in ([], ["/decoder/layers/0/attention/b_k"]), silent  # softmax ignores b_k


def leaves(tree, path=""):
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, f"{path}/{key}")
    else:
        yield path, tree


def test_string_reversal_is_learned_to_99_percent_and_read_off_the_anti_diagonal():
    """One seed of the five that `make bench` trains."""
    model = Model(2, Sinusoidal(), cross_heads=1)
    sizes = Sizes(len(LETTERS), 32, 64, n_layers=1, n_encoder_layers=1)

    def loss(params, batch, rng):
        real = batch["source"] != 0
        memory = encode(params, model, batch["source"], real, rng=rng)
        logits = decode(params, model, batch["inputs"], memory, real, rng=rng)
        return cross_entropy(logits, batch["targets"], ignore=0)

    steps = 1000
    params, losses = train(
        init_params(sizes, model, np.random.default_rng(0)),
        value_and_grad(loss),
        lambda rng: reversal_batch(rng, 32),
        steps,
        lambda t: cosine_schedule(t, steps, 4e-3),
    )
    assert losses[0] > 2 and np.mean(losses[-50:]) < 0.02

    test = reversal_batch(np.random.default_rng(1), 500, held_out=True)
    real, counts = test["source"] != 0, test["targets"] != 0
    begin, end = test["inputs"][:, :1], LETTERS.index("$")
    written = greedy(params, model, begin, 11, source=test["source"], source_real=real, end=end)
    right = (written == test["targets"][:, : written.shape[1]]) | ~counts[:, : written.shape[1]]
    assert right.all(axis=1).mean() >= 0.99

    watch = {}
    memory = encode(params, model, test["source"], real)
    decode(params, model, test["inputs"], memory, real, watch=watch)
    looked_at = watch["cross 0"][:, 0].argmax(-1)  # (B, L)
    lengths = real.sum(axis=1, keepdims=True)
    letters = np.arange(counts.shape[1]) < lengths
    expected = lengths - 1 - np.arange(counts.shape[1])
    assert (looked_at == expected)[letters].mean() > 0.9
