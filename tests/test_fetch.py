"""Fetching trained models: whole or not at all, and only what was accepted."""

import errno
import hashlib
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pe_numpy.book import fetch
from pe_numpy.book.fetch import RELEASES, Release

PAGE = b"<p>menu</p><article><h1>Terms</h1><p>Be kind &amp; fair.</p><script>x</script></article>"
PARTS = {"big.part00": b"first half, ", "big.part01": b"second half"}
BIG = b"".join(PARTS.values())


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def release(big: str = sha(BIG), terms: str = "TERMS.html") -> Release:
    files = {"TERMS.html": (sha(PAGE), ("one/TERMS.html",))}
    files["inner/big"] = (big, ("two/big.part00", "two/big.part01"))
    return Release("a model", 1, {"one==1": "0" * 64, "two==1": "1" * 64}, files, terms)


@pytest.fixture
def pip(monkeypatch):
    """A pip whose index has two wheels; gives the names that were asked for."""
    asked = []

    def run(command, **options):
        wanted = Path(command[command.index("-r") + 1]).read_text(encoding="utf-8")
        into = Path(command[command.index("-d") + 1])
        members = {"one": {"one/TERMS.html": PAGE}}
        members["two"] = {f"two/{name}": data for name, data in PARTS.items()}
        for line in wanted.splitlines():
            name, _, rest = line.partition("==")
            assert rest.startswith("1 --hash=sha256:")
            asked.append(name)
            with zipfile.ZipFile(into / f"{name}-1-py3-none-any.whl", "w") as archive:
                for member, data in members[name].items():
                    archive.writestr(member, data)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return asked


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_parts_are_joined_and_a_second_call_fetches_nothing(pip, tmp_path, capsys):
    fetch.fetch(release(), tmp_path, lambda terms: terms.read_bytes() == PAGE)
    assert (tmp_path / "inner" / "big").read_bytes() == BIG and pip == ["one", "two"]
    assert files_in(tmp_path) == {"TERMS.html", os.path.join("inner", "big")}
    fetch.fetch(release(), tmp_path, lambda _: 1 / 0)
    assert pip == ["one", "two"] and "whole" in capsys.readouterr().out
    (tmp_path / "inner" / "big").write_bytes(BIG[:-1])  # cut short: fetched again
    fetch.fetch(release(), tmp_path, lambda _: True)
    assert (tmp_path / "inner" / "big").read_bytes() == BIG


def test_without_consent_only_the_terms_are_fetched(pip, tmp_path):
    for accepted in (None, lambda _: False, fetch.asked):  # nobody sits at this terminal
        with pytest.raises(ValueError, match=r"fetch: the terms were not accepted.*GEMMA=accept"):
            fetch.fetch(release(), tmp_path, accepted)
    assert set(pip) == {"one"} and files_in(tmp_path) == {"TERMS.html"}


def test_the_terms_are_shown_before_the_question(tmp_path, monkeypatch, capsys):
    (tmp_path / "TERMS.html").write_bytes(PAGE)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    for answer, accepted in (("yes", True), (" Y ", True), ("", False), ("no", False)):
        monkeypatch.setattr("builtins.input", lambda question, answer=answer: answer)
        assert fetch.asked(tmp_path / "TERMS.html") is accepted
        assert capsys.readouterr().out == "Terms\nBe kind & fair.\n"


def test_what_has_no_terms_asks_nothing(pip, tmp_path):
    fetch.fetch(release(terms=""), tmp_path)
    assert pip == ["one", "two"] and (tmp_path / "inner" / "big").read_bytes() == BIG


def test_a_wrong_hash_leaves_nothing(pip, tmp_path):
    with pytest.raises(ValueError, match=r"fetch: inner/big must have the SHA-256 0{64}; got "):
        fetch.fetch(release("0" * 64), tmp_path, lambda _: True)
    assert files_in(tmp_path) == {"TERMS.html"}


def test_a_full_disk_leaves_nothing(pip, tmp_path, monkeypatch):
    def full(pieces):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fetch, "_pieces", full)
    with pytest.raises(OSError, match="No space left"):
        fetch.fetch(release(terms=""), tmp_path)
    assert files_in(tmp_path) == set()


def test_what_pip_says_is_told_with_a_way_out(tmp_path, monkeypatch):
    def run(command, **options):
        said = "Looking\nERROR: No matching distribution found for one==1\n"
        return subprocess.CompletedProcess(command, 1, "", said)

    monkeypatch.setattr(subprocess, "run", run)
    words = r"could not fetch one==1, two==1; is there a network.*No matching distribution"
    with pytest.raises(ValueError, match=words):
        fetch.fetch(release(terms=""), tmp_path)
    assert files_in(tmp_path) == set()


def test_a_member_that_no_package_holds(pip, tmp_path):
    lacking = release(terms="")._replace(files={"x": (sha(b""), ("one/x",))})
    with pytest.raises(ValueError, match="no package that was fetched holds one/x"):
        fetch.fetch(lacking, tmp_path)


def test_the_folder_is_the_variable_or_that_of_the_repository(monkeypatch, tmp_path):
    monkeypatch.setenv("PE_NUMPY_WEIGHTS", str(tmp_path))
    assert fetch.weights_folder() == tmp_path
    monkeypatch.delenv("PE_NUMPY_WEIGHTS")
    assert fetch.weights_folder() == Path(fetch.__file__).parents[2] / "weights"


def test_each_release_names_packages_and_files_by_hash():
    assert set(RELEASES) == {"minilm", "gemma"}
    for one in RELEASES.values():
        hashes = [*one.packages.values(), *(sha256 for sha256, _ in one.files.values())]
        assert all(len(x) == 64 and int(x, 16) >= 0 for x in hashes)
        assert len(set(hashes)) == len(hashes) and all("==" in name for name in one.packages)
    assert len(RELEASES["gemma"].files[fetch.GGUF][1]) == 4


def test_an_unknown_name_is_refused_before_anything_is_fetched(monkeypatch):
    from pe_numpy.__main__ import main

    monkeypatch.setattr(subprocess, "run", lambda *args, **options: 1 / 0)
    assert main(["fetch", "minilm", "gemini"]) == 2
