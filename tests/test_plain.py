"""The plain form: without checks of input, and on good input the same to the last bit."""

import ast
import doctest
import re
import sys
from functools import cache
from io import StringIO
from statistics import median
from types import ModuleType

import numpy as np
import pytest

import pe_numpy
from pe_numpy.__main__ import main
from pe_numpy.book.show import show_source
from pe_numpy.copy.copy import copy
from pe_numpy.copy.plain import plain
from pe_numpy.homework.cases import Case, run
from pe_numpy.homework.registry import EXERCISES

PUBLIC = sorted({*pe_numpy.__all__} - {"check", "load_model"})


def plain_copy(*names):
    """Names as the package has them: beside one that is no exercise, solutions stand back."""
    return copy([*names, "Sizes"], plain=True)


@cache
def copied_plainly(*names):
    module = ModuleType("copied_plainly")
    sys.modules[module.__name__] = module  # dataclasses look there
    exec(compile(plain_copy(*names), "copied_plainly", "exec"), vars(module))
    return vars(module)


def examples_of(name):
    """What the doctest of a function calls, without what it refuses."""
    parsed = doctest.DocTestParser().get_examples(getattr(pe_numpy, name).__doc__)
    return [e for e in parsed if not e.exc_msg and "from pe_numpy import" not in e.source]


def test_the_plain_form_is_what_the_chapters_show(capsys):
    text = plain_copy("sinusoidal")
    show_source(pe_numpy.sinusoidal)
    shown = capsys.readouterr().out.rstrip()
    assert "_run(" not in shown  # the short cut for many positions
    signature, body = shown.split(":\n", 1)
    assert signature in text and body + "\n\n\n" in text
    assert text.startswith('"""sinusoidal: Vaswani et al. 2017, section 3.5, both formulas.\nSizes')
    assert "keep this notice" in text and "with them: python -m pe_numpy copy NAME\n" in text
    between = text.partition(body)[0].partition(") -> np.ndarray:\n")[2]
    assert between.splitlines() == [
        '    """Sines and cosines of each position at D/2 frequencies: PE(pos)."""',
        "    positions = np.asarray(positions)",
    ]


def test_the_plain_form_is_short_and_nothing_in_it_only_checks():
    lines = {}
    for name in PUBLIC:
        lines[name] = len(copy([name], plain=True).splitlines())
        text = plain_copy(name)
        assert "checks." not in text and "pe_numpy import" not in text
        for function in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)):
            does = sum(not isinstance(n, ast.Pass) for n in function.body)
            assert does > (ast.get_docstring(function) is not None), function.name
    assert median(lines.values()) <= 17 and lines["sinusoidal"] <= 18 and lines["rope"] <= 26
    assert len(plain_copy("rope").splitlines()) <= 105 and "Sizes" in text


def test_the_command_copies_plainly(capsys):
    assert main(["copy", "--plain", "wavelengths"]) == 0
    assert capsys.readouterr().out == copy(["wavelengths"], plain=True)


def test_the_tape_takes_plain_functions_along():
    names = copied_plainly("value_and_grad", "softmax", "relu")
    value, grad = names["value_and_grad"](lambda x: names["softmax"](x)[0])(np.array([0.0, 1.0]))
    share = 1 / (1 + np.e)
    assert abs(value - share) < 1e-15
    np.testing.assert_allclose(grad, [share * (1 - share), -share * (1 - share)], atol=1e-15)


BEFORE = '''
def f(x, y, mask=None, n=2, which="a"):
    """One sentence.

    More of it.
    """
    name = "f"
    x, y, batch = checks.queries_and_keys(name, x, y)
    checks.fits(name, "x", x.shape, batch, "batch")
    # a comment on the check
    n = checks.integer(name, "n", n)
    if mask is not None:
        mask = checks.mask_array(name, mask, x.shape)
    if which == "a":
        x = _half("f", x) - checks.number(name, "n", n)
    elif which != "b":
        raise ValueError("f: which must be a or b")
    wrong = x[x < 0]
    if wrong.size:
        most = wrong.min()
        raise ValueError(f"f: {most}")
    for part in (x, y):
        _check(part, name)
    y = 2 * _same(name, x + 1, which)
    return checks.real_array(name, "x", x).sum() * add_to(y, x - y)  # stays


def _half(function, x):
    x = checks.exact_shape(function, "x", x, (2,), "(2,)")
    return x


def _same(function, x, which):
    if x.size == 0:
        raise ValueError(f"{function}: {which}")
    return x


def _check(x, function):
    """Refuse it."""
    if x.ndim < 2:
        raise ValueError(function)
'''

