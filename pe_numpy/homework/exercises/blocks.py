"""Exercises of the parts of a layer: projections, heads, blocks of scores, gates, dropout, and how
they begin (chapters 12, 60, 62).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case, in_a_row
from pe_numpy.homework.worker import FUNCTIONS as of
from pe_numpy.homework.worker import parameters
from pe_numpy.transformer.blockwise import attention_blockwise
from pe_numpy.transformer.layers import dropout, linear, relu, silu
from pe_numpy.transformer.model import multi_head_attention

DTYPES = (np.float64, np.float32)
NARROW = (*DTYPES, np.float16)

# ---- attention ----------------------------------------------------------------------------------


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
    yield case(*three(6, 6, 2, size=900), block=4)  # exp of these scores is infinite
    q, k, v = np.array([[-1000.0]]), np.ones((2, 1)), np.array([[2.0], [8.0]])
    yield case(q, k, v, np.array([[False, True]]), block=1)  # a hidden block, then one far below 0
    yield case(*three(4, 6, 2))  # one block holds all
    mask = rng.random((2, 1, 5, 7)) < 0.5
    mask[0, 0, 2], mask[1, 0, 0, :3] = False, False  # a row that sees nothing, a block
    yield case(*three(5, 7, 2, 3), mask, block=3)
    yield case(*three(5, 7, 2, 3), mask[..., :1], rng.standard_normal(7), 3)  # broadcast
    yield case(*three(5, 7, 2, 3), None, rng.standard_normal((3, 5, 7)), 4)
    yield case(*three(6, 6, 3), None, of["per_head"], 4)
    yield case(*three(4, 9, 1, 3), bias=of["falling"], block=2, causal=True)
    yield case(*three(7, 7, 2), block=2, causal=True, window=3)
    yield case(*three(3, 9, 2), None, rng.standard_normal((3, 1)), block=2, window=2)
    q_at, k_at = np.array([2, 9, 30]), np.array([0, 1, 2, 8, 9, 29, 31])  # packed, with gaps
    yield case(*three(3, 7, 2), block=2, causal=True, q_positions=q_at, k_positions=k_at)
    yield case(
        *three(3, 7, 2), block=3, bias=of["falling"], q_positions=q_at, k_positions=k_at, window=8
    )
    early = {"q_positions": np.arange(4), "k_positions": np.arange(2, 5)}
    yield case(*three(4, 3, 2), block=2, causal=True, **early)  # the first two see nothing
    yield case(*three(3, 4, 2), block=2, causal=True, q_positions=np.array([0, 1, 5]))
    yield case(*three(3, 4, 2), block=3, causal=True, k_positions=np.array([3, 0, 2, 9]))
    at = np.array([[0, 1, 2], [4, 5, 9]])  # positions of each sequence
    yield case(*three(3, 3, 2), block=2, causal=True, q_positions=at, k_positions=at, window=2)


BLOCKWISE = Exercise(
    "attention_blockwise", attention_blockwise, _blockwise_cases, chapter=12, precise=10
)


def _heads_cases(rng: np.random.Generator) -> Iterator[Case]:
    def layer(D=6, H=3, K=4, G=None, biases=(), dtype=np.float64, size=1.0):
        G = H if G is None else G
        widths = {"q": H * K, "k": G * K, "v": G * K}
        params = {f"W_{n}": size * rng.standard_normal((D, w)) for n, w in widths.items()}
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
    yield case(layer(size=30), own, own, 3)  # exp of these scores is infinite
    own = x(1, 4, 8)
    yield case(layer(D=8, H=2, K=4), own, own, 2)  # H K = D
    yield case(layer(D=8, H=2, K=4), own, x(1, 4, 8), 2)  # a memory as long as the text
    yield case(layer(D=8, H=1, K=4, biases="qv"), own, own, n_heads=1)
    yield case(layer(H=4, G=1, K=2, biases="qkv"), x(3, 2, 6), x(3, 5, 6), 4)
    real = rng.random((2, 1, 1, 7)) < 0.6
    real[..., 0] = True
    yield case(layer(biases="o"), x(2, 5, 6), x(2, 7, 6), 3, mask=real)  # padding, a row each
    nothing = np.tri(4, dtype=bool)
    nothing[0] = False
    yield case(layer(D=8, H=2), own, own, 2, mask=nothing)


HEADS = Exercise("multi_head_attention", multi_head_attention, _heads_cases, chapter=60, precise=10)

# ---- projections, activations, dropout ----------------------------------------------------------


def _linear_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 4.0]]))
    yield case(np.array([[1.0, 2.0]]), np.array([[0.0, 1.0], [3.0, 0.0]]), np.array([10.0, 20.0]))
    for dtype in NARROW:
        for batch in ((5,), (2, 5), (2, 3, 4), ()):
            for D, F in ((4, 6), (3, 3)):
                x, W, b = (rng.standard_normal(size) for size in ((*batch, D), (D, F), F))
                given = (x.astype(dtype), W.astype(dtype), b.astype(dtype))
                yield case(*given[: 2 + (len(batch) != 1)])


LINEAR = Exercise("linear", linear, _linear_cases, chapter=60, precise=10)


def _relu_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-2.0, 0.0, 3.0]))
    for dtype in NARROW:
        for size in ((7,), (2, 5), (2, 3, 4), (6, 1, 2)):
            yield case((4 * rng.standard_normal(size)).astype(dtype))
    yield case(np.array([[-1e30, 1e30], [-1e-30, 1e-30]]))


RELU = Exercise("relu", relu, _relu_cases, chapter=60)


def _silu_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-1.0, 0.0, 1.0]))
    for dtype in DTYPES:
        for shape in ((7,), (2, 5), (2, 3, 4)):
            yield case((3 * rng.standard_normal(shape)).astype(dtype))
        yield case(np.array([-2000.0, -100.0, 100.0, 2000.0]).astype(dtype))
        yield case(rng.uniform(-40, 40, (3, 4)).astype(dtype))
    yield case((20 * rng.standard_normal((3, 4))).astype(np.float16))
    yield case(np.zeros((2, 0)))


SILU = Exercise("silu", silu, _silu_cases, chapter=60)


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


DROPOUT = Exercise("dropout", dropout, _dropout_cases, chapter=62)

# ---- how a network begins -----------------------------------------------------------------------


def init_feed_forward(
    d_model: int, d_ff: int, n_layers: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Draw the parameters of the feed-forward network of one of n layers."""
    W_1 = rng.standard_normal((d_model, d_ff)) / math.sqrt(d_model)
    W_2 = rng.standard_normal((d_ff, d_model)) / math.sqrt(d_ff * 2 * n_layers)
    return {"W_1": W_1, "b_1": np.zeros(d_ff), "W_2": W_2, "b_2": np.zeros(d_model)}


def _begin_cases(rng: np.random.Generator) -> Iterator[Case]:
    for D, F, n in ((1, 2, 2), (4, 9, 1), (4, 16, 6), (6, 3, 12), (25, 7, 3), (8, 8, 2)):
        for _ in range(2):
            yield in_a_row(parameters, D, F, n, np.random.default_rng(int(rng.integers(2**32))))


BEGIN = Exercise("init_feed_forward", init_feed_forward, _begin_cases, chapter=62)

EXERCISES = (BLOCKWISE, HEADS, SILU, DROPOUT, LINEAR, RELU, BEGIN)
