"""Solutions of the exercises of chapter 43."""

import numpy as np


def rope_nd(x, coordinates, frequencies, layout="interleaved"):
    n = frequencies.shape[-1]
    angles = coordinates @ frequencies  # (..., L, n)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    first, second = slice(0, n), slice(n, 2 * n)
    if layout == "interleaved":
        first, second = slice(0, 2 * n, 2), slice(1, 2 * n, 2)
    turned = x.copy()
    turned[..., first] = x[..., first] * cos - x[..., second] * sin
    turned[..., second] = x[..., first] * sin + x[..., second] * cos
    return turned


def axial_frequencies(d, axes=2, base=100.0, spacing="split"):
    each = d // (2 * axes)
    frequencies = np.zeros((axes, d // 2))
    for a in range(axes):
        own = np.arange(a, d // 2, axes) if spacing == "alternate" else axes * np.arange(each)
        frequencies[a, a * each : (a + 1) * each] = base ** (-2.0 * own / d)
    return frequencies


def mixed_frequencies(rng, d, base=10.0):
    lengths = np.tile(base ** (-4 * np.arange(d // 4) / d), 2)
    phi = rng.uniform(0, 2 * np.pi)
    direction = np.repeat([phi, phi + np.pi / 2], d // 4)
    return lengths * np.stack([np.cos(direction), np.sin(direction)])


def patch_coordinates(height, width, kind="index", trained=None):
    sides = np.array([height, width])
    p = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), axis=-1)
    p = p.reshape(-1, 2).astype(float)
    if kind == "centred":
        return 2 * (p + 0.5) / sides - 1
    return p if trained is None else p * (np.broadcast_to(trained, 2) / sides)


def mrope_frequencies(sections, base=10000.0, interleaved=False):
    n = sum(sections)
    axis = np.repeat([0, 1, 2], sections)
    if interleaved:
        axis = np.zeros(n, int)
        axis[1 : 3 * sections[1] : 3] = 1
        axis[2 : 3 * sections[2] : 3] = 2
    frequencies = np.zeros((3, n))
    frequencies[axis, np.arange(n)] = base ** (-np.arange(n) / n)
    return frequencies


def mrope_positions(grids):
    start, blocks = 0, []
    for part in grids:
        if np.ndim(part) == 0:
            block, length = np.repeat(np.arange(part)[:, None], 3, axis=1), part
        else:
            block, length = np.indices(part).reshape(3, -1).T, max(part)
        blocks.append(start + block)
        start += length
    positions = np.concatenate(blocks)
    return positions, start - len(positions)
