"""Losses, schedules, steps and decoding."""
# ruff: noqa: F811

import math

import numpy as np

from answers import wrong


def log_p_of(logits):
    top = logits.max(-1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))


def picked(log_p, targets):
    return np.take_along_axis(log_p, targets[..., None], -1)[..., 0]


def kept(targets, ignore):
    return np.ones(targets.shape, bool) if ignore is None else targets != ignore


@wrong("smoothing is spread over the V - 1 others")
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    keep = kept(targets, ignore)
    log_p, t, e = log_p_of(logits[keep]), targets[keep], label_smoothing
    own = picked(log_p, t)
    others = (log_p.sum(-1) - own) / (logits.shape[-1] - 1)
    return logits.dtype.type(-((1 - e) * own + e * others).mean())


@wrong("smoothing is spread over V - 2, as in the Annotated Transformer")
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    keep = kept(targets, ignore)
    log_p, t, e = log_p_of(logits[keep]), targets[keep], label_smoothing
    own = picked(log_p, t)
    others = (log_p.sum(-1) - own) / (logits.shape[-1] - 2)
    return logits.dtype.type(-((1 - e) * own + e * others).mean())


@wrong("smoothing is ignored")
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    keep = kept(targets, ignore)
    return -picked(log_p_of(logits[keep]), targets[keep]).mean()


@wrong("ignored targets count")
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    log_p = log_p_of(logits)
    own = np.where(kept(targets, ignore), targets, 0)
    own = picked(log_p, np.where(targets < 0, 0, targets)) if ignore is None else picked(log_p, own)
    e = label_smoothing
    return logits.dtype.type(-((1 - e) * own + e * log_p.mean(-1)).mean())


@wrong("ignored targets are 0, but count in the mean")
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    keep = kept(targets, ignore)
    log_p = log_p_of(logits)
    own = picked(log_p, np.where(keep, targets, 0))
    e = label_smoothing
    losses = -((1 - e) * own + e * log_p.mean(-1))
    return logits.dtype.type((losses * keep).mean())


@wrong("the sum for the mean")
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    keep = kept(targets, ignore)
    log_p, t, e = log_p_of(logits[keep]), targets[keep], label_smoothing
    return logits.dtype.type(-((1 - e) * picked(log_p, t) + e * log_p.mean(-1)).sum())


@wrong("the sign")
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    keep = kept(targets, ignore)
    log_p, t, e = log_p_of(logits[keep]), targets[keep], label_smoothing
    return logits.dtype.type(((1 - e) * picked(log_p, t) + e * log_p.mean(-1)).mean())


@wrong("log(softmax + epsilon)")
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    keep = kept(targets, ignore)
    p = np.exp(log_p_of(logits[keep]))
    log_p, t, e = np.log(p + 1e-9), targets[keep], label_smoothing
    return logits.dtype.type(-((1 - e) * picked(log_p, t) + e * log_p.mean(-1)).mean())


@wrong("bits for nats")
def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    keep = kept(targets, ignore)
    log_p, t, e = log_p_of(logits[keep]) / math.log(2), targets[keep], label_smoothing
    return logits.dtype.type(-((1 - e) * picked(log_p, t) + e * log_p.mean(-1)).mean())


@wrong("no root of the width")
def warmup_schedule(step, d_model, warmup):
    return min(step**-0.5, step * warmup**-1.5)


@wrong("multiplied with the root of the width")
def warmup_schedule(step, d_model, warmup):
    return d_model**0.5 * min(step**-0.5, step * warmup**-1.5)


@wrong("the larger of both")
def warmup_schedule(step, d_model, warmup):
    return d_model**-0.5 * max(step**-0.5, step * warmup**-1.5)


@wrong("warmup^-0.5 for warmup^-1.5")
def warmup_schedule(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-0.5)


@wrong("the floor is ignored")
def cosine_schedule(step, steps, peak, warmup=0.05, floor=0.02):
    rising = round(warmup * steps)
    if step <= rising:
        return peak * step / rising
    return peak * 0.5 * (1 + math.cos(math.pi * (step - rising) / (steps - rising)))


@wrong("the warm-up is not taken off: the cosine runs over all steps")
def cosine_schedule(step, steps, peak, warmup=0.05, floor=0.02):
    rising = round(warmup * steps)
    if step <= rising:
        return peak * step / rising
    return peak * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * step / steps)))


@wrong("the warm-up's share is ignored")
def cosine_schedule(step, steps, peak, warmup=0.05, floor=0.02):
    rising = round(0.05 * steps)
    if step <= rising:
        return peak * step / rising
    gone = (step - rising) / (steps - rising)
    return peak * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * gone)))


@wrong("the floor is an absolute rate")
def cosine_schedule(step, steps, peak, warmup=0.05, floor=0.02):
    rising = round(warmup * steps)
    if step <= rising:
        return peak * step / rising
    gone = (step - rising) / (steps - rising)
    return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * gone))


