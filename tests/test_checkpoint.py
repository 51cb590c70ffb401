"""Checkpoints: round trips, one plain format, damage, cut-off writes, what is expected."""

import copy
import os
import re
import signal
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pe_numpy import Model, rope_frequencies
from pe_numpy.training.checkpoint import load, save
from pe_numpy.transformer.encodings import (
    T5,
    Alibi,
    DualChunk,
    Encoding,
    Learned,
    Rope,
    RotaryValues,
    XPos,
    every_encoding,
)
from pe_numpy.transformer.masks import Causal, Chunk, Window

TREE = {
    "params": {
        "embedding": np.arange(6, dtype=np.float32).reshape(2, 3),
        "0": {"attention": {"W_q": np.arange(12.0).reshape(3, 4)}, "encoding": {}},
    },
    "step": 7,
    "rate": 0.1,
    "done": False,
}


def same(a, b):
    """Whether keys, order, types, dtypes, shapes, memory order and bits agree."""
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if type(a) in (bool, int, float):
        return type(a) is type(b) and (a == b or a != a)
    a, b = np.asarray(a), np.asarray(b)
    return (
        (a.dtype, a.shape, a.flags.f_contiguous, a.tobytes())
        == (b.dtype, b.shape, b.flags.f_contiguous, b.tobytes())
    )  # fmt: skip


def and_back(folder, tree):
    save(folder / "x.npz", tree)
    return load(folder / "x.npz")


# ---- round trips --------------------------------------------------------------------------------


def test_what_is_saved_comes_back(tmp_path):
    assert same(and_back(tmp_path, TREE), TREE)
    assert same(load(str(tmp_path / "x.npz")), TREE)
    assert and_back(tmp_path, {}) == {}
    assert and_back(tmp_path, {"a": {"b": {}}}) == {"a": {"b": {}}}


@pytest.mark.parametrize(
    "dtype", ["f2", "f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "u8", "?", ">f8"]
)
@pytest.mark.parametrize("shape", [(), (3,), (0, 3), (2, 3, 4)])
def test_every_dtype_and_shape_is_kept_bit_for_bit(tmp_path, dtype, shape):
    bits = np.random.default_rng(0).integers(0, 2, (2, 3, 4)) * np.array(3.14159)
    array = np.array(bits.astype(dtype)[tuple(slice(n) for n in shape)])
    array = array.reshape(-1)[: int(np.prod(shape))].reshape(shape)
    assert array.shape == shape
    assert same(and_back(tmp_path, {"x": array}), {"x": array})


def test_strange_values_and_memory_orders_are_kept(tmp_path):
    values = np.array([np.nan, -0.0, np.inf, -np.inf, 5e-324, 1 / 3])
    tree = {
        "values": values,
        "columns first": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "nan": float("nan"),
        "large": 2**62,
        "numpy's": np.float32(0.5),
    }
    assert same(and_back(tmp_path, tree), tree)
    assert and_back(tmp_path, {"every other": np.arange(6)[::2]})["every other"].tolist() == [
        0,
        2,
        4,
    ]


words = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="/\\"), min_size=1)
leaves = st.integers(-(2**63), 2**63 - 1) | st.floats() | st.booleans()
trees = st.dictionaries(
    words, st.recursive(leaves, lambda inner: st.dictionaries(words, inner, max_size=3))
)


