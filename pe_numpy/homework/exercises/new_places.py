"""Exercises of chapter 52: distances that stay in the trained range."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.homework.measured import apart
from pe_numpy.relative.distance import relative_distance
from pe_numpy.rotary.new_places import (
    chunk_distance,
    rerope_distance,
    rotary_distance_scores,
    self_extend_distance,
    streaming_distance,
)
from pe_numpy.rotary.rope import rope_frequencies

# ---- scores at any distance ---------------------------------------------------------------------


def _score_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0]]))
    for dtype in (np.float64, np.float32):
        for layout in ("interleaved", "half"):
            q = rng.standard_normal((2, 3, 4, 8)).astype(dtype)
            k = rng.standard_normal((2, 3, 5, 8)).astype(dtype)
            distance = relative_distance(np.arange(1, 5), np.arange(5))
            yield case(q, k, distance, layout=layout)
            yield case(q, k, np.minimum(distance, 2) + 0.5, layout=layout)
            yield case(q, k, 9 * rng.standard_normal((2, 1, 4, 5)), [1.0, 0.3], layout)


def _with(of_distance=lambda d: d, frequencies=lambda K: rope_frequencies(K), swap=False):
    """The scores with one argument changed."""

    def scores(q, k, distance, f=None, layout="interleaved"):
        f = frequencies(q.shape[-1]) if f is None else f
        if swap:
            layout = "half" if layout == "interleaved" else "interleaved"
        return rotary_distance_scores(q, k, of_distance(np.asarray(distance)), f, layout)

    return scores


def _not_scaled(q, k, *rest, **options):
    return rotary_distance_scores(q, k, *rest, **options) * q.dtype.type(math.sqrt(q.shape[-1]))


def _cosines_alone(q, k, distance, *rest, **options):
    back = rotary_distance_scores(q, k, -np.asarray(distance), *rest, **options)
    return (rotary_distance_scores(q, k, distance, *rest, **options) + back) / 2


SCORES = Exercise(
    "rotary_distance_scores",
    rotary_distance_scores,
    _score_cases,
    (
        Mistake(
            "turned the other way",
            "The distance is query minus key. With the query and the key as complex numbers a "
            "pair gives Re q conj(k) e^(i f theta).",
            52,
            _with(lambda d: -d),
        ),
        Mistake(
            "the cosines alone",
            "Re (a + ib)(cos + i sin) has two terms, a cos - b sin.",
            52,
            _cosines_alone,
        ),
        Mistake(
            "the distance rounded down",
            "An effective distance may be a fraction; turn by it as it is.",
            52,
            _with(np.floor),
        ),
        Mistake("not scaled", "Divide by the root of K.", 10, _not_scaled),
        Mistake(
            "half-split for interleaved, or the other way round",
            "Interleaved pairs are components 2c and 2c + 1; half-split pairs c and c + n.",
            40,
            _with(swap=True),
        ),
        Mistake(
            "exponent c/K for 2c/K",
            "theta_c = base^(-2c/K), with c the number of the pair.",
            40,
            _with(frequencies=lambda K: 10000.0 ** (-np.arange(K // 2) / K)),
        ),
    ),
    chapter=52,
    scores=lambda f: lambda q, k, i, j: f(q, k, apart(i, j)),
    width=4,
)


def _turned(distance):
    """Scores turned by a distance (L, S), a function of positions."""
    return lambda q, k, i, j: rotary_distance_scores(q, k, distance(i, j))


# ---- ReRoPE -------------------------------------------------------------------------------------


def _rerope_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.arange(8), 4)
    yield case(np.arange(8), 4, 2.0)
    distance = np.arange(12)[:, None] - np.arange(14)
    for window in (1, 3, 5):
        yield case(distance + int(rng.integers(-4, 9)), window)
        yield case(distance, window, stretch=round(float(rng.uniform(1.5, 6)), 1))
    yield case(distance, 20)
    for n in range(6):
        stretch = round(float(rng.uniform(1.5, 6)), 1) if n % 2 else None
        yield case(rng.integers(-40, 40, (2, n + 3)), int(rng.integers(2, 20)), stretch)


def _rerope(far):
    """The rule with another one for what lies beyond the window."""

    def rule(distance, window, stretch=None):
        size = np.abs(np.asarray(distance, np.float64))
        return np.sign(distance) * np.where(size < window, size, far(size, window, stretch))

    return rule


REROPE = Exercise(
    "rerope_distance",
    rerope_distance,
    _rerope_cases,
    (
        Mistake(
            "the whole distance stretched",
            "Only what lies beyond the window is divided by s: w + (delta - w)/s. delta/s would "
            "begin below w, and bring the far tokens nearer than the near ones.",
            52,
            _rerope(lambda delta, w, s: np.full_like(delta, w) if s is None else delta / s),
        ),
        Mistake(
            "w forgotten",
            "Beyond the window the distance goes on from w: w + (delta - w)/s.",
            52,
            _rerope(lambda delta, w, s: np.full_like(delta, w) if s is None else (delta - w) / s),
        ),
        Mistake(
            "w added to the stretched distance",
            "Subtract w before you divide, so that the distance goes on without a jump.",
            52,
            _rerope(lambda delta, w, s: np.full_like(delta, w) if s is None else w + delta / s),
        ),
        Mistake(
            "multiplied by the stretch",
            "Far distances become smaller: divide by s.",
            52,
            _rerope(
                lambda delta, w, s: np.full_like(delta, w) if s is None else w + (delta - w) * s
            ),
        ),
        Mistake(
            "capped at w - 1",
            "The distance w itself is allowed: min(delta, w).",
            52,
            _rerope(
                lambda delta, w, s: np.full_like(delta, w - 1) if s is None else w + (delta - w) / s
            ),
        ),
        Mistake(
            "the future not mirrored",
            "min(delta, w) leaves -9 as it is. A negative distance gives the negative of its "
            "mirror image.",
            52,
            lambda distance, window, stretch=None: np.where(
                np.asarray(distance) < 0, distance, rerope_distance(distance, window, stretch)
            ),
        ),
    ),
    chapter=52,
    scores=lambda f: _turned(lambda i, j: f(apart(i, j), 8)),
    width=4,
)


# ---- Self-Extend --------------------------------------------------------------------------------


def _extend_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([9]), np.arange(10), 4, 2)
    for window, group in ((4, 2), (5, 3), (6, 1), (3, 4), (1, 2)):
        at = np.arange(14) + int(rng.integers(50))
        yield case(at, at, window, group)
        yield case(at[7:12], at[:12], window, group)
    yield case(np.arange(6) + np.array([[0], [3]]), np.arange(8), 4, 3)  # a batch
    for _ in range(4):
        window, group = int(rng.integers(3, 9)), int(rng.integers(2, 5))
        yield case(rng.integers(0, 60, 6), rng.integers(0, 60, 9), window, group)


def _extend(far=lambda i, j, g: i // g - j // g, shift=lambda w, g: w - w / g, inside=np.less):
    """The rule with one of its parts replaced."""

    def rule(q_positions, k_positions, window, group):
        i, j = np.asarray(q_positions)[..., :, None], np.asarray(k_positions)[..., None, :]
        delta = i - j
        beyond = far(i, j, group) + np.sign(delta) * shift(window, group)
        return np.where(inside(np.abs(delta), window), delta, beyond).astype(np.float64)

    return rule


SELF_EXTEND = Exercise(
    "self_extend_distance",
    self_extend_distance,
    _extend_cases,
    (
        Mistake(
            "w // g for w / g",
            "The released code divides; the paper's pseudo-code rounds down. They differ where g "
            "does not divide w.",
            52,
            _extend(shift=lambda w, g: w - w // g),
        ),
        Mistake(
            "the distance put into groups",
            "Positions are put into groups, each on its own: i // g - j // g. That is what lets a "
            "query and a key turn by themselves.",
            52,
            _extend(far=lambda i, j, g: np.sign(i - j) * (np.abs(i - j) // g)),
        ),
        Mistake(
            "the groups not shifted",
            "Where the window ends the distance is w, and that of groups about w/g: add w - w/g.",
            52,
            _extend(shift=lambda w, g: 0),
        ),
        Mistake(
            "shifted by the whole window",
            "At the end of the window the groups have come to about w/g already: add w - w/g.",
            52,
            _extend(shift=lambda w, g: w),
        ),
        Mistake(
            "the window one longer",
            "Distances below w are exact; w itself is beyond the window.",
            52,
            _extend(inside=np.less_equal),
        ),
        Mistake(
            "groups not rounded down",
            "All positions of a group have one number: floor(i/g).",
            52,
            _extend(far=lambda i, j, g: i / g - j / g),
        ),
    ),
    chapter=52,
    scores=lambda f: _turned(lambda i, j: f(i, j, 8, 2)),
    width=4,
)


# ---- dual chunks --------------------------------------------------------------------------------


def _chunk_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([11]), np.arange(12), 6, 2)
    for size, local in ((6, 2), (7, 3), (8, 6), (5, 0), (9, 1)):
        at = np.arange(16) + int(rng.integers(50))
        yield case(at, at, size, local)
        yield case(at[9:15], at[:15], size, local)
    yield case(np.arange(6) + np.array([[0], [5]]), np.arange(12), 5, 2)  # a batch
    for _ in range(4):
        size = int(rng.integers(4, 12))
        yield case(
            rng.integers(0, 60, 6), rng.integers(0, 60, 9), size, int(rng.integers(0, size - 1))
        )


def _chunks(
    length=lambda size, local: size - local,
    before=lambda r, c, size: np.minimum(r + c, size),
    earlier=lambda r, c, size: min(2 * c - 1, size),
):
    """The rule with one of its parts replaced."""

    def rule(q_positions, k_positions, size, local):
        i, j = np.asarray(q_positions)[..., :, None], np.asarray(k_positions)[..., None, :]
        c = max(length(size, local), 1)

        def back(i, j):
            r, chunks = i % c, i // c - j // c
            a = np.where(chunks == 1, before(r, c, size), earlier(r, c, size))
            return np.where(chunks == 0, r, a) - j % c

        return np.where(i >= j, back(i, j), -back(j, i)).astype(np.float64)

    return rule


CHUNKS = Exercise(
    "chunk_distance",
    chunk_distance,
    _chunk_cases,
    (
        Mistake(
            "chunks of size",
            "A chunk has c = size - local keys; the rest is for distances into the chunk before.",
            52,
            _chunks(length=lambda size, local: size),
        ),
        Mistake(
            "the chunk before not capped",
            "The query's place is at most size: min(i mod c + c, size).",
            52,
            _chunks(before=lambda r, c, size: r + c),
        ),
        Mistake(
            "earlier chunks as the one before",
            "For chunks that lie further back the query stands at its last place, whatever its own "
            "is: min(2c - 1, size).",
            52,
            _chunks(earlier=lambda r, c, size: np.minimum(r + c, size)),
        ),
        Mistake(
            "earlier chunks from size",
            "The query's last place is 2c - 1, the end of the second chunk, where that is below "
            "size.",
            52,
            _chunks(earlier=lambda r, c, size: size),
        ),
        Mistake(
            "the chunk before from its end",
            "The query of the next chunk goes on counting: i mod c + c. Otherwise near tokens on "
            "both sides of a border have other distances than within a chunk.",
            52,
            _chunks(before=lambda r, c, size: min(2 * c - 1, size)),
        ),
        Mistake(
            "all chunks as the query's own",
            "A query meets keys of earlier chunks from another place; with i mod c a key of the "
            "past would stand in the future.",
            52,
            _chunks(before=lambda r, c, size: r, earlier=lambda r, c, size: r),
        ),
    ),
    chapter=52,
    scores=lambda f: _turned(lambda i, j: f(i, j, 12, 4)),
    width=4,
)


# ---- streaming ----------------------------------------------------------------------------------


def _streaming_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([9]), np.array([0, 1, 5, 6, 7, 8]), 5, 2)
    for window, sinks in ((5, 2), (3, 4), (4, 0), (1, 1)):
        L = int(rng.integers(12, 24))
        yield case(np.arange(L), np.arange(L), window, sinks)
        yield case(np.arange(L - 4, L - 1), np.arange(L - 1), window, sinks)
    yield case(np.arange(6) + np.array([[0], [5]]), np.arange(11), 3, 2)  # a batch
    for _ in range(4):
        window, sinks = int(rng.integers(2, 9)), int(rng.integers(0, 5))
        yield case(np.sort(rng.integers(9, 60, 6)), np.arange(60), window, sinks)


def _streaming(sink, recent=lambda i, j, w, z: i - j):
    """The rule with one of its parts replaced."""

    def rule(q_positions, k_positions, window, sinks):
        i, j = np.asarray(q_positions)[..., :, None], np.asarray(k_positions)[..., None, :]
        far, near = (f(i, j, window, sinks) for f in (sink, recent))
        return np.where(j < sinks, far, near).astype(np.float64)

    return rule


STREAMING = Exercise(
    "streaming_distance",
    streaming_distance,
    _streaming_cases,
    (
        Mistake(
            "times for slots",
            "Once the cache is full the query stands in its last slot, z + w - 1, however long the "
            "text: that is what keeps the sinks at distances that were trained.",
            52,
            _streaming(lambda i, j, w, z: i - j),
        ),
        Mistake(
            "the query one slot further",
            "The window counts the query's own key. z + w slots are numbered from 0 to z + w - 1.",
            52,
            _streaming(lambda i, j, w, z: np.minimum(i, z + w) - j),
        ),
        Mistake(
            "the sinks not counted",
            "The slots of the window begin after the sinks: the last of all is z + w - 1.",
            52,
            _streaming(lambda i, j, w, z: np.minimum(i, w - 1) - j),
        ),
        Mistake(
            "the distance capped",
            "Each sink keeps its own slot: cap the query's position, not the distance.",
            52,
            _streaming(lambda i, j, w, z: np.minimum(i - j, z + w - 1)),
        ),
        Mistake(
            "keys renumbered, the query not",
            "A query that keeps its position in the text sees every renumbered key further away. "
            "The query moves into the cache, too.",
            52,
            _streaming(
                lambda i, j, w, z: i - j,
                lambda i, j, w, z: i - j + np.maximum(i - (z + w - 1), 0),
            ),
        ),
    ),
    chapter=52,
    scores=lambda f: _turned(lambda i, j: f(i, j, 16, 4)),
    width=4,
)

EXERCISES = (SCORES, REROPE, SELF_EXTEND, CHUNKS, STREAMING)
