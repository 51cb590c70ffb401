"""Exercises of the Transformer and its training (chapters 60 to 63)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
from pe_numpy.training.loss import cross_entropy
from pe_numpy.training.optimiser import cosine_schedule, warmup_schedule
from pe_numpy.transformer.attention import log_softmax, softmax
from pe_numpy.transformer.layers import (
    ACTIVATIONS,
    embed_tokens,
    feed_forward,
    gelu,
    layer_norm,
    linear,
    relu,
    rms_norm,
)

DTYPES = (np.float64, np.float32)

# ---- chapter 60 ---------------------------------------------------------------------------------


def _norm_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 3.0], [10.0, 30.0]]), np.ones(2), np.array([0.0, 5.0]))
    for dtype in DTYPES:
        x = rng.standard_normal((2, 5, 6)).astype(dtype)
        yield case(3 * x + 7, *rng.standard_normal((2, 6)).astype(dtype))
        yield case(x, *rng.standard_normal((2, 6)).astype(dtype), eps=0.1)
    yield case(np.ones((2, 4)), np.ones(4), np.zeros(4))  # no variance
    for n in range(3):  # eps decides, and one sentence
        x = rng.standard_normal((1, 3, 4 + n))
        yield case(0.05 * x - 2, *rng.standard_normal((2, 4 + n)), eps=10.0 ** -(n + 1))


def _norm(axis=-1, ddof=0, root=lambda var, eps: np.sqrt(var + eps)):
    """Layer norm with one part of it replaced."""

    def wrong(x, gain, bias, eps=1e-5):
        mean, var = x.mean(axis=axis, keepdims=True), x.var(axis=axis, ddof=ddof, keepdims=True)
        return (x - mean) / root(var, x.dtype.type(eps)) * gain + bias

    return wrong


LAYER_NORM = Exercise(
    "layer_norm",
    layer_norm,
    _norm_cases,
    (
        Mistake(
            "batch norm",
            "Mean and variance are those of each token, over its components: the last axis.",
            60,
            _norm(axis=0),
        ),
        Mistake(
            "variance by D - 1",
            "The variance divides by D.",
            60,
            _norm(ddof=1),
        ),
        Mistake(
            "eps outside the root",
            "eps is added to the variance, under the root.",
            60,
            _norm(root=lambda var, eps: np.sqrt(var) + eps),
        ),
        Mistake(
            "divided by the variance",
            "Divide by the standard deviation, the root of the variance.",
            60,
            _norm(root=lambda var, eps: var + eps),
        ),
        Mistake(
            "RMS norm",
            "Layer norm subtracts the mean first.",
            60,
            lambda x, gain, bias, eps=1e-5: rms_norm(x, gain, eps) + bias,
        ),
        Mistake(
            "the bias before the gain",
            "First the gain, then the bias.",
            60,
            lambda x, gain, bias, eps=1e-5: _norm()(x, 1, 0, eps) * gain + bias * gain,
        ),
        Mistake(
            "eps forgotten",
            "A constant vector has no variance: eps keeps 0/0 away. Use the eps that is given.",
            60,
            _norm(root=lambda var, eps: np.sqrt(var)),
        ),
    ),
    chapter=60,
    further=(
        Mistake(
            "variance by D - 1, and eps outside the root",
            "The variance divides by D, and eps is added to it, under the root.",
            60,
            _norm(ddof=1, root=lambda var, eps: np.sqrt(var) + eps),
        ),
        Mistake(
            "over the tokens",
            "Mean and variance are those of each token, over its components: the last axis.",
            60,
            _norm(axis=-2),
        ),
        Mistake(
            "over the whole array",
            "Each token has a mean and a variance of its own.",
            60,
            _norm(axis=None),
        ),
        Mistake(
            "without the bias",
            "Add the bias at the end.",
            60,
            lambda x, gain, bias, eps=1e-5: layer_norm(x, gain, 0 * bias, eps),
        ),
        Mistake(
            "without the gain",
            "Multiply by the gain.",
            60,
            lambda x, gain, bias, eps=1e-5: layer_norm(x, 0 * gain + 1, bias, eps),
        ),
        Mistake(
            "1 + gain for the gain",
            "That is Gemma's RMS norm; here the gain is 1 before training.",
            60,
            lambda x, gain, bias, eps=1e-5: layer_norm(x, 1 + gain, bias, eps),
        ),
    ),
)


def _rms_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 7.0], [10.0, 70.0]]), np.array([1.0, 10.0]))
    for dtype in DTYPES:
        x = rng.standard_normal((2, 5, 6)).astype(dtype) + 1
        yield case(x.astype(dtype), rng.standard_normal(6).astype(dtype))
        yield case(x.astype(dtype), rng.standard_normal(6).astype(dtype), eps=0.1)
    for n in range(3):
        x = rng.standard_normal((1, 3, 4 + n))
        yield case(0.05 * x, rng.standard_normal(4 + n), eps=10.0 ** -(n + 1))


RMS_NORM = Exercise(
    "rms_norm",
    rms_norm,
    _rms_cases,
    (
        Mistake(
            "layer norm",
            "RMS norm subtracts no mean.",
            60,
            lambda x, gain, eps=1e-6: layer_norm(x, gain, 0 * gain, eps),
        ),
        Mistake(
            "a sum for the mean",
            "The root of the mean square, not of the sum of squares.",
            60,
            lambda x, gain, eps=1e-6: (
                gain * x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + x.dtype.type(eps))
            ),
        ),
        Mistake(
            "eps outside the root",
            "eps is added to the mean square, under the root.",
            60,
            lambda x, gain, eps=1e-6: (
                gain * x / (np.sqrt((x * x).mean(axis=-1, keepdims=True)) + x.dtype.type(eps))
            ),
        ),
        Mistake(
            "over the whole array",
            "Each token has a root mean square of its own.",
            60,
            lambda x, gain, eps=1e-6: gain * x / np.sqrt((x * x).mean() + x.dtype.type(eps)),
        ),
    ),
    chapter=60,
    further=(
        Mistake(
            "1 + gain for the gain",
            "That is Gemma's; here the gain is 1 before training.",
            60,
            lambda x, gain, eps=1e-6: rms_norm(x, 1 + gain, eps),
        ),
        Mistake(
            "without the gain",
            "Multiply by the gain.",
            60,
            lambda x, gain, eps=1e-6: rms_norm(x, 0 * gain + 1, eps),
        ),
    ),
)


def _network_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case({"W_1": np.array([[1.0, -1.0]]), "W_2": np.array([[1.0], [1.0]])}, np.array([[3.0]]))
    for dtype in DTYPES:
        params = {
            "W_1": rng.standard_normal((4, 7)).astype(dtype),
            "b_1": rng.standard_normal(7).astype(dtype),
            "W_2": rng.standard_normal((7, 4)).astype(dtype),
            "b_2": rng.standard_normal(4).astype(dtype),
        }
        yield case(params, rng.standard_normal((2, 5, 4)).astype(dtype))
    for n in range(4):
        own = {"W_1": rng.standard_normal((3, 5)), "W_2": rng.standard_normal((5, 3))}
        more = {"b_1": rng.standard_normal(5), "b_2": rng.standard_normal(3)}
        names = (("b_1", "b_2"), ("b_1",), ("b_2",), ())[n]
        own |= {name: more[name] for name in names}
        yield case(own, rng.standard_normal((1, 4, 3)))
        activation = ("gelu", "silu", "gelu_tanh", "relu")[n]
        yield case(own, rng.standard_normal((2, 1, 3)), activation)


def _network(
    between=lambda hidden, f: f(hidden),
    after=lambda y, x, f: y,
    biases=("b_1", "b_2"),
):
    """The two projections, with one part of them replaced."""

    def wrong(params, x, activation="relu"):
        f = ACTIVATIONS[activation]
        b_1, b_2 = (params.get(name) if name in biases else None for name in ("b_1", "b_2"))
        hidden = between(linear(x, params["W_1"], b_1), f)
        return after(linear(hidden, params["W_2"], b_2), x, f)

    return wrong


FEED_FORWARD = Exercise(
    "feed_forward",
    feed_forward,
    _network_cases,
    (
        Mistake(
            "no activation",
            "Without max(0, x) the two projections are one.",
            60,
            _network(between=lambda hidden, f: hidden),
        ),
        Mistake(
            "activated at the end, too",
            "The activation stands between the two projections.",
            60,
            _network(after=lambda y, x, f: f(y)),
        ),
        Mistake(
            "biases forgotten",
            "b_1 and b_2, where they are given.",
            60,
            _network(biases=()),
        ),
        Mistake(
            "the residual added",
            "x + FFN(x) is the block's affair.",
            60,
            _network(after=lambda y, x, f: x + y),
        ),
        Mistake(
            "GELU for ReLU",
            "The paper's activation is max(0, x), and so is the one of calls without.",
            60,
            lambda params, x, activation="gelu": feed_forward(params, x, activation),
        ),
    ),
    chapter=60,
    further=(
        Mistake(
            "activated at the end alone",
            "The activation stands between the two projections.",
            60,
            _network(between=lambda hidden, f: hidden, after=lambda y, x, f: f(y)),
        ),
        Mistake(
            "the first bias forgotten",
            "b_1, where it is given, stands before the activation.",
            60,
            _network(biases=("b_2",)),
        ),
        Mistake(
            "the second bias forgotten",
            "b_2, where it is given, is added at the end.",
            60,
            _network(biases=("b_1",)),
        ),
    ),
)


def _gelu_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([-1.0, 0.0, 1.0]))
    yield case(np.array([-1.0, 0.0, 1.0]), approximate="tanh")
    for dtype in DTYPES:
        yield case(3 * rng.standard_normal((2, 7)).astype(dtype))
    yield case(np.array([-30.0, 30.0, -6.0]))
    for n in range(3):
        yield case(2 * rng.standard_normal((2, 7)).astype(DTYPES[n % 2]), approximate="tanh")


GELU = Exercise(
    "gelu",
    gelu,
    _gelu_cases,
    (
        Mistake(
            "always the tanh form",
            "Without approximate='tanh' it is the exact one: math.erf.",
            60,
            lambda x, approximate="none": gelu(x, "tanh"),
        ),
        Mistake(
            "the quick form",
            "x sigmoid(1.702 x) is a rougher approximation than either.",
            60,
            lambda x, approximate="none": x / (1 + np.exp(-1.702 * x)),
        ),
        Mistake(
            "erf of x for x / sqrt(2)",
            "Phi(x) = (1 + erf(x / sqrt(2))) / 2.",
            60,
            lambda x, approximate="none": (
                gelu(x, "tanh")
                if approximate == "tanh"
                else x
                * (1 + np.array([math.erf(t) for t in x.ravel().tolist()]).reshape(x.shape)).astype(
                    x.dtype
                )
                / 2
            ),
        ),
        Mistake("ReLU", "GELU weighs x by Phi(x); ReLU cuts it off.", 60, lambda x, *rest: relu(x)),
    ),
    chapter=60,
    further=(
        Mistake(
            "x squared for x cubed",
            "The approximation has 0.044715 x^3.",
            60,
            lambda x, approximate="none": (
                gelu(x)
                if approximate == "none"
                else x * (1 + np.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x * x))) / 2
            ),
        ),
    ),
)


def _embedding_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 2.0, 3.0, 4.0], [0.5, 0.0, 0.0, 0.0]]), np.array([1, 1, 0]))
    for dtype in DTYPES:
        yield case(rng.standard_normal((11, 6)).astype(dtype), rng.integers(0, 11, (2, 5)))
    yield case(rng.standard_normal((11, 6)), rng.integers(0, 11, 4), scale=1.0)
    for n in range(4):
        table, scale = rng.standard_normal((7, 4)), round(float(rng.uniform(0.1, 3)), 2)
        yield case(table, rng.integers(0, 7, (1, n + 2)), scale=scale)


EMBED = Exercise(
    "embed_tokens",
    embed_tokens,
    _embedding_cases,
    (
        Mistake(
            "not scaled",
            "The vectors are multiplied by sqrt(D), unless another scale is given.",
            62,
            lambda table, tokens, scale=None: embed_tokens(
                table, tokens, 1.0 if scale is None else scale
            ),
        ),
        Mistake(
            "divided by the root",
            "Multiplied by sqrt(D): a shared embedding has small entries.",
            62,
            lambda table, tokens, scale=None: (
                table[tokens] * table.dtype.type(table.shape[1] ** -0.5 if scale is None else scale)
            ),
        ),
        Mistake(
            "multiplied by D",
            "By the root of D.",
            62,
            lambda table, tokens, scale=None: (
                table[tokens] * table.dtype.type(table.shape[1] if scale is None else scale)
            ),
        ),
        Mistake(
            "the root of V",
            "D is the width of the vectors, not the size of the vocabulary.",
            62,
            lambda table, tokens, scale=None: embed_tokens(
                table, tokens, len(table) ** 0.5 if scale is None else scale
            ),
        ),
    ),
    chapter=62,
)


def pre_norm_block(x: np.ndarray, gain: np.ndarray, bias: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Apply a pre-norm block whose sublayer is max(0, x W): x + sublayer(norm(x))."""
    return x + relu(layer_norm(x, gain, bias) @ W)


