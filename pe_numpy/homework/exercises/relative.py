"""Exercises of places 3 and 4: the score of a pair and the weighted sum (chapters 30 to 35)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.absolute.sinusoidal import sinusoidal
from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.homework.measured import adding, apart, random
from pe_numpy.relative.alibi import alibi_bias, alibi_slopes
from pe_numpy.relative.deberta import deberta_bucket, deberta_scores
from pe_numpy.relative.distance import relative_distance
from pe_numpy.relative.expansion import four_terms
from pe_numpy.relative.shaw import (
    nezha_table,
    relative_key_query_scores,
    shaw_scores,
    shaw_values,
)
from pe_numpy.relative.t5 import t5_bias, t5_bucket
from pe_numpy.relative.transformer_xl import relative_shift, transformer_xl_scores
from pe_numpy.relative.tupe import tupe_scores

DTYPES = (np.float64, np.float32)


def _distances() -> Iterator[np.ndarray]:
    """All pairs of a sentence; new queries with a cache; one far query; keys ahead."""
    for q, k in (
        (range(4), range(4)),
        (range(3, 6), range(6)),
        ([90], range(7)),
        ([0, 1], [50, 9]),
    ):
        yield np.array(q)[:, None] - np.array(k)


# ---- chapter 30 ----------------------------------------------------------------------------------


def _distance_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0, 1, 2]), np.array([0, 1, 2]))
    yield case(np.array([5, 6]), np.arange(7))  # a cache
    yield case(np.array([[0, 1], [3, 9]]), np.array([[0, 1, 2], [2, 4, 8]]))  # two sentences
    yield case(np.array([4]), np.array([100]))
    for n in range(8):
        q, k = (
            rng.integers(0, 50, (3, 1, n + 1)[n % 3 :]),
            rng.integers(0, 50, (2, n % 4 + 2)[n % 2 :]),
        )
        yield case(q, k)


DISTANCE = Exercise(
    "relative_distance",
    relative_distance,
    _distance_cases,
    (
        Mistake(
            "key minus query",
            "A distance is query minus key: the past is positive.",
            30,
            lambda q, k: -relative_distance(q, k),
        ),
        Mistake(
            "without its sign",
            "Keep the sign: it tells the past from the future.",
            30,
            lambda q, k: np.abs(relative_distance(q, k)),
        ),
        Mistake(
            "keys down, queries across",
            "The rows are queries: (L, S).",
            30,
            lambda q, k: np.swapaxes(relative_distance(q, k), -1, -2),
        ),
        Mistake(
            "positions counted from 0 whatever was given",
            "With a cache the queries do not begin at 0: use the positions.",
            63,
            lambda q, k: np.broadcast_to(
                np.arange(q.shape[-1])[:, None] - np.arange(k.shape[-1]),
                (*q.shape[:-1], q.shape[-1], k.shape[-1]),
            ),
        ),
    ),
    chapter=30,
    further=(
        Mistake(
            "places for positions, without batch axes",
            "Use the positions: with padding or a cache they are not the places in the array.",
            63,
            lambda q, k: np.arange(q.shape[-1])[:, None] - np.arange(k.shape[-1]),
        ),
        Mistake(
            "every sequence with every other",
            "Batch axes stand beside each other: q[..., :, None] - k[..., None, :].",
            30,
            lambda q, k: np.subtract.outer(q, k),
        ),
    ),
)


def _terms_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0], [0.0, 2.0]]), np.eye(2), np.eye(2), np.diag([1.0, 3.0]))
    for dtype in DTYPES:
        x, p = rng.standard_normal((2, 3, 5, 4)).astype(dtype)
        w_q, w_k = rng.standard_normal((2, 4, 9)).astype(dtype)
        yield case(x, p[0], w_q, w_k)


def _terms(order=(0, 1, 2, 3), factor=lambda K: 1.0):
    def terms(x, p, w_q, w_k):
        found = four_terms(x, p, w_q, w_k)
        return tuple(found[n] * x.dtype.type(factor(w_q.shape[1])) for n in order)

    return terms


TERMS = Exercise(
    "four_terms",
    four_terms,
    _terms_cases,
    (
        Mistake(
            "the two mixed terms exchanged",
            "Content-position comes first: the query's content with the key's position.",
            30,
            _terms((0, 2, 1, 3)),
        ),
        Mistake("not scaled", "Divide by the root of K.", 30, _terms(factor=math.sqrt)),
        Mistake(
            "scaled by K for its root",
            "Divide by the root of K, the width of queries and keys.",
            30,
            _terms(factor=lambda K: 1 / math.sqrt(K)),
        ),
        Mistake(
            "scaled by the root of D",
            "Divide by the root of K, the width after the projection.",
            30,
            lambda x, p, w_q, w_k: tuple(
                t * x.dtype.type(math.sqrt(w_q.shape[1] / x.shape[-1]))
                for t in four_terms(x, p, w_q, w_k)
            ),
        ),
        Mistake(
            "one projection for both",
            "Queries are made with W_q, keys with W_k.",
            30,
            lambda x, p, w_q, w_k: four_terms(x, p, w_q, w_q),
        ),
    ),
    chapter=30,
)

# ---- chapter 31 ----------------------------------------------------------------------------------


def _shaw_cases(rng: np.random.Generator) -> Iterator[Case]:
    two = np.array([0, 1])[:, None] - np.array([0, 1])
    yield case(np.ones((2, 1)), np.ones((2, 1)), np.array([[10.0], [0.0], [20.0]]), two)
    for dtype in DTYPES:
        for distance in _distances():
            q = rng.standard_normal((2, 3, distance.shape[0], 8)).astype(dtype)
            k = rng.standard_normal((2, 3, distance.shape[1], 8)).astype(dtype)
            yield case(q, k, rng.standard_normal((5, 8)).astype(dtype), distance)


def _content(q, k):
    return (q * q.dtype.type(q.shape[-1] ** -0.5)) @ np.swapaxes(k, -1, -2)


def _gathered(rows, of_key=False):
    """Shaw's scores with other rows of the table, or the key's product with them."""

    def scores(q, k, key_table, distance):
        m = key_table.shape[-2] // 2
        r = key_table[..., rows(np.clip(distance, -m, m), m), :]  # (..., L, S, K)
        how = "...jk,...ijk->...ij" if of_key else "...ik,...ijk->...ij"
        position = np.einsum(how, k if of_key else q, r) * q.dtype.type(q.shape[-1] ** -0.5)
        return _content(q, k) + position

    return scores


SHAW_SCORES = Exercise(
    "shaw_scores",
    shaw_scores,
    _shaw_cases,
    (
        Mistake(
            "the distance taken as key minus query",
            "Row clip(i - j, -m, m) + m: the last row is the far past.",
            31,
            lambda q, k, table, distance: shaw_scores(q, k, table, -distance),
        ),
        Mistake(
            "not clipped, but taken modulo the rows",
            "Beyond m all distances share the outermost row; a negative index reads from the end.",
            31,
            lambda q, k, table, distance: shaw_scores(
                q, k, table, (distance + len(table) // 2) % len(table) - len(table) // 2
            ),
        ),
        Mistake(
            "clipped one too early",
            "There are 2m + 1 rows: distances from -m to m, both included.",
            31,
            lambda q, k, table, distance: shaw_scores(
                q, k, table, np.clip(distance, 1 - len(table) // 2, len(table) // 2 - 1)
            ),
        ),
        Mistake(
            "the position term not scaled",
            "Both terms stand inside the division by the root of K.",
            31,
            lambda q, k, table, distance: (
                shaw_scores(q, k, table, distance)
                + (1 - q.dtype.type(q.shape[-1] ** -0.5))
                * (
                    shaw_scores(q, k, table * q.dtype.type(q.shape[-1] ** 0.5), distance)
                    - _content(q, k)
                )
            ),
        ),
        Mistake(
            "not scaled",
            "Divide by the root of K.",
            10,
            lambda q, k, table, distance: (
                shaw_scores(q, k, table, distance) * q.dtype.type(q.shape[-1] ** 0.5)
            ),
        ),
        Mistake(
            "the key's product with the table",
            "The query meets the relative vector: q . R. (DeBERTa has the other product, too.)",
            31,
            lambda q, k, table, distance: (
                _content(q, k)
                + np.swapaxes(
                    shaw_scores(k, q, table, np.swapaxes(distance, -1, -2) * -1) - _content(k, q),
                    -1,
                    -2,
                )
            ),
        ),
        Mistake(
            "the relative vectors forgotten",
            "Add q . R, a row of the table for each distance.",
            31,
            lambda q, k, table, distance: _content(q, k),
        ),
    ),
    chapter=31,
    scores=lambda f: lambda q, k, i, j: f(q, k, random(17, 8), apart(i, j)),
    further=(
        Mistake(
            "the key meets the relative vector",
            "The query meets it: q . (k + R).",
            31,
            _gathered(lambda d, m: d + m, of_key=True),
        ),
        Mistake(
            "rows counted without the shift",
            "Add m: the table begins with the distance -m, and a negative index "
            "counts from its end.",
            31,
            _gathered(lambda d, m: d),
        ),
    ),
)


def _value_cases(rng: np.random.Generator) -> Iterator[Case]:
    two = np.array([0, 1])[:, None] - np.array([0, 1])
    half = np.array([[1.0, 0.0], [0.5, 0.5]])
    yield case(half, np.ones((2, 1)), np.array([[10.0], [0.0], [20.0]]), two)
    for dtype in DTYPES:
        for distance in _distances():
            weights = rng.random((2, 3, *distance.shape)).astype(dtype)
            v = rng.standard_normal((2, 3, distance.shape[1], 6)).astype(dtype)
            yield case(weights, v, rng.standard_normal((5, 6)).astype(dtype), distance)


SHAW_VALUES = Exercise(
    "shaw_values",
    shaw_values,
    _value_cases,
    (
        Mistake(
            "the distance taken as key minus query",
            "Row clip(i - j, -m, m) + m: the last row is the far past.",
            31,
            lambda weights, v, table, distance: shaw_values(weights, v, table, -distance),
        ),
        Mistake(
            "the relative vectors not weighted",
            "A relative vector comes with its value, so it has the value's weight.",
            31,
            lambda weights, v, table, distance: (
                weights @ v + shaw_values(np.ones_like(weights), 0 * v, table, distance)
            ),
        ),
        Mistake(
            "the relative vectors forgotten",
            "Add the row of each distance to the value, before the weighted sum.",
            31,
            lambda weights, v, table, distance: weights @ v,
        ),
        Mistake(
            "clipped one too early",
            "There are 2m + 1 rows: distances from -m to m, both included.",
            31,
            lambda weights, v, table, distance: shaw_values(
                weights, v, table, np.clip(distance, 1 - len(table) // 2, len(table) // 2 - 1)
            ),
        ),
    ),
    chapter=31,
)


def _both_cases(rng: np.random.Generator) -> Iterator[Case]:
    two = np.array([0, 1])[:, None] - np.array([0, 1])
    table = np.array([[10.0], [0.0], [20.0]])
    yield case(np.ones((2, 1)), np.array([[1.0], [2.0]]), table, two)
    for dtype in DTYPES:
        for distance in _distances():
            q = rng.standard_normal((2, 3, distance.shape[0], 8)).astype(dtype)
            k = rng.standard_normal((2, 3, distance.shape[1], 8)).astype(dtype)
            rows = 2 * int(np.abs(distance).max()) + 3  # one to spare on each side
            yield case(q, k, rng.standard_normal((rows, 8)).astype(dtype), distance)


def _of_keys(q, k, table, distance):
    """The term k . r alone, scaled."""
    return relative_key_query_scores(0 * q, k, table, distance)


KEY_QUERY = Exercise(
    "relative_key_query_scores",
    relative_key_query_scores,
    _both_cases,
    (
        Mistake(
            "the key's product forgotten",
            "The key meets the vector, too: q . k + q . r + k . r.",
            31,
            lambda q, k, table, distance: (
                relative_key_query_scores(q, k, table, distance) - _of_keys(q, k, table, distance)
            ),
        ),
        Mistake(
            "the key meets the vector of the opposite distance",
            "Query and key meet one vector, that of i - j.",
            31,
            lambda q, k, table, distance: (
                relative_key_query_scores(q, k, table, distance)
                - _of_keys(q, k, table, distance)
                + _of_keys(q, k, table[::-1], distance)
            ),
        ),
        Mistake(
            "the distance taken as key minus query",
            "Row i - j + N - 1: the last row is the far past.",
            31,
            lambda q, k, table, distance: relative_key_query_scores(q, k, table, -distance),
        ),
        Mistake(
            "rows counted without the shift",
            "Add N - 1: the table begins with the distance 1 - N.",
            31,
            lambda q, k, table, distance: relative_key_query_scores(
                q, k, np.roll(table, len(table) // 2, axis=0), distance
            ),
        ),
        Mistake(
            "new queries counted from 0, whatever the cache holds",
            "Read the distances that are given: with a cache the first query does not stand at 0.",
            63,
            lambda q, k, table, distance: relative_key_query_scores(
                q,
                k,
                table,
                np.arange(distance.shape[0])[:, None] - np.arange(distance.shape[1]),
            ),
        ),
        Mistake(
            "the position terms not scaled",
            "All three products stand inside the division by the root of K.",
            31,
            lambda q, k, table, distance: relative_key_query_scores(
                q, k, table * table.dtype.type(table.shape[-1] ** 0.5), distance
            ),
        ),
    ),
    chapter=31,
    scores=lambda f: lambda q, k, i, j: f(q, k, random(255, 8), apart(i, j)),
)


def _nezha_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(1, 2)
    yield case(2, 6)
    yield case(3, 4, 100.0)
    for _ in range(9):
        yield case(
            int(rng.integers(1, 9)), 2 * int(rng.integers(2, 8)), float(rng.integers(20, 10**5))
        )


NEZHA = Exercise(
    "nezha_table",
    nezha_table,
    _nezha_cases,
    (
        Mistake(
            "rows in the order of key minus query",
            "Distances are i - j: row 0 is the far future, and has the code of position 2m.",
            31,
            lambda m, K, base=10000.0: nezha_table(m, K, base)[::-1],
        ),
        Mistake(
            "signed positions",
            "The released code counts its rows from 0: no position is negative.",
            31,
            lambda m, K, base=10000.0: sinusoidal(np.arange(m, -m - 1, -1), K, base),
        ),
        Mistake(
            "past and future alike",
            "The code of a distance keeps its sign: 2m + 1 different rows.",
            31,
            lambda m, K, base=10000.0: sinusoidal(np.abs(np.arange(-m, m + 1)), K, base),
        ),
        Mistake(
            "2m rows",
            "Distances from -m to m, both included, are 2m + 1.",
            31,
            lambda m, K, base=10000.0: nezha_table(m, K, base)[1:],
        ),
        Mistake(
            "all sines first",
            "The paper's layout: sine and cosine of one frequency are neighbours.",
            20,
            lambda m, K, base=10000.0: sinusoidal(
                np.arange(2 * m, -1, -1), K, base, layout="concatenated"
            ),
        ),
        Mistake(
            "the base fixed at 10000",
            "Use the base that is given.",
            20,
            lambda m, K, base=10000.0: nezha_table(m, K),
        ),
    ),
    chapter=31,
)

# ---- chapter 32 ----------------------------------------------------------------------------------


def _xl_cases(rng: np.random.Generator) -> Iterator[Case]:
    two = np.array([0, 1])[:, None] - np.array([0, 1])
    one = np.ones((1, 2, 1))
    r = np.array([[[10.0], [0.0], [20.0]]])
    yield case(one, one, r, np.array([[1.0]]), np.array([[2.0]]), two)
    for dtype in DTYPES:
        for distance in _distances():
            q = rng.standard_normal((2, 3, distance.shape[0], 4)).astype(dtype)
            k = rng.standard_normal((2, 3, distance.shape[1], 4)).astype(dtype)
            rows = int(distance.max() - distance.min()) + 1
            r = rng.standard_normal((3, rows, 4)).astype(dtype)
            u, v = rng.standard_normal((2, 3, 4)).astype(dtype)
            yield case(q, k, r, u, v, distance)


def _xl_score(f):
    def scores(q, k, i, j):
        distance = apart(i, j)
        r = sinusoidal(np.arange(distance.min(), distance.max() + 1), 8)
        u, v = random(2, 1, 8)
        return f(q[None], k[None], r[None], u, v, distance)[0]

    return scores


XL = Exercise(
    "transformer_xl_scores",
    transformer_xl_scores,
    _xl_cases,
    (
        Mistake(
            "u and v exchanged",
            "u joins the query before the key, v before the relative vector.",
            32,
            lambda q, k, r, u, v, d: transformer_xl_scores(q, k, r, v, u, d),
        ),
        Mistake(
            "rows of r in the other order",
            "The rows ascend with the distance i - j: the first is that of the least distance.",
            32,
            lambda q, k, r, u, v, d: transformer_xl_scores(q, k, r[:, ::-1], u, v, d),
        ),
        Mistake(
            "u and v forgotten",
            "u and v stand where the query's position stood: (q + u) . k + (q + v) . r.",
            32,
            lambda q, k, r, u, v, d: transformer_xl_scores(q, k, r, 0 * u, 0 * v, d),
        ),
        Mistake(
            "not scaled",
            "All four terms are divided by the root of K.",
            32,
            lambda q, k, r, u, v, d: (
                transformer_xl_scores(q, k, r, u, v, d) * q.dtype.type(q.shape[-1] ** 0.5)
            ),
        ),
        Mistake(
            "the relative term not scaled",
            "All four terms are divided by the root of K.",
            32,
            lambda q, k, r, u, v, d: (
                transformer_xl_scores(q, k, r * q.dtype.type(q.shape[-1] ** 0.5), u, v, d)
                if q.shape[-1] > 1
                else transformer_xl_scores(q, k, r, u, v, d)
            ),
        ),
    ),
    chapter=32,
    scores=_xl_score,
    further=(
        Mistake(
            "v forgotten",
            "(q + v) meets the relative vector.",
            32,
            lambda q, k, r, u, v, d: transformer_xl_scores(q, k, r, u, 0 * v, d),
        ),
        Mistake(
            "u forgotten",
            "(q + u) meets the key.",
            32,
            lambda q, k, r, u, v, d: transformer_xl_scores(q, k, r, 0 * u, v, d),
        ),
    ),
)


def _shift_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]))
    for dtype in DTYPES:
        yield case(rng.standard_normal((2, 3, 4, 6)).astype(dtype))
    yield case(rng.standard_normal((3, 1, 5)))


def _shifted(zeros_last: bool = False, keep_first: bool = False):
    def shifted(products):
        x, (L, N) = np.asarray(products), products.shape[-2:]
        zero = np.zeros((*x.shape[:-1], 1), x.dtype)
        padded = np.concatenate([x, zero] if zeros_last else [zero, x], axis=-1)
        line = padded.reshape(*x.shape[:-2], L * (N + 1))
        return (line[..., :-L] if keep_first else line[..., L:]).reshape(x.shape)

    return shifted


SHIFT = Exercise(
    "relative_shift",
    relative_shift,
    _shift_cases,
    (
        Mistake(
            "zeros on the right",
            "The column of zeros stands on the left of the products.",
            32,
            _shifted(zeros_last=True),
        ),
        Mistake(
            "cut off at the wrong end",
            "After the padding, the first L numbers of the line are dropped.",
            32,
            _shifted(keep_first=True),
        ),
        Mistake(
            "every row rolled alike",
            "Row i moves by its own number of places.",
            32,
            lambda products: np.roll(products, -1, axis=-1),
        ),
    ),
    chapter=32,
)

# ---- chapter 33 ----------------------------------------------------------------------------------


def _bucket_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-1, 0, 1]))
    for both in (True, False):
        d = np.arange(*(int(end) for end in rng.integers(200, 240, 2) * [-1, 1]))
        yield case(d, bidirectional=both)
        yield case(d, num_buckets=8, max_distance=20, bidirectional=both)
        yield case(np.array([[0, 5000], [-5000, 17]]), 32, 128, both)
    edges = np.array([9, 10, -10, 12, 20, 80])  # a logarithm is rounded just below 10, 20 and 80
    yield case(edges, 10, 160, False)
    for n in range(6):
        N = 2 * int(rng.integers(2, 20))
        d = rng.integers(-300, 300, (3, n + 5))
        yield case(d, N, int(rng.integers(N, 300)), n % 2 == 0)


def _bucket(cut=np.floor, last=lambda half, far: np.minimum(far, half - 1), more=0):
    """T5's rule with one part of it replaced."""

    def bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
        half = num_buckets // 2 if bidirectional else num_buckets
        exact = half // 2
        n = np.abs(distance) if bidirectional else np.maximum(distance, 0)
        growth = np.log((np.maximum(n, exact) + more) / exact) / math.log(max_distance / exact)
        far = last(half, (exact + cut(growth * (half - exact))).astype(np.int64))
        return np.where(n < exact, n, far) + half * ((distance < 0) & bidirectional)

    return bucket


