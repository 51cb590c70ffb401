"""Live cells: what is fetched is checked, and a cell runs as it does in a notebook."""

import html
import io
import json
import re
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import cells
import live
import nbformat
import numpy as np
import pytest
from IPython.lib import pretty
from reading import ROOT


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """An empty folder for what is fetched, and three files that are wanted."""
    wanted = {"a.wasm": b"first", "b.whl": b"second", "c.zip": b"third"}
    pins = {"sources": ["pip some==1", "npm other@2"]}
    pins["sha256"] = {name: live.sha256(data) for name, data in wanted.items()}
    monkeypatch.setattr(live, "KEPT", tmp_path / "live")
    monkeypatch.setattr(live, "pins", lambda: pins)
    return wanted


def wheel(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(f"deep/inside/{name}"), data)


def tarball(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_files_come_from_any_source_and_stay(kept, monkeypatch):
    asked = []

    def download(client, name, folder):
        asked.append((client, name))
        path = folder / ("some.whl" if client == "pip" else "other.tgz")
        own = dict(list(kept.items())[:2] if client == "pip" else list(kept.items())[2:])
        (wheel if client == "pip" else tarball)(path, own)
        return path

    monkeypatch.setattr(live, "download", download)
    assert len(live.missing()) == 3
    assert live.fetch() == ""
    assert asked == [("pip", "some==1"), ("npm", "other@2")]
    assert {name: (live.KEPT / name).read_bytes() for name in kept} == kept
    assert live.fetch() == "" and len(asked) == 2, "what is kept is not fetched again"
    (live.KEPT / "b.whl").write_bytes(b"seconds")  # not what was fetched
    assert live.missing() == ["b.whl"] and live.megabytes() == 0
    assert live.fetch() == "" and (live.KEPT / "b.whl").read_bytes() == b"second"


def test_a_file_with_another_hash_is_not_kept(kept, monkeypatch):
    def download(client, name, folder):
        wheel(folder / "some.whl", kept | {"b.whl": b"something else"})
        return folder / "some.whl"

    monkeypatch.setattr(live, "download", download)
    assert live.fetch().startswith("b.whl not found")
    assert live.missing() == ["b.whl"] and not (live.KEPT / "b.whl").exists()


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError("no npm here"),
        subprocess.TimeoutExpired("pip", 1),
        subprocess.CalledProcessError(1, "pip", stderr=b"what\nno network here\n"),
    ],
)
def test_without_network_the_book_is_built_and_says_why(kept, monkeypatch, error):
    def download(client, name, folder):
        raise error

    monkeypatch.setattr(live, "download", download)
    why = live.fetch()
    assert "a.wasm, b.whl, c.zip not found" in why and "\n" not in why
    assert any(word in why for word in ("no npm here", "longer than", "no network here"))
    live.lay(live.KEPT)  # nothing to lay out
    assert not (live.KEPT / "_static").exists()


def test_pins_name_files_versions_and_no_address():
    pins = live.pins()
    assert "://" not in live.PINS.read_text(encoding="utf-8")
    assert all(len(digest) == 64 for digest in pins["sha256"].values())
    assert set(live.RUNTIME) < set(pins["sha256"])
    stems = {name.split("-")[0].replace("_", "-") for name in pins["sha256"]}
    assert set(pins["wheels"]) < stems


def test_the_book_brings_what_the_chapters_read():
    with zipfile.ZipFile(io.BytesIO(live.book())) as archive:
        names = set(archive.namelist())
    for name in ("contents.toml", "results/study.csv", "results/text.npz"):
        assert f"notebooks/{name}" in names
    assert "pe_numpy/copy/solutions/40_rope_derived.py" in names
    assert {"cells.py", "pretty.py", "pe_numpy/book/census.csv", "pe_numpy/rotary/rope.py"} <= names
    assert not any("__pycache__" in name for name in names)


def packed(files):
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as whole:
        for name, data in files.items():
            live.add(whole, name, data)
    return buffer.getvalue()


def unpacked(archive):
    with zipfile.ZipFile(io.BytesIO(archive)) as whole:
        return {name: whole.read(name) for name in whole.namelist()}


