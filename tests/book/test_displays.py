"""Plain formulas of docstrings as TeX: nothing is lost, and the converter can draw all of them."""

import importlib
import inspect
import re

import displays
import maths
import pytest

import pe_numpy

MODULES = sorted({getattr(pe_numpy, name).__module__ for name in pe_numpy.__all__})
BLOCK = re.compile(r"::\n\n((?: {4}.*\n|\n(?= {4}))+)")
SHOWN = [m for m in MODULES if m.rpartition(".")[2] not in displays.ELSEWHERE]
BLOCKS = [
    (module.rpartition(".")[2], block)
    for module in SHOWN
    for block in BLOCK.findall((inspect.getdoc(importlib.import_module(module)) or "") + "\n")
]
BACK = {r"\varepsilon ": "eps", r"\mathrel{+}=": "+=", r"\langle ": "<", r"\rangle ": ">"}
BACK |= {r"\le ": "<=", r"\ge ": ">=", r"\sim ": "~", r"\cdot ": ".", r"\_": "_", "_0": "0"}


def bare(text):
    """A plain formula without what TeX writes otherwise: brackets of an index, room, dots."""
    text = re.sub(r"sum over (.+?) of ", r"sum_\1", text)
    text = re.sub(r"integral from (\S+) to (\S+) of ", r"int_\1^\2", text)
    return re.sub(r"[\s(){}]|\.\.+", "", text).replace("_0", "0")


def plain(tex):
    """TeX, read backwards."""
    for sign, old in BACK.items():
        tex = tex.replace(sign, old)
    tex = re.sub(r"\\(text|operatorname|quad|dots)\b|&", "", tex)
    return bare(tex.replace("\\", ""))


@pytest.mark.parametrize("name, block", BLOCKS)
def test_nothing_is_lost_and_all_is_drawn(name, block):
    tex = displays.display(re.fullmatch(BLOCK, f"::\n\n{block}"))
    tex = re.search(r"aligned\} (.*) \\end", tex)[1]
    assert plain(tex.replace(r" \\ ", " ")) == bare(block)
    assert maths.typeset(rf"\begin{{aligned}}{tex}\end{{aligned}}", True).startswith("<math")


def test_most_pages_of_encodings_have_a_formula():
    with_formula = {name for name, _ in BLOCKS}
    encodings = [m for m in SHOWN if re.match(r"pe_numpy\.(absolute|relative|rotary)\.", m)]
    assert {"rope", "shaw", "t5", "sinusoidal", "attention"} <= with_formula
    assert sum(m.rpartition(".")[2] in with_formula for m in encodings) > 0.8 * len(encodings)


@pytest.mark.parametrize(
    "text, tex",
    [
        ("theta_i = 10000^(-2i/d)", r"\theta _{i} = 10000^{-2i/d}"),
        ("<R_m q, k>", r"\langle R_{m} q, k\rangle "),
        ("K^c_j^T", r"{K^{c}_{j}}^{T}"),
        ("b_bucket(j - i) + 1", r"b_{\text{bucket}(j - i)} + 1"),
        ("x if i <= L0, else eps", r"x \text{ if } i \le  L_0, \text{ else } \varepsilon "),
        ("sum over j <= i of sqrt(K)", r"\sum_{j \le  i} \sqrt{K}"),
        ("the delta rule dtau", r"\text{the delta rule } d\tau "),
    ],
)
def test_a_line_as_tex(text, tex):
    assert displays.as_tex(text) == tex


def test_a_function_and_what_is_no_formula_stay():
    lines = ["Of it::", "", "    theta", ""]
    for what, name in (("function", "pe_numpy.rope"), ("module", "pe_numpy.models.weights")):
        kept = [*lines]
        displays.show(None, what, name, None, None, kept)
        assert kept == lines
    displays.show(None, "module", "pe_numpy.rotary.rope", None, None, lines)
    assert lines[0] == "Of it:" and r"\theta" in "".join(lines) and "::" not in "".join(lines[3:])
