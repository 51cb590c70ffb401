"""Right answers in odd ways: complex numbers, recursion, einsum, integers, lists."""

import bisect
import functools
import itertools
import math
from fractions import Fraction

import numpy as np
from answers.apart import case, right

# ---- sinusoids, RoPE -----------------------------------------------------------------------------


@right(
    "sinusoidal",
    lambda draw: case(
        50 * draw(2, 3),
        2 * int(draw.rng.integers(1, 6)),
        layout=("interleaved", "concatenated")[int(draw.rng.integers(2))],
    ),
)
def sinusoidal(positions, d_model, base=10000.0, layout="interleaved"):
    """The view of complex numbers as pairs; i exp(-i a) = sin a + i cos a."""
    theta = np.asarray(positions, dtype=float)[..., None] * [
        base ** (-2 * i / d_model) for i in range(d_model // 2)
    ]
    z = 1j * np.exp(-1j * theta)
    if layout == "interleaved":
        return z.view(np.float64)
    return np.block([z.real, z.imag])


@right("sinusoidal_shift", lambda draw: case(9 * float(draw()), 8, base=100.0))
def shift(offset, d_model, base=10000.0):
    """A block for each pair, picked by the identity."""
    a = offset * base ** (-np.arange(d_model // 2) * 2 / d_model)
    turns = np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])
    return np.einsum("abn,nm->namb", turns, np.eye(d_model // 2)).reshape(d_model, d_model)


@right("rope_frequencies", lambda draw: case(2 * int(draw.rng.integers(1, 40)), 500.0))
def rope_frequencies(d, base=10000.0):
    """A list by accumulation: each is the one before, times the same ratio."""
    ratio = base ** (-2 / d)
    return list(itertools.accumulate([1.0, *[ratio] * (d // 2 - 1)], lambda a, b: a * b))


@right(
    "rope",
    lambda draw: case(
        draw(2, 3, 8),
        draw.rng.integers(-50, 50, 3),
        None if draw.rng.integers(2) else np.abs(draw(3)),
        layout=("interleaved", "half")[int(draw.rng.integers(2))],
    ),
)
def rope(x, positions, frequencies=None, layout="interleaved"):
    """One (K, K) matrix for each position, all in float64, then an einsum."""
    K = x.shape[-1]
    theta = np.array(
        [10000 ** (-2 * i / K) for i in range(K // 2)] if frequencies is None else frequencies
    )
    n = theta.size
    positions = np.asarray(positions, dtype=np.float64)
    R = np.zeros((*positions.shape, K, K))
    R[..., range(K), range(K)] = 1
    for i in range(n):
        a, b = (i, i + n) if layout == "half" else (2 * i, 2 * i + 1)
        angle = positions * theta[i]
        R[..., a, a] = R[..., b, b] = np.cos(angle)
        R[..., b, a] = np.sin(angle)
        R[..., a, b] = -R[..., b, a]
    return np.einsum("...ij,...j->...i", R, x.astype(np.float64)).astype(x.dtype)


@right("rope_matrix", lambda draw: case(20 * float(draw()), np.abs(draw(4))))
def rope_matrix(position, frequencies):
    """The exponential of the generator, by its eigenvalues."""
    d = 2 * len(frequencies)
    A = np.zeros((d, d))
    for i, w in enumerate(frequencies):
        A[2 * i + 1, 2 * i], A[2 * i, 2 * i + 1] = w, -w
    values, vectors = np.linalg.eigh(1j * A)
    return ((vectors * np.exp(-1j * position * values)) @ vectors.conj().T).real


# ---- softmax, attention --------------------------------------------------------------------------


@right("softmax", lambda draw: case(30 * draw(3, 4, 2), axis=int(draw.rng.integers(-3, 3))))
def softmax(x, axis=-1):
    """Row by row with Python's own numbers."""

    def row(numbers):
        top = max(numbers)
        if top == -math.inf:
            return numbers * 0 if math.isfinite(top) else np.zeros(len(numbers), numbers.dtype)
        e = [math.exp(float(n) - float(top)) for n in numbers]
        total = math.fsum(e)
        return np.array([n / total for n in e]).astype(numbers.dtype)

    return np.apply_along_axis(row, axis, x)


@right("log_softmax", lambda draw: case(300 * draw(3, 4), axis=int(draw.rng.integers(-2, 2))))
def log_softmax(x, axis=-1):
    """The sum of exponentials by np.logaddexp, one column after another, in float64."""
    wide = np.asarray(x, np.float64)
    columns = np.moveaxis(wide, axis, 0)
    total = functools.reduce(np.logaddexp, columns)
    result = columns - np.where(total == -np.inf, 0, total)
    return np.moveaxis(result, 0, axis).astype(x.dtype)


@right(
    "attention",
    lambda draw: case(
        draw(2, 3, 4),
        draw(2, 5, 4),
        draw(2, 5, 6),
        mask=draw(3, 5) > -0.5,
        bias=draw(2, 3, 5),
        scale=(None, 0.7)[int(draw.rng.integers(2))],
    ),
)
def attention(q, k, v, mask=None, bias=None, scale=None):
    """A list of both results; the mask multiplies, and the largest score is among all."""
    root = q.shape[-1] ** 0.5
    s = np.einsum("...ik,...jk->...ij", q, k)
    s = s / root if scale is None else s * scale
    if bias is not None:
        s = s + bias
    seen = np.ones_like(s) if mask is None else np.broadcast_to(mask, s.shape).astype(s.dtype)
    inside = np.where(seen > 0, s, -np.inf)
    top = np.nan_to_num(inside.max(-1, keepdims=True), neginf=0.0)
    w = np.where(seen > 0, np.exp(np.minimum(s - top, 0)), 0) * seen
    total = w.sum(-1, keepdims=True)
    w = (w / (total + (total == 0))).astype(s.dtype)
    return [np.einsum("...ij,...jk->...ik", w, v), w]


@right(
    "causal_mask",
    lambda draw: case(draw.rng.integers(0, 9, (2, 3)), draw.rng.integers(0, 9, (2, 5))),
)
def causal_mask(q_positions, k_positions):
    """Not in the future: the sign of the difference, as a table of three entries."""
    order = np.sign(np.expand_dims(k_positions, -2) - np.expand_dims(q_positions, -1))
    return np.array([True, False, True])[order]


@right("split_heads", lambda draw: case(draw(2, 3, 8), int(draw.rng.choice([1, 2, 4, 8]))))
def split_heads(x, n_heads):
    return np.stack(np.array_split(x, n_heads, axis=-1), axis=-3)


def _mha_call(draw):
    H, G, K, D = 4, int(draw.rng.choice([1, 2, 4])), 3, 5
    p = {"W_q": draw(D, H * K), "W_k": draw(D, G * K), "W_v": draw(D, G * K), "W_o": draw(H * K, D)}
    if draw.rng.integers(2):
        p |= {"b_q": draw(H * K), "b_k": draw(G * K), "b_v": draw(G * K), "b_o": draw(D)}
    return case(p, draw(2, 3, D), draw(2, 4, D), H, mask=draw(2, 1, 3, 4) > -0.7)


@right("multi_head_attention", _mha_call)
def multi_head_attention(params, x, source, n_heads, mask=None):
    """One head at a time, whose output is multiplied by its rows of W_o at once, and added up."""

    def part(name, inp, h, K):
        columns = slice(h * K, (h + 1) * K)
        out = inp @ params["W_" + name][:, columns]
        return out + params["b_" + name][columns] if "b_" + name in params else out

    K = params["W_q"].shape[1] // n_heads
    G = params["W_k"].shape[1] // K
    y, all_weights = 0, []
    for h in range(n_heads):
        g = h // (n_heads // G)
        q, k, v = part("q", x, h, K), part("k", source, g, K), part("v", source, g, K)
        scores = np.einsum("bik,bjk->bij", q, k) / math.sqrt(K)
        if mask is not None:
            whole = np.broadcast_to(mask, (len(x), n_heads, *scores.shape[1:]))
            scores[~whole[:, h]] = -np.inf
        w = softmax(scores)
        all_weights.append(w)
        y = y + w @ v @ params["W_o"][h * K : (h + 1) * K]
    return (y + params["b_o"] if "b_o" in params else y), np.stack(all_weights, axis=1)


# ---- layers, training ----------------------------------------------------------------------------


@right("layer_norm", lambda draw: case(3 * draw(2, 3, 6) + 1, draw(6), draw(6)))
def layer_norm(x, gain, bias, eps=1e-5):
    """Two matrices: one centres, one takes means; in float64 on the way."""
    D = x.shape[-1]
    mean = np.full((D, D), 1 / D)
    centred = x.astype(np.float64) @ (np.eye(D) - mean)
    y = centred * ((centred * centred) @ mean + eps) ** -0.5
    return (y * gain + bias).astype(x.dtype)


@right("gelu", lambda draw: case(3 * draw(2, 5), approximate=("none", "tanh")[int(draw() > 0)]))
def gelu(x, approximate="none"):
    """erfc of the other sign, number by number."""
    flat = []
    for n in map(float, np.ravel(x)):
        if approximate == "tanh":
            u = math.sqrt(2 / math.pi) * (n + 0.044715 * n**3)
            flat.append(n * (1 + math.tanh(u)) / 2)
        else:
            flat.append(n * math.erfc(-n / math.sqrt(2)) / 2)
    return np.array(flat, dtype=np.asarray(x).dtype).reshape(np.shape(x))


@right(
    "cross_entropy",
    lambda draw: case(
        9 * draw(2, 4, 5),
        draw.rng.integers(0, 5, (2, 4)),
        ignore=(None, 0)[int(draw.rng.integers(2))],
        label_smoothing=(0.0, 0.1)[int(draw.rng.integers(2))],
    ),
)
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    """Row by row, in Python's floats: log of the sum minus what the target mixes."""
    losses = []
    for place in np.ndindex(*targets.shape):
        t, row = int(targets[place]), [float(n) for n in logits[place]]
        if ignore is not None and t == ignore:
            continue
        top = max(row)
        log_sum = top + math.log(math.fsum(math.exp(n - top) for n in row))
        mixed = (1 - label_smoothing) * row[t] + label_smoothing * math.fsum(row) / len(row)
        losses.append(log_sum - mixed)
    return logits.dtype.type(math.fsum(losses) / len(losses))


def _adamw_call(draw):
    params, grads, m, v = (
        {"W": draw(3, 2), "norm": {"gain": draw(2), "deep": {"U": draw(2, 2)}}} for _ in range(4)
    )
    v["W"], v["norm"]["gain"], v["norm"]["deep"]["U"] = (
        a**2 for a in (v["W"], v["norm"]["gain"], v["norm"]["deep"]["U"])
    )
    return case(params, grads, {"m": m, "v": v, "step": int(draw.rng.integers(9))}, 0.1)


@right("adamw", _adamw_call)
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
    """Trees become lists of (path, array), and lists trees."""

    def flat(tree, path=()):
        for key, value in tree.items():
            yield from (
                flat(value, (*path, key)) if isinstance(value, dict) else [((*path, key), value)]
            )

    def grown(pairs):
        root = {}
        for path, value in pairs:
            spot = root
            for key in path[:-1]:
                spot = spot.setdefault(key, {})
            spot[path[-1]] = value
        return root

    decay = decay or (lambda path, array: array.ndim > 1)
    g, m0, v0 = dict(flat(grads)), dict(flat(state["m"])), dict(flat(state["v"]))
    step = state["step"] + 1
    m = {p: m0[p] + (1 - betas[0]) * (g[p] - m0[p]) for p in g}
    v = {p: v0[p] + (1 - betas[1]) * (g[p] ** 2 - v0[p]) for p in g}
    new = []
    for path, theta in flat(params):
        top = m[path] / (1 - math.pow(betas[0], step))
        change = top / (np.sqrt(v[path] / (1 - math.pow(betas[1], step))) + eps)
        shrink = 1 - learning_rate * weight_decay * bool(decay("/".join(path), theta))
        new.append((path, theta * shrink - learning_rate * change))
    return grown(new), {"m": grown(m.items()), "v": grown(v.items()), "step": step}


# ---- biases --------------------------------------------------------------------------------------


@right("alibi_slopes", lambda draw: case(int(draw.rng.integers(1, 40))))
def alibi_slopes(n_heads):
    """The authors' recursion: twice as many heads, every other slope; a list."""
    if n_heads & (n_heads - 1) == 0:
        return [2 ** (-8 * (h + 1) / n_heads) for h in range(n_heads)]
    closest = 1 << (n_heads.bit_length() - 1)
    return alibi_slopes(closest) + alibi_slopes(2 * closest)[0::2][: n_heads - closest]


@right(
    "alibi_bias",
    lambda draw: case(
        np.abs(draw(3)),
        draw.rng.integers(-9, 9, (2, 4, 5)),
        None if draw.rng.integers(2) else np.abs(draw(3)),
    ),
)
def alibi_bias(slopes, distance, future_slopes=None):
    """The smaller of two lines."""
    ahead = slopes if future_slopes is None else future_slopes
    d = np.moveaxis(np.multiply.outer(distance, np.ones_like(slopes)), -1, -3)
    m, f = (np.asarray(s)[:, None, None].astype(d.dtype) for s in (slopes, ahead))
    return (-np.where(d < 0, -d * f, d * m)).astype(slopes.dtype)


@right(
    "t5_bucket",
    lambda draw: case(draw.rng.integers(-300, 300, (4, 5)), bidirectional=bool(draw() > 0)),
)
def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    """No logarithm: whole numbers at which each bucket begins, and a search among them."""
    half = num_buckets // 2 if bidirectional else num_buckets
    exact = half // 2
    steps = half - exact
    begins = list(range(exact))
    n = exact
    for j in range(steps):  # the smallest n with (n / exact)^steps >= (max_distance / exact)^j
        while Fraction(n, exact) ** steps < Fraction(max_distance) ** j / Fraction(exact) ** j:
            n += 1
        begins.append(n)

    def one(i):
        n = abs(i) if bidirectional else max(i, 0)
        return bisect.bisect_right(begins, n) - 1 + (half if bidirectional and i < 0 else 0)

    flat = [one(int(i)) for i in np.ravel(distance)]
    return np.array(flat, dtype=np.int64).reshape(np.shape(distance))


@right("relative_shift", lambda draw: case(draw(2, 3, int(draw.rng.integers(3, 7)))))
def relative_shift(products):
    """Where each number comes from, by division with remainder."""
    L, N = products.shape[-2:]
    result = np.zeros_like(products)
    for place in range(L * N):
        row, column = divmod(place + L, N + 1)
        if column:
            result[..., place // N, place % N] = products[..., row, column - 1]
    return result


# ---- decoding ------------------------------------------------------------------------------------


def _table_call(draw):
    table = draw(6, 6)
    return case(lambda tokens: table[np.asarray(tokens)[:, -1]], draw.rng.integers(0, 6, (3, 2)), 5)


@right("greedy_tokens", _table_call)
def greedy_tokens(next_logits, prompt, steps, end=None):
    """Recursion over the steps; rows are lists."""
    rows = [list(map(int, row)) for row in prompt]

    def more(rows, left, done):
        if not left or all(done):
            return rows
        logits = next_logits(np.array(rows, dtype=prompt.dtype))
        best = [int(np.flatnonzero(row == row.max())[0]) for row in logits]
        new = [end if over else b for over, b in zip(done, best, strict=True)]
        done = [over or n == end for over, n in zip(done, new, strict=True)]
        return more([[*r, n] for r, n in zip(rows, new, strict=True)], left - 1, done)

    whole = more(rows, steps, [False] * len(rows))
    width = prompt.shape[1]
    return np.array([row[width:] for row in whole], dtype=prompt.dtype)