def _block_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[1.0, 3.0]]), np.ones(2), np.zeros(2), np.eye(2))
    for dtype in DTYPES:
        gain, bias = rng.standard_normal((2, 6)).astype(dtype)
        x, W = (
            rng.standard_normal((2, 5, 6)).astype(dtype),
            rng.standard_normal((6, 6)).astype(dtype),
        )
        yield case(x, gain, bias, W)


BLOCK = Exercise(
    "pre_norm_block",
    pre_norm_block,
    _block_cases,
    (
        Mistake(
            "post-norm for pre-norm",
            "The norm stands before the sublayer; nothing stands on the residual path.",
            60,
            lambda x, gain, bias, W: layer_norm(x + relu(x @ W), gain, bias),
        ),
        Mistake(
            "the residual taken after the norm",
            "The residual path adds x itself, not its norm.",
            60,
            lambda x, gain, bias, W: (
                layer_norm(x, gain, bias) + relu(layer_norm(x, gain, bias) @ W)
            ),
        ),
        Mistake(
            "no residual",
            "x + sublayer(norm(x)).",
            60,
            lambda x, gain, bias, W: relu(layer_norm(x, gain, bias) @ W),
        ),
        Mistake(
            "no norm",
            "The sublayer sees the norm of x.",
            60,
            lambda x, gain, bias, W: x + relu(x @ W),
        ),
    ),
    chapter=60,
)

