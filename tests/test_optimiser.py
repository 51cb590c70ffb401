"""Optimisers and schedules: loop oracle, theorems, published values, dtype, purity, bad input."""

import copy
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy.training.optimiser import (
    adamw,
    adamw_state,
    clip_gradients,
    cosine_schedule,
    not_finite,
    sgd,
    tree_map,
    tree_paths,
    warmup_schedule,
)

seeds = st.integers(0, 2**32 - 1)


def tree(seed=0, dtype=np.float64):
    """Parameters of several shapes, nested as in a model."""
    rng = np.random.default_rng(seed)
    shapes = {"embedding": (5, 3), "0": {"attention": {"W_q": (3, 4)}, "norm": {"gain": (3,)}}}

    def draw(shape):
        return rng.standard_normal(shape).astype(dtype)

    return {
        "embedding": draw(shapes["embedding"]),
        "0": {key: {k: draw(s) for k, s in part.items()} for key, part in shapes["0"].items()},
    }


def run(step, params, gradients, **constants):
    """Several steps of adamw."""
    state = adamw_state(params)
    for g in gradients:
        params, state = adamw(params, g, state, step, **constants)
    return params, state


def equal(a, b):
    """Whether two trees have the same paths, dtypes and bits."""
    a, b = tree_paths(a), tree_paths(b)
    return list(a) == list(b) and all(
        np.asarray(a[p]).dtype == np.asarray(b[p]).dtype
        and np.asarray(a[p]).tobytes() == np.asarray(b[p]).tobytes()
        for p in a
    )


def adamw_by_loops(theta, gradients, eta, beta_1, beta_2, eps, lam):
    """Algorithm 2, one component at a time, all steps; theta is a flat list."""
    theta = [float(x) for x in theta]
    m, v = [0.0] * len(theta), [0.0] * len(theta)
    for t, g in enumerate(gradients, start=1):
        for n in range(len(theta)):
            m[n] = beta_1 * m[n] + (1 - beta_1) * g[n]
            v[n] = beta_2 * v[n] + (1 - beta_2) * g[n] ** 2
            m_hat, v_hat = m[n] / (1 - beta_1**t), v[n] / (1 - beta_2**t)
            theta[n] -= eta * (m_hat / (math.sqrt(v_hat) + eps) + lam * theta[n])
    return theta


# ---- loop oracle --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("betas", "eps", "lam"),
    [((0.9, 0.98), 1e-9, 0.01), ((0.8, 0.999), 1e-8, 0.0), ((0.0, 0.5), 0.1, 0.3)],
)
def test_adamw_equals_algorithm_2_component_by_component(betas, eps, lam):
    params, gradients = tree(0), [tree(n) for n in (1, 2, 3, 4)]
    result, state = run(
        0.05, params, gradients, betas=betas, eps=eps, weight_decay=lam, decay=lambda path, p: True
    )
    for path, theta in tree_paths(params).items():
        flat = [tree_paths(g)[path].reshape(-1) for g in gradients]
        expected = adamw_by_loops(theta.reshape(-1), flat, 0.05, *betas, eps, lam)
        assert_allclose(tree_paths(result)[path].reshape(-1), expected, rtol=0, atol=1e-14)
    assert state["step"] == 4


def test_default_constants_are_those_of_the_docstring():
    params, gradients = {"W": tree(0)["embedding"]}, [{"W": tree(n)["embedding"]} for n in (1, 2)]
    flat = [g["W"].reshape(-1) for g in gradients]
    expected = adamw_by_loops(params["W"].reshape(-1), flat, 0.1, 0.9, 0.98, 1e-9, 0.01)
    result, _ = run(0.1, params, gradients)
    assert_allclose(result["W"].reshape(-1), expected, rtol=0, atol=1e-14)
    tiny, _ = run(0.1, {"b": np.zeros(1)}, [{"b": np.array([1e-9])}])
    assert_allclose(tiny["b"], [-0.05], rtol=1e-9)  # g / (|g| + eps) is a half where g = eps


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_sgd_equals_its_two_equations(momentum):
    params, state = tree(0), None
    theta = {path: x.copy() for path, x in tree_paths(params).items()}
    u = {path: np.zeros_like(x) for path, x in theta.items()}
    for n, eta in [(1, 0.1), (2, 0.05), (3, 0.2)]:
        params, state = sgd(params, tree(n), eta, momentum, state)
        for path, g in tree_paths(tree(n)).items():
            u[path] = momentum * u[path] - eta * g
            theta[path] = theta[path] + u[path]
            assert_allclose(tree_paths(params)[path], theta[path], rtol=0, atol=1e-15)
            assert_allclose(tree_paths(state)[path], u[path], rtol=0, atol=1e-15)


