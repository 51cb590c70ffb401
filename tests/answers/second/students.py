"""As a student of the second year writes them: NumPy, loops, what was understood."""

import math

import numpy as np
from answers.apart import case, right, wrong


@wrong(
    "softmax",
    "the axis is moved to the end and never moved back",
    ("axis", "axes", "moved", "transpos", "exchanged", "shape"),
    lambda draw: case(draw(2, 3, 4), axis=0),
)
def softmax(x, axis=-1):
    rows = np.moveaxis(x, axis, -1)
    out = np.zeros(rows.shape, dtype=x.dtype)
    for index in np.ndindex(*rows.shape[:-1]):
        row = rows[index]
        biggest = row.max()
        if biggest == -np.inf:
            continue  # all weights stay 0
        e = np.exp(row - biggest)
        out[index] = e / e.sum()
    return out


@wrong(
    "log_softmax",
    "the logarithm of a softmax: a tiny weight is 0 and its logarithm -inf",
    ("log(softmax", "logarithm of", "log of", "of the softmax", "tiny", "underflow", "small weight",
     "gives -inf", "log(0)", "log 0"),
    lambda draw: case(np.array([[0.0, -800.0, 3.0], [1.0, 2.0, 3.0]])),
)  # fmt: skip
def log_softmax(x, axis=-1):
    highest = np.max(x, axis=axis, keepdims=True)
    highest[np.isinf(highest)] = 0
    e = np.exp(x - highest)
    total = e.sum(axis=axis, keepdims=True)
    total[total == 0] = 1
    with np.errstate(divide="ignore"):
        return np.log(e / total)


@wrong(
    "causal_mask",
    "compares the places in the arrays, not the positions",
    ("index", "indices", "tril", "position", "places", "cache", "align", "begin at 0"),
    lambda draw: case(np.array([3, 4]), np.arange(5)),
)
def causal_mask(q_positions, k_positions):
    L = q_positions.shape[-1]
    S = k_positions.shape[-1]
    mask = np.zeros((*q_positions.shape[:-1], L, S), dtype=bool)
    for i in range(L):
        for j in range(S):
            if j <= i:
                mask[..., i, j] = True
    return mask


@wrong(
    "attention",
    "takes one text alone: arrays of two axes",
    ("axes", "axis", "batch", "leading", "unpack", "dimension", "shape", "one sequence", "heads"),
    lambda draw: case(draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 4)),
)
def one_text(q, k, v, mask=None, bias=None, scale=None):
    L, K = q.shape
    S = k.shape[0]
    if scale is None:
        scale = 1 / math.sqrt(K)
    scores = np.zeros((L, S), dtype=q.dtype)
    for i in range(L):
        for j in range(S):
            scores[i, j] = scale * np.dot(q[i], k[j])
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = np.zeros_like(scores)
    output = np.zeros((L, v.shape[1]), dtype=q.dtype)
    for i in range(L):
        m = max(scores[i])
        if m == -np.inf:
            continue
        weights[i] = np.exp(scores[i] - m)
        weights[i] /= sum(weights[i])
        for j in range(S):
            output[i] += weights[i, j] * v[j]
    return output, weights


