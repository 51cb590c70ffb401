"""Gradients of all public functions that take data: finite differences, transposes, by hand."""

import math

import numpy as np
import pytest
from differences import slopes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import pe_numpy as pe
from pe_numpy import relative_distance, value_and_grad
from pe_numpy.relative import distance as spreading
from pe_numpy.training import primitives
from pe_numpy.transformer import layers

B, H, L, S, K, V, D, F = 2, 3, 5, 7, 4, 6, 8, 9
seeds = st.integers(0, 2**32 - 1)


def data(*shape, seed=0, low=-1.5, high=1.5):
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)


def several(f):
    """Join several results of f into one array."""

    def joined(*arrays):
        results = f(*arrays)
        if not isinstance(results, tuple):
            return results
        return np.concatenate([np.reshape(r, (-1,)) for r in results])

    return joined


def weighted(f, weights):
    return lambda *arrays: np.sum(weights * f(*arrays))


def gradients(number, arrays):
    params = {str(n): x for n, x in enumerate(arrays)}
    value, grads = value_and_grad(lambda params: number(*params.values()))(params)
    return value, list(grads.values())


# ---- every public function that takes data ------------------------------------------------------

ORDER = np.array([[3, 0, 1, 1, 4], [0, 1, 2, 3, 4]])[:, None]  # (B, 1, L), not consecutive
WINDOW = relative_distance(np.arange(3, 3 + L), np.arange(S))  # (L, S)
GATHER = relative_distance(ORDER, np.arange(S))  # (B, 1, L, S)
BATCHED = relative_distance(ORDER[:, 0], np.arange(S))  # (B, L, S)
SPAN = int(WINDOW.max() - WINDOW.min()) + 1
MASK = np.random.default_rng(3).random((B, 1, L, S)) < 0.7
MASK[0, 0, 2] = False  # a query that may attend to nothing
COUNTS = pe.causal_mask(np.arange(2, 2 + L), np.arange(S))
Q, KEYS, VALUES = data(B, H, L, K), data(B, H, S, K), data(B, H, S, 3)
SCORES = data(B, H, L, S)
TOKENS = np.array([[1, 0, 1, 5, 1], [2, 2, 4, 0, 3]])
UNDECIDED = np.array([[0.0, -np.inf, 1.0], [-np.inf, -np.inf, -np.inf], [2.0, 0.5, -np.inf]])
FLOW = data(4, 4, seed=5)
HALF = "half"


def penalty(slope, distance):
    """A bias of each head and distance, as `attention_blockwise` may take it."""
    return slope[:, None, None] * abs(distance).astype(slope.dtype)


