"""Exercises on longer texts: digits, log n, entropy, windows (chapters 51, 71 and 72)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.transformer.length import (
    attention_entropy,
    attention_temperature,
    from_digits,
    log_n_scale,
    to_digits,
)

# ---- chapter 51 ---------------------------------------------------------------------------------


def _digit_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(1749, 10, 4)
    yield case(1749, 16, 3)
    yield case(np.array([[0, 7], [63, 8]]), 2, 7)
    yield case(np.array([874.5, 3.25]), 10, 3)
    for n in range(9):
        base = int(rng.integers(2, 20))
        numbers = rng.integers(0, base**4, (2, n + 1)[n % 2 :])
        yield case(numbers if n % 3 else numbers + 0.25, base, 4 + n % 3)


TO_DIGITS = Exercise(
    "to_digits",
    to_digits,
    _digit_cases,
    (
        Mistake(
            "the least digit first",
            "The most significant digit comes first, as it is written.",
            51,
            lambda n, base, width: to_digits(n, base, width)[..., ::-1],
        ),
        Mistake(
            "always base 10",
            "Use the base that is given.",
            51,
            lambda n, base, width: (
                np.asarray([int(np.max(n)) // 10**p % 10 for p in reversed(range(width))])
                if np.ndim(n) == 0
                else np.mod(np.asarray(n)[..., None] // 10 ** np.arange(width)[::-1], 10)
            ),
        ),
        Mistake(
            "not reduced modulo the base",
            "floor(n / b^i) is reduced modulo the base: each digit is below it.",
            51,
            lambda n, base, width: np.asarray(n)[..., None] // base ** np.arange(width)[::-1],
        ),
        Mistake(
            "the fraction cut off",
            "The last digit keeps the fraction.",
            51,
            lambda n, base, width: to_digits(np.asarray(n).astype(np.int64), base, width).astype(
                np.result_type(np.asarray(n), np.int64)
            ),
        ),
    ),
    chapter=51,
)


def _number_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([1, 7, 4, 9]), 10)
    yield case(np.array([[6, 13, 5], [0, 0, 15]]), 16)
    yield case(np.array([8.0, 7.0, 4.5]), 10)
    yield case(rng.integers(0, 2, (2, 3, 6)), 2)


FROM_DIGITS = Exercise(
    "from_digits",
    from_digits,
    _number_cases,
    (
        Mistake(
            "the least digit first",
            "The first digit has the highest power of the base.",
            51,
            lambda digits, base: from_digits(np.asarray(digits)[..., ::-1], base),
        ),
        Mistake(
            "always base 10",
            "Use the base that is given.",
            51,
            lambda digits, base: digits @ 10 ** np.arange(digits.shape[-1])[::-1],
        ),
        Mistake(
            "powers counted from 1",
            "The last digit counts ones: b^0.",
            51,
            lambda digits, base: from_digits(digits, base) * base,
        ),
        Mistake(
            "the digits added up",
            "Each digit is worth a power of the base.",
            51,
            lambda digits, base: digits.sum(axis=-1),
        ),
    ),
    chapter=51,
)


def _scale_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([1, 10, 100]), 10)
    yield case(np.arange(1, 9), 4)
    yield case(np.array([512, 4096]), 512)
    for n in range(9):
        yield case(rng.integers(1, 9000, (2, n + 1)[n % 2 :]), int(rng.integers(4, 900)))


LOG_N = Exercise(
    "log_n_scale",
    log_n_scale,
    _scale_cases,
    (
        Mistake(
            "divided for multiplied",
            "Longer texts need sharper scores: a factor above 1.",
            51,
            lambda n, trained_length: 1 / log_n_scale(n, trained_length),
        ),
        Mistake(
            "below 1 for short texts",
            "Up to the trained length nothing changes: the factor is at least 1.",
            51,
            lambda n, trained_length: np.log(n) / math.log(trained_length),
        ),
        Mistake(
            "not divided by log of the trained length",
            "At the trained length the factor is 1.",
            51,
            lambda n, trained_length: np.maximum(1, np.log(n)),
        ),
        Mistake(
            "a ratio of lengths",
            "A ratio of logarithms: log n / log L0.",
            51,
            lambda n, trained_length: np.maximum(1, np.asarray(n) / trained_length),
        ),
    ),
    chapter=51,
)


def _temperature_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 8190, 8191, 131071]))
    yield case(np.arange(12), 4, 0.3)
    yield case(np.array([[7, 15], [16, 500]]), floor_scale=8)
    for n in range(9):
        at, step = rng.integers(0, 900, (2, n + 2)[n % 2 :]), int(rng.integers(2, 90))
        yield case(at, step, round(float(rng.uniform(0.05, 2)), 2))


def _temperature(steps=lambda i, floor_scale: np.floor((i + 1) / floor_scale), log=np.log1p):
    """Temperature with one part of it replaced."""
    return lambda i, floor_scale=8192, scale=0.1: 1 + scale * log(steps(i, floor_scale))


TEMPERATURE = Exercise(
    "attention_temperature",
    attention_temperature,
    _temperature_cases,
    (
        Mistake(
            "the position for its number",
            "The first step comes at position 8191, token number 8192: count i + 1.",
            51,
            _temperature(steps=lambda i, floor_scale: i // floor_scale),
        ),
        Mistake(
            "no steps",
            "The quotient is rounded down: between two steps the factor does not change.",
            51,
            _temperature(steps=lambda i, floor_scale: (i + 1) / floor_scale),
        ),
        Mistake(
            "the logarithm of the steps alone",
            "It is ln(1 + steps): the first step counts, ln 2.",
            51,
            _temperature(log=lambda steps: np.log(np.maximum(steps, 1))),
        ),
        Mistake(
            "base 2", "Use the natural logarithm.", 51, _temperature(log=lambda n: np.log2(1 + n))
        ),
        Mistake(
            "divided for multiplied",
            "Farther queries need sharper scores: a factor above 1.",
            51,
            lambda *args, **options: 1 / attention_temperature(*args, **options),
        ),
    ),
    chapter=51,
)


def _entropy_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0], [0.5, 0.5]]))
    for dtype in (np.float64, np.float32):
        weights = rng.random((2, 3, 5, 7)).astype(dtype)
        weights = weights / weights.sum(axis=-1, keepdims=True)
        yield case(weights)
        yield case(np.ascontiguousarray(np.swapaxes(weights, -1, -2)), axis=-2)
    yield case(np.full((2, 8), 0.125))


def _entropy_bits(weights, axis=-1):
    return attention_entropy(weights, axis) / weights.dtype.type(math.log(2))


ENTROPY = Exercise(
    "attention_entropy",
    attention_entropy,
    _entropy_cases,
    (
        Mistake("bits for nats", "Use the natural logarithm.", 51, _entropy_bits),
        Mistake(
            "without its minus",
            "The logarithm of a weight is negative: the entropy has a minus.",
            51,
            lambda weights, axis=-1: -attention_entropy(weights, axis),
        ),
        Mistake(
            "NaN for a weight of 0",
            "0 ln 0 is 0, but NumPy gives NaN: leave such weights out.",
            51,
            lambda weights, axis=-1: -(weights * np.log(weights)).sum(axis=axis),
        ),
        Mistake(
            "a mean for the sum",
            "Sum over the keys; the weights are the mean already.",
            51,
            lambda weights, axis=-1: (
                attention_entropy(weights, axis) / weights.dtype.type(weights.shape[axis])
            ),
        ),
    ),
    chapter=51,
)

# ---- chapter 71 ---------------------------------------------------------------------------------


def perplexity(logits: np.ndarray, targets: np.ndarray) -> float:
    """Return exp of the mean surprise of the targets (L,) under logits (L, V)."""
    top = logits.max(axis=-1, keepdims=True)
    logs = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    return np.exp(-logs[np.arange(len(targets)), targets].mean())


def _perplexity_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.zeros((2, 4)), np.array([0, 3]))
    yield case(3 * rng.standard_normal((6, 5)), rng.integers(0, 5, 6))
    yield case(np.array([[1000.0, 0.0], [0.0, 990.0]]), np.array([0, 1]))


PERPLEXITY = Exercise(
    "perplexity",
    perplexity,
    _perplexity_cases,
    (
        Mistake(
            "the surprise itself",
            "Perplexity is exp of the mean surprise: a number of equally likely tokens.",
            71,
            lambda logits, targets: np.log(perplexity(logits, targets)),
        ),
        Mistake(
            "the mean of perplexities",
            "First the mean of the logarithms, then exp: a geometric mean.",
            71,
            lambda logits, targets: np.mean(
                [perplexity(logits[[n]], targets[[n]]) for n in range(len(targets))]
            ),
        ),
        Mistake(
            "2 for e",
            "With natural logarithms the base is e.",
            71,
            lambda logits, targets: 2 ** np.log(perplexity(logits, targets)),
        ),
        Mistake(
            "overflow",
            "Subtract the largest logit before exp: exp(1000) is infinite.",
            10,
            lambda logits, targets: np.exp(
                -np.log(np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True))[
                    np.arange(len(targets)), targets
                ].mean()
            ),
        ),
    ),
    chapter=71,
    further=(
        Mistake(
            "the sum of the surprises",
            "Divide by the number of targets: perplexity does not grow with the text.",
            71,
            lambda logits, targets: perplexity(logits, targets) ** len(targets),
        ),
    ),
)

# ---- chapter 72 ---------------------------------------------------------------------------------


def depends_on_distance(scores: np.ndarray) -> bool:
    """Whether every diagonal of (L, L) scores is constant, to 1e-9: a relative encoding."""
    rows = range(1 - scores.shape[0], scores.shape[1])
    return all(np.ptp(np.diagonal(scores, n)) <= 1e-9 for n in rows)


def _relative_cases(rng: np.random.Generator) -> Iterator[Case]:
    i = np.arange(4)
    yield case(0.5 * (i[:, None] - i))
    yield case(1.0 * np.outer(i, i))
    yield case(1.0 * (i[:, None] + i))  # the other diagonals are constant
    a = rng.uniform(0.5, 2)
    yield case(a * np.ones((3, 3)))
    yield case(a * np.abs(i[:, None] - i) + 1e-3 * (np.outer(i, i) == 9))
    yield case(a * np.abs(i[:, None] - i) + 1e-3 * (np.outer(i, i) == 6))
    yield case(np.sin(a * (i[:, None] - i)))
    yield case(np.tile(1.0 * i, (4, 1)))
    yield case(0.4e-9 * (i[:, None] + i))  # neighbours within 1e-9, ends not
    for n in range(6):
        line, i = rng.standard_normal(9), np.arange(5)
        scores = line[i[:, None] - i + 4]
        scores[n % 5, (n + 2) % 5] += (n % 2) * 0.5
        yield case(scores)


RELATIVE = Exercise(
    "depends_on_distance",
    depends_on_distance,
    _relative_cases,
    (
        Mistake(
            "the other diagonals",
            "i - j is constant from the upper left to the lower right.",
            72,
            lambda scores: depends_on_distance(scores[::-1]),
        ),
        Mistake(
            "the main diagonal alone",
            "Every diagonal must be constant: each is one distance.",
            72,
            lambda scores: bool(np.ptp(np.diagonal(scores)) <= 1e-9),
        ),
        Mistake(
            "symmetry",
            "A symmetric matrix need not depend on i - j alone, nor is the reverse so.",
            72,
            lambda scores: bool(np.allclose(scores, scores.T)),
        ),
        Mistake(
            "the first row and column alone",
            "Every entry of a diagonal counts, not its first two alone.",
            72,
            lambda scores: bool(abs(scores[1, 1] - scores[0, 0]) <= 1e-9),
        ),
        Mistake(
            "neighbours alone",
            "Small steps add up: take the range of each diagonal.",
            72,
            lambda scores: bool(np.abs(scores[1:, 1:] - scores[:-1, :-1]).max() <= 1e-9),
        ),
    ),
    chapter=72,
)

EXERCISES = (TO_DIGITS, FROM_DIGITS, LOG_N, TEMPERATURE, ENTROPY, PERPLEXITY, RELATIVE)
