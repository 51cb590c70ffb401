"""Latent attention: loop oracle, both ways, the card's numbers, identities, gradient, bad input."""

import math

import numpy as np
import pytest
from differences import slopes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import mla_scores, rope, rope_frequencies, rope_matrix, value_and_grad

B, H, L, S = 2, 3, 4, 7
N, R, LOW = 5, 6, 2  # d_n, d_r, r: width of content, of what turns, of the latent vector
QUERIES, KEYS = np.arange(S - L, S), np.arange(S)
seeds = st.integers(0, 2**32 - 1)
both_ways = pytest.mark.parametrize("absorbed", [True, False])


def parts(seed=0, batch=(), queries=L, keys=S, dtype=np.float64):
    """q_content, q_rotary, latent, k_rotary, w_uk; the last has no batch."""
    rng = np.random.default_rng(seed)
    shapes = (H, queries, N), (H, queries, R), (keys, LOW), (keys, R)
    arrays = [rng.standard_normal((*batch, *shape)) for shape in shapes]
    return [x.astype(dtype) for x in (*arrays, rng.standard_normal((H, N, LOW)))]


def by_loops(q_content, q_rotary, latent, k_rotary, w_uk, q_positions, k_positions, frequencies):
    """The score of one pair at a time, from each head's whole key; no batch."""
    scores = np.zeros((len(q_content), len(q_positions), len(k_positions)))
    for h, i, j in np.ndindex(*scores.shape):
        key = [sum(w * c for w, c in zip(row, latent[j], strict=True)) for row in w_uk[h]]
        total = sum(a * b for a, b in zip(q_content[h, i], key, strict=True))
        turned = 2 * len(frequencies)
        for n, theta in enumerate(frequencies):
            angle = (q_positions[i] - k_positions[j]) * theta
            a, b = q_rotary[h, i, 2 * n : 2 * n + 2]
            c, d = k_rotary[j, 2 * n : 2 * n + 2]
            total += (a * c + b * d) * math.cos(angle) + (a * d - b * c) * math.sin(angle)
        total += q_rotary[h, i, turned:] @ k_rotary[j, turned:]
        width = q_content.shape[-1] + q_rotary.shape[-1]
        scores[h, i, j] = total / math.sqrt(width)
    return scores


# ---- loop oracle --------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("frequencies", [None, [1.0, 0.3], [0.5, 0.25, 0.125]])
def test_scores_equal_the_formula_pair_by_pair(absorbed, frequencies):
    x, positions = parts(), ([3, 5, 0, 100], KEYS - 2)
    theta = rope_frequencies(R) if frequencies is None else frequencies
    got = mla_scores(*x, *positions, frequencies, absorbed=absorbed)
    assert_allclose(got, by_loops(*x, *positions, theta), rtol=0, atol=1e-12)


@both_ways
def test_a_batch_has_positions_of_its_own(absorbed):
    x = parts(1, (B,))
    q_positions = np.array([[[3, 4, 5, 6]], [[1, 9, 2, 2]]])  # (B, 1, L)
    k_positions = np.stack([KEYS, KEYS - 3])[:, None]
    got = mla_scores(*x, q_positions, k_positions, absorbed=absorbed)
    assert got.shape == (B, H, L, S)
    for b in range(B):
        one = [a[b] for a in x[:4]], x[4], q_positions[b, 0], k_positions[b, 0]
        expected = by_loops(*one[0], *one[1:], rope_frequencies(R))
        assert_allclose(got[b], expected, rtol=0, atol=1e-12)


def test_one_text_serves_a_batch_of_queries():
    x = parts(2)
    q_content, q_rotary = (np.stack([a, 2 * a]) for a in x[:2])
    got = mla_scores(q_content, q_rotary, *x[2:], QUERIES, KEYS)
    assert_allclose(got[1], 2 * mla_scores(*x, QUERIES, KEYS), rtol=0, atol=1e-12)


# ---- identities ---------------------------------------------------------------------------------


@given(seeds)
def test_absorbed_and_made_keys_give_the_same_scores(seed):
    x = parts(seed)
    absorbed, made = (mla_scores(*x, QUERIES, KEYS, absorbed=a) for a in (True, False))
    assert_allclose(absorbed, made, rtol=0, atol=1e-12)


