"""Exercise of YaRN (chapter 50)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from pe_numpy.homework.check import Case, Exercise, Mistake, case
from pe_numpy.rotary.scaling import yarn_attention_factor, yarn_scaling


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
)

EXERCISES = (YARN,)
