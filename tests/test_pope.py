"""PoPE: loop oracle, RoPE of radii, its bound, the sheet's numbers, gradients, bad input."""

import math

import numpy as np
import pytest
from differences import slopes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import pope, pope_frequencies, rope, value_and_grad

positions_anywhere = st.integers(-5000, 5000)


def data(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def softplus(x):
    return np.logaddexp(0, x)


def score_by_loops(q, k, D, frequencies, delta):
    """The sum of cosines, component by component."""
    total = 0.0
    for c, omega in enumerate(frequencies):
        phase = min(max(delta[c], -2 * math.pi), 0)
        radii = math.log1p(math.exp(q[c])) * math.log1p(math.exp(k[c]))
        total += radii * math.cos(D * omega - phase)
    return total


def score(q, k, i, j, bias=0.0, **options):
    return (pope(q[None], [i], **options) @ pope(k[None], [j], bias=bias, **options).T).item()


# ---- loop oracle and theorems -------------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 5, 6])
def test_each_component_is_a_radius_at_an_angle(K):
    x, positions, delta = data((7, K)), [0, 1, 2, -3, 50, 1000, 2.5], data(K, seed=1) - 1
    theta = pope_frequencies(K, 500.0)
    got = pope(x, positions, theta, delta)
    assert got.shape == (7, 2 * K)
    for row, m in enumerate(positions):
        for c in range(K):
            radius = math.log1p(math.exp(x[row, c]))
            angle = m * theta[c] + min(max(delta[c], -2 * math.pi), 0)
            pair = [radius * math.cos(angle), radius * math.sin(angle)]
            assert_allclose(got[row, 2 * c : 2 * c + 2], pair, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("d", "base"), [(8, 10000.0), (5, 500.0), (1, 7)])
def test_frequencies_equal_their_formula(d, base):
    assert_allclose(pope_frequencies(d, base), [base ** (-c / d) for c in range(d)], rtol=1e-14)
    assert_array_equal(pope_frequencies(d), pope_frequencies(d, 10000.0))


@given(positions_anywhere, positions_anywhere, positions_anywhere)
def test_the_score_is_a_sum_of_cosines_of_the_distance(i, j, shift):
    q, k, delta = data(6), data(6, seed=1), -(data(6, seed=2) ** 2)
    expected = score_by_loops(q, k, i - j, pope_frequencies(6), delta)
    assert_allclose(score(q, k, i, j, delta), expected, rtol=0, atol=1e-9)
    assert_allclose(score(q, k, i + shift, j + shift, delta), expected, rtol=0, atol=1e-9)


@given(positions_anywhere)
def test_no_score_is_above_that_of_distance_0_without_a_phase(D):
    q, k = data(6), data(6, seed=1)
    most = softplus(q) @ softplus(k)
    assert_allclose(score(q, k, 0, 0), most, rtol=1e-13)
    assert score(q, k, D, 0) <= most + 1e-9


def test_it_is_rope_of_radii_with_as_many_frequencies_as_components():
    x, at = data((2, 7, 5)), np.arange(7)
    pairs = np.zeros((2, 7, 10))
    pairs[..., ::2] = softplus(x)
    assert_allclose(pope(x, at), rope(pairs, at, pope_frequencies(5)), rtol=0, atol=1e-14)


def test_the_phase_is_clamped_and_a_whole_turn_is_none():
    x, at = data((3, 4)), np.arange(3)
    assert_array_equal(pope(x, at, bias=-7.0), pope(x, at, bias=-2 * math.pi))
    assert_array_equal(pope(x, at, bias=0.5), pope(x, at))
    assert_allclose(pope(x, at, bias=-7.0), pope(x, at), rtol=0, atol=1e-14)


def test_positions_and_phases_broadcast_over_batch_and_heads():
    B, H, L, K = 2, 3, 5, 4
    x, delta = data((B, H, L, K)), -(data((H, 1, K), seed=1) ** 2)
    positions = np.array([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])[:, None, :]
    got = pope(x, positions, bias=delta)
    for b, h in np.ndindex(B, H):
        own = pope(x[b, h], positions[b, 0], bias=delta[h, 0])
        assert_allclose(got[b, h], own, rtol=0, atol=1e-14)


def test_the_newest_query_is_the_last_row_of_the_whole():
    q, k, at = data((9, 4)), data((9, 4), seed=1), np.arange(9)
    whole = pope(q, at) @ pope(k, at, bias=-1.0).T
    cached = np.array([pope(k[j : j + 1], [j], bias=-1.0)[0] for j in at])
    assert_allclose(pope(q[8:], [8]) @ cached.T, whole[8:], rtol=0, atol=1e-12)


# ---- the sheet's numbers ------------------------------------------------------------------------


def test_three_components_by_hand():
    assert pope_frequencies(3).round(6).tolist() == [1, 0.046416, 0.002154]
    got = pope([[0, 1, -1]], [2])[0].round(6).tolist()
    assert got == [-0.288451, 0.630277, 1.307607, 0.121737, 0.313259, 0.001350]


@pytest.mark.parametrize(("delta", "printed"), [(0.0, 0.689259), ([-0.5, -1, -7], 0.205373)])
def test_one_score_by_hand(delta, printed):
    q, k = np.array([0, 1, -1]), np.array([1, 0, 2])
    assert round(score(q, k, 5, 3, delta) / 3**0.5, 6) == printed


def test_a_query_of_zeros_is_not_neutral():
    assert pope([[0.0]], [0]).round(6).tolist() == [[0.693147, 0]]


# ---- dtype, range, purity, gradient, bad input --------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_is_kept_and_nothing_is_changed_in_place(dtype):
    x, at, delta = data((5, 4), dtype), np.arange(5), -np.ones(4)
    kept = x.copy(), at.copy(), delta.copy()
    got = pope(x, at, bias=delta)
    assert got.dtype == dtype
    for before, after in zip(kept, (x, at, delta), strict=True):
        assert_array_equal(before, after)
    exact = pope(x.astype(np.float64), at, bias=delta)
    assert_allclose(got.astype(np.float64), exact, rtol=0, atol=4 * np.finfo(dtype).eps + 1e-15)


def test_half_precision_is_rounded_once():
    x = data((20, 8), np.float16)
    exact = pope(x.astype(float), np.arange(20), bias=-1.0)
    assert_array_equal(pope(x, np.arange(20), bias=-1.0), exact.astype(np.float16))


def test_integers_become_float64():
    assert pope([[1, 0]], [0]).dtype == np.float64


def test_large_components_of_either_sign_neither_overflow_nor_vanish_early():
    got = pope([[1000.0, -30.0, -1000.0]], [0])[0, ::2]
    assert_allclose(got, [1000, math.exp(-30), 0], rtol=1e-12)


def test_float32_is_as_exact_at_a_million_as_at_the_start():
    x, delta = data((128, 16), np.float32), np.float32(-1.5)
    for first in (0, 1_000_000):
        at = first + np.arange(128)
        assert_allclose(pope(x, at, bias=delta), pope(x.astype(float), at, bias=-1.5), atol=3e-6)


def test_gradients_equal_finite_differences():
    x, delta = data((2, 3, 4, 5)), -1 - data((3, 1, 5), seed=1) ** 2
    g, at = data((2, 3, 4, 10), seed=2), np.array([3, 50, 400, 9])

    def number(x, delta):
        return np.sum(g * pope(x, at, bias=delta))

    _, grads = value_and_grad(lambda p: number(p["0"], p["1"]))({"0": x, "1": delta})
    for n in range(2):
        assert_allclose(grads[str(n)], slopes(number, [x, delta], n), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pope_frequencies(0), "pope_frequencies: d must be at least 1; got 0"),
        (lambda: pope_frequencies(4, base=-2), "pope_frequencies: base must be above 0; got -2"),
        (lambda: pope([1.0, 2.0], [0]), r"pope: x must have the axes \(..., L, K\); got shape"),
        (lambda: pope([[1j, 0]], [0]), "pope: x must hold real numbers; got dtype complex128"),
        (
            lambda: pope(np.zeros((3, 4)), [0, 1]),
            r"pope: positions must broadcast to the shape of x without its last.*got \(2,\)",
        ),
        (lambda: pope(np.zeros((1, 4)), [np.nan]), "pope: positions must be finite"),
        (
            lambda: pope(np.zeros((1, 4)), [0], np.ones(2)),
            r"pope: frequencies must be one a component, \(K,\) = \(4,\); got shape \(2,\)",
        ),
        (lambda: pope(np.zeros((1, 2)), [0], [0.5, np.inf]), "pope: frequencies must be finite"),
        (
            lambda: pope(np.zeros((1, 4)), [0], bias=np.zeros((2, 1, 4))),
            r"pope: bias must broadcast to the shape of x, \(1, 4\); got \(2, 1, 4\)",
        ),
        (lambda: pope(np.zeros((1, 4)), [0], bias=np.nan), "pope: bias must hold numbers; got nan"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
