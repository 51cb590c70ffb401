"""Cross-entropy: loop oracle, theorems, published values, dtype, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import cross_entropy, log_softmax, value_and_grad

seeds = st.integers(0, 2**32 - 1)
B, L, V = 2, 3, 5


def data(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def loss_by_loops(logits, targets, ignore=None, eps=0.0):
    """The formula of the module, one token and one class at a time."""
    total, n = 0.0, 0
    for place in np.ndindex(*targets.shape):
        if targets[place] == ignore:
            continue
        row = [float(x) for x in logits[place]]
        log_sum = math.log(sum(math.exp(x) for x in row))
        for v, x in enumerate(row):
            share = (1 - eps) * (v == targets[place]) + eps / len(row)
            total -= share * (x - log_sum)
        n += 1
    return total / n


LOGITS, TARGETS = 3 * data(B, L, V), np.array([[4, 0, 2], [2, 3, 1]])


# ---- loop oracle --------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [0.0, 0.1, 0.75])
@pytest.mark.parametrize("ignore", [None, 2, 0, -100])
def test_loss_equals_the_formula_token_by_token(ignore, eps):
    expected = loss_by_loops(LOGITS, TARGETS, ignore, eps)
    assert_allclose(cross_entropy(LOGITS, TARGETS, ignore, eps), expected, rtol=1e-14)


def test_padding_may_be_marked_from_outside_the_vocabulary():
    marked = np.where(TARGETS == 2, -100, TARGETS)
    assert cross_entropy(LOGITS, marked, ignore=-100) == cross_entropy(LOGITS, TARGETS, ignore=2)


def test_logits_of_any_number_of_axes():
    flat = cross_entropy(LOGITS.reshape(-1, V), TARGETS.reshape(-1))
    assert cross_entropy(LOGITS, TARGETS) == flat
    one = cross_entropy(LOGITS[0, 0], 4)
    assert_allclose(one, loss_by_loops(LOGITS[:1, 0], np.array([4])), rtol=1e-14)
    assert np.shape(one) == ()
    assert cross_entropy([[0.0, 1.0]], [1]) == cross_entropy([[0, 1]], [1])


# ---- theorems -----------------------------------------------------------------------------------


@given(seeds, st.floats(-1e3, 1e3))
def test_constant_added_to_the_logits_of_a_token_changes_nothing(seed, constant):
    logits = data(B, L, V, seed=seed)
    loss = cross_entropy(logits, TARGETS, label_smoothing=0.2)
    moved = cross_entropy(logits + constant, TARGETS, label_smoothing=0.2)
    assert_allclose(moved, loss, rtol=0, atol=1e-11)


@given(seeds, st.integers(1, 5), st.integers(1, 5))
def test_mean_is_over_tokens_and_not_over_sequences(seed, a, b):
    """Sequences of lengths a and b weigh a and b."""
    logits = data(2, 5, V, seed=seed)
    targets = np.random.default_rng(seed).integers(0, V, (2, 5))
    targets[0, a:] = targets[1, b:] = -1
    first, second = (cross_entropy(logits[n], targets[n], ignore=-1) for n in (0, 1))
    both = cross_entropy(logits, targets, ignore=-1)
    assert_allclose(both, (a * first + b * second) / (a + b), rtol=1e-12)


def test_ignored_logits_are_never_looked_at():
    logits = np.array([[0.0, 1.0], [np.nan, np.inf]])
    assert cross_entropy(logits, [1, 0], ignore=0) == cross_entropy(logits[:1], [1])


@pytest.mark.parametrize("eps", [0.0, 0.1, 0.9])
def test_smoothed_loss_is_least_where_the_softmax_is_the_smoothed_target(eps):
    target = np.full(V, eps / V)
    target[3] += 1 - eps
    best = cross_entropy(np.log(target + 1e-300), 3, label_smoothing=eps)
    entropy = -sum(t * math.log(t) for t in target if t > 0)
    assert_allclose(best, entropy, rtol=0, atol=1e-12)
    for seed in range(20):
        near = np.log(target + 1e-300) + 0.1 * data(V, seed=seed)
        assert cross_entropy(near, 3, label_smoothing=eps) >= best - 1e-15


# ---- published values ---------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_uniform_logits_give_log_v(eps):
    assert_allclose(
        cross_entropy(np.zeros((4, 7)), [0, 3, 6, 6], label_smoothing=eps), math.log(7), rtol=1e-14
    )


def test_worked_example_with_smoothing():
    """p = (1, 2, 5)/8, target 2: -(0.8 ln 5/8 + 0.1 ln 1/8 + 0.1 ln 2/8) with eps = 0.3."""
    logits = np.log([1.0, 2.0, 5.0])
    expected = -(0.8 * math.log(5 / 8) + 0.1 * math.log(1 / 8) + 0.1 * math.log(2 / 8))
    assert_allclose(cross_entropy(logits, 2, label_smoothing=0.3), expected, rtol=1e-14)


def test_huge_logits_neither_overflow_nor_lose_the_loss():
    assert float(cross_entropy([[1e4, 0.0]], [1])) == 1e4
    assert float(cross_entropy([[1e4, 0.0]], [0])) == 0.0
    assert float(cross_entropy([[0.0, -np.inf]], [1])) == np.inf
    assert float(cross_entropy([[0.0, -np.inf]], [0])) == 0.0


@pytest.mark.parametrize(
    ("dtype", "offset", "tolerance"),
    [(np.float32, 1e7, 1e-6), (np.float32, 1e4, 1e-6), (np.float64, 1e15, 1e-12)],
)
@pytest.mark.parametrize("eps", [0.0, 0.1])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("spread", [0, 2, 300])
def test_logits_far_from_zero_lose_nothing_of_the_loss(dtype, offset, tolerance, eps, sign, spread):
    """The loss of what the logits are, once rounded to their dtype at that offset."""
    n, V = 200, 20
    offsets = sign * offset * np.random.default_rng(1).uniform(0.5, 1, (n, 1))
    logits = (offsets + spread * data(n, V)).astype(dtype)
    targets = np.random.default_rng(2).integers(0, V, n)
    near = (logits - logits.max(axis=1, keepdims=True)).astype(np.float64)  # exact: few bits apart
    expected = loss_by_loops(near, targets, eps=eps)
    loss, (_, grad) = (
        cross_entropy(logits, targets, label_smoothing=eps),
        value_and_grad(lambda x: cross_entropy(x, targets, label_smoothing=eps))(logits),
    )
    assert abs(float(loss) - expected) < tolerance * max(1, abs(expected))
    p = np.exp(near) / np.exp(near).sum(axis=1, keepdims=True)
    wanted = (p - (1 - eps) * np.eye(V)[targets] - eps / V) / n
    assert_allclose(grad, wanted, rtol=0, atol=tolerance / n)


# ---- dtype, purity, bad input -------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 2e-3), (np.float32, 1e-6)])
def test_loss_keeps_the_dtype_of_the_logits(dtype, tolerance):
    logits = LOGITS.astype(dtype)
    loss = cross_entropy(logits, TARGETS, label_smoothing=0.1)
    assert loss.dtype == dtype
    expected = loss_by_loops(logits, TARGETS, None, 0.1)
    assert_allclose(float(loss), expected, rtol=0, atol=tolerance)


def test_float16_is_computed_in_float32_and_rounded_once():
    for seed in range(20):
        logits = data(B, L, V, dtype=np.float16, seed=seed)
        exact = loss_by_loops(logits, TARGETS, None, 0.1)
        assert cross_entropy(logits, TARGETS, label_smoothing=0.1) == np.float16(exact)


def test_inputs_stay_as_they_were():
    logits, targets = LOGITS.copy(), TARGETS.copy()
    cross_entropy(logits, targets, 2, 0.1)
    assert_array_equal(logits, LOGITS)
    assert_array_equal(targets, TARGETS)
    assert_allclose(
        cross_entropy(logits[0], targets[0]),
        -log_softmax(logits[0])[range(3), targets[0]].mean(),
        rtol=1e-14,
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cross_entropy(LOGITS, TARGETS[0]), r"shape of logits without its last.*\(2, 3\)"),
        (lambda: cross_entropy(1.0, 0), r"logits must have the axes \(..., V\); got shape \(\)"),
        (lambda: cross_entropy(LOGITS, TARGETS + 1), "must be from 0 to V - 1 = 4; got 5, give it"),
        (
            lambda: cross_entropy(LOGITS, TARGETS - 1),
            "must be from 0 to V - 1 = 4; got -1, give it",
        ),
        (lambda: cross_entropy(LOGITS, TARGETS + 1, ignore=3), "V - 1 = 4; got 5$"),
        (lambda: cross_entropy(LOGITS, TARGETS * 1.0), "targets must be whole numbers.*float64"),
        (lambda: cross_entropy(LOGITS, 0 * TARGETS, 0), "at least one target must count; got none"),
        (lambda: cross_entropy(np.zeros((0, 3)), []), "at least one target must count; got none"),
        (lambda: cross_entropy(LOGITS, TARGETS, 1.5), "ignore must be a whole number; got 1.5"),
        (lambda: cross_entropy(LOGITS, TARGETS, None, 1.0), "from 0 to below 1; got 1"),
        (lambda: cross_entropy(LOGITS, TARGETS, None, -0.1), "from 0 to below 1; got -0.1"),
        (lambda: cross_entropy(LOGITS, TARGETS, None, np.nan), "label_smoothing must be finite"),
        (lambda: cross_entropy(LOGITS * 1j, TARGETS), "logits must hold real numbers"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=f"cross_entropy: .*{message}"):
        call()
