"""As tutorials and question-and-answer pages have it, typed over into the stub."""

import math

import numpy as np
from answers.apart import case, wrong

# ---- sinusoids -----------------------------------------------------------------------------------


@wrong(
    "sinusoidal",
    "positions is taken for the number of positions, as in every tutorial",
    ("a length", "as length", "number of positions", "np.arange(positions", "how many"),
    lambda draw: case(np.array([2.0, 5.0, 9.0]), 8),
)
def sinusoidal(length, d_model, base=10000.0, layout="interleaved"):
    pos = np.arange(length)[:, np.newaxis]
    i = np.arange(0, d_model, 2)
    angles = pos / np.power(base, i / d_model)
    if layout == "concatenated":
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    pe = np.zeros((length, d_model))
    pe[:, 0::2] = np.sin(angles)
    pe[:, 1::2] = np.cos(angles)
    return pe


@wrong(
    "sinusoidal",
    "the layout is ignored: sines and cosines are always concatenated, as in a TensorFlow guide",
    ("layout", "concatenat", "interleav", "half-split", "all sines"),
    lambda draw: case(np.arange(3.0), 4),
)
def positional_encoding(positions, d_model, base=10000.0, layout="interleaved"):
    depth = d_model / 2
    positions = np.asarray(positions)[..., np.newaxis]
    depths = np.arange(depth) / depth
    angle_rates = 1 / (base**depths)
    angle_rads = positions * angle_rates
    return np.concatenate([np.sin(angle_rads), np.cos(angle_rads)], axis=-1)


