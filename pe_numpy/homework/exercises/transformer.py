"""Exercises of the Transformer and its training (chapters 60 to 63)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.worker import FUNCTIONS as of
from pe_numpy.rotary.rope import rope
from pe_numpy.training.loss import cross_entropy
from pe_numpy.training.optimiser import cosine_schedule, warmup_schedule
from pe_numpy.transformer.attention import (
    attention,
    causal_mask,
    log_softmax,
    merge_heads,
    softmax,
    split_heads,
)
from pe_numpy.transformer.layers import (
    embed_tokens,
    feed_forward,
    gelu,
    layer_norm,
    relu,
    rms_norm,
)

DTYPES = (np.float64, np.float32)
NARROW = (*DTYPES, np.float16)

# ---- chapter 60 ---------------------------------------------------------------------------------


def _norm_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 3.0], [10.0, 30.0]]), np.ones(2), np.array([0.0, 5.0]))
    for dtype in NARROW:
        x = rng.standard_normal((2, 5, 6)).astype(dtype)
        yield case(3 * x + 7, *rng.standard_normal((2, 6)).astype(dtype))
        yield case(x, *rng.standard_normal((2, 6)).astype(dtype), eps=0.1)
    yield case(np.ones((2, 4)), np.ones(4), np.zeros(4))  # no variance
    yield case(rng.standard_normal(5), *rng.standard_normal((2, 5)))  # one token
    for n in range(3):  # eps decides, and one sentence
        x = rng.standard_normal((1, 3, 4 + n))
        yield case(0.05 * x - 2, *rng.standard_normal((2, 4 + n)), eps=10.0 ** -(n + 1))


LAYER_NORM = Exercise("layer_norm", layer_norm, _norm_cases, chapter=60)


def _rms_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 7.0], [10.0, 70.0]]), np.array([1.0, 10.0]))
    for dtype in NARROW:
        x = rng.standard_normal((2, 5, 6)).astype(dtype) + 1
        yield case(x.astype(dtype), rng.standard_normal(6).astype(dtype))
        yield case(x.astype(dtype), rng.standard_normal(6).astype(dtype), eps=0.1)
    yield case(np.array([[0.0, 0.0], [1.0, 2.0]]), np.ones(2))  # no length
    yield case(rng.standard_normal(5), rng.standard_normal(5))
    for n in range(3):
        x = rng.standard_normal((1, 3, 4 + n))
        yield case(0.05 * x, rng.standard_normal(4 + n), eps=10.0 ** -(n + 1))


RMS_NORM = Exercise("rms_norm", rms_norm, _rms_cases, chapter=60)


def _network_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case({"W_1": np.array([[1.0, -1.0]]), "W_2": np.array([[1.0], [1.0]])}, np.array([[3.0]]))
    shapes: dict[str, Any] = {"W_1": (4, 7), "b_1": 7, "W_2": (7, 4), "b_2": 4}
    for dtype in DTYPES:
        params = {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
        yield case(params, rng.standard_normal((2, 5, 4)).astype(dtype))
    for n in range(4):
        shapes = {"W_1": (3, 5), "W_2": (5, 3), "b_1": 5, "b_2": 3}
        for name in ((), ("b_2",), ("b_1",), ("b_1", "b_2"))[n]:
            del shapes[name]
        own = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
        yield case(own, rng.standard_normal((1, 4, 3)))
        yield case(own, rng.standard_normal((2, 1, 3)), ("gelu", "silu", "gelu_tanh", "relu")[n])


FEED_FORWARD = Exercise("feed_forward", feed_forward, _network_cases, chapter=60)


def _gelu_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-1.0, 0.0, 1.0]))
    yield case(np.array([-1.0, 0.0, 1.0]), approximate="tanh")
    for dtype in NARROW:
        yield case((3 * rng.standard_normal((2, 7))).astype(dtype))
        yield case((2 * rng.standard_normal((2, 7))).astype(dtype), approximate="tanh")
    yield case(np.array([-30.0, 30.0, -6.0]))
    yield case(rng.standard_normal((2, 1, 3)), "tanh")


GELU = Exercise("gelu", gelu, _gelu_cases, chapter=60)


def _embedding_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0, 3.0, 4.0], [0.5, 0.0, 0.0, 0.0]]), np.array([1, 1, 0]))
    for dtype in NARROW:
        yield case(rng.standard_normal((11, 6)).astype(dtype), rng.integers(0, 11, (2, 5)))
    yield case(rng.standard_normal((11, 6)), rng.integers(0, 11, 4), scale=1.0)
    yield case(rng.standard_normal((5, 3)), np.array(2))  # a single token
    for n in range(4):
        table, scale = rng.standard_normal((7, 4)), round(float(rng.uniform(0.1, 3)), 2)
        yield case(table, rng.integers(0, 7, (1, n + 2)), scale=scale)


EMBED = Exercise("embed_tokens", embed_tokens, _embedding_cases, chapter=62)


def pre_norm_block(x: np.ndarray, gain: np.ndarray, bias: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Apply a pre-norm block whose sublayer is max(0, x W): x + sublayer(norm(x))."""
    return x + relu(layer_norm(x, gain, bias) @ W)