CASES = {
    # attention
    "softmax": (pe.softmax, SCORES),
    "softmax of another axis": (lambda x: pe.softmax(x, axis=1), SCORES),
    "softmax with -inf": (lambda x: pe.softmax(UNDECIDED + x), data(3, 1)),
    "log_softmax": (pe.log_softmax, SCORES),
    "log_softmax of another axis": (lambda x: pe.log_softmax(x, axis=0), SCORES),
    "attend": (pe.attend, SCORES, VALUES),
    "attend with a mask": (lambda s, v: pe.attend(s, v, MASK), SCORES, VALUES),
    "attend, output alone": (lambda s, v: pe.attend(s, v, mask=MASK)[0], SCORES, VALUES),
    "attend, weights alone": (lambda s: pe.attend(s, VALUES, MASK)[1], SCORES),
    "attend with a sink": (lambda s, v, a: pe.attend(s, v, MASK, a), SCORES, VALUES, data(H)),
    "attend with a sink of each query": (
        lambda s, v, a: pe.attend(s, v, sink=a),
        *(SCORES, VALUES, data(B, H, L)),
    ),
    "attend with a sink, weights alone": (
        lambda s, a: pe.attend(s, VALUES, COUNTS, a)[1],
        *(SCORES, data(H, 1)),
    ),
    "attend, shared scores": (pe.attend, SCORES[0], VALUES),
    "attend, shared values": (pe.attend, SCORES, VALUES[0, 0]),
    "attention": (pe.attention, Q, KEYS, VALUES),
    "attention with everything": (
        lambda q, k, v, b: pe.attention(q, k, v, MASK, b, scale=0.7),
        *(Q, KEYS, VALUES, data(H, L, S)),
    ),
    "attention, one head of keys": (
        lambda q, k, v: pe.attention(q, k, v, COUNTS),
        *(Q, KEYS[:, :1], VALUES[:, :1]),
    ),
    "attention_blockwise": (
        lambda q, k, v, b: pe.attention_blockwise(q, k, v, MASK, b, block=3),
        *(Q, KEYS, VALUES, data(H, L, S)),
    ),
    "attention_blockwise, causal, a bias of distances": (
        lambda q, k, v, slope: pe.attention_blockwise(
            *(q, k, v), bias=lambda d: penalty(slope, d), block=2, causal=True
        ),
        *(Q, KEYS, VALUES, data(H)),
    ),
    "split_heads": (lambda x: pe.split_heads(x, 2) ** 2, data(B, L, D)),
    "merge_heads": (lambda x: pe.merge_heads(x) ** 2, Q),
    # place 1
    "sinusoidal added": (lambda x: pe.softmax(x + pe.sinusoidal(np.arange(L), D)), data(B, L, D)),
    "sinusoidal by position": (lambda p: pe.sinusoidal(p, D), data(L, high=9.0)),
    "learned": (lambda t: pe.learned(t, TOKENS) ** 2, data(V, D)),
    "hierarchical": (lambda t: pe.hierarchical(t, [0, 4, 15, 7, 7], 0.3) ** 2, data(4, D)),
    "recurrent": (lambda p, w: pe.recurrent(p, lambda p: np.tanh(w @ p), 6), data(4), FLOW),
    "recurrent, a step from outside": (
        lambda w: pe.recurrent(np.ones(4), lambda p: np.tanh(p @ w), 6),
        FLOW,
    ),
    "floater": (
        lambda p, w: pe.floater(p, lambda p, t: np.sin(t * (w @ p)), [0, 1, 1.5, 3], substeps=3),
        *(data(4), FLOW),
    ),
    "convolve": (pe.convolve, data(B, L), data(3)),
    "convolve, circular": (lambda x, w: pe.convolve(x, w, "circular"), data(B, L), data(3)),
    # place 2
    "rope": (lambda x: pe.rope(x, np.arange(L)) ** 2, Q),
    "rope, half": (lambda x: pe.rope(x, ORDER, layout=HALF) ** 2, Q),
    "rope by position": (pe.rope, Q, data(B, 1, L)),
    "rope by position, half": (lambda x, p: pe.rope(x, p, layout=HALF), Q, data(L)),
    "rope by frequency, partial": (lambda x, t: pe.rope(x, ORDER, t), data(B, H, L, D), data(3)),
    "rope by frequency, partial, half": (
        lambda x, t: pe.rope(x, [4, 1, 2, 8, 0], t, "half"),
        *(data(B, H, L, D), data(3)),
    ),
    "rope_nd, coordinates, a matrix a head": (
        lambda x, p, w: pe.rope_nd(x, p, w),
        *(Q, data(B, 1, L, 3), data(H, 3, 2)),
    ),
    "rope_nd, half, one place, partial": (
        lambda x, p, w: pe.rope_nd(x, p, w, HALF),
        *(data(B, H, L, D), data(1, 2), data(2, 3)),
    ),
    "rope, no frequencies": (lambda x: pe.rope(x, ORDER, []) ** 2, Q),
    "rope_convert_weights": (lambda w: pe.rope_convert_weights(w, 2) ** 2, data(8, 3)),
    # places 3 and 4
    "shaw_scores": (lambda q, k, t: pe.shaw_scores(q, k, t, WINDOW), Q, KEYS, data(5, K)),
    "shaw_scores by head": (
        lambda q, k, t: pe.shaw_scores(q, k, t, WINDOW),
        *(Q, KEYS, data(H, 5, K)),
    ),
    "shaw_scores of a batch": (
        lambda q, k, t: pe.shaw_scores(q, k, t, GATHER),
        *(Q, KEYS, data(5, K)),
    ),
    "shaw_scores of a batch by head": (
        lambda q, k, t: pe.shaw_scores(q, k, t, GATHER),
        *(Q, KEYS, data(H, 5, K)),
    ),
    "shaw_scores, one query array": (
        lambda q, k, t: pe.shaw_scores(q, k, t, WINDOW),
        *(Q[:1, :1], KEYS, data(H, 3, K)),
    ),
    "shaw_values": (lambda w, v, t: pe.shaw_values(w, v, t, WINDOW), SCORES, KEYS, data(5, K)),
    "shaw_values by head": (
        lambda w, v, t: pe.shaw_values(w, v, t, WINDOW),
        *(SCORES[:1], KEYS, data(H, 5, K)),
    ),
    "shaw_values of a batch": (
        lambda w, v, t: pe.shaw_values(w, v, t, GATHER),
        *(SCORES, KEYS, data(H, 5, K)),
    ),
    "relative_key_query_scores": (
        lambda q, k, t: pe.relative_key_query_scores(q, k, t, WINDOW),
        *(Q, KEYS, data(2 * SPAN + 1, K)),
    ),
    "relative_key_query_scores of a batch by head": (
        lambda q, k, t: pe.relative_key_query_scores(q, k, t, GATHER),
        *(Q, KEYS, data(H, 2 * int(abs(GATHER).max()) + 1, K)),
    ),
    "transformer_xl_scores": (
        lambda *a: pe.transformer_xl_scores(*a, WINDOW),
        *(Q, KEYS, data(H, SPAN, K), data(H, K), data(H, K, seed=1)),
    ),
    "relative_shift": (lambda x: pe.relative_shift(x) ** 2, data(H, L, S)),
    "t5_bias": (lambda t: pe.t5_bias(t, WINDOW, 4), data(8, H)),
    "t5_bias of a batch": (lambda t: pe.t5_bias(t, BATCHED, 9, False), data(8, H)),
    "tupe_scores": (pe.tupe_scores, Q, KEYS, data(H, L, K), data(H, S, K), data(H, L, S)),
    "deberta_scores": (
        lambda *a: pe.deberta_scores(*a, WINDOW),
        *(Q, KEYS, data(H, 6, K), data(H, 4, K)),
    ),
    "deberta_scores of a batch, as released": (
        lambda *a: pe.deberta_scores(*a, GATHER, GATHER),
        *(Q, KEYS, data(H, 6, K), data(H, 4, K)),
    ),
    "alibi_bias by slope": (lambda s: pe.alibi_bias(s, WINDOW), data(H)),
    "alibi_bias of a batch": (lambda s: pe.alibi_bias(s, BATCHED), data(H)),
    "biases in attention": (
        lambda q, t, s: pe.attend(
            q @ KEYS.mT + pe.t5_bias(t, WINDOW, 4) + pe.alibi_bias(s, WINDOW), VALUES, COUNTS
        ),
        *(Q, data(8, H), data(H)),
    ),
    "four_terms": (pe.four_terms, data(B, L, D), data(L, D), data(D, K), data(D, K, seed=1)),
    "attention_entropy": (pe.attention_entropy, pe.softmax(SCORES)),
    # layers
    "linear": (layers.linear, data(B, L, D), data(D, F), data(F)),
    "linear without a bias": (layers.linear, data(D), data(D, F)),
    "linear of views": (lambda x: layers.linear(np.swapaxes(x, 0, 1), FLOW), data(4, 3, 4)),
    "layer_norm": (pe.layer_norm, data(B, L, D), data(D), data(D, seed=1)),
    "layer_norm of almost constant tokens": (
        lambda x: pe.layer_norm(x * 1e-3, np.ones(D), np.zeros(D)),
        data(B, L, D),
    ),
    "rms_norm": (pe.rms_norm, data(B, L, D), data(D)),
    "standardize": (lambda x: layers.standardize(x, 0.1), data(B, L, D)),
    "standardize without centre": (lambda x: layers.standardize(x, 0.1, False), data(L, D)),
    "relu": (pe.relu, data(B, L, D)),
    "gelu": (pe.gelu, 3 * data(B, L, D)),
    "gelu, tanh": (lambda x: pe.gelu(x, "tanh"), 3 * data(B, L, D)),
    "silu": (pe.silu, 3 * data(B, L, D)),
    "feed_forward": (
        lambda x, w, b, u, c: layers.feed_forward({"W_1": w, "b_1": b, "W_2": u, "b_2": c}, x),
        *(data(B, L, D), data(D, F), data(F), data(F, D), data(D)),
    ),
    "feed_forward with a gate": (
        lambda x, w, g, u: layers.feed_forward({"W_1": w, "W_gate": g, "W_2": u}, x, "silu"),
        *(data(B, L, D), data(D, F), data(D, F, seed=1), data(F, D)),
    ),
    "embed_tokens": (lambda t: layers.embed_tokens(t, TOKENS) ** 2, data(V, D)),
    "dropout": (lambda x: layers.dropout(x, 0.4, np.random.default_rng(0)), data(B, L, D)),
    # loss
    "cross_entropy": (lambda x: pe.cross_entropy(x, TOKENS), data(B, L, V)),
    "cross_entropy, smoothed": (
        lambda x: pe.cross_entropy(x, TOKENS, label_smoothing=0.3),
        data(B, L, V),
    ),
    "cross_entropy, some ignored": (
        lambda x: pe.cross_entropy(x, TOKENS, ignore=1, label_smoothing=0.1),
        data(B, L, V),
    ),
}
cases = pytest.mark.parametrize(("f", "arrays"), [(f, a) for f, *a in CASES.values()], ids=CASES)


