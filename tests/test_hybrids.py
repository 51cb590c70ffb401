"""Recurrent layers of the study's hybrids: they are the functions, causal, with gradients."""

import numpy as np
import pytest

from pe_numpy import Cache, Model, Sizes, cross_entropy, decode, init_params, value_and_grad
from pe_numpy.judging.experiment import draw, recipe, sizes
from pe_numpy.judging.experiment import model as model_of
from pe_numpy.judging.hybrids import EPS, GatedDelta, GatedLinear
from pe_numpy.relative.recurrence import delta_rule, gated_linear_attention
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.encodings import Encoding
from pe_numpy.transformer.encodings.base import Shape


def of_layer(layer, seed=0):
    """Queries, keys, values, tokens, and what the layer makes of them."""
    rng = np.random.default_rng(seed)
    q, k, v = rng.standard_normal((3, 2, 3, 9, 4))
    params = layer.layer(rng, Shape(12, 3))
    gates = layer.gates(params, rng.standard_normal((2, 9, 12)))
    context = Context(np.arange(9), mask=np.tri(9, dtype=bool)[None, None], gates=gates)
    weights = layer.scores(params, q, k, context)
    return q, k, v, gates, layer.mix(params, weights, v, context)


def unit_rms(x):
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPS)


def test_a_gated_linear_layer_is_the_function():
    q, k, v, gates, outputs = of_layer(GatedLinear())
    by_function = gated_linear_attention(q / 2, k, v, gates[..., None])[0]  # K = 4
    assert np.allclose(outputs, unit_rms(by_function), rtol=0, atol=1e-12)
    assert gates.min() < np.log(1 / (1 + np.exp(-2.0))) < gates.max(), "each token has its own"


def test_a_gated_delta_layer_is_the_function():
    q, k, v, gates, outputs = of_layer(GatedDelta())
    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    decay, beta = gates[:, :3, :, None], gates[:, 3:]
    by_function = delta_rule(q, k, v, beta, decay)[0]
    assert np.allclose(outputs, unit_rms(by_function), rtol=0, atol=1e-5)  # lengths have an EPS
    assert ((beta > 0) & (beta < 1)).all()


@pytest.mark.parametrize("layer", [GatedLinear(), GatedDelta()])
def test_a_hybrid_decodes_with_a_cache_what_it_reads_at_once(layer):
    model = Model(2, (layer, Encoding()))
    params = init_params(Sizes(11, 12, 24, n_layers=2), model, np.random.default_rng(0), np.float64)
    tokens = np.random.default_rng(1).integers(0, 11, (2, 12))
    cache = Cache(2, 12)
    parts = [decode(params, model, tokens[:, n : n + 4], cache=cache) for n in (0, 4, 8)]
    whole = decode(params, model, tokens)
    assert np.allclose(np.concatenate(parts, axis=1), whole, rtol=0, atol=1e-10)
    later = tokens.copy()
    later[:, 7:] = 0
    assert np.array_equal(decode(params, model, later)[:, :7], whole[:, :7]), "it is causal"


@pytest.mark.parametrize("encoding", ["gated_linear_nope", "gated_delta_nope"])
def test_a_hybrid_has_gradients(encoding):
    c = recipe("offset", encoding, n_layers=2, d_model=8, n_heads=2, steps=1, length=6)
    own = model_of(c)
    params = init_params(sizes(c), own, np.random.default_rng(0), np.float64)
    batch = draw("offset", np.random.default_rng(0), 2, 6)

    def loss(params):
        return cross_entropy(decode(params, own, batch["inputs"]), batch["targets"], ignore=-1)

    _, gradient = value_and_grad(loss)(params)
    for name in params["decoder"]["layers"]["0"]["encoding"]:
        table = params["decoder"]["layers"]["0"]["encoding"][name]
        at = (0,) * table.ndim
        here, step = table[at], 1e-6
        table[at] = here + step
        up = loss(params)
        table[at] = here - step
        slope = (up - loss(params)) / (2 * step)
        table[at] = here
        found = gradient["decoder"]["layers"]["0"]["encoding"][name][at]
        assert np.isclose(found, slope, rtol=1e-4, atol=1e-9) and abs(slope) > 1e-9, name
