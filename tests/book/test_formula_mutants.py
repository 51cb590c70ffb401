"""The tool that tests the chapters' assertions is alive: it kills, and it sees a tautology."""

from concurrent.futures import ThreadPoolExecutor

import formula_mutants
import pytest
import toc
from formula_mutants import ROOT, SURVIVORS, explained, mutants, report, survivors
from nbformat.v4 import new_code_cell, new_markdown_cell

FORMULA = new_markdown_cell("$$y = x \\sin x - 2$$")
INPUT = new_code_cell(
    "import numpy as np\nx = np.arange(1.0, 5.0)\ny = x * np.sin(x) - 2\ntop = y.max()"
)


def living(claim):
    """The changes that a cell after a formula does not notice."""
    return [(m.was, m.now) for m in survivors([INPUT, FORMULA, new_code_cell(claim)])[1]]


def test_each_change_of_an_assertion_with_teeth_is_caught():
    claim = "for a, b in zip(x, y):\n    assert abs(b - (a * np.sin(a) - 2)) < 1e-12"
    assert living(claim) == []


def test_a_tautology_is_seen():
    claim = "z = x * np.sin(x) - 2\nassert np.array_equal(z, z)"
    line = "z = x * np.sin(x) - 2"
    assert living(claim) == [
        (line, "z = x / np.sin(x) - 2"),
        (line, "z = x * np.cos(x) - 2"),
        (line, "z = x * np.sin(x) + 2"),
    ]


def test_a_wide_bound_is_seen_and_a_close_one_is_not():
    assert living("assert top < 1") == [("assert top < 1", "assert top < 0.8")]
    assert living("assert 1 > top") == [("assert 1 > top", "assert 0.8 > top")]
    assert living("assert -0.2 < top < y[1] + 0.02") == []


def test_a_change_of_what_is_printed_is_caught_as_well():
    assert living("print(f'{(x + 1).sum():.1f}')") == []


def test_endless_loops_end():
    assert living("n = 3\nwhile n > 0:\n    n = n - 1") == []


def test_inputs_pictures_and_tolerances_are_left_alone():
    cell = "q = np.random.default_rng(0).standard_normal((2, 6 // 2)) / 3\n"
    cell += "plots.curves(-q, q - 1)\nassert np.allclose(q, q, atol=1 - 0.9) or abs(q) < 1e-9"
    assert list(mutants(cell)) == []


@pytest.mark.parametrize("stem", ["30_expansion", "24_complex_order"])
def test_two_chapters_have_no_unexplained_survivor(stem):
    _, tried, lines = report(stem)
    assert tried > 50
    assert lines == []


def test_chapters_that_need_weights_are_left_out_unless_they_are_named(monkeypatch, tmp_path):
    tried = []
    monkeypatch.setattr(toc, "needs_weights", lambda stem: ["gemma"] * (stem[0] == "2"))
    monkeypatch.setattr(formula_mutants, "report", lambda stem: tried.append(stem) or (stem, 0, []))
    monkeypatch.setattr(
        formula_mutants, "ProcessPoolExecutor", lambda n, **_: ThreadPoolExecutor(n)
    )
    with pytest.raises(SystemExit, match="False"):
        formula_mutants.main([])
    assert {stem[0] for stem in tried} >= {"1", "3"} and "2" not in {stem[0] for stem in tried}
    monkeypatch.setenv("PE_NUMPY_WEIGHTS", str(tmp_path))
    with pytest.raises(SystemExit, match="fetch: gemma is not in"):
        formula_mutants.main(["21_learned"])


def test_each_list_of_survivors_belongs_to_a_chapter_and_gives_reasons():
    for path in SURVIVORS.glob("*"):
        assert (ROOT / "notebooks" / f"{path.stem}.py").exists(), path
        assert all(len(reason) > 20 for reason in explained(path.stem).values()), path
