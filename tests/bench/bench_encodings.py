"""Time and memory of pe_numpy beside PyTorch, and how both grow with the length: `make bench`.

Each scheme below is a function of the length L that makes the inputs and returns two functions
without arguments: ours, and what stands beside it. Both have one thread. Their results are compared
before any clock runs: a difference fails. A goal on time or memory that is missed fails nothing; it
is reported.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import documents
import numpy as np
import pytest
import torch
from measure import (
    Measured,
    Scheme,
    Side,
    alternate,
    first,
    largest_difference,
    numpy_peak,
    torch_peak,
)
from parts import parts, times
from report import RESULTS, report

import pe_numpy as pe
from pe_numpy.rotary.rope import turn_half, turn_interleaved
from pe_numpy.transformer.encodings import SelfExtend

assert os.environ.get("OPENBLAS_NUM_THREADS") == "1", "NumPy must have one thread: make bench"
assert os.environ.get("THP_MEM_ALLOC_ENABLE") == "1", "PyTorch must ask for huge pages: make bench"
torch.set_num_threads(1)
torch.set_grad_enabled(False)

B, H, K = 2, 8, 64
SIZES = (256, 512, 1024, 2048, 4096)
FEW = (256, 1024, 2048)
GIGABYTES = 6  # a PyTorch form that needs more is left out
SECONDS = float(os.environ.get("BENCH_SECONDS", 0.4))  # for the rounds of one line; 3 x at its goal
COPY = "x.copy()"  # the one comparison without PyTorch

SCHEMES: list[Scheme] = []
MEASURED: dict[tuple[Scheme, int], Measured] = {}


def scheme(
    name: str,
    beside: str = "the documents' form",
    goal: float | None = None,
    memory_goal: Callable[[int], float | None] = lambda result: None,
    memory_words: str = "",
    at: int = 1024,
    sizes: tuple[int, ...] = SIZES,
    need: Callable[[int], float] = lambda L: 0,
    tolerance: Callable[[int], float] = lambda L: 1e-4,
) -> Callable[[Callable], Callable]:
    """Put a function of L on the list."""

    def register(make: Callable[[int], tuple[Side, Side]]) -> Callable:
        SCHEMES.append(
            Scheme(name, beside, make, goal, memory_goal, memory_words, at, sizes, need, tolerance)
        )
        return make

    return register


def no_gather(result: int) -> float:
    """Scores and a block of one term beside them, but no vector for each pair."""
    return 1.5 * result


def float32_angles(L: int) -> float:
    """Tolerance for PyTorch's angles in float32, which near L are off by up to L / 2^24."""
    return 1e-4 + 2e-7 * L


def normal(*shape: int) -> np.ndarray:
    """Normally distributed float32 numbers, the same on every run."""
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    """Give the same numbers to PyTorch."""
    return [torch.from_numpy(a) for a in arrays]


def unit_numbers(L: int) -> np.ndarray:
    """Complex e^(i m theta), as the functions that turn want them: (L, K/2)."""
    return np.exp(1j * np.outer(np.arange(L), pe.rope_frequencies(K))).astype(np.complex64)


# The token vector


@scheme(
    "sinusoidal, D = 512",
    goal=1.0,
    memory_goal=lambda result: 1.2 * result,
    memory_words="1.2 results",
    tolerance=float32_angles,
)
def sinusoidal(L):
    positions = np.arange(L)
    return lambda: pe.sinusoidal(positions, 512), lambda: documents.sinusoidal(L, 512)


# Queries and keys


@scheme(
    "RoPE interleaved, tables built", "LLaMA's complex form", goal=1.5, tolerance=float32_angles
)
def rope_interleaved(L):
    x, positions = normal(B, H, L, K), np.arange(L)
    t = torch.from_numpy(x)
    return (
        lambda: pe.rope(x, positions),
        lambda: documents.complex_rope(t, documents.rope_unit_numbers(L, K)),
    )


