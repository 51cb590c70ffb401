"""What is read of a file before any of it runs: code, cells, names, and what is not its own."""

import ast
import gc
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from pe_numpy.copy.copy import copy
from pe_numpy.homework import submission
from pe_numpy.homework.submission import (
    NOT_HERE,
    StrangeFileError,
    code_of,
    defined_in,
    flags_of,
    methods_in,
    none_of_them,
    of_cells,
    printable,
    read,
    tree_of,
)

OWN = """
def rope_frequencies(d, base=10000.0):
    return [base ** (-2 * i / d) for i in range(d // 2)]
"""


def notebook(tmp_path, *cells):
    path = tmp_path / "a.ipynb"
    made = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "def"}, *made]}))
    return path


def flags(tmp_path, text):
    path = tmp_path / "answers.py"
    path.write_text(text)
    return flags_of(text.encode(), ast.parse(text), path)


class Cycle:
    """What only the garbage collector frees, by a method in which threads take turns."""

    def __init__(self):
        self.me = self

    def __del__(self):
        sum(range(200))


@pytest.fixture
def restless():
    """Threads that change, and garbage that is collected, all the time."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    gc.collect()  # of other tests: an error that is told while a tree is made parses its own line
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)


# ---- code ---------------------------------------------------------------------------------------


def test_a_file_is_read_as_it_is(tmp_path):
    (tmp_path / "answers").write_text(OWN)
    assert code_of(tmp_path / "answers") == (OWN.encode(), [])


def test_threads_may_parse_at_the_same_time(restless):
    code = OWN * 50

    def parsed(_):
        kept = [Cycle() for _ in range(5)]
        return ast.dump(tree_of(code)), len(kept)

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(parsed, range(100))) == {(ast.dump(ast.parse(code)), 5)}


def test_a_folder_and_what_has_no_end_are_told(tmp_path, monkeypatch):
    with pytest.raises(StrangeFileError, match="it is a folder"):
        code_of(tmp_path)
    with pytest.raises(StrangeFileError, match="no file that can be read to its end"):
        code_of(type(tmp_path)(os.devnull))
    with pytest.raises(OSError, match="No such file"):
        code_of(tmp_path / "none.py")
    (tmp_path / "a.py").write_text("#" * 101)
    monkeypatch.setattr(submission, "LARGEST_FILE", 100)
    with pytest.raises(StrangeFileError, match="that is no homework"):
        code_of(tmp_path / "a.py")
    (tmp_path / "a.py").write_text("#" * 100)
    assert code_of(tmp_path / "a.py")[0] == b"#" * 100


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_a_pipe_is_not_waited_for(tmp_path):
    for name in ("a.py", "b.ipynb", "helper.py"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "link.py").symlink_to(tmp_path / "a.py")
    for name in ("a.py", "b.ipynb", "link.py"):
        assert read(tmp_path / name).problem == "it is no file that can be read to its end"
    (tmp_path / "c.py").write_text("import helper, a\n")
    assert read(tmp_path / "c.py").files == {"c.py": b"import helper, a\n"}


def test_modules_that_a_file_imports_come_along_and_those_that_they_import(tmp_path):
    (tmp_path / "answers.py").write_text("import helper\nfrom more.deep import x\n" + OWN)
    (tmp_path / "helper.py").write_text("import third, answers\n")
    (tmp_path / "third.py").write_text("import numpy\n")
    (tmp_path / "not_asked_for.py").write_text("")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "deep.py").write_text("x = 1\n")
    names = {"answers.py", "helper.py", "third.py", "more/deep.py"}
    assert {*read(tmp_path / "answers.py").files} == names
    others = [tmp_path / "third.py", tmp_path / "answers.py"]
    assert {*read(tmp_path / "answers.py", others).files} == names - {"third.py"}


@pytest.mark.parametrize("text", ["", "{}", '{"cells": 3}', '{"cells": [{}]}', "[" * 9999, "\x00"])
def test_what_is_no_notebook_is_told(tmp_path, text):
    (tmp_path / "a.ipynb").write_text(text)
    with pytest.raises(StrangeFileError, match="it is no notebook"):
        code_of(tmp_path / "a.ipynb")


def test_what_is_the_notebooks_own_does_nothing(tmp_path):
    magic = "%matplotlib inline\nfiles = !ls\nif files:\n    !pwd\n?print\nprint?\n5 % 3"
    future = "from __future__ import annotations\n'%s' \\\n  % 3"
    cells = magic, "%%time\nx = 1", "%%bash\nls *.py (", future
    text, starts = code_of(notebook(tmp_path, *cells))
    assert text.decode().split("\n") == [
        "from __future__ import annotations",
        *("pass", "files = []", "if files:", "    pass", "pass", "pass", "5 % 3"),
        *("", "x = 1", "", "", "'%s' \\", "  % 3"),
    ]
    ast.parse(text)
    assert starts == [1, 8, 10, 11]


def test_lines_are_counted_in_their_cell():
    assert of_cells("in line 7 (line 2: x)", [1, 3, 6]) == (
        "in line 1 of code cell 3 (line 1 of code cell 1: x)"
    )
    assert of_cells("in line 1", [1]) == "in line 1"  # before the first cell
    assert of_cells("in line 7", []) == "in line 7"


# ---- names --------------------------------------------------------------------------------------


def test_names_of_the_top_level_are_found_under_conditions_too():
    text = """
