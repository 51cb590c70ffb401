"""What a cache holds: every encoding against theory, the real cache, wrong schemes, bad input."""

import dataclasses
import functools
from itertools import chain

import numpy as np
import pytest
from builders import made
from numpy.testing import assert_allclose

from pe_numpy import (
    Cache,
    Context,
    cache_properties,
    decode,
    dynamic_ntk_scaling,
    linear_scaling,
    llama3_scaling,
    longrope_scaling,
    ntk_scaling,
    rope_frequencies,
    sinusoidal,
    yarn_scaling,
)
from pe_numpy.transformer.encodings import (
    Alibi,
    Encoding,
    Fire,
    Forgetting,
    Rope,
    Sinusoidal,
    Tempered,
    XPos,
    every_encoding,
)


def long_rope(trained_length):
    def scaling(K, length):
        lists = np.ones(K // 2), np.linspace(1, 4, K // 2)
        return longrope_scaling(K, length, *lists, trained_length, 4)

    return Rope(scaling=scaling)


ENCODINGS = {
    **every_encoding(40, clip=6),
    "linear": Rope(scaling=lambda K, length: linear_scaling(rope_frequencies(K), 4)),
    "ntk": Rope(scaling=lambda K, length: ntk_scaling(K, 4)),
    "dynamic": Rope(scaling=lambda K, length: dynamic_ntk_scaling(K, length, 8)),
    "yarn": Rope(scaling=lambda K, length: yarn_scaling(K, 4, 8)),
    "longrope": long_rope(8),
    "llama3": Rope(scaling=lambda K, length: llama3_scaling(rope_frequencies(K), 8, 64)),
    "tempered": Tempered(4),
}


@functools.cache
def found(name):
    return cache_properties(ENCODINGS[name])


# ---- theory -------------------------------------------------------------------------------------

# keys, positions, gates, chunks, padding, eviction, renumbering
NONE = ("plain", False, "none", True, "slots", True, "any")  # nothing says where a key stood
PLACE_1 = ("coded", False, "none", True, "real", True, "no")  # k = (x + p) W: p is in the key
TURNED = ("turned", False, "none", True, "slots", True, "raw")  # R_i q . R_j k: of i - j alone
BIAS = ("plain", True, "none", True, "slots", True, "any")  # q . k + b(i - j): needs j
ABSOLUTE = (*BIAS[:4], "real", *BIAS[5:])  # b(i, j), not of i - j alone
EXPECTED = {
    NONE: ["none"],
    PLACE_1: ["sinusoidal", "multiplicative", "learned", "hierarchical", "recurrent", "floater"],
    TURNED: ["rope", "xpos", "pope", "linear", "ntk", "yarn", "llama3"],
    BIAS: [
        *("shaw", "relative_key_query", "nezha", "transformer_xl", "t5", "deberta"),
        *("alibi", "kerple", "sandwich", "rerope"),
    ],
    ABSOLUTE: [
        "tupe",  # p_i U . p_j U'
        "fire",  # here the threshold is 5: beyond it the distance is divided by i
        "self_extend",  # i // g - j // g
        "dual_chunk",  # chunks begin at 0
        "streaming",  # places stop growing at a fixed i
    ],
    # the sums c_i - c_j of gates stand for distances; an evicted gate is a part of them
    ("plain", False, "sums", True, "slots", True, "any"): ["forgetting"],
    # each query counts over all its keys: one that goes changes the place of those before it
    ("plain", False, "none", True, "slots", False, "any"): ["cope"],
    # values turn at the end, by the distance: their positions are needed
    ("turned", True, "none", True, "slots", True, "raw"): ["rotary_values"],
    # the frequencies change with the length, and with them each old row
    ("raw", True, "none", False, "real", True, "raw"): ["dynamic", "longrope"],
    # queries grow with their own position; keys say nothing of theirs
    (*NONE[:4], "real", *NONE[5:]): ["tempered"],
}
HOLDS = {
    "none": "keys",
    "learned": "keys, their positions inside",
    "rope": "rotated keys",
    "alibi": "keys and positions",
    "forgetting": "keys and sums of gates",
    "cope": "all keys",
    "rotary_values": "rotated keys and positions",
    "dynamic": "unrotated keys and positions",
}


def test_every_encoding_stands_in_the_table_of_theory():
    assert sorted(chain.from_iterable(EXPECTED.values())) == sorted(ENCODINGS)


@pytest.mark.parametrize(
    ("name", "expected"), [(name, row) for row, names in EXPECTED.items() for name in names]
)
def test_what_is_measured_is_what_theory_says(name, expected):
    assert tuple(found(name)) == expected
    assert found(name).holds == HOLDS.get(name, found(name).holds)


@pytest.mark.parametrize("name", ENCODINGS)
def test_what_an_encoding_says_of_its_turn_is_measured(name):
    assert ENCODINGS[name].turns_alone == (found(name).keys != "raw")


@pytest.mark.parametrize("name", ENCODINGS)
def test_two_layers_with_the_real_cache_are_right_where_chunks_are(name):
    """The oracle is another: a whole model, whose deeper keys are made from older rows."""
    model, params = made(vocabulary=11, d_model=16, d_ff=24, encoding=ENCODINGS[name])
    tokens = np.random.default_rng(1).integers(11, size=(1, 24))
    cache, rows = Cache(1, 24), []
    for n in range(24):
        rows.append(decode(params, model, tokens[:, n : n + 1], cache=cache))
    error = np.abs(np.concatenate(rows, axis=1) - decode(params, model, tokens)).max()
    assert (error < 1e-9) == found(name).chunks


def test_a_forgetting_bias_over_a_gap_by_loops():
    """Gates f, of which 2 and 3 go: the sums up to each key that stays are all that is needed."""
    gates = [-0.5, -0.25, -1.0, -2.0, -0.125]
    kept = np.diff(np.cumsum(gates)[[0, 1, 4]], prepend=0)
    for place, key in enumerate((0, 1, 4)):
        assert sum(kept[place + 1 :]) == sum(gates[key + 1 :])
    assert sum(kept[1:]) != sum(gates[m] for m in (1, 4))  # dropped with their keys: wrong


def test_a_length_that_is_not_tried_is_not_seen():
    tried = {n: cache_properties(long_rope(24), length=n).keys for n in (16, 31, 40)}
    assert tried == {16: "turned", 31: "turned", 40: "raw"}  # 7 of them are padding
    fire = [cache_properties(Fire(threshold)).padding for threshold in (40, 39, 38, 5)]
    assert fire == ["slots", "slots", "real", "real"]  # the last position is 39


def test_the_width_of_a_head_is_a_choice():
    scaling = lambda K, length: np.ones({16: 8}[K])  # noqa: E731
    assert cache_properties(Rope(scaling=scaling), d_head=16).holds == "rotated keys"


# ---- wrong schemes are seen ---------------------------------------------------------------------


class ByLength(Rope):
    """Turns by the share of the way, which changes with each token."""

    def turn(self, params, q, k, context):
        i, j = context.q_positions, context.k_positions
        length = j.max() + 1
        return super().turn(params, q, k, Context(10 * i / length, 10 * j / length))


class MovingCentre(XPos):
    """xPos around the middle of the text: its scores are right, its keys are of their day."""

    def turn(self, params, q, k, context):
        return XPos(centre=context.k_positions.max() / 2).turn(params, q, k, context)


class ByQueries(Rope):
    """Turns by the place in the call."""

    def turn(self, params, q, k, context):
        return super().turn(params, q, k, Context(np.arange(q.shape[2]), context.k_positions))


class Slots(Alibi):
    """Takes slots for positions."""

    def scores(self, params, q, k, context):
        slots = np.arange(k.shape[2])
        return super().scores(params, q, k, Context(slots[-q.shape[2] :], slots))


class SlotCodes(Encoding):
    """Adds the code of the place in the call."""

    def embed(self, params, x, positions):
        return x + sinusoidal(np.arange(x.shape[1]), x.shape[2])


class Leak(Alibi):
    """A term of the key's own position."""

    def scores(self, params, q, k, context):
        at = context.k_positions
        at = at if at.ndim == 1 else at[:, None, None]
        return super().scores(params, q, k, context) + 0.01 * at


class OwnGates(Forgetting):
    """Adds each key's own gate: those of evicted keys are dropped, and nobody misses them."""

    def scores(self, params, q, k, context):
        return Encoding.scores(self, params, q, k, context) + context.gates[:, :, None]


class CountedGates(Forgetting):
    """Divides by the number of gates, so that each that is dropped is missed."""

    def scores(self, params, q, k, context):
        gates = context.gates / (context.gates < 0).sum(axis=-1).max()
        fewer = Context(context.q_positions, context.k_positions, context.mask, gates)
        return super().scores(params, q, k, fewer)


class SummedGates(Forgetting):
    """Sums within a call, and so from 0 in each piece."""

    def gates(self, params, x):
        return np.cumsum(super().gates(params, x), axis=-1)


class ByNumberOfKeys(Encoding):
    """Sharpens scores by the length, as in log n scaling without the row's own n."""

    def scores(self, params, q, k, context):
        return super().scores(params, q, k, context) * np.log(2 + context.k_positions.max())


class Both(Rope):
    """RoPE upon sinusoidal codes."""

    def embed(self, params, x, positions):
        return Sinusoidal().embed(params, x, positions)


WRONG = [
    (ByLength(), {"keys": "raw", "chunks": False, "padding": "real"}),
    (MovingCentre(), {"keys": "raw", "chunks": True, "padding": "slots", "renumbering": "raw"}),
    (ByQueries(), {"keys": "none", "chunks": False, "holds": "nothing that would serve"}),
    (Slots(), {"positions": False, "padding": "slots", "eviction": False, "holds": "all keys"}),
    (SlotCodes(), {"chunks": False, "padding": "no"}),
    (Leak(), {"padding": "real", "positions": True}),
    (OwnGates(), {"gates": "own", "eviction": True, "holds": "keys and gates"}),
    (CountedGates(), {"gates": "all", "padding": "slots", "holds": "all keys and gates"}),
    (SummedGates(), {"chunks": False}),
    (ByNumberOfKeys(), {"keys": "plain", "chunks": False, "padding": "real"}),
    (Both(), {"keys": "turned", "padding": "real", "renumbering": "no"}),
]


@pytest.mark.parametrize(
    ("encoding", "expected"), WRONG, ids=lambda x: type(x).__name__ if x else ""
)
def test_a_planted_scheme_is_seen(encoding, expected):
    properties = cache_properties(encoding)
    assert {field: getattr(properties, field) for field in expected} == expected


def test_names_and_flags_count_nothing():
    @dataclasses.dataclass(frozen=True)
    class Alibi(Rope):
        turns_alone = False

    assert cache_properties(Alibi()) == cache_properties(Rope())


def test_trials_change_nothing_and_always_agree():
    table = every_encoding(40)["t5"]
    assert cache_properties(table) == cache_properties(table)
    assert_allclose(np.random.default_rng(0).standard_normal(), 0.12573, rtol=0, atol=1e-5)


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rope",), r"encoding must be an Encoding, such as Rope\(\); got 'rope'"),
        ((Rope,), r"encoding must be an Encoding, such as Rope\(\); got <class"),
        ((Rope(), 15), "cache_properties: length must be at least 16; got 15"),
        ((Rope(), 40, 0), "cache_properties: d_head must be at least 1; got 0"),
        ((every_encoding(20)["learned"],), "learned: .*20"),
        ((Rope(), 40, 7), "7"),
    ],
)
def test_bad_input_is_refused_with_the_numbers_at_hand(arguments, message):
    with pytest.raises(ValueError, match=message):
        cache_properties(*arguments)
