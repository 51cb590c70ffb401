"""Exercises of place 2: queries and keys turn (chapters 40, 41 and 50)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.homework.measured import turning
from pe_numpy.rotary.rope import rope, rope_frequencies, rope_matrix, rope_permutation
from pe_numpy.rotary.scaling import (
    dynamic_ntk_scaling,
    linear_scaling,
    llama3_scaling,
    longrope_scaling,
    ntk_scaling,
    yarn_attention_factor,
)

# ---- rope ---------------------------------------------------------------------------------------


def _rope_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0]]), np.array([1]))  # one pair
    yield case(np.eye(4), np.array([0, 1, 2, 3]))  # two pairs, each component alone
    for layout in ("interleaved", "half"):
        for dtype in (np.float64, np.float32):
            x = rng.standard_normal((2, 3, 5, 8)).astype(dtype)  # (B, H, L, K)
            yield case(x, np.arange(5), layout=layout)
            yield case(x, np.arange(100, 105), layout=layout)  # a cache: not from 0
            yield case(x, rng.integers(0, 50, (2, 1, 5)), layout=layout)  # left padding
            yield case(x, np.arange(5) / 4, rope_frequencies(4, 500.0), layout=layout)  # partial
    yield case(rng.standard_normal((3, 6)).astype(np.float32), np.array([0, 10**5, 10**6]))


def _other_frequencies(exponent):
    def turned(x, positions, frequencies=None, layout="interleaved"):
        K = x.shape[-1]
        if frequencies is None:
            frequencies = 10000.0 ** exponent(np.arange(K // 2), K)
        return rope(x, positions, frequencies, layout)

    return turned


def _other_layout(x, positions, frequencies=None, layout="interleaved"):
    return rope(x, positions, frequencies, "half" if layout == "interleaved" else "interleaved")


def _turned_back(x, positions, frequencies=None, layout="interleaved"):
    return rope(x, -np.asarray(positions), frequencies, layout)


def _from_zero(x, positions, frequencies=None, layout="interleaved"):
    return rope(x, np.arange(x.shape[-2]), frequencies, layout)


def _from_one(x, positions, frequencies=None, layout="interleaved"):
    return rope(x, np.asarray(positions) + 1, frequencies, layout)


def _degrees(x, positions, frequencies=None, layout="interleaved"):
    return rope(x, np.deg2rad(positions), frequencies, layout)


def _one_sign(x, positions, frequencies=None, layout="interleaved"):
    """Both sines positive: no rotation."""
    cos_part = (
        rope(x, positions, frequencies, layout) + _turned_back(x, positions, frequencies, layout)
    ) / 2
    flipped = x.copy()
    n = 2 * len(frequencies) if frequencies is not None else x.shape[-1]
    seconds = slice(1, n, 2) if layout == "interleaved" else slice(n // 2, n)
    firsts = slice(0, n, 2) if layout == "interleaved" else slice(0, n // 2)
    sine_part = rope(flipped, positions, frequencies, layout) - cos_part
    result = cos_part.copy()
    result[..., firsts] -= sine_part[..., firsts]
    result[..., seconds] += sine_part[..., seconds]
    return result


def _parts(x, positions, frequencies, layout, dtype=np.float64):
    """Angles (..., L, n), and where the first and second components of all pairs stand."""
    K = x.shape[-1]
    f = rope_frequencies(K) if frequencies is None else np.asarray(frequencies)
    n = len(f)
    angles = np.asarray(positions).astype(dtype)[..., None] * f.astype(dtype)
    if layout == "interleaved":
        return angles, slice(0, 2 * n, 2), slice(1, 2 * n, 2)
    return angles, slice(0, n), slice(n, 2 * n)


def _by_hand(first_of, second_of, dtype=np.float64):
    """RoPE component by component, with another rule for the two of a pair."""

    def turned(x, positions, frequencies=None, layout="interleaved"):
        angles, one, two = _parts(x, positions, frequencies, layout, dtype)
        cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
        y = x.copy()
        y[..., one] = first_of(x[..., one], x[..., two], cos, sin)
        y[..., two] = second_of(x[..., one], x[..., two], cos, sin, y[..., one])
        return y

    return turned


def _first(a, b, cos, sin):
    return a * cos - b * sin


def _second(a, b, cos, sin, done):
    return a * sin + b * cos


def _repeated_angles(always):
    """Half-split code with the angles of interleaved pairs."""

    def turned(x, positions, frequencies=None, layout="interleaved"):
        if layout == "interleaved" and not always:
            return rope(x, positions, frequencies)
        angles = np.repeat(_parts(x, positions, frequencies, layout)[0], 2, axis=-1)
        n = angles.shape[-1]
        half = np.concatenate([-x[..., n // 2 : n], x[..., : n // 2]], axis=-1)
        y = x[..., :n] * np.cos(angles).astype(x.dtype) + half * np.sin(angles).astype(x.dtype)
        return np.concatenate([y, x[..., n:]], axis=-1)

    return turned


def _wide_pairs(x, positions, frequencies=None, layout="interleaved"):
    if frequencies is None or layout == "interleaved":
        return rope(x, positions, frequencies, layout)
    rest = np.zeros(x.shape[-1] // 2 - len(frequencies))
    return rope(x, positions, np.concatenate([frequencies, rest]), layout)


def _rest(of_rest):
    """The components beyond the pairs dropped, or set to 0."""

    def turned(x, positions, frequencies=None, layout="interleaved"):
        y = rope(x, positions, frequencies, layout)
        n = x.shape[-1] if frequencies is None else 2 * len(frequencies)
        return np.concatenate([y[..., :n], of_rest(y[..., n:])], axis=-1)

    return turned


ROPE = Exercise(
    "rope",
    rope,
    _rope_cases,
    chapter=40,
    scores=turning,
    width=4,
    further=(
        Mistake(
            "repeated angles with rotate_half",
            "rotate_half pairs i and i + K/2: its angles are (theta_0, theta_1, ..., "
            "theta_0, theta_1, ...), not each one twice.",
            42,
            _repeated_angles(always=True),
        ),
        Mistake(
            "repeated angles with rotate_half, in the layout half",
            "Half-split pairs take the angles (theta_0, theta_1, ..., theta_0, "
            "theta_1, ...), not each one twice.",
            42,
            _repeated_angles(always=False),
        ),
        Mistake(
            "the second component from a half-filled copy",
            "Both new components come from the old ones: keep the first until the second is done.",
            41,
            _by_hand(_first, lambda a, b, cos, sin, done: done * sin + b * cos),
        ),
        Mistake(
            "pairs i and i + K/2 where fewer turn",
            "With n frequencies half-split pairs are i and i + n.",
            42,
            _wide_pairs,
        ),
        Mistake(
            "components that do not turn dropped",
            "Those beyond the pairs stay as they are.",
            42,
            _rest(lambda rest: rest[..., :0]),
        ),
        Mistake(
            "components that do not turn set to 0",
            "Those beyond the pairs stay as they are.",
            42,
            _rest(lambda rest: 0 * rest),
        ),
        Mistake(
            "angles in float32",
            "Far positions times a frequency lose their digits: multiply in float64, then cast.",
            41,
            _by_hand(_first, _second, np.float32),
        ),
        Mistake(
            "each component by itself",
            "A turn mixes the two of a pair: (a cos - b sin, a sin + b cos).",
            40,
            _by_hand(
                lambda a, b, cos, sin: a * cos + a * sin,
                lambda a, b, cos, sin, done: b * cos + b * sin,
            ),
        ),
        Mistake(
            "sines and cosines added",
            "RoPE turns; what is added is the encoding of chapter 20.",
            40,
            _by_hand(lambda a, b, cos, sin: a + sin, lambda a, b, cos, sin, done: b + cos),
        ),
    ),
)

# ---- around it ----------------------------------------------------------------------------------


def _frequency_cases(rng: np.random.Generator) -> Iterator[Case]:
    for d in (2, 4, 6, 64):
        yield case(d)
    yield case(8, 500000.0)
    yield case(10, base=100.0)
    for _ in range(7):
        yield case(2 * int(rng.integers(2, 40)), float(rng.integers(50, 10**6)))


FREQUENCIES = Exercise(
    "rope_frequencies",
    rope_frequencies,
    _frequency_cases,
    (
        Mistake(
            "exponent i/d for 2i/d",
            "Pair i has the exponent -2i/d.",
            40,
            lambda d, base=10000.0: base ** (-np.arange(d // 2) / d),
        ),
        Mistake(
            "exponent without its minus",
            "The first pair is the fastest: 1 radian per position.",
            40,
            lambda d, base=10000.0: 1 / rope_frequencies(d, base),
        ),
        Mistake(
            "pairs counted from 1",
            "i runs from 0 to d/2 - 1, so the first frequency is 1.",
            41,
            lambda d, base=10000.0: rope_frequencies(d, base) * base ** (-2 / d),
        ),
        Mistake(
            "one frequency for each component",
            "Two components make a pair and share a frequency: d/2 of them.",
            40,
            lambda d, base=10000.0: base ** (-2 * np.arange(d) / d),
        ),
        Mistake(
            "the base forgotten",
            "Use the base that is given: longer contexts use larger ones.",
            50,
            lambda d, base=10000.0: rope_frequencies(d),
        ),
        Mistake(
            "wavelengths for frequencies",
            "A frequency is radians per position; 2 pi divided by it is the wavelength.",
            50,
            lambda d, base=10000.0: 2 * np.pi / rope_frequencies(d, base),
        ),
    ),
    chapter=40,
    further=(
        Mistake(
            "exponent 4i/d for 2i/d",
            "If i counts components (0, 2, 4, ...), it is already twice the number of the pair.",
            40,
            lambda d, base=10000.0: rope_frequencies(d, base) ** 2,
        ),
        Mistake(
            "spread up to 1/base",
            "Pair i has the exponent -2i/d: the last is above 1/base.",
            20,
            lambda d, base=10000.0: base ** -np.linspace(0, 1, d // 2),
        ),
        Mistake(
            "each frequency twice",
            "Two components make a pair and share a frequency: d/2 of them.",
            40,
            lambda d, base=10000.0: np.repeat(rope_frequencies(d, base), 2),
        ),
    ),
)


def _matrix_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(1, np.array([1.0]))
    yield case(3, np.array([1.0, 0.1]))
    yield case(-2.5, rope_frequencies(6))
    yield case(1000, rope_frequencies(16, 500.0))
    for n in range(9):
        yield case(round(float(rng.normal(0, 20)), 1), rng.uniform(0.001, 1, n % 4 + 1))


def _blocks_apart(position: float, frequencies: np.ndarray) -> np.ndarray:
    """Pair i with i + n: the half-split form of the matrix."""
    order = np.argsort(rope_permutation(2 * len(frequencies)))
    return rope_matrix(position, frequencies)[np.ix_(np.argsort(order), np.argsort(order))]


MATRIX = Exercise(
    "rope_matrix",
    rope_matrix,
    _matrix_cases,
    (
        Mistake(
            "turned the other way",
            "The minus stands above the diagonal: the block is [[cos, -sin], [sin, cos]], and the "
            "matrix stands to the left of a column vector.",
            40,
            lambda position, frequencies: rope_matrix(position, frequencies).T,
        ),
        Mistake(
            "half-split blocks",
            "Here pair i is the components 2i and 2i + 1: the blocks lie along the diagonal.",
            40,
            _blocks_apart,
        ),
        Mistake(
            "both sines with a plus",
            "One of the two sines has a minus; else the matrix is no rotation.",
            40,
            lambda position, frequencies: (
                np.where(np.triu(np.ones((2 * len(frequencies),) * 2), 1) > 0, -1, 1)
                * rope_matrix(position, frequencies)
            ),
        ),
        Mistake(
            "the position forgotten",
            "The angle of a pair is its frequency times the position.",
            40,
            lambda position, frequencies: rope_matrix(1 if position != 1 else 2, frequencies),
        ),
        Mistake(
            "degrees for radians",
            "Angles are radians.",
            41,
            lambda position, frequencies: rope_matrix(position * np.pi / 180, frequencies),
        ),
    ),
    chapter=40,
)


def _permutation_cases(rng: np.random.Generator) -> Iterator[Case]:
    for d in (4, 2, 8, 14):
        yield case(d)
    for d in 2 * rng.permutation(np.arange(3, 90))[:10]:
        yield case(int(d))


PERMUTATION = Exercise(
    "rope_permutation",
    rope_permutation,
    _permutation_cases,
    (
        Mistake(
            "the inverse",
            "x[..., permutation] carries interleaved components to the half-split layout: first "
            "all even ones, then all odd ones.",
            40,
            lambda d: np.argsort(rope_permutation(d)),
        ),
        Mistake(
            "odd components first",
            "The first of each pair, an even component, goes to the first half.",
            40,
            lambda d: np.concatenate([np.arange(1, d, 2), np.arange(0, d, 2)]),
        ),
        Mistake(
            "halves exchanged",
            "That swaps the halves of a half-split vector; the even components stay neighbours.",
            40,
            lambda d: np.roll(np.arange(d), d // 2),
        ),
    ),
    chapter=40,
)


def _score_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.array([[1.0, 0.0]])
    yield case(one, one, np.array([0]), np.array([1]))
    for dtype in (np.float64, np.float32):
        q = rng.standard_normal((2, 3, 4, 8)).astype(dtype)
        k = rng.standard_normal((2, 3, 6, 8)).astype(dtype)
        yield case(q, k, np.arange(2, 6), np.arange(6))  # the newest four of six
        yield case(q, k[..., :1, :], np.arange(100, 104), np.array([7]))
        yield case(q, q, rng.integers(0, 30, (2, 1, 4)), rng.integers(0, 30, (2, 1, 4)))


def rotary_scores(
    q: np.ndarray, k: np.ndarray, q_positions: np.ndarray, k_positions: np.ndarray
) -> np.ndarray:
    """Scores of turned queries and keys: (R_m q) . (R_n k) / sqrt(K)."""
    turned = rope(q, q_positions) * q.dtype.type(q.shape[-1] ** -0.5)
    return turned @ np.swapaxes(rope(k, k_positions), -1, -2)


SCORES = Exercise(
    "rotary_scores",
    rotary_scores,
    _score_cases,
    (
        Mistake(
            "only the queries turned",
            "Both turn, each by its own position: that is what leaves their difference.",
            40,
            lambda q, k, m, n: rotary_scores(rope(q, m), k, 0 * m, 0 * n),
        ),
        Mistake(
            "keys turned back",
            "Turn keys the same way as queries; the difference comes from the product.",
            41,
            lambda q, k, m, n: rotary_scores(q, k, m, -n),
        ),
        Mistake(
            "queries counted from 0",
            "With a cache the queries are the newest positions: use q_positions.",
            41,
            lambda q, k, m, n: rotary_scores(q, k, np.arange(q.shape[-2]), n),
        ),
        Mistake(
            "not scaled",
            "Divide by the root of K.",
            10,
            lambda q, k, m, n: rotary_scores(q, k, m, n) * q.dtype.type(q.shape[-1] ** 0.5),
        ),
        Mistake(
            "scaled by K for its root",
            "Divide by the root of K.",
            10,
            lambda q, k, m, n: rotary_scores(q, k, m, n) * q.dtype.type(q.shape[-1] ** -0.5),
        ),
        Mistake(
            "the two layouts mixed",
            "Queries and keys must pair their components in the same way.",
            40,
            lambda q, k, m, n: (
                (rope(q, m, layout="half") * q.dtype.type(q.shape[-1] ** -0.5))
                @ np.swapaxes(rope(k, n), -1, -2)
            ),
        ),
    ),
    chapter=41,
    scores=lambda f: f,
    width=4,
)

# ---- scaling ------------------------------------------------------------------------------------


def _linear_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([1.0, 0.5]), 2)
    yield case(rope_frequencies(8), 4.0)
    yield case(rope_frequencies(64, 500000.0), 1.5)
    for n in range(9):
        yield case(rng.uniform(0.001, 1, n + 2), round(float(rng.uniform(1.1, 9)), 2))


LINEAR = Exercise(
    "linear_scaling",
    linear_scaling,
    _linear_cases,
    (
        Mistake(
            "multiplied for divided",
            "Longer texts must fit into the angles that were trained: every pair turns slower.",
            50,
            lambda frequencies, factor: frequencies * factor,
        ),
        Mistake(
            "the base scaled",
            "Raising the base is NTK-aware scaling; here all pairs slow down alike.",
            50,
            lambda frequencies, factor: (
                frequencies * factor ** (-np.arange(len(frequencies)) / len(frequencies))
            ),
        ),
        Mistake(
            "nothing scaled",
            "Divide each frequency by the factor.",
            50,
            lambda frequencies, factor: frequencies,
        ),
    ),
    chapter=50,
)


def _ntk_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(4, 4)
    yield case(6, 2.0, 100.0)
    yield case(64, 8)
    yield case(128, 1)
    for _ in range(9):
        s, base = round(float(rng.uniform(1.1, 9)), 2), float(rng.integers(50, 10**6))
        yield case(2 * int(rng.integers(2, 40)), s, base)


NTK = Exercise(
    "ntk_scaling",
    ntk_scaling,
    _ntk_cases,
    (
        Mistake(
            "exponent 1",
            "The factor is raised to d/(d - 2), so that the slowest pair slows down s times.",
            50,
            lambda d, factor, base=10000.0: rope_frequencies(d, base * factor),
        ),
        Mistake(
            "exponent (d - 2)/d",
            "The exponent is d/(d - 2), above 1.",
            50,
            lambda d, factor, base=10000.0: rope_frequencies(d, base * factor ** ((d - 2) / d)),
        ),
        Mistake(
            "all pairs divided",
            "That is linear scaling; here the fastest pair stays as it is.",
            50,
            lambda d, factor, base=10000.0: rope_frequencies(d, base) / factor,
        ),
        Mistake(
            "the base divided",
            "A larger base slows the pairs down.",
            50,
            lambda d, factor, base=10000.0: rope_frequencies(d, base / factor ** (d / (d - 2))),
        ),
    ),
    chapter=50,
    further=(
        Mistake(
            "all pairs divided, too",
            "The larger base alone does it: the fastest pair stays as it is.",
            50,
            lambda d, factor, base=10000.0: ntk_scaling(d, factor, base) / factor,
        ),
    ),
)


def _dynamic_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(4, 16, 8)
    yield case(8, 100, 2048)  # shorter than trained: nothing changes
    yield case(64, 4096, 2048)
    yield case(64, 6000, 2048, factor=2.0, base=500.0)
    for n in range(8):
        length, s = int(rng.integers(64, 9000)), round(float(rng.uniform(1.1, 4)), 2)
        base = float(rng.integers(50, 10**6))
        yield case(2 * int(rng.integers(2, 40)), length, 512, s if n % 2 else 1.0, base)


DYNAMIC = Exercise(
    "dynamic_ntk_scaling",
    dynamic_ntk_scaling,
    _dynamic_cases,
    (
        Mistake(
            "scaled below the trained length, too",
            "Up to the trained length nothing changes: the growth is at least 1.",
            50,
            lambda d, length, trained_length, factor=1.0, base=10000.0: ntk_scaling(
                d, max(0.01, 1 + factor * (length / trained_length - 1)), base
            ),
        ),
        Mistake(
            "the growth taken upside down",
            "The factor grows with the length: length over trained length.",
            50,
            lambda d, length, trained_length, factor=1.0, base=10000.0: dynamic_ntk_scaling(
                d, trained_length**2 / length, trained_length, factor, base
            ),
        ),
        Mistake(
            "factor times growth, without - (factor - 1)",
            "The factor is s L/L0 - (s - 1), which is 1 at the trained length.",
            50,
            lambda d, length, trained_length, factor=1.0, base=10000.0: ntk_scaling(
                d, factor * max(1, length / trained_length), base
            ),
        ),
    ),
    chapter=50,
    further=(
        Mistake(
            "the factor alone, whatever the length",
            "The factor grows with the length: s g - (s - 1), with g = max(1, L/L0).",
            50,
            lambda d, length, trained_length, factor=1.0, base=10000.0: ntk_scaling(
                d, factor, base
            ),
        ),
    ),
)


def _llama_cases(rng: np.random.Generator) -> Iterator[Case]:
    turns = np.array([8.0, 2.5, 0.5])
    yield case(2 * np.pi * turns / 8192, 8, 8192)
    yield case(rope_frequencies(128, 500000.0), 8.0, 8192)
    yield case(rope_frequencies(64), 4.0, 2048, low_freq_factor=2.0, high_freq_factor=8.0)
    for n in range(9):
        f, trained = (
            rope_frequencies(2 * int(rng.integers(4, 20)), 1e4),
            int(rng.integers(64, 9000)),
        )
        low = round(float(rng.uniform(0.5, 2)), 2)
        ramp = (low, low + round(float(rng.uniform(1, 30)), 1)) if n % 2 else ()
        yield case(f, round(float(rng.uniform(2, 9)), 1), trained, *ramp)


LLAMA = Exercise(
    "llama3_scaling",
    llama3_scaling,
    _llama_cases,
    (
        Mistake(
            "fast and slow exchanged",
            "Short wavelengths are kept; long ones are divided by the factor.",
            50,
            lambda frequencies, factor, *rest, **options: (
                linear_scaling(frequencies, factor)
                + frequencies
                - llama3_scaling(frequencies, factor, *rest, **options)
            ),
        ),
        Mistake(
            "no mixing between",
            "Between the two bounds the two frequencies are mixed, in proportion to the turns.",
            50,
            lambda frequencies, factor, trained_length, low_freq_factor=1.0, high_freq_factor=4.0: (
                np.where(
                    trained_length * frequencies / (2 * np.pi) < high_freq_factor,
                    frequencies / factor,
                    frequencies,
                )
            ),
        ),
        Mistake(
            "frequencies taken for wavelengths",
            "A wavelength is 2 pi over the frequency: the turns are L0 theta / (2 pi).",
            50,
            lambda frequencies, factor, trained_length, low_freq_factor=1.0, high_freq_factor=4.0: (
                llama3_scaling(
                    frequencies,
                    factor,
                    2 * np.pi * trained_length,
                    low_freq_factor,
                    high_freq_factor,
                )
            ),
        ),
    ),
    chapter=50,
)


def _factor_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(40)
    yield case(40.0, 0.707)
    yield case(0.5, 2.0)  # shorter than trained
    yield case(1)
    for n in range(9):
        s = round(float(rng.uniform(0.2, 40)), 2)
        yield case(s, round(float(rng.uniform(0.1, 3)), 2)) if n % 2 else case(s)


YARN_FACTOR = Exercise(
    "yarn_attention_factor",
    yarn_attention_factor,
    _factor_cases,
    (
        Mistake(
            "the factor of the scores",
            "This one is for queries and keys; their product has its square.",
            50,
            lambda factor, mscale=1.0: yarn_attention_factor(factor, mscale) ** 2,
        ),
        Mistake(
            "below 1 for short texts",
            "For a factor up to 1 nothing is scaled.",
            50,
            lambda factor, mscale=1.0: 0.1 * mscale * math.log(factor) + 1,
        ),
        Mistake(
            "mscale times the whole",
            "mscale multiplies the logarithm's term, not the 1.",
            50,
            lambda factor, mscale=1.0: mscale * yarn_attention_factor(factor),
        ),
        Mistake(
            "base 10",
            "Use the natural logarithm.",
            50,
            lambda factor, mscale=1.0: 1 + 0.1 * mscale * math.log10(factor) * (factor > 1),
        ),
    ),
    chapter=50,
)


def _longrope_cases(rng: np.random.Generator) -> Iterator[Case]:
    lists = np.array([1.0, 1.5]), np.array([2.0, 4.0])
    for length in (15, 16, 17):
        yield case(4, length, *lists, 16, 8)
    for length in (100, 5000):
        yield case(8, length, *rng.uniform(1, 30, (2, 4)), 4096, 32.0, base=500.0)
    yield case(2, 9, np.array([2.0]), np.array([3.0]), 4, 0.5)


def _longrope(which=lambda length, trained: length > trained, grows=lambda far, s, L0: s > 1):
    """LongRoPE with one of its two decisions replaced."""

    def scaled(d, length, short_factor, long_factor, trained_length, factor, base=10000.0):
        lists = short_factor, long_factor
        far = length > trained_length
        growth = math.log(factor) / math.log(trained_length)
        growth = growth if grows(far, factor, trained_length) else 0
        theta = rope_frequencies(d, base) / lists[which(length, trained_length)]
        return theta, math.sqrt(1 + growth)

    return scaled


def _longrope_squared(*args, **options):
    theta, factor = longrope_scaling(*args, **options)
    return theta, factor**2


LONGROPE = Exercise(
    "longrope_scaling",
    longrope_scaling,
    _longrope_cases,
    (
        Mistake(
            "the long list at the trained length",
            "Up to L0 the short list holds, L0 itself included.",
            50,
            _longrope(which=lambda length, trained: length >= trained),
        ),
        Mistake(
            "the long list always",
            "The list depends on the present length, not on the longest possible.",
            50,
            _longrope(which=lambda length, trained: True),
        ),
        Mistake(
            "the factor beyond the trained length alone",
            "The attention factor holds at every length, also below L0.",
            50,
            _longrope(grows=lambda far, s, L0: far and s > 1),
        ),
        Mistake(
            "the factor of the scores",
            "Queries and keys get the root, so that the scores get 1 + ln s / ln L0.",
            50,
            _longrope_squared,
        ),
        Mistake(
            "the factor of YaRN",
            "LongRoPE's is sqrt(1 + ln s / ln L0).",
            50,
            lambda d, length, short_factor, long_factor, trained_length, factor, base=10000.0: (
                longrope_scaling(
                    d, length, short_factor, long_factor, trained_length, factor, base
                )[0],
                yarn_attention_factor(factor),
            ),
        ),
    ),
    chapter=50,
    further=(
        Mistake(
            "multiplied by the lists",
            "The numbers of both lists stretch wavelengths: frequencies are divided by them.",
            50,
            lambda d, length, short_factor, long_factor, trained_length, factor, base=10000.0: (
                longrope_scaling(
                    d, length, 1 / short_factor, 1 / long_factor, trained_length, factor, base
                )
            ),
        ),
    ),
)

EXERCISES = (
    ROPE,
    FREQUENCIES,
    MATRIX,
    PERMUTATION,
    SCORES,
    LINEAR,
    NTK,
    DYNAMIC,
    LLAMA,
    YARN_FACTOR,
    LONGROPE,
)
