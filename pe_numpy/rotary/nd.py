r"""RoPE on a grid: each pair of components turns by all coordinates of its token.

Source: Heo et al. 2024, "Rotary position embedding for Vision Transformer" (arXiv:2403.13298), for
images; Wang et al. 2024, "Qwen2-VL" (arXiv:2409.12191), for text, images and films in one sequence
(M-RoPE). All are one matrix product::

    angles = p @ Omega,    p (L, A),  Omega (A, n)

Axes: L tokens, A axes of the grid, K width of one head, n <= K/2 pairs.
Symbols: p holds the coordinates of the tokens, such as row and column; a column of Omega says how
fast one pair turns along each axis. It has one entry that is not 0 in axial RoPE and M-RoPE, any
in mixed RoPE.
Convention: pairs and signs are as in `rope`; the row comes before the column, and time before
both. Scores depend on the difference of two vectors of coordinates.
Differs from the sources: rope-vit (commit ce85c2e) and DINOv3 (commit 6876159) make tables for one
grid; here any coordinates will do. DINOv3's factor 2 pi belongs to Omega.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.dispatch import differentiable
from pe_numpy.rotary.rope import rope_frequencies, turn_half, turn_interleaved

Shape = tuple[int, ...]


@differentiable
def rope_nd(
    x: ArrayLike, coordinates: ArrayLike, frequencies: ArrayLike, layout: str = "interleaved"
) -> np.ndarray:
    """Turn each pair of components of x by its own mixture of coordinates: angles p @ Omega.

    Parameters
    ----------
    x : (..., L, K) array
        Queries or keys.
    coordinates : (..., L, A) array
        Where each vector stands: A numbers, such as row and column.
    frequencies : (A, n) array
        Omega: radians that each pair turns for one step along each axis. (H, A, n) gives each head
        its own. With fewer than K/2 columns only the first 2n components turn.
    layout : "interleaved" or "half"
        Which components form a pair: 2c and 2c+1, or c and c + n.

    Returns
    -------
    Array of the shape and dtype of x (float64 for integers; float16 is computed in float32).

    Raises
    ------
    ValueError
        If coordinates and frequencies differ in A, there are more than K/2 columns, the angles
        don't broadcast to x without its last axis, a number is not finite, or the layout is
        unknown.

    Notes
    -----
    Source: Heo et al. 2024; the angles are computed in float64. With A = 1 it is `rope`.

    Examples
    --------
    >>> Omega = [[1.0, 0.0], [0.0, 0.1]]
    >>> rope_nd([[1.0, 0.0, 1.0, 0.0]], [[1, 2]], Omega).round(4).tolist()
    [[0.5403, 0.8415, 0.9801, 0.1987]]
    """
    name = "rope_nd"
    x = checks.real_array(name, "x", x, "LK")
    coordinates = checks.position_array(name, "coordinates", coordinates)
    frequencies = checks.position_array(name, "frequencies", frequencies)
    _check_angles(name, x.shape, coordinates.shape, frequencies.shape)
    layout = checks.choice(name, "layout", layout, ("interleaved", "half"))
    if x.dtype == np.float16:
        return rope_nd(x.astype(np.float32), coordinates, frequencies, layout).astype(np.float16)
    turn = turn_interleaved if layout == "interleaved" else turn_half
    dtype = np.result_type(x.dtype, np.complex64)
    if is_grid(coordinates, frequencies):  # the same up to rounding, in less time
        return turn(x, turns_of_a_grid(coordinates, frequencies).astype(dtype, copy=False))
    angles = coordinates.astype(np.float64) @ frequencies.astype(np.float64)  # (..., L, n)
    return turn(x, np.exp(1j * angles).astype(dtype, copy=False))


def is_grid(p: np.ndarray, omega: np.ndarray) -> bool:
    """Whether p counts an image of 64 or more patches row by row, and all heads share Omega."""
    if len(p) < 64 or p.shape[1:] != (2,) or omega.ndim > 2:
        return False
    rows, columns = np.moveaxis(p.reshape(-1, _width(p), 2), -1, 0)  # (h, w) each
    return bool((rows == rows[:, :1]).all() and (columns == columns[:1]).all())


def _width(p: np.ndarray) -> int:
    """Tokens before the first coordinate changes, if as many fill each row."""
    w = int(np.argmax(p[:, 0] != p[0, 0]))
    return w if w and len(p) % w == 0 else len(p)


def turns_of_a_grid(p: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """e^(i p Omega) of a grid: e^(i (y a + x b)) = e^(i y a) e^(i x b), so h + w rows make h w."""
    w = _width(p)
    y, x = p[::w, :1].astype(np.float64), p[:w, 1:].astype(np.float64)  # (h, 1), (w, 1)
    turns = np.exp(1j * y * omega[0])[:, None] * np.exp(1j * x * omega[1])  # (h, w, n)
    return turns.reshape(len(p), -1)


def _check_angles(name: str, x: Shape, p: Shape, omega: Shape) -> None:
    """Refuse coordinates and frequencies whose angles don't fit x."""
    if len(p) < 2 or len(omega) < 2 or p[-1] != omega[-2]:
        raise ValueError(
            f"{name}: coordinates must have the axes (..., L, A) and frequencies (A, n); "
            f"got shapes {p} and {omega}"
        )
    if 2 * omega[-1] > x[-1]:
        raise ValueError(
            f"{name}: frequencies must have at most K/2 columns; got shape {omega} for K = {x[-1]}"
        )
    batch = checks.common_batch(name, coordinates=p[:-2], frequencies=omega[:-2])
    checks.fits(name, "angles", (*batch, p[-2]), x[:-1], "x without its last axis")


