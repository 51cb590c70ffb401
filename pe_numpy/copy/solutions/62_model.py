"""Solutions of the exercises of chapter 62."""

import math

import numpy as np


def shift_right(targets, begin):
    inputs = np.roll(targets, 1, axis=1)
    inputs[:, 0] = begin
    return inputs


def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    top = logits.max(axis=-1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    right = np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]
    losses = -(1 - label_smoothing) * right - label_smoothing * log_p.mean(axis=-1)
    counts = np.ones(targets.shape, bool) if ignore is None else targets != ignore
    return losses[counts].mean()


def warmup_schedule(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def cosine_schedule(step, steps, peak, warmup=0.05, floor=0.02):
    rising = round(warmup * steps)
    if step <= rising:
        return peak * step / rising
    fallen = (step - rising) / (steps - rising)
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * fallen)) / 2)


def dropout(x, rate, rng=None):
    if rng is None:
        return x
    kept = rng.random(x.shape, dtype=np.float32) >= rate
    return x * kept.astype(x.dtype) / (1 - rate)


def init_feed_forward(d_model, d_ff, n_layers, rng):
    W_1 = rng.standard_normal((d_model, d_ff)) / math.sqrt(d_model)
    W_2 = rng.standard_normal((d_ff, d_model)) / math.sqrt(d_ff)
    W_2 = W_2 / math.sqrt(2 * n_layers)  # it ends a sublayer
    return {"W_1": W_1, "b_1": np.zeros(d_ff), "W_2": W_2, "b_2": np.zeros(d_model)}
