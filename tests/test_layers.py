"""The layers between the attentions: loop oracles, theorems, published values, dtype, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import gelu, layer_norm, relu, rms_norm, silu
from pe_numpy.transformer.layers import dropout, embed_tokens, feed_forward, linear

seeds = st.integers(0, 2**32 - 1)
B, L, D, F, V = 2, 3, 4, 5, 7


def data(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


X, W, U = data(B, L, D), data(D, F), data(F, D)
GAIN, BIAS, B_1 = data(D, seed=1), data(D, seed=2), data(F)


# ---- loop oracles -------------------------------------------------------------------------------


def test_linear_equals_its_sum_over_components():
    y = linear(X, W, B_1)
    assert y.shape == (B, L, F)
    for b, i, f in np.ndindex(B, L, F):
        expected = sum(X[b, i, d] * W[d, f] for d in range(D)) + B_1[f]
        assert_allclose(y[b, i, f], expected, rtol=0, atol=1e-14)
    assert_allclose(linear(X, W), y - B_1, rtol=0, atol=1e-14)
    assert linear(X[0, 0], W).shape == (F,)
    assert_allclose(linear(X[0, 0], W, B_1), y[0, 0], rtol=0, atol=1e-14)


def test_linear_of_nothing_and_of_views():
    assert linear(np.zeros((2, 0, D)), W).shape == (2, 0, F)
    assert linear(np.zeros((3, 0)), np.zeros((0, F)), B_1).tolist() == [B_1.tolist()] * 3
    assert_allclose(linear(np.swapaxes(X, 0, 1), W), np.swapaxes(linear(X, W), 0, 1), rtol=1e-14)
    assert_allclose(linear(X, U.T), X @ U.T, rtol=0, atol=1e-15)


@pytest.mark.parametrize("eps", [1e-5, 0.3])
def test_layer_norm_equals_its_formula_token_by_token(eps):
    y = layer_norm(X, GAIN, BIAS, eps)
    for b, i in np.ndindex(B, L):
        row = [float(x) for x in X[b, i]]
        mean = sum(row) / D
        variance = sum((x - mean) ** 2 for x in row) / D
        for d in range(D):
            expected = GAIN[d] * (row[d] - mean) / math.sqrt(variance + eps) + BIAS[d]
            assert_allclose(y[b, i, d], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("eps", [1e-6, 0.3])
def test_rms_norm_equals_its_formula_token_by_token(eps):
    y = rms_norm(X, GAIN, eps)
    for b, i in np.ndindex(B, L):
        square = sum(float(x) ** 2 for x in X[b, i]) / D
        expected = GAIN * X[b, i] / math.sqrt(square + eps)
        assert_allclose(y[b, i], expected, rtol=0, atol=1e-14)


def test_gelu_is_exact_to_twelve_digits_everywhere():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.linspace(-12, 12, 24_001), 3 * rng.standard_normal(5000)])
    expected = [t * math.erfc(-t / math.sqrt(2)) / 2 for t in x.tolist()]
    assert_allclose(gelu(x), expected, rtol=0, atol=1e-13)
    small = x.astype(np.float32)
    expected = [t * math.erfc(-t / math.sqrt(2)) / 2 for t in small.tolist()]
    assert_allclose(gelu(small), expected, rtol=3e-7, atol=3e-7)


def test_gelu_by_tanh_and_silu_equal_their_formulas():
    x = np.linspace(-30, 30, 601)
    for t, z, s in zip(x.tolist(), gelu(x, "tanh"), silu(x), strict=True):
        inner = math.sqrt(2 / math.pi) * (t + 0.044715 * t**3)
        assert_allclose(z, 0.5 * t * (1 + math.tanh(inner)), rtol=0, atol=1e-14)
        assert_allclose(s, t / (1 + math.exp(-t)), rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "function"),
    [("relu", relu), ("gelu", gelu), ("gelu_tanh", lambda x: gelu(x, "tanh")), ("silu", silu)],
)
def test_feed_forward_is_two_projections_around_its_activation(name, function):
    params = {"W_1": W, "b_1": B_1, "W_2": U, "b_2": BIAS}
    expected = function(X @ W + B_1) @ U + BIAS
    assert_allclose(feed_forward(params, X, name), expected, rtol=0, atol=1e-13)
    assert_allclose(
        feed_forward({"W_1": W, "W_2": U}, X, name), function(X @ W) @ U, rtol=0, atol=1e-13
    )
    gated = {**params, "W_gate": data(D, F, seed=9)}
    expected = (function(X @ gated["W_gate"]) * (X @ W + B_1)) @ U + BIAS
    assert_allclose(feed_forward(gated, X, name), expected, rtol=0, atol=1e-13)


def test_feed_forward_takes_relu_by_default():
    params = {"W_1": W, "W_2": U}
    assert_array_equal(feed_forward(params, X), feed_forward(params, X, "relu"))


def test_embedding_is_the_row_of_each_token_times_the_root_of_its_width():
    table, tokens = data(V, D), np.array([[6, 0], [3, 3], [1, 6]])
    vectors = embed_tokens(table, tokens)
    assert vectors.shape == (3, 2, D)
    for place in np.ndindex(3, 2):
        assert_allclose(vectors[place], 2 * table[tokens[place]], rtol=1e-15)  # sqrt(4)
    assert_array_equal(embed_tokens(table, tokens, 1.0), table[tokens])
    assert_array_equal(embed_tokens(table, tokens, 0.5), 0.5 * table[tokens])
    assert embed_tokens(table, 3).shape == (D,) and embed_tokens(table, []).shape == (0, D)


# ---- theorems -----------------------------------------------------------------------------------


@given(seeds, st.floats(0.1, 100), st.floats(-100, 100))
def test_layer_norm_forgets_scale_and_shift_of_a_token(seed, scale, shift):
    x = data(L, 8, seed=seed)
    expected = layer_norm(x, np.ones(8), np.zeros(8), 1e-12)
    moved = layer_norm(scale * x + shift, np.ones(8), np.zeros(8), 1e-12 * scale**2)
    assert_allclose(moved, expected, rtol=0, atol=1e-9)
    assert_allclose(expected.mean(axis=-1), 0, rtol=0, atol=1e-12)
    assert_allclose(expected.var(axis=-1), 1, rtol=0, atol=1e-9)


@given(seeds, st.floats(0.1, 100))
def test_rms_norm_forgets_scale_alone_and_is_layer_norm_of_centred_tokens(seed, scale):
    x = data(L, 8, seed=seed)
    expected = rms_norm(x, np.ones(8), 1e-12)
    assert_allclose(rms_norm(scale * x, np.ones(8), 1e-12 * scale**2), expected, atol=1e-9, rtol=0)
    centred = x - x.mean(axis=-1, keepdims=True)
    assert_allclose(
        rms_norm(centred, np.ones(8), 1e-5),
        layer_norm(x, np.ones(8), np.zeros(8), 1e-5),
        rtol=0,
        atol=1e-12,
    )


def test_constant_tokens_become_the_bias_and_not_nan():
    x = np.full((L, D), 7.0)
    assert_array_equal(layer_norm(x, GAIN, BIAS), np.tile(BIAS, (L, 1)))
    assert_array_equal(rms_norm(0 * x, GAIN), 0 * x)


@given(st.floats(-40, 40))
def test_activations_of_opposite_numbers_differ_by_the_number(x):
    """x f(x) with f(x) + f(-x) = 1 gives z(x) - z(-x) = x."""
    for z in (relu, gelu, lambda x: gelu(x, "tanh"), silu):
        assert_allclose(z(x) - z(-x), x, rtol=0, atol=1e-12)


@given(seeds, st.floats(0.05, 0.95))
def test_dropout_keeps_the_mean_and_drops_its_share(seed, rate):
    x = np.ones((100, 100))
    y = dropout(x, rate, np.random.default_rng(seed))
    kept = y != 0
    assert_allclose(y[kept], 1 / (1 - rate), rtol=1e-12)
    assert abs(kept.mean() - (1 - rate)) < 6 * math.sqrt(rate * (1 - rate) / x.size)


def test_dropout_without_a_generator_or_a_rate_is_off():
    assert_array_equal(dropout(X, 0.5), X)
    assert_array_equal(dropout(X, 0.5, None), X)
    rng = np.random.default_rng(0)
    assert_array_equal(dropout(X, 0, rng), X)
    for seed in (0, np.random.RandomState(0)):
        with pytest.raises(ValueError, match="dropout: rng must be a generator, such as"):
            dropout(X, 0, seed)
    assert rng.random() == np.random.default_rng(0).random()  # nothing was drawn
    first, second = (dropout(X, 0.5, np.random.default_rng(3)) for _ in range(2))
    assert_array_equal(first, second)


# ---- published values ---------------------------------------------------------------------------


def test_gelu_values_of_the_papers_formulas():
    assert gelu([1.0, -1.0, 0.5, 3.0]).round(6).tolist() == [0.841345, -0.158655, 0.345731, 2.99595]
    assert gelu([1.0, -1.0], "tanh").round(6).tolist() == [0.841192, -0.158808]
    x = np.linspace(-6, 6, 12_001)
    assert 4.7e-4 < np.abs(gelu(x) - gelu(x, "tanh")).max() < 5e-4


def test_worked_example_of_both_norms():
    """(1, 2, 3, 4): mean 2.5, variance 1.25, mean square 7.5."""
    x, one = [1.0, 2.0, 3.0, 4.0], np.ones(4)
    assert layer_norm(x, one, 0 * one).round(4).tolist() == [-1.3416, -0.4472, 0.4472, 1.3416]
    assert rms_norm(x, one).round(4).tolist() == [0.3651, 0.7303, 1.0954, 1.4606]


# ---- dtype, purity, bad input -------------------------------------------------------------------


def params_of(dtype):
    return {"W_1": W.astype(dtype), "W_2": U.astype(dtype), "b_1": B_1.astype(dtype)}


LAYERS = {
    "linear": lambda x: linear(x, W.astype(x.dtype), B_1.astype(x.dtype)),
    "layer_norm": lambda x: layer_norm(x, GAIN, BIAS),
    "rms_norm": lambda x: rms_norm(x, GAIN),
    "relu": relu,
    "gelu": gelu,
    "gelu, tanh": lambda x: gelu(x, "tanh"),
    "silu": silu,
    "feed_forward": lambda x: feed_forward(params_of(x.dtype), x, "gelu"),
    "embed_tokens": lambda x: embed_tokens(x[0], [[1, 0, 2]], 1.5),
    "dropout": lambda x: dropout(x, 0.3, np.random.default_rng(0)),
}


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 2e-2), (np.float32, 2e-6)])
def test_layers_keep_the_dtype_of_their_input_and_leave_it_alone(layer, dtype, tolerance):
    x = X.astype(dtype)
    kept = x.copy()
    y = layer(x)
    assert y.dtype == dtype
    assert_array_equal(x, kept)
    assert_allclose(y.astype(float), layer(x.astype(float)), rtol=tolerance, atol=tolerance)


def test_float16_is_computed_in_float32():
    x = np.full((1, 100), 300.0, np.float16)
    x[0, :50] = -300  # the sum of squares is 9e6, beyond float16
    for y in (
        layer_norm(x, np.ones(100, np.float16), np.zeros(100, np.float16)),
        rms_norm(x, np.ones(100, np.float16)),
    ):
        assert_array_equal(np.abs(y), np.ones((1, 100), np.float16))
    assert silu(np.array([-10.0], np.float16))[0] == np.float16(-10 / (1 + math.exp(10)))
    for seed in range(20):  # rounded once, after the bias
        x, w, b = (data(*s, dtype=np.float16, seed=seed) for s in ((L, D), (D, F), (F,)))
        exact = x.astype(float) @ w.astype(float) + b.astype(float)
        assert_array_equal(linear(x, w, b), exact.astype(np.float16))


@pytest.mark.parametrize("activation", [relu, gelu, lambda x: gelu(x, "tanh"), silu])
def test_activations_of_extremes_give_no_warning_and_nan_stays_visible(activation):
    x = np.array([-1e30, -1e4, 0.0, 1e4, 1e30])
    assert_allclose(activation(x), [0, 0, 0, 1e4, 1e30], rtol=1e-15)
    assert np.isnan(activation(np.array([np.nan]))[0])
    assert activation(np.zeros((0, 3))).shape == (0, 3)


def test_integers_become_float64():
    for y in (relu([1, -1]), gelu([1, -1]), silu([1]), rms_norm([1, 2], [1, 1]), dropout([1], 0)):
        assert y.dtype == np.float64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear(X, U), r"linear: W must have the axes \(D, F\) with D = 4; got .*\(5, 4\)"),
        (lambda: linear(X, W[0]), r"linear: W must have the axes .*got shape \(5,\)"),
        (lambda: linear(1.0, W), r"linear: x must have the axes \(..., D\); got shape \(\)"),
        (lambda: linear(X, W, BIAS), r"linear: b must have the shape \(F,\) = \(5,\); got \(4,\)"),
        (lambda: layer_norm(X, B_1, BIAS), r"layer_norm: gain must have the shape \(D,\) = \(4,\)"),
        (lambda: layer_norm(X, GAIN, B_1), r"layer_norm: bias must have the shape \(D,\) = \(4,\)"),
        (lambda: layer_norm(X, GAIN, BIAS, 0), "layer_norm: eps must be above 0; got 0"),
        (lambda: layer_norm(np.ones((2, 0)), [], []), "layer_norm: x must have a width D of at"),
        (lambda: layer_norm(X * 1j, GAIN, BIAS), "layer_norm: x must hold real numbers"),
        (lambda: rms_norm(X, [1.0]), r"rms_norm: gain must have the shape .*got \(1,\)"),
        (lambda: rms_norm(X, GAIN, -1), "rms_norm: eps must be above 0; got -1"),
        (lambda: rms_norm(3.0, GAIN), r"rms_norm: x must have the axes \(..., D\)"),
        (lambda: relu(["a"]), "relu: x must hold real numbers"),
        (lambda: gelu(X, "erf"), "gelu: approximate must be 'none' or 'tanh'; got 'erf'"),
        (lambda: gelu([1j]), "gelu: x must hold real numbers"),
        (lambda: silu([1j]), "silu: x must hold real numbers"),
        (
            lambda: feed_forward({"W_1": W}, X),
            r"params must hold .*got \['W_1'\], without \['W_2'\]",
        ),
        (lambda: feed_forward({"W_1": W, "W_2": U}, X, "tanh"), "activation must be 'relu' or 'ge"),
        (lambda: embed_tokens(data(V), [1]), r"embed_tokens: table must have the axes \(V, D\)"),
        (lambda: embed_tokens(data(V, D), [V]), "tokens must be from 0 to V - 1 = 6; got 7"),
        (lambda: embed_tokens(data(V, D), [0, -1]), "from 0 to V - 1 = 6; got -1"),
        (lambda: embed_tokens(data(V, D), [0.5]), "embed_tokens: tokens must be whole numbers"),
        (lambda: embed_tokens(data(V, D), [0], True), "scale must be one real number; got True"),
        (lambda: embed_tokens(data(V, D), [0], np.inf), "embed_tokens: scale must be finite"),
        (lambda: dropout(X, 1.0), "dropout: rate must be from 0 to below 1; got 1"),
        (lambda: dropout(X, -0.1), "dropout: rate must be from 0 to below 1; got -0.1"),
        (lambda: dropout(X, None), "dropout: rate must be one real number"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
