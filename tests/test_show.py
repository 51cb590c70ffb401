"""What chapters show of the code: the equation, without the checks of input, and it still runs."""

import sys

import numpy as np
import pytest

import pe_numpy
from pe_numpy.book.show import show_source

SHOWN = {
    "attend": ([[0.5, 2.0]], np.eye(2), [[True, False]]),
    "rope_matrix": (3, np.array([1.0, 0.1])),
    "padding_mask": (np.array([1, 3]), 4, "left"),
    "merge_heads": (np.arange(24.0).reshape(2, 3, 4),),
    "alibi_bias": (np.array([0.5, 0.25]), np.arange(-2, 3)[:, None]),
    "ntk_scaling": (8, 4.0),
}


def shown(name, capsys):
    show_source(getattr(pe_numpy, name))
    return capsys.readouterr().out


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_gives_the_same_without_its_checks(name, capsys):
    code, function = shown(name, capsys), getattr(pe_numpy, name)
    assert "raise" not in code and "checks." not in code and '"""' not in code
    names = dict(vars(sys.modules[function.__module__]))
    exec(code, names)
    got, expected = names[name](*SHOWN[name]), function(*SHOWN[name])
    for a, b in zip(np.atleast_1d(got), np.atleast_1d(expected), strict=True):
        assert np.array_equal(a, b)


def test_a_class_is_shown_without_the_checks_of_its_fields(capsys):
    code = shown("Sizes", capsys)
    assert code.startswith("@dataclass(frozen=True)\nclass Sizes:\n    vocabulary: int\n")
    assert "__post_init__" not in code and code.endswith("    sink: bool = False\n")
    assert '"""' in shown("Model", capsys)  # of its methods
    assert "__post_init__" not in shown("Model", capsys)


def test_what_computes_stays(capsys):
    assert "checks.working" in shown("silu", capsys)  # its result is used
    assert "r = checks.real_array" in shown("complex_order", capsys)  # a new name
    assert "raise" in shown("load", capsys)  # within a step of the work
