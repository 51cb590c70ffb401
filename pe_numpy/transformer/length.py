r"""Past the trained length: positions as digits, and scores that grow with the position.

Sources: Su 2023, kexue.fm 9675, which reads RoPE as a number system, and Su 2021, kexue.fm 8823,
which keeps the entropy of attention steady; the same factor in Chiang and Cholak 2022
(arXiv:2202.12172)::

    digit_i(n) = floor(n / b^i) mod b
    scores     = log n / log L0 * q k^T / sqrt(K)
    entropy    = -sum_j w_j ln w_j

`attention_temperature` is a rule of Llama 4, known only from its code.

Axes: any for n; digits are a last axis of `width`, most significant first.
Symbols: n is a position in `to_digits`, the number of keys that a query sees in `log_n_scale`; b is
the base; L0 the trained length; w are attention weights.
Convention: entropies are in nats; 0 ln 0 is 0. RoPE's pair i turns by n / b^i with the base
b = base^(2/d), and an angle counts mod 2 pi: a digit without the floor.
Differs from the sources: the last digit may carry a fraction, so that interpolated positions have
digits; the factor log n / log L0 is never below 1 (as in `modeling_qwen.py`,
QwenLM/Qwen-Audio at 0b0e882).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def to_digits(n: ArrayLike, base: int, width: int) -> np.ndarray:
    """Write each n in `width` digits of a base: floor(n / b^i) mod b, most significant first.

    Source: Su 2023, kexue.fm 9675.

    Parameters
    ----------
    n : array of any shape
        Positions from 0 to below base^width: integers, or real numbers between them.
    base : int
        b, at least 2.
    width : int
        Number of digits; shorter numbers start with zeros.

    Returns
    -------
    (*n.shape, width) array: integers (int64) for integers, float64 for real numbers, whose last
    digit keeps the fraction.

    Examples
    --------
    >>> to_digits(1749, 10, 4).tolist(), to_digits(1749, 16, 3).tolist()
    ([1, 7, 4, 9], [6, 13, 5])
    >>> to_digits(1749 / 2, 10, 3).tolist()
    [8.0, 7.0, 4.5]
    """
    n = checks.position_array("to_digits", "n", n)
    base = checks.integer("to_digits", "base", base, least=2)
    width = checks.integer("to_digits", "width", width)
    if (n < 0).any():
        raise ValueError(f"to_digits: n must not be negative; got {n.min()}")
    rest = n.astype(np.float64 if n.dtype.kind == "f" else np.int64)
    digits = np.empty((*n.shape, width), rest.dtype)
    for place in reversed(range(width)):
        rest, digits[..., place] = np.divmod(rest, base)
    if (rest > 0).any():
        raise ValueError(
            f"to_digits: width must hold every n: {width} digits in base {base} hold numbers below "
            f"{base**width}; got {n.max()}"
        )
    return digits


def from_digits(digits: ArrayLike, base: int) -> np.ndarray:
    """Read numbers back from their digits: sum_i digit_i b^i; undoes `to_digits`.

    Source: the definition of a positional number system.

    Parameters
    ----------
    digits : (..., width) array
        Most significant first, each from 0 to below the base.
    base : int
        b, at least 2.

    Returns
    -------
    (...,) array: integers for integers, float64 for real numbers.

    Examples
    --------
    >>> from_digits([[1, 7, 4, 9], [0, 0, 2, 0]], 10).tolist()
    [1749, 20]
    """
    digits = checks.position_array("from_digits", "digits", digits, axis=True)
    base = checks.integer("from_digits", "base", base, least=2)
    if ((digits < 0) | (digits >= base)).any():
        raise ValueError(
            f"from_digits: each digit must be from 0 to below base = {base}; "
            f"got {digits.min()} to {digits.max()}"
        )
    digits = digits.astype(np.float64 if digits.dtype.kind == "f" else np.int64)
    value = np.zeros(digits.shape[:-1], digits.dtype)
    for place in range(digits.shape[-1]):
        value = value * base + digits[..., place]
    return value


def log_n_scale(n: ArrayLike, trained_length: float) -> np.ndarray:
    """Multiply scores with this to keep attention sharp: max(1, log n / log L0).

    Source: Su 2021, kexue.fm 8823; Chiang and Cholak 2022. Dividing by log n does the opposite: it
    flattens the weights.

    Parameters
    ----------
    n : array of any shape
        Number of keys that each query may attend to: (L,), or one number.
    trained_length : float
        L0, above 1.

    Returns
    -------
    float64 array of n's shape. For n of shape (L,) give it a last axis, `[:, None]`, to multiply
    the scores (..., L, S), or the queries (..., L, K), which does the same.

    Examples
    --------
    >>> log_n_scale([1, 10, 100, 1000], 10).round(12).tolist()
    [1.0, 1.0, 2.0, 3.0]
    """
    n = checks.position_array("log_n_scale", "n", n)
    trained_length = checks.above(
        "log_n_scale", "trained_length", trained_length, 1, "its logarithm is above 0"
    )
    if (n < 0).any():
        raise ValueError(f"log_n_scale: n must not be negative; got {n.min()}")
    n = n.astype(np.float64)  # float64 also for a float32 n
    return np.maximum(1, np.log(np.maximum(n, 1)) / math.log(trained_length))


def attention_temperature(
    positions: ArrayLike, floor_scale: float = 8192, scale: float = 0.1
) -> np.ndarray:
    """Multiply queries with this, by steps: 1 + scale · ln(1 + floor((i + 1) / floor_scale)).

    Source: code only: Llama 4, `llama4/model.py` of meta-llama/llama-models at a9c89c4, on the
    layers without RoPE. Ministral 3 in transformers 5.23.0 counts i for i + 1.

    Parameters
    ----------
    positions : array of any shape
        Positions i of the queries, from 0.
    floor_scale : float
        Positions between two steps: up to the first the factor is 1.
    scale : float
        How much the factor grows with the logarithm.

    Returns
    -------
    float64 array of the positions' shape. For (L,) give it a last axis, `[:, None]`, to multiply
    the queries (..., L, K).

    Examples
    --------
    >>> attention_temperature([0, 8190, 8191, 131071]).round(6).tolist()
    [1.0, 1.0, 1.069315, 1.283321]
    """
    name = "attention_temperature"
    i = checks.position_array(name, "positions", positions)
    floor_scale = checks.positive(name, "floor_scale", floor_scale)
    scale = checks.positive(name, "scale", scale)
    if (i < 0).any():
        raise ValueError(f"{name}: positions must not be negative; got {i.min()}")
    steps = np.floor((i.astype(np.float64) + 1) / floor_scale)
    return 1 + scale * np.log1p(steps)


def attention_entropy(weights: ArrayLike, axis: int = -1) -> np.ndarray:
    """Spread of attention weights in nats: -sum_j w_j ln w_j.

    Source: Su 2021, kexue.fm 8823; Shannon's entropy, with 0 ln 0 = 0. exp(entropy) is a number of
    keys: the size of a uniform attention as spread as this one.

    Parameters
    ----------
    weights : array
        Attention weights, which sum to 1 along the axis (or to 0, where a mask allows nothing).
    axis : int
        The axis of the keys.

    Returns
    -------
    Array without that axis, in the dtype of the weights (float16 is computed in float32): 0 where
    one key has all the weight, ln n where n keys share it equally.

    Examples
    --------
    >>> attention_entropy([[1.0, 0.0], [0.5, 0.5]]).round(4).tolist()
    [0.0, 0.6931]
    """
    weights = checks.real_array("attention_entropy", "weights", weights)
    axis = checks.axis("attention_entropy", "weights", weights, axis)
    if ((weights < 0) | (weights > 1)).any():
        raise ValueError(
            "attention_entropy: weights must be from 0 to 1, as a softmax gives them; "
            f"got {weights.min():g} to {weights.max():g}"
        )
    work = weights.astype(checks.working(weights)[0], copy=False)
    terms = work * np.log(np.where(work == 0, 1, work))  # 0 ln 0 = 0
    return (0.0 - terms.sum(axis=axis)).astype(weights.dtype)  # 0.0 - 0.0 is 0.0, not -0.0
