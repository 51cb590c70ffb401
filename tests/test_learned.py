"""Learned tables and their hierarchical stretch: loop oracle, theorems, known sizes, bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy.absolute.learned import hierarchical, learned

alphas = st.floats(-2.0, 3.0).filter(lambda a: abs(1 - a) > 0.05)
sizes = st.integers(1, 12)
seeds = st.integers(0, 2**32 - 1)


def table_of(N, D, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal((N, D)).astype(dtype)


def hierarchical_by_loops(table, position, alpha):
    """Su's two formulas for one position, one component at a time."""
    N, D = table.shape
    i, j = divmod(position, N)
    code = np.zeros(D)
    for c in range(D):
        u_i = (table[i, c] - alpha * table[0, c]) / (1 - alpha)
        u_j = (table[j, c] - alpha * table[0, c]) / (1 - alpha)
        code[c] = alpha * u_i + (1 - alpha) * u_j
    return code


# ---- loop oracle --------------------------------------------------------------------------------


def test_each_position_gets_its_own_row():
    N, D = 7, 3
    table, positions = table_of(N, D), np.array([[6, 0], [2, 2], [5, 1], [0, 3]])
    codes = learned(table, positions)
    assert codes.shape == (4, 2, D)
    for row, column in np.ndindex(positions.shape):
        for c in range(D):
            assert codes[row, column, c] == table[positions[row, column], c]


@pytest.mark.parametrize("alpha", [0.4, 0.0, 0.9, -0.5, 2])
def test_stretched_table_equals_the_two_formulas_at_every_position(alpha):
    N, D = 5, 3
    table = table_of(N, D)
    expected = [hierarchical_by_loops(table, position, alpha) for position in range(N * N)]
    assert_allclose(hierarchical(table, np.arange(N * N), alpha), expected, rtol=0, atol=1e-13)


