"""Which keys a query may attend to: each mask against a loop, what they share, bad input."""

from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pe_numpy.transformer.masks import Causal, Chunk, Full, Window

RULES = [  # a mask, and its rule for a query at i and a key at j
    (Causal(), lambda i, j: j <= i),
    (Window(1), lambda i, j: j == i),
    (Window(3), lambda i, j: i - 3 < j <= i),
    (Window(3, sinks=2), lambda i, j: j <= i and (i - j < 3 or 0 <= j < 2)),
    (Window(1, sinks=1), lambda i, j: j == i or j == 0 <= i),
    (Window(99), lambda i, j: j <= i),
    (Chunk(1), lambda i, j: j == i),
    (Chunk(3), lambda i, j: j <= i and i // 3 == j // 3),
    (Chunk(99), lambda i, j: j <= i and (i < 0) == (j < 0)),
    (Full(), lambda i, j: True),
]
rules = pytest.mark.parametrize(("rule", "allowed"), RULES, ids=[repr(rule) for rule, _ in RULES])


def by_loops(allowed, q_positions, k_positions):
    return [[bool(allowed(int(i), int(j))) for j in k_positions] for i in q_positions]


@rules
def test_each_mask_is_its_rule_for_every_pair(rule, allowed):
    for i, j in (
        (np.arange(12), np.arange(12)),
        (np.arange(7, 12), np.arange(12)),  # the newest, behind a cache
        (np.array([11]), np.arange(12)),
        (np.array([0, 4, 2, 9]), np.array([5, 0, 9, 3, 3])),  # in any order, and twice
        (np.arange(3), np.array([-2, -1, 0, 1, 2])),  # before the first
    ):
        mask = rule.mask(i, j)
        mask = np.ones((len(i), len(j)), bool) if mask is None else mask
        assert mask.dtype == bool and mask.tolist() == by_loops(allowed, i, j)


@rules
def test_a_batch_of_positions_has_a_mask_for_each_row(rule, allowed):
    j = np.stack([np.arange(9), np.maximum(np.arange(9) - 4, 0)])
    mask = rule.mask(j[:, 5:], j)
    if mask is None:
        return
    assert mask.shape == (2, 4, 9)
    for b in range(2):
        assert mask[b].tolist() == by_loops(allowed, j[b, 5:], j[b])


@pytest.mark.parametrize("rule", [rule for rule, _ in RULES if rule != Full()])
def test_every_mask_of_a_decoder_hides_the_future_and_no_token_itself(rule):
    assert isinstance(rule, Causal) and not isinstance(Full(), Causal)
    mask = rule.mask(np.arange(12), np.arange(12))
    assert not (mask & ~np.tri(12, dtype=bool)).any() and mask.diagonal().all()


def test_masks_that_are_equal_are_one_in_a_dictionary():
    """So that a call makes each mask once."""
    for rule, _ in RULES:
        same = type(rule)(**{f.name: getattr(rule, f.name) for f in fields(rule)})
        assert rule == same and hash(rule) == hash(same)
    assert len({rule for rule, _ in RULES}) == len(RULES)
    assert Window(3) != Chunk(3) and Causal() != Full() and Window(3) != Window(3, sinks=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Window(0), "Window: size must be at least 1; got 0"),
        (lambda: Window(-3), "Window: size must be at least 1; got -3"),
        (lambda: Window(2.0), "Window: size must be a whole number; got 2.0"),
        (lambda: Window("4"), "Window: size must be a whole number; got '4'"),
        (lambda: Window(None), "Window: size must be a whole number; got None"),
        (lambda: Window(True), "Window: size must be a whole number; got True"),
        (lambda: Window(4, -1), "Window: sinks must be at least 0; got -1"),
        (lambda: Window(4, None), "Window: sinks must be a whole number; got None"),
        (lambda: Window(4, 1.0), "Window: sinks must be a whole number; got 1.0"),
        (lambda: Chunk(0), "Chunk: size must be at least 1; got 0"),
        (lambda: Chunk(2.5), "Chunk: size must be a whole number; got 2.5"),
        (lambda: Chunk(False), "Chunk: size must be a whole number; got False"),
        (lambda: Causal().mask(3, [0, 1]), "q_positions must be an axis of positions"),
        (lambda: Window(2).mask([3], ["a"]), "k_positions must be integers or real numbers"),
        (lambda: Chunk(2).mask([np.nan], [0]), "q_positions must be finite"),
        (lambda: Window(2).mask([[3]] * 2, [[1]] * 3), "batch axes must broadcast"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_sizes_of_numpy_are_taken():
    assert_array_equal(Window(np.int64(2)).mask([3], range(4)), [[False, False, True, True]])
    assert_array_equal(Chunk(np.uint8(2)).mask([3], range(4)), [[False, False, True, True]])
