"""CoPE: loop oracle, theorems, the hand-worked table, bad input."""

import math

import numpy as np
import pytest
from differences import slopes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import causal_mask, cope_bias, padding_mask, value_and_grad
from pe_numpy.relative.distance import ROWS

B, H, L, S, K, N = 2, 3, 5, 7, 4, 6
LATE, KEYS = np.arange(S - L, S), np.arange(S)
CAUSAL = causal_mask(LATE, KEYS)
seeds = st.integers(0, 2**32 - 1)
GOLDEN = dict(
    q=np.array([[1.0], [1.0], [2.0]]),
    gate_scores=np.log([[1.0, 1, 1], [3, 1, 1], [3, 1, 9]]),
    table=np.array([[0.0], [1.0], [4.0], [9.0]]),
    mask=causal_mask(range(3), range(3)),
)


def data(seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((B, H, L, K)),
        2 * rng.standard_normal((B, H, L, S)),
        rng.standard_normal((N, K)),
    )


def by_loops(q, s, table, mask):
    z = np.zeros(s.shape)
    for i in range(s.shape[0]):
        for j in range(s.shape[1]):
            p = 0.0
            for t in range(j, s.shape[1]):
                if mask[i, t]:
                    p += 1 / (1 + math.exp(-s[i, t]))
            p = min(p, len(table) - 1)
            low = math.floor(p)
            row = table[low]
            if p > low:
                row = (1 - (p - low)) * table[low] + (p - low) * table[low + 1]
            z[i, j] = q[i] @ row
    return z


@given(seeds)
def test_bias_equals_counting_pair_by_pair(seed):
    q, s, table = data(seed)
    mask = np.random.default_rng(seed).random((B, 1, L, S)) < 0.7
    for given_mask in (CAUSAL, mask, None):
        z = cope_bias(q, s, table, given_mask)
        assert z.shape == (B, H, L, S)
        every = np.broadcast_to(True if given_mask is None else given_mask, s.shape)
        for b, h in np.ndindex(B, H):
            expected = by_loops(q[b, h], s[b, h], table, every[b, h])
            assert_allclose(z[b, h], expected, rtol=0, atol=1e-12)


# ---- theorems -----------------------------------------------------------------------------------


def test_open_gates_count_distance_plus_one_and_so_read_a_relative_table():
    q, s, _ = data()
    table = np.random.default_rng(3).standard_normal((S + 1, K))
    z = cope_bias(q, np.full_like(s, 50.0), table, CAUSAL)  # sigmoid(50) rounds to 1
    for i, j in np.ndindex(L, S):
        if j <= LATE[i]:
            expected = q[..., i, :] @ table[LATE[i] - j + 1]
            assert_allclose(z[..., i, j], expected, rtol=0, atol=1e-12)


def test_closed_gates_are_passed_and_masks_as_large_negative_scores_close_them():
    q, s, table = data()
    expected = cope_bias(q, s, table, CAUSAL)
    for closed in (-1e9, -np.inf):
        hidden = np.where(CAUSAL, s, closed)
        assert_array_equal(cope_bias(q, hidden, table), expected)
        assert_array_equal(cope_bias(q, hidden, table, CAUSAL), expected)


def test_padding_counts_nothing_but_only_if_the_mask_is_known_before_the_sum():
    q, s, table = data()
    real = padding_mask([S, S - 2], S) & CAUSAL
    short = cope_bias(q[1], s[1, :, :, : S - 2], table, CAUSAL[:, : S - 2])
    assert_allclose(cope_bias(q, s, table, real)[1, ..., : S - 2], short, rtol=0, atol=1e-12)
    late = cope_bias(q, s, table, CAUSAL)[1, ..., : S - 2]  # as if padding were masked afterwards
    assert np.abs(late - short).max() > 0.1


def test_newest_query_gets_the_last_row_and_old_keys_may_be_dropped():
    q, s, table = data()
    whole = cope_bias(q, s, table, CAUSAL)
    newest = cope_bias(q[..., -1:, :], s[..., -1:, :], table)
    assert_allclose(newest, whole[..., -1:, :], rtol=0, atol=1e-14)
    assert_array_equal(cope_bias(q, s[..., 3:], table, CAUSAL[:, 3:]), whole[..., 3:])


def test_count_stops_at_the_last_row():
    q, table = np.ones((1, 1)), np.arange(3.0)[:, None]
    assert cope_bias(q, np.full((1, 6), np.inf), table).tolist() == [[2, 2, 2, 2, 2, 1]]


