"""Sinusoids, grids and tables of positions."""
# ruff: noqa: F811

import math

import numpy as np

from answers import wrong


def code(angles, layout="interleaved"):
    """Sines and cosines in either order."""
    if layout == "concatenated":
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    out = np.empty((*angles.shape[:-1], 2 * angles.shape[-1]))
    out[..., 0::2] = np.sin(angles)
    out[..., 1::2] = np.cos(angles)
    return out


@wrong("2(i+1) in the cosine of a loop over even i, as in many tutorials, and i doubled")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    positions = np.asarray(positions)
    out = np.zeros((*positions.shape, d_model))
    for i in range(0, d_model, 2):
        out[..., i] = np.sin(positions / base ** (2 * i / d_model))
        out[..., i + 1] = np.cos(positions / base ** (2 * (i + 1) / d_model))
    if layout == "concatenated":
        out = np.concatenate([out[..., 0::2], out[..., 1::2]], axis=-1)
    return out


@wrong("i is doubled twice: range(0, d, 2) and 2i")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    theta = base ** (-2 * np.arange(0, d_model, 2) / d_model)
    return code(np.asarray(positions)[..., None] * theta, layout)


@wrong("the cosine has its own exponent: component index i+1")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    positions = np.asarray(positions)
    out = np.zeros((*positions.shape, d_model))
    for i in range(0, d_model, 2):
        out[..., i] = np.sin(positions / base ** (i / d_model))
        out[..., i + 1] = np.cos(positions / base ** ((i + 1) / d_model))
    if layout == "concatenated":
        out = np.concatenate([out[..., 0::2], out[..., 1::2]], axis=-1)
    return out


