"""Exercises on longer texts: digits, log n, entropy, windows (chapters 51, 71 and 72)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
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
    yield case(np.array([3, 0]), 7, 1)
    for n in range(9):
        base = int(rng.integers(2, 20))
        numbers = rng.integers(0, base**4, (2, n + 1)[n % 2 :])
        yield case(numbers if n % 3 else numbers + 0.25, base, 4 + n % 3)


TO_DIGITS = Exercise("to_digits", to_digits, _digit_cases, chapter=51)


def _number_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([1, 7, 4, 9]), 10)
    yield case(np.array([[6, 13, 5], [0, 0, 15]]), 16)
    yield case(np.array([8.0, 7.0, 4.5]), 10)
    yield case(rng.integers(0, 2, (2, 3, 6)), 2)
    yield case(np.array([[3], [0]]), 7)


FROM_DIGITS = Exercise("from_digits", from_digits, _number_cases, chapter=51)


def _scale_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([1, 10, 100]), 10)
    yield case(np.arange(1, 9), 4)
    yield case(np.array([512, 4096]), 512)
    yield case(100, 10)
    for n in range(9):
        yield case(rng.integers(1, 9000, (2, n + 1)[n % 2 :]), int(rng.integers(4, 900)))


LOG_N = Exercise("log_n_scale", log_n_scale, _scale_cases, chapter=51)


def _temperature_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 8190, 8191, 131071]))
    yield case(np.arange(12), 4, 0.3)
    yield case(np.array([[7, 15], [16, 500]]), floor_scale=8)
    yield case(np.array(40), 2.5)
    for n in range(9):
        at, step = rng.integers(0, 900, (2, n + 2)[n % 2 :]), int(rng.integers(2, 90))
        yield case(at, step, round(float(rng.uniform(0.05, 2)), 2))


TEMPERATURE = Exercise(
    "attention_temperature", attention_temperature, _temperature_cases, chapter=51
)


def _entropy_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0], [0.5, 0.5]]))
    for dtype in (np.float64, np.float32):
        weights = rng.random((2, 3, 5, 7)).astype(dtype)
        weights = weights / weights.sum(axis=-1, keepdims=True)
        yield case(weights)
        yield case(np.ascontiguousarray(np.swapaxes(weights, -1, -2)), axis=-2)
        yield case(np.tril(weights[0, 0]), 0)  # zeros
    yield case(weights[0].astype(np.float16))
    yield case(np.full((2, 8), 0.125))


ENTROPY = Exercise("attention_entropy", attention_entropy, _entropy_cases, chapter=51)

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
    yield case(np.array([[1000.0, 0.0], [-1000.0, -999.0]]), np.array([0, 1]))  # each row's maximum
    yield case(rng.standard_normal((1, 3)), np.array([2]))


PERPLEXITY = Exercise("perplexity", perplexity, _perplexity_cases, chapter=71)

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
    for size in (1e-9, 0.4e-9, 0.2e-9, 0.1e-9, 1e-13):  # neighbours within 1e-9, or the ends
        yield case(size * (i[:, None] + i))
    for n in range(6):
        line, i = rng.standard_normal(9), np.arange(5)
        scores = line[i[:, None] - i + 4]
        scores[n % 5, (n + 2) % 5] += (n % 2) * 0.5
        yield case(scores)


RELATIVE = Exercise("depends_on_distance", depends_on_distance, _relative_cases, chapter=72)

EXERCISES = (TO_DIGITS, FROM_DIGITS, LOG_N, TEMPERATURE, ENTROPY, PERPLEXITY, RELATIVE)
