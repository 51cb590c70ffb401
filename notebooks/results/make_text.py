"""Train the small language model of chapter 63 on Newton's Opticks, and keep it: text.npz.

Usage: OPENBLAS_NUM_THREADS=1 python notebooks/results/make_text.py     (some five minutes)

It reads 128 characters at most and predicts the next one. Parameters are kept in half precision,
so that the file stays small; the losses before and after that rounding are printed and kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pe_numpy import (
    Model,
    Sizes,
    cosine_schedule,
    cross_entropy,
    decode,
    init_params,
    save,
    train,
    value_and_grad,
)
from pe_numpy.training.optimiser import tree_map
from pe_numpy.judging.tasks import text_batch, text_corpus
from pe_numpy.transformer.encodings import Rope

HERE = Path(__file__).parent
LENGTH, STEPS = 128, 4000


def main() -> None:
    """Train, test, write."""
    corpus = text_corpus()
    sizes = Sizes(len(corpus["alphabet"]), 32, 128, n_layers=2)
    model = Model(2, Rope(base=1000.0))

    def loss(params: Any, batch: dict[str, np.ndarray], rng: Any = None) -> Any:
        return cross_entropy(decode(params, model, batch["inputs"]), batch["targets"])

    params, _ = train(
        init_params(sizes, model, np.random.default_rng(0)),
        value_and_grad(loss),
        lambda rng: text_batch(rng, 16, LENGTH, corpus),
        STEPS,
        lambda t: cosine_schedule(t, STEPS, 5e-3),
    )
    small = tree_map(lambda x: x.astype(np.float16), params)
    test = text_batch(np.random.default_rng(1), 256, LENGTH, corpus, held_out=True)
    before = float(loss(params, test))
    after = float(loss(tree_map(lambda x: x.astype(np.float32), small), test))
    print(f"held-out loss {before:.4f}, in half precision {after:.4f} nats a character")
    save(HERE / "text.npz", {"params": small, "loss": np.array([before, after])})


if __name__ == "__main__":
    main()
