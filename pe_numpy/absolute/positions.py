r"""Positions that are no index of a token: drawn at random, or counted inside a number.

Source: Ruoss et al. 2023, "Randomized positional encodings boost length generalization of
Transformers" (arXiv:2305.16843)::

    p = n numbers drawn from 0 .. N-1 without repetition, in ascending order

and McLeish et al. 2024, "Transformers can do arithmetic with the right embeddings"
(arXiv:2405.17399), the Abacus embedding::

    p = the place of a digit in its number, from 1; 0 for every other token

Axes: L tokens.
Symbols: n = L tokens get positions below N; an offset k is added only to the digits.
Convention: both give positions, for any function of positions: `sinusoidal`, `learned`, `rope`,
`relative_distance`. Abacus positions are meant for numbers written with the least significant digit
first, so that equal places are equally far from the start of their numbers.
Differs from the papers: nothing. The authors of the first draw once for a whole batch and draw
distances, not positions, for ALiBi and Transformer-XL; those of the second draw the offset of
a batch from 0 .. 99 in training and leave it out in tests.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def random_positions(rng: np.random.Generator, length: int, max_length: int) -> np.ndarray:
    """Draw positions without repetition and sort them: p_0 < p_1 < ... below N.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the positions come from; it moves on.
    length : int
        Number L of tokens.
    max_length : int
        All positions are below this number N, in training as later.

    Returns
    -------
    (L,) integer array, ascending. Two neighbours are (N+1)/(L+1) apart on average.

    Notes
    -----
    Source: Ruoss et al. 2023; google-deepmind/randomized_positional_encodings (commit e8c6474),
    `noisy_fixed_positional_encodings`. They are drawn at test time, too.

    Examples
    --------
    >>> random_positions(np.random.default_rng(0), 4, 4).tolist()
    [0, 1, 2, 3]
    >>> p = random_positions(np.random.default_rng(0), 5, 100)
    >>> bool((p[1:] > p[:-1]).all()), bool(p.max() < 100)
    (True, True)
    """
    name = "random_positions"
    rng = checks.generator(name, "rng", rng)
    length = checks.integer(name, "length", length)
    max_length = checks.integer(name, "max_length", max_length)
    if length > max_length:
        raise ValueError(
            f"{name}: length must be at most max_length, since no position is drawn twice; "
            f"got {length} and {max_length}"
        )
    return np.sort(rng.choice(max_length, length, replace=False))  # (L,)


def digit_positions(token_ids: ArrayLike, digit_ids: ArrayLike, offset: int = 0) -> np.ndarray:
    """Count each digit inside its own number, from 1; 0 for all other tokens.

    Parameters
    ----------
    token_ids : (..., L) array of integers
        Tokens. A number is a run of digits; whatever else stands between two runs parts them.
    digit_ids : array of integers
        The tokens that are digits.
    offset : int
        Number k added to the places of digits: random in training, 0 in tests.

    Returns
    -------
    (..., L) integer array: rows of a table for `learned`.

    Notes
    -----
    Source: McLeish et al. 2024; mcleish7/arithmetic (commit 86022a5), `abacus.py`. With a cache
    give all tokens, and take the last: a digit alone can't know its place.

    Examples
    --------
    >>> tokens = [3, 2, 1, 10, 5, 4, 11, 8, 6, 1]  # 123 + 45 = 168, least significant digits first
    >>> digit_positions(tokens, range(10)).tolist()
    [1, 2, 3, 0, 1, 2, 0, 1, 2, 3]
    """
    name = "digit_positions"
    tokens = checks.whole_numbers(name, "token_ids", token_ids, axis=True)
    digits = checks.whole_numbers(name, "digit_ids", digit_ids)
    offset = checks.integer(name, "offset", offset, least=0)
    is_digit = np.isin(tokens, digits)
    index = np.arange(tokens.shape[-1])
    before = np.maximum.accumulate(np.where(is_digit, -1, index), axis=-1)  # last one that is none
    return np.where(is_digit, index - before + offset, 0)  # (..., L)
