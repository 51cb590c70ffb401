"""Norms, activations, embeddings and the feed-forward network."""
# ruff: noqa: F811

import math

import numpy as np

from answers import wrong


@wrong("unbiased variance")
def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True, ddof=1)
    return gain * (x - mean) / np.sqrt(var + eps) + bias


@wrong("unbiased deviation, and epsilon outside the root: the Annotated Transformer")
def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    std = x.std(-1, keepdims=True, ddof=1)
    return gain * (x - mean) / (std + eps) + bias


@wrong("epsilon outside the root")
def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    return gain * (x - mean) / (x.std(-1, keepdims=True) + eps) + bias


@wrong("no epsilon")
def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    return gain * (x - mean) / x.std(-1, keepdims=True) + bias


@wrong("epsilon is ignored: 1e-5")
def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5)) + bias


@wrong("over the tokens: the first of the two last axes")
def layer_norm(x, gain, bias, eps=1e-5):
    mean, var = x.mean(-2, keepdims=True), x.var(-2, keepdims=True)
    return gain * (x - mean) / np.sqrt(var + eps) + bias


@wrong("over everything")
def layer_norm(x, gain, bias, eps=1e-5):
    return gain * (x - x.mean()) / np.sqrt(x.var() + eps) + bias


@wrong("divided by the variance, not by its root")
def layer_norm(x, gain, bias, eps=1e-5):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return gain * (x - mean) / (var + eps) + bias


@wrong("the bias is left out")
def layer_norm(x, gain, bias, eps=1e-5):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(var + eps)


@wrong("the bias is added before the gain")
def layer_norm(x, gain, bias, eps=1e-5):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return gain * ((x - mean) / np.sqrt(var + eps) + bias)


@wrong("the gain is 1 + g")
def layer_norm(x, gain, bias, eps=1e-5):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (1 + gain) * (x - mean) / np.sqrt(var + eps) + bias


@wrong("the mean is taken off")
def rms_norm(x, gain, eps=1e-6):
    x = x - x.mean(-1, keepdims=True)
    return gain * x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


@wrong("epsilon outside the root")
def rms_norm(x, gain, eps=1e-6):
    return gain * x / (np.sqrt((x * x).mean(-1, keepdims=True)) + eps)


@wrong("the sum for the mean of the squares")
def rms_norm(x, gain, eps=1e-6):
    return gain * x / np.sqrt((x * x).sum(-1, keepdims=True) + eps)


@wrong("gain 1 + g, as in Gemma")
def rms_norm(x, gain, eps=1e-6):
    return (1 + gain) * x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


@wrong("epsilon is ignored")
def rms_norm(x, gain, eps=1e-6):
    return gain * x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-6))


@wrong("the gain is left out")
def rms_norm(x, gain, eps=1e-6):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


@wrong("always the approximation")
def gelu(x, approximate="none"):
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@wrong("the option is ignored: always exact")
def gelu(x, approximate="none"):
    phi = np.vectorize(lambda t: 0.5 * (1 + math.erf(t / math.sqrt(2))), otypes=[float])
    return (x * phi(x)).astype(x.dtype)


@wrong("erf without the root of 2")
def gelu(x, approximate="none"):
    if approximate == "tanh":
        return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    phi = np.vectorize(lambda t: 0.5 * (1 + math.erf(t)), otypes=[float])
    return (x * phi(x)).astype(x.dtype)


@wrong("x sigmoid(1.702 x), the other approximation")
def gelu(x, approximate="none"):
    return x / (1 + np.exp(-1.702 * x))


@wrong("x squared for x cubed")
def gelu(x, approximate="none"):
    if approximate == "tanh":
        return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**2)))
    phi = np.vectorize(lambda t: 0.5 * (1 + math.erf(t / math.sqrt(2))), otypes=[float])
    return (x * phi(x)).astype(x.dtype)


def act(x, name):
    if name == "relu":
        return np.maximum(x, 0)
    if name == "silu":
        return x / (1 + np.exp(-x))
    if name == "gelu_tanh":
        return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    phi = np.vectorize(lambda t: 0.5 * (1 + math.erf(t / math.sqrt(2))), otypes=[float])
    return (x * phi(x)).astype(x.dtype)


@wrong("a residual connection inside")
def feed_forward(params, x, activation="relu"):
    hidden = act(x @ params["W_1"] + params.get("b_1", 0), activation)
    return x + hidden @ params["W_2"] + params.get("b_2", 0)


@wrong("the activation comes after both projections")
def feed_forward(params, x, activation="relu"):
    hidden = x @ params["W_1"] + params.get("b_1", 0)
    return act(hidden @ params["W_2"] + params.get("b_2", 0), activation)


@wrong("no activation")
def feed_forward(params, x, activation="relu"):
    return (x @ params["W_1"] + params.get("b_1", 0)) @ params["W_2"] + params.get("b_2", 0)


@wrong("the first bias is left out")
def feed_forward(params, x, activation="relu"):
    return act(x @ params["W_1"], activation) @ params["W_2"] + params.get("b_2", 0)


@wrong("both biases are left out")
def feed_forward(params, x, activation="relu"):
    return act(x @ params["W_1"], activation) @ params["W_2"]


@wrong("not multiplied with sqrt(D)")
def embed_tokens(table, tokens, scale=None):
    return table[tokens] * (1 if scale is None else scale)


@wrong("divided by sqrt(D)")
def embed_tokens(table, tokens, scale=None):
    return table[tokens] * (1 / math.sqrt(table.shape[-1]) if scale is None else scale)


@wrong("the scale is ignored")
def embed_tokens(table, tokens, scale=None):
    return table[tokens] * math.sqrt(table.shape[-1])


@wrong("multiplied with sqrt(V)")
def embed_tokens(table, tokens, scale=None):
    return table[tokens] * (math.sqrt(table.shape[0]) if scale is None else scale)


def normed(x, gain, bias):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(var + 1e-5) + bias


@wrong("post-norm")
def pre_norm_block(x, gain, bias, W):
    return normed(x + np.maximum(x @ W, 0), gain, bias)


@wrong("no residual connection")
def pre_norm_block(x, gain, bias, W):
    return np.maximum(normed(x, gain, bias) @ W, 0)


@wrong("the normed tokens are what is added to")
def pre_norm_block(x, gain, bias, W):
    x = normed(x, gain, bias)
    return x + np.maximum(x @ W, 0)