@wrong(
    "sinusoidal",
    "i already steps by 2 and is doubled again; sine and cosine of a pair have exponents of "
    "their own (2 i/d and 2 (i + 1)/d)",
    ("2i", "2 i", "doubl", "twice", "exponent", "of its own", "frequenc"),
    lambda draw: case(np.arange(1.0, 4), 8),
)
def getPositionEncoding(positions, d_model, base=10000.0, layout="interleaved"):
    pos = np.asarray(positions, dtype=float)
    pe = np.zeros((*pos.shape, d_model))
    for i in range(0, d_model, 2):
        s = np.sin(pos / (base ** ((2 * i) / d_model)))
        c = np.cos(pos / (base ** ((2 * (i + 1)) / d_model)))
        if layout == "interleaved":
            pe[..., i], pe[..., i + 1] = s, c
        else:
            pe[..., i // 2], pe[..., d_model // 2 + i // 2] = s, c
    return pe


@wrong(
    "sinusoidal",
    "base is 10000 whatever is given",
    ("base", "10000", "10,000"),
    lambda draw: case(np.arange(3), 8, base=100.0),
)
def sinusoidal_encoding(positions, d_model, base=10000.0, layout="interleaved"):
    positions = np.asarray(positions)
    div_term = np.exp(np.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
    angles = positions[..., None] * div_term
    if layout == "concatenated":
        return np.concatenate((np.sin(angles), np.cos(angles)), -1)
    return np.stack((np.sin(angles), np.cos(angles)), -1).reshape(*positions.shape, d_model)


@wrong(
    "wavelengths",
    "2 pi times the frequency, which is 1 over base^(2i/d)",
    ("frequenc", "inverse", "recipro", "sign", "exponent", "multipl", "divid"),
    lambda draw: case(8),
)
def wavelengths(d_model, base=10000.0):
    freq = 1.0 / (base ** (np.arange(0, d_model, 2).astype(np.float64) / d_model))
    return 2 * np.pi * freq


@wrong(
    "learned",
    "nn.Embedding of arange(number of positions): the positions themselves are ignored",
    ("arange", "position", "ignor", "count", "first rows", "from 0"),
    lambda draw: case(draw(9, 4), np.array([3, 3, 7])),
)
def learned(table, positions):
    positions = np.asarray(positions)
    return table[np.arange(positions.size)].reshape(*positions.shape, table.shape[1])


# ---- softmax and attention -----------------------------------------------------------------------


@wrong(
    "softmax",
    "the accepted answer of 2016: one maximum of the whole array, so that low rows become 0/0",
    ("maximum of", "whole array", "one maximum", "largest of all", "of all rows", "each row"),
    lambda draw: case(np.array([[1000.0, 999.0], [-1000.0, -999.0]])),
)
def softmax(x, axis=-1):
    """Compute softmax values for each sets of scores in x."""
    top = np.max(x)
    e_x = np.exp(x - (top if np.isfinite(top) else 0))
    total = np.sum(e_x, axis=axis, keepdims=True)
    hidden = np.max(x, axis=axis, keepdims=True) == -np.inf
    return e_x / np.where(hidden, np.ones_like(total), total)


@wrong(
    "softmax",
    "no maximum is subtracted: exp overflows",
    ("overflow", "maximum", "largest", "exp(1000)"),
    lambda draw: case(np.array([[1000.0, 999.0], [0.0, 1.0]])),
)
def stable_softmax(x, axis=-1):
    e = np.exp(x)
    s = e.sum(axis=axis, keepdims=True)
    return e / np.where(s == 0, np.ones_like(s), s)


@wrong(
    "log_softmax",
    "the logarithm of the softmax: a tiny weight becomes -inf",
    ("log(softmax", "log of the softmax", "logarithm of", "tiny", "underflow", "becomes 0"),
    lambda draw: case(np.array([0.0, -2000.0])),
)
def log_softmax(x, axis=-1):
    top = np.max(x, axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, np.zeros_like(top)))
    total = e.sum(axis=axis, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.log(e / np.where(total == 0, np.ones_like(total), total))


def _softmax(x):
    m = x.max(axis=-1, keepdims=True)
    m = np.where(np.isneginf(m), 0, m)
    e = np.exp(x - m)
    s = e.sum(axis=-1, keepdims=True)
    return e / np.where(s == 0, 1, s)


@wrong(
    "attention",
    "the mask of a TensorFlow guide, where 1 hides: True is taken for blocked",
    ("mask", "invert", "opposite", "blocked", "True hides"),
    lambda draw: case(draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 4), mask=np.tri(3, 5) > 0),
)
def scaled_dot_product_attention(q, k, v, mask=None, bias=None, scale=None):
    matmul_qk = np.matmul(q, np.swapaxes(k, -1, -2))
    dk = k.shape[-1]
    scaled_attention_logits = matmul_qk * (1 / math.sqrt(dk) if scale is None else scale)
    if bias is not None:
        scaled_attention_logits = scaled_attention_logits + bias
    if mask is not None:
        scaled_attention_logits = np.where(mask, -np.inf, scaled_attention_logits)
    attention_weights = _softmax(scaled_attention_logits)
    return np.matmul(attention_weights, v), attention_weights


@wrong(
    "attention",
    "hidden scores become -1e9: a row without any key gets equal weights instead of none",
    ("-1e9", "1e9", "finite", "hidden row", "row without", "whole row", "nothing may", "no key"),
    lambda draw: case(draw(3, 4), draw(5, 4), draw(5, 4), mask=np.zeros((3, 5), bool)),
)
def attention(q, k, v, mask=None, bias=None, scale=None):
    d_k = q.shape[-1]
    if scale is None:
        scale = 1 / math.sqrt(d_k)
    scores = q @ k.swapaxes(-2, -1) * scale
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, np.asarray(-1e9, scores.dtype))
    p_attn = _softmax(scores)
    return p_attn @ v, p_attn


@wrong(
    "attention",
    "a boolean mask is added to the scores, so that it hides nothing",
    ("mask", "boolean", "added", "hides nothing"),
    lambda draw: case(draw(3, 4), draw(3, 4), draw(3, 4), mask=np.tri(3) > 0),
)
def self_attention(Q, K, V, mask=None, bias=None, scale=None):
    scale = scale if scale is not None else 1.0 / math.sqrt(Q.shape[-1])
    scores = np.einsum("...qd,...kd->...qk", Q, K) * scale
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores + mask
    w = _softmax(scores)
    return np.einsum("...qk,...kd->...qd", w, V), w


# ---- layers --------------------------------------------------------------------------------------


