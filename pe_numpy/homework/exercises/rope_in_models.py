"""Exercises on RoPE in real models: parts of a head, layers of their own (chapter 42)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.models.rope_config import rope_from_config
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


PROPORTIONAL = Exercise(
    "proportional_frequencies", proportional_frequencies, _proportional_cases, chapter=42
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
        bases = 1e4 * float(rng.integers(2, 99)), float(rng.integers(20, 10**4))
        yield case(n, min(n, pattern), *bases)


LAYERS = Exercise("layer_bases", layer_bases, _layer_cases, chapter=42)

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
    for uses in ([1, 0, 1], [0, 1, 1]):
        for layer in (0, 1, 2):
            yield case({"head_dim": 4, "rope_theta": theta, "no_rope_layers": uses}, layer)
    yield case({**sizes, "rope_theta": theta, "rope_scaling": linear}, 0)
    parameters = {"rope_type": "linear", "factor": 4.0, "rope_theta": theta}
    yield case({**sizes, "rope_parameters": parameters}, 3)
    for n in range(5):
        base = float(rng.integers(50, 10**6))
        head = {"rope_theta": base, "head_dim": 4 * int(rng.integers(2, 12))}
        scaling = {"factor": float(rng.integers(2, 9)), "type": "linear"}
        yield case({**head, "partial_rotary_factor": 0.5, "rope_scaling": scaling}, n)


CONFIGURED = Exercise("layer_frequencies", layer_frequencies, _config_cases, chapter=42)

EXERCISES = (PROPORTIONAL, LAYERS, CONFIGURED)
