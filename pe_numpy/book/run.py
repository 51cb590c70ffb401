"""`python -m pe_numpy run MODEL TEXT`: let a released model write, also with wrong positions.

Convention: what a model is told of positions changes, what it may attend to does not: masks follow
the true order.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pe_numpy import checks
from pe_numpy.book.fetch import found
from pe_numpy.models.embed import tokenizer_of
from pe_numpy.models.entries import entry
from pe_numpy.models.load import Decoder, Encoder, EncoderDecoder, load_model, opened
from pe_numpy.models.pieces import Pieces, load_pieces
from pe_numpy.transformer.attention import softmax
from pe_numpy.transformer.context import Cache
from pe_numpy.transformer.generate import Reader, Sample, generate, most_probable

NAME = "run"
SCALINGS = ("linear", "yarn")
KEPT = ("rope_theta", "partial_rotary_factor", "original_max_position_embeddings")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tell the command line what `run` takes."""
    parser.add_argument(
        "folder",
        metavar="MODEL",
        help="minilm or gemma, which `fetch` fetches; a folder with config.json, weights and "
        "tokenizer.json; or a GGUF file",
    )
    parser.add_argument("text", metavar="TEXT", help="what the model reads")
    parser.add_argument("--ids", action="store_true", help="TEXT is token ids; needs no tokenizer")
    parser.add_argument("--steps", type=int, default=40, help="the most tokens to write")
    parser.add_argument("--temperature", type=float, help="draw tokens instead of the likeliest")
    parser.add_argument("--top-k", type=int, metavar="K", help="draw among the K likeliest")
    parser.add_argument("--seed", type=int, default=0, help="of the draws")
    parser.add_argument("--attention", metavar="FILE", help="draw what the heads look at")
    parser.add_argument(
        "--positions",
        metavar="HOW",
        help="tell it wrong positions: shift=N, zero or reverse; if one part of it reads and "
        "another writes, the part that writes",
    )
    parser.add_argument("--encoding", choices=["none"], help="take the encoding away")
    parser.add_argument("--rope-theta", type=float, metavar="BASE", help="another base for RoPE")
    parser.add_argument(
        "--scaling",
        metavar="TYPE:FACTOR",
        help=f"stretch RoPE, {' or '.join(SCALINGS)}, such as yarn:4; where layers differ, this "
        "and --rope-theta reach those without a window",
    )


def run(options: argparse.Namespace) -> None:
    """Do what the options say, and print what the model writes."""
    folder = found(options.folder)
    model = load_model(folder, changes=changes(opened(folder)[0], options))
    kind = model.config["model_type"]
    if not isinstance(model, Decoder | Encoder | EncoderDecoder) or kind == "whisper":
        raise ValueError(
            f"{NAME}: the model must read text; got {kind}: give what it reads to load_model's "
            "object"
        )
    turns = {"rope", "ropes"} & set(vars(model.settings))
    if (options.rope_theta or options.scaling) and not turns:
        raise ValueError(
            f"{NAME}: --rope-theta and --scaling need a model whose config.json describes its "
            f"RoPE; got {kind}"
        )
    if (options.encoding or options.attention) and isinstance(model, Encoder):
        raise ValueError(f"{NAME}: --encoding and --attention need a model that writes; got {kind}")
    words = Ids() if options.ids else words_of(folder)
    tokens = words.encode(options.text)
    if not tokens:
        raise ValueError(f"{NAME}: TEXT must have a token; got none from {options.text!r}")
    if isinstance(model, Encoder):
        model = model.replace(places=places(options.positions, len(tokens)))
        print(filled(model, tokens, words))
    else:
        written(model, tokens, words, options)