T5_BUCKET = Exercise(
    "t5_bucket",
    t5_bucket,
    _bucket_cases,
    (
        Mistake(
            "fed with key minus query",
            "Here the past is positive and takes the lower half of the buckets.",
            33,
            lambda distance, *rest, **options: _bucket()(-distance, *rest, **options),
        ),
        Mistake(
            "the direction lost",
            "Looking both ways, the future has buckets of its own: the upper half.",
            33,
            lambda distance, num_buckets=32, max_distance=128, bidirectional=True: _bucket()(
                np.abs(distance) if bidirectional else distance,
                num_buckets,
                max_distance,
                bidirectional,
            ),
        ),
        Mistake(
            "all buckets for each direction",
            "Looking both ways, each direction has half of the buckets.",
            33,
            lambda distance, num_buckets=32, max_distance=128, bidirectional=True: _bucket()(
                distance,
                2 * num_buckets if bidirectional else num_buckets,
                max_distance,
                bidirectional,
            ),
        ),
        Mistake(
            "a logarithm rounded below an edge",
            "An edge may be a whole number, and floats may put it just above: decide in whole "
            "numbers, n^(half - exact) exact^t >= max_distance^t exact^(half - exact).",
            33,
            _bucket(),
        ),
        Mistake(
            "rounded up for down",
            "The logarithm is cut off: a bucket opens when its first distance is reached.",
            33,
            _bucket(np.ceil),
        ),
        Mistake(
            "rounded to the nearest",
            "The logarithm is cut off: a bucket opens when its first distance is reached.",
            33,
            _bucket(np.rint),
        ),
        Mistake(
            "far distances not cut off",
            "Beyond max_distance all share the last bucket.",
            33,
            _bucket(last=lambda half, far: far),
        ),
        Mistake(
            "one bucket too few",
            "The last bucket has the number half - 1.",
            33,
            _bucket(last=lambda half, far: np.minimum(far, half - 2)),
        ),
        Mistake(
            "one added within the logarithm",
            "The logarithm is of the distance over the exact half; distances below that half never "
            "meet it.",
            33,
            _bucket(more=1),
        ),
    ),
    chapter=33,
    scores=lambda f: adding(lambda i, j: random(1, 32)[:, f(apart(i, j))]),
    further=(
        Mistake(
            "the query itself in the future",
            "The distance 0 reads bucket 0.",
            33,
            lambda distance, num_buckets=32, max_distance=128, bidirectional=True: (
                _bucket()(distance, num_buckets, max_distance, bidirectional)
                + num_buckets // 2 * (bidirectional & (distance == 0))
            ),
        ),
    ),
)


