"""Solutions of the exercises of chapter 51."""

import math

import numpy as np


def to_digits(n, base, width):
    rest, digits = np.asarray(n), []
    for _ in range(width):
        rest, digit = np.divmod(rest, base)  # the first digit found keeps the fraction
        digits.append(digit)
    return np.stack(digits[::-1], axis=-1)


def from_digits(digits, base):
    value = 0
    for place in range(digits.shape[-1]):
        value = value * base + digits[..., place]
    return value


def log_n_scale(n, trained_length):
    return np.maximum(1, np.log(n) / math.log(trained_length))


def attention_temperature(positions, floor_scale=8192, scale=0.1):
    steps = np.floor((np.asarray(positions) + 1) / floor_scale)
    return 1 + scale * np.log1p(steps)


def attention_entropy(weights, axis=-1):
    logs = np.log(np.where(weights > 0, weights, 1))  # 0 ln 0 = 0
    return 0 - (weights * logs).sum(axis=axis)
