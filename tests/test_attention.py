"""Attention: loop oracle, theorems, hand-worked values, blocks, bad input."""

import math
import tracemalloc
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    attend,
    attention,
    attention_blockwise,
    causal_mask,
    chunk_mask,
    log_softmax,
    merge_heads,
    padding_mask,
    softmax,
    split_fused,
    split_heads,
    value_and_grad,
    window_mask,
)

B, H, L, S, K, KV = 2, 3, 5, 7, 8, 6
seeds = st.integers(0, 2**32 - 1)


def data(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def qkv(dtype=np.float64):
    return (
        data(B, H, L, K, dtype=dtype),
        data(B, H, S, K, seed=1, dtype=dtype),
        data(B, H, S, KV, seed=2, dtype=dtype),
    )


def attention_by_loops(q, k, v, mask=None, bias=None, scale=None):
    """Equation (1) for one head, (L, K), (S, K), (S, KV), one scalar at a time."""
    width = len(q[0])
    scale = 1 / math.sqrt(width) if scale is None else scale
    output, weights = np.zeros((len(q), len(v[0]))), np.zeros((len(q), len(k)))
    for i in range(len(q)):
        allowed = [j for j in range(len(k)) if mask is None or mask[i][j]]
        exps = {}
        for j in allowed:
            score = sum(q[i][a] * k[j][a] for a in range(width)) * scale
            exps[j] = math.exp(score + (0 if bias is None else bias[i][j]))
        for j in allowed:
            weights[i, j] = exps[j] / sum(exps.values())
            for a in range(len(v[0])):
                output[i, a] += weights[i, j] * v[j][a]
    return output, weights


# ---- loop oracle --------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_equals_the_equation_scalar_by_scalar(masked, biased, scale):
    q, k, v = qkv()
    mask = data(B, H, L, S, seed=3) > -0.5 if masked else None
    bias = data(H, L, S, seed=4) if biased else None
    output, weights = attention(q, k, v, mask=mask, bias=bias, scale=scale)
    assert output.shape == (B, H, L, KV) and weights.shape == (B, H, L, S)
    for b in range(B):
        for h in range(H):
            expected = attention_by_loops(
                q[b, h],
                k[b, h],
                v[b, h],
                None if mask is None else mask[b, h],
                None if bias is None else bias[h],
                scale,
            )
            assert_allclose(output[b, h], expected[0], rtol=0, atol=1e-14)
            assert_allclose(weights[b, h], expected[1], rtol=0, atol=1e-14)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax_equals_its_definition_on_every_axis(axis):
    x = data(3, 4, 5)
    rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
    expected = np.array([[math.exp(a) / sum(map(math.exp, row)) for a in row] for row in rows])
    got = np.moveaxis(softmax(x, axis), axis, -1).reshape(rows.shape)
    assert_allclose(got, expected, rtol=0, atol=1e-15)
    logs = np.moveaxis(log_softmax(x, axis), axis, -1).reshape(rows.shape)
    assert_allclose(logs, np.log(expected), rtol=0, atol=1e-14)


def test_masks_equal_their_definitions():
    q_at, k_at = [3, 4, 9], [0, 3, 5, 9]
    expected = [[j <= i for j in k_at] for i in q_at]
    assert causal_mask(q_at, k_at).tolist() == expected
    lengths, size = [0, 2, 5], 5
    right = [[[[place < n for place in range(size)]]] for n in lengths]
    left = [[[[place >= size - n for place in range(size)]]] for n in lengths]
    assert padding_mask(lengths, size).tolist() == right
    assert padding_mask(lengths, size, side="left").tolist() == left


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32])
@pytest.mark.parametrize("padding", [0, 2])
def test_windows_and_chunks_equal_their_definitions(dtype, padding):
    q_at, k_at = [3, 4, 9, 250], [0, 3, 5, 9, 249, 255]
    if padding and dtype != np.uint8:  # on the left: before position 0, and no sink
        q_at, k_at = [-2, *q_at], [-2, -1, *k_at]
    for w in (1, 2, 5, 7, 300):
        for sinks in (0, 1, 4):
            expected = [[0 <= i - j and (i - j < w or 0 <= j < sinks) for j in k_at] for i in q_at]
            got = window_mask(np.array(q_at, dtype), np.array(k_at, dtype), w, sinks)
            assert got.dtype == bool and got.tolist() == expected
        expected = [[j <= i and i // w == j // w for j in k_at] for i in q_at]
        got = chunk_mask(np.array(q_at, dtype), np.array(k_at, dtype), w)
        assert got.dtype == bool and got.tolist() == expected


def test_windows_of_narrow_floats_are_exact():
    far = np.array([2047, -2048], np.float16)  # 4095 apart, which float16 does not hold
    assert window_mask(far[:1], far[1:], 4095).tolist() == [[False]]
    assert window_mask(far[:1], far[1:], 4096).tolist() == [[True]]


@pytest.mark.parametrize("form", ["a number a head", "a number a query", "one for all queries"])
@pytest.mark.parametrize("masked", [False, True])
def test_a_sink_is_one_more_key_whose_value_is_zero_scalar_by_scalar(form, masked):
    scores, v = data(B, H, L, S), data(B, H, S, KV, seed=1)
    shape = {"a number a head": (H,), "a number a query": (B, H, L)}.get(form, (H, 1))
    sink = data(*shape, seed=2)
    mask = data(B, H, L, S, seed=3) > -0.5 if masked else None
    output, weights = attend(scores, v, mask, sink)
    each = np.broadcast_to(sink[:, None] if sink.ndim == 1 else sink, (B, H, L))
    for b, h, i in np.ndindex(B, H, L):
        allowed = [j for j in range(S) if mask is None or mask[b, h, i, j]]
        total = math.exp(each[b, h, i]) + sum(math.exp(scores[b, h, i, j]) for j in allowed)
        expected = [math.exp(scores[b, h, i, j]) / total * (j in allowed) for j in range(S)]
        mixed = [sum(w * v[b, h, j, a] for j, w in enumerate(expected)) for a in range(KV)]
        assert_allclose(weights[b, h, i], expected, rtol=0, atol=1e-15)
        assert_allclose(output[b, h, i], mixed, rtol=0, atol=1e-14)


def test_head_h_holds_the_h_th_slice_of_the_width():
    D = 12
    x = data(B, L, D)
    heads = split_heads(x, H)
    assert heads.shape == (B, H, L, D // H)
    for h in range(H):
        assert_array_equal(heads[:, h], x[:, :, h * 4 : h * 4 + 4])
    assert_array_equal(merge_heads(heads), x)


@pytest.mark.parametrize(("order", "G"), [("q|k|v", 3), ("q|k|v", 1), ("3HK", 3), ("H3K", 3)])
@pytest.mark.parametrize("shape", [(B, L), (L,), ()])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_each_number_of_a_fused_projection_goes_to_its_head(order, G, shape, dtype):
    x = data(*shape, (H + 2 * G) * K, dtype=dtype)
    before = x.copy()
    parts = split_fused(x, order, H, G)
    for which, (part, heads) in enumerate(zip(parts, (H, G, G), strict=True)):
        assert part.shape == (*shape, heads * K) and part.dtype == dtype
        for h in range(heads):
            for a in range(K):
                if order == "H3K":
                    place = (3 * h + which) * K + a
                else:
                    place = ((0, H, H + G)[which] + h) * K + a
                assert_array_equal(part[..., h * K + a], x[..., place])
    assert_array_equal(x, before)


# ---- theorems -----------------------------------------------------------------------------------


@given(seeds, st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_reordering_the_tokens_reorders_the_outputs_and_nothing_else(seed, length, width, values):
    rng = np.random.default_rng(seed)
    q, k, v = (rng.standard_normal((length, n)) for n in (width, width, values))
    order = rng.permutation(length)
    output, weights = attention(q, k, v)
    reordered, their_weights = attention(q[order], k[order], v[order])
    assert_allclose(reordered, output[order], rtol=0, atol=1e-12)
    assert_allclose(their_weights, weights[order][:, order], rtol=0, atol=1e-12)


@given(seeds, st.floats(-1e3, 1e3))
def test_adding_a_constant_to_a_row_changes_no_weight(seed, constant):
    x = data(4, 6, seed=seed)
    assert_allclose(softmax(x + constant), softmax(x), rtol=0, atol=1e-12)
    assert_allclose(softmax(x).sum(-1), 1, rtol=1e-14)


@given(seeds, st.integers(1, 12), st.integers(1, 12), st.integers(1, 13), st.booleans())
def test_blocks_of_any_size_give_the_same_output(seed, length, more, block, causal):
    rng = np.random.default_rng(seed)
    keys = length + more
    q, k, v = (rng.standard_normal((2, n, w)) for n, w in ((length, 4), (keys, 4), (keys, 3)))
    mask = rng.random((length, keys)) < 0.7
    bias = rng.standard_normal((2, length, keys))
    both = mask & causal_mask(np.arange(more, keys), np.arange(keys)) if causal else mask
    expected = attention(q, k, v, mask=both, bias=bias)[0]
    got = attention_blockwise(q, k, v, mask=mask, bias=bias, block=block, causal=causal)
    assert_allclose(got, expected, rtol=0, atol=1e-12)


@given(seeds, st.integers(1, 12), st.integers(0, 12), st.integers(1, 13), st.integers(1, 30))
def test_blocks_of_any_size_see_the_same_window(seed, length, more, block, window):
    rng = np.random.default_rng(seed)
    keys = length + more
    q, k, v = (rng.standard_normal((2, n, w)) for n, w in ((length, 4), (keys, 4), (keys, 3)))
    q_at, k_at = np.arange(more, keys), rng.permutation(keys)
    for causal in (True, False):
        near = q_at[:, None] - k_at < window
        mask = window_mask(q_at, k_at, window) if causal else near
        got = attention_blockwise(
            *(q, k, v), block=block, causal=causal, k_positions=k_at, window=window
        )
        assert_allclose(got, attention(q, k, v, mask)[0], rtol=0, atol=1e-12)


@given(seeds, st.floats(-30, 30))
def test_a_sink_scales_the_plain_output_by_a_sigmoid(seed, a):
    scores, v = 3 * data(H, L, S, seed=seed), data(H, S, KV, seed=1)
    plain, plain_weights = attend(scores, v)
    lse = (scores - log_softmax(scores))[..., :1]
    share = 1 / (1 + np.exp(a - lse))
    output, weights = attend(scores, v, sink=np.full(H, a))
    assert_allclose(output, share * plain, rtol=1e-12, atol=1e-15)
    assert_allclose(weights, share * plain_weights, rtol=1e-12, atol=1e-15)


def test_a_sink_far_below_the_scores_is_no_sink():
    scores, v = data(H, L, S), data(H, S, KV, seed=1)
    plain = attend(scores, v)
    for a in (-1000.0, -np.inf):
        for got, expected in zip(attend(scores, v, sink=np.full(H, a)), plain, strict=True):
            assert_allclose(got, expected, rtol=0, atol=1e-15)


def test_a_sink_of_0_hides_behind_large_scores_and_one_of_20_does_not():
    scores, v = np.full((1, 1, 2), 20.0), np.array([[1.0], [3.0]])
    assert_allclose(attend(scores, v, sink=[0.0])[0], 2, rtol=2e-9)
    assert_allclose(attend(scores, v, sink=[20.0])[0], 4 / 3, rtol=1e-15)


def test_a_large_sink_does_not_overflow_and_takes_all():
    output, weights = attend(np.zeros((1, 1, 2)), np.ones((2, 1)), sink=[1000.0])
    assert weights.tolist() == [[[0.0, 0.0]]] and output.tolist() == [[[0.0]]]


def test_the_sink_learns_from_what_it_takes_away():
    """The slope is -w_sink times the output; it is exact also where 1 - sum(w) is all rounding."""
    scores, v = data(B, H, L, S), data(B, H, S, KV, seed=1)
    for a in (0.5, -60.0):
        sink = np.full(H, a)
        output, _ = attend(scores, v, sink=sink)
        lse = (scores - log_softmax(scores))[..., 0]
        share = 1 / (1 + np.exp(lse - a))  # of the sink, (B, H, L)
        _, g = value_and_grad(lambda sink: np.sum(attend(scores, v, sink=sink)[0]))(sink)
        assert_allclose(g, -(share[..., None] * output).sum((0, 2, 3)), rtol=1e-12)


def test_layers_of_a_window_reach_n_times_w_minus_1_back_and_no_farther():
    length, window, layers = 12, 3, 4
    at = np.arange(length)
    for n in range(1, layers + 1):

        def stack(x, n=n):
            for _ in range(n):
                x = x + attention(x, x, x, window_mask(at, at, window))[0]
            return x

        x = 0.3 * data(length, K)  # else a weight is rounded away
        for moved in range(length):
            y = x.copy()
            y[moved] += 1
            changed = (stack(y)[-1] != stack(x)[-1]).any()
            assert changed == (length - 1 - moved <= n * (window - 1))


@pytest.mark.parametrize("sinks", [0, 2])
def test_masking_what_was_evicted_is_dropping_it_from_the_cache(sinks):
    window, q, k, v = 3, data(S, K), data(S, K, seed=1), data(S, KV, seed=2)
    at = np.arange(S)
    whole, _ = attention(q, k, v, window_mask(at, at, window, sinks))
    for i in range(S):
        kept = [j for j in range(i + 1) if j < sinks or j > i - window]
        alone, _ = attention(q[i : i + 1], k[kept], v[kept])
        assert_allclose(alone[0], whole[i], rtol=0, atol=1e-14)


def test_every_output_lies_between_the_least_and_the_largest_value():
    q, k, v = qkv()
    output, _ = attention(q, k, v)
    assert (output <= v.max(-2, keepdims=True)).all()
    assert (output >= v.min(-2, keepdims=True)).all()


def test_masked_scores_cannot_be_seen_whatever_they_are():
    scores, v = data(L, S), data(S, KV)
    mask = causal_mask(np.arange(L), np.arange(S))
    loud = np.where(mask, scores, 1e30)
    assert_array_equal(attend(scores, v, mask)[0], attend(loud, v, mask)[0])


# ---- hand-worked values -------------------------------------------------------------------------


def test_equal_scores_share_the_weight_and_average_the_values():
    output, weights = attention([[1.0, 0.0]], [[0.0, 1.0], [0.0, 2.0]], [[2.0], [6.0]])
    assert weights.tolist() == [[0.5, 0.5]] and output.tolist() == [[4.0]]


def test_a_score_gap_of_log_three_gives_three_quarters():
    assert_allclose(softmax([math.log(3), 0.0]), [0.75, 0.25], rtol=0, atol=1e-15)
    # q k / sqrt(4) = log 3, and the bias, added after the scale, takes it back
    q, k, v = [[1.0, 0, 0, 0]], [[2 * math.log(3), 0, 0, 0], [0, 0, 0, 0]], [[1.0], [0.0]]
    assert_allclose(attention(q, k, v)[1], [[0.75, 0.25]], rtol=0, atol=1e-15)
    back = attention(q, k, v, bias=[[-math.log(3), 0.0]])[1]
    assert_allclose(back, [[0.5, 0.5]], rtol=0, atol=1e-15)


def test_masking_keys_and_values_instead_of_scores_leaks_weight():
    q, k, v = np.random.default_rng(1).standard_normal((3, 4, 4))
    right, weights = attention(q, k, v, causal_mask(np.arange(4), np.arange(4)))
    assert weights[1].round(3).tolist() == [0.55, 0.45, 0.0, 0.0]
    assert right[1].round(3).tolist() == [-0.439, 0.382, 0.431, 0.414]
    past = (np.arange(4) < 2)[:, None]
    wrong, weights = attention(q[1:2], k * past, v * past)
    assert weights[0].round(3).tolist() == [0.274, 0.224, 0.251, 0.251]
    assert wrong[0].round(3).tolist() == [-0.219, 0.19, 0.215, 0.206]


def test_windows_sinks_and_chunks_of_six_words():
    def rows(mask):
        return ["".join(str(int(x)) for x in row) for row in mask[[3, 5]]]

    at = np.arange(6)
    assert rows(window_mask(at, at, 3)) == ["011100", "000111"]
    assert rows(window_mask(at, at, 2, sinks=1)) == ["101100", "100011"]
    assert rows(chunk_mask(at, at, 3)) == ["000100", "000111"]


def test_a_sink_of_log_five_beside_zero_and_log_two():
    scores, v = [[[0.0, math.log(2)]]], [[1.0], [1.0]]
    assert_allclose(attend(scores, v, sink=[math.log(5)])[1], [[[0.125, 0.25]]], rtol=1e-15)
    assert_allclose(attend(scores, v)[1], [[[1 / 3, 2 / 3]]], rtol=1e-15)
    assert_allclose(attend(scores, v, sink=[math.log(5)])[0], 0.375, rtol=1e-15)  # ones: the ratio


def test_causal_mask_of_four_words():
    lower = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert causal_mask(np.arange(4), np.arange(4)).astype(int).tolist() == lower


# ---- edges: rows without a key, infinities, sizes of zero, dtypes -------------------------------


def test_a_query_that_may_attend_to_nothing_gets_zeros_and_no_warning():
    q, k, v = qkv()
    mask = np.ones((L, S), bool)
    mask[2] = False
    output, weights = attention(q, k, v, mask)
    assert not output[:, :, 2].any() and not weights[:, :, 2].any()
    assert_array_equal(attention_blockwise(q, k, v, mask, block=2)[:, :, 2], output[:, :, 2])
    for sink in (np.full(H, -5.0), np.zeros((B, H, L))):
        output, weights = attend(data(B, H, L, S), v, mask, sink)
        assert not output[:, :, 2].any() and not weights[:, :, 2].any()
    assert log_softmax([-np.inf, -np.inf]).tolist() == [-np.inf, -np.inf]


def test_large_scores_neither_overflow_nor_lose_their_logarithm():
    assert softmax([1e4, 0.0]).tolist() == [1.0, 0.0]
    assert log_softmax(np.array([1e4, 0.0], np.float32)).tolist() == [0.0, -1e4]


OFFSETS = [(np.float32, 1e7, 1e-6), (np.float32, 3e4, 1e-6), (np.float64, 1e15, 1e-12)]


@pytest.mark.parametrize(("dtype", "offset", "tolerance"), OFFSETS)
@pytest.mark.parametrize("sign", [1, -1])
def test_log_softmax_far_from_zero_is_as_exact_as_near_it(dtype, offset, tolerance, sign):
    """What is added to the largest score must not be rounded by it: log 2 at 1e15, for one."""
    rows = [[0, 0], [0, 1], [0, -3, 5, 2], [0, -700, 1, 4], list(range(0, 400, 2)), [0] * 1000]
    for row in rows:
        x = np.array(row, dtype) + dtype(sign * offset)
        top = max(Fraction(float(a)) for a in x)
        near = [float(Fraction(float(a)) - top) for a in x]  # exact
        total = math.fsum(math.exp(a) for a in near)
        exact = np.array([a - math.log(total) for a in near])
        error = np.abs(log_softmax(x).astype(np.float64) - exact) / np.maximum(1, np.abs(exact))
        assert error.max() < tolerance


def test_nan_stays_visible():
    assert np.isnan(softmax([np.nan, 0.0])).all()


def test_sizes_of_zero_give_results_of_size_zero_or_zeros():
    assert attention(np.zeros((0, 4)), data(3, 4), data(3, 2))[0].shape == (0, 2)
    output, weights = attention(data(3, 4), np.zeros((0, 4)), np.zeros((0, 2)))
    assert weights.shape == (3, 0) and output.tolist() == [[0.0, 0.0]] * 3
    empty = attention_blockwise(data(3, 4), np.zeros((0, 4)), np.zeros((0, 2)))
    assert empty.tolist() == output.tolist()
    assert softmax(np.zeros((2, 0))).shape == (2, 0)
    assert padding_mask([], 3).shape == (0, 1, 1, 3)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float16, 4e-3), (np.float32, 1e-6)])
def test_dtype_is_kept_even_with_float64_bias_and_scale(dtype, atol):
    q, k, v = qkv(dtype)
    bias, scale = data(L, S), np.float64(0.3)
    kept = [a.copy() for a in (q, k, v, bias)]
    output, weights = attention(q, k, v, bias=bias, scale=scale)
    blocks = attention_blockwise(q, k, v, bias=bias, block=3)
    assert output.dtype == weights.dtype == blocks.dtype == dtype
    exact = attention(*(a.astype(np.float64) for a in (q, k, v)), bias=bias, scale=scale)[0]
    assert_allclose(output.astype(np.float64), exact, rtol=0, atol=atol)
    for now, before in zip((q, k, v, bias), kept, strict=True):
        assert_array_equal(now, before)
    assert softmax(q).dtype == log_softmax(q).dtype == split_heads(q, 2).dtype == dtype
    sink = data(H)
    for result in attend(bias[None].astype(dtype).repeat(H, 0), v, sink=sink):
        assert result.dtype == dtype
    assert_array_equal(sink, data(H))


def test_scores_that_the_caller_made_stay():
    (_, _, v), scores, mask = qkv(), data(B, H, L, S, seed=4), np.tri(L, S, dtype=bool)
    for seen, sink in ((None, None), (mask, None), (None, [0.0] * H), (mask, [0.0] * H)):
        attend(scores, v, seen, sink)
        assert_array_equal(scores, data(B, H, L, S, seed=4))


@pytest.mark.parametrize("length", [1, 64, 65, 150])
@pytest.mark.parametrize("masked", [False, True])
def test_weights_of_many_queries_are_those_of_each(length, masked):
    q, k, v = data(H, length, K), data(H, S, K, seed=1), data(H, S, KV, seed=2)
    mask = np.random.default_rng(3).random((length, S)) < 0.6 if masked else None
    output, weights = attention(q, k, v, mask)
    for i in {0, 63, 64, 128, length - 1} & set(range(length)):
        row = slice(i, i + 1)
        alone = attention(q[:, row], k, v, None if mask is None else mask[row])
        assert_allclose(output[:, row], alone[0], rtol=0, atol=1e-14)
        assert_allclose(weights[:, row], alone[1], rtol=0, atol=1e-14)


@pytest.mark.parametrize("places", ["q", "k", "v", "qv", "bias"])
def test_attention_keeps_its_scores_on_the_tape(places):
    x = dict(zip("qkv", qkv(), strict=True), bias=data(L, S))
    parts = {name: x[name] for name in ([places] if places in x else places)}
    value, grads = value_and_grad(lambda p: np.sum(attention(**(x | p))[0] ** 2))(parts)
    assert_allclose(value, np.sum(attention(**x)[0] ** 2), rtol=1e-14)
    for name, grad in grads.items():
        step = 1e-5 * data(*grad.shape, seed=9)
        ends = [np.sum(attention(**(x | {name: x[name] + e}))[0] ** 2) for e in (step, -step)]
        assert_allclose(np.sum(grad * step), (ends[0] - ends[1]) / 2, rtol=1e-6)


def test_attention_holds_one_array_of_the_size_of_its_scores():
    x = data(1, 2, 512, 8, dtype=np.float32)
    attention(x, x, x)
    tracemalloc.start()
    _, weights = attention(x, x, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * weights.nbytes


def test_scores_of_large_float16_vectors_do_not_overflow():
    q = np.full((1, 64), 60, np.float16)  # q . k = 230,400, and float16 ends at 65,504
    output, weights = attention(q, q, np.ones((1, 2), np.float16))
    assert weights.tolist() == [[1.0]] and output.dtype == np.float16


# ---- blocks -------------------------------------------------------------------------------------


def test_blocks_take_a_bias_function_of_distance_with_or_without_heads():
    q, k, v = qkv()
    distance = np.arange(S - L, S)[:, None] - np.arange(S)
    slopes = np.array([0.5, 0.25, 0.125])[:, None, None]
    mask = distance >= 0
    expected = attention(q, k, v, mask, bias=-slopes * abs(distance))[0]
    by_head = attention_blockwise(q, k, v, bias=lambda d: -slopes * abs(d), causal=True, block=2)
    assert_allclose(by_head, expected, rtol=0, atol=1e-14)
    expected = attention(q, k, v, bias=-0.5 * abs(distance))[0]
    shared = attention_blockwise(q, k, v, bias=lambda d: -0.5 * abs(d), block=3)
    assert_allclose(shared, expected, rtol=0, atol=1e-14)


def test_blocks_take_positions_in_any_order_and_per_sequence():
    q, k, v = qkv()
    q_at = np.array([[4, 0, 9, 2, 7], [1, 1, 6, 3, 0]])[:, None]  # (B, 1, L)
    k_at = np.array([5, 1, 0, 8, 2, 9, 3])
    expected = attention(q, k, v, causal_mask(q_at, k_at))[0]
    got = attention_blockwise(q, k, v, causal=True, q_positions=q_at, k_positions=k_at, block=2)
    assert_allclose(got, expected, rtol=0, atol=1e-14)


def test_blocks_in_the_future_are_not_computed():
    seen = []

    def bias(distance):
        seen.append(distance.size)
        return np.zeros(distance.shape)

    x = data(8, 4)
    attention_blockwise(x, x, x, bias=bias, causal=True, block=2)
    assert sum(seen) == 10 * 4  # the 4 + 3 + 2 + 1 blocks on and below the diagonal


def test_blocks_outside_a_window_are_not_computed():
    seen = []

    def bias(distance):
        seen.append(distance.size)
        return np.zeros(distance.shape)

    x = data(16, 4)
    for window, blocks in ((1, 8), (2, 8 + 7), (3, 8 + 7), (4, 8 + 7 + 6)):
        seen.clear()
        attention_blockwise(x, x, x, bias=bias, causal=True, block=2, window=window)
        assert seen == [4] * blocks
    x = data(512, 4)
    seen.clear()
    attention_blockwise(x, x, x, bias=bias, causal=True, block=64, window=64)
    assert len(seen) == 15


def test_blocks_have_the_gradients_of_attention():
    q, k, v = qkv()
    mask = causal_mask(np.arange(S - L, S), np.arange(S))
    x = {"q": q, "k": k, "v": v}
    whole = value_and_grad(lambda x: np.sum(attention(**x, mask=mask)[0] ** 2))(x)
    blocks = value_and_grad(lambda x: np.sum(attention_blockwise(**x, causal=True, block=2) ** 2))(
        x
    )
    assert_allclose(blocks[0], whole[0], rtol=1e-13)
    for name in x:
        assert_allclose(blocks[1][name], whole[1][name], rtol=0, atol=1e-12)


def test_memory_of_blocks_does_not_grow_with_length():
    """Beside positions and the output, twice, four times as many tokens take no more."""
    for dtype in (np.float16, np.float32):
        peaks = []
        for length in (4096, 16_384):
            x = data(length, 64, dtype=dtype)
            tracemalloc.start()
            output = attention_blockwise(x, x, x, causal=True, window=256)
            held = 2 * output.nbytes + 2 * 8 * length
            peaks.append(tracemalloc.get_traced_memory()[1] - held)
            tracemalloc.stop()
        assert peaks[1] < min(peaks[0] + 1e5, 1e6)  # a block of scores has 256 KiB


# ---- by hand ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "heads", "q", "k", "v"),
    [
        ("q|k|v", (2,), [0, 1], [2, 3], [4, 5]),
        ("3HK", (2,), [0, 1], [2, 3], [4, 5]),
        ("H3K", (2,), [0, 3], [1, 4], [2, 5]),
        ("q|k|v", (2, 1), [0, 1], [2], [3]),
        ("q|k|v", (4, 2), [0, 1, 2, 3], [4, 5], [6, 7]),
    ],
)
def test_rows_of_fused_matrices_by_hand(order, heads, q, k, v):
    H, G = (*heads, heads[0])[:2]
    rows = np.arange(H + 2 * G)
    assert [part.tolist() for part in split_fused(rows, order, *heads)] == [q, k, v]
    matrix = np.stack([rows, 10 + rows])  # (D, (H + 2 G) K): what is fused is the last axis
    assert split_fused(matrix, order, *heads)[1].tolist() == [k, [10 + n for n in k]]


def test_heads_may_be_split_before_or_after_the_projection():
    W, x = data(8, 3 * H * K), data(B, L, 8, seed=1)
    for order in ("q|k|v", "H3K"):
        for part, own in zip(split_fused(x @ W, order, H), split_fused(W, order, H), strict=True):
            assert_allclose(part, x @ own, rtol=0, atol=1e-13)


# ---- bad input ----------------------------------------------------------------------------------

Q, KEYS, V = np.zeros((L, K)), np.zeros((S, K)), np.zeros((S, KV))


@pytest.mark.parametrize("function", [attention, attention_blockwise])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Q[:, :3], KEYS, V), "q and k must have the same width K, at least 1; got 3 and 8"),
        ((Q[:, :0], KEYS[:, :0], V), "the same width K, at least 1; got 0 and 0"),
        ((Q, KEYS[:4], V), "k and v must have the same length S; got 4 and 7"),
        ((Q[0], KEYS, V), r"q must have the axes \(..., L, K\); got shape \(8,\)"),
        ((np.zeros((2, L, K)), np.zeros((3, S, K)), V), r"batch axes must broadcast; got q \(2,\)"),
        ((Q + 1j, KEYS, V), "q must hold real numbers; got dtype complex128"),
        ((Q, KEYS, V, np.ones((L, S))), "mask must be boolean, True = may attend; got dtype float"),
        ((Q, KEYS, V, np.ones((S, L), bool)), r"mask must broadcast to .* \(5, 7\); got \(7, 5\)"),
        ((Q, KEYS, V, np.ones((2, L, S), bool)), r"mask must broadcast .* got \(2, 5, 7\)"),
        ((Q, KEYS, V, None, np.zeros((2, L, S))), r"bias must broadcast .* got \(2, 5, 7\)"),
        ((Q + np.inf, KEYS + 1, V), r"must stay below \+inf"),
    ],
)
def test_bad_arrays_are_named_with_the_rule_and_the_numbers(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: attention(Q, KEYS, V, scale=[1, 2]), "attention: scale must be one real number"),
        (lambda: attend(Q, V), "attend: scores and v must have the same number of keys S; got 8"),
        (lambda: attend(np.zeros((2, L, S)), np.zeros((3, S, 1))), "attend: the batch axes must"),
        (lambda: softmax(1.0), "softmax: axis must be one of the axes of x; got -1 for shape"),
        (lambda: softmax(Q, axis=2), r"softmax: axis must be .* got 2 for shape \(5, 8\)"),
        *[
            (partial(f, Q, axis), f"{f.__name__}: axis must be a whole number; got {axis!r}")
            for f in (softmax, log_softmax)
            for axis in (None, 0.5, "rows", True)
        ],
        (lambda: softmax([np.inf, 0]), r"softmax: x must stay below \+inf"),
        (lambda: log_softmax(["a"]), "log_softmax: x must hold real numbers; got dtype <U1"),
        (lambda: causal_mask(3, [0]), r"causal_mask: q_positions must be an axis.*write \[3\]"),
        (lambda: causal_mask(np.zeros((2, 1)), np.zeros((3, 1))), "causal_mask: the batch axes"),
        (lambda: window_mask([0], [0], 0), "window_mask: window must be at least 1; got 0"),
        (lambda: window_mask([0], [0], 1.5), "window_mask: window must be a whole number; got 1.5"),
        (lambda: window_mask([0], [0], 2, -1), "window_mask: sinks must be at least 0; got -1"),
        (lambda: window_mask(3, [0], 2), r"window_mask: q_positions must be an axis.*write \[3\]"),
        (lambda: chunk_mask([0], [0], 0), "chunk_mask: chunk must be at least 1; got 0"),
        (lambda: chunk_mask([0], [[[np.nan]]], 2), "chunk_mask: k_positions must be finite"),
        (
            lambda: attend(np.zeros((2, H, L, S)), V, sink=np.zeros(2)),
            r"attend: sink must have a number for each head, \(H,\), or for each query, "
            r"\(..., H, L\) = \(2, 3, 5\); got shape \(2,\)",
        ),
        (lambda: attend(np.zeros((L, S)), V, sink=np.zeros(L)), r"= \(5,\); got shape \(5,\)"),
        (lambda: attend(np.zeros((H, L, S)), V, sink=1.0), r"sink must .* got shape \(\)"),
        (
            lambda: attend(np.zeros((2, H, L, S)), V, sink=np.zeros((H, 2))),
            r"sink must broadcast to .* the scores without their keys, \(2, 3, 5\); got \(3, 2\)",
        ),
        (lambda: attend(np.zeros((H, L, S)), V, sink=["a"]), "attend: sink must hold real numbers"),
        (
            lambda: attention_blockwise(Q, KEYS, V, window=0),
            "attention_blockwise: window must be at least 1; got 0",
        ),
        (lambda: padding_mask([3, 9], 5), r"each length must be from 0 to size = 5; got \[3, 9\]"),
        (lambda: padding_mask([-1], 5), r"from 0 to size = 5; got \[-1\]"),
        (lambda: padding_mask([1.5], 5), "lengths must be one axis of whole numbers"),
        (
            lambda: padding_mask([[1], [1, 2]], 5),
            "padding_mask: lengths must have rows of one length",
        ),
        (lambda: padding_mask(3, 5), r"lengths must be one axis of whole numbers; got shape \(\)"),
        (lambda: padding_mask([1], 5, "top"), "side must be 'right' or 'left'; got 'top'"),
        (
            lambda: attention_blockwise(Q, KEYS, V, causal="no"),
            "attention_blockwise: causal must be True or False; got 'no'",
        ),
        (lambda: attention_blockwise(Q, KEYS, V, block=0), "block must be at least 1; got 0"),
        (
            lambda: attention_blockwise(KEYS, Q, Q, causal=True),
            "L = 7 and S = 5, have no default positions; give q_positions",
        ),
        (
            lambda: attention_blockwise(Q, KEYS, V, causal=True, q_positions=[0, 1]),
            "one position for each of the L = 5 queries and S = 7 keys; got 2 and 7",
        ),
        (
            lambda: attention_blockwise(Q, KEYS, V, bias=lambda d: np.zeros((3, *d.shape))),
            r"what bias gives must broadcast to the shape of the block, \(5, 7\); got \(3, 5, 7\)",
        ),
        (
            lambda: attention_blockwise(Q, KEYS, V, bias=lambda d: d.T, block=4),
            r"attention_blockwise: what bias gives must .* \(4, 3\); got \(3, 4\)",
        ),
        (
            lambda: attention_blockwise(Q, KEYS, V, bias=lambda d: "far"),
            "attention_blockwise: what bias gives must hold real numbers; got dtype <U3",
        ),
        (lambda: split_heads(Q, 3), "n_heads must divide the width D; got 3 and 8"),
        (lambda: split_heads(Q, 0), "n_heads must be at least 1; got 0"),
        (lambda: merge_heads(Q), r"x must have the axes \(..., H, L, K\); got shape \(5, 8\)"),
        (lambda: split_fused(1.0, "3HK", 1), "split_fused: x must have the axes"),
        (lambda: split_fused(["a"], "3HK", 1), "split_fused: x must hold real numbers"),
        (lambda: split_fused(Q, "qkv", 1), r"order must be 'q\|k\|v' or '3HK' or 'H3K'; got 'qkv'"),
        (lambda: split_fused(Q, "q|k|v", 0), "split_fused: n_heads must be at least 1; got 0"),
        (lambda: split_fused(Q, "q|k|v", 2, 0), "n_kv_heads must be at least 1; got 0"),
        (lambda: split_fused(Q, "q|k|v", 3, 2), "n_kv_heads must divide n_heads.*; got 2 and 3 "),
        (lambda: split_fused(Q, "H3K", 2, 1), "equal it unless .* got 1 and 2 with 'H3K'"),
        (lambda: split_fused(Q, "3HK", 2, 1), "equal it unless .* got 1 and 2 with '3HK'"),
        (lambda: split_fused(Q, "3HK", 1), r"multiple of H \+ 2 G = 3; got 8"),
        (lambda: split_fused(Q, "q|k|v", 3, 1), r"multiple of H \+ 2 G = 5; got 8"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
