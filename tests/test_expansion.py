"""The four terms: loop oracle, theorems, bad input."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import four_terms, sinusoidal

B, L, D, K = 2, 5, 6, 4
RNG = np.random.default_rng(0)
X, P = RNG.standard_normal((B, L, D)), RNG.standard_normal((L, D))
W_Q, W_K = RNG.standard_normal((2, D, K))


def test_each_term_equals_its_double_sum():
    terms = four_terms(X, P, W_Q, W_K)
    for b, i, j in np.ndindex(B, L, L):
        pairs = ((X[b, i], X[b, j]), (X[b, i], P[j]), (P[i], X[b, j]), (P[i], P[j]))
        for term, (left, right) in zip(terms, pairs, strict=True):
            expected = sum(
                left[a] * W_Q[a, c] * W_K[e, c] * right[e]
                for a in range(D)
                for e in range(D)
                for c in range(K)
            ) / math.sqrt(K)
            got = term[b, i, j] if term.ndim == 3 else term[i, j]
            assert math.isclose(got, expected, rel_tol=0, abs_tol=1e-11)


def test_the_four_terms_add_up_to_the_score():
    scores = (X + P) @ W_Q @ np.swapaxes((X + P) @ W_K, -1, -2) / math.sqrt(K)
    assert_allclose(sum(four_terms(X, P, W_Q, W_K)), scores, rtol=0, atol=1e-12)


def test_without_positions_only_content_is_left():
    content, *rest = four_terms(X, 0 * P, W_Q, W_K)
    assert not any(term.any() for term in rest)
    assert_allclose(content, four_terms(X, P, W_Q, W_K)[0], rtol=0, atol=0)


def test_position_term_of_the_documents_depends_on_both_positions():
    """beta(1,0), beta(2,1), beta(3,2): not a function of the distance."""
    rng = np.random.default_rng(0)
    rng.standard_normal((2, 8))
    w_q, w_k = rng.standard_normal((2, 8, 8))
    p = sinusoidal(np.arange(4), 8)
    term = four_terms(np.zeros((4, 8)), p, w_q.T, w_k.T)[3] * math.sqrt(8)
    assert [round(float(term[i, i - 1]), 4) for i in (1, 2, 3)] == [7.7084, 14.8507, 16.162]


def test_dtype_is_kept_and_nothing_changed():
    arrays = [a.astype(np.float32) for a in (X, P, W_Q, W_K)]
    kept = [a.copy() for a in arrays]
    assert all(term.dtype == np.float32 for term in four_terms(*arrays))
    for now, before in zip(arrays, kept, strict=True):
        assert_array_equal(now, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, P[:4], W_Q, W_K), r"p must broadcast to the shape of x, \(2, 5, 6\); got \(4, 6\)"),
        ((X, P, W_Q[:5], W_K[:5]), r"shape \(D, K\) with D = 6; got \(5, 4\) and \(5, 4\)"),
        ((X, P, W_Q, W_K[:, :3]), r"got \(6, 4\) and \(6, 3\)"),
        ((X[0, 0], P, W_Q, W_K), r"x must have the axes \(..., L, D\); got shape \(6,\)"),
        ((X, P, W_Q[0], W_K), r"w_q must have the axes"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(arguments, message):
    with pytest.raises(ValueError, match=f"four_terms: .*{message}"):
        four_terms(*arguments)
