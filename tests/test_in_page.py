"""The checker in a page's Python says, word by word, what the command says of the same file."""

import sys

import pytest

import pe_numpy
from pe_numpy.copy.copy import SOLUTIONS
from pe_numpy.homework.in_page import checked, report_of
from pe_numpy.homework.known import solution_source
from pe_numpy.homework.registry import EXERCISES
from pe_numpy.homework.release import STUBS
from pe_numpy.homework.runner import check_files

SHAW = (SOLUTIONS / "31_shaw.py").read_text(encoding="utf-8")
NUMPY = "import numpy as np\n\n"


def mistaken(name):
    """The solutions of a chapter, in which one function has the first mistake of its list."""
    exercise = EXERCISES[name]
    text = solution_source(name, exercise.chapter)
    for old, new in zip(*[iter(exercise.mistakes[0].change)] * 2, strict=True):
        text = text.replace(old, new)
    return text


ANSWERS = {
    "a whole chapter": SHAW,
    "right 1": (SOLUTIONS / "35_alibi.py").read_text(encoding="utf-8"),
    "right 2": (SOLUTIONS / "33_t5.py").read_text(encoding="utf-8"),
    "right 3": (SOLUTIONS / "20_sinusoidal.py").read_text(encoding="utf-8"),
    **{
        f"mistake in {name}": mistaken(name) for name in ("shaw_scores", "alibi_bias", "sinusoidal")
    },
    "a stub": (STUBS / "31_shaw.py").read_text(encoding="utf-8"),
    "an exception": NUMPY + "def softmax(x, axis=-1):\n    y = x\n    return y[99999]\n",
    "none of them": "def my_softmax(x):\n    return x\n",
    "no Python": "def softmax(x:\n",
    "a line fails, and what is after it is judged": (
        "import nothing_here\ndef softmax(x, axis=-1):\n    print(x)\n"
        "softmax = None\nrope = [].sort\nalibi_slopes = 3\n"
    ),
    "the package's own": (
        "def softmax(x, axis=-1):\n    import pe_numpy\n    return pe_numpy.softmax(x)\n"
    ),
    "the package's own, by a name that is put together": (
        "def softmax(x, axis=-1):\n    return __import__('pe' + '_numpy').softmax(x)\n"
    ),
    "exit": "import sys\ndef softmax(x, axis=-1):\n    sys.exit(3)\nsys.exit(2)\n",
    "changed": "def softmax(x, axis=-1):\n    x *= 2\n    return x\n",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What the command says of each answer."""
    folder = tmp_path_factory.mktemp("answers")
    paths = [folder / f"a{n}.py" for n in range(len(ANSWERS))]
    for path, text in zip(paths, ANSWERS.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    reports = check_files(paths, seconds=300)
    return dict(zip(ANSWERS, reports, strict=True))


@pytest.mark.parametrize("what", ANSWERS)
def test_the_words_are_those_of_the_command(what, told):
    n = [*ANSWERS].index(what)
    finders = [*sys.meta_path]
    here = report_of(ANSWERS[what], f"a{n}.py")
    expected = str(told[what]).replace(told[what].path, f"a{n}.py")
    assert str(here) == expected
    assert here.passed == what.startswith(("right", "a whole chapter"))
    for name in ("shaw_scores", "alibi_bias", "sinusoidal"):
        if what == f"mistake in {name}":
            assert f"{name}: {EXERCISES[name].mistakes[0].name}\n" in expected
    assert sys.modules["pe_numpy"] is pe_numpy and sys.meta_path == finders


def test_a_page_gets_each_function_with_its_lines(told):
    shown = checked(ANSWERS["mistake in shaw_scores"], "31_shaw.py")
    verdicts = told["mistake in shaw_scores"].verdicts
    assert shown["head"] == []
    assert [one["text"] for one in shown["functions"]] == [*map(str, verdicts)]
    passed = [one["passed"] for one in shown["functions"]]
    assert passed == [one.passed for one in verdicts] and {*passed} == {False, True}
    assert (
        f"shaw_scores: {EXERCISES['shaw_scores'].mistakes[0].name}" in shown["functions"][0]["text"]
    )
    assert checked(ANSWERS["no Python"], "a.py")["head"] == [told["no Python"].problem]
