"""RoPE in Gemma 3 270M: the experiments of chapter 81, measured by `real.py`.

Each yields (setting, text, value). Unless a docstring says otherwise, a value is a change of the
mean loss against the model as it is, in nats a token, positive = worse, of each third token of the
first 388; beside it stands its standard error, paired by token ("..., se").
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping

import numpy as np

from pe_numpy import relative_distance, rope, yarn_scaling
from pe_numpy.book.fetch import found
from pe_numpy.book.run import words_of
from pe_numpy.book.trained import TEXTS, Gemma, tokens_of

Rows = Iterator[tuple[str, str, float]]
LENGTH, TRAINED, LONG = 388, 512, 1150


def told(gemma: Gemma) -> Rows:
    """Positions told wrongly to all layers; of the shift also the largest change of one token."""
    random = np.random.default_rng(0)
    settings = {
        "all equal": lambda p: 0 * p,
        "reversed": lambda p: p[::-1],
        "in a random order": lambda p: random.permutation(p),
        **{f"times {x}": functools.partial(np.multiply, x) for x in (0.25, 0.5, 0.8, 1.25, 2.0)},
        **{f"reversed in blocks of {g}": _reversed(g) for g in (2, 4, 16, 64)},
        **{f"equal in blocks of {g}": _equal(g) for g in (2, 4, 16)},
    }
    orders = {name: f(np.arange(LENGTH)) for name, f in settings.items()}
    changed = {name: gemma.but(positions=lambda n, p, q=q: q) for name, q in orders.items()}
    yield from _changes(gemma, changed)
    shifted = gemma.but(positions=lambda n, p: p + 20_000)
    for text in TEXTS:
        tokens = tokens_of(text, LENGTH)
        change = np.abs(shifted.losses(tokens) - _right(gemma, text)).max()
        yield "shifted by 20,000, largest change", text, float(change < 1e-4)


def kinds(gemma: Gemma) -> Rows:
    """RoPE taken from layers with a window (local) or without (global), or changed in them."""
    settings = {}
    for kind, layers in (("local", gemma.local), ("global", gemma.all_see)):
        settings |= {
            f"{kind}: no rotation": _frequencies(gemma, layers, lambda f: 0 * f),
            f"{kind}: frequencies times 2": _frequencies(gemma, layers, lambda f: 2 * f),
            f"{kind}: equal in blocks of 4": _positions(gemma, layers, _equal(4)),
            f"{kind}: equal in blocks of 16": _positions(gemma, layers, _equal(16)),
        }
    settings["all: no rotation"] = _frequencies(gemma, gemma.layers, lambda f: 0 * f)
    local, wide = gemma.frequencies(gemma.local[0]), gemma.frequencies(gemma.all_see[0])
    settings["local: base 1,000,000"] = _frequencies(gemma, gemma.local, lambda f: wide)
    settings["global: base 10,000"] = _frequencies(gemma, gemma.all_see, lambda f: local)
    yield from _changes(gemma, settings)


def bands(gemma: Gemma) -> Rows:
    """Bands of pairs that do not turn, or that give nothing to the scores."""
    settings = {}
    for a in range(0, 128, 16):
        name = f"local: pairs {a} to {a + 15} stopped"
        settings[name] = _frequencies(gemma, gemma.local, _stopped(range(a, a + 16)))
    for a in range(0, 128, 32):
        band = range(a, a + 32)
        for kind, layers in (("local", gemma.local), ("global", gemma.all_see)):
            settings[f"{kind}: pairs {a} to {a + 31} removed"] = _removed(gemma, layers, band)
        name = f"global: pairs {a} to {a + 31} stopped"
        settings[name] = _frequencies(gemma, gemma.all_see, _stopped(band))
    for rest in (96, 64):
        name = f"all: the slowest {128 - rest} stopped"
        settings[name] = _frequencies(gemma, gemma.layers, _stopped(range(rest, 128)))
    yield from _changes(gemma, settings)


def largest_pair(gemma: Gemma) -> Rows:
    """The pair with the largest mean |q| |k| of each layer, and what it looks like.

    Without a text: the pair; its angle after the trained range of the layer, in radians; |q| |k|
    over the median pair's; how alike its keys and its queries point (resultant length: 1 = all the
    same way; least of the four heads); its score at distance 384, in nats, mean of the heads; size
    of the key of <bos> over the others'; and its rank by the gains of the norms alone.
    """
    pairs = _pairs(gemma)
    for n in gemma.layers:
        q, k, c = *_seen(gemma)[n], pairs[n]
        size = (np.abs(q).mean((0, 1)) * np.abs(k).mean(0)).ravel()
        mean_q, mean_k = q[:, :, c].mean(1), k[:, c].mean()
        far = mean_q * np.conj(mean_k) * np.exp(1j * 384 * gemma.frequencies(n)[c])
        named = f"layer {n}: "
        yield named + "pair", "", int(c)
        trained = TRAINED if n in gemma.local else 32_768
        yield named + "angle after the trained range", "", float(gemma.frequencies(n)[c] * trained)
        yield named + "size over the median", "", float(size[c] / np.median(size))
        yield named + "resultant of keys", "", float(abs(mean_k) / np.abs(k[:, c]).mean())
        alike = np.abs(mean_q) / np.abs(q[:, :, c]).mean(1)
        yield named + "resultant of queries", "", float(alike.min())
        yield named + "score at distance 384", "", float(far.real.mean() / math.sqrt(256))
        yield named + "key of <bos>", "", float(np.abs(_begins(gemma)[n][c]) / abs(mean_k))
        yield named + "rank by gains", "", int(np.argsort(-gains(gemma, n)).tolist().index(c) + 1)
        same = all(_size(gemma, n, text).argmax() == c for text in TEXTS)
        yield named + "the same on each text", "", int(same)


def gains(gemma: Gemma, n: int) -> np.ndarray:
    """Give what the norms' gains alone say of each pair: query's on one component, key's on the other."""
    layer = gemma.params["layers"][str(n)]
    q, k = np.abs(1 + layer["norm_q"]), np.abs(1 + layer["norm_k"])
    half = len(q) // 2
    return np.maximum(q[:half] * k[half:], q[half:] * k[:half])


