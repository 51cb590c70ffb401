"""The checker: what it says of right, wrong and strange functions."""

import copy
import inspect
import math
import sys

import numpy as np
import pytest
from shown_where import text

import pe_numpy
from pe_numpy.homework import common, course
from pe_numpy.homework.cases import (
    LEAST,
    Exercise,
    Mistake,
    Outcome,
    _repeats,
    call,
    case,
    difference,
    in_a_row,
    run,
)
from pe_numpy.homework.check import _side_by_side, judge
from pe_numpy.homework.known import SECTIONS
from pe_numpy.homework.registry import EXERCISES, exercise_of


def double(x, factor=2.0):
    return x * factor


def cases(rng):
    yield case(np.array([1.0]))
    yield case(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]], np.float32))
    yield case(np.array([3.0, -1.0]), factor=4.0)


TOY = Exercise(
    "double",
    double,
    cases,
    (
        Mistake("squared", "Add, do not multiply.", 21, lambda x, factor=2.0: x * x),
        Mistake("factor ignored", "Look at factor.", 22, lambda x, factor=2.0: x * 2),
    ),
    chapter=34,
)


def verdict(function):
    return judge(TOY, run(function, TOY.all_cases()))


def test_the_reference_passes():
    assert str(verdict(double)) == "double: right in all 3 cases"


def test_a_known_mistake_is_named_with_its_chapter_and_a_case():
    v = verdict(lambda x, factor=2.0: x * x)
    assert (v.passed, v.mistake, v.chapter, v.advice) == (
        False,
        "squared",
        21,
        "Add, do not multiply.",
    )
    assert v.call == "double(x=[3.0, -1.0], factor=4.0)"  # one number would show little
    assert (v.expected, v.given) == ("[12.0, -4.0]", "[9.0, 1.0]")
    v = verdict(lambda x, factor=2.0: x * 2)  # right where the factor is 2
    assert (v.mistake, v.call) == ("factor ignored", "double(x=[3.0, -1.0], factor=4.0)")


def test_an_unknown_mistake_is_described():
    v = verdict(lambda x, factor=2.0: -3 * x * factor)
    assert (v.mistake, v.chapter) == ("", 34)
    assert v.problem == "2 of 2 numbers differ, by up to 48"
    one = Exercise("double", double, lambda rng: iter([case(np.array([1.0, 2.0]))]))
    assert judge(one, run(lambda x: -6 * x, one.all_cases())).advice == ""  # it may be chance
    two = Exercise("double", double, lambda rng: iter([case(rng.random(3)) for _ in range(2)]))
    assert "Every number is -3 times" in str(judge(two, run(lambda x: -6 * x, two.all_cases())))
    ones = [case(np.array([1.0])), case(np.array([0.0, 1.0]))]  # one number shows no factor
    for more, told in ((ones, True), ([case(np.array([[0.0], [1.0]]))], False)):
        some = Exercise("double", double, lambda rng, more=more: iter([*two.cases(rng), *more]))
        wrong = run(lambda x: -6 * x + (x == 0) * (x.ndim > 1), some.all_cases())
        assert ("Every number is -3 times" in str(judge(some, wrong))) == told
    almost = judge(two, run(lambda x: 2.00001 * x, two.all_cases()))
    assert almost.advice == almost.guess == almost.mistake == ""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x, factor=2.0: None, "it returned nothing"),
        (lambda x, factor=2.0: np.zeros(10**7), "the result is far too large"),
        (lambda x, factor=2.0: [[x], [x, x]], "must be an array, or a tuple of arrays"),
        (lambda x, factor=2.0: [x, x[:0]], "1 results were expected; got 2"),
        (lambda x, factor=2.0: x + np.inf, "2 of 2 numbers differ\n"),
        (lambda x, factor=2.0: "two", "the result must be an array of numbers; got str"),
        (lambda x, factor=2.0: (x, x), "1 results were expected; got 2"),
        (lambda x, factor=2.0: np.append(x, 1), r"should have the shape (2,); got (3,)"),
        (lambda x, factor=2.0: (x * factor).astype(float), "dtype should be float32; got float64"),
        (
            lambda x, factor=2.0: (x * factor).astype(complex),
            "dtype should be float64; got complex",
        ),
        (lambda x, factor=2.0: x * np.nan, "There are NaNs"),
        (lambda x: 2 * x, "unexpected keyword argument 'factor'"),
    ],
)
def test_a_strange_result_is_told(function, words):
    assert words in str(verdict(function))