def _block_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 3.0]]), np.ones(2), np.zeros(2), np.eye(2))
    for dtype in DTYPES:
        x, gain, bias, W = (rng.standard_normal(size) for size in ((2, 5, 6), 6, 6, (6, 6)))
        yield case(*(part.astype(dtype) for part in (x, gain, bias, W)))
        yield case(*(part.astype(dtype) for part in (0.01 * x[0], gain, bias, W)))  # eps decides


BLOCK = Exercise("pre_norm_block", pre_norm_block, _block_cases, chapter=60)


def causal_rope_attention(params: dict[str, np.ndarray], x: np.ndarray, n_heads: int) -> np.ndarray:
    """Causal multi-head attention with RoPE on queries and keys, for x (B, L, D)."""
    at = np.arange(x.shape[1])
    q, k, v = (split_heads(x @ params[f"W_{name}"], n_heads) for name in "qkv")
    mixed, _ = attention(rope(q, at), rope(k, at), v, causal_mask(at, at))
    return merge_heads(mixed) @ params["W_o"]


def _causal_cases(rng: np.random.Generator) -> Iterator[Case]:
    sizes = [(1, 2, 4, 1), (1, 3, 8, 2), (2, 5, 8, 2), (2, 4, 12, 3), (3, 6, 8, 1), (1, 1, 8, 2)]
    for n, (B, L, D, H) in enumerate([*sizes, *sizes[1:5], (1, 40, 12, 2), (2, 3, 24, 2)]):
        params = {f"W_{name}": rng.standard_normal((D, D)) / np.sqrt(D) for name in "qkvo"}
        large = 60 if n == 9 else 2  # exp overflows
        yield case(params, large * rng.standard_normal((B, L, D)), H)


CAUSAL = Exercise("causal_rope_attention", causal_rope_attention, _causal_cases, chapter=60)

# ---- chapter 62 ---------------------------------------------------------------------------------


def shift_right(targets: np.ndarray, begin: int) -> np.ndarray:
    """Decoder inputs for teacher forcing: `begin`, then all targets (B, L) but the last."""
    first = np.full((len(targets), 1), begin, targets.dtype)
    return np.concatenate([first, targets[:, :-1]], axis=1)


def _teacher_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[5, 6, 7]]), 1)
    yield case(rng.integers(3, 20, (4, 6)), 2)
    yield case(rng.integers(3, 20, (2, 1)), 1)
    yield case(rng.integers(3, 20, (3, 3)), 0)


RIGHT = Exercise("shift_right", shift_right, _teacher_cases, chapter=62)


def _loss_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.zeros((2, 4)), np.array([0, 3]))
    for dtype in DTYPES:
        logits = 3 * rng.standard_normal((2, 5, 7)).astype(dtype)
        targets = rng.integers(1, 7, (2, 5))
        yield case(logits, targets)
        targets[0, 3:] = 0
        yield case(logits, targets, ignore=0)
        yield case(logits, targets, ignore=0, label_smoothing=0.1)
    yield case(np.array([[1000.0, 0.0]]), np.array([1]))
    yield case(np.array([[1000.0, 0.0], [-1000.0, -1001.0]]), np.array([0, 1]))  # a maximum per row
    yield case(np.array([[0.0, -800.0]]), np.array([1]))  # a probability that is 0
    for n in range(4):
        V, targets = n + 3, rng.integers(0, n + 3, (n + 1, 4))
        targets[0, 0] = 2
        yield case(rng.standard_normal((n + 1, 4, V)), targets, (None, 2)[n % 2], 0.1 * n)


LOSS = Exercise("cross_entropy", cross_entropy, _loss_cases, chapter=62)


def _warm_cases(rng: np.random.Generator) -> Iterator[Case]:
    for step in (1, 2, 4000, 4001, 100000):
        yield case(step, 512, 4000)
    yield case(10, 64, 40)
    for n in range(8):
        warmup = int(rng.integers(20, 5000))
        step = int(rng.integers(1, warmup) if n % 2 else rng.integers(warmup, 9 * warmup))
        yield case(step, int(rng.integers(16, 1024)), warmup)


