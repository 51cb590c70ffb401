r"""Read a GGUF file: keys, and tensors whose numbers mostly stand in blocks of 4 to 8 bits.

Source: ggml-org/ggml, `docs/gguf.md`, version 3; blocks: `dequantize_row_*` of `ggml-quants.c`
there. The package gguf 0.19.0 gives the same bits::

    "GGUF" | version | number of tensors | number of keys
    a key: name | type | value              (a string: its length, and UTF-8)
    a tensor: name | number of axes | axes | type of its numbers | offset
    zeros up to a multiple of general.alignment, or 32 | the numbers of one tensor after another

    Q8_0   w = d q                  q of 8 bits;  d for 32 numbers
    Q5_0   w = d (q - 16)           q of 5 bits;  d for 32
    Q4_K   w = (d s) q - (m t)      q of 4 bits;  s, t of 6 bits for 32;  d, m for 256
    Q6_K   w = (d s) (q - 32)       q of 6 bits;  s of 8 bits for 16;     d for 256

Axes: a file names the fastest axis first, NumPy the slowest: shapes are turned round, and a
projection is (out, in), as in PyTorch. In a block: n blocks, bytes of one.
Symbols: w a weight, q what is stored of it; the scales d and m are float16.
Convention: numbers are little-endian; all tensors become float32, one piece after another, so that
nothing of a tensor's size is made besides the tensor.
Differs from the library's reader: version 1 and arrays of arrays are refused, and as for
safetensors every byte must be accounted for: tensors follow each other with nothing between them
but what fills up to the alignment.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

NAME = "load_model"
SCALARS = {
    **{0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?"},
    **{10: "Q", 11: "q", 12: "d"},
}
STRING, ARRAY = 8, 9
LONGEST_NAME, MOST_AXES, MOST_NUMBERS = 64, 4, 2**60  # as in ggml; as of an array
PIECE = 2**20  # numbers that are made at a time

# ---- blocks: (n, bytes of one) uint8 -> (n, numbers of one) float32 -----------------------------


def half(b: np.ndarray) -> np.ndarray:
    """Read float16."""
    return np.ascontiguousarray(b).view("<f2").astype(np.float32)


def upper_half(b: np.ndarray) -> np.ndarray:
    """Read bfloat16, the upper half of a float32."""
    return (b.view("<u2").astype("<u4") << 16).view("<f4")


def q8_0(b: np.ndarray) -> np.ndarray:
    """32 numbers: d, then 32 times 8 bits."""
    return half(b[:, :2]) * b[:, 2:].view(np.int8)


def q5_0(b: np.ndarray) -> np.ndarray:
    """32 numbers: d, the 32 fifth bits, then the lower four, number n + 16 above number n."""
    fifth = np.unpackbits(b[:, 2:6], axis=1, bitorder="little")
    q = np.concatenate([b[:, 6:] & 15, b[:, 6:] >> 4], axis=1) | fifth << 4
    return half(b[:, :2]) * (q.astype(np.int8) - 16)


def q4_k(b: np.ndarray) -> np.ndarray:
    """256 numbers: d, m, eight s and eight t of 6 bits in 12 bytes, then 256 times 4 bits.

    The first four s and t are the lower 6 bits of a byte each; the upper 2 belong to the last four,
    whose lower 4 bits are the halves of the last four bytes.
    """
    d, m = half(b[:, :2]), half(b[:, 2:4])
    a, c, e = b[:, 4:8], b[:, 8:12], b[:, 12:16]
    s = np.concatenate([a & 63, e & 15 | a >> 2 & 48], axis=1)  # (n, 8)
    t = np.concatenate([c & 63, e >> 4 | c >> 2 & 48], axis=1)
    both = b[:, 16:].reshape(-1, 4, 1, 32)
    q = np.concatenate([both & 15, both >> 4], axis=2).reshape(-1, 8, 32)
    return ((d * s)[..., None] * q - (m * t)[..., None]).reshape(-1, 256)


def q6_k(b: np.ndarray) -> np.ndarray:
    """256 numbers: the lower 4 bits of each, the upper 2, sixteen s of 8 bits, then d."""
    two, four = b[:, :128].reshape(-1, 2, 1, 64), b[:, 128:192].reshape(-1, 2, 1, 32)
    lower = np.concatenate([two & 15, two >> 4], axis=2).reshape(-1, 8, 32)
    upper = np.concatenate([four >> n & 3 for n in (0, 2, 4, 6)], axis=2).reshape(-1, 8, 32)
    q = ((lower | upper << 4).astype(np.int8) - 32).reshape(-1, 16, 16)
    s = half(b[:, 208:]) * b[:, 192:208].view(np.int8)  # (n, 16)
    return (s[..., None] * q).reshape(-1, 256)


class Block(NamedTuple):
    """A type of numbers: how many a block holds, in how many bytes, and how they are read."""

    name: str
    numbers: int
    size: int
    read: Callable[[np.ndarray], np.ndarray]


BLOCKS = {
    0: Block("F32", 1, 4, lambda b: b.view("<f4")),
    1: Block("F16", 1, 2, half),
    6: Block("Q5_0", 32, 22, q5_0),
    8: Block("Q8_0", 32, 34, q8_0),
    12: Block("Q4_K", 256, 144, q4_k),
    14: Block("Q6_K", 256, 210, q6_k),
    30: Block("BF16", 1, 2, upper_half),
}
UNREAD = {  # as the package gguf 0.19.0 calls them
    **{2: "Q4_0", 3: "Q4_1", 7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 13: "Q5_K", 15: "Q8_K"},
    **{16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S"},
    **{22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64"},
    **{29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4", 41: "Q1_0"},
}

# ---- the file -----------------------------------------------------------------------------------


class Tensor(NamedTuple):
    """What the header says of a tensor; `at` counts from the begin of the file."""

    shape: tuple[int, ...]
    block: Block
    at: int

    @property
    def size(self) -> int:
        """Number of bytes."""
        return math.prod(self.shape) // self.block.numbers * self.block.size


class Gguf(NamedTuple):
    """A file's keys and tensors by name; no number of a tensor is read yet."""

    path: Path
    keys: dict[str, Any]
    tensors: dict[str, Tensor]

    def numbers(self, name: str) -> np.ndarray:
        """Read a tensor, in float32."""
        shape, block, at = self.tensors[name]
        w = np.empty(math.prod(shape), np.float32)
        with open(self.path, "rb") as file:
            file.seek(at)
            for begin in range(0, len(w), PIECE):
                piece = w[begin : begin + PIECE]
                b = np.fromfile(file, np.uint8, len(piece) // block.numbers * block.size)
                piece[:] = block.read(b.reshape(-1, block.size)).reshape(-1)
        return w.reshape(shape)


def read_gguf(path: str | Path) -> Gguf:
    """Read the header of a GGUF file.

    What it claims is checked against the size of the file before anything is made of it; what is
    wrong raises a ValueError that names the file and the entry.
    """
    path = Path(path)
    if not os.path.isfile(path):
        raise ValueError(
            f"{NAME}: path must be a GGUF file; there is no {path.name} in {path.parent}"
        )
    size = path.stat().st_size
    with open(path, "rb") as file:
        begin = file.read(8)
        if len(begin) < 8 or begin[:4] != b"GGUF" or size < 24:
            raise ValueError(
                f"{NAME}: {path.name} must begin with GGUF and be whole; it begins with "
                f"{begin[:4]!r} and has {size} bytes"
            )
        version = int.from_bytes(begin[4:], "little")
        if version not in (2, 3):
            raise ValueError(
                f"{NAME}: {path.name} must be of version 2 or 3, little-endian; got {version}"
            )
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
            return _Header(path, raw).read()


class _Header:
    """Where the reading of a header stands."""

    def __init__(self, path: Path, raw: mmap.mmap) -> None:
        self.path, self.raw, self.at, self.what = path, raw, 8, "its counts"

    def wrong(self, what: str) -> ValueError:
        return ValueError(f"{NAME}: {self.path.name} {what}")

    def take(self, count: int, size: int = 1) -> int:
        """Go behind so many things of at least this size; give the place of the first."""
        at = self.at
        if count * size > len(self.raw) - at:
            raise self.wrong(
                f"must hold what it says; {self.what} needs {count * size} bytes at byte {at}, and "
                f"the file has {len(self.raw)}: it is cut off, or damaged"
            )
        self.at += count * size
        return at

    def number(self, code: str) -> Any:
        """One number."""
        size = struct.calcsize(f"<{code}")
        return struct.unpack_from(f"<{code}", self.raw, self.take(1, size))[0]

    def texts(self, count: int) -> list[str]:
        """So many strings. A vocabulary has 262,144, so this loop calls as little as it can."""
        self.at = at = self.take(count, 8)  # each has a length at least
        raw, length, found, end = self.raw, struct.Struct("<Q").unpack_from, [], len(self.raw)
        try:
            for _ in range(count):
                begin = at + 8
                at = begin + length(raw, at)[0] if begin <= end else end + 1
                if at > end:
                    self.at = end
                    self.take(1, at - end)
                found.append(str(raw[begin:at], "utf-8"))
        except UnicodeDecodeError as error:
            raise self.wrong(f"must have strings of UTF-8; {self.what}: {error}") from None
        self.at = at
        return found

    def value(self, kind: int) -> Any:
        """The value of a key: a number, a string or a list of either."""
        if kind == STRING:
            return self.texts(1)[0]
        if kind == ARRAY:
            kind, count = self.number("I"), self.number("Q")
            return self.texts(count) if kind == STRING else self.numbers(kind, count)
        return self.numbers(kind, 1)[0]

    def numbers(self, kind: int, count: int) -> list[Any]:
        """So many numbers or truth values."""
        if kind not in SCALARS:
            known = ", ".join(str(n) for n in sorted({*SCALARS, STRING}))
            raise self.wrong(f"must have values of the types {known}; {self.what} has type {kind}")
        dtype = np.dtype(SCALARS[kind]).newbyteorder("<")
        at = self.take(count, dtype.itemsize)
        raw = self.raw[at : self.at]
        if dtype.kind == "b" and max(raw, default=0) > 1:
            raise self.wrong(f"must have truth values of 0 and 1; {self.what} has {max(raw)}")
        return np.frombuffer(raw, dtype).tolist()

    def read(self) -> Gguf:
        """Keys and tensors."""
        n_tensors, n_keys = self.number("Q"), self.number("Q")
        for what, count, least in (("tensors", n_tensors, 32), ("keys", n_keys, 13)):
            if count * least > len(self.raw):
                raise self.wrong(f"must have room for its {what}; it says {count}")
        keys: dict[str, Any] = {}
        for n in range(n_keys):
            self.what = f"the name of key {n}"
            name = self.texts(1)[0]
            self.what = f"key {name[:LONGEST_NAME]!r}"
            if name in keys:
                raise self.wrong(f"must have each key once; {name[:LONGEST_NAME]!r} comes twice")
            keys[name] = self.value(self.number("I"))
        alignment = keys.get("general.alignment", 32)
        if type(alignment) is not int or not 8 <= alignment <= 2**16 or alignment & alignment - 1:
            raise self.wrong(
                "must have a power of two from 8 to 65536 as general.alignment; got "
                f"{alignment!r:.80}"
            )
        tensors: dict[str, Tensor] = {}
        for n in range(n_tensors):
            self.what = f"the name of tensor {n}"
            name = self.texts(1)[0]
            if len(name.encode()) >= LONGEST_NAME or name in tensors:
                raise self.wrong(
                    f"must have names of tensors below {LONGEST_NAME} bytes, each once; got "
                    f"{name[:LONGEST_NAME]!r}"
                )
            self.what = f"tensor {name!r}"
            tensors[name] = self.tensor(alignment)
        start = -(-self.at // alignment) * alignment
        tensors = {name: x._replace(at=start + x.at) for name, x in tensors.items()}
        self.account(tensors, start, alignment)
        return Gguf(self.path, keys, tensors)

    def tensor(self, alignment: int) -> Tensor:
        """One tensor; its offset still counts from the first one."""
        axes = self.number("I")
        if not 1 <= axes <= MOST_AXES:
            raise self.wrong(f"must have tensors of 1 to {MOST_AXES} axes; {self.what} has {axes}")
        shape = tuple(self.number("Q") for _ in range(axes))[::-1]
        kind, offset = self.number("I"), self.number("Q")
        if kind not in BLOCKS:
            known = ", ".join(block.name for block in BLOCKS.values())
            raise self.wrong(
                f"must have numbers of the types {known}; {self.what} has type {kind}"
                + (f", {UNREAD[kind]}" if kind in UNREAD else "")
            )
        block = BLOCKS[kind]
        if min(shape) < 1 or math.prod(shape) > MOST_NUMBERS or shape[-1] % block.numbers:
            raise self.wrong(
                f"must have axes from 1 on, at most {MOST_NUMBERS} numbers, and {block.name} in "
                f"rows of whole blocks of {block.numbers}; {self.what} is {shape}"
            )
        if offset % alignment:
            raise self.wrong(
                f"must have offsets that are multiples of {alignment}; {self.what} has {offset}"
            )
        return Tensor(shape, block, offset)

    def account(self, tensors: dict[str, Tensor], end: int, alignment: int) -> None:
        """Refuse tensors that overlap, leave a gap, or end before or behind the file."""
        last = self.at
        for name, x in sorted(tensors.items(), key=lambda item: item[1].at):
            if x.at != end:
                what = "a gap" if x.at > end else "an overlap"
                raise self.wrong(
                    f"must have tensors that follow each other; there is {what} before {name!r}, "
                    f"which begins at byte {x.at} and not at {end}"
                )
            last = x.at + x.size
            end = -(-last // alignment) * alignment
        if not last <= len(self.raw) <= end:
            raise self.wrong(
                f"must end with its last tensor, at byte {last}; it has {len(self.raw)} bytes: it "
                "is cut off, or damaged"
            )
