"""Exercises of linear attention with a state (chapter 39)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.relative.recurrence import delta_rule, gated_linear_attention, retention

ONE = np.ones((4, 1))
LOGS = np.log([[0.9], [0.5], [0.8], [0.25]])


def _tokens(rng: np.random.Generator, L: int, dtype: type) -> list[np.ndarray]:
    """Queries, keys, values, shares, a state, and logarithms of decays by token and by channel."""
    q, k = rng.standard_normal((2, 2, 3, L, 4)) / 2
    v, state = rng.standard_normal((2, 3, L, 5)), rng.standard_normal((2, 3, 4, 5))
    beta = rng.uniform(0.1, 1, (2, 3, L))
    logs = (np.log(rng.uniform(0.2, 1, (2, 3, L, width))) for width in (1, 4))
    return [x.astype(dtype) for x in (q, k, v, beta, state, *logs)]


def _retention_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(ONE, ONE, np.eye(4), 0.5)
    for dtype in (np.float64, np.float32):
        q, k, v, *_ = _tokens(rng, 6, dtype)
        yield case(q, k, v, np.array([0.5, 0.9, 1.0]))
        yield case(q, k, v, 0.7)
        yield case(q[..., :1, :], k[..., :1, :], v[..., :1, :], 0.8)


def _gla_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(ONE, ONE, np.eye(4), LOGS)
    yield case(ONE, ONE, np.eye(4), LOGS, np.full((1, 4), 10.0))
    for dtype in (np.float64, np.float32):
        q, k, v, _, state, by_token, by_channel = _tokens(rng, 6, dtype)
        yield case(q, k, v, by_channel)
        yield case(q, k, v, by_token, state)
        q, k, v, _, state, _, by_channel = _tokens(rng, 1, dtype)  # a step of decoding
        yield case(q, k, v, by_channel, state)


def _delta_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(ONE, ONE, ONE, np.array([1.0, 0.5, 0.5, 0.5]), LOGS)
    yield case(ONE, ONE, np.eye(4), np.array([1.0, 0.5, 0.0, 0.5]))
    for dtype in (np.float64, np.float32):
        q, k, v, beta, state, by_token, by_channel = _tokens(rng, 6, dtype)
        yield case(q, k, v, beta)
        yield case(q, k, v, beta, by_token)
        yield case(q, k, v, beta, by_channel, state)
        q, k, v, beta, state, _, by_channel = _tokens(rng, 1, dtype)
        yield case(q, k, v, beta, by_channel, state)


EXERCISES = (
    Exercise("retention", retention, _retention_cases, chapter=39),
    Exercise("gated_linear_attention", gated_linear_attention, _gla_cases, chapter=39),
    Exercise("delta_rule", delta_rule, _delta_cases, chapter=39),
)