@wrong("no correction of the moments")
def adam_step(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    m = betas[0] * m + (1 - betas[0]) * g
    v = betas[1] * v + (1 - betas[1]) * g * g
    return p - learning_rate * m / (np.sqrt(v) + eps), m, v


@wrong("the corrected moments are returned")
def adam_step(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    m = (betas[0] * m + (1 - betas[0]) * g) / (1 - betas[0] ** step)
    v = (betas[1] * v + (1 - betas[1]) * g * g) / (1 - betas[1] ** step)
    return p - learning_rate * m / (np.sqrt(v) + eps), m, v


@wrong("epsilon under the root")
def adam_step(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    m = betas[0] * m + (1 - betas[0]) * g
    v = betas[1] * v + (1 - betas[1]) * g * g
    mh, vh = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    return p - learning_rate * mh / np.sqrt(vh + eps), m, v


@wrong("gradient ascent")
def adam_step(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    m = betas[0] * m + (1 - betas[0]) * g
    v = betas[1] * v + (1 - betas[1]) * g * g
    mh, vh = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
    return p + learning_rate * mh / (np.sqrt(vh) + eps), m, v


@wrong("betas are ignored: 0.9 and 0.999")
def adam_step(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    mh, vh = m / (1 - 0.9**step), v / (1 - 0.999**step)
    return p - learning_rate * mh / (np.sqrt(vh) + eps), m, v


@wrong("the step is counted from 0: step + 1 corrects")
def adam_step(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    m = betas[0] * m + (1 - betas[0]) * g
    v = betas[1] * v + (1 - betas[1]) * g * g
    mh, vh = m / (1 - betas[0] ** (step + 1)), v / (1 - betas[1] ** (step + 1))
    return p - learning_rate * mh / (np.sqrt(vh) + eps), m, v


@wrong("np.roll: the last token comes first")
def shift_right(targets, begin):
    return np.roll(targets, 1, axis=-1)


@wrong("shifted to the left")
def shift_right(targets, begin):
    out = np.roll(targets, -1, axis=-1)
    out[..., -1] = begin
    return out


@wrong("one token longer")
def shift_right(targets, begin):
    return np.concatenate([np.full((len(targets), 1), begin), targets], axis=-1)


@wrong("np.roll over all sequences")
def shift_right(targets, begin):
    out = np.roll(targets, 1)
    out[0, 0] = begin
    return out


@wrong("temperature multiplies")
def next_probabilities(logits, temperature, top_k):
    least = np.sort(logits, -1)[:, -top_k, None]
    z = np.where(logits >= least, logits, -np.inf) * temperature
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@wrong("temperature is ignored")
def next_probabilities(logits, temperature, top_k):
    least = np.sort(logits, -1)[:, -top_k, None]
    z = np.where(logits >= least, logits, -np.inf)
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@wrong("the k least")
def next_probabilities(logits, temperature, top_k):
    most = np.sort(logits, -1)[:, top_k - 1, None]
    z = np.where(logits <= most, logits, -np.inf) / temperature
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@wrong("cut after the softmax, and not made to sum to 1")
def next_probabilities(logits, temperature, top_k):
    z = logits / temperature
    e = np.exp(z - z.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    return np.where(p >= np.sort(p, -1)[:, -top_k, None], p, 0)


@wrong("hidden logits are 0")
def next_probabilities(logits, temperature, top_k):
    least = np.sort(logits, -1)[:, -top_k, None]
    z = np.where(logits >= least, logits, 0) / temperature
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@wrong("a forward difference")
def numerical_gradient(f, x, h):
    out = np.zeros(x.shape)
    for n in np.ndindex(x.shape):
        y = x.copy()
        y[n] += h
        out[n] = (f(y) - f(x)) / h
    return out


@wrong("divided by h, not 2h")
def numerical_gradient(f, x, h):
    out = np.zeros(x.shape)
    for n in np.ndindex(x.shape):
        a, b = x.copy(), x.copy()
        a[n] += h
        b[n] -= h
        out[n] = (f(a) - f(b)) / h
    return out


@wrong("the diagonal of the Jacobian alone")
def softmax_gradient(w, g):
    return w * (1 - w) * g


@wrong("the mean is not weighted")
def softmax_gradient(w, g):
    return w * (g - g.mean(-1, keepdims=True))


@wrong("without keepdims")
def softmax_gradient(w, g):
    return w * (g - (g * w).sum(-1))


@wrong("the opposite: divided, log n below log L0")
def log_n_scale(n, trained_length):
    return np.maximum(1, math.log(trained_length) / np.log(np.maximum(n, 2)))


@wrong("not kept at 1 or above")
def log_n_scale(n, trained_length):
    return np.log(np.maximum(n, 1)) / math.log(trained_length)


@wrong("0 ln 0 is NaN")
def attention_entropy(weights, axis=-1):
    return -(weights * np.log(weights)).sum(axis)


@wrong("bits")
def attention_entropy(weights, axis=-1):
    return -(weights * np.log2(np.where(weights > 0, weights, 1))).sum(axis)


@wrong("the axis is ignored")
def attention_entropy(weights, axis=-1):
    return -(weights * np.log(np.where(weights > 0, weights, 1))).sum(-1)


@wrong("the sign")
def attention_entropy(weights, axis=-1):
    return (weights * np.log(np.where(weights > 0, weights, 1))).sum(axis)
