r"""Break the book's own decoder: any words, continued right and with wrong positions.

Equation: the likeliest character each time; the surprise of a character is -ln p of the right
model. The mistakes are those of the page *Break a real model*, in both layers.
Source: `notebooks/results/text.npz`, the decoder of chapter 63, trained on Newton's *Opticks*.
Axes: L characters, V of the alphabet.
Convention: masks follow the true order.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pe_numpy import Model, decode, linear_scaling, load, rope_frequencies, yarn_scaling
from pe_numpy.book.trained import RESULTS
from pe_numpy.judging.tasks import text_corpus, to_tokens
from pe_numpy.training.optimiser import tree_map
from pe_numpy.transformer.attention import log_softmax
from pe_numpy.transformer.encodings import Encoding, Rope

NAME = "continued"
BASE, TRAINED, FACTOR, SHIFT = 1000.0, 128, 4, 100
MOST, STEPS = 60, 40  # characters that are read at most; that are written


@dataclass(frozen=True)
class Told(Rope):
    """RoPE that is told other positions: `told` is a function of the true ones."""

    told: Callable[[np.ndarray], np.ndarray] = np.array

    def turn(self, params: Any, q: np.ndarray, k: np.ndarray, context: Any) -> Any:
        """Rotate queries and keys by what is told."""
        other = copy.copy(context)
        other.q_positions = self.told(context.q_positions)
        other.k_positions = self.told(context.k_positions)
        return super().turn(params, q, k, other)  # type: ignore[no-untyped-call]


def mistakes(length: int) -> dict[str, Encoding]:
    """Encodings by mistake; `length` characters are read, then `STEPS` are written."""
    told: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "right": np.array,
        "shift": lambda p: p + SHIFT,
        "written": lambda p: np.where(p < length, p, p + SHIFT),
        "zero": np.zeros_like,
        "reverse": lambda p: length + STEPS - 1 - p,
        "halve": lambda p: p / 2,
        "double": lambda p: 2 * p,
    }
    return {
        **{name: Told(BASE, told=f) for name, f in told.items()},
        "base": Rope(10_000.0),
        "none": Encoding(),
        "linear": Rope(
            BASE, scaling=lambda K, _: linear_scaling(rope_frequencies(K, BASE), FACTOR)
        ),
        "yarn": Rope(BASE, scaling=lambda K, _: yarn_scaling(K, FACTOR, TRAINED, BASE)),
        "layout": Rope(BASE, "half"),
    }


def continued(text: str, mistake: str) -> dict[str, Any]:
    """What the decoder writes after a text, right and with a mistake; what is wrong, under "error".

    "right" and "broken" have "written", a text, and "surprise", a number for each character of it;
    "loss" has the mean surprise, right and broken, of what the right model wrote.

    >>> shown = continued("the rays of light ", "shift")
    >>> shown["right"]["written"] == shown["broken"]["written"]
    True
    """
    params, alphabet = decoder()
    known = mistakes(len(text))
    try:
        if mistake not in known:
            raise ValueError(
                f"{NAME}: mistake must be one of {', '.join(known)}; got {mistake!r}: this decoder "
                "begins its texts with no token of their own"
            )
        if not 1 <= len(text) <= MOST:
            raise ValueError(f"{NAME}: text must have 1 to {MOST} characters; got {len(text)}")
        strange = "".join(dict.fromkeys(c for c in text if c not in alphabet))
        if strange:
            raise ValueError(
                f"{NAME}: text must have only characters that Newton's Opticks has in this book; "
                f"got {strange!r}"
            )
    except ValueError as error:
        return {"error": str(error)}
    models = {"right": Model(2, known["right"]), "broken": Model(2, known[mistake])}
    given = to_tokens(text, alphabet).tolist()
    written = {side: greedy(params, model, given) for side, model in models.items()}
    losses = {
        side: float(surprise(params, model, given, written["right"]).mean())
        for side, model in models.items()
    }
    shown: dict[str, Any] = {
        side: {
            "written": "".join(alphabet[v] for v in tokens),
            "surprise": surprise(params, models["right"], given, tokens).round(2).tolist(),
        }
        for side, tokens in written.items()
    }
    return shown | {"loss": losses}


@functools.cache
def decoder() -> tuple[Any, str]:
    """Parameters of chapter 63's decoder, and its alphabet."""
    stored = load(RESULTS / "text.npz")
    params = tree_map(lambda x: x.astype(np.float64), stored["params"])
    return params, text_corpus()["alphabet"]


def greedy(params: Any, model: Model, given: list[int]) -> list[int]:
    """Tokens that the model writes, the likeliest each time."""
    tokens = list(given)
    for _ in range(STEPS):
        tokens.append(int(decode(params, model, [tokens])[0, -1].argmax()))
    return tokens[len(given) :]


def surprise(params: Any, model: Model, given: list[int], written: list[int]) -> np.ndarray:
    """Give -ln p of each written token, in nats."""
    rows = log_softmax(decode(params, model, [[*given, *written[:-1]]])[0, len(given) - 1 :])
    return -rows[np.arange(len(written)), written]
