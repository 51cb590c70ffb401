"""Exercises of chapter 50: stretch RoPE.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 50_scaling.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import math

import numpy as np


def linear_scaling(frequencies, factor):
    """Position interpolation: a text that is `factor` times as long gets the trained angles.

    frequencies  (n,)     theta, radians per position
    factor       number   s, target length over trained length
    returns      (n,)     float64

    for i in 0 .. n-1:
        new[i] = theta[i] / s
    """
    raise NotImplementedError


def ntk_scaling(d, factor, base=10000.0):
    """NTK-aware scaling: frequencies of a larger base.

    d        int      number of components, even, at least 4
    factor   number   s
    base     float    b, the base of the training
    returns  (d/2,)   float64

    new base = b * s^(d / (d - 2))
    for i in 0 .. d/2 - 1:
        new[i] = (new base)^(-2 i / d)
    """
    raise NotImplementedError


def dynamic_ntk_scaling(d, length, trained_length, factor=1.0, base=10000.0):
    """NTK-aware scaling that grows with the sequence.

    d               int      number of components
    length          number   L, of the present sequence
    trained_length  number   L0
    factor          number   s; base  float  b
    returns         (d/2,)   float64

    g = max(1, L / L0)
    NTK-aware frequencies for the factor  s g - (s - 1)
    """
    raise NotImplementedError


def llama3_scaling(frequencies, factor, trained_length, low_freq_factor=1.0, high_freq_factor=4.0):
    """Llama 3.1: keep the fast pairs, interpolate the slow ones, mix between.

    frequencies  (n,)     theta
    factor       number   s
    returns      (n,)     float64

    for i in 0 .. n-1:
        turns = trained_length * theta[i] / (2 pi)
        g = (turns - low) / (high - low), cut off at 0 below and at 1 above
        new[i] = (1 - g) theta[i] / s + g theta[i]
    """
    raise NotImplementedError


def yarn_attention_factor(factor, mscale=1.0):
    """YaRN's factor of queries and keys, m(s, a); the scores get its square.

    factor   number   s
    mscale   number   a
    returns  float

    m = 0.1 a ln s + 1   for s > 1
    m = 1                for s <= 1
    """
    raise NotImplementedError


def longrope_scaling(d, length, short_factor, long_factor, trained_length, factor, base=10000.0):
    """LongRoPE: each pair divided by a number of its own, from the list for the present length.

    d                          int      number of components
    length                     number   L, of the present sequence
    short_factor, long_factor  (d/2,)   lambda, for L <= L0 and for L > L0
    trained_length             number   L0
    factor                     number   s; base  float  b
    returns                    (d/2,), float

    for i in 0 .. d/2 - 1:
        new[i] = b^(-2 i / d) / lambda[i]
    attention factor = sqrt(1 + ln s / ln L0)   for s > 1, at every length; 1 for s <= 1
    """
    raise NotImplementedError


def yarn_scaling(
    d,
    factor,
    trained_length,
    base=10000.0,
    beta_fast=32.0,
    beta_slow=1.0,
    truncate=True,
):
    """YaRN: keep the fast pairs, interpolate the slow ones, mix between; and sharpen attention.

    d                     int      number of components
    factor                number   s
    trained_length        number   L0
    base                  float    b
    beta_fast, beta_slow  numbers  turns within L0 at which the ramp begins and ends
    truncate              bool     whether it begins and ends at whole pairs
    returns               (d/2,) float64, float

    the pair that turns r times within L0:  index(r) = d ln(L0 / (2 pi r)) / (2 ln b)
    low, high = index(beta_fast), index(beta_slow)
    truncate: low down, high up, to whole numbers
    low at least 0, high at most d - 1; if they are equal, high - low = 0.001
    for i in 0 .. d/2 - 1:
        ramp = (i - low) / (high - low), cut off at 0 below and at 1 above
        new[i] = (1 - ramp) theta[i] + ramp theta[i] / s
    attention factor = 0.1 ln s + 1   for s > 1; 1 for s <= 1
    """
    raise NotImplementedError


def rope_settings(config, layer=0, length=None):
    """The frequencies of RoPE in one layer, read from a configuration, stretched as it says.

    config   dict     its words, of which these may occur:
                      "head_dim", or else "hidden_size" and "num_attention_heads"
                      "rope_theta", the base
                      "max_position_embeddings", the longest length
                      "rope_scaling", a dictionary with "rope_type", or "type" in older files
                      or all in "rope_parameters": for each word of "layer_types", which has an
                      entry a layer, a dictionary with "rope_theta", "rope_type" and the rest
    layer    int      from 0
    length   number   L, of the present sequence; only the type dynamic looks at it
    returns  (K/2,) float64, float: frequencies, and the factor of queries and keys

    s is "factor"; L0 is "original_max_position_embeddings", next to it
    default: theta, 1
    linear:  theta / s, 1
    dynamic: your dynamic_ntk_scaling, with the longest length for L0; 1
    llama3:  your llama3_scaling, with "low_freq_factor" and "high_freq_factor"; 1
    yarn:    your yarn_scaling, with "beta_fast" and "beta_slow" where they are given; its second
             result, or "attention_factor" where that is given
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# linear_scaling, 1: a longer text must not turn further than the trained one did.

# ntk_scaling, 1: the first frequency stays 1, the last one is divided by s.
# ntk_scaling, 2: check the last one for d = 4: base^(-1/2) / s.

# dynamic_ntk_scaling, 1: for L up to L0 nothing changes.
# dynamic_ntk_scaling, 2: call your ntk_scaling.

# llama3_scaling, 1: np.clip cuts off at both ends.
# llama3_scaling, 2: many turns within the trained length: a fast pair, g = 1, kept.

# yarn_attention_factor, 1: math.log is the natural logarithm.
# yarn_attention_factor, 2: a multiplies the logarithm's term, not the 1.

# longrope_scaling, 1: at L = L0 the short list still holds.
# longrope_scaling, 2: the attention factor does not ask for L.

# yarn_scaling, 1: many turns: a fast pair, of small index, ramp 0, kept.
# yarn_scaling, 2: np.clip cuts off; the frequencies are those of ntk_scaling with factor 1.
# yarn_scaling, 3: for d = 8, L0 = 256 the ramp is 0, 0.5, 1, 1.

# rope_settings, 1: first one dictionary p of the layer, with "rope_theta" in it; then the type.
# rope_settings, 2: p.get("rope_type", p.get("type", "default")) reads both spellings.
# rope_settings, 3: chapter 42 reads other words; rope_from_config reads them all.
