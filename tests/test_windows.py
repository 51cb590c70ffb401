"""Offsets in windows: loop oracles, identities, the numbers worked by hand, memory, bad input."""

import math
import tracemalloc

import numpy as np
import pytest
from differences import slopes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    decomposed_scores,
    log_cpb_coordinates,
    offset_bias,
    offset_index,
    relative_distance,
    shaw_scores,
    value_and_grad,
)
from pe_numpy.relative import windows as room

sides = st.integers(1, 5)
DTYPES = (np.float64, np.float32, np.float16)


def pixels(height, width):
    """The row and column of each pixel of a window, row by row."""
    return [(y, x) for y in range(height) for x in range(width)]


def axis_distances(height, width):
    """Distances of the rows and of the columns of one grid."""
    return (
        relative_distance(range(height), range(height)),
        relative_distance(range(width), range(width)),
    )


def pair_distances(height, width):
    """The same for all pairs of pixels."""
    y, x = np.array(pixels(height, width)).T
    return relative_distance(y, y), relative_distance(x, x)


# ---- loop oracles -------------------------------------------------------------------------------


@given(sides, sides)
def test_index_and_bias_equal_those_of_each_pair_of_pixels(h, w):
    table = np.random.default_rng([h, w]).standard_normal(((2 * h - 1) * (2 * w - 1), 2))
    index, bias = offset_index(h, w), offset_bias(table, h, w)
    assert index.shape == (h * w, h * w) and bias.shape == (2, h * w, h * w)
    for i, (y, x) in enumerate(pixels(h, w)):
        for j, (other_y, other_x) in enumerate(pixels(h, w)):
            row = (y - other_y + h - 1) * (2 * w - 1) + x - other_x + w - 1
            assert index[i, j] == row
            assert bias[:, i, j].tolist() == table[row].tolist()


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("by_head", [False, True])
def test_decomposed_scores_equal_those_of_each_pair_of_pixels(by_head, pairs):
    B, H, h, w, K = 2, 3, 2, 4, 5
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, B, H, h * w, K))
    R = rng.standard_normal((H, 2 * h - 1, K) if by_head else (2 * h - 1, K))
    C = rng.standard_normal((H, 2 * w - 1, K) if by_head else (2 * w - 1, K))
    got = decomposed_scores(q, k, R, C, *(pair_distances if pairs else axis_distances)(h, w))
    assert got.shape == (B, H, h * w, h * w)
    for b, n in np.ndindex(B, H):
        rows, columns = (R[n], C[n]) if by_head else (R, C)
        for i, (y, x) in enumerate(pixels(h, w)):
            for j, (other_y, other_x) in enumerate(pixels(h, w)):
                score = q[b, n, i] @ k[b, n, j] / math.sqrt(K)
                score += q[b, n, i] @ rows[y - other_y + h - 1]
                score += q[b, n, i] @ columns[x - other_x + w - 1]
                assert_allclose(got[b, n, i, j], score, rtol=0, atol=1e-12)


@pytest.mark.parametrize("P", [None, 4, (3, 6)])
def test_coordinates_equal_the_formula_offset_by_offset(P):
    h, w = 3, 5
    u = log_cpb_coordinates(h, w, P)
    assert u.shape == ((2 * h - 1) * (2 * w - 1), 2) and u.dtype == np.float64
    P_y, P_x = (h, w) if P is None else (4, 4) if P == 4 else P
    row = 0
    for dy in range(1 - h, h):
        for dx in range(1 - w, w):
            for got, d, side in ((u[row, 0], dy, P_y), (u[row, 1], dx, P_x)):
                size = math.log2(1 + 8 * abs(d) / (side - 1)) / math.log2(8)
                assert_allclose(got, math.copysign(size, d), rtol=0, atol=1e-15)
            row += 1


# ---- the grid as a view -------------------------------------------------------------------------


@given(sides, sides)
def test_the_grid_is_a_read_only_view_with_two_negated_strides(h, w):
    picture = np.random.default_rng([h, w]).standard_normal((3, 2 * h - 1, 2 * w - 1))
    view = room.grid_of(picture, h, w)
    assert view.shape == (3, h, w, h, w) and not view.flags.writeable
    assert np.shares_memory(view, picture)
    head, down, across = picture.strides
    assert view.strides == (head, down, across, -down, -across)
    for y, x, other_y, other_x in np.ndindex(h, w, h, w):
        seen = picture[:, y - other_y + h - 1, x - other_x + w - 1]
        assert_array_equal(view[:, y, x, other_y, other_x], seen)


