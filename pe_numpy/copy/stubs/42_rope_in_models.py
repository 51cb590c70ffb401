"""Exercises of chapter 42: RoPE as models use it.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 42_rope_in_models.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def proportional_frequencies(d, fraction, base=10000.0, factor=1.0):
    """p-RoPE: the first pairs of the whole head turn, the others not at all.

    d         int      K, the width of a head, even
    fraction  number   p, the part of the pairs that turns
    base      float    b
    factor    number   s, divides the frequencies
    returns   (d/2,)   float64

    n = floor(p d / 2)
    for i in 0 .. d/2 - 1:
        new[i] = b^(-2 i / d) / s   if i < n, else 0
    """
    raise NotImplementedError


def layer_bases(n_layers, pattern, base, local_base):
    """The base of RoPE in each layer of a model with local and global layers, as in Gemma 3.

    n_layers    int           number of layers
    pattern     int           every so many layers one is global: the last of each group
    base        float         of the global layers
    local_base  float         of the others
    returns     (n_layers,)   float64
    """
    raise NotImplementedError


def layer_frequencies(config, layer):
    """The frequencies of RoPE in one layer, read from a configuration.

    config   dict     its words, of which these may occur:
                      "head_dim", or else "hidden_size" and "num_attention_heads"
                      "partial_rotary_factor", 1 if it is missing
                      "no_rope_layers", a list with an entry for each layer
                      "rope_theta", and "rope_scaling" as {"type": "linear", "factor": s}
                      or all in "rope_parameters": {"rope_theta", "rope_type", "factor"}
    layer    int      from 0
    returns  (n,)     float64, for the n pairs that turn; (0,) in a layer without RoPE

    r = partial_rotary_factor K, without what follows the point; it will be even
    for c in 0 .. r/2 - 1:
        theta[c] = rope_theta^(-2 c / r) / s
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# proportional_frequencies, 1: make the ladder of the whole width.
# proportional_frequencies, 2: then set its end to zero, from floor(p d / 2) on.

# layer_bases, 1: with pattern 6 the layers 5, 11, 17, ... are global.
# layer_bases, 2: those are the layers n where 6 divides n + 1.

# layer_frequencies, 1: first the layers without RoPE, then K, then r, then base and factor.
# layer_frequencies, 2: config.get("rope_parameters", {}) is empty in the old spelling.
