r"""Tasks that a small Transformer learns in seconds, each with a held-out set.

Source: this book; they are small relatives of the usual ones (copying, translation, language
modelling, retrieval of one item among many).

Axes: B items, L tokens, V vocabulary.
Symbols: PAD, BOS and EOS (0, 1 and 2, written "_", "^" and "$") fill up, begin and end a string;
IGNORE (-1) stands for a target that does not count.
Convention: ``TASK_batch(rng, size, ...)`` gives a dictionary of integer arrays with "inputs" and
"targets", and "source" where there is an encoder. Whether an item is for training or for testing
is only a matter of its checksum: with ``held_out=True`` only items come that no training batch can
ever hold. Characters of an alphabet are numbered by their place in it.
Differs from other books: the test items are kept out of training by construction, and of the Markov
language the smallest possible loss is known.
"""

from __future__ import annotations

import string
import zlib
from collections.abc import Callable, Iterable
from datetime import date
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks

Batch = dict[str, np.ndarray]

PAD, BOS, EOS = 0, 1, 2
IGNORE = -1
MARKS = "_^$"  # PAD, BOS, EOS
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
LETTERS = MARKS + string.ascii_lowercase  # alphabet of `reversal_batch`
DATES = MARKS + string.digits + " -" + "".join(sorted(set("".join(MONTHS))))  # of `date_batch`
NOUNS = ("dog", "man", "cat", "bird", "child", "horse", "fish", "wolf")  # tokens 0 to 7
VERBS = ("bites", "sees", "follows", "hears")  # tokens 8 to 11
CLS = len(NOUNS) + len(VERBS)


def to_tokens(strings: str | Iterable[str], alphabet: str, length: int | None = None) -> np.ndarray:
    """Number the characters of a string, or of several that are padded to one length.

    Parameters
    ----------
    strings : str, or several of them
        What to number.
    alphabet : str
        Every character once; its place is its token.
    length : int, optional
        Length L of each row, by default that of the longest string.

    Returns
    -------
    (L,) integer array for one string, (B, L) for several; filled up with PAD = 0 on the right.

    Notes
    -----
    Source: common practice. `to_strings` goes back.

    Examples
    --------
    >>> to_tokens(["^ba", "c"], LETTERS).tolist()
    [[1, 4, 3], [5, 0, 0]]
    """
    places = {character: place for place, character in enumerate(alphabet)}
    if len(places) < len(alphabet) or not places:
        raise ValueError(
            f"to_tokens: alphabet must hold every character once; got {len(alphabet)} characters, "
            f"{len(places)} different ones"
        )
    rows = [strings] if isinstance(strings, str) else list(strings)
    longest = max(map(len, rows), default=0)
    length = longest if length is None else checks.integer("to_tokens", "length", length, least=0)
    if longest > length:
        raise ValueError(f"to_tokens: a string may have {length} characters; got {longest}")
    tokens = np.full((len(rows), length), PAD, np.int64)
    for n, row in enumerate(rows):
        if strange := set(row) - set(alphabet):
            raise ValueError(
                f"to_tokens: each character must be in the alphabet {alphabet!r}; "
                f"got {min(strange)!r}"
            )
        tokens[n, : len(row)] = [places[character] for character in row]
    return tokens[0] if isinstance(strings, str) else tokens


def to_strings(tokens: ArrayLike, alphabet: str) -> Any:
    """Read tokens as the characters of an alphabet.

    Parameters
    ----------
    tokens : (L,) or (..., L) array of integers
        Places in the alphabet.
    alphabet : str
        As in `to_tokens`.

    Returns
    -------
    A string for one row, else a list of strings (nested like the axes). PAD, BOS and EOS show
    as "_", "^" and "$".

    Notes
    -----
    Source: common practice; undoes `to_tokens`, except for the padding.

    Examples
    --------
    >>> to_strings([[4, 3, 2, 0], [1, 5, 5, 2]], LETTERS)
    ['ba$_', '^cc$']
    >>> to_strings([4, 3, 2, 0], LETTERS).partition("$")[0]
    'ba'
    """
    tokens = checks.whole_numbers("to_strings", "tokens", tokens, axis=True)
    if ((tokens < 0) | (tokens >= len(alphabet))).any():
        raise ValueError(
            f"to_strings: tokens must be from 0 to {len(alphabet) - 1}, places in the alphabet; "
            f"got {tokens.min()} to {tokens.max()}"
        )
    if tokens.ndim > 1:
        return [to_strings(row, alphabet) for row in tokens]
    return "".join(alphabet[token] for token in tokens)


