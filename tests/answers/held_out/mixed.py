"""Two mistakes or three in one answer, by authors of all kinds."""

import math

import numpy as np
from answers.apart import case, wrong

OUTER = np.subtract.outer


def softmax(x, axis=-1):
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0).astype(x.dtype)
    e = np.exp(x - top)
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, np.ones_like(total), total)


# ---- sinusoids -----------------------------------------------------------------------------------


@wrong(
    "sinusoidal",
    "a tutorial as it stands: a length for positions, always concatenated, base 10000 for good",
    ("a length", "number of positions", "layout", "concatenat", "base", "argument"),
    lambda draw: case(np.array([2.0, 5.0, 9.0]), 8),
)
def positional_encoding(length, depth):
    depth = depth / 2
    positions = np.arange(length)[:, np.newaxis]
    depths = np.arange(depth)[np.newaxis, :] / depth
    angle_rates = 1 / (10000**depths)
    angle_rads = positions * angle_rates
    return np.concatenate([np.sin(angle_rads), np.cos(angle_rads)], axis=-1)


@wrong(
    "sinusoidal",
    "base 1000 as the default, and the cosine comes before the sine",
    ("1000", "1,000", "base", "cosine", "exchang", "swap"),
    lambda draw: case(np.arange(4), 8),
)
def pe(positions, d_model, base=1000.0, layout="interleaved"):
    angles = np.multiply.outer(positions, base ** (-np.arange(0, d_model, 2) / d_model))
    pair = (np.cos(angles), np.sin(angles))
    if layout == "concatenated":
        return np.concatenate(pair, axis=-1)
    return np.stack(pair, axis=-1).reshape(*angles.shape[:-1], d_model)


