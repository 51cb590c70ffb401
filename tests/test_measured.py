"""What the checker says of wrong functions that no known mistake explains: what they do."""

import math

import numpy as np
import pytest

import pe_numpy as pe
from pe_numpy.homework.cases import Exercise, Mistake, case, run
from pe_numpy.homework.check import judge
from pe_numpy.homework.measured import difference, explain, measure
from pe_numpy.homework.registry import EXERCISES

MEASURED = [name for name, exercise in EXERCISES.items() if exercise.scores is not None]


# ---- wrong functions, and what they do -----------------------------------------------------------


def theta(x):
    return pe.rope_frequencies(x.shape[-1])


def rope_of(at=lambda p: p, frequencies=lambda x, p: theta(x), after=lambda y: y):
    """RoPE with a part replaced; frequencies that are given stay."""

    def turned(x, positions, f=None, layout="interleaved"):
        f = frequencies(x, np.asarray(positions)) if f is None else f
        return after(pe.rope(x, at(np.asarray(positions)), f, layout)).astype(x.dtype)

    return turned


def scores_of(turn_q, turn_k=lambda k, n: pe.rope(k, n)):
    return lambda q, k, m, n: (
        turn_q(q, m) @ np.swapaxes(turn_k(k, n), -1, -2) * q.dtype.type(q.shape[-1] ** -0.5)
    )


def one_pair_back(k, n):
    turned, back = pe.rope(k, n), pe.rope(k, -n)
    turned[..., :2] = back[..., :2]
    return turned


def past_alone(q, k, table, distance):
    m = len(table) // 2
    return pe.shaw_scores(q, k, table, np.clip(distance, -m, m - 1))


def modulo_five(q, k, table, distance):
    m = len(table) // 2
    return pe.shaw_scores(q, k, table, np.where(abs(distance) > m, distance % 5 % m, distance))


def without_v(q, k, r, u, v, distance):
    return pe.transformer_xl_scores(q, k, r, 2 * u, 0 * v, distance)


def keys_moved(q, k, pq, pk, bias=None):
    return pe.tupe_scores(q + pq, k, pq, pk, bias)


def stopped(p, a, distance):
    return pe.kerple_log_bias(p, a, np.clip(distance, -60, 60))


def short_future(slopes, distance, future_slopes=None):
    return pe.alibi_bias(slopes, np.maximum(distance, -2), future_slopes)


def fading(q, k, distance, f=None, layout="interleaved"):
    near = np.exp(-np.abs(distance) / 50).astype(q.dtype)
    return pe.rotary_distance_scores(q, k, distance, f, layout) * near


def root(q, k, distance, f=None, layout="interleaved"):
    distance = np.sign(distance) * np.sqrt(np.abs(distance))
    return pe.rotary_distance_scores(q, k, distance, f, layout)


def mirrored(q, k, distance, f=None, layout="interleaved"):
    return pe.rotary_distance_scores(q, k, np.abs(distance), f, layout)


def own_gate(q, k):
    gate = np.diff(k, axis=-1, prepend=np.zeros_like(k[..., :1]))
    return np.repeat(gate[..., None, :], q.shape[-1], axis=-2)