def _t5_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([[0, -1], [1, 0]]), 4)
    for dtype in DTYPES:
        for distance in _distances():
            yield case(rng.standard_normal((32, 3)).astype(dtype), distance)
    d = np.arange(40)[:, None] - np.arange(40)
    yield case(rng.standard_normal((8, 2)), d, max_distance=20, bidirectional=False)


T5_BIAS = Exercise(
    "t5_bias",
    t5_bias,
    _t5_cases,
    (
        Mistake(
            "fed with key minus query",
            "t5_bucket takes i - j: the past is positive.",
            33,
            lambda table, distance, *rest, **options: t5_bias(table, -distance, *rest, **options),
        ),
        Mistake(
            "heads last",
            "The result is (H, L, S): heads first, as in the scores.",
            33,
            lambda table, distance, *rest, **options: np.moveaxis(
                t5_bias(table, distance, *rest, **options), 0, -1
            ),
        ),
        Mistake(
            "divided by the root of the heads",
            "A bias is added as it is: after the scale.",
            33,
            lambda table, distance, *rest, **options: (
                t5_bias(table, distance, *rest, **options)
                / table.dtype.type(max(2, table.shape[1]) ** 0.5)
            ),
        ),
        Mistake(
            "always in both directions",
            "In a decoder all buckets serve the past: bidirectional=False.",
            33,
            lambda table, distance, max_distance=128, bidirectional=True: t5_bias(
                table, distance, max_distance
            ),
        ),
    ),
    chapter=33,
    scores=lambda f: adding(lambda i, j: f(random(32, 1), apart(i, j))),
)


