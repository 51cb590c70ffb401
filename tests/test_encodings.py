"""Encodings by themselves: own positions, scalings of RoPE, and every field."""

import inspect
import math
from dataclasses import dataclass, fields

import numpy as np
import pytest
from builders import B, D, H, L, built
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    Cache,
    Context,
    decode,
    dynamic_ntk_scaling,
    linear_scaling,
    llama3_scaling,
    nezha_table,
    ntk_scaling,
    relative_distance,
    rope,
    rope_frequencies,
    shaw_scores,
    shaw_values,
    softmax,
    yarn_scaling,
)
from pe_numpy.transformer import encodings
from pe_numpy.transformer.encodings import (
    Alibi,
    Encoding,
    Nezha,
    RelativeKeyQuery,
    Rope,
    Shape,
    Shaw,
    Tempered,
    every_encoding,
    rotation,
)

S = 6

# ---- the places, one by one ---------------------------------------------------------------------


def test_queries_and_keys_are_taken_at_positions_of_their_own():
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((B, H, 2, 6)), rng.standard_normal((B, H, 5, 6))
    q_at, k_at = np.array([3, 4]), np.arange(5)
    context = Context(q_at, k_at)
    turned = Rope().turn({}, q, k, context)
    assert_array_equal(turned[0], rope(q, q_at))
    assert_array_equal(turned[1], rope(k, k_at))
    tables = every_encoding(8, clip=3)["shaw"].layer(rng, Shape(D, H))
    expected = shaw_scores(q, k, tables["key_table"], relative_distance(q_at, k_at))
    assert_array_equal(every_encoding(8, clip=3)["shaw"].scores(tables, q, k, context), expected)
    far = Rope().turn({}, q[..., :1, :], k[..., :1, :], Context([4], [1]))
    assert_array_equal(far[0], rope(q[..., :1, :], [4]))
    assert_array_equal(far[1], rope(k[..., :1, :], [1]))
    newest = k[..., -2:, :]  # of all keys, those that the queries' tokens have made
    assert_array_equal(Rope().turn({}, q, newest, context)[1], rope(newest, q_at))


def test_nezha_is_shaw_with_a_fixed_table_in_both_places():
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, B, H, 5, 6)).astype(np.float32)
    at, nezha, table, here = np.arange(5), Nezha(clip=3), nezha_table(3, 6), Context(range(5))
    tables, distance = {"key_table": table, "value_table": table}, relative_distance(at, at)
    assert nezha.layer(rng, Shape(D, H)) == nezha.shared(rng, Shape(D, H)) == {}
    scores, shaw = nezha.scores({}, q, k, here), Shaw(clip=3)
    assert_array_equal(scores, shaw.scores(tables, q, k, here))
    mixed = nezha.mix({}, softmax(scores), v, here)
    assert_array_equal(mixed, shaw_values(softmax(scores), v, table, distance))
    assert scores.dtype == mixed.dtype == np.float32