@given(seeds, st.integers(-100, 100))
def test_scores_depend_on_the_distance_alone(seed, shift):
    x = parts(seed)
    moved = mla_scores(*x, QUERIES + shift, KEYS + shift)
    assert_allclose(moved, mla_scores(*x, QUERIES, KEYS), rtol=0, atol=1e-11)


@both_ways
def test_a_cache_of_latent_vectors_and_turned_keys_gives_the_last_row(absorbed):
    q_content, q_rotary, latent, k_rotary, w_uk = parts(3, queries=S)
    whole = mla_scores(q_content, q_rotary, latent, k_rotary, w_uk, KEYS, KEYS, absorbed=absorbed)
    turned = np.concatenate([rope(k_rotary[j : j + 1], [j]) for j in KEYS])  # one at a time
    newest = q_content[:, -1:], q_rotary[:, -1:]
    raw = mla_scores(*newest, latent, k_rotary, w_uk, [S - 1], KEYS, absorbed=absorbed)
    stored = mla_scores(*newest, latent, turned, w_uk, [S - 1], [0], absorbed=absorbed)
    for got in (raw, stored):
        assert_allclose(got, whole[:, -1:], rtol=0, atol=1e-12)


def test_keys_of_all_heads_from_latent_vectors_have_their_rank():
    latent, w_uk = parts(4)[2], parts(4)[4]
    keys = np.einsum("hnr,sr->shn", w_uk, latent)  # (S, H, d_n)
    assert np.linalg.matrix_rank(keys.reshape(S, -1)) == LOW
    turned = rope(keys[..., :4].swapaxes(0, 1), KEYS).swapaxes(0, 1)
    assert np.linalg.matrix_rank(turned.reshape(S, -1)) > LOW


def test_it_is_one_key_head_of_width_r_and_d_r():
    q_content, q_rotary, latent, k_rotary, w_uk = x = parts(5)
    q = np.concatenate([q_content @ w_uk, rope(q_rotary, QUERIES)], axis=-1)  # (H, L, r + d_r)
    k = np.concatenate([latent, rope(k_rotary, KEYS)], axis=-1)  # (S, r + d_r)
    expected = q @ k.T / math.sqrt(N + R)
    assert_allclose(mla_scores(*x, QUERIES, KEYS), expected, rtol=0, atol=1e-12)


# ---- numbers worked by hand ---------------------------------------------------------------------

W_UK = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0], [2.0, 1.0]])
C, Q = np.array([1.0, -1.0]), np.array([1.0, 0.0, 2.0, 1.0])


@both_ways
def test_absorption_of_one_small_head(absorbed):
    assert (Q @ W_UK).tolist() == [5.0, 3.0]
    assert (W_UK @ C).tolist() == [-1.0, -1.0, 1.0, 1.0]
    zero = np.zeros((1, 1, 2))
    got = mla_scores(Q[None, None], zero, C[None], zero[0], W_UK[None], [3], [1], absorbed=absorbed)
    assert_allclose(got * math.sqrt(6), [[[2.0]]], rtol=0, atol=1e-12)


def test_a_turn_of_the_content_cannot_be_absorbed_by_one_matrix():
    theta = rope_frequencies(4)
    direct = rope(Q[None], [3])[0] @ rope((W_UK @ C)[None], [1])[0]
    as_if_nothing = (W_UK.T @ rope(Q[None], [3])[0]) @ C
    of_this_distance = (W_UK.T @ rope_matrix(2, theta) @ Q) @ C
    assert f"{direct:.6f}" == f"{of_this_distance:.6f}" == "2.526248"
    assert f"{as_if_nothing:.6f}" == "3.877518"


def test_sizes_of_deepseek():
    assert 512 + 64 == 576
    assert f"{2 * 128 * 128 / 576:.2f}" == "56.89"  # 128 heads of width 128


# ---- dtypes, purity, gradient -------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_is_kept_and_nothing_is_changed(absorbed, dtype):
    x = parts(6, dtype=dtype)
    kept = [a.copy() for a in x]
    got = mla_scores(*x, 1_000_000 + QUERIES, 1_000_000 + KEYS, absorbed=absorbed)
    assert got.dtype == dtype
    exact = mla_scores(*(a.astype(np.float64) for a in x), QUERIES, KEYS, absorbed=absorbed)
    assert_allclose(got.astype(float), exact, rtol=2 * np.finfo(dtype).eps, atol=4e-6)
    for before, after in zip(kept, x, strict=True):
        assert_array_equal(before, after)