def test_default_weight_of_the_leading_digit_is_four_tenths():
    table = table_of(3, 2)
    expected = [hierarchical_by_loops(table, position, 0.4) for position in range(9)]
    assert_allclose(hierarchical(table, np.arange(9)), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("look_up", [learned, hierarchical])
def test_positions_may_have_any_shape_and_any_whole_dtype(look_up):
    N, D = 4, 3
    table = table_of(N, D)
    assert look_up(table, 2).shape == (D,)
    assert look_up(table, []).shape == (0, D)
    assert look_up(np.zeros((0, D)), []).shape == (0, D)
    assert look_up(table, np.zeros((2, 5, 1), np.uint8)).shape == (2, 5, 1, D)


def test_small_integer_positions_reach_the_end_of_a_long_table():
    table = table_of(300, 2)
    codes = hierarchical(table, np.array([127], np.int8))
    assert_allclose(codes, table[127:128], rtol=0, atol=1e-15)
    assert_array_equal(learned(table, np.array([255], np.uint8)), table[255:256])


# ---- theorems -----------------------------------------------------------------------------------


@given(sizes, sizes, alphas, seeds)
def test_first_n_codes_of_the_stretched_table_are_the_table(N, D, alpha, seed):
    table = table_of(N, D, seed=seed)
    assert_allclose(hierarchical(table, np.arange(N), alpha), table, rtol=0, atol=1e-12)


@given(sizes, alphas, seeds)
def test_one_step_of_a_digit_moves_the_code_alike_whatever_the_other_digit(N, alpha, seed):
    codes = hierarchical(table_of(N, 3, seed=seed), np.arange(N * N), alpha).reshape(N, N, 3)
    by_row, by_column = np.diff(codes, axis=0), np.diff(codes, axis=1)
    assert_allclose(by_row, np.broadcast_to(by_row[:, :1], by_row.shape), rtol=0, atol=1e-10)
    assert_allclose(by_column, np.broadcast_to(by_column[:1], by_column.shape), rtol=0, atol=1e-10)


def test_equal_weights_give_swapped_digits_one_code_and_no_other_weights_do():
    N = 6
    table, swapped = table_of(N, 4), np.arange(N * N).reshape(N, N).T.ravel()
    halves = hierarchical(table, np.arange(N * N), 0.5)
    assert_allclose(halves, hierarchical(table, swapped, 0.5), rtol=0, atol=1e-15)
    assert len(np.unique(halves.round(9), axis=0)) == N * (N + 1) // 2  # 21 codes for 36 positions
    codes = hierarchical(table, np.arange(N * N), 0.4)
    assert len(np.unique(codes.round(9), axis=0)) == N * N


def test_leading_weight_of_zero_forgets_the_leading_digit():
    table = table_of(4, 3)
    assert_allclose(hierarchical(table, np.arange(16), 0), np.tile(table, (4, 1)), rtol=0, atol=0)


# ---- known sizes --------------------------------------------------------------------------------


def test_table_of_512_rows_ends_at_position_511_and_the_stretched_one_at_262143():
    table = table_of(512, 768, np.float32)
    assert table.size == 393_216
    assert_array_equal(learned(table, [511]), table[-1:])
    with pytest.raises(ValueError, match="table of 512 rows serves positions 0 to 511; got 512"):
        learned(table, np.arange(1024))
    assert hierarchical(table, [512, 1023, 262_143]).shape == (3, 768)
    with pytest.raises(ValueError, match="512 rows serves positions 0 to 262143; got 262144"):
        hierarchical(table, [0, 262_144, -1])


def test_two_rows_make_four_codes_that_can_be_checked_by_hand():
    codes = hierarchical([[0.0], [3.0]], np.arange(4), alpha=0.25)  # u = 0, 4
    assert codes.ravel().tolist() == [0.0, 3.0, 1.0, 4.0]


# ---- dtype, purity, bad input -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_dtype_of_the_table_is_kept_and_nothing_is_changed_in_place(dtype):
    table, positions = table_of(5, 3, dtype), np.array([4, 0, 2])
    kept = table.copy(), positions.copy()
    codes = learned(table, positions), hierarchical(table, positions)
    assert [c.dtype for c in codes] == [dtype, dtype]
    assert_array_equal(table, kept[0])
    assert_array_equal(positions, kept[1])
    codes[0][:] = 0  # a copy, not a view of the table
    learned(table, 1)[:] = 0
    assert_array_equal(table, kept[0])


def test_half_precision_is_computed_in_single():
    table, positions = table_of(9, 4, np.float16), np.arange(81)
    codes = hierarchical(table, positions, 0.9)
    exact = hierarchical(table.astype(np.float64), positions, 0.9)
    assert_allclose(codes.astype(np.float64), exact, rtol=2**-11, atol=1e-6)


def test_integer_tables_become_float64():
    assert learned([[1, 2]], [0]).dtype == np.float64
    assert hierarchical([[1, 2]], [0]).dtype == np.float64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: learned(np.zeros((4, 2)), [4]), "learned: a table of 4 rows .* 0 to 3; got 4"),
        (lambda: learned(np.zeros((4, 2)), [0, -1]), "learned: a table of 4 rows .* got -1"),
        (lambda: learned(np.zeros((4, 2)), [1.0]), "learned: positions must be whole numbers.*64"),
        (lambda: learned(np.zeros((4, 2)), [True]), "integers or real numbers; got dtype bool"),
        (lambda: learned(np.zeros(4), [0]), r"learned: table must have the axes \(N, D\).*\(4,\)"),
        (lambda: learned(np.zeros((2, 4, 3)), [0]), r"table must have the axes.*\(2, 4, 3\)"),
        (lambda: learned([[1j]], [0]), "learned: table must hold real numbers; got dtype complex"),
        (lambda: hierarchical(np.zeros((4, 2)), [16]), "hierarchical: a table .* 0 to 15; got 16"),
        (lambda: hierarchical(np.zeros((4, 2)), [-3]), "hierarchical: .* got -3"),
        (lambda: hierarchical(np.zeros((4, 2)), [0.5]), "hierarchical: positions must be whole"),
        (lambda: hierarchical(np.zeros((4, 2)), [0], 1), "hierarchical: alpha must not be 1"),
        (lambda: hierarchical(np.zeros((4, 2)), [0], 1.0), "hierarchical: alpha must not be 1"),
        (lambda: hierarchical(np.zeros((4, 2)), [0], np.nan), "alpha must be finite; got nan"),
        (lambda: hierarchical(np.zeros(4), [0]), r"hierarchical: table must have the axes \(N, D"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