# ---- chapter 62 ---------------------------------------------------------------------------------


def shift_right(targets: np.ndarray, begin: int) -> np.ndarray:
    """Decoder inputs for teacher forcing: `begin`, then all targets (B, L) but the last."""
    first = np.full((len(targets), 1), begin, targets.dtype)
    return np.concatenate([first, targets[:, :-1]], axis=1)


def _teacher_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[5, 6, 7]]), 1)
    yield case(rng.integers(3, 20, (4, 6)), 2)
    yield case(rng.integers(3, 20, (2, 1)), 1)


def _rolled_over_all(targets, begin):
    rolled = np.roll(targets, 1)
    rolled.flat[0] = begin
    return rolled


def _begin_at_the_end(targets, begin):
    rolled = np.roll(targets, -1, axis=1)
    rolled[:, -1] = begin
    return rolled


RIGHT = Exercise(
    "shift_right",
    shift_right,
    _teacher_cases,
    (
        Mistake(
            "not shifted",
            "Input t is target t - 1: a decoder that sees its own target learns to copy it.",
            62,
            lambda targets, begin: targets.copy(),
        ),
        Mistake(
            "shifted left",
            "The inputs are the targets one step earlier.",
            62,
            lambda targets, begin: np.roll(targets, -1, axis=1),
        ),
        Mistake(
            "rolled round",
            "The first input is the token that begins a sentence, not the last target.",
            62,
            lambda targets, begin: np.roll(targets, 1, axis=1),
        ),
        Mistake(
            "one token too many",
            "As many inputs as targets: the last target is never an input.",
            62,
            lambda targets, begin: np.concatenate(
                [np.full((len(targets), 1), begin, targets.dtype), targets], axis=1
            ),
        ),
    ),
    chapter=62,
    further=(
        Mistake(
            "shifted left, with the begin at the end",
            "The inputs are the targets one step earlier, after the token that begins.",
            62,
            _begin_at_the_end,
        ),
        Mistake(
            "rolled over all sequences",
            "Each sequence is shifted by itself: axis=1.",
            62,
            _rolled_over_all,
        ),
    ),
)


