"""FIRE: loop oracle, what it contains, where it is no Toeplitz matrix, gradients, bad input."""

import math

import numpy as np
import pytest
from differences import slopes
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    alibi_bias,
    fire_bias,
    kerple_log_bias,
    relative_distance,
    t5_bias,
    value_and_grad,
)
from pe_numpy.relative import fire

KEYS = ("W1", "b1", "W2", "b2", "c", "L")


def network(seed=0, M=4, H=3, c=0.3, L=5.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    shapes = {"W1": (1, M), "b1": (M,), "W2": (M, H), "b2": (H,)}
    params = {key: rng.standard_normal(shape).astype(dtype) for key, shape in shapes.items()}
    return params | {"c": np.array(c, dtype), "L": np.array(L, dtype)}


def straight(scale, c, L, eps=1e-6):
    """A network that only multiplies, so that within L the bias is scale times psi(|i - j|)."""
    top = math.log1p(abs(c) * L) + eps
    heads = top * np.asarray(scale, float)[None]  # (1, H)
    return {"W1": np.ones((1, 1)), "b1": np.zeros(1), "W2": heads, "b2": np.zeros(heads.size)} | {
        "c": np.array(c),
        "L": np.array(L),
    }


def by_loops(params, q_at, k_at, eps=1e-6):
    W1, b1, W2, b2, c, L = (params[key] for key in KEYS)
    bias = np.zeros((len(b2), len(q_at), len(k_at)))
    for h, i, j in np.ndindex(bias.shape):
        top = math.log(1 + abs(c) * abs(q_at[i] - k_at[j]))
        x = top / (math.log(1 + abs(c) * max(q_at[i], L)) + eps)
        bias[h, i, j] = b2[h] + sum(max(0, x * W1[0, m] + b1[m]) * W2[m, h] for m in range(len(b1)))
    return bias


@pytest.mark.parametrize(
    ("q_at", "k_at"),
    [
        (range(5), range(5)),  # within L
        (range(7), range(7)),  # one beyond
        (range(9), range(9)),  # more
        (range(6, 9), range(9)),  # a cache
        ([3, 0, 9], [0, 2, 5, 1]),
        ([5], [0, 5, 12]),
    ],
)
@pytest.mark.parametrize("c", [0.3, -0.3])
def test_bias_equals_the_formula_pair_by_pair(q_at, k_at, c):
    params = network(c=c)
    bias = fire_bias(params, q_at, k_at)
    assert_allclose(bias, by_loops(params, q_at, k_at), rtol=0, atol=1e-12)
    assert_allclose(
        fire_bias(params, q_at, k_at, 0.5), by_loops(params, q_at, k_at, 0.5), rtol=0, atol=1e-12
    )


# ---- windows, blocks, batches, dtypes -----------------------------------------------------------


def test_within_L_the_bias_is_a_window_and_beyond_it_is_no_toeplitz_matrix():
    near = fire_bias(network(), range(6), range(6))  # i up to L = 5
    assert not near.flags.writeable and near.strides[1] == -near.strides[2] == 8
    assert_array_equal(near, fire_bias(network(), [0, 1, 2, 3, 4, 5], np.array([0, 1, 2, 3, 4, 5])))
    far = fire_bias(network(), range(8), range(8))
    assert_allclose(far[:, :6, :6], near, rtol=0, atol=1e-14)
    assert np.abs(far[:, 7, 1:] - far[:, 6, :-1]).max() > 1e-3  # one diagonal, two values
    diagonal = np.diagonal(far, axis1=1, axis2=2)  # but all share f(0)
    assert_array_equal(diagonal, np.broadcast_to(diagonal[:, :1], diagonal.shape))


@pytest.mark.parametrize("block", [1, 40, 100])
def test_blocks_of_queries_change_nothing(block, monkeypatch):
    whole = fire_bias(network(), range(13), range(11))
    monkeypatch.setattr(fire, "BLOCK", block)
    assert_allclose(fire_bias(network(), range(13), range(11)), whole, rtol=0, atol=1e-14)


def test_a_batch_a_new_query_and_a_cache_give_the_rows_of_the_whole():
    params, at = network(), np.array([[0, 0, 3, 4, 8], [0, 1, 2, 3, 4]])
    bias = fire_bias(params, at, at)
    assert bias.shape == (2, 3, 5, 5)
    for own, row in zip(bias, at, strict=True):
        assert_allclose(own, by_loops(params, row, row), rtol=0, atol=1e-12)
    one_side = fire_bias(params, [6, 7], at)
    assert_allclose(one_side[0], by_loops(params, [6, 7], at[0]), rtol=0, atol=1e-12)
    other = fire_bias(params, at, [6, 7])
    assert_allclose(other[1], by_loops(params, at[1], [6, 7]), rtol=0, atol=1e-12)
    whole = fire_bias(params, range(9), range(9))
    assert_allclose(fire_bias(params, [8], range(9)), whole[:, 8:], rtol=0, atol=1e-14)


def test_shifting_all_positions_changes_the_bias_beyond_L_alone():
    params, at = network(), np.arange(4)
    assert_array_equal(fire_bias(params, at + 1, at + 1), fire_bias(params, at, at))
    assert np.abs(fire_bias(params, at + 100, at + 100) - fire_bias(params, at, at)).max() > 0.05


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("length", [5, 9])
def test_small_floats_stay_small_and_float16_is_computed_in_float32(dtype, length):
    params = network(dtype=dtype)
    bias = fire_bias(params, range(length), range(length))
    assert bias.dtype == dtype
    exact = by_loops({k: x.astype(float) for k, x in params.items()}, range(length), range(length))
    assert_allclose(bias, exact, rtol=0, atol=2e-6 if dtype == np.float32 else 2e-3)
    value, grads = value_and_grad(lambda p: np.sum(fire_bias(p, range(length), range(length))))(
        params
    )
    assert {value.dtype, *(g.dtype for g in grads.values())} == {np.dtype(dtype)}
    with_numbers = params | {"c": 0.3, "L": 5}
    assert fire_bias(with_numbers, range(length), range(length)).dtype == dtype


def test_no_keys_or_no_queries_give_an_empty_bias():
    assert fire_bias(network(), np.arange(9), np.arange(0)).shape == (3, 9, 0)
    assert fire_bias(network(), np.arange(0), np.arange(9)).shape == (3, 0, 9)


# ---- what it contains ---------------------------------------------------------------------------


def test_within_L_a_straight_network_is_kerples_logarithm():
    p, a = np.array([0.5, 2.0]), 0.25
    distance = relative_distance(range(10), range(10))
    bias = fire_bias(straight(-p, a, 10.0), range(10), range(10))
    assert_allclose(bias, kerple_log_bias(p, [a, a], distance), rtol=0, atol=1e-14)


def test_as_c_goes_to_zero_a_straight_network_becomes_alibi():
    m = np.array([0.5, 0.125])
    distance = relative_distance(range(10), range(10))
    for c in (1e-4, 1e-7):
        bias = fire_bias(straight(-m / c, c, 10.0, eps=0.0), range(10), range(10), eps=0.0)
        assert np.abs(bias - alibi_bias(m, distance)).max() < 60 * c


@pytest.mark.parametrize(("buckets", "reach"), [(8, 20), (32, 128)])
def test_a_staircase_is_t5s_causal_buckets_on_whole_distances(buckets, reach):
    L, c, rng = 3 * reach, 1.0, np.random.default_rng(0)
    table = rng.standard_normal((buckets, 2))
    rows = t5_bias(np.arange(buckets)[:, None], [np.arange(L)], reach, False)[0, 0]
    starts = np.array([np.flatnonzero(rows == b)[0] for b in range(1, buckets)])
    psi = np.log1p(np.arange(L)) / np.log1p(L)
    rise = psi[starts] - psi[starts - 1]
    W1 = np.concatenate([1 / rise, 1 / rise])[None]  # up from one distance to the next, then level
    b1 = np.concatenate([-psi[starts - 1] / rise, -psi[starts] / rise])
    steps = np.diff(table, axis=0)
    stairs = {"W1": W1, "b1": b1, "W2": np.concatenate([steps, -steps]), "b2": table[0]}
    assert W1.size == 2 * (buckets - 1)
    bias = fire_bias(stairs | {"c": c, "L": float(L)}, range(L), range(L), eps=0.0)
    expected = t5_bias(table, relative_distance(range(L), range(L)), reach, False)
    seen = np.tri(L, dtype=bool)
    assert_allclose(bias[:, seen], expected[:, seen], rtol=0, atol=1e-10)


# ---- gradients ----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [5, 9])
def test_gradients_of_all_parameters_equal_finite_differences(length):
    params = network(L=5.5)
    g = np.random.default_rng(1).standard_normal((3, length, length))

    def loss(*values):
        return np.sum(g * fire_bias(dict(zip(KEYS, values, strict=True)), *2 * [range(length)]))

    _, grads = value_and_grad(lambda params: loss(*params.values()))(params)
    for n, key in enumerate(KEYS):
        expected = slopes(loss, [np.array(x) for x in params.values()], n)
        assert grads[key].shape == np.shape(params[key]) and grads[key].dtype == np.float64
        assert_allclose(grads[key], expected, rtol=1e-6, atol=1e-8, err_msg=key)


def test_L_learns_from_rows_before_it_alone_and_c_from_other_distances_than_0():
    beyond = value_and_grad(lambda params: np.sum(fire_bias(params, [7, 9], [2, 3])))
    assert beyond(network())[1]["L"] == 0 and beyond(network())[1]["c"] != 0
    within = value_and_grad(lambda params: np.sum(fire_bias(params, [3, 4], [1, 2])))
    assert within(network())[1]["L"] != 0
    itself = value_and_grad(lambda params: np.sum(fire_bias(params, [4], [4])))
    assert itself(network())[1]["L"] == 0 == itself(network())[1]["c"]


# ---- numbers ------------------------------------------------------------------------------------


def test_table_of_numbers():
    one = {"W1": [[1.0]], "b1": [0.0], "W2": [[1.0]], "b2": [0.0], "c": 1.0, "L": 2.0}
    for i, expected in (
        (4, [1.0, 0.861353, 0.682606, 0.430677, 0.0]),
        (2, [1.0, 0.63093, 0.0]),
        (1, [0.63093, 0.0]),
    ):
        for at in ([i], [i, 5]):  # alone, and beside a query beyond L
            bias = fire_bias(one, at, range(i + 1), eps=0.0)
            assert bias[0, 0].round(6).tolist() == expected


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"L": 0.0}, "fire_bias: L must be above 0, and finite; got 0.0"),
        ({"L": np.nan}, "L must be above 0, and finite; got nan"),
        ({"L": np.inf}, "L must be above 0, and finite; got inf"),
        ({"L": np.ones(2)}, r"L must have the shape \(\) = \(\); got \(2,\)"),
        ({"c": np.ones(1)}, r"c must have the shape \(\) = \(\); got \(1,\)"),
        ({"W1": np.ones((2, 4))}, r"W1 must have the shape \(1, M\) = \(1, 4\); got \(2, 4\)"),
        ({"b1": np.ones(3)}, r"b1 must have the shape \(M,\) = \(4,\); got \(3,\)"),
        ({"W2": np.ones((2, 4, 3))}, r"W2 must have the axes \(M, H\); got shape \(2, 4, 3\)"),
        ({"b2": np.ones(2)}, r"b2 must have the shape \(H,\) = \(3,\); got \(2,\)"),
    ],
)
def test_a_parameter_that_misfits_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        fire_bias(network() | change, [0], [0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: fire_bias({"W1": p["W1"]}, [0], [0]), "params must hold W1, b1, .*; got W1"),
        (lambda p: fire_bias([1], [0], [0]), "params must hold W1, b1, W2, b2, c, L; got list"),
        (lambda p: fire_bias(p, 3, [0]), "fire_bias: q_positions must be an axis of positions"),
        (lambda p: fire_bias(p, [0.5], [0]), "q_positions must be whole numbers"),
        (lambda p: fire_bias(p, [0], [[[1]]]), r"one batch axis at most, k_positions \(S\) or"),
        (lambda p: fire_bias(p, [[0], [1]], np.zeros((3, 1), int)), "batch axes must broadcast"),
        (lambda p: fire_bias(p, [0], [0], np.nan), "eps must be finite; got nan"),
    ],
)
def test_other_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call(network())
