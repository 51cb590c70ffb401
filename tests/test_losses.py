"""`python -m pe_numpy positions`: losses under wrong positions, as loops compute them."""

import numpy as np
import pytest
from test_run import GOLDEN, tokenizer

from pe_numpy import load_model
from pe_numpy.__main__ import main

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6]


@pytest.fixture
def folder(tmp_path):
    """A function that makes the folder of a golden model, and a text."""
    (tmp_path / "text.txt").write_text(" ".join(f"w{n}" for n in TOKENS))

    def make(name):
        for file in ("config.json", "model.safetensors"):
            (tmp_path / file).symlink_to(GOLDEN / name / file)
        (tmp_path / "tokenizer.json").write_text(tokenizer())
        return tmp_path

    return make


def rows(folder, capsys, *options):
    assert main(["positions", str(folder), str(folder / "text.txt"), *options]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    return first, {line.split()[0]: line.split()[1:] for line in lines}


def loss_by_loops(model, tokens, places):
    told = model.replace(places=lambda positions: np.array(places)[positions])
    total = 0.0
    for n, logits in enumerate(told.logits([tokens])[0, :-1].astype(float)):
        total -= logits[tokens[n + 1]] - np.log(np.exp(logits).sum())
    return total / (len(tokens) - 1)


@pytest.mark.parametrize("L", [8, 6])
def test_each_way_of_telling_positions_has_its_loss(L, folder, capsys):
    place = folder("llama")
    first, found = rows(place, capsys, "--tokens", str(L))
    model, tokens, p = load_model(place), TOKENS[:L], range(L)
    ways = {
        "right": [*p],
        "shift": [1000 + n for n in p],
        "zero": [0 for _ in p],
        "reverse": [L - 1 - n for n in p],
        "double": [2 * n for n in p],
        "halve": [n / 2 for n in p],
        "swap": [n + 1 - 2 * (n % 2) for n in p],
    }
    assert first.startswith(f"{L} tokens; ") and [*found] == [*ways]
    right = loss_by_loops(model, tokens, ways["right"])
    for name, places in ways.items():
        loss = loss_by_loops(model, tokens, places)
        assert abs(float(found[name][0]) - loss) < 6e-4
        assert name == "right" or abs(float(found[name][1]) - (loss - right)) < 1.1e-3
    assert abs(float(found["shift"][1])) < 1e-3  # RoPE: only differences count
    assert any(abs(float(found[name][1])) > 0.01 for name in ("zero", "reverse", "double"))


def test_what_a_table_has_no_row_for_is_refused_in_its_line(folder, capsys):
    found = rows(folder("gpt2"), capsys)[1]
    assert found["shift"][0] == "refused:" and found["halve"][0] == "refused:"
    assert len(found["zero"]) == 2


def test_bad_input_is_told_in_a_line(folder, capsys):
    place = folder("llama")
    for model, options, message in (
        (place, ("--tokens", "2"), "positions: tokens must be at least 3; got 2"),
        (GOLDEN / "bert", (), "positions: the model must write; got bert"),
    ):
        assert main(["positions", str(model), str(place / "text.txt"), *options]) == 2
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1
    (place / "text.txt").write_text("w3")
    assert main(["positions", str(place), str(place / "text.txt")]) == 2
    assert "FILE must have 3 tokens; got 1" in capsys.readouterr().err
