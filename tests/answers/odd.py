"""Right answers in odd style: none of them may be refused."""
# ruff: noqa: F811

import functools
import itertools
import math
from fractions import Fraction

import numpy as np

from answers import right


@right
def softmax(x, axis=-1):
    x = np.moveaxis(np.asarray(x), axis, -1)
    out = np.zeros_like(x)
    for n in np.ndindex(x.shape[:-1]):
        row = x[n].astype(float)
        if np.any(row > -np.inf):
            e = np.exp(row - row.max())
            out[n] = e / e.sum()
    return np.moveaxis(out, -1, axis)


@right
def softmax(x, axis=-1):
    top = np.max(x, axis=axis, keepdims=True, initial=-np.finfo(x.dtype).max)
    e = np.exp(np.subtract(x, top))
    total = np.add.reduce(e, axis=axis, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


@right
def log_softmax(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    top[~np.isfinite(top)] = 0
    y = x - top
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(y).sum(axis=axis, keepdims=True))
    return y - np.where(np.isneginf(total), 0, total)


@right
def causal_mask(q_positions, k_positions):
    return ~(np.expand_dims(k_positions, -2) > np.expand_dims(q_positions, -1))


@right
def padding_mask(lengths, size, side="right"):
    rows = []
    for n in lengths:
        row = [True] * int(n) + [False] * (size - int(n))
        rows.append([[row if side == "right" else row[::-1]]])
    return np.array(rows, dtype=bool).reshape(len(rows), 1, 1, size)


@right
def split_heads(x, n_heads):
    return np.stack(np.split(np.asarray(x), n_heads, axis=-1), axis=-3)


@right
def merge_heads(x):
    return np.concatenate([x[..., h, :, :] for h in range(x.shape[-3])], axis=-1)


@right
def attention(q, k, v, mask=None, bias=None, scale=None):
    s = np.einsum("...ik,...jk->...ij", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    s = s + (0 if bias is None else bias)
    if mask is None:
        mask = True
    top = np.max(np.where(mask, s, -np.inf), axis=-1, keepdims=True)
    e = np.where(mask, np.exp(np.minimum(s - np.where(np.isinf(top), 0, top), 0)), 0)
    w = e / np.maximum(e.sum(-1, keepdims=True), np.finfo(s.dtype).tiny)
    w = w.astype(q.dtype)
    return np.einsum("...ij,...jk->...ik", w, v), w


@right
def attend(scores, v, mask=None, sink=None):
    s = scores if mask is None else np.where(mask, scores, -np.inf)
    column = np.full((*s.shape[:-1], 1), -np.inf, s.dtype)
    if sink is not None:
        column = np.broadcast_to(sink[:, None, None], column.shape)
    s = np.concatenate([s, column.astype(s.dtype)], axis=-1)
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    w = np.where(total > 0, e / np.where(total > 0, total, 1), 0)[..., :-1]
    return w @ v, w


@right
def window_mask(q_positions, k_positions, window, sinks=0):
    i, j = np.asarray(q_positions)[..., None], np.asarray(k_positions)[..., None, :]
    return np.logical_and(j <= i, np.logical_or(i < j + window, np.isin(j, range(sinks))))


@right
def layer_norm(x, gain, bias, eps=1e-5):
    D = x.shape[-1]
    w = x.astype(float)
    mean = np.einsum("...d->...", w)[..., None] / D
    var = np.einsum("...d,...d->...", w - mean, w - mean)[..., None] / D
    return ((w - mean) * (var + eps) ** -0.5 * gain + bias).astype(x.dtype)


@right
def rms_norm(x, gain, eps=1e-6):
    norm = np.linalg.norm(x.astype(float), axis=-1, keepdims=True)
    return (x * gain / np.hypot(norm / math.sqrt(x.shape[-1]), math.sqrt(eps))).astype(x.dtype)


@right
def gelu(x, approximate="none"):
    if approximate == "tanh":
        z = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return (x / (1 + np.exp(-2 * z.astype(float)))).astype(x.dtype)
    out = [t * math.erfc(-t / math.sqrt(2)) / 2 for t in x.ravel().tolist()]
    return np.array(out).reshape(x.shape).astype(x.dtype)


@right
def feed_forward(params, x, activation="relu"):
    f = {
        "relu": lambda h: h * (h > 0),
        "silu": lambda h: h / (1 + np.exp(-h)),
        "gelu_tanh": lambda h: (
            h / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
        ),
        "gelu": lambda h: h * np.vectorize(lambda t: math.erfc(-t / 2**0.5) / 2, [float])(h),
    }[activation]
    h = x @ np.asarray(params["W_1"])
    h = h + params["b_1"] if "b_1" in params else h
    h = f(x @ params["W_gate"]) * h if "W_gate" in params else f(h)
    out = h @ np.asarray(params["W_2"])
    return (out + params["b_2"] if "b_2" in params else out).astype(x.dtype)


@right
def embed_tokens(table, tokens, scale=None):
    V, D = table.shape
    one_hot = (np.asarray(tokens)[..., None] == np.arange(V)).astype(table.dtype)
    return one_hot @ table * (math.sqrt(D) if scale is None else float(scale))


@right
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    V = logits.shape[-1]
    losses = []
    for row, t in zip(logits.reshape(-1, V).tolist(), np.ravel(targets).tolist(), strict=True):
        if t == ignore:
            continue
        top = max(row)
        log_sum = top + math.log(math.fsum(math.exp(z - top) for z in row))
        log_p = [z - log_sum for z in row]
        losses.append(-(1 - label_smoothing) * log_p[t] - label_smoothing * sum(log_p) / V)
    return logits.dtype.type(math.fsum(losses) / len(losses))


@right
def warmup_schedule(step, d_model, warmup):
    return float(d_model**-0.5 * (step * warmup**-1.5 if step < warmup else step**-0.5))


@right
def adam_step(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    b1, b2 = betas
    m, v = m + (1 - b1) * (g - m), v + (1 - b2) * (g**2 - v)
    rate = learning_rate * math.sqrt(1 - b2**step) / (1 - b1**step)
    return p - rate * m / (np.sqrt(v) + eps * math.sqrt(1 - b2**step)), m, v


@right
def shift_right(targets, begin):
    return np.pad(targets, ((0, 0), (1, 0)), constant_values=begin)[:, :-1]


@right
def next_probabilities(logits, temperature, top_k):
    best = np.argpartition(logits, -top_k, axis=-1)[:, -top_k:]
    z = np.full_like(logits, -np.inf)
    np.put_along_axis(z, best, np.take_along_axis(logits, best, -1), -1)
    z = np.exp((z - logits.max(-1, keepdims=True)) / temperature)
    return z / z.sum(-1, keepdims=True)


@right
def softmax_gradient(w, g):
    jacobian = w[..., None] * np.eye(w.shape[-1]) - w[..., None] * w[..., None, :]
    return (jacobian @ g[..., None])[..., 0].astype(w.dtype)


@right
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    z = np.exp(1j * np.multiply.outer(positions, base ** (-np.arange(d_model // 2) * 2 / d_model)))
    if layout == "concatenated":
        return np.concatenate([z.imag, z.real], axis=-1)
    return (1j * z.conj()).view(float).reshape(*np.shape(positions), d_model)


@right
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    def value(pos, c):
        if layout == "concatenated":
            i, cosine = c % (d_model // 2), c >= d_model // 2
        else:
            i, cosine = divmod(c, 2)
        angle = pos * math.exp(-2 * i / d_model * math.log(base))
        return math.cos(angle) if cosine else math.sin(angle)

    flat = [[value(p, c) for c in range(d_model)] for p in np.ravel(positions).tolist()]
    return np.array(flat, dtype=float).reshape(*np.shape(positions), d_model)


@right
def wavelengths(d_model, base=10000.0):
    return [math.tau * math.pow(base, Fraction(2 * i, d_model)) for i in range(d_model // 2)]


@right
def sinusoidal_shift(offset, d_model, base=10000.0):
    a = offset * base ** (-np.arange(0, d_model, 2) / d_model)
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    return np.kron(np.diag(np.cos(a)), np.eye(2)) + np.kron(np.diag(np.sin(a)), turn)


@right
def rope(x, positions, frequencies=None, layout="interleaved"):
    K = x.shape[-1]
    if frequencies is None:
        frequencies = 10000.0 ** (-np.arange(0, K, 2) / K)
    n = len(frequencies)
    z = np.exp(1j * np.asarray(positions, float)[..., None] * frequencies)
    pair = (
        (x[..., 0 : 2 * n : 2], x[..., 1 : 2 * n : 2])
        if layout == "interleaved"
        else (x[..., :n], x[..., n : 2 * n])
    )
    y = (pair[0] + 1j * pair[1]) * z
    out = np.array(x)
    if layout == "interleaved":
        out[..., 0 : 2 * n : 2], out[..., 1 : 2 * n : 2] = y.real, y.imag
    else:
        out[..., :n], out[..., n : 2 * n] = y.real, y.imag
    return out


@right
def rope_frequencies(d, base=10000.0):
    ratio = base ** (-2 / d)
    return list(itertools.accumulate([1.0] + [ratio] * (d // 2 - 1), lambda a, b: a * b))


@right
def rope_matrix(position, frequencies):
    blocks = [
        np.array(
            [
                [math.cos(position * f), -math.sin(position * f)],
                [math.sin(position * f), math.cos(position * f)],
            ]
        )
        for f in np.asarray(frequencies).tolist()
    ]

    def join(a, b):
        return np.block([[a, np.zeros((len(a), 2))], [np.zeros((2, len(a))), b]])

    return functools.reduce(join, blocks, np.zeros((0, 0)))


@right
def rope_permutation(d):
    return np.arange(d).reshape(-1, 2).T.ravel()


@right
def ntk_scaling(d, factor, base=10000.0):
    theta = base ** (-np.arange(0, d, 2) / d)
    return theta * factor ** (-np.arange(0, d, 2) / (d - 2))


@right
def relative_distance(q_positions, k_positions):
    q, k = np.asarray(q_positions), np.asarray(k_positions)
    return np.moveaxis(np.array([q - k[..., j, None] for j in range(k.shape[-1])]), 0, -1)


@right
def alibi_slopes(n_heads):
    def power_of_two(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n_heads).is_integer():
        return power_of_two(n_heads)
    closest = 2 ** math.floor(math.log2(n_heads))
    more = alibi_slopes(2 * closest)
    return power_of_two(closest) + list(more[0::2][: n_heads - closest])


@right
def alibi_bias(slopes, distance, future_slopes=None):
    later = slopes if future_slopes is None else future_slopes
    d = np.asarray(distance)[..., None, :, :]
    past, future = np.maximum(d, 0), np.maximum(-d, 0)
    return (-slopes[:, None, None] * past - later[:, None, None] * future).astype(slopes.dtype)


@right
def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    half = num_buckets // 2 if bidirectional else num_buckets
    exact = half // 2

    def one(d):
        n = abs(d) if bidirectional else max(d, 0)
        b = n
        if n >= exact:
            edges = [n ** (half - exact) * exact**t >= max_distance**t * exact ** (half - exact)
                     for t in range(1, half - exact)]  # fmt: skip
            b = exact + sum(edges)
        return b + half if bidirectional and d < 0 else b

    d = np.asarray(distance)
    return np.array([one(n) for n in d.ravel().tolist()], dtype=np.int64).reshape(d.shape)


@right
def shaw_scores(q, k, key_table, distance):
    m = key_table.shape[-2] // 2
    rows = np.clip(distance, -m, m) + m
    products = np.einsum("...ik,...nk->...in", q, key_table)
    at = np.broadcast_to(rows, (*products.shape[:-1], rows.shape[-1]))
    position = np.take_along_axis(products, at, axis=-1)
    return (np.einsum("...ik,...jk->...ij", q, k) + position) / np.sqrt(q.shape[-1]).astype(q.dtype)


@right
def numerical_gradient(f, x, h):
    eye = np.eye(x.size).reshape(-1, *x.shape) * h
    return np.array([(f(x + e) - f(x - e)) / (2 * h) for e in eye]).reshape(x.shape)


@right
def complex_attention(z_q, z_k, z_v):
    scores = np.einsum("...ld,...sd->...ls", z_q, z_k.conj()).real / math.sqrt(z_q.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / np.einsum("...s->...", e)[..., None]
    return np.einsum("...ls,...sd->...ld", weights, z_v), weights


@right
def feed_forward(params, x, activation="relu"):
    erf = np.vectorize(math.erf, otypes=[float])
    if activation == "relu":
        f = functools.partial(np.maximum, 0)
    elif activation == "silu":
        f = lambda h: h * (1 + np.tanh(h / 2)) / 2  # noqa: E731
    elif activation == "gelu":
        f = lambda h: (h * (1 + erf(h / math.sqrt(2))) / 2).astype(h.dtype)  # noqa: E731
    else:
        f = lambda h: h / (1 + np.exp(-1.5957691216057308 * (h + 0.044715 * h**3)))  # noqa: E731
    hidden = f(np.einsum("...d,df->...f", x, params["W_1"]) + params.get("b_1", 0))
    return np.einsum("...f,fd->...d", hidden, params["W_2"]) + params.get("b_2", 0)