def _tupe_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.ones((1, 1, 2))
    yield case(one, 2 * one, 3 * one, 4 * one)
    for dtype in DTYPES:
        q, pq = rng.standard_normal((2, 3, 4, 8)).astype(dtype), rng.standard_normal((3, 4, 8))
        k, pk = rng.standard_normal((2, 3, 6, 8)).astype(dtype), rng.standard_normal((3, 6, 8))
        pq, pk = pq.astype(dtype), pk.astype(dtype)
        yield case(q, k, pq, pk)
        yield case(q, k, pq, pk, rng.standard_normal((3, 4, 6)).astype(dtype))


def _tupe_score(f):
    def scores(q, k, i, j):
        codes, (U_q, U_k) = random(128, 8), random(2, 8, 8)
        return f(q[None], k[None], (codes[i] @ U_q)[None], (codes[j] @ U_k)[None])[0]

    return scores


TUPE = Exercise(
    "tupe_scores",
    tupe_scores,
    _tupe_cases,
    (
        Mistake(
            "scaled by the root of K",
            "Two sums of K products each: divide by the root of 2K, so that their variance stays.",
            33,
            lambda q, k, pq, pk, bias=None: tupe_scores(
                q * q.dtype.type(2**0.5), k, pq * q.dtype.type(2**0.5), pk, bias
            ),
        ),
        Mistake(
            "positions not scaled",
            "Both products are divided by the root of 2K.",
            33,
            lambda q, k, pq, pk, bias=None: tupe_scores(
                q, k, pq * q.dtype.type((2 * q.shape[-1]) ** 0.5), pk, bias
            ),
        ),
        Mistake(
            "the bias scaled, too",
            "The bias is added after the division.",
            33,
            lambda q, k, pq, pk, bias=None: tupe_scores(
                q,
                k,
                pq,
                pk,
                None if bias is None else bias / q.dtype.type((2 * q.shape[-1]) ** 0.5),
            ),
        ),
        Mistake(
            "mixed terms kept",
            "TUPE unties words and positions: the two mixed terms are dropped.",
            33,
            lambda q, k, pq, pk, bias=None: tupe_scores(q + pq, k + pk, 0 * pq, 0 * pk, bias),
        ),
    ),
    chapter=33,
    scores=_tupe_score,
)

