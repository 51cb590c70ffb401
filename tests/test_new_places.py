"""Distances that stay in the trained range: loop oracles, theorems, the sheet's rows, bad input."""

import cmath
import math

import numpy as np
import pytest
from builders import made
from differences import slopes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    Cache,
    Context,
    chunk_distance,
    decode,
    relative_distance,
    rerope_distance,
    rope,
    rope_frequencies,
    rotary_distance_scores,
    self_extend_distance,
    streaming_distance,
    value_and_grad,
    window_mask,
)
from pe_numpy.transformer.encodings import DualChunk, ReRope, Rope, SelfExtend, Streaming
from pe_numpy.transformer.masks import Window

B, H, L, S, K = 2, 3, 5, 7, 8
sizes = st.integers(1, 12)
DTYPES = (np.float64, np.float32, np.float16)


def data(seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((B, H, L, K)), rng.standard_normal((B, H, S, K))
    return q.astype(dtype), k.astype(dtype)


def rows(distance):
    return np.asarray(distance).round(3).tolist()


# ---- loop oracles -------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("frequencies", [None, [1.0, 0.25], [0.5, 0.1, 0.02], []])
def test_scores_equal_complex_products_of_each_pair_of_components(layout, frequencies):
    q, k = data()
    distance = 40 * np.random.default_rng(1).standard_normal((B, 1, L, S))
    got = rotary_distance_scores(q, k, distance, frequencies, layout)
    assert got.shape == (B, H, L, S)
    thetas = [10000 ** (-2 * c / K) for c in range(K // 2)] if frequencies is None else frequencies
    n = len(thetas)
    for b, h, i, j in np.ndindex(B, H, L, S):
        score = 0.0
        for c, theta in enumerate(thetas):
            x, y = (2 * c, 2 * c + 1) if layout == "interleaved" else (c, c + n)
            query = complex(q[b, h, i, x], q[b, h, i, y])
            key = complex(k[b, h, j, x], k[b, h, j, y])
            turn = cmath.exp(1j * distance[b, 0, i, j] * theta)
            score += (query * key.conjugate() * turn).real
        for x in range(2 * n, K):
            score += q[b, h, i, x] * k[b, h, j, x]
        assert_allclose(got[b, h, i, j], score / math.sqrt(K), rtol=0, atol=1e-12)


def rerope_by_hand(i, j, w, s=None):
    D = abs(i - j)
    f = min(D, w) if s is None or D < w else w + (D - w) / s
    return f if i >= j else -f


def self_extend_by_hand(i, j, w, g):
    if i < j:
        return -self_extend_by_hand(j, i, w, g)
    return i - j if i - j < w else math.floor(i / g) - math.floor(j / g) + w - w / g


def chunk_by_hand(i, j, size, local):
    if i < j:
        return -chunk_by_hand(j, i, size, local)
    c = size - local
    chunks = i // c - j // c
    if chunks == 0:
        return i % c - j % c
    if chunks == 1:
        return min(i % c + c, size) - j % c
    return min(2 * c - 1, size) - j % c


@pytest.mark.parametrize("start", [0, 17])
@pytest.mark.parametrize(("w", "g"), [(1, 1), (4, 2), (5, 3), (3, 7), (12, 4), (2, 11)])
def test_distances_equal_those_of_each_pair(w, g, start):
    i, j = np.arange(start, start + 30), np.arange(start + 5, start + 33)
    D = relative_distance(i, j)
    for got, f in (
        (rerope_distance(D, w), lambda i, j: rerope_by_hand(i, j, w)),
        (rerope_distance(D, w, g), lambda i, j: rerope_by_hand(i, j, w, g)),
        (self_extend_distance(i, j, w, g), lambda i, j: self_extend_by_hand(i, j, w, g)),
        (chunk_distance(i, j, w + g, g), lambda i, j: chunk_by_hand(i, j, w + g, g)),
    ):
        assert got.shape == (30, 28) and got.dtype == np.float64
        expected = [[f(a, b) for b in j.tolist()] for a in i.tolist()]
        assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_the_published_rules_give_these_rows():
    D = np.arange(10)
    assert rerope_distance(D, 4).tolist() == [0, 1, 2, 3, 4, 4, 4, 4, 4, 4]
    assert rows(rerope_distance(D, 4, 3)) == [0, 1, 2, 3, 4, 4.333, 4.667, 5, 5.333, 5.667]
    extend = self_extend_distance
    assert extend([9], D, 4, 2).tolist() == [[6, 6, 5, 5, 4, 4, 3, 2, 1, 0]]
    assert extend([8], D[:9], 4, 2).tolist() == [[6, 6, 5, 5, 4, 3, 2, 1, 0]]
    fractional = [6.333] * 3 + [5.333] * 3 + [4.333, 4, 3, 2, 1, 0]
    assert rows(extend([11], range(12), 5, 3)) == [fractional]
    chunks = chunk_distance(range(14), range(14), 6, 2)
    assert chunks[11, :12].tolist() == [6, 5, 4, 3, 6, 5, 4, 3, 3, 2, 1, 0]
    assert chunks[13].tolist() == [6, 5, 4, 3, 6, 5, 4, 3, 5, 4, 3, 2, 1, 0]


def test_the_authors_settings_reach_so_far_in_65536_tokens():
    last, j = [65535], np.arange(65536)
    D = relative_distance(last, j)
    assert rerope_distance(D, 512).max() == 512
    assert round(rerope_distance(D, 512, 16).max()) == 4576
    assert self_extend_distance(last, j, 1024, 8).max() == 9087
    assert chunk_distance(last, j, 3072, 512).max() == 3072


@pytest.mark.parametrize(("window", "sinks"), [(1, 0), (5, 2), (4, 4), (3, 1), (1, 3), (40, 2)])
def test_streaming_counts_the_slots_of_a_cache_that_drops_tokens(window, sinks):
    got = streaming_distance(range(30), range(30), window, sinks)
    cache = []
    for i in range(30):
        cache.append(i)
        if len(cache) > sinks + window:
            del cache[sinks]  # the oldest that is no sink
        seen = np.flatnonzero(window_mask([i], range(30), window, sinks)[0])
        assert seen.tolist() == cache
        slots = np.arange(len(cache))
        assert got[i, cache].tolist() == (slots[-1] - slots).tolist()
    assert got.dtype == np.float64


def test_before_token_9_the_published_cache_holds_these_slots():
    kept = [0, 1, 5, 6, 7, 8]
    slots = 6 - streaming_distance([9], kept, window=5, sinks=2)
    assert slots.tolist() == [[0, 1, 2, 3, 4, 5]]


# ---- theorems -----------------------------------------------------------------------------------


def test_at_the_true_distance_the_scores_are_those_of_rope():
    q, k = data()
    i, j = np.arange(2, 2 + L), np.arange(S)
    for layout in ("interleaved", "half"):
        turned = rope(q, i, layout=layout) @ np.swapaxes(rope(k, j, layout=layout), -1, -2)
        got = rotary_distance_scores(q, k, relative_distance(i, j), layout=layout)
        assert_allclose(got, turned / math.sqrt(K), rtol=0, atol=1e-12)


def test_at_distance_0_nothing_turns_and_one_number_serves_for_every_pair():
    q, k = data()
    plain = q @ np.swapaxes(k, -1, -2) / math.sqrt(K)
    assert_allclose(rotary_distance_scores(q, k, np.zeros((L, S))), plain, rtol=0, atol=1e-12)
    once = rope(q, np.full(L, 9)) @ np.swapaxes(k, -1, -2) / math.sqrt(K)
    assert_allclose(rotary_distance_scores(q, k, np.full((L, S), 9)), once, rtol=0, atol=1e-12)


@given(sizes, st.integers(0, 50))
def test_each_rule_is_plain_distance_at_one_of_its_settings(w, start):
    i = np.arange(start, start + 20)
    D = relative_distance(i, i)
    assert_array_equal(rerope_distance(D, 20), D)
    assert_allclose(rerope_distance(D, w, 1), D, rtol=0, atol=1e-12)
    assert_allclose(self_extend_distance(i, i, w, 1), D, rtol=0, atol=1e-12)
    assert_array_equal(chunk_distance(i, i, start + 22, 2), D)
    assert_array_equal(streaming_distance(i, i, w, 0), D)
    assert_array_equal(streaming_distance(i, i, start + 20, w), D)


@given(sizes, sizes, st.integers(1, 24))
def test_rerope_sees_differences_alone_the_others_only_shifts_by_whole_groups(w, g, t):
    i = np.arange(40)
    same = np.array_equal(
        self_extend_distance(i, i, w, g), self_extend_distance(i + t, i + t, w, g)
    )
    assert same == (t % g == 0)
    c = max(w, 2)
    same = np.array_equal(chunk_distance(i, i, c + 2, 2), chunk_distance(i + t, i + t, c + 2, 2))
    assert same == (t % c == 0)


@given(sizes, sizes, st.integers(0, 30))
def test_near_tokens_keep_their_distance(w, g, start):
    i = np.arange(start, start + 30)
    D = relative_distance(i, i)
    near = np.abs(D) <= w
    assert_array_equal(rerope_distance(D, w)[near], D[near])
    near = np.abs(D) < w
    assert_array_equal(self_extend_distance(i, i, w, g)[near], D[near])
    size, local = w + g, min(w, g)  # c = size - local is no shorter than local
    near = np.abs(D) <= local
    assert_array_equal(chunk_distance(i, i, size, local)[near], D[near])
    assert np.abs(chunk_distance(i, i, size, local)).max() <= size


def test_a_window_stays_a_window_and_lists_numbers_and_batches_are_taken():
    D = relative_distance(range(300), range(400))
    capped = rerope_distance(D, 7)
    assert capped.strides == D.strides and not capped.flags.writeable
    assert_array_equal(capped, rerope_distance(np.array(D), 7))
    assert rerope_distance(9, 4).shape == () and rerope_distance([-9.5], 4, 2).tolist() == [-6.75]
    assert rerope_distance(np.array([3, 9], np.uint8), 4).tolist() == [3, 4]
    i = np.stack([np.arange(5), np.arange(3, 8)])[:, None]
    j = np.arange(6)
    for f in (self_extend_distance, chunk_distance, streaming_distance):
        both = f(i, j, 4, 2)
        assert both.shape == (2, 1, 5, 6)
        assert_array_equal(both[1, 0], f(i[1, 0], j, 4, 2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_scores_keep_the_dtype_and_the_angles_of_far_distances(dtype):
    q, k = data(dtype=dtype)
    distance = relative_distance(range(10**6, 10**6 + L), range(S))
    got = rotary_distance_scores(q, k, distance)
    assert got.dtype == dtype
    exact = rotary_distance_scores(q.astype(np.float64), k.astype(np.float64), distance)
    atol = {np.float64: 0, np.float32: 2e-6, np.float16: 4e-3}[dtype]
    assert_allclose(got, exact, rtol=0, atol=atol)
    if dtype == np.float16:  # rounded once, at the end
        single = rotary_distance_scores(*(x.astype(np.float32) for x in (q, k)), distance)
        assert_array_equal(got, single.astype(dtype))
    whole = rotary_distance_scores([[1, 2]], [[3, 4]], [[1]])
    assert whole.dtype == np.float64 and whole.shape == (1, 1)


def test_gradients_of_q_and_k_equal_finite_differences():
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 3, 5)), rng.standard_normal((2, 4, 5))
    weight = rng.standard_normal((2, 3, 4))
    distance = rerope_distance(relative_distance(range(1, 4), range(4)), 2)

    def value(q, k):
        return np.sum(weight * rotary_distance_scores(q, k, distance, [1.0, 0.3], "half"))

    _, grads = value_and_grad(lambda p: value(p["q"], p["k"]))({"q": q, "k": k})
    assert_allclose(grads["q"], slopes(value, [q, k], 0), rtol=0, atol=1e-8)
    assert_allclose(grads["k"], slopes(value, [q, k], 1), rtol=0, atol=1e-8)


# ---- in the Transformer -------------------------------------------------------------------------

ENCODINGS = {
    "rerope": (ReRope(4), lambda i, j: rerope_distance(relative_distance(i, j), 4)),
    "leaky": (ReRope(4, 2.5), lambda i, j: rerope_distance(relative_distance(i, j), 4, 2.5)),
    "self_extend": (SelfExtend(5, 3), lambda i, j: self_extend_distance(i, j, 5, 3)),
    "dual_chunk": (DualChunk(7, 3), lambda i, j: chunk_distance(i, j, 7, 3)),
    "short_chunks": (DualChunk(9, 6), lambda i, j: chunk_distance(i, j, 9, 6)),  # 2c - 1 < size
    "streaming": (Streaming(3, 2), lambda i, j: streaming_distance(i, j, 3, 2)),
}
every = pytest.mark.parametrize("name", ENCODINGS)


@every
@pytest.mark.parametrize("length", [1, 9, 300])
def test_two_turns_give_the_scores_of_each_distance(name, length):
    encoding, effective = ENCODINGS[name]
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((B, H, length, K)), rng.standard_normal((B, H, length + 3, K))
    i, j = np.arange(3, 3 + length), np.arange(length + 3)
    assert_array_equal(encoding.effective(i, j), effective(i, j))
    got = encoding.scores({}, q, k, Context(i, j))
    expected = rotary_distance_scores(q, k, effective(i, j))
    assert_allclose(got, expected, rtol=0, atol=1e-11)
    padded = np.stack([i, np.maximum(i - 2, 0)]), np.stack([j, np.maximum(j - 2, 0)])
    got = encoding.scores({}, q, k, Context(*padded))
    expected = rotary_distance_scores(q, k, effective(*(p[:, None] for p in padded)))
    assert_allclose(got, expected, rtol=0, atol=1e-11)


@every
def test_on_the_tape_the_turns_have_the_gradients_of_each_distance(name):
    encoding, effective = ENCODINGS[name]
    q, k, g = np.random.default_rng(0).standard_normal((3, B, H, 12, 12))
    i = np.arange(12)

    def turned(x):
        return np.sum(g * encoding.scores({}, x["q"], x["k"], Context(i)))

    def of_distance(x):
        return np.sum(g * rotary_distance_scores(x["q"], x["k"], effective(i, i)))

    got, expected = (value_and_grad(f)({"q": q, "k": k}) for f in (turned, of_distance))
    assert_allclose(got[0], expected[0], rtol=1e-12)
    for name in "qk":
        assert_allclose(got[1][name], expected[1][name], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in ENCODINGS if name != "streaming"])
def test_a_pass_that_no_allowed_pair_needs_is_left_out(name, monkeypatch):
    from pe_numpy.transformer.encodings import score

    encoding, effective = ENCODINGS[name]
    q, k = np.random.default_rng(0).standard_normal((2, B, H, 12, K))
    i, seen = np.arange(12), np.tri(12, dtype=bool)
    turns = []
    monkeypatch.setattr(score, "rope", lambda *rest: turns.append(rest[1]) or rope(*rest))
    got = encoding.scores({}, q, k, Context(i, mask=seen))
    few = len(turns)
    expected = rotary_distance_scores(q, k, effective(i, i))
    assert_allclose(got[..., seen], expected[..., seen], rtol=0, atol=1e-12)
    encoding.scores({}, q, k, Context(i))
    assert few < len(turns) - few  # the future has passes of its own


@every
def test_the_layout_and_the_base_are_those_of_rope(name):
    q, k = data()
    encoding, effective = ENCODINGS[name]
    i, j = np.arange(2, 2 + L), np.arange(S)
    settings = {f: v for f, v in vars(encoding).items() if f not in ("base", "layout")}
    other = type(encoding)(**settings, base=100.0, layout="half")
    expected = rotary_distance_scores(q, k, effective(i, j), rope_frequencies(K, 100.0), "half")
    assert_allclose(other.scores({}, q, k, Context(i, j)), expected, rtol=0, atol=1e-12)


WIDE = (ReRope(99), ReRope(3, 1.0), SelfExtend(3, 1), DualChunk(99, 2), Streaming(10, 2))


@pytest.mark.parametrize("encoding", WIDE, ids=lambda e: type(e).__name__)
def test_a_model_whose_distances_stay_as_they_are_is_one_with_rope(encoding):
    (plain, params), (other, _) = (made(d_model=16, encoding=e) for e in (Rope(), encoding))
    tokens = np.random.default_rng(1).integers(0, 13, (2, 12))
    expected = decode(params, plain, tokens)
    assert_allclose(decode(params, other, tokens), expected, rtol=0, atol=1e-10)
    cache = Cache(2, 12)
    for t in range(12):
        step = decode(params, other, tokens[:, t : t + 1], cache=cache)
        assert_allclose(step[:, 0], expected[:, t], rtol=0, atol=1e-10)


def test_a_streaming_model_reads_a_text_as_a_cache_that_drops_tokens_and_counts_slots():
    """One layer, token by token: only sinks and the newest are kept, and positions are slots."""
    w, z, sizes = 4, 2, {"d_model": 16, "n_layers": 1}
    model, params = made(**sizes, encoding=Streaming(w, z), mask=Window(w, z))
    plain = made(**sizes, encoding=Rope())[0]
    tokens = np.random.default_rng(1).integers(0, 13, (1, 12))
    whole, kept = decode(params, model, tokens), []
    for t in range(12):
        kept = [*kept[:z], *[*kept[z:], t][-w:]] if t >= z else [*kept, t]
        slots = decode(params, plain, tokens[:, kept])[:, -1]
        assert_allclose(whole[:, t], slots, rtol=0, atol=1e-10)


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"k": np.zeros((S, K + 2))},
            "q and k must have the same width K, .*; got 8 and 10",
        ),
        ({"distance": np.zeros(S)}, r"axes \(L, S\) = \(5, 7\); got shape \(7,\)"),
        ({"distance": np.zeros((S, L))}, r"axes \(L, S\) = \(5, 7\); got shape \(7, 5\)"),
        ({"distance": np.zeros((4, L, S))}, "distance must broadcast to the shape of the scores"),
        ({"distance": np.full((L, S), np.nan)}, "distance must be finite"),
        ({"distance": np.zeros((L, S), complex)}, "distance must be integers or real numbers"),
        ({"frequencies": np.ones(5)}, r"at most K/2 numbers; got shape \(5,\) for K = 8"),
        ({"frequencies": np.ones((2, 2))}, r"one axis of at most K/2 numbers; got shape \(2, 2\)"),
        ({"frequencies": [np.inf]}, "frequencies must be finite"),
        ({"layout": "halves"}, "layout must be 'interleaved' or 'half'; got 'halves'"),
        (
            {"q": np.zeros((L, 5)), "k": np.zeros((S, 5))},
            "K, the last axis of q, must be even, so that components pair up; got 5",
        ),
    ],
)
def test_scores_say_what_is_wrong_with_their_input(changed, message):
    q, k = data()
    good = {"q": q, "k": k, "distance": np.zeros((L, S))}
    with pytest.raises(ValueError, match=f"rotary_distance_scores: .*{message}"):
        rotary_distance_scores(**{**good, **changed})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rerope_distance([np.nan], 4), "distance must be finite"),
        (lambda: rerope_distance(["a"], 4), "distance must be integers or real numbers"),
        (lambda: rerope_distance([1], 0), "window must be at least 1; got 0"),
        (lambda: rerope_distance([1], 2.5), "window must be a whole number; got 2.5"),
        (lambda: rerope_distance([1], 4, 0.5), "stretch must be at least 1, .*; got 0.5"),
        (lambda: rerope_distance([1], 4, np.nan), "stretch must be finite; got nan"),
        (lambda: self_extend_distance(3, [1], 4, 2), "q_positions must be an axis of positions"),
        (lambda: self_extend_distance([3], [1.5], 4, 2), "k_positions must be whole numbers"),
        (lambda: self_extend_distance([3], [1], 0, 2), "window must be at least 1; got 0"),
        (lambda: self_extend_distance([3], [1], 4, 0), "group must be at least 1; got 0"),
        (lambda: self_extend_distance([[3]] * 2, [[1]] * 3, 4, 2), "batch axes must broadcast"),
        (lambda: chunk_distance([3.0], [1], 4, 2), "q_positions must be whole numbers"),
        (lambda: chunk_distance([3], 1, 4, 2), "k_positions must be an axis of positions"),
        (lambda: chunk_distance([3], [1], 0, 0), "size must be at least 1; got 0"),
        (lambda: chunk_distance([3], [1], 4, -1), "local must be at least 0; got -1"),
        (lambda: chunk_distance([3], [1], 4, 4), "local must be below size; got 4 and 4"),
        (lambda: streaming_distance([3], [0.5], 4, 2), "k_positions must be whole numbers"),
        (lambda: streaming_distance([3], [1], 0, 2), "window must be at least 1; got 0"),
        (lambda: streaming_distance([3], [1], 4, -1), "sinks must be at least 0; got -1"),
    ],
)
def test_distances_say_what_is_wrong_with_their_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
