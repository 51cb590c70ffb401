"""Positions of every dtype: unsigned and narrow integers give what int64 gives, in every function.

A difference of unsigned numbers wraps, a difference or a product of narrow ones overflows: both in
silence. What is tried here is one position, one distance after another of each dtype, near its
ends; what int64 gives is judged by the tests of each function.
"""

import inspect

import numpy as np
import pytest

import pe_numpy as pe
from pe_numpy import checks
from pe_numpy.judging.schemes import every_scheme

WORDS = ("position", "distance", "coordinates", "times", "digit", "token_ids")
NOT_PLACES = {  # parameters of such a name that are numbers, or vectors
    "deberta_bucket": "max_distance",
    "nezha_table": "max_relative_position",
    "t5_bias": "max_distance",
    "t5_bucket": "max_distance",
    "tupe_scores": "vectors of positions",
    "rope_matrix": "one number",
}
DTYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32")
ENDS = {"uint8": (0, 255), "int8": (-128, 127)}  # of the others only these numbers matter, too
FIRE = {"W1": [[1.0, -1.0]], "b1": [0.0, 1.0], "W2": [[1.0], [2.0]], "b2": [0.5], "c": 1.0, "L": 4}


def data(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def tokens(at, seed):
    return data(len(at), 8, seed=seed)


def pairs(distance):
    L, S = distance.shape
    return data(L, 8, seed=1), data(S, 8, seed=2)


def blockwise(i, j, **choices):
    q, k = tokens(i, 1), tokens(j, 2)
    return pe.attention_blockwise(q, k, k, block=2, q_positions=i, k_positions=j, **choices)


def handed(i, j):
    """All distances that a bias function is given, block by block."""
    seen = []
    blockwise(i, j, bias=lambda d: seen.append(d.astype(np.float64)) or 0.0 * d)
    return np.concatenate([block.ravel() for block in seen])


SCHEMES = every_scheme(256)
# Each takes positions of queries i and of keys j, of one dtype.
OF_POSITIONS = {
    "attention_blockwise: causal": lambda i, j: blockwise(i, j, causal=True),
    "attention_blockwise: window": lambda i, j: blockwise(i, j, causal=True, window=3),
    "attention_blockwise: two-sided window": lambda i, j: blockwise(i, j, window=3),
    "attention_blockwise: bias": handed,
    "causal_mask": pe.causal_mask,
    "window_mask": lambda i, j: pe.window_mask(i, j, 3),
    "window_mask: sinks": lambda i, j: pe.window_mask(i, j, 3, sinks=2),
    "chunk_mask": lambda i, j: pe.chunk_mask(i, j, 3),
    "relative_distance": pe.relative_distance,
    "self_extend_distance": lambda i, j: pe.self_extend_distance(i, j, 4, 2),
    "chunk_distance": lambda i, j: pe.chunk_distance(i, j, 6, 2),
    "streaming_distance": lambda i, j: pe.streaming_distance(i, j, 4, 2),
    "rotary_values": lambda i, j: pe.rotary_values(
        data(len(i), len(j)), tokens(j, 1), i, j, i[-1:]
    ),
    "mla_scores": lambda i, j: pe.mla_scores(
        data(1, len(i), 4), data(1, len(i), 8), data(len(j), 2), tokens(j, 1), data(1, 4, 2), i, j
    ),
    "fire_bias": lambda i, j: pe.fire_bias(FIRE, i, j),
}
# Each takes positions of one axis.
OF_ONE = {
    "rope": lambda i: pe.rope(tokens(i, 1), i),
    "rope: whole frequencies": lambda i: pe.rope(tokens(i, 1), i, i[-2:]),
    "rope_nd": lambda i: pe.rope_nd(tokens(i, 1), i[:, None], data(1, 4)),
    "rope_nd: whole frequencies": lambda i: pe.rope_nd(tokens(i, 1), i[:, None], i[None, -2:]),
    "xpos": lambda i: pe.xpos(tokens(i, 1), i, centre=50),
    "pope": lambda i: pe.pope(tokens(i, 1), i),
    "pope: whole frequencies": lambda i: pe.pope(tokens(i, 1), i, np.resize(i, 8)),
    "sinusoidal": lambda i: pe.sinusoidal(i, 8),
    "timing_signal": lambda i: pe.timing_signal(i, 8),
    "complex_order": lambda i: pe.complex_order(data(len(i), 4), data(4), data(4), i),
    "floater": lambda i: pe.floater([1.0], lambda p, t: 0.01 * p + t, i),
    "fourier_features": lambda i: pe.fourier_features(i, i[None]),
    "rank2_rotation": lambda i: pe.rank2_rotation(data(8), data(8, seed=1), i),
    "alibi_key_bias": lambda i: pe.alibi_key_bias([0.5, 0.25], i),
}
# The same, for positions from 0 on.
FROM_ZERO = {
    "learned": lambda i: pe.learned(data(256, 4), i),
    "hierarchical": lambda i: pe.hierarchical(data(16, 4), i),
    "attention_temperature": lambda i: pe.attention_temperature(i, 8),
    "log_n_scale": lambda i: pe.log_n_scale(i, 8),
    "to_digits": lambda i: pe.to_digits(i, 10, 3),
    "from_digits": lambda i: pe.from_digits(i[:3], 256),
    "digit_positions": lambda i: pe.digit_positions(i, i[:2], offset=100),
}
# Each takes distances (L, S) of one dtype; each sign of them where it has signs.
OF_DISTANCES = {
    "alibi_bias": lambda d: pe.alibi_bias([0.5], d, [0.25]),
    "t5_bucket": pe.t5_bucket,
    "t5_bias": lambda d: pe.t5_bias(data(32, 2), d),
    "deberta_bucket": lambda d: pe.deberta_bucket(d, 8, 64),
    "kerple_log_bias": lambda d: pe.kerple_log_bias([1.0], [1.0], d),
    "kerple_power_bias": lambda d: pe.kerple_power_bias([1.0], [1.0], d),
    "sandwich_bias": lambda d: pe.sandwich_bias(2, d),
    "rerope_distance": lambda d: pe.rerope_distance(d, 4, stretch=2),
    "rotary_distance_scores": lambda d: pe.rotary_distance_scores(*pairs(d), d),
    "rotary_distance_scores: whole frequencies": lambda d: pe.rotary_distance_scores(
        *pairs(d), d, d.ravel()[-2:]
    ),
    "shaw_scores": lambda d: pe.shaw_scores(*pairs(d), data(9, 8), d),
    "shaw_values": lambda d: pe.shaw_values(data(*d.shape), data(d.shape[1], 8), data(9, 8), d),
    "relative_key_query_scores": lambda d: pe.relative_key_query_scores(*pairs(d), data(511, 8), d),
    "transformer_xl_scores": lambda d: pe.transformer_xl_scores(
        *(x[None] for x in pairs(d)),
        data(1, int(d.max()) - int(d.min()) + 1, 8),
        *data(2, 1, 8),
        d,
    ),
    "deberta_scores": lambda d: pe.deberta_scores(*(x[None] for x in pairs(d)), *data(2, 8, 8), d),
    "deberta_scores: p2c_distance": lambda d: pe.deberta_scores(
        *(x[None] for x in pairs(d)), *data(2, 8, 8), d, d[:, ::-1]
    ),
    "relative_gather": lambda d: pe.relative_gather(data(d.shape[0], 511), d, 255),
    "decomposed_scores": lambda d: pe.decomposed_scores(*pairs(d), *data(2, 511, 8), d, d),
}


def ends(dtype):
    """Positions near the ends of a dtype, some far apart and some consecutive, (i, j) each."""
    low, high = ENDS.get(dtype, ENDS["uint8"] if dtype[0] == "u" else ENDS["int8"])
    far = [low, low + 3, high - 1, high], [low, low + 1, high - 2, high - 1, high]
    run = range(high - 65, high + 1), range(low, high + 1)
    return [tuple(np.array(at, dtype) for at in both) for both in (far, run)]


def same(function, *arrays, wide=np.int64):
    """The result for these arrays is the result for the same numbers in int64, and of its dtype."""
    before = [x.copy() for x in arrays]
    got, expected = function(*arrays), function(*(x.astype(wide) for x in arrays))
    assert got.dtype == expected.dtype
    assert np.array_equal(got, expected)
    assert all(np.array_equal(x, y) for x, y in zip(arrays, before, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_POSITIONS)
def test_positions_of_queries_and_keys(name, dtype):
    for i, j in ends(dtype):
        if name == "fire_bias":
            i, j = i[i >= 0], j[j >= 0]
        same(OF_POSITIONS[name], i, j)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*OF_ONE, *FROM_ZERO])
