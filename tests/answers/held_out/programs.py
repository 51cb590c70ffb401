"""As a chat program writes it: fluent, commented, vectorised, and wrong in one place."""

import math

import numpy as np
from answers.apart import case, in_a_row, wrong


def _stable_softmax(scores: np.ndarray) -> np.ndarray:
    """Numerically stable softmax that handles fully masked rows."""
    max_scores = np.max(scores, axis=-1, keepdims=True)
    max_scores = np.where(np.isfinite(max_scores), max_scores, 0.0).astype(scores.dtype)
    exp_scores = np.exp(scores - max_scores)
    denom = np.sum(exp_scores, axis=-1, keepdims=True)
    return np.divide(exp_scores, denom, out=np.zeros_like(exp_scores), where=denom > 0)


# ---- attention -----------------------------------------------------------------------------------


@wrong(
    "attention",
    "the bias is added to the weights, after the softmax",
    ("after the softmax", "to the weights", "bias"),
    lambda draw: case(draw(3, 4), draw(5, 4), draw(5, 4), bias=draw(3, 5)),
)
def attention_bias_late(q, k, v, mask=None, bias=None, scale=None):
    # Compute the scaled similarity between every query and every key
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    logits = np.einsum("...ld,...sd->...ls", q, k) * scale
    # Mask out positions that must not be attended to
    if mask is not None:
        logits = np.where(mask, logits, -np.inf)
    weights = _stable_softmax(logits)
    if bias is not None:
        weights = weights + bias
    return np.einsum("...ls,...sd->...ld", weights, v), weights


@wrong(
    "attention",
    "without a mask it is causal",
    ("causal", "future", "later keys", "tril", "triang"),
    lambda draw: case(draw(4, 4), draw(4, 4), draw(4, 4)),
)
def causal_attention(q, k, v, mask=None, bias=None, scale=None):
    L, S = q.shape[-2], k.shape[-2]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ np.swapaxes(k, -2, -1) * scale
    if bias is not None:
        scores = scores + bias
    if mask is None:
        mask = np.tril(np.ones((L, S), dtype=bool), k=S - L)  # decoder-style default
    scores = np.where(mask, scores, -np.inf)
    weights = _stable_softmax(scores)
    return weights @ v, weights


@wrong(
    "attention",
    "elif: a bias is ignored where there is a mask, too",
    ("bias", "both"),
    lambda draw: case(draw(3, 4), draw(3, 4), draw(3, 4), mask=np.tri(3) > 0, bias=draw(3, 3)),
)
def attention_either(q, k, v, mask=None, bias=None, scale=None):
    scale = 1.0 / math.sqrt(k.shape[-1]) if scale is None else scale
    scores = np.matmul(q, k.swapaxes(-1, -2)) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    elif bias is not None:
        scores = scores + bias
    weights = _stable_softmax(scores)
    return np.matmul(weights, v), weights


@wrong(
    "window_mask",
    "i - j <= w: the window is one key too wide",
    ("<=", "one too", "one key", "too wide", "w + 1", "own", "off by"),
    lambda draw: case(np.arange(6), np.arange(6), 2),
)
def sliding_window_mask(q_positions, k_positions, window, sinks=0):
    i = np.asarray(q_positions)[..., :, None]
    j = np.asarray(k_positions)[..., None, :]
    causal = j <= i
    in_window = (i - j) <= window
    is_sink = (j >= 0) & (j < sinks)
    return causal & (in_window | is_sink)