def test_a_swapped_axis_is_told():
    one = Exercise("T", lambda x: x, lambda rng: iter([case(rng.standard_normal((3, 3)))]))
    v = judge(one, run(np.transpose, one.all_cases()))
    assert v.mistake == "axes in another order"


def test_a_list_of_results_is_as_good_as_a_tuple_but_no_other_array_is():
    rows = Exercise("f", lambda x: (x, x[:2], 2.0), lambda rng: iter([case(rng.random(3))]))
    even = Exercise("f", lambda x: (x, 2 * x), lambda rng: iter([case(rng.random((2, 3)))]))
    for exercise in (rows, even):
        given = run(lambda x, f=exercise.reference: list(f(x)), exercise.all_cases())
        assert judge(exercise, given).passed
    v = judge(even, run(lambda x: [x, x], even.all_cases()))
    assert v.problem == "6 of 6 numbers differ, by up to 0.913" and not v.passed
    alone = judge(even, run(lambda x: x, even.all_cases()))  # an array with two rows
    assert alone.problem == "2 results were expected; got 1"


def test_a_dtype_that_is_too_wide_or_too_narrow_is_no_wrong_number():
    wide = verdict(lambda x, factor=2.0: (x * factor).astype(float))
    assert (wide.types, wide.right) == (False, [True] * 3) and not wide.passed
    assert wide.problem == "the dtype should be float32; got float64"
    assert wide.advice.startswith("The numbers are right. np.sqrt")
    assert wide.stage == "Right in 2 of 3 cases: all without float32 arrays."
    third = Exercise("third", lambda x: x / 3, lambda rng: TOY.cases(rng))
    some = third.all_cases()[:2]
    narrow = judge(third, run(lambda x: (x / 3).astype(np.float32), some), some)
    assert (narrow.types, narrow.right) == (False, [True] * 2)
    assert narrow.problem == "the dtype should be float64; got float32"
    assert narrow.mistake == "computed in float32"
    both = verdict(lambda x, factor=2.0: (x * 2).astype(float))
    assert (both.types, both.right) == (False, [True, True, False])
    assert both.problem == "2 of 2 numbers differ, by up to 6"
    told = 'And the dtype should be float32; got float64: see chapter 10, "In practice".'
    assert both.stage.endswith(f"without factor. {told}")
    assert verdict(lambda x, factor=2.0: x).types and verdict(double).types
    truth = Exercise("mask", lambda x: x > 0, lambda rng: iter([case(np.array([1, 0]))]))
    assert judge(truth, run(lambda x: 1 * (x > 0), truth.all_cases())).right == [False]


def test_a_slip_of_the_dtype_costs_the_points_of_types_alone():
    points = {"numbers": 2.0, "options": 1.0, "types": 0.5}

    def wide(*args, **options):
        return pe_numpy.rope(*args, **options).astype(float)

    def wrong(x, positions, frequencies=None, layout="interleaved"):
        return wide(x, positions, layout=layout)

    for function, earned in ((pe_numpy.rope, 3.5), (wide, 3), (wrong, 2), (lambda x, *a: x, 0)):
        assert course._earned(pe_numpy.check("rope", function), points, 0) == earned
    assert course._earned(pe_numpy.check("rope", wide), {"all": 3.5}, 0) == 0


def test_a_parameter_that_is_missing_is_told_and_no_trait_is_made_of_it():
    def short(x, positions, frequencies=None):
        return pe_numpy.rope(x, positions, frequencies)

    stage = pe_numpy.check("rope", short).stage
    assert stage == "20 of the 23 cases pass layout=...: add it. Right in 3 of 23 cases."


