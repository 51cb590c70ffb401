"""Retention, gated linear attention, the delta rule: loop oracle, theorems, bad input."""

import math

import numpy as np
import pytest
from differences import slopes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    alibi_bias,
    causal_mask,
    forgetting_bias,
    relative_distance,
    rope,
    value_and_grad,
    xpos,
    xpos_scale,
)
from pe_numpy.relative.recurrence import delta_rule, gated_linear_attention, retention

B, H, L, K, V = 2, 3, 11, 4, 5
AT = np.arange(L)
CAUSAL = causal_mask(AT, AT)
CHUNKS = 1, 3, L, 64
seeds = st.integers(0, 2**32 - 1)
widths = st.sampled_from([1, K])
NEAR = dict(rtol=0, atol=1e-12)


def data(seed=0, width=K):
    """Queries, keys of length 1, values, logarithms of decays, shares, a state."""
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((2, B, H, L, K))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    logs = np.log(rng.uniform(0.1, 1, (B, H, L, width)))
    beta = rng.uniform(0, 1, (B, H, L))
    return q, k, rng.standard_normal((B, H, L, V)), logs, beta, rng.standard_normal((B, H, K, V))


def by_loops(q, k, v, logs, beta, state):
    """Token by token and number by number, for one head; beta None is gated linear attention."""
    S, outputs = state.copy(), np.zeros((len(q), v.shape[1]))
    for t in range(len(q)):
        for c in range(K):
            a = math.exp(logs[t, c if logs.shape[1] > 1 else 0])
            for d in range(V):
                S[c, d] = a * S[c, d]
        for d in range(V):
            new = v[t, d]
            if beta is not None:
                new = beta[t] * (v[t, d] - sum(k[t, c] * S[c, d] for c in range(K)))
            for c in range(K):
                S[c, d] += k[t, c] * new
            outputs[t, d] = sum(q[t, c] * S[c, d] for c in range(K))
    return outputs, S


@given(seeds, widths)
def test_all_chunks_equal_the_loop_over_tokens(seed, width):
    q, k, v, logs, beta, state = data(seed, width)
    for chunk in CHUNKS:
        gla = gated_linear_attention(q, k, v, logs, state, chunk)
        delta = delta_rule(q, k, v, beta, logs, state, chunk)
        for b, h in np.ndindex(B, H):
            one = q[b, h], k[b, h], v[b, h], logs[b, h]
            for got, share in ((gla, None), (delta, beta[b, h])):
                outputs, last = by_loops(*one, share, state[b, h])
                assert_allclose(got[0][b, h], outputs, **NEAR)
                assert_allclose(got[1][b, h], last, **NEAR)


@given(seeds)
def test_retention_equals_the_sum_over_pairs(seed):
    q, k, v, *_ = data(seed)
    decay = np.random.default_rng(seed).uniform(0.2, 1, H)
    got = retention(q, k, v, decay)
    assert got.shape == (B, H, L, V)
    for b, h, i in np.ndindex(B, H, L):
        expected = np.zeros(V)
        for j in range(i + 1):
            expected += decay[h] ** (i - j) * np.dot(q[b, h, i], k[b, h, j]) * v[b, h, j]
        assert_allclose(got[b, h, i], expected, **NEAR)


# ---- three forms of one function ----------------------------------------------------------------


@given(seeds, widths)
def test_the_state_handed_on_gives_the_whole(seed, width):
    q, k, v, logs, beta, state = data(seed, width)
    for cut in (0, 1, 4, L):
        first, rest = slice(0, cut), slice(cut, L)
        old, S = state, state
        outputs = []
        for part in (first, rest):
            rows = (x[..., part, :] for x in (q, k, v, logs))
            o, S = gated_linear_attention(*rows, S, 3)
            outputs.append(o)
        whole = gated_linear_attention(q, k, v, logs, old, 4)
        assert_allclose(np.concatenate(outputs, axis=-2), whole[0], **NEAR)
        assert_allclose(S, whole[1], **NEAR)
        S, outputs = state, []
        for part in (first, rest):
            rows = (x[..., part, :] for x in (q, k, v))
            o, S = delta_rule(*rows, beta[..., part], logs[..., part, :], S, 3)
            outputs.append(o)
        whole = delta_rule(q, k, v, beta, logs, old, 4)
        assert_allclose(np.concatenate(outputs, axis=-2), whole[0], **NEAR)
        assert_allclose(S, whole[1], **NEAR)


