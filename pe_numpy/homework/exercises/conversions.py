"""Exercises of conversions: weights, layouts, keys and biases of other codes (chapters 40, 65)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.homework.measured import adding, apart, random
from pe_numpy.models.rosetta import alibi_key_bias, convert_layout, join_fused, relative_gather
from pe_numpy.rotary.rope import rope_convert_weights

DTYPES = (np.float64, np.float32)


def _order(d: int, to: str) -> np.ndarray:
    """Indices of d components in the layout wanted."""
    split = np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)])
    return split if to == "half" else np.argsort(split)


def _other(to: str) -> str:
    return "interleaved" if to == "half" else "half"


# ---- rope_convert_weights -----------------------------------------------------------------------


def _weight_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 1, 2, 3, 10, 11, 12, 13]), 2)
    for dtype in DTYPES:
        for H, K, D in ((1, 6, 4), (3, 8, 5), (4, 8, 8)):
            weight = rng.standard_normal((H * K, D)).astype(dtype)
            yield case(weight, H)
            yield case(weight, H, to="interleaved")
    yield case(rng.standard_normal((24, 5)), 2, d=8)  # partial
    yield case(rng.standard_normal((24, 5)), 2, "interleaved", 6)
    yield case(rng.standard_normal(16), 2, d=6)  # a bias
    yield case(rng.standard_normal(16), 2, to="interleaved")


def _rows(order: Callable) -> Callable:
    """Rows that are reordered; `order` gives them from the heads, K, the layout and d."""

    def wrong(weight, n_heads, to="half", d=None):
        K = len(weight) // n_heads
        return weight[order(n_heads, K, to, K if d is None else d)]

    return wrong


def _by_head(H: int, K: int, order: np.ndarray) -> np.ndarray:
    within = np.arange(K)
    within[: len(order)] = order
    return (K * np.arange(H)[:, None] + within).ravel()


def _side_by_side(H: int, K: int, to: str, d: int) -> np.ndarray:
    """Row c H + h taken for component c of head h."""
    within = _by_head(1, K, _order(d, to))
    return (within[:, None] * H + np.arange(H)).ravel()


def _columns(weight, n_heads, to="half", d=None):
    if weight.ndim == 1 or weight.shape[1] % n_heads:
        return rope_convert_weights(weight, n_heads, to, d)
    return rope_convert_weights(weight.T, n_heads, to, d).T


WEIGHTS = Exercise(
    "rope_convert_weights",
    rope_convert_weights,
    _weight_cases,
    (
        Mistake(
            "all rows in one order, not head by head",
            "Each head has its own pairs: reorder its K rows among themselves.",
            40,
            _rows(lambda H, K, to, d: _by_head(1, H * K, _order(H * d, to))),
        ),
        Mistake(
            "to the other layout",
            "`to` is the layout wanted: half-split puts the even components first.",
            40,
            _rows(lambda H, K, to, d: _by_head(H, K, _order(d, _other(to)))),
        ),
        Mistake(
            "always to half",
            "to='interleaved' is the way back: the inverse order.",
            40,
            _rows(lambda H, K, to, d: _by_head(H, K, _order(d, "half"))),
        ),
        Mistake(
            "d ignored",
            "In partial RoPE the first d components of each head pair up; the others stay.",
            40,
            _rows(lambda H, K, to, d: _by_head(H, K, _order(K, to))),
        ),
        Mistake(
            "heads that are side by side",
            "The rows of a head follow one another: row h K + c is component c of head h.",
            40,
            _rows(_side_by_side),
        ),
        Mistake(
            "the columns",
            "k = W x: the rows make the components, the columns belong to x.",
            40,
            _columns,
        ),
    ),
    chapter=40,
)

# ---- convert_layout -----------------------------------------------------------------------------


def _layout_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 1, 2, 3, 4, 5]))
    yield case(np.array([0, 2, 4, 1, 3, 5]), to="interleaved")
    for dtype in DTYPES:
        for K in (6, 8):
            x = rng.standard_normal((2, 8, K)).astype(dtype)
            yield case(x)
            yield case(x, "interleaved")
        yield case(rng.standard_normal((3, 8)).astype(dtype), d=6)
        yield case(rng.standard_normal((3, 9)).astype(dtype), "interleaved", 8)
    yield case(rng.integers(0, 99, (2, 4)), "half", 4)


def _axis(order: Callable, axis: int = -1) -> Callable:
    """Components that are reordered; `order` gives them from K, the layout and d."""

    def wrong(x, to="half", d=None):
        K = x.shape[axis]
        return np.take(x, order(K, to, K if d is None else d), axis=axis)

    return wrong


LAYOUT = Exercise(
    "convert_layout",
    convert_layout,
    _layout_cases,
    (
        Mistake(
            "to the other layout",
            "`to` is the layout wanted: half-split has all even components first.",
            65,
            _axis(lambda K, to, d: _by_head(1, K, _order(d, _other(to)))),
        ),
        Mistake(
            "always to half",
            "to='interleaved' is the way back: the inverse order.",
            65,
            _axis(lambda K, to, d: _by_head(1, K, _order(d, "half"))),
        ),
        Mistake(
            "always to interleaved",
            "to='half' puts the even components first, then the odd ones.",
            65,
            _axis(lambda K, to, d: _by_head(1, K, _order(d, "interleaved"))),
        ),
        Mistake(
            "d ignored",
            "The first d components pair up; the others stay where they are.",
            65,
            _axis(lambda K, to, d: _by_head(1, K - K % 2, _order(K - K % 2, to))),
        ),
        Mistake(
            "the last d for the first d",
            "The components that pair up come first.",
            65,
            _axis(
                lambda K, to, d: np.concatenate([np.arange(K - d), K - d + _order(d, to)]),
            ),
        ),
        Mistake(
            "odd components first",
            "The even ones first: component 2c goes to c, and 2c + 1 to c + d/2.",
            65,
            _axis(
                lambda K, to, d: _by_head(
                    1,
                    K,
                    np.roll(_order(d, to), d // 2)
                    if to == "half"
                    else np.roll(_order(d, to).reshape(-1, 2), 1, axis=1).ravel(),
                )
            ),
        ),
    ),
    chapter=65,
)

# ---- relative_gather ----------------------------------------------------------------------------


def _gather_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(
        np.array([[12.0, 11.0, 10.0], [22.0, 21.0, 20.0], [32.0, 31.0, 30.0]]),
        np.array([[0, 0], [1, 0], [2, 1]]),
    )
    past = np.tril(np.arange(5)[:, None] - np.arange(5))  # the future reads the query's own
    for dtype in DTYPES:
        yield case(rng.standard_normal((2, 3, 5, 5)).astype(dtype), past)
        yield case(rng.standard_normal((3, 5, 9)).astype(dtype), past - past.T, 4)  # both ways
        places = np.sort(rng.integers(0, 6, (2, 1, 7)), axis=-1)  # packed: of its own in each row
        apart_ = places[..., 2:, None] - places[..., None, :]
        yield case(rng.standard_normal((2, 4, 5, 13)).astype(dtype), apart_, 6)
        yield case(rng.standard_normal((2, 4, 5, 20)).astype(dtype), apart_, largest=9)
    yield case(rng.standard_normal((1, 8)), np.array([[7, 6, 5, 0, 1]]))  # a cache
    yield case(rng.standard_normal((4, 6)), rng.integers(-3, 3, (4, 2)), 2)
    yield case(rng.standard_normal((2, 3, 4)), rng.integers(0, 4, (3, 6)))


def _gather(column: Callable, products: Callable = lambda p: p) -> Callable:
    """Columns that are looked up; `column` gives them from distance, largest and N."""

    def wrong(products_, distance, largest=None):
        N = products_.shape[-1]
        at = column(np.asarray(distance), N - 1 if largest is None else largest, N) % N
        batch = np.broadcast_shapes(products_.shape[:-2], at.shape[:-2])
        values = np.broadcast_to(products(products_), (*batch, *products_.shape[-2:]))
        return np.take_along_axis(values, np.broadcast_to(at, (*batch, *at.shape[-2:])), axis=-1)

    return wrong


GATHER = Exercise(
    "relative_gather",
    relative_gather,
    _gather_cases,
    (
        Mistake(
            "the distance for the column",
            "Column 0 is the largest distance: read column largest - distance.",
            65,
            _gather(lambda d, largest, N: d),
        ),
        Mistake(
            "the smallest distance first",
            "Column c belongs to the distance largest - c, so the columns count downwards.",
            65,
            _gather(lambda d, largest, N: largest + d),
        ),
        Mistake(
            "largest ignored",
            "Column 0 is the distance `largest`; N - 1 is its default alone.",
            65,
            _gather(lambda d, largest, N: N - 1 - d),
        ),
        Mistake(
            "no sign",
            "The past and the future have columns of their own: keep the distance's sign.",
            65,
            _gather(lambda d, largest, N: largest - np.abs(d)),
        ),
        Mistake(
            "one column too far",
            "The distance `largest` itself stands in column 0.",
            65,
            _gather(lambda d, largest, N: largest - d - 1),
        ),
        Mistake(
            "the first query's products for all",
            "Entry [i, j] comes from row i of the products: each query has its own.",
            65,
            _gather(
                lambda d, largest, N: largest - d,
                lambda p: np.repeat(p[..., :1, :], p.shape[-2], axis=-2),
            ),
        ),
    ),
    chapter=65,
    scores=lambda f: lambda q, k, i, j: f(q @ random(33, 8).T, np.clip(apart(i, j), -16, 16), 16),
)

# ---- alibi_key_bias -----------------------------------------------------------------------------


def _key_bias_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0.5, 0.25]), np.array([0, 1, 2]))
    for dtype in DTYPES:
        for H, S in ((1, 5), (3, 7), (8, 4)):
            yield case(rng.random(H).astype(dtype), np.arange(S))
        start = int(rng.integers(3, 99))
        yield case(rng.random(3).astype(dtype), np.arange(start, start + 5))
        yield case(rng.random(4).astype(dtype), rng.integers(0, 50, (2, 6)))  # each row its own
    yield case(rng.random(2), np.array([[7]]))
    yield case(rng.random(2), np.array([-3, -2, -1, 0]))  # so that the last key has 0
    yield case(rng.random(3), rng.integers(0, 9, (3, 3)))


ALIBI = Exercise(
    "alibi_key_bias",
    alibi_key_bias,
    _key_bias_cases,
    (
        Mistake(
            "far keys preferred",
            "Later keys are nearer to the query: slope j grows with the position, without a minus.",
            65,
            lambda slopes, k_positions: -alibi_key_bias(slopes, k_positions),
        ),
        Mistake(
            "places counted from 0",
            "Use the positions that are given; padding and a cache begin elsewhere.",
            65,
            lambda slopes, k_positions: alibi_key_bias(
                slopes, np.broadcast_to(np.arange(k_positions.shape[-1]), k_positions.shape)
            ),
        ),
        Mistake(
            "the last key at 0",
            "That is MPT's way to count. The weights are the same, but here the positions hold as "
            "they are given.",
            65,
            lambda slopes, k_positions: alibi_key_bias(slopes, k_positions - k_positions[..., -1:]),
        ),
        Mistake(
            "the first row's positions for all",
            "Positions (B, S) are each row's own: the result has the axes (B, H, 1, S).",
            65,
            lambda slopes, k_positions: alibi_key_bias(
                slopes,
                np.broadcast_to(
                    k_positions.reshape(-1, k_positions.shape[-1])[0], k_positions.shape
                ),
            ),
        ),
        Mistake(
            "one slope for all heads",
            "Each head has a slope of its own.",
            65,
            lambda slopes, k_positions: alibi_key_bias(slopes[:1] + 0 * slopes, k_positions),
        ),
        Mistake(
            "no axis of queries",
            "The axes are (H, 1, S), the same for every query, so that it adds to (H, L, S).",
            65,
            lambda slopes, k_positions: alibi_key_bias(slopes, k_positions)[..., 0, :],
        ),
        Mistake(
            "distances of all pairs",
            "Without queries there is one row: slope j, whatever the query.",
            35,
            lambda slopes, k_positions: (
                -slopes[:, None, None]
                * (k_positions[..., None, :, None] - k_positions[..., None, None, :]).astype(
                    slopes.dtype
                )
            ),
        ),
    ),
    chapter=65,
    scores=lambda f: adding(lambda i, j: f(np.array([0.5]), j)),
)

# ---- join_fused ---------------------------------------------------------------------------------


def _fused_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(*np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]), "H3K", 2)

    def three(*batch, H=3, G=3, K=4, dtype=np.float64):
        return (rng.standard_normal((*batch, n * K)).astype(dtype) for n in (H, G, G))

    for dtype in DTYPES:
        for order in ("q|k|v", "3HK", "H3K"):
            yield case(*three(2, 5, dtype=dtype), order, 3)
            yield case(*three(6, H=2, G=2, K=3, dtype=dtype), order, n_heads=2)
        yield case(*three(5, H=4, G=2, dtype=dtype), "q|k|v", 4, 2)
        yield case(*three(2, 3, H=4, G=1, dtype=dtype), "q|k|v", n_heads=4, n_kv_heads=1)
    yield case(*three(H=4, G=4), "H3K", 4, n_kv_heads=4)  # a bias


def _fuse(by_head: Callable, whole: Callable = lambda q, k, v: (q, k, v)) -> Callable:
    """Projections side by side, with one part of it replaced."""

    def wrong(q, k, v, order, n_heads, n_kv_heads=None):
        if order != "H3K":
            return np.concatenate(whole(q, k, v), axis=-1)
        parts = [x.reshape(*x.shape[:-1], n_heads, -1) for x in (q, k, v)]
        return by_head(parts).reshape(*q.shape[:-1], -1)

    return wrong


def _heads_first(parts):
    return np.stack(parts, axis=-2)  # (..., H, 3, K)


def _exchanged(q, k, v, order, n_heads, n_kv_heads=None):
    order = {"H3K": "3HK", "3HK": "H3K"}.get(order, order)
    return join_fused(q, k, v, order, n_heads, n_kv_heads)


def _repeated(q, k, v, order, n_heads, n_kv_heads=None):
    times = n_heads // (n_kv_heads or n_heads)
    heads = [x.reshape(*x.shape[:-1], -1, q.shape[-1] // n_heads) for x in (k, v)]
    k, v = (np.repeat(x, times, axis=-2).reshape(q.shape) for x in heads)
    return join_fused(q, k, v, order, n_heads)


FUSED = Exercise(
    "join_fused",
    join_fused,
    _fused_cases,
    (
        Mistake(
            "side by side, always",
            "In H3K a head has its query, key and value together: q of head 0, k, v; then head 1.",
            65,
            _fuse(lambda parts: np.stack(parts, axis=-3)),
        ),
        Mistake(
            "number by number",
            "In H3K the K numbers of a head's query stand together, then those of its key.",
            65,
            _fuse(lambda parts: np.stack(parts, axis=-1)),
        ),
        Mistake(
            "the orders exchanged",
            "H3K has the heads outside, three parts in each; 3HK the parts outside.",
            65,
            _exchanged,
        ),
        Mistake(
            "keys before queries",
            "The order is query, key, value.",
            65,
            _fuse(
                lambda parts: _heads_first([parts[n] for n in (1, 0, 2)]), lambda q, k, v: (k, q, v)
            ),
        ),
        Mistake(
            "values before keys",
            "The order is query, key, value.",
            65,
            _fuse(
                lambda parts: _heads_first([parts[n] for n in (0, 2, 1)]), lambda q, k, v: (q, v, k)
            ),
        ),
        Mistake(
            "keys and values repeated for each query head",
            "G heads of keys and of values go in as they are; what uses them repeats them.",
            65,
            _repeated,
        ),
    ),
    chapter=65,
)

EXERCISES = (WEIGHTS, LAYOUT, GATHER, ALIBI, FUSED)
