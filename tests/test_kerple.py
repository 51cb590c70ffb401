"""KERPLE: loop oracle, theorems of its kernels, gradients, the table of numbers, bad input."""

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
    kerple_log_bias,
    kerple_power_bias,
    relative_distance,
    softmax,
    value_and_grad,
)

P, A = np.array([0.5, 1.0, 1.7]), np.array([0.25, 1.0, 0.1])  # (H,) of either form
Q_AT, K_AT = [3, 0, 9], [0, 2, 5, 1]


def log_of(p, a, d):
    return -p * math.log(1 + a * d)


def power_of(p, a, d):
    return -a * d**p


FORMS = {
    "log": (kerple_log_bias, log_of),
    "power": (lambda p, a, d: kerple_power_bias(a, p, d), power_of),
}
forms = pytest.mark.parametrize(("function", "number"), FORMS.values(), ids=FORMS)


@forms
def test_bias_equals_the_formula_pair_by_pair(function, number):
    bias = function(P, A, relative_distance(Q_AT, K_AT))
    assert bias.shape == (3, 3, 4) and bias.dtype == np.float64
    for h, i, j in np.ndindex(bias.shape):
        expected = number(P[h], A[h], abs(Q_AT[i] - K_AT[j]))
        assert_allclose(bias[h, i, j], expected, rtol=1e-12, atol=1e-15)


# ---- theorems -----------------------------------------------------------------------------------


@forms
@given(L=st.integers(1, 9), S=st.integers(1, 9), start=st.integers(-9, 9))
def test_window_equals_gather_and_costs_one_line_a_head(function, number, L, S, start):
    p, a = P.astype(np.float32), A.astype(np.float32)
    window = relative_distance(np.arange(start, start + L), np.arange(S))
    bias = function(p, a, window)
    assert bias.dtype == np.float32 and not bias.flags.writeable
    assert L + S == 2 or bias.strides[1] == -bias.strides[2] == 4
    assert_array_equal(bias, function(p, a, np.array(window)))


@forms
def test_distances_of_a_batch_and_one_new_query_give_the_same_rows(function, number):
    at = np.array([[0, 0, 1, 2], [0, 1, 2, 3]])
    bias = function(P, A, relative_distance(at, at))
    assert bias.shape == (2, 3, 4, 4)
    assert_array_equal(bias[1], function(P, A, relative_distance(range(4), range(4))))
    assert_array_equal(bias[1][:, 3:], function(P, A, relative_distance([3], range(4))))


@forms
def test_float16_is_computed_in_float32(function, number):
    p, a = P.astype(np.float16), A.astype(np.float16)
    far = relative_distance([2049], [0])  # no float16 number
    bias = function(p, a, far)
    exact = function(p.astype(float), a.astype(float), far)
    assert bias.dtype == np.float16
    assert_allclose(bias, exact, rtol=6e-4)
    mixed = function(P.astype(np.float32), A, far)
    assert mixed.dtype == np.float64


def test_power_of_one_is_alibi():
    distance = relative_distance(range(5), range(7))
    assert_array_equal(kerple_power_bias(A, np.ones(3), distance), alibi_bias(A, distance))


def test_logarithm_becomes_alibi_when_p_a_is_kept_and_a_goes_to_zero():
    distance = relative_distance(range(5), range(7))
    for a in (1e-6, 1e-8):
        near = kerple_log_bias(A / a, np.full(3, a), distance)
        assert np.abs(near - alibi_bias(A, distance)).max() < 20 * a


def centred(bias):
    """Take the mean of each row and column away: what a conditional kernel is judged by."""
    rows = bias - bias.mean(axis=-1, keepdims=True)
    return rows - rows.mean(axis=-2, keepdims=True)


def test_biases_are_conditionally_positive_definite_up_to_the_exponent_2_and_not_beyond():
    distance = relative_distance(range(12), range(12))
    for p in (0.1, 0.5, 1.0, 1.5, 2.0):
        for bias in (
            kerple_power_bias([0.7], [p], distance),
            kerple_log_bias([p], [0.7], distance),
        ):
            assert np.linalg.eigvalsh(centred(bias[0])).min() > -1e-11
    beyond = -(np.abs(distance) ** 2.5)  # what the function refuses
    assert np.linalg.eigvalsh(centred(beyond)).min() < -10


