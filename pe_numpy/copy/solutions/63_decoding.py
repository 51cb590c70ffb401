"""Solutions of the exercises of chapter 63."""

import math

import numpy as np


def greedy_tokens(next_logits, prompt, steps, end=None):
    tokens, over = prompt, np.zeros(len(prompt), bool)
    for _ in range(steps):
        new = next_logits(tokens).argmax(axis=-1)
        if end is not None:
            new = np.where(over, end, new)
            over = over | (new == end)
        tokens = np.concatenate([tokens, new[:, None]], axis=1)
        if over.all():
            break
    return tokens[:, prompt.shape[1] :]


def next_probabilities(logits, temperature, top_k):
    scaled = logits / temperature
    least = np.sort(scaled, axis=-1)[:, -top_k, None]
    kept = np.where(scaled >= least, scaled, -np.inf)
    e = np.exp(kept - kept.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def cached_rows(prefixes, first, cached):
    lengths = range(first, first + prefixes)
    return lengths[-1] if cached else sum(lengths)


def causal_mask(q_positions, k_positions):
    return q_positions[..., :, None] >= k_positions[..., None, :]  # a token sees itself


def best_beam(log_p, start, steps, beams, end, alpha):
    alive, ended = [(0.0, [])], []
    for n in range(steps):
        grown = [
            (total + more, [*tokens, token])
            for total, tokens in alive
            for token, more in enumerate(log_p[n, tokens[-1] if tokens else start])
        ]
        grown.sort(key=lambda pair: pair[0], reverse=True)
        alive = []
        for total, tokens in grown[: 2 * beams]:
            if tokens[-1] == end:
                ended.append((total / ((5 + len(tokens)) / 6) ** alpha, tokens))
            elif len(alive) < beams:
                alive.append((total, tokens))
    score, tokens = max(ended)
    return np.array(tokens), score


def speculative_accept(p, q, drafted, u):
    for n, x in enumerate(drafted):
        if u[n] >= p[n, x] / q[n, x]:
            rest = np.maximum(p[n] - q[n], 0)
            return n, rest / rest.sum()
    return len(drafted), p[-1]


def turn(x, positions, frequencies):
    angles = positions[:, None] * frequencies
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def cached_attention(q, k, v, cache=None, frequencies=None):
    keys, values = cache or (k[..., :0, :], v[..., :0, :])
    new = np.arange(keys.shape[-2], keys.shape[-2] + k.shape[-2])  # positions go on
    if frequencies is not None:
        q, k = turn(q, new, frequencies), turn(k, new, frequencies)
    keys = np.concatenate([keys, k], axis=-2)  # a new array: the old cache stays
    values = np.concatenate([values, v], axis=-2)
    scores = q @ keys.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    scores = np.where(new[:, None] >= np.arange(keys.shape[-2]), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ values, (keys, values)


def sample_tokens(next_logits, prompt, steps, rng, temperature=1.0, top_k=None, end=None):
    tokens, over = prompt, np.zeros(len(prompt), bool)
    for _ in range(steps):
        logits = next_logits(tokens)
        p = next_probabilities(logits, temperature, top_k or logits.shape[-1])
        u = rng.random((len(p), 1))
        new = (p.cumsum(axis=-1) <= u).sum(axis=-1)
        if end is not None:
            new = np.where(over, end, new)
            over = over | (new == end)
        tokens = np.concatenate([tokens, new[:, None]], axis=1)
        if over.all():
            break
    return tokens[:, prompt.shape[1] :]
