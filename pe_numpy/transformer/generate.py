r"""Decoding: one token after another, with or without a cache of keys and values.

Source: greedy decoding as in Vaswani et al. 2017, section 3 ("auto-regressive"); temperature:
Ackley et al. 1985; top-k sampling: Fan et al. 2018 (arXiv:1805.04833), section 5.4; beam search:
tensor2tensor at f8b951a, utils/beam_search.py; speculative decoding: Leviathan et al. 2023
(arXiv:2211.17192), algorithm 1, and Chen et al. 2023 (arXiv:2302.01318)::

    next token ~ softmax(logits / temperature), among the k largest logits
    score      = log probability / ((5 + length) / 6)^alpha
    accepted   : u q(x) < p(x), u uniform in [0, 1); else another token ~ max(p - q, 0)

Axes: B batch, L tokens, V vocabulary.
Symbols: p, q what the large model, and the one that drafts, expect of the next token.
Convention: prompts of unequal length are padded on the left, so that all of them end together; the
result holds only the new tokens, padded with `end` after a sequence has ended.
Differs from the papers: nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.transformer.attention import log_softmax, softmax
from pe_numpy.transformer.context import Cache
from pe_numpy.transformer.encodings.base import Params


def greedy(
    params: Params,
    model: Any,
    prompt: ArrayLike,
    steps: int,
    source: ArrayLike | None = None,
    source_real: ArrayLike | None = None,
    real: ArrayLike | None = None,
    end: int | None = None,
    cached: bool = True,
) -> np.ndarray:
    """Continue each prompt with the most probable token, again and again.

    Source: Vaswani et al. 2017, section 3.

    Parameters
    ----------
    params, model : dict and Model, or what `load_model` gives
        The parameters, and what they can't say.
    prompt : (B, L) integer array
        What the decoder has read: at least one token, such as the one that begins a sentence.
    steps : int
        The most tokens to add.
    source : (B, S) integer array, optional
        What the encoder reads, if there is one.
    source_real, real : boolean arrays of the shapes of source and prompt, optional
        False where a token is padding; the prompt's stands on the left.
    end : int, optional
        The token that ends a sequence.
    cached : bool
        Whether to keep keys and values; the tokens are the same without, at a higher cost.

    Returns
    -------
    (B, n) integer array of the new tokens, n at most `steps`: less if all sequences have ended.

    Examples
    --------
    >>> from pe_numpy import Model, Sizes, init_params
    >>> model = Model(n_heads=2)
    >>> params = init_params(Sizes(11, 8, 16, n_layers=1), model, np.random.default_rng(0))
    >>> tokens = greedy(params, model, [[3, 1]], steps=4)
    >>> tokens.shape, bool((tokens == greedy(params, model, [[3, 1]], 4, cached=False)).all())
    ((1, 4), True)
    """
    tokens, real, read = _begin(
        "greedy", params, model, prompt, steps, source, source_real, real, end, cached
    )
    return generate(read, tokens, steps, most_probable, real, end, "greedy")


def sample(
    params: Params,
    model: Any,
    prompt: ArrayLike,
    steps: int,
    rng: np.random.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    source: ArrayLike | None = None,
    source_real: ArrayLike | None = None,
    real: ArrayLike | None = None,
    end: int | None = None,
    cached: bool = True,
) -> np.ndarray:
    """Continue each prompt with tokens drawn by their probability.

    Source: Fan et al. 2018, section 5.4.

    Parameters
    ----------
    params, model, prompt, steps, source, source_real, real, end, cached : as in `greedy`
    rng : numpy.random.Generator
        Where the draws come from; the same generator gives the same tokens.
    temperature : float
        Above 0; below 1 sharpens, above 1 flattens.
    top_k : int, optional
        Draw among only the k most probable tokens; ties with the last of them may be drawn, too.

    Returns
    -------
    (B, n) integer array of the new tokens, as in `greedy`.

    Examples
    --------
    >>> from pe_numpy import Model, Sizes, init_params
    >>> model = Model(n_heads=2)
    >>> params = init_params(Sizes(11, 8, 16, n_layers=1), model, np.random.default_rng(0))
    >>> one = sample(params, model, [[3, 1]], 4, np.random.default_rng(1), top_k=1)
    >>> bool((one == greedy(params, model, [[3, 1]], 4)).all())
    True
    """
    choose = Sample(rng, temperature, top_k)
    tokens, real, read = _begin(
        "sample", params, model, prompt, steps, source, source_real, real, end, cached
    )
    return generate(read, tokens, steps, choose, real, end, "sample")


def beam_search(
    params: Params,
    model: Any,
    prompt: ArrayLike,
    steps: int,
    beams: int = 4,
    alpha: float = 0.6,
    source: ArrayLike | None = None,
    source_real: ArrayLike | None = None,
    real: ArrayLike | None = None,
    end: int | None = None,
    cached: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Continue each prompt with the best of the sequences that several beams find.

    In each step every beam is continued with every token. Of all these, the 2 `beams` most probable
    are looked at: those that end compete for the best score, log p / ((5 + length) / 6)^alpha; of
    the others, the `beams` most probable go on. The search stops when no beam can become better
    than what has ended.

    Source: tensor2tensor at f8b951a, utils/beam_search.py (length penalty: Wu et al. 2016,
    arXiv:1609.08144). There all beams are returned, so that the search goes on until none of the
    ended ones can be beaten, and the score of a sequence without an end is not divided.

    Parameters
    ----------
    params, model, prompt, steps, source, source_real, real, end, cached : as in `greedy`
    beams : int
        Sequences that go on, for each prompt.
    alpha : float
        At least 0: how much longer sequences are preferred; 0 compares only their probabilities.

    Returns
    -------
    (B, n) integer array of the new tokens, as in `greedy`; and the scores (B,). `end` counts in the
    length. A sequence without an end is returned where none has ended within `steps`.

    Examples
    --------
    >>> from pe_numpy import Model, Sizes, init_params
    >>> model = Model(n_heads=2)
    >>> params = init_params(Sizes(11, 8, 16, n_layers=1), model, np.random.default_rng(0))
    >>> tokens, scores = beam_search(params, model, [[3, 1], [2, 7]], steps=4, beams=3, end=0)
    >>> len(tokens), scores.shape
    (2, (2,))
    """
    name = "beam_search"
    tokens, real, read = _begin(
        name, params, model, prompt, steps, source, source_real, real, end, cached
    )
    beams = checks.integer(name, "beams", beams)
    alpha = checks.number(name, "alpha", alpha)
    if alpha < 0:
        raise ValueError(f"{name}: alpha must be at least 0; got {alpha:g}")
    B, end = len(tokens), -1 if end is None else end
    penalty = [((5 + length) / 6) ** alpha for length in range(steps + 1)]
    row, alive, log_p = np.arange(B)[:, None], np.zeros((B, 1, 0), np.int64), np.zeros((B, 1))
    best, score = np.full((B, steps), end), np.full(B, -np.inf)  # of those that have ended
    unread = tokens
    for length in range(1, steps + 1):
        logits = read(unread, real)[:, 0]
        _check_logits(name, logits, length - 1)
        first = row * log_p.shape[1]  # of each prompt's rows
        beam, token, log_p = _most_probable(log_p, logits, 2 * beams)
        grown = np.concatenate([alive[row, beam], token[..., None]], axis=2)
        ended = np.where(token == end, log_p, -np.inf) / penalty[length]
        better = ended.max(axis=1) > score
        best[better, :length] = grown[row[:, 0], ended.argmax(axis=1)][better]
        score = np.maximum(score, ended.max(axis=1))
        on = np.argsort(token == end, axis=1, kind="stable")[:, :beams]  # the best that go on
        alive, log_p = grown[row, on], np.where(token == end, -np.inf, log_p)[row, on]
        if (score > log_p[:, 0] / penalty[steps]).all():
            break
        read.take((first + beam[row, on]).ravel())
        unread, real = alive[..., -1].reshape(-1, 1), None
    endless = np.isneginf(score)
    best[endless, : alive.shape[2]] = alive[endless, 0]
    score[endless] = log_p[endless, 0] / penalty[steps]
    used = 1 + (np.cumsum(best == end, axis=1) == 0).sum(axis=1)  # up to its end
    return best[:, : used.max()], score