@scheme(
    "RoPE interleaved, tables given", "LLaMA's complex form", goal=1.5, tolerance=float32_angles
)
def rope_interleaved_given(L):
    x = normal(B, H, L, K)
    t, units = torch.from_numpy(x), documents.rope_unit_numbers(L, K)
    ours = unit_numbers(L)
    return lambda: turn_interleaved(x, ours), lambda: documents.complex_rope(t, units)


@scheme("RoPE half-split, tables built", goal=1.5, tolerance=float32_angles)
def rope_half(L):
    x, positions = normal(B, H, L, K), np.arange(L)
    t = torch.from_numpy(x)
    return (
        lambda: pe.rope(x, positions, layout="half"),
        lambda: documents.HalfSplitRope(L, K)(t),
    )


@scheme("RoPE half-split, tables given", goal=1.0, tolerance=float32_angles)
def rope_half_given(L):
    x = normal(B, H, L, K)
    t, turn = torch.from_numpy(x), documents.HalfSplitRope(L, K)
    ours = unit_numbers(L)
    return lambda: turn_half(x, ours), lambda: turn(t)


@scheme("RoPE interleaved, rotation alone", COPY, goal=2, sizes=(1024,))
def rope_rotation_and_copy(L):
    x = normal(B, H, L, K)
    ours = unit_numbers(L)
    return lambda: turn_interleaved(x, ours), lambda: x.copy()


@scheme("RoPE interleaved, all of it", COPY, goal=10, sizes=(1024,))
def rope_and_copy(L):
    x, positions = normal(B, H, L, K), np.arange(L)
    return lambda: pe.rope(x, positions), lambda: x.copy()


# The score of a pair. PyTorch's (L, L, K) or (H, L, L, K) decides what it needs.


@scheme(
    "Shaw, scores",
    goal=0.4,
    memory_goal=no_gather,
    memory_words="1.5 results",
    need=lambda L: 4 * L**2 * (K + 3 * B * H),
)
def shaw(L):
    (q, k, _), vectors, positions = normal(3, B, H, L, K), normal(2 * L - 1, K), np.arange(L)
    t = tensors(q, k, vectors)
    return (
        lambda: pe.shaw_scores(q, k, vectors, pe.relative_distance(positions, positions)),
        lambda: documents.shaw_scores(*t),
    )


@scheme("Shaw, scores", "an expert's gather", sizes=SIZES[:-1])
def shaw_and_gather(L):
    ours, _ = shaw(L)
    (q, k, _), vectors = normal(3, B, H, L, K), normal(2 * L - 1, K)
    t = tensors(q, k, vectors)
    return ours, lambda: documents.gathered_scores(*t)


@scheme(
    "Transformer-XL, scores",
    goal=0.35,
    memory_goal=no_gather,
    memory_words="1.5 results",
    need=lambda L: 4 * L**2 * H * (K + 3 * B),
)
def transformer_xl(L):
    (q, k, _), r, u, v = normal(3, B, H, L, K), normal(H, 2 * L - 1, K), *normal(2, H, K)
    positions = np.arange(L)
    t = tensors(q, k, r, u, v)
    return (
        lambda: pe.transformer_xl_scores(q, k, r, u, v, pe.relative_distance(positions, positions)),
        lambda: documents.transformer_xl_scores(*t),
    )


@scheme(
    "DeBERTa, scores",
    goal=0.35,
    memory_goal=no_gather,
    memory_words="1.5 results",
    need=lambda L: 4 * L**2 * H * (K + 4 * B),
)
def deberta(L):
    (q, k, _), (q_table, k_table) = normal(3, B, H, L, K), normal(2, H, 2 * 256, K)
    positions = np.arange(L)
    t = tensors(q, k, q_table, k_table)
    return (
        lambda: pe.deberta_scores(
            q, k, q_table, k_table, pe.relative_distance(positions, positions)
        ),
        lambda: documents.deberta_scores(*t),
    )


def t5_tables():
    """The same biases in our order and in the documents' order (the past in the upper half)."""
    ours = normal(32, H)
    return ours, torch.from_numpy(np.roll(ours, 16, axis=0))