@pytest.mark.parametrize(
    ("function", "stage"),
    [
        (lambda x, factor=2.0: 7 * x, "Right in none of 3 cases."),
        (lambda x, factor=2.0: 2 * x, "Right in 2 of 3 cases: all without factor."),
        (lambda x, factor=2.0: x * (factor if factor > 2 else 7), "all with factor."),
        (lambda x, factor=2.0: x * factor * (x.ndim < 2), "all without float32 arrays."),
        (lambda x, factor=2.0: x * factor * (x.shape == (1,)), "Right in 1 of 3 cases."),
    ],
)
def test_what_right_cases_have_in_common_is_told(function, stage):
    v = verdict(function)
    assert v.stage.endswith(stage) and f"\n    {v.stage}\n" in str(v)


def test_traits_tell_what_is_plain():
    def f(params, q, k, mask=None, layout="pairs", positions=(0, 1)):
        return q

    grouped = {"W_q": np.ones((4, 4)), "W_k": np.ones((4, 2))}
    plain = {"W_q": np.ones((4, 4)), "W_k": np.ones((4, 4))}
    q, k, nowhere = np.ones((1, 2)), np.ones((3, 2)), np.array([[True], [False]])
    some = [
        case(plain, q, q),
        case({**plain, "b_q": q}, q, k, nowhere),
        case(grouped, q, np.full((1, 2), -np.inf), layout="half", positions=np.array([-0.5, 1])),
        case(plain, 30 * q, q * np.inf, positions=np.zeros(0)),
        in_a_row(f, plain, q.astype("f4"), np.ones((2, 1, 2), "f2")),
    ]
    assert common.traits(Exercise("f", f, lambda rng: iter(some)), some) == [
        [],
        ["mask", "a row of mask that is all False"]
        + [f"{pair} of different lengths" for pair in ("q and k", "q and mask", "k and mask")]
        + ["b_q in params"]
        + [f"{a} and b_q of different widths" for a in ("W_q", "W_k")],
        [
            *("layout='half'", "positions", "a row of k that is all -inf", "negative positions"),
            *("positions between whole numbers", "W_q and W_k of different widths"),
        ],
        ["positions", "large numbers in q", "infinity in k", "an empty positions"],
        ["several calls in a row", "float32 arrays", "float16 arrays", "batch axes of k"],
    ]


def test_the_plainest_case_is_printed_and_can_be_made_again():
    long = Exercise("long", double, lambda rng: iter([case(rng.random(n)) for n in (90, 60, 30)]))
    v = judge(long, run(lambda x, factor=2.0: x, long.all_cases(3)), seed=3)
    assert v.call.endswith("of shape (30,), float64)")
    assert v.again.endswith('; EXERCISES["long"].all_cases(3)[2]') and "\n    again " in str(v)
    v = pe_numpy.check("merge_heads", lambda x: x, seed=5)
    if v.again:
        first, _, call = v.again.partition("; ")
        names = {}
        exec(first, names)
        assert isinstance(eval(call, names).args[0], np.ndarray)


def test_a_guess_may_rest_on_the_printed_case():
    small = [case(np.array([1.0, 3.0, n])) for n in range(4, 10)]
    toy = Exercise("double", double, lambda rng: iter(small), TOY.others, 34)
    few = lambda x, factor=2.0: x * x if x[-1] < 6 else -x  # noqa: E731
    v = judge(toy, run(few, small))
    assert (v.mistake, v.guess, v.here) == ("", "squared", True)
    assert '    On this case it looks like "squared", and something else.\n' in str(v)
    once = lambda x, factor=2.0: x * x if x[-1] < 5 else -x  # noqa: E731
    assert judge(toy, run(once, small)).guess == ""  # one case alone may be chance
    one = [case(np.array([n])) for n in (3.0, 4.0, 5.0, 6.0, 7.0)]
    assert judge(toy, run(lambda x, factor=2.0: x * x if x < 5 else -x, one), one).guess == ""