@given(st.floats(0.01, 100.0), seeds)
def test_clipping_equals_the_algorithm_with_the_norm_of_all_numbers_together(max_norm, seed):
    grads = tree(seed)
    flat = np.concatenate([g.reshape(-1) for g in tree_paths(grads).values()])
    expected = math.sqrt(sum(float(x) ** 2 for x in flat))
    clipped, norm = clip_gradients(grads, max_norm)
    assert_allclose(norm, expected, rtol=1e-13)
    for path, g in tree_paths(grads).items():
        wanted = g * (max_norm / expected) if expected > max_norm else g
        assert_allclose(tree_paths(clipped)[path], wanted, rtol=1e-12, atol=0)


def test_tree_map_meets_each_leaf_with_its_partners():
    result = tree_map(
        lambda a, b, c: (a, b, c), {"x": 1, "y": {"z": 2}}, *[{"y": {"z": 3}, "x": 4}] * 2
    )
    assert result == {"x": (1, 4, 4), "y": {"z": (2, 3, 3)}}
    assert list(result) == ["x", "y"]
    assert tree_map(abs, {"x": {}, "y": -1}) == {"x": {}, "y": 1}
    assert tree_map(abs, -1) == 1


def test_paths_are_the_keys_joined_in_the_order_of_the_tree():
    assert list(tree_paths(tree())) == ["embedding", "0/attention/W_q", "0/norm/gain"]
    assert tree_paths({}) == {} == tree_paths({"no parameters": {}})


def test_what_is_not_finite_is_named():
    grads = tree()
    assert not_finite(grads) == []
    grads["0"]["norm"]["gain"][1] = -np.inf
    grads["embedding"][4, 2] = np.nan
    assert not_finite(grads) == ["embedding", "0/norm/gain"]


# ---- theorems -----------------------------------------------------------------------------------


@given(seeds, st.floats(0.001, 1000.0))
def test_first_step_has_the_size_of_the_learning_rate_whatever_the_gradient(seed, scale):
    params, grads = tree(0), tree_map(lambda g: g * scale, tree(seed))
    moved, _ = run(0.1, params, [grads], weight_decay=0)
    for path, theta in tree_paths(params).items():
        expected = -0.1 * np.sign(tree_paths(grads)[path])
        assert_allclose(tree_paths(moved)[path] - theta, expected, rtol=0, atol=1e-4)


def test_a_steady_gradient_makes_steps_of_one_size_from_the_first_on():
    params, state = {"b": np.array([2.0])}, adamw_state({"b": np.array([2.0])})
    for t in range(1, 30):
        params, state = adamw(params, {"b": np.array([0.3])}, state, 0.01)
        assert_allclose(params["b"], 2.0 - 0.01 * t, rtol=0, atol=1e-9)


def test_decay_is_decoupled_so_the_moments_never_see_it():
    params, gradients = tree(0), [tree(n) for n in (1, 2, 3)]
    _, plain = run(0.1, params, gradients, weight_decay=0)
    _, decayed = run(0.1, params, gradients, weight_decay=0.5)
    assert equal(plain["m"], decayed["m"])
    assert equal(plain["v"], decayed["v"])


def test_without_gradients_weights_shrink_by_eta_lambda_a_step_and_biases_stay():
    params = {"W": np.full((2, 3), 4.0), "b": np.full(3, 4.0)}
    nothing = tree_map(np.zeros_like, params)
    moved, _ = run(0.1, params, [nothing] * 5, weight_decay=0.2)
    assert_allclose(moved["W"], 4 * (1 - 0.1 * 0.2) ** 5, rtol=1e-14)
    assert_array_equal(moved["b"], params["b"])


