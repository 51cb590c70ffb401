"""Exercises of chapter 36: functions of the distance between T5 and ALiBi."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.homework.measured import adding, apart
from pe_numpy.relative.fire import fire_bias
from pe_numpy.relative.kerple import kerple_log_bias, kerple_power_bias
from pe_numpy.relative.sandwich import sandwich_bias

DTYPES = (np.float64, np.float32)
ONE = np.array([1.0])


def _distances() -> Iterator[np.ndarray]:
    """All pairs of a sentence; a cache; far apart, and keys ahead; a batch of two."""
    for q, k in ((range(4), range(4)), (range(3, 6), range(6)), ([90, 1], [0, 50, 9])):
        yield np.array(q)[:, None] - np.array(k)
    yield np.stack([np.arange(6).reshape(2, 3), -np.ones((2, 3), int)])


def _beside(x: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A number a head, (H, 1, 1), and how far away, (L, S) or (B, 1, L, S)."""
    return x[:, None, None], np.abs(distance)[..., None, :, :].astype(x.dtype)


# ---- KERPLE -------------------------------------------------------------------------------------


def _kerple_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([0.5]), np.array([0.25]), np.array([[0, -1], [1, 0]]))
    for dtype in DTYPES:
        for distance in _distances():
            numbers = rng.uniform(0.1, 1.9, (2, 3)).astype(dtype)
            yield case(*numbers, distance)


def _log(p: np.ndarray, a: np.ndarray, distance: np.ndarray, of) -> np.ndarray:
    own, away = _beside(p, distance)
    return of(own, a[:, None, None], away).astype(p.dtype)


KERPLE_LOG = Exercise(
    "kerple_log_bias",
    kerple_log_bias,
    _kerple_cases,
    (
        Mistake(
            "p and a swapped",
            "p stands before the logarithm, a before the distance.",
            36,
            lambda p, a, distance: kerple_log_bias(a, p, distance),
        ),
        Mistake(
            "a reward for distance",
            "The bias is a penalty: it has a minus.",
            36,
            lambda p, a, distance: -kerple_log_bias(p, a, distance),
        ),
        Mistake(
            "a outside the logarithm",
            "ln(1 + a D), not a ln(1 + D): a says where the logarithm begins to bend.",
            36,
            lambda p, a, distance: _log(p, a, distance, lambda p, a, d: -p * a * np.log1p(d)),
        ),
        Mistake(
            "no 1 within the logarithm",
            "At distance 0 the bias is 0: ln(1 + 0). Without the 1 it has no end.",
            36,
            lambda p, a, distance: _log(p, a, distance, lambda p, a, d: -p * np.log(a * d)),
        ),
        Mistake(
            "the logarithm to base 2",
            "The logarithm is the natural one: then p is the exponent of a power law.",
            36,
            lambda p, a, distance: _log(p, a, distance, lambda p, a, d: -p * np.log2(1 + a * d)),
        ),
        Mistake(
            "the power within",
            "NeMo's variant has abs(i - j)^p within the logarithm; here p stands before it.",
            36,
            lambda p, a, distance: _log(p, a, distance, lambda p, a, d: -np.log1p(a * d**p)),
        ),
    ),
    chapter=36,
    scores=lambda f: adding(lambda i, j: f(ONE, ONE / 2, apart(i, j))),
)

KERPLE_POWER = Exercise(
    "kerple_power_bias",
    kerple_power_bias,
    _kerple_cases,
    (
        Mistake(
            "a and p swapped",
            "a is the factor, p the exponent; a comes first.",
            36,
            lambda a, p, distance: kerple_power_bias(p, a, distance),
        ),
        Mistake(
            "a reward for distance",
            "The bias is a penalty: it has a minus.",
            36,
            lambda a, p, distance: -kerple_power_bias(a, p, distance),
        ),
        Mistake(
            "the factor within the power",
            "a stands outside: the penalty of distance 1 is a.",
            36,
            lambda a, p, distance: _log(a, p, distance, lambda a, p, d: -((a * d) ** p)),
        ),
        Mistake(
            "the exponent dropped",
            "Without the exponent it is ALiBi.",
            36,
            lambda a, p, distance: _log(a, p, distance, lambda a, p, d: -a * d),
        ),
        Mistake(
            "heads last",
            "The result is (H, L, S): heads first, as in the scores.",
            36,
            lambda a, p, distance: np.moveaxis(kerple_power_bias(a, p, distance), -3, -1),
        ),
    ),
    chapter=36,
    scores=lambda f: adding(lambda i, j: f(ONE, ONE / 2, apart(i, j))),
)


# ---- Sandwich -----------------------------------------------------------------------------------


def _sandwich_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(2, np.array([[0, -1], [1, 0]]), d=4)
    for distance in _distances():
        yield case(int(rng.integers(2, 17)), distance)
        yield case(3, distance, 6, float(rng.integers(20, 900)))
    for n in range(4):
        distance = rng.integers(-20, 20, (2, 3, 4)[n % 2 :])
        H, d = (int(size) for size in rng.integers(1, 9, 2))
        yield case(H, distance, 2 * d, float(rng.integers(20, 10**5)))