def test_a_sum_for_a_mean_and_lost_digits_are_told_in_all_exercises():
    def mean(x, scale=1.0):
        return scale * x.mean(axis=-2)

    some = [case(np.random.default_rng(n).random((n, 3))) for n in (3, 5, 2)]
    toy = Exercise("mean", mean, lambda rng: iter(some))
    v = judge(toy, run(lambda x: x.sum(axis=-2), some), some)
    assert v.advice.startswith("Each number is the right one times the length of axis -2 of x")
    for other in (lambda x: x.sum(axis=-2) + 1, lambda x: mean(x) * (1 + len(x))):
        assert judge(toy, run(other, some), some).advice == ""
    ones = [case(np.random.default_rng(n).random((3, 1))) for n in range(4)]
    assert judge(toy, run(lambda x: x.sum(axis=-2), ones), ones).advice == ""  # it may be 3
    v = pe_numpy.check("kerple_log_bias", lambda *a: pe_numpy.kerple_log_bias(*a) / math.log(10))
    assert v.advice == "Every number is 0.4343 times the expected one."  # and a float16 is coarse
    v = judge(toy, run(lambda x: mean(x) * (1 + 1e-7), some), some)
    assert v.advice.startswith("All but the last digits are right")
    assert judge(toy, run(lambda x: mean(x) * (1 + 1e-5), some), some).advice == ""


def test_nans_are_told_with_their_cause_beside_a_case_that_has_one():
    def told(x, mask=None):
        f = lambda x, mask=None: np.zeros(x.shape)  # noqa: E731
        exercise = Exercise("f", f, lambda rng: iter([case(np.array([1.0, 2.0])), case(x, mask)]))
        return judge(
            exercise, run(lambda x, mask=None: x * np.nan, [case(x, mask)]), [case(x, mask)]
        )

    hidden = told(np.ones(2), np.array([[False, False]])).advice
    assert "where all is hidden" in hidden == told(np.full((1, 2), -np.inf)).advice
    large = told(np.array([900.0, 1.0])).advice
    assert large.startswith("There are NaNs: exp of a large number")
    assert told(np.ones(2)).advice == "There are NaNs: 0/0, or infinity minus infinity?"
    plain, wide = case(np.array([1.0, 2.0])), case(np.array([[1.0, 2.0]]))
    toy = Exercise("f", lambda x: x, lambda rng: iter([plain, wide]))
    v = judge(toy, run(lambda x: 2 * x if x.ndim < 2 else x * np.nan, [plain, wide]))
    assert "NaN" not in str(v) and v.call == "f(x=[1.0, 2.0])"


def test_the_section_that_shows_the_function_is_named():
    assert text() == SECTIONS.read_text(encoding="utf-8"), "python tests/shown_where.py"
    assert len(text().split(" = ")) > 140
    v = pe_numpy.check("alibi_bias", lambda *a, **o: pe_numpy.alibi_bias(*a, **o) ** 3)
    assert '\n    See chapter 35, "The ALiBi formula".\n' in str(v)
    assert "\n    See chapter 34.\n" in str(verdict(lambda x, factor=2.0: x))
    v.chapter = 36  # that of a mistake, which the function's chapter does not show
    assert "\n    See chapter 36.\n" in str(v)


def test_an_array_for_a_length_is_told():
    def table(positions, d):
        return np.ones((len(positions), d))

    at = [case(np.array([2]), 2), case(np.array([2, 5]), 2), case(np.array([2.0, 5.0]), 2)]
    toy = Exercise("table", table, lambda rng: iter(at))
    for wrong in (
        lambda n, d: np.arange(n)[:, None] + np.ones(d),
        lambda n, d: np.array([[1] * d for _ in range(n)]),
        lambda n, d: np.ones((n, d)),
    ):
        for one in at[1:]:
            v = judge(toy, run(wrong, [one]), [one])
            assert v.advice == "positions is an array; you used it as a length."
    v = judge(toy, run(lambda n, d: math.sin(n), at[1:]), at[1:])
    assert v.advice.startswith("positions is an array; you used it as one number")
    assert judge(toy, run(lambda n, d: n @ d, at), at).advice == ""
    v = pe_numpy.check(
        "sinusoidal", lambda length, d, *a, **o: np.arange(length)[:, None] + np.ones(d)
    )
    assert v.problem.startswith("the result should have the shape")  # of one position
    assert v.advice == "positions is an array; you used it as a length."


