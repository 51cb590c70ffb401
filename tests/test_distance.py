"""Distances and their spread: loop oracle, theorems, memory, bad input."""

import operator
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import relative_distance
from pe_numpy.relative import distance as room

lengths = st.integers(1, 9)
starts = st.integers(-20, 20)
seeds = st.integers(0, 2**32 - 1)


def spread_by_gather(q, table, rows):
    """The slow and large form: a vector for each pair, (..., L, S, K), dotted with its query."""
    vectors = table[..., rows, :] if table.ndim == 2 else table[:, rows]
    return np.einsum("...lk,...lsk->...ls", q, vectors)


# ---- loop oracle --------------------------------------------------------------------------------


@pytest.mark.parametrize("q_at", [[0, 1, 2], [5, 6, 7], [2, 0, 9], [4]])
@pytest.mark.parametrize("k_at", [[0, 1, 2, 3], [3, 1, 1, 0], [7]])
def test_distance_is_query_minus_key(q_at, k_at):
    expected = [[i - j for j in k_at] for i in q_at]
    assert relative_distance(q_at, k_at).tolist() == expected


@given(st.integers(1, 12), st.integers(1, 60), st.integers(1, 9), st.sampled_from("ge gt".split()))
def test_edges_are_counted_in_whole_numbers(start, more, steps, word):
    end, reaches, n = start + more, getattr(operator, word), np.arange(start + more + 2)
    expected = [
        sum(reaches(m**steps * start**t, end**t * start**steps) for t in range(steps))
        for m in n.tolist()
    ]
    assert room.edges_reached(n, start, end, steps, reaches).tolist() == expected


def test_edges_that_are_whole_numbers_count_from_there_on_or_from_the_next():
    n = np.array([[3, 4, 7, 8], [9, 64, 127, 10**6]])  # edges 4, 8, 16, 32 and 64
    assert room.edges_reached(n, 4, 128, 5).tolist() == [[0, 1, 1, 2], [2, 5, 5, 5]]
    beyond = room.edges_reached(n, 4, 128, 5, operator.gt).tolist()
    assert beyond == [[0, 0, 1, 1], [2, 4, 5, 5]]
    edge = 3 * 2**60
    huge = np.array([edge - 1, edge, 2**63 - 1])
    assert room.edges_reached(huge, 3, 3 * 2**90, 3).tolist() == [2, 3, 3]
    assert room.edges_reached(huge, 3, 10**5000, 3).tolist() == [1, 1, 1]
    assert room.edges_reached(np.zeros((0, 2), int), 3, 9, 4).shape == (0, 2)


def test_edges_are_computed_once_for_many_texts():
    asked = 4, 128, 5, operator.ge
    room.first_beyond.cache_clear()
    for farthest in range(64, 128):
        assert room.edges_reached(np.array([farthest]), *asked).tolist() == [5]
    assert room.first_beyond.cache_info().misses == 1


def test_distances_of_a_batch_broadcast():
    q_at = np.array([[0, 0, 1], [0, 1, 2]])[:, None]  # (B, 1, L), the first padded
    distance = relative_distance(q_at, np.arange(4))
    assert distance.shape == (2, 1, 3, 4)
    assert distance[0, 0].tolist() == [[0, -1, -2, -3], [0, -1, -2, -3], [1, 0, -1, -2]]


# ---- theorems -----------------------------------------------------------------------------------


@given(lengths, lengths, starts, starts)
def test_consecutive_positions_give_a_window_on_l_plus_s_minus_1_numbers(L, S, q0, k0):
    distance = relative_distance(np.arange(q0, q0 + L), np.arange(k0, k0 + S))
    assert distance.strides == (8, -8) and not distance.flags.writeable
    assert_array_equal(distance, np.subtract.outer(np.arange(L) + q0, np.arange(S) + k0))


@given(lengths, lengths, starts, seeds, st.booleans(), st.booleans(), st.integers(1, 4))
def test_window_and_gather_spread_the_same(L, S, q0, seed, by_head, batched, rows):
    rng = np.random.default_rng(seed)
    window = relative_distance(np.arange(q0, q0 + L), np.arange(S))
    m, K = 4, 3
    table = rng.standard_normal((2, 2 * m + 1, K) if by_head else (2 * m + 1, K))
    q, weights = rng.standard_normal((5, 2, L, K)), rng.random((5, 2, L, S))

    def row_of(d):
        return np.clip(d, -m, m) + m

    other = np.array(window)
    if batched:
        other = np.broadcast_to(other, (5, 1, L, S))
    expected = spread_by_gather(q, table, row_of(np.array(window)))
    old, room.ROWS = room.ROWS, rows  # several blocks of query rows
    try:
        for distance in (window, other):
            got = room.spread_products(q, table, distance, row_of)
            assert_allclose(got, expected, rtol=0, atol=1e-12)
        by_sums = [room.spread_sums(weights, table, d, row_of) for d in (window, other)]
    finally:
        room.ROWS = old
    vectors = table[..., row_of(np.array(window)), :]
    expected = np.einsum("...ls,...lsk->...lk", weights, vectors)
    assert_allclose(by_sums[0], expected, rtol=0, atol=1e-12)
    assert_allclose(by_sums[1], expected, rtol=0, atol=1e-12)


