"""A decoder, step by step: what it computes, and what it keeps."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from pe_numpy.book.explore.figure import Bet, Control, Explorable, State, box, path, text
from pe_numpy.training.autodiff import value_and_grad
from pe_numpy.training.loss import cross_entropy
from pe_numpy.training.optimiser import adamw, adamw_state
from pe_numpy.transformer.attention import softmax
from pe_numpy.transformer.context import Cache
from pe_numpy.transformer.encodings import T5, Alibi, Encoding, Rope, Sinusoidal
from pe_numpy.transformer.init import Sizes, init_params
from pe_numpy.transformer.model import Model, decode

WORDS = ("wǒ", "shì", "zhōng", "guó", "rén", "end")
ENCODINGS: dict[str, type[Encoding]] = {
    "RoPE": Rope,
    "sinusoidal": Sinusoidal,
    "T5": T5,
    "ALiBi": Alibi,
}
LEFT, CELL = 64, 69


@functools.lru_cache
def decoder(encoding: str) -> tuple[Model, dict[str, Any]]:
    """A small decoder that has learned one sentence by heart."""
    model = Model(1, ENCODINGS[encoding]())
    params = init_params(Sizes(6, 8, 16, n_layers=1), model, np.random.default_rng(0), np.float64)
    state = adamw_state(params)
    step = value_and_grad(lambda p: cross_entropy(decode(p, model, [[0, 1, 2, 3, 4]]), SENTENCE))
    for _ in range(STEPS):
        params, state = adamw(params, step(params)[1], state, 0.05)
    return model, params


SENTENCE, STEPS = [[1, 2, 3, 4, 5]], 25


def step_decoder(step: int, keep: str, encoding: str, prompt: list[int]) -> State:
    """Read a prompt, then what was written, word by word; count rows of K and V."""
    if not 1 <= step <= 6 - len(prompt):
        raise ValueError(f"after {len(prompt)} words there are {6 - len(prompt)} steps; got {step}")
    model, params = decoder(encoding)
    cache, words, total = Cache(1, 6), list(prompt), 0
    for _ in range(step):
        known = cache.length  # what earlier steps have left
        logits = decode(params, model, [words[known:]], cache=cache)  # the newest words alone
        again = decode(params, model, [words])  # all words, without a cache
        total += len(words) - known if keep == "yes" else len(words)
        words.append(int(logits[0, -1].argmax()))
    held = known if keep == "yes" else 0
    probability = softmax(logits[0, -1]).max()
    difference = float(np.abs(logits[0] - again[0, known:]).max())
    state = {
        "note": f"Step {step}: {len(words) - 1 - held} computed, {held} from the cache; "
        f"the next word is {WORDS[words[-1]]}.",
        "computed": str(len(words) - 1 - held),
        "held": str(held),
        "total": str(total),
        "probability": f"{probability:.3f}",
        "difference": "below 1e-12" if difference < 1e-12 else f"{difference:.1e}",
    }
    keys, values = (rows[0, 0, :, 0] for rows in cache.held["0"])  # a component
    for t in range(6):
        read, new = t < len(words) - 1, t >= held
        look = ("fresh" if new else "kept") if read else "empty"
        state[f"word{t}"] = WORDS[words[t]] if t < len(words) else ""
        state[f"key{t}"] = f"{keys[t] + 0.0:.3f}" if read else ""
        state[f"value{t}"] = f"{values[t] + 0.0:.3f}" if read else ""
        state |= {f"key-box{t}@class": look, f"value-box{t}@class": look}
        state[f"word-box{t}@class"] = "box" if read else "next" if t < len(words) else "empty"
        looks = LEFT + CELL * (t + 0.5), LEFT + CELL * (len(words) - 1.5)
        state[f"look{t}@d"] = f"M{looks[0]:g} 136L{looks[1]:g} 158" if read else "M0 0"
    return state | {"query@x": f"{LEFT + CELL * (len(words) - 2) + 3:g}"}


def prompt(text: str) -> list[int]:
    """Words of the sentence, as token numbers."""
    words = text.split()
    if not words or not set(words) <= set(WORDS) or len(words) > 5:
        raise ValueError(f"one to five of the words {', '.join(WORDS)} are wanted here")
    return [WORDS.index(word) for word in words]


def _picture() -> str:
    parts = []
    for n, name in enumerate(("text", "keys", "values")):
        parts.append(text(LEFT - 8, 32 + 44 * n, name, look="end"))
    for t in range(6):
        x = LEFT + CELL * t
        for n, name in enumerate(("word", "key", "value")):
            parts.append(box(x + 3, 8 + 44 * n, CELL - 6, 38, f"{name}-box{t}"))
        parts += [text(x + CELL / 2, 32 + 44 * n, key=f"{k}{t}", look="middle ink")
                  for n, k in enumerate(("word", "key", "value"))]  # fmt: skip
        parts.append(path("", f"look{t}", "line"))
    parts.append(box(0, 160, CELL - 6, 30, "query", "fresh"))
    parts.append(text(LEFT - 8, 180, "query", look="end"))
    return "".join(parts)


VALUES = (
    ("rows of K and V computed in this step", "computed"),
    ("rows taken from the cache", "held"),
    ("rows computed in all steps so far", "total"),
    ("probability of the next word", "probability"),
    ("logits differ from reading everything again by", "difference"),
)
FIGURE = Explorable(
    title="The cache: step a decoder, and see what is computed and kept",
    alt="Six columns, one for each word, with a box for its key and its value: computed in this "
    "step, taken from the cache, or still empty. The newest word's query looks at every key.",
    controls=(
        Control("step", "step", "2", values=["1", "2", "3", "4"], kind="steps"),
        Control("keep", "keep keys and values", "yes", str, ["yes", "no"], "choice"),
        Control("encoding", "encoding", "RoPE", str, tuple(ENCODINGS), "choice"),
        Control("prompt", "prompt: words of the sentence", "wǒ shì", prompt, kind="field"),
    ),
    compute=step_decoder,
    picture=_picture(),
    height=196,
    values=VALUES,
    bet=Bet(
        question="Nothing is kept. How many rows of K and V does this step compute?",
        answers={"As many": "same", "More": "more", "Fewer": "less"},
        move="Keep nothing",
        change={"keep": "no"},
        subject="The number of rows that this step computes",
        measured=("computed",),
    ),
)


# ---- the same, as a moving picture --------------------------------------------------------------


def filling_cache(step: int) -> State:
    """The decoder above, two frames a step: first a row is computed, then the next word said."""
    state = step_decoder(step // 2 + 1, "yes", "RoPE", [0])
    says = step % 2 == 1
    n = step // 2 + 1  # words that were read
    if not says:
        state |= {f"word{n}": "", f"word-box{n}@class": "empty"}
        state["note"] = state["note"].partition(";")[0] + "."
    unseen = {key for _, key in VALUES}
    return {key: words for key, words in state.items() if key not in unseen}


MOTION = Explorable(
    title="A decoder fills its KV cache: one row per step",
    alt="Steps of a decoder. In each step one key and one value are computed, the earlier ones are "
    "taken from the cache, and the next word is chosen.",
    controls=(Control("step", "step", "0", values=[*map(str, range(10))], kind="steps"),),
    compute=filling_cache,
    picture=_picture(),
    height=196,
    interval=900,
)
