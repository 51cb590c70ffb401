"""Copying: every public function stands alone, with its doctest, where there is no package."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pe_numpy
from pe_numpy import check
from pe_numpy.copy.copy import copy, place_of, solution_of
from pe_numpy.homework.registry import EXERCISES

ALONE = """
import contextlib, doctest, importlib, io, json, sys, traceback
sys.path.insert(0, sys.argv[1])
sys.modules["pe_numpy"] = None  # not to be had
said = {}
for name in sys.argv[2:]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            result = doctest.testmod(importlib.import_module("copied_" + name))
            print("" if result.attempted else "no doctest", end="")
        except Exception:
            traceback.print_exc(file=out)
    said[name] = out.getvalue()
print(json.dumps(said))
"""
ALL = sorted({*pe_numpy.__all__} - {"check", "load_model"})
SOLVED = [name for name in ALL if solution_of(name)]


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


def test_a_helper_keeps_one_sentence_and_a_constant_the_comment_above_it():
    text = copy(["attention"])
    assert "with at least one axis for each letter" in text
    assert "Integers and booleans become float64; a floating" not in text
    assert "\n# What transformers fills in where" in copy(["rope_from_config"])


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"no 'Rop' in pe_numpy; did you mean .*rope"):
        copy(["Rop"])
    with pytest.raises(ValueError, match="see `python -m pe_numpy list`"):
        copy(["xyzzyplugh"])


@pytest.mark.parametrize("name", ["check", "load_model"])
def test_what_needs_the_package_stays(name):
    with pytest.raises(ValueError, match=f"{name} needs the whole package"):
        copy([name])


# ---- exercises, plainly --------------------------------------------------------------------------


def code(text):
    """The lines of a file behind its docstring that are not blank."""
    return [line for line in text.split('"""\n', 1)[1].splitlines() if line]


def test_an_exercise_is_copied_as_its_solution():
    text = copy(["rope"], plain=True)
    assert text.startswith('"""rope: Su et al. 2021, equations (14) and (15)')
    assert "with them: python -m pe_numpy copy rope\nLicence: MIT" in text
    lines = code(text)
    assert lines[:2] == ["import numpy as np", "def rope_frequencies(d, base=10000.0):"]
    assert len(lines) == 16 and len(code(copy(["multi_head_attention"], plain=True))) == 19
    assert sum(len(code(copy([name], plain=True))) for name in SOLVED) < 1200
    beside = copy(["rope", "Sizes"], plain=True)  # which is no exercise
    assert "def rope(\n" in beside and "class Sizes" in beside


@pytest.mark.parametrize("name", SOLVED)
def test_a_solution_alone_agrees_with_the_package_on_the_cases_of_its_exercise(name):
    text, alone = copy([name], plain=True), {}
    imports = {line.split()[1] for line in code(text) if line.startswith(("import ", "from "))}
    assert imports <= {"numpy", "math", "functools"}
    exec(compile(text, "alone", "exec"), alone)
    verdict = check(name, alone[name])
    assert verdict.passed, str(verdict)


def test_every_exercise_that_the_package_has_is_solved():
    assert {*SOLVED} == {*EXERCISES} & {*ALL}


def test_solutions_share_what_is_public_and_keep_apart_what_is_not():
    text = copy(["attend", "softmax", "mla_scores", "xpos"], plain=True)
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert len({*names}) == len(names) == 7 and "largest_and_total" not in names
    assert {"softmax", "fewer_keys_turn", "rope_relatives_turn"} < {*names}
    exec(compile(text, "together", "exec"), together := {})
    for name in ("attend", "softmax", "mla_scores", "xpos"):
        assert check(name, together[name]).passed


# ---- every public function ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What the doctests of all copies say, each a file of its own, in one process."""
    folder = tmp_path_factory.mktemp("copies")
    for name in ALL:
        (folder / f"copied_{name}.py").write_text(copy([name]))
    command = [sys.executable, "-I", "-W", "error", "-c", ALONE, str(folder), *ALL]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("name", ALL)
def test_a_copied_function_passes_its_doctest_without_the_package(name, said):
    assert said[name] == ""


@pytest.mark.parametrize("page", ["original", "decoder"])
def test_a_page_is_copied_whole_and_runs_alone(page):
    text = copy([page])
    space = {}
    exec(compile(text, page, "exec"), space)
    assert {"softmax", "attention", "decode"} <= space.keys()
    own = (Path(pe_numpy.__file__).parent / "transformer" / f"{page}.py").read_text()
    assert text.partition('"""\n\nimport')[2] == own.partition('"""\n\nimport')[2]
    assert "Licence: MIT" in text and copy([page], plain=True) == text
    with pytest.raises(ValueError, match="each is copied alone; got rope"):
        copy(["rope", page])
