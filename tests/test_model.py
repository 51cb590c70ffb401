"""The Transformer with every encoding: caches, padding, chunks, norms, bad input."""

import math
from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    Cache,
    Model,
    attention,
    causal_mask,
    decode,
    dynamic_ntk_scaling,
    encode,
    init_params,
    layer_norm,
    linear_scaling,
    llama3_scaling,
    multi_head_attention,
    nezha_table,
    ntk_scaling,
    relative_distance,
    rope,
    rope_frequencies,
    shaw_scores,
    shaw_values,
    softmax,
    value_and_grad,
    yarn_scaling,
)
from pe_numpy.transformer.encodings import (
    Encoding,
    Learned,
    Nezha,
    RelativeKeyQuery,
    Rope,
    Shaw,
    Sizes,
    Tempered,
    Tupe,
    every_encoding,
    rotation,
)

B, L, S, V, D, H, F = 3, 8, 6, 13, 12, 2, 20
ENCODINGS = {
    **every_encoding(length=40, clip=3),
    "rope, half": Rope(layout="half"),
    "rope, YaRN": Rope(scaling=lambda d, length: yarn_scaling(d, 4, 16)),
}
every = pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
GROWING = Rope(scaling=lambda d, length: dynamic_ntk_scaling(d, length, 4))


def built(encoding=None, seed=0, dtype=np.float64, **choices):
    """A small model, its parameters with random biases and gains, and random tokens."""
    sizes = {"n_layers": 2, **choices}
    model = Model(V, D, H, F, encoding=encoding or Encoding(), **sizes)
    rng = np.random.default_rng(seed)
    params = jittered(init_params(model, rng, dtype), rng)
    return model, params, rng.integers(0, V, (B, L))


def jittered(tree, rng):
    """Leave no bias at zero and no gain at one, so that a forgotten one shows."""
    if isinstance(tree, dict):
        return {key: jittered(value, rng) for key, value in tree.items()}
    return np.asarray(tree + 0.1 * rng.standard_normal(tree.shape), tree.dtype)


# ---- every encoding -----------------------------------------------------------------------------


@every
def test_cache_chunks_and_the_whole_give_the_same_logits(encoding):
    model, params, tokens = built(encoding)
    whole = decode(params, model, tokens)
    for chunks in ((4, 1, 1, 1, 1), (3, 3, 2), (1,) * 8):
        cache, start = Cache(model, B, L, np.float64), 0
        for n in chunks:
            logits = decode(params, model, tokens[:, start : start + n], cache=cache)
            assert_allclose(logits, whole[:, start : start + n], rtol=0, atol=1e-10)
            start += n


def test_keys_of_a_growing_base_are_cached_before_they_turn_and_stay_right_in_the_first_layer():
    """Deeper layers hold what the first one said under the base of its day: there it can't be."""
    for n_layers in (1, 2):
        model, params, tokens = built(GROWING, n_layers=n_layers)
        cache, gaps = Cache(model, B, L, np.float64), []
        for t in range(L):
            step = decode(params, model, tokens[:, t : t + 1], cache=cache)[:, 0]
            whole = decode(params, model, tokens[:, : t + 1])[:, -1]
            gaps.append(np.abs(step - whole).max())
        assert max(gaps) < 1e-10 if n_layers == 1 else max(gaps) > 1e-4


@every
def test_left_padding_changes_nothing(encoding):
    model, params, tokens = built(encoding)
    short, pad = 5, L - 5
    alone = decode(params, model, tokens[:1, :short])
    padded, real = tokens.copy(), np.ones((B, L), bool)
    padded[0, pad:], padded[0, :pad], real[0, :pad] = tokens[0, :short], 7, False
    together = decode(params, model, padded, real=real)
    assert_allclose(together[0, pad:], alone[0], rtol=0, atol=1e-10)
    assert_allclose(together[1:], decode(params, model, tokens[1:]), rtol=0, atol=1e-10)
    cache = Cache(model, B, L, np.float64)
    for start, end in ((0, 6), (6, 7), (7, 8)):  # and the cache keeps it so
        step = decode(params, model, padded[:, start:end], real=real[:, start:end], cache=cache)
        assert_allclose(step, together[:, start:end], rtol=0, atol=1e-10)


@every
def test_padding_between_tokens_counts_nothing(encoding):
    """As after a prompt that was padded on the right: what a padded token says is not counted."""
    model, params, tokens = built(encoding)
    keep = np.array([0, 1, 2, 5, 6, 7])
    real = np.isin(np.arange(L), keep)[None].repeat(B, axis=0)
    alone = decode(params, model, tokens[:, keep])
    together = decode(params, model, tokens, real=real)
    assert_allclose(together[:, keep], alone, rtol=0, atol=1e-10)
    cache = Cache(model, B, L, np.float64)
    for start, end in ((0, 5), (5, 6), (6, 8)):
        step = decode(params, model, tokens[:, start:end], real=real[:, start:end], cache=cache)
        here = real[0, start:end]
        assert_allclose(step[:, here], together[:, start:end][:, here], rtol=0, atol=1e-10)


@every
def test_no_token_sees_its_future(encoding):
    model, params, tokens = built(encoding)
    changed = tokens.copy()
    changed[:, 5:] = (changed[:, 5:] + 1) % V
    before, after = decode(params, model, tokens), decode(params, model, changed)
    assert_allclose(after[:, :5], before[:, :5], rtol=0, atol=1e-12)
    assert np.abs(after[:, 5:] - before[:, 5:]).max() > 1e-3


@every
def test_encoder_ignores_padding_and_decoder_looks_at_the_memory(encoding):
    model, params, tokens = built(encoding, n_encoder_layers=2)
    source = np.random.default_rng(1).integers(0, V, (B, S))
    real = np.ones((B, S), bool)
    real[0, 4:] = False
    memory = encode(params, model, source, real)
    assert memory.shape == (B, S, D)
    assert_allclose(memory[:1, :4], encode(params, model, source[:1, :4]), rtol=0, atol=1e-10)
    logits = decode(params, model, tokens, memory, real)
    deaf = decode(params, model, tokens, 0 * memory, real)
    assert logits.shape == (B, L, V) and np.abs(logits - deaf).max() > 1e-3
    cache = Cache(model, B, L, np.float64)
    steps = [
        decode(params, model, tokens[:, t : t + 1], memory, real, cache=cache) for t in range(L)
    ]
    assert_allclose(np.concatenate(steps, axis=1), logits, rtol=0, atol=1e-10)


