"""The Transformer with every encoding: padding, masks, norms, patterns, heads, bad input."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from builders import B, D, H, L, V, built, each, every, flat
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    Cache,
    Context,
    Model,
    attention,
    causal_mask,
    decode,
    encode,
    layer_norm,
    multi_head_attention,
    rope,
    rope_frequencies,
    softmax,
    value_and_grad,
)
from pe_numpy.transformer.encodings import Encoding, Learned, Rope, Streaming, every_encoding
from pe_numpy.transformer.masks import Causal, Chunk, Full, Window
from pe_numpy.transformer.model import self_attention

S = 6

# ---- every encoding -----------------------------------------------------------------------------


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
    cache = Cache(B, L)
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
    cache = Cache(B, L)
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
    cache = Cache(B, L)
    steps = [
        decode(params, model, tokens[:, t : t + 1], memory, real, cache=cache) for t in range(L)
    ]
    assert_allclose(np.concatenate(steps, axis=1), logits, rtol=0, atol=1e-10)


@every
def test_float32_parameters_give_float32_logits_close_to_float64(encoding):
    model, params, tokens = built(encoding, dtype=np.float32)
    logits = decode(params, model, tokens)
    assert logits.dtype == np.float32
    exact = decode(each(params, lambda x: x.astype(np.float64)), model, tokens)
    assert_allclose(logits, exact, rtol=0, atol=2e-4)


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
    output, weights = multi_head_attention(params, x, x, H, mask)
    context = Context(np.arange(L), mask=mask)
    assert_array_equal(self_attention(params, x, H, context, Encoding(), {}), output)
    sunk = {**params, "sink": np.array([-np.inf, 5.0])}  # of the first head as if there were none
    less, shares = multi_head_attention(sunk, x, x, H, mask)
    assert_array_equal(self_attention(sunk, x, H, context, Encoding(), {}), less)
    assert_allclose(shares[:, 0], weights[:, 0], rtol=0, atol=1e-12)
    assert shares[:, 1].sum(axis=-1).mean() < 0.9 and np.abs(less - output).max() > 1e-3
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


@pytest.mark.parametrize("n", [1, 4])
def test_kept_keys_turn_by_their_own_positions(n):
    """With n = 1 a key's turn by the query's position would broadcast, and be wrong in silence."""
    rng = np.random.default_rng(8)
    params = {f"W_{name}": rng.standard_normal((D, D)) for name in "qkvo"}
    x, old = rng.standard_normal((B, n, D)), rng.standard_normal((2, B, H, S, D // H))
    at, k_at = np.arange(S, S + n), np.arange(S + n)

    def heads(name):
        return (x @ params[f"W_{name}"]).reshape(B, n, H, D // H).swapaxes(1, 2)

    def by_length(K, length):
        return rope_frequencies(K, 10000.0 if length else 1.0)

    class Remembering(Context):
        """Before the new keys and values there are some."""

        def keep(self, layer, *new):
            return tuple(np.concatenate(pair, axis=2) for pair in zip(self.old, new, strict=True))

    k, v = (np.concatenate([a, heads(name)], axis=2) for a, name in zip(old, "kv", strict=True))
    _, expected = attention(rope(heads("q"), at), rope(k, k_at), v)
    for encoding in (Rope(), Rope(scaling=by_length)):
        context = Remembering(at, k_at)
        context.watch = {}
        context.old = rope(old[0], k_at[:S]) if encoding.turns_alone else old[0], old[1]
        self_attention(params, x, H, context, encoding, {})
        assert_allclose(context.watch["attention 0"], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind, eps", [("layer", 1e-5), ("rms", 1e-6)])
@pytest.mark.parametrize("own_eps", [None, 0.5])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_norm_stands_where_the_formula_says(norm, own_eps, kind, eps):
    choices = {"norm": norm, "rms": kind == "rms", "eps": own_eps}
    model, params, tokens = built(**choices, n_layers=1, scale=1.0)
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
        spread = np.mean((x - centre) ** 2, axis=-1, keepdims=True) + (own_eps or eps)
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
    plain = replace(model, scale=1.0)
    scaled = {**params, "embedding": params["embedding"] * math.sqrt(D)}
    expected = decode(scaled, plain, tokens) / math.sqrt(D)  # the output layer is scaled back
    assert_allclose(decode(params, model, tokens), expected, rtol=0, atol=1e-10)
    own = {**params, "output": params["embedding"].T}
    assert_array_equal(decode(own, model, tokens), decode(params, model, tokens))


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


@pytest.mark.parametrize("choices", [{"rms": True, "gated": True, "biases": False}, {}])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
def test_every_choice_runs_and_counts_its_parameters(choices, activation):
    model, params, tokens = built(activation=activation, **choices)
    assert np.isfinite(decode(params, model, tokens)).all()
    layer = params["decoder"]["layers"]["0"]
    assert ("W_gate" in layer["feed_forward"]) == choices.get("gated", False)
    assert ("b_q" in layer["attention"]) == choices.get("biases", True)
    assert ("bias" in layer["attention_norm"]) == ("rms" not in choices)


def test_nothing_is_changed_in_place():
    model, params, tokens = built(every_encoding(40)["shaw"], n_encoder_layers=1)
    before = {name: array.copy() for name, array in flat(params)}
    decode(params, model, tokens, encode(params, model, tokens))
    for name, array in flat(params):
        assert_array_equal(array, before[name])


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("n_heads", (0, -2), "must be at least 1; got"),
        ("n_heads", (2.0, True, None), "must be a whole number; got"),
        (
            "encoding",
            ("rope", Rope, None, {"base": 9.0}, (), (Rope(), "rope"), (None,), [Rope()]),
            r"must be an instance of Encoding, such as Rope\(\), or a tuple of them; got",
        ),
        (
            "mask",
            (4, "causal", Window, None, (), (Causal(), None), [Causal()], Full(), (Full(),)),
            r"must be an instance of Causal, such as Window\(4\), or a tuple of them; got",
        ),
        ("norm", ("middle", "Pre", None, 1), "must be 'pre' or 'post'; got"),
        ("activation", ("swish", "ReLU", None, np.tanh), "must be 'relu' or .*'silu'; got"),
        ("cross_heads", (0, -1), "must be at least 1; got"),
        ("cross_heads", (2.0, True, "2"), "must be a whole number; got"),
        ("scale", (0, -1.0), "must be above 0; got"),
        ("scale", (np.nan, np.inf), "must be finite; got"),
        ("scale", ("1", True, False, [1.0]), "must be one real number; got"),
        ("dropout", (1.0, 1.5, -0.1), "must be from 0 to below 1; got"),
        ("dropout", (np.nan, np.inf), "must be finite; got"),
        ("dropout", ("0.1", None, True, [0.1, 0.2]), "must be one real number; got"),
        ("eps", (0, -1e-6), "must be above 0; got"),
        ("eps", (np.nan, np.inf), "must be finite; got"),
        ("eps", ("1e-6", True, [1e-6]), "must be one real number; got"),
    ],
)
def test_every_wrong_choice_of_a_model_is_refused_by_the_name_of_its_field(field, values, message):
    for value in values:
        with pytest.raises(ValueError, match=f"^Model: {field} {message}"):
            Model(**{"n_heads": 2, field: value})


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
        {"encoding": Learned(3)},
        {"mask": (Window(3), Chunk(2), Causal())},
        {"scale": np.float32(0.5)},
        {"eps": np.float32(1e-6)},
    ):
        Model(**{"n_heads": np.int64(2), **choices})


def test_an_encoding_that_needs_a_mask_is_refused_without_it():
    """As a layer has it, in patterns of any two lengths."""
    needy, own = Streaming(3, 2), Window(3, sinks=2)
    Model(H, needy, own)
    Model(H, (needy, Rope()), (own, Causal()))
    Model(H, (needy, Rope()), (own, Causal(), own, Window(1)))
    Model(H, (needy, needy), own)
    for encoding, masks in (
        (needy, Causal()),
        (needy, Window(3)),
        (needy, Window(4, sinks=2)),
        (needy, Chunk(3)),
        (needy, (own, Causal())),
        ((needy, Rope()), (Causal(), own)),
        ((needy, Rope()), (own, Causal(), Causal())),
        ((needy, Rope()), (own, Causal(), own)),  # in layer 4
        ((Rope(), Rope(), needy), Causal()),
    ):
        rule = r"Model: Streaming\(.*\) needs the mask Window\(size=3, sinks=2\), which .*; got"
        with pytest.raises(ValueError, match=rule):
            Model(H, encoding, masks)


def test_bad_input_is_named_with_the_rule_and_the_numbers():
    model, params, tokens = built(every_encoding(length=6)["learned"])
    for call, message in [
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
            lambda: decode(params, model, [[1]], memory_real=np.ones((1, 2), bool)),
            "decode: memory_real must come with a memory; got it alone",
        ),
        (
            lambda: decode(params, model, [[1]], rng=0),
            "decode: rng must be a generator, .* got int",
        ),
        (lambda: encode(*encoder_decoder(), rng=0), "encode: rng must be a generator, .* got int"),
        (
            lambda: decode(params, Model(5), [[1]]),
            "decode: n_heads must divide the width of W_q in decoder layer 0; got 5 and 12",
        ),
        (
            lambda: encode(*encoder_decoder(n_heads=5)),
            "encode: n_heads must divide the width of W_q in encoder layer 0; got 5 and 12",
        ),
        (
            lambda: decode(params, model, [[1]], cache="no"),
            "decode: cache must be a Cache; got str",
        ),
        (lambda: decode(params, None, [[1]]), "decode: model must be a Model; got NoneType"),
        (lambda: decode(None, model, [[1]]), "decode: params must be the dictionaries that init"),
        (
            lambda: encode(model, params, [[1]]),
            "encode: params must be .* got Model",
        ),
        (
            lambda: decode(params, model, [[1]], cache=Cache(2, 5)),
            "Cache: the batch must be that of the cache, 2; got 1",
        ),
        (
            lambda: decode(params, model, [[1, 2, 3]], cache=Cache(1, 2)),
            "Cache: there is room for 2 tokens; got 3",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def encoder_decoder(**choices):
    """Parameters, a model that may not fit, and tokens."""
    model, params, tokens = built(n_encoder_layers=1)
    return params, replace(model, **choices), tokens


# ---- masks that carry position, and sinks -------------------------------------------------------

MASKS = {
    "window": Window(3),
    "window and sinks": Window(2, sinks=1),
    "chunk": Chunk(3),
}
ALLOWED = {
    "window": lambda i, j: 0 <= i - j < 3,
    "window and sinks": lambda i, j: 0 <= i - j and (i - j < 2 or j < 1),
    "chunk": lambda i, j: 0 <= i - j and i // 3 == j // 3,
}


@pytest.mark.parametrize("sight", MASKS)
def test_a_token_sees_its_window_or_its_chunk_and_nothing_else(sight):
    model, params, tokens = built(Rope(), mask=MASKS[sight])
    watch = {}
    decode(params, model, tokens, watch=watch)
    allowed = np.array([[ALLOWED[sight](i, j) for j in range(L)] for i in range(L)])
    for layer in ("attention 0", "attention 1"):
        assert_array_equal(watch[layer] > 0, np.broadcast_to(allowed, (B, H, L, L)))


@every
@pytest.mark.parametrize("sight", MASKS)
def test_cache_and_left_padding_keep_what_is_in_sight(encoding, sight):
    model, params, tokens = built(encoding, sink=True, mask=encoding.needs or MASKS[sight])
    alone = decode(params, model, tokens[:1, :5])
    padded, real = tokens.copy(), np.ones((B, L), bool)
    padded[0, 3:], padded[0, :3], real[0, :3] = tokens[0, :5], 7, False
    together = decode(params, model, padded, real=real)
    assert_allclose(together[0, 3:], alone[0], rtol=0, atol=1e-10)
    cache = Cache(B, L)
    for start, end in ((0, 5), (5, 6), (6, 8)):
        step = decode(params, model, padded[:, start:end], real=real[:, start:end], cache=cache)
        assert_allclose(step, together[:, start:end], rtol=0, atol=1e-10)


def test_what_lies_beyond_all_windows_changes_nothing():
    """Two layers of window 3 reach 2 * (3 - 1) = 4 tokens back, and no further."""
    model, params, tokens = built(Rope(), mask=Window(3))
    changed = tokens.copy()
    changed[:, 2] = (changed[:, 2] + 1) % V
    moved = np.abs(decode(params, model, changed) - decode(params, model, tokens)).max(axis=(0, 2))
    assert (moved[2:7] > 1e-4).all() and moved[[0, 1, 7]].max() < 1e-12


@pytest.mark.parametrize("encoding", [Rope(), every_encoding(40, clip=3)["shaw"]])
def test_sinks_take_weight_from_the_keys_of_each_self_attention(encoding):
    model, params, tokens = built(encoding, n_encoder_layers=1, sink=True)
    plain = each(params, lambda x: x)
    assert "sink" not in params["decoder"]["layers"]["0"]["cross"]
    for stack in ("encoder", "decoder"):
        for layer in params[stack]["layers"].values():
            assert layer["attention"]["sink"].shape == (H,)
            layer["attention"]["sink"] = np.full(H, -np.inf)
        for layer in plain[stack]["layers"].values():
            del layer["attention"]["sink"]
    memory = encode(params, model, tokens)
    before = decode(params, model, tokens, memory)
    assert_array_equal(memory, encode(plain, model, tokens))
    assert_array_equal(before, decode(plain, model, tokens, memory))
    params["decoder"]["layers"]["0"]["attention"]["sink"] = np.array([-np.inf, 1.0])
    watch = {}
    assert np.abs(decode(params, model, tokens, memory, watch=watch) - before).max() > 1e-3
    shares = watch["attention 0"].sum(axis=-1)
    assert_allclose(shares[:, 0], 1, rtol=0, atol=1e-12)
    assert (shares[:, 1] < 0.99).all()


def test_a_layer_has_one_mask_and_a_tuple_is_a_pattern():
    model = Model(H, mask=(Window(4), Chunk(8), Causal()))
    assert [model.of_layer("mask", n) for n in (0, 1, 2, 4)] == [
        Window(4), Chunk(8), Causal(), Chunk(8)
    ]  # fmt: skip
    assert model.of_layer("mask", 0, encoder=True) == Full()


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
    model, params, tokens = built((t5, Encoding()), mask=(Window(3), Causal()))
    watch = {}
    decode(params, model, tokens, watch=watch)
    first = built(t5, mask=Window(3))[0]
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
    model, params, tokens = built(**{"encoding": Rope(), **choices}, mask=(Window(4), Causal()))
    padded, real = tokens.copy(), np.ones((B, L), bool)
    padded[0, 3:], padded[0, :3], real[0, :3] = tokens[0, :5], 7, False
    together = decode(params, model, padded, real=real)
    alone = decode(params, model, tokens[:1, :5])
    assert_allclose(together[0, 3:], alone[0], rtol=0, atol=1e-10)
    cache = Cache(B, L)
    for start, end in ((0, 5), (5, 6), (6, 8)):
        step = decode(params, model, padded[:, start:end], real=real[:, start:end], cache=cache)
        assert_allclose(step, together[:, start:end], rtol=0, atol=1e-10)


@every
def test_shared_key_heads_are_the_full_ones_with_equal_projections(encoding):
    """Grouped queries: neighbouring heads (0 0 1 1), not every second one, read the same keys."""
    sizes, K = {"d_model": 16, "n_heads": 4, "n_encoder_layers": 1}, 4
    model, params, tokens = built(encoding, n_kv_heads=2, **sizes)
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

    memory, full = encode(params, model, tokens), widened(params)
    assert_allclose(memory, encode(full, model, tokens), rtol=0, atol=1e-10)
    logits = decode(params, model, tokens, memory)
    assert_allclose(logits, decode(full, model, tokens, memory), rtol=0, atol=1e-10)
    cache = Cache(B, L)
    decode(params, model, tokens[:, :5], memory, cache=cache)
    assert {x.shape[1] for x in cache.held["0"][:2] + cache.held["1"][:2]} == {2}
    assert_allclose(
        decode(params, model, tokens[:, 5:], memory, cache=cache), logits[:, 5:], atol=1e-10
    )


# ---- heads of a width of their own --------------------------------------------------------------


def test_heads_of_a_width_of_their_own_give_what_is_computed_by_hand():
    K, mask = 4, causal_mask(np.arange(L), np.arange(L))
    model, params, tokens = built(
        n_heads=5, n_layers=1, n_encoder_layers=1, d_head=K, cross_heads=2
    )
    source = np.random.default_rng(1).integers(0, V, (B, S))

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
        cache = Cache(B, L)
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
