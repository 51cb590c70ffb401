"""Students' answers: loops, lists, in-place writes, the specification followed line by line."""

import math

import numpy as np
from answers.apart import case, in_a_row, wrong


def soft(row):
    top = max(row)
    if top == -math.inf:
        return [0.0 for _ in row]
    e = [math.exp(s - top) for s in row]
    return [n / sum(e) for n in e]


@wrong(
    "relative_distance",
    "key minus query: the sign is the other one",
    ("sign", "key minus query", "j - i", "exchang", "swap", "negative", "the past"),
    lambda draw: case(np.array([4, 5]), np.arange(6)),
)
def relative_distance(q_positions, k_positions):
    k = np.expand_dims(k_positions, -2)
    q = np.expand_dims(q_positions, -1)
    return k - q


@wrong(
    "causal_mask",
    "> for >=: a token does not see itself",
    ("itself", "strict", ">=", "own"),
    lambda draw: case(np.arange(3), np.arange(3)),
)
def causal_mask(q_positions, k_positions):
    L, S = q_positions.shape[-1], k_positions.shape[-1]
    shape = np.broadcast_shapes(q_positions.shape[:-1], k_positions.shape[:-1])
    m = np.zeros(shape + (L, S), dtype=bool)
    for i in range(L):
        for j in range(S):
            m[..., i, j] = q_positions[..., i] > k_positions[..., j]
    return m


@wrong(
    "attention",
    "divided by the root of the number of keys, S, not of the width K",
    ("scale", "sqrt", "root", "number of keys"),
    lambda draw: case(draw(3, 4), draw(5, 4), draw(5, 4)),
)
def attention(q, k, v, mask=None, bias=None, scale=None):
    n = k.shape[-2]
    s = (q @ np.swapaxes(k, -1, -2)) * (scale if scale is not None else 1 / math.sqrt(n))
    if bias is not None:
        s = s + bias
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    top[top == -np.inf] = 0
    w = np.exp(s - top)
    total = w.sum(axis=-1, keepdims=True)
    total[total == 0] = 1
    w = w / total
    return w @ v, w


@wrong(
    "attention",
    "the weights are an array (L, L): it works only with as many keys as queries",
    ("L = S", "square", "as many", "number of keys", "(L, S)", "out of bounds", "other than L"),
    lambda draw: case(draw(3, 4), draw(5, 4), draw(5, 4)),
)
def attention_by_loops(q, k, v, mask=None, bias=None, scale=None):
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    L, K = q.shape[-2:]
    scale = 1 / math.sqrt(K) if scale is None else scale
    q = np.broadcast_to(q, batch + q.shape[-2:])
    k = np.broadcast_to(k, batch + k.shape[-2:])
    v = np.broadcast_to(v, batch + v.shape[-2:])
    weights = np.zeros(batch + (L, L), dtype=q.dtype)
    out = np.zeros(batch + (L, v.shape[-1]), dtype=q.dtype)
    if mask is not None:
        mask = np.broadcast_to(mask, batch + (L, k.shape[-2]))
    if bias is not None:
        bias = np.broadcast_to(bias, batch + (L, k.shape[-2]))
    for b in np.ndindex(*batch):
        for i in range(L):
            row = []
            for j in range(k.shape[-2]):
                s = scale * float(q[b][i] @ k[b][j])
                if bias is not None:
                    s += float(bias[b][i, j])
                if mask is not None and not mask[b][i, j]:
                    s = -math.inf
                row.append(s)
            for j, w in enumerate(soft(row)):
                weights[b][i, j] = w
                out[b][i] += weights[b][i, j] * v[b][j]
    return out, weights


@wrong(
    "pooled_attention",
    "the outputs are summed, not averaged",
    ("sum", "mean", "averag", "L times", "times the expected"),
    lambda draw: case(draw(3, 4)),
)
def pooled_attention(x):
    score = x @ np.swapaxes(x, -1, -2) / math.sqrt(x.shape[-1])
    score = np.exp(score - score.max(axis=-1, keepdims=True))
    weight = score / score.sum(axis=-1, keepdims=True)
    result = np.zeros_like(x[..., 0, :])
    for i in range(x.shape[-2]):
        for j in range(x.shape[-2]):
            result += weight[..., i, j, None] * x[..., j, :]
    return result