def test_what_decays_may_be_chosen_by_path_and_array():
    params = tree()
    seen = {}

    def decay(path, p):
        seen[path] = p.shape
        return path.endswith("gain")

    nothing = tree_map(np.zeros_like, params)
    moved, _ = run(0.1, params, [nothing], weight_decay=1.0, decay=decay)
    assert seen == {"embedding": (5, 3), "0/attention/W_q": (3, 4), "0/norm/gain": (3,)}
    assert_array_equal(moved["embedding"], params["embedding"])
    assert_allclose(moved["0"]["norm"]["gain"], 0.9 * params["0"]["norm"]["gain"], rtol=1e-14)


def test_clipping_leaves_small_gradients_as_they_are():
    grads = {"W": np.array([[0.3, -0.4]]), "b": np.array([1.2])}
    clipped, norm = clip_gradients(grads, 1.3000001)
    assert_allclose(norm, 1.3, rtol=1e-15)
    assert clipped["W"] is grads["W"]
    assert clipped["b"] is grads["b"]
    assert clip_gradients({"W": np.zeros(2)}, 1.0)[1] == 0.0
    assert clip_gradients({}, 1.0) == ({}, 0.0)


@given(seeds)
def test_clipped_gradients_keep_their_direction_and_have_the_norm_asked_for(seed):
    grads = tree(seed)
    clipped, norm = clip_gradients(grads, norm_wanted := 0.5)
    _, again = clip_gradients(clipped, 1.0)
    assert_allclose(again, min(norm, norm_wanted), rtol=1e-14)
    ratios = [tree_paths(clipped)[p] / tree_paths(grads)[p] for p in tree_paths(grads)]
    assert_allclose(np.concatenate([r.reshape(-1) for r in ratios]), 0.5 / norm, rtol=1e-13)


def test_norm_of_float32_gradients_does_not_overflow():
    grads = {"W": np.full((2, 2), 3e30, np.float32)}
    clipped, norm = clip_gradients(grads, 1.0)
    assert_allclose(norm, 6e30, rtol=1e-6)
    assert_allclose(clipped["W"], 0.5, rtol=1e-6)
    assert clipped["W"].dtype == np.float32


def test_both_optimisers_find_the_bottom_of_a_bowl():
    bottom = tree(7)
    params, state = tree(0), adamw_state(tree(0))
    for t in range(1, 401):
        grads = tree_map(lambda p, b: 2 * (p - b), params, bottom)
        rate = cosine_schedule(t, 400, 0.1)
        params, state = adamw(params, grads, state, rate, weight_decay=0)
    for path, b in tree_paths(bottom).items():
        assert_allclose(tree_paths(params)[path], b, rtol=0, atol=1e-3)
    params, state = tree(0), None
    for _ in range(200):
        grads = tree_map(lambda p, b: 2 * (p - b), params, bottom)
        params, state = sgd(params, grads, 0.1, 0.5, state)
    for path, b in tree_paths(bottom).items():
        assert_allclose(tree_paths(params)[path], b, rtol=0, atol=1e-12)


@given(st.integers(1, 5000), st.integers(1, 400), st.integers(1, 3000))
def test_warmup_rises_in_a_line_then_falls_with_the_root_and_peaks_where_they_meet(t, d, warmup):
    peak = 1 / math.sqrt(d * warmup)
    expected = peak * t / warmup if t <= warmup else peak * math.sqrt(warmup / t)
    assert_allclose(warmup_schedule(t, d, warmup), expected, rtol=1e-12)
    assert warmup_schedule(t, d, warmup) <= peak * (1 + 1e-12)


@given(st.integers(2, 400), st.floats(0.0, 0.9), st.floats(0.0, 1.0))
def test_cosine_rises_to_its_peak_and_falls_to_its_floor_without_turning_back(steps, warmup, floor):
    rates = [cosine_schedule(t, steps, 3.0, warmup, floor) for t in range(1, steps + 1)]
    top = round(warmup * steps)
    assert_allclose(rates[-1], 3.0 * floor if top < steps else 3.0, rtol=0, atol=1e-12)
    rising, falling = rates[:top], rates[max(top - 1, 0) :]
    assert not top or rising[-1] == 3.0
    assert all(a < b for a, b in pairwise(rising))
    assert all(a >= b - 1e-15 for a, b in pairwise(falling))


