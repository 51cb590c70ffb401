"""Two mistakes in each, mixed; `says` holds words for both."""

import math

import numpy as np
from answers.apart import case, right, wrong


@wrong(
    "attention",
    "the bias is scaled, too, and the mask comes after the softmax: weights do not sum to 1",
    ("bias", "before the scale", "after the softmax", "after softmax", "sum to 1", "renormal",
     "multiplied", "zeroed"),
    lambda draw: case(
        draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 4),
        mask=np.arange(5) <= 2 + np.arange(3)[:, None], bias=draw(3, 5),
    ),
)  # fmt: skip
def my_attention(q, k, v, mask=None, bias=None, scale=None):
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    scores = q @ k.swapaxes(-1, -2)
    if bias is not None:
        scores = scores + bias
    scores = scores * scale
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    if mask is not None:
        weights = weights * mask
    return weights @ v, weights


@wrong(
    "softmax",
    "no maximum is taken away, and 1e-9 in the sum outweighs small exponentials",
    ("overflow", "maximum", "largest", "1e-9", "eps", "small number", "sum to 1", "1000",
     "large score", "nan for large"),
    lambda draw: case(np.array([[-40.0, -41.0, -42.0], [1000.0, 0.0, 1.0]])),
)  # fmt: skip
def safe_softmax(x, axis=-1):
    e = np.exp(x)
    return e / (np.sum(e, axis=axis, keepdims=True) + 1e-9)  # never divide by zero


@wrong(
    "sinusoidal",
    "each component has a frequency of its own, base^(-2 c / d); and the layout is ignored",
    ("exponent", "// 2", "pair", "component", "2i", "2 i", "double", "twice", "layout",
     "concatenated", "frequenc", "ignored"),
    lambda draw: case(np.arange(5), 8, layout="concatenated"),
)  # fmt: skip
def get_angles(positions, d_model, base=10000.0, layout="interleaved"):
    i = np.arange(d_model)
    angle_rates = 1 / np.power(base, 2 * i / d_model)
    angles = np.asarray(positions, dtype=np.float64)[..., None] * angle_rates
    angles[..., 0::2] = np.sin(angles[..., 0::2])
    angles[..., 1::2] = np.cos(angles[..., 1::2])
    return angles


@wrong(
    "layer_norm",
    "torch's std divides by D - 1, and eps is added to it outside of the root",
    ("d - 1", "d-1", "ddof", "unbiased", "bessel", "eps", "root", "std", "variance"),
    lambda draw: case(0.05 * draw(2, 3, 4), draw(4), draw(4), eps=1e-3),
)
def annotated_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    std = x.std(-1, keepdims=True, ddof=1)
    return gain * (x - mean) / (std + eps) + bias


def _layer(draw):
    sizes = {"q": (8, 8), "k": (8, 4), "v": (8, 4), "o": (8, 8)}
    params = {f"W_{name}": draw(*size) for name, size in sizes.items()}
    return {**params, **{f"b_{name}": draw(size[1]) for name, size in sizes.items()}}