def _most_probable(log_p, logits, count):
    """Beam, token and log probability of the most probable continuations, the best first."""
    B, beams = log_p.shape
    each = log_softmax(logits.astype(np.float64)).reshape(B, beams, -1)  # (B, beams, V)
    grown = (log_p[..., None] + each).reshape(B, -1)
    order = np.argsort(-grown, axis=1, kind="stable")[:, :count]
    beam, token = np.divmod(order, each.shape[-1])
    return beam, token, np.take_along_axis(grown, order, axis=1)


def speculative(
    params: Params,
    model: Any,
    draft_params: Params,
    draft_model: Any,
    prompt: ArrayLike,
    steps: int,
    rng: np.random.Generator | None = None,
    temperature: float = 1.0,
    ahead: int = 4,
    end: int | None = None,
    watch: dict[str, Any] | None = None,
) -> np.ndarray:
    """Let a small model draft some tokens, which the large one reads at once and accepts or not.

    With p and q for the probabilities of both, a drafted token x is accepted with probability
    min(1, p(x) / q(x)). The first that is not is replaced by one drawn from max(p - q, 0), and what
    follows it is thrown away. If all are accepted, one more is drawn from p. So the tokens have the
    distribution p, whatever q is; a good draft saves readings of the large model.

    Source: Leviathan et al. 2023, algorithm 1; Chen et al. 2023. Tokens read together have the
    logits of tokens read one by one, up to rounding, unless frequencies change with the length.

    Parameters
    ----------
    params, model, prompt, steps, end : as in `greedy`
        Of the model whose tokens are wanted; one prompt alone, B = 1.
    draft_params, draft_model : as params, model
        The model that drafts, with the same vocabulary.
    rng : numpy.random.Generator, optional
        Where the draws come from; without it, the tokens are those of `greedy`.
    temperature : float
        As in `sample`, for both models.
    ahead : int
        Tokens drafted at a time.
    watch : dict, optional
        Gets "rounds": how many tokens were drafted and accepted, (int, int), for each time that the
        large model was called.

    Returns
    -------
    (1, n) integer array of the new tokens, as in `greedy`.

    Examples
    --------
    >>> from pe_numpy import Model, Sizes, init_params
    >>> sizes, model = Sizes(11, 8, 16, n_layers=1), Model(n_heads=2)
    >>> params, drafts = (init_params(sizes, model, np.random.default_rng(n)) for n in (0, 1))
    >>> tokens = speculative(params, model, drafts, model, [[3, 1]], 6)
    >>> bool((tokens == greedy(params, model, [[3, 1]], 6)).all())
    True
    """
    name = "speculative"
    tokens, _, large = _begin(name, params, model, prompt, steps, end=end)
    if len(tokens) != 1:
        raise ValueError(f"{name}: prompt must be one alone, of shape (1, L); got {tokens.shape}")
    small = _begin(name, draft_params, draft_model, prompt, steps, end=end)[2]
    sizes = [len(each["embedding"]) for each in (params, draft_params)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"{name}: both models must have one vocabulary; got {sizes[0]} and {sizes[1]} tokens"
        )
    if rng is not None:
        rng = checks.generator(name, "rng", rng)
    temperature = checks.positive(name, "temperature", temperature)
    ahead = checks.integer(name, "ahead", ahead)
    text, last = tokens[0].tolist(), tokens.shape[1] + steps

    def expected(read, count):
        """Read what is new: the probabilities of what follows each of the last `count` tokens."""
        logits = read(np.array([text[read.length :]]), last=count)[0]
        for n, row in enumerate(logits):
            _check_logits(name, row[None], len(text) - count + 1 - tokens.shape[1] + n)
        if rng is None:  # all probability to the largest
            largest = logits.argmax(axis=1)[:, None]
            return list((np.arange(logits.shape[1]) == largest).astype(float))
        return list(softmax(logits.astype(np.float64) / temperature))

    rounds: list[tuple[int, int]] = []
    while len(text) < last and (text[-1] != end or not rounds):
        start, q = len(text), []
        for _ in range(min(ahead, last - start - 1)):
            q += expected(small, 1)
            text += draw(q[-1][None], rng).tolist()
        p = expected(large, len(q) + 1)
        right, rest = _accept(p, q, text[start:], rng)
        text[start + right :] = draw(rest[None], rng).tolist()
        if end in text[start:]:
            del text[text.index(end, start) + 1 :]
        rounds.append((len(q), min(right, len(text) - start)))
        for reader in (large, small):  # nobody has read the newest token
            reader.cut(min(reader.length, len(text) - 1))
    if watch is not None:
        watch["rounds"] = rounds
    return np.array([text[tokens.shape[1] :]], np.int64)


