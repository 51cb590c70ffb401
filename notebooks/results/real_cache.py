"""Experiments of chapter 82: sinks, windows, entropy, drafts, rounded keys and moved ones.

A change is the mean over 129 tokens (each third of 388) of how much their loss rises against that
of the model as it is, in nats; "se" is the standard error of that mean over the tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pe_numpy.book.fetch import found
from pe_numpy.book.run import words_of
from pe_numpy.book.trained import Gemma, tokens_of
from pe_numpy.rotary.rope import rope
from pe_numpy.transformer.attention import merge_heads, softmax, split_heads
from pe_numpy.transformer.context import Cache
from pe_numpy.transformer.layers import feed_forward, rms_norm

Rows = Iterator[tuple[str, str, float]]


def _texts(length: int = 388) -> dict[str, np.ndarray]:
    return {text: tokens_of(text, length) for text in ("opticks", "pydocs", "book")}


def _change(setting: str, text: str, loss: np.ndarray, base: np.ndarray) -> Rows:
    """Give the mean of the change, its standard error, and the mean over the last third."""
    change = loss - base
    yield setting, text, float(change.mean())
    yield f"{setting}, se", text, float(change.std() / math.sqrt(len(change)))
    yield f"{setting}, last third", text, float(change[len(change) * 2 // 3 :].mean())


def _changes(gemma: Gemma, settings: dict[str, dict[str, Callable[..., Any]]]) -> Rows:
    """Give the changes of all settings, each a set of other parts, on all texts."""
    for text, tokens in _texts().items():
        base = gemma.losses(tokens)
        yield "as it is", text, float(base.mean())
        for setting, parts in settings.items():
            yield from _change(setting, text, gemma.but(**parts).losses(tokens), base)


def bos_hidden(gemma: Gemma) -> Rows:
    """Change of the loss if later queries of some layers may not attend to one token.

    It is <bos>, or token 5 as a control.
    """

    def hide(layers: Any, token: int = 0) -> dict[str, Callable[..., Any]]:
        def mask(n, distance):
            seen = gemma.mask(n, distance)
            if n in layers:
                seen[token + 1 :, token] = False
            return seen

        return {"mask": mask}

    groups = {
        "all layers": gemma.layers,
        "local layers": gemma.local,
        "global layers": gemma.all_see,
        "all layers but 5": [n for n in gemma.layers if n != 5],
    }
    singly = {f"layer {n}": [n] for n in gemma.all_see}
    settings = {name: hide(layers) for name, layers in (groups | singly).items()}
    settings["token 5, all layers"] = hide(gemma.layers, 5)
    yield from _changes(gemma, settings)


def first_token(gemma: Gemma) -> Rows:
    """Change of the loss of the same tokens if the input does not begin with one <bos>."""
    the = words_of(found("gemma")).encode("The")[1:]
    for text, tokens in _texts().items():
        base = gemma.losses(tokens)[1:]  # of tokens 4, 7, ...
        for setting, first in (
            ("no <bos>", []),
            ("a word instead of <bos>", the),
            ("<bos> twice", tokens[[0, 0]]),
        ):
            other = np.concatenate([np.array(first, tokens.dtype), tokens[1:]])
            loss = gemma.losses(other, start=2 + len(first))
            yield from _change(setting, text, loss, base)


def bos_weight(gemma: Gemma) -> Rows:
    """Mean weight on <bos> of the queries from token 8 on, by layer."""
    shares: dict[int, float] = {}

    def weights(n, w):
        shares[n] = float(w[:, 8:, 0].mean())
        return w

    for text, tokens in _texts().items():
        gemma.but(weights=weights).hidden(tokens)
        for n, share in shares.items():
            yield f"layer {n}", text, share


def window_96(gemma: Gemma) -> Rows:
    """Change of the loss with windows of 96 tokens, with and without first tokens kept.

    Kept ones have their true positions or, "in slots", those that a cache of this size gives them.
    """

    window, every = 96, gemma.layers

    def near(layers: Any, sinks: int = 0, sinks_in: Any = gemma.layers) -> Callable[..., Any]:
        def mask(n, distance):
            seen = gemma.mask(n, distance)
            if n in layers:
                first = np.arange(len(seen)) < (sinks if n in sinks_in else 0)
                seen &= (distance < window) | first
            return seen

        return mask

    def slots(sinks: int) -> Callable[..., Any]:
        def scores(n, q, k):  # pair c of query i and key j: Re(q k* exp(i d theta_c))
            scores, K = gemma.scores(n, q, k), q.shape[-1] // 2
            i, j = np.arange(q.shape[-2])[:, None], np.arange(sinks)
            query, key = (x[..., :K] + 1j * x[..., K:] for x in (q, k[0, :sinks]))
            apart = np.minimum(i, window + sinks - 1) - j  # the query's slot, less the key's
            turned = key.conj() * np.exp(1j * apart[..., None] * gemma.frequencies(n))
            scores[..., :sinks] = np.einsum("hic,ijc->hij", query, turned).real / 16
            return scores

        return scores

    yield from _changes(
        gemma,
        {
            "all layers": {"mask": near(every)},
            "all layers, 1 sink": {"mask": near(every, 1)},
            "all layers, 4 sinks": {"mask": near(every, 4)},
            "all layers, 1 sink in slots": {"mask": near(every, 1), "scores": slots(1)},
            "all layers, 4 sinks in slots": {"mask": near(every, 4), "scores": slots(4)},
            "all layers, 1 sink in global ones": {"mask": near(every, 1, gemma.all_see)},
            "all layers, 1 sink in local ones": {"mask": near(every, 1, gemma.local)},
            "local layers": {"mask": near(gemma.local)},
            "global layers": {"mask": near(gemma.all_see)},
        },
    )


def entropy_by_length(gemma: Gemma) -> Rows:
    """Entropy of global layers in nats, and without <bos>; the weight on <bos>.

    A mean over heads and over the queries of the last quarter of so many tokens.
    """
    rows: list[tuple[str, float]] = []

    def entropy(w: np.ndarray) -> float:
        return float(-(w * np.log(np.maximum(w, 1e-30))).sum(-1).mean())

    def weights(n, w):
        for length in (40, 80, 160, 320, 640, 1150) if n in gemma.all_see else ():
            late = w[:, length * 3 // 4 : length].astype(np.float64)
            rest = late[..., 1:] / late[..., 1:].sum(-1, keepdims=True)
            rows.append((f"layer {n}, {length} tokens", entropy(late)))
            rows.append((f"layer {n}, {length} tokens, without <bos>", entropy(rest)))
            rows.append(
                (f"layer {n}, {length} tokens, weight on <bos>", float(late[..., 0].mean()))
            )
        return w

    for text, tokens in _texts(1150).items():
        gemma.but(weights=weights).hidden(tokens)
        yield from ((setting, text, value) for setting, value in rows)
        rows.clear()


def score_factor(gemma: Gemma) -> Rows:
    """Change of the loss if all scores are multiplied by a number."""
    factors = {f: lambda n, q, k, f=f: (f * q, k) for f in (0.8, 0.9, 1.1, 1.25)}
    yield from _changes(gemma, {f"times {f}": {"heads": heads} for f, heads in factors.items()})


def ngram_draft(gemma: Gemma) -> Rows:
    """Counts: calls that write 39 more tokens after a prompt and one, greedily and with drafts.

    "same" is 1 if both write the same tokens.
    """
    for text, prompt in draft_prompts().items():
        alone, calls = draft(gemma, prompt, 40, 0)
        tokens, rounds = draft(gemma, prompt, 40, 6)
        yield "greedy, calls", text, len(calls)
        yield "draft, calls", text, len(rounds)
        yield "draft, calls with a draft", text, sum(drafted > 0 for drafted, _ in rounds)
        yield "drafted", text, sum(drafted for drafted, _ in rounds)
        yield "accepted", text, sum(accepted for _, accepted in rounds)
        yield "same", text, int(tokens == alone)


def draft_prompts() -> dict[str, list[int]]:
    """Give the prompts: 150 tokens of each text, and three short functions of Python."""
    code = "".join(
        f'def {name}(a, b):\n    """{name.title()} a and b."""\n    return a {sign} b\n\n'
        for name, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*"))
    )
    prompts = {text: tokens.tolist() for text, tokens in _texts(150).items()}
    return prompts | {"code": list(words_of(found("gemma")).encode(code))}


def draft(
    gemma: Gemma, prompt: list[int], steps: int, ahead: int
) -> tuple[list[int], list[tuple[int, int]]]:
    """Write greedily; what followed the last two tokens before is the draft.

    Gives the tokens, and drafted and accepted tokens of each call after the prompt's.
    """
    text, goal, rounds = list(prompt), len(prompt) + steps, []
    cache = Cache(1, goal + ahead)
    text.append(int(gemma.model.logits([text], cache=cache, last=1)[0, -1].argmax()))
    while len(text) < goal:
        earlier = [i for i in range(2, len(text)) if text[i - 2 : i] == text[-2:]]
        guess = text[earlier[-1] :][: min(ahead, goal - len(text) - 1)] if earlier else []
        chosen = gemma.model.logits([text[-1:] + guess], cache=cache)[0].argmax(-1).tolist()
        right = next((i for i, x in enumerate(guess) if x != chosen[i]), len(guess))
        rounds.append((len(guess), right))
        text += chosen[: right + 1]
        cache.cut(len(text) - 1)
    return text[len(prompt) :], rounds


def rounded_keys(gemma: Gemma) -> Rows:
    """Change of the loss if keys are rounded to few bits, from their least to their largest value.

    One least and largest value per channel (of all tokens) or per token (of all channels), before
    or after the rotation. "apart": these pairs of each layer stay as they are, and do not count.
    """

    def rounded(bits: int, axis: int, apart: Any = None, gains: bool = False) -> Callable[..., Any]:
        def f(n, k):
            gain = 1 + gemma.params["layers"][str(n)]["norm_k"] if gains else np.ones(k.shape[-1])
            gain = np.where(gain == 0, 1, gain)  # the key is 0 there
            x, out = (k / gain).astype(np.float64), k.copy()
            other = np.isin(np.arange(k.shape[-1]) % 128, apart[n] if apart else [], invert=True)
            x = x[..., other]
            least, largest = x.min(axis, keepdims=True), x.max(axis, keepdims=True)
            step = np.maximum(largest - least, 1e-9) / (2**bits - 1)
            out[..., other] = np.round((x - least) / step) * step + least
            return (out * gain).astype(k.dtype)

        return f

    def before(f: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
        return {"heads": lambda n, q, k: (q, f(n, k))}

    def after(f: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
        def rotated(n, x):
            turned = gemma.rotated(n, x)
            return f(n, turned) if len(x) == 1 else turned  # one KV head, four query heads

        return {"rotated": rotated}

    by_key, by_both = key_pairs(gemma)
    rng = np.random.default_rng(0)
    apart = {
        "dominant pair": {n: pairs[:1] for n, pairs in by_both.items()},
        "largest pair": {n: pairs[:1] for n, pairs in by_key.items()},
        "4 largest pairs": {n: pairs[:4] for n, pairs in by_key.items()},
        "16 largest pairs": {n: pairs[:16] for n, pairs in by_key.items()},
        "a random pair": {n: rng.integers(128, size=1) for n in gemma.layers},
    }
    settings = {"8 bits, before, per token": before(rounded(8, 2))}
    for bits in (4, 3, 2):
        for where, place in (("before", before), ("after", after)):
            for what, axis in (("channel", 1), ("token", 2)):
                settings[f"{bits} bits, {where}, per {what}"] = place(rounded(bits, axis))
    name = "4 bits, before, per token"
    for which, pairs in apart.items():
        settings[f"{name}, {which} apart"] = before(rounded(4, 2, pairs))
    settings[f"{name}, divided by its gains"] = before(rounded(4, 2, gains=True))
    yield from _changes(gemma, settings)


def key_pairs(gemma: Gemma) -> tuple[dict[int, Any], dict[int, Any]]:
    """Order the pairs of each layer, on the first text: by size of keys, and of queries and keys."""
    by_key: dict[int, Any] = {}
    by_both: dict[int, Any] = {}

    def heads(n, q, k):
        query, key = (np.hypot(x[..., :128], x[..., 128:]).mean((0, 1)) for x in (q, k))
        by_key[n], by_both[n] = (-key).argsort(), (-query * key).argsort()
        return q, k

    gemma.but(heads=heads).hidden(_texts()["opticks"])
    return by_key, by_both


def reused_prefix(gemma: Gemma) -> Rows:
    """Change of the loss of 128 tokens if keys and values of 129 tokens before them are reused.

    They were computed right behind <bos>; now 129 other tokens come between, of the same text or of
    another. "rotated": keys are rotated by 129 positions. "as it is": all is computed again.
    """
    texts = _texts()
    for text, other in zip(texts, ("book", "opticks", "pydocs"), strict=True):
        bos, own, kept, after = np.split(texts[text], (1, 130, 259))
        for name, first in (("own text before", own), ("other text before", texts[other][1:130])):
            base = _after(gemma, cache_of(gemma, [bos, first, kept]), after)
            yield f"{name}, as it is", text, float(base.mean())
            without = _after(gemma, cache_of(gemma, [bos, kept]), after)
            yield from _change(f"{name}, left out", text, without, base)
            for setting, again, rotated in (
                ("not rotated", 0, False),
                ("rotated", 0, True),
                ("rotated, 32 computed again", 32, True),
            ):
                cache = moved(gemma, bos, first, kept, again, rotated)
                yield from _change(f"{name}, {setting}", text, _after(gemma, cache, after), base)


def cache_of(gemma: Gemma, parts: list[np.ndarray]) -> Any:
    """Let Gemma's page read tokens into a new cache."""
    cache = Cache(1, 400)
    gemma.model.hidden([np.concatenate(parts)], cache=cache)
    return cache


