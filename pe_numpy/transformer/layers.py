r"""The layers between the attentions: projections, norms, activations, feed-forward, embedding.

Sources: Vaswani et al. 2017, "Attention is all you need" (arXiv:1706.03762), sections 3.3 and 3.4;
Ba et al. 2016, "Layer Normalization" (arXiv:1607.06450), section 3; Zhang and Sennrich 2019, "Root
Mean Square Layer Normalization" (arXiv:1910.07467), section 3; Hendrycks and Gimpel 2016, "GELU"
(arXiv:1606.08415), section 2; Shazeer 2020, "GLU Variants" (arXiv:2002.05202), section 2;
Srivastava et al. 2014, "Dropout" (JMLR 15), sections 4 and 10::

    FFN(x) = max(0, x W_1 + b_1) W_2 + b_2
    layer norm  g (x - mean) / sqrt(variance + eps) + b
    RMS norm    g x / sqrt(mean(x^2) + eps)
    GELU(x) = x Phi(x),   SiLU(x) = x sigmoid(x)

Axes: L tokens, D model width, F feed-forward width, V vocabulary.
Symbols: g is `gain`, b `bias`; Phi is the distribution function of the normal distribution.
Convention: rows are tokens, so a projection is x @ W. Norms work on the last axis, token by token.
Differs from the papers: both norms are printed without eps. Under the root it stands in the code of
layer norm (ryankiros/layer-norm, d415153) and in that of Llama (meta-llama/llama-models,
a9c89c4); the code of RMS norm (bzhangGo/rmsnorm, c6691f2) adds it to the root. Dropout scales what
it keeps while training, so that nothing is scaled at inference ("inverted" dropout).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.dispatch import differentiable


@differentiable
def linear(x: ArrayLike, W: ArrayLike, b: ArrayLike | None = None) -> np.ndarray:
    """Project every token: x W + b.

    Source: Vaswani et al. 2017, section 3.3. All tokens of all sequences meet W in one matrix
    product.

    Parameters
    ----------
    x : (..., D) array
        Token vectors.
    W, b : (D, F) and, optional, (F,) array
        Weights and bias.

    Returns
    -------
    (..., F) array.

    Examples
    --------
    >>> linear([[1.0, 2.0]], [[1.0, 0.0, 3.0], [0.0, 1.0, 4.0]], [0.5, 0.0, 0.0]).tolist()
    [[1.5, 2.0, 11.0]]
    """
    x = checks.real_array("linear", "x", x, "D")
    W = checks.real_array("linear", "W", W)
    if W.ndim != 2 or W.shape[0] != x.shape[-1]:
        raise ValueError(
            f"linear: W must have the axes (D, F) with D = {x.shape[-1]}; got shape {W.shape}"
        )
    shape = (*x.shape[:-1], W.shape[1])
    if x.dtype == W.dtype == np.float16:
        x, W = x.astype(np.float32), W.astype(np.float32)
        return linear(x, W, b).astype(np.float16)
    y = x.reshape(math.prod(shape[:-1]), W.shape[0]) @ W  # one product for all tokens
    if b is not None:
        y += checks.exact_shape("linear", "b", b, W.shape[1:], "(F,)")
    return y.reshape(shape)  # (..., F)


@differentiable
def standardize(x: np.ndarray, eps: float, centre: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Subtract the mean of each token (if `centre`) and divide by the root of its mean square.

    Return the standardized tokens (..., D), and the factor (..., 1) that did it, which the gradient
    needs once more.
    """
    D = x.shape[-1]
    if centre:
        x = x - x.sum(axis=-1, keepdims=True) / D
    scale = 1 / np.sqrt(np.vecdot(x, x)[..., None] / D + eps)  # (..., 1)
    return x * scale, scale