@every
def test_float32_parameters_give_float32_logits_close_to_float64(encoding):
    model, params, tokens = built(encoding, dtype=np.float32)
    logits = decode(params, model, tokens)
    assert logits.dtype == np.float32
    exact = decode(as_float64(params), model, tokens)
    assert_allclose(logits, exact, rtol=0, atol=2e-4)


def as_float64(tree):
    if isinstance(tree, dict):
        return {key: as_float64(value) for key, value in tree.items()}
    return tree.astype(np.float64)


@pytest.mark.parametrize("name", every_encoding(8))
def test_position_is_seen_by_every_encoding_and_by_none_only_through_the_mask(name):
    """Two layers and a causal mask tell order by themselves; an encoder without a code is blind."""
    encoding = every_encoding(length=40, clip=3)[name]
    model, params, _ = built(encoding, n_encoder_layers=1)
    source = np.random.default_rng(2).permutation(V)[None, :S]
    order = np.array([1, 0, 2, 3, 4, 5])
    moved = encode(params, model, source[:, order])
    gap = np.abs(moved - encode(params, model, source)[:, order]).max()
    assert gap < 1e-12 if name == "none" else gap > 1e-3


@every
def test_every_parameter_of_an_encoding_changes_the_logits(encoding):
    model, params, tokens = built(encoding)
    before = decode(params, model, tokens)
    stack = params["decoder"]
    for owner in (stack["shared"], stack["layers"]["1"]["encoding"]):
        for name, array in owner.items():
            owner[name] = array + 0.5 * np.random.default_rng(5).standard_normal(array.shape)
            assert np.abs(decode(params, model, tokens) - before).max() > 1e-4, name
            owner[name] = array


def test_t5_looks_both_ways_in_the_encoder():
    """Causal buckets would put the whole future into one: then its order could not matter."""
    model, params, _ = built(every_encoding(40)["t5"], n_encoder_layers=1)
    source = np.array([[1, 2, 3, 4, 5, 6]])
    swapped = source[:, [0, 2, 1, 3, 4, 5]]
    first = encode(params, model, source)[:, 0] - encode(params, model, swapped)[:, 0]
    assert np.abs(first).max() > 1e-4


def test_padding_of_the_source_is_not_looked_at():
    model, params, tokens = built(n_encoder_layers=1)
    memory = np.random.default_rng(1).standard_normal((B, S, D))
    real = np.ones((B, S), bool)
    real[:, 4:] = False
    loud = np.where(real[..., None], memory, 100.0)
    assert_array_equal(
        decode(params, model, tokens, loud, real), decode(params, model, tokens, memory, real)
    )


def test_queries_and_keys_are_taken_at_positions_of_their_own():
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((B, H, 2, 6)), rng.standard_normal((B, H, 5, 6))
    q_at, k_at = np.array([3, 4]), np.arange(5)
    turned = Rope().turn({}, q, k, q_at, k_at)
    assert_array_equal(turned[0], rope(q, q_at))
    assert_array_equal(turned[1], rope(k, k_at))
    tables = every_encoding(8, clip=3)["shaw"].layer(rng, Sizes(D, H, 1))
    expected = shaw_scores(q, k, tables["key_table"], relative_distance(q_at, k_at))
    assert_array_equal(every_encoding(8, clip=3)["shaw"].scores(tables, q, k, q_at, k_at), expected)


def test_nezha_is_shaw_with_a_fixed_table_in_both_places():
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, B, H, 5, 6)).astype(np.float32)
    at, nezha, table = np.arange(5), Nezha(clip=3), nezha_table(3, 6)
    tables, distance = {"key_table": table, "value_table": table}, relative_distance(at, at)
    assert nezha.layer(rng, Sizes(D, H, 1)) == nezha.shared(rng, Sizes(D, H, 1)) == {}
    scores, shaw = nezha.scores({}, q, k, at, at), Shaw(clip=3)
    assert_array_equal(scores, shaw.scores(tables, q, k, at, at))
    mixed = nezha.mix({}, softmax(scores), v, at, at)
    assert_array_equal(mixed, shaw_values(softmax(scores), v, table, distance))
    assert scores.dtype == mixed.dtype == np.float32


