"""The rules of NumPy's functions: finite differences, transposes, kinks, dtypes, bad input."""

import numpy as np
import pytest
from differences import slopes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import value_and_grad
from pe_numpy.training import rules

seeds = st.integers(0, 2**32 - 1)


def data(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)


def check(f, *arrays, rtol=1e-7):
    """Compare gradients of a weighted and of a plain sum of f with finite differences."""
    arrays = [np.array(x) for x in arrays]
    for x in arrays:
        x.flags.writeable = False  # whoever changes an input is caught
    shape = np.shape(f(*arrays))
    for weights in (data(*shape, seed=9), None):

        def number(*arrays, weights=weights):
            return np.sum(f(*arrays)) if weights is None else np.sum(weights * f(*arrays))

        params = {str(n): x for n, x in enumerate(arrays)}
        value, grads = value_and_grad(lambda params, number=number: number(*params.values()))(
            params
        )
        assert_allclose(value, number(*arrays), rtol=1e-13, atol=1e-13)
        for n, x in enumerate(arrays):
            g, expected = grads[str(n)], slopes(number, arrays, n)
            assert g.shape == x.shape and g.dtype == np.float64
            assert np.linalg.norm(g - expected) <= rtol * np.linalg.norm(expected) + 1e-9


# ---- ufuncs against finite differences ----------------------------------------------------------

SHAPES = [
    ((2, 3, 5), (2, 3, 5)),
    ((2, 3, 5), (5,)),
    ((5,), (2, 3, 5)),
    ((2, 1, 5), (3, 1)),
    ((4, 1, 3, 1), (2, 1, 5)),
    ((), (2, 3)),
    ((2, 3), ()),
    ((1,), (3,)),
    ((), ()),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum"])
def test_two_arguments_of_any_shapes_that_broadcast(name, shapes):
    x, y = data(*shapes[0]), data(*shapes[1], seed=1)
    check(getattr(np, name), x, y + np.sign(y))


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_power_by_base_and_exponent(shapes):
    check(np.power, data(*shapes[0], low=0.5), data(*shapes[1], seed=1))


@pytest.mark.parametrize("exponent", [-1, 0.5, 2, 3, 2.5])
def test_power_with_a_number(exponent):
    check(lambda x: x**exponent, data(3, 4, low=0.5))
    check(lambda x: exponent**x if exponent > 0 else x, data(3, 4))


@pytest.mark.parametrize(
    "name",
    ["negative", "absolute", "square", "sqrt", "exp", "log", "log1p", "sin", "cos", "tanh"],
)
def test_one_argument(name):
    check(getattr(np, name), data(2, 3, 4, low=0.3))
    if name not in ("sqrt", "log", "log1p"):
        check(getattr(np, name), data(2, 3, 4))


def test_table_of_ufuncs_is_tested_whole():
    two = {np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum}
    rest = {np.power, np.matmul, np.negative, np.absolute, np.square, np.sqrt, np.exp, np.log}
    assert set(rules.UFUNCS) == two | rest | {np.log1p, np.sin, np.cos, np.tanh}


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 6, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((6, 1, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (6, 1, 4, 5)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((2, 3, 4), (4,)),
        ((4,), (2, 4, 5)),
        ((4,), (4,)),
    ],
    ids=str,
)
def test_matrix_product_of_any_number_of_axes(x, y):
    check(np.matmul, data(*x), data(*y, seed=1))


def test_matrix_product_of_views_that_are_not_contiguous():
    check(lambda x, w: np.swapaxes(x, 0, 1) @ w.T, data(3, 2, 4), data(5, 4, seed=1))
    check(lambda x, y: np.swapaxes(x @ y, -1, -2) @ x, data(2, 3, 4), data(4, 3, seed=1))


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 3), (3, 2)), ((2, 3, 3), (3, 1)), ((3, 3), (2, 3, 2)), ((2, 1, 3, 3), (4, 3, 2))],
)
def test_solution_of_a_system_by_matrix_and_columns(a, b):
    matrix = data(*a) + 5 * np.eye(3)
    check(np.linalg.solve, matrix, data(*b, seed=1))
    for n in (0, 1):
        small = [matrix.astype(np.float32), data(*b).astype(np.float32)]

        def number(x, n=n, small=small):
            return np.sum(np.linalg.solve(*(x if m == n else y for m, y in enumerate(small))))

        assert value_and_grad(number)(small[n])[1].dtype == np.float32


