r"""Checkpoints: a nested dictionary of arrays as one file, whole or not at all.

Source: NumPy's format of arrays (NEP 1, ``.npy``), many of them in one zip file (``.npz``).

Axes: any.
Symbols: a path such as "0/attention/W_q" is the keys that lead to an array, joined by "/".
Convention: the file holds one entry ``PATH.npy`` for each array, so that `numpy.load` reads it as
well; no pickles, so nothing in a strange file can run. A Python number (the step) is an array
of no axes whose entry has the comment "number"; an empty dictionary is an entry that ends in "/";
the comment of the file counts the entries. A Model is the entry ``model.txt``, a line a field.
Differs from `numpy.savez`: any key may be used, dictionaries may be nested, the file appears under
its name only when it is complete, and it is checked as a whole before anything of it is used. What
an entry says of its size is compared with the file's before memory is taken, so no file needs more
memory than it has bytes, but for a table of contents of at most 1 MiB (some ten thousand arrays).
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import zip_longest
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from pe_numpy import checks
from pe_numpy.files import replacing
from pe_numpy.training.optimiser import Tree

_NUMBER = b"number"  # comment of an entry that was a Python number
_CONTENTS = 2**20  # largest table of contents, in bytes; in memory it may be 100 times as large
_DEEPEST = 100  # most keys on the way to an array
_PIECE = 2**20  # bytes read at once
_MODEL, _LONGEST = "model.txt", 2**16  # the entry that says what the model is; its most bytes


def save(path: str | os.PathLike[str], tree: Tree, model: Any = None) -> None:
    """Write nested dictionaries of arrays and numbers into one file.

    Parameters
    ----------
    path : str or path
        File to write; an old one of that name is replaced.
    tree : nested dictionaries
        Of arrays (any real or complex dtype) and Python numbers; the keys are words without "/".
    model : Model, optional
        Whose parameters they are. The file then says in words what parameters can't show, and
        `load` compares it.

    Returns
    -------
    None.

    Raises
    ------
    ValueError
        If more than a hundred keys lead to a leaf, or all paths together are too long (see `load`).

    Notes
    -----
    Source: see `pe_numpy.files`. Whoever reads, or cuts this off, finds the old file or the new
    one, never a part of one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/model.npz", {"step": 7, "norm": {"gain": np.ones(2, np.float32)}})
    ...     load(f"{folder}/model.npz")
    {'step': 7, 'norm': {'gain': array([1., 1.], dtype=float32)}}
    """
    entries = list(_entries(tree, ""))  # refuse bad ones before a file is opened
    words = None if model is None else _words("save", model)
    if (contents := sum(len(name.encode()) + 100 for name, _ in entries)) > _CONTENTS:
        raise ValueError(
            f"save: all paths must have at most {_CONTENTS} bytes, with 100 more for each; got "
            f"{contents} for {len(entries)} arrays. Take several files, or shorter keys"
        )
    with replacing(path) as file:
        with zipfile.ZipFile(file, "w") as archive:
            archive.comment = b"%d entries" % (len(entries) + (words is not None))
            if words is not None:
                archive.writestr(zipfile.ZipInfo(_MODEL), words)
            for name, leaf in entries:
                archive.writestr(*_packed(name, leaf))


def _entries(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each leaf with its path, and each empty dictionary as a path that ends in "/"."""
    if not isinstance(tree, dict):
        if not path:
            raise ValueError(f"save: tree must be a dictionary; got {type(tree).__name__}")
        if (leaf := checks.whole_array("save", repr(path), tree)).dtype.kind not in "buifc":
            raise ValueError(
                f"save: {path!r} must be an array of numbers or a number; "
                f"got {type(tree).__name__} of dtype {leaf.dtype}"
            )
        yield path, tree
        return
    if path and not tree:
        yield f"{path}/", None
    for key, branch in tree.items():
        if path.count("/") > _DEEPEST - 2:
            raise ValueError(
                f"save: at most {_DEEPEST} keys may lead to an array; got more, {path[:60]!r}..."
            )
        if not isinstance(key, str) or not _is_word(key):
            raise ValueError(
                "save: each key must be a printable word without '/' and '\\', since '/' joins "
                f"them; got {key!r} in {path or 'the outermost dictionary'!r}"
            )
        yield from _entries(branch, f"{path}/{key}" if path else key)


def _is_word(key: str) -> bool:
    """Whether it may be a key: nothing in it joins keys, ends a name or can't be seen."""
    return key != "" and key.isprintable() and not set(key) & {"/", "\\"}


def _packed(name: str, leaf: Any) -> tuple[zipfile.ZipInfo, bytes]:
    """Name and bytes of an entry; the date is always 1980, so equal trees make equal files."""
    if leaf is None:
        return zipfile.ZipInfo(name), b""
    info, data = zipfile.ZipInfo(f"{name}.npy"), io.BytesIO()
    npy.write_array(data, np.asanyarray(leaf), allow_pickle=False)
    if type(leaf) in (bool, int, float):
        info.comment = _NUMBER
    return info, data.getvalue()


