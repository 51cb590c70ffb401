"""The tape: gradients by hand and by differences, sharing, memory, nothing lost in silence."""

import gc
import math
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import value_and_grad
from pe_numpy.dispatch import differentiable
from pe_numpy.training.autodiff import Tensor

seeds = st.integers(0, 2**32 - 1)


def data(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def network(params, x, y):
    """Two layers and a squared error, with a bit of everything."""
    hidden = np.tanh(x @ params["first"]["W"] + params["first"]["b"])  # (B, L, F)
    mixed = hidden / np.sqrt(np.sum(hidden * hidden, axis=-1, keepdims=True) + 1.0)
    return np.mean((mixed @ params["last"] - y) ** 2) + 0.5 * params["scale"]


def setting(dtype=np.float64):
    B, L, D, F = 2, 3, 4, 5
    params = {
        "first": {"W": data(D, F, dtype=dtype), "b": data(F, dtype=dtype)},
        "last": data(F, dtype=dtype),
        "scale": np.array(0.25, dtype),
    }
    return params, data(B, L, D, seed=1, dtype=dtype), data(B, L, seed=2, dtype=dtype)


# ---- oracles ------------------------------------------------------------------------------------


def test_gradients_of_a_network_equal_central_differences():
    params, x, y = setting()
    value, grads = value_and_grad(network)(params, x, y)
    assert value == network(params, x, y)
    for array, g in [
        (params["first"]["W"], grads["first"]["W"]),
        (params["first"]["b"], grads["first"]["b"]),
        (params["last"], grads["last"]),
        (params["scale"], grads["scale"]),
    ]:
        assert g.shape == array.shape
        for place in np.ndindex(*array.shape):
            kept, ends, h = array[place], [], 1e-5
            for step in (h, -h):
                array[place] = kept + step
                ends.append(network(params, x, y))
            array[place] = kept
            assert_allclose(g[place], (ends[0] - ends[1]) / (2 * h), rtol=1e-7, atol=1e-10)


def test_chain_rule_by_hand():
    value, g = value_and_grad(lambda x: np.sum(np.exp(2 * x) - x / 4))(np.array([0.0, 1.0]))
    assert_allclose(value, 1 + math.exp(2) - 0.25, rtol=1e-15)
    assert_allclose(g, [1.75, 2 * math.exp(2) - 0.25], rtol=1e-15)


def test_parameter_itself_has_slope_1():
    value, grads = value_and_grad(lambda p: p["x"])({"x": np.array(2.5), "y": np.ones(2)})
    assert (value, float(grads["x"]), grads["y"].tolist()) == (2.5, 1.0, [0.0, 0.0])


def test_sum_over_all_paths_from_a_number_to_its_parameter():
    """z = ((x + x) x + x): dz/dx = 4x + 1."""
    value, g = value_and_grad(lambda x: (x + x) * x + x)(np.array(3.0))
    assert (float(value), float(g)) == (21.0, 13.0) and g.shape == ()


def test_operators_take_a_tensor_on_either_side():
    x, a = np.array([1.0, 2.0]), np.array([[3.0, 5.0], [7.0, 11.0]])
    for number in (3.0, 3, np.float64(3.0), np.array([3.0, 4.0])):

        def f(x, number=number):
            left = np.stack([number + x, number - x, number * x, number / x, number**x])
            right = np.stack([x + number, x - number, x * number, x / number, x**number, -x])
            return np.sum(left * left[::-1]) + np.sum(right**2) + np.sum(a @ x) * np.sum(x @ a)

        value, g = value_and_grad(f)(x)
        assert_allclose(value, f(x), rtol=1e-14)
        h = 1e-6
        slope = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(2)]
        assert_allclose(g, slope, rtol=1e-7)


def test_comparisons_answer_with_plain_truth_values():
    def f(x):
        for answer, expected in [
            (x < 2, [True, False]),
            (x <= 1, [True, False]),
            (x > 1, [False, True]),
            (2 <= x, [False, True]),
            (x == 1, [True, False]),
            (x != 1, [False, True]),
        ]:
            assert type(answer) is np.ndarray and answer.tolist() == expected
        return np.sum(x)

    value_and_grad(f)(np.array([1.0, 2.0]))


# ---- theorems -----------------------------------------------------------------------------------


@given(seeds)
def test_gradient_is_linear_in_the_function(seed):
    x = np.random.default_rng(seed).standard_normal((2, 3))
    first, second = lambda x: np.sum(np.sin(x) * x), lambda x: np.sum(x[0] @ x[1] * np.exp(x))
    a, b = value_and_grad(first)(x)[1], value_and_grad(second)(x)[1]
    both = value_and_grad(lambda x: 2 * first(x) - second(x))(x)[1]
    assert_allclose(both, 2 * a - b, rtol=0, atol=1e-12)


