"""Ports: from PyTorch, from a library, from the repository of a paper."""

import math

import numpy as np
from answers.apart import case, right, wrong


def _layer(draw, width, heads, kv_heads, biases=True):
    """Parameters of attention with H heads of width / H components, G of them for the keys."""
    inner = width // heads
    sizes = {"q": heads * inner, "k": kv_heads * inner, "v": kv_heads * inner}
    params = {f"W_{name}": draw(width, size) for name, size in sizes.items()}
    params["W_o"] = draw(heads * inner, width)
    if biases:
        params |= {f"b_{name}": draw(size) for name, size in {**sizes, "o": width}.items()}
    return params


@wrong(
    "attention",
    "True hides, as masks of nn.MultiheadAttention have it",
    ("invert", "opposite", "true hides", "true =", "true means", "reverse", "exchanged", "negated",
     "wrong way", "other way", "convention", "blocked", "~mask"),
    lambda draw: case(
        draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 4), mask=np.arange(5) <= 2 + np.arange(3)[:, None]
    ),
)  # fmt: skip
def scaled_dot_product_attention(q, k, v, mask=None, bias=None, scale=None):
    scale_factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    attn_weight = (q @ np.swapaxes(k, -2, -1)) * scale_factor
    if bias is not None:
        attn_weight = attn_weight + bias
    if mask is not None:
        attn_weight = np.where(mask, -np.inf, attn_weight)  # masked_fill(mask, float("-inf"))
    top = attn_weight.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    attn_weight = np.exp(attn_weight - top)
    total = attn_weight.sum(axis=-1, keepdims=True)
    attn_weight = attn_weight / np.where(total == 0, 1, total)
    return attn_weight @ v, attn_weight


@wrong(
    "multi_head_attention",
    "key heads are repeated as torch's repeat does it: 0 1 0 1, not 0 0 1 1",
    ("tile", "repeat", "0 1 0 1", "order of", "key head", "kv head", "shared", "group", "g //",
     "h %", "modulo", "neighbour"),
    lambda draw: case(_layer(draw, 8, 4, 2), draw(2, 3, 8), draw(2, 5, 8), 4),
)  # fmt: skip
def grouped_query_attention(params, x, source, n_heads, mask=None):
    bsz, q_len, _ = x.shape
    q = x @ params["W_q"] + params.get("b_q", 0)
    k = source @ params["W_k"] + params.get("b_k", 0)
    v = source @ params["W_v"] + params.get("b_v", 0)
    head_dim = q.shape[-1] // n_heads
    q = q.reshape(bsz, q_len, n_heads, head_dim).transpose(0, 2, 1, 3)
    k = k.reshape(bsz, source.shape[1], -1, head_dim).transpose(0, 2, 1, 3)
    v = v.reshape(bsz, source.shape[1], -1, head_dim).transpose(0, 2, 1, 3)
    n_rep = n_heads // k.shape[1]
    k = np.tile(k, (1, n_rep, 1, 1))  # k.repeat(1, n_rep, 1, 1)
    v = np.tile(v, (1, n_rep, 1, 1))
    attn = q @ k.transpose(0, 1, 3, 2) / math.sqrt(head_dim)
    if mask is not None:
        attn = np.where(mask, attn, -np.inf)
    top = attn.max(axis=-1, keepdims=True)
    attn = np.exp(attn - np.where(np.isneginf(top), 0, top))
    total = attn.sum(axis=-1, keepdims=True)
    attn = attn / np.where(total == 0, 1, total)
    out = (attn @ v).transpose(0, 2, 1, 3).reshape(bsz, q_len, n_heads * head_dim)
    return out @ params["W_o"] + params.get("b_o", 0), attn


def rotate_half(x):
    x1, x2 = np.split(x, 2, axis=-1)
    return np.concatenate((-x2, x1), axis=-1)


@wrong(
    "rope",
    "rotate_half whatever the layout says: interleaved pairs are never turned",
    ("layout", "half", "interleaved", "neighbour", "which components", "pairs"),
    lambda draw: case(draw(2, 5, 8), np.arange(5)),
)
def apply_rotary_pos_emb(x, positions, frequencies=None, layout="interleaved"):
    if frequencies is None:
        dim = x.shape[-1]
        frequencies = 1.0 / (10000.0 ** (np.arange(0, dim, 2) / dim))
    freqs = np.asarray(positions)[..., None] * frequencies
    emb = np.concatenate((freqs, freqs), axis=-1)
    cos, sin = np.cos(emb).astype(x.dtype), np.sin(emb).astype(x.dtype)
    rotary_dim = emb.shape[-1]
    x_rot, x_pass = x[..., :rotary_dim], x[..., rotary_dim:]
    return np.concatenate((x_rot * cos + rotate_half(x_rot) * sin, x_pass), axis=-1)


