"""Exercises of attention: softmax, masks, heads (chapter 10); windows and sinks (chapter 12)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.transformer.attention import (
    attend,
    attention,
    causal_mask,
    chunk_mask,
    log_softmax,
    merge_heads,
    padding_mask,
    softmax,
    split_heads,
    window_mask,
)

DTYPES = (np.float64, np.float32, np.float16)
NOTHING = np.array([[-np.inf, -np.inf], [0.0, -np.inf]])  # its first row may attend to nothing


def _softmax_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[0.0, 0.0], [0.0, 1.0]]))
    for dtype in DTYPES:
        x = 3 * rng.standard_normal((2, 3, 5, 7)).astype(dtype)
        yield case(x)
        yield case(x, axis=-2)
    yield case(np.array([[1000.0, 999.0, -np.inf], [-1000.0, -1001.0, -1002.0]]))
    yield case(NOTHING)
    for axis in (0, 1):
        yield case(rng.standard_normal((3, 4, 5)), axis=axis)
    for scores in (rng.standard_normal(6), 100 * rng.standard_normal((1, 2, 4))):
        yield case(scores)
        yield case(np.where(rng.random(scores.shape) < 0.3, -np.inf, scores))


def _log_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[0.0, 0.0], [0.0, 1.0]]))
    for dtype in DTYPES:
        yield case(rng.standard_normal((2, 5, 3)).astype(dtype), axis=-2)
    yield case(np.array([0.0, -1000.0]))
    yield case(np.array([1000.0, 0.0, -np.inf]))
    yield case(np.array([1e6, 1e6 + 1], np.float32))
    yield case(np.array([[1000.0, 999.0], [-1000.0, -1002.0]]))
    for axis in (0, 1):
        yield case(rng.standard_normal((3, 4, 5)), axis=axis)
    for scores in (rng.standard_normal(6), 100 * rng.standard_normal((1, 2, 4))):
        yield case(scores)
        yield case(np.where(rng.random(scores.shape) < 0.3, -np.inf, scores))
    yield case(NOTHING)


def _causal_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(3), np.arange(3))
    yield case(np.array([3, 4]), np.arange(5))  # a cache
    yield case(np.array([[0, 1], [2, 2]]), np.array([[0, 1, 2], [1, 2, 3]]))
    yield case(np.array([-2, 0, 1]), np.array([-3, -2, -1, 0]))  # padding on the left
    for n in range(9):
        q = rng.integers(0, 12, (2, 3, n + 1)[n % 3 :])
        yield case(q, rng.integers(0, 12, (3, n % 4 + 2)[n % 2 :]))


def _padding_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([1, 3]), 3)
    yield case(np.array([1, 3]), 3, side="left")
    yield case(np.array([0, 2, 5, 4]), 5)
    for n in range(9):
        size = int(rng.integers(3, 12))
        lengths = rng.integers(0, size + 1, n % 4 + 1)
        yield case(lengths, size, ("left", "right")[n % 2])


def _heads_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(8.0).reshape(2, 4), 2)
    for dtype in DTYPES:
        yield case(rng.standard_normal((2, 5, 12)).astype(dtype), 3)
    yield case(rng.standard_normal((3, 6)), 1)
    yield case(rng.standard_normal((2, 3, 4, 6)), 2)


def _merge_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(8.0).reshape(2, 2, 2))
    for dtype in DTYPES:
        yield case(rng.standard_normal((2, 3, 5, 4)).astype(dtype))
    yield case(rng.standard_normal((2, 1, 3, 2, 4)))


def _attention_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.array([[1.0, 0.0]])
    keys = np.array([[4.0, 0.0], [0.0, 4.0]])
    yield case(one, keys, np.array([[1.0], [0.0]]))
    mask = causal_mask(np.arange(2, 6), np.arange(6))
    for dtype in DTYPES[:2]:
        q = rng.standard_normal((2, 3, 4, 8)).astype(dtype)
        k = rng.standard_normal((2, 3, 6, 8)).astype(dtype)
        v = rng.standard_normal((2, 3, 6, 5)).astype(dtype)
        bias = rng.standard_normal((3, 4, 6)).astype(dtype)
        yield case(q, k, v)
        yield case(q, k, v, mask)
        yield case(q, k, v, mask, bias)
        yield case(q, k, v, bias=bias, scale=1.0)
    none = mask.copy()
    none[1] = False  # a query that may attend to nothing
    yield case(q, k, v, none)
    x = rng.standard_normal((2, 4, 3))
    yield case(x, x, x)  # as many queries as keys
    yield case(x, x, x, causal_mask(np.arange(4), np.arange(4)))
    far = np.array([[1e5], [1.0], [-1e5]])  # exp overflows; the largest scores are far apart
    yield case(far * x[0, :3], x[0], x[1])
    yield case(x[0], far[[1, 1, 1, 0]] * x[0], x[1], np.arange(4)[None] < 3)  # hidden
    for B, L, S, K in ((1, 3, 5, 4), (2, 5, 2, 6), (3, 1, 4, 2)):
        q, k = rng.standard_normal((B, 2, L, K)), rng.standard_normal((B, 2, S, K))
        v, shown = rng.standard_normal((B, 2, S, 3)), rng.random((B, 1, L, S)) < 0.6
        shown[..., 0] = True
        shown[0] = B != 2  # or a sequence that may attend to nothing
        yield case(q, k, v, shown)  # each sequence has a mask of its own
        yield case(q, k, v, shown, rng.standard_normal((2, L, S)), scale=float(B) / 4)


# ---- chapter 12 ---------------------------------------------------------------------------------


def _window_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(6), np.arange(6), 3)
    yield case(np.arange(6), np.arange(6), 2, sinks=1)
    yield case(np.arange(5), np.arange(5), 2, sinks=3)
    yield case(np.array([8, 9]), np.array([0, 1, 2, 3, 6, 7, 8, 9]), 3, sinks=4)  # a cache
    yield case(np.array([7]), np.array([4, 5, 6, 7]), 2, sinks=2)  # the sinks are gone
    yield case(np.array([[0, 1], [2, 2]]), np.array([[0, 1, 2], [1, 2, 3]]), 1)
    for n in range(7):
        q, k = _ascending(rng, n)
        yield case(q, k, int(rng.integers(1, 9)), sinks=n % 4)
    yield case(np.arange(-2, 4), np.arange(-2, 4), 2, sinks=1)  # two of padding on the left


def _ascending(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    q, k = rng.integers(0, 30, 5), rng.integers(0, 30, (2, 8)[n % 2 :])
    return np.sort(q), np.sort(k, axis=-1)


def _chunk_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(6), np.arange(6), 3)
    yield case(np.array([5, 6]), np.arange(7), 2)  # a cache
    yield case(np.array([[1, 2, 3], [0, 1, 2]]), np.array([[0, 1, 2, 3], [-1, 0, 1, 2]]), 2)
    for n in range(9):
        yield case(*_ascending(rng, n), int(rng.integers(2, 9)))


def _sink_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.log([[[1.0, 2.0]]]), np.array([[1.0], [3.0]]), None, np.log([5.0]))
    mask = causal_mask(np.arange(2, 6), np.arange(6))
    for dtype in DTYPES[:2]:
        scores = 2 * rng.standard_normal((2, 3, 4, 6)).astype(dtype)
        v = rng.standard_normal((2, 3, 6, 5)).astype(dtype)
        sink = rng.standard_normal(3).astype(dtype)
        yield case(scores, v)
        yield case(scores, v, mask)
        yield case(scores, v, None, sink)
        yield case(scores, v, mask, sink)
    yield case(scores + 500, v, mask, sink + 500)  # exp overflows
    none = mask.copy()
    none[1] = False  # a query that may attend to nothing
    yield case(scores, v, none, sink)
    yield case(scores, v, none)
    for B, L, S in ((1, 3, 5), (2, 5, 2), (3, 1, 4)):
        scores, v = rng.standard_normal((B, 2, L, S)), rng.standard_normal((B, 2, S, 3))
        shown = rng.random((B, 1, L, S)) < 0.6
        shown[..., 0] = True
        yield case(scores, v, shown)
        yield case(scores, v, shown, rng.standard_normal(2))


EXERCISES = (
    Exercise("softmax", softmax, _softmax_cases, chapter=10),
    Exercise("log_softmax", log_softmax, _log_cases, chapter=10),
    Exercise("causal_mask", causal_mask, _causal_cases, chapter=10),
    Exercise("padding_mask", padding_mask, _padding_cases, chapter=10),
    Exercise("split_heads", split_heads, _heads_cases, chapter=10),
    Exercise("merge_heads", merge_heads, _merge_cases, chapter=10),
    Exercise("attention", attention, _attention_cases, chapter=10),
    Exercise("window_mask", window_mask, _window_cases, chapter=12),
    Exercise("chunk_mask", chunk_mask, _chunk_cases, chapter=12),
    Exercise("attend", attend, _sink_cases, chapter=12),
)
