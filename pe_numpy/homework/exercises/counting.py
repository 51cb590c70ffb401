"""Exercises of chapter 26: positions that are drawn, digits, graphs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.absolute.laplacian import eigenvectors, laplacian_encoding
from pe_numpy.absolute.positions import digit_positions, random_positions
from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake


def _draw_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.random.default_rng(1), 4, 4)  # no choice is left
    for seed, length, max_length in ((2, 1, 9), (3, 5, 12), (4, 20, 1000), (5, 7, 8)):
        yield case(np.random.default_rng(seed), length, max_length)
    for length in range(3, 11):
        most = int(rng.integers(length, 90))
        yield case(np.random.default_rng(int(rng.integers(2**32))), length, most)


DRAWN = Exercise(
    "random_positions",
    random_positions,
    _draw_cases,
    (
        Mistake(
            "drawn, not sorted",
            "Sort what was drawn: the order of the tokens is all that is left of their places.",
            26,
            lambda rng, length, max_length: rng.choice(max_length, length, replace=False),
        ),
        Mistake(
            "drawn with repetition",
            "Draw without repetition, or two tokens may share a place.",
            26,
            lambda rng, length, max_length: np.sort(rng.choice(max_length, length)),
        ),
        Mistake(
            "a random start, then one after the other",
            "Each position is drawn: the gaps are to vary, not the start alone.",
            26,
            lambda rng, length, max_length: (
                rng.integers(max_length - length + 1) + np.arange(length)
            ),
        ),
        Mistake(
            "max_length itself drawn, too",
            "Positions run from 0 to max_length - 1: a table of max_length rows must serve them.",
            26,
            lambda rng, length, max_length: np.sort(
                rng.choice(max_length + 1, length, replace=False)
            ),
        ),
        Mistake(
            "counted from 1",
            "Positions run from 0 to max_length - 1.",
            26,
            lambda rng, length, max_length: 1 + random_positions(rng, length, max_length),
        ),
    ),
    chapter=26,
)


def _digit_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([3, 2, 1, 10, 5, 4]), np.arange(10))
    yield case(np.array([11, 1, 2, 3, 10, 4, 5, 11, 9, 9, 9, 0]), np.arange(10))
    yield case(np.array([10, 1, 2, 12, 12, 7]), np.arange(10), offset=7)
    yield case(np.array([[1, 2, 10, 3], [4, 10, 10, 5]]), np.arange(10))
    yield case(rng.integers(0, 6, (2, 3, 12)), np.array([5, 0, 2, 3]), offset=40)


def _in_rows_as_one(tokens, digits, offset=0):
    return digit_positions(tokens.reshape(-1), digits, offset).reshape(tokens.shape)


def _counted_on(tokens, digits, offset=0):
    is_digit = np.isin(tokens, digits)
    return np.where(is_digit, is_digit.cumsum(axis=-1) + offset, 0)


DIGITS = Exercise(
    "digit_positions",
    digit_positions,
    _digit_cases,
    (
        Mistake(
            "digits counted from 0",
            "The first digit has place 1: row 0 belongs to the tokens that are no digits.",
            26,
            lambda tokens, digits, offset=0: (
                digit_positions(tokens, digits, offset) - np.isin(tokens, digits)
            ),
        ),
        Mistake(
            "the offset added to all tokens",
            "The offset shifts digits alone; other tokens stay at 0.",
            26,
            lambda tokens, digits, offset=0: digit_positions(tokens, digits) + offset,
        ),
        Mistake(
            "one count for all numbers",
            "Each number begins again at 1: equal places are to share a row.",
            26,
            _counted_on,
        ),
        Mistake(
            "the index in the text",
            "Count inside the number, not in the text.",
            26,
            lambda tokens, digits, offset=0: np.where(
                np.isin(tokens, digits), np.arange(tokens.shape[-1]) + 1 + offset, 0
            ),
        ),
        Mistake(
            "counted from the end of each number",
            "The first digit that is written has place 1; the numbers themselves are written with "
            "the least significant digit first.",
            26,
            lambda tokens, digits, offset=0: digit_positions(tokens[..., ::-1], digits, offset)[
                ..., ::-1
            ],
        ),
        Mistake(
            "a number that goes on in the next row",
            "Rows of a batch are texts of their own: the end of a row ends its last number.",
            26,
            _in_rows_as_one,
        ),
    ),
    chapter=26,
)


def _path(N):
    return np.eye(N, k=1) + np.eye(N, k=-1)


def _graph_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(_path(3), 1)
    yield case(_path(4), 2, normalized=False)
    for N in (4, 6, 7):
        A = rng.random((N, N)) * (rng.random((N, N)) < 0.6)
        for normalized in (True, False):
            yield case(A + A.T + _path(N), N - 2, normalized=normalized)


def _laplacian(A, normalized):
    degrees = A.sum(axis=1)
    if normalized:
        return np.eye(len(A)) - A / np.sqrt(np.multiply.outer(degrees, degrees))
    return np.diag(degrees) - A


def _of_random_walk(adjacency, k, normalized=True):
    V = laplacian_encoding(adjacency, k, normalized)
    if normalized:
        V = V / np.sqrt(adjacency.sum(axis=1, keepdims=True))
    return V / np.sqrt((V * V).sum(axis=0))


GRAPH = Exercise(
    "laplacian_encoding",
    laplacian_encoding,
    _graph_cases,
    (
        Mistake(
            "the first eigenvector kept",
            "Leave out the first: it is the same for every node, or the root of its degree.",
            26,
            lambda adjacency, k, normalized=True: eigenvectors(_laplacian(adjacency, normalized))[
                :, :k
            ],
        ),
        Mistake(
            "the largest eigenvalues",
            "The smallest eigenvalues after the first: their vectors change slowly along edges.",
            26,
            lambda adjacency, k, normalized=True: eigenvectors(_laplacian(adjacency, normalized))[
                :, : -k - 1 : -1
            ],
        ),
        Mistake(
            "rows read for columns",
            "The eigenvectors are the columns of what eigh returns.",
            26,
            lambda adjacency, k, normalized=True: (
                eigenvectors(_laplacian(adjacency, normalized))[1 : k + 1].T
            ),
        ),
        Mistake(
            "never normalised",
            "If `normalized`, divide each entry of A by the roots of both degrees.",
            26,
            lambda adjacency, k, normalized=True: laplacian_encoding(adjacency, k, False),
        ),
        Mistake(
            "divided by degrees, not by their roots on both sides",
            "I - A / degree is not symmetric, and its eigenvectors are not orthogonal.",
            26,
            _of_random_walk,
        ),
        Mistake(
            "the other sign",
            "The first entry that is not zero is to be positive; eigh promises no sign.",
            26,
            lambda adjacency, k, normalized=True: -laplacian_encoding(adjacency, k, normalized),
        ),
    ),
    chapter=26,
)

EXERCISES = (DRAWN, DIGITS, GRAPH)