def test_positions_of_one_axis(name, dtype):
    for i, j in ends(dtype):
        for at in (i, j):
            same(OF_ONE[name], at) if name in OF_ONE else same(FROM_ZERO[name], at[at >= 0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_DISTANCES)
def test_distances(name, dtype):
    for i, j in ends(dtype):
        same(OF_DISTANCES[name], np.stack([np.roll(j, n) for n in range(len(i))]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme(name, dtype):
    scheme = SCHEMES[name]
    for i, j in ends(dtype):
        if name not in ("rope", "alibi"):  # the others may refuse what is below 0
            i, j = i[i >= 0], j[j >= 0]
        axes = (lambda at: np.stack([at] * scheme.axes, 1)) if scheme.axes > 1 else (lambda at: at)
        same(lambda i, j: scheme.scores(tokens(i, 1), tokens(j, 2), i, j), axes(i), axes(j))


NARROW = {
    "rope": OF_ONE["rope"],
    "xpos": OF_ONE["xpos"],
    "pope": OF_ONE["pope"],
    "sinusoidal": OF_ONE["sinusoidal"],
    "timing_signal": OF_ONE["timing_signal"],
    "rotary_distance_scores": lambda i: OF_DISTANCES["rotary_distance_scores"](i[None]),
    "rerope_distance": lambda i: OF_DISTANCES["rerope_distance"](i[None]),
    "window_mask": lambda i: pe.window_mask(i, i, 4096),
    "causal_mask": lambda i: pe.causal_mask(i, i),
    "chunk_mask": lambda i: pe.chunk_mask(i, i, 3),
    "attention_blockwise: window": lambda i: blockwise(i, i, causal=True, window=4096),
    "attention_blockwise: bias": lambda i: handed(i, i),
}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_are_exact_numbers(name, dtype):
    """2047 + 2048 = 4095 is no number of float16, which has 4094 and 4096."""
    at = np.array([-2048, -2047, 0.125, 3, 2047, 2048], dtype)
    same(NARROW[name], at, wide=np.float64)


def test_every_function_of_positions_is_tried():
    tried = {
        name.split(":")[0] for cases in (OF_POSITIONS, OF_ONE, FROM_ZERO, OF_DISTANCES)
        for name in cases
    }  # fmt: skip
    public = [name for name in pe.__all__ if inspect.isfunction(getattr(pe, name))]
    of_places = {
        name
        for name in public
        for parameter in inspect.signature(getattr(pe, name)).parameters
        if any(word in parameter for word in WORDS)
    }
    assert of_places - tried == set(NOT_PLACES) - tried


def test_what_int64_does_not_hold_is_refused():
    with pytest.raises(ValueError, match=r"f: at must be below 2\^63; got 9223372036854775808"):
        checks.position_array("f", "at", np.array([1, 2**63], np.uint64))
