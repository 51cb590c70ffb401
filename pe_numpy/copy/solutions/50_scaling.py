"""Solutions of the exercises of chapter 50."""

import math

import numpy as np


def linear_scaling(frequencies, factor):
    return frequencies / factor


def ntk_scaling(d, factor, base=10000.0):
    larger = base * factor ** (d / (d - 2))  # d - 2: the slowest pair has the exponent (d - 2)/d
    return larger ** (-2 * np.arange(d // 2) / d)


def dynamic_ntk_scaling(d, length, trained_length, factor=1.0, base=10000.0):
    growth = max(1, length / trained_length)
    return ntk_scaling(d, factor * growth - (factor - 1), base)


def llama3_scaling(frequencies, factor, trained_length, low_freq_factor=1.0, high_freq_factor=4.0):
    turns = trained_length * frequencies / (2 * np.pi)
    g = np.clip((turns - low_freq_factor) / (high_freq_factor - low_freq_factor), 0, 1)
    return (1 - g) * frequencies / factor + g * frequencies


def yarn_attention_factor(factor, mscale=1.0):
    return 0.1 * mscale * math.log(factor) + 1 if factor > 1 else 1.0


def longrope_scaling(d, length, short_factor, long_factor, trained_length, factor, base=10000.0):
    divisors = long_factor if length > trained_length else short_factor
    growth = math.log(factor) / math.log(trained_length) if factor > 1 else 0
    return base ** (-2 * np.arange(d // 2) / d) / divisors, math.sqrt(1 + growth)


def yarn_scaling(
    d,
    factor,
    trained_length,
    base=10000.0,
    beta_fast=32.0,
    beta_slow=1.0,
    truncate=True,
):
    def index(turns):
        return d * math.log(trained_length / (2 * math.pi * turns)) / (2 * math.log(base))

    low, high = index(beta_fast), index(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    ramp = np.clip((np.arange(d // 2) - low) / ((high - low) or 0.001), 0, 1)
    theta = base ** (-2 * np.arange(d // 2) / d)
    return (1 - ramp) * theta + ramp * theta / factor, yarn_attention_factor(factor)


def rope_settings(config, layer=0, length=None):
    p = config.get("rope_scaling", {})
    if "rope_parameters" in config:
        p = config["rope_parameters"][config["layer_types"][layer]]
    base = p.get("rope_theta", config.get("rope_theta"))
    if "head_dim" in config:
        d = config["head_dim"]
    else:
        d = config["hidden_size"] // config["num_attention_heads"]
    theta = base ** (-np.arange(0, d, 2) / d)
    kind = p.get("rope_type", p.get("type", "default"))
    trained = p.get("original_max_position_embeddings")
    if kind == "linear":
        theta = linear_scaling(theta, p["factor"])
    elif kind == "dynamic":
        longest = config["max_position_embeddings"]
        theta = dynamic_ntk_scaling(d, length, longest, p["factor"], base)
    elif kind == "llama3":
        low, high = p["low_freq_factor"], p["high_freq_factor"]
        theta = llama3_scaling(theta, p["factor"], trained, low, high)
    elif kind == "yarn":
        betas = p.get("beta_fast", 32.0), p.get("beta_slow", 1.0)
        theta, own = yarn_scaling(d, p["factor"], trained, base, *betas)
        return theta, p.get("attention_factor", own)
    return theta, 1.0
