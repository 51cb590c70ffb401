"""Exercises of chapter 62: train an encoder and a decoder.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 62_model.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def shift_right(targets, begin):
    """Decoder inputs for teacher forcing.

    targets  (B, L)   whole numbers
    begin    int      the token that begins a sentence
    returns  (B, L)

    for each sequence:
        input[0] = begin
        for t in 1 .. L-1: input[t] = target[t-1]
    """
    raise NotImplementedError


def cross_entropy(logits, targets, ignore=None, label_smoothing=0.0):
    """Mean surprise of the targets.

    logits           (..., V)
    targets          (...)    whole numbers from 0 to V-1
    ignore           int      targets of this value do not count
    label_smoothing  number   e
    returns          a number of the logits' dtype

    for each target t that counts, with log_p the log-softmax of its logits:
        loss = -(1 - e) log_p[t] - e (log_p[0] + ... + log_p[V-1]) / V
    result = mean of these losses
    """
    raise NotImplementedError


def warmup_schedule(step, d_model, warmup):
    """The learning rate of the first Transformer.

    step     int      from 1
    d_model  int
    warmup   int      steps
    returns  number

    rate = d_model^(-1/2) min(step^(-1/2), step warmup^(-3/2))
    """
    raise NotImplementedError


def cosine_schedule(step, steps, peak, warmup=0.05, floor=0.02):
    """Linear warm-up, then half a cosine.

    step     int      from 1 to steps
    peak     number   the highest rate
    warmup   number   share of the steps that rise
    floor    number   share of the peak at the end
    returns  number

    rising = warmup * steps, rounded
    if step <= rising: rate = peak step / rising
    else: fallen = (step - rising) / (steps - rising)
          rate = peak (floor + (1 - floor) (1 + cos(pi fallen)) / 2)
    """
    raise NotImplementedError


def dropout(x, rate, rng=None):
    """Set a share of all components to zero, at random, and scale up the rest.

    x        any shape
    rate     number   the share to drop, from 0 to below 1
    rng      numpy.random.Generator, or None: then nothing is dropped, as at inference
    returns  of x's shape and dtype

    draw = rng.random(x.shape, dtype=np.float32)
    for each component n:
        y[n] = x[n] / (1 - rate)   if draw[n] >= rate
        y[n] = 0                   else
    """
    raise NotImplementedError


def init_feed_forward(d_model, d_ff, n_layers, rng):
    """The parameters with which the feed-forward network of one of n layers begins.

    d_model, d_ff  int   D and F
    n_layers       int   n
    rng            numpy.random.Generator
    returns        {"W_1": (D, F), "b_1": (F,), "W_2": (F, D), "b_2": (D,)}, float64

    W_1 first, then W_2: numbers from rng.standard_normal, over sqrt(fan-in)
        fan-in = how many terms each sum of x W has
    W_2 ends a sublayer, of which 2 n add up: over sqrt(2 n), too
    biases = 0
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# shift_right, 1: the last target is never an input.
# shift_right, 2: np.roll brings the last one to the front: overwrite it.

# cross_entropy, 1: logits - top - log sum exp(logits - top) never overflows.
# cross_entropy, 2: np.take_along_axis picks one entry of each row.
# cross_entropy, 3: the mean is over the targets that count.

# warmup_schedule, 1: both branches are equal at step = warmup.
# warmup_schedule, 2: the rate is the smaller of the two: Python's min.

# cosine_schedule, 1: at step = rising the rate is the peak, at the last step floor times the peak.

# dropout, 1: without a generator x comes back as it is.
# dropout, 2: a comparison gives booleans; cast them to x.dtype.

# init_feed_forward, 1: the rows of W are its fan-in: D for W_1, F for W_2.
# init_feed_forward, 2: rng.standard_normal((D, F)) draws all at once.
