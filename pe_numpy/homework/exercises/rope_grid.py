"""Exercises of chapter 43: turning in two and three dimensions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.homework.measured import turning
from pe_numpy.rotary.nd import (
    axial_frequencies,
    mixed_frequencies,
    mrope_frequencies,
    mrope_positions,
    patch_coordinates,
    rope_nd,
)
from pe_numpy.rotary.rope import rope_frequencies

DTYPES = (np.float64, np.float32)


# ---- the turn -----------------------------------------------------------------------------------


def _turn_cases(rng: np.random.Generator) -> Iterator[Case]:
    one = np.array([[1.0, 0.0, 1.0, 0.0]])
    yield case(one, np.array([[1, 2]]), np.array([[1.0, 0.0], [0.0, 0.5]]))
    for dtype in DTYPES:
        x = rng.standard_normal((2, 6, 8)).astype(dtype)
        yield case(x, patch_coordinates(2, 3), axial_frequencies(8))
        yield case(x, patch_coordinates(2, 3), axial_frequencies(8), layout="half")
        yield case(x, patch_coordinates(3, 2), mixed_frequencies(rng, 8))
        yield case(x, rng.integers(0, 9, (2, 6, 3)), mrope_frequencies((1, 1, 1)), layout="half")


def _other_layout(x, coordinates, frequencies, layout="interleaved"):
    return rope_nd(
        x, coordinates, frequencies, "half" if layout == "interleaved" else "interleaved"
    )


def _spans_the_head(x, coordinates, frequencies, layout="interleaved"):
    """Half-split pairs c and c + K/2, however many turn."""
    n, K = frequencies.shape[-1], x.shape[-1]
    if layout == "interleaved" or 2 * n == K:
        return rope_nd(x, coordinates, frequencies, layout)
    wider = np.pad(frequencies, ((0, 0), (0, K // 2 - n)))
    return rope_nd(x, coordinates, wider, layout)


OMEGA = np.array([[1.0, 0.1], [0.3, -0.5]])

TURN = Exercise(
    "rope_nd",
    rope_nd,
    _turn_cases,
    (
        Mistake(
            "turned the other way",
            "A pair (a, b) becomes (a cos - b sin, a sin + b cos).",
            43,
            lambda x, coordinates, *rest, **options: rope_nd(x, -coordinates, *rest, **options),
        ),
        Mistake(
            "row and column exchanged",
            "Coordinate 0 belongs to row 0 of the frequencies. Equal coordinates hide it.",
            43,
            lambda x, coordinates, *rest, **options: rope_nd(
                x, coordinates[..., ::-1], *rest, **options
            ),
        ),
        Mistake(
            "coordinates added up first",
            "Each coordinate has its own frequencies: angles = coordinates @ frequencies.",
            43,
            lambda x, coordinates, *rest, **options: rope_nd(
                x, coordinates.sum(axis=-1, keepdims=True) + 0 * coordinates, *rest, **options
            ),
        ),
        Mistake(
            "half-split for interleaved, or the other way round",
            "Interleaved pairs are components 2c and 2c + 1; half-split pairs c and c + n.",
            43,
            _other_layout,
        ),
        Mistake(
            "half-split pairs over the whole head",
            "With n frequencies pairs are c and c + n; the last K - 2n components stay.",
            43,
            _spans_the_head,
        ),
        Mistake(
            "coordinates counted from 0 whatever was given",
            "Turn by the coordinates that are given: a grid may be wider than high.",
            43,
            lambda x, coordinates, *rest, **options: rope_nd(
                x, np.arange(x.shape[-2])[:, None] + 0 * coordinates, *rest, **options
            ),
        ),
    ),
    chapter=43,
    scores=lambda f: turning(lambda x, at: f(x, at, OMEGA)),
    width=4,
    axes=2,
)


# ---- frequencies --------------------------------------------------------------------------------


def _axial_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(4)
    yield case(8)
    yield case(8, 2, float(rng.integers(200, 10**5)))
    yield case(8, base=float(rng.integers(200, 10**5)), spacing="alternate")
    yield case(24, 3, 100.0, "alternate")
    yield case(12, 3)
    yield case(64)
    for n in range(6):
        A = n % 3 + 1
        spacing = ("split", "alternate")[n % 2]
        yield case(2 * A * int(rng.integers(2, 9)), A, float(rng.integers(20, 10**5)), spacing)


def _neighbours(d, axes=2, base=100.0, spacing="split"):
    """Pairs of the axes side by side: row, column, row, column."""
    omega = axial_frequencies(d, axes, base, spacing)
    return omega.reshape(axes, axes, -1).swapaxes(1, 2).reshape(axes, -1)


def _one_ladder(d, axes=2, base=100.0, spacing="split"):
    """The second axis goes on where the first stops."""
    omega = (axial_frequencies(d, axes, base, spacing) != 0).astype(float)
    return omega * rope_frequencies(d, base)


AXIAL = Exercise(
    "axial_frequencies",
    axial_frequencies,
    _axial_cases,
    (
        Mistake(
            "the ladder of the whole width",
            "With A axes each has d/(2A) pairs, so its exponents are -2Ac/d: each reaches the slow "
            "end.",
            43,
            lambda d, axes=2, base=100.0, spacing="split": axial_frequencies(
                d, axes, base if spacing == "alternate" else base ** (1 / axes), spacing
            ),
        ),
        Mistake(
            "the second axis goes on where the first stops",
            'With "split" all axes have the same ladder, from 1 downwards; with "alternate" they '
            "take its rungs in turn.",
            43,
            _one_ladder,
        ),
        Mistake(
            "the pairs of the axes alternate",
            'Both ways put all pairs of the first axis first; "alternate" is about the rungs.',
            43,
            _neighbours,
        ),
        Mistake(
            "the last axis first",
            "The first row has its frequencies in the first columns.",
            43,
            lambda *args, **options: axial_frequencies(*args, **options)[::-1],
        ),
        Mistake(
            "the two spacings exchanged",
            '"split" gives each axis a ladder of its own; "alternate" deals one ladder out.',
            43,
            lambda d, axes=2, base=100.0, spacing="split": axial_frequencies(
                d, axes, base, "split" if spacing == "alternate" else "alternate"
            ),
        ),
        Mistake(
            "the base of texts",
            "Use the base that is given; without one it is 100, as an image has few rows.",
            43,
            lambda d, axes=2, base=10000.0, spacing="split": axial_frequencies(
                d, axes, base, spacing
            ),
        ),
    ),
    chapter=43,
)


def _mixed_cases(rng: np.random.Generator) -> Iterator[Case]:
    for d, base in ((4, 10.0), (8, 10.0), (8, 100.0), (64, 10.0)):
        yield case(np.random.default_rng(d), d, base)
    for n in range(2, 10):
        base = float(rng.integers(5, 200))
        yield case(np.random.default_rng(int(rng.integers(2**32))), 4 * n, base)


def _mixed(direction, size=lambda c, d, base: base ** (-4 * c / d)):
    """Frequencies with another size or direction of the two halves."""

    def frequencies(rng, d, base=10.0):
        phi, c = rng.uniform(0, 2 * np.pi), np.arange(d // 4)
        angles = np.repeat(direction(phi), d // 4)
        return np.stack([np.cos(angles), np.sin(angles)]) * np.tile(size(c, d, base), 2)

    return frequencies


def _right(phi):
    return [phi, phi + np.pi / 2]


MIXED = Exercise(
    "mixed_frequencies",
    mixed_frequencies,
    _mixed_cases,
    (
        Mistake(
            "exponent 2c/d for 4c/d",
            "Each half has d/4 pairs: the lengths are base^(-4c/d).",
            43,
            _mixed(_right, lambda c, d, base: base ** (-2 * c / d)),
        ),
        Mistake(
            "both halves in one direction",
            "The second half points at right angles to the first: phi + pi/2. Else the head does "
            "not see what lies across.",
            43,
            _mixed(lambda phi: [phi, phi]),
        ),
        Mistake(
            "the second half turned back",
            "Add a right angle, counter-clockwise: (-sin phi, cos phi).",
            43,
            _mixed(lambda phi: [phi, phi - np.pi / 2]),
        ),
        Mistake(
            "no direction drawn",
            "Draw phi = rng.uniform(0, 2 pi), one number a head; with 0 all heads begin axial.",
            43,
            _mixed(lambda phi: _right(0.0)),
        ),
        Mistake(
            "sine and cosine exchanged",
            "The first coordinate gets the cosine of the direction, the second its sine.",
            43,
            lambda *args: mixed_frequencies(*args)[::-1],
        ),
    ),
    chapter=43,
)


# ---- coordinates --------------------------------------------------------------------------------


def _patch_cases(rng: np.random.Generator) -> Iterator[Case]:
    for height, width in ((1, 2), rng.integers(2, 9, 2), rng.integers(2, 9, 2), (4, 4)):
        height, width = int(height), int(width)
        yield case(height, width)
        yield case(height, width, "centred")
    yield case(1, 3, trained=2)
    yield case(2, 3, "index", (4, 6))
    yield case(6, 4, trained=(3, 8))
    for n in range(6):
        height, width, *trained = (int(side) for side in rng.integers(2, 12, 4))
        yield case(height, width, *(("centred",), ("index", tuple(trained)))[n % 2])


def _centred(place):
    """Centred coordinates by another formula."""

    def coordinates(height, width, kind="index", trained=None):
        if kind == "index":
            return patch_coordinates(height, width, kind, trained)
        return place(patch_coordinates(height, width), np.array([height, width]))

    return coordinates


def _column_by_column(height, width, kind="index", trained=None):
    p = patch_coordinates(height, width, kind, trained)
    return p.reshape(height, width, 2).swapaxes(0, 1).reshape(-1, 2)


def _ends_meet(height, width, kind="index", trained=None):
    if trained is None:
        return patch_coordinates(height, width, kind)
    trained = np.broadcast_to(trained, 2)
    return patch_coordinates(height, width) * (trained - 1) / np.maximum([height - 1, width - 1], 1)


def _upside_down(height, width, kind="index", trained=None):
    if trained is None:
        return patch_coordinates(height, width, kind)
    return patch_coordinates(height, width) * [height, width] / np.broadcast_to(trained, 2)


PATCHES = Exercise(
    "patch_coordinates",
    patch_coordinates,
    _patch_cases,
    (
        Mistake(
            "the column before the row",
            "The row comes first. A square grid hides much of it.",
            43,
            lambda *args, **options: patch_coordinates(*args, **options)[:, ::-1],
        ),
        Mistake(
            "patches counted column by column",
            "Row by row, as one reads: the column changes fastest.",
            43,
            _column_by_column,
        ),
        Mistake(
            "corners for middles",
            "The middle of patch i is i + 1/2: 2 (i + 1/2)/height - 1.",
            43,
            _centred(lambda p, n: 2 * p / n - 1),
        ),
        Mistake(
            "from -1 to 1 inclusive",
            "Divide by the number of patches; -1 and 1 are the edges of the image.",
            43,
            _centred(lambda p, n: 2 * p / np.maximum(n - 1, 1) - 1),
        ),
        Mistake(
            "from 0 to 1",
            "Centred coordinates run from -1 to 1: twice the fraction, minus 1.",
            43,
            _centred(lambda p, n: (p + 0.5) / n),
        ),
        Mistake(
            "stretched the wrong way",
            "A larger grid squeezes its index into the trained range: i * trained/height.",
            43,
            _upside_down,
        ),
        Mistake(
            "the last patch laid on the last one",
            "The index is multiplied by trained/height; first patches agree, last ones do not.",
            43,
            _ends_meet,
        ),
    ),
    chapter=43,
)


# ---- text, images and films ---------------------------------------------------------------------


def _mrope_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case((2, 1, 1))
    yield case((2, 1, 1), interleaved=True)
    yield case((2, 3, 3))
    yield case((4, 2, 2), float(rng.integers(50, 10**5)), True)
    yield case((16, 24, 24), 1e6)
    yield case((24, 20, 20), float(rng.integers(10**5, 10**7)), True)
    yield case((11, 11, 10), interleaved=True)
    for n in range(6):
        few = int(rng.integers(2, 9))
        yield case((few + 2, few, few + n % 2), float(rng.integers(50, 10**6)), n % 2 == 1)


def _by_axis(axis_of, exponent=lambda c, n: -c / n):
    """One entry a column, with the axis and exponent of each pair."""

    def frequencies(sections, base=10000.0, interleaved=False):
        n = sum(sections)
        omega = np.zeros((3, n))
        axis = axis_of(np.asarray(sections), interleaved)
        omega[axis, np.arange(n)] = base ** exponent(np.arange(n), n)
        return omega

    return frequencies


def _axis(sections, interleaved):
    return np.argmax(mrope_frequencies(sections, 1.0, interleaved), axis=0)


def _own_ladders(sections, base=10000.0, interleaved=False):
    """Each axis begins at 1."""
    omega = mrope_frequencies(sections, base, interleaved)
    for row, n in zip(omega, sections, strict=True):
        row[row != 0] = rope_frequencies(2 * n, base)
    return omega


def _every_third(sections, interleaved):
    """Count modulo 3 to the end, without looking at the sections."""
    return np.arange(sum(sections)) % 3 if interleaved else _axis(sections, False)


MROPE = Exercise(
    "mrope_frequencies",
    mrope_frequencies,
    _mrope_cases,
    (
        Mistake(
            "a ladder for each axis",
            "There is one ladder of K/2 rungs, and each pair keeps its rung: with three equal "
            "coordinates it must be RoPE.",
            43,
            _own_ladders,
        ),
        Mistake(
            "interleaved sections without their end",
            "Row and column take every third pair until their sections are full; the rest is time.",
            43,
            _by_axis(_every_third),
        ),
        Mistake(
            "contiguous sections for interleaved ones",
            "Interleaved deals the pairs out: time, row, column, time, ...",
            43,
            lambda sections, base=10000.0, interleaved=False: mrope_frequencies(sections, base),
        ),
        Mistake(
            "time last",
            "The order is time, row, column.",
            43,
            lambda *args, **options: np.roll(mrope_frequencies(*args, **options), -1, axis=0),
        ),
        Mistake(
            "row and column exchanged",
            "The order is time, row, column.",
            43,
            lambda *args, **options: mrope_frequencies(*args, **options)[[0, 2, 1]],
        ),
        Mistake(
            "sections taken for components",
            "A section counts pairs: the exponent is -2c/K, where K is twice the sum.",
            43,
            _by_axis(_axis, lambda c, n: -2 * c / n),
        ),
    ),
    chapter=43,
)


def _position_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case([3])
    yield case([2, (1, 2, 3), 1])
    yield case([(1, 1, 4), 2])
    yield case([1, (1, 3, 2), 0, (1, 2, 2), 3])
    yield case([2, (5, 2, 3), 2])  # a film longer than it is wide
    for _ in range(8):
        t, h, w, before, after = (int(size) for size in rng.integers(1, 6, 5))
        yield case([before, (t, h, w), after, (1, w, h)])


def _with(block=lambda t, h, w: np.indices((t, h, w)).reshape(3, -1).T, step=max):
    """Positions with another block for a grid, or another step after it."""

    def positions(grids):
        start, blocks = 0, []
        for part in grids:
            if np.ndim(part) == 0:
                blocks.append(start + np.repeat(np.arange(part)[:, None], 3, axis=1))
                start += part
            else:
                blocks.append(start + block(*part))
                start += step(part)
        made = np.concatenate(blocks)
        return made, int(made.max()) + 1 - len(made)

    return positions


POSITIONS = Exercise(
    "mrope_positions",
    mrope_positions,
    _position_cases,
    (
        Mistake(
            "the next text counted from the slot",
            "What follows an image begins one after its largest number; the slot is further on.",
            43,
            _with(step=np.prod),
        ),
        Mistake(
            "the next text begins with the largest number",
            "It begins one after it.",
            43,
            _with(step=lambda part: max(part) - 1),
        ),
        Mistake(
            "frames forgotten at the end",
            "A film with more frames than rows and columns ends at its last frame.",
            43,
            _with(step=lambda part: max(part[1:])),
        ),
        Mistake(
            "grids counted from 0",
            "All three numbers of a grid begin where the text before it ended.",
            43,
            lambda grids: (
                np.concatenate([block - block[0] * (len(block) > 1) for block in _blocks(grids)]),
                mrope_positions(grids)[1],
            ),
        ),
        Mistake(
            "the column before the row",
            "The order is time, row, column, and the column changes fastest.",
            43,
            lambda grids: (mrope_positions(grids)[0][:, [0, 2, 1]], mrope_positions(grids)[1]),
        ),
        Mistake(
            "the delta's sign",
            "delta = next position - L: with an image it is negative, as a rule.",
            43,
            lambda grids: (mrope_positions(grids)[0], -mrope_positions(grids)[1]),
        ),
        Mistake(
            "no delta",
            "delta = next position - L; 0 holds for text alone.",
            43,
            lambda grids: (mrope_positions(grids)[0], 0),
        ),
    ),
    chapter=43,
)


def _blocks(grids):
    """The positions of each part."""
    sizes = [part if np.ndim(part) == 0 else int(np.prod(part)) for part in grids]
    return [b for b in np.split(mrope_positions(grids)[0], np.cumsum(sizes)[:-1]) if len(b)]


EXERCISES = (TURN, AXIAL, MIXED, PATCHES, MROPE, POSITIONS)
