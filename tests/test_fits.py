"""Whether a model fits its parameters: what they show, what they cannot, and what is said of it."""

import itertools
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from builders import B, D, H, L, built, each, flat, made

from pe_numpy import Cache, Model, decode, encode, value_and_grad
from pe_numpy.transformer.encodings import (
    T5,
    Alibi,
    Cope,
    Deberta,
    Encoding,
    Fire,
    Hierarchical,
    Kerple,
    Learned,
    Pope,
    RelativeKeyQuery,
    Rope,
    Shaw,
    Sinusoidal,
    Streaming,
    Tempered,
    every_encoding,
)
from pe_numpy.transformer.fits import fits
from pe_numpy.transformer.masks import Causal, Chunk, Window

# ---- each field of a model ----------------------------------------------------------------------

SHOWN = [  # a field, what the parameters are made with, a value that they contradict, what is said
    ("n_heads", {}, 5, "n_heads must divide the width of W_q in decoder layer 0; got 5 and 12"),
    ("n_heads", {}, 24, "n_heads must divide the width of W_q in decoder layer 0; got 24 and 12"),
    (
        "n_heads",
        {"n_heads": 6, "n_kv_heads": 3},
        1,
        "width of W_k in decoder layer 0 must be K times a divisor of n_heads; got 6, K = 12 and 1",
    ),
    (
        "n_heads",
        {"n_heads": 6, "n_kv_heads": 2},
        4,
        "width of W_k in decoder layer 0 must be K times a divisor of n_heads; got 4, K = 3 and 4",
    ),
    (
        "n_heads",
        {"sink": True},
        4,
        r"n_heads must be that of the sinks in decoder layer 0; got 4 and \(2,\)",
    ),
    (
        "n_heads",
        {"encoding": T5()},
        4,
        r"T5\(.*\) must have its own arrays in the decoder shared, {'table': \(32, 4\)}; the "
        r"parameters hold {'table': \(32, 2\)}",
    ),
    (
        "n_heads",
        {"encoding": Pope()},
        4,
        r"Pope\(.*\) must have its own arrays in decoder layer 0, {'phase': \(4, 3\)}; the "
        r"parameters hold {'phase': \(2, 6\)}",
    ),
    (
        "cross_heads",
        {"n_encoder_layers": 1},
        5,
        "cross_heads must divide the width of W_q in decoder layer 0; got 5 and 12",
    ),
    (
        "encoding",
        {},
        Learned(5),
        r"Learned\(length=5\) must have its own arrays in the decoder shared, "
        r"{'table': \(5, 12\)}; the parameters hold none",
    ),
    (
        "encoding",
        {"encoding": Shaw(3)},
        Rope(),
        r"Rope\(.*\) must have its own arrays in decoder layer 0, none; the parameters hold "
        r"{'key_table': \(7, 6\), 'value_table': \(7, 6\)}",
    ),
    (
        "norm",
        {},
        "post",
        "norm must be pre, since the decoder has a last norm; got 'post'. After post-norm leave it "
        "out, and apply it to what the stack gives$",
    ),
    (
        "norm",
        {"norm": "post"},
        "pre",
        "norm must be post, since the decoder has no last norm; got 'pre'$",
    ),
]
UNSHOWN = [  # a field, what the parameters are made with, a value of which they know nothing
    ("n_heads", {}, 3),
    ("n_heads", {}, 1),
    ("n_heads", {"n_heads": 6, "n_kv_heads": 2}, 3),
    ("cross_heads", {"n_encoder_layers": 1}, 4),
    ("encoding", {}, Rope()),
    ("encoding", {}, Alibi()),
    ("encoding", {"encoding": Rope()}, Rope(base=100.0)),
    ("encoding", {"encoding": Hierarchical(3)}, Hierarchical(3, alpha=0.6)),
    ("encoding", {"encoding": T5(8, 20)}, T5(8, 5)),
    ("mask", {}, Window(2)),
    ("mask", {}, (Causal(), Chunk(3))),
    ("activation", {}, "silu"),
    ("scale", {}, 1.0),
    ("dropout", {}, 0.5),
    ("eps", {}, 0.1),
]


@pytest.mark.parametrize(("field", "choices", "value", "message"), SHOWN)
def test_what_the_parameters_show_is_refused_and_both_sides_named(field, choices, value, message):
    model, params, tokens = built(**choices)
    fits(params, model)
    with pytest.raises(ValueError, match=f"^fits: .*{message}"):
        fits(params, replace(model, **{field: value}))
    memory = np.zeros((B, L, D)) if "encoder" in params else None
    with pytest.raises(ValueError, match=f"^decode: .*{message}"):
        decode(params, replace(model, **{field: value}), tokens, memory)


@pytest.mark.parametrize(("field", "choices", "value"), UNSHOWN)
def test_what_they_cannot_show_is_another_model_in_silence(field, choices, value):
    model, params, tokens = built(**choices)
    other = replace(model, **{field: value})
    fits(params, other)
    memory = encode(params, model, tokens) if "encoder" in params else None
    rng = {"rng": np.random.default_rng(0)} if field == "dropout" else {}
    here, there = (decode(params, each, tokens, memory, **rng) for each in (model, other))
    assert np.abs(here - there).max() > 1e-4