@wrong(
    "t5_bucket",
    "reads the distance as key minus query, as the library counts",
    ("sign", "future", "past", "key minus query", "j - i", "direction", "mirror", "flip",
     "exchanged", "reverse"),
    lambda draw: case(np.arange(-20, 21)),
)  # fmt: skip
def _relative_position_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    relative_position = np.asarray(distance)
    relative_buckets = np.zeros_like(relative_position)
    if bidirectional:
        num_buckets //= 2
        relative_buckets = relative_buckets + (relative_position > 0) * num_buckets
        relative_position = np.abs(relative_position)
    else:
        relative_position = -np.minimum(relative_position, np.zeros_like(relative_position))
    max_exact = num_buckets // 2
    is_small = relative_position < max_exact
    with np.errstate(divide="ignore"):
        large = max_exact + np.floor(
            np.log(relative_position / max_exact)
            / math.log(max_distance / max_exact)
            * (num_buckets - max_exact)
        )
    large = np.minimum(large, num_buckets - 1)
    return (relative_buckets + np.where(is_small, relative_position, large)).astype(np.int64)


@wrong(
    "transformer_xl_scores",
    "reads r with the farthest distance first, as the authors' code lays it out",
    ("order", "descend", "ascend", "revers", "farthest", "backward", "flip", "sign", "largest",
     "distance.max", "max() -", "mirror"),
    lambda draw: case(
        draw(2, 2, 3, 4), draw(2, 2, 5, 4), draw(2, 7, 4), draw(2, 4), draw(2, 4),
        np.arange(2, 5)[:, None] - np.arange(5),
    ),
)  # fmt: skip
def rel_attn_score(q, k, r, u, v, distance):
    r_w_bias, r_r_bias = u[:, None, :], v[:, None, :]
    AC = np.einsum("...hid,...hjd->...hij", q + r_w_bias, k)
    BD = np.einsum("...hid,hnd->...hin", q + r_r_bias, r)
    pos_seq = distance.max() - distance
    BD = np.take_along_axis(BD, np.broadcast_to(pos_seq, AC.shape), axis=-1)
    return (AC + BD) / q.shape[-1] ** 0.5


@wrong(
    "sgd",
    "PyTorch's momentum: the buffer sums gradients, and the learning rate comes after it",
    ("pytorch", "torch", "learning rate", "eta", "velocit", "sign", "buffer"),
    lambda draw: case(
        {"W": draw(2, 3), "norm": {"gain": draw(3)}}, {"W": draw(2, 3), "norm": {"gain": draw(3)}},
        0.1, momentum=0.9, state={"W": draw(2, 3), "norm": {"gain": draw(3)}},
    ),
)  # fmt: skip
def sgd_step(params, grads, learning_rate, momentum=0.0, state=None):
    new_params, bufs = {}, {}
    for name, p in params.items():
        buf = None if state is None else state[name]
        if isinstance(p, dict):
            new_params[name], bufs[name] = sgd_step(p, grads[name], learning_rate, momentum, buf)
            continue
        buf = grads[name].copy() if buf is None else momentum * buf + grads[name]
        new_params[name] = p - learning_rate * buf
        bufs[name] = buf
    return new_params, bufs


def _tree(draw):
    return {"W": draw(3, 2), "b": draw(2), "norm": {"gain": draw(3)}}


def _moments(draw, step=0):
    v = {"W": draw(3, 2) ** 2, "b": draw(2) ** 2, "norm": {"gain": draw(3) ** 2}}
    return {"m": _tree(draw), "v": v, "step": step}


@wrong(
    "adamw",
    "the decay is added to the gradient, as torch.optim.Adam does: it passes through the moments",
    ("l2", "decoupled", "to the gradient", "moments",
     "adam with", "plain adam", "not adamw"),
    lambda draw: case(_tree(draw), _tree(draw), _moments(draw, 3), 0.01, weight_decay=0.3),
)  # fmt: skip
def optim_adam(
    params,
    grads,
    state,
    learning_rate,
    betas=(0.9, 0.98),
    eps=1e-9,
    weight_decay=0.01,
    decay=None,
):
    t = state["step"] + 1
    beta1, beta2 = betas
    bias_correction1, bias_correction2 = 1 - beta1**t, 1 - beta2**t

    def walk(p, g, exp_avg, exp_avg_sq, path):
        if isinstance(p, dict):
            parts = {
                k: walk(p[k], g[k], exp_avg[k], exp_avg_sq[k], f"{path}/{k}" if path else k)
                for k in p
            }
            return tuple({k: part[n] for k, part in parts.items()} for n in range(3))
        if decay(path, p) if decay else p.ndim >= 2:
            g = g + weight_decay * p
        exp_avg = beta1 * exp_avg + (1 - beta1) * g
        exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * g * g
        denom = np.sqrt(exp_avg_sq / bias_correction2) + eps
        return p - learning_rate * (exp_avg / bias_correction1) / denom, exp_avg, exp_avg_sq

    new, m, v = walk(params, grads, state["m"], state["v"], "")
    return new, {"m": m, "v": v, "step": t}