@scheme("T5, bias", goal=0.02, at=2048)
def t5(L):
    (ours, theirs), positions = t5_tables(), np.arange(L)
    return (
        lambda: pe.t5_bias(ours, pe.relative_distance(positions, positions)),
        lambda: documents.t5_bias(theirs, L),
    )


@scheme("T5, bias added to scores", at=2048, sizes=SIZES[:-1])
def t5_added(L):
    bias, their_bias = t5(L)
    scores = normal(B, H, L, L)
    t = torch.from_numpy(scores)
    return lambda: scores + bias(), lambda: t + their_bias()


@scheme("ALiBi, bias", goal=0.02, at=2048)
def alibi(L):
    positions = np.arange(L)
    return (
        lambda: pe.alibi_bias(
            pe.alibi_slopes(H).astype(np.float32), pe.relative_distance(positions, positions)
        ),
        lambda: documents.ALiBi(H, L).bias(),
    )


@scheme("ALiBi, bias added to scores", at=2048, sizes=SIZES[:-1])
def alibi_added(L):
    bias, _ = alibi(L)
    scores = normal(B, H, L, L)
    t = torch.from_numpy(scores)
    return lambda: scores + bias(), lambda: documents.ALiBi(H, L)(t)


# Schemes whose released code is measured, at fewer lengths


@scheme(
    "BERT's relative_key_query, scores",
    "the released form",
    memory_goal=no_gather,
    memory_words="1.5 results",
    sizes=FEW,
    need=lambda L: 4 * L**2 * (K + 4 * B * H),
)
def relative_key_query(L):
    (q, k, _), vectors, positions = normal(3, B, H, L, K), normal(2 * L - 1, K), np.arange(L)
    t = tensors(q, k, vectors)
    return (
        lambda: pe.relative_key_query_scores(
            q, k, vectors, pe.relative_distance(positions, positions)
        ),
        lambda: documents.relative_key_query_scores(*t),
    )


@scheme("KERPLE log, bias", "the released form", at=2048, sizes=FEW)
def kerple(L):
    p, a, positions = *np.abs(normal(2, H)), np.arange(L)
    t = tensors(p, a)
    return (
        lambda: pe.kerple_log_bias(p, a, pe.relative_distance(positions, positions)),
        lambda: documents.kerple_log_bias(*t, L),
    )


def float32_cosines(L: int) -> float:
    """Tolerance for a sum of 64 cosines whose angles are rounded to float32."""
    return 1e-3 + 1e-6 * L


@scheme(
    "Sandwich, bias",
    "the released form",
    sizes=FEW,
    need=lambda L: 4 * L**2 * 2 * 64,
    tolerance=float32_cosines,
)
def sandwich(L):
    positions = np.arange(L)
    return (
        lambda: pe.sandwich_bias(H, pe.relative_distance(positions, positions)),
        lambda: documents.sandwich_bias(H, L),
    )


def fire_sides(L: int, trained: float) -> tuple[Side, Side]:
    """Both sides of FIRE, whose rows differ from `trained` on."""
    shapes = {"W1": (1, 32), "b1": (32,), "W2": (32, H), "b2": (H,)}
    params = {name: normal(*shape) for name, shape in shapes.items()}
    params |= {"c": np.float32(0.1), "L": np.float32(trained)}
    t, positions = {name: torch.tensor(a) for name, a in params.items()}, np.arange(L)
    return lambda: pe.fire_bias(params, positions, positions), lambda: documents.fire_bias(t, L)


@scheme("FIRE, bias, up to its length", "the released form", sizes=FEW)
def fire(L):
    return fire_sides(L, trained=L)


@scheme("FIRE, bias, beyond 128", "the released form", sizes=FEW)
def fire_beyond(L):
    return fire_sides(L, trained=128)


