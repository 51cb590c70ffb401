"""Exercises of chapter 26: count something else.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 26_counting.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def random_positions(rng, length, max_length):
    """Draw positions without repetition and sort them.

    rng         numpy.random.Generator
    length      int    L
    max_length  int    N, at least L
    returns     (L,)   whole numbers

    draw L different numbers from 0 .. N-1 by rng.choice, called once
    put them in ascending order
    """
    raise NotImplementedError


def digit_positions(token_ids, digit_ids, offset=0):
    """Count each digit inside its own number.

    token_ids  (..., L)  whole numbers
    digit_ids  (M,)      the tokens that are digits
    offset     int
    returns    (..., L)  whole numbers

    for each row of tokens:
        count = 0
        for each token:
            if it is a digit:  count = count + 1;  its position = count + offset
            else:              count = 0;          its position = 0
    """
    raise NotImplementedError


def laplacian_encoding(adjacency, k, normalized=True):
    """Eigenvectors of a graph's Laplacian: k numbers for each node.

    adjacency  (N, N)  symmetric, no entry below 0, each node with an edge
    k          int     below N
    returns    (N, k)

    degree[i] = sum over j of adjacency[i, j]
    for each pair (i, j):
        L[i, j] = (1 if i = j, else 0) - adjacency[i, j] / sqrt(degree[i] degree[j])
        or, not normalized:
        L[i, j] = (degree[i] if i = j, else 0) - adjacency[i, j]
    column c, from 0 to k-1, is the eigenvector of the (c+2)-th smallest eigenvalue, of length 1;
    its first entry that is above 1e-6 in size is positive

    (No eigenvalue that is tried comes twice.)
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# random_positions, 1: rng.choice has an argument against repetition.

# digit_positions, 1: np.isin says which tokens are digits.
# digit_positions, 2: a digit's place is its index minus that of the last token that is none.
# digit_positions, 3: np.maximum.accumulate carries the last such index along.

# laplacian_encoding, 1: np.linalg.eigh gives eigenvalues in ascending order.
# laplacian_encoding, 2: the eigenvectors are its columns; column 0 is left out.
# laplacian_encoding, 3: argmax of truth values finds the first that is true.