def test_a_vector_is_no_column_of_a_system():
    with pytest.raises(NotImplementedError, match=r"solve needs columns: write b\[:, None\]"):
        value_and_grad(lambda b: np.sum(np.linalg.solve(np.eye(3), b)))(np.ones(3))


# ---- functions against finite differences -------------------------------------------------------

X = data(2, 3, 4)
COLUMNS = np.array([[2, 0, 2, 3, 1], [1, 1, 0, 0, 3]])

FUNCTIONS = {
    "sum": lambda x: np.sum(x) * x.sum(),
    "sum of an axis": lambda x: x.sum(axis=1) * np.sum(x, axis=-2),
    "sum of axes": lambda x: np.sum(x, axis=(0, -1)),
    "sum, axes kept": lambda x: x * x.sum(axis=(0, 2), keepdims=True),
    "sum, all kept": lambda x: x * x.sum(keepdims=True),
    "cumsum": lambda x: np.cumsum(x) * np.reshape(np.cumsum(x, axis=1), (-1,)),
    "cumsum from the end": lambda x: np.cumsum(x[..., ::-1], axis=-1)[..., ::-1] ** 2,
    "floor and ceil": lambda x: x * (x - np.floor(x)) + np.ceil(x) * x,
    "mean": lambda x: np.mean(x) * x.mean(axis=1),
    "mean, axes kept": lambda x: x * x.mean(axis=(1, 2), keepdims=True),
    "var": lambda x: np.var(x) * x.var(axis=-1),
    "var, axes kept": lambda x: x * x.var(axis=1, keepdims=True),
    "std": lambda x: np.std(x, axis=(0, 1)) * x.std(),
    "max": lambda x: np.max(x) * x.max(axis=1),
    "max, axis kept": lambda x: x * x.max(axis=-1, keepdims=True),
    "min": lambda x: np.min(x, axis=(0, 2)) * x.min(),
    "clip": lambda x: np.clip(x, -0.7, 1.1) * x.clip(-1.1, 0.7),
    "reshape": lambda x: np.reshape(x, (4, 6)) * x.reshape(4, -1) * x.reshape((-1, 6)),
    "ravel": lambda x: np.ravel(x) * x.ravel(),
    "squeeze": lambda x: np.squeeze(x[:, None]) * x[None].squeeze(axis=0),
    "expand_dims": lambda x: np.expand_dims(x, (0, -1)) * np.expand_dims(x, 1)[..., None],
    "broadcast_to": lambda x: np.broadcast_to(x, (5, 2, 3, 4)) * np.broadcast_to(x[:, :1], x.shape),
    "transpose": lambda x: np.transpose(x) * x.T * x.transpose(2, 1, 0) * x.transpose((-1, 1, 0)),
    "a turn of three axes": lambda x: np.transpose(x, (1, 2, 0)) * x.transpose(1, 2, 0),
    "swapaxes": lambda x: np.swapaxes(x, 0, -1) * x.swapaxes(0, 2),
    "moveaxis": lambda x: np.moveaxis(x, 0, -1) * np.moveaxis(x, (0, 1), (-1, 0)),
    "where": lambda x: np.where(x > 0.2, x * x, 3.0) + np.where(x[0] < 0, 1.0, x),
    "concatenate": lambda x: (
        np.concatenate([x, 2 * x[:, :2], X[:, :1].astype(x.dtype), x], axis=1) ** 2
    ),
    "concatenate, first axis": lambda x: np.concatenate((x[:1], x)) ** 2,
    "concatenate, last axis": lambda x: np.concatenate([x, x[..., 1:]], axis=-1) ** 2,
    "stack": lambda x: np.stack([x[0], x[1], X[0].astype(x.dtype)], axis=-1) ** 2,
    "split": lambda x: np.split(x, 2, axis=-1)[0] * np.split(x, [1, 3], axis=2)[1],
    "split by places": lambda x: np.concatenate(np.split(x, [1, 1, 3], axis=1), axis=1) ** 2,
    "take": lambda x: np.take(x, [[0, 2], [2, 2]], axis=1) * np.take(x, 5) * x.take([[1], [0]]),
    "take of the first axis": lambda x: np.take(x, np.array([1, 1, 0]), axis=0) ** 2,
    "take_along_axis": lambda x: np.take_along_axis(x[:, 0], COLUMNS, axis=1) ** 2,
    "repeat": lambda x: np.repeat(x, 2, axis=1) * x.repeat([2, 1, 3], axis=1),
    "repeat of all": lambda x: np.repeat(x, 2) ** 2,
    "pad": lambda x: np.pad(x, 1) ** 2,
    "pad, each side its own": lambda x: np.pad(x, [(0, 0), (2, 1), (0, 3)]) ** 2,
    "pad, around": lambda x: np.pad(x, [(0, 0), (4, 1), (0, 3)], mode="wrap") ** 2,
    "pad, mirrored": lambda x: np.pad(x, [(0, 0), (2, 1), (0, 3)], "reflect") ** 2,
    "copy": lambda x: np.copy(x) * x.copy(),
    "len and iter": lambda x: sum(row * len(row) for row in x[0]),
    "outer": lambda x: np.multiply.outer(x[0, 0], x) + np.subtract.outer(x[1, 1], x[0])[:, None],
    "einsum": lambda x: np.einsum("bij,bkj->kbi", x, x * x),
    "einsum with a sum": lambda x: np.einsum(
        "bij,jk->bk", x, data(4, 5).astype(x.dtype), optimize=True
    ),
    "einsum of one": lambda x: np.einsum("bij -> ib", x),
    "einsum of three": lambda x: np.einsum("bij,j,bk->ik", x, x[0, 0], x[:, 1]),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_function(f):
    check(f, X)


INDICES = {
    "slices": (slice(None), slice(2, 0, -1), slice(None, None, 2)),
    "a row": 1,
    "a negative row": -1,
    "an entry": (1, 2, 0),
    "ellipsis and new axis": (..., None, 2),
    "nothing": slice(0, 0),
    "a mask": X > 0,
    "a mask of rows": np.array([True, False]),
    "rows": np.array([1, 0, 1, 1]),
    "rows from the end": np.array([-1, 0, -2]),
    "rows in two axes": np.array([[1, 0, 1], [1, 1, 0]]),
    "no rows": np.array([], int),
    "a list": [1, 1, 0],
    "columns": (slice(None), np.array([2, 2, 0])),
    "pairs": (np.array([[0], [1]]), np.array([2, 0, 2]), slice(1, 3)),
    "pairs apart": (np.array([[0], [1]]), slice(None), COLUMNS[:, :3]),
    "a list and a slice": ([0, 0, 1], slice(None), 3),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_index(index):
    check(lambda x: x[index] ** 2, X)


def test_long_table_is_summed_like_a_short_one():
    rows = np.random.default_rng(0).integers(-200, 200, (7, 90))
    g = data(7, 90, 3)
    expected = np.zeros((200, 3))
    np.add.at(expected, rows, g)
    assert_allclose(rules.sum_of_rows(g, rows, (200, 3)), expected, rtol=0, atol=1e-12)
    short = rules.sum_of_rows(g, rows % 100, (100, 3))
    assert_allclose(short, expected[:100] + expected[100:], rtol=0, atol=1e-12)
    assert rules.sum_of_rows(g[:0], rows[:0], (200, 3)).tolist() == np.zeros((200, 3)).tolist()
    wide = rules.sum_of_rows(data(4, 2, 3), np.array([1, 1, 199, 0]), (200, 2, 3))
    assert_allclose(wide[1], data(4, 2, 3)[:2].sum(axis=0), rtol=0, atol=1e-15)


# ---- theorems -----------------------------------------------------------------------------------


@given(seeds, st.sampled_from(["ravel", "T", "sum", "mean"]))
def test_pull_of_a_linear_function_is_its_transpose(seed, name):
    """<g, A x> = <A^T g, x> for any g and x."""
    rng = np.random.default_rng(seed)
    x, method = rng.standard_normal((3, 4)), getattr
    z = method(x, name)() if name != "T" else x.T
    g = rng.standard_normal(np.shape(z))

    def number(x):
        return np.sum(g * (method(x, name)() if name != "T" else x.T))

    _, back = value_and_grad(number)(x)
    assert_allclose(np.sum(g * z), np.sum(back * x), rtol=0, atol=1e-12)


@given(seeds)
def test_gradients_add_up_over_all_uses_of_a_parameter(seed):
    x = np.random.default_rng(seed).standard_normal((2, 3))
    _, g = value_and_grad(lambda x: np.sum(np.sin(x)) + np.sum(x * x) + x[1, 2])(x)
    expected = np.cos(x) + 2 * x
    expected[1, 2] += 1
    assert_allclose(g, expected, rtol=0, atol=1e-14)


# ---- kinks and edges, by hand -------------------------------------------------------------------


def test_equals_share_at_a_kink():
    tie = np.array([1.0, 2.0, 2.0])
    assert value_and_grad(np.max)(tie)[1].tolist() == [0.0, 0.5, 0.5]
    assert value_and_grad(lambda x: np.min(-x))(tie)[1].tolist() == [0.0, -0.5, -0.5]
    assert value_and_grad(lambda x: np.sum(np.maximum(x, 2.0)))(tie)[1].tolist() == [0.0, 0.5, 0.5]
    assert value_and_grad(lambda x: np.sum(np.minimum(2, x)))(tie)[1].tolist() == [1.0, 0.5, 0.5]
    assert value_and_grad(lambda x: np.sum(abs(x)))(np.array([-2.0, 0.0]))[1].tolist() == [-1.0, 0]


def test_powers_of_zero():
    zero = np.array([0.0, 2.0])
    assert value_and_grad(lambda x: np.sum(x**2))(zero)[1].tolist() == [0.0, 4.0]
    assert value_and_grad(lambda y: np.sum(zero**y))(np.array([3.0, 1.0]))[1][0] == 0.0


def test_where_keeps_the_other_side_out():
    x = np.array([0.0, 1.0, 4.0])
    safe = value_and_grad(lambda x: np.sum(np.where(x > 0, np.log(np.where(x > 0, x, 1)), 0)))
    assert safe(x)[1].tolist() == [0.0, 1.0, 0.25]


# ---- dtypes and what is refused -----------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_small_floats_stay_small(f, dtype):
    x = X.astype(dtype)
    value, g = value_and_grad(lambda x: np.sum(f(x)))(x)
    assert value.dtype == g.dtype == dtype
    exact = value_and_grad(lambda x: np.sum(f(x)))(x.astype(np.float64))[1]
    loose = 2e-6 if dtype == np.float32 else 2e-2
    assert np.linalg.norm(g - exact) <= loose * np.linalg.norm(exact)


def test_cast_carries_the_gradient_back_in_the_dtype_of_the_parameter():
    x = np.array([1.0, 2.0], np.float32)
    value, g = value_and_grad(lambda x: np.sum(x.astype(np.float64) ** 3))(x)
    assert value.dtype == np.float64 and g.dtype == np.float32 and g.tolist() == [3.0, 12.0]
    assert value_and_grad(lambda x: np.sum(x.astype("f4", copy=False)))(x)[1].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.einsum("ij,jk", x, x.T), "einsum.*needs a result after ->"),
        (lambda x: np.einsum("...j->...", x), "einsum.*no ellipsis"),
        (lambda x: np.einsum("ii->i", x @ x.T), "einsum.*no letter twice"),
        (lambda x: np.sum(x, dtype=np.float64), "sum, called like this.*dtype"),
        (lambda x: x.max(axis=0, initial=0.0), "max, called like this.*initial"),
        (lambda x: np.reshape(x, (-1,), order="F"), "reshape, called like this.*order"),
        (lambda x: np.pad(x, 1, mode="mean"), "pad, called like this.*computes what stands beyond"),
        (lambda x: np.pad(x, 1, constant_values=2.0), "pad, called like this.*constant_values"),
        (lambda x: np.where(x, x, 0.0), "where, with respect to Tensor"),
        (lambda x: np.where(x), "where, called like this"),
        (lambda x: np.cumprod(x), "numpy.cumprod: there is no rule for its gradient"),
        (lambda x: np.linalg.norm(x), "numpy.linalg.norm: there is no rule"),
        (lambda x: np.sinh(x), "numpy.sinh: there is no rule"),
        (lambda x: x % 2.0, "unsupported operand"),
        (lambda x: np.full_like(np.ones(2), x[0, 0]), "there is no rule"),
    ],
)
def test_what_has_no_rule_is_refused_by_name(call, message):
    with pytest.raises((NotImplementedError, TypeError), match=message):
        value_and_grad(lambda x: np.sum(call(x)))(X[0])


def test_rules_answer_with_plain_arrays_for_truth_values_shapes_and_places():
    def number(x):
        answers = [x > 0, x == x, np.isfinite(x), np.isneginf(x), np.argmax(x), x.argsort(axis=0)]
        assert not any(type(a) is type(x) for a in answers)
        assert np.shape(x) == x.shape == np.zeros_like(x).shape and np.ndim(x) == 3
        assert np.result_type(x, np.float32) == np.float64 and np.size(x) == x.size == 24
        return np.sum(x * answers[0])

    assert_array_equal(value_and_grad(number)(X)[1], (X > 0).astype(float))