WARMUP = Exercise("warmup_schedule", warmup_schedule, _warm_cases, chapter=62)


def _cosine_cases(rng: np.random.Generator) -> Iterator[Case]:
    for step in (1, 5, 6, 50, 100):
        yield case(step, 100, 0.5)
    yield case(30, 40, 1.0, warmup=0.25, floor=0.0)
    yield case(1, 47, 1.0, warmup=0.1)  # 4.7 steps rise, rounded 5
    for n in range(8):
        steps, peak = int(rng.integers(40, 900)), round(float(rng.uniform(0.01, 2)), 3)
        share = (round(float(rng.uniform(0.1, 0.4)), 2), round(float(rng.uniform(0.05, 0.5)), 2))
        yield case(int(rng.integers(1, steps + 1)), steps, peak, *share[: n % 3])


COSINE = Exercise("cosine_schedule", cosine_schedule, _cosine_cases, chapter=62)

# ---- chapter 63 ---------------------------------------------------------------------------------


def next_probabilities(logits: np.ndarray, temperature: float, top_k: int) -> np.ndarray:
    """Probabilities (B, V) of the next token among the k best, at a temperature."""
    scaled = logits / temperature
    least = np.sort(scaled, axis=-1)[:, -top_k, None]
    return softmax(np.where(scaled >= least, scaled, -np.inf))


def _choice_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[0.0, 1.0, 2.0]]), 1.0, 2)
    yield case(rng.standard_normal((3, 7)), 0.5, 3)
    yield case(rng.standard_normal((2, 5)), 2.0, 5)
    yield case(rng.standard_normal((2, 5)), 0.1, 1)
    yield case(900 * rng.standard_normal((3, 6)), 0.7, 4)  # exp of these is infinite, or 0


NEXT = Exercise("next_probabilities", next_probabilities, _choice_cases, chapter=63)


def cached_rows(prefixes: int, first: int, cached: bool) -> int:
    """Rows of keys computed while `prefixes` prefixes of first, first + 1, ... tokens are read."""
    return first + prefixes - 1 if cached else sum(range(first, first + prefixes))


def _row_cases(rng: np.random.Generator) -> Iterator[Case]:
    for prefixes, first in ((4, 2), (1, 5), (256, 1)):
        yield case(prefixes, first, False)
        yield case(prefixes, first, True)
    for n in range(8):
        yield case(*(int(size) for size in rng.integers(2, 40, 2)), n % 2 == 0)


ROWS = Exercise("cached_rows", cached_rows, _row_cases, chapter=63)


def best_beam(
    log_p: np.ndarray, start: int, steps: int, beams: int, end: int, alpha: float
) -> tuple[np.ndarray, float]:
    """The best sequence that ends, and its score; log_p[step, last, next] of a table."""
    alive: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[float, list[int]]] = []
    for table in log_p[:steps]:
        grown = [
            (total + more, [*tokens, token])
            for total, tokens in alive
            for token, more in enumerate(table[(tokens or [start])[-1]].tolist())
        ]
        best = sorted(grown, key=lambda pair: -pair[0])[: 2 * beams]
        ended += [(total / ((5 + len(t)) / 6) ** alpha, t) for total, t in best if t[-1] == end]
        alive = [pair for pair in best if pair[1][-1] != end][:beams]
    score, tokens = max(ended, key=lambda pair: pair[0])
    return np.array(tokens), score