def _loss_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.zeros((2, 4)), np.array([0, 3]))
    for dtype in DTYPES:
        logits = 3 * rng.standard_normal((2, 5, 7)).astype(dtype)
        targets = rng.integers(1, 7, (2, 5))
        yield case(logits, targets)
        targets[0, 3:] = 0
        yield case(logits, targets, ignore=0)
        yield case(logits, targets, ignore=0, label_smoothing=0.1)
    yield case(np.array([[1000.0, 0.0]]), np.array([1]))
    for n in range(4):
        V, targets = n + 3, rng.integers(0, n + 3, (n + 1, 4))
        targets[0, 0] = 2
        yield case(rng.standard_normal((n + 1, 4, V)), targets, (None, 2)[n % 2], 0.1 * n)


def _loss(total=lambda losses, counts: losses[counts].mean(), smooth=lambda V: 1 / V):
    """Cross-entropy with one part of it replaced."""

    def loss(logits, targets, ignore=None, label_smoothing=0.0):
        top = logits.max(axis=-1, keepdims=True)
        logs = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
        own = -np.take_along_axis(logs, targets[..., None], -1)[..., 0]
        spread = -logs.sum(axis=-1) * smooth(logits.shape[-1])
        losses = (1 - label_smoothing) * own + label_smoothing * spread
        counts = np.ones(targets.shape, bool) if ignore is None else targets != ignore
        return logits.dtype.type(total(losses, counts))

    return loss


def _loss_of(log_p=lambda logits: log_softmax(logits), others=lambda V: None):
    """Cross-entropy with other logarithms, or smoothed over others than all classes."""

    def loss(logits, targets, ignore=None, label_smoothing=0.0):
        counts = np.ones(targets.shape, bool) if ignore is None else targets != ignore
        logs, e = log_p(logits[counts]), label_smoothing
        own = np.take_along_axis(logs, targets[counts][..., None], -1)[..., 0]
        n = others(logits.shape[-1])
        spread = logs.mean(axis=-1) if n is None else (logs.sum(axis=-1) - own) / n
        return logits.dtype.type(-((1 - e) * own + e * spread).mean())

    return loss


LOSS = Exercise(
    "cross_entropy",
    cross_entropy,
    _loss_cases,
    (
        Mistake(
            "a sum for the mean",
            "The loss is the mean over the targets that count.",
            62,
            _loss(lambda losses, counts: losses[counts].sum()),
        ),
        Mistake(
            "padding counted in the mean",
            "Divide by the number of targets that count, not by all.",
            62,
            _loss(lambda losses, counts: losses[counts].sum() / counts.size),
        ),
        Mistake(
            "padding not ignored",
            "Targets equal to `ignore` do not count.",
            62,
            _loss(lambda losses, counts: losses.mean()),
        ),
        Mistake(
            "without its minus",
            "The loss is minus the logarithm of the probability.",
            62,
            _loss(lambda losses, counts: -losses[counts].mean()),
        ),
        Mistake(
            "smoothing over V classes, divided by V - 1",
            "The smoothing is spread over all V classes, the right one included: by their mean.",
            62,
            _loss(smooth=lambda V: 1 / (V - 1)),
        ),
        Mistake(
            "no smoothing",
            "With label_smoothing e the loss is 1 - e times that of the target, and e times the "
            "mean over all classes.",
            62,
            lambda logits, targets, ignore=None, label_smoothing=0.0: cross_entropy(
                logits, targets, ignore
            ),
        ),
    ),
    chapter=62,
    further=(
        Mistake(
            "smoothing over the V - 1 others",
            "Here the smoothing is spread over all V classes, the right one included.",
            62,
            _loss_of(others=lambda V: V - 1),
        ),
        Mistake(
            "smoothing over V - 2 others",
            "Here the smoothing is spread over all V classes: the padding token is not taken out.",
            62,
            _loss_of(others=lambda V: V - 2),
        ),
        Mistake(
            "an epsilon within the logarithm",
            "Take the logarithm of the softmax as a difference, which needs no epsilon.",
            62,
            _loss_of(lambda logits: np.log(softmax(logits) + logits.dtype.type(1e-9))),
        ),
        Mistake(
            "bits for nats",
            "The natural logarithm.",
            62,
            _loss_of(lambda logits: log_softmax(logits) / logits.dtype.type(math.log(2))),
        ),
    ),
)