# ---- published and hand-worked values -----------------------------------------------------------


def test_three_steps_of_one_weight_worked_by_hand():
    # beta_1 = 0.5, beta_2 = 0.75, eta = 0.1, lambda = 0.5, gradients 1, -2, 0
    # t = 1: m = .5, v = .25, m_hat = 1, v_hat = 1
    #        theta = 1 - .1 (1 + .5 1)
    # t = 2: m = -.75, v = 1.1875, m_hat = -1, v_hat = 1.1875/.4375 = 2.7142857
    #        theta = .85 - .1 (-1/1.6475090 + .5 .85)
    # t = 3: m = -.375, v = .890625, m_hat = -.4285714, v_hat = .890625/.578125 = 1.5405405
    #        theta = .8681977 - .1 (-.4285714/1.2411852 + .5 .8681977)
    params, state = {"w": np.array([[1.0]])}, adamw_state({"w": np.array([[1.0]])})
    expected = [
        (0.85, 0.5, 0.25),
        (0.8681977, -0.75, 1.1875),
        (0.8593170, -0.375, 0.890625),
    ]
    for g, (theta, m, v) in zip([1.0, -2.0, 0.0], expected, strict=True):
        params, state = adamw(
            params, {"w": np.array([[g]])}, state, 0.1, (0.5, 0.75), 1e-12, weight_decay=0.5
        )
        assert_allclose(params["w"], theta, rtol=0, atol=5e-8)
        assert_allclose([state["m"]["w"].item(), state["v"]["w"].item()], [m, v], rtol=1e-14)


def test_schedule_of_the_base_model_has_its_known_peak():
    rates = [warmup_schedule(t, 512, 4000) for t in (1, 2000, 4000, 16000, 100_000)]
    assert_allclose(rates[2], 6.98771243e-4, rtol=1e-8)
    assert_allclose(rates[0], 1.74692811e-7, rtol=1e-8)
    assert_allclose([rates[1], rates[3]], rates[2] / 2, rtol=1e-12)
    assert_allclose(rates[4], 1.39754249e-4, rtol=1e-8)


def test_cosine_schedule_has_its_values_at_the_quarters():
    # 4 of 20 steps rise; at half of the rest (12) cos is 0, at a quarter (8) sqrt(1/2)
    rates = [cosine_schedule(t, 20, 2.0, warmup=0.2, floor=0.1) for t in (1, 4, 8, 12, 16, 20)]
    expected = [0.5, 2.0, 2 * (0.1 + 0.9 * 0.8535534), 1.1, 2 * (0.1 + 0.9 * 0.1464466), 0.2]
    assert_allclose(rates, expected, rtol=1e-7)
    assert cosine_schedule(25, 500, 5e-3) == 5e-3  # 5 % of 500 steps
    assert_allclose(cosine_schedule(500, 500, 5e-3), 1e-4, rtol=1e-12)
    assert_allclose(cosine_schedule(1, 10, 1.0, warmup=0), 0.02 + 0.98 * 0.9755283, rtol=1e-7)
    assert cosine_schedule(10, 10, 1.0, warmup=1) == 1.0


# ---- dtype, purity, bad input -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "moments"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64")]
)
def test_dtypes_are_kept_even_when_gradients_and_rates_are_wider(dtype, moments):
    params, grads = tree(0, dtype), tree(1, np.float64)
    state, rate = adamw_state(params), np.float64(0.1)
    assert {x.dtype for x in tree_paths(state["m"]).values()} == {np.dtype(moments)}
    for _ in range(2):
        params, state = adamw(params, grads, state, rate)
    assert {x.dtype for x in tree_paths(params).values()} == {np.dtype(dtype)}
    assert {x.dtype for x in tree_paths(state["m"]).values()} == {np.dtype(moments)}
    assert {x.dtype for x in tree_paths(state["v"]).values()} == {np.dtype(moments)}
    params, velocity = sgd(params, grads, rate, 0.5)
    params, velocity = sgd(params, grads, rate, 0.5, velocity)
    assert {x.dtype for x in tree_paths(params).values()} == {np.dtype(dtype)}
    assert {x.dtype for x in tree_paths(velocity).values()} == {np.dtype(moments)}
    assert type(warmup_schedule(3, 8, 4)) is float is type(cosine_schedule(3, 8, np.float32(1)))


