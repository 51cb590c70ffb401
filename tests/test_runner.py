"""Files of students: right, wrong, broken, endless, greedy and hostile ones."""

import io
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import pe_numpy
from pe_numpy.homework import runner
from pe_numpy.homework.registry import check
from pe_numpy.homework.runner import check_file, check_files
from pe_numpy.homework.submission import NOT_HERE
from pe_numpy.homework.worker import pack

ROOT = Path(__file__).parents[1]
RIGHT = "from pe_numpy import rope_frequencies\n"  # a name that is imported is not their own
OWN = """
def rope_frequencies(d, base=10000.0):
    return [base ** (-2 * i / d) for i in range(d // 2)]
"""


def report(tmp_path, text, *names, **limits):
    path = tmp_path / "answers.py"
    path.write_text(text)
    return check_file(path, names, **{"seconds": 30, **limits})


def told(tmp_path, text, *names, **limits):
    return [v.problem for v in report(tmp_path, text, *names, **limits).verdicts]


def test_a_right_function_passes(tmp_path):
    result = report(tmp_path, OWN)
    assert result.passed and [v.name for v in result.verdicts] == ["rope_frequencies"]
    assert "rope_frequencies: right in all" in str(result)


def test_a_wrong_one_is_named(tmp_path):
    result = report(tmp_path, OWN.replace("-2 * i", "-i"))
    assert not result.passed
    assert result.verdicts[0].mistake == "exponent i/d for 2i/d"


@pytest.mark.parametrize("name", ["helper", "homework"])
def test_helpers_beside_the_file_can_be_imported(tmp_path, name):
    (tmp_path / f"{name}.py").write_text(OWN)
    text = f"from {name} import rope_frequencies as f\nrope_frequencies = f\n"
    assert report(tmp_path, text).passed


def test_a_syntax_error_is_told_with_its_line(tmp_path):
    result = report(tmp_path, "x = 1\ndef rope(x:\n")
    assert "syntax error in line 2" in result.problem and not result.passed


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (line 5: 1 / 0)"),
        ("assert rope_frequencies(4) == 3", "AssertionError: no message (line 5: assert"),
        ("import no_such_torch", "ModuleNotFoundError: No module named 'no_such_torch' (line 5"),
        ("input()", "EOFError: EOF when reading a line (line 5: input())"),
        ("return 3", "SyntaxError: 'return' outside function (answers.py, line 5)"),
        ("raise SystemExit", "SystemExit: no message (line 5: raise SystemExit)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt: no message (line 5"),
    ],
)
def test_a_line_that_fails_is_told_and_the_rest_is_judged(tmp_path, line, words):
    result = report(tmp_path, f"{OWN}\n{line}\n")
    assert result.passed and words in result.notes[0], result.notes
    assert f"\n  {result.notes[0]}\n" in str(result)


def test_what_stands_below_a_failing_line_is_judged_too_but_not_below_an_exit(tmp_path):
    assert report(tmp_path, "import no_such_torch\n" + OWN).passed
    (problem,) = told(tmp_path, "import sys\nsys.exit(3)\n" + OWN)
    assert problem == (
        "it is not there, since the file failed: SystemExit: 3 (line 2: sys.exit(3))"
    )


def test_a_missing_file_is_told(tmp_path):
    assert "can't be read" in check_file(tmp_path / "none.py").problem


def test_a_file_without_exercises_is_told_where_they_are_listed(tmp_path):
    result = report(tmp_path, RIGHT)
    assert result.problem.startswith("it defines none of the exercises, which `python -m")


def test_a_missing_function_is_told(tmp_path):
    result = report(tmp_path, OWN, "rope")
    assert [(v.name, v.problem) for v in result.verdicts] == [
        ("rope", "the file does not define it")
    ]


