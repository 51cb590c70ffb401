"""RoPE on grids: loop oracle, theorems, released values, precision, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    axial_frequencies,
    mixed_frequencies,
    mrope_frequencies,
    mrope_positions,
    patch_coordinates,
    rope,
    rope_frequencies,
    rope_nd,
    value_and_grad,
)

B, H, L, S, K, A = 2, 3, 6, 7, 8, 2
LAYOUTS = ["interleaved", "half"]
seeds = st.integers(0, 2**32 - 1)


def data(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def rope_nd_by_loops(x, coordinates, frequencies, layout="interleaved"):
    """One pair of one vector at a time; x is (L, K)."""
    turned = np.array(x, dtype=np.float64)
    n = len(frequencies[0])
    for row, p in enumerate(coordinates):
        for c in range(n):
            a, b = (2 * c, 2 * c + 1) if layout == "interleaved" else (c, c + n)
            angle = sum(at * omega[c] for at, omega in zip(p, frequencies, strict=True))
            turned[row, a] = x[row][a] * math.cos(angle) - x[row][b] * math.sin(angle)
            turned[row, b] = x[row][a] * math.sin(angle) + x[row][b] * math.cos(angle)
    return turned


# ---- loop oracle --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pairs", [0, 1, 3, 4])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_rope_nd_equals_the_formula_pair_by_pair(axes, pairs, layout):
    x, p, omega = data(L, K), 10 * data(L, axes, seed=1), data(axes, pairs, seed=2)
    expected = rope_nd_by_loops(x, p, omega, layout)
    assert_allclose(rope_nd(x, p, omega, layout), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_sequence_has_its_coordinates_and_each_head_its_matrix(layout):
    x, p, omega = data(B, H, L, K), data(B, 1, L, A, seed=1), data(H, A, 4, seed=2)
    turned = rope_nd(x, p, omega, layout)
    for b, h in np.ndindex(B, H):
        expected = rope_nd_by_loops(x[b, h], p[b, 0], omega[h], layout)
        assert_allclose(turned[b, h], expected, rtol=0, atol=1e-14)
    one_place = rope_nd(x, p[0, 0, :1], omega, layout)
    assert_allclose(one_place, rope_nd(x, p[0, 0, [0] * L], omega, layout), rtol=0, atol=1e-14)


def cells(kind):
    p = patch_coordinates(8, 9, trained=(7, 5)) - [0.3, 40]
    if kind == "columns first":
        return p.reshape(8, 9, 2).swapaxes(0, 1).reshape(-1, 2)
    if kind == "one cell elsewhere":
        p[70] += [0, 1]
    elif kind == "one row elsewhere":
        p[9:18, 1] += 1
    elif kind == "the last cell left out":
        return p[:-1]
    return p[:, ::-1] if kind == "coordinates exchanged" else p


CELLS = (
    "as in the image",
    "columns first",
    "coordinates exchanged",
    "one cell elsewhere",
    "one row elsewhere",
    "the last cell left out",
)


@pytest.mark.parametrize("kind", CELLS)
def test_all_cells_of_an_image_turn_as_one_by_one(kind):
    p = cells(kind)
    x, omega, far = data(len(p), K), data(A, 4, seed=2), 1e6 * data(A, 3, seed=3)
    expected = rope_nd_by_loops(x, p, omega)
    assert_allclose(rope_nd(x, p, omega), expected, rtol=0, atol=1e-12)
    small = rope_nd(x.astype(np.float32), p, far)  # angles in float64, all the same
    assert_allclose(small, rope_nd_by_loops(x, p, far), rtol=0, atol=2e-6)
    heads = data(H, A, 4, seed=4)
    one = rope_nd(np.stack([x] * H), p, heads)[1]
    assert_allclose(one, rope_nd_by_loops(x, p, heads[1]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_in_any_memory_order_give_the_same(layout):
    x, p, omega = data(B, L, K), data(L, A, seed=1), data(A, 4, seed=2)
    expected = rope_nd(x, p, omega, layout)
    assert_array_equal(rope_nd(np.asfortranarray(x), p, omega, layout), expected)
    assert_array_equal(rope_nd(np.repeat(x, 2, axis=-1)[..., ::2], p, omega, layout), expected)


@pytest.mark.parametrize(
    ("d", "axes", "base"), [(8, 2, 100.0), (12, 3, 1e4), (8, 1, 7), (24, 2, 10)]
)
@pytest.mark.parametrize("spacing", ["split", "alternate"])
def test_axial_frequencies_equal_their_formula(d, axes, base, spacing):
    omega = axial_frequencies(d, axes, base, spacing)
    each = d // (2 * axes)
    expected = np.zeros((axes, d // 2))
    for a in range(axes):
        for c in range(each):
            split = base ** (-2 * axes * c / d)
            alternate = base ** (-2 * (axes * c + a) / d)
            expected[a, a * each + c] = split if spacing == "split" else alternate
    assert omega.dtype == np.float64
    assert_allclose(omega, expected, rtol=1e-13)


@pytest.mark.parametrize(("d", "base"), [(8, 10.0), (12, 100.0), (4, 10)])
def test_mixed_frequencies_equal_their_formula(d, base):
    omega = mixed_frequencies(np.random.default_rng(3), d, base)
    phi = np.random.default_rng(3).uniform(0, 2 * math.pi)
    for c in range(d // 4):
        size = base ** (-4 * c / d)
        first = [size * math.cos(phi), size * math.sin(phi)]
        second = [size * math.cos(phi + math.pi / 2), size * math.sin(phi + math.pi / 2)]
        assert_allclose(omega[:, c], first, rtol=0, atol=1e-15)
        assert_allclose(omega[:, c + d // 4], second, rtol=0, atol=1e-15)
    assert omega.dtype == np.float64


def test_each_draw_has_another_direction_all_around():
    rng = np.random.default_rng(0)
    phi = [
        math.atan2(omega[1, 0], omega[0, 0])
        for omega in (mixed_frequencies(rng, 4) for _ in range(40))
    ]
    assert np.bincount((np.array(phi) // (math.pi / 2) + 2).astype(int)).min() > 4


@pytest.mark.parametrize(("height", "width"), [(2, 3), (3, 2), (1, 4), (5, 1)])
def test_patch_coordinates_equal_their_formulas(height, width):
    index, centred, squeezed = (
        patch_coordinates(height, width),
        patch_coordinates(height, width, "centred"),
        patch_coordinates(height, width, trained=(4, 7)),
    )
    for n, (y, x) in enumerate(np.ndindex(height, width)):
        assert index[n].tolist() == [y, x]
        middle = [2 * (y + 0.5) / height - 1, 2 * (x + 0.5) / width - 1]
        assert_allclose(centred[n], middle, rtol=0, atol=1e-15)
        assert_allclose(squeezed[n], [y * 4 / height, x * 7 / width], rtol=0, atol=1e-14)
    assert index.shape == (height * width, 2) and index.dtype == np.float64
    assert_array_equal(
        patch_coordinates(height, width, trained=5),
        patch_coordinates(height, width, trained=[5, 5]),
    )


def axes_by_loops(sections, interleaved):
    """The axis of each pair."""
    t, h, w = sections
    if not interleaved:
        return [0] * t + [1] * h + [2] * w
    axes = []
    for c in range(t + h + w):
        if c % 3 == 1 and c < 3 * h:
            axes.append(1)
        elif c % 3 == 2 and c < 3 * w:
            axes.append(2)
        else:
            axes.append(0)
    return axes


@pytest.mark.parametrize(
    ("sections", "interleaved"),
    [
        *[((16, 24, 24), False), ((24, 20, 20), True), ((2, 3, 3), False), ((4, 2, 2), True)],
        *[((11, 11, 10), True), ((5, 0, 0), True), ((3, 2, 0), True), ((0, 1, 2), False)],
    ],
)
def test_mrope_frequencies_give_each_rung_to_one_axis(sections, interleaved):
    omega = mrope_frequencies(sections, 500.0, interleaved)
    n = sum(sections)
    expected = np.zeros((3, n))
    for c, axis in enumerate(axes_by_loops(sections, interleaved)):
        expected[axis, c] = 500.0 ** (-c / n)
    assert_allclose(omega, expected, rtol=1e-13)
    assert np.count_nonzero(omega, axis=1).tolist() == list(sections)


def positions_by_loops(parts):
    rows, largest = [], -1
    for part in parts:
        start = largest + 1
        if isinstance(part, int):
            rows += [[start + n] * 3 for n in range(part)]
        else:
            for t in range(part[0]):
                for h in range(part[1]):
                    rows += [[start + t, start + h, start + w] for w in range(part[2])]
        largest = max(max(row) for row in rows)
    return rows, largest + 1 - len(rows)


@pytest.mark.parametrize(
    "parts",
    [
        [5],
        [(1, 2, 3)],
        [2, (1, 2, 3), 4],
        [1, (3, 2, 2), (1, 4, 2), 2, 1],
        [(5, 1, 2), 3, (1, 1, 1)],
    ],
)
def test_mrope_positions_equal_their_rule_token_by_token(parts):
    positions, delta = mrope_positions(parts)
    expected, expected_delta = positions_by_loops(parts)
    assert positions.tolist() == expected
    assert delta == expected_delta and isinstance(delta, int)
    assert positions.dtype.kind == "i"
    assert_array_equal(mrope_positions(np.asarray(part) for part in parts)[0], positions)


def test_a_text_of_no_tokens_between_two_images_changes_nothing():
    with_it, without = mrope_positions([(1, 2, 2), 0, (1, 2, 2)]), mrope_positions([(1, 2, 2)] * 2)
    assert_array_equal(with_it[0], without[0])


# ---- theorems -----------------------------------------------------------------------------------


@given(seeds, st.sampled_from(LAYOUTS), st.integers(1, 4))
def test_scores_depend_on_the_difference_of_coordinates_alone(seed, layout, axes):
    rng = np.random.default_rng(seed)
    q, k, omega = rng.standard_normal((L, K)), rng.standard_normal((S, K)), data(axes, 4, seed=1)
    at, other, shift = (rng.uniform(-50, 50, (n, axes)) for n in (L, S, 1))
    scores = rope_nd(q, at, omega, layout) @ rope_nd(k, other, omega, layout).T
    moved = rope_nd(q, at + shift, omega, layout) @ rope_nd(k, other + shift, omega, layout).T
    assert_allclose(moved, scores, rtol=0, atol=1e-10)
    one = rope_nd(q[:1], at[:1] - other[:1], omega, layout) @ k[0]
    assert_allclose(one, scores[0, :1], rtol=0, atol=1e-10)


@given(seeds, st.sampled_from(LAYOUTS))
def test_one_axis_or_equal_coordinates_are_rope(seed, layout):
    rng = np.random.default_rng(seed)
    x, p = rng.standard_normal((L, K)), rng.integers(-500, 500, L)
    expected = rope(x, p, layout=layout)
    one = rope_nd(x, p[:, None], rope_frequencies(K)[None], layout)
    assert_allclose(one, expected, rtol=0, atol=1e-12)
    for sections, interleaved in (((1, 2, 1), False), ((2, 1, 1), True), ((4, 0, 0), True)):
        omega = mrope_frequencies(sections, interleaved=interleaved)
        three = rope_nd(x, np.stack([p, p, p], axis=1), omega, layout)
        assert_allclose(three, expected, rtol=0, atol=1e-12)


def test_the_axes_of_axial_rope_are_two_ropes_side_by_side():
    x, p = data(L, K), np.random.default_rng(1).integers(0, 9, (L, 2))
    theta = rope_frequencies(4, 100.0)
    turned = rope_nd(x, p, axial_frequencies(K))
    rows, columns = rope(x[:, :4], p[:, 0], theta), rope(x[:, 4:], p[:, 1], theta)
    assert_allclose(turned, np.concatenate([rows, columns], axis=1), rtol=0, atol=1e-14)


@given(seeds)
def test_mixed_with_a_direction_along_an_axis_is_axial(seed):
    rng = np.random.default_rng(seed)
    x, p = rng.standard_normal((L, K)), rng.uniform(-9, 9, (L, 2))

    class AlongTheFirst(np.random.Generator):
        def uniform(self, *_):
            return 0.0

    omega = mixed_frequencies(AlongTheFirst(np.random.PCG64()), K)
    assert_allclose(omega, axial_frequencies(K, base=10.0), rtol=0, atol=1e-16)
    assert_allclose(
        rope_nd(x, p, omega), rope_nd(x, p, axial_frequencies(K, base=10.0)), atol=1e-12
    )


@given(seeds, st.sampled_from(LAYOUTS))
def test_turning_keeps_norms_and_can_be_undone(seed, layout):
    rng = np.random.default_rng(seed)
    x, p, omega = rng.standard_normal((L, K)), rng.uniform(-99, 99, (L, 3)), data(3, 4, seed=1)
    turned = rope_nd(x, p, omega, layout)
    assert_allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(x, axis=1), rtol=1e-12)
    assert_allclose(rope_nd(turned, -p, omega, layout), x, rtol=0, atol=1e-12)


def test_the_last_row_of_a_whole_sequence_is_the_one_of_a_new_token():
    positions, delta = mrope_positions([2, (1, 2, 3), 3])
    before, so_far = mrope_positions([2, (1, 2, 3)])
    x, omega = data(len(positions), K), mrope_frequencies((2, 1, 1))
    for slot in range(len(before), len(positions)):
        at = [[slot + so_far] * 3]
        new = rope_nd(x[slot : slot + 1], at, omega, "half")
        assert_allclose(new[0], rope_nd(x, positions, omega, "half")[slot], rtol=0, atol=1e-14)
    assert delta == so_far


@pytest.mark.parametrize("kind", ["index", "centred"])
def test_squeezed_and_centred_coordinates_stay_in_their_range(kind):
    trained = 4 if kind == "index" else None
    low, high = (0, 4) if kind == "index" else (-1, 1)
    for size in (1, 4, 5, 64):
        p = patch_coordinates(size, size + 1, kind, trained)
        assert p.min() >= low and p.max() < high


# ---- gradients ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_frequencies_are_trained_along_with_queries(layout):
    q, k = data(H, L, K), data(H, S, K, seed=1)
    at, other = patch_coordinates(2, 3), data(S, 2, seed=2)
    rng = np.random.default_rng(4)
    params = {"q": q, "Omega": np.stack([mixed_frequencies(rng, K) for _ in range(H)])}

    def loss(params):
        a = rope_nd(params["q"], at, params["Omega"], layout)
        b = rope_nd(k, other, params["Omega"], layout)
        return np.sum(np.tanh(a @ np.swapaxes(b, -1, -2)))

    _, grads = value_and_grad(loss)(params)
    step = 1e-6
    for name, at_index in (("q", (1, 2, 3)), ("Omega", (0, 1, 2)), ("Omega", (2, 0, 3))):
        values = []
        for sign in (1, -1):
            moved = {n: p.copy() for n, p in params.items()}
            moved[name][at_index] += sign * step
            values.append(loss(moved))
        slope = (values[0] - values[1]) / (2 * step)
        assert_allclose(grads[name][at_index], slope, rtol=1e-6, atol=1e-7)


# ---- released values ----------------------------------------------------------------------------

AT = [[1, 2]]  # row 1, column 2


def angles_of(omega, at=AT):
    """What each pair is turned by, seen from outside: pairs (1, 0) become (cos, sin)."""
    n = omega.shape[-1]
    turned = rope_nd(np.tile([1.0, 0.0], n)[None], at, omega)[0].reshape(n, 2)
    return np.arctan2(turned[:, 1], turned[:, 0])


@pytest.mark.parametrize(
    ("omega", "angles"),
    [
        (axial_frequencies(8), [1, 0.1, 2, 0.2]),
        (axial_frequencies(8)[:, [2, 3, 0, 1]], [2, 0.2, 1, 0.1]),  # rope-vit: the column first
        (axial_frequencies(8, base=1e4), [1, 0.01, 2, 0.02]),  # Qwen2-VL, timm
        (axial_frequencies(8, base=1e4, spacing="alternate"), [1, 0.01, 0.2, 0.002]),  # Pixtral
    ],
)
def test_angles_of_five_models_at_one_patch(omega, angles):
    assert_allclose(angles_of(omega), angles, rtol=0, atol=1e-14)


def test_angles_of_dinov3_at_the_last_of_2_by_3():
    p = patch_coordinates(2, 3, "centred")
    angles = (p @ (2 * np.pi * axial_frequencies(8)))[-1]
    assert p[-1].round(6).tolist() == [0.5, 0.666667]
    assert angles.round(6).tolist() == [3.141593, 0.314159, 4.188790, 0.418879]


def test_turned_vectors_to_the_printed_digits():
    x, omega = np.arange(1.0, 9.0)[None], axial_frequencies(8)
    interleaved = [-1.1426, 1.9221, 2.5857, 4.2795, -7.5365, 2.0496, 5.2711, 9.2312]
    half = [-3.6671, 1.3910, -7.6135, 2.3309, 3.5430, 6.1697, -0.1851, 8.6352]
    blocks = [-1.9841, 1.5907, 2.4624, 4.1797, -8.4458, 4.2910, 1.6335, 9.0325]  # Gemma 4
    assert rope_nd(x, AT, omega).round(4)[0].tolist() == interleaved
    assert rope_nd(x, AT, omega, "half").round(4)[0].tolist() == half
    order = [0, 1, 4, 5, 2, 3, 6, 7]  # half inside each block, from half over the whole head
    assert rope_nd(x[:, order], AT, omega, "half")[:, order].round(4)[0].tolist() == blocks


def test_mixed_values_to_the_printed_digits():
    class Sixth(np.random.Generator):
        def uniform(self, *_):
            return math.pi / 6

    omega = mixed_frequencies(Sixth(np.random.PCG64()), 8)
    assert omega.round(4).tolist() == [
        [0.8660, 0.2739, -0.5, -0.1581],
        [0.5, 0.1581, 0.8660, 0.2739],
    ]
    assert (np.array([2, 1]) @ omega).round(4).tolist() == [2.2321, 0.7058, -0.1340, -0.0424]


def test_mrope_values_to_the_printed_digits():
    at = np.array([5, 6, 8])
    contiguous = at @ mrope_frequencies((2, 3, 3))
    assert contiguous.round(4).tolist() == [5, 1.5811, 0.6, 0.1897, 0.06, 0.0253, 0.008, 0.0025]
    interleaved = at @ mrope_frequencies((4, 2, 2), interleaved=True)
    assert interleaved.round(4).tolist() == [5, 1.8974, 0.8, 0.1581, 0.06, 0.0253, 0.005, 0.0016]


def test_mrope_positions_of_the_sheet_of_text_and_an_image():
    positions, delta = mrope_positions([2, (1, 2, 3), 1])
    t, h, w = positions[2:8].T.tolist()
    assert (t, h, w) == ([2] * 6, [2, 2, 2, 3, 3, 3], [2, 3, 4, 2, 3, 4])
    assert positions[8].tolist() == [5, 5, 5] and delta == 6 - 9


def test_a_long_film_ends_at_its_last_frame():
    positions, _ = mrope_positions([(6, 2, 2), 1])
    assert positions[-1].tolist() == [6, 6, 6]  # not 2, as after an image


def test_eva_squeezes_three_columns_into_two():
    assert patch_coordinates(1, 3, trained=2)[:, 1].round(4).tolist() == [0, 0.6667, 1.3333]


# ---- dtype, precision, purity, bad input --------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_dtype_is_kept_and_nothing_is_changed_in_place(layout, dtype):
    x, p, omega = data(L, K, dtype=dtype), patch_coordinates(2, 3), axial_frequencies(K)
    kept = x.copy(), p.copy(), omega.copy()
    turned = rope_nd(x, p, omega, layout)
    assert turned.dtype == dtype
    for now, before in zip((x, p, omega), kept, strict=True):
        assert_array_equal(now, before)
    exact = rope_nd(x.astype(np.float64), p, omega, layout)
    assert_allclose(turned.astype(np.float64), exact, rtol=0, atol=4 * np.finfo(dtype).eps + 1e-15)


def test_angles_are_exact_far_away_whatever_the_dtype_of_the_matrix():
    x, p = data(1, K, dtype=np.float32), np.array([[1e6, 1e6 + 3]], np.float32)
    omega = data(2, 4, dtype=np.float32)
    exact = rope_nd_by_loops(x, p.astype(float), omega.astype(float))
    assert_allclose(rope_nd(x, p, omega), exact, rtol=0, atol=2e-6)


def test_integers_and_lists_become_float64():
    assert rope_nd([[1, 0, 1, 0]], [[1, 2]], [[1, 0], [0, 1]]).dtype == np.float64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rope_nd([1.0], AT, np.ones((2, 0))), r"rope_nd: x must have the axes \(..., L, K"),
        (lambda: rope_nd([[1j, 0]], AT, np.ones((2, 1))), "x must hold real numbers"),
        (
            lambda: rope_nd(np.ones((1, 4)), [1, 2], np.ones((2, 2))),
            r"axes \(..., L, A\).*\(2,\) and",
        ),
        (lambda: rope_nd(np.ones((1, 4)), AT, np.ones(2)), r"got shapes \(1, 2\) and \(2,\)"),
        (lambda: rope_nd(np.ones((1, 4)), AT, np.ones((3, 2))), r"shapes \(1, 2\) and \(3, 2\)"),
        (lambda: rope_nd(np.ones((1, 4)), AT, np.ones((2, 3))), r"at most K/2 columns; .* K = 4"),
        (
            lambda: rope_nd(np.ones((1, 4)), [[np.nan, 0]], np.ones((2, 1))),
            "coordinates must be fin",
        ),
        (
            lambda: rope_nd(np.ones((1, 4)), AT, np.full((2, 1), np.inf)),
            "frequencies must be finite",
        ),
        (
            lambda: rope_nd(np.ones((3, 4)), np.ones((2, 2)), np.ones((2, 2))),
            r"angles must broadcast to the shape of x without its last axis, \(3,\); got \(2,\)",
        ),
        (lambda: rope_nd(np.ones((1, 4)), AT, np.ones((5, 2, 2))), r"angles must.*got \(5, 1\)"),
        (
            lambda: rope_nd(np.ones((2, 1, 4)), np.ones((2, 1, 2)), np.ones((3, 2, 2))),
            r"rope_nd: the batch axes must broadcast; got coordinates \(2,\), frequencies \(3,\)",
        ),
        (lambda: rope_nd(np.ones((1, 4)), AT, np.ones((2, 2)), "neox"), "or 'half'; got 'neox'"),
        (
            lambda: axial_frequencies(6),
            "axial_frequencies: d must be divisible by 4, so that each of",
        ),
        (lambda: axial_frequencies(8, 3), "divisible by 6, so that each of 3 axes .* got 8"),
        (lambda: axial_frequencies(8, 0), "axes must be at least 1"),
        (lambda: axial_frequencies(8, base=0), "base must be above 0"),
        (lambda: axial_frequencies(8, spacing="even"), "spacing must be 'split' or 'alternate'"),
        (lambda: mixed_frequencies(0, 8), "mixed_frequencies: rng must be a generator.*got int"),
        (lambda: mixed_frequencies(np.random.default_rng(0), 6), "divisible by 4.*got 6"),
        (
            lambda: mixed_frequencies(np.random.default_rng(0), 8, -1),
            "base must be above 0; got -1",
        ),
        (lambda: patch_coordinates(0, 3), "patch_coordinates: height must be at least 1; got 0"),
        (lambda: patch_coordinates(2, 3.0), "width must be a whole number; got 3.0"),
        (lambda: patch_coordinates(2, 3, "corner"), "kind must be 'index' or 'centred'"),
        (lambda: patch_coordinates(2, 3, "centred", 4), "trained must be left out.*got 4"),
        (lambda: patch_coordinates(2, 3, trained=(1, 2, 3)), "one number or two; got 3"),
        (lambda: patch_coordinates(2, 3, trained=(0, 2)), "trained must be at least 1; got 0"),
        (lambda: mrope_frequencies((1, 2)), r"mrope_frequencies: sections must be three.*\[1, 2\]"),
        (lambda: mrope_frequencies(8), r"sections must be three.*got \[8\]"),
        (lambda: mrope_frequencies((0, 0, 0)), "a sum above 0"),
        (lambda: mrope_frequencies((1, -1, 2)), "a section must be at least 0; got -1"),
        (lambda: mrope_frequencies((1, 1, 1), 0), "base must be above 0"),
        (lambda: mrope_frequencies((1, 1, 1), interleaved="yes"), "interleaved must be True or"),
        (
            lambda: mrope_frequencies((2, 3, 3), interleaved=True),
            r"must fit among every third pair; got \[2, 3, 3\], of which \[3, 3, 2\] would be left",
        ),
        (lambda: mrope_positions(5), "mrope_positions: grids must be a list of parts; got 5"),
        (lambda: mrope_positions([]), "at least one token; got 0 parts"),
        (lambda: mrope_positions([0]), "at least one token; got 1 parts"),
        (lambda: mrope_positions([-1]), "a length of text must be at least 0; got -1"),
        (lambda: mrope_positions([2.5]), "a length of text must be a whole number"),
        (lambda: mrope_positions([(2, 3)]), r"a grid must be \(t, h, w\); got 2 numbers"),
        (lambda: mrope_positions([(1, 0, 3)]), "a side of a grid must be at least 1; got 0"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
