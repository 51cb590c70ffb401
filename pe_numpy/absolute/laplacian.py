r"""Laplacian encoding: places in a graph, where there is no line to count along.

Source: Dwivedi and Bresson 2020, "A generalization of Transformer networks to graphs"
(arXiv:2012.09699)::

    L = I - d^(-1/2) A d^(-1/2),   L v_k = lambda_k v_k,   lambda_0 <= lambda_1 <= ...

    node n gets (v_1[n], ..., v_k[n])

Axes: N nodes, k eigenvectors.
Symbols: A is the adjacency matrix, d the diagonal matrix of the degrees, its row sums; d - A is
the combinatorial Laplacian, L the normalised one.
Convention: v_0 is left out: in a connected graph sqrt(d), or the constant of d - A. A graph of
several pieces (for L: with edges) has one such vector for each: v_0 is that of the first piece, and
those of the others come next. All vectors have length 1. An eigenvector has no sign and a multiple
eigenvalue no basis of its own, and what a library returns depends on the machine. Here the first
node whose part is not zero has a positive one, and of a multiple eigenvalue's vectors only the
first reaches the first node that any of them reaches, only the first two the second node that adds
a direction, and so on.
Differs from the paper: that convention (the authors keep what comes, and flip signs at random in
training); `eigh`, which gives orthogonal vectors, for the `eig` of their code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def laplacian_encoding(adjacency: ArrayLike, k: int, normalized: bool = True) -> np.ndarray:
    """Eigenvectors v_1 .. v_k of a graph's Laplacian: a code for each node.

    Parameters
    ----------
    adjacency : (N, N) array
        Weights A of the edges, at least 0 and the same in both directions.
    k : int
        Number of eigenvectors, below N.
    normalized : bool
        I - d^(-1/2) A d^(-1/2), or else d - A.

    Returns
    -------
    (N, k) float64 array; its columns are orthonormal, of ascending eigenvalues, and their signs are
    fixed as the module says.

    Notes
    -----
    Source: Dwivedi and Bresson 2020; graphdeeplearning/graphtransformer (commit c9cd493),
    `data/molecules.py`. As there, a node without edges has a row of the identity.

    Examples
    --------
    >>> path = np.eye(4, k=1) + np.eye(4, k=-1)
    >>> laplacian_encoding(path, 1, normalized=False)[:, 0].round(6).tolist()
    [0.653281, 0.270598, -0.270598, -0.653281]
    """
    name = "laplacian_encoding"
    A = checks.real_array(name, "adjacency", adjacency, "NN").astype(np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"{name}: adjacency must have the axes (N, N); got shape {A.shape}")
    if not (np.isfinite(A).all() and (A >= 0).all() and (A == A.T).all()):
        raise ValueError(
            f"{name}: adjacency must be finite, at least 0 and symmetric, since a directed graph "
            "may have no orthogonal eigenvectors; make it so with np.maximum(A, A.T)"
        )
    k = checks.integer(name, "k", k)
    if k >= len(A):
        raise ValueError(f"{name}: k must be below the number of nodes; got {k} of {len(A)}")
    normalized = checks.flag(name, "normalized", normalized)
    degrees = A.sum(axis=1)  # (N,)
    laplacian = np.diag(degrees) - A
    if normalized:
        root = np.sqrt(np.where(degrees > 0, degrees, 1))
        laplacian = np.eye(len(A)) - A / np.multiply.outer(root, root)
    return eigenvectors(laplacian)[:, 1 : k + 1]  # (N, k)


def eigenvectors(matrix: np.ndarray) -> np.ndarray:
    """Columns (N, N) of ascending eigenvalues, the same ones on every machine."""
    values, vectors = np.linalg.eigh(matrix)  # (N,), (N, N)
    ends = np.flatnonzero(np.diff(values) > 1e-9 * values[-1]) + 1  # where the next value begins
    spaces = [_fixed(space) for space in np.split(vectors, ends, axis=1)]
    return np.concatenate(spaces, axis=1)


def _fixed(space: np.ndarray) -> np.ndarray:
    """Choose the basis of an eigenspace (N, m) that the nodes choose, in their order."""
    basis: list[np.ndarray] = []  # directions (m,), each the new one of some node
    for node in space:
        new = node - sum((node @ b * b for b in basis), np.zeros(len(node)))
        size = np.linalg.norm(new)
        if size > 1e-6:
            basis.append(new / size)
        if len(basis) == len(node):
            break
    return space @ np.stack(basis, axis=1)
