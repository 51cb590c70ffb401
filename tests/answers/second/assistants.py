"""As a program writes them that was asked for the function: fluent, documented, plausible."""

import numpy as np
from answers.apart import case, in_a_row, right, wrong


@wrong(
    "attention",
    "-1e9 for -inf: a query that may see nothing attends to all keys alike",
    ("1e9", "1e+09", "finite", "for -inf", "instead of -inf", "not -inf", "uniform", "alike",
     "equal weight", "nothing", "large neg", "no key", "fully masked", "all masked", "hidden row",
     "masked row", "empty row"),
    lambda draw: case(
        draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 4), mask=np.array([[True], [False], [True]])
    ),
)  # fmt: skip
def attention(q, k, v, mask=None, bias=None, scale=None):
    """Compute scaled dot-product attention in a numerically stable way."""
    d_k = q.shape[-1]
    if scale is None:
        scale = 1.0 / float(np.sqrt(d_k))

    # Raw attention scores
    scores = np.matmul(q, np.swapaxes(k, -1, -2)) * scale

    # Additive bias (e.g. ALiBi or T5)
    if bias is not None:
        scores = scores + bias

    # Mask out disallowed positions with a large negative number
    if mask is not None:
        scores = np.where(mask, scores, -1e9)

    # Stable softmax
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    weights = weights / weights.sum(axis=-1, keepdims=True)

    return np.matmul(weights, v), weights


@wrong(
    "cross_entropy",
    "smoothing: e is shared among the V - 1 other tokens, not among all V",
    ("v - 1", "v-1", "smooth", "other tokens", "all v", "over v"),
    lambda draw: case(draw(2, 3, 5), draw.rng.integers(0, 5, (2, 3)), label_smoothing=0.2),
)
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    """Cross-entropy loss with optional label smoothing and an ignore index."""
    vocab_size = logits.shape[-1]
    flat_logits = logits.reshape(-1, vocab_size)
    flat_targets = np.asarray(targets).reshape(-1)

    if ignore is not None:
        keep = flat_targets != ignore
        flat_logits, flat_targets = flat_logits[keep], flat_targets[keep]

    shifted = flat_logits - flat_logits.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))

    # Smoothed target distribution
    smooth = np.full(log_probs.shape, label_smoothing / (vocab_size - 1), dtype=log_probs.dtype)
    smooth[np.arange(len(flat_targets)), flat_targets] = 1.0 - label_smoothing

    return -(smooth * log_probs).sum(axis=-1).mean()


@wrong(
    "next_probabilities",
    "the k best are picked from the softmax of all: rows do not sum to 1",
    ("sum to 1", "sum to one", "normalis", "normaliz", "before the softmax",
     "after the softmax", "hide", "hidden after"),
    lambda draw: case(draw(2, 6), 0.8, 3),
)  # fmt: skip
def next_probabilities(logits, temperature, top_k):
    """Temperature-scaled softmax followed by top-k filtering."""
    scaled = logits / temperature
    scaled = scaled - scaled.max(axis=-1, keepdims=True)
    probs = np.exp(scaled)
    probs = probs / probs.sum(axis=-1, keepdims=True)

    # Keep only the top-k probabilities
    threshold = np.partition(probs, -top_k, axis=-1)[:, -top_k][:, None]
    return np.where(probs >= threshold, probs, 0.0)


def _chain(table):
    """A model that looks at the last token alone."""
    return lambda tokens: table[tokens[:, -1]]


@wrong(
    "sample_tokens",
    "a row that has ended draws no number, so that the others get other ones",
    ("ended", "draw", "finished", "rng", "generator", "random"),
    lambda draw: case(
        _chain(np.array([[0.0, 0, 0, 0], [99, 0, 0, 0], [0, 1, 1, 1], [0, 1, 1, 1]])),
        np.array([[1], [2], [3]]), 6, np.random.default_rng(1), end=0,
    ),
)  # fmt: skip
def sample_tokens(next_logits, prompt, steps, rng, temperature=1.0, top_k=None, end=None):
    """Autoregressively sample up to `steps` tokens for every prompt in the batch."""
    tokens = np.array(prompt)
    batch_size, prompt_length = tokens.shape
    finished = np.zeros(batch_size, dtype=bool)

    for _ in range(steps):
        logits = np.asarray(next_logits(tokens), dtype=np.float64) / temperature
        if top_k is not None and top_k < logits.shape[-1]:
            kth = np.sort(logits, axis=-1)[:, -top_k][:, None]
            logits = np.where(logits < kth, -np.inf, logits)
        probs = np.exp(logits - logits.max(axis=-1, keepdims=True))
        probs /= probs.sum(axis=-1, keepdims=True)

        next_tokens = np.empty(batch_size, dtype=tokens.dtype)
        for b in range(batch_size):
            if finished[b]:
                next_tokens[b] = end
                continue
            cumulative = np.cumsum(probs[b])
            index = np.searchsorted(cumulative, rng.random(), side="right")
            next_tokens[b] = min(index, probs.shape[-1] - 1)
            if end is not None and next_tokens[b] == end:
                finished[b] = True

        tokens = np.concatenate([tokens, next_tokens[:, None]], axis=1)
        if finished.all():
            break

    return tokens[:, prompt_length:]


