"""What a call knows, and the cache that remembers: pieces, refused calls, one owner, rows."""

from dataclasses import replace

import numpy as np
import pytest
from builders import B, D, H, L, V, built, each, every
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import Cache, Context, decode, dynamic_ntk_scaling, encode, relative_distance
from pe_numpy.transformer.context import real_positions
from pe_numpy.transformer.encodings import Alibi, Forgetting, Learned, Rope, Tupe
from pe_numpy.transformer.masks import Causal, Chunk, Full, Window

S = 6
GROWING = Rope(scaling=lambda d, length: dynamic_ntk_scaling(d, length, 4))

# ---- pieces -------------------------------------------------------------------------------------


@every
def test_cache_chunks_and_the_whole_give_the_same_logits(encoding):
    model, params, tokens = built(encoding)
    whole = decode(params, model, tokens)
    for chunks in ((4, 1, 1, 1, 1), (3, 3, 2), (1,) * 8):
        cache, start = Cache(B, L), 0
        for n in chunks:
            logits = decode(params, model, tokens[:, start : start + n], cache=cache)
            assert_allclose(logits, whole[:, start : start + n], rtol=0, atol=1e-10)
            start += n


def test_keys_of_a_growing_base_are_cached_before_they_turn_and_stay_right_in_the_first_layer():
    """Deeper layers hold what the first one said under the base of its day: there it can't be."""
    for n_layers in (1, 2):
        model, params, tokens = built(GROWING, n_layers=n_layers)
        cache, gaps = Cache(B, L), []
        for t in range(L):
            step = decode(params, model, tokens[:, t : t + 1], cache=cache)[:, 0]
            whole = decode(params, model, tokens[:, : t + 1])[:, -1]
            gaps.append(np.abs(step - whole).max())
        assert max(gaps) < 1e-10 if n_layers == 1 else max(gaps) > 1e-4


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
        cache, start = Cache(B, L), 0
        for n in chunks:
            logits = decode(params, model, tokens[:, start : start + n], cache=cache)
            assert_allclose(logits, whole[:, start : start + n], rtol=0, atol=1e-10)
            start += n


