"""Exercises of decoding (chapter 63): a key-value cache, the best token, tokens that are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case, in_a_row
from pe_numpy.homework.worker import Bigram, in_pieces
from pe_numpy.rotary.rope import rope
from pe_numpy.transformer.attention import attention, softmax

DTYPES = (np.float64, np.float32)

# ---- a cache ------------------------------------------------------------------------------------


def cached_attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    cache: Any = None,
    frequencies: np.ndarray | None = None,
) -> tuple[np.ndarray, Any]:
    """Causal attention of the newest tokens over all so far, turned by RoPE if frequencies come."""
    keys, values = (k[..., :0, :], v[..., :0, :]) if cache is None else cache
    new = np.arange(keys.shape[-2], keys.shape[-2] + k.shape[-2])
    if frequencies is not None:
        q, k = (rope(x, new, frequencies, layout="half") for x in (q, k))
    keys, values = np.concatenate([keys, k], axis=-2), np.concatenate([values, v], axis=-2)
    output, _ = attention(q, keys, values, np.arange(keys.shape[-2]) <= new[:, None])
    return output, (keys, values)


def _cache_cases(rng: np.random.Generator) -> Iterator[Case]:
    def text(length, *batch, dtype=np.float64, K=4, size=1.0):
        drawn = (rng.standard_normal((*batch, length, K)) for _ in range(3))
        return ((size * x).astype(dtype) for x in drawn)

    two = np.array([[1.0, 0.0], [0.0, 1.0]])
    theta, quick = np.array([1.0, 0.1]), rng.uniform(0.2, 2, 2)
    yield in_a_row(in_pieces, two, two, np.array([[2.0], [8.0]]), pieces=(1, 1))
    yield in_a_row(in_pieces, *text(4), pieces=(4,))  # a prompt alone
    yield in_a_row(in_pieces, *text(4), pieces=(1, 1, 1, 1))
    for dtype in DTYPES:
        yield in_a_row(in_pieces, *text(6, 2, 3, dtype=dtype), pieces=(3, 1, 2))
        yield in_a_row(in_pieces, *text(6, 2, 3, dtype=dtype), pieces=(4, 1, 1), frequencies=theta)
    yield in_a_row(in_pieces, *text(7, 3), pieces=(2, 2, 3), frequencies=quick)
    yield in_a_row(in_pieces, *text(5), pieces=(5,), frequencies=quick)
    yield in_a_row(
        in_pieces, *text(5, 2, size=90), pieces=(2, 3)
    )  # exp of these scores is infinite
    yield in_a_row(in_pieces, *text(6, 2), pieces=(2, 1, 1, 1), refused=True)
    yield in_a_row(in_pieces, *text(6, 2), pieces=(1, 3, 1), refused=True, frequencies=quick)
    yield in_a_row(in_pieces, *text(9, 1, 2, K=3), pieces=(1, 1, 4, 2, 1))
    yield in_a_row(in_pieces, *text(9, 1, 2, K=2), pieces=(3, 5), frequencies=quick[:1])


CACHED = Exercise("cached_attention", cached_attention, _cache_cases, chapter=63)

# ---- the best token, again and again ------------------------------------------------------------


def greedy_tokens(
    next_logits: Callable, prompt: np.ndarray, steps: int, end: int | None = None
) -> np.ndarray:
    """Continue each prompt (B, L) with the most probable tokens (B, n)."""
    return _continued(prompt, steps, end, lambda tokens: next_logits(tokens).argmax(axis=-1))


def _continued(prompt: np.ndarray, steps: int, end: int | None, choose: Callable) -> np.ndarray:
    tokens, over = prompt, np.zeros(len(prompt), bool)
    for _ in range(steps):
        new = choose(tokens)
        if end is not None:
            new = np.where(over, end, new)
            over |= new == end
        tokens = np.concatenate([tokens, new[:, None]], axis=1)
        if over.all():
            break
    return tokens[:, prompt.shape[1] :]


def _greedy_cases(rng: np.random.Generator) -> Iterator[Case]:
    def model(V, places=3):
        return Bigram(2 * rng.standard_normal((places, V, V)))

    turns = Bigram(np.eye(3)[[1, 2, 0]][None])  # after 0 comes 1, then 2, then 0
    yield case(turns, np.array([[0]]), 4)
    yield case(turns, np.array([[0], [1]]), 4, end=2)
    for B, L, V, steps in ((1, 3, 7, 9), (4, 2, 5, 6), (2, 1, 11, 1), (3, 4, 6, 12)):
        yield case(model(V), rng.integers(0, V, (B, L)), steps)
        yield case(model(V), rng.integers(0, V, (B, L)), steps + 3, end=int(rng.integers(V)))
    for B in (3, 6):
        yield case(model(3), rng.integers(0, 3, (B, 2)), 15, end=1)  # it comes soon
    yield case(turns, np.array([[2, 2], [0, 1], [1, 0]]), 9, 0)


GREEDY = Exercise("greedy_tokens", greedy_tokens, _greedy_cases, chapter=63)

# ---- tokens that are drawn ----------------------------------------------------------------------


def sample_tokens(
    next_logits: Callable,
    prompt: np.ndarray,
    steps: int,
    rng: np.random.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    end: int | None = None,
) -> np.ndarray:
    """Draw the next tokens (B, n), one after the other, after a prompt (B, L)."""

    def drawn(tokens: np.ndarray) -> np.ndarray:
        logits = next_logits(tokens) / temperature
        if top_k is not None:
            best = logits >= np.sort(logits, axis=-1)[:, -top_k, None]
            logits = np.where(best, logits, -np.inf)
        below = softmax(logits).cumsum(axis=-1)
        tokens_below: np.ndarray = below < rng.random((len(below), 1)) * below[:, -1:]
        return tokens_below.sum(axis=-1)

    return _continued(prompt, steps, end, drawn)


def _sample_cases(rng: np.random.Generator) -> Iterator[Case]:
    def drawn(B, L, V, steps, *args, **options):
        model = Bigram(2 * rng.standard_normal((3, V, V)))
        generator = np.random.default_rng(int(rng.integers(2**32)))
        return case(model, rng.integers(0, V, (B, L)), steps, generator, *args, **options)

    even = Bigram(np.zeros((1, 3, 3)))
    yield case(even, np.array([[0]]), 6, np.random.default_rng(int(rng.integers(2**32))))
    for B, L, V, steps in ((1, 3, 7, 9), (4, 2, 5, 6), (2, 1, 11, 1)):
        yield drawn(B, L, V, steps)
        yield drawn(B, L, V, steps + 4, temperature=0.5)
    yield drawn(3, 2, 6, 9, temperature=2.5)
    yield drawn(3, 4, 9, 8, top_k=3)
    yield drawn(2, 4, 9, 8, top_k=1)
    yield drawn(2, 1, 6, 12, 3.0, 2)
    yield drawn(4, 2, 5, 12, end=2)
    yield drawn(2, 1, 3, 25, end=1)  # it comes soon
    yield drawn(5, 1, 4, 10, end=0, temperature=2.0)
    yield drawn(2, 3, 5, 9, 1.5, 4, 1)


SAMPLE = Exercise("sample_tokens", sample_tokens, _sample_cases, chapter=63)

EXERCISES = (CACHED, GREEDY, SAMPLE)