@given(seeds)
def test_step_against_the_gradient_goes_down(seed):
    rng = np.random.default_rng(seed)
    params, x, y = setting()
    params["last"] = rng.standard_normal(5)
    value, grads = value_and_grad(network)(params, x, y)
    lower = {**params, "last": params["last"] - 1e-3 * grads["last"]}
    assert network(lower, x, y) < value


# ---- nested dictionaries, other arguments -------------------------------------------------------


def test_gradients_are_nested_like_the_parameters_and_other_arguments_pass_through():
    params = {"a": {"b": {"c": np.ones(2)}, "d": np.ones((2, 1))}, "0": {"e": np.ones(())}}

    def f(params, power, *, factor):
        return factor * np.sum((params["a"]["b"]["c"] + params["a"]["d"]) ** power)

    value, grads = value_and_grad(f)(params, 3, factor=0.5)
    assert float(value) == 16.0
    assert grads["a"]["b"]["c"].tolist() == [12.0, 12.0]
    assert grads["a"]["d"].tolist() == [[12.0], [12.0]]
    assert list(grads) == ["a", "0"] and grads["0"] == {"e": np.zeros(())}


def test_parameter_that_plays_no_part_gets_zeros_of_its_own():
    params = {"used": np.ones(2, np.float32), "idle": np.ones((2, 3), np.float32)}
    _, grads = value_and_grad(lambda p: np.sum(p["used"]))(params)
    assert grads["idle"].shape == (2, 3) and grads["idle"].dtype == np.float32
    assert not grads["idle"].any() and grads["idle"] is not params["idle"]
    value, grads = value_and_grad(lambda p: 7.0)(params)
    assert value == 7.0 and not grads["used"].any()
    assert value_and_grad(lambda p: 3)({}) == (3, {})


def test_one_array_under_two_names_is_two_parameters():
    x = np.array([1.0, 2.0])
    _, grads = value_and_grad(lambda p: np.sum(p["a"] * p["b"] * p["b"]))({"a": x, "b": x})
    assert grads["a"].tolist() == [1.0, 4.0] and grads["b"].tolist() == [2.0, 8.0]


def test_function_sees_arrays_with_the_shape_dtype_and_text_of_plain_ones():
    def f(x):
        assert (x.shape, x.ndim, x.size, x.dtype, len(x)) == ((2, 3), 2, 6, np.float32, 2)
        assert repr(x).startswith("Tensor(array(") and bool(x[0, 0] > -99) and bool(x[0, 0])
        assert type(x.astype(np.float32)) is Tensor and x.T.shape == (3, 2)
        return sum(np.sum(row) for row in x)

    assert value_and_grad(f)(np.ones((2, 3), np.float32))[1].tolist() == [[1.0] * 3] * 2


def test_differentiable_function_without_a_rule_is_recorded_step_by_step():
    @differentiable
    def cubed(x, factor=1.0):
        return factor * x**3

    x = np.array([1.0, 2.0])
    assert value_and_grad(lambda x: np.sum(cubed(x, factor=2.0)))(x)[1].tolist() == [6.0, 24.0]


# ---- dtypes, sharing, memory --------------------------------------------------------------------


def test_float32_stays_float32_all_the_way():
    params, x, y = setting(np.float32)
    value, grads = value_and_grad(network)(params, x, y)
    assert value.dtype == np.float32
    assert {g.dtype for g in (grads["first"]["W"], grads["last"], grads["scale"])} == {
        np.dtype(np.float32)
    }
    params64, x64, y64 = setting()
    expected = value_and_grad(network)(params64, x64, y64)[1]["first"]["W"]
    assert_allclose(grads["first"]["W"], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(x * np.float64(2)),
        lambda x: np.sum(x * np.arange(3)),
        lambda x: np.sum(x + np.zeros(3)),
        lambda x: np.sum(x / np.sqrt(4)),
        lambda x: np.sum(np.zeros((2, 3)) @ x),
    ],
)
def test_float64_that_creeps_in_is_refused_with_a_way_out(f):
    with pytest.raises(TypeError, match=r"array of float32 .*gradient is float64; cast with ast"):
        value_and_grad(f)(np.ones(3, np.float32))


def test_python_numbers_and_booleans_leave_float32_alone():
    f = value_and_grad(lambda x: np.sum((2 * x / math.sqrt(4)) ** 2 * (x > 0) * np.float32(3)))
    assert f(np.ones(3, np.float32))[1].dtype == np.float32