def _words(function: str, model: Any) -> str:
    """What a Model is: a line for each field, and for the fields of its encodings and masks."""
    if not is_dataclass(model) or isinstance(model, type):
        raise ValueError(f"{function}: model must be a Model; got {type(model).__name__}")
    words = "".join(f"{line}\n" for line in _lines("model", model))
    if (size := len(words.encode())) > _LONGEST:
        raise ValueError(
            f"{function}: what there is to say of the model must have at most {_LONGEST} bytes; "
            f"got {size}"
        )
    return words


def _lines(name: str, value: Any) -> Iterator[str]:
    """Yield "name = value"; what is equal (10000 and 10000.0) gives equal lines."""
    value = value.item() if isinstance(value, np.generic) else value
    if is_dataclass(value):
        yield f"{name} = {type(value).__qualname__}"
        for each in fields(value):
            yield from _lines(f"{name}.{each.name}", getattr(value, each.name))
    elif isinstance(value, tuple):
        yield f"{name} = {len(value)} in turn"
        for n, each in enumerate(value):
            yield from _lines(f"{name}[{n}]", each)
    elif callable(value):
        yield f"{name} = {getattr(value, '__qualname__', type(value).__qualname__)}"
    elif isinstance(value, float) and value.is_integer():
        yield f"{name} = {int(value)}"
    else:
        yield f"{name} = {value!r}"


def load(path: str | os.PathLike[str], like: Tree | None = None, model: Any = None) -> Tree:
    """Read what `save` wrote, and check it.

    Parameters
    ----------
    path : str or path
        The file.
    like : nested dictionaries, optional
        What is expected: the same keys, and for each array the same shape and dtype. None in place
        of an array or dictionary stands for anything.
    model : Model, optional
        Whose parameters they must be: each of its fields must be what `save` was given. A file
        that was saved without a model says nothing of it, and nothing is compared.

    Returns
    -------
    Nested dictionaries; dtypes and bits are those that were saved.

    Raises
    ------
    ValueError
        If the file is damaged or not of this format (the message names it), is of another model
        (the message shows the first field that differs), or is not like `like` (the message names
        the paths). A file that isn't there is a FileNotFoundError, as always.

    Notes
    -----
    Source: see `save`. The checksum (CRC-32) of each entry is compared before anything is handed
    over. A file from strangers may be loaded: nothing in it can run, nothing is written anywhere
    ("..", "C:" are keys like others), and a size that it claims gets no memory unless it is true.
    Classes and functions are told apart by their names, without their modules: two lambdas that
    stand in one function pass for each other.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/model.npz", {"W_q": np.ones((2, 3))})
    ...     load(f"{folder}/model.npz", like={"W_q": np.zeros((2, 3))})["W_q"].shape
    (2, 3)
    """
    with open(path, "rb") as file:
        try:
            tree, words = _read(file)
        except MemoryError:  # a good file may be too large
            raise
        except Exception as error:  # whatever zipfile and numpy make of strange bytes
            raise ValueError(
                f"load: {os.fspath(path)} is damaged or no checkpoint; {type(error).__name__}: "
                f"{error}"
            ) from error
    if model is not None:
        _refuse_other_model(path, words, _words("load", model))
    if like is not None and (wrong := list(_differences(tree, like, ""))):
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise ValueError(
            f"load: {os.fspath(path)} is not what is expected; {'; '.join(wrong[:3])}{more}"
        )
    return tree


def _refuse_other_model(path: str | os.PathLike[str], words: str | None, own: str) -> None:
    if words not in (None, own):
        lines = zip_longest(str(words).split("\n"), own.split("\n"), fillvalue="nothing")
        theirs, ours = next((theirs, ours) for theirs, ours in lines if theirs != ours)
        raise ValueError(
            f"load: {os.fspath(path)} must be of the model given; got "
            f"{theirs[:80]!r} in the file and {ours[:80]!r} in the model"
        )


def _read(file: IO[bytes]) -> tuple[Tree, str | None]:
    """Give the tree in a file, and its words on the model; no size that it claims is believed."""
    size = file.seek(0, os.SEEK_END)
    _refuse_long_contents(file, size)
    tree: Tree = {}
    words = None
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        if archive.comment != b"%d entries" % len(entries):
            raise ValueError(f"it holds {len(entries)} entries and says {archive.comment!r}")
        for info in entries:
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                raise ValueError(
                    f"the entry {info.filename!r} must be stored as it is; got {info.file_size} "
                    f"bytes in {info.compress_size}, by method {info.compress_type}"
                )
        if (told := sum(info.file_size for info in entries)) > size:
            largest = max(entries, key=lambda info: info.file_size)
            raise ValueError(
                f"its entries must fit into its {size} bytes; got {told}, of which "
                f"{largest.filename!r} has {largest.file_size}"
            )
        for info in entries:
            if info.filename != _MODEL:
                _put(tree, archive, info)
            elif words is not None or info.comment or info.file_size > _LONGEST:
                raise ValueError(
                    f"the entry {_MODEL!r} must be there once, without a comment, and have at most "
                    f"{_LONGEST} bytes; got {info.file_size}"
                )
            else:
                words = archive.read(info).decode()
    return tree, words