def test_equal_scores_get_weights_of_a_power_law_and_of_a_bell():
    d = np.arange(16)
    by_log = softmax(kerple_log_bias([1.5], [0.25], d[None])[0, 0])
    assert_allclose(by_log / by_log[0], (1 + 0.25 * d) ** -1.5, rtol=1e-12)
    bell = softmax(kerple_power_bias([0.1], [2.0], d[None])[0, 0])
    assert_allclose(bell / bell[0], np.exp(-0.1 * d**2), rtol=1e-12)


def test_bias_stands_beside_scaled_scores():
    q, k, v = np.random.default_rng(0).standard_normal((3, 3, 5, 4))
    bias = kerple_log_bias(P, A, relative_distance(range(5), range(5)))
    _, weights = attention(q, k, v, bias=bias)
    expected = softmax(q @ np.swapaxes(k, -1, -2) / 2 + bias)
    assert_allclose(weights, expected, rtol=0, atol=1e-14)


# ---- gradients ----------------------------------------------------------------------------------


@forms
@pytest.mark.parametrize("window", [True, False])
def test_gradients_equal_finite_differences(function, number, window):
    distance = relative_distance(range(4), range(6))
    distance = distance if window else np.array(distance)
    g = np.random.default_rng(1).standard_normal((3, 4, 6))

    def loss(p, a):
        return np.sum(g * function(p, a, distance))

    _, grads = value_and_grad(lambda both: loss(both["p"], both["a"]))({"p": P, "a": A})
    for n, key in enumerate("pa"):
        assert_allclose(grads[key], slopes(loss, (P, A), n), rtol=1e-7, atol=1e-8)


def test_gradient_by_a_is_zero_at_distance_0_and_never_beyond_p_over_a():
    d = np.array([[0, 1, 5, 10**6]])
    for n, expected in enumerate((0.0, 0.5 / 1.25, 2.5 / 2.25, 2.0)):
        one = value_and_grad(lambda a, n=n: np.sum(kerple_log_bias([0.5], a, d)[0, 0, n]))
        slope = -float(one(np.array([0.25]))[1][0])
        assert_allclose(slope, expected, rtol=1e-5, atol=0)
        assert slope < 0.5 / 0.25


# ---- numbers ------------------------------------------------------------------------------------


def test_table_of_numbers():
    d = [[0, 1, 2, 3, 4]]
    both = kerple_log_bias([1.0, 0.5], [1.0, 0.25], d)[:, 0]
    assert (both + 0.0).round(6).tolist() == [
        [0.0, -0.693147, -1.098612, -1.386294, -1.609438],
        [0.0, -0.111572, -0.202733, -0.279808, -0.346574],
    ]
    power = kerple_power_bias([0.5], [0.5], d)[0, 0]
    assert (power + 0.0).round(6).tolist() == [0.0, -0.5, -0.707107, -0.866025, -1.0]


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kerple_log_bias([0.0], [1.0], [[0]]), "kerple_log_bias: p must be above 0, and f"),
        (lambda: kerple_log_bias([1.0], [-1.0], [[0]]), r"a must be above 0, and finite; got -1.0"),
        (lambda: kerple_log_bias([np.nan], [1.0], [[0]]), "p must be above 0, and finite; got nan"),
        (lambda: kerple_log_bias([1.0], [np.inf], [[0]]), "a must be above 0, and finite; got inf"),
        (lambda: kerple_power_bias([0.0], [1.0], [[0]]), "kerple_power_bias: a must be above 0"),
        (lambda: kerple_power_bias([1.0], [2.5], [[0]]), "p must be at most 2, .*; got 2.5"),
        (lambda: kerple_log_bias(1.0, [1.0], [[0]]), r"p must have the axes \(..., H\)"),
        (lambda: kerple_log_bias([1.0], [1.0, 2.0], [[0]]), r"got shapes \(1,\) and \(2,\)"),
        (lambda: kerple_log_bias([[1.0]], [[1.0]], [[0]]), r"must have the axis \(H\), one number"),
        (lambda: kerple_log_bias([1.0], [1.0], [0]), r"distance must have the axes \(L, S\)"),
        (lambda: kerple_power_bias([1.0], [1.0], [[0.5]]), "distance must be whole numbers"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
