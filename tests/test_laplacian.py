"""Laplacian encoding: loop oracle, cosines on a path, rotations on a cycle, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import sinusoidal_shift
from pe_numpy.absolute import laplacian
from pe_numpy.absolute.laplacian import laplacian_encoding

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 12)
both = pytest.mark.parametrize("normalized", [True, False])


def path(N):
    return np.eye(N, k=1) + np.eye(N, k=-1)


def cycle(N):
    n = np.arange(N)
    away = (n[:, None] - n) % N
    return ((away == 1) | (away == N - 1)).astype(float)


def random_graph(rng, N):
    """Random weights, some of them 0, on a path, so that the graph is connected."""
    A = rng.random((N, N)) * (rng.random((N, N)) < 0.4)
    return A + A.T + path(N)


def laplacian_by_loops(A, normalized):
    N = len(A)
    degree = [sum(A[i][j] for j in range(N)) for i in range(N)]
    out = np.zeros((N, N))
    for i in range(N):
        for j in range(N):
            if normalized:
                root = math.sqrt(degree[i] * degree[j])
                out[i, j] = (i == j) - (A[i][j] / root if root else 0)
            else:
                out[i, j] = (i == j) * degree[i] - A[i][j]
    return out


def of_length_one(v):
    return v / np.linalg.norm(v)


# ---- loop oracle --------------------------------------------------------------------------------


@both
@given(seeds, sizes)
def test_columns_are_the_orthonormal_eigenvectors_after_the_first(normalized, seed, N):
    A = random_graph(np.random.default_rng(seed), N)
    L = laplacian_by_loops(A, normalized)
    V = laplacian_encoding(A, N - 1, normalized)
    assert V.shape == (N, N - 1) and V.dtype == np.float64
    values = np.diag(V.T @ L @ V)
    assert_allclose(L @ V, V * values, rtol=0, atol=1e-12 * max(1, abs(L).max()))
    assert_allclose(V.T @ V, np.eye(N - 1), rtol=0, atol=1e-12)
    assert_allclose(values, np.linalg.eigvalsh(L)[1:], rtol=0, atol=1e-12 * max(1, abs(L).max()))
    first = np.sqrt(A.sum(1)) if normalized else np.ones(N)  # the one that is left out
    assert_allclose(first @ V, 0, rtol=0, atol=1e-11)


@both
@given(seeds, sizes, st.integers(1, 11))
def test_fewer_vectors_are_the_first_of_more(normalized, seed, N, k):
    A = random_graph(np.random.default_rng(seed), N)
    k = min(k, N - 1)
    assert_array_equal(
        laplacian_encoding(A, k, normalized), laplacian_encoding(A, N - 1, normalized)[:, :k]
    )


# ---- theorems: the link to cosines --------------------------------------------------------------


@given(sizes)
def test_on_a_path_the_combinatorial_vectors_are_cosines_between_the_nodes(N):
    V, n = laplacian_encoding(path(N), N - 1, normalized=False), np.arange(N)
    L = np.diag(path(N).sum(1)) - path(N)
    for k in range(1, N):
        cosine = of_length_one(np.cos(math.pi * k * (n + 0.5) / N))
        assert_allclose(V[:, k - 1], cosine, rtol=0, atol=1e-12)
        value = 2 - 2 * math.cos(math.pi * k / N)
        assert_allclose(L @ V[:, k - 1], value * V[:, k - 1], rtol=0, atol=1e-12)


@given(sizes)
def test_on_a_path_the_normalised_vectors_are_cosines_at_the_nodes_times_the_root_of_degrees(N):
    V, n = laplacian_encoding(path(N), N - 1), np.arange(N)
    degree = path(N).sum(1)
    L = np.eye(N) - path(N) / np.sqrt(np.outer(degree, degree))
    for k in range(1, N):
        cosine = of_length_one(np.sqrt(degree) * np.cos(math.pi * k * n / (N - 1)))
        assert_allclose(V[:, k - 1], cosine, rtol=0, atol=1e-12)
        value = 1 - math.cos(math.pi * k / (N - 1))
        assert_allclose(L @ V[:, k - 1], value * V[:, k - 1], rtol=0, atol=1e-12)
    if N > 3:  # and they are not the others
        other = laplacian_encoding(path(N), N - 1, normalized=False)
        assert np.abs(V - other).max() > 0.05


@both
@pytest.mark.parametrize("N", [3, 4, 5, 8, 11])
def test_on_a_cycle_pairs_are_cosine_and_sine(N, normalized):
    V, n = laplacian_encoding(cycle(N), N - 1, normalized), np.arange(N)
    for k in range(1, (N + 1) // 2):
        angles = 2 * math.pi * k * n / N
        pair = np.stack([np.cos(angles), np.sin(angles)], axis=1) * math.sqrt(2 / N)
        assert_allclose(V[:, 2 * k - 2 : 2 * k], pair, rtol=0, atol=1e-12)
    if N % 2 == 0:  # the last is alone
        assert_allclose(V[:, -1], (-1.0) ** n / math.sqrt(N), rtol=0, atol=1e-12)


@pytest.mark.parametrize("N", [5, 9, 13])
def test_a_step_on_a_cycle_is_the_shift_of_sinusoids(N):
    V = laplacian_encoding(cycle(N), N - 1)
    codes = V.reshape(N, -1, 2)[..., ::-1]  # (N, pairs, 2): sine, cosine
    for k in range(1, (N + 1) // 2):
        turn = sinusoidal_shift(2 * math.pi * k / N, 2)  # one pair, of frequency 1
        following = np.roll(codes[:, k - 1], -1, axis=0)
        assert_allclose(following, codes[:, k - 1] @ turn.T, rtol=0, atol=1e-12)


# ---- theorems: one answer on every machine ------------------------------------------------------


@given(seeds, st.integers(1, 5), st.integers(0, 5))
def test_the_basis_of_an_eigenspace_does_not_depend_on_the_one_that_came(seed, m, more):
    rng = np.random.default_rng(seed)
    space = np.linalg.qr(rng.standard_normal((m + more, m)))[0]
    turn = np.linalg.qr(rng.standard_normal((m, m)))[0]
    fixed = laplacian._fixed(space)
    assert_allclose(laplacian._fixed(space @ turn), fixed, rtol=0, atol=1e-7)
    assert_allclose(fixed @ fixed.T, space @ space.T, rtol=0, atol=1e-12)  # the same space
    assert_allclose(np.triu(fixed[:m], 1), 0, rtol=0, atol=1e-12)
    assert (np.diag(fixed) > 0).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_node_that_does_not_see_the_space_decides_nothing(sign):
    column = sign * np.array([[0.0], [1e-9], [-0.6], [0.8]])
    assert_allclose(laplacian._fixed(column)[2:, 0], [0.6, -0.8], rtol=0, atol=1e-15)


@both
def test_equal_neighbours_are_told_apart_by_their_order_alone(normalized):
    """All pairs joined: one eigenvalue, N - 1 times."""
    V = laplacian_encoding(np.ones((4, 4)) - np.eye(4), 3, normalized)
    expected = [[3, 0, 0], [-1, 2, 0], [-1, -1, 1], [-1, -1, -1]]
    assert_allclose(V, expected / np.linalg.norm(expected, axis=0), rtol=0, atol=1e-12)


@both
def test_of_the_vectors_of_several_pieces_only_that_of_the_first_is_left_out(normalized):
    A = np.zeros((8, 8))
    A[:2, :2], A[2:5, 2:5], A[5:, 5:] = path(2), path(3), path(3)
    for n, piece in enumerate((slice(2, 5), slice(5, 8))):
        expected = np.zeros(8)
        expected[piece] = of_length_one(np.sqrt([1, 2, 1]) if normalized else np.ones(3))
        assert_allclose(laplacian_encoding(A, 2, normalized)[:, n], expected, rtol=0, atol=1e-12)


@both
def test_a_node_that_no_vector_of_an_eigenvalue_reaches_has_no_say(normalized):
    """A star: of the three vectors of eigenvalue 1 none reaches the centre, node 0."""
    A = np.zeros((5, 5))
    A[0, 1:] = A[1:, 0] = 1
    V = laplacian_encoding(A, 3, normalized)
    expected = [[0, 0, 0], [3, 0, 0], [-1, 2, 0], [-1, -1, 1], [-1, -1, -1]]
    assert_allclose(V, expected / np.linalg.norm(expected, axis=0), rtol=0, atol=1e-12)


def test_nodes_without_edges_have_a_row_of_the_identity():
    A = np.zeros((4, 4))
    A[1, 2] = A[2, 1] = 3.0  # L has the eigenvalues 0, 1, 1, 2
    V = laplacian_encoding(A, 3)
    r = math.sqrt(0.5)
    expected = [[1, 0, 0], [0, 0, r], [0, 0, -r], [0, 1, 0]]
    assert_allclose(V, expected, rtol=0, atol=1e-12)
    assert_allclose(laplacian_encoding(np.zeros((3, 3)), 2), np.eye(3)[:, 1:], rtol=0, atol=0)


@pytest.mark.parametrize("A", [path(4) > 0, path(4).astype(int), path(4).astype(np.float32)])
def test_any_dtype_gives_float64_and_leaves_the_input(A):
    before = A.copy()
    V = laplacian_encoding(A, 2)
    assert V.dtype == np.float64
    assert_array_equal(V, laplacian_encoding(path(4).tolist(), 2))
    assert_array_equal(A, before)


def test_weights_may_be_large_or_small():
    for size in (1e-12, 1e12):
        V = laplacian_encoding(size * path(6), 5, normalized=False)
        assert_allclose(V, laplacian_encoding(path(6), 5, normalized=False), rtol=0, atol=1e-12)


# ---- the sheet's numbers ------------------------------------------------------------------------


def test_path_of_four_by_hand():
    V = laplacian_encoding(path(4), 3, normalized=False)
    assert V[:, 0].round(6).tolist() == [0.653281, 0.270598, -0.270598, -0.653281]
    for normalized, values in ((False, [0.585786, 2, 3.414214]), (True, [0.5, 1.5, 2])):
        V, L = laplacian_encoding(path(4), 3, normalized), laplacian_by_loops(path(4), normalized)
        assert np.diag(V.T @ L @ V).round(6).tolist() == values


def test_the_normalised_form_is_the_default():
    assert_array_equal(laplacian_encoding(path(5), 3), laplacian_encoding(path(5), 3, True))


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: laplacian_encoding([1, 2], 1), r"adjacency must have the axes \(..., N, N\)"),
        (lambda: laplacian_encoding(np.ones((2, 3)), 1), r"\(N, N\); got shape \(2, 3\)"),
        (lambda: laplacian_encoding(np.ones((2, 3, 3)), 1), r"\(N, N\); got shape \(2, 3, 3\)"),
        (lambda: laplacian_encoding(np.eye(3, k=1), 1), "symmetric, since a directed graph"),
        (lambda: laplacian_encoding(-path(3), 1), "must be finite, at least 0"),
        (lambda: laplacian_encoding(np.full((3, 3), np.nan), 1), "must be finite"),
        (lambda: laplacian_encoding(np.full((3, 3), np.inf), 1), "must be finite"),
        (lambda: laplacian_encoding(path(3) * 1j, 1), "must hold real numbers; got dtype complex"),
        (lambda: laplacian_encoding(path(3), 3), "k must be below the number.*; got 3 of 3"),
        (lambda: laplacian_encoding(path(3), 0), "k must be at least 1; got 0"),
        (lambda: laplacian_encoding(path(3), 1, 1), "normalized must be True or False; got 1"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=f"laplacian_encoding: .*{message}"):
        call()
