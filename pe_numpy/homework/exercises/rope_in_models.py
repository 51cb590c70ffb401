"""Exercises on RoPE in real models: parts of a head, layers of their own (chapter 42)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.check import Case, Exercise, Mistake, case
from pe_numpy.rotary.rope import rope_frequencies
from pe_numpy.rotary.scaling import proportional_frequencies

# ---- proportional_frequencies -------------------------------------------------------------------


def _proportional_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(8, 0.5)
    yield case(12, 0.25, 100.0)  # 1.5 pairs: one
    yield case(16, 1.0, 500.0, 4.0)
    yield case(512, 0.25, base=1e6)


def _turned(d: int, fraction: float) -> int:
    return int(fraction * d // 2)


def _after(n: int, theta: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(theta)) < n, theta, 0)


PROPORTIONAL = Exercise(
    "proportional_frequencies",
    proportional_frequencies,
    _proportional_cases,
    (
        Mistake(
            "the ladder of the part",
            "The exponent is 2i over the whole width d: partial RoPE has 2i over p d.",
            42,
            lambda d, fraction, base=10000.0, factor=1.0: _after(
                _turned(d, fraction),
                base ** (-np.arange(d // 2) / max(1, _turned(d, fraction))) / factor,
            ),
        ),
        Mistake(
            "no zeros",
            "The result has d/2 numbers: zeros tell `rope` that the pairs lie in the whole head.",
            42,
            lambda d, fraction, base=10000.0, factor=1.0: proportional_frequencies(
                d, fraction, base, factor
            )[: _turned(d, fraction)],
        ),
        Mistake(
            "the fast pairs dropped",
            "The first, fastest pairs turn; the slowest stand still.",
            42,
            lambda d, fraction, base=10000.0, factor=1.0: np.where(
                np.arange(d // 2) < d // 2 - _turned(d, fraction),
                0,
                rope_frequencies(d, base) / factor,
            ),
        ),
        Mistake(
            "components counted for pairs",
            "p d components are p d/2 pairs.",
            42,
            lambda d, fraction, base=10000.0, factor=1.0: _after(
                int(fraction * d), rope_frequencies(d, base) / factor
            ),
        ),
        Mistake(
            "the factor forgotten",
            "The factor divides each frequency.",
            42,
            lambda d, fraction, base=10000.0, factor=1.0: proportional_frequencies(
                d, fraction, base
            ),
        ),
    ),
    chapter=42,
)

# ---- layers -------------------------------------------------------------------------------------


def layer_bases(n_layers: int, pattern: int, base: float, local_base: float) -> np.ndarray:
    """Give the base of each layer where the last of every `pattern` layers is global."""
    return np.array([local_base if (n + 1) % pattern else base for n in range(n_layers)])


def _layer_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(7, 6, 1e6, 1e4)
    yield case(8, 4, 5e5, 300.0)
    yield case(5, 1, 2e6, 1e4)


LAYERS = Exercise(
    "layer_bases",
    layer_bases,
    _layer_cases,
    (
        Mistake(
            "one base for all layers",
            "Only every `pattern`-th layer is global.",
            42,
            lambda n_layers, pattern, base, local_base: np.full(n_layers, base),
        ),
        Mistake(
            "global first",
            "Layers are counted from 0, and the last of each group is global: 5, 11, ... of six.",
            42,
            lambda n_layers, pattern, base, local_base: np.where(
                np.arange(n_layers) % pattern, local_base, base
            ),
        ),
        Mistake(
            "local and global exchanged",
            "A layer looks far with the large base.",
            42,
            lambda n_layers, pattern, base, local_base: layer_bases(
                n_layers, pattern, local_base, base
            ),
        ),
    ),
    chapter=42,
)

EXERCISES = (PROPORTIONAL, LAYERS)