def test_compiled_code_stands_for_its_source_and_what_no_page_needs_is_left_out():
    kept = {"a/__init__.py": b"1", "a/b.py": b"2", "a/mpl-data/fonts/ttf/c.ttf": b"3", "a.so": b"4"}
    gone = ["a/b.pyi", "a/e.h", "m/mpl-data/sample_data/x/y.csv", "m/mpl-data/fonts/afm/z.afm"]
    fonts = {"afmlist": ["afm/z.afm"], "ttflist": ["ttf/DejaVuSerif-Bold.ttf"]}
    fonts["ttflist"] += ["ttf/DejaVuSerif-BoldItalic.ttf", "ttf/DejaVuSans-Oblique.ttf"]
    listed = {kind: [{"fname": f"fonts/{name}"} for name in fonts[kind]] for kind in fonts}
    whole = packed(kept | dict.fromkeys(gone, b"5") | {live.FONTS: json.dumps(listed).encode()})
    new = unpacked(live.lean(whole, {"a/b.pyc": b"compiled", "c.pyc": b"6"}))
    left = json.loads(new.pop(live.FONTS))
    assert left == {"afmlist": [], "ttflist": [listed["ttflist"][0], listed["ttflist"][2]]}
    del kept["a/b.py"]
    assert new == kept | {"a/b.pyc": b"compiled"}


def test_a_page_gets_compiled_code_or_what_was_fetched(kept, monkeypatch, capsys):
    """Code goes where Python looks for it: beside the book's sources, in the place of others'."""
    own = dict.fromkeys(live.RUNTIME, packed({"json.py": b"1", "os.py": b"2"}))
    own |= {"numpy-1.whl": packed({"numpy/a.py": b"3"}), "plot-1.whl": packed({"plot/a.py": b"4"})}
    pins = {"info": {}, "sha256": {name: live.sha256(data) for name, data in own.items()}}
    monkeypatch.setattr(live, "pins", lambda: pins)
    live.KEPT.mkdir()
    for name, data in own.items():
        (live.KEPT / name).write_bytes(data)

    def run(command, **_):
        assert command[:2] == ["node", str(live.COMPILE)]
        for path in ("library/json", "packages/numpy/a", "packages/plot/a", "book/__pycache__/b"):
            target = Path(command[-1]) / f"{path}.pyc"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(b"6")

    def names():
        groups = live.groups(packed({"b.py": b"5"}))
        archives = groups["numpy"] | groups["matplotlib"]
        archives |= {"": groups["python"]["python_stdlib.zip"], "book": groups["book"]["book.zip"]}
        return {name: set(unpacked(data)) for name, data in archives.items()}

    monkeypatch.setattr(live.subprocess, "run", run)
    assert names() == {
        "": {"json.pyc", "os.py"},
        "numpy-1.whl": {"numpy/a.pyc"},
        "plot-1.whl": {"plot/a.pyc"},
        "book": {"b.py", "__pycache__/b.pyc"},
    }

    def none(command, **_):
        raise FileNotFoundError("no node here")

    monkeypatch.setattr(live.subprocess, "run", none)
    assert names() == {
        "": {"json.py", "os.py"},
        "numpy-1.whl": {"numpy/a.py"},
        "plot-1.whl": {"plot/a.py"},
        "book": {"b.py"},
    }
    assert "not compiled ahead: no node here" in capsys.readouterr().out
    assert live.node() == ""


def test_scripts_are_written_anew_if_something_has_changed(kept, tmp_path, monkeypatch):
    written = []

    def groups(text):
        written.append(text)
        return {"book": {"book.zip": text}}

    worker = tmp_path / "live-worker.js"
    worker.write_text("first")
    live.KEPT.mkdir()
    monkeypatch.setattr(live, "WORKER", worker)
    monkeypatch.setattr(live, "groups", groups)
    monkeypatch.setattr(live, "book", lambda: b"first")
    monkeypatch.setattr(live, "node", lambda: "v20")
    folder = live.packed()
    (folder / "old.js").touch()
    assert live.packed() == folder and len(written) == 1
    worker.write_text("second")
    live.packed()
    monkeypatch.setattr(live, "book", lambda: b"second")
    live.packed()
    monkeypatch.setattr(live, "node", lambda: "")
    live.packed()
    assert written == [b"first", b"first", b"second", b"second"]
    assert [path.name for path in folder.iterdir()] == ["book.js"]


