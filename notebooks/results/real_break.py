"""What Gemma 3 270M writes when its positions are wrong: break.json, the page *Break a real model*.

Usage: python notebooks/results/real_break.py                  measures what the table lacks
       python notebooks/results/real_break.py MISTAKE "TEXT"   continues a text of yours

A mistake is a model: other positions, or other settings of RoPE in all its layers. Masks follow the
true order. Each sentence is continued by the likeliest token, 20 times. The table contains only
outputs, no parameters of the model. It is written after each sentence: some 15 minutes in all.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pe_numpy import yarn_scaling
from pe_numpy.book import trained
from pe_numpy.book.fetch import GGUF, RELEASES, found
from pe_numpy.book.run import places, tokens_of, words_of
from pe_numpy.files import write_whole
from pe_numpy.models.load import Decoder, load_model
from pe_numpy.models.page import changed
from pe_numpy.transformer.attention import log_softmax
from pe_numpy.transformer.context import Cache
from pe_numpy.transformer.generate import most_probable

STEPS, SHOWN, FIXED = 20, 4, 128  # tokens written; of these in the arcs; of the fixed text
HEAD = 2, 3  # layer and head that attend to the previous token most (chapter 81, real.csv)
TRAINED, FACTOR, SHIFT = 32_768, 4, 100
PAIRS = 0, 16, 32, 64  # of 128, whose clocks are shown
SENTENCES = (
    "Paris is in France, Rome is in Italy, and Madrid is in",
    "Monday, Tuesday, Wednesday,",
    "A dog bit a man, and the man",
    "The Earth goes around the",
    "Water is made of hydrogen and",
    "One, two, three, four, five,",
    "In winter it is cold, and in summer it is",
    "The opposite of hot is",
    "January, February, March,",
    "To bake bread you need flour, water,",
    "a b c d e f g",
    "def add(a, b):\n    return",
)
MISTAKES = (
    "right",
    "shift",
    "written",
    "zero",
    "reverse",
    "halve",
    "double",
    "base",
    "none",
    "linear",
    "yarn",
    "layout",
    "nobos",
)


def broken(model: Decoder, mistake: str, length: int, steps: int = STEPS) -> Decoder:
    """Give the model with a mistake; `length` tokens are read, then `steps` are written."""
    told = {
        "shift": places(f"shift={SHIFT}", length + steps),
        "written": lambda p: np.where(p < length, p, p + SHIFT),
        "zero": places("zero", length + steps),
        "reverse": places("reverse", length + steps),
        "halve": lambda p: p / 2,
        "double": lambda p: 2 * p,
    }
    if mistake in told:
        return model.replace(places=told[mistake])
    if mistake == "none":
        return model.without_positions()
    s = model.settings
    bases = [rope.frequencies[1] ** (-s.K / 2) for rope in s.ropes]
    yarn = [yarn_scaling(s.K, FACTOR, TRAINED, base) for base in bases]
    ropes = {
        "base": [s.ropes[5]] * s.layers,  # the base of global layers, 1,000,000, in all
        "linear": [rope._replace(frequencies=rope.frequencies / FACTOR) for rope in s.ropes],
        "yarn": [
            rope._replace(frequencies=theta, attention_factor=m)
            for rope, (theta, m) in zip(s.ropes, yarn, strict=True)
        ],
        "layout": [rope._replace(layout="interleaved") for rope in s.ropes],
    }
    return model.replace(settings=changed(s, ropes=ropes.get(mistake, s.ropes)))


def continued(model: Decoder, mistake: str, prompt: list[int]) -> list[int]:
    """Tokens that the model writes with a mistake, the likeliest each time."""
    prompt = prompt[mistake == "nobos" :]
    chosen: list[int] = []
    model = broken(model, mistake, len(prompt))
    ends = model.config.get("eos_token_id", [])
    ends = ends if isinstance(ends, list) else [ends]
    return [*tokens_of(model, prompt, None, most_probable, STEPS, ends, chosen)]


def log_p(model: Decoder, tokens: list[int], start: int, cache: Cache | None = None) -> np.ndarray:
    """Logarithms of the probabilities of each token after `start`, (L - start, V)."""
    h = model.hidden([tokens], cache=cache)[0, start:]
    return log_softmax((h @ model.parameters["embedding"].T).astype(np.float64))


def surprise(model: Decoder, mistake: str, prompt: list[int], written: list[int]) -> np.ndarray:
    """Give -ln p of written tokens, in nats, for the model with a mistake."""
    prompt = prompt[mistake == "nobos" :]
    model = broken(model, mistake, len(prompt), len(written))
    rows = log_p(model, [*prompt, *written[:-1]], len(prompt) - 1)
    return -rows[np.arange(len(written)), written]


def entry(model: Decoder, words: Any, prompt: list[int], mistake: str, right: list[int]) -> Any:
    """Measure one sentence with one mistake; `right` is what the right model writes."""
    written = right if mistake == "right" else continued(model, mistake, prompt)
    own = prompt[mistake == "nobos" :]
    cache = Cache(1, len(own) + SHOWN)
    cache.watch = {}
    other = broken(model, mistake, len(own))
    rows = log_p(other, [*own, *right[:SHOWN]], len(own) - 1, cache)
    best = np.argsort(-rows[0], kind="stable")[:3]
    layer, head = HEAD
    weights = cache.watch[layer][0, head]
    differ = [n for n, pair in enumerate(zip(written, right, strict=False)) if len({*pair}) > 1]
    return {
        "mistake": mistake,
        "written": [text(words, token) for token in written],
        "surprise": surprise(model, "right", prompt, written).round(2).tolist(),
        "wrong": next(iter(differ), -1),
        "loss": round(float(surprise(model, mistake, prompt, right).mean()), 3),
        "likeliest": [[text(words, t), round(float(np.exp(rows[0, t])), 3)] for t in best],
        "weights": [(100 * w[: n + 1]).round().astype(int).tolist() for n, w in enumerate(weights)],
    }


def fixed_loss(model: Decoder, mistake: str) -> float:
    """Mean loss of the first tokens of *Opticks*; its second half counts as written."""
    tokens = trained.tokens_of("opticks", FIXED + 1).tolist()
    half = FIXED // 2
    start = 1 - (mistake == "nobos")
    tokens = tokens[mistake == "nobos" :]
    other = broken(model, mistake, half, len(tokens) - half)
    rows = log_p(other, tokens[:-1], start)
    return round(float(-rows[np.arange(len(rows)), tokens[1 + start :]].mean()), 3)


def clocks(model: Decoder, mistake: str, length: int) -> dict[str, Any]:
    """Positions told of the last token read and of the first one written; frequencies of pairs."""
    length -= mistake == "nobos"
    other = broken(model, mistake, length)
    told = other.places or (lambda p: p)
    theta = other.settings.ropes[HEAD[0]].frequencies
    return {
        "told": [float(p) for p in told(np.arange(length + 1))[-2:]],
        "turns": [float(f"{theta[c]:.4g}") for c in PAIRS],
    }


def text(words: Any, token: int) -> str:
    """Write one token as it stands in a text."""
    return words.tokens[token].replace("\u2581", " ")


# ---- the file -----------------------------------------------------------------------------------

TABLE = trained.RESULTS / "break.json"


def source() -> str:
    """Hash what measures: this file up to the line above, and the fixed text."""
    code = Path(__file__).read_text(encoding="utf-8").partition("\n# ---- the file")[0]
    return hashlib.sha256((code + trained.TEXTS["opticks"][2]).encode()).hexdigest()[:12]


def head() -> dict[str, Any]:
    """Say what the table is and where it is from."""
    return {
        "about": "What Gemma 3 270M writes, right and with wrong positions: outputs, no parameters."
        " Written by `make real-tables` (notebooks/results/real_break.py).",
        "model": GGUF,
        "sha256": RELEASES["gemma"].files[GGUF][0],
        "terms": "Gemma is provided under and subject to the Gemma Terms of Use found at "
        "ai.google.dev/gemma/terms",
        "sentences": "by the authors of this book",
        "fixed": f"opticks {trained.TEXTS['opticks'][2][:12]}, first {FIXED + 1} tokens",
        "units": "surprise and loss: nats a token; weights: per cent, of layer 2, head 3",
        "measured": f"NumPy {np.__version__}, Python {platform.python_version()}, on "
        f"{platform.machine()}",
        "source": source(),
    }


def read() -> dict[str, Any]:
    """Read the table, or give an empty one."""
    if TABLE.exists():
        return dict(json.loads(TABLE.read_text(encoding="utf-8")))
    return {"head": {}, "mistakes": {}, "sentences": []}


def write(table: dict[str, Any]) -> None:
    """Write the table, a line for each entry."""

    def line(x: Any) -> str:
        return json.dumps(x, ensure_ascii=False, separators=(",", ":"))

    losses = ",\n".join(f"{line(name)}:{line(loss)}" for name, loss in table["mistakes"].items())
    rows = ",\n".join(
        f'{{"text":{line(one["text"])},"read":{line(one["read"])},"clocks":{line(one["clocks"])},'
        '"entries":[\n' + ",\n".join(map(line, one["entries"])) + "\n]}"
        for one in table["sentences"]
    )
    whole = json.dumps(table["head"], indent=1, ensure_ascii=False)
    out = f'{{"head":{whole},\n"mistakes":{{\n{losses}\n}},\n"sentences":[\n{rows}\n]}}\n'
    assert json.loads(out) == table
    write_whole(TABLE, out.encode())


def sentence(model: Decoder, words: Any, given: str) -> dict[str, Any]:
    """Measure one sentence with all mistakes."""
    prompt = words.encode(given)
    right = continued(model, "right", prompt)
    return {
        "text": given,
        "read": [text(words, token) for token in prompt],
        "clocks": [clocks(model, mistake, len(prompt)) for mistake in MISTAKES],
        "entries": [entry(model, words, prompt, mistake, right) for mistake in MISTAKES],
    }


def differences(table: dict[str, Any], at: int, mistakes: tuple[str, ...]) -> Iterator[str]:
    """Measure entries of a sentence anew; say where they differ from the table's."""
    model, words = load_model(found("gemma")), words_of(found("gemma"))
    one = table["sentences"][at]
    prompt = words.encode(one["text"])
    right = continued(model, "right", prompt)
    for mistake in mistakes:
        old = one["entries"][MISTAKES.index(mistake)]
        new = entry(model, words, prompt, mistake, right)
        for key in ("written", "wrong"):
            if new[key] != old[key]:
                yield f"{one['text']}, {mistake}, {key}: {new[key]}, table {old[key]}"
        for key, tolerance in (("surprise", 0.02), ("loss", 0.02)):
            if not np.allclose(new[key], old[key], rtol=0.02, atol=tolerance):
                yield f"{one['text']}, {mistake}, {key}: {new[key]}, table {old[key]}"
        for n, (a, b) in enumerate(zip(new["weights"], old["weights"], strict=True)):
            if not np.allclose(a, b, rtol=0, atol=2):
                yield f"{one['text']}, {mistake}, weights of token {n}: {a}, table {b}"


def main(arguments: list[str]) -> None:
    """Measure and write, or continue a text."""
    if arguments and (len(arguments) != 2 or arguments[0] not in MISTAKES):
        raise SystemExit(f"usage: real_break.py MISTAKE TEXT; MISTAKE: {', '.join(MISTAKES)}")
    table = read()
    fresh = table["head"].get("source") == source()
    if not arguments and fresh and len(table["sentences"]) == len(SENTENCES):
        return
    try:
        path = found("gemma")
    except ValueError as error:
        if arguments:
            raise SystemExit(str(error)) from None
        print(f"break.json: left as it is; {error}")
        return
    model, words = load_model(path), words_of(path)
    if arguments:
        mistake, given = arguments
        print("".join(words.stream(continued(model, mistake, words.encode(given)))))
        return
    if not fresh:
        losses = {mistake: fixed_loss(model, mistake) for mistake in MISTAKES}
        table = {"head": head(), "mistakes": losses, "sentences": []}
    for given in SENTENCES[len(table["sentences"]) :]:
        table["sentences"].append(sentence(model, words, given))
        write(table)
        print(given, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