def _warm_cases(rng: np.random.Generator) -> Iterator[Case]:
    for step in (1, 2, 4000, 4001, 100000):
        yield case(step, 512, 4000)
    yield case(10, 64, 40)
    for n in range(8):
        warmup = int(rng.integers(20, 5000))
        step = int(rng.integers(1, warmup) if n % 2 else rng.integers(warmup, 9 * warmup))
        yield case(step, int(rng.integers(16, 1024)), warmup)


WARMUP = Exercise(
    "warmup_schedule",
    warmup_schedule,
    _warm_cases,
    (
        Mistake(
            "the larger for the smaller",
            "min, not max: the rate rises first, then falls.",
            62,
            lambda step, d_model, warmup: d_model**-0.5 * max(step**-0.5, step * warmup**-1.5),
        ),
        Mistake(
            "without the width",
            "d_model^(-1/2) stands in front.",
            62,
            lambda step, d_model, warmup: min(step**-0.5, step * warmup**-1.5),
        ),
        Mistake(
            "exponent -1/2 in the warm-up",
            "The two branches meet at step = warmup: the exponent there is -3/2.",
            62,
            lambda step, d_model, warmup: d_model**-0.5 * min(step**-0.5, step * warmup**-0.5),
        ),
        Mistake(
            "steps counted from 0",
            "The first step is 1.",
            62,
            lambda step, d_model, warmup: warmup_schedule(step + 1, d_model, warmup),
        ),
    ),
    chapter=62,
    further=(
        Mistake(
            "multiplied by the root of the width",
            "d_model^(-1/2): wider models take smaller steps.",
            62,
            lambda step, d_model, warmup: d_model * warmup_schedule(step, d_model, warmup),
        ),
    ),
)


def _cosine_cases(rng: np.random.Generator) -> Iterator[Case]:
    for step in (1, 5, 6, 50, 100):
        yield case(step, 100, 0.5)
    yield case(30, 40, 1.0, warmup=0.25, floor=0.0)
    for n in range(8):
        steps, peak = int(rng.integers(40, 900)), round(float(rng.uniform(0.01, 2)), 3)
        share = (round(float(rng.uniform(0.1, 0.4)), 2), round(float(rng.uniform(0.05, 0.5)), 2))
        yield case(int(rng.integers(1, steps + 1)), steps, peak, *share[: n % 3])


COSINE = Exercise(
    "cosine_schedule",
    cosine_schedule,
    _cosine_cases,
    (
        Mistake(
            "no warm-up",
            "The rate rises in a line up to the step warmup * steps.",
            62,
            lambda step, steps, peak, warmup=0.05, floor=0.02: cosine_schedule(
                step, steps, peak, 0.0, floor
            ),
        ),
        Mistake(
            "down to zero",
            "The rate ends at floor * peak.",
            62,
            lambda step, steps, peak, warmup=0.05, floor=0.02: cosine_schedule(
                step, steps, peak, warmup, 0.0
            ),
        ),
        Mistake(
            "a whole wave",
            "Half a cosine: from the peak down to the floor, without coming up again.",
            62,
            lambda step, steps, peak, warmup=0.05, floor=0.02: (
                cosine_schedule(step, steps, peak, warmup, floor)
                if step <= round(warmup * steps)
                else peak
                * (
                    floor
                    + (1 - floor)
                    * (1 + math.cos(2 * math.pi * (step / steps - warmup) / (1 - warmup)))
                    / 2
                )
            ),
        ),
    ),
    chapter=62,
    further=(
        Mistake(
            "the cosine over all steps",
            "It begins where the warm-up ends: (step - rising) / (steps - rising).",
            62,
            lambda step, steps, peak, warmup=0.05, floor=0.02: (
                peak * step / round(warmup * steps)
                if step <= round(warmup * steps)
                else cosine_schedule(step, steps, peak, 0.0, floor)
            ),
        ),
        Mistake(
            "the floor as a rate",
            "The floor is a share of the peak.",
            62,
            lambda step, steps, peak, warmup=0.05, floor=0.02: cosine_schedule(
                step, steps, peak, warmup, min(1.0, floor / peak)
            ),
        ),
    ),
)

# ---- chapter 63 ---------------------------------------------------------------------------------


def next_probabilities(logits: np.ndarray, temperature: float, top_k: int) -> np.ndarray:
    """Probabilities (B, V) of the next token among the k best, at a temperature."""
    scaled = logits / temperature
    least = np.sort(scaled, axis=-1)[:, -top_k, None]
    return softmax(np.where(scaled >= least, scaled, -np.inf))


def _choice_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[0.0, 1.0, 2.0]]), 1.0, 2)
    yield case(rng.standard_normal((3, 7)), 0.5, 3)
    yield case(rng.standard_normal((2, 5)), 2.0, 5)
    yield case(rng.standard_normal((2, 5)), 0.1, 1)


