"""Rotary encodings, their layouts and their scalings."""
# ruff: noqa: F811

import math

import numpy as np

from answers import wrong


def angles_of(x, positions, frequencies):
    """Angles (..., L, n) in float64."""
    if frequencies is None:
        d = x.shape[-1]
        frequencies = 10000.0 ** (-np.arange(0, d, 2) / d)
    return np.asarray(positions)[..., None] * np.asarray(frequencies)


def turned(x, a, layout, sign=1):
    """Turn pairs by the angles a."""
    n = a.shape[-1]
    if layout == "interleaved":
        first, second = slice(0, 2 * n, 2), slice(1, 2 * n, 2)
    else:
        first, second = slice(0, n), slice(n, 2 * n)
    c, s = np.cos(a).astype(x.dtype), sign * np.sin(a).astype(x.dtype)
    out = x.copy()
    out[..., first] = x[..., first] * c - x[..., second] * s
    out[..., second] = x[..., first] * s + x[..., second] * c
    return out


def rotate_half(x):
    """The function of Hugging Face's Llama."""
    n = x.shape[-1] // 2
    return np.concatenate([-x[..., n:], x[..., :n]], axis=-1)


@wrong("turned clockwise: the sign of the sine")
def rope(x, positions, frequencies=None, layout="interleaved"):
    return turned(x, angles_of(x, positions, frequencies), layout, sign=-1)


@wrong("repeated angles with rotate_half: half-split code, interleaved angles")
def rope(x, positions, frequencies=None, layout="interleaved"):
    a = angles_of(x, positions, frequencies)
    n = 2 * a.shape[-1]
    a = np.repeat(a, 2, axis=-1)
    head, rest = x[..., :n], x[..., n:]
    out = head * np.cos(a).astype(x.dtype) + rotate_half(head) * np.sin(a).astype(x.dtype)
    return np.concatenate([out, rest], axis=-1)


@wrong("always half-split, as in Hugging Face's Llama")
def rope(x, positions, frequencies=None, layout="interleaved"):
    a = angles_of(x, positions, frequencies)
    n = 2 * a.shape[-1]
    a = np.concatenate([a, a], axis=-1)
    head, rest = x[..., :n], x[..., n:]
    out = head * np.cos(a).astype(x.dtype) + rotate_half(head) * np.sin(a).astype(x.dtype)
    return np.concatenate([out, rest], axis=-1)


@wrong("always interleaved: the layout is ignored")
def rope(x, positions, frequencies=None, layout="interleaved"):
    return turned(x, angles_of(x, positions, frequencies), "interleaved")


@wrong("the layouts are exchanged")
def rope(x, positions, frequencies=None, layout="interleaved"):
    other = "half" if layout == "interleaved" else "interleaved"
    return turned(x, angles_of(x, positions, frequencies), other)


@wrong("the second component is computed from the half-filled copy")
def rope(x, positions, frequencies=None, layout="interleaved"):
    a = angles_of(x, positions, frequencies)
    n = a.shape[-1]
    c, s = np.cos(a).astype(x.dtype), np.sin(a).astype(x.dtype)
    first, second = (
        (slice(0, 2 * n, 2), slice(1, 2 * n, 2))
        if layout == "interleaved"
        else (slice(0, n), slice(n, 2 * n))
    )
    out = x.copy()
    out[..., first] = out[..., first] * c - out[..., second] * s
    out[..., second] = out[..., first] * s + out[..., second] * c
    return out


@wrong("the given frequencies are ignored")
def rope(x, positions, frequencies=None, layout="interleaved"):
    return turned(x, angles_of(x, positions, None), layout)


@wrong("components that do not turn are dropped")
def rope(x, positions, frequencies=None, layout="interleaved"):
    a = angles_of(x, positions, frequencies)
    return turned(x, a, layout)[..., : 2 * a.shape[-1]]


@wrong("components that do not turn are zero")
def rope(x, positions, frequencies=None, layout="interleaved"):
    a = angles_of(x, positions, frequencies)
    out = turned(x, a, layout)
    out[..., 2 * a.shape[-1] :] = 0
    return out


