"""Make the golden GGUF files: checkpoints of models/ as llama.cpp writes them, and blocks.

Usage: python tests/golden/make_gguf.py     (in the third environment of README.md)

Names of tensors, quantisation and the files themselves are the package gguf's; keys, the order of
rows, gains and turned matrices are those of llama.cpp's converters (ggml-org/llama.cpp,
`conversion/llama.py` at 0274f0f, `gemma.py` at 061b8c5, `qwen.py` at 03173d5, `gpt2.py` at
5535795). Matrices are written in float16, which holds these coarse numbers exactly.
"""

from __future__ import annotations

import json
import math
import platform
from importlib.metadata import version
from pathlib import Path

import gguf
import numpy as np
from gguf.quants import dequantize, quantize
from safetensors.numpy import load_file

HERE = Path(__file__).parent
OUT = HERE / "gguf"
ARCHITECTURES = {
    "gemma3_text": gguf.MODEL_ARCH.GEMMA3,
    "gpt2": gguf.MODEL_ARCH.GPT2,
    "llama": gguf.MODEL_ARCH.LLAMA,
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
}


def permute(weight: np.ndarray, n_head: int) -> np.ndarray:
    """As LlamaModel.permute of conversion/llama.py."""
    rows = weight.reshape(n_head, 2, len(weight) // n_head // 2, *weight.shape[1:])
    return rows.swapaxes(1, 2).reshape(weight.shape)


def llama3_divisors(rope: dict, d: int) -> np.ndarray:
    """As generate_extra_tensors of conversion/llama.py."""
    low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
    trained, found = rope["original_max_position_embeddings"], []
    for i in range(0, d, 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (i / d)
        if wavelength < trained / high:
            found.append(1.0)
        elif wavelength > trained / low:
            found.append(factor)
        else:
            smooth = (trained / wavelength - low) / (high - low)
            found.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(found, np.float32)


def keys(w: gguf.GGUFWriter, name: str, c: dict) -> None:
    """What the converters write; all but GPT-2's and Gemma's of TextModel in conversion/base.py."""
    if name == "gpt2":
        w.add_block_count(c["n_layer"])
        w.add_context_length(c["n_positions"])
        w.add_embedding_length(c["n_embd"])
        w.add_feed_forward_length(c["n_inner"])  # 4 n_embd there: its models have no other
        w.add_head_count(c["n_head"])
        w.add_layer_norm_eps(c["layer_norm_epsilon"])
        return
    rope = c["rope_parameters"]
    rope = rope.get("full_attention", rope)
    w.add_block_count(c["num_hidden_layers"])
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv(c["num_key_value_heads"])
    w.add_rope_freq_base(rope["rope_theta"])
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    if "head_dim" in c:
        w.add_key_length(c["head_dim"])
        w.add_value_length(c["head_dim"])
    if name == "llama":
        w.add_vocab_size(c["vocab_size"])
        w.add_rope_dimension_count(c["head_dim"])
    if rope["rope_type"] == "linear":
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope["factor"])
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if name == "gemma3_text":
        w.add_sliding_window(c["sliding_window"])
        w.add_uint32("gemma3.attention.sliding_window_pattern", 2)  # llama.cpp reads it, or takes 6
        w.add_rope_freq_base_swa(c["rope_parameters"]["sliding_attention"]["rope_theta"])


def converted(name: str, c: dict, theirs: str, x: np.ndarray) -> np.ndarray:
    """What the converters make of a tensor."""
    if name == "llama" and theirs.endswith("q_proj.weight"):
        return permute(x, c["num_attention_heads"])
    if name == "llama" and theirs.endswith("k_proj.weight"):
        return permute(x, c["num_key_value_heads"])
    if name == "gpt2" and theirs.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
        return x.T
    if name == "gemma3_text" and theirs.endswith("norm.weight"):
        x = x + 1
        if theirs.endswith(
            "q_norm.weight"
        ):  # the file can't say 1 / sqrt(scalar), only 1 / sqrt(K)
            x = (x * math.sqrt(c["head_dim"] / c["query_pre_attn_scalar"])).astype(np.float32)
    return x


def model(name: str) -> None:
    """Write a checkpoint as GGUF."""
    folder, arch = HERE / "models" / name, ARCHITECTURES[name]
    c = json.loads((folder / "config.json").read_text())
    w = gguf.GGUFWriter(OUT / f"{name}.gguf", gguf.MODEL_ARCH_NAMES[arch])
    w.add_name(f"{name}, by gguf {version('gguf')}")
    keys(w, name, c)
    names = gguf.get_tensor_name_map(arch, c.get("num_hidden_layers") or c["n_layer"])
    for theirs, x in load_file(folder / "model.safetensors").items():
        ours = names.get_name(theirs, try_suffixes=(".weight", ".bias"))
        x = np.ascontiguousarray(converted(name, c, theirs, x))
        if x.ndim == 2:
            assert (x.astype(np.float16) == x).all(), theirs
            x = x.astype(np.float16)
        w.add_tensor(ours, x)
    if name == "llama":
        w.add_tensor("rope_freqs.weight", llama3_divisors(c["rope_parameters"], c["head_dim"]))
    if name == "gpt2":  # a tokenizer that the package refuses
        w.add_tokenizer_model("gpt2")
        w.add_token_list([f"t{n}" for n in range(c["vocab_size"])])
        w.add_token_merges(["t 1", "t 2"])
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def blocks() -> None:
    """Write blocks of each type, and what gguf reads in them.

    The package makes none of Q4_K and Q6_K: random bytes are some, as long as their scales are
    finite; negative, tiny and zero ones are among them.
    """
    rng = np.random.default_rng(0)
    w, expected = gguf.GGUFWriter(OUT / "blocks.gguf", "blocks"), {}
    for kind in ("F32", "F16", "BF16", "Q8_0", "Q5_0", "Q4_K", "Q6_K"):
        q = gguf.GGMLQuantizationType[kind]
        numbers, size = gguf.GGML_QUANT_SIZES[q]
        shape = 3, 2 * numbers if numbers > 1 else 5
        if kind in ("Q4_K", "Q6_K"):
            raw = rng.integers(0, 256, (6, size), np.uint8)
            places = (0, 2) if kind == "Q4_K" else (208,)
            for place in places:
                scales = rng.normal(size=6).astype(np.float16)
                scales[:3] = [6e-8, 0, -2e-5]
                raw[:, place : place + 2] = scales.view(np.uint8).reshape(6, 2)
            raw = raw.reshape(3, 2 * size)
        else:
            raw = quantize(rng.normal(size=shape).astype(np.float32), q)
        w.add_tensor(kind, raw, raw_dtype=q)
        expected[kind] = dequantize(raw, q).reshape(shape)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    versions = {name: version(name) for name in ("gguf", "numpy")}
    provenance = {"code": "gguf.quants:dequantize", **versions, "python": platform.python_version()}
    np.savez_compressed(OUT / "blocks.npz", provenance=json.dumps(provenance), **expected)


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for name in ARCHITECTURES:
        model(name)
    blocks()