def test_equal_decays_of_all_tokens_are_retention_in_every_form():
    q, k, v, *_ = data()
    decay = np.array([0.3, 0.9, 1.0])
    logs = np.broadcast_to(np.log(decay)[:, None, None], (H, L, 1))
    for chunk in CHUNKS:
        outputs, _ = gated_linear_attention(q, k, v, logs, chunk=chunk)
        assert_allclose(outputs, retention(q, k, v, decay), **NEAR)


@given(seeds)
def test_one_decay_per_token_is_the_same_decay_in_each_component(seed):
    q, k, v, logs, beta, state = data(seed, 1)
    wide = np.repeat(logs, K, axis=-1)
    for one, other in (
        (gated_linear_attention(q, k, v, logs), gated_linear_attention(q, k, v, wide)),
        (delta_rule(q, k, v, beta, logs, state), delta_rule(q, k, v, beta, wide, state)),
    ):
        assert_allclose(one[0], other[0], **NEAR)
        assert_allclose(one[1], other[1], **NEAR)


@given(seeds)
def test_unrolled_it_is_attention_without_softmax_under_products_of_decays(seed):
    q, k, v, logs, *_ = data(seed)
    outputs, state = gated_linear_attention(q, k, v, logs)
    a = np.exp(logs)
    for i in range(L):
        expected = np.zeros((B, H, V))
        for j in range(i + 1):
            product = a[..., j + 1 : i + 1, :].prod(axis=-2)  # of the decays after j, up to i
            expected += (q[..., i, :] * k[..., j, :] * product).sum(-1)[..., None] * v[..., j, :]
        assert_allclose(outputs[..., i, :], expected, **NEAR)
    assert_allclose(q[..., -1:, :] @ state, outputs[..., -1:, :], **NEAR)


# ---- what other chapters have as a decay --------------------------------------------------------


def test_the_mask_of_retention_is_the_exponential_of_alibi_s_bias():
    q, k, v, *_ = data()
    slopes_ = np.array([0.5, 0.1, 0.02])
    bias = alibi_bias(slopes_, relative_distance(AT, AT))
    mask = np.where(CAUSAL, np.exp(bias), 0)
    expected = (q @ np.swapaxes(k, -1, -2) * mask) @ v
    assert_allclose(retention(q, k, v, np.exp(-slopes_)), expected, **NEAR)


@given(seeds)
def test_the_mask_of_gated_linear_attention_is_the_exponential_of_fox_s_bias(seed):
    q, k, v, logs, *_ = data(seed, 1)
    c = np.cumsum(logs[..., 0], axis=-1)
    mask = np.where(CAUSAL, np.exp(np.where(CAUSAL, forgetting_bias(c, c), 0)), 0)
    expected = (q @ np.swapaxes(k, -1, -2) * mask) @ v
    assert_allclose(gated_linear_attention(q, k, v, logs)[0], expected, **NEAR)


def test_retention_behind_rope_knows_distances_only():
    q, k, v, *_ = data()
    here, later = (retention(rope(q, at), rope(k, at), v, 0.9) for at in (AT, AT + 100))
    assert_allclose(here, later, rtol=0, atol=1e-10)
    assert np.abs(here - retention(q, k, v, 0.9)).max() > 0.1