@wrong(
    "rope_frequencies",
    "the powers are taken in float32, and returned so",
    ("float32", "float64", "dtype", "precision", "digits"),
    lambda draw: case(64),
)
def precompute_freqs(d, base=10000.0):
    return 1.0 / (base ** (np.arange(0, d, 2)[: (d // 2)].astype(np.float32) / d))


@wrong(
    "merge_heads",
    "a view without the transpose before it: tokens and heads are mixed up",
    ("transpos", "exchange", "swap", "reshape", "mixed", "axes", "order", "pieces"),
    lambda draw: case(draw(2, 3, 4, 5)),
)
def combine_heads(x):
    *batch, h, t, d = x.shape
    return x.reshape(*batch, t, h * d)  # y.contiguous().view(B, T, C)


@wrong(
    "yarn_scaling",
    "the ramp works the wrong way round: fast pairs are interpolated, slow ones kept",
    ("ramp", "wrong way", "exchanged", "swapped", "invert", "revers", "fast", "slow", "1 - ramp",
     "opposite"),
    lambda draw: case(16, 4.0, 256),
)  # fmt: skip
def yarn_parameters(
    d, factor, trained_length, base=10000.0, beta_fast=32.0, beta_slow=1.0, truncate=True
):
    def find_correction_dim(num_rotations):
        length = math.log(trained_length / (num_rotations * 2 * math.pi))
        return d * length / (2 * math.log(base))

    low, high = find_correction_dim(beta_fast), find_correction_dim(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    if low == high:
        high += 0.001
    pos_freqs = base ** (np.arange(0, d, 2) / d)
    inv_freq_extrapolation = 1.0 / pos_freqs
    inv_freq_interpolation = 1.0 / (factor * pos_freqs)
    factor_of_extrapolation = np.clip((np.arange(d // 2) - low) / (high - low), 0, 1)
    inv_freq = (
        inv_freq_interpolation * (1 - factor_of_extrapolation)
        + inv_freq_extrapolation * factor_of_extrapolation
    )
    return inv_freq, 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0


@wrong(
    "gelu",
    "always the form with tanh, as GPT-2 has it",
    ("tanh", "approximate", "approximation", "erf"),
    lambda draw: case(3 * draw(4, 5)),
)
def new_gelu(x, approximate="none"):
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1.0 + np.tanh(inner))


@wrong(
    "dropout",
    "draws by rng.binomial: other components are dropped than by the draws that are given",
    ("draw", "binomial", "rng.random", "float32", "generator", "random", "other components",
     "which components"),
    lambda draw: case(draw(6, 7), 0.4, np.random.default_rng(3)),
)  # fmt: skip
def f_dropout(x, rate, rng=None):
    if rng is None or rate == 0:
        return x
    mask = rng.binomial(1, 1 - rate, size=x.shape).astype(x.dtype)
    return x * mask / (1 - rate)


@right(
    "attention",
    lambda draw: case(
        draw(2, 3, 4, 5), draw(2, 3, 6, 5), 4 * draw(2, 3, 6, 2), mask=draw(2, 1, 4, 6) > -0.4,
        bias=9 * draw(3, 4, 6), scale=1 + draw.rng.random(),
    ),
)  # fmt: skip
def einsum_attention(q, k, v, mask=None, bias=None, scale=None):
    """A list of both results; the denominator as a logarithm."""
    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    sim = np.einsum("...id,...jd->...ij", q * scale, k)
    if bias is not None:
        sim = sim + bias
    if mask is not None:
        sim = sim + np.where(mask, 0, -np.inf)
    lse = np.logaddexp.reduce(sim, axis=-1, keepdims=True)
    attn = np.exp(sim - np.where(lse > -np.inf, lse, 0)).astype(q.dtype)
    return [np.einsum("...ij,...jd->...id", attn, v), attn]


@right(
    "rope",
    lambda draw: case(
        draw(2, 3, 4, 10), draw.rng.integers(-9, 99, 4), draw(3),
        layout=str(draw.rng.choice(["interleaved", "half"])),
    ),
)  # fmt: skip
def view_as_complex(x, positions, frequencies=None, layout="interleaved"):
    d = x.shape[-1]
    if frequencies is None:
        frequencies = np.exp(np.arange(0, d, 2) * (-math.log(10000.0) / d))
    n = len(frequencies)
    freqs_cis = np.exp(1j * np.multiply.outer(np.asarray(positions, float), frequencies))
    rot = x[..., : 2 * n].astype(np.float64)
    if layout == "half":
        rot = np.swapaxes(rot.reshape(*x.shape[:-1], 2, n), -1, -2)
    else:
        rot = rot.reshape(*x.shape[:-1], n, 2)
    turned = (rot[..., 0] + 1j * rot[..., 1]) * freqs_cis
    pair = (turned.real, turned.imag)
    if layout == "half":
        out = np.concatenate(pair, axis=-1)
    else:
        out = np.stack(pair, axis=-1).reshape(*x.shape[:-1], 2 * n)
    return np.concatenate([out, x[..., 2 * n :]], axis=-1).astype(x.dtype)