def test_room_is_made_by_what_comes_first():
    """Keys and values in the dtype of the parameters, of as many heads, with the gates beside."""
    for encoding, dtype in ((Rope(), np.float32), (Forgetting(), np.float64)):
        model, params, tokens = built(encoding, dtype=dtype, n_kv_heads=1)
        cache = Cache(B, 9)
        assert cache.held == {}
        decode(params, model, tokens[:, :3], cache=cache)
        shapes = [(B, 1, 9, D // H)] * 2 + [(B, H, 9, 1)] * (encoding == Forgetting())
        for layer in "01":
            assert [x.shape for x in cache.held[layer]] == shapes
            assert {x.dtype for x in cache.held[layer]} == {np.dtype(dtype)}


# ---- a call that is refused, or stops, leaves the cache as it was -------------------------------


def observed(cache):
    """All that a cache says of itself; of its rooms what is held, for the rest is free."""
    state = {name: value for name, value in vars(cache).items() if name != "cache"}
    state["held"] = {
        layer: [x[..., : cache.length, :] for x in rooms] for layer, rooms in cache.held.items()
    }
    return {name: copied(value) for name, value in state.items()}


def copied(value):
    """Arrays as bytes; parameters and models, which are the caller's, as themselves."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    if isinstance(value, list):
        return [copied(x) for x in value]
    if isinstance(value, tuple):
        return tuple(copied(x) if isinstance(x, np.ndarray) else id(x) for x in value)
    return {k: copied(x) for k, x in value.items()} if isinstance(value, dict) else value


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
        "Cache: the batch must be that of the cache, 3; got 1",
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
    "beyond the table": (
        {"tokens": np.ones((B, 8), int), "real": None},
        "a table of 7 rows serves positions",
    ),
    "seed for a generator": ({"rng": 0}, "rng must be a generator"),
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
        if np.shape(arguments["real"]) != np.shape(arguments["tokens"]) and "real" not in change:
            arguments["real"] = None
        return decode(params, model, **arguments)

    change, message = REFUSED[name]
    caches = [Cache(B, 8) for _ in range(2)]
    for cache in caches:
        if read:
            call(0, read, cache)
    if name == "beyond the table":
        change = {**change, "tokens": change["tokens"][:, read:]}
    before, watch = observed(caches[0]), {}
    with pytest.raises(ValueError, match=message):
        call(read, read + 1, caches[0], watch=watch, **change)
    assert observed(caches[0]) == before and not watch
    for t in range(read, tokens.shape[1]):
        steps = [call(t, t + 1, cache) for cache in caches]
        assert_array_equal(steps[0], steps[1])


@pytest.mark.parametrize("stop", [ValueError("in the last layer"), KeyboardInterrupt()])
@pytest.mark.parametrize("read", [0, 3])
def test_a_call_that_stops_half_way_leaves_the_cache_as_it_was(stop, read):
    model, params, tokens, memory, _ = with_memory()
    clean = decode(params, model, tokens, memory)
    cache = Cache(B, L)
    if read:
        decode(params, model, tokens[:, :read], memory, cache=cache)
    layers = params["decoder"]["layers"]
    whole, before = layers["1"]["feed_forward"], observed(cache)

    class Stopping(dict):
        def __contains__(self, key):
            raise stop

    layers["1"]["feed_forward"] = Stopping(whole)
    other = np.random.default_rng(9).standard_normal((B, S, D)) if not read else memory
    watch = {}
    with pytest.raises(type(stop)):
        unreal = np.zeros((B, 1), bool)
        decode(params, model, tokens[:, :1], other, real=unreal, cache=cache, watch=watch)
    assert observed(cache) == before and not watch
    layers["1"]["feed_forward"] = whole
    for t in range(read, L):  # and no memory of the call that failed
        step = decode(params, model, tokens[:, t : t + 1], memory, cache=cache)[:, 0]
        assert_allclose(step, clean[:, t], rtol=0, atol=1e-12)


def test_after_a_first_call_that_failed_the_cache_serves_anybody():
    """Parameters of another dtype, keys of another shape, another memory."""
    model, params, tokens, memory, _ = with_memory(dtype=np.float32)
    del params["output"]
    params["embedding"] = params["embedding"][:, :-1]  # the last product of the call fails
    cache = Cache(B, L)
    with pytest.raises(ValueError):
        decode(params, model, tokens[:, :3], memory, cache=cache)
    assert cache.held == cache.made == {} and not cache.owner
    model, params, tokens, memory, real = with_memory(Rope(), n_kv_heads=1)
    steps = [
        decode(params, model, tokens[:, t : t + 1], memory, real, cache=cache) for t in range(L)
    ]
    whole = decode(params, model, tokens, memory, real)
    assert_allclose(np.concatenate(steps, axis=1), whole, rtol=0, atol=1e-12)


# ---- one owner ----------------------------------------------------------------------------------


def assert_refused(message, cache, *arguments):
    """The call is refused, and the cache as it was."""
    before, watch = observed(cache), {}
    with pytest.raises(
        ValueError, match=f"^decode: the cache serves one {message}; got another, m"
    ):
        decode(*arguments, cache=cache, watch=watch)
    assert observed(cache) == before and not watch


def test_a_cache_serves_one_memory():
    model, params, tokens, memory, real = with_memory()
    whole = decode(params, model, tokens, memory, real)
    cache = Cache(B, L)
    decode(params, model, tokens[:, :3], memory, real, cache=cache)
    changed = memory.copy()
    changed[1, 2, 3] += 1e-9
    for other in (changed, memory[:, :4], memory[:, ::-1]):
        assert_refused("source", cache, params, model, tokens[:, 3:4], other)
    again = decode(params, model, tokens[:, 3:4], memory.copy(), real, cache=cache)
    assert_allclose(again, whole[:, 3:4], rtol=0, atol=1e-12)
    memory[...] = changed  # in place: the cache knows what it was given
    assert_refused("source", cache, params, model, tokens[:, 4:5], memory, real)


def test_a_cache_serves_one_padding_of_its_memory():
    """True everywhere is no padding, and so is none."""
    model, params, tokens, memory, real = with_memory()
    whole = decode(params, model, tokens, memory, real)
    cache = Cache(B, L)
    decode(params, model, tokens[:, :3], memory, real, cache=cache)
    for other in (None, real | True, ~real, real[:, ::-1]):
        assert_refused("memory_real", cache, params, model, tokens[:, 3:4], memory, other)
    again = decode(params, model, tokens[:, 3:4], memory, real.copy(), cache=cache)
    assert_allclose(again, whole[:, 3:4], rtol=0, atol=1e-12)
    real[...] = ~real  # in place: the cache knows what it was given
    assert_refused("memory_real", cache, params, model, tokens[:, 4:5], memory, real)
    free = Cache(B, L)
    decode(params, model, tokens[:, :3], memory, cache=free)
    decode(params, model, tokens[:, 3:4], memory, real | True, cache=free)
    assert_refused("memory_real", free, params, model, tokens[:, 4:5], memory, real)


def test_a_cache_serves_one_set_of_parameters_and_one_model():
    model, params, tokens = built()
    whole = decode(params, model, tokens)
    cache = Cache(B, L)
    decode(params, model, tokens[:, :3], cache=cache)
    assert_refused("set of parameters", cache, built(seed=1)[1], model, tokens[:, 3:4])
    copy = each(params, lambda x: x)  # other dictionaries, the same numbers
    assert_refused("set of parameters", cache, copy, model, tokens[:, 3:4])
    for change in (
        {"n_heads": 1},
        {"n_heads": 5},
        {"encoding": Alibi()},
        {"mask": Window(9)},
        {"activation": "gelu"},
        {"scale": 1.0},
        {"eps": 1e-4},
        {"norm": "post"},
        {"dropout": 0.5},
    ):
        assert_refused("model", cache, params, replace(model, **change), tokens[:, 3:4])
    step = decode(params, replace(model), tokens[:, 3:4], cache=cache)  # an equal one is the same
    assert_allclose(step, whole[:, 3:4], rtol=0, atol=1e-12)


# ---- rows that go on, tokens that are forgotten -------------------------------------------------


def test_a_cache_keeps_chosen_rows_and_forgets_the_last_tokens():
    model, params, tokens, memory, memory_real = with_memory(Forgetting())
    real = np.ones((B, L), bool)
    real[1, :2] = False
    cache, rows = Cache(B, L), [1, 0, 2, 1]
    decode(params, model, tokens[:, :3], memory, memory_real, real[:, :3], cache)
    decode(params, model, np.full((B, 4), 7), memory, memory_real, cache=cache)
    cache.cut(3)
    cache.take(rows)
    assert (cache.batch, cache.length) == (4, 3)
    given = memory[rows], memory_real[rows]
    step = decode(params, model, tokens[rows, 3:5], *given, cache=cache)
    whole = decode(params, model, tokens[rows, :5], *given, real[rows, :5])
    assert_allclose(step, whole[:, 3:], rtol=0, atol=1e-12)
    assert_refused("source", cache, params, model, tokens[rows, 5:6], memory[[0, 0, 2, 1]])
    cache.cut(0)
    step = decode(params, model, tokens[rows], *given, cache=cache)
    assert_allclose(step, decode(params, model, tokens[rows], *given), rtol=0, atol=1e-12)


def test_what_cannot_be_kept_or_forgotten_is_refused():
    model, params, tokens = built()
    cache = Cache(B, L)
    decode(params, model, tokens[:, :4], cache=cache)
    before = observed(cache)
    for call, message in (
        (lambda: cache.cut(5), "Cache.cut: length must be at most the tokens held, 4; got 5"),
        (lambda: cache.cut(-1), "Cache.cut: length must be at least 0; got -1"),
        (lambda: cache.cut(2.0), "Cache.cut: length must be a whole number; got 2.0"),
        (lambda: cache.take([0.5]), "Cache.take: rows must be whole numbers"),
        (lambda: Cache(0, 3), "Cache: batch must be at least 1; got 0"),
        (lambda: Cache(2, 0), "Cache: capacity must be at least 1; got 0"),
        (lambda: Cache(True, 3), "Cache: batch must be a whole number; got True"),
        (lambda: Cache(2, 3.0), "Cache: capacity must be a whole number; got 3.0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(IndexError):
        cache.take([0, B])
    assert observed(cache) == before


# ---- a context by itself ------------------------------------------------------------------------


def test_distances_are_between_the_queries_and_all_keys():
    context = Context([3, 4], [0, 1, 2, 3, 4])
    assert_array_equal(context.distance, relative_distance([3, 4], range(5)))
    assert_array_equal(context.head_distance, context.distance)
    batch = Context(np.array([[3], [2]]), np.array([[0, 1, 2, 3], [0, 0, 1, 2]]))
    assert batch.distance.tolist() == [[[3, 2, 1, 0]], [[2, 2, 1, 0]]]
    assert batch.head_distance.tolist() == [[[[3, 2, 1, 0]]], [[[2, 2, 1, 0]]]]
    assert_array_equal(Context([0, 2]).k_positions, [0, 2])
    with pytest.raises(ValueError, match=r"relative_distance: .*whole numbers"):
        Context([0.5]).distance  # noqa: B018


@pytest.mark.parametrize("rule", [Causal(), Window(2), Window(2, sinks=1), Chunk(3), Full()])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("read", [0, 3])
def test_a_mask_is_the_rule_between_real_tokens(rule, padded, read):
    """By loops: the rule counts real tokens alone, and hides all others."""
    real = np.ones((2, 6), bool)
    real[0, :2], real[1, 3] = not padded, not padded
    cache = Cache(2, 6)
    cache.length, cache.real = read, real[:, :read] if padded else None
    context = cache.begin((2, 6 - read), real[:, read:] if padded else None)
    mask = context.mask_of(rule)
    assert context.mask_of(rule) is mask  # it is made once
    if mask is None:
        assert rule == Full() and not padded
        return
    for b in range(2):
        at = real_positions(real[b])
        seen = rule.mask(at[read:], at)
        for i in range(6 - read):
            for j in range(6):
                expected = real[b, j] and (seen is None or seen[i, j])
                assert np.broadcast_to(mask, (2, 1, 6 - read, 6))[b, 0, i, j] == expected


def test_a_mask_that_hides_nothing_is_none():
    assert Context().begin((2, 1)).mask_of(Causal()) is None
    assert Context().begin((2, 3)).mask_of(Full()) is None
    assert Context().begin((2, 3), np.ones((2, 3), bool)).mask_of(Full()) is None
    assert Context().begin((2, 3)).mask_of(Causal()) is not None


def test_the_encoding_may_be_told_other_places_than_those_of_the_masks():
    told = Context().begin((1, 4), places=lambda at: 10 * at)
    plain = Context().begin((1, 4))
    assert told.k_positions.tolist() == told.q_positions.tolist() == [0, 10, 20, 30]
    assert_array_equal(told.mask_of(Window(2)), plain.mask_of(Window(2)))
