r"""From a model's configuration to the RoPE of one of its layers.

Sources: the configurations and the code of Hugging Face's transformers 5.23.0, above all
`modeling_rope_utils.py`; the formulas are those of the modules `rope` and `scaling`. Two spellings
are in use::

    old   "rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 8}
    new   "rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 8}
          or one such dictionary for each word of "layer_types"

Axes: n pairs turn; K, the width of one head, is "head_dim", or "hidden_size" over
"num_attention_heads", or in latent attention "qk_rope_head_dim".
Symbols: the words of the configurations; base is "rope_theta", L0 is
"original_max_position_embeddings" (in dynamic NTK "max_position_embeddings").
Convention: a configuration is a dictionary, as `json.load` gives it. A key that this module would
have to guess the meaning of is refused by name.
Differs from transformers: "truncate" is obeyed in nested parameters, too; lengths that matter must
be given; what a class of transformers fills in is known only for the types of model in `DEFAULTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pe_numpy import checks
from pe_numpy.models.entries import entry
from pe_numpy.rotary.nd import mrope_frequencies
from pe_numpy.rotary.rope import rope_frequencies
from pe_numpy.rotary.scaling import (
    dynamic_ntk_scaling,
    linear_scaling,
    llama3_scaling,
    longrope_scaling,
    proportional_frequencies,
    yarn_attention_factor,
    yarn_scaling,
)

NAME = "rope_from_config"

# What transformers fills in where a configuration of this type says nothing.
DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {"rope_theta": 1e4},
    "mistral": {"rope_theta": 1e4},
    "gemma2": {"head_dim": 256, "rope_theta": 1e4},
    "qwen2": {"rope_theta": 1e4},
    "qwen3": {"head_dim": 128, "rope_theta": 1e4},
    "gptj": {"rope_theta": 1e4, "rotary_dim": 64},
    "gpt_neox": {"rotary_emb_base": 1e4, "rotary_pct": 0.25},
    "stablelm": {"rope_theta": 1e4, "partial_rotary_factor": 0.25},
    "persimmon": {"rope_theta": 1e4, "partial_rotary_factor": 0.5},
    "glm": {"head_dim": 128, "rope_theta": 1e4, "partial_rotary_factor": 0.5},
    "glm4": {"head_dim": 128, "rope_theta": 1e4, "partial_rotary_factor": 0.5},
    "glm4_moe": {"rope_theta": 1e4, "partial_rotary_factor": 0.5},
    "nemotron": {"rope_theta": 1e4, "partial_rotary_factor": 0.5},
    "phi": {"rope_theta": 1e4, "partial_rotary_factor": 0.5},
    "phi3": {"rope_theta": 1e4, "original_max_position_embeddings": 4096},
    "qwen3_next": {"head_dim": 256, "rope_theta": 1e4, "partial_rotary_factor": 0.25},
    "cohere": {"rope_theta": 5e5},
    "cohere2": {"rope_theta": 1e4, "sliding_window_pattern": 4},
    "exaone4": {"rope_theta": 1e4, "sliding_window_pattern": 4},
    "smollm3": {"rope_theta": 2e6, "no_rope_layer_interval": 4},
    "llama4_text": {"head_dim": 128, "rope_theta": 5e5, "no_rope_layer_interval": 4},
    "deepseek_v2": {"rope_theta": 1e4},
    "deepseek_v3": {"rope_theta": 1e4},
    "qwen2_vl": {"rope_theta": 1e6, "mrope_section": (16, 24, 24)},
    "qwen2_vl_text": {"rope_theta": 1e6, "mrope_section": (16, 24, 24)},
    "qwen2_5_vl_text": {"rope_theta": 1e6, "mrope_section": (16, 24, 24)},
    "qwen3_vl_text": {
        "head_dim": 128,
        "rope_theta": 5e5,
        "mrope_section": (24, 20, 20),
        "mrope_interleaved": True,
    },
    "qwen3_5_text": {
        "head_dim": 256,
        "rope_theta": 1e4,
        "partial_rotary_factor": 0.25,
        "mrope_section": (11, 11, 10),
        "mrope_interleaved": True,
    },
    "glm4v_text": {"rope_theta": 1e4, "mrope_section": (8, 12, 12)},
    "glm4v_moe_text": {
        "rope_theta": 1e4,
        "partial_rotary_factor": 0.5,
        "mrope_section": (8, 12, 12),
    },
    "gemma3_text": {
        "head_dim": 256,
        "rope_theta": 1e6,
        "rope_local_base_freq": 1e4,
        "sliding_window_pattern": 6,
    },
    "gemma4_text": {"head_dim": 256, "global_head_dim": 512},
    "modernbert": {
        "global_rope_theta": 1.6e5,
        "local_rope_theta": 1e4,
        "global_attn_every_n_layers": 3,
    },
}
# Which components pair is written in the code of a model, not in its configuration.
INTERLEAVED = (
    "axk1 axk2 bailing_hybrid blt_global_transformer blt_local_decoder blt_local_encoder "
    "blt_patcher codegen cohere cohere2 cohere2_moe deepseek_v2 deepseek_v3 deepseek_v32 "
    "dots3_note_text ernie4_5 ernie4_5_moe glm glm4 glm4_moe_lite glm4v_text glm_moe_dsa "
    "glm_ocr_text gptj helium llama4_text longcat_flash mistral4 mistral_large4_text moonshine "
    "moonshine_streaming roformer youtu"
).split()
WITHOUT = ("conv", "linear_attention")  # layers of another kind
REFUSED = {
    "deepseek_v4": "it turns the last components of a head",
    "ernie4_5_vl_moe_text": "its rows and columns take turns before time",
    "hunyuan_vl_text": "its axes cut pairs apart",
}
# The keys of each type besides those that all have.
COMMON: tuple[str, ...] = ("rope_type", "type", "rope_theta", "partial_rotary_factor")
COMMON += ("original_max_position_embeddings", "mrope_section", "mrope_interleaved")
KEYS = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": "factor attention_factor beta_fast beta_slow truncate mscale mscale_all_dim".split(),
    "longrope": ("factor", "attention_factor", "short_factor", "long_factor"),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "proportional": ("factor",),
}
OTHERS = (
    "head_dim global_head_dim qk_rope_head_dim hidden_size num_attention_heads n_embd n_head "
    "rotary_dim rotary_pct num_hidden_layers layer_types global_attn_every_n_layers "
    "no_rope_layers no_rope_layer_interval rotary_emb_base "
    "rope_local_base_freq local_rope_theta global_rope_theta rope_interleave rope_scaling "
    "rope_parameters max_position_embeddings"
).split()


class RopeSettings(NamedTuple):
    """What a layer does with positions; the fields are told at `rope_from_config`."""

    frequencies: np.ndarray | None
    attention_factor: float
    layout: str
    score_factor: float


def rope_from_config(
    config: Mapping[str, Any], layer: int = 0, length: float | None = None
) -> RopeSettings:
    """Read the RoPE of one layer from a configuration in the style of Hugging Face.

    Parameters
    ----------
    config : dictionary
        As in config.json, in the old or in the new spelling; of a model with pictures, its
        "text_config" is read.
    layer : int
        The layer's number, from 0.
    length : float, optional
        L, the number of positions of the present sequence. The types "dynamic" and "longrope" need
        it; no other looks at it.

    Returns
    -------
    frequencies : (n,) float64 array for `rope`
        None for a layer without RoPE; (3, n) where "mrope_section" deals the pairs out to time,
        height and width, with zeros where a pair belongs to another axis.
    attention_factor : float
        Multiply the first 2n components of turned queries and keys with it.
    layout : "interleaved" or "half"
        Half, unless the model's type is known to pair neighbours or "rope_interleave" is true.
    score_factor : float
        Multiply the scores q k / sqrt(K) with it.

    Raises
    ------
    ValueError
        If a type or a key of the RoPE parameters is not known (the message names it), or a length
        is needed and not given.

    Notes
    -----
    Source: transformers 5.23.0, `modeling_rope_utils.py`. Types: default, linear, dynamic, yarn,
    longrope (once "su"), llama3, proportional. The softmax scale of DeepSeek's latent attention is
    `score_factor`: m(s, mscale_all_dim)^2 where the configuration has a "qk_rope_head_dim". Of a
    model's code it knows what the lists of this module say; what else a class may do, such as leave
    some layers without RoPE, no configuration tells.

    Examples
    --------
    >>> config = {"head_dim": 8, "rope_theta": 10000.0, "rope_scaling": {"type": "linear"}}
    >>> config["rope_scaling"]["factor"] = 2
    >>> rope_from_config(config).frequencies.tolist()
    [0.5, 0.05, 0.005, 0.0005]
    """
    if not isinstance(config, Mapping):
        raise ValueError(
            f"{NAME}: config must be a dictionary, as json.load gives it; got "
            f"{type(config).__name__}"
        )
    config = entry(NAME, config, "text_config") or config
    model = entry(NAME, config, "model_type", "")
    if model in REFUSED:
        raise ValueError(f"{NAME}: model_type {model!r} is not known: {REFUSED[model]}")
    without_windows = config.get("sliding_window", ...) is None
    config = {**DEFAULTS.get(model, {}), **{k: v for k, v in config.items() if v is not None}}
    for key in (*OTHERS, *COMMON, *(key for keys in KEYS.values() for key in keys)):
        entry(NAME, config, key)  # raises where it is of another kind
    layer = checks.integer(NAME, "layer", layer, least=0)
    if layer >= config.get("num_hidden_layers", layer + 1):
        raise ValueError(
            f"{NAME}: layer must be below num_hidden_layers; "
            f"got {layer} and {config['num_hidden_layers']}"
        )
    interleaved = config.get("rope_interleave", model in INTERLEAVED)
    layout = "interleaved" if interleaved else "half"
    layer_type = _layer_type(config, layer)
    full = layer_type == "full_attention"
    windowed = model == "cohere2" or (model == "exaone4" and not without_windows)
    without = _without_rope(config, layer) or layer_type in WITHOUT or (windowed and full)
    parameters = None if without else _parameters(config, layer_type)
    if parameters is None:
        return RopeSettings(None, 1.0, layout, 1.0)
    K = _width(config, full)
    frequencies, attention_factor = _frequencies(config, parameters, K, length)
    if "mrope_section" in parameters or "mrope_section" in config:
        frequencies = _by_axes(config, parameters, frequencies)
    score_factor = 1.0
    if "qk_rope_head_dim" in config and parameters.get("mscale_all_dim"):
        second = yarn_attention_factor(parameters["factor"], parameters["mscale_all_dim"])
        score_factor = second**2
    return RopeSettings(frequencies, attention_factor, layout, score_factor)


def _entry(config: Mapping[str, Any], name: str, layer: int) -> Any:
    """Give what a list with an entry for each layer says of this one."""
    if layer >= len(config[name]):
        n = len(config[name])
        raise ValueError(f"{NAME}: layer must be one of the {n} of {name}; got {layer}")
    return config[name][layer]


def _layer_type(config: Mapping[str, Any], layer: int) -> str | None:
    """Whether the layer looks at all tokens or at a window, in the words of "layer_types"."""
    if "layer_types" in config:
        return _entry(config, "layer_types", layer)
    if "global_attn_every_n_layers" in config:
        every, at = config["global_attn_every_n_layers"], layer
    elif not isinstance(config.get("sliding_window_pattern"), str | None):  # "LLLG" is a note
        every, at = entry(NAME, config, "sliding_window_pattern"), layer + 1
    else:
        return None
    return "sliding_attention" if at % every else "full_attention"


def _without_rope(config: Mapping[str, Any], layer: int) -> bool:
    """Whether the layer has no RoPE: the list "no_rope_layers" has a 1 where RoPE is used."""
    if config.get("no_rope_layers"):
        return not _entry(config, "no_rope_layers", layer)
    every: Any = config.get("no_rope_layer_interval")
    return bool(every) and (layer + 1) % every == 0


def _parameters(config: Mapping[str, Any], layer_type: str | None) -> dict[str, Any] | None:
    """The RoPE parameters of a layer in the new spelling, checked; None if it has none."""
    given = config.get("rope_scaling") or config.get("rope_parameters") or {}
    local = layer_type == "sliding_attention"
    if layer_type in given or any(isinstance(value, Mapping) for value in given.values()):
        if layer_type not in given:
            raise ValueError(
                f"{NAME}: there are no RoPE parameters for layer type {layer_type!r} among "
                f"{', '.join(given)}"
            )
        given = given[layer_type]
        if given is None and "rope_local_base_freq" in config:
            given = {}  # Gemma 3 takes null for its defaults
        if given is None:
            return None
        if not isinstance(given, Mapping):
            raise ValueError(f"{NAME}: {layer_type} must be an object; got {given!r:.80}")
    elif local and "rope_local_base_freq" in config:
        given = {}  # Gemma 3 stretches only its global layers
    p = {key: value for key, value in given.items() if value is not None}
    kind = entry(NAME, p, "rope_type", entry(NAME, p, "type", "default"))
    p["rope_type"] = {"su": "longrope", "mrope": "default"}.get(kind, kind)
    if p["rope_type"] not in KEYS:
        raise ValueError(f"{NAME}: rope_type {kind!r} is not known; there are {', '.join(KEYS)}")
    for key in p:
        if key not in COMMON and key not in KEYS[p["rope_type"]]:
            raise ValueError(f"{NAME}: rope_type {kind!r} has no key {key!r} here")
        entry(NAME, p, key)
    names = ["rope_theta", "rotary_emb_base"]
    if local:
        names = ["rope_local_base_freq", "local_rope_theta", *names]
    else:
        names = ["global_rope_theta", *names]
    p.setdefault("rope_theta", next((config[name] for name in names if name in config), None))
    if p["rope_theta"] is None:
        raise ValueError(
            f"{NAME}: rope_theta is missing, and what the model_type "
            f"{config.get('model_type')!r} takes for it is not known"
        )
    fraction = config.get("rotary_pct", config.get("partial_rotary_factor", 1.0))
    p.setdefault("partial_rotary_factor", fraction)
    return p


def _width(config: Mapping[str, Any], full: bool) -> int:
    """K, the width of one head of queries and keys, or of the part that latent attention turns."""
    for name in ("qk_rope_head_dim", "global_head_dim" if full else "head_dim", "head_dim"):
        if name in config:
            return checks.even(NAME, name, config[name], "components pair up")
    for width, heads in (("hidden_size", "num_attention_heads"), ("n_embd", "n_head")):
        if width in config and heads in config:
            name = f"{width} over {heads}"
            return checks.even(NAME, name, config[width] // config[heads], "components pair up")
    raise ValueError(f"{NAME}: head_dim is missing, or hidden_size and num_attention_heads")


def _frequencies(
    config: Mapping[str, Any], p: dict[str, Any], K: int, length: float | None
) -> tuple[np.ndarray, float]:
    """Frequencies and attention factor of the checked parameters p."""
    kind, base, fraction = p["rope_type"], p["rope_theta"], p["partial_rotary_factor"]
    if length is None and kind in ("dynamic", "longrope"):
        raise ValueError(f"{NAME}: rope_type {kind!r} depends on the length; got None")
    length = 1.0 if length is None else checks.positive(NAME, "length", length)

    def need(*names: str) -> Any:
        """The first of these that the parameters or the configuration have."""
        for name in names:
            if name in p or name in config:
                return p.get(name, config.get(name))
        raise ValueError(f"{NAME}: rope_type {kind!r} needs {' or '.join(names)}")

    if kind == "proportional":
        return proportional_frequencies(K, fraction, base, p.get("factor", 1.0)), 1.0
    turned = config.get("rotary_dim", int(K * fraction))
    d = checks.even(NAME, "the number of components that turn", turned, "they pair up")
    if d > K:
        raise ValueError(f"{NAME}: rotary_dim must be at most the width of a head, {K}; got {d}")
    theta = rope_frequencies(d, base)
    if kind == "default":
        return theta, 1.0
    if kind == "linear":
        return linear_scaling(theta, need("factor")), 1.0
    if kind == "dynamic":
        trained = need("max_position_embeddings")
        return dynamic_ntk_scaling(d, length, trained, need("factor"), base), 1.0
    trained = config.get("original_max_position_embeddings")
    trained = trained or need("original_max_position_embeddings", "max_position_embeddings")
    if kind == "llama3":
        low, high = need("low_freq_factor"), need("high_freq_factor")
        return llama3_scaling(theta, need("factor"), trained, low, high), 1.0
    if "factor" not in p:
        p["factor"] = need("max_position_embeddings") / trained
    if kind == "longrope":
        lists = need("short_factor"), need("long_factor")
        frequencies, own = longrope_scaling(d, length, *lists, trained, p["factor"], base)
    else:
        betas = p.get("beta_fast") or 32, p.get("beta_slow") or 1
        frequencies, own = yarn_scaling(
            d, p["factor"], trained, base, *betas, p.get("truncate", True)
        )
        if p.get("mscale") and p.get("mscale_all_dim"):
            own = yarn_attention_factor(p["factor"], p["mscale"])
            own /= yarn_attention_factor(p["factor"], p["mscale_all_dim"])
    return frequencies, float(p.get("attention_factor", own))


def _by_axes(config: Mapping[str, Any], p: dict[str, Any], frequencies: np.ndarray) -> np.ndarray:
    """Deal one ladder of frequencies out to time, height and width: (3, n)."""
    sections: Any = p.get("mrope_section", config.get("mrope_section"))
    interleaved = p.get("mrope_interleaved", config.get("mrope_interleaved", False))
    owner = mrope_frequencies(sections, interleaved=interleaved) != 0
    if owner.shape[1] != len(frequencies):
        raise ValueError(
            f"{NAME}: mrope_section must add up to the number of pairs, {len(frequencies)}; "
            f"got {list(sections)}"
        )
    return np.where(owner, frequencies, 0.0)
