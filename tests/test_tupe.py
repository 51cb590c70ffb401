"""TUPE: loop oracle, theorems, bad input."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import relative_distance, t5_bias, tupe_scores

B, H, L, S, K = 2, 3, 5, 7, 4


def data(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


Q, KEYS = data(B, H, L, K), data(B, H, S, K, seed=1)
PQ, PK = data(H, L, K, seed=2), data(H, S, K, seed=3)
BIAS = t5_bias(data(8, H, seed=4), relative_distance(np.arange(S - L, S), np.arange(S)), 6)


@pytest.mark.parametrize("bias", [None, BIAS])
def test_scores_equal_equation_7_scalar_by_scalar(bias):
    scores = tupe_scores(Q, KEYS, PQ, PK, bias)
    assert scores.shape == (B, H, L, S)
    for b, h, i, j in np.ndindex(scores.shape):
        content = sum(Q[b, h, i, a] * KEYS[b, h, j, a] for a in range(K)) / math.sqrt(2 * K)
        position = sum(PQ[h, i, a] * PK[h, j, a] for a in range(K)) / math.sqrt(2 * K)
        expected = content + position + (0 if bias is None else bias[h, i, j])
        assert math.isclose(scores[b, h, i, j], expected, rel_tol=0, abs_tol=1e-12)


def test_position_term_is_the_same_for_every_sequence_of_a_batch():
    nothing = tupe_scores(0 * Q, 0 * KEYS, PQ, PK)
    assert_array_equal(nothing[0], nothing[1])
    assert_allclose(
        tupe_scores(Q, KEYS, PQ, PK) - nothing, tupe_scores(Q, KEYS, 0 * PQ, PK), rtol=0, atol=1e-14
    )


def test_positions_may_differ_within_a_batch():
    pq, pk = data(B, H, L, K, seed=5), data(B, H, S, K, seed=6)
    scores = tupe_scores(Q, KEYS, pq, pk, BIAS)
    for b in range(B):
        alone = tupe_scores(Q[b], KEYS[b], pq[b], pk[b], BIAS)
        assert_allclose(scores[b], alone, rtol=0, atol=1e-13)
    with pytest.raises(ValueError, match=r"q_position must broadcast to the shape of the batch"):
        tupe_scores(Q, KEYS, data(4, H, L, K), PK)


def test_the_scale_keeps_the_variance_of_plain_attention():
    K = 64
    q, k, pq, pk = (data(2, 400, K, seed=s) for s in range(4))
    assert abs(tupe_scores(q, k, pq, pk).std() - 1) < 0.01


@pytest.mark.parametrize(("dtype", "atol"), [(np.float16, 2e-2), (np.float32, 1e-5)])
def test_dtype_is_that_of_the_data_and_nothing_is_changed(dtype, atol):
    q, k = Q.astype(dtype), KEYS.astype(dtype)
    kept = [a.copy() for a in (q, k, PQ, PK, BIAS)]
    scores = tupe_scores(q, k, PQ, PK, BIAS)
    assert scores.dtype == dtype
    exact = tupe_scores(q.astype(np.float64), k.astype(np.float64), PQ, PK, BIAS)
    assert_allclose(scores.astype(np.float64), exact, rtol=0, atol=atol)
    for now, before in zip((q, k, PQ, PK, BIAS), kept, strict=True):
        assert_array_equal(now, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (Q, KEYS, PQ[:, :4], PK),
            r"q_position must have the shape \(H, L, K\) = \(3, 5, 4\); got",
        ),
        (
            (Q, KEYS, PQ, PQ),
            r"k_position must have the shape \(H, S, K\) = \(3, 7, 4\); got \(3, 5",
        ),
        ((Q, KEYS, PQ, PK, np.zeros((4, H, L, S))), r"bias must broadcast .* got \(4, 3, 5, 7\)"),
        ((Q[0, 0], KEYS, PQ, PK), r"q must have the axes \(..., H, L, K\); got shape \(5, 4\)"),
        ((Q, KEYS[..., :3], PQ, PK), "same width K, at least 1; got 4 and 3"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(arguments, message):
    with pytest.raises(ValueError, match=f"tupe_scores: .*{message}"):
        tupe_scores(*arguments)
