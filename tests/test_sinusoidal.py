"""Sinusoidal codes: loop oracle, theorems, published values, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import sinusoidal, sinusoidal_shift, timing_signal, wavelengths

even_widths = st.integers(1, 40).map(lambda n: 2 * n)
offsets = st.integers(-1000, 1000)
bases = st.floats(1.5, 1e6)


def sinusoidal_by_loops(positions, d_model, base=10000.0):
    """The two formulas of section 3.5, one component at a time."""
    code = np.zeros((len(positions), d_model))
    for row, pos in enumerate(positions):
        for i in range(d_model // 2):
            code[row, 2 * i] = math.sin(pos / base ** (2 * i / d_model))
            code[row, 2 * i + 1] = math.cos(pos / base ** (2 * i / d_model))
    return code


# ---- loop oracle --------------------------------------------------------------------------------


@pytest.mark.parametrize("d_model", [2, 4, 6, 14, 64])
@pytest.mark.parametrize("base", [10000.0, 7.0])
def test_code_equals_the_formulas_component_by_component(d_model, base):
    positions = [0, 1, 2, 5, 17, 1000]
    expected = sinusoidal_by_loops(positions, d_model, base)
    assert_allclose(sinusoidal(positions, d_model, base), expected, rtol=0, atol=1e-12)


def test_positions_may_have_any_shape_and_lie_between_the_integers():
    positions = np.arange(6).reshape(2, 3) + 0.5
    code = sinusoidal(positions, 8)
    assert code.shape == (2, 3, 8)
    assert_allclose(code[1, 2], sinusoidal_by_loops([5.5], 8)[0], rtol=0, atol=1e-12)
    assert sinusoidal(5, 8).shape == (8,)
    assert sinusoidal([], 8).shape == (0, 8)


@pytest.mark.parametrize("start", [0, 0.5, -40, 3000])
@pytest.mark.parametrize("length", [63, 64, 65, 70, 100])
def test_runs_of_positions_whose_angles_are_added_have_the_same_codes(start, length):
    positions = start + np.arange(length)
    expected = sinusoidal_by_loops(positions, 6)
    assert_allclose(sinusoidal(positions, 6), expected, rtol=0, atol=2e-12)
    concatenated = np.concatenate([expected[:, 0::2], expected[:, 1::2]], axis=-1)
    code = sinusoidal(positions, 6, layout="concatenated")
    assert_allclose(code, concatenated, rtol=0, atol=2e-12)
    backwards = sinusoidal(positions[::-1], 6)
    assert_allclose(backwards, expected[::-1], rtol=0, atol=2e-12)


def test_a_run_of_small_integers_that_overflow_is_no_run():
    positions = np.arange(200, 300).astype(np.uint8)  # ..., 254, 255, 0, 1, ...
    expected = sinusoidal_by_loops(positions, 6)
    assert_allclose(sinusoidal(positions, 6), expected, rtol=0, atol=1e-12)


def test_concatenated_layout_is_the_interleaved_one_permuted():
    positions = np.arange(7)
    interleaved = sinusoidal(positions, 10)
    concatenated = sinusoidal(positions, 10, layout="concatenated")
    assert_array_equal(concatenated[:, :5], interleaved[:, 0::2])
    assert_array_equal(concatenated[:, 5:], interleaved[:, 1::2])


@pytest.mark.parametrize("d_model", [2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize(("lo", "hi"), [(1.0, 10000.0), (2.0, 50.0)])
def test_timing_signal_equals_its_formula_component_by_component(d_model, lo, hi):
    positions, h = [0, 1, 2, 17, 1000.5], d_model // 2
    code = timing_signal(positions, d_model, lo, hi)
    assert code.shape == (5, d_model) and code.dtype == np.float64
    expected = np.zeros((5, d_model))  # an odd width keeps its last column of zeros
    for row, pos in enumerate(positions):
        for c in range(h):
            w = lo * (lo / hi) ** (c / max(h - 1, 1))
            expected[row, c], expected[row, h + c] = math.sin(pos * w), math.cos(pos * w)
    assert_allclose(code, expected, rtol=0, atol=1e-12)
    assert timing_signal(np.ones((2, 3), int), d_model).shape == (2, 3, d_model)


# ---- theorems -----------------------------------------------------------------------------------


@given(even_widths, st.integers(-10_000, 10_000), offsets, bases)
def test_shift_matrix_carries_every_code_to_the_one_offset_positions_on(d, position, offset, base):
    shifted = sinusoidal_shift(offset, d, base) @ sinusoidal(position, d, base)
    assert_allclose(shifted, sinusoidal(position + offset, d, base), rtol=0, atol=1e-10)


@given(even_widths, offsets, offsets)
def test_shifts_compose_and_the_opposite_shift_is_the_transpose(d, a, b):
    both = sinusoidal_shift(a, d) @ sinusoidal_shift(b, d)
    assert_allclose(both, sinusoidal_shift(a + b, d), rtol=0, atol=1e-10)
    assert_array_equal(sinusoidal_shift(-a, d), sinusoidal_shift(a, d).T)


@given(even_widths, offsets, offsets)
def test_dot_product_of_two_codes_depends_on_their_distance_alone(d, p, k):
    theta = 2 * math.pi / wavelengths(d)
    product = sinusoidal(p, d) @ sinusoidal(p + k, d)
    assert_allclose(product, np.cos(k * theta).sum(), rtol=0, atol=1e-10)


@given(even_widths, offsets)
def test_every_code_has_the_norm_of_d_over_2(d, position):
    assert_allclose(np.sum(sinusoidal(position, d) ** 2), d / 2, rtol=1e-13)


def test_each_pair_repeats_after_its_wavelength():
    d = 8
    for pair, period in enumerate(wavelengths(d)):
        code = sinusoidal([3, 3 + period], d)[:, 2 * pair : 2 * pair + 2]
        assert_allclose(code[0], code[1], rtol=0, atol=1e-11)


@given(st.integers(2, 40), offsets, offsets)
def test_products_of_timing_signals_depend_on_the_distance_alone(d, p, k):
    w = 10000.0 ** (-np.arange(d // 2) / max(d // 2 - 1, 1))
    product = timing_signal(p, d) @ timing_signal(p + k, d)
    assert_allclose(product, np.cos(k * w).sum(), rtol=0, atol=1e-10)


@given(even_widths.filter(lambda d: d > 2))
def test_timing_signal_is_the_concatenated_code_of_a_larger_base(d):
    code = sinusoidal(np.arange(20), d, 10000.0 ** (d / (d - 2)), "concatenated")
    assert_allclose(timing_signal(np.arange(20), d), code, rtol=0, atol=1e-12)


def test_last_frequency_of_a_timing_signal_is_lo_squared_over_hi():
    for d in (4, 5, 64):
        assert_allclose(timing_signal(1, d)[d // 2 - 1], math.sin(1e-4), rtol=1e-12)
        assert_allclose(timing_signal(1, d, 0.5, 20)[d // 2 - 1], math.sin(0.0125), rtol=1e-12)


# ---- published values ---------------------------------------------------------------------------


def test_worked_example_of_position_2_in_four_dimensions():
    printed = [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)]
    assert_allclose(sinusoidal(2, 4), printed, rtol=0, atol=1e-15)
    assert sinusoidal(2, 4).round(6).tolist() == [0.909297, -0.416147, 0.019999, 0.9998]


@pytest.mark.parametrize(
    ("d_model", "last"),
    [(4, 628.3185), (8, 6283.1853), (64, 47117.2428), (512, 60611.4772), (768, 61342.7444)],
)
def test_last_wavelength_stays_below_two_pi_times_the_base(d_model, last):
    assert_allclose(wavelengths(d_model)[-1], last, rtol=0, atol=5e-5)
    assert wavelengths(d_model)[0] == 2 * math.pi


def test_three_published_layouts_differ_as_their_sources_say():
    paper = [0.841471, 0.540302, 0.099833, 0.995004, 0.01, 0.99995, 0.001, 1.0]
    marian = [0.841471, 0.099833, 0.01, 0.001, 0.540302, 0.995004, 0.99995, 1.0]
    assert sinusoidal(1, 8).round(6).tolist() == paper
    assert sinusoidal(1, 8, layout="concatenated").round(6).tolist() == marian


def test_timing_signal_as_in_tensor2tensor():
    eight = [0.841471, 0.046399, 0.002154, 0.0001, 0.540302, 0.998923, 0.999998, 1.0]
    assert timing_signal(1, 8).round(6).tolist() == eight
    assert timing_signal(3, 5).round(6).tolist() == [0.14112, 0.0003, -0.989992, 1.0, 0.0]


def test_table_of_100_positions_has_its_known_sum():
    table = sinusoidal(np.arange(100), 64)
    assert_allclose(table.sum(), 2223.459209, rtol=0, atol=1e-6)
    dims = [0, 1, 10, 11, 30, 31]
    expected = [-0.262375, 0.964966, -0.651456, 0.758686, 0.618444, 0.785829]
    assert table[50, dims].round(6).tolist() == expected


# ---- dtype, purity, bad input -------------------------------------------------------------------


def test_codes_are_float64_and_positions_stay_as_they_were():
    positions = np.arange(4, dtype=np.float32)
    kept = positions.copy()
    assert sinusoidal(positions, 4).dtype == np.float64
    assert_array_equal(positions, kept)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoidal([0], 7), "sinusoidal: d_model must be even, so that each sine has its"),
        (lambda: sinusoidal([0], 0), "sinusoidal: d_model must be at least 1; got 0"),
        (lambda: sinusoidal([0], 4.0), "sinusoidal: d_model must be a whole number; got 4.0"),
        (lambda: sinusoidal([0], 4, base=0), "sinusoidal: base must be above 0; got 0"),
        (lambda: sinusoidal([0], 4, base=math.nan), "sinusoidal: base must be finite; got nan"),
        (lambda: sinusoidal([0], 4, layout="half"), "'interleaved' or 'concatenated'; got 'half'"),
        (lambda: sinusoidal(["a"], 4), "positions must be integers or real numbers; got dtype <U1"),
        (lambda: sinusoidal([True], 4), "integers or real numbers; got dtype bool"),
        (lambda: sinusoidal([np.inf], 4), "sinusoidal: positions must be finite"),
        (lambda: wavelengths(3), "wavelengths: d_model must be even"),
        (lambda: wavelengths(4, -1.0), "wavelengths: base must be above 0; got -1"),
        (lambda: sinusoidal_shift([1, 2], 4), "sinusoidal_shift: offset must be one real number"),
        (lambda: sinusoidal_shift(1, 5), "sinusoidal_shift: d_model must be even"),
        (lambda: timing_signal(1, 1), "timing_signal: d_model must be at least 2; got 1"),
        (lambda: timing_signal(1, 4, 0.0), "timing_signal: min_timescale must be above 0; got 0"),
        (
            lambda: timing_signal(1, 4, 1, -9),
            "max_timescale must be above 0; got -9",
        ),
        (lambda: timing_signal(np.nan, 4), "timing_signal: positions must be finite"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
