"""T5: loop oracle, theorems, the published bucket tables, bad input."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from pe_numpy import relative_distance, t5_bias, t5_bucket


def bucket_by_integers(distance, num_buckets, max_distance, bidirectional):
    """The rule in exact arithmetic: no logarithm, only powers of fractions.

    floor(log(n/e) / log(M/e) (h - e)) is the largest t with (n/e)^(h - e) >= (M/e)^t.
    """
    half = num_buckets // 2 if bidirectional else num_buckets
    upper = half if bidirectional and distance < 0 else 0
    n = abs(distance) if bidirectional else max(distance, 0)
    exact = half // 2
    if n < exact:
        return upper + n
    t = 0
    while Fraction(n, exact) ** (half - exact) >= Fraction(max_distance, exact) ** (t + 1):
        t += 1
        if exact + t >= half - 1:
            break
    return upper + min(exact + t, half - 1)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(
    ("buckets", "farthest"), [(32, 128), (16, 20), (64, 128), (32, 256), (8, 8)]
)
def test_buckets_equal_the_rule_in_exact_arithmetic(buckets, farthest, bidirectional):
    distances = np.arange(-200, 201)
    expected = [bucket_by_integers(int(d), buckets, farthest, bidirectional) for d in distances]
    assert t5_bucket(distances, buckets, farthest, bidirectional).tolist() == expected


@pytest.mark.parametrize(
    ("buckets", "farthest", "bidirectional", "edges"),
    [
        (9, 128, False, {8: 5, 16: 6, 64: 8}),
        (18, 128, True, {8: 5, 16: 6, 64: 8}),
        (38, 16, True, {12: 14}),
        (17, 27, False, {12: 11}),  # missed in float32
        (36, 32, False, {24: 27}),
        (129, 2048, False, {128: 77, 256: 90, 1024: 116}),
    ],
)
def test_a_bucket_opens_at_an_edge_that_is_a_whole_number(buckets, farthest, bidirectional, edges):
    for n, bucket in edges.items():
        assert t5_bucket(n, buckets, farthest, bidirectional) == bucket
        for d in (n - 1, n, -n):
            expected = bucket_by_integers(d, buckets, farthest, bidirectional)
            assert t5_bucket(d, buckets, farthest, bidirectional) == expected


@pytest.mark.parametrize("farthest", [8, 16, 20, 27, 32, 64, 100, 128, 160, 256, 320, 686, 1024])
def test_buckets_are_those_of_whole_numbers_for_every_number_of_buckets(farthest):
    for half in range(2, min(2 * farthest, 100)):
        exact, t, expected = half // 2, 0, [*range(half // 2)]
        steps = half - exact
        for n in range(exact, farthest + 2):
            while t + 1 < steps and n**steps * exact ** (t + 1) >= farthest ** (t + 1) * (
                exact**steps
            ):
                t += 1
            expected.append(exact + t)
        assert t5_bucket(range(farthest + 2), half, farthest, False).tolist() == expected
        assert t5_bucket(range(farthest + 2), 2 * half, farthest).tolist() == expected


def test_huge_distances_and_a_huge_reach_stay_exact_and_cheap():
    last = 2**63 - 1
    edge = 3 * 2**60  # buckets of 6 open at 3, at 3 2^30 and here
    assert t5_bucket([edge - 1, edge, last], 6, 3 * 2**90, False).tolist() == [4, 5, 5]
    assert t5_bucket([edge - 1, edge, last], 6, 10**5000, False).tolist() == [3, 3, 3]
    assert t5_bucket([127, 128], 129, np.int64(2048), False).tolist() == [76, 77]
    assert t5_bucket([5, 10**6], 10**5, 10**6, False).tolist() == [5, 10**5 - 1]


@pytest.mark.parametrize("bidirectional", [True, False])
def test_bias_reads_the_table_pair_by_pair(bidirectional):
    H, N, q_at, k_at = 3, 8, [3, 0, 9], [0, 2, 5, 1]
    table = np.random.default_rng(0).standard_normal((N, H))
    distance = relative_distance(q_at, k_at)
    bias = t5_bias(table, distance, max_distance=6, bidirectional=bidirectional)
    assert bias.shape == (H, 3, 4)
    for h, i, j in np.ndindex(bias.shape):
        bucket = bucket_by_integers(q_at[i] - k_at[j], N, 6, bidirectional)
        assert bias[h, i, j] == table[bucket, h]


# ---- theorems -----------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(1, 9), st.integers(-9, 9), st.booleans())
def test_window_equals_gather_and_costs_one_line_a_head(L, S, start, bidirectional):
    table = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
    window = relative_distance(np.arange(start, start + L), np.arange(S))
    bias = t5_bias(table, window, 6, bidirectional)
    assert bias.dtype == np.float32 and not bias.flags.writeable
    assert L + S == 2 or bias.strides[1] == -bias.strides[2] == 4
    assert_array_equal(bias, t5_bias(table, np.array(window), 6, bidirectional))


@given(st.integers(2, 20).map(lambda n: 2 * n), st.integers(0, 10**6))
def test_buckets_never_fall_with_distance_and_keep_both_directions_apart(buckets, far):
    distances = np.arange(0, 300)
    past = t5_bucket(distances, buckets, 300)
    assert (np.diff(past) >= 0).all() and past.max() < buckets // 2
    assert_array_equal(t5_bucket(-distances[1:], buckets, 300), past[1:] + buckets // 2)
    assert t5_bucket(300 + far, buckets, 300) == buckets // 2 - 1


def test_distances_of_a_batch_give_biases_of_a_batch():
    at = np.array([[0, 0, 1, 2], [0, 1, 2, 3]])
    table = np.random.default_rng(0).standard_normal((8, 3))
    bias = t5_bias(table, relative_distance(at, at), max_distance=6)
    assert bias.shape == (2, 3, 4, 4)
    for b in range(2):
        own = relative_distance(at[b], at[b])
        assert_array_equal(bias[b], t5_bias(table, own, max_distance=6))


def test_a_decoding_step_reads_its_row_of_the_whole():
    table = np.random.default_rng(0).standard_normal((32, 2))
    at = np.arange(40)
    whole = t5_bias(table, relative_distance(at, at), bidirectional=False)
    for t in (0, 1, 17, 39):
        step = t5_bias(table, relative_distance([t], at[: t + 1]), bidirectional=False)
        assert_array_equal(step[:, 0], whole[:, t, : t + 1])


# ---- published tables ---------------------------------------------------------------------------


def first_distances(buckets, past):
    return [int(np.argmax(buckets == b)) for b in range(past)]


def test_first_distance_of_every_bucket():
    distances = np.arange(200)
    causal = [*range(16), 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]
    assert first_distances(t5_bucket(distances, bidirectional=False), 32) == causal
    both = [*range(8), 8, 12, 16, 23, 32, 46, 64, 91]
    assert first_distances(t5_bucket(distances), 16) == both


def test_table_of_0_to_30_as_printed():
    printed = [*range(8)] + [8] * 4 + [9] * 4 + [10] * 7 + [11] * 8
    assert t5_bucket(np.arange(31)).tolist() == printed


def test_ten_by_ten_table_of_the_port():
    at = np.arange(10)
    table = t5_bucket(relative_distance(at, at))
    assert table[0].tolist() == [0, 17, 18, 19, 20, 21, 22, 23, 24, 24]
    assert table[-1].tolist() == [8, 8, 7, 6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(("n", "bucket"), [(16, 10), (32, 12), (64, 14)])
def test_exact_boundaries_stay_where_they_are_in_float64(n, bucket):
    assert t5_bucket(n) == bucket
    assert t5_bucket(n - 1) == bucket - 1
    with_epsilon = 8 + math.floor(math.log(n / 8) / math.log(128 / 8 + 1e-10) * 8)
    assert with_epsilon == bucket - 1  # the epsilon of a widely copied version moves them


def test_causal_rule_fed_the_other_sign_gives_one_bucket():
    at = np.arange(6)
    wrong = t5_bucket(-relative_distance(at, at), bidirectional=False)
    assert not np.tril(wrong).any()
    right = t5_bucket(relative_distance(at, at), bidirectional=False)
    assert right[5].tolist() == [5, 4, 3, 2, 1, 0]


# ---- edges and bad input ------------------------------------------------------------------------


def test_any_shape_and_none():
    assert t5_bucket(7) == 7
    assert t5_bucket(np.zeros((0, 3), int)).shape == (0, 3)
    assert t5_bias(np.zeros((8, 2)), np.zeros((0, 3), int), 6).shape == (2, 0, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: t5_bucket([0.5]), "t5_bucket: distance must be whole numbers"),
        (lambda: t5_bucket(1, 2), "t5_bucket: num_buckets must be at least 4; got 2"),
        (
            lambda: t5_bucket(1, 7),
            "num_buckets must be even, so that each direction has half.*got 7",
        ),
        (lambda: t5_bucket(1, 32, 8), "max_distance must be above the 8 distances .* got 8"),
        (lambda: t5_bucket(1, 32, 16, False), "max_distance must be above the 16 distances"),
        (
            lambda: t5_bias(np.zeros(8), [[0]], 6),
            r"t5_bias: table must have the axes \(..., N, H\)",
        ),
        (lambda: t5_bias(np.zeros((2, 8, 2)), [[0]], 6), r"table must have the axes \(N, H\); got"),
        (lambda: t5_bias(np.zeros((8, 2)), [0], 6), r"distance must have the axes \(L, S\) or \(B"),
        (
            lambda: t5_bias(np.zeros((0, 2)), [[0]], 6),
            "t5_bias: the number of rows of table must be at least 4; got 0",
        ),
        (
            lambda: t5_bias(np.zeros((1, 2)), [[0]], 6, bidirectional=False),
            "t5_bias: the number of rows of table must be at least 2; got 1",
        ),
        (
            lambda: t5_bias(np.zeros((7, 2)), [[0]], 6),
            "t5_bias: the number of rows of table must be even, so that .* half of them; got 7",
        ),
        (lambda: t5_bias(np.zeros((8, 2)), [[0]], 2), "t5_bias: max_distance must be above the 2 "),
        (
            lambda: t5_bias(np.zeros((8, 2)), [[0]], 2.5),
            "t5_bias: max_distance must be a whole num",
        ),
        (lambda: t5_bias(np.zeros((8, 2)), [[0.5]]), "t5_bias: distance must be whole numbers"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