@wrong(
    "sinusoidal",
    "the exponent is i/d, not 2i/d, and the two layouts are exchanged",
    ("exponent", "i/d", "layout", "interleav", "concatenat"),
    lambda draw: case(np.arange(4), 8),
)
def sinusoid_table(positions, d_model, base=10000.0, layout="interleaved"):
    i = np.arange(d_model // 2)
    angles = np.asarray(positions)[..., None] / base ** (i / d_model)
    out = np.empty((*angles.shape[:-1], d_model))
    if layout == "interleaved":
        out[..., : d_model // 2], out[..., d_model // 2 :] = np.sin(angles), np.cos(angles)
    else:
        out[..., 0::2], out[..., 1::2] = np.sin(angles), np.cos(angles)
    return out


@wrong(
    "sinusoidal",
    "log10 where the natural logarithm belongs, and the codes are float32",
    ("log10", "natural", "logarithm", "dtype", "float32", "base e", "frequenc"),
    lambda draw: case(np.arange(4), 8),
)
def sinusoidal_log(positions, d_model, base=10000.0, layout="interleaved"):
    div_term = np.exp(np.arange(0, d_model, 2) * -(np.log10(base) / d_model))
    angle = np.asarray(positions)[..., None] * div_term
    axis = -2 if layout == "concatenated" else -1
    code = np.stack([np.sin(angle), np.cos(angle)], axis=axis)
    return code.reshape(*angle.shape[:-1], d_model).astype(np.float32)


# ---- softmax, attention --------------------------------------------------------------------------


@wrong(
    "softmax",
    "no maximum, and the axis is ignored: always the last",
    ("overflow", "maximum", "largest", "axis"),
    lambda draw: case(draw(3, 4), axis=0),
)
def soft_max(x, axis=-1):
    exps = np.exp(x)
    total = exps.sum(axis=-1)[..., None]
    return np.divide(exps, total, out=np.zeros_like(exps), where=total > 0)


@wrong(
    "softmax",
    "a row of -inf alone becomes NaN, and all results are float64",
    ("-inf", "nan", "dtype", "float64", "hidden row"),
    lambda draw: case(np.array([[-np.inf, -np.inf], [0.0, 1.0]], dtype=np.float32)),
)
def softmax64(x, axis=-1):
    x = np.array(x, dtype=float)
    x -= x.max(axis=axis, keepdims=True)
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


@wrong(
    "attention",
    "no scale unless one is given, and the bias is added after the softmax",
    ("scale", "sqrt", "bias", "after the softmax"),
    lambda draw: case(draw(3, 4), draw(5, 4), draw(5, 4)),
)
def attend(q, k, v, mask=None, bias=None, scale=None):
    scores = q @ np.moveaxis(k, -1, -2)
    if scale:
        scores = scores * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)
    if bias is not None:
        weights = weights + bias
    return weights @ v, weights


@wrong(
    "attention",
    "always causal, also beside a mask, and the scale is 1/sqrt of the width of v",
    ("causal", "future", "scale", "sqrt", "Kv", "width of v"),
    lambda draw: case(draw(3, 4), draw(3, 4), draw(3, 6)),
)
def decoder_attention(q, k, v, mask=None, bias=None, scale=None):
    d = v.shape[-1]
    scale = 1 / math.sqrt(d) if scale is None else scale
    scores = np.einsum("...ik,...jk->...ij", q, k) * scale
    if bias is not None:
        scores = scores + bias
    allowed = np.tril(np.ones(scores.shape[-2:], bool))
    if mask is not None:
        allowed = allowed & mask
    scores = np.where(allowed, scores, -np.inf)
    w = softmax(scores)
    return np.einsum("...ij,...jv->...iv", w, v), w


@wrong(
    "attention",
    "a boolean mask is added, and no maximum is subtracted",
    ("mask", "boolean", "added", "overflow", "maximum", "largest"),
    lambda draw: case(50 * draw(3, 8), 50 * draw(3, 8), draw(3, 8), mask=np.tri(3) > 0),
)
def simple_attention(q, k, v, mask=None, bias=None, scale=None):
    s = q @ k.swapaxes(-1, -2)
    s = s / math.sqrt(q.shape[-1]) if scale is None else s * scale
    for extra in (mask, bias):
        if extra is not None:
            s = s + extra
    e = np.exp(s)
    w = e / e.sum(-1, keepdims=True)
    return w @ v, w


@wrong(
    "attention",
    "the bias is subtracted, and True is taken for blocked",
    ("bias", "subtract", "sign", "mask", "invert", "blocked", "opposite"),
    lambda draw: case(draw(3, 4), draw(5, 4), draw(5, 4), bias=draw(3, 5)),
)
def attention_with_penalty(q, k, v, mask=None, bias=None, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = scale * (q @ k.swapaxes(-1, -2))
    if bias is not None:
        s = s - bias
    if mask is not None:
        s = np.where(~np.asarray(mask, bool), s, -np.inf)
    w = softmax(s)
    return w @ v, w


@wrong(
    "attention",
    "the bias is scaled with the scores, and the weights of a key sum to 1 over the queries",
    ("bias", "scale", "axis", "over the quer", "columns", "swapped"),
    lambda draw: case(draw(3, 4), draw(5, 4), draw(5, 4)),
)
def dot_attention(q, k, v, mask=None, bias=None, scale=None):
    s = q @ k.swapaxes(-1, -2)
    if bias is not None:
        s = s + bias
    s = s * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    w = softmax(s, axis=-2)
    return w @ v, w


# ---- multi-head attention ------------------------------------------------------------------------


def _params(draw, D=8, H=4, K=2):
    p = {n: draw(D, H * K) for n in ("W_q", "W_k", "W_v")} | {"W_o": draw(H * K, D)}
    return p | {n: draw(8) for n in ("b_q", "b_k", "b_v", "b_o")}


def _heads(params, x, source, n_heads, mask, split, root, out_bias):
    q = x @ params["W_q"] + params.get("b_q", 0)
    k = source @ params["W_k"] + params.get("b_k", 0)
    v = source @ params["W_v"] + params.get("b_v", 0)
    K = q.shape[-1] // n_heads
    q, k, v = split(q, K), split(k, K), split(v, K)
    each = [h * k.shape[1] // n_heads for h in range(n_heads)]
    scores = np.einsum("bhik,bhjk->bhij", q, k[:, each]) / math.sqrt(root or K)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax(scores)
    heads = np.einsum("bhij,bhjk->bhik", weights, v[:, each])
    if split is _strided:
        mixed = heads.transpose(0, 2, 3, 1).reshape(*x.shape[:2], -1)
    else:
        mixed = heads.transpose(0, 2, 1, 3).reshape(*x.shape[:2], -1)
    y = mixed @ params["W_o"]
    return (y + params.get("b_o", 0) if out_bias else y), weights


def _blocks(t, K):
    return t.reshape(*t.shape[:2], -1, K).transpose(0, 2, 1, 3)


def _strided(t, K):
    return t.reshape(*t.shape[:2], K, -1).transpose(0, 3, 1, 2)


@wrong(
    "multi_head_attention",
    "divided by sqrt(H K), and the bias of the output is forgotten",
    ("sqrt(H K)", "scale", "sqrt", "whole width", "b_o", "bias"),
    lambda draw: case(_params(draw), draw(2, 3, 8), draw(2, 5, 8), 4),
)
def mha(params, x, source, n_heads, mask=None):
    width = params["W_q"].shape[1]
    return _heads(params, x, source, n_heads, mask, _blocks, width, out_bias=False)


@wrong(
    "multi_head_attention",
    "heads are every H-th component, not blocks, and a mask hides where it is True",
    ("every H", "block", "interleav", "stride", "mask", "invert", "blocked", "opposite"),
    lambda draw: case(_params(draw), draw(2, 3, 8), draw(2, 5, 8), 4),
)
def MultiHeadAttention(params, x, source, n_heads, mask=None):
    hidden = None if mask is None else ~mask
    return _heads(params, x, source, n_heads, hidden, _strided, None, out_bias=True)


# ---- layers --------------------------------------------------------------------------------------


@wrong(
    "layer_norm",
    "the Annotated Transformer's: a deviation over D - 1, and eps added to it, not to the variance",
    ("D - 1", "D-1", "ddof", "unbiased", "eps"),
    lambda draw: case(0.01 * draw(2, 6), draw(6), draw(6)),
)
def LayerNorm(x, a_2, b_2, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    std = x.std(-1, keepdims=True, ddof=1)
    return a_2 * (x - mean) / (std + eps) + b_2


@wrong(
    "layer_norm",
    "mean and variance of the whole array, and x is centred in place",
    ("whole array", "all tokens", "every token", "axis", "in place", "copy"),
    lambda draw: case(draw(2, 6), draw(6), draw(6)),
)
def normalize(x, gain, bias, eps=1e-5):
    x -= x.mean()
    x /= math.sqrt(x.var() + eps)
    return gain * x + bias


@wrong(
    "rms_norm",
    "Gemma's 1 + gain, and the mean is subtracted first, as in a layer norm",
    ("1 + gain", "gain", "Gemma", "mean", "layer norm", "centred"),
    lambda draw: case(draw(2, 6), draw(6)),
)
def gemma_norm(x, weight, eps=1e-6):
    x = x - x.mean(axis=-1, keepdims=True)
    var = np.mean(np.square(x), axis=-1, keepdims=True)
    return x / np.sqrt(var + eps) * (1.0 + weight)


@wrong(
    "gelu",
    "always the tanh form, and its constant is 0.44715",
    ("tanh", "approximat", "0.044715", "constant"),
    lambda draw: case(np.array([-2.0, 0.5, 2.0])),
)
def new_gelu(x, approximate="none"):
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.44715 * x**3)))


# ---- training ------------------------------------------------------------------------------------


@wrong(
    "cross_entropy",
    "losses are summed, and `ignore` does nothing",
    ("sum", "mean", "averag", "ignor"),
    lambda draw: case(draw(4, 5), np.array([0, 1, 2, 4])),
)
def nll_loss(logits, targets, ignore=None, label_smoothing=0.0):
    z = logits - logits.max(axis=-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    picked = np.take_along_axis(log_p, np.expand_dims(targets, -1), -1)[..., 0]
    return -((1 - label_smoothing) * picked + label_smoothing * log_p.mean(-1)).sum()


@wrong(
    "cross_entropy",
    "large logits overflow, and label smoothing is ignored",
    ("overflow", "maximum", "largest", "smooth"),
    lambda draw: case(1000 * draw(4, 5), np.array([0, 1, 2, 4])),
)
def categorical_cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    flat, t = p.reshape(-1, p.shape[-1]), np.asarray(targets).reshape(-1)
    if ignore is not None:
        flat, t = flat[t != ignore], t[t != ignore]
    return -np.log(flat[np.arange(len(t)), t]).mean()


@wrong(
    "adam_step",
    "eps stands under the root, and the moments are not corrected for their start at 0",
    ("eps", "correct", "1 - beta", "step", "start"),
    lambda draw: case(draw(3), draw(3), draw(3), draw(3) ** 2, 2),
)
def adam_update(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    m = betas[0] * m + (1 - betas[0]) * g
    v = betas[1] * v + (1 - betas[1]) * g**2
    return p - learning_rate * m / np.sqrt(v + eps), m, v


def _adamw_call(draw):
    params, grads = ({"W": draw(3, 2), "norm": {"gain": draw(2)}} for _ in range(2))
    m, v = ({"W": draw(3, 2), "norm": {"gain": draw(2)}} for _ in range(2))
    v = {"W": v["W"] ** 2, "norm": {"gain": v["norm"]["gain"] ** 2}}
    return case(params, grads, {"m": m, "v": v, "step": 3}, 0.1)


@wrong(
    "adamw",
    "the corrections take the step before it is raised, and the decay is not times the rate",
    ("step", "correct", "one too", "decay", "learning rate", "rate"),
    _adamw_call,
)
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
    t = max(state["step"], 1)

    def walk(p, g, m, v, path):
        if isinstance(p, dict):
            each = {k: walk(p[k], g[k], m[k], v[k], [*path, k]) for k in p}
            return tuple({k: r[n] for k, r in each.items()} for n in range(3))
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        new = p - learning_rate * (m / (1 - betas[0] ** t)) / (
            np.sqrt(v / (1 - betas[1] ** t)) + eps
        )
        if decay("/".join(path), p) if decay else p.ndim > 1:
            new = new - weight_decay * p
        return new, m, v

    p, m, v = walk(params, grads, state["m"], state["v"], [])
    return p, {"m": m, "v": v, "step": state["step"] + 1}


# ---- relative ------------------------------------------------------------------------------------


@wrong(
    "alibi_slopes",
    "2^(-8h/H) for every H, powers of two or not, and h begins at 0",
    ("h = 0", "from 0", "at 0", "first slope", "begin", "power of two", "powers of two", "every"),
    lambda draw: case(12),
)
def alibi_m(n_heads):
    return [2 ** (-8 * h / n_heads) for h in range(n_heads)]


@wrong(
    "alibi_bias",
    "the minus is forgotten, and future_slopes is ignored",
    ("sign", "minus", "negative", "positive", "future", "-1 times"),
    lambda draw: case(np.array([0.5, 0.25]), OUTER(np.arange(3), np.arange(3))),
)
def alibi(slopes, distance, future_slopes=None):
    d = np.abs(distance).astype(slopes.dtype)[..., None, :, :]
    return np.reshape(slopes, (-1, 1, 1)) * d


@wrong(
    "t5_bucket",
    "past and future are exchanged, and far distances get buckets beyond the last",
    ("key minus query", "past and future", "future and past", "exchang", "sign", "mirror", "last"),
    lambda draw: case(np.array([-200, -3, 3, 200, 5000])),
)
def bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    n = np.asarray(distance)
    ret = np.zeros(n.shape, dtype=int)
    if bidirectional:
        num_buckets = num_buckets // 2
        ret = ret + (n > 0) * num_buckets
        n = np.abs(n)
    else:
        n = np.maximum(n, 0)
    exact = num_buckets // 2
    far = np.log(np.maximum(n, 1) / exact) / np.log(max_distance / exact) * (num_buckets - exact)
    return ret + np.where(n < exact, n, exact + np.floor(far + 1e-9).astype(int))


@wrong(
    "shaw_scores",
    "the table is read by key minus query, and the relative part is not scaled",
    ("key minus query", "sign", "revers", "mirror", "exchang", "scale", "sqrt"),
    lambda draw: case(draw(3, 4), draw(3, 4), draw(5, 4), OUTER(np.arange(3), np.arange(3))),
)
def relation_aware_scores(q, k, key_table, distance):
    m = len(key_table) // 2
    a = key_table[np.clip(-distance, -m, m) + m]
    e = np.einsum("...id,...jd->...ij", q, k) / math.sqrt(q.shape[-1])
    return e + np.einsum("...id,ijd->...ij", q, a)


# ---- rotary --------------------------------------------------------------------------------------


@wrong(
    "rope",
    "x is written over: the second component sees the first already turned; and base 1000",
    ("in place", "written over", "already turned", "overwrit", "new value", "copy", "1000", "base"),
    lambda draw: case(draw(3, 8), np.arange(3)),
)
def rope_in_place(x, positions, frequencies=None, layout="interleaved"):
    d = x.shape[-1]
    if frequencies is None:
        frequencies = 1000.0 ** (-np.arange(0, d, 2) / d)
    n = len(frequencies)
    angle = np.asarray(positions)[..., None] * frequencies
    c, s = np.cos(angle).astype(x.dtype), np.sin(angle).astype(x.dtype)
    if layout == "interleaved":
        x1, x2 = x[..., 0 : 2 * n : 2], x[..., 1 : 2 * n : 2]
    else:
        x1, x2 = x[..., :n], x[..., n : 2 * n]
    x1[...] = x1 * c - x2 * s
    x2[...] = x1 * s + x2 * c
    return x


@wrong(
    "rope",
    "positions are cut to whole numbers, and the turn goes the other way",
    ("other way", "sign", "opposite", "clockwise", "minus", "backward", "whole", "integer"),
    lambda draw: case(draw(3, 8), np.arange(3)),
)
def rope_int(x, positions, frequencies=None, layout="interleaved"):
    d = x.shape[-1]
    if frequencies is None:
        frequencies = 10000.0 ** (-np.arange(0, d, 2) / d)
    n = len(frequencies)
    z = np.exp(-1j * np.asarray(positions).astype(int)[..., None] * frequencies)
    one = slice(0, 2 * n, 2) if layout == "interleaved" else slice(0, n)
    two = slice(1, 2 * n, 2) if layout == "interleaved" else slice(n, 2 * n)
    w = (x[..., one] + 1j * x[..., two]) * z
    y = x.copy()
    y[..., one], y[..., two] = w.real, w.imag
    return y


@wrong(
    "rope_frequencies",
    "base 1000, and i counts from 1",
    ("1000", "1,000", "base", "from 1", "begin", "start", "one pair", "i + 1", "first"),
    lambda draw: case(8),
)
def inv_freq(d, base=1000.0):
    return np.array([1.0 / base ** (2.0 * i / d) for i in range(1, d // 2 + 1)])


@wrong(
    "yarn_scaling",
    "truncate is ignored (always whole pairs), and the attention factor has log10",
    ("truncat", "whole pair", "log10", "natural", "logarithm", "attention factor"),
    lambda draw: case(64, 8.0, 4096, truncate=False),
)
def yarn(d, factor, trained_length, base=10000.0, beta_fast=32.0, beta_slow=1.0, truncate=True):
    def corrected(turns):
        return d * math.log(trained_length / (2 * math.pi * turns)) / (2 * math.log(base))

    low = max(math.floor(corrected(beta_fast)), 0)
    high = min(math.ceil(corrected(beta_slow)), d - 1)
    span = high - low if high != low else 0.001
    theta = base ** (-np.arange(0, d, 2) / d)
    ramp = np.clip((np.arange(d // 2) - low) / span, 0, 1)
    return theta * (1 - ramp) + theta / factor * ramp, max(1.0, 0.1 * math.log10(factor) + 1)