# ---- chapter 34 ----------------------------------------------------------------------------------


def _deberta_cases(rng: np.random.Generator) -> Iterator[Case]:
    two = np.array([0, 1])[:, None] - np.array([0, 1])
    one = np.ones((1, 2, 1))
    yield case(one, one, np.array([[[1.0], [2.0]]]), np.array([[[10.0], [20.0]]]), two)
    for dtype in DTYPES:
        for distance in _distances():
            q = rng.standard_normal((2, 3, distance.shape[0], 4)).astype(dtype)
            k = rng.standard_normal((2, 3, distance.shape[1], 4)).astype(dtype)
            tables = rng.standard_normal((2, 3, 6, 4)).astype(dtype)
            yield case(q, k, *tables, distance)
            yield case(q, k, *tables, distance, distance)


def _times(factor):
    def scores(q, *rest):
        return deberta_scores(q, *rest) * q.dtype.type(factor(q.shape[-1]))

    return scores


DEBERTA = Exercise(
    "deberta_scores",
    deberta_scores,
    _deberta_cases,
    (
        Mistake(
            "the distance taken as key minus query",
            "c2p, the query's term, reads k_table at i - j.",
            34,
            lambda q, k, q_table, k_table, d, p2c=None: deberta_scores(
                q, k, q_table, k_table, -d, None if p2c is None else -p2c
            ),
        ),
        Mistake(
            "p2c always at i - j",
            "In the paper p2c reads q_table at j - i, unless p2c_distance says otherwise.",
            34,
            lambda q, k, q_table, k_table, d, p2c=None: deberta_scores(
                q, k, q_table, k_table, d, d
            ),
        ),
        Mistake(
            "the two tables exchanged",
            "c2p: the query meets k_table. p2c: the key meets q_table.",
            34,
            lambda q, k, q_table, k_table, *rest: deberta_scores(q, k, k_table, q_table, *rest),
        ),
        Mistake(
            "scaled by the root of K",
            "Three sums of K products: divide by the root of 3K.",
            34,
            _times(lambda K: math.sqrt(3)),
        ),
        Mistake("not scaled", "Divide by the root of 3K.", 34, _times(lambda K: math.sqrt(3 * K))),
        Mistake(
            "p2c forgotten",
            "There are three terms: c2c, c2p and p2c.",
            34,
            lambda q, k, q_table, k_table, *rest: deberta_scores(q, k, 0 * q_table, k_table, *rest),
        ),
    ),
    chapter=34,
    scores=lambda f: lambda q, k, i, j: f(q[None], k[None], *random(2, 1, 16, 8), apart(i, j))[0],
)


