"""GGUF files against the package gguf, the families against transformers, and what is refused."""

import functools
import math
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import greedy, load_model
from pe_numpy.models.gguf import BLOCKS, PIECE, read_gguf
from pe_numpy.models.llama_cpp import checkpoint_of

GOLDEN = Path(__file__).parent / "golden"
FAMILIES = sorted(path.stem for path in GOLDEN.glob("gguf/*.gguf") if path.stem != "blocks")
# A fixture's folder serves all examples: each writes its file anew.
many = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
KINDS = {block.name: kind for kind, block in BLOCKS.items()}


# ---- files by hand ------------------------------------------------------------------------------


def text(x):
    x = x if isinstance(x, bytes) else x.encode()
    return struct.pack("<Q", len(x)) + x


def value(x):
    """Type and bytes of a value, by its type in Python; bytes are taken as they are."""
    if isinstance(x, bytes):
        return x
    if isinstance(x, str):
        return struct.pack("<I", 8) + text(x)
    if isinstance(x, list):
        inner = [value(each) for each in x]
        return struct.pack("<I", 9) + inner[0][:4] + count(len(x)) + b"".join(i[4:] for i in inner)
    kind, code = {bool: (7, "?"), int: (4, "I"), float: (6, "f")}[type(x)]
    return struct.pack(f"<I{code}", kind, x)


def count(n):
    return struct.pack("<Q", n)


def info(name="x", shape=(8,), kind=0, at=0):
    axes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
    return text(name) + axes + struct.pack("<IQ", kind, at)


def raw(infos=(), data=b"", keys=(), version=3, counts=None, alignment=32):
    """A file of keys (name, value) and tensors; `counts` may lie."""
    head = b"GGUF" + struct.pack("<IQQ", version, *(counts or (len(infos), len(keys))))
    head += b"".join(text(name) + value(x) for name, x in keys) + b"".join(infos)
    return head + bytes(-len(head) % alignment) + data


def written(folder, content):
    path = folder / "m.gguf"
    path.write_bytes(content)
    return path


def rewritten(folder, name, keys=None, tensors=None):
    """A golden file again: keys and tensors changed, or taken out by None; tensors as float32."""
    file = read_gguf(GOLDEN / "gguf" / f"{name}.gguf")
    held = file.keys | (keys or {})
    arrays = {key: file.numbers(key) for key in file.tensors} | (tensors or {})
    arrays = {key: x for key, x in arrays.items() if x is not None}
    infos, data = [], b""
    for key, x in arrays.items():
        infos.append(info(key, x.shape, at=len(data)))
        data += np.float32(x).tobytes()
        data += bytes(-len(data) % 32)
    return written(folder, raw(infos, data, [(k, x) for k, x in held.items() if x is not None]))


# ---- blocks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_blocks_become_the_numbers_of_the_package_gguf_to_the_bit(name):
    with np.load(GOLDEN / "gguf/blocks.npz") as file:
        expected = file[name]
    ours = read_gguf(GOLDEN / "gguf/blocks.gguf").numbers(name)
    assert ours.dtype == np.float32 and ours.shape == expected.shape
    assert_array_equal(ours.view("u4"), expected.view("u4"))


def test_a_block_of_four_bits_by_hand():
    # d = 1/2, m = 1/4; scale 3 and minimum 2 in the first part, 33 and 17 in the fifth; q = 10, 5.
    s = np.zeros(12, np.uint8)
    s[0], s[4] = 3 | 33 >> 4 << 6, 2 | 17 >> 4 << 6
    s[8] = 33 & 15 | (17 & 15) << 4
    b = np.concatenate([np.float16([0.5, 0.25]).view(np.uint8), s, np.full(128, 0x5A, np.uint8)])
    w = BLOCKS[KINDS["Q4_K"]].read(b[None])[0].reshape(8, 32)
    assert (w[0] == 3 / 2 * 10 - 2 / 4).all() and (w[4] == 33 / 2 * 10 - 17 / 4).all()
    assert not w[[1, 2, 3, 5, 6, 7]].any()