@wrong("half-split pairs are i and i + K/2, also where fewer turn")
def rope(x, positions, frequencies=None, layout="interleaved"):
    a = angles_of(x, positions, frequencies)
    n, K = a.shape[-1], x.shape[-1]
    if layout == "interleaved":
        return turned(x, a, layout)
    a = np.concatenate([a, np.zeros((*a.shape[:-1], K // 2 - n))], axis=-1)
    return turned(x, a, layout)


@wrong("positions are ignored: 0, 1, 2, ...")
def rope(x, positions, frequencies=None, layout="interleaved"):
    return turned(x, angles_of(x, np.arange(x.shape[-2]), frequencies), layout)


@wrong("positions are counted from 1")
def rope(x, positions, frequencies=None, layout="interleaved"):
    return turned(x, angles_of(x, np.asarray(positions) + 1, frequencies), layout)


@wrong("angles in float32")
def rope(x, positions, frequencies=None, layout="interleaved"):
    if frequencies is None:
        d = x.shape[-1]
        frequencies = 10000.0 ** (-np.arange(0, d, 2) / d)
    a = np.asarray(positions, np.float32)[..., None] * np.asarray(frequencies, np.float32)
    return turned(x, a, layout)


@wrong("only the first turns: no cross terms")
def rope(x, positions, frequencies=None, layout="interleaved"):
    a = angles_of(x, positions, frequencies)
    n = 2 * a.shape[-1]
    wide = np.repeat(a, 2, axis=-1) if layout == "interleaved" else np.tile(a, 2)
    head = x[..., :n] * np.cos(wide).astype(x.dtype) + x[..., :n] * np.sin(wide).astype(x.dtype)
    return np.concatenate([head, x[..., n:]], axis=-1)


@wrong("sinusoids are added, not turned with")
def rope(x, positions, frequencies=None, layout="interleaved"):
    a = angles_of(x, positions, frequencies)
    n = a.shape[-1]
    out = x.copy()
    out[..., 0 : 2 * n : 2] += np.sin(a).astype(x.dtype)
    out[..., 1 : 2 * n : 2] += np.cos(a).astype(x.dtype)
    return out


@wrong("exponent i/d for 2i/d")
def rope_frequencies(d, base=10000.0):
    return base ** (-np.arange(d // 2) / d)


@wrong("2i/d with i = 0, 2, 4: doubled")
def rope_frequencies(d, base=10000.0):
    return base ** (-2 * np.arange(0, d, 2) / d)


@wrong("the base is ignored")
def rope_frequencies(d, base=10000.0):
    return 1.0 / 10000 ** (np.arange(0, d, 2) / d)


@wrong("i is counted from 1")
def rope_frequencies(d, base=10000.0):
    return base ** (-2 * np.arange(1, d // 2 + 1) / d)


@wrong("D/2 - 1 in the exponent")
def rope_frequencies(d, base=10000.0):
    return base ** -np.linspace(0, 1, d // 2)


@wrong("the exponent's sign")
def rope_frequencies(d, base=10000.0):
    return base ** (np.arange(0, d, 2) / d)


@wrong("one frequency for each component")
def rope_frequencies(d, base=10000.0):
    return np.repeat(base ** (-np.arange(0, d, 2) / d), 2)


@wrong("float32")
def rope_frequencies(d, base=10000.0):
    return (base ** (-np.arange(0, d, 2, dtype=np.float32) / d)).astype(np.float32)


@wrong("the transposed matrix: it turns the other way")
def rope_matrix(position, frequencies):
    n = len(frequencies)
    out = np.zeros((2 * n, 2 * n))
    for i, f in enumerate(frequencies):
        c, s = math.cos(position * f), math.sin(position * f)
        out[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, s], [-s, c]]
    return out


@wrong("blocks of the half-split layout")
def rope_matrix(position, frequencies):
    a = position * np.asarray(frequencies)
    c, s = np.diag(np.cos(a)), np.diag(np.sin(a))
    return np.block([[c, -s], [s, c]])


@wrong("a reflection: both sines have one sign")
def rope_matrix(position, frequencies):
    n = len(frequencies)
    out = np.zeros((2 * n, 2 * n))
    for i, f in enumerate(frequencies):
        c, s = math.cos(position * f), math.sin(position * f)
        out[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, s], [s, c]]
    return out


@wrong("the permutation back")
def rope_permutation(d):
    return np.argsort(np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)]))


@wrong("halves are exchanged: odd ones first")
def rope_permutation(d):
    return np.concatenate([np.arange(1, d, 2), np.arange(0, d, 2)])


@wrong("keys are not turned")
def rotary_scores(q, k, q_positions, k_positions):
    q = turned(q, angles_of(q, q_positions, None), "interleaved")
    return q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])


@wrong("no scale")
def rotary_scores(q, k, q_positions, k_positions):
    q = turned(q, angles_of(q, q_positions, None), "interleaved")
    k = turned(k, angles_of(k, k_positions, None), "interleaved")
    return q @ np.swapaxes(k, -1, -2)


@wrong("keys are turned by the positions of the queries' end: arange")
def rotary_scores(q, k, q_positions, k_positions):
    q = turned(q, angles_of(q, np.arange(q.shape[-2]), None), "interleaved")
    k = turned(k, angles_of(k, np.arange(k.shape[-2]), None), "interleaved")
    return q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])


