"""Files of students: right, wrong, broken, endless, greedy and hostile ones."""

import pytest

from pe_numpy.homework import runner
from pe_numpy.homework.runner import check_file

RIGHT = "from pe_numpy import rope_frequencies\n"  # a name that is imported is not their own
OWN = """
def rope_frequencies(d, base=10000.0):
    return [base ** (-2 * i / d) for i in range(d // 2)]
"""


def report(tmp_path, text, *names, **limits):
    path = tmp_path / "answers.py"
    path.write_text(text)
    return check_file(path, names, **{"seconds": 10, **limits})


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


def test_helpers_beside_the_file_can_be_imported(tmp_path):
    (tmp_path / "helper.py").write_text(OWN)
    text = "import helper\nrope_frequencies = helper.rope_frequencies\n"
    assert report(tmp_path, text).passed


def test_a_syntax_error_is_told_with_its_line(tmp_path):
    result = report(tmp_path, "x = 1\ndef rope(x:\n")
    assert "syntax error in line 2" in result.problem and not result.passed


def test_a_file_that_can_not_be_imported_is_told_with_its_line(tmp_path):
    (problem,) = told(tmp_path, f"{OWN}\n1 / 0\n")
    assert "it can't be imported: ZeroDivisionError" in problem and "(line 5: 1 / 0)" in problem
    (problem,) = told(tmp_path, f"{OWN}\nraise SystemExit\n")
    assert "SystemExit" in problem


def test_a_missing_file_is_told(tmp_path):
    assert "can't be read" in check_file(tmp_path / "none.py").problem


def test_a_file_without_exercises_lists_what_was_looked_for(tmp_path):
    result = report(tmp_path, RIGHT)
    assert "it defines none of the exercises: " in result.problem and "rope" in result.problem


def test_a_missing_function_is_told(tmp_path):
    result = report(tmp_path, OWN, "rope")
    assert [(v.name, v.problem) for v in result.verdicts] == [
        ("rope", "the file does not define it")
    ]


def test_an_unknown_name_suggests_the_nearest(tmp_path):
    with pytest.raises(ValueError, match="did you mean rope_frequencies"):
        report(tmp_path, OWN, "rope_frequencys")