@cases
def test_gradient_by_every_argument_equals_central_differences(f, arrays):
    f, arrays = several(f), [np.array(x) for x in arrays]
    for x in arrays:
        x.flags.writeable = False  # whoever changes an input is caught
    shape = np.shape(f(*arrays))
    for weights in (data(*shape, seed=9), np.float64(1.0)):  # of the second, g is a read-only view
        number = weighted(f, weights)
        value, grads = gradients(number, arrays)
        assert_allclose(value, number(*arrays), rtol=1e-12, atol=1e-12)
        for n, (x, g) in enumerate(zip(arrays, grads, strict=True)):
            expected = slopes(number, arrays, n)
            assert g.shape == x.shape and g.dtype == x.dtype
            assert np.linalg.norm(g - expected) <= 1e-7 * np.linalg.norm(expected) + 1e-8


@cases
def test_gradient_by_one_argument_alone_is_the_same(f, arrays):
    """The others are plain arrays then, and meet a Tensor on either side."""
    f = several(f)
    number = weighted(f, data(*np.shape(f(*arrays)), seed=9))
    _, together = gradients(number, arrays)
    for n, x in enumerate(arrays):
        _, alone = value_and_grad(lambda x, n=n: number(*arrays[:n], x, *arrays[n + 1 :]))(x)
        assert_allclose(alone, together[n], rtol=0, atol=1e-12)