def one_pair(gemma: Gemma) -> Rows:
    """The largest pair of each local layer, stopped, removed or replaced; others as controls.

    "share of <bos>" is the mean weight on the first token in local layers, not a change.
    """
    pairs, random = _pairs(gemma), np.random.default_rng(0)
    other = {n: int(random.integers(128)) for n in gemma.layers}
    settings = {
        "stopped": lambda n: _stopped([pairs[n]]),
        "a random pair stopped": lambda n: _stopped([other[n]]),
        "the next pair stopped": lambda n: _stopped([pairs[n] + 1]),
    }
    changed = {name: _by_layer(gemma, f) for name, f in settings.items()}
    for name, chosen in (("removed", pairs), ("a random pair removed", other)):
        changed[name] = gemma.but(heads=_without(gemma.local, chosen))
    means = {n: _mean(gemma, n, pairs[n]) for n in gemma.local}
    changed["replaced by a function of distance"] = gemma.but(scores=_replaced(gemma, pairs, means))
    bare = {n: (1j * abs(q) * abs(k) * _sign(q, k), 1.0, 0.0) for n, (q, k, _) in means.items()}
    changed["replaced by -A sin(distance * frequency)"] = gemma.but(
        scores=_replaced(gemma, pairs, bare)
    )
    spoilt = {n: (pairs[n], means[n][1]) for n in gemma.local}
    changed["<bos> with the others' key"] = gemma.but(heads=_with_key(spoilt))
    yield from _changes(gemma, changed)
    for name, model in (("as it is", gemma), *changed.items()):
        if name in ("as it is", "<bos> with the others' key"):
            for text in TEXTS:
                yield f"{name}: share of <bos>", text, _share(model, text)


def line(gemma: Gemma) -> Rows:
    """The largest pair of each local layer replaced by a formula: a sine, or a straight line."""
    yield from _changes(gemma, _lines(gemma))