AFTER = '''
def f(x, y, mask=None, n=2, which="a"):
    """One sentence."""
    x, y = 1.0 * np.asarray(x), 1.0 * np.asarray(y)
    if mask is not None:
        mask = np.asarray(mask)
    if which == "a":
        x = _half(x) - n
    y = 2 * (x + 1)
    return (1.0 * np.asarray(x)).sum() * (y + (x - y))  # stays


def _half(x):
    return 1.0 * np.asarray(x)


def _same(function, x, which):
    return x


def _check(x, function):
    """Refuse it."""
'''


def test_each_kind_of_check_leaves_what_it_gives_back():
    assert plain(BEFORE) == AFTER


def test_arrays_of_the_tape_stay_what_they_are():
    assert "x = 1.0 * checks.as_array(x)" in plain(
        "def f(x):\n    x = checks.real_array('f', 'x', x)\n    return x + x\n", tape=True
    )


def test_distances_become_a_window_only_where_something_reads_one():
    alone, read = (plain_copy(name) for name in ("relative_distance", "shaw_scores"))
    both = plain_copy("relative_distance", "shaw_scores")
    assert "_consecutive" not in alone and "is_window(" in read and "_consecutive(q)" in both
    q, k = np.arange(3, 8), np.arange(6)
    names = copied_plainly("relative_distance")
    want = pe_numpy.relative_distance(q, k)
    np.testing.assert_array_equal(names["relative_distance"](q, k), want)
    names = copied_plainly("relative_distance", "shaw_scores")
    assert names["relative_distance"](q, k).strides == want.strides


def test_an_inner_function_that_is_called_in_other_ways_keeps_its_parameters():
    source = (
        "def f(x, *more):\n    return _g('f', x) + _g(*more)\n\n\n"
        "def _g(function, x):\n    checks.integer(function, 'x', x)\n    return x + 1\n"
    )
    assert "def _g(function, x)" in plain(source) and "_g('f', x) + _g(*more)" in plain(source)


def test_what_a_helper_hands_on_to_itself_alone_is_not_read():
    source = (
        "def f(tree):\n    names = [n for n in tree]\n    return _walk(names, tree)\n\n\n"
        "def _walk(names, tree):\n"
        "    if not tree:\n        raise ValueError(names)\n"
        "    return [_walk(names, part) for part in tree]\n"
    )
    assert plain(source) == (
        "def f(tree):\n    return _walk(tree)\n\n\n"
        "def _walk(tree):\n    return [_walk(part) for part in tree]\n"
    )
    used = source.replace("for part", "or names for part")
    assert "_walk(names, part) or names" in plain(used)


# ---- every public function, the slowest tests last ----------------------------------------------


@pytest.mark.parametrize("name", PUBLIC)
def test_the_plain_form_passes_the_doctest_of_the_full_one(name):
    examples = examples_of(name)
    words = re.findall(r"\w+", " ".join(e.source for e in examples))
    names = {**copied_plainly(name, *(w for w in words if w in PUBLIC))}
    module = sys.modules[getattr(pe_numpy, name).__module__]
    shared = {n: x for n, x in vars(module).items() if not hasattr(x, "__wrapped__")}
    test = doctest.DocTest(examples, {**shared, **names}, name, None, 0, None)
    out = StringIO()
    result = doctest.DocTestRunner().run(test, out=out.write)
    assert result.attempted and not result.failed, out.getvalue()


def as_lists(value):
    kinds = (np.float64, np.int64, np.bool_)
    return value.tolist() if isinstance(value, np.ndarray) and value.dtype in kinds else value


@pytest.mark.parametrize("name", sorted({*EXERCISES} & {*PUBLIC}))
def test_the_plain_form_gives_the_same_bits(name):
    cases, function = EXERCISES[name].all_cases(), copied_plainly(name)[name]
    lists = [
        Case(tuple(map(as_lists, c.args)), {k: as_lists(v) for k, v in c.options.items()})
        for c in cases
    ]
    for given in (cases, lists):
        pairs = zip(run(getattr(pe_numpy, name), given), run(function, given), strict=True)
        for want, got in pairs:
            if want.error:  # bad input; and some want arrays
                continue
            assert not got.error
            assert want.changed == got.changed
            for a, b in zip(want.results, got.results, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a, b)