def _beam_cases(rng: np.random.Generator) -> Iterator[Case]:
    p = np.array([[[0.1, 0.5, 0.4], [0.2, 0.4, 0.4], [0.9, 0.04, 0.06]]] * 2)
    yield case(np.log(p), 0, 2, 2, 0, 0.0)
    p[0] = [[0.5, 0.4, 0.1], [0.1, 0.4, 0.5], [0.34, 0.31, 0.35]]
    p[1, 1:] = [[0.9, 0.05, 0.05], [0.6, 0.3, 0.1]]
    for start, beams in ((0, 1), (1, 1), (2, 2)):  # one place fewer, or more, finds another
        yield case(np.log(p), start, 2, beams, 0, 3.0)
    for n in range(12):
        z = 1.5 * rng.standard_normal((6, 5, 5))
        z[-1, :, 0] += 9  # all end in the last step
        yield case(log_softmax(z), n % 5, 6, 1 + n % 3, 0, (0.0, 0.6, 3.0)[n // 4])
    z = rng.standard_normal((4, 5, 5))
    z[:, :, 3] += 2  # another end, and a table longer than the steps
    yield case(log_softmax(z), 1, 3, 2, 3, 1.0)


BEAM = Exercise("best_beam", best_beam, _beam_cases, chapter=63)


def speculative_accept(
    p: np.ndarray, q: np.ndarray, drafted: np.ndarray, u: np.ndarray
) -> tuple[int, np.ndarray]:
    """How many drafted tokens are accepted, and the distribution of the next one."""
    for n, x in enumerate(drafted.tolist()):
        if u[n] * q[n, x] >= p[n, x]:
            rest = np.maximum(p[n] - q[n], 0)
            return n, rest / rest.sum()
    return len(drafted), p[-1]


def _accept_cases(rng: np.random.Generator) -> Iterator[Case]:
    p, q = np.array([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3]]), np.array([[0.2, 0.4, 0.4]])
    for u in (0.4, 0.6):  # p/q of token 1 is one half
        yield case(p, q, np.array([1]), np.array([u]))
    for n in range(12):
        p, q = softmax(rng.standard_normal((5, 7))), softmax(rng.standard_normal((4, 7)))
        yield case(p, q, rng.integers(0, 7, 4), rng.random(4) ** (1 + n % 4))
    yield case(p, q, np.array([0, 1, 2, 3]), np.full(4, 1e-9))  # all accepted


ACCEPT = Exercise("speculative_accept", speculative_accept, _accept_cases, chapter=63)

# ---- chapter 61 ---------------------------------------------------------------------------------


def numerical_gradient(f: Callable, x: np.ndarray, h: float) -> np.ndarray:
    """Central differences: (f(x + h e_n) - f(x - h e_n)) / 2h for every entry of x."""
    moved = h * np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([(f(x + e) - f(x - e)) / (2 * h) for e in moved]).reshape(x.shape)


def _slope_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(of["cubes"], np.array([2.0]), 0.5)
    yield case(of["cubes"], rng.standard_normal((2, 3)), 1e-3)
    yield case(of["mixed"], rng.standard_normal((3, 2)), 1e-2)
    yield case(of["cubes"], rng.standard_normal((2, 1, 2)), 0.3)
    yield case(of["cubes"], np.array(1.5), 0.1)  # no axis


NUMERICAL = Exercise("numerical_gradient", numerical_gradient, _slope_cases, chapter=61)


def softmax_gradient(w: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Gradient with respect to the scores: w (g - sum_j g_j w_j), row by row."""
    return w * (g - np.vecdot(g, w)[..., None])


def _pull_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[0.25, 0.75]]), np.array([[1.0, 0.0]]))
    for dtype in DTYPES:
        for shape in ((2, 3, 5), (4, 4), (3,)):
            w = softmax(rng.standard_normal(shape).astype(dtype))
            yield case(w, rng.standard_normal(shape).astype(dtype))


PULL = Exercise("softmax_gradient", softmax_gradient, _pull_cases, chapter=61)


def adam_step(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    """One step of Adam for one array: new parameter and both moments; the first step is 1."""
    m = betas[0] * m + (1 - betas[0]) * g
    v = betas[1] * v + (1 - betas[1]) * g * g
    change = (m / (1 - betas[0] ** step)) / (np.sqrt(v / (1 - betas[1] ** step)) + eps)
    return p - learning_rate * change, m, v


def _adam_cases(rng: np.random.Generator) -> Iterator[Case]:
    zero = np.zeros(1)
    yield case(np.array([1.0]), np.array([0.5]), zero, zero, 1, 0.1)
    p, g, m, v = rng.standard_normal((4, 3, 2))
    yield case(p, g, m, v * v, 7)
    yield case(p, 1e-9 * g, 1e-9 * m, 1e-18 * v * v, 3, betas=(0.8, 0.9))
    yield case(*(part.astype(np.float32) for part in (p, g, m, v * v)), 5)
    for n in range(3):
        p, g, m = rng.standard_normal((3, 4, 3))
        options = {"learning_rate": 0.1 / (n + 1), "betas": (0.8, 0.99), "eps": 1e-3}
        yield case(p, g, m, rng.random((4, 3)), n + 2, **options)


ADAM = Exercise("adam_step", adam_step, _adam_cases, chapter=61)

EXERCISES = (
    LAYER_NORM,
    RMS_NORM,
    FEED_FORWARD,
    GELU,
    EMBED,
    BLOCK,
    CAUSAL,
    RIGHT,
    LOSS,
    WARMUP,
    COSINE,
    NEXT,
    ROWS,
    BEAM,
    ACCEPT,
    NUMERICAL,
    PULL,
    ADAM,
)