def test_integers_and_lists_are_taken():
    got = mla_scores([[[1]]], [[[0, 0]]], [[2]], [[0, 0]], [[[3]]], [0], [0])
    assert got.dtype == np.float64
    assert_allclose(got, [[[6 / math.sqrt(3)]]], rtol=0, atol=1e-15)


@both_ways
def test_gradients_equal_finite_differences(absorbed):
    arrays = parts(7, queries=2, keys=3)
    g = np.random.default_rng(8).standard_normal((H, 2, 3))

    def number(*arrays):
        return np.sum(g * mla_scores(*arrays, [4, 5], [0, 1, 2], absorbed=absorbed))

    names = ("q_C", "q_R", "c", "k_R", "W_uk")
    params = dict(zip(names, arrays, strict=True))
    _, grads = value_and_grad(lambda p: number(*(p[n] for n in names)))(params)
    for n, name in enumerate(names):
        assert_allclose(grads[name], slopes(number, arrays, n), rtol=1e-7, atol=1e-8)


# ---- bad input ----------------------------------------------------------------------------------


def call(q_positions=QUERIES, k_positions=KEYS, frequencies=None, absorbed=True, **other):
    names = ("q_content", "q_rotary", "latent", "k_rotary", "w_uk")
    x = dict(zip(names, parts(), strict=True)) | other
    return mla_scores(*x.values(), q_positions, k_positions, frequencies, absorbed)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"q_content": np.ones((L, N))}, r"q_content must have the axes \(..., H, L, K\)"),
        ({"q_rotary": np.ones((L, R))}, r"q_rotary must have the axes \(..., H, L, K\)"),
        ({"latent": np.ones(LOW)}, r"latent must have the axes \(..., S, K\)"),
        ({"k_rotary": np.ones(R)}, r"k_rotary must have the axes \(..., S, K\)"),
        ({"latent": np.ones((S, LOW), complex)}, "latent must hold real numbers"),
        (
            {"q_rotary": np.ones((H, L + 1, R))},
            r"q_content and q_rotary must differ in their last axis alone; "
            r"got \(3, 4, 5\) and \(3, 5, 6\)",
        ),
        (
            {"k_rotary": np.ones((H, S, R))},
            r"latent and k_rotary must differ in their last axis alone; "
            r"got \(7, 2\) and \(3, 7, 6\)",
        ),
        ({"k_rotary": np.ones((S, 4))}, "must have the same width d_r; got 6 and 4"),
        (
            {"latent": np.ones((2, S, LOW)), "k_rotary": np.ones((2, S, R))}
            | {"q_content": np.ones((3, H, L, N)), "q_rotary": np.ones((3, H, L, R))},
            r"the batch axes must broadcast; got queries \(3,\), keys \(2,\)",
        ),
        (
            {"w_uk": np.ones((H, LOW, N))},
            r"w_uk must have the shape \(H, d_n, r\) = \(3, 5, 2\); got \(3, 2, 5\)",
        ),
        ({"q_positions": [0, 1]}, r"q_positions must broadcast to the shape of the queries"),
        ({"k_positions": [0, 1]}, r"k_positions must broadcast to the shape of the keys"),
        ({"k_positions": np.zeros((H, S))}, r"of the keys, \(1, 7\); got \(3, 7\)"),
        ({"q_positions": [np.nan] * L}, "q_positions must be finite"),
        ({"k_positions": [np.inf] * S}, "k_positions must be finite"),
        (
            {"q_rotary": np.ones((H, L, 3)), "k_rotary": np.ones((S, 3))},
            "d_r must be even, so that components pair up; got 3",
        ),
        ({"frequencies": np.ones(4)}, r"at most d_r/2 numbers; got shape \(4,\) for d_r = 6"),
        ({"frequencies": np.ones((1, 2))}, r"one axis.*got shape \(1, 2\)"),
        ({"frequencies": [np.nan]}, "frequencies must be finite"),
        ({"absorbed": 1}, "absorbed must be True or False; got 1"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(other, message):
    with pytest.raises(ValueError, match="mla_scores: .*" + message):
        call(**other)
