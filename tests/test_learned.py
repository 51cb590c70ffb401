"""Learned tables, stretched and resized: loop oracle, theorems, known values, bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import value_and_grad
from pe_numpy.absolute.learned import hierarchical, learned, resize_matrix

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


def cubic(x, a):
    """Keys' kernel at the distance x, piece by piece."""
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def resized_by_loops(values, new, mode, align_corners=False, antialias=False):
    """Each new value as a sum over its neighbours, one at a time."""
    old, made = len(values), []
    for r in range(new):
        at = (r + 0.5) * old / new - 0.5
        if align_corners:
            at = r * (old - 1) / (new - 1) if new > 1 else 0.0
        wide = max(old / new, 1.0) if antialias else 1.0
        total = weights = 0.0
        for j in range(-3 * old - 3, 4 * old + 3):
            x = (at - j) / wide
            inside = 0 <= j < old
            if mode == "cubic":
                weight = cubic(x, -0.5 if antialias else -0.75)
            else:
                weight = max(1 - abs(x), 0.0)
            if inside or not antialias:  # with antialias there is nothing beyond the ends
                total += weight * values[min(max(j, 0), old - 1)]
                weights += weight
        made.append(total / weights if antialias else total)
    return made


WAYS = [{}, {"align_corners": True}, {"antialias": True}]

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


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("way", WAYS)
def test_resized_values_equal_sums_over_neighbours(mode, way):
    for old in (1, 2, 3, 4, 7):
        for new in (1, 2, 3, 5, 6, 11):
            values = table_of(old, 1)[:, 0]
            W = resize_matrix(old, new, mode, **way)
            assert W.shape == (new, old) and W.dtype == np.float64
            expected = resized_by_loops(values, new, mode, **way)
            assert_allclose(W @ values, expected, rtol=0, atol=1e-12)


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


@given(sizes, sizes, st.sampled_from(["linear", "cubic"]), st.sampled_from(WAYS))
def test_rows_of_a_resize_matrix_sum_to_1_and_the_same_size_is_the_identity(old, new, mode, way):
    assert_allclose(resize_matrix(old, new, mode, **way).sum(1), 1, rtol=0, atol=1e-12)
    assert_allclose(resize_matrix(old, old, mode, **way), np.eye(old), rtol=0, atol=1e-12)


@given(sizes, sizes, st.sampled_from(["linear", "cubic"]), st.sampled_from(WAYS))
def test_resizing_upside_down_is_resizing_and_turning_upside_down(old, new, mode, way):
    if new == 1 and "align_corners" in way:  # one row, on the first corner
        assert resize_matrix(old, new, mode, **way)[0, 0] == 1
        return
    W = resize_matrix(old, new, mode, **way)
    assert_allclose(W[::-1, ::-1], W, rtol=0, atol=1e-12)


def test_corners_stay_where_they_are_and_cells_keep_their_line():
    line = np.arange(5.0)
    corners = resize_matrix(5, 9, align_corners=True) @ line
    assert_allclose(corners, np.arange(9) / 2, rtol=0, atol=1e-12)
    cells = resize_matrix(5, 10) @ line
    assert_allclose(cells[1:-1], (np.arange(1, 9) + 0.5) / 2 - 0.5, rtol=0, atol=1e-12)
    assert cells[0] == 0 and cells[-1] == 4


def test_a_of_minus_a_half_reproduces_a_line_and_minus_three_quarters_does_not():
    at, inside = (np.arange(8) + 0.5) * 2.5 - 0.5, slice(1, -1)
    plain = resize_matrix(20, 8, "cubic") @ np.arange(20.0)
    assert f"{np.abs(plain - at)[inside].max():.3f}" == "0.047"
    at = (np.arange(20) + 0.5) * 0.4 - 0.5
    smooth = resize_matrix(8, 20, "cubic", antialias=True) @ np.arange(8.0)
    assert_allclose(smooth[5:-5], at[5:-5], rtol=0, atol=1e-12)


def test_antialias_counts_every_old_row_where_two_neighbours_skip_some():
    assert np.count_nonzero(resize_matrix(12, 3).any(axis=0)) == 6
    assert resize_matrix(12, 3, antialias=True).any(axis=0).all()


def test_a_grid_takes_one_matrix_for_its_rows_and_one_for_its_columns():
    E = np.stack(np.indices((3, 5)), axis=-1).astype(float)  # each cell holds its row and column
    down, right = resize_matrix(3, 4), resize_matrix(5, 7)
    both = np.einsum("yr,rcd,xc->yxd", down, E, right)
    rows, columns = np.meshgrid(down @ np.arange(3), right @ np.arange(5), indexing="ij")
    assert_allclose(both, np.stack([rows, columns], axis=-1), rtol=0, atol=1e-12)


def test_gradient_of_a_resized_table_is_the_transposed_matrix_times_that_of_the_new_one():
    W, target = resize_matrix(4, 7, "cubic"), table_of(7, 3, seed=1)
    E = table_of(4, 3)

    def loss(params):
        return (W @ params["E"] * target).sum()

    gradient = value_and_grad(loss)({"E": E})[1]["E"]
    assert_allclose(gradient, W.T @ target, rtol=0, atol=1e-12)
    step = np.zeros((4, 3))
    step[1, 2] = 1e-6
    measured = (loss({"E": E + step}) - loss({"E": E - step})) / 2e-6
    assert_allclose(gradient[1, 2], measured, rtol=0, atol=1e-8)
    assert (W < 0).any()


def test_linear_resizing_shortens_unrelated_unit_rows_more_than_cubic():
    E = table_of(50, 400)
    E = E / np.linalg.norm(E, axis=1, keepdims=True)
    resized = [resize_matrix(50, 85, mode) @ E for mode in ("linear", "cubic")]
    linear, bicubic = (np.linalg.norm(rows, axis=1).mean() for rows in resized)
    assert linear < bicubic < 1


# ---- known sizes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "way", "expected"),
    [
        ("linear", {}, [0, 0.5, 1.166667, 1.833333, 2.5, 3]),
        ("linear", {"align_corners": True}, [0, 0.6, 1.2, 1.8, 2.4, 3]),
        ("cubic", {}, [-0.086806, 0.40625, 1.212963, 1.787037, 2.59375, 3.086806]),
        (
            "cubic",
            {"antialias": True},
            [-0.065789, 0.411765, 1.166667, 1.833333, 2.588235, 3.065789],
        ),
    ],
)
def test_0_1_2_3_resized_to_six(mode, way, expected):
    assert (resize_matrix(4, 6, mode, **way) @ range(4)).round(6).tolist() == expected


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
        (lambda: resize_matrix(0, 3), "resize_matrix: old must be at least 1; got 0"),
        (lambda: resize_matrix(3, 2.0), "resize_matrix: new must be a whole number; got 2.0"),
        (lambda: resize_matrix(3, 2, "bicubic"), "mode must be 'linear' or 'cubic'; got 'bicubic'"),
        (lambda: resize_matrix(3, 2, "cubic", 1), "align_corners must be True or False; got 1"),
        (lambda: resize_matrix(3, 2, antialias=None), "antialias must be True or False; got None"),
        (lambda: resize_matrix(3, 2, "cubic", True, True), "got both, choose one"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