@wrong(
    "digit_positions",
    "the count is raised after it is read: the first digit of a number is 0",
    ("from 0", "first digit", "off by", "one too", "begins", "starts", "count"),
    lambda draw: case(np.array([7, 1, 2, 7, 1]), np.array([1, 2])),
)
def digit_positions(token_ids, digit_ids, offset=0):
    result = np.zeros(token_ids.shape, dtype=int)
    for row in np.ndindex(*token_ids.shape[:-1]):
        count = 0
        for i, token in enumerate(token_ids[row]):
            if token in digit_ids:
                result[row + (i,)] = count + offset
                count += 1
            else:
                count = 0
    return result


@wrong(
    "rope_matrix",
    "the minus stands below the diagonal: the transposed matrix, which turns the other way",
    ("transpos", "other way", "sign", "clockwise", "minus", "row vector", "backward"),
    lambda draw: case(2, np.array([1.0, 0.1])),
)
def rope_matrix(position, frequencies):
    d = 2 * len(frequencies)
    R = np.zeros((d, d))
    for i in range(d // 2):
        c, s = math.cos(position * frequencies[i]), math.sin(position * frequencies[i])
        R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, s], [-s, c]]
    return R


@wrong(
    "rope",
    "positions[i] is read for every token: one position for all, of the shape (1,), fails",
    (
        "(1,)",
        "broadcast",
        "one position",
        "positions of",
        "positions[",
        "position[",
        "out of bounds",
    ),
    lambda draw: case(draw(3, 8), np.array([5])),
)
def rope(x, positions, frequencies=None, layout="interleaved"):
    K = x.shape[-1]
    if frequencies is None:
        frequencies = [10000.0 ** (-2 * i / K) for i in range(K // 2)]
    n = len(frequencies)
    positions = np.asarray(positions)
    y = x.copy()
    for l in range(x.shape[-2]):
        for i in range(n):
            a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + n)
            angle = np.asarray(positions[..., l] * frequencies[i])
            cos, sin = np.cos(angle).astype(x.dtype), np.sin(angle).astype(x.dtype)
            y[..., l, a] = x[..., l, a] * cos - x[..., l, b] * sin
            y[..., l, b] = x[..., l, a] * sin + x[..., l, b] * cos
    return y


@wrong(
    "rope_permutation",
    "the way back: from the half-split layout to the interleaved one",
    ("way back", "inverse", "interleaved", "other direction", "back", "undo"),
    lambda draw: case(8),
)
def rope_permutation(d):
    p = [0] * d
    for i in range(d // 2):
        p[2 * i] = i
        p[2 * i + 1] = d // 2 + i
    return np.array(p)


@wrong(
    "kerple_log_bias",
    "np.log10 for the natural logarithm",
    ("log10", "natural", "base 10", "decimal", "0.4343", "ln 10", "logarithm"),
    lambda draw: case(np.array([1.0, 2.0]), np.array([0.5, 3.0]), np.arange(6).reshape(2, 3)),
)
def kerple_log_bias(p, a, distance):
    n = np.abs(distance)[..., None, :, :].astype(p.dtype)
    return -p[:, None, None] * np.log10(1 + a[:, None, None] * n)


@wrong(
    "alibi_bias",
    "the future gets 0: only the past is punished",
    ("future", "past", "|", "absolute", "both sides", "one side"),
    lambda draw: case(np.array([0.5, 0.25]), np.subtract.outer(np.arange(3), np.arange(3))),
)
def alibi_bias(slopes, distance, future_slopes=None):
    distance = np.asarray(distance)
    H = len(slopes)
    out = np.zeros((*distance.shape[:-2], H, *distance.shape[-2:]), dtype=slopes.dtype)
    for h in range(H):
        past = np.maximum(distance, 0).astype(slopes.dtype)
        out[..., h, :, :] = -slopes[h] * past
        if future_slopes is not None:
            ahead = np.maximum(-distance, 0).astype(slopes.dtype)
            out[..., h, :, :] -= future_slopes[h] * ahead
    return out


def _next(table):
    def next_logits(tokens):
        return table[np.asarray(tokens)[:, -1]]

    return next_logits


_CHAIN = np.roll(np.eye(5), 1, axis=1)  # 0 -> 1 -> 2 -> 3 -> 4 -> 0


@wrong(
    "greedy_tokens",
    "a row that has ended goes on",
    ("ended", "end", "goes on", "stop"),
    lambda draw: case(_next(_CHAIN), np.array([[0], [3]]), 6, end=3),
)
def greedy_tokens(next_logits, prompt, steps, end=None):
    tokens = prompt.copy()
    done = np.zeros(len(prompt), dtype=bool)
    for _ in range(steps):
        new = np.argmax(next_logits(tokens), axis=-1)
        tokens = np.concatenate([tokens, new[:, None]], axis=1)
        if end is not None:
            done |= new == end
            if done.all():
                break
    return tokens[:, prompt.shape[1] :]


def _beam_call(draw, V=4, steps=4):
    log_p = draw(steps, V, V)
    log_p[:2, :, 3] -= 5  # nobody ends at once
    log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
    return case(log_p, 0, steps, 3, 3, 0.9)


@wrong(
    "best_beam",
    "alpha is never used: ended sequences compete by their sums alone",
    ("length", "alpha", "penalty", "divided"),
    _beam_call,
)
def best_beam(log_p, start, steps, beams, end, alpha):
    alive, finished = [(0.0, [])], []
    for n in range(steps):
        grown = []
        for total, tokens in alive:
            last = tokens[-1] if tokens else start
            for t in range(log_p.shape[-1]):
                grown.append((total + log_p[n, last, t], [*tokens, t]))
        grown.sort(key=lambda pair: -pair[0])
        grown = grown[: 2 * beams]
        finished += [pair for pair in grown if pair[1][-1] == end]
        alive = [pair for pair in grown if pair[1][-1] != end][:beams]
    score, tokens = max(finished, key=lambda pair: pair[0])
    return np.array(tokens), score


@wrong(
    "clip_gradients",
    "each array is shortened by its own norm, not all by one factor",
    ("each array", "own norm", "per array", "one factor", "every array", "separate", "by itself"),
    lambda draw: case({"W": 3 * draw(3, 2), "norm": {"gain": draw(3), "bias": draw(3)}}, 1.0),
)
def clip_gradients(grads, max_norm):
    squares = []

    def clip(tree):
        new = {}
        for key, g in tree.items():
            if isinstance(g, dict):
                new[key] = clip(g)
            else:
                n = math.sqrt((g.astype(float) ** 2).sum())
                squares.append(n**2)
                new[key] = (g * (max_norm / n)).astype(g.dtype) if n > max_norm else g.copy()
        return new

    clipped = clip(grads)
    return clipped, math.sqrt(sum(squares))


def _twice(sgd, params, grads):
    one, state = sgd(params, grads, 0.1, 0.9)
    two, later = sgd(one, grads, 0.1, 0.9, state)
    return one, state, two, later


@wrong(
    "sgd",
    "velocities are written over in place: the state that came in changes",
    ("in place", "copy", "changed", "changes its", "came in", "same array", "state"),
    lambda draw: in_a_row(_twice, {"W": draw(3, 2), "b": draw(2)}, {"W": draw(3, 2), "b": draw(2)}),
)
def sgd(params, grads, learning_rate, momentum=0.0, state=None):
    if state is None:
        state = {
            k: sgd(p, grads[k], 0.0)[1] if isinstance(p, dict) else np.zeros_like(p)
            for k, p in params.items()
        }
    new = {}
    for k, p in params.items():
        if isinstance(p, dict):
            new[k], state[k] = sgd(p, grads[k], learning_rate, momentum, state[k])
        else:
            state[k] *= momentum
            state[k] -= learning_rate * grads[k]
            new[k] = p + state[k]
    return new, state


@wrong(
    "to_digits",
    "the least significant digit comes first",
    ("least", "order", "revers", "most significant", "first"),
    lambda draw: case(np.array([123, 7]), 10, 3),
)
def to_digits(n, base, width):
    digits = []
    rest = np.asarray(n)
    for i in range(width):
        digits.append(rest % base if i == 0 else np.floor(rest) % base)
        rest = rest // base
    return np.stack(digits, axis=-1)
