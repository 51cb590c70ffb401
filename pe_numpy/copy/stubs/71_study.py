"""Exercises of chapter 71: train short, test long.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 71_study.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def perplexity(logits, targets):
    """How many equally likely tokens the model wavers between.

    logits   (L, V)
    targets  (L,)     whole numbers from 0 to V-1
    returns  number

    for each target t, with p the softmax of its logits:
        surprise = -log p[t]
    result = exp(mean of the surprises)
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# perplexity, 1: a model that knows nothing has the perplexity V.
# perplexity, 2: take the logarithm of the softmax as a difference.