def _is_held_out(item: bytes) -> bool:
    """One item in ten, the same ones on every machine and in every run."""
    return zlib.crc32(item) % 10 == 0


def _choose(
    function: str, size: int, draw: Callable[[int], Iterable[tuple[bytes, Any]]], held_out: bool
) -> list[Any]:
    """Draw pairs (bytes that decide, item) until `size` items of the wanted side are there."""
    size = checks.integer(function, "size", size, least=0)
    held_out = checks.flag(function, "held_out", held_out)
    chosen: list[Any] = []
    for _ in range(1000):
        if len(chosen) >= size:
            return chosen[:size]
        chosen += [item for key, item in draw(size) if _is_held_out(key) == held_out]
    side = "held-out" if held_out else "training"
    raise ValueError(f"{function}: there are too few {side} items of this kind; got {len(chosen)}")


def _choose_rows(
    function: str, size: int, draw: Callable[[int], np.ndarray], length: int, held_out: bool
) -> np.ndarray:
    """The same for rows of tokens, which decide themselves: (size, length)."""

    def pairs(n: int) -> Iterable[tuple[bytes, np.ndarray]]:
        return ((row.astype("<i8").tobytes(), row) for row in draw(n))

    rows = _choose(function, size, pairs, held_out)
    return np.array(rows, np.int64).reshape(len(rows), length)


def _translation(
    pairs: list[tuple[str, str]], alphabet: str, source_length: int, target_length: int
) -> Batch:
    """Teacher forcing: the decoder sees BOS and the target, and is to say the target and EOS."""
    return {
        "source": to_tokens([source for source, _ in pairs], alphabet, source_length),
        "inputs": to_tokens(["^" + target for _, target in pairs], alphabet, target_length + 1),
        "targets": to_tokens([target + "$" for _, target in pairs], alphabet, target_length + 1),
    }


def reversal_batch(
    rng: np.random.Generator,
    size: int,
    shortest: int = 3,
    longest: int = 10,
    held_out: bool = False,
) -> Batch:
    """Strings of random letters, to be written backwards.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the letters come from.
    size : int
        Number of strings B.
    shortest, longest : int
        Number of letters, all numbers between them equally likely.
    held_out : bool
        Strings for testing, or for training.

    Returns
    -------
    {"source": (B, longest), "inputs": (B, longest + 1), "targets": (B, longest + 1)} in the
    alphabet `LETTERS`; inputs are BOS and the reversed string, targets the reversed string and EOS,
    so targets are the inputs one place later; PAD = 0 elsewhere.

    Notes
    -----
    Source: this book; the right shift is that of Vaswani et al. 2017, section 3.1.

    Examples
    --------
    >>> batch = reversal_batch(np.random.default_rng(1), 1, longest=6)
    >>> {name: to_strings(rows, LETTERS) for name, rows in batch.items()}
    {'source': ['ntya__'], 'inputs': ['^aytn__'], 'targets': ['aytn$__']}
    """
    name = "reversal_batch"
    rng = checks.generator(name, "rng", rng)
    shortest = checks.integer(name, "shortest", shortest)
    longest = checks.integer(name, "longest", longest, least=shortest)

    def draw(n: int) -> Iterable[tuple[bytes, tuple[str, str]]]:
        lengths = rng.integers(shortest, longest + 1, n)
        letters = rng.integers(0, 26, (n, longest))
        for length, row in zip(lengths, letters, strict=True):
            word = "".join(string.ascii_lowercase[letter] for letter in row[:length])
            yield word.encode(), (word, word[::-1])

    return _translation(_choose(name, size, draw, held_out), LETTERS, longest, longest)


