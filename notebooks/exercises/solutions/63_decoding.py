"""Solutions of the exercises of chapter 63."""

import numpy as np


def next_probabilities(logits, temperature, top_k):
    scaled = logits / temperature
    least = np.sort(scaled, axis=-1)[:, -top_k, None]
    e = np.where(scaled >= least, np.exp(scaled - scaled.max(axis=-1, keepdims=True)), 0)
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