@given(seeds)
def test_xpos_is_rope_under_a_decay_of_each_pair(seed):
    q, k, v, *_ = data(seed)
    products = xpos(q, AT, scale_base=8) @ np.swapaxes(xpos(k, AT, scale_base=8, key=True), -1, -2)
    logs = np.broadcast_to(np.repeat(np.log(xpos_scale(K)) / 8, 2), (L, K))
    outputs, _ = gated_linear_attention(rope(q, AT), rope(k, AT), v, logs)
    assert_allclose(outputs, np.where(CAUSAL, products, 0) @ v, **NEAR)


def test_the_state_tells_how_many_tokens_there_were_if_it_decays_and_they_are_alike():
    """A sum of t equal tokens grows with t, a mean over equal values does not."""
    one = np.ones((L, 1))
    outputs, _ = gated_linear_attention(one, one, one, np.full((L, 1), math.log(0.8)))
    assert_allclose(outputs[:, 0], (1 - 0.8 ** (AT + 1.0)) / 0.2, **NEAR)


# ---- the delta rule -----------------------------------------------------------------------------


@given(seeds)
def test_orthonormal_keys_read_the_value_that_was_written_last(seed):
    rng = np.random.default_rng(seed)
    keys = np.linalg.qr(rng.standard_normal((K, K)))[0]
    which, v = rng.integers(0, K, L), rng.standard_normal((L, V))
    k = keys[which]
    for chunk in CHUNKS:
        outputs, state = delta_rule(k, k, v, np.ones(L), chunk=chunk)
        assert_allclose(outputs, v, **NEAR)
        for n in set(which.tolist()):
            newest = np.flatnonzero(which == n)[-1]
            assert_allclose(keys[n] @ state, v[newest], **NEAR)
    added = gated_linear_attention(k, k, v, np.zeros((L, 1)))[0]  # sums all that a key was given
    assert np.abs(added - v).max() > 0.01


def test_one_repeated_key_reads_only_the_newest_value_and_a_half_a_moving_average():
    _, _, v, *_ = data()
    k = np.full((L, K), 0.5)  # of length 1
    assert_allclose(delta_rule(k, k, v, np.ones(L))[0], v, **NEAR)
    mean = np.zeros((B, H, V))
    outputs, _ = delta_rule(k, k, v, np.full(L, 0.25))
    for t in range(L):
        mean = 0.75 * mean + 0.25 * v[..., t, :]
        assert_allclose(outputs[..., t, :], mean, **NEAR)


@given(seeds, widths)
def test_beta_zero_leaves_the_state_to_its_decay(seed, width):
    q, k, v, logs, _, state = data(seed, width)
    zero = np.zeros(L)
    assert_array_equal(delta_rule(q, k, v, zero, state=state)[1], state)
    outputs, last = delta_rule(q, k, v, zero, logs, state)
    left = np.exp(np.cumsum(logs, axis=-2))
    assert_allclose(last, np.swapaxes(left[..., -1:, :], -1, -2) * state, **NEAR)
    assert_allclose(outputs, (q * left) @ state, **NEAR)


@given(seeds)
def test_a_step_is_the_matrix_of_kimi_linear_and_of_gated_deltanet(seed):
    """(I - beta k k^T) diag(a) S + beta k v^T; a number a may stand on either side."""
    q, k, v, logs, beta, state = (x[0, 0] for x in data(seed))
    one = slice(0, 1)
    got = delta_rule(q[one], k[one], v[one], beta[one], logs[one], state)[1]
    step, new = np.eye(K) - beta[0] * np.outer(k[0], k[0]), beta[0] * np.outer(k[0], v[0])
    assert_allclose(got, step @ np.diag(np.exp(logs[0])) @ state + new, **NEAR)
    number = delta_rule(q[one], k[one], v[one], beta[one], logs[one, :1], state)[1]
    assert_allclose(number, math.exp(logs[0, 0]) * (step @ state) + new, **NEAR)


