r"""Decoding: one token after another, with or without a cache of keys and values.

Source: greedy decoding as in Vaswani et al. 2017, section 3 ("auto-regressive"); temperature:
Ackley et al. 1985; top-k sampling: Fan et al. 2018 (arXiv:1805.04833), section 5.4::

    next token ~ softmax(logits / temperature), among the k largest logits

Axes: B batch, L tokens, V vocabulary.
Convention: prompts of unequal length are padded on the left, so that all of them end together; the
result holds the new tokens alone, padded with `end` after a sequence has ended.
Differs from the papers: nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.transformer.attention import softmax
from pe_numpy.transformer.model import Cache, Model, decode, encode

if TYPE_CHECKING:
    from pe_numpy.models.load import Loaded


def greedy(
    params: dict[str, Any],
    model: Model | Loaded,
    prompt: ArrayLike,
    steps: int,
    source: ArrayLike | None = None,
    source_real: ArrayLike | None = None,
    real: ArrayLike | None = None,
    end: int | None = None,
    cached: bool = True,
) -> np.ndarray:
    """Continue each prompt with the most probable token, again and again.

    Parameters
    ----------
    params : dict
        From `init_params`.
    model : Model, or what `load_model` gives
        Its sizes and choices.
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

    Raises
    ------
    ValueError
        As `encode` and `decode`; also if the prompt is empty, or padded on the right, `end` is no
        token of the vocabulary, the source has another number of rows than the prompt, or a largest
        logit is NaN or infinite.

    Notes
    -----
    Source: Vaswani et al. 2017, section 3.

    Examples
    --------
    >>> from pe_numpy import init_params
    >>> model = Model(11, 8, 2, 16, n_layers=1)
    >>> params = init_params(model, np.random.default_rng(0))
    >>> tokens = greedy(params, model, [[3, 1]], steps=4)
    >>> tokens.shape, bool((tokens == greedy(params, model, [[3, 1]], 4, cached=False)).all())
    ((1, 4), True)
    """

    def most_probable(logits: np.ndarray) -> np.ndarray:
        return logits.argmax(axis=-1)

    return _continue(
        "greedy", params, model, prompt, steps, source, source_real, real, end, cached,
        most_probable,
    )  # fmt: skip


def sample(
    params: dict[str, Any],
    model: Model | Loaded,
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

    Parameters
    ----------
    params, model, prompt, steps, source, source_real, real, end, cached : as in `greedy`
        As there.
    rng : numpy.random.Generator
        Where the draws come from; the same generator gives the same tokens.
    temperature : float
        Above 0; below 1 sharpens, above 1 flattens.
    top_k : int, optional
        Draw among the k most probable tokens alone; ties with the last of them may be drawn, too.

    Returns
    -------
    (B, n) integer array of the new tokens, as in `greedy`.

    Raises
    ------
    ValueError
        As `greedy`; also if the temperature is not above 0, or top_k is below 1.

    Notes
    -----
    Source: Fan et al. 2018, section 5.4.

    Examples
    --------
    >>> from pe_numpy import init_params
    >>> model = Model(11, 8, 2, 16, n_layers=1)
    >>> params = init_params(model, np.random.default_rng(0))
    >>> one = sample(params, model, [[3, 1]], 4, np.random.default_rng(1), top_k=1)
    >>> bool((one == greedy(params, model, [[3, 1]], 4)).all())
    True
    """
    temperature = checks.positive("sample", "temperature", temperature)
    if top_k is not None:
        top_k = checks.integer("sample", "top_k", top_k)

    def draw(logits: np.ndarray) -> np.ndarray:
        scaled = logits.astype(np.float64) / temperature
        if top_k is not None and top_k < scaled.shape[-1]:
            least = np.partition(scaled, -top_k, axis=-1)[:, -top_k, None]  # the k-th largest
            scaled = np.where(scaled >= least, scaled, -np.inf)
        below = softmax(scaled).cumsum(axis=-1)
        return (below < rng.random((len(scaled), 1)) * below[:, -1:]).sum(axis=-1)

    return _continue(
        "sample", params, model, prompt, steps, source, source_real, real, end, cached, draw
    )