def date_batch(rng: np.random.Generator, size: int, held_out: bool = False) -> Batch:
    """Dates as people write them, to be translated into year-month-day.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the dates come from: any day from 1900 to 2099, in one of three styles.
    size : int
        Number of dates B.
    held_out : bool
        Dates for testing, or for training (in whatever style).

    Returns
    -------
    {"source": (B, 17), "inputs": (B, 11), "targets": (B, 11)} in the alphabet `DATES`, shifted as
    in `reversal_batch`. Sources look like "24 aug 1984", "24 august 1984" or "august 24 1984".

    Notes
    -----
    Source: this book, after a common exercise on translation with attention.

    Examples
    --------
    >>> batch = date_batch(np.random.default_rng(1), 1)
    >>> [to_strings(batch[name], DATES)[0] for name in ("source", "targets")]
    ['21 august 1994___', '1994-08-21$']
    """
    rng = checks.generator("date_batch", "rng", rng)
    first, last = date(1900, 1, 1).toordinal(), date(2099, 12, 31).toordinal()

    def draw(n: int) -> Iterable[tuple[bytes, tuple[str, str]]]:
        days, styles = rng.integers(first, last + 1, n), rng.integers(0, 3, n)
        for day, style in zip(days, styles, strict=True):
            when = date.fromordinal(int(day))
            month = MONTHS[when.month - 1]
            source = (
                f"{when.day} {month[:3]} {when.year}",
                f"{when.day} {month} {when.year}",
                f"{month} {when.day} {when.year}",
            )[style]
            yield when.isoformat().encode(), (source, when.isoformat())

    return _translation(_choose("date_batch", size, draw, held_out), DATES, 17, 10)


def _next_token(rows: np.ndarray) -> Batch:
    """Language modelling: the target is the token one place later."""
    return {"inputs": rows[:, :-1], "targets": rows[:, 1:]}


def markov_language(symbols: int = 16, sharpness: float = 2.0, seed: int = 0) -> dict[str, Any]:
    """Make a language in which the last two symbols decide how likely each next one is.

    Parameters
    ----------
    symbols : int
        Size V of its alphabet.
    sharpness : float
        Standard deviation of the logits; 0 makes all symbols equally likely.
    seed : int
        Fixes the language.

    Returns
    -------
    {"table": (V, V, V), "pairs": (V, V), "entropy": float}: p(c | a, b) = table[a, b, c], which is
    softmax(sharpness N(0, 1)) over c; pairs[a, b] is how often "a b" occurs in the long run;
    entropy is that of a symbol given the two before it, in nats.

    Raises
    ------
    ValueError
        If the sharpness is so large that the language runs in circles.

    Notes
    -----
    Source: Shannon 1948, "A mathematical theory of communication", section 7: entropy =
    -sum_ab pairs[a, b] sum_c p(c | a, b) ln p(c | a, b), the smallest mean loss that any model can
    have from the third symbol on. `pairs` comes from power iteration: the step "a b" to "b c" is
    repeated until nothing changes.

    Examples
    --------
    >>> language = markov_language()
    >>> round(language["entropy"], 4), language["table"].shape
    (1.6411, (16, 16, 16))
    """
    name = "markov_language"
    symbols = checks.integer(name, "symbols", symbols)
    sharpness = checks.number(name, "sharpness", sharpness)
    if sharpness < 0:
        raise ValueError(f"{name}: sharpness must be at least 0; got {sharpness:g}")
    seed = checks.integer(name, "seed", seed, least=0)
    logits = sharpness * np.random.default_rng(seed).standard_normal((symbols,) * 3)  # (V, V, V)
    table = np.exp(logits - logits.max(axis=-1, keepdims=True))
    table /= table.sum(axis=-1, keepdims=True)
    pairs = np.full((symbols, symbols), 1 / symbols**2)  # (V, V)
    for _ in range(10_000):
        before, pairs = pairs, (pairs[:, :, None] * table).sum(axis=0)
        if np.abs(pairs - before).sum() < 1e-14:
            break
    else:
        raise ValueError(
            f"{name}: sharpness must leave every symbol a chance, or the frequencies of pairs "
            f"don't settle; got {sharpness:g}"
        )
    surprise = -np.log(np.where(table > 0, table, 1))
    entropy = float((pairs[:, :, None] * table * surprise).sum())
    return {"table": table, "pairs": pairs / pairs.sum(), "entropy": entropy}


