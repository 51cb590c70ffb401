"""Exercises of chapter 51: read longer than you trained.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 51_extrapolation.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def to_digits(n, base, width):
    """The digits of numbers, most significant first.

    n        any shape   numbers from 0 to below base^width
    base     int
    width    int         number of digits
    returns  (*n.shape, width)   whole numbers; for fractional n, floats whose last digit keeps the fraction

    for i in 0 .. width-1:
        digit for base^i = floor(n / base^i) mod base
        (for i = 0: n mod base, with its fraction)
    """
    raise NotImplementedError


def from_digits(digits, base):
    """Numbers from their digits.

    digits   (..., width)   most significant first
    base     int
    returns  (...)

    value = 0
    for each digit, from the first:
        value = value * base + digit
    """
    raise NotImplementedError


def log_n_scale(n, trained_length):
    """The factor that keeps attention sharp.

    n               any shape   number of keys
    trained_length  number
    returns         float64 of n's shape

    for each n:
        factor = max(1, log n / log trained_length)
    """
    raise NotImplementedError


def attention_temperature(positions, floor_scale=8192, scale=0.1):
    """The factor of the queries on Llama 4's layers without RoPE.

    positions    any shape   positions i of the queries, from 0
    floor_scale  number      positions between two steps
    scale        number
    returns      float64 of the positions' shape

    for each position i:
        steps  = floor((i + 1) / floor_scale)
        factor = 1 + scale ln(1 + steps)
    """
    raise NotImplementedError


def attention_entropy(weights, axis=-1):
    """The spread of attention weights, in nats.

    weights  (..., S, ...)   weights that sum to 1 along the axis
    axis     int
    returns  the shape without that axis, of the weights' dtype

    entropy = - sum over j of w[j] ln w[j],   where 0 ln 0 counts as 0
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# to_digits, 1: np.divmod gives quotient and remainder at once.
# to_digits, 2: fill the digits from the last to the first.

# from_digits, 1: for 1749 in base 10 the values are 1, 17, 174, 1749.

# log_n_scale, 1: up to the trained length the factor is 1.
# log_n_scale, 2: np.maximum works entry by entry.

# attention_temperature, 1: up to position floor_scale - 2 the factor is 1.
# attention_temperature, 2: np.log1p(x) is the logarithm of 1 + x.

# attention_entropy, 1: np.log(0) is -inf, and 0 times that is NaN.
# attention_entropy, 2: np.where(weights > 0, weights, 1) has a logarithm everywhere.
