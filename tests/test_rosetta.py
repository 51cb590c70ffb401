"""Conversions: loop oracles, equal results, round trips, other people's numbers, bad input."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    alibi_bias,
    alibi_key_bias,
    alibi_slopes,
    attend,
    attention,
    causal_mask,
    convert_layout,
    convert_mask,
    deberta_scores,
    flip_table,
    join_fused,
    linear,
    merge_heads,
    padding_mask,
    relative_distance,
    relative_gather,
    relative_shift,
    rms_norm,
    rope,
    rope_frequencies,
    shaw_scores,
    sinusoidal,
    softmax,
    split_fused,
    split_heads,
    t5_bias,
    t5_bucket,
    timing_signal,
)

B, H, L, S, K = 2, 3, 5, 7, 8
LATE, KEYS = np.arange(S - L, S), np.arange(S)  # the last L of S positions, and all of them
DISTANCE = relative_distance(LATE, KEYS)


def data(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def golden(name):
    with np.load(Path(__file__).parent / "golden" / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def same(a, b, atol=1e-12):
    assert_allclose(a, b, rtol=0, atol=atol)


def differ(a, b, by=0.1):
    assert np.abs(a - b).max() > by


# ---- loop oracles -------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "d"), [(8, None), (8, 4), (9, 6), (2, 2)])
def test_pairs_stand_side_by_side_or_half_of_d_apart(width, d):
    x = data(B, L, width)
    got, d = convert_layout(x, d=d), width if d is None else d
    for b, i in np.ndindex(B, L):
        for c in range(d // 2):
            assert got[b, i, c] == x[b, i, 2 * c] and got[b, i, c + d // 2] == x[b, i, 2 * c + 1]
        assert_array_equal(got[b, i, d:], x[b, i, d:])
    assert_array_equal(convert_layout(got, "interleaved", d), x)


@pytest.mark.parametrize(("largest", "distance"), [(6, DISTANCE), (3, DISTANCE - 3), (None, None)])
def test_gather_looks_up_each_pair_by_its_distance(largest, distance):
    products = data(B, H, L, S + L - 1)
    d = (
        np.random.default_rng(1).integers(0, S + L - 1, (B, 1, L, S))
        if distance is None
        else distance
    )
    got = relative_gather(products, d, largest)
    last = S + L - 2 if largest is None else largest
    d = np.broadcast_to(d, got.shape)
    for b, h, i, j in np.ndindex(B, H, L, S):
        assert got[b, h, i, j] == products[b, h, i, last - d[b, h, i, j]]


def test_gather_takes_a_batch_of_distances_for_products_without_one():
    products, d = data(L, S), np.random.default_rng(1).integers(0, S, (B, L, 4))
    got = relative_gather(products, d)
    assert got.shape == (B, L, 4)
    for b, i, j in np.ndindex(got.shape):
        assert got[b, i, j] == products[i, S - 1 - d[b, i, j]]


@pytest.mark.parametrize("n", [3, 5, 7])
def test_a_flipped_table_of_shaw_has_the_row_of_d_at_minus_d(n):
    table, m = data(H, n, K), n // 2
    flipped = flip_table(table)
    for d in range(-m, m + 1):
        assert_array_equal(flipped[:, -d + m], table[:, d + m])


def test_fused_columns_stand_head_by_head_or_kind_by_kind():
    q, k, v = data(3, L, H * K)
    for order, place in (("H3K", lambda n, h: 3 * h + n), ("3HK", lambda n, h: H * n + h)):
        fused = join_fused(q, k, v, order, H)
        for n, part in enumerate((q, k, v)):
            for h in range(H):
                at = place(n, h) * K
                assert_array_equal(fused[:, at : at + K], part[:, h * K : (h + 1) * K])
    assert_array_equal(join_fused(q, k, v, "q|k|v", H), fused)


# ---- equal results, and others without the conversion -------------------------------------------


@pytest.mark.parametrize(
    ("d", "to"), [(8, "half"), (4, "half"), (8, "interleaved"), (4, "interleaved")]
)
def test_rope_gives_the_same_scores_in_both_layouts(d, to):
    q, k, f = data(H, L, K), data(H, S, K, seed=1), rope_frequencies(d)
    own = "interleaved" if to == "half" else "half"

    def scores(q, k, layout):
        return rope(q, LATE, f, layout) @ np.swapaxes(rope(k, KEYS, f, layout), -1, -2)

    there = [convert_layout(x, to, d) for x in (q, k)]
    same(scores(*there, to), scores(q, k, own))
    differ(scores(q, k, to), scores(q, k, own))
    differ(scores(there[0], k, to), scores(q, k, own))
    same(rope(there[0], LATE, f, to), convert_layout(rope(q, LATE, f, own), to, d))


def test_a_gain_of_queries_is_reordered_with_them():
    q, gain = data(L, K), 1 + data(K, seed=1) / 4
    right = convert_layout(rope(rms_norm(q, gain), LATE))
    there = rms_norm(convert_layout(q), convert_layout(gain))
    same(rope(there, LATE, layout="half"), right)
    differ(rope(rms_norm(convert_layout(q), gain), LATE, layout="half"), right)


def test_three_sinusoids_are_two_orders_of_two_ladders():
    code = sinusoidal(KEYS, K)
    concatenated, timing = sinusoidal(KEYS, K, layout="concatenated"), timing_signal(KEYS, K)
    assert_array_equal(convert_layout(code), concatenated)
    assert_array_equal(convert_layout(concatenated, "interleaved"), code)
    same(sinusoidal(KEYS, K, base=10_000 ** (K / (K - 2)), layout="concatenated"), timing)
    differ(concatenated, timing)
    weight = data(K, 4, seed=1)  # what reads a sum, too: its input components move alike
    same(convert_layout(code) @ convert_layout(weight.T).T, code @ weight)
    differ(concatenated @ weight, code @ weight)


def test_shift_is_gather_on_the_past_and_with_columns_for_the_future_everywhere():
    q, codes = data(H, L, K), data(L + S - 1, K, seed=1)  # of the distances S - 1 down to 1 - L
    wide, seen = q @ codes.T, causal_mask(LATE, KEYS)
    expected = relative_gather(wide, DISTANCE, largest=S - 1)
    same(relative_shift(wide)[..., :S], expected)
    past = wide[..., :S]
    shifted, gathered = relative_shift(past), relative_gather(past, np.maximum(DISTANCE, 0))
    same(softmax(np.where(seen, shifted, -np.inf)), softmax(np.where(seen, expected, -np.inf)))
    same(np.where(seen, gathered, 0), np.where(seen, expected, 0))
    differ(shifted, expected)  # beyond the diagonal stands data of the next row
    differ(np.where(seen, past, 0), np.where(seen, expected, 0))


def test_the_skew_of_tensor2tensor_is_the_shift():
    # Its _relative_position_to_absolute_position_unmasked: a column behind, flat, a row's rest.
    x = data(H, L, 2 * L - 1)
    flat = np.pad(np.pad(x, ((0, 0), (0, 0), (0, 1))).reshape(H, -1), ((0, 0), (0, L - 1)))
    skewed = flat.reshape(H, L + 1, 2 * L - 1)[:, :L, L - 1 :]
    same(relative_shift(x)[..., :L], skewed)
    at = np.arange(L)
    same(relative_gather(x, relative_distance(at, at), largest=L - 1), skewed)


@pytest.mark.parametrize("reach", [2, 9])
def test_shaw_scores_by_key_minus_query_need_the_table_upside_down(reach):
    q, k, table = data(H, L, K), data(H, S, K, seed=1), data(2 * reach + 1, K, seed=2)
    scores = shaw_scores(q, k, table, DISTANCE)
    same(shaw_scores(q, k, flip_table(table), -DISTANCE), scores)
    differ(shaw_scores(q, k, table, -DISTANCE), scores)


@pytest.mark.parametrize("N", [4, 8, 32])
def test_t5_by_key_minus_query_needs_the_halves_exchanged(N):
    table = data(N, H)
    d = relative_distance(range(-100, 0, 9), range(-150, 50))
    expected = t5_bias(table, d)
    assert_array_equal(t5_bias(flip_table(table, "t5"), -d), expected)
    differ(t5_bias(table, -d), expected)
    assert not (t5_bucket(d, N) == N // 2).any()  # the row of no distance
    stays = flip_table(table, "t5")
    assert_array_equal(stays[[0, N // 2]], table[[0, N // 2]])


@pytest.mark.parametrize("m", [S, 3])
def test_deberta_reads_p2c_at_either_sign_up_to_the_row_that_has_no_mirror_image(m):
    q, k = data(H, L, K), data(H, S, K, seed=1)
    q_table, k_table = data(2, H, 2 * m, K, seed=2)
    paper = deberta_scores(q, k, q_table, k_table, DISTANCE)
    flipped = deberta_scores(q, k, flip_table(q_table, "deberta"), k_table, DISTANCE, DISTANCE)
    within = np.abs(DISTANCE) < m
    same(np.where(within, flipped, 0), np.where(within, paper, 0))
    assert within.all() == (m == S)
    assert np.allclose(flipped, paper, rtol=0, atol=1e-9) == (m == S)
    differ(deberta_scores(q, k, q_table, k_table, DISTANCE, DISTANCE), paper)


@pytest.mark.parametrize("start", [0, 100, 1 - S])
def test_alibi_of_keys_has_other_scores_and_the_same_weights_under_a_causal_mask(start):
    q, k, v = data(H, L, K), data(H, S, K, seed=1), data(H, S, 4, seed=2)
    slopes, mask = alibi_slopes(H), causal_mask(LATE, KEYS)
    of_keys, of_pairs = alibi_key_bias(slopes, KEYS + start), alibi_bias(slopes, DISTANCE)
    for h, i, j in np.ndindex(H, L, S):
        assert of_keys[h, 0, j] == slopes[h] * (j + start)
        if mask[i, j]:
            more = slopes[h] * (LATE[i] + start)
            assert abs(of_keys[h, 0, j] - of_pairs[h, i, j] - more) < 1e-12
    expected = attention(q, k, v, mask, of_pairs)
    for got, want in zip(attention(q, k, v, mask, of_keys), expected, strict=True):
        same(got, want)
    differ(attention(q, k, v, None, of_keys)[1], attention(q, k, v, None, of_pairs)[1])
    differ(attention(q, k, v, mask, -of_keys)[1], expected[1])


def test_masks_in_three_words_give_the_same_attention():
    q, k, v = data(B, H, L, K), data(B, H, S, K, seed=1), data(B, H, S, 4, seed=2)
    may = causal_mask(LATE, KEYS) & padding_mask([3, S], S, side="left")
    expected = attention(q, k, v, may)
    blocked, additive = (convert_mask(may, "attend", to=to) for to in ("blocked", "additive"))
    assert_array_equal(blocked, ~may)
    assert ((additive == 0) == may).all() and ((additive == -np.inf) == ~may).all()
    masks = {"attend": may, "blocked": blocked, "additive": additive}
    for source, mask in masks.items():
        before = mask.copy()
        for to, wanted in masks.items():
            assert_array_equal(convert_mask(mask, source, to), wanted)
        same(attention(q, k, v, convert_mask(mask, source))[0], expected[0])
        assert_array_equal(mask, before)
    same(attention(q, k, v, bias=additive)[1], expected[1])
    differ(attention(q, k, v, blocked)[1], expected[1])
    differ(attention(q, k, v, bias=may)[1], expected[1])  # True is 1


@pytest.mark.parametrize("low", [-1e4, -1e9, np.finfo(np.float32).min, -np.inf])
def test_any_large_negative_number_blocks(low):
    may = causal_mask(LATE, KEYS)
    assert_array_equal(convert_mask(np.where(may, 0.0, low), "additive"), may)


def test_a_row_that_is_blocked_by_finite_numbers_gets_the_softmax_of_no_mask_or_equal_weights():
    scores, low = data(L, S), np.where(np.arange(L)[:, None] == 2, -1e9, np.zeros((L, S)))
    same(softmax(scores + low)[2], softmax(scores)[2], 1e-6)
    drowned = np.finfo(np.float32).min + scores.astype(np.float32)
    same(softmax(drowned), np.full((L, S), 1 / S), 1e-6)
    mask = convert_mask(low, "additive")
    _, weights = attend(scores, data(S, 4), mask)
    assert not weights[2].any()
    assert not softmax(scores + convert_mask(low, "additive", "additive"))[2].any()


@pytest.mark.parametrize("order", ["q|k|v", "3HK", "H3K"])
def test_fused_weights_give_the_same_heads_in_every_order(order):
    x, (q, k, v) = data(L, 10), data(3, 10, H * K, seed=1)
    fused = join_fused(q, k, v, order, H)
    for got, want in zip(split_fused(fused, order, H), (q, k, v), strict=True):
        assert_array_equal(got, want)
    for got, w in zip(split_fused(linear(x, fused), order, H), (q, k, v), strict=True):
        same(got, linear(x, w))
    other = "q|k|v" if order == "H3K" else "H3K"
    differ(split_fused(fused, other, H)[0], q)


def test_grouped_heads_go_there_and_back():
    q, k, v = data(L, 4 * K), data(L, 2 * K, seed=1), data(L, 2 * K, seed=2)
    fused = join_fused(q, k, v, "q|k|v", 4, 2)
    for got, want in zip(split_fused(fused, "q|k|v", 4, 2), (q, k, v), strict=True):
        assert_array_equal(got, want)


# ---- conversions that are NumPy's own -----------------------------------------------------------


def test_swapped_axes_keep_sequences_apart_where_a_reshape_mixes_them():
    x = data(B, L, K)
    time_first = np.ascontiguousarray(np.swapaxes(x, 0, 1))
    expected = attention(x, x, x)[0]
    back = np.swapaxes(time_first, 0, 1)
    assert_array_equal(attention(back, back, back)[0], expected)
    mixed = time_first.reshape(B, L, K)
    differ(attention(mixed, mixed, mixed)[0], expected)
    across = attention(time_first, time_first, time_first)[0]
    differ(np.swapaxes(across, 0, 1), expected)


def test_a_square_matrix_tells_nobody_that_it_must_be_transposed():
    x, ours = data(L, K), data(K, K, seed=1)
    theirs = ours.T  # (out, in)
    same(linear(x, theirs.T), [[sum(theirs[o] * row) for o in range(K)] for row in x])
    differ(linear(x, theirs), linear(x, ours))


def test_a_gain_stored_as_w_serves_as_1_plus_w():
    x, w = data(L, K), data(K, seed=1) / 5
    by_hand = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6) * (1 + w)
    same(rms_norm(x, 1 + w), by_hand)
    differ(rms_norm(x, w), by_hand)


# ---- other people's numbers ---------------------------------------------------------------------


@pytest.mark.parametrize(("library", "turned"), [("gptj", 4), ("roformer", 6)])
def test_interleaved_models_turn_in_halves_after_conversion(library, turned):
    g = golden(f"rope_{library}")
    for x in "qk":
        there = convert_layout(g[x], d=turned)
        halves = rope(there, g["positions"][:, None, :], rope_frequencies(turned), "half")
        same(convert_layout(halves, "interleaved", turned), g[f"{x}_turned"], 1e-6)


def test_marian_and_whisper_have_the_sinusoids_of_the_page():
    g = golden("sinusoids")
    same(convert_layout(g["marian"], "interleaved"), sinusoidal(range(9), 12), 1e-6)
    base = 10_000 ** (12 / 10)
    same(convert_layout(g["whisper"], "interleaved"), sinusoidal(range(9), 12, base), 1e-6)


def test_transformer_xl_shifts_what_is_gathered_here():
    g = golden("transformer_xl")
    products, shifted = (np.transpose(g[name], (2, 3, 0, 1)) for name in ("products", "shifted"))
    n, size = products.shape[-2:]
    late, keys = np.arange(size - n, size), np.arange(size)
    seen = causal_mask(late, keys)
    got = relative_gather(products, np.maximum(relative_distance(late, keys), 0))
    assert_array_equal(np.where(seen, got, 0), np.where(seen, shifted, 0))


def test_wav2vec2_bert_has_the_flipped_table():
    g = golden("shaw_keys")
    table = flip_table(g["distance_embedding.weight"])
    n, size = g["q"].shape[-2], g["k"].shape[-2]
    scores = shaw_scores(g["q"], 0 * g["k"], table, relative_distance(range(n), range(size)))
    same(scores, g["bias"])


def test_bloom_and_mpt_add_the_bias_of_keys():
    g = golden("alibi_bloom")
    at = np.maximum(np.cumsum(g["real"], axis=1) - 1, 0)
    for n_heads in (8, 12):
        of_keys = alibi_key_bias(alibi_slopes(n_heads), at)
        real = g["real"][:, None, None, :] == 1
        theirs = g[f"alibi_{n_heads}"].reshape(of_keys.shape)
        same(np.where(real, of_keys, 0), np.where(real, theirs, 0), 1e-6)
        mpt = golden("alibi_mpt")[f"alibi_{n_heads}"]
        count = mpt.shape[-1]
        same(alibi_key_bias(alibi_slopes(n_heads), np.arange(1 - count, 1)), mpt, 1e-6)


def test_torch_has_both_boolean_masks():
    g = golden("torch_multihead")
    biases = np.split(g["in_proj_bias"], 3)
    q, k, v = (
        split_heads(g[name] @ g[f"{name}_proj_weight"].T + bias, H)
        for name, bias in zip("qkv", biases, strict=True)
    )
    blocked = g["forbidden"] | g["padding"][:, None, None, :]
    output, weights = attention(q, k, v, convert_mask(blocked, "blocked"))
    same(weights, g["probabilities"])
    same(merge_heads(output) @ g["out_proj.weight"].T + g["out_proj.bias"], g["output"])
    differ(attention(q, k, v, blocked)[1], g["probabilities"])
    g = golden("torch_scaled_dot_product")
    additive = convert_mask(g["mask"], "attend", "additive")
    same(attention(*(g[name] for name in "qkv"), bias=additive)[0], g["masked"])


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: convert_layout(3.0), "convert_layout: x must have the axes"),
        (lambda: convert_layout([1, 2, 3]), r"d \(K by default\) must be even.*got 3"),
        (lambda: convert_layout([1, 2], d=4), "d must be at most K.*got 4 and 2"),
        (lambda: convert_layout([1, 2], "concatenated"), "to must be 'half' or 'interleaved'"),
        (lambda: relative_gather([1.0], [[0]]), "relative_gather: products must have the axes"),
        (lambda: relative_gather([[1.0]], [0]), r"with L = 1; got shape \(1,\)"),
        (lambda: relative_gather([[1.0]], [[0], [0]]), r"with L = 1; got shape \(2, 1\)"),
        (lambda: relative_gather([[1.0, 2.0]], [[0.5]]), "distance must be whole"),
        (lambda: relative_gather([[1.0, 2.0]], [[-1]]), "from 0 to 1.*got -1 to -1. Clip"),
        (lambda: relative_gather([[1.0, 2.0]], [[2]]), "2 columns; got 2 to 2"),
        (lambda: relative_gather([[1.0, 2.0]], [[0]], 3), "from 2 to 3"),
        (lambda: relative_gather([[1.0, 2.0]], [[0]], -1), "largest must be at least 0"),
        (
            lambda: relative_gather(np.zeros((2, 1, 2)), np.zeros((3, 1, 2), int)),
            "the batch axes must broadcast",
        ),
        (lambda: flip_table([1, 2, 3]), r"flip_table: table must have the axes.*\(3,\)"),
        (
            lambda: flip_table(np.eye(4)),
            "an odd number of rows for the kind 'shaw'; got 4",
        ),
        (lambda: flip_table(np.eye(3), "t5"), "an even number of rows for the kind 't5'; got 3"),
        (lambda: flip_table(np.eye(3), "deberta"), "even number of rows.*'deberta'; got 3"),
        (lambda: flip_table(np.eye(3), "bert"), "kind must be 'shaw' or 'deberta' or 't5'"),
        (lambda: alibi_key_bias([[0.5]], [0]), r"alibi_key_bias: slopes must have the axis \(H\)"),
        (lambda: alibi_key_bias([0.5], 0), "k_positions must be an axis of positions"),
        (lambda: alibi_key_bias([0.5], [0.5]), "k_positions must be whole numbers"),
        (lambda: alibi_key_bias([0.5], [[[0]]]), r"the axes \(S\) or \(B, S\)"),
        (
            lambda: convert_mask([1, 0], "attend"),
            "a mask must be boolean.*'attend' of dtype int64.*mask == 1",
        ),
        (
            lambda: convert_layout([[1, 2], [3]]),
            r"convert_layout: x must have rows of one length; got \[\[1, 2\], \[3\]\]",
        ),
        (
            lambda: flip_table([[1.0], [2.0, 3.0]]),
            "flip_table: table must have rows of one length",
        ),
        (
            lambda: convert_mask([[True], [True, False]], "attend"),
            "convert_mask: mask must have rows of one length",
        ),
        (lambda: convert_mask([0.0], "blocked"), "got 'blocked' of dtype float64"),
        (
            lambda: convert_mask([True], "additive"),
            "floating point for 'additive'; got 'additive' of dtype bool",
        ),
        (lambda: convert_mask([0.0, -3.5], "additive"), "got -3.5: that is a bias"),
        (lambda: convert_mask([1.0, 0.0], "additive"), "got 1.0: that is a bias"),
        (lambda: convert_mask([np.nan], "additive"), "got nan: that is a bias"),
        (lambda: convert_mask([np.inf], "additive"), "got inf: that is a bias"),
        (lambda: convert_mask([True], "additiv"), "source must be 'attend' or 'blocked' or"),
        (lambda: convert_mask([True], "attend", "bool"), "to must be 'attend' or 'blocked' or"),
        (lambda: join_fused([1], [2], [3], "HK3", 1), "order must be"),
        (lambda: join_fused([1, 2], [3], [4], "H3K", 2, 1), "equal it unless.*got 1 and 2"),
        (lambda: join_fused([1, 2, 3], [1], [1], "q|k|v", 3, 2), "must divide n_heads.*2 and 3"),
        (
            lambda: join_fused([1, 2], [3, 4], [5], "q|k|v", 2),
            r"got the shapes \(2,\), \(2,\), \(1,\)",
        ),
        (lambda: join_fused([1, 2, 3], [4, 5, 6], [7, 8, 9], "H3K", 2), "H = 2 heads"),
        (lambda: join_fused(np.eye(2), [3, 4], [5, 6], "H3K", 2), "the same other axes"),
        (lambda: join_fused(1, 2, 3, "H3K", 1), "q must have the axes"),
    ],
)
def test_bad_input_raises(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- dtypes, shapes and memory ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_what_is_moved_keeps_its_dtype(dtype):
    x = np.arange(24).reshape(4, 6).astype(dtype)
    for got in (
        convert_layout(x),
        flip_table(x, "t5"),
        flip_table(x, "deberta"),
        flip_table(x[:3]),
    ):
        assert got.dtype == dtype and not np.shares_memory(got, x)
    wanted = np.float64 if dtype == np.int32 else dtype
    assert join_fused(x, x, x, "H3K", 2).dtype == wanted
    assert relative_gather(x, np.zeros((4, 2), int)).dtype == wanted
    assert alibi_key_bias(x[0], [0, 1]).dtype == wanted


def test_an_additive_mask_keeps_its_dtype_and_is_float64_if_made_of_booleans():
    half = np.array([0, np.finfo(np.float16).min], np.float16)
    got = convert_mask(half, "additive", "additive")
    assert got.dtype == np.float16 and got.tolist() == [0, -np.inf]
    assert convert_mask([True], "attend", "additive").dtype == np.float64
    assert convert_mask(half, "additive", "blocked").tolist() == [False, True]


def test_a_mask_is_never_handed_back_itself():
    mask = np.array([True, False])
    assert not np.shares_memory(convert_mask(mask, "attend"), mask)
    assert convert_mask(np.array(True), "attend", "blocked").shape == ()


def test_keys_of_a_batch_have_positions_of_their_own():
    positions = np.array([[0, 0, 1], [0, 1, 2]])
    got = alibi_key_bias(alibi_slopes(H), positions)
    assert got.shape == (B, H, 1, 3)
    for b in range(B):
        assert_array_equal(got[b], alibi_key_bias(alibi_slopes(H), positions[b]))
