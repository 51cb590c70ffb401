"""Sandwich: loop oracle, the inner product of sinusoids, the table of numbers, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import relative_distance, sandwich_bias, sinusoidal

Q_AT, K_AT = [3, 0, 9], [0, 2, 5, 1]


@pytest.mark.parametrize(("d", "base"), [(128, 10000.0), (6, 50.0), (2, 7.0)])
def test_bias_equals_the_formula_pair_by_pair(d, base):
    bias = sandwich_bias(5, relative_distance(Q_AT, K_AT), d, base)
    assert bias.shape == (5, 3, 4) and bias.dtype == np.float64
    for h, i, j in np.ndindex(bias.shape):
        total = sum(
            math.cos((Q_AT[i] - K_AT[j]) * base ** (-2 * c / d)) for c in range(1, d // 2 + 1)
        )
        expected = (total - d / 2) / (8 * (h + 1) / 5)
        assert_allclose(bias[h, i, j], expected, rtol=1e-12, atol=1e-12)


# ---- theorems -----------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(1, 9), st.integers(-9, 9))
def test_window_equals_gather_and_costs_one_line_a_head(L, S, start):
    window = relative_distance(np.arange(start, start + L), np.arange(S))
    bias = sandwich_bias(3, window, d=8)
    assert not bias.flags.writeable
    assert L + S == 2 or bias.strides[1] == -bias.strides[2] == 8
    assert_array_equal(bias, sandwich_bias(3, np.array(window), d=8))


def test_distances_of_a_batch_and_one_new_query_give_the_same_rows():
    at = np.array([[0, 0, 1, 2], [0, 1, 2, 3]])
    bias = sandwich_bias(3, relative_distance(at, at))
    assert bias.shape == (2, 3, 4, 4)
    whole = sandwich_bias(3, relative_distance(range(4), range(4)))
    assert_array_equal(bias[1], whole)
    assert_array_equal(sandwich_bias(3, relative_distance([3], range(4))), whole[:, 3:])


@pytest.mark.parametrize("d", [2, 10, 128])
def test_bias_is_the_inner_product_of_sinusoidal_codes_at_fractional_positions(d):
    """Positions times base^(-2/d) make the first frequency that of c = 1."""
    at = np.arange(40)
    codes = sinusoidal(at * 10000.0 ** (-2 / d), d)
    bias = sandwich_bias(4, relative_distance(at, at), d)
    for h in range(1, 5):
        assert_allclose(bias[h - 1], (codes @ codes.T - d / 2) / (8 * h / 4), rtol=0, atol=1e-11)


def test_bias_is_symmetric_never_above_zero_and_not_monotone():
    bias = sandwich_bias(8, relative_distance([0], -np.arange(1000)))[0, 0]
    assert bias[0] == 0 and bias.max() == 0
    assert np.flatnonzero(np.diff(bias) > 0)[0] == 13  # from 13 to 14
    assert_array_equal(bias, sandwich_bias(8, relative_distance([0], np.arange(1000)))[0, 0])


# ---- numbers ------------------------------------------------------------------------------------


def test_table_of_numbers():
    bias = sandwich_bias(8, [[0, 1, 2, 3, 4, 5]])[:, 0]
    first = [0.0, -1.446619, -5.201993, -9.823779, -13.760326, -16.09865]
    assert bias[0].round(6).tolist() == first
    assert_allclose(bias[7], bias[0] / 8, rtol=1e-15)
    assert_allclose(sandwich_bias(4, [[1]])[:, 0, 0], bias[1::2, 1], rtol=1e-15)


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sandwich_bias(0, [[0]]), "sandwich_bias: n_heads must be at least 1; got 0"),
        (lambda: sandwich_bias(2, [[0]], d=5), "d must be even, so that each sine .*; got 5"),
        (lambda: sandwich_bias(2, [[0]], base=0.0), "base must be above 0; got 0"),
        (lambda: sandwich_bias(2, [0]), r"distance must have the axes \(L, S\) or \(B, L, S\)"),
        (lambda: sandwich_bias(2, [[0.5]]), "distance must be whole numbers"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
