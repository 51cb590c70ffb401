"""Solutions of the exercises of chapter 22."""

import numpy as np


def recurrent(start, step, length):
    codes = [1.0 * start]
    for _ in range(length - 1):
        codes.append(step(codes[-1]).astype(codes[0].dtype))
    return np.stack(codes)


def floater(start, derivative, times, substeps=8):
    codes = [1.0 * start]
    for begin, end in zip(times[:-1], times[1:], strict=True):
        p, h = codes[-1], (end - begin) / substeps
        for m in range(substeps):
            t = begin + m * h
            k1 = derivative(p, t)
            k2 = derivative(p + h / 2 * k1, t + h / 2)
            k3 = derivative(p + h / 2 * k2, t + h / 2)
            k4 = derivative(p + h * k3, t + h)
            p = p + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        codes.append(p)
    return np.stack(codes).astype(codes[0].dtype)