def test_every_field_is_tried_and_the_docstring_says_what_cannot_be_shown():
    assert {row[0] for row in SHOWN} | {row[0] for row in UNSHOWN} == {
        f.name for f in fields(Model)
    }
    words = {
        "n_heads": "a number of heads that divides the projections",
        "cross_heads": "a number of heads that divides the projections",
        "encoding": "an encoding that has no arrays of its own",
        "mask": "the mask",
        "activation": "the activation",
        "scale": "the scale",
        "dropout": "dropout",
        "eps": "eps",
    }
    text = " ".join(fits.__doc__.partition("can't show is up to you")[2].split())
    assert set(words) == {row[0] for row in UNSHOWN}
    assert all(word in text for word in words.values())


# ---- each encoding ------------------------------------------------------------------------------

EVERY = every_encoding(40, clip=3)
WITHOUT = {  # arrays of their own: one cannot be told from another
    *("none", "sinusoidal", "multiplicative", "rope", "nezha", "alibi", "sandwich", "rerope"),
    *("self_extend", "dual_chunk", "streaming", "xpos", "rotary_values"),
}
ALIKE = [  # of the same names and shapes, here: their numbers are another matter
    (Learned(7), Hierarchical(7)),
    (Cope(9), RelativeKeyQuery(5)),
    (T5(8, 20), T5(8, 99)),
    (Fire(5.0), Fire(9.0)),
    (Rope(), Tempered()),
]


@pytest.mark.parametrize("n_encoder_layers", [0, 1])
@pytest.mark.parametrize("name", EVERY)
def test_each_encoding_fits_its_own_parameters_and_those_alone(name, n_encoder_layers):
    """Of the 28 every other one is refused, unless neither has arrays."""
    model, params = made(encoding=EVERY[name], n_encoder_layers=n_encoder_layers)
    for other, encoding in EVERY.items():
        mask = encoding.needs or Causal()
        changed = replace(model, encoding=encoding, mask=mask)
        if other == name or {name, other} <= WITHOUT:
            fits(params, changed)
        else:
            rule = rf"^fits: {type(encoding).__name__}\(.*\) must have its own arrays in .*; the pa"
            with pytest.raises(ValueError, match=rule):
                fits(params, changed)


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_arrays_of_the_same_names_and_shapes_tell_no_difference(one, other):
    for a, b in ((one, other), (other, one)):
        model, params = made(encoding=a)
        fits(params, replace(model, encoding=b))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Learned(7), Learned(8)),
        (Shaw(3), Shaw(4)),
        (Deberta(3), Deberta(4)),
        (T5(8, 20), T5(10, 20)),
        (Cope(9), RelativeKeyQuery(6)),
        (Fire(hidden=4), Fire(hidden=5)),
    ],
)
def test_tables_of_another_length_are_refused(one, other):
    for a, b in ((one, other), (other, one)):
        model, params = made(encoding=a)
        with pytest.raises(ValueError, match="must have its own arrays"):
            fits(params, replace(model, encoding=b))


def test_heads_of_keys_that_do_not_divide_are_refused():
    """Of parameters that `init_params` does not make: keys of two heads for three."""
    model, params = made(n_heads=3)
    for name in ("W_k", "W_v", "b_k", "b_v"):
        own = params["decoder"]["layers"]["1"]["attention"]
        own[name] = own[name][..., :8]
    rule = "W_k in decoder layer 1 must be K times a divisor of n_heads; got 8, K = 4 and 3 heads"
    with pytest.raises(ValueError, match=rule):
        fits(params, model)


@dataclass(frozen=True)
class Sided(Learned):
    """In an encoder it has two rows more."""

    def for_encoder(self):
        return Learned(self.length + 2)


def test_an_encoder_has_the_arrays_of_its_own_encoding():
    model, params, _ = built(Sided(8), n_encoder_layers=1)
    assert [len(params[s]["shared"]["table"]) for s in ("encoder", "decoder")] == [10, 8]
    fits(params, model)
    encode(params, model, np.zeros((1, 10), int))
    for encoding in (Learned(8), Learned(10)):
        with pytest.raises(ValueError, match=r"own arrays in the (en|de)coder shared"):
            fits(params, replace(model, encoding=encoding))


def test_an_array_that_is_missing_or_one_too_many_is_refused():
    model, params = made(encoding=Shaw(3), n_encoder_layers=1)
    for stack in ("encoder", "decoder"):
        own = params[stack]["layers"]["0"]["encoding"]
        table = own.pop("value_table")
        with pytest.raises(ValueError, match=f"in {stack} layer 0, .*hold .'key_table': .7, 6..$"):
            fits(params, model)
        own["other_table"] = table
        with pytest.raises(ValueError, match=f"in {stack} layer 0, .*'other_table'"):
            fits(params, model)
        del own["other_table"]
        own |= {"value_table": table, "more": table}
        with pytest.raises(ValueError, match=f"in {stack} layer 0, .*'more'"):
            fits(params, model)
        del own["more"]
        params[stack]["shared"]["table"] = table
        with pytest.raises(ValueError, match=f"in the {stack} shared, none; the parameters hold"):
            fits(params, model)
        del params[stack]["shared"]["table"]
    fits(params, model)