def layer_norm(x: ArrayLike, gain: ArrayLike, bias: ArrayLike, eps: float = 1e-5) -> np.ndarray:
    """Give every token mean 0 and variance 1, then scale and shift: g (x - mean) / std + b.

    Source: Ba et al. 2016, section 3, equation (3). The variance divides by D, not by D - 1, and
    eps stands under the root.

    Parameters
    ----------
    x : (..., D) array
        Token vectors.
    gain, bias : (D,) arrays
        g and b: 1 and 0 before training.
    eps : float
        Added to the variance, so that a constant vector gives 0 and not NaN.

    Returns
    -------
    Array of the shape and dtype of x (float64 for integers; float16 is computed in float32).

    Examples
    --------
    >>> layer_norm([[1.0, 3.0], [10.0, 30.0]], [1.0, 1.0], [0.0, 5.0]).round(3).tolist()
    [[-1.0, 6.0], [-1.0, 6.0]]
    """
    x, gain, work, eps = _norm_input("layer_norm", x, gain, eps)
    bias = checks.exact_shape("layer_norm", "bias", bias, x.shape[-1:], "(D,)")
    normed, _ = standardize(x.astype(work, copy=False), eps)
    result = normed * gain.astype(work, copy=False) + bias.astype(work, copy=False)
    return result.astype(x.dtype, copy=False)


def rms_norm(x: ArrayLike, gain: ArrayLike, eps: float = 1e-6) -> np.ndarray:
    """Give every token a mean square of 1, then scale: g x / sqrt(mean(x^2) + eps).

    Source: Zhang and Sennrich 2019, equation (4); eps as in Llama's code, not as in theirs. It is
    `layer_norm` without the mean and without the bias: equal to it where the mean is 0.

    Parameters
    ----------
    x, gain : as in `layer_norm`
    eps : float
        Added to the mean square.

    Returns
    -------
    Array as of `layer_norm`.

    Examples
    --------
    >>> rms_norm([[1.0, 7.0], [10.0, 70.0]], [1.0, 10.0]).round(3).tolist()
    [[0.2, 14.0], [0.2, 14.0]]
    """
    x, gain, work, eps = _norm_input("rms_norm", x, gain, eps)
    normed, _ = standardize(x.astype(work, copy=False), eps, centre=False)
    return (normed * gain.astype(work, copy=False)).astype(x.dtype, copy=False)


def _norm_input(
    function: str, x: ArrayLike, gain: ArrayLike, eps: float
) -> tuple[np.ndarray, np.ndarray, np.dtype, float]:
    """Check what both norms take; the third is the dtype to compute in."""
    x = checks.real_array(function, "x", x, "D")
    if x.shape[-1] == 0:
        raise ValueError(f"{function}: x must have a width D of at least 1; got shape {x.shape}")
    gain = checks.exact_shape(function, "gain", gain, x.shape[-1:], "(D,)")
    return x, gain, checks.working(x)[0], checks.positive(function, "eps", eps)


@differentiable
def relu(x: ArrayLike) -> np.ndarray:
    """Cut off what is below zero: max(0, x).

    Source: Vaswani et al. 2017, section 3.3, equation (2). Its slope at 0 is taken as 0.

    Parameters
    ----------
    x : array of any shape

    Returns
    -------
    Array of the shape and dtype of x (float64 for integers).

    Examples
    --------
    >>> relu([-2.0, 0.0, 3.0]).tolist()
    [0.0, 0.0, 3.0]
    """
    return np.maximum(checks.real_array("relu", "x", x), 0)