def _sandwich(first=1, width=2.0, below=0.5, share=lambda h, H: 8 * h / H):
    """The formula with one part of it replaced."""

    def bias(n_heads, distance, d=128, base=10000.0):
        frequencies = base ** (-width * (first + np.arange(d // 2)) / d)
        total = np.cos(distance[..., None] * frequencies).sum(axis=-1)[..., None, :, :]
        scale = share(np.arange(1, n_heads + 1), n_heads)[:, None, None]
        return (total - below * d) / scale

    return bias


SANDWICH = Exercise(
    "sandwich_bias",
    sandwich_bias,
    _sandwich_cases,
    (
        Mistake(
            "c from 0",
            "c runs from 1 to d/2: the first cosine already turns by less than a radian a token.",
            36,
            _sandwich(first=0),
        ),
        Mistake(
            "nothing subtracted",
            "At distance 0 all d/2 cosines are 1; their sum is subtracted, so that the bias is 0.",
            36,
            _sandwich(below=0.0),
        ),
        Mistake(
            "multiplied by 8h/H",
            "The sum is divided by 8h/H: the last head gets the least.",
            36,
            _sandwich(share=lambda h, H: H / (8 * h)),
        ),
        Mistake(
            "ALiBi's slopes",
            "The heads divide by 8h/H, in equal steps, not by powers of two.",
            36,
            _sandwich(share=lambda h, H: 2.0 ** (8 * h / H)),
        ),
        Mistake(
            "the exponent c/d",
            "The exponent is 2c/d, so that the last cosine turns by 1/base from token to token.",
            36,
            _sandwich(width=1.0),
        ),
        Mistake(
            "a reward for distance",
            "The cosines are largest at distance 0; the bias falls from there.",
            36,
            lambda *args, **options: -sandwich_bias(*args, **options),
        ),
    ),
    chapter=36,
    scores=lambda f: adding(lambda i, j: f(1, apart(i, j), 8, 10.0)),
)


# ---- FIRE ---------------------------------------------------------------------------------------


def _network(
    rng: np.random.Generator, M: int, H: int, c: float, L: float, dtype: type = np.float64
) -> dict[str, np.ndarray]:
    shapes = {"W1": (1, M), "b1": (M,), "W2": (M, H), "b2": (H,)}
    params: dict[str, np.ndarray] = {
        key: rng.standard_normal(shape).astype(dtype) for key, shape in shapes.items()
    }
    return params | {"c": np.array(c, dtype), "L": np.array(L, dtype)}


def _fire_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = {"W1": [[1.0]], "b1": [0.0], "W2": [[1.0]], "b2": [0.0], "c": 1.0, "L": 2.0}
    unit = {key: np.array(x) for key, x in one.items()}
    yield case(unit, np.array([2, 4]), np.array([0, 1]))
    for dtype in DTYPES:
        for q, k in ((range(4), range(4)), (range(12), range(9)), ([3, 90], [0, 2, 95])):
            for c in (0.1, -0.4):
                yield case(_network(rng, 5, 3, c, 6.0, dtype), np.array(q), np.array(k))
    yield case(
        _network(rng, 5, 3, 0.1, 6.0), np.array([[0, 8], [7, 9]]), np.array([[0, 1], [5, 6]])
    )
    for eps in (1e-3, 0.1, 0.5):
        yield case(
            _network(rng, 5, 3, 0.3, 4.0), rng.integers(0, 20, 5), rng.integers(0, 20, 6), eps
        )


def _fire(
    top=lambda i, j, L: np.maximum(i, L),
    away=np.abs,
    psi=lambda c, x: np.log1p(np.abs(c) * x),
    active=lambda x: np.maximum(x, 0),
):
    """The formula with one part of it replaced."""

    def bias(params, q_positions, k_positions, eps=1e-6):
        dtype, c = params["W1"].dtype, params["c"]
        i, j = q_positions[..., :, None], k_positions[..., None, :]
        largest = top(i, j, params["L"]).astype(dtype)
        x = psi(c, away(i - j).astype(dtype)) / (psi(c, largest) + dtype.type(eps))
        hidden = active(x[..., None] * params["W1"][0] + params["b1"])
        return np.moveaxis(hidden @ params["W2"] + params["b2"], -1, -3)

    return bias


def _trained() -> dict:
    """A network of one head, the same at every call."""
    return _network(np.random.default_rng(0), 5, 1, 0.1, 6.0)


FIRE = Exercise(
    "fire_bias",
    fire_bias,
    _fire_cases,
    (
        Mistake(
            "the larger of key and threshold",
            "max(i, L) has the position of the query: one number a row. With equally many queries "
            "and keys the shapes don't tell.",
            36,
            _fire(top=lambda i, j, L: np.maximum(j, L)),
        ),
        Mistake(
            "no threshold",
            "Rows before L divide by psi(L), so that distances near the beginning count as small.",
            36,
            _fire(top=lambda i, j, L: i * np.ones_like(j)),
        ),
        Mistake(
            "the threshold alone",
            "Beyond L a row divides by its own position, so that the quotient stays at most 1.",
            36,
            _fire(top=lambda i, j, L: L + 0 * i),
        ),
        Mistake(
            "without the logarithm",
            "psi(x) = ln(1 + |c| x) is taken of distance and position, then they are divided.",
            36,
            _fire(psi=lambda c, x: np.abs(c) * x),
        ),
        Mistake(
            "the signed distance",
            "The distance goes in without its sign.",
            36,
            _fire(away=lambda d: np.maximum(d, 0)),
        ),
        Mistake(
            "no ReLU",
            "Between the two layers stands a ReLU; without it f is a straight line.",
            36,
            _fire(active=lambda x: x),
        ),
    ),
    chapter=36,
    further=(
        Mistake(
            "distances for their logarithms",
            "psi(x) = ln(1 + |c| x) is taken of distance and position, then they are divided.",
            36,
            _fire(psi=lambda c, x: x),
        ),
    ),
    scores=lambda f: adding(lambda i, j: f(_trained(), i, j)),
)

EXERCISES = (KERPLE_LOG, KERPLE_POWER, SANDWICH, FIRE)
