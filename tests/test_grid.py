"""Codes of a grid: loop oracles, theorems, published values, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy.absolute.grid import detr_sine, sinusoidal_2d
from pe_numpy.absolute.sinusoidal import sinusoidal

sides = st.integers(1, 7)
widths = st.integers(1, 8).map(lambda n: 4 * n)
# Real cells of a picture of 3 by 2 that was padded to 4 by 5.
PADDED = np.arange(4)[:, None] < 3
PADDED = PADDED & (np.arange(5) < 2)


def waves_by_loops(at, n, base):
    """Angles of one coordinate at n frequencies."""
    return [at / base ** (2 * c / (2 * n)) for c in range(n)]


def detr_by_loops(mask, d_model, temperature, normalize):
    """Count the real cells above and to the left, one cell and component at a time."""
    height, width = mask.shape
    code = np.zeros((height, width, d_model))
    for r, c in np.ndindex(height, width):
        y, x = sum(mask[: r + 1, c]), sum(mask[r, : c + 1])
        if normalize:
            y = y / (sum(mask[:, c]) + 1e-6) * 2 * math.pi
            x = x / (sum(mask[r]) + 1e-6) * 2 * math.pi
        for half, at in ((0, y), (d_model // 2, x)):
            for n, angle in enumerate(waves_by_loops(at, d_model // 4, temperature)):
                code[r, c, half + 2 * n] = math.sin(angle)
                code[r, c, half + 2 * n + 1] = math.cos(angle)
    return code


# ---- loop oracles -------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [10000.0, 7.0])
def test_2d_code_holds_row_then_column_each_as_sines_then_cosines(base):
    height, width, d_model = 3, 5, 12
    code = sinusoidal_2d(height, width, d_model, base)
    assert code.shape == (height, width, d_model)
    for r, c in np.ndindex(height, width):
        y, x = (waves_by_loops(at, d_model // 4, base) for at in (r, c))
        expected = [f(a) for angles in (y, x) for f in (math.sin, math.cos) for a in angles]
        assert_allclose(code[r, c], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("temperature", [10000.0, 20.0])
@pytest.mark.parametrize("mask", [np.ones((2, 3), bool), PADDED, np.eye(4, 3, dtype=bool)])
def test_detr_code_equals_the_counts_cell_by_cell(mask, temperature, normalize):
    code = detr_sine(mask, 12, temperature, normalize)
    expected = detr_by_loops(mask, 12, temperature, normalize)
    assert code.shape == (*mask.shape, 12) and code.dtype == np.float64
    assert_allclose(code, expected, rtol=0, atol=1e-12)


def test_counts_are_normalised_and_the_temperature_is_10000_unless_told_otherwise():
    expected = detr_by_loops(PADDED, 8, 10000.0, True)
    assert_allclose(detr_sine(PADDED, 8), expected, rtol=0, atol=1e-12)


# ---- theorems -----------------------------------------------------------------------------------


@given(sides, sides, widths)
def test_dot_product_is_a_sum_of_a_row_part_and_a_column_part(height, width, d_model):
    code = sinusoidal_2d(height, width, d_model)
    theta = 10000.0 ** (-np.arange(d_model // 4) / (d_model // 4))
    y, x = np.indices((height, width)).reshape(2, -1)
    flat = code.reshape(height * width, d_model)
    parts = [np.cos(np.subtract.outer(at, at)[..., None] * theta).sum(-1) for at in (y, x)]
    assert_allclose(flat @ flat.T, parts[0] + parts[1], rtol=0, atol=1e-11)


@given(sides, sides)
def test_raw_code_of_detr_is_the_2d_code_one_cell_further_in_another_order(height, width):
    shifted = sinusoidal_2d(height + 1, width + 1, 16)[1:, 1:]
    pairs = np.arange(16).reshape(2, 2, 4).swapaxes(1, 2).ravel()  # sin, cos, sin, cos, ...
    code = detr_sine(np.ones((height, width), bool), 16, normalize=False)
    assert_allclose(code, shifted[..., pairs], rtol=0, atol=1e-13)


def test_padding_changes_no_code_of_a_real_cell():
    alone = detr_sine(np.ones((3, 2), bool), 8)
    assert_array_equal(detr_sine(PADDED, 8)[:3, :2], alone)
    raw = detr_sine(np.ones((3, 2), bool), 8, normalize=False)
    assert_array_equal(detr_sine(PADDED, 8, normalize=False)[:3, :2], raw)


def test_a_column_that_is_all_padding_counts_0_and_is_no_nan():
    for normalize in (True, False):
        assert_array_equal(detr_sine(PADDED, 8, normalize=normalize)[:, 3, :4], [[0, 1, 0, 1]] * 4)


def test_a_batch_of_masks_gives_the_codes_of_each():
    masks = np.stack([PADDED, np.ones((4, 5), bool)])
    codes = detr_sine(masks, 8)
    assert codes.shape == (2, 4, 5, 8)
    for mask, code in zip(masks, codes, strict=True):
        assert_array_equal(code, detr_sine(mask, 8))


def test_normalised_counts_end_at_a_full_turn_in_any_size():
    for n in (2, 5, 40):
        last = detr_sine(np.ones((n, 3), bool), 8)[-1, 0, :2]
        assert_allclose(last, [0, 1], rtol=0, atol=1e-5)


# ---- published values ---------------------------------------------------------------------------


def test_cell_of_row_1_and_column_0_in_a_grid_of_2_by_3():
    quarters = sinusoidal_2d(2, 3, 8)[1, 0].round(6).reshape(4, 2)  # sin y, cos y, sin x, cos x
    timm = [0.841471, 0.01, 0, 0, 0.540302, 0.99995, 1, 1]
    assert quarters[[0, 2, 1, 3]].ravel().tolist() == timm
    mae = [0, 0, 1, 1, 0.841471, 0.01, 0.540302, 0.99995]
    assert quarters[[2, 3, 0, 1]].ravel().tolist() == mae
    whole = np.ones((2, 3), bool)
    detr = [-3e-06, 1, 0.06279, 0.998027, 0.866026, -0.499999, 0.020942, 0.999781]
    assert detr_sine(whole, 8)[1, 0].round(6).tolist() == detr
    assert detr_sine(whole, 8, normalize=False)[1, 0, :2].round(6).tolist() == [0.909297, -0.416147]


# ---- purity, bad input --------------------------------------------------------------------------


def test_mask_stays_as_it_was_and_lists_are_taken():
    kept = PADDED.copy()
    code = detr_sine(PADDED, 4)
    assert_array_equal(PADDED, kept)
    assert_array_equal(code, detr_sine(PADDED.tolist(), 4))
    assert_array_equal(sinusoidal_2d(1, 2, 4)[0, 1, 2:], sinusoidal(1, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoidal_2d(2, 3, 6), "sinusoidal_2d: d_model must be divisible by 4.*got 6"),
        (lambda: sinusoidal_2d(0, 3, 4), "sinusoidal_2d: height must be at least 1; got 0"),
        (lambda: sinusoidal_2d(2, 2.5, 4), "sinusoidal_2d: width must be a whole number; got 2.5"),
        (lambda: sinusoidal_2d(2, 2, 4, 0), "sinusoidal_2d: base must be above 0; got 0"),
        (lambda: detr_sine([[True]], 6), "detr_sine: d_model must be divisible by 4.*got 6"),
        (lambda: detr_sine([[1, 0]], 4), "mask must be boolean, True = a real cell; got dtype int"),
        (
            lambda: detr_sine([[True], [True, True]], 4),
            "detr_sine: mask must have rows of one length",
        ),
        (lambda: detr_sine([True], 4), r"mask must have the axes \(..., h, w\).*got shape \(1,\)"),
        (lambda: detr_sine([[False]], 4), r"in each grid a real cell; got shape \(1, 1\) with 0"),
        (
            lambda: detr_sine([[[True, False]], [[False, False]]], 4),
            r"in each grid a real cell; got shape \(2, 1, 2\) with 1 real",
        ),
        (lambda: detr_sine([[True]], 4, 0.0), "detr_sine: temperature must be above 0; got 0"),
        (lambda: detr_sine([[True]], 4, 9.0, 1), "normalize must be True or False; got 1"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
