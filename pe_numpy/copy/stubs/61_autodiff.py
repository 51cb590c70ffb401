"""Exercises of chapter 61: let NumPy differentiate itself.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 61_autodiff.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def numerical_gradient(f, x, h):
    """The gradient by central differences.

    f        function   takes an array of x's shape, gives a number
    x        any shape
    h        number     the step
    returns  of x's shape

    for each entry n of x:
        gradient[n] = (f(x with h added at n) - f(x with h taken away at n)) / (2 h)
    """
    raise NotImplementedError


def softmax_gradient(w, g):
    """The gradient of a loss with respect to the scores of a softmax.

    w        (..., S)   the weights
    g        (..., S)   the gradient with respect to the weights
    returns  (..., S)   of the data's dtype

    for each row:
        mean = sum over j of g[j] w[j]
        result[j] = w[j] (g[j] - mean)
    """
    raise NotImplementedError


def linear_gradient(x, W, g):
    """The gradients of a loss with respect to x, W and b, where y = x W + b.

    x        (..., D)   token vectors
    W        (D, F)
    g        (..., F)   the gradient with respect to y
    returns  (..., D), (D, F), (F,)   of the data's dtype

    dx[d]    = sum over f of g[f] W[d, f]   for each token
    dW[d, f] = sum over all tokens of x[d] g[f]
    db[f]    = sum over all tokens of g[f]
    """
    raise NotImplementedError


def layer_norm_gradient(x, gain, g, eps=1e-5):
    """The gradients of a loss with respect to x, gain and bias of a layer norm.

    x        (..., D)   token vectors
    gain     (D,)
    g        (..., D)   the gradient with respect to the result, gain n + bias
    eps      number     std = sqrt(variance + eps)
    returns  (..., D), (D,), (D,)   of the data's dtype

    for each token:
        n = (x - mean) / std
        h = g gain
        dx[d] = (h[d] - mean of h - n[d] (mean of h n)) / std
    dgain[d] = sum over all tokens of g[d] n[d]
    dbias[d] = sum over all tokens of g[d]
    """
    raise NotImplementedError


def adam_step(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    """One step of Adam for one array.

    p, g     any shape   parameter and gradient
    m, v     that shape  both moments before the step
    step     int         1 for the first
    returns  new p, new m, new v   of the data's dtype

    m = beta_1 m + (1 - beta_1) g
    v = beta_2 v + (1 - beta_2) g^2
    p = p - learning_rate (m / (1 - beta_1^step)) / (sqrt(v / (1 - beta_2^step)) + eps)
    """
    raise NotImplementedError


def clip_gradients(grads, max_norm):
    """Shorten the gradients, all by one factor, to a norm of at most max_norm.

    grads     nested dictionaries of arrays, such as {"W": ..., "norm": {"gain": ..., "bias": ...}}
    max_norm  number
    returns   new dictionaries of the same keys and dtypes, and the norm before clipping

    norm = sqrt(sum of the squares of all numbers of all arrays)
    if norm > max_norm: every array times max_norm / norm
    """
    raise NotImplementedError


def sgd(params, grads, learning_rate, momentum=0.0, state=None):
    """One step of gradient descent with momentum; it is called again with what it returned.

    params, grads  nested dictionaries of arrays, of the same keys and shapes
    learning_rate  number   eta
    momentum       number   mu
    state          the velocities u of the step before, or None at the first: then they are 0
    returns        new params, new state, of the data's dtype; nothing that came in is changed

    for each array:
        u     = mu u - eta g
        theta = theta + u
    """
    raise NotImplementedError


def adamw(
    params,
    grads,
    state,
    learning_rate,
    betas=(0.9, 0.98),
    eps=1e-9,
    weight_decay=0.01,
    decay=None,
):
    """One step of AdamW; it is called again with what it returned.

    params, grads  nested dictionaries of arrays, of the same keys and shapes
    state          {"m": ..., "v": ..., "step": n}: moments like params, 0 before the first step
    decay          function of (path, array) that tells whether it decays; a path is "norm/gain";
                   None: arrays of two axes or more
    returns        new params, new state, of the data's dtype; nothing that came in is changed

    step = step + 1
    for each array:
        m = beta_1 m + (1 - beta_1) g
        v = beta_2 v + (1 - beta_2) g^2
        change = (m / (1 - beta_1^step)) / (sqrt(v / (1 - beta_2^step)) + eps)
        if it decays: change = change + weight_decay theta
        theta = theta - learning_rate change
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# numerical_gradient, 1: np.ndindex(x.shape) runs through all entries.
# numerical_gradient, 2: work on copies of x.

# softmax_gradient, 1: dw_j / ds_m = w_j (delta_jm - w_m): multiply by g_j and sum over j.

# linear_gradient, 1: shapes tell: dx has the shape of x, dW that of W, db that of b.
# linear_gradient, 2: x.reshape(-1, D) puts all tokens of all sequences below each other.

# layer_norm_gradient, 1: check it with numerical_gradient, on the sum of g times the layer norm.
# layer_norm_gradient, 2: means are over the last axis, with keepdims=True; sums over all others.

# adam_step, 1: the moments that are returned are not the corrected ones.
# adam_step, 2: the first step moves each entry by about the learning rate.

# clip_gradients, 1: one function for the sum of squares, one for the product; each calls itself
#   where a value is a dictionary.
# clip_gradients, 2: a Python float as the factor keeps float32.

# sgd, 1: the state that goes back is u itself, a dictionary like params.
# sgd, 2: at the first step mu u is 0.

# adamw, 1: the decay does not pass through the moments: that is what the W stands for.
# adamw, 2: carry the path along while you walk through the dictionaries.
# adamw, 3: the moments that go back are not the corrected ones; the step goes back, too.
