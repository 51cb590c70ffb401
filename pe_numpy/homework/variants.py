"""Exercises with a twist: another sign, order or base for each student; then no copy is an answer.

A variant is made of an exercise: what is done to its function is done to each of its mistakes, and
the function as it is in the book is one mistake more. Its name says which it is: `rope_turned`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Exercise
from pe_numpy.homework.known import Mistake


@dataclass(frozen=True)
class Variant:
    """What is other than in the book, in a sentence for students and in numbers."""

    told: str
    times: dict[str, int] = field(default_factory=dict)  # factors of arguments
    default: dict[str, Any] = field(default_factory=dict)
    result: Callable[[Any], Any] = lambda result: result

    def of(self, function: Callable, reference: Callable) -> Callable:
        """The variant of a function whose arguments are those of the reference."""

        @functools.wraps(reference)
        def changed(*args: Any, **options: Any) -> Any:
            given = inspect.signature(reference).bind(*args, **options)
            for name, factor in self.times.items():
                numbers = np.asarray(given.arguments[name])
                whole = numbers.dtype.kind in ("b", "u")
                given.arguments[name] = factor * (numbers.astype(np.int64) if whole else numbers)
            for name, value in self.default.items():
                given.arguments.setdefault(name, value)
            return self.result(function(*given.args, **given.kwargs))

        return changed


VARIANTS = {
    "relative_distance": {
        "negated": Variant("it is key minus query", result=lambda distance: -distance),
        "doubled": Variant("each step counts 2", result=lambda distance: 2 * distance),
    },
    "alibi_bias": {
        "doubled": Variant("each step of the distance counts 2", {"distance": 2}),
        "rewarded": Variant("the bias is +m |distance|", result=lambda bias: -bias),
    },
    "rope_frequencies": {
        "reversed": Variant("the slowest pair comes first", result=lambda theta: theta[::-1]),
        "base500": Variant("the default of base is 500", default={"base": 500.0}),
        "base20000": Variant("the default of base is 20000", default={"base": 20000.0}),
    },
    "sinusoidal": {
        "reversed": Variant("the last component comes first", result=lambda pe: pe[..., ::-1]),
        "negated": Variant("the waves run backwards: use -position", {"positions": -1}),
    },
    "rope": {
        "turned": Variant("the angle is -position * frequency", {"positions": -1}),
        "doubled": Variant("the angle is 2 * position * frequency", {"positions": 2}),
    },
    "rotary_scores": {
        "turned": Variant(
            "all angles are -position * frequency", {"q_positions": -1, "k_positions": -1}
        ),
        "reversed": Variant("the last key comes first", result=lambda scores: scores[..., ::-1]),
    },
}


class Register(dict[str, Exercise]):
    """The exercises of the book by name, and their variants, which no list of them shows."""

    def __missing__(self, name: str) -> Exercise:
        plain, _, word = name.rpartition("_")
        variant, base = VARIANTS[plain][word], self[plain]  # a KeyError, as of any dictionary
        plainly = Mistake(
            f"{plain}, as it is in the book", f"Here {variant.told}.", 0, base.reference
        )
        known = [
            replace(one, function=variant.of(one.function, base.reference)) for one in base.mistakes
        ]
        return replace(
            base,
            name=name,
            reference=variant.of(base.reference, base.reference),
            others=(plainly, *known),
        )


def told_of(name: str) -> str:
    """What is other in a variant; nothing of an exercise of the book."""
    plain, _, word = name.rpartition("_")
    variants: Mapping[str, Variant] = VARIANTS.get(plain, {})
    return variants[word].told if word in variants else ""