def axial_frequencies(
    d: int, axes: int = 2, base: float = 100.0, spacing: str = "split"
) -> np.ndarray:
    """Omega of axial RoPE: each pair turns along one axis, first all pairs of the first axis.

    Parameters
    ----------
    d : int
        Number of components to turn, divisible by 2 A.
    axes : int
        Number A of axes.
    base : float
        100 in rope-vit and DINOv3, 10000 in Qwen2-VL and Pixtral.
    spacing : "split" or "alternate"
        "split" gives each axis the same ladder base^(-2Ac/d), c = 0 .. d/(2A) - 1. "alternate"
        makes one ladder base^(-2c/d) and deals its rungs out to the axes in turn, as Pixtral does.

    Returns
    -------
    (A, d/2) float64 array, one entry in each column that is not 0.

    Raises
    ------
    ValueError
        If 2 A does not divide d, A is below 1, the base is not above 0 or the spacing is unknown.

    Notes
    -----
    Source: Heo et al. 2024 and naver-ai/rope-vit (commit ce85c2e), with the first axis first;
    "alternate" as in transformers 5.23.0, `PixtralVisionRotaryEmbedding`.

    Examples
    --------
    >>> axial_frequencies(8).round(4).tolist()
    [[1.0, 0.1, 0.0, 0.0], [0.0, 0.0, 1.0, 0.1]]
    >>> axial_frequencies(8, base=10000.0, spacing="alternate").round(4).tolist()
    [[1.0, 0.01, 0.0, 0.0], [0.0, 0.0, 0.1, 0.001]]
    """
    name = "axial_frequencies"
    axes = checks.integer(name, "axes", axes)
    d = _shared(name, d, axes)
    base = checks.positive(name, "base", base)
    spacing = checks.choice(name, "spacing", spacing, ("split", "alternate"))
    each = d // (2 * axes)  # pairs of one axis
    if spacing == "split":
        rungs = np.tile(rope_frequencies(2 * each, base), (axes, 1))  # (A, each)
    else:
        rungs = rope_frequencies(d, base).reshape(each, axes).T
    omega = np.zeros((axes, axes, each))
    omega[range(axes), range(axes)] = rungs
    return omega.reshape(axes, -1)  # (A, d/2)


