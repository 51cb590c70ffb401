"""Digits, the log-n factor and entropy: loop oracles, theorems, published values, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import attention, causal_mask, rope, rope_frequencies, softmax
from pe_numpy.rotary.scaling import linear_scaling, ntk_scaling
from pe_numpy.transformer.length import (
    attention_entropy,
    attention_temperature,
    from_digits,
    log_n_scale,
    to_digits,
)

positions = st.integers(0, 10**9)
number_bases = st.integers(2, 60)
seeds = st.integers(0, 2**32 - 1)


def digits_by_loops(n, base, width):
    """floor(n / b^i) mod b for one integer n, with Python's own integers."""
    return [n // base**i % base for i in reversed(range(width))]


def entropy_by_loops(weights):
    """Minus the sum of w ln w, for one row."""
    return -sum(w * math.log(w) for w in weights if w > 0)


# ---- loop oracles -------------------------------------------------------------------------------


@given(st.lists(positions, min_size=1, max_size=5), number_bases)
def test_digits_equal_their_formula_place_by_place(n, base):
    digits = to_digits(n, base, 31)
    assert digits.tolist() == [digits_by_loops(m, base, 31) for m in n]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.float16, np.float64])
def test_positions_of_any_shape_get_a_last_axis_of_digits(dtype):
    n = np.arange(2 * 3).reshape(2, 3).astype(dtype) * 20
    digits = to_digits(n, 300, 4)
    assert digits.shape == (2, 3, 4)
    assert digits.dtype == (np.float64 if np.dtype(dtype).kind == "f" else np.int64)
    expected = [[digits_by_loops(int(m), 300, 4) for m in row] for row in n]
    assert_array_equal(digits, expected)
    assert_array_equal(from_digits(digits, 300), n)


def test_no_positions_have_no_digits_and_no_digits_make_zero():
    assert to_digits([], 10, 3).shape == (0, 3)
    assert from_digits(np.zeros((0, 3)), 10).shape == (0,)
    assert_array_equal(from_digits(np.zeros((2, 0), int), 10), [0, 0])


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_entropy_equals_its_sum_row_by_row(axis):
    weights = softmax(np.random.default_rng(0).standard_normal((3, 5, 7)), axis)
    entropy = attention_entropy(weights, axis)
    rows = np.moveaxis(weights, axis, -1)
    assert entropy.shape == rows.shape[:-1]
    for place in np.ndindex(entropy.shape):
        assert_allclose(entropy[place], entropy_by_loops(rows[place]), rtol=1e-13)