def test_an_unknown_name_suggests_the_nearest(tmp_path):
    with pytest.raises(ValueError, match="did you mean rope_frequencies"):
        report(tmp_path, OWN, "rope_frequencys")


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nif sys:" + OWN.replace("\n", "\n    "),
        OWN + "def main():\n    softmax = 3\n    return softmax\n",  # a name of its own
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Size:\n    d: int\n" + OWN,
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n" + OWN,
        "rope_frequencies = lambda d, base=1e4: [base ** (-2 * i / d) for i in range(d // 2)]",
        "print('x' * 10**6)\nopen('litter.txt', 'w').close()\n" + OWN,
        "\ufeff" + OWN,
        "import argparse\nargparse.ArgumentParser().parse_args()\n" + OWN,
        "import sys\nOdd = type('Odd', (), {'__getattr__': lambda *a: 1 / 0})\n"
        "sys.modules['odd'] = Odd()\n" + OWN,
        OWN + "def __getattr__(name): 1 / 0\n",
        "import sys\nsys.meta_path.clear()\n" + OWN,
        "import os\nos.closerange(0, 100)\n" + OWN,
    ],
    ids=[
        "under if",
        "local",
        "class",
        "thread",
        "lambda",
        "writes",
        "BOM",
        "options",
        "odd module",
        "odd name",
        "no imports",
        "closed files",
    ],
)
def test_unusual_files_are_read_like_others(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    result = report(tmp_path, text)
    assert result.passed and [v.name for v in result.verdicts] == ["rope_frequencies"]
    assert [path.name for path in tmp_path.iterdir()] == ["answers.py"]


def test_an_answer_may_draw(tmp_path):
    pytest.importorskip("matplotlib")
    text = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"
    backend = "import matplotlib\nassert matplotlib.get_backend().lower() == 'agg'\n"
    assert report(tmp_path, text + backend + OWN, seconds=60).passed


def test_a_name_may_have_spaces_and_no_ending(tmp_path):
    for name in ("my answers.py", "answers"):
        (tmp_path / name).write_text(OWN)
        assert check_file(tmp_path / name).passed


def test_a_class_is_no_function(tmp_path):
    text = "class rope_frequencies:\n    def __init__(self, d, base=1e4): pass\n"
    assert told(tmp_path, text) == ["it is a class; a function is asked for"]


def test_a_method_is_found_in_its_class(tmp_path):
    text = "class Answers:" + OWN.replace("\n", "\n    ")
    problem = report(tmp_path, text).problem
    assert problem.startswith("it defines rope_frequencies as a method of class Answers")
    (problem,) = told(tmp_path, text, "rope_frequencies")
    assert problem == "the file does not define it, but a method of class Answers"


def test_a_function_that_exists_in_a_script_alone_is_told(tmp_path):
    text = 'if __name__ == "__main__":' + OWN.replace("\n", "\n    ")
    assert "is it under `if __name__ == '__main__'`" in told(tmp_path, text)[0]
    (note,) = report(tmp_path, "from __main__ import other\n" + OWN).notes
    assert "ImportError: cannot import name 'other'" in note


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing yet\n"])
def test_an_empty_file_is_told(tmp_path, text):
    result = report(tmp_path, text)
    assert "the file is empty" in result.problem and not result.passed


def test_a_file_that_can_not_be_read_is_told(tmp_path):
    assert "it is a folder" in check_file(tmp_path).problem
    assert "nested too deeply" in report(tmp_path, "x = " + "-" * 20000 + "1\n" + OWN).problem
    assert report(tmp_path, f"x = [{'+'.join('1' * 2000)}]\n" + OWN).passed


# ---- notebooks ----------------------------------------------------------------------------------


def notebook(tmp_path, *cells):
    path = tmp_path / "a.ipynb"
    made = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "def"}, *made]}))
    return check_file(path, seconds=30)


def test_the_code_cells_of_a_notebook_are_read(tmp_path):
    magic = "%matplotlib inline\nfiles = !ls\nif files:\n    !pwd\n?print\nprint?"
    timed, shell = f"%%time\n{OWN}", "%%bash\nls *.py ("
    future = "from __future__ import annotations\n'%s' \\\n  % 3"
    assert notebook(tmp_path, magic, timed, shell, future).passed
    assert notebook(tmp_path, OWN.replace("2 * i", "i")).verdicts[0].mistake
    assert list(tmp_path.iterdir()) == [tmp_path / "a.ipynb"]


def test_lines_of_a_notebook_are_counted_in_their_cell(tmp_path):
    assert "syntax error in line 2 of code cell 2" in notebook(tmp_path, OWN, "\nx = (").problem
    (note,) = notebook(tmp_path, "x = 1", OWN + "\n1 / 0").notes
    assert "(line 5 of code cell 2: 1 / 0)" in note
    (verdict,) = notebook(tmp_path, "x = 1", OWN.replace("return", "return y +")).verdicts
    assert "(line 3 of code cell 2: return y" in verdict.problem


def test_an_endless_import_is_waited_for_once(tmp_path, monkeypatch):
    processes = []
    start = runner.Run.start
    monkeypatch.setattr(runner.Run, "start", lambda *args: processes.append(1) or start(*args))
    problems = told(tmp_path, "while True: pass\n" + ENDLESS + OWN, seconds=1)
    assert problems == ["it did not end within 1 seconds (line 1)"] * 2 and len(processes) == 1


