"""Scaled frequencies: loop oracles, theorems, published values, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import rope, rope_frequencies
from pe_numpy.rotary.scaling import (
    dynamic_ntk_scaling,
    linear_scaling,
    llama3_scaling,
    longrope_scaling,
    ntk_scaling,
    proportional_frequencies,
    yarn_attention_factor,
    yarn_scaling,
)

widths = st.integers(2, 40).map(lambda n: 2 * n)
factors = st.floats(1, 64)
bases = st.floats(2, 1e6)
lengths = st.integers(2, 10**6)
positions_anywhere = st.integers(-5000, 5000)
seeds = st.integers(0, 2**32 - 1)


def ntk_by_loops(d, factor, base):
    """Definition 1 of section 3.1, one pair at a time."""
    b = base * factor ** (d / (d - 2))
    return [1 / b ** (2 * i / d) for i in range(d // 2)]


def yarn_by_loops(d, factor, trained_length, base, beta_fast, beta_slow, truncate=True):
    """The released ramp, one pair at a time; without `truncate` between bounds as they are."""

    def index(turns):
        return d * math.log(trained_length / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = index(beta_fast), index(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    if low == high:
        high += 0.001
    scaled = []
    for i in range(d // 2):
        theta = 1 / base ** (2 * i / d)
        ramp = min(max((i - low) / (high - low), 0), 1)
        scaled.append(theta / factor * ramp + theta * (1 - ramp))
    return scaled


def by_parts_by_loops(frequencies, factor, trained_length, alpha, beta):
    """Definition 2 of section 3.2: the ramp of the paper, linear in the number of turns."""
    scaled = []
    for theta in frequencies:
        r = trained_length / (2 * math.pi / theta)
        gamma = 0 if r < alpha else 1 if r > beta else (r - alpha) / (beta - alpha)
        scaled.append((1 - gamma) * theta / factor + gamma * theta)
    return scaled


def llama3_by_loops(frequencies, factor, trained_length, low, high):
    """The three branches by wavelength, one frequency at a time."""
    scaled = []
    for theta in frequencies:
        wavelength = 2 * math.pi / theta
        if wavelength < trained_length / high:
            scaled.append(theta)
        elif wavelength > trained_length / low:
            scaled.append(theta / factor)
        else:
            smooth = (trained_length / wavelength - low) / (high - low)
            scaled.append((1 - smooth) * theta / factor + smooth * theta)
    return scaled


def data(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# ---- loop oracles -------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "factor", "base"), [(4, 3.0, 10000.0), (14, 0.5, 7.0), (64, 2, 5e5)])
def test_ntk_scaling_equals_its_definition_pair_by_pair(d, factor, base):
    assert_allclose(ntk_scaling(d, factor, base), ntk_by_loops(d, factor, base), rtol=1e-13)


@pytest.mark.parametrize("length", [1, 99, 100, 101, 250, 6400])
@pytest.mark.parametrize(("d", "factor", "base"), [(4, 1.0, 10000.0), (14, 10.0, 700.0)])
def test_dynamic_ntk_scaling_raises_the_base_by_the_formula(d, factor, base, length):
    growth = max(length, 100) / 100
    expected = ntk_by_loops(d, factor * growth - (factor - 1), base)
    assert_allclose(dynamic_ntk_scaling(d, length, 100, factor, base), expected, rtol=1e-13)


@pytest.mark.parametrize(
    "arguments",
    [
        (128, 16.0, 2048, 10000.0, 32.0, 1.0),
        (64, 40, 4096, 10000, 32, 1),
        (10, 2.0, 300, 500.0, 8.0, 2.0),
        (2, 3.0, 500, 10000.0, 32.0, 1.0),
        (96, 0.5, 8192, 500000.0, 4.0, 4.0),
        (8, 4.0, 4, 10000.0, 32.0, 1.0),  # both bounds 0
        (8, 4.0, 1e9, 2.0, 32.0, 1.0),  # the first bound beyond the second
        (128, 4.0, 2, 10000.0, 32.0, 1.0),  # the second bound below 0
    ],
)
def test_yarn_scaling_equals_the_released_ramp_pair_by_pair(arguments):
    for truncate in (True, False):
        frequencies, _ = yarn_scaling(*arguments, truncate)
        assert frequencies.shape == (arguments[0] // 2,)
        assert_allclose(frequencies, yarn_by_loops(*arguments, truncate), rtol=1e-13)
    assert_array_equal(yarn_scaling(*arguments)[0], yarn_scaling(*arguments, True)[0])


@pytest.mark.parametrize(
    ("d", "base", "arguments"),
    [
        (128, 500000.0, (8.0, 8192, 1.0, 4.0)),
        (64, 500000.0, (32.0, 8192, 1.0, 4.0)),
        (10, 300.0, (0.5, 100, 0.25, 6.0)),
    ],
)
def test_llama3_scaling_equals_its_three_branches(d, base, arguments):
    frequencies = rope_frequencies(d, base)
    expected = llama3_by_loops(frequencies, *arguments)
    assert_allclose(llama3_scaling(frequencies, *arguments), expected, rtol=1e-13)


@pytest.mark.parametrize(("d", "base"), [(8, 10000.0), (10, 300.0), (2, 5.0)])
@pytest.mark.parametrize("length", [1, 99, 100, 100.5, 101, 10**6])
def test_longrope_divides_pair_by_pair_by_the_list_of_the_length(d, base, length):
    short, long = np.random.default_rng(d).uniform(1, 9, (2, d // 2))
    divisors = long if length > 100 else short
    expected = [1 / (divisors[i] * base ** (2 * i / d)) for i in range(d // 2)]
    frequencies, factor = longrope_scaling(d, length, short, long.tolist(), 100, 12, base)
    assert_allclose(frequencies, expected, rtol=1e-13)
    assert_allclose(factor, math.sqrt(1 + math.log(12) / math.log(100)), rtol=1e-14)


@pytest.mark.parametrize(("d", "base"), [(8, 10000.0), (12, 300.0), (2, 5.0)])
@pytest.mark.parametrize("fraction", [0.01, 0.25, 0.5, 0.6, 0.99, 1])
def test_proportional_frequencies_keep_the_first_pairs_of_the_whole_ladder(d, base, fraction):
    expected = [base ** (-2 * c / d) / 3 if c + 1 <= fraction * d / 2 else 0 for c in range(d // 2)]
    assert_allclose(proportional_frequencies(d, fraction, base, 3), expected, rtol=1e-13)


def test_scaling_no_frequencies_gives_none():
    assert linear_scaling([], 2).shape == llama3_scaling([], 2, 100).shape == (0,)


# ---- theorems -----------------------------------------------------------------------------------


@given(widths, positions_anywhere, factors, seeds)
def test_linear_scaling_is_the_division_of_positions(d, m, factor, seed):
    x, theta = data((1, d), seed=seed), rope_frequencies(d)
    squeezed = rope(x, [m / factor], theta)
    assert_allclose(squeezed, rope(x, [m], linear_scaling(theta, factor)), rtol=0, atol=1e-9)


@given(widths, factors, bases)
def test_ntk_scaling_keeps_the_first_pair_and_interpolates_the_last(d, factor, base):
    theta = rope_frequencies(d, base)
    ratios = ntk_scaling(d, factor, base) / theta
    assert ratios[0] == 1
    assert_allclose(ratios[-1], 1 / factor, rtol=1e-12)
    expected = [factor ** (-2 * i / (d - 2)) for i in range(d // 2)]
    assert_allclose(ratios, expected, rtol=1e-12)


@given(widths, factors, factors, bases)
def test_ntk_scalings_multiply(d, first, second, base):
    twice = ntk_scaling(d, second, base * first ** (d / (d - 2)))
    assert_allclose(twice, ntk_scaling(d, first * second, base), rtol=1e-11)


@given(widths, lengths, factors, bases)
def test_dynamic_scaling_starts_past_the_trained_length_and_not_before(d, trained, factor, base):
    theta = rope_frequencies(d, base)
    assert_array_equal(dynamic_ntk_scaling(d, 1, trained, factor, base), theta)
    assert_array_equal(dynamic_ntk_scaling(d, trained, trained, factor, base), theta)
    next_one = dynamic_ntk_scaling(d, trained + 1, trained, factor, base)
    expected = ntk_scaling(d, 1 + factor / trained, base)
    assert_allclose(next_one, expected, rtol=1e-13)
    assert (next_one[1:] < theta[1:]).all()
    assert next_one[0] == 1


@given(widths, lengths, factors)
def test_dynamic_scaling_of_factor_1_is_ntk_scaling_by_the_growth(d, trained, growth):
    frequencies = dynamic_ntk_scaling(d, growth * trained, trained)
    assert frequencies[0] == 1
    assert_allclose(frequencies[-1] * growth, rope_frequencies(d)[-1], rtol=1e-11)
    assert_allclose(frequencies, ntk_scaling(d, growth), rtol=1e-11)


def test_keys_turned_for_another_length_see_wrong_distances():
    q, k, L0 = data((1, 8)), data((1, 8), seed=1), 16
    now = dynamic_ntk_scaling(8, 40, L0)
    before = dynamic_ntk_scaling(8, 39, L0)
    score = rope(q, [39], now) @ rope(k, [38], now).T
    assert_allclose(score, rope(q, [1], now) @ k.T, rtol=0, atol=1e-12)  # distance 1
    assert abs(rope(q, [39], now) @ rope(k, [38], before).T - score) > 0.01  # a stale cache


@given(widths, factors, st.integers(300, 10**6), st.floats(100, 1e6))
def test_yarn_scaling_lies_between_keeping_and_interpolating(d, factor, trained, base):
    theta = rope_frequencies(d, base)
    ratios = yarn_scaling(d, factor, trained, base)[0] / theta
    assert ((1 / factor - 1e-12 <= ratios) & (ratios <= 1 + 1e-12)).all()
    assert (np.diff(ratios) <= 1e-12).all()  # slower pairs are never scaled less


@given(widths, factors, st.integers(300, 10**6), st.floats(100, 1e6))
def test_yarn_scaling_keeps_what_turns_often_and_divides_what_hardly_turns(d, factor, L0, base):
    theta = rope_frequencies(d, base)
    turns = L0 * theta / (2 * np.pi)  # 47 at least for the first pair
    low = math.floor(d * math.log(L0 / (64 * math.pi)) / (2 * math.log(base)))
    high = math.ceil(d * math.log(L0 / (2 * math.pi)) / (2 * math.log(base)))
    often, hardly = np.arange(d // 2) <= low, np.arange(d // 2) >= high
    assert (turns[often] > 32 - 1e-9).all()
    assert (turns[hardly] < 1 + 1e-9).all()
    if low < d - 1:
        frequencies, _ = yarn_scaling(d, factor, L0, base)
        assert_array_equal(frequencies[often], theta[often])
        assert_array_equal(frequencies[hardly], (theta / factor)[hardly])


@pytest.mark.parametrize(
    ("d", "trained_length", "base", "ratios"),
    [
        (8, 4, 10000.0, [1, 0.25, 0.25, 0.25]),  # bounds equal
        (128, 2, 10000.0, [1] * 64),  # every pair too slow, the ramp runs backwards
        (8, 1e9, 2.0, [0.25] * 4),  # every pair too fast, the ramp runs backwards
        (2, 500, 10000.0, [1]),
    ],
)
def test_degenerate_bounds_of_yarn_give_what_the_released_code_gives(
    d, trained_length, base, ratios
):
    frequencies, _ = yarn_scaling(d, 4, trained_length, base)
    assert_allclose(frequencies / rope_frequencies(d, base), ratios, rtol=1e-13)


@given(widths, factors, st.integers(2, 10**6), bases, st.floats(0.5, 4), st.floats(1, 32))
def test_llama3_scaling_is_ntk_by_parts_as_the_paper_defines_it(d, factor, L0, base, low, step):
    frequencies = rope_frequencies(d, base)
    expected = by_parts_by_loops(frequencies, factor, L0, low, low + step)
    scaled = llama3_scaling(frequencies, factor, L0, low, low + step)
    assert_allclose(scaled, expected, rtol=1e-9)


@given(widths, factors, st.integers(300, 10**6), st.floats(100, 1e6))
def test_a_pair_outside_the_rounded_bounds_does_not_see_truncate(d, factor, L0, base):
    low = math.floor(d * math.log(L0 / (64 * math.pi)) / (2 * math.log(base)))
    high = math.ceil(d * math.log(L0 / (2 * math.pi)) / (2 * math.log(base)))
    rounded, real = (yarn_scaling(d, factor, L0, base, truncate=t)[0] for t in (True, False))
    i = np.arange(d // 2)
    outside = (i <= low) | (i >= high)
    if low < d - 1:
        assert_array_equal(rounded[outside], real[outside])


@given(widths, st.integers(2, 10**6), st.floats(2, 10**6), factors, bases)
def test_longrope_with_one_divisor_is_linear_scaling_but_for_its_factor(d, length, L0, s, base):
    theta, ones = rope_frequencies(d, base), np.ones(d // 2)
    frequencies, factor = longrope_scaling(d, length, s * ones, s * ones, L0, s, base)
    assert_array_equal(frequencies, linear_scaling(theta, s))
    assert factor == (1 if s <= 1 else math.sqrt(1 + math.log(s) / math.log(L0)))
    assert_array_equal(longrope_scaling(d, length, ones, ones, L0, 1, base)[0], theta)


@pytest.mark.parametrize(
    ("scaling", "same"),
    [
        (lambda L: longrope_scaling(8, L, [1] * 4, [1, 2, 4, 8], 8, 4)[0], [True, False, True]),
        (lambda L: dynamic_ntk_scaling(8, L, 8), [True, False, False]),
        (lambda L: yarn_scaling(8, 4, 8)[0], [True, True, True]),
    ],
)
def test_old_scores_change_once_with_longrope_and_with_every_token_in_dynamic_scaling(
    scaling, same
):
    def scores(L):
        q, k = (rope(x[:L], np.arange(L), scaling(L)) for x in data((2, 10, 8)))
        return q @ k.T

    for L, expected in zip((7, 8, 9), same, strict=True):
        assert np.allclose(scores(L), scores(L + 1)[:L, :L]) is expected


@given(st.integers(1, 40), st.floats(0.01, 1), st.floats(2, 1e6))
def test_proportional_rope_is_partial_rope_of_a_smaller_base(pairs, fraction, base):
    d, n = 2 * pairs, math.floor(fraction * pairs)
    if n:
        fraction = n / pairs  # the pairs that turn are then p d/2 exactly
        proportional = proportional_frequencies(d, fraction, base)
        n = math.floor(fraction * pairs)
        if n == round(fraction * pairs):
            partial = rope_frequencies(2 * n, base**fraction)
            assert_allclose(proportional[:n], partial, rtol=1e-12)
        assert not proportional[n:].any()


def test_a_permutation_of_components_makes_partial_rope_of_proportional():
    x, order = data((3, 8)), [0, 1, 4, 5, 2, 3, 6, 7]
    whole = rope(x, [1, 2, 30], proportional_frequencies(8, 0.5), "half")
    part = rope(x[:, order], [1, 2, 30], rope_frequencies(4, 100), "half")
    assert_allclose(whole[:, order], part, rtol=0, atol=1e-14)
    whole, part = (
        rope(x, [5], theta)
        for theta in (proportional_frequencies(8, 0.5), rope_frequencies(4, 100))
    )
    assert_allclose(whole, part, rtol=0, atol=1e-14)  # interleaved: the same


def test_the_two_ramps_of_ntk_by_parts_agree_outside_and_differ_inside():
    theta = rope_frequencies(128)
    released, _ = yarn_scaling(128, 16, 2048)
    paper = llama3_scaling(theta, 16, 2048, low_freq_factor=1, high_freq_factor=32)
    outside = (np.arange(64) <= 16) | (np.arange(64) >= 41)
    assert_array_equal(released[outside], paper[outside])
    assert (released[~outside] > paper[~outside]).all()  # the paper's ramp falls faster
    assert round(((released - paper) / theta).max(), 2) == 0.36


@pytest.mark.parametrize("bound", [1.0, 4.0])
def test_llama3_scaling_is_continuous_at_both_ends_of_its_band(bound):
    turns = bound + np.array([-1e-9, 0, 1e-9])
    scaled = llama3_scaling(2 * np.pi * turns / 8192, 8, 8192) * 8192 / (2 * np.pi)
    assert_allclose(scaled, bound / 8 if bound == 1 else bound, rtol=0, atol=1e-8)


def test_frequencies_of_zero_stay_zero_and_negative_ones_are_mirrored():
    theta = np.array([0.5, 0.002, 0.001, 0.0])
    scaled = llama3_scaling(theta, 8, 8192)
    assert scaled[-1] == 0
    assert_array_equal(llama3_scaling(-theta, 8, 8192), -scaled)


@given(widths, lengths, bases)
def test_a_factor_of_1_changes_nothing(d, trained, base):
    theta = rope_frequencies(d, base)
    yarn, attention_factor = yarn_scaling(d, 1, trained, base)
    assert attention_factor == 1
    assert_array_equal(linear_scaling(theta, 1), theta)
    assert_array_equal(ntk_scaling(d, 1, base), theta)
    assert_allclose(yarn, theta, rtol=1e-14)
    assert_allclose(llama3_scaling(theta, 1, trained), theta, rtol=1e-14)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_partial_rotation_takes_the_frequencies_of_the_part_that_turns(layout):
    K, r = 256, 64  # GPT-J
    x, theta = data((3, K)), rope_frequencies(r)
    assert_allclose(theta, [10000 ** (-2 * i / r) for i in range(r // 2)], rtol=1e-14)
    turned = rope(x, [1, 2, 3], theta, layout)
    assert_array_equal(turned[:, r:], x[:, r:])
    assert_allclose(turned[:, :r], rope(x[:, :r], [1, 2, 3], layout=layout), rtol=0, atol=1e-14)
    assert (turned[:, :r] != x[:, :r]).all()


# ---- published values ---------------------------------------------------------------------------


def test_three_scalings_of_four_pairs_by_four():
    assert rope_frequencies(8).round(12).tolist() == [1, 0.1, 0.01, 0.001]
    assert linear_scaling(rope_frequencies(8), 4).round(12).tolist() == [0.25, 0.025, 0.0025, 25e-5]
    ntk = ntk_scaling(8, 4)
    assert ntk.round(6).tolist() == [1, 0.062996, 0.003969, 0.00025]
    assert f"{1 / ntk[1] ** 4:.2f}" == "63496.04"  # b' = 1 / theta_1^(d/2)
    assert (ntk / rope_frequencies(8)).round(3).tolist() == [1, 0.63, 0.397, 0.25]


@pytest.mark.parametrize(
    ("d", "base"), [(64, "20452.228712"), (128, "20221.261690"), (8, "25198.420998")]
)
def test_base_of_ntk_scaling_by_two(d, base):
    assert f"{ntk_scaling(d, 2.0)[1] ** (-d / 2):.6f}" == base


def test_ntk_scaling_of_eight_components_by_two():
    printed = ["1.0000e+00", "7.9370e-02", "6.2996e-03", "5.0000e-04"]
    assert [f"{theta:.4e}" for theta in ntk_scaling(8, 2.0)] == printed


def test_dynamic_base_of_sixteen_thousand_positions():
    frequencies = dynamic_ntk_scaling(128, 16384, 2048, factor=10)
    assert f"{frequencies[1] ** -64:.2f}" == "759702.23"


def test_yarn_of_llama_ramps_from_pair_16_to_pair_41():
    ratios = yarn_scaling(128, 16, 2048)[0] / rope_frequencies(128)
    assert_array_equal(ratios[:17], 1)
    assert_array_equal(ratios[41:], 1 / 16)
    assert_allclose(ratios[16:42], 1 - np.arange(26) / 25 * 15 / 16, rtol=1e-13)


@pytest.mark.parametrize(
    ("factor", "expected"), [(16, 1.277259), (2, 1.069315), (1, 1), (0.5, 1), (math.e**10, 2)]
)
def test_attention_factor_grows_with_the_logarithm_and_is_never_below_1(factor, expected):
    assert_allclose(yarn_scaling(8, factor, 2048)[1], expected, rtol=0, atol=5e-7)


def test_scores_of_deepseek_v3_grow_by_the_square_of_the_factor():
    theta, attention_factor = yarn_scaling(64, 40, 4096)
    assert f"{attention_factor**2:.5f}" == "1.87385"
    q, k = data((2, 1, 64))
    plain = rope(q, [5], theta) @ rope(k, [3], theta).T
    scaled = (attention_factor * rope(q, [5], theta)) @ (attention_factor * rope(k, [3], theta)).T
    assert_allclose(scaled, attention_factor**2 * plain, rtol=1e-12)


def test_attention_factors_of_deepseek_v2_and_v3():
    assert f"{yarn_attention_factor(40, 0.707) ** 2:.6f}" == "1.589626"
    assert f"{yarn_attention_factor(40) ** 2:.6f}" == "1.873854"
    assert yarn_attention_factor(1, 3) == yarn_attention_factor(0.5, 3) == 1
    assert type(yarn_attention_factor(np.float32(2))) is float
    assert yarn_scaling(8, 32, 4096)[1] == yarn_attention_factor(32)


def test_yarn_of_gpt_oss_with_rounded_and_with_real_bounds():
    pairs = [8, 9, 12, 17, 18]
    rounded, factor = yarn_scaling(64, 32, 4096, 150000)
    real, same = yarn_scaling(64, 32, 4096, 150000, truncate=False)
    assert f"{factor:.6f}" == "1.346574" == f"{same:.6f}"
    printed = ["0.0508133", "0.0316208", "0.00701571", "0.000227948", "3.83088e-05"]
    assert [f"{theta:.6g}" for theta in rounded[pairs]] == printed
    printed = ["0.0508133", "0.0317057", "0.00679496", "0.000129319", "3.83088e-05"]
    assert [f"{theta:.6g}" for theta in real[pairs]] == printed


def test_ramps_of_the_paper_and_of_the_code_by_eight():
    paper = llama3_scaling(rope_frequencies(128), 8, 2048, 1, 32)
    released, _ = yarn_scaling(128, 8, 2048)
    assert [f"{theta:.6f}" for theta in paper[[24, 31]]] == ["0.012260", "0.002344"]
    assert [f"{theta:.6f}" for theta in released[[24, 31]]] == ["0.022768", "0.005485"]


def test_longrope_on_both_sides_of_the_trained_length():
    lists = [1, 1, 1, 1], [1, 2, 4, 8]
    before, factor = longrope_scaling(8, 4096, *lists, 4096, 32)
    assert before.round(12).tolist() == [1, 0.1, 0.01, 0.001]
    after, same = longrope_scaling(8, 4097, *lists, 4096, 32)
    assert after.round(12).tolist() == [1, 0.05, 0.0025, 0.000125]
    assert f"{factor:.6f} {factor**2:.6f}" == "1.190238 1.416667"
    assert factor == same
    assert_allclose(factor**2, 17 / 12, rtol=1e-15)
    assert longrope_scaling(8, 9, *lists, 4096, 0.5)[1] == 1  # a shorter text is not flattened


def test_dynamic_scaling_at_three_lengths():
    last = [dynamic_ntk_scaling(8, length, 8, 2)[-1] for length in (8, 12, 16)]
    assert [f"{theta:.9f}" for theta in last] == ["0.001000000", "0.000500000", "0.000333333"]


@pytest.mark.parametrize(
    ("theta", "layout", "expected"),
    [
        (rope_frequencies(4), "half", "-3.1440 1.9196 -0.3391 4.0392 5 6 7 8"),
        (proportional_frequencies(8, 0.5), "half", "-4.9626 0.7681 3 4 -1.1714 6.2777 7 8"),
        (rope_frequencies(4), "interleaved", "-2.2347 0.0770 2.9194 4.0592 5 6 7 8"),
        (
            proportional_frequencies(8, 0.5),
            "interleaved",
            "-2.2347 0.0770 2.1455 4.5163 5 6 7 8",
        ),
    ],
)
def test_half_of_eight_components_turned_in_four_ways(theta, layout, expected):
    turned = rope([np.arange(1.0, 9)], [2], theta, layout)[0]
    assert_allclose(turned, np.array(expected.split(), float), rtol=0, atol=5.1e-5)


def test_gemma_4_and_what_partial_rope_would_have():
    theta = proportional_frequencies(512, 0.25, 1e6)
    assert [f"{theta[n]:.6f}" for n in (1, 63, 64)] == ["0.947464", "0.033376", "0.000000"]
    assert f"{rope_frequencies(128, 1e6)[1]:.6f}" == "0.805842"


def test_llama3_keeps_29_pairs_mixes_6_and_divides_the_others_by_eight():
    theta = rope_frequencies(128, 500000.0)
    ratios = llama3_scaling(theta, 8, 8192) / theta
    assert_array_equal(ratios[:29], 1)
    mixed = [0.828168, 0.643743, 0.493507, 0.371122, 0.271425, 0.190211]
    assert ratios[29:35].round(6).tolist() == mixed
    assert_array_equal(ratios[35:], 0.125)


# ---- dtype, purity, bad input -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_frequencies_become_float64_and_stay_as_they_were(dtype):
    theta = np.array([8, 4, 2], dtype)
    kept = theta.copy()
    for scaled in (linear_scaling(theta, 2), llama3_scaling(theta, 2, 4096)):
        assert scaled.dtype == np.float64
        assert not np.shares_memory(scaled, theta)
    assert_array_equal(theta, kept)


def test_scaled_frequencies_are_float64_and_the_attention_factor_is_a_number():
    frequencies, attention_factor = yarn_scaling(8, np.float32(4), np.int32(2048))
    assert type(attention_factor) is float
    longrope, own_factor = longrope_scaling(4, 9, np.ones(2, np.float32), [1, 2], 4, 2)
    assert type(own_factor) is float
    for scaled in (
        frequencies,
        ntk_scaling(8, np.float32(4)),
        dynamic_ntk_scaling(8, 9, 4),
        longrope,
        proportional_frequencies(8, np.float32(0.5)),
    ):
        assert scaled.dtype == np.float64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear_scaling([1.0], 0), "linear_scaling: factor must be above 0; got 0"),
        (lambda: linear_scaling([[1.0]], 2), r"frequencies must be one axis.*got shape \(1, 1\)"),
        (lambda: linear_scaling(1.0, 2), r"frequencies must be one axis.*got shape \(\)"),
        (lambda: linear_scaling([np.inf], 2), "linear_scaling: frequencies must be finite"),
        (lambda: ntk_scaling(7, 2), "ntk_scaling: d must be even, so that components pair up"),
        (lambda: ntk_scaling(2, 2), "ntk_scaling: d must be at least 4, because one pair is both"),
        (lambda: ntk_scaling(8, -1), "ntk_scaling: factor must be above 0; got -1"),
        (lambda: ntk_scaling(8, 2, base=0), "ntk_scaling: base must be above 0; got 0"),
        (lambda: ntk_scaling(8, [2, 3]), "ntk_scaling: factor must be one real number"),
        (lambda: dynamic_ntk_scaling(2, 9, 4), "dynamic_ntk_scaling: d must be at least 4"),
        (lambda: dynamic_ntk_scaling(8, 0, 4), "dynamic_ntk_scaling: length must be above 0"),
        (
            lambda: dynamic_ntk_scaling(8, 9, 1),
            "dynamic_ntk_scaling: trained_length must be above 1; got 1",
        ),
        (lambda: dynamic_ntk_scaling(8, 9, 4, 0), "dynamic_ntk_scaling: factor must be above 0"),
        (lambda: dynamic_ntk_scaling(8, 9, 4, base=-1), "dynamic_ntk_scaling: base must be above"),
        (lambda: yarn_scaling(5, 2, 2048), "yarn_scaling: d must be even"),
        (lambda: yarn_scaling(8, 0, 2048), "yarn_scaling: factor must be above 0; got 0"),
        (lambda: yarn_scaling(8, 2, 1), "yarn_scaling: trained_length must be above 1; got 1"),
        (
            lambda: yarn_scaling(8, 2, 2048, base=1),
            "yarn_scaling: base must be above 1, so that later pairs turn slower; got 1",
        ),
        (lambda: yarn_scaling(8, 2, 2048, beta_slow=0), "yarn_scaling: beta_slow must be above 0"),
        (lambda: yarn_scaling(8, 2, 2048, beta_fast=-3), "yarn_scaling: beta_fast must be above 0"),
        (
            lambda: yarn_scaling(8, 2, 2048, beta_fast=1, beta_slow=32),
            "yarn_scaling: beta_fast must not be below beta_slow; got 1 and 32",
        ),
        (lambda: yarn_scaling(8, 2, 99, truncate=1), "truncate must be True or False; got 1"),
        (lambda: yarn_attention_factor(0), "yarn_attention_factor: factor must be above 0; got 0"),
        (lambda: yarn_attention_factor(2, "1"), "yarn_attention_factor: mscale must be one real"),
        (
            lambda: longrope_scaling(8, 9, [1, 1], [1] * 4, 8, 2),
            r"longrope_scaling: short_factor must have the shape \(d/2,\) = \(4,\); got \(2,\)",
        ),
        (
            lambda: longrope_scaling(4, 9, [1, 1], [1, 0], 8, 2),
            "longrope_scaling: long_factor must hold finite numbers above 0",
        ),
        (lambda: longrope_scaling(4, 9, [1, np.inf], [1, 1], 8, 2), "short_factor must hold fin"),
        (lambda: longrope_scaling(5, 9, [1], [1], 8, 2), "longrope_scaling: d must be even"),
        (lambda: longrope_scaling(2, 0, [1], [1], 8, 2), "length must be above 0; got 0"),
        (lambda: longrope_scaling(2, 9, [1], [1], 1, 2), "trained_length must be above 1; got 1"),
        (lambda: longrope_scaling(2, 9, [1], [1], 8, 0), "factor must be above 0; got 0"),
        (lambda: longrope_scaling(2, 9, [1], [1], 8, 2, 0), "base must be above 0; got 0"),
        (
            lambda: proportional_frequencies(8, 1.5),
            "proportional_frequencies: fraction must be at most 1; got 1.5",
        ),
        (lambda: proportional_frequencies(8, 0), "fraction must be above 0; got 0"),
        (lambda: proportional_frequencies(7, 0.5), "proportional_frequencies: d must be even"),
        (lambda: proportional_frequencies(8, 0.5, 0), "base must be above 0; got 0"),
        (lambda: proportional_frequencies(8, 0.5, 2, 0), "factor must be above 0; got 0"),
        (
            lambda: llama3_scaling([1.0], 8, 8192, 4, 4),
            "llama3_scaling: high_freq_factor must be above low_freq_factor; got 4 and 4",
        ),
        (lambda: llama3_scaling([1.0], 8, 8192, 4, 1), "above low_freq_factor; got 1 and 4"),
        (lambda: llama3_scaling([1.0], 8, 8192, 0, 4), "low_freq_factor must be above 0; got 0"),
        (lambda: llama3_scaling([1.0], 0, 8192), "llama3_scaling: factor must be above 0; got 0"),
        (lambda: llama3_scaling([1.0], 8, 0.5), "trained_length must be above 1; got 0.5"),
        (lambda: llama3_scaling([[1.0]], 8, 8192), r"llama3_scaling: frequencies must be one axis"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