def test_a_change_in_place_is_told_and_does_not_reach_the_next_case():
    def in_place(x, factor=2.0):
        x *= factor
        return x

    v = verdict(in_place)
    assert v.problem == "it changed its argument x in place"
    kept = case({"W": np.ones(2)})

    def deep(params):
        params["W"][0] = 7
        return 0.0

    assert call(deep, kept).changed == ["params"] and kept.args[0]["W"].tolist() == [1, 1]
    assert call(lambda params: params.clear() or 0.0, kept).changed == ["params"]


def test_an_error_is_told_with_its_line():
    def broken(x, factor=2.0):
        return x + missing  # noqa: F821

    assert "NameError: name 'missing' is not defined (line" in verdict(broken).problem
    assert "return x + missing" in verdict(broken).problem

    def stub(x, factor=2.0):
        raise NotImplementedError

    assert verdict(stub).problem == "it is not written yet"


def test_the_line_is_that_of_the_function_and_not_of_numpy():
    def broken(x, factor=2.0):
        return np.reshape(x, (7, 7))

    assert "line" in (problem := verdict(broken).problem)
    assert "return np.reshape(x, (7, 7))" in problem


def test_an_error_is_told_in_letters_that_can_be_printed():
    def broken(x, factor=2.0):
        raise ValueError("a\x00b\udc80c")

    assert "a?b?c" in verdict(broken).problem and verdict(broken).problem.isprintable()


def test_a_stub_that_another_function_calls_is_named():
    def softmax(x):
        raise NotImplementedError

    def written(x, factor=2.0):
        return softmax(x) * factor

    assert verdict(written).problem == "softmax, which it calls, is not written yet"


def test_the_end_of_the_process_ends_one_call_alone():
    def leaves(x, factor=2.0):
        return sys.exit() if factor > 2 else 2 * x

    assert "SystemExit: no message (line" in verdict(leaves).problem


def test_one_case_alone_makes_no_guess():
    v = verdict(lambda x, factor=2.0: x * x if x.size == 1 else x * factor)
    assert (v.passed, v.mistake, v.guess) == (False, "", "")


def test_what_shows_in_no_case_is_not_the_mistake():
    hidden = Exercise("double", double, cases, (Mistake("hidden", "Nothing.", 21, double),))
    given = run(lambda x, factor=2.0: (x * factor).astype(float), hidden.all_cases())
    v = judge(hidden, given)
    assert "dtype should be float32" in v.problem and v.mistake == ""


def test_two_mistakes_at_once_leave_a_guess_if_one_explains_two_cases_and_most():
    v = verdict(lambda x, factor=2.0: x * x * x)  # in the first case, x is 1
    assert v.mistake == v.guess == v.advice == "" and v.chapter == 34
    v = verdict(lambda x, factor=2.0: x * x if factor == 2 else -x)
    assert (v.mistake, v.guess, v.advice) == ("", "squared", "Add, do not multiply.")
    assert '\n    Perhaps "squared", and something else.\n' in str(v)


def test_calls_in_a_row_get_what_the_one_before_gave_back():
    def add(x, state=None):
        total = x if state is None else state["sum"] + x
        return total, {"sum": total}

    def twice(function, x, more):
        first, state = function(x)
        return first, function(more, state)[0]

    def forgetful(x, state=None):
        return add(x)

    def changes(x, state=None):
        return x.copy() if state is None else state + x, np.multiply(x, 2, out=x)

    one = in_a_row(twice, np.array([1.0]), np.array([5.0]))
    toy = Exercise("add", add, lambda rng: iter([one]), chapter=60)
    assert judge(toy, run(add, [one])).passed
    assert [r.tolist() for r in call(add, one).results] == [[1.0], [6.0]]
    v = judge(toy, run(forgetful, [one]))
    assert not v.passed and v.call == "add(x=[1.0], state=[5.0]) in a row"
    assert call(changes, one).changed == ["x", "state"] and one.args[0].tolist() == [1.0]