def test_a_tensor_is_made_in_pieces_and_nothing_else_of_its_size(tmp_path):
    n = 8 * PIECE
    blocks = np.zeros((n // 32, 34), np.uint8)
    blocks[:, :2] = np.float16([0.5]).view(np.uint8)
    blocks[:, 2:] = np.arange(n, dtype=np.uint8).reshape(-1, 32) % 100
    file = read_gguf(written(tmp_path, raw([info(shape=(2, n // 2), kind=8)], blocks.tobytes())))
    tracemalloc.start()
    w = file.numbers("x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert w.shape == (2, n // 2) and peak < 1.5 * w.nbytes
    assert_array_equal(w.ravel(), np.arange(n, dtype=np.uint8) % 100 / 2)


# ---- the header ---------------------------------------------------------------------------------


def test_keys_of_all_types_are_read(tmp_path):
    codes = {
        0: "B",
        1: "b",
        2: "H",
        3: "h",
        4: "I",
        5: "i",
        6: "f",
        7: "?",
        10: "Q",
        11: "q",
        12: "d",
    }
    least = {code: -7 if code in "bhifqd" else 1 for code in codes.values()}
    keys = [(f"{k}", struct.pack(f"<I{code}", k, least[code])) for k, code in codes.items()]
    pair = [
        (f"{k}s", struct.pack(f"<IIQ2{code}", 9, k, 2, least[code], 1)) for k, code in codes.items()
    ]
    words = [
        ("word", "Ünï 🙂"),
        ("words", ["", "\0", "日本"]),
        ("none", struct.pack("<IIQ", 9, 8, 0)),
    ]
    file = read_gguf(written(tmp_path, raw(keys=keys + pair + words)))
    for k, code in codes.items():
        assert file.keys[f"{k}"] == least[code] and file.keys[f"{k}s"] == [least[code], 1]
    assert file.keys["7"] is True and type(file.keys["12"]) is float
    assert [file.keys[name] for name, _ in words] == ["Ünï 🙂", ["", "\0", "日本"], []]


def test_shapes_are_turned_round_and_tensors_may_stand_in_any_order_with_another_alignment(
    tmp_path,
):
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([7, 8])
    keys = [("general.alignment", 64)]
    infos = [info("b", (2,), at=64), info("a", (2, 3))]
    for end in (0, 56):  # the last one may be filled up, too
        data = a.tobytes() + bytes(40) + b.tobytes() + bytes(end)
        file = read_gguf(written(tmp_path, raw(infos, data, keys, version=2, alignment=64)))
        assert list(file.tensors) == ["b", "a"]
        assert_array_equal(file.numbers("a"), a)
        assert_array_equal(file.numbers("b"), b)


ONES = np.ones(8, np.float32).tobytes()
CUT, ROOM = "m.gguf must hold what it says", "m.gguf must have room for its"
BEGIN, VERSION = "m.gguf must begin with GGUF and be whole", "m.gguf must be of version 2 or 3"
TYPES = "m.gguf must have values of the types 0, 1, .* 12; key 'k' has type"
NUMBERS = "m.gguf must have numbers of the types F32, F16, .* BF16; tensor 'x' has type"
AXES = "m.gguf must have axes from 1 on, at most 1152921504606846976 numbers"
FOLLOW = "m.gguf must have tensors that follow each other; there is"
END = "m.gguf must end with its last tensor, at byte"
ALIGNMENT = "m.gguf must have a power of two from 8 to 65536 as general.alignment; got"
ARRAY = struct.pack("<I", 9)


def array(kind, n, content=b""):
    return ARRAY + struct.pack("<IQ", kind, n) + content


def one(x, **more):
    """A file with the key k."""
    return raw([info()], ONES, [("k", x)], **more)


REFUSED = {
    "nothing": (b"", BEGIN),
    "four bytes": (b"GGUF", BEGIN),
    "no counts": (b"GGUF" + struct.pack("<IQ", 3, 0), f"{BEGIN}.* has 16 bytes"),
    "safetensors": (struct.pack("<Q", 2) + b"{}" + bytes(40), f"{BEGIN}; it begins with"),
    "old magic": (b"ggjt" + bytes(40), f"{BEGIN}; it begins with b'ggjt'"),
    "version 1": (raw(version=1), f"{VERSION}, little-endian; got 1"),
    "version 4": (raw(version=4), VERSION),
    "the other order": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), f"{VERSION}.* got 50331648"),
    "2^64 - 1 tensors": (raw([info()], ONES, counts=(2**64 - 1, 0)), f"{ROOM} tensors"),
    "2^60 keys": (raw([info()], ONES, counts=(1, 2**60)),
        f"{ROOM} keys; it says 1152921504606846976"),
    "a tensor more": (raw([info()], ONES, counts=(2, 0)), "m.gguf must have tensors of 1 to 4"),
    "a key more": (raw(counts=(0, 1)), f"{CUT}; key '' needs 4 bytes"),
    "string past the end": (one(struct.pack("<IQ", 8, 10**6) + b"a"), f"{CUT}; key 'k' needs"),
    "string of 2^64 - 1": (one(struct.pack("<IQ", 8, 2**64 - 1)), CUT),
    "name of 2^63": (raw([count(2**63) + b"abc"], ONES), f"{CUT}; the name of tensor 0"),
    "array past the end": (one(array(4, 10**6)), f"{CUT}; key 'k' needs 4000000 bytes"),
    "array of 2^64 - 1": (one(array(10, 2**64 - 1)), CUT),
    "strings past the end": (one(array(8, 10**6)), f"{CUT}; key 'k' needs 8000000 bytes"),
    "2^61 strings, which wraps": (one(array(8, 2**61)), CUT),
    "strings that end in one": (one(array(8, 2, count(1) + b"a" + count(99))), CUT),
    "array of arrays": (one(array(9, 1, array(4, 1, bytes(4))[4:])), f"{TYPES} 9"),
    "nested a hundred times": (one(ARRAY * 100), f"{TYPES} 9"),
    "type 13": (one(struct.pack("<IQ", 13, 0)), f"{TYPES} 13"),
    "array of type 99": (one(array(99, 1)), f"{TYPES} 99"),
    "truth value 2": (one(struct.pack("<IB", 7, 2)), "m.gguf must have truth values of 0 and 1"),
    "truth values": (one(array(7, 3, b"\0\1\3")), "m.gguf must have truth values .* 'k' has 3"),
    "key not UTF-8": (raw(keys=[(b"\xff", 1)]), "m.gguf must have strings of UTF-8; the name of"),
    "half a character": (one(["a", "b\u00e9"]).replace(b"\xa9", b"b"),
        "m.gguf must have strings of"),
    "surrogate": (one("\u8000").replace(b"\xe8\x80", b"\xed\xa0"),
        "m.gguf must have strings of UTF"),
    "key twice": (raw(keys=[("k", 1), ("k", 2)]),
        "m.gguf must have each key once; 'k' comes twice"),
    "alignment 0": (raw(keys=[("general.alignment", 0)]), f"{ALIGNMENT} 0"),
    "alignment 48": (raw(keys=[("general.alignment", 48)]), f"{ALIGNMENT} 48"),
    "alignment 2^31": (raw(keys=[("general.alignment", 2**31)]), ALIGNMENT),
    "alignment a word": (raw(keys=[("general.alignment", "32")]), f"{ALIGNMENT} '32'"),
    "alignments": (raw(keys=[("general.alignment", [32])]), ALIGNMENT),
    "alignment true": (raw(keys=[("general.alignment", True)]), ALIGNMENT),
    "tensor twice": (raw([info(), info(at=32)], ONES * 2),
        "m.gguf must have names .* once; got 'x'"),
    "64 bytes of name": (raw([info("x" * 64)], ONES), "m.gguf must have names of tensors below 64"),
    "no axes": (raw([info(shape=())], ONES), "m.gguf must have tensors of 1 to 4 axes; .* has 0"),
    "5 axes": (raw([info(shape=(1, 1, 1, 1, 8))], ONES), "m.gguf must have tensors of 1 to 4 axes"),
    "2^32 - 1 axes": (raw([text("x") + b"\xff" * 40], ONES), "m.gguf must have tensors of 1 to 4"),
    "axis 0": (raw([info(shape=(0,))]), f"{AXES}.* 'x' is \\(0,\\)"),
    "product that wraps to 0": (raw([info(shape=(2**32, 2**32))]), AXES),
    "product that wraps to 4": (raw([info(shape=(2**62 + 1, 4))], ONES), AXES),
    "half a block": (raw([info(shape=(2, 16), kind=8)], bytes(34)), f"{AXES}, and Q8_0 in rows of"),
    "a block and a half": (raw([info(shape=(384,), kind=12)], bytes(216)), AXES),
    "Q4_0": (raw([info(shape=(32,), kind=2)], bytes(18)), f"{NUMBERS} 2, Q4_0$"),
    "MXFP4": (raw([info(shape=(32,), kind=39)], bytes(17)), f"{NUMBERS} 39, MXFP4$"),
    "type 4": (raw([info(kind=4)], ONES), f"{NUMBERS} 4$"),
    "type 2^32 - 1": (raw([info(kind=2**32 - 1)], ONES), f"{NUMBERS} 4294967295$"),
    "offset 8": (raw([info(at=8)], bytes(8) + ONES), "m.gguf must have offsets that are multiples"),
    "offset 2^63": (raw([info(at=2**63)], ONES), f"{FOLLOW} a gap"),
    "hole": (raw([info("a"), info(at=64)], ONES * 3), f"{FOLLOW} a gap before 'x'"),
    "hole in front": (raw([info(at=32)], ONES * 2), f"{FOLLOW} a gap"),
    "overlap": (raw([info("a", (16,)), info(at=32)], ONES * 2), f"{FOLLOW} an overlap before 'x'"),
    "twice the same": (raw([info("a"), info()], ONES), f"{FOLLOW} an overlap"),
    "40 GB that are not there": (raw([info(shape=(10**10,))], ONES), END),
    "cut off": (raw([info()], ONES[:-1]), f"{END} 96; it has 95 bytes"),
    "bytes behind": (raw([info()], ONES + b"\0"), END),
    "bytes and no tensor": (raw(data=bytes(64)), END),
    "no data": (raw([info()]), END),
}  # fmt: skip


@pytest.mark.parametrize("content, message", REFUSED.values(), ids=REFUSED)
def test_a_broken_file_is_refused_by_name(tmp_path, content, message):
    path = written(tmp_path, content)
    tracemalloc.start()
    with pytest.raises(ValueError, match=f"^load_model: ({message})") as error:
        load_model(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(str(error.value)) < 500
    assert peak < 1_000_000 + 60 * len(content)  # not by what the header claims


def test_a_path_leads_to_a_file(tmp_path):
    (tmp_path / "folder.gguf").mkdir()
    for path in (tmp_path / "none.gguf", str(tmp_path / "folder.gguf")):
        with pytest.raises(ValueError, match=r"^load_model: path must be a GGUF file; there is no"):
            load_model(path)


SMALL = raw(
    [info("x", (2, 1)), info("y", (32,), 8, at=32)],
    np.float32([1, 2]).tobytes() + bytes(24) + bytes(34),
    [
        ("word", "abc"),
        ("words", ["a", "bc"]),
        ("numbers", [1, 2]),
        ("general.architecture", "llama"),
    ],
)


def test_a_file_cut_off_at_any_byte_is_refused(tmp_path):
    assert list(read_gguf(written(tmp_path, SMALL)).tensors) == ["x", "y"]
    for n in range(len(SMALL)):
        with pytest.raises(ValueError, match=r"^load_model: m\.gguf must"):
            read_gguf(written(tmp_path, SMALL[:n]))


@many
@given(
    st.lists(
        st.tuples(st.integers(0, len(SMALL) - 1), st.sampled_from(["put", "drop", "double"]))
        .flatmap(lambda p: st.tuples(st.just(p), st.integers(0, 255))),
        min_size=1,
        max_size=4,
    )
)  # fmt: skip
def test_a_damaged_file_is_refused_or_read(tmp_path, changes):
    parts = [SMALL[n : n + 1] for n in range(len(SMALL))]
    for (n, how), new in changes:
        parts[n] = {"put": bytes([new]), "drop": b"", "double": 2 * parts[n]}[how]
    path = written(tmp_path, b"".join(parts))
    try:
        file = read_gguf(path)
        for name in file.tensors:
            with np.errstate(all="ignore"):
                file.numbers(name)
    except ValueError as error:
        assert str(error).startswith("load_model: m.gguf must")
        with pytest.raises(ValueError, match=r"^load_model: m\.gguf must"):
            load_model(path)


# ---- families -----------------------------------------------------------------------------------


families = pytest.mark.parametrize("name", FAMILIES)


@functools.cache
def golden(name):
    with np.load(GOLDEN / "models" / name / "golden.npz") as file:
        return {key: file[key] for key in file.files if key != "provenance"}


def model(name, dtype=np.float64):
    return load_model(GOLDEN / "gguf" / f"{name}.gguf", dtype)


@families
def test_logits_are_those_of_transformers_from_the_checkpoint_that_was_converted(name):
    g = golden(name)
    logits = model(name).logits(g["tokens"])
    assert_allclose(logits, g["logits"], rtol=0, atol=1e-6 * np.abs(g["logits"]).max())
    folder = load_model(GOLDEN / "models" / name, np.float64)
    assert_allclose(logits, folder.logits(g["tokens"]), rtol=0, atol=1e-6)


@families
def test_twenty_greedy_tokens_are_those_of_transformers(name):
    g, m = golden(name), model(name)
    assert_array_equal(greedy(m.parameters, m, g["prompt"], 20, real=g["real"]), g["written"])


@families
def test_numbers_are_float32_and_read_only_unless_another_dtype_is_asked_for(name):
    m = model(name, None)
    assert m.dtype == np.float32 and not m.parameters["embedding"].flags.writeable
    assert m.logits(golden(name)["tokens"]).dtype == np.float32


def test_the_configuration_may_be_changed_as_that_of_a_folder():
    g = golden("qwen2")
    m = load_model(GOLDEN / "gguf/qwen2.gguf", np.float64, {"rope_theta": 100.0})
    assert np.abs(m.logits(g["tokens"]) - g["logits"]).max() > 0.01


def test_a_head_of_its_own_is_known_by_its_tensor():
    tied = {name: model(name).settings.tied for name in FAMILIES if name != "gemma3_text"}
    assert tied == {"gpt2": True, "llama": False, "qwen2": True, "qwen3": False}


def test_rows_of_queries_and_keys_go_back_from_neighbours_to_halves(tmp_path):
    # In heads of 4 both ways are one; here they have 6: pair i is rows 2i and 2i + 1 of the file.
    keys = {"llama.attention.key_length": 6, "llama.attention.value_length": 6}
    ours = {
        "q": np.arange(4 * 6 * 16.0).reshape(24, 16),
        "k": np.arange(2 * 6 * 16.0).reshape(12, 16),
    }
    stored = {name: np.empty_like(W) for name, W in ours.items()}
    for name, W in ours.items():
        for head in range(len(W) // 6):
            for i in range(3):
                stored[name][6 * head + 2 * i] = W[6 * head + i]
                stored[name][6 * head + 2 * i + 1] = W[6 * head + i + 3]
    tensors = {f"blk.{n}.attn_{name}.weight": W for name, W in stored.items() for n in (0, 1)}
    keys |= {"llama.rope.dimension_count": 6}
    path = rewritten(tmp_path, "llama", keys, {**tensors, "rope_freqs.weight": None})
    found = checkpoint_of(path)[1]()
    for name, W in ours.items():
        assert_array_equal(found[f"model.layers.1.self_attn.{name}_proj.weight"], W)


def test_what_gemma_s_file_does_not_say_is_what_llama_cpp_takes(tmp_path):
    keys = {
        f"gemma3.{key}": None for key in ("attention.sliding_window_pattern", "rope.freq_base_swa")
    }
    keys |= {"gemma3.rope.scaling.type": None, "gemma3.rope.scaling.factor": None}
    config = checkpoint_of(rewritten(tmp_path, "gemma3_text", {**keys, "gemma3.block_count": 7}))[0]
    assert config["sliding_window_pattern"] == 6 and config["rope_local_base_freq"] == 10000
    assert config["query_pre_attn_scalar"] == config["head_dim"] == 6
    assert "rope_scaling" not in config and config["dtype"] == "float32"
    keys |= {"gemma3.block_count": 62, "gemma3.attention.head_count": 3}
    config = checkpoint_of(rewritten(tmp_path, "gemma3_text", keys))[0]
    assert config["query_pre_attn_scalar"] == 12 // 3  # of the 27B model, D / H


def test_what_an_older_file_leaves_out_is_what_llama_cpp_takes(tmp_path):
    keys = ("head_count_kv", "key_length", "value_length")
    keys = {f"llama.attention.{key}": None for key in keys} | {"llama.rope.freq_base": None}
    more = {"llama.expert_count": 0, "llama.tensor_data_layout": "Meta AI original pth"}
    path = rewritten(tmp_path, "llama", keys | more, {"rope_freqs.weight": None})
    config = checkpoint_of(path)[0]
    assert (config["num_key_value_heads"], config["head_dim"]) == (4, 4)
    assert config["rope_theta"] == 10000 and "rope_scaling" not in config


def test_numbers_of_32_bits_are_read_as_they_were_written(tmp_path):
    assert checkpoint_of(GOLDEN / "gguf/llama.gguf")[0]["rms_norm_eps"] == 1e-5
    path = rewritten(tmp_path, "qwen2", {"qwen2.rope.freq_base": struct.pack("<Id", 12, 1 / 3)})
    assert checkpoint_of(path)[0]["rope_theta"] == 1 / 3  # of 64 bits, exact


@pytest.mark.parametrize("s, L0", [(8.0, 8192), (32.0, 8192), (4.0, 1000)])
def test_the_three_numbers_of_llama_3_come_back_from_its_divisors(tmp_path, s, L0):
    found = []
    for i in range(64):  # as the converter writes them
        wavelength = 2 * math.pi * 500000 ** (i / 64)
        smooth = (L0 / wavelength - 1) / 3
        middle = 1 / ((1 - smooth) / s + smooth)
        found.append(1 if wavelength < L0 / 4 else s if wavelength > L0 else middle)
    keys = {f"llama.{key}": 128 for key in ("attention.key_length", "attention.value_length")}
    keys |= {"llama.rope.dimension_count": 128, "llama.rope.freq_base": 500000.0}
    path = rewritten(tmp_path, "llama", keys, {"rope_freqs.weight": np.array(found)})
    assert checkpoint_of(path)[0]["rope_scaling"] == {
        **{"rope_type": "llama3", "factor": s, "original_max_position_embeddings": L0},
        **{"low_freq_factor": 1.0, "high_freq_factor": 4.0},
    }


def test_yarn_s_own_factor_multiplies_that_of_its_stretching(tmp_path):
    keys = {"qwen3.rope.scaling.attn_factor": 0.5, "qwen3.rope.scaling.yarn_beta_fast": 16.0}
    keys |= {"qwen3.rope.scaling.original_context_length": None}
    found = checkpoint_of(rewritten(tmp_path, "qwen3", keys))[0]["rope_scaling"]
    assert found["attention_factor"] == 0.5 * (1 + 0.1 * math.log(4))
    assert (found["beta_fast"], found["original_max_position_embeddings"]) == (16, 32)


def test_a_scaling_called_none_is_none_and_an_old_key_is_linear(tmp_path):
    path = rewritten(tmp_path, "qwen3", {"qwen3.rope.scaling.type": "none"})
    assert "rope_scaling" not in checkpoint_of(path)[0]
    path = rewritten(tmp_path, "qwen2", {"qwen2.rope.scale_linear": 2.0})
    assert checkpoint_of(path)[0]["rope_scaling"] == {"rope_type": "linear", "factor": 2.0}


KNOWN = "m.gguf must have a general.architecture of gemma3, gpt2, llama, qwen2, qwen3; got"
NUMBER = "m.gguf must have a number from 0 on as llama"
MISTAKES = {
    "another family": ("llama", {"general.architecture": "mamba"}, {}, f"{KNOWN} 'mamba'"),
    "no family": ("llama", {"general.architecture": None}, {}, f"{KNOWN} 'nothing'"),
    "families": ("llama", {"general.architecture": ["llama"]}, {}, f"{KNOWN} \\['llama'\\]"),
    "one part of three": ("llama", {"split.count": 3}, {}, "m.gguf must be whole; it is one of 3"),
    "experts": ("llama", {"llama.expert_count": 8}, {}, "m.gguf must have 0, as no mixture"),
    "an unknown key": ("llama", {"llama.attention.clamp_kqv": 8.0}, {},
        "m.gguf must have keys that are known here; 1 are not: llama.attention.clamp_kqv"),
    "another model's key": ("gpt2", {"gpt2.rope.freq_base": 8.0}, {},
        ".* 1 are not: gpt2.rope.freq"),
    "a size is missing": ("llama", {"llama.embedding_length": None}, {},
        f"{NUMBER}.embedding_length; got 'no such key'"),
    "a size is a word": ("llama", {"llama.block_count": "2"}, {}, f"{NUMBER}.block_count; got '2'"),
    "a size is a list": ("llama", {"llama.attention.head_count": [4, 4]}, {},
        f"{NUMBER}.attention.head_count; got \\[4, 4\\]"),
    "a size is true": ("llama", {"llama.attention.head_count_kv": True}, {}, NUMBER),
    "a base is no number": ("llama", {"llama.rope.freq_base": math.nan}, {}, NUMBER),
    "an infinite base": ("llama", {"llama.rope.freq_base": math.inf}, {}, NUMBER),
    "no heads": ("llama", {"llama.attention.head_count": 0}, {}, None),
    "no layers to speak of": ("llama", {"llama.block_count": 2**31}, {}, None),
    "a broken size": ("llama", {"llama.embedding_length": 16.5}, {}, None),
    "values of another width": ("llama", {"llama.attention.value_length": 6}, {},
        "m.gguf must have 4, the width of a head of keys, as llama.attention.value_length; got 6"),
    "a part of a head": ("llama", {"llama.rope.dimension_count": 2}, {}, "m.gguf must have 4, the"),
    "another scaling": ("qwen3", {"qwen3.rope.scaling.type": "longrope"}, {},
        "m.gguf must have none, linear or yarn as qwen3.rope.scaling.type; got 'longrope'"),
    "a scaling that is a number": ("qwen3", {"qwen3.rope.scaling.type": 3}, {},
        "m.gguf must have n"),
    "a factor without YaRN": ("qwen2", {"qwen2.rope.scaling.attn_factor": 2.0}, {},
        "m.gguf must have 1 without YaRN"),
    "divisors of another kind": ("llama", {}, {"rope_freqs.weight": np.array([1.0, 2.0])},
        "m.gguf must hold in rope_freqs.weight the 2 divisors of a Llama 3 scaling"),
    "too few divisors": ("llama", {}, {"rope_freqs.weight": np.ones(1)}, ".* got shape \\(1,\\)"),
    "a divisor of 0": ("llama", {}, {"rope_freqs.weight": np.array([1.0, 0.0])},
        "m.gguf must hold"),
    "an infinite divisor": ("llama", {}, {"rope_freqs.weight": np.array([1, math.inf])},
        "m.gguf must"),
    "divisors elsewhere": ("qwen2", {}, {"rope_freqs.weight": np.ones(2)},
        "m.gguf must have tensors"),
    "an unknown tensor": ("llama", {}, {"blk.0.attn_q.weight.lora_a": np.ones(2)},
        "m.gguf must have tensors of llama: token_embd, .* blk.N.ffn_down; got 'blk.0.attn_q.we"),
    "a layer with a zero": ("llama", {}, {"blk.00.attn_q.weight": np.ones(2)},
        "m.gguf must have tensors"),
    "a bias": ("llama", {}, {"blk.0.attn_q.bias": np.ones(16)}, None),
    "no embedding": ("llama", {}, {"token_embd.weight": None},
        "m.gguf must have the tensor token_embd"),
    "no norm": ("gpt2", {}, {"output_norm.bias": None}, None),
    "a layer too many": ("gpt2", {"gpt2.block_count": 1}, {}, None),
    "a matrix of another shape": ("gpt2", {}, {"blk.0.ffn_up.weight": np.ones((12, 20))}, None),
    "rows that heads do not divide": ("llama", {}, {"blk.0.attn_q.weight": np.ones((15, 16))},
        None),
    "a cap": ("gemma3_text", {"gemma3.final_logit_softcapping": 30.0}, {}, None),
    "no window": ("gemma3_text", {"gemma3.attention.sliding_window": None}, {},
        "m.gguf must have a n"),
}  # fmt: skip


@pytest.mark.parametrize("name, keys, tensors, message", MISTAKES.values(), ids=MISTAKES)
def test_what_a_family_does_not_know_is_refused_by_name(tmp_path, name, keys, tensors, message):
    path = rewritten(tmp_path, name, keys, tensors)
    whose = f"^load_model: {message}" if message else "^[a-z_0-9]+: "  # the page says it
    with pytest.raises(ValueError, match=whose) as error:
        load_model(path)
    assert len(str(error.value)) < 600
