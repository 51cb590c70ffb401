"""What a chapter asserts depends on something that the book computes, or a reason says why not."""

import nbformat
import pytest
from assertions import listed, without_tolerance
from reading import NOTEBOOKS, ROOT, solutions

REASONS = ROOT / "tests" / "book" / "reasons"
chapters = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


def code(path):
    """The cells of a chapter and the code of its solutions, in their order."""
    cells = nbformat.read(path, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"] + solutions(path)


def excused(stem):
    """The assertions of a chapter that may stand: assertion -> reason."""
    path = REASONS / f"{stem}.txt"
    found, reason, last = {}, "", ""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        if line.startswith("# "):
            reason = f"{reason} {line[2:]}" if last.startswith("# ") else line[2:]
        elif line:
            assert len(reason) > 20, f"{path.name}: {line}"
            found[line] = reason
        last = line
    return found


@chapters
def test_what_nothing_in_the_book_can_make_fail_has_a_reason(path):
    assert listed(code(path)) == list(excused(path.stem))


@chapters
def test_each_comparison_writes_its_tolerances_out(path):
    assert [call for source in code(path) for call in without_tolerance(source)] == []


def test_each_list_of_reasons_belongs_to_a_chapter():
    assert {path.stem for path in REASONS.glob("*")} <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize(
    "cell",
    [
        "assert 2 + 2 == 4",
        "x = np.arange(3)\nassert x.sum() == 3",
        "rows = []\nfor n in range(3):\n    rows.append(n)\nassert len(rows) == 3",
        "y = rope(q, p)\nz = y + 1\nassert np.array_equal(z, y + 1)",
        "y = rope(q, p)\nassert np.allclose(y, y, rtol=0, atol=1e-12)",
        "y = rope(q, p)\ny = 3\nassert y == 3",
        "a, b = 3, rope(q, p)\nassert a == 3",
    ],
)
def test_an_assertion_that_cannot_fail_is_listed(cell):
    assert len(listed(["import numpy as np\nfrom pe_numpy import rope", cell])) == 1


@pytest.mark.parametrize(
    "cell",
    [
        "assert rope(q, p).sum() > 3",
        "x = rope(q, p)\ny = 2 * x\nassert y.sum() == 3",
        "rows = []\nfor n in range(3):\n    rows.append(rope(q, n))\nassert len(rows) == 3",
        "rows = {}\nrows.setdefault(3, []).append(rope(q, p))\nassert len(rows) == 3",
        "n = 0\nwhile rope(q, n) > 0:\n    n += 1\nassert n == 3",
        "n = 0\nif rope(q, p) > 0:\n    n = 1\nassert n == 1",
        "seen = {}\nx = rope(q, p, watch=seen)\nassert seen == {}",
        "def mine(x):\n    return 2 * x\nassert mine(2) == 4",
        "x = np.zeros(3)\nx[1] = rope(q, p)\nassert x.sum() == 0",
        "assert all(value > 0 for value in rope(q, p))",
        "x = np.load('file')\nassert x.sum() == 0",
    ],
)
def test_what_depends_on_the_book_is_not_listed(cell):
    assert listed(["import numpy as np\nfrom pe_numpy import rope", cell]) == []


def test_a_tolerance_left_out_is_seen():
    assert without_tolerance("np.allclose(x, y, atol=1e-9)\nassert np.isclose(1, 2)") == [
        "np.allclose(x, y, atol=1e-09)",
        "np.isclose(1, 2)",
    ]
    assert without_tolerance("np.allclose(x, y, rtol=0, atol=1e-9)") == []