def whole_groups(i, j, window, group):
    return pe.self_extend_distance(i // 3 * 3, j // 3 * 3, window, group)


def waves(slopes, distance, future_slopes=None):
    wave = 2 + np.cos(distance[..., None, :, :])
    return pe.alibi_bias(slopes, distance, future_slopes) * wave.astype(slopes.dtype)


def unbounded(n_heads, distance, d=128, base=10000.0):
    far = 0.02 * np.abs(distance)[..., None, :, :]
    return pe.sandwich_bias(n_heads, distance, d, base) * (1 + far)


def fire_unlimited(params, i, j, eps=1e-6):
    x = np.abs(i[..., :, None] - j[..., None, :]).astype(params["W1"].dtype)
    hidden = np.maximum(x[..., None] * params["W1"][0] + params["b1"], 0)
    return np.moveaxis(hidden @ params["W2"] + params["b2"], -1, -3)


NO = "This is no relative encoding: scores change by up to {} of the largest when all positions "
YES = (
    "This is a relative encoding, which it should not be: scores stay when all positions move by 1"
)
PLANTED = [
    # an absolute position in the angles; a constant; one pair of the keys turned back
    ("rope", rope_of(at=lambda p: p + 0.01 * p**2), NO.format(1.3)),
    ("rope", rope_of(after=lambda y: y + 0.1 * np.cos(np.arange(y.shape[-1]))), NO.format(0.17)),
    ("rotary_scores", scores_of(pe.rope, one_pair_back), NO.format(1.3)),
    ("rope", rope_of(after=lambda y: np.maximum(y, 0)), NO.format(0.54)),
    # the length, or the other positions, have a say
    ("rope", rope_of(frequencies=lambda x, p: pe.rope_frequencies(x.shape[-1], 1e4 + 99 * p.max())),
     "Old scores change as the sequence grows"),
    ("rope", rope_of(at=lambda p: p - p.mean(axis=-1, keepdims=True)), "A pair's score depends on"),
    ("forgetting_bias", own_gate, "The tokens between have no say"),
    # pairs are left out, or more than turned
    ("rope", rope_of(frequencies=lambda x, p: theta(x)[: max(1, x.shape[-1] // 4)]),
     "It turns 1 of 2 pairs (chapter 70)."),
    ("rope", rope_of(frequencies=lambda x, p: 0 * theta(x)), "Position changes nothing"),
    ("rope", rope_of(after=lambda y: 1.1 * y), "It turns, and multiplies by 1.21, where 1 is"),
    ("rotary_distance_scores", fading, "It does more than turn: lengths are not kept"),
    ("rotary_distance_scores", root, "Turns do not add up: a turn by a, then one by b, is not"),
    ("rope", rope_of(at=lambda p: p, after=lambda y: y / (1 + np.sum(y * y, -1, keepdims=True))),
     "The scores are no longer linear in the query and in the key"),
    ("xpos", lambda x, p, f=None, scale_base=512.0, key=False, centre=0.0, layout="interleaved": (
        pe.rope(x, p, f, layout) * x.dtype.type(1.5)), "It turns alone: lengths are kept"),
    # renumbered in another way, or not at all
    ("rotary_distance_scores", mirrored, "Past and future are alike: places (9, 2) and (2, 9)"),
    ("rerope_distance", lambda D, w, stretch=None: np.asarray(D, float),
     "Scores go on changing at distances of 193, 398 and 804, where they should be equal"),
    ("streaming_distance", lambda i, j, w, z: pe.relative_distance(i, j) / 2.0, YES),
    ("self_extend_distance", whole_groups,
     "Scores stay when all positions move by 6, those of the right function when they move by 2"),
    ("chunk_distance", lambda i, j, s, c: pe.chunk_distance(i, j, s, c) + i[..., :, None] / 8,
     "Scores do not stay when all positions move by 8, as they should"),
    ("chunk_distance", lambda i, j, s, c: np.sign(pe.relative_distance(i, j)) * 3.0,
     "Scores stay when all positions move by 1, those of the right function when they move by 8"),
    # tables that end elsewhere, and terms
    ("shaw_scores", past_alone, "have rank 7, not 8 (chapter 70)."),
    ("shaw_scores", modulo_five, "Scores go on changing at distances of 193, 398 and 804"),
    ("shaw_scores", lambda q, k, table, D: pe.shaw_scores(q, k, table, D) + table[:1] @ table[:1].T,
     "A term of the positions alone should not be there: look at the scores of zeros"),
    ("transformer_xl_scores", without_v, "A term of the positions alone is missing"),
    ("tupe_scores", keys_moved, "What position adds depends on the contents"),
    ("deberta_scores", lambda q, k, a, b, D, p=None: pe.deberta_scores(q, k, a, b, 0 * D, 0 * D),
     "Position changes nothing: one content has one score at all places"),
    ("rerope_distance", lambda D, w, stretch=None: np.clip(D, -1, 1) * float(w),
     "A distance of 1 has the score of 193, 398 and 804, where near and far should differ"),
    # biases
    ("kerple_log_bias", stopped, "Distances of 193, 398 and 804 have one score"),
    ("alibi_bias", short_future, "Past and future differ: places (9, 2) and (2, 9) should have"),
    ("alibi_bias", waves, "Scores of a token with itself rise at times, where they should fall"),
    ("sandwich_bias", unbounded, "Scores grow with the distance: one at 193, 398 and 804 is more"),
    ("fire_bias", fire_unlimited, YES),
    # codes that do not say where
    ("sinusoidal", lambda p, D, base=1e4, layout="interleaved": (
        pe.sinusoidal(0 * np.asarray(p) + 3.0, D)), "Position changes nothing"),
    ("learned", lambda table, p: table[np.asarray(p) - np.min(p)], "A pair's score depends on"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function", "words"), PLANTED)
def test_what_a_wrong_function_does_is_told(name, function, words):
    verdict = pe.check(name, function)
    assert not verdict.passed and verdict.mistake == ""
    assert words in verdict.measured and verdict.measured.endswith(" (chapter 70).")
    assert f"\n    {verdict.measured}\n" in str(verdict)


QUIET = [  # wrong, and of the same kind as the right one
    ("rope", rope_of(at=lambda p: p + 2)),
    ("rope", rope_of(frequencies=lambda x, p: theta(x) + 1e-7)),
    ("rope", rope_of(frequencies=lambda x, p: theta(x).astype(np.float32).astype(float))),
    ("rope", rope_of(after=lambda y: y * (1 + 1e-6 * np.cos(np.arange(y.shape[-1]))))),
    ("rope", rope_of(frequencies=lambda x, p: theta(x) ** 2.1)),  # it turns slowly, but turns
    ("rope", rope_of(after=lambda y: y.astype(np.float16))),
    ("rope", rope_of(after=lambda y: np.full_like(y, np.nan))),
    ("rope", lambda x, *rest, **options: pe.rope(x.astype(np.float16), *rest, **options)),
    ("rope", lambda x, *rest, **options: pe.rope(x, *rest, **options) + 0j),
    ("rope", lambda x, *rest, **options: pe.rope(x, *rest, **options)[..., :1]),
    ("rope", lambda x, p, f=None: pe.rope(x, p + p**2, f)),  # it knows no layout
    ("shaw_scores", lambda q, k, table, D: pe.shaw_scores(q, k, table[:, ::-1], D)),
    ("alibi_bias", lambda s, D, future_slopes=None: pe.alibi_bias(s, D, future_slopes) / 3),
    ("t5_bias", lambda table, D, *a, **o: np.swapaxes(pe.t5_bias(table, D, *a, **o), -1, -2)),
    ("sinusoidal", lambda p, D, base=1e4, layout="interleaved": (
        1 + 1e-5 * pe.sinusoidal(p, D, base, layout))),  # nearly the same everywhere
    ("softmax", lambda x, axis=-1: 2 * pe.softmax(x, axis)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function"), QUIET)
def test_nothing_is_said_of_what_is_no_other_kind_or_no_score_at_all(name, function):
    verdict = pe.check(name, function)
    assert not verdict.passed and verdict.measured == ""


def test_a_known_name_wins():
    verdict = pe.check("rotary_scores", lambda q, k, m, n: (
        scores_of(pe.rope, lambda k, n: pe.rope(k, -n))(q, k, m, n)))  # fmt: skip
    assert verdict.mistake == "keys turned back" and verdict.measured == ""


# ---- right functions, in odd styles --------------------------------------------------------------


def complex_rope(x, positions, f=None, layout="interleaved"):
    f = theta(x) if f is None else np.asarray(f)
    n, turned = len(f), x.copy()
    first, second = (
        (slice(0, 2 * n, 2), slice(1, 2 * n, 2))
        if layout == "interleaved"
        else (slice(0, n), slice(n, 2 * n))
    )
    z = (x[..., first] + 1j * x[..., second]) * np.exp(1j * np.asarray(positions)[..., None] * f)
    turned[..., first], turned[..., second] = z.real, z.imag
    return turned


def rope_by_matrices(x, positions, f=None, layout="interleaved"):
    f = theta(x) if f is None else np.asarray(f, float)
    n, K = len(f), x.shape[-1]
    order = np.r_[0 : 2 * n : 2, 1 : 2 * n : 2] if layout == "half" else np.arange(2 * n)
    R = np.zeros((*np.shape(positions), K, K)) + np.eye(K)
    for at in np.ndindex(np.shape(positions)):
        block = pe.rope_matrix(float(np.asarray(positions)[at]), f)
        R[at][: 2 * n, : 2 * n] = block[np.ix_(order, order)]
    return np.einsum("...ab,...b->...a", R, x.astype(float)).astype(x.dtype)


def rope_by_rotate_half(x, positions, f=None, layout="interleaved"):
    f = theta(x) if f is None else np.asarray(f)
    n = len(f)
    part, rest = x[..., : 2 * n], x[..., 2 * n :]
    if layout == "interleaved":
        other = np.stack([-part[..., 1::2], part[..., ::2]], -1).reshape(part.shape)
        angle = np.repeat(np.asarray(positions)[..., None] * f, 2, -1)
    else:
        other = np.concatenate([-part[..., n:], part[..., :n]], -1)
        angle = np.tile(np.asarray(positions)[..., None] * f, 2)
    turned = part * np.cos(angle) + other * np.sin(angle)
    return np.concatenate([turned, rest], -1).astype(x.dtype)


def sum_first(q, k, table, distance):
    m, K = len(table) // 2, q.shape[-1]
    R = table[np.clip(distance, -m, m) + m]
    sums = k[..., None, :, :] + R
    return np.einsum("...ld,...lsd->...ls", q, sums) * q.dtype.type(1 / math.sqrt(K))


def by_one_hot(table, positions):
    return np.eye(len(table), dtype=table.dtype)[positions] @ table


def xl_by_terms(q, k, r, u, v, distance):
    rows = r[:, distance - distance.min()]  # (H, L, S, K)
    content = (q + u[:, None]) @ np.swapaxes(k, -1, -2)
    place = np.einsum("...hld,hlsd->...hls", q + v[:, None], rows)
    return ((content + place) / math.sqrt(q.shape[-1])).astype(q.dtype)


def loops_of_distance(q, k):
    q, k = np.asarray(q), np.asarray(k)
    if q.ndim == k.ndim == 1:
        return np.array([[a - b for b in k] for a in q])
    return q[..., None] - k[..., None, :]


def alibi_both(slopes, distance, future_slopes=None):
    future = slopes if future_slopes is None else future_slopes
    D = distance[..., None, :, :].astype(slopes.dtype)
    return np.where(D < 0, future[:, None, None] * D, -slopes[:, None, None] * D)


def two_products(q, k, m, n):
    """Cosines and sines of the keys' and the queries' angles apart."""
    f, half = theta(q), lambda x: (x[..., ::2], x[..., 1::2])
    (a, b), (c, d) = half(q), half(k)
    qc, qs = (g(m[..., None] * f) for g in (np.cos, np.sin))
    kc, ks = (g(n[..., None] * f) for g in (np.cos, np.sin))
    x, y = a * qc - b * qs, a * qs + b * qc
    z, w = c * kc - d * ks, c * ks + d * kc
    scores = x @ np.swapaxes(z, -1, -2) + y @ np.swapaxes(w, -1, -2)
    return (scores / math.sqrt(q.shape[-1])).astype(q.dtype)


def keys_alone_turn(q, k, distance, f=None, layout="interleaved"):
    f = theta(q) if f is None else np.asarray(f)
    n = len(f)
    order = np.arange(2 * n).reshape(n, 2) if layout == "interleaved" else None
    order = np.arange(2 * n).reshape(2, n).T if order is None else order
    a, b = (q[..., order[:, c]][..., :, None, :] for c in (0, 1))
    c, d = (k[..., order[:, c]][..., None, :, :] for c in (0, 1))
    angle = np.asarray(distance)[..., None] * f
    pairs = (a * c + b * d) * np.cos(angle) + (b * c - a * d) * -np.sin(angle)
    rest = q[..., 2 * n :] @ np.swapaxes(k[..., 2 * n :], -1, -2)
    return ((pairs.sum(-1) + rest) / math.sqrt(q.shape[-1])).astype(q.dtype)


def where_rerope(distance, window, stretch=None):
    D = np.asarray(distance, float)
    far = window if stretch is None else window + (np.abs(D) - window) / stretch
    return np.copysign(np.where(np.abs(D) < window, np.abs(D), far), D) + 0.0


def streaming_by_loops(i, j, window, sinks):
    i, j = np.asarray(i), np.asarray(j)
    full = sinks + window - 1
    query = np.minimum(i, full)[..., :, None]
    slot = np.where(j < sinks, j, 0)[..., None, :]
    return (
        np.where((j < sinks)[..., None, :], query - slot, i[..., :, None] - j[..., None, :]) * 1.0
    )


def half_of_both(i, j, window, group):
    i, j = np.asarray(i)[..., :, None], np.asarray(j)[..., None, :]
    D = i - j
    groups = np.floor_divide(i, group) - np.floor_divide(j, group)
    return np.where(abs(D) < window, D, groups + np.sign(D) * window * (1 - 1 / group))


def kerple_by_log(p, a, distance):
    inside = 1 + a[:, None, None] * np.abs(distance)[..., None, :, :].astype(p.dtype)
    return -p[:, None, None] * np.log(inside)


def kerple_by_exp(a, p, distance):
    D = np.abs(distance)[..., None, :, :].astype(a.dtype)
    with np.errstate(divide="ignore"):
        return -a[:, None, None] * np.exp(p[:, None, None] * np.log(D))


def by_halves(positions, d_model, base=10000.0, layout="interleaved"):
    powers = np.exp(-math.log(base) * np.arange(0, d_model, 2) / d_model)
    z = np.exp(1j * np.asarray(positions, float)[..., None] * powers)
    code = np.zeros((*np.shape(positions), d_model))
    places = (slice(0, None, 2), slice(1, None, 2))
    if layout == "concatenated":
        places = (slice(0, d_model // 2), slice(d_model // 2, None))
    code[..., places[0]], code[..., places[1]] = z.imag, z.real
    return code


def outer_gates(q, k):
    return np.subtract(q[..., None], k[..., None, :])


def doubled(q, k, pq, pk, bias=None):
    both = np.concatenate([q, pq + 0 * q], -1) @ np.swapaxes(
        np.concatenate([k, pk + 0 * k], -1), -1, -2
    )
    scores = both / q.dtype.type(math.sqrt(2 * q.shape[-1]))
    return scores if bias is None else scores + bias


def every_term(q, k, q_table, k_table, d, p2c=None):
    m = k_table.shape[-2] // 2
    rows = np.clip(d + m, 0, 2 * m - 1)
    other = np.clip((-d if p2c is None else p2c) + m, 0, 2 * m - 1)
    scores = q @ np.swapaxes(k, -1, -2)
    scores = scores + np.einsum("...hld,hlsd->...hls", q, k_table[:, rows])
    scores = scores + np.einsum("...hsd,hlsd->...hls", k, q_table[:, other])
    return (scores / math.sqrt(3 * q.shape[-1])).astype(q.dtype)


def soft_by_hand(x, positions, f=None, bias=0.0):
    f = pe.pope_frequencies(x.shape[-1]) if f is None else f
    radius = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    z = radius * np.exp(1j * (np.asarray(positions)[..., None] * f + np.clip(bias, -2 * np.pi, 0)))
    return np.stack([z.real, z.imag], -1).reshape(*x.shape[:-1], -1).astype(x.dtype)


def angles_by_sum(x, coordinates, f, layout="interleaved"):
    angle = sum(np.asarray(coordinates)[..., a, None] * f[a] for a in range(len(f)))
    one = np.ones(np.shape(angle)[:-1])
    n, y = f.shape[-1], x.copy()
    order = np.arange(2 * n).reshape((n, 2) if layout == "interleaved" else (2, n))
    first, second = order.T if layout == "interleaved" else order
    c, s = np.cos(angle) * one[..., None], np.sin(angle)
    y[..., first] = x[..., first] * c - x[..., second] * s
    y[..., second] = x[..., first] * s + x[..., second] * c
    return y


def fire_by_loops(params, i, j, eps=1e-6):
    dtype = params["W1"].dtype
    i, j = np.asarray(i)[..., :, None].astype(dtype), np.asarray(j)[..., None, :].astype(dtype)
    c = np.abs(params["c"])
    x = np.log(1 + c * np.abs(i - j))
    x = x / (np.log(1 + c * np.maximum(i, params["L"])) + dtype.type(eps))
    total = params["b2"].reshape(-1, 1, 1) + 0 * x[..., None, :, :]
    for n in range(len(params["b1"])):
        hidden = np.maximum(x * params["W1"][0, n] + params["b1"][n], 0)
        total = total + params["W2"][n].reshape(-1, 1, 1) * hidden[..., None, :, :]
    return total.astype(dtype)


ODD = [
    ("rope", complex_rope),
    ("rope", rope_by_matrices),
    ("rope", rope_by_rotate_half),
    ("rope", lambda x, positions, f=None, layout="interleaved": (
        pe.rope(pe.rope(x, np.asarray(positions) - 7, f, layout), 7, f, layout))),
    ("rope_frequencies", lambda d, base=1e4: [math.exp(-2 * i / d * math.log(base))
                                              for i in range(d // 2)]),
    ("rotary_scores", two_products),
    ("rotary_scores", scores_of(complex_rope, complex_rope)),
    ("rotary_distance_scores", keys_alone_turn),
    ("rope_nd", angles_by_sum),
    ("pope", soft_by_hand),
    ("relative_distance", loops_of_distance),
    ("rerope_distance", where_rerope),
    ("self_extend_distance", half_of_both),
    ("streaming_distance", streaming_by_loops),
    ("shaw_scores", sum_first),
    ("transformer_xl_scores", xl_by_terms),
    ("tupe_scores", doubled),
    ("deberta_scores", every_term),
    ("alibi_bias", alibi_both),
    ("alibi_slopes", lambda n: [*pe.alibi_slopes(n)]),
    ("kerple_log_bias", kerple_by_log),
    ("kerple_power_bias", kerple_by_exp),
    ("fire_bias", fire_by_loops),
    ("forgetting_bias", outer_gates),
    ("sinusoidal", by_halves),
    ("sinusoidal", lambda p, D, base=1e4, layout="interleaved": (
        by_halves(p, D, base, layout).astype(np.longdouble).astype(float))),
    ("learned", by_one_hot),
    ("learned", lambda table, positions: np.take(table, positions, axis=0)),
    ("t5_bias", lambda table, D, max_distance=128, bidirectional=True: np.stack(
        [column[pe.t5_bucket(D, len(table), max_distance, bidirectional)] for column in table.T],
        axis=-3)),
    ("log_n_scale", lambda *args: np.asarray(pe.log_n_scale(*args)).tolist()),
    ("hierarchical", lambda table, p, alpha=0.4: (
        lambda u: (alpha * u[np.asarray(p) // len(u)] + (1 - alpha) * u[np.asarray(p) % len(u)])
        .astype(table.dtype))((table - alpha * table[0]) / (1 - alpha))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function"), ODD)
def test_a_right_function_passes_whatever_its_style_and_has_no_difference(name, function):
    exercise = EXERCISES[name]
    verdict = judge(exercise, run(function, exercise.all_cases()), explain=forbidden)
    assert verdict.passed, str(verdict)
    if exercise.scores is not None:
        assert explain(exercise, measure(exercise, function)) == ""


def forbidden():
    raise AssertionError("a right function is not explained")


@pytest.mark.parametrize("name", MEASURED)
def test_the_reference_can_be_measured_and_does_not_differ_from_itself(name):
    found = measure(EXERCISES[name], EXERCISES[name].reference)
    assert found is not None and difference(found, found) == ""


# ---- how it is called ----------------------------------------------------------------------------


def test_a_function_of_another_library_is_measured_with_its_own_arrays():
    class Own:
        def __init__(self, array):
            self.array = array

        def __array__(self, dtype=None, copy=None):
            return self.array

    def rotary_scores(q, k, m, n):
        return Own(scores_of(pe.rope, one_pair_back)(q.array, k.array, m.array, n.array))

    assert NO.format(1.3) in pe.check("rotary_scores", rotary_scores, to=Own).measured


def test_arguments_are_copies_in_every_measurement():
    def greedy(table, positions):
        codes = table[np.maximum(np.asarray(positions) - 1, 0)].copy()
        table[:] = 0
        return codes

    kept = measure(EXERCISES["learned"], lambda table, p: table[np.maximum(np.asarray(p) - 1, 0)])
    assert measure(EXERCISES["learned"], greedy) == kept


def test_a_toy_exercise_without_scores_is_not_measured():
    toy = Exercise("double", lambda x: 2 * x, lambda rng: iter([case(np.ones(2))]), (
        Mistake("squared", "Add.", 20, lambda x: x * x),), chapter=20)  # fmt: skip
    assert measure(toy, lambda x: 3 * x) is None and explain(toy, None) == ""


def test_what_is_no_number_is_not_told():
    right = measure(EXERCISES["rope"], pe.rope)
    yours = tuple(found._replace(shift=0, leak=math.inf) for found in right)
    assert difference(right, yours) == ""
    yours = tuple(found._replace(shift=0, leak=0.25) for found in right)
    assert difference(right, yours).startswith(NO.format(0.25))
