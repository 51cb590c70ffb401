"""Fourier features: loop oracle, theorems, published values, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import sinusoidal, value_and_grad
from pe_numpy.absolute.fourier import fourier_features

seeds = st.integers(0, 2**32 - 1)


def features_by_loops(x, B):
    """One point and one wave at a time."""
    m, d = B.shape
    code = np.zeros(2 * m)
    for c in range(m):
        angle = 2 * math.pi * sum(B[c, a] * x[a] for a in range(d))
        code[c], code[m + c] = math.cos(angle), math.sin(angle)
    return code


def nerf_by_loops(x, n):
    """Coordinate by coordinate, sin and cos of 2^l pi x."""
    return [
        f(2**level * math.pi * at) for at in x for level in range(n) for f in (math.sin, math.cos)
    ]


# ---- loop oracle --------------------------------------------------------------------------------


def test_features_equal_the_formula_wave_by_wave():
    rng = np.random.default_rng(0)
    x, B = rng.standard_normal((2, 5, 3)), rng.standard_normal((7, 3))
    code = fourier_features(x, B)
    assert code.shape == (2, 5, 14) and code.dtype == np.float64
    for place in np.ndindex(2, 5):
        assert_allclose(code[place], features_by_loops(x[place], B), rtol=0, atol=1e-12)


# ---- theorems -----------------------------------------------------------------------------------


@given(seeds, st.integers(1, 4), st.integers(1, 9))
def test_dot_product_depends_on_the_difference_alone_and_the_length_is_fixed(seed, d, m):
    rng = np.random.default_rng(seed)
    x, y, shift = rng.standard_normal((3, d))
    B = rng.standard_normal((m, d))
    product = fourier_features(x, B) @ fourier_features(y, B)
    assert_allclose(product, np.cos(2 * math.pi * B @ (x - y)).sum(), rtol=0, atol=1e-11)
    moved = fourier_features(x + shift, B) @ fourier_features(y + shift, B)
    assert_allclose(product, moved, rtol=0, atol=1e-10)
    assert_allclose(np.sum(fourier_features(x, B) ** 2), m, rtol=1e-12)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.0])
def test_mean_product_of_random_waves_is_a_gaussian_of_the_distance(sigma):
    rng, m = np.random.default_rng(1), 40_000
    B = sigma * rng.standard_normal((m, 2))
    origin, steps = fourier_features([0.0, 0.0], B), np.array([[0.05, 0], [0, 0.2], [0.3, -0.4]])
    mean = fourier_features(steps, B) @ origin / m
    distance = np.linalg.norm(steps, axis=1)
    expected = np.exp(-2 * math.pi**2 * sigma**2 * distance**2)
    assert_allclose(mean, expected, rtol=0, atol=5 / math.sqrt(2 * m))  # 5 standard errors


def test_sinusoid_is_the_case_of_one_coordinate_and_waves_of_its_frequencies():
    frequencies = 10000.0 ** (-np.arange(4) / 4)
    positions = np.arange(50)
    code = fourier_features(positions[:, None], frequencies[:, None] / (2 * math.pi))
    cosines_last = np.concatenate([code[:, 4:], code[:, :4]], axis=1)
    expected = sinusoidal(positions, 8, layout="concatenated")
    assert_allclose(cosines_last, expected, rtol=0, atol=1e-12)


def test_nerf_is_the_case_of_waves_along_the_axes_that_double():
    x, n = np.array([0.3, -0.7]), 4
    B = np.kron(np.eye(2), 2.0 ** np.arange(-1, n - 1)[:, None])  # (2n, 2)
    cos, sin = fourier_features(x, B).reshape(2, -1)
    assert_allclose(np.stack([sin, cos], axis=1).ravel(), nerf_by_loops(x, n), rtol=0, atol=1e-12)


def test_gradients_of_points_and_waves_are_those_of_finite_differences():
    rng = np.random.default_rng(2)
    params = {"x": rng.standard_normal((3, 2)), "B": rng.standard_normal((4, 2))}
    target = rng.standard_normal((3, 8))

    def loss(p):
        return (fourier_features(p["x"], p["B"]) * target).sum()

    _, gradients = value_and_grad(loss)(params)
    for name, value in params.items():
        for place in np.ndindex(value.shape):
            step = np.zeros(value.shape)
            step[place] = 1e-6
            up, down = (loss(params | {name: value + s * step}) for s in (1, -1))
            assert_allclose(gradients[name][place], (up - down) / 2e-6, rtol=0, atol=1e-6)


# ---- published values ---------------------------------------------------------------------------


def test_worked_examples():
    code = fourier_features([0.125, 0.25], np.diag([1.0, 2.0]))
    assert (code.round(6) + 0.0).tolist() == [0.707107, -1, 0.707107, 0]
    doubling = fourier_features([0.25], [[0.5], [1.0], [2.0]]).reshape(2, 3)  # cosines, sines
    nerf = (doubling[::-1].T.ravel().round(6) + 0.0).tolist()
    assert nerf == [0.707107, 0.707107, 1, 0, 0, -1]


# ---- purity, bad input --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
def test_angles_are_computed_in_float64_and_nothing_is_changed_in_place(dtype):
    x, B = np.array([[100, 3]], dtype), np.array([[101, 2]], dtype)
    kept = x.copy(), B.copy()
    code = fourier_features(x, B)
    assert code.dtype == np.float64
    assert_allclose(code, [[1, 0]], rtol=0, atol=1e-9)  # 10106 whole turns
    assert_array_equal(x, kept[0])
    assert_array_equal(B, kept[1])
    assert fourier_features(np.zeros((0, 2), dtype), B).shape == (0, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: fourier_features(0.5, [[1.0]]),
            "fourier_features: x must be an axis of positions",
        ),
        (lambda: fourier_features([np.nan], [[1.0]]), "fourier_features: x must be finite"),
        (lambda: fourier_features([1j], [[1.0]]), "x must be integers or real numbers"),
        (lambda: fourier_features([0.5], [[np.inf]]), "fourier_features: B must be finite"),
        (
            lambda: fourier_features([0.5], [1.0]),
            r"B must have the axes \(m, d\).*got shape \(1,\)",
        ),
        (
            lambda: fourier_features([0.5, 0.1], [[1.0], [2.0]]),
            r"fourier_features: B must have the axes \(m, d\) with d = 2, .*got shape \(2, 1\)",
        ),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
