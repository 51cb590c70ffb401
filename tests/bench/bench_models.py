"""Training and decoding beside PyTorch, and five seeds of string reversal: `make bench`."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
import torch
from measure import alternate
from parts import Part, times
from report import milliseconds, number, provenance, table, verdict
from torch_decoder import Decoder

import pe_numpy as pe
from pe_numpy.judging.tasks import LETTERS, reversal_batch
from pe_numpy.transformer.encodings import Rope, Sinusoidal

RESULTS = Path(__file__).parents[2] / "notebooks" / "results" / "bench_models.md"
INTRODUCTION = """\
# Training and decoding beside PyTorch

Written by `make bench`. Both sides start from the same parameters: a decoder of two pre-norm layers
with RoPE, heads of width 16, a ReLU network of width 4 D and 51 tokens, in float32. PyTorch runs
eagerly, its form is `tests/bench/torch_decoder.py`.

- A training step is loss, gradients and AdamW. Before any clock ran, the losses of three steps
  agreed to 1e-4; while decoding, all tokens agreed.
- Time: the best round; the sides take turns. Decoding is greedy, with a cache, from one token;
  growth is the time of the last 32 of 256 tokens by that of the first 32, each token at its best.
- Parts of a step were timed alone: *products* are those of all tokens with all matrices, forward
  and for both gradients, without attention's; *forward* is the loss without a tape.