def markov_batch(
    rng: np.random.Generator,
    size: int,
    length: int,
    language: dict[str, Any],
    held_out: bool = False,
) -> Batch:
    """Sequences of a Markov language; the target is the next symbol.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the sequences come from.
    size, length : int
        Number B of sequences and their length L.
    language : dictionary
        From `markov_language`.
    held_out : bool
        Sequences for testing, or for training.

    Returns
    -------
    {"inputs": (B, L), "targets": (B, L)}, the targets one place ahead. The first two symbols come
    from the language's own frequencies, so every part of a sequence is like every other.

    Notes
    -----
    Source: this book. To compare contexts of different lengths on the same targets, draw the
    longest and take the last columns of both arrays.

    Examples
    --------
    >>> batch = markov_batch(np.random.default_rng(0), 2, 5, markov_language())
    >>> batch["inputs"].shape, bool((batch["inputs"][:, 1:] == batch["targets"][:, :-1]).all())
    ((2, 5), True)
    """
    rng = checks.generator("markov_batch", "rng", rng)
    length = checks.integer("markov_batch", "length", length)
    V = len(language["pairs"])
    steps = language["table"].cumsum(axis=-1)[..., :-1]  # (V, V, V-1), where c ends
    starts = language["pairs"].reshape(-1).cumsum()[:-1]  # (V V - 1,)

    def draw(n: int) -> np.ndarray:
        chance = rng.random((n, length + 1))
        columns = list(divmod(np.searchsorted(starts, chance[:, 0], side="right"), V))
        for t in range(1, length):
            ends = steps[columns[-2], columns[-1]]  # (n, V-1)
            columns.append((chance[:, t, None] >= ends).sum(axis=-1))
        return np.stack(columns, axis=1)  # (n, length + 1)

    return _next_token(_choose_rows("markov_batch", size, draw, length + 1, held_out))


def opticks() -> str:
    """Text of Newton's Opticks, books one and three, of 1730: 377,046 characters.

    Returns
    -------
    The text in paragraphs, as it was printed except for figures and notes.

    Notes
    -----
    Source: Newton 1704, fourth edition 1730; in the public domain. ``training/data/README.md`` says
    where this copy comes from and what was left out.

    Examples
    --------
    >>> opticks()[36:96]
    'My Design in this Book is not to explain the Properties of L'
    """
    file = resources.files("pe_numpy.training") / "data" / "opticks.txt"
    return file.read_text(encoding="ascii")


def text_corpus(text: str | None = None, share: float = 0.9) -> dict[str, Any]:
    """Characters of a text as tokens: the first part for training, the rest held out.

    Parameters
    ----------
    text : str, optional
        Any text; `opticks` by default. It is lower-cased, and all white space becomes one blank.
    share : float
        Part for training, between 0 and 1.

    Returns
    -------
    {"alphabet": str, "train": (n,) tokens, "held_out": (m,) tokens}; `to_strings` reads them.

    Notes
    -----
    Source: common practice. The split is one cut: windows on its two sides never overlap.

    Examples
    --------
    >>> corpus = text_corpus("A rose is  a rose.", share=0.6)
    >>> corpus["alphabet"], to_strings(corpus["held_out"], corpus["alphabet"])
    (' .aeiors', 'a rose.')
    """
    share = checks.number("text_corpus", "share", share)
    text = " ".join((opticks() if text is None else text).split()).lower()
    cut = int(share * len(text))
    if not 0 < cut < len(text):
        raise ValueError(
            "text_corpus: share must leave some of the text on both sides; "
            f"got {share:g} of {len(text)} characters"
        )
    alphabet = "".join(sorted(set(text)))
    tokens = to_tokens(text, alphabet)
    return {"alphabet": alphabet, "train": tokens[:cut], "held_out": tokens[cut:]}