def test_float16_parameters_are_moved_in_float32():
    params, grads = {"b": np.array([1.0], np.float16)}, {"b": np.array([1e-4], np.float16)}
    _, state = run(0.1, params, [grads])
    assert_allclose(state["v"]["b"], 0.02 * np.float64(np.float16(1e-4)) ** 2, rtol=1e-5)


def test_a_parameter_of_no_axis_stays_an_array_step_after_step():
    """FIRE has two. NumPy makes a number of what is computed from it, and a number has no tape."""
    params = {"c": np.array(2.0, np.float32)}
    for momentum in (0.0, 0.5):
        moved, state = sgd(params, {"c": np.array(1.0, np.float32)}, 0.5, momentum)
        assert isinstance(moved["c"], np.ndarray) and isinstance(state["c"], np.ndarray)
        assert moved["c"] == 1.5 and moved["c"].dtype == np.float32
    state, decay = adamw_state(params), lambda path, p: True
    for _ in range(2):
        params, state = adamw(params, params, state, 0.1, decay=decay)
        leaves = params["c"], state["m"]["c"], state["v"]["c"]
        assert all(isinstance(leaf, np.ndarray) and leaf.shape == () for leaf in leaves)
    grads, _ = clip_gradients({"c": np.array(3.0)}, 1.0)
    assert isinstance(grads["c"], np.ndarray) and grads["c"] == 1


def test_nothing_that_goes_in_is_changed():
    params, grads = tree(0), tree_map(lambda g: 100 * g, tree(1))
    _, state = run(0.1, params, [tree(2)])
    velocity = tree(3)
    before = copy.deepcopy((params, grads, state, velocity))
    for array in [*tree_paths(params).values(), *tree_paths(grads).values()]:
        array.flags.writeable = False
    adamw(params, grads, state, 0.1)
    sgd(params, grads, 0.1, 0.9, velocity)
    clip_gradients(grads, 1.0)
    after = (params, grads, state, velocity)
    assert all(equal(a, b) for a, b in zip(before, after, strict=True))