ENDLESS = """
def rope(x, positions, frequencies=None, layout="interleaved"):
    while True:
        pass
"""


def test_an_endless_loop_is_stopped_and_the_next_function_is_still_checked(tmp_path):
    problems = told(tmp_path, ENDLESS + OWN, seconds=2)
    assert problems[0].startswith("it did not end within 2 seconds (line ") and problems[1] == ""


def test_a_crash_is_told_with_its_line_and_the_next_function_is_still_checked(tmp_path):
    text = ENDLESS.replace("while True:\n        pass", "import ctypes; ctypes.string_at(0)")
    problems = told(tmp_path, text + OWN)
    assert problems[0].startswith("it crashed (SIG") and "(line 3)" in problems[0]
    assert problems[1] == ""


def test_too_much_memory_is_told(tmp_path):
    text = ENDLESS.replace("while True:\n        pass", "return bytearray(10**11)")
    assert "MemoryError" in told(tmp_path, text)[0]


def test_a_silent_end_is_told(tmp_path):
    text = ENDLESS.replace("while True:\n        pass", "import os; os._exit(0)")
    assert told(tmp_path, text) == ["the process ended before the function did"]
    text = text.replace("_exit(0)", "_exit(3)")
    assert told(tmp_path, text) == ["it stopped with exit status 3"]


def read(data, cases=1):
    """What is read of a function's results."""
    return runner._answer(io.BytesIO(data), cases)


def test_results_are_read_as_they_were_written():
    arrays = [np.arange(6.0).reshape(2, 3).T, np.array(3), np.zeros((0, 2), "f4"), np.array([True])]
    arrays += [np.array([1 + 2j]), np.arange(3, dtype=np.longdouble)]
    rows = [(arrays, "", [], False), ([], "ValueError: no", [], False), ([], "", ["x"], True)]
    found, asked = read(pack(["", rows, False]), 3)
    for want, got in zip(arrays, found[0].results, strict=True):
        assert want.dtype == got.dtype and want.shape == got.shape and np.array_equal(want, got)
    assert found[1].error == "ValueError: no" and found[2].changed == ["x"] and found[2].nothing
    assert not asked and read(pack(["no such", [], True])) == ("no such", True)
    with pytest.raises(ValueError, match="not one result a case"):
        read(pack(["", rows, False]), 4)


@pytest.mark.parametrize(
    "stored",
    [
        "", "PK", "[", "[" * 10**5, "[1, 2]", '["", [3], 0]', '["", [[]], 0]', '["", 3, 0]', "null",
        '["", [[[3], "", [], 0]], 0]', '["", [[[{"function": "no"}], "", [], 0]], 0]',
        '["", [[[{"generator": 3}], "", [], 0]], 0]', '["", [[[{"model": 3}], "", [], 0]], 0]',
        '["", [[[{"array": ["<f8", [1000000000000], [0]]}], "", [], 0]], 0]',
        '["", [[[{"array": ["<f8", [-1], [0]]}], "", [], 0]], 0]',
        '["", [[[{"array": ["<f8", [0, 1e99], [0, 1]]}], "", [], 0]], 0]',
        '["", [[[{"array": ["<f8", [true], [0]]}], "", [], 0]], 0]\n12345678',
        '["", [[[{"array": ["<f8", [1], [7]]}], "", [], 0]], 0]\n12345678',
        '["", [[[{"array": ["O", [1], [0]]}], "", [], 0]], 0]\n12345678',
        '["", [[[{"array": ["f4,f4", [1], [0]]}], "", [], 0]], 0]\n12345678',
        '["", [[[{"array": ["no", [1], [0]]}], "", [], 0]], 0]\n12345678',
    ],
)  # fmt: skip
def test_strange_results_are_refused(stored):
    with pytest.raises(runner.STRANGE):
        read(stored.encode())


def test_words_of_a_forged_result_can_be_printed():
    (outcome,), _ = read(b'["", [[[], "a\\u001b[31m\\u0000b", ["\\n\\u0007"], 0]], 0]')
    assert (outcome.error, outcome.changed) == ("a?[31m?b", ["\n?"])


def test_results_that_are_too_large_are_told(tmp_path):
    text = "import numpy as np\ndef softmax(x, axis=-1): return (np.zeros(10**6),) * 20\n"
    assert told(tmp_path, text) == ["its results are far too large"]