FLOAT64_ON_PURPOSE = {"sinusoidal", "recurrent", "softmax with", "attend, weights", "biases", "fl"}


@pytest.mark.parametrize(
    "name", [n for n in CASES if not any(n.startswith(w) for w in FLOAT64_ON_PURPOSE)]
)
def test_float32_stays_float32(name):
    f, *arrays = CASES[name]
    f, small = several(f), [x.astype(np.float32) for x in arrays]
    if name == "linear of views":
        f = lambda x: layers.linear(np.swapaxes(x, 0, 1), FLOW.astype(np.float32))  # noqa: E731
    value, grads = gradients(lambda *arrays: np.sum(f(*arrays)), small)
    assert value.dtype == np.float32
    _, exact = gradients(lambda *arrays: np.sum(f(*arrays)), [x.astype(float) for x in small])
    for g, expected in zip(grads, exact, strict=True):
        assert g.dtype == np.float32
        assert np.linalg.norm(g - expected) <= 1e-5 * np.linalg.norm(expected) + 2e-5


def test_every_function_that_has_a_rule_is_tested_here():
    tested = {
        *(pe.softmax, pe.log_softmax, pe.attend, pe.rope, pe.rope_nd, pe.relu, pe.gelu, pe.silu),
        *(layers.linear, layers.standardize, pe.cross_entropy, spreading.window_of),
        *(spreading.spread_products, spreading.spread_sums),
    }
    assert set(primitives.RULES) == tested


# ---- theorems -----------------------------------------------------------------------------------