def test_inputs_stay_as_they_were_and_gradients_belong_to_the_caller():
    x, y = np.ones((2, 3)), np.ones((2, 3))
    x.flags.writeable = y.flags.writeable = False
    _, grads = value_and_grad(lambda p: np.sum(p["x"] + p["y"]))({"x": x, "y": y})
    grads["x"] *= 5  # changes nobody else
    assert grads["y"].tolist() == np.ones((2, 3)).tolist() and grads["y"].flags.writeable
    assert not np.shares_memory(grads["x"], grads["y"])
    _, g = value_and_grad(lambda x: np.sum(x[::-1].T))(x)
    assert g.flags.writeable and g.flags.c_contiguous


def test_gradient_that_two_uses_share_is_not_changed_by_either():
    """Both terms of x + x get the same array g; a sum in place would count some of it twice."""

    def f(p):
        both = p["a"] + p["b"]
        return np.sum(both * both + p["a"] + p["b"] * 2.0)

    a, b = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    _, grads = value_and_grad(f)({"a": a, "b": b})
    assert grads["a"].tolist() == (2 * (a + b) + 1).tolist()
    assert grads["b"].tolist() == (2 * (a + b) + 2).tolist()


def test_tape_of_fifty_thousand_steps_needs_no_recursion():
    def f(x):
        for _ in range(50_000):
            x = x + 1.0
        return x

    assert 50_000 > sys.getrecursionlimit()
    assert float(value_and_grad(f)(np.array(0.0))[1]) == 1.0


def test_walk_back_frees_the_tape_as_it_goes():
    n, steps = 250_000, 20  # arrays of 2 MB
    x = np.full(n, 0.5)
    seen = []

    def f(x):
        for _ in range(steps):
            x = np.exp(-x)
        seen.append(tracemalloc.get_traced_memory()[0])  # all of the tape: two arrays a step
        return np.sum(x)

    gradient = value_and_grad(f)
    tracemalloc.start()
    _, g = gradient(x)
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen[0] > 2 * steps * x.nbytes
    assert peak < seen[0] + 5 * x.nbytes  # gradients take the place of what is freed
    assert now < g.nbytes + 1e5


def test_tensors_that_outlive_their_call_hold_no_tape():
    kept = []

    def f(x):
        kept.append(x * 2.0)
        return np.sum(kept[0])

    value_and_grad(f)(np.ones(3))
    assert kept[0].steps == () and kept[0].grad is None


def test_tape_makes_no_cycles_for_the_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        params, x, y = setting()
        value_and_grad(network)(params, x, y)
        before = sum(type(o) is Tensor for o in gc.get_objects())
        with pytest.raises(NotImplementedError):
            value_and_grad(lambda p: np.cumprod(p["last"] * 2.0))(params)
        del params
        assert before == 0
    finally:
        gc.enable()


# ---- what is never lost in silence --------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (np.asarray, TypeError, "can't become a plain array: its gradient would be lost"),
        (lambda x: np.array([x, x]), TypeError, "write np.stack for np.array"),
        (lambda x: np.array(x, dtype=object), TypeError, "plain array"),
        (lambda x: np.sum([x, x]), TypeError, "plain array"),
        (lambda x: np.ones((2, 2)).dot(x), TypeError, "a @ b for a.dot"),
        (lambda x: np.dot(np.ones((2, 2)), x), NotImplementedError, "numpy.dot: there is no rule"),
        (lambda x: float(x[0]), TypeError, "float"),
        (lambda x: int(x[0]), TypeError, "int"),
        (lambda x: math.sqrt(x[0]), TypeError, "real number"),
        (lambda x: range(x[0]), TypeError, "integer"),
        (lambda x: f"{x[0]:.3f}", TypeError, "format"),
        (
            lambda x: np.exp(x, out=np.ones(2)),
            TypeError,
            "np.exp with out: .*nothing changes in pl",
        ),
        (lambda x: np.exp(x, where=[True, False]), TypeError, "np.exp with where"),
        (lambda x: np.add.reduce(x), TypeError, "np.add.reduce: a Tensor does not support"),
        (lambda x: np.add(1.0, x, dtype=np.float32), TypeError, "np.add with dtype"),
        (lambda x: np.where(x, x, 0.0), NotImplementedError, "where, with respect to Tensor"),
        (lambda x: np.expm1(x), NotImplementedError, "numpy.expm1: there is no rule"),
        (lambda x: np.linalg.det(x), NotImplementedError, "numpy.linalg.det: there is no rule"),
        (lambda x: x.cumsum(), NotImplementedError, "ndarray.cumsum: there is no rule"),
        (lambda x: x.tolist(), NotImplementedError, r"ndarray.tolist: .*take \.value of what"),
        (lambda x: x.item(), NotImplementedError, "ndarray.item"),
        (lambda x: x.real, NotImplementedError, "ndarray.real"),
        (lambda x: x.nonsense, AttributeError, "'Tensor' object has no attribute 'nonsense'"),
        (lambda x: x.astype(int), TypeError, "float64 can't become int64: its gradient ends"),
        (lambda x: x.astype(complex), TypeError, "can't become complex128"),
        (lambda x: np.sum(abs(1j * x)), TypeError, "its gradient is complex128"),
        (lambda x: np.ones(3)[x], TypeError, "plain array"),
        (lambda x: x[x], IndexError, "integer"),
        (lambda x: list(x[0]), TypeError, "len"),
    ],
)
def test_what_the_tape_cannot_follow_raises(call, error, message):
    with pytest.raises(error, match=message):
        value_and_grad(lambda x: np.sum(call(x * 1.0)))(np.array([1.0, 2.0]))