def _refuse_long_contents(file: IO[bytes], size: int) -> None:
    """Look at only the file's last bytes, since `zipfile` reads the table of contents whole.

    They are as PKWARE's APPNOTE 4.3.14 to 4.3.16 has them. Beyond 2 GB there are three records.
    """
    start = file.seek(max(0, size - 200))
    tail = file.read(200)
    end = tail.rfind(b"PK\5\6")
    if end < 0 or not tail.endswith(b" entries"):
        raise ValueError("it does not end as a checkpoint does")
    contents = int.from_bytes(tail[end + 12 : end + 16], "little")
    if tail[end - 20 : end - 16] == b"PK\6\7":
        contents = int.from_bytes(tail[end - 36 : end - 28], "little")
        if int.from_bytes(tail[end - 12 : end - 4], "little") != start + end - 76:
            raise ValueError("its last records do not stand in a row")
    if contents > _CONTENTS:
        raise ValueError(
            f"its table of contents must have at most {_CONTENTS} bytes; got {contents}"
        )


def _put(tree: Tree, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Put what an entry holds at its place in the tree."""
    *keys, name = info.filename.split("/")
    if name:  # else an empty dictionary
        keys.append(name.removesuffix(".npy"))
    no_place = f"the entry {info.filename[:80]!r} has no place"
    if (name and not name.endswith(".npy")) or not all(map(_is_word, keys)):
        raise ValueError(f"{no_place}: `save` writes no such name")
    if len(keys) > _DEEPEST:
        raise ValueError(f"{no_place}: at most {_DEEPEST} keys may lead there; got {len(keys)}")
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise ValueError(f"{no_place}: {key!r} is an array")
    if keys[-1] in tree:
        raise ValueError(f"{no_place}: it is taken")
    if info.comment not in (b"", _NUMBER):
        raise ValueError(f"the entry {info.filename!r} has a comment")
    with archive.open(info) as entry:
        leaf: Any = _array(entry, info) if name else {}
        if entry.read(1):  # none is left, and at the end the checksum is compared
            raise ValueError(f"the entry {info.filename!r} must be empty")
    tree[keys[-1]] = leaf.item() if info.comment and name else leaf


def _array(entry: IO[bytes], info: zipfile.ZipInfo) -> np.ndarray:
    """Read an array, after its head has been compared with the size of its entry."""
    npy.read_magic(entry)  # and its version, 1.0: numbers need no later one
    try:
        shape, columns_first, dtype = npy.read_array_header_1_0(entry, max_header_size=2000)
    except MemoryError:  # so the parser calls it
        raise ValueError(f"the entry {info.filename!r} has a head of too many brackets") from None
    wanted, there = math.prod(shape) * dtype.itemsize, info.file_size - entry.tell()
    if dtype.kind not in "buifc" or min(shape, default=0) < 0 or wanted != there:
        raise ValueError(
            f"the entry {info.filename!r} must be an array of numbers and nothing else; got shape "
            f"{shape}, dtype {dtype}, which take {wanted} bytes, and {there} are there"
        )
    array = np.empty(shape[::-1] if columns_first else shape, dtype)
    room = array.reshape(-1).view(np.uint8)
    for start in range(0, there, _PIECE):
        piece = entry.read(min(_PIECE, there - start))
        room[start : start + len(piece)] = np.frombuffer(piece, np.uint8)
    return array.T if columns_first else array


def _differences(got: Any, like: Any, path: str) -> Iterator[str]:
    """Say what is missing, too many or of another kind, shape or dtype."""
    if like is None:
        return
    if isinstance(like, dict) and isinstance(got, dict):
        for key in like | got:
            name = f"{path}/{key}" if path else str(key)
            if key not in got:
                yield f"{name!r} is missing"
            elif key not in like:
                yield f"{name!r} is there and not expected"
            else:
                yield from _differences(got[key], like[key], name)
    elif (found := _kind(got)) != (wanted := _kind(like)):
        yield f"{path!r} is {found}, expected {wanted}"


def _kind(leaf: Any) -> str:
    if isinstance(leaf, dict):
        return "a dictionary"
    if type(leaf) in (bool, int, float):
        return f"a number ({type(leaf).__name__})"
    leaf = checks.whole_array("load", "an array of like", leaf)
    return f"an array of shape {leaf.shape}, dtype {leaf.dtype}"