@scheme("FoX, causal attention by fold, in blocks", "the released form", sizes=FEW)
def forgetting(L):
    q, k, v = normal(3, B, H, L, K)
    gates = -np.log1p(np.exp(-5 - normal(B, H, L)))  # ln sigmoid of N(5, 1)
    sums = np.cumsum(gates, axis=-1)
    t = tensors(q, k, v, sums)

    def folded():
        c, one = sums[..., None], np.ones((B, H, L, 1), np.float32)
        scale = math.sqrt(K + 2)  # attention will divide by it
        wide_q = np.concatenate([q * (scale / math.sqrt(K)), scale * one, scale * c], axis=-1)
        wide_k = np.concatenate([k, -c, one], axis=-1)
        return pe.attention_blockwise(wide_q, wide_k, v, causal=True)

    return folded, lambda: documents.forgetting_attention(*t)


@scheme("CoPE, scores", "the released form", goal=1.0, sizes=FEW[:-1], tolerance=lambda L: 5e-3)
def cope(L):
    (q, k, _), table, positions = normal(3, B, H, L, K), normal(64, K), np.arange(L)
    mask = pe.causal_mask(positions, positions)
    t = tensors(q, k, table)

    def ours():
        scores = (q * (1 / math.sqrt(K))) @ np.swapaxes(k, -1, -2)
        return scores + pe.cope_bias(q, scores, table, mask)

    return ours, lambda: documents.cope_scores(*t)


@scheme("Swin, bias of a square window", "the released form", sizes=(256, 1024, 4096))
def swin(L):
    side = math.isqrt(L)
    table, theirs = normal((2 * side - 1) ** 2, H), documents.Swin(side)
    t = torch.from_numpy(table)
    return lambda: pe.offset_bias(table, side, side), lambda: theirs.bias(t)


@scheme(
    "SAM, scores of a square grid",
    "the released form",
    memory_goal=no_gather,
    memory_words="1.5 results",
    sizes=(256, 1024),
)
def sam(L):
    side = math.isqrt(L)
    (q, k, _), (rows, columns) = normal(3, B, H, L, K), normal(2, 2 * side - 1, K)
    t, at = tensors(q, k, rows, columns), np.arange(side)
    distance = pe.relative_distance(at, at)
    return (
        lambda: pe.decomposed_scores(q, k, rows, columns, distance, distance),
        lambda: documents.sam_scores(*t),
    )


@scheme(
    "axial RoPE, a square grid",
    "the released form",
    goal=1.0,
    sizes=(256, 1024, 4096),
    tolerance=float32_angles,
)
def axial(L):
    side, x = math.isqrt(L), normal(B, H, L, K)
    t, omega, cells = torch.from_numpy(x), pe.axial_frequencies(K), pe.patch_coordinates(side, side)
    return (
        lambda: pe.rope_nd(x, cells, omega),
        lambda: documents.complex_rope(t, documents.axial_unit_numbers(side, K)),
    )