def test_relative_key_query_serves_texts_of_its_length_and_refuses_longer_ones():
    rng, whole = np.random.default_rng(0), RelativeKeyQuery(length=5)
    params = whole.layer(rng, Sizes(D, H, 1))
    q = rng.standard_normal((B, H, 6, D // H))
    assert params["table"].shape == (9, D // H)
    assert whole.scores(params, q[..., :5, :], q[..., :5, :], np.arange(5), np.arange(5)).any()
    with pytest.raises(ValueError, match="got -5 to 5"):
        whole.scores(params, q, q, np.arange(6), np.arange(6))


# ---- the parts ----------------------------------------------------------------------------------


def test_multi_head_attention_equals_one_attention_for_each_slice():
    rng = np.random.default_rng(0)
    params = {f"W_{n}": rng.standard_normal((D, D)) for n in "qkvo"}
    params |= {f"b_{n}": rng.standard_normal(D) for n in "qkvo"}
    x, K = rng.standard_normal((B, L, D)), D // H
    mask = causal_mask(np.arange(L), np.arange(L))
    heads = []
    for h in range(H):
        own = slice(h * K, h * K + K)
        q, k, v = (x @ params[f"W_{n}"][:, own] + params[f"b_{n}"][own] for n in "qkv")
        heads.append(attention(q, k, v, mask)[0])
    expected = np.concatenate(heads, axis=-1) @ params["W_o"] + params["b_o"]
    k, v = (
        (x @ params[f"W_{n}"] + params[f"b_{n}"]).reshape(B, L, H, K).swapaxes(1, 2) for n in "kv"
    )
    output, weights = multi_head_attention(params, x, x, H, mask)
    assert_array_equal(output, multi_head_attention(params, x, (k, v), H, mask)[0])
    assert_allclose(output, expected, rtol=0, atol=1e-12)
    assert weights.shape == (B, H, L, L)


def test_multi_head_attention_refuses_shapes_that_do_not_fit():
    params, x = {f"W_{n}": np.eye(D) for n in "qkvo"}, np.ones((B, L, D))
    with pytest.raises(ValueError, match=f"n_heads must divide the width D; got {D + 1} and {D}"):
        multi_head_attention(params, x, x, D + 1)
    with pytest.raises(ValueError, match="W must have the axes"):
        multi_head_attention(params, x[..., 1:], x, H)
    with pytest.raises(ValueError, match="mask must be boolean"):
        multi_head_attention(params, x, x, H, np.ones((L, L)))


def test_init_params_refuses_what_would_give_no_parameters():
    model, rng = Model(V, D, H, D, 1), np.random.default_rng(0)
    with pytest.raises(ValueError, match="model must be a Model; got dict"):
        init_params({}, rng)
    with pytest.raises(ValueError, match=r"rng must be a generator, .*; got int"):
        init_params(model, 0)
    with pytest.raises(ValueError, match="dtype must be a floating one"):
        init_params(model, rng, int)


@pytest.mark.parametrize("n", [1, 4])
def test_given_keys_turn_by_their_own_positions(n):
    """With n = 1 a key's turn by the query's position would broadcast, and be wrong in silence."""
    rng = np.random.default_rng(8)
    params = {f"W_{name}": rng.standard_normal((D, D)) for name in "qkvo"}
    x, (k, v) = rng.standard_normal((B, n, D)), rng.standard_normal((2, B, H, S, D // H))
    at, k_at = np.arange(S, S + n), np.arange(S)
    q = (x @ params["W_q"]).reshape(B, n, H, D // H).swapaxes(1, 2)
    _, expected = attention(rope(q, at), rope(k, k_at), v)
    _, weights = multi_head_attention(
        params, x, (k, v), H, encoding=Rope(), q_positions=at, k_positions=k_at
    )
    assert_allclose(weights, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind, eps", [("layer", 1e-5), ("rms", 1e-6)])
@pytest.mark.parametrize("norm_eps", [None, 0.5])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_norm_stands_where_the_formula_says(norm, norm_eps, kind, eps):
    choices = {"norm": norm, "norm_kind": kind, "norm_eps": norm_eps}
    model, params, tokens = built(**choices, n_layers=1, scaled_embedding=False)
    layer = params["decoder"]["layers"]["0"]
    x = params["embedding"][tokens]
    mask = causal_mask(np.arange(L), np.arange(L))

    def look(x):
        return multi_head_attention(layer["attention"], x, x, H, mask)[0]

    def think(x):
        own = layer["feed_forward"]
        return np.maximum(x @ own["W_1"] + own["b_1"], 0) @ own["W_2"] + own["b_2"]

    def normed(name, x):
        own = params["decoder"]["norm"] if name == "norm" else layer[name]
        centre = x.mean(axis=-1, keepdims=True) if kind == "layer" else 0
        spread = np.mean((x - centre) ** 2, axis=-1, keepdims=True) + (norm_eps or eps)
        return own["gain"] * (x - centre) / np.sqrt(spread) + own.get("bias", 0)

    if norm == "post":
        x = normed("attention_norm", x + look(x))
        x = normed("feed_forward_norm", x + think(x))
    else:
        x = x + look(normed("attention_norm", x))
        x = x + think(normed("feed_forward_norm", x))
        x = normed("norm", x)
    assert_allclose(decode(params, model, tokens), x @ params["output"], rtol=0, atol=1e-12)


def test_embedding_is_multiplied_by_the_root_of_the_width_and_may_be_tied():
    model, params, tokens = built(tied=True)
    assert "output" not in params
    plain = Model(**{**vars(model), "scaled_embedding": False})
    scaled = {**params, "embedding": params["embedding"] * math.sqrt(D)}
    expected = decode(scaled, plain, tokens) / math.sqrt(D)  # the output layer is scaled back
    assert_allclose(decode(params, model, tokens), expected, rtol=0, atol=1e-10)


def test_dropout_acts_only_with_a_generator_and_keeps_the_mean():
    model, params, tokens = built(dropout=0.2)
    still = decode(params, model, tokens)
    assert_array_equal(still, decode(params, model, tokens))
    noisy = [decode(params, model, tokens, rng=np.random.default_rng(s)) for s in (0, 0, 1)]
    assert_array_equal(noisy[0], noisy[1])
    assert np.abs(noisy[0] - noisy[2]).max() > 0.1 and np.abs(noisy[0] - still).max() > 0.1


def test_weights_can_be_watched():
    model, params, tokens = built(n_encoder_layers=1, cross_heads=1)
    source, watch = np.arange(S)[None] + np.zeros((B, 1), int), {}
    decode(params, model, tokens, encode(params, model, source), watch=watch)
    assert watch["attention 1"].shape == (B, H, L, L)
    assert watch["cross 0"].shape == (B, 1, L, S)
    assert_allclose(watch["cross 1"].sum(-1), 1, rtol=1e-12)


@pytest.mark.parametrize("choices", [{"norm_kind": "rms", "gated": True, "biases": False}, {}])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
def test_every_choice_runs_and_counts_its_parameters(choices, activation):
    model, params, tokens = built(activation=activation, **choices)
    assert np.isfinite(decode(params, model, tokens)).all()
    layer = params["decoder"]["layers"]["0"]
    assert ("W_gate" in layer["feed_forward"]) == choices.get("gated", False)
    assert ("b_q" in layer["attention"]) == choices.get("biases", True)
    assert ("bias" in layer["attention_norm"]) == (choices.get("norm_kind") != "rms")


def test_nothing_is_changed_in_place():
    model, params, tokens = built(every_encoding(40)["shaw"], n_encoder_layers=1)
    before = {name: array.copy() for name, array in flat(params)}
    decode(params, model, tokens, encode(params, model, tokens))
    for name, array in flat(params):
        assert_array_equal(array, before[name])


def flat(tree, path=""):
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from flat(value, f"{path}/{key}")
    else:
        yield path, tree


# ---- the cache: refusals, memories, heads -------------------------------------------------------


def with_memory(encoding=None, **choices):
    """An encoder-decoder, its parameters, tokens, a memory and which of its tokens are real."""
    model, params, tokens = built(encoding, n_encoder_layers=1, **choices)
    source = np.random.default_rng(1).integers(0, V, (B, S))
    real = np.ones((B, S), bool)
    real[0, 4:] = False
    return model, params, tokens, encode(params, model, source, real), real


REFUSED = {
    "token above the vocabulary": ({"tokens": [[1], [2], [V]]}, "tokens must be from 0 to V - 1"),
    "token below 0": ({"tokens": [[1], [2], [-1]]}, "tokens must be from 0 to V - 1"),
    "fractional tokens": ({"tokens": np.full((B, 1), 0.5)}, "tokens must be whole numbers"),
    "tokens of one axis": ({"tokens": [1, 2, 3]}, r"tokens must have the axes \(B, L\)"),
    "another batch": (
        {"tokens": [[1]], "memory": np.zeros((1, S, D)), "memory_real": None},
        "the cache must have the",
    ),
    "real in numbers": ({"real": np.ones((B, 1))}, "real must be boolean"),
    "real too long": ({"real": np.ones((B, 2), bool)}, "real must be boolean and of the shape"),
    "no memory": ({"memory": None}, "memory must be given if and only if"),
    "memory of two axes": (
        {"memory": np.zeros((B, D))},
        r"memory must have the axes \(.*B, S, D\)",
    ),
    "memory of one sequence": ({"memory": np.zeros((1, S, D))}, r"memory must have the shape .*"),
    "memory of another width": ({"memory": np.zeros((B, S, D + 1))}, "memory must have the shape"),
    "memory of words": ({"memory": np.full((B, S, D), "a")}, "memory must hold real numbers"),
    "memory_real in numbers": ({"memory_real": np.ones((B, S))}, "memory_real must be boolean"),
    "memory_real too short": ({"memory_real": np.ones((B, 2), bool)}, "memory_real must be bool"),
    "no room": ({"tokens": np.ones((B, 9), int)}, "Cache: there is room for"),
    "beyond the table": ({}, "a table of 7 rows serves positions"),
}


@pytest.mark.parametrize("encoding", [Learned(7), Tupe(length=7)], ids=["learned", "tupe"])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("read", [0, 3])
@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_call_leaves_the_cache_as_it_was(name, read, padded, encoding):
    model, params, tokens, memory, memory_real = with_memory(encoding)
    real = np.ones((B, L), bool)
    real[0, :2] = not padded
    tokens = tokens[:, : 5 + 2 * padded]

    def call(start, end, cache, **change):
        arguments = {"tokens": tokens[:, start:end], "real": real[:, start:end], "memory": memory}
        arguments = {**arguments, "memory_real": memory_real, "cache": cache, **change}
        if arguments["real"].shape != np.shape(arguments["tokens"]) and "real" not in change:
            arguments["real"] = None
        return decode(params, model, **arguments)

    change, message = REFUSED[name]
    caches = [Cache(model, B, 8, np.float64) for _ in range(2)]
    for cache in caches:
        if read:
            call(0, read, cache)
    start = read
    if name == "beyond the table":
        change = {"tokens": np.ones((B, 8 - read), int)}
    watch = {}
    with pytest.raises(ValueError, match=message):
        call(start, start + 1, caches[0], watch=watch, **change)
    assert caches[0].length == read and not watch
    for t in range(read, tokens.shape[1]):
        steps = [call(t, t + 1, cache) for cache in caches]
        assert_allclose(steps[0], steps[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("stop", [ValueError("in the last layer"), KeyboardInterrupt()])
@pytest.mark.parametrize("read", [0, 3])
def test_a_call_that_stops_half_way_leaves_the_cache_as_it_was(stop, read):
    model, params, tokens, memory, _ = with_memory()
    clean = decode(params, model, tokens, memory)
    cache = Cache(model, B, L, np.float64)
    if read:
        decode(params, model, tokens[:, :read], memory, cache=cache)
    layers = params["decoder"]["layers"]
    whole = layers["1"]["feed_forward"]

    class Stopping(dict):
        def __contains__(self, key):
            raise stop

    layers["1"]["feed_forward"] = Stopping(whole)
    other = np.random.default_rng(9).standard_normal((B, S, D)) if not read else memory
    watch = {}
    with pytest.raises(type(stop)):
        unreal = np.zeros((B, 1), bool)
        decode(params, model, tokens[:, :1], other, real=unreal, cache=cache, watch=watch)
    assert not watch
    layers["1"]["feed_forward"] = whole
    for t in range(read, L):  # and no memory of the call that failed
        step = decode(params, model, tokens[:, t : t + 1], memory, cache=cache)[:, 0]
        assert_allclose(step, clean[:, t], rtol=0, atol=1e-12)


def test_a_cache_serves_one_memory():
    model, params, tokens, memory, real = with_memory()
    whole = decode(params, model, tokens, memory, real)
    cache = Cache(model, B, L, np.float64)
    decode(params, model, tokens[:, :3], memory, real, cache=cache)
    changed = memory.copy()
    changed[1, 2, 3] += 1e-9
    for other in (changed, memory[:, :4], memory[:, ::-1]):
        with pytest.raises(ValueError, match="decode: the cache serves one memory; got another, m"):
            decode(params, model, tokens[:, 3:4], other, cache=cache)
    again = decode(params, model, tokens[:, 3:4], memory.copy(), real, cache=cache)
    assert_allclose(again, whole[:, 3:4], rtol=0, atol=1e-12)
    memory[...] = changed  # in place: the cache knows what it was given
    with pytest.raises(ValueError, match="decode: the cache serves one memory"):
        decode(params, model, tokens[:, 4:5], memory, real, cache=cache)


def test_a_cache_serves_one_set_of_parameters():
    model, params, tokens = built()
    cache = Cache(model, B, L, np.float64)
    decode(params, model, tokens[:, :3], cache=cache)
    with pytest.raises(ValueError, match="decode: the cache serves one set of parameters; got ano"):
        decode(built(seed=1)[1], model, tokens[:, 3:4], cache=cache)


def test_heads_of_another_width_than_d_by_h_work_with_a_cache_as_they_do_without():
    model, params, tokens = built(Rope())
    rng, wide = np.random.default_rng(3), H * 10
    for layer in params["decoder"]["layers"].values():
        own = layer["attention"]
        for n, width in (("q", wide), ("k", wide), ("v", H * 3)):
            own[f"W_{n}"], own[f"b_{n}"] = (
                rng.standard_normal((D, width)),
                rng.standard_normal(width),
            )
        own["W_o"] = rng.standard_normal((H * 3, D))
    whole = decode(params, model, tokens)
    for chunks in ((4, 1, 1, 1, 1), (1,) * 8):
        cache, start = Cache(model, B, L, np.float64), 0
        for n in chunks:
            logits = decode(params, model, tokens[:, start : start + n], cache=cache)
            assert_allclose(logits, whole[:, start : start + n], rtol=0, atol=1e-10)
            start += n


# ---- RoPE's scalings ----------------------------------------------------------------------------

STATIC = {
    "plain": None,
    "linear": lambda d, length: linear_scaling(rope_frequencies(d), 4),
    "ntk": lambda d, length: ntk_scaling(d, 4),
    "yarn": lambda d, length: yarn_scaling(d, 4, 16),
    "llama 3": lambda d, length: llama3_scaling(rope_frequencies(d), 8, 32),
    "partial": lambda d, length: rope_frequencies(d // 3 * 2),
    "partial, YaRN": lambda d, length: yarn_scaling(d // 3 * 2, 4, 16),
    "frequencies": lambda d, length: np.array([0.5, 0.25]),
}
BY_LENGTH = {
    "dynamic NTK": GROWING.scaling,
    "from a length on": lambda d, length: rope_frequencies(d, 100.0 if length > 4 else 10000.0),
    "where there is a length": lambda d, length: rope_frequencies(d, 100.0 if length else 9.0),
    "one length alone": lambda d, length: rope_frequencies(d, 100.0 if length == 5 else 9.0),
    "any but one": lambda d, length: rope_frequencies(d, 100.0 if length != 5 else 9.0),
    "looked up": lambda d, length: {5: rope_frequencies(d)}.get(length, rope_frequencies(d, 9.0)),
}


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("scaling", [*STATIC, *BY_LENGTH])
def test_keys_turn_once_unless_their_frequencies_change_with_the_length(
    scaling, layout, monkeypatch
):
    model, params, tokens = built(
        Rope(layout=layout, scaling={**STATIC, **BY_LENGTH}[scaling]), n_layers=1
    )
    whole = [decode(params, model, tokens[:, : t + 1])[:, -1] for t in range(L)]
    turned = []

    def counting(x, *arguments):
        turned.append(x.shape[-3] * x.shape[-2])
        return rope(x, *arguments)

    monkeypatch.setattr(rotation, "rope", counting)
    cache = Cache(model, B, L, np.float64)
    for t in range(L):
        step = decode(params, model, tokens[:, t : t + 1], cache=cache)[:, 0]
        assert_allclose(step, whole[t], rtol=0, atol=1e-10)
        keys = sum(turned) // H - 1  # one of them is the query
        turned.clear()
        assert keys == (1 if scaling in STATIC else t + 1)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("n", [1, 4])
def test_attention_factor_multiplies_what_turns_and_nothing_else(layout, n):
    rng = np.random.default_rng(0)
    at = np.arange(S, S + n)
    q, k = rng.standard_normal((2, B, H, n, 6)).astype(np.float32)
    theta, factor = yarn_scaling(4, 8, 16)
    assert factor > 1.2
    partial = Rope(layout=layout, scaling=lambda d, length: (theta, factor))
    for x, got in zip((q, k), partial.turn({}, q, k, at, at), strict=True):
        turned = rope(x, at, theta, layout)
        assert got.dtype == np.float32
        assert_array_equal(got[..., 4:], x[..., 4:])
        assert_allclose(got[..., :4], factor * turned[..., :4], rtol=1e-6)


# ---- bad input ----------------------------------------------------------------------------------

SIZES = {"vocabulary": V, "d_model": 12, "n_heads": 2, "d_ff": F, "n_layers": 1}


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("vocabulary", (0, -3), "must be at least 1; got"),
        ("vocabulary", (2.0, "2", None, True), "must be a whole number; got"),
        ("d_model", (0,), "must be at least 1; got 0"),
        ("d_model", (12.0, "12", True), "must be a whole number; got"),
        ("n_heads", (0, -2), "must be at least 1; got"),
        ("n_heads", (2.0, True), "must be a whole number; got"),
        ("n_heads", (5, 24), "must divide d_model; got"),
        ("d_ff", (0,), "must be at least 1; got 0"),
        ("d_ff", (2.5, True), "must be a whole number; got"),
        ("n_layers", (0,), "must be at least 1; got 0"),
        ("n_layers", (1.0, True), "must be a whole number; got"),
        ("n_encoder_layers", (-1,), "must be at least 0; got -1"),
        ("n_encoder_layers", (1.0, None, False), "must be a whole number; got"),
        (
            "encoding",
            ("rope", Rope, None, {"base": 9.0}),
            r"must be an Encoding, such as Rope\(\), or a tuple of them;",
        ),
        ("norm", ("middle", "Pre", None, 1), "must be 'pre' or 'post'; got"),
        ("norm_kind", ("batch", None, ["rms"]), "must be 'layer' or 'rms'; got"),
        ("activation", ("swish", "ReLU", None, np.tanh), "must be 'relu' or .*'silu'; got"),
        ("gated", ("no", 1, None, "silu"), "must be True or False; got"),
        ("biases", ("no", 0, None), "must be True or False; got"),
        ("tied", ("no", 1.0), "must be True or False; got"),
        ("scaled_embedding", (12, None), "must be True or False; got"),
        ("cross_heads", (0, -1), "must be at least 1; got"),
        ("cross_heads", (2.0, True, "2"), "must be a whole number; got"),
        ("cross_heads", (5, 24), "must divide d_model; got"),
        ("dropout", (1.0, 1.5, -0.1), "must be from 0 to below 1; got"),
        ("dropout", (np.nan, np.inf), "must be finite; got"),
        ("dropout", ("0.1", None, True, [0.1, 0.2]), "must be one real number; got"),
        ("encoding", ((),), r"must have an entry for a layer; got \(\)"),
        ("encoding", ((Rope(), "rope"), (None,)), "must be an Encoding, such as .*; got"),
        ("n_kv_heads", (0, -1), "must be at least 1; got"),
        ("n_kv_heads", (1.0, True), "must be a whole number; got"),
        ("n_kv_heads", (5, 24), "must divide n_heads; got"),
        ("window", ((),), r"must have an entry for a layer; got \(\)"),
        ("window", (0, -3, (None, 0)), "must be at least 1; got"),
        ("window", (2.0, "4", True), "must be a whole number; got"),
        ("chunk", (0,), "must be at least 1; got 0"),
        ("chunk", (2.5, False), "must be a whole number; got"),
        ("sinks", (-1,), "must be at least 0; got -1"),
        ("sinks", (None, 1.0), "must be a whole number; got"),
        ("sinks", (2,), "need a window that could hide them; got 2"),
        ("sink_logits", (1, None, "yes"), "must be True or False; got"),
        ("d_head", (0, -4), "must be at least 1; got"),
        ("d_head", (8.0, True, "8"), "must be a whole number; got"),
        ("norm_eps", (0, -1e-6), "must be above 0; got"),
        ("norm_eps", (np.nan, np.inf), "must be finite; got"),
        ("norm_eps", ("1e-6", True, [1e-6]), "must be one real number; got"),
    ],
)
def test_every_wrong_choice_of_a_model_is_refused_by_the_name_of_its_field(field, values, message):
    for value in values:
        with pytest.raises(ValueError, match=f"^Model: {field} {message}"):
            Model(**{**SIZES, field: value})


def test_every_field_of_a_model_has_its_wrong_choices_tested():
    tested = test_every_wrong_choice_of_a_model_is_refused_by_the_name_of_its_field
    (mark,) = tested.pytestmark
    assert {field for field, *_ in mark.args[1]} == {field.name for field in fields(Model)}


def test_right_choices_are_taken():
    for choices in (
        {"cross_heads": None},
        {"cross_heads": np.int64(3)},
        {"dropout": 0},
        {"dropout": np.float32(0.5)},
        {"gated": np.True_},
        {"encoding": Learned(3)},
        {"n_heads": 5, "cross_heads": 7, "d_head": np.int64(4)},
        {"norm_eps": np.float32(1e-6)},
    ):
        Model(**{**SIZES, **choices})


def test_bad_input_is_named_with_the_rule_and_the_numbers():
    model, params, tokens = built(every_encoding(length=6)["learned"])
    for call, message in [
        (lambda: Model(V, 12, 5, F, 1), "Model: n_heads must divide d_model; got 5 and 12"),
        (lambda: decode(params, model, [[V]]), "tokens must be from 0 to V - 1 = 12; got 13"),
        (lambda: decode(params, model, [[-1]]), "tokens must be from 0 to V - 1 = 12; got -1"),
        (lambda: decode(params, model, [1, 2]), r"decode: tokens must have the axes \(B, L\); got"),
        (lambda: decode(params, model, [[0.5]]), "decode: tokens must be whole numbers"),
        (lambda: decode(params, model, tokens), "a table of 6 rows serves positions 0 to 5; got 6"),
        (
            lambda: decode(params, model, [[1]], real=[[1]]),
            "real must be boolean and of the shape",
        ),
        (lambda: encode(params, model, [[1]]), "encode: the model has no encoder; give it"),
        (
            lambda: decode(params, model, [[1]], memory=np.zeros((1, 2, D))),
            "memory must be given if and only if the model has an encoder; got one",
        ),
        (
            lambda: decode(params, model, [[1]], cache=Cache(model, 2, 5, np.float64)),
            "batch and dtype of the tokens and parameters, 1 and float64; got 2 and float64",
        ),
        (
            lambda: decode(params, model, [[1]], cache=Cache(model, 1, 5, np.float32)),
            "1 and float64; got 1 and float32",
        ),
        (
            lambda: decode(params, model, [[1, 2, 3]], cache=Cache(model, 1, 2, np.float64)),
            "Cache: there is room for 2 tokens; got 3",
        ),
        (
            lambda: decode(params, model, [[1]], cache=Cache(built()[0], 1, 2, np.float64)),
            "decode: the cache must be made for this model",
        ),
        (lambda: Cache(model, 0, 3), "Cache: batch must be at least 1; got 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


# ---- masks that carry position, and sinks -------------------------------------------------------

SIGHTS = {
    "window": {"window": 3},
    "window and sinks": {"window": 2, "sinks": 1},
    "chunk": {"chunk": 3},
}
ALLOWED = {
    "window": lambda i, j: 0 <= i - j < 3,
    "window and sinks": lambda i, j: 0 <= i - j and (i - j < 2 or j < 1),
    "chunk": lambda i, j: 0 <= i - j and i // 3 == j // 3,
}


@pytest.mark.parametrize("sight", SIGHTS)
def test_a_token_sees_its_window_or_its_chunk_and_nothing_else(sight):
    model, params, tokens = built(Rope(), **SIGHTS[sight])
    watch = {}
    decode(params, model, tokens, watch=watch)
    allowed = np.array([[ALLOWED[sight](i, j) for j in range(L)] for i in range(L)])
    for layer in ("attention 0", "attention 1"):
        assert_array_equal(watch[layer] > 0, np.broadcast_to(allowed, (B, H, L, L)))


@every
@pytest.mark.parametrize("sight", SIGHTS)
def test_cache_and_left_padding_keep_what_is_in_sight(encoding, sight):
    model, params, tokens = built(encoding, sink_logits=True, **SIGHTS[sight])
    alone = decode(params, model, tokens[:1, :5])
    padded, real = tokens.copy(), np.ones((B, L), bool)
    padded[0, 3:], padded[0, :3], real[0, :3] = tokens[0, :5], 7, False
    together = decode(params, model, padded, real=real)
    assert_allclose(together[0, 3:], alone[0], rtol=0, atol=1e-10)
    cache = Cache(model, B, L, np.float64)
    for start, end in ((0, 5), (5, 6), (6, 8)):
        step = decode(params, model, padded[:, start:end], real=real[:, start:end], cache=cache)
        assert_allclose(step, together[:, start:end], rtol=0, atol=1e-10)


def test_what_lies_beyond_all_windows_changes_nothing():
    """Two layers of window 3 reach 2 * (3 - 1) = 4 tokens back, and no farther."""
    model, params, tokens = built(Rope(), window=3)
    changed = tokens.copy()
    changed[:, 2] = (changed[:, 2] + 1) % V
    moved = np.abs(decode(params, model, changed) - decode(params, model, tokens)).max(axis=(0, 2))
    assert (moved[2:7] > 1e-4).all() and moved[[0, 1, 7]].max() < 1e-12


@pytest.mark.parametrize("encoding", [Rope(), every_encoding(40, clip=3)["shaw"]])
def test_sink_logits_take_weight_from_the_keys_of_each_self_attention(encoding):
    model, params, tokens = built(encoding, n_encoder_layers=1, sink_logits=True)
    plain = built(encoding, n_encoder_layers=1)[0]
    assert "sink" not in params["decoder"]["layers"]["0"]["cross"]
    for stack in ("encoder", "decoder"):
        for layer in params[stack]["layers"].values():
            assert layer["attention"]["sink"].shape == (H,)
            layer["attention"]["sink"] = np.full(H, -np.inf)
    memory = encode(params, model, tokens)
    before = decode(params, model, tokens, memory)
    assert_array_equal(memory, encode(params, plain, tokens))
    assert_array_equal(before, decode(params, plain, tokens, memory))
    params["decoder"]["layers"]["0"]["attention"]["sink"] = np.array([-np.inf, 1.0])
    watch = {}
    assert np.abs(decode(params, model, tokens, memory, watch=watch) - before).max() > 1e-3
    shares = watch["attention 0"].sum(axis=-1)
    assert_allclose(shares[:, 0], 1, rtol=0, atol=1e-12)
    assert (shares[:, 1] < 0.99).all()


def test_windows_and_chunks_exclude_each_other():
    with pytest.raises(ValueError, match="exclude each other in a layer; got 4 and 8 in layer 1"):
        Model(V, D, H, F, 2, window=(None, 4), chunk=8)
    assert Model(V, D, H, F, 2, window=(None, 4), chunk=(8, None)).of_layer("chunk", 2) == 8


# ---- one encoding, or one for each layer; fewer heads of keys -----------------------------------

MIXED = (every_encoding(40, clip=3)["t5"], Rope(), every_encoding(40)["sinusoidal"], Rope())


def test_a_pattern_of_one_encoding_is_that_encoding():
    for encoding in (Rope(), every_encoding(40, clip=3)["t5"]):
        model, params, tokens = built(encoding, n_encoder_layers=2)
        pattern = built((encoding,) * 3, n_encoder_layers=2)[0]
        memory = encode(params, model, tokens)
        assert_array_equal(encode(params, pattern, tokens), memory)
        expected = decode(params, model, tokens, memory)
        assert_array_equal(decode(params, pattern, tokens, memory), expected)


def test_layers_take_their_encodings_in_turn_and_equal_ones_share():
    model, params, tokens = built(MIXED, n_layers=5, n_encoder_layers=5)
    for stack in ("encoder", "decoder"):
        assert {n: list(own) for n, own in params[stack]["shared"].items()} == {
            "0": ["table"], "1": [], "2": []
        }  # fmt: skip
    watch, plain = {}, {}
    decode(params, model, tokens, encode(params, model, tokens), watch=watch)
    params["decoder"]["shared"]["0"]["table"] += np.arange(H)
    decode(params, model, tokens, encode(params, model, tokens), watch=plain)
    assert_allclose(watch["attention 0"], plain["attention 0"], rtol=0, atol=1e-12)  # same for all
    params["decoder"]["shared"]["0"]["table"][1] += 5
    decode(params, model, tokens, encode(params, model, tokens), watch=plain)
    assert np.abs(watch["attention 0"] - plain["attention 0"]).max() > 0.1


def test_each_layer_of_a_pattern_sees_with_its_own_encoding_and_mask():
    """The first layer of (T5, none) is that of T5, with its window; the second that of none."""
    t5 = every_encoding(40, clip=3)["t5"]
    model, params, tokens = built((t5, Encoding()), window=(3, None))
    watch = {}
    decode(params, model, tokens, watch=watch)
    first = built(t5, window=3)[0]
    own = {**params, "decoder": {**params["decoder"], "shared": params["decoder"]["shared"]["0"]}}
    alone = {}
    decode(own, first, tokens, watch=alone)
    assert_array_equal(watch["attention 0"], alone["attention 0"])
    assert np.abs(watch["attention 1"] - alone["attention 1"]).max() > 1e-3
    seen = watch["attention 1"][0, 0] > 0
    assert_array_equal(seen, causal_mask(np.arange(L), np.arange(L)))


def test_an_encoding_touches_its_own_layers_alone():
    model, params, tokens = built(
        (Encoding(), every_encoding(40, clip=3)["t5"]), n_encoder_layers=2
    )
    before, after = {}, {}
    memory = encode(params, model, tokens)
    decode(params, model, tokens, memory, watch=before)
    params["decoder"]["shared"]["1"]["table"][1] += 5
    params["encoder"]["shared"]["1"]["table"][1] += 5
    decode(params, model, tokens, memory, watch=after)
    assert_array_equal(before["attention 0"], after["attention 0"])
    assert np.abs(before["attention 1"] - after["attention 1"]).max() > 0.1
    assert np.abs(encode(params, model, tokens) - memory).max() > 1e-3


def test_every_encoding_of_a_pattern_may_change_the_token_vectors():
    """Sinusoids are added once, before the first layer, whichever layers they stand for."""
    model, params, tokens = built(every_encoding(40)["sinusoidal"])
    pattern = built((Encoding(), every_encoding(40)["sinusoidal"]))[0]
    mixed = {**params, "decoder": {**params["decoder"], "shared": {"0": {}, "1": {}}}}
    assert_array_equal(decode(mixed, pattern, tokens), decode(params, model, tokens))


def test_what_no_layer_of_a_stack_has_is_neither_made_nor_added():
    """A pattern longer than the stack: the sinusoids stand for a third layer, and there is none."""
    short = (every_encoding(40, clip=3)["t5"], Rope(), every_encoding(40)["sinusoidal"])
    model, params, tokens = built(short, n_encoder_layers=1)
    assert list(params["decoder"]["shared"]) == ["0", "1"]
    assert list(params["encoder"]["shared"]) == ["table"]
    same = built(short[:2], n_encoder_layers=1)[0]
    memory = encode(params, model, tokens)
    assert_array_equal(encode(params, same, tokens), memory)
    expected = decode(params, same, tokens, memory)
    assert_array_equal(decode(params, model, tokens, memory), expected)


@pytest.mark.parametrize("choices", [{"n_kv_heads": 1}, {"encoding": MIXED, "n_layers": 4}])
def test_patterns_and_shared_heads_keep_cache_chunks_and_padding(choices):
    model, params, tokens = built(**{"encoding": Rope(), **choices}, window=(4, None))
    padded, real = tokens.copy(), np.ones((B, L), bool)
    padded[0, 3:], padded[0, :3], real[0, :3] = tokens[0, :5], 7, False
    together = decode(params, model, padded, real=real)
    alone = decode(params, model, tokens[:1, :5])
    assert_allclose(together[0, 3:], alone[0], rtol=0, atol=1e-10)
    cache = Cache(model, B, L, np.float64)
    for start, end in ((0, 5), (5, 6), (6, 8)):
        step = decode(params, model, padded[:, start:end], real=real[:, start:end], cache=cache)
        assert_allclose(step, together[:, start:end], rtol=0, atol=1e-10)


@every
def test_shared_key_heads_are_the_full_ones_with_equal_projections(encoding):
    """Grouped queries: neighbouring heads (0 0 1 1), not every second one, read the same keys."""
    sizes = {"n_layers": 2, "n_encoder_layers": 1}
    grouped = Model(V, 16, 4, F, encoding=encoding, n_kv_heads=2, **sizes)
    full = Model(V, 16, 4, F, encoding=encoding, **sizes)
    rng = np.random.default_rng(0)
    params = jittered(init_params(grouped, rng, np.float64), rng)
    tokens, K = rng.integers(0, V, (B, L)), 4
    own = params["decoder"]["layers"]["0"]
    assert own["attention"]["W_k"].shape == (16, 8) and own["cross"]["W_k"].shape == (16, 16)

    def widened(tree):
        if not isinstance(tree, dict):
            return tree
        out = {key: widened(value) for key, value in tree.items()}
        for name in ("W_k", "W_v", "b_k", "b_v"):
            if name in out and out[name].shape[-1] == 2 * K:
                heads = out[name].reshape(*out[name].shape[:-1], 2, K)
                out[name] = np.repeat(heads, 2, axis=-2).reshape(*out[name].shape[:-1], 16)
        if "phase" in out:
            out["phase"] = np.repeat(out["phase"], 2, axis=0)  # PoPE's, a row a key head
        return out

    memory = encode(params, grouped, tokens)
    assert_allclose(memory, encode(widened(params), full, tokens), rtol=0, atol=1e-10)
    logits = decode(params, grouped, tokens, memory)
    assert_allclose(logits, decode(widened(params), full, tokens, memory), rtol=0, atol=1e-10)
    cache = Cache(grouped, B, L, np.float64)
    assert cache.keys["0"].shape[1] == cache.values["1"].shape[1] == 2
    decode(params, grouped, tokens[:, :5], memory, cache=cache)
    assert cache.keys["0"].shape[1] == 2
    assert_allclose(
        decode(params, grouped, tokens[:, 5:], memory, cache=cache), logits[:, 5:], atol=1e-10
    )


def test_shared_key_heads_divide_the_others():
    with pytest.raises(ValueError, match="n_kv_heads must divide n_heads; got 4 and 6"):
        Model(V, 12, 6, F, 1, n_kv_heads=4)


# ---- heads of a width of their own --------------------------------------------------------------


def test_heads_need_not_divide_the_width_if_theirs_is_given():
    sizes = {"n_layers": 1, "n_encoder_layers": 1}
    model = Model(V, D, 6, F, **sizes, d_head=4, n_kv_heads=3, cross_heads=5, sink_logits=True)
    params = init_params(model, np.random.default_rng(0))
    layer = params["decoder"]["layers"]["0"]
    shapes = {name: x.shape for name, x in layer["attention"].items()}
    assert shapes == {
        **{"W_q": (D, 24), "W_k": (D, 12), "W_v": (D, 12), "W_o": (24, D)},
        **{"b_q": (24,), "b_k": (12,), "b_v": (12,), "b_o": (D,), "sink": (6,)},
    }
    assert {x.shape for n, x in layer["cross"].items() if n[2] != "o"} == {(D, 20), (20,)}
    assert layer["cross"]["W_o"].shape == (20, D)
    assert Cache(model, B, 9).keys["0"].shape == (B, 3, 9, 4)


def test_heads_of_a_width_of_their_own_give_what_is_computed_by_hand():
    K, mask = 4, causal_mask(np.arange(L), np.arange(L))
    model = Model(V, D, 5, F, 1, n_encoder_layers=1, d_head=K, cross_heads=2)
    rng = np.random.default_rng(0)
    params = jittered(init_params(model, rng, np.float64), rng)
    tokens, source = rng.integers(0, V, (B, L)), rng.integers(0, V, (B, S))

    def look(own, x, source, heads, mask=None):
        output = own["b_o"]
        for h in range(heads):
            at = slice(h * K, h * K + K)
            q, k, v = (
                each @ own[f"W_{n}"][:, at] + own[f"b_{n}"][at]
                for n, each in (("q", x), ("k", source), ("v", source))
            )
            weights = softmax(
                np.where(mask is None or mask, q @ k.swapaxes(-1, -2) / 2, -np.inf)  # 2 = sqrt(K)
            )
            output = output + weights @ v @ own["W_o"][at]
        return output

    def read(stack, tokens, mask=None, memory=None):
        x = params["embedding"][tokens] * math.sqrt(D)
        layer = stack["layers"]["0"]
        h = layer_norm(x, **layer["attention_norm"])
        x = x + look(layer["attention"], h, h, 5, mask)
        if memory is not None:
            x = x + look(layer["cross"], layer_norm(x, **layer["cross_norm"]), memory, 2)
        own, h = layer["feed_forward"], layer_norm(x, **layer["feed_forward_norm"])
        x = x + np.maximum(h @ own["W_1"] + own["b_1"], 0) @ own["W_2"] + own["b_2"]
        return layer_norm(x, **stack["norm"])

    memory = encode(params, model, source)
    assert_allclose(memory, read(params["encoder"], source), rtol=0, atol=1e-12)
    expected = read(params["decoder"], tokens, mask, memory) @ params["output"]
    assert_allclose(decode(params, model, tokens, memory), expected, rtol=0, atol=1e-12)


@every
def test_every_encoding_serves_heads_of_a_width_of_their_own(encoding):
    """With a cache and padding; each parameter has a gradient."""
    for width in (2, 8):  # narrower and wider than D/H
        model, params, tokens = built(encoding, d_head=width, n_encoder_layers=1)
        memory = encode(params, model, tokens[:, :S])
        real = np.ones((B, L), bool)
        real[0, :2] = False
        whole = decode(params, model, tokens, memory, real=real)
        cache = Cache(model, B, L, np.float64)
        for start, end in ((0, 4), (4, 5), (5, 8)):
            now = slice(start, end)
            step = decode(params, model, tokens[:, now], memory, real=real[:, now], cache=cache)
            assert_allclose(step, whole[:, now], rtol=0, atol=1e-10)

    def loss(params):
        memory = encode(params, model, tokens[:, :S])
        return np.sum(decode(params, model, tokens, memory) ** 2)

    _, grads = value_and_grad(loss)(params)
    for stack in ("encoder", "decoder"):
        for name, g in grads[stack]["layers"]["0"]["attention"].items():
            assert g.shape == params[stack]["layers"]["0"]["attention"][name].shape
            assert np.abs(g).max() > 0 or name == "b_k"  # a constant of a row


def test_a_tempered_layer_knows_no_position_but_warms_its_queries():
    q, k = np.random.default_rng(0).standard_normal((2, B, H, L, 6))
    at = np.arange(10, 10 + L)
    layer = Tempered(floor_scale=4, scale=0.5)
    warm, same = layer.turn({}, q, k, at, at)
    assert_array_equal(same, k)
    for n, i in enumerate(at):
        expected = q[..., n, :] * (1 + 0.5 * math.log(1 + (i + 1) // 4))
        assert_allclose(warm[..., n, :], expected, rtol=0, atol=1e-12)
    batch = np.stack([at, at, at + 1])
    assert_array_equal(layer.turn({}, q, k, batch, batch)[0][:2], warm[:2])
