"""Solutions of the exercises of chapter 71."""

import numpy as np


def perplexity(logits, targets):
    top = logits.max(axis=-1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    return np.exp(-log_p[np.arange(len(targets)), targets].mean())
