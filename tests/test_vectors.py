"""`python -m pe_numpy embed`: a vector for each line, and the nearest lines."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from test_run import GOLDEN, tokenizer

from pe_numpy import load_model
from pe_numpy.__main__ import main

LINES = ["w3 w1 w4", "", "w1 w5 w9 w2", "  w3 w1 w4 w4  ", "w30"]
TEXTS = [line.strip() for line in LINES if line]
NUMBERS = [1, 3, 4, 5]


@pytest.fixture
def folder(tmp_path):
    """BERT's golden checkpoint as sentence-transformers would hand it out, and a file of lines."""
    place = tmp_path / "model"
    (place / "1_Pooling").mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (place / name).symlink_to(GOLDEN / "bert" / name)
    (place / "tokenizer.json").write_text(tokenizer())
    modules = [{"type": f"x.{kind}", "path": path}
               for kind, path in (("Transformer", ""), ("Pooling", "1_Pooling"))]  # fmt: skip
    (place / "modules.json").write_text(json.dumps(modules))
    how = {"pooling_mode_mean_tokens": True}
    (place / "1_Pooling" / "config.json").write_text(json.dumps(how))
    (tmp_path / "lines.txt").write_text("\n".join(LINES) + "\n")
    return place


def cosine(v, w):
    return v @ w / np.sqrt(v @ v) / np.sqrt(w @ w)


def test_each_line_gets_its_nearest_other_line(folder, capsys):
    assert main(["embed", str(folder), str(folder.parent / "lines.txt")]) == 0
    out = capsys.readouterr().out.splitlines()
    vectors = load_model(folder).embed(TEXTS)
    expected = []
    for n, text in enumerate(TEXTS):
        others = [m for m in range(4) if m != n]
        best = max(others, key=lambda m: cosine(vectors[n], vectors[m]))
        expected.append(f"line {NUMBERS[n]}: {text}")
        close = cosine(vectors[n], vectors[best])
        expected.append(f"{close:5.2f}  line {NUMBERS[best]}: {TEXTS[best]}")
    assert out == expected


def test_the_lines_nearest_to_a_text_come_in_order(folder, capsys):
    command = ["embed", str(folder), str(folder.parent / "lines.txt"), "--to", "w4 w4"]
    assert main([*command, "--count", "3"]) == 0
    out = capsys.readouterr().out.splitlines()
    *vectors, own = load_model(folder).embed([*TEXTS, "w4 w4"])
    close = [cosine(v, own) for v in vectors]
    best = sorted(range(4), key=lambda n: -close[n])[:3]
    assert out == [f"{close[n]:5.2f}  line {NUMBERS[n]}: {TEXTS[n]}" for n in best]


def test_vectors_are_written_whole(folder, tmp_path):
    place = str(tmp_path / "v.npy")
    assert main(["embed", str(folder), str(tmp_path / "lines.txt"), "--vectors", place]) == 0
    assert_array_equal(np.load(place), load_model(folder).embed(TEXTS))


def test_bad_input_is_told_in_a_line(folder, tmp_path, capsys):
    (tmp_path / "one.txt").write_text("w3\n\n")
    (tmp_path / "lines.txt").write_text("w3\nw4\n")
    for model, file, message in (
        (folder, "one.txt", "embed: FILE must have lines of text to compare; got 1"),
        (GOLDEN / "llama", "lines.txt", "embed: the model must read alone, as MiniLM does; got ll"),
        (GOLDEN / "bert", "lines.txt", "the folder must say how to pool"),
        (folder, "none.txt", "No such file"),
    ):
        assert main(["embed", str(model), str(tmp_path / file)]) == 2
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1
