"""FoX: loop oracle, theorems, the hand-worked table, bad input."""

import math

import numpy as np
import pytest
from differences import slopes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    alibi_bias,
    attention,
    attention_blockwise,
    causal_mask,
    forgetting_bias,
    relative_distance,
    value_and_grad,
)

B, H, L, S, K = 2, 3, 5, 7, 4
LATE, KEYS = np.arange(S - L, S), np.arange(S)
CAUSAL = causal_mask(LATE, KEYS)
seeds = st.integers(0, 2**32 - 1)


def gates(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).uniform(0.01, 1, shape)


def sums(f):
    return np.cumsum(np.log(f), axis=-1)


def test_exp_of_the_bias_equals_the_product_of_the_gates_after_the_key():
    f = gates(B, H, S)
    c = sums(f)
    bias = forgetting_bias(c[..., S - L :], c)
    assert bias.shape == (B, H, L, S)
    for b, h, i, j in np.ndindex(B, H, L, S):
        at, product = LATE[i], 1.0
        for t in range(j + 1, at + 1):
            product *= f[b, h, t]
        if j > at:  # above the diagonal: the quotient, which a causal mask hides
            product = 1 / math.prod(f[b, h, at + 1 : j + 1])
        assert_allclose(math.exp(bias[b, h, i, j]), product, rtol=1e-12)


# ---- theorems -----------------------------------------------------------------------------------


@given(st.floats(0.05, 0.999), seeds)
def test_equal_gates_are_alibi_with_the_slope_minus_ln_f(f, seed):
    c = sums(np.full(S, f))
    bias = forgetting_bias(c[S - L :], c)
    expected = alibi_bias([-math.log(f)], relative_distance(LATE, KEYS))[0]
    assert_allclose(bias[CAUSAL], expected[CAUSAL], rtol=0, atol=1e-12)


def test_softplus_of_cable_is_the_same_bias_with_the_sign_of_the_gate_turned():
    z = np.random.default_rng(1).standard_normal((H, S))
    fox = sums(1 / (1 + np.exp(-z)))
    cable = np.cumsum(-np.logaddexp(0, -z), axis=-1)  # softplus of -z
    assert_allclose(forgetting_bias(fox, fox), forgetting_bias(cable, cable), rtol=0, atol=1e-12)


@given(seeds)
def test_two_more_components_of_q_and_k_give_the_same_attention_in_blocks(seed):
    rng = np.random.default_rng(seed)
    q, k, v = (rng.standard_normal((B, H, n, K)) for n in (L, S, S))
    c = sums(rng.uniform(0.1, 1, (B, H, S)))
    expected = attention(q, k, v, CAUSAL, forgetting_bias(c[..., S - L :], c))[0]
    root = math.sqrt(K + 2)  # the scale that attention will divide by
    ones = np.ones((B, H, S, 1))
    wide_q = root * np.concatenate(
        [q / math.sqrt(K), ones[..., :L, :], c[..., S - L :, None]], axis=-1
    )
    wide_k = np.concatenate([k, -c[..., None], ones], axis=-1)
    got = attention_blockwise(wide_q, wide_k, v, block=3, causal=True)
    assert_allclose(got, expected, rtol=0, atol=1e-12)


@given(seeds)
def test_a_gate_is_forgotten_by_all_keys_before_it_and_by_all_queries_from_it_on(seed):
    """Another first gate changes nothing; another gate at l moves queries >= l and keys < l."""
    f = np.random.default_rng(seed).uniform(0.1, 1, S)
    before = forgetting_bias(sums(f), sums(f))
    for l in range(S):
        other = f.copy()
        other[l] /= 2
        moved = forgetting_bias(sums(other), sums(other)) - before
        crosses = (KEYS[:, None] >= l) & (KEYS < l)
        below = np.tril(np.ones((S, S), bool))
        expected = np.where(crosses, -math.log(2), 0.0)
        assert_allclose(moved[below], expected[below], rtol=0, atol=1e-12)


def test_newest_query_gets_the_last_row_and_old_keys_may_be_dropped():
    c = sums(gates(H, S))
    whole = forgetting_bias(c, c)
    assert_array_equal(forgetting_bias(c[:, -1:], c), whole[:, -1:])
    assert_array_equal(forgetting_bias(c[:, -1:], c[:, 3:]), whole[:, -1:, 3:])
    again = sums(gates(H, S)[:, 3:])  # and the sum may begin anew
    assert_allclose(forgetting_bias(again, again), whole[:, 3:, 3:], rtol=0, atol=1e-12)


def test_gradient_of_a_logarithm_is_the_sum_over_all_pairs_that_cross_it():
    log_f, g = np.log(gates(H, S)), np.random.default_rng(2).standard_normal((H, S, S))

    def number(log_f):
        c = np.cumsum(log_f, axis=-1)
        return np.sum(g * np.tril(np.ones((S, S))) * forgetting_bias(c, c))

    grad = value_and_grad(number)(log_f)[1]
    assert_allclose(grad, slopes(number, [log_f], 0), rtol=0, atol=1e-8)
    for h, l in np.ndindex(H, S):
        crossing = sum(g[h, i, j] for i in range(l, S) for j in range(l))
        assert_allclose(grad[h, l], crossing, rtol=0, atol=1e-12)
    assert_array_equal(grad[:, 0] * 0, grad[:, 0].round(12))  # the first gate never matters


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_of_the_sums_is_kept(dtype):
    q, k = np.array([-1000.0, -1000.5], dtype), np.array([-0.25, -1000.0, -1000.5], dtype)
    bias = forgetting_bias(q, k)
    assert bias.dtype == dtype
    exact = q.astype(float)[:, None] - k.astype(float)
    assert_array_equal(bias, exact.astype(dtype))
    assert forgetting_bias([0, -1], [0, -1, -3]).tolist() == [[0, 1, 3], [-1, 0, 2]]
    assert forgetting_bias(q.astype(np.float32), k.astype(np.float64)).dtype == np.float64


# ---- by hand ------------------------------------------------------------------------------------


def test_table_of_four_gates():
    c = sums([0.9, 0.5, 0.8, 0.25])
    rows = ["0", "-.693147 0", "-.916291 -.223144 0", "-2.302585 -1.609438 -1.386294 0"]
    bias = forgetting_bias(c, c)
    for i, row in enumerate(rows):
        assert bias[i, : i + 1].round(6).tolist() == [float(x) for x in row.split()]
    assert np.exp(bias[3]).round(3).tolist() == [0.1, 0.2, 0.25, 1.0]


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: forgetting_bias(0.0, [0.0]), r"q_sums must have the axes \(..., L\); got shape"),
        (lambda: forgetting_bias([0.0], -1.0), r"k_sums must have the axes \(..., S\)"),
        (lambda: forgetting_bias([1j], [0.0]), "q_sums must hold real numbers; got dtype complex"),
        (lambda: forgetting_bias([0.0, 0.5], [0.0]), "q_sums must not rise.*got a rise at entry 1"),
        (lambda: forgetting_bias([0.0], [[0, -1, -0.5]]), "k_sums must not rise.*at entry 2"),
        (lambda: forgetting_bias([-np.inf], [0.0]), "q_sums must be finite, since a gate of 0 has"),
        (lambda: forgetting_bias([0.0], [np.nan]), "k_sums must be finite"),
        (
            lambda: forgetting_bias(np.zeros((2, 3)), np.zeros((4, 3))),
            r"forgetting_bias: the batch axes must broadcast; got q_sums \(2,\), k_sums \(4,\)",
        ),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
