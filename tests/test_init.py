"""Parameters: the numbers that are drawn, shapes, and sizes that are refused."""

import hashlib
from dataclasses import fields

import numpy as np
import pytest
from builders import D, flat, made, parts

from pe_numpy import Sizes, init_params
from pe_numpy.transformer.encodings import T5, Learned, Rope, every_encoding

# ---- the same numbers as ever -------------------------------------------------------------------


def digest(tree):
    """Of paths, dtypes, shapes and bytes, in the order of the paths."""
    found = hashlib.sha256()
    for path, x in sorted(flat(tree), key=lambda pair: pair[0].split("/")):
        found.update(f"{path}{x.dtype}{x.shape}".encode())
        found.update(np.ascontiguousarray(x).tobytes())
    return found.hexdigest()[:16]


# Of `every_encoding(16)` without an encoder and with one of two layers, in float32, as they were
# drawn before the sizes left `Model`: studies and chapters begin from these numbers.
DRAWN = {
    "none": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
    "sinusoidal": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
    "multiplicative": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
    "learned": ("cb7645260f231dff", "3a08b04504a91157"),
    "hierarchical": ("b075397a3e124b55", "37a78fa6e9e940ac"),
    "recurrent": ("b09fabf379107a04", "b0b6ac0973e4553b"),
    "floater": ("38b37a4464bf6b6f", "8d1c060644e0413c"),
    "rope": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
    "shaw": ("2fabeb3c5d8dfae0", "22e95f12eb1ef8a6"),
    "relative_key_query": ("d11534f16e51c141", "f16d7795c7502fd5"),
    "nezha": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
    "transformer_xl": ("627536c90a4af4f5", "fdca633eff18575f"),
    "t5": ("729710ca3ae5a604", "4dcaa076cf68d045"),
    "tupe": ("ef958c75c57399af", "0c975ee1a3165b74"),
    "deberta": ("6adc398f47ba0f0c", "c03e86b56a50a0de"),
    "alibi": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
    "kerple": ("1869888130772fee", "bdee1b8a2492aab7"),
    "sandwich": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
    "fire": ("57da3dfaca841b9b", "d8d58b2d29e8f70b"),
    "forgetting": ("9325700fa729c4b0", "b147cef46e70a877"),
    "cope": ("f8bd993474797dba", "1e0571036bc242a1"),
    "rerope": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
    "self_extend": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
    "dual_chunk": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
    "streaming": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
    "xpos": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
    "pope": ("7a25451e360d427e", "0e7b12c2c3c7d0c2"),
    "rotary_values": ("20ee605b4344d42c", "e69aa9b40ff243a7"),
}
SIZES = {"vocabulary": 11, "d_model": 16, "n_heads": 4, "d_ff": 24, "n_layers": 3}


@pytest.mark.parametrize("name", every_encoding(16))
def test_parameters_of_every_encoding_are_drawn_as_ever(name):
    encoding = every_encoding(16)[name]
    for layers, expected in zip((0, 2), DRAWN[name], strict=True):
        choices = {**SIZES, "encoding": encoding, "n_encoder_layers": layers}
        assert digest(made(dtype=np.float32, **choices)[1]) == expected


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ({"n_encoder_layers": 2, "tied": True, "norm": "post"}, "5a4f54c5c5500cd1"),
        (
            {
                "rms": True,
                "gated": True,
                "biases": False,
                "n_kv_heads": 2,
                "activation": "silu",
                "scale": 1.0,
            },
            "6a402c8de8124f48",
        ),
        ({"sink": True}, "4ce72df03c872fcb"),
        ({"d_head": 6, "n_encoder_layers": 1}, "74a7f1d28358cc6a"),
        ({"n_encoder_layers": 1, "cross_heads": 2}, "7df369455f66d3e9"),
        ({"encoding": (Rope(), Learned(16), T5())}, "4f18423b8228df62"),
    ],
)
def test_parameters_of_other_choices_are_drawn_as_ever(choices, expected):
    assert digest(made(seed=1, **SIZES, **choices)[1]) == expected


def test_the_digest_sees_every_number():
    params = made(**SIZES)[1]
    before = digest(params)
    assert digest(made(**SIZES)[1]) == before
    for path, x in flat(params):
        kept = x.flat[-1]
        x.flat[-1] = np.nextafter(kept, 9)
        assert digest(params) != before, path
        x.flat[-1] = kept


# ---- shapes -------------------------------------------------------------------------------------


def test_heads_need_not_divide_the_width_if_theirs_is_given():
    choices = {"n_layers": 1, "n_encoder_layers": 1, "n_heads": 6, "cross_heads": 5}
    params = made(**choices, d_head=4, n_kv_heads=3, sink=True)[1]
    layer = params["decoder"]["layers"]["0"]
    shapes = {name: x.shape for name, x in layer["attention"].items()}
    assert shapes == {
        **{"W_q": (D, 24), "W_k": (D, 12), "W_v": (D, 12), "W_o": (24, D)},
        **{"b_q": (24,), "b_k": (12,), "b_v": (12,), "b_o": (D,), "sink": (6,)},
    }
    assert {x.shape for n, x in layer["cross"].items() if n[2] != "o"} == {(D, 20), (20,)}
    assert layer["cross"]["W_o"].shape == (20, D)


