"""Gemma 3 270M from its GGUF file: numbers, tokens and greedy text, against other libraries.

The file is `gemma/gemma-3-270m-q4_k_m.gguf` in the folder PE_NUMPY_WEIGHTS, or in `weights` of this
repository. `gemma.json` holds what others made of it: the package gguf, llama.cpp, transformers.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import WEIGHTS
from numpy.testing import assert_array_equal

import pe_numpy
from pe_numpy import greedy, load_model
from pe_numpy.models.gguf import read_gguf
from pe_numpy.models.pieces import load_pieces

HERE = Path(__file__).parent
KNOWN = json.loads((HERE / "gemma.json").read_text(encoding="utf-8"))
OPTICKS = Path(pe_numpy.__file__).parent / "training/data/opticks.txt"
FILE = WEIGHTS / "gemma" / KNOWN["file"]
pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason=f"{KNOWN['file']} is not in the folder {WEIGHTS / 'gemma'}"
)


@pytest.fixture(scope="module")
def file():
    return read_gguf(FILE)


@pytest.fixture(scope="module")
def pieces():
    return load_pieces(FILE)


def test_the_file_is_the_one_that_others_read():
    with open(FILE, "rb") as content:
        assert hashlib.file_digest(content, "sha256").hexdigest() == KNOWN["sha256"]


@pytest.mark.parametrize("name", KNOWN["numbers"]["tensors"])
def test_numbers_of_each_type_are_those_of_the_package_gguf_to_the_bit(file, name):
    kind, digest = KNOWN["numbers"]["tensors"][name]
    assert file.tensors[name].block.name == kind
    assert hashlib.sha256(file.numbers(name).astype("<f4").tobytes()).hexdigest() == digest


def test_all_tensors_are_those_of_the_package_gguf_to_the_bit(file):
    gguf = pytest.importorskip("gguf", reason="the package gguf is not here")
    tensors = gguf.GGUFReader(FILE).tensors
    assert [x.name for x in tensors] == list(file.tensors) and len(tensors) == 236
    for x in tensors:
        expected = gguf.quants.dequantize(x.data, x.tensor_type).astype(np.float32)
        assert_array_equal(file.numbers(x.name).view("u4"), expected.view("u4"), err_msg=x.name)


@pytest.mark.parametrize("text, ids", KNOWN["tokens"]["texts"], ids=lambda x: repr(x)[:20])
def test_tokens_of_hard_texts_are_those_of_llama_cpp(pieces, text, ids):
    assert pieces.encode(text) == ids
    assert pieces.decode(ids) == text.replace("\u2581", " ")


@pytest.mark.parametrize("begin, end, digest", KNOWN["tokens"]["opticks"])
def test_tokens_of_a_long_text_are_those_of_llama_cpp(pieces, begin, end, digest):
    text = OPTICKS.read_text(encoding="utf-8")[begin:end]
    ids = pieces.encode(text)
    assert hashlib.sha256(json.dumps(ids).encode()).hexdigest() == digest
    assert pieces.decode(ids) == text


def test_greedy_tokens_are_those_of_transformers_and_english(pieces):
    known, model = KNOWN["greedy"], load_model(FILE)
    assert pieces.encode(known["text"]) == known["prompt"]
    written = greedy(model.parameters, model, [known["prompt"]], len(known["written"]))[0].tolist()
    assert written == known["written"]
    expected = " with the conquest of the Roman Empire by the Romans in 753 B.C. The Romans were"
    assert pieces.decode(written).startswith(expected)
    assert "".join(pieces.stream(written)) == pieces.decode(written)


@pytest.mark.skipif(sys.platform != "linux", reason="the most memory is read from /proc")
def test_the_model_takes_at_most_a_fifth_more_than_its_numbers_in_float32():
    program = (
        "import sys; from pe_numpy import load_model; "
        "model = load_model(sys.argv[1]); "
        "size = lambda x: sum(map(size, x.values())) if isinstance(x, dict) else x.nbytes; "
        "peak = open('/proc/self/status').read().split('VmHWM:')[1].split()[0]; "
        "print(size(model.parameters), 1024 * int(peak))"
    )
    command = [sys.executable, "-c", program, str(FILE)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    numbers, peak = map(int, run.stdout.split())
    assert numbers == 4 * 268_098_176 and peak < 1.2 * numbers
