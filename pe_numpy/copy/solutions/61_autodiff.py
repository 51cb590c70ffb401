"""Solutions of the exercises of chapter 61."""

import math

import numpy as np


def numerical_gradient(f, x, h):
    gradient = np.zeros_like(x)
    for n in np.ndindex(x.shape):
        ahead, back = x.copy(), x.copy()
        ahead[n] += h
        back[n] -= h
        gradient[n] = (f(ahead) - f(back)) / (2 * h)
    return gradient


def softmax_gradient(w, g):
    return w * (g - (g * w).sum(axis=-1, keepdims=True))


def linear_gradient(x, W, g):
    rows, changes = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
    return g @ W.T, rows.T @ changes, changes.sum(axis=0)


def layer_norm_gradient(x, gain, g, eps=1e-5):
    def mean(y):
        return y.mean(axis=-1, keepdims=True)

    std = np.sqrt(x.var(axis=-1, keepdims=True) + x.dtype.type(eps))
    n, h = (x - mean(x)) / std, g * gain
    tokens = tuple(range(x.ndim - 1))
    return (h - mean(h) - n * mean(h * n)) / std, (g * n).sum(axis=tokens), g.sum(axis=tokens)


def adam_step(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    m = betas[0] * m + (1 - betas[0]) * g
    v = betas[1] * v + (1 - betas[1]) * g * g
    mean, power = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    return p - learning_rate * mean / (np.sqrt(power) + eps), m, v


def tree_map(f, tree, *others):
    """f(leaf, its partners in the other trees), leaf by leaf."""
    if not isinstance(tree, dict):
        return f(tree, *others)
    return {key: tree_map(f, tree[key], *(other[key] for other in others)) for key in tree}


def sum_of_squares(tree):
    if isinstance(tree, dict):
        return sum(map(sum_of_squares, tree.values()))
    return float((tree.astype(np.float64) ** 2).sum())


def clip_gradients(grads, max_norm):
    norm = math.sqrt(sum_of_squares(grads))
    factor = max_norm / norm if norm > max_norm else 1.0  # never longer
    return tree_map(lambda g: g * factor, grads), norm


def sgd(params, grads, learning_rate, momentum=0.0, state=None):
    if state is None:
        state = tree_map(np.zeros_like, params)
    state = tree_map(lambda u, g: momentum * u - learning_rate * g, state, grads)
    return tree_map(lambda p, u: p + u, params, state), state


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
    def decays(p, path):
        if isinstance(p, dict):
            return {key: decays(p[key], [*path, key]) for key in p}
        return weight_decay if (p.ndim > 1 if decay is None else decay("/".join(path), p)) else 0.0

    def moved(p, m, v, share):
        root = np.sqrt(v / (1 - betas[1] ** step))
        change = m / (1 - betas[0] ** step) / (root + eps)
        return p - learning_rate * (change + share * p)  # the decay outside the moments

    step, shares = state["step"] + 1, decays(params, [])
    m = tree_map(lambda m, g: betas[0] * m + (1 - betas[0]) * g, state["m"], grads)
    v = tree_map(lambda v, g: betas[1] * v + (1 - betas[1]) * g * g, state["v"], grads)
    return tree_map(moved, params, m, v, shares), {"m": m, "v": v, "step": step}