def test_keys_that_are_orthogonal_do_not_hear_of_each_other():
    """Then the delta rule adds beta times its values, as gated linear attention does."""
    _, _, v, logs, beta, _ = data()
    k, few = np.eye(K), slice(0, K)
    v, logs, beta = v[..., few, :], logs[..., few, :], beta[..., few]
    delta = delta_rule(k, k, v, beta, logs)
    gla = gated_linear_attention(k, k, beta[..., None] * v, logs)
    assert_allclose(delta[0], gla[0], **NEAR)
    assert_allclose(delta[1], gla[1], **NEAR)


# ---- shapes, dtypes, long texts -----------------------------------------------------------------


def test_batch_axes_broadcast_and_nothing_given_is_changed():
    q, k, v, logs, beta, state = data()
    small = q[0, 0], k[:, :1], v[0], logs[0, :1], beta[:, :1], state[0, 0]
    wide = [np.broadcast_to(x, y.shape) for x, y in zip(small, data(), strict=True)]
    kept = [x.copy() for x in small]
    for x in small:
        x.flags.writeable = False
    q, k, v, logs, beta, state = small
    for function in (
        lambda q, k, v, logs, beta, state: gated_linear_attention(q, k, v, logs, state),
        lambda q, k, v, logs, beta, state: delta_rule(q, k, v, beta, logs, state),
    ):
        for got, expected in zip(function(*small), function(*wide), strict=True):
            assert got.shape == expected.shape
            assert_allclose(got, expected, **NEAR)
    assert retention(q, k, v, np.array([[0.5], [0.9]])).shape == (B, H, L, V)
    for x, before in zip(small, kept, strict=True):
        assert_array_equal(x, before)


def test_no_token_gives_no_output_and_a_state_of_its_own():
    q, k, v, logs, beta, state = data()
    none = [x[..., :0, :] for x in (q, k, v, logs)]
    for outputs, last in (
        gated_linear_attention(*none, state),
        delta_rule(*none[:3], beta[..., :0], none[3], state),
    ):
        assert outputs.shape == (B, H, 0, V)
        assert_array_equal(last, state)
        assert not np.shares_memory(last, state)
    assert retention(*none[:3], 0.5).shape == (B, H, 0, V)


@pytest.mark.parametrize(("dtype", "near"), [(np.float32, 2e-6), (np.float16, 2e-2)])
def test_small_floats_come_back_and_float16_keeps_its_state_in_float32(dtype, near):
    given_ = data()
    small = [x.astype(dtype) for x in given_]
    q, k, v, logs, beta, _ = small
    exact = [x.astype(float) for x in small]
    for got, expected in (
        (gated_linear_attention(q, k, v, logs), gated_linear_attention(*exact[:4])),
        (delta_rule(q, k, v, beta, logs), delta_rule(*exact[:3], exact[4], exact[3])),
        (delta_rule(q, k, v, beta), delta_rule(*exact[:3], exact[4])),
    ):
        assert got[0].dtype == dtype and got[1].dtype == np.float32
        for x, y in zip(got, expected, strict=True):
            assert_allclose(x, y, rtol=near, atol=near)
        again = gated_linear_attention(q, k, v, logs, got[1])
        assert again[0].dtype == dtype and again[1].dtype == np.float32
    kept = retention(q, k, v, np.array([0.5, 0.9, 1.0]))
    assert kept.dtype == dtype
    assert_allclose(kept, retention(*exact[:3], [0.5, 0.9, 1.0]), rtol=near, atol=near)
    state = np.zeros((K, V))
    mixed = gated_linear_attention(q, k, v, logs, state)
    assert mixed[0].dtype == dtype and mixed[1].dtype == np.float64


def test_sums_of_float16_are_made_in_float32():
    one = np.ones((300, 1), np.float16)
    outputs, state = gated_linear_attention(one, one, one, np.zeros_like(one))
    assert outputs[:, 0].tolist() == list(range(1, 301)) and state.tolist() == [[300]]
    q, k = np.array([[0, 0], [2048, 1]], np.float16), np.array([[1, 1], [-1, 0]], np.float16)
    for last in (  # products 2049, which float16 does not have, and -2048
        retention(q, k, one[:2], 1.0)[1],
        gated_linear_attention(q, k, one[:2], np.zeros((2, 1), np.float16))[0][1],
    ):
        assert last.dtype == np.float16 and last.tolist() == [1]