def _accept(p, q, tokens, rng):
    """How many drafted tokens are right, and what the next is drawn from (in proportion)."""
    for n, x in enumerate(tokens):
        u = 0.0 if rng is None else rng.random()
        if u * q[n][x] >= p[n][x]:
            return n, np.maximum(p[n] - q[n], 0)
    return len(tokens), p[-1]


def generate(
    read: Reader,
    prompt: np.ndarray,
    steps: int,
    choose: Any,
    real: Any = None,
    end: int | None = None,
    function: str = "generate",
) -> np.ndarray:
    """Continue each prompt, token after token: `choose` takes logits (B, V) and gives tokens (B,).

    Gives the new tokens (B, n), n at most `steps`; after its end a sequence is padded with `end`.

    Examples
    --------
    >>> from pe_numpy import Model, Sizes, init_params
    >>> model = Model(n_heads=2)
    >>> params = init_params(Sizes(11, 8, 16, n_layers=1), model, np.random.default_rng(0))
    >>> read = Reader(params, model, batch=1, capacity=6)
    >>> generate(read, np.array([[3, 1]]), 4, most_probable).shape
    (1, 4)
    """
    new, ended = [], np.zeros(len(prompt), bool)
    for step in range(steps):
        logits = read(prompt, real)[:, 0]
        _check_logits(function, logits, step)
        chosen = choose(logits)
        if end is not None:
            chosen = np.where(ended, end, chosen)
            ended = ended | (chosen == end)
        new.append(chosen)
        if end is not None and ended.all():
            break
        prompt, real = chosen[:, None], None
    return np.stack(new, axis=1) if new else np.zeros((len(prompt), 0), np.int64)


