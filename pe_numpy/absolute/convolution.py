r"""Convolution over positions: the code that nobody added, and that zero padding lets in.

Source: Islam et al. 2020, "How Much Position Information Do Convolutional Neural Networks Encode?"
(arXiv:2001.08248), which finds that networks read positions from the zeros around an image. The
convolution itself, for a kernel w of n = 2m + 1 weights, is::

    y_i = sum over j = -m .. m of w_(j + m) x_(i + j)

Axes: L positions, the last axis here; n weights of a kernel.
Symbols: i is the position that is computed, i + j the one that is read.
Convention: cross-correlation, as PyTorch and TensorFlow have it: the kernel is not turned round, so
its first weight meets the position before i. Outside 0 .. L-1 x is 0 ("zero" padding) or starts
again from the other end ("circular").
Differs from the paper: one axis in place of two, and no training. A constant input and one kernel
suffice: whatever differs between the positions of the output came from the border.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks


def convolve(x: ArrayLike, kernel: ArrayLike, padding: str = "zero") -> np.ndarray:
    """Weigh each position and its neighbours by a kernel: y_i = sum_j w_(j + m) x_(i + j).

    Parameters
    ----------
    x : (..., L) array
        A signal over L positions; for embeddings (L, D) give their transpose.
    kernel : (n,) array
        Weights w, odd in number, so that m of them stand on either side of the middle.
    padding : "zero" or "circular"
        What lies beyond the border: zeros, or the other end.

    Returns
    -------
    Array of the shape and dtype of x (float64 for integers; float16 is computed in float32).

    Notes
    -----
    Source: Islam et al. 2020. With circular padding a shift of the input shifts the output, so a
    constant stays constant, whatever the kernel. After c layers zero padding can differ from that
    at the first and the last c m positions, and at no others. On a constant a symmetric kernel
    changes both ends alike, so it betrays how far the border is, but not which border; another
    kernel may tell them apart.

    Examples
    --------
    >>> convolve([1, 1, 1, 1], [0.2, 0.5, 0.3]).round(4).tolist()
    [0.8, 1.0, 1.0, 0.7]
    >>> convolve([1, 1, 1, 1], [0.2, 0.5, 0.3], padding="circular").round(4).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    x = checks.real_array("convolve", "x", x, "L")
    kernel = checks.real_array("convolve", "kernel", kernel)
    if kernel.ndim != 1 or kernel.size % 2 == 0:
        raise ValueError(
            "convolve: kernel must be one axis of an odd number of weights, so that it has a "
            f"middle; got shape {kernel.shape}"
        )
    padding = checks.choice("convolve", "padding", padding, ("zero", "circular"))
    L, m = x.shape[-1], kernel.size // 2
    work = np.float32 if x.dtype == np.float16 else x.dtype
    widths = [(0, 0)] * (x.ndim - 1) + [(m, m)]
    padded = np.pad(
        x.astype(work, copy=False),
        widths,
        mode="wrap" if padding == "circular" and L else "constant",
    )  # (..., L + 2m)
    y = sum(w * padded[..., n : n + L] for n, w in enumerate(kernel.astype(work)))  # (..., L)
    return y.astype(x.dtype, copy=False)