def test_products_that_are_zero_as_floats_do_no_harm():
    q, k, v, logs, _, state = data()
    for chunk in CHUNKS:
        outputs, last = gated_linear_attention(q, k, v, 500 * logs - 500, state, chunk)
        alone = (q * k).sum(axis=-1, keepdims=True) * v  # each token sees itself only
        assert_allclose(outputs, alone, **NEAR)
        assert_allclose(last, k[..., -1, :, None] * v[..., -1, None, :], **NEAR)


# ---- gradients ----------------------------------------------------------------------------------


def test_gradients_of_retention():
    q, k, v, *_ = (x[0] for x in data())
    params = {"q": q, "k": k, "v": v, "decay": np.array([0.5, 0.9, 0.99])}
    g = np.random.default_rng(5).standard_normal(v.shape)
    compare(lambda q, k, v, decay: np.sum(g * retention(q, k, v, decay)), params)


@pytest.mark.parametrize("width", [1, K])
def test_gradients_of_gated_linear_attention_and_of_the_delta_rule(width):
    q, k, v, logs, beta, state = (x[0, :, :5] for x in data(width=width))
    rng = np.random.default_rng(6)
    g, gs = rng.standard_normal(v.shape), rng.standard_normal(state.shape)

    def number(outputs, state):
        return np.sum(g * outputs) + np.sum(gs * state)

    params = {"q": q, "k": k, "v": v, "logs": logs, "state": state}
    compare(
        lambda q, k, v, logs, state: number(*gated_linear_attention(q, k, v, logs, state, 2)),
        params,
    )
    compare(
        lambda q, k, v, logs, state, beta: number(*delta_rule(q, k, v, beta, logs, state, 3)),
        params | {"beta": beta},
    )


def compare(function, params):
    grads = value_and_grad(lambda p: function(**p))(params)[1]
    for n, name in enumerate(params):
        expected = slopes(lambda *x: function(*x), list(params.values()), n)
        assert_allclose(grads[name], expected, rtol=1e-6, atol=1e-8)


def test_gradients_of_float32_stay_float32():
    q, k, v, logs, beta, _ = (x.astype(np.float32) for x in data())
    params = {"q": q, "k": k, "v": v, "beta": beta, "log_decay": logs}
    grads = value_and_grad(lambda p: np.sum(delta_rule(**p)[0]))(params)[1]
    assert {g.dtype for g in grads.values()} == {np.dtype(np.float32)}
    grads = value_and_grad(lambda q: np.sum(retention(q, k, v, 0.9)))(q)[1]
    assert grads.dtype == np.float32


# ---- by hand ------------------------------------------------------------------------------------


def test_four_tokens_by_hand():
    one = np.ones((4, 1))
    logs = np.log([[0.9], [0.5], [0.8], [0.25]])
    outputs, state = gated_linear_attention(one, one, np.eye(4), logs)
    rows = [[1, 0, 0, 0], [0.5, 1, 0, 0], [0.4, 0.8, 1, 0], [0.1, 0.2, 0.25, 1]]
    assert_allclose(outputs, rows, **NEAR)
    assert_allclose(state, rows[3:], **NEAR)
    # u = 1, 0.5 (1 - 0.5), 0.5 (1 - 0.8 * 0.75), 0.5 (1 - 0.25 * 0.8)
    values, shares = np.ones((4, 1)), np.array([1, 0.5, 0.5, 0.5])
    outputs, _ = delta_rule(one, one, values, shares, logs)
    assert_allclose(outputs[:, 0], [1, 0.75, 0.8, 0.6], **NEAR)


# ---- bad input ----------------------------------------------------------------------------------