@wrong("exponent i/d for 2i/d")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    theta = base ** (-np.arange(d_model // 2) / d_model)
    return code(np.asarray(positions)[..., None] * theta, layout)


@wrong("D/2 - 1 in the exponent, as in tensor2tensor")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    half = d_model // 2
    theta = np.exp(-math.log(base) * np.arange(half) / max(half - 1, 1))
    return code(np.asarray(positions)[..., None] * theta, layout)


@wrong("the base is ignored")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    theta = np.exp(np.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    return code(np.asarray(positions)[..., None] * theta, layout)


@wrong("the layout is ignored")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    theta = np.exp(np.arange(0, d_model, 2) * (-math.log(base) / d_model))
    return code(np.asarray(positions)[..., None] * theta)


@wrong("always all sines first")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    theta = base ** (-np.arange(0, d_model, 2) / d_model)
    return code(np.asarray(positions)[..., None] * theta, "concatenated")


@wrong("cosines before sines")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    a = np.asarray(positions)[..., None] * base ** (-np.arange(0, d_model, 2) / d_model)
    if layout == "concatenated":
        return np.concatenate([np.cos(a), np.sin(a)], axis=-1)
    return np.stack([np.cos(a), np.sin(a)], axis=-1).reshape(*a.shape[:-1], d_model)


@wrong("multiplied with base^(2i/d) for divided")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    theta = base ** (np.arange(0, d_model, 2) / d_model)
    return code(np.asarray(positions)[..., None] * theta, layout)


@wrong("positions are counted from 1")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    theta = base ** (-np.arange(0, d_model, 2) / d_model)
    return code((np.asarray(positions)[..., None] + 1) * theta, layout)


@wrong("positions are ignored: 0, 1, 2, ...")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    shape = np.shape(positions)
    theta = base ** (-np.arange(0, d_model, 2) / d_model)
    at = np.arange(int(np.prod(shape))).reshape(shape)
    return code(at[..., None] * theta, layout)


@wrong("angles in float32")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    theta = (base ** (-np.arange(0, d_model, 2) / d_model)).astype(np.float32)
    a = np.asarray(positions, np.float32)[..., None] * theta
    return code(a, layout).astype(np.float64)


@wrong("sines alone")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    a = np.asarray(positions)[..., None] * base ** (-np.arange(0, d_model, 2) / d_model)
    if layout == "concatenated":
        return np.sin(np.concatenate([a, a], axis=-1))
    return np.sin(np.repeat(a, 2, axis=-1))


@wrong("the last axis is stacked the wrong way: pairs are rows")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    a = np.asarray(positions)[..., None] * base ** (-np.arange(0, d_model, 2) / d_model)
    if layout == "concatenated":
        return np.concatenate([np.sin(a), np.cos(a)], axis=-1)
    return np.stack([np.sin(a), np.cos(a)], axis=-2).reshape(*a.shape[:-1], d_model)


@wrong("the result is float32")
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    theta = base ** (-np.arange(0, d_model, 2) / d_model)
    return code(np.asarray(positions)[..., None] * theta, layout).astype(np.float32)


@wrong("the sign of the sines: the inverse shift")
def sinusoidal_shift(offset, d_model, base=10000.0):
    out = np.zeros((d_model, d_model))
    for i in range(d_model // 2):
        a = offset / base ** (2 * i / d_model)
        out[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [
            [math.cos(a), -math.sin(a)],
            [math.sin(a), math.cos(a)],
        ]
    return out


@wrong("built for all sines first")
def sinusoidal_shift(offset, d_model, base=10000.0):
    n = d_model // 2
    a = offset * base ** (-np.arange(0, d_model, 2) / d_model)
    c, s = np.diag(np.cos(a)), np.diag(np.sin(a))
    return np.block([[c, s], [-s, c]]) if n else np.zeros((0, 0))


@wrong("the base is ignored")
def sinusoidal_shift(offset, d_model, base=10000.0):
    out = np.zeros((d_model, d_model))
    for i in range(d_model // 2):
        a = offset / 10000 ** (2 * i / d_model)
        out[2 * i, 2 * i] = out[2 * i + 1, 2 * i + 1] = math.cos(a)
        out[2 * i, 2 * i + 1] = math.sin(a)
        out[2 * i + 1, 2 * i] = -math.sin(a)
    return out


@wrong("2 pi is forgotten")
def wavelengths(d_model, base=10000.0):
    return base ** (np.arange(0, d_model, 2) / d_model)


@wrong("frequencies for wavelengths")
def wavelengths(d_model, base=10000.0):
    return 2 * np.pi * base ** (-np.arange(0, d_model, 2) / d_model)


@wrong("spread up to base itself")
def wavelengths(d_model, base=10000.0):
    return 2 * np.pi * np.geomspace(1, base, d_model // 2)


@wrong("D/2 for D/2 - 1, as in the paper")
def timing_signal(positions, d_model, min_timescale=1.0, max_timescale=10000.0):
    n = d_model // 2
    theta = min_timescale * np.exp(-math.log(max_timescale / min_timescale) * np.arange(n) / n)
    return np.pad(
        code(np.asarray(positions)[..., None] * theta, "concatenated"),
        [
            *[(0, 0)] * np.ndim(positions),
            (0, d_model % 2),
        ],
    )


@wrong("the lower timescale is ignored")
def timing_signal(positions, d_model, min_timescale=1.0, max_timescale=10000.0):
    n = d_model // 2
    theta = np.exp(-math.log(max_timescale) * np.arange(n) / max(n - 1, 1))
    out = code(np.asarray(positions)[..., None] * theta, "concatenated")
    return np.pad(out, [*[(0, 0)] * np.ndim(positions), (0, d_model % 2)])


@wrong("the lower timescale divides")
def timing_signal(positions, d_model, min_timescale=1.0, max_timescale=10000.0):
    n = d_model // 2
    step = math.log(max_timescale / min_timescale) / max(n - 1, 1)
    theta = np.exp(-step * np.arange(n)) / min_timescale
    out = code(np.asarray(positions)[..., None] * theta, "concatenated")
    return np.pad(out, [*[(0, 0)] * np.ndim(positions), (0, d_model % 2)])


@wrong("the column comes first")
def sinusoidal_2d(height, width, d_model, base=10000.0):
    half = d_model // 2
    theta = base ** (-np.arange(0, half, 2) / half)
    y = code(np.arange(height)[:, None] * theta, "concatenated")
    x = code(np.arange(width)[:, None] * theta, "concatenated")
    rows = np.repeat(y[:, None], width, axis=1)
    columns = np.repeat(x[None], height, axis=0)
    return np.concatenate([columns, rows], axis=-1)


@wrong("frequencies of the whole width in each half")
def sinusoidal_2d(height, width, d_model, base=10000.0):
    theta = base ** (-np.arange(0, d_model // 2, 2) / d_model)
    y = code(np.arange(height)[:, None] * theta, "concatenated")
    x = code(np.arange(width)[:, None] * theta, "concatenated")
    rows = np.repeat(y[:, None], width, axis=1)
    columns = np.repeat(x[None], height, axis=0)
    return np.concatenate([rows, columns], axis=-1)


@wrong("sine and cosine alternate, as in other code")
def sinusoidal_2d(height, width, d_model, base=10000.0):
    half = d_model // 2
    theta = base ** (-np.arange(0, half, 2) / half)
    y, x = code(np.arange(height)[:, None] * theta), code(np.arange(width)[:, None] * theta)
    rows = np.repeat(y[:, None], width, axis=1)
    columns = np.repeat(x[None], height, axis=0)
    return np.concatenate([rows, columns], axis=-1)


@wrong("rows and columns are added, not joined")
def sinusoidal_2d(height, width, d_model, base=10000.0):
    theta = base ** (-np.arange(0, d_model, 2) / d_model)
    y = code(np.arange(height)[:, None] * theta, "concatenated")
    x = code(np.arange(width)[:, None] * theta, "concatenated")
    return y[:, None] + x[None]


@wrong("2 pi is left out of the waves")
def fourier_features(x, B):
    angles = x @ B.T
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=-1)


@wrong("sines first")
def fourier_features(x, B):
    angles = 2 * np.pi * x @ B.T
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


@wrong("row pos - 1: counted from 1")
def learned(table, positions):
    return np.asarray(table)[np.asarray(positions) - 1]


@wrong("the first rows, whatever the positions")
def learned(table, positions):
    shape = np.shape(positions)
    return np.asarray(table)[np.arange(int(np.prod(shape))) % len(table)].reshape(*shape, -1)


@wrong("alpha is ignored")
def hierarchical(table, positions, alpha=0.4):
    table = np.asarray(table)
    u = (table - 0.4 * table[0]) / 0.6
    i, j = np.divmod(positions, len(table))
    return (0.4 * u[i] + 0.6 * u[j]).astype(table.dtype)


@wrong("i and j are exchanged")
def hierarchical(table, positions, alpha=0.4):
    table = np.asarray(table)
    u = (table - alpha * table[0]) / (1 - alpha)
    i, j = np.divmod(positions, len(table))
    return (alpha * u[j] + (1 - alpha) * u[i]).astype(table.dtype)


@wrong("the rows of the table are used as they are")
def hierarchical(table, positions, alpha=0.4):
    table = np.asarray(table)
    i, j = np.divmod(positions, len(table))
    return (alpha * table[i] + (1 - alpha) * table[j]).astype(table.dtype)
