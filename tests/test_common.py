"""Mistakes that no exercise has to list: they follow from its signature, cases and results."""

import time

import numpy as np
import pytest

import pe_numpy
from pe_numpy.homework.cases import Exercise, Mistake, case, run
from pe_numpy.homework.check import judge


def code(positions, d=2, base=3.0, layout="pairs"):
    angles = np.asarray(positions)[..., None] * base ** -np.arange(d)
    return angles if layout == "pairs" else angles[..., ::-1]


def cases(rng):
    yield case(np.array([0.0, 1.0]))
    for n in range(8):
        layout = ("pairs", "turned")[n % 2]
        yield case(rng.uniform(1, 9, (2, n + 1)[n % 2 :]), n % 3 + 1, float(n + 2), layout)


TOY = Exercise(
    "code",
    code,
    cases,
    (
        Mistake(
            "doubled",
            "Once.",
            3,
            lambda p, d=2, base=3.0, layout="pairs": 2 * code(p, d, base, layout),
        ),
    ),
    chapter=7,
)


def verdict(function, exercise=TOY):
    return judge(exercise, run(function, exercise.all_cases()))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda p, d=2, base=3.0, layout="pairs": code(p, d, layout=layout), "base ignored"),
        (lambda p, d=2, base=3.0, layout="pairs": code(p, d), "base and layout ignored"),
        (
            lambda p, d=2, base=3.0, layout="pairs": code(p, d, base, "turned"),
            "always layout='turned'",
        ),
        (
            lambda p, d=2, base=3.0, layout="pairs": code(
                np.broadcast_to(np.arange(p.shape[-1]), p.shape), d, base, layout
            ),
            "positions counted from 0 whatever was given",
        ),
        (
            lambda p, d=2, base=3.0, layout="pairs": code(p + 1, d, base, layout),
            "positions counted from 1",
        ),
        (
            lambda p, d=2, base=3.0, layout="pairs": code(
                p if p.ndim == 1 else p[:1].repeat(len(p), 0), d, base, layout
            ),
            "the batch axes of positions lost",
        ),
        (
            lambda p, d=2, base=3.0, layout="pairs": 2 * code(p, d, 3.0, layout),
            "doubled; and base ignored",
        ),
        (lambda p, d=2, base=3.0, layout="pairs": -code(p, d, base, layout), "the opposite sign"),
        (
            lambda p, d=2, base=3.0, layout="pairs": code(np.floor(p), d, base, layout),
            "positions cut to whole numbers",
        ),
        (
            lambda p, d=2, base=3.0, layout="pairs": code(
                p, d, base, "pairs" if layout == "turned" else "turned"
            ),
            "layout='pairs' and layout='turned' exchanged",
        ),
        (
            lambda p, d=2, base=3.0, layout="pairs": np.swapaxes(code(p, d, base, layout), -1, -2),
            "axes in another order",
        ),
        (
            lambda p, d=2, base=3.0, layout="pairs": code(p, d, base, layout).astype(np.float32),
            "computed in float32",
        ),
        (
            lambda p, d=2, base=3.0, layout="pairs": (
                code(p, d, base, layout).astype(np.float32).astype(float)
            ),
            "computed in float32",
        ),
    ],
)
def test_a_mistake_is_named_without_a_list(function, name):
    assert verdict(function).mistake == name


def test_what_is_no_such_mistake_gets_no_name():
    for function in (
        lambda p, d=2, base=3.0, layout="pairs": np.round(1.5 * code(p, d, base, layout)),
        lambda p, d=2, base=3.0, layout="pairs": (
            code(p, d, base, layout).astype(np.float32) * np.float32(1.5)
        ),
        lambda p, d=2, base=3.0, layout="pairs": (
            code(p, d, 3.0, layout) if base < 5 else 0.9 * code(p, d, base, layout)
        ),
    ):
        assert not verdict(function).passed
        assert verdict(function).mistake == ""


def test_several_results_may_be_exchanged_or_missing():
    def both(x):
        return x, x * x

    two = Exercise("both", both, lambda rng: iter([case(rng.random(3)) for _ in range(4)]))
    assert verdict(lambda x: (x * x, x), two).mistake == "the results in another order"
    assert verdict(lambda x: x * x, two).mistake == "result 2 of 2 alone"
    assert verdict(lambda x: (x, x), two).mistake == ""
    v = verdict(lambda x: (x, np.multiply(x, x, out=x)), two)  # x is x * x, too
    assert v.mistake == ""
    v = verdict(lambda x: (x.copy(), x * x, x.fill(0))[:2], two)
    assert (v.mistake, v.problem) == ("", "it changed its argument x in place")


def test_many_results_are_judged_at_once():
    """Steps in a row give a dozen: all their orders would take for ever."""

    def some(rng):
        yield from (case(rng.standard_normal(3)) for _ in range(3))

    nine = Exercise("nine", lambda x: tuple(x + n for n in range(9)), some)
    began = time.perf_counter()
    assert not verdict(lambda x: tuple(x * n for n in range(9)), nine).passed
    assert time.perf_counter() - began < 2


def test_many_results_are_matched_one_by_one_whatever_their_number():
    many = Exercise(
        "many", lambda x: tuple(x), lambda rng: iter([case(rng.random((n, 2))) for n in (3, 40)])
    )
    assert verdict(lambda x: tuple(x[::-1]), many).mistake == "the results in another order"
    assert verdict(lambda x: (*x[1:], x[1]), many).mistake == ""
    assert verdict(lambda x: (*x[1:], x[0] + 1), many).mistake == ""


def test_the_absolute_value_of_a_distance_has_a_name():
    some = [case(np.arange(n)[:, None] - np.arange(n)) for n in (2, 3, 5)]
    toy = Exercise("bias", lambda distance: 0.5 * distance, lambda rng: iter(some))
    v = judge(toy, run(lambda distance: 0.5 * abs(distance), some), some)
    assert v.mistake == "the absolute value of distance"


def test_two_mistakes_of_the_table_at_once_have_both_names():
    def rope(x, positions, frequencies=None, layout="interleaved"):
        if frequencies is None:  # i/K for 2i/K
            frequencies = 10000.0 ** (-np.arange(x.shape[-1] // 2) / x.shape[-1])
        at = np.asarray(positions) + 1  # counted from 1
        return pe_numpy.rope(x, at, frequencies, layout)

    v = pe_numpy.check("rope", rope)
    assert v.mistake.split("; and ") == ["positions counted from 1", "exponent i/K for 2i/K"]
    v = pe_numpy.check("rope", lambda *a, **o: rope(*a, **o) * 1.5)
    assert v.mistake == ""


def test_the_advice_says_what_the_default_is_for():
    v = verdict(lambda p, d=2, base=3.0, layout="pairs": code(p, d, layout=layout))
    assert v.advice == "Use the base that is given: base=3 is for calls without."
    assert v.chapter == 7