W = np.ones((2, 3))
P = {"0": {"W": W, "b": np.ones(3)}}
STATE = adamw_state(P)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: adamw(P, {"0": {"W": W}}, STATE, 0.1),
            "adamw: params and grads must have the same keys; got '0/b' in params and not in grads",
        ),
        (
            lambda: adamw(P, {"0": {**P["0"], "c": W}}, STATE, 0.1),
            "adamw: params and grads must .*; got '0/c' in grads and not in params",
        ),
        (lambda: adamw(P, {"0": W}, STATE, 0.1), "got '0/W' in params and not in grads"),
        (lambda: adamw(P["0"], {"W": P, "b": W}, adamw_state(P["0"]), 0.1), "got 'the array W'"),
        (
            lambda: adamw(P, {"0": {"W": W.T, "b": W[0]}}, STATE, 0.1),
            r"adamw: the gradient of '0/W' must have the shape of its .* \(2, 3\); got \(3, 2\)",
        ),
        (
            lambda: adamw(P, P, {"m": P}, 0.1),
            r"state must come from adamw_state; got the keys \['m",
        ),
        (lambda: adamw(P, P, None, 0.1), "adamw: state must come from adamw_state; got NoneType"),
        (
            lambda: adamw(P, P, {**STATE, "m": {"0": {"W": W}}}, 0.1),
            "params and the moments m must have the same keys; got '0/b' in params",
        ),
        (lambda: adamw(P, P, {**STATE, "step": -1}, 0.1), "step of the state must be at least 0"),
        (lambda: adamw(P, P, STATE, -0.1), "adamw: learning_rate must be at least 0; got -0.1"),
        (lambda: adamw(P, P, STATE, math.nan), "adamw: learning_rate must be finite; got nan"),
        (lambda: adamw(P, P, STATE, 0.1, (0.9, 1.0)), r"betas\[1\] must be at least 0 and below 1"),
        (lambda: adamw(P, P, STATE, 0.1, (-0.1, 0.9)), r"betas\[0\] must be at least 0 and below"),
        (lambda: adamw(P, P, STATE, 0.1, eps=0), "adamw: eps must be above 0; got 0"),
        (
            lambda: adamw(P, P, STATE, 0.1, weight_decay=-1),
            "weight_decay must be at least 0; got -1",
        ),
        (
            lambda: adamw_state({"0": {"table": np.arange(3)}}),
            "adamw_state: the parameter '0/table' must be floating point; got dtype int64",
        ),
        (
            lambda: adamw({"n": 1}, {"n": 1}, adamw_state({"n": 1.0}), 0.1),
            "adamw: the parameter 'n'",
        ),
        (
            lambda: adamw(P, {"0": {"W": W, "b": None}}, STATE, 0.1),
            "gradient of '0/b' must hold real",
        ),
        (
            lambda: adamw_state({"0": {"W": [[1.0], [2.0, 3.0]]}}),
            r"adamw_state: the parameter '0/W' must have rows of one length; got \[\[1.0\], \[2",
        ),
        (
            lambda: sgd({"W": [[1.0], [2.0, 3.0]]}, {"W": 1.0}, 0.1),
            "sgd: the parameter 'W' must have rows of one length",
        ),
        (lambda: sgd(P, {"0": {"W": W}}, 0.1), "sgd: params and grads must have the same keys"),
        (
            lambda: sgd(P, P, 0.1, 0.9, {"0": {}}),
            "sgd: params and the state must have the same keys",
        ),
        (
            lambda: sgd(P, {"0": {"W": W, "b": W}}, 0.1),
            "sgd: the gradient of '0/b' must have the sh",
        ),
        (lambda: sgd(P, P, 0.1, 1.0), "sgd: momentum must be at least 0 and below 1; got 1"),
        (lambda: sgd(P, P, -1), "sgd: learning_rate must be at least 0; got -1"),
        (lambda: clip_gradients(P, 0), "clip_gradients: max_norm must be above 0; got 0"),
        (
            lambda: clip_gradients({"0": {"W": np.array([1, np.nan])}}, 1),
            "clip_gradients: gradients must be finite; the one of '0/W' has the norm nan",
        ),
        (lambda: clip_gradients({"W": np.array([np.inf])}, 1), "'W' has the norm inf"),
        (
            lambda: tree_map(abs, P, {}),
            "tree_map: the first tree and tree 2 must .* got '0' in the f",
        ),
        (lambda: tree_paths(W), "tree_paths: tree must be a dictionary of arrays; got ndarray"),
        (
            lambda: not_finite({"a": {"b": "x"}}),
            "not_finite: the array 'a/b' must hold real numbers",
        ),
        (lambda: warmup_schedule(0, 512, 4000), "warmup_schedule: step must be at least 1; got 0"),
        (lambda: warmup_schedule(1.5, 512, 4000), "step must be a whole number; got 1.5"),
        (lambda: warmup_schedule(1, 512, 0), "warmup_schedule: warmup must be at least 1; got 0"),
        (lambda: warmup_schedule(1, 0, 10), "warmup_schedule: d_model must be at least 1; got 0"),
        (lambda: cosine_schedule(0, 9, 1.0), "cosine_schedule: step must be at least 1; got 0"),
        (lambda: cosine_schedule(10, 9, 1.0), "step must be from 1 to steps = 9; got 10"),
        (lambda: cosine_schedule(1, 9, 0.0), "cosine_schedule: peak must be above 0; got 0"),
        (lambda: cosine_schedule(1, 9, 1.0, warmup=5), "warmup must be from 0 to 1; got 5"),
        (lambda: cosine_schedule(1, 9, 1.0, floor=-0.1), "floor must be from 0 to 1; got -0.1"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