import json
from numpy import pi
one, (two, *three) = 1, (2, 3)
if one:
    def four(five): six = 5
class Seven:
    def eight(self): pass
nine = lambda ten: ten
async def eleven(): pass
thirteen[0] = 14
"""
    tree = ast.parse(text)
    assert defined_in(tree) == {
        *("one", "two", "three", "four", "Seven", "nine", "eleven"),
    }
    assert methods_in(tree) == {"eight": "class Seven"}


def test_a_file_without_exercises_is_told_which_it_may_mean():
    assert none_of_them({"rope_frequency"}, {}).endswith(
        "did you mean rope_frequencies for rope_frequency?"
    )
    assert none_of_them({"main"}, {"rope": "class A"}).startswith(
        "it defines rope as a method of class A"
    )
    assert none_of_them({"my_rope"}, {}).endswith("did you mean rope for my_rope?")
    assert "did you mean" not in none_of_them({"europe_of_mine"}, {})  # no word of it
    text = none_of_them({"main", "my_attention", "my_rope"}, {})
    assert "for my_attention, the whole of a causal one with RoPE is causal_rope_attention" in text
    text = none_of_them({"main", "helper"}, {"run": "class A"})
    assert text == "it defines none of the exercises, which `python -m pe_numpy list` tells"


def test_what_can_not_be_printed_is_a_question_mark():
    assert printable("a\x1b[31m\n\0\udcffé") == "a?[31m\n??é"


# ---- whose function it is -----------------------------------------------------------------------

FLAG = "uses the package's own function: it "


def test_the_package_and_a_neighbours_answers_are_flagged(tmp_path):
    (tmp_path / "other.py").write_text(OWN)
    (tmp_path / "answers.py").write_text(OWN)
    inside = "def f():\n    from pe_numpy.rotary import rope\n"
    assert flags(tmp_path, inside) == [FLAG + "imports pe_numpy in line 2"]
    assert flags(tmp_path, "import numpy, pe_numpy as p") == [FLAG + "imports pe_numpy in line 1"]
    other = [f"{NOT_HERE}: it imports other.py beside it, which has rope_frequencies"]
    assert flags(tmp_path, "from other import f") == other


def test_a_copy_is_flagged_however_its_lines_break(tmp_path):
    text = copy(["rope_frequencies"])
    licence = [FLAG + "carries the licence notice of `pe_numpy copy`"]
    assert flags(tmp_path, text) == licence
    assert flags(tmp_path, text.replace("The pe_numpy authors", "The pe_numpy\n\nauthors")) == (
        licence
    )


def test_what_is_their_own_gets_no_flag(tmp_path):
    (tmp_path / "helper.py").write_text("def half(d):\n    return d // 2\n")
    (tmp_path / "broken.py").write_text("def (")
    text = '"""python -m pe_numpy check"""\nimport helper, json, broken, answers\n'
    text += "from . import pe_numpy\n"
    assert flags(tmp_path, text + OWN) == []


def test_a_neighbour_of_a_librarys_name_is_not_what_is_imported(tmp_path, monkeypatch):
    for name in ("time", "json", "numpy", "other"):
        (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    (flag,) = flags(tmp_path, "import time, json, numpy as np, other\n")
    assert flag.endswith("imports other.py beside it, which has rope_frequencies")