@wrong(
    "multi_head_attention",
    "no bias of the four is added, and scores are divided by the root of the whole width",
    ("bias", "b_q", "sqrt", "scale", "root", "width", "d_model", "divided"),
    lambda draw: case(_layer(draw), draw(2, 3, 8), draw(2, 5, 8), 4),
)
def mha(params, x, source, n_heads, mask=None):
    B, L, D = x.shape
    S = source.shape[1]
    K = params["W_q"].shape[1] // n_heads
    G = params["W_k"].shape[1] // K
    Q = (x @ params["W_q"]).reshape(B, L, n_heads, K)
    KEY = np.repeat((source @ params["W_k"]).reshape(B, S, G, K), n_heads // G, axis=2)
    VAL = np.repeat((source @ params["W_v"]).reshape(B, S, G, K), n_heads // G, axis=2)
    scores = np.einsum("blhk,bshk->bhls", Q, KEY) / D**0.5
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    top[top == -np.inf] = 0
    weights = np.exp(scores - top)
    weights /= np.maximum(weights.sum(axis=-1, keepdims=True), 1e-30)
    out = np.einsum("bhls,bshk->blhk", weights, VAL).reshape(B, L, n_heads * K)
    return out @ params["W_o"], weights


@wrong(
    "rope",
    "positions are counted from 0, not those given; and pairs turn clockwise",
    ("position", "arange", "from 0", "clockwise", "sign", "direction", "backward", "wrong way",
     "-sin", "inverse"),
    lambda draw: case(draw(2, 4, 8), np.array([3, 4, 5, 6])),
)  # fmt: skip
def apply_rotary(x, positions, frequencies=None, layout="interleaved"):
    seq_len, dim = x.shape[-2], x.shape[-1]
    if frequencies is None:
        frequencies = 1.0 / 10000 ** (np.arange(0, dim, 2) / dim)
    n = len(frequencies)
    freqs = np.outer(np.arange(seq_len), frequencies)
    cos, sin = np.cos(freqs).astype(x.dtype), np.sin(freqs).astype(x.dtype)
    first, second = (slice(0, 2 * n, 2), slice(1, 2 * n, 2))
    if layout == "half":
        first, second = (slice(0, n), slice(n, 2 * n))
    out = x.copy()
    out[..., first] = x[..., first] * cos + x[..., second] * sin
    out[..., second] = x[..., second] * cos - x[..., first] * sin
    return out


@wrong(
    "window_mask",
    "a window of w + 1 keys, and padding below 0 counts as a sink",
    ("off by one", "one too many", "one key", "one more", "w + 1", "<=", "padding", "below 0",
     "negative", "sink"),
    lambda draw: case(np.arange(8), np.arange(-2, 8), 3, sinks=1),
)  # fmt: skip
def sliding_window_with_sinks(q_positions, k_positions, window, sinks=0):
    i = q_positions[..., :, None]
    j = k_positions[..., None, :]
    causal = j <= i
    local = i - j <= window
    sink = j < sinks
    return causal & (local | sink)


def _params(draw):
    return {"W": draw(3, 2), "b": draw(2), "norm": {"gain": draw(3)}}


@wrong(
    "adamw",
    "eps stands under the root, and everything decays, biases and gains, too",
    ("eps", "root", "decay", "bias", "gain", "one axis", "two axes", "every array", "all arrays"),
    lambda draw: case(
        _params(draw), {"W": 1e-3 * draw(3, 2), "b": draw(2), "norm": {"gain": draw(3)}},
        {"m": _params(draw), "v": {"W": np.zeros((3, 2)), "b": np.zeros(2),
                                   "norm": {"gain": np.zeros(3)}}, "step": 2},
        0.01, eps=1e-4, weight_decay=0.2,
    ),
)  # fmt: skip
def adamw_update(
    params,
    grads,
    state,
    learning_rate,
    betas=(0.9, 0.98),
    eps=1e-9,
    weight_decay=0.01,
    decay=None,
):
    step = state["step"] + 1
    b1, b2 = betas

    def go(p, g, m, v, path):
        if isinstance(p, dict):
            out = {k: go(p[k], g[k], m[k], v[k], path + [k]) for k in p}
            return tuple({k: out[k][n] for k in out} for n in range(3))
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        change = (m / (1 - b1**step)) / np.sqrt(v / (1 - b2**step) + eps)
        if decay is None or decay("/".join(path), p):
            change = change + weight_decay * p
        return p - learning_rate * change, m, v

    theta, m, v = go(params, grads, state["m"], state["v"], [])
    return theta, {"m": m, "v": v, "step": step}


@wrong(
    "clip_gradients",
    "short gradients are lengthened to max_norm, and the norm told is that after clipping",
    ("short", "lengthen", "always", "only if", "longer", "at most", "after clipping",
     "before clipping", "whatever the norm", "norm > max_norm", "below max_norm"),
    lambda draw: case({"W": 0.1 * draw(2, 3), "norm": {"gain": 0.1 * draw(3)}}, 5.0),
)  # fmt: skip
def clip_by_global_norm(grads, max_norm):
    def leaves(tree):
        for value in tree.values():
            if isinstance(value, dict):
                yield from leaves(value)
            else:
                yield value

    def scaled(tree, factor):
        return {
            k: scaled(t, factor) if isinstance(t, dict) else t * factor for k, t in tree.items()
        }

    norm = math.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in leaves(grads)))
    clipped = scaled(grads, max_norm / norm if norm > 0 else 1.0)
    return clipped, math.sqrt(sum(float((g**2).sum()) for g in leaves(clipped)))


@wrong(
    "alibi_bias",
    "the distance keeps its sign, so that the future is rewarded; future_slopes are ignored",
    ("abs", "sign", "future", "reward", "positive", "ignored"),
    lambda draw: case(
        np.array([0.5, 0.25]), np.arange(4)[:, None] - np.arange(5), np.array([0.1, 0.2])
    ),
)
def alibi(slopes, distance, future_slopes=None):
    distance = np.expand_dims(distance, -3)
    return (-slopes[:, None, None] * distance).astype(slopes.dtype)


@right(
    "adam_step",
    lambda draw: case(
        draw(2, 3), draw(2, 3), 0.1 * draw(2, 3), draw(2, 3) ** 2, int(draw.rng.integers(1, 50)),
        learning_rate=0.02, betas=(0.8, 0.95), eps=1e-4,
    ),
)  # fmt: skip
def adam_number_by_number(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    new = [np.array(a) for a in (p, m, v)]
    for n, one in enumerate(np.ravel(g).tolist()):
        moment, power = (float(a.flat[n]) for a in new[1:])
        moment += (1 - betas[0]) * (one - moment)
        power += (1 - betas[1]) * (one * one - power)
        corrected = moment / (1 - betas[0] ** step)
        spread = (power / (1 - betas[1] ** step)) ** 0.5
        new[0].flat[n] -= learning_rate * corrected / (spread + eps)
        new[1].flat[n], new[2].flat[n] = moment, power
    return tuple(new)


@right("split_heads", lambda draw: case(draw(2, 3, 12), int(draw.rng.choice([1, 2, 3, 4, 6]))))
def stacked_blocks(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-1), axis=-3)