def _log_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-2, -1, 0, 1, 2]), 8, 20)
    yield case(np.arange(-60, 61), 8, 20)
    yield case(np.arange(-600, 600, 7), 256, 512)
    yield case(np.array([[0, 9], [-9, 4000]]), 16, 32)
    edges = np.array([19, 20, -20, 21, 40, 80])  # a logarithm is rounded just above 20 and 40
    yield case(edges, 20, 81)
    for n in range(8):
        N = 2 * int(rng.integers(2, 20))
        yield case(rng.integers(-300, 300, (3, n + 5)), N, int(rng.integers(N + 2, 300)))


def _log_bucket(cut=np.ceil, less=1, clamp=True):
    """DeBERTa's rule with one part of it replaced."""

    def bucket(d, num_buckets, max_distance):
        mid, far = num_buckets // 2, max_distance - less
        n = np.clip(np.abs(d), mid, far if clamp else None)
        growth = np.log(n / mid) / math.log(far / mid) * (mid - 1)
        return np.where(np.abs(d) <= mid, d, np.sign(d) * (mid + cut(growth))).astype(np.int64)

    return bucket


DEBERTA_BUCKET = Exercise(
    "deberta_bucket",
    deberta_bucket,
    _log_cases,
    (
        Mistake(
            "without its sign",
            "The bucket has the sign of the distance.",
            34,
            lambda d, *rest: np.abs(_log_bucket()(d, *rest)),
        ),
        Mistake(
            "fed with key minus query",
            "The bucket of a key in the past is positive.",
            34,
            lambda d, *rest: -_log_bucket()(d, *rest),
        ),
        Mistake(
            "T5's bucket",
            "DeBERTa keeps the sign, and rounds up where T5 cuts off.",
            34,
            lambda d, num_buckets, max_distance: _bucket()(d, num_buckets, max_distance),
        ),
        Mistake(
            "no logarithm",
            "Beyond half of the buckets the distance grows by a fixed factor from one to the next.",
            34,
            lambda d, num_buckets, max_distance: np.clip(d, -num_buckets + 1, num_buckets - 1),
        ),
    ),
    chapter=34,
    further=(
        Mistake(
            "a logarithm rounded above an edge",
            "An edge may be a whole number, and floats may put it just below: decide in whole "
            "numbers, n^(mid - 1) mid^t <= (max_distance - 1)^t mid^(mid - 1).",
            34,
            _log_bucket(),
        ),
        Mistake(
            "floor for ceil",
            "DeBERTa rounds up, where T5 cuts off.",
            34,
            _log_bucket(np.floor),
        ),
        Mistake(
            "max_distance for max_distance - 1",
            "The last bucket is that of the distance max_distance - 1.",
            34,
            _log_bucket(less=0),
        ),
        Mistake(
            "far distances not cut off",
            "Distances from max_distance - 1 on share the last bucket. (Hugging "
            "Face's code goes on, and clips the row of the table.)",
            34,
            _log_bucket(clamp=False),
        ),
    ),
)

