r"""Gemma 3's forward pass with its parts as methods, and the texts on which part 8 measures.

Equation: `pe_numpy.models.gemma3` computes the same, for any batch and with a cache. Here a text
stands alone, and each part can be replaced by one of the same shapes: `gemma.but(positions=...)`.
Axes: L tokens, H query heads, K width of a head; Gemma 3 270M has one KV head.
Source: as `pe_numpy.models.gemma3`. The weights are those of `python -m pe_numpy fetch gemma`.
"""

from __future__ import annotations

import copy
import csv
import functools
import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.book.fetch import found
from pe_numpy.book.run import words_of
from pe_numpy.models.load import Decoder, load_model
from pe_numpy.rotary.rope import rope
from pe_numpy.transformer.attention import softmax
from pe_numpy.transformer.layers import feed_forward, rms_norm

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "notebooks" / "results"
TEXTS = {  # file, first and last character, SHA-256 of that piece
    "opticks": (
        ROOT / "pe_numpy/training/data/opticks.txt",
        (20_000, 40_000),
        "7f0c928494e7c9b8c4c870bb05abe6df4463e00c35c31f4199513281a53e23ed",
    ),
    "pydocs": (
        RESULTS / "real_pydocs.txt",
        (0, 24_000),
        "4b461762130081be7180eacffc160bcac34bd896a1cc8f2e8e00a1bd0865eeb3",
    ),
    "book": (
        RESULTS / "real_book.txt",
        (0, 24_000),
        "c8abbfe8672f2bf543c70877fc455e8fe6cb9cdd634e0dabc4d44d576a5039e4",
    ),
}
EVERY = 3  # losses are those of each third token: the head is half of the work


def text(name: str) -> str:
    """Give one of the three texts, after its hash was compared.

    Source: *Opticks* (1730); Python 3.11's documentation; chapters 11, 21, 50 and 51 of this book.
    """
    path, (start, end), sha256 = TEXTS[checks.choice("text", "name", name, tuple(TEXTS))]
    piece = path.read_text(encoding="utf-8")[start:end]
    got = hashlib.sha256(piece.encode()).hexdigest()
    if got != sha256:
        raise ValueError(f"text: {path.name} must have the SHA-256 {sha256:.12}; got {got:.12}")
    return piece


def tokens_of(name: str, length: int) -> np.ndarray:
    """Give the first tokens (length,) of a text as Gemma reads it; the first is <bos>."""
    return _tokens(name)[:length]


@functools.cache
def _tokens(name: str) -> np.ndarray:
    return np.array(words_of(found("gemma")).encode(text(name)))


@functools.cache
def gemma() -> Gemma:
    """Load Gemma 3 270M, once."""
    return Gemma(load_model(found("gemma")))


