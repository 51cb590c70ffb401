"""Convolution over positions: loop oracle, what each padding keeps, numbers by hand, bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy.absolute.convolution import convolve

paddings = st.sampled_from(["zero", "circular"])
lengths = st.integers(1, 12)
halves = st.integers(0, 4)
seeds = st.integers(0, 2**32 - 1)

KERNEL = [0.2, 0.5, 0.3]


def data(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def convolve_by_loops(x, kernel, padding):
    """The sum of the equation, one position and one weight at a time; x is (L,)."""
    L, m = len(x), len(kernel) // 2
    y = np.zeros(L)
    for i in range(L):
        for j in range(-m, m + 1):
            if padding == "circular":
                y[i] += kernel[j + m] * x[(i + j) % L]
            elif 0 <= i + j < L:
                y[i] += kernel[j + m] * x[i + j]
    return y


# ---- loop oracle --------------------------------------------------------------------------------


@given(lengths, halves, paddings, seeds)
def test_convolution_equals_the_sum_weight_by_weight(L, m, padding, seed):
    x, kernel = data(L, seed=seed), data(2 * m + 1, seed=seed + 1)  # the kernel may be the longer
    expected = convolve_by_loops(x, kernel, padding)
    assert_allclose(convolve(x, kernel, padding), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("padding", ["zero", "circular"])
def test_every_row_is_convolved_by_itself(padding):
    x = data((2, 3, 7))
    y = convolve(x, KERNEL, padding)
    assert y.shape == (2, 3, 7)
    for b, row in np.ndindex(2, 3):
        assert_allclose(y[b, row], convolve_by_loops(x[b, row], KERNEL, padding), atol=1e-14)


def test_zeros_are_the_default_padding():
    x = data(7)
    assert_array_equal(convolve(x, KERNEL), convolve(x, KERNEL, "zero"))


@pytest.mark.parametrize("padding", ["zero", "circular"])
def test_no_positions_give_no_positions(padding):
    assert convolve(np.zeros((3, 0)), KERNEL, padding).shape == (3, 0)


# ---- theorems -----------------------------------------------------------------------------------


@given(lengths, halves, st.integers(-20, 20), seeds)
def test_circular_padding_lets_a_shift_pass_through(L, m, n, seed):
    x, kernel = data(L, seed=seed), data(2 * m + 1, seed=seed + 1)
    shifted = convolve(np.roll(x, n), kernel, "circular")
    assert_allclose(shifted, np.roll(convolve(x, kernel, "circular"), n), rtol=0, atol=1e-12)


@given(lengths, halves, st.integers(1, 3), seeds)
def test_circular_padding_keeps_a_constant_whatever_the_kernels(L, m, layers, seed):
    y = np.ones(L)
    for layer in range(layers):
        y = convolve(y, data(2 * m + 1, seed=seed + layer), "circular")
    assert_allclose(y, np.full(L, y[0]), rtol=0, atol=1e-10)


@given(halves, st.integers(1, 3), seeds)
def test_zero_padding_marks_as_many_positions_at_each_end_as_the_kernels_reach(m, layers, seed):
    reach = m * layers
    L = 2 * reach + 3
    y = np.ones(L)
    for layer in range(layers):
        y = convolve(y, np.abs(data(2 * m + 1, seed=seed + layer)) + 0.1)
    inner = y[reach : L - reach]
    assert_allclose(inner, np.full(3, inner[0]), rtol=1e-12)
    assert (y[:reach] < inner[0] * (1 - 1e-9)).all()  # positive weights that met a zero
    assert (y[L - reach :] < inner[0] * (1 - 1e-9)).all()


@given(halves, st.integers(1, 3), seeds)
def test_paddings_differ_within_reach_of_the_ends_alone(m, layers, seed):
    reach = m * layers
    L = 2 * reach + 3
    x, kernels = data(L, seed=seed), [data(2 * m + 1, seed=seed + n) for n in range(layers)]
    zero, ring = x, x
    for kernel in kernels:
        zero, ring = convolve(zero, kernel), convolve(ring, kernel, "circular")
    inner = slice(reach, L - reach)
    assert_allclose(zero[inner], ring[inner], rtol=0, atol=1e-12)


@given(lengths, halves, seeds)
def test_symmetric_kernel_cannot_tell_one_end_from_the_other(L, m, seed):
    half = data(m, seed=seed)
    kernel = np.concatenate([half, [1.0], half[::-1]])
    y = convolve(np.ones(L), kernel)
    assert_allclose(y, y[::-1], rtol=0, atol=1e-13)


@given(lengths, halves, paddings, seeds)
def test_convolution_is_linear_in_the_signal_and_in_the_kernel(L, m, padding, seed):
    x, y = data((2, L), seed=seed)
    v, w = data((2, 2 * m + 1), seed=seed + 1)
    both = convolve(2 * x - y, v + 3 * w, padding)
    parts = [[convolve(a, k, padding) for k in (v, w)] for a in (x, y)]
    expected = 2 * (parts[0][0] + 3 * parts[0][1]) - (parts[1][0] + 3 * parts[1][1])
    assert_allclose(both, expected, rtol=0, atol=1e-11)


# ---- numbers by hand ----------------------------------------------------------------------------


def test_constant_input_shows_the_border_after_one_layer_and_after_two():
    once = convolve(np.ones(7), KERNEL)
    assert once.round(12).tolist() == [0.8, 1, 1, 1, 1, 1, 0.7]
    twice = convolve(once, KERNEL)
    assert twice.round(12).tolist() == [0.7, 0.96, 1, 1, 1, 0.91, 0.55]


def test_constant_input_shows_no_border_with_circular_padding():
    once = convolve(np.ones(7), KERNEL, "circular")
    assert once.round(12).tolist() == [1] * 7
    assert convolve(once, KERNEL, "circular").round(12).tolist() == [1] * 7


def test_examples_of_numpys_own_documentation():
    """Of `numpy.correlate`, which is this; and of `convolve`, which turns the kernel round."""
    assert convolve([1, 2, 3], [0, 1, 0.5]).tolist() == [2, 3.5, 3]
    assert convolve([1, 2, 3], [0, 1, 0.5][::-1]).tolist() == [1, 2.5, 4]
    x, kernel = data(9), data(5, seed=1)
    assert_allclose(convolve(x, kernel), np.correlate(x, kernel, "same"), rtol=0, atol=1e-14)


def test_first_weight_meets_the_position_before():
    impulse = [0, 0, 0, 1, 0, 0, 0]
    assert convolve(impulse, KERNEL).tolist() == [0, 0, 0.3, 0.5, 0.2, 0, 0]
    assert convolve([1, 0, 0, 0], KERNEL, "circular").tolist() == [0.5, 0.2, 0, 0.3]


# ---- dtype, purity, bad input -------------------------------------------------------------------


@pytest.mark.parametrize("padding", ["zero", "circular"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_dtype_of_the_signal_is_kept_and_nothing_is_changed_in_place(dtype, padding):
    x, kernel = data((2, 9), dtype), data(5, seed=1)
    kept = x.copy(), kernel.copy()
    y = convolve(x, kernel, padding)
    assert y.dtype == dtype
    assert_array_equal(x, kept[0])
    assert_array_equal(kernel, kept[1])
    exact = convolve(x.astype(np.float64), kernel, padding)
    atol = 4 * np.finfo(dtype).eps + 1e-15
    assert_allclose(y.astype(np.float64), exact, rtol=0, atol=atol)


def test_half_precision_is_summed_in_single():
    x = np.full(4001, 1.0, np.float16)
    y = convolve(x, np.full(2001, 1 / 2001))
    assert y[2000] == 1  # a float16 sum of 2001 terms would stop short


def test_integers_become_float64():
    assert convolve([1, 2, 3], [1]).dtype == np.float64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: convolve(1.0, KERNEL), r"convolve: x must have the axes \(..., L\); got shape \("),
        (lambda: convolve([1j], KERNEL), "convolve: x must hold real numbers; got dtype complex"),
        (
            lambda: convolve([1.0], [1.0, 2.0]),
            r"convolve: kernel .* odd number .* shape \(2,\)",
        ),
        (lambda: convolve([1.0], []), r"kernel must be one axis .* got shape \(0,\)"),
        (lambda: convolve([1.0], [[1.0]]), r"kernel must be one axis .* got shape \(1, 1\)"),
        (lambda: convolve([1.0], 1.0), r"kernel must be one axis .* got shape \(\)"),
        (lambda: convolve([1.0], [1j]), "convolve: kernel must hold real numbers"),
        (lambda: convolve([1.0], [1.0], "same"), "padding must be 'zero' or 'circular'; got 'same"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