def test_a_change_of_what_stands_in_a_tuple_is_told():
    def in_place(grads):
        grads[1]["W"][0] = 7
        return 0.0

    kept = case(({"W": np.ones(2)}, {"W": np.zeros(2)}))
    assert call(in_place, kept).changed == ["grads"]
    toy = Exercise("f", in_place, lambda rng: iter([kept]))
    v = judge(toy, [Outcome([np.array(1.0)])])
    assert v.call == "f(grads=({'W': [1.0, 1.0]}, {'W': [0.0, 0.0]}))"


def test_results_show_as_many_digits_as_it_takes_to_see_a_difference():
    v = verdict(lambda x, factor=2.0: x * factor + 1e-6)
    assert (v.expected, v.given) == ("[12.0, -4.0]", "[12.000001, -3.999999]")
    small = Exercise("small", lambda x: x / 3e8, lambda rng: iter([case(np.array([1.0, 2.0]))]))
    v = judge(small, run(lambda x: x / 3e9, small.all_cases()))
    assert (v.expected, v.given) == ("[3.333e-09, 6.667e-09]", "[3.333e-10, 6.667e-10]")


def test_large_results_show_the_first_number_that_differs():
    want = Outcome([np.arange(30.0)])
    got = Outcome([np.where(want.results[0] < 27, 1 + 1e-13, -1) * want.results[0]])
    shown = [text.partition(" of shape")[0] for text in _side_by_side(want, got)]
    assert shown == ["[..., 27.0, 28.0, 29.0, ...]", "[..., -27.0, -28.0, -29.0, ...]"]


def test_a_truth_is_no_number():
    one = Exercise("mask", lambda x: x > 0, lambda rng: iter([case(np.array([1, 0]))]))
    v = judge(one, run(lambda x: (x > 0).astype(int), one.all_cases()))
    assert v.problem == "the dtype should be bool; got int64"


def test_infinities_and_nans_are_compared():
    one = Exercise("f", lambda x: x, lambda rng: iter([case(np.array([-np.inf, np.nan, 1.0]))]))
    assert judge(one, run(lambda x: x.copy(), one.all_cases())).passed
    for wrong in ([np.inf, np.nan, 1.0], [-np.inf, 0.0, 1.0], [-1e9, np.nan, 1.0]):
        assert not judge(one, [Outcome([np.array(wrong)])]).passed


def test_arrays_of_another_kind_are_read_and_made():
    class Other:
        def __init__(self, x):
            self.x = x

        def __array__(self, dtype=None, copy=None):
            return self.x

    outcomes = run(lambda x, factor=2.0: Other(x.x * factor), TOY.all_cases(), to=Other)
    assert judge(TOY, outcomes).passed

    class Hidden(Other):
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("call detach first")

    outcomes = run(lambda x, factor=2.0: x.x * factor, TOY.all_cases(), to=Hidden)
    assert judge(TOY, outcomes).passed
    assert "call detach first" in call(lambda x: x, TOY.all_cases()[0], to=Hidden).error


def test_the_public_function_finds_the_exercise():
    assert pe_numpy.check("rope", pe_numpy.rope).passed
    with pytest.raises(ValueError, match=r"check: there is no exercise 'ropes'; did you mean rope"):
        pe_numpy.check("ropes", pe_numpy.rope)


# ---- every exercise of the book -----------------------------------------------------------------

MISTAKES = [(e.name, m.name) for e in EXERCISES.values() for m in e.mistakes]


@pytest.mark.parametrize("name", EXERCISES)
def test_the_reference_passes_its_own_exercise(name):
    exercise = EXERCISES[name]
    outcomes = run(exercise.reference, exercise.all_cases())
    assert not any(outcome.error or outcome.nothing for outcome in outcomes)
    assert judge(exercise, outcomes).passed
    assert len(exercise.mistakes) >= 2 and exercise.chapter


# Parameters whose specification in the exercise leaves them out, or that several calls carry.
LEFT_OUT = {
    "attention_blockwise": {"mask"},
    "gated_linear_attention": {"chunk"},
    "delta_rule": {"chunk"},
    "multi_head_attention": {
        *("encoding", "places", "q_positions", "k_positions", "remember", "real"),
    },
    "cached_attention": {"cache", "frequencies"},
}