@given(seeds, st.sampled_from(["interleaved", "half"]))
def test_gradient_of_rope_turns_back(seed, layout):
    rng = np.random.default_rng(seed)
    x, g, at = rng.standard_normal((L, D)), rng.standard_normal((L, D)), rng.integers(-9, 9, L)
    _, back = value_and_grad(lambda x: np.sum(g * pe.rope(x, at, layout=layout)))(x)
    assert_allclose(back, pe.rope(g, -at, layout=layout), rtol=0, atol=1e-12)
    assert_allclose(pe.rope(back, at, layout=layout), g, rtol=0, atol=1e-12)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(-9, 9), seeds, st.booleans())
@pytest.mark.parametrize("rows", [2, 128])
@pytest.mark.parametrize("window", [True, False])
def test_three_ways_to_spread_are_each_others_transposes(rows, window, L, S, q0, seed, by_head):
    """<g, q . r> = <sum g r, q> = <sum g q, r>: one number, whichever of the three has the sum."""
    rng = np.random.default_rng(seed)
    distance = relative_distance(np.arange(q0, q0 + L), np.arange(S))
    distance = distance if window else np.array(distance)
    N, m = 5, 2
    q, g = rng.standard_normal((B, H, L, K)), rng.standard_normal((B, H, L, S))
    table = rng.standard_normal((H, N, K) if by_head else (N, K))

    def row_of(d):
        return np.clip(d, -m, m) + m

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spreading, "ROWS", rows)
        patch.setattr(primitives, "ROWS", rows)
        products = np.sum(g * spreading.spread_products(q, table, distance, row_of))
        sums = np.sum(q * spreading.spread_sums(g, table, distance, row_of))
        outer = primitives.spread_outer(g, q, table.shape, distance, row_of)
    assert outer.shape == ((B, H, N, K) if by_head else (N, K))
    assert_allclose(sums, products, rtol=0, atol=1e-10)
    assert_allclose(np.sum(outer * table), products, rtol=0, atol=1e-10)


def test_softmax_passes_nothing_back_to_scores_that_get_no_weight():
    def f(x):
        return np.sum(data(3, 3) * pe.softmax(x) + 0 * data(3, 3))

    g = value_and_grad(f)(UNDECIDED)[1]
    assert np.isfinite(g).all() and not g[np.isneginf(UNDECIDED)].any()
    assert_allclose(g.sum(axis=-1), 0, rtol=0, atol=1e-15)  # a constant added changes nothing


def test_masked_keys_and_lonely_queries_get_gradients_of_exactly_zero():
    mask = np.ones((L, S), bool)
    mask[:, 3], mask[2] = False, False
    _, (q, k, v) = gradients(
        lambda q, k, v: np.sum(np.square(pe.attention(q, k, v, mask)[0])), [Q, KEYS, VALUES]
    )
    assert not k[:, :, 3].any() and not v[:, :, 3].any() and not q[:, :, 2].any()
    assert all(np.isfinite(g).all() for g in (q, k, v))


def test_standardized_tokens_pass_back_no_mean_and_no_scale():
    """A constant added to a token, or a longer token, gives (almost) the same: so g has neither."""
    x = 100 * data(B, L, D)
    _, g = value_and_grad(lambda x: np.sum(data(D) * pe.layer_norm(x, np.ones(D), np.zeros(D))))(x)
    assert_allclose(g.sum(axis=-1), 0, rtol=0, atol=1e-14)
    assert_allclose((g * x).sum(axis=-1), 0, rtol=0, atol=1e-6)


# ---- by hand ------------------------------------------------------------------------------------


def test_cross_entropy_pulls_by_softmax_minus_target():
    x = np.log(np.array([[1.0, 2.0, 5.0], [1.0, 1.0, 2.0]]))
    _, g = value_and_grad(lambda x: pe.cross_entropy(x, [2, 0]))(x)
    assert_allclose(g, np.array([[1, 2, -3], [-6, 2, 4]]) / [[16], [16]], rtol=0, atol=1e-15)
    _, g = value_and_grad(lambda x: pe.cross_entropy(x, [2, 0], 0, 0.3))(x)
    expected = [[0.125 - 0.1, 0.25 - 0.1, 0.625 - 0.8], [0, 0, 0]]
    assert_allclose(g, expected, rtol=0, atol=1e-15)


