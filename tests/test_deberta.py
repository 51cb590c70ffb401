"""DeBERTa: loop oracle for both readings of p2c, theorems, the bucket tables, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import deberta_bucket, deberta_scores, relative_distance

B, H, L, S, K, M = 2, 3, 5, 7, 4, 3


def data(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


Q, KEYS = data(B, H, L, K), data(B, H, S, K, seed=1)
QR, KR = data(H, 2 * M, K, seed=2), data(H, 2 * M, K, seed=3)
WINDOW = relative_distance(np.arange(S - L, S), np.arange(S))
SHUFFLED = relative_distance([9, 0, 4, 2, 7], [3, 1, 0, 8, 2, 5, 6])


def row(distance):
    """delta of equation (3): 0 up to -m, 2m - 1 from m on."""
    if distance <= -M:
        return 0
    return 2 * M - 1 if distance >= M else distance + M


@pytest.mark.parametrize("distance", [WINDOW, SHUFFLED], ids=["window", "gather"])
@pytest.mark.parametrize("reading", ["paper", "released code"])
def test_scores_equal_equation_4_scalar_by_scalar(distance, reading):
    p2c = None if reading == "paper" else distance
    scores = deberta_scores(Q, KEYS, QR, KR, distance, p2c_distance=p2c)
    assert scores.shape == (B, H, L, S)
    for b, h, i, j in np.ndindex(scores.shape):
        d = distance[i, j]
        key_row, query_row = row(d), row(-d if reading == "paper" else d)
        c2c = sum(Q[b, h, i, a] * KEYS[b, h, j, a] for a in range(K))
        c2p = sum(Q[b, h, i, a] * KR[h, key_row, a] for a in range(K))
        p2c_term = sum(KEYS[b, h, j, a] * QR[h, query_row, a] for a in range(K))
        expected = (c2c + c2p + p2c_term) / math.sqrt(3 * K)
        assert math.isclose(scores[b, h, i, j], expected, rel_tol=0, abs_tol=1e-12)


@pytest.mark.parametrize("reading", ["paper", "released code"])
def test_distances_of_a_padded_batch_join_scores_of_all_heads(reading):
    at = np.array([[0, 0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6]])[:, None]
    distance = relative_distance(at[..., -L:], at)
    p2c = None if reading == "paper" else distance
    scores = deberta_scores(Q, KEYS, QR, KR, distance, p2c)
    for b in range(B):
        own = None if reading == "paper" else distance[b, 0]
        alone = deberta_scores(Q[b], KEYS[b], QR, KR, distance[b, 0], own)
        assert_allclose(scores[b], alone, rtol=0, atol=1e-12)


def bucket_by_formula(d, b, farthest):
    mid, n = b // 2, min(abs(d), farthest - 1)
    if abs(d) <= mid:
        return d
    growth = math.log(n / mid) / math.log((farthest - 1) / mid)
    return int(math.copysign(math.ceil(growth * (mid - 1)) + mid, d))


@pytest.mark.parametrize(("b", "farthest"), [(256, 512), (128, 512), (8, 20), (4, 512)])
def test_buckets_equal_the_formula_distance_by_distance(b, farthest):
    distances = np.arange(-700, 701)
    expected = [bucket_by_formula(int(d), b, farthest) for d in distances]
    assert deberta_bucket(distances, b, farthest).tolist() == expected


@pytest.mark.parametrize(
    "farthest", [10, 26, 42, 65, 70, 81, 101, 122, 126, 129, 139, 257, 513, 1025]
)
def test_buckets_are_those_of_whole_numbers_for_every_number_of_buckets(farthest):
    """No logarithm: ceil(...) is the least t whose edge n does not pass."""
    for b in range(4, min(2 * farthest - 2, 130), 2):
        mid, t = b // 2, 0
        steps, expected = mid - 1, [*range(mid)]
        for n in range(mid, farthest):
            while n**steps * mid**t > (farthest - 1) ** t * mid**steps:
                t += 1
            expected.append(mid + t)
        assert expected[-1] == b - 1
        beyond = [b - 1] * 2
        assert deberta_bucket(range(farthest + 2), b, farthest).tolist() == expected + beyond


def test_an_edge_that_is_a_whole_number_ends_its_bucket():
    assert deberta_bucket([20, 21, 40, 41], 20, 81).tolist() == [13, 14, 16, 17]
    assert deberta_bucket([-69, 69, 9999], 26, 70).tolist() == [-25, 25, 25]  # never b
    assert deberta_bucket([1, 2, -9], 2, 5).tolist() == [1, 1, -1]  # mid is 1, and no edge


# ---- theorems -----------------------------------------------------------------------------------


@pytest.mark.parametrize("reading", ["paper", "released code"])
def test_moving_all_positions_changes_nothing(reading):
    at = np.arange(S) + 40
    moved = relative_distance(at[-L:], at)
    a, b = (
        deberta_scores(Q, KEYS, QR, KR, d, None if reading == "paper" else d)
        for d in (moved, WINDOW)
    )
    assert_array_equal(a, b)


def test_both_readings_agree_only_when_the_table_is_mirrored():
    """Row m stands for distance 0, and rows 1 .. 2m - 1 mirror around it; row 0 has no twin."""
    distance = np.clip(WINDOW, 1 - M, M - 1)
    mirrored = QR[:, [0, *range(2 * M - 1, 0, -1)]]
    paper = deberta_scores(Q, KEYS, QR, KR, distance)
    released = deberta_scores(Q, KEYS, mirrored, KR, distance, p2c_distance=distance)
    assert_allclose(paper, released, rtol=0, atol=1e-12)
    assert np.abs(paper - deberta_scores(Q, KEYS, QR, KR, distance, distance)).max() > 0.1


@pytest.mark.parametrize("window", [True, False])
def test_each_table_is_read_with_its_own_distance(window):
    other = relative_distance(np.arange(3, 3 + len(WINDOW)), np.arange(WINDOW.shape[1]))
    other = other if window else np.array(other)
    assert not np.array_equal(other, WINDOW)
    both = deberta_scores(Q, KEYS, QR, KR, WINDOW, p2c_distance=other)
    c2p = deberta_scores(Q, KEYS, 0 * QR, KR, WINDOW)
    p2c = deberta_scores(0 * Q, KEYS, QR, 0 * KR, other, p2c_distance=other)
    assert_allclose(both, c2p + p2c, rtol=0, atol=1e-12)


def test_both_tables_at_zero_leave_content_at_the_smaller_scale():
    scores = deberta_scores(Q, KEYS, 0 * QR, 0 * KR, WINDOW)
    expected = Q @ KEYS.swapaxes(-1, -2) / math.sqrt(3 * K)
    assert_allclose(scores, expected, rtol=0, atol=1e-14)


def test_buckets_take_the_place_of_distances():
    at = np.arange(40)
    distance = relative_distance(at, at)
    buckets = deberta_bucket(distance, 8, 30)
    assert buckets.strides == (8, -8)  # still a window
    q, k = data(H, 40, K, seed=5), data(H, 40, K, seed=6)
    q_table, k_table = data(H, 16, K, seed=7), data(H, 16, K, seed=8)
    for own in (None, True):
        window = deberta_scores(q, k, q_table, k_table, buckets, own and buckets)
        gather = np.array(buckets)
        assert_allclose(
            window,
            deberta_scores(q, k, q_table, k_table, gather, own and gather),
            rtol=0,
            atol=1e-12,
        )


@given(st.integers(1, 30).map(lambda n: 2 * n), st.integers(2, 400), st.integers(0, 2000))
def test_buckets_are_odd_and_never_fall(b, more, far):
    farthest = b // 2 + more
    if farthest <= b // 2 + 1:
        return
    d = np.arange(far + 1)
    buckets = deberta_bucket(d, b, farthest)
    assert_array_equal(deberta_bucket(-d, b, farthest), -buckets)
    assert (np.diff(buckets) >= 0).all() and buckets.max() <= max(b - 1, b // 2)


# ---- published tables ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("b", "table"),
    [
        (256, {127: 127, 128: 128, 129: 129, 200: 169, 256: 192, 300: 207, 511: 255}),
        (
            128,
            {63: 63, 64: 64, 65: 65, 66: 65, 80: 71, 100: 78, 128: 86, 256: 107, 511: 127},
        ),
    ],
)
def test_buckets_as_published(b, table):
    distances = np.array([*table, 600, 10**6])
    assert deberta_bucket(distances, b, 512).tolist() == [*table.values(), b - 1, b - 1]
    assert deberta_bucket(-distances, b, 512).tolist() == [-v for v in table.values()] + [1 - b] * 2


def test_rows_of_equation_3():
    """k_table row r is the number r, q is 1, everything else 0: c2p shows the row it read."""
    rows = np.arange(2.0 * M)[None, :, None]
    distance = np.arange(-5, 6)[None]
    one, zeros = np.ones((1, 1, 1)), np.zeros((1, 11, 1))
    read = deberta_scores(one, zeros, 0 * rows, rows, distance) * math.sqrt(3)
    assert read[0, 0].round(12).tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 5, 5, 5]


# ---- dtype, purity, bad input -------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "atol"), [(np.float16, 2e-2), (np.float32, 1e-5)])
@pytest.mark.parametrize("distance", [WINDOW, SHUFFLED], ids=["window", "gather"])
def test_dtype_is_that_of_the_data_and_nothing_is_changed(dtype, atol, distance):
    q, k = Q.astype(dtype), KEYS.astype(dtype)
    kept = [a.copy() for a in (q, k, QR, KR, distance)]
    scores = deberta_scores(q, k, QR, KR, distance)
    assert scores.dtype == dtype
    exact = deberta_scores(q.astype(np.float64), k.astype(np.float64), QR, KR, distance)
    assert_allclose(scores.astype(np.float64), exact, rtol=0, atol=atol)
    for now, before in zip((q, k, QR, KR, distance), kept, strict=True):
        assert_array_equal(now, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: deberta_scores(Q, KEYS, QR[:, :5], KR, WINDOW), "rows of q_table must be even.*5"),
        (lambda: deberta_scores(Q, KEYS, QR, KR[:, :5], WINDOW), "rows of k_table must be even.*5"),
        (
            lambda: deberta_scores(Q, KEYS, QR[:2], KR, WINDOW),
            "q_table must have one part for each",
        ),
        (lambda: deberta_scores(Q, KEYS, QR, KR[..., :3], WINDOW), "k_table must have the axes"),
        (lambda: deberta_scores(Q, KEYS, QR, KR, WINDOW.T), r"distance must end with the axes"),
        (lambda: deberta_scores(Q, KEYS, QR, KR, WINDOW, WINDOW.T), "p2c_distance must end with"),
        (lambda: deberta_scores(Q, KEYS, QR, KR, WINDOW + 0.5), "distance must be whole numbers"),
        (lambda: deberta_bucket([1.5], 8, 20), "deberta_bucket: distance must be whole numbers"),
        (lambda: deberta_bucket([1], 7, 20), "num_buckets must be even, so that half.*got 7"),
        (
            lambda: deberta_bucket([1], 8, 5),
            "max_distance must be above num_buckets / 2 .* 5; got 5",
        ),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
