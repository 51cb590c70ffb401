"""Files written whole or not at all: errors, interrupts, full disks, permissions, links."""

import errno
import os
import shutil
import stat
import subprocess
import sys

import pytest

from pe_numpy.files import replacing, write_whole

posix = pytest.mark.skipif(os.name != "posix", reason="only POSIX has it")


@pytest.fixture
def old(tmp_path):
    """A file with old bytes in a folder of its own."""
    path = tmp_path / "folder" / "a.txt"
    path.parent.mkdir()
    path.write_bytes(b"old")
    return path


def untouched(path):
    return path.read_bytes() == b"old" and os.listdir(path.parent) == [path.name]


def test_bytes_and_text_are_written_as_they_are(tmp_path):
    for data, stored in ((b"\0\r\n", b"\0\r\n"), ("α\r\n\n", b"\xce\xb1\r\n\n"), ("", b"")):
        write_whole(str(tmp_path / "a"), data)
        assert (tmp_path / "a").read_bytes() == stored
    assert os.listdir(tmp_path) == ["a"]


def test_until_all_is_written_the_old_file_is_there(old):
    with replacing(old) as file:
        file.write(b"new")
        file.flush()
        assert old.read_bytes() == b"old"
        (part,) = {*os.listdir(old.parent)} - {"a.txt"}
        assert part.startswith("a.txt.") and part.endswith(".part")
    assert old.read_bytes() == b"new"
    assert os.listdir(old.parent) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_whatever_ends_the_block_leaves_the_old_file_and_nothing_else(old, error):
    with pytest.raises(error), replacing(old) as file:
        file.write(b"new")
        raise error
    assert untouched(old)


@pytest.mark.parametrize("step", ["open", "write", "flush", "fsync", "copymode", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EDQUOT])
def test_an_error_of_the_disk_at_any_step_names_the_file(old, monkeypatch, step, number):
    def fail(*paths, **settings):
        raise OSError(number, os.strerror(number), *(p for p in paths if isinstance(p, str)))

    class Full:
        """A file on a disk that fails at one step."""

        def __init__(self, file):
            self.write = fail if step == "write" else file.write
            self.flush = fail if step == "flush" else file.flush
            self.fileno = file.fileno
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

    def opened(path, mode):
        if step == "open":
            fail(str(path))
        return Full(open(path, mode))

    monkeypatch.setattr("pe_numpy.files.open", opened, raising=False)
    if step in ("fsync", "replace"):
        monkeypatch.setattr(os, step, fail)
    elif step == "copymode":
        monkeypatch.setattr(shutil, step, fail)
    with pytest.raises(OSError) as caught:
        write_whole(old, b"new")
    monkeypatch.undo()
    assert (caught.value.errno, caught.value.filename) == (number, str(old))
    assert str(caught.value) == f"[Errno {number}] {os.strerror(number)}: {str(old)!r}"
    assert untouched(old)


def test_an_error_about_another_file_keeps_its_name(old):
    with pytest.raises(FileNotFoundError) as caught, replacing(old) as file:
        file.write((old.parent / "another").read_bytes())
    assert caught.value.filename == str(old.parent / "another")
    assert untouched(old)


FULL = """
import os, sys
from pe_numpy.files import write_whole
write_whole(sys.argv[1], b"old")
try:
    write_whole(sys.argv[1], bytes(200_000))
except OSError as error:
    print(error)
print(os.listdir(os.path.dirname(sys.argv[1])), open(sys.argv[1], "rb").read())
"""


@posix
def test_on_a_disk_that_is_really_full_the_old_file_stays(tmp_path):
    mount = 'mount -t tmpfs -o size=64k tmpfs "$0"'
    unshare = ["unshare", "-rm", "sh", "-c"]
    try:
        subprocess.run([*unshare, mount, tmp_path], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this system gives no small disk to its users")
    run = subprocess.run(
        [*unshare, f'{mount} && exec "$@"', tmp_path, sys.executable, "-c", FULL, tmp_path / "a"],
        capture_output=True,
        text=True,
    )
    full = f"[Errno {errno.ENOSPC}] {os.strerror(errno.ENOSPC)}: {str(tmp_path / 'a')!r}"
    assert run.stdout.splitlines() == [full, "['a'] b'old'"], run.stderr


@posix
def test_beyond_the_largest_size_of_a_file_the_old_file_stays(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    run = subprocess.run(
        [sys.executable, "-c", limit + FULL, tmp_path / "a"], capture_output=True, text=True
    )
    large = f"[Errno {errno.EFBIG}] {os.strerror(errno.EFBIG)}: {str(tmp_path / 'a')!r}"
    assert run.stdout.splitlines() == [large, "['a'] b'old'"], run.stderr


def test_a_folder_that_is_not_there_or_is_the_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(tmp_path / "none" / "a", b"")
    assert caught.value.filename == str(tmp_path / "none" / "a")
    with pytest.raises(OSError) as caught:
        write_whole(tmp_path, b"")
    assert str(caught.value.filename) == str(tmp_path)


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o444])
def test_the_permissions_of_the_old_file_are_kept(old, mode):
    old.chmod(mode)
    write_whole(old, b"new")
    assert (stat.S_IMODE(old.stat().st_mode), old.read_bytes()) == (mode, b"new")


@posix
def test_a_new_file_has_the_permissions_that_files_have(tmp_path):
    mask = os.umask(0o027)
    try:
        write_whole(tmp_path / "a", b"new")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@posix
def test_a_link_stays_a_link(old, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(old)
    write_whole(link, b"new")
    assert link.is_symlink() and old.read_bytes() == b"new"
    assert os.listdir(old.parent) == ["a.txt"] and sorted(os.listdir(tmp_path)) == [
        "folder",
        "link",
    ]


@posix
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and os.listdir(tmp_path) == ["pipe"]


def test_two_who_write_one_file_at_once_do_not_meet(old):
    with replacing(old) as one, replacing(old) as other:
        one.write(b"one")
        other.write(b"other")
    assert old.read_bytes() == b"one"  # it ended last
    assert os.listdir(old.parent) == ["a.txt"]
