r"""What llama.cpp made of a checkpoint, undone: a GGUF file as config.json and weights.

Source: ggml-org/llama.cpp, the converters `conversion/llama.py` at 0274f0f, `gemma.py` at 061b8c5,
`qwen.py` at 03173d5, `gpt2.py` at 5535795; what it takes where a file says nothing: `src/models/`,
`llama.cpp` and `qwen3.cpp` at 069be0a, `gemma3.cpp` at 569a009, `qwen2.cpp` at 0215468, `gpt2.cpp`
at 82234e0, and `src/llama-model.cpp`; names: the package gguf 0.19.0. Its conventions, by family::

    llama     rows of W_q and W_k reordered: pair i of a head stands in rows 2i, 2i + 1
              rope_freqs: what Llama 3 divides each frequency by
    gemma3    gains stored as 1 + w;  never said: scores q k / sqrt(K), of the 27B q k / sqrt(D/H)
              said only by newer files: each 6th layer sees all, base 10,000 in the others
    gpt2      matrices turned to (out, in)
    qwen2, qwen3      as they were

Axes: projections are (out, in). Symbols: K, D, H as everywhere.
Convention: a key that would change what a model computes, and is not known here, is refused.
Differs from llama.cpp: it computes in float32 with float32 activations; there they are rounded to
8 bits before each product with a block.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pe_numpy.models.gguf import NAME, Gguf, read_gguf
from pe_numpy.rotary.rope import rope_convert_weights, rope_frequencies
from pe_numpy.rotary.scaling import llama3_scaling

Tensors = dict[str, np.ndarray]


class Family(NamedTuple):
    """llama.cpp's words, and what a checkpoint of Hugging Face calls the same.

    `sizes` are keys and entries of config.json; `layer` and `rest` tensors in a layer, whose number
    follows the prefix, and outside of one.
    """

    model_type: str
    sizes: dict[str, str]
    rest: dict[str, str]
    prefix: str
    layer: dict[str, str]


SIZES = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
}
REST = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
FOUR_NORMS = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
GPT2 = Family(
    "gpt2",
    {
        "context_length": "n_positions",
        "embedding_length": "n_embd",
        "block_count": "n_layer",
        "feed_forward_length": "n_inner",
        "attention.head_count": "n_head",
        "attention.layer_norm_epsilon": "layer_norm_epsilon",
    },
    {
        "token_embd": "transformer.wte",
        "position_embd": "transformer.wpe",
        "output_norm": "transformer.ln_f",
        "output": "lm_head",
    },
    "transformer.h",
    {
        "attn_norm": "ln_1",
        "attn_qkv": "attn.c_attn",
        "attn_output": "attn.c_proj",
        "ffn_norm": "ln_2",
        "ffn_up": "mlp.c_fc",
        "ffn_down": "mlp.c_proj",
    },
)
FAMILIES = {  # general.architecture: family
    "gemma3": Family("gemma3_text", SIZES, REST, "model.layers", LAYER | FOUR_NORMS),
    "gpt2": GPT2,
    "llama": Family("llama", SIZES, REST, "model.layers", LAYER),
    "qwen2": Family("qwen2", SIZES, REST, "model.layers", LAYER),
    "qwen3": Family("qwen3", SIZES, REST, "model.layers", LAYER),
}
SAYS_NOTHING = ("vocab_size", "rope.scaling.finetuned", "tensor_data_layout")
ROPE_FREQS = "rope_freqs.weight"
NO_EXPERTS = ("expert_count", "expert_used_count")  # 0 in older files


def checkpoint_of(path: str | Path) -> tuple[dict[str, Any], Callable[[], Tensors]]:
    """Read a GGUF file as a folder is read: its configuration, and what gives its weights.

    No weight is read before the second is called. A family, a key or a type that is not known
    raises a ValueError that names it, and what is known.
    """
    file = read_gguf(path)
    config = config_of(file)
    names_of(file)  # raises where one is not known
    return config, lambda: weights_of(file, config)


def config_of(file: Gguf) -> dict[str, Any]:
    """Write the configuration that a file's keys say, and what llama.cpp takes for granted."""
    keys = Keys(file)
    if keys.parts != 1:
        raise ValueError(
            f"{NAME}: {file.path.name} must be whole; it is one of {keys.parts!r:.20} parts, which "
            "llama-gguf-split --merge joins"
        )
    if "token_embd.weight" not in file.tensors:
        raise ValueError(f"{NAME}: {file.path.name} must have the tensor token_embd.weight")
    family = FAMILIES[keys.architecture]
    config: dict[str, Any] = {ours: keys.number(theirs) for theirs, ours in family.sizes.items()}
    config |= {
        "model_type": family.model_type,
        "dtype": "float32",
        "vocab_size": file.tensors["token_embd.weight"].shape[0],
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }
    if keys.architecture != "gpt2":
        config |= attention_of(file, keys, config)
    if keys.architecture == "gemma3":
        config |= gemma3_of(keys, config)
    keys.all_known()
    return config


