"""Exercises of chapter 60: build the Transformer block.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 60_layers.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def linear(x, W, b=None):
    """Project every token.

    x        (..., D)
    W        (D, F)
    b        (F,), or None: there is no bias
    returns  (..., F)   of x's dtype

    for each token and each f:
        y[f] = sum over d of x[d] W[d, f], + b[f]
    """
    raise NotImplementedError


def relu(x):
    """Cut off what is below zero.

    x        any shape
    returns  of x's shape and dtype

    for each number: x where x is above 0, else 0
    """
    raise NotImplementedError


def layer_norm(x, gain, bias, eps=1e-5):
    """Give every token mean 0 and variance 1, then scale and shift.

    x           (..., D)   token vectors
    gain, bias  (D,)
    returns     (..., D)   of x's dtype

    for each token:
        mean = sum over d of x[d] / D
        variance = sum over d of (x[d] - mean)^2 / D
        y[d] = gain[d] (x[d] - mean) / sqrt(variance + eps) + bias[d]
    """
    raise NotImplementedError


def rms_norm(x, gain, eps=1e-6):
    """Give every token a mean square of 1, then scale.

    x        (..., D)
    gain     (D,)
    returns  (..., D)   of x's dtype

    for each token:
        square = sum over d of x[d]^2 / D
        y[d] = gain[d] x[d] / sqrt(square + eps)
    """
    raise NotImplementedError


def feed_forward(params, x, activation="relu"):
    """Two projections with an activation f between them.

    params      dictionary: W_1 (D, F), W_2 (F, D) and, where there are biases, b_1 (F,), b_2 (D,)
    x           (..., D)
    activation  "relu", "gelu", "gelu_tanh" or "silu": f, as written here; gelu_tanh is gelu
                with approximate="tanh"
    returns     (..., D)   of the data's dtype

    hidden = f(x W_1 + b_1)
    result = hidden W_2 + b_2
    """
    raise NotImplementedError


def gelu(x, approximate="none"):
    """Weigh x by the probability that a normal variable stays below it.

    x            any shape
    approximate  "none" or "tanh"
    returns      of x's shape and dtype

    none: x (1 + erf(x / sqrt(2))) / 2
    tanh: x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
    """
    raise NotImplementedError


def embed_tokens(table, tokens, scale=None):
    """The vector of every token, times sqrt(D).

    table    (V, D)     the embedding
    tokens   any shape  whole numbers from 0 to V-1
    scale    number     sqrt(D) if none is given
    returns  (*tokens.shape, D)   of the table's dtype

    for each token: scale * table[token]
    """
    raise NotImplementedError


def pre_norm_block(x, gain, bias, W):
    """A pre-norm block whose sublayer is max(0, x W).

    x           (..., L, D)
    gain, bias  (D,)     of the norm, with eps = 1e-5
    W           (D, D)
    returns     (..., L, D)   of the data's dtype

    normed = layer norm of x
    result = x + max(0, normed W)
    """
    raise NotImplementedError


def silu(x):
    """Weigh x by its own sigmoid: x / (1 + exp(-x)).

    x        any shape
    returns  of x's shape and dtype; no NaN, however large x is

    for each number: x times sigmoid(x), which is 1 / (1 + exp(-x))
    """
    raise NotImplementedError


def multi_head_attention(params, x, source, n_heads, mask=None):
    """Multi-head attention: Concat(head_1 ... head_H) W_o.

    params   dictionary with W_q (D, H K), W_k and W_v (D, G K), W_o (H K, D) and, where there are
             biases, b_q, b_k, b_v, b_o. There are G groups of keys and values, and G
             divides H; G = H is the ordinary case
    x        (B, L, D)   what asks: queries are made from it
    source   (B, S, D)   what answers: keys and values are made from it
    n_heads  int         H
    mask     booleans that broadcast to (B, H, L, S), or None: True = may attend
    returns  output (B, L, D), weights (B, H, L, S); both of the data's dtype

    q = x W_q + b_q;  k, v = source W_k + b_k, source W_v + b_v
    head h has the components h K .. h K + K - 1; query head h reads key head h G // H
    for each head h:
        scores  = q_h k_h^T / sqrt(K)
        weights = softmax over the keys that may be attended to (0 for all, if there are none)
        mixed_h = weights v_h
    output = all mixed_h, side by side, times W_o, + b_o
    """
    raise NotImplementedError


def causal_rope_attention(params, x, n_heads):
    """Causal multi-head attention with RoPE: the homework of many courses, in one function.

    params   dictionary with W_q, W_k, W_v, W_o, each (D, D); no biases
    x        (B, L, D)   the token at index l has position l
    n_heads  int         H, so that K = D / H is even
    returns  (B, L, D)   float64, as x is

    q, k, v = x W_q, x W_k, x W_v
    head h has the components h K .. h K + K - 1
    for each head h:
        rotate each pair of components 2i and 2i+1 of q_h and k_h, not of v_h, by the angle
            position * 10000^(-2 i / K)
        scores  = q_h k_h^T / sqrt(K),   -inf where the key comes after the query
        weights = softmax of the scores over the keys
        mixed_h = weights v_h
    output = all mixed_h, side by side, times W_o
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# linear, 1: @ multiplies the last axis of x with the first of W, whatever stands before.

# relu, 1: np.maximum compares number by number; np.max gives one number.

# layer_norm, 1: the last axis, with keepdims=True.
# layer_norm, 2: eps stands under the root; x.var divides by D already.

# rms_norm, 1: no mean is subtracted.
# rms_norm, 2: (x * x).mean(axis=-1, keepdims=True); eps is added before the root.

# feed_forward, 1: params.get("b_1", 0) is 0 where there is no bias.
# feed_forward, 2: the residual connection is not part of it.
# feed_forward, 3: write relu, gelu and silu first; a dictionary finds them by their names.

# gelu, 1: math.erf knows one number: np.vectorize, or a loop.
# gelu, 2: cast the result to x.dtype.

# embed_tokens, 1: an array of whole numbers may be an index.
# embed_tokens, 2: math.sqrt keeps float32.

# pre_norm_block, 1: nothing stands on the residual path.
# pre_norm_block, 2: write layer_norm first.

# silu, 1: 1 / (1 + exp(-x)) is 0 where exp overflows; exp(x) / (1 + exp(x)) is NaN there.

# multi_head_attention, 1: reshape to (B, L, H, K), then exchange the axes of tokens and heads.
# multi_head_attention, 2: K is the width of W_q over H; with it, W_k tells G.
# multi_head_attention, 3: np.repeat along the heads gives each query head its key head.
# multi_head_attention, 4: the largest score of a row of only -inf is -inf: subtract 0 there.

# causal_rope_attention, 1: reshape to (B, L, H, K), then exchange the axes of tokens and heads.
# causal_rope_attention, 2: angles are an array (L, K/2), the same for all sequences and heads.
# causal_rope_attention, 3: change the last token: no earlier output may change.