@given(lengths, lengths, starts, seeds, st.booleans(), st.integers(1, 4))
def test_products_are_added_in_the_memory_of_the_total(L, S, q0, seed, by_head, rows):
    rng = np.random.default_rng(seed)
    window = relative_distance(np.arange(q0, q0 + L), np.arange(S))
    m, K = 4, 3
    table = rng.standard_normal((2, 2 * m + 1, K) if by_head else (2 * m + 1, K))
    q, k = rng.standard_normal((5, 2, L, K)), rng.standard_normal((5, 2, S, K))
    before = rng.standard_normal((5, 2, L, S))

    def row_of(d):
        return np.clip(d, -m, m) + m

    of_queries = before + spread_by_gather(q, table, row_of(np.array(window)))
    vectors = table[..., row_of(np.array(window)), :]  # (L, S, K) or (H, L, S, K)
    of_keys = before + np.einsum("...sk,...lsk->...ls", k, vectors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "ROWS", rows)
        for distance in (window, np.array(window)):
            total = before.copy()
            assert room.add_query_products(total, q, table, distance, row_of) is total
            assert_allclose(total, of_queries, rtol=0, atol=1e-12)
            total = before.copy()
            assert room.add_key_products(total, k, table, distance, row_of) is total
            assert_allclose(total, of_keys, rtol=0, atol=1e-12)


@given(lengths, lengths, starts)
def test_opposite_swaps_queries_and_keys(L, S, q0):
    window = relative_distance(np.arange(q0, q0 + L), np.arange(S))
    assert_array_equal(room.opposite(window), -np.array(window).T)
    assert_array_equal(room.opposite(np.array(window)), -np.array(window).T)
    assert room.opposite(window).strides == (8, -8)


def test_a_function_is_applied_once_to_each_distance():
    seen = []

    def square(d):
        seen.append(d.size)
        return d**2

    window = relative_distance(np.arange(6), np.arange(4))
    assert_array_equal(room.each_distance(square, window), np.array(window) ** 2)
    assert seen == [6 + 4 - 1]


def test_window_costs_no_memory_and_products_none_of_size_l_s_k():
    L, K = 1024, 64
    at = np.arange(L)
    tracemalloc.start()
    distance = relative_distance(at, at)
    assert tracemalloc.get_traced_memory()[1] < 100_000
    q, table = np.ones((L, K), np.float32), np.ones((33, K), np.float32)
    tracemalloc.reset_peak()
    scores = room.spread_products(q, table, distance, lambda d: np.clip(d, -16, 16) + 16)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * scores.nbytes  # the gather would take 64 times as much
    for add in (room.add_query_products, room.add_key_products):
        tracemalloc.start()
        add(scores, q, table, distance, lambda d: np.clip(d, -16, 16) + 16)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.5 * scores.nbytes


# ---- edges and bad input ------------------------------------------------------------------------


def test_no_queries_or_no_keys_give_results_of_size_zero():
    assert relative_distance([], [0, 1]).shape == (0, 2)
    assert relative_distance([0, 1, 2], []).shape == (3, 0)
    nothing = relative_distance([0, 1, 2], [])
    products = room.spread_products(np.ones((3, 4)), np.ones((5, 4)), nothing, lambda d: d)
    assert products.shape == (3, 0)
    sums = room.spread_sums(np.ones((3, 0)), np.ones((5, 4)), nothing, lambda d: d)
    assert sums.tolist() == np.zeros((3, 4)).tolist()


def test_unsigned_positions_do_not_wrap_around():
    at = np.array([0, 3], np.uint8)
    assert relative_distance(at, at).tolist() == [[0, -3], [3, 0]]
    small = np.array([100, -100], np.int8)
    assert relative_distance(small, small).tolist() == [[0, 200], [-200, 0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: relative_distance(3, [0]),
            r"q_positions must be an axis of positions.*write \[3\]",
        ),
        (lambda: relative_distance([0.5], [0]), "q_positions must be whole numbers, since a table"),
        (lambda: relative_distance([0], ["a"]), "k_positions must be integers or real numbers"),
        (
            lambda: relative_distance(np.zeros((2, 3), int), np.zeros((4, 3), int)),
            r"batch axes must broadcast; got q_positions \(2,\), k_positions \(4,\)",
        ),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
