"""Transformer-XL: loop oracle, theorems, the relative shift, bad input."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import relative_distance, relative_shift, sinusoidal, transformer_xl_scores

B, H, L, S, K = 2, 3, 5, 7, 4


def data(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


Q, KEYS, U, V = data(B, H, L, K), data(B, H, S, K, seed=1), data(H, K, seed=2), data(H, K, seed=3)
DISTANCE = relative_distance(np.arange(S - L, S), np.arange(S))  # -4 .. 6
SHUFFLED = relative_distance([9, 0, 4, 2, 7], [3, 1, 0, 8, 2, 5, 6])
R = {id(d): data(H, d.max() - d.min() + 1, K, seed=4) for d in (DISTANCE, SHUFFLED)}


@pytest.mark.parametrize("distance", [DISTANCE, SHUFFLED], ids=["window", "gather"])
def test_scores_equal_the_four_terms_scalar_by_scalar(distance):
    r = R[id(distance)]
    scores = transformer_xl_scores(Q, KEYS, r, U, V, distance)
    assert scores.shape == (B, H, L, S)
    for b, h, i, j in np.ndindex(scores.shape):
        code = r[h, distance[i, j] - distance.min()]
        terms = (
            sum(Q[b, h, i, a] * KEYS[b, h, j, a] for a in range(K)),
            sum(Q[b, h, i, a] * code[a] for a in range(K)),
            sum(U[h, a] * KEYS[b, h, j, a] for a in range(K)),
            sum(V[h, a] * code[a] for a in range(K)),
        )
        expected = sum(terms) / math.sqrt(K)
        assert math.isclose(scores[b, h, i, j], expected, rel_tol=0, abs_tol=1e-12)


# ---- theorems -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [-3, 1, 1000])
def test_moving_all_positions_changes_nothing(shift):
    at = np.arange(S) + shift
    moved = relative_distance(at[-L:], at)
    r = R[id(DISTANCE)]
    expected = transformer_xl_scores(Q, KEYS, r, U, V, DISTANCE)
    assert_array_equal(transformer_xl_scores(Q, KEYS, r, U, V, moved), expected)


def test_distances_of_a_padded_batch_equal_those_of_each_sequence_alone():
    at = np.array([[0, 0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6]])[:, None]
    distance = relative_distance(at[..., -L:], at)
    least, most = distance.min(), distance.max()
    r = data(H, most - least + 1, K, seed=4)
    scores = transformer_xl_scores(Q, KEYS, r, U, V, distance)
    for b in range(B):
        own = distance[b, 0]
        rows = r[:, own.min() - least : own.max() - least + 1]
        alone = transformer_xl_scores(Q[b], KEYS[b], rows, U, V, own)
        assert_allclose(scores[b], alone, rtol=0, atol=1e-12)


def test_a_position_bias_alone_is_constant_along_diagonals():
    zeros = np.zeros((H, L, K))
    at = np.arange(L)
    distance = relative_distance(at, at)
    r = data(H, 2 * L - 1, K)
    scores = transformer_xl_scores(zeros, zeros, r, U, V, distance)
    assert_allclose(scores[:, 1:, 1:], scores[:, :-1, :-1], rtol=0, atol=1e-13)


def test_relative_shift_equals_the_gather_up_to_the_diagonal():
    """The causal form: codes of the distances S-1 .. 0, and the last L of S positions ask."""
    codes = sinusoidal(np.arange(S - 1, -1, -1), K)  # the largest distance first
    products = Q[0, 0] @ codes.T  # (L, S)
    shifted = relative_shift(products)
    for i, j in np.ndindex(L, S):
        distance = i + S - L - j
        if distance >= 0:
            assert shifted[i, j] == products[i, S - 1 - distance]


# ---- labelled cells -----------------------------------------------------------------------------


def test_beyond_the_diagonal_the_shift_shows_data_of_the_next_row():
    """Cell 10 i + d is the product of query i with distance d; 3 queries, 5 distances."""
    products = [[10 * i + d for d in (4, 3, 2, 1, 0)] for i in range(3)]
    pad = 0.0
    assert relative_shift(products).tolist() == [
        [2, 1, 0, pad, 14],
        [13, 12, 11, 10, pad],
        [24, 23, 22, 21, 20],
    ]


# ---- dtype, purity, bad input -------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "atol"), [(np.float16, 2e-2), (np.float32, 1e-5)])
def test_dtype_is_kept_and_nothing_changed(dtype, atol):
    arrays = [Q.astype(dtype), KEYS.astype(dtype), R[id(DISTANCE)], U, V]
    kept = [a.copy() for a in arrays]
    scores = transformer_xl_scores(*arrays, DISTANCE)
    assert scores.dtype == relative_shift(scores).dtype == dtype
    exact = transformer_xl_scores(*(a.astype(np.float64) for a in arrays), DISTANCE)
    assert_allclose(scores.astype(np.float64), exact, rtol=0, atol=atol)
    for now, before in zip(arrays, kept, strict=True):
        assert_array_equal(now, before)


def test_a_shift_takes_as_many_distances_as_queries():
    assert relative_shift([[1.0, 2.0], [3.0, 4.0]]).tolist() == [[2.0, 0.0], [3.0, 4.0]]


def test_no_queries_give_no_scores():
    nothing = relative_distance([], np.arange(S))
    empty = np.zeros((H, 0, K))
    assert transformer_xl_scores(empty, KEYS, empty, U, V, nothing).shape == (B, H, 0, S)


@pytest.mark.parametrize(
    ("r", "u", "message"),
    [
        (
            np.zeros((H, 10, K)),
            U,
            r"r must have the shape \(H, N, K\).*\(3, 11, 4\); got \(3, 10, 4",
        ),
        (np.zeros((H, 12, K)), U, r"r must have the shape .* got \(3, 12, 4\)"),
        (np.zeros((11, K)), U, r"r must have the shape .* got \(11, 4\)"),
        (R[id(DISTANCE)], U[:2], r"u must have the shape \(H, K\) = \(3, 4\); got \(2, 4\)"),
    ],
)
def test_codes_and_biases_must_have_their_shapes(r, u, message):
    with pytest.raises(ValueError, match=f"transformer_xl_scores: {message}"):
        transformer_xl_scores(Q, KEYS, r, u, V, DISTANCE)


def test_heads_are_needed():
    with pytest.raises(
        ValueError, match=r"q must have the axes \(..., H, L, K\); got shape \(5, 4"
    ):
        transformer_xl_scores(Q[0, 0], KEYS[0, 0], R[id(DISTANCE)], U, V, DISTANCE)
    with pytest.raises(ValueError, match=r"relative_shift: products must have the axes"):
        relative_shift([1.0, 2.0])
    with pytest.raises(ValueError, match=r"as many distances as queries; got 2 for 6"):
        relative_shift(np.ones((6, 2)))
