"""Exercises of attention: softmax, masks, heads (chapter 10); windows and sinks (chapter 12)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
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

DTYPES = (np.float64, np.float32)


def _softmax_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[0.0, 0.0], [0.0, 1.0]]))
    for dtype in DTYPES:
        x = 3 * rng.standard_normal((2, 3, 5, 7)).astype(dtype)
        yield case(x)
        yield case(x, axis=-2)
    yield case(np.array([[1000.0, 999.0, -np.inf], [-1000.0, -1001.0, -1002.0]]))
    yield case(np.array([[-np.inf, -np.inf], [0.0, -np.inf]]))
    for axis in (0, 1):
        yield case(rng.standard_normal((3, 4, 5)), axis=axis)
    for scores in (rng.standard_normal(6), 100 * rng.standard_normal((1, 2, 4))):
        yield case(scores)
        yield case(np.where(rng.random(scores.shape) < 0.3, -np.inf, scores))


def _plain_softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


def _unguarded_softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _without_keepdims(of_top: bool = True):
    def weights(x, axis=-1):
        e = np.exp(x - x.max(axis=axis, keepdims=of_top))
        return e / e.sum(axis=axis)

    return weights


def _first_axis(x, axis=-1):
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=0)


def _guarded(power=np.exp, more=0.0, empty=0.0):
    """The softmax with another power, a larger sum, or other weights of an empty row."""

    def weights(x, axis=-1):
        top = x.max(axis=axis, keepdims=True)
        e = power(x - np.where(np.isfinite(top), top, 0))
        total = e.sum(axis=axis, keepdims=True)
        w = e / np.where(total == 0, 1, total + x.dtype.type(more))
        return np.where(total == 0, x.dtype.type(empty / x.shape[axis]), w)

    return weights


SOFTMAX = Exercise(
    "softmax",
    softmax,
    _softmax_cases,
    (
        Mistake(
            "overflow",
            "exp(1000) is infinite: subtract the largest score first, which changes nothing else.",
            10,
            _plain_softmax,
        ),
        Mistake(
            "NaN for a row of -inf alone",
            "Where nothing may be attended to, all weights are 0.",
            10,
            _unguarded_softmax,
        ),
        Mistake(
            "always over the last axis",
            "Use the axis that is given.",
            10,
            lambda x, axis=-1: softmax(x),
        ),
        Mistake(
            "over the whole array",
            "Each row sums to 1, not the whole array.",
            10,
            lambda x, axis=-1: softmax(x.ravel()).reshape(x.shape),
        ),
        Mistake(
            "the sum without exp",
            "Divide the exponentials by their sum.",
            10,
            lambda x, axis=-1: np.exp(x) / x.sum(axis=axis, keepdims=True),
        ),
    ),
    chapter=10,
    further=(
        Mistake(
            "a sum without keepdims",
            "Keep the axis of the sum, keepdims=True: else it meets another one.",
            10,
            _without_keepdims(),
        ),
        Mistake(
            "neither maximum nor sum with keepdims",
            "Keep the axis of both, keepdims=True: else they meet another one.",
            10,
            _without_keepdims(of_top=False),
        ),
        Mistake(
            "always over the first axis",
            "Use the axis that is given.",
            10,
            _first_axis,
        ),
        Mistake(
            "powers of 2",
            "exp has the base e.",
            10,
            _guarded(np.exp2),
        ),
        Mistake(
            "1e-6 added to the sum",
            "The weights then sum to less than 1: a sum of 0 needs care, no other.",
            10,
            _guarded(more=1e-6),
        ),
        Mistake(
            "1e-8 added to the sum",
            "The weights then sum to less than 1: a sum of 0 needs care, no other.",
            10,
            _guarded(more=1e-8),
        ),
        Mistake(
            "equal weights for a row of -inf alone",
            "Where nothing may be attended to, all weights are 0.",
            10,
            _guarded(empty=1.0),
        ),
    ),
)


def _log_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[0.0, 0.0], [0.0, 1.0]]))
    yield case(rng.standard_normal((2, 5, 3)).astype(np.float32), axis=-2)
    yield case(np.array([0.0, -1000.0]))
    yield case(np.array([1000.0, 0.0, -np.inf]))
    yield case(np.array([1e6, 1e6 + 1], np.float32))
    for axis in (0, 1):
        yield case(rng.standard_normal((3, 4, 5)), axis=axis)
    for scores in (rng.standard_normal(6), 100 * rng.standard_normal((1, 2, 4))):
        yield case(scores)
        yield case(np.where(rng.random(scores.shape) < 0.3, -np.inf, scores))
    yield case(np.array([[-np.inf, -np.inf], [0.0, -np.inf]]))


def _log_softmax_by_its_sum(x: np.ndarray, axis: int = -1) -> np.ndarray:
    top = x.max(axis=axis, keepdims=True)
    return x - (top + np.log(np.exp(x - top).sum(axis=axis, keepdims=True)))


LOG_SOFTMAX = Exercise(
    "log_softmax",
    log_softmax,
    _log_cases,
    (
        Mistake(
            "the logarithm of the softmax",
            "A weight too small for its dtype is 0, and its logarithm -inf: take a difference.",
            10,
            lambda x, axis=-1: np.log(softmax(x, axis)),
        ),
        Mistake(
            "overflow",
            "exp(1000) is infinite: subtract the largest score first.",
            10,
            lambda x, axis=-1: x - np.log(np.exp(x).sum(axis=axis, keepdims=True)),
        ),
        Mistake(
            "the logarithm rounded away by the largest score",
            "Beside a large score a logarithm loses its digits: subtract the score from x first.",
            10,
            _log_softmax_by_its_sum,
        ),
        Mistake(
            "the largest score not put back",
            "log sum exp(x) = top + log sum exp(x - top).",
            10,
            lambda x, axis=-1: (
                x
                - np.log(np.exp(x - x.max(axis=axis, keepdims=True)).sum(axis=axis, keepdims=True))
            ),
        ),
    ),
    chapter=10,
    further=(
        Mistake(
            "an epsilon within the logarithm",
            "It hides small weights: take a difference, which needs none.",
            10,
            lambda x, axis=-1: np.log(softmax(x, axis) + x.dtype.type(1e-12)),
        ),
    ),
)


def _causal_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(3), np.arange(3))
    yield case(np.array([3, 4]), np.arange(5))  # a cache
    yield case(np.array([[0, 1], [2, 2]]), np.array([[0, 1, 2], [1, 2, 3]]))
    for n in range(9):
        q = rng.integers(0, 12, (2, 3, n + 1)[n % 3 :])
        yield case(q, rng.integers(0, 12, (3, n % 4 + 2)[n % 2 :]))


def _triangle(keep=np.tri, batch=False, bottom=False):
    """A triangle of the lengths alone."""

    def mask(q, k):
        L, S = q.shape[-1], k.shape[-1]
        shown = keep(L, S, S - L if bottom else 0).astype(bool)
        if not batch:
            return shown
        return np.broadcast_to(shown, (*np.broadcast_shapes(q.shape[:-1], k.shape[:-1]), L, S))

    return mask


CAUSAL = Exercise(
    "causal_mask",
    causal_mask,
    _causal_cases,
    (
        Mistake(
            "True for what is hidden",
            "True = may attend.",
            10,
            lambda q, k: ~causal_mask(q, k),
        ),
        Mistake(
            "a token does not see itself",
            "The key's position may equal the query's.",
            10,
            lambda q, k: q[..., :, None] > k[..., None, :],
        ),
        Mistake(
            "keys down, queries across",
            "The rows are queries: (L, S).",
            10,
            lambda q, k: np.swapaxes(causal_mask(q, k), -1, -2),
        ),
        Mistake(
            "the future for the past",
            "A key with a larger position is in the future.",
            10,
            lambda q, k: q[..., :, None] <= k[..., None, :],
        ),
        Mistake(
            "a triangle whatever the positions",
            "np.tril aligns queries and keys at 0; with a cache the query is at the end.",
            63,
            lambda q, k: np.broadcast_to(
                np.tri(q.shape[-1], k.shape[-1], dtype=bool),
                (*q.shape[:-1], q.shape[-1], k.shape[-1]),
            ),
        ),
        Mistake(
            "0 and -inf",
            "A mask is boolean; scores get -inf where it is False.",
            10,
            lambda q, k: np.where(causal_mask(q, k), 0.0, -np.inf),
        ),
    ),
    chapter=10,
    further=(
        Mistake(
            "a triangle of the lengths alone",
            "Positions have batch axes, and with a cache the query is at the end: "
            "compare positions.",
            63,
            _triangle(),
        ),
        Mistake(
            "an upper triangle",
            "The future is hidden: and positions say what it is, not places.",
            10,
            _triangle(lambda L, S, k: np.triu(np.ones((L, S)), 1)),
        ),
        Mistake(
            "a triangle at the bottom right",
            "That is right if the queries are the newest of the keys: compare positions.",
            63,
            _triangle(bottom=True),
        ),
        Mistake(
            "a triangle at the bottom right of each sequence",
            "That is right if the queries are the newest of the keys: compare positions.",
            63,
            _triangle(batch=True, bottom=True),
        ),
        Mistake(
            "the first sequence's positions for all",
            "Positions may have batch axes: (..., L) and (..., S).",
            10,
            lambda q, k: causal_mask(np.atleast_2d(q)[0], np.atleast_2d(k)[0]),
        ),
    ),
)


def _padding_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([1, 3]), 3)
    yield case(np.array([1, 3]), 3, side="left")
    yield case(np.array([0, 2, 5, 4]), 5)
    for n in range(9):
        size = int(rng.integers(3, 12))
        lengths = rng.integers(0, size + 1, n % 4 + 1)
        yield case(lengths, size, ("left", "right")[n % 2])


PADDING = Exercise(
    "padding_mask",
    padding_mask,
    _padding_cases,
    (
        Mistake(
            "True for what is hidden",
            "True = may attend: a real token.",
            10,
            lambda *args, **options: ~padding_mask(*args, **options),
        ),
        Mistake(
            "always on the right",
            "With side='left' the tokens stand at the end.",
            10,
            lambda lengths, size, side="right": padding_mask(lengths, size),
        ),
        Mistake(
            "one token too many",
            "A sequence of n tokens has the places 0 to n - 1.",
            10,
            lambda lengths, size, side="right": padding_mask(
                np.minimum(lengths + 1, size), size, side
            ),
        ),
        Mistake(
            "two axes",
            "(B, 1, 1, S), so that it broadcasts over heads and queries.",
            10,
            lambda *args, **options: padding_mask(*args, **options)[:, 0, 0],
        ),
    ),
    chapter=10,
    further=(
        Mistake(
            "on the left, as many hidden as are real",
            "Of the `size` places the last ones are real: size - length of them are hidden.",
            10,
            lambda lengths, size, side="right": (
                padding_mask(lengths, size) if side == "right" else ~padding_mask(lengths, size)
            ),
        ),
    ),
)


def _heads_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(8.0).reshape(2, 4), 2)
    for dtype in DTYPES:
        yield case(rng.standard_normal((2, 5, 12)).astype(dtype), 3)
    yield case(rng.standard_normal((3, 6)), 1)


SPLIT = Exercise(
    "split_heads",
    split_heads,
    _heads_cases,
    (
        Mistake(
            "reshaped without moving the axis",
            "Reshape to (L, H, K) first, then exchange L and H: a head is a block of columns.",
            10,
            lambda x, n: x.reshape(*x.shape[:-2], n, x.shape[-2], x.shape[-1] // n),
        ),
        Mistake(
            "heads behind the tokens",
            "The result is (H, L, K): heads before tokens.",
            10,
            lambda x, n: x.reshape(*x.shape[:-1], n, -1),
        ),
        Mistake(
            "every H-th component",
            "Head 0 has the first K components, head 1 the next K.",
            10,
            lambda x, n: np.moveaxis(x.reshape(*x.shape[:-1], -1, n), -1, -3),
        ),
    ),
    chapter=10,
)


def _merge_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(8.0).reshape(2, 2, 2))
    for dtype in DTYPES:
        yield case(rng.standard_normal((2, 3, 5, 4)).astype(dtype))


MERGE = Exercise(
    "merge_heads",
    merge_heads,
    _merge_cases,
    (
        Mistake(
            "reshaped without moving the axis",
            "Exchange H and L first: a token's heads must stand side by side.",
            10,
            lambda x: x.reshape(*x.shape[:-3], x.shape[-2], -1),
        ),
        Mistake(
            "components of the heads mixed",
            "First all components of head 0, then those of head 1.",
            10,
            lambda x: np.moveaxis(x, -3, -1).reshape(*x.shape[:-3], x.shape[-2], -1),
        ),
        Mistake(
            "heads added up",
            "The heads stand side by side: D = H K.",
            10,
            lambda x: x.sum(axis=-3),
        ),
    ),
    chapter=10,
)


def _attention_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.array([[1.0, 0.0]])
    keys = np.array([[4.0, 0.0], [0.0, 4.0]])
    yield case(one, keys, np.array([[1.0], [0.0]]))
    for dtype in DTYPES:
        q = rng.standard_normal((2, 3, 4, 8)).astype(dtype)
        k = rng.standard_normal((2, 3, 6, 8)).astype(dtype)
        v = rng.standard_normal((2, 3, 6, 5)).astype(dtype)
        mask = causal_mask(np.arange(2, 6), np.arange(6))
        bias = rng.standard_normal((3, 4, 6)).astype(dtype)
        yield case(q, k, v)
        yield case(q, k, v, mask)
        yield case(q, k, v, mask, bias)
        yield case(q, k, v, bias=bias, scale=1.0)
    none = mask.copy()
    none[1] = False  # a query that may attend to nothing
    yield case(q, k, v, none)
    for B, L, S, K in ((1, 3, 5, 4), (2, 5, 2, 6), (3, 1, 4, 2)):
        q, k = rng.standard_normal((B, 2, L, K)), rng.standard_normal((B, 2, S, K))
        v, shown = rng.standard_normal((B, 2, S, 3)), rng.random((B, 1, L, S)) < 0.6
        shown[..., 0] = True
        shown[0] = B != 2  # or a sequence that may attend to nothing
        yield case(q, k, v, shown)  # each sequence has a mask of its own
        yield case(q, k, v, shown, rng.standard_normal((2, L, S)), scale=float(B) / 4)


def _scores(q, k, scale, bias):
    s = (q * scale) @ np.swapaxes(k, -1, -2)
    return s if bias is None else s + bias


def _attention(
    scores=_scores,
    axis=-1,
    hide=lambda s, mask: np.where(mask, s, -np.inf),
    after=lambda weights, mask: weights,
):
    """Attention with one part of it replaced."""

    def wrong(q, k, v, mask=None, bias=None, scale=None):
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        s = scores(q, k, q.dtype.type(scale), bias)
        weights = softmax(s if mask is None else hide(s, mask), axis)
        weights = weights if mask is None else after(weights, mask)
        return weights @ v, weights

    return wrong


def _shown(s, mask):
    return s


def _naive(scores, mask):
    return _unguarded_softmax(scores if mask is None else np.where(mask, scores, -np.inf))


def _over_all(scores, mask):
    shown = scores if mask is None else np.where(mask, scores, -np.inf)
    e = np.exp(shown - shown.max())
    return e / e.sum()


def _weighed(weigh=_naive, given=lambda scale, K: scale, scores=_scores):
    """Attention with its softmax or its scale replaced."""

    def wrong(q, k, v, mask=None, bias=None, scale=None):
        K = q.shape[-1]
        scale = K**-0.5 if scale is None else given(scale, K)
        weights = weigh(scores(q, k, q.dtype.type(scale), bias), mask)
        return weights @ v, weights

    return wrong


def _scaled_by(size):
    """Attention with another default of the scale."""

    def wrong(q, k, v, mask=None, bias=None, scale=None):
        return attention(q, k, v, mask, bias, size(q, k, v) ** -0.5 if scale is None else scale)

    return wrong


def _all_axes_swapped(q, k, scale, bias):
    s = (q @ k.T) * scale
    return s if bias is None else s + bias


def _scores_for_weights(q, k, v, mask=None, bias=None, scale=None):
    s = _scores(q, k, q.dtype.type(q.shape[-1] ** -0.5 if scale is None else scale), bias)
    return attention(q, k, v, mask, bias, scale)[0], (
        s if mask is None else np.where(mask, s, -np.inf)
    )


def _as_weights(scores, mask):
    return softmax(scores if mask is None else np.where(mask, scores, -np.inf))


ATTENTION = Exercise(
    "attention",
    attention,
    _attention_cases,
    (
        Mistake(
            "not scaled",
            "Scores are divided by the root of K, the width of a key.",
            10,
            _scaled_by(lambda q, k, v: 1),
        ),
        Mistake(
            "scaled by K for its root",
            "Divide by the root of K.",
            10,
            lambda q, k, v, mask=None, bias=None, scale=None: attention(
                q, k, v, mask, bias, 1 / q.shape[-1] if scale is None else scale
            ),
        ),
        Mistake(
            "the bias scaled, too",
            "The bias is added after the scale.",
            10,
            _attention(lambda q, k, scale, bias: _scores(q, k, q.dtype.type(1), bias) * scale),
        ),
        Mistake(
            "softmax over the queries",
            "The weights of one query sum to 1: the axis of the keys, the last one.",
            10,
            _attention(axis=-2),
        ),
        Mistake(
            "the mask the wrong way round",
            "True = may attend.",
            10,
            lambda q, k, v, mask=None, bias=None, scale=None: attention(
                q, k, v, None if mask is None else ~mask, bias, scale
            ),
        ),
        Mistake(
            "masked after the softmax",
            "Weights set to 0 after the softmax no longer sum to 1: hide the scores, by -inf.",
            10,
            _attention(hide=_shown, after=lambda weights, mask: weights * mask),
        ),
        Mistake(
            "the mask forgotten",
            "Scores whose mask is False become -inf.",
            10,
            _attention(hide=_shown),
        ),
        Mistake(
            "-1e9 added",
            "Where all keys are hidden, adding -1e9 to each score gives back the unmasked weights: "
            "put -inf there, and make the weights of such a row 0.",
            10,
            _attention(hide=lambda s, mask: np.where(mask, s, s - s.dtype.type(1e9))),
        ),
        Mistake(
            "the bias forgotten",
            "Add the bias to the scaled scores.",
            10,
            lambda q, k, v, mask=None, bias=None, scale=None: attention(q, k, v, mask, None, scale),
        ),
        Mistake(
            "the scale that is given forgotten",
            "1/sqrt(K) is only the default.",
            10,
            lambda q, k, v, mask=None, bias=None, scale=None: attention(q, k, v, mask, bias),
        ),
    ),
    chapter=10,
    further=(
        Mistake(
            "scaled by the number of keys",
            "K is the width of a key, its last axis.",
            10,
            _scaled_by(lambda q, k, v: k.shape[-2]),
        ),
        Mistake(
            "scaled by the width of the values",
            "K is the width of a key, which values need not share.",
            10,
            _scaled_by(lambda q, k, v: v.shape[-1]),
        ),
        Mistake(
            "a given scale multiplied on top of 1/sqrt(K)",
            "A scale that is given takes the place of 1/sqrt(K).",
            10,
            _weighed(_as_weights, lambda scale, K: scale * K**-0.5),
        ),
        Mistake(
            "divided by the scale that is given",
            "Scores are multiplied by the scale.",
            10,
            _weighed(_as_weights, lambda scale, K: 1 / scale),
        ),
        Mistake(
            "equal weights for a query without keys",
            "That comes of -1e9, or the least number there is, in the place of hidden scores: put "
            "-inf, and make the weights of such a row 0.",
            10,
            _weighed(
                lambda s, mask: _unguarded_softmax(
                    s if mask is None else np.where(mask, s, s.dtype.type(-1e9))
                )
            ),
        ),
        Mistake(
            "-10000 added",
            "Where all keys are hidden, that gives back the unmasked weights: put "
            "-inf, and make the weights of such a row 0.",
            10,
            _weighed(
                lambda s, mask: _unguarded_softmax(
                    s if mask is None else np.where(mask, s, s - s.dtype.type(1e4))
                )
            ),
        ),
        Mistake(
            "0 for -inf",
            "exp(0) is 1: a hidden score must be -inf.",
            10,
            _weighed(lambda s, mask: softmax(s if mask is None else s * mask)),
        ),
        Mistake(
            "NaN for a query without keys",
            "Where nothing may be attended to, all weights are 0.",
            10,
            _weighed(),
        ),
        Mistake(
            "softmax over all scores at once",
            "The weights of each query sum to 1: the last axis, with keepdims=True.",
            10,
            _weighed(_over_all),
        ),
        Mistake(
            "all axes of k swapped",
            "k.T turns all axes round; swap the last two alone.",
            10,
            _weighed(scores=_all_axes_swapped),
        ),
        Mistake(
            "scores for weights",
            "The second result is what the softmax makes of the scores.",
            10,
            _scores_for_weights,
        ),
    ),
)

# ---- chapter 12 ---------------------------------------------------------------------------------


def _window_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(6), np.arange(6), 3)
    yield case(np.arange(6), np.arange(6), 2, sinks=1)
    yield case(np.arange(5), np.arange(5), 2, sinks=3)
    yield case(np.array([8, 9]), np.array([0, 1, 2, 3, 6, 7, 8, 9]), 3, sinks=4)  # a cache
    yield case(np.array([7]), np.array([4, 5, 6, 7]), 2, sinks=2)  # the sinks are gone
    yield case(np.array([[0, 1], [2, 2]]), np.array([[0, 1, 2], [1, 2, 3]]), 1)
    for n in range(7):
        q, k = (
            np.sort(rng.integers(0, 30, 5)),
            np.sort(rng.integers(0, 30, (2, 8)[n % 2 :]), axis=-1),
        )
        yield case(q, k, int(rng.integers(1, 9)), sinks=n % 4)
    yield case(np.arange(-2, 4), np.arange(-2, 4), 2, sinks=1)  # two of padding on the left


def _down_and_across(q, k):
    return q[..., :, None], k[..., None, :]


def _window_by_place(q, k, window, sinks=0):
    first = (np.arange(k.shape[-1]) < sinks) & causal_mask(q, k)
    return window_mask(q, k, window) | first


def _window_both_sides(q, k, window, sinks=0):
    i, j = _down_and_across(q, k)
    return (abs(i - j) < window) | ((0 <= j) & (j < sinks) & (j <= i))


def _sinks_for_all(q, k, window, sinks=0):
    j = _down_and_across(q, k)[1]
    return window_mask(q, k, window) | (0 <= j) & (j < sinks)


def _padding_for_sinks(q, k, window, sinks=0):
    i, j = _down_and_across(q, k)
    return (j <= i) & ((i - j < window) | (j < sinks))


WINDOW = Exercise(
    "window_mask",
    window_mask,
    _window_cases,
    (
        Mistake(
            "w keys before the query",
            "The query counts: a window of 1 is the query alone, the farthest key is w - 1 back.",
            12,
            lambda q, k, window, sinks=0: window_mask(q, k, window + 1, sinks),
        ),
        Mistake(
            "a window to both sides",
            "A key in the future stays hidden, however near it is.",
            12,
            _window_both_sides,
        ),
        Mistake(
            "sinks that are seen before they come",
            "A sink in the query's future is hidden, too.",
            12,
            _sinks_for_all,
        ),
        Mistake(
            "sinks left out",
            "The keys at positions 0 to sinks - 1 are seen besides the window.",
            12,
            lambda q, k, window, sinks=0: window_mask(q, k, window),
        ),
        Mistake(
            "sinks by their place in the array",
            "A sink is known by its position: in a cache the first key need not stand at 0.",
            12,
            _window_by_place,
        ),
        Mistake(
            "padding for sinks",
            "The sinks are the positions 0 to sinks - 1: padding on the left stands below 0.",
            12,
            _padding_for_sinks,
        ),
        Mistake(
            "sinks taken from the window",
            "The sinks come besides the w positions of the window.",
            12,
            lambda q, k, window, sinks=0: window_mask(q, k, max(1, window - sinks), sinks),
        ),
    ),
    chapter=12,
)


def _chunk_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(6), np.arange(6), 3)
    yield case(np.array([5, 6]), np.arange(7), 2)  # a cache
    yield case(np.array([[1, 2, 3], [0, 1, 2]]), np.array([[0, 1, 2, 3], [-1, 0, 1, 2]]), 2)
    for n in range(9):
        q, k = (
            np.sort(rng.integers(0, 30, 5)),
            np.sort(rng.integers(0, 30, (2, 8)[n % 2 :]), axis=-1),
        )
        yield case(q, k, int(rng.integers(2, 9)))


def _whole_chunks(q, k, chunk):
    i, j = _down_and_across(q, k)
    return i // chunk == j // chunk


def _chunks_by_place(q, k, chunk):
    i, j = (np.arange(x.shape[-1]) for x in (q, k))
    return causal_mask(q, k) & (i[:, None] // chunk == j // chunk)


CHUNK = Exercise(
    "chunk_mask",
    chunk_mask,
    _chunk_cases,
    (
        Mistake(
            "a sliding window",
            "A chunk does not move with the query: at its first position the past is gone.",
            12,
            window_mask,
        ),
        Mistake(
            "the rest of the chunk seen",
            "Keys after the query are hidden within its chunk, too.",
            12,
            _whole_chunks,
        ),
        Mistake(
            "chunks counted from 1",
            "The first chunk holds the positions 0 to c - 1.",
            12,
            lambda q, k, chunk: chunk_mask(q + 1, k + 1, chunk),
        ),
        Mistake(
            "chunks by the place in the array",
            "Use the positions: with padding or a cache they are not the places in the array.",
            12,
            _chunks_by_place,
        ),
    ),
    chapter=12,
    further=(
        Mistake(
            "places for positions, without batch axes",
            "Use the positions: with padding or a cache they are not the places in the array.",
            12,
            lambda q, k, chunk: chunk_mask(np.arange(q.shape[-1]), np.arange(k.shape[-1]), chunk),
        ),
    ),
)


def _sink_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.log([[[1.0, 2.0]]]), np.array([[1.0], [3.0]]), None, np.log([5.0]))
    for dtype in DTYPES:
        scores = 2 * rng.standard_normal((2, 3, 4, 6)).astype(dtype)
        v = rng.standard_normal((2, 3, 6, 5)).astype(dtype)
        mask = causal_mask(np.arange(2, 6), np.arange(6))
        sink = rng.standard_normal(3).astype(dtype)
        yield case(scores, v)
        yield case(scores, v, mask)
        yield case(scores, v, None, sink)
        yield case(scores, v, mask, sink)
    yield case(scores + 500, v, mask, sink + 500)  # exp overflows
    none = mask.copy()
    none[1] = False  # a query that may attend to nothing
    yield case(scores, v, none, sink)
    for B, L, S in ((1, 3, 5), (2, 5, 2), (3, 1, 4)):
        scores, v = rng.standard_normal((B, 2, L, S)), rng.standard_normal((B, 2, S, 3))
        shown = rng.random((B, 1, L, S)) < 0.6
        shown[..., 0] = True
        yield case(scores, v, shown)
        yield case(scores, v, shown, rng.standard_normal(2))


def _log_of_sum(scores):
    top = np.maximum(scores.max(axis=-1, keepdims=True), -1e30)
    return top + np.log(np.exp(scores - top).sum(axis=-1, keepdims=True))


def _scaled(share=lambda lse, a: 1 / (1 + np.exp(a - lse)), plain=attend, output=True):
    """Attention with a sink as a share of plain attention, with one part replaced."""

    def wrong(scores, v, mask=None, sink=None):
        mixed, weights = plain(scores, v, mask)
        if sink is None:
            return mixed, weights
        shown = scores if mask is None else np.where(mask, scores, -np.inf)
        factor = share(_log_of_sum(shown), sink[:, None, None])
        return factor * mixed if output else mixed, factor * weights

    return wrong


def _unguarded_attend(scores, v, mask=None):
    shown = scores if mask is None else np.where(mask, scores, -np.inf)
    weights = _unguarded_softmax(shown)
    return weights @ v, weights


def _overflowing_sink(scores, v, mask=None, sink=None):
    if sink is None:
        return attend(scores, v, mask)
    e = np.exp(scores if mask is None else np.where(mask, scores, -np.inf))
    weights = e / (e.sum(axis=-1, keepdims=True) + np.exp(sink[:, None, None]))
    return weights @ v, weights


def _in_the_sum(of_sink):
    """Attention with something else of the sink in the shifted sum."""

    def wrong(scores, v, mask=None, sink=None):
        shown = scores if mask is None else np.where(mask, scores, -np.inf)
        top = shown.max(axis=-1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0)
        e = np.exp(shown - top)
        total = e.sum(axis=-1, keepdims=True)
        if sink is not None:
            total = total + of_sink(sink[:, None, None], top)
        weights = e / np.where(total == 0, 1, total)
        return weights @ v, weights

    return wrong


ATTEND = Exercise(
    "attend",
    attend,
    _sink_cases,
    (
        Mistake(
            "no sink",
            "exp(sink) joins the sum below; the weights of the keys then sum to less than 1, and "
            "stay so.",
            12,
            lambda scores, v, mask=None, sink=None: attend(scores, v, mask),
        ),
        Mistake(
            "1 added to the sum",
            "The sink is a score: exp(sink) joins the sum, and it is 1 for a sink of 0 alone.",
            12,
            lambda scores, v, mask=None, sink=None: attend(
                scores, v, mask, None if sink is None else 0 * sink
            ),
        ),
        Mistake(
            "the sink for exp of it",
            "The sink is a score: exp(sink) joins the sum.",
            12,
            _scaled(share=lambda lse, a: np.exp(lse) / (np.exp(lse) + a)),
        ),
        Mistake(
            "the share of the sink for that of the keys",
            "The keys keep sigmoid(logsumexp - sink); the sink takes sigmoid(sink - logsumexp).",
            12,
            _scaled(share=lambda lse, a: 1 / (1 + np.exp(lse - a))),
        ),
        Mistake(
            "the weights smaller, the output not",
            "The output is made with the smaller weights: the sink's value is 0.",
            12,
            _scaled(output=False),
        ),
        Mistake(
            "the first head's sink for all",
            "Each head has a sink of its own.",
            12,
            lambda scores, v, mask=None, sink=None: attend(
                scores, v, mask, None if sink is None else sink[0] + 0 * sink
            ),
        ),
        Mistake(
            "overflow",
            "exp(500) is infinite in float32: subtract the largest score first, the sink's among "
            "them.",
            12,
            _overflowing_sink,
        ),
        Mistake(
            "NaN for a row of -inf alone",
            "Where nothing may be attended to, all weights are 0; with the sink in the softmax "
            "that comes by itself.",
            12,
            _scaled(plain=_unguarded_attend),
        ),
    ),
    chapter=12,
    further=(
        Mistake(
            "the sink itself in the sum",
            "The sink is a score: exp(sink) joins the sum.",
            12,
            _in_the_sum(lambda sink, top: sink * np.exp(-top)),
        ),
        Mistake(
            "the largest score not taken off the sink",
            "exp(sink - top) joins the sum of exp(score - top).",
            12,
            _in_the_sum(lambda sink, top: np.exp(sink)),
        ),
    ),
)

EXERCISES = (
    *(SOFTMAX, LOG_SOFTMAX, CAUSAL, PADDING, SPLIT, MERGE, ATTENTION),
    *(WINDOW, CHUNK, ATTEND),
)