def test_what_is_said_of_cells_is_said_of_cells_that_are_there(tmp_path):
    rows = live.said()
    assert rows
    for stem in {row["chapter"] for row in rows}:
        notebook = nbformat.read(ROOT / "notebooks" / f"{stem}.ipynb", as_version=4)
        own = [cell.id for cell in notebook.cells if cell.cell_type == "code"]
        assert {row["cell"] for row in rows if row["chapter"] == stem} <= set(own), stem
        page = tmp_path / "chapters" / f"{stem}.html"
        page.parent.mkdir(exist_ok=True)
        page.write_text("top" + "".join(f'<div class="cell a">{cell}</div>' for cell in own))
    live.tell(tmp_path)
    for row in rows:
        assert row["note"] or float(row["seconds"]) >= 3
        text = (tmp_path / "chapters" / f"{row['chapter']}.html").read_text()
        tag = re.search(rf"<div ([^>]*)>{row['cell']}<", text)
        assert row["note"] in html.unescape(tag[1])
        assert f'data-seconds="{row["seconds"]}"' in tag[1] or not row["seconds"]


def test_cells_that_need_weights_have_no_buttons(tmp_path, monkeypatch):
    script = '<script defer="defer" src="../_static/live-cells.js?v=1"></script>'
    page = tmp_path / "chapters" / "80_x.html"
    page.parent.mkdir()
    page.write_text(f'<script src="live.js"></script>\n{script}\n<script src="book.js"></script>')
    monkeypatch.setattr(live.toc, "trained", lambda: ["80_x"])
    live.offer_none(tmp_path)
    assert page.read_text() == '<script src="live.js"></script>\n\n<script src="book.js"></script>'


# ---- cells --------------------------------------------------------------------------------------


@pytest.fixture
def cell(monkeypatch):
    """Run code as a page does, and tell what it shows."""
    monkeypatch.setitem(sys.modules, "pretty", pretty)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # put back afterwards
    cells.fresh()

    def run(code, number=0):
        shown = []
        done = cells.run(code, number, lambda kind, data: shown.append((kind, data)))
        assert done == all(kind != "error" for kind, _ in shown)
        text = "".join(data for kind, data in shown if kind == "text")
        return text, [(kind, data) for kind, data in shown if kind != "text"]

    return run


def test_the_last_expression_is_shown_as_ipython_does(cell):
    assert cell("x = 2\nx + 1") == ("3\n", [])
    assert cell("x + 1;") == ("", [])
    assert cell("None") == ("", [])
    assert cell("_")[0] == "3\n"
    assert cell("list(range(50))")[0].count("\n") == 50, "IPython's own line breaks"
    assert cell("class A:\n    def _repr_html_(self): return '<b>a</b>'\nA()")[1] == [
        ("html", "<b>a</b>")
    ]


def test_an_error_shows_the_line_of_the_cell_alone(cell):
    text, shown = cell("print('before')\nassert 1 == 2, 'not so'", 7)
    assert text == "before\n"
    _, (kind, trace), _ = shown
    assert kind == "error" and trace.endswith("AssertionError: not so")
    assert 'File "<cell 7>", line 2' in trace and "assert 1 == 2" in trace
    assert "cells.py" not in trace
    assert cell("def f(:")[1][1][1].endswith("SyntaxError: invalid syntax")


