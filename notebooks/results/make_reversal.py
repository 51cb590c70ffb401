"""Train the models of chapter 62 and keep what its figures show: reversal.npz and reversal.md.

Usage: OPENBLAS_NUM_THREADS=1 python notebooks/results/make_reversal.py     (about two minutes)

Training is chaotic: a processor that rounds otherwise ends with other parameters, as good but not
the same. So the figures are drawn from this one run, and chapters 62 and 63 read its parameters.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pe_numpy import (
    Model,
    Sizes,
    cosine_schedule,
    cross_entropy,
    decode,
    embed_tokens,
    encode,
    feed_forward,
    init_params,
    layer_norm,
    multi_head_attention,
    save,
    sinusoidal,
    train,
    value_and_grad,
)
from pe_numpy.files import write_whole
from pe_numpy.judging.tasks import LETTERS, PAD, reversal_batch, to_tokens
from pe_numpy.transformer.encodings import Encoding, Rope, Sinusoidal

HERE = Path(__file__).parent
STEPS, EARLY = 1000, 200
VARIANTS = ("as it should be", "no shift", "no causal mask", "one vector in all", "no positions")
OTHER = "RoPE"  # another encoding: tested as well, without a curve in the figure
SIZES = Sizes(len(LETTERS), 32, 64, 1, n_encoder_layers=1)  # one layer each, width 32
Params = dict[str, Any]
Logits = Callable[[Params, dict[str, np.ndarray]], np.ndarray]


def model_of(variant: str) -> Model:
    """One head of cross-attention, so that there is one map to read."""
    encoding = {"no positions": Encoding(), OTHER: Rope()}.get(variant, Sinusoidal())
    return Model(2, encoding, cross_heads=1)


def decode_unmasked(
    params: Params, tokens: np.ndarray, memory: np.ndarray, real: np.ndarray
) -> np.ndarray:
    """`decode` for one pre-norm layer, without its causal mask."""
    layer = params["decoder"]["layers"]["0"]

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        return layer_norm(x, layer[f"{name}_norm"]["gain"], layer[f"{name}_norm"]["bias"])

    x = embed_tokens(params["embedding"], tokens, math.sqrt(32))
    x = x + sinusoidal(np.arange(tokens.shape[1]), 32).astype(np.float32)
    y = norm("attention", x)
    x = x + multi_head_attention(layer["attention"], y, y, 2)[0]
    y = norm("cross", x)
    x = x + multi_head_attention(layer["cross"], y, memory, 1, real[:, None, None, :])[0]
    x = x + feed_forward(layer["feed_forward"], norm("feed_forward", x))
    last = params["decoder"]["norm"]
    return layer_norm(x, last["gain"], last["bias"]) @ params["output"]


def logits_of(variant: str, model: Model) -> Logits:
    """How a variant reads a batch."""

    def logits(params: Params, batch: dict[str, np.ndarray]) -> np.ndarray:
        real = batch["source"] != PAD
        memory = encode(params, model, batch["source"], real)
        if variant == "no shift":
            return decode(params, model, batch["targets"], memory, real)
        if variant == "no causal mask":
            return decode_unmasked(params, batch["inputs"], memory, real)
        if variant == "one vector in all":
            share = (real / real.sum(axis=1, keepdims=True)).astype(np.float32)
            memory = (memory * share[..., None]).sum(axis=1)[:, None]  # (B, 1, D)
            real = np.ones((len(real), 1), bool)
        return decode(params, model, batch["inputs"], memory, real)

    return logits


def trained(variant: str, steps: int = STEPS) -> tuple[Params, list[float], Logits]:
    """Train a variant for the first `steps` of 1000."""
    model = model_of(variant)
    logits = logits_of(variant, model)

    def loss(params: Params, batch: dict[str, np.ndarray], rng: np.random.Generator) -> Any:
        return cross_entropy(logits(params, batch), batch["targets"], ignore=PAD)

    params, losses = train(
        init_params(SIZES, model, np.random.default_rng(0)),
        value_and_grad(loss),
        lambda rng: reversal_batch(rng, 32),
        steps,
        lambda t: cosine_schedule(t, STEPS, 4e-3),
    )
    return params, losses, logits


def tested(params: Params, logits: Logits) -> dict[str, Any]:
    """Which tokens of 2000 held-out strings are right, after the true prefix and after its own."""
    batch = reversal_batch(np.random.default_rng(1), 2000, held_out=True)
    targets, counts = batch["targets"], batch["targets"] != PAD
    given = (logits(params, batch).argmax(axis=-1) == targets) | ~counts
    tokens = batch["inputs"][:, :1]
    for _ in range(targets.shape[1]):
        newest = logits(params, {**batch, "inputs": tokens, "targets": tokens})[:, -1].argmax(-1)
        tokens = np.concatenate([tokens, newest[:, None]], axis=1)
    free = (tokens[:, 1:] == targets) | ~counts
    mistakes = (~given).cumsum(axis=1)
    after = (mistakes - ~given > 0) & counts  # a mistake was made before
    lengths = (batch["source"] != PAD).sum(axis=1)
    return {
        "given": np.array([given[c, t].mean() for t, c in enumerate(counts.T)]),
        "free": np.array([free[c, t].mean() for t, c in enumerate(counts.T)]),
        "tokens": np.array([given[counts].mean(), free[counts].mean()]),
        "after a mistake": np.array(
            [given[after].mean(), free[after].mean()] if after.any() else []
        ),
        "exact": np.array([given.all(axis=1).mean(), free.all(axis=1).mean()]),
        "exact by length": np.array([free[lengths == n].all(axis=1).mean() for n in range(3, 11)]),
    }


def maps(params: Params, words: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Cross-attention of each word: what each written letter looked at, to three decimals."""
    model, found = model_of(VARIANTS[0]), {}
    for word in words:
        watch: dict[str, np.ndarray] = {}
        memory = encode(params, model, to_tokens([word], LETTERS))
        decode(params, model, to_tokens(["^" + word[::-1]], LETTERS), memory, watch=watch)
        found[word] = watch["cross 0"][0, 0].round(3)  # (L, S)
    return found


