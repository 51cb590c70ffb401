r"""Weights of released models: the tensors of a safetensors file.

Source: huggingface/safetensors 0.8.0, README, "Format"::

    n: 8 bytes, unsigned, little-endian | n bytes of JSON | the numbers, one tensor after another
    JSON: name -> {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}

Axes: those of the file; offsets count from the end of the header.
Convention: numbers are row-major and little-endian. What NumPy knows is a view of the file, which
is read when it is used; bfloat16, which it does not know, becomes float32: its bits are the upper
half of one.
Differs from the library's reader: a name that comes twice is refused, and so are a tensor's keys
beside those three. As there, tensors must fill the file without a gap and without an overlap, so
that no byte of it is unaccounted for.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

NAME = "load_weights"
INDEX = "model.safetensors.index.json"
LONGEST_HEADER = 100_000_000  # bytes, as in the library
MOST_AXES, MOST_NUMBERS = 64, 2**60  # of an array; the axes that are empty aside
DTYPES = {
    **{"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "?"},
    **{"I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"},
    **{"U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8"},
}


class Repeated(ValueError):
    """A name comes twice."""


def load_weights(path: str | Path) -> dict[str, np.ndarray]:
    r"""Read the tensors of a model: from one file, from an index of several, or from a folder.

    Parameters
    ----------
    path : str or Path
        A .safetensors file; an index (.json with a "weight_map"), whose files stand beside it; or a
        folder that holds model.safetensors or model.safetensors.index.json.

    Returns
    -------
    Dictionary of read-only arrays by their names in the file, in the order of the header. They are
    views of the file and cost no memory until they are used; bfloat16 is widened to float32, and
    what stands at an address that its dtype does not allow is copied.

    Raises
    ------
    ValueError
        If a file is missing, cut off, longer than its tensors, or no safetensors file; if tensors
        overlap or leave a gap, a size does not fit its shape, NumPy has no such dtype or shape
        (float8 among them), a name comes twice, or the index leads out of its folder or names what
        a file does not hold. The header is checked before anything of the size it claims is made.

    Notes
    -----
    Source: huggingface/safetensors 0.8.0. Nothing in such a file is executed, unlike in a pickle.

    Examples
    --------
    >>> import tempfile
    >>> header = b'{"W": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.safetensors"
    ...     numbers = b"\x80\x3f\x00\xc0"  # 1 and -2: the upper halves of float32
    ...     _ = path.write_bytes(len(header).to_bytes(8, "little") + header + numbers)
    ...     load_weights(folder)["W"].tolist()
    [1.0, -2.0]
    """
    path = Path(path)
    if os.path.isdir(path):
        one = path / "model.safetensors"  # it goes first, as in transformers
        path = path / INDEX if os.path.isfile(path / INDEX) and not os.path.isfile(one) else one
    if not os.path.isfile(path):
        raise ValueError(
            f"{NAME}: path must be a .safetensors file, an index, or a folder with "
            f"model.safetensors or {INDEX}; there is no {path.name} in {path.parent}"
        )
    return _of_index(path) if path.suffix == ".json" else _of_file(path)


def _of_index(path: Path) -> dict[str, np.ndarray]:
    if path.stat().st_size > LONGEST_HEADER:
        raise ValueError(f"{NAME}: {path.name} must have at most {LONGEST_HEADER} bytes")
    places = _json(path, path.read_bytes()).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(f, str) for f in places.values()):
        raise ValueError(f"{NAME}: {path.name} must have a weight_map of names to files")
    tensors: dict[str, np.ndarray] = {}
    for file in dict.fromkeys(places.values()):
        if file != Path(file).name or "\\" in file:
            raise ValueError(f"{NAME}: {path.name} must name files of its own folder; got {file!r}")
        if not os.path.isfile(path.parent / file):
            raise ValueError(f"{NAME}: {path.name} must name files that exist; {file!r} does not")
        held = _of_file(path.parent / file)
        wanted = [name for name, place in places.items() if place == file]
        wrong = sorted(held.keys() ^ wanted)
        if wrong:
            raise ValueError(
                f"{NAME}: {file} must hold what {path.name} says; "
                f"they differ in {len(wrong)} names: {_first(wrong)}"
            )
        tensors |= held
    return tensors


def _of_file(path: Path) -> dict[str, np.ndarray]:
    size = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, LONGEST_HEADER):
            raise ValueError(
                f"{NAME}: {path.name} must begin with the length of its header; it says {length} "
                f"bytes, and the file has {size}: it is cut off, or no safetensors file"
            )
        header = _json(path, file.read(length))
    start = 8 + length
    notes = header.pop("__metadata__", None) or {}
    if not isinstance(notes, dict) or not all(isinstance(note, str) for note in notes.values()):
        raise ValueError(f"{NAME}: __metadata__ of {path.name} must map names to strings")
    entries = {name: _entry(path, name, entry) for name, entry in header.items()}
    end = 0
    for name, (_, _, begin, stop) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if begin != end:
            what = "a gap" if begin > end else "an overlap"
            raise ValueError(
                f"{NAME}: tensors of {path.name} must follow each other; there is {what} before "
                f"{name!r}, which begins at {begin} and not at {end}"
            )
        end = stop
    if start + end != size:
        raise ValueError(
            f"{NAME}: {path.name} must end with its last tensor, at byte {start + end}; "
            f"it has {size} bytes"
        )
    numbers = np.zeros(0, np.uint8)  # no map can be empty
    if end:
        numbers = np.memmap(path, np.uint8, mode="r", offset=start, shape=end).view(np.ndarray)
    tensors = {}
    for name, (dtype, shape, begin, stop) in entries.items():
        raw = numbers[begin:stop]
        aligned = raw if (start + begin) % dtype.itemsize == 0 else raw.copy()
        x = aligned.view(dtype)
        if header[name]["dtype"] == "BF16":
            x = (x.astype("<u4") << 16).view("<f4")
        x = x.reshape(shape)
        x.flags.writeable = False
        tensors[name] = x
    return tensors


def _entry(path: Path, name: str, entry: Any) -> tuple[np.dtype, tuple[int, ...], int, int]:
    """Return dtype, shape, begin and end of a tensor, checked."""
    where = f"{NAME}: {name[:200]!r} of {path.name}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{where} must have dtype, shape and data_offsets, and nothing else")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in DTYPES:
        got = repr(code[:20]) if isinstance(code, str) else type(code).__name__
        raise ValueError(f"{where} must have a dtype of {', '.join(DTYPES)}; got {got}")
    if not _naturals(shape) or not _naturals(offsets) or len(offsets) != 2:
        raise ValueError(
            f"{where} must have whole numbers below 2^63 in shape and in two data_offsets"
        )
    if len(shape) > MOST_AXES or math.prod(n or 1 for n in shape) > MOST_NUMBERS:
        raise ValueError(
            f"{where} must have at most {MOST_AXES} axes and {MOST_NUMBERS} numbers; "
            f"got {len(shape)} axes, {str(shape[:3])[1:-1]}, ..."
        )
    dtype, (begin, end) = np.dtype(DTYPES[code]), offsets
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(
            f"{where} must fill its place: {code} {shape} takes "
            f"{math.prod(shape) * dtype.itemsize} bytes; got {end - begin}"
        )
    return dtype, tuple(shape), begin, end


def _naturals(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n < 2**63 for n in numbers)


def _json(path: Path, text: bytes) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = Counter(name for name, _ in pairs)
        "".join(names).encode("utf-8")  # raises where JSON escapes half of a character
        if len(names) < len(pairs):
            twice = [name for name, times in names.items() if times > 1]
            raise Repeated(f"{NAME}: {path.name} must have each name once; twice: {_first(twice)}")
        return dict(pairs)

    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=once)
    except Repeated:
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{NAME}: {path.name} must hold JSON; {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{NAME}: {path.name} must hold a JSON object; got {type(found).__name__}")
    return found


def _first(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(name[:200] for name in names[:3]) + (", ..." if len(names) > 3 else "")
