"""Solutions of the exercises of chapter 42."""

import numpy as np


def proportional_frequencies(d, fraction, base=10000.0, factor=1.0):
    theta = base ** (-2 * np.arange(d // 2) / d) / factor
    theta[int(fraction * d // 2) :] = 0  # the slowest pairs stand still
    return theta


def layer_bases(n_layers, pattern, base, local_base):
    layers = np.arange(n_layers)
    return np.where((layers + 1) % pattern == 0, base, local_base)


def layer_frequencies(config, layer):
    if not config.get("no_rope_layers", [1] * (layer + 1))[layer]:
        return np.zeros(0)
    if "head_dim" in config:
        width = config["head_dim"]
    else:
        width = config["hidden_size"] // config["num_attention_heads"]
    turned = int(width * config.get("partial_rotary_factor", 1))
    words = {**config, **config.get("rope_scaling", {}), **config.get("rope_parameters", {})}
    return words["rope_theta"] ** (-np.arange(0, turned, 2) / turned) / words.get("factor", 1)