def main() -> None:
    """Train all, test all, write both files."""
    kept: dict[str, Any] = {"curves": {}, "tests": {}}
    rows = []
    for variant in (*VARIANTS, OTHER):
        params, losses, logits = trained(variant)
        if variant == VARIANTS[0]:
            kept["params"] = params
            kept["maps"] = maps(params, ("spoons", "question"))
        if variant != OTHER:  # means of ten steps each
            kept["curves"][variant] = np.array(losses).reshape(-1, 10).mean(axis=1)
        kept["tests"][variant] = tested(params, logits)
        rows.append((variant, np.mean(losses[-50:]), kept["tests"][variant]))
        print(*rows[-1])
    early, losses, logits = trained(VARIANTS[0], EARLY)
    kept["tests"]["after 200 steps"] = tested(early, logits)
    rows.append(
        (
            "as it should be, after 200 steps",
            np.mean(losses[-50:]),
            kept["tests"]["after 200 steps"],
        )
    )
    save(HERE / "reversal.npz", kept)
    text = [
        "# Reversing strings: what each change does",
        "",
        "Written by `notebooks/results/make_reversal.py`, with `reversal.npz`. Chapter 62 tells what",
        "was changed. 1000 steps of 32 strings, seed 0; tested on 2000 strings that no training draws.",
        "The loss is the mean of the last 50 steps.",
        f"Python {platform.python_version()}, numpy {np.__version__}, one thread.",
        "",
        "| model | loss | tokens right after the true prefix | after its own | exact match |",
        "|---|---|---|---|---|",
    ]
    for name, loss, test in rows:
        given, free = 100 * test["tokens"]
        text.append(
            f"| {name} | {loss:.4f} | {given:.1f} % | {free:.1f} % | {100 * test['exact'][1]:.1f} % |"
        )
    write_whole(HERE / "reversal.md", "\n".join(text) + "\n")


if __name__ == "__main__":
    main()
