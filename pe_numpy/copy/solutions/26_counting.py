"""Solutions of the exercises of chapter 26."""

import numpy as np


def random_positions(rng, length, max_length):
    return np.sort(rng.choice(max_length, length, replace=False))


def digit_positions(token_ids, digit_ids, offset=0):
    digit = np.isin(token_ids, digit_ids)
    index = np.arange(token_ids.shape[-1])
    last_other = np.maximum.accumulate(np.where(digit, -1, index), axis=-1)
    return np.where(digit, index - last_other + offset, 0)


def laplacian_encoding(adjacency, k, normalized=True):
    degrees = adjacency.sum(axis=1)
    laplacian = np.diag(degrees) - adjacency
    if normalized:
        root = np.sqrt(degrees)
        laplacian = laplacian / (root[:, None] * root)
    vectors = np.linalg.eigh(laplacian)[1][:, 1 : k + 1]
    first = (np.abs(vectors) > 1e-6).argmax(axis=0)
    return vectors * np.sign(vectors[first, np.arange(k)])