@scheme("M-RoPE, half-split", "the released form", sizes=FEW, tolerance=float32_angles)
def mrope(L):
    x, sections, text = normal(B, H, L, K), (8, 12, 12), np.arange(L // 2)
    side = math.isqrt(L // 2)
    picture = np.stack([np.zeros(L - L // 2), *np.divmod(np.arange(L - L // 2), side)]) + L // 2
    coordinates = np.concatenate([np.stack([text] * 3), picture], axis=1)  # (3, L)
    omega, theirs = pe.mrope_frequencies(sections), documents.MRope(sections)
    t, at = tensors(x, coordinates)
    return lambda: pe.rope_nd(x, coordinates.T, omega, "half"), lambda: theirs(t, at)


@scheme("xPos, queries", "the released form", sizes=FEW, tolerance=float32_angles)
def xpos(L):
    x, positions = normal(B, H, L, K), np.arange(L)
    t = torch.from_numpy(x)
    return lambda: pe.xpos(x, positions), lambda: documents.xpos(t)


@scheme("PoPE, scores", "the released form", sizes=FEW, tolerance=float32_angles)
def pope(L):
    (q, k), positions = normal(2, B, H, L, K), np.arange(L)
    t = tensors(q, k)

    def ours():
        wide = pe.pope(q, positions), pe.pope(k, positions)
        return (wide[0] * (1 / math.sqrt(K))) @ np.swapaxes(wide[1], -1, -2)

    return ours, lambda: documents.pope_scores(*t)


@scheme("Self-Extend, scores", "the released form", goal=1.0, sizes=FEW, tolerance=float32_angles)
def self_extend(L):
    (q, k), positions = normal(2, B, H, L, K), np.arange(L)
    (t, s), encoding = tensors(q, k), SelfExtend(window=128, group=4)
    mask = pe.causal_mask(positions, positions)

    def ours():
        return np.where(mask, encoding.scores({}, q, k, pe.Context(positions, mask=mask)), 0)

    def theirs():
        return documents.self_extend_scores(t, s, 128, 4).tril()

    return ours, theirs


@scheme("MLA, scores of one query", "keys made", sizes=FEW, tolerance=float32_angles)
def mla(L):
    d_n, d_r, r = K, K // 2, 8 * K
    q_content, q_rotary = normal(B, H, 1, d_n), normal(B, H, 1, d_r)
    c, k_rotary, w = normal(B, L, r), normal(B, L, d_r), normal(H, d_n, r) * np.float32(r**-0.5)
    t, positions = tensors(q_content, q_rotary, c, k_rotary, w), np.arange(L)
    ours = (q_content, q_rotary, c, k_rotary, w, positions[-1:], positions)
    return lambda: pe.mla_scores(*ours), lambda: documents.mla_scores(*t)


# Attention itself


@scheme("attention", "softmax(q k^T) v, unfused", goal=1.0)
def attention(L):
    q, k, v = normal(3, B, H, L, K)
    t = tensors(q, k, v)
    return lambda: pe.attention(q, k, v), lambda: documents.attention(*t)


@scheme("attention_blockwise", "fused attention", goal=1.3)
def blockwise(L):
    q, k, v = normal(3, B, H, L, K)
    t = tensors(q, k, v)
    return (
        lambda: pe.attention_blockwise(q, k, v),
        lambda: torch.nn.functional.scaled_dot_product_attention(*t),
    )


@scheme(
    "attention_blockwise, one head",
    "fused attention",
    goal=3,
    at=16384,
    sizes=(16384,),
    memory_goal=lambda result: 64e6 + result,
    memory_words="64 MB + result",
)
def blockwise_long(L):
    q, k, v = normal(3, 1, 1, L, K)
    t = tensors(q, k, v)
    return (
        lambda: pe.attention_blockwise(q, k, v),
        lambda: torch.nn.functional.scaled_dot_product_attention(*t),
    )


CASES = [(s, L) for s in SCHEMES for L in s.sizes]


@pytest.mark.parametrize(("s", "L"), CASES, ids=[f"{s.name}; {s.beside}; {L}" for s, L in CASES])
def test_both_sides_agree_and_are_measured(s, L, benchmark):
    ours, theirs = s.make(L)
    result, our_peak, seconds = numpy_peak(ours)
    size, their_peak = first(result).nbytes, math.nan
    if s.need(L) > GIGABYTES * 1e9:
        theirs = None
    else:
        other, their_peak, more = (numpy_peak if s.beside == COPY else torch_peak)(theirs)
        assert s.beside == COPY or largest_difference(result, other) <= s.tolerance(L)
        seconds += more
        del other
    del result  # before the clock runs
    budget = SECONDS * (3 if L == s.at else 1)
    rounds = min(max(2 if L > s.at else 3, int(budget / seconds)), 300)
    times = alternate(benchmark, ours, theirs, rounds)
    MEASURED[s, L] = Measured(*times, our_peak, their_peak, size)


def test_the_tables_are_written(capsys):
    lines = parts(normal, B, H, 1024, K) if MEASURED else []
    text = report(SCHEMES, MEASURED, list(zip(lines, times(lines), strict=True)))
    with capsys.disabled():
        print(f"\n\n{text}")
    if len(MEASURED) == len(CASES):
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(f"{text}\n", encoding="utf-8")