def moved(
    gemma: Gemma, bos: Any, first: Any, kept: Any, again: int = 0, rotated: bool = True
) -> Any:
    """Give a cache of <bos>, first and kept, whose keys and values of kept come from <bos>, kept."""
    source, cache = cache_of(gemma, [bos, kept]), cache_of(gemma, [bos, first, kept[:again]])
    start, end = cache.length, 1 + len(first) + len(kept)
    for n in gemma.layers:
        keys, values = (x[..., 1 + again : 1 + len(kept), :] for x in source.held[n])
        if rotated:
            keys = rope(keys, [len(first)], gemma.frequencies(n), "half")
        for room, x in zip(cache.held[n], (keys, values), strict=True):
            room[..., start:end, :] = x
    cache.length = end
    return cache


def _after(gemma: Gemma, cache: Any, tokens: np.ndarray) -> np.ndarray:
    logits = gemma.model.logits([tokens], cache=cache)[0, :-1]
    right = logits[np.arange(len(logits)), tokens[1:]]
    logits -= (top := logits.max(-1, keepdims=True))
    return np.log(np.exp(logits).sum(-1, dtype=np.float64)) + top[:, 0] - right


def sink_value(gemma: Gemma) -> Rows:
    """Change of the loss if the value of <bos> counts as zero for later queries of some layers."""
    v0: dict[int, np.ndarray] = {}  # made of <bos>, whatever comes after it
    on: dict[int, np.ndarray] = {}

    def note(n, x):
        v0[n] = x[0, 0].copy()  # the first query sees only its own value
        return x

    gemma.but(mixed=note).hidden(_texts()["opticks"][:1])

    def without(layers: Any) -> dict[str, Callable[..., Any]]:
        def weights(n, w):
            on[n] = w[:, 1:, :1]
            return w

        def mixed(n, x):
            if n in layers:
                x[:, 1:] -= on[n] * v0[n]
            return x

        return {"weights": weights, "mixed": mixed}

    yield from _changes(gemma, {"all layers": without(gemma.layers), "layer 5": without([5])})