def line_beyond(gemma: Gemma) -> Rows:
    """The same with a window of 1,150: losses of tokens 600 to 1,149."""
    wide = {
        f"1,150, {name}": model.but(mask=lambda n, d: d >= 0)
        for name, model in _lines(gemma).items()
    }
    yield from _changes(gemma, wide, LONG, 600)


def no_content(gemma: Gemma) -> Rows:
    """A window of 1,150 with pairs slower that are large and carry no content; how many these are."""
    chosen = {n: _no_content(gemma, n) for n in gemma.local}
    band = {n: [c for c in range(64, 80) if c not in chosen[n]] for n in gemma.local}
    wide = gemma.but(mask=lambda n, d: d >= 0)

    def slower(which: dict[int, list[int]]) -> Gemma:
        factor = {n: np.where(np.isin(np.arange(128), which[n]), TRAINED / LONG, 1) for n in which}
        own = gemma.frequencies
        return wide.but(frequencies=lambda n: own(n) * factor.get(n, 1))

    yield "pairs without content", "", sum(map(len, chosen.values()))
    yield "of these 64 to 79", "", sum(64 <= c < 80 for own in chosen.values() for c in own)
    settings = {
        "1,150, pairs without content slower": slower(chosen),
        "1,150, the rest of 64 to 79 slower": slower(band),
    }
    yield from _changes(gemma, settings, LONG, 600)


def window(gemma: Gemma) -> Rows:
    """A window that was never trained: losses of tokens 600 to 1,149, local layers alone changed."""
    s, base, K = LONG / TRAINED, 1e4, 256
    pairs = _pairs(gemma)
    own = gemma.frequencies(gemma.local[0])
    wide = gemma.but(mask=lambda n, d: d >= 0)
    yarn, m = yarn_scaling(K, s, TRAINED, base)
    ntk = (base * s ** (K / (K - 2))) ** (-np.arange(0, K, 2) / K)

    def local(f: np.ndarray) -> Gemma:
        return _frequencies(wide, gemma.local, lambda _: f)

    def slower(chosen: dict[int, list[int]]) -> Gemma:
        def one(n: int) -> np.ndarray:
            f = gemma.frequencies(n).copy()
            if n in chosen:
                f[chosen[n]] /= s
            return f

        return wide.but(frequencies=one)

    random = np.random.default_rng(0)
    rest = {n: [c for c in range(128) if c != pairs[n]] for n in gemma.local}
    settings = {
        "1,150, nothing else": wide,
        "1,150, linear": local(own / s),
        "1,150, NTK": local(ntk),
        "1,150, YaRN without its temperature": local(yarn),
        "1,150, YaRN": local(yarn).but(heads=_warmer(gemma.local, m * m)),
        "1,150, ReRoPE 511": wide.but(scores=_beyond(gemma, 511, 0)),
        "1,150, ReRoPE 256": wide.but(scores=_beyond(gemma, 256, 0)),
        "1,150, Self-Extend 256, groups of 4": wide.but(scores=_beyond(gemma, 256, 4)),
        "1,150, log n": wide.but(heads=_log_n(gemma.local)),
        "1,150, the largest pair slower": slower({n: [pairs[n]] for n in gemma.local}),
        "1,150, pairs 64 to 79 slower": slower({n: [*range(64, 80)] for n in gemma.local}),
        "1,150, pairs 80 to 127 slower": slower({n: [*range(80, 128)] for n in gemma.local}),
        "1,150, all but the largest pair slower": slower(rest),
        "1,150, a random pair of 0 to 63 slower": slower(
            {n: [int(random.integers(64))] for n in gemma.local}
        ),
        "128": gemma.but(mask=lambda n, d: (d >= 0) & (d < (128 if n in gemma.local else LONG))),
    }
    yield from _changes(gemma, settings, LONG, 600)