@wrong(
    "attention_blockwise",
    "sum and output of earlier blocks are not scaled down when a higher score comes",
    ("earlier", "rescal", "higher", "top - ", "maximum", "largest", "first block", "later block"),
    lambda draw: case(draw(3, 4), draw(9, 4), draw(9, 4), block=2),
)
def flash_attention(
    q,
    k,
    v,
    mask=None,
    bias=None,
    block=256,
    causal=False,
    q_positions=None,
    k_positions=None,
    window=None,
):
    L, S = q.shape[-2], k.shape[-2]
    q_pos = np.arange(S - L, S) if q_positions is None else np.asarray(q_positions)
    k_pos = np.arange(S) if k_positions is None else np.asarray(k_positions)
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    running_max = np.full((*lead, L, 1), -np.inf, q.dtype)
    running_sum = np.zeros((*lead, L, 1), q.dtype)
    acc = np.zeros((*lead, L, v.shape[-1]), q.dtype)
    for start in range(0, S, block):
        cols = slice(start, min(start + block, S))
        scores = q @ k[..., cols, :].swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        dist = q_pos[..., :, None] - k_pos[..., None, cols]
        if callable(bias):
            scores = scores + bias(dist)
        elif bias is not None:
            scores = scores + np.broadcast_to(bias, (*np.shape(bias)[:-1], S))[..., cols]
        keep = np.ones(dist.shape, dtype=bool)
        if mask is not None:
            keep = keep & np.broadcast_to(mask, (*np.shape(mask)[:-1], S))[..., cols]
        if causal:
            keep = keep & (dist >= 0)
        if window is not None:
            keep = keep & (dist < window)
        scores = np.where(keep, scores, -np.inf)
        running_max = np.maximum(running_max, scores.max(axis=-1, keepdims=True))
        safe = np.where(np.isfinite(running_max), running_max, 0).astype(q.dtype)
        p = np.exp(scores - safe)
        running_sum = running_sum + p.sum(axis=-1, keepdims=True)
        acc = acc + p @ v[..., cols, :]
    return acc / np.where(running_sum == 0, 1, running_sum).astype(q.dtype)


def _weights(draw, D=8, H=4, K=2):
    return {n: draw(D, H * K) for n in ("W_q", "W_k", "W_v")} | {"W_o": draw(H * K, D)}