def bos_hidden_from_one(gemma: Gemma) -> Rows:
    """Change of the loss if later queries of one local layer may not attend to <bos>."""

    def hide(layer: int) -> dict[str, Callable[..., Any]]:
        def mask(n, distance):
            seen = gemma.mask(n, distance)
            seen[1:, 0] &= n != layer
            return seen

        return {"mask": mask}

    yield from _changes(gemma, {f"layer {n}": hide(n) for n in gemma.local})


def distant_sink(gemma: Gemma) -> Rows:
    """Change of the loss of tokens 600 to 1,149 (each third) with windows of 96 in all layers.

    <bos> is hidden, or kept at its true position, or kept in slot 0 of a cache of 97.
    """

    def near(n, distance):
        return (distance >= 0) & (distance < 96)

    def and_bos(n, distance):
        return near(n, distance) | (np.arange(len(distance)) == 0)

    def in_slot(n, q, k):
        scores, slots = gemma.scores(n, q, k), np.minimum(np.arange(q.shape[-2]), 96)
        scores[..., 0] = rope(q, slots, gemma.frequencies(n), "half") @ k[0, 0] / 16
        return scores

    for text, tokens in _texts(1150).items():
        base = gemma.losses(tokens, start=600)
        yield "as it is", text, float(base.mean())
        for setting, parts in (
            ("no sink", {"mask": near}),
            ("<bos> at its true position", {"mask": and_bos}),
            ("<bos> in slot 0", {"mask": and_bos, "scores": in_slot}),
        ):
            loss = gemma.but(**parts).losses(tokens, start=600)
            yield from _change(setting, text, loss, base)


