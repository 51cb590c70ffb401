"""Exercises of the parts of a layer: projections, heads, blocks of scores, gates, dropout, and how
they begin (chapters 12, 60, 62).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case, in_a_row
from pe_numpy.homework.known import Mistake
from pe_numpy.transformer.attention import attention
from pe_numpy.transformer.blockwise import attention_blockwise
from pe_numpy.transformer.layers import dropout, gelu, linear, relu, silu
from pe_numpy.transformer.model import multi_head_attention

DTYPES = (np.float64, np.float32)

# ---- attention_blockwise ------------------------------------------------------------------------


def _falling(distance: Any) -> Any:
    """A bias by distance, the same for all heads."""
    return -0.25 * distance


def _per_head(distance: Any) -> Any:
    """A bias (3, l, s), which tells the past from the future."""
    slopes = np.array([0.5, 0.25, -0.125])[:, None, None]
    return slopes * distance[..., None, :, :]


def _blockwise_cases(rng: np.random.Generator) -> Iterator[Case]:
    def three(L, S, *batch, K=4, Kv=3, dtype=np.float64, size=1.0):
        q = size * rng.standard_normal((*batch, L, K))
        k, v = rng.standard_normal((*batch, S, K)), rng.standard_normal((*batch, S, Kv))
        return (x.astype(dtype) for x in (q, k, v))

    one = np.eye(2)
    yield case(one, one, np.array([[2.0], [8.0]]), block=1)
    for dtype in DTYPES:
        yield case(*three(5, 7, 2, 3, dtype=dtype), block=2)
        yield case(*three(7, 7, 2, 3, dtype=dtype, size=30), block=3)  # large scores
        yield case(*three(3, 8, 3, dtype=dtype), block=3, causal=True)  # a cache
    yield case(*three(4, 6, 2))  # one block holds all
    mask = rng.random((2, 1, 5, 7)) < 0.5
    mask[0, 0, 2], mask[1, 0, 0, :3] = False, False  # a row that sees nothing, a block
    yield case(*three(5, 7, 2, 3), mask, block=3)
    yield case(*three(5, 7, 2, 3), None, rng.standard_normal((3, 5, 7)), 4)
    yield case(*three(6, 6, 3), None, _per_head, 4)
    yield case(*three(4, 9, 1, 3), bias=_falling, block=2, causal=True)
    yield case(*three(7, 7, 2), block=2, causal=True, window=3)
    yield case(*three(3, 9, 2), block=2, window=2)
    q_at, k_at = np.array([2, 9, 30]), np.array([0, 1, 2, 8, 9, 29, 31])  # packed, with gaps
    yield case(*three(3, 7, 2), block=2, causal=True, q_positions=q_at, k_positions=k_at)
    yield case(
        *three(3, 7, 2), block=3, bias=_falling, q_positions=q_at, k_positions=k_at, window=8
    )


def _blockwise(
    *,
    rest=True,
    scale=lambda K: 1 / math.sqrt(K),
    shrink_total=lambda by: by,
    shrink_mixed=lambda by: by,
    shift=lambda top: np.where(top == -np.inf, 0, top),
    divide=lambda total: np.where(total == 0, 1, total),
    begin=lambda L, S: S - L,
    windowed=True,
    nothing=-np.inf,
) -> Callable:
    """Attention in blocks of keys, with one part of it replaced."""

    def wrong(
        q, k, v, mask=None, bias=None, block=256,
        causal=False, q_positions=None, k_positions=None, window=None,
    ):  # fmt: skip
        L, S, dtype = q.shape[-2], k.shape[-2], q.dtype
        start = begin(L, S)
        q_at = np.arange(start, start + L) if q_positions is None else q_positions
        k_at = np.arange(S) if k_positions is None else k_positions
        distance = q_at[..., :, None] - k_at[..., None, :]
        seen = np.ones((L, S), bool) if mask is None else mask
        if causal:
            seen = seen & (distance >= 0)
        if window is not None and windowed:
            seen = seen & (distance < window)
        more = bias(distance) if callable(bias) else 0.0 if bias is None else bias
        more, seen = (np.broadcast_to(x, (*q.shape[:-1], S)) for x in (more, seen))
        top = np.full((*q.shape[:-1], 1), -np.inf)
        total, mixed = np.zeros_like(top), np.zeros((*q.shape[:-1], v.shape[-1]))
        for first in range(0, S if rest or block > S else S - S % block, block):
            columns = slice(first, first + block)
            scores = q @ np.swapaxes(k[..., columns, :], -1, -2) * scale(q.shape[-1])
            scores = np.where(seen[..., columns], scores + more[..., columns], nothing)
            higher = np.maximum(top, scores.max(axis=-1, keepdims=True))
            weights, by = np.exp(scores - shift(higher)), np.exp(top - shift(higher))
            total = total * shrink_total(by) + weights.sum(axis=-1, keepdims=True)
            mixed = mixed * shrink_mixed(by) + weights @ v[..., columns, :]
            top = higher
        return (mixed / divide(total)).astype(dtype)

    return wrong


def _softmax_of_blocks(
    q, k, v, mask=None, bias=None, block=256,
    causal=False, q_positions=None, k_positions=None, window=None,
):  # fmt: skip
    """A softmax within each block, and the mean of what they give."""
    parts = []
    L, S = q.shape[-2], k.shape[-2]
    q_at = np.arange(S - L, S) if q_positions is None else q_positions
    k_at = np.arange(S) if k_positions is None else k_positions
    distance = q_at[..., :, None] - k_at[..., None, :]
    seen = np.broadcast_to(True if mask is None else mask, (*q.shape[:-1], S))
    seen = seen & (distance >= 0) if causal else seen
    seen = seen & (distance < window) if window is not None else seen
    more = bias(distance) if callable(bias) else 0.0 if bias is None else bias
    more = np.broadcast_to(more, (*q.shape[:-1], S)).astype(q.dtype)
    for first in range(0, S, block):
        columns = slice(first, first + block)
        kv = k[..., columns, :], v[..., columns, :]
        parts.append(attention(q, *kv, seen[..., columns], more[..., columns])[0])
    return np.mean(parts, axis=0).astype(q.dtype)


BLOCKWISE = Exercise(
    "attention_blockwise",
    attention_blockwise,
    _blockwise_cases,
    (
        Mistake(
            "a softmax in each block",
            "One softmax runs over all blocks: carry its largest score and its sum from block to "
            "block.",
            12,
            _softmax_of_blocks,
        ),
        Mistake(
            "the sum not shrunk",
            "When the largest score grows, the sum so far is too large: multiply it by "
            "exp(old top - new top).",
            12,
            _blockwise(shrink_total=lambda by: 1.0),
        ),
        Mistake(
            "the output not shrunk",
            "When the largest score grows, the mixed values so far shrink with the sum.",
            12,
            _blockwise(shrink_mixed=lambda by: 1.0),
        ),
        Mistake(
            "the last, shorter block left out",
            "S need not be a multiple of the block: the last block is shorter.",
            12,
            _blockwise(rest=False),
        ),
        Mistake(
            "NaN where a block is hidden",
            "While a row has seen -inf alone, -inf - (-inf) is NaN: subtract 0 there, and divide "
            "by 1 if nothing was seen at all.",
            12,
            _blockwise(shift=lambda top: top, divide=lambda total: total),
        ),
        Mistake(
            "queries at 0",
            "Without positions the queries stand at the last L of the S places, as with a cache.",
            12,
            _blockwise(begin=lambda L, S: 0),
        ),
        Mistake(
            "no scale",
            "Divide the products by the root of K.",
            10,
            _blockwise(scale=lambda K: 1.0),
        ),
        Mistake(
            "the window forgotten",
            "A query sees no key that stands `window` positions or more before it.",
            12,
            _blockwise(windowed=False),
        ),
    ),
    chapter=12,
    precise=10,
    further=(
        Mistake(
            "neither sum nor output shrunk",
            "When the largest score grows, all that was summed so far is too large: multiply it by "
            "exp(old top - new top).",
            12,
            _blockwise(shrink_total=lambda by: 1.0, shrink_mixed=lambda by: 1.0),
        ),
    ),
)

# ---- multi_head_attention -----------------------------------------------------------------------


def _heads_cases(rng: np.random.Generator) -> Iterator[Case]:
    def layer(D=6, H=3, K=4, G=None, biases=(), dtype=np.float64):
        G = H if G is None else G
        widths = {"q": H * K, "k": G * K, "v": G * K}
        params = {f"W_{n}": rng.standard_normal((D, w)) for n, w in widths.items()}
        params["W_o"] = rng.standard_normal((H * K, D))
        params |= {f"b_{n}": rng.standard_normal(widths.get(n, D)) for n in biases}
        return {name: W.astype(dtype) for name, W in params.items()}

    def x(*shape, dtype=np.float64):
        return rng.standard_normal(shape).astype(dtype)

    eyes = {f"W_{n}": np.eye(2) for n in "qkvo"}
    yield case(eyes, np.eye(2)[None], np.array([[[1.0, 2.0], [3.0, 5.0]]]), 1)
    for dtype in DTYPES:
        own = x(2, 5, 6, dtype=dtype)
        yield case(layer(dtype=dtype), own, own, 3)
        yield case(layer(biases="qkvo", dtype=dtype), own, own, 3, np.tri(5, dtype=bool))
        yield case(layer(dtype=dtype), own, x(2, 7, 6, dtype=dtype), 3)  # a memory
        yield case(layer(H=4, G=2, K=3, dtype=dtype), own, own, 4, np.tri(5, dtype=bool))
    own = x(1, 4, 8)
    yield case(layer(D=8, H=2, K=4), own, own, 2)  # H K = D
    yield case(layer(D=8, H=1, K=4, biases="qv"), own, own, n_heads=1)
    yield case(layer(H=4, G=1, K=2, biases="qkv"), x(3, 2, 6), x(3, 5, 6), 4)
    real = rng.random((2, 1, 1, 7)) < 0.6
    real[..., 0] = True
    yield case(layer(biases="o"), x(2, 5, 6), x(2, 7, 6), 3, mask=real)  # padding, a row each
    nothing = np.tri(4, dtype=bool)
    nothing[0] = False
    yield case(layer(D=8, H=2), own, own, 2, mask=nothing)


def _heads(
    *,
    split=lambda x, H: np.swapaxes(x.reshape(*x.shape[:-1], H, -1), -2, -3),
    merge=lambda x: np.swapaxes(x, -2, -3).reshape(*x.shape[:-3], x.shape[-2], -1),
    share=lambda x, times: np.repeat(x, times, axis=-3),
    scale=lambda q, D: 1.0,
    swapped=False,
    biases=True,
    out=True,
    seen=lambda mask: mask,
) -> Callable:
    """Multi-head attention with one part of it replaced."""

    def wrong(params, x, source, n_heads, mask=None):
        D = x.shape[-1]

        def made(name, of):
            y = of @ params[f"W_{name}"]
            return y + params.get(f"b_{name}", y.dtype.type(0)) if biases else y

        asks, answers = (source, x) if swapped else (x, source)
        G = n_heads * params["W_k"].shape[1] // params["W_q"].shape[1]
        q = split(made("q", asks), n_heads)
        k, v = (share(split(made(n, answers), G), n_heads // G) for n in "kv")
        q = q * q.dtype.type(scale(q, D))
        hidden = None if mask is None else seen(mask)
        output, weights = attention(q, k, v, hidden)
        return made("o", merge(output)) if out else merge(output), weights

    return wrong


HEADS = Exercise(
    "multi_head_attention",
    multi_head_attention,
    _heads_cases,
    (
        Mistake(
            "reshaped, not transposed",
            "Head h takes K neighbouring components of every token: reshape to (B, L, H, K), then "
            "exchange the axes of tokens and heads.",
            60,
            _heads(split=lambda x, H: x.reshape(*x.shape[:-2], H, x.shape[-2], -1)),
        ),
        Mistake(
            "merged without the transpose",
            "Before heads are put side by side, the axes of heads and tokens change back.",
            60,
            _heads(merge=lambda x: x.reshape(*x.shape[:-3], x.shape[-2], -1)),
        ),
        Mistake(
            "the scale of the whole width",
            "Divide by the root of K, the width of one head, not of D.",
            60,
            _heads(scale=lambda q, D: math.sqrt(q.shape[-1] / D)),
        ),
        Mistake(
            "the last projection forgotten",
            "W_o, and its bias, mix what the heads have found.",
            60,
            _heads(out=False),
        ),
        Mistake(
            "biases forgotten",
            "b_q, b_k, b_v and b_o, where they are given.",
            60,
            _heads(biases=False),
        ),
        Mistake(
            "queries from the source",
            "x asks, the source answers: queries are made from x, keys and values from the source.",
            60,
            _heads(swapped=True),
        ),
        Mistake(
            "key heads dealt out in turn",
            "Neighbouring query heads share a key head: head h reads h G // H. Repeat, don't tile.",
            44,
            _heads(share=lambda x, times: np.concatenate([x] * times, axis=-3)),
        ),
        Mistake(
            "True taken for blocked",
            "In a mask True means may attend.",
            10,
            _heads(seen=np.logical_not),
        ),
    ),
    chapter=60,
    precise=10,
)

# ---- silu ---------------------------------------------------------------------------------------


def _silu_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-1.0, 0.0, 1.0]))
    for dtype in DTYPES:
        for shape in ((7,), (2, 5), (2, 3, 4)):
            yield case((3 * rng.standard_normal(shape)).astype(dtype))
        yield case(np.array([-2000.0, -100.0, 100.0, 2000.0]).astype(dtype))
        yield case(rng.uniform(-40, 40, (3, 4)).astype(dtype))
    yield case(np.zeros((2, 0)))


SILU = Exercise(
    "silu",
    silu,
    _silu_cases,
    (
        Mistake(
            "the sigmoid alone",
            "x times its sigmoid.",
            60,
            lambda x: (1 / (1 + np.exp(-x))).astype(x.dtype),
        ),
        Mistake(
            "the quick form of GELU",
            "SiLU has no factor of 1.702 before x.",
            60,
            lambda x: (x / (1 + np.exp(-1.702 * x))).astype(x.dtype),
        ),
        Mistake(
            "the sign of the exponent",
            "sigmoid(x) = 1 / (1 + exp(-x)): it is near 1 for large x.",
            60,
            lambda x: x / (1 + np.exp(x)),
        ),
        Mistake(
            "infinity over infinity",
            "exp(x) / (1 + exp(x)) is NaN for large x: write 1 / (1 + exp(-x)).",
            60,
            lambda x: x * (np.exp(x) / (1 + np.exp(x))),
        ),
        Mistake(
            "tanh for the sigmoid",
            "The sigmoid is (1 + tanh(x/2)) / 2.",
            60,
            lambda x: x * np.tanh(x),
        ),
    ),
    chapter=60,
)

# ---- dropout ------------------------------------------------------------------------------------


def _dropout_cases(rng: np.random.Generator) -> Iterator[Case]:
    def generator():
        return np.random.default_rng(int(rng.integers(2**32)))

    yield case(np.ones(5), 0.5, generator())
    for dtype in DTYPES:
        for rate in (0.1, 0.5, 0.75):
            yield case(rng.standard_normal((2, 5, 6)).astype(dtype), rate, generator())
        yield case(rng.standard_normal((3, 7)).astype(dtype), float(rng.uniform(0.2, 0.8)))
        yield case(rng.standard_normal((3, 7)).astype(dtype), 0.0, generator())
    yield case(rng.standard_normal((4, 6)), float(rng.uniform(0.2, 0.8)), rng=generator())


def _dropped(
    kept=lambda drawn, rate: drawn >= rate,
    by=lambda rate: 1 / (1 - rate),
    shape=lambda x: x.shape,
    later=lambda x, rate: x.copy(),
) -> Callable:
    """Dropout with one part of it replaced."""

    def wrong(x, rate, rng=None):
        if rng is None:
            return later(x, rate)
        drawn = rng.random(shape(x), dtype=np.float32)
        return x * (kept(drawn, rate) * by(rate)).astype(x.dtype)

    return wrong


DROPOUT = Exercise(
    "dropout",
    dropout,
    _dropout_cases,
    (
        Mistake(
            "not scaled",
            "What is kept is divided by 1 - rate, so that the mean stays what it was.",
            62,
            _dropped(by=lambda rate: 1.0),
        ),
        Mistake(
            "the share that is kept",
            "rate is the share that is dropped, as in PyTorch; the papers' p is often the other.",
            62,
            _dropped(lambda drawn, rate: drawn < rate, lambda rate: 1 / max(rate, 1e-9)),
        ),
        Mistake(
            "scaled at inference",
            "The scale is applied in training; without a generator x stays as it is.",
            62,
            _dropped(by=lambda rate: 1.0, later=lambda x, rate: x * x.dtype.type(1 - rate)),
        ),
        Mistake(
            "divided by the rate",
            "A share of 1 - rate is left: divide by that.",
            62,
            _dropped(by=lambda rate: 1 / max(rate, 1e-9)),
        ),
        Mistake(
            "the wrong share dropped",
            "Keep a component where its draw is at least the rate.",
            62,
            _dropped(lambda drawn, rate: drawn < rate),
        ),
        Mistake(
            "whole tokens dropped",
            "Each component has a draw of its own.",
            62,
            _dropped(shape=lambda x: (*x.shape[:-1], 1)),
        ),
    ),
    chapter=62,
    further=(
        Mistake(
            "the share that is kept, but for 0",
            "rate is the share that is dropped, as in PyTorch; the papers' p is often the other.",
            62,
            _dropped(
                lambda drawn, rate: (drawn < rate) | (rate == 0), lambda rate: 1 / (rate or 1)
            ),
        ),
    ),
)

# ---- projections --------------------------------------------------------------------------------


def _linear_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 4.0]]))
    yield case(np.array([[1.0, 2.0]]), np.array([[0.0, 1.0], [3.0, 0.0]]), np.array([10.0, 20.0]))
    for dtype in DTYPES:
        for batch in ((5,), (2, 5), (2, 3, 4), ()):
            for D, F in ((4, 6), (3, 3)):
                x, W, b = (rng.standard_normal(size) for size in ((*batch, D), (D, F), F))
                given = (x.astype(dtype), W.astype(dtype), b.astype(dtype))
                yield case(*given[: 2 + (len(batch) != 1)])


LINEAR = Exercise(
    "linear",
    linear,
    _linear_cases,
    (
        Mistake(
            "W transposed",
            "Here W is (D, F), and tokens are rows: x W. PyTorch keeps it as (F, D).",
            60,
            lambda x, W, b=None: linear(x, W.T, b),
        ),
        Mistake(
            "the bias before the projection",
            "First the projection, then the bias.",
            60,
            lambda x, W, b=None: linear(x if b is None else x + b, W),
        ),
        Mistake(
            "the bias in each term of the sum",
            "Add the bias once, after the sum over the D components.",
            60,
            lambda x, W, b=None: linear(x, W, None if b is None else len(W) * b),
        ),
        Mistake(
            "the axes of the batch joined",
            "The result has all axes of x; its last one is F long.",
            60,
            lambda x, W, b=None: linear(x, W, b).reshape(-1, W.shape[1]),
        ),
        Mistake(
            "an activation at the end",
            "A projection alone: what is below zero stays.",
            60,
            lambda x, W, b=None: relu(linear(x, W, b)),
        ),
    ),
    chapter=60,
    precise=10,
)


def _relu_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-2.0, 0.0, 3.0]))
    for dtype in DTYPES:
        for size in ((7,), (2, 5), (2, 3, 4), (1, 1), (6, 1, 2)):
            yield case(4 * rng.standard_normal(size).astype(dtype))
    yield case(np.array([[-1e30, 1e30], [-1e-30, 1e-30]]))


RELU = Exercise(
    "relu",
    relu,
    _relu_cases,
    (
        Mistake("the absolute value", "What is below zero becomes 0.", 60, np.abs),
        Mistake(
            "its slope",
            "1 above zero and 0 below is the derivative; the function itself keeps x there.",
            60,
            lambda x: (x > 0).astype(x.dtype),
        ),
        Mistake(
            "the other half kept",
            "max(0, x), not min: what is above zero stays.",
            60,
            lambda x: np.minimum(x, 0),
        ),
        Mistake(
            "leaky",
            "What is below zero becomes 0; leaky ReLU leaves a hundredth of it.",
            60,
            lambda x: np.where(x > 0, x, x * x.dtype.type(0.01)),
        ),
        Mistake("GELU", "ReLU keeps x or gives 0; GELU weighs x.", 60, gelu),
        Mistake(
            "negative numbers left out",
            "The result has the shape of x.",
            60,
            lambda x: x[x > 0],
        ),
        Mistake(
            "cut off at 6, too",
            "ReLU has no upper end; with one at 6 it is ReLU6.",
            60,
            lambda x: np.clip(x, 0, 6),
        ),
    ),
    chapter=60,
)

# ---- how a network begins -----------------------------------------------------------------------


def init_feed_forward(
    d_model: int, d_ff: int, n_layers: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Draw the parameters of the feed-forward network of one of n layers."""
    return _begun()(d_model, d_ff, n_layers, rng)