@pytest.mark.parametrize("name", EXERCISES)
def test_cases_are_many_and_drawn_and_leave_no_default_alone(name):
    exercise = EXERCISES[name]
    some, others = exercise.all_cases(), exercise.all_cases(7)
    assert len(some) >= LEAST and len(others) >= LEAST
    assert not any(_repeats(a, b) for n, a in enumerate(some) for b in some[:n])
    assert sum(not any(_repeats(a, b) for b in some) for a in others) >= len(others) / 2
    called = [common.named(exercise, one) for one in some]
    for parameter in inspect.signature(exercise.reference).parameters.values():
        if parameter.default is parameter.empty or parameter.name in LEFT_OUT.get(name, ()):
            continue
        values = [given[parameter.name] for given in called if parameter.name in given]
        assert sum(not common.at_default(v, parameter.default) for v in values) >= 2, parameter.name


@pytest.mark.parametrize(
    ("dtype", "size"), [("f2", 2e-2), ("f4", 2e-5), ("c8", 2e-5), ("f8", 1e-9), ("c16", 1e-9)]
)
def test_what_rounding_may_change_goes_by_the_dtype(dtype, size):
    want = np.array([100, 1], dtype)  # the largest number counts
    near, far = (Outcome([want + 100 * size * share]) for share in (0.9, 1.1))
    assert difference(Outcome([want]), near) == ""
    assert difference(Outcome([want]), far).startswith("2 of 2 numbers differ")


def test_the_same_seed_gives_the_same_cases():
    a, b, other = (exercise_of("rope").all_cases(seed) for seed in (5, 5, 6))
    assert all(map(_repeats, a, b)) and not all(map(_repeats, a, other))


def test_a_case_of_a_round_before_is_left_out():
    def of_one(rng):
        yield case(np.array([1.0]))
        yield case(rng.random(2))

    one = Exercise("double", double, of_one)
    assert [len(c.args[0]) for c in one.all_cases()] == [1] + [2] * (LEAST - 1)
    assert len(TOY.all_cases()) == 3  # there are no others


@pytest.mark.parametrize(("name", "mistake"), MISTAKES, ids=lambda words: words.replace(" ", "-"))
def test_each_known_mistake_is_recognised_by_name(name, mistake):
    exercise = exercise_of(name)
    wrong = next(m for m in exercise.mistakes if m.name == mistake)
    outcomes = run(wrong.function, exercise.all_cases())
    v = judge(exercise, outcomes)
    assert (v.passed, v.mistake, v.advice, v.chapter) == (
        False,
        mistake,
        wrong.advice,
        wrong.chapter,
    )


@pytest.mark.parametrize("name", EXERCISES)
def test_promotion_and_changes_in_place_are_recognised(name):
    exercise = EXERCISES[name]
    one = exercise.all_cases()

    def promoted(*args, **options):
        return widened(exercise.reference(*args, **options))

    def widened(result):
        if isinstance(result, tuple):
            return tuple(map(widened, result))
        if isinstance(result, dict):
            return {key: widened(part) for key, part in result.items()}
        if isinstance(result, int | None):
            return result
        result = np.asarray(result)
        return result.astype(np.float64) if result.dtype == np.float32 else result

    def in_place(*args, **options):
        result = copy.deepcopy(exercise.reference(*args, **options))  # it may be a view
        for x in args:
            if isinstance(x, np.ndarray) and x.size and x.dtype.kind in "fiuc":
                x += 1
                break
        return result

    if any(r.dtype == np.float32 for o in run(exercise.reference, one) for r in o.results):
        assert "dtype should be float32" in judge(exercise, run(promoted, one)).problem
    if any(isinstance(x, np.ndarray) and x.dtype != bool for x in one[0].args):
        assert "in place" in judge(exercise, run(in_place, one)).problem


def test_a_function_of_another_library_gets_its_own_arrays():
    class Own:
        def __init__(self, array):
            self.array = array

        def __array__(self, dtype=None, copy=None):
            return self.array

    def merge_heads(x):
        *batch, H, L, K = x.array.shape  # NumPy's own has no .array
        return np.swapaxes(x.array, -2, -3).reshape(*batch, L, H * K)

    assert pe_numpy.check("merge_heads", merge_heads, to=Own).passed