def _params(draw):
    return {"W": draw(3, 2), "b": draw(2), "norm": {"gain": draw(3)}}


def _fresh():
    return {"W": np.zeros((3, 2)), "b": np.zeros(2), "norm": {"gain": np.zeros(3)}}


@wrong(
    "adamw",
    "writes the moments into the state that came in",
    ("in place", "chang", "came in", "mutat", "modif", "copy", "same object",
     "overwrit", "as it was", "as they were"),
    lambda draw: case(
        _params(draw), _params(draw), {"m": _fresh(), "v": _fresh(), "step": 0}, 0.01
    ),
)  # fmt: skip
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
    """Perform one AdamW update on nested dictionaries of parameters."""
    beta1, beta2 = betas
    step = state["step"] + 1

    if decay is None:

        def decay(path, array):
            return array.ndim >= 2

    def update(p, g, m, v, prefix=""):
        new_params = {}
        for name in p:
            path = prefix + name
            if isinstance(p[name], dict):
                new_params[name] = update(p[name], g[name], m[name], v[name], path + "/")
                continue
            m[name] = beta1 * m[name] + (1 - beta1) * g[name]
            v[name] = beta2 * v[name] + (1 - beta2) * g[name] ** 2
            m_hat = m[name] / (1 - beta1**step)
            v_hat = v[name] / (1 - beta2**step)
            delta = m_hat / (np.sqrt(v_hat) + eps)
            if decay(path, p[name]):
                delta = delta + weight_decay * p[name]
            new_params[name] = p[name] - learning_rate * delta
        return new_params

    new_params = update(params, grads, state["m"], state["v"])
    return new_params, {"m": state["m"], "v": state["v"], "step": step}


def _piece_by_piece(function, q, k, v, ends):
    """Outputs of all pieces, each with the cache of the one before."""
    outputs, cache, begin = [], None, 0
    for end in ends:
        part = (a[..., begin:end, :] for a in (q, k, v))
        output, cache = function(*part, cache)
        outputs.append(output)
        begin = end
    return tuple(outputs)


@wrong(
    "cached_attention",
    "no mask: tokens of one piece see those behind them",
    ("causal", "future", "mask", "later", "behind", "within", "one piece", "of the piece"),
    lambda draw: in_a_row(_piece_by_piece, draw(2, 6, 4), draw(2, 6, 4), draw(2, 6, 4), (3, 4, 6)),
)
def cached_attention(q, k, v, cache=None, frequencies=None):
    """Incremental attention with a key-value cache and optional rotary embeddings."""
    past_length = 0 if cache is None else cache["keys"].shape[-2]

    if frequencies is not None:
        positions = np.arange(past_length, past_length + q.shape[-2])
        angles = positions[:, None] * frequencies[None, :]
        cos = np.cos(angles).astype(q.dtype)
        sin = np.sin(angles).astype(q.dtype)

        def rotate(x):
            first, second = np.split(x, 2, axis=-1)
            return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)

        q, k = rotate(q), rotate(k)

    if cache is not None:
        k = np.concatenate([cache["keys"], k], axis=-2)
        v = np.concatenate([cache["values"], v], axis=-2)

    # The cache only ever holds past tokens, so no causal mask is needed here.
    scores = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
    scores -= scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ v, {"keys": k, "values": v}


