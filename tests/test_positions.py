"""Positions that are no index: drawn at random, counted inside a number."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    alibi_bias,
    learned,
    relative_distance,
    rope,
    shaw_scores,
    sinusoidal,
)
from pe_numpy.absolute.positions import digit_positions, random_positions
from pe_numpy.relative.distance import each_distance

SEPARATOR, EQUALS = 10, 11
seeds = st.integers(0, 2**32 - 1)


def places_by_loops(tokens, digits, offset):
    """Walk along one row: a digit is one further than the digit before it, or the first."""
    places, count = [], 0
    for token in tokens:
        count = count + 1 if token in digits else 0
        places.append(count + offset if count else 0)
    return places


def reversed_digits(*numbers):
    """Write numbers with the least significant digit first, with something between them."""
    rows = [[int(c) for c in str(n)[::-1]] for n in numbers]
    return list(itertools.chain(*([*row, SEPARATOR] for row in rows)))[:-1]


# ---- loop oracle --------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 5), min_size=6, max_size=6)), st.integers(0, 99))
def test_places_of_digits_equal_those_counted_by_a_loop(rows, offset):
    tokens = np.array(rows, np.int64).reshape(-1, 1, 6)
    got = digit_positions(tokens, [4, 1], offset)
    expected = [[places_by_loops(row, {4, 1}, offset)] for row in rows]
    assert got.dtype == np.int64 and got.shape == tokens.shape
    assert got.tolist() == expected


@given(seeds, st.integers(1, 12), st.integers(0, 30))
def test_drawn_positions_are_ascending_distinct_and_below_the_largest(seed, n, more):
    p = random_positions(np.random.default_rng(seed), n, n + more)
    assert p.shape == (n,) and p.dtype == np.int64
    assert (np.diff(p) > 0).all() and p[0] >= 0 and p[-1] < n + more


# ---- theorems: drawn positions ------------------------------------------------------------------


def test_each_set_of_positions_is_equally_likely():
    rng, draws = np.random.default_rng(0), 20_000
    seen = {}
    for _ in range(draws):
        p = tuple(random_positions(rng, 2, 5).tolist())
        seen[p] = seen.get(p, 0) + 1
    assert set(seen) == set(itertools.combinations(range(5), 2))
    expected = draws / math.comb(5, 2)
    assert max(abs(count - expected) for count in seen.values()) < 4 * math.sqrt(expected)


def test_neighbours_are_n_plus_one_over_length_plus_one_apart_on_the_average():
    N, n = 9, 4
    gaps = np.diff(list(itertools.combinations(range(N), n)), axis=1)  # all that can be drawn
    assert_allclose(gaps.mean(axis=0), (N + 1) / (n + 1), rtol=1e-12)
    for g in range(1, N):
        assert_allclose((gaps == g).mean(), math.comb(N - g, n - 1) / math.comb(N, n), rtol=1e-12)
    rng = np.random.default_rng(1)
    drawn = np.diff([random_positions(rng, n, N) for _ in range(5000)], axis=1)
    assert abs(drawn.mean() - (N + 1) / (n + 1)) < 0.02


def test_the_generator_decides_and_moves_on():
    first, again = np.random.default_rng(7), np.random.default_rng(7)
    p = random_positions(first, 20, 1000)
    assert_array_equal(p, random_positions(again, 20, 1000))
    assert (p != random_positions(first, 20, 1000)).any()


def test_as_many_as_there_are_leaves_no_choice():
    assert_array_equal(random_positions(np.random.default_rng(3), 6, 6), np.arange(6))


def test_drawn_positions_serve_every_place_as_any_others_do():
    p, N = random_positions(np.random.default_rng(0), 6, 32), 32
    rng = np.random.default_rng(1)
    assert_allclose(sinusoidal(p, 8), sinusoidal(np.arange(N), 8)[p], rtol=0, atol=1e-12)
    table = rng.standard_normal((N, 5))
    assert_array_equal(learned(table, p), table[p])
    q, k = rng.standard_normal((2, 6, 8))
    D = relative_distance(p, p)
    assert (np.ptp([np.diag(D, 1)]) > 0) and (D == -D.T).all()  # on no line
    whole = rope(np.repeat(q[:, None], N, 1), np.arange(N)) @ rope(k, p).T  # (6, N, 6)
    assert_allclose(rope(q, p) @ rope(k, p).T, whole[np.arange(6), p], rtol=0, atol=1e-12)
    scores = shaw_scores(q, k, rng.standard_normal((7, 8)), D)
    assert scores.shape == (6, 6)


def test_drawn_distances_leave_a_bias_a_window():
    L, N = 6, 40
    steps = 1 + random_positions(np.random.default_rng(2), L - 1, N - 1)  # 1 .. N-1
    of = np.concatenate([-steps[::-1], [0], steps])  # of the distances -(L-1) .. L-1
    drawn = each_distance(lambda d: of[d + L - 1], relative_distance(range(L), range(L)))
    bias = alibi_bias([0.5], drawn)
    assert bias.strides[1] == -bias.strides[2] != 0
    for i, j in np.ndindex(L, L):
        size = steps[abs(i - j) - 1] if i != j else 0
        assert drawn[i, j] == (size if i > j else -size) and bias[0, i, j] == -0.5 * size


# ---- theorems: digits ---------------------------------------------------------------------------


def test_equal_places_of_all_numbers_share_a_row_and_the_offset_shifts_digits_alone():
    tokens = np.array(reversed_digits(987, 4, 65021))
    at = digit_positions(tokens, range(10))
    weights = {1: [7, 4, 1], 2: [8, 2], 3: [9, 0], 4: [5], 5: [6]}
    assert {n: tokens[at == n].tolist() for n in weights} == weights
    for offset in (1, 99):
        shifted = digit_positions(tokens, range(10), offset)
        assert_array_equal(shifted - at, np.where(tokens < 10, offset, 0))


def test_a_sum_can_be_read_off_the_rows():
    tokens = np.array(reversed_digits(758, 64))
    at = digit_positions(tokens, range(10))
    columns = sum(tokens[at == n].sum() * 10 ** (n - 1) for n in range(1, at.max() + 1))
    assert columns == 758 + 64


def test_rows_of_a_batch_do_not_see_each_other():
    a, b = [1, 2, 10, 3], [4, 10, 10, 5]
    at = digit_positions([a, b], range(10))
    assert at.tolist() == [[1, 2, 0, 1], [1, 0, 0, 1]]


def test_the_last_of_the_whole_is_the_running_index_and_a_lone_digit_is_the_first():
    tokens = reversed_digits(12, 3456)
    whole = digit_positions(tokens, range(10))
    for n in range(1, len(tokens) + 1):
        assert digit_positions(tokens[:n], range(10))[-1] == whole[n - 1]
    assert whole[-1] == 4 and digit_positions(tokens[-1:], range(10)).tolist() == [1]


def test_without_digits_all_is_nought():
    assert digit_positions([[3, 4], [5, 6]], [], 9).tolist() == [[0, 0], [0, 0]]
    assert digit_positions(np.zeros((2, 0), int), [1]).shape == (2, 0)


# ---- the sheet's numbers ------------------------------------------------------------------------


def test_three_drawn_positions_by_hand():
    assert relative_distance([1, 4, 6], [1, 4, 6]).tolist() == [[0, -3, -5], [3, 0, -2], [5, 2, 0]]


def test_eleven_tokens_by_hand():
    tokens = [1, 2, 3, SEPARATOR, 4, 5, EQUALS, 9, 9, 9, 0]
    assert digit_positions(tokens, range(10)).tolist() == [1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 4]
    shifted = digit_positions(tokens, range(10), offset=7)
    assert shifted.tolist() == [8, 9, 10, 0, 8, 9, 0, 8, 9, 10, 11]


def test_numbers_side_by_side_count_as_one():
    assert digit_positions([3, 2, 1, 5, 4], range(10)).tolist() == [1, 2, 3, 4, 5]


# ---- bad input ----------------------------------------------------------------------------------

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_positions(0, 2, 5), r"random_positions: rng must be a generator.*got int"),
        (lambda: random_positions(RNG, 6, 5), "length must be at most max_length.*got 6 and 5"),
        (lambda: random_positions(RNG, 0, 5), "length must be at least 1; got 0"),
        (lambda: random_positions(RNG, 2.0, 5), "length must be a whole number; got 2.0"),
        (lambda: random_positions(RNG, 2, "5"), "max_length must be a whole number; got '5'"),
        (lambda: digit_positions(3, [3]), "digit_positions: token_ids must be an axis"),
        (lambda: digit_positions([3.0], [3]), "token_ids must be whole numbers"),
        (lambda: digit_positions([3], [3.5]), "digit_ids must be whole numbers"),
        (lambda: digit_positions([3], [3], -1), "offset must be at least 0; got -1"),
        (lambda: digit_positions([3], [3], 0.5), "offset must be a whole number; got 0.5"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_inputs_stay_as_they_are():
    tokens = np.array([1, 10, 2])
    digit_positions(tokens, np.arange(10), 5)
    assert tokens.tolist() == [1, 10, 2]