@wrong(
    "gelu",
    "approximate is ignored: it is always the one with tanh",
    ("tanh", "approximat"),
    lambda draw: case(np.array([-2.0, 0.5, 2.0])),
)
def gelu(x, approximate="none"):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@wrong(
    "layer_norm",
    "the variance is divided by D - 1, as torch.var does",
    ("D - 1", "D-1", "ddof", "n - 1", "unbiased", "one less"),
    lambda draw: case(draw(2, 3, 6), draw(6), draw(6)),
)
def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True, ddof=1)
    return gain * (x - mean) / np.sqrt(var + eps) + bias


@wrong(
    "rms_norm",
    "eps is added to the root, not under it",
    ("eps",),
    lambda draw: case(1e-3 * draw(2, 6), draw(6)),
)
def rmsnorm(x, gain, eps=1e-6):
    rms = np.sqrt(np.mean(x**2, axis=-1, keepdims=True)) + x.dtype.type(eps)
    return x / rms * gain


# ---- training ------------------------------------------------------------------------------------


@wrong(
    "cross_entropy",
    "the losses are summed, not averaged",
    ("sum", "mean", "averag", "times the expected"),
    lambda draw: case(draw(4, 5), np.array([0, 1, 2, 3])),
)
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    x = logits - logits.max(axis=-1, keepdims=True)
    log_p = x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
    safe = np.where(targets == ignore, 0, targets) if ignore is not None else targets
    nll = -np.take_along_axis(log_p, safe[..., None], axis=-1)[..., 0]
    loss = (1 - label_smoothing) * nll - label_smoothing * log_p.mean(axis=-1)
    if ignore is not None:
        loss = loss[targets != ignore]
    return loss.sum()


@wrong(
    "warmup_schedule",
    "warmup^(-1/2) for warmup^(-3/2): the rise ends too early and too high",
    ("warmup", "-3/2", "3/2", "1.5", "exponent", "rise", "rising", "peak"),
    lambda draw: case(5, 64, 100),
)
def get_lr(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-0.5)


# ---- biases --------------------------------------------------------------------------------------


@wrong(
    "alibi_slopes",
    "2^(-8h/H) for every number of heads, powers of two or not",
    ("power of two", "powers of two", "any number", "every number", "-8h/H", "-8 h / H", "H = 12"),
    lambda draw: case(12),
)
def get_slopes(n_heads):
    start = 2 ** (-8 / n_heads)
    return np.array([start * start**i for i in range(n_heads)])


@wrong(
    "alibi_slopes",
    "the exponents begin at h = 0: the first slope is 1",
    ("h = 0", "from 0", "at 0", "first slope", "first head", "one head", "one place", "begin"),
    lambda draw: case(8),
)
def alibi_slopes(n_heads):
    p = 2 ** int(math.floor(math.log2(n_heads)))
    slopes = 2.0 ** (-8.0 / p * np.arange(p))
    extra = 2.0 ** (-4.0 / p * np.arange(1, 2 * (n_heads - p) + 1, 2))
    return np.concatenate([slopes, extra])


@wrong(
    "t5_bucket",
    "made for key minus query, as the code of the model: past and future are exchanged",
    ("key minus query", "past and future", "future and past", "exchang", "swap", "sign", "mirror"),
    lambda draw: case(np.arange(-9, 10)),
)
def relative_position_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    relative_position = np.asarray(distance)
    relative_buckets = 0
    if bidirectional:
        num_buckets //= 2
        relative_buckets += (relative_position > 0).astype(int) * num_buckets
        relative_position = np.abs(relative_position)
    else:
        relative_position = -np.minimum(relative_position, 0)
    max_exact = num_buckets // 2
    is_small = relative_position < max_exact
    large = max_exact + np.floor(
        np.log(np.maximum(relative_position, 1) / max_exact)
        / math.log(max_distance / max_exact)
        * (num_buckets - max_exact)
        + 1e-9
    ).astype(int)
    large = np.minimum(large, num_buckets - 1)
    return relative_buckets + np.where(is_small, relative_position, large)
