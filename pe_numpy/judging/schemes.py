"""Every scheme of the book by name, and each as a bare function score(q, k, i, j).

Source: the register of `pe_numpy.transformer.encodings`, to which rows of bare functions are added.
Axes: L queries, S keys, K width of the one head, A coordinates of a position.
Convention: scores carry 1/sqrt(K), as everywhere; parameters are random, as if trained.
"""

from __future__ import annotations

import math
from collections import ChainMap
from functools import partial
from typing import NamedTuple

import numpy as np

from pe_numpy import checks
from pe_numpy.judging.properties import Array, Scores
from pe_numpy.relative.alibi import alibi_slopes
from pe_numpy.relative.distance import relative_distance
from pe_numpy.rotary.nd import axial_frequencies, mixed_frequencies, mrope_frequencies, rope_nd
from pe_numpy.transformer import encodings
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.encodings.base import Encoding, Shape, as_if_trained
from pe_numpy.transformer.encodings.schemes import Reach, Scheme

NAME = "score_function"
BASE = 10.0


class Judged(NamedTuple):
    """A scheme: its bare function, the class that plugs it into the Transformer, and its axes."""

    scores: Scores
    encoding: Encoding | None = None
    axes: int = 1


def score_function(encoding: Encoding, width: int = 8, seed: int = 0) -> Scores:
    """Make a bare function score(q, k, i, j) of an encoding, for one head.

    Parameters
    ----------
    encoding : Encoding
        Any scheme of `pe_numpy.transformer.encodings`, or a student's own.
    width : int
        K, the width of queries and keys, which is the model's width as well.
    seed : int
        Of the parameters; what a scheme begins with as zeros is drawn, too, as if it were trained.

    Returns
    -------
    Function of q (L, K), k (S, K), i (L,) and j (S,) that gives scores (L, S). The sequence is as
    long as the last position says, be it of a query or of a key. Where tokens decide (`gates`),
    the keys are the tokens. A query sees the keys up to its own position. Where position joins
    the token vector, q and k are those vectors, and random W_q and W_k project them.

    Notes
    -----
    Source: the four places of `pe_numpy.transformer.encodings`, one after the other.

    Examples
    --------
    >>> score = score_function(Encoding())
    >>> score(np.ones((1, 8)), np.ones((2, 8)), np.array([5]), np.array([0, 5])).round(4).tolist()
    [[2.8284, 2.8284]]
    """
    if not isinstance(encoding, Encoding):
        raise ValueError(f"{NAME}: encoding must be an Encoding, an object; got {encoding!r}")
    width = checks.integer(NAME, "width", width)
    rng = np.random.default_rng(seed)
    params = as_if_trained(encoding, rng, Shape(width, 1))
    W_q, W_k = rng.standard_normal((2, width, width)) / math.sqrt(width)
    in_token = type(encoding).embed is not Encoding.embed

    def scores(q: Array, k: Array, i: Array, j: Array) -> Array:
        S = len(k)
        last = max(i.max(), j.max())
        if last > j.max():  # the sequence is longer than its keys say: one more, not looked at
            k, j = np.concatenate([k, k[-1:]]), np.append(j, last)
        tokens = encoding.embed(params, np.concatenate([q, k])[None], np.concatenate([i, j]))
        q_in, k_in = tokens[:, : len(q)], tokens[:, len(q) :]
        gates = encoding.gates(params, k_in)
        if in_token:
            q_in, k_in = q_in @ W_q, k_in @ W_k
        context = Context(i, j, mask=(j <= i[:, None])[None, None], gates=gates)
        q_in, k_in = encoding.turn(params, q_in[:, None], k_in[:, None], context)
        return encoding.scores(params, q_in, k_in, context)[0, 0, :, :S]

    return scores


def every_scheme(length: int = 128) -> dict[str, Judged]:
    """Give all schemes by name: those of the register of encodings, and bare functions.

    Bases are 10, so that the four pairs of a head of width 8 differ within a few dozen positions.

    Examples
    --------
    >>> schemes = every_scheme()
    >>> [name for name, scheme in schemes.items() if scheme.encoding is None]
    ['alibi_signed', 'axial', 'mixed', 'mrope']
    """
    schemes, reach = {}, Reach(length, base=BASE)
    for name, row in SCHEMES.items():
        made = row.make(reach)
        if isinstance(made, Encoding):
            schemes[name] = Judged(score_function(made), made)
        else:
            schemes[name] = Judged(made, axes=row.axes)
    return schemes


def _signed(q: Array, k: Array, i: Array, j: Array) -> Array:
    """ALiBi with its sign: the future is raised."""
    bias = -alibi_slopes(1)[0] * relative_distance(i, j)
    return q @ k.T / math.sqrt(q.shape[-1]) + bias


def _on_grid(omega: Array, q: Array, k: Array, i: Array, j: Array) -> Array:
    """RoPE of points."""
    return rope_nd(q, i, omega) @ rope_nd(k, j, omega).T / math.sqrt(q.shape[-1])


GRID = "rope_nd(q, i, omega) @ rope_nd(k, j, omega).T / sqrt(K)"
BARE = {
    "alibi_signed": Scheme("ALiBi", 3, "35_alibi", "alibi_bias",
        "m = alibi_slopes(H)\nscores + alibi_bias(m, relative_distance(i, j), future_slopes=-m)",
        lambda n: _signed),
    "axial": Scheme("axial", 2, "43_rope_grid", "axial_frequencies",
        f"omega = axial_frequencies(K, base=base)\n{GRID}",
        lambda n: partial(_on_grid, axial_frequencies(8, base=n.base)),
        axes=2),
    "mixed": Scheme("mixed", 2, "43_rope_grid", "mixed_frequencies",
        f"omega = mixed_frequencies(rng, K, base)\n{GRID}",
        lambda n: partial(_on_grid, mixed_frequencies(np.random.default_rng(0), 8, n.base)),
        axes=2),
    "mrope": Scheme("M-RoPE", 2, "43_rope_grid", "mrope_frequencies",
        f"omega = mrope_frequencies([2, 1, 1], base)\n{GRID}",
        lambda n: partial(_on_grid, mrope_frequencies([2, 1, 1], n.base)),
        axes=3),
}  # fmt: skip
SCHEMES = ChainMap(BARE, encodings.SCHEMES)  # those of the encodings come first
