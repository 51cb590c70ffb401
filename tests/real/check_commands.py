"""The commands on trained models: Gemma writes, order is felt, near lines are found."""

import re

import pytest
from conftest import WEIGHTS

from pe_numpy.__main__ import main
from pe_numpy.book.fetch import GGUF

HERE = "The history of the Roman Empire began"
gemma = pytest.mark.skipif(not (WEIGHTS / "gemma" / GGUF).is_file(), reason="no Gemma")
minilm = pytest.mark.skipif(not (WEIGHTS / "minilm").is_dir(), reason="no MiniLM")


@pytest.fixture(autouse=True)
def weights(monkeypatch):
    monkeypatch.setenv("PE_NUMPY_WEIGHTS", str(WEIGHTS))


@gemma
def test_gemma_writes(capsys):
    assert main(["run", "gemma", HERE, "--steps", "8"]) == 0
    assert capsys.readouterr().out == " with the conquest of the Roman Empire by\n"


@gemma
def test_a_shift_changes_nothing_and_no_order_costs_nats(capsys, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(
        "Light is either refracted, reflected, or bent, and each ray keeps its colour. " * 2
    )
    assert main(["positions", "gemma", str(text), "--tokens", "32"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    change = {name: float(more) for name, _, more in (re.split(" +", x) for x in lines[1:])}
    assert abs(change["shift"]) < 1e-3 and change["zero"] > 0.5 and change["reverse"] > 0.5


@minilm
def test_near_lines_are_found(capsys, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("Stock prices fell today.\nA dog attacked somebody.\nIt will rain.\n")
    assert main(["embed", "minilm", str(lines), "--to", "an animal hurt a person"]) == 0
    assert "line 2" in capsys.readouterr().out.splitlines()[0]
