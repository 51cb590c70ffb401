r"""The loss of a model that predicts tokens: cross-entropy, with label smoothing.

Source: Vaswani et al. 2017, "Attention is all you need" (arXiv:1706.03762), section 5.4; the
smoothing is that of Szegedy et al. 2016 (arXiv:1512.00567), section 7::

    loss = -(1/n) sum over tokens of sum_v t_v log p_v,   t = (1 - eps) onehot(target) + eps / V

Axes: V vocabulary.
Symbols: p is the softmax of the logits; eps is `label_smoothing`; n counts the targets that count.
Convention: nats. The mean is taken over all tokens of the batch at once, not sequence by sequence.
Differs from the papers: nothing; eps is sometimes spread over only the other V - 1 classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.dispatch import differentiable
from pe_numpy.transformer.attention import log_softmax


@differentiable
def cross_entropy(
    logits: ArrayLike,
    targets: ArrayLike,
    ignore: int | None = None,
    label_smoothing: float = 0.0,
) -> np.floating:
    """Mean surprise at the targets: -log softmax(logits)[target].

    Parameters
    ----------
    logits : (..., V) array
        Unnormalised log-probabilities.
    targets : (...) array of whole numbers
        The right class of each, from 0 to V - 1.
    ignore : int, optional
        A target that doesn't count, such as the number of the padding token, or -100.
    label_smoothing : float
        eps, from 0 to below 1: the share of the target that is spread over all V classes.

    Returns
    -------
    One number of the dtype of the logits (float64 for integers; float16 is computed in float32).

    Raises
    ------
    ValueError
        If no target counts.

    Notes
    -----
    Source: Vaswani et al. 2017, section 5.4; Szegedy et al. 2016, section 7. exp(loss) is the
    perplexity; uniform logits give log V.

    Examples
    --------
    >>> float(cross_entropy([[0.0, 0.0], [0.0, np.log(3.0)]], [0, 1]).round(4))  # ln 2, ln 4/3
    0.4904
    >>> float(cross_entropy([[0.0, 0.0], [0.0, np.log(3.0)]], [0, 1], ignore=1).round(4))
    0.6931
    """
    logits, targets, counts, eps = counted_targets(logits, targets, ignore, label_smoothing)
    work, dtype = checks.working(logits)
    log_p = log_softmax(logits.astype(work, copy=False)[counts])  # (n, V)
    loss = -log_p[np.arange(len(targets)), targets].mean()
    if eps:
        loss = (1 - eps) * loss - eps * log_p.mean()
    return dtype.type(loss)


def counted_targets(
    logits: ArrayLike, targets: ArrayLike, ignore: int | None, label_smoothing: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray | slice, float]:
    """Check, and return logits (N, V), targets that count (n,), where these stand, and eps."""
    name = "cross_entropy"
    logits = checks.real_array(name, "logits", logits, "V")
    targets = checks.whole_numbers(name, "targets", targets)
    if targets.shape != logits.shape[:-1]:
        raise ValueError(
            f"{name}: targets must have the shape of logits without its last axis, "
            f"{logits.shape[:-1]}; got {targets.shape}"
        )
    eps = checks.share(name, "label_smoothing", label_smoothing)
    V, targets = logits.shape[-1], targets.reshape(-1)
    counts: np.ndarray | slice = slice(None)
    if ignore is not None:
        counts = np.flatnonzero(targets != checks.integer(name, "ignore", ignore, least=-(2**62)))
        targets = targets[counts]
    if not targets.size:
        raise ValueError(f"{name}: at least one target must count; got none, a mean over nothing")
    outside = targets[(targets < 0) | (targets >= V)]
    if outside.size:
        raise ValueError(
            f"{name}: targets must be from 0 to V - 1 = {V - 1}; got {outside[0]}"
            + ("" if ignore is not None else ", give it as `ignore` if it marks padding")
        )
    return logits.reshape(-1, V), targets, counts, eps