def test_slopes_of_the_activations_by_hand():
    x = np.array([-1.0, 0.0, 2.0])
    assert value_and_grad(lambda x: np.sum(pe.relu(x)))(x)[1].tolist() == [0.0, 0.0, 1.0]
    phi = math.exp(-0.5) / math.sqrt(2 * math.pi)
    below = math.erfc(1 / math.sqrt(2)) / 2
    slope = value_and_grad(lambda x: np.sum(pe.gelu(x)))(x)[1]
    assert_allclose(slope[:2], [below - phi, 0.5], rtol=0, atol=1e-15)
    sigmoid = 1 / (1 + math.exp(-2))
    slope = value_and_grad(lambda x: np.sum(pe.silu(x)))(x)[1]
    assert_allclose(slope[1:], [0.5, sigmoid * (1 + 2 * (1 - sigmoid))], rtol=0, atol=1e-15)


def test_activations_far_out_have_slopes_of_zero_and_one_without_a_warning():
    x = np.array([-1e4, -40.0, 40.0, 1e4])
    for f in (pe.gelu, lambda x: pe.gelu(x, "tanh"), pe.silu):
        g = value_and_grad(lambda x, f=f: np.sum(f(x)))(x)[1]
        assert_allclose(g, [0, 0, 1, 1], rtol=0, atol=1e-14)


def test_lists_are_taken_beside_tensors():
    f = value_and_grad(lambda W: np.sum(layers.linear([[1.0, 2.0]], W, [0.5])))
    assert f(np.ones((2, 1)))[1].tolist() == [[1.0], [2.0]]
    f = value_and_grad(lambda b: np.sum(layers.linear([[1.0, 2.0]], [[1.0], [1.0]], b)))
    assert f(np.ones(1))[1].tolist() == [1.0]
    f = value_and_grad(lambda v: np.sum(pe.attend([[0.0, 0.0]], v)[0]))
    assert f(np.ones((2, 1)))[1].tolist() == [[0.5], [0.5]]
    f = value_and_grad(lambda s: np.sum(pe.attend(s, [[0.0], [1.0]])[0]))
    assert f(np.zeros((1, 2)))[1].tolist() == [[-0.25, 0.25]]
    f = value_and_grad(lambda a: np.sum(pe.attend([[[0, 0]]], [[3.0], [3.0]], sink=a)[0]))
    assert f(np.array([np.log(2)]))[1].tolist() == [-0.75]


def test_window_sums_its_diagonals():
    """A bias of one number a distance: each gets the sum of its diagonal."""
    _, g = value_and_grad(
        lambda t: np.sum(
            np.arange(6.0).reshape(1, 2, 3) * pe.t5_bias(t, relative_distance([0, 1], [0, 1, 2]), 9)
        )
    )(np.zeros((8, 1)))
    assert g[:, 0].tolist() == [0 + 4, 3, 0, 0, 0, 1 + 5, 2, 0]


def test_token_that_is_read_three_times_gets_three_gradients():
    _, g = value_and_grad(lambda t: np.sum(layers.embed_tokens(t, TOKENS, 1.0)))(np.ones((V, 2)))
    assert g.tolist() == [[2.0, 2.0], [3.0, 3.0], [2.0, 2.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (
            lambda x: pe.attention(Q, KEYS, VALUES, scale=x[0])[0],
            ValueError,
            "scale must be one re",
        ),
        (lambda x: abs(pe.complex_order(x[None], x, 0.0, [3])), TypeError, "is complex128"),
        (lambda x: pe.softmax([x, x]), TypeError, "plain array"),
        (lambda x: pe.cross_entropy(np.ones((2, 3)), x), ValueError, "targets must be whole num"),
    ],
)
def test_what_has_no_gradient_is_refused(f, error, message):
    with pytest.raises(error, match=message):
        value_and_grad(lambda x: np.sum(f(x)))(np.array([1.0, 2.0]))


def test_rows_of_gradients_are_separate_arrays():
    _, (a, b) = gradients(lambda a, b: np.sum(pe.rope(a, [0]) + b), [np.ones((1, 4)), np.ones(4)])
    a *= 0
    assert_array_equal(b, np.ones(4))