# ---- chapter 35 ---------------------------------------------------------------------------------


def _slope_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n in (8, 1, 6, *rng.permutation([2, 4, 16, 32, 64])[:3].tolist()):
        yield case(n)
    others = [n for n in range(3, 64) if n & (n - 1)]  # no powers of two
    for n in rng.permutation(others)[:8].tolist():
        yield case(n)


def _slopes(more, first=1):
    """The authors' rule with other slopes beyond the power of two."""

    def slopes(n):
        power = 1 << (n.bit_length() - 1)
        own = 2.0 ** (-8 * np.arange(first, power + first) / power)
        double = 2.0 ** (-8 * np.arange(first, 2 * power + first) / (2 * power))
        return np.concatenate([own, more(double)[: n - power]])

    return slopes


def _cut_off(n):
    power = 1 << (n - 1).bit_length()
    return 2.0 ** (-8 * np.arange(1, power + 1) / power)[:n]


SLOPES = Exercise(
    "alibi_slopes",
    alibi_slopes,
    _slope_cases,
    (
        Mistake(
            "the plain rule for every number of heads",
            "2^(-8h/H) is the authors' rule for powers of two; for others they take the slopes of "
            "the next lower power, and fill up with every second one of the next higher.",
            35,
            lambda n: 2.0 ** (-8 * np.arange(1, n + 1) / n),
        ),
        Mistake(
            "counted from 0",
            "The first head has h = 1: for 8 heads its slope is a half.",
            35,
            lambda n: alibi_slopes(n) * 2.0 ** (8 / (1 << (n.bit_length() - 1))),
        ),
        Mistake(
            "halved from head to head",
            "The ratio is 2^(-8/H): a half for 8 heads only.",
            35,
            lambda n: 0.5 ** np.arange(1, n + 1),
        ),
        Mistake(
            "with a minus",
            "Slopes are positive; the bias has the minus.",
            35,
            lambda n: -alibi_slopes(n),
        ),
        Mistake(
            "the last head first",
            "The first head has the steepest slope.",
            35,
            lambda n: alibi_slopes(n)[::-1],
        ),
    ),
    chapter=35,
    further=(
        Mistake(
            "the first of the further slopes, not every second",
            "Those of the next higher power are taken by twos: h = 1, 3, 5, ...",
            35,
            _slopes(lambda double: double),
        ),
        Mistake(
            "the even ones of the further slopes",
            "Those of the next higher power are the odd ones: h = 1, 3, 5, ...; the "
            "even ones are there already.",
            35,
            _slopes(lambda double: double[1::2]),
        ),
        Mistake(
            "counted from 0 in both parts",
            "The first head has h = 1: for 8 heads its slope is a half.",
            35,
            _slopes(lambda double: double[::2], first=0),
        ),
        Mistake(
            "sorted",
            "The further slopes come after the first ones, in the order of the authors.",
            35,
            lambda n: np.sort(alibi_slopes(n))[::-1],
        ),
        Mistake(
            "the next higher power, cut off",
            "First come all slopes of the next lower power of two.",
            35,
            _cut_off,
        ),
    ),
)


