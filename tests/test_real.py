"""The table of part 8: that it belongs to the code that measures it, and to the texts."""

import sys

import pytest

from pe_numpy.book import trained

sys.path.insert(0, str(trained.RESULTS))
import real


@pytest.mark.parametrize("name", trained.TEXTS)
def test_a_text_is_the_frozen_one(name, monkeypatch, tmp_path):
    piece = trained.text(name)
    assert len(piece) >= 20_000
    path, (start, end), sha256 = trained.TEXTS[name]
    other = tmp_path / path.name
    other.write_text(path.read_text(encoding="utf-8").replace("the", "a"), encoding="utf-8")
    monkeypatch.setitem(trained.TEXTS, name, (other, (start, end), sha256))
    with pytest.raises(ValueError, match=f"{path.name} must have the SHA-256 {sha256[:12]}"):
        trained.text(name)


@pytest.mark.parametrize("name", real.experiments())
def test_rows_belong_to_their_code(name):
    rows = real.read()[name]
    assert ("source", "", real.source(real.experiments()[name])) in rows, (
        f"{name} was changed after it was measured: `make real-tables` measures it again"
    )
    assert len({row[:2] for row in rows}) == len(rows) > 1


def test_the_table_holds_no_rows_but_those_of_experiments():
    assert set(real.read()) == set(real.experiments())
    text = real.TABLE.read_text(encoding="utf-8")
    for name, (*_, sha256) in trained.TEXTS.items():
        assert f"{name} {sha256[:12]}" in text


def test_a_hash_follows_what_an_experiment_calls(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    parts = (
        "helper():\n    return {}",
        "idle():\n    pass",
        "measured():\n    yield 'a', '', helper()",
    )
    code = "\n\n\n".join(f"def {part}" for part in parts)
    hashes = []
    for n, body in enumerate(("1", "2", "1")):
        name = f"module_of_experiments_{n}"
        (tmp_path / f"{name}.py").write_text(code.format(body))
        hashes.append(real.source(__import__(name).measured))
    assert hashes[0] == hashes[2] != hashes[1]
    changed = code.format("1").replace("pass", "return")
    (tmp_path / "module_of_experiments_3.py").write_text(changed)
    assert real.source(__import__("module_of_experiments_3").measured) == hashes[0]


def test_an_experiment_without_its_model_is_left(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PE_NUMPY_WEIGHTS", str(tmp_path))
    name = next(iter(real.experiments()))
    before = real.TABLE.read_bytes()
    real.main([name])
    assert "left as it is" in capsys.readouterr().out and real.TABLE.read_bytes() == before


def test_a_part_that_is_none_is_refused():
    model = trained.Gemma.__new__(trained.Gemma)
    with pytest.raises(ValueError, match=r"but: parts must be of positions, .*; got position$"):
        model.but(position=abs)


def test_wrong_rows_are_found(monkeypatch):
    def measured():
        yield "a", "text", 1.0
        yield "b", "text", 2.0

    monkeypatch.setattr(real, "experiments", lambda: {"e": measured})
    right = [("a", "text", "1.0100"), ("b", "text", "2.0"), ("source", "", "x")]
    assert list(real.differences("e", right)) == []
    wrong = [("a", "text", "1.0300"), ("c", "text", "2.0")]
    assert list(real.differences("e", wrong)) == [
        "e, a, text: 1.0000, table 1.0300",
        "e, b, text: 2.0000, table None",
        "e, c, text: not measured",
    ]
