"""Every scheme of the book by name, and each as a bare function score(q, k, i, j).

Source: the classes of `pe_numpy.transformer.encodings`, and the functions that they call.
Axes: L queries, S keys, K width of the one head, A coordinates of a position.
Convention: scores carry 1/sqrt(K), as everywhere; parameters are random, as if trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from pe_numpy import checks
from pe_numpy.judging.properties import Array, Scores
from pe_numpy.relative.alibi import alibi_slopes
from pe_numpy.relative.distance import relative_distance
from pe_numpy.rotary.nd import axial_frequencies, mixed_frequencies, mrope_frequencies, rope_nd
from pe_numpy.rotary.rope import rope_frequencies
from pe_numpy.rotary.scaling import (
    dynamic_ntk_scaling,
    linear_scaling,
    llama3_scaling,
    longrope_scaling,
    ntk_scaling,
    proportional_frequencies,
    yarn_scaling,
)
from pe_numpy.transformer import encodings
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.encodings.base import Encoding, Shape, as_if_trained
from pe_numpy.transformer.encodings.rotation import Rope, Tempered
from pe_numpy.transformer.encodings.score import ReRope

NAME = "score_function"
BASE = 10.0


class Scheme(NamedTuple):
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

    Raises
    ------
    ValueError
        If `encoding` is no Encoding or the width is no positive integer.

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


def every_scheme(length: int = 128) -> dict[str, Scheme]:
    """Give all schemes by name: those of `every_encoding`, RoPE's choices, and those of a grid.

    Bases are 10, so that the four pairs of a head of width 8 differ within a few dozen positions.

    Examples
    --------
    >>> schemes = every_scheme()
    >>> [name for name, scheme in schemes.items() if scheme.encoding is None]
    ['alibi_signed', 'axial', 'mixed', 'mrope']
    """
    schemes = {}
    for name, e in {**encodings.every_encoding(length), **rope_choices(length // 4)}.items():
        if hasattr(e, "base"):
            e = replace(e, base=BASE)  # type: ignore[call-arg]
        schemes[name] = Scheme(score_function(e), e)
    schemes["alibi_signed"] = Scheme(_signed)
    grids = {
        "axial": axial_frequencies(8, base=BASE),
        "mixed": mixed_frequencies(np.random.default_rng(0), 8, BASE),
        "mrope": mrope_frequencies([2, 1, 1], BASE),
    }
    for name, omega in grids.items():
        schemes[name] = Scheme(partial(_on_grid, omega), axes=len(omega))
    return schemes


def rope_choices(trained_length: int, factor: float = 4.0) -> dict[str, Encoding]:
    """RoPE with other frequencies, at other places, and without turning, by name."""
    L0, s, b = trained_length, factor, BASE

    def longrope(K: int, length: int) -> tuple[Array, float]:
        short, long = np.ones(K // 2), np.linspace(1, s, K // 2)
        return longrope_scaling(K, length, short, long, L0, s, b)

    scalings: dict[str, Callable] = {
        "partial_rope": lambda K, length: rope_frequencies(K // 2, b),
        "proportional_rope": lambda K, length: proportional_frequencies(K, 0.5, b),
        "linear": lambda K, length: linear_scaling(rope_frequencies(K, b), s),
        "ntk": lambda K, length: ntk_scaling(K, s, b),
        "dynamic_ntk": lambda K, length: dynamic_ntk_scaling(K, length, L0, s, b),
        "yarn": lambda K, length: yarn_scaling(K, s, L0, b),
        "longrope": longrope,
        "llama3": lambda K, length: llama3_scaling(rope_frequencies(K, b), s, L0),
    }
    return {
        **{name: Rope(scaling=scaling) for name, scaling in scalings.items()},
        "leaky_rerope": ReRope(16, stretch=s),
        "temperature": Tempered(floor_scale=8),
    }


def _signed(q: Array, k: Array, i: Array, j: Array) -> Array:
    """ALiBi with its sign: the future is raised."""
    bias = -alibi_slopes(1)[0] * relative_distance(i, j)
    return q @ k.T / math.sqrt(q.shape[-1]) + bias


def _on_grid(omega: Array, q: Array, k: Array, i: Array, j: Array) -> Array:
    """RoPE of points."""
    return rope_nd(q, i, omega) @ rope_nd(k, j, omega).T / math.sqrt(q.shape[-1])
