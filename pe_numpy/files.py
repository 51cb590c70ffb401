"""Files that are written whole or not at all.

Source: the usual way to replace a file atomically (POSIX ``rename``): the bytes go to another file
beside it, then to the disk (``fsync``), and only then under the name. Any reader, and whatever
ends the writer, finds the old file or the new one, never a part of one.

Axes: none.
Convention: the file beside it is ``NAME.xxxxxxxx.part``, with a name of its own for each call, so
that two processes that write one file at once do not meet there. If the writing fails, it is
removed; if the process is killed, it stays, nobody reads it, and it may be thrown away.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for new bytes that take the place of the old ones when all are written.

    Parameters
    ----------
    path : str or path
        The file. The new one has the permissions of the old one; of a link, the file that it leads
        to is replaced; a device or a pipe is written to as it is.

    Yields
    ------
    File to write bytes into. If the block ends with an error, the old file stays.

    Raises
    ------
    OSError
        If the file can't be written; it names this file, and not the one beside it.

    Notes
    -----
    Source: POSIX, ``rename`` and ``fsync``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as file:
    ...         _ = file.write(b"one")
    ...         print(Path(folder, "a.txt").exists())
    ...     print(os.listdir(folder))
    False
    ['a.txt']
    """
    target = Path(os.path.realpath(path))
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            yield file
        return
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    except BaseException as error:  # an interrupt, too
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            if error.filename in (None, part, str(part)):
                raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    r"""Write a file whole or not at all, text in UTF-8 with its line ends as they are.

    Parameters
    ----------
    path : str or path
        As in `replacing`.
    data : bytes or str
        All that the file is to hold.

    Returns
    -------
    None.

    Raises
    ------
    OSError
        As in `replacing`.

    Notes
    -----
    Source: see `replacing`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(f"{folder}/a.txt", "α\n")
    ...     Path(folder, "a.txt").read_bytes()
    b'\xce\xb1\n'
    """
    with replacing(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)