def test_log_n_factor_equals_its_formula_number_by_number():
    n = np.array([[1, 2, 511], [512, 513, 10**6]])
    expected = [[max(1, math.log(m) / math.log(512)) for m in row] for row in n.tolist()]
    assert_allclose(log_n_scale(n, 512), expected, rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
def test_temperature_equals_its_formula_number_by_number(dtype):
    i = np.array([[0, 2, 3], [6, 7, 255]], dtype)
    expected = [[1 + 0.3 * math.log(1 + (m + 1) // 4) for m in row] for row in i.tolist()]
    factor = attention_temperature(i, 4, 0.3)
    assert factor.dtype == np.float64
    assert_allclose(factor, expected, rtol=1e-15)


# ---- theorems -----------------------------------------------------------------------------------


@given(positions, number_bases)
def test_digits_lead_back_to_the_position(n, base):
    assert from_digits(to_digits(n, base, 30), base) == n


@given(st.floats(0, 1e9), number_bases)
def test_digits_of_a_fraction_lead_back_and_the_last_keeps_it(n, base):
    digits = to_digits(n, base, 30)
    assert_allclose(from_digits(digits, base), n, rtol=1e-15)
    assert_array_equal(digits[:-1] % 1, 0)
    assert digits[-1] % 1 == n % 1
    assert digits[-1] < base


@given(positions, number_bases)
def test_every_digit_is_below_the_base_and_the_next_position_adds_one(n, base):
    digits, following = to_digits([n, n + 1], base, 31)
    assert ((digits >= 0) & (digits < base)).all()
    changed = np.flatnonzero(digits != following)
    assert following[changed[0]] == digits[changed[0]] + 1  # and a carry sets the rest to zero
    assert_array_equal(following[changed[1:]], 0)


def test_interpolation_crowds_the_last_digit_and_no_other():
    n = np.arange(2000)
    digits = to_digits(n / 2, 10, 3)
    assert sorted(set(digits[:, -1].tolist())) == np.arange(0, 10, 0.5).tolist()
    assert sorted(set(digits[:, 0].tolist())) == np.arange(10).tolist()
    gaps = np.abs(np.diff(digits, axis=0))
    assert [gaps[:, place][gaps[:, place] > 0].min() for place in range(3)] == [1, 1, 0.5]


@given(st.integers(1, 20).map(lambda n: 2 * n), st.integers(0, 5000))
def test_angles_of_rope_are_digits_without_the_floor(d, n):
    b = 10000 ** (2 / d)
    x = np.tile([1.0, 0.0], d // 2)[None]
    turned = rope(x, [n])[0].reshape(-1, 2)
    for i, (cos, sin) in enumerate(turned):
        digit = n / b**i % (2 * math.pi)
        assert_allclose([cos, sin], [math.cos(digit), math.sin(digit)], rtol=0, atol=1e-9)


@given(st.integers(2, 20).map(lambda n: 2 * n), st.floats(1, 64))
def test_ntk_scaling_is_a_change_of_the_number_base(d, factor):
    b = 10000 ** (2 / d)
    wider = b * factor ** (2 / (d - 2))
    scaled, theta = ntk_scaling(d, factor), rope_frequencies(d)
    assert_allclose(scaled, [wider**-i for i in range(d // 2)], rtol=1e-11)
    assert scaled[0] == theta[0]  # the last digit: not interpolated
    assert_allclose(scaled[-1], linear_scaling(theta, factor)[-1], rtol=1e-11)  # the first: in full


@given(st.floats(1.01, 1e6), st.floats(0, 1e9))
def test_log_n_factor_is_the_power_of_the_trained_length_that_gives_n(trained_length, n):
    factor = log_n_scale(n, trained_length)
    if n <= trained_length:
        assert_allclose(factor, 1, rtol=1e-13)
    else:
        assert_allclose(factor * math.log(trained_length), math.log(n), rtol=1e-13)
    assert factor >= 1


def test_the_factor_on_queries_is_the_factor_on_scores():
    L, S, K = 5, 7, 8
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(shape) for shape in ((L, K), (S, K), (S, K)))
    factor = log_n_scale(np.arange(L) + 3, 4)[:, None]
    _, weights = attention(factor * q, k, v)
    assert_allclose(weights, softmax(factor * (q @ k.T) / math.sqrt(K)), rtol=0, atol=1e-14)


@given(st.integers(1, 1000), st.floats(0.01, 2), st.integers(0, 10**6))
def test_temperature_is_a_staircase_that_begins_at_1(floor_scale, scale, i):
    before, here = attention_temperature([i, i + 1], floor_scale, scale)
    assert (here > before) == ((i + 2) % floor_scale == 0)  # else no step
    assert (before == 1) == (i + 1 < floor_scale)


def test_temperature_of_the_query_leaves_a_cache_alone():
    q, k, v = np.random.default_rng(0).standard_normal((3, 10, 8))
    at = np.arange(10)
    whole, _ = attention(attention_temperature(at, 3)[:, None] * q, k, v, mask=causal_mask(at, at))
    for i in at:
        hot = attention_temperature([i], 3)[:, None] * q[i : i + 1]
        one, _ = attention(hot, k[: i + 1], v[: i + 1])
        assert_allclose(one[0], whole[i], rtol=0, atol=1e-14)


@given(st.integers(1, 50), seeds)
def test_entropy_lies_between_none_and_that_of_equal_weights(n, seed):
    rng = np.random.default_rng(seed)
    weights = softmax(3 * rng.standard_normal(n))
    entropy = attention_entropy(weights)
    assert 0 <= entropy <= math.log(n) + 1e-12
    assert_allclose(attention_entropy(weights[rng.permutation(n)]), entropy, rtol=0, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 5, 4096])
def test_one_key_has_no_entropy_and_n_equal_keys_have_ln_n(n):
    first = np.eye(1, n)
    assert attention_entropy(first).tolist() == [0.0]
    assert not np.signbit(attention_entropy(first)).any()
    assert_allclose(attention_entropy(np.full(n, 1 / n)), math.log(n), rtol=0, atol=1e-12)


@given(seeds)
def test_sharper_scores_have_less_entropy(seed):
    scores = np.random.default_rng(seed).standard_normal(30)
    entropies = [attention_entropy(softmax(scale * scores)) for scale in (0.5, 1, 2, 4)]
    assert (np.diff(entropies) < 0).all()


def test_a_row_that_may_attend_to_nothing_has_no_entropy():
    weights = softmax([[-np.inf, -np.inf], [0.0, 0.0]])
    assert attention_entropy(weights).round(6).tolist() == [0, 0.693147]
    assert attention_entropy(np.zeros((3, 0))).tolist() == [0, 0, 0]
    assert attention_entropy(np.zeros((0, 3))).shape == (0,)


# ---- published values ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "width", "digits"),
    [
        (10, 4, [1, 7, 4, 9]),
        (8, 4, [3, 3, 2, 5]),
        (6, 5, [1, 2, 0, 3, 3]),
        (2, 11, [1, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1]),
        (16, 3, [6, 13, 5]),
        (13, 3, [10, 4, 7]),
        (10, 6, [0, 0, 1, 7, 4, 9]),
    ],
)
def test_1749_in_seven_ways(base, width, digits):
    assert to_digits(1749, base, width).tolist() == digits
    assert from_digits(digits, base) == 1749


def test_interpolation_of_1749_by_two():
    assert to_digits(1749 / 2, 10, 3).tolist() == [8, 7, 4.5]
    assert from_digits([8, 7, 4.5], 10) == 874.5
    assert 2 * from_digits([7, 4, 9], 10) == 1498  # what the code [7, 4, 9] stands for now


def test_smallest_base_that_holds_1999_in_three_digits_is_13():
    enough = []
    for base in range(2, 20):
        try:
            to_digits(np.arange(2000), base, 3)
        except ValueError:
            continue
        enough.append(base)
    assert enough[0] == 13
    assert to_digits(16**3 - 1, 16, 3).tolist() == [15, 15, 15]


def test_temperature_of_llama_4_at_six_positions():
    factors = attention_temperature([0, 8190, 8191, 16383, 131071, 1048575])
    assert factors.round(6).tolist() == [1, 1, 1.069315, 1.109861, 1.283321, 1.485981]


def test_entropy_of_four_scores_divided_and_multiplied():
    z = np.array([2.0, 1, 0, -1])
    scales = [1, 1 / math.log(2048), log_n_scale(2048, 512)]
    entropies = [attention_entropy(softmax(scale * z)) for scale in scales]
    assert [f"{h:.4f}" for h in entropies] == ["0.9475", "1.3756", "0.8147"]


def test_multiplying_with_log_n_slows_the_growth_of_entropy_and_dividing_does_not():
    rng = np.random.default_rng(0)
    plain, divided, multiplied = [], [], []
    for n in (512, 2048, 8192):
        z = rng.standard_normal(n)
        plain.append(f"{attention_entropy(softmax(z)):.4f}")
        divided.append(f"{attention_entropy(softmax(z / math.log(n))):.4f}")
        multiplied.append(f"{attention_entropy(softmax(z * log_n_scale(n, 512))):.4f}")
    assert plain == ["5.7625", "7.1510", "8.5185"]
    assert divided == ["6.2254", "7.6161", "9.0048"]
    assert multiplied == ["5.7625", "6.9375", "7.9934"]


# ---- dtype, purity, bad input -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_entropy_keeps_the_dtype_and_changes_nothing_in_place(dtype):
    weights = np.full((2, 2000), 1 / 2000, dtype)
    weights[1] = 0
    kept = weights.copy()
    entropy = attention_entropy(weights)
    assert entropy.dtype == dtype
    assert_array_equal(weights, kept)
    exact = attention_entropy(weights.astype(np.float64))
    assert_allclose(entropy.astype(np.float64), exact, rtol=4 * np.finfo(dtype).eps + 1e-13)


def test_entropy_of_float16_weights_is_rounded_once():
    weights = softmax(np.random.default_rng(0).standard_normal((700, 5))).astype(np.float16)
    exact = attention_entropy(weights.astype(np.float64))
    assert_array_equal(attention_entropy(weights), exact.astype(np.float16))


def test_digits_and_factors_leave_their_input_as_it_was():
    n, digits = np.array([7, 70]), np.array([[0, 7], [7, 0]])
    kept = n.copy(), digits.copy()
    assert_array_equal(to_digits(n, 10, 2), digits)
    assert_array_equal(from_digits(digits, 10), n)
    assert log_n_scale(n.astype(np.float32), 10).dtype == log_n_scale(n, 10).dtype == np.float64
    assert_array_equal(n, kept[0])
    assert_array_equal(digits, kept[1])


def test_a_weight_that_is_not_a_number_shows_in_the_entropy():
    assert np.isnan(attention_entropy([np.nan, 0.5]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: to_digits([3, 1749], 10, 3),
            "width must hold every n: 3 digits in base 10 hold numbers below 1000; got 1749",
        ),
        (lambda: to_digits(1000, 10, 3), "hold numbers below 1000; got 1000"),
        (lambda: to_digits(1000.5, 10, 3), "hold numbers below 1000; got 1000.5"),
        (lambda: to_digits([5, -3], 10, 3), "to_digits: n must not be negative; got -3"),
        (lambda: to_digits(-0.5, 10, 3), "to_digits: n must not be negative; got -0.5"),
        (lambda: to_digits(5, 1, 3), "to_digits: base must be at least 2; got 1"),
        (lambda: to_digits(5, 10.0, 3), "to_digits: base must be a whole number; got 10.0"),
        (lambda: to_digits(5, 10, 0), "to_digits: width must be at least 1; got 0"),
        (lambda: to_digits(np.nan, 10, 3), "to_digits: n must be finite"),
        (lambda: to_digits("12", 10, 3), "n must be integers or real numbers; got dtype <U2"),
        (lambda: from_digits(7, 10), "digits must be an axis of positions"),
        (lambda: from_digits([1, 10], 10), "each digit must be from 0 to below base = 10; got 1 t"),
        (lambda: from_digits([1, -1], 10), "each digit must be from 0 to below base.*got -1 to 1"),
        (lambda: from_digits([1, 0], 1), "from_digits: base must be at least 2; got 1"),
        (
            lambda: log_n_scale(5, 1),
            "log_n_scale: trained_length must be above 1, so that its logarithm is above 0; got 1",
        ),
        (lambda: log_n_scale([4, -5], 512), "log_n_scale: n must not be negative; got -5"),
        (lambda: log_n_scale(np.inf, 512), "log_n_scale: n must be finite"),
        (
            lambda: attention_temperature([4, -5]),
            "attention_temperature: positions must not be negative; got -5",
        ),
        (lambda: attention_temperature([np.nan]), "attention_temperature: positions must be finit"),
        (lambda: attention_temperature([1], 0), "floor_scale must be above 0; got 0"),
        (lambda: attention_temperature([1], 8, 0), "attention_temperature: scale must be above 0"),
        (lambda: attention_entropy([0.5, -0.5]), "weights must be from 0 to 1.*got -0.5 to 0.5"),
        (lambda: attention_entropy([2.0, 0.5]), "as a softmax gives them; got 0.5 to 2"),
        (lambda: attention_entropy([1.0], axis=1), r"axis must be one of.*got 1 for shape \(1,\)"),
        (lambda: attention_entropy(1.0), r"axis must be one of.*got -1 for shape \(\)"),
        (lambda: attention_entropy([1.0], None), "attention_entropy: axis must be a whole number"),
        (lambda: attention_entropy([1j]), "weights must hold real numbers; got dtype complex128"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
