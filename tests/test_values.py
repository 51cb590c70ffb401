"""Values that turn: loop oracle, shifts, the sheet's numbers, dtypes, gradients, bad input."""

import math

import numpy as np
import pytest
from differences import slopes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    rope,
    rope_frequencies,
    rope_matrix,
    rope_permutation,
    rotary_values,
    softmax,
    value_and_grad,
)

layouts = pytest.mark.parametrize("layout", ["interleaved", "half"])
ROWS = np.array([(1, 0, 0), (0.5, 0.5, 0), (0.2, 0.3, 0.5)])
THREE = np.array([(1.0, 0), (0, 1), (1, 1)])


def data(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def weights_of(shape, dtype=np.float64):
    return softmax(data(shape, dtype, seed=5))


def values_by_loops(weights, v, q_positions, k_positions, frequencies, layout):
    """Each value turned by its distance, pair by pair: weights (L, S), v (S, K)."""
    mixed = np.zeros((len(weights), v.shape[1]))
    n = len(frequencies)
    for row, i in enumerate(q_positions):
        for column, j in enumerate(k_positions):
            turned = v[column].astype(np.float64).copy()
            for c, omega in enumerate(frequencies):
                a, b = (2 * c, 2 * c + 1) if layout == "interleaved" else (c, c + n)
                cos, sin = math.cos((j - i) * omega), math.sin((j - i) * omega)
                turned[a] = v[column, a] * cos - v[column, b] * sin
                turned[b] = v[column, a] * sin + v[column, b] * cos
            mixed[row] += weights[row, column] * turned
    return mixed


# ---- loop oracle and theorems -------------------------------------------------------------------


@layouts
@pytest.mark.parametrize("turned", [2, 4, 6])
def test_each_value_is_turned_by_its_distance(layout, turned):
    B, H, L, S, K = 2, 3, 4, 5, 6
    weights, v = weights_of((B, H, L, S)), data((B, H, S, K))
    q_at, k_at = [3, 10, -2, 7.5], [0, 1, 2, 9, 40]
    got = rotary_values(weights, v, q_at, k_at, rope_frequencies(turned), layout)
    assert got.shape == (B, H, L, K)
    for b, h in np.ndindex(B, H):
        theta = rope_frequencies(turned)
        own = values_by_loops(weights[b, h], v[b, h], q_at, k_at, theta, layout)
        assert_allclose(got[b, h], own, rtol=0, atol=1e-12)


@layouts
def test_defaults_are_the_frequencies_of_the_whole_width(layout):
    theta = rope_frequencies(8)
    weights, v = weights_of((3, 5)), data((5, 8))
    expected = values_by_loops(weights, v, range(2, 5), range(5), theta, layout)
    got = rotary_values(weights, v, range(2, 5), range(5), layout=layout)
    assert_allclose(got, expected, rtol=0, atol=1e-13)
    assert_array_equal(
        rotary_values(weights, v, range(2, 5), range(5)),
        rotary_values(weights, v, range(2, 5), range(5), layout="interleaved"),
    )


def test_weights_and_values_of_other_batch_axes_and_positions_of_a_padded_batch():
    weights, v = weights_of((2, 3, 4, 4)), data((3, 4, 6))  # one batch axis less
    at = np.array([[0, 0, 1, 2], [0, 1, 2, 3]])[:, None]
    got = rotary_values(weights, np.broadcast_to(v, (2, 3, 4, 6)), at, at)
    for b in range(2):
        assert_allclose(got[b], rotary_values(weights[b], v, at[b], at[b]), rtol=0, atol=1e-14)
    assert rotary_values(weights, v, at, np.arange(4)).shape == (2, 3, 4, 6)


@given(st.integers(-5000, 5000))
def test_a_common_shift_changes_nothing(shift):
    weights, v, at = weights_of((4, 4)), data((4, 6)), np.arange(4)
    moved = rotary_values(weights, v, at + shift, at + shift)
    assert_allclose(moved, rotary_values(weights, v, at, at), rtol=0, atol=1e-9)


def test_matrices_say_the_same():
    theta = rope_frequencies(6)
    weights, v = weights_of((2, 3)), data((3, 6))
    got = rotary_values(weights, v, [5, 9], [1, 4, 7])
    for row, i in enumerate((5, 9)):
        turned = [rope_matrix(j - i, theta) @ v[n] for n, j in enumerate((1, 4, 7))]
        assert_allclose(got[row], weights[row] @ turned, rtol=0, atol=1e-13)


def test_permutation_carries_one_layout_to_the_other():
    weights, v, p = weights_of((3, 3)), data((3, 8)), rope_permutation(8)
    half = rotary_values(weights, v[:, p], range(3), range(3), layout="half")
    got = rotary_values(weights, v, range(3), range(3))[:, p]
    assert_allclose(half, got, rtol=0, atol=1e-14)


def test_one_new_query_is_the_last_row_and_turned_values_may_be_kept():
    weights, v, at = weights_of((6, 6)), data((6, 8)), np.arange(6)
    last = rotary_values(weights, v, at, at)[-1:]
    assert_allclose(rotary_values(weights[-1:], v, at[-1:], at), last, rtol=0, atol=1e-14)
    kept = np.array([rope(v[j : j + 1], [j])[0] for j in at])
    assert_allclose(rope(weights[-1:] @ kept, [-5]), last, rtol=0, atol=1e-13)


def test_unsigned_positions_do_not_wrap_around():
    at = np.arange(3, dtype=np.uint8)
    same = rotary_values(ROWS, THREE, range(3), range(3))
    assert_allclose(rotary_values(ROWS, THREE, at, at), same, rtol=0, atol=1e-15)


# ---- the sheet's numbers ------------------------------------------------------------------------


def test_three_values_by_hand():
    at = np.arange(3)
    got = rotary_values(ROWS, THREE, at, at, [1.0])
    assert got.round(4).tolist() == [[1, 0], [0.2702, 0.0793], [0.6692, 0.4802]]
    left = ROWS @ rope(THREE, at, [1.0])  # never turned back
    assert left.round(4).tolist() == [[1, 0], [0.0793, 0.2702], [-0.7152, 0.4087]]
    moved = ROWS @ rope(THREE, at + 100, [1.0])
    assert round(np.abs(moved - left).max(), 3) == 0.506
    shifted = rotary_values(ROWS, THREE, at + 100, at + 100, [1.0])
    assert_allclose(shifted, got, rtol=0, atol=1e-14)


# ---- dtype, purity, gradient, bad input ---------------------------------------------------------


@layouts
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_is_kept_and_nothing_is_changed_in_place(layout, dtype):
    weights, v, at = weights_of((5, 5), dtype), data((5, 8), dtype), np.arange(5)
    kept = weights.copy(), v.copy(), at.copy()
    got = rotary_values(weights, v, at, at, layout=layout)
    assert got.dtype == dtype
    for before, after in zip(kept, (weights, v, at), strict=True):
        assert_array_equal(before, after)
    exact = rotary_values(weights.astype(np.float64), v.astype(np.float64), at, at, layout=layout)
    assert_allclose(got.astype(np.float64), exact, rtol=0, atol=4 * np.finfo(dtype).eps + 1e-15)


def test_half_precision_is_rounded_once():
    weights, v = weights_of((20, 20), np.float16), data((20, 8), np.float16)
    exact = rotary_values(weights.astype(float), v.astype(float), range(20), range(20))
    assert_array_equal(rotary_values(weights, v, range(20), range(20)), exact.astype(np.float16))


@layouts
def test_gradients_equal_finite_differences(layout):
    weights, v, g = weights_of((2, 3, 4)), data((2, 4, 6)), data((2, 3, 6), seed=1)

    def number(weights, v):
        made = rotary_values(weights, v, [5, 6, 9], range(4), rope_frequencies(4), layout)
        return np.sum(g * made)

    arrays = [weights, v]
    _, grads = value_and_grad(lambda p: number(p["0"], p["1"]))({"0": weights, "1": v})
    for n in range(2):
        assert_allclose(grads[str(n)], slopes(number, arrays, n), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ROWS[0], THREE, 0, 0), r"weights must have the axes \(..., L, S\)"),
        ((ROWS, THREE[0], 0, 0), r"v must have the axes \(..., S, K\)"),
        ((ROWS, THREE[:2], 0, 0), "must have the same number of keys S; got 3 and 2"),
        ((np.ones((2, 3, 3)), np.ones((4, 3, 2)), 0, 0), "the batch axes must broadcast"),
        ((ROWS, THREE, [0, 1], 0), r"q_positions must broadcast to the shape of the output.*\(2,"),
        ((ROWS, THREE, 0, [0, 1]), r"k_positions must broadcast to the shape of v without.*\(2,"),
        ((ROWS, THREE, [np.nan, 0, 0], 0), "q_positions must be finite"),
        ((ROWS, THREE, 0, "abc"), "k_positions must be integers or real numbers"),
        ((ROWS, np.ones((3, 5)), 0, 0), "K, the last axis of v, must be even.*got 5"),
        ((ROWS, THREE, 0, 0, [1.0, 2.0]), r"at most K/2 numbers; got shape \(2,\) for K = 2"),
        ((ROWS, THREE, 0, 0, None, "neox"), "layout must be .* got 'neox'"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(arguments, message):
    with pytest.raises(ValueError, match="rotary_values: .*" + message):
        rotary_values(*arguments)
