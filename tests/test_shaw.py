"""Shaw, BERT's relative keys, NEZHA: loop oracles, theorems, published tables, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    attend,
    attention,
    causal_mask,
    nezha_table,
    relative_distance,
    relative_key_query_scores,
    relative_shift,
    shaw_scores,
    shaw_values,
    sinusoidal,
    sinusoidal_shift,
)

B, H, L, S, K, M = 2, 3, 5, 7, 4, 2


def data(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


Q, KEYS, V = data(B, H, L, K), data(B, H, S, K, seed=1), data(B, H, S, K, seed=2)
SHARED, BY_HEAD = data(2 * M + 1, K, seed=3), data(H, 2 * M + 1, K, seed=4)
DISTANCE = relative_distance(np.arange(S - L, S), np.arange(S))
SHUFFLED = relative_distance([9, 0, 4, 2, 7], [3, 1, 0, 8, 2, 5, 6])
N = 10  # the longest text: distances up to 9
WHOLE, WHOLE_BY_HEAD = data(2 * N - 1, K, seed=6), data(H, 2 * N - 1, K, seed=7)


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


@pytest.mark.parametrize("table", [WHOLE, WHOLE_BY_HEAD])
@pytest.mark.parametrize("distance", [DISTANCE, SHUFFLED])
def test_query_and_key_meet_the_same_vector_scalar_by_scalar(table, distance):
    scores = relative_key_query_scores(Q, KEYS, table, distance)
    assert scores.shape == (B, H, L, S)
    for b, h, i, j in np.ndindex(scores.shape):
        r = (table[h] if table.ndim == 3 else table)[distance[i, j] + N - 1]
        q, k = Q[b, h, i], KEYS[b, h, j]
        expected = sum(q[a] * k[a] + q[a] * r[a] + k[a] * r[a] for a in range(K)) / math.sqrt(K)
        assert math.isclose(scores[b, h, i, j], expected, rel_tol=0, abs_tol=1e-12)


@pytest.mark.parametrize(("m", "width", "base"), [(1, 2, 10000.0), (3, 8, 10000.0), (2, 6, 50.0)])
def test_rows_of_nezha_are_sinusoids_of_the_clipped_key_minus_query(m, width, base):
    table = nezha_table(m, width, base)
    assert table.shape == (2 * m + 1, width) and table.dtype == np.float64
    for distance, c in np.ndindex(2 * m + 1, width):
        p = max(-m, min(m, -(distance - m))) + m  # the code's row, of j - i
        wave = (math.sin, math.cos)[c % 2]
        expected = wave(p / base ** ((c - c % 2) / width))
        assert math.isclose(table[distance, c], expected, rel_tol=0, abs_tol=1e-12)


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
    both = relative_key_query_scores(Q, KEYS, WHOLE_BY_HEAD, distance)
    for b in range(B):
        alone = relative_key_query_scores(Q[b], KEYS[b], WHOLE_BY_HEAD, distance[b, 0])
        assert_allclose(both[b], alone, rtol=0, atol=1e-12)


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


def test_a_window_and_a_gather_give_the_same_scores_and_queries_may_be_shared():
    gathered = np.array(DISTANCE)
    for table in (WHOLE, WHOLE_BY_HEAD):
        scores = relative_key_query_scores(Q, KEYS, table, DISTANCE)
        again = relative_key_query_scores(Q, KEYS, table, gathered)
        assert_allclose(scores, again, rtol=0, atol=1e-12)
        shared = relative_key_query_scores(Q[:1, :1], KEYS, table, DISTANCE)
        one_by_one = relative_key_query_scores(
            np.broadcast_to(Q[:1, :1], Q.shape), KEYS, table, gathered
        )
        assert_allclose(shared, one_by_one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("distance", [DISTANCE, SHUFFLED])
def test_both_meet_the_vector_as_a_product_of_sums_and_as_shaw_twice(distance):
    scores = relative_key_query_scores(Q, KEYS, WHOLE, distance)
    r = WHOLE[distance + N - 1]  # (L, S, K)
    product = ((Q[..., :, None, :] + r) * (KEYS[..., None, :, :] + r)).sum(-1) - (r * r).sum(-1)
    assert_allclose(scores, product / math.sqrt(K), rtol=0, atol=1e-12)
    of_queries = shaw_scores(Q, KEYS, WHOLE, distance)
    of_keys = shaw_scores(KEYS, Q, WHOLE[::-1], -distance.T)
    content = Q @ np.swapaxes(KEYS, -1, -2) / math.sqrt(K)
    twice = of_queries + np.swapaxes(of_keys, -1, -2) - content
    assert_allclose(scores, twice, rtol=0, atol=1e-12)


def test_a_cached_step_needs_the_position_of_its_query():
    """With a cache some libraries let the new query stand at 0: the same text, other scores."""
    at = np.arange(S)
    whole = relative_key_query_scores(KEYS, KEYS, WHOLE, relative_distance(at, at))[..., -1:, :]
    new = KEYS[..., -1:, :]
    step = relative_key_query_scores(new, KEYS, WHOLE, relative_distance(at[-1:], at))
    assert_allclose(step, whole, rtol=0, atol=1e-12)
    at_zero = relative_key_query_scores(new, KEYS, WHOLE, relative_distance([0], at))
    assert np.abs(at_zero - whole).max() > 0.5


def test_skew_gather_and_window_agree_where_the_key_is_not_ahead():
    """The three ways to q_i . E_(i-j): Music Transformer's, an index, and the package's."""
    rng, n = np.random.default_rng(8), 6
    q, E = rng.standard_normal((B, H, n, K)), rng.standard_normal((n, K))  # E: the past first
    at = np.arange(n)
    past = causal_mask(at, at)
    skewed = relative_shift(q @ E.T)
    distance = relative_distance(at, at)
    gathered = (q[..., :, None, :] * E[np.minimum(n - 1 - distance, n - 1)]).sum(-1)
    table = np.concatenate([np.zeros((n - 1, K)), E[::-1]])  # row i - j + n - 1
    window = shaw_scores(q, np.zeros((n, K)), table, distance) * math.sqrt(K)
    assert_allclose(skewed[..., past], gathered[..., past], rtol=0, atol=1e-12)
    assert_allclose(window[..., past], gathered[..., past], rtol=0, atol=1e-12)
    assert np.abs((skewed - window)[..., ~past]).max() > 1


@pytest.mark.parametrize("m", [1, 2, 5])
def test_nezha_is_a_table_of_signed_distances_with_everything_turned_by_the_shift(m):
    M, table = sinusoidal_shift(m, K), nezha_table(m, K)
    signed = sinusoidal(np.arange(m, -m - 1, -1), K)  # row i - j + m codes j - i
    scores = shaw_scores(Q, KEYS, table, DISTANCE)
    assert_allclose(scores, shaw_scores(Q @ M, KEYS @ M, signed, DISTANCE), rtol=0, atol=1e-12)
    weights = data(B, H, L, S, seed=5) ** 2
    mixed = shaw_values(weights, V, table, DISTANCE)
    turned = shaw_values(weights, V @ M, signed, DISTANCE) @ M.T
    assert_allclose(mixed, turned, rtol=0, atol=1e-12)


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


def test_scores_of_relative_key_and_relative_key_query_by_hand():
    q, k = np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([[1.0, 2], [0, 1], [1, 0]])
    table = np.arange(10).reshape(5, 2) / 10  # (0, .1) for the distance -2, ..., (.8, .9) for 2
    distance = relative_distance(np.arange(3), np.arange(3))
    key = shaw_scores(q, k, table, distance).round(6)
    assert key[0].tolist() == [0.989949, 0.141421, 0.707107]
    assert key[2].tolist() == [3.323402, 1.626346, 1.343503]
    both = relative_key_query_scores(q, k, table, distance).round(6)
    assert both[0].tolist() == [1.979899, 0.353553, 0.707107]
    assert both[2].tolist() == [5.16188, 2.12132, 1.626346]


def test_the_position_term_of_nezha_for_four_keys_by_hand():
    q = np.concatenate([np.eye(4)[:3], np.ones((1, 4))])
    distance = relative_distance(np.arange(4), np.arange(4))
    term = shaw_scores(q, np.zeros((4, 4)), nezha_table(1, 4), distance).round(6)
    assert term.tolist() == [
        [0.420735, 0.454649, 0.454649, 0.454649],
        [0.5, 0.270151, -0.208073, -0.208073],
        [0.0, 0.0, 0.005, 0.009999],
        [1.0, 1.0, 1.0, 1.195862],
    ]


# ---- dtype, purity, bad input -------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "atol"), [(np.float16, 1e-2), (np.float32, 1e-5)])
@pytest.mark.parametrize("distance", [DISTANCE, SHUFFLED])
def test_dtype_is_kept_and_nothing_changed(dtype, atol, distance):
    q, k, v = (a.astype(dtype) for a in (Q, KEYS, V))
    kept = [a.copy() for a in (q, k, v, SHARED, WHOLE)]
    scores = shaw_scores(q, k, SHARED, distance)
    mixed = shaw_values(scores, v, SHARED, distance)
    both = relative_key_query_scores(q, k, WHOLE, distance)
    assert scores.dtype == mixed.dtype == both.dtype == dtype
    exact = relative_key_query_scores(*(a.astype(np.float64) for a in (q, k)), WHOLE, distance)
    assert_allclose(both.astype(np.float64), exact, rtol=0, atol=atol)
    exact = shaw_scores(*(a.astype(np.float64) for a in (q, k)), SHARED, distance)
    assert_allclose(scores.astype(np.float64), exact, rtol=0, atol=atol)
    for now, before in zip((q, k, v, SHARED, WHOLE), kept, strict=True):
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
        (
            lambda: relative_key_query_scores(Q, KEYS, WHOLE[4:-4], DISTANCE),
            "distance must be from -5 to 5, since table has 11 rows; got -4 to 6",
        ),
        (
            lambda: relative_key_query_scores(Q, KEYS, WHOLE[4:-4], -DISTANCE),
            "from -5 to 5.*; got -6 to 4",
        ),
        (
            lambda: relative_key_query_scores(Q, KEYS, WHOLE[1:], DISTANCE),
            r"table must have 2m \+ 1 rows.*18",
        ),
        (
            lambda: relative_key_query_scores(Q, KEYS, WHOLE, DISTANCE.T),
            r"axes \(L, S\) = \(5, 7\); got .*\(7, 5",
        ),
        (
            lambda: relative_key_query_scores(Q, KEYS, WHOLE, DISTANCE * 1.0),
            "relative_key_query_scores: distance must be whole numbers",
        ),
        (lambda: nezha_table(0, 4), "max_relative_position must be at least 1; got 0"),
        (lambda: nezha_table(1.5, 4), "max_relative_position must be a whole number; got 1.5"),
        (lambda: nezha_table(2, 5), "nezha_table: d_head must be even.*got 5"),
        (lambda: nezha_table(2, 4, base=0), "nezha_table: base must be above 0; got 0"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