@pytest.mark.parametrize("change", ["a += t", "a[0] = t[0]", "a[:] = t", "t[0] = 1.0", "a *= t"])
def test_changes_in_place_raise_and_name_the_way_out(change):
    def f(t):
        exec(change, {"a": np.ones(2), "t": t})
        return np.sum(t)

    with pytest.raises((TypeError, ValueError)):
        value_and_grad(f)(np.ones(2))


def test_adding_to_a_tensor_makes_a_new_one():
    def f(x):
        total = x
        total += 2 * x
        return np.sum(total * x)

    assert value_and_grad(f)(np.array([1.0, 2.0]))[1].tolist() == [6.0, 12.0]


@pytest.mark.parametrize(
    ("f", "params", "message"),
    [
        (np.sum, {"a": {"ids": np.arange(3)}}, "array of floats; got int64 for params.a.ids"),
        (
            np.sum,
            {"W": [1.0, 2.0]},
            "a parameter must be an array of floats; got list for params.W",
        ),
        (np.sum, {"W": None}, "got NoneType for params.W"),
        (np.sum, {"W": 1.0}, "got float for params.W"),
        (np.sum, {"W": np.ones(2) * 1j}, "got complex128 for params.W"),
        (np.sum, np.array([True]), "got bool for params$"),
        (
            lambda p: p["W"] * 2,
            {"W": np.ones(3)},
            r"must return one real number; got float64, shape \(3,\)",
        ),
        (lambda p: np.ones((1, 1)), {}, r"one real number; got float64, shape \(1, 1\)"),
        (lambda p: p["W"][0] * 1j, {"W": np.ones(3)}, "one real number; got complex128"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(f, params, message):
    with pytest.raises(ValueError, match=f"value_and_grad: .*{message}"):
        value_and_grad(f)(params)


@pytest.mark.parametrize("result", [None, "three", (1.0, 2.0), [np.ones(2)], {"loss": 1.0}])
def test_anything_but_a_number_is_refused(result):
    with pytest.raises(ValueError, match=f"one real number; got a {type(result).__name__}"):
        value_and_grad(lambda x: result)(np.ones(2))


def test_tensors_of_another_call_are_refused():
    kept = []
    value_and_grad(lambda x: kept.append(x * 2) or np.sum(x))(np.ones(2))
    with pytest.raises(ValueError, match="must not use a Tensor of another call"):
        value_and_grad(lambda x: np.sum(x * kept[0]))(np.ones(2))

    def nested(x):
        return value_and_grad(lambda y: np.sum(x * y))(np.ones(2))[0]

    with pytest.raises(ValueError, match="no gradients of gradients"):
        value_and_grad(nested)(np.ones(2))
    with pytest.raises(ValueError, match="got float64 for params"):
        value_and_grad(lambda x: value_and_grad(np.sum)(x)[0])(np.ones(2))


def test_arguments_by_name_find_their_place():
    from pe_numpy import attend, layer_norm, rope
    from pe_numpy.transformer.layers import linear

    x, W, b = data(3, 4), data(4, 4, seed=1), data(4, seed=2)

    def by_place(p):
        return np.sum(np.sin(rope(linear(p["x"], p["W"], p["b"]), np.arange(3), None, "half")))

    def by_name(p):
        y = linear(b=p["b"], x=p["x"], W=p["W"])
        return np.sum(np.sin(rope(layout="half", x=y, positions=np.arange(3))))

    params = {"x": x, "W": W, "b": b}
    expected, found = value_and_grad(by_place)(params)[1], value_and_grad(by_name)(params)[1]
    for name in params:
        assert_array_equal(found[name], expected[name])
    _, g = value_and_grad(lambda g: np.sum(layer_norm(x, bias=b, gain=g) ** 2))(np.ones(4))
    assert g.shape == (4,) and g.any()
    _, g = value_and_grad(lambda a: np.sum(attend(W[None], x.T, sink=a)[0]))(np.ones(1))
    assert g.shape == (1,) and g.any()  # the mask before it is left out