def test_queries_in_blocks_get_what_each_gets_alone():
    rng, many, mask = np.random.default_rng(5), 2 * ROWS + 3, np.ones((2 * ROWS + 3, S), bool)
    q, s, table = (rng.standard_normal(shape) for shape in ((H, many, K), (many, S), (N, K)))
    mask[ROWS:, 2] = False
    z = cope_bias(q, s, table, mask)
    for i in (0, ROWS - 1, ROWS, 2 * ROWS, many - 1):
        alone = cope_bias(q[:, i, None], s[i, None], table, mask[i, None])
        assert_allclose(z[:, i, None], alone, rtol=0, atol=1e-14)


@pytest.mark.parametrize("part", ["q", "gate_scores", "table"])
def test_gradients_equal_finite_differences(part):
    q, s, table = (x[0, :2] if x.ndim == 4 else x for x in data())
    arrays, g = [q, s, table], np.random.default_rng(4).standard_normal((2, L, S))
    place = ["q", "gate_scores", "table"].index(part)

    def number(*arrays):
        return np.sum(g * cope_bias(*arrays, CAUSAL))

    def of_one(x):
        return number(*(x if n == place else array for n, array in enumerate(arrays)))

    grad = value_and_grad(of_one)(arrays[place])[1]
    assert_allclose(grad, slopes(number, arrays, place), rtol=0, atol=1e-7)
    assert np.abs(grad).max() > 0.1


def test_slope_in_the_count_is_the_step_between_two_rows_and_zero_at_a_whole_count():
    """By the gate of the one key: dz/dp = z_ceil - z_floor, times the slope of the sigmoid."""
    q, table = np.ones((1, 1)), np.array([[0.0], [1.0], [5.0]])

    def last(s):
        return np.sum(cope_bias(q, np.array([[0.0]]) + s, table))

    slope = value_and_grad(lambda s: last(s))(np.array([[0.4]]))[1]
    gate = 1 / (1 + math.exp(-0.4))
    assert_allclose(slope, gate * (1 - gate), rtol=1e-12)

    def two_halves(s):  # p = 1 exactly: a whole count, whose floor is its ceiling
        return np.sum(cope_bias(q, s, table)[0, 0])

    assert value_and_grad(two_halves)(np.zeros((1, 2)))[1].tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_small_floats_stay_small(dtype):
    q, s, table = (x.astype(dtype) for x in data())
    z = cope_bias(q, s, table, CAUSAL)
    assert z.dtype == dtype
    exact = cope_bias(q.astype(float), s.astype(float), table.astype(float), CAUSAL)
    assert_allclose(z, exact, rtol=0, atol=5e-6 if dtype == np.float32 else 5e-3)
    lists = cope_bias([[1]], [[0, 0]], [[0], [2]])
    assert lists.dtype == np.float64 and lists.tolist() == [[2.0, 1.0]]


# ---- by hand ------------------------------------------------------------------------------------


def test_table_of_three_queries():
    z = cope_bias(**GOLDEN)
    rows = [z[i, : i + 1].round(12).tolist() for i in range(3)]
    assert rows == [[0.5], [1.75, 0.5], [9.5, 4.4, 1.8]]
    counts = cope_bias(**{**GOLDEN, "q": np.ones((3, 1)), "table": np.arange(4.0)[:, None]})
    rows = [counts[i, : i + 1].round(12).tolist() for i in range(3)]
    assert rows == [[0.5], [1.25, 0.5], [2.15, 1.4, 0.9]]


# ---- bad input ----------------------------------------------------------------------------------


def changed(**given):
    return lambda: cope_bias(**{**GOLDEN, **given})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (changed(q=[1.0]), r"cope_bias: q must have the axes \(..., L, K\); got shape \(1,\)"),
        (changed(gate_scores=[0.0]), r"gate_scores must have the axes \(..., L, S\)"),
        (changed(gate_scores=np.full((3, 3), np.nan)), "gate_scores must be numbers; got nan"),
        (changed(gate_scores=np.zeros((2, 3))), "same number of queries L; got 3 and 2"),
        (changed(table=[[1.0]]), r"N at least 2 and K = 1; got shape \(1, 1\)"),
        (changed(table=np.zeros((4, 2))), r"K = 1; got shape \(4, 2\)"),
        (changed(table=np.zeros((2, 4, 1))), r"\(N, K\) with N at least 2 .* shape \(2, 4, 1\)"),
        (changed(mask=np.zeros((3, 3))), "mask must be boolean, True = may attend"),
        (changed(mask=np.ones((5, 3, 3), bool)), "mask must broadcast to the shape of the scores"),
        (
            lambda: cope_bias(np.ones((2, 1, 1)), np.ones((3, 1, 1)), [[0.0], [1.0]]),
            r"the batch axes must broadcast; got q \(2,\), gate_scores \(3,\)",
        ),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
