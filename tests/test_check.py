"""The checker: what it says of right, wrong and strange functions."""

import copy
import inspect
import sys

import numpy as np
import pytest

import pe_numpy
from pe_numpy.homework import common
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


def test_a_known_mistake_is_named_with_its_chapter_and_the_first_case():
    v = verdict(lambda x, factor=2.0: x * x)
    assert (v.passed, v.mistake, v.chapter, v.advice) == (
        False,
        "squared",
        21,
        "Add, do not multiply.",
    )
    assert (v.call, v.expected, v.given) == ("double(x=[1.0])", "[2.0]", "[1.0]")
    v = verdict(lambda x, factor=2.0: x * 2)  # right where the factor is 2
    assert (v.mistake, v.call) == ("factor ignored", "double(x=[3.0, -1.0], factor=4.0)")


def test_an_unknown_mistake_is_described():
    v = verdict(lambda x, factor=2.0: -3 * x * factor)
    assert (v.mistake, v.chapter) == ("", 34)
    assert v.problem == "1 of 1 numbers differ, by up to 8"
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
        (lambda x, factor=2.0: [x, x[:0]], "must be an array, or a tuple of arrays"),
        (lambda x, factor=2.0: x + np.inf, "1 of 1 numbers differ\n"),
        (lambda x, factor=2.0: "two", "the result must be an array of numbers; got str"),
        (lambda x, factor=2.0: (x, x), "1 results were expected; got 2"),
        (lambda x, factor=2.0: np.append(x, 1), r"should have the shape (1,); got (2,)"),
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


def test_an_explanation_is_asked_for_once_and_only_where_numbers_alone_are_wrong():
    def told(function):
        asked = []
        judge(TOY, run(function, TOY.all_cases()), explain=lambda: asked.append(1) or "Look.")
        return len(asked)

    assert told(lambda x, factor=2.0: -3 * x * factor) == 1
    assert told(double) == told(lambda x, factor=2.0: x * x) == 0
    assert told(lambda x, factor=2.0: np.append(x, 1)) == told(lambda x: 3 * x) == 0
    assert told(lambda x, factor=2.0: None) == told(lambda x, factor=2.0: (x, x)) == 0
    v = judge(TOY, run(lambda x, factor=2.0: -3 * x, TOY.all_cases()), explain=lambda: "Look.")
    assert v.measured == "Look." and "\n    Look.\n" in str(v)


def test_results_show_as_many_digits_as_it_takes_to_see_a_difference():
    v = verdict(lambda x, factor=2.0: x * factor + 1e-6)
    assert (v.expected, v.given) == ("[2.0]", "[2.000001]")


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
    given = common._values(exercise, some)
    for parameter in inspect.signature(exercise.reference).parameters.values():
        if parameter.default is parameter.empty or parameter.name in LEFT_OUT.get(name, ()):
            continue
        values = given[parameter.name]
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
    v = judge(exercise, outcomes, explain=lambda: pytest.fail("a name is enough"))
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
