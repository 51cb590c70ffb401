"""GRAPE: series and loops as oracles, the group's laws, RoPE, ALiBi, published numbers, input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import additive_lift, alibi_bias, alibi_slopes, rank2_rotation, rope, rope_matrix

steps = st.floats(-500, 500)


def data(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def exponential(A):
    """The series, of a matrix made small; then squared as often as it was halved."""
    halvings = 12
    term = total = np.eye(len(A))
    for m in range(1, 20):
        term = term @ (A / 2**halvings) / m
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return total


def lifted_score(q, k, slope, i, j):
    """One score, by loops, with the query's and the key's own matrices."""
    q, k, A = additive_lift([q], [k], slope)
    K, size = len(q[0]) - 2, len(q[0])
    turn = [[float(r == c) + i * A[r, c] for c in range(size)] for r in range(size)]
    back = [[float(r == c) - j * A[c, r] for c in range(size)] for r in range(size)]
    turned = [sum(turn[r][c] * q[0, c] for c in range(size)) for r in range(size)]
    other = [sum(back[r][c] * k[0, c] for c in range(size)) for r in range(size)]
    return sum(x * y for x, y in zip(turned, other, strict=True)) / math.sqrt(K)


# ---- oracles ------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [2, 3, 8])
@pytest.mark.parametrize("n", [0, 1, -2, 0.5, 7])
def test_rotation_equals_the_series_of_its_generator(K, n):
    a, b = data((2, K), seed=K)
    A = np.array([[a[r] * b[c] - b[r] * a[c] for c in range(K)] for r in range(K)])
    assert_allclose(rank2_rotation(a, b, n), exponential(n * A), rtol=0, atol=1e-10)


def test_rotation_equals_the_printed_closed_form():
    a, b = data((2, 5))
    A = np.outer(a, b) - np.outer(b, a)
    s = math.sqrt((a @ a) * (b @ b) - (a @ b) ** 2)
    for n in (-3, 1, 11):
        printed = np.eye(5) + math.sin(n * s) / s * A + (1 - math.cos(n * s)) / s**2 * A @ A
        assert_allclose(rank2_rotation(a, b, n), printed, rtol=0, atol=1e-12)


def test_steps_of_any_shape():
    a, b, n = data(3), data(3, seed=1), data((2, 4), seed=2)
    got = rank2_rotation(a, b, n)
    assert got.shape == (2, 4, 3, 3)
    for at in np.ndindex(2, 4):
        assert_allclose(got[at], rank2_rotation(a, b, n[at]), rtol=0, atol=1e-14)


@pytest.mark.parametrize(("i", "j"), [(0, 0), (5, 2), (2, 5), (900, 3)])
def test_lifted_score_is_the_scaled_product_and_a_line(i, j):
    q, k = data((2, 6))
    expected = sum(x * y for x, y in zip(q, k, strict=True)) / math.sqrt(6) - 0.3 * (i - j)
    assert_allclose(lifted_score(q, k, 0.3, i, j), expected, rtol=1e-12, atol=1e-12)


# ---- theorems -----------------------------------------------------------------------------------


@given(steps, steps)
def test_rotations_are_a_group_of_orthogonal_matrices(m, n):
    a, b = data((2, 4))
    turn = rank2_rotation(a, b, n)
    assert_allclose(turn @ turn.T, np.eye(4), rtol=0, atol=1e-12)
    assert_allclose(np.linalg.det(turn), 1, rtol=0, atol=1e-12)
    both = rank2_rotation(a, b, m) @ turn
    assert_allclose(both, rank2_rotation(a, b, m + n), rtol=0, atol=1e-10)


@given(st.integers(-1000, 1000))
def test_of_unit_vectors_it_is_a_pair_of_rope(n):
    e_1, e_2 = np.eye(2)
    omega = 0.37
    assert_allclose(rank2_rotation(omega * e_2, e_1, n), rope_matrix(n, [omega]), atol=1e-12)
    assert_allclose(rank2_rotation(e_1, omega * e_2, n), rope_matrix(-n, [omega]), atol=1e-12)


def test_planes_that_are_orthogonal_make_rope():
    x, e, omega = data((1, 6)), np.eye(6), [1.0, 0.1, 0.01]
    turned = x[0]
    for c in range(3):
        turned = rank2_rotation(omega[c] * e[2 * c + 1], e[2 * c], 40) @ turned
    assert_allclose(turned, rope(x, [40], omega)[0], rtol=0, atol=1e-13)


def test_what_is_orthogonal_to_the_plane_stays_and_the_plane_turns_from_b_to_a():
    a, b = np.array([0.0, 3.0, 0.0]), np.array([0.5, 0.0, 0.0])
    got = rank2_rotation(a, b, 1)
    assert_allclose(got @ [0, 0, 1], [0, 0, 1], rtol=0, atol=1e-15)
    assert_allclose(got @ [1, 0, 0], [math.cos(1.5), math.sin(1.5), 0], rtol=0, atol=1e-15)


def test_parallel_vectors_turn_nothing_and_nearly_parallel_ones_hardly():
    a = np.array([1.0, 2.0])
    assert_array_equal(rank2_rotation(a, 2 * a, 5), np.eye(2))
    assert_array_equal(rank2_rotation(a, 0 * a, 5), np.eye(2))
    near = rank2_rotation(a, [1.0, 2.0 + 1e-12], 5)
    assert np.isfinite(near).all()
    assert_allclose(near, [[1, 5e-12], [-5e-12, 1]], rtol=0, atol=1e-14)


def test_the_generator_of_the_lift_is_nilpotent():
    q, k, A = additive_lift(data((3, 4)), data((5, 4)), 0.5)
    assert_array_equal(A @ A, np.zeros((6, 6)))
    assert (q.shape, k.shape, A.shape) == ((3, 6), (5, 6), (6, 6))
    assert_array_equal(q[:, 4:], [[1, 0]] * 3)
    assert_array_equal(k[:, 4:], [[0, 1]] * 5)
    assert_allclose(exponential(7 * A), np.eye(6) + 7 * A, rtol=0, atol=1e-9)


def test_heads_with_their_slopes_are_alibi_for_the_past():
    B, H, L, S, K = 2, 4, 5, 3, 6
    q, k, slopes = data((B, H, L, K)), data((B, H, S, K), seed=1), alibi_slopes(H)
    i, j = np.arange(L) + S, np.arange(S)
    lifted_q, lifted_k, A = additive_lift(q, k, slopes)
    assert A.shape == (H, K + 2, K + 2)
    at_i = lifted_q + i[:, None] * (lifted_q @ np.swapaxes(A, -1, -2))
    at_j = lifted_k - j[:, None] * (lifted_k @ A)
    got = at_i @ np.swapaxes(at_j, -1, -2) / math.sqrt(K)
    expected = q @ np.swapaxes(k, -1, -2) / math.sqrt(K) + alibi_bias(slopes, i[:, None] - j)
    assert_allclose(got, expected, rtol=0, atol=1e-12)


# ---- numbers to compare with --------------------------------------------------------------------


def test_rows_of_one_turn_in_three_dimensions():
    printed = [
        [0.155944, 0.698456, 0.698456],
        [-0.698456, 0.577972, -0.422028],
        [-0.698456, -0.422028, 0.577972],
    ]
    assert rank2_rotation([1, 0, 0], [0, 1, 1], 1).round(6).tolist() == printed


def test_a_lift_by_hand():
    q, k, A = additive_lift([[1.0, 2.0]], [[3.0, -1.0]], 0.5)
    assert_allclose(A[3], [0, 0, -0.5 * 2**0.5, 0], rtol=0, atol=1e-15)
    undivided = (q[0] + 3 * (A @ q[0])) @ k[0]
    assert_allclose(undivided, 1 - 0.5 * 2**0.5 * 3, rtol=0, atol=1e-14)
    assert_allclose(
        lifted_score([1.0, 2.0], [3.0, -1.0], 0.5 / 2**0.5, 5, 2) * 2**0.5, -0.5, rtol=0, atol=1e-14
    )


# ---- dtype, purity, bad input -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_is_kept_and_nothing_is_changed(dtype):
    a, b, n = data(4, dtype), data(4, dtype, 1), np.array([1.5, 2000.0])
    kept = a.copy(), b.copy(), n.copy()
    got = rank2_rotation(a, b, n)
    assert got.dtype == dtype
    for x, y in zip((a, b, n), kept, strict=True):
        assert_array_equal(x, y)
    exact = rank2_rotation(a.astype(float), b.astype(float), n)
    assert_array_equal(got, exact.astype(dtype))
    q, k = data((2, 4), dtype), data((3, 4), dtype, 1)
    kept = q.copy(), k.copy()
    lifted = additive_lift(q, k, np.float64(0.5))
    assert [x.dtype for x in lifted] == [dtype] * 3
    assert_array_equal(q, kept[0])
    assert_array_equal(k, kept[1])


def test_integers_become_float64():
    assert rank2_rotation([1, 0], [0, 1], 1).dtype == np.float64
    assert [x.dtype for x in additive_lift([[1]], [[2]], 1)] == [np.float64] * 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: rank2_rotation([1.0, 0.0], [1.0], 1),
            r"rank2_rotation: a and b must be two vectors \(K,\) of one width; got shapes \(2,\)",
        ),
        (lambda: rank2_rotation(np.eye(2), np.eye(2), 1), r"two vectors.*got shapes \(2, 2\)"),
        (lambda: rank2_rotation([np.inf, 0], [1, 0], 1), "rank2_rotation: a and b must be finite"),
        (lambda: rank2_rotation([1, 0], [np.nan, 0], 1), "rank2_rotation: a and b must be finite"),
        (lambda: rank2_rotation([1j, 0], [1, 0], 1), "rank2_rotation: a must hold real numbers"),
        (lambda: rank2_rotation([1, 0], ["x", "y"], 1), "b must hold real numbers; got dtype"),
        (lambda: rank2_rotation([1, 0], [0, 1], np.nan), "rank2_rotation: n must be finite"),
        (lambda: rank2_rotation([1, 0], [0, 1], True), "n must be integers or real numbers"),
        (
            lambda: additive_lift(np.zeros((2, 3)), np.zeros((2, 4)), 1),
            "additive_lift: q and k must have the same width K, at least 1; got 3 and 4",
        ),
        (lambda: additive_lift([1.0], [[1.0]], 1), r"q must have the axes \(..., L, K\)"),
        (lambda: additive_lift([[1.0]], [[1.0]], np.inf), "additive_lift: slope must be finite"),
        (
            lambda: additive_lift(np.zeros((4, 2, 3)), np.zeros((4, 2, 3)), np.ones(3)),
            r"slope must broadcast to the shape of the batch axes, \(4,\); got \(3,\)",
        ),
        (lambda: additive_lift([[1.0]], [[1.0]], [0.5, 1]), r"axes, \(\); got \(2,\)"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
