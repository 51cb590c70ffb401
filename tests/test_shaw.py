"""Shaw: loop oracle, theorems, the documents' index tables, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import attend, attention, relative_distance, shaw_scores, shaw_values

B, H, L, S, K, M = 2, 3, 5, 7, 4, 2


def data(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


Q, KEYS, V = data(B, H, L, K), data(B, H, S, K, seed=1), data(B, H, S, K, seed=2)
SHARED, BY_HEAD = data(2 * M + 1, K, seed=3), data(H, 2 * M + 1, K, seed=4)
DISTANCE = relative_distance(np.arange(S - L, S), np.arange(S))
SHUFFLED = relative_distance([9, 0, 4, 2, 7], [3, 1, 0, 8, 2, 5, 6])


def row(table, h, distance):
    """The vector of a distance, clipped."""
    table = table[h] if table.ndim == 3 else table
    return table[max(-M, min(M, distance)) + M]


@pytest.mark.parametrize("table", [SHARED, BY_HEAD])
@pytest.mark.parametrize("distance", [DISTANCE, SHUFFLED])
def test_scores_equal_equation_4_scalar_by_scalar(table, distance):
    scores = shaw_scores(Q, KEYS, table, distance)
    assert scores.shape == (B, H, L, S)
    for b, h, i, j in np.ndindex(scores.shape):
        key = KEYS[b, h, j] + row(table, h, distance[i, j])
        expected = sum(Q[b, h, i, a] * key[a] for a in range(K)) / math.sqrt(K)
        assert math.isclose(scores[b, h, i, j], expected, rel_tol=0, abs_tol=1e-12)


@pytest.mark.parametrize("table", [SHARED, BY_HEAD])
@pytest.mark.parametrize("distance", [DISTANCE, SHUFFLED])
def test_values_equal_equation_3_scalar_by_scalar(table, distance):
    weights = data(B, H, L, S, seed=5) ** 2
    mixed = shaw_values(weights, V, table, distance)
    for b, h, i in np.ndindex(B, H, L):
        expected = sum(
            weights[b, h, i, j] * (V[b, h, j] + row(table, h, distance[i, j])) for j in range(S)
        )
        assert_allclose(mixed[b, h, i], expected, rtol=0, atol=1e-12)


def test_distances_of_a_padded_batch_join_scores_of_all_heads():
    at = np.array([[0, 0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6]])[:, None]  # (B, 1, S)
    distance = relative_distance(at[..., -L:], at)
    scores = shaw_scores(Q, KEYS, SHARED, distance)
    mixed = shaw_values(scores, V, SHARED, distance)
    for b in range(B):
        alone = shaw_scores(Q[b], KEYS[b], SHARED, distance[b, 0])
        assert_allclose(scores[b], alone, rtol=0, atol=1e-12)
        alone = shaw_values(scores[b], V[b], SHARED, distance[b, 0])
        assert_allclose(mixed[b], alone, rtol=0, atol=1e-12)


# ---- theorems -----------------------------------------------------------------------------------


@given(st.integers(-1000, 1000))
def test_moving_all_positions_changes_nothing(shift):
    at = np.arange(S)
    moved = relative_distance(at[-L:] + shift, at + shift)
    assert_array_equal(shaw_scores(Q, KEYS, SHARED, moved), shaw_scores(Q, KEYS, SHARED, DISTANCE))


def test_tables_of_zeros_leave_plain_attention():
    zeros = np.zeros((2 * M + 1, K))
    output, weights = attend(shaw_scores(Q, KEYS, zeros, DISTANCE), V)
    expected = attention(Q, KEYS, V)
    assert_allclose(output, expected[0], rtol=0, atol=1e-12)
    assert_allclose(shaw_values(weights, V, zeros, DISTANCE), expected[0], rtol=0, atol=1e-12)


def test_a_cached_step_equals_its_row_of_the_whole():
    at = np.arange(S)
    whole = shaw_scores(KEYS, KEYS, SHARED, relative_distance(at, at))
    step = shaw_scores(KEYS[..., -1:, :], KEYS, SHARED, relative_distance(at[-1:], at))
    assert_allclose(step, whole[..., -1:, :], rtol=0, atol=1e-12)


def test_distances_beyond_the_table_share_its_outermost_rows():
    q, k = np.ones((1, 1)), np.zeros((5, 1))
    scores = shaw_scores(q, k, [[1.0], [2.0], [3.0]], relative_distance([2], np.arange(5)))
    assert scores.tolist() == [[3.0, 3.0, 2.0, 1.0, 1.0]]


# ---- published tables ---------------------------------------------------------------------------


def test_difference_matrix_and_clip_of_the_documents():
    at = np.arange(4)
    printed = [[0, -1, -2, -3], [1, 0, -1, -2], [2, 1, 0, -1], [3, 2, 1, 0]]
    assert relative_distance(at, at).tolist() == printed
    shifted = [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]]
    identity = np.arange(7.0)[:, None]  # row r of the table is the number r
    rows = shaw_scores(np.ones((4, 1)), np.zeros((4, 1)), identity, relative_distance(at, at))
    assert rows.tolist() == shifted
    clipped = shaw_scores(
        np.ones((1, 1)), np.zeros((11, 1)), np.arange(-2.0, 3)[:, None], np.arange(-5, 6)[None]
    )
    assert clipped[0].tolist() == [-2, -2, -2, -2, -1, 0, 1, 2, 2, 2, 2]


# ---- dtype, purity, bad input -------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "atol"), [(np.float16, 1e-2), (np.float32, 1e-5)])
@pytest.mark.parametrize("distance", [DISTANCE, SHUFFLED])
def test_dtype_is_kept_and_nothing_changed(dtype, atol, distance):
    q, k, v = (a.astype(dtype) for a in (Q, KEYS, V))
    kept = [a.copy() for a in (q, k, v, SHARED)]
    scores = shaw_scores(q, k, SHARED, distance)
    mixed = shaw_values(scores, v, SHARED, distance)
    assert scores.dtype == mixed.dtype == dtype
    exact = shaw_scores(*(a.astype(np.float64) for a in (q, k)), SHARED, distance)
    assert_allclose(scores.astype(np.float64), exact, rtol=0, atol=atol)
    for now, before in zip((q, k, v, SHARED), kept, strict=True):
        assert_array_equal(now, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: shaw_scores(Q, KEYS, SHARED[:4], DISTANCE),
            r"key_table must have 2m \+ 1 rows.*4",
        ),
        (
            lambda: shaw_scores(Q, KEYS, SHARED[:, :3], DISTANCE),
            r"\(N, K\).*K = 4; got shape \(5, 3",
        ),
        (
            lambda: shaw_scores(Q, KEYS, BY_HEAD[:2], DISTANCE),
            "one part for each of the 3 heads; got 2",
        ),
        (
            lambda: shaw_scores(Q, KEYS, SHARED, DISTANCE.T),
            r"axes \(L, S\) = \(5, 7\); got .*\(7, 5",
        ),
        (lambda: shaw_scores(Q, KEYS, SHARED, DISTANCE * 1.0), "distance must be whole numbers"),
        (
            lambda: shaw_scores(Q, KEYS[..., :3], SHARED, DISTANCE),
            "same width K, at least 1; got 4 a",
        ),
        (lambda: shaw_scores(Q[0, 0, 0], KEYS, SHARED, DISTANCE), r"q must have the axes"),
        (
            lambda: shaw_scores(Q, KEYS, SHARED, np.zeros((4, 1, L, S), int)),
            r"distance must broadcast to the shape of the scores, \(2, 3, 5, 7\); got \(4, 1, 5, 7",
        ),
        (
            lambda: shaw_values(np.ones((L, S)), V[..., :6, :], SHARED, DISTANCE),
            "keys S; got 7 and 6",
        ),
        (lambda: shaw_values(np.ones((L, S)), V, SHARED[:4], DISTANCE), "value_table must have 2m"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
