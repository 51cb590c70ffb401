r"""`python -m pe_numpy positions MODEL FILE`: what a language model loses under wrong positions.

Equation: the loss is the mean of -ln p(token | the tokens before it), in nats, of all tokens but
the first; each way of telling positions is a run of the whole text::

    shift     p + 1000        zero      0           reverse   L - 1 - p
    double    2 p             halve     p / 2       swap      the two of each pair exchanged

Convention: only what the model is told of positions changes. Masks follow the true order.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pe_numpy import checks
from pe_numpy.book.fetch import found
from pe_numpy.book.run import looks, painter, words_of
from pe_numpy.models.load import Decoder, load_model
from pe_numpy.transformer.attention import log_softmax

NAME = "positions"
Told = Callable[[np.ndarray], np.ndarray]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tell the command line what `positions` takes."""
    parser.add_argument("folder", metavar="MODEL", help="gemma, a folder or a GGUF file, as of run")
    parser.add_argument("file", metavar="FILE", help="text")
    parser.add_argument("--tokens", type=int, default=256, help="how many are read; 256")
    parser.add_argument("--attention", metavar="FILE", help="draw what the heads look at")


def run(options: argparse.Namespace) -> None:
    """Print the loss for each way of telling positions, computed from the weights."""
    most = checks.integer(NAME, "tokens", options.tokens, least=3)
    text = Path(options.file).read_text(encoding="utf-8")
    path = found(options.folder)
    model = load_model(path)
    if not isinstance(model, Decoder):
        raise ValueError(f"{NAME}: the model must write; got {model.config['model_type']}")
    words = words_of(path)
    tokens = words.encode(text)[:most]
    if len(tokens) < 3:
        raise ValueError(f"{NAME}: FILE must have 3 tokens; got {len(tokens)}")
    paint = painter() if options.attention else None
    right = loss(model, tokens)
    print(
        f"{len(tokens)} tokens; loss in nats a token, and how much more than with right positions"
    )
    print(f"{'right':8} {right:6.3f}")
    for name, told in ways(len(tokens)).items():
        try:
            wrong = loss(model.replace(places=told), tokens)
        except ValueError as error:  # a table has no row between two others, or beyond its last
            print(f"{name:8} refused: {error}")
            continue
        print(f"{name:8} {wrong:6.3f} {wrong - right:+7.3f}", flush=True)
    if paint:
        names = [words.name(token) for token in tokens]
        paint(looks(model, tokens, None), names).savefig(options.attention)


def ways(length: int) -> dict[str, Told]:
    """Ways of telling positions, each a function of the true ones."""
    return {
        "shift": lambda p: p + 1000,
        "zero": np.zeros_like,
        "reverse": lambda p: length - 1 - p,
        "double": lambda p: 2 * p,
        "halve": lambda p: p / 2,
        "swap": lambda p: p ^ 1,
    }


def loss(model: Decoder, tokens: list[int]) -> float:
    """Mean of -ln p of each token but the first, in nats."""
    log_p = log_softmax(model.logits([tokens])[0, :-1].astype(np.float64))  # (L - 1, V)
    return float(-np.take_along_axis(log_p, np.array(tokens[1:])[:, None], axis=1).mean())