@wrong("queries turn one way, keys the other")
def rotary_scores(q, k, q_positions, k_positions):
    q = turned(q, angles_of(q, q_positions, None), "interleaved")
    k = turned(k, angles_of(k, k_positions, None), "interleaved", sign=-1)
    return q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])


@wrong("multiplied with the factor")
def linear_scaling(frequencies, factor):
    return np.asarray(frequencies, float) * factor


@wrong("the base is multiplied with the factor alone, without the power d/(d-2)")
def ntk_scaling(d, factor, base=10000.0):
    return (base * factor) ** (-np.arange(0, d, 2) / d)


@wrong("the power is (d-2)/d")
def ntk_scaling(d, factor, base=10000.0):
    return (base * factor ** ((d - 2) / d)) ** (-np.arange(0, d, 2) / d)


@wrong("the base is ignored")
def ntk_scaling(d, factor, base=10000.0):
    return (10000.0 * factor ** (d / (d - 2))) ** (-np.arange(0, d, 2) / d)


@wrong("interpolated as well")
def ntk_scaling(d, factor, base=10000.0):
    return (base * factor ** (d / (d - 2))) ** (-np.arange(0, d, 2) / d) / factor


@wrong("the growth is not kept at 1 or above: shorter texts shrink")
def dynamic_ntk_scaling(d, length, trained_length, factor=1.0, base=10000.0):
    s = factor * length / trained_length - (factor - 1)
    return (base * s ** (d / (d - 2))) ** (-np.arange(0, d, 2) / d)


@wrong("the factor is ignored")
def dynamic_ntk_scaling(d, length, trained_length, factor=1.0, base=10000.0):
    s = max(1, length / trained_length)
    return (base * s ** (d / (d - 2))) ** (-np.arange(0, d, 2) / d)


@wrong("the factor alone, fixed")
def dynamic_ntk_scaling(d, length, trained_length, factor=1.0, base=10000.0):
    return (base * factor ** (d / (d - 2))) ** (-np.arange(0, d, 2) / d)


@wrong("low and high ends of the ramp are exchanged")
def llama3_scaling(frequencies, factor, trained_length, low_freq_factor=1.0, high_freq_factor=4.0):
    f = np.asarray(frequencies, float)
    turns = trained_length * f / (2 * np.pi)
    g = np.clip((turns - low_freq_factor) / (high_freq_factor - low_freq_factor), 0, 1)
    return g * f / factor + (1 - g) * f


@wrong("2 pi is forgotten")
def llama3_scaling(frequencies, factor, trained_length, low_freq_factor=1.0, high_freq_factor=4.0):
    f = np.asarray(frequencies, float)
    g = np.clip((trained_length * f - low_freq_factor) / (high_freq_factor - low_freq_factor), 0, 1)
    return (1 - g) * f / factor + g * f


@wrong("the ends of the ramp are ignored: 1 and 4")
def llama3_scaling(frequencies, factor, trained_length, low_freq_factor=1.0, high_freq_factor=4.0):
    f = np.asarray(frequencies, float)
    g = np.clip((trained_length * f / (2 * np.pi) - 1) / 3, 0, 1)
    return (1 - g) * f / factor + g * f


@wrong("no ramp: below the high end all are interpolated")
def llama3_scaling(frequencies, factor, trained_length, low_freq_factor=1.0, high_freq_factor=4.0):
    f = np.asarray(frequencies, float)
    turns = trained_length * f / (2 * np.pi)
    return np.where(turns < high_freq_factor, f / factor, f)


@wrong("mscale is ignored")
def yarn_attention_factor(factor, mscale=1.0):
    return 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0


@wrong("below 1 the logarithm goes on")
def yarn_attention_factor(factor, mscale=1.0):
    return 0.1 * mscale * math.log(factor) + 1


@wrong("squared")
def yarn_attention_factor(factor, mscale=1.0):
    return (0.1 * mscale * math.log(factor) + 1) ** 2 if factor > 1 else 1.0


@wrong("logarithm of base 10")
def yarn_attention_factor(factor, mscale=1.0):
    return 0.1 * mscale * math.log10(factor) + 1 if factor > 1 else 1.0