def _alibi_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0.5]), np.array([[0, -1], [1, 0]]))
    for dtype in DTYPES:
        for distance in _distances():
            yield case(rng.uniform(0.01, 1, 8).astype(dtype), distance)
    yield case(alibi_slopes(2), np.stack([np.arange(6).reshape(2, 3), -np.ones((2, 3), int)]))
    for distance in _distances():  # an encoder's
        yield case(alibi_slopes(4), distance, future_slopes=rng.uniform(0.1, 0.9, 4))
    for n in range(4):
        distance = rng.integers(-20, 20, (2, 3, 4)[n % 2 :])
        slopes, later = rng.uniform(0.1, 2, (2, 3)).astype(DTYPES[n % 2])
        yield case(slopes, distance, later if n > 1 else None)


def _sided(past, future):
    """The bias with another distance on each side."""

    def bias(slopes, distance, future_slopes=None):
        d = distance[..., None, :, :].astype(slopes.dtype)
        later = slopes if future_slopes is None else future_slopes
        own = -slopes[:, None, None] * past(d)
        if future_slopes is None:
            return np.where(d < 0, -later[:, None, None] * future(d, False), own)
        return np.where(d < 0, -later[:, None, None] * future(d, True), own)

    return bias


ALIBI = Exercise(
    "alibi_bias",
    alibi_bias,
    _alibi_cases,
    (
        Mistake(
            "a reward for distance",
            "The bias is a penalty: minus the slope times the distance.",
            35,
            lambda slopes, distance, future_slopes=None: (
                -alibi_bias(slopes, distance, future_slopes)
            ),
        ),
        Mistake(
            "the future rewarded",
            "Without abs, keys in the future get a positive bias.",
            35,
            lambda slopes, distance, future_slopes=None: np.moveaxis(
                np.multiply.outer(-slopes, distance.astype(slopes.dtype)), 0, -3
            ),
        ),
        Mistake(
            "the past rewarded",
            "The distance is query minus key; and the bias takes its absolute value.",
            35,
            lambda slopes, distance, future_slopes=None: np.moveaxis(
                np.multiply.outer(slopes, distance.astype(slopes.dtype)), 0, -3
            ),
        ),
        Mistake(
            "heads last",
            "The result is (H, L, S): heads first, as in the scores.",
            35,
            lambda slopes, distance, future_slopes=None: np.moveaxis(
                alibi_bias(slopes, distance, future_slopes), -3, -1
            ),
        ),
        Mistake(
            "the distance counted from 1",
            "A token's distance from itself is 0.",
            35,
            lambda slopes, distance, future_slopes=None: alibi_bias(
                slopes, np.where(distance < 0, distance - 1, distance + 1), future_slopes
            ),
        ),
        Mistake(
            "slopes of past and future swapped",
            "Where i - j is below 0 the key stands in the future, and future_slopes hold.",
            36,
            lambda slopes, distance, future_slopes=None: alibi_bias(
                slopes, distance if future_slopes is None else -distance, future_slopes
            ),
        ),
        Mistake(
            "the future with the slopes of the past",
            "future_slopes, if given, take the place of the slopes for keys after the query.",
            36,
            lambda slopes, distance, future_slopes=None: alibi_bias(slopes, distance),
        ),
        Mistake(
            "both slopes added up",
            "Each side has one slope: those of the past, or those of the future.",
            36,
            lambda slopes, distance, future_slopes=None: (
                alibi_bias(slopes, distance)
                + (
                    0
                    if future_slopes is None
                    else alibi_bias(future_slopes, np.minimum(distance, 0))
                )
            ),
        ),
    ),
    chapter=35,
    scores=lambda f: adding(lambda i, j: f(np.array([0.5]), apart(i, j))),
    further=(
        Mistake(
            "the future rewarded, with slopes of its own, too",
            "Without abs, keys in the future get a positive bias.",
            35,
            _sided(lambda d: d, lambda d, own: d),
        ),
        Mistake(
            "no bias in the future",
            "The distance counts on both sides: a mask hides the future where it must.",
            35,
            _sided(lambda d: d, lambda d, own: -d if own else 0 * d),
        ),
    ),
)

EXERCISES = (
    DISTANCE,
    TERMS,
    SHAW_SCORES,
    SHAW_VALUES,
    KEY_QUERY,
    NEZHA,
    XL,
    SHIFT,
    T5_BUCKET,
    T5_BIAS,
    TUPE,
    DEBERTA,
    DEBERTA_BUCKET,
    SLOPES,
    ALIBI,
)
