"""Exercises on RoPE in real models: parts of a head, layers of their own (chapter 42)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.rotary.rope import rope_frequencies
from pe_numpy.rotary.scaling import proportional_frequencies

# ---- proportional_frequencies -------------------------------------------------------------------


def _proportional_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(8, 0.5)
    yield case(12, 0.25, 100.0)  # 1.5 pairs: one
    yield case(16, 1.0, 500.0, 4.0)
    yield case(512, 0.25, base=1e6)
    for _ in range(9):
        d, p = 2 * int(rng.integers(4, 20)), round(float(rng.uniform(0.1, 1)), 2)
        base, s = float(rng.integers(50, 10**6)), round(float(rng.uniform(1.1, 9)), 1)
        yield case(d, p, base, s)


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
    for _ in range(9):
        n, pattern = (int(size) for size in rng.integers(2, 20, 2))
        yield case(
            n, min(n, pattern), 1e4 * float(rng.integers(2, 99)), float(rng.integers(20, 10**4))
        )


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

# ---- a configuration ----------------------------------------------------------------------------


def layer_frequencies(config: dict[str, Any], layer: int) -> np.ndarray:
    """Give the frequencies of a layer as a configuration has them; none for one without RoPE."""
    frequencies = rope_from_config(config, layer).frequencies
    return np.zeros(0) if frequencies is None else frequencies


def _config_cases(rng: np.random.Generator) -> Iterator[Case]:
    sizes = {"hidden_size": 24, "num_attention_heads": 3}
    linear = {"factor": 4.0, "type": "linear"}
    yield case({**sizes, "rope_theta": 100.0}, 0)
    theta = float(rng.integers(50, 10**6))
    yield case({**sizes, "rope_theta": theta, "head_dim": 12}, 0)
    yield case({"head_dim": 16, "rope_theta": theta, "partial_rotary_factor": 0.25}, 1)
    yield case({"head_dim": 18, "rope_theta": theta, "partial_rotary_factor": 0.25}, 0)  # 4.5: 4
    for layer in (0, 1, 2):
        yield case({"head_dim": 4, "rope_theta": theta, "no_rope_layers": [1, 0, 1]}, layer)
    yield case({**sizes, "rope_theta": theta, "rope_scaling": linear}, 0)
    parameters = {"rope_type": "linear", "factor": 4.0, "rope_theta": theta}
    yield case({**sizes, "rope_parameters": parameters}, 3)
    for n in range(5):
        base = {
            "rope_theta": float(rng.integers(50, 10**6)),
            "head_dim": 4 * int(rng.integers(2, 12)),
        }
        scaling = {"factor": float(rng.integers(2, 9)), "type": "linear"}
        yield case({**base, "partial_rotary_factor": 0.5, "rope_scaling": scaling}, n)


def _without(*names: str, config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in names}


def _whole_ladder(config: dict[str, Any], layer: int) -> np.ndarray:
    turned = len(layer_frequencies(config, layer))
    return layer_frequencies(_without("partial_rotary_factor", config=config), layer)[:turned]


def _not_whole(config: dict[str, Any], layer: int) -> np.ndarray:
    right = layer_frequencies(config, layer)
    whole = layer_frequencies(_without("partial_rotary_factor", config=config), layer)
    turned = config.get("partial_rotary_factor", 1) * len(whole)
    return right[:1] * (right / right[:1]) ** (len(right) / turned) if turned else right


def _list_upside_down(config: dict[str, Any], layer: int) -> np.ndarray:
    if "no_rope_layers" in config:
        config = {**config, "no_rope_layers": [1 - use for use in config["no_rope_layers"]]}
    return layer_frequencies(config, layer)


def _quotient(config: dict[str, Any], layer: int) -> np.ndarray:
    if "hidden_size" in config:
        config = _without("head_dim", config=config)
    return layer_frequencies(config, layer)


CONFIGURED = Exercise(
    "layer_frequencies",
    layer_frequencies,
    _config_cases,
    (
        Mistake(
            "the list upside down",
            "no_rope_layers has a 1 where RoPE is used.",
            42,
            _list_upside_down,
        ),
        Mistake(
            "the quotient before head_dim",
            "Where there is a head_dim, it is the width of a head.",
            42,
            _quotient,
        ),
        Mistake(
            "the ladder of the whole head",
            "The components that turn are a head of their own: its width is in the exponent.",
            42,
            _whole_ladder,
        ),
        Mistake(
            "r not made whole",
            "A quarter of 18 components is 4.5: 4 turn, and 4 stands in the exponent.",
            42,
            _not_whole,
        ),
        Mistake(
            "the factor forgotten",
            "The type linear divides each frequency by its factor, in both spellings.",
            42,
            lambda config, layer: (
                layer_frequencies(config, layer)
                * {**config.get("rope_scaling", {}), **config.get("rope_parameters", {})}.get(
                    "factor", 1
                )
            ),
        ),
    ),
    chapter=42,
)

EXERCISES = (PROPORTIONAL, LAYERS, CONFIGURED)