def sink_value_in_norm(gemma: Gemma) -> Rows:
    """Change of the loss if the value of <bos> counts as zero, but not for the norm behind it.

    After attention Gemma divides by the root mean square of W_o's output. Here that number is the
    one with the value. "length" is how long the output is without it, relative to with it: the
    mean over later queries, by layer.
    """

    def hidden(layers: Any, ratio: dict[int, float]) -> Callable[..., np.ndarray]:
        def f(tokens: np.ndarray) -> np.ndarray:
            s, x = gemma.s, gemma.params["embedding"][tokens] * gemma.s.embedding_scale
            p = np.arange(len(tokens))
            for n in gemma.layers:
                layer = gemma.params["layers"][str(n)]
                h = rms_norm(x, 1 + layer["before_attention"], s.eps)
                q, k, v = (
                    split_heads(h @ layer[W], H) for W, H in (("W_q", s.H), ("W_k", 1), ("W_v", 1))
                )
                q, k = (rms_norm(y, 1 + layer[g], s.eps) for y, g in ((q, "norm_q"), (k, "norm_k")))
                scores = np.where(gemma.mask(n, p[:, None] - p), gemma.scores(n, q, k), -np.inf)
                w = softmax(scores)
                whole = merge_heads(w @ v) @ layer["W_o"]
                if n in layers:
                    w[:, 1:, 0] = 0
                less = merge_heads(w @ v) @ layer["W_o"]
                size, left = (
                    np.sqrt((y**2).mean(-1, keepdims=True) + s.eps) for y in (whole, less)
                )
                ratio[n] = float((left / size)[1:].mean())
                x = x + less / size * (1 + layer["after_attention"])
                h = rms_norm(x, 1 + layer["before_network"], s.eps)
                h = feed_forward(layer["network"], h, "gelu_tanh")
                x = x + rms_norm(h, 1 + layer["after_network"], s.eps)
            return rms_norm(x, 1 + gemma.params["norm"], s.eps)

        return f

    for text, tokens in _texts().items():
        base = gemma.losses(tokens)
        for setting, layers in (("no layer", []), ("all layers", gemma.layers), ("layer 5", [5])):
            other, ratio = gemma.but(), dict[int, float]()
            vars(other)["hidden"] = hidden(layers, ratio)
            yield from _change(setting, text, other.losses(tokens), base)
            if setting == "layer 5":
                yield "layer 5, length", text, ratio[5]


def sink_constant(gemma: Gemma) -> Rows:
    """Change of the loss if each head of some layers puts one weight on <bos>, for all queries.

    It is the head's mean over the later queries of the text; the other weights share the rest.
    """

    def mean(layers: Any) -> dict[str, Callable[..., Any]]:
        def weights(n, w):
            if n in layers:
                a = w[:, 1:, :1]
                rest = w[:, 1:, 1:] * (1 - a.mean(1, keepdims=True)) / np.maximum(1 - a, 1e-9)
                w[:, 1:, 1:], w[:, 1:, :1] = rest, a.mean(1, keepdims=True)
            return w

        return {"weights": weights}

    layers = {"all layers": gemma.layers, "local layers": gemma.local, "layer 5": [5]}
    yield from _changes(gemma, {name: mean(which) for name, which in layers.items()})