def text_batch(
    rng: np.random.Generator,
    size: int,
    length: int,
    corpus: dict[str, Any],
    held_out: bool = False,
) -> Batch:
    """Windows of a text at random places; the target is the next character.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the places come from.
    size, length : int
        Number B of windows and their length L.
    corpus : dictionary
        From `text_corpus`.
    held_out : bool
        Windows of the part for testing, or of the part for training.

    Returns
    -------
    {"inputs": (B, L), "targets": (B, L)}, the targets one place ahead.

    Notes
    -----
    Source: common practice. For contexts of different lengths see `markov_batch`. With fewer than
    some 256 windows the mean loss of a test depends more on the windows than on the model.

    Examples
    --------
    >>> batch = text_batch(np.random.default_rng(2), 1, 3, text_corpus("abcdefghijklmnopqrst"))
    >>> batch["inputs"].tolist(), batch["targets"].tolist()
    ([[12, 13, 14]], [[13, 14, 15]])
    """
    rng = checks.generator("text_batch", "rng", rng)
    size = checks.integer("text_batch", "size", size, least=0)
    length = checks.integer("text_batch", "length", length)
    part = corpus["held_out" if checks.flag("text_batch", "held_out", held_out) else "train"]
    if length >= len(part):
        raise ValueError(
            f"text_batch: a window must be shorter than its part of the text, {len(part)} "
            f"characters; got length {length}"
        )
    starts = rng.integers(0, len(part) - length, size)
    return _next_token(part[starts[:, None] + np.arange(length + 1)])


def offset_batch(
    rng: np.random.Generator,
    size: int,
    length: int = 32,
    places: int = 3,
    symbols: int = 16,
    held_out: bool = False,
) -> Batch:
    """Probe: which symbol stood `places` back?

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the symbols come from, all equally likely.
    size, length : int
        Number B of sequences and their length L.
    places : int
        Distance i - j of the symbol that is asked for.
    symbols : int
        Size V of the alphabet; chance is 1/V.
    held_out : bool
        Sequences for testing, or for training.

    Returns
    -------
    {"inputs": (B, L), "targets": (B, L)}; the first `places` targets are IGNORE = -1.

    Notes
    -----
    Source: this book. One layer solves it if a score can point at one distance.

    Examples
    --------
    >>> batch = offset_batch(np.random.default_rng(0), 1, length=6)
    >>> batch["inputs"].tolist(), batch["targets"].tolist()
    ([[13, 10, 8, 4, 4, 0]], [[-1, -1, -1, 13, 10, 8]])
    """
    name = "offset_batch"
    rng = checks.generator(name, "rng", rng)
    places = checks.integer(name, "places", places, least=0)
    length = checks.integer(name, "length", length, least=places + 1)
    symbols = checks.integer(name, "symbols", symbols)
    rows = _choose_rows(
        name, size, lambda n: rng.integers(0, symbols, (n, length)), length, held_out
    )
    unknown = np.full((len(rows), places), IGNORE, np.int64)
    targets = np.concatenate([unknown, rows[:, : length - places]], axis=1)  # (B, L)
    return {"inputs": rows, "targets": targets}