NEXT = Exercise(
    "next_probabilities",
    next_probabilities,
    _choice_cases,
    (
        Mistake(
            "multiplied by the temperature",
            "Divide: a temperature below 1 sharpens.",
            63,
            lambda logits, temperature, top_k: next_probabilities(logits, 1 / temperature, top_k),
        ),
        Mistake(
            "the others not hidden",
            "Outside the k best the probability is 0.",
            63,
            lambda logits, temperature, top_k: softmax(logits / temperature),
        ),
        Mistake(
            "cut off after the softmax",
            "What is left must sum to 1: hide the logits before the softmax.",
            63,
            lambda logits, temperature, top_k: (
                softmax(logits / temperature)
                * (logits >= np.sort(logits, axis=-1)[:, -top_k, None])
            ),
        ),
        Mistake(
            "the k worst",
            "Sorted in ascending order, the best stand at the end.",
            63,
            lambda logits, temperature, top_k: softmax(
                np.where(logits <= np.sort(logits, axis=-1)[:, top_k - 1, None], logits, -np.inf)
                / temperature
            ),
        ),
    ),
    chapter=63,
    further=(
        Mistake(
            "the temperature ignored",
            "Divide the logits by the temperature.",
            63,
            lambda logits, temperature, top_k: next_probabilities(logits, 1.0, top_k),
        ),
        Mistake(
            "0 for -inf",
            "exp(0) is 1: a hidden logit must be -inf.",
            63,
            lambda logits, temperature, top_k: softmax(
                np.where(logits >= np.sort(logits, axis=-1)[:, -top_k, None], logits, 0)
                / temperature
            ),
        ),
    ),
)


def cached_rows(prefixes: int, first: int, cached: bool) -> int:
    """Rows of keys computed while `prefixes` prefixes of first, first + 1, ... tokens are read."""
    return first + prefixes - 1 if cached else sum(range(first, first + prefixes))


def _row_cases(rng: np.random.Generator) -> Iterator[Case]:
    for prefixes, first in ((4, 2), (1, 5), (256, 1)):
        yield case(prefixes, first, False)
        yield case(prefixes, first, True)
    for n in range(8):
        yield case(*(int(size) for size in rng.integers(2, 40, 2)), n % 2 == 0)


ROWS = Exercise(
    "cached_rows",
    cached_rows,
    _row_cases,
    (
        Mistake(
            "the prompt not counted",
            "The first prefix is read as a whole, with a cache, too.",
            63,
            lambda prefixes, first, cached: (
                prefixes if cached else cached_rows(prefixes, first, False)
            ),
        ),
        Mistake(
            "a cache that forgets",
            "With a cache each later prefix costs one row: that of its last token.",
            63,
            lambda prefixes, first, cached: cached_rows(prefixes, first, False),
        ),
        Mistake(
            "one row a step without a cache, too",
            "Without a cache every prefix is computed from its beginning.",
            63,
            lambda prefixes, first, cached: cached_rows(prefixes, first, True),
        ),
    ),
    chapter=63,
)


def best_beam(
    log_p: np.ndarray, start: int, steps: int, beams: int, end: int, alpha: float
) -> tuple[np.ndarray, float]:
    """The best sequence that ends, and its score; log_p[step, last, next] of a table."""
    return _search(log_p, start, steps, beams, end, alpha)


def _search(
    log_p,
    start,
    steps,
    beams,
    end,
    alpha,
    *,
    looked_at=2,
    penalty=lambda n, alpha: ((5 + n) / 6) ** alpha,
    at_once=False,
):
    """Beam search with one part of it replaced."""
    alive, ended = [(0.0, [])], []
    for table in log_p[:steps]:
        grown = [
            (total + more, [*tokens, token])
            for total, tokens in alive
            for token, more in enumerate(table[(tokens or [start])[-1]].tolist())
        ]
        best = sorted(grown, key=lambda pair: -pair[0])[: looked_at * beams]
        ended += [(total / penalty(len(t), alpha), t) for total, t in best if t[-1] == end]
        alive = [pair for pair in best if pair[1][-1] != end][:beams]
        if (at_once and ended) or not alive:
            break
    score, tokens = max(ended, key=lambda pair: pair[0])
    return np.array(tokens), score


