r"""Scaled rotary frequencies: RoPE on sequences longer than those it was trained on.

Sources: position interpolation, Chen et al. 2023 (arXiv:2306.15595), section 2.3; "NTK-aware" and
"Dynamic NTK", posts of u/bloc97 and u/emozilla on r/LocalLLaMA, June 2023, written up with
"NTK-by-parts" and YaRN by Peng et al. 2023 (arXiv:2309.00071), sections 3.1 to 3.4, and their code,
jquesnelle/yarn at 995db5b; LongRoPE, Ding et al. 2024 (arXiv:2402.13753), microsoft/LongRoPE at
c9e56aa; Llama 3.1, meta-llama/llama-models at a9c89c4. With theta_i = b^(-2i/d)::

    linear          theta_i / s
    NTK-aware       b'^(-2i/d),   b' = b s^(d/(d-2))
    dynamic NTK     NTK-aware with max(1, s L/L0 - (s - 1)) for s
    NTK-by-parts    (1 - g_i) theta_i / s + g_i theta_i
    YaRN            (1 - g_i) theta_i / s + g_i theta_i; every score times (0.1 ln s + 1)^2
                    g_i a ramp in i: 1 from 32 turns within L0 on, 0 below 1
    Llama 3         (1 - g_i) theta_i / s + g_i theta_i
                    g_i a ramp in the turns within L0: 1 from 4 on, 0 below 1
    LongRoPE        theta_i / lambda_i, by two lists; every score times 1 + ln s / ln L0
    proportional    theta_i for i < floor(p d/2), else 0

Axes: d components that turn, in d/2 pairs (K, the width of a head, unless RoPE is partial).
Symbols: s, the factor by which the sequence grows; L0, the trained length; b, the base; g_i goes
from 1 (pairs that turn often within L0, kept) to 0 (pairs that barely turn, interpolated).
Convention: frequencies are radians per position, float64, for `rope`; positions stay whole.
Differs from the paper: g_i is a ramp, and two ramps are in use. The paper's is linear in the number
of turns L0 theta_i / 2 pi, and Llama 3.1 kept it: `llama3_scaling(theta, s, L0, 1, 32)` is the
paper's NTK-by-parts. YaRN's code, which Hugging Face follows, is linear in i: the frequencies of
`yarn_scaling`. So NTK-by-parts has no third function here. p-RoPE, Barbero et al. 2024
(arXiv:2410.06205), stretches nothing; its frequencies stand here because they are a choice, too.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.rotary.rope import rope_frequencies


def linear_scaling(frequencies: ArrayLike, factor: float) -> np.ndarray:
    """Interpolate positions: every pair turns `factor` times slower, theta_i / s.

    Parameters
    ----------
    frequencies : (n,) array
        theta_i in radians per position.
    factor : float
        s, target length over trained length.

    Returns
    -------
    (n,) float64 array. `rope` at position m with these is `rope` at position m/s with the others.

    Notes
    -----
    Source: Chen et al. 2023, section 2.3: f'(x, m) = f(x, m L/L'). Meant for a model that is then
    trained a little further: neighbours now differ by angles s times smaller than it has seen.

    Examples
    --------
    >>> linear_scaling([1.0, 0.5], 4).tolist()
    [0.25, 0.125]
    """
    frequencies = _one_axis("linear_scaling", frequencies)
    return frequencies / checks.positive("linear_scaling", "factor", factor)


def _one_axis(function: str, frequencies: ArrayLike) -> np.ndarray:
    theta = checks.position_array(function, "frequencies", frequencies)
    if theta.ndim != 1:
        raise ValueError(
            f"{function}: frequencies must be one axis of numbers; got shape {theta.shape}"
        )
    return theta.astype(np.float64)


def ntk_scaling(d: int, factor: float, base: float = 10000.0) -> np.ndarray:
    """Raise the base to b' = b s^(d/(d-2)): the slowest pair slows down s times, the fastest not.

    Parameters
    ----------
    d : int
        Number of components to turn, even, at least 4.
    factor : float
        s, target length over trained length.
    base : float
        b, the base that the model was trained with.

    Returns
    -------
    (d/2,) float64 array: theta_i s^(-2i/(d-2)).

    Raises
    ------
    ValueError
        If d is 2 (d - 2 divides).

    Notes
    -----
    Source: Peng et al. 2023, section 3.1, definition 1; first a post of u/bloc97, June 2023. The
    exponent is the one with which the last ratio, s^(-2i/(d-2)) at i = d/2 - 1, is exactly 1/s.

    Examples
    --------
    >>> (ntk_scaling(6, 4) / rope_frequencies(6)).round(12).tolist()
    [1.0, 0.5, 0.25]
    """
    d, base = _ntk("ntk_scaling", d, base)
    factor = checks.positive("ntk_scaling", "factor", factor)
    return rope_frequencies(d, base * factor ** (d / (d - 2)))


def _ntk(function: str, d: int, base: float) -> tuple[int, float]:
    d = checks.even(function, "d", d, "components pair up")
    if d == 2:
        raise ValueError(
            f"{function}: d must be at least 4, because one pair is both the fastest and the "
            "slowest; got 2"
        )
    return d, checks.positive(function, "base", base)


def dynamic_ntk_scaling(
    d: int, length: float, trained_length: float, factor: float = 1.0, base: float = 10000.0
) -> np.ndarray:
    """NTK scaling that grows with the sequence: none up to L0, then s L/L0 - (s - 1) for factor.

    Parameters
    ----------
    d : int
        Number of components to turn, even, at least 4.
    length : float
        L, the number of positions of the present sequence.
    trained_length : float
        L0, above 1.
    factor : float
        s. With 1 the factor of `ntk_scaling` is L/L0; a larger one prepares for more than L.
    base : float
        b, the base that the model was trained with.

    Returns
    -------
    (d/2,) float64 array, the trained frequencies for any length up to L0.

    Raises
    ------
    ValueError
        If d is 2 (d - 2 divides).

    Notes
    -----
    Source: Peng et al. 2023, section 3.3, for s = 1; first a post of u/emozilla, 2023, whose code
    has the factor. All keys must turn with the frequencies of the same length: a cache holds keys
    as they were before they turned.

    Examples
    --------
    >>> [dynamic_ntk_scaling(4, length, 8).round(4).tolist() for length in (7, 8, 16)]
    [[1.0, 0.01], [1.0, 0.01], [1.0, 0.005]]
    """
    name = "dynamic_ntk_scaling"
    d, base = _ntk(name, d, base)
    length = checks.positive(name, "length", length)
    trained_length = checks.above(name, "trained_length", trained_length, 1)
    factor = checks.positive(name, "factor", factor)
    growth = max(1, length / trained_length)
    return ntk_scaling(d, 1 + factor * (growth - 1), base)  # 1 + s(g - 1) is s g - (s - 1)


def yarn_scaling(
    d: int,
    factor: float,
    trained_length: float,
    base: float = 10000.0,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> tuple[np.ndarray, float]:
    """YaRN: keep the fast pairs, interpolate the slow ones, mix between; and sharpen attention.

    Parameters
    ----------
    d : int
        Number of components to turn, even.
    factor : float
        s, target length over trained length.
    trained_length : float
        L0, above 1.
    base : float
        b, above 1.
    beta_fast, beta_slow : float
        Turns within L0 from which a pair is kept, and below which it is interpolated.
    truncate : bool
        Whether the ramp begins and ends at whole pairs, as released; False in gpt-oss.

    Returns
    -------
    frequencies : (d/2,) float64 array
    attention_factor : float
        `yarn_attention_factor(factor)`. Multiply the components of queries and keys that turn with
        it, so that their part of the scores grows by its square.

    Notes
    -----
    Source: Peng et al. 2023, sections 3.2 and 3.4, as in the code named above; without `truncate`,
    openai/gpt-oss at 7b58334. Pair i turns r times within L0 where i = d ln(L0 / (2 pi r)) / (2 ln
    b); the ramp rises from the floor of that index for beta_fast, at least 0, to the ceiling of the
    one for beta_slow, at most d - 1. Equal bounds are kept 0.001 apart. Where the bounds cross,
    because every pair is too slow (too fast) for both betas, that code's ramp runs backwards and
    keeps (interpolates) every pair.

    Examples
    --------
    >>> frequencies, attention_factor = yarn_scaling(8, 4, 256)  # the ramp is 0, 0.5, 1, 1
    >>> frequencies.round(5).tolist(), round(attention_factor, 4)
    ([1.0, 0.0625, 0.0025, 0.00025], 1.1386)
    """
    name = "yarn_scaling"
    d = checks.even(name, "d", d, "components pair up")
    factor = checks.positive(name, "factor", factor)
    trained_length = checks.above(name, "trained_length", trained_length, 1)
    base = checks.above(name, "base", base, 1, "later pairs turn slower")
    beta_slow = checks.positive(name, "beta_slow", beta_slow)
    beta_fast = checks.positive(name, "beta_fast", beta_fast)
    if beta_fast < beta_slow:
        raise ValueError(
            "yarn_scaling: beta_fast must not be below beta_slow; "
            f"got {beta_fast:g} and {beta_slow:g}"
        )

    truncate = checks.flag(name, "truncate", truncate)

    def index(turns: float) -> float:
        return d * math.log(trained_length / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = index(beta_fast), index(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    ramp = np.clip((np.arange(d // 2) - low) / ((high - low) or 0.001), 0, 1)  # (d/2,), 1 - g_i
    theta = rope_frequencies(d, base)
    return theta / factor * ramp + theta * (1 - ramp), yarn_attention_factor(factor)


def yarn_attention_factor(factor: float, mscale: float = 1.0) -> float:
    """YaRN's factor of queries and keys, m(s, a) = 0.1 a ln s + 1, and 1 for s up to 1.

    Parameters
    ----------
    factor : float
        s, target length over trained length.
    mscale : float
        a, 1 in YaRN itself. DeepSeek has two: what turns is multiplied with m(s, mscale) / m(s,
        mscale_all_dim), every score with m(s, mscale_all_dim)^2.

    Returns
    -------
    A float. Scores of what is multiplied with it, queries and keys, grow by its square.

    Notes
    -----
    Source: Peng et al. 2023, section 3.4, for a = 1; deepseek-ai/DeepSeek-V3 at 9b4e978.

    Examples
    --------
    >>> [round(yarn_attention_factor(40, mscale) ** 2, 6) for mscale in (0.707, 1)]  # V2, V3
    [1.589626, 1.873854]
    """
    factor = checks.positive("yarn_attention_factor", "factor", factor)
    mscale = checks.number("yarn_attention_factor", "mscale", mscale)
    return 0.1 * mscale * math.log(factor) + 1 if factor > 1 else 1.0


def longrope_scaling(
    d: int,
    length: float,
    short_factor: ArrayLike,
    long_factor: ArrayLike,
    trained_length: float,
    factor: float,
    base: float = 10000.0,
) -> tuple[np.ndarray, float]:
    """LongRoPE: each pair has a divisor of its own, from one list up to L0, from another beyond.

    Parameters
    ----------
    d : int
        Number of components to turn, even.
    length : float
        L, the number of positions of the present sequence.
    short_factor, long_factor : (d/2,) array
        lambda_i, for L up to L0 and for L above it; found by a search.
    trained_length : float
        L0, above 1.
    factor : float
        s, the longest length over the trained length.
    base : float
        b, the base that the model was trained with.

    Returns
    -------
    frequencies : (d/2,) float64 array, theta_i / lambda_i
    attention_factor : float
        sqrt(1 + ln s / ln L0), and 1 for s up to 1, at every length; as in `yarn_scaling`.

    Notes
    -----
    Source: Ding et al. 2024, as in the code named above. Where the lists differ, keys that a cache
    holds rotated are wrong from L0 + 1 on.

    Examples
    --------
    >>> [longrope_scaling(4, length, [1, 1], [1, 4], 8, 8)[0].tolist() for length in (8, 9)]
    [[1.0, 0.01], [1.0, 0.0025]]
    """
    name = "longrope_scaling"
    d = checks.even(name, "d", d, "components pair up")
    length = checks.positive(name, "length", length)
    lists = []
    for which, divisors in (("short_factor", short_factor), ("long_factor", long_factor)):
        divisors = checks.exact_shape(name, which, divisors, (d // 2,), "(d/2,)")
        if not (np.isfinite(divisors) & (divisors > 0)).all():
            raise ValueError(f"{name}: {which} must hold finite numbers above 0")
        lists.append(divisors)
    trained_length = checks.above(name, "trained_length", trained_length, 1)
    factor = checks.positive(name, "factor", factor)
    theta = rope_frequencies(d, checks.positive(name, "base", base))
    growth = math.log(factor) / math.log(trained_length) if factor > 1 else 0.0
    return theta / lists[length > trained_length], math.sqrt(1 + growth)


def llama3_scaling(
    frequencies: ArrayLike,
    factor: float,
    trained_length: float,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> np.ndarray:
    """Llama 3.1: keep short wavelengths, divide long ones' frequencies by s, mix between.

    Parameters
    ----------
    frequencies : (n,) array
        theta_i in radians per position.
    factor : float
        s, target length over trained length; 8 in Llama 3.1.
    trained_length : float
        L0, above 1; 8192 in Llama 3.1.
    low_freq_factor, high_freq_factor : float
        Turns within L0 below which a pair is interpolated, and above which it is kept: wavelengths
        of L0/low and L0/high positions.

    Returns
    -------
    (n,) float64 array: (1 - g) theta / s + g theta, where g grows with the turns L0 theta / 2 pi,
    from 0 at low_freq_factor to 1 at high_freq_factor. A frequency of 0 stays 0.

    Notes
    -----
    Source: `apply_scaling` in the code named above. Its three branches by wavelength are the ramp
    of Peng et al. 2023, section 3.2, definition 2, where alpha and beta stand for the two bounds.

    Examples
    --------
    >>> turns = np.array([8.0, 4.0, 2.5, 1.0, 0.5])  # within 8192 positions
    >>> scaled = llama3_scaling(2 * np.pi * turns / 8192, 8, 8192)
    >>> (scaled * 8192 / (2 * np.pi)).round(12).tolist()
    [8.0, 4.0, 1.40625, 0.125, 0.0625]
    """
    name = "llama3_scaling"
    theta = _one_axis(name, frequencies)
    factor = checks.positive(name, "factor", factor)
    trained_length = checks.above(name, "trained_length", trained_length, 1)
    low = checks.positive(name, "low_freq_factor", low_freq_factor)
    high = checks.number(name, "high_freq_factor", high_freq_factor)
    if high <= low:
        raise ValueError(
            f"{name}: high_freq_factor must be above low_freq_factor; got {high:g} and {low:g}"
        )
    turns = trained_length * np.abs(theta) / (2 * math.pi)  # within L0: L0 over the wavelength
    g = np.clip((turns - low) / (high - low), 0, 1)
    return (1 - g) * theta / factor + g * theta


def proportional_frequencies(
    d: int, fraction: float, base: float = 10000.0, factor: float = 1.0
) -> np.ndarray:
    """p-RoPE: the first pairs of the whole head turn as in RoPE, the slowest ones not at all.

    Parameters
    ----------
    d : int
        K, the whole width of a head, even.
    fraction : float
        p, the part of the pairs that turns, above 0 and at most 1.
    base : float
        b.
    factor : float
        Divides the frequencies, as in `linear_scaling`.

    Returns
    -------
    (d/2,) float64 array: b^(-2i/d) / factor for i below floor(p d/2), then zeros, with which the
    half layout of `rope` pairs i with i + d/2; partial RoPE pairs i with i + p d/2.

    Notes
    -----
    Source: Barbero et al. 2024 (arXiv:2410.06205), as in google-deepmind/gemma at 7691fd4. If p d
    is even, partial RoPE of p d components and the base b^p has the same frequencies.

    Examples
    --------
    >>> proportional_frequencies(8, 0.5).tolist()
    [1.0, 0.1, 0.0, 0.0]
    """
    name = "proportional_frequencies"
    d = checks.even(name, "d", d, "components pair up")
    fraction = checks.positive(name, "fraction", fraction)
    if fraction > 1:
        raise ValueError(f"{name}: fraction must be at most 1; got {fraction:g}")
    factor = checks.positive(name, "factor", factor)
    theta = rope_frequencies(d, checks.positive(name, "base", base)) / factor
    theta[math.floor(fraction * d / 2) :] = 0
    return theta