def test_a_bias_takes_no_index_and_no_second_copy():
    h = w = 32
    table = np.ones(((2 * h - 1) * (2 * w - 1), 2), np.float32)
    tracemalloc.start()
    bias = offset_bias(table, h, w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < bias.nbytes + 2 * table.nbytes + 10_000  # the index alone would be as large


def test_decomposed_scores_make_nothing_of_size_l_s_k():
    h, w, K = 24, 32, 64
    q = np.ones((h * w, K), np.float32)
    tables = np.ones((2 * h - 1, K), np.float32), np.ones((2 * w - 1, K), np.float32)
    distances = axis_distances(h, w)
    tracemalloc.start()
    scores = decomposed_scores(q, q, *tables, *distances)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * scores.nbytes  # a vector for each pair would take 64 times as much


def test_the_bias_is_a_copy():
    table = np.zeros((5, 1))
    bias = offset_bias(table, 1, 3)
    table += 1
    assert bias.max() == 0


# ---- identities ---------------------------------------------------------------------------------


@given(sides, sides)
def test_index_has_its_symmetries(h, w):
    index, N = offset_index(h, w), (2 * h - 1) * (2 * w - 1)
    assert (index + index.T == N - 1).all()
    assert (np.diagonal(index) == N // 2).all()
    assert_array_equal(index[::-1, ::-1], index.T)  # the window turned by 180 degrees
    triangles = [n - np.abs(np.arange(1 - n, n)) for n in (h, w)]
    met = np.bincount(index.ravel(), minlength=N).reshape(2 * h - 1, 2 * w - 1)
    assert_array_equal(met, np.outer(*triangles))  # a corner by one pair
    assert len(np.unique(index)) == N


def test_a_window_one_pixel_high_is_the_window_of_a_line():
    table = np.arange(9.0)[:, None]
    line = relative_distance(range(5), range(5)) + 4
    assert_array_equal(offset_bias(table, 1, 5)[0], line)
    assert_array_equal(offset_bias(table, 5, 1)[0], line)


@given(sides, sides, st.integers(0, 99))
def test_decomposed_scores_are_shaws_on_the_sum_of_two_tables(h, w, seed):
    rng, K = np.random.default_rng(seed), 3
    q, k = rng.standard_normal((2, 2, h * w, K))
    R, C = rng.standard_normal((2 * h - 1, K)), rng.standard_normal((2 * w - 1, K))
    whole = (R[:, None] + C).reshape(-1, K)  # a vector for each offset, counted as by the index
    row = offset_index(h, w) - len(whole) // 2  # Shaw's middle row belongs to 0
    expected = shaw_scores(q, k, whole * math.sqrt(K), row)  # which scales its term
    got = decomposed_scores(q, k, R, C, *axis_distances(h, w))
    assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_the_last_row_of_pixels_by_itself_has_the_same_scores():
    h, w, K = 3, 4, 5
    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((2, 2, h * w, K))
    tables = rng.standard_normal((2 * h - 1, K)), rng.standard_normal((2 * w - 1, K))
    rows, columns = axis_distances(h, w)
    whole = decomposed_scores(q, k, *tables, rows, columns)
    last = decomposed_scores(q[:, -w:], k, *tables, relative_distance([h - 1], range(h)), columns)
    assert_allclose(last, whole[:, -w:], rtol=0, atol=1e-12)
    dy, dx = pair_distances(h, w)  # one query, and any of the keys in any order
    some = [7, 2, 11, 0, 1]
    one = decomposed_scores(q[:, 6:7], k[:, some], *tables, dy[6:7, some], dx[6:7, some])
    assert_allclose(one, whole[:, 6:7, some], rtol=0, atol=1e-12)


def test_pairs_of_a_batch_have_distances_of_their_own():
    B, H, L, S, K = 2, 3, 4, 5, 6
    rng = np.random.default_rng(2)
    q, k = rng.standard_normal((B, H, L, K)), rng.standard_normal((B, H, S, K))
    tables = rng.standard_normal((7, K)), rng.standard_normal((9, K))
    dy, dx = rng.integers(-3, 4, (B, 1, L, S)), rng.integers(-4, 5, (B, 1, L, S))
    got = decomposed_scores(q, k, *tables, dy, dx)
    for b in range(B):
        own = decomposed_scores(q[b], k[b], *tables, dy[b, 0], dx[b, 0])
        assert_allclose(got[b], own, rtol=0, atol=1e-12)


def test_queries_and_keys_of_unequal_grids():
    rng, K = np.random.default_rng(3), 2
    q, k = rng.standard_normal((6, K)), rng.standard_normal((8, K))  # 2 by 3, and 4 by 2
    R, C = rng.standard_normal((7, K)), rng.standard_normal((5, K))  # of the larger sides
    dy = np.array([[2 * y - other for other in range(4)] for y in range(2)])
    dx = np.array([[x - other for other in range(2)] for x in range(3)])
    got = decomposed_scores(q, k, R, C, dy, dx)
    for i, (y, x) in enumerate(pixels(2, 3)):
        for j, (other_y, other_x) in enumerate(pixels(4, 2)):
            position = q[i] @ R[dy[y, other_y] + 3] + q[i] @ C[dx[x, other_x] + 2]
            expected = q[i] @ k[j] / math.sqrt(K) + position
            assert_allclose(got[i, j], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("P", [2, 7, (4, 9)])
def test_an_offset_keeps_its_coordinates_in_a_larger_window(P):
    small = log_cpb_coordinates(3, 4, P).reshape(5, 7, 2)
    large = log_cpb_coordinates(5, 5, P).reshape(9, 9, 2)
    assert_array_equal(large[2:7, 1:8], small)
    assert_array_equal(large, -large[::-1, ::-1])


# ---- dtypes and gradients -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_are_kept_and_half_precision_is_computed_in_float32(dtype):
    h, w, K = 2, 3, 4
    rng = np.random.default_rng(4)
    q, k = rng.standard_normal((2, 2, h * w, K)).astype(dtype)
    tables = [rng.standard_normal((2 * n - 1, K)).astype(dtype) for n in (h, w)]
    wide = [x.astype(np.float64) for x in (q, k, *tables)]
    for distances in (axis_distances(h, w), pair_distances(h, w)):
        got = decomposed_scores(q, k, *tables, *distances)
        assert got.dtype == dtype
        expected = decomposed_scores(*wide, *distances)
        assert_allclose(got, expected.astype(dtype), rtol=2 * np.finfo(dtype).eps, atol=1e-6)
    assert offset_bias(np.ones((15, 2), dtype), h, w).dtype == dtype


def test_lists_and_integers_are_taken():
    d = [[0, -1], [1, 0]]
    q = [[1], [2], [3], [4]]
    scores = decomposed_scores(q, [[0]] * 4, [[1], [2], [3]], [[10], [20], [30]], d, d)
    assert scores.tolist()[0] == [22.0, 12.0, 21.0, 11.0]
    assert offset_bias([[1], [2], [3]], 1, 2).tolist() == [[[2.0, 1.0], [3.0, 2.0]]]


def test_the_gradient_of_a_table_sums_the_pairs_of_each_offset():
    h, w = 2, 3
    rng = np.random.default_rng(5)
    g = rng.standard_normal((2, h * w, h * w))
    table = rng.standard_normal((15, 2))
    _, grads = value_and_grad(lambda p: np.sum(g * offset_bias(p["table"], h, w)))({"table": table})
    index = offset_index(h, w).ravel()
    expected = np.stack([np.bincount(index, of_head.ravel(), 15) for of_head in g], axis=-1)
    assert_allclose(grads["table"], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pairs", [False, True])
def test_gradients_equal_finite_differences(pairs):
    h, w, K = 2, 3, 4
    rng = np.random.default_rng(6)
    arrays = [
        *rng.standard_normal((2, 2, h * w, K)),
        rng.standard_normal((2 * h - 1, K)),
        rng.standard_normal((2 * w - 1, K)),
    ]
    g = rng.standard_normal((2, h * w, h * w))
    distances = (pair_distances if pairs else axis_distances)(h, w)

    def number(*arrays):
        return np.sum(g * decomposed_scores(*arrays, *distances))

    names = "qkRC"
    params = dict(zip(names, arrays, strict=True))
    _, grads = value_and_grad(lambda p: number(*(p[n] for n in names)))(params)
    for n, name in enumerate(names):
        assert_allclose(grads[name], slopes(number, arrays, n), rtol=1e-7, atol=1e-7)


def test_a_table_made_by_a_network_is_trained_through_the_bias():
    u = log_cpb_coordinates(2, 3)
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal((2, 8)), rng.standard_normal((8, 2))]
    g = rng.standard_normal((2, 6, 6))

    def number(W1, W2):
        return np.sum(g * offset_bias(np.tanh(u @ W1) @ W2, 2, 3))

    params = dict(zip("12", arrays, strict=True))
    _, grads = value_and_grad(lambda p: number(p["1"], p["2"]))(params)
    for n, name in enumerate("12"):
        assert_allclose(grads[name], slopes(number, arrays, n), rtol=1e-7, atol=1e-7)


# ---- numbers worked by hand ---------------------------------------------------------------------


def test_index_of_a_window_of_two_by_three():
    index = offset_index(2, 3)
    assert index[0].tolist() == [7, 6, 5, 2, 1, 0]
    assert index[-1].tolist() == [14, 13, 12, 9, 8, 7]


def test_decomposed_positions_of_a_window_of_two_by_two():
    q = [[1.0], [2.0], [3.0], [4.0]]
    d = relative_distance([0, 1], [0, 1])
    scores = decomposed_scores(q, [[0.0]] * 4, [[0.1], [0.2], [0.3]], [[1], [2], [3]], d, d)
    expected = [[2.2, 1.2, 2.1, 1.1], [6.4, 4.4, 6.2, 4.2], [6.9, 3.9, 6.6, 3.6]]
    assert scores.round(6).tolist() == [*expected, [13.2, 9.2, 12.8, 8.8]]


def test_coordinates_of_windows_of_three_and_eight():
    three = log_cpb_coordinates(3, 3).reshape(5, 5, 2)
    five = [-1.056642, -0.773976, 0.0, 0.773976, 1.056642]
    assert (three[0, :, 1].round(6) + 0.0).tolist() == five
    assert (three[:, 0, 0].round(6) + 0.0).tolist() == five
    eight = [0.0, 0.366512, 0.572069, 0.715614, 0.826016, 0.915745, 0.991335, 1.056642]
    assert log_cpb_coordinates(1, 8, 8)[7:, 1].round(6).tolist() == eight


# ---- bad input ----------------------------------------------------------------------------------

Q, ROW, LINE = np.ones((6, 2)), np.ones((3, 2)), np.ones((5, 2))
DY, DX = axis_distances(2, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: offset_index(0, 3), "offset_index: height must be at least 1; got 0"),
        (lambda: offset_index(3, 2.0), "offset_index: width must be a whole number; got 2.0"),
        (lambda: offset_bias(np.ones((15, 2)), True, 3), "offset_bias: height must be a whole"),
        (lambda: offset_bias(np.ones((15, 2)), 2, -1), "offset_bias: width must be at least 1"),
        (
            lambda: offset_bias(np.ones((9, 2)), 2, 3),
            r"\(2h - 1\)\(2w - 1\) = 15 for a window of 2 by 3; got shape \(9, 2\)",
        ),
        (lambda: offset_bias(np.ones((15, 2, 1)), 2, 3), r"got shape \(15, 2, 1\)"),
        (lambda: offset_bias(np.ones(15), 2, 3), r"must have the axes \(..., N, H\)"),
        (
            lambda: decomposed_scores(Q, np.ones((6, 3)), ROW, LINE, DY, DX),
            "q and k must have the same width K, at least 1; got 2 and 3",
        ),
        (
            lambda: decomposed_scores(Q, Q, ROW, LINE, DX, DX),
            r"h_q w_q = 6 and h_k w_k = 6, or both \(L, S\) = \(6, 6\); got \(3, 3\) and \(3, 3\)",
        ),
        (
            lambda: decomposed_scores(Q, Q, ROW, LINE, np.zeros((6, 6), int), DX),
            r"got \(6, 6\) and \(3, 3\)",
        ),
        (
            lambda: decomposed_scores(Q, Q, ROW, LINE, *np.zeros((2, 4, 6, 6), int)),
            r"row_distance must broadcast to the shape of the scores, \(6, 6\); got \(4, 6, 6\)",
        ),
        (
            lambda: decomposed_scores(Q, Q, ROW, LINE, DY + 0.5, DX),
            "row_distance must be whole numbers",
        ),
        (
            lambda: decomposed_scores(Q, Q, ROW, LINE, DY, DX + 0.5),
            "column_distance must be whole numbers",
        ),
        (
            lambda: decomposed_scores(Q, Q, LINE, LINE, DY, DX),
            r"row_table must have 2n - 1 = 3 rows; resize it first; got 5 rows",
        ),
        (
            lambda: decomposed_scores(Q, Q, ROW, np.ones((4, 2)), *np.zeros((2, 6, 6), int)),
            "column_table must have an odd number of rows; got 4 rows",
        ),
        (
            lambda: decomposed_scores(Q, Q, ROW, LINE, DY, DX - 1),
            "column_distance must be from -2 to 2, since column_table has 5 rows; got -3 to 1",
        ),
        (
            lambda: decomposed_scores(Q, Q, np.ones((3, 4)), LINE, DY, DX),
            r"row_table must have the axes \(N, K\) or \(H, N, K\) with K = 2; got shape \(3, 4\)",
        ),
        (
            lambda: log_cpb_coordinates(1, 3),
            "must be at least 2 by 2, since P - 1 divides; got 1 by 3",
        ),
        (lambda: log_cpb_coordinates(3, 3, 1), "since P - 1 divides; got 1 by 1"),
        (lambda: log_cpb_coordinates(3, 3, 2.5), "pretrained must be a whole number; got 2.5"),
        (lambda: log_cpb_coordinates(3, 3, 0), "pretrained must be at least 1; got 0"),
        (
            lambda: log_cpb_coordinates(3, 3, (2, 3, 4)),
            r"pretrained must be one side or two; got shape \(3,\)",
        ),
        (lambda: log_cpb_coordinates(0, 3), "height must be at least 1; got 0"),
        (lambda: log_cpb_coordinates(3, 0), "width must be at least 1; got 0"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
