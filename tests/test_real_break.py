"""The table of *Break a real model*: that it is whole, and that it belongs to what measures it."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pe_numpy import load_model
from pe_numpy.book import trained
from pe_numpy.book.fetch import GGUF, RELEASES
from pe_numpy.models.page import changed

sys.path.insert(0, str(trained.RESULTS))
import real_break

TABLE = real_break.read()
ENTRIES = [
    (one, dict(zip(real_break.MISTAKES, one["entries"], strict=True))) for one in TABLE["sentences"]
]
TINY = Path(__file__).parent / "golden/models/gemma3_text"


def test_it_belongs_to_the_code_that_measures_it():
    assert TABLE["head"]["source"] == real_break.source(), "`make real-tables` measures it again"
    assert TABLE["head"]["sha256"] == RELEASES["gemma"].files[GGUF][0]
    assert trained.TEXTS["opticks"][2][:12] in TABLE["head"]["fixed"]
    assert real_break.TABLE.stat().st_size < 300_000


def test_it_is_whole():
    assert [one["text"] for one in TABLE["sentences"]] == list(real_break.SENTENCES)
    assert list(TABLE["mistakes"]) == list(real_break.MISTAKES)
    for one, entries in ENTRIES:
        assert "".join(one["read"]) == f"<bos>{one['text']}"
        right = entries["right"]["written"]
        for mistake, entry in entries.items():
            written = entry["written"]
            assert entry["mistake"] == mistake and len(written) == real_break.STEPS
            assert len(entry["surprise"]) == len(written) and min(entry["surprise"]) >= 0
            differ = [n for n in range(len(written)) if written[n] != right[n]]
            assert entry["wrong"] == (differ[0] if differ else -1)
            length = len(one["read"]) + real_break.SHOWN - (mistake == "nobos")
            assert [len(row) for row in entry["weights"]] == [*range(1, length + 1)]
            assert_allclose([sum(row) for row in entry["weights"]], 100, atol=6)


def test_a_shift_changes_nothing_and_no_rotation_is_position_0():
    """The theorem, to the last digit that the table has; two ways to take positions away."""
    for _, entries in ENTRIES:
        for a, b in (("right", "shift"), ("zero", "none")):
            assert entries[a]["written"] == entries[b]["written"]
            assert_allclose(entries[a]["surprise"], entries[b]["surprise"], rtol=0, atol=0.011)
            assert_allclose(entries[a]["loss"], entries[b]["loss"], rtol=0, atol=0.0011)
        assert entries["zero"]["loss"] > entries["right"]["loss"]


def test_what_a_mistake_tells_a_model():
    """On a small Gemma, whose six layers only lend their settings: two of them compute."""
    model = load_model(TINY)
    ropes = model.settings.ropes
    model = model.replace(settings=changed(model.settings, ropes=[*ropes, *ropes, *ropes]))
    tokens = [[2, 5, 7, 1, 4, 3, 6]]
    logits = {
        mistake: real_break.broken(model, mistake, 4, 3).logits(tokens)
        for mistake in real_break.MISTAKES
    }
    right = logits.pop("right")
    same = {name for name, other in logits.items() if np.allclose(other, right, rtol=0, atol=1e-4)}
    assert same == {"shift", "nobos"}  # without the first token: `continued` takes it away
    assert_allclose(logits["zero"], logits["none"], rtol=0, atol=1e-5)
    assert_allclose(logits["written"][0, :4], right[0, :4], rtol=0, atol=1e-5)
    quarter = model.replace(places=lambda p: p / 4).logits(tokens)
    assert_allclose(logits["linear"], quarter, rtol=0, atol=1e-4)
    yarn = real_break.broken(model, "yarn", 4).settings.ropes[0]
    assert yarn.attention_factor == pytest.approx(0.1 * np.log(4) + 1)


def test_a_whole_table_is_not_measured_again_and_one_without_its_model_is_left(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setenv("PE_NUMPY_WEIGHTS", str(tmp_path))
    before = real_break.TABLE.read_bytes()
    real_break.main([])
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(real_break, "source", lambda: "other code")
    real_break.main([])
    assert "break.json: left as it is" in capsys.readouterr().out
    assert real_break.TABLE.read_bytes() == before
    with pytest.raises(SystemExit, match=r"usage: .* MISTAKE: right, shift"):
        real_break.main(["sideways", "Paris is"])
