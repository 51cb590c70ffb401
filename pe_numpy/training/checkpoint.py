r"""Checkpoints: a nested dictionary of arrays as one file, whole or not at all.

Source: NumPy's format of arrays (NEP 1, ``.npy``), many of them in one zip file (``.npz``).

Axes: any.
Symbols: a path such as "0/attention/W_q" is the keys that lead to an array, joined by "/".
Convention: the file holds one entry ``PATH.npy`` for each array, so that `numpy.load` reads it as
well; no pickles, so nothing in a strange file can run. A Python number (the step) is an array
of no axes whose entry has the comment "number"; an empty dictionary is an entry that ends in "/";
the comment of the file counts the entries.
Differs from `numpy.savez`: any key may be used, dictionaries may be nested, the file appears under
its name only when it is complete, and it is checked as a whole before anything of it is used.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from pe_numpy import checks
from pe_numpy.training.optimiser import Tree

_NUMBER = b"number"  # comment of an entry that was a Python number


def save(path: str | os.PathLike[str], tree: Tree) -> None:
    """Write nested dictionaries of arrays and numbers into one file.

    Parameters
    ----------
    path : str or path
        File to write; an old one of that name is replaced.
    tree : nested dictionaries
        Of arrays (any real or complex dtype) and Python numbers; the keys are words without "/".

    Returns
    -------
    None.

    Raises
    ------
    ValueError
        If a key is not such a word, or a leaf is neither an array of numbers nor a number.

    Notes
    -----
    Source: the usual way to replace a file atomically (POSIX rename). The data go to ``PATH.part``,
    then to the disk (fsync), and only then under the name. Whoever reads, or cuts this off, finds
    the old file or the new one, never a part of one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/model.npz", {"step": 7, "norm": {"gain": np.ones(2, np.float32)}})
    ...     load(f"{folder}/model.npz")
    {'step': 7, 'norm': {'gain': array([1., 1.], dtype=float32)}}
    """
    entries = list(_entries(tree, ""))  # refuse bad ones before a file is opened
    path = Path(path)
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            with zipfile.ZipFile(file, "w") as archive:
                archive.comment = b"%d entries" % len(entries)
                for name, leaf in entries:
                    archive.writestr(*_packed(name, leaf))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _entries(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each leaf with its path, and each empty dictionary as a path that ends in "/"."""
    if not isinstance(tree, dict):
        if not path:
            raise ValueError(f"save: tree must be a dictionary; got {type(tree).__name__}")
        if checks.as_array(tree).dtype.kind not in "buifc":
            raise ValueError(
                f"save: {path!r} must be an array of numbers or a number; "
                f"got {type(tree).__name__} of dtype {checks.as_array(tree).dtype}"
            )
        yield path, tree
        return
    if path and not tree:
        yield f"{path}/", None
    for key, branch in tree.items():
        if not isinstance(key, str) or not key.isprintable() or not key or set(key) & {"/", "\\"}:
            raise ValueError(
                "save: each key must be a printable word without '/' and '\\', since '/' joins "
                f"them; got {key!r} in {path or 'the outermost dictionary'!r}"
            )
        yield from _entries(branch, f"{path}/{key}" if path else key)


def _packed(name: str, leaf: Any) -> tuple[zipfile.ZipInfo, bytes]:
    """Name and bytes of an entry; the date is always 1980, so equal trees make equal files."""
    if leaf is None:
        return zipfile.ZipInfo(name), b""
    info, data = zipfile.ZipInfo(f"{name}.npy"), io.BytesIO()
    npy.write_array(data, np.asanyarray(leaf), allow_pickle=False)
    if type(leaf) in (bool, int, float):
        info.comment = _NUMBER
    return info, data.getvalue()


def load(path: str | os.PathLike[str], like: Tree | None = None) -> Tree:
    """Read what `save` wrote, and check it.

    Parameters
    ----------
    path : str or path
        The file.
    like : nested dictionaries, optional
        What is expected: the same keys, and for each array the same shape and dtype. None in place
        of an array or dictionary stands for anything.

    Returns
    -------
    Nested dictionaries; dtypes and bits are those that were saved.

    Raises
    ------
    ValueError
        If the file is damaged or not of this format (the message names it), or is not like `like`
        (the message names the paths). A file that isn't there is a FileNotFoundError, as always.

    Notes
    -----
    Source: see `save`. The checksum (CRC-32) of each entry is compared before its bytes are read as
    an array.

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
            tree = _read(file)
        except Exception as error:  # whatever zipfile and numpy make of strange bytes
            raise ValueError(
                f"load: {os.fspath(path)} is damaged or no checkpoint; {type(error).__name__}: "
                f"{error}"
            ) from error
    if like is not None and (wrong := list(_differences(tree, like, ""))):
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise ValueError(
            f"load: {os.fspath(path)} is not what is expected; {'; '.join(wrong[:3])}{more}"
        )
    return tree


def _read(file: Any) -> Tree:
    tree: Tree = {}
    with zipfile.ZipFile(file) as archive:
        if archive.comment != b"%d entries" % len(archive.infolist()):
            raise ValueError(
                f"it holds {len(archive.infolist())} entries and says {archive.comment!r}"
            )
        for info in archive.infolist():
            *folders, name = info.filename.split("/")
            branch = tree
            for folder in folders:
                branch = branch.setdefault(folder, {})
            data = archive.read(info)  # compares the checksum
            if not name and not data:
                continue  # an empty dictionary
            if not name.endswith(".npy") or name[:-4] in branch:
                raise ValueError(f"the entry {info.filename!r} has no place")
            leaf = npy.read_array(io.BytesIO(data), allow_pickle=False)
            if info.comment not in (b"", _NUMBER):
                raise ValueError(f"the entry {info.filename!r} has a comment")
            branch[name[:-4]] = leaf.item() if info.comment else leaf
    return tree


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
    leaf = checks.as_array(leaf)
    return f"an array of shape {leaf.shape}, dtype {leaf.dtype}"