def _continue(
    function: str,
    params: dict[str, Any],
    model: Model | Loaded,
    prompt: ArrayLike,
    steps: int,
    source: ArrayLike | None,
    source_real: ArrayLike | None,
    real: ArrayLike | None,
    end: int | None,
    cached: bool,
    choose: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    tokens, real = _check_prompt(function, prompt, real)
    _check_choices(function, model, len(tokens), steps, source, end)
    B, L = tokens.shape
    read = _reader(params, model, B, L + steps, source, source_real, cached)
    new = np.zeros((tokens.shape[0], 0), np.int64)
    ended = np.zeros(len(tokens), bool)
    unread, unread_real, is_real = tokens, real, np.ones((len(tokens), 1), bool)
    for step in range(steps):
        logits = read(unread, unread_real)[:, -1]
        _check_logits(function, logits, step)
        chosen = choose(logits)
        if end is not None:
            chosen = np.where(ended, end, chosen)
            ended = ended | (chosen == end)
        new = np.concatenate([new, chosen[:, None]], axis=1)
        if end is not None and ended.all():
            break
        if cached:
            unread, unread_real = chosen[:, None], is_real
        else:
            unread = np.concatenate([unread, chosen[:, None]], axis=1)
            unread_real = np.concatenate([unread_real, is_real], axis=1)
    return new


def _reader(
    params: dict[str, Any],
    model: Model | Loaded,
    batch: int,
    capacity: int,
    source: ArrayLike | None,
    source_real: ArrayLike | None,
    cached: bool,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Give a function of tokens, and which are real, to logits; it keeps what it has read."""
    if isinstance(model, Model):
        memory = None if source is None else encode(params, model, source, source_real)
        dtype = params["embedding"].dtype
        cache = Cache(model, batch, capacity, dtype) if cached else None
        return lambda tokens, real: decode(params, model, tokens, memory, source_real, real, cache)
    loaded = model.replace(parameters=params)
    of_source = {} if source is None else {"source": source, "source_real": source_real}
    kept = loaded.cache(batch, capacity) if cached else None
    return lambda tokens, real: loaded.logits(tokens, real=real, cache=kept, **of_source)


def _check_prompt(
    function: str, prompt: ArrayLike, real: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    tokens = checks.whole_numbers(function, "prompt", prompt)
    if tokens.ndim != 2 or 0 in tokens.shape:
        raise ValueError(
            f"{function}: prompt must have the axes (B, L) and at least one token; "
            f"got shape {tokens.shape}"
        )
    real = np.ones(tokens.shape, bool) if real is None else checks.as_array(real)
    if real.shape != tokens.shape or not real[:, -1].all():
        raise ValueError(
            f"{function}: padding of the prompt must stand on the left, so that every prompt ends "
            "with a token"
        )
    return tokens, real


def _check_choices(
    function: str,
    model: Model | Loaded,
    batch: int,
    steps: int,
    source: ArrayLike | None,
    end: int | None,
) -> None:
    checks.integer(function, "steps", steps, least=0)
    if end is not None and checks.integer(function, "end", end, least=0) >= model.vocabulary:
        raise ValueError(
            f"{function}: end must be a token of the vocabulary, below {model.vocabulary}; "
            f"got {end}"
        )
    shape = () if source is None else np.shape(source)
    if source is not None and (len(shape) != 2 or shape[0] != batch):
        raise ValueError(
            f"{function}: source must have one row for each prompt, {batch}; got shape {shape}"
        )


def _check_logits(function: str, logits: np.ndarray, step: int) -> None:
    """Refuse a row that names no token: with NaN, with +inf, or of -inf alone."""
    top = np.maximum.reduce(logits, axis=-1).tolist()  # B numbers, NaN if one of a row is NaN
    finite = [math.isfinite(logit) for logit in top]
    if not all(finite):
        row = finite.index(False)
        raise ValueError(
            f"{function}: the largest logit must be finite; got {top[row]} at step {step} of "
            f"sequence {row}"
        )