class Gemma:
    """Gemma 3 270M, one text at a time, each part a method that an experiment can replace."""

    def __init__(self, model: Decoder) -> None:
        self.model, self.params, self.s = model, model.parameters, model.settings
        self.layers = range(self.s.layers)
        self.local = [n for n in self.layers if self.s.windows[n]]
        self.all_see = [n for n in self.layers if not self.s.windows[n]]

    def but(self, **parts: Callable[..., Any]) -> Gemma:
        """Give a copy with other parts: functions with the arguments of the methods below."""
        unknown = sorted(set(parts) - set(PARTS))
        if unknown:
            raise ValueError(f"but: parts must be of {', '.join(PARTS)}; got {', '.join(unknown)}")
        other = copy.copy(self)
        vars(other).update(parts)
        return other

    # ---- the parts ------------------------------------------------------------------------------

    def positions(self, n: int, p: np.ndarray) -> np.ndarray:
        """What layer n is told of the positions p = 0 ... L - 1, (L,)."""
        return p

    def frequencies(self, n: int) -> np.ndarray:
        """Radians a position of the pairs of layer n, (K/2,)."""
        return self.s.ropes[n].frequencies

    def heads(self, n: int, q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Queries (H, L, K) and keys (1, L, K) of layer n, normed and not yet rotated."""
        return q, k

    def rotated(self, n: int, x: np.ndarray) -> np.ndarray:
        """Queries or keys of layer n by their positions."""
        return rope(x, self.positions(n, np.arange(x.shape[-2])), self.frequencies(n), "half")

    def scores(self, n: int, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Scores (H, L, L) of layer n."""
        return self.rotated(n, q) @ self.rotated(n, k).mT / math.sqrt(self.s.scalar)

    def mask(self, n: int, distance: np.ndarray) -> np.ndarray:
        """Which key each query of layer n may attend to, of the distances i - j (L, L)."""
        return (distance >= 0) & (distance < (self.s.windows[n] or math.inf))

    def weights(self, n: int, w: np.ndarray) -> np.ndarray:
        """Attention weights (H, L, L) of layer n."""
        return w

    def mixed(self, n: int, x: np.ndarray) -> np.ndarray:
        """Outputs (H, L, K) of the heads of layer n."""
        return x

    # ---- the model ------------------------------------------------------------------------------

    def hidden(self, tokens: ArrayLike) -> np.ndarray:
        """What the head reads, (L, D)."""
        tokens, s = np.asarray(tokens), self.s
        p = np.arange(len(tokens))
        x = self.params["embedding"][tokens] * s.embedding_scale
        for n in self.layers:
            layer = self.params["layers"][str(n)]
            h = rms_norm(x, 1 + layer["before_attention"], s.eps)
            q, k, v = (
                (h @ layer[W]).reshape(len(p), -1, s.K).swapaxes(0, 1)
                for W in ("W_q", "W_k", "W_v")
            )
            q = rms_norm(q, 1 + layer["norm_q"], s.eps)  # (H, L, K)
            k = rms_norm(k, 1 + layer["norm_k"], s.eps)  # (1, L, K)
            scores = self.scores(n, *self.heads(n, q, k))  # (H, L, L)
            scores = np.where(self.mask(n, p[:, None] - p), scores, -np.inf)
            w = self.weights(n, softmax(scores))
            h = self.mixed(n, w @ v).swapaxes(0, 1).reshape(len(p), -1) @ layer["W_o"]
            x = x + rms_norm(h, 1 + layer["after_attention"], s.eps)
            h = rms_norm(x, 1 + layer["before_network"], s.eps)
            h = feed_forward(layer["network"], h, "gelu_tanh")
            x = x + rms_norm(h, 1 + layer["after_network"], s.eps)
        return rms_norm(x, 1 + self.params["norm"], s.eps)

    def losses(self, tokens: ArrayLike, start: int = 0, every: int = EVERY) -> np.ndarray:
        """Give -ln p, in nats, of the tokens after start, start + every, ..."""
        tokens = np.asarray(tokens)
        at = np.arange(start, len(tokens) - 1, every)
        h, loss = self.hidden(tokens)[at], np.empty(len(at))
        for part in np.array_split(np.arange(len(at)), math.ceil(len(at) / 64)):  # 64: 67 MB
            logits = h[part] @ self.params["embedding"].T
            logits -= logits.max(-1, keepdims=True)
            right = logits[np.arange(len(part)), tokens[at[part] + 1]]
            loss[part] = np.log(np.exp(logits).sum(-1, dtype=np.float64)) - right
        return loss


PARTS = ("positions", "frequencies", "heads", "rotated", "scores", "mask", "weights", "mixed")


def results(experiment: str) -> dict[tuple[str, str], float]:
    """Read the rows of an experiment from results/real.csv: (setting, text), value."""
    with (RESULTS / "real.csv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {
            (row["setting"], row["text"]): float(row["value"])
            for row in rows
            if row["experiment"] == experiment and row["setting"] != "source"
        }


def changes(experiment: str, setting: str) -> list[float]:
    """Give what an experiment measured for a setting, in the order of `TEXTS`."""
    rows = results(experiment)
    return [rows[setting, text] for text in TEXTS]
