"""Solutions of the exercises of chapter 70."""

import numpy as np


def rank2_rotation(a, b, n):
    dtype = np.result_type(a, b)
    a, b = a.astype(float), b.astype(float)
    A = np.outer(a, b) - np.outer(b, a)
    s = np.sqrt((A * A).sum() / 2)  # the area, without a difference of large numbers
    n = np.asarray(n, float)[..., None, None]
    sine = n * np.sinc(n * s / np.pi)
    versed = n**2 / 2 * np.sinc(n * s / (2 * np.pi)) ** 2
    return (np.eye(len(a)) + sine * A + versed * (A @ A)).astype(dtype)


def additive_lift(q, k, slope):
    K, slope = q.shape[-1], np.asarray(slope)
    lifted = []
    for x, end in ((q, (1, 0)), (k, (0, 1))):
        ends = np.broadcast_to(np.array(end, x.dtype), (*x.shape[:-1], 2))
        lifted.append(np.concatenate([x, ends], axis=-1))
    A = np.zeros((*slope.shape, K + 2, K + 2), q.dtype)
    A[..., K + 1, K] = -np.sqrt(K) * slope
    return (*lifted, A)