def test_results_without_an_end_are_not_read_to_their_end(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "LARGEST_READ", 2**20)
    flood = "import os, time\nwhile True:\n    os.write(200, bytes(2**16))\n    time.sleep(0.01)\n"
    start = time.monotonic()
    assert told(tmp_path, flood + OWN, seconds=20) == ["its results are far too large"]
    assert time.monotonic() - start < 15


def test_what_is_no_function_is_told(tmp_path):
    assert told(tmp_path, "rope = 3\n") == ["it is no function, but int"]


# ---- the import path ----------------------------------------------------------------------------

SHADOWS = ("numpy", "json", "random", "copy", "types", "functools", "importlib", "colorsys")


def test_files_of_a_librarys_name_take_nothings_place(tmp_path):
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')\n")
    text = (
        "import numpy as np, json, random, copy, types, colorsys\nnp.random.default_rng(0)\n" + OWN
    )
    result = report(tmp_path, text)
    assert result.passed and result.flags == []


# ---- Windows ------------------------------------------------------------------------------------


def test_a_system_without_groups_and_signals_is_served(tmp_path, monkeypatch):
    for module, name in ((os, "killpg"), (os, "sched_getaffinity"), (signal, "SIGXCPU")):
        monkeypatch.delattr(module, name)
    monkeypatch.setattr(runner, "apart", lambda: ())
    monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0, raising=False)
    ended = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *a, **o: ended.append(a[0]) or run(*a, **o))
    assert report(tmp_path, OWN).passed and not ended
    stopped = "import faulthandler, time\nfaulthandler.cancel_dump_traceback_later()\n"
    problem = told(tmp_path, stopped + "time.sleep(60)\n" + OWN, seconds=1, budget=1)[0]
    assert problem.startswith("the file has used up its 1 seconds")
    assert [command[:4] for command in ended] == [["taskkill", "/F", "/T", "/PID"]]


def test_signals_that_a_system_lacks_are_named_by_number(monkeypatch):
    assert runner._signal(-11) == "SIGSEGV" and runner._signal(-40) == "signal 40"
    assert runner._signal(0xC0000005) == "0xc0000005"


# ---- what is left behind ------------------------------------------------------------------------


def test_a_file_finds_of_the_variables_only_what_its_python_may_need(tmp_path, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("TOKEN", "of the teacher")
    text = "import os\nassert os.environ['LD_LIBRARY_PATH'] and 'TOKEN' not in os.environ\n"
    assert report(tmp_path, text + OWN).passed


def test_a_file_may_delete_the_folder_it_is_given_and_no_other(tmp_path):
    text = "import os, shutil\nshutil.rmtree(os.environ['HOME'], ignore_errors=True)\n" + OWN
    assert report(tmp_path, text).passed
    text = "import os, shutil\nshutil.rmtree(os.path.dirname(os.environ['HOME']))\n" + OWN
    (note,) = report(tmp_path, text).notes
    assert "PermissionError: an answer may write only in its own folder" in note


def test_a_failure_of_the_checker_itself_is_that_of_one_file(tmp_path, monkeypatch):
    path = tmp_path / "a.py"
    path.write_text(OWN)
    monkeypatch.setattr(runner, "judge", lambda *args: 1 / 0)
    (result,) = check_files([path])
    assert result.problem == "the checker itself failed: ZeroDivisionError: division by zero"
    assert not result.passed


def test_what_the_process_says_may_be_long(tmp_path):
    text = "import os\nfor _ in range(300): os.write(2, b'x' * 10**5)\nos._exit(3)\n"
    start = time.monotonic()
    assert told(tmp_path, text + OWN) == ["it stopped with exit status 3"]
    assert time.monotonic() - start < 20


# ---- whose function it is -----------------------------------------------------------------------

FLAG = "uses the package's own function: it "


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        (
            "def rope_frequencies(d, base=1e4):\n    from pe_numpy import rope_frequencies as f\n"
            "    return f(d, base)\n",
            "imports pe_numpy in line 2",
        ),
        (
            "rope_frequencies = __import__('pe_' + 'numpy').rope_frequencies\n",
            "looks for pe_numpy while it runs",
        ),
        ("import helper\nrope_frequencies = helper.its\n", "looks for pe_numpy while it runs"),
    ],
    ids=["inside", "hidden", "through a helper"],
)
def test_the_package_is_not_there_and_who_asks_for_it_gets_a_flag(tmp_path, text, flag):
    (tmp_path / "helper.py").write_text("from pe_numpy import rope_frequencies as its\n")
    result = report(tmp_path, text)
    assert not result.passed and result.flags == [FLAG + flag]
    assert f"\n  flag: {FLAG + flag}\n" in str(result)
    found = report(tmp_path, text, allow_package=True)
    assert found.passed and found.flags == []