def most_probable(logits):
    """Tokens (B,) of the largest logits (B, V)."""
    return logits.argmax(axis=-1)


@dataclass(frozen=True)
class Sample:
    """Draws tokens (B,) by their probability, from logits (B, V); as `sample` describes."""

    rng: np.random.Generator
    temperature: float = 1.0
    top_k: int | None = None

    def __post_init__(self) -> None:
        checks.generator("sample", "rng", self.rng)
        checks.positive("sample", "temperature", self.temperature)
        if self.top_k is not None:
            checks.integer("sample", "top_k", self.top_k)

    def __call__(self, logits):
        """Draw a token for each row."""
        scaled = logits.astype(np.float64) / self.temperature
        if self.top_k is not None and self.top_k < scaled.shape[-1]:
            least = np.partition(scaled, -self.top_k, axis=-1)[:, -self.top_k, None]
            scaled = np.where(scaled >= least, scaled, -np.inf)
        return draw(softmax(scaled), self.rng)


def draw(p, rng):
    """Tokens (B,), each by its row of p (B, V), in proportion; without a generator the largest."""
    below = p.cumsum(axis=-1)
    if rng is None:
        return p.argmax(axis=-1)
    return (below < rng.random((len(p), 1)) * below[:, -1:]).sum(axis=-1)