def _begun(
    *,
    draw=lambda rng, size: rng.standard_normal(size),
    spread=lambda fan_in, fan_out: 1 / math.sqrt(fan_in),
    last=lambda n_layers: 1 / math.sqrt(2 * n_layers),
    bias=lambda rng, count: np.zeros(count),
) -> Callable:
    """The first parameters of a feed-forward network, with one part replaced."""

    def wrong(d_model, d_ff, n_layers, rng):
        W_1 = draw(rng, (d_model, d_ff)) * spread(d_model, d_ff)
        W_2 = draw(rng, (d_ff, d_model)) * spread(d_ff, d_model) * last(n_layers)
        return {"W_1": W_1, "b_1": bias(rng, d_ff), "W_2": W_2, "b_2": bias(rng, d_model)}

    return wrong


def _parameters(function: Callable, *sizes: Any) -> tuple:
    params, names = function(*sizes), ("W_1", "b_1", "W_2", "b_2")
    if not isinstance(params, dict) or params.keys() != {*names}:
        got = f"the keys {list(params)}" if isinstance(params, dict) else type(params).__name__
        raise TypeError(f"it must return a dictionary with the keys {', '.join(names)}; got {got}")
    return tuple(params[name] for name in names)


def _begin_cases(rng: np.random.Generator) -> Iterator[Case]:
    for D, F, n in ((1, 2, 2), (4, 9, 1), (4, 16, 6), (6, 3, 12), (25, 7, 3), (8, 8, 2)):
        for _ in range(2):
            yield in_a_row(_parameters, D, F, n, np.random.default_rng(int(rng.integers(2**32))))