def copying(gemma: Gemma) -> Rows:
    """64 random words, twice: the loss of the second copy from its second token; no change, a loss.

    The texts are three draws of words. "first copy" is the loss of the first.
    """
    settings = {
        "as it is": gemma,
        "local: no rotation": _frequencies(gemma, gemma.local, lambda f: 0 * f),
        "global: no rotation": _frequencies(gemma, gemma.all_see, lambda f: 0 * f),
        "all: no rotation": _frequencies(gemma, gemma.layers, lambda f: 0 * f),
        "all: positions times 2": gemma.but(positions=lambda n, p: 2 * p),
        "all: linear 2": _frequencies(gemma, gemma.layers, lambda f: f / 2),
    }
    for seed in range(3):
        tokens = _twice(64, seed)
        yield "first copy", f"seed {seed}", float(gemma.losses(tokens[:66], 1, 1).mean())
        for name, model in settings.items():
            yield name, f"seed {seed}", float(model.losses(tokens, 65, 1).mean())


def gap(gemma: Gemma) -> Rows:
    """540 random words, twice; the global layers alone are told a gap before the second copy.

    Value: loss of the second copy, each fifth token.
    """
    for seed in (5, 6, 7):
        tokens = _twice(540, seed)
        for size in (0, 1_000, 30_000, 100_000, 1_000_000):
            model = _positions(gemma, gemma.all_see, lambda p, size=size: p + size * (p > 540))
            yield f"gap {size:,}", f"seed {seed}", float(model.losses(tokens, 541, 5).mean())


def heads(gemma: Gemma) -> Rows:
    """Heads by what they attend to, and by their pairs.

    "weight on ..." is a mean weight of a head; "r" the correlation, over heads of a kind, of the
    weight on the previous token with the share of pairs 0 to 31 in |q| |k|.
    """
    seen = {text: _weights_of(gemma, text) for text in TEXTS}
    names = [(n, h) for n in gemma.layers for h in range(gemma.s.H)]
    fast = {n: _share_of_fast(gemma, n) for n in gemma.layers}
    for what in ("the previous token", "<bos>", "the same token"):
        of = {text: {x: seen[text][x][what] for x in names} for text in TEXTS}
        mean = {x: float(np.mean([of[text][x] for text in TEXTS])) for x in names}
        for n, h in sorted(names, key=lambda x: -mean[x])[:4]:
            for text in TEXTS:
                yield f"weight on {what}: layer {n}, head {h}", text, of[text][n, h]
        for kind, layers in (("local", gemma.local), ("global", gemma.all_see)):
            own = [x for x in names if x[0] in layers]
            r = np.corrcoef([mean[x] for x in own], [fast[n][h] for n, h in own])[0, 1]
            yield f"r of {what} with fast pairs, {kind} heads", "", float(r)


# ---- parts that are replaced --------------------------------------------------------------------


def _changes(
    gemma: Gemma, settings: Mapping[str, Gemma], length: int = LENGTH, start: int = 0
) -> Rows:
    for text in TEXTS:
        yield "as it is, loss", text, float(_right(gemma, text, length, start).mean())
    for name, model in settings.items():
        for text in TEXTS:
            losses = model.losses(tokens_of(text, length), start)
            change = losses - _right(gemma, text, length, start)
            yield name, text, float(change.mean())
            yield f"{name}, se", text, float(change.std(ddof=1) / math.sqrt(len(change)))


@functools.cache
def _right(gemma: Gemma, text: str, length: int = LENGTH, start: int = 0) -> np.ndarray:
    return gemma.losses(tokens_of(text, length), start)


def _reversed(g: int):
    return lambda p: p // g * g + (g - 1 - p % g)


def _equal(g: int):
    return lambda p: p // g * g


def _positions(gemma: Gemma, layers, change) -> Gemma:
    return gemma.but(positions=lambda n, p: change(p) if n in layers else p)


def _frequencies(gemma: Gemma, layers, change) -> Gemma:
    own = gemma.frequencies
    return gemma.but(frequencies=lambda n: change(own(n)) if n in layers else own(n))


def _by_layer(gemma: Gemma, change) -> Gemma:
    own = gemma.frequencies
    return gemma.but(frequencies=lambda n: change(n)(own(n)) if n in gemma.local else own(n))


def _stopped(pairs):
    def stop(f: np.ndarray) -> np.ndarray:
        f = f.copy()
        f[list(pairs)] = 0
        return f

    return stop


