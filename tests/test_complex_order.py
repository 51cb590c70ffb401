"""Complex-order embeddings and attention: loop oracle, theorems, special cases, bad input."""

import cmath
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import attention, rope, rope_frequencies, sinusoidal
from pe_numpy.absolute.complex_order import complex_attention, complex_order

shifts = st.integers(-1000, 1000)
seeds = st.integers(0, 2**32 - 1)


def data(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def waves(shape, seed=0):
    """Amplitudes, frequencies and phases of words, each of the given shape."""
    return data(shape, seed=seed), data(shape, seed=seed + 1), data(shape, seed=seed + 2)


def numbers(shape, seed=0):
    return data(shape, seed=seed) + 1j * data(shape, seed=seed + 1)


def attention_by_loops(z_q, z_k, z_v):
    """One query, one key, one component at a time; one sequence."""
    L, S, D, Dv = len(z_q), len(z_k), z_q.shape[1], z_v.shape[1]
    output, weights = np.zeros((L, Dv), complex), np.zeros((L, S))
    for m in range(L):
        for n in range(S):
            z = sum(z_q[m, c] * z_k[n, c].conjugate() for c in range(D))
            weights[m, n] = math.exp(z.real / math.sqrt(D))
        weights[m] /= weights[m].sum()
        for c in range(Dv):
            output[m, c] = sum(weights[m, n] * z_v[n, c] for n in range(S))
    return output, weights


# ---- loop oracle --------------------------------------------------------------------------------


def test_embedding_equals_equation_5_component_by_component():
    B, L, D = 2, 5, 3
    r, omega, theta = waves((B, L, D))
    positions = np.array([[0, 1, 2, -7, 100], [0, 0, 0, 1.5, 2]])
    z = complex_order(r, omega, theta, positions)
    assert z.shape == (B, L, D)
    for b, m, c in np.ndindex(z.shape):
        angle = omega[b, m, c] * positions[b, m] + theta[b, m, c]
        assert abs(z[b, m, c] - r[b, m, c] * cmath.exp(1j * angle)) < 1e-12


def test_words_may_share_frequencies_phases_and_positions():
    B, L, D = 2, 5, 3
    r, omega, theta = waves((B, L, D))
    by_component = complex_order(r, omega[0, 0], theta[0, :, :1], np.arange(L))  # word-sharing
    for b, m, c in np.ndindex(r.shape):
        expected = r[b, m, c] * cmath.exp(1j * (omega[0, 0, c] * m + theta[0, m, 0]))
        assert abs(by_component[b, m, c] - expected) < 1e-12
    by_word = complex_order(r, omega[..., :1], 0.25, 4)  # dimension-sharing
    assert_allclose(by_word, r * np.exp(1j * (4 * omega[..., :1] + 0.25)), rtol=0, atol=1e-12)


def test_attention_equals_the_equations_pair_by_pair():
    B, L, S, D, Dv = 2, 3, 5, 7, 4
    z_q, z_k, z_v = numbers((B, L, D)), numbers((B, S, D), 2), numbers((B, S, Dv), 4)
    output, weights = complex_attention(z_q, z_k, z_v)
    assert output.shape == (B, L, Dv)
    assert weights.shape == (B, L, S)
    for b in range(B):
        expected = attention_by_loops(z_q[b], z_k[b], z_v[b])
        assert_allclose(output[b], expected[0], rtol=0, atol=1e-13)
        assert_allclose(weights[b], expected[1], rtol=0, atol=1e-13)


def test_attention_broadcasts_its_batch_axes():
    H, L, S, D = 4, 3, 5, 7
    z_q, z_k, z_v = numbers((H, L, D)), numbers((S, D), 2), numbers((2, 1, S, D), 4)
    output, weights = complex_attention(z_q, z_k, z_v)
    assert output.shape == (2, H, L, D)
    assert weights.shape == (H, L, S)


def test_no_words_no_queries_and_no_keys_give_results_of_their_size():
    assert complex_order(np.zeros((0, 3)), np.zeros(3), 0.0, []).shape == (0, 3)
    output, weights = complex_attention(numbers((0, 2)), numbers((5, 2)), numbers((5, 3)))
    assert (output.shape, weights.shape) == ((0, 3), (0, 5))
    output, weights = complex_attention(numbers((4, 2)), numbers((0, 2)), numbers((0, 3)))
    assert weights.shape == (4, 0)
    assert_array_equal(output, np.zeros((4, 3)))


# ---- theorems -----------------------------------------------------------------------------------


@given(shifts, shifts, seeds)
def test_moving_a_word_multiplies_it_by_a_factor_that_forgets_where_it_stood(pos, n, seed):
    r, omega, theta = waves((1, 4), seed=seed)
    moved = complex_order(r, omega, theta, [pos + n])
    factor = np.exp(1j * omega * n)
    assert_allclose(moved, factor * complex_order(r, omega, theta, [pos]), rtol=0, atol=1e-9)


@given(shifts, seeds)
def test_modulus_of_every_component_is_its_amplitude_at_every_position(pos, seed):
    r, omega, theta = waves((1, 4), seed=seed)
    z = complex_order(r, omega, theta, [pos])
    assert_allclose(np.abs(z), np.abs(r), rtol=1e-13)


@given(shifts, seeds)
def test_weights_depend_on_differences_of_positions_alone_if_words_share_frequencies(n, seed):
    L, D = 5, 4
    r, _, theta = waves((L, D), seed=seed)
    omega, values = data(D, seed=seed + 3), numbers((L, D), seed=seed + 4)

    def weights(positions):
        z = complex_order(r, omega, theta, positions)
        return complex_attention(z, z, values)[1]

    assert_allclose(weights(np.arange(L) + n), weights(np.arange(L)), rtol=0, atol=1e-9)


def test_weights_depend_on_absolute_positions_if_each_word_has_its_own_frequency():
    z = [complex_order(*waves((5, 4)), np.arange(5) + first) for first in (0, 100)]
    here, there = (complex_attention(a, a, a)[1] for a in z)
    assert np.abs(here - there).max() > 0.1


@given(st.integers(1, 12), seeds)
def test_shared_frequencies_and_real_part_make_the_scores_of_rope(pairs, seed):
    L, S, K = 3, 5, 2 * pairs
    q, k, v = data((L, K), seed=seed), data((S, K), seed=seed + 1), data((S, 7), seed=seed + 2)
    m, n = np.arange(L) + 4, np.arange(S)
    z_q, z_k = (x[:, 0::2] + 1j * x[:, 1::2] for x in (q, k))
    turned = [
        complex_order(np.abs(z), rope_frequencies(K), np.angle(z), positions)
        for z, positions in ((z_q, m), (z_k, n))
    ]
    expected = attention(rope(q, m), rope(k, n), v, scale=1 / math.sqrt(K // 2))
    output, weights = complex_attention(*turned, v)
    assert_allclose(weights, expected[1], rtol=0, atol=1e-12)
    assert_allclose(output, expected[0], rtol=0, atol=1e-12)


@given(seeds)
def test_complex_attention_is_real_attention_between_vectors_of_twice_the_width(seed):
    L, S, D = 3, 5, 4
    z_q, z_k, z_v = numbers((L, D), seed), numbers((S, D), seed + 2), numbers((S, D), seed + 4)
    q, k, v = (np.concatenate([z.real, z.imag], axis=-1) for z in (z_q, z_k, z_v))
    real, weights = attention(q, k, v, scale=1 / math.sqrt(D))
    output = complex_attention(z_q, z_k, z_v)
    assert_allclose(output[0], real[:, :D] + 1j * real[:, D:], rtol=0, atol=1e-12)
    assert_allclose(output[1], weights, rtol=0, atol=1e-12)


def test_real_part_tells_a_vector_from_its_opposite_and_the_modulus_does_not():
    z = numbers((1, 4))
    keys = np.concatenate([z, -z])
    modulus = np.abs(z @ keys.conj().T) / 2
    assert_allclose(modulus[0, 0], modulus[0, 1], rtol=0, atol=1e-15)
    _, weights = complex_attention(z, keys, keys)
    odds = math.exp(2 * np.sum(np.abs(z) ** 2) / 2)  # the scores are +-|z|^2 / sqrt(4)
    assert_allclose(weights[0, 0] / weights[0, 1], odds, rtol=1e-12)


def test_product_without_the_conjugate_depends_on_the_sum_of_two_positions():
    r, omega = data((2, 4)), data(4, seed=1)

    def without(m, n):
        q, k = complex_order(r, omega, 0.0, [m, n])
        return abs((q * k).sum()), abs((q * k.conj()).sum())

    sums, differences = zip(*(without(m, n) for m, n in [(0, 6), (2, 4), (3, 3)]), strict=True)
    assert_allclose(sums, sums[0], rtol=0, atol=1e-13)
    assert np.ptp(differences) > 0.1
    sums, differences = zip(*(without(m, n) for m, n in [(2, 0), (7, 5), (9, 7)]), strict=True)
    assert_allclose(differences, differences[0], rtol=0, atol=1e-13)
    assert np.ptp(sums) > 0.1


# ---- special cases ------------------------------------------------------------------------------


def test_frequency_zero_is_the_plain_word_vector_wherever_it_stands():
    r = data((5, 3))
    z = complex_order(r, 0.0, 0.0, 1000 + np.arange(5))
    assert_array_equal(z.real, r)
    assert_array_equal(z.imag, np.zeros((5, 3)))


def test_one_amplitude_for_all_words_leaves_a_pure_code_of_positions():
    L, D = 5, 3
    r, omega = data(D), data(D, seed=1)
    z = complex_order(np.broadcast_to(r, (L, D)), omega, 0.0, np.arange(L))
    for m in range(L):
        assert_allclose(z[m], r * np.exp(1j * omega) ** m, rtol=0, atol=1e-13)


def test_unit_amplitudes_and_sinusoidal_frequencies_give_cosine_and_sine():
    L, D = 50, 8
    z = complex_order(np.ones((L, D // 2)), rope_frequencies(D), 0.0, np.arange(L))
    code = sinusoidal(np.arange(L), D)
    assert_allclose(z.imag, code[:, 0::2], rtol=0, atol=1e-13)
    assert_allclose(z.real, code[:, 1::2], rtol=0, atol=1e-13)


def test_quarter_turns_pass_through_the_four_units():
    z = complex_order(np.full((5, 1), 2.0), math.pi / 2, 0.0, np.arange(5))
    assert_allclose(z[:, 0], [2, 2j, -2, -2j, 2], rtol=0, atol=1e-15)


def test_weights_of_a_quarter_and_a_half_turn_by_hand():
    _, weights = complex_attention([[1j]], [[1j], [1.0], [-1j]], [[0], [0], [0]])
    total = math.e + 1 + 1 / math.e
    assert_allclose(weights, [[math.e / total, 1 / total, 1 / math.e / total]], rtol=0, atol=1e-15)


def test_large_scores_do_not_overflow():
    _, weights = complex_attention([[1000.0]], [[1.0], [1000.0]], [[0.0], [0.0]])
    assert weights.tolist() == [[0.0, 1.0]]


# ---- dtype, precision, purity, bad input --------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.float16, np.complex64),
        (np.float32, np.complex64),
        (np.float64, np.complex128),
        (np.longdouble, np.clongdouble),
    ],
)
def test_amplitude_decides_the_complex_dtype_and_nothing_is_changed_in_place(dtype, expected):
    arrays = [*waves((5, 3)), np.arange(5)]
    arrays[0] = arrays[0].astype(dtype)
    kept = [a.copy() for a in arrays]
    z = complex_order(*arrays)
    assert z.dtype == expected
    for array, copy in zip(arrays, kept, strict=True):
        assert_array_equal(array, copy)
    assert complex_order([[1, 2]], 0, 0, [0]).dtype == np.complex128


def test_single_precision_is_as_exact_at_a_million_as_at_the_start():
    r, omega, theta = (a.astype(np.float32) for a in waves((5, 3)))
    wide = [a.astype(np.float64) for a in (r, omega, theta)]
    positions = 1_000_000 + np.arange(5)
    exact = complex_order(*wide, positions)
    assert_allclose(complex_order(r, omega, theta, positions), exact, rtol=0, atol=3e-7)


@pytest.mark.parametrize(
    ("dtype", "output_dtype", "weights_dtype"),
    [
        (np.complex64, np.complex64, np.float32),
        (np.complex128, np.complex128, np.float64),
        (np.float32, np.complex64, np.float32),
        (np.int64, np.complex128, np.float64),
    ],
)
def test_attention_keeps_its_precision_and_its_input(dtype, output_dtype, weights_dtype):
    z = (10 * numbers((3, 5))).astype(np.complex128)
    z = z.astype(dtype) if np.dtype(dtype).kind == "c" else z.real.astype(dtype)
    kept = z.copy()
    output, weights = complex_attention(z, z, z)
    assert (output.dtype, weights.dtype) == (output_dtype, weights_dtype)
    assert_array_equal(z, kept)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: complex_order([1.0, 2.0], 0, 0, [0]),
            r"complex_order: amplitude must have the axes \(..., L, D\); got shape \(2,\)",
        ),
        (
            lambda: complex_order(np.ones((3, 2)), np.ones(3), 0, np.arange(3)),
            r"frequency must broadcast to the shape of amplitude, \(3, 2\); got \(3,\)",
        ),
        (
            lambda: complex_order(np.ones((3, 2)), 0, np.ones((4, 3, 2)), np.arange(3)),
            r"phase must broadcast to the shape of amplitude, \(3, 2\); got \(4, 3, 2\)",
        ),
        (
            lambda: complex_order(np.ones((3, 2)), 0, 0, np.arange(2)),
            r"positions must broadcast to .* without its last axis, \(3,\); got \(2,\)",
        ),
        (lambda: complex_order([[1j]], 0, 0, [0]), "amplitude must hold real numbers; got dtype c"),
        (lambda: complex_order([[1]], "a", 0, [0]), "frequency must hold real numbers; got dtype"),
        (lambda: complex_order([[1]], 0, 1j, [0]), "phase must hold real numbers; got dtype comp"),
        (lambda: complex_order([[1]], 0, 0, [np.nan]), "positions must be finite"),
        (
            lambda: complex_attention(np.ones((3, 2)), np.ones((4, 5)), np.ones((4, 2))),
            "complex_attention: z_q and z_k must have the same width D.*got 2 and 5",
        ),
        (
            lambda: complex_attention(np.ones((3, 0)), np.ones((4, 0)), np.ones((4, 2))),
            "same width D, at least 1; got 0 and 0",
        ),
        (
            lambda: complex_attention(np.ones((3, 2)), np.ones((4, 2)), np.ones((5, 2))),
            "z_k and z_v must have the same length S; got 4 and 5",
        ),
        (
            lambda: complex_attention(np.ones(2), np.ones((4, 2)), np.ones((4, 2))),
            r"z_q must have the axes \(..., L, D\); got shape \(2,\)",
        ),
        (
            lambda: complex_attention([["a"]], np.ones((4, 2)), np.ones((4, 2))),
            "z_q must hold numbers; got dtype <U1",
        ),
        (
            lambda: complex_attention(np.ones((3, 2)), [[1j], [1, 2]], np.ones((4, 2))),
            "complex_attention: z_k must have rows of one length",
        ),
        (
            lambda: complex_attention(np.ones((2, 3, 2)), np.ones((5, 4, 2)), np.ones((4, 2))),
            r"complex_attention: the batch axes must broadcast; got z_q \(2,\), z_k \(5,\)",
        ),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