Q = np.ones((2, 5, 4))
W = np.ones((2, 5, 3))
G = np.zeros((2, 5, 1))
ONE = np.ones((2, 5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: retention(Q, Q, W, 0),
            "retention: decay must be above 0 and at most 1; got 0.*not its log",
        ),
        (lambda: retention(Q, Q, W, [0.5, 1.25]), "retention: decay must be above 0.*got 1.25"),
        (lambda: retention(Q, Q, W, [0.5, np.nan]), "retention: decay must be .*got nan"),
        (lambda: retention(Q, Q, W, 1j), "retention: decay must hold real numbers"),
        (
            lambda: retention(Q, Q, W, [0.5, 0.5, 0.5]),
            r"retention: the batch axes must broadcast; got q \(2,\), .*decay \(3,\)",
        ),
        (lambda: retention(Q, Q[..., :3], W, 0.5), "retention: q and k must have the same width K"),
        (
            lambda: retention(Q[:, 4:], Q, W, 0.5),
            "retention: q, k and v must have one row per token; got 1, 5 and 5 rows",
        ),
        (
            lambda: gated_linear_attention(Q, Q, W[:, 1:], G),
            "gated_linear_attention: q, k and v must have one row per token; got 5, 5 and 4 rows",
        ),
        (
            lambda: gated_linear_attention(Q, Q, W, G + 0.9),
            "gated_linear_attention: log_decay must be at most 0.*got 0.9. Give logarithms",
        ),
        (
            lambda: gated_linear_attention(Q, Q, W, G - np.inf),
            "gated_linear_attention: log_decay must be finite, since a decay of 0 has no log",
        ),
        (lambda: gated_linear_attention(Q, Q, W, G * np.nan), "log_decay must be finite"),
        (
            lambda: gated_linear_attention(Q, Q, W, -ONE),
            r"log_decay must have the axes.*L = 5 and K = 4; got shape \(2, 5\).*\[..., None\]",
        ),
        (lambda: gated_linear_attention(Q, Q, W, G[..., [0, 0]]), r"got shape \(2, 5, 2\)"),
        (lambda: gated_linear_attention(Q, Q, W, G[:, 1:]), r"got shape \(2, 4, 1\)"),
        (lambda: gated_linear_attention(Q, Q, W, G, chunk=0), "chunk must be at least 1; got 0"),
        (lambda: gated_linear_attention(Q, Q, W, G, chunk=2.0), "chunk must be a whole number"),
        (
            lambda: gated_linear_attention(Q, Q, W, G, np.ones((2, 3, 4))),
            r"state must have the axes \(..., K, V\), here with K = 4 and V = 3; got .*3, 4\)",
        ),
        (
            lambda: gated_linear_attention(Q, Q, W, G, np.full((4, 3), np.nan)),
            "gated_linear_attention: state must be finite",
        ),
        (
            lambda: gated_linear_attention(Q, Q, W, G, np.ones((3, 4, 3))),
            r"the batch axes must broadcast; got q \(2,\), .*state \(3,\)",
        ),
        (lambda: delta_rule(Q, Q, W, ONE * 1j), "delta_rule: beta must hold real numbers"),
        (lambda: delta_rule(Q, Q, W, 1.0), r"delta_rule: beta must have the axes \(..., L\)"),
        (
            lambda: delta_rule(Q, Q, W, ONE[..., None]),
            r"delta_rule: beta must have the axes \(..., L\), here with L = 5; got .*5, 1\)",
        ),
        (lambda: delta_rule(Q, Q, W, ONE * np.inf), "delta_rule: beta must be finite; got nan or"),
        (
            lambda: delta_rule(Q, Q, W, np.ones((3, 5))),
            r"delta_rule: the batch axes must broadcast; got .*beta \(3,\)",
        ),
        (lambda: delta_rule(Q, Q, W, ONE, G + 1), "delta_rule: log_decay must be at most 0"),
        (lambda: delta_rule(Q, Q, W, ONE, chunk=True), "delta_rule: chunk must be a whole number"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