def test_relative_key_query_serves_texts_of_its_length_and_refuses_longer_ones():
    rng, whole = np.random.default_rng(0), RelativeKeyQuery(length=5)
    params = whole.layer(rng, Shape(D, H))
    q = rng.standard_normal((B, H, 6, D // H))
    assert params["table"].shape == (9, D // H)
    assert whole.scores(params, q[..., :5, :], q[..., :5, :], Context(range(5))).any()
    with pytest.raises(ValueError, match="got -5 to 5"):
        whole.scores(params, q, q, Context(range(6)))


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
    "dynamic NTK": lambda d, length: dynamic_ntk_scaling(d, length, 4),
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
    cache = Cache(B, L)
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
    for x, got in zip((q, k), partial.turn({}, q, k, Context(at)), strict=True):
        turned = rope(x, at, theta, layout)
        assert got.dtype == np.float32
        assert_array_equal(got[..., 4:], x[..., 4:])
        assert_allclose(got[..., :4], factor * turned[..., :4], rtol=1e-6)


def test_a_tempered_layer_knows_no_position_but_warms_its_queries():
    q, k = np.random.default_rng(0).standard_normal((2, B, H, L, 6))
    at = np.arange(10, 10 + L)
    layer = Tempered(floor_scale=4, scale=0.5)
    warm, same = layer.turn({}, q, k, Context(at))
    assert_array_equal(same, k)
    for n, i in enumerate(at):
        expected = q[..., n, :] * (1 + 0.5 * math.log(1 + (i + 1) // 4))
        assert_allclose(warm[..., n, :], expected, rtol=0, atol=1e-12)
    batch = np.stack([at, at, at + 1])
    assert_array_equal(layer.turn({}, q, k, Context(batch))[0][:2], warm[:2])


# ---- every field of every class -----------------------------------------------------------------

WORDS = ("2", None, [2])
INTEGER = {  # whole numbers above 0
    "must be a whole number": (*WORDS, 2.0, True),
    "must be at least 1": (0, -3),
}
POSITIVE = {
    "must be one real number": (*WORDS, True),
    "must be above 0": (0, -3.0),
    "must be finite": (np.nan, np.inf),
}
NUMBER = {"must be one real number": (*WORDS, True), "must be finite": (np.nan, np.inf)}
FLAG = {"must be True or False": (*WORDS, 1, 0)}
LAYOUT = {"must be 'interleaved' or 'half'": ("neox", "Half", None, 1, True)}
ROPE = {"base": POSITIVE, "layout": LAYOUT}
SCALING = {"must be a function of K and the length": ("yarn", 4.0, 0, np.ones(3), False)}
STRETCH = {
    "must be at least 1": (0, -2.0, 0.5),
    "must be one real number": ("2", [2], True),
    "must be finite": (np.nan, np.inf),
}
LOCAL = {
    "must be a whole number": (*WORDS, 2.0, True),
    "must be at least 0": (-1,),
    "must be below size": (3072, 4000),
}
SINKS = {"must be a whole number": (*WORDS, 2.0, True), "must be at least 0": (-1,)}
SLOPES = {
    "must be a tuple": (0.5, [0.5, 0.25], np.ones(2), "12", ()),
    "must be one real number": (("1", 0.5), (0.5, None), (True,)),
    "must be finite": ((np.nan, 0.5),),
}
BUCKETS = {**INTEGER, "must be at least 2": (1,)}
FURTHEST = {**INTEGER, "must be above the 16 distances": (16, 3)}
T5 = {"num_buckets": BUCKETS, "max_distance": FURTHEST, "bidirectional": FLAG}
ALPHA = {**NUMBER, "must not be 1": (1, 1.0)}
NEEDED = {"length": 9}  # fields without a default

FIELDS = {  # of each class, its wrong choices by what is said of them
    "Encoding": {},
    "Sinusoidal": {"base": POSITIVE},
    "Multiplicative": {"base": POSITIVE},
    "Learned": {"length": INTEGER},
    "Hierarchical": {"length": INTEGER, "alpha": ALPHA},
    "Recurrent": {},
    "Floater": {},
    "Rope": {**ROPE, "scaling": SCALING},
    "Tempered": {"floor_scale": POSITIVE, "scale": POSITIVE},
    "XPos": {**ROPE, "scale_base": POSITIVE, "centre": NUMBER},
    "Pope": {"base": POSITIVE},
    "RotaryValues": {**ROPE, "scaling": SCALING},
    "Shaw": {"clip": INTEGER},
    "RelativeKeyQuery": {"length": INTEGER},
    "Nezha": {"clip": INTEGER},
    "TransformerXL": {"base": POSITIVE},
    "T5": T5,
    "Tupe": {**T5, "length": INTEGER},
    "Deberta": {"clip": INTEGER},
    "Alibi": {"slopes": SLOPES},
    "Kerple": {},
    "Sandwich": {"d": {**INTEGER, "must be even": (7,)}, "base": POSITIVE},
    "Fire": {"threshold": POSITIVE, "hidden": INTEGER},
    "Forgetting": {"start": NUMBER},
    "Cope": {"length": INTEGER},
    "ReRope": {**ROPE, "window": INTEGER, "stretch": STRETCH},
    "SelfExtend": {**ROPE, "window": INTEGER, "group": INTEGER},
    "DualChunk": {**ROPE, "size": INTEGER, "local": LOCAL},
    "Streaming": {**ROPE, "window": INTEGER, "sinks": SINKS},
}


def classes():
    """Every encoding of the package, by name."""
    found = {name: getattr(encodings, name) for name in encodings.__all__}
    return {n: c for n, c in found.items() if inspect.isclass(c) and issubclass(c, Encoding)}


@pytest.mark.parametrize("name, field", [(n, f) for n, own in FIELDS.items() for f in own])
def test_every_wrong_field_is_refused_by_its_name(name, field):
    kind = classes()[name]
    given = {f.name: NEEDED[f.name] for f in fields(kind) if f.name in NEEDED}
    kind(**given)
    for message, values in FIELDS[name][field].items():
        for value in values:
            with pytest.raises(ValueError, match=rf"^\w+: {field} {message}.*; got"):
                kind(**{**given, field: value})


def test_every_field_of_every_class_has_its_wrong_choices_tested():
    assert {n: {f.name for f in fields(c)} for n, c in classes().items()} == {
        name: set(own) for name, own in FIELDS.items()
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: encodings.SelfExtend(4, 0), "SelfExtend: group must be at least 1; got 0"),
        (lambda: encodings.DualChunk(2, 2), "local must be below size; got 2 and 2"),
        (lambda: encodings.ReRope(0), "ReRope: window must be at least 1; got 0"),
        (lambda: Shaw(-3), "Shaw: clip must be at least 1; got -3"),
        (lambda: encodings.Learned(0), "Learned: length must be at least 1; got 0"),
        (lambda: Rope(layout="neox"), "Rope: layout must be 'interleaved' or 'half'; got 'neox'"),
        (lambda: encodings.T5(8, 4), "max_distance must be above the 4 distances .*; got 4"),
    ],
)
def test_what_is_refused_is_said_in_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_right_fields_are_taken():
    for name, choices in (
        ("Rope", {"base": 500, "layout": "half", "scaling": lambda K, length: np.ones(K // 2)}),
        ("Alibi", {"slopes": (0.5, np.float32(0.25), 0)}),
        ("Alibi", {"slopes": None}),
        ("Shaw", {"clip": np.int64(1)}),
        ("ReRope", {"window": 1, "stretch": 1}),
        ("DualChunk", {"size": 1, "local": 0}),
        ("Streaming", {"window": 1, "sinks": 0}),
        ("T5", {"num_buckets": 2, "max_distance": 2}),
        ("Forgetting", {"start": -4}),
        ("XPos", {"centre": -3.5}),
        ("Hierarchical", {"length": 2, "alpha": -0.5}),
    ):
        classes()[name](**choices)


@pytest.mark.parametrize("n", [1, 3])
def test_alibi_has_a_slope_for_each_head(n):
    model, params, tokens = built(Alibi((0.5,) * n))
    with pytest.raises(ValueError, match=rf"^Alibi: slopes must be one for each of .* 2 .*got {n}"):
        decode(params, model, tokens)
    model, params, tokens = built(Alibi((0.5, 0.5)))
    assert np.isfinite(decode(params, model, tokens)).all()


def test_a_students_own_encoding_may_have_fields_of_its_own():
    @dataclass(frozen=True)
    class Own(Encoding):
        period: int = -1
        base: float = 10.0

    assert Own(period="week").base == 10
    with pytest.raises(ValueError, match=r"^Own: base must be above 0; got -1"):
        Own(base=-1)
