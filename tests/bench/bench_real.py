"""Gemma 3 270M beside transformers: `make bench`, where `make real GEMMA=accept` has fetched it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from measure import alternate, numpy_peak
from report import number, provenance, table, verdict
from transformers import Gemma3ForCausalLM, Gemma3TextConfig
from transformers import __version__ as version

import pe_numpy
from pe_numpy import Cache, greedy, load_model
from pe_numpy.book.fetch import weights_folder
from pe_numpy.models import gemma3
from pe_numpy.models.pieces import load_pieces

RESULTS = Path(__file__).parents[2] / "notebooks" / "results" / "bench_real.md"
FILE = weights_folder() / "gemma" / "gemma-3-270m-q4_k_m.gguf"
TEXT = Path(pe_numpy.__file__).parent / "training" / "data" / "opticks.txt"
INTRODUCTION = f"""\
# Gemma 3 270M beside transformers

Written by `make bench` where the model is (`make real GEMMA=accept`). transformers {version} gets
the numbers that our page reads of the GGUF file, in float32, and runs with eager attention; the
text is the beginning of Newton's Opticks. Before any clock ran, logits agreed to 1e-3 and the
tokens that both write were the same.

- *Prefill* reads 600 tokens and makes the logits of the last one (*all logits*: of each).
  *Decoding* writes 24 tokens, greedily, after a prompt of 8, the prompt included, with a cache on
  both sides.
- Time: the best round of five; the sides take turns. *Memory*: the most that NumPy held during a
  prefill with the parameters, by the numbers of the parameters in float32."""
ROWS, PEAK = [], []
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason=f"{FILE.name} was not fetched")


@pytest.fixture(scope="module")
def sides():
    """Our model, theirs, and tokens of a text."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    tokens = load_pieces(FILE).encode(TEXT.read_text(encoding="utf-8")[:6000])[:601]
    ours = load_model(FILE)
    c = ours.config
    config = Gemma3TextConfig(
        **{key: value for key, value in c.items() if not key.startswith("rope_")},
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": c["rope_theta"]},
            "sliding_attention": {"rope_type": "default", "rope_theta": c["rope_local_base_freq"]},
        },
        attn_implementation="eager",
    )
    theirs = Gemma3ForCausalLM(config).eval()
    lacking, unknown = theirs.load_state_dict(as_released(ours), strict=False)
    assert (lacking, unknown) == (["lm_head.weight"], [])  # tied
    theirs.tie_weights()
    assert theirs.lm_head.weight is theirs.model.embed_tokens.weight
    return ours, theirs, np.array([tokens[:600]])


def as_released(model):
    """Tensors by the names that transformers gives them."""
    found = {}
    for name, (place, _) in gemma3.weights(model.settings).items():
        x = model.parameters
        for key in place.removesuffix(".T").split("."):
            x = x[key]
        x = x.T if place.endswith(".T") else x
        found[name.removeprefix(gemma3.PREFIX)] = torch.from_numpy(np.array(x, order="C"))
    return found


@pytest.mark.parametrize(("what", "last"), [("prefill", 1), ("prefill, all logits", 600)])
def test_prefill(sides, benchmark, what, last):
    ours, theirs, tokens = sides

    def our_side():
        return ours.logits(tokens, cache=Cache(1, 600), last=last)

    def their_side():
        return theirs(torch.from_numpy(tokens), logits_to_keep=last, use_cache=True).logits

    assert np.abs(our_side() - their_side().numpy()).max() < 1e-3
    ROWS.append([what, "600", *alternate(benchmark, our_side, their_side, rounds=5), 0.6])
    if last == 1:
        held = sum(x.nbytes for x in as_released(ours).values())
        PEAK.append((held + numpy_peak(our_side)[1]) / held)


def test_decoding(sides, benchmark):
    ours, theirs, tokens = sides

    def our_side():
        return greedy(ours.parameters, ours, tokens[:, :8], 24)

    def their_side():
        prompt = torch.from_numpy(tokens[:, :8])
        return theirs.generate(prompt, max_new_tokens=24, do_sample=False, eos_token_id=None)

    assert (our_side() == their_side().numpy()[:, -our_side().shape[1] :]).all()
    ROWS.append(["decoding", "24", *alternate(benchmark, our_side, their_side, rounds=5), 0.8])


def test_the_table_is_written(capsys):
    rows = [
        [what, count, number(a), number(b), number(a / b), *verdict(a / b, goal, f"≤ {goal}")]
        for what, count, a, b, goal in ROWS
    ]
    memory = f"Memory: {PEAK[0]:.2f} times the parameters."
    text = "\n\n".join([
        f"{INTRODUCTION}\n{provenance()}",
        table(["", "tokens", "ours, s", "theirs, s", "ratio", "goal", ""], rows),
        memory,
    ])  # fmt: skip
    with capsys.disabled():
        print(f"\n\n{text}")
    if len(ROWS) == 3:
        RESULTS.write_text(f"{text}\n", encoding="utf-8")
