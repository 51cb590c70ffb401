r"""Complex-order embeddings: a word is a wave over positions; and a complex-valued attention.

Source: Wang et al. 2020, "Encoding word order in complex embeddings" (arXiv:1912.12333), section
2.3, equation (5), for each component of the word j at the position pos::

    f(j, pos) = r_j e^(i (omega_j pos + theta_j))

Axes: L positions (or queries), S keys, D model width: the number of complex components.
Symbols: r amplitude, omega angular frequency in radians per position, theta initial phase; i is the
imaginary unit. All three belong to the word and do not depend on its position.
Convention: positive frequencies turn counter-clockwise, as in `rope`. Positions count from 0 (the
paper's listing counts from 1, which theta can absorb).
Differs from the paper: nothing in the embedding. In attention the paper scores a pair by the
modulus of the Hermitian product z of query and key, abs(z) / sqrt(n) (appendix B, equation (14));
`complex_attention` takes the real part of z, which may be negative and is the score of RoPE where
all words share their frequencies. The projections W^Q, W^K, W^V are left to the caller. The
authors' code for text classification (iclr-complex-order/complex-order, commit 4c4ec24) leaves out
the conjugation in z: with shared frequencies its scores depend on the sum of two positions, not on
their difference.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def complex_order(
    amplitude: ArrayLike, frequency: ArrayLike, phase: ArrayLike, positions: ArrayLike
) -> np.ndarray:
    """Let each word turn with its position: r e^(i (omega pos + theta)).

    Parameters
    ----------
    amplitude : (..., L, D) array
        r, the word vector of each token.
    frequency : array that broadcasts to the shape of amplitude
        omega, in radians per position: (..., L, D) if each word has its own, (D,) if all share it.
    phase : array that broadcasts to the shape of amplitude
        theta, in radians; 0 in most of the paper's experiments.
    positions : array that broadcasts to amplitude.shape[:-1]
        pos of each token: (L,), or (B, L) for a batch with padding.

    Returns
    -------
    (..., L, D) complex array: complex64 for float16 and float32 amplitudes, complex128 for float64.

    Raises
    ------
    ValueError
        If one of the others would enlarge the shape of amplitude.

    Notes
    -----
    Source: Wang et al. 2020, equation (5). Their claim 1: if moving a word by n positions is to be
    a factor w(n) that does not depend on where it stood, and the code is to stay bounded, each
    component must have the form z_2 z_1^pos with abs(z_1) <= 1; they fix abs(z_1) = 1. With r = 1,
    theta = 0 and the frequencies of `sinusoidal`, the imaginary part holds its sines and the real
    part its cosines (appendix A). Angles are computed in float64.

    Examples
    --------
    >>> quarter = np.pi / 2
    >>> z = complex_order([[2.0], [2.0], [2.0]], [quarter], 0.0, [0, 1, 2])
    >>> (z.real.round(4) + 0.0).tolist(), (z.imag.round(4) + 0.0).tolist()
    ([[2.0], [0.0], [-2.0]], [[0.0], [2.0], [0.0]])
    """
    r = checks.real_array("complex_order", "amplitude", amplitude, "LD")
    omega = checks.real_array("complex_order", "frequency", frequency)
    theta = checks.real_array("complex_order", "phase", phase)
    pos = checks.position_array("complex_order", "positions", positions)
    checks.fits("complex_order", "frequency", omega.shape, r.shape, "amplitude")
    checks.fits("complex_order", "phase", theta.shape, r.shape, "amplitude")
    checks.fits(
        "complex_order", "positions", pos.shape, r.shape[:-1], "amplitude without its last axis"
    )
    angles = omega.astype(np.float64) * pos[..., None] + theta  # broadcasts to (..., L, D)
    return (r * np.exp(1j * angles)).astype(np.result_type(r, np.complex64))  # (..., L, D)


def complex_attention(
    z_q: ArrayLike, z_k: ArrayLike, z_v: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Attention between complex vectors: softmax(Re(z_q z_k^H) / sqrt(D)) z_v.

    Parameters
    ----------
    z_q : (..., L, D) array
        Queries, complex or real.
    z_k : (..., S, D) array
        Keys. z_k^H is their conjugate transpose.
    z_v : (..., S, Dv) array
        Values; often Dv = D.

    Returns
    -------
    output : (..., L, Dv) complex array
    weights : (..., L, S) real array, rows that sum to 1

    Notes
    -----
    Source: Wang et al. 2020, appendix B, equations (13) and (14), with the real part of the product
    in place of its modulus (see the head of this module). It is the ordinary attention between
    vectors that hold the real parts, then the imaginary parts, with the scale 1/sqrt(D).

    Examples
    --------
    A quarter turn between query and key scores 0, half a turn -1:

    >>> output, weights = complex_attention([[1j]], [[1j], [1.0], [-1j]], [[1j], [0], [0]])
    >>> weights.round(4).tolist(), output.round(4).tolist()
    ([[0.6652, 0.2447, 0.09]], [[0.6652j]])
    """
    z_q = _complex("z_q", z_q, "LD")
    z_k = _complex("z_k", z_k, "SD")
    z_v = _complex("z_v", z_v, "SD")
    if z_q.shape[-1] != z_k.shape[-1] or z_q.shape[-1] == 0:
        raise ValueError(
            "complex_attention: z_q and z_k must have the same width D, at least 1; "
            f"got {z_q.shape[-1]} and {z_k.shape[-1]}"
        )
    if z_k.shape[-2] != z_v.shape[-2]:
        raise ValueError(
            "complex_attention: z_k and z_v must have the same length S; "
            f"got {z_k.shape[-2]} and {z_v.shape[-2]}"
        )
    checks.common_batch(
        "complex_attention", z_q=z_q.shape[:-2], z_k=z_k.shape[:-2], z_v=z_v.shape[:-2]
    )
    product = z_q @ np.swapaxes(z_k, -1, -2).conj()  # (..., L, S)
    scores = product.real / math.sqrt(z_q.shape[-1])
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)  # -inf only where there is no key
    weights = np.exp(scores - top)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ z_v, weights


def _complex(name: str, z: ArrayLike, axes: str) -> np.ndarray:
    z = checks.whole_array("complex_attention", name, z)
    if z.dtype.kind not in "iufc":
        raise ValueError(f"complex_attention: {name} must hold numbers; got dtype {z.dtype}")
    if z.ndim < 2:
        raise ValueError(
            f"complex_attention: {name} must have the axes (..., {', '.join(axes)}); "
            f"got shape {z.shape}"
        )
    return z.astype(np.result_type(z, np.complex64), copy=False)