def mixed_frequencies(rng: np.random.Generator, d: int, base: float = 10.0) -> np.ndarray:
    """Omega with which the training of mixed RoPE begins: a head's pairs turn along two directions.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the direction comes from, one number; it moves on.
    d : int
        Number of components to turn, divisible by 4.
    base : float
        10 in rope-vit.

    Returns
    -------
    (2, d/2) float64 array: columns of length base^(-4c/d), c = 0 .. d/4 - 1, twice; those of the
    first half point in the direction (cos phi, sin phi), those of the second at right angles to it.
    Draw once for each head (and layer), stack, and train.

    Raises
    ------
    ValueError
        If `rng` is no generator, 4 does not divide d or the base is not above 0.

    Notes
    -----
    Source: Heo et al. 2024; naver-ai/rope-vit (commit ce85c2e), `init_random_2d_freqs`, whose first
    coordinate is the column.

    Examples
    --------
    >>> Omega = mixed_frequencies(np.random.default_rng(0), 8)
    >>> np.linalg.norm(Omega, axis=0).round(4).tolist()
    [1.0, 0.3162, 1.0, 0.3162]
    """
    name = "mixed_frequencies"
    rng = checks.generator(name, "rng", rng)
    d = _shared(name, d, 2)
    base = checks.positive(name, "base", base)
    lengths = rope_frequencies(d // 2, base)
    phi = rng.uniform(0, 2 * math.pi)
    direction = np.repeat([phi, phi + math.pi / 2], d // 4)  # (d/2,)
    return np.stack([np.cos(direction), np.sin(direction)]) * np.tile(lengths, 2)  # (2, d/2)


def _shared(name: str, d: int, axes: int) -> int:
    """A number of components that the axes share, in pairs."""
    d = checks.integer(name, "d", d)
    if d % (2 * axes):
        raise ValueError(
            f"{name}: d must be divisible by {2 * axes}, so that each of {axes} axes gets as many "
            f"pairs; got {d}"
        )
    return d


def patch_coordinates(
    height: int,
    width: int,
    kind: str = "index",
    trained: int | Sequence[int] | None = None,
) -> np.ndarray:
    """Row and column of each patch of an image, row by row.

    Parameters
    ----------
    height, width : int
        Rows and columns of the grid of patches.
    kind : "index" or "centred"
        Counted from 0; or the middle of the patch on a scale from -1 to 1, whatever the size of
        the grid: 2 (i + 1/2)/height - 1.
    trained : int or pair of int, optional
        Rows and columns of the grid in training. The index is stretched or squeezed to that range:
        i * trained/height.

    Returns
    -------
    (height * width, 2) float64 array.

    Raises
    ------
    ValueError
        If a size is below 1 or no whole number, the kind is unknown, or `trained` is given with
        centred coordinates, which don't know the size.

    Notes
    -----
    Source: "centred" as in facebookresearch/dinov3 (commit 6876159), which multiplies the angles by
    2 pi; `trained` as in baaivision/EVA (commit 5623d08), EVA-02.

    Examples
    --------
    >>> patch_coordinates(2, 3).tolist()
    [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]
    >>> patch_coordinates(2, 3, "centred")[-1].round(4).tolist()
    [0.5, 0.6667]
    """
    name = "patch_coordinates"
    height = checks.integer(name, "height", height)
    width = checks.integer(name, "width", width)
    kind = checks.choice(name, "kind", kind, ("index", "centred"))
    if kind == "centred" and trained is not None:
        raise ValueError(
            f"{name}: trained must be left out for centred coordinates, which are the same for "
            f"every size; got {trained}"
        )
    if trained is not None:
        trained = _pair(name, trained)
    index, sides = np.indices((height, width)).reshape(2, -1).T, np.array([height, width])
    if kind == "centred":
        return 2 * (index + 0.5) / sides - 1
    return index * (1.0 if trained is None else np.divide(trained, sides))  # (L, 2)


def _pair(name: str, trained: int | Sequence[int]) -> tuple[int, ...]:
    """Rows and columns from a pair, or from one number for both."""
    pair = (trained, trained) if np.ndim(trained) == 0 else tuple(trained)  # type: ignore[arg-type]
    if len(pair) != 2:
        raise ValueError(f"{name}: trained must be one number or two; got {len(pair)}")
    return tuple(checks.integer(name, "trained", n) for n in pair)


def mrope_frequencies(
    sections: Sequence[int], base: float = 10000.0, interleaved: bool = False
) -> np.ndarray:
    """Omega of M-RoPE: the one ladder base^(-2c/K), whose pairs time, row and column share.

    Parameters
    ----------
    sections : (3,) sequence of int
        How many pairs turn with time, row and column; K is twice their sum.
    base : float
        The base of the ladder, as in `rope_frequencies`.
    interleaved : bool
        False: first all pairs of time, then of the row, then of the column (Qwen2-VL). True: pair c
        belongs to the row if c mod 3 = 1 and to the column if c mod 3 = 2, until their sections are
        full, and else to time (Qwen3-VL).

    Returns
    -------
    (3, K/2) float64 array, one entry in each column that is not 0. It says nothing of which
    components pair up: in Qwen2-VL and Qwen3-VL alike that is the layout "half".

    Raises
    ------
    ValueError
        If there are not three whole numbers of 0 or more with a pair among them, or interleaved
        sections of row or column do not fit among all pairs.

    Notes
    -----
    Source: Wang et al. 2024; transformers 5.23.0, `qwen2_vl` and `qwen3_vl` (`mrope_section`).

    Examples
    --------
    >>> mrope_frequencies((2, 1, 1)).round(4).tolist()
    [[1.0, 0.1, 0.0, 0.0], [0.0, 0.0, 0.01, 0.0], [0.0, 0.0, 0.0, 0.001]]
    >>> mrope_frequencies((2, 1, 1), interleaved=True).round(4).tolist()
    [[1.0, 0.0, 0.0, 0.001], [0.0, 0.1, 0.0, 0.0], [0.0, 0.0, 0.01, 0.0]]
    """
    name = "mrope_frequencies"
    sections = _sections(name, sections)
    base = checks.positive(name, "base", base)
    interleaved = checks.flag(name, "interleaved", interleaved)
    n = sum(sections)
    axis = np.repeat([0, 1, 2], sections)  # (n,)
    if interleaved:
        axis[:] = 0
        for a in (1, 2):
            axis[a : 3 * sections[a] : 3] = a
    if np.bincount(axis, minlength=3).tolist() != sections:
        raise ValueError(
            f"{name}: interleaved sections of row and column must fit among every third pair; "
            f"got {sections}, of which {np.bincount(axis, minlength=3).tolist()} would be left"
        )
    omega = np.zeros((3, n))
    omega[axis, np.arange(n)] = rope_frequencies(2 * n, base)
    return omega


def _sections(name: str, sections: Sequence[int]) -> list[int]:
    """Three numbers of pairs, one above 0 among them."""
    sections = sections if isinstance(sections, Iterable) else [sections]
    counts = [checks.integer(name, "a section", s, least=0) for s in sections]
    if len(counts) != 3 or sum(counts) == 0:
        raise ValueError(
            f"{name}: sections must be three numbers of pairs, for time, row and column, with a "
            f"sum above 0; got {counts}"
        )
    return counts


def mrope_positions(grids: Iterable[int | Sequence[int]]) -> tuple[np.ndarray, int]:
    """Count time, row and column through text, images and films: the coordinates of M-RoPE.

    Parameters
    ----------
    grids : sequence of int and of (t, h, w)
        The parts of the sequence in order: a number of tokens of text, or the frames, rows and
        columns of an image (t = 1) or film, as many as the language model sees (after merging).

    Returns
    -------
    positions : (L, 3) integer array
        Text counts all three together; a grid counts each from where it begins, and what follows
        begins one after the largest number so far.
    delta : int
        The position of a next token of text, minus L. Keep it beside a cache: the token in slot m
        is at m + delta on all three axes.

    Raises
    ------
    ValueError
        If there is no token, a part is neither one number nor three, or they are not whole numbers,
        of at least 0 for text and 1 for grids.

    Notes
    -----
    Source: Wang et al. 2024; transformers 5.23.0, `Qwen2VLModel.get_rope_index`. After a film with
    more frames than rows and columns that code goes on at start + max(h, w), as if it were an
    image; its version 4.57 at the largest position + 1, as here.

    Examples
    --------
    >>> positions, delta = mrope_positions([2, (1, 2, 3), 1])
    >>> positions.T.tolist()
    [[0, 1, 2, 2, 2, 2, 2, 2, 5], [0, 1, 2, 2, 2, 3, 3, 3, 5], [0, 1, 2, 3, 4, 2, 3, 4, 5]]
    >>> delta
    -3
    """
    name = "mrope_positions"
    grids = _parts(name, grids)
    start, blocks = 0, []
    for part in grids:
        if isinstance(part, int):
            block, length = np.arange(part)[:, None].repeat(3, axis=1), part
        else:
            block, length = np.indices(part).reshape(3, -1).T, max(part)
        blocks.append(start + block)  # (tokens, 3)
        start += length
    positions = np.concatenate(blocks)
    return positions, start - len(positions)


def _parts(name: str, grids: Iterable[int | Sequence[int]]) -> list[int | tuple[int, ...]]:
    """Lengths of text as int, grids as (t, h, w), and a token among them."""
    if not isinstance(grids, Iterable):
        raise ValueError(f"{name}: grids must be a list of parts; got {grids!r}")
    parts: list[int | tuple[int, ...]] = []
    for part in grids:
        if np.ndim(part) == 0:
            parts.append(checks.integer(name, "a length of text", part, least=0))
            continue
        sides = tuple(checks.integer(name, "a side of a grid", n) for n in part)  # type: ignore[union-attr]
        if len(sides) != 3:
            raise ValueError(f"{name}: a grid must be (t, h, w); got {len(sides)} numbers")
        parts.append(sides)
    if not any(parts):
        raise ValueError(f"{name}: grids must hold at least one token; got {len(parts)} parts")
    return parts