@wrong(
    "multi_head_attention",
    "divided by the root of the whole width H K, not of a head's K",
    ("sqrt(H K)", "whole width", "all heads", "scale", "sqrt", "root", "d_model"),
    lambda draw: case(_weights(draw), draw(2, 3, 8), draw(2, 5, 8), 4),
)
def multi_head_attention(params, x, source, n_heads, mask=None):
    def project(inp, name):
        out = inp @ params[f"W_{name}"]
        return out + params[f"b_{name}"] if f"b_{name}" in params else out

    q, k, v = project(x, "q"), project(source, "k"), project(source, "v")
    d_model = q.shape[-1]
    d_head = d_model // n_heads
    n_kv = k.shape[-1] // d_head
    q = q.reshape(*q.shape[:2], n_kv, n_heads // n_kv, d_head)
    k = k.reshape(*k.shape[:2], n_kv, d_head)
    v = v.reshape(*v.shape[:2], n_kv, d_head)
    scores = np.einsum("blgrd,bsgd->bgrls", q, k) / math.sqrt(d_model)
    B, _, _, L, S = scores.shape
    scores = scores.reshape(B, n_heads, L, S)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = _stable_softmax(scores)
    grouped = weights.reshape(B, n_kv, n_heads // n_kv, L, S)
    mixed = np.einsum("bgrls,bsgd->blgrd", grouped, v).reshape(B, L, d_model)
    out = mixed @ params["W_o"]
    return out + params["b_o"] if "b_o" in params else out, weights


# ---- rotary --------------------------------------------------------------------------------------


def _rotate(x, positions, inv_freq):
    """Rotate neighbouring pairs, as complex numbers."""
    angles = np.asarray(positions)[..., None] * inv_freq
    z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)
    return np.stack([z.real, z.imag], axis=-1).reshape(x.shape).astype(x.dtype)


@wrong(
    "rotary_scores",
    "the keys are turned at the positions of the queries, the last ones if there are more keys",
    ("k_positions", "own positions", "positions of the quer", "keys", "same positions"),
    lambda draw: case(draw(3, 8), draw(3, 8), np.array([4, 5, 6]), np.array([0, 1, 2])),
)
def rotary_scores(q, k, q_positions, k_positions):
    d = q.shape[-1]
    inv_freq = 1.0 / 10000.0 ** (np.arange(0, d, 2) / d)
    q_pos = np.asarray(q_positions)
    if q_pos.shape == np.shape(k_positions):
        k_positions = q_pos  # self-attention: queries and keys share their positions
    q_rot, k_rot = _rotate(q, q_pos, inv_freq), _rotate(k, k_positions, inv_freq)
    return (q_rot @ k_rot.swapaxes(-1, -2) / math.sqrt(d)).astype(q.dtype)


def _pieces(f, q, k, v, frequencies):
    cache, outputs = None, []
    for part in (slice(0, 3), slice(3, 4), slice(4, 6)):
        out, cache = f(q[..., part, :], k[..., part, :], v[..., part, :], cache, frequencies)
        outputs.append(out)
    return np.concatenate(outputs, axis=-2)


@wrong(
    "cached_attention",
    "with RoPE each new piece begins at position 0 again",
    ("position", "begins at 0", "from 0", "offset", "each piece", "new piece"),
    lambda draw: in_a_row(_pieces, draw(6, 4), draw(6, 4), draw(6, 4), np.array([1.0, 0.1])),
)
def kv_cached_attention(q, k, v, cache=None, frequencies=None):
    n = q.shape[-2]
    if frequencies is not None:
        angles = np.arange(n)[:, None] * frequencies
        cos = np.cos(angles).astype(q.dtype)
        sin = np.sin(angles).astype(q.dtype)

        def turn(t):
            a, b = np.split(t, 2, axis=-1)
            return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

        q, k = turn(q), turn(k)
    if cache is not None:
        k = np.concatenate([cache["k"], k], axis=-2)
        v = np.concatenate([cache["v"], v], axis=-2)
    S = k.shape[-2]
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    allowed = np.arange(S)[None, :] <= np.arange(S - n, S)[:, None]
    scores = np.where(allowed, scores, -np.inf).astype(q.dtype)
    return _stable_softmax(scores) @ v, {"k": k, "v": v}


@wrong(
    "ntk_scaling",
    "the new base is b s, without the exponent d / (d - 2)",
    ("d / (d - 2)", "d/(d-2)", "d/(d - 2)", "exponent", "base"),
    lambda draw: case(8, 4.0),
)
def ntk_aware_frequencies(d, factor, base=10000.0):
    new_base = base * factor
    return new_base ** (-np.arange(0, d, 2, dtype=np.float64) / d)


@wrong(
    "yarn_scaling",
    "the ramp is the wrong way round: fast pairs are divided by s, slow ones stay",
    ("ramp", "wrong way", "revers", "exchang", "swap", "fast", "slow"),
    lambda draw: case(64, 8.0, 4096),
)
def yarn(d, factor, trained_length, base=10000.0, beta_fast=32.0, beta_slow=1.0, truncate=True):
    def find_dim(num_rotations):
        return d * math.log(trained_length / (num_rotations * 2 * math.pi)) / (2 * math.log(base))

    low, high = find_dim(beta_fast), find_dim(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    if low == high:
        high += 0.001
    theta = base ** (-np.arange(0, d, 2) / d)
    ramp = np.clip((np.arange(d // 2) - low) / (high - low), 0, 1)
    mixed = theta / factor * (1 - ramp) + theta * ramp
    return mixed, 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0


# ---- training ------------------------------------------------------------------------------------


@wrong(
    "cross_entropy",
    "ignored targets add 0 but are counted in the mean",
    ("ignor", "count", "mean over", "that count", "divided by"),
    lambda draw: case(draw(4, 5), np.array([0, 1, 2, 4]), ignore=4),
)
def masked_cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    valid = np.ones(targets.shape, bool) if ignore is None else targets != ignore
    safe_targets = np.where(valid, targets, 0)
    nll = -np.take_along_axis(log_probs, safe_targets[..., None], axis=-1).squeeze(-1)
    smooth = -log_probs.mean(axis=-1)
    loss = (1.0 - label_smoothing) * nll + label_smoothing * smooth
    return (loss * valid.astype(logits.dtype)).mean()


@wrong(
    "cross_entropy",
    "label smoothing spreads e over the V - 1 other classes, not over all V",
    ("smooth", "V - 1", "V-1", "other classes", "all classes"),
    lambda draw: case(draw(4, 5), np.array([0, 1, 2, 3]), label_smoothing=0.1),
)
def smoothed_cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    V = logits.shape[-1]
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    keep = np.ones(targets.shape, bool) if ignore is None else targets != ignore
    idx = np.where(keep, targets, 0)[..., None]
    dist = np.full_like(log_probs, label_smoothing / (V - 1))
    np.put_along_axis(dist, idx, 1 - label_smoothing, axis=-1)
    return -(dist * log_probs).sum(axis=-1)[keep].mean()


def _step(draw):
    params, grads = ({"W": draw(3, 2), "norm": {"gain": draw(2)}} for _ in range(2))
    m, v = ({"W": draw(3, 2) ** 2, "norm": {"gain": draw(2) ** 2}} for _ in range(2))
    return case(params, grads, {"m": m, "v": v, "step": 3}, 0.1)


def _adamw(params, grads, state, lr, betas, eps, wd, decay, l2=False, everything=False, path=""):
    """Walk the tree; return new params, m, v."""
    b1, b2 = betas
    t = state["step"] + 1
    new_p, new_m, new_v = {}, {}, {}
    for key, p in params.items():
        name = f"{path}/{key}" if path else key
        g, m, v = grads[key], state["m"][key], state["v"][key]
        if isinstance(p, dict):
            sub = {"m": m, "v": v, "step": state["step"]}
            new_p[key], new_m[key], new_v[key] = _adamw(
                p, g, sub, lr, betas, eps, wd, decay, l2, everything, name
            )
            continue
        decays = everything or (p.ndim >= 2 if decay is None else decay(name, p))
        if l2 and decays:
            g = g + wd * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        update = (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
        if decays and not l2:
            update = update + wd * p
        new_p[key], new_m[key], new_v[key] = p - lr * update, m, v
    return new_p, new_m, new_v


@wrong(
    "adamw",
    "the decay is added to the gradient, as L2 does: moments and denominator see it",
    ("L2", "gradient", "moment", "decoupl", "Adam with"),
    _step,
)
def adam_with_l2(
    params,
    grads,
    state,
    learning_rate,
    betas=(0.9, 0.98),
    eps=1e-9,
    weight_decay=0.01,
    decay=None,
):
    new, m, v = _adamw(
        params, grads, state, learning_rate, betas, eps, weight_decay, decay, l2=True
    )
    return new, {"m": m, "v": v, "step": state["step"] + 1}


@wrong(
    "adamw",
    "every array decays, gains and biases too, whatever `decay` says",
    ("every array", "all arrays", "gain", "biases", "two axes", "decay is ignored", "which decay"),
    _step,
)
def adamw_all(
    params,
    grads,
    state,
    learning_rate,
    betas=(0.9, 0.98),
    eps=1e-9,
    weight_decay=0.01,
    decay=None,
):
    new, m, v = _adamw(
        params, grads, state, learning_rate, betas, eps, weight_decay, decay, everything=True
    )
    return new, {"m": m, "v": v, "step": state["step"] + 1}


# ---- decoding ------------------------------------------------------------------------------------


@wrong(
    "speculative_accept",
    "after a refusal the next token comes from the large model's p, not from max(p - q, 0)",
    ("residual", "p - q", "max(", "refus", "reject", "difference", "what is left"),
    lambda draw: case(
        np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([[0.9, 0.1]]), np.array([0]), np.array([0.9])
    ),
)
def speculative_step(p, q, drafted, u):
    for i, token in enumerate(drafted):
        # Accept with probability min(1, p/q)
        if u[i] >= p[i, token] / q[i, token]:
            return i, p[i] / p[i].sum()
    return len(drafted), p[-1]