def test_assertions_that_held_are_named_by_cell_and_line(cell):
    code = "def f(x):\n    assert x > 0, 'small'\n    return x\n"
    code += "assert True\nif f(1) == 2:\n    assert 1"
    _, [(_, told)] = cell(code, 3)
    first, second = "<cell 3>, line 2", "<cell 3>, line 4"
    assert json.loads(told) == {"held": [first, second], "all": 3}, "the last was not reached"
    code = "assert f(2) == 2; assert all(x for x in [1])\nfor n in range(3):\n    assert n < 2"
    kind, told = cell(code, 4)[1][-1]
    assert kind == "held"
    held = [first, "<cell 4>, line 1", "<cell 4>, line 3"]
    assert json.loads(told) == {"held": held, "all": 2}
    assert cell("print(1)", 5) == ("1\n", [])


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("x = 3\n\nassert x == 2 + 2", 3, "left 3, right 4"),
        ("assert (\n    0.1 + 0.2\n    == 0.25\n), 'no'", 1, "left 0.3, right 0.25"),
        ("import numpy as np\nassert np.allclose([1, 2], 1)", 2, "left [1, 2], right 1"),
        ("import numpy as np\nassert (np.eye(3) == 1).all()", 2, "it is false"),
        (
            "import numpy as np\nassert np.array_equal(np.eye(3), 1)",
            2,
            "left an array of shape (3, 3), right 1",
        ),
        ("assert not 1, 'not so'", 1, "not so"),
        ("def f(x):\n    assert x < 1\n\nf(5)", 2, "left 5, right 1"),
        ("y = [1]\ny[4]", 2, "IndexError: list index out of range"),
        ("import numpy as np\n\nnp.testing.assert_equal(1, 2)", 3, "Items are not equal:"),
        ("x = 1\nx = = 2", 2, "SyntaxError: invalid syntax"),
        ("import pe_numpy\npe_numpy.softmax('a')", 2, "ValueError: softmax: "),
    ],
)
def test_what_failed_is_said_in_a_few_words(cell, code, line, words):
    (kind, told), (last, _) = [one for one in cell(code, 2)[1] if one[0] != "held"]
    assert (kind, last) == ("wrong", "error")
    told = json.loads(told)
    assert told["line"] == line and told["words"].startswith(words)


def test_a_cell_that_runs_again_sees_the_names_before_it(cell):
    cell("import numpy as np\nx, rng = 1, np.random.default_rng(0)", 1)
    first = cell("x += 1\nprint(x, rng.integers(10**9))", 2)
    cell("x = 'lost'", 3)
    assert cell("x += 1\nprint(x, rng.integers(10**9))", 2) == first
    assert cell("print(x)", 3) == ("2\n", [])
    assert cell("x = 5", 1) and "NameError" in cell("rng", 2)[1][-1][1]


def test_the_time_of_the_processor_does_not_end_in_a_page(cell, monkeypatch):
    def ended():
        raise RuntimeError("the processor time used is not available")

    monkeypatch.setattr(time, "process_time", ended)
    monkeypatch.setattr(sys, "platform", "emscripten")
    cells.fresh()
    assert cell("import time\nprint(0 <= time.process_time() - time.process_time() + 1)") == (
        "True\n",
        [],
    )


def test_a_function_of_a_cell_has_a_source(cell):
    cell("def f(x):\n    return x + 1  # here", 1)
    assert "# here" in cell("import inspect\nprint(inspect.getsource(f))", 2)[0]


def test_a_call_gives_json():
    def call(code):
        return json.loads(cells.call(code))

    assert call("pe_numpy.t5_bucket(np.arange(-3, 1))") == [19, 18, 17, 0]
    assert call("{'a': (np.float32(0.5), True, None), 1: 'x'}") == {
        "a": [0.5, True, None],
        "1": "x",
    }
    assert call("np.array([np.inf, -np.inf, np.nan])") == ["Infinity", "-Infinity", "NaN"]
    assert call("1j + np.eye(1)") == [[[1, 1]]]


def test_figures_come_where_they_are_shown(cell, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(plt, "show", plt.show)  # put back afterwards
    cells.with_figures()
    shown = []
    code = "import matplotlib.pyplot as plt\nprint(1)\nplt.plot([1, 2])\nplt.show()\nprint(2)\n"
    cells.run(code + "plt.plot([2, 1]);", 0, lambda kind, data: shown.append((kind, data)))
    kinds = [kind for kind, _ in shown if kind != "text"]
    texts = "".join(data if kind == "text" else f"[{kind}]" for kind, data in shown)
    assert kinds == ["figure", "figure"] and texts == "1\n[figure]2\n[figure]"
    assert not plt.get_fignums()
    assert np.all([data != "" for _, data in shown])
