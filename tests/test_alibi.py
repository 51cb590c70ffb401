"""ALiBi: loop oracle, theorems, the published slopes, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import alibi_bias, alibi_slopes, attention, causal_mask, relative_distance, softmax


def slopes_by_recursion(n):
    """The authors' rule as a recursion: a power of two, or the lower one and every other of 2p."""
    if math.log2(n).is_integer():
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]
    lower = 2 ** math.floor(math.log2(n))
    return slopes_by_recursion(lower) + slopes_by_recursion(2 * lower)[0::2][: n - lower]


@pytest.mark.parametrize("n_heads", range(1, 65))
def test_slopes_equal_the_authors_rule_for_every_number_of_heads(n_heads):
    slopes = alibi_slopes(n_heads)
    assert_allclose(slopes, slopes_by_recursion(n_heads), rtol=1e-12)
    assert slopes.shape == (n_heads,) and ((0 < slopes) & (slopes < 1)).all()


def test_bias_equals_minus_slope_times_distance_pair_by_pair():
    q_at, k_at, slopes = [3, 0, 9], [0, 2, 5, 1], alibi_slopes(5)
    bias = alibi_bias(slopes, relative_distance(q_at, k_at))
    for h, i, j in np.ndindex(5, 3, 4):
        assert bias[h, i, j] == -slopes[h] * abs(q_at[i] - k_at[j])


def test_slopes_of_the_future_serve_keys_after_the_query_alone():
    q_at, k_at, past, future = [3, 0, 9], [0, 2, 5, 1], alibi_slopes(5), np.arange(5) / 7
    for distance in (relative_distance(q_at, k_at), relative_distance(range(3), range(1, 5))):
        bias = alibi_bias(past, distance, future)
        for h, i, j in np.ndindex(bias.shape):
            d = int(distance[i, j])
            assert bias[h, i, j] == -(past[h] if d >= 0 else future[h]) * abs(d)


# ---- theorems -----------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(1, 9), st.integers(-9, 9))
def test_window_equals_gather_and_costs_one_line_a_head(L, S, start):
    slopes = alibi_slopes(3).astype(np.float32)
    window = relative_distance(np.arange(start, start + L), np.arange(S))
    bias = alibi_bias(slopes, window)
    assert bias.dtype == np.float32 and not bias.flags.writeable
    assert L + S == 2 or bias.strides[1] == -bias.strides[2] == 4
    assert_array_equal(bias, alibi_bias(slopes, np.array(window)))


def test_under_a_causal_mask_a_bias_on_keys_alone_gives_the_same_weights():
    """Softmax ignores what is added to a whole row: -m (i - j) and m j differ by m i."""
    L, H = 6, 4
    at = np.arange(L)
    scores = np.random.default_rng(0).standard_normal((H, L, L))
    mask, slopes = causal_mask(at, at), alibi_slopes(H)
    symmetric = np.where(mask, scores + alibi_bias(slopes, relative_distance(at, at)), -np.inf)
    keys_alone = np.where(mask, scores + slopes[:, None, None] * at, -np.inf)
    assert_allclose(softmax(symmetric), softmax(keys_alone), rtol=0, atol=1e-14)


def test_symmetric_bias_is_blind_to_left_and_right_and_two_slopes_are_not():
    x = np.random.default_rng(0).standard_normal((6, 4))
    distance = relative_distance(range(6), range(6))
    for future, blind in ((None, True), ([0.5], True), ([1.0], False)):
        bias = alibi_bias([0.5], distance, future)[0]
        ahead = attention(x, x, x, bias=bias)[0]
        back = attention(x[::-1], x[::-1], x[::-1], bias=bias)[0]
        assert np.allclose(back, ahead[::-1], rtol=0, atol=1e-12) == blind


def test_two_slopes_keep_windows_dtypes_and_batches():
    m, future = alibi_slopes(3).astype(np.float32), np.ones(3, np.float32)
    window = relative_distance(range(4), range(5))
    bias = alibi_bias(m, window, future)
    assert bias.dtype == np.float32 and bias.strides[1] == -bias.strides[2] == 4
    assert_array_equal(bias, alibi_bias(m, np.array(window), future))
    assert alibi_bias(m, window, np.ones(3)).dtype == np.float64
    batch = alibi_bias(m, np.stack([np.array(window)] * 2), future)
    assert_array_equal(batch, np.stack([bias] * 2))


def test_equal_scores_get_weights_that_fall_by_the_factor_exp_minus_slope():
    at, v = np.arange(16), np.zeros((16, 1))
    zeros = np.zeros((1, 16, 4))
    bias = alibi_bias([0.5], relative_distance(at, at))
    weights = attention(zeros, zeros, v, causal_mask(at, at), bias)[1][0, -1]
    assert_allclose(weights[:-1] / weights[1:], math.exp(-0.5), rtol=1e-12)
    assert f"{weights[-1]:.4f}" == "0.3936"


def test_distances_of_a_batch_give_biases_of_a_batch():
    at = np.array([[0, 0, 1, 2], [0, 1, 2, 3]])
    bias = alibi_bias(alibi_slopes(3), relative_distance(at, at))
    assert bias.shape == (2, 3, 4, 4)
    own = alibi_bias(alibi_slopes(3), relative_distance(at[0], at[0]))
    assert_array_equal(bias[0], own)


# ---- published tables ---------------------------------------------------------------------------


def test_slopes_as_published():
    eight = [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]
    assert alibi_slopes(8).tolist() == eight
    assert alibi_slopes(3).tolist() == [0.0625, 0.00390625, 0.25]
    assert alibi_slopes(6).tolist() == [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]
    more = [0.70710678, 0.35355339, 0.1767767, 0.08838835]
    assert alibi_slopes(12).round(8).tolist() == eight + more
    sixteen = [2 ** (-h / 2) for h in range(1, 17)]
    assert_allclose(alibi_slopes(16), sixteen, rtol=1e-15)


def test_row_of_the_paper():
    at = np.arange(4)
    bias = alibi_bias([0.5], relative_distance(at, at))
    assert (bias[0, 3] + 0.0).tolist() == [-1.5, -1.0, -0.5, 0.0]
    distances = -alibi_bias([1.0], relative_distance(np.arange(5), np.arange(5)))[0]
    assert distances[2].tolist() == [2, 1, 0, 1, 2]


def test_encoders_of_others():
    """Symmetric, and with half a slope less for the past; distances 3 to -3, a slope of 1."""
    d = np.arange(3, -4, -1)[None]
    symmetric = alibi_bias([1.0], d)[0, 0]
    assert (symmetric + 0.0).tolist() == [-3, -2, -1, 0, -1, -2, -3]
    assert (symmetric + 0.5 * (d[0] > 0)).tolist() == [-2.5, -1.5, -0.5, 0, -1, -2, -3]


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: alibi_slopes(0), "alibi_slopes: n_heads must be at least 1; got 0"),
        (lambda: alibi_slopes(2.0), "alibi_slopes: n_heads must be a whole number; got 2.0"),
        (lambda: alibi_bias(0.5, [[0]]), r"alibi_bias: slopes must have the axes \(..., H\)"),
        (lambda: alibi_bias([[0.5]], [[0]]), r"slopes must have the axis \(H\); got shape \(1, 1"),
        (
            lambda: alibi_bias([0.5], [[0]], [1, 2]),
            r"future_slopes must have .* \(1,\); got \(2,\)",
        ),
        (lambda: alibi_bias([0.5], [0]), r"distance must have the axes \(L, S\) or \(B, L, S\)"),
        (lambda: alibi_bias([0.5], [[0.5]]), "distance must be whole numbers"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
