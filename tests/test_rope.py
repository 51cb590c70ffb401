"""RoPE: loop oracle, theorems, published values, precision, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import rope, rope_frequencies, rope_matrix, rope_permutation
from pe_numpy.rotary.rope import rope_convert_weights

even_widths = st.integers(1, 24).map(lambda n: 2 * n)
positions_anywhere = st.integers(-5000, 5000)
layouts = st.sampled_from(["interleaved", "half"])
seeds = st.integers(0, 2**32 - 1)


def rope_by_loops(x, positions, frequencies, layout="interleaved"):
    """Equation (15), one pair of one vector at a time; x is (L, K)."""
    turned = np.array(x, dtype=np.float64)
    n = len(frequencies)
    for row, m in enumerate(positions):
        for i, theta in enumerate(frequencies):
            a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + n)
            cos, sin = math.cos(m * theta), math.sin(m * theta)
            turned[row, a] = x[row][a] * cos - x[row][b] * sin
            turned[row, b] = x[row][a] * sin + x[row][b] * cos
    return turned


def data(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# ---- loop oracle --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("turned", [2, 4, 10])
def test_rope_equals_the_equation_pair_by_pair(layout, turned):
    x, positions = data((7, 10)), [0, 1, 2, -3, 50, 1000, 2.5]
    frequencies = rope_frequencies(turned)
    expected = rope_by_loops(x, positions, frequencies, layout)
    assert_allclose(rope(x, positions, frequencies, layout), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_default_frequencies_are_those_of_the_whole_width(layout):
    x = data((3, 8))
    expected = rope_by_loops(x, [0, 1, 2], rope_frequencies(8), layout)
    assert_allclose(rope(x, [0, 1, 2], layout=layout), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("d", "base"), [(8, 10000.0), (6, 500.0), (2, 7)])
def test_frequencies_equal_their_formula(d, base):
    expected = [base ** (-2 * i / d) for i in range(d // 2)]
    assert_allclose(rope_frequencies(d, base), expected, rtol=1e-14)


@pytest.mark.parametrize("length", [63, 64, 65, 100, 256, 257])
@pytest.mark.parametrize("first", [0, -7, 999, 0.25])
def test_table_of_consecutive_positions_equals_the_one_of_any_positions(length, first):
    x, positions = data((length, 6)), first + np.arange(length)
    expected = rope_by_loops(x, positions, rope_frequencies(6))
    assert_allclose(rope(x, positions), expected, rtol=0, atol=1e-12)
    shuffled = np.random.default_rng(1).permutation(length)
    assert_allclose(rope(x[shuffled], positions[shuffled]), expected[shuffled], rtol=0, atol=1e-12)


def test_small_integers_that_overflow_are_not_consecutive():
    positions = np.arange(200, 300).astype(np.uint8)  # ..., 254, 255, 0, 1, ...
    x = data((100, 6))
    expected = rope(x, positions.astype(np.int64))
    assert_allclose(rope(x, positions), expected, rtol=0, atol=1e-12)


def test_positions_broadcast_over_batch_and_heads():
    B, H, L, K = 2, 3, 5, 8
    x = data((B, H, L, K))
    positions = np.array([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])[:, None, :]  # the first is padded
    turned = rope(x, positions)
    for b in range(B):
        for h in range(H):
            expected = rope_by_loops(x[b, h], positions[b, 0], rope_frequencies(K))
            assert_allclose(turned[b, h], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_arrays_in_any_memory_order_give_the_same(layout):
    x = data((4, 6, 8))
    expected = rope(x, np.arange(6), layout=layout)
    assert_array_equal(rope(np.asfortranarray(x), np.arange(6), layout=layout), expected)
    wide = np.repeat(x, 2, axis=-1)[..., ::2]
    assert_array_equal(rope(wide, np.arange(6), layout=layout), expected)
    assert_array_equal(rope(x[:, ::-1], np.arange(6)[::-1], layout=layout), expected[:, ::-1])


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_no_vectors_or_no_frequencies_leave_the_input(layout):
    assert rope(np.zeros((0, 4)), np.zeros(0), layout=layout).shape == (0, 4)
    assert_array_equal(rope([[1.0, 2.0, 3.0]], [7], [], layout), [[1.0, 2.0, 3.0]])


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_an_odd_component_behind_all_pairs_stays(layout, n):
    x, theta = data((5, 2 * n + 1)), np.geomspace(1, 0.01, n)
    turned = rope(x, np.arange(5), theta, layout)
    assert_array_equal(turned[:, 2 * n :], x[:, 2 * n :])
    assert_array_equal(turned[:, : 2 * n], rope(x[:, : 2 * n], np.arange(5), theta, layout))


# ---- theorems -----------------------------------------------------------------------------------


@given(even_widths, positions_anywhere, positions_anywhere, positions_anywhere, layouts, seeds)
def test_score_depends_on_the_difference_of_positions_alone(d, m, n, shift, layout, seed):
    q, k = data((2, 1, d), seed=seed)
    score = rope(q, [m], layout=layout) @ rope(k, [n], layout=layout).T
    moved = rope(q, [m + shift], layout=layout) @ rope(k, [n + shift], layout=layout).T
    alone = q @ rope(k, [n - m], layout=layout).T
    assert_allclose(moved, score, rtol=0, atol=1e-9)
    assert_allclose(alone, score, rtol=0, atol=1e-9)


@given(even_widths, positions_anywhere, layouts, seeds)
def test_turning_keeps_the_norm_of_every_vector(d, m, layout, seed):
    x = data((3, d), seed=seed)
    turned = rope(x, [m, m + 1, -m], layout=layout)
    norms = np.linalg.norm(turned, axis=-1)
    assert_allclose(norms, np.linalg.norm(x, axis=-1), rtol=1e-12)


@given(even_widths, positions_anywhere, positions_anywhere, layouts, seeds)
def test_turns_add_up_and_undo_each_other(d, m, n, layout, seed):
    x = data((1, d), seed=seed)
    twice = rope(rope(x, [m], layout=layout), [n], layout=layout)
    assert_allclose(twice, rope(x, [m + n], layout=layout), rtol=0, atol=1e-10)
    back = rope(rope(x, [m], layout=layout), [-m], layout=layout)
    assert_allclose(back, x, rtol=0, atol=1e-10)


@given(even_widths, positions_anywhere, seeds)
def test_permutation_carries_one_layout_to_the_other(d, m, seed):
    x, p = data((1, d), seed=seed), rope_permutation(d)
    half = rope(x[:, p], [m], layout="half")
    assert_allclose(half, rope(x, [m])[:, p], rtol=0, atol=1e-14)


@given(even_widths, positions_anywhere, seeds)
def test_matrix_does_what_rope_does(d, m, seed):
    x = data((1, d), seed=seed)
    matrix = rope_matrix(m, rope_frequencies(d))
    assert_allclose(matrix @ x[0], rope(x, [m])[0], rtol=0, atol=1e-12)


def test_permuted_projections_give_half_split_code_the_interleaved_scores():
    L, D, H, K = 5, 12, 3, 4
    x, w_q, w_k = data((L, D)), data((H * K, D), seed=1), data((H * K, D), seed=2)
    rows = np.concatenate([h * K + rope_permutation(K) for h in range(H)])

    def scores(w_q, w_k, layout):
        q, k = ((x @ w.T).reshape(L, H, K).swapaxes(0, 1) for w in (w_q, w_k))  # (H, L, K)
        q, k = (rope(a, np.arange(L), layout=layout) for a in (q, k))
        return q @ k.swapaxes(-1, -2)  # (H, L, L)

    interleaved = scores(w_q, w_k, "interleaved")
    converted = scores(w_q[rows], w_k[rows], "half")
    assert_allclose(converted, interleaved, rtol=0, atol=1e-12)
    assert np.abs(scores(w_q, w_k, "half") - interleaved).max() > 1  # unconverted weights fail


def test_one_position_fixes_the_sign_which_no_relative_test_can_see():
    assert_allclose(rope([[1.0, 0.0]], [1])[0], [math.cos(1), math.sin(1)], rtol=0, atol=1e-15)


# ---- published values ---------------------------------------------------------------------------

VECTORS = np.random.RandomState(42).randn(2, 8)  # the documents' own vectors


def test_step_demo_turns_to_the_printed_digits():
    x = VECTORS[0]
    assert x.round(3).tolist() == [0.497, -0.138, 0.648, 1.523, -0.234, -0.234, 1.579, 0.767]
    turned = rope(x[None], [3])[0]
    printed = [-0.472, 0.207, 0.169, 1.646, -0.227, -0.241, 1.577, 0.772]
    assert turned.round(3).tolist() == printed
    assert f"{np.linalg.norm(x):.8f}" == f"{np.linalg.norm(turned):.8f}" == "2.48947373"


@pytest.mark.parametrize(
    ("pairs", "turned", "claimed"),
    [
        ([(0, 0), (4, 4)], "-4.081900", "-4.081900"),
        ([(10, 0), (15, 5), (18, 8)], "-2.769302", "-3.336345"),
        ([(6, 16), (16, 26), (3, 13)], "-3.336345", "-2.769302"),
    ],
)
def test_relativity_table_to_the_printed_digit(pairs, turned, claimed):
    q, k = VECTORS[:, None]
    for m, n in pairs:
        assert f"{(rope(q, [m]) @ rope(k, [n]).T).item():.6f}" == turned
        assert f"{(q @ rope(k, [m - n]).T).item():.6f}" == claimed
        assert f"{(q @ rope(k, [n - m]).T).item():.6f}" == turned  # the right sign


def test_two_dimensional_exercise_of_the_course():
    q, k = [[1.0, 0.5]], [[0.8, 0.3]]
    for m, n in [(0, 2), (3, 5)]:
        score = rope(q, [m], [0.1]) @ rope(k, [n], [0.1]).T
        assert f"{score.item():.10f}" == "0.9509301820"


def test_both_layouts_of_one_small_vector():
    x = [[1.0, 2.0, 3.0, 4.0]]
    c, s, c2, s2 = math.cos(1), math.sin(1), math.cos(0.01), math.sin(0.01)
    interleaved = [c - 2 * s, s + 2 * c, 3 * c2 - 4 * s2, 3 * s2 + 4 * c2]
    half = [c - 3 * s, 2 * c2 - 4 * s2, s + 3 * c, 2 * s2 + 4 * c2]
    assert_allclose(rope(x, [1])[0], interleaved, rtol=0, atol=1e-15)
    assert_allclose(rope(x, [1], layout="half")[0], half, rtol=0, atol=1e-15)


# ---- dtype, precision, purity, bad input --------------------------------------------------------


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("first", [0, 1_000_000])
def test_float32_is_as_exact_at_a_million_as_at_the_start(layout, first):
    x = data((128, 64), np.float32)
    positions = first + np.arange(128)
    turned = rope(x, positions, layout=layout)
    exact = rope(x.astype(np.float64), positions, layout=layout)
    assert turned.dtype == np.float32
    assert_allclose(turned, exact, rtol=0, atol=2e-6)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_dtype_is_kept_and_nothing_is_changed_in_place(layout, dtype):
    x, positions = data((5, 8), dtype), np.arange(5)
    kept = x.copy(), positions.copy()
    turned = rope(x, positions, layout=layout)
    assert turned.dtype == dtype
    assert_array_equal(x, kept[0])
    assert_array_equal(positions, kept[1])
    exact = rope(x.astype(np.float64), positions, layout=layout)
    assert_allclose(turned.astype(np.float64), exact, rtol=0, atol=4 * np.finfo(dtype).eps + 1e-15)


def test_integers_become_float64():
    assert rope([[1, 0]], [0]).dtype == np.float64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rope_frequencies(3), "rope_frequencies: d must be even, so that components pair"),
        (lambda: rope_frequencies(4, base=-2), "rope_frequencies: base must be above 0; got -2"),
        (lambda: rope([1.0, 2.0], [0]), r"rope: x must have the axes \(..., L, K\); got shape"),
        (lambda: rope(np.zeros((2, 5)), [0, 1]), "K, the last axis of x, must be even.*got 5"),
        (lambda: rope([[1j, 0]], [0]), "rope: x must hold real numbers; got dtype complex128"),
        (
            lambda: rope(np.zeros((3, 4)), [0, 1]),
            r"positions must broadcast to the shape of x without its last axis, \(3,\); got \(2,\)",
        ),
        (lambda: rope(np.zeros((3, 4)), np.zeros((2, 3))), r"positions must broadcast.*got \(2, 3"),
        (lambda: rope(np.zeros((1, 4)), [np.nan]), "rope: positions must be finite"),
        (
            lambda: rope(np.zeros((1, 4)), [0], np.ones(3)),
            r"at most K/2 numbers; got shape \(3,\) for K = 4",
        ),
        (lambda: rope(np.zeros((1, 4)), [0], np.ones((1, 2))), r"one axis.*got shape \(1, 2\)"),
        (lambda: rope(np.zeros((1, 4)), [0], layout="neox"), "'interleaved' or 'half'; got 'neox'"),
        (lambda: rope_matrix([1, 2], [1.0]), "rope_matrix: position must be one real number"),
        (lambda: rope_matrix(1, [[1.0]]), r"frequencies must be one axis.*got shape \(1, 1\)"),
        (lambda: rope_permutation(5), "rope_permutation: d must be even"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- weights for the other layout ---------------------------------------------------------------


def converted_by_loops(weight, n_heads, d):
    """Row 2i of the turned part of each head goes to i, row 2i + 1 to i + d/2; the rest stays."""
    K = len(weight) // n_heads
    converted = np.array(weight)
    for h in range(n_heads):
        for i in range(d // 2):
            converted[h * K + i] = weight[h * K + 2 * i]
            converted[h * K + i + d // 2] = weight[h * K + 2 * i + 1]
    return converted


@pytest.mark.parametrize("shape", [(3 * 8, 5), (3 * 8,), (3 * 8, 0)])
@pytest.mark.parametrize("d", [None, 8, 6, 2])
def test_rows_of_weights_move_head_by_head(shape, d):
    weight = data(shape, np.float32)
    kept = weight.copy()
    half = rope_convert_weights(weight, 3, d=d)
    assert half.dtype == np.float32
    assert_array_equal(half, converted_by_loops(weight, 3, d or 8))
    assert_array_equal(rope_convert_weights(half, 3, to="interleaved", d=d), weight)
    assert_array_equal(weight, kept)
    assert not np.shares_memory(half, weight)


@given(even_widths, st.integers(1, 4), seeds)
def test_conversion_is_the_reshape_and_transpose_of_other_libraries(K, n_heads, seed):
    weight = data((n_heads * K, 3), seed=seed)
    moved = weight.reshape(n_heads, K // 2, 2, 3).swapaxes(1, 2).reshape(n_heads * K, 3)
    assert_array_equal(rope_convert_weights(weight, n_heads), moved)


@pytest.mark.parametrize("d", [None, 2])
@pytest.mark.parametrize(("made_for", "to"), [("interleaved", "half"), ("half", "interleaved")])
def test_converted_weights_and_biases_give_the_other_layout_the_same_scores(made_for, to, d):
    L, D, H, K = 5, 12, 3, 4
    x = data((L, D))
    w_q, w_k = data((2, H * K, D), seed=1)
    b_q, b_k = data((2, H * K), seed=2)

    def scores(w_q, w_k, b_q, b_k, layout):
        q, k = ((x @ w.T + b).reshape(L, H, K).swapaxes(0, 1) for w, b in ((w_q, b_q), (w_k, b_k)))
        q, k = (rope(a, np.arange(L), rope_frequencies(d or K), layout) for a in (q, k))
        return q @ k.swapaxes(-1, -2)  # (H, L, L)

    expected = scores(w_q, w_k, b_q, b_k, made_for)
    converted = (rope_convert_weights(w, H, to, d) for w in (w_q, w_k, b_q, b_k))
    assert_allclose(scores(*converted, to), expected, rtol=0, atol=1e-12)
    if d is None:
        assert np.abs(scores(w_q, w_k, b_q, b_k, to) - expected).max() > 1


def test_keys_of_grouped_queries_are_converted_with_their_own_number_of_heads():
    L, D, H, G, K = 5, 7, 6, 2, 8
    assert rope_convert_weights(np.arange(8), 2).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]  # K = 4
    x, w_q, w_k = data((L, D)), data((H * K, D), seed=1), data((G * K, D), seed=2)

    def scores(w_q, w_k, layout):
        q, k = ((x @ w.T).reshape(L, -1, K).swapaxes(0, 1) for w in (w_q, w_k))
        q, k = (rope(a, np.arange(L), layout=layout) for a in (q, k))
        return q @ np.repeat(k, H // G, axis=0).swapaxes(-1, -2)  # (H, L, L)

    expected, half_q = scores(w_q, w_k, "interleaved"), rope_convert_weights(w_q, H)
    converted = scores(half_q, rope_convert_weights(w_k, G), "half")
    assert_allclose(converted, expected, rtol=0, atol=1e-12)
    wrong = scores(half_q, rope_convert_weights(w_k, 2 * G), "half")  # any other divisor runs
    assert np.abs(wrong - expected).max() > 1
    with pytest.raises(ValueError, match=r"rows that n_heads divides; got shape \(16, 7\) and 6"):
        rope_convert_weights(w_k, H)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: rope_convert_weights(np.zeros((8, 5)), 3),
            r"rows that n_heads divides; got shape \(8, 5\) and 3",
        ),
        (lambda: rope_convert_weights(np.zeros((2, 8, 5)), 2), r"got shape \(2, 8, 5\) and 2"),
        (
            lambda: rope_convert_weights([[1.0, 2.0], [3.0]], 1),
            r"rope_convert_weights: weight must have rows of one length; got \[\[1.0, 2.0\], \[3.0",
        ),
        (lambda: rope_convert_weights(1.0, 1), r"weight must have the shape.*got shape \(\) and 1"),
        (
            lambda: rope_convert_weights(np.zeros((6, 5)), 2),
            r"rope_convert_weights: d \(K by default\) must be even.*got 3",
        ),
        (lambda: rope_convert_weights(np.zeros(8), 2, d=6), "d must be at most K.*got 6 and 4"),
        (lambda: rope_convert_weights(np.zeros(8), 2, d=3), "must be even.*got 3"),
        (lambda: rope_convert_weights(np.zeros(8), 0), "n_heads must be at least 1; got 0"),
        (
            lambda: rope_convert_weights(np.zeros(8), 2, to="neox"),
            "'half' or 'interleaved'; got 'n",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named_with_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