def test_a_near_name_is_suggested(tmp_path):
    problem = report(tmp_path, OWN.replace("rope_frequencies", "rope_frequency")).problem
    assert problem.endswith("did you mean rope_frequencies for rope_frequency?")


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
    ],
    ids=["under if", "local", "dataclass", "thread", "lambda", "writes", "BOM"],
)
def test_unusual_files_are_read_like_others(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    result = report(tmp_path, text, seconds=5)
    assert result.passed and [v.name for v in result.verdicts] == ["rope_frequencies"]
    assert [path.name for path in tmp_path.iterdir()] == ["answers.py"]


def test_a_name_may_have_spaces_and_no_ending(tmp_path):
    for name in ("my answers.py", "answers"):
        (tmp_path / name).write_text(OWN)
        assert check_file(tmp_path / name).passed


def test_a_notebook_is_refused(tmp_path):
    (tmp_path / "a.ipynb").write_text("{}")
    assert "a notebook is not read" in check_file(tmp_path / "a.ipynb").problem


def test_a_class_is_no_function(tmp_path):
    text = "class rope_frequencies:\n    def __init__(self, d, base=1e4): pass\n"
    assert "got rope_frequencies" in told(tmp_path, text)[0]


def test_an_endless_import_is_waited_for_once(tmp_path, monkeypatch):
    processes = []
    run = runner._run
    monkeypatch.setattr(runner, "_run", lambda *args: processes.append(1) or run(*args))
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


def test_a_file_can_not_change_the_checker_or_other_results(tmp_path):
    forger = """
import numpy as np
import pe_numpy.homework.check as check, pe_numpy.homework.runner as runner
check.judge = runner.judge = lambda *args: 1 / 0
check.difference = lambda *args: ""
np.savez = lambda *args, **options: None
print("passed", flush=True)
def rope_frequencies(d, base=10000.0):
    return np.zeros(d // 2)
"""
    assert told(tmp_path, forger) == ["the process ended before the function did"]
    assert not report(tmp_path, forger.replace("np.savez =", "ignored =")).passed
    assert report(tmp_path, OWN).passed


@pytest.mark.parametrize("stored", [b"", b"PK", b"no zip at all"])
def test_strange_results_are_refused(tmp_path, stored):
    (tmp_path / "rope.npz").write_bytes(stored)
    assert runner._read(tmp_path, runner.EXERCISES["rope"]) is None


def test_what_is_no_function_is_told(tmp_path):
    assert "not callable" in told(tmp_path, "rope = 3\n")[0]


# ---- measuring -------------------------------------------------------------------------------

WRONG = """
import numpy as np
def rope(x, positions, frequencies=None, layout="interleaved"):
    {}
    K = x.shape[-1]
    f = 10000.0 ** (-2 * np.arange(K // 2) / K) if frequencies is None else np.asarray(frequencies)
    angle = np.asarray(positions)[..., None] * f + 0.01 * np.asarray(positions)[..., None] ** 2
    n, y = len(f), x.copy()
    a, b = (slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if layout == "interleaved" else (
        slice(0, n), slice(n, 2 * n))
    y[..., a] = x[..., a] * np.cos(angle) - x[..., b] * np.sin(angle)
    y[..., b] = x[..., a] * np.sin(angle) + x[..., b] * np.cos(angle)
    return y
"""
DETECTED = "This is no relative encoding: scores change by up to 1.6 of the largest"


def verdict_of(tmp_path, text, **limits):
    result = report(tmp_path, text, "rope", **limits)
    assert not result.passed and len(result.verdicts) == 1
    return result.verdicts[0]


def test_a_file_is_measured_in_a_process_of_its_own(tmp_path, monkeypatch):
    ours = []
    monkeypatch.setattr(runner, "measure", lambda *args: ours.append(args))
    verdict = verdict_of(tmp_path, WRONG.format(""))
    assert DETECTED in verdict.measured and not ours


@pytest.mark.parametrize(
    "line",
    [
        "while len(np.shape(positions)) == 1 and len(positions) > 7: pass",
        "assert not (len(np.shape(positions)) == 1 and len(positions) > 7)",
        "import os; len(np.shape(positions)) == 1 and len(positions) > 7 and os._exit(0)",
        "import os; len(np.shape(positions)) == 1 and len(positions) > 7 and os.abort()",
    ],
    ids=["endless", "an error", "a silent end", "a crash"],
)
def test_a_function_that_fails_where_it_is_measured_keeps_its_verdict(tmp_path, line):
    verdict = verdict_of(tmp_path, WRONG.format(line), seconds=4)
    assert "numbers differ" in verdict.problem and verdict.measured == ""


@pytest.mark.parametrize(
    "forged",
    [
        "[[", "{}", "[]", "[[1, 2]]", "[" * 1999, "null", '"words"',
        "[" + ", ".join(["[true, 1, 0.0" + ', "x"' * 13 + "]"] * 2) + "]",
        "[" + ", ".join(["[true, 0, NaN" + ", null" * 13 + "]"] * 2) + "]",
        "[" + ", ".join(["[true, 0, Infinity" + ", true" * 13 + "]"] * 2) + "]",
        "[" + ", ".join(["[[], {}, 0.5" + ", null" * 13 + "]"] * 2) + "]",
    ],
)  # fmt: skip
def test_what_a_process_claims_to_have_measured_says_nothing(tmp_path, forged):
    (tmp_path / "measure").write_text(forged)
    assert runner.explain(runner.EXERCISES["rope"], runner._read_measured(tmp_path)) == ""


def test_a_forger_of_measures_does_not_pass(tmp_path):
    text = """
import os, sys
if "measure" in sys.argv:
    with open(os.path.join(sys.argv[2], "measure"), "wb") as file:
        file.write(bytes(range(256)))
    os._exit(0)
"""
    verdict = verdict_of(tmp_path, text + WRONG.format(""))
    assert verdict.measured == "" and "numbers differ" in verdict.problem