def _removed(gemma: Gemma, layers, band) -> Gemma:
    return gemma.but(heads=_without(layers, dict.fromkeys(layers, list(band))))


def _without(layers, pairs):
    """Queries of these layers without their pairs (or pair): they give nothing to the scores."""

    def heads(n: int, q: np.ndarray, k: np.ndarray):
        if n not in layers:
            return q, k
        q = q.copy()
        q.reshape(*q.shape[:-1], 2, -1)[..., pairs[n]] = 0
        return q, k

    return heads


def _with_key(keys):
    """The first token gets, in one pair of a layer, another key."""

    def heads(n: int, q: np.ndarray, k: np.ndarray):
        if n not in keys:
            return q, k
        c, key = keys[n]
        k = k.copy()
        k[0, 0, [c, c + 128]] = key.real, key.imag
        return q, k

    return heads


def _warmer(layers, factor: float):
    return lambda n, q, k: (q * factor if n in layers else q, k)


def _log_n(layers):
    def heads(n: int, q: np.ndarray, k: np.ndarray):
        keys = 1 + np.arange(q.shape[1])
        factor = np.maximum(1, np.log(keys) / math.log(TRAINED)).astype(q.dtype)
        return (q * factor[:, None] if n in layers else q), k

    return heads


def _replaced(gemma: Gemma, pairs, means):
    """Scores whose largest pair is a function of distance alone; <bos> has its own key."""

    def scores(n: int, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        if n not in means:
            return gemma.scores(n, q, k)
        rest = gemma.scores(n, *_without([n], pairs)(n, q, k))
        p = np.arange(q.shape[1])
        turned = np.exp(1j * relative_distance(p, p) * -gemma.frequencies(n)[pairs[n]])
        mean_q, key, first = means[n]
        keys = np.full(len(p), key, complex)
        keys[0] = first
        bias = np.real(np.asarray(mean_q)[:, None, None] * np.conj(turned * keys)) / math.sqrt(256)
        return rest + bias.astype(rest.dtype)

    return scores


def _lines(gemma: Gemma) -> dict[str, Gemma]:
    """Models whose largest pair is -A sin(d theta), or -A d theta: nothing for <bos>."""
    pairs = _pairs(gemma)
    means = {n: _mean(gemma, n, pairs[n]) for n in gemma.local}

    def replaced(shape) -> Gemma:
        def scores(n: int, q: np.ndarray, k: np.ndarray) -> np.ndarray:
            if n not in means:
                return gemma.scores(n, q, k)
            mean_q, key, _ = means[n]
            p = np.arange(q.shape[1])
            A = np.abs(mean_q) * abs(key) / 16  # (H,)
            bias = A[:, None, None] * shape((p[:, None] - p) * gemma.frequencies(n)[pairs[n]])
            bias[..., 0] = 0
            rest = gemma.scores(n, *_without([n], pairs)(n, q, k))
            return rest - bias.astype(rest.dtype)

        return gemma.but(scores=scores)

    return {"a sine": replaced(np.sin), "a straight line": replaced(lambda angle: angle)}


def _beyond(gemma: Gemma, w: int, g: int):
    """ReRoPE (g = 0): beyond w every key is at distance w; Self-Extend: distances in groups of g."""

    def scores(n: int, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        if n not in gemma.local:
            return gemma.scores(n, q, k)
        p, f = np.arange(q.shape[1]), gemma.frequencies(n)
        at_q, at_k = (p // g + w - w // g, p // g) if g else (0 * p + w, 0 * p)
        far = rope(q, at_q, f, "half") @ rope(k, at_k, f, "half").mT / math.sqrt(256)
        return np.where(p[:, None] - p < w, gemma.scores(n, q, k), far)

    return scores


# ---- what is seen -------------------------------------------------------------------------------


@functools.cache
def _looked(gemma: Gemma, text: str) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """Queries (H, L, K/2) and keys (L, K/2) of each layer as complex numbers, not rotated."""
    queries, keys = {}, {}

    def heads(n: int, q: np.ndarray, k: np.ndarray):
        half = q.shape[-1] // 2
        queries[n] = q[..., :half] + 1j * q[..., half:]
        keys[n] = k[0, :, :half] + 1j * k[0, :, half:]
        return q, k

    gemma.but(heads=heads).hidden(tokens_of(text, LENGTH))
    return queries, keys


def _seen(gemma: Gemma) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Queries and keys of all texts together, without those of <bos>."""
    looked = [_looked(gemma, text) for text in TEXTS]
    return {
        n: (
            np.concatenate([q[n][:, 1:] for q, _ in looked], axis=1),
            np.concatenate([k[n][1:] for _, k in looked]),
        )
        for n in gemma.layers
    }


def _begins(gemma: Gemma) -> dict[int, np.ndarray]:
    return {n: k[0] for n, k in _looked(gemma, next(iter(TEXTS)))[1].items()}


def _size(gemma: Gemma, n: int, text: str) -> np.ndarray:
    q, k = (x[n] for x in _looked(gemma, text))
    return np.abs(q).mean((0, 1)) * np.abs(k).mean(0)


def _pairs(gemma: Gemma) -> dict[int, int]:
    """The pair with the largest |q| |k| of each layer, by the mean of the texts."""
    return {
        n: int(np.mean([_size(gemma, n, text) for text in TEXTS], axis=0).argmax())
        for n in gemma.layers
    }


def _no_content(gemma: Gemma, n: int) -> list[int]:
    """Pairs above ten times the median size whose keys, and whose queries, point one way."""
    q, k = _seen(gemma)[n]
    q_size, k_size = np.abs(q).mean(1) + 1e-30, np.abs(k).mean(0) + 1e-30
    alike_q = (np.abs(q.mean(1)) / q_size).mean(0)
    alike_k = np.abs(k.mean(0)) / k_size
    size = q_size.mean(0) * k_size
    chosen = (alike_q > 0.85) & (alike_k > 0.97) & (size > 10 * np.median(size))
    return np.flatnonzero(chosen).tolist()


def _mean(gemma: Gemma, n: int, c: int) -> tuple[np.ndarray, complex, complex]:
    q, k = _seen(gemma)[n]
    return q[..., c].mean(1), k[:, c].mean(), _begins(gemma)[n][c]


def _sign(q: np.ndarray, k: complex) -> np.ndarray:
    return np.sign((q * np.conj(k)).imag)


def _share(gemma: Gemma, text: str) -> float:
    shares = []

    def weights(n: int, w: np.ndarray) -> np.ndarray:
        shares.extend([w[:, 8:, 0].mean()] if n in gemma.local else [])
        return w

    gemma.but(weights=weights).hidden(tokens_of(text, LENGTH))
    return float(np.mean(shares))


def _share_of_fast(gemma: Gemma, n: int) -> np.ndarray:
    q, k = _seen(gemma)[n]
    size = np.abs(q).mean(1) * np.abs(k).mean(0)  # (H, K/2)
    return size[:, :32].sum(1) / size.sum(1)


def _weights_of(gemma: Gemma, text: str) -> dict[tuple[int, int], dict[str, float]]:
    tokens, seen = tokens_of(text, LENGTH), {}
    same = np.tril(tokens[:, None] == tokens, -1)
    again = same.any(1)

    def weights(n: int, w: np.ndarray) -> np.ndarray:
        for h, own in enumerate(w):
            seen[n, h] = {
                "the previous token": float(np.diagonal(own, -1)[8:].mean()),
                "<bos>": float(own[8:, 0].mean()),
                "the same token": float((own * same)[again].sum(1).mean()),
            }
        return w

    gemma.but(weights=weights).hidden(tokens)
    return seen


def _twice(count: int, seed: int) -> np.ndarray:
    """<bos> and the same random words (count,) twice."""
    drawn = np.random.default_rng(seed).choice(_words(), count, replace=False)
    return np.concatenate([[2], drawn, drawn])


@functools.cache
def _words() -> np.ndarray:
    """Tokens 1,000 to 30,000 that are a space and three letters or more."""
    pieces = words_of(found("gemma")).tokens
    return np.array(
        [i for i in range(1_000, 30_000) if re.fullmatch("\u2581[A-Za-z]{3,}", pieces[i])]
    )
