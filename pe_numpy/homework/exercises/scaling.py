"""Exercises of YaRN and of configurations that stretch RoPE (chapter 50)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.rotary.scaling import ntk_scaling, yarn_attention_factor, yarn_scaling

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


def _yarn(
    *,
    turns=lambda length, beta, d, base: (
        d * math.log(length / (beta * 2 * math.pi)) / (2 * math.log(base))
    ),
    down=math.floor,
    up=math.ceil,
    cut=lambda low, high, d: (max(low, 0), min(high, d - 1)),
    mix=lambda theta, s, ramp: theta / s * ramp + theta * (1 - ramp),
    sharpen=yarn_attention_factor,
    truncated=lambda truncate: truncate,
) -> Callable:
    """YaRN with one part of it replaced."""

    def wrong(
        d, factor, trained_length, base=10000.0, beta_fast=32.0, beta_slow=1.0, truncate=True
    ):
        low, high = (turns(trained_length, beta, d, base) for beta in (beta_fast, beta_slow))
        if truncated(truncate):
            low, high = down(low), up(high)
        low, high = cut(low, high, d)
        ramp = np.clip((np.arange(d // 2) - low) / ((high - low) or 0.001), 0, 1)
        theta = base ** (-2 * np.arange(d // 2) / d)
        return mix(theta, factor, ramp), sharpen(factor)

    return wrong


def _wavelengths(theta, s, ramp):
    return 1 / (s / theta * ramp + 1 / theta * (1 - ramp))


YARN = Exercise(
    "yarn_scaling",
    yarn_scaling,
    _yarn_cases,
    (
        Mistake(
            "fast pairs interpolated",
            "Fast pairs, of small index, keep their frequency; slow ones are divided by s.",
            50,
            _yarn(mix=lambda theta, s, ramp: theta / s * (1 - ramp) + theta * ramp),
        ),
        Mistake(
            "2 pi forgotten",
            "A pair turns L0 theta / (2 pi) times within L0.",
            50,
            _yarn(
                turns=lambda length, beta, d, base: (
                    d * math.log(length / beta) / (2 * math.log(base))
                )
            ),
        ),
        Mistake(
            "wavelengths mixed",
            "Frequencies are mixed: (1 - ramp) theta + ramp theta / s.",
            50,
            _yarn(mix=_wavelengths),
        ),
        Mistake(
            "attention not sharpened",
            "The second result is 0.1 ln s + 1, for s above 1.",
            50,
            _yarn(sharpen=lambda s: 1.0),
        ),
        Mistake(
            "the factor of the scores",
            "Queries and keys get 0.1 ln s + 1 each, so that the scores get its square.",
            50,
            _yarn(sharpen=lambda s: yarn_attention_factor(s) ** 2),
        ),
        Mistake(
            "sharpened below 1, too",
            "For s up to 1 the attention factor is 1.",
            50,
            _yarn(sharpen=lambda s: 0.1 * math.log(s) + 1),
        ),
        Mistake(
            "always whole pairs",
            "Without truncate the ramp begins and ends where the equation says.",
            50,
            _yarn(truncated=lambda truncate: True),
        ),
        Mistake(
            "never whole pairs",
            "With truncate the ramp begins at the floor of its index and ends at the ceiling.",
            50,
            _yarn(truncated=lambda truncate: False),
        ),
        Mistake(
            "rounded to the nearest pair",
            "The ramp begins at the floor of its index and ends at the ceiling.",
            50,
            _yarn(down=round, up=round),
        ),
        Mistake(
            "the ramp not cut off",
            "It begins at pair 0 or later, and ends at d - 1 or before.",
            50,
            _yarn(cut=lambda low, high, d: (low, high)),
        ),
        Mistake(
            "the ramp ends at the last pair",
            "The released code cuts the end at d - 1, not at d/2 - 1.",
            50,
            _yarn(cut=lambda low, high, d: (max(low, 0), min(high, d // 2 - 1))),
        ),
    ),
    chapter=50,
    further=(
        Mistake(
            "both ends rounded down",
            "The ramp begins at the floor of its index and ends at the ceiling.",
            50,
            _yarn(up=math.floor),
        ),
        Mistake(
            "both ends rounded up",
            "The ramp begins at the floor of its index and ends at the ceiling.",
            50,
            _yarn(down=math.ceil),
        ),
    ),
)

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
    for layer in (1, 2):
        yield case({"head_dim": 16, "layer_types": types, "rope_parameters": parameters}, layer)


def _edited(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Callable:
    """`rope_settings` of a configuration whose RoPE parameters `change` has edited."""

    def wrong(config, layer=0, length=None):
        config, scaling = dict(config), dict(config.get("rope_scaling", {}))
        change(scaling, config)
        if scaling:
            config["rope_scaling"] = scaling
        else:
            config.pop("rope_scaling", None)
        return rope_settings(config, layer, length)

    return wrong


def _type_alone(scaling, config):
    if "type" not in scaling:
        scaling.clear()


def _always_linear(scaling, config):
    factor = scaling.get("factor")
    scaling.clear()
    scaling.update({"type": "linear", "factor": factor} if factor else {})


def _longest_as_trained(scaling, config):
    if "original_max_position_embeddings" in scaling:
        scaling["original_max_position_embeddings"] = config["max_position_embeddings"]


def _own_factor_unread(scaling, config):
    scaling.pop("attention_factor", None)


def _kind(config):
    scaling = config.get("rope_scaling", {})
    return scaling.get("rope_type", scaling.get("type"))


def _at_any_length(config, layer=0, length=None):
    if _kind(config) != "dynamic":
        return rope_settings(config, layer, length)
    d = 2 * len(rope_settings(config, layer, length)[0])
    return ntk_scaling(d, config["rope_scaling"]["factor"], config["rope_theta"]), 1.0


def _growth_alone(config, layer=0, length=None):
    if _kind(config) == "dynamic":
        config = {**config, "rope_scaling": {"type": "dynamic", "factor": 1.0}}
    return rope_settings(config, layer, length)


def _quotient(config, layer=0, length=None):
    if "hidden_size" in config:
        config = {key: value for key, value in config.items() if key != "head_dim"}
    return rope_settings(config, layer, length)


CONFIGURED = Exercise(
    "rope_settings",
    rope_settings,
    _settings_cases,
    (
        Mistake(
            "the type in one spelling alone",
            'The type stands under "rope_type", or under "type" in older files.',
            50,
            _edited(_type_alone),
        ),
        Mistake(
            "every type read as linear",
            "Only the type linear divides all frequencies by the factor.",
            50,
            _edited(_always_linear),
        ),
        Mistake(
            "not stretched",
            'What "rope_scaling" says changes the frequencies.',
            50,
            _edited(lambda scaling, config: scaling.clear()),
        ),
        Mistake(
            "the longest length for the trained one",
            'L0 is "original_max_position_embeddings" where it is given.',
            50,
            _edited(_longest_as_trained),
        ),
        Mistake(
            "dynamic NTK at any length",
            "The frequencies depend on the present length; up to the trained one they stay.",
            50,
            _at_any_length,
        ),
        Mistake(
            "dynamic NTK without its factor",
            "The factor of NTK is s g - (s - 1), where g is L / L0; that is g for s = 1 alone.",
            50,
            _growth_alone,
        ),
        Mistake(
            "YaRN without its attention factor",
            "YaRN has two results, frequencies and 0.1 ln s + 1.",
            50,
            lambda config, layer=0, length=None: (rope_settings(config, layer, length)[0], 1.0),
        ),
        Mistake(
            "the file's own attention factor not read",
            'Where there is an "attention_factor", it takes the place of 0.1 ln s + 1.',
            50,
            _edited(_own_factor_unread),
        ),
        Mistake(
            "the quotient before head_dim",
            "Where there is a head_dim, it is the width of a head.",
            42,
            _quotient,
        ),
    ),
    chapter=50,
)

EXERCISES = (YARN, CONFIGURED)