@differentiable
def gelu(x: ArrayLike, approximate: str = "none") -> np.ndarray:
    """Weigh x by the probability that a normal variable stays below it: x Phi(x).

    Source: Hendrycks and Gimpel 2016, section 2: Phi(x) = (1 + erf(x/sqrt(2))) / 2, or
    (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.

    Parameters
    ----------
    x : array of any shape
    approximate : "none" or "tanh"
        Phi itself, to 1e-13; or the paper's approximation, which GPT-2 uses and which is off by up
        to 5e-4.

    Returns
    -------
    Array of the shape and dtype of x (float64 for integers; float16 is computed in float32).

    Examples
    --------
    >>> gelu([-1.0, 0.0, 1.0]).round(4).tolist(), gelu([1.0], "tanh").round(4).tolist()
    ([-0.1587, 0.0, 0.8413], [0.8412])
    """
    x = checks.real_array("gelu", "x", x)
    approximate = checks.choice("gelu", "approximate", approximate, ("none", "tanh"))
    work = x.astype(checks.working(x)[0], copy=False)
    if approximate == "none":
        share = _normal_distribution(work)
    else:
        share = 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (work + 0.044715 * work * work * work)))
    return (work * share).astype(x.dtype, copy=False)


def _normal_distribution(x: np.ndarray) -> np.ndarray:
    """Phi(x), by Taylor's series about the nearest sixteenth a, where `math.erfc` knows Phi.

    The derivatives are Hermite polynomials times the density phi: Phi^(n+1) = (-1)^n He_n phi, with
    He_(n+1) = a He_n - n He_(n-1). With at most 1/32 from x to a, the terms up to h^7 leave an
    error of 1e-15, those up to h^4 one of 1e-9, below what float32 can tell.
    """
    a = np.arange(-9 * 16, 9 * 16 + 1) / 16  # beyond 9, Phi is 0 or 1
    value = np.array([math.erfc(-t / math.sqrt(2)) / 2 for t in a.tolist()])
    density = np.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    density[0], density[-1], value[0], value[-1] = 0, 0, 0, 1
    table, hermite, before = [value], np.ones_like(a), np.zeros_like(a)
    for n in range(7 if x.dtype.itemsize > 4 else 4):
        table.append((-1) ** n * hermite * density / math.factorial(n + 1))
        hermite, before = a * hermite - n * before, hermite
    near = np.clip(x, -9, 9)
    place = np.nan_to_num(np.rint(16 * near)).astype(np.intp)  # the number of the sixteenth
    h = near - (place / 16).astype(x.dtype)
    place += 9 * 16
    result = np.zeros_like(x)
    for term in reversed(table):  # Horner
        result = result * h + term.astype(x.dtype)[place]
    return result


@differentiable
def silu(x: ArrayLike) -> np.ndarray:
    """Weigh x by its own sigmoid: x / (1 + exp(-x)). Also called swish.

    Source: Hendrycks and Gimpel 2016, section 2, which names it; LLaMA's feed-forward network uses
    it with a gate. exp sees only -abs(x), so it never overflows.

    Parameters
    ----------
    x : array of any shape

    Returns
    -------
    Array as of `gelu`.

    Examples
    --------
    >>> silu([-1.0, 0.0, 1.0]).round(4).tolist()
    [-0.2689, 0.0, 0.7311]
    """
    x = checks.real_array("silu", "x", x)
    work = x.astype(checks.working(x)[0], copy=False)
    small = np.exp(-np.abs(work))
    sigmoid = np.where(work < 0, small, 1) / (1 + small)
    return (work * sigmoid).astype(x.dtype, copy=False)


def feed_forward(
    params: Mapping[str, ArrayLike], x: ArrayLike, activation: str = "relu"
) -> np.ndarray:
    """Two projections with an activation between them: f(x W_1 + b_1) W_2 + b_2.

    Source: Vaswani et al. 2017, section 3.3, equation (2); Shazeer 2020, equation (6), for the
    gate: with "silu" it is SwiGLU, with "gelu" GEGLU, with "relu" ReGLU.

    Parameters
    ----------
    params : dictionary
        "W_1" (D, F), "W_2" (F, D) and, if there are biases, "b_1" (F,), "b_2" (D,). With "W_gate"
        (D, F) the activation is a gate: (f(x W_gate) * (x W_1 + b_1)) W_2 + b_2.
    x : (..., D) array
        Token vectors.
    activation : "relu", "gelu", "gelu_tanh" or "silu"
        f.

    Returns
    -------
    (..., D) array.

    Examples
    --------
    >>> params = {"W_1": [[1.0, -1.0]], "W_2": [[1.0], [1.0]]}
    >>> feed_forward(params, [[3.0], [-2.0]]).tolist()  # max(0, x) + max(0, -x)
    [[3.0], [2.0]]
    """
    name = "feed_forward"
    missing = [key for key in ("W_1", "W_2") if key not in params]
    if missing:
        raise ValueError(
            f"{name}: params must hold 'W_1' and 'W_2'; got {sorted(params)}, without {missing}"
        )
    function = ACTIVATIONS[checks.choice(name, "activation", activation, tuple(ACTIVATIONS))]
    hidden = linear(x, params["W_1"], params.get("b_1"))  # (..., F)
    if "W_gate" in params:
        hidden = function(linear(x, params["W_gate"])) * hidden
    else:
        hidden = function(hidden)
    return linear(hidden, params["W_2"], params.get("b_2"))  # (..., D)