# ---- patterns of layers -------------------------------------------------------------------------

PATTERN = (Kerple(), Rope())
NAMES = r"the decoder must share arrays under the names \['0', '1'\], since the model has 2 .*; got"


def test_a_pattern_fits_itself_and_a_longer_one_that_says_the_same():
    model, params = made(encoding=PATTERN, n_layers=4)
    for same in (PATTERN, PATTERN * 2, (Kerple(), Alibi())):
        fits(params, replace(model, encoding=same))
    model, params = made(encoding=Kerple(), n_layers=2)
    for same in (Kerple(), (Kerple(),), (Kerple(), Kerple(), Rope())):
        fits(params, replace(model, encoding=same))


def test_a_pattern_is_no_single_encoding():
    """Kerple shares two arrays, a pattern of two encodings two dictionaries."""
    model, params = made(encoding=Kerple())
    with pytest.raises(ValueError, match=rf"^fits: {NAMES} \['log_p', 'log_a'\]"):
        fits(params, replace(model, encoding=PATTERN))
    model, params = made(encoding=Rope())
    with pytest.raises(ValueError, match=rf"^fits: {NAMES} \[\]"):
        fits(params, replace(model, encoding=PATTERN))
    model, params = made(encoding=PATTERN)
    for single in (Kerple(), Rope(), Encoding()):
        with pytest.raises(ValueError, match="must have its own arrays in the decoder shared"):
            fits(params, replace(model, encoding=single))


def test_the_order_of_a_pattern_is_seen_where_arrays_show_it():
    model, params = made(encoding=PATTERN)
    with pytest.raises(ValueError, match=r"Rope\(.*\) must have its own arrays in the decoder sh"):
        fits(params, replace(model, encoding=PATTERN[::-1]))
    model, params = made(encoding=(Shaw(3), Rope()))
    with pytest.raises(ValueError, match=r"Rope\(.*\) must have its own arrays in decoder layer 0"):
        fits(params, replace(model, encoding=(Rope(), Shaw(3))))
    model, params = made(encoding=(Alibi(), Rope()))
    fits(params, replace(model, encoding=(Rope(), Alibi())))


def test_shared_arrays_are_found_by_their_names_in_any_order():
    """As they come out of a file."""
    model, params, tokens = built((T5(), Rope(), Learned(9)), n_layers=3)
    before = decode(params, model, tokens)
    shared = params["decoder"]["shared"]
    params["decoder"]["shared"] = dict(sorted(shared.items(), reverse=True))
    fits(params, model)
    assert np.array_equal(decode(params, model, tokens), before)


# ---- who asks -----------------------------------------------------------------------------------


def test_encode_asks_and_names_the_stack():
    model, params, tokens = built(Learned(9), n_encoder_layers=1)
    with pytest.raises(
        ValueError, match=r"^encode: norm must be pre, since the encoder has a last"
    ):
        encode(params, replace(model, norm="post"), tokens)
    with pytest.raises(ValueError, match=r"^encode: .* in the encoder shared"):
        encode(params, replace(model, encoding=Learned(8)), tokens)


def test_the_first_call_behind_a_cache_is_asked_and_leaves_it_free():
    model, params, tokens = built()
    cache = Cache(B, L)
    with pytest.raises(ValueError, match=r"^decode: norm must be pre"):
        decode(params, replace(model, norm="post"), tokens, cache=cache)
    assert cache.length == 0 and not cache.owner and not cache.held
    decode(params, model, tokens, cache=cache)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_whatever_init_params_makes_fits(name, norm):
    for gated, n_kv_heads, d_head in itertools.product((False, True), (None, 1), (None, 8)):
        choices = {"n_encoder_layers": 1, "norm": norm, "sink": gated, "rms": gated, "tied": gated}
        model, params = made(
            encoding=EVERY[name], gated=gated, n_kv_heads=n_kv_heads, d_head=d_head, **choices
        )
        fits(params, model)


def test_the_tape_may_ask_too():
    """Parameters are no arrays of NumPy then, but have shapes."""
    model, params, tokens = built(T5())
    other = replace(model, norm="post")
    value, grads = value_and_grad(lambda p: np.sum(decode(p, model, tokens) ** 2))(params)
    assert value > 0 and all(np.isfinite(g).all() for _, g in flat(grads))
    with pytest.raises(ValueError, match=r"^decode: norm must be pre"):
        value_and_grad(lambda p: np.sum(decode(p, other, tokens)))(params)


def test_nothing_is_drawn_from_the_callers_generator_and_nothing_changed():
    model, params, _ = built(Streaming(3, 1), n_heads=H)
    before = each(params, np.copy)
    fits(params, model)
    fits(params, replace(model, encoding=Sinusoidal(), mask=Causal()))
    for (path, x), (_, y) in zip(flat(params), flat(before), strict=True):
        assert np.array_equal(x, y), path