def attention_of(file: Gguf, keys: Keys, config: dict[str, Any]) -> dict[str, Any]:
    """The heads, and what turns them."""
    D, H = config["hidden_size"], config["num_attention_heads"]
    K = keys.number("attention.key_length", D // max(H, 1))
    for key in ("attention.value_length", "rope.dimension_count"):
        if keys.number(key, K) != K:
            raise keys.wrong(key, f"{K}, the width of a head of keys,")
    found: dict[str, Any] = {
        "num_key_value_heads": keys.number("attention.head_count_kv", H),
        "head_dim": K,
        "rope_theta": keys.number("rope.freq_base", 1e4),
    }
    kind = keys.get("rope.scaling.type", "linear")
    factor = keys.number("rope.scaling.factor", keys.number("rope.scale_linear", 0))
    own = keys.number("rope.scaling.attn_factor", 1)
    yarn = {
        "original_max_position_embeddings": keys.number(
            "rope.scaling.original_context_length", config["max_position_embeddings"]
        ),
        "beta_fast": keys.number("rope.scaling.yarn_beta_fast", 32),
        "beta_slow": keys.number("rope.scaling.yarn_beta_slow", 1),
        "attention_factor": own * (1 + 0.1 * math.log(max(factor, 1))),
    }
    if kind not in ("none", "linear", "yarn"):
        raise keys.wrong("rope.scaling.type", "none, linear or yarn")
    if own != 1 and kind != "yarn":
        raise keys.wrong("rope.scaling.attn_factor", "1 without YaRN")
    if factor and kind != "none":
        found["rope_scaling"] = {"rope_type": kind, "factor": factor}
        found["rope_scaling"] |= yarn if kind == "yarn" else {}
    if keys.architecture == "llama" and ROPE_FREQS in file.tensors:
        found["rope_scaling"] = llama3_of(file, K, found["rope_theta"])
    return found


def gemma3_of(keys: Keys, config: dict[str, Any]) -> dict[str, Any]:
    """What llama.cpp knows of Gemma 3 and most files do not say."""
    D, H, K = (config[key] for key in ("hidden_size", "num_attention_heads", "head_dim"))
    of_27B = config["num_hidden_layers"] == 62
    return {
        "sliding_window": keys.number("attention.sliding_window"),
        "sliding_window_pattern": keys.number("attention.sliding_window_pattern", 6),
        "rope_local_base_freq": keys.number("rope.freq_base_swa", 1e4),
        "final_logit_softcapping": keys.get("final_logit_softcapping"),
        "query_pre_attn_scalar": D // max(H, 1) if of_27B else K,
    }


def llama3_of(file: Gguf, K: int, base: float) -> dict[str, Any]:
    """The scaling whose divisors a file holds, in place of its three numbers.

    Between the bands 1/f = (1 - a)/s + a with a = (L0 / wavelength - 1) / (4 - 1), so each f there
    tells L0. The limits 1 and 4 are those of all that Meta released.
    """
    f = file.numbers(ROPE_FREQS).astype(np.float64)
    if f.shape == (K / 2,) and np.isfinite(f).all() and f.min() > 0:
        theta, s = rope_frequencies(K, base), float(f.max())
        between = (1 < f) & (f < s)
        a = (1 / f[between] - 1 / s) / (1 - 1 / s) if s > 1 else f[:0]
        for L0 in (*np.round(2 * np.pi / theta[between] * (1 + 3 * a)), 8192.0):
            if np.allclose(theta / f, llama3_scaling(theta, s, L0), rtol=1e-5, atol=0):
                return {
                    **{"rope_type": "llama3", "factor": s, "low_freq_factor": 1.0},
                    **{"high_freq_factor": 4.0, "original_max_position_embeddings": int(L0)},
                }
    raise ValueError(
        f"{NAME}: {file.path.name} must hold in {ROPE_FREQS} the {K / 2:g} divisors of a Llama 3 "
        f"scaling with the limits 1 and 4; got shape {f.shape}, {f.ravel()[:4].tolist()}, ..."
    )


def weights_of(file: Gguf, config: dict[str, Any]) -> Tensors:
    """Read all tensors, by the names and in the forms of a Hugging Face checkpoint."""
    kind, tensors = file.keys["general.architecture"], {}
    for name, theirs in names_of(file).items():
        x = file.numbers(name)
        if kind == "llama" and ".attn_q." in name:
            x = rope_convert_weights(x, config["num_attention_heads"], to="half")
        elif kind == "llama" and ".attn_k." in name:
            x = rope_convert_weights(x, config["num_key_value_heads"], to="half")
        elif kind == "gemma3" and name.endswith("norm.weight"):
            x -= 1
        elif kind == "gpt2" and x.ndim == 2 and name.startswith("blk."):
            x = x.T
        x.flags.writeable = False
        tensors[theirs] = x
    return tensors


def names_of(file: Gguf) -> dict[str, str]:
    """The tensors' names there, and in a checkpoint of Hugging Face."""
    family, names = FAMILIES[file.keys["general.architecture"]], {}
    for name in file.tensors:
        place = re.fullmatch(r"(?:blk\.(0|[1-9][0-9]*)\.)?(\w+)\.(weight|bias)", name)
        n, what, end = place.groups() if place else (None, "", "")
        found = (family.rest if n is None else family.layer).get(what)
        if found:
            names[name] = f"{found}.{end}" if n is None else f"{family.prefix}.{n}.{found}.{end}"
        elif name != ROPE_FREQS or family.model_type != "llama":
            known = ", ".join((*family.rest, *(f"blk.N.{what}" for what in family.layer)))
            raise ValueError(
                f"{NAME}: {file.path.name} must have tensors of {family.model_type}: {known}; got "
                f"{name!r}"
            )
    return names


class Keys:
    """The keys of a file's architecture, and which of them were asked for."""

    def __init__(self, file: Gguf) -> None:
        self.file, self.asked = file, {*SAYS_NOTHING}
        self.architecture = file.keys.get("general.architecture", "nothing")
        self.parts = file.keys.get("split.count", 1)
        if self.architecture not in list(FAMILIES):
            raise ValueError(
                f"{NAME}: {file.path.name} must have a general.architecture of "
                f"{', '.join(FAMILIES)}; got {self.architecture!r:.80}"
            )

    def get(self, key: str, default: Any = None) -> Any:
        """A value; numbers of 32 bits as they were written, .00001 and not .0000099999997."""
        self.asked.add(key)
        value = self.file.keys.get(f"{self.architecture}.{key}", default)
        if type(value) is float and abs(value) < 1e38 and float(np.float32(value)) == value:
            return float(str(np.float32(value)))
        return value

    def number(self, key: str, default: float | None = None) -> Any:
        """A value that is one number; without a default it must be there."""
        value = self.get(key, default)
        if type(value) not in (int, float) or not 0 <= value < np.inf:
            raise self.wrong(key, "a number from 0 on")
        return value

    def wrong(self, key: str, rule: str) -> ValueError:
        """What a value must be."""
        value = self.file.keys.get(f"{self.architecture}.{key}", "no such key")
        return ValueError(
            f"{NAME}: {self.file.path.name} must have {rule} as {self.architecture}.{key}; got "
            f"{value!r:.80}"
        )

    def all_known(self) -> None:
        """Refuse keys that nobody asked for."""
        for key in NO_EXPERTS:
            if self.number(key, 0) != 0:
                raise self.wrong(key, "0, as no mixture of experts is known here,")
        begin = f"{self.architecture}."
        names = [key.removeprefix(begin) for key in self.file.keys if key.startswith(begin)]
        unknown = [begin + name for name in names if name not in self.asked]
        if unknown:
            raise ValueError(
                f"{NAME}: {self.file.path.name} must have keys that are known here; "
                f"{len(unknown)} are not: {', '.join(unknown[:3]):.200}"
            )