BEGIN = Exercise(
    "init_feed_forward",
    init_feed_forward,
    _begin_cases,
    (
        Mistake(
            "not scaled",
            "A sum of fan-in terms grows with their number: divide by its root.",
            62,
            _begun(spread=lambda fan_in, fan_out: 1.0),
        ),
        Mistake(
            "divided by fan-in",
            "The variance is 1/fan-in, so the numbers are divided by its root.",
            62,
            _begun(spread=lambda fan_in, fan_out: 1 / fan_in),
        ),
        Mistake(
            "fan-out for fan-in",
            "The terms of a sum are counted: the rows of W.",
            62,
            _begun(spread=lambda fan_in, fan_out: 1 / math.sqrt(fan_out)),
        ),
        Mistake(
            "He's factor",
            "sqrt(2 / fan-in) is another rule; here the variance is 1/fan-in.",
            62,
            _begun(spread=lambda fan_in, fan_out: math.sqrt(2 / fan_in)),
        ),
        Mistake(
            "Glorot's mean of both sides",
            "sqrt(2 / (fan-in + fan-out)) is another rule; here the variance is 1/fan-in.",
            62,
            _begun(spread=lambda fan_in, fan_out: math.sqrt(2 / (fan_in + fan_out))),
        ),
        Mistake(
            "the last projection as large as the first",
            "2 n sublayers add up on the residual path: W_2 is divided by sqrt(2 n).",
            62,
            _begun(last=lambda n_layers: 1.0),
        ),
        Mistake(
            "the root of n for that of 2 n",
            "A layer has two sublayers, attention and this one: 2 n in all.",
            62,
            _begun(last=lambda n_layers: 1 / math.sqrt(n_layers)),
        ),
        Mistake(
            "biases drawn",
            "Biases begin at zero.",
            62,
            _begun(bias=lambda rng, count: rng.standard_normal(count)),
        ),
        Mistake(
            "all zero",
            "With weights of zero all hidden units stay alike: draw them.",
            62,
            _begun(draw=lambda rng, size: np.zeros(size)),
        ),
        Mistake(
            "drawn evenly from 0 to 1",
            "rng.random is never negative: draw from the normal distribution.",
            62,
            _begun(draw=lambda rng, size: rng.random(size)),
        ),
    ),
    chapter=62,
)

EXERCISES = (BLOCKWISE, HEADS, SILU, DROPOUT, LINEAR, RELU, BEGIN)