def changes(config: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Entries of the configuration that another base, or a scaling, replaces."""
    new: dict[str, Any] = {}
    if options.rope_theta is not None:
        if not options.rope_theta > 0:
            raise ValueError(f"{NAME}: --rope-theta must be above 0; got {options.rope_theta:g}")
        new["rope_theta"] = options.rope_theta
    if options.scaling is not None:
        kind, _, factor = options.scaling.partition(":")
        number = float(factor) if re.fullmatch(r"\d+(\.\d*)?", factor) else 0
        if kind not in SCALINGS or number < 1:
            raise ValueError(
                f"{NAME}: --scaling must be {' or '.join(SCALINGS)}, a colon and a factor of at "
                f"least 1, such as yarn:4; got {options.scaling!r}"
            )
        new |= {"rope_type": kind, "factor": number}
    if not new:
        return {}
    config = with_text(config)
    new_style = entry(NAME, config, "rope_parameters", {})
    given = entry(NAME, config, "rope_scaling") or new_style
    own = given.get("full_attention", given)  # one for each kind of layer, or one
    own = entry(NAME, {"rope_parameters": own}, "rope_parameters", {})
    kept = KEPT if options.scaling else own
    own_new = {key: own[key] for key in kept if key in own} | new
    return {
        "rope_scaling": None,  # the older spelling
        "rope_parameters": own_new if own is given else {**given, "full_attention": own_new},
    }


def with_text(config: dict[str, Any]) -> dict[str, Any]:
    """Add the entries of "text_config", which models that see images also have."""
    return {**entry(NAME, config, "text_config", {}), **config}


def places(how: str | None, capacity: int) -> Callable[[np.ndarray], np.ndarray] | None:
    """Give the function from true positions to those that the model is told."""
    if how is None:
        return None
    if how == "zero":
        return np.zeros_like
    if how == "reverse":
        return lambda positions: capacity - 1 - positions
    shift = re.fullmatch(r"shift=(-?\d+)", how)
    if shift:
        return lambda positions: positions + int(shift[1])
    raise ValueError(f"{NAME}: --positions must be shift=N, zero or reverse; got {how!r}")


class Ids:
    """Text that is token ids already."""

    def encode(self, text: str) -> list[int]:
        """Read the numbers."""
        try:
            return [int(word) for word in text.replace(",", " ").split()]
        except ValueError:
            raise ValueError(
                f"{NAME}: with --ids TEXT must be whole numbers; got {text!r}"
            ) from None

    def stream(self, tokens: Iterable[int]) -> Iterator[str]:
        """Write each number when it comes."""
        for n, token in enumerate(tokens):
            yield f" {token}" if n else str(token)

    def name(self, token: int) -> str:
        """Write one number."""
        return str(token)


class Words:
    """The tokenizer of a folder: tokenizer.json, as the tokenizers package reads it."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = tokenizer_of(NAME, folder, "give token ids with --ids")

    def encode(self, text: str) -> list[int]:
        """Cut text into tokens, special ones included."""
        try:
            return self.tokenizer.encode(text).ids
        except Exception as error:
            raise ValueError(f"{NAME}: TEXT can't be cut into tokens: {error}") from None

    def stream(self, tokens: Iterable[int]) -> Iterator[str]:
        """Text of tokens as it comes; a character of several tokens waits for the last."""
        text: str = ""
        seen: list[int] = []
        for token in tokens:
            seen.append(token)
            longer = self.tokenizer.decode(seen)
            if longer.startswith(text) and not longer.endswith("\ufffd"):
                yield longer.removeprefix(text)
                text = longer
        yield self.tokenizer.decode(seen).removeprefix(text)

    def name(self, token: int) -> str:
        """Write one token, be it a special one."""
        return self.tokenizer.decode([token], skip_special_tokens=False).strip()


class Cut:
    """The tokenizer inside a GGUF file."""

    def __init__(self, pieces: Pieces) -> None:
        self.encode, self.stream, self.tokens = pieces.encode, pieces.stream, pieces.tokens

    def name(self, token: int) -> str:
        """Write one token, be it a special one."""
        return self.tokens[token].replace("\u2581", " ").strip()


def words_of(path: Path) -> Words | Cut:
    """The tokenizer of a folder or of a GGUF file."""
    return Cut(load_pieces(path)) if path.suffix == ".gguf" else Words(path)


def written(
    model: Decoder | EncoderDecoder, tokens: list[int], words: Ids | Words | Cut, options: Any
) -> None:
    """Print what the model writes, as it comes; draw, if asked, what the heads look at."""
    config, source = with_text(model.config), None
    if isinstance(model, EncoderDecoder):
        source, tokens = np.array([tokens]), [entry(NAME, config, "decoder_start_token_id", 0)]
    if options.encoding == "none":
        model = model.without_positions()
    model = model.replace(places=places(options.positions, len(tokens) + options.steps))
    paint = painter() if options.attention else None
    ends = entry(NAME, config, "eos_token_id", [])
    ends = ends if isinstance(ends, list) else [ends]
    choose: Any = most_probable
    if options.temperature is not None or options.top_k is not None:
        heat = 1.0 if options.temperature is None else options.temperature
        choose = Sample(np.random.default_rng(options.seed), heat, options.top_k)
    steps = checks.integer(NAME, "steps", options.steps, least=0)
    start, chosen = time.perf_counter(), list[int]()
    for text in words.stream(tokens_of(model, tokens, source, choose, steps, ends, chosen)):
        print(text, end="", flush=True)
    print()
    if sys.stderr.isatty():
        seconds = time.perf_counter() - start
        rate = len(chosen) / seconds
        print(f"{len(chosen)} tokens in {seconds:.1f} s, {rate:.1f} a second", file=sys.stderr)
    if paint:
        names = [words.name(token) for token in (*tokens, *chosen)]
        paint(looks(model, [*tokens, *chosen], source), names).savefig(options.attention)


def tokens_of(
    model: Decoder | EncoderDecoder,
    prompt: list[int],
    source: np.ndarray | None,
    choose: Any,
    steps: int,
    ends: list[int],
    chosen: list[int],
) -> Iterator[int]:
    """Give each token that the model writes when it is there, and keep it, up to one of `ends`."""
    read = Reader(model.parameters, model, 1, len(prompt) + steps, source)
    unread = np.array([prompt])
    while len(chosen) < steps and not (chosen and chosen[-1] in ends):
        chosen += generate(read, unread, 1, choose, function=NAME)[0].tolist()
        unread = np.array([chosen[-1:]])
        yield chosen[-1]


def filled(model: Encoder, tokens: list[int], words: Ids | Words | Cut) -> str:
    """Say what an encoder expects at each mask; at each place, if there is no mask."""
    p = softmax(model.logits([tokens])[0].astype(np.float64))  # (L, V)
    masks = [n for n, token in enumerate(tokens) if words.name(token) in ("[MASK]", "<mask>")]
    lines = []
    for place in masks or range(len(tokens)):
        best = np.argsort(-p[place], kind="stable")[:3]
        guesses = ", ".join(f"{words.name(t)} {p[place, t]:.0%}" for t in best)
        lines.append(f"{place:3} {words.name(tokens[place])}: {guesses}")
    return "\n".join(lines)


def looks(
    model: Decoder | EncoderDecoder, tokens: list[int], source: np.ndarray | None
) -> list[np.ndarray]:
    """Attention weights (H, L, L) of each layer over all tokens."""
    cache = Cache(1, len(tokens))
    cache.watch = {}
    of_source: dict[str, Any] = {} if source is None else {"source": source}
    model.logits([tokens], cache=cache, **of_source)
    return [cache.watch[n][0] for n in sorted(cache.watch)]


def painter() -> Callable[..., Any]:
    """Give the function that draws; it needs matplotlib."""
    try:
        from pe_numpy.book.plots.real_models import attention_of_heads
    except ImportError:
        raise ValueError(
            f"{NAME}: --attention needs matplotlib, `pip install matplotlib`"
        ) from None
    return attention_of_heads