ACTIVATIONS = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": lambda x: gelu(x, "tanh"),
    "silu": silu,
}


def embed_tokens(table: ArrayLike, tokens: ArrayLike, scale: float | None = None) -> np.ndarray:
    """Look up the vector of every token, times sqrt(D): sqrt(D) E_token.

    Source: Vaswani et al. 2017, section 3.4. The factor makes up for an embedding that is shared
    with the output layer, and so has small entries, beside position codes of the size of 1.

    Parameters
    ----------
    table : (V, D) array
        The embedding E.
    tokens : array of whole numbers, of any shape
        Tokens, from 0 to V - 1.
    scale : float, optional
        The factor; sqrt(D) by default, 1 for models that have none.

    Returns
    -------
    (*tokens.shape, D) array of the table's dtype (float64 for integers).

    Examples
    --------
    >>> embed_tokens([[1.0, 2.0, 3.0, 4.0], [0.5, 0.0, 0.0, 0.0]], [1, 1, 0])[:, 0].tolist()
    [1.0, 1.0, 2.0]
    """
    name = "embed_tokens"
    table = checks.real_array(name, "table", table)
    if table.ndim != 2:
        raise ValueError(f"{name}: table must have the axes (V, D); got shape {table.shape}")
    V, D = table.shape
    tokens = checks.whole_numbers(name, "tokens", tokens)
    outside = tokens[(tokens < 0) | (tokens >= V)]
    if outside.size:
        raise ValueError(f"{name}: tokens must be from 0 to V - 1 = {V - 1}; got {outside[0]}")
    factor = math.sqrt(D) if scale is None else checks.number(name, "scale", scale)
    vectors = table[tokens]  # (..., D)
    return vectors if factor == 1 else vectors * factor


def dropout(x: ArrayLike, rate: float, rng: np.random.Generator | None = None) -> np.ndarray:
    """Set a share of all components to zero, at random, and scale up the rest: x mask / (1 - rate).

    Source: Srivastava et al. 2014, section 10 (which scales while training), so that the expected
    value of every component stays what it was.

    Parameters
    ----------
    x : array of any shape
    rate : float
        The share to drop, from 0 to below 1.
    rng : numpy.random.Generator, optional
        Where the randomness comes from; without one nothing is dropped, as at inference.

    Returns
    -------
    Array of the shape and dtype of x (float64 for integers).

    Examples
    --------
    >>> dropout([1.0, 1.0, 1.0, 1.0, 1.0], 0.5, np.random.default_rng(0)).tolist()
    [2.0, 2.0, 2.0, 0.0, 0.0]
    >>> dropout([1.0, 2.0], 0.5).tolist()
    [1.0, 2.0]
    """
    x = checks.real_array("dropout", "x", x)
    rate = checks.share("dropout", "rate", rate)
    if rng is not None:
        checks.generator("dropout", "rng", rng)
    if rng is None or rate == 0:
        return x
    kept = rng.random(x.shape, dtype=np.float32) >= rate
    return x * (kept / (1 - rate)).astype(x.dtype)