@given(trees)
def test_any_words_may_be_keys(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("any") / "x.npz"
    save(path, tree)
    assert same(load(path), tree)


def test_keys_that_mean_something_elsewhere_mean_nothing_here(tmp_path):
    tree = {"file": np.ones(1), "allow_pickle": np.ones(2), "..": {"x.npy": np.ones(3)}, "a b": 1}
    assert same(and_back(tmp_path, tree), tree)
    assert os.listdir(tmp_path) == ["x.npz"]


def test_numpy_itself_reads_the_file(tmp_path):
    save(tmp_path / "x.npz", TREE)
    with np.load(tmp_path / "x.npz", allow_pickle=False) as plain:
        assert plain["params/0/attention/W_q"].tolist() == np.arange(12.0).reshape(3, 4).tolist()
        assert plain["step"] == 7


def test_equal_trees_make_equal_files(tmp_path):
    save(tmp_path / "a.npz", TREE)
    save(tmp_path / "b.npz", copy.deepcopy(TREE))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


# ---- whole or not at all ------------------------------------------------------------------------


@pytest.mark.parametrize("broken", ["os.fsync", "os.replace", "numpy.lib.format.write_array"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path, monkeypatch, broken, error
):
    save(tmp_path / "x.npz", TREE)

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(broken, fail)
    with pytest.raises(error):
        save(tmp_path / "x.npz", {"other": np.zeros(3)})
    monkeypatch.undo()
    assert same(load(tmp_path / "x.npz"), TREE)
    assert os.listdir(tmp_path) == ["x.npz"]


def test_data_are_on_the_disk_before_the_file_gets_its_name(tmp_path, monkeypatch):
    events = []
    monkeypatch.setattr("os.fsync", lambda file: events.append(("fsync", os.fstat(file).st_size)))
    replace = os.replace

    def note(part, path):
        events.append(("replace", os.path.getsize(part)))
        assert os.path.dirname(part) == os.path.dirname(path)
        replace(part, path)

    monkeypatch.setattr("os.replace", note)
    save(tmp_path / "x.npz", TREE)
    size = os.path.getsize(tmp_path / "x.npz")
    assert events == [("fsync", size), ("replace", size)]


KILLED = """
import os, signal, sys
import numpy as np
from pe_numpy.training.checkpoint import save

save(sys.argv[1], {"step": 1, "W": np.ones((50, 40))})
write = np.lib.format.write_array
def write_half_and_die(file, array, **settings):
    if array.ndim:
        os.kill(os.getpid(), signal.SIGKILL)
    write(file, array, **settings)
np.lib.format.write_array = write_half_and_die
save(sys.argv[1], {"step": 2, "W": np.ones((50, 40))})
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_process_killed_while_it_writes_leaves_the_checkpoint_before(tmp_path):
    path = tmp_path / "x.npz"
    run = subprocess.run([sys.executable, "-P", "-c", KILLED, path], capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert load(path)["step"] == 1
    save(path, {"step": 3})  # what the dead process left is in nobody's way
    assert load(path) == {"step": 3}
    name, left = sorted(os.listdir(tmp_path))
    assert name == "x.npz" and left.endswith(".part")


# ---- damage -------------------------------------------------------------------------------------


def test_no_flipped_bit_passes_unseen(tmp_path):
    path, tree = tmp_path / "x.npz", {"a": {"W": np.arange(4, dtype="f4")}, "e": {}, "step": 3}
    save(path, tree)
    whole = path.read_bytes()
    seen = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x20]) + whole[place + 1 :])
        try:
            assert same(load(path), tree)  # a bit that means nothing, such as the date
        except ValueError as error:
            assert f"load: {path} is damaged or no checkpoint" in str(error)
            seen += 1
    assert seen > 0.7 * len(whole)


def test_no_shortened_file_passes_unseen(tmp_path):
    path = tmp_path / "x.npz"
    save(path, TREE)
    whole = path.read_bytes()
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"load: .*x\.npz is damaged or no checkpoint"):
            load(path)


def test_other_files_are_refused_and_pickles_never_opened(tmp_path):
    path = tmp_path / "x.npz"
    for write in (
        lambda: path.write_text("hello"),
        lambda: np.savez(path, a=np.ones(2)),
        lambda: np.savez(path, a=np.array([{}], dtype=object)),
        lambda: path.write_bytes(zipfile_of_one(tmp_path)),
    ):
        write()
        with pytest.raises(ValueError, match=r"load: .*x\.npz is damaged or no checkpoint"):
            load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = b"1 entries"
        with archive.open("a.npy", "w") as entry:
            np.lib.format.write_array(entry, np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"got shape \(1,\), dtype object, which take 8 bytes"):
        load(path)


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("a.npy", "a/b.npy"), "'a/b.npy' has no place: 'a' is an array"),
        (("a/b.npy", "a.npy"), "'a.npy' has no place: it is taken"),
        (("a.npy", "a.npy"), "'a.npy' has no place: it is taken"),
        (("a.npy", "a/"), "'a/' has no place: it is taken"),
        (("a/",), "'a/' must be empty"),
        (("a.txt",), "'a.txt' has no place: `save` writes no such name"),
        ((".npy",), "'.npy' has no place: `save` writes no such name"),
        (("/etc/a.npy",), "'/etc/a.npy' has no place: `save` writes no such name"),
        (("a//b.npy",), "'a//b.npy' has no place: `save` writes no such name"),
        (("..\\a.npy",), r"'..\\\\a.npy' has no place: `save` writes no such name"),
        (("C:\\a.npy",), r"'C:\\\\a.npy' has no place: `save` writes no such name"),
        (("a\nb.npy",), r"'a\\nb.npy' has no place: `save` writes no such name"),
        (("a/" * 100 + "b.npy",), "at most 100 keys may lead there; got 101"),
        (("a\0b.npy",), "'a' has no place: `save` writes no such name"),
    ],
)
def test_entries_without_a_place_in_a_tree_are_refused(tmp_path, names, why):
    data = zipfile_of_one(tmp_path)
    by_hand(tmp_path / "y.npz", *(Entry(name, data) for name in names))
    with pytest.raises(ValueError, match=rf"load: .*y\.npz is damaged or no checkpoint; .*{why}"):
        load(tmp_path / "y.npz")


def array_of(shape, dtype="<f8", data=b"", order=False):
    """The bytes of an entry whose head says this of an array."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': {order}, 'shape': {shape}, }}\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + data


def packed(count):
    """So many bytes of zeros, packed by deflate."""
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b"".join([*(pack.compress(bytes(10**6)) for _ in range(count // 10**6)), pack.flush()])


ONE = array_of((1,), data=bytes(8))
HOSTILE = {
    "packed": (
        lambda: [Entry("a.npy", packed(10**8), size=10**8, method=zipfile.ZIP_DEFLATED)],
        r"'a.npy' must be stored as it is; got 100000000 bytes in \d{5}, by method 8",
    ),
    "packed, it says": (
        lambda: [Entry("a.npy", ONE, size=2**32 - 2)],
        "'a.npy' must be stored as it is; got 4294967294 bytes in 76, by method 0",
    ),
    "larger than the file": (
        lambda: [Entry("b.npy", ONE), Entry("a.npy", ONE, 2**31, 2**31)],
        "must fit into its 355 bytes; got 2147483724, of which 'a.npy' has 2147483648",
    ),
    "an absurd shape": (
        lambda: [Entry("a.npy", array_of((10**6, 10**6), data=bytes(8)))],
        r"'a.npy' must be .*; got shape \(1000000, 1000000\), dtype float64, "
        "which take 8000000000000 bytes, and 8 are there",
    ),
    "a shape beyond all integers": (
        lambda: [Entry("a.npy", array_of((2**62, 2**62), data=bytes(8)))],
        "and 8 are there",
    ),
    "a shape that wraps around to what is there": (
        lambda: [Entry("a.npy", array_of((2**33, 2**31), data=b""))],
        "and 0 are there",
    ),
    "two negative lengths": (
        lambda: [Entry("a.npy", array_of((-2, -3), data=bytes(48)))],
        r"got shape \(-2, -3\), dtype float64, which take 48 bytes, and 48 are there",
    ),
    "bytes after the array": (
        lambda: [Entry("a.npy", array_of((1,), data=bytes(9)))],
        "which take 8 bytes, and 9 are there",
    ),
    "a byte too few": (
        lambda: [Entry("a.npy", array_of((1,), data=bytes(7)))],
        "which take 8 bytes, and 7 are there",
    ),
    "strings": (
        lambda: [Entry("a.npy", array_of((1,), "<U2", bytes(8)))],
        "dtype <U2, which take 8 bytes, and 8 are there",
    ),
    "objects": (
        lambda: [Entry("a.npy", array_of((1,), "|O", bytes(8)))],
        "dtype object, which take 8 bytes, and 8 are there",
    ),
    "a table in an entry": (
        lambda: [Entry("a.npy", array_of((1,), [("x", "<f8")], bytes(8)))],
        "which take 8 bytes, and 8 are there",
    ),
    "another version": (
        lambda: [Entry("a.npy", b"\x93NUMPY\2\0" + bytes(200))],
        "Cannot parse header",
    ),
    "a long head": (
        lambda: [Entry("a.npy", array_of((), "[" * 40_000))],
        "Header info length",
    ),
    "a head of brackets": (
        lambda: [Entry("a.npy", array_of("[" * 190 + "-" * 1600 + "1"))],
        "'a.npy' has a head of too many brackets",
    ),
    "many entries": (
        lambda: [Entry(f"{number:x}/", b"") for number in range(30_000)],
        r"its table of contents must have at most 1048576 bytes; got \d{7}",
    ),
    "contents that are elsewhere": (
        lambda: [Entry("a.npy", ONE + b"PK\5\6", 2**31, 2**31)],
        "of which 'a.npy' has 2147483648",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_before_memory_is_taken(tmp_path, name):
    entries, message = HOSTILE[name]
    by_hand(tmp_path / "x.npz", *entries())
    load_one(tmp_path)  # what the first call imports isn't counted
    peak, error = memory_of(lambda: load(tmp_path / "x.npz"))
    assert re.search(rf"load: .*x\.npz is damaged or no checkpoint; .*{message}", str(error))
    assert peak < 300_000 + 3 * 40_000 * (name == "a long head")


def memory_of(call):
    """The peak memory of a call, and the error that it ends with."""
    tracemalloc.start()
    try:
        call()
    except ValueError as error:
        return tracemalloc.get_traced_memory()[1], error
    else:
        return tracemalloc.get_traced_memory()[1], None
    finally:
        tracemalloc.stop()


def load_one(folder):
    save(folder / "one.npz", {"a": np.ones(1)})
    load(folder / "one.npz")


def test_entries_that_share_their_bytes_are_refused(tmp_path):
    path, n = tmp_path / "x.npz", 20
    by_hand(path, Entry("00.npy", array_of((10**4,), data=bytes(8 * 10**4))))
    whole = path.read_bytes()
    at = whole.index(b"PK\1\2")
    one, end = whole[at : at + 46 + len("00.npy")], whole[-31:-9]
    fields = [*struct.unpack("<4s4H2LH", end)]
    fields[3:7] = n, n, n * len(one), at
    comment = b"%d entries" % n
    path.write_bytes(
        whole[:at] + one * n + struct.pack("<4s4H2LH", *fields[:7], len(comment)) + comment
    )
    with pytest.raises(ValueError, match=r"entries must fit into its 81180 bytes; got 1601440"):
        load(path)


def test_a_file_that_counts_its_entries_otherwise_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    save(path, {"a": np.ones(1), "b": 2})
    path.write_bytes(path.read_bytes().replace(b"2 entries", b"3 entries"))
    with pytest.raises(ValueError, match=r"it holds 2 entries and says b'3 entries'"):
        load(path)


def test_a_good_file_takes_hardly_more_memory_than_its_arrays(tmp_path):
    load_one(tmp_path)
    save(tmp_path / "x.npz", {"a": np.ones(10**6), "b": np.ones((10**3, 500), order="F")})
    peak, error = memory_of(lambda: load(tmp_path / "x.npz"))
    assert error is None and peak < 1.2 * 12e6


def test_a_file_with_the_records_of_large_ones_is_read_and_its_contents_are_bounded(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("zipfile.ZIP64_LIMIT", 100)
    path = tmp_path / "x.npz"
    save(path, TREE)
    whole = path.read_bytes()
    assert b"PK\6\7" in whole
    assert same(load(path), TREE)
    record = whole.index(b"PK\6\6")
    for at, message in (
        (record + 40, r"at most 1048576 bytes; got 2147483648"),
        (record + 56 + 8, "its last records do not stand in a row"),
    ):
        path.write_bytes(whole[:at] + struct.pack("<Q", 2**31) + whole[at + 8 :])
        with pytest.raises(ValueError, match=message):
            load(path)


def test_what_load_would_refuse_for_its_size_is_not_saved(tmp_path):
    deep: dict = {"x": 1}
    for _ in range(99):
        deep = {"a": deep}
    assert same(and_back(tmp_path, deep), deep)
    with pytest.raises(ValueError, match=r"save: at most 100 keys may lead to an array; got more"):
        save(tmp_path / "x.npz", {"a": deep})
    many = {f"{'long' * 10} {n}": n for n in range(11_000)}
    with pytest.raises(ValueError, match=r"at most 1048576 bytes, with .*; got \d{7} for 11001"):
        save(tmp_path / "x.npz", {**many, "another": {}})
    assert same(load(tmp_path / "x.npz"), deep)
    assert os.listdir(tmp_path) == ["x.npz"]


def test_files_that_the_tests_write_by_hand_are_those_of_save(tmp_path):
    data = zipfile_of_one(tmp_path)
    by_hand(tmp_path / "y.npz", Entry("a.npy", data), Entry("b/", b""))
    save(tmp_path / "z.npz", {"a": np.ones(2), "b": {}})
    assert same(load(tmp_path / "y.npz"), {"a": np.ones(2), "b": {}})
    assert len((tmp_path / "y.npz").read_bytes()) == len((tmp_path / "z.npz").read_bytes())


class Entry(NamedTuple):
    """An entry of a zip file, and what its heads say of it where that is not so."""

    name: str
    data: bytes
    size: int | None = None
    stored: int | None = None
    method: int = zipfile.ZIP_STORED


def by_hand(path, *entries):
    """Write a zip file byte by byte, since `zipfile` writes no entry that it finds strange."""
    file, directory = b"", b""
    for name, data, size, stored, method in entries:
        name = name.encode()
        crc = zlib.crc32(zlib.decompress(data, -15) if method else data)
        sizes = len(data) if stored is None else stored, len(data) if size is None else size
        head = struct.pack("<5H3L2H", 20, 0, method, 0, 33, crc, *sizes, len(name), 0)
        directory += b"PK\1\2\24\3" + head + bytes(6) + struct.pack("<2L", 0, len(file)) + name
        file += b"PK\3\4" + head + name + data
    comment, n = b"%d entries" % len(entries), len(entries)
    end = struct.pack("<4H2LH", 0, 0, n, n, len(directory), len(file), len(comment))
    path.write_bytes(file + directory + b"PK\5\6" + end + comment)


def zipfile_of_one(folder):
    """The bytes of one saved array."""
    save(folder / "x.npz", {"a": np.ones(2)})
    with zipfile.ZipFile(folder / "x.npz") as archive:
        return archive.read("a.npy")


# ---- what is expected ---------------------------------------------------------------------------


def test_a_file_that_is_as_expected_passes(tmp_path):
    save(tmp_path / "x.npz", TREE)
    like = copy.deepcopy(TREE)
    like["params"]["embedding"] = np.zeros((2, 3), np.float32)
    like["step"] = 0
    assert same(load(tmp_path / "x.npz", like), TREE)
    assert same(load(tmp_path / "x.npz", {**TREE, "rate": None, "params": None}), TREE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["params"].pop("embedding"), "'params/embedding' is there and not expected"),
        (
            lambda t: t["params"]["0"].update(norm={"gain": np.ones(2)}),
            "x.npz is not what is expected; 'params/0/norm' is missing",
        ),
        (
            lambda t: t["params"]["0"]["attention"].update(W_q=np.ones((4, 3))),
            r"'params/0/attention/W_q' is an array of shape \(3, 4\), dtype float64, "
            r"expected an array of shape \(4, 3\), dtype float64",
        ),
        (
            lambda t: t["params"].update(embedding=np.ones((2, 3))),
            "'params/embedding' is .* dtype float32, expected .* dtype float64",
        ),
        (
            lambda t: t.update(step=[[1], [2, 3]]),
            r"load: an array of like must have rows of one length; got \[\[1\], \[2, 3\]\]",
        ),
        (lambda t: t.update(step=np.ones(2)), r"'step' is a number \(int\), expected an array"),
        (lambda t: t.update(step=1.0), r"'step' is a number \(int\), expected a number \(float\)"),
        (lambda t: t.update(step={"x": 1}), r"'step' is a number \(int\), expected a dictionary"),
        (
            lambda t: t["params"].update({"0": np.ones(1)}),
            "'params/0' is a dictionary, expected an",
        ),
        (
            lambda t: [t.pop(name) for name in ("params", "step", "rate", "done")],
            "'params' is there .*; 'step' is .*; 'rate' is there and not expected and 1 more",
        ),
    ],
)
def test_what_differs_from_the_expected_is_named_by_its_path(tmp_path, change, message):
    save(tmp_path / "x.npz", TREE)
    like = copy.deepcopy(TREE)
    change(like)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "x.npz", like)


# ---- of which model -----------------------------------------------------------------------------


def stretched(K, length):
    return rope_frequencies(K) / 2


def halved(K, length):
    return rope_frequencies(K) / 2


@dataclass(frozen=True)
class Called:
    """A function with a setting."""

    by: float

    def __call__(self, K, length):
        return rope_frequencies(K) / self.by


MODEL = Model(4, Rope(scaling=stretched), Window(8, sinks=1), scale=2.0, eps=1e-6)
OTHERS = {  # of each field, one that differs, and what the message shows of both
    "n_heads": (2, "n_heads = 4", "n_heads = 2"),
    "encoding": (Alibi(), "encoding = Rope", "encoding = Alibi"),
    "mask": (Causal(), "mask = Window", "mask = Causal"),
    "norm": ("post", "norm = 'pre'", "norm = 'post'"),
    "activation": ("gelu", "activation = 'relu'", "activation = 'gelu'"),
    "cross_heads": (4, "cross_heads = None", "cross_heads = 4"),
    "scale": (None, "scale = 2", "scale = None"),
    "dropout": (0.1, "dropout = 0", "dropout = 0.1"),
    "eps": (1e-5, "eps = 1e-06", "eps = 1e-05"),
}


def saved_with(folder, model):
    save(folder / "x.npz", TREE, model=model)
    return folder / "x.npz"


def refused(path, model, theirs, ours):
    """Whether `load` shows both sides of this field, and says no more."""
    with pytest.raises(ValueError, match="must be of the model given") as error:
        load(path, model=model)
    sides = f"{f'model.{theirs}'!r} in the file and {f'model.{ours}'!r} in the model"
    return error.value.args[0] == f"load: {path} must be of the model given; got {sides}"


@pytest.mark.parametrize("name", [field.name for field in fields(Model)])
def test_a_model_that_differs_in_one_field_is_refused_with_both_sides(tmp_path, name):
    path, (other, theirs, ours) = saved_with(tmp_path, MODEL), OTHERS[name]
    assert same(load(path, model=replace(MODEL, **{name: getattr(MODEL, name)})), TREE)
    assert refused(path, replace(MODEL, **{name: other}), theirs, ours)


@pytest.mark.parametrize(
    ("a", "b", "theirs", "ours"),
    [
        (Rope(), Rope(base=500), "encoding.base = 10000", "encoding.base = 500"),
        (
            Rope(),
            Rope(layout="half"),
            "encoding.layout = 'interleaved'",
            "encoding.layout = 'half'",
        ),
        (Rope(), RotaryValues(), "encoding = Rope", "encoding = RotaryValues"),
        (Encoding(), Alibi(), "encoding = Encoding", "encoding = Alibi"),
        (Rope(), Rope(scaling=halved), "encoding.scaling = None", "encoding.scaling = halved"),
        (
            Rope(scaling=stretched),
            Rope(scaling=halved),
            "encoding.scaling = stretched",
            "encoding.scaling = halved",
        ),
        (
            Rope(scaling=Called(2)),
            Rope(scaling=Called(3)),
            "encoding.scaling.by = 2",
            "encoding.scaling.by = 3",
        ),
        (XPos(centre=1), XPos(), "encoding.centre = 1", "encoding.centre = 0"),
        (T5(max_distance=64), T5(), "encoding.max_distance = 64", "encoding.max_distance = 128"),
        (
            T5(bidirectional=True),
            T5(),
            "encoding.bidirectional = True",
            "encoding.bidirectional = False",
        ),
        (Learned(8), Learned(9), "encoding.length = 8", "encoding.length = 9"),
        (DualChunk(8, 4), DualChunk(8, 2), "encoding.local = 4", "encoding.local = 2"),
        (Alibi(), Alibi((0.5, 1)), "encoding.slopes = None", "encoding.slopes = 2 in turn"),
        (Alibi((0.5, 1)), Alibi((0.5, 2)), "encoding.slopes[1] = 1", "encoding.slopes[1] = 2"),
        (Rope(), (Rope(),), "encoding = Rope", "encoding = 1 in turn"),
        ((Rope(), Alibi()), (Alibi(), Rope()), "encoding[0] = Rope", "encoding[0] = Alibi"),
        ((Rope(), Rope(500)), (Rope(), Rope(5)), "encoding[1].base = 500", "encoding[1].base = 5"),
    ],
)
def test_a_field_of_an_encoding_that_differs_is_refused_with_both_sides(
    tmp_path, a, b, theirs, ours
):
    path = saved_with(tmp_path, Model(2, a))
    assert same(load(path, model=Model(2, copy.deepcopy(a))), TREE)
    assert refused(path, Model(2, b), theirs, ours)
    assert refused(saved_with(tmp_path, Model(2, b)), Model(2, a), ours, theirs)


def test_masks_are_compared_by_class_and_size_in_a_pattern_too(tmp_path):
    masks = [Causal(), Window(4), Window(5), Window(4, 1), Chunk(4), (Causal(), Window(4))]
    masks += [(Window(4), Causal()), (Causal(),)]
    for one in masks:
        path = saved_with(tmp_path, Model(2, mask=one))
        for other in masks:
            if one == other:
                assert same(load(path, model=Model(2, mask=other)), TREE)
            else:
                with pytest.raises(
                    ValueError, match=r"'model\.mask.* in the file and 'model\.mask"
                ):
                    load(path, model=Model(2, mask=other))


def test_equal_models_agree_however_their_numbers_are_written(tmp_path):
    one = Model(np.int64(2), Rope(10000), scale=np.float64(3), dropout=0, norm=np.str_("pre"))
    other = Model(2, Rope(10000.0), scale=3, dropout=0.0)
    assert one == other
    assert same(load(saved_with(tmp_path, one), model=other), TREE)
    more = replace(other, scale=3.0000000000000004)
    assert refused(tmp_path / "x.npz", more, "scale = 3", "scale = 3.0000000000000004")


@pytest.mark.parametrize("name", every_encoding(9))
def test_each_encoding_is_told_with_all_its_fields_from_every_other(tmp_path, name):
    models = {n: Model(2, each, each.needs or Causal()) for n, each in every_encoding(9).items()}
    path, encoding = saved_with(tmp_path, models[name]), models[name].encoding
    with zipfile.ZipFile(path) as archive:
        words = archive.read("model.txt").decode()
    for field in fields(encoding):
        assert f"\nmodel.encoding.{field.name} = " in words
    for other, model in models.items():
        if other == name:
            assert same(load(path, model=model), TREE)
        else:
            kinds = [f"encoding = {type(each).__name__}" for each in (encoding, model.encoding)]
            assert refused(path, model, *kinds)


def test_lambdas_of_one_place_pass_for_each_other_as_the_docstring_says(tmp_path):
    a, b = (Rope(scaling=lambda K, length, s=s: rope_frequencies(K) / s) for s in (2, 3))
    assert same(load(saved_with(tmp_path, Model(2, a)), model=Model(2, b)), TREE)


def test_a_file_without_a_model_loads_as_before(tmp_path):
    results = Path(__file__).parents[1] / "notebooks" / "results"
    for name in ("reversal.npz", "decoding.npz", "text.npz"):  # saved before models were told
        assert same(load(results / name, model=MODEL), load(results / name))
    save(tmp_path / "x.npz", TREE)
    assert same(load(tmp_path / "x.npz", model=MODEL), TREE)
    save(tmp_path / "y.npz", TREE, model=MODEL)
    assert same(load(tmp_path / "y.npz"), TREE)
    assert (tmp_path / "x.npz").read_bytes() != (tmp_path / "y.npz").read_bytes()
    save(tmp_path / "z.npz", TREE, model=replace(MODEL))
    assert (tmp_path / "y.npz").read_bytes() == (tmp_path / "z.npz").read_bytes()


def test_a_key_may_have_the_name_of_the_models_entry(tmp_path):
    tree = {"model.txt": np.ones(2), "model": {"txt": 3}, "b": {"model.txt": {}}}
    save(tmp_path / "x.npz", tree, model=MODEL)
    assert same(load(tmp_path / "x.npz", tree, model=MODEL), tree)
    with pytest.raises(ValueError, match="must be of the model given"):
        load(tmp_path / "x.npz", tree, model=Model(2))


def test_no_flipped_bit_in_what_a_file_says_of_its_model_passes_unseen(tmp_path):
    path = saved_with(tmp_path, MODEL)
    whole = path.read_bytes()
    start = whole.index(b"model = Model")
    for place in range(start, start + len("model = Model\nmodel.n_heads = 4\n")):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=r"damaged or no checkpoint; .*Bad CRC-32"):
            load(path)


STRANGE = b"model = \x1b[31mred\n" + b"[" * 60_000
TOLD_BY_STRANGERS = {
    "too long": ([Entry("model.txt", bytes(2**16 + 1))], "at most 65536 bytes; got 65537"),
    "longer than the file": (
        [Entry("model.txt", b"x", 2**31, 2**31)],
        "must fit into its .* bytes; got 2147483648",
    ),
    "twice": ([Entry("model.txt", b"a"), Entry("model.txt", b"b")], "must be there once"),
    "packed": (
        [Entry("model.txt", packed(10**6), size=10**6, method=zipfile.ZIP_DEFLATED)],
        "'model.txt' must be stored as it is",
    ),
    "no text": ([Entry("model.txt", b"\xff\xfe")], "UnicodeDecodeError"),
    "another place": ([Entry("a/model.txt", b"a")], "`save` writes no such name"),
}


@pytest.mark.parametrize("name", TOLD_BY_STRANGERS)
def test_hostile_words_on_a_model_are_refused_before_memory_is_taken(tmp_path, name):
    entries, message = TOLD_BY_STRANGERS[name]
    by_hand(tmp_path / "x.npz", *entries)
    load_one(tmp_path)
    peak, error = memory_of(lambda: load(tmp_path / "x.npz", model=MODEL))
    assert re.search(rf"load: .*x\.npz is damaged or no checkpoint; .*{message}", str(error))
    assert peak < 300_000


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (STRANGE, r"'model = \x1b[31mred' in the file and 'model = Model'"),
        (b"[" * 60_000, f"{'[' * 80!r} in the file and 'model = Model'"),
        (b"", "'' in the file and 'model = Model'"),
        (b"model = Model\r\n", r"'model = Model\r' in the file and 'model = Model'"),
        (b"model = Model", "'nothing' in the file and 'model.n_heads = 4'"),
        (b"__import__('os').abort()", "\"__import__('os').abort()\" in the file"),
    ],
)
def test_strange_words_on_a_model_are_shown_and_nothing_else(tmp_path, words, shown):
    by_hand(tmp_path / "x.npz", Entry("model.txt", words), Entry("a.npy", ONE))
    assert same(load(tmp_path / "x.npz"), {"a": np.zeros(1)})
    with pytest.raises(ValueError, match="must be of the model given") as error:
        load(tmp_path / "x.npz", model=MODEL)
    assert shown in error.value.args[0]
    assert len(error.value.args[0]) < 400 + len(str(tmp_path))


@pytest.mark.parametrize("model", ["Rope", 3, {"n_heads": 2}, Model])
def test_what_is_no_model_is_refused_by_both(tmp_path, model):
    kind = type(model).__name__
    with pytest.raises(ValueError, match=f"save: model must be a Model; got {kind}"):
        save(tmp_path / "x.npz", TREE, model=model)
    assert os.listdir(tmp_path) == []
    save(tmp_path / "x.npz", TREE)
    with pytest.raises(ValueError, match=f"load: model must be a Model; got {kind}"):
        load(tmp_path / "x.npz", model=model)


def test_a_model_of_too_many_words_is_not_saved(tmp_path):
    model = Model(2, (Alibi((0.5,) * 3000),))
    with pytest.raises(ValueError, match=r"save: what .* at most 65536 bytes; got \d{6}"):
        save(tmp_path / "x.npz", TREE, model=model)
    assert os.listdir(tmp_path) == []


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": {"b/c": np.ones(1)}}, r"each key must be a printable word .*; got 'b/c' in 'a'"),
        ({"": np.ones(1)}, "got '' in 'the outermost dictionary'"),
        ({"a\\b": 1}, "save: each key must be a printable word without '/'"),
        ({"a\0b": 1}, "save: each key must be a printable word"),
        ({0: np.ones(1)}, "save: each key must be a printable word .*; got 0 in"),
        ({"a": "words"}, "save: 'a' must be an array of numbers or a number; got str of dtype <U5"),
        ({"a": {"b": None}}, "save: 'a/b' must be an array of numbers or a number; got NoneType"),
        (
            {"a": 2**70},
            "save: 'a' must be an array of numbers or a number; got int of dtype object",
        ),
        ({"a": {"W": [[1], [2, 3]]}}, "save: 'a/W' must have rows of one length; got .*2, 3"),
        (np.ones(2), "save: tree must be a dictionary; got ndarray"),
    ],
)
def test_what_cannot_be_saved_is_named_before_a_file_is_touched(tmp_path, tree, message):
    with pytest.raises(ValueError, match=message):
        save(tmp_path / "x.npz", tree)
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_not_there_is_said_to_be_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "x.npz")
    with pytest.raises(FileNotFoundError):
        save(tmp_path / "no folder" / "x.npz", TREE)
