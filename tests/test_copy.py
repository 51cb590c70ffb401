"""Copying: every public function stands alone, with its doctest, in an empty process."""

import ast
import doctest
import re
import subprocess
import sys
from io import StringIO
from statistics import median
from types import ModuleType

import numpy as np
import pytest

import pe_numpy
import pe_numpy.book
from pe_numpy.__main__ import main
from pe_numpy.homework.check import Case, run
from pe_numpy.homework.copy import copy, place_of
from pe_numpy.homework.registry import EXERCISES

ALONE = """
import sys
sys.path.insert(0, {folder!r})
sys.modules["pe_numpy"] = None  # not to be had
import doctest, copied
result = doctest.testmod(copied)
assert result.attempted, "no doctest"
sys.exit(result.failed)
"""


@pytest.mark.parametrize("name", sorted({*pe_numpy.__all__} - {"check", "load_model"}))
def test_a_copied_function_passes_its_doctest_without_the_package(name, tmp_path):
    (tmp_path / "copied.py").write_text(copy([name]))
    script = ALONE.format(folder=str(tmp_path))
    run = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def copied(*names):
    namespace = {"__name__": "copied"}
    exec(compile(copy(names), "copied", "exec"), namespace)
    return namespace


def test_only_what_is_needed_comes_along():
    text = copy(["alibi_bias", "wavelengths"])
    names = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert {"alibi_bias", "wavelengths", "checks_even"} <= names
    assert not names & {"alibi_slopes", "sinusoidal", "differentiable", "softmax"}
    imported = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Import | ast.ImportFrom)]
    modules = {getattr(n, "module", None) or n.names[0].name for n in imported}
    assert modules <= {"__future__", "collections.abc", "math", "numpy", "numpy.typing", "operator",
                       "typing", "numpy.lib.stride_tricks"}  # fmt: skip
    assert "pe_numpy import" not in text


def test_the_header_cites_paper_equation_book_and_licence():
    head = ast.get_docstring(ast.parse(copy(["rope"])))
    for words in ("Su et al. 2021, equations (14) and (15)", "pe_numpy 0.2.0", "MIT", "Copyright"):
        assert words in head


def test_copied_functions_give_the_same_numbers():
    x = np.random.default_rng(0).standard_normal((3, 5, 8)).astype(np.float32)
    names = copied("rope", "attention", "layer_norm")
    for function, args in (
        ("rope", (x, np.arange(5))),
        ("layer_norm", (x, x[0, 0], x[0, 1])),
    ):
        np.testing.assert_array_equal(names[function](*args), getattr(pe_numpy, function)(*args))
    ours, theirs = pe_numpy.attention(x, x, x), names["attention"](x, x, x)
    np.testing.assert_array_equal(ours[0], theirs[0])


def test_five_functions_share_one_file():
    text = copy(["attention", "rope", "alibi_bias", "t5_bias", "layer_norm", "rope"])
    names = [n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    assert {"attention", "rope", "alibi_bias", "t5_bias", "layer_norm"} <= set(names)
    assert len(names) == len(set(names)) and text.count("\nrope: ") == 1


def test_the_decorator_stays_behind_unless_the_tape_comes_along():
    assert "differentiable" not in copy(["softmax"])
    names = copied("value_and_grad", "softmax")
    value, grad = names["value_and_grad"](lambda x: names["softmax"](x)[0])(np.array([0.0, 1.0]))
    share = 1 / (1 + np.e)
    assert abs(value - share) < 1e-15
    np.testing.assert_allclose(grad, [share * (1 - share), -share * (1 - share)], atol=1e-15)


def test_what_two_modules_call_by_one_name_stays_apart():
    text = copy(["value_and_grad"])
    for name in ("rules_RULES", "primitives_RULES", "autodiff_RULES"):
        assert f"{name}" in text
    assert place_of("rope").module == "pe_numpy.rotary.rope"


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"no 'Rop' in pe_numpy; did you mean .*rope"):
        copy(["Rop"])
    with pytest.raises(ValueError, match="see `python -m pe_numpy list`"):
        copy(["xyzzyplugh"])


@pytest.mark.parametrize("name", ["check", "load_model"])
def test_what_needs_the_package_stays(name):
    with pytest.raises(ValueError, match=f"{name} needs the whole package"):
        copy([name])


# ---- the plain form -----------------------------------------------------------------------------

PUBLIC = sorted({*pe_numpy.__all__} - {"check", "load_model"})


def copied_plainly(*names):
    module = ModuleType("copied_plainly")
    sys.modules[module.__name__] = module  # dataclasses look there
    exec(compile(copy(names, plain=True), "copied_plainly", "exec"), vars(module))
    return vars(module)


def examples_of(name):
    """What the doctest of a function calls, without what it refuses."""
    parsed = doctest.DocTestParser().get_examples(getattr(pe_numpy, name).__doc__)
    return [e for e in parsed if not e.exc_msg and "from pe_numpy import" not in e.source]


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


def test_the_plain_form_is_what_the_chapters_show(capsys):
    text = copy(["sinusoidal"], plain=True)
    pe_numpy.book.show_source(pe_numpy.sinusoidal)
    signature, body = capsys.readouterr().out.rstrip().split(":\n", 1)
    assert signature in text and text.endswith(body + "\n")
    assert text.startswith(
        '"""sinusoidal: Vaswani et al. 2017, section 3.5, both formulas.\n\nFrom pe_numpy 0.2.0'
    )
    assert "keep this notice" in text and "with them: python -m pe_numpy copy sinusoidal\n" in text
    between = text.partition(body)[0].partition(") -> np.ndarray:\n")[2]
    assert between.splitlines() == [
        '    """Sines and cosines of each position at D/2 frequencies: PE(pos)."""',
        "    positions = np.asarray(positions)",
    ]


def test_the_plain_form_has_no_checks():
    for name in PUBLIC:
        text = copy([name], plain=True)
        tree = ast.parse(text)
        assert "checks." not in text and "pe_numpy import" not in text
        for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
            empty = [isinstance(n, ast.Pass) for n in function.body]
            does = len(empty) - sum(empty) - (ast.get_docstring(function) is not None)
            assert does, f"{function.name} has only checked"


def test_the_plain_form_is_short():
    lines = {name: len(copy([name], plain=True).splitlines()) for name in PUBLIC}
    assert median(lines.values()) <= 40 and lines["sinusoidal"] <= 25 and lines["rope"] <= 80
    full = {name: len(copy([name]).splitlines()) for name in PUBLIC}
    assert all(lines[name] < full[name] for name in PUBLIC)


def test_the_command_copies_plainly(capsys):
    assert main(["copy", "--plain", "wavelengths"]) == 0
    assert capsys.readouterr().out == copy(["wavelengths"], plain=True)


def test_the_tape_takes_plain_functions_along():
    names = copied_plainly("value_and_grad", "softmax", "relu")
    value, grad = names["value_and_grad"](lambda x: names["softmax"](x)[0])(np.array([0.0, 1.0]))
    share = 1 / (1 + np.e)
    assert abs(value - share) < 1e-15
    np.testing.assert_allclose(grad, [share * (1 - share), -share * (1 - share)], atol=1e-15)