@wrong(
    "attention_blockwise",
    "the sum of values is not scaled down when a higher score comes",
    ("mixed", "rescal", "scaled", "exp(top", "higher", "old maximum", "maximum", "largest",
     "earlier blocks", "correction"),
    lambda draw: case(3 * draw(2, 4, 5), 3 * draw(2, 9, 5), draw(2, 9, 3), block=3),
)  # fmt: skip
def attention_blockwise(
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
    """Flash-style attention: stream over key blocks with an online softmax."""
    L, d = q.shape[-2:]
    S = k.shape[-2]
    q_at = np.arange(S - L, S) if q_positions is None else np.asarray(q_positions)
    k_at = np.arange(S) if k_positions is None else np.asarray(k_positions)
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])

    running_max = np.full((*lead, L, 1), -np.inf, dtype=q.dtype)
    running_sum = np.zeros((*lead, L, 1), dtype=q.dtype)
    output = np.zeros((*lead, L, v.shape[-1]), dtype=q.dtype)

    for start in range(0, S, block):
        columns = slice(start, min(start + block, S))
        scores = q @ np.swapaxes(k[..., columns, :], -1, -2) / float(np.sqrt(d))
        distance = q_at[..., :, None] - k_at[..., None, columns]
        if callable(bias):
            scores = scores + bias(distance)
        elif bias is not None:
            scores = scores + np.broadcast_to(bias, (*np.shape(bias)[:-1], S))[..., columns]
        if mask is not None:
            seen = np.broadcast_to(mask, (*np.shape(mask)[:-1], S))[..., columns]
            scores = np.where(seen, scores, -np.inf)
        if causal:
            scores = np.where(distance >= 0, scores, -np.inf)
        if window is not None:
            scores = np.where(distance < window, scores, -np.inf)

        new_max = np.maximum(running_max, scores.max(axis=-1, keepdims=True))
        safe_max = np.where(np.isneginf(new_max), 0.0, new_max).astype(q.dtype)
        correction = np.exp(running_max - safe_max)
        p = np.exp(scores - safe_max).astype(q.dtype)

        running_sum = running_sum * correction + p.sum(axis=-1, keepdims=True)
        output = output + p @ v[..., columns, :]
        running_max = new_max

    return output / np.where(running_sum == 0, 1, running_sum)


def _relu(x):
    return np.maximum(x, 0)


@wrong(
    "feed_forward",
    "asks for b_1 and b_2 where there are none",
    ("bias", "b_1", "keyerror", "missing"),
    lambda draw: case({"W_1": draw(4, 6), "W_2": draw(6, 4)}, draw(2, 3, 4)),
)
def feed_forward(params, x, activation="relu"):
    """Position-wise feed-forward network."""
    from math import erf, pi, sqrt

    activations = {
        "relu": _relu,
        "gelu": lambda z: (0.5 * z * (1 + np.vectorize(erf)(z / sqrt(2)))).astype(z.dtype),
        "gelu_tanh": lambda z: 0.5 * z * (1 + np.tanh(sqrt(2 / pi) * (z + 0.044715 * z**3))),
        "silu": lambda z: z / (1 + np.exp(-z)),
    }
    if activation not in activations:
        raise ValueError(f"Unknown activation: {activation}")

    hidden = x @ params["W_1"] + params["b_1"]
    hidden = activations[activation](hidden)
    return hidden @ params["W_2"] + params["b_2"]


@right(
    "sample_tokens",
    lambda draw: case(
        _chain(2 * draw(7, 7)), draw.rng.integers(1, 7, (3, 2)), 5,
        np.random.default_rng(draw.rng.integers(99)), temperature=0.3 + draw.rng.random(),
        top_k=[None, 3, 7][draw.rng.integers(3)], end=[None, 0][draw.rng.integers(2)],
    ),
)  # fmt: skip
def sample_with_choice(next_logits, prompt, steps, rng, temperature=1.0, top_k=None, end=None):
    """Sample with `rng.choice`, which draws one uniform number per call."""
    sequences = [list(row) for row in np.asarray(prompt)]
    new = [[] for _ in sequences]
    while steps > 0 and not (new[0] and all(end is not None and end in row for row in new)):
        steps -= 1
        logits = np.array(next_logits(np.array(sequences)), dtype=np.float64)
        for row, sequence, so_far in zip(logits, sequences, new, strict=True):
            if top_k is not None:
                row[row < sorted(row)[-min(top_k, len(row))]] = -np.inf
            p = np.exp((row - max(row)) / temperature)
            token = int(rng.choice(len(p), p=p / p.sum()))
            if end is not None and end in so_far:
                token = end
            so_far.append(token)
            sequence.append(token)
    return np.array(new, dtype=np.int64).reshape(len(sequences), -1)


@right(
    "t5_bucket",
    lambda draw: case(
        draw.rng.integers(-300, 300, (3, 40)), num_buckets=[8, 16, 32][draw.rng.integers(3)],
        max_distance=[32, 64, 128][draw.rng.integers(3)],
        bidirectional=bool(draw.rng.integers(2)),
    ),
)  # fmt: skip
def bucket_by_counting(distance, num_buckets=32, max_distance=128, bidirectional=True):
    """Whole numbers alone: count the edges of logarithmic buckets that were reached."""
    half = num_buckets // 2 if bidirectional else num_buckets
    exact = half // 2
    span = half - exact

    def bucket(ago):
        ago = int(ago)
        n = abs(ago) if bidirectional else max(ago, 0)
        if n >= exact:
            reached = (n**span * exact**t >= max_distance**t * exact**span for t in range(1, span))
            n = exact + sum(reached)
        return n + half * (bidirectional and ago < 0)

    distance = np.asarray(distance)
    flat = [bucket(ago) for ago in distance.ravel().tolist()]
    return np.array(flat, dtype=np.int64).reshape(distance.shape)
