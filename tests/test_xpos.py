"""xPos: loop oracle, cancelling centre, the sheet's numbers, ranges, gradients, bad input."""

import math

import numpy as np
import pytest
from differences import slopes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import rope, rope_frequencies, rope_permutation, value_and_grad, xpos, xpos_scale

positions_anywhere = st.integers(-3000, 3000)
layouts = pytest.mark.parametrize("layout", ["interleaved", "half"])
ONES = np.ones((1, 8))


def data(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def xpos_by_loops(x, positions, frequencies, sigma, key, centre, layout):
    """One pair of one vector at a time; x is (L, K)."""
    made, n = np.array(x, dtype=np.float64), len(frequencies)
    for row, m in enumerate(positions):
        for c, omega in enumerate(frequencies):
            a, b = (2 * c, 2 * c + 1) if layout == "interleaved" else (c, c + n)
            zeta = (2 * c / (2 * n) + 0.4) / 1.4
            factor = zeta ** ((centre - m if key else m - centre) / sigma)
            cos, sin = math.cos(m * omega), math.sin(m * omega)
            made[row, a] = factor * (x[row][a] * cos - x[row][b] * sin)
            made[row, b] = factor * (x[row][a] * sin + x[row][b] * cos)
    return made


def score(q, k, i, j, **options):
    """One score, not divided by sqrt(K)."""
    return (xpos(q, [i], **options) @ xpos(k, [j], key=True, **options).T).item()


# ---- loop oracle --------------------------------------------------------------------------------


@layouts
@pytest.mark.parametrize("key", [False, True])
@pytest.mark.parametrize("turned", [2, 4, 10])
def test_xpos_equals_the_formula_pair_by_pair(layout, key, turned):
    x, positions = data((7, 10)), [0, 1, 2, -3, 50, 1000, 2.5]
    theta = rope_frequencies(turned)
    for sigma, centre in ((512, 0), (64.0, 3.5), (100, -20)):
        expected = xpos_by_loops(x, positions, theta, sigma, key, centre, layout)
        got = xpos(x, positions, theta, sigma, key, centre, layout)
        assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@layouts
def test_defaults_are_the_frequencies_of_the_whole_width_512_a_query_and_no_centre(layout):
    x = data((3, 8))
    expected = xpos_by_loops(x, [0, 5, 40], rope_frequencies(8), 512, False, 0, layout)
    assert_allclose(xpos(x, [0, 5, 40], layout=layout), expected, rtol=0, atol=1e-13)
    assert_array_equal(xpos(x, [0, 5, 40]), xpos(x, [0, 5, 40], layout="interleaved"))


@pytest.mark.parametrize(("d", "gamma"), [(8, 0.4), (6, 1.5), (2, 7)])
def test_scale_equals_its_formula_rises_and_stays_below_1(d, gamma):
    expected = [(2 * c / d + gamma) / (1 + gamma) for c in range(d // 2)]
    zeta = xpos_scale(d, gamma)
    assert_allclose(zeta, expected, rtol=1e-14)
    assert (np.diff(zeta) > 0).all() and 0 < zeta[0] and zeta[-1] < 1
    assert_array_equal(xpos_scale(8), xpos_scale(8, 0.4))


def test_positions_broadcast_over_batch_and_heads():
    B, H, L, K = 2, 3, 5, 8
    x = data((B, H, L, K))
    positions = np.array([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])[:, None, :]
    got = xpos(x, positions, key=True)
    for b in range(B):
        for h in range(H):
            theta = rope_frequencies(K)
            own = xpos_by_loops(x[b, h], positions[b, 0], theta, 512, True, 0, "interleaved")
            assert_allclose(got[b, h], own, rtol=0, atol=1e-13)


def test_no_vectors_or_no_frequencies_leave_the_input():
    assert xpos(np.zeros((0, 4)), np.zeros(0)).shape == (0, 4)
    assert_array_equal(xpos([[1.0, 2.0, 3.0]], [7], []), [[1.0, 2.0, 3.0]])


# ---- theorems -----------------------------------------------------------------------------------


@given(positions_anywhere, positions_anywhere, positions_anywhere, st.integers(-500, 500))
def test_the_score_depends_on_the_distance_alone_whatever_the_centre(i, j, shift, centre):
    q, k = data((2, 1, 6))
    expected = score(q, k, i - j, 0)
    for got in (
        score(q, k, i, j),
        score(q, k, i + shift, j + shift),
        score(q, k, i, j, centre=centre),
    ):
        assert_allclose(got, expected, rtol=1e-8, atol=1e-9 * max(1, abs(expected)))


@given(st.integers(-900, 900))
def test_the_score_is_a_sum_of_turning_and_fading_complex_products(D):
    q, k = data((2, 1, 8))
    a, b = q[0, ::2] + 1j * q[0, 1::2], k[0, ::2] + 1j * k[0, 1::2]
    group = np.exp(D * (np.log(xpos_scale(8)) / 512 + 1j * rope_frequencies(8)))
    expected = (a * b.conj() * group).sum().real
    assert_allclose(score(q, k, D, 0), expected, rtol=1e-9, atol=1e-11)


@layouts
def test_without_decay_it_is_rope(layout):
    x = data((2, 6, 8))
    for key in (False, True):
        got = xpos(x, np.arange(6), scale_base=1e30, key=key, layout=layout)
        assert_array_equal(got, rope(x, np.arange(6), layout=layout))


def test_permutation_carries_one_layout_to_the_other():
    x, p = data((4, 8)), rope_permutation(8)
    half = xpos(x[:, p], np.arange(4), key=True, layout="half")
    assert_allclose(half, xpos(x, np.arange(4), key=True)[:, p], rtol=0, atol=1e-14)


def test_the_newest_query_is_the_last_row_of_the_whole_if_the_centre_stays():
    q, k, at = data((9, 8)), data((9, 8), seed=1), np.arange(9)
    whole = xpos(q, at, centre=4) @ xpos(k, at, key=True, centre=4).T
    cached = [xpos(k[j : j + 1], [j], key=True, centre=4)[0] for j in range(9)]
    assert_allclose(xpos(q[8:], [8], centre=4) @ np.array(cached).T, whole[8:], rtol=0, atol=1e-12)


# ---- the sheet's numbers ------------------------------------------------------------------------


def test_scales_of_eight_components():
    assert xpos_scale(8).round(6).tolist() == [0.285714, 0.464286, 0.642857, 0.821429]


@pytest.mark.parametrize(
    ("D", "printed"),
    [
        (0, 2.828427),
        (1, 2.496935),
        (2, 1.810423),
        (3, 1.388834),
        (4, 1.599824),
        (64, 2.100196),
        (-64, 2.419633),
        (-2000, -26.784789),
    ],
)
def test_scores_of_ones_over_the_distance(D, printed):
    for j in (0, 7):
        assert round(score(ONES, ONES, j + D, j) / 8**0.5, 6) == printed


def test_turned_ones_of_a_query_and_of_a_key():
    query = [-1.1228, -0.8427, 0.6569, 1.2452, 0.9670, 1.0269, 0.9958, 1.0018]
    key = [-0.3019, 1.3852, 0.8965, 1.0965, 0.9908, 1.0108, 0.9994, 1.0014]
    assert xpos(ONES, [3])[0].round(4).tolist() == query
    assert xpos(ONES, [1], key=True)[0].round(4).tolist() == key


@pytest.mark.parametrize(("moved", "printed"), [(30, 1.846591), (2000, -19.75)])
def test_a_key_turned_by_an_older_centre_is_off(moved, printed):
    q, k = xpos(ONES, [2], centre=moved), xpos(ONES, [0], key=True)
    wrong = (q @ k.T).item() / 8**0.5
    assert round(wrong, len(str(printed).partition(".")[2])) == printed


# ---- dtype, range, purity, gradient, bad input --------------------------------------------------


@layouts
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_is_kept_and_nothing_is_changed_in_place(layout, dtype):
    x, positions = data((5, 8), dtype), np.arange(1000, 1005)
    kept = x.copy(), positions.copy()
    got = xpos(x, positions, layout=layout)
    assert got.dtype == dtype
    assert_array_equal(x, kept[0])
    assert_array_equal(positions, kept[1])
    exact = xpos(x.astype(np.float64), positions, layout=layout)
    eps = np.finfo(dtype).eps
    assert_allclose(got.astype(np.float64), exact, rtol=4 * eps, atol=4 * eps)


def test_half_precision_is_rounded_once():
    x = data((20, 8), np.float16)
    exact = xpos(x.astype(float), np.arange(900, 920))
    assert_array_equal(xpos(x, np.arange(900, 920)), exact.astype(np.float16))


def test_integers_become_float64():
    assert xpos([[1, 0]], [0]).dtype == np.float64


def test_float32_at_a_million_is_exact_near_its_centre():
    x, at = data((128, 64), np.float32), 1_000_000 + np.arange(128)
    got = xpos(x, at, key=True, centre=1_000_064)
    assert_allclose(got, xpos(x.astype(np.float64), at, key=True, centre=1_000_064), atol=3e-6)


def test_a_factor_that_would_be_infinite_is_refused_and_a_centre_mends_it():
    x = np.ones((2, 128), np.float32)
    assert np.isfinite(xpos(x, [0, 36_000], key=True)).all()
    with pytest.raises(ValueError, match=r"must fit float32; got e\^91 among positions from 0 to"):
        xpos(x, [0, 37_000], key=True)
    assert np.isfinite(xpos(x, [0, 37_000], key=True, centre=18_500)).all()
    with pytest.raises(ValueError, match="must fit float16"):
        xpos(x.astype(np.float16), [0, 5000], key=True)
    with pytest.raises(ValueError, match="must fit float32"):
        xpos(x, [-37_000, 0])


@layouts
@pytest.mark.parametrize("key", [False, True])
def test_gradient_equals_finite_differences(layout, key):
    x, g, at = data((2, 4, 6)), data((2, 4, 6), seed=1), np.array([3, 50, 400, 9])

    def number(x):
        return np.sum(g * xpos(x, at, rope_frequencies(4), key=key, centre=7, layout=layout))

    _, grads = value_and_grad(lambda p: number(p["x"]))({"x": x})
    assert_allclose(grads["x"], slopes(number, [x], 0), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: xpos_scale(3), "xpos_scale: d must be even, so that components pair up; got 3"),
        (lambda: xpos_scale(4, gamma=0), "xpos_scale: gamma must be above 0; got 0"),
        (lambda: xpos([1.0, 2.0], [0]), r"xpos: x must have the axes \(..., L, K\); got shape"),
        (
            lambda: xpos(np.zeros((2, 5)), [0, 1]),
            "K, the last axis of x, must be even.*got 5",
        ),
        (lambda: xpos([[1j, 0]], [0]), "xpos: x must hold real numbers; got dtype complex128"),
        (
            lambda: xpos(np.zeros((3, 4)), [0, 1]),
            r"xpos: positions must broadcast to the shape of x without its last.*got \(2,\)",
        ),
        (lambda: xpos(np.zeros((1, 4)), [np.nan]), "xpos: positions must be finite"),
        (
            lambda: xpos(np.zeros((1, 4)), [0], np.ones(3)),
            r"frequencies must be one axis of at most K/2 numbers; got shape \(3,\) for K = 4",
        ),
        (lambda: xpos(np.zeros((1, 4)), [0], np.ones((1, 2))), r"one axis.*got shape \(1, 2\)"),
        (lambda: xpos(np.zeros((1, 4)), [0], scale_base=0), "xpos: scale_base must be above 0"),
        (lambda: xpos(np.zeros((1, 4)), [0], key=1), "xpos: key must be True or False; got 1"),
        (lambda: xpos(np.zeros((1, 4)), [0], centre=np.inf), "xpos: centre must be finite"),
        (lambda: xpos(np.zeros((1, 4)), [0], layout="neox"), "xpos: layout must be.*got 'neox'"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