class Reader:
    """Reads tokens after those that it has read, with a cache or all of them again.

    What the model gives decides: `sources(params, source, source_real)`, what it makes of a source,
    and `forward(params, sources, tokens, real, cache, last)`, logits of the last tokens.
    """

    def __init__(
        self,
        params: Params,
        model: Any,
        batch: int,
        capacity: int,
        source: Any = None,
        source_real: Any = None,
        cached: bool = True,
    ) -> None:
        self.params, self.model, self.length = params, model, 0
        self.sources = model.sources(params, source, source_real)
        self.cache = Cache(batch, capacity) if cached else None
        self.tokens, self.real = np.zeros((batch, 0), np.int64), np.zeros((batch, 0), bool)

    def __call__(
        self, tokens: np.ndarray, real: np.ndarray | None = None, last: int = 1
    ) -> np.ndarray:
        """Read new tokens, all real by default: logits (B, last, V) of what follows the last."""
        new = tokens.shape[1]
        if self.cache is None:
            real = np.ones(tokens.shape, bool) if real is None else real
            tokens = self.tokens = np.concatenate([self.tokens, tokens], axis=1)
            real = self.real = np.concatenate([self.real, real], axis=1)
        logits = self.model.forward(self.params, self.sources, tokens, real, self.cache, last)
        self.length += new
        return logits

    def take(self, rows):
        """Go on with these sequences, in this order."""
        self.tokens, self.real = self.tokens[rows], self.real[rows]
        self.sources = tuple(None if x is None else x[rows] for x in self.sources)
        if self.cache is not None:
            self.cache.take(rows)

    def cut(self, length):
        """Forget all tokens but the first `length`."""
        self.length = length
        self.tokens, self.real = self.tokens[:, :length], self.real[:, :length]
        if self.cache is not None:
            self.cache.cut(length)


def _begin(
    function,
    params,
    model,
    prompt,
    steps,
    source=None,
    source_real=None,
    real=None,
    end=None,
    cached=True,
):
    """Check what was asked for; give the prompt, which of it is real, and what reads it."""
    if not hasattr(model, "forward"):
        raise ValueError(
            f"{function}: model must be one that writes; got "
            f"{getattr(model, 'config', {}).get('model_type', type(model).__name__)}"
        )
    tokens = checks.whole_numbers(function, "prompt", prompt)
    if tokens.ndim != 2 or 0 in tokens.shape:
        raise ValueError(
            f"{function}: prompt must have the axes (B, L) and at least one token; "
            f"got shape {tokens.shape}"
        )
    B, L = tokens.shape
    real = None if real is None else checks.as_array(real)
    if real is not None and (real.shape != tokens.shape or not real[:, -1].all()):
        raise ValueError(
            f"{function}: padding of the prompt must stand on the left, so that every prompt ends "
            "with a token"
        )
    checks.integer(function, "steps", steps, least=0)
    V = len(params["embedding"])
    if end is not None and checks.integer(function, "end", end, least=0) >= V:
        raise ValueError(f"{function}: end must be a token of the vocabulary, below {V}; got {end}")
    if ("encoder" in params) == (source is None):
        raise ValueError(
            f"{function}: source must be given if and only if the model has an encoder; got "
            f"{'none' if source is None else 'one'}"
        )
    if source is None and source_real is not None:
        raise ValueError(f"{function}: source_real must come with a source; got none")
    rows = tokens.shape[:1] if source is None else np.shape(source)
    if source is not None and (len(rows) < 2 or rows[0] != B):
        raise ValueError(
            f"{function}: source must have one row for each prompt, {B}; got shape {rows}"
        )
    cached = checks.flag(function, "cached", cached)
    return tokens, real, Reader(params, model, B, L + steps, source, source_real, cached)


def _check_logits(function, logits, step):
    """Refuse a row that names no token: with NaN, with +inf, or of only -inf."""
    top = np.maximum.reduce(logits, axis=-1).tolist()  # B numbers, NaN if one of a row is NaN
    finite = [math.isfinite(logit) for logit in top]
    if not all(finite):
        row = finite.index(False)
        raise ValueError(
            f"{function}: the largest logit must be finite; got {top[row]} at step {step} of "
            f"sequence {row}"
        )
