"""Exercises of YaRN and of configurations that stretch RoPE (chapter 50)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.rotary.scaling import yarn_scaling

# ---- YaRN ---------------------------------------------------------------------------------------


def _yarn_cases(rng: np.random.Generator) -> Iterator[Case]:
    def s(low: float = 1.5, high: float = 20.0) -> float:
        return float(rng.uniform(low, high))

    yield case(8, 4, 256)  # the ramp is 0, 0.5, 1, 1
    for d in (64, 128, 16):
        trained_length = int(rng.integers(512, 8192))
        yield case(d, s(), trained_length)
        yield case(d, s(), trained_length, base=float(rng.uniform(300, 900)))
        yield case(d, s(), trained_length, truncate=False)
    yield case(64, s(0.2, 0.9), 4096)  # a shorter text
    yield case(64, s(), 4096, beta_fast=float(rng.uniform(6, 12)))
    yield case(64, s(), 4096, beta_slow=float(rng.uniform(2, 4)))
    yield case(32, s(), int(rng.integers(600, 1200)), 150000.0, 16.0, 2.0, False)
    yield case(64, s(), 4096, beta_fast=2.0, beta_slow=2.0, truncate=False)  # a step
    yield case(8, s(), 100, base=3.0)  # a ramp beyond the last pair
    yield case(8, s(), 40, beta_fast=20.0)  # and one that begins before the first


YARN = Exercise("yarn_scaling", yarn_scaling, _yarn_cases, chapter=50)

# ---- a configuration ----------------------------------------------------------------------------


def rope_settings(
    config: dict[str, Any], layer: int = 0, length: float | None = None
) -> tuple[np.ndarray, float]:
    """Frequencies of a layer as a configuration has them, and the factor of queries and keys."""
    settings = rope_from_config(config, layer, length)
    assert settings.frequencies is not None
    return settings.frequencies, settings.attention_factor


def _settings_cases(rng: np.random.Generator) -> Iterator[Case]:
    def words(**scaling: Any) -> dict[str, Any]:
        return {
            "hidden_size": 96,
            "num_attention_heads": 3,
            "rope_theta": float(rng.integers(300, 9000)),
            "max_position_embeddings": 32768,
            **({"rope_scaling": scaling} if scaling else {}),
        }

    def s() -> float:
        return round(float(rng.uniform(2, 9)), 2)

    llama = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    yield case({"head_dim": 4, "rope_theta": 100.0})
    yield case(words())
    yield case(words(type="linear", factor=s()))
    yield case({**words(rope_type="linear", factor=s()), "head_dim": 16}, 3)
    yield case(words(**llama, factor=s(), original_max_position_embeddings=2048))
    yield case(words(**llama, factor=s(), original_max_position_embeddings=300), length=70000)
    llama |= {"low_freq_factor": 2.0, "high_freq_factor": float(rng.integers(6, 20))}
    yield case(words(**llama, factor=s(), original_max_position_embeddings=900))
    yield case(words(type="dynamic", factor=s()), length=20000)  # as trained
    yield case(words(type="dynamic", factor=s()), 1, 32768 * s())
    yield case(words(rope_type="dynamic", factor=1.0), length=32768 * s())
    yield case(words(rope_type="yarn", factor=s(), original_max_position_embeddings=4096))
    yield case(words(type="yarn", factor=s(), original_max_position_embeddings=900), 5)
    own = {"attention_factor": 1.25, "beta_fast": 16.0, "beta_slow": 2.0}
    yield case(words(rope_type="yarn", factor=s(), original_max_position_embeddings=900, **own))
    parameters = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 200.0},
        "full_attention": {"rope_type": "linear", "rope_theta": 5e5, "factor": s()},
    }
    types = ["sliding_attention", "sliding_attention", "full_attention"]
    for layers in (types, types[::-1]):
        layered = {"head_dim": 16, "layer_types": layers, "rope_parameters": parameters}
        yield case(layered)
        yield case(layered, 2)


CONFIGURED = Exercise("rope_settings", rope_settings, _settings_cases, chapter=50)

EXERCISES = (YARN, CONFIGURED)