def _beam_cases(rng: np.random.Generator) -> Iterator[Case]:
    p = np.array([[[0.1, 0.5, 0.4], [0.2, 0.4, 0.4], [0.9, 0.04, 0.06]]] * 2)
    yield case(np.log(p), 0, 2, 2, 0, 0.0)
    for n in range(12):
        z = 1.5 * rng.standard_normal((6, 5, 5))
        z[-1, :, 0] += 9  # all end in the last step
        yield case(log_softmax(z), n % 5, 6, 1 + n % 3, 0, (0.0, 0.6, 3.0)[n // 4])


BEAM = Exercise(
    "best_beam",
    best_beam,
    _beam_cases,
    (
        Mistake(
            "the lengths not compared",
            "Divide by the length penalty: each further token makes a sequence less probable.",
            63,
            lambda log_p, start, steps, beams, end, alpha: _search(
                log_p, start, steps, beams, end, 0.0
            ),
        ),
        Mistake(
            "the penalty multiplied",
            "A logarithm is negative: dividing by a large penalty makes it better.",
            63,
            lambda *args: _search(*args, penalty=lambda n, alpha: ((5 + n) / 6) ** -alpha),
        ),
        Mistake(
            "the end not counted",
            "The length of a sequence counts the token that ends it.",
            63,
            lambda *args: _search(*args, penalty=lambda n, alpha: ((4 + n) / 6) ** alpha),
        ),
        Mistake(
            "an ended one takes the place of another",
            "Look at twice as many as there are beams, so that enough are left that go on.",
            63,
            lambda *args: _search(*args, looked_at=1),
        ),
        Mistake(
            "stopped at the first end",
            "A sequence that ends later may have the better score.",
            63,
            lambda *args: _search(*args, at_once=True),
        ),
    ),
    chapter=63,
)


def speculative_accept(
    p: np.ndarray, q: np.ndarray, drafted: np.ndarray, u: np.ndarray
) -> tuple[int, np.ndarray]:
    """How many drafted tokens are accepted, and the distribution of the next one."""
    return _accepted(p, q, drafted, u)


def _accepted(
    p,
    q,
    drafted,
    u,
    *,
    accept=lambda p, q, u: u * q < p,
    again=lambda p, q: np.maximum(p - q, 0),
    more=lambda p, q: p[-1],
):
    """Speculative decoding with one part of it replaced."""
    for n, x in enumerate(drafted.tolist()):
        if not accept(p[n, x], q[n, x], u[n]):
            rest = again(p[n], q[n])
            return n, rest / rest.sum()
    return len(drafted), more(p, q)


def _accept_cases(rng: np.random.Generator) -> Iterator[Case]:
    p, q = np.array([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3]]), np.array([[0.2, 0.4, 0.4]])
    for u in (0.4, 0.6):  # p/q of token 1 is one half
        yield case(p, q, np.array([1]), np.array([u]))
    for n in range(12):
        p, q = softmax(rng.standard_normal((5, 7))), softmax(rng.standard_normal((4, 7)))
        yield case(p, q, rng.integers(0, 7, 4), rng.random(4) ** (1 + n % 4))
    yield case(p, q, np.array([0, 1, 2, 3]), np.full(4, 1e-9))  # all accepted


ACCEPT = Exercise(
    "speculative_accept",
    speculative_accept,
    _accept_cases,
    (
        Mistake(
            "redrawn from p",
            "What was refused came too often: draw from what q gives too little, max(p - q, 0).",
            63,
            lambda *args: _accepted(*args, again=lambda p, q: p),
        ),
        Mistake(
            "redrawn from the absolute difference",
            "Where q is above p, the next token has had its share: there stands 0.",
            63,
            lambda *args: _accepted(*args, again=lambda p, q: np.abs(p - q)),
        ),
        Mistake(
            "accepted by q/p",
            "Accept with probability min(1, p/q): a token that the draft likes too much is refused "
            "at times.",
            63,
            lambda *args: _accepted(*args, accept=lambda p, q, u: u * p < q),
        ),
        Mistake(
            "accepted by p",
            "Accept with probability p/q, not p: the draft has chosen the token with q already.",
            63,
            lambda *args: _accepted(*args, accept=lambda p, q, u: u < p),
        ),
        Mistake(
            "the last draft for one more",
            "If all are accepted, the large model has one distribution more: the last row of p.",
            63,
            lambda *args: _accepted(*args, more=lambda p, q: q[-1]),
        ),
        Mistake(
            "one more from the first row",
            "The next token follows the last one that was accepted: the last row of p.",
            63,
            lambda *args: _accepted(*args, more=lambda p, q: p[0]),
        ),
    ),
    chapter=63,
)

# ---- chapter 61 ---------------------------------------------------------------------------------


def numerical_gradient(f, x: np.ndarray, h: float) -> np.ndarray:
    """Central differences: (f(x + h e_n) - f(x - h e_n)) / 2h for every entry of x."""
    gradient = np.zeros_like(x)
    for n in np.ndindex(x.shape):
        ahead, back = x.copy(), x.copy()
        ahead[n] += h
        back[n] -= h
        gradient[n] = (f(ahead) - f(back)) / (2 * h)
    return gradient


def _cubes(x):
    return (x**3).sum()


def _mixed(x):
    return np.sin(x[0] * x[-1]).sum()


def _slope_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(_cubes, np.array([2.0]), 0.5)
    yield case(_cubes, rng.standard_normal((2, 3)), 1e-3)
    yield case(_mixed, rng.standard_normal((3, 2)), 1e-2)


NUMERICAL = Exercise(
    "numerical_gradient",
    numerical_gradient,
    _slope_cases,
    (
        Mistake(
            "forward differences",
            "Step to both sides: the error is then h^2, not h.",
            61,
            lambda f, x, h: numerical_gradient(lambda y: 2 * f(y), x + h / 2, h / 2) * 0.5,
        ),
        Mistake(
            "divided by h",
            "The two points are 2h apart.",
            61,
            lambda f, x, h: 2 * numerical_gradient(f, x, h),
        ),
        Mistake(
            "the step to the other side first",
            "f(x + h) - f(x - h), not the reverse.",
            61,
            lambda f, x, h: -numerical_gradient(f, x, h),
        ),
        Mistake(
            "all entries moved at once",
            "Each entry has its own derivative: move one at a time.",
            61,
            lambda f, x, h: np.full_like(x, (f(x + h) - f(x - h)) / (2 * h)),
        ),
    ),
    chapter=61,
)


def softmax_gradient(w: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Gradient with respect to the scores: w (g - sum_j g_j w_j), row by row."""
    return w * (g - (g * w).sum(axis=-1, keepdims=True))


def _pull_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[0.25, 0.75]]), np.array([[1.0, 0.0]]))
    for dtype in DTYPES:
        w = softmax(rng.standard_normal((2, 3, 5)).astype(dtype))
        yield case(w, rng.standard_normal((2, 3, 5)).astype(dtype))


PULL = Exercise(
    "softmax_gradient",
    softmax_gradient,
    _pull_cases,
    (
        Mistake(
            "the diagonal alone",
            "A score changes all weights of its row: subtract the weighted mean of g.",
            61,
            lambda w, g: w * (1 - w) * g,
        ),
        Mistake(
            "the plain mean of g",
            "The mean of g is weighted with w.",
            61,
            lambda w, g: w * (g - g.mean(axis=-1, keepdims=True)),
        ),
        Mistake(
            "w forgotten in front",
            "w (g - sum g w): each entry is multiplied by its weight.",
            61,
            lambda w, g: g - (g * w).sum(axis=-1, keepdims=True),
        ),
    ),
    chapter=61,
    further=(
        Mistake(
            "a sum without keepdims",
            "Keep the axis of the sum, keepdims=True.",
            61,
            lambda w, g: w * (g - (g * w).sum(axis=-1)),
        ),
    ),
)


def adam_step(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    """One step of Adam for one array: new parameter and both moments; the first step is 1."""
    m = betas[0] * m + (1 - betas[0]) * g
    v = betas[1] * v + (1 - betas[1]) * g * g
    change = (m / (1 - betas[0] ** step)) / (np.sqrt(v / (1 - betas[1] ** step)) + eps)
    return p - learning_rate * change, m, v


def _adam_cases(rng: np.random.Generator) -> Iterator[Case]:
    zero = np.zeros(1)
    yield case(np.array([1.0]), np.array([0.5]), zero, zero, 1, 0.1)
    p, g, m, v = rng.standard_normal((4, 3, 2))
    yield case(p, g, m, v * v, 7)
    yield case(p, 1e-9 * g, 1e-9 * m, 1e-18 * v * v, 3, betas=(0.8, 0.9))
    for n in range(3):
        p, g, m = rng.standard_normal((3, 4, 3))
        options = {"learning_rate": 0.1 / (n + 1), "betas": (0.8, 0.99), "eps": 1e-3}
        yield case(p, g, m, rng.random((4, 3)), n + 2, **options)


def _adam(corrected=(True, True), root=lambda v, eps: np.sqrt(v) + eps, square=lambda g: g * g):
    def step_of(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * square(g)
        mean = m / (1 - betas[0] ** step) if corrected[0] else m
        power = v / (1 - betas[1] ** step) if corrected[1] else v
        return p - learning_rate * mean / root(power, eps), m, v

    return step_of


def _corrected_moments(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    p, m, v = adam_step(p, g, m, v, step, learning_rate, betas, eps)
    return p, m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)


def _other_betas(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    return adam_step(p, g, m, v, step, learning_rate, (0.9, 0.999), eps)


def _one_step_later(p, g, m, v, step, learning_rate=1e-3, betas=(0.9, 0.98), eps=1e-9):
    return adam_step(p, g, m, v, step + 1, learning_rate, betas, eps)


ADAM = Exercise(
    "adam_step",
    adam_step,
    _adam_cases,
    (
        Mistake(
            "moments not corrected",
            "Both moments begin at zero: divide them by 1 - beta^step.",
            61,
            _adam((False, False)),
        ),
        Mistake(
            "the second moment not corrected",
            "Divide v by 1 - beta_2^step, too.",
            61,
            _adam((True, False)),
        ),
        Mistake(
            "eps under the root",
            "eps is added to the root.",
            61,
            _adam(root=lambda v, eps: np.sqrt(v + eps)),
        ),
        Mistake(
            "divided by the variance",
            "Divide by the root of the second moment.",
            61,
            _adam(root=lambda v, eps: v + eps),
        ),
        Mistake(
            "uphill",
            "The step goes against the gradient.",
            61,
            lambda p, g, m, v, step, learning_rate=1e-3, **options: adam_step(
                p, g, m, v, step, -learning_rate, **options
            ),
        ),
        Mistake(
            "g for g squared",
            "The second moment is the mean of the squares.",
            61,
            _adam(square=lambda g: g),
        ),
    ),
    chapter=61,
    further=(
        Mistake(
            "the corrected moments returned",
            "The corrections serve the step alone: return the moments without them.",
            61,
            _corrected_moments,
        ),
        Mistake(
            "betas of 0.9 and 0.999 whatever was given",
            "Use the betas that are given.",
            61,
            _other_betas,
        ),
        Mistake(
            "corrected for one step more",
            "The first step has the number 1 already.",
            61,
            _one_step_later,
        ),
    ),
)

EXERCISES = (
    LAYER_NORM,
    RMS_NORM,
    FEED_FORWARD,
    GELU,
    EMBED,
    BLOCK,
    RIGHT,
    LOSS,
    WARMUP,
    COSINE,
    NEXT,
    ROWS,
    BEAM,
    ACCEPT,
    NUMERICAL,
    PULL,
    ADAM,
)