def test_a_neighbours_answers_get_a_flag_and_are_not_there_if_they_are_checked_too(tmp_path):
    (tmp_path / "other.py").write_text(OWN)
    text = "from other import rope_frequencies as f\nrope_frequencies = f\n"
    result = report(tmp_path, text)
    flag = f"{NOT_HERE}: it imports other.py beside it, which has rope_frequencies"
    assert result.passed and result.flags == [flag]
    _, result = check_files([tmp_path / "other.py", tmp_path / "answers.py"])
    assert not result.passed and result.flags == [flag]
    assert "No module named 'other'" in result.notes[0]


# ---- many files ---------------------------------------------------------------------------------


def test_many_endless_functions_cost_one_budget(tmp_path):
    names = [*runner.EXERCISES][:20]
    text = "".join(f"def {name}(*a, **o):\n    while True: pass\n" for name in names)
    start = time.monotonic()
    problems = told(tmp_path, text, seconds=1, budget=4)
    assert time.monotonic() - start < 60 and len(problems) == 20
    late = ("it did not end within 1 seconds", "the file has used up its 4 seconds")  # if slow
    assert problems[0] in [f"{words} (line 2)" for words in late]
    assert problems[-1] == "not run: the file has used up its 4 seconds"


def test_each_function_has_its_own_time(tmp_path):
    names = ("softmax", "rope_frequencies")
    slow = "def {}(*args, **options):\n    time.sleep({})\n"
    text = "import time\n" + "".join(
        slow.format(name, 2 / len(runner.EXERCISES[name].all_cases())) for name in names
    )
    assert "did not end" not in " ".join(told(tmp_path, text, *names, seconds=3.5))


def test_a_link_that_leads_to_itself_harms_no_other(tmp_path):
    (tmp_path / "a.py").write_text(OWN)
    (tmp_path / "b.py").symlink_to(tmp_path / "b.py")
    right, loop = check_files([tmp_path / "a.py", tmp_path / "b.py"])
    assert right.passed and loop.problem.startswith("the file can't be read")
    assert "can't be read" in check_files([tmp_path / ("x" * 300), tmp_path / "a.py"])[0].problem


def test_all_files_are_read_before_the_first_one_runs(tmp_path):
    paths = [tmp_path / f"{n}.py" for n in range(2)]
    for path in paths:
        path.write_text(OWN)
    spoiled = check_files(paths, jobs=1, found=lambda report: paths[1].write_text("no Python ("))
    assert all(report.passed for report in spoiled) and not check_file(paths[1]).passed


def test_files_run_in_parallel_and_come_in_order(tmp_path):
    paths = [tmp_path / f"{n}.py" for n in range(5)]
    sign = tmp_path / "sign"  # the first file waits until another one is done
    wait = f"import os, time\nwhile not os.path.exists({str(sign)!r}):\n    time.sleep(0.02)\n"
    for n, path in enumerate(paths):
        path.write_text((wait if n == 0 else "") + OWN)
    seen, found, threads = [], [], threading.active_count()

    def progress(*numbers):
        seen.append(numbers)
        sign.touch()

    reports = check_files(paths, seconds=60, jobs=3, progress=progress, found=found.append)
    assert [report.path for report in reports] == [*map(str, paths)]
    assert all(report.passed for report in reports)
    assert seen == [(n, 5) for n in range(1, 6)] and threading.active_count() == threads
    assert found[0] is not reports[0] and sorted(map(id, found)) == sorted(map(id, reports))


def test_the_process_and_the_report_have_the_same_seed(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(OWN)
    for seed in (7, len):
        (result,) = check_files([path], seed=seed)
        assert result.seed == (7 if seed == 7 else len(str(path)))
        assert result.version == pe_numpy.__version__
        assert result.passed and str(result).startswith(f"{path} (seed {result.seed})\n")


def test_the_seed_makes_the_cases(tmp_path):
    """A function that is right for some bases alone is so in other cases with another seed."""
    text = OWN.replace("\n    return", "\n    return [] if base < 20000 else")
    found = [report(tmp_path, text, seed=seed).verdicts[0].right for seed in (0, 7)]
    names = {}
    exec(text, names)
    ours = [check("rope_frequencies", names["rope_frequencies"], seed=s).right for s in (0, 7)]
    assert found == ours and found[0] != found[1]