- String reversal: an encoder-decoder of one layer each, D = 32, 1000 steps of 32 strings of 3 to 10
  letters; exact match on 500 strings that no training draws."""
STEPS, DECODING, SEEDS, PARTS = {}, {}, {}, {}
TRAINING = {(32, 32, 32): 1.0, (64, 64, 32): 2.0, (32, 32, 16): None, (32, 128, 16): None}


def built(D, longest):
    """Model and parameters of ours, and the twin."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(True)  # the other benchmarks switch gradients off
    model = pe.Model(D // 16, Rope())
    params = pe.init_params(pe.Sizes(51, D, 4 * D, n_layers=2), model, np.random.default_rng(0))
    return model, params, Decoder(params, D // 16, longest)


@pytest.mark.parametrize(("D", "L", "B"), TRAINING)
def test_training_step(D, L, B, benchmark):
    model, params, twin = built(D, L)
    tokens, targets = np.random.default_rng(1).integers(0, 51, (2, B, L))

    def loss(params):
        return pe.cross_entropy(pe.decode(params, model, tokens), targets)

    gradients = pe.value_and_grad(loss)
    now = [params, pe.adamw_state(params)]

    def ours():
        before, grads = gradients(now[0])
        now[:] = pe.adamw(*(now[0], grads, now[1]), learning_rate=1e-3)
        return float(before)

    theirs = twin.trainer(torch.from_numpy(tokens), torch.from_numpy(targets))
    for _ in range(3):
        assert abs(ours() - theirs()) < 1e-4
    STEPS[D, L, B] = alternate(benchmark, ours, theirs, rounds=60)
    grads, rows = gradients(now[0])[1], np.random.default_rng(3).standard_normal((B * L, 4 * D))
    rows = rows.astype(np.float32)
    PARTS[D, L, B] = times(
        [
            Part("", "products", lambda: products(rows, params)),
            Part("", "forward", lambda: loss(now[0])),
            Part("", "gradients", lambda: gradients(now[0])),
            Part("", "AdamW", lambda: pe.adamw(now[0], grads, now[1], learning_rate=1e-3)),
        ],
        rounds=60,
    )


def products(rows, tree, name=""):
    """Multiply tokens (B L, width) with all matrices of a tree, forward and for the gradients."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            products(rows, value, key)
    elif tree.ndim == 2 and name != "embedding":
        x, g = (rows[:, :width] for width in tree.shape)
        x @ tree, g @ tree.T, x.T @ g


@pytest.mark.parametrize("B", [1, 16])
def test_decoding(B, benchmark):
    model, params, twin = built(64, 257)
    prompt = np.random.default_rng(2).integers(0, 51, (B, 1))

    def ours(steps=256):
        return pe.greedy(params, model, prompt, steps)

    def theirs():
        return twin.greedy(torch.from_numpy(prompt), 256)

    assert (ours() == theirs().numpy()).all()
    best = alternate(benchmark, ours, theirs, rounds=7)
    ours_by_token = [token_times(model, params, prompt) for _ in range(5)]
    theirs_by_token = [twin_times(twin, prompt) for _ in range(5)]
    DECODING[B] = *best, growth(ours_by_token), growth(theirs_by_token)


def token_times(model, params, prompt):
    """Seconds of each of 256 tokens."""
    cache, token, marks = pe.Cache(len(prompt), 257), prompt, [perf_counter()]
    for _ in range(256):
        token = pe.decode(params, model, token, cache=cache)[:, -1].argmax(-1)[:, None]
        marks.append(perf_counter())
    return np.diff(marks)


def twin_times(twin, prompt):
    """The same of the twin."""
    marks = [perf_counter()]
    twin.greedy(torch.from_numpy(prompt), 256, marks)
    return np.diff(marks)


def growth(by_token):
    """Time of the last 32 tokens by that of the first 32, each at its best."""
    best = np.min(by_token, axis=0)
    return best[-32:].sum() / best[:32].sum()


@pytest.mark.parametrize("seed", range(5))
def test_string_reversal(seed):
    model = pe.Model(2, Sinusoidal(), cross_heads=1)
    sizes = pe.Sizes(len(LETTERS), 32, 64, n_layers=1, n_encoder_layers=1)

    def loss(params, batch, rng):
        real = batch["source"] != 0
        memory = pe.encode(params, model, batch["source"], real, rng=rng)
        logits = pe.decode(params, model, batch["inputs"], memory, real, rng=rng)
        return pe.cross_entropy(logits, batch["targets"], ignore=0)

    start = perf_counter()
    params, _ = pe.train(
        pe.init_params(sizes, model, np.random.default_rng(seed)),
        pe.value_and_grad(loss),
        lambda rng: reversal_batch(rng, 32),
        1000,
        lambda t: pe.cosine_schedule(t, 1000, 4e-3),
        seed=seed,
    )
    seconds = perf_counter() - start
    test = reversal_batch(np.random.default_rng(99), 500, held_out=True)
    real, targets = test["source"] != 0, test["targets"]
    written = pe.greedy(
        params,
        model,
        test["inputs"][:, :1],
        targets.shape[1],
        source=test["source"],
        source_real=real,
        end=LETTERS.index("$"),
    )
    cut = targets[:, : written.shape[1]]
    exact = ((written == cut) | (cut == 0)).all(axis=1).mean()
    watch = {}
    memory = pe.encode(params, model, test["source"], real)
    pe.decode(params, model, test["inputs"], memory, real, watch=watch)
    at, length = np.arange(targets.shape[1]), real.sum(axis=1, keepdims=True)
    hits = watch["cross 0"][:, 0].argmax(-1) == length - 1 - at
    SEEDS[seed] = exact, hits[at < length].mean(), seconds
    assert exact >= 0.99


def test_the_tables_are_written(capsys):
    steps = [
        [f"{D}", f"{L}", f"{B}", milliseconds(a), milliseconds(b), number(a / b),
         *verdict(a / b, TRAINING[D, L, B], f"≤ {TRAINING[D, L, B]}")]
        for (D, L, B), (a, b) in STEPS.items()
    ]  # fmt: skip
    decoding = [
        [f"{B}", f"{256 * B / a:.0f}", f"{256 * B / b:.0f}", number(a / b),
         *verdict(a / b, 1.0, "≤ 1.0"), number(g), number(h), *verdict(g, 1.3, "≤ 1.3")]
        for B, (a, b, g, h) in DECODING.items()
    ]  # fmt: skip
    parts = [
        [f"{D}", f"{L}", f"{B}", milliseconds(products), milliseconds(forward),
         milliseconds(both - forward), milliseconds(adamw), milliseconds(STEPS[D, L, B][0])]
        for (D, L, B), (products, forward, both, adamw) in PARTS.items()
    ]  # fmt: skip
    seeds = [
        [f"{seed}", f"{100 * exact:.1f} %", f"{100 * hits:.1f} %", f"{seconds:.0f}",
         *verdict(seconds, 30, "≤ 30")]
        for seed, (exact, hits, seconds) in SEEDS.items()
    ]  # fmt: skip
    text = "\n\n".join([
        f"{INTRODUCTION}\n{provenance()}",
        "## A training step",
        table(["D", "L", "B", "ours, ms", "theirs, ms", "ratio", "goal", ""], steps),
        "## Where the time of a step goes",
        table(["D", "L", "B", "products alone, ms", "forward, ms", "tape and back, ms", "AdamW, ms",
               "all, ms"], parts),
        "## Decoding 256 tokens, D = 64",
        table(["B", "ours, tokens/s", "theirs, tokens/s", "ratio of times", "goal", "", "growth",
               "theirs", "goal ", " "], decoding),
        "## String reversal",
        table(["seed", "exact match", "largest cross-weight on the anti-diagonal", "seconds",
               "goal", ""], seeds),
    ])  # fmt: skip
    with capsys.disabled():
        print(f"\n\n{text}")
    if len(STEPS) == len(TRAINING) and len(DECODING) == 2 and len(SEEDS) == 5:
        RESULTS.write_text(f"{text}\n", encoding="utf-8")