@wrong(
    "sinusoidal",
    "i counts by twos and is doubled once more: base^(4 i / d)",
    ("exponent", "twice", "double", "2i", "2 i", "4i", "4 i", "squared", "square", "frequenc"),
    lambda draw: case(np.arange(6), 8),
)
def pos_encoding(positions, d_model, base=10000.0, layout="interleaved"):
    positions = np.asarray(positions)
    code = np.zeros((*positions.shape, d_model))
    for i in range(0, d_model, 2):
        angle = positions / base ** (2 * i / d_model)
        if layout == "interleaved":
            code[..., i] = np.sin(angle)
            code[..., i + 1] = np.cos(angle)
        else:
            code[..., i // 2] = np.sin(angle)
            code[..., d_model // 2 + i // 2] = np.cos(angle)
    return code


@wrong(
    "alibi_slopes",
    "one geometric sequence for every H, powers of two or not",
    ("power of two", "power of 2", "powers of two", "powers of 2", "geometric", "every number",
     "any number", "interleav", "rule"),
    lambda draw: case(6),
)  # fmt: skip
def slopes(n_heads):
    result = []
    for h in range(1, n_heads + 1):
        result.append(2 ** (-8 * h / n_heads))
    return np.array(result)


@wrong(
    "layer_norm",
    "eps is added to the standard deviation, not under the root",
    ("eps", "root", "std", "standard deviation"),
    lambda draw: case(0.01 * draw(2, 3, 5), draw(5), draw(5)),
)
def normalise(x, gain, bias, eps=1e-5):
    m = np.mean(x, axis=-1, keepdims=True)
    s = np.std(x, axis=-1, keepdims=True)
    return gain * (x - m) / (s + eps) + bias


@wrong(
    "rope",
    "the second component of a pair is made from the first one after its turn",
    ("already", "overwrit", "half-filled", "half filled", "filled", "in place", "new component",
     "new first", "after its turn", "first component", "not from x", "instead of x"),
    lambda draw: case(draw(2, 5, 8), np.arange(5)),
)  # fmt: skip
def turn_pairs(x, positions, frequencies=None, layout="interleaved"):
    K = x.shape[-1]
    if frequencies is None:
        frequencies = [10000.0 ** (-2 * i / K) for i in range(K // 2)]
    n = len(frequencies)
    y = x.copy()
    for i in range(n):
        if layout == "interleaved":
            a, b = 2 * i, 2 * i + 1
        else:
            a, b = i, i + n
        angle = np.asarray(positions) * frequencies[i]
        y[..., a] = y[..., a] * np.cos(angle) - y[..., b] * np.sin(angle)
        y[..., b] = y[..., a] * np.sin(angle) + y[..., b] * np.cos(angle)
    return y


@wrong(
    "softmax_gradient",
    "the diagonal of the Jacobian alone: w (1 - w) g",
    ("diagonal", "jacobian", "w (1 - w)", "(1 - w)", "1 - w", "mean", "other scores", "off-diag",
     "sigmoid", "subtract"),
    lambda draw: case(np.array([[0.2, 0.3, 0.5]]), draw(1, 3)),
)  # fmt: skip
def d_softmax(w, g):
    derivative = w * (1 - w)
    return derivative * g


def _next(*follower):
    """A model in which each token has one that follows it."""
    return lambda tokens: np.eye(len(follower))[np.array(follower)[tokens[:, -1]]]


@wrong(
    "greedy_tokens",
    "a row that has ended goes on with other tokens",
    ("ended", "`end`", "end token", "after the end", "finished", "goes on", "stop"),
    lambda draw: case(_next(3, 0, 3, 2), np.array([[1], [2]]), 4, end=0),
)
def greedy(next_logits, prompt, steps, end=None):
    tokens = prompt.copy()
    done = [False] * len(prompt)
    for _ in range(steps):
        logits = next_logits(tokens)
        new = logits.argmax(axis=-1)
        tokens = np.concatenate([tokens, new.reshape(-1, 1)], axis=1)
        for b in range(len(done)):
            if end is not None and new[b] == end:
                done[b] = True
        if all(done):
            break
    return tokens[:, prompt.shape[1] :]


@wrong(
    "rope_frequencies",
    "the exponent is -i / d: half of what it should be",
    ("exponent", "half", "2i", "2 i", "-i / d", "i / d", "i/d", "factor of 2", "factor 2",
     "slow", "square root"),
    lambda draw: case(8),
)  # fmt: skip
def thetas(d, base=10000.0):
    theta = np.zeros(d // 2)
    for i in range(d // 2):
        theta[i] = base ** (-i / d)
    return theta


@wrong(
    "relative_distance",
    "a distance without a sign: past and future are the same",
    ("abs", "sign", "negative", "future", "symmetric", "below 0"),
    lambda draw: case(np.arange(4), np.arange(6)),
)
def distances(q_positions, k_positions):
    return np.abs(q_positions[..., :, None] - k_positions[..., None, :])


@right(
    "causal_mask",
    lambda draw: case(draw.rng.integers(-3, 9, (2, 4)), draw.rng.integers(-3, 9, (2, 6))),
)
def step_function(q_positions, k_positions):
    q = np.asarray(q_positions, dtype=float)
    k = np.asarray(k_positions, dtype=float)
    ago = np.expand_dims(q, -1) - np.expand_dims(k, -2)
    return np.heaviside(ago, 1.0) == 1.0


@right("layer_norm", lambda draw: case(3 + 2 * draw(2, 3, 6), draw(6), draw(6), eps=1e-3))
def norm_by_loops(x, gain, bias, eps=1e-5):
    y = np.empty_like(x)
    D = x.shape[-1]
    for where in np.ndindex(x.shape[:-1]):
        token = [float(number) for number in x[where]]
        mean = math.fsum(token) / D
        variance = math.fsum((number - mean) ** 2 for number in token) / D
        for d in range(D):
            y[(*where, d)] = gain[d] * (token[d] - mean) * (variance + eps) ** -0.5 + bias[d]
    return y