def needle_batch(
    rng: np.random.Generator,
    size: int,
    length: int = 32,
    keys: int = 8,
    values: int = 8,
    held_out: bool = False,
) -> Batch:
    """Probe: the last token names a key that occurred once; which value stood with it?

    Parameters
    ----------
    rng : numpy.random.Generator
        Where keys, values and the place of the needle come from.
    size, length : int
        Number B of sequences and their length L, the question included.
    keys, values : int
        How many there are of each; at least two keys.
    held_out : bool
        Sequences for testing, or for training.

    Returns
    -------
    {"inputs": (B, L), "targets": (B, L)}. The token of a pair is key * values + value, the question
    is keys * values + key, so V = keys * (values + 1). The last target is the value, 0 to
    values - 1; all others are IGNORE = -1. Chance is 1/values.

    Notes
    -----
    Source: this book. One item among L - 1 must be found, wherever it stands: this shows how
    attention thins out as L grows. Below, 70 asks for key 6, and 52 is 6 * 8 + 4.

    Examples
    --------
    >>> batch = needle_batch(np.random.default_rng(2), 1, length=5)
    >>> batch["inputs"].tolist(), batch["targets"].tolist()
    ([[3, 56, 10, 52, 70]], [[-1, -1, -1, -1, 4]])
    """
    name = "needle_batch"
    rng = checks.generator(name, "rng", rng)
    length = checks.integer(name, "length", length, least=2)
    keys = checks.integer(name, "keys", keys, least=2)
    values = checks.integer(name, "values", values)

    def draw(n: int) -> np.ndarray:
        asked = rng.integers(0, keys, n)  # (n,)
        others = (asked[:, None] + rng.integers(1, keys, (n, length - 1))) % keys
        here = np.arange(length - 1) == rng.integers(0, length - 1, n)[:, None]
        pairs = np.where(here, asked[:, None], others) * values
        pairs = pairs + rng.integers(0, values, (n, length - 1))
        return np.concatenate([pairs, keys * values + asked[:, None]], axis=1)  # (n, L)

    rows = _choose_rows(name, size, draw, length, held_out)
    asked = rows[:, -1:] - keys * values  # (B, 1)
    needle = np.argmax(rows[:, :-1] // values == asked, axis=1)  # (B,)
    targets = np.full(rows.shape, IGNORE, np.int64)
    targets[:, -1] = rows[np.arange(len(rows)), needle] % values
    return {"inputs": rows, "targets": targets}


def word_order_batch(
    rng: np.random.Generator, size: int, cls: bool = False, held_out: bool = False
) -> Batch:
    """Probe: who bites? Sentences of noun, verb, noun, and the first noun is asked for.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the words come from; the two nouns differ.
    size : int
        Number of sentences B.
    cls : bool
        Whether the token CLS = 12 stands in front.
    held_out : bool
        Sentences for testing, or for training; a sentence and its mirror image are always on the
        same side.

    Returns
    -------
    {"inputs": (B, 3), or (B, 4) with `cls`, "targets": (B,)}: tokens 0 to 7 are `NOUNS`, 8 to 11
    `VERBS`; the target is the token of the first noun.

    Notes
    -----
    Source: this book. Who sees the words without their order can tell the two nouns from the other
    six, and is right half of the time.

    Examples
    --------
    >>> batch = word_order_batch(np.random.default_rng(2), 1)
    >>> [(NOUNS + VERBS)[word] for word in batch["inputs"][0]], NOUNS[batch["targets"][0]]
    (['fish', 'bites', 'dog'], 'fish')
    """
    rng = checks.generator("word_order_batch", "rng", rng)
    cls = checks.flag("word_order_batch", "cls", cls)
    count = len(NOUNS)

    def draw(n: int) -> Iterable[tuple[bytes, tuple[int, int, int]]]:
        who = rng.integers(0, count, n)
        whom = (who + rng.integers(1, count, n)) % count
        verb = count + rng.integers(0, len(VERBS), n)
        for a, b, c in zip(who.tolist(), verb.tolist(), whom.tolist(), strict=True):
            yield bytes([min(a, c), b, max(a, c)]), (a, b, c)

    chosen = _choose("word_order_batch", size, draw, held_out)
    rows = np.array(chosen, np.int64).reshape(len(chosen), 3)
    first = np.full((len(rows), 1), CLS, np.int64)
    return {"inputs": np.concatenate([first, rows], axis=1) if cls else rows, "targets": rows[:, 0]}