def test_the_parts_are_those_that_the_sizes_ask_for():
    for choice, part, there, absent in (
        ("tied", "/output", False, True),
        ("gated", "/decoder/layers/0/feed_forward/W_gate", True, False),
        ("biases", "/decoder/layers/1/cross/b_q", True, False),
        ("biases", "/encoder/layers/0/feed_forward/b_2", True, False),
        ("rms", "/decoder/norm/bias", False, True),
        ("rms", "/encoder/layers/0/attention_norm/bias", False, True),
        ("sink", "/encoder/layers/0/attention/sink", True, False),
        ("sink", "/decoder/layers/0/cross/sink", False, False),
    ):
        for value, expected in ((True, there), (False, absent)):
            paths = dict(flat(made(n_encoder_layers=1, **{choice: value})[1]))
            assert (part in paths) == expected, (choice, value)
    post = made(n_encoder_layers=1, norm="post")[1]
    assert "norm" not in post["decoder"] and "norm" not in post["encoder"]
    assert "encoder" not in made()[1] and list(made(n_layers=3)[1]["decoder"]["layers"]) == [*"012"]


def test_all_parameters_have_the_dtype_that_is_asked_for():
    for dtype in (np.float16, np.float32, np.float64):
        params = made(dtype=dtype, n_encoder_layers=1, encoding=Learned(4), sink=True)[1]
        assert {x.dtype for _, x in flat(params)} == {np.dtype(dtype)}


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("vocabulary", (0, -3), "must be at least 1; got"),
        ("vocabulary", (2.0, "2", None, True), "must be a whole number; got"),
        ("d_model", (0,), "must be at least 1; got 0"),
        ("d_model", (12.0, "12", True), "must be a whole number; got"),
        ("d_ff", (0,), "must be at least 1; got 0"),
        ("d_ff", (2.5, True), "must be a whole number; got"),
        ("n_layers", (0,), "must be at least 1; got 0"),
        ("n_layers", (1.0, True), "must be a whole number; got"),
        ("n_encoder_layers", (-1,), "must be at least 0; got -1"),
        ("n_encoder_layers", (1.0, None, False), "must be a whole number; got"),
        ("n_kv_heads", (0, -1), "must be at least 1; got"),
        ("n_kv_heads", (1.0, True), "must be a whole number; got"),
        ("d_head", (0, -4), "must be at least 1; got"),
        ("d_head", (8.0, True, "8"), "must be a whole number; got"),
        ("gated", ("no", 1, None, "silu"), "must be True or False; got"),
        ("biases", ("no", 0, None), "must be True or False; got"),
        ("tied", ("no", 1.0), "must be True or False; got"),
        ("rms", ("rms", 1, None), "must be True or False; got"),
        ("sink", (1, None, "yes"), "must be True or False; got"),
    ],
)
def test_every_wrong_size_is_refused_by_the_name_of_its_field(field, values, message):
    for value in values:
        with pytest.raises(ValueError, match=f"^Sizes: {field} {message}"):
            parts(**{field: value})


def test_every_field_of_the_sizes_has_its_wrong_choices_tested():
    tested = test_every_wrong_size_is_refused_by_the_name_of_its_field
    (mark,) = tested.pytestmark
    assert {field for field, *_ in mark.args[1]} == {field.name for field in fields(Sizes)}


def test_right_sizes_are_taken():
    for choices in (
        {"gated": np.True_},
        {"vocabulary": np.int64(1)},
        {"n_heads": 5, "cross_heads": 7, "d_head": np.int64(4)},
        {"n_kv_heads": 1, "n_encoder_layers": 0},
    ):
        made(**choices)
    assert Sizes(np.int64(11), 8, 16, 1) == Sizes(11, 8, 16, n_layers=1, tied=False)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"n_heads": 5}, "n_heads must divide d_model; got 5 and 12"),
        ({"n_heads": 24}, "n_heads must divide d_model; got 24 and 12"),
        ({"cross_heads": 5}, "cross_heads must divide d_model; got 5 and 12"),
        ({"cross_heads": 24}, "cross_heads must divide d_model; got 24 and 12"),
        ({"n_kv_heads": 5}, "n_kv_heads must divide n_heads; got 5 and 2"),
        ({"n_heads": 6, "n_kv_heads": 4}, "n_kv_heads must divide n_heads; got 4 and 6"),
        ({"n_kv_heads": 4}, "n_kv_heads must divide n_heads; got 4 and 2"),
        (
            {"n_heads": 5, "d_head": 4, "n_kv_heads": 2},
            "n_kv_heads must divide n_heads; got 2 and 5",
        ),
    ],
)
def test_sizes_and_choices_that_exclude_each_other_are_refused(choices, message):
    with pytest.raises(ValueError, match=f"^init_params: {message}"):
        made(**choices)


def test_init_params_refuses_what_would_give_no_parameters():
    (sizes, model), rng = parts(), np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"init_params: sizes must be Sizes\(...\); got dict"):
        init_params({}, model, rng)
    with pytest.raises(ValueError, match=r"init_params: model must be Model\(...\); got int"):
        init_params(sizes, 2, rng)
    with pytest.raises(ValueError, match=r"init_params: sizes must be Sizes\(...\); got Model"):
        init_params(model, sizes, rng)
    with pytest.raises(ValueError, match=r"init_params: rng must be a generator, .*; got int"):
        init_params(sizes, model, 0)
    with pytest.raises(ValueError, match="init_params: dtype must be a floating one"):
        init_params(sizes, model, rng, int)
