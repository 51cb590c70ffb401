"""Recurrent and continuous codes: loop oracle, theorems, order of the method, bad input."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import sinusoidal, sinusoidal_shift
from pe_numpy.absolute.recurrent import floater, recurrent

seeds = st.integers(0, 2**32 - 1)
moments = st.lists(st.floats(-3, 3), min_size=1, max_size=5)


def data(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def generator(d_model, base=10000.0):
    """A of dp/dt = A p, which the interleaved sinusoidal code solves: sin' = cos, cos' = -sin."""
    A = np.zeros((d_model, d_model))
    for i in range(d_model // 2):
        theta = base ** (-2 * i / d_model)
        A[2 * i, 2 * i + 1] = theta
        A[2 * i + 1, 2 * i] = -theta
    return A


def runge_kutta_by_loops(start, f, t, end, steps):
    """The classical tableau with scalar indices; f(p, t, c) is component c of the slope."""
    D, h, p = len(start), (end - t) / steps, list(start)
    for n in range(steps):
        now = t + n * h
        k1 = [f(p, now, c) for c in range(D)]
        k2 = [f([p[e] + h / 2 * k1[e] for e in range(D)], now + h / 2, c) for c in range(D)]
        k3 = [f([p[e] + h / 2 * k2[e] for e in range(D)], now + h / 2, c) for c in range(D)]
        k4 = [f([p[e] + h * k3[e] for e in range(D)], now + h, c) for c in range(D)]
        p = [p[c] + h / 6 * (k1[c] + 2 * k2[c] + 2 * k3[c] + k4[c]) for c in range(D)]
    return p


# ---- loop oracle --------------------------------------------------------------------------------


def test_every_code_is_the_step_of_the_one_before():
    D, length = 3, 7
    start, W = data(D), data((D, D), seed=1)

    def step(p):
        return np.tanh(W @ p + 0.5)

    codes = recurrent(start, step, length)
    assert codes.shape == (length, D)
    assert_array_equal(codes[0], start)
    for k in range(length - 1):
        assert_array_equal(codes[k + 1], step(codes[k]))


@pytest.mark.parametrize("length", [0, 1, 2])
def test_shortest_codes_are_nothing_the_start_and_one_step(length):
    codes = recurrent([3.0, 5.0, 7.0], lambda p: 2 * p, length)
    assert codes.tolist() == [[3.0, 5.0, 7.0], [6.0, 10.0, 14.0]][:length]
    assert codes.shape == (length, 3)


def test_flow_equals_the_tableau_of_the_method_step_by_step():
    times, substeps = [0.5, 1.25, 1.0, 4.0], 3

    def f(p, t, c):
        return math.sin(p[1 - c] * t) - 0.3 * p[c] ** 2 + c * t

    codes = floater([0.2, -0.7], lambda p, t: [f(p, t, c) for c in range(2)], times, substeps)
    expected = [[0.2, -0.7]]
    for t, end in pairwise(times):
        expected.append(runge_kutta_by_loops(expected[-1], f, t, end, substeps))
    assert_allclose(codes, expected, rtol=0, atol=1e-14)


def test_start_holds_at_the_first_time_whatever_it_is():
    assert floater([3.0, 5.0], lambda p, t: p, [17.0]).tolist() == [[3.0, 5.0]]
    assert floater([3.0, 5.0], lambda p, t: p, []).shape == (0, 2)


# ---- theorems -----------------------------------------------------------------------------------


def test_sinusoidal_code_is_the_recurrence_of_its_shift_matrix():
    D, L = 8, 50
    shift = sinusoidal_shift(1, D)
    codes = recurrent(sinusoidal(0, D), lambda p: shift @ p, L)
    assert_allclose(codes, sinusoidal(np.arange(L), D), rtol=0, atol=1e-12)


@pytest.mark.parametrize("times", [np.arange(7), [5, 6, 5.25, 5.25, 4.5]])
def test_sinusoidal_code_is_the_flow_of_turning_pairs(times):
    D = 6
    A = generator(D)
    codes = floater(sinusoidal(times[0], D), lambda p, t: A @ p, times, substeps=256)
    assert_allclose(codes, sinusoidal(times, D), rtol=0, atol=1e-9)


def test_default_substeps_keep_ten_sinusoidal_positions_to_four_digits():
    A = generator(4)
    error = floater([0, 1, 0, 1], lambda p, t: A @ p, np.arange(11)) - sinusoidal(np.arange(11), 4)
    assert 1e-6 < np.abs(error).max() < 5e-5  # 10 h^4 / 120 with h = 1/8


def test_half_the_step_divides_the_error_by_sixteen():
    def error(substeps):
        p = floater([1.0], lambda p, t: -p * math.cos(t), [0.0, 2.0], substeps)[1, 0]
        return abs(p - math.exp(-math.sin(2.0)))

    ratios = [error(n) / error(2 * n) for n in (16, 32, 64)]
    assert_allclose(ratios, 16, rtol=0.1)


@given(st.lists(st.floats(-2, 2), min_size=4, max_size=4), moments)
def test_slope_of_degree_3_in_time_is_integrated_exactly_in_one_step(coefficients, times):
    def slope(p, t):
        return [sum(a * t**n for n, a in enumerate(coefficients))]

    def integral(t):
        return sum(a * t ** (n + 1) / (n + 1) for n, a in enumerate(coefficients))

    codes = floater([5.0], slope, times, substeps=1)[:, 0]
    expected = [5 + integral(t) - integral(times[0]) for t in times]
    assert_allclose(codes, expected, rtol=0, atol=1e-11)


@given(seeds, st.floats(-1.5, 1.5))
def test_one_step_of_a_linear_flow_is_the_exponential_series_up_to_order_4(seed, h):
    A, start = data((3, 3), seed=seed), data(3, seed=seed + 1)
    Z = h * A
    series = np.eye(3) + Z + Z @ Z / 2 + Z @ Z @ Z / 6 + Z @ Z @ Z @ Z / 24
    code = floater(start, lambda p, t: A @ p, [4, 4 + h], substeps=1)[1]
    assert_allclose(code, series @ start, rtol=1e-9, atol=1e-9)


@given(seeds, st.floats(0.1, 2))
def test_flow_runs_back_to_where_it_came_from(seed, t):
    start, W = data(3, seed=seed), data((3, 3), seed=seed + 1) / 3

    def slope(p, t):
        return np.tanh(W @ p) + np.sin(t)

    there_and_back = floater(start, slope, [1.0, 1.0 + t, 1.0], substeps=64)
    assert_allclose(there_and_back[2], start, rtol=0, atol=1e-7)


def test_times_in_between_only_refine_the_steps():
    def slope(p, t):
        return [p[1], -t * p[0]]

    direct = floater([1.0, 0.0], slope, [0, 2], substeps=16)
    by_way_of_1 = floater([1.0, 0.0], slope, [0, 1, 2], substeps=8)
    assert_allclose(by_way_of_1[[0, 2]], direct, rtol=0, atol=1e-14)


# ---- numbers by hand ----------------------------------------------------------------------------


def test_fibonacci_numbers_and_one_step_of_the_exponential():
    codes = recurrent([1, 0], lambda p: [p[0] + p[1], p[0]], 9)
    assert codes[:, 0].tolist() == [1, 1, 2, 3, 5, 8, 13, 21, 34]
    one_step = floater([1.0], lambda p, t: p, [0, 1], substeps=1)[1, 0]
    assert_allclose(one_step, 1 + 1 + 1 / 2 + 1 / 6 + 1 / 24, rtol=0, atol=1e-15)


# ---- dtype, purity, bad input -------------------------------------------------------------------


def test_step_that_changes_its_argument_spoils_no_earlier_code():
    start = np.array([1.0, 2.0])

    def doubled_in_place(p):
        p *= 2
        return p

    assert recurrent(start, doubled_in_place, 4).tolist() == [[1, 2], [2, 4], [4, 8], [8, 16]]
    assert start.tolist() == [1.0, 2.0]


def test_step_that_gives_the_same_array_each_time_spoils_no_earlier_code():
    buffer = np.empty(2)

    def doubled(p):
        return np.multiply(p, 2, out=buffer)

    assert recurrent([1.0, 2.0], doubled, 4).tolist() == [[1, 2], [2, 4], [4, 8], [8, 16]]


def test_derivative_that_changes_its_argument_or_reuses_its_result_does_no_harm():
    times, start = [0.0, 1.0, 3.0], np.array([1.0, 2.0])
    expected = floater(start, lambda p, t: -p + t, times)
    buffer = np.empty(2)

    def rude(p, t):
        np.subtract(t, p, out=buffer)
        p[:] = 99
        return buffer

    assert_array_equal(floater(start, rude, times), expected)
    assert start.tolist() == [1.0, 2.0]
    assert times == [0.0, 1.0, 3.0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_dtype_of_the_start_is_kept_even_where_the_function_gives_another(dtype):
    start, W = data(3, dtype), data((3, 3), np.float64, seed=1) / 2
    codes = recurrent(start, lambda p: W @ p, 6)
    flow = floater(start, lambda p, t: W @ p, np.arange(4))
    assert codes.dtype == flow.dtype == dtype
    eps = np.finfo(dtype).eps
    exact = recurrent(start.astype(np.float64), lambda p: W @ p, 6)
    assert_allclose(codes.astype(np.float64), exact, rtol=0, atol=8 * eps + 1e-15)
    exact = floater(start.astype(np.float64), lambda p, t: W @ p, np.arange(4))
    assert_allclose(flow.astype(np.float64), exact, rtol=0, atol=16 * eps + 1e-14)


@pytest.mark.parametrize(
    ("dtype", "seen"),
    [(np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)],
)
def test_functions_see_one_dtype_throughout_and_half_precision_as_single(dtype, seen):
    dtypes = set()

    def watch(p, t=0.0):
        dtypes.add(p.dtype)
        return p.astype(np.float64)

    recurrent(np.ones(2, dtype), watch, 3)
    floater(np.ones(2, dtype), watch, [0, 1])
    assert dtypes == {np.dtype(seen)}


def test_derivative_gets_plain_numbers_for_the_time():
    kinds = set()

    def watch(p, t):
        kinds.add(type(t))
        return p

    floater(np.ones(2, np.float32), watch, np.arange(3, dtype=np.float32))
    assert kinds == {float}


def test_integers_become_float64():
    assert recurrent([1, 2], lambda p: p, 2).dtype == np.float64
    assert floater([1, 2], lambda p, t: [0, 0], [0, 1]).dtype == np.float64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: recurrent(1.0, abs, 3), r"recurrent: start must have one axis.*got shape \(\)"),
        (lambda: recurrent([[1.0]], abs, 3), r"start must have one axis.*got shape \(1, 1\)"),
        (lambda: recurrent([1j], abs, 3), "recurrent: start must hold real numbers; got dtype com"),
        (lambda: recurrent([1.0], abs, -1), "recurrent: length must be at least 0; got -1"),
        (lambda: recurrent([1.0], abs, 2.0), "recurrent: length must be a whole number; got 2.0"),
        (
            lambda: recurrent([1.0, 2.0], lambda p: p[:1], 3),
            r"recurrent: step must keep the shape \(2,\) of start; got \(1,\)",
        ),
        (lambda: recurrent([1.0], lambda p: 1j * p, 3), "the result of step must hold real numb"),
        (lambda: floater([[1.0]], max, [0]), r"floater: start must have one axis.*\(1, 1\)"),
        (lambda: floater([1.0], max, 3), r"floater: times must be an axis.*got 3, write \[3\]"),
        (lambda: floater([1.0], max, [[0, 1]]), r"floater: times must be one axis.*\(1, 2\)"),
        (lambda: floater([1.0], max, [0, np.inf]), "floater: times must be finite"),
        (lambda: floater([1.0], max, ["a"]), "times must be integers or real numbers; got"),
        (lambda: floater([1.0], max, [0, 1], 0), "floater: substeps must be at least 1; got 0"),
        (lambda: floater([1.0], max, [0, 1], 1.5), "substeps must be a whole number; got 1.5"),
        (
            lambda: floater([1.0, 2.0], lambda p, t: t, [0, 1]),
            r"floater: derivative must keep the shape \(2,\) of start; got \(\)",
        ),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
