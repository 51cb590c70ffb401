"""Exercises of decoding (chapter 63): a key-value cache, the best token, tokens that are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case, in_a_row
from pe_numpy.homework.known import Mistake
from pe_numpy.rotary.rope import rope
from pe_numpy.transformer.attention import attention, softmax

DTYPES = (np.float64, np.float32)

# ---- a cache ------------------------------------------------------------------------------------


def cached_attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    cache: Any = None,
    frequencies: np.ndarray | None = None,
) -> tuple[np.ndarray, Any]:
    """Causal attention of the newest tokens over all so far, turned by RoPE if frequencies come."""
    return _cached()(q, k, v, cache, frequencies)


def _turn(x: np.ndarray, start: int, frequencies: np.ndarray | None) -> np.ndarray:
    if frequencies is None:
        return x
    return rope(x, np.arange(start, start + x.shape[-2]), frequencies, layout="half")


def _cached(
    *,
    join=lambda old, new: np.concatenate([old, new], axis=-2),
    kept=lambda joined, new: joined,
    starts=lambda seen: (seen, seen),
    sees=lambda L, S: np.arange(S) <= np.arange(S - L, S)[:, None],
    turned=lambda keys, frequencies: keys,
) -> Callable:
    """Attention with a cache of turned keys, with one part of it replaced."""

    def step(q, k, v, cache=None, frequencies=None):
        old = (k[..., :0, :], v[..., :0, :]) if cache is None else cache
        q_start, k_start = starts(old[0].shape[-2])
        new = _turn(k, k_start, frequencies), v
        keys, values = join(old[0], new[0]), join(old[1], new[1])
        mask = sees(q.shape[-2], keys.shape[-2])
        output, _ = attention(_turn(q, q_start, frequencies), keys, values, mask)
        return output, (turned(kept(keys, new[0]), frequencies), kept(values, new[1]))

    return step


def _grown_in_place(q, k, v, cache=None, frequencies=None):
    """The cache is one list for all: who goes back to an older one finds the newer rows in it."""
    pieces = [] if cache is None else cache
    old = tuple(np.concatenate(rows, axis=-2) for rows in zip(*pieces, strict=True)) or None
    output, (keys, values) = cached_attention(q, k, v, old, frequencies)
    L = q.shape[-2]
    pieces.append((keys[..., -L:, :], values[..., -L:, :]))
    return output, pieces


def _read(
    function: Callable,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    pieces: tuple[int, ...],
    refused: bool = False,
    **options: Any,
) -> tuple:
    """Read a text in pieces; with `refused` each is followed by a last token that is taken back."""
    cache, outputs, start = None, [], 0
    last = slice(q.shape[-2] - 1, q.shape[-2])
    for count in pieces:
        rows = slice(start, start + count)
        given = function(q[..., rows, :], k[..., rows, :], v[..., rows, :], cache, **options)
        if not isinstance(given, tuple | list) or len(given) != 2:
            got = "nothing: is there a return?" if given is None else type(given).__name__
            raise TypeError(f"it must return two things, output and cache; got {got}")
        output, cache = given
        outputs.append(output)
        if refused:
            draft = function(q[..., last, :], k[..., last, :], v[..., last, :], cache, **options)
            outputs.append(draft[0])
        start += count
    return tuple(outputs)


def _cache_cases(rng: np.random.Generator) -> Iterator[Case]:
    def text(length, *batch, dtype=np.float64, K=4):
        return (rng.standard_normal((*batch, length, K)).astype(dtype) for _ in range(3))

    two = np.array([[1.0, 0.0], [0.0, 1.0]])
    theta, quick = np.array([1.0, 0.1]), rng.uniform(0.2, 2, 2)
    yield in_a_row(_read, two, two, np.array([[2.0], [8.0]]), pieces=(1, 1))
    yield in_a_row(_read, *text(4), pieces=(4,))  # a prompt alone
    yield in_a_row(_read, *text(4), pieces=(1, 1, 1, 1))
    for dtype in DTYPES:
        yield in_a_row(_read, *text(6, 2, 3, dtype=dtype), pieces=(3, 1, 2))
        yield in_a_row(_read, *text(6, 2, 3, dtype=dtype), pieces=(4, 1, 1), frequencies=theta)
    yield in_a_row(_read, *text(7, 3), pieces=(2, 2, 3), frequencies=quick)
    yield in_a_row(_read, *text(5), pieces=(5,), frequencies=quick)
    yield in_a_row(_read, *text(6, 2), pieces=(2, 1, 1, 1), refused=True)
    yield in_a_row(_read, *text(6, 2), pieces=(1, 3, 1), refused=True, frequencies=quick)
    yield in_a_row(_read, *text(9, 1, 2, K=3), pieces=(1, 1, 4, 2, 1))
    yield in_a_row(_read, *text(9, 1, 2, K=2), pieces=(3, 5), frequencies=quick[:1])


CACHED = Exercise(
    "cached_attention",
    cached_attention,
    _cache_cases,
    (
        Mistake(
            "the newest tokens alone",
            "The newest queries look at all keys so far: put the new rows behind those of the "
            "cache.",
            63,
            _cached(join=lambda old, new: new),
        ),
        Mistake(
            "only the last piece kept",
            "The cache that goes back holds all rows so far, not the newest alone.",
            63,
            _cached(kept=lambda keys, new: new),
        ),
        Mistake(
            "a triangle that begins at key 0",
            "The newest query is the last of all S: query n of L stands at S - L + n.",
            63,
            _cached(sees=lambda L, S: np.tri(L, S, dtype=bool)),
        ),
        Mistake(
            "no mask within a piece",
            "One new token may see all; of several, an earlier one must not see a later one.",
            63,
            _cached(sees=lambda L, S: np.ones((L, S), bool)),
        ),
        Mistake(
            "positions counted from 0 in each piece",
            "Positions go on: the first new token stands where the cache ends.",
            63,
            _cached(starts=lambda seen: (0, 0)),
        ),
        Mistake(
            "queries counted from 0 in each piece",
            "The first new query stands where the cache ends, as its key does.",
            63,
            _cached(starts=lambda seen: (0, seen)),
        ),
        Mistake(
            "keys turned again at each call",
            "Keep the keys turned and leave them so, or keep them as they came and turn all of "
            "them.",
            63,
            _cached(turned=lambda keys, frequencies: _turn(keys, 0, frequencies)),
        ),
        Mistake(
            "the new rows in front",
            "Old rows first, the new ones behind them.",
            63,
            _cached(join=lambda old, new: np.concatenate([new, old], axis=-2)),
        ),
        Mistake(
            "not turned",
            "Where frequencies are given, RoPE turns queries and keys, at positions that go on.",
            63,
            lambda q, k, v, cache=None, frequencies=None: cached_attention(q, k, v, cache),
        ),
        Mistake(
            "one cache changed in place",
            "A list that grows is the same list for all who hold it. Return a new cache: whoever "
            "goes back to an older one, as beams and drafts do, must find it as it was.",
            63,
            _grown_in_place,
        ),
    ),
    chapter=63,
)

# ---- the best token, again and again ------------------------------------------------------------


class Bigram:
    """A model that knows the place and the last token alone: logits (B, V) of the next one."""

    def __init__(self, table: np.ndarray) -> None:
        self.table = table  # (places, V, V)
        self.__name__ = "a model"

    def __call__(self, tokens: Any) -> np.ndarray:
        """Logits after these tokens (B, L)."""
        tokens = np.asarray(tokens)
        return self.table[tokens.shape[1] % len(self.table), tokens[:, -1]]


def greedy_tokens(
    next_logits: Callable, prompt: np.ndarray, steps: int, end: int | None = None
) -> np.ndarray:
    """Continue each prompt (B, L) with the most probable tokens (B, n)."""
    return _best_tokens()(next_logits, prompt, steps, end)


def _best_tokens(
    *,
    choose=lambda logits: logits.argmax(axis=-1),
    read=lambda tokens: tokens,
    ends=True,
    stop=lambda over: over.all(),
    give=lambda tokens, L: tokens[:, L:],
) -> Callable:
    """Greedy decoding with one part of it replaced."""

    def wrong(next_logits, prompt, steps, end=None):
        tokens, over = prompt, np.zeros(len(prompt), bool)
        for _ in range(steps):
            new = choose(next_logits(read(tokens)))
            if end is not None and ends:
                new = np.where(over, end, new)
            tokens = np.concatenate([tokens, new[:, None]], axis=1)
            over |= new == end
            if stop(over):
                break
        return give(tokens, prompt.shape[1])

    return wrong


def _greedy_cases(rng: np.random.Generator) -> Iterator[Case]:
    def model(V, places=3):
        return Bigram(2 * rng.standard_normal((places, V, V)))

    turns = Bigram(np.eye(3)[[1, 2, 0]][None])  # after 0 comes 1, then 2, then 0
    yield case(turns, np.array([[0]]), 4)
    yield case(turns, np.array([[0], [1]]), 4, end=2)
    for B, L, V, steps in ((1, 3, 7, 9), (4, 2, 5, 6), (2, 1, 11, 1), (3, 4, 6, 12)):
        yield case(model(V), rng.integers(0, V, (B, L)), steps)
        yield case(model(V), rng.integers(0, V, (B, L)), steps + 3, end=int(rng.integers(V)))
    for B in (3, 6):
        yield case(model(3), rng.integers(0, 3, (B, 2)), 15, end=1)  # it comes soon
    yield case(turns, np.array([[2, 2], [0, 1], [1, 0]]), 9, 0)


GREEDY = Exercise(
    "greedy_tokens",
    greedy_tokens,
    _greedy_cases,
    (
        Mistake(
            "the prompt given back, too",
            "Return the new tokens alone.",
            63,
            _best_tokens(give=lambda tokens, L: tokens),
        ),
        Mistake(
            "the model reads the last token alone",
            "It reads the prompt and all that was added.",
            63,
            _best_tokens(read=lambda tokens: tokens[:, -1:]),
        ),
        Mistake(
            "the model reads the prompt alone",
            "Put each new token behind the others before the model is asked again.",
            63,
            lambda next_logits, prompt, *rest, **options: greedy_tokens(
                lambda tokens: next_logits(prompt), prompt, *rest, **options
            ),
        ),
        Mistake(
            "it goes on after the end",
            "After its end a row gets `end` alone.",
            63,
            _best_tokens(ends=False),
        ),
        Mistake(
            "all stop when one has ended",
            "Stop when all rows have ended; a row that has gets `end` until then.",
            63,
            _best_tokens(stop=lambda over: over.any()),
        ),
        Mistake(
            "it never stops before the last step",
            "Stop when all rows have ended: the result is then shorter.",
            63,
            _best_tokens(stop=lambda over: False),
        ),
        Mistake(
            "the least probable token",
            "The largest logit is the most probable token: argmax.",
            63,
            _best_tokens(choose=lambda logits: logits.argmin(axis=-1)),
        ),
        Mistake(
            "one choice for all rows",
            "Each row has a largest logit of its own: argmax over the last axis.",
            63,
            _best_tokens(
                choose=lambda logits: np.full(len(logits), logits.argmax() % logits.shape[-1])
            ),
        ),
    ),
    chapter=63,
)

# ---- tokens that are drawn ----------------------------------------------------------------------


def sample_tokens(
    next_logits: Callable,
    prompt: np.ndarray,
    steps: int,
    rng: np.random.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    end: int | None = None,
) -> np.ndarray:
    """Draw the next tokens (B, n), one after the other, after a prompt (B, L)."""
    return _sampled()(next_logits, prompt, steps, rng, temperature, top_k, end)


def _best(logits: np.ndarray, top_k: int) -> np.ndarray:
    return logits >= np.sort(logits, axis=-1)[:, -top_k, None]


def _sampled(
    *,
    sharpen=lambda logits, temperature: logits / temperature,
    among=_best,
    draw=lambda rng, rows: rng.random((rows, 1)),
    read=lambda tokens: tokens,
    ends=True,
) -> Callable:
    """Sampling with one part of it replaced."""

    def wrong(next_logits, prompt, steps, rng, temperature=1.0, top_k=None, end=None):
        tokens, over = prompt, np.zeros(len(prompt), bool)
        for _ in range(steps):
            logits = sharpen(next_logits(read(tokens)), temperature)
            if top_k is not None:
                logits = np.where(among(logits, top_k), logits, -np.inf)
            below = softmax(logits).cumsum(axis=-1)
            new = (below < draw(rng, len(prompt)) * below[:, -1:]).sum(axis=-1)
            if end is not None and ends:
                new = np.where(over, end, new)
            tokens = np.concatenate([tokens, new[:, None]], axis=1)
            over |= new == end
            if over.all():
                break
        return tokens[:, prompt.shape[1] :]

    return wrong


def _greedy(next_logits, prompt, steps, rng, temperature=1.0, top_k=None, end=None):
    return sample_tokens(next_logits, prompt, steps, rng, temperature, 1, end)


def _sample_cases(rng: np.random.Generator) -> Iterator[Case]:
    def drawn(B, L, V, steps, *args, **options):
        model = Bigram(2 * rng.standard_normal((3, V, V)))
        generator = np.random.default_rng(int(rng.integers(2**32)))
        return case(model, rng.integers(0, V, (B, L)), steps, generator, *args, **options)

    even = Bigram(np.zeros((1, 3, 3)))
    yield case(even, np.array([[0]]), 6, np.random.default_rng(int(rng.integers(2**32))))
    for B, L, V, steps in ((1, 3, 7, 9), (4, 2, 5, 6), (2, 1, 11, 1)):
        yield drawn(B, L, V, steps)
        yield drawn(B, L, V, steps + 4, temperature=0.5)
    yield drawn(3, 2, 6, 9, temperature=2.5)
    yield drawn(3, 4, 9, 8, top_k=3)
    yield drawn(2, 4, 9, 8, top_k=1)
    yield drawn(2, 1, 6, 12, 3.0, 2)
    yield drawn(4, 2, 5, 12, end=2)
    yield drawn(5, 1, 4, 10, end=0, temperature=2.0)
    yield drawn(2, 3, 5, 9, 1.5, 4, 1)


SAMPLE = Exercise(
    "sample_tokens",
    sample_tokens,
    _sample_cases,
    (
        Mistake(
            "multiplied by the temperature",
            "Divide: a temperature below 1 sharpens.",
            63,
            _sampled(sharpen=lambda logits, temperature: logits * temperature),
        ),
        Mistake(
            "drawn among all",
            "With top_k, the logits outside the k largest become -inf before the softmax.",
            63,
            _sampled(among=lambda logits, top_k: np.ones(logits.shape, bool)),
        ),
        Mistake(
            "one draw for all rows",
            "Each row has a draw of its own in each step.",
            63,
            _sampled(draw=lambda rng, rows: rng.random()),
        ),
        Mistake(
            "it goes on after the end",
            "After its end a row gets `end` alone.",
            63,
            _sampled(ends=False),
        ),
        Mistake(
            "the model reads the last token alone",
            "It reads the prompt and all that was drawn.",
            63,
            _sampled(read=lambda tokens: tokens[:, -1:]),
        ),
        Mistake(
            "the model reads the prompt alone",
            "Put each new token behind the others before the model is asked again.",
            63,
            lambda next_logits, prompt, *rest, **options: sample_tokens(
                lambda tokens: next_logits(prompt), prompt, *rest, **options
            ),
        ),
        Mistake(
            "the most probable token",
            "That is greedy decoding: draw by the probabilities.",
            63,
            _greedy,
        ),
        Mistake(
            "the temperature forgotten",
            "Divide the logits by it before the softmax.",
            63,
            _sampled(sharpen=lambda logits, temperature: logits),
        ),
    ),
    chapter=63,
)

EXERCISES = (CACHED, GREEDY, SAMPLE)
